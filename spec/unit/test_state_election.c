/* Candidates for one Lease in virtual time, on a server that keeps a Lease as kube-apiserver does:
 * a version that every write raises, and refuses with 409 what was read too long ago. */
#include "state_world.h"

#include "codec/json.h"
#include "state/election.h"

#define PODS    "/api/v1/namespaces/ns/pods"
#define WATCHES 64

enum mood {
    ANSWERS,
    SILENT,       /* requests wait for ever */
    UNREACHABLE,  /* refused at once; nothing is done */
    LOSES_WRITES, /* done, and the reply is lost */
    NO_WATCH,     /* 403 for it, else answers */
};

struct server {
    char *spec; /* NULL: there is no Lease */
    int version;
    int writes;
    struct fake_call *watches[WATCHES];
    size_t watch_count;
};

struct candidate {
    struct world world; /* only its client and transport count; loop and clock are the first's */
    struct server *server;
    enum mood mood;
    struct ml_election *election;
    int led, lost, released;
    char why[ML_ERR_MESSAGE_MAX];
};

struct pair {
    struct ml_clock_fake clock;
    struct ml_loop *loop;
    struct ml_random random;
    struct server server;
    struct candidate a, b;
};

/* ---- the server ---- */

static char *lease_json(const struct server *server)
{
    return ml_asprintf("{\"kind\":\"Lease\",\"apiVersion\":\"coordination.k8s.io/v1\",\"metadata\":"
                       "{\"name\":\"moonloop\",\"namespace\":\"ns\",\"labels\":{\"kept\":\"yes\"},"
                       "\"resourceVersion\":\"%d\"}%s%s}",
                       server->version, *server->spec ? ",\"spec\":" : "", server->spec);
}

static void tell_watches(struct server *server, const char *type)
{
    ML_AUTO_FREE char *json = lease_json(server);
    ML_AUTO_FREE char *line = event_line(type, json);
    for (size_t i = 0; i < server->watch_count; i++)
        if (!server->watches[i]->canceled && !server->watches[i]->over)
            fake_piece(server->watches[i], line);
}

static void set_spec(struct server *server, struct ml_str spec)
{
    ML_AUTO_FREE char *old = server->spec; /* which `spec` may be */
    server->spec = ml_str_dup(spec);
    server->version++;
    tell_watches(server, "MODIFIED");
}

static void delete_lease(struct server *server)
{
    tell_watches(server, "DELETED");
    free(ml_take(&server->spec));
}

static void reply_lease(struct candidate *self, struct fake_call *call, int status)
{
    ML_AUTO_FREE char *json = lease_json(self->server);
    if (self->mood == LOSES_WRITES && status != 200)
        fake_fail(call, ML_ENETWORK, "connection reset");
    else if (self->mood == LOSES_WRITES && strcmp(call->method, "GET") != 0)
        fake_fail(call, ML_ENETWORK, "connection reset");
    else
        fake_reply(call, status, json);
}

static void write_lease(struct candidate *self, struct fake_call *call)
{
    struct ml_str body = {call->body, call->body_len}, spec;
    assert_true(ml_json_find(body, &spec, "spec", NULL));
    self->server->writes++;
    set_spec(self->server, spec);
    reply_lease(self, call, strcmp(call->method, "POST") == 0 ? 201 : 200);
}

static void answer_put(struct candidate *self, struct fake_call *call)
{
    struct ml_str body = {call->body, call->body_len};
    ML_AUTO_FREE char *version = ml_json_find_string(body, "metadata", "resourceVersion", NULL);
    ML_AUTO_FREE char *kept = ml_json_find_string(body, "metadata", "labels", "kept", NULL);
    assert_string_equal(kept, "yes");
    if (!self->server->spec)
        fake_refuse(call, 404, "NotFound", "leases \"moonloop\" not found");
    else if (atoi(version) != self->server->version)
        fake_refuse(call, 409, "Conflict", "the object has been modified");
    else
        write_lease(self, call);
}

static void answer_watch(struct candidate *self, struct fake_call *call)
{
    if (self->mood == NO_WATCH) {
        fake_refuse(call, 403, "Forbidden", "cannot watch");
        return;
    }
    assert_true(self->server->watch_count < WATCHES);
    self->server->watches[self->server->watch_count++] = call;
    fake_head(call, 200);
}

static void answer(void *context, struct fake_call *call)
{
    struct candidate *self = context;
    if (self->mood == SILENT)
        return;
    if (self->mood == UNREACHABLE)
        fake_fail(call, ML_ENETWORK, "connection refused");
    else if (call->streaming)
        answer_watch(self, call);
    else if (strcmp(call->method, "PUT") == 0)
        answer_put(self, call);
    else if (strcmp(call->method, "POST") == 0 && self->server->spec)
        fake_refuse(call, 409, "AlreadyExists", "leases \"moonloop\" already exists");
    else if (strcmp(call->method, "POST") == 0)
        write_lease(self, call);
    else if (self->server->spec)
        reply_lease(self, call, 200);
    else
        fake_refuse(call, 404, "NotFound", "leases \"moonloop\" not found");
}

/* ---- the candidates ---- */

static void on_led(void *context)
{
    struct candidate *self = context;
    self->led++;
}

static void on_lost(void *context, const struct ml_err *err)
{
    struct candidate *self = context;
    self->lost++;
    snprintf(self->why, sizeof self->why, "%s", err->message);
}

static void on_released(void *context)
{
    struct candidate *self = context;
    self->released++;
}

static const struct ml_election_handler handler = {on_led, on_lost};

static void candidate_init(struct pair *pair, struct candidate *self, const char *identity)
{
    struct world *world = &self->world;
    self->server = &pair->server;
    world->server = fake_transport_new(pair->loop);
    fake_set_handler(world->server, answer, self);
    world->metrics = ml_metrics_new();
    world->client = ml_client_new(&(struct ml_client_opts){
        .loop = pair->loop,
        .transport = fake_transport_seam(world->server),
        .metrics = world->metrics,
        .random = &pair->random,
    });
    self->election = ml_election_new(&(struct ml_election_opts){
        .client = world->client,
        .loop = pair->loop,
        .random = &pair->random,
        .metrics = world->metrics,
        .ns = "ns",
        .name = "moonloop",
        .identity = identity,
        .times = ML_LEASE_TIMES_DEFAULT,
        .handler = &handler,
        .context = self,
    });
}

static void candidate_fini(struct candidate *self)
{
    ml_election_free(ml_take(&self->election));
    ml_client_free(self->world.client);
    fake_transport_free(self->world.server);
    ml_metrics_free(self->world.metrics);
}

static int setup(void **state)
{
    struct pair *pair = ml_new(struct pair);
    ml_clock_fake_init(&pair->clock, INT64_C(1700000000) * ML_NS_PER_S);
    pair->loop = ml_loop_new(&pair->clock.clock);
    ml_random_init(&pair->random, 7);
    candidate_init(pair, &pair->a, "a");
    candidate_init(pair, &pair->b, "b");
    *state = pair;
    return 0;
}

static int teardown(void **state)
{
    struct pair *pair = *state;
    candidate_fini(&pair->a);
    candidate_fini(&pair->b);
    ml_loop_free(pair->loop);
    free(pair->server.spec);
    free(pair);
    return 0;
}

static bool may_write(struct candidate *self)
{
    struct ml_err err;
    return self->election && ml_election_fence(self->election, "POST", PODS, &err) == 0;
}

/* What must hold at every moment. */
static void check(struct pair *pair)
{
    assert_false(may_write(&pair->a) && may_write(&pair->b));
}

/* In steps of 50 ms. */
static void run(struct pair *pair, int64_t ms)
{
    ml_loop_poll(pair->loop);
    check(pair);
    for (int64_t passed = 0; passed < ms; passed += 50) {
        ml_clock_fake_advance(&pair->clock, 50 * ML_NS_PER_MS);
        check(pair); /* before anybody's timer: the clock alone decides */
        ml_loop_poll(pair->loop);
        check(pair);
    }
}

/* The process sleeps: time passes, and its loop notices afterwards. */
static void sleep_through(struct pair *pair, int64_t ms)
{
    ml_clock_fake_advance(&pair->clock, ms * ML_NS_PER_MS);
}

static void start_a(struct pair *pair)
{
    ml_election_start(pair->a.election);
    run(pair, 50);
    assert_true(may_write(&pair->a));
}

/* `a` leads, `b` stands by. */
static void start_both(struct pair *pair)
{
    start_a(pair);
    ml_election_start(pair->b.election);
    run(pair, 5000);
    assert_true(may_write(&pair->a));
    assert_false(may_write(&pair->b));
    assert_int_equal(pair->b.led, 0);
}

static char *field(struct pair *pair, const char *name)
{
    char *text = ml_json_find_string(ml_str_of(pair->server.spec), name, NULL);
    return text ? text : ml_strdup("");
}

static void assert_holder(struct pair *pair, const char *want)
{
    ML_AUTO_FREE char *holder = field(pair, "holderIdentity");
    assert_string_equal(holder, want);
}

static int64_t transitions(struct pair *pair)
{
    struct ml_str raw;
    int64_t value = -1;
    assert_true(ml_json_find(ml_str_of(pair->server.spec), &raw, "leaseTransitions", NULL));
    assert_true(ml_str_to_i64(raw, &value));
    return value;
}

static double metric(struct candidate *self, bool gauge, const char *name)
{
    struct ml_metric_family *family = gauge ? ml_metrics_gauge(self->world.metrics, name, "",
                                                               ml_metric_labels("name"))
                                            : ml_metrics_counter(self->world.metrics, name, "",
                                                                 ml_metric_labels("name"));
    return ml_metric_value(ml_metric_with(family, ml_metric_labels("moonloop")));
}

static double master_status(struct candidate *self)
{
    return metric(self, true, "leader_election_master_status");
}

static double slow_paths(struct candidate *self)
{
    return metric(self, false, "leader_election_slowpath_total");
}

/* ---- the tests ---- */

static void test_election_alone_creates_the_lease_and_leads(void **state)
{
    struct pair *pair = *state;
    struct ml_err err;
    assert_false(may_write(&pair->a));
    start_a(pair);
    assert_int_equal(pair->a.led, 1);
    assert_true(master_status(&pair->a) == 1);
    assert_string_equal(pair->server.spec,
                        "{\"holderIdentity\":\"a\",\"leaseDurationSeconds\":15,"
                        "\"acquireTime\":\"2023-11-14T22:13:20.000000Z\","
                        "\"renewTime\":\"2023-11-14T22:13:20.000000Z\",\"leaseTransitions\":0}");
    assert_int_equal(ml_election_fence(pair->a.election, "DELETE", PODS, &err), 0);
}

static void test_election_renews_every_two_seconds_with_one_write(void **state)
{
    struct pair *pair = *state;
    start_a(pair);
    size_t before = fake_count(pair->a.world.server);
    run(pair, 60000);
    assert_int_equal(fake_count(pair->a.world.server) - before, 30);
    assert_true(may_write(&pair->a));
    assert_int_equal(transitions(pair), 0);
    assert_true(slow_paths(&pair->a) == 0);
    ML_AUTO_FREE char *acquired = field(pair, "acquireTime");
    ML_AUTO_FREE char *renewed = field(pair, "renewTime");
    assert_string_equal(acquired, "2023-11-14T22:13:20.000000Z");
    assert_string_equal(renewed, "2023-11-14T22:14:20.000000Z");
}

static void test_election_standby_writes_nothing_but_events(void **state)
{
    struct pair *pair = *state;
    struct ml_err err;
    start_both(pair);
    assert_int_equal(ml_election_fence(pair->b.election, "PATCH", PODS "/x/status", &err),
                     ML_ECANCELED);
    assert_non_null(strstr(err.message, "does not hold ns/moonloop"));
    assert_int_equal(ml_election_fence(pair->b.election, "POST",
                                       "/apis/events.k8s.io/v1/namespaces/ns/events", &err),
                     0);
    run(pair, 600000);
    assert_int_equal(pair->b.led, 0);
    assert_holder(pair, "a");
}

static void test_election_successor_of_a_crash_waits_for_the_lease_to_expire(void **state)
{
    struct pair *pair = *state;
    start_both(pair);
    ml_election_free(ml_take(&pair->a.election));
    run(pair, 12000);
    assert_int_equal(pair->b.led, 0);
    run(pair, 8000); /* lease + 5 s in all */
    assert_int_equal(pair->b.led, 1);
    assert_true(may_write(&pair->b));
    assert_holder(pair, "b");
    assert_int_equal(transitions(pair), 1);
}

static void test_election_release_hands_over_within_a_second(void **state)
{
    struct pair *pair = *state;
    start_both(pair);
    ml_election_release(pair->a.election, 2 * ML_NS_PER_S, on_released, &pair->a);
    assert_false(may_write(&pair->a)); /* from now on, before the server knows */
    run(pair, 500);
    assert_int_equal(pair->a.released, 1);
    assert_int_equal(pair->a.lost, 0);
    assert_true(master_status(&pair->a) == 0);
    assert_int_equal(pair->b.led, 1);
    assert_true(may_write(&pair->b));
    assert_int_equal(transitions(pair), 1);
}

static void test_election_release_hands_over_without_the_right_to_watch_too(void **state)
{
    struct pair *pair = *state;
    pair->b.mood = NO_WATCH;
    start_both(pair);
    ml_election_release(pair->a.election, 2 * ML_NS_PER_S, on_released, &pair->a);
    run(pair, 4500);
    assert_int_equal(pair->b.led, 1);
}

static void test_election_release_of_what_it_does_not_hold_writes_nothing(void **state)
{
    struct pair *pair = *state;
    start_both(pair);
    int writes = pair->server.writes;
    ml_election_release(pair->b.election, 2 * ML_NS_PER_S, on_released, &pair->b);
    run(pair, 50);
    assert_int_equal(pair->b.released, 1);
    assert_int_equal(pair->server.writes, writes);
    assert_holder(pair, "a");
}

static void test_election_release_after_a_renewal_of_unknown_outcome(void **state)
{
    struct pair *pair = *state;
    start_a(pair);
    set_spec(&pair->server, ml_str_of(pair->server.spec)); /* the version is not what `a` knows */
    ml_election_release(pair->a.election, 2 * ML_NS_PER_S, on_released, &pair->a);
    run(pair, 50);
    assert_int_equal(pair->a.released, 1);
    assert_holder(pair, "");
}

static void test_election_release_gives_up_after_its_patience(void **state)
{
    struct pair *pair = *state;
    start_a(pair);
    pair->a.mood = SILENT;
    ml_election_release(pair->a.election, 2 * ML_NS_PER_S, on_released, &pair->a);
    run(pair, 1900);
    assert_int_equal(pair->a.released, 0);
    run(pair, 200);
    assert_int_equal(pair->a.released, 1);
}

/* Both ways of being away, to the renew deadline and beyond. */
static void check_away(struct pair *pair, enum mood mood)
{
    start_both(pair);
    run(pair, 2000);
    pair->a.mood = mood;
    run(pair, 7900);
    assert_int_equal(pair->a.lost, 0);
    assert_true(may_write(&pair->a)); /* at most 2 s old when it went */
    run(pair, 2200);
    assert_int_equal(pair->a.lost, 1);
    assert_false(may_write(&pair->a));
    assert_true(master_status(&pair->a) == 0);
    assert_non_null(strstr(pair->a.why, "lost the lease ns/moonloop: not renewed for 10 s"));
    assert_int_equal(pair->b.led, 0); /* not before the lease is over */
    run(pair, 10000);
    assert_int_equal(pair->b.led, 1);
}

static void test_election_is_lost_when_the_server_is_silent_to_the_deadline(void **state)
{
    check_away(*state, SILENT);
}

static void test_election_is_lost_when_the_server_is_unreachable_to_the_deadline(void **state)
{
    check_away(*state, UNREACHABLE);
}

static void test_election_outlives_an_outage_that_ends_before_the_deadline(void **state)
{
    struct pair *pair = *state;
    start_both(pair);
    for (int i = 0; i < 20; i++) { /* five seconds up, five down */
        pair->a.mood = pair->b.mood = i % 2 ? UNREACHABLE : ANSWERS;
        run(pair, 5000);
    }
    assert_true(may_write(&pair->a));
    assert_int_equal(pair->a.lost, 0);
    assert_int_equal(transitions(pair), 0);
}

static void test_election_outage_for_all_leaves_at_most_one_holder(void **state)
{
    struct pair *pair = *state;
    start_both(pair);
    pair->a.mood = pair->b.mood = UNREACHABLE;
    run(pair, 60000);
    assert_int_equal(pair->a.lost, 1);
    assert_int_equal(pair->b.led, 0);
    pair->a.mood = pair->b.mood = ANSWERS;
    run(pair, 25000); /* it may not have seen the last renewal before */
    assert_int_equal(pair->b.led, 1);
}

static void test_election_lost_reply_of_a_renewal_is_found_out(void **state)
{
    struct pair *pair = *state;
    start_both(pair);
    pair->a.mood = LOSES_WRITES;
    run(pair, 4000);
    pair->a.mood = ANSWERS;
    run(pair, 20000);
    assert_true(may_write(&pair->a));
    assert_int_equal(pair->a.lost, 0);
    assert_true(slow_paths(&pair->a) >= 2);
    assert_int_equal(transitions(pair), 0);
}

static void test_election_lost_reply_of_the_first_write_is_found_out(void **state)
{
    struct pair *pair = *state;
    pair->a.mood = LOSES_WRITES;
    ml_election_start(pair->a.election);
    run(pair, 1000);
    assert_holder(pair, "a");
    assert_false(may_write(&pair->a)); /* nobody said so */
    pair->a.mood = ANSWERS;
    run(pair, 5000);
    assert_true(may_write(&pair->a));
    assert_int_equal(pair->a.led, 1);
}

static void test_election_conflict_is_read_and_written_again(void **state)
{
    struct pair *pair = *state;
    start_both(pair);
    set_spec(&pair->server, ml_str_of(pair->server.spec)); /* somebody added a label */
    run(pair, 2100);
    assert_true(may_write(&pair->a));
    assert_true(slow_paths(&pair->a) == 1);
    run(pair, 30000);
    assert_true(slow_paths(&pair->a) == 1);
    assert_int_equal(pair->b.led, 0);
}

static void test_election_holder_that_sees_another_name_has_lost_at_once(void **state)
{
    struct pair *pair = *state;
    start_a(pair);
    set_spec(&pair->server, ML_STR("{\"holderIdentity\":\"c\",\"leaseDurationSeconds\":15}"));
    run(pair, 2100);
    assert_int_equal(pair->a.lost, 1);
    assert_non_null(strstr(pair->a.why, "c holds it now"));
    assert_false(may_write(&pair->a));
}

static void test_election_garbage_in_the_lease_does_no_harm(void **state)
{
    static const char *const garbage[] = {
        "",
        "{}",
        "null",
        "{\"holderIdentity\":7}",
        "{\"holderIdentity\":\"\",\"leaseDurationSeconds\":-4,\"leaseTransitions\":-1}",
        "{\"holderIdentity\":\"x\",\"leaseDurationSeconds\":99999999999999,\"renewTime\":\"?\"}",
        "{\"holderIdentity\":\"x\",\"leaseDurationSeconds\":\"15\",\"acquireTime\":[]}",
        "[1,2]",
    };
    (void)state;
    for (size_t i = 0; i < ML_COUNT(garbage); i++) {
        void *other;
        setup(&other);
        struct pair *pair = other;
        set_spec(&pair->server, ml_str_of(garbage[i]));
        ml_election_start(pair->a.election);
        ml_election_start(pair->b.election);
        run(pair, 25000);
        assert_int_equal(pair->a.led + pair->b.led, 1);
        teardown(&other);
    }
}

static void test_election_unreadable_lease_is_left_alone(void **state)
{
    struct pair *pair = *state;
    set_spec(&pair->server, ML_STR("{broken"));
    ml_election_start(pair->a.election);
    run(pair, 60000);
    assert_int_equal(pair->a.led, 0);
    assert_int_equal(pair->server.writes, 0);
}

static void test_election_holder_brings_a_deleted_lease_back(void **state)
{
    struct pair *pair = *state;
    start_both(pair);
    for (int i = 0; i < 5; i++) {
        delete_lease(&pair->server);
        run(pair, 7300);
        assert_true(may_write(&pair->a));
        assert_holder(pair, "a");
    }
    assert_int_equal(pair->b.led, 0);
}

static void
test_election_deleted_lease_of_a_dead_holder_is_taken_when_its_time_is_over(void **state)
{
    struct pair *pair = *state;
    start_both(pair);
    ml_election_free(ml_take(&pair->a.election));
    delete_lease(&pair->server);
    run(pair, 10000);
    assert_int_equal(pair->b.led, 0); /* `a` might live: it may not know yet */
    run(pair, 10000);
    assert_int_equal(pair->b.led, 1);
}

static void
test_election_process_that_slept_past_the_lease_writes_nothing_and_has_lost(void **state)
{
    struct pair *pair = *state;
    start_both(pair);
    ml_election_free(ml_take(&pair->b.election));
    sleep_through(pair, 20000);
    set_spec(&pair->server, ML_STR("{\"holderIdentity\":\"b\",\"leaseDurationSeconds\":15}"));
    assert_false(may_write(&pair->a)); /* before its loop has run at all */
    run(pair, 50);
    assert_int_equal(pair->a.lost, 1);
    assert_false(may_write(&pair->a));
}

static void test_election_process_that_slept_and_still_holds_goes_on(void **state)
{
    struct pair *pair = *state;
    start_a(pair);
    sleep_through(pair, 1800 * 1000);
    assert_false(may_write(&pair->a));
    pair->a.mood = SILENT;
    run(pair, 1000);
    assert_false(may_write(&pair->a)); /* asking */
    assert_int_equal(pair->a.lost, 0);
    run(pair, 6000); /* an answer in time, or none */
    assert_int_equal(pair->a.lost, 1);
}

static void test_election_short_sleep_is_forgiven_by_the_server_alone(void **state)
{
    struct pair *pair = *state;
    start_a(pair);
    sleep_through(pair, 12000);
    assert_false(may_write(&pair->a));
    run(pair, 50);
    assert_true(may_write(&pair->a));
    assert_int_equal(pair->a.led, 1); /* told once */
    assert_int_equal(pair->a.lost, 0);
}

static void test_election_grant_that_comes_after_its_time_is_none(void **state)
{
    struct pair *pair = *state;
    ml_election_start(pair->a.election);
    pair->a.mood = SILENT;
    run(pair, 50);
    sleep_through(pair, 11000);
    assert_false(may_write(&pair->a));
    pair->a.mood = ANSWERS;
    run(pair, 6000);
    assert_true(may_write(&pair->a));
}

static void test_election_wall_clock_may_jump(void **state)
{
    static const int64_t jumps_s[] = {3600, -3600, 315360000, -315360000};
    struct pair *pair = *state;
    start_both(pair);
    for (size_t i = 0; i < ML_COUNT(jumps_s); i++) {
        pair->clock.wall_ns += jumps_s[i] * ML_NS_PER_S;
        run(pair, 30000);
        assert_true(may_write(&pair->a));
    }
    assert_int_equal(pair->b.led, 0);
    assert_int_equal(transitions(pair), 0);
}

static void test_election_many_hand_overs_never_have_two_holders(void **state)
{
    struct pair *pair = *state;
    struct ml_random random;
    ml_random_init(&random, 42);
    start_both(pair);
    for (int i = 0; i < 200; i++) {
        static const enum mood moods[] = {ANSWERS, ANSWERS, SILENT, UNREACHABLE, LOSES_WRITES};
        struct candidate *self = ml_random_between(&random, 0, 2) ? &pair->a : &pair->b;
        self->mood = moods[ml_random_between(&random, 0, ML_COUNT(moods))];
        if (ml_random_between(&random, 0, 10) == 0 && pair->server.spec)
            delete_lease(&pair->server);
        run(pair, ml_random_between(&random, 0, 12000));
        if (pair->server.watch_count > WATCHES / 2)
            pair->server.watch_count = 0;
    }
}

static void test_election_times_are_checked_as_client_go_does(void **state)
{
    static const struct {
        struct ml_lease_times seconds;
        const char *says; /* NULL: good */
    } cases[] = {
        {{15, 10, 2}, NULL},
        {{60, 40, 5}, NULL},
        {{10, 10, 2}, "must be longer than --leader-election-renew-deadline"},
        {{15, 12, 10}, "1.2 times"},
        {{0, 10, 2}, "whole seconds"},
        {{15, 0, 2}, "more than 0"},
        {{15, 10, 0}, "more than 0"},
    };
    (void)state;
    for (size_t i = 0; i < ML_COUNT(cases); i++) {
        const struct ml_lease_times *seconds = &cases[i].seconds;
        const struct ml_lease_times times = {seconds->lease_ns * ML_NS_PER_S,
                                                seconds->renew_ns * ML_NS_PER_S,
                                                seconds->retry_ns * ML_NS_PER_S};
        struct ml_err err;
        int r = ml_lease_times_check(&times, &err);
        assert_int_equal(r, cases[i].says ? ML_EINVALID : 0);
        if (cases[i].says)
            assert_non_null(strstr(err.message, cases[i].says));
    }
    struct ml_err err;
    assert_int_equal(
        ml_lease_times_check(
            &(struct ml_lease_times){1500 * ML_NS_PER_MS, ML_NS_PER_S, 100 * ML_NS_PER_MS},
            &err),
        ML_EINVALID); /* the Lease has whole seconds */
}

int main(void)
{
#define TEST(name) cmocka_unit_test_setup_teardown(test_election_##name, setup, teardown)
    const struct CMUnitTest tests[] = {
        TEST(alone_creates_the_lease_and_leads),
        TEST(renews_every_two_seconds_with_one_write),
        TEST(standby_writes_nothing_but_events),
        TEST(successor_of_a_crash_waits_for_the_lease_to_expire),
        TEST(release_hands_over_within_a_second),
        TEST(release_hands_over_without_the_right_to_watch_too),
        TEST(release_of_what_it_does_not_hold_writes_nothing),
        TEST(release_after_a_renewal_of_unknown_outcome),
        TEST(release_gives_up_after_its_patience),
        TEST(is_lost_when_the_server_is_silent_to_the_deadline),
        TEST(is_lost_when_the_server_is_unreachable_to_the_deadline),
        TEST(outlives_an_outage_that_ends_before_the_deadline),
        TEST(outage_for_all_leaves_at_most_one_holder),
        TEST(lost_reply_of_a_renewal_is_found_out),
        TEST(lost_reply_of_the_first_write_is_found_out),
        TEST(conflict_is_read_and_written_again),
        TEST(holder_that_sees_another_name_has_lost_at_once),
        TEST(garbage_in_the_lease_does_no_harm),
        TEST(unreadable_lease_is_left_alone),
        TEST(holder_brings_a_deleted_lease_back),
        TEST(deleted_lease_of_a_dead_holder_is_taken_when_its_time_is_over),
        TEST(process_that_slept_past_the_lease_writes_nothing_and_has_lost),
        TEST(process_that_slept_and_still_holds_goes_on),
        TEST(short_sleep_is_forgiven_by_the_server_alone),
        TEST(grant_that_comes_after_its_time_is_none),
        TEST(wall_clock_may_jump),
        TEST(many_hand_overs_never_have_two_holders),
        TEST(times_are_checked_as_client_go_does),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
