/* Finds the kubeconfig or the pod's service account, and takes from it how to reach the API server.
 * Called when moonloop starts; credentials.c reads changed files later. */
#include "kube/kubeconfig_internal.h"

#include "base/wipe.h"
#include "codec/json.h"

#include <strings.h>

#define ACCOUNT_DIR "/var/run/secrets/kubernetes.io/serviceaccount"

static struct ml_str pem_or_empty(const char *text)
{
    return text ? ml_str_of(text) : ML_STR("");
}

void ml_kubeconfig_point_tls(struct ml_kubeconfig *config)
{
    config->tls.ca_pem = pem_or_empty(config->ca_pem);
    config->tls.cert_pem = pem_or_empty(config->cert_pem);
    config->tls.key_pem = pem_or_empty(config->key_pem);
    config->tls.server_name = config->server_name;
    config->tls.proxy_url = config->proxy_url;
}

const char *ml_kubeconfig_server(const struct ml_kubeconfig *config)
{
    return config->server;
}

const char *ml_kubeconfig_namespace(const struct ml_kubeconfig *config)
{
    return config->ns;
}

const char *ml_kubeconfig_source(const struct ml_kubeconfig *config)
{
    return config->source;
}

bool ml_kubeconfig_insecure(const struct ml_kubeconfig *config)
{
    return config->tls.insecure;
}

size_t ml_kubeconfig_files(const struct ml_kubeconfig *config,
                           const char *out[ML_KUBECONFIG_FILES_MAX])
{
    const char *const files[] = {config->token_file, config->ca_file, config->cert_file,
                                 config->key_file};
    size_t count = 0;
    for (size_t i = 0; i < ML_COUNT(files); i++)
        if (files[i])
            out[count++] = files[i];
    return count;
}

bool ml_kubeconfig_runs_programs(const struct ml_kubeconfig *config)
{
    return config->exec != NULL;
}

void ml_kubeconfig_free(struct ml_kubeconfig *config)
{
    if (!config)
        return;
    char *const owned[] = {config->server,     config->ns,       config->source,
                           config->ca_pem,     config->cert_pem, config->server_name,
                           config->token_file, config->ca_file,  config->cert_file,
                           config->key_file};
    char *const secrets[] = {config->key_pem, config->proxy_url, config->authorization};
    for (size_t i = 0; i < ML_COUNT(owned); i++)
        free(owned[i]);
    for (size_t i = 0; i < ML_COUNT(secrets); i++)
        ml_wipe_free(secrets[i]);
    for (size_t i = 0; i < config->impersonation_count; i++) {
        free((char *)config->impersonation[i].name);
        free((char *)config->impersonation[i].value);
    }
    free(config->impersonation);
    ml_exec_config_free(config->exec);
    free(config);
}

/* ---- cluster and context ---- */

static int fill_server(struct ml_kubeconfig *config, const struct ml_kubeentry *cluster,
                       struct ml_err *err)
{
    if (ml_kubeentry_string(cluster, "server", &config->server, err) < 0)
        return err->kind;
    const char *server = config->server;
    if (!server)
        return ml_kubeentry_fail(cluster, err, "no server; add its URL, https://HOST:PORT");
    bool https = strncasecmp(server, "https://", 8) == 0;
    if (!https && strncasecmp(server, "http://", 7) != 0)
        return ml_kubeentry_fail(cluster, err, "server \"%s\" must start with https://", server);
    const char *host = server + (https ? 8 : 7);
    if (*host == '\0' || *host == '/' || strpbrk(host, "?#@ \\"))
        return ml_kubeentry_fail(cluster, err, "server \"%s\" is not a URL of a server", server);
    size_t len = strlen(server);
    while (config->server[len - 1] == '/')
        config->server[--len] = '\0';
    return 0;
}

/* The schemes of proxies that client-go supports. */
static int check_cluster_proxy(const struct ml_kubeconfig *config,
                               const struct ml_kubeentry *cluster, struct ml_err *err)
{
    static const char *const schemes[] = {"http://", "https://", "socks5://", "socks5h://"};
    if (!config->proxy_url)
        return 0;
    for (size_t i = 0; i < ML_COUNT(schemes); i++)
        if (strncasecmp(config->proxy_url, schemes[i], strlen(schemes[i])) == 0)
            return 0;
    return ml_kubeentry_fail(cluster, err,
                             "proxy-url must start with http://, https:// or socks5://");
}

static int fill_cluster_tls(struct ml_kubeconfig *config, const struct ml_kubeentry *cluster,
                            struct ml_err *err)
{
    bool insecure = false, uncompressed = false; /* we never ask for compressed answers */
    if (ml_kubeentry_pem(cluster, "certificate-authority", &config->ca_pem, &config->ca_file, err) <
            0 ||
        ml_kubeentry_bool(cluster, "insecure-skip-tls-verify", &insecure, err) < 0 ||
        ml_kubeentry_bool(cluster, "disable-compression", &uncompressed, err) < 0 ||
        ml_kubeentry_string(cluster, "tls-server-name", &config->server_name, err) < 0 ||
        ml_kubeentry_string(cluster, "proxy-url", &config->proxy_url, err) < 0)
        return err->kind;
    if (insecure && config->ca_pem)
        return ml_kubeentry_fail(cluster, err,
                                 "insecure-skip-tls-verify and certificate-authority exclude each "
                                 "other; remove one");
    config->tls.insecure = insecure;
    return check_cluster_proxy(config, cluster, err);
}

/* The entry that the context names under `section`. Where it does not exist, the error names the
 * context. */
static int find_entry_of_context(const struct ml_kubeentry *context,
                                 const struct ml_kubefile *files, size_t file_count,
                                 const char *section, const char *name, struct ml_kubeentry *out,
                                 struct ml_err *err)
{
    int r = ml_kubeentry_find(files, file_count, section, name, out, err);
    if (r == ML_ENOT_FOUND)
        return ml_kubeentry_fail(
            context, err, "names %s \"%s\", which is not defined; correct the name or add it",
            section, name);
    return r;
}

static int fill_from_context(struct ml_kubeconfig *config, const struct ml_kubeentry *context,
                             const struct ml_kubefile *files, size_t file_count, struct ml_err *err)
{
    ML_AUTO_FREE char *cluster_name = NULL;
    ML_AUTO_FREE char *user_name = NULL;
    if (ml_kubeentry_string(context, "cluster", &cluster_name, err) < 0 ||
        ml_kubeentry_string(context, "user", &user_name, err) < 0 ||
        ml_kubeentry_string(context, "namespace", &config->ns, err) < 0)
        return err->kind;
    if (!cluster_name)
        return ml_kubeentry_fail(context, err, "names no cluster; add one of clusters");
    ML_AUTO(ml_kubeentry_fini) struct ml_kubeentry cluster = {0};
    if (find_entry_of_context(context, files, file_count, "cluster", cluster_name, &cluster, err) <
            0 ||
        fill_server(config, &cluster, err) < 0 || fill_cluster_tls(config, &cluster, err) < 0)
        return err->kind;
    if (!user_name)
        return 0;
    ML_AUTO(ml_kubeentry_fini) struct ml_kubeentry user = {0};
    if (find_entry_of_context(context, files, file_count, "user", user_name, &user, err) < 0)
        return err->kind;
    return ml_kubeconfig_fill_user(config, &user, &cluster, err);
}

/* The first file that sets current-context decides. */
static char *current_context(const struct ml_kubefile *files, size_t file_count)
{
    for (size_t i = 0; i < file_count; i++) {
        ML_AUTO_FREE char *name = ml_json_find_string(ml_buf_str(&files[i].json), "current-context",
                                                      NULL);
        if (name && *name)
            return ml_take(&name);
    }
    return NULL;
}

int ml_kubeconfig_resolve(struct ml_kubeconfig *config, const struct ml_kubefile *files,
                          size_t file_count, const char *context_name, struct ml_err *err)
{
    ml_assert(file_count > 0);
    ML_AUTO_FREE char *name = context_name && *context_name ? ml_strdup(context_name)
                                                            : current_context(files, file_count);
    if (!name)
        return ml_err_set(err, ML_EINVALID, "%s: no current-context; choose one with --context",
                          files[0].path);
    ML_AUTO(ml_kubeentry_fini) struct ml_kubeentry context = {0};
    int r = ml_kubeentry_find(files, file_count, "context", name, &context, err);
    if (r == ML_ENOT_FOUND)
        return ml_err_set(err, ML_EINVALID,
                          "%s: no context \"%s\"; kubectl config get-contexts lists them",
                          files[0].path, name);
    if (r < 0 || fill_from_context(config, &context, files, file_count, err) < 0)
        return err->kind;
    config->source = ml_asprintf("%s, context \"%s\"", context.file->path, name);
    return 0;
}

/* ---- where it comes from ---- */

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

/* Any error of a file makes the configuration invalid. */
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

/* rest.InClusterConfig. False: not in a pod, or in one without a token. */
static bool load_from_pod(struct ml_kubeconfig *config, const struct ml_kubeconfig_env *env)
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
    if (ml_file_read(config->ca_file, &ca, &err) ==
        0) /* otherwise the system's roots, until it can be read */
        config->ca_pem = ml_buf_take(&ca);
    ML_AUTO_FREE char *ns_path = ml_asprintf("%s/namespace", env->account_dir);
    ML_AUTO(ml_buf_fini) struct ml_buf ns = {.len_max = ML_TOKEN_SIZE_MAX};
    if (ml_file_read(ns_path, &ns, &err) == 0 && ml_str_trim(ml_buf_str(&ns)).len > 0)
        config->ns = ml_str_dup(ml_str_trim(ml_buf_str(&ns)));
    config->source = ml_strdup("the pod's service account");
    return true;
}

static int load_from_home(struct ml_kubeconfig *config, struct files *files,
                          const struct ml_kubeconfig_opts *opts,
                          const struct ml_kubeconfig_env *env, struct ml_err *err)
{
    ML_AUTO_FREE char *path = ml_asprintf("%s/.kube/config",
                                          env->home && *env->home ? env->home : "");
    if (files_add_optional(files, path, err) < 0)
        return err->kind;
    if (files->count > 0)
        return ml_kubeconfig_resolve(config, files->list, files->count, opts->context, err);
    return ml_err_set(err, ML_ENOT_FOUND,
                      "no API server is configured: name a kubeconfig with --kubeconfig or "
                      "KUBECONFIG; there is no %s/token and no %s",
                      env->account_dir, path);
}

static int load_first_found(struct ml_kubeconfig *config, const struct ml_kubeconfig_opts *opts,
                            const struct ml_kubeconfig_env *env, struct ml_err *err)
{
    ML_AUTO(files_fini) struct files files = {.count = 0};
    if (opts->path && *opts->path) {
        if (files_add_required(&files, opts->path, err) < 0)
            return err->kind;
        return ml_kubeconfig_resolve(config, files.list, files.count, opts->context, err);
    }
    if (env->kubeconfig && *env->kubeconfig) {
        if (files_add_list(&files, env->kubeconfig, err) < 0)
            return err->kind;
        return ml_kubeconfig_resolve(config, files.list, files.count, opts->context, err);
    }
    /* --context means a kubeconfig, also inside a pod. */
    if (!opts->context && load_from_pod(config, env))
        return 0;
    return load_from_home(config, &files, opts, env, err);
}

int ml_kubeconfig_load_env(const struct ml_kubeconfig_opts *opts,
                           const struct ml_kubeconfig_env *env, struct ml_kubeconfig **out,
                           struct ml_err *err)
{
    ML_AUTO(free_config) struct ml_kubeconfig *config = ml_new(struct ml_kubeconfig);
    *err = ML_ERR_INIT;
    if (load_first_found(config, opts, env, err) < 0)
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
