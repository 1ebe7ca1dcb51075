/* The annotation of objects without an owner reference: a script's writes set it, and a change of
 * such an object wakes its owner. */
#include "kube/tracked_children.h"

#include "codec/json.h"
#include "kube/kind.h"

void ml_tracked_mark(const char *controller, const struct ml_object *owner, struct ml_buf *out)
{
    ml_buf_printf(out, "%s " ML_STR_FMT " " ML_STR_FMT, controller,
                  ML_STR_ARG(ml_object_key(owner)), ML_STR_ARG(ml_object_uid(owner)));
}

struct ml_str ml_tracked_annotation(struct ml_str json, const char *name)
{
    struct ml_str raw;
    if (!ml_json_find(json, &raw, "metadata", "annotations", name, NULL) || raw.len < 2 ||
        raw.ptr[0] != '"' || memchr(raw.ptr, '\\', raw.len))
        return (struct ml_str){"", 0};
    return (struct ml_str){raw.ptr + 1, raw.len - 2};
}

bool ml_tracked_key(const struct ml_object *object, const char *controller,
                    const char *const *formerly, struct ml_buf *out_key)
{
    ML_AUTO(ml_buf_fini) struct ml_buf json = ML_BUF_INIT;
    ml_object_json(object, &json);
    struct ml_str mark = ml_tracked_annotation(ml_buf_str(&json), ML_TRACKED_OWNER);
    struct ml_str name = ml_str_cut(&mark, ' ');
    while (*formerly && !ml_str_is(name, *formerly))
        formerly++;
    if (!ml_str_is(name, controller) && !*formerly)
        return false;
    struct ml_str key = ml_str_cut(&mark, ' ');
    return ml_key_valid(key) && mark.len > 0 && ml_buf_append_str(out_key, key);
}
