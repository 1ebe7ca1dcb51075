#include "kube/kubeconfig_internal.h"

#include "codec/json.h"

#include <strings.h>

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

/* What client-go's net/http can go through. */
static int check_proxy(const struct ml_kubeconfig *config, const struct ml_kubeentry *cluster,
                       struct ml_err *err)
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

static int fill_tls(struct ml_kubeconfig *config, const struct ml_kubeentry *cluster,
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
    return check_proxy(config, cluster, err);
}

/* The entry that the context names under `section`; ML_ENOT_FOUND becomes the context's fault. */
static int find_named(const struct ml_kubeentry *context, const struct ml_kubefile *files,
                      size_t file_count, const char *section, const char *name,
                      struct ml_kubeentry *out, struct ml_err *err)
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
    if (find_named(context, files, file_count, "cluster", cluster_name, &cluster, err) < 0 ||
        fill_server(config, &cluster, err) < 0 || fill_tls(config, &cluster, err) < 0)
        return err->kind;
    if (!user_name)
        return 0;
    ML_AUTO(ml_kubeentry_fini) struct ml_kubeentry user = {0};
    if (find_named(context, files, file_count, "user", user_name, &user, err) < 0)
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
