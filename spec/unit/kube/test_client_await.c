/* Waiting until the server can be reached: which waiter looks, how often, and which are told. */
#include "kube_client.h"

struct waiter {
    struct world *world;
    struct ml_client_await await;
    int looks, told;
    bool looks_in_vain; /* and waits again */
};

static void on_again(void *context, bool answered)
{
    struct waiter *waiter = context;
    waiter->looks += !answered;
    waiter->told += answered;
    if (waiter->looks_in_vain)
        ml_client_await(waiter->world->client, &waiter->await);
}

static void wait_all(struct world *world, struct waiter *waiters, size_t count, bool in_vain)
{
    for (size_t i = 0; i < count; i++) {
        waiters[i] = (struct waiter){
            .world = world,
            .await = {.again = on_again, .context = &waiters[i], .probes = true},
            .looks_in_vain = in_vain};
        ml_client_await(world->client, &waiters[i].await);
    }
}

static void stop_all(struct waiter *waiters, size_t count)
{
    for (size_t i = 0; i < count; i++)
        ml_client_await_stop(&waiters[i].await);
}

static void test_await_one_looks_each_second_or_two_in_turns(void **state)
{
    struct world *world = *state;
    struct waiter waiters[3];
    wait_all(world, waiters, 3, true);
    advance(world, 999);
    assert_int_equal(waiters[0].looks, 0);
    for (int s = 0; s < 600; s++)
        advance(world, 100);
    int looks = waiters[0].looks + waiters[1].looks + waiters[2].looks;
    assert_in_range(looks, 30, 60);
    for (int i = 0; i < 3; i++)
        assert_in_range(waiters[i].looks, looks / 3, looks / 3 + 1);
    stop_all(waiters, 3);
}

static void test_await_an_answer_is_told_to_all_of_them_once(void **state)
{
    struct world *world = *state;
    struct waiter waiters[3];
    static const int codes[] = {200, 201, 401, 404, 409};
    for (size_t i = 0; i < ML_COUNT(codes); i++) {
        wait_all(world, waiters, 3, false);
        ml_client_await_stop(&waiters[1].await);
        send_request(world, ML_VERB_GET, "a");
        fake_refuse(fake_next(world->server), codes[i], "", "no");
        advance(world, 60000);
        assert_int_equal(waiters[0].told, 1);
        assert_int_equal(waiters[1].told, 0);
        assert_int_equal(waiters[2].told, 1);
        assert_int_equal(waiters[0].looks + waiters[1].looks + waiters[2].looks, 0);
    }
}

static void test_await_what_a_proxy_may_say_is_no_answer(void **state)
{
    struct world *world = *state;
    struct waiter waiter;
    wait_all(world, &waiter, 1, false);
    send_request(world, ML_VERB_UPDATE, "a");
    fake_refuse(fake_next(world->server), 502, "", "no");
    send_request(world, ML_VERB_UPDATE, "a");
    fake_fail(fake_next(world->server), ML_ENETWORK, "refused");
    assert_int_equal(world->done_count, 2);
    assert_int_equal(waiter.told, 0);
    stop_all(&waiter, 1);
}

static void test_await_only_those_that_probe_are_told_to_try(void **state)
{
    struct world *world = *state;
    struct waiter waiters[2];
    wait_all(world, waiters, 2, false);
    waiters[0].await.probes = false;
    advance(world, 2000);
    advance(world, 60000);
    assert_int_equal(waiters[0].looks, 0);
    assert_int_equal(waiters[1].looks, 1);
    stop_all(waiters, 2);
}

/* A lease is renewed over a connection of its own. */
static void test_await_an_answer_to_another_client_of_the_server_counts(void **state)
{
    struct world *world = *state;
    struct waiter waiter;
    struct ml_client *leases = ml_client_new(&(struct ml_client_opts){
        .loop = world->loop,
        .transport = fake_transport_seam(world->server),
        .random = &world->random,
        .exempt = true,
        .same_server = world->client,
    });
    const struct ml_client_request request = {
        .verb = ML_VERB_GET, .kind = &pods, .ns = ML_STR("default"), .name = ML_STR("a")};
    wait_all(world, &waiter, 1, false);
    ml_client_send(leases, &request, on_done, world);
    fake_refuse(fake_next(world->server), 503, "", "no");
    assert_int_equal(waiter.told, 0);
    ml_client_send(leases, &request, on_done, world);
    fake_reply(fake_next(world->server), 200, "{}");
    assert_int_equal(waiter.told, 1);
    ml_client_free(leases);
}

static void test_await_which_errors_mean_that_the_server_may_be_away(void **state)
{
    (void)state;
    static const struct {
        int kind, http;
        int64_t retry_after_ms;
        bool unanswered;
    } cases[] = {
        {ML_ENETWORK, 0, -1, true},       {ML_ETIMEOUT, 0, -1, true},
        {ML_ETLS, 0, -1, true},           {ML_EUNAVAILABLE, 502, -1, true},
        {ML_EUNAVAILABLE, 503, -1, true}, {ML_ETIMEOUT, 504, -1, true},
        {ML_EUNAVAILABLE, 503, 0, false}, /* it said when */
        {ML_ESERVER, 500, -1, false},     {ML_ETOO_MANY, 429, -1, false},
        {ML_EUNAVAILABLE, 0, -1, false}, /* the client did not send it */
        {ML_ESCRIPT, 0, -1, false},       {ML_EFORBIDDEN, 403, -1, false},
    };
    for (size_t i = 0; i < ML_COUNT(cases); i++) {
        struct ml_err err = ML_ERR_INIT;
        err.kind = cases[i].kind;
        err.http = cases[i].http;
        err.retry_after_ms = cases[i].retry_after_ms;
        assert_int_equal(ml_client_unanswered(&err), cases[i].unanswered);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        WITH(test_await_one_looks_each_second_or_two_in_turns),
        WITH(test_await_an_answer_is_told_to_all_of_them_once),
        WITH(test_await_what_a_proxy_may_say_is_no_answer),
        WITH(test_await_only_those_that_probe_are_told_to_try),
        WITH(test_await_an_answer_to_another_client_of_the_server_counts),
        cmocka_unit_test(test_await_which_errors_mean_that_the_server_may_be_away),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
