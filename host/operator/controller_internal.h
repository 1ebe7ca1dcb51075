/* L6 operator. A controller's struct, for controller.c, for inspect.c, which reads it, and for the
 * test that counts what is left of a key. */
#pragma once

#include "operator/circuit.h"
#include "operator/controller.h"
#include "operator/enqueue_filter.h"
#include "operator/fights.h"
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
    struct ml_metric *paused, *objects_paused;
    struct ml_metric *trial_objects;
    struct ml_metric *keys_owned; /* of a member of a shard group; else NULL */
};

/* A revision takes over on trial: `offered` in the steps of a canary, then `current`. */
struct controller_trial {
    struct ml_revision *revision; /* borrowed; NULL: none is on trial */
    struct ml_brake brake;
    double owned_each; /* objects that one object owns */
    unsigned number;   /* one more for each trial */
    unsigned step;     /* of a canary: that comes next */
    uint64_t reach;    /* it works for keys whose place is at most this */
    int64_t calm_ns;   /* since when each of these was reconciled; 0: one was not yet */
    bool is_counted;   /* its objects are */
    bool has_before;   /* another revision was live in this process before */
    struct ml_timer check;
    struct ml_err *why; /* the brake has stopped it; else NULL */
    struct ml_task stop;
};

struct ml_controller {
    struct ml_services *services;
    char *name;
    const struct ml_controller_handler *handler;
    void *context;
    struct ml_keys keys; /* all that is known about each key */
    struct ml_workqueue *queue;
    struct ml_task pump; /* begins keys; the queue defers it when one is ready */
    struct ml_expectations *expectations;
    struct ml_cpu_account cpu_account; /* of the CPU time that its script takes */
    struct ml_enqueue_filter *filter;
    struct ml_fights *fights;
    struct ml_read_sets *read_sets;
    struct ml_repeats index_failures; /* by message, for the log */
    char *failed_key, *failed_why;    /* the last failure; NULL: there was none */
    struct ml_client_await await;     /* by keys that back off because the server did not answer */
    struct ml_circuit circuit;
    struct ml_timer probe;       /* while the circuit is open: until the next probe */
    struct ml_revision *current; /* NULL before the first is live */
    struct ml_revision *offered; /* being prepared, or in the steps of a canary; NULL: none is */
    struct controller_trial trial;
    size_t runs, deletes; /* of the current revision, since it is live */
    bool reads_off; /* the log says already that the runs of this revision have no read sets */
    struct ml_list works;
    int64_t in_flight;
    int64_t low_in_flight; /* of those, the ones of low priority */
    struct {
        bool on;    /* it is removed: nothing is reconciled any more, finalizers go */
        bool swept; /* all objects that carry one are enqueued */
        size_t released;
        struct ml_timer check;
    } removal;
    bool paused; /* begins no run */
    bool stopping;
    bool ended; /* `stopped` was called, or is about to be: once */
    struct ml_task stopped_task;
    struct controller_metrics metrics;
    struct ml_custom_metrics *custom; /* of its script */
    struct ml_metrics_collector collector;
};

/* The revision that works for the key. NULL before one is live. */
struct ml_revision *ml_controller_revision_of(const struct ml_controller *controller,
                                              struct ml_str key);
