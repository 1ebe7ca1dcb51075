/* Requests from the host's own Lua: who asks a webhook waits, and the loop goes on; the answers of
 * pods come piece by piece. */
#include "net_served.h"

#include "cluster/host/lua_modules.h"

struct fixture {
    struct served served; /* the webhooks' server */
    struct ml_server_lua *lua;
    struct ml_clock_fake clock; /* of Lua. It stands: all that is deferred runs in one turn */
    int dones;                  /* how often Lua said so */
    int failures;
    char failure[1024];
};

static void on_failed(void *context, const char *message)
{
    struct fixture *fixture = context;
    fixture->failures++;
    snprintf(fixture->failure, sizeof fixture->failure, "%s", message);
}

/* A function for Lua: something that a test waits for has come. */
static int done(void *context, struct ml_str argument, struct ml_buf *result, struct ml_err *err)
{
    struct fixture *fixture = context;
    (void)argument, (void)result, (void)err;
    fixture->dones++;
    ml_loop_stop(fixture->served.net.loop);
    return 0;
}

static void run(struct fixture *fixture, const char *text)
{
    struct ml_err err;
    if (ml_server_lua_run(fixture->lua, "t.lua", ml_str_of(text), &err) < 0)
        fail_msg("%s", ml_server_lua_traceback(fixture->lua));
}

static int set_up(void **state)
{
    struct fixture *fixture = ml_new(struct fixture);
    struct net *net = &fixture->served.net;
    net_init(net);
    ml_timer_init(&fixture->served.ticker, net->loop, served_tick, &fixture->served);
    served_open(&fixture->served, false, &(struct ml_http_limits){0});
    ml_clock_fake_init(&fixture->clock, 0);
    fixture->lua = ml_server_lua_new(&(struct ml_server_lua_options){.loop = net->loop,
                                                                     .clock = &fixture->clock.clock,
                                                                     .failed = on_failed,
                                                                     .context = fixture});
    ml_server_lua_add_http(fixture->lua, &(struct ml_http_library){.http = net->client});
    ml_server_lua_define(fixture->lua, "unit", "done", done, fixture);
    char text[2048];
    snprintf(
        text, sizeof text,
        "host, http = require 'cluster.host', require 'cluster.http'\n"
        "client, url, answers = http.client {}, 'http://127.0.0.1:%d/', {}\n"
        "function ask(path, seconds)\n"
        "  host.defer(function()\n"
        "    table.insert(answers, { path, client:post(url .. path, 'body', seconds or 20) })\n"
        "    require 'unit'.done ''\n"
        "  end)\n"
        "end\n"
        "function request(path, more)\n"
        "  local got, call = { data = {} }\n"
        "  local options = { method = 'GET', url = url .. path, headers = {}, body = '',\n"
        "    connect_seconds = 20,\n"
        "    head = function(code, fields) got.code, got.fields = code, fields end,\n"
        "    data = function(bytes) table.insert(got.data, bytes) end,\n"
        "    done = function(why, kind)\n"
        "      got.is_done, got.why, got.kind = true, why, kind\n"
        "      require 'unit'.done ''\n"
        "    end }\n"
        "  for name, value in pairs(more or {}) do options[name] = value end\n"
        "  got.call, got.refusal = client:request(options)\n"
        "  return got\n"
        "end",
        ml_http_server_port(fixture->served.server));
    run(fixture, text);
    *state = fixture;
    return 0;
}

static int tear_down(void **state)
{
    struct fixture *fixture = *state;
    ml_server_lua_free(fixture->lua);
    ml_http_server_free(fixture->served.server);
    net_fini(&fixture->served.net);
    free(fixture);
    return 0;
}

/* Serves the loop until Lua has said `done` so many times in all. */
static void wait_for_dones(struct fixture *fixture, int dones)
{
    while (fixture->dones < dones)
        net_run(&fixture->served.net);
}

/* Serves the loop until the server has `held` requests that wait. */
static void wait_for_held(struct fixture *fixture, size_t held)
{
    while (fixture->served.held_count < held)
        net_run(&fixture->served.net);
}

static void test_lua_http_brings_the_answer_to_the_one_who_waits(void **state)
{
    struct fixture *fixture = *state;
    run(fixture, "ask 'hold' ask 'hold'");
    wait_for_held(fixture, 2);
    run(fixture, "assert(#answers == 0) ask 'quick'");
    wait_for_dones(fixture, 1);
    run(fixture,
        "assert(#answers == 1) collectgarbage()\n"
        "local path, code, kind, body = table.unpack(answers[1])\n"
        "assert(path == 'quick' and code == 200 and kind == 'text/plain' and body == 'hello')");
    assert_string_equal(fixture->served.seen, "POST /quick? 4");
    served_release(&fixture->served, 0);
    wait_for_dones(fixture, 2);
    served_release(&fixture->served, 1);
    wait_for_dones(fixture, 3);
    run(fixture,
        "assert(#answers == 3 and answers[2][4] == 'released' and answers[3][4] == 'released')");
    assert_int_equal(fixture->failures, 0);
}

static void test_lua_http_says_why_there_is_no_answer(void **state)
{
    struct fixture *fixture = *state;
    run(fixture, "ask('hold', 0.02)");
    wait_for_dones(fixture, 1);
    run(fixture, "local path, code, why, timed_out = table.unpack(answers[1], 1, 4)\n"
                 "assert(not code and timed_out and why:find '127.0.0.1', why)");
    run(fixture, "ask 'abort'");
    wait_for_dones(fixture, 2);
    run(fixture, "local path, code, why, timed_out = table.unpack(answers[2], 1, 4)\n"
                 "assert(not code and not timed_out and why:find 'without an answer', why)");
    run(fixture, "ask 'big/9000'");
    wait_for_dones(fixture, 3);
    run(fixture, "local path, code, why = table.unpack(answers[3], 1, 4)\n"
                 "assert(not code and why:find 'larger than 8 MiB', why)");
    assert_int_equal(fixture->failures, 0);
}

static void test_lua_http_error_after_the_answer_ends_that_callback_only(void **state)
{
    struct fixture *fixture = *state;
    run(fixture, "host.defer(function()\n"
                 "  client:post(url, '', 20)\n"
                 "  require 'unit'.done ''\n"
                 "  error 'afterwards'\n"
                 "end)");
    wait_for_dones(fixture, 1);
    assert_int_equal(fixture->failures, 1);
    assert_has(fixture->failure, "afterwards");
    assert_has(fixture->failure, "stack traceback:");
    run(fixture, "ask 'quick'");
    wait_for_dones(fixture, 2);
    run(fixture, "assert(#answers == 1)");
}

static void test_lua_http_waits_only_where_something_can(void **state)
{
    run(*state, "local answer, why = client:post(url, '', 20)\n"
                "assert(not answer and why:find 'cannot wait', why)\n"
                "assert(not pcall(client.post, client, url, '', 0))\n"
                "assert(not pcall(client.post, client, url, '', 61))\n"
                "assert(not pcall(client.post, 'client', url, '', 1))");
}

static void test_lua_http_calls_at_most_512_at_once(void **state)
{
    struct fixture *fixture = *state;
    run(fixture, "for i = 1, 513 do\n"
                 "  host.defer(function()\n"
                 "    local code, why = client:post('http://127.0.0.1:1/', '', 20)\n"
                 "    answers[#answers + 1] = why\n"
                 "    if #answers == 513 then require 'unit'.done '' end\n"
                 "  end)\n"
                 "end");
    wait_for_dones(fixture, 1);
    run(fixture, "local refused = 0\n"
                 "for _, why in ipairs(answers) do\n"
                 "  if why:find '512 webhooks' then refused = refused + 1 end\n"
                 "end\n"
                 "assert(refused == 1, refused)\n"
                 "answers = {} ask 'quick'");
    wait_for_dones(fixture, 2);
    run(fixture, "assert(answers[1][2] == 200)");
}

static void test_lua_http_goes_with_requests_under_way(void **state)
{
    struct fixture *fixture = *state;
    run(fixture, "ask 'hold' ask 'hold'");
    wait_for_held(fixture, 2);
    ml_server_lua_free(ml_take(&fixture->lua));
    net_settle(&fixture->served.net, 1);
    assert_int_equal(fixture->failures, 0);
}

/* ---- answers piece by piece ---- */

static void test_lua_http_brings_the_head_with_all_fields_and_the_body(void **state)
{
    struct fixture *fixture = *state;
    run(fixture, "got = request('quick', { method = 'PATCH', body = 'four',\n"
                 "  headers = { ['X-Mine'] = '1', Host = 'a.host' } })\n"
                 "assert(not got.code)");
    wait_for_dones(fixture, 1);
    run(fixture, "assert(got.code == 200 and table.concat(got.data) == 'hello' and not got.why)\n"
                 "local fields = {}\n"
                 "for _, field in ipairs(got.fields) do fields[field[1]] = field[2] end\n"
                 "assert(fields['Content-Type'] == 'text/plain' and fields['X-One'] == '1')\n"
                 "assert(fields['Content-Length'] == '5')\n"
                 "got.call:pause(true) got.call:cancel()"); /* nothing, as it is over */
    assert_string_equal(fixture->served.seen, "PATCH /quick? 4");
    run(fixture, "got = request('none', { method = 'HEAD' })");
    wait_for_dones(fixture, 2);
    run(fixture, "assert(got.code == 204 and #got.data == 0 and not got.why)");
    assert_int_equal(fixture->failures, 0);
}

static void test_lua_http_says_how_an_answer_broke(void **state)
{
    struct fixture *fixture = *state;
    run(fixture, "got = request 'abort'");
    wait_for_dones(fixture, 1);
    run(fixture, "assert(not got.code and got.kind == 'network', got.kind)\n"
                 "assert(got.why:find 'without an answer', got.why)\n"
                 "got = request('', { url = 'http://127.0.0.1:1/' })");
    wait_for_dones(fixture, 2);
    run(fixture, "assert(got.kind == 'network' and got.why:find 'connection refused', got.why)\n"
                 "got = request('', { url = url:gsub('http', 'https', 1) })");
    wait_for_dones(fixture, 3);
    run(fixture, "assert(got.kind == 'tls', got.why)\n"
                 "assert(not pcall(request, '', { headers = { a = 1 } }))\n"
                 "assert(not pcall(request, '', { head = 1 }))\n"
                 "got = request('quick', { headers = { ['a b'] = '1' } })");
    wait_for_dones(fixture, 4);
    run(fixture, "assert(got.why:find 'not a valid name', got.why)");
    assert_int_equal(fixture->failures, 0);
}

static void test_lua_http_lets_a_server_wait_while_it_is_paused(void **state)
{
    struct fixture *fixture = *state;
    struct served *served = &fixture->served;
    run(fixture, "got = request('flood', { head = function(code)\n"
                 "  got.code = code\n"
                 "  got.call:pause(true)\n"
                 "  collectgarbage()\n"
                 "end })");
    while (served->waiting_max <= 1024 * 1024) /* then the server cuts it */
        net_settle(&served->net, 1);
    run(fixture, "assert(got.code == 200 and #got.data == 0 and not got.is_done)\n"
                 "got.call:pause(false)");
    wait_for_dones(fixture, 1);
    run(fixture, "assert(#got.data > 0 and got.kind == 'network', got.why)");
    assert_int_equal(fixture->failures, 0);
}

static void test_lua_http_brings_every_byte_however_often_it_is_paused(void **state)
{
    struct fixture *fixture = *state;
    run(fixture, "got = request('big/400', { data = function(bytes)\n"
                 "  table.insert(got.data, bytes)\n"
                 "  got.call:pause(true)\n"
                 "  host.defer(function() got.call:pause(false) end)\n"
                 "end })");
    wait_for_dones(fixture, 1);
    run(fixture, "assert(#table.concat(got.data) == 400 * 1024 and not got.why)\n"
                 "assert(#got.data > 1)");
    assert_int_equal(fixture->failures, 0);
}

static void test_lua_http_ends_a_request_when_told(void **state)
{
    struct fixture *fixture = *state;
    run(fixture, "cut = request('pieces', { head = function() cut.call:cancel() cut.is_cut = true\n"
                 "  require 'unit'.done ''\n"
                 "end })\n"
                 "paused = request('flood', { data = function()\n"
                 "  paused.call:pause(true) paused.call:cancel() paused.call:pause(false)\n"
                 "  paused.is_cut = true\n"
                 "  require 'unit'.done ''\n"
                 "end })");
    wait_for_dones(fixture, 2);
    while (fixture->served.closes == 0)
        net_run(&fixture->served.net);
    run(fixture, "held = request 'hold'");
    wait_for_held(fixture, 1);
    run(fixture, "held.call:cancel() held.call:cancel() collectgarbage()");
    while (fixture->served.closes == 1)
        net_run(&fixture->served.net);
    run(fixture, "assert(not held.is_done and not cut.is_done and not paused.is_done)\n"
                 "assert(cut.is_cut and #cut.data == 0 and paused.is_cut)");
    assert_int_equal(fixture->failures, 0);
}

static void test_lua_http_has_at_most_512_requests_under_way(void **state)
{
    struct fixture *fixture = *state;
    run(fixture, "all = {}\n"
                 "for i = 1, 512 do all[i] = request('', { url = 'http://127.0.0.1:1/' }) end\n"
                 "local one = request 'quick'\n"
                 "assert(not one.call and one.refusal:find '512 requests', one.refusal)\n"
                 "all[1].call:cancel()\n"
                 "assert(request 'quick'.call)");
    wait_for_dones(fixture, 512);
    run(fixture, "assert(not all[1].is_done and all[2].is_done and all[512].is_done)");
}

static void test_lua_http_takes_requests_under_way_with_it(void **state)
{
    struct fixture *fixture = *state;
    run(fixture, "request 'hold' request 'hold'");
    wait_for_held(fixture, 2);
    ml_server_lua_free(ml_take(&fixture->lua));
    net_settle(&fixture->served.net, 1);
    assert_int_equal(fixture->failures, 0);
}

int main(void)
{
#define TEST(name) cmocka_unit_test_setup_teardown(test_lua_http_##name, set_up, tear_down)
    const struct CMUnitTest tests[] = {
        TEST(brings_the_answer_to_the_one_who_waits),
        TEST(says_why_there_is_no_answer),
        TEST(error_after_the_answer_ends_that_callback_only),
        TEST(waits_only_where_something_can),
        TEST(calls_at_most_512_at_once),
        TEST(goes_with_requests_under_way),
        TEST(brings_the_head_with_all_fields_and_the_body),
        TEST(says_how_an_answer_broke),
        TEST(lets_a_server_wait_while_it_is_paused),
        TEST(brings_every_byte_however_often_it_is_paused),
        TEST(ends_a_request_when_told),
        TEST(has_at_most_512_requests_under_way),
        TEST(takes_requests_under_way_with_it),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
