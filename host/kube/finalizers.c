/* Reads and writes the list of finalizers. script/finalizer.c and operator/reconcile.c add one,
 * operator/reconcile.c removes it. */
#include "kube/finalizers.h"

#include "codec/json.h"

/* The reader stands behind the '[' of the list, or it found none: the next token is no string. */
static void begin_list(struct ml_json_reader *reader, const struct ml_object *object,
                       struct ml_buf *json)
{
    struct ml_str list = {"", 0};
    if (ml_object_has_finalizers(object))
        ml_object_json(object, json);
    ml_json_find(ml_buf_str(json), &list, "metadata", "finalizers", NULL);
    ml_json_reader_init(reader, list.len > 0 ? list : ML_STR("[]"), 0);
    ml_json_next(reader);
}

bool ml_finalizers_have(const struct ml_object *object, struct ml_str finalizer)
{
    ML_AUTO(ml_buf_fini) struct ml_buf json = ML_BUF_INIT;
    ML_AUTO(ml_json_reader_fini) struct ml_json_reader reader;
    begin_list(&reader, object, &json);
    while (ml_json_next(&reader) == ML_JSON_STRING)
        if (ml_str_eq(reader.text, finalizer))
            return true;
    return false;
}

static bool is_among(const char *const *finalizers, struct ml_str finalizer)
{
    for (; finalizers && *finalizers; finalizers++)
        if (ml_str_is(finalizer, *finalizers))
            return true;
    return false;
}

bool ml_finalizers_have_any(const struct ml_object *object, const char *const *finalizers)
{
    for (; *finalizers; finalizers++)
        if (ml_finalizers_have(object, ml_str_of(*finalizers)))
            return true;
    return false;
}

static void write_list(struct ml_json_writer *writer, const struct ml_object *object,
                       struct ml_str finalizer, const char *const *former, bool add)
{
    ML_AUTO(ml_buf_fini) struct ml_buf json = ML_BUF_INIT;
    ML_AUTO(ml_json_reader_fini) struct ml_json_reader reader;
    begin_list(&reader, object, &json);
    ml_json_key(writer, ML_STR("finalizers"));
    ml_json_begin_array(writer);
    while (ml_json_next(&reader) == ML_JSON_STRING)
        if (!ml_str_eq(reader.text, finalizer) && !is_among(former, reader.text))
            ml_json_string(writer, reader.text);
    if (add)
        ml_json_string(writer, finalizer);
    ml_json_end_array(writer);
}

void ml_finalizers_patch(const struct ml_object *object, struct ml_str rv, struct ml_str finalizer,
                         const char *const *former, bool add, struct ml_buf *out)
{
    struct ml_json_writer writer;
    ml_json_writer_init(&writer, out);
    ml_json_begin_object(&writer);
    ml_json_key(&writer, ML_STR("metadata"));
    ml_json_begin_object(&writer);
    ml_json_put_string(&writer, "uid", ml_object_uid(object));
    ml_json_put_string(&writer, "resourceVersion", rv);
    write_list(&writer, object, finalizer, former, add);
    ml_json_end_object(&writer);
    ml_json_end_object(&writer);
}
