/* Writes the ExecCredential that a plugin is started with, and reads the one it answers. Called by
 * exec_plugin.c. */
#include "kube/exec_credential.h"

#include "base/wipe.h"
#include "codec/base64.h"
#include "codec/json.h"
#include "codec/rfc3339.h"
#include "net/tls.h"

static void put_if_set(struct ml_json_writer *writer, const char *key, const char *text)
{
    if (text && *text)
        ml_json_put_string(writer, key, ml_str_of(text));
}

static void write_exec_cluster(struct ml_json_writer *writer, const struct ml_kubeconfig *config)
{
    ML_AUTO(ml_buf_fini) struct ml_buf ca = ML_BUF_INIT;
    ml_base64_encode(config->tls.ca_pem, &ca);
    ml_json_key(writer, ML_STR("cluster"));
    ml_json_begin_object(writer);
    put_if_set(writer, "server", config->server);
    put_if_set(writer, "tls-server-name", config->tls.server_name);
    if (config->tls.insecure)
        ml_json_put_bool(writer, "insecure-skip-tls-verify", true);
    put_if_set(writer, "certificate-authority-data", ml_buf_cstr(&ca));
    put_if_set(writer, "proxy-url", config->tls.proxy_url);
    if (config->exec->cluster_config)
        ml_json_put_raw(writer, "config", ml_str_of(config->exec->cluster_config));
    ml_json_end_object(writer);
}

void ml_exec_info_write(const struct ml_kubeconfig *config, struct ml_buf *out)
{
    struct ml_json_writer writer;
    ml_json_writer_init(&writer, out);
    ml_json_begin_object(&writer);
    ml_json_put_string(&writer, "kind", ML_STR("ExecCredential"));
    ml_json_put_string(&writer, "apiVersion", ml_str_of(config->exec->api_version));
    ml_json_key(&writer, ML_STR("spec"));
    ml_json_begin_object(&writer);
    if (config->exec->provide_cluster_info)
        write_exec_cluster(&writer, config);
    ml_json_put_bool(&writer, "interactive", false);
    ml_json_end_object(&writer);
    ml_json_end_object(&writer);
}

static char *find_status_text(struct ml_str output, const char *key)
{
    char *text = ml_json_find_string(output, "status", key, NULL);
    if (text && !*text)
        free(ml_take(&text));
    return text;
}

static int check_exec_credential_kind(struct ml_str output, const char *api_version,
                                      struct ml_err *err)
{
    if (ml_json_check(output, 0, err) < 0)
        return ml_err_wrap(err, "it wrote no JSON");
    ML_AUTO_FREE char *kind = ml_json_find_string(output, "kind", NULL);
    ML_AUTO_FREE char *got = ml_json_find_string(output, "apiVersion", NULL);
    if (!kind || strcmp(kind, "ExecCredential") != 0)
        return ml_err_set(err, ML_EINVALID, "it wrote JSON, but no ExecCredential");
    if (!got || strcmp(got, api_version) != 0)
        return ml_err_set(err, ML_EINVALID,
                          "it answers with apiVersion %.64s, and the kubeconfig says %s; make them "
                          "the same",
                          got ? got : "(none)", api_version);
    struct ml_str status;
    if (!ml_json_find(output, &status, "status", NULL) || status.ptr[0] != '{')
        return ml_err_set(err, ML_EINVALID, "its ExecCredential has no status");
    return 0;
}

static int read_exec_expiry(struct ml_str output, int64_t *out, struct ml_err *err)
{
    struct ml_str raw;
    *out = INT64_MAX;
    if (!ml_json_find(output, &raw, "status", "expirationTimestamp", NULL) ||
        ml_str_is(raw, "null"))
        return 0;
    ML_AUTO_FREE char *text = find_status_text(output, "expirationTimestamp");
    if (!text || !ml_rfc3339_parse(ml_str_of(text), out))
        return ml_err_set(err, ML_EINVALID,
                          "its expirationTimestamp %.64s is not a time of RFC 3339",
                          text ? text : "");
    return 0;
}

static int read_exec_certificate(struct ml_str output, struct ml_exec_credential *credential,
                                 struct ml_err *err)
{
    credential->cert_pem = find_status_text(output, "clientCertificateData");
    credential->key_pem = find_status_text(output, "clientKeyData");
    if (!credential->cert_pem != !credential->key_pem)
        return ml_err_set(err, ML_EINVALID, "it gave a certificate or a key, not both");
    struct ml_tls_validity validity;
    if (!credential->cert_pem)
        return 0;
    if (ml_tls_check_pair(ml_str_of(credential->cert_pem), ml_str_of(credential->key_pem),
                          &validity, err) < 0)
        return err->kind;
    credential->not_before_ns = validity.not_before_ns;
    credential->not_after_ns = validity.not_after_ns;
    return 0;
}

int ml_exec_credential_parse(struct ml_str output, const char *api_version,
                             struct ml_exec_credential *out, struct ml_err *err)
{
    struct ml_exec_credential got = {0};
    if (check_exec_credential_kind(output, api_version, err) == 0 &&
        read_exec_expiry(output, &got.expires_ns, err) == 0 &&
        read_exec_certificate(output, &got, err) == 0) {
        got.token = find_status_text(output, "token");
        if (got.token || got.cert_pem) {
            *out = got;
            return 0;
        }
        ml_err_set(err, ML_EINVALID, "it gave neither a token nor a certificate");
    }
    ml_exec_credential_fini(&got);
    return err->kind;
}

void ml_exec_credential_fini(struct ml_exec_credential *credential)
{
    ml_wipe_free(credential->token);
    ml_wipe_free(credential->cert_pem);
    ml_wipe_free(credential->key_pem);
    *credential = (struct ml_exec_credential){0};
}
