/* Two replicas of the operator on one embedded server, in virtual time. */
#include "unit.h"

#include "cluster/host/transport_embedded.h"
#include "cluster/host/world.h"
#include "operator/operator.h"

#include <stdio.h>
#include <unistd.h>

#define SCRIPTS "/tmp/moonloop-test-XXXXXX"

/* Counts up, once a second. */
static const char *const counter =
    "local moonloop = require 'moonloop'\n"
    "local ConfigMap = moonloop.kind('v1', 'ConfigMap')\n"
    "return moonloop.controller { name = 'counter', reconciles = ConfigMap,\n"
    "  reconcile = function(map, ctx)\n"
    "    local n = map.data and tonumber(map.data.n)\n"
    "    if not n or n >= tonumber(map.data.up_to) then return end\n"
    "    local due = tonumber(map.data.from) + n\n"
    "    if due > ctx.now() then return { requeue_at = due } end\n"
    "    assert(ctx.patch(map, { data = { n = tostring(n + 1) } }))\n"
    "  end }\n";

/* Makes a Secret, and reports when the cache shows it. */
static const char *const maker =
    "local moonloop = require 'moonloop'\n"
    "local ConfigMap = moonloop.kind('v1', 'ConfigMap')\n"
    "return moonloop.controller { name = 'counter', reconciles = ConfigMap,\n"
    "  owns = { moonloop.kind('v1', 'Secret') },\n"
    "  reconcile = function(map, ctx)\n"
    "    if map.metadata.name ~= 'm' then return end\n"
    "    assert(ctx.ensure { apiVersion = 'v1', kind = 'Secret', metadata = { name = 's' } })\n"
    "    assert(ctx.patch(map, { data = { made = 'yes' } }))\n"
    "  end }\n";

struct replica {
    struct ml_transport *work, *renewals;
    struct ml_metrics *metrics;
    struct ml_operator *operator;
    int lost, stopped;
};

struct pair {
    struct ml_clock_fake clock;
    struct ml_random random;
    struct ml_loop *loop;
    struct ml_apiserver *server;
    char folder[sizeof SCRIPTS];
    char *script;
    struct replica a, b;
};

static void on_lost(void *context, const struct ml_err *err)
{
    struct replica *replica = context;
    (void)err;
    replica->lost++;
}

static void on_stopped(void *context)
{
    struct replica *replica = context;
    replica->stopped++;
}

static void replica_init(struct pair *pair, struct replica *self, const char *identity)
{
    static const char *const everywhere[] = {NULL};
    self->work = ml_transport_embedded_new(pair->loop, pair->server, NULL);
    self->renewals = ml_transport_embedded_new(pair->loop, pair->server, NULL);
    self->metrics = ml_metrics_new();
    const struct ml_replica_opts replica = {
        .transport = self->renewals,
        .ns = "default",
        .name = "moonloop",
        .identity = identity,
        .times = ML_LEASE_TIMES_DEFAULT,
        .lost = on_lost,
        .context = self,
    };
    const struct ml_operator_opts opts = {
        .virtual_time = true,
        .loop = pair->loop,
        .transport = self->work,
        .random = &pair->random,
        .metrics = self->metrics,
        .namespaces = everywhere,
        .instance = identity,
        .replica = &replica,
    };
    self->operator= ml_operator_new(&opts);
    ml_scripts_add_source(ml_operator_scripts(self->operator),
                          ml_world_source_new(pair->loop, pair->script));
}

static void replica_fini(struct replica *self)
{
    if (!self->work)
        return;
    ml_operator_free(ml_take(&self->operator));
    self->work->free(ml_take(&self->work));
    self->renewals->free(ml_take(&self->renewals));
    ml_metrics_free(ml_take(&self->metrics));
}

static void write_script(struct pair *pair, const char *text)
{
    FILE *out = fopen(pair->script, "w");
    assert_non_null(out);
    fputs(text, out);
    fclose(out);
}

static int setup(void **state)
{
    struct pair *pair = ml_new(struct pair);
    memcpy(pair->folder, SCRIPTS, sizeof SCRIPTS);
    assert_non_null(mkdtemp(pair->folder));
    pair->script = ml_asprintf("%s/script.lua", pair->folder);
    write_script(pair, counter);
    ml_clock_fake_init(&pair->clock, INT64_C(1767225600) * ML_NS_PER_S);
    ml_random_init(&pair->random, 1);
    pair->loop = ml_loop_new(&pair->clock.clock);
    const struct ml_apiserver_options server = {
        .loop = pair->loop, .clock = &pair->clock.clock, .random = &pair->random};
    struct ml_err err;
    if (ml_apiserver_new(&server, &pair->server, &err) < 0)
        fail_msg("%s", err.message);
    ml_loop_poll(pair->loop);
    replica_init(pair, &pair->a, "a");
    replica_init(pair, &pair->b, "b");
    *state = pair;
    return 0;
}

static int teardown(void **state)
{
    struct pair *pair = *state;
    replica_fini(&pair->a);
    replica_fini(&pair->b);
    ml_apiserver_free(pair->server);
    ml_loop_free(pair->loop);
    unlink(pair->script);
    rmdir(pair->folder);
    free(pair->script);
    free(pair);
    return 0;
}

/* Moves the clock from timer to timer. */
static void run(struct pair *pair, int64_t ms)
{
    int64_t end = ml_clock_monotonic(&pair->clock.clock) + ms * ML_NS_PER_MS;
    ml_loop_poll(pair->loop);
    for (int64_t now; (now = ml_clock_monotonic(&pair->clock.clock)) < end;) {
        int64_t next = ML_MAX(ML_MIN(ml_loop_next(pair->loop), end), now);
        ml_clock_fake_advance(&pair->clock, next - now);
        ml_loop_poll(pair->loop);
    }
}

static void lua(struct pair *pair, const char *statements)
{
    struct ml_server_lua *lua = ml_apiserver_lua(pair->server);
    ML_AUTO_FREE char *text = ml_asprintf(
        "local server = require 'cluster.apiserver.running'\n"
        "local MAPS = '/api/v1/namespaces/default/configmaps'\n"
        "local LEASE = '/apis/coordination.k8s.io/v1/namespaces/default/leases/moonloop'\n"
        "local EVENTS = '/apis/events.k8s.io/v1/namespaces/default/events'\n"
        "local function call(...) return server:call(...) end\n"
        "local function get(path) local _, object = call('GET', path) return object end\n"
        "local function map(name, n, up_to) local code = call('POST', MAPS, { kind = 'ConfigMap',\n"
        "  apiVersion = 'v1', metadata = { name = name },\n"
        "  data = { n = tostring(n), up_to = tostring(up_to),\n"
        "  from = tostring(math.floor(require 'cluster.host'.now())) } }) assert(code == 201, "
        "code) end\n"
        "local function n(name) return tonumber(get(MAPS .. '/' .. name).data.n) end\n%s",
        statements);
    struct ml_err err;
    if (ml_server_lua_run(lua, "test", ml_str_of(text), &err) < 0)
        fail_msg("%s", ml_server_lua_traceback(lua));
}

static double reconciles(struct replica *self)
{
    static const char *const results[] = {"success", "error", "requeue", "requeue_after"};
    double sum = 0;
    struct ml_metric_family *family = ml_metrics_counter(self->metrics,
                                                         "controller_runtime_reconcile_total", "",
                                                         ml_metric_labels("controller", "result"));
    for (size_t i = 0; i < ML_COUNT(results); i++)
        sum += ml_metric_value(ml_metric_with(family, ml_metric_labels("counter", results[i])));
    return sum;
}

static void start_both(struct pair *pair)
{
    ml_operator_start(pair->a.operator);
    run(pair, 500);
    ml_operator_start(pair->b.operator);
    run(pair, 500);
}

static void test_election_standby_is_ready_and_does_nothing(void **state)
{
    struct pair *pair = *state;
    ML_AUTO(ml_buf_fini) struct ml_buf why = ML_BUF_INIT;
    start_both(pair);
    lua(pair, "map('m', 0, 5)");
    run(pair, 30000);
    lua(pair, "assert(n 'm' == 5) assert(get(LEASE).spec.holderIdentity == 'a')");
    assert_true(ml_operator_ready(pair->b.operator, & why));
    assert_true(reconciles(&pair->a) > 5);
    assert_true(reconciles(&pair->b) == 0);
}

static void test_election_leaves_the_lease_to_one_that_has_something_to_run(void **state)
{
    struct pair *pair = *state;
    write_script(pair, "return {");
    ml_operator_start(pair->a.operator);
    run(pair, 30000);
    lua(pair, "assert(get(LEASE).code == 404)");
    write_script(pair, counter);
    ml_operator_start(pair->b.operator);
    run(pair, 500);
    lua(pair, "assert(get(LEASE).spec.holderIdentity == 'b') map('m', 0, 5)");
    run(pair, 30000);
    lua(pair, "assert(n 'm' == 5)");
    ml_operator_stop(pair->a.operator, 25 * ML_NS_PER_S, on_stopped, &pair->a);
    run(pair, 900);
    assert_int_equal(pair->a.stopped, 1);
}

static void test_election_clean_end_hands_the_work_over(void **state)
{
    struct pair *pair = *state;
    start_both(pair);
    lua(pair, "map('m', 0, 20)");
    run(pair, 5500);
    ml_operator_stop(pair->a.operator, 25 * ML_NS_PER_S, on_stopped, &pair->a);
    run(pair, 900);
    assert_int_equal(pair->a.stopped, 1);
    lua(pair, "assert(get(LEASE).spec.holderIdentity == 'b')");
    run(pair, 30000);
    lua(pair, "assert(n 'm' == 20)");
    /* The Lease tells who had it, in client-go's words. */
    lua(pair, "local told = {}\n"
              "for _, e in ipairs(get(EVENTS).items) do\n"
              "  if e.reason == 'LeaderElection' then\n"
              "    told[#told + 1] = e.regarding.kind .. ': ' .. e.note\n"
              "  end\n"
              "end\n"
              "table.sort(told)\n"
              "assert(table.concat(told, '; ') == 'Lease: a became leader; '\n"
              "  .. 'Lease: a stopped leading; Lease: b became leader', table.concat(told, '; '))");
    assert_int_equal(pair->a.lost, 0);
}

/* A reconcile in progress may write once more: the other replica has to wait for it. */
static void test_election_clean_end_gives_the_lease_back_last(void **state)
{
    struct pair *pair = *state;
    write_script(pair, maker);
    start_both(pair);
    int held = ml_transport_embedded_add_fault(
        pair->a.work, &(struct ml_fault){.kind = ML_FAULT_HOLD, .path = "/secrets"});
    lua(pair, "map('m', 0, 0)");
    run(pair, 1000);
    ml_operator_stop(pair->a.operator, 25 * ML_NS_PER_S, on_stopped, &pair->a);
    run(pair, 5000);
    assert_int_equal(pair->a.stopped, 0);
    lua(pair, "assert(get(LEASE).spec.holderIdentity == 'a')");
    ml_transport_embedded_remove_fault(pair->a.work, held);
    run(pair, 900);
    assert_int_equal(pair->a.stopped, 1);
    lua(pair, "assert(get(MAPS .. '/m').data.made == 'yes')");
    lua(pair, "assert(get(LEASE).spec.holderIdentity == 'b')");
}

/* A request that leaves so late would get no answer in time. */
static void test_election_end_lets_no_write_leave_in_its_last_fifth(void **state)
{
    struct pair *pair = *state;
    write_script(pair, maker);
    ml_operator_start(pair->a.operator);
    run(pair, 500);
    int held = ml_transport_embedded_add_fault(
        pair->a.work, &(struct ml_fault){.kind = ML_FAULT_HOLD, .path = "/secrets"});
    lua(pair, "map('m', 0, 0)");
    run(pair, 1000);
    ml_operator_stop(pair->a.operator, 10 * ML_NS_PER_S, on_stopped, &pair->a);
    run(pair, 8200);
    ml_transport_embedded_remove_fault(pair->a.work, held);
    run(pair, 300);
    lua(pair, "assert(not get(MAPS .. '/m').data.made)");
    run(pair, 2000);
    assert_int_equal(pair->a.stopped, 1);
}

static void test_election_crash_is_followed_when_the_lease_is_over(void **state)
{
    struct pair *pair = *state;
    start_both(pair);
    lua(pair, "map('m', 0, 20)");
    run(pair, 5500);
    replica_fini(&pair->a);
    run(pair, 10000);
    lua(pair, "assert(n 'm' == 6, n 'm')");
    run(pair, 10000);
    lua(pair, "assert(get(LEASE).spec.holderIdentity == 'b')");
    run(pair, 30000);
    lua(pair, "assert(n 'm' == 20)");
}

/* Its work remains possible; only the Lease cannot be renewed. */
static void test_election_no_write_leaves_after_the_renew_deadline(void **state)
{
    struct pair *pair = *state;
    start_both(pair);
    lua(pair, "map('m', 0, 1000)");
    run(pair, 5000);
    ml_transport_embedded_add_fault(pair->a.renewals, &(struct ml_fault){.kind = ML_FAULT_LOSE});
    ml_transport_embedded_add_fault(pair->b.renewals, &(struct ml_fault){.kind = ML_FAULT_LOSE});
    run(pair, 10100);
    assert_int_equal(pair->a.lost, 1);
    lua(pair, "reached = n 'm' assert(reached > 10 and reached < 20, reached)");
    double before = reconciles(&pair->a);
    run(pair, 60000);
    lua(pair, "assert(n 'm' == reached, n 'm')");
    assert_true(reconciles(&pair->a) <= before + 1); /* what was under way ends */
    assert_true(reconciles(&pair->b) == 0);
}

/* The two share one loop, so the other sleeps as well. The sleeper must send nothing before it has
 * looked at its Lease. */
static void test_election_sleeper_writes_nothing_until_it_has_asked(void **state)
{
    struct pair *pair = *state;
    start_both(pair);
    lua(pair, "map('m', 0, 1000)");
    run(pair, 5000);
    lua(pair, "reached = n 'm' assert(reached < 10)\n"
              "local lease = get(LEASE) lease.spec.holderIdentity = 'c'\n"
              "assert(call('PUT', LEASE, lease) == 200)");
    ml_clock_fake_advance(&pair->clock, 60 * ML_NS_PER_S);
    run(pair, 1000);
    assert_int_equal(pair->a.lost, 1);
    lua(pair, "assert(n 'm' == reached, n 'm')");
}

int main(void)
{
    setenv("LUA_PATH", SOURCE_DIR "/?.lua;" SOURCE_DIR "/?/init.lua;" SOURCE_DIR "/lua/?.lua;;", 1);
#define TEST(name) cmocka_unit_test_setup_teardown(test_election_##name, setup, teardown)
    const struct CMUnitTest tests[] = {
        TEST(standby_is_ready_and_does_nothing),
        TEST(leaves_the_lease_to_one_that_has_something_to_run),
        TEST(clean_end_hands_the_work_over),
        TEST(clean_end_gives_the_lease_back_last),
        TEST(end_lets_no_write_leave_in_its_last_fifth),
        TEST(crash_is_followed_when_the_lease_is_over),
        TEST(no_write_leaves_after_the_renew_deadline),
        TEST(sleeper_writes_nothing_until_it_has_asked),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
