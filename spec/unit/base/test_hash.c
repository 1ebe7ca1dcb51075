#include "unit.h"

#include "base/map.h"

#include <stdio.h>
#include <sys/wait.h>
#include <unistd.h>

/* The hash of a text in a process that has hashed nothing before. Comes first: this process has
 * hashed nothing, too. */
static uint64_t hash_of_another_process(void)
{
    int ends[2];
    uint64_t hash = 0;
    assert_int_equal(pipe(ends), 0);
    pid_t pid = fork();
    if (pid == 0) {
        hash = ml_hash(ML_STR("default/web"));
        _exit(write(ends[1], &hash, sizeof hash) == sizeof hash ? 0 : 1);
    }
    assert_int_equal(read(ends[0], &hash, sizeof hash), sizeof hash);
    assert_int_equal(waitpid(pid, NULL, 0), pid);
    close(ends[0]);
    close(ends[1]);
    return hash;
}

static void test_hash_is_another_in_each_process(void **state)
{
    (void)state;
    uint64_t first = hash_of_another_process();
    assert_true(hash_of_another_process() != first);
}

/* Key 00 … 0f, text 00 01 02 …, as in the paper's appendix, with one and three rounds. */
static void test_hash_is_siphash_1_3(void **state)
{
    (void)state;
    static const struct {
        size_t len;
        uint64_t want;
    } rows[] = {
        {0, UINT64_C(0xabac0158050fc4dc)},  {1, UINT64_C(0xc9f49bf37d57ca93)},
        {7, UINT64_C(0xd3927d989bb11140)},  {8, UINT64_C(0x369095118d299a8e)},
        {15, UINT64_C(0xd320d86d2a519956)}, {63, UINT64_C(0x9d199062b7bbb3a8)},
    };
    char text[64];
    for (size_t i = 0; i < sizeof text; i++)
        text[i] = (char)i;
    ml_hash_seed(UINT64_C(0x0706050403020100), UINT64_C(0x0f0e0d0c0b0a0908));
    for (size_t i = 0; i < ML_COUNT(rows); i++)
        assert_true(ml_hash((struct ml_str){text, rows[i].len}) == rows[i].want);
}

static void test_hash_differs_by_seed(void **state)
{
    (void)state;
    ml_hash_seed(1, 2);
    uint64_t first = ml_hash(ML_STR("default/web"));
    ml_hash_seed(1, 3);
    assert_true(ml_hash(ML_STR("default/web")) != first);
}

/* The longest way to a free slot: what a lookup of an absent key costs. */
static size_t longest_run(const struct ml_map *map)
{
    size_t longest = 0, run = 0;
    for (size_t i = 0; i < 2 * map->capacity; i++) {
        run = map->slots[i % map->capacity].key ? run + 1 : 0;
        longest = ML_MAX(longest, run);
    }
    return longest;
}

/* A plain sum or a table of known keys would be a list under one seed or another. */
static void test_map_is_no_list_under_any_seed(void **state)
{
    (void)state;
    enum { KEYS = 40000 };
    static char keys[KEYS][16];
    for (int i = 0; i < KEYS; i++)
        snprintf(keys[i], sizeof keys[i], "%08x", (unsigned)i << 14);
    for (uint64_t seed = 0; seed < 5; seed++) {
        struct ml_map map = {0};
        ml_hash_seed(seed, seed);
        for (int i = 0; i < KEYS; i++)
            ml_map_put(&map, ml_str_of(keys[i]), keys[i]);
        assert_true(longest_run(&map) < 300);
        for (int i = 0; i < KEYS; i++)
            assert_ptr_equal(ml_map_get(&map, ml_str_of(keys[i])), keys[i]);
        ml_map_fini(&map);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_hash_is_another_in_each_process), /* before any seed is set */
        cmocka_unit_test(test_hash_is_siphash_1_3),
        cmocka_unit_test(test_hash_differs_by_seed),
        cmocka_unit_test(test_map_is_no_list_under_any_seed),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
