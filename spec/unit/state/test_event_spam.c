#include "unit.h"

#include "state/recorder.h"

#include "base/clock.h"

#include <stdio.h>

static int allowed(struct ml_event_recent *spam, const char *object, int tries, int64_t now_ns)
{
    int count = 0;
    for (int i = 0; i < tries; i++)
        count += ml_event_spam_allows(spam, ml_str_of(object), now_ns);
    return count;
}

static void test_event_spam_object_has_25_and_gets_one_each_5_minutes(void **state)
{
    (void)state;
    struct ml_event_recent spam;
    ml_event_recent_init(&spam);
    assert_int_equal(allowed(&spam, "a", 30, 0), 25);
    assert_int_equal(allowed(&spam, "b", 30, 0), 25); /* each has its own */
    assert_int_equal(allowed(&spam, "a", 5, 299 * ML_NS_PER_S), 0);
    assert_int_equal(allowed(&spam, "a", 5, 301 * ML_NS_PER_S), 1);
    assert_int_equal(allowed(&spam, "a", 5, 901 * ML_NS_PER_S), 2);
    assert_int_equal(allowed(&spam, "a", 50, 86400 * ML_NS_PER_S), 25); /* never more */
    ml_event_recent_fini(&spam);
}

static void test_event_spam_forgets_who_was_quiet_longest(void **state)
{
    (void)state;
    struct ml_event_recent spam;
    ml_event_recent_init(&spam);
    assert_int_equal(allowed(&spam, "quiet", 30, 0), 25);
    assert_int_equal(allowed(&spam, "loud", 30, 0), 25);
    for (int i = 0; i < ML_EVENT_SPAM_OBJECTS - 1; i++) {
        char name[16];
        snprintf(name, sizeof name, "o%d", i);
        assert_int_equal(allowed(&spam, name, 1, 0), 1);
        assert_int_equal(allowed(&spam, "loud", 1, 0), 0);
    }
    assert_int_equal(spam.by_key.len, ML_EVENT_SPAM_OBJECTS);
    assert_int_equal(allowed(&spam, "quiet", 30, 0), 25);
    ml_event_recent_fini(&spam);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_event_spam_object_has_25_and_gets_one_each_5_minutes),
        cmocka_unit_test(test_event_spam_forgets_who_was_quiet_longest),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
