/* The host but its sockets, on a scripted API server and a fake clock: what the units of scripts
 * and of their controllers share. */
#pragma once

#include "fake_transport.h"
#include "unit.h"

#include "run/scripts.h"

#include <stdio.h>

#define NOW INT64_C(1700000000000000000)

/* The whole host but its sockets. */
struct world {
    struct ml_clock_fake clock;
    struct ml_random random;
    struct ml_loop *loop;
    struct ml_metrics *metrics;
    struct fake_transport *server;
    struct ml_cluster cluster;
    struct ml_scripts *scripts;
    struct ml_source source;
    char reported[512]; /* reason and note of the last report to the source */
    bool kind_installed;
    struct fake_call *writes[64]; /* requests that the test answers itself */
    size_t write_count;
    const char *things;      /* what a list of the reconciled kind is answered with */
    struct fake_call *watch; /* of the reconciled kind */
    struct fake_call *parts; /* the list of an owned kind, which the test answers itself */
    struct fake_call *parts_watch;
    struct fake_call *recheck; /* a GET of the object, which the test answers itself */
};

static const char *const kinds_installed =
    "{\"kind\":\"APIResourceList\",\"groupVersion\":\"test.dev/v1\",\"resources\":["
    "{\"name\":\"things\",\"kind\":\"Thing\",\"namespaced\":true,\"verbs\":[]},"
    "{\"name\":\"things/status\",\"kind\":\"Thing\",\"namespaced\":true,\"verbs\":[]},"
    "{\"name\":\"parts\",\"kind\":\"Part\",\"namespaced\":true,\"verbs\":[]}]}";

static const char *const one_thing =
    "{\"kind\":\"ThingList\",\"apiVersion\":\"test.dev/"
    "v1\",\"metadata\":{\"resourceVersion\":\"10\"},"
    "\"items\":[{\"metadata\":{\"name\":\"a\",\"namespace\":\"d\",\"uid\":\"ua\","
    "\"resourceVersion\":\"1\"}}]}";

static inline void answer(void *context, struct fake_call *call)
{
    struct world *world = context;
    if (strcmp(call->method, "GET") != 0) {
        assert_true(world->write_count < ML_COUNT(world->writes));
        world->writes[world->write_count++] = call;
    } else if (strcmp(call->path, "/apis/test.dev/v1") == 0) {
        if (world->kind_installed)
            fake_reply(call, 200, kinds_installed);
        else
            fake_refuse(call, 404, "NotFound", "the server could not find the requested resource");
    } else if (strstr(call->path, "/things/a")) {
        world->recheck = call;
    } else if (strstr(call->path, "/parts")) {
        if (strstr(call->path, "watch=1"))
            fake_head(world->parts_watch = call, 200);
        else
            world->parts = call;
    } else if (strstr(call->path, "watch=1")) {
        world->watch = call;
        fake_head(call, 200);
    } else {
        fake_reply(call, 200, world->things);
    }
}

static inline void source_report(struct ml_source *source, bool warning, const char *reason,
                                 const char *note)
{
    struct world *world = ml_container_of(source, struct world, source);
    snprintf(world->reported, sizeof world->reported, "%s %s: %s", warning ? "Warning" : "Normal",
             reason, note);
}

static inline void source_start(struct ml_source *source)
{
    (void)source;
}

static inline void source_free(struct ml_source *source)
{
    (void)source;
}

static const struct ml_source_class source_class = {source_start, source_report, source_free};

static inline int set_up(void **state)
{
    struct world *world = ml_new(struct world);
    ml_clock_fake_init(&world->clock, NOW);
    ml_random_init(&world->random, 1);
    world->loop = ml_loop_new(&world->clock.clock);
    world->metrics = ml_metrics_new();
    world->server = fake_transport_new(world->loop);
    world->kind_installed = true;
    world->things = one_thing;
    fake_set_handler(world->server, answer, world);
    const struct ml_client_opts client = {
        .loop = world->loop,
        .transport = fake_transport_seam(world->server),
        .metrics = world->metrics,
        .random = &world->random,
    };
    struct ml_cluster *cluster = &world->cluster;
    cluster->loop = world->loop;
    cluster->clock = &world->clock.clock;
    cluster->random = &world->random;
    cluster->metrics = world->metrics;
    cluster->client = ml_client_new(&client);
    cluster->discovery = ml_discovery_new(cluster->client, world->loop);
    const struct ml_informers_opts informers = {
        .client = cluster->client,
        .loop = world->loop,
        .random = &world->random,
        .metrics = world->metrics,
    };
    cluster->informers = ml_informers_new(&informers);
    const struct ml_recorder_opts recorder = {
        .client = cluster->client,
        .loop = world->loop,
        .metrics = world->metrics,
        .controller = "moonloop.dev/test",
        .instance = "test",
    };
    cluster->recorder = ml_recorder_new(&recorder);
    cluster->turns = ml_turns_new(world->loop, true);
    const struct ml_script_limits limits = {0};
    world->scripts = ml_scripts_new(cluster, &limits);
    world->source = (struct ml_source){.class = &source_class, .name = ml_strdup("test")};
    ml_scripts_add_source(world->scripts, &world->source);
    ml_scripts_start(world->scripts);
    *state = world;
    return 0;
}

static inline int tear_down(void **state)
{
    struct world *world = *state;
    ml_scripts_free(world->scripts);
    ml_turns_free(world->cluster.turns);
    ml_recorder_free(world->cluster.recorder);
    ml_informers_free(world->cluster.informers);
    ml_discovery_free(world->cluster.discovery);
    ml_client_free(world->cluster.client);
    fake_transport_free(world->server);
    ml_loop_free(world->loop);
    ml_metrics_free(world->metrics);
    free(world);
    return 0;
}

static inline void advance(struct world *world, int64_t ns)
{
    ml_clock_fake_advance(&world->clock, ns);
    ml_loop_poll(world->loop);
}

/* A script whose reconcile returns this. */
static inline char *script(const char *name, const char *returns)
{
    return ml_asprintf("local m = require 'moonloop'\n"
                       "return m.controller {\n"
                       "  name = '%s', reconciles = m.kind('test.dev/v1', 'Thing'),\n"
                       "  reconcile = function(thing, ctx) %s end,\n"
                       "}\n",
                       name, returns);
}

/* Tells a set of one or two files and lets the host do all it can without the clock. */
static inline void tell(struct world *world, const char *a, const char *b)
{
    struct ml_files files = ML_FILES_INIT;
    struct ml_err err = ML_ERR_INIT;
    if (a)
        assert_int_equal(
            ml_files_add(&files, &ml_files_scripts, ML_STR("a.lua"), ml_str_of(a), &err), 0);
    if (b)
        assert_int_equal(
            ml_files_add(&files, &ml_files_scripts, ML_STR("b.lua"), ml_str_of(b), &err), 0);
    ml_source_tell_files(&world->source, &files);
    ml_files_fini(&files);
    ml_loop_poll(world->loop);
}

static inline struct fake_call *only_write(struct world *world)
{
    assert_int_equal(world->write_count, 1);
    world->write_count = 0;
    return world->writes[0];
}

static inline bool ready(struct world *world)
{
    struct ml_buf why = ML_BUF_INIT;
    bool is = ml_scripts_ready(world->scripts, &why);
    assert_int_equal(is, why.len == 0);
    ml_buf_fini(&why);
    return is;
}

/* The object after its status was written, as the answer and as the event of the watch. */
static inline void accept(struct world *world, struct fake_call *write, int version,
                          const char *phase)
{
    ML_AUTO_FREE char *object = ml_asprintf(
        "{\"apiVersion\":\"test.dev/v1\",\"kind\":\"Thing\",\"metadata\":{\"name\":\"a\","
        "\"namespace\":\"d\",\"uid\":\"ua\",\"resourceVersion\":\"%d\"},"
        "\"status\":{\"phase\":\"%s\"}}",
        version, phase);
    ML_AUTO_FREE char *event = ml_asprintf("{\"type\":\"MODIFIED\",\"object\":%s}\n", object);
    fake_reply(write, 200, object);
    assert_true(fake_piece(world->watch, event));
    ml_loop_poll(world->loop);
}

/* The object changes; `more` stands in its metadata. */
static inline void change(struct world *world, int version, const char *want, const char *more)
{
    ML_AUTO_FREE char *event = ml_asprintf(
        "{\"type\":\"MODIFIED\",\"object\":{\"apiVersion\":\"test.dev/v1\",\"kind\":\"Thing\","
        "\"metadata\":{\"name\":\"a\",\"namespace\":\"d\",\"uid\":\"ua\",\"resourceVersion\":"
        "\"%d\"%s},\"spec\":{\"want\":\"%s\"}}}\n",
        version, more, want);
    assert_true(fake_piece(world->watch, event));
    ml_loop_poll(world->loop);
}

/* A list of d/t0 … d/t99. */
static inline char *many_things(void)
{
    struct ml_buf list = ML_BUF_INIT;
    ml_buf_puts(&list, "{\"kind\":\"ThingList\",\"apiVersion\":\"test.dev/v1\",\"metadata\":"
                       "{\"resourceVersion\":\"10\"},\"items\":[");
    for (int i = 0; i < 100; i++)
        ml_buf_printf(&list,
                      "%s{\"metadata\":{\"name\":\"t%d\",\"namespace\":\"d\",\"uid\":\"u%d\","
                      "\"resourceVersion\":\"1\"}}",
                      i ? "," : "", i, i);
    ml_buf_puts(&list, "]}");
    return ml_buf_take(&list);
}

static inline void reply_no_parts(struct world *world)
{
    fake_reply(world->parts, 200,
               "{\"kind\":\"PartList\",\"apiVersion\":\"test.dev/v1\","
               "\"metadata\":{\"resourceVersion\":\"10\"},\"items\":[]}");
    ml_loop_poll(world->loop);
}

/* A part in the watch, a second later. `group` of its owner; NULL: nobody owns it. */
static inline void part_changes(struct world *world, const char *type, int version,
                                const char *group)
{
    ML_AUTO_FREE char *owner = group ? ml_asprintf("\"ownerReferences\":[{\"apiVersion\":\"%s/v1\","
                                                   "\"kind\":\"Thing\",\"name\":\"a\",\"uid\":"
                                                   "\"ua\",\"controller\":true}],",
                                                   group)
                                     : ml_strdup("");
    ML_AUTO_FREE char *event = ml_asprintf(
        "{\"type\":\"%s\",\"object\":{\"apiVersion\":\"test.dev/v1\",\"kind\":\"Part\","
        "\"metadata\":{\"name\":\"p\",\"namespace\":\"d\",\"uid\":\"up\",%s"
        "\"resourceVersion\":\"%d\"}}}\n",
        type, owner, version);
    advance(world, ML_NS_PER_S);
    assert_true(fake_piece(world->parts_watch, event));
    ml_loop_poll(world->loop);
}

#define SCRIPTS_TEST(name) cmocka_unit_test_setup_teardown(name, set_up, tear_down)
