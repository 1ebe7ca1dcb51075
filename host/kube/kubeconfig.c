/* Finds the kubeconfig or the pod's service account, and takes from it how to reach the API server
 * and as whom. credentials.c reads changed files later. */
#include "kube/kubeconfig_internal.h"

#include "base/wipe.h"
#include "codec/base64.h"
#include "codec/json.h"

#include <ctype.h>
#include <stdio.h>
#include <strings.h>
#include <sys/stat.h>

#define ACCOUNT_DIR "/var/run/secrets/kubernetes.io/serviceaccount"

size_t ml_kubeconfig_files(const struct ml_kubeconfig *config,
                           const char *out[ML_KUBECONFIG_FILES_MAX])
{
    const char *const files[] = {config->token_file, config->ca_file, config->cert_file,
                                 config->key_file};
    size_t count = 0;
    for (size_t i = 0; i < ML_COUNT(files); i++)
        if (files[i])
            out[count++] = files[i];
    for (size_t i = 0; i < config->read_from.count; i++)
        out[count++] = config->read_from.items[i];
    return count;
}

static void exec_config_free(struct ml_exec_config *config)
{
    if (!config)
        return;
    ml_kubelist_fini(&config->argv);
    ml_kubelist_fini(&config->env);
    free(config->api_version);
    free(config->install_hint);
    free(config->cluster_config);
    free(config);
}

void ml_kubeconfig_free(struct ml_kubeconfig *config)
{
    if (!config)
        return;
    const char *const owned[] = {
        config->server,           config->ns,
        config->source,           config->token_file,
        config->ca_file,          config->cert_file,
        config->key_file,         config->tls.ca_pem.ptr,
        config->tls.cert_pem.ptr, config->tls.server_name,
        config->context,
    };
    const char *const secrets[] = {config->authorization, config->tls.key_pem.ptr,
                                   config->tls.proxy_url};
    for (size_t i = 0; i < ML_COUNT(owned); i++)
        free((char *)owned[i]);
    for (size_t i = 0; i < ML_COUNT(secrets); i++)
        ml_wipe_free((char *)secrets[i]);
    for (size_t i = 0; i < config->impersonation_count; i++) {
        free((char *)config->impersonation[i].name);
        free((char *)config->impersonation[i].value);
    }
    free(config->impersonation);
    ml_kubelist_fini(&config->read_from);
    exec_config_free(config->exec);
    free(config);
}

/* ---- the user: token, password, certificate, plugin, whom to impersonate ---- */

#define EXEC_EXTENSION "client.authentication.k8s.io/exec"

int ml_kubeconfig_set_bearer(struct ml_kubeconfig *config, struct ml_str token, struct ml_err *err)
{
    token = ml_str_trim(token);
    if (token.len == 0)
        return ml_err_set(err, ML_EINVALID, "the token is empty");
    for (size_t i = 0; i < token.len; i++)
        if (token.ptr[i] <= ' ' || token.ptr[i] >= 0x7f)
            return ml_err_set(err, ML_EINVALID,
                              "the token has a space or another character that "
                              "no token has");
    ml_wipe_free(config->authorization);
    config->authorization = ml_join(ML_STR("Bearer "), token);
    return 0;
}

int ml_kubeconfig_read_token(struct ml_kubeconfig *config, struct ml_err *err)
{
    ML_AUTO(ml_wipe_buf) struct ml_buf text = {.len_max = ML_TOKEN_SIZE_MAX};
    if (ml_file_read(config->token_file, &text, err) < 0)
        return err->kind;
    if (ml_kubeconfig_set_bearer(config, ml_buf_str(&text), err) < 0)
        return ml_err_wrap(err, "%s", config->token_file);
    return 0;
}

static int fill_client_certificate(struct ml_kubeconfig *config, const struct ml_kubeentry *user,
                                   struct ml_err *err)
{
    if (ml_kubeentry_pem(user, "client-certificate", &config->tls.cert_pem, &config->cert_file,
                         err) < 0 ||
        ml_kubeentry_pem(user, "client-key", &config->tls.key_pem, &config->key_file, err) < 0)
        return err->kind;
    if (!config->tls.cert_pem.len != !config->tls.key_pem.len)
        return ml_kubeentry_fail(user, err,
                                 "client-certificate and client-key go together; add "
                                 "the one that is missing");
    return 0;
}

static void fill_basic_auth(struct ml_kubeconfig *config, const char *username,
                            const char *password)
{
    ML_AUTO(ml_buf_fini) struct ml_buf value = ML_BUF_INIT;
    ML_AUTO_WIPE char *name = ml_join(ml_str_of(username), ML_STR(":"));
    ML_AUTO_WIPE char *pair = ml_join(ml_str_of(name), ml_str_of(password));
    ml_buf_puts(&value, "Basic ");
    ml_base64_encode(ml_str_of(pair), &value);
    config->authorization = ml_buf_take(&value);
}

static int fill_token(struct ml_kubeconfig *config, const struct ml_kubeentry *user,
                      const char *token, struct ml_err *err)
{
    struct ml_err cause = ML_ERR_INIT;
    if (config->token_file && user->file->again)
        return 0; /* credentials.c reads it */
    if (config->token_file && ml_kubeconfig_read_token(config, &cause) < 0)
        return ml_kubeentry_fail(user, err, "tokenFile: %s; correct the path or log in anew",
                                 cause.message);
    if (!config->token_file && ml_kubeconfig_set_bearer(config, ml_str_of(token), &cause) < 0)
        return ml_kubeentry_fail(user, err, "token: %s; log in anew", cause.message);
    return 0;
}

static int fill_authorization(struct ml_kubeconfig *config, const struct ml_kubeentry *user,
                              struct ml_err *err)
{
    ML_AUTO_WIPE char *token = NULL;
    ML_AUTO_FREE char *username = NULL;
    ML_AUTO_WIPE char *password = NULL;
    if (ml_kubeentry_string(user, "token", &token, err) < 0 ||
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
        fill_basic_auth(config, username, password);
    return 0;
}

/* ---- impersonation: headers as in client-go's transport/round_trippers.go ---- */

/* Adds a header for each of the values. */
static int add_impersonation(struct ml_kubeconfig *config, const struct ml_kubeentry *user,
                             const char *name, const struct ml_kubelist *values, struct ml_err *err)
{
    size_t count_max = config->impersonation_count + values->count + 1;
    config->impersonation = ml_realloc(config->impersonation,
                                       count_max * sizeof *config->impersonation);
    for (size_t i = 0; i < values->count; i++) {
        for (const char *c = values->items[i]; *c; c++)
            if ((unsigned char)*c < ' ' || *c == 0x7f)
                return ml_kubeentry_fail(user, err,
                                         "impersonation: a line end or control character");
        config->impersonation[config->impersonation_count++] = (struct ml_http_header){
            ml_strdup(name), ml_strdup(values->items[i])};
    }
    return 0;
}

/* Characters that header names cannot have are percent-encoded, and so is the percent sign. */
static char *extra_header(struct ml_str key)
{
    ML_AUTO(ml_buf_fini) struct ml_buf name = ML_BUF_INIT;
    ml_buf_puts(&name, "Impersonate-Extra-");
    for (size_t i = 0; i < key.len; i++) {
        unsigned char c = (unsigned char)key.ptr[i];
        bool plain = c < 0x80 && (isalnum(c) || (c && strchr("!#$&'*+-.^_`|~", c)));
        if (plain)
            ml_buf_putc(&name, (char)tolower(c));
        else
            ml_buf_printf(&name, "%%%02X", c);
    }
    return ml_buf_take(&name);
}

static int fill_impersonation_extra(struct ml_kubeconfig *config, const struct ml_kubeentry *user,
                                    struct ml_err *err)
{
    struct ml_kubeentry extra = {0};
    if (!ml_kubeentry_sub(user, "as-user-extra", "as-user-extra of user", &extra))
        return 0;
    ML_AUTO(ml_json_reader_fini) struct ml_json_reader reader;
    ml_json_reader_init(&reader, extra.raw, 0);
    if (ml_json_next(&reader) != ML_JSON_OBJECT)
        return ml_kubeentry_fail(user, err, "as-user-extra must map names to lists of strings");
    while (ml_json_next(&reader) == ML_JSON_KEY) {
        ML_AUTO(ml_kubelist_fini) struct ml_kubelist values = {0};
        ML_AUTO_FREE char *key = ml_str_dup(reader.text);
        ML_AUTO_FREE char *name = extra_header(reader.text);
        if (ml_kubeentry_strings(&extra, key, &values, err) < 0 ||
            add_impersonation(config, user, name, &values, err) < 0)
            return err->kind;
        (void)ml_json_skip(&reader);
    }
    return 0;
}

static int fill_impersonation(struct ml_kubeconfig *config, const struct ml_kubeentry *user,
                              struct ml_err *err)
{
    ML_AUTO_FREE char *name = NULL;
    ML_AUTO_FREE char *uid = NULL;
    ML_AUTO(ml_kubelist_fini) struct ml_kubelist groups = {0};
    if (ml_kubeentry_string(user, "as", &name, err) < 0 ||
        ml_kubeentry_string(user, "as-uid", &uid, err) < 0 ||
        ml_kubeentry_strings(user, "as-groups", &groups, err) < 0)
        return err->kind;
    const struct ml_kubelist names = {&name, name != NULL}, uids = {&uid, uid != NULL};
    if (add_impersonation(config, user, "Impersonate-User", &names, err) < 0 ||
        add_impersonation(config, user, "Impersonate-Uid", &uids, err) < 0 ||
        add_impersonation(config, user, "Impersonate-Group", &groups, err) < 0 ||
        fill_impersonation_extra(config, user, err) < 0)
        return err->kind;
    if (!name && config->impersonation_count > 0)
        return ml_kubeentry_fail(user, err,
                                 "as-uid, as-groups and as-user-extra need a user: add \"as\"");
    return 0;
}

/* ---- the exec plugin: which program is asked, and how ---- */

/* A path is relative to the kubeconfig; a bare name is looked up in PATH. */
static int fill_exec_command(struct ml_exec_config *config, const struct ml_kubeentry *exec,
                             struct ml_err *err)
{
    ML_AUTO_FREE char *command = NULL;
    if (ml_kubeentry_string(exec, "command", &command, err) < 0)
        return err->kind;
    if (!command)
        return ml_kubeentry_fail(exec, err, "no command; add the plugin's name or path");
    if (strchr(command, '/') && ml_kubeentry_path(exec, "command", &command, err) < 0)
        return err->kind;
    ml_kubelist_add(&config->argv, ml_take(&command));
    return 0;
}

static int fill_exec_version(struct ml_exec_config *config, const struct ml_kubeentry *exec,
                             struct ml_err *err)
{
    if (ml_kubeentry_string(exec, "apiVersion", &config->api_version, err) < 0)
        return err->kind;
    const char *version = config->api_version ? config->api_version : "";
    if (strcmp(version, ML_EXEC_V1) != 0 && strcmp(version, ML_EXEC_V1BETA1) != 0)
        return ml_kubeentry_fail(exec, err,
                                 "apiVersion \"%s\" is not supported; the plugin's tool writes a "
                                 "new kubeconfig with " ML_EXEC_V1 " or " ML_EXEC_V1BETA1,
                                 version);
    return 0;
}

/* An operator has no terminal: a plugin that needs one cannot work. */
static int check_exec_mode(const struct ml_exec_config *config, const struct ml_kubeentry *exec,
                           struct ml_err *err)
{
    ML_AUTO_FREE char *mode = NULL;
    if (ml_kubeentry_string(exec, "interactiveMode", &mode, err) < 0)
        return err->kind;
    if (!mode && strcmp(config->api_version, ML_EXEC_V1BETA1) == 0)
        return 0;
    if (!mode)
        return ml_kubeentry_fail(exec, err, "no interactiveMode; add Never or IfAvailable");
    if (strcmp(mode, "Always") == 0)
        return ml_kubeentry_fail(exec, err,
                                 "interactiveMode Always: the plugin wants to ask a person, and "
                                 "none is there; use a token, a tokenFile or a client certificate");
    if (strcmp(mode, "Never") != 0 && strcmp(mode, "IfAvailable") != 0)
        return ml_kubeentry_fail(exec, err, "interactiveMode \"%s\"; use Never or IfAvailable",
                                 mode);
    return 0;
}

/* One {name, value} of the list; the reader stands at it. */
static int add_exec_variable(struct ml_kubelist *out, const struct ml_kubeentry *exec,
                             struct ml_str element, struct ml_err *err)
{
    ML_AUTO_FREE char *name = ml_json_find_string(element, "name", NULL);
    ML_AUTO_FREE char *value = ml_json_find_string(element, "value", NULL);
    if (!name || !*name || strchr(name, '='))
        return ml_kubeentry_fail(exec, err, "env: each variable needs a name");
    if (!value && ml_json_find(element, &element, "value", NULL))
        return ml_kubeentry_fail(exec, err,
                                 "env: the value of %s must be a string; put it in "
                                 "quotes",
                                 name);
    ml_kubelist_add(out, ml_asprintf("%s=%s", name, value ? value : ""));
    return 0;
}

static int fill_exec_env(struct ml_kubelist *out, const struct ml_kubeentry *exec,
                         struct ml_err *err)
{
    struct ml_str raw;
    if (!ml_kubeentry_value(exec, "env", &raw))
        return 0;
    ML_AUTO(ml_json_reader_fini) struct ml_json_reader reader;
    ml_json_reader_init(&reader, raw, 0);
    if (ml_json_next(&reader) != ML_JSON_ARRAY)
        return ml_kubeentry_fail(exec, err, "env must be a list of names and values");
    for (;;) {
        struct ml_str element = ml_json_skip(&reader);
        if (element.len == 0)
            return 0;
        if (add_exec_variable(out, exec, element, err) < 0)
            return err->kind;
    }
}

/* The cluster's extension for exec plugins. */
static void fill_exec_cluster_config(struct ml_exec_config *config,
                                     const struct ml_kubeentry *cluster)
{
    struct ml_str raw;
    if (!ml_json_find(cluster->raw, &raw, "extensions", NULL))
        return;
    ML_AUTO(ml_json_reader_fini) struct ml_json_reader reader;
    ml_json_reader_init(&reader, raw, 0);
    if (ml_json_next(&reader) != ML_JSON_ARRAY)
        return;
    for (struct ml_str element; (element = ml_json_skip(&reader)).len > 0;) {
        ML_AUTO_FREE char *name = ml_json_find_string(element, "name", NULL);
        if (name && strcmp(name, EXEC_EXTENSION) == 0 &&
            ml_json_find(element, &raw, "extension", NULL) && !config->cluster_config)
            config->cluster_config = ml_str_dup(raw);
    }
}

static int fill_exec(struct ml_kubeconfig *config, const struct ml_kubeentry *user,
                     const struct ml_kubeentry *cluster, struct ml_err *err)
{
    struct ml_kubeentry entry = {0};
    if (!ml_kubeentry_sub(user, "exec", "exec of user", &entry))
        return 0;
    struct ml_exec_config *exec = config->exec = ml_new(struct ml_exec_config);
    if (fill_exec_command(exec, &entry, err) < 0 || fill_exec_version(exec, &entry, err) < 0 ||
        check_exec_mode(exec, &entry, err) < 0 ||
        ml_kubeentry_strings(&entry, "args", &exec->argv, err) < 0 ||
        fill_exec_env(&exec->env, &entry, err) < 0 ||
        ml_kubeentry_bool(&entry, "provideClusterInfo", &exec->provide_cluster_info, err) < 0)
        return err->kind;
    exec->install_hint = ml_json_find_string(entry.raw, "installHint", NULL);
    fill_exec_cluster_config(exec, cluster);
    return 0;
}

/* Fills in the user's entry: certificate, authorization, impersonation, exec plugin. `cluster`: the
 * plugin gets its extension. */
static int fill_user(struct ml_kubeconfig *config, const struct ml_kubeentry *user,
                     const struct ml_kubeentry *cluster, struct ml_err *err)
{
    if (fill_client_certificate(config, user, err) < 0 ||
        fill_authorization(config, user, err) < 0 || fill_impersonation(config, user, err) < 0)
        return err->kind;
    if (config->authorization || config->tls.cert_pem.len > 0)
        return 0; /* client-go does not run the plugin then either */
    /* It would change the identity: ignoring it is not safe. */
    struct ml_str ignored;
    if (ml_kubeentry_value(user, "auth-provider", &ignored))
        return ml_kubeentry_fail(user, err,
                                 "auth-provider was removed from Kubernetes in 1.26 and is not "
                                 "supported; use exec with the provider's plugin, a tokenFile or a "
                                 "client certificate");
    return fill_exec(config, user, cluster, err);
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
    if (!config->tls.proxy_url)
        return 0;
    for (size_t i = 0; i < ML_COUNT(schemes); i++)
        if (strncasecmp(config->tls.proxy_url, schemes[i], strlen(schemes[i])) == 0)
            return 0;
    return ml_kubeentry_fail(cluster, err,
                             "proxy-url must start with http://, https:// or socks5://");
}

static int fill_cluster_tls(struct ml_kubeconfig *config, const struct ml_kubeentry *cluster,
                            struct ml_err *err)
{
    ML_AUTO_FREE char *server_name = NULL;
    ML_AUTO_WIPE char *proxy_url = NULL;
    bool insecure = false, uncompressed = false; /* we never ask for compressed answers */
    if (ml_kubeentry_pem(cluster, "certificate-authority", &config->tls.ca_pem, &config->ca_file,
                         err) < 0 ||
        ml_kubeentry_bool(cluster, "insecure-skip-tls-verify", &insecure, err) < 0 ||
        ml_kubeentry_bool(cluster, "disable-compression", &uncompressed, err) < 0 ||
        ml_kubeentry_string(cluster, "tls-server-name", &server_name, err) < 0 ||
        ml_kubeentry_string(cluster, "proxy-url", &proxy_url, err) < 0)
        return err->kind;
    if (insecure && config->tls.ca_pem.len > 0)
        return ml_kubeentry_fail(cluster, err,
                                 "insecure-skip-tls-verify and certificate-authority exclude each "
                                 "other; remove one");
    config->tls.insecure = insecure;
    config->tls.server_name = ml_take(&server_name);
    config->tls.proxy_url = ml_take(&proxy_url);
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
    struct ml_kubeentry cluster = {0};
    if (find_entry_of_context(context, files, file_count, "cluster", cluster_name, &cluster, err) <
            0 ||
        fill_server(config, &cluster, err) < 0 || fill_cluster_tls(config, &cluster, err) < 0)
        return err->kind;
    if (!user_name)
        return 0;
    struct ml_kubeentry user = {0};
    if (find_entry_of_context(context, files, file_count, "user", user_name, &user, err) < 0)
        return err->kind;
    return fill_user(config, &user, &cluster, err);
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
    struct ml_kubeentry context = {0};
    int r = ml_kubeentry_find(files, file_count, "context", name, &context, err);
    if (r == ML_ENOT_FOUND)
        return ml_err_set(err, ML_EINVALID,
                          "%s: no context \"%s\"; kubectl config get-contexts lists them",
                          files[0].path, name);
    if (r < 0 || fill_from_context(config, &context, files, file_count, err) < 0)
        return err->kind;
    config->source = ml_asprintf("%s, context \"%s\"", context.file->path, name);
    config->context = ml_take(&name);
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

/* Any mistake in a file makes the configuration invalid; `optional`: it may be missing. */
static int files_add(struct files *files, const char *path, bool optional, struct ml_err *err)
{
    if (files_have(files, path))
        return 0;
    if (files->count == ML_COUNT(files->list))
        return ml_err_set(err, ML_EINVALID, "KUBECONFIG names more than %d files",
                          ML_KUBEFILES_MAX);
    ML_AUTO(ml_wipe_buf) struct ml_buf text = {.len_max = ML_KUBEFILE_SIZE_MAX};
    int r = ml_file_read(path, &text, err);
    if (r == ML_ENOT_FOUND && optional) {
        *err = ML_ERR_INIT;
        return 0;
    }
    if (r == 0)
        r = ml_kubefile_parse(path, ml_buf_str(&text), &files->list[files->count], err);
    if (r < 0)
        return err->kind = ML_EINVALID;
    files->count++;
    return 0;
}

static int files_add_list(struct files *files, const char *list, struct ml_err *err)
{
    for (struct ml_str rest = ml_str_of(list); rest.ptr;) {
        ML_AUTO_FREE char *path = ml_str_dup(ml_str_cut(&rest, ':'));
        if (*path && files_add(files, path, true, err) < 0)
            return err->kind;
    }
    if (files->count == 0)
        return ml_err_set(err, ML_EINVALID,
                          "KUBECONFIG names no file that exists: %s; correct or unset it", list);
    return 0;
}

static int files_add_home(struct files *files, const struct ml_kubeconfig_env *env,
                          struct ml_err *err)
{
    ML_AUTO_FREE char *path = ml_asprintf("%s/.kube/config", env->home ? env->home : "");
    if (files_add(files, path, true, err) < 0)
        return err->kind;
    if (files->count == 0)
        return ml_err_set(err, ML_ENOT_FOUND,
                          "no API server is configured: name a kubeconfig with --kubeconfig or "
                          "KUBECONFIG; there is no %s/token and no %s",
                          env->account_dir, path);
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
    /* Otherwise the system's roots, until it can be read. */
    if (ml_file_read(config->ca_file, &ca, &err) == 0)
        config->tls.ca_pem = ml_str_of(ml_buf_take(&ca));
    ML_AUTO_FREE char *ns_path = ml_asprintf("%s/namespace", env->account_dir);
    ML_AUTO(ml_buf_fini) struct ml_buf ns = {.len_max = ML_TOKEN_SIZE_MAX};
    if (ml_file_read(ns_path, &ns, &err) == 0 && ml_str_trim(ml_buf_str(&ns)).len > 0)
        config->ns = ml_str_dup(ml_str_trim(ml_buf_str(&ns)));
    config->source = ml_strdup("the pod's service account");
    config->in_cluster = true;
    return true;
}

/* A pipe cannot be read again. */
static void note_files(struct ml_kubeconfig *config, const struct files *files)
{
    struct stat info;
    for (size_t i = 0; i < files->count; i++)
        if (stat(files->list[i].path, &info) < 0 || !S_ISREG(info.st_mode))
            return;
    for (size_t i = 0; i < files->count; i++)
        ml_kubelist_add(&config->read_from, ml_strdup(files->list[i].path));
}

static int load_first_found(struct ml_kubeconfig *config, const struct ml_kubeconfig_opts *opts,
                            const struct ml_kubeconfig_env *env, struct ml_err *err)
{
    ML_AUTO(files_fini) struct files files = {.count = 0};
    int r;
    if (opts->path && *opts->path)
        r = files_add(&files, opts->path, false, err);
    else if (env->kubeconfig && *env->kubeconfig)
        r = files_add_list(&files, env->kubeconfig, err);
    else if (!opts->context && load_from_pod(config, env)) /* --context means a kubeconfig */
        return 0;
    else
        r = files_add_home(&files, env, err);
    if (r < 0)
        return r;
    note_files(config, &files);
    return ml_kubeconfig_resolve(config, files.list, files.count, opts->context, err);
}

int ml_kubeconfig_read_again(const struct ml_kubeconfig *config, struct ml_kubeconfig **out,
                             struct ml_err *err)
{
    ML_AUTO(files_fini) struct files files = {.count = 0};
    ML_AUTO(free_config) struct ml_kubeconfig *fresh = ml_new(struct ml_kubeconfig);
    *err = ML_ERR_INIT;
    for (size_t i = 0; i < config->read_from.count; i++) {
        const char *path = config->read_from.items[i];
        struct ml_kubefile *file = &files.list[files.count];
        ML_AUTO(ml_wipe_buf) struct ml_buf text = {.len_max = ML_KUBEFILE_SIZE_MAX};
        if (ml_file_read_again(path, &text, err) < 0 ||
            ml_kubefile_parse(path, ml_buf_str(&text), file, err) < 0)
            return err->kind = ML_EINVALID;
        file->again = true;
        files.count++;
    }
    if (ml_kubeconfig_resolve(fresh, files.list, files.count, config->context, err) < 0)
        return err->kind;
    *out = ml_take(&fresh);
    return 0;
}

uint64_t ml_kubeconfig_stamp(const struct ml_kubeconfig *config)
{
    uint64_t stamp = 1;
    for (size_t i = 0; i < config->read_from.count; i++) {
        struct stat info;
        if (stat(config->read_from.items[i], &info) < 0)
            return 0;
        const int64_t parts[] = {(int64_t)info.st_dev, (int64_t)info.st_ino, info.st_size,
                                 info.st_mtim.tv_sec,  info.st_mtim.tv_nsec, info.st_ctim.tv_sec,
                                 info.st_ctim.tv_nsec};
        stamp = stamp * 31 + ml_str_hash((struct ml_str){(const char *)parts, sizeof parts});
    }
    return stamp;
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
