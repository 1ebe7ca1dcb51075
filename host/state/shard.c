/* One member of a shard group. A round: the Lease is renewed (with another view when one is due),
 * then all Leases of the group are listed, by a consistent read. The list also tells what became of
 * a renewal without an answer. A round begins once in a retry period, and early when the watch has
 * news. operator/operator.c starts it; the controllers ask it for each key, the client before each
 * write. */
#include "state/shard.h"

#include "codec/rfc3339.h"
#include "state/shard_group.h"

/* After news, so that not all members ask at the same moment. */
#define HINT_NS_MAX    (50 * ML_NS_PER_MS)
#define DRAIN_RETRY_NS ML_NS_PER_S

/* The views of one member, from the oldest to the newest; all the same when nothing changes. A view
 * goes through these stages: wanted, when a list shows other members than the last one; draining,
 * until the work on the keys that it takes away has ended; publishing, from when it is sent until
 * the write succeeds; published; and confirmed by a list that was requested after that. */
struct shard_views {
    struct shard_set confirmed; /* published before the last list was requested */
    struct shard_set published; /* written to the Lease */
    struct shard_set next;      /* wanted: work on the keys that it takes away ends first */
    bool draining;              /* that work has not ended yet */
    bool publishing;            /* `next` was sent: others may see it */
    struct shard_acting acting, before;
};

enum shard_state { SHARD_NEW, SHARD_JOINING, SHARD_MEMBER, SHARD_LEAVING, SHARD_OVER };

struct ml_shard {
    struct lease_hold hold;
    const struct ml_lease_opts *opts; /* of it */
    const struct ml_shard_handler *handler;
    void *context;
    enum shard_state state;
    uint64_t id;
    char *name;                              /* of the Lease */
    char acquired[ML_RFC3339_MICRO_LEN + 1]; /* when it joined, for people; "": not yet */

    struct shard_group group;
    struct shard_views views;
    int64_t draining_since_ns;
    struct ml_timer drain; /* asks again */

    /* The round under way. */
    int64_t asked_ns; /* for the list */
    char *uid, *rv;   /* of our Lease; rv NULL: unknown until the next list */
    bool renews;      /* this round has not renewed yet */
    bool disputed;    /* this round has met a conflict */
    bool news;        /* the watch brought news: list once more */
    struct ml_timer hint;
    struct ml_client_call *sweeping; /* an old Lease; NULL: none */

    struct ml_metric *members;
};

static void shard_stop(struct ml_shard *self)
{
    lease_hold_stop(&self->hold);
    if (self->sweeping)
        ml_client_cancel(ml_take(&self->sweeping));
    ml_timer_stop(&self->hint);
    ml_timer_stop(&self->drain);
}

static void shard_lose(struct ml_shard *self, const struct ml_err *why)
{
    struct ml_err err = *why;
    ml_err_wrap(&err, "lost the lease %s/%s", self->opts->ns, self->name);
    shard_stop(self);
    self->state = SHARD_OVER;
    ml_metric_set(self->members, 0);
    self->handler->lost(self->context, &err);
}

static void shard_on_deadline(void *context)
{
    struct ml_shard *self = context;
    struct ml_err err;
    lease_hold_expired(&self->hold, &err);
    shard_lose(self, &err);
}

/* ---- the end of a round ---- */

static void shard_end_round(struct ml_shard *self)
{
    ml_timer_stop(&self->hold.stuck);
    if (self->state == SHARD_LEAVING) {
        lease_hold_released(&self->hold);
        return;
    }
    lease_hold_watch(&self->hold);
    if (self->news) {
        self->news = false;
        ml_timer_start(&self->hint, ml_random_between(self->opts->random, 0, HINT_NS_MAX));
    }
    ml_timer_start(&self->hold.next,
                   self->hold.begun_ns + self->opts->times.retry_ns - lease_hold_now(&self->hold));
}

static void shard_round_failed(struct ml_shard *self, const struct ml_err *err)
{
    if (self->state == SHARD_LEAVING)
        ml_warn(self->opts->log, "shard", "the lease could not be given back; it will expire",
                ML_ERR(err));
    else
        lease_hold_warn(&self->hold,
                        self->state == SHARD_MEMBER
                            ? "cannot renew the lease or list the members; trying again"
                            : "cannot join the shard group; trying again",
                        err);
    self->hold.trouble = *err;
    shard_end_round(self);
}

static void shard_forget_version(struct ml_shard *self)
{
    free(ml_take(&self->rv));
    free(ml_take(&self->uid));
}

static void shard_keep_version(struct ml_shard *self, const struct shard_lease *lease)
{
    shard_forget_version(self);
    self->rv = ml_strdup(lease->rv);
    self->uid = ml_strdup(lease->uid);
}

static void shard_on_stuck(void *context, const struct ml_err *err)
{
    struct ml_shard *self = context;
    shard_forget_version(self);
    shard_round_failed(self, err);
}

/* ---- old Leases ---- */

static void shard_on_swept(void *context, struct ml_str body, const struct ml_err *err)
{
    struct ml_shard *self = context;
    (void)body;
    self->sweeping = NULL;
    if (err && err->kind != ML_ENOT_FOUND && err->kind != ML_ECONFLICT)
        ml_debug(self->opts->log, "shard", "an old lease was not deleted", ML_ERR(err));
}

/* Only the first member deletes, one Lease at a time. The delete is guarded by the version, so that
 * a member that came back keeps its Lease. */
static void shard_delete_old_lease(struct ml_shard *self)
{
    const struct shard_peer *remains = shard_group_remains(
        &self->group, lease_hold_now(&self->hold), self->opts->times.lease_ns);
    if (!remains || self->sweeping || self->state != SHARD_MEMBER ||
        self->views.next.ids[0] != self->id)
        return;
    ML_AUTO_FREE char *name = shard_lease_name(self->opts->name, remains->lease.id);
    const struct ml_client_request request = {
        .verb = ML_VERB_DELETE,
        .kind = &ml_kind_lease,
        .ns = ml_str_of(self->opts->ns),
        .name = ml_str_of(name),
        .uid = remains->lease.uid,
        .resource_version = remains->lease.rv,
        .timeout_ms = lease_timeout_ns(&self->opts->times) / ML_NS_PER_MS,
    };
    self->sweeping = ml_client_send(self->opts->client, &request, shard_on_swept, self);
}

/* ---- views ---- */

static bool shard_acting_eq(const struct shard_acting *a, const struct shard_acting *b)
{
    return a->view_count == b->view_count && a->claim_count == b->claim_count &&
           memcmp(a->views, b->views, sizeof a->views) == 0 &&
           (a->claim_count == 0 ||
            memcmp(a->claims, b->claims, a->claim_count * sizeof *a->claims) == 0);
}

/* Brings `acting` up to date, and what it was into `before`. */
static void shard_rebuild_acting(struct ml_shard *self)
{
    struct shard_views *views = &self->views;
    const struct shard_set *const all[] = {&views->confirmed, &views->published, &views->next};
    struct shard_acting acting;
    shard_acting_init(&acting, &self->group, all, ML_COUNT(all));
    if (shard_acting_eq(&acting, &views->acting)) {
        shard_acting_fini(&acting);
        return;
    }
    shard_acting_fini(&views->before);
    views->before = views->acting;
    views->acting = acting;
    self->handler->changed(self->context);
}

/* Chooses a view of all members that are alive as `next`, if it is another one. A view that was
 * sent is not replaced, because others may have seen it; one that was not sent yet may be. */
static void shard_choose_view(struct ml_shard *self)
{
    struct shard_views *views = &self->views;
    bool drained = !views->draining;
    struct shard_set alive;
    shard_group_alive(&self->group, &alive);
    if (views->publishing || shard_set_eq(&alive, &views->next))
        return;
    views->next = alive;
    views->draining = true;
    ml_metric_set(self->members, (double)views->next.count);
    ML_AUTO_FREE char *members = shard_set_text(&views->next);
    ml_info(self->opts->log, "shard", "the members of the shard group have changed",
            ML_S("group", self->opts->name), ML_I("members", (int64_t)views->next.count),
            ML_S("ids", members));
    if (drained)
        self->draining_since_ns = lease_hold_now(&self->hold);
}

/* Is the next view to be sent? */
static bool shard_view_is_due(const struct ml_shard *self)
{
    return !self->views.draining && !shard_set_eq(&self->views.next, &self->views.published);
}

/* The next view is in force already: no new work begins on the keys that it takes away. */
static void shard_drain(struct ml_shard *self)
{
    bool cut = lease_hold_now(&self->hold) - self->draining_since_ns >= self->opts->times.renew_ns;
    if (!self->views.draining)
        return;
    if (self->handler->idle(self->context, cut)) {
        self->views.draining = false;
        ml_timer_stop(&self->drain);
        return;
    }
    if (!ml_timer_active(&self->drain))
        ml_timer_start(&self->drain, DRAIN_RETRY_NS);
}

static void shard_on_list_shown(struct ml_shard *self)
{
    self->views.confirmed = self->views.published;
    shard_choose_view(self);
    shard_rebuild_acting(self);
    shard_drain(self);
}

/* ---- renewing ---- */

static void shard_list(struct ml_shard *self);

/* Others wait for at least lease_ns from when the server received the renewal, which was after we
 * sent it. A renewal that is granted after our own deadline does not count: others may consider us
 * dead. */
static void shard_granted(struct ml_shard *self)
{
    bool first = self->state == SHARD_JOINING;
    int64_t until_ns = first ? lease_hold_granted_until(&self->hold) : self->hold.until_ns;
    if (lease_hold_now(&self->hold) >= until_ns) {
        struct ml_err err;
        ml_err_set(&err, ML_ETIMEOUT, "it was renewed too late");
        shard_lose(self, &err);
        return;
    }
    lease_hold_renew(&self->hold);
    self->state = SHARD_MEMBER;
    self->renews = false;
    if (first)
        ml_info(self->opts->log, "shard", "joined the shard group", ML_S("group", self->opts->name),
                ML_S("lease", self->name), ML_S("identity", self->opts->identity));
    if (self->views.publishing) {
        self->views.publishing = false;
        self->views.published = self->views.next;
        shard_rebuild_acting(self);
    }
    shard_list(self);
}

static void shard_on_written(void *context, struct ml_str body, const struct ml_err *err)
{
    struct ml_shard *self = context;
    struct shard_lease lease = {0};
    struct ml_err bad = ML_ERR_INIT;
    shard_forget_version(self);
    if (err && (err->kind == ML_ECONFLICT || err->kind == ML_EALREADY_EXISTS) && !self->disputed) {
        self->disputed = true;
        shard_list(self);
        return;
    }
    if (err) {
        shard_round_failed(self, err);
        return;
    }
    if (self->state == SHARD_LEAVING) {
        ml_info(self->opts->log, "shard", "left the shard group", ML_S("lease", self->name));
        shard_end_round(self);
        return;
    }
    if (shard_lease_read(body, self->opts->name, &lease) && lease.id == self->id) {
        shard_keep_version(self, &lease);
        shard_lease_fini(&lease);
        shard_granted(self);
        return;
    }
    shard_lease_fini(&lease);
    ml_err_set(&bad, ML_EINVALID, "the server wrote another Lease than it was sent");
    shard_round_failed(self, &bad);
}

static char *shard_lease_body(struct ml_shard *self)
{
    static const struct shard_set nobody = {0};
    const struct shard_views *views = &self->views;
    bool leaves = self->state == SHARD_LEAVING;
    int64_t now_ns = ml_clock_wall(self->hold.clock);
    if (!*self->acquired)
        ml_rfc3339_format_micro(now_ns, self->acquired);
    const struct shard_lease_text text = {
        .group = self->opts->name,
        .ns = self->opts->ns,
        .id = self->id,
        .uid = self->uid,
        .rv = self->rv,
        .view = leaves              ? &nobody
                : views->publishing ? &views->next
                                    : &views->published,
        .claim.holder = leaves ? "" : self->opts->identity,
        .claim.duration_s = leaves ? 1 : self->opts->times.lease_ns / ML_NS_PER_S,
        .claim.acquired = self->acquired,
        .claim.renewed_ns = now_ns,
    };
    return shard_lease_json(&text);
}

static void shard_write_lease(struct ml_shard *self)
{
    if (shard_view_is_due(self))
        self->views.publishing = true;
    ML_AUTO_FREE char *body = shard_lease_body(self);
    struct ml_client_request request = {
        .verb = self->rv ? ML_VERB_UPDATE : ML_VERB_CREATE,
        .kind = &ml_kind_lease,
        .ns = ml_str_of(self->opts->ns),
        .name = ml_str_of(self->name),
        .body = ml_str_of(body),
    };
    self->hold.sent_ns = lease_hold_now(&self->hold);
    lease_hold_send(&self->hold, &request, shard_on_written);
}

/* ---- listing ---- */

/* Checks our own Lease in the list. False: we are no longer a member. */
static bool shard_still_holds_lease(struct ml_shard *self, const struct shard_lease *lease)
{
    struct ml_err err;
    if (lease->id && strcmp(lease->holder, self->opts->identity) == 0) {
        shard_keep_version(self, lease);
        return true;
    }
    shard_forget_version(self);
    if (self->state == SHARD_JOINING && !lease->id)
        return true;
    if (lease->id)
        ml_err_set(&err, ML_ECONFLICT, "%s holds it now", lease->holder);
    else
        ml_err_set(&err, ML_ENOT_FOUND, "it was deleted");
    if (self->state == SHARD_LEAVING)
        shard_end_round(self);
    else
        shard_lose(self, &err);
    return false;
}

static void shard_on_listed(void *context, struct ml_str body, const struct ml_err *err)
{
    struct ml_shard *self = context;
    struct shard_lease own = {0};
    struct ml_err bad = ML_ERR_INIT;
    if (!err && shard_group_observe(&self->group, body, self->asked_ns, lease_hold_now(&self->hold),
                                    &own, &bad) < 0)
        err = &bad;
    if (err) {
        shard_round_failed(self, err);
        return;
    }
    bool goes_on = shard_still_holds_lease(self, &own);
    shard_lease_fini(&own);
    if (!goes_on)
        return;
    if (self->state != SHARD_LEAVING)
        shard_on_list_shown(self);
    if (self->renews || self->state == SHARD_LEAVING || shard_view_is_due(self)) {
        shard_write_lease(self);
        return;
    }
    shard_delete_old_lease(self);
    if (self->hold.trouble.kind && self->state == SHARD_MEMBER)
        ml_info(self->opts->log, "shard", "the lease is renewed again", ML_S("lease", self->name));
    lease_hold_succeeded(&self->hold);
    shard_end_round(self);
}

static void shard_list(struct ml_shard *self)
{
    ML_AUTO(ml_buf_fini) struct ml_buf path = ML_BUF_INIT;
    ML_AUTO_FREE char *selector = ml_asprintf(SHARD_LABEL "=%s", self->opts->name);
    ml_kind_path(&ml_kind_lease, ml_str_of(self->opts->ns), ML_STR(""), ML_STR(""), &path);
    ml_url_query(&path, "labelSelector", ml_str_of(selector));
    struct ml_client_request request = {.verb = ML_VERB_GET, .path = ml_buf_cstr(&path)};
    self->asked_ns = lease_hold_now(&self->hold);
    lease_hold_send(&self->hold, &request, shard_on_listed);
}

/* ---- what begins a round ---- */

static void shard_begin_round(void *context)
{
    struct ml_shard *self = context;
    if (self->state == SHARD_MEMBER && lease_hold_now(&self->hold) >= self->hold.until_ns) {
        /* It was suspended: it must not renew, others may consider it dead. */
        shard_on_deadline(self);
        return;
    }
    ml_timer_stop(&self->hint);
    self->hold.begun_ns = lease_hold_now(&self->hold);
    self->renews = true;
    self->disputed = false;
    if (self->rv)
        shard_write_lease(self);
    else
        shard_list(self);
}

static void shard_on_hint(void *context)
{
    struct ml_shard *self = context;
    if (self->hold.call)
        self->news = true;
    else
        shard_list(self);
}

static void shard_on_watched(void *context, struct ml_str object)
{
    struct ml_shard *self = context;
    struct shard_lease lease = {0};
    bool is_news = object.len == 0 || (shard_lease_read(object, self->opts->name, &lease) &&
                                       shard_group_is_news(&self->group, &lease));
    shard_lease_fini(&lease);
    if (is_news && self->state == SHARD_MEMBER && !ml_timer_active(&self->hint))
        ml_timer_start(&self->hint, ml_random_between(self->opts->random, 0, HINT_NS_MAX));
}

static void shard_on_drain(void *context)
{
    struct ml_shard *self = context;
    shard_drain(self);
    if (shard_view_is_due(self) && !self->hold.call && self->rv)
        shard_write_lease(self);
}

/* ---- leaving ---- */

void ml_shard_leave(struct ml_shard *self, int64_t patience_ns, void (*done)(void *context),
                    void *context)
{
    bool was_member = self->state == SHARD_MEMBER;
    bool unsure = self->hold.call != NULL; /* a renewal may be under way */
    shard_stop(self);
    lease_hold_release(&self->hold, patience_ns, done, context);
    ml_metric_set(self->members, 0);
    if (!was_member) {
        self->state = SHARD_OVER;
        lease_hold_released(&self->hold);
        return;
    }
    self->state = SHARD_LEAVING;
    self->news = false;
    if (unsure)
        free(ml_take(&self->rv));
    shard_begin_round(self);
}

/* ---- asked ---- */

static bool shard_is_open(const struct ml_shard *self)
{
    return self->state == SHARD_MEMBER && lease_hold_now(&self->hold) < self->hold.until_ns;
}

bool ml_shard_acts(const struct ml_shard *self, struct ml_str controller, struct ml_str object)
{
    return shard_is_open(self) &&
           shard_acting_acts(&self->views.acting, rendezvous_key(controller, object));
}

bool ml_shard_gained(const struct ml_shard *self, struct ml_str controller, struct ml_str object)
{
    uint64_t key = rendezvous_key(controller, object);
    return shard_acting_acts(&self->views.acting, key) &&
           !shard_acting_acts(&self->views.before, key);
}

int ml_shard_fence(void *context, const char *method, const char *path, struct ml_err *err)
{
    const struct ml_shard *self = context;
    if (shard_is_open(self) || ml_path_is_event(path))
        return 0;
    return ml_err_set(err, ML_ECANCELED,
                      "%s %s was not sent: this replica is no member of the shard group %s", method,
                      path, self->opts->name);
}

void ml_shard_settled(struct ml_shard *self)
{
    if (self->views.draining && self->state == SHARD_MEMBER)
        ml_timer_start(&self->drain, 0);
}

/* ---- life ---- */

struct ml_shard *ml_shard_new(const struct ml_lease_opts *opts,
                              const struct ml_shard_handler *handler, void *context)
{
    static const struct lease_hold_handler hold_handler = {
        .logger = "shard",
        .subject = "the leases of the group",
        .attempt = shard_begin_round,
        .stuck = shard_on_stuck,
        .deadline = shard_on_deadline,
        .watched = shard_on_watched,
    };
    struct ml_shard *self = ml_new(struct ml_shard);
    ML_AUTO_FREE char *selector = ml_asprintf(SHARD_LABEL "=%s", opts->name);
    lease_hold_init(&self->hold, opts, &hold_handler, self, "labelSelector", selector);
    self->opts = &self->hold.opts;
    self->handler = handler;
    self->context = context;
    self->id = shard_member_id(opts->identity);
    self->name = shard_lease_name(opts->name, self->id);
    shard_group_init(&self->group, self->opts->name, self->id, opts->times.lease_ns);
    ml_timer_init(&self->hint, opts->loop, shard_on_hint, self);
    ml_timer_init(&self->drain, opts->loop, shard_on_drain, self);
    self->members = ml_metric_only(ml_metrics_gauge(
        opts->metrics, "moonloop_shard_members",
        "Replicas that share the keys, as this one sees them; 0 while it is no member.", NULL));
    return self;
}

void ml_shard_free(struct ml_shard *self)
{
    if (!self)
        return;
    shard_stop(self);
    shard_acting_fini(&self->views.acting);
    shard_acting_fini(&self->views.before);
    shard_group_fini(&self->group);
    free(self->uid);
    free(self->rv);
    free(self->name);
    lease_hold_fini(&self->hold);
    free(self);
}

void ml_shard_start(struct ml_shard *self)
{
    ml_assert(self->state == SHARD_NEW);
    self->state = SHARD_JOINING;
    ml_info(self->opts->log, "shard", "joining the shard group", ML_S("namespace", self->opts->ns),
            ML_S("group", self->opts->name), ML_S("lease", self->name),
            ML_S("identity", self->opts->identity));
    shard_begin_round(self);
}
