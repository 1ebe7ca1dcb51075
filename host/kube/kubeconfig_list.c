/* Lists and objects within an entry of a kubeconfig. */
#include "kube/kubeconfig_internal.h"

#include "codec/json.h"

#define ITEMS_MAX 1024 /* of one list */

void ml_kubelist_add(struct ml_kubelist *list, char *text)
{
    list->items = ml_realloc(list->items, (list->count + 2) * sizeof *list->items);
    list->items[list->count++] = text;
    list->items[list->count] = NULL;
}

void ml_kubelist_fini(struct ml_kubelist *list)
{
    for (size_t i = 0; i < list->count; i++)
        free(list->items[i]);
    free(list->items);
    *list = (struct ml_kubelist){0};
}

int ml_kubeentry_strings(const struct ml_kubeentry *entry, const char *key, struct ml_kubelist *out,
                         struct ml_err *err)
{
    struct ml_str raw;
    if (!ml_kubeentry_has(entry, key) || !ml_json_find(entry->raw, &raw, key, NULL))
        return 0;
    ML_AUTO(ml_json_reader_fini) struct ml_json_reader reader;
    ml_json_reader_init(&reader, raw, 0);
    if (ml_json_next(&reader) != ML_JSON_ARRAY)
        return ml_kubeentry_fail(entry, err, "%s must be a list", key);
    while (ml_json_next(&reader) != ML_JSON_ARRAY_END) {
        if (reader.token != ML_JSON_STRING)
            return ml_kubeentry_fail(entry, err, "%s must be a list of strings; put them in quotes",
                                     key);
        if (reader.text.len > 0 && memchr(reader.text.ptr, '\0', reader.text.len))
            return ml_kubeentry_fail(entry, err, "%s has a NUL in it", key);
        if (out->count == ITEMS_MAX)
            return ml_kubeentry_fail(entry, err, "%s has more than %d items", key, ITEMS_MAX);
        ml_kubelist_add(out, ml_str_dup(reader.text));
    }
    return 0;
}

bool ml_kubeentry_sub(const struct ml_kubeentry *entry, const char *key, const char *section,
                      struct ml_kubeentry *out)
{
    struct ml_str raw;
    if (!ml_kubeentry_has(entry, key) || !ml_json_find(entry->raw, &raw, key, NULL))
        return false;
    *out = (struct ml_kubeentry){entry->file, section, ml_strdup(entry->name), raw};
    return true;
}
