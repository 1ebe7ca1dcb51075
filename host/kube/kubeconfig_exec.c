/* A user's exec: which plugin is asked for credentials, and how. */
#include "kube/kubeconfig_internal.h"

#include "codec/json.h"

#define EXTENSION "client.authentication.k8s.io/exec"

static void release(struct ml_exec_config **exec)
{
    ml_exec_config_free(*exec);
}

/* A path is relative to the kubeconfig; a bare name is looked up in PATH. */
static int fill_command(struct ml_exec_config *config, const struct ml_kubeentry *exec,
                        struct ml_err *err)
{
    if (ml_kubeentry_string(exec, "command", &config->command, err) < 0)
        return err->kind;
    if (!config->command)
        return ml_kubeentry_fail(exec, err, "no command; add the plugin's name or path");
    if (strchr(config->command, '/'))
        return ml_kubeentry_path(exec, "command", &config->command, err);
    return 0;
}

static int fill_version(struct ml_exec_config *config, const struct ml_kubeentry *exec,
                        struct ml_err *err)
{
    if (ml_kubeentry_string(exec, "apiVersion", &config->api_version, err) < 0)
        return err->kind;
    const char *version = config->api_version ? config->api_version : "";
    if (strcmp(version, ML_EXEC_V1) != 0 && strcmp(version, ML_EXEC_V1BETA1) != 0)
        return ml_kubeentry_fail(exec, err,
                                 "apiVersion \"%s\" is not supported; the plugin's tool writes a "
                                 "new kubeconfig with " ML_EXEC_V1 " or " ML_EXEC_V1BETA1,
                                 version);
    return 0;
}

/* Nobody sits before an operator: what needs a terminal cannot work. */
static int check_mode(const struct ml_exec_config *config, const struct ml_kubeentry *exec,
                      struct ml_err *err)
{
    ML_AUTO_FREE char *mode = NULL;
    if (ml_kubeentry_string(exec, "interactiveMode", &mode, err) < 0)
        return err->kind;
    if (!mode && strcmp(config->api_version, ML_EXEC_V1BETA1) == 0)
        return 0;
    if (!mode)
        return ml_kubeentry_fail(exec, err, "no interactiveMode; add Never or IfAvailable");
    if (strcmp(mode, "Always") == 0)
        return ml_kubeentry_fail(exec, err,
                                 "interactiveMode Always: the plugin wants to ask a person, and "
                                 "none is there; use a token, a tokenFile or a client certificate");
    if (strcmp(mode, "Never") != 0 && strcmp(mode, "IfAvailable") != 0)
        return ml_kubeentry_fail(exec, err, "interactiveMode \"%s\"; use Never or IfAvailable",
                                 mode);
    return 0;
}

/* One {name, value} of the list; the reader stands at it. */
static int add_variable(struct ml_kubelist *out, const struct ml_kubeentry *exec,
                        struct ml_str element, struct ml_err *err)
{
    ML_AUTO_FREE char *name = ml_json_find_string(element, "name", NULL);
    ML_AUTO_FREE char *value = ml_json_find_string(element, "value", NULL);
    if (!name || !*name || strchr(name, '='))
        return ml_kubeentry_fail(exec, err, "env: each variable needs a name");
    if (!value && ml_json_find(element, &element, "value", NULL))
        return ml_kubeentry_fail(exec, err,
                                 "env: the value of %s must be a string; put it in "
                                 "quotes",
                                 name);
    ml_kubelist_add(out, ml_asprintf("%s=%s", name, value ? value : ""));
    return 0;
}

static int fill_env(struct ml_kubelist *out, const struct ml_kubeentry *exec, struct ml_err *err)
{
    struct ml_str raw;
    if (!ml_kubeentry_has(exec, "env") || !ml_json_find(exec->raw, &raw, "env", NULL))
        return 0;
    ML_AUTO(ml_json_reader_fini) struct ml_json_reader reader;
    ml_json_reader_init(&reader, raw, 0);
    if (ml_json_next(&reader) != ML_JSON_ARRAY)
        return ml_kubeentry_fail(exec, err, "env must be a list of names and values");
    for (;;) {
        struct ml_str element = ml_json_skip(&reader);
        if (element.len == 0)
            return 0;
        if (add_variable(out, exec, element, err) < 0)
            return err->kind;
    }
}

/* The cluster's own words to the plugin. */
static void fill_cluster_config(struct ml_exec_config *config, const struct ml_kubeentry *cluster)
{
    struct ml_str raw;
    if (!ml_json_find(cluster->raw, &raw, "extensions", NULL))
        return;
    ML_AUTO(ml_json_reader_fini) struct ml_json_reader reader;
    ml_json_reader_init(&reader, raw, 0);
    if (ml_json_next(&reader) != ML_JSON_ARRAY)
        return;
    for (struct ml_str element; (element = ml_json_skip(&reader)).len > 0;) {
        ML_AUTO_FREE char *name = ml_json_find_string(element, "name", NULL);
        if (name && strcmp(name, EXTENSION) == 0 &&
            ml_json_find(element, &raw, "extension", NULL) && !config->cluster_config)
            config->cluster_config = ml_str_dup(raw);
    }
}

int ml_kubeconfig_fill_exec(struct ml_kubeconfig *config, const struct ml_kubeentry *user,
                            const struct ml_kubeentry *cluster, struct ml_err *err)
{
    ML_AUTO(ml_kubeentry_fini) struct ml_kubeentry entry = {0};
    if (!ml_kubeentry_sub(user, "exec", "exec of user", &entry))
        return 0;
    ML_AUTO(release) struct ml_exec_config *exec = ml_new(struct ml_exec_config);
    ML_AUTO(ml_kubelist_fini) struct ml_kubelist args = {0};
    ML_AUTO(ml_kubelist_fini) struct ml_kubelist env = {0};
    if (fill_command(exec, &entry, err) < 0 || fill_version(exec, &entry, err) < 0 ||
        check_mode(exec, &entry, err) < 0 || ml_kubeentry_strings(&entry, "args", &args, err) < 0 ||
        fill_env(&env, &entry, err) < 0 ||
        ml_kubeentry_bool(&entry, "provideClusterInfo", &exec->provide_cluster_info, err) < 0)
        return err->kind;
    exec->install_hint = ml_json_find_string(entry.raw, "installHint", NULL);
    exec->args = ml_take(&args.items);
    exec->env = ml_take(&env.items);
    args.count = env.count = 0;
    fill_cluster_config(exec, cluster);
    config->exec = ml_take(&exec);
    return 0;
}
