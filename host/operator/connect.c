/* GET /version until it succeeds, fails for good, or time is up. moonloop.c calls it before the
 * start. */
#include "operator/connect.h"

#include "base/repeat.h"
#include "codec/json.h"

#define RETRY_FIRST_NS (200 * ML_NS_PER_MS)
#define RETRY_MAX_NS   (2 * ML_NS_PER_S)

struct ml_connect {
    struct ml_client *client;
    struct ml_log *log;
    struct ml_clock *clock;
    int64_t give_up_ns; /* monotonic */
    int64_t delay_ns;
    struct ml_timer retry;
    struct ml_repeat repeat;
    struct ml_client_call *call;
    ml_connect_done *done;
    void *context;
};

/* A server that is starting or overloaded may answer soon. A wrong certificate, or credentials that
 * are rejected after they were read again, will not get better. */
static bool connect_may_recover(int kind)
{
    return kind == ML_ENETWORK || kind == ML_ETIMEOUT || kind == ML_EUNAVAILABLE ||
           kind == ML_ETOO_MANY || kind == ML_ESERVER;
}

static void connect_on_version(void *context, struct ml_str body, const struct ml_err *err)
{
    struct ml_connect *self = context;
    self->call = NULL;
    struct ml_err stranger;
    ML_AUTO_FREE char *version = err ? NULL : ml_json_find_string(body, "gitVersion", NULL);
    if (version) {
        self->done(self->context, version, NULL);
        return;
    }
    if (!err) {
        ml_err_set(&stranger, ML_EUNSUPPORTED,
                   "it answers, but not as a Kubernetes API server does");
        err = &stranger;
    }
    if (!connect_may_recover(err->kind) ||
        ml_clock_monotonic(self->clock) + self->delay_ns > self->give_up_ns) {
        self->done(self->context, NULL, err);
        return;
    }
    if (ml_repeat_failed(&self->repeat, ml_str_of(err->message), ml_clock_monotonic(self->clock)))
        ml_warn(self->log, "connect", "the API server does not answer yet; retrying", ML_ERR(err),
                ML_S("errorKind", ml_err_name(err->kind)),
                ML_REPEAT_FIELDS(&self->repeat, self->delay_ns));
    ml_timer_start(&self->retry, self->delay_ns);
    self->delay_ns = ML_MIN(self->delay_ns * 2, RETRY_MAX_NS);
}

static void connect_ask_version(void *context)
{
    struct ml_connect *self = context;
    const struct ml_client_request request = {.verb = ML_VERB_GET, .path = "/version"};
    self->call = ml_client_send(self->client, &request, connect_on_version, self);
}

struct ml_connect *ml_connect_start(struct ml_client *client, struct ml_loop *loop,
                                    struct ml_log *log, int64_t patience_ns, ml_connect_done *done,
                                    void *context)
{
    struct ml_connect *self = ml_new(struct ml_connect);
    self->client = client;
    self->log = log;
    self->clock = ml_loop_clock(loop);
    self->give_up_ns = ml_clock_monotonic(self->clock) + patience_ns;
    self->delay_ns = RETRY_FIRST_NS;
    self->done = done;
    self->context = context;
    ml_timer_init(&self->retry, loop, connect_ask_version, self);
    connect_ask_version(self);
    return self;
}

const char *ml_connect_advice(const struct ml_err *err)
{
    if (err->http == 401)
        return "; renew the token or certificate, or choose another --context";
    if (err->http == 403)
        return "; grant these credentials the ClusterRole system:public-info-viewer";
    if (err->kind == ML_ENETWORK || err->kind == ML_ETIMEOUT)
        return "; is it running, and is this the right address?";
    return "";
}

void ml_connect_free(struct ml_connect *self)
{
    if (!self)
        return;
    ml_timer_stop(&self->retry);
    if (self->call)
        ml_client_cancel(self->call);
    free(self);
}
