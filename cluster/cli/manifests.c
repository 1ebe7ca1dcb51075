/* moonloop manifests: the objects by which an API server calls the webhooks of scripts, and the
 * rights by which the host keeps its certificate. */
#include "base/escape.h"
#include "cli/crds.h"
#include "cluster/cli/commands.h"
#include "codec/json.h"
#include "codec/json_diff.h"
#include "codec/yaml.h"
#include "include/moonloop.h"
#include "operator/load.h"
#include "operator/webhook_manifests.h"
#include "operator/webhooks.h"

#include <stdio.h>

/* ---- the command ---- */

#define RBAC "rbac.authorization.k8s.io/v1"

struct manifests {
    struct ml_option_list paths, crd_paths;
    const char *url, *service, *ns, *secret, *account, *selector;
    bool cert_manager; /* --webhook-cert-dir: rights and caBundle are not ours */
    int port;
    struct ml_script_limits limits;
    struct ml_crds crds;

    struct ml_json_writer writer;
    struct ml_buf document;
    /* JSON lists of names, for resourceNames. */
    struct ml_buf mutating, validating, definitions;
    size_t bad, scripts;
};

/* ---- documents ---- */

static void begin_document(struct manifests *self)
{
    ml_buf_clear(&self->document);
    ml_json_writer_init(&self->writer, &self->document);
}

static void fail(struct manifests *self, const struct ml_err *err)
{
    self->bad++;
    ml_print_line(stderr, "%s", err->message);
}

static void end_document(struct manifests *self)
{
    ML_AUTO(ml_buf_fini) struct ml_buf yaml = ML_BUF_INIT;
    struct ml_err err = ML_ERR_INIT;
    if (ml_yaml_write(ml_buf_str(&self->document), ML_YAML_WORDS, NULL, &yaml, &err) < 0)
        fail(self, &err);
    else
        printf("---\n%s", ml_buf_cstr(&yaml));
}

static void put_text(struct manifests *self, const char *key, const char *text)
{
    ml_json_put_string(&self->writer, key, ml_str_of(text));
}

static void begin_object(struct manifests *self, const char *key)
{
    if (key)
        ml_json_key(&self->writer, ml_str_of(key));
    ml_json_begin_object(&self->writer);
}

static void end_object(struct manifests *self)
{
    ml_json_end_object(&self->writer);
}

/* `ns` NULL: cluster-scoped. */
static void begin_manifest(struct manifests *self, const char *api_version, const char *kind,
                           const char *name, const char *ns)
{
    begin_document(self);
    begin_object(self, NULL);
    put_text(self, "apiVersion", api_version);
    put_text(self, "kind", kind);
    begin_object(self, "metadata");
    put_text(self, "name", name);
    if (ns)
        put_text(self, "namespace", ns);
    end_object(self);
}

static void print_service(struct manifests *self)
{
    struct ml_str value = ml_str_of(self->selector), key = ml_str_cut(&value, '=');
    begin_manifest(self, "v1", "Service", self->service, self->ns);
    begin_object(self, "spec");
    begin_object(self, "selector");
    ml_json_key(&self->writer, key);
    ml_json_string(&self->writer, value);
    end_object(self);
    ml_json_key(&self->writer, ML_STR("ports"));
    ml_json_begin_array(&self->writer);
    begin_object(self, NULL);
    put_text(self, "name", "webhook");
    ml_json_put_int(&self->writer, "port", 443);
    ml_json_put_int(&self->writer, "targetPort", self->port);
    end_object(self);
    ml_json_end_array(&self->writer);
    end_object(self);
    end_object(self);
    end_document(self);
}

/* ---- rights ---- */

static void add_name(struct ml_buf *names, const char *name)
{
    ml_buf_printf(names, "%s\"%s\"", names->len > 0 ? "," : "", name);
}

/* `names`: as in a JSON list; "": all. */
static void put_rule(struct manifests *self, const char *group, const char *resource,
                     const char *names, const char *verbs)
{
    ML_AUTO_FREE char *list = ml_asprintf("[%s]", names);
    ML_AUTO_FREE char *verb_list = ml_asprintf("[%s]", verbs);
    ML_AUTO_FREE char *groups = ml_asprintf("[\"%s\"]", group);
    ML_AUTO_FREE char *resources = ml_asprintf("[\"%s\"]", resource);
    begin_object(self, NULL);
    ml_json_put_raw(&self->writer, "apiGroups", ml_str_of(groups));
    ml_json_put_raw(&self->writer, "resources", ml_str_of(resources));
    if (*names)
        ml_json_put_raw(&self->writer, "resourceNames", ml_str_of(list));
    ml_json_put_raw(&self->writer, "verbs", ml_str_of(verb_list));
    end_object(self);
}

static void begin_rules(struct manifests *self)
{
    ml_json_key(&self->writer, ML_STR("rules"));
    ml_json_begin_array(&self->writer);
}

static void end_rules(struct manifests *self)
{
    ml_json_end_array(&self->writer);
    end_object(self);
    end_document(self);
}

static void print_binding(struct manifests *self, const char *kind, const char *role,
                          const char *name, const char *ns)
{
    ML_AUTO_FREE char *binding = ml_asprintf("%sBinding", kind);
    begin_manifest(self, RBAC, binding, name, ns);
    begin_object(self, "roleRef");
    put_text(self, "apiGroup", "rbac.authorization.k8s.io");
    put_text(self, "kind", role);
    put_text(self, "name", name);
    end_object(self);
    ml_json_key(&self->writer, ML_STR("subjects"));
    ml_json_begin_array(&self->writer);
    begin_object(self, NULL);
    put_text(self, "kind", "ServiceAccount");
    put_text(self, "name", self->account);
    put_text(self, "namespace", self->ns);
    end_object(self);
    ml_json_end_array(&self->writer);
    end_object(self);
    end_document(self);
}

static void print_rights(struct manifests *self)
{
    const char *const group = "admissionregistration.k8s.io";
    const char *const verbs = "\"get\",\"list\",\"watch\",\"patch\"";
    ML_AUTO_FREE char *secret = ml_asprintf("\"%s\"", self->secret);
    begin_manifest(self, RBAC, "Role", "moonloop-webhooks", self->ns);
    begin_rules(self);
    put_rule(self, "", "secrets", "", "\"create\"");
    put_rule(self, "", "secrets", secret, verbs);
    end_rules(self);
    print_binding(self, "Role", "Role", "moonloop-webhooks", self->ns);
    begin_manifest(self, RBAC, "ClusterRole", "moonloop-webhooks", NULL);
    begin_rules(self);
    if (self->mutating.len > 0)
        put_rule(self, group, "mutatingwebhookconfigurations", ml_buf_cstr(&self->mutating), verbs);
    if (self->validating.len > 0)
        put_rule(self, group, "validatingwebhookconfigurations", ml_buf_cstr(&self->validating),
                 verbs);
    if (self->definitions.len > 0)
        put_rule(self, "apiextensions.k8s.io", "customresourcedefinitions",
                 ml_buf_cstr(&self->definitions), verbs);
    end_rules(self);
    print_binding(self, "ClusterRole", "ClusterRole", "moonloop-webhooks", NULL);
}

/* ---- scripts ---- */

/* The plural of a kind: its definition's, or as kubectl guesses it. */
static char *plural_of(const struct manifests *self, const struct ml_gvk *gvk)
{
    const char *known = ml_crds_plural(&self->crds, gvk);
    if (known)
        return ml_strdup(known);
    char *name = ml_str_dup(gvk->kind);
    size_t len = strlen(name);
    for (char *c = name; *c; c++)
        *c = (char)(*c >= 'A' && *c <= 'Z' ? *c + ('a' - 'A') : *c);
    char *plural = len > 0 && name[len - 1] == 's'   ? ml_asprintf("%ses", name)
                   : len > 0 && name[len - 1] == 'y' ? ml_asprintf("%.*sies", (int)len - 1, name)
                                                     : ml_asprintf("%ss", name);
    free(name);
    return plural;
}

/* The document is the conversion alone: it takes the place of that in the definition, if this is
 * known. Server-side apply of a part would take the rest away from who applied the whole by the
 * same name, as kubectl does even for what was applied client-side. */
static int complete_definition(struct manifests *self, const struct ml_gvk *gvk, struct ml_err *err)
{
    ML_AUTO(ml_buf_fini) struct ml_buf bare = ML_BUF_INIT;
    ML_AUTO(ml_buf_fini) struct ml_buf whole = ML_BUF_INIT;
    const char *definition = ml_crds_definition(&self->crds, gvk);
    if (!definition)
        return 0;
    int r = ml_json_merge(ml_str_of(definition), ML_STR("{\"spec\":{\"conversion\":null}}"), &bare,
                          err);
    if (r == 0)
        r = ml_json_merge(ml_buf_str(&bare), ml_buf_str(&self->document), &whole, err);
    if (r < 0)
        return r;
    ml_buf_clear(&self->document);
    ml_buf_append_str(&self->document, ml_buf_str(&whole));
    return 0;
}

static void print_script(struct manifests *self, const struct ml_script *script)
{
    struct ml_err err = ML_ERR_INIT;
    const struct ml_declaration *declaration = ml_script_declaration(script);
    const struct ml_gvk *gvk = &declaration->kinds[0].gvk;
    const struct ml_webhook_client client = {
        .url = self->url, .service = self->service, .ns = self->ns};
    ML_AUTO_FREE char *plural = plural_of(self, gvk);
    ML_AUTO_FREE char *name = ml_webhook_configuration_name(declaration);
    ML_AUTO_FREE char *crd = ml_asprintf("%s." ML_STR_FMT, plural, ML_STR_ARG(gvk->group));
    const struct {
        bool (*put)(const struct ml_declaration *declaration, const char *plural,
                    const struct ml_webhook_client *client, struct ml_json_writer *writer);
        struct ml_buf *names;
        const char *name;
    } each[] = {{ml_webhook_put_mutating, &self->mutating, name},
                {ml_webhook_put_validating, &self->validating, name},
                {ml_webhook_put_conversion, &self->definitions, crd}};
    for (size_t i = 0; i < ML_COUNT(each); i++) {
        begin_document(self);
        if (!each[i].put(declaration, plural, &client, &self->writer))
            continue;
        if (each[i].names == &self->definitions && complete_definition(self, gvk, &err) < 0) {
            fail(self, &err);
            continue;
        }
        add_name(each[i].names, each[i].name);
        end_document(self);
    }
}

static void print_path(struct manifests *self, const char *path)
{
    ML_AUTO(ml_files_fini) struct ml_files files = ML_FILES_INIT;
    ML_AUTO(ml_load_fini) struct ml_load load = {.files = ML_FILES_INIT};
    const struct ml_load_opts opts = {.limits = &self->limits};
    struct ml_err err = ML_ERR_INIT;
    if (ml_files_read(&files, &ml_files_scripts, path, &err) < 0) {
        fail(self, &err);
        return;
    }
    ml_load_all(&load, &files, &opts);
    for (size_t i = 0; i < files.refused_count; i++)
        fail(self, &files.refused[i].err);
    for (size_t i = 0; i < files.count; i++) {
        if (load.verdicts[i].outcome == ML_LOAD_REFUSED)
            fail(self, &load.verdicts[i].err);
        else if (load.verdicts[i].outcome == ML_LOAD_CONTROLLER)
            print_script(self, load.verdicts[i].script);
    }
}

static bool has_any(const struct manifests *self)
{
    return self->mutating.len > 0 || self->validating.len > 0 || self->definitions.len > 0;
}

static int print_all(struct manifests *self)
{
    for (size_t i = 0; i < self->paths.count; i++)
        print_path(self, self->paths.values[i]);
    if (has_any(self) && !self->url)
        print_service(self);
    if (has_any(self) && !self->cert_manager)
        print_rights(self);
    if (!has_any(self) && !self->bad)
        ml_print_line(stderr, "moonloop manifests: none of these scripts has webhooks");
    return self->bad ? MOONLOOP_EXIT_BAD : MOONLOOP_EXIT_OK;
}

static int check(const struct manifests *self, struct ml_err *err)
{
    ML_AUTO_FREE char *host = NULL;
    const char *const names[] = {self->service, self->ns, self->secret, self->account};
    if (self->paths.count == 0)
        return ml_err_set(err, ML_EINVALID, "no scripts given: moonloop manifests PATH");
    for (size_t i = 0; i < ML_COUNT(names); i++)
        if (!ml_name_valid(ml_str_of(names[i])))
            return ml_err_set(err, ML_EINVALID, "%s: not a valid name", names[i]);
    if (!strchr(self->selector, '='))
        return ml_err_set(err, ML_EINVALID, "--selector %s: expected KEY=VALUE", self->selector);
    if (self->port < 1 || self->port > 65535)
        return ml_err_set(err, ML_EINVALID, "--port %d: expected 1 to 65535", self->port);
    return self->url ? ml_webhooks_url_host(self->url, &host, err) : 0;
}

static void manifests_fini(struct manifests *self)
{
    ml_crds_fini(&self->crds);
    ml_buf_fini(&self->document);
    ml_buf_fini(&self->mutating);
    ml_buf_fini(&self->validating);
    ml_buf_fini(&self->definitions);
}

static const struct manifests defaults = {
    .service = ML_WEBHOOK_SERVICE,
    .ns = "default",
    .secret = ML_WEBHOOK_SECRET,
    .account = "moonloop",
    .selector = "app.kubernetes.io/name=moonloop",
    .port = 9443,
};

static const struct ml_option options[] = {
    {"--crds", "PATH", "CRDs (YAML file or folder), printed with their conversion (repeat)",
     ML_OPTION_LIST, offsetof(struct manifests, crd_paths)},
    {"--namespace", "NS", "where the operator runs; default: default", ML_OPTION_TEXT,
     offsetof(struct manifests, ns)},
    {"--webhook-service", "NAME", "default moonloop-webhook", ML_OPTION_TEXT,
     offsetof(struct manifests, service)},
    {"--selector", "KEY=VALUE", "a label of its pods; default app.kubernetes.io/name=moonloop",
     ML_OPTION_TEXT, offsetof(struct manifests, selector)},
    {"--port", "N", "that of --webhook-bind-address; default 9443", ML_OPTION_SECONDS,
     offsetof(struct manifests, port)},
    {"--service-account", "NAME", "of the operator, for the rights; default moonloop",
     ML_OPTION_TEXT, offsetof(struct manifests, account)},
    {"--webhook-cert-secret", "NAME", "default moonloop-webhook-cert", ML_OPTION_TEXT,
     offsetof(struct manifests, secret)},
    {"--webhook-url", "URL", "https://HOST:PORT instead of a Service", ML_OPTION_TEXT,
     offsetof(struct manifests, url)},
    {"--no-rights", NULL, "cert-manager keeps the certificate and writes caBundle", ML_OPTION_FLAG,
     offsetof(struct manifests, cert_manager)},
};

static int run(void *values, char **argv, struct ml_err *err)
{
    struct manifests *self = values;
    struct ml_err shown = ML_ERR_INIT; /* of files: printed without the name of the command */
    int code = MOONLOOP_EXIT_BAD;
    (void)argv;
    if (check(self, err) < 0)
        return MOONLOOP_EXIT_USAGE;
    if (ml_crds_read(&self->crds, &self->crd_paths, &shown) < 0)
        fail(self, &shown);
    else
        code = print_all(self);
    manifests_fini(self);
    return code;
}

const struct ml_command ml_command_manifests = {
    .name = "manifests",
    .usage = "PATH… [OPTIONS]",
    .summary = "manifests by which an API server calls the webhooks of scripts",
    .description =
        "Prints what the API server needs to call the webhooks of these scripts: a Service,\n"
        "the configurations, the kinds' definitions with their conversion, and the rights by\n"
        "which the host keeps its certificate and writes caBundle. Touches no cluster.\n"
        "Apply it in the way that the definitions were applied, client-side or server-side.\n"
        "Of a definition that is not in --crds only spec.conversion is printed.",
    .example = "reconcilers/ --crds crds/ | kubectl apply -f -",
    .options = options,
    .option_count = ML_COUNT(options),
    .words = offsetof(struct manifests, paths),
    .values_size = sizeof(struct manifests),
    .defaults = &defaults,
    .run = run,
};
