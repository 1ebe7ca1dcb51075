/* moonloop run: the operator. */
#include "base/escape.h"
#include "base/log.h"
#include "cli/commands.h"
#include "cli/options.h"
#include "include/moonloop.h"

#include <stdio.h>
#include <unistd.h>

static void print_help(const struct ml_option *options, size_t count)
{
    printf("Usage: moonloop run --scripts PATH [OPTIONS]\n\n"
           "Runs the controllers of the given scripts against an API server until SIGTERM or\n"
           "SIGINT. A script that changes goes live within a second; one that is broken is\n"
           "refused and the last good version keeps running.\n\nOptions:\n");
    ml_options_help(options, count);
    printf("\nExample:\n  moonloop run --scripts reconcilers/ --log-format text\n");
}

static int run_host(const struct moonloop_opts *opts)
{
    struct moonloop *host = moonloop_new(opts);
    int code = moonloop_run(host);
    if (code != MOONLOOP_EXIT_OK)
        ml_print_line(stderr, "moonloop run: %s", moonloop_error(host));
    moonloop_free(host);
    return code;
}

/* In the format that is asked for, wherever the mistake is. */
static int refuse_usage(int argc, char **argv, const struct ml_err *err)
{
    enum ml_log_format format = ML_LOG_JSON;
    struct ml_log log;
    for (int i = 1; i < argc; i++) {
        const char *value = strcmp(argv[i], "--log-format") == 0 && i + 1 < argc ? argv[i + 1]
                            : strncmp(argv[i], "--log-format=", 13) == 0         ? argv[i] + 13
                                                                                 : NULL;
        if (value && !ml_log_format_parse(value, &format))
            format = ML_LOG_JSON;
    }
    ml_log_init(&log, ml_clock_real(), STDOUT_FILENO, format, ML_LOG_INFO);
    ml_error(&log, "host", "ending because of an error", ML_ERR_FIELDS(err),
             ML_I("exit_code", MOONLOOP_EXIT_USAGE));
    return ml_command_usage_error("run", err);
}

int ml_command_run(int argc, char **argv)
{
    struct moonloop_opts opts = MOONLOOP_OPTS_INIT;
    bool shard = false, leader_elect = false, watch_list = false, unconfined = false;
    struct ml_option_list scripts = {0}, configmaps = {0}, namespaces = {0}, allowed = {0};
    const struct ml_option options[] = {
        {"--scripts", "PATH", "a script, a folder of scripts, or a mounted ConfigMap (repeat)",
         ML_OPTION_LIST, &scripts},
        {"--scripts-configmap", "NS/NAME",
         "a ConfigMap of scripts, watched through the API (repeat)", ML_OPTION_LIST, &configmaps},
        {"--namespace", "NS", "watch this namespace only (repeat); default: all", ML_OPTION_LIST,
         &namespaces},
        {"--watch-list", NULL, "fill caches by streaming lists where the server has them",
         ML_OPTION_FLAG, &watch_list},
        {"--kubeconfig", "FILE", "default: $KUBECONFIG, in-cluster, ~/.kube/config", ML_OPTION_TEXT,
         &opts.kubeconfig},
        {"--context", "NAME", "of the kubeconfig; default: its current-context", ML_OPTION_TEXT,
         &opts.context},
        {"--metrics-bind-address", "HOST:PORT", "serve /metrics; 0: do not (default)",
         ML_OPTION_TEXT, &opts.metrics_bind_address},
        {"--health-probe-bind-address", "HOST:PORT",
         "serve /healthz and /readyz; 0: do not (default)", ML_OPTION_TEXT,
         &opts.health_probe_bind_address},
        {"--webhook-bind-address", "HOST:PORT",
         "serve the scripts' webhooks over TLS; 0: do not (default)", ML_OPTION_TEXT,
         &opts.webhook_bind_address},
        {"--webhook-cert-dir", "DIR",
         "tls.crt and tls.key of webhooks, as cert-manager mounts them; default: the host makes "
         "its own",
         ML_OPTION_TEXT, &opts.webhook_cert_dir},
        {"--webhook-cert-secret", "NAME",
         "the Secret of its own certificate; default moonloop-webhook-cert", ML_OPTION_TEXT,
         &opts.webhook_cert_secret},
        {"--webhook-cert-seconds", "N", "how long its own certificate is good for; default a year",
         ML_OPTION_SECONDS, &opts.webhook_cert_seconds},
        {"--webhook-namespace", "NS", "of that Secret and of the Service; default: the pod's",
         ML_OPTION_TEXT, &opts.webhook_namespace},
        {"--webhook-service", "NAME", "the Service of webhooks; default moonloop-webhook",
         ML_OPTION_TEXT, &opts.webhook_service},
        {"--webhook-url", "URL",
         "https://HOST:PORT by which the API server calls webhooks, instead of a Service",
         ML_OPTION_TEXT, &opts.webhook_url},
        {"--leader-elect", NULL, "several replicas, of which the holder of a Lease works",
         ML_OPTION_FLAG, &leader_elect},
        {"--shard", NULL, "several replicas that share the objects, each with a Lease of its own",
         ML_OPTION_FLAG, &shard},
        {"--leader-election-id", "NAME", "of the Lease, or of the shard group; default moonloop",
         ML_OPTION_TEXT, &opts.leader_election_id},
        {"--leader-election-namespace", "NS",
         "of the Lease; default: the pod's, else the kubeconfig's", ML_OPTION_TEXT,
         &opts.leader_election_namespace},
        {"--leader-election-lease-duration", "TIME",
         "others wait so long for a silent leader; default 15s", ML_OPTION_DURATION,
         &opts.leader_election_lease_duration_ms},
        {"--leader-election-renew-deadline", "TIME",
         "a leader that could not renew so long ends, with exit code 4; default 10s",
         ML_OPTION_DURATION, &opts.leader_election_renew_deadline_ms},
        {"--leader-election-retry-period", "TIME", "between two attempts; default 2s",
         ML_OPTION_DURATION, &opts.leader_election_retry_period_ms},
        {"--allow-http", "ORIGIN",
         "scripts may ask it, as in https://billing.example.com (repeat); default: nobody",
         ML_OPTION_LIST, &allowed},
        {"--http-proxy", "URL", "for these requests; default: HTTPS_PROXY, HTTP_PROXY, NO_PROXY",
         ML_OPTION_TEXT, &opts.http_proxy},
        {"--http-ca-file", "FILE", "authority of these servers; default: the system's",
         ML_OPTION_TEXT, &opts.http_ca_file},
        {"--script-memory", "BYTES", "limit of one script's memory; default 16Mi", ML_OPTION_SIZE,
         &opts.script_memory_max},
        {"--state-dir", "DIR", "remember here in which script the process died", ML_OPTION_TEXT,
         &opts.state_dir},
        {"--drain-seconds", "N", "for work under way at the end; default 25", ML_OPTION_SECONDS,
         &opts.drain_seconds},
        {"--unconfined", NULL, "keep the rights of a normal process, to look at it with a debugger",
         ML_OPTION_FLAG, &unconfined},
        {"--log-format", "json|text", "default json", ML_OPTION_TEXT, &opts.log_format},
        {"--log-level", "LEVEL", "debug, info (default), warn, error", ML_OPTION_TEXT,
         &opts.log_level},
    };
    struct ml_err err = ML_ERR_INIT;
    bool help = false;
    if (ml_options_parse(options, ML_COUNT(options), argc, argv, NULL, &help, &err) < 0)
        return refuse_usage(argc, argv, &err);
    if (help) {
        print_help(options, ML_COUNT(options));
        return MOONLOOP_EXIT_OK;
    }
    opts.scripts = scripts.values;
    opts.scripts_configmaps = configmaps.values;
    opts.namespaces = namespaces.values;
    opts.allow_http = allowed.values;
    opts.handle_signals = 1;
    opts.lock_down = !unconfined;
    opts.leader_elect = leader_elect;
    opts.shard = shard;
    opts.watch_list = watch_list;
    return run_host(&opts);
}
