/* L6 operator. The condition `Reconciled`, by which the host shows on an object that its last
 * reconcile failed. It is False after ctx.invalid, ctx.terminal and errors, and while finalize is
 * not done, with the reason that the Event has, and True again once a reconcile was good. An object
 * whose reconciles never failed does not have it, and costs no write.
 *
 * Its message begins with "CONTROLLER: ". So of two controllers of one kind each takes back only
 * what it has said itself: of a failure of the other one it says nothing. */
#pragma once

#include "base/buf.h"

#define ML_CONDITION_RECONCILED "Reconciled"

/* How a reconcile ended. */
struct ml_reconciled {
    const char *controller;
    const char *const
        *formerly;       /* names that it had, up to NULL: what these said is its own, too */
    const char *failure; /* the reason, in CamelCase; NULL: it was good */
    const char *message; /* of the failure; one line */
};

/* Appends what is to be merged into `conditions` (status.conditions, or empty): an array of one
 * condition, or nothing when nothing has to be said. A failure is said once: the same one, with
 * other numbers in its message, is not said again while the object has this `generation` (the
 * number of the line counts). */
void ml_reconciled_condition(struct ml_str conditions, int64_t generation,
                             const struct ml_reconciled *reconciled, struct ml_buf *out);

/* Does status.conditions say that a reconcile of this controller failed, or of one of `formerly`?
 */
bool ml_reconciled_failed(struct ml_str conditions, const char *controller,
                          const char *const *formerly);
