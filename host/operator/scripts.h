/* L6 operator. All scripts of a host: gets sets of files from its sources, loads new versions
 * beside the running ones, offers the good ones to their controllers and refuses the others. A
 * missing or broken file never stops a running script. */
#pragma once

#include "operator/crash_marker.h"
#include "operator/source.h"
#include "operator/webhook_review.h"

struct ml_scripts;

/* `limits` is copied. `marker` (borrowed; NULL: none is kept) shows which version runs; the
 * versions that it has in quarantine are refused. */
struct ml_scripts *ml_scripts_new(struct ml_services *services,
                                  const struct ml_script_limits *limits,
                                  struct ml_crash_marker *marker);
void ml_scripts_free(struct ml_scripts *scripts); /* cancels running reconciles; NULL is fine */

/* Takes ownership of the source. */
void ml_scripts_add_source(struct ml_scripts *scripts, struct ml_source *source);
void ml_scripts_start(struct ml_scripts *scripts);

/* This process became the leader, or the wall clock was set: reconciles all objects. */
void ml_scripts_resync(struct ml_scripts *scripts);

/* As ml_controller_reshard and ml_controller_hand_over, for all of them. */
void ml_scripts_reshard(struct ml_scripts *scripts);
bool ml_scripts_hand_over(struct ml_scripts *scripts, bool cut);

/* Begins no new reconcile; `done` is called once, from the loop, when the running ones have ended.
 */
void ml_scripts_stop(struct ml_scripts *scripts, void (*done)(void *context), void *context);

/* True when every source has been read and each of its scripts runs. Otherwise appends a line for
 * each that is missing to `why`. */
bool ml_scripts_ready(const struct ml_scripts *scripts, struct ml_buf *why);

/* The scripts of all sources, by how they are: each is in exactly one. */
struct ml_scripts_count {
    size_t live;         /* and sees all of its kinds */
    size_t missing_kind; /* live or not, one of its kinds is not installed */
    size_t refused;      /* there is no good version of it */
    size_t blocked; /* live or not, one of its caches is not kept up to date: a right is missing */
    size_t pending; /* is about to go live */
    bool read;      /* every source has been read */
};

struct ml_scripts_count ml_scripts_count(const struct ml_scripts *scripts);

/* When the next reconcile is due, as ml_workqueue_next; 0 also before the sources have been read.
 */
int64_t ml_scripts_next(const struct ml_scripts *scripts);

/* The version that answers webhooks of the controller of this name. False: there is none. */
bool ml_scripts_webhook(const struct ml_scripts *scripts, struct ml_str name,
                        struct ml_webhook_target *out);
/* Calls `each` for every controller that has webhooks. */
void ml_scripts_webhooks(const struct ml_scripts *scripts,
                         void (*each)(void *context, const struct ml_webhook_target *target),
                         void *context);
/* `changed` is called when a version of a script has gone live: what answers webhooks, and which,
 * may have changed. */
void ml_scripts_on_live(struct ml_scripts *scripts, void (*changed)(void *context), void *context);

/* As ml_controller_fails, of all controllers; and appends a line for each source that was read and
 * has no script. */
bool ml_scripts_fail(const struct ml_scripts *scripts, struct ml_buf *why);
