/* The embedded API server called from C: requests in, answers out, clients that disconnect,
 * handlers that raise. The server itself is a stand-in of a few lines, in a folder of the test's.
 */
#include "stand_in.h"

#include "cluster/host/apiserver.h"

#include <fcntl.h>

static const char *const server_text =
    "local host = require 'cluster.host'\n"
    "local handlers = {}\n"
    "function handlers.echo(request, reply)\n"
    "  reply:send(200, 'application/json', host.json.encode(request), { B = '2', A = '1' })\n"
    "end\n"
    "function handlers.stream(request, reply)\n"
    "  reply:start(200, 'text/plain')\n"
    "  reply.on_close = function() host.log('info', 'closed') end\n"
    "  assert(reply.on_close)\n"
    "  local waiting = reply:write('one ')\n"
    "  host.after(1, function() reply:write('two ' .. waiting) reply:finish() end)\n"
    "end\n"
    "function handlers.raise() error('no luck') end\n"
    "function handlers.raise_late(_, reply) reply:start(200, 'x') error { code = 1 } end\n"
    "function handlers.raise_after(_, reply) reply:send(204, nil, '') error 'too late' end\n"
    "function handlers.later(_, reply)\n"
    "  kept = reply\n"
    "  reply.on_close = function() gone = (gone or 0) + 1 error 'in on_close' end\n"
    "end\n"
    "function handlers.misuse(request, reply)\n"
    "  local function refused(part, ...)\n"
    "    local good, message = pcall(...)\n"
    "    assert(not good and message:find(part, 1, true), message)\n"
    "  end\n"
    "  refused('not begun', reply.write, reply, 'x')\n"
    "  refused('not begun', reply.finish, reply)\n"
    "  refused('a status code', reply.send, reply, 99, 'x', '')\n"
    "  refused('headers are strings', reply.send, reply, 200, 'x', '', { a = 1 })\n"
    "  refused('no field', function() reply.other = 1 end)\n"
    "  refused('function expected', function() reply.on_close = 1 end)\n"
    "  refused('moonloop.reply expected', reply.send, {}, 200, 'x', '')\n"
    "  assert(reply.nothing == nil and reply[1] == nil)\n"
    "  reply:start(200, 'x')\n"
    "  refused('already begun', reply.start, reply, 200, 'x')\n"
    "  reply:abort() reply:abort()\n"
    "  refused('has ended', reply.send, reply, 200, 'x', '')\n"
    "  refused('has ended', reply.write, reply, 'x')\n"
    "end\n"
    "local M = {}\n"
    "function M.new(settings)\n"
    "  if settings.refuse then error('settings: ' .. settings.refuse, 0) end\n"
    "  return { handle = function(_, request, reply)\n"
    "    return handlers[request.path:sub(2)](request, reply) end }\n"
    "end\n"
    "return M\n";

struct told {
    int status;
    struct ml_buf body;
    char headers[128];
    char content_type[64];
    bool finished, aborted;
};

struct world {
    struct ml_clock_fake clock;
    struct ml_loop *loop;
    struct ml_log log;
    int log_fd;
    struct stand_in stand_in;
    struct ml_apiserver *server;
    struct told told;
};

static void note_head(struct told *told, const struct ml_http_answer *head)
{
    assert_int_equal(told->status, 0);
    told->status = head->status;
    snprintf(told->content_type, sizeof told->content_type, "%s",
             head->content_type ? head->content_type : "");
    for (size_t i = 0; i < head->header_count; i++) {
        size_t len = strlen(told->headers);
        snprintf(told->headers + len, sizeof told->headers - len, "%s=%s;", head->headers[i].name,
                 head->headers[i].value);
    }
}

static void on_send(void *context, const struct ml_http_answer *answer)
{
    struct told *told = context;
    note_head(told, answer);
    ml_buf_append_str(&told->body, answer->body);
    told->finished = true;
}

static size_t on_write(void *context, struct ml_str bytes)
{
    struct told *told = context;
    assert_false(told->finished || told->aborted);
    ml_buf_append_str(&told->body, bytes);
    return told->body.len;
}

static void on_start(void *context, const struct ml_http_answer *head)
{
    note_head(context, head);
}

static void on_finish(void *context)
{
    ((struct told *)context)->finished = true;
}

static void on_abort(void *context)
{
    struct told *told = context;
    assert_false(told->finished || told->aborted);
    told->aborted = true;
}

static const struct ml_apiserver_sink sink = {
    .send = on_send, .start = on_start, .write = on_write, .finish = on_finish, .abort = on_abort};

static int open_server(struct world *world, const char *settings, struct ml_err *err)
{
    *err = ML_ERR_INIT;
    return ml_apiserver_new(&(struct ml_apiserver_options){.loop = world->loop,
                                                           .clock = &world->clock.clock,
                                                           .log = &world->log,
                                                           .settings = ml_str_of(settings),
                                                           .files_first = true},
                            &world->server, err);
}

static int set_up(void **state)
{
    struct world *world = ml_new(struct world);
    struct ml_err err;
    ml_clock_fake_init(&world->clock, INT64_C(1700000000) * ML_NS_PER_S);
    world->loop = ml_loop_new(&world->clock.clock);
    world->log_fd = open("/tmp", O_TMPFILE | O_RDWR | O_CLOEXEC, 0600);
    assert_true(world->log_fd >= 0);
    ml_log_init(&world->log, &world->clock.clock, world->log_fd, ML_LOG_TEXT, ML_LOG_INFO);
    stand_in_write(&world->stand_in, server_text);
    if (open_server(world, NULL, &err) < 0)
        fail_msg("%s", err.message);
    *state = world;
    return 0;
}

static int tear_down(void **state)
{
    struct world *world = *state;
    ml_apiserver_free(world->server);
    ml_buf_fini(&world->told.body);
    ml_loop_free(world->loop);
    close(world->log_fd);
    stand_in_remove(&world->stand_in);
    free(world);
    return 0;
}

static void assert_logged(struct world *world, const char *part)
{
    char text[8192] = "";
    ssize_t len = pread(world->log_fd, text, sizeof text - 1, 0);
    assert_true(len >= 0);
    if (!strstr(text, part))
        fail_msg("'%s' is not in the log: %s", part, text);
}

/* A request for the handler of this name in the stand-in. */
static struct ml_apiserver_call *ask(struct world *world, const char *path)
{
    static const struct ml_http_header headers[] = {
        {"Accept", "a"}, {"X-Two", "1"}, {"x-two", "2"}};
    const struct ml_apiserver_request request = {.method = "GET",
                                                 .path = ml_str_of(path),
                                                 .query = ML_STR("a=1"),
                                                 .headers = headers,
                                                 .header_count = ML_COUNT(headers),
                                                 .body = {"b\0dy", 4}};
    return ml_apiserver_handle(world->server, &request, &sink, &world->told);
}

static void test_apiserver_request_arrives_and_answer_leaves_whole(void **state)
{
    struct world *world = *state;
    assert_null(ask(world, "/echo"));
    assert_int_equal(world->told.status, 200);
    assert_str_eq(ml_buf_str(&world->told.body),
                  "{\"body\":\"b\\u0000dy\",\"headers\":{\"accept\":\"a\",\"x-two\":\"1, 2\"},"
                  "\"method\":\"GET\",\"path\":\"/echo\",\"query\":\"a=1\"}");
    assert_string_equal(world->told.headers, "A=1;B=2;");
    assert_string_equal(world->told.content_type, "application/json");
}

static void test_apiserver_stream_goes_on_from_the_loop(void **state)
{
    struct world *world = *state;
    assert_non_null(ask(world, "/stream"));
    assert_str_eq(ml_buf_str(&world->told.body), "one ");
    assert_false(world->told.finished);
    ml_clock_fake_advance(&world->clock, ML_NS_PER_S);
    ml_loop_poll(world->loop);
    assert_str_eq(ml_buf_str(&world->told.body), "one two 4");
    assert_true(world->told.finished);
}

static void
test_apiserver_client_leaves_stream_then_handler_is_told_and_later_write_raises(void **state)
{
    struct world *world = *state;
    struct ml_apiserver_call *call = ask(world, "/stream");
    ml_apiserver_gone(call);
    assert_logged(world, "closed");
    ml_clock_fake_advance(&world->clock, ML_NS_PER_S);
    ml_loop_poll(world->loop);
    assert_str_eq(ml_buf_str(&world->told.body), "one ");
    assert_false(world->told.finished || world->told.aborted);
    assert_logged(world, "reply:write: the answer has ended, or its client has gone");
}

static void test_apiserver_on_close_is_called_once_and_may_raise(void **state)
{
    struct world *world = *state;
    struct ml_server_lua *lua = ml_apiserver_lua(world->server);
    struct ml_err err;
    ml_apiserver_gone(ask(world, "/later"));
    assert_logged(world, "in on_close");
    assert_int_equal(ml_server_lua_run(lua, "t",
                                       ML_STR("assert(gone == 1)\n"
                                              "assert(not pcall(kept.send, kept, 200,"
                                              " 'x', 'y'))"),
                                       &err),
                     0);
}

static void test_apiserver_handler_raises_then_500_and_traceback(void **state)
{
    struct world *world = *state;
    assert_null(ask(world, "/raise"));
    assert_int_equal(world->told.status, 500);
    assert_non_null(strstr(ml_buf_cstr(&world->told.body), "\"reason\":\"InternalError\""));
    assert_non_null(strstr(ml_buf_cstr(&world->told.body), "no luck"));
    assert_logged(world, "a request failed");
    assert_logged(world, "stack traceback");
}

static void test_apiserver_handler_raises_in_its_answer_then_abort(void **state)
{
    struct world *world = *state;
    assert_null(ask(world, "/raise_late"));
    assert_int_equal(world->told.status, 200);
    assert_true(world->told.aborted);
}

static void test_apiserver_handler_raises_behind_its_answer_then_only_a_log_line(void **state)
{
    struct world *world = *state;
    assert_null(ask(world, "/raise_after"));
    assert_int_equal(world->told.status, 204);
    assert_false(world->told.aborted);
    assert_logged(world, "too late");
}

static void test_apiserver_misuse_of_a_reply_raises(void **state)
{
    struct world *world = *state;
    assert_null(ask(world, "/misuse"));
    assert_int_equal(world->told.status, 200);
    assert_true(world->told.aborted);
}

static void test_apiserver_free_aborts_what_is_under_way(void **state)
{
    struct world *world = *state;
    struct ml_err err;
    assert_non_null(ask(world, "/stream"));
    ml_apiserver_free(world->server);
    world->server = NULL;
    assert_true(world->told.aborted);
    assert_int_equal(open_server(world, "{}", &err), 0);
}

static void test_apiserver_bad_settings_are_refused(void **state)
{
    struct world *world = *state;
    struct ml_err err;
    ml_apiserver_free(world->server);
    world->server = NULL;
    assert_int_equal(open_server(world, "{", &err), ML_EINVALID);
    assert_int_equal(open_server(world, "{\"refuse\":\"me\"}", &err), ML_ESCRIPT);
    assert_string_equal(err.message, "settings: me");
}

static void test_apiserver_reset_begins_anew_in_the_same_state(void **state)
{
    struct world *world = *state;
    struct ml_server_lua *lua = ml_apiserver_lua(world->server);
    struct ml_err err;
    assert_non_null(ask(world, "/stream"));
    assert_int_equal(ml_server_lua_run(lua, "t",
                                       ML_STR("local host = require 'cluster.host'\n"
                                              "host.defer(function() error 'deferred' end)\n"
                                              "first = require 'cluster.apiserver.running'"),
                                       &err),
                     0);
    assert_int_equal(ml_apiserver_reset(world->server, ML_STR("{\"refuse\":\"me\"}"), &err),
                     ML_ESCRIPT);
    assert_int_equal(ml_apiserver_reset(world->server, ML_STR("{}"), &err), 0);
    assert_true(world->told.aborted);
    assert_true(ml_loop_next(world->loop) == INT64_MAX);
    assert_int_equal(
        ml_server_lua_run(lua, "t", ML_STR("assert(first ~= require 'cluster.apiserver.running')"),
                          &err),
        0);
    ml_buf_fini(&world->told.body);
    world->told = (struct told){0};
    assert_null(ask(world, "/echo"));
    assert_int_equal(world->told.status, 200);
}

static int ask_echo(void *context, struct ml_str argument, struct ml_buf *result,
                    struct ml_err *err)
{
    struct world *world = context;
    (void)err;
    assert_str_eq(argument, "{\"n\":1}");
    world->told = (struct told){0};
    assert_null(ask(world, "/echo"));
    ml_buf_append_str(result, ml_buf_str(&world->told.body));
    return 0;
}

/* Lua calls C in a coroutine, and C calls the server in the same Lua state. */
static void test_apiserver_is_asked_from_inside_its_own_lua(void **state)
{
    struct world *world = *state;
    struct ml_server_lua *lua = ml_apiserver_lua(world->server);
    struct ml_err err;
    ml_server_lua_define(lua, "test", "ask", ask_echo, world);
    int r = ml_server_lua_run(lua, "t",
                              ML_STR("local co = coroutine.wrap(function()\n"
                                     "  local echo = require 'test'.ask { n = 1 }\n"
                                     "  coroutine.yield(echo.path)\n"
                                     "end)\n"
                                     "assert(co() == '/echo') co()\n"
                                     "assert(require 'cluster.apiserver.running'.handle)"),
                              &err);
    if (r < 0)
        fail_msg("%s", ml_server_lua_traceback(lua));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(test_apiserver_request_arrives_and_answer_leaves_whole,
                                        set_up, tear_down),
        cmocka_unit_test_setup_teardown(test_apiserver_stream_goes_on_from_the_loop, set_up,
                                        tear_down),
        cmocka_unit_test_setup_teardown(
            test_apiserver_client_leaves_stream_then_handler_is_told_and_later_write_raises, set_up,
            tear_down),
        cmocka_unit_test_setup_teardown(test_apiserver_on_close_is_called_once_and_may_raise,
                                        set_up, tear_down),
        cmocka_unit_test_setup_teardown(test_apiserver_handler_raises_then_500_and_traceback,
                                        set_up, tear_down),
        cmocka_unit_test_setup_teardown(test_apiserver_handler_raises_in_its_answer_then_abort,
                                        set_up, tear_down),
        cmocka_unit_test_setup_teardown(
            test_apiserver_handler_raises_behind_its_answer_then_only_a_log_line, set_up,
            tear_down),
        cmocka_unit_test_setup_teardown(test_apiserver_misuse_of_a_reply_raises, set_up, tear_down),
        cmocka_unit_test_setup_teardown(test_apiserver_free_aborts_what_is_under_way, set_up,
                                        tear_down),
        cmocka_unit_test_setup_teardown(test_apiserver_bad_settings_are_refused, set_up, tear_down),
        cmocka_unit_test_setup_teardown(test_apiserver_reset_begins_anew_in_the_same_state, set_up,
                                        tear_down),
        cmocka_unit_test_setup_teardown(test_apiserver_is_asked_from_inside_its_own_lua, set_up,
                                        tear_down),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
