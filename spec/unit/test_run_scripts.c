/* Versions of a script on their way in and out, on a scripted API server and a fake clock: what
 * takes over, when, and what stays when something is broken. */
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

static void answer(void *context, struct fake_call *call)
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

static void source_report(struct ml_source *source, bool warning, const char *reason,
                          const char *note)
{
    struct world *world = ml_container_of(source, struct world, source);
    snprintf(world->reported, sizeof world->reported, "%s %s: %s", warning ? "Warning" : "Normal",
             reason, note);
}

static void source_start(struct ml_source *source)
{
    (void)source;
}

static void source_free(struct ml_source *source)
{
    (void)source;
}

static const struct ml_source_class source_class = {source_start, source_report, source_free};

static int set_up(void **state)
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
    const struct ml_script_limits limits = {0};
    world->scripts = ml_scripts_new(cluster, &limits);
    world->source = (struct ml_source){.class = &source_class, .name = ml_strdup("test")};
    ml_scripts_add_source(world->scripts, &world->source);
    ml_scripts_start(world->scripts);
    *state = world;
    return 0;
}

static int tear_down(void **state)
{
    struct world *world = *state;
    ml_scripts_free(world->scripts);
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

static void advance(struct world *world, int64_t ns)
{
    ml_clock_fake_advance(&world->clock, ns);
    ml_loop_poll(world->loop);
}

/* A script whose reconcile returns this. */
static char *script(const char *name, const char *returns)
{
    return ml_asprintf("local m = require 'moonloop'\n"
                       "return m.controller {\n"
                       "  name = '%s', reconciles = m.kind('test.dev/v1', 'Thing'),\n"
                       "  reconcile = function(thing, ctx) %s end,\n"
                       "}\n",
                       name, returns);
}

/* Tells a set of one or two files and lets the host do all it can without the clock. */
static void tell(struct world *world, const char *a, const char *b)
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

static struct fake_call *only_write(struct world *world)
{
    assert_int_equal(world->write_count, 1);
    world->write_count = 0;
    return world->writes[0];
}

static bool ready(struct world *world)
{
    struct ml_buf why = ML_BUF_INIT;
    bool is = ml_scripts_ready(world->scripts, &why);
    assert_int_equal(is, why.len == 0);
    ml_buf_fini(&why);
    return is;
}

/* The object after its status was written, as the answer and as the event of the watch. */
static void accept(struct world *world, struct fake_call *write, int version, const char *phase)
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
static void change(struct world *world, int version, const char *want, const char *more)
{
    ML_AUTO_FREE char *event = ml_asprintf(
        "{\"type\":\"MODIFIED\",\"object\":{\"apiVersion\":\"test.dev/v1\",\"kind\":\"Thing\","
        "\"metadata\":{\"name\":\"a\",\"namespace\":\"d\",\"uid\":\"ua\",\"resourceVersion\":"
        "\"%d\"%s},\"spec\":{\"want\":\"%s\"}}}\n",
        version, more, want);
    assert_true(fake_piece(world->watch, event));
    ml_loop_poll(world->loop);
}

static void test_scripts_go_live_and_reconcile(void **state)
{
    struct world *world = *state;
    ML_AUTO_FREE char *one = script("one", "return { status = { phase = 'ONE' } }");
    assert_false(ready(world));
    tell(world, one, NULL);
    assert_true(ready(world));
    assert_string_equal(world->reported,
                        "Normal ScriptLoaded: a.lua: controller one runs the new version");
    struct fake_call *write = only_write(world);
    assert_string_equal(write->method, "PATCH");
    assert_string_equal(write->body, "{\"metadata\":{\"uid\":\"ua\",\"resourceVersion\":\"1\"},"
                                     "\"status\":{\"phase\":\"ONE\"}}");
    accept(world, write, 11, "ONE");
    assert_int_equal(world->write_count, 0); /* it says what is: nothing is left to write */
}

static void test_scripts_swap_lets_the_old_version_finish(void **state)
{
    struct world *world = *state;
    ML_AUTO_FREE char *one = script("one", "return { status = { phase = 'ONE' } }");
    ML_AUTO_FREE char *two = script("one", "return { status = { phase = 'TWO' } }");
    tell(world, one, NULL);
    struct fake_call *under_way = only_write(world);
    tell(world, two, NULL); /* the key is out: the new version must not touch it yet */
    assert_int_equal(world->write_count, 0);
    accept(world, under_way, 11, "ONE");
    struct fake_call *next = only_write(world);
    assert_non_null(strstr(next->body, "\"resourceVersion\":\"11\""));
    assert_non_null(strstr(next->body, "\"phase\":\"TWO\""));
    accept(world, next, 12, "TWO");
    assert_int_equal(world->write_count, 0);
}

static void test_scripts_refused_version_changes_nothing_that_runs(void **state)
{
    struct world *world = *state;
    ML_AUTO_FREE char *one = script("one", "return { status = { phase = thing.spec.want } }");
    static const struct {
        const char *text, *report;
    } broken[] = {
        {"return {\n  nonsense =\n", "Warning ScriptRefused: a.lua:3:"},
        {"error('at load')", "Warning ScriptRefused: a.lua:1: at load"},
        {"return 42", "Warning ScriptRefused: a.lua"},
        {"\x1bLua", "Warning ScriptRefused: a.lua:1: this is bytecode"},
        {"while true do end", "Warning ScriptRefused: a.lua:1: used more than"},
        {"return {}", "Warning ScriptRefused: a.lua: returns a table that is no"},
    };
    tell(world, one, NULL);
    for (size_t i = 0; i < ML_COUNT(broken); i++) {
        tell(world, broken[i].text, NULL);
        world->reported[strlen(broken[i].report)] = '\0';
        assert_string_equal(world->reported, broken[i].report);
        assert_true(ready(world));
    }
    world->write_count = 0;
    fake_piece(
        world->watch,
        "{\"type\":\"MODIFIED\",\"object\":{\"apiVersion\":\"test.dev/v1\",\"kind\":\"Thing\","
        "\"metadata\":{\"name\":\"a\",\"namespace\":\"d\",\"uid\":\"ua\",\"resourceVersion\":"
        "\"20\"},\"spec\":{\"want\":\"STILL\"}}}\n");
    ml_loop_poll(world->loop);
    assert_non_null(strstr(only_write(world)->body, "\"phase\":\"STILL\""));
    fake_reply(world->writes[0], 200, "{}");
}

static void test_scripts_deleted_file_changes_nothing_that_runs(void **state)
{
    struct world *world = *state;
    ML_AUTO_FREE char *one = script("one", "return");
    ML_AUTO_FREE char *two = script("two", "return");
    tell(world, one, two);
    tell(world, NULL, two);
    assert_string_equal(world->reported, "Warning ScriptRefused: a.lua: is no longer in test");
    assert_true(ready(world));
}

static void test_scripts_with_one_name_the_second_is_refused(void **state)
{
    struct world *world = *state;
    ML_AUTO_FREE char *one = script("same", "return");
    ML_AUTO_FREE char *two = script("same", "return 1, 2");
    tell(world, one, two);
    struct ml_buf why = ML_BUF_INIT;
    assert_false(ml_scripts_ready(world->scripts, &why));
    assert_string_equal(ml_buf_cstr(&why), "b.lua: the name \"same\" is taken by a.lua; "
                                           "give this controller another one\n");
    ml_buf_fini(&why);
    ML_AUTO_FREE char *renamed = script("other", "return");
    tell(world, one, renamed);
    assert_true(ready(world));
}

static void test_scripts_renamed_controller_takes_over(void **state)
{
    struct world *world = *state;
    ML_AUTO_FREE char *one = script("one", "return");
    ML_AUTO_FREE char *two = script("two", "return { status = { phase = 'TWO' } }");
    tell(world, one, NULL);
    tell(world, two, NULL);
    assert_string_equal(world->reported,
                        "Normal ScriptLoaded: a.lua: controller two runs the new version");
    assert_non_null(strstr(only_write(world)->body, "\"phase\":\"TWO\""));
    fake_reply(world->writes[0], 200, "{}");
}

static void test_scripts_wait_for_a_kind_that_is_not_installed(void **state)
{
    struct world *world = *state;
    ML_AUTO_FREE char *one = script("one", "return { status = { phase = 'ONE' } }");
    world->kind_installed = false;
    tell(world, one, NULL);
    advance(world, 30 * ML_NS_PER_S);
    assert_false(ready(world));
    world->kind_installed = true;
    for (int i = 0; i < 12 && !ready(world); i++)
        advance(world, ML_NS_PER_S);
    assert_true(ready(world));
    fake_reply(only_write(world), 200, "{}");
}

static void test_scripts_conflict_is_tried_again_when_the_cache_has_caught_up(void **state)
{
    struct world *world = *state;
    ML_AUTO_FREE char *one = script("one", "return { status = { phase = 'ONE' } }");
    tell(world, one, NULL);
    fake_refuse(only_write(world), 409, "Conflict", "the object has been modified");
    fake_piece(
        world->watch,
        "{\"type\":\"MODIFIED\",\"object\":{\"apiVersion\":\"test.dev/v1\",\"kind\":\"Thing\","
        "\"metadata\":{\"name\":\"a\",\"namespace\":\"d\",\"uid\":\"ua\",\"resourceVersion\":"
        "\"20\"}}}\n");
    advance(world, ML_NS_PER_S);
    struct fake_call *again = only_write(world);
    assert_non_null(strstr(again->body, "\"resourceVersion\":\"20\""));
    accept(world, again, 21, "ONE");
    assert_int_equal(world->write_count, 0);
}

/* A list of d/t0 … d/t99. */
static char *many_things(void)
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

/* The number of a thing that still waits: the order in which they come is not stated. */
static int one_that_waits(const struct world *world)
{
    for (int i = 0; i < 100; i++) {
        ML_AUTO_FREE char *part = ml_asprintf("/t%d/", i);
        size_t at = 0;
        while (at < world->write_count && !strstr(world->writes[at]->path, part))
            at++;
        if (at == world->write_count)
            return i;
    }
    fail_msg("all were written");
    return -1;
}

static void test_scripts_edit_overtakes_what_the_first_list_brought(void **state)
{
    struct world *world = *state;
    ML_AUTO_FREE char *one = script("one", "return { status = { phase = 'ONE' } }");
    ML_AUTO_FREE char *things = many_things();
    world->things = things;
    tell(world, one, NULL);
    assert_int_equal(world->write_count, 8); /* of low priority no more at once */
    int waits = one_that_waits(world);
    for (size_t i = 0; i < 2; i++) {
        ML_AUTO_FREE char *name = i == 0 ? ml_asprintf("t%d", waits) : ml_strdup("new");
        ML_AUTO_FREE char *event = ml_asprintf(
            "{\"type\":\"MODIFIED\",\"object\":{\"apiVersion\":\"test.dev/v1\",\"kind\":\"Thing\","
            "\"metadata\":{\"name\":\"%s\",\"namespace\":\"d\",\"uid\":\"u%s\","
            "\"resourceVersion\":\"2%zu\"}}}\n",
            name, name + 1, i);
        fake_piece(world->watch, event);
        ml_loop_poll(world->loop);
        assert_int_equal(world->write_count, 9 + i);
        assert_non_null(strstr(world->writes[8 + i]->path, name));
    }
    for (size_t i = 0; i < 10; i++)
        fake_reply(world->writes[i], 200, "{}");
}

/* Nothing else wakes it: the host itself comes back to it. */
static void test_scripts_status_that_was_not_written_is_tried_again(void **state)
{
    struct world *world = *state;
    ML_AUTO_FREE char *one = script("one", "return { status = { phase = 'ONE' } }");
    tell(world, one, NULL);
    fake_refuse(only_write(world), 500, "InternalError", "etcd is not well");
    advance(world, 5 * ML_NS_PER_MS);
    accept(world, only_write(world), 11, "ONE");
    assert_int_equal(world->write_count, 0);
}

static void test_scripts_backoff_grows_and_is_forgotten_by_a_success(void **state)
{
    struct world *world = *state;
    ML_AUTO_FREE char *one = script("one", "return { status = { phase = thing.spec.want } }");
    int64_t delay_ns = 5 * ML_NS_PER_MS;
    tell(world, one, NULL);
    change(world, 11, "X", "");
    for (int i = 0; i < 10; i++, delay_ns *= 2) {
        fake_refuse(only_write(world), 500, "InternalError", "etcd is not well");
        advance(world, delay_ns - 1);
        assert_int_equal(world->write_count, 0);
        advance(world, 1);
    }
    accept(world, only_write(world), 12, "X");
    change(world, 13, "Y", "");
    fake_refuse(only_write(world), 500, "InternalError", "etcd is not well");
    advance(world, 5 * ML_NS_PER_MS);
    accept(world, only_write(world), 14, "Y");
}

/* Only an edit mends it. The message would tell of every other run. */
static void test_scripts_invalid_object_waits_for_an_edit(void **state)
{
    struct world *world = *state;
    ML_AUTO_FREE char *one = script("one",
                                    "if thing.spec.want == 'Y' then\n"
                                    "  return { status = { phase = 'Y' } }\n"
                                    "end\n"
                                    "return ctx.invalid('spec.want', 'seen at ' .. ctx.now())");
    tell(world, one, NULL);
    for (size_t i = 0; i < world->write_count; i++) /* the status, and an Event */
        fake_reply(world->writes[i], 201, "{}");
    world->write_count = 0;
    for (int minutes = 0; minutes < 60; minutes++)
        advance(world, 60 * ML_NS_PER_S);
    assert_int_equal(world->write_count, 0);
    change(world, 13, "Y", "");
    accept(world, only_write(world), 14, "Y");
}

static void test_scripts_object_that_is_going_is_left_alone(void **state)
{
    struct world *world = *state;
    ML_AUTO_FREE char *one = script("one", "return { status = { phase = thing.spec.want } }");
    tell(world, one, NULL);
    change(world, 11, "X", ",\"deletionTimestamp\":\"2026-01-01T00:00:00Z\"");
    assert_int_equal(world->write_count, 0);
    assert_true(ready(world));
}

static void reply_no_parts(struct world *world)
{
    fake_reply(world->parts, 200,
               "{\"kind\":\"PartList\",\"apiVersion\":\"test.dev/v1\","
               "\"metadata\":{\"resourceVersion\":\"10\"},\"items\":[]}");
    ml_loop_poll(world->loop);
}

/* A part in the watch, a second later. `group` of its owner; NULL: nobody owns it. */
static void part_changes(struct world *world, const char *type, int version, const char *group)
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

/* Its status tells when it was run last. */
static const char *const stamper =
    "local m = require 'moonloop'\n"
    "return m.controller {\n"
    "  name = 'one', reconciles = m.kind('test.dev/v1', 'Thing'),\n"
    "  owns = { m.kind('test.dev/v1', 'Part') },\n"
    "  reconcile = function(thing, ctx)\n"
    "    return { status = { phase = ('at %d'):format(ctx.now()) },\n"
    "      requeue_after = thing.spec.want == 'TIMER' and 60 or nil }\n"
    "  end,\n"
    "}\n";

/* What it watches is asked of the server like that, and is the cache that shows its own writes. */
static void test_scripts_watch_the_part_that_they_declare(void **state)
{
    static const char *const picker =
        "local m = require 'moonloop'\n"
        "local select = { labels = 'app=x', fields = 'spec.a=b', metadata_only = true }\n"
        "return m.controller {\n"
        "  name = 'one', reconciles = m.kind('test.dev/v1', 'Thing'),\n"
        "  owns = { m.kind('test.dev/v1', 'Part', select) },\n"
        "  reconcile = function(thing, ctx)\n"
        "    assert(ctx.create { apiVersion = 'test.dev/v1', kind = 'Part',\n"
        "      metadata = { name = 'p', labels = { app = 'x' } } })\n"
        "    return { status = { phase = 'MADE' } }\n"
        "  end,\n"
        "}\n";
    struct world *world = *state;
    tell(world, picker, NULL);
    assert_non_null(strstr(world->parts->path, "labelSelector=app%3Dx"));
    assert_non_null(strstr(world->parts->path, "fieldSelector=spec.a%3Db"));
    assert_non_null(strstr(world->parts->accept, "as=PartialObjectMetadataList"));
    reply_no_parts(world);
    struct fake_call *create = only_write(world);
    assert_string_equal(create->method, "POST");
    fake_reply(create, 201,
               "{\"apiVersion\":\"test.dev/v1\",\"kind\":\"Part\",\"metadata\":{\"name\":\"p\","
               "\"namespace\":\"d\",\"uid\":\"up\",\"resourceVersion\":\"12\"}}");
    ml_loop_poll(world->loop);
    assert_int_equal(world->write_count, 0); /* the cache does not show it yet */
    part_changes(world, "ADDED", 12, NULL);
    struct fake_call *status = only_write(world);
    assert_non_null(strstr(status->body, "\"phase\":\"MADE\""));
    fake_reply(status, 200, "{}");
}

static void test_scripts_owner_hears_of_its_children_and_of_none_else(void **state)
{
    struct world *world = *state;
    tell(world, stamper, NULL);
    reply_no_parts(world);
    accept(world, only_write(world), 11, "at 1700000000");
    part_changes(world, "ADDED", 12, "other.dev");
    assert_int_equal(world->write_count, 0);
    part_changes(world, "MODIFIED", 13, "test.dev");
    accept(world, only_write(world), 14, "at 1700000002");
    part_changes(world, "MODIFIED", 15, NULL); /* taken from it */
    accept(world, only_write(world), 16, "at 1700000003");
    part_changes(world, "DELETED", 17, NULL);
    assert_int_equal(world->write_count, 0);
}

/* The cache of the owner may be behind that of its children. */
static void test_scripts_owner_is_asked_for_before_a_child_is_made_again(void **state)
{
    struct world *world = *state;
    tell(world, stamper, NULL);
    reply_no_parts(world);
    accept(world, only_write(world), 11, "at 1700000000");
    part_changes(world, "ADDED", 12, "test.dev");
    accept(world, only_write(world), 13, "at 1700000001");
    part_changes(world, "DELETED", 14, "test.dev");
    assert_int_equal(world->write_count, 0);
    fake_reply(ml_take(&world->recheck), 200, "{\"metadata\":{\"uid\":\"another\"}}");
    assert_int_equal(world->write_count, 0);
    advance(world, 5 * ML_NS_PER_MS);
    fake_reply(ml_take(&world->recheck), 200, "{\"metadata\":{\"uid\":\"ua\"}}");
    ml_loop_poll(world->loop);
    accept(world, only_write(world), 15, "at 1700000002");
}

/* What the newest run asked for is what counts. */
static void test_scripts_timer_of_an_earlier_run_is_taken_back(void **state)
{
    struct world *world = *state;
    tell(world, stamper, NULL);
    reply_no_parts(world);
    accept(world, only_write(world), 11, "at 1700000000");
    advance(world, ML_NS_PER_S);
    change(world, 12, "TIMER", "");
    accept(world, only_write(world), 13, "at 1700000001");
    advance(world, ML_NS_PER_S);
    change(world, 14, "NONE", "");
    accept(world, only_write(world), 15, "at 1700000002");
    advance(world, 59 * ML_NS_PER_S);
    advance(world, 2 * ML_NS_PER_S);
    assert_int_equal(world->write_count, 0);
}

/* With an empty cache of what it owns it would make all of that a second time. */
static void test_scripts_wait_for_every_cache_of_theirs(void **state)
{
    struct world *world = *state;
    const char *one = "local m = require 'moonloop'\n"
                      "return m.controller {\n"
                      "  name = 'one', reconciles = m.kind('test.dev/v1', 'Thing'),\n"
                      "  owns = { m.kind('test.dev/v1', 'Part') },\n"
                      "  reconcile = function() return { status = { phase = 'ONE' } } end,\n"
                      "}\n";
    tell(world, one, NULL);
    assert_non_null(world->watch); /* the other cache is there */
    assert_false(ready(world));
    assert_int_equal(world->write_count, 0);
    reply_no_parts(world);
    assert_true(ready(world));
    accept(world, only_write(world), 11, "ONE");
}

static void set_true(void *context)
{
    *(bool *)context = true;
}

static void test_scripts_stop_waits_for_what_is_under_way(void **state)
{
    struct world *world = *state;
    ML_AUTO_FREE char *one = script("one", "return { status = { phase = 'ONE' } }");
    bool stopped = false;
    tell(world, one, NULL);
    ml_scripts_stop(world->scripts, set_true, &stopped);
    ml_loop_poll(world->loop);
    assert_false(stopped);
    fake_reply(only_write(world), 200, "{}");
    ml_loop_poll(world->loop);
    assert_true(stopped);
    assert_int_equal(world->write_count, 0);
}

static void test_scripts_stop_begins_nothing_that_waits(void **state)
{
    struct world *world = *state;
    ML_AUTO_FREE char *one = script("one", "return { status = { phase = 'ONE' } }");
    ML_AUTO_FREE char *things = many_things();
    bool stopped = false;
    world->things = things;
    tell(world, one, NULL);
    assert_int_equal(world->write_count, 8);
    ml_scripts_stop(world->scripts, set_true, &stopped);
    for (size_t i = 0; i < 8; i++)
        fake_reply(world->writes[i], 200, "{}");
    ml_loop_poll(world->loop);
    assert_true(stopped);
    assert_int_equal(world->write_count, 8); /* the other 92 are the next process's to list */
}

#define SCRIPTS_TEST(name) cmocka_unit_test_setup_teardown(name, set_up, tear_down)

int main(void)
{
    const struct CMUnitTest tests[] = {
        SCRIPTS_TEST(test_scripts_go_live_and_reconcile),
        SCRIPTS_TEST(test_scripts_swap_lets_the_old_version_finish),
        SCRIPTS_TEST(test_scripts_refused_version_changes_nothing_that_runs),
        SCRIPTS_TEST(test_scripts_deleted_file_changes_nothing_that_runs),
        SCRIPTS_TEST(test_scripts_with_one_name_the_second_is_refused),
        SCRIPTS_TEST(test_scripts_renamed_controller_takes_over),
        SCRIPTS_TEST(test_scripts_wait_for_a_kind_that_is_not_installed),
        SCRIPTS_TEST(test_scripts_conflict_is_tried_again_when_the_cache_has_caught_up),
        SCRIPTS_TEST(test_scripts_edit_overtakes_what_the_first_list_brought),
        SCRIPTS_TEST(test_scripts_status_that_was_not_written_is_tried_again),
        SCRIPTS_TEST(test_scripts_backoff_grows_and_is_forgotten_by_a_success),
        SCRIPTS_TEST(test_scripts_invalid_object_waits_for_an_edit),
        SCRIPTS_TEST(test_scripts_object_that_is_going_is_left_alone),
        SCRIPTS_TEST(test_scripts_watch_the_part_that_they_declare),
        SCRIPTS_TEST(test_scripts_owner_hears_of_its_children_and_of_none_else),
        SCRIPTS_TEST(test_scripts_owner_is_asked_for_before_a_child_is_made_again),
        SCRIPTS_TEST(test_scripts_timer_of_an_earlier_run_is_taken_back),
        SCRIPTS_TEST(test_scripts_wait_for_every_cache_of_theirs),
        SCRIPTS_TEST(test_scripts_stop_waits_for_what_is_under_way),
        SCRIPTS_TEST(test_scripts_stop_begins_nothing_that_waits),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
