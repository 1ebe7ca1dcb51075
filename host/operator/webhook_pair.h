/* L6 operator. The certificates of the webhook server as a Secret keeps them, and when they are
 * renewed. No input or output: webhook_secret.c reads and writes the Secret.
 *
 *   tls.crt, tls.key   what the server shows
 *   ca.crt             the authorities to trust: the one in use, then the one before it
 *   ca.key             of the first
 *
 * A server's certificate is renewed when a third of its life is left. An authority, which lives ten
 * times as long, is replaced in steps, so that no call fails: its successor is added to ca.crt;
 * once all API servers trust it (after `overlap_s`) it signs a new server's certificate; once all
 * replicas show that one, the old authority goes. */
#pragma once

#include "codec/json.h"
#include "net/tls.h"

#define ML_WEBHOOK_CERT_S     (INT64_C(365) * 24 * 3600)
#define ML_WEBHOOK_OVERLAP_S  INT64_C(600)
#define ML_WEBHOOK_CERT_MIN_S 30

struct ml_webhook_pair {
    char *ca, *ca_key, *cert, *key; /* PEM; the keys are secret. NULL: none */
};

struct ml_webhook_term {
    int64_t cert_s;    /* how long a server's certificate is good for */
    int64_t overlap_s; /* until everybody has seen a change */
};

struct ml_webhook_names {
    const char *const *names; /* host names and addresses beside localhost */
    size_t count;
};

/* `cert_s` 0: a year. The overlap is ten minutes, of short terms a tenth of them. */
struct ml_webhook_term ml_webhook_term_of(int64_t cert_s);

void ml_webhook_pair_fini(struct ml_webhook_pair *pair); /* the keys are wiped */

/* A new authority and a certificate of it. ML_EINVALID: a name that no certificate can have;
 * ML_ETLS. */
ML_NODISCARD int ml_webhook_pair_make(const struct ml_webhook_term *term, struct ml_clock *clock,
                                      const struct ml_webhook_names *names,
                                      struct ml_webhook_pair *out, struct ml_err *err);

/* From a Secret's JSON. ML_EINVALID: a key is missing, they do not belong together, or no authority
 * of ca.crt has signed the certificate. */
ML_NODISCARD int ml_webhook_pair_read(struct ml_str secret, struct ml_webhook_pair *out,
                                      struct ml_err *err);
/* From the JSON of a Secret that ml_webhook_pair_read refuses: with its authority, if that is
 * sound, so that nobody has to trust another one; else all new. Errors as ml_webhook_pair_make. */
ML_NODISCARD int ml_webhook_pair_repair(struct ml_str secret, const struct ml_webhook_term *term,
                                        struct ml_clock *clock,
                                        const struct ml_webhook_names *names,
                                        struct ml_webhook_pair *out, struct ml_err *err);
/* `out` holds a pair or is zeroed. */
void ml_webhook_pair_copy(const struct ml_webhook_pair *pair, struct ml_webhook_pair *out);
/* The Secret's `data`, as an object. */
void ml_webhook_pair_write(const struct ml_webhook_pair *pair, struct ml_json_writer *writer);

/* Does what is due at this time: at most one of the steps above. `out_changed`: whether it did, and
 * `pair` has to be stored. ML_EINVALID, ML_ETLS. */
ML_NODISCARD int ml_webhook_pair_renew(struct ml_webhook_pair *pair,
                                       const struct ml_webhook_term *term, struct ml_clock *clock,
                                       const struct ml_webhook_names *names, bool *out_changed,
                                       struct ml_err *err);
