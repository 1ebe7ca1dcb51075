#include "operator/replica.h"

struct ml_replica {
    struct ml_cluster *cluster;
    struct ml_scripts *scripts;
    struct ml_client *client;
    struct ml_election *election; /* either this */
    struct ml_shard *shard;       /* or this */
    char *lease_ns, *lease_name, *identity;
    void (*lost)(void *context, const struct ml_err *err);
    void *context;
};

/* client-go's words (tools/leaderelection/resourcelock). */
static void tell_of_lease(struct ml_replica *self, const char *what)
{
    ML_AUTO_FREE char *note = ml_asprintf("%s %s", self->identity, what);
    const struct ml_event event = {
        .api_version = ML_STR("coordination.k8s.io/v1"),
        .kind = ML_STR("Lease"),
        .ns = ml_str_of(self->lease_ns),
        .name = ml_str_of(self->lease_name),
        .reason = ML_STR("LeaderElection"),
        .action = ML_STR("LeaderElection"),
        .note = ml_str_of(note),
    };
    ml_recorder_event(self->cluster->recorder, &event);
}

static void on_lost(void *context, const struct ml_err *err)
{
    struct ml_replica *self = context;
    self->cluster->standby = true;
    self->lost(self->context, err);
}

/* ---- one works ---- */

static void on_led(void *context)
{
    struct ml_replica *self = context;
    self->cluster->standby = false;
    tell_of_lease(self, "became leader");
    ml_scripts_resync(self->scripts);
}

static void make_election(struct ml_replica *self, const struct ml_replica_opts *opts)
{
    static const struct ml_election_handler handler = {on_led, on_lost};
    const struct ml_election_opts candidate = {
        .client = self->client,
        .loop = self->cluster->loop,
        .random = self->cluster->random,
        .log = self->cluster->log,
        .metrics = self->cluster->metrics,
        .ns = opts->ns,
        .name = opts->name,
        .identity = opts->identity,
        .times = opts->times,
        .handler = &handler,
        .context = self,
    };
    self->election = ml_election_new(&candidate);
    self->cluster->standby = true;
}

/* ---- all share ---- */

static void on_changed(void *context)
{
    struct ml_replica *self = context;
    ml_scripts_reshard(self->scripts);
}

static bool is_idle(void *context, bool cut)
{
    struct ml_replica *self = context;
    return ml_scripts_hand_over(self->scripts, cut);
}

static void make_shard(struct ml_replica *self, const struct ml_replica_opts *opts)
{
    static const struct ml_shard_handler handler = {on_changed, is_idle, on_lost};
    const struct ml_shard_opts member = {
        .client = self->client,
        .loop = self->cluster->loop,
        .random = self->cluster->random,
        .log = self->cluster->log,
        .metrics = self->cluster->metrics,
        .ns = opts->ns,
        .group = opts->name,
        .identity = opts->identity,
        .times = opts->times,
        .handler = &handler,
        .context = self,
    };
    self->shard = ml_shard_new(&member);
    self->cluster->shard = self->shard;
}

/* ---- both ---- */

struct ml_replica *ml_replica_new(struct ml_cluster *cluster, struct ml_scripts *scripts,
                                  const struct ml_replica_opts *opts)
{
    struct ml_replica *self = ml_new(struct ml_replica);
    const struct ml_client_opts client = {
        .loop = cluster->loop,
        .transport = opts->transport,
        .metrics = cluster->metrics,
        .random = cluster->random,
        .log = cluster->log,
        .exempt = true,
    };
    self->cluster = cluster;
    self->scripts = scripts;
    self->client = ml_client_new(&client);
    self->lease_ns = ml_strdup(opts->ns);
    self->lease_name = ml_strdup(opts->name);
    self->identity = ml_strdup(opts->identity);
    self->lost = opts->lost;
    self->context = opts->context;
    if (opts->shares)
        make_shard(self, opts);
    else
        make_election(self, opts);
    return self;
}

void ml_replica_free(struct ml_replica *self)
{
    if (!self)
        return;
    ml_election_free(self->election);
    ml_shard_free(self->shard);
    ml_client_free(self->client);
    free(self->lease_ns);
    free(self->lease_name);
    free(self->identity);
    free(self);
}

void ml_replica_start(struct ml_replica *self)
{
    if (self->election)
        ml_election_start(self->election);
    else
        ml_shard_start(self->shard);
}

void ml_replica_tell_end(struct ml_replica *self)
{
    if (self->election && ml_election_leads(self->election))
        tell_of_lease(self, "stopped leading");
}

void ml_replica_release(struct ml_replica *self, int64_t patience_ns, void (*done)(void *context),
                        void *context)
{
    if (self->election)
        ml_election_release(self->election, patience_ns, done, context);
    else
        ml_shard_leave(self->shard, patience_ns, done, context);
}

int ml_replica_fence(void *context, const char *method, const char *path, struct ml_err *err)
{
    struct ml_replica *self = context;
    return self->election ? ml_election_fence(self->election, method, path, err)
                          : ml_shard_fence(self->shard, method, path, err);
}
