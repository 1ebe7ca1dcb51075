/* L6 operator, private. Shared by reconcile.c (the run, and what is told of it) and
 * reconcile_status.c (the write of its status, which may end the reconcile). */
#pragma once

#include "operator/reconcile.h"

#define ID_LEN 8 /* hex digits */

/* Of the Event and the condition on an object whose finalize is not done. */
#define REASON_UNFINISHED "Finalizing"

struct ml_reconcile {
    struct ml_cluster *cluster; /* the revision's */
    char id[ID_LEN + 1];
    struct ml_revision *revision; /* live, or it was when this began */
    struct ml_object *object;
    enum ml_reconcile_call call;
    struct ml_run *run;
    struct ml_writer_call *writing;
    struct ml_result result; /* of the script, then of the reconcile */
    bool wrote_status;
    /* Of the write of the status that is under way: */
    bool sends_condition;    /* with the condition Reconciled */
    size_t condition_place;  /* in the list of conditions, then */
    bool condition_alone;    /* it has nothing that the script returned */
    bool returns_conditions; /* the script returned some */
    char *sent;              /* the status in the patch, charged to the script; or NULL */
    bool takes_back; /* the object said that an earlier reconcile failed, and does no more */
    enum { LASTS_UNASKED, LASTS_YES, LASTS_NO } lasts;
    char *traceback;  /* of a Lua error, or NULL */
    char *invalid;    /* the field, and what is wrong with it; or NULL */
    char *unfinished; /* why finalize is called again, or NULL */
    char *version;    /* the object's resourceVersion after the finalizer was added, or NULL */
    char *held;       /* the patch of the status, while the finalizer is added; or NULL */
    struct ml_turn start;
    const struct ml_reconcile_handler *handler;
    void *context;
};

/* reconcile.c */

/* Calls `done`, and frees it. */
void reconcile_finish(struct ml_reconcile *reconcile);
/* The reason in the Event and in the condition that tell of a failure. NULL: nobody is told, as of
 * a conflict or a fault of the network that has not lasted long. */
const char *reconcile_failure_reason(struct ml_reconcile *reconcile);
/* What is invalid, or what went wrong. */
const char *reconcile_failure_text(const struct ml_reconcile *reconcile);
/* Tells of a failure in an Event, where a person looks. */
void reconcile_tell_failure(struct ml_reconcile *reconcile);

/* reconcile_status.c */

/* Writes what the script returned, or empty, and what the object is to say of a failure; then
 * finishes the reconcile, maybe later. A status that cannot be written makes the outcome an
 * error. Tells of the failure, if it was one. */
void reconcile_write_status(struct ml_reconcile *reconcile, struct ml_str status);
/* A write of the host's failed: makes the outcome an error, which is tried again, and tells of it.
 * `what` was tried: "write status"; NULL: `err` says it. */
void reconcile_fail_write(struct ml_reconcile *reconcile, const struct ml_err *err,
                          const char *what);
/* Frees what is kept of a write of the status. */
void reconcile_drop_sent(struct ml_reconcile *reconcile);
/* Writes the condition alone, if it has to be written, and finishes the reconcile, maybe later. */
void reconcile_write_condition(struct ml_reconcile *reconcile);
