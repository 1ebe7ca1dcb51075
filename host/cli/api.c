/* A client with a loop of its own, which runs while a request is under way. */
#include "cli/api.h"

#include "include/moonloop.h"
#include "kube/credentials.h"
#include "kube/kubeconfig.h"
#include "operator/operator.h"

#include <unistd.h>

#define ASK_MS 30000

struct ml_api {
    struct ml_loop *loop;
    struct ml_metrics *metrics;
    struct ml_random random;
    struct ml_log log;
    struct ml_kubeconfig *config;
    struct ml_credentials *credentials;
    struct ml_http_client *http;
    struct ml_transport *transport;
    struct ml_client *client;
    const char *ns;
    /* The answer to the request under way: */
    struct ml_buf body;
    struct ml_err err;
};

int ml_api_open(const struct ml_api_opts *opts, struct ml_api **out, struct ml_err *err)
{
    const struct ml_kubeconfig_opts config = {opts->kubeconfig, opts->context};
    struct ml_kubeconfig *loaded;
    if (ml_kubeconfig_load(&config, &loaded, err) < 0)
        return err->kind;
    struct ml_api *self = ml_new(struct ml_api);
    self->config = loaded;
    self->ns = opts->ns ? opts->ns : loaded->ns;
    self->loop = ml_loop_new(ml_clock_real());
    self->metrics = ml_metrics_new();
    ml_random_init_real(&self->random);
    ml_log_init(&self->log, ml_clock_real(), STDERR_FILENO, ML_LOG_TEXT, ML_LOG_WARN);
    self->credentials = ml_credentials_new(&(struct ml_credentials_opts){
        .loop = self->loop, .config = loaded, .log = &self->log, .random = &self->random});
    self->http = ml_http_client_new(self->loop, "moonloop/" MOONLOOP_VERSION);
    self->transport = ml_transport_http_new(self->http, self->credentials);
    self->client = ml_client_new(&(struct ml_client_opts){.loop = self->loop,
                                                          .transport = self->transport,
                                                          .metrics = self->metrics,
                                                          .random = &self->random,
                                                          .log = &self->log});
    *out = self;
    return 0;
}

void ml_api_close(struct ml_api *self)
{
    if (!self)
        return;
    ml_client_free(self->client);
    self->transport->free(self->transport);
    ml_http_client_free(self->http);
    ml_credentials_free(self->credentials);
    ml_kubeconfig_free(self->config);
    ml_metrics_free(self->metrics);
    ml_loop_free(self->loop);
    free(self);
}

const char *ml_api_namespace(const struct ml_api *self)
{
    return self->ns;
}

int64_t ml_api_now(struct ml_api *self)
{
    return ml_clock_wall(ml_loop_clock(self->loop));
}

static bool is_unreachable(const struct ml_err *err)
{
    return err->kind == ML_ENETWORK || err->kind == ML_ETIMEOUT || err->kind == ML_ETLS ||
           err->kind == ML_EUNAUTHORIZED;
}

static void on_answer(void *context, struct ml_str body, const struct ml_err *err)
{
    struct ml_api *self = context;
    if (err)
        self->err = *err;
    else
        ml_buf_append_str(&self->body, body);
    ml_loop_stop(self->loop);
}

int ml_api_ask(struct ml_api *self, struct ml_client_request *request, struct ml_buf *body,
               struct ml_err *err)
{
    self->body = ML_BUF_INIT;
    self->err = ML_ERR_INIT;
    request->timeout_ms = ASK_MS;
    ml_client_send(self->client, request, on_answer, self);
    ml_loop_run(self->loop);
    ml_buf_fini(body);
    *body = self->body;
    if (!self->err.kind)
        return 0;
    if (is_unreachable(&self->err))
        ml_err_wrap(&self->err, "cannot use the API server %s (%s)", self->config->server,
                    self->config->source);
    *err = self->err;
    return err->kind;
}

void ml_api_operator_opts(struct ml_api *self, struct ml_operator_opts *out)
{
    out->loop = self->loop;
    out->transport = self->transport;
    out->random = &self->random;
    out->log = &self->log;
    out->metrics = self->metrics;
    out->instance = "moonloop-cli";
}

int ml_api_exit_code(const struct ml_err *err)
{
    return is_unreachable(err) ? MOONLOOP_EXIT_UNREACHABLE : MOONLOOP_EXIT_BAD;
}
