/* L6 operator. One reconcile from the object to its end: runs the script, writes the returned
 * status if it differs, and reports failures by Events and the log. Of an object that is being
 * deleted: runs finalize, and removes the finalizer when that is done. The controller decides what
 * happens to the key afterwards. */
#pragma once

#include "base/repeat.h"
#include "operator/revision.h"

struct ml_reconcile;

enum ml_reconcile_call {
    ML_CALL_RECONCILE,
    ML_CALL_FINALIZE,  /* the object is being deleted, and carries the finalizer */
    ML_CALL_RELEASE,   /* no function is called: the finalizer is removed */
    ML_CALL_TAKE_OVER, /* likewise: the finalizer of a name that the controller had becomes its own,
                          as that name may be gone from the script when the object goes */
    ML_CALL_PAUSE,     /* likewise: the object is paused, and its status says so */
};

static inline bool ml_call_runs_script(enum ml_reconcile_call call)
{
    return call == ML_CALL_RECONCILE || call == ML_CALL_FINALIZE;
}

/* Chooses what is called for the object. `removes`: the controller is being removed. False: nothing
 * is. */
ML_NODISCARD bool ml_reconcile_choose(const struct ml_revision *revision,
                                      const struct ml_object *object, bool removes,
                                      enum ml_reconcile_call *out);

/* The controller gets the result of the script and the answers to the host's own writes, and asks
 * by the functions below if the reconcile has ended. */
struct ml_reconcile_handler {
    ml_script_done *ran;     /* calls ml_reconcile_ran */
    ml_client_done *written; /* calls ml_reconcile_written */
    /* It failed for a reason that usually passes: is that to be told on the object? Asked once at
     * most. */
    bool (*lasts)(void *context);
};

/* Takes references of its own, and a slice to begin. `id`: its reconcileID in the log, borrowed.
 * `handler` is static. Its functions are called later, from the loop or from within a call into it,
 * but never before this returns. */
struct ml_reconcile *ml_reconcile_start(struct ml_revision *revision, struct ml_object *object,
                                        enum ml_reconcile_call call, const char *id,
                                        const struct ml_reconcile_handler *handler, void *context);
/* The script has ended: writes the status, or the finalizer. NULL: `written` is called. Else there
 * was nothing to write, and the reconcile has ended: what the script returned, or why its status
 * could not be written. The write of the status counts among `writes`. `finalized`: the finalizer
 * was removed. `status`, `field`, `version` and `traceback` are empty. */
ML_NODISCARD const struct ml_result *ml_reconcile_ran(struct ml_reconcile *reconcile,
                                                      struct ml_result *result);
/* The write was answered. NULL: another one has begun; else the reconcile has ended, as above. */
ML_NODISCARD const struct ml_result *
ml_reconcile_written(struct ml_reconcile *reconcile, struct ml_str body, const struct ml_err *err);

/* As ml_script_writes; the write of the status counts. */
bool ml_reconcile_writes(const struct ml_reconcile *reconcile);
/* After the end: logs a failure, if there was one and the failures in the record of the key say
 * that it has to be logged again; or that it is over, which the object is told as well if it was
 * told of the failure. `retry_ns`: until the next try; -1: not by itself. */
void ml_reconcile_log_failure(struct ml_reconcile *reconcile, struct ml_keys *keys,
                              int64_t retry_ns);
/* Cancels what is under way. NULL is fine. */
void ml_reconcile_free(struct ml_reconcile *reconcile);

/* The finalizer of a controller, "moonloop.dev/NAME", on the objects that it reconciles. An object
 * that it cleans up after gets it before anything is written on its behalf: before the first write
 * of the script by script/finalizer.c, before a status here. An object keeps it until finalize
 * returned nothing, or its controller has no finalize any more (docs/decisions/0017).
 */
enum ml_finalizer {
    ML_FINALIZER_NONE,
    ML_FINALIZER_OWN,
    ML_FINALIZER_FORMER, /* one of a name that the controller had, with its own or without. These
                            are taken off whenever the finalizer is written */
};

/* The one that the object carries. */
enum ml_finalizer ml_finalizer_of(const struct ml_revision *revision,
                                  const struct ml_object *object);

/* Reports a problem of an object to its author: an Event of type Warning on the object, from the
 * controller of that name. `reason` in CamelCase; `note` is cut as ml_event says. */
void ml_object_warning(struct ml_services *services, const char *controller,
                       const struct ml_kind *kind, const struct ml_object *object,
                       const char *reason, const char *note);
