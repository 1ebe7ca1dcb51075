#include "kube/file.h"
#include "kube/kubeconfig_internal.h"

#include <strings.h>

#define TOKEN_FRESH_NS (50 * ML_NS_PER_S)

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
    free(config->authorization);
    config->authorization = ml_asprintf("Bearer " ML_STR_FMT, ML_STR_ARG(token));
    return 0;
}

int ml_kubeconfig_read_token(struct ml_kubeconfig *config, struct ml_err *err)
{
    ML_AUTO(ml_buf_fini) struct ml_buf text = {.len_max = ML_TOKEN_SIZE_MAX};
    config->token_read_ns = ml_clock_monotonic(config->clock);
    config->token_stale = false;
    if (ml_file_read(config->token_file, &text, err) < 0)
        return err->kind;
    if (ml_kubeconfig_set_bearer(config, ml_buf_str(&text), err) < 0)
        return ml_err_wrap(err, "%s", config->token_file);
    return 0;
}

const char *ml_kubeconfig_authorization(struct ml_kubeconfig *config)
{
    /* Plain http would show the credentials to everybody on the way. */
    if (strncasecmp(config->server, "https://", 8) != 0)
        return NULL;
    if (!config->token_file)
        return config->authorization;
    int64_t age_ns = ml_clock_monotonic(config->clock) - config->token_read_ns;
    struct ml_err ignored = ML_ERR_INIT;
    if (config->token_stale || age_ns > TOKEN_FRESH_NS)
        (void)!ml_kubeconfig_read_token(config, &ignored); /* else the last good one stays */
    return config->authorization;
}

void ml_kubeconfig_refresh(struct ml_kubeconfig *config)
{
    config->token_stale = true;
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

const struct ml_http_tls *ml_kubeconfig_tls(const struct ml_kubeconfig *config)
{
    return &config->tls;
}

void ml_kubeconfig_free(struct ml_kubeconfig *config)
{
    if (!config)
        return;
    char *const owned[] = {config->server,      config->ns,        config->source,
                           config->ca_pem,      config->cert_pem,  config->key_pem,
                           config->server_name, config->proxy_url, config->authorization,
                           config->token_file};
    for (size_t i = 0; i < ML_COUNT(owned); i++)
        free(owned[i]);
    free(config);
}
