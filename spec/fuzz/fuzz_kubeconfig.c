/* Any bytes as a kubeconfig: parsed, then resolved under its own current-context and under one
 * that the input may or may not define. The result must be whole, or an error with a message. */
#include "codec/json.h"
#include "kube/credentials.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void check_impersonation(const struct ml_kubeconfig *config)
{
    for (size_t i = 0; i < config->impersonation_count; i++) {
        ml_assert(!strpbrk(config->impersonation[i].name, ": \r\n"));
        ml_assert(!strpbrk(config->impersonation[i].value, "\r\n"));
    }
}

/* The plugin gets JSON, with any kubeconfig. */
static void check_exec(const struct ml_kubeconfig *config)
{
    ML_AUTO(ml_buf_fini) struct ml_buf info = ML_BUF_INIT;
    struct ml_err err = ML_ERR_INIT;
    config->exec->provide_cluster_info = true;
    ml_assert(config->exec->argv.items[0][0] && !config->authorization);
    ml_exec_info_write(config, &info);
    ml_assert(ml_json_check(ml_buf_str(&info), 0, &err) == 0);
}

static void resolve(const struct ml_kubefile *file, const char *context)
{
    struct ml_kubeconfig *config = ml_new(struct ml_kubeconfig);
    struct ml_err err = ML_ERR_INIT;
    if (ml_kubeconfig_resolve(config, file, 1, context, &err) == 0) {
        ml_assert(config->server && config->source);
        ml_assert(!config->tls.cert_pem.len == !config->tls.key_pem.len);
        ml_assert(!config->authorization || !strpbrk(config->authorization, "\r\n"));
        check_impersonation(config);
        if (config->exec)
            check_exec(config);
    } else {
        ml_assert(err.kind != 0 && err.message[0]);
    }
    ml_kubeconfig_free(config);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct ml_kubefile file = {0};
    struct ml_err err = ML_ERR_INIT;
    struct ml_str yaml = {(const char *)data, size};
    if (ml_kubefile_parse("fuzz/config", yaml, &file, &err) < 0)
        return 0;
    resolve(&file, NULL);
    resolve(&file, "a");
    ml_kubefile_fini(&file);
    return 0;
}
