/* host.x509 for the server's Lua: what the API server has to know of certificate requests and
 * certificates (DER) before it stores them, and signing by the cluster's authority, whose key Lua
 * never sees. Messages are those of Go's crypto/x509 where the API shows them. */
#include <openssl/err.h>
#include <openssl/x509v3.h>

#include "cluster/host/server_lua_internal.h"
#include "net/tls.h"

#define MALFORMED  "asn1: structure error"
#define USAGES_MAX 64
#define TRAILING   "asn1: syntax error: trailing data"

/* Go's message for a signature that is not the key's. */
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

/* NULL: it is a request that its own key has signed, and the caller frees *out. Else the text says
 * why it is none. */
static const char *read_request(struct ml_str der, X509_REQ **out)
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
    if (wrong)
        X509_REQ_free(request);
    else
        *out = request;
    return wrong;
}

/* ---- what a request asks for ---- */

/* [+1] */
static void push_asn1_text(lua_State *L, const ASN1_STRING *string)
{
    unsigned char *text = NULL;
    int len = ASN1_STRING_to_UTF8(&text, string);
    lua_pushlstring(L, text ? (const char *)text : "", len > 0 ? (size_t)len : 0);
    OPENSSL_free(text);
}

/* [-1] Appends the value on top to the list below it. */
static void append_value(lua_State *L)
{
    lua_rawseti(L, -2, (lua_Integer)lua_rawlen(L, -2) + 1);
}

/* [+0] Sets common_name, the last one, and organizations. */
static void set_subject(lua_State *L, const X509_NAME *subject)
{
    lua_newtable(L);
    for (int at = 0; at < X509_NAME_entry_count(subject); at++) {
        const X509_NAME_ENTRY *entry = X509_NAME_get_entry(subject, at);
        int nid = OBJ_obj2nid(X509_NAME_ENTRY_get_object(entry));
        if (nid != NID_commonName && nid != NID_organizationName)
            continue;
        push_asn1_text(L, X509_NAME_ENTRY_get_data(entry));
        if (nid == NID_commonName)
            lua_setfield(L, -3, "common_name");
        else
            append_value(L);
    }
    lua_setfield(L, -2, "organizations");
}

/* [+0] Appends the alternative names of one kind as a list, bytes as they stand. */
static void set_alt_names(lua_State *L, const char *field, const GENERAL_NAMES *names, int kind)
{
    lua_newtable(L);
    for (int i = 0; i < sk_GENERAL_NAME_num(names); i++) {
        int found = GEN_OTHERNAME;
        const ASN1_STRING *value = GENERAL_NAME_get0_value(sk_GENERAL_NAME_value(names, i), &found);
        if (found != kind)
            continue;
        lua_pushlstring(L, (const char *)ASN1_STRING_get0_data(value),
                        (size_t)ASN1_STRING_length(value));
        append_value(L);
    }
    lua_setfield(L, -2, field);
}

/* [+1] */
static void push_wishes(lua_State *L, X509_REQ *request)
{
    STACK_OF(X509_EXTENSION) *wanted = X509_REQ_get_extensions(request);
    GENERAL_NAMES *names = X509V3_get_d2i(wanted, NID_subject_alt_name, NULL, NULL);
    lua_newtable(L);
    lua_pushliteral(L, "");
    lua_setfield(L, -2, "common_name");
    set_subject(L, X509_REQ_get_subject_name(request));
    set_alt_names(L, "dns_names", names, GEN_DNS);
    set_alt_names(L, "email_addresses", names, GEN_EMAIL);
    set_alt_names(L, "ip_addresses", names, GEN_IPADD);
    set_alt_names(L, "uris", names, GEN_URI);
    GENERAL_NAMES_free(names);
    sk_X509_EXTENSION_pop_free(wanted, X509_EXTENSION_free);
}

/* ---- certificates ---- */

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
    struct ml_str der = binding_check_str(L, argument);
    luaL_argcheck(L, der.len <= INT32_MAX, argument, "too long");
    return der;
}

/* request(der) -> what it asks for | nil, message */
ML_RAISES static int x509_request(lua_State *L)
{
    struct ml_str der = check_der(L, 1);
    X509_REQ *request = NULL;
    const char *wrong = read_request(der, &request);
    if (!wrong)
        push_wishes(L, request);
    X509_REQ_free(request);
    ERR_clear_error();
    return wrong ? binding_push_error(L, wrong) : 1;
}

/* certificates(der) -> count | nil, message */
ML_RAISES static int x509_certificates(lua_State *L)
{
    int count = count_certificates(check_der(L, 1));
    ERR_clear_error();
    if (count < 0)
        return binding_push_error(L, "x509: malformed certificate");
    lua_pushinteger(L, count);
    return 1;
}

/* The list at `index`; its texts belong to the table there. */
ML_RAISES static size_t check_usages(lua_State *L, int index, struct ml_str *out)
{
    luaL_checktype(L, index, LUA_TTABLE);
    size_t count = lua_rawlen(L, index);
    luaL_argcheck(L, count <= USAGES_MAX, index, "too many");
    for (size_t i = 0; i < count; i++) {
        lua_rawgeti(L, index, (lua_Integer)i + 1);
        luaL_argcheck(L, lua_type(L, -1) == LUA_TSTRING, index, "a list of texts");
        out[i].ptr = lua_tolstring(L, -1, &out[i].len);
        lua_pop(L, 1);
    }
    return count;
}

/* sign(der, usages, not_before, not_after) -> PEM | nil, message */
ML_RAISES static int x509_sign(lua_State *L)
{
    struct ml_server_lua *lua = server_lua_of(L);
    struct ml_str usages[USAGES_MAX];
    struct ml_err err = ML_ERR_INIT;
    struct ml_tls_order order = {.request = check_der(L, 1), .usages = usages};
    order.usage_count = check_usages(L, 2, usages);
    order.not_before_s = luaL_checkinteger(L, 3);
    order.not_after_s = luaL_checkinteger(L, 4);
    const struct ml_tls_authority *authority = ml_server_lua_authority(lua, &err);
    ml_buf_clear(&lua->work);
    if (!authority || ml_tls_authority_sign(authority, &order, &lua->work, &err) < 0)
        return binding_push_error(L, err.message);
    lua_pushlstring(L, lua->work.ptr, lua->work.len);
    return 1;
}

/* authority() -> its certificate, PEM | nil, message */
ML_RAISES static int x509_authority(lua_State *L)
{
    struct ml_err err = ML_ERR_INIT;
    const struct ml_tls_authority *authority = ml_server_lua_authority(server_lua_of(L), &err);
    if (!authority)
        return binding_push_error(L, err.message);
    lua_pushstring(L, ml_tls_authority_pem(authority));
    return 1;
}

int binding_open_x509(lua_State *L)
{
    static const luaL_Reg functions[] = {{"request", x509_request},
                                         {"certificates", x509_certificates},
                                         {"sign", x509_sign},
                                         {"authority", x509_authority},
                                         {NULL, NULL}};
    luaL_newlib(L, functions);
    return 1;
}
