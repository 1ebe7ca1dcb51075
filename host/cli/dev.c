/* moonloop dev: a cluster on a laptop. */
#include "cluster/dev.h"

#include "base/escape.h"
#include "cli/commands.h"
#include "cli/options.h"
#include "include/moonloop.h"

#include <stdio.h>

static void print_help(const struct ml_option *options, size_t count)
{
    printf("Usage: moonloop dev [OPTIONS]\n\n"
           "Runs an API server, the operator with your scripts, and pods as local processes, all\n"
           "in this one process and on loopback only. Scripts and manifests are taken again when\n"
           "you save them. Ctrl-C ends it and leaves nothing behind. Pods use the programs of\n"
           "this machine, with your rights, in a file system of their own.\n\nOptions:\n");
    ml_options_help(options, count);
    printf(
        "\nExample:\n  moonloop dev --scripts reconcilers/ --apply crds/ --apply crds/samples/\n");
}

int ml_command_dev(int argc, char **argv)
{
    struct ml_dev_opts opts = {0};
    struct ml_option_list scripts = {0}, manifests = {0}, namespaces = {0}, images = {0};
    struct ml_option_list allowed = {0};
    const struct ml_option options[] = {
        {"--scripts", "PATH", "a script or a folder of scripts (repeat)", ML_OPTION_LIST, &scripts},
        {"--apply", "PATH", "a manifest or a folder of manifests to apply (repeat)", ML_OPTION_LIST,
         &manifests},
        {"--until-idle", NULL, "end when nothing is left to do and nothing is due within a minute",
         ML_OPTION_FLAG, &opts.until_idle},
        {"--pods", "HOW", "process (default), fake: succeed at once, none", ML_OPTION_TEXT,
         &opts.pods},
        {"--max-pods", "N", "how many the node takes at once; default 110", ML_OPTION_TEXT,
         &opts.max_pods},
        {"--image", "NAME=PROGRAM", "what an image runs, as in app='bin/app --fast' (repeat)",
         ML_OPTION_LIST, &images},
        {"--pod-network", "WHICH",
         "own (default): addresses, names and Services of their own; host: this machine's",
         ML_OPTION_TEXT, &opts.pod_network},
        {"--allow-http", "ORIGIN",
         "scripts may ask it, as in https://billing.example.com (repeat); default: nobody",
         ML_OPTION_LIST, &allowed},
        {"--http-proxy", "URL", "for these requests; default: HTTPS_PROXY, HTTP_PROXY, NO_PROXY",
         ML_OPTION_TEXT, &opts.http_proxy},
        {"--http-ca-file", "FILE", "authority of these servers; default: the system's",
         ML_OPTION_TEXT, &opts.http_ca_file},
        {"--data", "DIR", "keep the cluster's state in this folder", ML_OPTION_TEXT, &opts.data},
        {"--namespace", "NS", "the operator watches this namespace only (repeat)", ML_OPTION_LIST,
         &namespaces},
        {"--bind-address", "HOST:PORT", "of the API server; default 127.0.0.1:0", ML_OPTION_TEXT,
         &opts.bind_address},
        {"--write-kubeconfig", "FILE", "default: in a folder of its own", ML_OPTION_TEXT,
         &opts.kubeconfig},
        {"--authorization-mode", "MODE", "AlwaysAllow (default) or RBAC", ML_OPTION_TEXT,
         &opts.authorization},
        {"--audit-log", "FILE", "a line of JSON for each request", ML_OPTION_TEXT, &opts.audit_log},
        {"--log-level", "LEVEL", "debug, info (default), warn, error", ML_OPTION_TEXT,
         &opts.log_level},
    };
    struct ml_err err = ML_ERR_INIT;
    bool help = false;
    if (ml_options_parse(options, ML_COUNT(options), argc, argv, NULL, &help, &err) < 0)
        return ml_command_usage_error("dev", &err);
    if (help) {
        print_help(options, ML_COUNT(options));
        return MOONLOOP_EXIT_OK;
    }
    opts.scripts = scripts.values;
    opts.manifests = manifests.values;
    opts.namespaces = namespaces.values;
    opts.images = images.values;
    opts.allow_http = allowed.values;
    int code = ml_dev_run(&opts, &err);
    if (code != MOONLOOP_EXIT_OK)
        ml_print_line(stderr, "moonloop dev: %s", err.message);
    return code;
}
