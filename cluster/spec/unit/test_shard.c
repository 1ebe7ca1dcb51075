/* Replicas that share the keys, in virtual time: no object is ever worked on by two. The tests
 * judge by the writes that the server was asked for. */
#include "counting_maps.h"

#include "base/map.h"
#include "codec/json.h"

#define OBJECTS 24

static void fail_at(const struct replicas *all, size_t index, const char *why)
{
    const struct replicas_request *request = &all->log[index];
    fail_msg("%s: at %.3f s %c%d %s %s -> %d %.200s", why,
             (double)request->at_ns / (double)ML_NS_PER_S, (int)('a' + request->replica),
             request->start, request->method, request->path, request->status, request->body);
}

/* Each value was written once, in order, and no write conflicted: at any time only one replica
 * works on an object. */
static void check_values(const struct replicas *all)
{
    int64_t n[OBJECTS + 1] = {0};
    for (size_t i = 0; i < all->log_len; i++) {
        const struct replicas_request *request = &all->log[i];
        int64_t value = -1;
        if (!counting_work(request) || !request_wrote(request))
            continue;
        ML_AUTO_FREE char *text = ml_json_find_string(ml_str_of(request->body), "data", "n", NULL);
        int64_t *last = &n[counting_map(request)];
        if (!text || !ml_str_to_i64(ml_str_of(text), &value) || value != *last + 1)
            fail_at(all, i, "a value was left out, or written twice");
        *last = value;
    }
}

/* The values that one life of a replica wrote to one object, in the order of the server. */
struct turn {
    size_t replica;
    int start;
};

/* Between two changes of the membership an object changes hands at most once: a replica that has
 * given it away does not write it any more. `changes_ms` ascends; its last time is after all
 * requests. */
static void check_turns(const struct replicas *all, const int64_t *changes_ms, size_t change_count)
{
    struct turn turns[OBJECTS + 1] = {0};
    int hands[OBJECTS + 1] = {0};
    size_t change = 0;
    for (size_t i = 0; i < all->log_len; i++) {
        const struct replicas_request *request = &all->log[i];
        while (change < change_count && request->at_ns >= changes_ms[change] * ML_NS_PER_MS) {
            memset(hands, 0, sizeof hands);
            change++;
        }
        if (!counting_work(request) || !request_wrote(request))
            continue;
        struct turn *turn = &turns[counting_map(request)];
        if (turn->start && (turn->replica != request->replica || turn->start != request->start) &&
            ++hands[counting_map(request)] > 1)
            fail_at(all, i, "it came back to who had given it away");
        *turn = (struct turn){request->replica, request->start};
    }
}

/* Counts the writes of each replica since then. */
static size_t writes_since(const struct replicas *all, int64_t from_ms, size_t replica)
{
    size_t count = 0;
    for (size_t i = 0; i < all->log_len; i++)
        count += counting_work(&all->log[i]) && all->log[i].at_ns >= from_ms * ML_NS_PER_MS &&
                 all->log[i].replica == replica;
    return count;
}

/* Every object has exactly one replica, and each of the first `count` replicas has some. */
static void assert_shared(struct replicas *all, size_t count)
{
    size_t owners[OBJECTS + 1] = {0}, shares[REPLICAS_MAX] = {0};
    int64_t from_ms = replicas_now_ms(all);
    replicas_run(all, 2500);
    for (size_t i = 0; i < all->log_len; i++) {
        const struct replicas_request *request = &all->log[i];
        if (!counting_work(request) || request->at_ns < from_ms * ML_NS_PER_MS)
            continue;
        size_t *owner = &owners[counting_map(request)];
        if (*owner && *owner != request->replica + 1)
            fail_at(all, i, "two work on it");
        if (!*owner)
            shares[request->replica]++;
        *owner = request->replica + 1;
    }
    for (size_t i = 1; i <= OBJECTS; i++)
        assert_true(owners[i] > 0);
    for (size_t i = 0; i < REPLICAS_MAX; i++)
        assert_true((shares[i] > 0) == (i < count));
}

static double keys_of(const struct replica *replica)
{
    ML_AUTO(ml_buf_fini) struct ml_buf page = ML_BUF_INIT;
    ml_metrics_write(replica->metrics, &page);
    const char *line = strstr(ml_buf_cstr(&page), "\nmoonloop_keys{");
    assert_non_null(line);
    return strtod(strchr(line, '}') + 1, NULL);
}

/* A replica keeps nothing about the objects of others. */
static void assert_keys_shared(const struct replicas *all, size_t count)
{
    double sum = 0;
    for (size_t i = 0; i < count; i++)
        sum += keys_of(&all->replicas[i]);
    assert_true(sum == OBJECTS);
}

/* ---- one after the other ---- */

static void test_shard_alone_works_on_all_at_once(void **state)
{
    (void)state;
    struct replicas *all = counting_world(OBJECTS, 1);
    replica_start(all, 0, 1000);
    replicas_run(all, 300);
    assert_true(writes_since(all, 0, 0) >= OBJECTS);
    assert_shared(all, 1);
    check_values(all);
    replicas_free(all);
}

static void test_shard_joiners_get_their_part_within_a_second(void **state)
{
    (void)state;
    struct replicas *all = counting_world(OBJECTS, 2);
    replica_start(all, 0, 1000);
    replicas_run(all, 5000);
    replica_start(all, 1, 1000);
    replicas_run(all, 1000);
    assert_shared(all, 2);
    replica_start(all, 2, 1000);
    replicas_run(all, 1000);
    assert_shared(all, 3);
    assert_keys_shared(all, 3);
    const int64_t changes_ms[] = {5000, 8500};
    check_turns(all, changes_ms, ML_COUNT(changes_ms));
    check_values(all);
    replicas_free(all);
}

/* A key is handed over at any moment: also between a write and its echo. */
static void test_shard_nothing_is_kept_about_the_keys_of_others(void **state)
{
    (void)state;
    for (uint64_t seed = 3; seed < 9; seed++) {
        struct replicas *all = counting_world(OBJECTS, seed);
        for (size_t i = 0; i < 3; i++) {
            replica_start(all, i, 1000);
            replicas_run(all, 1500);
        }
        assert_keys_shared(all, 3);
        replicas_free(all);
    }
}

static struct replicas *start_three(uint64_t seed, const int rates[3])
{
    struct replicas *all = counting_world(OBJECTS, seed);
    for (size_t i = 0; i < 3; i++)
        replica_start(all, i, rates[i]);
    replicas_run(all, 5000);
    return all;
}

static const int even[3] = {1000, 1000, 1000};

static void test_shard_leaver_is_followed_within_a_second(void **state)
{
    (void)state;
    struct replicas *all = start_three(3, even);
    replica_term(&all->replicas[2]);
    replicas_run(all, 1000);
    assert_true(all->replicas[2].state == REPLICA_ABSENT);
    assert_shared(all, 2);
    check_values(all);
    replicas_free(all);
}

static void test_shard_killed_is_followed_when_its_lease_is_over(void **state)
{
    (void)state;
    struct replicas *all = start_three(4, even);
    replica_kill(&all->replicas[2]);
    replicas_run(all, 18000);
    assert_shared(all, 2);
    check_values(all);
    replicas_free(all);
}

static void test_shard_sleeper_writes_nothing_when_it_wakes(void **state)
{
    (void)state;
    struct replicas *all = start_three(5, even);
    replica_sleep(&all->replicas[2]);
    replicas_run(all, 60000);
    int64_t from_ms = replicas_now_ms(all);
    replica_wake(&all->replicas[2]);
    replicas_run(all, 3000);
    assert_int_equal(writes_since(all, from_ms, 2), 0);
    assert_true(all->replicas[2].state == REPLICA_ABSENT);
    assert_shared(all, 2);
    check_values(all);
    replicas_free(all);
}

/* The server asks for a pause of a minute; a replica that waits so long has lost its Lease. */
static void test_shard_overloaded_server_costs_no_member_its_lease(void **state)
{
    (void)state;
    struct replicas *all = start_three(6, even);
    for (size_t i = 0; i < 3; i++)
        wire_mood(all->replicas[i].leases)->retry_after_ms = 60000;
    replicas_run(all, 5000);
    for (size_t i = 0; i < 3; i++)
        wire_mood(all->replicas[i].leases)->retry_after_ms = 0;
    replicas_run(all, 10000);
    assert_shared(all, 3);
    check_values(all);
    replicas_free(all);
}

/* All requests in the first seconds of two replicas, as one text. */
static char *requests_under(uint64_t hash_seed)
{
    ml_hash_seed(hash_seed, ~hash_seed);
    struct replicas *all = counting_world(OBJECTS, 1);
    struct ml_buf text = ML_BUF_INIT;
    replica_start(all, 0, 1000);
    replicas_run(all, 5000);
    replica_start(all, 1, 1000);
    replicas_run(all, 15000);
    for (size_t i = 0; i < all->log_len; i++) {
        const struct replicas_request *request = &all->log[i];
        ml_buf_printf(&text, "%lld %zu %s %s %d %s\n", (long long)request->at_ns, request->replica,
                      request->method, request->path, request->status, request->body);
    }
    assert_true(all->log_len > 100);
    replicas_free(all);
    return ml_buf_take(&text);
}

/* A seed of the host's random numbers replays a run, whatever the tables' own seed is. */
static void test_shard_depends_on_no_seed_of_the_tables(void **state)
{
    (void)state;
    ML_AUTO_FREE char *one = requests_under(1), *two = requests_under(2);
    assert_string_equal(one, two);
}

int main(void)
{
#define TEST(name) cmocka_unit_test(test_shard_##name)
    const struct CMUnitTest tests[] = {
        TEST(alone_works_on_all_at_once),
        TEST(joiners_get_their_part_within_a_second),
        TEST(nothing_is_kept_about_the_keys_of_others),
        TEST(leaver_is_followed_within_a_second),
        TEST(killed_is_followed_when_its_lease_is_over),
        TEST(sleeper_writes_nothing_when_it_wakes),
        TEST(overloaded_server_costs_no_member_its_lease),
        TEST(depends_on_no_seed_of_the_tables),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
