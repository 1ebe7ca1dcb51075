#include "run/host_opts.h"

#include "base/base.h"

static const char *const *own_list(const char *const *list)
{
    size_t count = 0;
    while (list && list[count])
        count++;
    const char **copy = ml_zalloc((count + 1) * sizeof *copy);
    for (size_t i = 0; i < count; i++)
        copy[i] = ml_strdup(list[i]);
    return copy;
}

static void free_list(const char *const *list)
{
    for (size_t i = 0; list && list[i]; i++)
        free((char *)list[i]);
    free((void *)list);
}

void ml_host_opts_own(struct moonloop_opts *opts)
{
    opts->kubeconfig = ml_strdup(opts->kubeconfig);
    opts->context = ml_strdup(opts->context);
    opts->metrics_bind_address = ml_strdup(opts->metrics_bind_address);
    opts->health_probe_bind_address = ml_strdup(opts->health_probe_bind_address);
    opts->log_format = ml_strdup(opts->log_format);
    opts->log_level = ml_strdup(opts->log_level);
    opts->leader_election_id = ml_strdup(opts->leader_election_id);
    opts->leader_election_namespace = ml_strdup(opts->leader_election_namespace);
    opts->namespaces = own_list(opts->namespaces);
    opts->scripts = own_list(opts->scripts);
    opts->scripts_configmaps = own_list(opts->scripts_configmaps);
}

void ml_host_opts_free(struct moonloop_opts *opts)
{
    free((char *)opts->kubeconfig);
    free((char *)opts->context);
    free((char *)opts->metrics_bind_address);
    free((char *)opts->health_probe_bind_address);
    free((char *)opts->log_format);
    free((char *)opts->log_level);
    free((char *)opts->leader_election_id);
    free((char *)opts->leader_election_namespace);
    free_list(opts->namespaces);
    free_list(opts->scripts);
    free_list(opts->scripts_configmaps);
}
