/* Versions of a script on their way in and out, on a scripted API server and a fake clock: what
 * takes over, when, and what stays when something is broken. */
#include "run_scripts.h"

#include "operator/text_check.h"

static void test_scripts_go_live_and_reconcile(void **state)
{
    struct world *world = *state;
    ML_AUTO_FREE char *one = script("one", "return { status = { phase = 'ONE' } }");
    assert_false(ready(world));
    tell(world, one, NULL);
    assert_true(ready(world));
    assert_live(world, "one");
    struct fake_call *write = only_write(world);
    assert_string_equal(write->method, "PATCH");
    assert_string_equal(write->body, "{\"metadata\":{\"uid\":\"ua\",\"resourceVersion\":\"1\"},"
                                     "\"status\":{\"phase\":\"ONE\"}}");
    accept(world, write, 11, "ONE");
    assert_int_equal(world->write_count, 0); /* it says what is: nothing is left to write */
    struct ml_buf page = ML_BUF_INIT;
    ml_metrics_write(world->metrics, &page); /* its first refusal will be an increase */
    assert_non_null(
        strstr(ml_buf_cstr(&page), "moonloop_script_refused_total{file=\"a.lua\"} 0\n"));
    assert_non_null(
        strstr(ml_buf_cstr(&page), "moonloop_script_quarantined_total{file=\"a.lua\"} 0\n"));
    ml_buf_fini(&page);
}

/* How often the page of metrics has the line, for what runs now. */
static size_t count_info(struct world *world, const char *controller, const char *version)
{
    ML_AUTO(ml_buf_fini) struct ml_buf page = ML_BUF_INIT;
    const char *revision = strstr(world->reported, ", revision ");
    ML_AUTO_FREE char *line = ml_asprintf(
        "moonloop_script_info{controller=\"%s\",revision=\"%s\",source=\"test\","
        "resource_version=\"%s\"} 1\n",
        controller, revision ? revision + strlen(", revision ") : "", version);
    ml_metrics_write(world->metrics, &page);
    size_t count = 0;
    for (const char *at = ml_buf_cstr(&page); (at = strstr(at, line)); at++)
        count++;
    return count;
}

static void test_scripts_show_the_revision_that_runs(void **state)
{
    struct world *world = *state;
    ML_AUTO_FREE char *one = script("one", "return { status = { phase = 'ONE' } }");
    ML_AUTO_FREE char *two = script("one", "return { status = { phase = 'TWO' } }");
    world->source.version = ml_strdup("41");
    tell(world, one, NULL);
    accept(world, only_write(world), 11, "ONE");
    assert_int_equal(count_info(world, "one", "41"), 1);
    assert_int_equal(unit_count(world->log.fd, "resourceVersion=\"41\""), 1);
    ML_AUTO_FREE char *before = ml_strdup(world->reported);
    free(world->source.version);
    world->source.version = ml_strdup("42");
    tell(world, two, NULL);
    assert_string_not_equal(world->reported, before);
    assert_int_equal(count_info(world, "one", "42"), 1);
    assert_int_equal(count_info(world, "one", "41"), 0);
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
        {"return {}", "Warning ScriptRefused: a.lua: returns a table that is not a"},
    };
    tell(world, one, NULL);
    for (size_t i = 0; i < ML_COUNT(broken); i++) {
        tell(world, broken[i].text, NULL);
        advance(world, ML_NS_PER_S); /* loading has a share of the CPU, too */
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

/* The first version ever, and the others of its folder. */
static void test_scripts_entry_that_is_no_file_stops_no_other(void **state)
{
    struct world *world = *state;
    ML_AUTO_FREE char *one = script("one", "return");
    ML_AUTO_FREE char *huge = ml_zalloc(ML_SCRIPT_SOURCE_MAX + 2);
    memset(huge, '-', ML_SCRIPT_SOURCE_MAX + 1);
    tell(world, one, huge);
    assert_live(world, "one");
    assert_false(ready(world));
    world->reported[0] = '\0';
    tell(world, one, huge);
    assert_string_equal(world->reported, ""); /* told once */
    tell(world, one, NULL);
    assert_string_equal(world->reported, ""); /* that is the repair, and no refusal */
    assert_true(ready(world));                /* it never worked: nobody waits for it */
}

static bool has_metric(struct world *world, const char *line)
{
    ML_AUTO(ml_buf_fini) struct ml_buf page = ML_BUF_INIT;
    ml_metrics_write(world->metrics, &page);
    return strstr(ml_buf_cstr(&page), line) != NULL;
}

/* As long as it lasts, and not only when it begins. */
static void test_scripts_refused_file_is_shown_while_it_is_refused(void **state)
{
    struct world *world = *state;
    ML_AUTO_FREE char *one = script("one", "return");
    tell(world, one, NULL);
    assert_true(has_metric(world, "\nmoonloop_script_refused{file=\"a.lua\"} 0\n"));
    tell(world, "return moonloop.controller {", NULL);
    assert_true(has_metric(world, "\nmoonloop_script_refused{file=\"a.lua\"} 1\n"));
    tell(world, one, NULL); /* it runs still, and is what the source has */
    assert_true(has_metric(world, "\nmoonloop_script_refused{file=\"a.lua\"} 0\n"));
    tell(world, one, one); /* the same name twice */
    assert_true(has_metric(world, "\nmoonloop_script_refused{file=\"b.lua\"} 1\n"));
    assert_true(has_metric(world, "\nmoonloop_script_refused_total{file=\"b.lua\"} 1\n"));
    world->reported[0] = '\0';
    tell(world, one, NULL);
    assert_string_equal(world->reported, "");
    assert_true(has_metric(world, "\nmoonloop_script_refused{file=\"b.lua\"} 0\n"));
    assert_true(has_metric(world, "\nmoonloop_script_refused_total{file=\"b.lua\"} 1\n"));
}

/* The OpenAPI document of Things whose spec has this field. */
static char *document(const char *field)
{
    return ml_asprintf("{\"openapi\":\"3.0.0\",\"paths\":{},\"components\":{\"schemas\":{"
                       "\"dev.test.v1.Thing\":{\"type\":\"object\",\"properties\":{"
                       "\"spec\":{\"type\":\"object\",\"properties\":{"
                       "\"%s\":{\"type\":\"string\"}}}},"
                       "\"x-kubernetes-group-version-kind\":[{\"group\":\"test.dev\","
                       "\"version\":\"v1\",\"kind\":\"Thing\"}]}}}}",
                       field);
}

/* A CustomResourceDefinition and the script that needs its new field come in any order. */
static void test_scripts_refused_for_a_field_goes_live_when_its_kind_has_it(void **state)
{
    struct world *world = *state;
    ML_AUTO_FREE char *without = document("want"), *with = document("size");
    ML_AUTO_FREE char *one = script("one", "ctx.log(thing.spec.size)");
    world->openapi = without;
    tell(world, one, NULL);
    assert_string_equal(
        world->reported,
        "Warning ScriptRefused: a.lua:4: Thing of test.dev/v1 has no field 'spec.size'");
    assert_false(ready(world));
    world->reported[0] = '\0';
    advance(world, 20 * ML_NS_PER_S);
    assert_int_equal(world->asked_again, 0);
    world->openapi = with;
    advance(world, 30 * ML_NS_PER_S);
    assert_int_equal(world->asked_again, 1);
    assert_string_equal(world->reported, ""); /* a refusal is told once */
    tell(world, one, NULL);
    assert_live(world, "one");
    assert_true(ready(world));
    advance(world, 600 * ML_NS_PER_S);
    assert_int_equal(world->asked_again, 1);
}

static void test_scripts_with_names_that_are_allowed_wait_for_their_kinds(void **state)
{
    struct world *world = *state;
    ML_AUTO_FREE char *one = script("one", "ctx.lgo('a')");
    world->source.allows_unknown_names = true;
    world->kind_installed = false;
    tell(world, one, NULL);
    advance(world, ML_NS_PER_S);
    assert_false(ready(world));
    assert_string_equal(world->reported, "");
    world->kind_installed = true;
    for (int i = 0; i < 60; i++)
        advance(world, ML_NS_PER_S);
    assert_true(ready(world));
}

/* A version that is refused for its names beside one that runs. */
static void test_scripts_refused_beside_a_running_one_is_looked_at_again(void **state)
{
    struct world *world = *state;
    ML_AUTO_FREE char *without = document("want"), *with = document("size");
    ML_AUTO_FREE char *one = script("one", "return");
    ML_AUTO_FREE char *two = script("one", "ctx.log(thing.spec.size)");
    static const char *const loaded =
        "Normal ScriptLoaded: a.lua: controller one runs the new version";
    world->openapi = without;
    tell(world, one, NULL);
    assert_int_equal(strncmp(world->reported, loaded, strlen(loaded)), 0);
    tell(world, two, NULL);
    assert_non_null(strstr(world->reported, "ScriptRefused"));
    assert_true(has_metric(world, "\nmoonloop_script_refused{file=\"a.lua\"} 1\n"));
    world->reported[0] = '\0';
    tell(world, one, NULL); /* it runs still */
    assert_string_equal(world->reported, "");
    assert_true(has_metric(world, "\nmoonloop_script_refused{file=\"a.lua\"} 0\n"));
    tell(world, two, NULL);
    assert_non_null(strstr(world->reported, "ScriptRefused"));
    world->reported[0] = '\0';
    tell(world, two, NULL); /* known */
    assert_string_equal(world->reported, "");
    world->source.allows_unknown_names = true;
    tell(world, two, NULL);
    assert_int_equal(strncmp(world->reported, loaded, strlen(loaded)), 0);
    assert_true(has_metric(world, "\nmoonloop_script_refused{file=\"a.lua\"} 0\n"));
    world->source.allows_unknown_names = false;
    tell(world, one, NULL);
    tell(world, two, NULL);
    assert_non_null(strstr(world->reported, "ScriptRefused"));
    world->openapi = with;
    advance(world, 20 * ML_NS_PER_S);
    assert_int_equal(world->asked_again, 1);
    tell(world, two, NULL);
    assert_int_equal(strncmp(world->reported, loaded, strlen(loaded)), 0);
}

/* A CustomResourceDefinition that comes after the script brings the schema that it is held to. */
static void test_scripts_are_checked_with_a_schema_that_comes_with_its_kind(void **state)
{
    struct world *world = *state;
    ML_AUTO_FREE char *want = document("want");
    ML_AUTO_FREE char *one = script("one", "ctx.log(thing.spec.size)");
    world->openapi = "{\"openapi\":\"3.0.0\",\"components\":{\"schemas\":{}}}";
    world->kind_installed = false;
    tell(world, one, NULL);
    advance(world, ML_NS_PER_S);
    assert_string_equal(world->reported, "");
    world->kind_installed = true;
    world->openapi = want;
    for (int i = 0; i < 60; i++)
        advance(world, ML_NS_PER_S);
    assert_string_equal(
        world->reported,
        "Warning ScriptRefused: a.lua:4: Thing of test.dev/v1 has no field 'spec.size'");
    assert_false(ready(world));
}

/* A process with many worlds reads each text once. */
static void test_scripts_that_were_checked_are_not_checked_again(void **state)
{
    struct world *world = *state;
    struct ml_checked_texts checked = {{0}, 0};
    ML_AUTO_FREE char *want = document("want");
    ML_AUTO_FREE char *one = script("one", "ctx.log(thing.spec.want)");
    ML_AUTO_FREE char *two = script("one", "ctx.log(thing.spec.want, {})");
    ML_AUTO_FREE char *bad = script("one", "ctx.log(thing.spec.size)");
    world->services.checked = &checked;
    tell(world, one, NULL); /* without a schema: another server may know better */
    assert_live(world, "one");
    assert_int_equal(checked.next, 0);
    world->openapi = want;
    tell(world, two, NULL);
    tell(world, one, NULL);
    assert_live(world, "one");
    assert_int_equal(checked.next, 2);
    int asked = world->documents_asked;
    tell(world, two, NULL);
    tell(world, one, NULL);
    assert_live(world, "one");
    assert_int_equal(world->documents_asked, asked);
    for (int i = 0; i < 2; i++) { /* a problem is told each time */
        tell(world, bad, NULL);
        assert_non_null(strstr(world->reported, "ScriptRefused"));
        tell(world, two, NULL);
        tell(world, one, NULL);
    }
    assert_int_equal(checked.next, 2);
}

/* An API server cannot give the document of an aggregated one that is away. */
static void test_scripts_go_live_without_a_document_that_is_not_to_be_had(void **state)
{
    struct world *world = *state;
    ML_AUTO_FREE char *one = script("one", "ctx.log(thing.spec.size)");
    world->openapi = "";
    tell(world, one, NULL);
    assert_false(ready(world));
    for (int i = 0; i < 30; i++)
        advance(world, ML_NS_PER_S);
    assert_true(ready(world));
    assert_int_equal(world->documents_asked, 3);
}

/* A ConfigMap that was deleted, or has no key of a script. */
static void test_scripts_without_their_source_are_without_a_file(void **state)
{
    struct world *world = *state;
    ML_AUTO_FREE char *one = script("one", "return");
    struct ml_err err;
    tell(world, one, NULL);
    assert_true(has_metric(world, "\nmoonloop_controllers_without_file 0\n"));
    ml_err_set(&err, ML_ENOT_FOUND, "configmap d/x was deleted");
    ml_source_notify_trouble(&world->source, &err);
    assert_true(has_metric(world, "\nmoonloop_controllers_without_file 1\n"));
    assert_false(has_metric(world, "moonloop_script_refused_total{file=\"\"}"));
    tell(world, one, NULL);
    assert_true(has_metric(world, "\nmoonloop_controllers_without_file 0\n"));
}

static void test_scripts_refused_file_that_others_require_now_is_waited_for_no_more(void **state)
{
    struct world *world = *state;
    ML_AUTO_FREE char *one = script("one", "return");
    ML_AUTO_FREE char *user = ml_asprintf("require 'b'\n%s", one);
    tell(world, one, "return {}");
    assert_false(ready(world));
    tell(world, user, "return {}");
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
    assert_live(world, "two");
    assert_non_null(strstr(only_write(world)->body, "\"phase\":\"TWO\""));
    fake_reply(world->writes[0], 200, "{}");
}

/* Not ready, and this is the reason. */
static void expect_awaits(const struct world *world, const char *what)
{
    ML_AUTO(ml_buf_fini) struct ml_buf why = ML_BUF_INIT;
    assert_false(ml_scripts_ready(world->scripts, &why));
    assert_string_equal(ml_buf_cstr(&why), what);
}

static void test_scripts_wait_for_a_kind_that_is_not_installed(void **state)
{
    struct world *world = *state;
    ML_AUTO_FREE char *one = script("one", "return { status = { phase = 'ONE' } }");
    world->kind_installed = false;
    tell(world, one, NULL);
    advance(world, 30 * ML_NS_PER_S);
    expect_awaits(world, "a.lua: the server has no kind Thing in test.dev/v1; is its CRD "
                         "installed?\n");
    world->kind_installed = true;
    for (int i = 0; i < 12 && !ready(world); i++)
        advance(world, ML_NS_PER_S);
    assert_true(ready(world));
    fake_reply(only_write(world), 200, "{}");
}

/* The server is asked for the declared part, and that cache shows the script's own writes. */
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
    expect_awaits(world, "a.lua: the first list of parts is not complete yet\n");
    assert_int_equal(world->write_count, 0);
    reply_no_parts(world);
    assert_true(ready(world));
    accept(world, only_write(world), 11, "ONE");
}

static void set_true(void *context)
{
    *(bool *)context = true;
}

/* Offset of a text in the log; -1: it is not there. */
static long place_in_log(const struct world *world, const char *text)
{
    static char log[256 * 1024];
    ssize_t len = pread(world->log.fd, log, sizeof log - 1, 0);
    log[ML_MAX(len, 0)] = '\0';
    const char *found = strstr(log, text);
    return found ? found - log : -1;
}

/* Of a hundred things. Half of them took part in no change since the first version went live. */
static void test_scripts_indexes_are_complete_when_a_version_goes_live(void **state)
{
    struct world *world = *state;
    ML_AUTO_FREE char *things = many_things();
    ML_AUTO_FREE char *one = script("one", "");
    static const char two[] =
        "local m = require 'moonloop' local Thing = m.kind('test.dev/v1', 'Thing')\n"
        "local by = m.index(Thing, function(t) for i = 1, 20000 do end\n"
        "if t.metadata.name == 't7' then error 'odd' end return t.metadata.name:sub(1, 2) end)\n"
        "return m.controller { name = 'one', reconciles = Thing, reconcile = function(t, ctx)\n"
        "if t.metadata.name == 't30' then return { status = { phase = 'has ' ..\n"
        "#ctx.list(Thing, { index = by, key = 't3' }) } } end end }\n";
    world->things = things;
    tell(world, one, NULL);
    assert_int_equal(world->write_count, 0);
    tell(world, two, NULL);
    for (int i = 0; i < 100 && world->write_count < 2; i++)
        advance(world, ML_NS_PER_S);
    assert_int_equal(world->write_count, 2); /* and an Event about t7 */
    const struct fake_call *patch = strstr(world->writes[0]->path, "/t30/") ? world->writes[0]
                                                                            : world->writes[1];
    assert_non_null(strstr(patch->body, "\"phase\":\"has 11\""));
    long failed = place_in_log(world, "function of an index failed");
    assert_true(failed >= 0 && failed < place_in_log(world, "new version is live"));
    for (size_t i = 0; i < 2; i++)
        fake_reply(world->writes[i], 201, "{}");
}

static void test_scripts_stop_with_nothing_under_way_is_told_from_the_loop(void **state)
{
    struct world *world = *state;
    bool stopped = false;
    ml_scripts_stop(world->scripts, set_true, &stopped);
    assert_false(stopped);
    ml_loop_poll(world->loop);
    assert_true(stopped);
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

/* The shards may change while the process ends: keys are handed over again. */
static void test_scripts_stop_counts_a_controller_once(void **state)
{
    struct world *world = *state;
    ML_AUTO_FREE char *one = script("one", "return");
    ML_AUTO_FREE char *two = script("two", "return { status = { phase = 'TWO' } }");
    struct ml_controller *all[ML_CONTROLLERS_MAX];
    bool stopped = false;
    tell(world, one, two);
    size_t count = ml_scripts_controllers(world->scripts, all);
    assert_int_equal(count, 2);
    ml_scripts_stop(world->scripts, set_true, &stopped);
    for (int i = 0; i < 3; i++) {
        ml_loop_poll(world->loop);
        for (size_t n = 0; n < count; n++)
            (void)ml_controller_hand_over(all[n], false);
    }
    ml_loop_poll(world->loop);
    assert_false(stopped); /* a write is under way */
    fake_reply(only_write(world), 200, "{}");
    ml_loop_poll(world->loop);
    assert_true(stopped);
}

/* Tells one file, r<number>.lua, of a controller of that name. */
static void tell_renamed(struct world *world, int number)
{
    struct ml_files files = ML_FILES_INIT;
    struct ml_err err = ML_ERR_INIT;
    ML_AUTO_FREE char *name = ml_asprintf("r%d", number);
    ML_AUTO_FREE char *file = ml_asprintf("%s.lua", name);
    ML_AUTO_FREE char *text = script(name, "return");
    assert_int_equal(
        ml_files_add(&files, &ml_files_scripts, ml_str_of(file), ml_str_of(text), &err), 0);
    ml_source_notify_files(&world->source, &files);
    ml_files_fini(&files);
    advance(world, ML_NS_PER_S);
}

static void test_scripts_controllers_without_a_file_are_counted_and_have_an_end(void **state)
{
    struct world *world = *state;
    for (int i = 0; i < 101; i++)
        tell_renamed(world, i);
    assert_non_null(strstr(world->reported, "Warning ScriptRefused: r9"));
    struct ml_buf why = ML_BUF_INIT;
    assert_false(ml_scripts_ready(world->scripts, &why));
    assert_non_null(strstr(ml_buf_cstr(&why),
                           "r100.lua: the limit of 100 controllers is reached; a restart "
                           "ends those whose file is gone: r0, r1"));
    ml_buf_clear(&why);
    ml_metrics_write(world->metrics, &why);
    assert_non_null(strstr(ml_buf_cstr(&why), "\nmoonloop_controllers_without_file 100\n"));
    ml_buf_fini(&why);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        SCRIPTS_TEST(test_scripts_go_live_and_reconcile),
        SCRIPTS_TEST(test_scripts_show_the_revision_that_runs),
        SCRIPTS_TEST(test_scripts_swap_lets_the_old_version_finish),
        SCRIPTS_TEST(test_scripts_refused_version_changes_nothing_that_runs),
        SCRIPTS_TEST(test_scripts_deleted_file_changes_nothing_that_runs),
        SCRIPTS_TEST(test_scripts_entry_that_is_no_file_stops_no_other),
        SCRIPTS_TEST(test_scripts_refused_file_is_shown_while_it_is_refused),
        SCRIPTS_TEST(test_scripts_refused_for_a_field_goes_live_when_its_kind_has_it),
        SCRIPTS_TEST(test_scripts_with_names_that_are_allowed_wait_for_their_kinds),
        SCRIPTS_TEST(test_scripts_refused_beside_a_running_one_is_looked_at_again),
        SCRIPTS_TEST(test_scripts_that_were_checked_are_not_checked_again),
        SCRIPTS_TEST(test_scripts_are_checked_with_a_schema_that_comes_with_its_kind),
        SCRIPTS_TEST(test_scripts_go_live_without_a_document_that_is_not_to_be_had),
        SCRIPTS_TEST(test_scripts_without_their_source_are_without_a_file),
        SCRIPTS_TEST(test_scripts_refused_file_that_others_require_now_is_waited_for_no_more),
        SCRIPTS_TEST(test_scripts_with_one_name_the_second_is_refused),
        SCRIPTS_TEST(test_scripts_renamed_controller_takes_over),
        SCRIPTS_TEST(test_scripts_wait_for_a_kind_that_is_not_installed),
        SCRIPTS_TEST(test_scripts_watch_the_part_that_they_declare),
        SCRIPTS_TEST(test_scripts_wait_for_every_cache_of_theirs),
        SCRIPTS_TEST(test_scripts_indexes_are_complete_when_a_version_goes_live),
        SCRIPTS_TEST(test_scripts_stop_with_nothing_under_way_is_told_from_the_loop),
        SCRIPTS_TEST(test_scripts_stop_waits_for_what_is_under_way),
        SCRIPTS_TEST(test_scripts_stop_begins_nothing_that_waits),
        SCRIPTS_TEST(test_scripts_stop_counts_a_controller_once),
        SCRIPTS_TEST(test_scripts_controllers_without_a_file_are_counted_and_have_an_end),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
