/* L2 net. What can be said of certificates before they are used: files that are exchanged while
 * the process runs are found half written, or one of a pair new and the other old. */
#pragma once

#include "base/err.h"

/* Of a certificate: wall time, ns since 1970. */
struct ml_tls_validity {
    int64_t not_before_ns;
    int64_t not_after_ns;
};

/* 0 when both are PEM, can be read without a password and belong together; `out` is the first
 * certificate's. ML_EINVALID says what is wrong. */
ML_NODISCARD int ml_tls_check_pair(struct ml_str cert_pem, struct ml_str key_pem,
                                   struct ml_tls_validity *out, struct ml_err *err);

/* 0 when there is at least one certificate in it, and none that cannot be read. ML_EINVALID. */
ML_NODISCARD int ml_tls_check_ca(struct ml_str pem, struct ml_err *err);
