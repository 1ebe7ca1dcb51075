/* L6 operator. The webhooks of a running operator: their server, its certificate, and who is told
 * to trust it. The certificate is either read from a folder that somebody else keeps
 * (cert-manager), and then nobody is told anything; or the host makes it, keeps it in a Secret, and
 * writes the authority's into the configurations and definitions that call us.
 *
 * It listens from the start on, before the caches are filled: an API server may need a conversion
 * to fill them. Until the Secret has been read it shows a certificate that nobody trusts. */
#pragma once

#include "operator/operator.h"

struct ml_webhooks;

/* Strings are copied, the rest is borrowed until ml_webhooks_free. */
struct ml_webhooks_opts {
    struct ml_loop *loop;
    struct ml_log *log;
    struct ml_metrics *metrics;
    struct ml_operator *operator;
    const char *address;     /* "host:port" */
    const char *cert_dir;    /* of tls.crt and tls.key; NULL: the host makes them */
    const char *url;         /* "https://host:port" by which API servers call us, or NULL */
    const char *ns;          /* of Service and Secret */
    const char *service;     /* NULL: "moonloop-webhook" */
    const char *cert_secret; /* NULL: "moonloop-webhook-cert" */
    int64_t cert_s;          /* as ml_webhook_term_of */
};

#define ML_WEBHOOK_SERVICE "moonloop-webhook"
#define ML_WEBHOOK_SECRET  "moonloop-webhook-cert"

/* Listens. ML_EINVALID: a bad option, which the message names; ML_EIO, ML_ETLS. */
ML_NODISCARD int ml_webhooks_new(const struct ml_webhooks_opts *opts, struct ml_webhooks **out,
                                 struct ml_err *err);
void ml_webhooks_free(struct ml_webhooks *webhooks); /* NULL is fine; before the operator */
/* Begins with the API server: there is a connection. */
void ml_webhooks_start(struct ml_webhooks *webhooks);
/* False: a script has webhooks, and their server still shows a certificate that nobody trusts.
 * Appends a line to `why` then. */
bool ml_webhooks_ready(const struct ml_webhooks *webhooks, struct ml_buf *why);
int ml_webhooks_port(const struct ml_webhooks *webhooks);

/* The host in "https://host:port", to free. ML_EINVALID: it is not of this form, which is all that
 * a configuration may have here. */
ML_NODISCARD int ml_webhooks_url_host(const char *url, char **out_host, struct ml_err *err);
