/* L2 net, private to tls_authority.c and tls_sign.c. */
#pragma once

#include "net/tls_authority.h"
#include "net/tls_openssl.h"

struct ml_tls_authority {
    struct ml_tls_pair pair;
    char *pem; /* of the certificate */
};

bool tls_certificate_set_serial(X509 *cert);
/* `value` as openssl's configuration files write it. */
bool tls_certificate_add(X509 *cert, X509 *issuer, int nid, const char *value);
/* NULL when OpenSSL fails. */
char *tls_certificate_pem(X509 *cert);
