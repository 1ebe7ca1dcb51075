#include "kube/file.h"
#include "kube/kubeconfig_internal.h"

#include "base/wipe.h"

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

static struct ml_str pem(const char *text)
{
    return text ? ml_str_of(text) : ML_STR("");
}

void ml_kubeconfig_point_tls(struct ml_kubeconfig *config)
{
    config->tls.ca_pem = pem(config->ca_pem);
    config->tls.cert_pem = pem(config->cert_pem);
    config->tls.key_pem = pem(config->key_pem);
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
    char *const secrets[] = {config->key_pem, config->proxy_url, config->authorization,
                             config->refused};
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
