/* L1 codec. Digests, and the random bytes of secrets, from OpenSSL's libcrypto. They stand here
 * and not beside TLS (host/net), as they turn bytes into bytes and know neither loop nor peer; base
 * links no library. */
#pragma once

#include "base/buf.h"
#include "base/err.h"
#include "base/random.h"
#include "base/str.h"

#define ML_SHA256_LEN 32

void ml_sha256(struct ml_str bytes, unsigned char out[ML_SHA256_LEN]); /* FIPS 180-4 */
/* RFC 2104. `key` has at most INT_MAX bytes. */
void ml_hmac_sha256(struct ml_str key, struct ml_str bytes, unsigned char out[ML_SHA256_LEN]);

/* Bytes that nobody can guess, from OpenSSL's generator, which the kernel seeds; where a seed
 * repeats the run (`random` is seeded: in tests), they come from the seed. ML_EIO: there are none;
 * `out` must not be used. The caller wipes what it need not keep. */
ML_NODISCARD int ml_secret_bytes(struct ml_random *random, void *out, size_t len,
                                 struct ml_err *err);

/* Appends the bytes in lower case hexadecimal digits. False: the buffer is full. */
bool ml_hex_encode(struct ml_str bytes, struct ml_buf *out);
