/* Keeps the credentials of requests fresh: rereads the files of the kubeconfig, asks its exec
 * plugin anew, and goes back to the token before when a new one is rejected. */
#include "kube/credentials.h"

#include "kube/kubeconfig.h"

#include "base/repeat.h"
#include "base/wipe.h"
#include "net/tls.h"

#include <strings.h>

#define FRESH_NS       (10 * ML_NS_PER_S)
#define REREAD_NS      (1 * ML_NS_PER_S)   /* after a rejection, or a file that cannot be used */
#define AHEAD_MAX_NS   (120 * ML_NS_PER_S) /* how long before its end a credential is renewed */
#define EXPIRED_USE_NS (60 * ML_NS_PER_S)  /* how long one that comes expired is used */

struct ml_credentials {
    struct ml_loop *loop;
    struct ml_clock *clock;
    struct ml_kubeconfig *config;
    struct ml_log *log;
    bool may_show; /* not over plain http: everybody on the way could read them */
    uint64_t generation;

    int64_t read_due_ns;  /* monotonic */
    uint64_t stamp;       /* of the kubeconfig files, when they were read */
    char *token_before;   /* an authorization the server accepted; the one there is now it has not
                             accepted yet: the file may have been half written */
    char *rejected_token; /* an authorization the server rejected: not to be read again; or NULL */
    struct ml_repeat files_repeat; /* of a file that cannot be used */

    struct ml_exec_plugin *plugin; /* NULL: none */
    bool gave_certificate;
    bool accepted;                  /* by the server since the plugin gave it */
    bool rejected;                  /* since then */
    int64_t renew_ns;               /* wall time; 0: there is nothing yet */
    int64_t expires_ns;             /* the same */
    struct ml_err plugin_err;       /* of its last run */
    struct ml_repeat plugin_repeat; /* of what it gives and cannot be used, or has expired */
    struct ml_list waiting;
    struct ml_task answer; /* answers those who wait, when no run will */
};

/* ---- files ---- */

/* Takes `fresh`, a text or NULL, and wipes what it replaces. */
static void replace_pem(struct ml_str *pem, char *fresh)
{
    ml_wipe_free((char *)pem->ptr);
    *pem = ml_str_of(fresh);
}

static bool reread_token(struct ml_credentials *self, struct ml_err *problem)
{
    struct ml_kubeconfig *config = self->config;
    if (!config->token_file)
        return false;
    ML_AUTO(ml_wipe_buf) struct ml_buf text = {.len_max = ML_TOKEN_SIZE_MAX};
    ML_AUTO_WIPE char *before = ml_strdup(config->authorization);
    if (ml_file_read_again(config->token_file, &text, problem) < 0)
        return false;
    if (ml_kubeconfig_set_bearer(config, ml_buf_str(&text), problem) < 0) {
        ml_err_wrap(problem, "%s", config->token_file);
        return false;
    }
    if (strcmp(before, config->authorization) == 0)
        return false;
    if (self->rejected_token && strcmp(self->rejected_token, config->authorization) == 0) {
        ml_wipe_free(config->authorization);
        config->authorization = ml_take(&before);
        return false;
    }
    ml_wipe_free(ml_take(&self->rejected_token));
    return true;
}

static bool reread_ca(struct ml_kubeconfig *config, struct ml_err *problem)
{
    ML_AUTO(ml_buf_fini) struct ml_buf pem = {.len_max = ML_KUBEFILE_SIZE_MAX};
    if (!config->ca_file || ml_file_read_again(config->ca_file, &pem, problem) < 0 ||
        ml_str_eq(ml_buf_str(&pem), config->tls.ca_pem))
        return false;
    if (ml_tls_check_ca(ml_buf_str(&pem), problem) < 0) {
        ml_err_wrap(problem, "%s", config->ca_file);
        return false;
    }
    replace_pem(&config->tls.ca_pem, ml_buf_take(&pem));
    return true;
}

/* The contents of the file, or `now` where there is no file. */
static int reread_or_keep(const char *path, struct ml_str now, struct ml_buf *out,
                          struct ml_err *err)
{
    out->len_max = ML_KUBEFILE_SIZE_MAX;
    if (path)
        return ml_file_read_again(path, out, err);
    ml_buf_append_str(out, now);
    return 0;
}

/* Both are read before either is used: one may be new already and the other not yet. */
static bool reread_certificate(struct ml_kubeconfig *config, struct ml_err *problem)
{
    ML_AUTO(ml_buf_fini) struct ml_buf cert = ML_BUF_INIT;
    ML_AUTO(ml_wipe_buf) struct ml_buf key = ML_BUF_INIT;
    struct ml_http_tls *tls = &config->tls;
    struct ml_tls_validity validity;
    if (!config->cert_file && !config->key_file)
        return false;
    if (reread_or_keep(config->cert_file, tls->cert_pem, &cert, problem) < 0 ||
        reread_or_keep(config->key_file, tls->key_pem, &key, problem) < 0)
        return false;
    if (ml_str_eq(ml_buf_str(&cert), tls->cert_pem) && ml_str_eq(ml_buf_str(&key), tls->key_pem))
        return false;
    if (ml_tls_check_pair(ml_buf_str(&cert), ml_buf_str(&key), &validity, problem) < 0) {
        ml_err_wrap(problem, "%s", config->cert_file ? config->cert_file : config->key_file);
        return false;
    }
    replace_pem(&tls->cert_pem, ml_buf_take(&cert));
    replace_pem(&tls->key_pem, ml_buf_take(&key));
    return true;
}

/* ---- credentials in the kubeconfig itself ---- */

static bool is_same_text(const char *a, const char *b)
{
    return a && b ? strcmp(a, b) == 0 : a == b;
}

static bool take_over_authorization(struct ml_credentials *self, struct ml_kubeconfig *fresh)
{
    struct ml_kubeconfig *config = self->config;
    bool is_rejected = self->rejected_token &&
                       is_same_text(self->rejected_token, fresh->authorization);
    free(config->token_file);
    config->token_file = ml_take(&fresh->token_file);
    if (config->token_file || is_rejected ||
        is_same_text(config->authorization, fresh->authorization))
        return false;
    ml_wipe_free(config->authorization);
    config->authorization = ml_take(&fresh->authorization);
    ml_wipe_free(ml_take(&self->rejected_token));
    return true;
}

static bool take_over_certificate(struct ml_kubeconfig *config, struct ml_kubeconfig *fresh,
                                  struct ml_err *problem)
{
    struct ml_tls_validity validity;
    struct ml_http_tls *now = &config->tls, *new = &fresh->tls;
    if (new->cert_pem.len > 0 &&
        ml_tls_check_pair(new->cert_pem, new->key_pem, &validity, problem) < 0) {
        ml_err_wrap(problem, "%s", fresh->source);
        return false;
    }
    free(config->cert_file);
    free(config->key_file);
    config->cert_file = ml_take(&fresh->cert_file);
    config->key_file = ml_take(&fresh->key_file);
    if (ml_str_eq(now->cert_pem, new->cert_pem) && ml_str_eq(now->key_pem, new->key_pem))
        return false;
    replace_pem(&now->cert_pem, (char *)ml_take(&new->cert_pem.ptr));
    replace_pem(&now->key_pem, (char *)ml_take(&new->key_pem.ptr));
    return true;
}

static bool take_over_ca(struct ml_kubeconfig *config, struct ml_kubeconfig *fresh,
                         struct ml_err *problem)
{
    if (fresh->tls.ca_pem.len > 0 && ml_tls_check_ca(fresh->tls.ca_pem, problem) < 0) {
        ml_err_wrap(problem, "%s", fresh->source);
        return false;
    }
    free(config->ca_file);
    config->ca_file = ml_take(&fresh->ca_file);
    if (ml_str_eq(config->tls.ca_pem, fresh->tls.ca_pem))
        return false;
    replace_pem(&config->tls.ca_pem, (char *)ml_take(&fresh->tls.ca_pem.ptr));
    return true;
}

static void free_fresh(struct ml_kubeconfig **fresh)
{
    ml_kubeconfig_free(*fresh);
}

/* Token, certificate, key and CA of the kubeconfig files, when these have changed. Server, proxy,
 * context and exec plugin stay those of the start: another server is another cluster. */
static bool reread_kubeconfig(struct ml_credentials *self, struct ml_err *problem)
{
    struct ml_kubeconfig *config = self->config;
    ML_AUTO(free_fresh) struct ml_kubeconfig *fresh = NULL;
    uint64_t stamp = config->read_from.count > 0 ? ml_kubeconfig_stamp(config) : 0;
    if (stamp == 0 || stamp == self->stamp || ml_kubeconfig_read_again(config, &fresh, problem) < 0)
        return false;
    if (strcmp(config->server, fresh->server) != 0) {
        ml_err_set(problem, ML_EINVALID,
                   "%s: the server is another one now, %s; restart the host to use it",
                   fresh->source, fresh->server);
        return false;
    }
    bool token = !config->exec && take_over_authorization(self, fresh);
    bool pair = !config->exec && take_over_certificate(config, fresh, problem);
    bool ca = take_over_ca(config, fresh, problem);
    if (!problem->kind)
        self->stamp = stamp;
    return token || pair || ca;
}

/* Reads all files again that token, certificate, key and CA came from. A file that cannot be read,
 * is half written or does not fit the others leaves what was there, and fills `problem` (kind 0
 * when all is well). Returns whether anything changed. */
static bool reread_files(struct ml_credentials *self, struct ml_err *problem)
{
    struct ml_kubeconfig *config = self->config;
    *problem = ML_ERR_INIT;
    bool inline_data = reread_kubeconfig(self, problem);
    bool token = reread_token(self, problem);
    bool pair = reread_certificate(config, problem);
    bool ca = reread_ca(config, problem);
    return inline_data || token || pair || ca;
}

static void log_file_problem(struct ml_credentials *self, const struct ml_err *problem)
{
    if (!problem->kind)
        ml_repeat_over(&self->files_repeat);
    else if (ml_repeat_failed(&self->files_repeat, ml_str_of(problem->message),
                              ml_clock_monotonic(self->clock)))
        ml_warn(self->log, "credentials",
                "a credentials file cannot be used; what was read before stays in use",
                ML_ERR(problem), ML_REPEAT_FIELDS(&self->files_repeat, REREAD_NS));
}

/* An authorization that was accepted is kept until the next one is accepted, too. */
static void remember_token_before(struct ml_credentials *self, char *before)
{
    const char *now = self->config->authorization;
    if (before && now && strcmp(before, now) != 0 && !self->token_before)
        self->token_before = before;
    else
        ml_wipe_free(before);
}

static bool reread_and_log(struct ml_credentials *self)
{
    struct ml_err problem;
    char *before = ml_strdup(self->config->authorization);
    bool changed = reread_files(self, &problem);
    remember_token_before(self, before);
    log_file_problem(self, &problem);
    self->read_due_ns = ml_clock_monotonic(self->clock) + (problem.kind ? REREAD_NS : FRESH_NS);
    if (!changed)
        return false;
    self->generation++;
    ml_info(self->log, "credentials", "credentials or CA changed on disk; using the new ones");
    return true;
}

/* The server rejects a new token, and the file still has it: back to the token before. The one in
 * the file is not used again until it changes. */
static bool fall_back_to_token_before(struct ml_credentials *self)
{
    struct ml_kubeconfig *config = self->config;
    if (!self->token_before)
        return false;
    self->rejected_token = config->authorization;
    config->authorization = ml_take(&self->token_before);
    self->generation++;
    self->read_due_ns = ml_clock_monotonic(self->clock) + REREAD_NS;
    ml_warn(self->log, "credentials", "the new token is rejected; trying the one before it");
    return true;
}

/* ---- the plugin ---- */

/* It is renewed when a fifth of its life is left, so that nobody waits for the plugin. Where it
 * lives for five minutes or more, not even a plugin that hangs for its full minute is noticed. */
static void set_expiry(struct ml_credentials *self, int64_t expires_ns)
{
    int64_t now_ns = ml_clock_wall(self->clock);
    if (expires_ns > now_ns) {
        ml_repeat_over(&self->plugin_repeat);
    } else {
        if (ml_repeat_failed(&self->plugin_repeat, ML_STR("expired"),
                             ml_clock_monotonic(self->clock)))
            ml_warn(self->log, "credentials",
                    "the exec plugin's credential has expired already; trying it (are the clocks "
                    "right?)",
                    ML_S("command", ml_exec_command(self->config)),
                    ML_REPEAT_FIELDS(&self->plugin_repeat, EXPIRED_USE_NS));
        expires_ns = now_ns + EXPIRED_USE_NS;
    }
    self->expires_ns = expires_ns;
    self->renew_ns = expires_ns == INT64_MAX
                         ? INT64_MAX
                         : expires_ns - ML_MIN((expires_ns - now_ns) / 5, AHEAD_MAX_NS);
}

static int accept_plugin_credential(struct ml_credentials *self,
                                    struct ml_exec_credential *credential, struct ml_err *err)
{
    struct ml_kubeconfig *config = self->config;
    int64_t expires_ns = credential->expires_ns;
    if (!credential->token)
        ml_wipe_free(ml_take(&config->authorization));
    else if (ml_kubeconfig_set_bearer(config, ml_str_of(credential->token), err) < 0)
        return ml_err_wrap(err, "exec plugin %s", ml_exec_command(config));
    self->gave_certificate = credential->cert_pem != NULL;
    if (credential->cert_pem && credential->not_after_ns > 0)
        expires_ns = ML_MIN(expires_ns, credential->not_after_ns);
    replace_pem(&config->tls.cert_pem, ml_take(&credential->cert_pem));
    replace_pem(&config->tls.key_pem, ml_take(&credential->key_pem));
    set_expiry(self, expires_ns);
    self->accepted = self->rejected = false;
    self->generation++;
    return 0;
}

static bool has_usable_credentials(const struct ml_credentials *self)
{
    return !self->plugin || ml_clock_wall(self->clock) < self->expires_ns;
}

static void fill_identity(const struct ml_credentials *self, struct ml_identity *out)
{
    *out = (struct ml_identity){
        .generation = self->generation,
        .authorization = self->may_show ? self->config->authorization : NULL,
        .impersonation = self->config->impersonation,
        .impersonation_count = self->may_show ? self->config->impersonation_count : 0,
        .tls = &self->config->tls,
    };
}

static void answer_waiting(void *context)
{
    struct ml_credentials *self = context;
    struct ml_identity identity;
    struct ml_list answered;
    /* Waits that a ready() adds are not for this round. */
    ml_list_init(&answered);
    for (struct ml_list *node; (node = ml_list_shift(&self->waiting));)
        ml_list_push(&answered, node);
    for (struct ml_list *node; (node = ml_list_shift(&answered));) {
        struct ml_credentials_wait *wait = ml_container_of(node, struct ml_credentials_wait, node);
        bool usable = has_usable_credentials(self);
        fill_identity(self, &identity);
        wait->ready(wait->context, usable ? &identity : NULL, usable ? NULL : &self->plugin_err);
    }
}

static void on_plugin_done(void *context, struct ml_exec_credential *credential,
                           const struct ml_err *err)
{
    struct ml_credentials *self = context;
    self->plugin_err = ML_ERR_INIT;
    if (err)
        self->plugin_err = *err;
    else if (accept_plugin_credential(self, credential, &self->plugin_err) < 0 &&
             ml_repeat_failed(&self->plugin_repeat, ml_str_of(self->plugin_err.message),
                              ml_clock_monotonic(self->clock)))
        ml_warn(self->log, "credentials", "the exec plugin's credential cannot be used",
                ML_ERR(&self->plugin_err), ML_REPEAT_FIELDS(&self->plugin_repeat, -1));
    if (self->plugin_err.kind)
        self->plugin_err.kind = ML_EUNAUTHORIZED;
    answer_waiting(self);
}

/* ---- the interface ---- */

struct ml_credentials *ml_credentials_new(const struct ml_credentials_opts *opts)
{
    struct ml_credentials *self = ml_new(struct ml_credentials);
    self->loop = opts->loop;
    self->clock = ml_loop_clock(opts->loop);
    self->config = opts->config;
    self->log = opts->log;
    self->may_show = strncasecmp(opts->config->server, "https://", 8) == 0;
    self->read_due_ns = ml_clock_monotonic(self->clock) + FRESH_NS;
    ml_list_init(&self->waiting);
    ml_task_init(&self->answer, answer_waiting, self);
    if (opts->config->exec && self->may_show)
        self->plugin = ml_exec_plugin_new(opts, on_plugin_done, self);
    return self;
}

void ml_credentials_free(struct ml_credentials *self)
{
    if (!self)
        return;
    ml_assert(ml_list_empty(&self->waiting));
    ml_task_cancel(&self->answer);
    ml_exec_plugin_free(self->plugin);
    ml_wipe_free(self->token_before);
    ml_wipe_free(self->rejected_token);
    free(self);
}

const char *ml_credentials_server(const struct ml_credentials *self)
{
    return self->config->server;
}

bool ml_credentials_get(struct ml_credentials *self, struct ml_identity *out,
                        struct ml_credentials_wait *wait)
{
    if (ml_clock_monotonic(self->clock) > self->read_due_ns)
        reread_and_log(self);
    bool running = false;
    if (self->plugin && (self->rejected || ml_clock_wall(self->clock) >= self->renew_ns))
        running = ml_exec_plugin_run(self->plugin);
    if (has_usable_credentials(self) && !(running && self->rejected)) {
        fill_identity(self, out);
        return true;
    }
    ml_list_push(&self->waiting, &wait->node);
    if (running)
        return false;
    if (!self->plugin_err.kind)
        ml_err_set(&self->plugin_err, ML_EUNAUTHORIZED,
                   "exec plugin %s: its credential has expired, and it was run a moment ago",
                   ml_exec_command(self->config));
    ml_task_defer(&self->answer, self->loop);
    return false;
}

void ml_credentials_cancel_wait(struct ml_credentials_wait *wait)
{
    if (wait->node.next)
        ml_list_remove(&wait->node);
}

/* A failed handshake is a reason only when the plugin gives certificates: a token is not seen
 * there. */
static bool ask_exec_plugin_anew(struct ml_credentials *self, bool in_handshake)
{
    if (!self->plugin || (in_handshake && !self->gave_certificate))
        return false;
    self->rejected = true;
    return ml_exec_plugin_run(self->plugin);
}

bool ml_credentials_rejected(struct ml_credentials *self, uint64_t generation, bool in_handshake)
{
    if (generation != self->generation)
        return true;
    /* The server rejects what took its place as well. */
    ml_wipe_free(ml_take(&self->rejected_token));
    if (reread_and_log(self))
        return true;
    self->read_due_ns = ML_MIN(self->read_due_ns, ml_clock_monotonic(self->clock) + REREAD_NS);
    return (!in_handshake && fall_back_to_token_before(self)) ||
           ask_exec_plugin_anew(self, in_handshake);
}

void ml_credentials_accepted(struct ml_credentials *self, uint64_t generation)
{
    if (generation != self->generation)
        return;
    ml_wipe_free(ml_take(&self->token_before));
    self->rejected = false;
    /* Only once: that it is still accepted says nothing about runs that failed since. */
    if (self->plugin && !self->accepted)
        ml_exec_plugin_reset_backoff(self->plugin);
    self->accepted = true;
}
