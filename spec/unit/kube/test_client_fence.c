/* The fence: behind it no write leaves, whenever it was asked for. */
#include "kube_client.h"

static int fence_writes(void *context, const char *method, const char *path, struct ml_err *err)
{
    return *(bool *)context ? ml_err_set(err, ML_EFORBIDDEN, "not the leader: %s %s", method, path)
                            : 0;
}

static void test_client_fence_stops_writes_and_only_those(void **state)
{
    struct world *world = *state;
    bool closed = true;
    ml_client_set_fence(world->client, fence_writes, &closed);
    send_request(world, ML_VERB_CREATE, "a");
    assert_int_equal(world->done_count, 0); /* not inside send */
    ml_loop_poll(world->loop);
    assert_int_equal(world->done_count, 1);
    assert_int_equal(world->err.kind, ML_EFORBIDDEN);
    assert_string_equal(
        world->err.message,
        "not the leader: POST /api/v1/namespaces/default/pods?fieldManager=moonloop");
    fake_expect_none(world->server);

    ml_client_cancel(send_request(world, ML_VERB_CREATE, "a"));
    send_request(world, ML_VERB_GET, "a");
    fake_reply(fake_next(world->server), 200, "{}");
    closed = false;
    send_request(world, ML_VERB_DELETE, "a");
    fake_reply(fake_next(world->server), 200, "{}");
    ml_loop_poll(world->loop);
    assert_int_equal(world->done_count, 3);
}

static void test_client_fence_is_asked_before_each_attempt(void **state)
{
    struct world *world = *state;
    bool closed = false;
    ml_client_set_fence(world->client, fence_writes, &closed);
    send_request(world, ML_VERB_CREATE, "a");
    reply_retry_after(fake_next(world->server), 429, 1);
    closed = true;
    advance(world, 2000);
    assert_int_equal(world->done_count, 1);
    assert_int_equal(world->err.kind, ML_EFORBIDDEN);
    fake_expect_none(world->server);
}

/* The transport may have kept it waiting for a connection, and the process may have slept. */
static void test_client_fence_is_asked_when_the_bytes_leave(void **state)
{
    struct world *world = *state;
    struct ml_err err = ML_ERR_INIT;
    bool closed = false;
    ml_client_set_fence(world->client, fence_writes, &closed);
    send_request(world, ML_VERB_CREATE, "a");
    send_request(world, ML_VERB_GET, "a");
    struct fake_call *write = fake_next(world->server), *read = fake_next(world->server);
    assert_int_equal(fake_may_send(write, &err), 0);
    closed = true;
    assert_int_equal(fake_may_send(read, &err), 0);
    assert_int_equal(fake_may_send(write, &err), ML_EFORBIDDEN);
    fake_fail(write, err.kind, err.message);
    fake_reply(read, 200, "{}");
    assert_int_equal(world->done_count, 2);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        WITH(test_client_fence_stops_writes_and_only_those),
        WITH(test_client_fence_is_asked_before_each_attempt),
        WITH(test_client_fence_is_asked_when_the_bytes_leave),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
