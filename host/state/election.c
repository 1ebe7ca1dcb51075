/* Leader election: asks for the Lease, renews it, notices that it is lost, gives it back.
 * operator/operator.c starts it and asks the fence before each write. */
#include "state/election.h"

#include "base/repeat.h"
#include "codec/rfc3339.h"
#include "net/loop.h"

/* Added to an attempt that the watch brings forward, so that not all candidates ask at once. */
#define HINT_NS_MAX (200 * ML_NS_PER_MS)
/* A deadline that is noticed so much too late has passed while the process was suspended. */
#define SUSPENDED_NS ML_NS_PER_S

enum election_state {
    ELECTION_NEW,
    ELECTION_WAITING,
    ELECTION_LEADING,
    ELECTION_DOUBTING, /* suspended past the deadline: the fence is closed, one attempt is made */
    ELECTION_RELEASING,
    ELECTION_OVER,
};

struct ml_election {
    struct ml_lease_opts opts; /* strings owned */
    const struct ml_election_handler *handler;
    void *context;
    struct ml_clock *clock;
    enum election_state state;

    /* The Lease as last read. */
    struct lease_record record;
    int64_t observed_ns; /* monotonic: when its spec was seen to change */
    char *logged_holder; /* the holder that the log has named */

    /* The attempt under way. */
    struct ml_client_call *call;
    int64_t begun_ns;
    int64_t sent_ns; /* the write */
    struct ml_timer stuck;
    struct ml_timer next;  /* attempt */
    struct ml_err trouble; /* of the last attempt; cleared by a success */
    struct ml_repeat repeat;

    int64_t until_ns; /* leads until then */
    struct ml_timer deadline;
    struct lease_watch watch;

    void (*released)(void *context);
    void *released_context;
    struct ml_task released_task;
    struct ml_timer patience;

    struct ml_metric *master_status;
    struct ml_metric *slow_path;
};

static int64_t election_now(const struct ml_election *self)
{
    return ml_clock_monotonic(self->clock);
}

static bool election_is_mine(const struct ml_election *self)
{
    return self->record.holder && strcmp(self->record.holder, self->opts.identity) == 0;
}

static bool election_holds(const struct ml_election *self)
{
    return self->state == ELECTION_LEADING || self->state == ELECTION_DOUBTING;
}

static void election_stop(struct ml_election *self)
{
    if (self->call)
        ml_client_cancel(ml_take(&self->call));
    ml_timer_stop(&self->stuck);
    ml_timer_stop(&self->next);
    ml_timer_stop(&self->deadline);
    lease_watch_stop(&self->watch);
}

/* Somebody holds the Lease and it has not expired. A duration that makes no sense counts as our
 * own. */
static bool election_lease_is_valid(const struct ml_election *self)
{
    const struct lease_record *record = &self->record;
    if (!record->holder || !*record->holder)
        return false;
    int64_t duration_ns = record->duration_ns ? record->duration_ns : self->opts.times.lease_ns;
    return self->observed_ns + duration_ns > election_now(self);
}

static int election_observe(struct ml_election *self, struct ml_str lease, struct ml_err *err)
{
    ML_AUTO_FREE char *before = ml_strdup(self->record.spec);
    int r = lease_record_read(&self->record, lease, err);
    if (r < 0)
        return r;
    if (!before || strcmp(before, self->record.spec) != 0)
        self->observed_ns = election_now(self);
    return 0;
}

/* How long until a Lease that another candidate holds expires; INT64_MAX if there is none. */
static int64_t election_until_expiry_ns(const struct ml_election *self)
{
    const struct lease_record *record = &self->record;
    int64_t duration_ns = record->duration_ns ? record->duration_ns : self->opts.times.lease_ns;
    if (!election_lease_is_valid(self) || election_is_mine(self))
        return INT64_MAX;
    return self->observed_ns + duration_ns - election_now(self) +
           ml_random_between(self->opts.random, 0, HINT_NS_MAX);
}

/* Ends an attempt. The holder renews at a fixed period. A candidate waits for a jittered time, but
 * no longer than until the Lease expires. */
static void election_schedule(struct ml_election *self)
{
    int64_t retry_ns = self->opts.times.retry_ns;
    ml_timer_stop(&self->stuck);
    if (election_holds(self))
        ml_timer_start(&self->next, self->begun_ns + retry_ns - election_now(self));
    else
        ml_timer_start(
            &self->next,
            ML_MIN(election_until_expiry_ns(self),
                   retry_ns + ml_random_between(self->opts.random, 0,
                                                (int64_t)(LEASE_RETRY_JITTER * (double)retry_ns))));
}

/* ---- how long it leads ---- */

static void election_lose(struct ml_election *self, const struct ml_err *why)
{
    struct ml_err err = *why;
    ml_err_wrap(&err, "lost the lease %s/%s", self->opts.ns, self->opts.name);
    election_stop(self);
    self->state = ELECTION_OVER;
    ml_metric_set(self->master_status, 0);
    self->handler->lost(self->context, &err);
}

static void election_failed(struct ml_election *self, const struct ml_err *err)
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
        /* If another candidate was faster, the next attempt logs who holds the Lease. */
        if ((election_holds(self) ||
             (err->kind != ML_ECONFLICT && err->kind != ML_EALREADY_EXISTS)) &&
            ml_repeat_failed(&self->repeat, ml_str_of(err->message), election_now(self)))
            ml_warn(self->opts.log, "election",
                    election_holds(self) ? "cannot renew the lease; trying again"
                                         : "cannot ask for the lease; trying again",
                    ML_ERR(err), ML_S("errorKind", ml_err_name(err->kind)),
                    ML_REPEAT_FIELDS(&self->repeat, self->opts.times.retry_ns));
        self->trouble = *err;
        election_schedule(self);
        return;
    case ELECTION_NEW:
    case ELECTION_OVER:
        break;
    }
    ML_UNREACHABLE();
}

static void election_on_stuck(void *context)
{
    struct ml_election *self = context;
    struct ml_err err;
    ml_err_set(&err, ML_ETIMEOUT, "no answer about the lease %s/%s within %g s", self->opts.ns,
               self->opts.name, (double)lease_timeout_ns(&self->opts.times) / (double)ML_NS_PER_S);
    if (self->call)
        ml_client_cancel(ml_take(&self->call));
    election_failed(self, &err);
}

static void election_send(struct ml_election *self, enum ml_verb verb, struct ml_str body,
                          ml_client_done *done)
{
    const struct ml_client_request request = {
        .verb = verb,
        .kind = &ml_kind_lease,
        .ns = ml_str_of(self->opts.ns),
        .name = ml_str_of(self->opts.name),
        .body = body,
        .timeout_ms = lease_timeout_ns(&self->opts.times) / ML_NS_PER_MS,
    };
    /* Longer than the request's own limit, which also drops the connection: this one ends the
     * client's own retries. */
    ml_timer_start(&self->stuck,
                   lease_timeout_ns(&self->opts.times) + lease_timeout_ns(&self->opts.times) / 8);
    self->call = ml_client_send(self->opts.client, &request, done, self);
}

static void election_read_lease(struct ml_election *self);

/* Time runs from when the renewal was sent: other candidates wait for at least lease_ns from when
 * the server received it, which was later. */
static void election_granted(struct ml_election *self)
{
    int64_t until_ns = self->sent_ns + self->opts.times.renew_ns;
    bool first = self->state == ELECTION_WAITING;
    if (until_ns <= election_now(self)) { /* suspended meanwhile: ask again */
        if (election_holds(self))
            self->state = ELECTION_DOUBTING;
        election_read_lease(self);
        return;
    }
    if (self->state == ELECTION_DOUBTING)
        ml_warn(self->opts.log, "election", "the process was suspended; it still holds the lease",
                ML_S("lease", self->opts.name));
    else if (self->trouble.kind && !first)
        ml_info(self->opts.log, "election", "the lease is renewed again",
                ML_S("lease", self->opts.name));
    self->trouble = ML_ERR_INIT;
    ml_repeat_over(&self->repeat);
    self->until_ns = until_ns;
    self->state = ELECTION_LEADING;
    ml_timer_start(&self->deadline, until_ns - election_now(self));
    election_schedule(self);
    if (!first)
        return;
    lease_watch_stop(&self->watch);
    ml_metric_set(self->master_status, 1);
    ml_info(self->opts.log, "election", "leading", ML_S("lease", self->opts.name),
            ML_S("identity", self->opts.identity), ML_I("transitions", self->record.transitions));
    self->handler->led(self->context);
}

/* ---- one attempt ---- */

static void election_stand_by(struct ml_election *self)
{
    if (!self->logged_holder || strcmp(self->logged_holder, self->record.holder) != 0) {
        free(self->logged_holder);
        self->logged_holder = ml_strdup(self->record.holder);
        ml_info(self->opts.log, "election", "standing by: another replica leads",
                ML_S("lease", self->opts.name), ML_S("holder", self->record.holder));
    }
    self->trouble = ML_ERR_INIT;
    ml_repeat_over(&self->repeat);
    lease_watch_start(&self->watch);
    election_schedule(self);
}

static void election_on_written(void *context, struct ml_str body, const struct ml_err *err)
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

/* The fast path failed: somebody else wrote the Lease, or the server did not answer. */
static void election_on_renewed(void *context, struct ml_str body, const struct ml_err *err)
{
    struct ml_election *self = context;
    if (!err) {
        election_on_written(context, body, NULL);
        return;
    }
    self->call = NULL;
    ml_debug(self->opts.log, "election", "the lease was not renewed at once", ML_ERR(err));
    election_read_lease(self);
}

static char *election_claim_json(struct ml_election *self, struct ml_str metadata, bool keep)
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

static void election_update_lease(struct ml_election *self, ml_client_done *done)
{
    ML_AUTO_FREE char *body = election_claim_json(self, ml_str_of(self->record.metadata),
                                                  election_is_mine(self));
    election_send(self, ML_VERB_UPDATE, ml_str_of(body), done);
}

static void election_create_lease(struct ml_election *self)
{
    struct ml_buf metadata = ML_BUF_INIT;
    ml_buf_printf(&metadata, "{\"name\":\"%s\",\"namespace\":\"%s\"}", self->opts.name,
                  self->opts.ns);
    lease_record_fini(&self->record);
    ML_AUTO_FREE char *text = ml_buf_take(&metadata);
    ML_AUTO_FREE char *body = election_claim_json(self, ml_str_of(text), false);
    election_send(self, ML_VERB_CREATE, ml_str_of(body), election_on_written);
}

static void election_on_lease_read(void *context, struct ml_str body, const struct ml_err *err)
{
    struct ml_election *self = context;
    struct ml_err bad = ML_ERR_INIT;
    self->call = NULL;
    if (err && err->kind == ML_ENOT_FOUND) {
        /* Its holder may still be alive and may not have noticed. */
        if (election_lease_is_valid(self) && !election_is_mine(self))
            election_stand_by(self);
        else
            election_create_lease(self);
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
    } else if (election_lease_is_valid(self) && !election_is_mine(self)) {
        election_stand_by(self);
    } else {
        if (election_holds(self))
            ml_metric_add(self->slow_path, 1);
        election_update_lease(self, election_on_written);
    }
}

static void election_read_lease(struct ml_election *self)
{
    election_send(self, ML_VERB_GET, ML_STR(""), election_on_lease_read);
}

static void election_attempt(void *context)
{
    struct ml_election *self = context;
    self->begun_ns = election_now(self);
    if (self->state == ELECTION_LEADING && election_is_mine(self) && election_lease_is_valid(self))
        election_update_lease(self, election_on_renewed);
    else
        election_read_lease(self);
}

/* A renewal that is seen early moves the expiry that we wait for. When the Lease has no holder any
 * more, the next attempt, which reads the Lease itself, is made early. */
static void election_on_watched(void *context, struct ml_str lease)
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

/* ---- the deadline and the fence ---- */

static void election_on_deadline(void *context)
{
    struct ml_election *self = context;
    if (election_now(self) - self->until_ns > SUSPENDED_NS) {
        ml_warn(self->opts.log, "election",
                "the process was suspended past the renew deadline; asking who holds the lease",
                ML_S("lease", self->opts.name));
        election_stop(self);
        self->state = ELECTION_DOUBTING;
        election_read_lease(self);
        return;
    }
    struct ml_err err;
    lease_not_renewed(&self->opts.times, &self->trouble, &err);
    election_lose(self, &err);
}

bool ml_election_leads(const struct ml_election *self)
{
    return self->state == ELECTION_LEADING && election_now(self) < self->until_ns;
}

int ml_election_fence(void *context, const char *method, const char *path, struct ml_err *err)
{
    const struct ml_election *self = context;
    if (ml_election_leads(self) || ml_path_is_event(path))
        return 0;
    return ml_err_set(err, ML_ECANCELED, "%s %s was not sent: this replica does not hold %s/%s",
                      method, path, self->opts.ns, self->opts.name);
}

/* ---- release ---- */

static void election_on_released(void *context)
{
    struct ml_election *self = context;
    election_stop(self);
    ml_timer_stop(&self->patience);
    self->state = ELECTION_OVER;
    void (*released)(void *context) = self->released;
    self->released = NULL;
    if (released)
        released(self->released_context);
}

static void election_give_back(struct ml_election *self);

static void election_on_lease_reread(void *context, struct ml_str body, const struct ml_err *err)
{
    struct ml_election *self = context;
    struct ml_err bad = ML_ERR_INIT;
    self->call = NULL;
    if (!err && election_observe(self, body, &bad) < 0)
        err = &bad;
    if (err)
        election_failed(self, err);
    else if (election_is_mine(self))
        election_give_back(self);
    else
        ml_task_defer(&self->released_task, self->opts.loop);
}

static void election_on_given_back(void *context, struct ml_str body, const struct ml_err *err)
{
    struct ml_election *self = context;
    (void)body;
    self->call = NULL;
    if (!err) {
        ml_info(self->opts.log, "election", "gave the lease back", ML_S("lease", self->opts.name));
        ml_task_defer(&self->released_task, self->opts.loop);
    } else if (err->kind == ML_ECONFLICT) { /* a renewal under way was faster */
        election_send(self, ML_VERB_GET, ML_STR(""), election_on_lease_reread);
    } else {
        election_failed(self, err);
    }
}

static void election_give_back(struct ml_election *self)
{
    char now[ML_RFC3339_MICRO_LEN + 1];
    ml_rfc3339_format_micro(ml_clock_wall(self->clock), now);
    const struct lease_claim content = {
        .holder = "",
        .duration_s = 1,
        .acquired = now,
        .renewed = now,
        .transitions = self->record.transitions,
    };
    ML_AUTO_FREE char *body = lease_claim_json(&content, ml_str_of(self->record.metadata));
    election_send(self, ML_VERB_UPDATE, ml_str_of(body), election_on_given_back);
}

void ml_election_release(struct ml_election *self, int64_t patience_ns, void (*done)(void *context),
                         void *context)
{
    bool held = ml_election_leads(self);
    ml_assert(self->state != ELECTION_RELEASING);
    election_stop(self);
    self->released = done;
    self->released_context = context;
    ml_metric_set(self->master_status, 0);
    if (!held || !election_is_mine(self)) {
        self->state = ELECTION_OVER;
        ml_task_defer(&self->released_task, self->opts.loop);
        return;
    }
    self->state = ELECTION_RELEASING;
    ml_timer_start(&self->patience, patience_ns);
    election_give_back(self);
}

/* ---- life ---- */

struct ml_election *ml_election_new(const struct ml_lease_opts *opts,
                                    const struct ml_election_handler *handler, void *context)
{
    struct ml_election *self = ml_new(struct ml_election);
    self->opts = lease_opts_copy(opts);
    self->handler = handler;
    self->context = context;
    self->clock = ml_loop_clock(opts->loop);
    self->trouble = ML_ERR_INIT;
    ml_timer_init(&self->stuck, opts->loop, election_on_stuck, self);
    ml_timer_init(&self->next, opts->loop, election_attempt, self);
    ml_timer_init(&self->deadline, opts->loop, election_on_deadline, self);
    ml_timer_init(&self->patience, opts->loop, election_on_released, self);
    ml_task_init(&self->released_task, election_on_released, self);
    ML_AUTO_FREE char *selector = ml_asprintf("metadata.name=%s", opts->name);
    lease_watch_init(&self->watch, opts->client, opts->ns, "fieldSelector", selector,
                     election_on_watched, self);
    struct ml_metric_family *status = ml_metrics_gauge(
        opts->metrics, "leader_election_master_status",
        "Whether this replica leads: 1 when it does, by the name of the Lease.",
        ml_metric_labels("name"));
    struct ml_metric_family *slow = ml_metrics_counter(
        opts->metrics, "leader_election_slowpath_total",
        "Renewals of a Lease that had to read it first, by the name of the Lease.",
        ml_metric_labels("name"));
    self->master_status = ml_metric_with(status, ml_metric_labels(self->opts.name));
    self->slow_path = ml_metric_with(slow, ml_metric_labels(self->opts.name));
    return self;
}

void ml_election_free(struct ml_election *self)
{
    if (!self)
        return;
    election_stop(self);
    ml_timer_stop(&self->patience);
    ml_task_cancel(&self->released_task);
    lease_watch_fini(&self->watch);
    lease_record_fini(&self->record);
    free(self->logged_holder);
    lease_opts_fini(&self->opts);
    free(self);
}

void ml_election_start(struct ml_election *self)
{
    ml_assert(self->state == ELECTION_NEW);
    self->state = ELECTION_WAITING;
    ml_info(self->opts.log, "election", "asking for the lease", ML_S("namespace", self->opts.ns),
            ML_S("lease", self->opts.name), ML_S("identity", self->opts.identity));
    election_attempt(self);
}
