/* For tests of credentials: a kubeconfig in a folder of its own, a clock that is moved by hand,
 * and a runner that plays the exec plugin. */
#pragma once

#include <stdio.h>
#include <sys/stat.h>
#include <unistd.h>

#include "unit.h"

#include "codec/rfc3339.h"
#include "kube/credentials.h"
#include "kube/kubeconfig_internal.h"
#include "net/tls_authority.h"

#define START_NS (INT64_C(1000000000) * ML_NS_PER_S) /* 2001-09-09T01:46:40Z */

#define CONFIG(user)                                                                               \
    "clusters: [{name: c, cluster: {server: 'https://h:6443', certificate-authority: ca.crt}}]\n"  \
    "contexts: [{name: x, context: {cluster: c, user: u}}]\ncurrent-context: x\n"                  \
    "users: [{name: u, user: {" user "}}]\n"
#define CONFIG_EXEC                                                                                \
    CONFIG("exec: {apiVersion: client.authentication.k8s.io/v1, command: login, args: [-a], env: " \
           "[{name: HOME, value: /x}], interactiveMode: Never, provideClusterInfo: true, "         \
           "installHint: \"get\\nit\"}")

struct waiter {
    struct ml_credentials_wait wait;
    struct ml_identity identity;
    struct ml_err err;
    char authorization[64];
    int ready;
};

struct credentials_world {
    struct ml_clock_fake clock;
    struct ml_loop *loop;
    struct ml_random random;
    struct ml_metrics *metrics;
    struct ml_log log;
    FILE *log_file;
    char dir[64];
    struct ml_tls_identity one, two;
    struct ml_kubeconfig *config;
    struct ml_credentials *credentials;
    struct ml_err err;
    uint64_t checked; /* for the test: the generation that it has looked at */
};

/* The run under way, one at a time; the runner has no room for more. */
static struct {
    struct ml_child_opts opts;
    struct ml_child *child; /* NULL: none */
    int starts;
    int refuse; /* kind of error of the next starts, or 0 */
    char info[2048];
    char home[64];
} plugin;

static inline int plugin_start(struct ml_loop *loop, const struct ml_child_opts *opts,
                               struct ml_child **out, struct ml_err *err)
{
    (void)loop;
    assert_null(plugin.child);
    plugin.starts++;
    if (plugin.refuse)
        return ml_err_set(err, plugin.refuse, "%s: No such file or directory", opts->argv[0]);
    plugin.opts = *opts;
    plugin.child = *out = (struct ml_child *)&plugin;
    assert_string_equal(opts->argv[0], "login");
    assert_string_equal(opts->argv[1], "-a");
    assert_null(opts->argv[2]);
    for (const char *const *entry = opts->env; *entry; entry++) {
        if (strncmp(*entry, "KUBERNETES_EXEC_INFO=", 21) == 0)
            snprintf(plugin.info, sizeof plugin.info, "%s", *entry + 21);
        if (strncmp(*entry, "HOME=", 5) == 0)
            snprintf(plugin.home, sizeof plugin.home, "%s", *entry + 5);
    }
    return 0;
}

static inline void plugin_free(struct ml_child *child)
{
    if (child)
        plugin.child = NULL;
}

static const struct ml_exec_runner plugin_runner = {plugin_start, plugin_free};

/* The run under way ends. */
static inline void plugin_end(const struct ml_child_end *end)
{
    assert_non_null(plugin.child);
    plugin.opts.ended(plugin.opts.context, end);
    assert_null(plugin.child);
}

#define V1 "{\"kind\":\"ExecCredential\",\"apiVersion\":\"client.authentication.k8s.io/v1\","

static inline void plugin_write(const char *text)
{
    plugin_end(&(struct ml_child_end){.output = ml_str_of(text)});
}

/* `expires_s` after START_NS; 0: it does not say. */
static inline void plugin_give(const char *token, int64_t expires_s)
{
    char text[512], expiry[ML_RFC3339_LEN + 1] = "", field[64] = "";
    ml_rfc3339_format(START_NS + expires_s * ML_NS_PER_S, expiry);
    if (expires_s)
        snprintf(field, sizeof field, ",\"expirationTimestamp\":\"%s\"", expiry);
    snprintf(text, sizeof text, V1 "\"status\":{\"token\":\"%s\"%s}}", token, field);
    plugin_write(text);
}

static inline void world_write(const struct credentials_world *world, const char *name,
                               struct ml_str text)
{
    ML_AUTO_FREE char *path = ml_asprintf("%s/%s", world->dir, name);
    FILE *file = fopen(path, "w");
    assert_non_null(file);
    assert_int_equal(fwrite(text.ptr, 1, text.len, file), text.len);
    fclose(file);
}

static inline void world_put(const struct credentials_world *world, const char *name,
                             const char *text)
{
    world_write(world, name, ml_str_of(text));
}

static inline void world_open(struct credentials_world *world, const char *kubeconfig)
{
    const struct ml_kubeconfig_env env = {.account_dir = "/nonexistent"};
    world_put(world, "config", kubeconfig);
    ML_AUTO_FREE char *path = ml_asprintf("%s/config", world->dir);
    if (ml_kubeconfig_load_env(&(struct ml_kubeconfig_opts){.path = path}, &env, &world->config,
                               &world->err) < 0)
        fail_msg("%s", world->err.message);
    world->credentials = ml_credentials_new(&(struct ml_credentials_opts){
        .loop = world->loop,
        .config = world->config,
        .log = &world->log,
        .metrics = world->metrics,
        .random = &world->random,
        .runner = &plugin_runner,
    });
}

static inline int world_setup(void **state)
{
    struct credentials_world *world = ml_new(struct credentials_world);
    memset(&plugin, 0, sizeof plugin);
    ml_clock_fake_init(&world->clock, START_NS);
    world->loop = ml_loop_new(&world->clock.clock);
    world->metrics = ml_metrics_new();
    ml_random_init(&world->random, 1);
    strcpy(world->dir, "/tmp/test_credentials_XXXXXX");
    assert_non_null(mkdtemp(world->dir));
    world->log_file = tmpfile();
    ml_log_init(&world->log, &world->clock.clock, fileno(world->log_file), ML_LOG_JSON,
                ML_LOG_INFO);
    const struct ml_tls_authority_opts opts = {.clock = &world->clock.clock, .valid_s = 3600};
    assert_int_equal(ml_tls_authority_make(&opts, &world->one, &world->err), 0);
    assert_int_equal(ml_tls_authority_make(&opts, &world->two, &world->err), 0);
    world_put(world, "ca.crt", world->one.ca_pem);
    *state = world;
    return 0;
}

static inline int world_teardown(void **state)
{
    struct credentials_world *world = *state;
    ml_credentials_free(world->credentials);
    assert_null(plugin.child);
    ml_kubeconfig_free(world->config);
    ml_loop_free(world->loop);
    ml_metrics_free(world->metrics);
    ml_tls_identity_fini(&world->one);
    ml_tls_identity_fini(&world->two);
    fclose(world->log_file);
    ML_AUTO_FREE char *command = ml_asprintf("rm -r '%s'", world->dir);
    assert_int_equal(system(command), 0);
    free(world);
    return 0;
}

/* Lines of the log that have `text` in them. */
static inline int world_logged(struct credentials_world *world, const char *text)
{
    char line[8192];
    int count = 0;
    rewind(world->log_file);
    while (fgets(line, sizeof line, world->log_file))
        count += strstr(line, text) != NULL;
    return count;
}

static inline void world_wait(struct credentials_world *world, int64_t ns)
{
    ml_clock_fake_advance(&world->clock, ns);
    ml_loop_poll(world->loop);
}

static inline void waiter_ready(void *context, const struct ml_identity *identity,
                                const struct ml_err *err)
{
    struct waiter *waiter = context;
    waiter->ready++;
    assert_true(!identity != !err);
    if (err)
        waiter->err = *err;
    if (identity)
        waiter->identity = *identity;
    snprintf(waiter->authorization, sizeof waiter->authorization, "%s",
             identity && identity->authorization ? identity->authorization : "");
}

/* Asks; true when there was an answer at once. */
static inline bool ask(struct credentials_world *world, struct waiter *waiter)
{
    struct ml_identity identity;
    *waiter = (struct waiter){.wait = {.ready = waiter_ready, .context = waiter}};
    if (!ml_credentials_get(world->credentials, &identity, &waiter->wait))
        return false;
    waiter_ready(waiter, &identity, NULL);
    return true;
}

/* The token that a request would show now; NULL: it has to wait. */
static inline const char *shown(struct credentials_world *world, struct waiter *waiter)
{
    if (!ask(world, waiter))
        return NULL;
    return strncmp(waiter->authorization, "Bearer ", 7) == 0 ? waiter->authorization + 7
                                                             : waiter->authorization;
}

#define WITH_WORLD(test) cmocka_unit_test_setup_teardown(test, world_setup, world_teardown)
