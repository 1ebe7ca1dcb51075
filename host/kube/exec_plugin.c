/* Runs the exec plugin of a kubeconfig, and turns how it ended into credentials or an error. */
#include "kube/exec_plugin.h"

#include "base/escape.h"
#include "base/repeat.h"
#include "base/wipe.h"
#include "codec/base64.h"
#include "codec/json.h"
#include "codec/rfc3339.h"
#include "net/tls.h"

#include <math.h>
#include <stdio.h>

#define TIMEOUT_NS       (60 * ML_NS_PER_S)
#define OUTPUT_MAX       ((size_t)1024 * 1024)
#define ERRORS_MAX       ((size_t)4096)
#define BACKOFF_FIRST_NS (1 * ML_NS_PER_S)
#define BACKOFF_MAX_NS   (60 * ML_NS_PER_S)
#define SAYS_MAX         160 /* of a plugin's words in an error */
#define INFO_NAME        "KUBERNETES_EXEC_INFO"

extern char **environ;

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

/* ---- the plugin ---- */

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

struct ml_exec_plugin {
    struct ml_loop *loop;
    const struct ml_kubeconfig *config;
    const struct ml_exec_runner *runner;
    struct ml_log *log;
    struct ml_random *random;
    struct exec_metrics metrics;
    ml_exec_plugin_done *done;
    void *context;

    struct ml_child *child; /* a run under way */
    struct ml_task failed;  /* calls done() from the loop when a run could not be started */
    struct ml_err start_err;
    bool running;
    int unproved;          /* runs since the server accepted what one gave */
    int64_t not_before_ns; /* of the next run, monotonic */
    struct ml_repeat repeat;
};

/* ---- metrics ---- */

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

/* ---- the environment ---- */

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

/* ---- the end of a run ---- */

static int explain_failed_start(const struct ml_exec_plugin *plugin, struct ml_err *err)
{
    char hint[SAYS_MAX];
    const struct ml_err cause = *err;
    ml_clean_line(ml_str_of(plugin->config->exec->install_hint), hint, sizeof hint);
    if (cause.kind != ML_ENOT_FOUND)
        return ml_err_set(err, ML_EUNAUTHORIZED, "exec plugin %s", cause.message);
    return ml_err_set(err, ML_EUNAUTHORIZED,
                      "exec plugin %s; install it where moonloop runs, or correct exec.command in "
                      "the kubeconfig%s%s",
                      cause.message, *hint ? ": " : "", hint);
}

static int explain_failed_run(const struct ml_exec_plugin *plugin, const struct ml_child_end *end,
                              struct ml_err *err)
{
    char says[SAYS_MAX];
    const char *name = ml_exec_command(plugin->config);
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

static void finish_run(struct ml_exec_plugin *plugin, struct ml_exec_credential *credential,
                       const struct ml_err *err)
{
    plugin->running = false;
    plugin->done(plugin->context, credential, err);
}

static void log_failed_run(struct ml_exec_plugin *plugin, struct ml_str errors,
                           const struct ml_err *err)
{
    int64_t now_ns = ml_clock_monotonic(ml_loop_clock(plugin->loop));
    if (!ml_repeat_failed(&plugin->repeat, ml_str_of(err->message), now_ns))
        return;
    ml_warn(plugin->log, "credentials", "the exec plugin failed",
            ML_S("command", ml_exec_command(plugin->config)), ML_ERR(err),
            ML_REPEAT_FIELDS(&plugin->repeat, ML_MAX(0, plugin->not_before_ns - now_ns)),
            ML_STR_FIELD("stderr", errors));
}

static void log_run(struct ml_exec_plugin *plugin, const struct ml_child_end *end,
                    const struct ml_err *err)
{
    if (err->kind) {
        log_failed_run(plugin, end->errors, err);
        return;
    }
    ml_repeat_over(&plugin->repeat);
    if (end->errors.len > 0)
        ml_info(plugin->log, "credentials", "the exec plugin says",
                ML_S("command", ml_exec_command(plugin->config)),
                ML_STR_FIELD("stderr", end->errors));
}

static void on_plugin_ended(void *context, const struct ml_child_end *end)
{
    struct ml_exec_plugin *plugin = context;
    struct ml_exec_credential credential = {0};
    struct ml_err err = ML_ERR_INIT;
    count_run(&plugin->metrics, end->signo ? -1 : end->code,
              end->code == 0 ? "no_error" : "plugin_execution_error");
    if (end->timed_out || end->too_long || end->code != 0) {
        explain_failed_run(plugin, end, &err);
    } else if (ml_exec_credential_parse(end->output, plugin->config->exec->api_version, &credential,
                                        &err) < 0) {
        ml_err_wrap(&err, "exec plugin %s", ml_exec_command(plugin->config));
        err.kind = ML_EUNAUTHORIZED;
    }
    log_run(plugin, end, &err);
    plugin->runner->free(ml_take(&plugin->child));
    if (!err.kind)
        measure_certificate(&plugin->metrics, &credential);
    finish_run(plugin, err.kind ? NULL : &credential, err.kind ? &err : NULL);
    ml_exec_credential_fini(&credential);
}

static void on_plugin_not_started(void *context)
{
    struct ml_exec_plugin *plugin = context;
    finish_run(plugin, NULL, &plugin->start_err);
}

/* ---- the interface ---- */

struct ml_exec_plugin *ml_exec_plugin_new(const struct ml_credentials_opts *opts,
                                          ml_exec_plugin_done *done, void *context)
{
    static const struct ml_exec_runner real = {ml_child_start, ml_child_free};
    struct ml_exec_plugin *plugin = ml_new(struct ml_exec_plugin);
    plugin->loop = opts->loop;
    plugin->config = opts->config;
    plugin->runner = opts->runner ? opts->runner : &real;
    plugin->log = opts->log;
    plugin->random = opts->random;
    plugin->done = done;
    plugin->context = context;
    register_exec_metrics(&plugin->metrics, opts->metrics, ml_loop_clock(opts->loop));
    ml_task_init(&plugin->failed, on_plugin_not_started, plugin);
    return plugin;
}

void ml_exec_plugin_free(struct ml_exec_plugin *plugin)
{
    if (!plugin)
        return;
    ml_task_cancel(&plugin->failed);
    plugin->runner->free(plugin->child);
    ml_metrics_collector_remove(&plugin->metrics.collector);
    free(plugin);
}

/* Sets when the next run may start, if this one gives nothing that the server accepts. */
static void set_backoff(struct ml_exec_plugin *plugin, int64_t now_ns)
{
    int64_t delay_ns = BACKOFF_FIRST_NS << ML_MIN(plugin->unproved, 6);
    delay_ns = ML_MIN(delay_ns, BACKOFF_MAX_NS);
    plugin->unproved++;
    plugin->not_before_ns = now_ns + delay_ns / 2 +
                            ml_random_between(plugin->random, 0, delay_ns / 2 + 1);
}

static void start_run(struct ml_exec_plugin *plugin)
{
    const struct ml_exec_config *config = plugin->config->exec;
    ML_AUTO(ml_buf_fini) struct ml_buf info = ML_BUF_INIT;
    ml_buf_puts(&info, INFO_NAME "=");
    ml_exec_info_write(plugin->config, &info);
    ML_AUTO_FREE const char **env = make_plugin_env(&config->env, ml_buf_cstr(&info));
    const struct ml_child_opts opts = {
        .argv = (const char *const *)config->argv.items,
        .env = env,
        .output_max = OUTPUT_MAX,
        .errors_max = ERRORS_MAX,
        .timeout_ns = TIMEOUT_NS,
        .ended = on_plugin_ended,
        .context = plugin,
    };
    plugin->start_err = ML_ERR_INIT;
    if (plugin->runner->start(plugin->loop, &opts, &plugin->child, &plugin->start_err) == 0)
        return;
    bool found = plugin->start_err.kind != ML_ENOT_FOUND;
    count_run(&plugin->metrics, 1, found ? "client_internal_error" : "plugin_not_found_error");
    explain_failed_start(plugin, &plugin->start_err);
    log_failed_run(plugin, ML_STR(""), &plugin->start_err);
    ml_task_defer(&plugin->failed, plugin->loop);
}

bool ml_exec_plugin_run(struct ml_exec_plugin *plugin)
{
    int64_t now_ns = ml_clock_monotonic(ml_loop_clock(plugin->loop));
    if (plugin->running || now_ns < plugin->not_before_ns)
        return plugin->running;
    plugin->running = true;
    set_backoff(plugin, now_ns);
    start_run(plugin);
    return true;
}

void ml_exec_plugin_reset_backoff(struct ml_exec_plugin *plugin)
{
    plugin->unproved = 0;
    plugin->not_before_ns = 0;
}
