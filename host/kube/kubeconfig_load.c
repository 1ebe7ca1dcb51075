#include "kube/file.h"
#include "kube/kubeconfig_internal.h"

#include "base/wipe.h"

#define ACCOUNT_DIR "/var/run/secrets/kubernetes.io/serviceaccount"

static void free_config(struct ml_kubeconfig **config)
{
    ml_kubeconfig_free(*config);
}

struct files {
    struct ml_kubefile list[ML_KUBEFILES_MAX];
    size_t count;
};

static void files_fini(struct files *files)
{
    for (size_t i = 0; i < files->count; i++)
        ml_kubefile_fini(&files->list[i]);
}

static bool files_have(const struct files *files, const char *path)
{
    for (size_t i = 0; i < files->count; i++)
        if (strcmp(files->list[i].path, path) == 0)
            return true;
    return false;
}

static int files_add(struct files *files, const char *path, struct ml_err *err)
{
    if (files_have(files, path))
        return 0;
    if (files->count == ML_COUNT(files->list))
        return ml_err_set(err, ML_EINVALID, "KUBECONFIG names more than %d files",
                          ML_KUBEFILES_MAX);
    ML_AUTO(ml_wipe_buf) struct ml_buf text = {.len_max = ML_KUBEFILE_SIZE_MAX};
    if (ml_file_read(path, &text, err) < 0 ||
        ml_kubefile_parse(path, ml_buf_str(&text), &files->list[files->count], err) < 0)
        return err->kind;
    files->count++;
    return 0;
}

/* What is wrong with a file makes the configuration invalid, unless it may be missing. */
static int files_add_required(struct files *files, const char *path, struct ml_err *err)
{
    if (files_add(files, path, err) < 0)
        err->kind = ML_EINVALID;
    return err->kind;
}

static int files_add_optional(struct files *files, const char *path, struct ml_err *err)
{
    if (files_add(files, path, err) == ML_ENOT_FOUND)
        *err = ML_ERR_INIT;
    return err->kind ? (err->kind = ML_EINVALID) : 0;
}

static int files_add_list(struct files *files, const char *list, struct ml_err *err)
{
    for (struct ml_str rest = ml_str_of(list); rest.ptr;) {
        ML_AUTO_FREE char *path = ml_str_dup(ml_str_cut(&rest, ':'));
        if (*path && files_add_optional(files, path, err) < 0)
            return err->kind;
    }
    if (files->count == 0)
        return ml_err_set(err, ML_EINVALID,
                          "KUBECONFIG names no file that exists: %s; correct or unset it", list);
    return 0;
}

static int config_from_files(struct ml_kubeconfig *config, const struct files *files,
                             const struct ml_kubeconfig_opts *opts, struct ml_err *err)
{
    return ml_kubeconfig_resolve(config, files->list, files->count, opts->context, err);
}

/* rest.InClusterConfig. False: not in a pod, or in one without a token. */
static bool config_from_pod(struct ml_kubeconfig *config, const struct ml_kubeconfig_env *env)
{
    if (!env->service_host || !*env->service_host || !env->service_port || !*env->service_port)
        return false;
    struct ml_err err = ML_ERR_INIT;
    config->token_file = ml_asprintf("%s/token", env->account_dir);
    if (ml_kubeconfig_read_token(config, &err) < 0) {
        free(ml_take(&config->token_file));
        return false;
    }
    bool ipv6 = strchr(env->service_host, ':') != NULL;
    config->server = ml_asprintf(ipv6 ? "https://[%s]:%s" : "https://%s:%s", env->service_host,
                                 env->service_port);
    config->ca_file = ml_asprintf("%s/ca.crt", env->account_dir);
    ML_AUTO(ml_buf_fini) struct ml_buf ca = {.len_max = ML_KUBEFILE_SIZE_MAX};
    if (ml_file_read(config->ca_file, &ca, &err) == 0) /* otherwise the system's roots, for now */
        config->ca_pem = ml_buf_take(&ca);
    ML_AUTO_FREE char *ns_path = ml_asprintf("%s/namespace", env->account_dir);
    ML_AUTO(ml_buf_fini) struct ml_buf ns = {.len_max = ML_TOKEN_SIZE_MAX};
    if (ml_file_read(ns_path, &ns, &err) == 0 && ml_str_trim(ml_buf_str(&ns)).len > 0)
        config->ns = ml_str_dup(ml_str_trim(ml_buf_str(&ns)));
    config->source = ml_strdup("the pod's service account");
    return true;
}

static int config_from_home(struct ml_kubeconfig *config, struct files *files,
                            const struct ml_kubeconfig_opts *opts,
                            const struct ml_kubeconfig_env *env, struct ml_err *err)
{
    ML_AUTO_FREE char *path = ml_asprintf("%s/.kube/config",
                                          env->home && *env->home ? env->home : "");
    if (files_add_optional(files, path, err) < 0)
        return err->kind;
    if (files->count > 0)
        return config_from_files(config, files, opts, err);
    return ml_err_set(err, ML_ENOT_FOUND,
                      "no API server is configured: name a kubeconfig with --kubeconfig or "
                      "KUBECONFIG; there is no %s/token and no %s",
                      env->account_dir, path);
}

static int config_fill(struct ml_kubeconfig *config, const struct ml_kubeconfig_opts *opts,
                       const struct ml_kubeconfig_env *env, struct ml_err *err)
{
    ML_AUTO(files_fini) struct files files = {.count = 0};
    if (opts->path && *opts->path) {
        if (files_add_required(&files, opts->path, err) < 0)
            return err->kind;
        return config_from_files(config, &files, opts, err);
    }
    if (env->kubeconfig && *env->kubeconfig) {
        if (files_add_list(&files, env->kubeconfig, err) < 0)
            return err->kind;
        return config_from_files(config, &files, opts, err);
    }
    /* Who asks for a context means a kubeconfig, also inside a pod. */
    if (!opts->context && config_from_pod(config, env))
        return 0;
    return config_from_home(config, &files, opts, env, err);
}

int ml_kubeconfig_load_env(const struct ml_kubeconfig_opts *opts,
                           const struct ml_kubeconfig_env *env, struct ml_kubeconfig **out,
                           struct ml_err *err)
{
    ML_AUTO(free_config) struct ml_kubeconfig *config = ml_new(struct ml_kubeconfig);
    *err = ML_ERR_INIT;
    if (config_fill(config, opts, env, err) < 0)
        return err->kind;
    if (!config->ns)
        config->ns = ml_strdup("default");
    ml_kubeconfig_point_tls(config);
    *out = ml_take(&config);
    return 0;
}

int ml_kubeconfig_load(const struct ml_kubeconfig_opts *opts, struct ml_kubeconfig **out,
                       struct ml_err *err)
{
    const struct ml_kubeconfig_env env = {
        .kubeconfig = getenv("KUBECONFIG"),
        .home = getenv("HOME"),
        .service_host = getenv("KUBERNETES_SERVICE_HOST"),
        .service_port = getenv("KUBERNETES_SERVICE_PORT"),
        .account_dir = ACCOUNT_DIR,
    };
    return ml_kubeconfig_load_env(opts, &env, out, err);
}
