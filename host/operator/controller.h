/* L6 operator. A controller: a queue of keys, the expectations, and the current revision of its
 * script. A new revision is offered, synced while the old one works, and takes over between two
 * reconciles; running reconciles of the old revision end in its own Lua state.
 *
 * It may take over on trial, under a brake (guard.h). It works for all objects at once; or, in the
 * mode `canary`, for one, then for 1 %, 10 % and all, by a hash of their keys, and the current one
 * for the others. Each step is over when each of its objects was reconciled, and nothing stopped
 * the revision for as long as the limits say. A key is one revision's at any time. */
#pragma once

#include "operator/guard.h"
#include "operator/revision.h"
#include "operator/webhook_review.h"

struct ml_controller;

struct ml_controller_handler {
    /* The offered revision can take over: it does when ml_controller_promote is called, and never
     * after ml_controller_withdraw. */
    void (*ready)(void *context, struct ml_controller *controller);
    /* The offered revision is live from now on; `first`: there was none before. */
    void (*live)(void *context, struct ml_controller *controller, bool first);
    /* The revision that is live is no longer on trial, or never was. */
    void (*settled)(void *context, struct ml_controller *controller);
    /* The brake has stopped a revision, which is dropped. The current one works for all objects
     * again; but if the stopped one is that, nothing runs until another takes over. */
    void (*braked)(void *context, struct ml_controller *controller, const char *revision,
                   const struct ml_err *why);
    /* The script runs into its limits again and again and is held back; or it is no longer. */
    void (*circuit)(void *context, struct ml_controller *controller, bool open, const char *note);
    /* After ml_controller_remove: no object in the cache carries its finalizer any more, after
     * `count` were taken off here. Once; what is left is to stop it. */
    void (*removed)(void *context, struct ml_controller *controller, size_t count);
    /* All work is done, after ml_controller_stop. Once. */
    void (*stopped)(void *context, struct ml_controller *controller);
};

/* `name` is copied; it is the label of the metrics. */
struct ml_controller *ml_controller_new(struct ml_services *services, const char *name,
                                        const struct ml_controller_handler *handler, void *context);
/* Cancels running reconciles. NULL is fine. */
void ml_controller_free(struct ml_controller *controller);

/* Takes over the reference to `script`. An earlier offer that is not live yet is dropped; if it was
 * on trial, the current revision works for its objects again. */
void ml_controller_offer(struct ml_controller *controller, struct ml_script *script);

/* The offered revision, which is ready, takes over: in one step of the loop, so between any two
 * reconciles. `brake`: on trial, as of ml_brake_of; NULL: for good. No effect when the controller
 * is being stopped. */
void ml_controller_promote(struct ml_controller *controller, const struct ml_brake *brake);
/* Drops the offer, if there is one, as ml_controller_offer does. */
void ml_controller_withdraw(struct ml_controller *controller);
/* The revision on trial, if there is one, is good: it works for all objects, for good. */
void ml_controller_settle(struct ml_controller *controller);
/* The revision on trial or, without one, the current one was stopped elsewhere: as if the brake had
 * done it here, but `braked` is not called. */
void ml_controller_stop_revision(struct ml_controller *controller);
/* The revision on trial; NULL: none is. `out_tried`: the objects that it works for. */
const struct ml_revision *ml_controller_on_trial(const struct ml_controller *controller,
                                                 size_t *out_tried);

/* Begins no run any more, or again; running ones end. Nothing is written meanwhile, finalizers
 * included. False: it is so already. */
bool ml_controller_pause(struct ml_controller *controller, bool paused);

/* This replica stands by no longer, or somebody wants all objects to be tried again: enqueues them,
 * as after a start. All waits end: pauses, backoffs and times that the script asked for. */
void ml_controller_resync(struct ml_controller *controller);

/* Call it inside `changed` of the services' shard: enqueues the keys that this replica gained. */
void ml_controller_reshard(struct ml_controller *controller);
/* True when no reconcile runs for a key that the shard does not act on. `cut`: ends such
 * reconciles, except those with a write under way. */
bool ml_controller_hand_over(struct ml_controller *controller, bool cut);

/* For good: reconciles nothing any more, and takes its finalizer off all objects, as soon as a
 * revision is live; then handler->removed. Cannot be taken back; no effect the second time. */
void ml_controller_remove(struct ml_controller *controller);
/* It is being removed, and that is not done. */
bool ml_controller_is_removed(const struct ml_controller *controller);
/* The kind and the number of the objects that this replica acts on, for messages; 0 before it is
 * live. */
size_t ml_controller_objects(const struct ml_controller *controller, const char **out_kind);

/* Begins no more reconciles; no effect the second time; handler->stopped comes later from the loop,
 * when running ones have ended. */
void ml_controller_stop(struct ml_controller *controller);

/* When it works next by itself, as ml_workqueue_next; 0 while a revision is being prepared. A key
 * that has failed for about twenty seconds does not count: it will most likely fail again. */
int64_t ml_controller_next(const struct ml_controller *controller);
/* Appends a line if objects failed when they were reconciled last, and are to be tried again: which
 * one, and why. False: there is none. */
bool ml_controller_fails(const struct ml_controller *controller, struct ml_buf *why);

const char *ml_controller_name(const struct ml_controller *controller);
/* The live revision, or NULL, as when it was stopped; and the one that was offered and is not live
 * yet, or NULL. */
const struct ml_revision *ml_controller_current(const struct ml_controller *controller);
const struct ml_revision *ml_controller_offered(const struct ml_controller *controller);

/* The version that answers webhooks: the live one, before the first the one that is to be. False:
 * there is none. */
bool ml_controller_webhook(struct ml_controller *controller, struct ml_webhook_target *out);
