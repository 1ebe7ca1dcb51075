#include "operator/status.h"

#include "codec/json.h"
#include "codec/json_diff.h"
#include "operator/conditions.h"

/* What the host has to say about Valid, as an array of one condition or nothing. */
static void host_conditions(struct ml_str current, const struct ml_result *result,
                            struct ml_buf *out)
{
    struct ml_condition valid = {.type = ML_CONDITION_VALID, .status = "True", .reason = "Valid"};
    ML_AUTO(ml_buf_fini) struct ml_buf message = ML_BUF_INIT;
    if (result->outcome == ML_OUTCOME_INVALID) {
        valid.status = "False";
        valid.reason = "Invalid";
        ml_buf_printf(&message, ML_STR_FMT ": %s", ML_STR_ARG(result->field), result->err.message);
        valid.message = ml_buf_str(&message);
    } else {
        /* Said only to take back what was said before: an object that never was invalid
         * costs no write. */
        struct ml_str before = ml_conditions_find(current, ML_STR(ML_CONDITION_VALID));
        ML_AUTO_FREE char *status = ml_json_find_string(before, "status", NULL);
        if (result->outcome != ML_OUTCOME_OK || !status || strcmp(status, "False") != 0)
            return;
    }
    ml_buf_putc(out, '[');
    ml_condition_write(&valid, out);
    ml_buf_putc(out, ']');
}

/* Both lists, the script's first. */
static int wanted_conditions(struct ml_str current, const struct ml_result *result,
                             int64_t generation, int64_t now_ns, struct ml_buf *out,
                             struct ml_err *err)
{
    ML_AUTO(ml_buf_fini) struct ml_buf host = ML_BUF_INIT;
    ML_AUTO(ml_buf_fini) struct ml_buf scripted = ML_BUF_INIT;
    struct ml_str from_script = {NULL, 0};
    host_conditions(current, result, &host);
    ml_json_find(result->status, &from_script, "conditions", NULL);
    if (!host.len && !from_script.len)
        return 0;
    int r = ml_conditions_merge(current, from_script, generation, now_ns, &scripted, err);
    if (r == 0)
        r = ml_conditions_merge(ml_buf_str(&scripted), ml_buf_str(&host), generation, now_ns, out,
                                err);
    return r;
}

/* The script's status with the finished list of conditions in it. */
static int wanted_status(struct ml_str current, const struct ml_result *result, int64_t generation,
                         int64_t now_ns, struct ml_buf *out, struct ml_err *err)
{
    ML_AUTO(ml_buf_fini) struct ml_buf conditions = ML_BUF_INIT;
    ML_AUTO(ml_buf_fini) struct ml_buf patch = ML_BUF_INIT;
    ML_AUTO(ml_buf_fini) struct ml_buf merged = ML_BUF_INIT;
    struct ml_str before = {NULL, 0};
    ml_json_find(current, &before, "conditions", NULL);
    int r = wanted_conditions(before, result, generation, now_ns, &conditions, err);
    if (r == 0)
        r = ml_json_merge(current, result->status.len ? result->status : ML_STR("{}"), &merged,
                          err);
    if (r < 0 || !conditions.len) {
        ml_buf_append_str(out, ml_buf_str(&merged));
        return r;
    }
    ml_buf_printf(&patch, "{\"conditions\":" ML_STR_FMT "}", ML_STR_ARG(ml_buf_str(&conditions)));
    return ml_json_merge(ml_buf_str(&merged), ml_buf_str(&patch), out, err);
}

static void write_patch(struct ml_object *object, struct ml_str difference, struct ml_buf *out)
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

int ml_status_patch(struct ml_object *object, const struct ml_result *result, int64_t now_ns,
                    struct ml_buf *out_patch, struct ml_err *err)
{
    ML_AUTO(ml_buf_fini) struct ml_buf json = ML_BUF_INIT;
    ML_AUTO(ml_buf_fini) struct ml_buf wanted = ML_BUF_INIT;
    ML_AUTO(ml_buf_fini) struct ml_buf difference = ML_BUF_INIT;
    struct ml_str current = ML_STR("{}");
    ml_object_json(object, &json);
    ml_json_find(ml_buf_str(&json), &current, "status", NULL);
    int r = wanted_status(current, result, ml_object_generation(object), now_ns, &wanted, err);
    if (r == 0)
        r = ml_json_merge_diff(current, ml_buf_str(&wanted), &difference, err);
    if (r < 0) {
        err->kind = ML_ESCRIPT;
        return ML_ESCRIPT;
    }
    if (!ml_str_is(ml_buf_str(&difference), "{}"))
        write_patch(object, ml_buf_str(&difference), out_patch);
    return 0;
}
