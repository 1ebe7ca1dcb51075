/* moonloop run: the operator. */
#include "base/escape.h"
#include "base/log.h"
#include "cli/command.h"
#include "include/moonloop.h"

#include <stdio.h>
#include <unistd.h>

struct run {
    struct moonloop_opts opts;
    struct moonloop_rollout_limits limits;
    struct ml_option_list scripts, configmaps, namespaces, allowed;
    bool shard, leader_elect, watch_list, unconfined;
};

static const struct ml_option options[] = {
    {"--scripts", "PATH", "a script, a folder of scripts, or a mounted ConfigMap (repeat)",
     ML_OPTION_LIST, offsetof(struct run, scripts)},
    {"--scripts-configmap", "NS/NAME", "a ConfigMap of scripts, watched through the API (repeat)",
     ML_OPTION_LIST, offsetof(struct run, configmaps)},
    {"--namespace", "NS", "watch this namespace only (repeat); default: all", ML_OPTION_LIST,
     offsetof(struct run, namespaces)},
    {"--watch-list", NULL, "fill caches by streaming lists where the server has them",
     ML_OPTION_FLAG, offsetof(struct run, watch_list)},
    {"--kubeconfig", "FILE", "default: $KUBECONFIG, in-cluster, ~/.kube/config", ML_OPTION_TEXT,
     offsetof(struct run, opts.kubeconfig)},
    {"--context", "NAME", "of the kubeconfig; default: its current-context", ML_OPTION_TEXT,
     offsetof(struct run, opts.context)},
    {"--metrics-bind-address", "HOST:PORT", "serve /metrics; 0: do not (default)", ML_OPTION_TEXT,
     offsetof(struct run, opts.metrics_bind_address)},
    {"--health-probe-bind-address", "HOST:PORT", "serve /healthz and /readyz; 0: do not (default)",
     ML_OPTION_TEXT, offsetof(struct run, opts.health_probe_bind_address)},
    {"--inspect-bind-address", "HOST:PORT",
     "answer moonloop status, top, why and trace by port-forward, on loopback; 0: do not (default)",
     ML_OPTION_TEXT, offsetof(struct run, opts.inspect_bind_address)},
    {"--webhook-bind-address", "HOST:PORT",
     "serve the scripts' webhooks over TLS; 0: do not (default)", ML_OPTION_TEXT,
     offsetof(struct run, opts.webhook_bind_address)},
    {"--webhook-cert-dir", "DIR",
     "tls.crt and tls.key of webhooks, as cert-manager mounts them; default: the host makes "
     "its own",
     ML_OPTION_TEXT, offsetof(struct run, opts.webhook_cert_dir)},
    {"--webhook-cert-secret", "NAME",
     "the Secret of its own certificate; default moonloop-webhook-cert", ML_OPTION_TEXT,
     offsetof(struct run, opts.webhook_cert_secret)},
    {"--webhook-cert-seconds", "N", "how long its own certificate is good for; default a year",
     ML_OPTION_SECONDS, offsetof(struct run, opts.webhook_cert_seconds)},
    {"--webhook-namespace", "NS", "of that Secret and of the Service; default: the pod's",
     ML_OPTION_TEXT, offsetof(struct run, opts.webhook_namespace)},
    {"--webhook-service", "NAME", "the Service of webhooks; default moonloop-webhook",
     ML_OPTION_TEXT, offsetof(struct run, opts.webhook_service)},
    {"--webhook-url", "URL",
     "https://HOST:PORT by which the API server calls webhooks, instead of a Service",
     ML_OPTION_TEXT, offsetof(struct run, opts.webhook_url)},
    {"--leader-elect", NULL, "several replicas, of which the holder of a Lease works",
     ML_OPTION_FLAG, offsetof(struct run, leader_elect)},
    {"--shard", NULL, "several replicas that share the objects, each with a Lease of its own",
     ML_OPTION_FLAG, offsetof(struct run, shard)},
    {"--leader-election-id", "NAME", "of the Lease, or of the shard group; default moonloop",
     ML_OPTION_TEXT, offsetof(struct run, opts.leader_election_id)},
    {"--leader-election-namespace", "NS", "of the Lease; default: the pod's, else the kubeconfig's",
     ML_OPTION_TEXT, offsetof(struct run, opts.leader_election_namespace)},
    {"--leader-election-lease-duration", "TIME",
     "others wait so long for a silent leader; default 15s", ML_OPTION_DURATION,
     offsetof(struct run, opts.leader_election_lease_duration_ms)},
    {"--leader-election-renew-deadline", "TIME",
     "a leader that could not renew so long ends, with exit code 4; default 10s",
     ML_OPTION_DURATION, offsetof(struct run, opts.leader_election_renew_deadline_ms)},
    {"--leader-election-retry-period", "TIME", "between two attempts; default 2s",
     ML_OPTION_DURATION, offsetof(struct run, opts.leader_election_retry_period_ms)},
    {"--allow-http", "ORIGIN",
     "scripts may ask it, or all below https://*.example.com (repeat); default: nobody",
     ML_OPTION_LIST, offsetof(struct run, allowed)},
    {"--http-proxy", "URL", "for these requests; default: HTTPS_PROXY, HTTP_PROXY, NO_PROXY",
     ML_OPTION_TEXT, offsetof(struct run, opts.http_proxy)},
    {"--http-ca-file", "FILE", "authority of these servers; default: the system's", ML_OPTION_TEXT,
     offsetof(struct run, opts.http_ca_file)},
    {"--rollout", "guarded|canary|plan|immediate",
     "new versions that would do harm wait for approval; default guarded", ML_OPTION_TEXT,
     offsetof(struct run, opts.rollout)},
    {"--rollout-max-deletes", "N", "hold what would delete more objects than this; default 10",
     ML_OPTION_COUNT, offsetof(struct run, limits.max_deletes)},
    {"--rollout-max-deletes-percent", "N",
     "and more in a hundred of what its objects own; default 5", ML_OPTION_COUNT,
     offsetof(struct run, limits.max_deletes_percent)},
    {"--rollout-max-failures-percent", "N",
     "refuse what fails for more in a hundred objects; default 20", ML_OPTION_COUNT,
     offsetof(struct run, limits.max_failures_percent)},
    {"--rollout-sample", "N", "of more objects than this, try so many; default 500",
     ML_OPTION_COUNT, offsetof(struct run, limits.sample)},
    {"--rollout-settle-seconds", "N",
     "a new version has to do no harm for so long, in each step of a canary; default 10",
     ML_OPTION_COUNT, offsetof(struct run, limits.settle_seconds)},
    {"--script-memory", "BYTES", "limit of one script's memory; default 16Mi", ML_OPTION_SIZE,
     offsetof(struct run, opts.script_memory_max)},
    {"--state-dir", "DIR", "remember here in which script the process died", ML_OPTION_TEXT,
     offsetof(struct run, opts.state_dir)},
    {"--drain-seconds", "N", "for work under way at the end; default 25", ML_OPTION_SECONDS,
     offsetof(struct run, opts.drain_seconds)},
    {"--unconfined", NULL, "keep the rights of a normal process, to look at it with a debugger",
     ML_OPTION_FLAG, offsetof(struct run, unconfined)},
    {"--log-format", "json|text", "default json", ML_OPTION_TEXT,
     offsetof(struct run, opts.log_format)},
    {"--log-level", "LEVEL", "debug, info (default), warn, error", ML_OPTION_TEXT,
     offsetof(struct run, opts.log_level)},
};

static int run_host(const struct moonloop_opts *opts)
{
    struct moonloop *host = moonloop_new(opts);
    int code = moonloop_run(host);
    if (code != MOONLOOP_EXIT_OK)
        ml_print_line(stderr, "moonloop run: %s", moonloop_error(host));
    moonloop_free(host);
    return code;
}

/* Lists and flags, which moonloop_opts holds in another form. */
static void complete_opts(struct run *run)
{
    struct moonloop_opts *opts = &run->opts;
    opts->scripts = run->scripts.values;
    opts->scripts_configmaps = run->configmaps.values;
    opts->namespaces = run->namespaces.values;
    opts->allow_http = run->allowed.values;
    opts->handle_signals = 1;
    opts->lock_down = !run->unconfined;
    opts->leader_elect = run->leader_elect;
    opts->shard = run->shard;
    opts->watch_list = run->watch_list;
    opts->rollout_limits = &run->limits;
}

int ml_run_run(void *values, struct ml_tester *tester)
{
    struct run *run = values;
    complete_opts(run);
    run->opts.tester = tester;
    return run_host(&run->opts);
}

static int run(void *values, char **argv, struct ml_err *err)
{
    (void)argv, (void)err;
    return ml_run_run(values, NULL);
}

/* The format of the log that a command line asks for, wherever its mistake is. */
static enum ml_log_format find_log_format(char **argv)
{
    enum ml_log_format format = ML_LOG_JSON;
    for (; *argv; argv++) {
        const char *value = strcmp(*argv, "--log-format") == 0         ? argv[1]
                            : strncmp(*argv, "--log-format=", 13) == 0 ? *argv + 13
                                                                       : NULL;
        if (value && !ml_log_format_parse(value, &format))
            format = ML_LOG_JSON;
    }
    return format;
}

/* A reader of the log alone sees the mistake, too. */
static void log_wrong_option(char **argv, const struct ml_err *err)
{
    struct ml_log log;
    ml_log_init(&log, ml_clock_real(), STDOUT_FILENO, find_log_format(argv), ML_LOG_INFO);
    ml_error(&log, "host", "ending because of an error", ML_ERR_FIELDS(err),
             ML_I("exit_code", MOONLOOP_EXIT_USAGE));
}

static const struct run defaults = {.limits = MOONLOOP_ROLLOUT_LIMITS_INIT};

const struct ml_command ml_command_run = {
    .name = "run",
    .usage = "--scripts PATH [OPTIONS]",
    .summary = "run the operator: watch, reconcile, reload scripts as they change",
    .description =
        "Runs the controllers of the given scripts against an API server until SIGTERM or\n"
        "SIGINT. A script that changes goes live within a second; one that is broken is\n"
        "refused and the last good version keeps running.",
    .example = "--scripts reconcilers/ --log-format text",
    .options = options,
    .option_count = ML_COUNT(options),
    .words = ML_NO_WORDS,
    .values_size = sizeof(struct run),
    .defaults = &defaults,
    .run = run,
    .on_wrong_option = log_wrong_option,
};
