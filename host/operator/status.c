/* From what a reconcile returned to the patch of the object's status: conditions merged by their
 * type, then the difference. Called by reconcile_status.c. */
#include "operator/status.h"

#include "codec/json.h"
#include "codec/json_diff.h"
#include "operator/conditions.h"

/* Both lists, the script's first. Appends nothing when neither has anything to say. */
static int wanted_conditions(struct ml_str current, struct ml_str from_script, int64_t generation,
                             const struct ml_reconciled *reconciled, int64_t now_ns,
                             struct ml_buf *out, struct ml_err *err)
{
    ML_AUTO(ml_buf_fini) struct ml_buf host = ML_BUF_INIT;
    ML_AUTO(ml_buf_fini) struct ml_buf scripted = ML_BUF_INIT;
    if (reconciled)
        ml_reconciled_condition(current, generation, reconciled, &host);
    if (!host.len && !from_script.len)
        return 0;
    int r = ml_conditions_merge(current, from_script, generation, now_ns, &scripted, err);
    if (r == 0)
        r = ml_conditions_merge(ml_buf_str(&scripted), ml_buf_str(&host), generation, now_ns, out,
                                err);
    return r;
}

/* The script's status with the finished list of conditions in it; without a list when all that
 * was wanted is that there are none. */
static int wanted_status(struct ml_str current, struct ml_str status, int64_t generation,
                         const struct ml_reconciled *reconciled, int64_t now_ns, struct ml_buf *out,
                         struct ml_err *err)
{
    ML_AUTO(ml_buf_fini) struct ml_buf conditions = ML_BUF_INIT;
    ML_AUTO(ml_buf_fini) struct ml_buf patch = ML_BUF_INIT;
    ML_AUTO(ml_buf_fini) struct ml_buf merged = ML_BUF_INIT;
    struct ml_str before = {NULL, 0}, from_script = {NULL, 0};
    ml_json_find(current, &before, "conditions", NULL);
    ml_json_find(status, &from_script, "conditions", NULL);
    int r = wanted_conditions(before, from_script, generation, reconciled, now_ns, &conditions,
                              err);
    if (r == 0)
        r = ml_json_merge(current, status.len ? status : ML_STR("{}"), &merged, err);
    if (r < 0 || !conditions.len) {
        ml_buf_append_str(out, ml_buf_str(&merged));
        return r;
    }
    struct ml_str list = ml_buf_str(&conditions);
    if (!before.len && ml_str_is(list, "[]"))
        list = ML_STR("null");
    ml_buf_printf(&patch, "{\"conditions\":" ML_STR_FMT "}", ML_STR_ARG(list));
    return ml_json_merge(ml_buf_str(&merged), ml_buf_str(&patch), out, err);
}

static void write_guarded_patch(struct ml_object *object, struct ml_str difference,
                                struct ml_buf *out)
{
    struct ml_json_writer writer;
    ml_json_writer_init(&writer, out);
    ml_json_begin_object(&writer);
    ml_json_key(&writer, ML_STR("metadata"));
    ml_json_begin_object(&writer);
    ml_json_put_string(&writer, "uid", ml_object_uid(object));
    ml_json_put_string(&writer, "resourceVersion", ml_object_rv(object));
    ml_json_end_object(&writer);
    ml_json_put_raw(&writer, "status", difference);
    ml_json_end_object(&writer);
}

int ml_status_patch(struct ml_object *object, struct ml_str status,
                    const struct ml_reconciled *reconciled, int64_t now_ns,
                    struct ml_buf *out_patch, struct ml_err *err)
{
    ML_AUTO(ml_buf_fini) struct ml_buf json = ML_BUF_INIT;
    ML_AUTO(ml_buf_fini) struct ml_buf wanted = ML_BUF_INIT;
    ML_AUTO(ml_buf_fini) struct ml_buf difference = ML_BUF_INIT;
    struct ml_str current = ML_STR("{}");
    ml_object_json(object, &json);
    ml_json_find(ml_buf_str(&json), &current, "status", NULL);
    if (!current.len || current.ptr[0] != '{')
        current = ML_STR("{}"); /* as the server has it for a merge patch: RFC 7396 */
    int r = wanted_status(current, status, ml_object_generation(object), reconciled, now_ns,
                          &wanted, err);
    if (r == 0)
        r = ml_json_merge_diff(current, ml_buf_str(&wanted), &difference, err);
    if (r < 0) {
        err->kind = ML_ESCRIPT;
        return ML_ESCRIPT;
    }
    if (!ml_str_is(ml_buf_str(&difference), "{}"))
        write_guarded_patch(object, ml_buf_str(&difference), out_patch);
    return 0;
}
