#include "unit.h"

#include "base/map.h"

#include <stdio.h>

static void test_map_holds_many_and_forgets_removed(void **state)
{
    (void)state;
    static char keys[1000][8];
    struct ml_map map = {0};
    for (int i = 0; i < 1000; i++) {
        snprintf(keys[i], sizeof keys[i], "k%d", i);
        assert_null(ml_map_put(&map, ml_str_of(keys[i]), keys[i]));
    }
    for (int i = 0; i < 1000; i += 2)
        assert_ptr_equal(ml_map_remove(&map, ml_str_of(keys[i])), keys[i]);
    assert_int_equal(map.len, 500);
    for (int i = 0; i < 1000; i++)
        assert_ptr_equal(ml_map_get(&map, ml_str_of(keys[i])), i % 2 ? keys[i] : NULL);
    ml_map_fini(&map);
}

static void test_map_put_replaces_key_and_value(void **state)
{
    (void)state;
    char first[] = "same", second[] = "same";
    struct ml_map map = {0};
    ml_map_put(&map, ml_str_of(first), first);
    assert_ptr_equal(ml_map_put(&map, ml_str_of(second), second), first);
    size_t cursor = 0;
    struct ml_str key;
    assert_ptr_equal(ml_map_next(&map, &cursor, &key), second);
    assert_ptr_equal(key.ptr, second);
    assert_null(ml_map_next(&map, &cursor, &key));
    ml_map_fini(&map);
}

static void test_map_reuses_the_room_of_removed_entries(void **state)
{
    (void)state;
    struct ml_map map = {0};
    char key[16];
    for (int i = 0; i < 100000; i++) {
        int len = snprintf(key, sizeof key, "%d", i);
        ml_map_put(&map, (struct ml_str){key, (size_t)len}, key);
        ml_map_remove(&map, (struct ml_str){key, (size_t)len});
    }
    assert_true(map.capacity <= 16);
    ml_map_fini(&map);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_map_holds_many_and_forgets_removed),
        cmocka_unit_test(test_map_put_replaces_key_and_value),
        cmocka_unit_test(test_map_reuses_the_room_of_removed_entries),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
