/* L6 operator. One reconcile from the object to its end: the script runs, what it returned is
 * written to the status if it differs, events and the log tell of what went wrong. What to do
 * with the key afterwards is the controller's. */
#pragma once

#include "operator/revision.h"

struct ml_reconcile;

/* How it ended. Lives during the callback. */
struct ml_reconcile_end {
    enum ml_outcome outcome;
    struct ml_err err;
    int64_t requeue_after_ns; /* or -1 */
    int64_t requeue_at_ns;    /* wall clock; or -1 */
    enum ml_limit_hit limit;  /* that ended the script's code */
    size_t writes;            /* that it asked for, with the one of the status */

    struct ml_revision *revision; /* that ran */
    struct ml_read_set *reads;    /* as in ml_result; counts when the outcome is OK */
    struct ml_read_versions read_versions;
    bool wrote_status;
};

typedef void ml_reconcile_done(void *context, const struct ml_reconcile_end *end);

/* Takes references of its own, and a turn of `payer` to begin. `done` comes later, from the loop or
 * from within a call into it, but never before this returns. */
struct ml_reconcile *ml_reconcile_start(struct ml_cluster *cluster, const char *controller,
                                        struct ml_revision *revision,
                                        struct ml_expectations *expectations,
                                        struct ml_payer *payer, struct ml_object *object,
                                        ml_reconcile_done *done, void *context);
/* As ml_script_writes; the write of the status counts. */
bool ml_reconcile_writes(const struct ml_reconcile *reconcile);
/* What the log calls this run, as reconcileID. */
const char *ml_reconcile_id(const struct ml_reconcile *reconcile);
/* For `done`: logs how it failed, if it did, and if `failures`, which has that of each key, says
 * that it is to be logged again. `retry_ns`: until it is tried again; -1: not by itself. */
void ml_reconcile_log_failure(const struct ml_reconcile *reconcile, struct ml_repeats *failures,
                              int64_t retry_ns);
void ml_reconcile_cancel(struct ml_reconcile *reconcile); /* done comes no more */

/* What a person has to know about an object, told where they look: an Event of type Warning on it.
 * `reason` in CamelCase; `note` is cut as ml_event says. */
void ml_object_warning(struct ml_cluster *cluster, const struct ml_kind *kind,
                       const struct ml_object *object, const char *reason, const char *note);
