/* The user's entry of a kubeconfig: token, password, certificate, plugin. */
#include "kube/kubeconfig_internal.h"

#include "base/wipe.h"
#include "codec/base64.h"

static int fill_certificate(struct ml_kubeconfig *config, const struct ml_kubeentry *user,
                            struct ml_err *err)
{
    if (ml_kubeentry_pem(user, "client-certificate", &config->cert_pem, &config->cert_file, err) <
            0 ||
        ml_kubeentry_pem(user, "client-key", &config->key_pem, &config->key_file, err) < 0)
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
        fill_basic(config, username, password);
    return 0;
}

int ml_kubeconfig_fill_user(struct ml_kubeconfig *config, const struct ml_kubeentry *user,
                            const struct ml_kubeentry *cluster, struct ml_err *err)
{
    if (fill_certificate(config, user, err) < 0 || fill_authorization(config, user, err) < 0 ||
        ml_kubeconfig_fill_impersonation(config, user, err) < 0)
        return err->kind;
    if (config->authorization || config->cert_pem)
        return 0; /* client-go, too, asks no plugin then */
    /* What would change who we are, but is not understood, must not be passed over. */
    if (ml_kubeentry_has(user, "auth-provider"))
        return ml_kubeentry_fail(user, err,
                                 "auth-provider was removed from Kubernetes in 1.26 and is not "
                                 "supported; use exec with the provider's plugin, a tokenFile or a "
                                 "client certificate");
    return ml_kubeconfig_fill_exec(config, user, cluster, err);
}
