#include "kube/discovery_parse.h"

#include "base/buf.h"
#include "base/map.h"
#include "codec/json.h"
#include "kube/kind.h"

/* An entry of "resources", "ats" or "ats/status". */
struct entry {
    struct ml_buf name;
    struct ml_buf kind;
    bool namespaced;
};

static void entry_fini(struct entry *entry)
{
    ml_buf_fini(&entry->name);
    ml_buf_fini(&entry->kind);
}

/* The reader stands behind the entry's '{'. */
static void entry_read(struct ml_json_reader *reader, struct entry *entry)
{
    ml_buf_clear(&entry->name);
    ml_buf_clear(&entry->kind);
    entry->namespaced = false;
    while (ml_json_next(reader) == ML_JSON_KEY) {
        bool is_name = ml_str_is(reader->text, "name");
        bool is_kind = ml_str_is(reader->text, "kind");
        bool is_namespaced = ml_str_is(reader->text, "namespaced");
        struct ml_str raw = ml_json_skip(reader);
        if (is_name)
            ml_json_to_string(raw, &entry->name);
        else if (is_kind)
            ml_json_to_string(raw, &entry->kind);
        else if (is_namespaced)
            entry->namespaced = ml_str_is(raw, "true");
    }
}

static bool entry_valid(const struct entry *entry)
{
    struct ml_gvk ignored;
    return ml_name_valid(ml_buf_str(&entry->name)) &&
           ml_gvk_parse(ML_STR("v1"), ml_buf_str(&entry->kind), &ignored);
}

/* The plurals with a status subresource: keys own themselves. */
static void statuses_fini(struct ml_map *statuses)
{
    ml_map_each (statuses, cursor, plural)
        free(plural);
    ml_map_fini(statuses);
}

static void statuses_take(struct ml_map *statuses, struct ml_str name)
{
    if (!ml_str_ends(name, "/status"))
        return;
    struct ml_str plural = {name.ptr, name.len - strlen("/status")};
    if (ml_map_get(statuses, plural))
        return;
    char *copy = ml_str_dup(plural);
    ml_map_put(statuses, (struct ml_str){copy, plural.len}, copy);
}

/* Walks the entries; once to learn which have a status, then again with `resource`. */
static void walk(struct ml_str resources, struct ml_map *statuses,
                 void (*resource)(void *context, const struct ml_discovery_resource *resource),
                 void *context)
{
    ML_AUTO(ml_json_reader_fini) struct ml_json_reader reader;
    ML_AUTO(entry_fini) struct entry entry = {.namespaced = false};
    ml_json_reader_init(&reader, resources, 0);
    if (ml_json_next(&reader) != ML_JSON_ARRAY)
        return;
    while (ml_json_next(&reader) == ML_JSON_OBJECT) {
        entry_read(&reader, &entry);
        struct ml_str name = ml_buf_str(&entry.name);
        if (!resource) {
            statuses_take(statuses, name);
            continue;
        }
        if (!entry_valid(&entry))
            continue;
        const struct ml_discovery_resource found = {
            .kind = ml_buf_str(&entry.kind),
            .plural = name,
            .namespaced = entry.namespaced,
            .has_status = ml_map_get(statuses, name) != NULL,
        };
        resource(context, &found);
    }
}

int ml_discovery_parse(struct ml_str json,
                       void (*resource)(void *context,
                                        const struct ml_discovery_resource *resource),
                       void *context, struct ml_err *err)
{
    if (ml_json_check(json, 0, err) < 0)
        return err->kind;
    struct ml_str resources;
    if (!ml_json_find(json, &resources, "resources", NULL))
        return ml_err_set(err, ML_EINVALID, "the answer is no APIResourceList");
    ML_AUTO(statuses_fini) struct ml_map statuses = {0};
    walk(resources, &statuses, NULL, NULL);
    walk(resources, &statuses, resource, context);
    return 0;
}
