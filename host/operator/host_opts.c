#include "operator/host_opts.h"

#include "kube/kind.h"
#include "operator/source.h"

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
    opts->state_dir = ml_strdup(opts->state_dir);
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
    free((char *)opts->state_dir);
    free((char *)opts->log_format);
    free((char *)opts->log_level);
    free((char *)opts->leader_election_id);
    free((char *)opts->leader_election_namespace);
    free_list(opts->namespaces);
    free_list(opts->scripts);
    free_list(opts->scripts_configmaps);
}

/* ---- what they mean ---- */

bool ml_host_opts_is_replica(const struct moonloop_opts *opts)
{
    return opts->leader_elect || opts->shard;
}

const char *ml_host_opts_lease_name(const struct moonloop_opts *opts)
{
    return opts->leader_election_id ? opts->leader_election_id : "moonloop";
}

struct ml_lease_times ml_host_opts_lease_times(const struct moonloop_opts *opts)
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

/* ---- what is wrong with them ---- */

int ml_host_opts_log(const struct moonloop_opts *opts, enum ml_log_format *out_format,
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

static int check_sources(const struct moonloop_opts *opts, struct ml_err *err)
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

static int check_replica(const struct moonloop_opts *opts, struct ml_err *err)
{
    const char *ns = opts->leader_election_namespace, *name = ml_host_opts_lease_name(opts);
    const struct ml_lease_times times = ml_host_opts_lease_times(opts);
    if (!ml_host_opts_is_replica(opts))
        return 0;
    if (opts->leader_elect && opts->shard)
        return ml_err_set(err, ML_EINVALID,
                          "--shard and --leader-elect exclude each other: with the first all "
                          "replicas work, with the second one does; leave one out");
    if (!ml_name_valid(ml_str_of(name)))
        return ml_err_set(err, ML_EINVALID, "--leader-election-id %s: no name of an object", name);
    if (ns && !ml_name_valid(ml_str_of(ns)))
        return ml_err_set(err, ML_EINVALID,
                          "--leader-election-namespace %s: no name of a namespace", ns);
    return ml_lease_times_check(&times, err);
}

int ml_host_opts_check(const struct moonloop_opts *opts, struct ml_err *err)
{
    int r = check_sources(opts, err);
    return r < 0 ? r : check_replica(opts, err);
}
