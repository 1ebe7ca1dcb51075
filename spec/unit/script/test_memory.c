/* Memory that the host holds for a script is charged to the script's budget until it is free. Each
 * attack runs in as many reconciles at once as it likes. */
#include "script_world.h"

#include "script/internal.h"

#define RUNS 300
#define MIB  ((size_t)1024 * 1024)

/* Of one script: an answer that is read into Lua while the client still holds it, and what is
 * written already. */
#define SLACK MIB

struct many {
    struct ml_run *run[RUNS];
    struct told told[RUNS];
};

static size_t start_many(struct world *w, struct many *many)
{
    size_t most = 0;
    for (size_t i = 0; i < RUNS; i++) {
        many->run[i] = world_start(w, &many->told[i]);
        most = ML_MAX(most, ml_script_budget(w->script)->used);
    }
    return most;
}

static size_t failed_with(const struct many *many, const char *part)
{
    size_t count = 0;
    for (size_t i = 0; i < RUNS; i++)
        count += many->told[i].count == 1 && strstr(many->told[i].message, part) != NULL;
    return count;
}

static void cancel_many(struct many *many)
{
    for (size_t i = 0; i < RUNS; i++)
        if (many->told[i].count == 0)
            ml_script_cancel(many->run[i]);
}

/* When all runs are gone, only the state with its garbage is left, and nothing of the host's. */
static void assert_all_given_back(struct world *w)
{
    struct ml_budget *budget = ml_script_budget(w->script);
    size_t room = budget->max - MIB;
    assert_true(ml_budget_take(budget, room)); /* collects garbage */
    ml_budget_give(budget, room);
}

static void test_memory_bodies_in_flight_are_charged(void **state)
{
    (void)state;
    static struct many many;
    struct world w;
    world_open(&w,
               "local body = pod(at) body.spec.text = ('x'):rep(900 * 1024)\n"
               "body.metadata.name = 'p' .. math.random(1e9)\n"
               "local made, err = ctx.create(body)\n"
               "if not made then error(err) end",
               NULL);
    size_t most = start_many(&w, &many);
    assert_in_range(most, 8 * MIB, 16 * MIB + SLACK);
    size_t waiting = fake_waiting(w.fake) - 1; /* the watch */
    assert_in_range(waiting, 2, 6);
    assert_int_equal(failed_with(&many, "out of memory"), RUNS - waiting);
    cancel_many(&many);
    assert_all_given_back(&w);
    world_close(&w);
}

static void test_memory_answers_on_their_way_are_charged(void **state)
{
    (void)state;
    static struct many many;
    struct world w;
    world_open(&w,
               "local got, err = ctx.get(Secret, 's')\n"
               "if not got then return ctx.invalid('spec', err.kind .. ' ' .. err.message) end",
               NULL);
    start_many(&w, &many);
    ML_AUTO_FREE char *piece = ml_zalloc(MIB + 1);
    memset(piece, ' ', MIB);
    size_t taken = 0, most = 0;
    for (size_t i = 0; i < 100; i++) { /* so many requests are sent at once */
        struct fake_call *call = fake_next(w.fake);
        fake_head(call, 200);
        taken += fake_piece(call, piece);
        most = ML_MAX(most, ml_script_budget(w.script)->used);
    }
    ml_loop_poll(w.loop);
    assert_in_range(taken, 10, 16);
    assert_in_range(most, 10 * MIB, 16 * MIB + SLACK);
    assert_in_range(failed_with(&many, "out of memory for the answer (limit 16384 KiB)"), 84, 90);
    cancel_many(&many);
    world_close(&w);
}

static void test_memory_statuses_are_bounded(void **state)
{
    (void)state;
    struct world w;
    struct told told;
    world_open(&w, "return { status = { text = ('x'):rep(1024 * 1024) } }", NULL);
    world_start(&w, &told);
    assert_int_equal(told.count, 1);
    assert_int_equal(told.outcome, ML_OUTCOME_ERROR);
    assert_string_equal(told.message, "at.lua:12: status: larger than 1024 KiB as JSON");
    assert_in_range(ml_script_budget(w.script)->used, 1, 4 * MIB);
    world_close(&w);
    world_open(&w, "return { status = { text = ('x'):rep(1000 * 1024) } }", NULL);
    world_start(&w, &told);
    assert_int_equal(told.outcome, ML_OUTCOME_OK);
    world_close(&w);
}

/* As JSON it is a megabyte, in Lua one string a thousand times. */
static void test_memory_status_is_charged(void **state)
{
    (void)state;
    static const struct {
        size_t memory_max;
        enum ml_outcome outcome;
    } cases[] = {{4 * MIB, ML_OUTCOME_OK}, {1 * MIB, ML_OUTCOME_ERROR}};
    for (size_t i = 0; i < ML_COUNT(cases); i++) {
        const struct ml_script_limits limits = {.memory_max = cases[i].memory_max};
        struct world w;
        struct told told;
        world_open(&w,
                   "local list, text = {}, ('x'):rep(1000)\n"
                   "for i = 1, 1000 do list[i] = text end return { status = { list = list } }",
                   &limits);
        world_start(&w, &told);
        assert_int_equal(told.outcome, cases[i].outcome);
        if (told.outcome == ML_OUTCOME_ERROR)
            assert_non_null(strstr(told.message, "out of memory (limit 1 MiB)"));
        assert_all_given_back(&w);
        world_close(&w);
    }
}

/* A script whose own state is nearly full has no room for what it hands over. */
static void test_memory_of_the_host_and_of_lua_are_one_budget(void **state)
{
    (void)state;
    struct world w;
    struct told told;
    world_open(&w,
               "local held = {} for i = 1, 20 do held[i] = (i .. 'x'):rep(300 * 1024) end\n"
               "local parts = {} for i = 1, 2 do parts[i] = held[i] end\n"
               "ctx.log('large', { parts = parts })\n"
               "return { status = { n = #held } }",
               NULL);
    world_start(&w, &told);
    assert_int_equal(told.outcome, ML_OUTCOME_ERROR);
    assert_non_null(strstr(told.message, "out of memory (limit 16 MiB)"));
    assert_all_given_back(&w);
    world_close(&w);
}

/* Garbage is no reason to refuse: it is collected first. */
static void test_memory_garbage_makes_room(void **state)
{
    (void)state;
    struct world w;
    struct told told;
    world_open(&w,
               "for i = 1, 40 do local s = (i .. 'x'):rep(200 * 1024) end\n"
               "return { status = { text = ('x'):rep(1000 * 1024) } }",
               NULL);
    for (int i = 0; i < 20; i++) {
        world_start(&w, &told);
        assert_int_equal(told.outcome, ML_OUTCOME_OK);
        assert_in_range(ml_script_budget(w.script)->used, 1, 16 * MIB);
    }
    world_close(&w);
}

static void test_memory_log_fields_and_events_leave_nothing(void **state)
{
    (void)state;
    static struct many many;
    struct world w;
    world_open(
        &w,
        "local text = ('x'):rep(900 * 1024)\n"
        "for i = 1, 40 do ctx.log(text, { text = text }) ctx.event('Reason' .. i, text) end\n"
        "ctx.get(Secret, 's')",
        NULL);
    size_t most = start_many(&w, &many);
    assert_in_range(most, MIB, 16 * MIB);
    cancel_many(&many);
    assert_all_given_back(&w);
    for (size_t i = 0; i < fake_count(w.fake); i++)
        if (strstr(fake_call_at(w.fake, i)->path, "/events"))
            assert_in_range(fake_call_at(w.fake, i)->body_len, 1024, 2048);
    world_close(&w);
}

/* Applied objects are remembered as long as there is room. */
static void test_memory_of_what_was_applied_is_charged(void **state)
{
    (void)state;
    struct world w;
    struct told told;
    world_open(&w,
               "local body = pod(at)\n"
               "for i = 1, 60 do body.metadata.name = 'p' .. ctx.now() .. i ctx.apply(body) end",
               NULL);
    size_t before = 0;
    for (int round = 0; round < 40; round++) { /* Lua's garbage comes and goes meanwhile */
        w.clock.wall_ns += ML_NS_PER_S;
        world_start(&w, &told);
        for (int i = 0; i < 60; i++)
            world_answer(&w, fake_next(w.fake), 200, "{\"metadata\":{\"resourceVersion\":\"7\"}}");
        assert_int_equal(told.outcome, ML_OUTCOME_OK);
        before = round == 0 ? ml_script_budget(w.script)->used : before;
    }
    assert_true(ml_script_budget(w.script)->used > before + (size_t)2340 * 64);
    world_close(&w);
}

/* The reader of YAML has memory of its own, on behalf of the script. */
static void test_memory_of_yaml_being_read_is_charged(void **state)
{
    (void)state;
    static const struct {
        size_t elements, memory_max;
        enum ml_outcome outcome;
    } cases[] = {{1000, 2 * MIB, ML_OUTCOME_OK},
                 {40000, 2 * MIB, ML_OUTCOME_ERROR},
                 {40000, 16 * MIB, ML_OUTCOME_OK}};
    for (size_t i = 0; i < ML_COUNT(cases); i++) {
        struct world w;
        struct told told;
        const struct ml_script_limits limits = {.memory_max = cases[i].memory_max,
                                                .run_cpu_ns = 10 * ML_NS_PER_S};
        ML_AUTO_FREE char *body = ml_asprintf(
            "local yaml = require 'moonloop.yaml'\n"
            "yaml.decode('x: [' .. ('a,'):rep(%zu) .. ']\\nx: 5')",
            cases[i].elements);
        world_open_file(&w, "require 'moonloop.yaml'\n", "nil", body, &limits);
        world_start(&w, &told);
        if (told.outcome != cases[i].outcome)
            fail_msg("%zu elements: %s", cases[i].elements, told.message);
        if (cases[i].outcome != ML_OUTCOME_OK)
            assert_non_null(strstr(told.message, "out of memory (limit 2 MiB)"));
        assert_all_given_back(&w);
        world_close(&w);
    }
}

/* The work space for the result is charged already, and stays when the text is read. */
static void test_memory_of_yaml_is_charged_once(void **state)
{
    (void)state;
    static const char *const bodies[] = {"yaml.decode('x: 5')", "yaml.encode { x = 5 }"};
    for (size_t i = 0; i < ML_COUNT(bodies); i++) {
        struct world w;
        struct told told;
        ML_AUTO_FREE char *body = ml_asprintf("local yaml = require 'moonloop.yaml'\n%s",
                                              bodies[i]);
        world_open_file(&w, "require 'moonloop.yaml'\n", "nil", body, NULL);
        struct ml_budget *budget = ml_script_budget(w.script);
        assert_non_null(ml_buf_reserve(&w.script->outgoing, 2 * MIB));
        script_release_work(w.script, 4 * MIB);
        size_t full = budget->max - ml_script_budget(w.script)->used - MIB;
        ml_budget_force(budget, full);
        world_start(&w, &told);
        ml_budget_give(budget, full);
        if (told.outcome != ML_OUTCOME_OK)
            fail_msg("%s: %s", bodies[i], told.message);
        world_close(&w);
    }
}

/* The work spaces of the host grow beside a state that is nearly full: by the object that is
 * opened, and by the traceback of an error. They are kept only if there is room for them. */
static void test_memory_of_work_spaces_stays_below_the_limit(void **state)
{
    (void)state;
    struct world w;
    struct told told;
    world_open(&w, "return { status = { phase = 'X' } }", NULL);
    world_start(&w, &told);
    struct ml_budget *budget = ml_script_budget(w.script);
    for (int opened = 0; opened < 2; opened++) {
        struct ml_buf *grows = opened ? &w.script->opened : &w.script->traceback;
        size_t full = budget->max - ml_script_budget(w.script)->used - 1000;
        ml_budget_force(budget, full);
        assert_non_null(ml_buf_reserve(grows, SCRIPT_WORK_KEPT - 1));
        if (opened)
            script_release_opened(w.script);
        else
            script_release_work(w.script, SCRIPT_WORK_KEPT);
        assert_in_range(ml_script_budget(w.script)->used, 1, budget->max);
        ml_budget_give(budget, full);
    }
    world_start(&w, &told);
    assert_int_equal(told.outcome, ML_OUTCOME_OK);
    world_close(&w);
}

/* Each place of the text is another state of RE2's, so an expression holds some 100 KiB. */
#define REGEX_PRELUDE                                                                              \
    "local regex = require 'moonloop.regex' local bits, seed = {}, 1\n"                            \
    "for i = 1, 5000 do seed = (seed * 1103515245 + 12345) % 2147483648\n"                         \
    "  bits[i] = seed >> 16 & 1 == 1 and 'a' or 'b' end\n"                                         \
    "local text = table.concat(bits) "
#define REGEX_LOOP(count)                                                                          \
    "for i = 1, " count " do regex.match(text, '(?:a|b)*a(?:a|b){12}c' .. i) end"

static size_t used_after(const char *body)
{
    struct world w;
    struct told told;
    world_open_file(&w, REGEX_PRELUDE, "nil", body, NULL);
    world_start(&w, &told);
    expect_outcome(&told, ML_OUTCOME_OK, "");
    lua_gc(w.script->L, LUA_GCCOLLECT);
    size_t used = ml_script_budget(w.script)->used;
    world_close(&w);
    return used;
}

static void test_memory_of_regular_expressions_is_charged_and_bounded(void **state)
{
    (void)state;
    size_t without = used_after("regex.quote ''");
    assert_in_range(used_after(REGEX_LOOP("3")) - without, 300 * 1024, MIB);
    assert_in_range(used_after(REGEX_LOOP("300")) - without, MIB, 5 * MIB / 2);
    size_t small = used_after("for i = 1, 300 do regex.match('x', 'x' .. i) end") - without;
    assert_in_range(small, 64 * 1024, 256 * 1024); /* 64 of them */
}

static void test_memory_that_an_expression_needs_may_be_too_much(void **state)
{
    (void)state;
    static const struct ml_script_limits limits = {.memory_max = 900 * 1024};
    struct world w;
    struct told told;
    world_open_file(&w, REGEX_PRELUDE, "nil", REGEX_LOOP("30"), &limits);
    for (int i = 0; i < 2; i++) {
        world_start(&w, &told);
        assert_int_equal(told.count, 1);
        assert_non_null(strstr(told.message, "out of memory (limit 900 KiB)"));
    }
    world_close(&w);
}

/* The memory of a script that has used the first `count` of twenty zones whose files are large. */
static size_t used_with_zones(int count)
{
    struct world w;
    struct told told;
    ML_AUTO_FREE char *body = ml_asprintf(
        "local names = { 'New_York', 'Chicago', 'Denver', 'Los_Angeles', 'Toronto', 'Halifax',\n"
        "  'St_Johns', 'Winnipeg', 'Vancouver', 'Edmonton', 'Havana', 'Boise', 'Detroit',\n"
        "  'Goose_Bay', 'Menominee', 'Moncton', 'Anchorage', 'Juneau', 'Glace_Bay', 'Nome' }\n"
        "for i = 1, %d do assert(time.zone('America/' .. names[i])) end",
        count);
    world_open(&w, body, NULL);
    world_start(&w, &told);
    assert_int_equal(told.count, 1);
    assert_string_equal(told.message, "");
    struct ml_budget *budget = ml_script_budget(w.script);
    assert_false(ml_budget_take(budget, budget->max)); /* collects garbage */
    size_t used = budget->used;
    world_close(&w);
    return used;
}

static void test_memory_of_one_more_zone(void **state)
{
    (void)state;
    size_t each = (used_with_zones(20) - used_with_zones(1)) / 19;
    print_message("one more time zone takes %zu bytes\n", each);
    assert_in_range(each, 1024, 8 * 1024);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_memory_bodies_in_flight_are_charged),
        cmocka_unit_test(test_memory_answers_on_their_way_are_charged),
        cmocka_unit_test(test_memory_statuses_are_bounded),
        cmocka_unit_test(test_memory_status_is_charged),
        cmocka_unit_test(test_memory_of_the_host_and_of_lua_are_one_budget),
        cmocka_unit_test(test_memory_garbage_makes_room),
        cmocka_unit_test(test_memory_log_fields_and_events_leave_nothing),
        cmocka_unit_test(test_memory_of_what_was_applied_is_charged),
        cmocka_unit_test(test_memory_of_yaml_being_read_is_charged),
        cmocka_unit_test(test_memory_of_yaml_is_charged_once),
        cmocka_unit_test(test_memory_of_work_spaces_stays_below_the_limit),
        cmocka_unit_test(test_memory_of_one_more_zone),
        cmocka_unit_test(test_memory_of_regular_expressions_is_charged_and_bounded),
        cmocka_unit_test(test_memory_that_an_expression_needs_may_be_too_much),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
