/* L6 operator. A controller's struct, for the three files that it is made of. Each calls only files
 * further down this list, and others call controller.h alone:
 *   controller.c        its life, the revisions of its script, its removal
 *   controller_work.c   the way of a key from the queue to the end of its reconcile; the circuit
 *   controller_fight.c  which keys are slowed, and because of whom */
#pragma once

#include "operator/circuit.h"
#include "operator/controller.h"
#include "operator/read_sets.h"
#include "operator/reconcile.h"
#include "state/workqueue.h"

/* Its metrics, under controller-runtime's names, so that dashboards carry over. */
struct controller_metrics {
    struct ml_metric *success, *error, *requeue_after; /* controller_runtime_reconcile_total */
    struct ml_metric *errors, *terminal_errors;
    struct ml_metric *seconds;
    struct ml_metric *active, *workers_max;
    struct ml_metric *slowed;
    struct ml_metric *skipped, *read_set_bytes;
    struct ml_metric *circuit_open;
    struct ml_metric *keys;
    struct ml_metric *keys_owned; /* of a member of a shard group; else NULL */
};

struct ml_controller {
    struct ml_services *services;
    char *name;
    const struct ml_controller_handler *handler;
    void *context;
    struct ml_keys keys; /* all that is known about each key */
    struct ml_workqueue *queue;
    struct ml_expectations *expectations;
    struct ml_list lookups; /* of those that fight with this controller, see controller_fight.c */
    struct ml_buf author;   /* of a change, in words */
    struct ml_payer payer;  /* of the CPU time that its script takes */
    struct ml_enqueue_filter *filter;
    struct ml_read_sets *read_sets;
    struct ml_repeats index_failures; /* by message, for the log */
    char *failed_key, *failed_why;    /* the last failure; NULL: there was none */
    struct ml_client_await await;     /* by keys that back off because the server did not answer */
    struct ml_circuit circuit;
    struct ml_timer probe;       /* while the circuit is open: until the next probe */
    struct ml_revision *current; /* NULL before the first is live */
    struct ml_revision *offered; /* being prepared; NULL when there is none */
    int64_t offers;              /* revisions so far */
    int64_t reads_off; /* the revision for which the log already says that it has no read sets */
    struct ml_list works;
    int64_t in_flight;
    int64_t low_in_flight; /* of those, the ones of low priority */
    struct {
        bool on;    /* it is removed: nothing is reconciled any more, finalizers go */
        bool swept; /* all objects that carry one are enqueued */
        size_t released;
        struct ml_timer check;
    } removal;
    bool stopping;
    struct ml_task stopped_task;
    struct controller_metrics metrics;
    struct ml_custom_metrics *custom; /* of its script */
    struct ml_metrics_collector collector;
};

/* Log fields of a line about the controller, or about this key. */
#define CONTROLLER_FIELDS(self)                                                                    \
    ML_S("controller", (self)->name),                                                              \
        ML_S("controllerKind", ml_revision_kind((self)->current)->kind)
#define CONTROLLER_KEY_FIELDS(self, key)                                                           \
    ML_OBJECT_FIELDS((self)->name, ml_revision_kind((self)->current)->kind, key)

/* The cached object of a key; NULL when there is none. */
static inline struct ml_object *controller_object(const struct ml_controller *self,
                                                  struct ml_str key)
{
    return ml_store_get(ml_revision_store(self->current), key);
}

/* controller_work.c */

/* Is the key for this replica to reconcile, now? */
bool controller_acts(const struct ml_controller *self, struct ml_str key);
/* Enqueues it at low priority, behind edits. */
void controller_enqueue_at_start(struct ml_controller *self, struct ml_str key);
/* Sets the cause in the debug line of the key's next reconcile: "start", "requeue", "retry", or the
 * kind of the object that changed, and its key. The last call counts. */
void controller_note_cause(struct ml_controller *self, struct ml_str key, const char *what,
                           struct ml_str object_key);
/* Another replica reconciles the key from now on. Everything about it goes, except expectations: if
 * the key comes back, its next run still waits until the cache shows the writes of the last one. */
void controller_release_key(struct ml_controller *self, struct ml_str key);
/* The object of the key is gone: everything about the key goes, and so does its record; a run under
 * way keeps what it needs until its end. */
void controller_forget_key(struct ml_controller *self, struct ml_str key);
/* A limit ended the script's reconcile of `object`; NULL: a function of watches or when. */
void controller_limit_hit(struct ml_controller *self, struct ml_object *object,
                          const struct ml_err *err);
/* Somebody edited an object: an open circuit tries it soon. */
void controller_hurry_probe(struct ml_controller *self);
/* The script did its work, or there is a new one. */
void controller_circuit_close(struct ml_controller *self);
/* The enqueue filter. After the expectations. */
void controller_make_filter(struct ml_controller *self);
/* Does as the filter decided: enqueues the key, reports that it is slowed. Frees the verdict. */
void controller_follow_verdict(struct ml_controller *self, struct ml_str key,
                               struct ml_verdict *verdict);
/* Logs, once for each revision, that its runs have no read sets any more. */
void controller_report_reads_off(struct ml_controller *self);
/* Begins keys until the limits are reached. The queue's `ready`. */
void controller_pump(void *controller);
/* Cancels all running reconciles. */
void controller_cancel_work(struct ml_controller *self);
/* Ends a controller that should stop, when no reconcile runs any more. */
void controller_end_when_idle(struct ml_controller *self);

/* controller_fight.c */

/* The author of the change, for the enqueue filter. */
const char *controller_author_of(void *controller, struct ml_str key,
                                 const struct ml_change *change, bool *own);
/* Reports that a key is slowed: in the log, by an Event, and by a metric. */
void controller_key_slowed(struct ml_controller *self, struct ml_str key,
                           const struct ml_slowed *slowed);
void controller_key_hot(struct ml_controller *self, struct ml_str key);
/* Ends the look-ups of managers for this key, or all of them. */
void controller_forget_lookups(struct ml_controller *self, struct ml_str key);
void controller_cancel_lookups(struct ml_controller *self);
