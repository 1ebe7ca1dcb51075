/* L6 operator. The Secret in which the host keeps the certificates of its webhooks: made when it is
 * missing, watched and read again, renewed in time, repaired when it is damaged and has our label.
 * All replicas show what it holds. Only a replica that may write changes it, and only the version
 * that it read; when several make it, the first one counts.
 *
 * Times are the API server's, asked for by a Secret that is not stored (a dry run): so certificates
 * are valid at once, and renewed in time, on a machine whose clock is wrong. */
#pragma once

#include "base/log.h"
#include "kube/client.h"
#include "operator/webhook_pair.h"
#include "state/informer.h"

struct ml_webhook_secret;

/* Borrowed until ml_webhook_secret_free. */
struct ml_webhook_secret_opts {
    struct ml_loop *loop;
    struct ml_log *log;
    struct ml_client *client;
    struct ml_informers *informers; /* to watch it; NULL: it is only read once a minute */
    const char *ns, *name;
    struct ml_webhook_names names;
    struct ml_webhook_term term;
    bool (*may_write)(void *context);
    /* The Secret was read, or written: what it holds. Borrowed during the call. */
    void (*shows)(void *context, const struct ml_webhook_pair *pair);
    void *context;
};

struct ml_webhook_secret *ml_webhook_secret_new(const struct ml_webhook_secret_opts *opts);
void ml_webhook_secret_free(struct ml_webhook_secret *secret); /* NULL is fine */
void ml_webhook_secret_start(struct ml_webhook_secret *secret);
