#include "unit.h"

#include "state/store.h"

#include <stdio.h>

static struct ml_object *object(const char *name, const char *uid, int rv, const char *owner_uid)
{
    ML_AUTO_FREE char *owners =
        owner_uid
            ? ml_asprintf(",\"ownerReferences\":[{\"apiVersion\":\"x.dev/v1\",\"kind\":\"At\","
                          "\"name\":\"o\",\"uid\":\"%s\",\"controller\":true}]",
                          owner_uid)
            : ml_strdup("");
    ML_AUTO_FREE char *json = ml_asprintf(
        "{\"apiVersion\":\"v1\",\"kind\":\"Pod\",\"metadata\":{\"name\":\"%s\","
        "\"namespace\":\"d\",\"uid\":\"%s\",\"resourceVersion\":\"%d\"%s}}",
        name, uid, rv, owners);
    struct ml_dict *dict = ml_dict_new();
    struct ml_object *made = NULL;
    struct ml_err err;
    assert_int_equal(ml_object_new(dict, NULL, NULL, ml_str_of(json), &made, &err), 0);
    ml_dict_unref(dict);
    return made;
}

/* Puts and gives its own reference away, so that only the store holds the object. */
static void put(struct ml_store *store, struct ml_object *made)
{
    ml_object_unref(ml_store_put(store, made));
    ml_object_unref(made);
}

static size_t count_owned(const struct ml_store *store, const char *uid)
{
    size_t count = 0, cursor = 0;
    while (ml_store_next_owned(store, ml_str_of(uid), &cursor))
        count++;
    return count;
}

static void test_store_replaced_object_goes_back_to_the_caller(void **state)
{
    (void)state;
    struct ml_store *store = ml_store_new();
    put(store, object("a", "u1", 1, NULL));
    struct ml_object *newer = object("a", "u1", 2, NULL);
    struct ml_object *former = ml_store_put(store, newer);
    assert_str_eq(ml_object_rv(former), "1");
    assert_ptr_equal(ml_store_get(store, ML_STR("d/a")), newer);
    assert_int_equal(ml_store_len(store), 1);
    assert_int_equal(ml_store_bytes(store), ml_object_bytes(newer));
    ml_object_unref(former);
    ml_object_unref(newer);
    ml_store_free(store);
}

static void test_store_put_of_what_it_holds_changes_nothing(void **state)
{
    (void)state;
    struct ml_store *store = ml_store_new();
    struct ml_object *same = object("a", "u1", 1, "owner");
    put(store, ml_object_ref(same));
    assert_ptr_equal(ml_store_put(store, same), same);
    ml_object_unref(same);
    assert_int_equal(ml_store_len(store), 1);
    assert_int_equal(count_owned(store, "owner"), 1);
    assert_int_equal(ml_store_bytes(store), ml_object_bytes(same));
    ml_object_unref(same);
    ml_store_free(store);
}

static void test_store_removed_object_is_found_no_more(void **state)
{
    (void)state;
    struct ml_store *store = ml_store_new();
    put(store, object("a", "u1", 1, "owner"));
    assert_null(ml_store_remove(store, ML_STR("d/b")));
    struct ml_object *former = ml_store_remove(store, ML_STR("d/a"));
    assert_str_eq(ml_object_uid(former), "u1");
    assert_null(ml_store_get(store, ML_STR("d/a")));
    assert_int_equal(ml_store_len(store), 0);
    assert_int_equal(ml_store_bytes(store), 0);
    assert_int_equal(count_owned(store, "owner"), 0);
    ml_object_unref(former);
    ml_store_free(store);
}

/* The index keys borrow their bytes from an object; each of these takes the lender away. */
static void test_store_index_outlives_the_object_it_was_made_for(void **state)
{
    (void)state;
    struct ml_store *store = ml_store_new();
    put(store, object("a", "u1", 1, "owner"));
    put(store, object("b", "u2", 2, "owner"));
    put(store, object("c", "u3", 3, "owner"));
    put(store, object("a", "u1", 4, "owner")); /* replaced under the same owner */
    assert_int_equal(count_owned(store, "owner"), 3);
    put(store, object("b", "u2", 5, "another")); /* adopted */
    put(store, object("c", "u3", 6, NULL));      /* orphaned */
    assert_int_equal(count_owned(store, "owner"), 1);
    assert_int_equal(count_owned(store, "another"), 1);
    ml_object_unref(ml_store_remove(store, ML_STR("d/a")));
    assert_int_equal(count_owned(store, "owner"), 0);
    ml_store_free(store);
}

/* Puts and removes at random beside a plain array; the index must agree at every step. */
static void test_store_agrees_with_a_plain_array_after_random_changes(void **state)
{
    (void)state;
    enum { KEYS = 40, OWNERS = 4, STEPS = 4000 };
    static const char *const owners[OWNERS] = {"o0", "o1", "o2", NULL};
    int owner_of[KEYS];
    struct ml_store *store = ml_store_new();
    uint64_t seed = 7;
    for (size_t i = 0; i < KEYS; i++)
        owner_of[i] = -1;
    for (int step = 0; step < STEPS; step++) {
        seed = seed * UINT64_C(6364136223846793005) + 1442695040888963407;
        size_t key = (seed >> 33) % KEYS;
        int owner = (int)((seed >> 50) % (OWNERS + 1));
        char name[8];
        snprintf(name, sizeof name, "p%zu", key);
        ML_AUTO_FREE char *full = ml_asprintf("d/%s", name);
        if (owner == OWNERS)
            ml_object_unref(ml_store_remove(store, ml_str_of(full)));
        else
            put(store, object(name, name, step, owners[owner]));
        owner_of[key] = owner == OWNERS ? -1 : owner;
        size_t want = 0, all = 0;
        int looked_at = step % (OWNERS - 1);
        for (size_t i = 0; i < KEYS; i++) {
            want += owner_of[i] == looked_at;
            all += owner_of[i] >= 0;
        }
        assert_int_equal(count_owned(store, owners[looked_at]), want);
        assert_int_equal(ml_store_len(store), all);
    }
    ml_store_free(store);
}

static void test_store_steps_through_every_object_once(void **state)
{
    (void)state;
    struct ml_store *store = ml_store_new();
    unsigned seen = 0;
    for (int i = 0; i < 20; i++) {
        ML_AUTO_FREE char *name = ml_asprintf("%d", i);
        put(store, object(name, name, i + 1, NULL));
    }
    size_t cursor = 0;
    for (struct ml_object *found; (found = ml_store_next(store, &cursor));) {
        uint64_t number;
        assert_true(ml_str_to_u64(ml_object_name(found), &number));
        unsigned bit = 1u << number;
        assert_false(seen & bit);
        seen |= bit;
    }
    assert_int_equal(seen, (1u << 20) - 1);
    ml_store_free(store);
}

static struct ml_object *next_owned(const struct ml_store *store, const char *uid, size_t *cursor)
{
    return ml_store_next_owned(store, ml_str_of(uid), cursor);
}

/* Two walks over the same dependents, and one over another owner's, do not disturb each other. */
static void test_store_walks_of_many_dependents_may_interleave(void **state)
{
    (void)state;
    enum { COUNT = 2000 };
    struct ml_store *store = ml_store_new();
    for (int i = 0; i < COUNT; i++) {
        ML_AUTO_FREE char *name = ml_asprintf("p%d", i);
        put(store, object(name, name, i + 1, i % 4 ? "many" : "few"));
    }
    size_t fast = 0, slow = 0, few = 0, fast_count = 0, slow_count = 0;
    while (next_owned(store, "many", &fast)) {
        fast_count++;
        if (fast_count % 2)
            slow_count += next_owned(store, "many", &slow) != NULL;
        if (fast_count % 3 == 0)
            assert_non_null(next_owned(store, "few", &few));
    }
    while (next_owned(store, "many", &slow))
        slow_count++;
    assert_int_equal(fast_count, COUNT * 3 / 4);
    assert_int_equal(slow_count, COUNT * 3 / 4);
    ml_store_free(store);
}

/* A cursor whose object went in between ends the walk; it is never looked into. */
static void test_store_walk_whose_object_went_ends(void **state)
{
    (void)state;
    struct ml_store *store = ml_store_new();
    put(store, object("a", "ua", 1, "owner"));
    put(store, object("b", "ub", 2, "owner"));
    size_t cursor = 0;
    ML_AUTO_FREE char *key = ml_str_dup(ml_object_key(next_owned(store, "owner", &cursor)));
    ml_object_unref(ml_store_remove(store, ml_str_of(key)));
    assert_null(next_owned(store, "owner", &cursor));
    assert_int_equal(count_owned(store, "owner"), 1);
    ml_store_free(store);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_store_replaced_object_goes_back_to_the_caller),
        cmocka_unit_test(test_store_put_of_what_it_holds_changes_nothing),
        cmocka_unit_test(test_store_removed_object_is_found_no_more),
        cmocka_unit_test(test_store_index_outlives_the_object_it_was_made_for),
        cmocka_unit_test(test_store_agrees_with_a_plain_array_after_random_changes),
        cmocka_unit_test(test_store_steps_through_every_object_once),
        cmocka_unit_test(test_store_walks_of_many_dependents_may_interleave),
        cmocka_unit_test(test_store_walk_whose_object_went_ends),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
