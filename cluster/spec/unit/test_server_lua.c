/* The Lua state of the host's own Lua: how it runs texts, finds modules, reports errors,
 * and what of it goes with it. */
#include "unit.h"

#include "cluster/host/server_lua.h"

#include <stdio.h>

struct fixture {
    struct ml_clock_fake clock;
    struct ml_loop *loop;
    struct ml_server_lua *lua;
    size_t failures;
    char failure[512];
};

static void on_failed(void *context, const char *message)
{
    struct fixture *fixture = context;
    fixture->failures++;
    snprintf(fixture->failure, sizeof fixture->failure, "%s", message);
}

static int set_up(void **state)
{
    struct fixture *fixture = ml_new(struct fixture);
    ml_clock_fake_init(&fixture->clock, INT64_C(1700000000) * ML_NS_PER_S);
    fixture->loop = ml_loop_new(&fixture->clock.clock);
    fixture->lua = ml_server_lua_new(&(struct ml_server_lua_options){
        .loop = fixture->loop,
        .clock = &fixture->clock.clock,
        .failed = on_failed,
        .context = fixture,
    });
    *state = fixture;
    return 0;
}

static int tear_down(void **state)
{
    struct fixture *fixture = *state;
    ml_server_lua_free(fixture->lua);
    ml_loop_free(fixture->loop);
    free(fixture);
    return 0;
}

static void run(struct fixture *fixture, const char *text)
{
    struct ml_err err;
    if (ml_server_lua_run(fixture->lua, "t.lua", ml_str_of(text), &err) < 0)
        fail_msg("%s", ml_server_lua_traceback(fixture->lua));
}

static void advance(struct fixture *fixture, int64_t ns)
{
    ml_clock_fake_advance(&fixture->clock, ns);
    ml_loop_poll(fixture->loop);
}

static void test_server_lua_error_is_its_first_line_and_the_traceback_is_kept(void **state)
{
    static const struct {
        const char *text, *message;
    } cases[] = {
        {"local x = = 1", "t.lua:1: unexpected symbol near '='"},
        {"\nerror 'a\\nb'", "t.lua:2: a"},
        {"error { }", "table: "},
        {"error(setmetatable({}, { __tostring = function() return 'mine' end }))", "mine"},
        {"error()", "nil"},
        {"error(setmetatable({}, { __tostring = error }))", "C stack overflow"},
        {"local function f() return f() + 1 end f()", "stack overflow"},
        {"\033Lua", "attempt to load a binary chunk"},
    };
    struct fixture *fixture = *state;
    struct ml_err err;
    assert_string_equal(ml_server_lua_traceback(fixture->lua), "");
    for (size_t i = 0; i < ML_COUNT(cases); i++) {
        int r = ml_server_lua_run(fixture->lua, "t.lua", ml_str_of(cases[i].text), &err);
        assert_int_equal(r, ML_ESCRIPT);
        if (!strstr(err.message, cases[i].message))
            fail_msg("'%s' is not in '%s'", cases[i].message, err.message);
        assert_null(strchr(err.message, '\n'));
    }
    assert_int_equal(ml_server_lua_run(fixture->lua, "t", ML_STR("local a; a.b = 1"), &err),
                     ML_ESCRIPT);
    assert_non_null(strstr(ml_server_lua_traceback(fixture->lua), "stack traceback:"));
}

static void test_server_lua_require_finds_the_embedded_library_but_no_stubs(void **state)
{
    run(*state, "local field, file = require 'cluster.apiserver.field'\n"
                "assert(type(field) == 'table' and file == 'cluster/apiserver/field.lua')\n"
                "assert(require 'cluster.host' == require 'cluster.host')\n"
                "local good, why = pcall(require, 'moonloop.meta.host')\n"
                "assert(not good and why:find \"no embedded module 'moonloop.meta.host'\")\n"
                "assert(moonloop == nil)");
}

static void test_server_lua_error_in_a_callback_ends_that_callback_only(void **state)
{
    struct fixture *fixture = *state;
    run(fixture, "local host = require 'cluster.host'\n"
                 "calls = 0\n"
                 "host.after(1, function() error 'first' end)\n"
                 "host.after(1, function() calls = calls + 1 end)\n"
                 "host.defer(function() error 'zeroth' end)\n"
                 "host.defer(function() calls = calls + 1 end)");
    ml_loop_poll(fixture->loop);
    assert_int_equal(fixture->failures, 1);
    assert_non_null(strstr(fixture->failure, "zeroth"));
    assert_non_null(strstr(fixture->failure, "stack traceback:"));
    advance(fixture, ML_NS_PER_S);
    assert_int_equal(fixture->failures, 2);
    run(fixture, "assert(calls == 2)");
}

static void test_server_lua_timer_never_comes_early(void **state)
{
    struct fixture *fixture = *state;
    run(fixture, "came = 0\n"
                 "require 'cluster.host'.after(1e-10, function() came = came + 1 end)");
    ml_loop_poll(fixture->loop);
    run(fixture, "assert(came == 0)");
    advance(fixture, 1);
    run(fixture, "assert(came == 1)");
}

static void test_server_lua_goes_with_timers_and_functions_that_wait(void **state)
{
    struct fixture *fixture = *state;
    run(fixture, "local host = require 'cluster.host'\n"
                 "kept = host.after(1, print) host.after(2, print) host.defer(print)\n"
                 "setmetatable({}, { __gc = function() kept:stop() end })");
    ml_server_lua_free(fixture->lua);
    fixture->lua = NULL;
    assert_true(ml_loop_next(fixture->loop) == INT64_MAX);
}

static void test_server_lua_without_a_loop_has_nothing_to_wait_on(void **state)
{
    struct ml_err err;
    (void)state;
    struct ml_server_lua *lua = ml_server_lua_new(&(struct ml_server_lua_options){.loop = NULL});
    assert_int_equal(ml_server_lua_run(lua, "t",
                                       ML_STR("local host = require 'cluster.host'\n"
                                              "assert(not pcall(host.after, 1, print))\n"
                                              "assert(not pcall(host.defer, print))\n"
                                              "assert(host.now() > 1.7e9 and #host.uuid() == 36)"),
                                       &err),
                     0);
    ml_server_lua_free(lua);
}

/* "back" returns its argument, "nothing" writes an empty result, "turn" runs the loop. */

static int give_back(void *context, struct ml_str argument, struct ml_buf *result,
                     struct ml_err *err)
{
    (void)context;
    if (argument.len == 0)
        return ml_err_set(err, ML_EINVALID, "nothing was given");
    ml_buf_append_str(result, argument);
    return 0;
}

static int do_nothing(void *context, struct ml_str argument, struct ml_buf *result,
                      struct ml_err *err)
{
    (void)context, (void)argument, (void)result, (void)err;
    return 0;
}

static int turn(void *context, struct ml_str argument, struct ml_buf *result, struct ml_err *err)
{
    struct fixture *fixture = context;
    (void)err;
    advance(fixture, ML_NS_PER_S);
    return give_back(context, argument, result, err);
}

static void test_server_lua_defined_function_takes_and_gives_json(void **state)
{
    struct fixture *fixture = *state;
    ml_server_lua_define(fixture->lua, "test", "back", give_back, NULL);
    ml_server_lua_define(fixture->lua, "test", "nothing", do_nothing, NULL);
    run(fixture,
        "local json, test = require 'cluster.host'.json, require 'test'\n"
        "assert(test.nothing() == true and test.back(12) == 12)\n"
        "assert(json.equal(test.back { a = { 1, json.null } }, { a = { 1, json.null } }))\n"
        "local value, why = test.back()\n"
        "assert(value == nil and why == 'nothing was given')\n"
        "assert(not pcall(test.back, print))");
}

static void test_server_lua_defined_function_runs_the_loop_above_its_caller(void **state)
{
    struct fixture *fixture = *state;
    ml_server_lua_define(fixture->lua, "test", "turn", turn, fixture);
    run(fixture, "local host, test = require 'cluster.host', require 'test'\n"
                 "local main, threads = coroutine.running(), {}\n"
                 "local function note() threads[#threads + 1] = coroutine.running() end\n"
                 "local co = coroutine.create(function()\n"
                 "  host.after(1, note)\n"
                 "  host.after(1, function() host.json.encode { x = 1 } error 'inside' end)\n"
                 "  host.after(1, function() coroutine.yield() end)\n"
                 "  assert(test.turn('kept') == 'kept')\n"
                 "  coroutine.yield()\n"
                 "end)\n"
                 "assert(coroutine.resume(co))\n"
                 "assert(#threads == 1 and threads[1] ~= co and threads[1] ~= main)\n"
                 "host.after(1, note) test.turn(1)\n"
                 "assert(#threads == 2 and threads[2] ~= main)\n"
                 "coroutine.close(co) collectgarbage() test.turn(1)");
    assert_int_equal(fixture->failures, 1);
    assert_non_null(strstr(fixture->failure, "inside"));
}

/* Work that takes longer than a turn. */
static int take_long(void *context, struct ml_str argument, struct ml_buf *result,
                     struct ml_err *err)
{
    (void)argument, (void)result, (void)err;
    ml_clock_fake_advance(&((struct fixture *)context)->clock, 15 * ML_NS_PER_MS);
    return 0;
}

/* A request gives way after each of its parts, while many pods are to be started. */
static void test_server_lua_thread_that_gives_way_waits_for_one_function(void **state)
{
    struct fixture *fixture = *state;
    ml_server_lua_define(fixture->lua, "test", "take_long", take_long, fixture);
    run(fixture, "local host, test = require 'cluster.host', require 'test'\n"
                 "trace = ''\n"
                 "host.defer(function()\n"
                 "  for _ = 1, 3 do test.take_long() trace = trace .. 'r' host.give_way() end\n"
                 "end)\n"
                 "for _ = 1, 6 do\n"
                 "  host.defer(function() test.take_long() trace = trace .. 'p' end)\n"
                 "end");
    ml_loop_poll(fixture->loop);
    run(fixture, "assert(trace == 'rrprppppp', trace)");
}

int main(void)
{
#define TEST(name) cmocka_unit_test_setup_teardown(test_server_lua_##name, set_up, tear_down)
    const struct CMUnitTest tests[] = {
        TEST(error_is_its_first_line_and_the_traceback_is_kept),
        TEST(require_finds_the_embedded_library_but_no_stubs),
        TEST(error_in_a_callback_ends_that_callback_only),
        TEST(timer_never_comes_early),
        TEST(goes_with_timers_and_functions_that_wait),
        TEST(without_a_loop_has_nothing_to_wait_on),
        TEST(defined_function_takes_and_gives_json),
        TEST(defined_function_runs_the_loop_above_its_caller),
        TEST(thread_that_gives_way_waits_for_one_function),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
