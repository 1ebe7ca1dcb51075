#include "operator/endpoints.h"

struct ml_endpoints {
    struct ml_endpoints_opts opts;
    struct ml_http_routes *health;
    struct ml_http_routes *metrics; /* may be the same as health */
};

static void healthz(void *context, struct ml_http_page *page)
{
    (void)context;
    ml_buf_puts(&page->reply, "ok");
}

static void readyz(void *context, struct ml_http_page *page)
{
    struct ml_endpoints *self = context;
    ML_AUTO(ml_buf_fini) struct ml_buf why = ML_BUF_INIT;
    if (self->opts.ready(self->opts.context, &why)) {
        ml_buf_puts(&page->reply, "ok");
        return;
    }
    page->status = 500;
    if (strstr(page->query, "verbose"))
        ml_buf_append_str(&page->reply, ml_buf_str(&why));
    else
        ml_buf_puts(&page->reply, "[-]scripts failed: reason withheld (see ?verbose)\n");
}

static void metrics(void *context, struct ml_http_page *page)
{
    struct ml_endpoints *self = context;
    page->content_type = "text/plain; version=0.0.4; charset=utf-8";
    ml_metrics_write(self->opts.metrics, &page->reply);
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
        r = ml_http_routes_new(opts->loop, opts->health_address, &self->health, err);
    if (r < 0)
        return ml_err_wrap(err, "--health-probe-bind-address %s", opts->health_address);
    if (!is_set(opts->metrics_address))
        return 0;
    if (self->health && strcmp(opts->health_address, opts->metrics_address) == 0) {
        self->metrics = self->health;
        return 0;
    }
    r = ml_http_routes_new(opts->loop, opts->metrics_address, &self->metrics, err);
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
        ml_http_routes_add(self->health, "/healthz", healthz, self);
        ml_http_routes_add(self->health, "/healthz/", healthz, self);
        ml_http_routes_add(self->health, "/readyz", readyz, self);
        ml_http_routes_add(self->health, "/readyz/", readyz, self);
    }
    if (self->metrics)
        ml_http_routes_add(self->metrics, "/metrics", metrics, self);
    *out = self;
    return 0;
}

void ml_endpoints_free(struct ml_endpoints *self)
{
    if (!self)
        return;
    if (self->metrics != self->health)
        ml_http_routes_free(self->metrics);
    ml_http_routes_free(self->health);
    free(self);
}

int ml_endpoints_health_port(const struct ml_endpoints *self)
{
    return self->health ? ml_http_routes_port(self->health) : 0;
}

int ml_endpoints_health_listener(const struct ml_endpoints *self)
{
    return self->health ? ml_http_routes_listener(self->health) : -1;
}

int ml_endpoints_metrics_port(const struct ml_endpoints *self)
{
    return self->metrics ? ml_http_routes_port(self->metrics) : 0;
}
