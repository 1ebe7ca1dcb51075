#include "unit.h"

#include "base/map.h"

#include <stdio.h>

enum { MANY = 5000 };

struct thing {
    char key[8];
};

static struct ml_str key_of(const void *entry)
{
    return ml_str_of(((const struct thing *)entry)->key);
}

static struct thing *things(void)
{
    static struct thing list[MANY];
    for (int i = 0; i < MANY; i++)
        snprintf(list[i].key, sizeof list[i].key, "k%d", i);
    return list;
}

static void test_set_holds_many_and_forgets_removed(void **state)
{
    (void)state;
    struct thing *list = things();
    struct ml_set set = {.key = key_of};
    assert_null(ml_set_get(&set, ML_STR("k0")));
    assert_null(ml_set_remove(&set, ML_STR("k0")));
    for (int i = 0; i < MANY; i++)
        assert_null(ml_set_put(&set, &list[i]));
    for (int i = 0; i < MANY; i += 2)
        assert_ptr_equal(ml_set_remove(&set, key_of(&list[i])), &list[i]);
    assert_int_equal(set.len, MANY / 2);
    for (int i = 0; i < MANY; i++)
        assert_ptr_equal(ml_set_get(&set, key_of(&list[i])), i % 2 ? &list[i] : NULL);
    ml_set_fini(&set);
    assert_int_equal(set.len, 0);
}

/* With any seed: the order of a table must be the same in each process. */
static void test_set_keeps_the_order_under_any_seed(void **state)
{
    (void)state;
    struct thing *list = things();
    for (uint64_t seed = 0; seed < 5; seed++) {
        struct ml_set set = {.key = key_of};
        ml_hash_seed(seed, seed * 7);
        for (int i = 0; i < MANY; i++) {
            ml_set_put(&set, &list[i]);
            if (i % 3 == 2) /* and some go again */
                ml_set_remove(&set, key_of(&list[i - 1]));
        }
        int i = 0;
        ml_set_each (&set, cursor, entry) {
            i += i % 3 == 1 && i + 1 < MANY;
            assert_ptr_equal(entry, &list[i++]);
        }
        assert_int_equal(i, MANY);
        ml_set_fini(&set);
    }
}

static void test_set_put_gives_back_the_one_with_the_same_key(void **state)
{
    (void)state;
    struct thing first = {"same"}, second = {"same"};
    struct ml_set set = {.key = key_of};
    assert_null(ml_set_put(&set, &first));
    assert_ptr_equal(ml_set_put(&set, &second), &first);
    size_t cursor = 0;
    assert_ptr_equal(ml_set_next(&set, &cursor), &second);
    assert_null(ml_set_next(&set, &cursor));
    ml_set_fini(&set);
}

static void test_set_steps_through_all_while_each_is_removed(void **state)
{
    (void)state;
    struct thing *list = things();
    struct ml_set set = {.key = key_of};
    for (int i = 0; i < MANY; i++)
        ml_set_put(&set, &list[i]);
    int seen = 0;
    ml_set_each (&set, cursor, entry) {
        assert_ptr_equal(ml_set_remove(&set, key_of(entry)), entry);
        seen++;
    }
    assert_int_equal(seen, MANY);
    assert_int_equal(set.len, 0);
    ml_set_fini(&set);
}

static void test_set_reuses_the_room_of_removed_entries(void **state)
{
    (void)state;
    struct thing thing;
    struct ml_set set = {.key = key_of};
    for (int i = 0; i < 100000; i++) {
        snprintf(thing.key, sizeof thing.key, "%d", i);
        ml_set_put(&set, &thing);
        ml_set_remove(&set, key_of(&thing));
    }
    assert_true(set.capacity <= 16);
    ml_set_fini(&set);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_set_holds_many_and_forgets_removed),
        cmocka_unit_test(test_set_keeps_the_order_under_any_seed),
        cmocka_unit_test(test_set_put_gives_back_the_one_with_the_same_key),
        cmocka_unit_test(test_set_steps_through_all_while_each_is_removed),
        cmocka_unit_test(test_set_reuses_the_room_of_removed_entries),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
