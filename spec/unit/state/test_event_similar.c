#include "unit.h"

#include "base/clock.h"
#include "state/recorder.h"

#include <stdio.h>

#define MINUTE_NS (60 * ML_NS_PER_S)

struct similar_world {
    struct ml_event_recent similar;
    int64_t now_ns;
};

static int setup(void **state)
{
    struct similar_world *self = ml_new(struct similar_world);
    ml_event_recent_init(&self->similar);
    *state = self;
    return 0;
}

static int teardown(void **state)
{
    struct similar_world *self = *state;
    ml_event_recent_fini(&self->similar);
    free(self);
    return 0;
}

/* How many of the notes `from` … `to` - 1 of this reason are combined. */
static int combined(struct similar_world *self, const char *reason, int from, int to)
{
    int count = 0;
    for (int i = from; i < to; i++) {
        char note[32];
        snprintf(note, sizeof note, "note %d", i);
        count += ml_event_similar_combines(&self->similar, ml_str_of(reason), ml_str_of(note),
                                           self->now_ns);
    }
    return count;
}

static void test_event_similar_combines_from_the_tenth_note_on(void **state)
{
    struct similar_world *self = *state;
    assert_int_equal(combined(self, "a", 0, 9), 0);
    assert_int_equal(combined(self, "a", 9, 20), 11);
    assert_int_equal(combined(self, "b", 0, 9), 0);
}

static void test_event_similar_same_note_is_none_of_too_many(void **state)
{
    struct similar_world *self = *state;
    for (int i = 0; i < 50; i++)
        assert_int_equal(combined(self, "a", 0, 9), 0);
    assert_int_equal(combined(self, "a", 9, 10), 1);
    assert_int_equal(combined(self, "a", 0, 9), 0);
}

static void test_event_similar_forgets_after_ten_quiet_minutes(void **state)
{
    struct similar_world *self = *state;
    combined(self, "a", 0, 20);
    self->now_ns += 10 * MINUTE_NS;
    assert_int_equal(combined(self, "a", 20, 21), 1);
    self->now_ns += 10 * MINUTE_NS + 1;
    assert_int_equal(combined(self, "a", 21, 30), 0);
}

static void test_event_similar_remembers_a_bounded_number(void **state)
{
    struct similar_world *self = *state;
    for (int i = 0; i < 3 * ML_EVENT_SIMILAR_MAX; i++) {
        char reason[32];
        snprintf(reason, sizeof reason, "r%d", i);
        combined(self, reason, 0, 1);
        combined(self, "kept", 0, 12);
    }
    assert_int_equal(self->similar.by_key.len, ML_EVENT_SIMILAR_MAX);
    assert_int_equal(combined(self, "kept", 20, 21), 1);
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, setup, teardown)

int main(void)
{
    const struct CMUnitTest tests[] = {
        TEST(test_event_similar_combines_from_the_tenth_note_on),
        TEST(test_event_similar_same_note_is_none_of_too_many),
        TEST(test_event_similar_forgets_after_ten_quiet_minutes),
        TEST(test_event_similar_remembers_a_bounded_number),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
