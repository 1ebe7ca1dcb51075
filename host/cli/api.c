/* A client with a loop of its own, which runs while a request is under way. */
#include "cli/api.h"

#include "include/moonloop.h"
#include "kube/credentials.h"
#include "kube/discovery.h"
#include "kube/kubeconfig.h"
#include "kube/snapshot.h"
#include "operator/operator.h"

#include <unistd.h>

#define ASK_MS       30000
#define VERSIONS_MAX 512 /* of all groups of a server; it has some forty */

struct ml_api {
    struct ml_loop *loop;
    struct ml_metrics *metrics;
    struct ml_random random;
    struct ml_log log;
    struct ml_kubeconfig *config;
    struct ml_credentials *credentials;
    struct ml_http_client *http;
    struct ml_snapshot *snapshot; /* that answers, or that is being taken; or NULL */
    struct ml_transport *transport, *recorder;
    struct ml_client *client;
    struct ml_discovery *discovery; /* NULL: not needed yet */
    const char *ns;
    /* The answer to the request under way: */
    struct ml_buf body;
    struct ml_err err;
};

static struct ml_api *api_new(void)
{
    struct ml_api *self = ml_new(struct ml_api);
    self->loop = ml_loop_new(ml_clock_real());
    self->metrics = ml_metrics_new();
    ml_random_init_real(&self->random);
    ml_log_init(&self->log, ml_clock_real(), STDERR_FILENO, ML_LOG_TEXT, ML_LOG_WARN);
    return self;
}

static void api_use(struct ml_api *self, struct ml_transport *transport)
{
    self->transport = transport;
    self->client = ml_client_new(&(struct ml_client_opts){.loop = self->loop,
                                                          .transport = self->transport,
                                                          .metrics = self->metrics,
                                                          .random = &self->random,
                                                          .log = &self->log});
}

int ml_api_open(const struct ml_api_opts *opts, struct ml_api **out, struct ml_err *err)
{
    const struct ml_kubeconfig_opts config = {opts->kubeconfig, opts->context};
    struct ml_kubeconfig *loaded;
    if (ml_kubeconfig_load(&config, &loaded, err) < 0)
        return err->kind;
    struct ml_api *self = api_new();
    self->config = loaded;
    self->ns = opts->ns ? opts->ns : loaded->ns;
    self->credentials = ml_credentials_new(&(struct ml_credentials_opts){
        .loop = self->loop, .config = loaded, .log = &self->log, .random = &self->random});
    self->http = ml_http_client_new(self->loop, "moonloop/" MOONLOOP_VERSION);
    api_use(self, ml_transport_http_new(self->http, self->credentials));
    *out = self;
    return 0;
}

int ml_api_open_snapshot(const char *path, struct ml_api **out, struct ml_err *err)
{
    struct ml_snapshot *snapshot;
    if (ml_snapshot_read(path, &snapshot, err) < 0)
        return err->kind;
    struct ml_api *self = api_new();
    self->snapshot = snapshot;
    self->ns = ml_snapshot_namespace(snapshot);
    api_use(self, ml_snapshot_transport_new(snapshot, self->loop));
    *out = self;
    return 0;
}

int ml_api_record(struct ml_api *self, const char *ns, struct ml_err *err)
{
    if (ml_snapshot_new(&self->random, ns, &self->snapshot, err) < 0)
        return err->kind;
    self->recorder = ml_snapshot_recorder_new(self->snapshot, self->transport);
    return 0;
}

int ml_api_write_snapshot(const struct ml_api *self, const char *path, struct ml_err *err)
{
    return ml_snapshot_write(self->snapshot, path, err);
}

void ml_api_close(struct ml_api *self)
{
    if (!self)
        return;
    ml_discovery_free(self->discovery);
    ml_client_free(self->client);
    if (self->recorder)
        self->recorder->free(self->recorder);
    self->transport->free(self->transport);
    if (self->config) {
        ml_http_client_free(self->http);
        ml_credentials_free(self->credentials);
        ml_kubeconfig_free(self->config);
    }
    ml_snapshot_free(self->snapshot);
    ml_metrics_free(self->metrics);
    ml_loop_free(self->loop);
    free(self);
}

const char *ml_api_namespace(const struct ml_api *self)
{
    return self->ns;
}

int64_t ml_api_now(struct ml_api *self)
{
    return ml_clock_wall(ml_loop_clock(self->loop));
}

static bool is_unreachable(const struct ml_err *err)
{
    return err->kind == ML_ENETWORK || err->kind == ML_ETIMEOUT || err->kind == ML_ETLS ||
           err->kind == ML_EUNAUTHORIZED;
}

/* Puts the server before an error that says nothing of it. */
static void name_server(const struct ml_api *self, struct ml_err *err)
{
    if (is_unreachable(err) && self->config)
        ml_err_wrap(err, "cannot use the API server %s (%s)", self->config->server,
                    self->config->source);
}

static void on_answer(void *context, struct ml_str body, const struct ml_err *err)
{
    struct ml_api *self = context;
    if (err)
        self->err = *err;
    else
        ml_buf_append_str(&self->body, body);
    ml_loop_stop(self->loop);
}

int ml_api_ask(struct ml_api *self, struct ml_client_request *request, struct ml_buf *body,
               struct ml_err *err)
{
    self->body = ML_BUF_INIT;
    self->err = ML_ERR_INIT;
    request->timeout_ms = ASK_MS;
    ml_client_send(self->client, request, on_answer, self);
    ml_loop_run(self->loop);
    ml_buf_fini(body);
    *body = self->body;
    if (!self->err.kind)
        return 0;
    name_server(self, &self->err);
    *err = self->err;
    return err->kind;
}

/* ---- a kind by its name ---- */

struct lookup;

/* One version of a group, in the server's order. */
struct asked {
    struct lookup *lookup;
    char *api_version;
    struct ml_str group; /* of that; "v1" for the core group, as a person names it */
    struct ml_discovery_wait *wait;
    const struct ml_kind *kind; /* NULL: it has none of that name */
    struct ml_err *err;         /* why that is not known; NULL: it is */
};

struct lookup {
    struct ml_api *api;
    struct ml_str name; /* "Site" or "sites" */
    struct asked asked[VERSIONS_MAX];
    size_t count, pending;
};

static void lookup_free(struct lookup *self)
{
    for (size_t i = 0; i < self->count; i++) {
        if (self->asked[i].wait)
            ml_discovery_cancel(self->asked[i].wait);
        free(self->asked[i].api_version);
        free(self->asked[i].err);
    }
    free(self);
}

static void lookup_add(struct lookup *self, struct ml_str api_version, struct ml_str group)
{
    if (self->count == VERSIONS_MAX)
        return;
    struct asked *asked = &self->asked[self->count++];
    *asked = (struct asked){.lookup = self, .api_version = ml_str_dup(api_version)};
    asked->group = ml_str_head(ml_str_of(asked->api_version), group.len);
}

static void lookup_add_versions(struct lookup *self, struct ml_str group)
{
    ML_AUTO(ml_json_reader_fini) struct ml_json_reader reader;
    ML_AUTO_FREE char *name = ml_json_find_string(group, "name", NULL);
    struct ml_str versions = {"", 0};
    (void)ml_json_find(group, &versions, "versions", NULL);
    ml_json_reader_init(&reader, versions, 0);
    if (!name || ml_json_next(&reader) != ML_JSON_ARRAY)
        return;
    for (struct ml_str version; (version = ml_json_skip(&reader)).len > 0;) {
        ML_AUTO_FREE char *api_version = ml_json_find_string(version, "groupVersion", NULL);
        if (api_version && ml_str_starts(ml_str_of(api_version), name))
            lookup_add(self, ml_str_of(api_version), ml_str_of(name));
    }
}

/* Adds all versions of the group of this name; of all, when `name` is {NULL, 0}. */
static void lookup_add_groups(struct lookup *self, struct ml_str list, struct ml_str name)
{
    ML_AUTO(ml_json_reader_fini) struct ml_json_reader reader;
    struct ml_str groups = {"", 0};
    (void)ml_json_find(list, &groups, "groups", NULL);
    ml_json_reader_init(&reader, groups, 0);
    if (ml_json_next(&reader) != ML_JSON_ARRAY)
        return;
    for (struct ml_str group; (group = ml_json_skip(&reader)).len > 0;) {
        ML_AUTO_FREE char *is = ml_json_find_string(group, "name", NULL);
        if (is && (!name.ptr || ml_str_is(name, is)))
            lookup_add_versions(self, group);
    }
}

static void on_resources(void *context, const struct ml_kind *kind, const struct ml_err *err)
{
    struct asked *asked = context;
    struct lookup *self = asked->lookup;
    asked->wait = NULL;
    asked->kind = kind ? kind
                       : ml_discovery_known_as(self->api->discovery, ml_str_of(asked->api_version),
                                               self->name);
    if (!asked->kind && err->kind != ML_ENOT_FOUND)
        asked->err = ml_err_dup(err);
    if (--self->pending == 0)
        ml_loop_stop(self->api->loop);
}

static void lookup_run(struct lookup *self)
{
    if (!self->api->discovery)
        self->api->discovery = ml_discovery_new(self->api->client, self->api->loop);
    for (size_t i = 0; i < self->count; i++) {
        struct asked *asked = &self->asked[i];
        struct ml_gvk gvk;
        if (!ml_gvk_parse(ml_str_of(asked->api_version), self->name, &gvk))
            continue;
        asked->wait = ml_discovery_resolve(self->api->discovery, &gvk, on_resources, asked);
        self->pending++;
    }
    if (self->pending > 0)
        ml_loop_run(self->api->loop);
}

/* The first version of each group counts. */
static int lookup_choose(const struct lookup *self, struct ml_str word, const struct ml_kind **out,
                         struct ml_err *err)
{
    ML_AUTO(ml_buf_fini) struct ml_buf names = ML_BUF_INIT;
    const struct ml_kind *first = NULL, *last = NULL;
    const struct asked *unknown = NULL;
    for (size_t i = 0; i < self->count; i++) {
        const struct asked *asked = &self->asked[i];
        unknown = asked->err && !unknown ? asked : unknown;
        if (!asked->kind || (last && strcmp(last->group, asked->kind->group) == 0))
            continue;
        first = first ? first : asked->kind;
        last = asked->kind;
        ml_buf_printf(&names, "%s%s." ML_STR_FMT, names.len > 0 ? ", " : "", last->kind,
                      ML_STR_ARG(asked->group));
    }
    if (first && first == last) {
        *out = first;
        return 0;
    }
    if (first)
        return ml_err_set(err, ML_EINVALID,
                          "kinds of several groups are called " ML_STR_FMT "; choose one: %s",
                          ML_STR_ARG(word), ml_buf_cstr(&names));
    if (unknown) {
        *err = *unknown->err;
        name_server(self->api, err);
        return err->kind;
    }
    return ml_err_set(err, ML_ENOT_FOUND,
                      "the server has no kind " ML_STR_FMT "; is its CRD installed?",
                      ML_STR_ARG(word));
}

int ml_api_find_kind(struct ml_api *self, struct ml_str word, const struct ml_kind **out,
                     struct ml_err *err)
{
    ML_AUTO(ml_buf_fini) struct ml_buf groups = ML_BUF_INIT;
    struct ml_client_request request = {.verb = ML_VERB_GET, .path = "/apis"};
    struct ml_gvk gvk;
    struct ml_str group = word, name = ml_str_cut(&group, '.');
    if (!ml_gvk_parse(ML_STR("v1"), name, &gvk) || (group.ptr && group.len == 0))
        return ml_err_set(err, ML_EINVALID,
                          "`" ML_STR_FMT "` is no name of a kind; expected one such as Site, sites "
                          "or Site.example.com",
                          ML_STR_ARG(word));
    if (ml_api_ask(self, &request, &groups, err) < 0)
        return err->kind;
    struct lookup *lookup = ml_new(struct lookup);
    lookup->api = self;
    lookup->name = name;
    if (!group.ptr || ml_str_is(group, "v1"))
        lookup_add(lookup, ML_STR("v1"), ML_STR("v1"));
    lookup_add_groups(lookup, ml_buf_str(&groups), group);
    lookup_run(lookup);
    int result = lookup_choose(lookup, word, out, err);
    lookup_free(lookup);
    return result;
}

void ml_api_operator_opts(struct ml_api *self, struct ml_operator_opts *out)
{
    out->loop = self->loop;
    out->transport = self->recorder ? self->recorder : self->transport;
    out->random = &self->random;
    out->log = &self->log;
    out->metrics = self->metrics;
    out->instance = "moonloop-cli";
}

void ml_api_parts(const struct ml_api *self, struct ml_api_parts *out)
{
    *out = (struct ml_api_parts){self->loop, self->http, self->credentials};
}

int ml_api_exit_code(const struct ml_err *err)
{
    return is_unreachable(err) ? MOONLOOP_EXIT_UNREACHABLE : MOONLOOP_EXIT_BAD;
}
