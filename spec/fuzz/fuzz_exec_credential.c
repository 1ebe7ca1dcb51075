/* Any bytes as the output of an exec plugin. The result is a credential that can stand in a header
 * and in a handshake, or an error with a message. */
#include "base/base.h"
#include "kube/credentials.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct ml_exec_credential credential = {0};
    struct ml_err err = ML_ERR_INIT;
    struct ml_str output = {(const char *)data, size};
    if (ml_exec_credential_parse(output, ML_EXEC_V1, &credential, &err) < 0) {
        ml_assert(err.message[0] && !credential.token && !credential.cert_pem);
        return 0;
    }
    ml_assert(credential.token || credential.cert_pem);
    ml_assert(!credential.cert_pem == !credential.key_pem);
    ml_exec_credential_fini(&credential);
    return 0;
}
