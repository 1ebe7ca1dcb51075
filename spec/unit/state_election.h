/* Candidates for one Lease in virtual time, on a server that keeps a Lease as kube-apiserver does:
 * a version that every write raises, and refuses with 409 what was read too long ago. */
#pragma once

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

static inline char *lease_json(const struct server *server)
{
    return ml_asprintf("{\"kind\":\"Lease\",\"apiVersion\":\"coordination.k8s.io/v1\",\"metadata\":"
                       "{\"name\":\"moonloop\",\"namespace\":\"ns\",\"labels\":{\"kept\":\"yes\"},"
                       "\"resourceVersion\":\"%d\"}%s%s}",
                       server->version, *server->spec ? ",\"spec\":" : "", server->spec);
}

static inline void tell_watches(struct server *server, const char *type)
{
    ML_AUTO_FREE char *json = lease_json(server);
    ML_AUTO_FREE char *line = event_line(type, json);
    for (size_t i = 0; i < server->watch_count; i++)
        if (!server->watches[i]->canceled && !server->watches[i]->over)
            fake_piece(server->watches[i], line);
}

static inline void set_spec(struct server *server, struct ml_str spec)
{
    ML_AUTO_FREE char *old = server->spec; /* which `spec` may be */
    server->spec = ml_str_dup(spec);
    server->version++;
    tell_watches(server, "MODIFIED");
}

static inline void delete_lease(struct server *server)
{
    tell_watches(server, "DELETED");
    free(ml_take(&server->spec));
}

static inline void reply_lease(struct candidate *self, struct fake_call *call, int status)
{
    ML_AUTO_FREE char *json = lease_json(self->server);
    if (self->mood == LOSES_WRITES && status != 200)
        fake_fail(call, ML_ENETWORK, "connection reset");
    else if (self->mood == LOSES_WRITES && strcmp(call->method, "GET") != 0)
        fake_fail(call, ML_ENETWORK, "connection reset");
    else
        fake_reply(call, status, json);
}

static inline void write_lease(struct candidate *self, struct fake_call *call)
{
    struct ml_str body = {call->body, call->body_len}, spec;
    assert_true(ml_json_find(body, &spec, "spec", NULL));
    self->server->writes++;
    set_spec(self->server, spec);
    reply_lease(self, call, strcmp(call->method, "POST") == 0 ? 201 : 200);
}

static inline void answer_put(struct candidate *self, struct fake_call *call)
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

static inline void answer_watch(struct candidate *self, struct fake_call *call)
{
    if (self->mood == NO_WATCH) {
        fake_refuse(call, 403, "Forbidden", "cannot watch");
        return;
    }
    assert_true(self->server->watch_count < WATCHES);
    self->server->watches[self->server->watch_count++] = call;
    fake_head(call, 200);
}

static inline void answer(void *context, struct fake_call *call)
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

static inline void on_led(void *context)
{
    struct candidate *self = context;
    self->led++;
}

static inline void on_lost(void *context, const struct ml_err *err)
{
    struct candidate *self = context;
    self->lost++;
    snprintf(self->why, sizeof self->why, "%s", err->message);
}

static inline void on_released(void *context)
{
    struct candidate *self = context;
    self->released++;
}

static const struct ml_election_handler handler = {on_led, on_lost};

static inline void candidate_init(struct pair *pair, struct candidate *self, const char *identity)
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

static inline void candidate_fini(struct candidate *self)
{
    ml_election_free(ml_take(&self->election));
    ml_client_free(self->world.client);
    fake_transport_free(self->world.server);
    ml_metrics_free(self->world.metrics);
}

static inline int setup(void **state)
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

static inline int teardown(void **state)
{
    struct pair *pair = *state;
    candidate_fini(&pair->a);
    candidate_fini(&pair->b);
    ml_loop_free(pair->loop);
    free(pair->server.spec);
    free(pair);
    return 0;
}

static inline bool may_write(struct candidate *self)
{
    struct ml_err err;
    return self->election && ml_election_fence(self->election, "POST", PODS, &err) == 0;
}

/* What must hold at every moment. */
static inline void check(struct pair *pair)
{
    assert_false(may_write(&pair->a) && may_write(&pair->b));
}

/* In steps of 50 ms. */
static inline void run(struct pair *pair, int64_t ms)
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
static inline void sleep_through(struct pair *pair, int64_t ms)
{
    ml_clock_fake_advance(&pair->clock, ms * ML_NS_PER_MS);
}

static inline void start_a(struct pair *pair)
{
    ml_election_start(pair->a.election);
    run(pair, 50);
    assert_true(may_write(&pair->a));
}

/* `a` leads, `b` stands by. */
static inline void start_both(struct pair *pair)
{
    start_a(pair);
    ml_election_start(pair->b.election);
    run(pair, 5000);
    assert_true(may_write(&pair->a));
    assert_false(may_write(&pair->b));
    assert_int_equal(pair->b.led, 0);
}

static inline char *field(struct pair *pair, const char *name)
{
    char *text = ml_json_find_string(ml_str_of(pair->server.spec), name, NULL);
    return text ? text : ml_strdup("");
}

static inline void assert_holder(struct pair *pair, const char *want)
{
    ML_AUTO_FREE char *holder = field(pair, "holderIdentity");
    assert_string_equal(holder, want);
}

static inline int64_t transitions(struct pair *pair)
{
    struct ml_str raw;
    int64_t value = -1;
    assert_true(ml_json_find(ml_str_of(pair->server.spec), &raw, "leaseTransitions", NULL));
    assert_true(ml_str_to_i64(raw, &value));
    return value;
}

static inline double metric(struct candidate *self, bool gauge, const char *name)
{
    struct ml_metric_family *family = gauge ? ml_metrics_gauge(self->world.metrics, name, "",
                                                               ml_metric_labels("name"))
                                            : ml_metrics_counter(self->world.metrics, name, "",
                                                                 ml_metric_labels("name"));
    return ml_metric_value(ml_metric_with(family, ml_metric_labels("moonloop")));
}

static inline double master_status(struct candidate *self)
{
    return metric(self, true, "leader_election_master_status");
}

static inline double slow_paths(struct candidate *self)
{
    return metric(self, false, "leader_election_slowpath_total");
}
