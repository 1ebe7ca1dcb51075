#include "operator/operator.h"

#include "operator/shutdown.h"
#include "operator/wall_watch.h"

#define RELEASE_MAX_NS (2 * ML_NS_PER_S)
#define SCRIPTS_MEMORY ((size_t)16 * 1024 * 1024) /* all together; fits a pod of 30Mi */

struct ml_operator {
    struct ml_client *client;
    struct ml_cluster cluster;
    struct ml_scripts *scripts;

    struct ml_replica *replica; /* NULL: the only one */

    struct ml_wall_watch wall;
    struct ml_shutdown shutdown;
    bool stopping;
    bool closed; /* for writes, at the end */
    void (*stopped)(void *context);
    void *context;
};

static bool is_event(const char *path)
{
    return ml_str_starts(ml_str_of(path), "/apis/events.k8s.io/");
}

/* The fence of all writes. */
static int may_write(void *context, const char *method, const char *path, struct ml_err *err)
{
    const struct ml_operator *self = context;
    if (self->closed && !is_event(path))
        return ml_err_set(err, ML_ECANCELED, "%s %s was not sent: the host ends", method, path);
    return self->replica ? ml_replica_fence(self->replica, method, path, err) : 0;
}

/* ---- the end ---- */

static void on_worked(void *context)
{
    ml_shutdown_done(&((struct ml_operator *)context)->shutdown, ML_SHUTDOWN_WORK);
}

static void on_flushed(void *context)
{
    ml_shutdown_done(&((struct ml_operator *)context)->shutdown, ML_SHUTDOWN_EVENTS);
}

static void on_released(void *context)
{
    ml_shutdown_done(&((struct ml_operator *)context)->shutdown, ML_SHUTDOWN_LEASE);
}

static void begin_step(void *context, enum ml_shutdown_step step)
{
    struct ml_operator *self = context;
    switch (step) {
    case ML_SHUTDOWN_WORK:
        ml_scripts_stop(self->scripts, on_worked, self);
        return;
    case ML_SHUTDOWN_BOUNDARY:
        self->closed = true;
        return;
    case ML_SHUTDOWN_EVENTS:
        self->closed = true;
        if (self->replica)
            ml_replica_tell_end(self->replica);
        ml_recorder_flush(self->cluster.recorder, on_flushed, self);
        return;
    case ML_SHUTDOWN_LEASE:
        if (self->replica)
            ml_replica_release(self->replica, RELEASE_MAX_NS, on_released, self);
        else
            on_released(self);
        return;
    case ML_SHUTDOWN_STEPS:
        break;
    }
    ML_UNREACHABLE();
}

static void on_over(void *context, bool clean)
{
    struct ml_operator *self = context;
    if (!clean)
        ml_warn(self->cluster.log, "host", "work under way did not end in time; leaving it");
    self->stopped(self->context);
}

static const struct ml_shutdown_handler shutdown_handler = {begin_step, on_over};

/* ---- life ---- */

/* Every instant that a script asked for is waited for as a delay: it has to be asked again. */
static void on_wall_jumped(void *context, int64_t delta_ns)
{
    struct ml_operator *self = context;
    ml_info(self->cluster.log, "host", "the wall clock was set; looking at all objects again",
            ML_F("seconds", (double)delta_ns / (double)ML_NS_PER_S));
    ml_scripts_resync(self->scripts);
}

/* So that one script can have what --script-memory gives it: seven eighths are the most. */
static size_t memory_of_all(size_t memory_of_one)
{
    return ML_MAX(SCRIPTS_MEMORY, memory_of_one + memory_of_one / 7 + 8);
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
    ml_client_set_fence(self->client, may_write, self);
    struct ml_discovery *discovery = ml_discovery_new(self->client, opts->loop);
    const struct ml_informers_opts informers = {
        .client = self->client,
        .loop = opts->loop,
        .random = opts->random,
        .log = opts->log,
        .metrics = opts->metrics,
        .namespaces = opts->namespaces,
        .discovery = discovery,
        .streams = opts->watch_list,
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
        .discovery = discovery,
        .informers = ml_informers_new(&informers),
        .recorder = ml_recorder_new(&recorder),
        .script_memory.max = memory_of_all(opts->limits.memory_max),
        .turns = ml_turns_new(opts->loop, !opts->virtual_time),
    };
    self->scripts = ml_scripts_new(&self->cluster, &opts->limits);
    ml_scripts_mark(self->scripts, opts->marker);
    ml_shutdown_init(&self->shutdown, opts->loop, &shutdown_handler, self);
    if (opts->replica)
        self->replica = ml_replica_new(&self->cluster, self->scripts, opts->replica);
    return self;
}

/* In the reverse order of making. */
void ml_operator_free(struct ml_operator *self)
{
    if (!self)
        return;
    ml_shutdown_fini(&self->shutdown);
    ml_wall_watch_stop(&self->wall);
    ml_scripts_free(self->scripts);
    ml_turns_free(self->cluster.turns);
    ml_recorder_free(self->cluster.recorder);
    ml_informers_free(self->cluster.informers);
    ml_discovery_free(self->cluster.discovery);
    ml_client_free(self->client);
    ml_replica_free(self->replica);
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
    ml_wall_watch_start(&self->wall, self->cluster.loop, on_wall_jumped, self);
    ml_scripts_start(self->scripts);
    if (self->replica)
        ml_replica_start(self->replica);
}

void ml_operator_stop(struct ml_operator *self, int64_t drain_ns, void (*done)(void *context),
                      void *context)
{
    if (self->stopping) {
        ml_shutdown_skip(&self->shutdown);
        return;
    }
    self->stopping = true;
    self->stopped = done;
    self->context = context;
    ml_shutdown_start(&self->shutdown, drain_ns);
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
