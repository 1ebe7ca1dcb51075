#include "run/conditions.h"

#include "codec/json.h"
#include "codec/rfc3339.h"

void ml_condition_write(const struct ml_condition *condition, struct ml_buf *out)
{
    struct ml_json_writer writer;
    ml_json_writer_init(&writer, out);
    ml_json_begin_object(&writer);
    ml_json_put_string(&writer, "type", ml_str_of(condition->type));
    ml_json_put_string(&writer, "status", ml_str_of(condition->status));
    ml_json_put_string(&writer, "reason", ml_str_of(condition->reason));
    ml_json_put_string(&writer, "message", condition->message);
    ml_json_end_object(&writer);
}

/* Walks an array; an empty slice starts and ends at once. */
struct array_walk {
    struct ml_json_reader reader;
    bool open;
};

static void walk_begin(struct array_walk *walk, struct ml_str array)
{
    ml_json_reader_init(&walk->reader, array, 0);
    walk->open = array.len > 0 && ml_json_next(&walk->reader) == ML_JSON_ARRAY;
}

static bool walk_next(struct array_walk *walk, struct ml_str *out_raw)
{
    if (!walk->open)
        return false;
    *out_raw = ml_json_skip(&walk->reader);
    walk->open = out_raw->len > 0;
    return walk->open;
}

static void walk_end(struct array_walk *walk)
{
    ml_json_reader_fini(&walk->reader);
}

static bool string_is(struct ml_str object, const char *field, struct ml_str want)
{
    ML_AUTO(ml_buf_fini) struct ml_buf text = ML_BUF_INIT;
    struct ml_str raw;
    return ml_json_find(object, &raw, field, NULL) && ml_json_to_string(raw, &text) &&
           ml_str_eq(ml_buf_str(&text), want);
}

struct ml_str ml_conditions_find(struct ml_str array, struct ml_str type)
{
    ML_AUTO(walk_end) struct array_walk walk;
    struct ml_str raw;
    walk_begin(&walk, array);
    while (walk_next(&walk, &raw))
        if (string_is(raw, "type", type))
            return raw;
    return (struct ml_str){NULL, 0};
}

static bool has(struct ml_str object, const char *field)
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

static int write_wanted(struct ml_json_writer *writer, struct ml_str before, struct ml_str wanted,
                        int64_t generation, int64_t now_ns, struct ml_err *err)
{
    ML_AUTO_FREE char *type = ml_json_find_string(wanted, "type", NULL);
    if (!type || !has(wanted, "status"))
        return ml_err_set(err, ML_EINVALID, "status.conditions: each needs type and status");
    ML_AUTO(ml_json_reader_fini) struct ml_json_reader reader;
    ml_json_reader_init(&reader, wanted, 0);
    ml_json_next(&reader);
    ml_json_begin_object(writer);
    while (ml_json_next(&reader) == ML_JSON_KEY) {
        ml_json_key(writer, reader.text);
        ml_json_raw(writer, ml_json_skip(&reader));
    }
    if (!has(wanted, "reason"))
        ml_json_put_string(writer, "reason", ml_str_of(type));
    if (!has(wanted, "message"))
        ml_json_put_string(writer, "message", ML_STR(""));
    if (!has(wanted, "observedGeneration"))
        ml_json_put_int(writer, "observedGeneration", generation);
    if (!has(wanted, "lastTransitionTime"))
        write_transition(writer, before, wanted, now_ns);
    ml_json_end_object(writer);
    return 0;
}

int ml_conditions_merge(struct ml_str current, struct ml_str wanted, int64_t generation,
                        int64_t now_ns, struct ml_buf *out, struct ml_err *err)
{
    struct ml_json_writer writer;
    struct ml_str raw;
    int r = 0;
    ml_json_writer_init(&writer, out);
    ml_json_begin_array(&writer);
    {
        ML_AUTO(walk_end) struct array_walk walk;
        walk_begin(&walk, current);
        while (r == 0 && walk_next(&walk, &raw)) {
            ML_AUTO_FREE char *type = ml_json_find_string(raw, "type", NULL);
            struct ml_str newer = ml_conditions_find(wanted, ml_str_of(type));
            if (newer.len)
                r = write_wanted(&writer, raw, newer, generation, now_ns, err);
            else
                ml_json_raw(&writer, raw);
        }
    }
    ML_AUTO(walk_end) struct array_walk walk;
    walk_begin(&walk, wanted);
    while (r == 0 && walk_next(&walk, &raw)) {
        ML_AUTO_FREE char *type = ml_json_find_string(raw, "type", NULL);
        if (!type || ml_conditions_find(current, ml_str_of(type)).len == 0)
            r = write_wanted(&writer, (struct ml_str){NULL, 0}, raw, generation, now_ns, err);
    }
    ml_json_end_array(&writer);
    return r;
}
