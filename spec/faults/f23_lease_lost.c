/* F23: a lease that is lost, in every way there is: renewals that conflict, that get no answer,
 * that are refused; the Lease deleted; clocks that run 20 % fast and slow; a process that sleeps.
 * Two or three replicas in one virtual world, and the server's own log of requests as the judge. */
#include "replicas.h"

#include "codec/json.h"
#include "seeds.h"
#include "tried.h"

#include <stdio.h>

#define OBJECTS 4
#define LEASE   "/apis/coordination.k8s.io/v1/namespaces/default/leases/moonloop"

/* Counts each map up, once a second by the replica's own clock. */
static const char *const counter =
    "local moonloop = require 'moonloop'\n"
    "local ConfigMap = moonloop.kind('v1', 'ConfigMap')\n"
    "local last = {}\n"
    "return moonloop.controller { name = 'counter', reconciles = ConfigMap,\n"
    "  reconcile = function(map, ctx)\n"
    "    local name, now = map.metadata.name, ctx.now()\n"
    "    if last[name] and now < last[name] + 1 then return { requeue_at = last[name] + 1 } end\n"
    "    local n = tonumber(map.data.n)\n"
    "    if not n then return end\n"
    "    assert(ctx.patch(map, { data = { n = tostring(n + 1) } }))\n"
    "    last[name] = now\n"
    "    return { requeue_after = 1 }\n"
    "  end }\n";

static struct replicas *world_new(uint64_t seed)
{
    struct replicas *all = replicas_new(counter, seed);
    replicas_lua(all, "for i = 1, 4 do assert(call('POST', '/api/v1/namespaces/default/configmaps',"
                      "{ kind = 'ConfigMap', apiVersion = 'v1', metadata = { name = 'map-' .. i },"
                      " data = { n = '0' } }) == 201) end");
    return all;
}

/* ---- what the log says ---- */

/* One line of a failure. */
static void fail_at(const struct replicas *all, size_t index, const char *why)
{
    const struct replicas_request *request = &all->log[index];
    fail_msg("%s: at %.3f s %c%d %s %s -> %d %.200s", why,
             (double)request->at_ns / (double)ML_NS_PER_S, (int)('a' + request->replica),
             request->start, request->method, request->path, request->status, request->body);
}

/* Events are no work: they tell of it, and pass at any time. */
static bool is_work(const struct replicas_request *request)
{
    return strcmp(request->method, "GET") != 0 && !request_is_lease(request) &&
           !strstr(request->path, "/events");
}

/* I6: whoever was the last to get its name into the Lease may write, and nobody else. */
static void check_fenced(const struct replicas *all)
{
    ML_AUTO_FREE char *holder = ml_strdup("");
    for (size_t i = 0; i < all->log_len; i++) {
        const struct replicas_request *request = &all->log[i];
        char self[32];
        snprintf(self, sizeof self, "%c%d", (int)('a' + request->replica), request->start);
        if (!request_wrote(request) || !(is_work(request) || request_is_lease(request)))
            continue;
        if (is_work(request)) {
            if (strcmp(holder, self) != 0)
                fail_at(all, i, "it wrote without the lease");
            continue;
        }
        free(holder);
        holder = ml_json_find_string(ml_str_of(request->body), "spec", "holderIdentity", NULL);
        holder = holder ? holder : ml_strdup("");
    }
}

/* I4: each value was written once, one after the other. */
static void check_counted(const struct replicas *all)
{
    int64_t n[OBJECTS + 1] = {0};
    for (size_t i = 0; i < all->log_len; i++) {
        const struct replicas_request *request = &all->log[i];
        if (!request_wrote(request))
            continue;
        ML_AUTO_FREE char *name = request_name(request, "configmaps");
        if (!name)
            continue;
        int64_t value = -1;
        ML_AUTO_FREE char *text = ml_json_find_string(ml_str_of(request->body), "data", "n", NULL);
        int64_t *last = &n[atoi(name + strlen("map-"))];
        if (!text || !ml_str_to_i64(ml_str_of(text), &value) || value != *last + 1)
            fail_at(all, i, "a value was left out, or written twice");
        *last = value;
    }
}

static void check(const struct replicas *all)
{
    check_fenced(all);
    check_counted(all);
}

/* How many writes reached the server from `from_ms` on, by whom (-1: anybody). */
static size_t writes_since(const struct replicas *all, int64_t from_ms, int replica)
{
    size_t count = 0;
    for (size_t i = 0; i < all->log_len; i++) {
        const struct replicas_request *request = &all->log[i];
        count += is_work(request) && request->at_ns >= from_ms * ML_NS_PER_MS &&
                 (replica < 0 || request->replica == (size_t)replica);
    }
    return count;
}

/* From index `from` on replica 0 asked about the Lease before it wrote anything. Reads may come
 * first: a watch that ended while it slept is resumed at once. */
static void assert_lease_first(const struct replicas *all, size_t from)
{
    while (from < all->log_len &&
           (all->log[from].replica != 0 || strstr(all->log[from].path, "/events") ||
            !(request_is_lease(&all->log[from]) || request_wrote(&all->log[from]))))
        from++;
    assert_true(from < all->log_len);
    assert_true(request_is_lease(&all->log[from]));
}

/* `a` leads, `b` stands by. */
static struct replicas *start_two(uint64_t seed, int rate_a, int rate_b)
{
    struct replicas *all = world_new(seed);
    replica_start(all, 0, rate_a);
    replicas_run(all, 1000);
    replica_start(all, 1, rate_b);
    replicas_run(all, 4000);
    assert_true(writes_since(all, 0, 0) >= OBJECTS);
    assert_int_equal(writes_since(all, 0, 1), 0);
    return all;
}

/* ---- one way after the other ---- */

static const int rates[][2] = {{1000, 1000}, {800, 1200}, {1200, 800}, {800, 800}};

/* Only its Lease is out of reach; its work could go on. */
static void lose_by_silence(int rate_a, int rate_b)
{
    struct replicas *all = start_two(1, rate_a, rate_b);
    wire_mood(all->replicas[0].leases)->silent = true;
    replicas_run(all, 35000);
    int64_t since_ms = replicas_now_ms(all) - 5000;
    assert_int_equal(writes_since(all, since_ms, 0), 0);
    assert_true(writes_since(all, since_ms, 1) > 0);
    check(all);
    replicas_free(all);
}

static void test_renewals_without_an_answer(void **state)
{
    (void)state;
    for (size_t i = 0; i < ML_COUNT(rates); i++)
        lose_by_silence(rates[i][0], rates[i][1]);
    faults_tried("F23", ML_COUNT(rates));
}

/* Somebody else's name stands in the Lease, at each moment of the period of renewal. */
static void test_renewals_that_conflict(void **state)
{
    (void)state;
    for (int step = 0; step < 10; step++) {
        struct replicas *all = start_two(2, 1000, 1000);
        replicas_run(all, step * 200);
        replicas_lua(all, "local lease = get('" LEASE "') lease.spec.holderIdentity = 'c'\n"
                          "assert(call('PUT', '" LEASE "', lease) == 200)");
        replicas_run(all, 2200);
        assert_true(all->replicas[0].state == REPLICA_ABSENT);
        int64_t since_ms = replicas_now_ms(all);
        replicas_run(all, 10000);
        assert_int_equal(writes_since(all, since_ms, -1), 0); /* `c`'s time runs */
        replicas_run(all, 15000);
        assert_true(writes_since(all, since_ms, 1) > 0);
        check_counted(all);
        replicas_free(all);
    }
    faults_tried("F23", 10);
}

static void test_lease_that_is_deleted(void **state)
{
    (void)state;
    for (int step = 0; step < 10; step++) {
        struct replicas *all = start_two(3, 1000, 1000);
        replicas_run(all, step * 200);
        replicas_lua(all, "assert(call('DELETE', '" LEASE "') == 200)");
        replicas_run(all, 30000);
        assert_true(all->replicas[0].state == REPLICA_RUNS);
        assert_int_equal(writes_since(all, 0, 1), 0);
        check(all);
        replicas_free(all);
    }
    faults_tried("F23", 10);
}

/* The fence at each write index: renewals end after the n-th write of the leader. */
static void test_fence_at_each_write(void **state)
{
    (void)state;
    for (size_t index = 1; index <= 20; index++) {
        struct replicas *all = start_two(4, index % 2 ? 800 : 1000, index % 2 ? 1200 : 1000);
        size_t before = writes_since(all, 0, 0);
        while (writes_since(all, 0, 0) < before + index)
            replicas_run(all, 1);
        wire_mood(all->replicas[0].leases)->silent = true;
        int64_t from_ms = replicas_now_ms(all);
        replicas_run(all, 13000); /* 10 s of a clock that may be slow */
        assert_int_equal(writes_since(all, from_ms + 12600, 0), 0);
        assert_true(all->replicas[0].state == REPLICA_ABSENT);
        replicas_run(all, 12000);
        assert_true(writes_since(all, from_ms, 1) > 0);
        check(all);
        replicas_free(all);
    }
    faults_tried("F23", 20);
}

/* SIGSTOP for a minute, at each moment of the period of renewal. Awake, it asks for the Lease
 * before anything else, and ends. */
static void test_sleeper(void **state)
{
    (void)state;
    for (int step = 0; step < 10; step++) {
        struct replicas *all = start_two(5, 1000, 1000);
        replicas_run(all, step * 206);
        replica_sleep(&all->replicas[0]);
        replicas_run(all, 60000);
        assert_true(writes_since(all, replicas_now_ms(all) - 30000, 1) > 0);
        size_t from = all->log_len;
        int64_t from_ms = replicas_now_ms(all);
        replica_wake(&all->replicas[0]);
        replicas_run(all, 5000);
        assert_int_equal(writes_since(all, from_ms, 0), 0);
        assert_true(all->replicas[0].state == REPLICA_ABSENT);
        assert_lease_first(all, from);
        check(all);
        replicas_free(all);
    }
    faults_tried("F23", 10);
}

/* Nobody took over meanwhile: it goes on, with the Lease first. */
static void test_sleeper_without_a_successor(void **state)
{
    (void)state;
    struct replicas *all = world_new(6);
    replica_start(all, 0, 1000);
    replicas_run(all, 5000);
    replica_sleep(&all->replicas[0]);
    replicas_run(all, 60000);
    size_t from = all->log_len;
    replica_wake(&all->replicas[0]);
    replicas_run(all, 5000);
    assert_lease_first(all, from);
    assert_true(writes_since(all, replicas_now_ms(all) - 3000, 0) > 0);
    check(all);
    replicas_free(all);
    faults_tried("F23", 1);
}

static size_t lease_requests(const struct replicas *all, size_t from)
{
    size_t count = 0;
    for (size_t i = from; i < all->log_len; i++)
        count += request_is_lease(&all->log[i]) && all->log[i].replica == 0;
    return count;
}

/* Renewals go their way, one in 2 s, while the connection of the work stands still. */
static void test_renewals_beside_a_flood(void **state)
{
    (void)state;
    struct replicas *all = start_two(7, 1000, 1000);
    replicas_lua(all,
                 "for i = 1, 500 do assert(call('POST', '/api/v1/namespaces/default/configmaps',"
                 "{ kind = 'ConfigMap', apiVersion = 'v1', metadata = { name = 'map-0' .. i },"
                 " data = { n = '0' } }) == 201) end");
    replicas_run(all, 3);
    wire_mood(all->replicas[0].work)->silent = true;
    size_t from = all->log_len;
    replicas_run(all, 60000);
    size_t renewals = lease_requests(all, from);
    assert_true(renewals >= 29 && renewals <= 31);
    assert_true(all->replicas[0].state == REPLICA_RUNS);
    assert_int_equal(writes_since(all, 0, 1), 0);
    check_fenced(all);
    replicas_free(all);
    faults_tried("F23", 1);
}

/* ---- by chance ---- */

static void upset(struct replicas *all, struct ml_random *random)
{
    struct replica *victim = &all->replicas[ml_random_between(random, 0, 3)];
    if (victim->state == REPLICA_ABSENT) {
        replica_start(all, victim->index, (int)ml_random_between(random, 800, 1201));
        return;
    }
    if (victim->state == REPLICA_STOPPED) {
        replica_wake(victim);
        return;
    }
    struct wire_mood *leases = wire_mood(victim->leases);
    struct wire_mood *work = wire_mood(victim->work);
    switch (ml_random_between(random, 0, 9)) {
    case 0:
        replica_kill(victim);
        break;
    case 1:
    case 2:
        replica_sleep(victim);
        break;
    case 3:
        leases->silent = !leases->silent;
        break;
    case 4:
        leases->lose_there_percent = (int)ml_random_between(random, 0, 60);
        leases->lose_back_percent = (int)ml_random_between(random, 0, 60);
        break;
    case 5:
        work->lose_there_percent = work->lose_back_percent = (int)ml_random_between(random, 0, 30);
        break;
    case 6:
        leases->there_max_ns = ml_random_between(random, 1, 6000) * ML_NS_PER_MS;
        leases->back_max_ns = ml_random_between(random, 1, 6000) * ML_NS_PER_MS;
        leases->there_min_ns = leases->back_min_ns = 0;
        break;
    default:
        break;
    }
}

static void heal(struct replicas *all)
{
    for (size_t i = 0; i < 3; i++) {
        replica_kill(&all->replicas[i]);
        replica_start(all, i, 1000);
    }
}

static void try_seed(uint64_t seed)
{
    struct replicas *all = world_new(seed);
    struct ml_random random;
    ml_random_init(&random, seed);
    for (size_t i = 0; i < 3; i++)
        replica_start(all, i, (int)ml_random_between(&random, 800, 1201));
    for (int i = 0; i < 60; i++) {
        replicas_run(all, ml_random_between(&random, 100, 8000));
        upset(all, &random);
    }
    check_counted(all);
    heal(all);
    replicas_run(all, 25000);
    int64_t since_ms = replicas_now_ms(all);
    replicas_run(all, 5000);
    assert_true(writes_since(all, since_ms, -1) > 2 * OBJECTS);
    check(all);
    replicas_free(all);
}

static void test_by_chance(void **state)
{
    (void)state;
    faults_tried("F23", faults_each_seed("F23", 10, try_seed));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_renewals_without_an_answer),
        cmocka_unit_test(test_renewals_that_conflict),
        cmocka_unit_test(test_lease_that_is_deleted),
        cmocka_unit_test(test_fence_at_each_write),
        cmocka_unit_test(test_sleeper),
        cmocka_unit_test(test_sleeper_without_a_successor),
        cmocka_unit_test(test_renewals_beside_a_flood),
        cmocka_unit_test(test_by_chance),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
