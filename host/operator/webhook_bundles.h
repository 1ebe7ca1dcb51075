/* L6 operator. Writes the trusted authority (caBundle) into the webhooks of our scripts: into the
 * configurations moonloop-CONTROLLER, there into the webhooks of our names, and into the conversion
 * of the CustomResourceDefinitions that call us; nowhere else. Missing ones are not made:
 * somebody has to apply `moonloop manifests` first. One request at a time. */
#pragma once

#include "base/log.h"
#include "kube/client.h"
#include "operator/webhook_review.h"
#include "state/informer.h"

struct ml_webhook_bundles;

struct ml_webhook_bundles_opts {
    struct ml_loop *loop;
    struct ml_log *log;
    struct ml_client *client;
    struct ml_informers *informers; /* to watch these objects; NULL: looked at once a minute */
    bool (*may_write)(void *context);
    /* Walks over the scripts, as ml_scripts_next_webhook. */
    bool (*next)(void *context, size_t *cursor, struct ml_webhook_target *out);
    void *context;
};

struct ml_webhook_bundles *ml_webhook_bundles_new(const struct ml_webhook_bundles_opts *opts);
void ml_webhook_bundles_free(struct ml_webhook_bundles *bundles); /* NULL is fine */

/* From now on these are to be trusted (PEM). Writes where that is not so: now, whenever one of
 * these objects changes, and at least once a minute. */
void ml_webhook_bundles_set(struct ml_webhook_bundles *bundles, const char *ca_pem);
/* Looks again soon: there may be other scripts. */
void ml_webhook_bundles_again(struct ml_webhook_bundles *bundles);
