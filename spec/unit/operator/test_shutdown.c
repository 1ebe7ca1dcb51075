#include "unit.h"

#include "operator/shutdown.h"

struct end {
    struct ml_clock_fake clock;
    struct ml_loop *loop;
    struct ml_shutdown shutdown;
    char steps[16]; /* a letter for each that began */
    int over;
    bool clean;
    bool at_once; /* each step is done in the next round */
    struct ml_task step_done;
};

static void on_begin(void *context, enum ml_shutdown_step step)
{
    struct end *self = context;
    self->steps[strlen(self->steps)] = "wbel"[step];
    if (self->at_once)
        ml_task_defer(&self->step_done, self->loop);
}

static void on_step_done(void *context)
{
    struct end *self = context;
    ml_shutdown_done(&self->shutdown, self->shutdown.step);
}

static void on_over(void *context, bool clean)
{
    struct end *self = context;
    self->over++;
    self->clean = clean;
}

static const struct ml_shutdown_handler handler = {on_begin, on_over};

static int setup(void **state)
{
    struct end *self = ml_new(struct end);
    ml_clock_fake_init(&self->clock, 0);
    self->loop = ml_loop_new(&self->clock.clock);
    ml_task_init(&self->step_done, on_step_done, self);
    ml_shutdown_init(&self->shutdown, self->loop, &handler, self);
    *state = self;
    return 0;
}

static int teardown(void **state)
{
    struct end *self = *state;
    ml_shutdown_fini(&self->shutdown);
    ml_loop_free(self->loop);
    free(self);
    return 0;
}

static void pass(struct end *self, int64_t ms)
{
    ml_clock_fake_advance(&self->clock, ms * ML_NS_PER_MS);
    ml_loop_poll(self->loop);
}

static void test_shutdown_goes_step_by_step_and_skips_the_boundary_when_work_ends(void **state)
{
    struct end *self = *state;
    ml_shutdown_start(&self->shutdown, 25 * ML_NS_PER_S);
    pass(self, 3000);
    assert_string_equal(self->steps, "w");
    ml_shutdown_done(&self->shutdown, ML_SHUTDOWN_WORK);
    assert_string_equal(self->steps, "we");
    ml_shutdown_done(&self->shutdown, ML_SHUTDOWN_EVENTS);
    assert_string_equal(self->steps, "wel");
    assert_int_equal(self->over, 0);
    ml_shutdown_done(&self->shutdown, ML_SHUTDOWN_LEASE);
    assert_int_equal(self->over, 1);
    assert_true(self->clean);
    pass(self, 60000);
    assert_int_equal(self->over, 1);
}

static void test_shutdown_with_nothing_to_do_is_over_at_once(void **state)
{
    struct end *self = *state;
    self->at_once = true;
    ml_shutdown_start(&self->shutdown, 25 * ML_NS_PER_S);
    assert_int_equal(self->over, 0); /* not inside the call that started it */
    pass(self, 0);
    assert_string_equal(self->steps, "wel");
    assert_int_equal(self->over, 1);
    assert_true(self->clean);
}

static void test_shutdown_writes_no_more_after_four_fifths(void **state)
{
    struct end *self = *state;
    ml_shutdown_start(&self->shutdown, 25 * ML_NS_PER_S);
    pass(self, 19999);
    assert_string_equal(self->steps, "w");
    pass(self, 1);
    assert_string_equal(self->steps, "wb");
    ml_shutdown_done(&self->shutdown, ML_SHUTDOWN_WORK); /* its last write was answered */
    assert_string_equal(self->steps, "wbe");
    ml_shutdown_done(&self->shutdown, ML_SHUTDOWN_EVENTS);
    assert_string_equal(self->steps, "wbel");
}

static void test_shutdown_keeps_the_lease_when_work_does_not_end(void **state)
{
    struct end *self = *state;
    ml_shutdown_start(&self->shutdown, 25 * ML_NS_PER_S);
    pass(self, 20000);
    pass(self, 2000);
    assert_string_equal(self->steps, "wbe");
    ml_shutdown_done(&self->shutdown, ML_SHUTDOWN_WORK); /* too late */
    assert_string_equal(self->steps, "wbe");
    pass(self, 2000);
    assert_string_equal(self->steps, "wbe");
    assert_int_equal(self->over, 1);
    assert_false(self->clean);
}

static void test_shutdown_ends_in_its_time_whatever_hangs(void **state)
{
    struct end *self = *state;
    ml_shutdown_start(&self->shutdown, ML_NS_PER_S);
    ml_shutdown_done(&self->shutdown, ML_SHUTDOWN_WORK);
    pass(self, 960);
    assert_string_equal(self->steps, "wel");
    pass(self, 40);
    assert_int_equal(self->over, 1);
    assert_true(self->clean);
}

static void test_shutdown_skipped_is_over_at_once(void **state)
{
    struct end *self = *state;
    ml_shutdown_start(&self->shutdown, 25 * ML_NS_PER_S);
    ml_shutdown_skip(&self->shutdown);
    ml_shutdown_skip(&self->shutdown);
    assert_int_equal(self->over, 0);
    pass(self, 0);
    assert_int_equal(self->over, 1);
    assert_false(self->clean);
    ml_shutdown_done(&self->shutdown, ML_SHUTDOWN_WORK);
    pass(self, 60000);
    assert_string_equal(self->steps, "w");
    assert_int_equal(self->over, 1);
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, setup, teardown)

int main(void)
{
    const struct CMUnitTest tests[] = {
        TEST(test_shutdown_goes_step_by_step_and_skips_the_boundary_when_work_ends),
        TEST(test_shutdown_with_nothing_to_do_is_over_at_once),
        TEST(test_shutdown_writes_no_more_after_four_fifths),
        TEST(test_shutdown_keeps_the_lease_when_work_does_not_end),
        TEST(test_shutdown_ends_in_its_time_whatever_hangs),
        TEST(test_shutdown_skipped_is_over_at_once),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
