/* L4 state. Leases (coordination.k8s.io/v1), for leader election and for members of a shard group.
 */
#pragma once

#include "base/repeat.h"
#include "codec/json_stream.h"
#include "kube/client.h"
#include "net/loop.h"

/* The three times of a Lease. */
struct ml_lease_times {
    int64_t lease_ns; /* how long others wait for a holder that does not renew; whole seconds */
    int64_t renew_ns; /* how long the holder may go without a renewal */
    int64_t retry_ns; /* between two attempts */
};

#define ML_LEASE_TIMES_DEFAULT                                                                     \
    ((struct ml_lease_times){15 * ML_NS_PER_S, 10 * ML_NS_PER_S, 2 * ML_NS_PER_S})

/* client-go's NewLeaderElector: lease > renew > 1.2 * retry. ML_EINVALID names the wrong flag. */
ML_NODISCARD int ml_lease_times_check(const struct ml_lease_times *times, struct ml_err *err);

#define LEASE_RETRY_JITTER 1.2 /* client-go, leaderelection.JitterFactor */

/* The means by which a replica holds a Lease, alone or in a shard group. All borrowed for life. */
struct ml_lease_opts {
    struct ml_client *client; /* with its own connection, so that other requests cannot delay a
                                 renewal, and without a fence */
    struct ml_loop *loop;
    struct ml_random *random;
    struct ml_log *log;
    struct ml_metrics *metrics;
    const char *ns, *name; /* of the Lease, or of the group */
    const char *identity;  /* unique for each start of a process */
    struct ml_lease_times times;
};

/* ---- the text of a Lease ---- */

/* The contents of a Lease. Others wrote it: an invalid field counts as absent. */
struct lease_record {
    char *metadata;      /* raw JSON, to be sent back unchanged; NULL: nothing was read yet */
    char *spec;          /* raw JSON, to detect changes; "" when there is none */
    char *holder;        /* "" when nobody holds it */
    char *acquired;      /* the text of acquireTime, or "" */
    int64_t duration_ns; /* 0 when it is absent or invalid */
    int64_t transitions;
};

/* Replaces the contents of `record`. ML_EINVALID, with `record` untouched, when the text is not an
 * object with metadata. Start with {0}. */
ML_NODISCARD int lease_record_read(struct lease_record *record, struct ml_str object,
                                   struct ml_err *err);
void lease_record_fini(struct lease_record *record);

/* The string at UNDER.FIELD of a Lease, or "". The caller frees it. */
char *lease_text_of(struct ml_str object, const char *under, const char *field);

/* The spec to be written. */
struct lease_claim {
    const char *holder; /* "" for a Lease that is given back */
    int64_t duration_s;
    const char *acquired; /* MicroTime; "": when it is renewed */
    int64_t renewed_ns;   /* wall clock */
    int64_t transitions;
};

/* The JSON of a Lease with `metadata` (raw). The caller frees it. */
char *lease_claim_json(const struct lease_claim *claim, struct ml_str metadata);

/* ---- holding a Lease ---- */

struct lease_hold_handler {
    const char *logger;  /* who speaks in the log */
    const char *subject; /* of the requests, for messages: "the lease" */
    void (*attempt)(void *context);
    /* The request got no answer in time and was canceled. */
    void (*stuck)(void *context, const struct ml_err *err);
    void (*deadline)(void *context); /* `until_ns` has come */
    /* A Lease of the watch has changed; an empty one: a Lease was deleted. */
    void (*watched)(void *context, struct ml_str lease);
};

/* The common part of a candidate for a Lease and of a member of a shard group: attempts, each with
 * one request at a time; how long the last renewal counts; a watch of the Leases, which only gives
 * hints (a replica that may not watch, or whose stream broke, is slower, not wrong); and the end.
 */
struct lease_hold {
    struct ml_lease_opts opts;
    const struct lease_hold_handler *handler;
    void *context;
    struct ml_clock *clock;

    /* The attempt under way. */
    struct ml_client_call *call; /* NULL: nothing is asked */
    ml_client_done *done;
    int64_t begun_ns;
    int64_t sent_ns; /* the write */
    struct ml_timer stuck;
    struct ml_timer next;  /* attempt */
    struct ml_err trouble; /* of the last attempt; cleared by a success */
    struct ml_repeat repeat;

    int64_t until_ns; /* how long the last renewal that was granted counts */
    struct ml_timer deadline;

    struct ml_client_call *watch; /* NULL: not watching */
    struct ml_json_lines lines;
    char *watch_path;
    int64_t watch_again_ns; /* it was forbidden, and is not tried again before, monotonic */

    void (*released)(void *context);
    void *released_context;
    struct ml_task released_task;
    struct ml_timer patience;
};

/* Watches the Leases in opts->ns that `selector` selects; `parameter` is "fieldSelector" or
 * "labelSelector". All calls of the handler come from the loop. */
void lease_hold_init(struct lease_hold *hold, const struct ml_lease_opts *opts,
                     const struct lease_hold_handler *handler, void *context, const char *parameter,
                     const char *selector);
void lease_hold_fini(struct lease_hold *hold);
void lease_hold_stop(struct lease_hold *hold); /* nothing comes any more but `released` */

/* How long a request about a Lease may take. `stuck` comes an eighth later: that ends what the
 * client tries again by itself. */
int64_t lease_timeout_ns(const struct ml_lease_times *times);
/* Sends a request of an attempt, with that limit; `done` gets the handler's context. */
void lease_hold_send(struct lease_hold *hold, struct ml_client_request *request,
                     ml_client_done *done);
/* Logs why an attempt failed, unless it has just said so. */
void lease_hold_warn(struct lease_hold *hold, const char *message, const struct ml_err *err);
void lease_hold_succeeded(struct lease_hold *hold); /* no trouble any more */

/* The renewal that was sent last counts until then. */
int64_t lease_hold_granted_until(const struct lease_hold *hold);
void lease_hold_renew(struct lease_hold *hold); /* it was granted: `until_ns` moves there */
/* Why the Lease was not renewed in time: because of the last trouble, or for want of an answer. */
void lease_hold_expired(const struct lease_hold *hold, struct ml_err *out);

void lease_hold_watch(struct lease_hold *hold); /* nothing when it watches already */
void lease_hold_end_watch(struct lease_hold *hold);

/* Stops, and calls `done` once, later from the loop: after lease_hold_released, or after
 * `patience_ns`. */
void lease_hold_release(struct lease_hold *hold, int64_t patience_ns, void (*done)(void *context),
                        void *context);
void lease_hold_released(struct lease_hold *hold);

static inline int64_t lease_hold_now(const struct lease_hold *hold)
{
    return ml_clock_monotonic(hold->clock);
}
