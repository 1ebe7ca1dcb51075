/* Leader election: asks for the Lease, renews it, notices that it is lost, gives it back.
 * operator/operator.c starts it and asks the fence before each write. */
#include "state/election.h"

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
    struct lease_hold hold;
    const struct ml_lease_opts *opts; /* of it */
    const struct ml_election_handler *handler;
    void *context;
    enum election_state state;

    /* The Lease as last read. */
    struct lease_record record;
    int64_t observed_ns; /* monotonic: when its spec was seen to change */
    char *logged_holder; /* the holder that the log has named */

    struct ml_metric *master_status;
    struct ml_metric *slow_path;
};

static bool election_is_mine(const struct ml_election *self)
{
    return self->record.holder && strcmp(self->record.holder, self->opts->identity) == 0;
}

static bool election_holds(const struct ml_election *self)
{
    return self->state == ELECTION_LEADING || self->state == ELECTION_DOUBTING;
}

/* When the Lease expires, on our clock. A duration that makes no sense counts as our own. */
static int64_t election_expiry_ns(const struct ml_election *self)
{
    int64_t duration_ns = self->record.duration_ns;
    return self->observed_ns + (duration_ns ? duration_ns : self->opts->times.lease_ns);
}

/* Somebody holds the Lease and it has not expired. */
static bool election_lease_is_valid(const struct ml_election *self)
{
    const char *holder = self->record.holder;
    return holder && *holder && election_expiry_ns(self) > lease_hold_now(&self->hold);
}

static bool election_is_held_by_another(const struct ml_election *self)
{
    return election_lease_is_valid(self) && !election_is_mine(self);
}

static int election_observe(struct ml_election *self, struct ml_str lease, struct ml_err *err)
{
    ML_AUTO_FREE char *before = ml_strdup(self->record.spec);
    int r = lease_record_read(&self->record, lease, err);
    if (r < 0)
        return r;
    if (!before || strcmp(before, self->record.spec) != 0)
        self->observed_ns = lease_hold_now(&self->hold);
    return 0;
}

/* Ends an attempt. The holder renews at a fixed period. A candidate waits for a jittered time, but
 * no longer than until the Lease expires. */
static void election_schedule(struct ml_election *self)
{
    struct ml_random *random = self->opts->random;
    int64_t now_ns = lease_hold_now(&self->hold), retry_ns = self->opts->times.retry_ns;
    int64_t jitter_ns = (int64_t)(LEASE_RETRY_JITTER * (double)retry_ns);
    int64_t at_ns = self->hold.begun_ns + retry_ns;
    if (!election_holds(self))
        at_ns = now_ns + retry_ns + ml_random_between(random, 0, jitter_ns);
    if (!election_holds(self) && election_is_held_by_another(self)) {
        int64_t expired_ns = election_expiry_ns(self) + ml_random_between(random, 0, HINT_NS_MAX);
        at_ns = ML_MIN(at_ns, expired_ns);
    }
    ml_timer_stop(&self->hold.stuck);
    ml_timer_start(&self->hold.next, at_ns - now_ns);
}

/* ---- how long it leads ---- */

static void election_lose(struct ml_election *self, const struct ml_err *why)
{
    struct ml_err err = *why;
    ml_err_wrap(&err, "lost the lease %s/%s", self->opts->ns, self->opts->name);
    lease_hold_stop(&self->hold);
    self->state = ELECTION_OVER;
    ml_metric_set(self->master_status, 0);
    self->handler->lost(self->context, &err);
}

static void election_failed(void *context, const struct ml_err *err)
{
    struct ml_election *self = context;
    switch (self->state) {
    case ELECTION_RELEASING:
        ml_warn(self->opts->log, "election", "the lease could not be given back; it will expire",
                ML_ERR(err));
        lease_hold_released(&self->hold);
        return;
    case ELECTION_DOUBTING:
        election_lose(self, err);
        return;
    case ELECTION_LEADING:
        lease_hold_warn(&self->hold, "cannot renew the lease; trying again", err);
        break;
    case ELECTION_WAITING:
        /* If another candidate was faster, the next attempt logs who holds the Lease. */
        if (err->kind != ML_ECONFLICT && err->kind != ML_EALREADY_EXISTS)
            lease_hold_warn(&self->hold, "cannot ask for the lease; trying again", err);
        break;
    case ELECTION_NEW:
    case ELECTION_OVER:
        ML_UNREACHABLE();
    }
    self->hold.trouble = *err;
    election_schedule(self);
}

static void election_send(struct ml_election *self, enum ml_verb verb, struct ml_str body,
                          ml_client_done *done)
{
    struct ml_client_request request = {
        .verb = verb,
        .kind = &ml_kind_lease,
        .ns = ml_str_of(self->opts->ns),
        .name = ml_str_of(self->opts->name),
        .body = body,
    };
    lease_hold_send(&self->hold, &request, done);
}

static void election_read_lease(struct ml_election *self);

/* Time runs from when the renewal was sent: other candidates wait for at least lease_ns from when
 * the server received it, which was later. */
static void election_granted(struct ml_election *self)
{
    bool first = self->state == ELECTION_WAITING;
    if (lease_hold_granted_until(&self->hold) <= lease_hold_now(&self->hold)) {
        /* Suspended meanwhile: ask again. */
        if (election_holds(self))
            self->state = ELECTION_DOUBTING;
        election_read_lease(self);
        return;
    }
    if (self->state == ELECTION_DOUBTING)
        ml_warn(self->opts->log, "election", "the process was suspended; it still holds the lease",
                ML_S("lease", self->opts->name));
    else if (self->hold.trouble.kind && !first)
        ml_info(self->opts->log, "election", "the lease is renewed again",
                ML_S("lease", self->opts->name));
    lease_hold_succeeded(&self->hold);
    lease_hold_renew(&self->hold);
    self->state = ELECTION_LEADING;
    election_schedule(self);
    if (!first)
        return;
    lease_hold_end_watch(&self->hold);
    ml_metric_set(self->master_status, 1);
    ml_info(self->opts->log, "election", "leading", ML_S("lease", self->opts->name),
            ML_S("identity", self->opts->identity), ML_I("transitions", self->record.transitions));
    self->handler->led(self->context);
}

/* ---- one attempt ---- */

static void election_stand_by(struct ml_election *self)
{
    if (!self->logged_holder || strcmp(self->logged_holder, self->record.holder) != 0) {
        free(self->logged_holder);
        self->logged_holder = ml_strdup(self->record.holder);
        ml_info(self->opts->log, "election", "standing by: another replica leads",
                ML_S("lease", self->opts->name), ML_S("holder", self->record.holder));
    }
    lease_hold_succeeded(&self->hold);
    lease_hold_watch(&self->hold);
    election_schedule(self);
}

static void election_on_written(void *context, struct ml_str body, const struct ml_err *err)
{
    struct ml_election *self = context;
    struct ml_err bad = ML_ERR_INIT;
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
    ml_debug(self->opts->log, "election", "the lease was not renewed at once", ML_ERR(err));
    election_read_lease(self);
}

static char *election_claim_json(struct ml_election *self, struct ml_str metadata, bool keep)
{
    const struct lease_record *record = &self->record;
    const struct lease_claim content = {
        .holder = self->opts->identity,
        .duration_s = self->opts->times.lease_ns / ML_NS_PER_S,
        .acquired = keep ? record->acquired : "",
        .renewed_ns = ml_clock_wall(self->hold.clock),
        .transitions = record->transitions + (keep || !record->spec ? 0 : 1),
    };
    self->hold.sent_ns = lease_hold_now(&self->hold);
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
    ML_AUTO_FREE char *metadata = ml_asprintf("{\"name\":\"%s\",\"namespace\":\"%s\"}",
                                              self->opts->name, self->opts->ns);
    lease_record_fini(&self->record);
    ML_AUTO_FREE char *body = election_claim_json(self, ml_str_of(metadata), false);
    election_send(self, ML_VERB_CREATE, ml_str_of(body), election_on_written);
}

/* Its holder may still be alive and may not have noticed. */
static void election_replace_deleted(struct ml_election *self)
{
    if (election_is_held_by_another(self))
        election_stand_by(self);
    else
        election_create_lease(self);
}

static void election_give_back(struct ml_election *self);

static void election_on_lease_read(void *context, struct ml_str body, const struct ml_err *err)
{
    struct ml_election *self = context;
    struct ml_err bad = ML_ERR_INIT;
    if (err && err->kind == ML_ENOT_FOUND && self->state != ELECTION_RELEASING) {
        election_replace_deleted(self);
        return;
    }
    if (!err && election_observe(self, body, &bad) < 0)
        err = &bad;
    if (err) {
        election_failed(self, err);
    } else if (self->state == ELECTION_RELEASING) {
        if (election_is_mine(self))
            election_give_back(self);
        else
            lease_hold_released(&self->hold);
    } else if (election_holds(self) && *self->record.holder && !election_is_mine(self)) {
        ml_err_set(&bad, ML_ECONFLICT, "%s holds it now", self->record.holder);
        election_lose(self, &bad);
    } else if (election_is_held_by_another(self)) {
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
    self->hold.begun_ns = lease_hold_now(&self->hold);
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
    if (self->state != ELECTION_WAITING || self->hold.call)
        return;
    if (lease.len && election_observe(self, lease, &err) < 0)
        return;
    if (!lease.len || !*self->record.holder)
        ml_timer_start(&self->hold.next, ml_random_between(self->opts->random, 0, HINT_NS_MAX));
}

/* ---- the deadline and the fence ---- */

static void election_on_deadline(void *context)
{
    struct ml_election *self = context;
    if (lease_hold_now(&self->hold) - self->hold.until_ns > SUSPENDED_NS) {
        ml_warn(self->opts->log, "election",
                "the process was suspended past the renew deadline; asking who holds the lease",
                ML_S("lease", self->opts->name));
        lease_hold_stop(&self->hold);
        self->state = ELECTION_DOUBTING;
        election_read_lease(self);
        return;
    }
    struct ml_err err;
    lease_hold_expired(&self->hold, &err);
    election_lose(self, &err);
}

bool ml_election_leads(const struct ml_election *self)
{
    return self->state == ELECTION_LEADING && lease_hold_now(&self->hold) < self->hold.until_ns;
}

int ml_election_fence(void *context, const char *method, const char *path, struct ml_err *err)
{
    const struct ml_election *self = context;
    if (ml_election_leads(self) || ml_path_is_event(path))
        return 0;
    return ml_err_set(err, ML_ECANCELED, "%s %s was not sent: this replica does not hold %s/%s",
                      method, path, self->opts->ns, self->opts->name);
}

/* ---- release ---- */

static void election_on_given_back(void *context, struct ml_str body, const struct ml_err *err)
{
    struct ml_election *self = context;
    (void)body;
    if (!err) {
        ml_info(self->opts->log, "election", "gave the lease back",
                ML_S("lease", self->opts->name));
        lease_hold_released(&self->hold);
    } else if (err->kind == ML_ECONFLICT) { /* a renewal under way was faster */
        election_read_lease(self);
    } else {
        election_failed(self, err);
    }
}

static void election_give_back(struct ml_election *self)
{
    const struct lease_claim content = {
        .holder = "",
        .duration_s = 1,
        .acquired = "",
        .renewed_ns = ml_clock_wall(self->hold.clock),
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
    lease_hold_release(&self->hold, patience_ns, done, context);
    ml_metric_set(self->master_status, 0);
    if (!held || !election_is_mine(self)) {
        self->state = ELECTION_OVER;
        lease_hold_released(&self->hold);
        return;
    }
    self->state = ELECTION_RELEASING;
    election_give_back(self);
}

/* ---- life ---- */

struct ml_election *ml_election_new(const struct ml_lease_opts *opts,
                                    const struct ml_election_handler *handler, void *context)
{
    static const struct lease_hold_handler hold_handler = {
        .logger = "election",
        .subject = "the lease",
        .attempt = election_attempt,
        .stuck = election_failed,
        .deadline = election_on_deadline,
        .watched = election_on_watched,
    };
    struct ml_election *self = ml_new(struct ml_election);
    ML_AUTO_FREE char *selector = ml_asprintf("metadata.name=%s", opts->name);
    lease_hold_init(&self->hold, opts, &hold_handler, self, "fieldSelector", selector);
    self->opts = &self->hold.opts;
    self->handler = handler;
    self->context = context;
    struct ml_metric_family *status = ml_metrics_gauge(
        opts->metrics, "leader_election_master_status",
        "1 while this replica leads, by the name of the Lease.", ml_metric_labels("name"));
    struct ml_metric_family *slow = ml_metrics_counter(
        opts->metrics, "leader_election_slowpath_total",
        "Renewals of a Lease that had to read it first, by the name of the Lease.",
        ml_metric_labels("name"));
    self->master_status = ml_metric_with(status, ml_metric_labels(self->opts->name));
    self->slow_path = ml_metric_with(slow, ml_metric_labels(self->opts->name));
    return self;
}

void ml_election_free(struct ml_election *self)
{
    if (!self)
        return;
    lease_hold_fini(&self->hold);
    lease_record_fini(&self->record);
    free(self->logged_holder);
    free(self);
}

void ml_election_start(struct ml_election *self)
{
    ml_assert(self->state == ELECTION_NEW);
    self->state = ELECTION_WAITING;
    ml_info(self->opts->log, "election", "asking for the lease", ML_S("namespace", self->opts->ns),
            ML_S("lease", self->opts->name), ML_S("identity", self->opts->identity));
    election_attempt(self);
}
