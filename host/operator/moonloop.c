/* The host as a whole, behind moonloop.h: what it consists of, in which order it starts and stops.
 *
 *   start   probes and metrics, connection, caches and scripts (each script when its caches are
 *           synced)
 *   stop    readiness, scripts (running reconciles end), Events, the Lease, connections, probes */
#include "include/moonloop.h"

#include "base/escape.h"
#include "base/repeat.h"
#include "codec/json.h"
#include "kube/credentials.h"
#include "kube/transport.h"
#include "operator/crash_marker.h"
#include "operator/endpoints.h"
#include "operator/inspect_server.h"
#include "operator/lockdown.h"
#include "operator/operator.h"
#include "operator/outbound.h"
#include "operator/source.h"
#include "operator/watchdog.h"
#include "operator/webhook_pair.h"
#include "operator/webhooks.h"

#include <errno.h>
#include <signal.h>
#include <sys/eventfd.h>
#include <unistd.h>

#define CONNECT_PATIENCE_NS   (10 * ML_NS_PER_S)   /* for transient errors of the first request */
#define CONNECT_RETRY_NS      (200 * ML_NS_PER_MS) /* doubles */
#define CONNECT_RETRY_MAX_NS  (2 * ML_NS_PER_S)
#define DRAIN_SECONDS_DEFAULT 25
#define REVIEWS_AT_ONCE       4 /* to the API server, for those who ask */

struct moonloop {
    struct moonloop_opts opts; /* its strings are borrowed; no list is NULL */
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
    char *identity;               /* of this process among the replicas */
    struct ml_outbound *outbound; /* what scripts ask by ctx.http */
    struct ml_operator *operator;
    struct ml_endpoints *endpoints;
    struct ml_inspect_server *inspect; /* NULL: the socket could not be opened */
    struct ml_inspect_server *reviews; /* NULL: not served */
    struct ml_client *review_client;   /* of them, without the fence of the operator's */
    struct ml_webhooks *webhooks;      /* NULL: not served */
    struct ml_watchdog *watchdog;
    struct ml_crash_marker *marker; /* NULL: no --state-dir, or it cannot be used */
    struct ml_timer worked;

    bool connecting;              /* the first request has not succeeded yet */
    struct ml_client_call *asked; /* NULL: not under way */
    struct ml_timer ask_again;
    int64_t ask_delay_ns;
    int64_t give_up_ns; /* monotonic */
    struct ml_repeat unanswered;

    bool stopping;
    int wake; /* an eventfd to which moonloop_stop adds */
    struct ml_loop_watch *woken;
    uint64_t stops; /* calls of moonloop_stop */
};

/* ---- the options ---- */

/* NULL is an empty list. */
static const char *const *list_of(const char *const *given)
{
    static const char *const empty[] = {NULL};
    return given ? given : empty;
}

/* Is this process one of several that hold Leases: with --leader-elect, or --shard? */
static bool opts_are_of_replica(const struct moonloop_opts *opts)
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

static int opts_check_replica(const struct moonloop_opts *opts, struct ml_err *err)
{
    const char *ns = opts->leader_election_namespace, *name = opts_lease_name(opts);
    const struct ml_lease_times times = opts_lease_times(opts);
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

static int opts_check_webhooks(const struct moonloop_opts *opts, struct ml_err *err)
{
    ML_AUTO_FREE char *host = NULL;
    int seconds = opts->webhook_cert_seconds;
    const char *const names[] = {opts->webhook_service, opts->webhook_cert_secret,
                                 opts->webhook_namespace};
    for (size_t i = 0; i < ML_COUNT(names); i++)
        if (names[i] && !ml_name_valid(ml_str_of(names[i])))
            return ml_err_set(err, ML_EINVALID, "--webhook-…: %s is not a valid name", names[i]);
    if (seconds != 0 && seconds < ML_WEBHOOK_CERT_MIN_S)
        return ml_err_set(err, ML_EINVALID, "--webhook-cert-seconds %d: at least %d", seconds,
                          ML_WEBHOOK_CERT_MIN_S);
    return opts->webhook_url ? ml_webhooks_url_host(opts->webhook_url, &host, err) : 0;
}

/* How new versions take over. */
static int opts_guard(const struct moonloop_opts *opts, struct ml_guard_opts *out,
                      struct ml_err *err)
{
    static const struct moonloop_rollout_limits none = MOONLOOP_ROLLOUT_LIMITS_INIT;
    const struct moonloop_rollout_limits *given = opts->rollout_limits ? opts->rollout_limits
                                                                       : &none;
    const struct {
        const char *name;
        int value, least, most;
    } limits[] = {
        {"max-deletes", given->max_deletes, 0, ML_ROLLOUT_DELETES_MAX},
        {"max-deletes-percent", given->max_deletes_percent, 0, 100},
        {"max-failures-percent", given->max_failures_percent, 0, 100},
        {"sample", given->sample, 1, ML_GUARD_SAMPLE_MAX},
        {"settle-seconds", given->settle_seconds, 0, ML_ROLLOUT_SETTLE_MAX},
    };
    for (size_t i = 0; i < ML_COUNT(limits); i++)
        if (limits[i].value < limits[i].least || limits[i].value > limits[i].most)
            return ml_err_set(err, ML_EINVALID, "--rollout-%s %d: expected %d to %d",
                              limits[i].name, limits[i].value, limits[i].least, limits[i].most);
    *out = (struct ml_guard_opts){.rollout = {ML_ROLLOUT_GUARDED, given->max_deletes,
                                              given->max_deletes_percent,
                                              given->max_failures_percent, given->settle_seconds},
                                  .sample = given->sample};
    if (opts->rollout && !ml_rollout_mode_parse(ml_str_of(opts->rollout), &out->rollout.mode))
        return ml_err_set(err, ML_EINVALID, "--rollout %s: expected " ML_ROLLOUT_MODES,
                          opts->rollout);
    return 0;
}

/* 0, or ML_EINVALID with what to change. */
static int opts_check(const struct moonloop_opts *opts, struct ml_err *err)
{
    const char *const *configmaps = opts->scripts_configmaps;
    struct ml_guard_opts guard;
    if (opts_guard(opts, &guard, err) < 0)
        return err->kind;
    if (!opts->scripts[0] && !configmaps[0])
        return ml_err_set(err, ML_EINVALID,
                          "no scripts: give --scripts PATH or --scripts-configmap NAMESPACE/NAME");
    for (size_t i = 0; configmaps[i]; i++)
        if (ml_source_configmap_check(configmaps[i], err) < 0)
            return err->kind;
    int r = opts_check_webhooks(opts, err);
    return r == 0 && opts_are_of_replica(opts) ? opts_check_replica(opts, err) : r;
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
    self->opts.namespaces = list_of(opts->namespaces);
    self->opts.scripts = list_of(opts->scripts);
    self->opts.scripts_configmaps = list_of(opts->scripts_configmaps);
    self->opts.allow_http = list_of(opts->allow_http);
    self->err = ML_ERR_INIT;
    self->wake = eventfd(0, EFD_NONBLOCK | EFD_CLOEXEC);
    if (self->wake < 0)
        ml_err_set(&self->err, ML_EIO, "eventfd: %s", strerror(errno));
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

static void host_stop_connecting(struct moonloop *self)
{
    self->connecting = false;
    ml_timer_stop(&self->ask_again);
    if (self->asked)
        ml_client_cancel(ml_take(&self->asked));
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
    host_stop_connecting(self);
    ml_operator_stop(self->operator, seconds * ML_NS_PER_S, host_leave_loop, self);
}

static void host_on_wake(void *context)
{
    struct moonloop *self = context;
    eventfd_t calls = 0;
    if (eventfd_read(self->wake, &calls) < 0)
        return;
    self->stops += calls;
    host_stop(self, self->stops > 1 ? "asked twice" : "asked to");
}

void moonloop_stop(struct moonloop *self)
{
    eventfd_write(self->wake, 1);
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

/* ---- the first request: is the server there, and does it accept our credentials? ---- */

/* A server that is starting or overloaded may answer soon. A wrong certificate, or credentials that
 * are rejected after they were read again, will not get better. */
static bool server_may_recover(int kind)
{
    return kind == ML_ENETWORK || kind == ML_ETIMEOUT || kind == ML_EUNAVAILABLE ||
           kind == ML_ETOO_MANY || kind == ML_ESERVER;
}

/* Advice to the person who reads the error. */
static const char *connect_advice(const struct ml_err *err)
{
    if (err->http == 401)
        return "; renew the token or certificate, or choose another --context";
    if (err->http == 403)
        return "; grant these credentials the ClusterRole system:public-info-viewer";
    if (err->kind == ML_ENETWORK || err->kind == ML_ETIMEOUT)
        return "; is it running, and is this the right address?";
    return "";
}

static void host_on_connected(struct moonloop *self, const char *version)
{
    self->connecting = false;
    ml_info(&self->log, "host", "connected", ML_S("server", self->kubeconfig->server),
            ML_S("version", version), ML_S("credentials", self->kubeconfig->source));
    if (self->kubeconfig->tls.insecure)
        ml_warn(
            &self->log, "host",
            "INSECURE: the server's certificate is not verified (insecure-skip-tls-verify), and "
            "anybody on the way can take the credentials; set certificate-authority instead",
            ML_S("server", self->kubeconfig->server));
    ml_operator_start(self->operator);
    if (self->webhooks)
        ml_webhooks_start(self->webhooks);
}

static void host_on_not_connected(struct moonloop *self, const struct ml_err *err)
{
    int64_t now_ns = ml_clock_monotonic(ml_clock_real());
    if (!server_may_recover(err->kind) || now_ns + self->ask_delay_ns > self->give_up_ns) {
        self->connecting = false;
        ml_err_set(&self->err, err->kind, "cannot use the API server %s (%s): %s%s",
                   self->kubeconfig->server, self->kubeconfig->source, err->message,
                   connect_advice(err));
        host_fail(self, MOONLOOP_EXIT_UNREACHABLE);
        host_leave_loop(self);
        return;
    }
    if (ml_repeat_failed(&self->unanswered, ml_str_of(err->message), now_ns))
        ml_warn(&self->log, "connect", "the API server does not answer yet; retrying",
                ML_ERR_FIELDS(err), ML_REPEAT_FIELDS(&self->unanswered, self->ask_delay_ns));
    ml_timer_start(&self->ask_again, self->ask_delay_ns);
    self->ask_delay_ns = ML_MIN(self->ask_delay_ns * 2, CONNECT_RETRY_MAX_NS);
}

static void host_on_version(void *context, struct ml_str body, const struct ml_err *err)
{
    struct moonloop *self = context;
    struct ml_err stranger;
    ML_AUTO_FREE char *version = err ? NULL : ml_json_find_string(body, "gitVersion", NULL);
    self->asked = NULL;
    ml_err_set(&stranger, ML_EUNSUPPORTED, "it answers, but not as a Kubernetes API server does");
    if (version)
        host_on_connected(self, version);
    else
        host_on_not_connected(self, err ? err : &stranger);
}

static void host_ask_version(void *context)
{
    struct moonloop *self = context;
    const struct ml_client_request request = {.verb = ML_VERB_GET, .path = "/version"};
    self->asked = ml_client_send(ml_operator_client(self->operator), &request, host_on_version,
                                 self);
}

static void host_connect(struct moonloop *self)
{
    self->connecting = true;
    self->ask_delay_ns = CONNECT_RETRY_NS;
    /* The address that a pod is given is right. If it ended, the kubelet would wait longer each
     * time, up to five minutes, and so be late when the server is back. */
    self->give_up_ns = self->kubeconfig->in_cluster
                           ? INT64_MAX
                           : ml_clock_monotonic(ml_clock_real()) + CONNECT_PATIENCE_NS;
    host_ask_version(self);
}

/* ---- its parts ---- */

static int host_open_log(struct moonloop *self)
{
    const struct moonloop_opts *opts = &self->opts;
    enum ml_log_format format = ML_LOG_JSON;
    enum ml_log_level level = ML_LOG_INFO;
    if (opts->log_format && !ml_log_format_parse(opts->log_format, &format))
        ml_err_set(&self->err, ML_EINVALID, "--log-format %s: expected json or text",
                   opts->log_format);
    else if (opts->log_level && !ml_log_level_parse(opts->log_level, &level))
        ml_err_set(&self->err, ML_EINVALID, "--log-level %s: expected debug, info, warn or error",
                   opts->log_level);
    ml_log_init(&self->log, ml_clock_real(), opts->log_fd ? opts->log_fd : STDOUT_FILENO, format,
                level);
    return self->err.kind;
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

static void host_open_replica(struct moonloop *self, struct ml_replica_opts *out)
{
    const char *ns = self->opts.leader_election_namespace;
    self->lease_http = ml_http_client_new(self->loop, "moonloop/" MOONLOOP_VERSION);
    self->lease_transport = ml_transport_http_new(self->lease_http, self->credentials);
    *out = (struct ml_replica_opts){
        .transport = self->lease_transport,
        .ns = ns ? ns : self->kubeconfig->ns,
        .name = opts_lease_name(&self->opts),
        .identity = self->identity,
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
    self->identity = ml_asprintf("%s_%s", host, uuid);
    struct ml_replica_opts replica;
    if (opts_are_of_replica(&self->opts))
        host_open_replica(self, &replica);
    struct ml_operator_opts opts = {
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
        .replica = opts_are_of_replica(&self->opts) ? &replica : NULL,
        .outbound = self->outbound,
        .tester = self->opts.tester,
    };
    struct ml_err none = ML_ERR_INIT;
    (void)opts_guard(&self->opts, &opts.guard, &none); /* checked before */
    self->operator= ml_operator_new(&opts);
    struct ml_scripts *scripts = ml_operator_scripts(self->operator);
    for (size_t i = 0; self->opts.scripts[i]; i++)
        ml_scripts_add_source(scripts, ml_source_path_new(self->opts.scripts[i]));
    for (size_t i = 0; self->opts.scripts_configmaps[i]; i++)
        ml_scripts_add_source(scripts, ml_source_configmap_new(self->opts.scripts_configmaps[i]));
}

static int host_open_outbound(struct moonloop *self)
{
    const struct ml_outbound_opts opts = {
        .loop = self->loop,
        .log = &self->log,
        .metrics = self->metrics,
        .origins = self->opts.allow_http,
        .proxy = self->opts.http_proxy,
        .ca_file = self->opts.http_ca_file,
    };
    return ml_outbound_new(&opts, &self->outbound, &self->err);
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
    bool serves = ml_operator_serves(self->operator, why);
    return (!self->webhooks || ml_webhooks_ready(self->webhooks, why)) && serves;
}

static void host_list_passed(void *context, struct ml_buf *out)
{
    struct moonloop *self = context;
    ML_AUTO(ml_buf_fini) struct ml_buf why = ML_BUF_INIT;
    if (!self->connecting)
        ml_append_line(out, "[+]connection ok: %s", self->kubeconfig->server);
    ml_scripts_list_ready(ml_operator_scripts(self->operator), out);
    if (self->webhooks && ml_webhooks_ready(self->webhooks, &why))
        ml_append_line(out, "[+]webhooks ok");
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
        .passed = host_list_passed,
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

static void host_look(void *context, struct ml_buf *why, struct ml_inspect_view *out)
{
    struct moonloop *self = context;
    out->ready = host_is_ready(self, why);
    out->why = ml_buf_str(why);
    out->services = ml_operator_services(self->operator);
    out->scripts = ml_operator_scripts(self->operator);
}

/* The host runs without it when it cannot be opened. */
static void host_open_inspect(struct moonloop *self)
{
    struct ml_err err = ML_ERR_INIT;
    const struct ml_inspect_server_opts opts = {
        .loop = self->loop,
        .log = &self->log,
        .look = host_look,
        .context = self,
    };
    if (ml_inspect_server_new(&opts, &self->inspect, &err) < 0)
        ml_warn(&self->log, "host", "moonloop status and why cannot ask this process",
                ML_ERR(&err));
}

static bool address_is_set(const char *address)
{
    return address && *address && strcmp(address, "0") != 0;
}

static int host_open_reviews(struct moonloop *self)
{
    const char *address = self->opts.inspect_bind_address;
    if (!address_is_set(address))
        return 0;
    self->review_client = ml_client_new(
        &(struct ml_client_opts){.loop = self->loop,
                                 .transport = self->transport,
                                 .metrics = self->metrics,
                                 .random = &self->random,
                                 .log = &self->log,
                                 .in_flight_max = REVIEWS_AT_ONCE,
                                 .same_server = ml_operator_client(self->operator)});
    const struct ml_inspect_server_opts opts = {
        .loop = self->loop,
        .log = &self->log,
        .client = self->review_client,
        .address = address,
        .look = host_look,
        .context = self,
    };
    if (ml_inspect_server_new(&opts, &self->reviews, &self->err) < 0)
        return ml_err_wrap(&self->err, "--inspect-bind-address %s", address);
    ml_info(&self->log, "host", "serving questions",
            ML_I("inspect_port", ml_inspect_server_port(self->reviews)));
    return 0;
}

/* Of a host that serves none: told once. */
static void host_on_webhooks_unserved(void *context)
{
    struct moonloop *self = context;
    struct ml_scripts *scripts = ml_operator_scripts(self->operator);
    const struct ml_declaration *declaration = NULL;
    struct ml_webhook_target target;
    for (size_t cursor = 0; ml_scripts_next_webhook(scripts, &cursor, &target);)
        declaration = ml_script_declaration(target.script);
    if (!declaration)
        return;
    ml_warn(&self->log, "host",
            "a script has webhooks, which are not served without --webhook-bind-address",
            ML_S("controller", declaration->name), ML_S("script", declaration->file));
    ml_operator_on_live(self->operator, NULL, NULL);
}

static int host_open_webhooks(struct moonloop *self)
{
    const struct moonloop_opts *given = &self->opts;
    const char *address = given->webhook_bind_address, *ns = given->webhook_namespace;
    if (!address_is_set(address)) {
        ml_operator_on_live(self->operator, host_on_webhooks_unserved, self);
        return 0;
    }
    if (!ns)
        ns = given->leader_election_namespace ? given->leader_election_namespace
                                              : self->kubeconfig->ns;
    const struct ml_webhooks_opts opts = {
        .loop = self->loop,
        .log = &self->log,
        .metrics = self->metrics,
        .operator= self->operator,
        .address = address,
        .cert_dir = given->webhook_cert_dir,
        .url = given->webhook_url,
        .ns = ns,
        .service = given->webhook_service,
        .cert_secret = given->webhook_cert_secret,
        .cert_s = given->webhook_cert_seconds,
    };
    int r = ml_webhooks_new(&opts, &self->webhooks, &self->err);
    if (r == 0)
        ml_info(&self->log, "host", "serving webhooks",
                ML_I("webhook_port", ml_webhooks_port(self->webhooks)));
    return r;
}

static void host_lock_down(struct moonloop *self)
{
    const char *files[ML_KUBECONFIG_FILES_MAX];
    size_t count = 0, file_count = ml_kubeconfig_files(self->kubeconfig, files);
    if (!self->opts.lock_down)
        return;
    while (self->opts.scripts[count])
        count++;
    ML_AUTO_FREE const char **readable = ml_zalloc((count + file_count + 2) * sizeof *readable);
    memcpy(readable, self->opts.scripts, count * sizeof *readable);
    memcpy(readable + count, files, file_count * sizeof *readable);
    readable[count + file_count] = self->webhooks ? self->opts.webhook_cert_dir : NULL;
    ml_lockdown(&(struct ml_lockdown_opts){
        .runs_programs = self->kubeconfig->exec != NULL,
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
    bool is_broken = self->err.kind != 0;
    if (host_open_log(self) < 0 && is_broken)
        return host_fail(self, MOONLOOP_EXIT_BAD);
    if (self->err.kind || opts_check(&self->opts, &self->err) < 0)
        return host_fail(self, MOONLOOP_EXIT_USAGE);
    ml_random_init_real(&self->random);
    self->loop = ml_loop_new(ml_clock_real());
    ml_timer_init(&self->worked, self->loop, host_on_worked, self);
    ml_timer_init(&self->ask_again, self->loop, host_ask_version, self);
    host_catch_signals(self, host_on_signal);
    self->metrics = ml_metrics_new();
    if (host_open_outbound(self) < 0)
        return host_fail(self, MOONLOOP_EXIT_USAGE);
    if (host_open_transport(self) < 0)
        return host_fail(self, MOONLOOP_EXIT_UNREACHABLE);
    host_open_marker(self);
    host_make_operator(self);
    if (host_open_endpoints(self) < 0 || host_open_webhooks(self) < 0 ||
        host_open_reviews(self) < 0)
        return host_fail(self, MOONLOOP_EXIT_BAD);
    host_open_inspect(self);
    host_lock_down(self);
    host_start_watchdog(self);
    return 0;
}

/* The lost Lease has its own line. */
static void host_log_error(struct moonloop *self)
{
    if (self->exit_code != MOONLOOP_EXIT_OK && self->exit_code != MOONLOOP_EXIT_LOST_LEASE)
        ml_error(&self->log, "host", "ending because of an error", ML_ERR_FIELDS(&self->err),
                 ML_I("exit_code", self->exit_code));
}

int moonloop_run(struct moonloop *self)
{
    ml_assert(self->loop == NULL);
    if (host_build(self) != 0) {
        host_log_error(self);
        return self->exit_code;
    }
    self->woken = ml_loop_watch_fd(self->loop, self->wake, host_on_wake, self);
    host_connect(self);
    if (self->marker)
        ml_timer_start(&self->worked, ML_CRASH_MARKER_WORKED_NS);
    ml_loop_run(self->loop);
    if (self->marker && self->exit_code == MOONLOOP_EXIT_OK)
        ml_crash_marker_forgive(self->marker);
    ml_watchdog_free(ml_take(&self->watchdog)); /* what follows may take long */
    host_log_error(self);
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
    host_stop_connecting(self);
    ml_watchdog_free(self->watchdog);
    ml_inspect_server_free(self->inspect);
    ml_inspect_server_free(self->reviews);
    ml_client_free(self->review_client);
    ml_endpoints_free(self->endpoints);
    ml_webhooks_free(self->webhooks);
    ml_operator_free(self->operator);
    ml_outbound_free(self->outbound);
    free(self->identity);
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
    ml_close_fd(&self->wake);
    free(self);
}
