/* Which runs have a read set, and what ends read sets for a script. */
#include "script_world.h"

#include "script/internal.h"

struct reading {
    char why[128]; /* "reads", or why there are none; empty until the run has ended */
    size_t lists;
};

static void on_done(void *context, struct ml_result *result)
{
    struct reading *reading = context;
    assert_true(!result->reads == (result->reads_gave_up != NULL));
    snprintf(reading->why, sizeof reading->why, "%s",
             result->reads ? "reads" : result->reads_gave_up);
    reading->lists = result->reads ? result->read_versions.list_count : 0;
}

/* Runs the script once, with the pod x-pod in the cache; what it asks of the server is refused. */
static void run(struct world *w, struct reading *reading)
{
    *reading = (struct reading){.lists = 0};
    struct ml_run *run = ml_script_reconcile(w->script, w->at, "0000abcd", on_done, reading);
    ml_loop_poll(w->loop);
    for (struct fake_call *call; !reading->why[0] && (call = fake_next(w->fake));)
        world_answer(w, call, 404, NOT_FOUND);
    if (!reading->why[0])
        ml_script_cancel(run);
}

/* `selection`: what of Pods the script watches. */
static void expect_of(const char *prelude, const char *selection, const char *body,
                      const char *want, size_t lists)
{
    struct world w;
    struct reading reading;
    world_open_file(&w, prelude, selection, body, &(struct ml_script_limits){0});
    ML_AUTO_FREE char *pod = world_pod_json("110", "at-uid");
    world_event(&w, "ADDED", pod);
    run(&w, &reading);
    if (strcmp(reading.why, want) != 0 || reading.lists != lists)
        fail_msg("'%s' and %zu lists, not '%s': %s", reading.why, reading.lists, want, body);
    world_close(&w);
}

static void expect(const char *body, const char *want)
{
    expect_of("", "nil", body, want, 0);
}

/* Though the compiled ones outlive the run. */
static void test_run_with_regular_expressions_has_a_read_set(void **state)
{
    (void)state;
    expect_of("local regex = require 'moonloop.regex' ", "nil",
              "for i = 1, 100 do assert(regex.match(at.metadata.name .. i, i .. '$')) end", "reads",
              0);
}

static void test_run_that_looks_at_the_cache_has_a_read_set(void **state)
{
    (void)state;
    expect("return", "reads");
    expect("return { status = { n = at.spec.size } }", "reads");
    expect("assert(ctx.get(Pod, 'x-pod').status.phase == 'Running')", "reads");
    expect("assert(ctx.get(Pod, 'none') == nil)", "reads");
    expect("assert(ctx.ensure(pod(at)).status.phase == 'Running')", "reads");
    expect("assert(#ctx.list(Pod, { owned = true }) == 1)", "reads");
    expect_of("", "nil", "assert(#ctx.list(Pod) == 1) ctx.list(Pod, { labels = { app = 'x' } })",
              "reads", 1);
    expect("ctx.log('x') ctx.event('X', 'y')", "reads");
    expect("return { requeue_after = 5 }", "reads");
}

static void test_run_that_asked_the_server_has_none(void **state)
{
    (void)state;
    expect("ctx.get(Secret, 's')", "it asks the server itself");
    expect("ctx.list(Secret)", "it asks the server itself");
    expect("ctx.create { apiVersion = 'v1', kind = 'Secret', metadata = { name = 's' } }",
           "it writes what is not watched in full");
    expect_of("", "{ metadata_only = true }", "ctx.ensure(pod(at))", "it asks the server itself",
              0);
    expect_of("", "{ fields = 'spec.nodeName=n' }",
              "local p = pod(at) p.metadata.name = 'y' ctx.apply(p)", "it asks the server itself",
              0);
    expect_of("", "{ fields = 'spec.nodeName=n' }", "ctx.create(pod(at))",
              "it writes what is not watched in full", 0);
}

static void test_run_of_which_a_write_was_refused_has_none(void **state)
{
    (void)state;
    expect("local p = pod(at) p.metadata.name = 'y' local made, err = ctx.apply(p)\n"
           "assert(not made and err.kind == 'NotFound')",
           "a write of it failed");
}

static void test_run_that_drew_random_numbers_has_none(void **state)
{
    (void)state;
    expect("local n = math.random()", "it draws random numbers");
    expect("local n = math.random(6)", "it draws random numbers");
    expect_of("local n = math.random()\n", "nil", "local m = n", "reads", 0);
    static const char *const calls[] = {"password(12)", "random(8)", "uuid()"};
    for (size_t i = 0; i < ML_COUNT(calls); i++) {
        ML_AUTO_FREE char *body = ml_asprintf("crypto.%s", calls[i]);
        expect_of("local crypto = require 'moonloop.crypto'\n", "nil", body,
                  "it draws random numbers", 0);
    }
    expect_of("local crypto = require 'moonloop.crypto'\n", "nil", "crypto.sha256('x')", "reads",
              0);
}

static void test_run_that_asked_for_the_time_has_one_if_it_is_called_again(void **state)
{
    (void)state;
    expect("local now = ctx.now()", "it asked for the time and not to be called again");
    expect("return { status = { t = ctx.now() } }",
           "it asked for the time and not to be called again");
    expect("return { requeue_at = ctx.now() + 5 }", "reads");
    expect("ctx.now() return { requeue_after = 5 }", "reads");
}

static void test_run_that_failed_has_none(void **state)
{
    (void)state;
    expect("return ctx.invalid('spec.size', 'odd')", "it failed");
    expect("return ctx.terminal('odd')", "it failed");
    expect("error 'odd'", "it failed");
    expect("assert(not pcall(string.rep, 'x', 1e9)) for i = 1, 1e9 do end", "it failed");
}

static void test_run_that_caught_the_end_of_memory_has_none(void **state)
{
    (void)state;
    struct world w;
    struct reading reading;
    const struct ml_script_limits limits = {.memory_max = (size_t)1024 * 1024};
    world_open(&w,
               "local t = {} for i = 1, 6000 do t[i] = 'a text of some length, number ' .. i end\n"
               "local ok = pcall(require('cjson').encode, { t, t, t, t }) assert(not ok)",
               &limits);
    run(&w, &reading);
    assert_string_equal(reading.why, "memory");
    world_close(&w);
}

/* A script whose second run changes something that outlives it. */
static void ends_reads(const char *prelude, const char *statement, const char *reason)
{
    struct world w;
    struct reading reading;
    ML_AUTO_FREE char *text = ml_asprintf("local moonloop = require 'moonloop'\n%s\n", prelude);
    ML_AUTO_FREE char *body = ml_asprintf("if at.spec.size == 4 then %s end", statement);
    world_open_file(&w, text, "nil", body, NULL);
    run(&w, &reading);
    assert_string_equal(reading.why, "reads");
    assert_null(ml_script_reads_off(w.script));
    struct ml_object *at = w.at;
    struct ml_err err = ML_ERR_INIT;
    assert_int_equal(ml_object_new(w.dict, "example.com/v1", "At",
                                   ML_STR("{\"metadata\":{\"name\":\"x\",\"namespace\":"
                                          "\"default\",\"uid\":\"at-uid\",\"resourceVersion\":"
                                          "\"51\"},\"spec\":{\"size\":4}}"),
                                   &w.at, &err),
                     0);
    run(&w, &reading);
    assert_string_equal(reading.why, "state that outlives the run");
    assert_non_null(ml_script_reads_off(w.script));
    if (!strstr(ml_script_reads_off(w.script), reason))
        fail_msg("'%s' is not in '%s'", reason, ml_script_reads_off(w.script));
    ml_object_unref(w.at);
    w.at = at;
    run(&w, &reading);
    assert_string_equal(reading.why, "state that outlives the run");
    world_close(&w);
}

static void test_variable_that_outlives_a_run_ends_read_sets(void **state)
{
    (void)state;
    ends_reads("local count = 0", "count = count + 1", " count");
    ends_reads("local seen = {}", "seen[at.metadata.name] = true", "'seen'");
    ends_reads("local seen = { list = { 1, 2 } }", "seen.list[2] = 3", "outlives the run");
    ends_reads("local seen = { 1, 2 }", "seen[#seen] = nil", "'seen'");
    ends_reads("local seen = setmetatable({}, { __index = function() end })",
               "setmetatable(seen, nil)", "'seen'");
    ends_reads("local hidden = setmetatable({}, { __index = { n = 1 } })",
               "getmetatable(hidden).__index.n = 2", "outlives the run");
    ends_reads("local function counter() local n = 0 return function() n = n + 1 return n end end\n"
               "local next_number = counter()",
               "next_number()", " n");
    ends_reads("local letters = ('abc'):gmatch '%%a'", "letters()", "a local variable changed");
    /* Emptied, it has room, and lengths are found otherwise: */
    ends_reads("local scratch = {}", "scratch.key = true scratch.key = nil", "'scratch'");
    ends_reads("local scratch = {}",
               "for i = 1, 8 do scratch['k' .. i] = i end "
               "for key in pairs(scratch) do scratch[key] = nil end",
               "'scratch'");
}

/* Lua begins to look for the length of a table where it found it the last time. */
static void test_length_of_a_table_with_holes_is_the_same_in_each_run(void **state)
{
    (void)state;
    struct world w;
    struct reading reading;
    world_open_file(&w,
                    "local holes = { 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, nil, 12, 13, nil, nil, nil }\n"
                    "local first = #holes\n",
                    "nil",
                    "assert(#holes == first)\n"
                    "local gone = holes[15]\n"
                    "assert(#holes ~= first and not gone)",
                    NULL);
    for (int i = 0; i < 3; i++) {
        run(&w, &reading);
        assert_string_equal(reading.why, "reads");
    }
    assert_null(ml_script_reads_off(w.script));
    world_close(&w);
}

static void test_table_of_a_library_or_the_environment_ends_read_sets(void **state)
{
    (void)state;
    ends_reads("", "string.extra = 1", "outlives the run");
    ends_reads("", "require('moonloop').extra = 1", "outlives the run");
    ends_reads("", "rawset(_ENV, 'extra', 1)", "'_ENV'");
}

/* The script replaces what it kept. The first value stays in memory, or the next one may get its
 * address and look like it. Under ASan nothing is freed that is looked at here. */
static void test_value_that_is_compared_by_its_address_is_held(void **state)
{
    (void)state;
    static const char *const values[] = {
        "('x'):rep(100)",
        "'short' .. 1",
        "{ 1 }",
        "function() end",
        "moonloop.kind('v1', 'Held')",
        "require('cjson').decode('{\"a\":1}')",
        "require('cjson').decode('1e999')",
    };
    for (size_t i = 0; i < ML_COUNT(values); i++) {
        struct world w;
        struct reading reading;
        ML_AUTO_FREE char *prelude = ml_asprintf("local moonloop = require 'moonloop'\n"
                                                 "local kept = %s\nlocal key = { [kept] = 1 }\n",
                                                 values[i]);
        world_open_file(&w, prelude, "nil", "kept = 1 for k in pairs(key) do key[k] = nil end",
                        NULL);
        lua_State *L = w.script->L;
        lua_rawgeti(L, LUA_REGISTRYINDEX, w.script->reconcile_ref);
        const char *name = "";
        for (int up = 1; strcmp(name, "kept") != 0; up++) {
            lua_settop(L, 1);
            name = lua_getupvalue(L, 1, up);
            assert_non_null(name);
        }
        const char *at = lua_type(L, 2) == LUA_TSTRING ? lua_tostring(L, 2) : lua_topointer(L, 2);
        lua_settop(L, 0);
        run(&w, &reading);
        lua_gc(L, LUA_GCCOLLECT, 0);
        lua_gc(L, LUA_GCCOLLECT, 0);
        volatile char first = *at; /* ASan says whether it is there */
        (void)first;
        assert_non_null(ml_script_reads_off(w.script));
        world_close(&w);
    }
}

/* ctx is the same in all runs. */
static void test_ctx_takes_nothing_that_would_outlive_the_run(void **state)
{
    (void)state;
    static const char *const ways[] = {
        "rawset(ctx, 'x', 1)",
        "table.insert(ctx, 1)",
        "table.move({ 1 }, 1, 1, 1, ctx)",
        "setmetatable(ctx, {})",
        "moonloop.array(ctx)",
        "moonloop.recreate(ctx)",
        "ctx.x = 1",
        "ctx[1] = 1",
        "table.sort(ctx)",
        "table.remove(ctx)",
        "rawset(ctx, 1, 1)",
        "ctx.get.x = 1",
    };
    for (size_t i = 0; i < ML_COUNT(ways); i++) {
        ML_AUTO_FREE char *body = ml_asprintf("assert(not pcall(function() %s end))\n"
                                              "assert(not pcall(rawget, ctx, 'x'))\n"
                                              "assert(not pcall(next, ctx))",
                                              ways[i]);
        expect_of("local moonloop = require 'moonloop'\n", "nil", body, "reads", 0);
    }
}

/* A constant table that is only read, one that came from JSON, and locals of the run. */
static void test_what_only_the_run_changes_leaves_read_sets(void **state)
{
    (void)state;
    const char *body =
        "local mine = {} for k, v in pairs(list) do mine[k] = v end\n"
        "for k in pairs(json) do mine[k] = true end require('cjson').encode(json)\n"
        "table.sort(mine, function(a, b) return tostring(a) < tostring(b) end)\n"
        "local at = time.parse('2026-01-01T00:00:00Z') return { status = { n = #list } }";
    expect_of("local list = { 1, 2, 3 }\n"
              "local json = require('cjson').decode('{\"a\":[1,{}],\"b\":2}')\n",
              "nil", body, "reads", 0);
}

/* A watch function's change of a variable is noticed before the next run, and ends read sets. */
static void test_watch_function_that_keeps_something_ends_read_sets(void **state)
{
    (void)state;
    struct world w;
    struct ml_err err = ML_ERR_INIT;
    world_open_file(&w, "local count = 0\nmap = function() count = count + 1 end\n", "nil",
                    "local n = count", NULL);
    ML_AUTO_FREE char *json = world_pod_json("110", "at-uid");
    world_event(&w, "ADDED", json);
    struct ml_object *pod = ml_store_get(ml_informer_store(w.pods), ML_STR("default/x-pod"));
    assert_null(ml_script_reads_off(w.script));
    assert_int_equal(ml_script_map(w.script, 2, pod, NULL, NULL, &err), 0);
    assert_non_null(ml_script_reads_off(w.script));
    assert_non_null(strstr(ml_script_reads_off(w.script), "count"));
    world_close(&w);
}

static void test_script_that_keeps_too_much_has_no_read_sets(void **state)
{
    (void)state;
    expect_of("local large = {} for i = 1, 5000 do large[i] = i end\n", "nil", "local n = large[1]",
              "state that outlives the run", 0);
}

/* The run that began before another one changed a variable has seen half of it. */
static void test_run_that_waits_while_another_changes_a_variable_has_none(void **state)
{
    (void)state;
    struct world w;
    struct reading first = {.lists = 0}, second = {.lists = 0};
    world_open_file(&w, "local busy = false\n", "nil",
                    "if at.spec.size == 3 then busy = true ctx.get(Secret, 's') busy = false end",
                    NULL);
    ml_script_reconcile(w.script, w.at, "1", on_done, &first);
    ml_loop_poll(w.loop);
    assert_non_null(ml_script_reads_off(w.script));
    assert_non_null(strstr(ml_script_reads_off(w.script), "busy"));
    world_answer(&w, fake_next(w.fake), 404, NOT_FOUND);
    ml_script_reconcile(w.script, w.at, "2", on_done, &second);
    ml_loop_poll(w.loop);
    world_answer(&w, fake_next(w.fake), 404, NOT_FOUND);
    assert_true(first.why[0] && second.why[0]);
    assert_non_null(ml_script_reads_off(w.script)); /* though it is again what it was */
    world_close(&w);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_run_that_looks_at_the_cache_has_a_read_set),
        cmocka_unit_test(test_run_with_regular_expressions_has_a_read_set),
        cmocka_unit_test(test_run_that_asked_the_server_has_none),
        cmocka_unit_test(test_run_of_which_a_write_was_refused_has_none),
        cmocka_unit_test(test_run_that_drew_random_numbers_has_none),
        cmocka_unit_test(test_run_that_asked_for_the_time_has_one_if_it_is_called_again),
        cmocka_unit_test(test_run_that_failed_has_none),
        cmocka_unit_test(test_run_that_caught_the_end_of_memory_has_none),
        cmocka_unit_test(test_variable_that_outlives_a_run_ends_read_sets),
        cmocka_unit_test(test_length_of_a_table_with_holes_is_the_same_in_each_run),
        cmocka_unit_test(test_value_that_is_compared_by_its_address_is_held),
        cmocka_unit_test(test_ctx_takes_nothing_that_would_outlive_the_run),
        cmocka_unit_test(test_table_of_a_library_or_the_environment_ends_read_sets),
        cmocka_unit_test(test_what_only_the_run_changes_leaves_read_sets),
        cmocka_unit_test(test_watch_function_that_keeps_something_ends_read_sets),
        cmocka_unit_test(test_script_that_keeps_too_much_has_no_read_sets),
        cmocka_unit_test(test_run_that_waits_while_another_changes_a_variable_has_none),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
