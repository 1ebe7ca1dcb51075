/* A round: the Lease is renewed (with another view when one is due), then all Leases of the group
 * are listed, by a consistent read. The list also tells what became of a renewal without an answer:
 * there is no other way to read here. Once in a retry period, and early when a watch has news. */
#include "codec/rfc3339.h"
#include "state/lease_record.h"
#include "state/shard_internal.h"

#define TIMEOUT_NS_MIN ML_NS_PER_S
/* After news, so that not all members ask at the same moment. */
#define HINT_NS_MAX (50 * ML_NS_PER_MS)

static void list(struct ml_shard *self);
static void put(struct ml_shard *self);

static int64_t timeout_ns(const struct ml_shard *self)
{
    return ML_MAX(TIMEOUT_NS_MIN, self->opts.times.renew_ns / 2);
}

/* ---- the end of a round ---- */

static void end_round(struct ml_shard *self)
{
    ml_timer_stop(&self->stuck);
    if (self->state == SHARD_LEAVING) {
        ml_task_defer(&self->left_task, self->opts.loop);
        return;
    }
    lease_watch_start(&self->watch);
    if (self->news) {
        self->news = false;
        ml_timer_start(&self->hint, ml_random_between(self->opts.random, 0, HINT_NS_MAX));
    }
    ml_timer_start(&self->next_round, self->begun_ns + self->opts.times.retry_ns - shard_now(self));
}

static void failed(struct ml_shard *self, const struct ml_err *err)
{
    if (self->state == SHARD_LEAVING)
        ml_warn(self->opts.log, "shard", "the lease could not be given back; it will expire",
                ML_ERR(err));
    else if (strcmp(err->message, self->trouble.message) != 0)
        ml_warn(self->opts.log, "shard",
                self->state == SHARD_MEMBER ? "cannot renew the lease or list the members; trying "
                                              "again"
                                            : "cannot join the shard group; trying again",
                ML_ERR(err));
    self->trouble = *err;
    end_round(self);
}

static void succeeded(struct ml_shard *self)
{
    if (self->trouble.kind && self->state == SHARD_MEMBER)
        ml_info(self->opts.log, "shard", "the lease is renewed again", ML_S("lease", self->name));
    self->trouble = ML_ERR_INIT;
    end_round(self);
}

static void forget_version(struct ml_shard *self)
{
    free(ml_take(&self->rv));
    free(ml_take(&self->uid));
}

static void take_version(struct ml_shard *self, const struct shard_lease *lease)
{
    forget_version(self);
    self->rv = ml_strdup(lease->rv);
    self->uid = ml_strdup(lease->uid);
}

/* ---- requests ---- */

void shard_on_stuck(void *context)
{
    struct ml_shard *self = context;
    struct ml_err err;
    ml_err_set(&err, ML_ETIMEOUT, "no answer about the leases of %s in %s within %g s",
               self->opts.group, self->opts.ns, (double)timeout_ns(self) / (double)ML_NS_PER_S);
    if (self->call)
        ml_client_cancel(ml_take(&self->call));
    forget_version(self);
    failed(self, &err);
}

static void send(struct ml_shard *self, struct ml_client_request *request, ml_client_done *done)
{
    request->timeout_ms = timeout_ns(self) / ML_NS_PER_MS;
    ml_timer_stop(&self->next_round);
    /* Later than the request's own limit, for what the client tries again by itself. */
    ml_timer_start(&self->stuck, timeout_ns(self) + timeout_ns(self) / 8);
    self->call = ml_client_send(self->opts.client, request, done, self);
}

/* ---- sweeping ---- */

static void on_swept(void *context, struct ml_str body, const struct ml_err *err)
{
    struct ml_shard *self = context;
    (void)body;
    self->sweeping = NULL;
    if (err && err->kind != ML_ENOT_FOUND && err->kind != ML_ECONFLICT)
        ml_debug(self->opts.log, "shard", "an old lease was not deleted", ML_ERR(err));
}

/* The first of the members, one at a time; who woke up meanwhile has changed the version. */
static void sweep(struct ml_shard *self)
{
    const struct shard_peer *remains = shard_group_remains(&self->group, shard_now(self),
                                                           self->opts.times.lease_ns);
    if (!remains || self->sweeping || self->state != SHARD_MEMBER || self->next.ids[0] != self->id)
        return;
    ML_AUTO_FREE char *name = shard_lease_name(self->opts.group, remains->lease.id);
    const struct ml_client_request request = {
        .verb = ML_VERB_DELETE,
        .kind = &lease_kind,
        .ns = ml_str_of(self->opts.ns),
        .name = ml_str_of(name),
        .uid = remains->lease.uid,
        .resource_version = remains->lease.rv,
        .timeout_ms = timeout_ns(self) / ML_NS_PER_MS,
    };
    self->sweeping = ml_client_send(self->opts.client, &request, on_swept, self);
}

/* ---- listing ---- */

/* Our own Lease as the list has it. False: it is over for us. */
static bool take_self(struct ml_shard *self, const struct shard_lease *lease)
{
    struct ml_err err;
    if (lease->id && strcmp(lease->holder, self->opts.identity) == 0) {
        take_version(self, lease);
        return true;
    }
    forget_version(self);
    if (self->state == SHARD_JOINING && !lease->id)
        return true;
    if (lease->id)
        ml_err_set(&err, ML_ECONFLICT, "%s holds it now", lease->holder);
    else
        ml_err_set(&err, ML_ENOT_FOUND, "it was deleted");
    if (self->state == SHARD_LEAVING)
        end_round(self);
    else
        shard_lose(self, &err);
    return false;
}

static void on_listed(void *context, struct ml_str body, const struct ml_err *err)
{
    struct ml_shard *self = context;
    struct shard_lease own = {0};
    struct ml_err bad = ML_ERR_INIT;
    self->call = NULL;
    if (!err &&
        shard_group_observe(&self->group, body, self->asked_ns, shard_now(self), &own, &bad) < 0)
        err = &bad;
    if (err) {
        failed(self, err);
        return;
    }
    bool goes_on = take_self(self, &own);
    shard_lease_fini(&own);
    if (!goes_on)
        return;
    if (self->state != SHARD_LEAVING)
        shard_judge(self);
    if (self->renews || self->state == SHARD_LEAVING || shard_is_due(self)) {
        put(self);
        return;
    }
    sweep(self);
    succeeded(self);
}

static void list(struct ml_shard *self)
{
    struct ml_buf path = ML_BUF_INIT;
    ML_AUTO_FREE char *selector = ml_asprintf(SHARD_LABEL "=%s", self->opts.group);
    ml_buf_printf(&path, "/apis/coordination.k8s.io/v1/namespaces/%s/leases", self->opts.ns);
    ml_url_query(&path, "labelSelector", ml_str_of(selector));
    ML_AUTO_FREE char *text = ml_buf_take(&path);
    struct ml_client_request request = {.verb = ML_VERB_GET, .path = text};
    self->asked_ns = shard_now(self);
    send(self, &request, on_listed);
}

void shard_look(void *context)
{
    struct ml_shard *self = context;
    if (self->call)
        self->news = true;
    else
        list(self);
}

/* ---- renewing ---- */

/* Others wait for at least lease_ns from when the server had it, which was after we sent it. What
 * was granted after our time was over is none: somebody may have counted us as dead. */
static void granted(struct ml_shard *self)
{
    bool first = self->state == SHARD_JOINING;
    int64_t until_ns = self->sent_ns + self->opts.times.renew_ns;
    if (shard_now(self) >= (first ? until_ns : self->until_ns)) {
        struct ml_err err;
        ml_err_set(&err, ML_ETIMEOUT, "it was renewed too late");
        shard_lose(self, &err);
        return;
    }
    self->until_ns = until_ns;
    ml_timer_start(&self->deadline, until_ns - shard_now(self));
    self->state = SHARD_MEMBER;
    self->renews = false;
    if (first)
        ml_info(self->opts.log, "shard", "joined the shard group", ML_S("group", self->opts.group),
                ML_S("lease", self->name), ML_S("identity", self->opts.identity));
    shard_granted_view(self);
    list(self);
}

static void on_put(void *context, struct ml_str body, const struct ml_err *err)
{
    struct ml_shard *self = context;
    struct shard_lease lease = {0};
    struct ml_err bad = ML_ERR_INIT;
    self->call = NULL;
    forget_version(self);
    if (err && (err->kind == ML_ECONFLICT || err->kind == ML_EALREADY_EXISTS) && !self->disputed) {
        self->disputed = true;
        list(self);
        return;
    }
    if (err) {
        failed(self, err);
        return;
    }
    if (self->state == SHARD_LEAVING) {
        ml_info(self->opts.log, "shard", "left the shard group", ML_S("lease", self->name));
        end_round(self);
        return;
    }
    if (shard_lease_read(body, self->opts.group, &lease) && lease.id == self->id) {
        take_version(self, &lease);
        shard_lease_fini(&lease);
        granted(self);
        return;
    }
    shard_lease_fini(&lease);
    ml_err_set(&bad, ML_EINVALID, "the server wrote another Lease than it was sent");
    failed(self, &bad);
}

static char *lease_text(struct ml_shard *self)
{
    static const struct shard_set nobody = {0};
    bool leaves = self->state == SHARD_LEAVING;
    char now[ML_RFC3339_MICRO_LEN + 1];
    ml_rfc3339_format_micro(ml_clock_wall(self->clock), now);
    if (!self->acquired)
        self->acquired = ml_strdup(now);
    const struct shard_lease_text text = {
        .group = self->opts.group,
        .ns = self->opts.ns,
        .id = self->id,
        .uid = self->uid,
        .rv = self->rv,
        .holder = leaves ? "" : self->opts.identity,
        .view = leaves ? &nobody : shard_outgoing(self),
        .duration_s = leaves ? 1 : self->opts.times.lease_ns / ML_NS_PER_S,
        .acquired = self->acquired,
        .renewed = now,
    };
    return shard_lease_json(&text);
}

static void put(struct ml_shard *self)
{
    if (shard_is_due(self))
        self->publishing = true;
    ML_AUTO_FREE char *body = lease_text(self);
    struct ml_client_request request = {
        .verb = self->rv ? ML_VERB_UPDATE : ML_VERB_CREATE,
        .kind = &lease_kind,
        .ns = ml_str_of(self->opts.ns),
        .name = ml_str_of(self->name),
        .body = ml_str_of(body),
    };
    self->sent_ns = shard_now(self);
    send(self, &request, on_put);
}

void shard_renew(struct ml_shard *self)
{
    if (!self->call && self->rv)
        put(self);
}

void shard_begin_round(void *context)
{
    struct ml_shard *self = context;
    if (self->state == SHARD_MEMBER && shard_now(self) >= self->until_ns) {
        shard_on_deadline(self); /* it slept: nothing is to make others believe that it lives */
        return;
    }
    ml_timer_stop(&self->hint);
    self->begun_ns = shard_now(self);
    self->renews = true;
    self->disputed = false;
    if (self->rv)
        put(self);
    else
        list(self);
}

/* ---- hints ---- */

void shard_on_seen(void *context, struct ml_str object)
{
    struct ml_shard *self = context;
    struct shard_lease lease = {0};
    bool is_news = object.len == 0 || (shard_lease_read(object, self->opts.group, &lease) &&
                                       shard_group_is_news(&self->group, &lease));
    shard_lease_fini(&lease);
    if (!is_news || self->state != SHARD_MEMBER)
        return;
    if (self->call)
        self->news = true;
    else if (!ml_timer_active(&self->hint))
        ml_timer_start(&self->hint, ml_random_between(self->opts.random, 0, HINT_NS_MAX));
}
