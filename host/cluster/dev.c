#include "cluster/dev.h"

#include "codec/json.h"
#include "include/moonloop.h"
#include "cluster/dev_files.h"
#include "cluster/dev_manifests.h"
#include "cluster/embedded_http.h"
#include "operator/operator.h"
#include "cluster/transport_embedded.h"
#include "cluster/process_lua.h"

#include <signal.h>
#include <stdio.h>
#include <unistd.h>

#define DRAIN_NS     (2 * ML_NS_PER_S)
#define IDLE_LOOK_NS (50 * ML_NS_PER_MS)
#define IDLE_LOOKS   4                  /* in a row: what one change sets off is seen by then */
#define IDLE_WITHIN  (60 * ML_NS_PER_S) /* work that is due by itself later is not waited for */
#define STUCK_LOOKS  200 /* nothing happens, and still a script waits for its kinds */

struct ml_dev {
    struct ml_dev_opts opts;
    struct ml_err *err;
    int exit_code;

    struct ml_log log;
    struct ml_random random;
    struct ml_loop *loop;
    struct ml_metrics *metrics;
    struct ml_processes *processes;
    struct ml_http_client *prober; /* of pods' HTTP probes */
    struct ml_dev_files files;
    char token[ML_DEV_TOKEN_LEN + 1];
    struct ml_apiserver *server;
    struct ml_embedded_http *http;
    struct ml_transport *transport;
    struct ml_operator *operator;
    struct ml_dev_manifests *manifests;

    struct ml_timer look; /* --until-idle */
    int idle_looks, stuck_looks;
};

static void leave_loop(void *context)
{
    struct ml_dev *self = context;
    ml_loop_stop(self->loop);
}

static void stop(struct ml_dev *self)
{
    ml_timer_stop(&self->look);
    ml_operator_stop(self->operator, DRAIN_NS, leave_loop, self);
}

static void on_signal(void *context, int signo)
{
    (void)signo;
    stop(context);
}

/* SIGHUP: the terminal has been closed. */
static void catch_signals(struct ml_dev *self, void (*fire)(void *context, int signo))
{
    ml_loop_on_signal(self->loop, SIGTERM, fire, self);
    ml_loop_on_signal(self->loop, SIGINT, fire, self);
    ml_loop_on_signal(self->loop, SIGHUP, fire, self);
}

static int call(struct ml_dev *self, const char *function, struct ml_str argument,
                struct ml_buf *result, struct ml_err *err)
{
    struct ml_trusted *trusted = ml_apiserver_trusted(self->server);
    return ml_trusted_call(trusted, "cluster.dev", function, argument, result, err);
}

/* ---- until idle ---- */

static bool is_busy(struct ml_dev *self)
{
    ML_AUTO(ml_buf_fini) struct ml_buf answer = ML_BUF_INIT;
    struct ml_err err = ML_ERR_INIT;
    int64_t horizon = ml_clock_monotonic(ml_loop_clock(self->loop)) + IDLE_WITHIN;
    if (call(self, "is_busy", ML_STR(""), &answer, &err) < 0 ||
        !ml_str_is(ml_buf_str(&answer), "false"))
        return true;
    return ml_operator_next(self->operator) < horizon;
}

static bool has_failures(struct ml_dev *self)
{
    ML_AUTO(ml_buf_fini) struct ml_buf answer = ML_BUF_INIT;
    struct ml_err err = ML_ERR_INIT;
    return !ml_dev_manifests_read(self->manifests) ||
           call(self, "failed", ML_STR(""), &answer, &err) < 0 ||
           !ml_str_is(ml_buf_str(&answer), "0");
}

/* Nothing is left to do: was it what was wanted? */
static void end_idle(struct ml_dev *self, bool is_ready, struct ml_buf *why)
{
    struct ml_str rest = ml_buf_str(why);
    struct ml_str line = ml_str_cut(&rest, '\n');
    if (!is_ready)
        ml_err_set(self->err, ML_ESCRIPT, ML_STR_FMT, ML_STR_ARG(line));
    else if (has_failures(self))
        ml_err_set(self->err, ML_EINVALID, "not all manifests could be applied");
    if (self->err->kind)
        self->exit_code = MOONLOOP_EXIT_BAD;
    stop(self);
}

static void on_look(void *context)
{
    struct ml_dev *self = context;
    ML_AUTO(ml_buf_fini) struct ml_buf why = ML_BUF_INIT;
    bool is_ready = ml_operator_ready(self->operator, & why);
    self->idle_looks = is_busy(self) ? 0 : self->idle_looks + 1;
    self->stuck_looks = is_ready ? 0 : self->stuck_looks + 1;
    if (self->idle_looks >= IDLE_LOOKS || self->stuck_looks >= STUCK_LOOKS)
        end_idle(self, is_ready, &why);
    else
        ml_timer_start(&self->look, IDLE_LOOK_NS);
}

/* ---- start ---- */

static void on_applied(void *context)
{
    struct ml_dev *self = context;
    ml_operator_start(self->operator);
    if (self->opts.until_idle)
        ml_timer_start(&self->look, IDLE_LOOK_NS);
}

static void put_user(struct ml_json_writer *writer, const char *token)
{
    ml_json_key(writer, ML_STR("tokens"));
    ml_json_begin_object(writer);
    ml_json_key(writer, ml_str_of(token));
    ml_json_begin_object(writer);
    ml_json_put_string(writer, "name", ML_STR("kubernetes-admin"));
    ml_json_key(writer, ML_STR("groups"));
    ml_json_begin_array(writer);
    ml_json_string(writer, ML_STR("system:masters"));
    ml_json_string(writer, ML_STR("system:authenticated"));
    ml_json_end_array(writer);
    ml_json_end_object(writer);
    ml_json_end_object(writer);
}

static int make_server(struct ml_dev *self)
{
    ML_AUTO(ml_buf_fini) struct ml_buf settings = ML_BUF_INIT;
    struct ml_json_writer writer;
    bool rbac = self->opts.authorization && !strcmp(self->opts.authorization, "RBAC");
    ml_json_writer_init(&writer, &settings);
    ml_json_begin_object(&writer);
    ml_json_put_string(&writer, "authorization", ml_str_of(rbac ? "rbac" : "always"));
    if (self->opts.data)
        ml_json_put_string(&writer, "data", ml_str_of(self->opts.data));
    put_user(&writer, self->token);
    ml_json_end_object(&writer);
    const struct ml_apiserver_options options = {
        .loop = self->loop,
        .random = &self->random,
        .log = &self->log,
        .settings = ml_buf_str(&settings),
    };
    int r = ml_apiserver_new(&options, &self->server, self->err);
    if (r < 0)
        return r;
    const struct ml_process_library library = {self->processes, self->prober};
    ml_trusted_add_processes(ml_apiserver_trusted(self->server), &library);
    return 0;
}

static int open_address(struct ml_dev *self)
{
    const struct ml_embedded_http_opts opts = {
        .loop = self->loop,
        .server = self->server,
        .address = self->opts.bind_address ? self->opts.bind_address : "127.0.0.1:0",
    };
    int r = ml_embedded_http_new(&opts, &self->http, self->err);
    if (r < 0)
        return r;
    const struct ml_dev_access access = {
        .port = ml_embedded_http_port(self->http),
        .ca_pem = ml_embedded_http_ca(self->http),
        .token = self->token,
    };
    return ml_dev_files_write_kubeconfig(&self->files, self->opts.kubeconfig, &access, self->err);
}

static int start_cluster(struct ml_dev *self)
{
    ML_AUTO(ml_buf_fini) struct ml_buf settings = ML_BUF_INIT;
    struct ml_json_writer writer;
    ml_json_writer_init(&writer, &settings);
    ml_json_begin_object(&writer);
    ml_json_put_string(&writer, "pods", ml_str_of(self->opts.pods ? self->opts.pods : "process"));
    ml_json_put_string(&writer, "directory", ml_str_of(self->files.folder));
    ml_json_put_string(&writer, "ca", ml_str_of(ml_embedded_http_ca(self->http)));
    if (self->opts.audit_log)
        ml_json_put_string(&writer, "audit_log", ml_str_of(self->opts.audit_log));
    ml_json_end_object(&writer);
    return call(self, "start", ml_buf_str(&settings), NULL, self->err);
}

static void make_operator(struct ml_dev *self)
{
    ML_AUTO_FREE char *instance = ml_asprintf("moonloop-dev-%d", (int)getpid());
    const struct ml_operator_opts opts = {
        .loop = self->loop,
        .transport = self->transport,
        .random = &self->random,
        .log = &self->log,
        .metrics = self->metrics,
        .namespaces = self->opts.namespaces,
        .instance = instance,
    };
    self->operator= ml_operator_new(&opts);
    for (size_t i = 0; self->opts.scripts[i]; i++)
        ml_operator_add_path(self->operator, self->opts.scripts[i]);
}

static void watch_manifests(struct ml_dev *self)
{
    const struct ml_dev_manifests_opts opts = {
        .loop = self->loop,
        .trusted = ml_apiserver_trusted(self->server),
        .log = &self->log,
        .paths = self->opts.manifests,
        .first = on_applied,
        .context = self,
    };
    self->manifests = ml_dev_manifests_new(&opts);
}

static int check_opts(struct ml_dev *self)
{
    enum ml_log_level level = ML_LOG_INFO;
    const char *pods = self->opts.pods, *mode = self->opts.authorization;
    const char *address = self->opts.bind_address;
    if (self->opts.log_level && !ml_log_level_parse(self->opts.log_level, &level))
        return ml_err_set(self->err, ML_EINVALID,
                          "--log-level %s: expected debug, info, warn or error",
                          self->opts.log_level);
    if (pods && strcmp(pods, "process") != 0 && strcmp(pods, "fake") != 0 &&
        strcmp(pods, "none") != 0)
        return ml_err_set(self->err, ML_EINVALID, "--pods %s: expected process, fake or none",
                          pods);
    if (mode && strcmp(mode, "AlwaysAllow") != 0 && strcmp(mode, "RBAC") != 0)
        return ml_err_set(self->err, ML_EINVALID,
                          "--authorization-mode %s: expected AlwaysAllow or RBAC", mode);
    if (address && !ml_str_starts(ml_str_of(address), "127.") &&
        !ml_str_starts(ml_str_of(address), "localhost:") &&
        !ml_str_starts(ml_str_of(address), "[::1]:"))
        return ml_err_set(self->err, ML_EINVALID,
                          "--bind-address %s: only loopback is served: 127.0.0.1:PORT", address);
    ml_log_init(&self->log, ml_clock_real(), STDERR_FILENO, ML_LOG_TEXT, level);
    return 0;
}

static void greet(const struct ml_dev *self)
{
    printf("moonloop dev: a cluster at https://127.0.0.1:%d; in another terminal:\n\n"
           "  export KUBECONFIG=%s\n\n",
           ml_embedded_http_port(self->http), self->files.kubeconfig);
    fflush(stdout);
}

static int build(struct ml_dev *self)
{
    if (check_opts(self) < 0)
        return MOONLOOP_EXIT_USAGE;
    ml_random_init_real(&self->random);
    self->loop = ml_loop_new(ml_clock_real());
    self->metrics = ml_metrics_new();
    ml_timer_init(&self->look, self->loop, on_look, self);
    self->prober = ml_http_client_new(self->loop, "kube-probe/" MOONLOOP_VERSION);
    if (ml_processes_new(self->loop, &self->processes, self->err) < 0)
        return MOONLOOP_EXIT_BAD;
    /* From here on there is something to take away again; a signal waits for the loop. */
    catch_signals(self, on_signal);
    if (ml_dev_files_make(&self->files, self->err) < 0 ||
        ml_dev_token(self->token, self->err) < 0 || make_server(self) < 0)
        return MOONLOOP_EXIT_BAD;
    int r = open_address(self);
    if (r == ML_EINVALID) /* --bind-address */
        return MOONLOOP_EXIT_USAGE;
    if (r < 0 || start_cluster(self) < 0)
        return MOONLOOP_EXIT_BAD;
    self->transport = ml_transport_embedded_new(self->loop, self->server, self->token);
    make_operator(self);
    watch_manifests(self);
    greet(self);
    return 0;
}

/* In the reverse order of making; everything takes NULL. */
static void unbuild(struct ml_dev *self)
{
    struct ml_err err = ML_ERR_INIT;
    ml_dev_manifests_free(self->manifests);
    ml_operator_free(self->operator);
    if (self->transport)
        self->transport->free(self->transport);
    if (self->server && call(self, "stop", ML_STR(""), NULL, &err) < 0)
        ml_error(&self->log, "dev", "pods may be left", ML_ERR(&err));
    ml_embedded_http_free(self->http);
    ml_apiserver_free(self->server);
    ml_processes_free(self->processes);
    ml_http_client_free(self->prober);
    if (self->loop) {
        catch_signals(self, NULL);
        ml_timer_stop(&self->look);
        ml_loop_free(self->loop);
    }
    ml_metrics_free(self->metrics);
    ml_dev_files_fini(&self->files);
}

int ml_dev_run(const struct ml_dev_opts *opts, struct ml_err *err)
{
    struct ml_dev self = {.opts = *opts, .err = err};
    self.exit_code = build(&self);
    if (self.exit_code == MOONLOOP_EXIT_OK)
        ml_loop_run(self.loop);
    unbuild(&self);
    return self.exit_code;
}
