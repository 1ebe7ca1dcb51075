/* Any bytes as an OpenAPI document, and as the server's list of documents. Each copy is
 * JSON. */
#include "codec/json.h"
#include "kube/openapi.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct ml_str text = {(const char *)data, size};
    const struct ml_gvk gvk = {ML_STR("e.com"), ML_STR("v1"), ML_STR("App")};
    ML_AUTO(ml_buf_fini) struct ml_buf out = ML_BUF_INIT;
    struct ml_err err = ML_ERR_INIT;
    if (ml_openapi_schema(text, &gvk, &out, &err) == 0)
        ml_assert(ml_json_check(ml_buf_str(&out), 0, &err) == 0);
    else
        ml_assert(err.message[0]);
    ml_buf_clear(&out);
    if (ml_openapi_path(text, gvk.group, gvk.version, &out))
        ml_assert(ml_buf_str(&out).ptr[0] == '/');
    return 0;
}
