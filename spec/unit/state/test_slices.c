/* CPU accounts whose slices take what a test says, on a clock that they move. */
#include "unit.h"

#include "state/slices.h"

#ifndef MOONLOOP_CPU_STRETCH
#define MOONLOOP_CPU_STRETCH 1
#endif

#define MS           ML_NS_PER_MS
#define ACCOUNTS_MAX 64

struct player {
    struct world *world;
    struct ml_cpu_account account;
    struct ml_slice slice;
    int64_t slice_ns;
    int left;         /* slices to run */
    int64_t asked_ns; /* when it began to wait */
    int64_t late_ns;  /* the longest wait */
    int taken;
};

struct world {
    struct ml_clock_fake clock;
    struct ml_loop *loop;
    struct ml_slices *slices;
    struct player players[ACCOUNTS_MAX];
    size_t count;
    int64_t used_ns;
    int64_t without_loop_ns; /* script code since the loop turned last */
    int64_t stretch_max_ns;  /* the most of it */
    struct ml_task watch;
    struct player *ticker;
    struct ml_timer tick;
    struct ml_task tick_tasks[2]; /* one defers the other, which asks for the slice */
    bool by_a_task;
    int64_t tick_due_ns;
    int64_t tick_late_ns; /* the longest from when a tick was due until its slice */
};

static void ask(struct player *player)
{
    struct world *world = player->world;
    if (ml_slice_waits(&player->slice) || player->left == 0)
        return;
    player->asked_ns = ml_clock_monotonic(&world->clock.clock);
    ml_slice_wait(&player->slice, &player->account);
}

static void spend(struct player *player, int64_t ns)
{
    struct world *world = player->world;
    ml_clock_fake_advance(&world->clock, ns);
    ml_cpu_account_charge(&player->account, ns * MOONLOOP_CPU_STRETCH);
    world->used_ns += ns;
    world->without_loop_ns += ns;
    world->stretch_max_ns = ML_MAX(world->stretch_max_ns, world->without_loop_ns);
    ml_task_defer(&world->watch, world->loop);
}

static void note_tick(struct world *world, int64_t now)
{
    world->tick_late_ns = ML_MAX(world->tick_late_ns, now - world->tick_due_ns);
    world->tick_due_ns = now + 50 * MS;
    ml_timer_start(&world->tick, 50 * MS);
}

static void run_slice(void *context)
{
    struct player *player = context;
    int64_t now = ml_clock_monotonic(&player->world->clock.clock);
    player->late_ns = ML_MAX(player->late_ns, now - player->asked_ns);
    if (player == player->world->ticker)
        note_tick(player->world, now);
    player->taken++;
    player->left--;
    spend(player, player->slice_ns);
}

static void on_idle(void *context)
{
    ask(context);
}

static void loop_turned(void *context)
{
    ((struct world *)context)->without_loop_ns = 0;
}

static struct player *add_player(struct world *world, int64_t slice_ns, int slices)
{
    struct player *player = &world->players[world->count++];
    *player = (struct player){.world = world, .slice_ns = slice_ns, .left = slices};
    ml_cpu_account_init(&player->account, world->slices, on_idle, player);
    ml_slice_init(&player->slice, run_slice, player);
    return player;
}

static void tick(void *context);
static void defer_second_task(void *context);
static void ask_for_tick(void *context);

static int set_up_with(void **state, bool metered)
{
    struct world *world = ml_new(struct world);
    ml_clock_fake_init(&world->clock, 0);
    world->loop = ml_loop_new(&world->clock.clock);
    world->slices = ml_slices_new(world->loop, metered);
    ml_task_init(&world->watch, loop_turned, world);
    ml_timer_init(&world->tick, world->loop, tick, world);
    ml_task_init(&world->tick_tasks[0], defer_second_task, world);
    ml_task_init(&world->tick_tasks[1], ask_for_tick, world);
    *state = world;
    return 0;
}

static int set_up(void **state)
{
    return set_up_with(state, true);
}

static int set_up_unmetered(void **state)
{
    return set_up_with(state, false);
}

static int tear_down(void **state)
{
    struct world *world = *state;
    for (size_t i = 0; i < world->count; i++) {
        ml_slice_cancel(&world->players[i].slice);
        ml_cpu_account_fini(&world->players[i].account);
    }
    ml_task_cancel(&world->watch);
    ml_timer_stop(&world->tick);
    ml_task_cancel(&world->tick_tasks[0]);
    ml_task_cancel(&world->tick_tasks[1]);
    ml_slices_free(world->slices);
    ml_loop_free(world->loop);
    free(world);
    return 0;
}

/* Lets the world go on for so long: from timer to timer. */
static void go_on(struct world *world, int64_t ns)
{
    int64_t end = ml_clock_monotonic(&world->clock.clock) + ns;
    for (;;) {
        ml_loop_poll_rounds(world->loop, 1);
        int64_t now = ml_clock_monotonic(&world->clock.clock);
        int64_t next = ml_loop_next(world->loop);
        if (now >= end || next == INT64_MAX)
            return;
        if (next > now)
            ml_clock_fake_advance(&world->clock, ML_MIN(next, end) - now);
    }
}

/* A bystander that ticks each 50 ms and needs next to nothing. */
static void tick(void *context)
{
    struct world *world = context;
    if (world->by_a_task)
        ml_task_defer(&world->tick_tasks[0], world->loop);
    else
        ask_for_tick(world);
}

static void defer_second_task(void *context)
{
    struct world *world = context;
    ml_task_defer(&world->tick_tasks[1], world->loop);
}

static void ask_for_tick(void *context)
{
    struct world *world = context;
    world->ticker->left = 1;
    ask(world->ticker);
}

static void start_ticker(struct world *world)
{
    world->ticker = add_player(world, MS / 20, 0);
    world->tick_due_ns = ml_clock_monotonic(&world->clock.clock);
    ml_timer_start(&world->tick, 0);
    go_on(world, ML_NS_PER_S);
}

static void test_slices_account_over_its_share_waits_until_it_is_made_good(void **state)
{
    struct world *world = *state;
    struct player *player = add_player(world, 100 * MS, 1000);
    ask(player);
    go_on(world, 100 * ML_NS_PER_S);
    assert_in_range(world->used_ns, 25 * ML_NS_PER_S, 26 * ML_NS_PER_S);
}

static void test_slices_account_below_its_share_is_not_slowed(void **state)
{
    struct world *world = *state;
    struct player *player = add_player(world, MS, 400);
    ask(player);
    go_on(world, ML_NS_PER_S);
    assert_int_equal(player->taken, 400);
    assert_int_equal(ml_clock_monotonic(&world->clock.clock), ML_NS_PER_S + 400 * MS);
}

static void test_slices_bystander_waits_for_one_slice_whoever_loops(void **state)
{
    static const int64_t slices[] = {MS, 2 * MS, 3 * MS, 11 * MS, 90 * MS, 100 * MS, 200 * MS};
    for (size_t i = 0; i < ML_COUNT(slices); i++) {
        struct world *world = *state;
        start_ticker(world);
        for (int n = 0; n < 60; n++)
            ask(add_player(world, slices[i], 1000));
        go_on(world, 60 * ML_NS_PER_S);
        assert_true(world->ticker->taken > 60 * 20 / 6);
        assert_in_range(world->ticker->late_ns, 0, 250 * MS);
        assert_in_range(world->stretch_max_ns, 0, 210 * MS);
        tear_down(state);
        set_up(state);
    }
}

/* Nobody knows of a slice that it will take long, before it has. */
static void test_slices_brief_account_whose_slices_become_long_goes_behind_the_others(void **state)
{
    struct world *world = *state;
    struct player *loader = add_player(world, MS / 20, 30);
    start_ticker(world);
    ask(loader);
    go_on(world, ML_NS_PER_S);
    loader->slice_ns = 200 * MS;
    loader->left = 10;
    ask(loader);
    go_on(world, 10 * ML_NS_PER_S);
    assert_int_equal(loader->left, 0);
    assert_in_range(world->ticker->late_ns, 0, 10 * MS); /* behind the tick, nobody waits */
    assert_in_range(world->tick_late_ns, 0, 205 * MS);
}

/* Work that a timer begins takes a few tasks until it asks for its slice. */
static void test_slices_after_a_long_slice_the_loop_turns_before_the_next(void **state)
{
    struct world *world = *state;
    world->by_a_task = true;
    start_ticker(world);
    for (int n = 0; n < 5; n++)
        ask(add_player(world, 200 * MS, 10));
    go_on(world, 20 * ML_NS_PER_S);
    assert_in_range(world->tick_late_ns, 0, 205 * MS);
}

/* A slice that an answer brought, out of turn, and one that is asked for behind it. */
static void test_slices_after_a_long_slice_out_of_turn_the_loop_turns_as_well(void **state)
{
    struct world *world = *state;
    struct player *other = add_player(world, 100 * MS, 1);
    start_ticker(world);
    go_on(world, 20 * MS);
    spend(other, 200 * MS);
    ask(other);
    go_on(world, ML_NS_PER_S);
    assert_int_equal(other->taken, 1);
    assert_in_range(world->tick_late_ns, 0, 205 * MS);
}

static void test_slices_long_slices_get_a_quarter_beside_short_ones(void **state)
{
    struct world *world = *state;
    struct player *dear = add_player(world, 100 * MS, 1000);
    for (int n = 0; n < 60; n++)
        ask(add_player(world, 2 * MS, 100000));
    ask(dear);
    go_on(world, 8 * ML_NS_PER_S); /* 60 accounts use all there is */
    assert_in_range(dear->taken, 12, 30);
}

/* Nine that take all they may, 90 ms at once, and one that asks its server again and again. */
static void test_slices_half_of_the_time_is_left_to_who_waits_for_answers(void **state)
{
    struct world *world = *state;
    start_ticker(world);
    for (int n = 0; n < 9; n++)
        ask(add_player(world, 90 * MS, 1000));
    int64_t before_ns = world->used_ns;
    go_on(world, 10 * ML_NS_PER_S);
    assert_in_range(world->used_ns - before_ns, 4 * ML_NS_PER_S, 5200 * MS);
    tear_down(state);
    set_up(state);
    world = *state;
    for (int n = 0; n < 9; n++) /* nobody waits */
        ask(add_player(world, 90 * MS, 1000));
    go_on(world, 4 * ML_NS_PER_S);
    assert_in_range(world->used_ns, 3900 * MS, 4100 * MS);
}

static void test_slices_end_a_round_after_10_ms(void **state)
{
    struct world *world = *state;
    for (int n = 0; n < 30; n++)
        ask(add_player(world, 3 * MS, 3));
    go_on(world, ML_NS_PER_S);
    for (int n = 0; n < 30; n++)
        assert_int_equal(world->players[n].taken, 3);
    assert_in_range(world->stretch_max_ns, 0, 12 * MS);
}

static void test_slices_of_accounts_alternate(void **state)
{
    struct world *world = *state;
    struct player *first = add_player(world, MS, 10);
    struct player *second = add_player(world, MS, 10);
    spend(first, MS); /* they are known to be brief */
    spend(second, MS);
    ask(first);
    ask(second);
    while (first->taken + second->taken < 20) {
        ml_loop_poll_rounds(world->loop, 1);
        assert_in_range(first->taken - second->taken + 1, 0, 2);
    }
}

static void test_slices_answers_go_on_at_once_unless_somebody_suffers(void **state)
{
    struct world *world = *state;
    struct player *player = add_player(world, MS / 10, 20);
    assert_true(ml_cpu_account_may_go_on(NULL));
    assert_false(
        ml_cpu_account_may_go_on(&player->account)); /* nobody knows what its slices take */
    ask(player);
    go_on(world, ML_NS_PER_S);
    assert_true(ml_cpu_account_may_go_on(&player->account));
    for (int i = 0; i < 10; i++)
        spend(player, MS);
    assert_false(ml_cpu_account_may_go_on(&player->account)); /* 10 ms without a turn of the loop */
    ml_loop_poll_rounds(world->loop, 2);
    assert_true(ml_cpu_account_may_go_on(&player->account));
    for (int i = 0; i < 800; i++)
        spend(player, MS);
    ml_loop_poll_rounds(world->loop, 2);
    assert_false(ml_cpu_account_may_go_on(&player->account)); /* it owes */
}

static void test_slices_functions_at_changes_are_asked_up_to_40_ms_at_once(void **state)
{
    struct world *world = *state;
    struct player *player = add_player(world, MS, 0);
    int asked = 0;
    for (; ml_cpu_account_may_ask(&player->account, 10 * MS); asked++)
        spend(player, 9 * MS);
    assert_in_range(asked, 3, 4);
    ml_loop_poll_rounds(world->loop, 2);
    assert_true(ml_cpu_account_may_ask(&player->account, 10 * MS));
    spend(player, 600 * MS);
    ml_loop_poll_rounds(world->loop, 2);
    assert_false(ml_cpu_account_may_ask(&player->account, MS)); /* it owes */
}

static void test_slices_canceled_one_does_not_come_and_the_account_is_idle(void **state)
{
    struct world *world = *state;
    struct player *player = add_player(world, MS, 1);
    struct ml_slice other;
    ml_slice_init(&other, run_slice, player);
    ml_slice_wait(&other, &player->account);
    ml_slice_cancel(&other);
    go_on(world, ML_NS_PER_S); /* on_idle asks for the one that is left */
    assert_int_equal(player->taken, 1);
}

struct ender {
    struct ml_cpu_account account;
    struct ml_slice slice;
    bool *ended;
};

static void end_inside(void *context)
{
    struct ender *ender = context;
    *ender->ended = true;
    ml_cpu_account_fini(&ender->account);
    free(ender);
}

static void test_slices_account_may_end_inside_of_its_slice(void **state)
{
    struct world *world = *state;
    struct ender *ender = ml_new(struct ender);
    bool ended = false;
    ender->ended = &ended;
    ml_cpu_account_init(&ender->account, world->slices, on_idle, ender);
    ml_slice_init(&ender->slice, end_inside, ender);
    ml_slice_wait(&ender->slice, &ender->account);
    go_on(world, ML_NS_PER_S);
    assert_true(ended);
}

static void test_slices_unmetered_ones_come_in_order_and_cost_nothing(void **state)
{
    struct world *world = *state;
    for (int n = 0; n < 10; n++)
        ask(add_player(world, 0, 1000));
    struct player *player = &world->players[0];
    ml_cpu_account_charge(&player->account, 3600 * ML_NS_PER_S);
    assert_true(ml_cpu_account_may_go_on(&player->account));
    assert_true(ml_cpu_account_may_ask(&player->account, ML_NS_PER_S));
    ml_loop_poll(world->loop);
    for (int n = 0; n < 10; n++)
        assert_int_equal(world->players[n].taken, 1000);
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, set_up, tear_down)

int main(void)
{
    const struct CMUnitTest tests[] = {
        TEST(test_slices_account_over_its_share_waits_until_it_is_made_good),
        TEST(test_slices_account_below_its_share_is_not_slowed),
        TEST(test_slices_bystander_waits_for_one_slice_whoever_loops),
        TEST(test_slices_brief_account_whose_slices_become_long_goes_behind_the_others),
        TEST(test_slices_after_a_long_slice_the_loop_turns_before_the_next),
        TEST(test_slices_after_a_long_slice_out_of_turn_the_loop_turns_as_well),
        TEST(test_slices_long_slices_get_a_quarter_beside_short_ones),
        TEST(test_slices_half_of_the_time_is_left_to_who_waits_for_answers),
        TEST(test_slices_end_a_round_after_10_ms),
        TEST(test_slices_of_accounts_alternate),
        TEST(test_slices_answers_go_on_at_once_unless_somebody_suffers),
        TEST(test_slices_functions_at_changes_are_asked_up_to_40_ms_at_once),
        TEST(test_slices_canceled_one_does_not_come_and_the_account_is_idle),
        TEST(test_slices_account_may_end_inside_of_its_slice),
        cmocka_unit_test_setup_teardown(test_slices_unmetered_ones_come_in_order_and_cost_nothing,
                                        set_up_unmetered, tear_down),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
