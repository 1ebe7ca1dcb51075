/* moonloop rollback, pause and retry: they set the annotations by which a person stops, repeats or
 * takes back what a host in the cluster does (docs/changing.md). `kubectl annotate` can do the
 * same; these find the ConfigMap, the revisions and the kind. */
#include "cli/api.h"

#include "base/escape.h"
#include "codec/rfc3339.h"
#include "include/moonloop.h"
#include "kube/object.h"
#include "operator/history.h"
#include "operator/load.h"
#include "operator/source.h"

#include <stdio.h>

struct values {
    struct ml_api_opts api;
    struct ml_option_list words;
    const char *configmap, *to;
    bool ends;
};

/* The ConfigMap of a controller's script. */
struct target {
    struct ml_api *api;
    const char *controller;
    char *ns, *name;       /* of the ConfigMap */
    struct ml_buf scripts; /* it, as JSON */
    struct ml_buf kept;    /* the one with its revisions; empty: there is none */
};

static void target_fini(struct target *self)
{
    ml_api_close(self->api);
    free(self->ns);
    free(self->name);
    ml_buf_fini(&self->scripts);
    ml_buf_fini(&self->kept);
}

/* ---- finding it ---- */

static int read_configmap(struct target *self, const char *name, struct ml_buf *out,
                          struct ml_err *err)
{
    struct ml_client_request request = {.verb = ML_VERB_GET,
                                        .kind = &ml_kind_configmap,
                                        .ns = ml_str_of(self->ns),
                                        .name = ml_str_of(name)};
    return ml_api_ask(self->api, &request, out, err);
}

static bool keeps_controller(struct ml_str configmap, const char *controller)
{
    ML_AUTO(ml_buf_fini) struct ml_buf list = ML_BUF_INIT;
    ml_kept_list(configmap, ml_str_of(controller), &list);
    return list.len > 0;
}

/* Takes the name of the one ConfigMap in `list` that keeps a revision of the controller. */
static int choose_kept(struct target *self, struct ml_str list, struct ml_err *err)
{
    ML_AUTO(ml_json_reader_fini) struct ml_json_reader reader;
    struct ml_str items = {"", 0};
    (void)ml_json_find(list, &items, "items", NULL);
    ml_json_reader_init(&reader, items, 0);
    if (ml_json_next(&reader) != ML_JSON_ARRAY)
        return ml_err_set(err, ML_EINVALID, "the API server's list of ConfigMaps is broken");
    for (struct ml_str item; (item = ml_json_skip(&reader)).len > 0;) {
        ML_AUTO_FREE char *name = ml_json_find_string(item, "metadata", "name", NULL);
        if (!name || !ml_str_ends(ml_str_of(name), ML_HISTORY_SUFFIX) ||
            !keeps_controller(item, self->controller))
            continue;
        name[strlen(name) - strlen(ML_HISTORY_SUFFIX)] = '\0';
        if (self->name)
            return ml_err_set(
                err, ML_EINVALID,
                "controller %s is in the ConfigMaps %s and %s of namespace %s; choose "
                "one with --scripts-configmap",
                self->controller, self->name, name, self->ns);
        self->name = ml_take(&name);
    }
    if (self->name)
        return 0;
    return ml_err_set(err, ML_ENOT_FOUND,
                      "no ConfigMap in namespace %s keeps a revision of controller %s; choose "
                      "another --namespace, or name the scripts with --scripts-configmap",
                      self->ns, self->controller);
}

static int find_configmap(struct target *self, const struct values *values, struct ml_err *err)
{
    ML_AUTO(ml_buf_fini) struct ml_buf list = ML_BUF_INIT;
    if (values->configmap) {
        struct ml_str name = ml_str_of(values->configmap);
        struct ml_str ns = ml_str_cut(&name, '/');
        self->ns = ml_str_dup(ns);
        self->name = ml_str_dup(name);
        return 0;
    }
    self->ns = ml_strdup(ml_api_namespace(self->api));
    if (!ml_name_valid(ml_str_of(self->ns)))
        return ml_err_set(err, ML_EINVALID, "--namespace %s: no namespace has such a name",
                          self->ns);
    ML_AUTO(ml_buf_fini) struct ml_buf path = ML_BUF_INIT;
    ml_kind_path(&ml_kind_configmap, ml_str_of(self->ns), ML_STR(""), ML_STR(""), &path);
    ml_url_query(&path, "labelSelector", ML_STR(ML_MANAGED_BY "=moonloop"));
    struct ml_client_request request = {.verb = ML_VERB_GET, .path = ml_buf_cstr(&path)};
    if (ml_api_ask(self->api, &request, &list, err) < 0)
        return err->kind;
    return choose_kept(self, ml_buf_str(&list), err);
}

static int target_read(struct target *self, struct ml_err *err)
{
    ML_AUTO_FREE char *kept = ml_asprintf("%s" ML_HISTORY_SUFFIX, self->name);
    struct ml_err missing = ML_ERR_INIT;
    if (read_configmap(self, self->name, &self->scripts, err) < 0)
        return err->kind;
    if (read_configmap(self, kept, &self->kept, &missing) < 0 && missing.kind != ML_ENOT_FOUND) {
        *err = missing;
        return err->kind;
    }
    return 0;
}

/* Returns an exit code; `err` says more. */
static int target_open(struct target *self, const struct values *values, struct ml_err *err)
{
    *self = (struct target){.controller = values->words.values[0]};
    if (ml_api_open(&values->api, &self->api, err) < 0)
        return MOONLOOP_EXIT_UNREACHABLE;
    if (find_configmap(self, values, err) < 0 || target_read(self, err) < 0)
        return ml_api_exit_code(err);
    return MOONLOOP_EXIT_OK;
}

/* ---- its scripts ---- */

/* The revision that the ConfigMap has of the controller. NULL: `err` says why there is none. */
static char *find_revision(const struct target *self, struct ml_err *err)
{
    ML_AUTO(ml_files_fini) struct ml_files files = ML_FILES_INIT;
    ML_AUTO(ml_load_fini) struct ml_load load = {.files = ML_FILES_INIT};
    const struct ml_load_opts opts = {.services = NULL};
    const struct ml_err *refused = NULL;
    if (ml_source_configmap_files(ml_buf_str(&self->scripts), &files, err) < 0)
        return NULL;
    ml_load_all(&load, &files, &opts);
    for (size_t i = 0; i < files.count; i++) {
        const struct ml_script *script = load.verdicts[i].script;
        const struct ml_declaration *declaration = script ? ml_script_declaration(script) : NULL;
        if (load.verdicts[i].err.kind)
            refused = &load.verdicts[i].err;
        if (declaration && strcmp(declaration->name, self->controller) == 0)
            return ml_strdup(declaration->revision);
    }
    ml_err_set(err, ML_ENOT_FOUND, "ConfigMap %s/%s has no script of controller %s%s%s", self->ns,
               self->name, self->controller, refused ? ", and one is refused: " : "",
               refused ? refused->message : "");
    return NULL;
}

/* 0: the ConfigMap has the controller, or had it when its script was not refused yet. */
static int check_known(const struct target *self, struct ml_err *err)
{
    struct ml_err why = ML_ERR_INIT;
    ML_AUTO_FREE char *revision = find_revision(self, &why);
    if (revision || keeps_controller(ml_buf_str(&self->kept), self->controller))
        return 0;
    *err = why;
    return err->kind;
}

static char *annotation_of(const struct target *self, const char *name)
{
    return ml_json_find_string(ml_buf_str(&self->scripts), "metadata", "annotations", name, NULL);
}

/* Sets an annotation of the ConfigMap that was read; `value` empty: removes it. */
static int annotate(struct target *self, const char *name, struct ml_str value, struct ml_err *err)
{
    ML_AUTO(ml_buf_fini) struct ml_buf patch = ML_BUF_INIT, answer = ML_BUF_INIT;
    ML_AUTO_FREE char *uid = ml_json_find_string(ml_buf_str(&self->scripts), "metadata", "uid",
                                                 NULL);
    ML_AUTO_FREE char *rv = ml_json_find_string(ml_buf_str(&self->scripts), "metadata",
                                                "resourceVersion", NULL);
    struct ml_json_writer writer;
    ml_patch_begin(&writer, &patch, ml_str_of(uid), ml_str_of(rv));
    ml_json_key(&writer, ML_STR("annotations"));
    ml_json_begin_object(&writer);
    if (value.len > 0)
        ml_json_put_string(&writer, name, value);
    else
        ml_json_put_raw(&writer, name, ML_STR("null"));
    ml_json_end_object(&writer);
    ml_json_end_object(&writer);
    ml_json_end_object(&writer);
    struct ml_client_request request = {.verb = ML_VERB_PATCH_MERGE,
                                        .kind = &ml_kind_configmap,
                                        .ns = ml_str_of(self->ns),
                                        .name = ml_str_of(self->name),
                                        .body = ml_buf_str(&patch),
                                        .field_manager = "moonloop"};
    return ml_api_ask(self->api, &request, &answer, err);
}

/* ---- rollback ---- */

/* The annotation's items but that of the controller, and then `own`. */
static void write_items(const struct target *self, const char *annotation, const char *own,
                        struct ml_buf *out)
{
    struct ml_str rest = ml_str_of(annotation);
    struct ml_rollback item;
    for (struct ml_err err = ML_ERR_INIT; ml_rollback_next(&rest, &item, &err); err = ML_ERR_INIT)
        if (!err.kind && !ml_str_is(item.controller, self->controller))
            ml_buf_printf(out, "%s" ML_STR_FMT ": " ML_STR_FMT " instead of " ML_STR_FMT,
                          out->len > 0 ? ", " : "", ML_STR_ARG(item.controller),
                          ML_STR_ARG(item.revision), ML_STR_ARG(item.instead_of));
    if (*own)
        ml_buf_printf(out, "%s%s", out->len > 0 ? ", " : "", own);
}

/* The newest revision that is neither that of the scripts nor the one that runs; or `wanted`. */
static int choose_revision(const struct target *self, const char *wanted, struct ml_str is,
                           struct ml_str runs, char **out, struct ml_err *err)
{
    ML_AUTO(ml_buf_fini) struct ml_buf list = ML_BUF_INIT;
    ml_kept_list(ml_buf_str(&self->kept), ml_str_of(self->controller), &list);
    for (struct ml_str rest = ml_buf_str(&list); rest.ptr && rest.len > 0;) {
        struct ml_str revision = ml_str_trim(ml_str_cut(&rest, ','));
        bool fits = wanted ? ml_str_is(revision, wanted)
                           : !ml_str_eq(revision, is) && !ml_str_eq(revision, runs);
        if (!fits)
            continue;
        *out = ml_str_dup(revision);
        return 0;
    }
    return ml_err_set(
        err, ML_ENOT_FOUND,
        "%s%s of controller %s is kept in ConfigMap %s/%s" ML_HISTORY_SUFFIX "; it has: %s",
        wanted ? "no revision " : "no older revision", wanted ? wanted : "", self->controller,
        self->ns, self->name, list.len > 0 ? ml_buf_cstr(&list) : "none");
}

static int roll_back(struct target *self, const struct values *values, struct ml_err *err)
{
    ML_AUTO(ml_buf_fini) struct ml_buf items = ML_BUF_INIT;
    ML_AUTO_FREE char *annotation = annotation_of(self, ML_ROLLBACK_ANNOTATION);
    ML_AUTO_FREE char *is = find_revision(self, err), *to = NULL;
    struct ml_rollback former;
    if (!is)
        return err->kind;
    bool is_rolled_back = ml_rollback_find(annotation, ml_str_of(self->controller), &former) &&
                          ml_str_is(former.instead_of, is);
    struct ml_str runs = is_rolled_back ? former.revision : ml_str_of(is);
    if (choose_revision(self, values->to, ml_str_of(is), runs, &to, err) < 0)
        return err->kind;
    if (strcmp(to, is) == 0)
        return ml_err_set(err, ML_EINVALID,
                          "revision %s is the one that the ConfigMap has; --end has it run again",
                          to);
    ML_AUTO_FREE char *own = ml_asprintf("%s: %s instead of %s", self->controller, to, is);
    write_items(self, annotation, own, &items);
    if (annotate(self, ML_ROLLBACK_ANNOTATION, ml_buf_str(&items), err) < 0)
        return err->kind;
    ml_print_line(stdout,
                  "%s: revision %s runs instead of %s, until its script in ConfigMap %s/%s is "
                  "edited, or `moonloop rollback %s --end`",
                  self->controller, to, is, self->ns, self->name, self->controller);
    return 0;
}

static int end_rollback(struct target *self, struct ml_err *err)
{
    ML_AUTO(ml_buf_fini) struct ml_buf items = ML_BUF_INIT;
    ML_AUTO_FREE char *annotation = annotation_of(self, ML_ROLLBACK_ANNOTATION);
    write_items(self, annotation, "", &items);
    if (annotate(self, ML_ROLLBACK_ANNOTATION, ml_buf_str(&items), err) < 0)
        return err->kind;
    ml_print_line(stdout, "%s: the script in ConfigMap %s/%s runs again", self->controller,
                  self->ns, self->name);
    return 0;
}

/* ---- pause ---- */

/* The names in the list but that of the controller; and then that, if it `pauses`. */
static void write_names(const struct target *self, const char *list, bool pauses,
                        struct ml_buf *out)
{
    for (struct ml_str rest = ml_str_of(list); rest.ptr;) {
        struct ml_str name = ml_str_trim(ml_str_cut(&rest, ','));
        if (name.len > 0 && !ml_str_is(name, self->controller))
            ml_buf_printf(out, "%s" ML_STR_FMT, out->len > 0 ? ", " : "", ML_STR_ARG(name));
    }
    if (pauses)
        ml_buf_printf(out, "%s%s", out->len > 0 ? ", " : "", self->controller);
}

static int pause_controller(struct target *self, const struct values *values, struct ml_err *err)
{
    ML_AUTO(ml_buf_fini) struct ml_buf names = ML_BUF_INIT;
    ML_AUTO_FREE char *annotation = annotation_of(self, ML_PAUSED_ANNOTATION);
    if (check_known(self, err) < 0)
        return err->kind;
    if (values->ends && annotation && strcmp(annotation, "true") == 0)
        return ml_err_set(err, ML_EINVALID,
                          "all controllers of ConfigMap %s/%s are paused; remove its "
                          "annotation " ML_PAUSED_ANNOTATION,
                          self->ns, self->name);
    write_names(self, annotation, !values->ends, &names);
    if (annotate(self, ML_PAUSED_ANNOTATION, ml_buf_str(&names), err) < 0)
        return err->kind;
    if (values->ends)
        ml_print_line(stdout, "%s: reconciles again", self->controller);
    else
        ml_print_line(stdout, "%s: reconciles nothing until `moonloop pause %s --end`",
                      self->controller, self->controller);
    return 0;
}

/* ---- retry ---- */

static int retry_controller(struct target *self, const struct values *values, struct ml_err *err)
{
    char now[ML_RFC3339_MICRO_LEN + 1];
    (void)values;
    if (check_known(self, err) < 0)
        return err->kind;
    ml_rfc3339_format_micro(ml_api_now(self->api), now);
    ML_AUTO_FREE char *value = ml_asprintf("%s: %s", self->controller, now);
    if (annotate(self, ML_RETRY_ANNOTATION, ml_str_of(value), err) < 0)
        return err->kind;
    ml_print_line(stdout, "%s: all of its objects are tried again now", self->controller);
    return 0;
}

/* The kind, and namespace and name, of one object. */
static int retry_object(struct ml_api *api, const char *kind_word, const char *key_word,
                        struct ml_err *err)
{
    ML_AUTO(ml_buf_fini) struct ml_buf patch = ML_BUF_INIT, answer = ML_BUF_INIT;
    char now[ML_RFC3339_MICRO_LEN + 1];
    const struct ml_kind *kind;
    struct ml_str key = ml_str_of(key_word), ns = ml_key_namespace(key);
    if (ml_api_find_kind(api, ml_str_of(kind_word), &kind, err) < 0)
        return err->kind;
    if (!kind->namespaced && ns.len > 0)
        return ml_err_set(err, ML_EINVALID,
                          "an object of kind %s is in no namespace: moonloop retry %s " ML_STR_FMT,
                          kind->kind, kind_word, ML_STR_ARG(ml_key_name(key)));
    if (kind->namespaced && ns.len == 0)
        ns = ml_str_of(ml_api_namespace(api));
    if (kind->namespaced && !ml_name_valid(ns))
        return ml_err_set(err, ML_EINVALID,
                          "--namespace " ML_STR_FMT ": no namespace has such a name",
                          ML_STR_ARG(ns));
    ml_rfc3339_format_micro(ml_api_now(api), now);
    ml_buf_printf(&patch, "{\"metadata\":{\"annotations\":{\"" ML_RETRY_ANNOTATION "\":\"%s\"}}}",
                  now);
    struct ml_client_request request = {.verb = ML_VERB_PATCH_MERGE,
                                        .kind = kind,
                                        .ns = ns,
                                        .name = ml_key_name(key),
                                        .body = ml_buf_str(&patch),
                                        .field_manager = "moonloop"};
    if (ml_api_ask(api, &request, &answer, err) < 0)
        return err->kind;
    ml_print_line(stdout, "%s " ML_STR_FMT "%s" ML_STR_FMT ": is tried again now", kind->kind,
                  ML_STR_ARG(ns), ns.len > 0 ? "/" : "", ML_STR_ARG(ml_key_name(key)));
    return 0;
}

/* ---- the commands ---- */

static int run_with(const struct values *values, const char *usage,
                    int (*act)(struct target *self, const struct values *values,
                               struct ml_err *err),
                    struct ml_err *err)
{
    ML_AUTO(target_fini) struct target target = {.api = NULL};
    if (values->words.count != 1) {
        ml_err_set(err, ML_EINVALID, "expected one name of a controller: %s", usage);
        return MOONLOOP_EXIT_USAGE;
    }
    if (values->configmap && ml_source_configmap_check(values->configmap, err) < 0)
        return MOONLOOP_EXIT_USAGE;
    int code = target_open(&target, values, err);
    if (code != MOONLOOP_EXIT_OK)
        return code;
    return act(&target, values, err) < 0 ? ml_api_exit_code(err) : MOONLOOP_EXIT_OK;
}

static int act_rollback(struct target *self, const struct values *values, struct ml_err *err)
{
    return values->ends ? end_rollback(self, err) : roll_back(self, values, err);
}

static int run_rollback(void *values, char **argv, struct ml_err *err)
{
    (void)argv;
    return run_with(values, "moonloop rollback CONTROLLER", act_rollback, err);
}

static int run_pause(void *values, char **argv, struct ml_err *err)
{
    (void)argv;
    return run_with(values, "moonloop pause CONTROLLER", pause_controller, err);
}

static int run_retry_of_object(const struct values *values, struct ml_err *err)
{
    const char *key = values->words.values[1];
    struct ml_api *api;
    if (values->configmap) {
        ml_err_set(err, ML_EINVALID,
                   "--scripts-configmap is for the name of a controller; leave it out");
        return MOONLOOP_EXIT_USAGE;
    }
    if (!ml_key_valid(ml_str_of(key))) {
        ml_err_set(err, ML_EINVALID, "%s: expected NAMESPACE/NAME, or NAME", key);
        return MOONLOOP_EXIT_USAGE;
    }
    if (ml_api_open(&values->api, &api, err) < 0)
        return MOONLOOP_EXIT_UNREACHABLE;
    int result = retry_object(api, values->words.values[0], key, err);
    int code = result < 0 ? ml_api_exit_code(err) : MOONLOOP_EXIT_OK;
    ml_api_close(api);
    return code;
}

static int run_retry(void *given, char **argv, struct ml_err *err)
{
    const struct values *values = given;
    (void)argv;
    if (values->words.count == 2)
        return run_retry_of_object(values, err);
    if (values->words.count == 1)
        return run_with(values, "moonloop retry CONTROLLER", retry_controller, err);
    ml_err_set(err, ML_EINVALID,
               "expected a controller, or a kind and an object: moonloop retry CONTROLLER, or "
               "moonloop retry KIND [NS/]NAME");
    return MOONLOOP_EXIT_USAGE;
}

#define CONFIGMAP_OPTION                                                                           \
    {                                                                                              \
        "--scripts-configmap", "NS/NAME",                                                          \
            "the ConfigMap of its script; default: it is looked for", ML_OPTION_TEXT,              \
            offsetof(struct values, configmap)                                                     \
    }
#define END_OPTION(help)                                                                           \
    {                                                                                              \
        "--end", NULL, help, ML_OPTION_FLAG, offsetof(struct values, ends)                         \
    }

static const struct ml_option rollback_options[] = {
    {"--to", "REVISION", "eight digits; default: the newest that is kept and does not run",
     ML_OPTION_TEXT, offsetof(struct values, to)},
    END_OPTION("run the script in the ConfigMap again"),
    CONFIGMAP_OPTION,
    ML_API_OPTIONS(struct values),
};

static const struct ml_option pause_options[] = {
    END_OPTION("reconcile again"),
    CONFIGMAP_OPTION,
    ML_API_OPTIONS(struct values),
};

static const struct ml_option retry_options[] = {
    CONFIGMAP_OPTION,
    ML_API_OPTIONS(struct values),
};

const struct ml_command ml_command_rollback = {
    .name = "rollback",
    .usage = "CONTROLLER [--to REVISION]",
    .summary = "run an older revision of a controller's script, until the script is edited",
    .description =
        "Sets the annotation " ML_ROLLBACK_ANNOTATION
        " on the ConfigMap of the script. The hosts in\n"
        "the cluster run the named revision within a second, also after a restart. The last five\n"
        "revisions that were live are kept.",
    .example = "site --namespace moonloop-system",
    .options = rollback_options,
    .option_count = ML_COUNT(rollback_options),
    .words = offsetof(struct values, words),
    .values_size = sizeof(struct values),
    .run = run_rollback,
};

const struct ml_command ml_command_pause = {
    .name = "pause",
    .usage = "CONTROLLER [--end]",
    .summary = "have a controller write nothing until the pause ends",
    .description =
        "Names the controller in the annotation " ML_PAUSED_ANNOTATION " on the ConfigMap of its\n"
        "script. It begins no reconcile any more; finalizers wait. For one object alone, set the\n"
        "annotation to \"true\" on that object.",
    .example = "site --namespace moonloop-system",
    .options = pause_options,
    .option_count = ML_COUNT(pause_options),
    .words = offsetof(struct values, words),
    .values_size = sizeof(struct values),
    .run = run_pause,
};

const struct ml_command ml_command_retry = {
    .name = "retry",
    .usage = "CONTROLLER | KIND [NS/]NAME",
    .summary = "have a controller try all of its objects, or one, again now",
    .description =
        "Gives the annotation " ML_RETRY_ANNOTATION " another value: on the ConfigMap of the\n"
        "controller's script, which ends all waits and backoffs of the controller; or on one\n"
        "object, which ends its own. KIND is one such as Site, sites or Site.example.com.",
    .example = "Site default/s00",
    .options = retry_options,
    .option_count = ML_COUNT(retry_options),
    .words = offsetof(struct values, words),
    .values_size = sizeof(struct values),
    .run = run_retry,
};
