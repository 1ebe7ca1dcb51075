/* One member of a shard group, request by request: what it may do before an answer and after it,
 * and what it makes of answers that come late, or not at all. */
#include "unit.h"

#include "codec/json.h"
#include "fake_transport.h"
#include "state/shard.h"
#include "state/shard_group.h"

#include <stdio.h>

#define GROUP "moonloop"
#define KEYS  100
#define OTHER "0000000000000002" /* another member, and as a view: it claims everything */

struct member {
    struct ml_clock_fake clock;
    struct ml_loop *loop;
    struct ml_random random;
    struct ml_metrics *metrics;
    struct fake_transport *server;
    struct ml_client *client;
    struct ml_shard *shard;
    char *name, *view; /* of its Lease, as the server has it; NULL: there is none */
    int version;
    bool busy, cut; /* work is under way; it was told that patience is over */
    int lost;
    char why[ML_ERR_MESSAGE_MAX];
};

/* ---- the server ---- */

static char *lease(const char *name, int version, const char *holder, const char *view)
{
    return ml_asprintf("{\"metadata\":{\"name\":\"%s\",\"uid\":\"u-%s\",\"resourceVersion\":\"%d\","
                       "\"labels\":{\"" SHARD_LABEL "\":\"" GROUP "\"},"
                       "\"annotations\":{\"" SHARD_ANNOTATION "\":\"%s\"}},"
                       "\"spec\":{\"holderIdentity\":\"%s\",\"leaseDurationSeconds\":15}}",
                       name, name, version, view, holder);
}

static char *own_lease(const struct member *self)
{
    return lease(self->name, self->version, "a", self->view);
}

/* The next request that is no watch. */
static struct fake_call *asked(struct member *self, const char *method)
{
    ml_loop_poll(self->loop);
    struct fake_call *call = fake_next(self->server);
    if (call->streaming) {
        fake_head(call, 200);
        call = fake_next(self->server);
    }
    assert_string_equal(call->method, method);
    return call;
}

/* A list is answered, with another member's Lease if `other` is its view. */
static void show(struct member *self, const char *other)
{
    ML_AUTO_FREE char *own = self->view ? own_lease(self) : ml_strdup("");
    ML_AUTO_FREE char *second = other ? lease(GROUP "-" OTHER, self->version, "b", other)
                                      : ml_strdup("");
    ML_AUTO_FREE char *list = ml_asprintf("{\"items\":[%s%s%s]}", own, *own && other ? "," : "",
                                          second);
    fake_reply(asked(self, "GET"), 200, list);
}

/* The server has what the request wants. */
static void take(struct member *self, const struct fake_call *call)
{
    struct ml_str body = {call->body, call->body_len};
    free(self->name);
    free(self->view);
    self->name = ml_json_find_string(body, "metadata", "name", NULL);
    self->view = ml_json_find_string(body, "metadata", "annotations", SHARD_ANNOTATION, NULL);
    self->version++;
}

static void reply_granted(struct member *self, struct fake_call *call)
{
    take(self, call);
    ML_AUTO_FREE char *own = own_lease(self);
    fake_reply(call, strcmp(call->method, "POST") == 0 ? 201 : 200, own);
}

static void grant(struct member *self)
{
    reply_granted(self, asked(self, self->view ? "PUT" : "POST"));
}

/* ---- the member ---- */

static void on_changed(void *context)
{
    (void)context;
}

static bool is_idle(void *context, bool cut)
{
    struct member *self = context;
    self->cut = cut;
    return !self->busy;
}

static void on_lost(void *context, const struct ml_err *err)
{
    struct member *self = context;
    self->lost++;
    snprintf(self->why, sizeof self->why, "%s", err->message);
}

static int setup(void **state)
{
    static const struct ml_shard_handler handler = {on_changed, is_idle, on_lost};
    struct member *self = ml_new(struct member);
    ml_clock_fake_init(&self->clock, INT64_C(1700000000) * ML_NS_PER_S);
    self->loop = ml_loop_new(&self->clock.clock);
    ml_random_init(&self->random, 1);
    self->metrics = ml_metrics_new();
    self->server = fake_transport_new(self->loop);
    self->client = ml_client_new(&(struct ml_client_opts){
        .loop = self->loop,
        .transport = fake_transport_seam(self->server),
        .metrics = self->metrics,
        .random = &self->random,
        .exempt = true,
    });
    const struct ml_lease_opts opts = {
        .client = self->client,
        .loop = self->loop,
        .random = &self->random,
        .metrics = self->metrics,
        .ns = "ns",
        .name = GROUP,
        .identity = "a",
        .times = ML_LEASE_TIMES_DEFAULT,
    };
    self->shard = ml_shard_new(&opts, &handler, self);
    *state = self;
    return 0;
}

static int teardown(void **state)
{
    struct member *self = *state;
    ml_shard_free(self->shard);
    ml_client_free(self->client);
    fake_transport_free(self->server);
    ml_metrics_free(self->metrics);
    ml_loop_free(self->loop);
    free(self->name);
    free(self->view);
    free(self);
    return 0;
}

/* Time passes, and its loop does not run. */
static void sleep_through(struct member *self, int64_t ms)
{
    ml_clock_fake_advance(&self->clock, ms * ML_NS_PER_MS);
}

static bool may_write(struct member *self)
{
    struct ml_err err;
    return ml_shard_fence(self->shard, "PUT", "/api/v1/namespaces/ns/pods/x", &err) == 0;
}

/* Of a hundred keys, how many it acts on. */
static int acted(const struct member *self)
{
    int count = 0;
    for (int i = 0; i < KEYS; i++) {
        char key[32];
        snprintf(key, sizeof key, "ns/object-%d", i);
        count += ml_shard_acts(self->shard, ML_STR("cnat"), ml_str_of(key));
    }
    return count;
}

static void join_alone(struct member *self)
{
    ml_shard_start(self->shard);
    show(self, NULL);
    grant(self);
    show(self, NULL);
    assert_int_equal(acted(self), KEYS);
}

/* The next round: its renewal is granted, and the list that follows shows the other one. */
static void pass_round(struct member *self, const char *other)
{
    sleep_through(self, 2000);
    grant(self);
    show(self, other);
}

/* ---- tests ---- */

static void test_shard_acts_when_a_list_after_the_grant_shows_no_other_claim(void **state)
{
    struct member *self = *state;
    ml_shard_start(self->shard);
    show(self, NULL);
    assert_int_equal(acted(self), 0);
    assert_false(may_write(self));
    grant(self);
    assert_int_equal(acted(self), 0); /* somebody may have claimed them as well, and before */
    show(self, OTHER);
    assert_int_equal(acted(self), 0);
    assert_true(may_write(self));
}

static void test_shard_gives_away_when_work_has_ended(void **state)
{
    struct member *self = *state;
    join_alone(self);
    ML_AUTO_FREE char *alone = ml_strdup(self->view);
    self->busy = true;
    pass_round(self, OTHER);
    assert_int_equal(acted(self), 0); /* nothing new begins */
    pass_round(self, OTHER);
    assert_string_equal(self->view, alone); /* and what is under way is not given away */
    self->busy = false;
    ml_shard_settled(self->shard);
    grant(self);
    assert_string_not_equal(self->view, alone);
    show(self, self->view); /* the other one says the same */
    assert_in_range(acted(self), KEYS / 4, KEYS * 3 / 4);
}

static void test_shard_has_work_cut_that_does_not_end(void **state)
{
    struct member *self = *state;
    join_alone(self);
    self->busy = true;
    for (int i = 0; i < 5; i++) {
        pass_round(self, OTHER);
        assert_false(self->cut);
    }
    sleep_through(self, 2000);
    ml_loop_poll(self->loop);
    assert_true(self->cut);
}

static void test_shard_fence_closes_by_the_clock_alone(void **state)
{
    struct member *self = *state;
    join_alone(self);
    sleep_through(self, 9999);
    assert_true(may_write(self));
    sleep_through(self, 1);
    assert_false(may_write(self)); /* before its loop has run at all */
    assert_int_equal(acted(self), 0);
    ml_loop_poll(self->loop);
    assert_int_equal(self->lost, 1);
    assert_non_null(strstr(self->why, "not renewed for 10 s"));
}

static void test_shard_grant_after_its_time_is_none(void **state)
{
    struct member *self = *state;
    join_alone(self);
    sleep_through(self, 2000);
    fake_fail(asked(self, "PUT"), ML_ENETWORK, "connection reset");
    for (int i = 0; i < 2; i++) {
        sleep_through(self, 2000);
        show(self, NULL);
        fake_fail(asked(self, "PUT"), ML_ENETWORK, "connection reset");
    }
    sleep_through(self, 2000);
    show(self, NULL);
    struct fake_call *renewal = asked(self, "PUT"); /* sent after 8 s */
    sleep_through(self, 3000);
    reply_granted(self, renewal); /* maybe when others had counted it as dead */
    assert_int_equal(self->lost, 1);
    assert_non_null(strstr(self->why, "renewed too late"));
    assert_false(may_write(self));
}

static void test_shard_ends_when_its_lease_was_deleted(void **state)
{
    struct member *self = *state;
    join_alone(self);
    sleep_through(self, 2000);
    free(ml_take(&self->view));
    fake_refuse(asked(self, "PUT"), 404, "NotFound", "leases \"" GROUP "\" not found");
    assert_int_equal(self->lost, 0); /* a list says so, not a refusal */
    sleep_through(self, 2000);
    show(self, NULL);
    assert_int_equal(self->lost, 1);
    assert_non_null(strstr(self->why, "it was deleted"));
    assert_false(may_write(self));
    ml_loop_poll(self->loop);
    fake_expect_none(self->server); /* it does not take back what was taken away */
}

int main(void)
{
#define TEST(name) cmocka_unit_test_setup_teardown(test_shard_##name, setup, teardown)
    const struct CMUnitTest tests[] = {
        TEST(acts_when_a_list_after_the_grant_shows_no_other_claim),
        TEST(gives_away_when_work_has_ended),
        TEST(has_work_cut_that_does_not_end),
        TEST(fence_closes_by_the_clock_alone),
        TEST(grant_after_its_time_is_none),
        TEST(ends_when_its_lease_was_deleted),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
