/* L6 operator. The manifests by which an API server calls the webhooks of a script, as JSON:
 * MutatingWebhookConfiguration and ValidatingWebhookConfiguration of the name moonloop-CONTROLLER,
 * and the conversion stanza of the kind's CustomResourceDefinition. */
#pragma once

#include "codec/json.h"
#include "script/script.h"

/* Where the API server finds the webhooks. Borrowed. */
struct ml_webhook_client {
    const char *url; /* "https://host:port", without a path; NULL: a Service: */
    const char *service, *ns;
    const char *ca_pem; /* whom to trust; NULL: somebody else writes it */
};

/* "moonloop-NAME", the name of both configurations; to free. */
char *ml_webhook_configuration_name(const struct ml_declaration *declaration);
/* "validate.NAME.moonloop.dev": of a webhook in a configuration; to free. */
char *ml_webhook_full_name(const char *webhook, const struct ml_declaration *declaration);

/* Each of these writes an object, if the script has such a webhook; else nothing, and false. */
bool ml_webhook_put_mutating(const struct ml_declaration *declaration, const char *plural,
                             const struct ml_webhook_client *client, struct ml_json_writer *writer);
bool ml_webhook_put_validating(const struct ml_declaration *declaration, const char *plural,
                               const struct ml_webhook_client *client,
                               struct ml_json_writer *writer);
/* Only apiVersion, kind, metadata.name and spec.conversion: to be merged. */
bool ml_webhook_put_conversion(const struct ml_declaration *declaration, const char *plural,
                               const struct ml_webhook_client *client,
                               struct ml_json_writer *writer);
