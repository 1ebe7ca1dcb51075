/* L6 operator. A controller: one queue of keys, what it expects of the caches, and the version of
 * its script that works on them. A new version is offered, made ready aside, and takes over between
 * two reconciles; what the old one has under way it finishes on its own state. */
#pragma once

#include "operator/revision.h"

struct ml_controller;

struct ml_controller_handler {
    /* A version that was offered works from now on; `first`: nothing did before. */
    void (*live)(void *context, struct ml_controller *controller, bool first);
    /* The script runs into its limits again and again and is held back; or it is no longer. May be
     * NULL. */
    void (*circuit)(void *context, struct ml_controller *controller, bool open, const char *note);
    /* All work is done, after ml_controller_stop. Once. */
    void (*stopped)(void *context, struct ml_controller *controller);
};

/* `name` is copied; it is the label of the metrics. */
struct ml_controller *ml_controller_new(struct ml_cluster *cluster, const char *name,
                                        const struct ml_controller_handler *handler, void *context);
/* Cancels what is under way. NULL is fine. */
void ml_controller_free(struct ml_controller *controller);

/* Takes over the reference to `script`. An earlier offer that is not live yet is dropped. */
void ml_controller_offer(struct ml_controller *controller, struct ml_script *script);

/* The cluster stands by no longer: everything is looked at, as after a start. */
void ml_controller_resync(struct ml_controller *controller);

/* Inside `changed` of the cluster's shard: begins with the keys that it gained. */
void ml_controller_reshard(struct ml_controller *controller);
/* True when nothing is under way on keys that the shard does not act on. `cut`: what is, and writes
 * nothing at this moment, ends here. */
bool ml_controller_hand_over(struct ml_controller *controller, bool cut);

/* Takes no more work; handler->stopped comes later from the loop, when what is under way has ended.
 */
void ml_controller_stop(struct ml_controller *controller);

/* When it works next by itself, as ml_workqueue_next; 0 while a version is on its way. */
int64_t ml_controller_next(const struct ml_controller *controller);

const char *ml_controller_name(const struct ml_controller *controller);
/* The script that works now, or NULL; and the one offered and not live yet, or NULL. */
struct ml_script *ml_controller_current(const struct ml_controller *controller);
struct ml_script *ml_controller_offered(const struct ml_controller *controller);

/* Of a controller that works, as ml_revision_sees. */
bool ml_controller_sees(const struct ml_controller *controller, struct ml_buf *why);
