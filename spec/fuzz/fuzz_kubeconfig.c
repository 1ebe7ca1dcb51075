/* Any bytes as a kubeconfig: parsed, then resolved under its own current-context and under one
 * that the input may or may not define. Whatever comes out must be whole, or an error that
 * says something. */
#include "base/clock.h"
#include "kube/kubeconfig_internal.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void resolve(const struct ml_kubefile *file, struct ml_clock *clock, const char *context)
{
    struct ml_kubeconfig *config = ml_new(struct ml_kubeconfig);
    struct ml_err err = ML_ERR_INIT;
    config->clock = clock;
    if (ml_kubeconfig_resolve(config, file, 1, context, &err) == 0) {
        ml_assert(config->server && config->source);
        ml_assert(!config->cert_pem == !config->key_pem);
        const char *authorization = ml_kubeconfig_authorization(config);
        ml_assert(!authorization || !strpbrk(authorization, "\r\n"));
    } else {
        ml_assert(err.kind != 0 && err.message[0]);
    }
    ml_kubeconfig_free(config);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct ml_clock_fake clock;
    struct ml_kubefile file = {0};
    struct ml_err err = ML_ERR_INIT;
    struct ml_str yaml = {(const char *)data, size};
    ml_clock_fake_init(&clock, 0);
    if (ml_kubefile_parse("fuzz/config", yaml, &file, &err) < 0)
        return 0;
    resolve(&file, &clock.clock, NULL);
    resolve(&file, &clock.clock, "a");
    ml_kubefile_fini(&file);
    return 0;
}
