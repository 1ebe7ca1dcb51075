#include "unit.h"

#include "base/heap.h"
#include "base/random.h"

static void test_heap_gives_the_smallest_first_and_equals_in_order(void **state)
{
    (void)state;
    enum { COUNT = 500 };
    static struct ml_heap_node nodes[COUNT];
    struct ml_heap heap = {0};
    struct ml_random random;
    ml_random_init(&random, 42);
    for (int i = 0; i < COUNT; i++)
        ml_heap_insert(&heap, &nodes[i], ml_random_u64(&random) % 50);
    uint64_t last_key = 0, last_sequence = 0;
    for (int i = 0; i < COUNT; i++) {
        struct ml_heap_node *top = ml_heap_top(&heap);
        assert_true(top->key > last_key ||
                    (top->key == last_key && top->sequence >= last_sequence));
        last_key = top->key;
        last_sequence = top->sequence;
        ml_heap_remove(&heap, top);
        assert_false(ml_heap_has(top));
    }
    assert_null(ml_heap_top(&heap));
    ml_heap_fini(&heap);
}

static void test_heap_removes_from_the_middle(void **state)
{
    (void)state;
    enum { COUNT = 64 };
    static struct ml_heap_node nodes[COUNT];
    struct ml_heap heap = {0};
    for (uint64_t i = 0; i < COUNT; i++)
        ml_heap_insert(&heap, &nodes[i], (i * 37) % COUNT);
    for (int i = 0; i < COUNT; i += 2)
        ml_heap_remove(&heap, &nodes[i]);
    ml_heap_remove(&heap, &nodes[0]); /* not in it: nothing happens */
    uint64_t last = 0;
    for (int i = 0; i < COUNT / 2; i++) {
        struct ml_heap_node *top = ml_heap_top(&heap);
        assert_true((top - nodes) % 2 == 1);
        assert_true(top->key >= last);
        last = top->key;
        ml_heap_remove(&heap, top);
    }
    ml_heap_fini(&heap);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_heap_gives_the_smallest_first_and_equals_in_order),
        cmocka_unit_test(test_heap_removes_from_the_middle),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
