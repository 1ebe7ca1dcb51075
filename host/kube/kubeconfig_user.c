/* The user of a kubeconfig's context: token, password, client certificate, exec plugin, and whom to
 * impersonate. Called by kubeconfig.c; credentials.c and tests set tokens with it. */
#include "kube/kubeconfig_internal.h"

#include "base/wipe.h"
#include "codec/base64.h"
#include "codec/json.h"

#include <ctype.h>
#include <stdio.h>

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

/* ---- the entry ---- */

int ml_kubeconfig_fill_user(struct ml_kubeconfig *config, const struct ml_kubeentry *user,
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
