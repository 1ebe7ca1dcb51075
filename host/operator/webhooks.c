/* Puts the parts of the webhooks together: server, certificate, and the objects that trust it.
 * `moonloop dev` uses webhook_server.h alone. */
#include "operator/webhooks.h"

#include <openssl/ssl.h>

#include "base/wipe.h"
#include "net/tls.h"
#include "operator/files.h"
#include "operator/webhook_bundles.h"
#include "operator/webhook_secret.h"
#include "operator/webhook_server.h"

#define PEM_MAX          ((size_t)256 * 1024) /* of a file */
#define STRANGER_VALID_S INT64_C(3600)        /* the certificate that nobody trusts */
#define NAMES_MAX        4

struct ml_webhooks {
    struct ml_webhooks_opts opts; /* strings owned */
    struct ml_webhook_server *server;
    char *names[NAMES_MAX]; /* of the certificate */
    size_t name_count;
    char *shown; /* the certificate that the server shows, PEM; NULL: a stranger's */

    struct ml_path_watch *files; /* of --webhook-cert-dir; else NULL */
    struct ml_err trouble;       /* with them */
    struct ml_webhook_secret *secret;
    struct ml_webhook_bundles *bundles;
};

/* ---- the certificate that is shown ---- */

/* A pair that is no good leaves the one that is shown. */
static int show(struct ml_webhooks *self, const char *cert_pem, const char *key_pem,
                struct ml_err *err)
{
    struct ssl_ctx_st *tls;
    struct ml_tls_validity validity;
    if (self->shown && strcmp(self->shown, cert_pem) == 0)
        return 0;
    int r = ml_tls_check_pair(ml_str_of(cert_pem), ml_str_of(key_pem), &validity, err);
    if (r == 0)
        r = ml_tls_server_context(ml_str_of(cert_pem), ml_str_of(key_pem), &tls, err);
    if (r < 0)
        return r;
    ml_webhook_server_set_tls(self->server, tls);
    SSL_CTX_free(tls);
    free(self->shown);
    self->shown = ml_strdup(cert_pem);
    int64_t left_ns = ml_ns_between(ml_clock_wall(ml_loop_clock(self->opts.loop)),
                                    validity.not_after_ns);
    if (left_ns < 0)
        ml_error(
            self->opts.log, "host", "the certificate of webhooks has expired",
            ML_S("source", self->opts.cert_dir ? self->opts.cert_dir : self->opts.cert_secret));
    ml_info(self->opts.log, "host", "webhooks show a new certificate",
            ML_F("seconds", (double)left_ns / (double)ML_NS_PER_S));
    return 0;
}

static void on_pair(void *context, const struct ml_webhook_pair *pair)
{
    struct ml_webhooks *self = context;
    struct ml_err err = ML_ERR_INIT;
    /* Nobody may meet a certificate before its authority is trusted: webhook_pair.h leaves the time
     * for that. */
    ml_webhook_bundles_set(self->bundles, pair->ca);
    if (show(self, pair->cert, pair->key, &err) < 0)
        ml_error(self->opts.log, "host", "the certificate of webhooks is not used",
                 ML_ERR_FIELDS(&err));
}

/* ---- a folder of somebody else ---- */

static char *read_pem(const struct ml_webhooks *self, const char *name, struct ml_err *err)
{
    ML_AUTO_FREE char *path = ml_asprintf("%s/%s", self->opts.cert_dir, name);
    FILE *file = fopen(path, "re");
    char *text = ml_zalloc(PEM_MAX);
    size_t len = file ? fread(text, 1, PEM_MAX - 1, file) : 0;
    if (file)
        fclose(file);
    struct ml_buf pem = {.ptr = text, .len = len};
    ml_buf_drop_byte_order_marks(&pem);
    text[pem.len] = '\0';
    if (pem.len > 0)
        return text;
    ml_wipe_free(text);
    ml_err_set(err, ML_EIO, "--webhook-cert-dir: %s cannot be read", path);
    return NULL;
}

static bool on_files_changed(void *context)
{
    struct ml_webhooks *self = context;
    struct ml_err err = ML_ERR_INIT;
    ML_AUTO_FREE char *cert = read_pem(self, "tls.crt", &err);
    ML_AUTO_WIPE char *key = cert ? read_pem(self, "tls.key", &err) : NULL;
    bool is_shown = key && show(self, cert, key, &err) == 0;
    if (!is_shown && strcmp(err.message, self->trouble.message) != 0)
        ml_error(self->opts.log, "host",
                 self->shown ? "new certificate of webhooks refused; the last one is shown"
                             : "webhooks have no certificate",
                 ML_ERR_FIELDS(&err));
    self->trouble = err;
    return is_shown;
}

/* ---- parts ---- */

static bool find_target(void *context, struct ml_str name, struct ml_webhook_target *out)
{
    const struct ml_webhooks *self = context;
    return ml_scripts_webhook(ml_operator_scripts(self->opts.operator), name, out);
}

static bool next_target(void *context, size_t *cursor, struct ml_webhook_target *out)
{
    const struct ml_webhooks *self = context;
    return ml_scripts_next_webhook(ml_operator_scripts(self->opts.operator), cursor, out);
}

static bool may_write(void *context)
{
    const struct ml_webhooks *self = context;
    return ml_operator_leads(self->opts.operator);
}

static void on_live(void *context)
{
    struct ml_webhooks *self = context;
    struct ml_webhook_target target;
    for (size_t cursor = 0; next_target(self, &cursor, &target);)
        ml_webhook_server_expect(self->server, ml_script_declaration(target.script));
    if (self->bundles)
        ml_webhook_bundles_again(self->bundles);
}

int ml_webhooks_url_host(const char *url, char **out_host, struct ml_err *err)
{
    struct ml_str rest = ml_str_of(url);
    if (ml_str_starts(rest, "https://")) {
        rest = (struct ml_str){rest.ptr + strlen("https://"), rest.len - strlen("https://")};
        bool is_v6 = rest.len > 0 && rest.ptr[0] == '[';
        struct ml_str host = is_v6 ? (struct ml_str){rest.ptr + 1, rest.len - 1} : rest;
        host = ml_str_cut(&host, is_v6 ? ']' : ':');
        if (host.len > 0 && !memchr(rest.ptr, '/', rest.len) && !memchr(rest.ptr, '?', rest.len) &&
            !memchr(rest.ptr, '@', rest.len)) {
            *out_host = ml_str_dup(host);
            return 0;
        }
    }
    return ml_err_set(err, ML_EINVALID, "--webhook-url %s: expected https://HOST:PORT", url);
}

static int make_names(struct ml_webhooks *self, struct ml_err *err)
{
    const struct ml_webhooks_opts *opts = &self->opts;
    self->names[self->name_count++] = ml_asprintf("%s.%s.svc", opts->service, opts->ns);
    self->names[self->name_count++] = ml_asprintf("%s.%s.svc.cluster.local", opts->service,
                                                  opts->ns);
    if (!opts->url)
        return 0;
    int r = ml_webhooks_url_host(opts->url, &self->names[self->name_count], err);
    self->name_count += r == 0;
    return r;
}

static int open_server(struct ml_webhooks *self, struct ml_err *err)
{
    const struct ml_tls_authority_opts stranger = {.clock = ml_loop_clock(self->opts.loop),
                                                   .valid_s = STRANGER_VALID_S};
    struct ml_tls_identity identity;
    struct ssl_ctx_st *tls = NULL;
    int r = ml_tls_authority_make(&stranger, &identity, err);
    if (r < 0)
        return r;
    r = ml_tls_server_context(ml_str_of(identity.cert_pem), ml_str_of(identity.key_pem), &tls, err);
    ml_tls_identity_fini(&identity);
    const struct ml_webhook_server_opts opts = {
        .loop = self->opts.loop,
        .log = self->opts.log,
        .metrics = self->opts.metrics,
        .address = self->opts.address,
        .tls = tls,
        .find = find_target,
        .context = self,
    };
    if (r == 0)
        r = ml_webhook_server_new(&opts, &self->server, err);
    SSL_CTX_free(tls);
    return r < 0 ? ml_err_wrap(err, "--webhook-bind-address %s", self->opts.address) : 0;
}

static void own_strings(struct ml_webhooks_opts *opts)
{
    opts->address = ml_strdup(opts->address);
    opts->cert_dir = ml_strdup(opts->cert_dir);
    opts->url = ml_strdup(opts->url);
    opts->ns = ml_strdup(opts->ns ? opts->ns : "default");
    opts->service = ml_strdup(opts->service ? opts->service : ML_WEBHOOK_SERVICE);
    opts->cert_secret = ml_strdup(opts->cert_secret ? opts->cert_secret : ML_WEBHOOK_SECRET);
}

static void make_keepers(struct ml_webhooks *self)
{
    const struct ml_webhooks_opts *opts = &self->opts;
    self->bundles = ml_webhook_bundles_new(&(struct ml_webhook_bundles_opts){
        .loop = opts->loop,
        .log = opts->log,
        .client = ml_operator_client(opts->operator),
        .informers = ml_operator_informers(opts->operator),
        .may_write = may_write,
        .next = next_target,
        .context = self,
    });
    self->secret = ml_webhook_secret_new(&(struct ml_webhook_secret_opts){
        .loop = opts->loop,
        .log = opts->log,
        .client = ml_operator_client(opts->operator),
        .informers = ml_operator_informers(opts->operator),
        .ns = opts->ns,
        .name = opts->cert_secret,
        .names = {(const char *const *)self->names, self->name_count},
        .term = ml_webhook_term_of(opts->cert_s),
        .may_write = may_write,
        .shows = on_pair,
        .context = self,
    });
}

int ml_webhooks_new(const struct ml_webhooks_opts *opts, struct ml_webhooks **out,
                    struct ml_err *err)
{
    struct ml_webhooks *self = ml_new(struct ml_webhooks);
    self->opts = *opts;
    self->trouble = ML_ERR_INIT;
    own_strings(&self->opts);
    int r = make_names(self, err);
    if (r == 0)
        r = open_server(self, err);
    if (r < 0) {
        ml_webhooks_free(self);
        return r;
    }
    if (!self->opts.cert_dir)
        make_keepers(self);
    ml_operator_on_live(opts->operator, on_live, self);
    *out = self;
    return 0;
}

void ml_webhooks_free(struct ml_webhooks *self)
{
    if (!self)
        return;
    ml_operator_on_live(self->opts.operator, NULL, NULL);
    ml_path_watch_free(self->files);
    ml_webhook_secret_free(self->secret);
    ml_webhook_bundles_free(self->bundles);
    ml_webhook_server_free(self->server);
    for (size_t i = 0; i < self->name_count; i++)
        free(self->names[i]);
    free(self->shown);
    free((char *)self->opts.address);
    free((char *)self->opts.cert_dir);
    free((char *)self->opts.url);
    free((char *)self->opts.ns);
    free((char *)self->opts.service);
    free((char *)self->opts.cert_secret);
    free(self);
}

void ml_webhooks_start(struct ml_webhooks *self)
{
    if (self->secret)
        ml_webhook_secret_start(self->secret);
    else if (!self->files) {
        ML_AUTO_FREE char *path = ml_asprintf("%s/tls.crt", self->opts.cert_dir);
        self->files = ml_path_watch_new(self->opts.loop, path, on_files_changed, self);
    }
}

bool ml_webhooks_ready(const struct ml_webhooks *self, struct ml_buf *why)
{
    size_t cursor = 0;
    struct ml_webhook_target target;
    if (self->shown ||
        !ml_scripts_next_webhook(ml_operator_scripts(self->opts.operator), &cursor, &target))
        return true;
    ml_buf_printf(why, "webhooks: no certificate yet that API servers trust: %s%s\n",
                  self->opts.cert_dir ? "" : "Secret ",
                  self->opts.cert_dir ? self->opts.cert_dir : self->opts.cert_secret);
    return false;
}

int ml_webhooks_port(const struct ml_webhooks *self)
{
    return ml_webhook_server_port(self->server);
}
