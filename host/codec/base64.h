/* L1 codec. Base64 (RFC 4648, standard alphabet with padding): kubeconfig data, Secrets. */
#pragma once

#include "base/buf.h"
#include "base/err.h"

bool ml_base64_encode(struct ml_str bytes, struct ml_buf *out); /* false: buffer full */

/* Line ends and spaces between the characters are skipped, as Go's decoder does for '\r' and
 * '\n'. False, with `out` as it was, for any other stray character or wrong padding. */
ML_NODISCARD bool ml_base64_decode(struct ml_str text, struct ml_buf *out);

/* Takes only the exact form that ml_base64_encode writes. ML_EINVALID says where it is wrong.
 * ML_ELIMIT: the buffer is full. */
ML_NODISCARD int ml_base64_decode_strict(struct ml_str text, struct ml_buf *out,
                                         struct ml_err *err);
