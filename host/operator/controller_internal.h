/* L6 operator. What the two halves of a controller share: controller.c has its life, the versions
 * of its script, its circuit and its share of the keys; controller_work.c has the keys from the
 * queue to their end. Private to these. */
#pragma once

#include "operator/circuit.h"
#include "operator/controller.h"
#include "operator/controller_metrics.h"
#include "operator/read_sets.h"
#include "operator/reconcile.h"
#include "state/workqueue.h"

struct ml_controller {
    struct ml_cluster *cluster;
    char *name;
    const struct ml_controller_handler *handler;
    void *context;
    struct ml_workqueue *queue;
    struct ml_expectations *expectations;
    struct ml_payer payer; /* of the CPU time that its script takes */
    struct ml_enqueue_filter *filter;
    struct ml_read_sets *read_sets;
    struct ml_repeats failures;   /* of keys, for the log */
    struct ml_client_await await; /* by keys that back off because the server did not answer */
    struct ml_map causes;         /* key -> why it waits in the queue; at log level debug only */
    struct ml_circuit circuit;
    struct ml_timer probe;       /* while the circuit is open: until an object may try */
    struct ml_revision *current; /* NULL before the first is live */
    struct ml_revision *offered; /* on its way; NULL when there is none */
    int64_t offers;              /* revisions so far */
    int64_t reads_off;           /* the revision of which the log has that it has no read sets */
    struct ml_list works;
    int64_t in_flight;
    int64_t low_in_flight; /* of those, the ones of low priority */
    bool stopping;
    struct ml_task stopped_task;
    struct ml_controller_metrics metrics;
    struct ml_metric *keys_owned; /* of a member of a shard group */
    struct ml_metrics_collector owned_collector;
};

/* controller.c */

/* Is the key for this replica to reconcile, now? */
bool controller_acts(const struct ml_controller *self, struct ml_str key);
/* A limit ended code of the script, that worked on `object`; NULL: on a change. */
void controller_limit_hit(struct ml_controller *self, struct ml_object *object,
                          const struct ml_err *err);
/* The script did its work, or there is a new one. */
void controller_circuit_close(struct ml_controller *self);

/* controller_work.c */

/* The enqueue filter, which gives its keys to the queue. After the expectations. */
void controller_make_filter(struct ml_controller *self);
/* Says once of each revision in the log when its runs have no read sets any more. */
void controller_report_reads_off(struct ml_controller *self);
/* What the debug line of the key's next reconcile says woke it: "start", "requeue", "retry", or the
 * kind of the object that changed, and its key. The last word counts. */
void controller_note_cause(struct ml_controller *self, struct ml_str key, const char *what,
                           struct ml_str object_key);
/* The key's cause, for the caller to free; NULL: none is known. */
char *controller_take_cause(struct ml_controller *self, struct ml_str key);
void controller_drop_causes(struct ml_controller *self);
/* Begins keys until the limits are reached. The queue's `ready`. */
void controller_pump(void *controller);
/* Ends all that is under way where it stands. */
void controller_cancel_work(struct ml_controller *self);
/* Of a controller that is to stop, once nothing is under way. */
void controller_end_when_idle(struct ml_controller *self);
