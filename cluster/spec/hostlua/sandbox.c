/* Loads a text as a script in a sandbox of its own and says what it declares, what its reconcile
 * came to, and which changes count for it. Called by specs of lua/moonloop/, through hostlua. */
#include "sandbox.h"

#include "codec/json.h"
#include "kube/object_diff.h"
#include "script/script.h"

#define KINDS_MAX 32

static int load_script(struct ml_str json, struct ml_script **out, struct ml_err *err)
{
    ML_AUTO(ml_buf_fini) struct ml_buf text = ML_BUF_INIT;
    if (!ml_json_to_string(json, &text))
        return ml_err_set(err, ML_EINVALID, "the text of a script is what it takes");
    const struct ml_script_file file = {ML_STR("t.lua"), ml_buf_str(&text)};
    return ml_script_load(NULL, NULL, &(struct ml_script_files){&file, 1}, 0, out, err);
}

/* ---- load ---- */

static void put_when(struct ml_json_writer *writer, const struct ml_script_kind *kind)
{
    static const struct {
        const char *name;
        unsigned parts;
    } words[] = {
        {"generation", ML_PART_GENERATION | ML_PART_SPEC},
        {"labels", ML_PART_LABELS},
        {"annotations", ML_PART_ANNOTATIONS},
        {"status", ML_PART_STATUS},
    };
    if (kind->when_function) {
        ml_json_put_string(writer, "when", ML_STR("a function"));
        return;
    }
    if (kind->when == ML_PART_ALL)
        return;
    unsigned left = kind->when;
    ml_json_key(writer, ML_STR("when"));
    ml_json_begin_array(writer);
    for (size_t i = 0; i < ML_COUNT(words); i++) {
        if ((left & words[i].parts) != words[i].parts)
            continue;
        ml_json_string(writer, ml_str_of(words[i].name));
        left &= ~words[i].parts;
    }
    if (left)
        ml_json_int(writer, left); /* what no word means */
    ml_json_end_array(writer);
}

static void put_selector(struct ml_json_writer *writer, const char *name, struct ml_str selector)
{
    if (selector.len > 0)
        ml_json_put_string(writer, name, selector);
}

static void put_kind(struct ml_json_writer *writer, const struct ml_script_kind *kind)
{
    static const char *const uses[] = {[ML_USE_RECONCILES] = "reconciles",
                                       [ML_USE_OWNS] = "owns",
                                       [ML_USE_WATCHES] = "watches",
                                       [ML_USE_TOUCHES] = "uses"};
    const struct ml_gvk *gvk = &kind->gvk;
    ML_AUTO_FREE char *api_version = ml_asprintf("%s%s%s", gvk->group.ptr,
                                                 gvk->group.len > 0 ? "/" : "", gvk->version.ptr);
    ml_json_begin_object(writer);
    ml_json_put_string(writer, "use", ml_str_of(uses[kind->use]));
    ml_json_put_string(writer, "apiVersion", ml_str_of(api_version));
    ml_json_put_string(writer, "kind", gvk->kind);
    put_selector(writer, "labels", kind->selection.labels);
    put_selector(writer, "fields", kind->selection.fields);
    if (kind->selection.metadata_only)
        ml_json_put_bool(writer, "metadata_only", true);
    put_when(writer, kind);
    ml_json_end_object(writer);
}

static void put_declaration(struct ml_buf *out, const struct ml_declaration *declaration)
{
    struct ml_json_writer writer;
    ml_json_writer_init(&writer, out);
    ml_json_begin_object(&writer);
    ml_json_put_string(&writer, "name", ml_str_of(declaration->name));
    ml_json_put_int(&writer, "max_concurrent", declaration->concurrency_max);
    ml_json_key(&writer, ML_STR("kinds"));
    ml_json_begin_array(&writer);
    for (size_t i = 0; i < declaration->kind_count; i++)
        put_kind(&writer, &declaration->kinds[i]);
    ml_json_end_array(&writer);
    ml_json_end_object(&writer);
}

static int load(void *context, struct ml_str argument, struct ml_buf *result, struct ml_err *err)
{
    struct ml_script *script;
    (void)context;
    int r = load_script(argument, &script, err);
    if (r < 0)
        return r;
    const struct ml_declaration *declaration = ml_script_declaration(script);
    if (declaration)
        put_declaration(result, declaration);
    ml_script_unref(script);
    return 0;
}

/* ---- reconcile and counts ---- */

/* Loads a controller, and binds it to no cluster. */
static int load_controller(struct ml_str json, struct ml_script **out, struct ml_err *err)
{
    static const struct ml_kind some = {
        .api_version = "v1", .group = "", .version = "v1", .kind = "Some", .plural = "some"};
    static const struct ml_kind *kinds[KINDS_MAX];
    static struct ml_informer *const informers[KINDS_MAX];
    for (size_t i = 0; i < KINDS_MAX; i++)
        kinds[i] = &some;
    int r = load_script(json, out, err);
    if (r < 0)
        return r;
    if (!ml_script_declaration(*out)) {
        ml_script_unref(*out);
        return ml_err_set(err, ML_EINVALID, "the script is no controller");
    }
    ml_script_bind(*out, &(struct ml_script_binding){.kinds = kinds, .informers = informers});
    return 0;
}

static void put_seconds(struct ml_json_writer *writer, const char *name, int64_t ns)
{
    if (ns < 0)
        return;
    ml_json_key(writer, ml_str_of(name));
    ml_json_real(writer, (double)ns / (double)ML_NS_PER_S);
}

static void on_reconciled(void *context, struct ml_result *result)
{
    static const char *const outcomes[] = {[ML_OUTCOME_OK] = "ok",
                                           [ML_OUTCOME_ERROR] = "error",
                                           [ML_OUTCOME_TERMINAL] = "terminal",
                                           [ML_OUTCOME_INVALID] = "invalid"};
    struct ml_json_writer writer;
    ml_json_writer_init(&writer, context);
    ml_json_begin_object(&writer);
    ml_json_put_string(&writer, "outcome", ml_str_of(outcomes[result->outcome]));
    if (result->outcome != ML_OUTCOME_OK)
        ml_json_put_string(&writer, "message", ml_str_of(result->err->message));
    if (result->field.len > 0)
        ml_json_put_string(&writer, "field", result->field);
    if (result->status.len > 0)
        ml_json_put_raw(&writer, "status", result->status);
    put_seconds(&writer, "requeue_after", result->requeue_after_ns);
    put_seconds(&writer, "requeue_at", result->requeue_at_ns);
    ml_json_end_object(&writer);
}

static int make_object(struct ml_dict *dict, struct ml_str json, struct ml_object **out,
                       struct ml_err *err)
{
    return ml_object_new(dict, "v1", "ConfigMap", json, out, err);
}

static int reconcile(void *context, struct ml_str argument, struct ml_buf *result,
                     struct ml_err *err)
{
    struct ml_script *script;
    struct ml_object *object = NULL;
    (void)context;
    int r = load_controller(argument, &script, err);
    if (r < 0)
        return r;
    struct ml_dict *dict = ml_dict_new();
    r = make_object(dict,
                    ML_STR("{\"metadata\":{\"name\":\"a\",\"namespace\":\"d\",\"uid\":\"u\","
                           "\"resourceVersion\":\"1\"}}"),
                    &object, err);
    ml_assert(r == 0);
    struct ml_run *run = ml_script_reconcile(script, object, "0", on_reconciled, result);
    if (run) {
        ml_script_cancel(run);
        r = ml_err_set(err, ML_EINVALID, "the reconcile waits for something");
    }
    ml_object_unref(object);
    ml_dict_unref(dict);
    ml_script_unref(script);
    return r;
}

static int judge_change(struct ml_script *script, struct ml_str argument, bool *out_counts,
                        struct ml_err *err)
{
    struct ml_str old_json = {NULL, 0}, new_json = {NULL, 0};
    struct ml_object *old = NULL, *new = NULL;
    struct ml_dict *dict = ml_dict_new();
    (void)ml_json_find(argument, &old_json, "old", NULL);
    (void)ml_json_find(argument, &new_json, "new", NULL);
    int r = make_object(dict, old_json, &old, err);
    if (r == 0)
        r = make_object(dict, new_json, &new, err);
    if (r == 0)
        r = ml_script_when(script, 0, old, new, out_counts, err);
    ml_object_unref(old);
    ml_object_unref(new);
    ml_dict_unref(dict);
    return r;
}

static int counts(void *context, struct ml_str argument, struct ml_buf *result, struct ml_err *err)
{
    struct ml_str text = {NULL, 0};
    struct ml_script *script;
    bool is_counted = false;
    (void)context;
    (void)ml_json_find(argument, &text, "script", NULL);
    int r = load_controller(text, &script, err);
    if (r < 0)
        return r;
    r = judge_change(script, argument, &is_counted, err);
    ml_script_unref(script);
    if (r == 0)
        ml_buf_puts(result, is_counted ? "true" : "false");
    return r;
}

void hostlua_define_sandbox(struct ml_server_lua *lua)
{
    ml_server_lua_define(lua, "hostlua", "load", load, NULL);
    ml_server_lua_define(lua, "hostlua", "reconcile", reconcile, NULL);
    ml_server_lua_define(lua, "hostlua", "counts", counts, NULL);
}
