/* The host as a whole, behind moonloop.h: what it consists of, in which order it starts and stops.
 *
 *   start   probes and metrics, connection, caches and scripts (each script when its caches are
 *           synced)
 *   stop    readiness, scripts (running reconciles end), Events, the Lease, connections, probes */
#include "include/moonloop.h"

#include "kube/transport_http.h"
#include "operator/connect.h"
#include "operator/crash_marker.h"
#include "operator/endpoints.h"
#include "operator/lockdown.h"
#include "operator/operator.h"
#include "operator/watchdog.h"

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdio.h>
#include <unistd.h>

#define CONNECT_PATIENCE_NS   (10 * ML_NS_PER_S)
#define DRAIN_SECONDS_DEFAULT 25

struct moonloop {
    struct moonloop_opts opts; /* strings owned, opts_own */
    struct ml_err err;
    int exit_code;

    struct ml_log log;
    struct ml_random random;
    struct ml_loop *loop;
    struct ml_metrics *metrics;
    struct ml_kubeconfig *kubeconfig;
    struct ml_credentials *credentials; /* of both transports */
    struct ml_http_client *http;
    struct ml_transport *transport;
    struct ml_http_client *lease_http; /* of its own, so that renewals wait for no other request */
    struct ml_transport *lease_transport;
    struct ml_operator *operator;
    struct ml_endpoints *endpoints;
    struct ml_connect *connecting;
    struct ml_watchdog *watchdog;
    struct ml_crash_marker *marker; /* NULL: no --state-dir, or it cannot be used */
    struct ml_timer worked;

    bool stopping;
    int wake[2]; /* moonloop_stop writes a byte here */
    struct ml_loop_watch *woken;
    atomic_int stops;
};

/* ---- options: copied, as the caller may free its strings after moonloop_new ---- */

static const char *const *opts_own_list(const char *const *list)
{
    size_t count = 0;
    while (list && list[count])
        count++;
    const char **copy = ml_zalloc((count + 1) * sizeof *copy);
    for (size_t i = 0; i < count; i++)
        copy[i] = ml_strdup(list[i]);
    return copy;
}

static void opts_free_list(const char *const *list)
{
    for (size_t i = 0; list && list[i]; i++)
        free((char *)list[i]);
    free((void *)list);
}

static void opts_own(struct moonloop_opts *opts)
{
    opts->kubeconfig = ml_strdup(opts->kubeconfig);
    opts->context = ml_strdup(opts->context);
    opts->metrics_bind_address = ml_strdup(opts->metrics_bind_address);
    opts->health_probe_bind_address = ml_strdup(opts->health_probe_bind_address);
    opts->state_dir = ml_strdup(opts->state_dir);
    opts->log_format = ml_strdup(opts->log_format);
    opts->log_level = ml_strdup(opts->log_level);
    opts->leader_election_id = ml_strdup(opts->leader_election_id);
    opts->leader_election_namespace = ml_strdup(opts->leader_election_namespace);
    opts->namespaces = opts_own_list(opts->namespaces);
    opts->scripts = opts_own_list(opts->scripts);
    opts->scripts_configmaps = opts_own_list(opts->scripts_configmaps);
}

static void opts_free(struct moonloop_opts *opts)
{
    free((char *)opts->kubeconfig);
    free((char *)opts->context);
    free((char *)opts->metrics_bind_address);
    free((char *)opts->health_probe_bind_address);
    free((char *)opts->state_dir);
    free((char *)opts->log_format);
    free((char *)opts->log_level);
    free((char *)opts->leader_election_id);
    free((char *)opts->leader_election_namespace);
    opts_free_list(opts->namespaces);
    opts_free_list(opts->scripts);
    opts_free_list(opts->scripts_configmaps);
}

static bool opts_is_replica(const struct moonloop_opts *opts)
{
    return opts->leader_elect || opts->shard;
}

static const char *opts_lease_name(const struct moonloop_opts *opts)
{
    return opts->leader_election_id ? opts->leader_election_id : "moonloop";
}

static struct ml_lease_times opts_lease_times(const struct moonloop_opts *opts)
{
    struct ml_lease_times times = ML_LEASE_TIMES_DEFAULT;
    if (opts->leader_election_lease_duration_ms)
        times.lease_ns = opts->leader_election_lease_duration_ms * ML_NS_PER_MS;
    if (opts->leader_election_renew_deadline_ms)
        times.renew_ns = opts->leader_election_renew_deadline_ms * ML_NS_PER_MS;
    if (opts->leader_election_retry_period_ms)
        times.retry_ns = opts->leader_election_retry_period_ms * ML_NS_PER_MS;
    return times;
}

static int opts_log(const struct moonloop_opts *opts, enum ml_log_format *out_format,
                    enum ml_log_level *out_level, struct ml_err *err)
{
    *out_format = ML_LOG_JSON;
    *out_level = ML_LOG_INFO;
    if (opts->log_format && !ml_log_format_parse(opts->log_format, out_format))
        return ml_err_set(err, ML_EINVALID, "--log-format %s: expected json or text",
                          opts->log_format);
    if (opts->log_level && !ml_log_level_parse(opts->log_level, out_level))
        return ml_err_set(err, ML_EINVALID, "--log-level %s: expected debug, info, warn or error",
                          opts->log_level);
    return 0;
}

static int opts_check_sources(const struct moonloop_opts *opts, struct ml_err *err)
{
    const char *const *configmaps = opts->scripts_configmaps;
    if (!opts->scripts[0] && !configmaps[0])
        return ml_err_set(err, ML_EINVALID,
                          "no scripts: give --scripts PATH or --scripts-configmap NAMESPACE/NAME");
    for (size_t i = 0; configmaps[i]; i++) {
        int r = ml_source_configmap_check(configmaps[i], err);
        if (r < 0)
            return r;
    }
    return 0;
}

static int opts_check_replica(const struct moonloop_opts *opts, struct ml_err *err)
{
    const char *ns = opts->leader_election_namespace, *name = opts_lease_name(opts);
    const struct ml_lease_times times = opts_lease_times(opts);
    if (!opts_is_replica(opts))
        return 0;
    if (opts->leader_elect && opts->shard)
        return ml_err_set(err, ML_EINVALID,
                          "--shard and --leader-elect exclude each other: with the first all "
                          "replicas work, with the second one does; leave one out");
    if (!ml_name_valid(ml_str_of(name)))
        return ml_err_set(err, ML_EINVALID,
                          "--leader-election-id %s: not a valid name of an object", name);
    if (ns && !ml_name_valid(ml_str_of(ns)))
        return ml_err_set(err, ML_EINVALID,
                          "--leader-election-namespace %s: not a valid name of a namespace", ns);
    return ml_lease_times_check(&times, err);
}

static int opts_check(const struct moonloop_opts *opts, struct ml_err *err)
{
    int r = opts_check_sources(opts, err);
    return r < 0 ? r : opts_check_replica(opts, err);
}

/* ---- the host ---- */

const char *moonloop_version(void)
{
    return MOONLOOP_VERSION;
}

struct moonloop *moonloop_new(const struct moonloop_opts *opts)
{
    struct moonloop *self = ml_new(struct moonloop);
    self->opts = *opts;
    opts_own(&self->opts);
    self->err = ML_ERR_INIT;
    self->wake[0] = self->wake[1] = -1;
    if (pipe2(self->wake, O_NONBLOCK | O_CLOEXEC) < 0)
        ml_err_set(&self->err, ML_EIO, "pipe: %s", strerror(errno));
    return self;
}

static void host_leave_loop(void *context)
{
    struct moonloop *self = context;
    ml_loop_stop(self->loop);
}

static int host_fail(struct moonloop *self, int exit_code)
{
    self->exit_code = exit_code;
    return exit_code;
}

static void host_stop(struct moonloop *self, const char *why)
{
    int64_t seconds = self->opts.drain_seconds > 0 ? self->opts.drain_seconds
                                                   : DRAIN_SECONDS_DEFAULT;
    ml_info(&self->log, "host", self->stopping ? "stopping at once" : "stopping", ML_S("why", why));
    if (self->stopping) {
        ml_err_set(&self->err, ML_ECANCELED,
                   "asked to stop twice; running reconciles were abandoned");
        host_fail(self, MOONLOOP_EXIT_BAD);
    }
    self->stopping = true;
    ml_connect_free(ml_take(&self->connecting));
    ml_operator_stop(self->operator, seconds * ML_NS_PER_S, host_leave_loop, self);
}

static void host_on_wake(void *context)
{
    struct moonloop *self = context;
    char byte;
    while (read(self->wake[0], &byte, 1) == 1)
        ;
    host_stop(self, atomic_load(&self->stops) > 1 ? "asked twice" : "asked to");
}

void moonloop_stop(struct moonloop *self)
{
    atomic_fetch_add(&self->stops, 1);
    ssize_t sent = write(self->wake[1], "", 1);
    (void)sent; /* a full pipe wakes as well */
}

static void host_on_signal(void *context, int signo)
{
    host_stop(context, signo == SIGTERM ? "SIGTERM" : "SIGINT");
}

static void host_catch_signals(struct moonloop *self, void (*fire)(void *context, int signo))
{
    if (!self->opts.handle_signals)
        return;
    ml_loop_on_signal(self->loop, SIGTERM, fire, self);
    ml_loop_on_signal(self->loop, SIGINT, fire, self);
}

static void host_on_connected(void *context, const char *version, const struct ml_err *err)
{
    struct moonloop *self = context;
    ml_connect_free(ml_take(&self->connecting));
    if (err) {
        ml_err_set(&self->err, err->kind, "cannot use the API server %s (%s): %s%s",
                   ml_kubeconfig_server(self->kubeconfig), ml_kubeconfig_source(self->kubeconfig),
                   err->message, ml_connect_advice(err));
        host_fail(self, MOONLOOP_EXIT_UNREACHABLE);
        host_leave_loop(self);
        return;
    }
    ml_info(&self->log, "host", "connected", ML_S("server", ml_kubeconfig_server(self->kubeconfig)),
            ML_S("version", version), ML_S("credentials", ml_kubeconfig_source(self->kubeconfig)));
    if (ml_kubeconfig_insecure(self->kubeconfig))
        ml_warn(
            &self->log, "host",
            "INSECURE: the server's certificate is not verified (insecure-skip-tls-verify), and "
            "anybody on the way can take the credentials; set certificate-authority instead",
            ML_S("server", ml_kubeconfig_server(self->kubeconfig)));
    ml_operator_start(self->operator);
}

static int host_open_log(struct moonloop *self)
{
    enum ml_log_format format;
    enum ml_log_level level;
    int r = opts_log(&self->opts, &format, &level, &self->err);
    if (r == 0)
        ml_log_init(&self->log, ml_clock_real(),
                    self->opts.log_fd ? self->opts.log_fd : STDOUT_FILENO, format, level);
    return r;
}

static int host_open_transport(struct moonloop *self)
{
    const struct ml_kubeconfig_opts opts = {self->opts.kubeconfig, self->opts.context};
    int r = ml_kubeconfig_load(&opts, &self->kubeconfig, &self->err);
    if (r < 0)
        return r;
    self->credentials = ml_credentials_new(&(struct ml_credentials_opts){
        .loop = self->loop,
        .config = self->kubeconfig,
        .log = &self->log,
        .metrics = self->metrics,
        .random = &self->random,
    });
    self->http = ml_http_client_new(self->loop, "moonloop/" MOONLOOP_VERSION);
    self->transport = ml_transport_http_new(self->http, self->credentials);
    return 0;
}

/* Ends at once: another replica may be reconciling by now. */
static void host_on_lease_lost(void *context, const struct ml_err *err)
{
    struct moonloop *self = context;
    self->err = *err;
    ml_error(&self->log, "host",
             self->opts.shard ? "no longer a member of the shard group; exiting"
                              : "no longer the leader; exiting",
             ML_ERR(err));
    host_fail(self, MOONLOOP_EXIT_LOST_LEASE);
    host_leave_loop(self);
}

static void host_open_replica(struct moonloop *self, struct ml_replica_opts *out,
                              const char *identity)
{
    const char *ns = self->opts.leader_election_namespace;
    self->lease_http = ml_http_client_new(self->loop, "moonloop/" MOONLOOP_VERSION);
    self->lease_transport = ml_transport_http_new(self->lease_http, self->credentials);
    *out = (struct ml_replica_opts){
        .transport = self->lease_transport,
        .ns = ns ? ns : ml_kubeconfig_namespace(self->kubeconfig),
        .name = opts_lease_name(&self->opts),
        .identity = identity,
        .times = opts_lease_times(&self->opts),
        .shares = self->opts.shard,
        .lost = host_on_lease_lost,
        .context = self,
    };
}

/* The host runs without one when it cannot be opened. */
static void host_open_marker(struct moonloop *self)
{
    struct ml_err err = ML_ERR_INIT;
    if (self->opts.state_dir &&
        ml_crash_marker_open(self->opts.state_dir, &self->log, &self->marker, &err) < 0)
        ml_warn(&self->log, "host",
                "no crash marker; a script that kills the process will not be quarantined",
                ML_ERR(&err));
}

static void host_make_operator(struct moonloop *self)
{
    char host[64] = "localhost", uuid[ML_UUID_LEN + 1];
    gethostname(host, sizeof host - 1);
    ml_random_uuid(&self->random, uuid);
    ML_AUTO_FREE char *instance = ml_asprintf("moonloop-%s-%d", host, (int)getpid());
    ML_AUTO_FREE char *identity = ml_asprintf("%s_%s", host, uuid);
    struct ml_replica_opts replica;
    if (opts_is_replica(&self->opts))
        host_open_replica(self, &replica, identity);
    const struct ml_operator_opts opts = {
        .loop = self->loop,
        .transport = self->transport,
        .random = &self->random,
        .log = &self->log,
        .metrics = self->metrics,
        .namespaces = self->opts.namespaces,
        .watch_list = self->opts.watch_list,
        .instance = instance,
        .limits = {.memory_max = self->opts.script_memory_max},
        .marker = self->marker,
        .replica = opts_is_replica(&self->opts) ? &replica : NULL,
    };
    self->operator= ml_operator_new(&opts);
    for (size_t i = 0; self->opts.scripts[i]; i++)
        ml_operator_add_path(self->operator, self->opts.scripts[i]);
    for (size_t i = 0; self->opts.scripts_configmaps[i]; i++)
        ml_operator_add_configmap(self->operator, self->opts.scripts_configmaps[i]);
}

static bool host_is_ready(void *context, struct ml_buf *why)
{
    struct moonloop *self = context;
    if (self->stopping) {
        ml_buf_puts(why, "stopping\n");
        return false;
    }
    if (self->connecting) {
        ml_buf_puts(why, "not connected to the API server yet\n");
        return false;
    }
    return ml_operator_ready(self->operator, why);
}

static int host_open_endpoints(struct moonloop *self)
{
    const struct ml_endpoints_opts opts = {
        .loop = self->loop,
        .metrics = self->metrics,
        .log = &self->log,
        .health_address = self->opts.health_probe_bind_address,
        .metrics_address = self->opts.metrics_bind_address,
        .ready = host_is_ready,
        .context = self,
    };
    int r = ml_endpoints_new(&opts, &self->endpoints, &self->err);
    if (r < 0)
        return r;
    int health = ml_endpoints_health_port(self->endpoints);
    int metrics = ml_endpoints_metrics_port(self->endpoints);
    if (health || metrics)
        ml_info(&self->log, "host", "serving", ML_I("health_port", health),
                ML_I("metrics_port", metrics));
    return 0;
}

static void host_lock_down(struct moonloop *self)
{
    const char *files[ML_KUBECONFIG_FILES_MAX];
    size_t count = 0, file_count = ml_kubeconfig_files(self->kubeconfig, files);
    if (!self->opts.lock_down)
        return;
    while (self->opts.scripts[count])
        count++;
    ML_AUTO_FREE const char **readable = ml_zalloc((count + file_count + 1) * sizeof *readable);
    memcpy(readable, self->opts.scripts, count * sizeof *readable);
    memcpy(readable + count, files, file_count * sizeof *readable);
    ml_lockdown(&(struct ml_lockdown_opts){
        .runs_programs = ml_kubeconfig_runs_programs(self->kubeconfig),
        .readable = readable,
        .log = &self->log,
    });
}

static void host_on_worked(void *context)
{
    struct moonloop *self = context;
    ml_crash_marker_forgive(self->marker);
}

static void host_start_watchdog(struct moonloop *self)
{
    struct ml_err err = ML_ERR_INIT;
    const struct ml_watchdog_opts opts = {
        .loop = self->loop,
        .log = &self->log,
        .listener = ml_endpoints_health_listener(self->endpoints),
    };
    if (ml_watchdog_new(&opts, &self->watchdog, &err) < 0)
        ml_warn(&self->log, "host", "no watchdog thread; a blocked event loop will not be reported",
                ML_ERR(&err));
}

/* Everything but the network. On failure self->err is set and moonloop_free frees what exists.
 * Signals are caught first and wait for the loop: process 1 of a container would lose them. */
static int host_build(struct moonloop *self)
{
    if (self->err.kind)
        return host_fail(self, MOONLOOP_EXIT_BAD);
    if (host_open_log(self) < 0 || opts_check(&self->opts, &self->err) < 0)
        return host_fail(self, MOONLOOP_EXIT_USAGE);
    ml_random_init_real(&self->random);
    self->loop = ml_loop_new(ml_clock_real());
    ml_timer_init(&self->worked, self->loop, host_on_worked, self);
    host_catch_signals(self, host_on_signal);
    self->metrics = ml_metrics_new();
    if (host_open_transport(self) < 0)
        return host_fail(self, MOONLOOP_EXIT_UNREACHABLE);
    host_open_marker(self);
    host_make_operator(self);
    if (host_open_endpoints(self) < 0)
        return host_fail(self, MOONLOOP_EXIT_BAD);
    host_lock_down(self);
    host_start_watchdog(self);
    return 0;
}

int moonloop_run(struct moonloop *self)
{
    ml_assert(self->loop == NULL);
    if (host_build(self) != 0)
        return self->exit_code;
    self->woken = ml_loop_watch_fd(self->loop, self->wake[0], host_on_wake, self);
    self->connecting = ml_connect_start(ml_operator_client(self->operator), self->loop, &self->log,
                                        CONNECT_PATIENCE_NS, host_on_connected, self);
    if (self->marker)
        ml_timer_start(&self->worked, ML_CRASH_MARKER_WORKED_NS);
    ml_loop_run(self->loop);
    if (self->marker && self->exit_code == MOONLOOP_EXIT_OK)
        ml_crash_marker_forgive(self->marker);
    ml_watchdog_free(ml_take(&self->watchdog)); /* what follows may take long */
    ml_info(&self->log, "host", "stopped", ML_I("exit_code", self->exit_code));
    return self->exit_code;
}

const char *moonloop_error(const struct moonloop *self)
{
    return self->err.message;
}

/* In the reverse order of creation; everything takes NULL. */
void moonloop_free(struct moonloop *self)
{
    if (!self)
        return;
    ml_connect_free(self->connecting);
    ml_watchdog_free(self->watchdog);
    ml_endpoints_free(self->endpoints);
    ml_operator_free(self->operator);
    ml_crash_marker_close(self->marker);
    if (self->transport)
        self->transport->free(self->transport);
    if (self->lease_transport)
        self->lease_transport->free(self->lease_transport);
    ml_http_client_free(self->http);
    ml_http_client_free(self->lease_http);
    ml_credentials_free(self->credentials);
    ml_kubeconfig_free(self->kubeconfig);
    if (self->loop) {
        host_catch_signals(self, NULL);
        ml_timer_stop(&self->worked);
        ml_loop_watch_free(self->woken);
        ml_loop_free(self->loop);
    }
    ml_metrics_free(self->metrics);
    for (int i = 0; i < 2; i++)
        if (self->wake[i] >= 0)
            close(self->wake[i]);
    opts_free(&self->opts);
    free(self);
}
