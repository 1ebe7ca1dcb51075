/* Called by moonloop.c. */
#include "operator/moonloop_opts.h"

#include "operator/source.h"
#include "operator/webhook_pair.h"
#include "operator/webhooks.h"

static void own_text(const char **text)
{
    *text = ml_strdup(*text);
}

static void free_text(const char **text)
{
    free((char *)*text);
}

static void own_list(const char *const **list)
{
    size_t count = 0;
    while (*list && (*list)[count])
        count++;
    const char **copy = ml_zalloc((count + 1) * sizeof *copy);
    for (size_t i = 0; i < count; i++)
        copy[i] = ml_strdup((*list)[i]);
    *list = copy;
}

static void free_list(const char *const **list)
{
    for (size_t i = 0; (*list)[i]; i++)
        free((char *)(*list)[i]);
    free((void *)*list);
}

static void opts_each(struct moonloop_opts *opts, void (*text)(const char **text),
                      void (*list)(const char *const **list))
{
    const char **const texts[] = {&opts->kubeconfig,
                                  &opts->context,
                                  &opts->metrics_bind_address,
                                  &opts->health_probe_bind_address,
                                  &opts->webhook_bind_address,
                                  &opts->webhook_cert_dir,
                                  &opts->webhook_url,
                                  &opts->webhook_namespace,
                                  &opts->webhook_service,
                                  &opts->webhook_cert_secret,
                                  &opts->state_dir,
                                  &opts->log_format,
                                  &opts->log_level,
                                  &opts->leader_election_id,
                                  &opts->leader_election_namespace,
                                  &opts->http_proxy,
                                  &opts->http_ca_file};
    const char *const **const lists[] = {&opts->namespaces, &opts->scripts,
                                         &opts->scripts_configmaps, &opts->allow_http};
    for (size_t i = 0; i < ML_COUNT(texts); i++)
        text(texts[i]);
    for (size_t i = 0; i < ML_COUNT(lists); i++)
        list(lists[i]);
}

void moonloop_opts_own(struct moonloop_opts *opts)
{
    opts_each(opts, own_text, own_list);
}

void moonloop_opts_fini(struct moonloop_opts *opts)
{
    opts_each(opts, free_text, free_list);
}

bool moonloop_opts_is_replica(const struct moonloop_opts *opts)
{
    return opts->leader_elect || opts->shard;
}

const char *moonloop_opts_lease_name(const struct moonloop_opts *opts)
{
    return opts->leader_election_id ? opts->leader_election_id : "moonloop";
}

struct ml_lease_times moonloop_opts_lease_times(const struct moonloop_opts *opts)
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
    const char *ns = opts->leader_election_namespace, *name = moonloop_opts_lease_name(opts);
    const struct ml_lease_times times = moonloop_opts_lease_times(opts);
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

int moonloop_opts_check(const struct moonloop_opts *opts, struct ml_err *err)
{
    const char *const *configmaps = opts->scripts_configmaps;
    if (!opts->scripts[0] && !configmaps[0])
        return ml_err_set(err, ML_EINVALID,
                          "no scripts: give --scripts PATH or --scripts-configmap NAMESPACE/NAME");
    for (size_t i = 0; configmaps[i]; i++)
        if (ml_source_configmap_check(configmaps[i], err) < 0)
            return err->kind;
    int r = opts_check_webhooks(opts, err);
    return r == 0 && moonloop_opts_is_replica(opts) ? opts_check_replica(opts, err) : r;
}
