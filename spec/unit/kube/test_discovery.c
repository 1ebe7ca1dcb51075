#include "unit.h"

#include "fake_transport.h"
#include "kube/discovery.h"

#include <stdio.h>

static const char cnat_list[] =
    "{\"kind\":\"APIResourceList\",\"apiVersion\":\"v1\",\"groupVersion\":\"cnat.io/v1\","
    "\"resources\":[{\"name\":\"ats/status\",\"singularName\":\"\",\"namespaced\":true,\"kind\":"
    "\"At\",\"verbs\":[\"get\"]},{\"name\":\"ats\",\"singularName\":\"at\",\"namespaced\":true,"
    "\"kind\":\"At\",\"verbs\":[\"get\"]},{\"name\":\"clocks\",\"namespaced\":false,\"kind\":"
    "\"Clock\"},{\"name\":\"clocks/scale\",\"namespaced\":false,\"kind\":\"Scale\"},{\"name\":"
    "\"../x\",\"kind\":\"Evil\"},{\"name\":\"nokind\"},{\"name\":\"lates\",\"kind\":\"Late\"}]}";

struct world {
    struct ml_clock_fake clock;
    struct ml_loop *loop;
    struct fake_transport *server;
    struct ml_metrics *metrics;
    struct ml_random random;
    struct ml_client *client;
    struct ml_discovery *discovery;
};

struct result {
    int count;
    const struct ml_kind *kind;
    struct ml_err err;
};

static int setup(void **state)
{
    struct world *world = ml_new(struct world);
    ml_clock_fake_init(&world->clock, 0);
    world->loop = ml_loop_new(&world->clock.clock);
    world->server = fake_transport_new(world->loop);
    world->metrics = ml_metrics_new();
    ml_random_init(&world->random, 1);
    world->client = ml_client_new(&(struct ml_client_opts){
        .loop = world->loop,
        .transport = fake_transport_seam(world->server),
        .metrics = world->metrics,
        .random = &world->random,
    });
    world->discovery = ml_discovery_new(world->client, world->loop);
    *state = world;
    return 0;
}

static int teardown(void **state)
{
    struct world *world = *state;
    ml_discovery_free(world->discovery);
    ml_client_free(world->client);
    fake_transport_free(world->server);
    ml_metrics_free(world->metrics);
    ml_loop_free(world->loop);
    free(world);
    return 0;
}

static void on_done(void *context, const struct ml_kind *kind, const struct ml_err *err)
{
    struct result *result = context;
    assert_int_equal(!kind, !!err);
    result->count++;
    result->kind = kind;
    result->err = err ? *err : ML_ERR_INIT;
}

static struct ml_gvk gvk_of(const char *api_version, const char *kind)
{
    struct ml_gvk gvk;
    assert_true(ml_gvk_parse(ml_str_of(api_version), ml_str_of(kind), &gvk));
    return gvk;
}

static struct ml_discovery_wait *resolve(struct world *world, const char *api_version,
                                         const char *kind, struct result *result)
{
    struct ml_gvk gvk = gvk_of(api_version, kind);
    int before = result->count;
    struct ml_discovery_wait *wait = ml_discovery_resolve(world->discovery, &gvk, on_done, result);
    assert_int_equal(result->count, before); /* never inside the call */
    return wait;
}

static void test_discovery_turns_a_kind_into_a_resource(void **state)
{
    struct world *world = *state;
    struct result result = {0};
    struct ml_gvk gvk = gvk_of("cnat.io/v1", "At");
    assert_null(ml_discovery_known(world->discovery, &gvk));
    resolve(world, "cnat.io/v1", "At", &result);
    fake_reply(fake_expect(world->server, "GET", "/apis/cnat.io/v1"), 200, cnat_list);
    assert_int_equal(result.count, 0); /* from the loop, not from inside */
    ml_loop_poll(world->loop);
    assert_int_equal(result.count, 1);
    assert_string_equal(result.kind->api_version, "cnat.io/v1");
    assert_string_equal(result.kind->group, "cnat.io");
    assert_string_equal(result.kind->version, "v1");
    assert_string_equal(result.kind->kind, "At");
    assert_string_equal(result.kind->plural, "ats");
    assert_true(result.kind->namespaced);
    assert_true(result.kind->has_status);
    assert_ptr_equal(ml_discovery_known(world->discovery, &gvk), result.kind);

    struct result clock = {0}, again = {0};
    resolve(world, "cnat.io/v1", "Clock", &clock);
    resolve(world, "cnat.io/v1", "At", &again);
    ml_loop_poll(world->loop);
    fake_expect_none(world->server);
    assert_false(clock.kind->namespaced);
    assert_false(clock.kind->has_status);
    assert_ptr_equal(again.kind, result.kind);
}

static void test_discovery_passes_over_what_is_no_resource(void **state)
{
    struct world *world = *state;
    struct result results[3] = {0};
    resolve(world, "cnat.io/v1", "Scale", &results[0]);
    resolve(world, "cnat.io/v1", "Evil", &results[1]);
    resolve(world, "cnat.io/v1", "Late", &results[2]);
    fake_reply(fake_next(world->server), 200, cnat_list);
    ml_loop_poll(world->loop);
    assert_int_equal(results[0].err.kind, ML_ENOT_FOUND);
    assert_int_equal(results[1].err.kind, ML_ENOT_FOUND);
    assert_non_null(results[2].kind);
    assert_string_equal(results[0].err.message,
                        "the server has no kind Scale in cnat.io/v1; is its CRD installed?");
}

static void test_discovery_knows_what_the_host_needs(void **state)
{
    struct world *world = *state;
    static const struct {
        const char *api_version, *kind, *plural;
        bool namespaced;
    } rows[] = {{"v1", "ConfigMap", "configmaps", true},
                {"v1", "Namespace", "namespaces", false},
                {"events.k8s.io/v1", "Event", "events", true},
                {"coordination.k8s.io/v1", "Lease", "leases", true}};
    for (size_t i = 0; i < ML_COUNT(rows); i++) {
        struct ml_gvk gvk = gvk_of(rows[i].api_version, rows[i].kind);
        const struct ml_kind *kind = ml_discovery_known(world->discovery, &gvk);
        assert_non_null(kind);
        assert_string_equal(kind->plural, rows[i].plural);
        assert_int_equal(kind->namespaced, rows[i].namespaced);
        struct result result = {0};
        resolve(world, rows[i].api_version, rows[i].kind, &result);
        assert_int_equal(result.count, 0);
        ml_loop_poll(world->loop);
        assert_ptr_equal(result.kind, kind);
    }
    fake_expect_none(world->server);
}

static void test_discovery_asks_the_core_group_under_api(void **state)
{
    struct world *world = *state;
    struct result result = {0};
    resolve(world, "v1", "Pod", &result);
    fake_reply(fake_expect(world->server, "GET", "/api/v1"), 200,
               "{\"resources\":[{\"name\":\"pods\",\"namespaced\":true,\"kind\":\"Pod\"}]}");
    ml_loop_poll(world->loop);
    assert_string_equal(result.kind->group, "");
    assert_string_equal(result.kind->api_version, "v1");
}

static void test_discovery_shares_a_question(void **state)
{
    struct world *world = *state;
    struct result first = {0}, second = {0}, canceled = {0};
    resolve(world, "cnat.io/v1", "At", &first);
    struct ml_discovery_wait *wait = resolve(world, "cnat.io/v1", "At", &canceled);
    resolve(world, "cnat.io/v1", "Clock", &second);
    ml_discovery_cancel(wait);
    fake_reply(fake_next(world->server), 200, cnat_list);
    fake_expect_none(world->server);
    ml_loop_poll(world->loop);
    assert_int_equal(first.count, 1);
    assert_int_equal(second.count, 1);
    assert_int_equal(canceled.count, 0);
}

static void test_discovery_asks_again_a_second_after_a_no(void **state)
{
    struct world *world = *state;
    struct result result = {0};
    resolve(world, "cnat.io/v1", "At", &result);
    fake_reply(fake_next(world->server), 404, "404 page not found");
    ml_loop_poll(world->loop);
    assert_int_equal(result.err.kind, ML_ENOT_FOUND);
    ml_clock_fake_advance(&world->clock, 900 * ML_NS_PER_MS);
    resolve(world, "cnat.io/v1", "At", &result);
    ml_loop_poll(world->loop);
    assert_int_equal(result.count, 2);
    fake_expect_none(world->server);
    ml_clock_fake_advance(&world->clock, 100 * ML_NS_PER_MS);
    resolve(world, "cnat.io/v1", "At", &result);
    fake_reply(fake_next(world->server), 200, cnat_list);
    ml_loop_poll(world->loop);
    assert_int_equal(result.count, 3);
    assert_non_null(result.kind);
}

static void test_discovery_does_not_keep_other_failures(void **state)
{
    struct world *world = *state;
    static const struct {
        int status;
        const char *body;
        int kind;
    } rows[] = {{503, "", ML_EUNAVAILABLE},
                {403, "", ML_EFORBIDDEN},
                {200, "{", ML_EINVALID},
                {200, "{\"kind\":\"X\"}", ML_EINVALID}};
    for (size_t i = 0; i < ML_COUNT(rows); i++) {
        struct result result = {0};
        resolve(world, "cnat.io/v1", "At", &result);
        fake_reply(fake_next(world->server), rows[i].status, rows[i].body);
        ml_loop_poll(world->loop);
        assert_int_equal(result.err.kind, rows[i].kind);
    }
}

static void test_discovery_forgets_a_kind_but_keeps_its_struct(void **state)
{
    struct world *world = *state;
    struct result first = {0}, second = {0};
    resolve(world, "cnat.io/v1", "At", &first);
    fake_reply(fake_next(world->server), 200, cnat_list);
    ml_loop_poll(world->loop);
    ml_discovery_forget(world->discovery, first.kind);
    struct ml_gvk gvk = gvk_of("cnat.io/v1", "At");
    assert_null(ml_discovery_known(world->discovery, &gvk));
    resolve(world, "cnat.io/v1", "At", &second);
    fake_reply(fake_next(world->server), 200,
               "{\"resources\":[{\"name\":\"attas\",\"namespaced\":false,\"kind\":\"At\"}]}");
    ml_loop_poll(world->loop);
    assert_ptr_equal(second.kind, first.kind);
    assert_string_equal(first.kind->plural, "attas");
    assert_false(first.kind->has_status);
}

static void test_discovery_may_be_freed_while_it_asks(void **state)
{
    struct world *world = *state;
    struct result asked = {0}, settled = {0};
    resolve(world, "cnat.io/v1", "At", &asked);
    resolve(world, "v1", "ConfigMap", &settled);
    ml_discovery_free(world->discovery);
    world->discovery = NULL;
    ml_loop_poll(world->loop);
    assert_true(fake_next(world->server)->canceled);
    assert_int_equal(asked.count + settled.count, 0);
}

#define WITH(test) cmocka_unit_test_setup_teardown(test, setup, teardown)

int main(void)
{
    const struct CMUnitTest tests[] = {
        WITH(test_discovery_turns_a_kind_into_a_resource),
        WITH(test_discovery_passes_over_what_is_no_resource),
        WITH(test_discovery_knows_what_the_host_needs),
        WITH(test_discovery_asks_the_core_group_under_api),
        WITH(test_discovery_shares_a_question),
        WITH(test_discovery_asks_again_a_second_after_a_no),
        WITH(test_discovery_does_not_keep_other_failures),
        WITH(test_discovery_forgets_a_kind_but_keeps_its_struct),
        WITH(test_discovery_may_be_freed_while_it_asks),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
