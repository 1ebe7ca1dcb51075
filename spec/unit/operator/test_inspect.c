/* The answers to the questions why an object was reconciled, or was not. */
#include "run_scripts.h"

#include "codec/json.h"
#include "operator/inspect.h"
#include "state/journal.h"

static int set_up_journal(void **state)
{
    set_up(state);
    struct world *world = *state;
    world->services.journal = ml_journal_new(ML_JOURNAL_BYTES);
    return 0;
}

static int tear_down_journal(void **state)
{
    struct world *world = *state;
    struct ml_journal *journal = world->services.journal;
    tear_down(state);
    ml_journal_free(journal);
    return 0;
}

static void ask_path(struct world *world, const char *path, struct ml_str why, struct ml_buf *out)
{
    const struct ml_inspect_view view = {
        .services = &world->services, .scripts = world->scripts, .why = why};
    struct ml_err err = ML_ERR_INIT;
    ml_buf_clear(out);
    assert_int_equal(200, ml_inspect_answer(&view, path, "", out));
    assert_int_equal(0, ml_json_check(ml_buf_str(out), 0, &err));
}

/* The caller frees it. */
static char *ask(struct world *world, const char *kind, const char *key)
{
    ML_AUTO_FREE char *path = ml_asprintf("/why/%s/%s", kind, key);
    struct ml_buf out = ML_BUF_INIT;
    ask_path(world, path, ML_STR(""), &out);
    return ml_buf_take(&out);
}

static void trace(struct world *world, uint64_t after, struct ml_buf *out)
{
    ML_AUTO_FREE char *path = ml_asprintf("/trace/%llu", (unsigned long long)after);
    ask_path(world, path, ML_STR(""), out);
}

/* The text at a path of the answer: three keys at most. */
static void assert_at(const char *answer, const char *list, const char *index, const char *key,
                      const char *expected)
{
    ML_AUTO_FREE char *text = ml_json_find_string(ml_str_of(answer), list, index, key, NULL);
    if (!text || strcmp(text, expected) != 0)
        fail_msg("%s.%s.%s is %s instead of %s: %s", list, index, key, text ? text : "(none)",
                 expected, answer);
}

static void assert_has(const char *answer, const char *part)
{
    if (!strstr(answer, part))
        fail_msg("%s lacks %s", answer, part);
}

static void test_why_tells_the_run_its_cause_and_its_write(void **state)
{
    struct world *world = *state;
    ML_AUTO_FREE char *one = script(
        "one", "return { status = { phase = thing.spec and thing.spec.want or 'ONE' } }");
    tell(world, one, NULL);
    accept(world, only_write(world), 11, "ONE");
    change(world, 12, "TWO", "");
    fake_reply(only_write(world), 200, "{}");
    ml_loop_poll(world->loop);
    ML_AUTO_FREE char *answer = ask(world, "Thing", "d/a");
    assert_at(answer, "controllers", "0", "controller", "one");
    assert_at(answer, "controllers", "0", "now", "nothing is due: a change wakes it");
    assert_at(answer, "runs", "0", "cause", "start");
    assert_at(answer, "runs", "1", "cause", "Thing d/a: status, spec.want");
    assert_at(answer, "runs", "1", "result", "success");
    assert_at(answer, "writes", "1", "verb", "patch status of");
    assert_at(answer, "writes", "1", "name", "d/a");
    assert_at(answer, "writes", "1", "for", "d/a");
    assert_at(answer, "writes", "1", "place", "a.lua");
    assert_has(answer, "\"found\":true");
}

static void test_why_knows_a_kind_by_its_resource(void **state)
{
    struct world *world = *state;
    ML_AUTO_FREE char *one = script("one", "return { status = { phase = 'ONE' } }");
    tell(world, one, NULL);
    accept(world, only_write(world), 11, "ONE");
    ML_AUTO_FREE char *answer = ask(world, "THINGS", "d/a");
    assert_has(answer, "{\"kind\":\"Thing\",");
    assert_at(answer, "runs", "0", "result", "success");
    ML_AUTO_FREE char *other = ask(world, "Node", "d/a");
    assert_has(other, "\"controllers\":[],\"runs\":[],\"writes\":[]");
}

static void test_why_tells_who_made_an_object_and_where(void **state)
{
    struct world *world = *state;
    ML_AUTO_FREE char *one = ml_asprintf(
        "local m = require 'moonloop'\n"
        "local Part = m.kind('test.dev/v1', 'Part')\n"
        "return m.controller {\n"
        "  name = 'one', reconciles = m.kind('test.dev/v1', 'Thing'), owns = { Part },\n"
        "  reconcile = function(thing, ctx)\n"
        "    ctx.create { apiVersion = 'test.dev/v1', kind = 'Part', metadata = { name = 'p' } }\n"
        "  end,\n"
        "}\n");
    tell(world, one, NULL);
    reply_no_parts(world);
    fake_reply(only_write(world), 201,
               "{\"kind\":\"Part\",\"apiVersion\":\"test.dev/v1\",\"metadata\":{\"name\":\"p\","
               "\"namespace\":\"d\",\"resourceVersion\":\"20\"}}");
    ml_loop_poll(world->loop);
    ML_AUTO_FREE char *answer = ask(world, "parts", "d/p");
    assert_at(answer, "writes", "0", "verb", "create");
    assert_at(answer, "writes", "0", "controller", "one");
    assert_at(answer, "writes", "0", "for", "d/a");
    assert_at(answer, "writes", "0", "place", "a.lua:6");
    ML_AUTO_FREE char *other = ask(world, "part", "d/q");
    assert_has(other, "\"writes\":[]");
}

static void test_why_tells_a_failure_and_the_next_try(void **state)
{
    struct world *world = *state;
    ML_AUTO_FREE char *one = script("one", "error('no luck')");
    tell(world, one, NULL);
    accept_all(world);
    ML_AUTO_FREE char *answer = ask(world, "Thing", "d/a");
    assert_at(answer, "controllers", "0", "now", "it failed, and is tried again");
    assert_at(answer, "controllers", "0", "due", "2023-11-14T22:13:20.005000Z");
    assert_at(answer, "runs", "0", "result", "error");
    assert_at(answer, "runs", "0", "error", "a.lua:4: no luck");
}

static void test_why_tells_of_a_time_that_the_script_asked_for(void **state)
{
    struct world *world = *state;
    ML_AUTO_FREE char *one = script("one", "return { requeue_after = 60 }");
    tell(world, one, NULL);
    accept_all(world);
    ML_AUTO_FREE char *answer = ask(world, "Thing", "d/a");
    assert_at(answer, "controllers", "0", "now", "its last run asked to be called again");
    assert_at(answer, "controllers", "0", "due", "2023-11-14T22:14:20.000000Z");
    advance(world, 61 * ML_NS_PER_S);
    accept_all(world);
    ML_AUTO_FREE char *later = ask(world, "Thing", "d/a");
    assert_at(later, "runs", "1", "cause", "requeue");
    assert_has(later, "\"cause\":\"requeue\",\"waited_ms\":1000.0,");
}

static void test_why_tells_why_nothing_runs(void **state)
{
    struct world *world = *state;
    ML_AUTO_FREE char *one = script("one", "return nil");
    struct ml_controller *all[ML_CONTROLLERS_MAX];
    tell(world, one, NULL);
    accept_all(world);
    ML_AUTO_FREE char *absent = ask(world, "Thing", "d/b");
    assert_has(absent, "\"found\":false,\"acts\":true,");
    assert_at(absent, "controllers", "0", "now", "no such object is in the cache");
    world->services.standby = true;
    ML_AUTO_FREE char *standby = ask(world, "Thing", "d/a");
    assert_at(standby, "controllers", "0", "now",
              "controller one runs for no object: this replica stands by; another one leads");
    assert_has(standby, "\"found\":true,\"acts\":false,");
    world->services.standby = false;
    assert_int_equal(1, ml_scripts_controllers(world->scripts, all));
    ml_controller_pause(all[0], true);
    ML_AUTO_FREE char *paused = ask(world, "Thing", "d/a");
    assert_at(paused, "controllers", "0", "now",
              "controller one runs for no object: it is paused (moonloop pause CONTROLLER --end)");
    ml_controller_pause(all[0], false);
    change(world, 12, "X", ",\"annotations\":{\"moonloop.dev/paused\":\"true\"}");
    ML_AUTO_FREE char *object = ask(world, "Thing", "d/a");
    assert_at(object, "controllers", "0", "now",
              "it is paused, by its annotation moonloop.dev/paused");
}

static void test_why_tells_what_was_read(void **state)
{
    struct world *world = *state;
    ML_AUTO_FREE char *one = ml_asprintf(
        "local m = require 'moonloop'\n"
        "local Part = m.kind('test.dev/v1', 'Part')\n"
        "return m.controller {\n"
        "  name = 'one', reconciles = m.kind('test.dev/v1', 'Thing'), owns = { Part },\n"
        "  reconcile = function(thing, ctx)\n"
        "    local part = ctx.get(Part, 'a-p', 'd')\n"
        "    local _ = part and part.status.phase\n"
        "    for _, each in ipairs(ctx.list(Part)) do local _ = each.spec.size end\n"
        "    local _ = thing.status.phase\n"
        "  end,\n"
        "}\n");
    tell(world, one, NULL);
    fake_reply(world->parts, 200,
               "{\"kind\":\"PartList\",\"apiVersion\":\"test.dev/v1\","
               "\"metadata\":{\"resourceVersion\":\"10\"},\"items\":[{\"metadata\":{\"name\":"
               "\"a-p\",\"namespace\":\"d\",\"uid\":\"up\",\"resourceVersion\":\"2\"},"
               "\"spec\":{\"size\":1},\"status\":{\"phase\":\"X\"}}]}");
    ml_loop_poll(world->loop);
    accept_all(world);
    ML_AUTO_FREE char *answer = ask(world, "Thing", "d/a");
    assert_has(answer, "\"status\"");
    assert_has(answer, "\"Part d/a-p: status.phase\"");
    assert_has(answer, "\"list of Part: spec.size\"");
}

static void test_trace_tells_what_came_after_an_entry(void **state)
{
    struct world *world = *state;
    ML_AUTO(ml_buf_fini) struct ml_buf before = ML_BUF_INIT, all = ML_BUF_INIT, rest = ML_BUF_INIT;
    ML_AUTO_FREE char *one = script("one", "return { status = { phase = 'ONE' } }");
    trace(world, 0, &before);
    assert_string_equal("{\"entries\":[],\"more\":false,\"missed\":0,\"next\":0}",
                        ml_buf_cstr(&before));
    tell(world, one, NULL);
    accept(world, only_write(world), 11, "ONE");
    trace(world, 0, &all);
    const char *answer = ml_buf_cstr(&all);
    assert_has(answer, "{\"entries\":[{\"write\":{\"at\":");
    assert_has(answer, "},{\"run\":{\"at\":");
    assert_has(answer, "\"controller\":\"one\",\"for\":\"d/a\",\"revision\":");
    assert_has(answer, "],\"more\":false,\"missed\":0,\"next\":2}");
    trace(world, 1, &rest);
    assert_null(strstr(ml_buf_cstr(&rest), "\"write\""));
    assert_has(ml_buf_cstr(&rest), "{\"entries\":[{\"run\":");
}

/* Of those that have made room, and of a number that there is not yet. */
static void test_trace_counts_what_it_cannot_tell(void **state)
{
    struct world *world = *state;
    struct ml_journal *journal = world->services.journal;
    const struct ml_journal_entry entry = {
        .what = ML_JOURNAL_RUN, .controller = ML_STR("one"), .key = ML_STR("d/a")};
    ML_AUTO(ml_buf_fini) struct ml_buf first = ML_BUF_INIT, later = ML_BUF_INIT;
    for (int i = 0; i < 20000; i++)
        ml_journal_add(journal, &entry);
    trace(world, 5, &first);
    uint64_t missed, next;
    struct ml_str raw;
    assert_true(ml_json_find(ml_buf_str(&first), &raw, "missed", NULL));
    assert_true(ml_str_to_u64(raw, &missed));
    assert_true(ml_json_find(ml_buf_str(&first), &raw, "next", NULL));
    assert_true(ml_str_to_u64(raw, &next));
    assert_true(missed > 0);
    assert_true(next > 5 + missed && next < 20000);
    assert_has(ml_buf_cstr(&first), "],\"more\":true,");
    trace(world, 30000, &later);
    assert_string_equal("{\"entries\":[],\"more\":false,\"missed\":0,\"next\":20000}",
                        ml_buf_cstr(&later));
    for (bool more = true; more; more = strstr(ml_buf_cstr(&later), "\"more\":true")) {
        trace(world, next, &later);
        assert_has(ml_buf_cstr(&later), "\"missed\":0,");
        assert_true(ml_json_find(ml_buf_str(&later), &raw, "next", NULL));
        assert_true(ml_str_to_u64(raw, &next));
    }
    assert_int_equal(20000, next);
}

static void test_status_lists_controllers(void **state)
{
    struct world *world = *state;
    ML_AUTO_FREE char *one = script("one", "error('no luck')");
    ML_AUTO(ml_buf_fini) struct ml_buf out = ML_BUF_INIT;
    tell(world, one, "return nonsense(");
    accept_all(world);
    ask_path(world, "/status", ML_STR("b.lua is bad\n"), &out);
    const char *answer = ml_buf_cstr(&out);
    assert_has(answer, "{\"leads\":true,\"ready\":false,\"checks\":[\"b.lua is bad\",");
    assert_at(answer, "controllers", "0", "controller", "one");
    assert_at(answer, "controllers", "0", "script", "a.lua");
    assert_at(answer, "controllers", "0", "kind", "Thing");
    assert_has(answer, "\"objects\":1,\"ready\":0,\"running\":0,\"waiting\":1,\"failing\":1");
}

/* The caller frees it. */
static char *top(struct world *world, const char *controller)
{
    ML_AUTO_FREE char *path = ml_asprintf("/top/%s", controller);
    struct ml_buf out = ML_BUF_INIT;
    ask_path(world, path, ML_STR(""), &out);
    return ml_buf_take(&out);
}

/* The values of one member of the keys, one after another: "fails due due". */
static void assert_keys(const char *answer, const char *member, const char *expected)
{
    ML_AUTO(ml_buf_fini) struct ml_buf all = ML_BUF_INIT;
    for (int i = 0;; i++) {
        ML_AUTO_FREE char *index = ml_asprintf("%d", i);
        ML_AUTO_FREE char *text = ml_json_find_string(ml_str_of(answer), "keys", index, member,
                                                      NULL);
        if (!text)
            break;
        ml_buf_printf(&all, "%s%s", i > 0 ? " " : "", text);
    }
    assert_string_equal(expected, ml_buf_cstr(&all));
}

static const char *const each_in_its_way =
    "local is = {}\n"
    "is.t0 = function() error('\\27[31mred') end\n"
    "is.t1 = function() return { requeue_after = 60 } end\n"
    "is.t2 = function() return { requeue_after = 30 } end\n"
    "is.t3 = function() return { status = { phase = 'X' } } end\n"
    "local f = is[thing.metadata.name]\n"
    "return f and f()\n";

static void test_top_tells_the_keys_in_trouble_first(void **state)
{
    struct world *world = *state;
    ML_AUTO_FREE char *one = script("one", each_in_its_way);
    ML_AUTO_FREE char *things = many_things();
    world->things = things;
    tell(world, one, NULL);
    ML_AUTO_FREE char *answer = top(world, "");
    assert_keys(answer, "name", "d/t0 d/t3 d/t2 d/t1");
    assert_keys(answer, "state", "runs runs due due");
    assert_has(answer, ",\"keys_in_all\":4,\"fails_of_host\":0,\"keys\":[");
    assert_has(answer, "\"controllers\":[{\"controller\":\"one\",");
    assert_at(answer, "keys", "2", "kind", "Thing");
    assert_at(answer, "keys", "2", "now", "its last run asked to be called again");
    assert_at(answer, "keys", "2", "due", "2023-11-14T22:13:50.000000Z");
    assert_at(answer, "keys", "2", "result", "requeue_after");
    for (size_t i = 0; i < world->write_count; i++)
        if (strstr(world->writes[i]->path, "t0"))
            fake_reply(world->writes[i], 201, "{}");
    ml_loop_poll(world->loop);
    ML_AUTO_FREE char *later = top(world, "one");
    assert_keys(later, "name", "d/t0 d/t3 d/t2 d/t1");
    assert_keys(later, "state", "fails runs due due");
    assert_at(later, "keys", "0", "now", "it failed, and is tried again");
    assert_at(later, "keys", "0", "due", "2023-11-14T22:13:20.005000Z");
    assert_has(later, "\"error\":\"a.lua:5: \\u001b[31mred\"");
    assert_at(later, "keys", "1", "now", "it runs");
    assert_at(later, "keys", "1", "since", "2023-11-14T22:13:20.000000Z");
    ML_AUTO_FREE char *other = top(world, "two");
    assert_has(other, "\"keys_in_all\":0,\"fails_of_host\":1,\"keys\":[]");
}

/* A list of d/t0, d/t1 and so on. */
static char *things_of(int count)
{
    struct ml_buf list = ML_BUF_INIT;
    ml_buf_puts(&list, "{\"kind\":\"ThingList\",\"apiVersion\":\"test.dev/v1\",\"metadata\":"
                       "{\"resourceVersion\":\"10\"},\"items\":[");
    for (int i = 0; i < count; i++)
        ml_buf_printf(&list,
                      "%s{\"metadata\":{\"name\":\"t%d\",\"namespace\":\"d\",\"uid\":\"u%d\","
                      "\"resourceVersion\":\"1\"}}",
                      i ? "," : "", i, i);
    ml_buf_puts(&list, "]}");
    return ml_buf_take(&list);
}

/* Each of 250 objects is to be called again, but for the last ones, which fail. The errors are
 * longer than what is told of them. */
static void test_top_is_bounded(void **state)
{
    struct world *world = *state;
    ML_AUTO_FREE char *one = script("one",
                                    "local n = tonumber(thing.metadata.name:sub(2))\n"
                                    "if n < 240 then return { requeue_after = 1000 - n } end\n"
                                    "error(('é'):rep(1000))");
    ML_AUTO_FREE char *things = things_of(250);
    world->things = things;
    tell(world, one, NULL);
    accept_all(world);
    ML_AUTO_FREE char *answer = top(world, "");
    assert_has(answer, "\"keys_in_all\":250,\"fails_of_host\":10,");
    assert_at(answer, "keys", "0", "name", "d/t240");
    assert_at(answer, "keys", "9", "state", "fails");
    assert_at(answer, "keys", "10", "name", "d/t239");
    assert_at(answer, "keys", "199", "name", "d/t50");
    assert_null(strstr(answer, "\"d/t49\""));
    ML_AUTO_FREE char *error = ml_json_find_string(ml_str_of(answer), "keys", "0", "error", NULL);
    assert_true(strlen(error) > 250 && strlen(error) <= 256);
    assert_true(ml_str_is_utf8(ml_str_of(error)));
}

static void test_top_tells_who_failed_more_often_first(void **state)
{
    struct world *world = *state;
    ML_AUTO_FREE char *one = script("one",
                                    "if thing.metadata.name == 't9' then error('no luck') end");
    ML_AUTO_FREE char *two = script("two", "local t = thing.metadata.name\n"
                                           "if t == 't4' then error('bad luck') end\n"
                                           "if t == 't9' then return { requeue_after = 60 } end");
    ML_AUTO_FREE char *things = things_of(10);
    world->things = things;
    tell(world, one, NULL);
    for (int i = 0; i < 4; i++) {
        accept_all(world);
        advance(world, ML_NS_PER_S);
    }
    accept_all(world);
    tell(world, one, two);
    accept_all(world);
    ML_AUTO_FREE char *answer = top(world, "");
    assert_keys(answer, "name", "d/t9 d/t4 d/t9");
    assert_keys(answer, "controller", "one two two");
    assert_has(answer, "\"error\":\"a.lua:4: no luck\"");
    assert_at(answer, "keys", "1", "error", "b.lua:5: bad luck");
    assert_at(answer, "keys", "2", "result", "requeue_after");
    assert_has(answer, "\"state\":\"fails\",\"failures\":1,");
    assert_null(strstr(answer, "\"state\":\"due\",\"failures\":1,"));
    /* Nobody remembers its runs; the controller knows its last failure. */
    ml_journal_free(world->services.journal);
    world->services.journal = NULL;
    ML_AUTO_FREE char *later = top(world, "one");
    assert_at(later, "keys", "0", "error", "a.lua:4: no luck");
    assert_has(later, "\"runs\":0,\"error\":");
}

/* The script refuses the object: it is not tried again, and waits in no queue. */
static void test_top_tells_of_an_object_that_is_not_tried_again(void **state)
{
    struct world *world = *state;
    ML_AUTO_FREE char *one = script("one", "return ctx.invalid('spec.title', 'is bad')");
    tell(world, one, NULL);
    accept_all(world);
    ML_AUTO_FREE char *answer = top(world, "");
    assert_keys(answer, "state", "fails");
    assert_at(answer, "keys", "0", "error", "is bad");
    assert_at(answer, "keys", "0", "now", "nothing is due: a change wakes it");
}

static void test_top_tells_of_a_paused_object_and_of_the_cache(void **state)
{
    struct world *world = *state;
    ML_AUTO_FREE char *one = script("one", "return { status = { phase = 'ONE' } }");
    tell(world, one, NULL);
    fake_reply(only_write(world), 200,
               "{\"apiVersion\":\"test.dev/v1\",\"kind\":\"Thing\",\"metadata\":{\"name\":\"a\","
               "\"namespace\":\"d\",\"uid\":\"ua\",\"resourceVersion\":\"11\"},"
               "\"status\":{\"phase\":\"ONE\"}}");
    ml_loop_poll(world->loop);
    ML_AUTO_FREE char *behind = top(world, "");
    assert_keys(behind, "state", "cache");
    assert_at(behind, "keys", "0", "now", "it waits until the cache shows what its last run wrote");
    change(world, 12, "X", ",\"annotations\":{\"moonloop.dev/paused\":\"true\"}");
    accept_all(world);
    ML_AUTO_FREE char *paused = top(world, "");
    assert_keys(paused, "state", "paused");
    assert_at(paused, "keys", "0", "now", "it is paused, by its annotation moonloop.dev/paused");
}

/* Somebody else sets the same field to another value, again and again. */
static void test_top_tells_of_a_slowed_object(void **state)
{
    struct world *world = *state;
    ML_AUTO_FREE char *one = script(
        "one", "local _ = thing.status.phase\nreturn { status = { phase = 'ONE' } }");
    tell(world, one, NULL);
    for (int version = 11; version < 31 && world->write_count > 0; version += 2) {
        struct fake_call *write = world->writes[0];
        world->write_count = 0;
        accept(world, write, version, "ONE");
        ML_AUTO_FREE char *event = ml_asprintf(
            "{\"type\":\"MODIFIED\",\"object\":{\"apiVersion\":\"test.dev/v1\",\"kind\":"
            "\"Thing\",\"metadata\":{\"name\":\"a\",\"namespace\":\"d\",\"uid\":\"ua\","
            "\"resourceVersion\":\"%d\"},\"status\":{\"phase\":\"TWO\"}}}\n",
            version + 1);
        assert_true(fake_piece(world->watch, event));
        ml_loop_poll(world->loop);
    }
    ML_AUTO_FREE char *answer = top(world, "");
    assert_keys(answer, "state", "slowed");
    assert_at(answer, "keys", "0", "now",
              "it is slowed, as it wakes itself or fights with somebody else");
}

static void test_top_counts_runs_and_writes(void **state)
{
    struct world *world = *state;
    ML_AUTO_FREE char *one = script("one", "return { status = { phase = 'ONE' } }");
    ML_AUTO_FREE char *before = top(world, "");
    assert_has(before, "\"clock_ms\":");
    assert_has(before, "\"runs\":0,\"writes\":0,\"leads\":true,\"ready\":false,");
    tell(world, one, NULL);
    accept(world, only_write(world), 11, "ONE");
    ML_AUTO_FREE char *after = top(world, "");
    assert_has(after, "\"runs\":1,\"writes\":1,\"leads\"");
}

/* ---- one field ---- */

#define MANAGED                                                                                    \
    "{\"kind\":\"Part\",\"metadata\":{\"name\":\"p\",\"managedFields\":["                          \
    "{\"manager\":\"moonloop-one\",\"operation\":\"Update\",\"time\":\"2023-11-14T22:13:20Z\","    \
    "\"fieldsV1\":{\"f:spec\":{\"f:size\":{}}}},"                                                  \
    "{\"manager\":\"kubectl-edit\",\"operation\":\"Update\",\"time\":\"2023-11-14T22:00:00Z\","    \
    "\"fieldsV1\":{\"f:spec\":{\"f:size\":{},\"f:list\":{\"k:{\\\"name\\\":\\\"x\\\"}\":{\"f:"     \
    "image\":"                                                                                     \
    "{}}}}}},"                                                                                     \
    "{\"manager\":\"moonloop\",\"operation\":\"Update\",\"subresource\":\"status\",\"fieldsV1\":"  \
    "{\"f:status\":{}}}]},\"spec\":{\"size\":3,\"list\":[{\"name\":\"x\",\"image\":\"i\"}],"       \
    "\"defaulted\":true}}"

/* Asks about a field of the part that the script has made, as the server shows it. Returns the
 * status of the answer. */
static int ask_field(struct world *world, const char *path, const char *field, const char *object,
                     const struct ml_err *failure, struct ml_buf *out)
{
    struct ml_inspect_read read = {.kind = NULL};
    struct ml_err err = ML_ERR_INIT;
    const struct ml_inspect_view view = {
        .services = &world->services, .scripts = world->scripts, .read = &read};
    int status = ml_inspect_answer(&view, path, field, out);
    if (status == ML_INSPECT_READS) {
        assert_string_equal(read.kind->plural, "parts");
        assert_string_equal(read.ns, "d");
        assert_string_equal(read.name, "p");
        read.is_known = true;
        read.err = ml_err_dup(failure);
        ml_buf_puts(&read.object, object);
        ml_buf_clear(out);
        status = ml_inspect_answer(&view, path, field, out);
    }
    free(read.ns);
    free(read.name);
    free(read.err);
    ml_buf_fini(&read.object);
    if (status == 200)
        assert_int_equal(0, ml_json_check(ml_buf_str(out), 0, &err));
    return status;
}

static void make_part(struct world *world)
{
    tell(world,
         "local m = require 'moonloop'\n"
         "local Part = m.kind('test.dev/v1', 'Part')\n"
         "return m.controller {\n"
         "  name = 'one', reconciles = m.kind('test.dev/v1', 'Thing'), owns = { Part },\n"
         "  reconcile = function(thing, ctx)\n"
         "    ctx.create { apiVersion = 'test.dev/v1', kind = 'Part', metadata = { name = 'p' } }\n"
         "  end,\n"
         "}\n",
         NULL);
    reply_no_parts(world);
    fake_reply(only_write(world), 201,
               "{\"kind\":\"Part\",\"apiVersion\":\"test.dev/v1\",\"metadata\":{\"name\":\"p\","
               "\"namespace\":\"d\",\"resourceVersion\":\"20\"}}");
    ml_loop_poll(world->loop);
}

static void test_why_names_the_managers_of_a_field(void **state)
{
    static const struct {
        const char *field, *expected;
    } cases[] = {
        {"spec.size",
         "\"field\":{\"name\":\"spec.size\",\"found\":true,\"managers\":[{\"manager\":"
         "\"moonloop-one\",\"operation\":\"Update\",\"at\":\"2023-11-14T22:13:20Z\","
         "\"controller\":\"one\",\"write\":{\"at\":\"2023-11-14T22:13:20.000000Z\",\"controller\":"
         "\"one\",\"for\":\"d/a\",\"verb\":\"create\",\"kind\":\"Part\",\"name\":\"d/p\",\"place\":"
         "\"a.lua:6\"}},{\"manager\":\"kubectl-edit\",\"operation\":\"Update\",\"at\":"
         "\"2023-11-14T22:00:00Z\"}]}}"},
        {"spec.list[x].image", "\"found\":true,\"managers\":[{\"manager\":\"kubectl-edit\","},
        {"spec.list[y].image", "\"found\":false,\"managers\":[]}}"},
        {"spec.defaulted", "\"found\":true,\"managers\":[]}}"},
        {"spec.none", "\"found\":false,\"managers\":[]}}"},
        {"spec.size.more", "\"found\":false,\"managers\":[]}}"},
        {"status",
         "\"found\":false,\"managers\":[{\"manager\":\"moonloop\",\"operation\":\"Update\","
         "\"subresource\":\"status\"}]}}"},
        {"[", "\"found\":false,\"managers\":[]}}"},
    };
    struct world *world = *state;
    ML_AUTO(ml_buf_fini) struct ml_buf out = ML_BUF_INIT;
    make_part(world);
    for (size_t i = 0; i < ML_COUNT(cases); i++) {
        ml_buf_clear(&out);
        assert_int_equal(200,
                         ask_field(world, "/why/part/d/p", cases[i].field, MANAGED, NULL, &out));
        assert_has(ml_buf_cstr(&out), cases[i].expected);
    }
}

/* Names and times alone: the object may be a Secret. */
static void test_why_shows_no_value_of_a_field(void **state)
{
    struct world *world = *state;
    ML_AUTO(ml_buf_fini) struct ml_buf out = ML_BUF_INIT;
    make_part(world);
    const char *object = "{\"metadata\":{},\"data\":{\"password\":\"hunter2\"}}";
    assert_int_equal(200, ask_field(world, "/why/Part/d/p", "data.password", object, NULL, &out));
    assert_has(ml_buf_cstr(&out), "\"name\":\"data.password\",\"found\":true,\"managers\":[]");
    assert_null(strstr(ml_buf_cstr(&out), "hunter2"));
}

static void test_why_says_when_the_object_cannot_be_read(void **state)
{
    struct world *world = *state;
    struct ml_err gone = {.kind = ML_ENOT_FOUND, .http = 404, .message = "parts p not found"};
    struct ml_err away = {.kind = ML_ENETWORK, .message = "connection refused"};
    ML_AUTO(ml_buf_fini) struct ml_buf out = ML_BUF_INIT;
    make_part(world);
    assert_int_equal(404, ask_field(world, "/why/Part/d/p", "spec", "", &gone, &out));
    assert_string_equal("the API server does not show the object: parts p not found\n",
                        ml_buf_cstr(&out));
    assert_int_equal(502, ask_field(world, "/why/Part/d/p", "spec", "", &away, &out));
    ml_buf_clear(&out);
    assert_int_equal(404, ask_field(world, "/why/Node/d/p", "spec", "", NULL, &out));
    assert_string_equal("no script of this host has the kind Node\n", ml_buf_cstr(&out));
    ml_buf_clear(&out);
    assert_int_equal(200,
                     ask_field(world, "/why/Part/d/p", "spec", "{\"metadata\":3}", NULL, &out));
}

#define INSPECT_TEST(name) cmocka_unit_test_setup_teardown(name, set_up_journal, tear_down_journal)

int main(void)
{
    const struct CMUnitTest tests[] = {
        INSPECT_TEST(test_why_tells_the_run_its_cause_and_its_write),
        INSPECT_TEST(test_why_knows_a_kind_by_its_resource),
        INSPECT_TEST(test_why_tells_who_made_an_object_and_where),
        INSPECT_TEST(test_why_tells_a_failure_and_the_next_try),
        INSPECT_TEST(test_why_tells_of_a_time_that_the_script_asked_for),
        INSPECT_TEST(test_why_tells_why_nothing_runs),
        INSPECT_TEST(test_why_tells_what_was_read),
        INSPECT_TEST(test_trace_tells_what_came_after_an_entry),
        INSPECT_TEST(test_trace_counts_what_it_cannot_tell),
        INSPECT_TEST(test_status_lists_controllers),
        INSPECT_TEST(test_top_tells_the_keys_in_trouble_first),
        INSPECT_TEST(test_top_is_bounded),
        INSPECT_TEST(test_top_tells_who_failed_more_often_first),
        INSPECT_TEST(test_top_tells_of_an_object_that_is_not_tried_again),
        INSPECT_TEST(test_top_tells_of_a_paused_object_and_of_the_cache),
        INSPECT_TEST(test_top_tells_of_a_slowed_object),
        INSPECT_TEST(test_top_counts_runs_and_writes),
        INSPECT_TEST(test_why_names_the_managers_of_a_field),
        INSPECT_TEST(test_why_shows_no_value_of_a_field),
        INSPECT_TEST(test_why_says_when_the_object_cannot_be_read),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
