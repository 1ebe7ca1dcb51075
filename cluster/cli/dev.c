/* moonloop dev: a cluster on a laptop. */
#include "cluster/host/dev.h"

#include "cluster/cli/commands.h"

struct dev {
    struct ml_dev_opts opts;
    struct ml_option_list scripts, manifests, namespaces, images, allowed, logs;
};

static const struct ml_option options[] = {
    {"--scripts", "PATH", "a script or a folder of scripts (repeat)", ML_OPTION_LIST,
     offsetof(struct dev, scripts)},
    {"--apply", "PATH", "a manifest or a folder of manifests to apply (repeat)", ML_OPTION_LIST,
     offsetof(struct dev, manifests)},
    {"--until-idle", NULL, "end when nothing is left to do and nothing is due within a minute",
     ML_OPTION_FLAG, offsetof(struct dev, opts.until_idle)},
    {"--controllers", "WHICH",
     "all (default), none: an API server alone, as envtest has it, with no pods", ML_OPTION_TEXT,
     offsetof(struct dev, opts.controllers)},
    {"--pods", "HOW", "process (default), fake: succeed at once, none", ML_OPTION_TEXT,
     offsetof(struct dev, opts.pods)},
    {"--max-pods", "N", "how many the node takes at once; default 110", ML_OPTION_TEXT,
     offsetof(struct dev, opts.max_pods)},
    {"--image", "NAME=PROGRAM[:PATH]", "program of an image, as in app='bin/app --fast' (repeat)",
     ML_OPTION_LIST, offsetof(struct dev, images)},
    {"--pod-network", "WHICH",
     "own (default): addresses, names and Services of their own; host: this machine's",
     ML_OPTION_TEXT, offsetof(struct dev, opts.pod_network)},
    {"--allow-http", "ORIGIN",
     "scripts may ask it, or all below https://*.example.com (repeat); default: nobody",
     ML_OPTION_LIST, offsetof(struct dev, allowed)},
    {"--http-proxy", "URL", "for these requests; default: HTTPS_PROXY, HTTP_PROXY, NO_PROXY",
     ML_OPTION_TEXT, offsetof(struct dev, opts.http_proxy)},
    {"--http-ca-file", "FILE", "authority of these servers; default: the system's", ML_OPTION_TEXT,
     offsetof(struct dev, opts.http_ca_file)},
    {"--data", "DIR", "keep the cluster's state in this folder", ML_OPTION_TEXT,
     offsetof(struct dev, opts.data)},
    {"--namespace", "NS", "the operator watches this namespace only (repeat)", ML_OPTION_LIST,
     offsetof(struct dev, namespaces)},
    {"--bind-address", "HOST:PORT", "of the API server; default 127.0.0.1:0", ML_OPTION_TEXT,
     offsetof(struct dev, opts.bind_address)},
    {"--write-kubeconfig", "FILE", "default: in a folder of its own", ML_OPTION_TEXT,
     offsetof(struct dev, opts.kubeconfig)},
    {"--authorization-mode", "MODE", "AlwaysAllow (default) or RBAC", ML_OPTION_TEXT,
     offsetof(struct dev, opts.authorization)},
    {"--audit-log", "FILE", "a line of JSON for each request", ML_OPTION_TEXT,
     offsetof(struct dev, opts.audit_log)},
    {"--metrics-bind-address", "HOST:PORT",
     "serve /metrics of the operator, on loopback; 0: do not (default)", ML_OPTION_TEXT,
     offsetof(struct dev, opts.metrics_address)},
    {"--logs", "NAME",
     "print all output of pods whose names begin so, or of all; none: of no others (repeat); "
     "default: the first lines of each container",
     ML_OPTION_LIST, offsetof(struct dev, logs)},
    {"--log-level", "LEVEL", "debug, info (default), warn, error", ML_OPTION_TEXT,
     offsetof(struct dev, opts.log_level)},
};

static int run(void *values, char **argv, struct ml_err *err)
{
    struct dev *dev = values;
    (void)argv;
    dev->opts.scripts = dev->scripts.values;
    dev->opts.manifests = dev->manifests.values;
    dev->opts.namespaces = dev->namespaces.values;
    dev->opts.images = dev->images.values;
    dev->opts.allow_http = dev->allowed.values;
    dev->opts.logs = dev->logs.values;
    return ml_dev_run(&dev->opts, err);
}

const struct ml_command ml_command_dev = {
    .name = "dev",
    .usage = "[OPTIONS]",
    .summary = "a cluster on a laptop: API server, operator and pods in one process",
    .description =
        "Runs an API server, the operator with your scripts, and pods as local processes, all\n"
        "in this one process and on loopback only. Scripts and manifests are taken again when\n"
        "you save them. Ctrl-C ends it and leaves nothing behind. Pods use the programs of\n"
        "this machine, with your rights, in a file system of their own.",
    .example = "--scripts reconcilers/ --apply crds/ --apply crds/samples/",
    .options = options,
    .option_count = ML_COUNT(options),
    .words = ML_NO_WORDS,
    .values_size = sizeof(struct dev),
    .run = run,
};
