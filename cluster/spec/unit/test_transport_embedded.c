/* The transport seam on an API server in the same process: answers from the loop, streams, callers
 * that cancel wherever they stand, servers that go, and what caller and server see of each injected
 * fault. The server is a stand-in of a few lines. */
#include "stand_in.h"

#include "cluster/host/transport_embedded.h"

static const char *const server_text =
    "local host = require 'cluster.host'\n"
    "local handlers, watchers = {}, {}\n"
    "function handlers.GET(request, reply)\n"
    "  reply:send(200, 'application/json', host.json.encode { path = request.path,\n"
    "    query = request.query, headers = request.headers }, { ['Retry-After'] = '2',\n"
    "    Warning = '299 - \"old \\\\\"thing\\\\\"\"' })\n"
    "end\n"
    "function handlers.WATCH(_, reply)\n"
    "  reply:start(200, 'application/json')\n"
    "  reply:write 'first\\n'\n"
    "  watchers[#watchers + 1] = reply\n"
    "  reply.on_close = function() left = (left or 0) + 1 end\n"
    "end\n"
    "function handlers.POST(request, reply)\n"
    "  for _, watcher in ipairs(watchers) do waiting = watcher:write(request.body .. '\\n') end\n"
    "  reply:send(201, 'application/json', '{}')\n"
    "end\n"
    "function handlers.END() for _, w in ipairs(watchers) do w:finish() end error 'raised' end\n"
    "function handlers.CUT(_, reply) reply:start(200, 'x') reply:write 'half' reply:abort() end\n"
    "function handlers.HALVES(_, reply)\n"
    "  reply:start(200, 'x') reply:write 'ab'\n"
    "  local gone\n"
    "  reply.on_close = function() gone = true end\n"
    "  host.after(1, function() if not gone then reply:write 'cd' reply:finish() end end)\n"
    "end\n"
    "function handlers.SILENT() end\n"
    "function handlers.CANCEL(_, reply)\n"
    "  reply:start(200, 'x') require 'test'.cancel() reply:write 'nobody reads this'\n"
    "end\n"
    "function handlers.FLOOD(_, reply)\n"
    "  reply:start(200, 'x')\n"
    "  local piece = ('x'):rep(32 * 1024 * 1024)\n"
    "  for _ = 1, 9 do waiting = reply:write(piece) end\n"
    "  reply:finish()\n"
    "end\n"
    "local M = {}\n"
    "function M.new()\n"
    "  return { handle = function(_, request, reply)\n"
    "    asked = (asked or 0) + 1\n"
    "    return handlers[request.method](request, reply) end }\n"
    "end\n"
    "return M\n";

/* Where a call cancels itself. */
enum where { NOWHERE, IN_HEAD, IN_DATA };

struct call {
    struct world *world;
    struct ml_transport_call *call;
    enum where cancels;
    int refuses; /* data() returns it */
    int status;
    int64_t retry_after_ms;
    char warning[32];
    struct ml_buf body;
    size_t pieces;
    bool done;
    struct ml_err err;
};

struct world {
    struct ml_clock_fake clock;
    struct ml_loop *loop;
    struct stand_in stand_in;
    struct ml_apiserver *server;
    struct ml_transport *transport;
    struct call calls[5];
};

static void cancel(struct call *call)
{
    call->world->transport->cancel(call->world->transport, ml_take(&call->call));
}

static void on_head(void *context, const struct ml_http_head *head)
{
    struct call *call = context;
    assert_int_equal(call->status, 0);
    call->status = head->status;
    call->retry_after_ms = head->retry_after_ms;
    snprintf(call->warning, sizeof call->warning, ML_STR_FMT, ML_STR_ARG(head->warning));
    if (call->cancels == IN_HEAD)
        cancel(call);
}

static int on_data(void *context, struct ml_str piece, struct ml_err *err)
{
    struct call *call = context;
    assert_true(call->status != 0 && !call->done);
    ml_buf_append_str(&call->body, piece);
    call->pieces++;
    if (call->cancels == IN_DATA)
        cancel(call);
    return call->refuses ? ml_err_set(err, call->refuses, "refused") : 0;
}

static void on_done(void *context, const struct ml_err *err)
{
    struct call *call = context;
    assert_false(call->done);
    call->done = true;
    call->call = NULL;
    call->err = err ? *err : ML_ERR_INIT;
}

static struct call *submit_request(struct world *world, size_t index,
                                   const struct ml_transport_request *request)
{
    static const struct ml_http_handler handler = {on_head, on_data, on_done};
    struct call *call = &world->calls[index];
    call->world = world;
    call->call = world->transport->submit(world->transport, request, &handler, call);
    assert_false(call->done || call->status);
    return call;
}

static struct call *submit(struct world *world, size_t index, const char *method, const char *body,
                           struct ml_http_deadlines deadlines)
{
    const struct ml_transport_request request = {.method = method,
                                                 .path = "/api/v1/pods?limit=1",
                                                 .content_type = body ? "application/json" : NULL,
                                                 .body = ml_str_of(body),
                                                 .deadlines = deadlines};
    return submit_request(world, index, &request);
}

static struct call *ask(struct world *world, size_t index, const char *method, const char *body)
{
    return submit(world, index, method, body, (struct ml_http_deadlines){0});
}

static void advance(struct world *world, int64_t ns)
{
    ml_clock_fake_advance(&world->clock, ns);
    ml_loop_poll(world->loop);
}

static void assert_lua(struct world *world, const char *condition)
{
    struct ml_server_lua *lua = ml_apiserver_lua(world->server);
    ML_AUTO_FREE char *text = ml_asprintf("assert(%s)", condition);
    struct ml_err err;
    if (ml_server_lua_run(lua, condition, ml_str_of(text), &err) < 0)
        fail_msg("%s", err.message);
}

static int set_up(void **state)
{
    struct world *world = ml_new(struct world);
    struct ml_err err;
    ml_clock_fake_init(&world->clock, INT64_C(1700000000) * ML_NS_PER_S);
    world->loop = ml_loop_new(&world->clock.clock);
    stand_in_write(&world->stand_in, server_text);
    const struct ml_apiserver_options options = {
        .loop = world->loop, .clock = &world->clock.clock, .files_first = true};
    if (ml_apiserver_new(&options, &world->server, &err) < 0)
        fail_msg("%s", err.message);
    world->transport = ml_transport_embedded_new(world->loop, world->server, "secret");
    *state = world;
    return 0;
}

static int tear_down(void **state)
{
    struct world *world = *state;
    for (size_t i = 0; i < ML_COUNT(world->calls); i++) {
        if (world->calls[i].call)
            cancel(&world->calls[i]);
        ml_buf_fini(&world->calls[i].body);
    }
    world->transport->free(world->transport);
    ml_apiserver_free(world->server);
    ml_loop_free(world->loop);
    stand_in_remove(&world->stand_in);
    free(world);
    return 0;
}

static void test_transport_embedded_answers_from_the_loop(void **state)
{
    struct world *world = *state;
    struct call *call = ask(world, 0, "GET", NULL);
    ml_loop_poll(world->loop);
    assert_true(call->done);
    assert_int_equal(call->err.kind, 0);
    assert_int_equal(call->status, 200);
    assert_int_equal(call->retry_after_ms, 2000);
    assert_string_equal(call->warning, "old \"thing\"");
    assert_str_eq(ml_buf_str(&call->body),
                  "{\"headers\":{\"accept\":\"application/json\",\"authorization\":\"Bearer "
                  "secret\",\"user-agent\":\"moonloop/" MOONLOOP_VERSION
                  "\"},\"path\":\"/api/v1/pods\",\"query\":\"limit=1\"}");
}

static void test_transport_embedded_watch_gets_events_of_a_turn_as_one_piece(void **state)
{
    struct world *world = *state;
    struct call *watch = ask(world, 0, "WATCH", NULL);
    ml_loop_poll(world->loop);
    assert_str_eq(ml_buf_str(&watch->body), "first\n");
    struct call *a = ask(world, 1, "POST", "a"), *b = ask(world, 2, "POST", "b");
    ml_loop_poll(world->loop);
    assert_true(a->done && b->done && a->status == 201);
    assert_str_eq(ml_buf_str(&watch->body), "first\na\nb\n");
    assert_int_equal(watch->pieces, 2);
    assert_lua(world, "waiting == 4");
    assert_false(watch->done);
    struct call *end = ask(world, 3, "END", NULL);
    ml_loop_poll(world->loop);
    assert_true(watch->done);
    assert_int_equal(watch->err.kind, 0);
    assert_int_equal(end->status, 500);
    assert_lua(world, "left == nil");
}

static void test_transport_embedded_caller_cancels_anywhere_and_hears_no_more(void **state)
{
    struct world *world = *state;
    struct call *before = ask(world, 0, "WATCH", NULL);
    cancel(before);
    struct call *head = ask(world, 1, "WATCH", NULL), *data = ask(world, 2, "WATCH", NULL);
    struct call *later = ask(world, 3, "WATCH", NULL);
    head->cancels = IN_HEAD;
    data->cancels = IN_DATA;
    ml_loop_poll(world->loop);
    assert_int_equal(before->status, 0);
    assert_true(head->status == 200 && head->pieces == 0);
    assert_int_equal(data->pieces, 1);
    assert_lua(world, "left == 2"); /* the first never reached it */
    cancel(later);
    assert_lua(world, "left == 3");
    ml_loop_poll(world->loop);
    assert_false(before->done || head->done || data->done || later->done);
}

static int cancel_first(void *context, struct ml_str argument, struct ml_buf *result,
                        struct ml_err *err)
{
    (void)argument, (void)result, (void)err;
    cancel(context);
    return 0;
}

static void test_transport_embedded_caller_cancels_while_the_server_handles(void **state)
{
    struct world *world = *state;
    ml_server_lua_define(ml_apiserver_lua(world->server), "test", "cancel", cancel_first,
                         &world->calls[0]);
    struct call *call = ask(world, 0, "CANCEL", NULL);
    ml_loop_poll(world->loop);
    assert_null(call->call);
    assert_true(call->status == 0 && !call->done);
}

static void test_transport_embedded_reader_that_refuses_ends_its_call(void **state)
{
    struct world *world = *state;
    struct call *call = ask(world, 0, "WATCH", NULL);
    call->refuses = ML_ELIMIT;
    ml_loop_poll(world->loop);
    assert_true(call->done);
    assert_int_equal(call->err.kind, ML_ELIMIT);
    assert_lua(world, "left == 1");
}

static void test_transport_embedded_abort_is_a_lost_connection_behind_what_was_sent(void **state)
{
    struct world *world = *state;
    struct call *call = ask(world, 0, "CUT", NULL);
    ml_loop_poll(world->loop);
    assert_str_eq(ml_buf_str(&call->body), "half");
    assert_true(call->done);
    assert_int_equal(call->err.kind, ML_ENETWORK);
}

static void test_transport_embedded_bytes_of_a_turn_have_a_limit(void **state)
{
    struct world *world = *state;
    struct call *call = ask(world, 0, "FLOOD", NULL);
    ml_loop_poll(world->loop);
    assert_true(call->done);
    assert_int_equal(call->err.kind, ML_ENETWORK);
    assert_int_equal(call->pieces, 0);
}

static void test_transport_embedded_deadlines_count_on_the_loops_clock(void **state)
{
    struct world *world = *state;
    struct call *first = submit(world, 0, "SILENT", NULL,
                                (struct ml_http_deadlines){.first_byte_ms = 5000});
    struct call *idle = submit(world, 1, "WATCH", NULL,
                               (struct ml_http_deadlines){.first_byte_ms = 1000, .idle_ms = 3000});
    struct call *total = submit(world, 2, "WATCH", NULL,
                                (struct ml_http_deadlines){.total_ms = 8000});
    ml_loop_poll(world->loop);
    advance(world, 2 * ML_NS_PER_S);
    (void)ask(world, 3, "POST", "x"); /* a byte for the watches */
    ml_loop_poll(world->loop);
    advance(world, 2 * ML_NS_PER_S);
    assert_false(first->done || idle->done || total->done);
    advance(world, 1 * ML_NS_PER_S);
    assert_true(first->done && idle->done && !total->done);
    assert_string_equal(first->err.message, "no answer from embedded within 5 s");
    assert_string_equal(idle->err.message, "answer of embedded stalled: no byte for 3 s");
    advance(world, 3 * ML_NS_PER_S);
    assert_true(total->done);
    assert_int_equal(total->err.kind, ML_ETIMEOUT);
    assert_lua(world, "left == 2");
}

static void test_transport_embedded_server_is_freed_with_calls_open(void **state)
{
    struct world *world = *state;
    struct call *watch = ask(world, 0, "WATCH", NULL);
    ml_loop_poll(world->loop);
    struct call *waits = ask(world, 1, "GET", NULL);
    ml_transport_embedded_set_server(world->transport, NULL);
    ml_apiserver_free(world->server);
    world->server = NULL;
    ml_loop_poll(world->loop);
    assert_true(watch->done && waits->done);
    assert_int_equal(watch->err.kind, ML_ENETWORK);
    assert_string_equal(waits->err.message, "embedded: connection refused");
}

static void test_transport_embedded_goes_on_with_another_server(void **state)
{
    struct world *world = *state;
    struct ml_apiserver *before = world->server;
    struct call *watch = ask(world, 0, "WATCH", NULL);
    struct ml_err err;
    ml_loop_poll(world->loop);
    const struct ml_apiserver_options options = {.loop = world->loop, .files_first = true};
    assert_int_equal(ml_apiserver_new(&options, &world->server, &err), 0);
    ml_transport_embedded_set_server(world->transport, world->server);
    ml_apiserver_free(before);
    struct call *call = ask(world, 1, "GET", NULL);
    ml_loop_poll(world->loop);
    assert_int_equal(watch->err.kind, ML_ENETWORK);
    assert_int_equal(call->status, 200);
}

static int add_fault(struct world *world, struct ml_fault fault)
{
    return ml_transport_embedded_add_fault(world->transport, &fault);
}

static struct call *ask_path(struct world *world, size_t index, const char *method,
                             const char *path)
{
    const struct ml_transport_request request = {.method = method, .path = path};
    return submit_request(world, index, &request);
}

static struct call *watch_path(struct world *world, size_t index, const char *method,
                               int64_t idle_ms)
{
    const struct ml_transport_request request = {.method = method,
                                                 .path = "/x?watch=true",
                                                 .streaming = true,
                                                 .deadlines = {.idle_ms = idle_ms}};
    return submit_request(world, index, &request);
}

static void test_transport_embedded_fault_refuses_without_asking_the_server(void **state)
{
    struct world *world = *state;
    add_fault(world, (struct ml_fault){.kind = ML_FAULT_REFUSE,
                                       .method = "PATCH",
                                       .path = "/pods",
                                       .times = 1,
                                       .status = 409,
                                       .reason = "Conflict"});
    struct call *call = ask_path(world, 0, "PATCH", "/api/v1/pods/a");
    ml_loop_poll(world->loop);
    assert_lua(world, "asked == nil");
    assert_true(call->done);
    assert_int_equal(call->err.kind, 0);
    assert_int_equal(call->status, 409);
    assert_non_null(strstr(ml_buf_cstr(&call->body), "\"reason\":\"Conflict\""));
}

static void test_transport_embedded_fault_strikes_as_often_as_told_and_only_what_fits(void **state)
{
    struct world *world = *state;
    add_fault(world, (struct ml_fault){
                         .kind = ML_FAULT_LOSE, .method = "POST", .path = "/pods", .times = 1});
    struct call *other = ask_path(world, 0, "POST", "/api/v1/secrets");
    struct call *lost = ask_path(world, 1, "POST", "/api/v1/pods");
    ml_loop_poll(world->loop);
    assert_lua(world, "asked == 1");
    assert_int_equal(other->status, 201);
    assert_int_equal(lost->err.kind, ML_ENETWORK);
    struct call *next = ask_path(world, 2, "POST", "/api/v1/pods");
    ml_loop_poll(world->loop);
    assert_true(next->done);
    assert_int_equal(next->err.kind, 0);
}

static void test_transport_embedded_fault_loses_the_reply_of_what_was_done(void **state)
{
    struct world *world = *state;
    add_fault(world, (struct ml_fault){.kind = ML_FAULT_LOSE_REPLY, .times = 1});
    add_fault(world, (struct ml_fault){.kind = ML_FAULT_TIME_OUT, .times = 1});
    struct call *lost = ask_path(world, 0, "POST", "/api/v1/pods");
    struct call *late = ask_path(world, 1, "POST", "/api/v1/pods");
    ml_loop_poll(world->loop);
    assert_lua(world, "asked == 2");
    assert_int_equal(lost->err.kind, ML_ENETWORK);
    assert_int_equal(late->err.kind, ML_ETIMEOUT);
    assert_int_equal(lost->status + late->status, 0);
    assert_int_equal(lost->body.len + late->body.len, 0);
}

static void test_transport_embedded_fault_cuts_a_body_at_each_byte(void **state)
{
    struct world *world = *state;
    for (size_t at = 0; at <= 4; at++) {
        add_fault(world, (struct ml_fault){.kind = ML_FAULT_CUT, .times = 1, .bytes = at});
        (void)watch_path(world, at, "HALVES", 0);
    }
    ml_loop_poll(world->loop);
    assert_false(world->calls[3].done || world->calls[4].done);
    advance(world, ML_NS_PER_S);
    for (size_t at = 0; at <= 4; at++) {
        assert_true(world->calls[at].done);
        assert_int_equal(world->calls[at].err.kind, ML_ENETWORK);
        assert_int_equal(world->calls[at].body.len, at);
    }
}

static void test_transport_embedded_fault_holds_a_stream_until_removed(void **state)
{
    struct world *world = *state;
    struct call *watch = watch_path(world, 0, "WATCH", 0);
    ml_loop_poll(world->loop);
    int number = add_fault(world, (struct ml_fault){.kind = ML_FAULT_HOLD, .path = "watch"});
    for (size_t i = 1; i <= 2; i++) {
        (void)ask(world, i, "POST", i == 1 ? "b" : "c");
        ml_loop_poll(world->loop);
        assert_lua(world, "waiting == 2"); /* what is held does not wait for a slow client */
    }
    (void)ask(world, 3, "END", NULL);
    ml_loop_poll(world->loop);
    assert_str_eq(ml_buf_str(&watch->body), "first\n");
    assert_false(watch->done);
    ml_transport_embedded_remove_fault(world->transport, number);
    assert_false(watch->done);
    ml_loop_poll(world->loop);
    assert_str_eq(ml_buf_str(&watch->body), "first\nb\nc\n");
    assert_true(watch->done);
    assert_int_equal(watch->err.kind, 0);
}

static void test_transport_embedded_fault_holds_the_end_of_a_late_stream(void **state)
{
    struct world *world = *state;
    struct call *watch = watch_path(world, 0, "WATCH", 3000);
    ml_loop_poll(world->loop);
    int number = add_fault(world, (struct ml_fault){.kind = ML_FAULT_HOLD});
    advance(world, 3 * ML_NS_PER_S);
    assert_lua(world, "left == 1");
    assert_false(watch->done);
    ml_transport_embedded_remove_fault(world->transport, number);
    ml_loop_poll(world->loop);
    assert_int_equal(watch->err.kind, ML_ETIMEOUT);
}

static void test_transport_embedded_fault_leaves_nothing_after_a_cancel(void **state)
{
    struct world *world = *state;
    add_fault(world, (struct ml_fault){.kind = ML_FAULT_REFUSE, .times = 2, .status = 500});
    struct call *before = ask(world, 0, "GET", NULL), *data = ask(world, 1, "GET", NULL);
    data->cancels = IN_DATA;
    cancel(before);
    ml_loop_poll(world->loop);
    assert_lua(world, "asked == nil");
    assert_int_equal(before->status, 0);
    assert_int_equal(data->pieces, 1);
    assert_false(before->done || data->done);
}

int main(void)
{
#define TEST(name)                                                                                 \
    cmocka_unit_test_setup_teardown(test_transport_embedded_##name, set_up, tear_down)
    const struct CMUnitTest tests[] = {
        TEST(answers_from_the_loop),
        TEST(watch_gets_events_of_a_turn_as_one_piece),
        TEST(caller_cancels_anywhere_and_hears_no_more),
        TEST(caller_cancels_while_the_server_handles),
        TEST(reader_that_refuses_ends_its_call),
        TEST(abort_is_a_lost_connection_behind_what_was_sent),
        TEST(bytes_of_a_turn_have_a_limit),
        TEST(deadlines_count_on_the_loops_clock),
        TEST(server_is_freed_with_calls_open),
        TEST(goes_on_with_another_server),
        TEST(fault_refuses_without_asking_the_server),
        TEST(fault_strikes_as_often_as_told_and_only_what_fits),
        TEST(fault_loses_the_reply_of_what_was_done),
        TEST(fault_cuts_a_body_at_each_byte),
        TEST(fault_holds_a_stream_until_removed),
        TEST(fault_holds_the_end_of_a_late_stream),
        TEST(fault_leaves_nothing_after_a_cancel),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
