/* What came from files and may be another by now: token, client certificate and key, CA. */
#include "kube/file.h"
#include "kube/kubeconfig_internal.h"

#include "base/wipe.h"
#include "net/tls.h"

/* Puts `fresh` in the place of `*text`; false when they are the same. */
static bool take_text(char **text, struct ml_buf *fresh)
{
    if (*text && ml_str_is(ml_buf_str(fresh), *text))
        return false;
    ml_wipe_free(*text);
    *text = ml_buf_take(fresh);
    return true;
}

static bool reread_token(struct ml_kubeconfig *config, struct ml_err *problem)
{
    if (!config->token_file)
        return false;
    ML_AUTO(ml_wipe_buf) struct ml_buf text = {.len_max = ML_TOKEN_SIZE_MAX};
    ML_AUTO_WIPE char *before = ml_strdup(config->authorization);
    if (ml_file_read_again(config->token_file, &text, problem) < 0)
        return false;
    if (ml_kubeconfig_set_bearer(config, ml_buf_str(&text), problem) < 0) {
        ml_err_wrap(problem, "%s", config->token_file);
        return false;
    }
    if (strcmp(before, config->authorization) == 0)
        return false;
    if (config->refused && strcmp(config->refused, config->authorization) == 0) {
        ml_wipe_free(config->authorization);
        config->authorization = ml_take(&before);
        return false;
    }
    ml_wipe_free(ml_take(&config->refused));
    return true;
}

static bool reread_ca(struct ml_kubeconfig *config, struct ml_err *problem)
{
    ML_AUTO(ml_buf_fini) struct ml_buf pem = {.len_max = ML_KUBEFILE_SIZE_MAX};
    if (!config->ca_file || ml_file_read_again(config->ca_file, &pem, problem) < 0 ||
        ml_str_is(ml_buf_str(&pem), config->ca_pem))
        return false;
    if (ml_tls_check_ca(ml_buf_str(&pem), problem) < 0) {
        ml_err_wrap(problem, "%s", config->ca_file);
        return false;
    }
    return take_text(&config->ca_pem, &pem);
}

/* The file, or what there is when it came from none. */
static int read_half(const char *path, const char *now, struct ml_buf *out, struct ml_err *err)
{
    out->len_max = ML_KUBEFILE_SIZE_MAX;
    if (path)
        return ml_file_read_again(path, out, err);
    ml_buf_puts(out, now);
    return 0;
}

/* Both are read before either is taken: one may be new already and the other not yet. */
static bool reread_pair(struct ml_kubeconfig *config, struct ml_err *problem)
{
    ML_AUTO(ml_buf_fini) struct ml_buf cert = ML_BUF_INIT;
    ML_AUTO(ml_wipe_buf) struct ml_buf key = ML_BUF_INIT;
    struct ml_tls_validity validity;
    if (!config->cert_file && !config->key_file)
        return false;
    if (read_half(config->cert_file, config->cert_pem, &cert, problem) < 0 ||
        read_half(config->key_file, config->key_pem, &key, problem) < 0)
        return false;
    if (ml_str_is(ml_buf_str(&cert), config->cert_pem) &&
        ml_str_is(ml_buf_str(&key), config->key_pem))
        return false;
    if (ml_tls_check_pair(ml_buf_str(&cert), ml_buf_str(&key), &validity, problem) < 0) {
        ml_err_wrap(problem, "%s", config->cert_file ? config->cert_file : config->key_file);
        return false;
    }
    bool cert_is_new = take_text(&config->cert_pem, &cert);
    return take_text(&config->key_pem, &key) || cert_is_new;
}

bool ml_kubeconfig_reread(struct ml_kubeconfig *config, struct ml_err *problem)
{
    *problem = ML_ERR_INIT;
    bool token = reread_token(config, problem);
    bool pair = reread_pair(config, problem);
    bool ca = reread_ca(config, problem);
    if (pair || ca)
        ml_kubeconfig_point_tls(config);
    return token || pair || ca;
}
