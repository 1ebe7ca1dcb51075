/* SHA-256, HMAC and secret random bytes, by libcrypto. */
#include "codec/crypto.h"

#include <limits.h>
#include <openssl/err.h>
#include <openssl/evp.h>
#include <openssl/hmac.h>
#include <openssl/rand.h>

void ml_sha256(struct ml_str bytes, unsigned char out[ML_SHA256_LEN])
{
    unsigned len = 0;
    const char *ptr = bytes.ptr ? bytes.ptr : "";
    int done = EVP_Digest(ptr, bytes.len, out, &len, EVP_sha256(), NULL);
    ml_assert(done == 1 && len == ML_SHA256_LEN);
}

void ml_hmac_sha256(struct ml_str key, struct ml_str bytes, unsigned char out[ML_SHA256_LEN])
{
    unsigned len = 0;
    const char *ptr = bytes.ptr ? bytes.ptr : "";
    ml_assert(key.len <= INT_MAX);
    /* A key that is NULL would mean that of the call before. */
    const unsigned char *done = HMAC(EVP_sha256(), key.ptr ? key.ptr : "", (int)key.len,
                                     (const unsigned char *)ptr, bytes.len, out, &len);
    ml_assert(done != NULL && len == ML_SHA256_LEN);
}

static void draw_from_seed(struct ml_random *random, unsigned char *out, size_t len)
{
    for (size_t at = 0; at < len; at += sizeof(uint64_t)) {
        uint64_t draw = ml_random_u64(random);
        memcpy(out + at, &draw, ML_MIN(len - at, sizeof draw));
    }
}

int ml_secret_bytes(struct ml_random *random, void *out, size_t len, struct ml_err *err)
{
    if (random->is_seeded) {
        draw_from_seed(random, out, len);
        return 0;
    }
    ml_assert(len <= INT_MAX);
    if (RAND_bytes(out, (int)len) == 1)
        return 0;
    ERR_clear_error();
    return ml_err_set(err, ML_EIO, "OpenSSL has no random bytes");
}

bool ml_hex_encode(struct ml_str bytes, struct ml_buf *out)
{
    static const char digits[] = "0123456789abcdef";
    char *room = ml_buf_reserve(out, 2 * bytes.len);
    if (!room)
        return false;
    for (size_t i = 0; i < bytes.len; i++) {
        *room++ = digits[(unsigned char)bytes.ptr[i] >> 4];
        *room++ = digits[(unsigned char)bytes.ptr[i] & 15];
    }
    out->len += 2 * bytes.len;
    return true;
}
