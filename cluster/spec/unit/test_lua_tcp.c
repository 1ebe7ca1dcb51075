/* cluster.tcp against a server on loopback that sends back what it gets. */
#include "net_unit.h"

#include "cluster/host/lua_modules.h"
#include "net/tcp.h"

#include <event2/buffer.h>
#include <event2/bufferevent.h>
#include <event2/event.h>
#include <event2/listener.h>
#include <sys/socket.h>
#include <unistd.h>

struct fixture {
    struct net net;
    struct ml_server_lua *lua;
    struct evconnlistener *listener;
    int served; /* connections that the server has */
    int failures;
    bool is_done;
};

/* ---- the server: echoes; on "reset" it resets the connection; it ends after its client has ----
 */

static void echo_end(struct fixture *f, struct bufferevent *bev)
{
    bufferevent_free(bev);
    f->served--;
    ml_loop_stop(f->net.loop); /* for the teardown; others go on until it is their event */
}

static void on_echo_readable(struct bufferevent *bev, void *context)
{
    const struct linger at_once = {.l_onoff = 1};
    struct evbuffer *input = bufferevent_get_input(bev);
    if (evbuffer_get_length(input) == 5 && memcmp(evbuffer_pullup(input, 5), "reset", 5) == 0) {
        setsockopt(bufferevent_getfd(bev), SOL_SOCKET, SO_LINGER, &at_once, sizeof at_once);
        echo_end(context, bev);
        return;
    }
    evbuffer_add_buffer(bufferevent_get_output(bev), input);
}

static void on_echo_written(struct bufferevent *bev, void *context)
{
    echo_end(context, bev);
}

static void on_echo_event(struct bufferevent *bev, short what, void *context)
{
    (void)what;
    if (evbuffer_get_length(bufferevent_get_output(bev)) == 0)
        echo_end(context, bev);
    else
        bufferevent_setcb(bev, NULL, on_echo_written, on_echo_event, context);
}

static void on_echo_accepted(struct evconnlistener *listener, evutil_socket_t fd,
                             struct sockaddr *address, int len, void *context)
{
    struct fixture *f = context;
    (void)listener, (void)address, (void)len;
    struct bufferevent *bev = bufferevent_socket_new(ml_loop_base(f->net.loop), fd,
                                                     BEV_OPT_CLOSE_ON_FREE);
    bufferevent_setcb(bev, on_echo_readable, NULL, on_echo_event, f);
    f->served++;
    bufferevent_enable(bev, EV_READ | EV_WRITE);
}

/* ---- the fixture ---- */

static void on_failed(void *context, const char *message)
{
    struct fixture *f = context;
    (void)message;
    f->failures++;
    f->is_done = true;
    ml_loop_stop(f->net.loop);
}

static int on_done(void *context, struct ml_str argument, struct ml_buf *result, struct ml_err *err)
{
    struct fixture *f = context;
    (void)argument, (void)result, (void)err;
    f->is_done = true;
    ml_loop_stop(f->net.loop);
    return 0;
}

static void lua(struct fixture *f, const char *text)
{
    struct ml_err err = ML_ERR_INIT;
    if (ml_server_lua_run(f->lua, "test", ml_str_of(text), &err) < 0)
        fail_msg("%s", ml_server_lua_traceback(f->lua));
}

/* Runs Lua that calls done() at its end. */
static void lua_wait(struct fixture *f, const char *text)
{
    f->is_done = false;
    lua(f, text);
    while (!f->is_done)
        net_run(&f->net);
}

static int setup(void **state)
{
    struct fixture *f = ml_new(struct fixture);
    struct ml_err err = ML_ERR_INIT;
    char text[256];
    int fd = -1;
    net_init(&f->net);
    assert_int_equal(ml_tcp_listen("127.0.0.1:0", &fd, &err), 0);
    snprintf(text, sizeof text,
             "tcp, PORT, done = require 'cluster.tcp', %d, require('test').done\n"
             "function open(more)\n"
             "  local options = { address = '127.0.0.1', port = PORT }\n"
             "  for name, value in pairs(more) do options[name] = value end\n"
             "  return tcp.connect(options)\n"
             "end\n",
             ml_tcp_local_port(fd));
    f->listener = evconnlistener_new(ml_loop_base(f->net.loop), on_echo_accepted, f,
                                     LEV_OPT_CLOSE_ON_FREE, 0, fd);
    f->lua = ml_server_lua_new(
        &(struct ml_server_lua_options){.loop = f->net.loop, .failed = on_failed, .context = f});
    ml_server_lua_add_tcp(f->lua, &(struct ml_tcp_library){.network = NULL});
    ml_server_lua_define(f->lua, "test", "done", on_done, f);
    lua(f, text);
    *state = f;
    return 0;
}

static int teardown(void **state)
{
    struct fixture *f = *state;
    ml_server_lua_free(f->lua);
    while (f->served > 0)
        net_run(&f->net);
    if (f->listener)
        evconnlistener_free(f->listener);
    net_fini(&f->net);
    free(f);
    return 0;
}

/* ---- the tests ---- */

static void test_lua_tcp_passes_bytes_and_each_end(void **state)
{
    struct fixture *f = *state;
    lua_wait(f, "local calls, got = {}, {}\n"
                "local connection = assert(open {\n"
                "  connected = function() calls[#calls + 1] = 'connected' end,\n"
                "  data = function(bytes) got[#got + 1] = bytes end,\n"
                "  ended = function() calls[#calls + 1] = 'ended' end,\n"
                "  closed = function(why) calls[#calls + 1] = why or 'closed' done() end,\n"
                "})\n"
                "assert(connection:write 'hello, ' == 7)\n" /* kept until it is connected */
                "connection:write 'world'\n"
                "connection:end_output()\n"
                "assert(not pcall(connection.write, connection, 'more'))\n"
                "assert(#calls == 0)\n"
                "result = function() return table.concat(got), table.concat(calls, ' ') end");
    lua(f, "local got, calls = result()\n"
           "assert(got == 'hello, world', got)\n"
           "assert(calls == 'connected ended closed', calls)");
}

static void test_lua_tcp_much_waits_for_a_slow_side(void **state)
{
    struct fixture *f = *state;
    lua_wait(f, "local size, drained = 0, 0\n"
                "local piece, count = ('x'):rep(1 << 20), 32\n"
                "local connection\n"
                "connection = assert(open {\n"
                "  data = function(bytes)\n"
                "    size = size + #bytes\n"
                "    connection:pause(true)\n"
                "    require('cluster.host').defer(function() connection:pause(false) end)\n"
                "  end,\n"
                "  drained = function() drained = drained + 1 connection:end_output() end,\n"
                "  closed = function(why) assert(not why, why) done() end,\n"
                "})\n"
                "for i = 1, count do assert(connection:write(piece) >= i) end\n"
                "result = function() return size, drained end");
    lua(f, "local size, drained = result()\n"
           "assert(size == 32 << 20, size)\n"
           "assert(drained == 1, drained)");
}

static void test_lua_tcp_says_why_it_broke(void **state)
{
    struct fixture *f = *state;
    lua_wait(f,
             "local connection = assert(open { closed = function(why) broken = why done() end })\n"
             "connection:write 'reset'");
    lua(f, "assert(broken == 'Connection reset by peer', broken)");
    evconnlistener_free(ml_take(&f->listener));
    lua_wait(f, "connection = assert(open { closed = function(why) broken = why done() end })");
    lua(f, "assert(broken == 'Connection refused', broken)\n"
           "assert(connection:write 'late' == 0)\n" /* nobody is there any more */
           "connection:end_output() connection:pause(true) connection:close()");
}

static void test_lua_tcp_close_ends_the_callbacks(void **state)
{
    struct fixture *f = *state;
    lua_wait(f, "local connection\n"
                "connection = assert(open {\n"
                "  data = function() connection:close() connection = nil collectgarbage()\n"
                "    require('cluster.host').after(0.05, done) end,\n"
                "  ended = function() error 'ended' end,\n"
                "  closed = function() error 'closed' end,\n"
                "})\n"
                "connection:write 'hello'");
    assert_int_equal(f->failures, 0);
}

static void test_lua_tcp_open_ones_go_with_the_state(void **state)
{
    struct fixture *f = *state;
    lua_wait(
        f, "for i = 1, 3 do\n"
           "  open { connected = i == 3 and done or nil, closed = function() error 'closed' end }\n"
           "end\n"
           "collectgarbage()");
    assert_int_equal(f->failures, 0);
}

static void test_lua_tcp_refuses_what_is_no_address(void **state)
{
    struct fixture *f = *state;
    lua(f, "assert(not pcall(open, { address = 'localhost' }))\n"
           "assert(not pcall(open, { address = '::1' }))\n"
           "assert(not pcall(open, { port = 0 }))\n"
           "assert(not pcall(open, { port = 65536 }))");
}

static void test_lua_tcp_accepts_and_answers(void **state)
{
    struct fixture *f = *state;
    evconnlistener_free(ml_take(&f->listener));
    lua(f, "function accept(connection)\n"
           "  return {\n"
           "    data = function(bytes) connection:write(bytes:upper()) end,\n"
           "    ended = function() connection:end_output() end,\n"
           "  }\n"
           "end\n"
           "listener = assert(tcp.listen { address = '127.0.0.1', port = PORT,\n"
           "  accepted = function(connection) return accept(connection) end })\n"
           "assert(not tcp.listen { address = '127.0.0.1', port = PORT, accepted = print })\n"
           "assert(not pcall(tcp.listen, { address = '127.0.0.1', port = PORT }))\n"
           "function ask()\n"
           "  local text, connection = ''\n"
           "  connection = assert(open {\n"
           "    data = function(bytes) text = text .. bytes end,\n"
           "    closed = function() got = text done() end })\n"
           "  connection:write 'hello'\n"
           "  connection:end_output()\n"
           "end");
    lua_wait(f, "ask()");
    lua(f, "assert(got == 'HELLO', got)");
    lua_wait(f, "accept = function() end ask()");
    lua(f, "assert(got == '', got)");
    lua_wait(f, "accept = function(connection) connection:close() return {} end ask()");
    lua(f, "assert(got == '', got)");
    lua_wait(f, "accept = function() error 'oops' end ask()"); /* on_failed ends the wait */
    assert_int_equal(f->failures, 1);
    lua_wait(f, "listener:close() listener:close() collectgarbage() ask()");
    lua(f, "assert(got == '', got)");
}

#define TEST(name) cmocka_unit_test_setup_teardown(test_lua_tcp_##name, setup, teardown)

int main(void)
{
    const struct CMUnitTest tests[] = {
        TEST(passes_bytes_and_each_end),   TEST(much_waits_for_a_slow_side),
        TEST(says_why_it_broke),           TEST(close_ends_the_callbacks),
        TEST(open_ones_go_with_the_state), TEST(refuses_what_is_no_address),
        TEST(accepts_and_answers),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
