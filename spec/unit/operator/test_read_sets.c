/* Which changes call a script that has read some things and not others, and what that costs. */
#include "run_scripts.h"

/* A controller of Things that owns Parts; `more`: further fields, `body`: of its reconcile. */
static char *owner(const char *more, const char *body)
{
    return ml_asprintf("local m = require 'moonloop'\n"
                       "local Thing = m.kind('test.dev/v1', 'Thing')\n"
                       "local Part = m.kind('test.dev/v1', 'Part')\n"
                       "local count = 0\n"
                       "return m.controller {\n"
                       "  name = 'one', reconciles = Thing, owns = { Part }, %s\n"
                       "  reconcile = function(thing, ctx)\n%s\nend }\n",
                       more, body);
}

/* The value of the metric that begins its line with this. */
static int metric(struct world *world, const char *name)
{
    ML_AUTO(ml_buf_fini) struct ml_buf text = ML_BUF_INIT;
    ml_metrics_write(world->metrics, &text);
    const char *line = strstr(ml_buf_cstr(&text), name);
    assert_non_null(line);
    return (int)strtod(strchr(line, '}') + 1, NULL);
}

static int runs(struct world *world)
{
    return metric(world,
                  "controller_runtime_reconcile_total{controller=\"one\",result=\"success\"");
}

static int skipped(struct world *world)
{
    return metric(world, "\nmoonloop_wakeups_skipped_total{controller=\"one\"");
}

static void begin(struct world *world, const char *more, const char *body)
{
    ML_AUTO_FREE char *text = owner(more, body);
    tell(world, text, NULL);
    reply_no_parts(world);
}

/* The part p of Thing a in the watch, with this status. */
static void part_has(struct world *world, const char *type, int version, const char *status)
{
    ML_AUTO_FREE char *event = ml_asprintf(
        "{\"type\":\"%s\",\"object\":{\"apiVersion\":\"test.dev/v1\",\"kind\":\"Part\","
        "\"metadata\":{\"name\":\"p\",\"namespace\":\"d\",\"uid\":\"up\",\"ownerReferences\":[{"
        "\"apiVersion\":\"test.dev/v1\",\"kind\":\"Thing\",\"name\":\"a\",\"uid\":\"ua\","
        "\"controller\":true}],\"resourceVersion\":\"%d\"},\"status\":%s}}\n",
        type, version, status);
    assert_true(fake_piece(world->parts_watch, event));
    ml_loop_poll(world->loop);
}

/* The status of Thing a, by somebody else. */
static void status_is(struct world *world, int version, const char *status)
{
    ML_AUTO_FREE char *event = ml_asprintf(
        "{\"type\":\"MODIFIED\",\"object\":{\"apiVersion\":\"test.dev/v1\",\"kind\":\"Thing\","
        "\"metadata\":{\"name\":\"a\",\"namespace\":\"d\",\"uid\":\"ua\",\"resourceVersion\":"
        "\"%d\"},\"status\":%s}}\n",
        version, status);
    assert_true(fake_piece(world->watch, event));
    ml_loop_poll(world->loop);
}

static void test_read_sets_let_changes_pass_of_what_was_not_read(void **state)
{
    struct world *world = *state;
    begin(world, "", "local q = ctx.get(Part, 'q')");
    part_has(world, "ADDED", 11, "{}");
    part_has(world, "MODIFIED", 12, "{\"x\":1}");
    assert_int_equal(runs(world), 1);
    assert_int_equal(skipped(world), 2);
}

static void test_read_sets_wake_for_what_was_read_as_a_whole(void **state)
{
    struct world *world = *state;
    begin(world, "", "local p = ctx.get(Part, 'p') require('cjson').encode(p or {})");
    part_has(world, "ADDED", 11, "{}");
    assert_int_equal(runs(world), 2);
    part_has(world, "MODIFIED", 12, "{\"x\":1}");
    assert_int_equal(runs(world), 3);
    part_has(world, "MODIFIED", 13, "{\"x\":1}"); /* its resourceVersion was in it */
    assert_int_equal(runs(world), 4);
}

static void test_read_sets_wake_for_members_of_a_list(void **state)
{
    struct world *world = *state;
    begin(world, "", "local n = #ctx.list(Part, { owned = true })");
    part_has(world, "ADDED", 11, "{}");
    assert_int_equal(runs(world), 2);
}

static void test_read_sets_wake_when_a_child_goes_that_nobody_looked_at(void **state)
{
    struct world *world = *state;
    begin(world, "", "return");
    part_has(world, "ADDED", 11, "{}");
    assert_int_equal(runs(world), 1);
    part_has(world, "DELETED", 12, "{}");
    assert_non_null(world->live_read); /* before the script runs again */
}

static void test_read_sets_wake_for_any_change_of_the_object_but_of_its_status(void **state)
{
    struct world *world = *state;
    begin(world, "", "return");
    change(world, 11, "x", "");
    change(world, 12, "x", ",\"labels\":{\"a\":\"b\"}");
    change(world, 13, "x", ",\"labels\":{\"a\":\"b\"},\"annotations\":{\"a\":\"b\"}");
    change(world, 14, "x", ",\"finalizers\":[\"a/b\"]");
    assert_int_equal(runs(world), 5);
}

static void test_read_sets_repair_a_status_that_was_returned(void **state)
{
    struct world *world = *state;
    begin(world, "", "if thing.spec.want then return end return { status = { phase = 'ONE' } }");
    accept(world, only_write(world), 11, "ONE");
    assert_int_equal(runs(world), 1);
    status_is(world, 12, "{\"phase\":\"ODD\"}");
    accept(world, only_write(world), 13, "ONE");
    assert_int_equal(runs(world), 2);
    assert_int_equal(skipped(world), 0);
}

/* Any change by somebody else: only the server knows what it means for the apply. */
static void test_read_sets_repair_what_was_applied(void **state)
{
    struct world *world = *state;
    begin(world, "",
          "ctx.apply { apiVersion = 'test.dev/v1', kind = 'Part', metadata = { name = 'p' } }");
    fake_reply(only_write(world), 200,
               "{\"apiVersion\":\"test.dev/v1\",\"kind\":\"Part\",\"metadata\":{\"name\":\"p\","
               "\"namespace\":\"d\",\"uid\":\"up\",\"resourceVersion\":\"11\"}}");
    ml_loop_poll(world->loop);
    part_has(world, "ADDED", 11, "{}");
    assert_int_equal(runs(world), 2);
    assert_int_equal(world->write_count, 0); /* it is as it was applied */
    part_has(world, "MODIFIED", 12, "{\"x\":1}");
    assert_non_null(strstr(only_write(world)->path, "/parts/p"));
}

/* That a reconcile failed is the host's to take back, whatever the script returns. */
static void test_read_sets_wake_when_somebody_says_that_it_failed(void **state)
{
    struct world *world = *state;
    begin(world, "", "return");
    status_is(world, 12,
              "{\"conditions\":[{\"type\":\"Reconciled\",\"status\":\"False\","
              "\"message\":\"two: no\"}]}");
    assert_int_equal(runs(world), 1); /* another controller did */
    status_is(world, 13,
              "{\"conditions\":[{\"type\":\"Reconciled\",\"status\":\"False\","
              "\"message\":\"one: no\"}]}");
    assert_non_null(strstr(only_write(world)->body, "\"True\""));
}

/* The cache does not show the run's own status yet; another run would read it. */
static void test_read_sets_are_not_certain_before_the_own_status_is_back(void **state)
{
    struct world *world = *state;
    begin(world, "", "local s = thing.status.x return { status = { phase = 'ONE' } }");
    fake_reply(only_write(world), 200,
               "{\"metadata\":{\"name\":\"a\",\"namespace\":\"d\",\"resourceVersion\":\"11\"}}");
    ml_loop_poll(world->loop);
    part_has(world, "ADDED", 12, "{}");
    assert_int_equal(runs(world), 1); /* it waits for the cache, but it is to run */
    status_is(world, 11, "{\"phase\":\"ONE\"}");
    assert_int_equal(runs(world), 2);
    assert_int_equal(skipped(world), 0);
}

/* The run has changed what it had read: another one may come to something else. */
static void test_read_sets_end_when_the_own_status_changes_what_was_read(void **state)
{
    struct world *world = *state;
    begin(world, "", "return { status = { phase = thing.status.phase and 'TWO' or 'ONE' } }");
    accept(world, only_write(world), 11, "ONE");
    assert_int_equal(runs(world), 1);
    part_has(world, "ADDED", 12, "{}");
    accept(world, only_write(world), 13, "TWO");
    part_has(world, "MODIFIED", 14, "{\"x\":1}");
    assert_int_equal(runs(world), 3);
    part_has(world, "MODIFIED", 15, "{\"x\":2}");
    assert_int_equal(runs(world), 3);
}

static void test_read_sets_of_a_failed_run_are_none(void **state)
{
    struct world *world = *state;
    ML_AUTO_FREE char *text = owner("", "return ctx.terminal('odd')");
    tell(world, text, NULL);
    reply_no_parts(world);
    accept_all(world); /* the status, and an Event */
    part_has(world, "ADDED", 11, "{}");
    part_has(world, "MODIFIED", 12, "{\"x\":1}");
    assert_int_equal(
        metric(world, "controller_runtime_terminal_reconcile_errors_total{controller=\"one\""), 3);
}

static void test_read_sets_end_with_the_revision_that_keeps_something(void **state)
{
    struct world *world = *state;
    begin(world, "", "count = count + 1");
    part_has(world, "ADDED", 11, "{}");
    assert_int_equal(runs(world), 2);
    ML_AUTO_FREE char *pure = owner("", "return nil");
    tell(world, pure, NULL);
    assert_int_equal(runs(world), 3);
    part_has(world, "MODIFIED", 12, "{\"x\":1}");
    assert_int_equal(runs(world), 3);
}

static void test_read_sets_go_with_their_revision(void **state)
{
    struct world *world = *state;
    begin(world, "", "return");
    ML_AUTO_FREE char *other = owner("", "local n = #ctx.list(Part, { owned = true })");
    tell(world, other, NULL);
    part_has(world, "ADDED", 11, "{}");
    assert_int_equal(runs(world), 3);
}

static void test_read_sets_are_not_asked_when_everything_wakes(void **state)
{
    struct world *world = *state;
    begin(world, "wakes = 'all',", "return");
    part_has(world, "ADDED", 11, "{}");
    part_has(world, "MODIFIED", 12, "{\"x\":1}");
    assert_int_equal(runs(world), 3);
    assert_int_equal(skipped(world), 0);
}

/* `when` left a change out; the next one that it does not brings both to the script. */
static void test_read_sets_are_not_certain_after_what_when_left_out(void **state)
{
    struct world *world = *state;
    begin(world, "when = { 'generation' },", "return");
    part_has(world, "ADDED", 11, "{}");
    assert_int_equal(runs(world), 1);
    change(world, 12, "x", "");
    assert_int_equal(runs(world), 2);
    change(world, 13, "x", ",\"labels\":{\"a\":\"b\"}");
    assert_int_equal(runs(world), 2);
    part_has(world, "MODIFIED", 14, "{\"x\":1}");
    assert_int_equal(runs(world), 3);
    part_has(world, "MODIFIED", 15, "{\"x\":2}");
    assert_int_equal(runs(world), 3);
}

/* The list has a part that is another's, whose changes this key is not told of. */
static void test_read_sets_are_not_certain_of_lists_of_what_others_own(void **state)
{
    struct world *world = *state;
    begin(world, "",
          "for _, part in ipairs(ctx.list(Part)) do local name = part.metadata.name end");
    part_changes(world, "ADDED", 11, "other.dev");
    assert_int_equal(runs(world), 1);
    status_is(world, 12, "{\"odd\":1}"); /* nobody looked at that */
    assert_int_equal(runs(world), 2);
}

/* A part of each of the 100 things, "t7-part". */
static void reply_parts_of_things(struct world *world)
{
    ML_AUTO(ml_buf_fini) struct ml_buf list = ML_BUF_INIT;
    ml_buf_puts(&list, "{\"kind\":\"PartList\",\"apiVersion\":\"test.dev/v1\",\"metadata\":{"
                       "\"resourceVersion\":\"10\"},\"items\":[");
    for (int i = 0; i < 100; i++)
        ml_buf_printf(&list,
                      "%s{\"metadata\":{\"name\":\"t%d-part\",\"namespace\":\"d\",\"uid\":\"p%d\","
                      "\"resourceVersion\":\"1\",\"ownerReferences\":[{\"apiVersion\":"
                      "\"test.dev/v1\",\"kind\":\"Thing\",\"name\":\"t%d\",\"uid\":\"u%d\","
                      "\"controller\":true}]}}",
                      i ? "," : "", i, i, i, i);
    ml_buf_puts(&list, "]}");
    fake_reply(world->parts, 200, ml_buf_cstr(&list));
    ml_loop_poll(world->loop);
}

static void test_read_sets_of_many_objects_take_little_memory(void **state)
{
    struct world *world = *state;
    ML_AUTO_FREE char *things = many_things();
    ML_AUTO_FREE char *text = owner(
        "", "local p = ctx.get(Part, thing.metadata.name .. '-part') local s = thing.status.phase");
    world->things = things;
    tell(world, text, NULL);
    reply_parts_of_things(world);
    assert_int_equal(runs(world), 100);
    int bytes = metric(world, "\nmoonloop_read_set_bytes{controller=\"one\"");
    assert_in_range(bytes, 100 * 20, 100 * 64);
}

/* An object that is absent, or not the key's own, is looked up by name when it changes. */
static void test_read_sets_of_what_was_not_found_take_some_memory(void **state)
{
    struct world *world = *state;
    ML_AUTO_FREE char *things = many_things();
    ML_AUTO_FREE char *text = owner(
        "", "local p = ctx.get(Part, thing.metadata.name .. '-none') local s = thing.status.phase");
    world->things = things;
    tell(world, text, NULL);
    reply_no_parts(world);
    int bytes = metric(world, "\nmoonloop_read_set_bytes{controller=\"one\"");
    assert_in_range(bytes, 100 * 64, 100 * 256);
}

/* ---- the version of the object itself ---- */

static void test_read_sets_wake_for_any_change_when_the_version_was_read(void **state)
{
    struct world *world = *state;
    static const char *const reads[] = {
        "local v = thing.metadata.resourceVersion",
        "for k, v in pairs(thing.metadata) do local _ = v end",
        "local k, v = next(thing.metadata)",
        "local v = rawget(thing.metadata, 'resourceVersion')",
        "local v = require('cjson').encode(thing.metadata)",
        "local v = require('cjson').encode(thing)",
        "local v = require('moonloop.yaml').encode { m = thing.metadata }",
        "local m = thing.metadata local v = m.name .. m.resourceVersion",
    };
    int version = 20;
    for (size_t i = 0; i < ML_COUNT(reads); i++) {
        ML_AUTO_FREE char *text = owner("", reads[i]);
        tell(world, text, NULL);
        if (i == 0)
            reply_no_parts(world);
        int before = runs(world);
        status_is(world, ++version, "{\"x\":1}");
        if (runs(world) != before + 1)
            fail_msg("a status by somebody else does not call: %s", reads[i]);
        status_is(world, ++version, "{\"x\":1}");
        if (runs(world) != before + 2)
            fail_msg("another version does not call: %s", reads[i]);
    }
    ML_AUTO_FREE char *other = owner("", "local v = thing.metadata.name");
    tell(world, other, NULL);
    int before = runs(world);
    status_is(world, ++version, "{\"x\":2}");
    assert_int_equal(runs(world), before);
}

/* ---- what it looked for by name ---- */

#define LOOKS "local p = ctx.get(Part, 'p') local x = p and p.status.x"

static void test_what_was_looked_for_calls_when_it_comes_changes_and_goes(void **state)
{
    struct world *world = *state;
    begin(world, "", LOOKS);
    part_changes(world, "ADDED", 11, NULL); /* nobody owns it */
    assert_int_equal(runs(world), 2);
    part_changes(world, "MODIFIED", 12, NULL); /* nothing that was read */
    assert_int_equal(runs(world), 2);
    part_changes(world, "MODIFIED", 13, "test.dev"); /* told to its owner */
    part_changes(world, "MODIFIED", 14, "other.dev");
    int before = runs(world);
    part_changes(world, "DELETED", 15, "other.dev");
    assert_int_equal(runs(world), before + 1);
    part_changes(world, "ADDED", 16, "other.dev");
    assert_int_equal(runs(world), before + 2);
}

static void test_what_was_looked_for_calls_whatever_the_run_came_to(void **state)
{
    struct world *world = *state;
    static const char *const ends[] = {
        "return ctx.invalid('spec.part', 'not there')",
        "return ctx.terminal 'not there'",
        "local n = math.random()",
        "count = count + 1",
        "return { status = { x = 1 } }",
    };
    for (int all = 0; all < 2; all++) {
        for (size_t i = 0; i < ML_COUNT(ends); i++) {
            ML_AUTO_FREE char *body = ml_asprintf(LOOKS " if not p then ctx.log 'looks' end %s",
                                                  ends[i]);
            ML_AUTO_FREE char *text = owner(all ? "wakes = 'all'," : "", body);
            tell(world, text, NULL);
            if (world->parts && i == 0 && !all)
                reply_no_parts(world);
            accept_all(world);
            int version = 20 + 2 * (int)i + 100 * all;
            size_t before = unit_count(world->log.fd, " looks");
            part_changes(world, "ADDED", version, NULL);
            accept_all(world);
            part_changes(world, "DELETED", version + 1, NULL);
            accept_all(world);
            if (unit_count(world->log.fd, " looks") <= before)
                fail_msg("its end calls nothing: %s%s", all ? "(wakes all) " : "", ends[i]);
        }
    }
}

/* Between the look and the end of the run nothing has the name yet. */
static void test_what_was_looked_for_calls_when_it_came_during_the_run(void **state)
{
    struct world *world = *state;
    begin(world, "", LOOKS " return { status = { phase = p and 'THERE' or 'NONE' } }");
    struct fake_call *status = only_write(world);
    assert_non_null(strstr(status->body, "NONE"));
    part_changes(world, "ADDED", 11, NULL);
    accept(world, status, 12, "NONE");
    accept(world, only_write(world), 13, "THERE");
    assert_int_equal(world->write_count, 0);
}

static void test_too_many_names_count_as_all_of_the_kind(void **state)
{
    struct world *world = *state;
    begin(world, "", "for i = 1, 100 do ctx.get(Part, 'q' .. i) end ctx.get(Part, 'p')");
    int before = runs(world);
    part_changes(world, "ADDED", 11, NULL);
    assert_int_equal(runs(world), before + 1);
    part_changes(world, "DELETED", 12, NULL);
    assert_int_equal(runs(world), before + 2);
}

static void test_what_was_looked_for_is_forgotten_with_the_object_and_the_version(void **state)
{
    struct world *world = *state;
    begin(world, "", LOOKS);
    assert_true(metric(world, "\nmoonloop_read_set_bytes{controller=\"one\"") > 0);
    ML_AUTO_FREE char *next = owner("", "return");
    tell(world, next, NULL);
    int before = runs(world);
    part_changes(world, "ADDED", 11, NULL);
    assert_int_equal(runs(world), before);
    ML_AUTO_FREE char *looking = owner("", LOOKS);
    tell(world, looking, NULL);
    assert_true(fake_piece(world->watch,
                           "{\"type\":\"DELETED\",\"object\":{\"apiVersion\":\"test.dev/v1\","
                           "\"kind\":\"Thing\",\"metadata\":{\"name\":\"a\",\"namespace\":\"d\","
                           "\"uid\":\"ua\",\"resourceVersion\":\"90\"}}}\n"));
    ml_loop_poll(world->loop);
    before = runs(world);
    part_changes(world, "DELETED", 91, NULL);
    assert_int_equal(runs(world), before);
}

/* The made Thing, as the answer to a write and as an event of the watch. */
static void answer_made(struct world *world, struct fake_call *write, const char *type, int version)
{
    ML_AUTO_FREE char *made = ml_asprintf(
        "{\"apiVersion\":\"test.dev/v1\",\"kind\":\"Thing\",\"metadata\":{\"name\":"
        "\"made-1700000000\",\"namespace\":\"d\",\"uid\":\"um\",\"resourceVersion\":\"%d\"},"
        "\"spec\":{\"at\":%d}}",
        version, version);
    ML_AUTO_FREE char *event = ml_asprintf("{\"type\":\"%s\",\"object\":%s}\n", type, made);
    fake_reply(write, 200, made);
    ml_loop_poll(world->loop);
    assert_true(fake_piece(world->watch, event));
    for (int i = 0; i < 10; i++)
        advance(world, ML_NS_PER_S);
}

/* Else a script that makes an object of a new name in each run would never end. */
static void test_what_the_run_made_itself_does_not_call_it_by_its_name(void **state)
{
    struct world *world = *state;
    begin(world, "",
          "if thing.spec.want == 'X' then\n"
          "  ctx.create { apiVersion = 'test.dev/v1', kind = 'Thing',\n"
          "    metadata = { name = ('made-%d'):format(ctx.now() // 1) } }\n"
          "elseif thing.spec.want then\n"
          "  ctx.patch(ctx.get(Thing, 'made-1700000000'), { spec = { at = ctx.now() } })\n"
          "end");
    change(world, 11, "X", "");
    answer_made(world, only_write(world), "ADDED", 12);
    assert_int_equal(world->write_count, 0);
    for (int i = 0; i < 2; i++) { /* the second time it is known what the run looks for */
        change(world, 21 + 10 * i, i == 0 ? "Y" : "Z", "");
        answer_made(world, only_write(world), "MODIFIED", 22 + 10 * i);
        assert_int_equal(world->write_count, 0);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        SCRIPTS_TEST(test_read_sets_let_changes_pass_of_what_was_not_read),
        SCRIPTS_TEST(test_read_sets_wake_for_what_was_read_as_a_whole),
        SCRIPTS_TEST(test_read_sets_wake_for_members_of_a_list),
        SCRIPTS_TEST(test_read_sets_wake_when_a_child_goes_that_nobody_looked_at),
        SCRIPTS_TEST(test_read_sets_wake_for_any_change_of_the_object_but_of_its_status),
        SCRIPTS_TEST(test_read_sets_repair_a_status_that_was_returned),
        SCRIPTS_TEST(test_read_sets_repair_what_was_applied),
        SCRIPTS_TEST(test_read_sets_wake_when_somebody_says_that_it_failed),
        SCRIPTS_TEST(test_read_sets_are_not_certain_before_the_own_status_is_back),
        SCRIPTS_TEST(test_read_sets_end_when_the_own_status_changes_what_was_read),
        SCRIPTS_TEST(test_read_sets_of_a_failed_run_are_none),
        SCRIPTS_TEST(test_read_sets_end_with_the_revision_that_keeps_something),
        SCRIPTS_TEST(test_read_sets_go_with_their_revision),
        SCRIPTS_TEST(test_read_sets_are_not_asked_when_everything_wakes),
        SCRIPTS_TEST(test_read_sets_are_not_certain_after_what_when_left_out),
        SCRIPTS_TEST(test_read_sets_are_not_certain_of_lists_of_what_others_own),
        SCRIPTS_TEST(test_read_sets_of_many_objects_take_little_memory),
        SCRIPTS_TEST(test_read_sets_of_what_was_not_found_take_some_memory),
        SCRIPTS_TEST(test_read_sets_wake_for_any_change_when_the_version_was_read),
        SCRIPTS_TEST(test_what_was_looked_for_calls_when_it_comes_changes_and_goes),
        SCRIPTS_TEST(test_what_was_looked_for_calls_whatever_the_run_came_to),
        SCRIPTS_TEST(test_what_was_looked_for_calls_when_it_came_during_the_run),
        SCRIPTS_TEST(test_too_many_names_count_as_all_of_the_kind),
        SCRIPTS_TEST(test_what_was_looked_for_is_forgotten_with_the_object_and_the_version),
        SCRIPTS_TEST(test_what_the_run_made_itself_does_not_call_it_by_its_name),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
