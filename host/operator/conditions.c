/* Conditions by the API conventions: finding one, and merging lists by type (conditions.h). Called
 * by status.c and reconciled.c. */
#include "operator/conditions.h"

#include "base/map.h"
#include "codec/json.h"
#include "codec/rfc3339.h"
#include "script/maxima.h"

static bool json_string_is(struct ml_str object, const char *field, struct ml_str want)
{
    ML_AUTO(ml_buf_fini) struct ml_buf text = ML_BUF_INIT;
    struct ml_str raw;
    return ml_json_find(object, &raw, field, NULL) && ml_json_to_string(raw, &text) &&
           ml_str_eq(ml_buf_str(&text), want);
}

struct ml_str ml_conditions_find(struct ml_str array, struct ml_str type)
{
    ML_AUTO(ml_json_reader_fini) struct ml_json_reader reader;
    ml_json_reader_init(&reader, array, 0);
    if (array.len > 0 && ml_json_next(&reader) == ML_JSON_ARRAY)
        for (struct ml_str raw; (raw = ml_json_skip(&reader)).len;)
            if (json_string_is(raw, "type", type))
                return raw;
    return (struct ml_str){NULL, 0};
}

static bool json_has(struct ml_str object, const char *field)
{
    struct ml_str raw;
    return ml_json_find(object, &raw, field, NULL);
}

/* The time at which `status` became what `wanted` says. */
static void write_transition(struct ml_json_writer *writer, struct ml_str before,
                             struct ml_str wanted, int64_t now_ns)
{
    struct ml_str old_status, new_status, since;
    bool same = ml_json_find(before, &old_status, "status", NULL) &&
                ml_json_find(wanted, &new_status, "status", NULL) &&
                ml_str_eq(old_status, new_status) &&
                ml_json_find(before, &since, "lastTransitionTime", NULL);
    if (same) {
        ml_json_put_raw(writer, "lastTransitionTime", since);
        return;
    }
    char now[ML_RFC3339_LEN + 1];
    ml_rfc3339_format(now_ns, now);
    ml_json_put_string(writer, "lastTransitionTime", ml_str_of(now));
}

static bool is_removal(struct ml_str wanted)
{
    struct ml_str status;
    return ml_json_find(wanted, &status, "status", NULL) && ml_str_is(status, "null");
}

static int write_wanted_condition(struct ml_json_writer *writer, struct ml_str before,
                                  struct ml_str wanted, int64_t generation, int64_t now_ns,
                                  struct ml_err *err)
{
    ML_AUTO_FREE char *type = ml_json_find_string(wanted, "type", NULL);
    if (!type || !json_has(wanted, "status"))
        return ml_err_set(err, ML_EINVALID, "status.conditions: each needs type and status");
    if (is_removal(wanted))
        return 0;
    ML_AUTO(ml_json_reader_fini) struct ml_json_reader reader;
    ml_json_reader_init(&reader, wanted, 0);
    ml_json_next(&reader);
    ml_json_begin_object(writer);
    while (ml_json_next(&reader) == ML_JSON_KEY) {
        ml_json_key(writer, reader.text);
        ml_json_raw(writer, ml_json_skip(&reader));
    }
    if (!json_has(wanted, "reason"))
        ml_json_put_string(writer, "reason", ml_str_of(type));
    if (!json_has(wanted, "message"))
        ml_json_put_string(writer, "message", ML_STR(""));
    if (!json_has(wanted, "observedGeneration"))
        ml_json_put_int(writer, "observedGeneration", generation);
    if (!json_has(wanted, "lastTransitionTime"))
        write_transition(writer, before, wanted, now_ns);
    ml_json_end_object(writer);
    return 0;
}

/* A list, read once, and the first of each type. */
struct condition {
    char *type; /* NULL: it has none */
    struct ml_str raw;
};

struct conditions {
    struct condition *items;
    size_t len, capacity;
    struct ml_map by_type; /* place + 1 */
};

static void conditions_fini(struct conditions *self)
{
    for (size_t i = 0; i < self->len; i++)
        free(self->items[i].type);
    free(self->items);
    ml_map_fini(&self->by_type);
}

static void conditions_add(struct conditions *self, struct ml_str raw)
{
    if (self->len == self->capacity) {
        self->capacity = self->capacity ? self->capacity * 2 : 8;
        self->items = ml_realloc(self->items, self->capacity * sizeof(self->items[0]));
    }
    char *type = ml_json_find_string(raw, "type", NULL);
    self->items[self->len++] = (struct condition){type, raw};
    if (type && !ml_map_get(&self->by_type, ml_str_of(type)))
        ml_map_put(&self->by_type, ml_str_of(type), (void *)(uintptr_t)self->len);
}

static void conditions_read(struct conditions *self, struct ml_str array)
{
    ML_AUTO(ml_json_reader_fini) struct ml_json_reader reader;
    ml_json_reader_init(&reader, array, 0);
    if (array.len > 0 && ml_json_next(&reader) == ML_JSON_ARRAY)
        for (struct ml_str raw; (raw = ml_json_skip(&reader)).len;)
            conditions_add(self, raw);
}

/* The first of this type, or NULL. */
static const struct condition *conditions_get(const struct conditions *self, const char *type)
{
    uintptr_t place = type ? (uintptr_t)ml_map_get(&self->by_type, ml_str_of(type)) : 0;
    return place ? &self->items[place - 1] : NULL;
}

int ml_conditions_merge(struct ml_str current, struct ml_str wanted, int64_t generation,
                        int64_t now_ns, struct ml_buf *out, struct ml_err *err)
{
    ML_AUTO(conditions_fini) struct conditions old = {.len = 0}, new = {.len = 0};
    const struct ml_str none = {NULL, 0};
    struct ml_json_writer writer;
    int r = 0;
    conditions_read(&old, current);
    conditions_read(&new, wanted);
    if (new.len > SCRIPT_CONDITIONS_MAX)
        return ml_err_set(err, ML_EINVALID, "status.conditions: %zu conditions; at most %d",
                          new.len, SCRIPT_CONDITIONS_MAX);
    ml_json_writer_init(&writer, out);
    ml_json_begin_array(&writer);
    for (size_t i = 0; i < old.len && r == 0; i++) {
        const struct condition *newer = conditions_get(&new, old.items[i].type);
        if (newer)
            r = write_wanted_condition(&writer, old.items[i].raw, newer->raw, generation, now_ns,
                                       err);
        else
            ml_json_raw(&writer, old.items[i].raw);
    }
    for (size_t i = 0; i < new.len &&r == 0; i++)
        if (!conditions_get(&old, new.items[i].type))
            r = write_wanted_condition(&writer, none, new.items[i].raw, generation, now_ns, err);
    ml_json_end_array(&writer);
    return r;
}
