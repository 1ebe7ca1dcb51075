/* Versions that would do harm are held, and those that fail are refused, before they are live. On a
 * scripted API server and a fake clock. */
#include "run_scripts.h"

#include <ctype.h>

#define THINGS 12

/* d/t00 … d/t11. */
static char *list_of_things(void)
{
    struct ml_buf list = ML_BUF_INIT;
    ml_buf_puts(&list, "{\"kind\":\"ThingList\",\"apiVersion\":\"test.dev/v1\",\"metadata\":"
                       "{\"resourceVersion\":\"10\"},\"items\":[");
    for (int i = 0; i < THINGS; i++)
        ml_buf_printf(&list,
                      "%s{\"metadata\":{\"name\":\"t%02d\",\"namespace\":\"d\",\"uid\":\"u%02d\","
                      "\"resourceVersion\":\"1\"}}",
                      i ? "," : "", i, i);
    ml_buf_puts(&list, "]}");
    return ml_buf_take(&list);
}

/* Each has a part, which it owns; d/t00 has so many others. */
static void answer_parts(struct world *world, int others)
{
    ML_AUTO(ml_buf_fini) struct ml_buf list = ML_BUF_INIT;
    ml_buf_puts(&list, "{\"kind\":\"PartList\",\"apiVersion\":\"test.dev/v1\",\"metadata\":"
                       "{\"resourceVersion\":\"10\"},\"items\":[");
    for (int i = 0; i < THINGS + others; i++)
        ml_buf_printf(&list,
                      "%s{\"metadata\":{\"name\":\"t%02d\",\"namespace\":\"d\",\"uid\":\"p%02d\","
                      "\"resourceVersion\":\"1\",\"ownerReferences\":[{\"apiVersion\":"
                      "\"test.dev/v1\",\"kind\":\"Thing\",\"name\":\"t%02d\",\"uid\":\"u%02d\","
                      "\"controller\":true}]}}",
                      i ? "," : "", i, i, i < THINGS ? i : 0, i < THINGS ? i : 0);
    ml_buf_puts(&list, "]}");
    fake_reply(world->parts, 200, ml_buf_cstr(&list));
    ml_loop_poll(world->loop);
}

/* `rollout`: the fields of that table. */
static char *owning_with(const char *rollout, const char *body)
{
    return ml_asprintf("local m = require 'moonloop'\n"
                       "local Part = m.kind('test.dev/v1', 'Part')\n"
                       "return m.controller {\n"
                       "  name = 'one', reconciles = m.kind('test.dev/v1', 'Thing'),\n"
                       "  owns = { Part }, rollout = { %s },\n"
                       "  reconcile = function(thing, ctx)\n%s\n  end,\n}\n",
                       rollout, body);
}

static char *owning(const char *body)
{
    return owning_with("", body);
}

#define DELETES "local part = ctx.get(Part, thing.metadata.name)\nif part then ctx.delete(part) end"

static int set_up_guarded(void **state)
{
    struct world *world = world_open(false);
    set_guard(world, ML_ROLLOUT_GUARDED);
    ml_scripts_start(world->scripts);
    *state = world;
    return 0;
}

#define GUARD_TEST(name) cmocka_unit_test_setup_teardown(name, set_up_guarded, tear_down)

/* A version that does nothing is live, over the things with their parts. */
static void start_with(struct world *world, char **things, int others, const char *rollout)
{
    ML_AUTO_FREE char *idle = owning_with(rollout, "");
    world->things = *things = list_of_things();
    tell(world, idle, NULL);
    answer_parts(world, others);
    assert_live(world, "one");
    assert_int_equal(world->write_count, 0);
}

static void start(struct world *world, char **things, int others)
{
    start_with(world, things, others, "");
}

static void offer(struct world *world, const char *body)
{
    ML_AUTO_FREE char *text = owning(body);
    *world->reported = '\0';
    tell(world, text, NULL);
}

/* Takes the revision out of "a.lua: revision 3f2a91bc …". */
static const char *revision_in(const char *note)
{
    static char digits[9];
    const char *at = strstr(note, "revision ");
    assert_non_null(at);
    snprintf(digits, sizeof digits, "%.8s", at + strlen("revision "));
    for (const char *c = digits; *c; c++)
        assert_true(isxdigit((unsigned char)*c));
    return digits;
}

static void assert_reported(const struct world *world, const char *start, const char *rest)
{
    if (strncmp(world->reported, start, strlen(start)) != 0 || !strstr(world->reported, rest))
        fail_msg("%s", world->reported);
}

static void assert_gauges(struct world *world, int refused, int held)
{
    const char *const names[] = {"refused", "held"};
    const int values[] = {refused, held};
    ML_AUTO(ml_buf_fini) struct ml_buf page = ML_BUF_INIT;
    ml_metrics_write(world->metrics, &page);
    for (size_t i = 0; i < ML_COUNT(names); i++) {
        ML_AUTO_FREE char *line = ml_asprintf("\nmoonloop_script_%s{file=\"a.lua\"} %d\n", names[i],
                                              values[i]);
        if (!strstr(ml_buf_cstr(&page), line))
            fail_msg("not%s", line);
    }
}

static void assert_deletes(struct world *world, size_t count)
{
    size_t deletes = 0;
    for (size_t i = 0; i < world->write_count; i++)
        deletes += strcmp(world->writes[i]->method, "DELETE") == 0;
    assert_int_equal(deletes, count);
    accept_all(world);
}

/* ---- deletions ---- */

static void test_version_that_deletes_what_its_objects_own_is_held(void **state)
{
    struct world *world = *state;
    ML_AUTO_FREE char *things = NULL;
    start(world, &things, 0);
    offer(world, DELETES);
    assert_reported(world, "Warning ScriptHeld: a.lua: revision ",
                    " would delete 12 objects (its own have 12); the first: Part d/t00: ctx.delete "
                    "at a.lua:8; edit the script, or let it go by the annotation "
                    "moonloop.dev/approve: ");
    assert_gauges(world, 0, 1);
    assert_true(ready(world));
    assert_int_equal(world->write_count, 0);
    offer(world, DELETES); /* the same again, as of another change of the source */
    assert_string_equal(world->reported, "");
    assert_int_equal(world->write_count, 0);
}

static void test_held_version_goes_live_when_it_is_approved(void **state)
{
    struct world *world = *state;
    ML_AUTO_FREE char *things = NULL;
    start(world, &things, 0);
    offer(world, DELETES);
    const char *revision = revision_in(world->reported);
    world->source.approved = ml_strdup("00000000");
    offer(world, DELETES);
    assert_reported(world, "Warning ScriptHeld: ", revision);
    assert_int_equal(world->write_count, 0);
    free(world->source.approved);
    world->source.approved = ml_asprintf("00000000, %s", revision);
    offer(world, DELETES);
    assert_live(world, "one");
    assert_gauges(world, 0, 0);
    assert_true(world->write_count > 0);
    assert_deletes(world, world->write_count);
}

static void test_edit_of_a_held_version_goes_live(void **state)
{
    struct world *world = *state;
    ML_AUTO_FREE char *things = NULL;
    start(world, &things, 0);
    offer(world, DELETES);
    assert_gauges(world, 0, 1);
    offer(world, "-- another");
    assert_live(world, "one");
    assert_gauges(world, 0, 0);
}

static void test_held_version_that_is_taken_back_is_not_held_any_more(void **state)
{
    struct world *world = *state;
    ML_AUTO_FREE char *things = NULL;
    ML_AUTO(ml_buf_fini) struct ml_buf list = ML_BUF_INIT;
    start(world, &things, 0);
    offer(world, DELETES);
    offer(world, "");
    assert_gauges(world, 0, 0);
    ml_scripts_list_ready(world->scripts, &list);
    assert_null(strstr(ml_buf_cstr(&list), "held"));
}

static void test_ten_deletions_are_not_held(void **state)
{
    struct world *world = *state;
    ML_AUTO_FREE char *things = NULL;
    start(world, &things, 0);
    offer(world, "if thing.metadata.name < 't10' then " DELETES " end");
    assert_live(world, "one");
    assert_true(world->write_count > 0);
    accept_all(world);
}

static void test_deletions_of_a_small_part_are_not_held(void **state)
{
    struct world *world = *state;
    ML_AUTO_FREE char *things = NULL;
    start(world, &things, 19 * THINGS); /* 12 of 240 are 5 % */
    offer(world, DELETES);
    assert_live(world, "one");
    accept_all(world);
}

static void test_deletions_of_a_larger_part_are_held(void **state)
{
    struct world *world = *state;
    ML_AUTO_FREE char *things = NULL;
    start(world, &things, 19 * THINGS - 1);
    offer(world, DELETES);
    assert_reported(world, "Warning ScriptHeld: ", "would delete 12 objects (its own have 239)");
}

/* ---- failures ---- */

static void test_version_that_fails_for_many_objects_is_refused(void **state)
{
    struct world *world = *state;
    ML_AUTO_FREE char *things = NULL;
    start(world, &things, 0);
    offer(world, "assert(thing.metadata.name > 't02', 'it is bad')");
    assert_reported(world, "Warning ScriptRefused: a.lua: revision ",
                    " fails for 3 of 12 objects, for which the running one does not; the first: "
                    "d/t00: a.lua:7: it is bad");
    assert_gauges(world, 1, 0);
    assert_int_equal(world->write_count, 0);
}

static void test_version_that_fails_for_few_objects_goes_live(void **state)
{
    struct world *world = *state;
    ML_AUTO_FREE char *things = NULL;
    start(world, &things, 0);
    offer(world, "assert(thing.metadata.name > 't01', 'it is bad')");
    assert_live(world, "one");
    accept_all(world);
}

static void test_one_object_says_nothing_about_a_version(void **state)
{
    struct world *world = *state;
    ML_AUTO_FREE char *good = script("one", "");
    ML_AUTO_FREE char *bad = script("one", "error('broken')");
    tell(world, good, NULL);
    tell(world, bad, NULL);
    assert_live(world, "one");
    accept_all(world);
}

/* ---- writes without end ---- */

static void test_version_that_writes_without_end_is_held(void **state)
{
    struct world *world = *state;
    ML_AUTO_FREE char *things = NULL;
    start(world, &things, 0);
    offer(world, "return { status = { count = (thing.status.count or 0) + 1 } }");
    assert_reported(world, "Warning ScriptHeld: a.lua: revision ",
                    " would write without end for 12 of 12 objects: each run changes what the one "
                    "before has made; the first: d/t00; edit the script");
    assert_int_equal(world->write_count, 0);
}

/* ---- where there is no guard ---- */

static void test_first_version_is_not_held(void **state)
{
    struct world *world = *state;
    ML_AUTO_FREE char *things = list_of_things();
    ML_AUTO_FREE char *text = owning(DELETES);
    world->things = things;
    tell(world, text, NULL);
    answer_parts(world, 0);
    assert_live(world, "one");
    assert_true(world->write_count > 0);
    accept_all(world);
}

static void test_immediate_rollout_holds_nothing(void **state)
{
    struct world *world = *state;
    ML_AUTO_FREE char *things = NULL;
    start(world, &things, 0);
    set_guard(world, ML_ROLLOUT_IMMEDIATE);
    offer(world, DELETES);
    assert_live(world, "one");
    accept_all(world);
}

/* ---- limits and modes ---- */

/* Offers a version that deletes all 12 parts. */
static void assert_held(struct world *world, bool held)
{
    offer(world, DELETES);
    assert_gauges(world, 0, held);
    assert_int_equal(world->write_count > 0, !held);
    accept_all(world);
}

static void test_limits_are_those_of_the_version_that_runs(void **state)
{
    (void)state;
    static const struct {
        const char *rollout;
        bool held;
    } rows[] = {
        {"max_deletes = 12", false},
        {"max_deletes = 11", true},
        {"max_deletes = 0, max_deletes_percent = 100", false},
        {"max_deletes = 0, max_deletes_percent = 99", true},
        {"max_deletes_percent = 0", true},
        {"max_failures_percent = 0", true},
    };
    for (size_t i = 0; i < ML_COUNT(rows); i++) {
        void *opened;
        assert_int_equal(set_up_guarded(&opened), 0);
        struct world *world = opened;
        ML_AUTO_FREE char *things = NULL;
        start_with(world, &things, 0, rows[i].rollout);
        assert_held(world, rows[i].held);
        assert_int_equal(tear_down(&opened), 0);
    }
}

static void test_version_cannot_set_its_own_limits(void **state)
{
    struct world *world = *state;
    ML_AUTO_FREE char *things = NULL;
    ML_AUTO_FREE char *lax = owning_with("mode = 'immediate', max_deletes = 1000", DELETES);
    start(world, &things, 0);
    tell(world, lax, NULL);
    assert_gauges(world, 0, 1);
    assert_deletes(world, 0);
}

static void test_limit_of_failures_is_that_of_the_version_that_runs(void **state)
{
    struct world *world = *state;
    ML_AUTO_FREE char *things = NULL;
    start_with(world, &things, 0, "max_failures_percent = 8");
    offer(world, "assert(thing.metadata.name ~= 't07', 'no')"); /* one of 12 is 8.3 % */
    assert_reported(world, "Warning ScriptRefused: ", "fails for 1 of 12 objects");
    assert_gauges(world, 1, 0);
}

static void test_limits_of_the_process_hold_where_a_version_has_none(void **state)
{
    struct world *world = *state;
    ML_AUTO_FREE char *things = NULL;
    struct ml_guard_opts guard = ML_GUARD_OPTS_DEFAULT;
    guard.rollout.max_deletes = 12;
    ml_scripts_set_guard(world->scripts, &guard);
    start(world, &things, 0);
    assert_held(world, false);
}

static void test_sample_is_as_large_as_the_process_says(void **state)
{
    struct world *world = *state;
    ML_AUTO_FREE char *things = NULL;
    struct ml_guard_opts guard = ML_GUARD_OPTS_DEFAULT;
    guard.sample = 6;
    ml_scripts_set_guard(world->scripts, &guard);
    start(world, &things, 0);
    offer(world, DELETES);
    assert_reported(world, "Warning ScriptHeld: ", "(tried for 6 of 12 objects) would delete 6 ");
}

/* The version that runs says it, else its source, else the process. A process without a guard has
 * the last word. */
static void test_mode_is_of_the_controller_then_the_source_then_the_process(void **state)
{
    (void)state;
    static const struct {
        const char *declared, *source;
        enum ml_rollout_mode process;
        bool held;
    } rows[] = {
        {"", NULL, ML_ROLLOUT_GUARDED, true},
        {"mode = 'immediate'", "guarded", ML_ROLLOUT_GUARDED, false},
        {"mode = 'guarded'", "immediate", ML_ROLLOUT_IMMEDIATE, true},
        {"", "immediate", ML_ROLLOUT_GUARDED, false},
        {"", "guarded", ML_ROLLOUT_IMMEDIATE, true},
        {"", NULL, ML_ROLLOUT_IMMEDIATE, false},
        {"mode = 'guarded'", "guarded", ML_ROLLOUT_UNSET, false},
        {"mode = 'plan'", "immediate", ML_ROLLOUT_IMMEDIATE, true},
        {"", "plan", ML_ROLLOUT_IMMEDIATE, true},
        {"", NULL, ML_ROLLOUT_PLAN, true},
        {"mode = 'plan'", "plan", ML_ROLLOUT_UNSET, false},
    };
    for (size_t i = 0; i < ML_COUNT(rows); i++) {
        void *opened;
        assert_int_equal(set_up_guarded(&opened), 0);
        struct world *world = opened;
        ML_AUTO_FREE char *things = NULL;
        set_guard(world, rows[i].process);
        world->source.rollout = ml_strdup(rows[i].source);
        start_with(world, &things, 0, rows[i].declared);
        assert_held(world, rows[i].held);
        assert_int_equal(tear_down(&opened), 0);
    }
}

static void test_held_version_goes_live_when_its_source_says_immediate(void **state)
{
    struct world *world = *state;
    ML_AUTO_FREE char *things = NULL;
    start(world, &things, 0);
    assert_held(world, true);
    world->source.rollout = ml_strdup("immediate");
    assert_held(world, false);
}

static void test_mode_that_is_not_known_is_told_and_guards(void **state)
{
    struct world *world = *state;
    ML_AUTO_FREE char *things = NULL;
    ML_AUTO_FREE char *idle = owning("");
    set_guard(world, ML_ROLLOUT_IMMEDIATE);
    start(world, &things, 0);
    world->source.rollout = ml_strdup("careful");
    tell(world, idle, NULL);
    assert_reported(world,
                    "Warning RolloutUnknown: moonloop.dev/rollout: expected guarded, canary, plan "
                    "or immediate, got 'careful'; new versions are guarded",
                    "");
    assert_held(world, true);
    assert_int_equal(unit_count(world->log.fd, "for the rollout is not known"), 1);
}

/* ---- the mode plan ---- */

static void test_in_the_mode_plan_each_change_waits_for_approval(void **state)
{
    struct world *world = *state;
    ML_AUTO_FREE char *things = NULL;
    const char *body = "if thing.metadata.name == 't00' then " DELETES "\n"
                       "elseif thing.metadata.name == 't11' then error('broken')\n"
                       "elseif thing.metadata.name > 't08' then\n"
                       "  return { status = { ok = true } } end";
    start_with(world, &things, 0, "mode = 'plan'");
    offer(world, body);
    assert_reported(world, "Warning ScriptHeld: a.lua: revision ",
                    " would delete 1 Part (the first: d/t00: ctx.delete at a.lua:8), change 3 "
                    "Thing (the first: d/t09: status: nothing → {\"ok\":true}); fails for 1 of 12 "
                    "objects (the first: d/t11: a.lua:9: broken); edit the script, or let it go "
                    "by the annotation moonloop.dev/approve: ");
    assert_gauges(world, 0, 1);
    assert_int_equal(world->write_count, 0);
    world->source.approved = ml_strdup(revision_in(world->reported));
    offer(world, body);
    assert_gauges(world, 0, 0);
    assert_true(world->write_count > 0);
    accept_all(world);
}

static void test_in_the_mode_plan_a_change_that_deletes_nothing_waits_too(void **state)
{
    struct world *world = *state;
    ML_AUTO_FREE char *things = NULL;
    set_guard(world, ML_ROLLOUT_PLAN);
    start(world, &things, 0);
    offer(world, "if thing.metadata.name == 't05' then return { status = { ok = true } } end");
    assert_reported(world, "Warning ScriptHeld: ", " would change 1 Thing (the first: d/t05: ");
    assert_gauges(world, 0, 1);
}

static void test_in_the_mode_plan_a_version_that_changes_nothing_is_live(void **state)
{
    struct world *world = *state;
    ML_AUTO_FREE char *things = NULL;
    set_guard(world, ML_ROLLOUT_PLAN);
    start(world, &things, 0);
    offer(world, "-- another");
    assert_live(world, "one");
    assert_gauges(world, 0, 0);
}

/* Others may be changed than those that were tried. */
static void test_in_the_mode_plan_a_sample_waits_for_approval(void **state)
{
    struct world *world = *state;
    ML_AUTO_FREE char *things = NULL;
    struct ml_guard_opts guard = ML_GUARD_OPTS_DEFAULT;
    guard.rollout.mode = ML_ROLLOUT_PLAN;
    guard.sample = 11;
    ml_scripts_set_guard(world->scripts, &guard);
    start(world, &things, 0);
    offer(world, "-- another");
    assert_reported(world, "Warning ScriptHeld: ",
                    " (tried for 11 of 12 objects) would change nothing that is known; edit ");
    assert_gauges(world, 0, 1);
}

/* The limits hold as in the mode guarded. */
static void test_in_the_mode_plan_a_version_that_fails_is_refused(void **state)
{
    struct world *world = *state;
    ML_AUTO_FREE char *things = NULL;
    set_guard(world, ML_ROLLOUT_PLAN);
    start(world, &things, 0);
    offer(world, "error('broken')");
    assert_reported(world, "Warning ScriptRefused: ", "fails for 12 of 12 objects");
    assert_gauges(world, 1, 0);
}

/* ---- while the plan is made ---- */

#define ASKS "ctx.get(Use, 'x')"

static char *using(const char *body)
{
    return ml_asprintf("local m = require 'moonloop'\n"
                       "local Use = m.kind('test.dev/v1', 'Part')\n"
                       "return m.controller {\n"
                       "  name = 'one', reconciles = m.kind('test.dev/v1', 'Thing'),\n"
                       "  uses = { Use }, reconcile = function(thing, ctx)\n%s\n  end,\n}\n",
                       body);
}

/* A version whose plan waits for an answer of the server. */
static void begin_plan(struct world *world)
{
    ML_AUTO_FREE char *idle = using("");
    ML_AUTO_FREE char *asks = using(ASKS);
    tell(world, idle, NULL);
    assert_live(world, "one");
    *world->reported = '\0';
    tell(world, asks, NULL);
    assert_string_equal(world->reported, "");
    assert_non_null(world->parts);
    assert_false(world->parts->canceled);
}

/* Answers each read of the plan that is under way. */
static void end_plan(struct world *world)
{
    while (world->parts) {
        struct fake_call *read = ml_take(&world->parts);
        fake_refuse(read, 404, "NotFound", "not found");
        ml_loop_poll(world->loop);
    }
}

/* Its plan says that it writes without end. */
static void test_version_may_be_let_go_while_its_plan_is_made(void **state)
{
    (void)state;
    ML_AUTO_FREE char *revision = NULL;
    for (int row = 0; row < 3; row++) {
        void *opened;
        assert_int_equal(set_up_guarded(&opened), 0);
        struct world *world = opened;
        ML_AUTO_FREE char *idle = using("");
        ML_AUTO_FREE char *endless = using(
            ASKS " return { status = { count = (thing.status.count or 0) + 1 } }");
        tell(world, idle, NULL);
        tell(world, endless, NULL);
        assert_non_null(world->parts);
        if (row == 1)
            world->source.rollout = ml_strdup("immediate");
        if (row == 2)
            world->source.approved = ml_strdup(revision);
        tell(world, endless, NULL);
        end_plan(world);
        assert_gauges(world, 0, row == 0);
        if (row == 0)
            revision = ml_strdup(revision_in(world->reported));
        assert_int_equal(tear_down(&opened), 0);
    }
}

/* It asks the server more often than a plan may. */
static void test_in_the_mode_plan_what_is_not_known_waits_for_approval(void **state)
{
    struct world *world = *state;
    ML_AUTO_FREE char *idle = using("");
    ML_AUTO_FREE char *asks = using("for i = 0, 100 do ctx.get(Use, 'x' .. i) end");
    set_guard(world, ML_ROLLOUT_PLAN);
    tell(world, idle, NULL);
    assert_live(world, "one");
    tell(world, asks, NULL);
    end_plan(world);
    assert_reported(world, "Warning ScriptHeld: ",
                    " would change nothing that is known; is not known for 1 of 1 objects (the "
                    "first: d/a: ");
    assert_gauges(world, 0, 1);
}

static void test_next_edit_ends_the_plan_of_the_one_before(void **state)
{
    struct world *world = *state;
    ML_AUTO_FREE char *third = using("-- third");
    begin_plan(world);
    tell(world, third, NULL);
    assert_true(world->parts->canceled);
    assert_live(world, "one");
}

static void test_going_back_ends_the_plan(void **state)
{
    struct world *world = *state;
    ML_AUTO_FREE char *idle = using("");
    begin_plan(world);
    tell(world, idle, NULL);
    assert_true(world->parts->canceled);
    assert_true(ready(world));
}

static void on_stopped(void *context)
{
    *(bool *)context = true;
}

static void test_stop_ends_the_plan(void **state)
{
    struct world *world = *state;
    bool stopped = false;
    begin_plan(world);
    ml_scripts_stop(world->scripts, on_stopped, &stopped);
    ml_loop_poll(world->loop);
    assert_true(world->parts->canceled);
    assert_true(stopped);
}

static void test_controllers_are_freed_with_their_plan(void **state)
{
    begin_plan(*state);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        GUARD_TEST(test_version_that_deletes_what_its_objects_own_is_held),
        GUARD_TEST(test_held_version_goes_live_when_it_is_approved),
        GUARD_TEST(test_edit_of_a_held_version_goes_live),
        GUARD_TEST(test_held_version_that_is_taken_back_is_not_held_any_more),
        GUARD_TEST(test_ten_deletions_are_not_held),
        GUARD_TEST(test_deletions_of_a_small_part_are_not_held),
        GUARD_TEST(test_deletions_of_a_larger_part_are_held),
        GUARD_TEST(test_version_that_fails_for_many_objects_is_refused),
        GUARD_TEST(test_version_that_fails_for_few_objects_goes_live),
        GUARD_TEST(test_one_object_says_nothing_about_a_version),
        GUARD_TEST(test_version_that_writes_without_end_is_held),
        GUARD_TEST(test_first_version_is_not_held),
        GUARD_TEST(test_immediate_rollout_holds_nothing),
        GUARD_TEST(test_version_cannot_set_its_own_limits),
        GUARD_TEST(test_limit_of_failures_is_that_of_the_version_that_runs),
        GUARD_TEST(test_limits_of_the_process_hold_where_a_version_has_none),
        GUARD_TEST(test_sample_is_as_large_as_the_process_says),
        GUARD_TEST(test_held_version_goes_live_when_its_source_says_immediate),
        GUARD_TEST(test_mode_that_is_not_known_is_told_and_guards),
        GUARD_TEST(test_in_the_mode_plan_each_change_waits_for_approval),
        GUARD_TEST(test_in_the_mode_plan_a_change_that_deletes_nothing_waits_too),
        GUARD_TEST(test_in_the_mode_plan_a_version_that_changes_nothing_is_live),
        GUARD_TEST(test_in_the_mode_plan_a_sample_waits_for_approval),
        GUARD_TEST(test_in_the_mode_plan_what_is_not_known_waits_for_approval),
        GUARD_TEST(test_in_the_mode_plan_a_version_that_fails_is_refused),
        cmocka_unit_test(test_limits_are_those_of_the_version_that_runs),
        cmocka_unit_test(test_mode_is_of_the_controller_then_the_source_then_the_process),
        cmocka_unit_test(test_version_may_be_let_go_while_its_plan_is_made),
        GUARD_TEST(test_next_edit_ends_the_plan_of_the_one_before),
        GUARD_TEST(test_going_back_ends_the_plan),
        GUARD_TEST(test_stop_ends_the_plan),
        GUARD_TEST(test_controllers_are_freed_with_their_plan),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
