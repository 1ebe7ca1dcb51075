/* L3 kube. The verbs. One request, one answer, parsed as far as every caller needs: the Status of a
 * non-2xx answer (reason before code) becomes a `struct ml_err`, with Retry-After.
 *
 * One function sends every write, and first asks the fence: so leases, dry-run and budgets are one
 * check. A read (GET) is tried again after a lost connection. A write never is, because its result
 * is unknown: after ML_ENETWORK or ML_ETIMEOUT the caller must read before it decides.
 *
 * Load is bounded: a limited number of requests is in flight, and 1000 wait for a place (one more
 * is refused with ML_EUNAVAILABLE and without an http code). After a 429 of a server that is
 * overloaded nothing is sent for as long as it asked, at least a second and at most a minute. A 429
 * that is a Status object is about its request alone ("storage is (re)initializing", while a CRD is
 * edited): only that request waits. */
#pragma once

#include "base/budget.h"
#include "base/list.h"
#include "base/log.h"
#include "base/metrics.h"
#include "base/random.h"
#include "kube/kind.h"
#include "kube/server_clock.h"
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
    /* Another client of the same server: answers to this client also end the backoff of its waiters
     * (ml_client_await) and tell it the server's time. It must outlive all calls of this one;
     * NULL: none. */
    struct ml_client *same_server;
};

struct ml_client *ml_client_new(const struct ml_client_opts *opts);
void ml_client_free(struct ml_client *client); /* every call must have ended or been canceled */

/* Is the server in this process? Then no connection to it can be dead. */
bool ml_client_is_local(const struct ml_client *client);
/* Is it known to send a bookmark to each watch once a minute? */
bool ml_client_has_bookmarks(const struct ml_client *client);

/* The server's clock, as its answers to this client and to those that name it as same_server show
 * it; borrowed. */
const struct ml_server_clock *ml_client_server_clock(const struct ml_client *client);

/* Called before each write. 0: the write is sent. Otherwise the write fails with that error and
 * nothing is sent. NULL: no fence. */
typedef int ml_client_fence(void *context, const char *method, const char *path,
                            struct ml_err *err);
/* The fence's answer about something else that is sent, which changes what others see: 0 without a
 * fence. */
ML_NODISCARD int ml_client_ask_fence(const struct ml_client *client, const char *method,
                                     const char *path, struct ml_err *err);
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
    bool dry_run;              /* the server does all but store it */
    bool secret;               /* the copies of body and answer are wiped when the call ends */
    const char *flow; /* the controller that sends: flows take turns; copied; NULL: the host */
    bool yields; /* waits behind all others: Events about finished work must not delay work that is
                    due */
    struct ml_budget *budget; /* charged for request and answer as long as the call lives; ML_ELIMIT
                                 when they do not fit. Must outlive the call. NULL: no budget is
                                 charged. An answer has at most 32 MiB */
    const char *uid, *resource_version; /* delete: preconditions, or NULL */
    bool foreground;    /* delete: what the object owns goes first; else it goes afterwards */
    int64_t timeout_ms; /* of each attempt as a whole; 0: the API server's own time-out */
};

/* `body` is the whole body of the answer, valid during the call; `err` NULL on 2xx. A 2xx body that
 * is a Status with status Failure counts as that error. */
typedef void ml_client_done(void *context, struct ml_str body, const struct ml_err *err);

/* Callbacks come later from the loop, never inside this call. The call is freed when done returns.
 */
struct ml_client_call *ml_client_send(struct ml_client *client,
                                      const struct ml_client_request *request, ml_client_done *done,
                                      void *context);
void ml_client_cancel(struct ml_client_call *call); /* done is not called any more */

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

/* Did the server give no answer, or a proxy in its place (502 to 504)? Then the server may be down,
 * and a caller that tries again should wait with ml_client_await. False if the answer had a
 * Retry-After. */
bool ml_client_unanswered(const struct ml_err *err);

/* A request got no answer, or a 401: does the server answer others? Asks it for its version, unless
 * it has answered something in the last two seconds; once in 30 seconds. */
void ml_client_doubt(struct ml_client *client);
/* Since when the server answers, in ns of the monotonic clock: since its first answer, or the first
 * one after ml_client_doubt got none. INT64_MAX: it does not answer, or that is being asked. An
 * answer of 401, or of 500 or more, is none. */
int64_t ml_client_answers_since(const struct ml_client *client);

/* A caller that backs off because the API server may be down. The backoff ends early as soon as the
 * server answers any call of this client, or of one that names it as same_server, with anything but
 * a 5xx. Until then, every second or two, `again` of one waiter with `probes` is called, so that it
 * tries. Embed it; set the last three fields, the rest is zero at first. */
struct ml_client_await {
    struct ml_list node; /* private */
    /* Called once; the wait is over then. `answered`: the server answers again, and all waiters
     * return now, so add a delay, which grows while such tries fail: some paths may never work
     * again. Otherwise try now. Runs inside another call's answer: must not send. */
    void (*again)(void *context, bool answered);
    void *context;
    bool probes;
};

void ml_client_await(struct ml_client *client, struct ml_client_await *await);
void ml_client_await_stop(struct ml_client_await *await); /* safe when it does not wait */

/* The error in a Status object; `http` is the answer's code. Also for ERROR events of a watch.
 * Always fills err with a non-zero kind. */
int ml_status_error(struct ml_str status_json, int http, struct ml_err *err);
