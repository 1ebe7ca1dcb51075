/* Injected faults: what the caller and the server see of each. */
#include "base/buf.h"
#include "cluster/transport_faults.h"
#include "fake_transport.h"
#include "unit.h"

struct world {
    struct ml_clock_fake clock;
    struct ml_loop *loop;
    struct fake_transport *server;
    struct ml_transport *seam;
    struct ml_transport_faults *faults;
    struct ml_transport_call *call;
    int status; /* of the head; 0: none */
    struct ml_buf body;
    bool done;
    int kind; /* of the error that done() came with */
    bool cancel_in_data;
};

static void on_head(void *context, const struct ml_http_head *head)
{
    ((struct world *)context)->status = head->status;
}

static int on_data(void *context, struct ml_str piece, struct ml_err *err)
{
    struct world *world = context;
    (void)err;
    ml_buf_append_str(&world->body, piece);
    if (world->cancel_in_data)
        world->seam->cancel(world->seam, ml_take(&world->call));
    return 0;
}

static void on_done(void *context, const struct ml_err *err)
{
    struct world *world = context;
    assert_false(world->done);
    world->done = true;
    world->kind = err ? err->kind : 0;
    world->call = NULL;
}

static void send(struct world *world, const char *method, const char *path, bool streaming)
{
    static const struct ml_http_handler handler = {on_head, on_data, on_done};
    const struct ml_transport_request request = {
        .method = method, .path = path, .streaming = streaming};
    world->call = world->seam->submit(world->seam, &request, &handler, world);
    assert_false(world->done);
}

static void expect_body(struct world *world, const char *text)
{
    assert_string_equal(text, ml_buf_cstr(&world->body));
}

static void test_faults_without_a_rule_let_pass(void **state)
{
    struct world *world = *state;
    send(world, "GET", "/api/v1/pods", false);
    fake_reply(fake_expect(world->server, "GET", "/api/v1/pods"), 200, "{}");
    assert_true(world->done);
    assert_int_equal(0, world->kind);
    assert_int_equal(200, world->status);
    expect_body(world, "{}");
}

static void test_faults_refuse_without_asking_the_server(void **state)
{
    struct world *world = *state;
    const struct ml_fault fault = {.kind = ML_FAULT_REFUSE,
                                   .method = "PATCH",
                                   .path = "/pods",
                                   .times = 1,
                                   .status = 409,
                                   .reason = "Conflict"};
    ml_transport_faults_add(world->faults, &fault);
    send(world, "PATCH", "/api/v1/pods/a", false);
    ml_loop_poll(world->loop);
    fake_expect_none(world->server);
    assert_true(world->done);
    assert_int_equal(409, world->status);
    assert_non_null(strstr(ml_buf_cstr(&world->body), "\"reason\":\"Conflict\""));
}

static void test_faults_strike_as_often_as_told_and_only_what_fits(void **state)
{
    struct world *world = *state;
    const struct ml_fault fault = {
        .kind = ML_FAULT_LOSE, .method = "POST", .path = "/pods", .times = 1};
    ml_transport_faults_add(world->faults, &fault);
    send(world, "POST", "/api/v1/secrets", false);
    fake_reply(fake_next(world->server), 201, "{}");
    world->done = false;
    send(world, "POST", "/api/v1/pods", false);
    ml_loop_poll(world->loop);
    fake_expect_none(world->server);
    assert_int_equal(ML_ENETWORK, world->kind);
    world->done = false;
    send(world, "POST", "/api/v1/pods", false);
    fake_reply(fake_next(world->server), 201, "{}");
    assert_int_equal(0, world->kind);
}

static void test_faults_lose_the_reply_of_what_was_done(void **state)
{
    struct world *world = *state;
    const struct ml_fault lost = {.kind = ML_FAULT_LOSE_REPLY, .times = 1};
    const struct ml_fault late = {.kind = ML_FAULT_TIME_OUT, .times = 1};
    ml_transport_faults_add(world->faults, &lost);
    ml_transport_faults_add(world->faults, &late);
    send(world, "POST", "/api/v1/pods", false);
    fake_reply(fake_expect(world->server, "POST", "/api/v1/pods"), 201, "{}");
    assert_int_equal(ML_ENETWORK, world->kind);
    world->done = false;
    send(world, "POST", "/api/v1/pods", false);
    fake_reply(fake_expect(world->server, "POST", "/api/v1/pods"), 201, "{}");
    assert_int_equal(ML_ETIMEOUT, world->kind);
    assert_int_equal(0, world->status);
    expect_body(world, "");
}

static void test_faults_cut_a_body_at_each_byte(void **state)
{
    struct world *world = *state;
    for (size_t at = 0; at <= 4; at++) {
        const struct ml_fault fault = {.kind = ML_FAULT_CUT, .times = 1, .bytes = at};
        ml_transport_faults_add(world->faults, &fault);
        ml_buf_clear(&world->body);
        world->done = false;
        send(world, "GET", "/x", true);
        struct fake_call *call = fake_next(world->server);
        fake_head(call, 200);
        if (fake_piece(call, "ab"))
            fake_piece(call, "cd");
        assert_true(world->done);
        assert_int_equal(ML_ENETWORK, world->kind);
        assert_int_equal(at, world->body.len);
    }
}

static void test_faults_hold_a_stream_until_taken_away(void **state)
{
    struct world *world = *state;
    const struct ml_fault fault = {.kind = ML_FAULT_HOLD, .path = "watch"};
    send(world, "GET", "/x?watch=true", true);
    struct fake_call *call = fake_next(world->server);
    fake_head(call, 200);
    fake_piece(call, "a");
    int number = ml_transport_faults_add(world->faults, &fault);
    fake_piece(call, "b");
    fake_piece(call, "c");
    fake_end(call);
    ml_loop_poll(world->loop);
    expect_body(world, "a");
    assert_false(world->done);
    ml_transport_faults_remove(world->faults, number);
    ml_loop_poll(world->loop);
    expect_body(world, "abc");
    assert_true(world->done);
    assert_int_equal(0, world->kind);
}

static void test_faults_leave_nothing_after_a_cancel(void **state)
{
    struct world *world = *state;
    const struct ml_fault fault = {.kind = ML_FAULT_REFUSE, .times = 2, .status = 500};
    ml_transport_faults_add(world->faults, &fault);
    send(world, "GET", "/x", false);
    world->seam->cancel(world->seam, ml_take(&world->call));
    ml_loop_poll(world->loop);
    assert_false(world->done);
    world->cancel_in_data = true;
    send(world, "GET", "/x", false);
    ml_loop_poll(world->loop);
    assert_false(world->done);
    send(world, "GET", "/x", false);
    struct fake_call *call = fake_next(world->server);
    fake_head(call, 200);
    assert_false(fake_piece(call, "x"));
    assert_false(world->done);
}

static int setup(void **state)
{
    struct world *world = ml_new(struct world);
    ml_clock_fake_init(&world->clock, 0);
    world->loop = ml_loop_new(&world->clock.clock);
    world->server = fake_transport_new(world->loop);
    struct ml_transport *inner = fake_transport_seam(world->server);
    world->seam = ml_transport_faults_new(world->loop, inner, &world->faults);
    *state = world;
    return 0;
}

static int teardown(void **state)
{
    struct world *world = *state;
    if (world->call)
        world->seam->cancel(world->seam, world->call);
    world->seam->free(world->seam);
    ml_loop_free(world->loop);
    ml_buf_fini(&world->body);
    free(world);
    return 0;
}

#define WITH(test) cmocka_unit_test_setup_teardown(test, setup, teardown)

int main(void)
{
    const struct CMUnitTest tests[] = {
        WITH(test_faults_without_a_rule_let_pass),
        WITH(test_faults_refuse_without_asking_the_server),
        WITH(test_faults_strike_as_often_as_told_and_only_what_fits),
        WITH(test_faults_lose_the_reply_of_what_was_done),
        WITH(test_faults_cut_a_body_at_each_byte),
        WITH(test_faults_hold_a_stream_until_taken_away),
        WITH(test_faults_leave_nothing_after_a_cancel),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
