/* L3 kube. The credentials that requests show the API server, for all transports of a host: from
 * the kubeconfig, whose files are read again, and from its exec plugin.
 *
 *   files   read again when they were read 10 s ago (client-go: a minute), and after a refusal.
 *           A file that is half written, or does not fit the others, is not used.
 *   plugin  asked when there is nothing, shortly before what it gave expires, and after a
 *           refusal. One run serves all who wait. Until a credential expires, requests use it while
 * the plugin runs, and when it fails.
 *
 * Logs, because nobody above sees it: new credentials, and why others are not used. */
#pragma once

#include "base/list.h"
#include "kube/exec_plugin.h"
#include "kube/kubeconfig.h"

struct ml_credentials;

struct ml_credentials_opts {
    struct ml_loop *loop;
    struct ml_kubeconfig *config; /* borrowed, and kept fresh */
    struct ml_log *log;
    struct ml_metrics *metrics; /* of exec plugins; or NULL */
    struct ml_random *random;
    const struct ml_exec_runner *runner; /* of plugins; NULL: real programs */
};

struct ml_credentials *ml_credentials_new(const struct ml_credentials_opts *opts);
void ml_credentials_free(
    struct ml_credentials *credentials); /* nobody may wait any more; NULL is fine */

const char *ml_credentials_server(const struct ml_credentials *credentials); /* "https://…" */

/* What one request shows. Valid until control goes back to the loop. */
struct ml_identity {
    uint64_t generation;       /* for ml_credentials_rejected */
    const char *authorization; /* value of that header, or NULL */
    const struct ml_http_header *impersonation;
    size_t impersonation_count;
    const struct ml_http_tls *tls; /* the same pointer for good; its contents change */
};

/* Somebody who waits for the plugin; embed it, and start it with zeros. */
struct ml_credentials_wait {
    /* From the loop: what there is now, or NULL and why there is nothing (ML_EUNAUTHORIZED). */
    void (*ready)(void *context, const struct ml_identity *identity, const struct ml_err *err);
    void *context;
    struct ml_list node; /* private */
};

/* True: `out` is filled. False: wait->ready comes later from the loop, never inside this call. */
bool ml_credentials_get(struct ml_credentials *credentials, struct ml_identity *out,
                        struct ml_credentials_wait *wait);
void ml_credentials_cancel_wait(struct ml_credentials_wait *wait); /* ready() comes no more */

/* The server rejected a request of that generation: with 401, or `in_handshake`, where it may also
 * be us who no longer trust the server. True: there are, or soon will be, other credentials, so it
 * is worth sending the request once more. */
bool ml_credentials_rejected(struct ml_credentials *credentials, uint64_t generation,
                             bool in_handshake);
/* The server knew who asks: any answer but 401, 407 and 5xx. */
void ml_credentials_accepted(struct ml_credentials *credentials, uint64_t generation);
