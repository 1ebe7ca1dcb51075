/* L4 state. Leases (coordination.k8s.io/v1), for leader election and for members of a shard group.
 */
#pragma once

#include "codec/json_stream.h"
#include "kube/client.h"

/* The three times of a Lease. */
struct ml_lease_times {
    int64_t lease_ns; /* how long others wait for a holder that does not renew; whole seconds */
    int64_t renew_ns; /* how long the holder may go without a renewal */
    int64_t retry_ns; /* between two attempts */
};

#define ML_LEASE_TIMES_DEFAULT                                                                     \
    ((struct ml_lease_times){15 * ML_NS_PER_S, 10 * ML_NS_PER_S, 2 * ML_NS_PER_S})

/* client-go's NewLeaderElector: lease > renew > 1.2 * retry. ML_EINVALID says which is wrong, by
 * the names of the flags. */
ML_NODISCARD int ml_lease_times_check(const struct ml_lease_times *times, struct ml_err *err);

#define LEASE_RETRY_JITTER 1.2 /* client-go, leaderelection.JitterFactor */

/* How long a request about a Lease may take. Its sender gives it up an eighth later: that ends what
 * the client tries again by itself. */
int64_t lease_timeout_ns(const struct ml_lease_times *times);
/* Why the Lease was not renewed in time: because of `trouble`, or when it has no kind for want of
 * an answer. */
void lease_not_renewed(const struct ml_lease_times *times, const struct ml_err *trouble,
                       struct ml_err *out);

/* What a replica holds a Lease by, alone or as one of a shard group. Strings are copied, the rest
 * is borrowed. */
struct ml_lease_opts {
    struct ml_client *client; /* on a connection of its own, so that other requests cannot delay a
                                 renewal, and without a fence */
    struct ml_loop *loop;
    struct ml_random *random;
    struct ml_log *log;
    struct ml_metrics *metrics;
    const char *ns, *name; /* of the Lease, or of the group */
    const char *identity;  /* unique for each start of a process */
    struct ml_lease_times times;
};

struct ml_lease_opts lease_opts_copy(const struct ml_lease_opts *opts);
void lease_opts_fini(struct ml_lease_opts *opts);

/* ---- the text of a Lease ---- */

/* What a Lease says. Whatever stands in it was written by others: a field that makes no sense
 * counts as absent. */
struct lease_record {
    char *metadata;      /* raw JSON, to be sent back as it came; NULL: nothing was read yet */
    char *spec;          /* raw JSON, to see that it changed; "" when there is none */
    char *holder;        /* "" when nobody holds it */
    char *acquired;      /* acquireTime as it stands there, or "" */
    int64_t duration_ns; /* 0 when it is absent or makes no sense */
    int64_t transitions;
};

/* Replaces what `record` holds. ML_EINVALID, with `record` untouched, when the text is not an
 * object with metadata. Start with {0}. */
ML_NODISCARD int lease_record_read(struct lease_record *record, struct ml_str object,
                                   struct ml_err *err);
void lease_record_fini(struct lease_record *record);

/* The string at UNDER.FIELD of a Lease, or "". The caller frees it. */
char *lease_text_of(struct ml_str object, const char *under, const char *field);

/* What is to stand in the spec. */
struct lease_claim {
    const char *holder; /* "" for a Lease that is given back */
    int64_t duration_s;
    const char *acquired, *renewed; /* MicroTime */
    int64_t transitions;
};

/* The JSON of a Lease with `metadata` (raw). The caller frees it. */
char *lease_claim_json(const struct lease_claim *claim, struct ml_str metadata);

/* ---- the watch ---- */

/* A watch of Leases that only gives hints: a replica that may not watch, or whose stream broke, is
 * slower, not wrong. */
struct lease_watch {
    struct ml_client *client;
    struct ml_client_call *call; /* NULL: not watching */
    struct ml_json_lines lines;
    char *path;
    bool forbidden; /* the watch was refused; it is not tried again */
    void (*seen)(void *context, struct ml_str lease);
    void *context;
};

/* Watches the Leases in `ns` that `selector` selects; `parameter` is "fieldSelector" or
 * "labelSelector". `seen` is called from the loop with each Lease that changes, and with an empty
 * one when a Lease was deleted. */
void lease_watch_init(struct lease_watch *watch, struct ml_client *client, const char *ns,
                      const char *parameter, const char *selector,
                      void (*seen)(void *context, struct ml_str lease), void *context);
void lease_watch_start(struct lease_watch *watch); /* nothing when it watches already */
void lease_watch_stop(struct lease_watch *watch);
void lease_watch_fini(struct lease_watch *watch);
