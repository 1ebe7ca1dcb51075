/* moonloop rbac: the roles that the given scripts need, and those that the host itself needs by its
 * flags. Loads the scripts as a running host would; cluster/analysis/rbac reads out of their
 * declarations and texts which verbs they need. */
#include "base/escape.h"
#include "cli/crds.h"
#include "cluster/cli/commands.h"
#include "cluster/host/server_lua.h"
#include "codec/json.h"
#include "include/moonloop.h"
#include "operator/load.h"
#include "operator/webhook_manifests.h"
#include "operator/webhooks.h"

#include <stdio.h>

struct rbac {
    struct ml_option_list paths, crds, configmaps, namespaces, binds;
    const char *service_account; /* "namespace/name" */
    const char *lease_name, *lease_namespace;
    const char *inspect_address, *webhook_address, *cert_dir, *cert_secret;
    bool leader_elect, shard;
    struct ml_script_limits limits;
    struct ml_str account_namespace, account_name; /* slices of service_account */
};

/* ---- the question to cluster/analysis/rbac ---- */

/* Of an option such as --webhook-bind-address. */
static bool is_served(const char *address)
{
    return address && *address && strcmp(address, "0") != 0;
}

static void put_flags(struct ml_json_writer *writer, const struct rbac *rbac)
{
    struct ml_str lease_namespace = rbac->lease_namespace ? ml_str_of(rbac->lease_namespace)
                                                          : rbac->account_namespace;
    ml_json_key(writer, ML_STR("flags"));
    ml_json_begin_object(writer);
    ml_json_key(writer, ML_STR("account"));
    ml_json_begin_object(writer);
    ml_json_put_string(writer, "namespace", rbac->account_namespace);
    ml_json_put_string(writer, "name", rbac->account_name);
    ml_json_end_object(writer);
    ml_option_list_put(writer, "configmaps", &rbac->configmaps);
    ml_option_list_put(writer, "namespaces", &rbac->namespaces);
    ml_option_list_put(writer, "binds", &rbac->binds);
    ml_json_put_bool(writer, "leader_elect", rbac->leader_elect);
    ml_json_put_bool(writer, "shard", rbac->shard);
    ml_json_put_bool(writer, "inspect", is_served(rbac->inspect_address));
    if (is_served(rbac->webhook_address) && !rbac->cert_dir)
        ml_json_put_string(writer, "cert_secret", ml_str_of(rbac->cert_secret));
    ml_json_put_string(writer, "lease_name", ml_str_of(rbac->lease_name));
    ml_json_put_string(writer, "lease_namespace", lease_namespace);
    ml_json_end_object(writer);
}

static void put_kinds(struct ml_json_writer *writer, const struct ml_declaration *declaration)
{
    static const char *const uses[] = {[ML_USE_RECONCILES] = "reconciles",
                                       [ML_USE_OWNS] = "owns",
                                       [ML_USE_WATCHES] = "watches",
                                       [ML_USE_TOUCHES] = "uses"};
    ml_json_key(writer, ML_STR("kinds"));
    ml_json_begin_array(writer);
    for (size_t i = 0; i < declaration->kind_count; i++) {
        const struct ml_script_kind *kind = &declaration->kinds[i];
        ml_json_begin_object(writer);
        ml_json_put_string(writer, "group", kind->gvk.group);
        ml_json_put_string(writer, "version", kind->gvk.version);
        ml_json_put_string(writer, "kind", kind->gvk.kind);
        ml_json_put_string(writer, "use", ml_str_of(uses[kind->use]));
        ml_json_put_int(writer, "line", kind->line);
        ml_json_end_object(writer);
    }
    ml_json_end_array(writer);
}

/* The names of what the host writes its authority's certificate into. */
static void put_webhooks(struct ml_json_writer *writer, const struct ml_declaration *declaration)
{
    const struct ml_script_webhooks *webhooks = &declaration->webhooks;
    ML_AUTO_FREE char *name = ml_webhook_configuration_name(declaration);
    ml_json_key(writer, ML_STR("webhooks"));
    ml_json_begin_object(writer);
    ml_json_put_string(writer, "configuration", ml_str_of(name));
    ml_json_put_bool(writer, "defaults", webhooks->defaults);
    ml_json_put_bool(writer, "validates", webhooks->validates);
    ml_json_put_bool(writer, "converts", webhooks->version_count > 0);
    ml_json_end_object(writer);
}

/* The script, with the text of its file and of the modules that it requires. */
static void put_script(struct ml_json_writer *writer, const struct ml_script *script,
                       const struct ml_files *files)
{
    const struct ml_declaration *declaration = ml_script_declaration(script);
    ml_json_begin_object(writer);
    ml_json_put_string(writer, "file", ml_str_of(declaration->file));
    ml_json_put_string(writer, "name", ml_str_of(declaration->name));
    put_kinds(writer, declaration);
    put_webhooks(writer, declaration);
    ml_json_key(writer, ML_STR("texts"));
    ml_json_begin_array(writer);
    for (size_t i = 0; i < files->count; i++)
        if (ml_script_loaded_file(script, files->files[i].name))
            ml_json_string(writer, files->files[i].text);
    ml_json_end_array(writer);
    ml_json_end_object(writer);
}

/* ---- reading ---- */

static size_t refuse(const struct ml_err *err)
{
    ml_print_line(stderr, "%s", err->message);
    return 1;
}

/* Returns how many files are no good; each has a line on stderr. */
static size_t read_scripts(struct ml_json_writer *writer, const struct rbac *rbac, const char *path)
{
    ML_AUTO(ml_files_fini) struct ml_files files = ML_FILES_INIT;
    ML_AUTO(ml_load_fini) struct ml_load load = {.files = ML_FILES_INIT};
    const struct ml_load_opts opts = {.limits = &rbac->limits};
    struct ml_err err = ML_ERR_INIT;
    size_t bad = 0, found = 0;
    if (ml_files_read(&files, &ml_files_scripts, path, &err) < 0)
        return refuse(&err);
    ml_load_all(&load, &files, &opts);
    for (size_t i = 0; i < files.refused_count; i++)
        bad += refuse(&files.refused[i].err);
    for (size_t i = 0; i < files.count; i++) {
        if (load.verdicts[i].outcome == ML_LOAD_REFUSED)
            bad += refuse(&load.verdicts[i].err);
        else if (load.verdicts[i].outcome == ML_LOAD_CONTROLLER)
            found++, put_script(writer, load.verdicts[i].script, &files);
    }
    if (bad + found == 0) {
        ml_err_set(&err, ML_EINVALID, "%s: no script with a controller in it", path);
        bad = refuse(&err);
    }
    return bad;
}

/* The command line, for the first line of the output. */
static void put_title(struct ml_json_writer *writer, char **argv)
{
    ML_AUTO(ml_buf_fini) struct ml_buf title = ML_BUF_INIT;
    ml_buf_puts(&title, "Made by: moonloop");
    for (; *argv; argv++) {
        ml_buf_putc(&title, ' ');
        ml_escape_text(&title, ml_str_of(*argv));
    }
    ml_json_put_string(writer, "title", ml_buf_str(&title));
}

/* ---- the command ---- */

/* Prints the answer of cluster/analysis/rbac. */
static int print_answer(struct ml_str answer, struct ml_err *err)
{
    ML_AUTO_FREE char *yaml = ml_json_find_string(answer, "yaml", NULL);
    struct ml_str problems = {NULL, 0};
    ml_json_find(answer, &problems, "problems", NULL);
    ML_AUTO(ml_json_reader_fini) struct ml_json_reader reader;
    ml_json_reader_init(&reader, problems, 0);
    ml_json_next(&reader);
    for (struct ml_str problem; (problem = ml_json_skip(&reader)).len;) {
        ML_AUTO(ml_buf_fini) struct ml_buf line = ML_BUF_INIT;
        ml_json_to_string(problem, &line);
        ml_err_set(err, ML_EINVALID, "%s", ml_buf_cstr(&line));
        refuse(err);
    }
    if (!yaml)
        return MOONLOOP_EXIT_BAD;
    fputs(yaml, stdout);
    return MOONLOOP_EXIT_OK;
}

static int print_roles(const struct rbac *rbac, char **argv, struct ml_err *err)
{
    ML_AUTO(ml_buf_fini) struct ml_buf request = ML_BUF_INIT;
    ML_AUTO(ml_buf_fini) struct ml_buf answer = ML_BUF_INIT;
    struct ml_json_writer writer;
    size_t bad = 0;
    ml_json_writer_init(&writer, &request);
    ml_json_begin_object(&writer);
    put_title(&writer, argv);
    put_flags(&writer, rbac);
    ml_json_key(&writer, ML_STR("manifests"));
    ml_json_begin_array(&writer);
    for (size_t i = 0; i < rbac->crds.count; i++)
        if (ml_crds_put(&writer, rbac->crds.values[i], err) < 0)
            bad += refuse(err);
    ml_json_end_array(&writer);
    ml_json_key(&writer, ML_STR("scripts"));
    ml_json_begin_array(&writer);
    for (size_t i = 0; i < rbac->paths.count; i++)
        bad += read_scripts(&writer, rbac, rbac->paths.values[i]);
    ml_json_end_array(&writer);
    ml_json_end_object(&writer);
    if (bad > 0)
        return MOONLOOP_EXIT_BAD;
    struct ml_server_lua *lua = ml_server_lua_new(&(struct ml_server_lua_options){.loop = NULL});
    int r = ml_server_lua_call(lua, "cluster.analysis.rbac", "render", ml_buf_str(&request),
                               &answer, err);
    ml_server_lua_free(lua);
    if (r < 0)
        return refuse(err), MOONLOOP_EXIT_BAD;
    return print_answer(ml_buf_str(&answer), err);
}

/* "NAMESPACE/NAME" */
static bool split_key(const char *text, struct ml_str *out_namespace, struct ml_str *out_name)
{
    struct ml_str rest = ml_str_of(text);
    *out_namespace = ml_str_cut(&rest, '/');
    *out_name = rest;
    return rest.ptr && ml_name_valid(*out_namespace) && ml_name_valid(rest);
}

static int check(struct rbac *rbac, struct ml_err *err)
{
    struct ml_str ns, name;
    if (rbac->leader_elect && rbac->shard)
        return ml_err_set(err, ML_EINVALID, "--leader-elect and --shard: one of them");
    if (!split_key(rbac->service_account, &rbac->account_namespace, &rbac->account_name))
        return ml_err_set(err, ML_EINVALID, "--service-account %s: expected NAMESPACE/NAME",
                          rbac->service_account);
    for (size_t i = 0; i < rbac->configmaps.count; i++)
        if (!split_key(rbac->configmaps.values[i], &ns, &name))
            return ml_err_set(err, ML_EINVALID, "--scripts-configmap %s: expected NAMESPACE/NAME",
                              rbac->configmaps.values[i]);
    for (size_t i = 0; i < rbac->namespaces.count; i++)
        if (!ml_name_valid(ml_str_of(rbac->namespaces.values[i])))
            return ml_err_set(err, ML_EINVALID, "--namespace %s: no namespace has such a name",
                              rbac->namespaces.values[i]);
    for (size_t i = 0; i < rbac->binds.count; i++)
        if (!ml_name_valid(ml_str_of(rbac->binds.values[i])))
            return ml_err_set(err, ML_EINVALID, "--bind %s: no role has such a name",
                              rbac->binds.values[i]);
    if (!ml_name_valid(ml_str_of(rbac->cert_secret)))
        return ml_err_set(err, ML_EINVALID, "--webhook-cert-secret %s: no Secret has such a name",
                          rbac->cert_secret);
    if (!ml_name_valid(ml_str_of(rbac->lease_name)) ||
        (rbac->lease_namespace && !ml_name_valid(ml_str_of(rbac->lease_namespace))))
        return ml_err_set(err, ML_EINVALID,
                          "--leader-election-id, --leader-election-namespace: expected a name");
    if (rbac->paths.count + rbac->configmaps.count == 0 && !rbac->leader_elect && !rbac->shard &&
        !is_served(rbac->inspect_address))
        return ml_err_set(err, ML_EINVALID, "nothing to print roles for: moonloop rbac PATH");
    return 0;
}

static const struct rbac defaults = {
    .service_account = "moonloop-system/moonloop",
    .lease_name = "moonloop",
    .cert_secret = ML_WEBHOOK_SECRET,
};

static const struct ml_option options[] = {
    {"--crds", "PATH", "CRDs (YAML file or folder) of the kinds that are not built in (repeat)",
     ML_OPTION_LIST, offsetof(struct rbac, crds)},
    {"--service-account", "NS/NAME", "gets the rights; default moonloop-system/moonloop",
     ML_OPTION_TEXT, offsetof(struct rbac, service_account)},
    {"--bind", "ROLE", "a ClusterRole that scripts may give away in bindings (repeat)",
     ML_OPTION_LIST, offsetof(struct rbac, binds)},
    {"--namespace", "NS", "as for run: roles in this namespace only (repeat); default: all",
     ML_OPTION_LIST, offsetof(struct rbac, namespaces)},
    {"--scripts-configmap", "NS/NAME", "as for run: the right to watch it (repeat)", ML_OPTION_LIST,
     offsetof(struct rbac, configmaps)},
    {"--leader-elect", NULL, "as for run: the rights on its Lease", ML_OPTION_FLAG,
     offsetof(struct rbac, leader_elect)},
    {"--shard", NULL, "as for run: the rights on the Leases of the group", ML_OPTION_FLAG,
     offsetof(struct rbac, shard)},
    {"--leader-election-id", "NAME", "of the Lease; default moonloop", ML_OPTION_TEXT,
     offsetof(struct rbac, lease_name)},
    {"--leader-election-namespace", "NS", "of the Lease; default: the service account's",
     ML_OPTION_TEXT, offsetof(struct rbac, lease_namespace)},
    {"--inspect-bind-address", "HOST:PORT", "as for run: the rights to review who asks",
     ML_OPTION_TEXT, offsetof(struct rbac, inspect_address)},
    {"--webhook-bind-address", "HOST:PORT", "as for run: the rights of webhooks that are served",
     ML_OPTION_TEXT, offsetof(struct rbac, webhook_address)},
    {"--webhook-cert-secret", "NAME", "as for run; default " ML_WEBHOOK_SECRET, ML_OPTION_TEXT,
     offsetof(struct rbac, cert_secret)},
    {"--webhook-cert-dir", "DIR", "as for run: no rights for a certificate of webhooks",
     ML_OPTION_TEXT, offsetof(struct rbac, cert_dir)},
    {"--script-memory", "BYTES", "limit of one script's memory; default 16Mi", ML_OPTION_SIZE,
     offsetof(struct rbac, limits.memory_max)},
};

static int run(void *values, char **argv, struct ml_err *err)
{
    struct rbac *rbac = values;
    struct ml_err shown = ML_ERR_INIT; /* of files: printed without the name of the command */
    if (check(rbac, err) < 0)
        return MOONLOOP_EXIT_USAGE;
    return print_roles(rbac, argv, &shown);
}

const struct ml_command ml_command_rbac = {
    .name = "rbac",
    .usage = "[PATH…] [OPTIONS]",
    .summary = "the roles that scripts and flags need, as YAML",
    .description =
        "Prints the ServiceAccount, roles and bindings that `moonloop run` needs for these\n"
        "scripts and flags, and no more: verbs by what the scripts declare and call. Without\n"
        "a PATH, only the roles that the flags ask for. Touches no cluster.",
    .example = "reconcilers/ --crds crds/ --leader-elect > rbac.yaml",
    .options = options,
    .option_count = ML_COUNT(options),
    .words = offsetof(struct rbac, paths),
    .values_size = sizeof(struct rbac),
    .defaults = &defaults,
    .run = run,
};
