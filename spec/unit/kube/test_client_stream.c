/* Streams: what a reader gets, and how it and the server end one. */
#include "kube_client.h"

static void stream_open(void *context)
{
    struct world *world = context;
    world->opened++;
    if (world->cancel_in_open)
        ml_client_cancel(world->cancel_in_open);
}

static int stream_data(void *context, struct ml_str piece, struct ml_err *err)
{
    struct world *world = context;
    if (world->cancel_in_data) {
        ml_client_cancel(world->cancel_in_data);
        return 0;
    }
    if (ml_str_is(piece, "bad"))
        return ml_err_set(err, ML_EINVALID, "refused");
    strncat(world->pieces, piece.ptr, piece.len);
    return 0;
}

static void stream_done(void *context, const struct ml_err *err)
{
    on_done(context, ML_STR(""), err);
}

static struct ml_client_call *open_stream(struct world *world)
{
    static const struct ml_client_stream handler = {stream_open, stream_data, stream_done, NULL};
    static const struct ml_http_deadlines deadlines = {.idle_ms = 7};
    return ml_client_stream(world->client, "/api/v1/pods?watch=1", &deadlines, &handler, world);
}

static void test_client_stream_passes_pieces_on(void **state)
{
    struct world *world = *state; /* one place, which streams do not take */
    send_request(world, ML_VERB_GET, "a");
    struct fake_call *get = fake_next(world->server);
    open_stream(world);
    struct fake_call *call = fake_expect(world->server, "GET", "/api/v1/pods?watch=1");
    assert_true(call->streaming);
    assert_true(call->deadlines.idle_ms == 7);
    fake_head(call, 200);
    assert_int_equal(world->opened, 1);
    fake_piece(call, "one");
    fake_piece(call, "two");
    assert_string_equal(world->pieces, "onetwo");
    fake_end(call);
    assert_int_equal(world->done_count, 1);
    assert_int_equal(world->err.kind, 0);
    fake_reply(get, 200, "{}");
}

static void test_client_stream_keeps_refusals_from_the_reader(void **state)
{
    struct world *world = *state;
    open_stream(world);
    struct fake_call *call = fake_next(world->server);
    assert_true(call->streaming);
    fake_refuse(call, 410, "Expired", "too old resource version: 5 (7)");
    assert_int_equal(world->opened, 0);
    assert_string_equal(world->pieces, "");
    assert_int_equal(world->err.kind, ML_EGONE);

    open_stream(world);
    fake_reply_head(fake_next(world->server),
                    &(struct ml_http_head){.status = 429, .retry_after_ms = 2000}, "");
    assert_int_equal(world->err.kind, ML_ETOO_MANY);
    assert_true(world->err.retry_after_ms == 2000);
    advance(world, 2300);
    open_stream(world);
    fake_fail(fake_next(world->server), ML_ENETWORK, "refused");
    assert_int_equal(world->done_count, 3);
    assert_int_equal(world->err.kind, ML_ENETWORK);
    open_stream(world);
    fake_reply(fake_next(world->server), 204, NULL);
    assert_int_not_equal(world->err.kind, 0);
}

static void test_client_stream_ends_where_the_reader_refuses(void **state)
{
    struct world *world = *state;
    open_stream(world);
    struct fake_call *call = fake_next(world->server);
    fake_head(call, 200);
    assert_false(fake_piece(call, "bad"));
    assert_int_equal(world->err.kind, ML_EINVALID);

    world->cancel_in_open = open_stream(world);
    fake_head(fake_next(world->server), 200);
    world->cancel_in_open = NULL;
    world->cancel_in_data = open_stream(world);
    call = fake_next(world->server);
    fake_head(call, 200);
    fake_piece(call, "x");
    assert_true(call->canceled);
    assert_int_equal(world->done_count, 1);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        NARROW(test_client_stream_passes_pieces_on),
        WITH(test_client_stream_keeps_refusals_from_the_reader),
        WITH(test_client_stream_ends_where_the_reader_refuses),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
