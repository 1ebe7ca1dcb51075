#include "kube/kubeconfig_internal.h"

#include "codec/base64.h"
#include "codec/json.h"

#include <strings.h>

static int fill_server(struct ml_kubeconfig *config, const struct ml_kubeentry *cluster,
                       struct ml_err *err)
{
    if (ml_kubeentry_string(cluster, "server", &config->server, err) < 0)
        return err->kind;
    const char *server = config->server;
    if (!server)
        return ml_kubeentry_fail(cluster, err, "no server");
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

static int fill_tls(struct ml_kubeconfig *config, const struct ml_kubeentry *cluster,
                    struct ml_err *err)
{
    bool insecure = false;
    if (ml_kubeentry_pem(cluster, "certificate-authority", &config->ca_pem, err) < 0 ||
        ml_kubeentry_bool(cluster, "insecure-skip-tls-verify", &insecure, err) < 0 ||
        ml_kubeentry_string(cluster, "tls-server-name", &config->server_name, err) < 0 ||
        ml_kubeentry_string(cluster, "proxy-url", &config->proxy_url, err) < 0)
        return err->kind;
    if (insecure && config->ca_pem)
        return ml_kubeentry_fail(cluster, err,
                                 "insecure-skip-tls-verify and certificate-authority exclude each "
                                 "other; remove one");
    config->tls.insecure = insecure;
    return 0;
}

static int fill_certificate(struct ml_kubeconfig *config, const struct ml_kubeentry *user,
                            struct ml_err *err)
{
    if (ml_kubeentry_pem(user, "client-certificate", &config->cert_pem, err) < 0 ||
        ml_kubeentry_pem(user, "client-key", &config->key_pem, err) < 0)
        return err->kind;
    if (!config->cert_pem != !config->key_pem)
        return ml_kubeentry_fail(user, err,
                                 "client-certificate and client-key go together; add "
                                 "the one that is missing");
    return 0;
}

static void fill_basic(struct ml_kubeconfig *config, const char *username, const char *password)
{
    ML_AUTO(ml_buf_fini) struct ml_buf value = ML_BUF_INIT;
    ML_AUTO_FREE char *pair = ml_asprintf("%s:%s", username ? username : "",
                                          password ? password : "");
    ml_buf_puts(&value, "Basic ");
    ml_base64_encode(ml_str_of(pair), &value);
    config->authorization = ml_buf_take(&value);
}

static int fill_token(struct ml_kubeconfig *config, const struct ml_kubeentry *user,
                      const char *token, struct ml_err *err)
{
    struct ml_err cause = ML_ERR_INIT;
    if (config->token_file && ml_kubeconfig_read_token(config, &cause) < 0)
        return ml_kubeentry_fail(user, err, "tokenFile: %s", cause.message);
    if (!config->token_file && ml_kubeconfig_set_bearer(config, ml_str_of(token), &cause) < 0)
        return ml_kubeentry_fail(user, err, "token: %s", cause.message);
    return 0;
}

/* What would change who we are, but is not understood, must not be passed over. */
static int refuse_unsupported(const struct ml_kubeconfig *config, const struct ml_kubeentry *user,
                              struct ml_err *err)
{
    static const char *const impersonation[] = {"as", "as-uid", "as-groups", "as-user-extra"};
    for (size_t i = 0; i < ML_COUNT(impersonation); i++)
        if (ml_kubeentry_has(user, impersonation[i]))
            return ml_kubeentry_fail(user, err, "not supported yet: impersonation (%s); remove it",
                                     impersonation[i]);
    static const char *const plugins[] = {"exec", "auth-provider"};
    if (config->authorization || config->cert_pem)
        return 0; /* client-go, too, asks no plugin then */
    for (size_t i = 0; i < ML_COUNT(plugins); i++)
        if (ml_kubeentry_has(user, plugins[i]))
            return ml_kubeentry_fail(user, err,
                                     "not supported yet: %s; use a token, a tokenFile "
                                     "or a client certificate",
                                     plugins[i]);
    return 0;
}

static int fill_user(struct ml_kubeconfig *config, const struct ml_kubeentry *user,
                     struct ml_err *err)
{
    ML_AUTO_FREE char *token = NULL;
    ML_AUTO_FREE char *username = NULL;
    ML_AUTO_FREE char *password = NULL;
    if (fill_certificate(config, user, err) < 0 ||
        ml_kubeentry_string(user, "token", &token, err) < 0 ||
        ml_kubeentry_path(user, "tokenFile", &config->token_file, err) < 0 ||
        ml_kubeentry_string(user, "username", &username, err) < 0 ||
        ml_kubeentry_string(user, "password", &password, err) < 0)
        return err->kind;
    bool has_token = token || config->token_file;
    if (has_token && (username || password))
        return ml_kubeentry_fail(user, err,
                                 "token and username/password exclude each other; "
                                 "remove one");
    if (has_token && fill_token(config, user, token, err) < 0)
        return err->kind;
    if (username || password)
        fill_basic(config, username, password);
    return refuse_unsupported(config, user, err);
}

/* The entry that the context names under `section`; ML_ENOT_FOUND becomes the context's fault. */
static int find_named(const struct ml_kubeentry *context, const struct ml_kubefile *files,
                      size_t file_count, const char *section, const char *name,
                      struct ml_kubeentry *out, struct ml_err *err)
{
    int r = ml_kubeentry_find(files, file_count, section, name, out, err);
    if (r == ML_ENOT_FOUND)
        return ml_kubeentry_fail(context, err, "names %s \"%s\", which is not defined", section,
                                 name);
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
        return ml_kubeentry_fail(context, err, "names no cluster");
    ML_AUTO(ml_kubeentry_fini) struct ml_kubeentry cluster = {0};
    if (find_named(context, files, file_count, "cluster", cluster_name, &cluster, err) < 0 ||
        fill_server(config, &cluster, err) < 0 || fill_tls(config, &cluster, err) < 0)
        return err->kind;
    if (!user_name)
        return 0;
    ML_AUTO(ml_kubeentry_fini) struct ml_kubeentry user = {0};
    if (find_named(context, files, file_count, "user", user_name, &user, err) < 0)
        return err->kind;
    return fill_user(config, &user, err);
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
