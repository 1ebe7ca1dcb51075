/* L6 operator. The HTTPS server of the scripts' webhooks: POST /default/NAME, /validate/NAME and
 * /convert/NAME, with a review of the API server. Each request is answered by one version of the
 * script, the one that is current when the request has arrived; its code runs in slices of the
 * script's CPU account. Every replica serves, from the start on. The identity of the client does
 * not matter: a review changes nothing.
 *
 * Limits: 7 MiB of a request, as controller-runtime; 32 MiB of all requests under way together, and
 * of all answers that wait to be sent; an answer within the deadline that the API server names
 * (?timeout=), at most 30 s. */
#pragma once

#include "base/log.h"
#include "base/metrics.h"
#include "net/http_server.h"
#include "operator/webhook_review.h"

struct ml_webhook_server;

struct ml_webhook_server_opts {
    struct ml_loop *loop;
    struct ml_log *log;
    struct ml_metrics *metrics;
    const char *address;    /* as ml_tcp_listen takes it */
    struct ssl_ctx_st *tls; /* the server takes its own reference */
    /* False: there is no controller of this name, or none whose script has been loaded. */
    bool (*find)(void *context, struct ml_str name, struct ml_webhook_target *out);
    void *context;
};

/* ML_EINVALID, ML_EIO: as ml_tcp_listen. */
ML_NODISCARD int ml_webhook_server_new(const struct ml_webhook_server_opts *opts,
                                       struct ml_webhook_server **out, struct ml_err *err);
void ml_webhook_server_free(struct ml_webhook_server *server); /* NULL is fine */
/* The script is live: its requests are counted from 0 on, in /metrics as well. */
void ml_webhook_server_expect(struct ml_webhook_server *server,
                              const struct ml_declaration *declaration);
int ml_webhook_server_port(const struct ml_webhook_server *server);

/* New connections get this certificate from now on; those that are open keep theirs. */
void ml_webhook_server_set_tls(struct ml_webhook_server *server, struct ssl_ctx_st *tls);
