/* Those who wait until the server can be reached: who looks, how often, and who is told. */
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
        waiters[i] = (struct waiter){.world = world,
                                     .await = {.again = on_again, .context = &waiters[i]},
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

int main(void)
{
    const struct CMUnitTest tests[] = {
        WITH(test_await_one_looks_each_second_or_two_in_turns),
        WITH(test_await_an_answer_is_told_to_all_of_them_once),
        WITH(test_await_what_a_proxy_may_say_is_no_answer),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
