/* One attempt: read the Lease unless it is our own and fresh, then write it if nobody else's time
 * runs (client-go, tryAcquireOrRenew). */
#include "codec/rfc3339.h"
#include "state/election_internal.h"

#define RETRY_JITTER   1.2 /* client-go, leaderelection.JitterFactor */
#define TIMEOUT_NS_MIN ML_NS_PER_S
/* After a hint, so that not all candidates ask at the same moment. */
#define HINT_NS_MAX (200 * ML_NS_PER_MS)

static int64_t timeout_ns(const struct ml_election *self)
{
    return ML_MAX(TIMEOUT_NS_MIN, self->opts.times.renew_ns / 2);
}

/* Somebody holds it, and time runs. A duration that makes no sense counts as our own. */
static bool is_running(const struct ml_election *self)
{
    const struct lease_record *record = &self->record;
    if (!record->holder || !*record->holder)
        return false;
    int64_t duration_ns = record->duration_ns ? record->duration_ns : self->opts.times.lease_ns;
    return self->observed_ns + duration_ns > election_now(self);
}

int election_observe(struct ml_election *self, struct ml_str lease, struct ml_err *err)
{
    ML_AUTO_FREE char *before = ml_strdup(self->record.spec);
    int r = lease_record_read(&self->record, lease, err);
    if (r < 0)
        return r;
    if (!before || strcmp(before, self->record.spec) != 0)
        self->observed_ns = election_now(self);
    return 0;
}

/* How long who waits for a running Lease has to, at most; else for ever. */
static int64_t left_ns(const struct ml_election *self)
{
    const struct lease_record *record = &self->record;
    int64_t duration_ns = record->duration_ns ? record->duration_ns : self->opts.times.lease_ns;
    if (!is_running(self) || election_is_mine(self))
        return INT64_MAX;
    return self->observed_ns + duration_ns - election_now(self) +
           ml_random_between(self->opts.random, 0, HINT_NS_MAX);
}

/* Ends an attempt. The holder keeps to the period from start to start; who waits jitters, from
 * end to start, and is there when the Lease expires. */
void election_schedule(struct ml_election *self)
{
    int64_t retry_ns = self->opts.times.retry_ns;
    ml_timer_stop(&self->stuck);
    if (election_holds(self))
        ml_timer_start(&self->next, self->begun_ns + retry_ns - election_now(self));
    else
        ml_timer_start(
            &self->next,
            ML_MIN(left_ns(self),
                   retry_ns + ml_random_between(self->opts.random, 0,
                                                (int64_t)(RETRY_JITTER * (double)retry_ns))));
}

void election_failed(struct ml_election *self, const struct ml_err *err)
{
    switch (self->state) {
    case ELECTION_RELEASING:
        ml_warn(self->opts.log, "election", "the lease could not be given back; it will expire",
                ML_ERR(err));
        ml_task_defer(&self->released_task, self->opts.loop);
        return;
    case ELECTION_DOUBTING:
        election_lose(self, err);
        return;
    case ELECTION_LEADING:
    case ELECTION_WAITING:
        /* A race that another candidate won is told by the next attempt. */
        if (strcmp(err->message, self->trouble.message) != 0 &&
            (election_holds(self) ||
             (err->kind != ML_ECONFLICT && err->kind != ML_EALREADY_EXISTS)))
            ml_warn(self->opts.log, "election",
                    election_holds(self) ? "cannot renew the lease; trying again"
                                         : "cannot ask for the lease; trying again",
                    ML_ERR(err));
        self->trouble = *err;
        election_schedule(self);
        return;
    case ELECTION_NEW:
    case ELECTION_OVER:
        break;
    }
    ML_UNREACHABLE();
}

void election_on_stuck(void *context)
{
    struct ml_election *self = context;
    struct ml_err err;
    ml_err_set(&err, ML_ETIMEOUT, "no answer about the lease %s/%s within %g s", self->opts.ns,
               self->opts.name, (double)timeout_ns(self) / (double)ML_NS_PER_S);
    if (self->call)
        ml_client_cancel(ml_take(&self->call));
    election_failed(self, &err);
}

void election_send(struct ml_election *self, enum ml_verb verb, struct ml_str body,
                   ml_client_done *done)
{
    const struct ml_client_request request = {
        .verb = verb,
        .kind = &lease_kind,
        .ns = ml_str_of(self->opts.ns),
        .name = ml_str_of(self->opts.name),
        .body = body,
        .timeout_ms = timeout_ns(self) / ML_NS_PER_MS,
    };
    /* Later than the request's own limit, which also drops the connection: this one is for what
     * the client tries again by itself. */
    ml_timer_start(&self->stuck, timeout_ns(self) + timeout_ns(self) / 8);
    self->call = ml_client_send(self->opts.client, &request, done, self);
}

static void wait_for(struct ml_election *self)
{
    if (!self->told || strcmp(self->told, self->record.holder) != 0) {
        free(self->told);
        self->told = ml_strdup(self->record.holder);
        ml_info(self->opts.log, "election", "standing by: another replica leads",
                ML_S("lease", self->opts.name), ML_S("holder", self->record.holder));
    }
    self->trouble = ML_ERR_INIT;
    lease_watch_start(&self->watch);
    election_schedule(self);
}

static void on_written(void *context, struct ml_str body, const struct ml_err *err)
{
    struct ml_election *self = context;
    struct ml_err bad = ML_ERR_INIT;
    self->call = NULL;
    if (!err && election_observe(self, body, &bad) < 0)
        err = &bad;
    if (!err && !election_is_mine(self)) {
        ml_err_set(&bad, ML_ECONFLICT, "the server wrote another holder than it was sent");
        err = &bad;
    }
    if (err)
        election_failed(self, err);
    else
        election_granted(self);
}

/* The fast path did not do: somebody wrote the Lease, or the server did not answer. */
static void on_renewed(void *context, struct ml_str body, const struct ml_err *err)
{
    struct ml_election *self = context;
    if (!err) {
        on_written(context, body, NULL);
        return;
    }
    self->call = NULL;
    ml_debug(self->opts.log, "election", "the lease was not renewed at once", ML_ERR(err));
    election_ask(self);
}

static char *claim(struct ml_election *self, struct ml_str metadata, bool keep)
{
    char now[ML_RFC3339_MICRO_LEN + 1];
    ml_rfc3339_format_micro(ml_clock_wall(self->clock), now);
    const struct lease_record *record = &self->record;
    bool kept = keep && *record->acquired;
    const struct lease_claim content = {
        .holder = self->opts.identity,
        .duration_s = self->opts.times.lease_ns / ML_NS_PER_S,
        .acquired = kept ? record->acquired : now,
        .renewed = now,
        .transitions = record->transitions + (keep || !record->spec ? 0 : 1),
    };
    self->sent_ns = election_now(self);
    return lease_claim_json(&content, metadata);
}

static void update(struct ml_election *self, ml_client_done *done)
{
    ML_AUTO_FREE char *body = claim(self, ml_str_of(self->record.metadata), election_is_mine(self));
    election_send(self, ML_VERB_UPDATE, ml_str_of(body), done);
}

static void create(struct ml_election *self)
{
    struct ml_buf metadata = ML_BUF_INIT;
    ml_buf_printf(&metadata, "{\"name\":\"%s\",\"namespace\":\"%s\"}", self->opts.name,
                  self->opts.ns);
    lease_record_fini(&self->record);
    ML_AUTO_FREE char *text = ml_buf_take(&metadata);
    ML_AUTO_FREE char *body = claim(self, ml_str_of(text), false);
    election_send(self, ML_VERB_CREATE, ml_str_of(body), on_written);
}

static void on_lease(void *context, struct ml_str body, const struct ml_err *err)
{
    struct ml_election *self = context;
    struct ml_err bad = ML_ERR_INIT;
    self->call = NULL;
    if (err && err->kind == ML_ENOT_FOUND) {
        /* Its holder, if it still lives, has not noticed. */
        if (is_running(self) && !election_is_mine(self))
            wait_for(self);
        else
            create(self);
        return;
    }
    if (!err && election_observe(self, body, &bad) < 0)
        err = &bad;
    if (err) {
        election_failed(self, err);
        return;
    }
    if (election_holds(self) && *self->record.holder && !election_is_mine(self)) {
        ml_err_set(&bad, ML_ECONFLICT, "%s holds it now", self->record.holder);
        election_lose(self, &bad);
    } else if (is_running(self) && !election_is_mine(self)) {
        wait_for(self);
    } else {
        if (election_holds(self))
            ml_metric_add(self->slow_path, 1);
        update(self, on_written);
    }
}

void election_ask(struct ml_election *self)
{
    election_send(self, ML_VERB_GET, ML_STR(""), on_lease);
}

void election_attempt(void *context)
{
    struct ml_election *self = context;
    self->begun_ns = election_now(self);
    if (self->state == ELECTION_LEADING && election_is_mine(self) && is_running(self))
        update(self, on_renewed);
    else
        election_ask(self);
}

/* The sooner a renewal is seen, the sooner its end is known. What to do is decided by an attempt
 * that reads the Lease itself; it comes early when nobody holds it any more. */
void election_on_seen(void *context, struct ml_str lease)
{
    struct ml_election *self = context;
    struct ml_err err;
    if (self->state != ELECTION_WAITING || self->call)
        return;
    if (lease.len && election_observe(self, lease, &err) < 0)
        return;
    if (!lease.len || !*self->record.holder)
        ml_timer_start(&self->next, ml_random_between(self->opts.random, 0, HINT_NS_MAX));
}
