/* For the tests of reconciles: a script that owns Pods and uses Secrets, a scripted API server,
 * a cache of Pods that a test fills through its watch, and one At to reconcile. */
#pragma once

#include <stdio.h>

#include "fake_transport.h"
#include "script_unit.h"

#include "state/cluster.h"
#include "state/gate.h"

#define WORLD_NOW (INT64_C(1700000000) * ML_NS_PER_S)
#define PODS      "/api/v1/namespaces/default/pods"

struct world {
    struct ml_clock_fake clock;
    struct ml_loop *loop;
    struct ml_random random;
    struct ml_log log;
    struct ml_metrics *metrics;
    struct fake_transport *fake;
    struct ml_client *client;
    struct ml_informers *informers;
    struct ml_recorder *recorder;
    struct ml_gate *gate;
    struct ml_cluster cluster;
    struct ml_informer *pods;
    struct fake_call *watch; /* of Pods */
    struct ml_dict *dict;
    struct ml_object *at;
    struct ml_script *script;
    const struct ml_kind *kinds[4];
    struct ml_informer *in[4];
};

/* What the last reconcile came to, copied. */
struct told {
    size_t count;
    enum ml_outcome outcome;
    char message[ML_ERR_MESSAGE_MAX];
    char field[64], status[512], traceback[1024];
    int64_t after_ns, at_ns;
    int kind;
};

static const struct ml_kind world_at = {.api_version = "example.com/v1",
                                        .group = "example.com",
                                        .version = "v1",
                                        .kind = "At",
                                        .plural = "ats",
                                        .namespaced = true,
                                        .has_status = true};
static const struct ml_kind world_pod = {.api_version = "v1",
                                         .group = "",
                                         .version = "v1",
                                         .kind = "Pod",
                                         .plural = "pods",
                                         .namespaced = true,
                                         .has_status = true};
static const struct ml_kind world_secret = {.api_version = "v1",
                                            .group = "",
                                            .version = "v1",
                                            .kind = "Secret",
                                            .plural = "secrets",
                                            .namespaced = true};

static inline void world_done(void *context, const struct ml_result *result)
{
    struct told *told = context;
    told->count++;
    told->outcome = result->outcome;
    told->kind = result->err.kind;
    told->after_ns = result->requeue_after_ns;
    told->at_ns = result->requeue_at_ns;
    snprintf(told->message, sizeof(told->message), "%s", result->err.message);
    snprintf(told->field, sizeof(told->field), ML_STR_FMT, ML_STR_ARG(result->field));
    snprintf(told->status, sizeof(told->status), ML_STR_FMT, ML_STR_ARG(result->status));
    snprintf(told->traceback, sizeof(told->traceback), "%s",
             result->traceback ? result->traceback : "");
}

static inline void world_open_pods(struct world *w)
{
    w->pods = ml_informers_get(w->informers, &world_pod);
    ml_loop_poll(w->loop);
    struct fake_call *list = fake_next(w->fake);
    assert_string_equal(list->method, "GET");
    fake_reply(list, 200,
               "{\"kind\":\"PodList\",\"apiVersion\":\"v1\",\"metadata\":{\"resourceVersion\":"
               "\"100\"},\"items\":[]}");
    ml_loop_poll(w->loop);
    w->watch = fake_next(w->fake);
    assert_non_null(strstr(w->watch->path, "watch=1"));
    fake_head(w->watch, 200);
    ml_loop_poll(w->loop);
    assert_true(ml_informer_synced(w->pods));
}

/* Loads `body`, the statements of reconcile(at, ctx), and opens everything around it. `prelude`:
 * statements at the top of the file. `selection`: what the script declares to watch of Pods; its
 * cache has what the test puts there. */
static inline void world_open_file(struct world *w, const char *prelude, const char *selection,
                                   const char *body, const struct ml_script_limits *limits)
{
    *w = (struct world){.loop = NULL};
    ml_clock_fake_init(&w->clock, WORLD_NOW);
    w->loop = ml_loop_new(&w->clock.clock);
    ml_random_init(&w->random, 1);
    ml_log_init(&w->log, &w->clock.clock, -1, ML_LOG_JSON, ML_LOG_DEBUG);
    w->metrics = ml_metrics_new();
    w->fake = fake_transport_new(w->loop);
    w->client = ml_client_new(&(struct ml_client_opts){.loop = w->loop,
                                                       .transport = fake_transport_seam(w->fake),
                                                       .metrics = w->metrics,
                                                       .random = &w->random,
                                                       .log = &w->log});
    w->informers = ml_informers_new(&(struct ml_informers_opts){.client = w->client,
                                                                .loop = w->loop,
                                                                .random = &w->random,
                                                                .log = &w->log,
                                                                .metrics = w->metrics});
    w->recorder = ml_recorder_new(&(struct ml_recorder_opts){.client = w->client,
                                                             .loop = w->loop,
                                                             .metrics = w->metrics,
                                                             .controller = "moonloop.dev/at",
                                                             .instance = "test"});
    w->gate = ml_gate_new(w->loop, w->metrics, "at");
    w->cluster = (struct ml_cluster){
        w->loop,      &w->clock.clock, &w->random, &w->log, w->metrics, w->client, NULL,
        w->informers, w->recorder,     NULL,       false,   {0, 0},     NULL};
    world_open_pods(w);
    ML_AUTO_FREE char *text = ml_asprintf(
        "local moonloop = require 'moonloop'\n"
        "local time = require 'moonloop.time'\n"
        "local At = moonloop.kind('example.com/v1', 'At')\n"
        "local Pod = moonloop.kind('v1', 'Pod', %s)\n"
        "local Secret = moonloop.kind('v1', 'Secret')\n"
        "local Node = moonloop.kind('v1', 'Node')\n"
        "local function pod(at) return { apiVersion = 'v1', kind = 'Pod',\n"
        "  metadata = { name = at.metadata.name .. '-pod' }, spec = {} } end\n"
        "local map = function(pod, ctx) return pod.metadata.annotations.to and\n"
        "  { pod.metadata.annotations.to, { namespace = 'n', name = 'm' } } end\n"
        "%sreturn moonloop.controller { name = 'at', reconciles = At, owns = { Pod },\n"
        "uses = { Secret }, watches = { moonloop.watch(Pod, map) }, reconcile = function(at, ctx)\n"
        "%s\nend }\n",
        selection, prelude, body);
    const struct ml_script_file file = {ML_STR("at.lua"), ml_str_of(text)};
    const struct ml_script_files files = {&file, 1};
    struct ml_err err = ML_ERR_INIT;
    if (ml_script_load(&w->cluster, limits, &files, 0, &w->script, &err) < 0)
        fail_msg("%s", err.message);
    memcpy(w->kinds, (const struct ml_kind *[]){&world_at, &world_pod, &world_pod, &world_secret},
           sizeof(w->kinds));
    memcpy(w->in, (struct ml_informer *[]){NULL, w->pods, w->pods, NULL}, sizeof(w->in));
    ml_script_bind(w->script, &(struct ml_script_binding){w->kinds, w->in, w->gate, NULL});
    w->dict = ml_dict_new();
    int r = ml_object_new(w->dict, "", "",
                          ML_STR("{\"apiVersion\":\"example.com/v1\",\"kind\":\"At\","
                                 "\"metadata\":{\"name\":\"x\",\"namespace\":\"default\","
                                 "\"uid\":\"at-uid\",\"resourceVersion\":\"50\"},"
                                 "\"spec\":{\"size\":3}}"),
                          &w->at, &err);
    if (r < 0)
        fail_msg("%s", err.message);
}

static inline void world_open_part(struct world *w, const char *selection, const char *body,
                                   const struct ml_script_limits *limits)
{
    world_open_file(w, "", selection, body, limits);
}

static inline void world_open(struct world *w, const char *body,
                              const struct ml_script_limits *limits)
{
    world_open_part(w, "nil", body, limits);
}

static inline void world_close(struct world *w)
{
    ml_script_unref(w->script);
    ml_object_unref(w->at);
    ml_dict_unref(w->dict);
    ml_gate_free(w->gate);
    ml_informer_put(w->pods);
    ml_recorder_free(w->recorder);
    ml_informers_free(w->informers);
    ml_client_free(w->client);
    fake_transport_free(w->fake);
    ml_loop_poll(w->loop);
    ml_loop_free(w->loop);
    ml_metrics_free(w->metrics);
}

static inline struct ml_run *world_start(struct world *w, struct told *told)
{
    *told = (struct told){.count = 0};
    struct ml_run *run = ml_script_reconcile(w->script, w->at, world_done, told);
    ml_loop_poll(w->loop);
    return run;
}

/* One event of the Pod watch. */
static inline void world_event(struct world *w, const char *type, const char *object)
{
    ML_AUTO_FREE char *line = ml_asprintf("{\"type\":\"%s\",\"object\":%s}\n", type, object);
    assert_true(fake_piece(w->watch, line));
    ml_loop_poll(w->loop);
}

/* A Pod default/x-pod as the server has it; `owner` NULL: without a controller. */
static inline char *world_pod_json(const char *rv, const char *owner)
{
    ML_AUTO_FREE char *reference =
        owner ? ml_asprintf("\"ownerReferences\":[{\"apiVersion\":\"example.com/v1\",\"kind\":"
                            "\"At\",\"name\":\"y\",\"uid\":\"%s\",\"controller\":true}],",
                            owner)
              : ml_strdup("");
    return ml_asprintf("{\"apiVersion\":\"v1\",\"kind\":\"Pod\",\"metadata\":{\"name\":\"x-pod\","
                       "\"namespace\":\"default\",\"uid\":\"pod-uid\",%s\"resourceVersion\":\"%s\","
                       "\"labels\":{\"app\":\"x\"}},\"status\":{\"phase\":\"Running\"}}",
                       reference, rv);
}

static inline void world_answer(struct world *w, struct fake_call *call, int status,
                                const char *body)
{
    fake_reply(call, status, body);
    ml_loop_poll(w->loop);
}

#define CREATED_BY_US "\"uid\":\"at-uid\""
#define NOT_FOUND                                                                                  \
    "{\"kind\":\"Status\",\"status\":\"Failure\",\"reason\":\"NotFound\",\"code\":404}"

static inline void expect_outcome(const struct told *told, enum ml_outcome outcome,
                                  const char *status)
{
    if (told->count != 1 || told->outcome != outcome || strcmp(told->status, status) != 0)
        fail_msg("%zu results; outcome %d, status '%s', error '%s'", told->count, told->outcome,
                 told->status, told->message);
}
