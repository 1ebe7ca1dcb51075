#include "run/operator.h"

#define FLUSH_MAX_NS   (2 * ML_NS_PER_S)
#define RELEASE_MAX_NS (2 * ML_NS_PER_S)

struct ml_operator {
    struct ml_client *client;
    struct ml_cluster cluster;
    struct ml_scripts *scripts;

    struct ml_client *election_client;
    struct ml_election *election; /* NULL: the only replica */
    void (*lost)(void *context, const struct ml_err *err);
    void *lost_context;

    struct ml_timer patience; /* of the stop */
    bool stopping;
    void (*stopped)(void *context); /* NULL: told */
    void *context;
};

static void on_drain_late(void *context);

static void on_led(void *context)
{
    struct ml_operator *self = context;
    self->cluster.standby = false;
    ml_scripts_lead(self->scripts);
}

static void on_lost(void *context, const struct ml_err *err)
{
    struct ml_operator *self = context;
    self->cluster.standby = true;
    self->lost(self->lost_context, err);
}

static void make_election(struct ml_operator *self, const struct ml_operator_opts *opts)
{
    static const struct ml_election_handler handler = {on_led, on_lost};
    const struct ml_operator_election *election = opts->election;
    const struct ml_client_opts client = {
        .loop = opts->loop,
        .transport = election->transport,
        .metrics = opts->metrics,
        .random = opts->random,
        .log = opts->log,
    };
    self->election_client = ml_client_new(&client);
    const struct ml_election_opts candidate = {
        .client = self->election_client,
        .loop = opts->loop,
        .random = opts->random,
        .log = opts->log,
        .metrics = opts->metrics,
        .ns = election->ns,
        .name = election->name,
        .identity = election->identity,
        .times = election->times,
        .handler = &handler,
        .context = self,
    };
    self->election = ml_election_new(&candidate);
    self->lost = election->lost;
    self->lost_context = election->context;
    self->cluster.standby = true;
    ml_client_set_fence(self->client, ml_election_fence, self->election);
}

struct ml_operator *ml_operator_new(const struct ml_operator_opts *opts)
{
    struct ml_operator *self = ml_new(struct ml_operator);
    const struct ml_client_opts client = {
        .loop = opts->loop,
        .transport = opts->transport,
        .metrics = opts->metrics,
        .random = opts->random,
        .log = opts->log,
    };
    self->client = ml_client_new(&client);
    const struct ml_informers_opts informers = {
        .client = self->client,
        .loop = opts->loop,
        .random = opts->random,
        .log = opts->log,
        .metrics = opts->metrics,
        .namespaces = opts->namespaces,
    };
    const struct ml_recorder_opts recorder = {
        .client = self->client,
        .loop = opts->loop,
        .metrics = opts->metrics,
        .controller = "moonloop.dev/moonloop",
        .instance = opts->instance,
    };
    self->cluster = (struct ml_cluster){
        .loop = opts->loop,
        .clock = ml_loop_clock(opts->loop),
        .random = opts->random,
        .log = opts->log,
        .metrics = opts->metrics,
        .client = self->client,
        .discovery = ml_discovery_new(self->client, opts->loop),
        .informers = ml_informers_new(&informers),
        .recorder = ml_recorder_new(&recorder),
    };
    self->scripts = ml_scripts_new(&self->cluster, &opts->limits);
    ml_timer_init(&self->patience, opts->loop, on_drain_late, self);
    if (opts->election)
        make_election(self, opts);
    return self;
}

/* In the reverse order of making. */
void ml_operator_free(struct ml_operator *self)
{
    if (!self)
        return;
    ml_timer_stop(&self->patience);
    ml_scripts_free(self->scripts);
    ml_recorder_free(self->cluster.recorder);
    ml_informers_free(self->cluster.informers);
    ml_discovery_free(self->cluster.discovery);
    ml_client_free(self->client);
    ml_election_free(self->election);
    ml_client_free(self->election_client);
    free(self);
}

void ml_operator_add_path(struct ml_operator *self, const char *path)
{
    ml_scripts_add_source(self->scripts, ml_source_path_new(self->cluster.loop, path));
}

void ml_operator_add_configmap(struct ml_operator *self, const char *where)
{
    ml_scripts_add_source(self->scripts, ml_source_configmap_new(&self->cluster, where));
}

void ml_operator_add_source(struct ml_operator *self, struct ml_source *source)
{
    ml_scripts_add_source(self->scripts, source);
}

void ml_operator_start(struct ml_operator *self)
{
    ml_scripts_start(self->scripts);
    if (self->election)
        ml_election_start(self->election);
}

/* Once, whichever of work, events, patience and a second call comes first or last. */
static void tell_stopped(struct ml_operator *self)
{
    void (*stopped)(void *context) = self->stopped;
    ml_timer_stop(&self->patience);
    self->stopped = NULL;
    if (stopped)
        stopped(self->context);
}

static void on_flushed(void *context)
{
    tell_stopped(context);
}

/* What is left are the events that tell of it. */
static void flush(void *context)
{
    struct ml_operator *self = context;
    if (!self->stopped)
        return;
    ml_timer_init(&self->patience, self->cluster.loop, on_flushed, self);
    ml_timer_start(&self->patience, FLUSH_MAX_NS);
    ml_recorder_flush(self->cluster.recorder, on_flushed, self);
}

/* Work is done: another replica may begin. */
static void on_drained(void *context)
{
    struct ml_operator *self = context;
    if (!self->stopped)
        return;
    ml_timer_stop(&self->patience);
    if (self->election)
        ml_election_release(self->election, RELEASE_MAX_NS, flush, self);
    else
        flush(self);
}

/* Writes may still be under way: the Lease is left to expire. */
static void on_drain_late(void *context)
{
    struct ml_operator *self = context;
    ml_warn(self->cluster.log, "host", "work under way did not end in time; leaving it");
    tell_stopped(self);
}

void ml_operator_stop(struct ml_operator *self, int64_t drain_ns, void (*done)(void *context),
                      void *context)
{
    if (self->stopping) {
        tell_stopped(self);
        return;
    }
    self->stopping = true;
    self->stopped = done;
    self->context = context;
    ml_timer_start(&self->patience, drain_ns);
    ml_scripts_stop(self->scripts, on_drained, self);
}

bool ml_operator_ready(const struct ml_operator *self, struct ml_buf *why)
{
    return ml_scripts_ready(self->scripts, why);
}

int64_t ml_operator_next(const struct ml_operator *self)
{
    return ml_scripts_next(self->scripts);
}

struct ml_client *ml_operator_client(struct ml_operator *self)
{
    return self->client;
}

struct ml_informers *ml_operator_informers(struct ml_operator *self)
{
    return self->cluster.informers;
}
