/* Selections of objects, for informers and reflectors. */
#include "state/selection.h"

#include "codec/json.h"

bool ml_selection_eq(const struct ml_selection *a, const struct ml_selection *b)
{
    return ml_str_eq(a->labels, b->labels) && ml_str_eq(a->fields, b->fields) &&
           a->metadata_only == b->metadata_only;
}

bool ml_selection_is_part(const struct ml_selection *selection)
{
    return selection->labels.len > 0 || selection->fields.len > 0;
}

int ml_selection_object(const struct ml_selection *selection, struct ml_dict *dict,
                        const struct ml_kind *kind, struct ml_str json, struct ml_object **out,
                        struct ml_err *err)
{
    if (!selection->metadata_only)
        return ml_object_new(dict, kind->api_version, kind->kind, json, out, err);
    struct ml_str metadata;
    if (!ml_json_find(json, &metadata, "metadata", NULL))
        return ml_err_set(err, ML_EINVALID, "no metadata");
    ML_AUTO(ml_buf_fini) struct ml_buf bare = ML_BUF_INIT;
    ml_buf_puts(&bare, "{\"metadata\":");
    ml_buf_append_str(&bare, metadata);
    ml_buf_puts(&bare, "}");
    return ml_object_new(dict, kind->api_version, kind->kind, ml_buf_str(&bare), out, err);
}
