/* host.x509 for the host's own Lua: what the API server has to know of certificate requests and
 * certificates (DER) before it stores them. Messages are those of Go's crypto/x509 where the API
 * shows them. */
#include <openssl/err.h>
#include <openssl/x509.h>

#include "cluster/trusted_internal.h"

#define MALFORMED "asn1: structure error"
#define TRAILING  "asn1: syntax error: trailing data"

/* Whether one of the subject's organizations is `wanted`. */
static bool has_organization(const X509_NAME *subject, struct ml_str wanted)
{
    for (int at = -1;;) {
        at = X509_NAME_get_index_by_NID(subject, NID_organizationName, at);
        if (at < 0)
            return false;
        const ASN1_STRING *value = X509_NAME_ENTRY_get_data(X509_NAME_get_entry(subject, at));
        struct ml_str found = {.ptr = (const char *)ASN1_STRING_get0_data(value),
                               .len = (size_t)ASN1_STRING_length(value)};
        if (ml_str_eq(found, wanted))
            return true;
    }
}

/* What Go says of a signature that is not the key's. */
static const char *unverified(EVP_PKEY *key)
{
    switch (key ? EVP_PKEY_base_id(key) : EVP_PKEY_NONE) {
    case EVP_PKEY_RSA:
        return "crypto/rsa: verification error";
    case EVP_PKEY_EC:
        return "x509: ECDSA verification failure";
    case EVP_PKEY_ED25519:
        return "x509: Ed25519 verification failure";
    default:
        return "x509: cannot verify signature: algorithm unimplemented";
    }
}

/* NULL when it is a request that its own key has signed; or what is wrong with it. */
static const char *check_request(struct ml_str der, struct ml_str wanted, bool *out_has)
{
    const unsigned char *at = (const unsigned char *)der.ptr;
    X509_REQ *request = d2i_X509_REQ(NULL, &at, (long)der.len);
    if (!request)
        return MALFORMED;
    const char *wrong = NULL;
    EVP_PKEY *key = X509_REQ_get0_pubkey(request);
    if (at != (const unsigned char *)der.ptr + der.len)
        wrong = TRAILING;
    else if (!key || X509_REQ_verify(request, key) != 1)
        wrong = unverified(key);
    else
        *out_has = has_organization(X509_REQ_get_subject_name(request), wanted);
    X509_REQ_free(request);
    return wrong;
}

/* How many certificates there are, one behind the other; -1 when one cannot be read. */
static int count_certificates(struct ml_str der)
{
    const unsigned char *at = (const unsigned char *)der.ptr, *end = at + der.len;
    for (int count = 0;; count++) {
        if (at == end)
            return count;
        X509 *cert = d2i_X509(NULL, &at, end - at);
        if (!cert)
            return -1;
        X509_free(cert);
    }
}

ML_RAISES static struct ml_str check_der(lua_State *L, int argument)
{
    struct ml_str der = host_check_str(L, argument);
    luaL_argcheck(L, der.len <= INT32_MAX, argument, "too long");
    return der;
}

/* request(der, organization) -> has | nil, message */
ML_RAISES static int x509_request(lua_State *L)
{
    struct ml_str der = check_der(L, 1), wanted = host_check_str(L, 2);
    bool has = false;
    const char *wrong = check_request(der, wanted, &has);
    ERR_clear_error();
    if (wrong)
        return host_push_error(L, wrong);
    lua_pushboolean(L, has);
    return 1;
}

/* certificates(der) -> count | nil, message */
ML_RAISES static int x509_certificates(lua_State *L)
{
    int count = count_certificates(check_der(L, 1));
    ERR_clear_error();
    if (count < 0)
        return host_push_error(L, "x509: malformed certificate");
    lua_pushinteger(L, count);
    return 1;
}

int host_open_x509(lua_State *L)
{
    static const luaL_Reg functions[] = {
        {"request", x509_request}, {"certificates", x509_certificates}, {NULL, NULL}};
    luaL_newlib(L, functions);
    return 1;
}
