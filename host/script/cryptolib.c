/* What moonloop/crypto.lua builds on: random bytes, digests, hexadecimal digits. The randomness is
 * OpenSSL's, and that of the world's seed in tests (codec/crypto.h). A run that draws any has no
 * read set, as with math.random. Added to the primitives of the library by declare.c. */
#include "codec/crypto.h"
#include "script/reads.h"

#define ALPHABET_MAX 256
#define DRAWN_MAX    256 /* bytes at a time */

/* Why no randomness may be drawn now; NULL: it may. What is drawn while a file loads is another
 * value in each process and after each edit: objects made of it would change with every restart. */
static const char *why_not_now(lua_State *L)
{
    return script_of(L)->files ? "only in a function of the controller: what is drawn while the "
                                 "file loads is lost with the process"
                               : NULL;
}

/* Fills `out`; -1 when there are no random bytes. */
static int draw_bytes(lua_State *L, void *out, size_t len, struct ml_err *err)
{
    reads_give_up(script_reads_now(L), "it draws random numbers");
    return ml_secret_bytes(&script_of(L)->random, out, len, err);
}

/* random_bytes(count) -> bytes | nil, why */
ML_RAISES static int host_random_bytes(lua_State *L)
{
    lua_Integer count = luaL_checkinteger(L, 1);
    struct ml_err err;
    luaL_Buffer bytes;
    if (count < 1 || count > SCRIPT_RANDOM_MAX)
        return script_push_refusal(L, "expected a whole number from 1 to 65536");
    if (why_not_now(L))
        return script_push_refusal(L, why_not_now(L));
    char *room = luaL_buffinitsize(L, &bytes, (size_t)count);
    if (draw_bytes(L, room, (size_t)count, &err) < 0)
        return luaL_error(L, "%s", err.message);
    luaL_pushresultsize(&bytes, (size_t)count);
    return 1;
}

/* uuid() -> text | nil, why */
ML_RAISES static int host_uuid(lua_State *L)
{
    uint64_t bits[2];
    char text[ML_UUID_LEN + 1];
    struct ml_err err;
    if (why_not_now(L))
        return script_push_refusal(L, why_not_now(L));
    if (draw_bytes(L, bits, sizeof bits, &err) < 0)
        return luaL_error(L, "%s", err.message);
    ml_uuid_format(bits[0], bits[1], text);
    lua_pushlstring(L, text, ML_UUID_LEN);
    return 1;
}

static bool is_alphabet(struct ml_str letters)
{
    bool seen[ALPHABET_MAX] = {false};
    for (size_t i = 0; i < letters.len; i++) {
        bool *is_seen = &seen[(unsigned char)letters.ptr[i]];
        if (*is_seen)
            return false;
        *is_seen = true;
    }
    return letters.len >= 2;
}

/* Fills `out` with letters that are all equally likely: a byte beyond the last multiple of their
 * number is discarded. -1 when there are no random bytes. */
static int draw_letters(lua_State *L, struct ml_str letters, char *out, size_t len,
                        struct ml_err *err)
{
    unsigned char bytes[DRAWN_MAX];
    size_t usable = ALPHABET_MAX - ALPHABET_MAX % letters.len, made = 0;
    int r = 0;
    while (made < len && r == 0) {
        r = draw_bytes(L, bytes, sizeof bytes, err);
        for (size_t i = 0; i < sizeof bytes && made < len && r == 0; i++)
            if (bytes[i] < usable)
                out[made++] = letters.ptr[bytes[i] % letters.len];
    }
    explicit_bzero(bytes, sizeof bytes);
    return r;
}

/* password(length, alphabet) -> text | nil, why */
ML_RAISES static int host_password(lua_State *L)
{
    lua_Integer length = luaL_checkinteger(L, 1);
    struct ml_str alphabet = script_check_str(L, 2);
    char text[SCRIPT_PASSWORD_MAX];
    struct ml_err err;
    if (length < 1 || length > SCRIPT_PASSWORD_MAX)
        return script_push_refusal(L, "length: expected a whole number from 1 to 1024");
    if (!is_alphabet(alphabet))
        return script_push_refusal(L, "alphabet: expected 2 to 256 bytes, each of them once");
    if (why_not_now(L))
        return script_push_refusal(L, why_not_now(L));
    if (draw_letters(L, alphabet, text, (size_t)length, &err) < 0)
        return luaL_error(L, "%s", err.message);
    lua_pushlstring(L, text, (size_t)length);
    explicit_bzero(text, sizeof text);
    return 1;
}

/* What a digest reads at once: no deadline holds meanwhile. */
ML_RAISES static struct ml_str check_input(lua_State *L, int index)
{
    struct ml_str bytes = script_check_str(L, index);
    if (bytes.len > SCRIPT_JSON_MAX)
        luaL_error(L, "more than 3 MiB");
    return bytes;
}

/* sha256(bytes) -> bytes */
ML_RAISES static int host_sha256(lua_State *L)
{
    unsigned char digest[ML_SHA256_LEN];
    ml_sha256(check_input(L, 1), digest);
    lua_pushlstring(L, (const char *)digest, sizeof digest);
    return 1;
}

/* hmac_sha256(key, bytes) -> bytes */
ML_RAISES static int host_hmac_sha256(lua_State *L)
{
    unsigned char digest[ML_SHA256_LEN];
    ml_hmac_sha256(check_input(L, 1), check_input(L, 2), digest);
    lua_pushlstring(L, (const char *)digest, sizeof digest);
    return 1;
}

/* hex(bytes) -> text */
ML_RAISES static int host_hex(lua_State *L)
{
    struct ml_str bytes = check_input(L, 1);
    struct ml_buf *out = &script_of(L)->outgoing;
    ml_buf_clear(out);
    out->len_max = 2 * SCRIPT_JSON_MAX;
    if (!ml_hex_encode(bytes, out))
        return luaL_error(L, "too large");
    script_charge_work(L);
    lua_pushlstring(L, out->ptr, out->len);
    return 1;
}

ML_RAISES void script_add_crypto(lua_State *L)
{
    static const luaL_Reg functions[] = {
        {"hex", host_hex},
        {"hmac_sha256", host_hmac_sha256},
        {"password", host_password},
        {"random_bytes", host_random_bytes},
        {"sha256", host_sha256},
        {"uuid", host_uuid},
        {NULL, NULL},
    };
    luaL_setfuncs(L, functions, 0);
}
