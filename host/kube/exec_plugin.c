#include "kube/exec_plugin.h"

#include "kube/exec_metrics.h"

#include <stdio.h>

#define TIMEOUT_NS    (60 * ML_NS_PER_S)
#define OUTPUT_MAX    ((size_t)1024 * 1024)
#define ERRORS_MAX    ((size_t)4096)
#define REST_FIRST_NS (1 * ML_NS_PER_S)
#define REST_MAX_NS   (60 * ML_NS_PER_S)
#define SAYS_MAX      160 /* of a plugin's words in an error */
#define INFO_NAME     "KUBERNETES_EXEC_INFO"

extern char **environ;

struct ml_exec_plugin {
    struct ml_loop *loop;
    const struct ml_exec_config *config;
    const struct ml_exec_runner *runner;
    struct ml_log *log;
    struct ml_random *random;
    struct ml_exec_metrics metrics;
    void (*done)(void *context, struct ml_exec_credential *credential, const struct ml_err *err);
    void *context;

    struct ml_child *child; /* a run under way */
    struct ml_task failed;  /* a run that could not be started ends from the loop, too */
    struct ml_err start_err;
    bool running;
    int unproved;          /* runs since one was of use */
    int64_t not_before_ns; /* of the next run, monotonic */
};

void ml_exec_config_free(struct ml_exec_config *config)
{
    if (!config)
        return;
    for (char **arg = config->args; arg && *arg; arg++)
        free(*arg);
    for (char **entry = config->env; entry && *entry; entry++)
        free(*entry);
    free(config->args);
    free(config->env);
    free(config->command);
    free(config->api_version);
    free(config->install_hint);
    free(config->cluster_config);
    free(config);
}

/* ---- what it is started with ---- */

struct strings {
    const char **items; /* ends with NULL */
    size_t count;
};

static void strings_fini(struct strings *strings)
{
    free(strings->items);
}

static void strings_add(struct strings *strings, const char *text)
{
    strings->items = ml_realloc(strings->items, (strings->count + 2) * sizeof *strings->items);
    strings->items[strings->count++] = text;
    strings->items[strings->count] = NULL;
}

/* Do both set the same variable? */
static bool same_name(const char *a, const char *b)
{
    size_t len = strcspn(a, "=");
    return strncmp(a, b, len) == 0 && strcspn(b, "=") == len;
}

static bool is_set_anew(const struct ml_exec_config *config, const char *entry)
{
    for (char **own = config->env; own && *own; own++)
        if (same_name(*own, entry))
            return true;
    return same_name(INFO_NAME "=", entry);
}

/* Our environment, over it what the kubeconfig sets, and the spec. */
static void fill_env(const struct ml_exec_config *config, const char *info, struct strings *out)
{
    for (char **entry = environ; *entry; entry++)
        if (!is_set_anew(config, *entry))
            strings_add(out, *entry);
    for (char **own = config->env; own && *own; own++)
        if (!same_name(INFO_NAME "=", *own))
            strings_add(out, *own);
    strings_add(out, info);
}

static void fill_argv(const struct ml_exec_config *config, struct strings *out)
{
    strings_add(out, config->command);
    for (char **arg = config->args; arg && *arg; arg++)
        strings_add(out, *arg);
}

/* ---- its end ---- */

/* One printable line of what a stranger wrote. */
static void clean_line(struct ml_str text, char *out, size_t size)
{
    text = ml_str_trim(text);
    bool utf8 = ml_str_is_utf8(text);
    size_t len = ML_MIN(text.len, size - 1);
    while (utf8 && len < text.len && len > 0 && (text.ptr[len] & 0xc0) == 0x80)
        len--;
    for (size_t i = 0; i < len; i++) {
        unsigned char c = (unsigned char)text.ptr[i];
        out[i] = c < ' ' || c == 0x7f ? ' ' : c >= 0x80 && !utf8 ? '?' : (char)c;
    }
    out[len] = '\0';
}

static int fail_start(const struct ml_exec_plugin *plugin, struct ml_err *err)
{
    char hint[SAYS_MAX];
    const struct ml_err cause = *err;
    clean_line(ml_str_of(plugin->config->install_hint), hint, sizeof hint);
    if (cause.kind != ML_ENOT_FOUND)
        return ml_err_set(err, ML_EUNAUTHORIZED, "exec plugin %s", cause.message);
    return ml_err_set(err, ML_EUNAUTHORIZED,
                      "exec plugin %s; install it where moonloop runs, or correct exec.command in "
                      "the kubeconfig%s%s",
                      cause.message, *hint ? ": " : "", hint);
}

static int fail_end(const struct ml_exec_plugin *plugin, const struct ml_child_end *end,
                    struct ml_err *err)
{
    char says[SAYS_MAX];
    const char *name = plugin->config->command;
    clean_line(end->errors, says, sizeof says);
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

static void finish(struct ml_exec_plugin *plugin, struct ml_exec_credential *credential,
                   const struct ml_err *err)
{
    plugin->running = false;
    plugin->done(plugin->context, credential, err);
}

static void log_end(const struct ml_exec_plugin *plugin, const struct ml_child_end *end,
                    const struct ml_err *err)
{
    const char *command = plugin->config->command;
    if (err->kind)
        ml_warn(plugin->log, "credentials", "the exec plugin failed", ML_S("command", command),
                ML_ERR(err), ML_STR_FIELD("stderr", end ? end->errors : ML_STR("")));
    else if (end->errors.len > 0)
        ml_info(plugin->log, "credentials", "the exec plugin says", ML_S("command", command),
                ML_STR_FIELD("stderr", end->errors));
}

static void on_ended(void *context, const struct ml_child_end *end)
{
    struct ml_exec_plugin *plugin = context;
    struct ml_exec_credential credential = {0};
    struct ml_err err = ML_ERR_INIT;
    ml_exec_metrics_count(&plugin->metrics, end);
    if (end->timed_out || end->too_long || end->code != 0) {
        fail_end(plugin, end, &err);
    } else if (ml_exec_credential_parse(end->output, plugin->config->api_version, &credential,
                                        &err) < 0) {
        ml_err_wrap(&err, "exec plugin %s", plugin->config->command);
        err.kind = ML_EUNAUTHORIZED;
    }
    log_end(plugin, end, &err);
    plugin->runner->free(ml_take(&plugin->child));
    if (!err.kind)
        ml_exec_metrics_gave(&plugin->metrics, &credential);
    finish(plugin, err.kind ? NULL : &credential, err.kind ? &err : NULL);
    ml_exec_credential_fini(&credential);
}

static void on_not_started(void *context)
{
    struct ml_exec_plugin *plugin = context;
    finish(plugin, NULL, &plugin->start_err);
}

/* ---- the interface ---- */

struct ml_exec_plugin *ml_exec_plugin_new(const struct ml_exec_plugin_opts *opts)
{
    static const struct ml_exec_runner real = {ml_child_start, ml_child_free};
    struct ml_exec_plugin *plugin = ml_new(struct ml_exec_plugin);
    plugin->loop = opts->loop;
    plugin->config = opts->config;
    plugin->runner = opts->runner ? opts->runner : &real;
    plugin->log = opts->log;
    plugin->random = opts->random;
    plugin->done = opts->done;
    plugin->context = opts->context;
    ml_exec_metrics_init(&plugin->metrics, opts->metrics, ml_loop_clock(opts->loop));
    ml_task_init(&plugin->failed, on_not_started, plugin);
    return plugin;
}

void ml_exec_plugin_free(struct ml_exec_plugin *plugin)
{
    if (!plugin)
        return;
    ml_task_cancel(&plugin->failed);
    plugin->runner->free(plugin->child);
    ml_exec_metrics_fini(&plugin->metrics);
    free(plugin);
}

/* When the run after this one may be, should this one not help. */
static void rest(struct ml_exec_plugin *plugin, int64_t now_ns)
{
    int64_t delay_ns = REST_FIRST_NS << ML_MIN(plugin->unproved, 6);
    delay_ns = ML_MIN(delay_ns, REST_MAX_NS);
    plugin->unproved++;
    plugin->not_before_ns = now_ns + delay_ns / 2 +
                            ml_random_between(plugin->random, 0, delay_ns / 2 + 1);
}

static void start(struct ml_exec_plugin *plugin, const struct ml_exec_cluster *cluster)
{
    const struct ml_exec_config *config = plugin->config;
    ML_AUTO(ml_buf_fini) struct ml_buf info = ML_BUF_INIT;
    ML_AUTO(strings_fini) struct strings argv = {0};
    ML_AUTO(strings_fini) struct strings env = {0};
    ml_buf_puts(&info, INFO_NAME "=");
    ml_exec_info_write(config->api_version, config->provide_cluster_info ? cluster : NULL, &info);
    fill_argv(config, &argv);
    fill_env(config, ml_buf_cstr(&info), &env);
    const struct ml_child_opts opts = {
        .argv = argv.items,
        .env = env.items,
        .output_max = OUTPUT_MAX,
        .errors_max = ERRORS_MAX,
        .timeout_ns = TIMEOUT_NS,
        .ended = on_ended,
        .context = plugin,
    };
    plugin->start_err = ML_ERR_INIT;
    if (plugin->runner->start(plugin->loop, &opts, &plugin->child, &plugin->start_err) == 0)
        return;
    ml_exec_metrics_count_unstarted(&plugin->metrics, &plugin->start_err);
    fail_start(plugin, &plugin->start_err);
    log_end(plugin, NULL, &plugin->start_err);
    ml_task_defer(&plugin->failed, plugin->loop);
}

bool ml_exec_plugin_run(struct ml_exec_plugin *plugin, const struct ml_exec_cluster *cluster)
{
    int64_t now_ns = ml_clock_monotonic(ml_loop_clock(plugin->loop));
    if (plugin->running || now_ns < plugin->not_before_ns)
        return plugin->running;
    plugin->running = true;
    rest(plugin, now_ns);
    start(plugin, cluster);
    return true;
}

bool ml_exec_plugin_running(const struct ml_exec_plugin *plugin)
{
    return plugin->running;
}

void ml_exec_plugin_proved(struct ml_exec_plugin *plugin)
{
    plugin->unproved = 0;
    plugin->not_before_ns = 0;
}
