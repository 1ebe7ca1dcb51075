/* The client under load: places, turns, a full queue, and a server that wants a pause. */
#include "kube_client.h"

static struct ml_client_call *send_in_flow(struct world *world, const char *flow, const char *name)
{
    const struct ml_client_request request = {.verb = ML_VERB_GET,
                                              .kind = &pods,
                                              .ns = ML_STR("default"),
                                              .name = ml_str_of(name),
                                              .flow = flow};
    return ml_client_send(world->client, &request, on_done, world);
}

/* The name of the pod that is asked for next; answers it. */
static void answer_next(struct world *world, const char *want)
{
    struct fake_call *call = fake_next(world->server);
    assert_string_equal(strrchr(call->path, '/') + 1, want);
    fake_reply(call, 200, "{}");
}

static void test_client_serves_those_who_wait_in_turns(void **state)
{
    struct world *world = *state; /* one place */
    send_in_flow(world, "busy", "first");
    for (int i = 0; i < 4; i++)
        send_in_flow(world, "busy", (const char *[]){"b1", "b2", "b3", "b4"}[i]);
    struct ml_client_call *canceled = send_in_flow(world, "calm", "c0");
    send_in_flow(world, "calm", "c1");
    send_in_flow(world, NULL, "host");
    send_in_flow(world, "calm", "c2");
    ml_client_cancel(canceled);
    static const char *const order[] = {"first", "b1", "c1", "host", "b2", "c2", "b3", "b4"};
    for (size_t i = 0; i < ML_COUNT(order); i++)
        answer_next(world, order[i]);
    fake_expect_none(world->server);
}

static void test_client_refuses_when_too_many_wait(void **state)
{
    struct world *world = *state; /* one place */
    for (int i = 0; i < 1001; i++)
        send_request(world, ML_VERB_GET, "a");
    send_request(world, ML_VERB_CREATE, "late");
    assert_int_equal(world->done_count, 0); /* later, from the loop */
    ml_loop_poll(world->loop);
    assert_int_equal(world->done_count, 1);
    assert_int_equal(world->err.kind, ML_EUNAVAILABLE);
    assert_int_equal(world->err.http, 0);
    for (int i = 0; i < 1001; i++)
        answer_next(world, "a");
    fake_expect_none(world->server);
}

static const struct ml_client_stream ignoring;

/* One answer 429 keeps all of the process quiet for as long as it says, within reason. */
static void test_client_pauses_as_a_whole_after_a_429(void **state)
{
    struct world *world = *state;
    static const struct {
        int64_t asked_ms, quiet_ms, loud_ms;
    } rows[] = {
        {-1, 990, 1200}, /* no header, garbage, a date */
        {0, 990, 1200},     {1000, 990, 1200},
        {7000, 6990, 7800}, {INT64_C(1000000000000), 59990, 60010},
    };
    for (size_t i = 0; i < ML_COUNT(rows); i++) {
        send_request(world, ML_VERB_GET, "a");
        send_request(world, ML_VERB_GET, "b");
        struct fake_call *a = fake_next(world->server), *b = fake_next(world->server);
        const struct ml_http_head head = {.status = 429, .retry_after_ms = rows[i].asked_ms};
        fake_reply_head(a, &head, "");
        fake_reply(b, 200, "{}"); /* was under way */
        send_request(world, ML_VERB_CREATE, "c");
        struct ml_client_call *stream = ml_client_stream(
            world->client, "/watch", &(struct ml_http_deadlines){.total_ms = 0}, &ignoring, world);
        advance(world, rows[i].quiet_ms);
        fake_expect_none(world->server);
        advance(world, rows[i].loud_ms - rows[i].quiet_ms);
        assert_string_equal(fake_next(world->server)->path, "/watch");
        ml_client_cancel(stream);
        /* Tried again when the server said when; given up, as ever, when it did not. */
        if (rows[i].asked_ms >= 0) {
            struct fake_call *again = fake_next(world->server), *c = fake_next(world->server);
            fake_reply(again, 200, "{}");
            fake_reply(c, 201, "{}");
        } else {
            fake_reply(fake_next(world->server), 201, "{}");
        }
        fake_expect_none(world->server);
    }
    advance(world, 60000);
    assert_int_equal(fake_waiting(world->server), 0);
}

/* "storage is (re)initializing", a PodDisruptionBudget, a limit of Events: a Status says so, and it
 * is about that request. Nothing else waits. */
static void test_client_pauses_nothing_after_a_429_about_one_request(void **state)
{
    struct world *world = *state;
    static const char busy[] = "{\"kind\":\"Status\",\"status\":\"Failure\",\"code\":429,"
                               "\"reason\":\"TooManyRequests\",\"details\":{"
                               "\"retryAfterSeconds\":1},"
                               "\"message\":\"storage is (re)initializing\"}";
    for (int attempt = 1; attempt < 10; attempt++) {
        if (attempt == 1)
            send_request(world, ML_VERB_CREATE, "a"); /* a write: it was not executed */
        fake_reply(fake_next(world->server), 429, busy);
        send_request(world, ML_VERB_GET, "b");
        fake_reply(fake_next(world->server), 200, "{}"); /* sent at once */
        assert_int_equal(world->done_count, attempt);
        advance(world, 990);
        fake_expect_none(world->server);
        advance(world, 520);
    }
    fake_reply(fake_next(world->server), 201, "{}");
    assert_int_equal(world->done_count, 10);
    assert_int_equal(world->err.kind, 0);
}

/* A 429 that does not say when is given up, as ever, and pauses nothing either. */
static void test_client_gives_up_a_429_about_one_request_without_a_time(void **state)
{
    struct world *world = *state;
    send_request(world, ML_VERB_CREATE, "a");
    fake_refuse(fake_next(world->server), 429, "TooManyRequests", "limit reached");
    assert_int_equal(world->err.kind, ML_ETOO_MANY);
    send_request(world, ML_VERB_GET, "b");
    fake_reply(fake_next(world->server), 200, "{}");
}

static void test_client_pause_is_the_longest_that_was_asked_for(void **state)
{
    struct world *world = *state;
    send_request(world, ML_VERB_GET, "a");
    send_request(world, ML_VERB_GET, "b");
    struct fake_call *a = fake_next(world->server), *b = fake_next(world->server);
    reply_retry_after(a, 429, 20);
    reply_retry_after(b, 429, 2);
    advance(world, 19990);
    fake_expect_none(world->server);
    advance(world, 2100);
    fake_reply(fake_next(world->server), 200, "{}");
    fake_reply(fake_next(world->server), 200, "{}");
}

static void test_client_stream_held_by_a_pause_may_be_canceled(void **state)
{
    struct world *world = *state;
    send_request(world, ML_VERB_GET, "a");
    reply_retry_after(fake_next(world->server), 429, 1);
    ml_client_cancel(ml_client_stream(
        world->client, "/watch", &(struct ml_http_deadlines){.total_ms = 0}, &ignoring, world));
    advance(world, 1200);
    fake_reply(fake_next(world->server), 200, "{}");
    fake_expect_none(world->server);
}

/* Leases: who waits for a minute has lost it. */
static void test_client_that_is_exempt_never_pauses(void **state)
{
    struct world *world = *state;
    struct ml_client *exempt = ml_client_new(&(struct ml_client_opts){
        .loop = world->loop,
        .transport = fake_transport_seam(world->server),
        .random = &world->random,
        .exempt = true,
    });
    const struct ml_client_request request = {.verb = ML_VERB_UPDATE,
                                              .kind = &pods,
                                              .ns = ML_STR("default"),
                                              .name = ML_STR("a"),
                                              .body = ML_STR("{}")};
    for (int i = 0; i < 2; i++) {
        ml_client_send(exempt, &request, on_done, world);
        reply_retry_after(fake_next(world->server), 429, 60);
        assert_int_equal(world->done_count, i + 1);
        assert_int_equal(world->err.kind, ML_ETOO_MANY);
    }
    ml_client_free(exempt);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        NARROW(test_client_serves_those_who_wait_in_turns),
        NARROW(test_client_refuses_when_too_many_wait),
        WITH(test_client_pauses_as_a_whole_after_a_429),
        WITH(test_client_pauses_nothing_after_a_429_about_one_request),
        WITH(test_client_gives_up_a_429_about_one_request_without_a_time),
        WITH(test_client_pause_is_the_longest_that_was_asked_for),
        WITH(test_client_stream_held_by_a_pause_may_be_canceled),
        WITH(test_client_that_is_exempt_never_pauses),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
