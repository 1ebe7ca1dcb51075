/* The operator: creates client, caches and scripts, runs them alone or as one of several replicas,
 * and stops them in the steps of shutdown.h. moonloop.c runs one against a cluster, cluster/host
 * one against the embedded server. */
#include "operator/operator.h"

#include "kube/openapi.h"
#include "operator/shutdown.h"
#include "state/election.h"
#include "state/journal.h"
#include "state/writer.h"

#define RELEASE_MAX_NS (2 * ML_NS_PER_S)
#define WALL_CHECK_NS  (10 * ML_NS_PER_S)
#define WALL_WRONG_NS  (500 * ML_NS_PER_MS)
#define SCRIPTS_MEMORY ((size_t)16 * 1024 * 1024) /* of all scripts; fits a pod of 30Mi */

struct ml_operator {
    struct ml_services services;
    struct ml_authors authors; /* of the services */
    struct ml_scripts *scripts;

    /* As one of several replicas, which has an election or is in a shard group (services.shard). */
    struct ml_replica_opts replica;
    struct ml_client *lease_client; /* on a connection of its own; NULL: it is the only one */
    struct ml_election *election;
    bool is_candidate; /* for the Lease, or a member of the group */

    void (*live)(void *context); /* NULL: nobody asked */
    void *live_context;

    struct ml_timer wall;
    int64_t wall_ahead_ns; /* of the wall clock over the monotonic one, when last checked */
    struct ml_shutdown shutdown;
    struct ml_task no_lease; /* to release */
    bool stopping;
    bool has_served; /* ml_operator_serves was true once */
    bool closed;     /* shutting down: no write but Events may leave */
    void (*stopped)(void *context);
    void *context;
};

/* The fence that every write passes. */
static int operator_may_write(void *context, const char *method, const char *path,
                              struct ml_err *err)
{
    const struct ml_operator *self = context;
    if (self->closed && !ml_path_is_event(path))
        return ml_err_set(err, ML_ECANCELED, "%s %s was not sent: the host is shutting down",
                          method, path);
    if (self->election)
        return ml_election_fence(self->election, method, path, err);
    return self->services.shard ? ml_shard_fence(self->services.shard, method, path, err) : 0;
}

/* This process became the leader, or the wall clock was set. */
static void resync_all(struct ml_operator *self)
{
    struct ml_controller *all[ML_CONTROLLERS_MAX];
    size_t count = ml_scripts_controllers(self->scripts, all);
    for (size_t i = 0; i < count; i++)
        ml_controller_resync(all[i]);
}

/* ---- one of several replicas ---- */

/* client-go's words (tools/leaderelection/resourcelock). */
static void record_lease_event(struct ml_operator *self, const char *what)
{
    ML_AUTO_FREE char *note = ml_asprintf("%s %s", self->replica.identity, what);
    const struct ml_event event = {
        .about = {.api_version = ML_STR("coordination.k8s.io/v1"),
                  .kind = ML_STR("Lease"),
                  .ns = ml_str_of(self->replica.ns),
                  .name = ml_str_of(self->replica.name)},
        .reason = ML_STR("LeaderElection"),
        .action = ML_STR("LeaderElection"),
        .note = ml_str_of(note),
    };
    ml_recorder_event(self->services.recorder, &event);
}

static void operator_on_lease_lost(void *context, const struct ml_err *err)
{
    struct ml_operator *self = context;
    self->services.standby = true;
    self->replica.lost(self->replica.context, err);
}

static void operator_on_leading(void *context)
{
    struct ml_operator *self = context;
    self->services.standby = false;
    record_lease_event(self, "became leader");
    resync_all(self);
}

static void operator_on_shard_changed(void *context)
{
    struct ml_operator *self = context;
    struct ml_controller *all[ML_CONTROLLERS_MAX];
    size_t count = ml_scripts_controllers(self->scripts, all);
    for (size_t i = 0; i < count; i++)
        ml_controller_reshard(all[i]);
}

static bool operator_hand_keys_over(void *context, bool cut)
{
    struct ml_operator *self = context;
    struct ml_controller *all[ML_CONTROLLERS_MAX];
    size_t count = ml_scripts_controllers(self->scripts, all);
    bool idle = true;
    for (size_t i = 0; i < count; i++)
        idle = ml_controller_hand_over(all[i], cut) && idle;
    return idle;
}

static const struct ml_election_handler election_handler = {operator_on_leading,
                                                            operator_on_lease_lost};
static const struct ml_shard_handler shard_handler = {
    operator_on_shard_changed, operator_hand_keys_over, operator_on_lease_lost};

static void make_replica(struct ml_operator *self, const struct ml_replica_opts *opts)
{
    const struct ml_client_opts client = {
        .loop = self->services.loop,
        .transport = opts->transport,
        .metrics = self->services.metrics,
        .random = self->services.random,
        .log = self->services.log,
        .exempt = true,
        .same_server = self->services.client,
    };
    self->replica = *opts;
    self->lease_client = ml_client_new(&client);
    const struct ml_lease_opts lease = {
        .client = self->lease_client,
        .loop = self->services.loop,
        .random = self->services.random,
        .log = self->services.log,
        .metrics = self->services.metrics,
        .ns = opts->ns,
        .name = opts->name,
        .identity = opts->identity,
        .times = opts->times,
    };
    if (opts->shares) {
        self->services.shard = ml_shard_new(&lease, &shard_handler, self);
    } else {
        self->election = ml_election_new(&lease, &election_handler, self);
        self->services.standby = true;
    }
}

/* As soon as this process has something to run: another one may have more. */
static void join_replicas(struct ml_operator *self)
{
    self->is_candidate = true;
    if (self->election)
        ml_election_start(self->election);
    if (self->services.shard)
        ml_shard_start(self->services.shard);
}

static void operator_on_live(void *context)
{
    struct ml_operator *self = context;
    if (!self->is_candidate && !self->stopping)
        join_replicas(self);
    if (self->live)
        self->live(self->live_context);
}

/* ---- the wall clock ---- */

static int64_t wall_ahead_ns(const struct ml_operator *self)
{
    return ml_clock_wall(self->services.clock) - ml_clock_monotonic(self->services.clock);
}

/* Waiting for a point in time is a delay on the monotonic clock, so all objects are reconciled
 * again when the wall clock was set or has drifted. Polling costs next to nothing and, unlike the
 * kernel's timerfd, works on every clock. */
static void check_wall_clock(void *context)
{
    struct ml_operator *self = context;
    int64_t delta_ns = wall_ahead_ns(self) - self->wall_ahead_ns;
    ml_timer_start(&self->wall, WALL_CHECK_NS);
    if (delta_ns > -WALL_WRONG_NS && delta_ns < WALL_WRONG_NS)
        return;
    self->wall_ahead_ns += delta_ns;
    ml_info(self->services.log, "host", "the wall clock was set; reconciling all objects again",
            ML_F("seconds", (double)delta_ns / (double)ML_NS_PER_S));
    resync_all(self);
}

/* ---- shutdown ---- */

static void operator_on_worked(void *context)
{
    ml_shutdown_done(&((struct ml_operator *)context)->shutdown, ML_SHUTDOWN_WORK);
}

static void operator_on_flushed(void *context)
{
    ml_shutdown_done(&((struct ml_operator *)context)->shutdown, ML_SHUTDOWN_EVENTS);
}

static void operator_on_released(void *context)
{
    ml_shutdown_done(&((struct ml_operator *)context)->shutdown, ML_SHUTDOWN_LEASE);
}

static void release_lease(struct ml_operator *self)
{
    if (self->election)
        ml_election_release(self->election, RELEASE_MAX_NS, operator_on_released, self);
    else if (self->services.shard)
        ml_shard_leave(self->services.shard, RELEASE_MAX_NS, operator_on_released, self);
    else
        ml_task_defer(&self->no_lease, self->services.loop);
}

static void operator_begin_step(void *context, enum ml_shutdown_step step)
{
    struct ml_operator *self = context;
    switch (step) {
    case ML_SHUTDOWN_WORK:
        ml_scripts_stop(self->scripts, operator_on_worked, self);
        return;
    case ML_SHUTDOWN_BOUNDARY:
        self->closed = true;
        return;
    case ML_SHUTDOWN_EVENTS:
        self->closed = true;
        if (self->election && ml_election_leads(self->election))
            record_lease_event(self, "stopped leading");
        ml_deletions_flush(self->services.deletions);
        ml_recorder_flush(self->services.recorder, operator_on_flushed, self);
        return;
    case ML_SHUTDOWN_LEASE:
        release_lease(self);
        return;
    case ML_SHUTDOWN_STEPS:
        break;
    }
    ML_UNREACHABLE();
}

static void operator_on_over(void *context, bool clean)
{
    struct ml_operator *self = context;
    if (!clean)
        ml_warn(self->services.log, "host", "running reconciles did not end in time; abandoned");
    self->stopped(self->context);
}

static const struct ml_shutdown_handler shutdown_handler = {operator_begin_step, operator_on_over};

/* ---- life ---- */

/* One script can have at most seven eighths: enough for what --script-memory gives it. */
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
    self->services.loop = opts->loop;
    self->services.client = ml_client_new(&client);
    ml_client_set_fence(self->services.client, operator_may_write, self);
    self->services.discovery = ml_discovery_new(self->services.client, opts->loop);
    const struct ml_informers_opts informers = {
        .client = self->services.client,
        .loop = opts->loop,
        .random = opts->random,
        .log = opts->log,
        .metrics = opts->metrics,
        .namespaces = opts->namespaces,
        .discovery = self->services.discovery,
        .streams = opts->watch_list,
    };
    const struct ml_recorder_opts recorder = {
        .client = self->services.client,
        .loop = opts->loop,
        .metrics = opts->metrics,
        .controller = "moonloop",
        .instance = opts->instance,
    };
    self->services.clock = ml_loop_clock(opts->loop);
    self->services.random = opts->random;
    self->services.log = opts->log;
    self->services.metrics = opts->metrics;
    self->services.informers = ml_informers_new(&informers);
    self->services.recorder = ml_recorder_new(&recorder);
    self->services.deletions = ml_deletions_new(opts->loop, opts->log, self->services.recorder);
    self->services.script_memory.max = memory_of_all(opts->limits.memory_max);
    self->services.outbound = opts->outbound;
    self->services.checked = opts->checked;
    self->services.coverage = opts->coverage;
    self->services.schemas = ml_openapi_cache_new();
    self->services.slices = ml_slices_new(opts->loop, !opts->virtual_time);
    self->services.authors = &self->authors;
    self->services.journal = ml_journal_new(ML_JOURNAL_BYTES);
    self->scripts = ml_scripts_new(&self->services, &opts->limits, opts->marker, operator_on_live,
                                   self);
    ml_scripts_set_guard(self->scripts, &opts->guard);
    ml_scripts_set_tester(self->scripts, opts->tester);
    ml_timer_init(&self->wall, opts->loop, check_wall_clock, self);
    ml_task_init(&self->no_lease, operator_on_released, self);
    ml_shutdown_init(&self->shutdown, opts->loop, &shutdown_handler, self);
    if (opts->replica)
        make_replica(self, opts->replica);
    return self;
}

/* In the reverse order of creation. */
void ml_operator_free(struct ml_operator *self)
{
    if (!self)
        return;
    ml_shutdown_fini(&self->shutdown);
    ml_task_cancel(&self->no_lease);
    ml_timer_stop(&self->wall);
    ml_scripts_free(self->scripts);
    ml_slices_free(self->services.slices);
    ml_authors_fini(&self->authors);
    ml_journal_free(self->services.journal);
    ml_openapi_cache_free(self->services.schemas);
    ml_deletions_free(self->services.deletions);
    ml_recorder_free(self->services.recorder);
    ml_informers_free(self->services.informers);
    ml_discovery_free(self->services.discovery);
    ml_election_free(self->election);
    ml_shard_free(self->services.shard);
    ml_client_free(self->lease_client);
    ml_client_free(self->services.client);
    free(self);
}

struct ml_scripts *ml_operator_scripts(struct ml_operator *self)
{
    return self->scripts;
}

void ml_operator_start(struct ml_operator *self)
{
    self->wall_ahead_ns = wall_ahead_ns(self);
    ml_timer_start(&self->wall, WALL_CHECK_NS);
    ml_scripts_start(self->scripts);
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

void ml_operator_on_live(struct ml_operator *self, void (*changed)(void *context), void *context)
{
    self->live = changed;
    self->live_context = context;
}

bool ml_operator_ready(const struct ml_operator *self, struct ml_buf *why)
{
    bool ready = ml_scripts_ready(self->scripts, why);
    ml_server_clock_describe(ml_client_server_clock(self->services.client), why);
    return ready;
}

bool ml_operator_serves(struct ml_operator *self, struct ml_buf *why)
{
    bool is_whole = ml_operator_ready(self, why);
    struct ml_scripts_count count = ml_scripts_count(self->scripts);
    bool leads = self->election && ml_election_leads(self->election);
    bool is_fit = leads || count.refused + count.blocked == 0;
    if (is_whole || (count.read && count.pending == 0 && count.live > 0 && is_fit))
        self->has_served = true;
    return self->has_served;
}

bool ml_operator_leads(const struct ml_operator *self)
{
    return !self->services.standby && !self->closed;
}

struct ml_services *ml_operator_services(struct ml_operator *self)
{
    return &self->services;
}

struct ml_client *ml_operator_client(struct ml_operator *self)
{
    return self->services.client;
}

struct ml_informers *ml_operator_informers(struct ml_operator *self)
{
    return self->services.informers;
}
