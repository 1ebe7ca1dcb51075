#include "kube/credentials.h"

#include "kube/kubeconfig_internal.h"

#include "base/wipe.h"

#include <strings.h>

#define FRESH_NS     (10 * ML_NS_PER_S)
#define REREAD_NS    (1 * ML_NS_PER_S)   /* after a refusal, or a file that was no good */
#define AHEAD_MAX_NS (120 * ML_NS_PER_S) /* how long before its end a credential is renewed */
#define DOUBTFUL_NS  (60 * ML_NS_PER_S)  /* how long one is used that is over when it comes */

struct ml_credentials {
    struct ml_loop *loop;
    struct ml_clock *clock;
    struct ml_kubeconfig *config;
    struct ml_log *log;
    bool shown; /* never over plain http: everybody on the way could read them */
    uint64_t generation;

    int64_t read_due_ns; /* monotonic */
    char *token_before;  /* authorization that was taken before the one there is now, which was
                            not yet: the file may have been half written */
    char *told;          /* the last problem with a file that was logged */

    struct ml_exec_plugin *plugin; /* NULL: none */
    bool has_given;
    bool gave_certificate;
    bool proved;        /* taken by the server since the plugin gave it */
    bool doubted;       /* refused since then */
    int64_t renew_ns;   /* wall time */
    int64_t expires_ns; /* wall time */
    struct ml_err why;  /* of the plugin's last run */
    struct ml_list waiting;
    struct ml_task answer; /* those who wait, when no run will */
};

/* ---- files ---- */

/* Each problem once, and not again while it lasts. */
static void tell_problem(struct ml_credentials *self, const struct ml_err *problem)
{
    if (self->told && strcmp(self->told, problem->message) == 0)
        return;
    free(self->told);
    self->told = problem->kind ? ml_strdup(problem->message) : NULL;
    if (problem->kind)
        ml_warn(self->log, "credentials", "a file was not taken; what was read before stays",
                ML_ERR(problem));
}

/* An authorization that was taken is kept till the next one is, too. */
static void note_token(struct ml_credentials *self, char *before)
{
    const char *now = self->config->authorization;
    if (before && now && strcmp(before, now) != 0 && !self->token_before)
        self->token_before = before;
    else
        ml_wipe_free(before);
}

static bool reread(struct ml_credentials *self)
{
    struct ml_err problem;
    char *before = ml_strdup(self->config->authorization);
    bool changed = ml_kubeconfig_reread(self->config, &problem);
    note_token(self, before);
    tell_problem(self, &problem);
    self->read_due_ns = ml_clock_monotonic(self->clock) + (problem.kind ? REREAD_NS : FRESH_NS);
    if (!changed)
        return false;
    self->generation++;
    ml_info(self->log, "credentials", "credentials or CA changed on disk; using the new ones");
    return true;
}

/* A new token that is refused, and reads the same again: back to the one before it, and the file
 * has to say something else first. */
static bool fall_back(struct ml_credentials *self)
{
    struct ml_kubeconfig *config = self->config;
    if (!self->token_before)
        return false;
    config->refused = config->authorization;
    config->authorization = ml_take(&self->token_before);
    self->generation++;
    self->read_due_ns = ml_clock_monotonic(self->clock) + REREAD_NS;
    ml_warn(self->log, "credentials", "the new token is refused; trying the one before it");
    return true;
}

/* ---- the plugin ---- */

static int64_t wall(const struct ml_credentials *self)
{
    return ml_clock_wall(self->clock);
}

static bool run_plugin(struct ml_credentials *self)
{
    const struct ml_kubeconfig *config = self->config;
    const struct ml_exec_cluster cluster = {
        .server = config->server,
        .server_name = config->server_name,
        .ca_pem = config->ca_pem,
        .proxy_url = config->proxy_url,
        .config = config->exec->cluster_config,
        .insecure = config->tls.insecure,
    };
    return ml_exec_plugin_run(self->plugin, &cluster);
}

/* A fifth of its life before its end, so that nobody has to wait; the minute
 * that a plugin may hang is bridged where it lives for five and more. */
static void set_times(struct ml_credentials *self, int64_t expires_ns)
{
    int64_t now_ns = wall(self);
    if (expires_ns <= now_ns) {
        ml_warn(self->log, "credentials",
                "what the exec plugin gave has expired already; trying it (are the clocks right?)",
                ML_S("command", self->config->exec->command));
        expires_ns = now_ns + DOUBTFUL_NS;
    }
    self->expires_ns = expires_ns;
    self->renew_ns = expires_ns == INT64_MAX
                         ? INT64_MAX
                         : expires_ns - ML_MIN((expires_ns - now_ns) / 5, AHEAD_MAX_NS);
}

static bool swap(char **slot, char **fresh)
{
    bool same = ml_str_eq(ml_str_of(*slot), ml_str_of(*fresh));
    ml_wipe_free(*slot);
    *slot = ml_take(fresh);
    return !same;
}

static int set_token(struct ml_kubeconfig *config, const char *token, struct ml_err *err)
{
    if (token)
        return ml_kubeconfig_set_bearer(config, ml_str_of(token), err);
    ml_wipe_free(ml_take(&config->authorization));
    return 0;
}

static int take(struct ml_credentials *self, struct ml_exec_credential *credential,
                struct ml_err *err)
{
    struct ml_kubeconfig *config = self->config;
    int64_t expires_ns = credential->expires_ns;
    if (set_token(config, credential->token, err) < 0)
        return ml_err_wrap(err, "exec plugin %s", config->exec->command);
    self->gave_certificate = credential->cert_pem != NULL;
    if (credential->cert_pem && credential->not_after_ns > 0)
        expires_ns = ML_MIN(expires_ns, credential->not_after_ns);
    bool cert_is_new = swap(&config->cert_pem, &credential->cert_pem);
    bool key_is_new = swap(&config->key_pem, &credential->key_pem);
    if (cert_is_new || key_is_new)
        ml_kubeconfig_point_tls(config);
    set_times(self, expires_ns);
    self->has_given = true;
    self->proved = self->doubted = false;
    self->generation++;
    return 0;
}

static bool is_usable(const struct ml_credentials *self)
{
    return !self->plugin || (self->has_given && wall(self) < self->expires_ns);
}

static void fill(const struct ml_credentials *self, struct ml_identity *out)
{
    *out = (struct ml_identity){
        .generation = self->generation,
        .authorization = self->shown ? self->config->authorization : NULL,
        .impersonation = self->config->impersonation,
        .impersonation_count = self->shown ? self->config->impersonation_count : 0,
        .tls = &self->config->tls,
    };
}

static void answer_all(void *context)
{
    struct ml_credentials *self = context;
    struct ml_identity identity;
    struct ml_list answered;
    /* What ready() of one makes another wait for is not for this round. */
    ml_list_init(&answered);
    for (struct ml_list *node; (node = ml_list_shift(&self->waiting));)
        ml_list_push(&answered, node);
    for (struct ml_list *node; (node = ml_list_shift(&answered));) {
        struct ml_credentials_wait *wait = ml_container_of(node, struct ml_credentials_wait, node);
        bool usable = is_usable(self);
        fill(self, &identity);
        wait->ready(wait->context, usable ? &identity : NULL, usable ? NULL : &self->why);
    }
}

static void on_given(void *context, struct ml_exec_credential *credential, const struct ml_err *err)
{
    struct ml_credentials *self = context;
    self->why = ML_ERR_INIT;
    if (err)
        self->why = *err;
    else if (take(self, credential, &self->why) < 0)
        ml_warn(self->log, "credentials", "what the exec plugin gave is of no use",
                ML_ERR(&self->why));
    if (self->why.kind)
        self->why.kind = ML_EUNAUTHORIZED;
    answer_all(self);
}

/* ---- the interface ---- */

struct ml_credentials *ml_credentials_new(const struct ml_credentials_opts *opts)
{
    struct ml_credentials *self = ml_new(struct ml_credentials);
    self->loop = opts->loop;
    self->clock = ml_loop_clock(opts->loop);
    self->config = opts->config;
    self->log = opts->log;
    self->shown = strncasecmp(opts->config->server, "https://", 8) == 0;
    self->read_due_ns = ml_clock_monotonic(self->clock) + FRESH_NS;
    ml_list_init(&self->waiting);
    ml_task_init(&self->answer, answer_all, self);
    const struct ml_exec_plugin_opts plugin = {
        .loop = opts->loop,
        .config = opts->config->exec,
        .log = opts->log,
        .metrics = opts->metrics,
        .random = opts->random,
        .runner = opts->runner,
        .done = on_given,
        .context = self,
    };
    if (opts->config->exec && self->shown)
        self->plugin = ml_exec_plugin_new(&plugin);
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
    free(self->told);
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
        reread(self);
    bool running = false;
    if (self->plugin) {
        bool due = !self->has_given || self->doubted || wall(self) >= self->renew_ns;
        running = due ? run_plugin(self) : ml_exec_plugin_running(self->plugin);
    }
    if (is_usable(self) && !(running && self->doubted)) {
        fill(self, out);
        return true;
    }
    ml_list_push(&self->waiting, &wait->node);
    if (running)
        return false;
    if (!self->why.kind)
        ml_err_set(&self->why, ML_EUNAUTHORIZED,
                   "exec plugin %s: what it gave has expired, and it was asked a moment ago",
                   self->config->exec->command);
    ml_task_defer(&self->answer, self->loop);
    return false;
}

void ml_credentials_leave(struct ml_credentials_wait *wait)
{
    if (wait->node.next)
        ml_list_remove(&wait->node);
}

/* By another certificate, where it was the handshake that failed: a token is not seen there. */
static bool ask_plugin_anew(struct ml_credentials *self, bool in_handshake)
{
    if (!self->plugin || (in_handshake && !self->gave_certificate))
        return false;
    self->doubted = true;
    return run_plugin(self);
}

bool ml_credentials_refused(struct ml_credentials *self, uint64_t generation, bool in_handshake)
{
    if (generation != self->generation)
        return true;
    ml_wipe_free(ml_take(&self->config->refused)); /* by then as good as the one that is there */
    if (reread(self))
        return true;
    self->read_due_ns = ML_MIN(self->read_due_ns, ml_clock_monotonic(self->clock) + REREAD_NS);
    return (!in_handshake && fall_back(self)) || ask_plugin_anew(self, in_handshake);
}

void ml_credentials_taken(struct ml_credentials *self, uint64_t generation)
{
    if (generation != self->generation)
        return;
    ml_wipe_free(ml_take(&self->token_before));
    self->doubted = false;
    /* Once: that it is still good says nothing of runs that have failed since. */
    if (self->plugin && !self->proved)
        ml_exec_plugin_proved(self->plugin);
    self->proved = true;
}
