/* Makes, checks and renews the certificates of a Secret. The lengths of life are cert-controller's
 * (open-policy-agent/cert-controller, pkg/rotator), the overlap is ours. */
#include "operator/webhook_pair.h"

#include "base/wipe.h"
#include "codec/base64.h"
#include "net/tls.h"

#define AUTHORITY_LIVES 10                           /* times a server's certificate */
#define EARLY_NS        (INT64_C(300) * ML_NS_PER_S) /* tls.c: before it was made */
#define PEM_MAX         ((size_t)64 * 1024)          /* of one key of the Secret */
#define END_OF_PEM      "-----END CERTIFICATE-----"

struct ml_webhook_term ml_webhook_term_of(int64_t cert_s)
{
    struct ml_webhook_term term = {.cert_s = cert_s ? cert_s : ML_WEBHOOK_CERT_S};
    term.overlap_s = ML_MAX((int64_t)1, ML_MIN(ML_WEBHOOK_OVERLAP_S, term.cert_s / 10));
    return term;
}

void ml_webhook_pair_fini(struct ml_webhook_pair *pair)
{
    free(pair->ca);
    free(pair->cert);
    ml_wipe_free(pair->ca_key);
    ml_wipe_free(pair->key);
    *pair = (struct ml_webhook_pair){.ca = NULL};
}

static void authority_release(struct ml_tls_authority **pp)
{
    ml_tls_authority_free(*pp);
}

/* ---- making ---- */

/* A new server's certificate in place of the one there is. */
static int make_certificate(struct ml_webhook_pair *pair, const struct ml_tls_authority *authority,
                            const struct ml_webhook_term *term, struct ml_clock *clock,
                            const struct ml_webhook_names *names, struct ml_err *err)
{
    const struct ml_tls_authority_opts opts = {
        .clock = clock,
        .valid_s = term->cert_s,
        .names = names->names,
        .name_count = names->count,
    };
    struct ml_tls_identity identity;
    int r = ml_tls_authority_identify(authority, &opts, &identity, err);
    if (r < 0)
        return r;
    free(pair->cert);
    ml_wipe_free(pair->key);
    pair->cert = ml_take(&identity.cert_pem);
    pair->key = ml_take(&identity.key_pem);
    ml_tls_identity_fini(&identity);
    return 0;
}

/* A new authority before those that there are. */
static int make_authority(struct ml_webhook_pair *pair, const struct ml_webhook_term *term,
                          struct ml_clock *clock, struct ml_tls_authority **out, struct ml_err *err)
{
    ML_AUTO(authority_release) struct ml_tls_authority *authority = NULL;
    int r = ml_tls_authority_begin(clock, AUTHORITY_LIVES * term->cert_s, &authority, err);
    if (r < 0)
        return r;
    char *key = ml_tls_authority_key(authority);
    if (!key)
        return ml_err_set(err, ML_ETLS, "the key of a new authority cannot be written");
    char *all = ml_asprintf("%s%s", ml_tls_authority_pem(authority), pair->ca ? pair->ca : "");
    free(pair->ca);
    ml_wipe_free(pair->ca_key);
    pair->ca = all;
    pair->ca_key = key;
    *out = ml_take(&authority);
    return 0;
}

int ml_webhook_pair_make(const struct ml_webhook_term *term, struct ml_clock *clock,
                         const struct ml_webhook_names *names, struct ml_webhook_pair *out,
                         struct ml_err *err)
{
    ML_AUTO(authority_release) struct ml_tls_authority *authority = NULL;
    ML_AUTO(ml_webhook_pair_fini) struct ml_webhook_pair pair = {.ca = NULL};
    int r = make_authority(&pair, term, clock, &authority, err);
    if (r == 0)
        r = make_certificate(&pair, authority, term, clock, names, err);
    if (r < 0)
        return r;
    *out = pair;
    pair = (struct ml_webhook_pair){.ca = NULL};
    return 0;
}

/* ---- the Secret ---- */

static int read_text(struct ml_str secret, const char *name, char **out, struct ml_err *err)
{
    ML_AUTO(ml_wipe_buf) struct ml_buf text = ML_BUF_INIT;
    ML_AUTO_WIPE char *encoded = ml_json_find_string(secret, "data", name, NULL);
    ml_buf_init(&text, PEM_MAX);
    char *room = ml_buf_reserve(&text, PEM_MAX - 1); /* in one piece, to be wiped */
    if (!room || !encoded || strlen(encoded) > PEM_MAX ||
        !ml_base64_decode(ml_str_of(encoded), &text) || text.len == 0)
        return ml_err_set(err, ML_EINVALID, "it has no %s", name);
    *out = ml_str_dup(ml_buf_str(&text));
    return 0;
}

/* The length of the first certificate in `pem`. */
static size_t first_length(const char *pem)
{
    const char *end = strstr(pem, END_OF_PEM);
    size_t len = end ? (size_t)(end - pem) + strlen(END_OF_PEM) : strlen(pem);
    return len + strspn(pem + len, "\r\n");
}

static bool is_signed_by_any(const char *cert, const char *authorities)
{
    for (const char *each = authorities; *each; each += first_length(each))
        if (ml_tls_is_signed_by(ml_str_of(cert), (struct ml_str){each, first_length(each)}))
            return true;
    return false;
}

/* That this can be signed with. */
static int check_authority(const struct ml_webhook_pair *pair, struct ml_err *err)
{
    struct ml_tls_validity validity;
    if (ml_tls_check_ca(ml_str_of(pair->ca), err) < 0)
        return ml_err_wrap(err, "ca.crt");
    if (ml_tls_check_pair(ml_str_of(pair->ca), ml_str_of(pair->ca_key), &validity, err) < 0)
        return ml_err_wrap(err, "ca.crt and ca.key");
    return 0;
}

/* That the server can show this, and that who trusts the authorities trusts it. */
static int check_pair(const struct ml_webhook_pair *pair, struct ml_err *err)
{
    struct ml_tls_validity validity;
    if (ml_tls_check_pair(ml_str_of(pair->cert), ml_str_of(pair->key), &validity, err) < 0)
        return ml_err_wrap(err, "tls.crt and tls.key");
    if (check_authority(pair, err) < 0)
        return err->kind;
    if (!is_signed_by_any(pair->cert, pair->ca))
        return ml_err_set(err, ML_EINVALID, "no authority of ca.crt has signed tls.crt");
    return 0;
}

int ml_webhook_pair_read(struct ml_str secret, struct ml_webhook_pair *out, struct ml_err *err)
{
    ML_AUTO(ml_webhook_pair_fini) struct ml_webhook_pair pair = {.ca = NULL};
    if (read_text(secret, "ca.crt", &pair.ca, err) < 0 ||
        read_text(secret, "ca.key", &pair.ca_key, err) < 0 ||
        read_text(secret, "tls.crt", &pair.cert, err) < 0 ||
        read_text(secret, "tls.key", &pair.key, err) < 0 || check_pair(&pair, err) < 0)
        return err->kind;
    *out = pair;
    pair = (struct ml_webhook_pair){.ca = NULL};
    return 0;
}

int ml_webhook_pair_repair(struct ml_str secret, const struct ml_webhook_term *term,
                           struct ml_clock *clock, const struct ml_webhook_names *names,
                           struct ml_webhook_pair *out, struct ml_err *err)
{
    ML_AUTO(authority_release) struct ml_tls_authority *authority = NULL;
    ML_AUTO(ml_webhook_pair_fini) struct ml_webhook_pair pair = {.ca = NULL};
    struct ml_err lost;
    if (read_text(secret, "ca.crt", &pair.ca, &lost) < 0 ||
        read_text(secret, "ca.key", &pair.ca_key, &lost) < 0 || check_authority(&pair, &lost) < 0 ||
        ml_tls_authority_read(ml_str_of(pair.ca), ml_str_of(pair.ca_key), &authority, &lost) < 0)
        return ml_webhook_pair_make(term, clock, names, out, err);
    int r = make_certificate(&pair, authority, term, clock, names, err);
    if (r < 0)
        return r;
    *out = pair;
    pair = (struct ml_webhook_pair){.ca = NULL};
    return 0;
}

void ml_webhook_pair_copy(const struct ml_webhook_pair *pair, struct ml_webhook_pair *out)
{
    ml_webhook_pair_fini(out);
    *out = (struct ml_webhook_pair){ml_strdup(pair->ca), ml_strdup(pair->ca_key),
                                    ml_strdup(pair->cert), ml_strdup(pair->key)};
}

static void write_text(struct ml_json_writer *writer, const char *name, const char *text)
{
    ML_AUTO(ml_wipe_buf) struct ml_buf encoded = ML_BUF_INIT;
    if (ml_buf_reserve(&encoded, strlen(text) * 2))
        ml_base64_encode(ml_str_of(text), &encoded);
    ml_json_put_string(writer, name, ml_buf_str(&encoded));
}

void ml_webhook_pair_write(const struct ml_webhook_pair *pair, struct ml_json_writer *writer)
{
    ml_json_begin_object(writer);
    write_text(writer, "ca.crt", pair->ca);
    write_text(writer, "ca.key", pair->ca_key);
    write_text(writer, "tls.crt", pair->cert);
    write_text(writer, "tls.key", pair->key);
    ml_json_end_object(writer);
}

/* ---- renewing ---- */

struct state {
    int64_t now_ns;
    struct ml_tls_validity cert, ca;
    bool is_signed_by_first; /* the server's certificate */
    bool has_names;
    bool has_others; /* authorities that are not in use any more */
};

static int look(const struct ml_webhook_pair *pair, struct ml_clock *clock,
                const struct ml_webhook_names *names, struct state *out, struct ml_err *err)
{
    struct ml_str cert = ml_str_of(pair->cert), ca = ml_str_of(pair->ca);
    out->now_ns = ml_clock_wall(clock);
    out->is_signed_by_first = ml_tls_is_signed_by(cert, ca);
    out->has_others = pair->ca[first_length(pair->ca)] != '\0';
    out->has_names = true;
    for (size_t i = 0; i < names->count; i++)
        out->has_names = out->has_names && ml_tls_has_name(cert, names->names[i]);
    int r = ml_tls_validity_of(cert, &out->cert, err);
    return r < 0 ? r : ml_tls_validity_of(ca, &out->ca, err);
}

/* Since when is it there? */
static bool is_older(const struct state *state, const struct ml_tls_validity *validity,
                     int64_t seconds)
{
    int64_t age_ns = state->now_ns - (validity->not_before_ns + EARLY_NS);
    return age_ns >= seconds * ML_NS_PER_S;
}

static bool is_left(const struct state *state, const struct ml_tls_validity *validity,
                    int64_t seconds)
{
    return validity->not_after_ns - state->now_ns >= seconds * ML_NS_PER_S;
}

static bool needs_authority(const struct state *state, const struct ml_webhook_term *term)
{
    return state->is_signed_by_first &&
           !is_left(state, &state->ca, term->cert_s + term->cert_s / 3);
}

/* One of a new authority only when everybody trusts that, or when nothing is left to lose. */
static bool needs_certificate(const struct state *state, const struct ml_webhook_term *term)
{
    bool is_over = !is_left(state, &state->cert, 0);
    if (!state->is_signed_by_first)
        return is_over || !state->has_others || is_older(state, &state->ca, term->overlap_s);
    return !state->has_names || !is_left(state, &state->cert, term->cert_s / 3);
}

int ml_webhook_pair_renew(struct ml_webhook_pair *pair, const struct ml_webhook_term *term,
                          struct ml_clock *clock, const struct ml_webhook_names *names,
                          bool *out_changed, struct ml_err *err)
{
    ML_AUTO(authority_release) struct ml_tls_authority *authority = NULL;
    struct state state;
    int r = look(pair, clock, names, &state, err);
    bool changed = false;
    if (r == 0 && needs_authority(&state, term)) {
        changed = true;
        r = make_authority(pair, term, clock, &authority, err);
    } else if (r == 0 && needs_certificate(&state, term)) {
        changed = true;
        r = ml_tls_authority_read(ml_str_of(pair->ca), ml_str_of(pair->ca_key), &authority, err);
        if (r == 0)
            r = make_certificate(pair, authority, term, clock, names, err);
    } else if (r == 0 && state.has_others && state.is_signed_by_first &&
               is_older(&state, &state.cert, term->overlap_s)) {
        changed = true;
        pair->ca[first_length(pair->ca)] = '\0';
    }
    if (r == 0)
        *out_changed = changed;
    return r;
}
