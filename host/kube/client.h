/* L3 kube. The verbs. One request, one answer, parsed as far as every caller needs: a non-2xx
 * answer becomes a `struct ml_err` by its Status (reason before code), with Retry-After.
 *
 * Every write leaves through one function that first asks the fence: so leases, dry-run and
 * budgets are one check. Reads (GET) are tried again on a lost connection; writes never, their
 * outcome is unknown: ML_ENETWORK or ML_ETIMEOUT tells the caller to read before deciding.
 *
 * Load is bounded: a limited number of requests is in flight, and 1000 wait for a place (one more
 * is refused with ML_EUNAVAILABLE and without an http code). After a 429 nothing is sent for as
 * long as the server asked, a second at least and a minute at most. */
#pragma once

#include "base/budget.h"
#include "base/list.h"
#include "base/log.h"
#include "base/metrics.h"
#include "base/random.h"
#include "kube/kind.h"
#include "kube/transport.h"

struct ml_client;
struct ml_client_call;

struct ml_client_opts {
    struct ml_loop *loop;
    struct ml_transport *transport; /* borrowed */
    struct ml_metrics *metrics;     /* rest_client_requests_total and friends */
    struct ml_random *random;
    struct ml_log *log;   /* Warning headers, each text once; and pauses */
    size_t in_flight_max; /* further requests wait; 0: 100, what one HTTP/2 connection carries at
                             once; streams do not count */
    bool exempt;          /* for leases: a 429 is returned at once and pauses nothing */
    /* Another client of the same server, whose waiters hear of answers here, too. It must outlive
     * all calls of this one; NULL: none. */
    struct ml_client *same_server;
};

struct ml_client *ml_client_new(const struct ml_client_opts *opts);
void ml_client_free(struct ml_client *client); /* every call must be over or canceled */

/* Asked before each write with the request as it would go. 0 lets it pass; otherwise it fails
 * with that error and nothing leaves. NULL: no fence. */
typedef int ml_client_fence(void *context, const char *method, const char *path,
                            struct ml_err *err);
void ml_client_set_fence(struct ml_client *client, ml_client_fence *fence, void *context);

enum ml_verb {
    ML_VERB_GET,
    ML_VERB_CREATE,      /* POST to the collection */
    ML_VERB_UPDATE,      /* PUT */
    ML_VERB_PATCH_MERGE, /* application/merge-patch+json */
    ML_VERB_APPLY,       /* server-side apply; field_manager required */
    ML_VERB_DELETE,
};

struct ml_client_request {
    enum ml_verb verb;
    const struct ml_kind *kind; /* or NULL with `path` */
    struct ml_str ns, name, subresource;
    const char *path; /* a raw path instead of a kind: discovery, /version; GET only */
    const char *accept;
    struct ml_str body;        /* JSON; copied */
    const char *field_manager; /* for writes; NULL: the User-Agent's default */
    bool force;                /* apply: take over fields of others */
    const char *flow; /* the controller that sends: flows take turns; copied; NULL: the host */
    bool yields; /* waits behind all others: Events about work that is done must not delay work that
                    is due */
    struct ml_budget *budget; /* charged for request and answer as long as the call lives; what does
                                 not fit is ML_ELIMIT. Must outlive the call. NULL: nobody is
                                 charged. An answer has at most 32 MiB */
    const char *uid, *resource_version; /* delete: preconditions, or NULL */
    int64_t timeout_ms; /* of each attempt, as a whole; 0: what the API server gives a request */
};

/* `body` is the answer's, whole, valid during the call; `err` NULL on 2xx. A 2xx body that is
 * a Status with status Failure counts as that error. */
typedef void ml_client_done(void *context, struct ml_str body, const struct ml_err *err);

/* Callbacks come later from the loop, never inside this call. The call is gone when done returns.
 */
struct ml_client_call *ml_client_send(struct ml_client *client,
                                      const struct ml_client_request *request, ml_client_done *done,
                                      void *context);
void ml_client_cancel(struct ml_client_call *call); /* done comes no more */

/* A list or watch: GET of `path` with the body streamed to `data` as it comes. A non-2xx
 * answer never reaches data: done gets its error. `err` NULL: regular end. */
struct ml_client_stream {
    void (*open)(void *context); /* the answer is a 200; may be NULL */
    int (*data)(void *context, struct ml_str piece, struct ml_err *err);
    void (*done)(void *context, const struct ml_err *err);
    const char *accept; /* NULL: application/json */
};

struct ml_client_call *ml_client_stream(struct ml_client *client, const char *path,
                                        const struct ml_http_deadlines *deadlines,
                                        const struct ml_client_stream *handler, void *context);

/* Did the server give no answer, or a proxy one in its place (502 to 504)? Then it may be away, and
 * whoever tries again has a reason to wait with ml_client_await. False where the server said when
 * to come back. */
bool ml_client_unanswered(const struct ml_err *err);

/* Somebody who backs off because the API server may be away. The backoff may end early: as soon as
 * any call of this client, or of one that names it as same_server, is answered with anything but a
 * 5xx. Until then every second or two one of those that probe is told to try. Lives in its user's
 * struct; zeros but for the last three at first. */
struct ml_client_await {
    struct ml_list node; /* private */
    /* Called once; the wait is over then. `answered`: the server is back, and others return as
     * well, so add a delay, one that grows while such tries fail: some paths may be away for good.
     * Otherwise try now. Runs inside another call's answer: must not send. */
    void (*again)(void *context, bool answered);
    void *context;
    bool probes;
};

void ml_client_await(struct ml_client *client, struct ml_client_await *await);
void ml_client_await_stop(struct ml_client_await *await); /* safe when it does not wait */

/* The error that a Status object stands for; `http` is the answer's code. For ERROR events of
 * a watch as well. Always fills err with a non-zero kind. */
int ml_status_error(struct ml_str status_json, int http, struct ml_err *err);
