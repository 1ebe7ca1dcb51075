/* Makes the manifests of a script's webhooks. `moonloop manifests` prints them; `moonloop dev` and
 * test worlds register the webhooks of their scripts with them. */
#include "operator/webhook_manifests.h"

#include "codec/base64.h"

#define ADMISSION "admissionregistration.k8s.io/v1"

char *ml_webhook_configuration_name(const struct ml_declaration *declaration)
{
    return ml_asprintf("moonloop-%s", declaration->name);
}

char *ml_webhook_full_name(const char *webhook, const struct ml_declaration *declaration)
{
    return ml_asprintf("%s.%s.moonloop.dev", webhook, declaration->name);
}

static void put_text(struct ml_json_writer *writer, const char *key, const char *text)
{
    ml_json_put_string(writer, key, ml_str_of(text));
}

/* A list of one text. */
static void put_one(struct ml_json_writer *writer, const char *key, struct ml_str text)
{
    ml_json_key(writer, ml_str_of(key));
    ml_json_begin_array(writer);
    ml_json_string(writer, text);
    ml_json_end_array(writer);
}

static void put_client(const struct ml_webhook_client *client, const char *webhook,
                       const char *name, struct ml_json_writer *writer)
{
    ML_AUTO_FREE char *path = ml_asprintf("/%s/%s", webhook, name);
    ML_AUTO_FREE char *url = ml_asprintf("%s%s", client->url ? client->url : "", path);
    ml_json_key(writer, ML_STR("clientConfig"));
    ml_json_begin_object(writer);
    if (client->url) {
        put_text(writer, "url", url);
    } else {
        ml_json_key(writer, ML_STR("service"));
        ml_json_begin_object(writer);
        put_text(writer, "name", client->service);
        put_text(writer, "namespace", client->ns);
        put_text(writer, "path", path);
        ml_json_put_int(writer, "port", 443);
        ml_json_end_object(writer);
    }
    if (client->ca_pem) {
        ML_AUTO(ml_buf_fini) struct ml_buf bundle = ML_BUF_INIT;
        ml_base64_encode(ml_str_of(client->ca_pem), &bundle);
        ml_json_put_string(writer, "caBundle", ml_buf_str(&bundle));
    }
    ml_json_end_object(writer);
}

static void put_rules(const struct ml_gvk *gvk, const char *plural, struct ml_json_writer *writer)
{
    ml_json_key(writer, ML_STR("rules"));
    ml_json_begin_array(writer);
    ml_json_begin_object(writer);
    put_one(writer, "apiGroups", gvk->group);
    put_one(writer, "apiVersions", gvk->version);
    ml_json_key(writer, ML_STR("operations"));
    ml_json_begin_array(writer);
    ml_json_string(writer, ML_STR("CREATE"));
    ml_json_string(writer, ML_STR("UPDATE"));
    ml_json_end_array(writer);
    put_one(writer, "resources", ml_str_of(plural));
    ml_json_end_object(writer);
    ml_json_end_array(writer);
}

static void put_selector(struct ml_json_writer *writer, const char *key, const char *json)
{
    if (json)
        ml_json_put_raw(writer, key, ml_str_of(json));
}

/* A configuration of one webhook. */
static void put_configuration(const char *kind, const char *webhook,
                              const struct ml_declaration *declaration, const char *plural,
                              const struct ml_webhook_client *client, struct ml_json_writer *writer)
{
    const struct ml_script_webhooks *wants = &declaration->webhooks;
    ML_AUTO_FREE char *name = ml_webhook_configuration_name(declaration);
    ML_AUTO_FREE char *full = ml_webhook_full_name(webhook, declaration);
    ml_json_begin_object(writer);
    put_text(writer, "apiVersion", ADMISSION);
    put_text(writer, "kind", kind);
    ml_json_key(writer, ML_STR("metadata"));
    ml_json_begin_object(writer);
    put_text(writer, "name", name);
    ml_json_end_object(writer);
    ml_json_key(writer, ML_STR("webhooks"));
    ml_json_begin_array(writer);
    ml_json_begin_object(writer);
    put_text(writer, "name", full);
    put_one(writer, "admissionReviewVersions", ML_STR("v1"));
    put_client(client, webhook, declaration->name, writer);
    put_text(writer, "failurePolicy", wants->ignores_failure ? "Ignore" : "Fail");
    put_text(writer, "matchPolicy", wants->matches_exactly ? "Exact" : "Equivalent");
    put_selector(writer, "namespaceSelector", wants->namespace_selector);
    put_selector(writer, "objectSelector", wants->object_selector);
    put_rules(&declaration->kinds[0].gvk, plural, writer);
    put_text(writer, "sideEffects", "None");
    ml_json_put_int(writer, "timeoutSeconds", wants->timeout_seconds);
    ml_json_end_object(writer);
    ml_json_end_array(writer);
    ml_json_end_object(writer);
}

bool ml_webhook_put_mutating(const struct ml_declaration *declaration, const char *plural,
                             const struct ml_webhook_client *client, struct ml_json_writer *writer)
{
    if (declaration->webhooks.defaults)
        put_configuration("MutatingWebhookConfiguration", "default", declaration, plural, client,
                          writer);
    return declaration->webhooks.defaults;
}

bool ml_webhook_put_validating(const struct ml_declaration *declaration, const char *plural,
                               const struct ml_webhook_client *client,
                               struct ml_json_writer *writer)
{
    if (declaration->webhooks.validates)
        put_configuration("ValidatingWebhookConfiguration", "validate", declaration, plural, client,
                          writer);
    return declaration->webhooks.validates;
}

bool ml_webhook_put_conversion(const struct ml_declaration *declaration, const char *plural,
                               const struct ml_webhook_client *client,
                               struct ml_json_writer *writer)
{
    const struct ml_gvk *gvk = &declaration->kinds[0].gvk;
    ML_AUTO_FREE char *name = ml_asprintf("%s." ML_STR_FMT, plural, ML_STR_ARG(gvk->group));
    if (declaration->webhooks.version_count == 0)
        return false;
    ml_json_begin_object(writer);
    put_text(writer, "apiVersion", "apiextensions.k8s.io/v1");
    put_text(writer, "kind", "CustomResourceDefinition");
    ml_json_key(writer, ML_STR("metadata"));
    ml_json_begin_object(writer);
    put_text(writer, "name", name);
    ml_json_end_object(writer);
    ml_json_key(writer, ML_STR("spec"));
    ml_json_begin_object(writer);
    ml_json_key(writer, ML_STR("conversion"));
    ml_json_begin_object(writer);
    put_text(writer, "strategy", "Webhook");
    ml_json_key(writer, ML_STR("webhook"));
    ml_json_begin_object(writer);
    put_one(writer, "conversionReviewVersions", ML_STR("v1"));
    put_client(client, "convert", declaration->name, writer);
    ml_json_end_object(writer);
    ml_json_end_object(writer);
    ml_json_end_object(writer);
    ml_json_end_object(writer);
    return true;
}
