#include "run/endpoints.h"

struct ml_endpoints {
    struct ml_endpoints_opts opts;
    struct ml_http_server *health;
    struct ml_http_server *metrics; /* may be the same as health */
};

static void healthz(void *context, struct ml_http_exchange *exchange)
{
    (void)context;
    ml_buf_puts(&exchange->reply, "ok");
}

static void readyz(void *context, struct ml_http_exchange *exchange)
{
    struct ml_endpoints *self = context;
    ML_AUTO(ml_buf_fini) struct ml_buf why = ML_BUF_INIT;
    if (self->opts.ready(self->opts.context, &why)) {
        ml_buf_puts(&exchange->reply, "ok");
        return;
    }
    exchange->status = 500;
    if (strstr(exchange->query, "verbose"))
        ml_buf_append_str(&exchange->reply, ml_buf_str(&why));
    else
        ml_buf_puts(&exchange->reply, "[-]scripts failed: reason withheld (see ?verbose)\n");
}

static void metrics(void *context, struct ml_http_exchange *exchange)
{
    struct ml_endpoints *self = context;
    exchange->content_type = "text/plain; version=0.0.4; charset=utf-8";
    ml_metrics_write(self->opts.metrics, &exchange->reply);
}

static bool is_set(const char *address)
{
    return address && *address && strcmp(address, "0") != 0;
}

static int open_servers(struct ml_endpoints *self, struct ml_err *err)
{
    const struct ml_endpoints_opts *opts = &self->opts;
    int r = 0;
    if (is_set(opts->health_address))
        r = ml_http_server_new(opts->loop, opts->health_address, &self->health, err);
    if (r < 0)
        return ml_err_wrap(err, "--health-probe-bind-address %s", opts->health_address);
    if (!is_set(opts->metrics_address))
        return 0;
    if (self->health && strcmp(opts->health_address, opts->metrics_address) == 0) {
        self->metrics = self->health;
        return 0;
    }
    r = ml_http_server_new(opts->loop, opts->metrics_address, &self->metrics, err);
    if (r < 0)
        return ml_err_wrap(err, "--metrics-bind-address %s", opts->metrics_address);
    return 0;
}

int ml_endpoints_new(const struct ml_endpoints_opts *opts, struct ml_endpoints **out,
                     struct ml_err *err)
{
    struct ml_endpoints *self = ml_new(struct ml_endpoints);
    self->opts = *opts;
    int r = open_servers(self, err);
    if (r < 0) {
        ml_endpoints_free(self);
        return r;
    }
    if (self->health) {
        ml_http_server_route(self->health, "/healthz", healthz, self);
        ml_http_server_route(self->health, "/healthz/", healthz, self);
        ml_http_server_route(self->health, "/readyz", readyz, self);
        ml_http_server_route(self->health, "/readyz/", readyz, self);
    }
    if (self->metrics)
        ml_http_server_route(self->metrics, "/metrics", metrics, self);
    *out = self;
    return 0;
}

void ml_endpoints_free(struct ml_endpoints *self)
{
    if (!self)
        return;
    if (self->metrics != self->health)
        ml_http_server_free(self->metrics);
    ml_http_server_free(self->health);
    free(self);
}

int ml_endpoints_health_port(const struct ml_endpoints *self)
{
    return self->health ? ml_http_server_port(self->health) : 0;
}

int ml_endpoints_metrics_port(const struct ml_endpoints *self)
{
    return self->metrics ? ml_http_server_port(self->metrics) : 0;
}
