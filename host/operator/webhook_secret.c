/* Keeps the Secret with the certificates, in one round after the other: read it, renew the parts
 * that are due, write it. */
#include "operator/webhook_secret.h"

#include "base/repeat.h"
#include "kube/object.h"

#define ROUND_MAX_NS (60 * ML_NS_PER_S) /* between two rounds; shorter for short terms */
#define ROUND_MIN_NS ML_NS_PER_S        /* when changes bring one */
#define RETRY_NS     (2 * ML_NS_PER_S)

/* The API server's time, which decides whether it trusts a certificate. */
struct server_clock {
    struct ml_clock clock;
    struct ml_clock *own;
    const struct ml_server_clock *server;
};

struct ml_webhook_secret {
    struct ml_webhook_secret_opts opts;
    struct server_clock time;
    struct ml_client_call *call; /* NULL: none under way */
    struct ml_timer round;
    struct ml_repeat trouble;
    struct ml_webhook_pair pair; /* to be written */
    struct ml_webhook_pair good; /* shown last; the ca is NULL: none was */
    struct ml_object_watch *watch;
    int64_t round_ns; /* monotonic: when the last round began */
    bool again;       /* the Secret has changed since */
};

static int64_t server_clock_wall(struct ml_clock *clock)
{
    struct server_clock *self = ml_container_of(clock, struct server_clock, clock);
    return ml_server_clock_wall(self->server);
}

static int64_t server_clock_monotonic(struct ml_clock *clock)
{
    return ml_clock_monotonic(ml_container_of(clock, struct server_clock, clock)->own);
}

static int64_t secret_now(const struct ml_webhook_secret *self)
{
    return ml_clock_monotonic(self->time.own);
}

/* ---- the end of a round ---- */

static void end_round(struct ml_webhook_secret *self, int64_t wait_ns)
{
    ml_webhook_pair_fini(&self->pair);
    if (self->again)
        wait_ns = ML_MIN(wait_ns, ROUND_MIN_NS);
    ml_timer_start(&self->round, wait_ns);
}

static void end_good_round(struct ml_webhook_secret *self)
{
    int64_t third_ns = self->opts.term.overlap_s * ML_NS_PER_S / 3;
    ml_repeat_over(&self->trouble);
    end_round(self, ML_MAX(ML_NS_PER_S / 3, ML_MIN(ROUND_MAX_NS, third_ns)));
}

static void end_bad_round(struct ml_webhook_secret *self, const struct ml_err *err)
{
    if (err->kind != ML_ECANCELED &&
        ml_repeat_failed(&self->trouble, ml_str_of(err->message), secret_now(self)))
        ml_error(self->opts.log, "host", "the certificates of webhooks cannot be kept",
                 ML_S("namespace", self->opts.ns), ML_S("name", self->opts.name),
                 ML_ERR_FIELDS(err), ML_REPEAT_FIELDS(&self->trouble, RETRY_NS));
    end_round(self, RETRY_NS);
}

/* ---- requests ---- */

static struct ml_client_request request_of(const struct ml_webhook_secret *self, enum ml_verb verb)
{
    return (struct ml_client_request){
        .verb = verb,
        .kind = &ml_kind_secret,
        .ns = ml_str_of(self->opts.ns),
        .name = verb == ML_VERB_CREATE ? ML_STR("") : ml_str_of(self->opts.name),
        .field_manager = "moonloop",
    };
}

static void show(struct ml_webhook_secret *self)
{
    ml_webhook_pair_copy(&self->pair, &self->good);
    self->opts.shows(self->opts.context, &self->pair);
}

static void on_written(void *context, struct ml_str body, const struct ml_err *err)
{
    struct ml_webhook_secret *self = context;
    (void)body;
    self->call = NULL;
    if (err && (err->kind == ML_ECONFLICT || err->kind == ML_EALREADY_EXISTS)) {
        end_round(self, 0); /* another replica was faster: its Secret counts */
        return;
    }
    if (err) {
        end_bad_round(self, err);
        return;
    }
    ml_info(self->opts.log, "host", "certificates of webhooks were written",
            ML_S("namespace", self->opts.ns), ML_S("name", self->opts.name));
    show(self);
    end_good_round(self);
}

/* self->pair; `rv` NULL: as a new Secret. */
static void write_pair(struct ml_webhook_secret *self, const char *rv)
{
    ML_AUTO(ml_buf_fini) struct ml_buf body = ML_BUF_INIT;
    struct ml_client_request request = request_of(self, rv ? ML_VERB_PATCH_MERGE : ML_VERB_CREATE);
    struct ml_json_writer writer;
    ml_json_writer_init(&writer, &body);
    ml_json_begin_object(&writer);
    ml_json_put_string(&writer, "apiVersion", ML_STR("v1"));
    ml_json_put_string(&writer, "kind", ML_STR("Secret"));
    ml_managed_metadata_put(&writer, self->opts.name, ml_str_of(rv));
    ml_json_key(&writer, ML_STR("data"));
    ml_webhook_pair_write(&self->pair, &writer);
    ml_json_end_object(&writer);
    request.body = ml_buf_str(&body);
    self->call = ml_client_send(self->opts.client, &request, on_written, self);
}

/* ---- reading ---- */

static void make_pair(struct ml_webhook_secret *self)
{
    struct ml_err err = ML_ERR_INIT;
    if (!self->opts.may_write(self->opts.context))
        end_round(self, RETRY_NS); /* the leader makes it */
    else if (ml_webhook_pair_make(&self->opts.term, &self->time.clock, &self->opts.names,
                                  &self->pair, &err) < 0)
        end_bad_round(self, &err);
    else
        write_pair(self, NULL);
}

/* The content of the Secret cannot be used. A Secret of ours is written again, with the pair that
 * this process shows, if it shows one. */
static void repair_secret(struct ml_webhook_secret *self, struct ml_str body, const char *rv,
                          struct ml_err *err)
{
    int r = 0;
    if (!ml_managed_by_host(body)) {
        ml_err_wrap(err,
                    "Secret %s/%s has no label " ML_MANAGED_BY
                    "=moonloop, so somebody else made it; "
                    "delete it, or choose another name with --webhook-cert-secret",
                    self->opts.ns, self->opts.name);
        end_bad_round(self, err);
        return;
    }
    if (!self->opts.may_write(self->opts.context)) {
        ml_err_wrap(err, "Secret %s/%s is damaged; the replica that leads repairs it",
                    self->opts.ns, self->opts.name);
        end_bad_round(self, err);
        return;
    }
    ml_warn(self->opts.log, "host", "the Secret of webhooks is damaged; repairing it",
            ML_S("namespace", self->opts.ns), ML_S("name", self->opts.name), ML_ERR_FIELDS(err));
    if (self->good.ca)
        ml_webhook_pair_copy(&self->good, &self->pair);
    else
        r = ml_webhook_pair_repair(body, &self->opts.term, &self->time.clock, &self->opts.names,
                                   &self->pair, err);
    if (r < 0)
        end_bad_round(self, err);
    else
        write_pair(self, rv);
}

static void use_secret(struct ml_webhook_secret *self, struct ml_str body)
{
    ML_AUTO_FREE char *rv = ml_json_find_string(body, "metadata", "resourceVersion", NULL);
    struct ml_err err = ML_ERR_INIT;
    bool changed = false;
    if (ml_webhook_pair_read(body, &self->pair, &err) < 0) {
        repair_secret(self, body, rv, &err);
        return;
    }
    show(self);
    if (!self->opts.may_write(self->opts.context))
        end_good_round(self);
    else if (ml_webhook_pair_renew(&self->pair, &self->opts.term, &self->time.clock,
                                   &self->opts.names, &changed, &err) < 0)
        end_bad_round(self, &err);
    else if (changed)
        write_pair(self, rv);
    else
        end_good_round(self);
}

static void on_read(void *context, struct ml_str body, const struct ml_err *err)
{
    struct ml_webhook_secret *self = context;
    self->call = NULL;
    if (!err)
        use_secret(self, body);
    else if (err->kind == ML_ENOT_FOUND)
        make_pair(self);
    else
        end_bad_round(self, err);
}

static void read_secret(struct ml_webhook_secret *self)
{
    const struct ml_client_request request = request_of(self, ML_VERB_GET);
    self->call = ml_client_send(self->opts.client, &request, on_read, self);
}

static void on_round(void *context)
{
    struct ml_webhook_secret *self = context;
    self->round_ns = secret_now(self);
    self->again = false;
    read_secret(self);
}

/* Somebody changed the Secret, or this process did: looked at now, but once a second at most. */
static void on_changed(void *context)
{
    struct ml_webhook_secret *self = context;
    self->again = true;
    if (!self->call)
        ml_timer_start(&self->round, ML_MAX(0, self->round_ns + ROUND_MIN_NS - secret_now(self)));
}

/* ---- life ---- */

struct ml_webhook_secret *ml_webhook_secret_new(const struct ml_webhook_secret_opts *opts)
{
    struct ml_webhook_secret *self = ml_new(struct ml_webhook_secret);
    self->opts = *opts;
    self->time = (struct server_clock){
        .clock = {.monotonic_ns = server_clock_monotonic, .wall_ns = server_clock_wall},
        .own = ml_loop_clock(opts->loop),
        .server = ml_client_server_clock(opts->client),
    };
    ml_timer_init(&self->round, opts->loop, on_round, self);
    return self;
}

void ml_webhook_secret_free(struct ml_webhook_secret *self)
{
    if (!self)
        return;
    if (self->call)
        ml_client_cancel(self->call);
    ml_timer_stop(&self->round);
    ml_object_watch_free(self->watch);
    ml_webhook_pair_fini(&self->pair);
    ml_webhook_pair_fini(&self->good);
    free(self);
}

void ml_webhook_secret_start(struct ml_webhook_secret *self)
{
    if (self->opts.informers)
        self->watch = ml_object_watch_new(self->opts.informers, &ml_kind_secret,
                                          ml_str_of(self->opts.ns), ml_str_of(self->opts.name),
                                          on_changed, self);
    ml_timer_start(&self->round, 0);
}
