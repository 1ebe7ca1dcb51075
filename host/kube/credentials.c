/* Keeps the credentials of requests fresh: rereads the files of the kubeconfig, runs its exec
 * plugin anew, and goes back to the token before when a new one is rejected. */
#include "kube/credentials.h"

#include <math.h>
#include <stdio.h>
#include <strings.h>

#include "base/escape.h"
#include "base/repeat.h"
#include "base/wipe.h"
#include "codec/base64.h"
#include "codec/json.h"
#include "codec/rfc3339.h"
#include "net/tls.h"

#define FRESH_NS       (10 * ML_NS_PER_S)
#define REREAD_NS      (1 * ML_NS_PER_S)   /* after a rejection, or a file that cannot be used */
#define AHEAD_MAX_NS   (120 * ML_NS_PER_S) /* how long before its end a credential is renewed */
#define EXPIRED_USE_NS (60 * ML_NS_PER_S)  /* how long one that comes expired is used */

#define TIMEOUT_NS       (60 * ML_NS_PER_S)
#define OUTPUT_MAX       ((size_t)1024 * 1024)
#define ERRORS_MAX       ((size_t)4096)
#define BACKOFF_FIRST_NS (1 * ML_NS_PER_S)
#define BACKOFF_MAX_NS   (60 * ML_NS_PER_S)
#define SAYS_MAX         160 /* of a plugin's words in an error */
#define INFO_NAME        "KUBERNETES_EXEC_INFO"

extern char **environ;

/* As client-go has them. */
struct exec_metrics {
    struct ml_clock *clock;
    struct ml_metric_family *calls; /* NULL: nothing is counted */
    struct ml_metric *ttl;
    struct ml_metric *rotation_age;
    struct ml_metrics_collector collector;
    uint64_t cert_hash;
    int64_t not_before_ns; /* of the certificate there is; 0: none */
    int64_t not_after_ns;
};

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

    bool has_plugin;
    const struct ml_exec_runner *runner;
    struct ml_random *random;
    struct exec_metrics metrics;
    struct ml_child *child; /* a run under way */
    struct ml_task failed;  /* reports from the loop that a run could not be started */
    struct ml_err start_err;
    bool running;
    int unproved;                /* runs since the server accepted what one gave */
    int64_t not_before_ns;       /* of the next run, monotonic */
    struct ml_repeat run_repeat; /* of a run that failed */
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

/* ---- the ExecCredential of the input, and that of the output ---- */

static void put_if_set(struct ml_json_writer *writer, const char *key, const char *text)
{
    if (text && *text)
        ml_json_put_string(writer, key, ml_str_of(text));
}

static void write_exec_cluster(struct ml_json_writer *writer, const struct ml_kubeconfig *config)
{
    ML_AUTO(ml_buf_fini) struct ml_buf ca = ML_BUF_INIT;
    ml_base64_encode(config->tls.ca_pem, &ca);
    ml_json_key(writer, ML_STR("cluster"));
    ml_json_begin_object(writer);
    put_if_set(writer, "server", config->server);
    put_if_set(writer, "tls-server-name", config->tls.server_name);
    if (config->tls.insecure)
        ml_json_put_bool(writer, "insecure-skip-tls-verify", true);
    put_if_set(writer, "certificate-authority-data", ml_buf_cstr(&ca));
    put_if_set(writer, "proxy-url", config->tls.proxy_url);
    if (config->exec->cluster_config)
        ml_json_put_raw(writer, "config", ml_str_of(config->exec->cluster_config));
    ml_json_end_object(writer);
}

void ml_exec_info_write(const struct ml_kubeconfig *config, struct ml_buf *out)
{
    struct ml_json_writer writer;
    ml_json_writer_init(&writer, out);
    ml_json_begin_object(&writer);
    ml_json_put_string(&writer, "kind", ML_STR("ExecCredential"));
    ml_json_put_string(&writer, "apiVersion", ml_str_of(config->exec->api_version));
    ml_json_key(&writer, ML_STR("spec"));
    ml_json_begin_object(&writer);
    if (config->exec->provide_cluster_info)
        write_exec_cluster(&writer, config);
    ml_json_put_bool(&writer, "interactive", false);
    ml_json_end_object(&writer);
    ml_json_end_object(&writer);
}

static char *find_status_text(struct ml_str output, const char *key)
{
    char *text = ml_json_find_string(output, "status", key, NULL);
    if (text && !*text)
        free(ml_take(&text));
    return text;
}

static int check_exec_credential_kind(struct ml_str output, const char *api_version,
                                      struct ml_err *err)
{
    if (ml_json_check(output, 0, err) < 0)
        return ml_err_wrap(err, "it wrote no JSON");
    ML_AUTO_FREE char *kind = ml_json_find_string(output, "kind", NULL);
    ML_AUTO_FREE char *got = ml_json_find_string(output, "apiVersion", NULL);
    if (!kind || strcmp(kind, "ExecCredential") != 0)
        return ml_err_set(err, ML_EINVALID, "it wrote JSON, but no ExecCredential");
    if (!got || strcmp(got, api_version) != 0)
        return ml_err_set(err, ML_EINVALID,
                          "it answers with apiVersion %.64s, and the kubeconfig says %s; make them "
                          "the same",
                          got ? got : "(none)", api_version);
    struct ml_str status;
    if (!ml_json_find(output, &status, "status", NULL) || status.ptr[0] != '{')
        return ml_err_set(err, ML_EINVALID, "its ExecCredential has no status");
    return 0;
}

static int read_exec_expiry(struct ml_str output, int64_t *out, struct ml_err *err)
{
    struct ml_str raw;
    *out = INT64_MAX;
    if (!ml_json_find(output, &raw, "status", "expirationTimestamp", NULL) ||
        ml_str_is(raw, "null"))
        return 0;
    ML_AUTO_FREE char *text = find_status_text(output, "expirationTimestamp");
    if (!text || !ml_rfc3339_parse(ml_str_of(text), out))
        return ml_err_set(err, ML_EINVALID,
                          "its expirationTimestamp %.64s is not a time of RFC 3339",
                          text ? text : "");
    return 0;
}

static int read_exec_certificate(struct ml_str output, struct ml_exec_credential *credential,
                                 struct ml_err *err)
{
    credential->cert_pem = find_status_text(output, "clientCertificateData");
    credential->key_pem = find_status_text(output, "clientKeyData");
    if (!credential->cert_pem != !credential->key_pem)
        return ml_err_set(err, ML_EINVALID, "it gave a certificate or a key, not both");
    struct ml_tls_validity validity;
    if (!credential->cert_pem)
        return 0;
    if (ml_tls_check_pair(ml_str_of(credential->cert_pem), ml_str_of(credential->key_pem),
                          &validity, err) < 0)
        return err->kind;
    credential->not_before_ns = validity.not_before_ns;
    credential->not_after_ns = validity.not_after_ns;
    return 0;
}

int ml_exec_credential_parse(struct ml_str output, const char *api_version,
                             struct ml_exec_credential *out, struct ml_err *err)
{
    struct ml_exec_credential got = {0};
    if (check_exec_credential_kind(output, api_version, err) == 0 &&
        read_exec_expiry(output, &got.expires_ns, err) == 0 &&
        read_exec_certificate(output, &got, err) == 0) {
        got.token = find_status_text(output, "token");
        if (got.token || got.cert_pem) {
            *out = got;
            return 0;
        }
        ml_err_set(err, ML_EINVALID, "it gave neither a token nor a certificate");
    }
    ml_exec_credential_fini(&got);
    return err->kind;
}

void ml_exec_credential_fini(struct ml_exec_credential *credential)
{
    ml_wipe_free(credential->token);
    ml_wipe_free(credential->cert_pem);
    ml_wipe_free(credential->key_pem);
    *credential = (struct ml_exec_credential){0};
}

/* ---- metrics of the plugin ---- */

static double seconds_since(const struct exec_metrics *self, int64_t since_ns)
{
    return (double)(ml_clock_wall(self->clock) - since_ns) / (double)ML_NS_PER_S;
}

static void collect_exec_ttl(void *context)
{
    struct exec_metrics *self = context;
    ml_metric_set(self->ttl,
                  self->not_after_ns ? -seconds_since(self, self->not_after_ns) : INFINITY);
}

static void register_exec_metrics(struct exec_metrics *self, struct ml_metrics *metrics,
                                  struct ml_clock *clock)
{
    static const char *const labels[] = {"code", "call_status", NULL};
    static const double buckets[] = {600,    1800,   3600,    14400,   86400,   604800,
                                     2592e3, 7776e3, 15552e3, 31104e3, 124416e3};
    *self = (struct exec_metrics){.clock = clock};
    ml_list_init(&self->collector.node);
    if (!metrics)
        return;
    self->calls = ml_metrics_counter(metrics, "rest_client_exec_plugin_call_total",
                                     "Number of runs of the exec plugin, by what came of them and "
                                     "exit code.",
                                     labels);
    static const char *const runs[][2] = {{"0", "no_error"},
                                          {"1", "plugin_execution_error"},
                                          {"1", "plugin_not_found_error"},
                                          {"1", "client_internal_error"}};
    for (size_t i = 0; i < ML_COUNT(runs); i++) /* at 0 until it happens; as client-go has them */
        (void)ml_metric_with(self->calls, ml_metric_labels(runs[i][0], runs[i][1]));
    self->ttl = ml_metric_only(ml_metrics_gauge(metrics, "rest_client_exec_plugin_ttl_seconds",
                                                "Seconds until the exec plugin's client "
                                                "certificate expires, +Inf when it gave none.",
                                                NULL));
    self->rotation_age = ml_metric_only(
        ml_metrics_histogram(metrics, "rest_client_exec_plugin_certificate_rotation_age",
                             "Seconds that the exec plugin's last client certificate lived before "
                             "it gave another.",
                             NULL, buckets, ML_COUNT(buckets)));
    self->collector.collect = collect_exec_ttl;
    self->collector.context = self;
    ml_metrics_on_collect(metrics, &self->collector);
}

static void count_run(struct exec_metrics *self, int code, const char *status)
{
    char text[16];
    if (!self->calls)
        return;
    snprintf(text, sizeof text, "%d", code);
    ml_metric_add(ml_metric_with(self->calls, ml_metric_labels(text, status)), 1);
}

static void measure_certificate(struct exec_metrics *self,
                                const struct ml_exec_credential *credential)
{
    uint64_t hash = ml_str_hash(ml_str_of(credential->cert_pem));
    if (self->rotation_age && self->not_before_ns && hash != self->cert_hash)
        ml_metric_observe(self->rotation_age, seconds_since(self, self->not_before_ns));
    self->cert_hash = hash;
    self->not_before_ns = credential->not_before_ns;
    self->not_after_ns = credential->not_after_ns;
}

/* ---- the environment of the plugin ---- */

/* Do both set the same variable? */
static bool is_same_variable(const char *a, const char *b)
{
    size_t len = strcspn(a, "=");
    return strncmp(a, b, len) == 0 && strcspn(b, "=") == len;
}

static bool is_overridden(const struct ml_kubelist *own, const char *entry)
{
    for (size_t i = 0; i < own->count; i++)
        if (is_same_variable(own->items[i], entry))
            return true;
    return is_same_variable(INFO_NAME "=", entry);
}

/* Our environment, what the kubeconfig sets over it, and KUBERNETES_EXEC_INFO, `info`. The strings
 * are borrowed; the caller frees the list. */
static const char **make_plugin_env(const struct ml_kubelist *own, const char *info)
{
    size_t count_max = own->count + 2, count = 0;
    for (char **entry = environ; *entry; entry++)
        count_max++;
    const char **env = ml_alloc(count_max * sizeof *env);
    for (char **entry = environ; *entry; entry++)
        if (!is_overridden(own, *entry))
            env[count++] = *entry;
    for (size_t i = 0; i < own->count; i++)
        if (!is_same_variable(INFO_NAME "=", own->items[i]))
            env[count++] = own->items[i];
    env[count++] = info;
    env[count] = NULL;
    return env;
}

/* ---- what a plugin gave, and who waits for it ---- */

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
    return !self->has_plugin || ml_clock_wall(self->clock) < self->expires_ns;
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

/* ---- the end of a run ---- */

static int explain_failed_start(const struct ml_credentials *self, struct ml_err *err)
{
    char hint[SAYS_MAX];
    const struct ml_err cause = *err;
    ml_clean_line(ml_str_of(self->config->exec->install_hint), hint, sizeof hint);
    if (cause.kind != ML_ENOT_FOUND)
        return ml_err_set(err, ML_EUNAUTHORIZED, "exec plugin %s", cause.message);
    return ml_err_set(err, ML_EUNAUTHORIZED,
                      "exec plugin %s; install it where moonloop runs, or correct exec.command in "
                      "the kubeconfig%s%s",
                      cause.message, *hint ? ": " : "", hint);
}

static int explain_failed_run(const struct ml_credentials *self, const struct ml_child_end *end,
                              struct ml_err *err)
{
    char says[SAYS_MAX];
    const char *name = ml_exec_command(self->config);
    ml_clean_line(end->errors, says, sizeof says);
    const char *colon = *says ? ": " : "";
    if (end->timed_out)
        return ml_err_set(err, ML_EUNAUTHORIZED,
                          "exec plugin %s: did not end within %d s and was killed; run it by hand "
                          "to see what it waits for%s%s",
                          name, (int)(TIMEOUT_NS / ML_NS_PER_S), colon, says);
    if (end->too_long)
        return ml_err_set(err, ML_EUNAUTHORIZED,
                          "exec plugin %s: wrote more than %zu bytes and was killed", name,
                          OUTPUT_MAX);
    if (end->signo)
        return ml_err_set(err, ML_EUNAUTHORIZED, "exec plugin %s: killed by signal %d%s%s", name,
                          end->signo, colon, says);
    return ml_err_set(err, ML_EUNAUTHORIZED, "exec plugin %s: exit code %d%s%s", name, end->code,
                      colon, says);
}

/* A run ended: with an answer of the plugin, or else the reason in `err` (ML_EUNAUTHORIZED). */
static void finish_run(struct ml_credentials *self, struct ml_exec_credential *credential,
                       const struct ml_err *err)
{
    self->running = false;
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

static void log_failed_run(struct ml_credentials *self, struct ml_str errors,
                           const struct ml_err *err)
{
    int64_t now_ns = ml_clock_monotonic(self->clock);
    if (!ml_repeat_failed(&self->run_repeat, ml_str_of(err->message), now_ns))
        return;
    ml_warn(self->log, "credentials", "the exec plugin failed",
            ML_S("command", ml_exec_command(self->config)), ML_ERR(err),
            ML_REPEAT_FIELDS(&self->run_repeat, ML_MAX(0, self->not_before_ns - now_ns)),
            ML_STR_FIELD("stderr", errors));
}

static void log_run(struct ml_credentials *self, const struct ml_child_end *end,
                    const struct ml_err *err)
{
    if (err->kind) {
        log_failed_run(self, end->errors, err);
        return;
    }
    ml_repeat_over(&self->run_repeat);
    if (end->errors.len > 0)
        ml_info(self->log, "credentials", "the exec plugin says",
                ML_S("command", ml_exec_command(self->config)),
                ML_STR_FIELD("stderr", end->errors));
}

static void on_plugin_ended(void *context, const struct ml_child_end *end)
{
    struct ml_credentials *self = context;
    struct ml_exec_credential credential = {0};
    struct ml_err err = ML_ERR_INIT;
    count_run(&self->metrics, end->signo ? -1 : end->code,
              end->code == 0 ? "no_error" : "plugin_execution_error");
    if (end->timed_out || end->too_long || end->code != 0) {
        explain_failed_run(self, end, &err);
    } else if (ml_exec_credential_parse(end->output, self->config->exec->api_version, &credential,
                                        &err) < 0) {
        ml_err_wrap(&err, "exec plugin %s", ml_exec_command(self->config));
        err.kind = ML_EUNAUTHORIZED;
    }
    log_run(self, end, &err);
    self->runner->free(ml_take(&self->child));
    if (!err.kind)
        measure_certificate(&self->metrics, &credential);
    finish_run(self, err.kind ? NULL : &credential, err.kind ? &err : NULL);
    ml_exec_credential_fini(&credential);
}

static void on_plugin_not_started(void *context)
{
    struct ml_credentials *self = context;
    finish_run(self, NULL, &self->start_err);
}

/* ---- a run ---- */

/* Sets when the next run may start, if this one gives nothing that the server accepts: 1 s after
 * the first, twice as long after each further one, at most 60 s. */
static void set_backoff(struct ml_credentials *self, int64_t now_ns)
{
    int64_t delay_ns = BACKOFF_FIRST_NS << ML_MIN(self->unproved, 6);
    delay_ns = ML_MIN(delay_ns, BACKOFF_MAX_NS);
    self->unproved++;
    self->not_before_ns = now_ns + delay_ns / 2 +
                          ml_random_between(self->random, 0, delay_ns / 2 + 1);
}

static void start_run(struct ml_credentials *self)
{
    const struct ml_exec_config *config = self->config->exec;
    ML_AUTO(ml_buf_fini) struct ml_buf info = ML_BUF_INIT;
    ml_buf_puts(&info, INFO_NAME "=");
    ml_exec_info_write(self->config, &info);
    ML_AUTO_FREE const char **env = make_plugin_env(&config->env, ml_buf_cstr(&info));
    const struct ml_child_opts opts = {
        .argv = (const char *const *)config->argv.items,
        .env = env,
        .output_max = OUTPUT_MAX,
        .errors_max = ERRORS_MAX,
        .timeout_ns = TIMEOUT_NS,
        .ended = on_plugin_ended,
        .context = self,
    };
    self->start_err = ML_ERR_INIT;
    if (self->runner->start(self->loop, &opts, &self->child, &self->start_err) == 0)
        return;
    bool found = self->start_err.kind != ML_ENOT_FOUND;
    count_run(&self->metrics, 1, found ? "client_internal_error" : "plugin_not_found_error");
    explain_failed_start(self, &self->start_err);
    log_failed_run(self, ML_STR(""), &self->start_err);
    ml_task_defer(&self->failed, self->loop);
}

/* Starts a run, unless one is under way or the backoff is not over. True when one is under way now:
 * finish_run() is called for it, never inside this call. */
static bool run_plugin(struct ml_credentials *self)
{
    int64_t now_ns = ml_clock_monotonic(self->clock);
    if (self->running || now_ns < self->not_before_ns)
        return self->running;
    self->running = true;
    set_backoff(self, now_ns);
    start_run(self);
    return true;
}

/* ---- the interface ---- */

static void begin_plugin(struct ml_credentials *self, const struct ml_credentials_opts *opts)
{
    static const struct ml_exec_runner real = {ml_child_start, ml_child_free};
    self->has_plugin = true;
    self->runner = opts->runner ? opts->runner : &real;
    self->random = opts->random;
    register_exec_metrics(&self->metrics, opts->metrics, self->clock);
    ml_task_init(&self->failed, on_plugin_not_started, self);
}

/* Kills a run under way. */
static void end_plugin(struct ml_credentials *self)
{
    ml_task_cancel(&self->failed);
    self->runner->free(self->child);
    ml_metrics_collector_remove(&self->metrics.collector);
}

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
        begin_plugin(self, opts);
    return self;
}

void ml_credentials_free(struct ml_credentials *self)
{
    if (!self)
        return;
    ml_assert(ml_list_empty(&self->waiting));
    ml_task_cancel(&self->answer);
    if (self->has_plugin)
        end_plugin(self);
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
    if (self->has_plugin && (self->rejected || ml_clock_wall(self->clock) >= self->renew_ns))
        running = run_plugin(self);
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
    if (!self->has_plugin || (in_handshake && !self->gave_certificate))
        return false;
    self->rejected = true;
    return run_plugin(self);
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
    if (!self->accepted) { /* the next run may start at once */
        self->unproved = 0;
        self->not_before_ns = 0;
    }
    self->accepted = true;
}
