/* Sharding without requests: whose a key is, what a Lease says, who counts, and who may act. */
#include "unit.h"

#include "state/shard_group.h"

#define GROUP "moonloop"
#define S     ML_NS_PER_S

/* ---- rendezvous ---- */

/* Replicas of different versions must agree for ever. */
static void test_rendezvous_numbers_never_change(void **state)
{
    static const uint64_t members[] = {1, 2, UINT64_C(0xfedcba9876543210)};
    (void)state;
    assert_int_equal(rendezvous_key(ML_STR("cnat"), ML_STR("default/a")),
                     UINT64_C(0x6ba5469c8c9ceb2c));
    assert_int_equal(rendezvous_key(ML_STR("cnat"), ML_STR("default/b")),
                     UINT64_C(0xda2e6183960792e4));
    assert_int_equal(rendezvous_key(ML_STR(""), ML_STR("")), UINT64_C(0x565e79ba3d2a0a3a));
    uint64_t owners[8];
    for (uint64_t key = 0; key < 8; key++)
        owners[key] = rendezvous_owner(key, members, ML_COUNT(members));
    static const uint64_t wanted[8] = {UINT64_C(0xfedcba9876543210),
                                       2,
                                       UINT64_C(0xfedcba9876543210),
                                       1,
                                       UINT64_C(0xfedcba9876543210),
                                       2,
                                       2,
                                       1};
    assert_memory_equal(owners, wanted, sizeof wanted);
    assert_int_equal(rendezvous_owner(7, members, 0), 0);
}

static void test_rendezvous_spreads_evenly_and_moves_little(void **state)
{
    uint64_t members[5];
    size_t shares[5] = {0}, moved = 0;
    (void)state;
    for (size_t i = 0; i < 5; i++)
        members[i] = rendezvous_key(ML_STR("member"), (struct ml_str){(char *)&i, sizeof i});
    for (size_t i = 0; i < 10000; i++) {
        ML_AUTO_FREE char *name = ml_asprintf("default/object-%zu", i);
        uint64_t key = rendezvous_key(ML_STR("cnat"), ml_str_of(name));
        uint64_t owner = rendezvous_owner(key, members, 5);
        uint64_t without = rendezvous_owner(key, members, 4);
        for (size_t j = 0; j < 5; j++)
            shares[j] += members[j] == owner;
        if (owner != without) {
            assert_int_equal(owner, members[4]); /* only its own move */
            moved++;
        }
    }
    for (size_t i = 0; i < 5; i++)
        assert_in_range(shares[i], 1850, 2150);
    assert_int_equal(moved, shares[4]);
}

/* ---- sets ---- */

static bool has(const struct shard_set *set, uint64_t id)
{
    for (size_t i = 0; i < set->count; i++)
        if (set->ids[i] == id)
            return true;
    return false;
}

static void test_set_is_ascending_and_keeps_the_smallest(void **state)
{
    struct shard_set set = {0};
    (void)state;
    for (uint64_t id = 100; id > 0; id--)
        shard_set_add(&set, id);
    shard_set_add(&set, 5);
    assert_int_equal(set.count, SHARD_MEMBERS_MAX);
    for (size_t i = 0; i < set.count; i++)
        assert_int_equal(set.ids[i], i + 1);
    assert_true(has(&set, 64));
    assert_false(has(&set, 65));
}

static void test_set_text_reads_back_and_nothing_else_does(void **state)
{
    static const char *const bad[] = {
        ",",
        "0000000000000000",
        "0000000000000001,",
        "0000000000000001,0000000000000001",
        "0000000000000002,0000000000000001",
        "000000000000000A",
        "1",
        "00000000000000011",
        "0000000000000001 ",
    };
    struct shard_set set = {0}, back = {0};
    (void)state;
    shard_set_add(&set, UINT64_C(0xfedcba9876543210));
    shard_set_add(&set, 1);
    ML_AUTO_FREE char *text = shard_set_text(&set);
    assert_string_equal(text, "0000000000000001,fedcba9876543210");
    assert_true(shard_set_parse(ml_str_of(text), &back));
    assert_true(shard_set_eq(&set, &back));
    for (size_t i = 0; i < ML_COUNT(bad); i++)
        assert_false(shard_set_parse(ml_str_of(bad[i]), &back));
    assert_true(shard_set_eq(&set, &back));
    assert_true(shard_set_parse(ML_STR(""), &back));
    assert_int_equal(back.count, 0);
}

/* ---- Leases ---- */

/* A Lease as the server has it. `view` NULL: no annotation; `holder` "": left. */
static char *lease(uint64_t id, int rv, const char *holder, const char *view)
{
    ML_AUTO_FREE char *name = shard_lease_name(GROUP, id);
    ML_AUTO_FREE char *annotation = view ? ml_asprintf(",\"annotations\":{\"" SHARD_ANNOTATION
                                                       "\":\"%s\"}",
                                                       view)
                                         : ml_strdup("");
    return ml_asprintf("{\"metadata\":{\"name\":\"%s\",\"uid\":\"u-%s\",\"resourceVersion\":\"%d\","
                       "\"labels\":{\"" SHARD_LABEL "\":\"" GROUP "\"}%s},"
                       "\"spec\":{\"holderIdentity\":\"%s\",\"leaseDurationSeconds\":15}}",
                       name, name, rv, annotation, holder);
}

static void test_lease_text_reads_back(void **state)
{
    struct shard_set view = {0};
    struct shard_lease read;
    (void)state;
    shard_set_add(&view, 7);
    shard_set_add(&view, 9);
    const struct shard_lease_text text = {
        .group = GROUP,
        .ns = "ns",
        .id = 7,
        .uid = "u",
        .rv = "12",
        .view = &view,
        .claim =
            {
                .holder = "host_1",
                .duration_s = 15,
                .acquired = "2026-01-01T00:00:00.000000Z",
                .renewed_ns = INT64_C(1700000000) * S,
            },
    };
    ML_AUTO_FREE char *json = shard_lease_json(&text);
    assert_true(shard_lease_read(ml_str_of(json), GROUP, &read));
    assert_int_equal(read.id, 7);
    assert_string_equal(read.uid, "u");
    assert_string_equal(read.rv, "12");
    assert_string_equal(read.holder, "host_1");
    assert_true(shard_set_eq(&read.view, &view));
    assert_true(read.duration_ns == 15 * S);
    shard_lease_fini(&read);
    assert_false(shard_lease_read(ml_str_of(json), "other", &read));
    shard_lease_fini(&read);
}

/* ---- the group ---- */

struct scene {
    struct shard_group group;
    struct shard_lease own;
};

static void see_late(struct scene *scene, int64_t asked_ns, int64_t now_ns, char *first,
                     char *second)
{
    struct ml_err err;
    ML_AUTO_FREE char *one = first, *two = second;
    ML_AUTO_FREE char *list = ml_asprintf("{\"items\":[%s%s%s]}", one ? one : "", two ? "," : "",
                                          two ? two : "");
    shard_lease_fini(&scene->own);
    if (shard_group_observe(&scene->group, ml_str_of(list), asked_ns, now_ns, &scene->own, &err) <
        0)
        fail_msg("%s", err.message);
}

static void see(struct scene *scene, int64_t asked_ns, char *first, char *second)
{
    see_late(scene, asked_ns, asked_ns, first, second);
}

static int setup(void **state)
{
    struct scene *scene = ml_new(struct scene);
    shard_group_init(&scene->group, GROUP, 1, 15 * S);
    *state = scene;
    return 0;
}

static int teardown(void **state)
{
    struct scene *scene = *state;
    shard_lease_fini(&scene->own);
    shard_group_fini(&scene->group);
    free(scene);
    return 0;
}

static size_t alive(const struct scene *scene)
{
    struct shard_set set;
    shard_group_alive(&scene->group, &set);
    assert_true(has(&set, 1));
    return set.count;
}

static void
test_group_member_is_dead_when_a_list_asked_after_its_time_shows_it_unchanged(void **state)
{
    struct scene *scene = *state;
    see(scene, 1 * S, lease(2, 10, "b", "0000000000000002"), NULL);
    assert_int_equal(alive(scene), 2);
    see(scene, 15 * S, lease(2, 10, "b", "0000000000000002"), NULL);
    assert_int_equal(alive(scene), 2);
    see(scene, 16 * S, lease(2, 11, "b", "0000000000000002"), NULL); /* renewed */
    assert_int_equal(alive(scene), 2);
    see(scene, 31 * S, lease(2, 11, "b", "0000000000000002"), NULL);
    assert_int_equal(alive(scene), 1);
    assert_non_null(shard_group_remains(&scene->group, 31 * S, 15 * S));
    see(scene, 33 * S, lease(2, 12, "b", "0000000000000002"), NULL); /* late, but there */
    assert_int_equal(alive(scene), 2);
}

/* It may have been renewed while the answer was on its way. */
static void test_group_list_is_as_old_as_its_question(void **state)
{
    struct scene *scene = *state;
    see_late(scene, 1 * S, 4 * S, lease(2, 10, "b", "0000000000000002"), NULL);
    see_late(scene, 18 * S, 60 * S, lease(2, 10, "b", "0000000000000002"), NULL);
    assert_int_equal(alive(scene), 2);
    see_late(scene, 19 * S, 61 * S, lease(2, 10, "b", "0000000000000002"), NULL);
    assert_int_equal(alive(scene), 1);
}

static void test_group_lease_that_is_deleted_is_no_death(void **state)
{
    struct scene *scene = *state;
    see(scene, 1 * S, lease(2, 10, "b", "0000000000000002"), NULL);
    see(scene, 2 * S, NULL, NULL);
    assert_int_equal(alive(scene), 2);
    see(scene, 16 * S, NULL, NULL);
    assert_int_equal(alive(scene), 1);
    assert_int_equal(scene->group.count, 0);
}

static void test_group_member_that_left_counts_no_more(void **state)
{
    struct scene *scene = *state;
    see(scene, 1 * S, lease(2, 10, "b", "0000000000000002"), NULL);
    see(scene, 2 * S, lease(2, 11, "", ""), NULL);
    assert_int_equal(alive(scene), 1);
    assert_null(shard_group_remains(&scene->group, 10 * S, 15 * S)); /* others are to see it too */
    assert_non_null(shard_group_remains(&scene->group, 17 * S, 15 * S));
    see(scene, 18 * S, NULL, NULL);
    assert_int_equal(scene->group.count, 0);
}

static void test_group_finds_our_own_lease_and_leaves_others_alone(void **state)
{
    struct scene *scene = *state;
    see(scene, 1 * S, lease(1, 10, "a", "0000000000000001"),
        ml_strdup("{\"metadata\":{\"name\":\"moonloop\",\"uid\":\"u\"}}"));
    assert_int_equal(scene->own.id, 1);
    assert_string_equal(scene->own.rv, "10");
    assert_int_equal(scene->group.count, 0);
}

static void test_group_list_that_cannot_be_read_changes_nothing(void **state)
{
    static const char *const bad[] = {"", "{}", "{\"items\":7}", "{\"items\":[{]}"};
    struct scene *scene = *state;
    see(scene, 1 * S, lease(2, 10, "b", "0000000000000002"), NULL);
    for (size_t i = 0; i < ML_COUNT(bad); i++) {
        struct shard_lease own;
        struct ml_err err;
        assert_int_equal(
            shard_group_observe(&scene->group, ml_str_of(bad[i]), 90 * S, 90 * S, &own, &err),
            ML_EINVALID);
    }
    assert_int_equal(alive(scene), 2);
    assert_true(scene->group.peers[0].present);
}

/* ---- acting ---- */

/* How many of a thousand keys it acts on with these views. */
static size_t acted(const struct scene *scene, const struct shard_set *confirmed,
                    const struct shard_set *next)
{
    const struct shard_set *const views[] = {confirmed, next};
    struct shard_acting acting;
    size_t count = 0;
    shard_acting_init(&acting, &scene->group, views, 2);
    for (uint64_t key = 0; key < 1000; key++)
        count += shard_acting_acts(&acting, key * UINT64_C(0x9e3779b97f4a7c15));
    shard_acting_fini(&acting);
    return count;
}

static void test_acting_needs_every_view_of_ours_and_no_claim_of_others(void **state)
{
    struct scene *scene = *state;
    struct shard_set nobody = {0}, alone = {0}, both = {0};
    shard_set_add(&alone, 1);
    shard_set_add(&both, 1);
    shard_set_add(&both, 2);
    assert_int_equal(acted(scene, &nobody, &alone), 0); /* nothing is confirmed */
    assert_int_equal(acted(scene, &alone, &alone), 1000);
    size_t half = acted(scene, &alone, &both);
    assert_in_range(half, 400, 600);
    see(scene, 1 * S, lease(2, 10, "b", "0000000000000001,0000000000000002"), NULL);
    assert_int_equal(acted(scene, &both, &both), half);
    assert_int_equal(acted(scene, &alone, &alone), half); /* it claims its half */
    see(scene, 2 * S, lease(2, 11, "b", "0000000000000002"), NULL);
    assert_int_equal(acted(scene, &both, &both), 0); /* it claims everything still */
    see(scene, 3 * S, lease(2, 12, "b", "rubbish"), NULL);
    assert_int_equal(acted(scene, &both, &both), 0);
    see(scene, 4 * S, lease(2, 13, "b", NULL), NULL);
    assert_int_equal(acted(scene, &both, &both), 0);
    see(scene, 19 * S, lease(2, 13, "b", NULL), NULL); /* and died of it */
    assert_int_equal(acted(scene, &both, &both), half);
}

int main(void)
{
#define TEST(name) cmocka_unit_test_setup_teardown(test_##name, setup, teardown)
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_rendezvous_numbers_never_change),
        cmocka_unit_test(test_rendezvous_spreads_evenly_and_moves_little),
        cmocka_unit_test(test_set_is_ascending_and_keeps_the_smallest),
        cmocka_unit_test(test_set_text_reads_back_and_nothing_else_does),
        cmocka_unit_test(test_lease_text_reads_back),
        TEST(group_member_is_dead_when_a_list_asked_after_its_time_shows_it_unchanged),
        TEST(group_list_is_as_old_as_its_question),
        TEST(group_lease_that_is_deleted_is_no_death),
        TEST(group_member_that_left_counts_no_more),
        TEST(group_finds_our_own_lease_and_leaves_others_alone),
        TEST(group_list_that_cannot_be_read_changes_nothing),
        TEST(acting_needs_every_view_of_ours_and_no_claim_of_others),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
