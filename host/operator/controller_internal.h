/* L6 operator. Inside of a controller: controller.c has its life and the versions of its script,
 * controller_work.c the keys under way, controller_shard.c which of them are this replica's.
 * Private to these. */
#pragma once

#include "operator/circuit.h"
#include "operator/controller.h"
#include "operator/controller_metrics.h"
#include "operator/reconcile.h"
#include "operator/stale_keys.h"
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
    struct ml_stale_keys stale_keys;
    struct ml_circuit circuit;
    struct ml_timer probe;       /* while the circuit is open: until an object may try */
    struct ml_revision *current; /* NULL before the first is live */
    struct ml_revision *offered; /* on its way; NULL when there is none */
    struct ml_list works;
    int64_t in_flight;
    int64_t low_in_flight; /* of those, the ones of low priority */
    bool stopping;
    struct ml_task stopped_task;
    struct ml_controller_metrics metrics;
    struct ml_metric *keys_owned; /* of a member of a shard group */
    struct ml_metrics_collector owned_collector;
};

/* controller_work.c */

/* Hands out keys until the limits are reached. The queue's `ready`. */
void controller_pump(void *controller);
/* Ends all that is under way where it stands. */
void controller_cancel_work(struct ml_controller *self);
/* Of a controller that is to stop, once nothing is under way. */
void controller_tell_when_stopped(struct ml_controller *self);

/* controller_enqueue.c: what the controller hears of its filter, and of its expectations for them.
 */
extern const struct ml_enqueue_filter_handler controller_enqueue_handler,
    controller_enqueue_handler_of_virtual_time;
void controller_on_write(void *controller, struct ml_str key, const struct ml_informer *informer,
                         uint64_t rv, bool shown);

/* controller_circuit.c */
void controller_circuit_init(struct ml_controller *self);
void controller_circuit_fini(struct ml_controller *self);
/* A limit ended code of the script, that worked on `object`; NULL: on a change. */
void controller_limit_hit(struct ml_controller *self, struct ml_object *object,
                          const struct ml_err *err);
/* An object was edited, which may be the cure. */
void controller_circuit_hurry(struct ml_controller *self);
/* The script did its work, or there is a new one. */
void controller_circuit_close(struct ml_controller *self);
bool controller_circuit_lets_begin(const struct ml_controller *self);

/* controller_shard.c. Is the key for this replica to look at, now? */
bool controller_acts(const struct ml_controller *self, struct ml_str key);
void controller_shard_init(struct ml_controller *self);
void controller_shard_fini(struct ml_controller *self);
