/* Any bytes as JSON. The two walks must agree on what is JSON; what is must survive being
 * written anew; two values (cut at a byte that JSON cannot hold) must differ by a patch that
 * takes one to the other, and be applied to each other. */
#include "codec/json.h"
#include "codec/json_apply.h"
#include "codec/json_diff.h"

#define CUT 0xFF

/* Copies one value token by token; false when it is not JSON. */
static bool rewrite(struct ml_str json, struct ml_buf *out)
{
    struct ml_json_reader reader;
    struct ml_json_writer writer;
    ml_json_reader_init(&reader, json, 0);
    ml_json_writer_init(&writer, out);
    while (ml_json_next(&reader) > ML_JSON_ERROR) {
        switch (reader.token) {
        case ML_JSON_OBJECT:
            ml_json_begin_object(&writer);
            break;
        case ML_JSON_OBJECT_END:
            ml_json_end_object(&writer);
            break;
        case ML_JSON_ARRAY:
            ml_json_begin_array(&writer);
            break;
        case ML_JSON_ARRAY_END:
            ml_json_end_array(&writer);
            break;
        case ML_JSON_KEY:
            ml_assert(ml_str_is_utf8(reader.text));
            ml_json_key(&writer, reader.text);
            break;
        case ML_JSON_STRING:
            ml_assert(ml_str_is_utf8(reader.text));
            ml_json_string(&writer, reader.text);
            break;
        case ML_JSON_INT:
            ml_json_int(&writer, reader.integer);
            break;
        case ML_JSON_REAL:
            ml_json_real(&writer, reader.real);
            break;
        case ML_JSON_NUMBER:
            ml_json_raw(&writer, reader.text);
            break;
        case ML_JSON_TRUE:
        case ML_JSON_FALSE:
            ml_json_bool(&writer, reader.token == ML_JSON_TRUE);
            break;
        case ML_JSON_NULL:
            ml_json_null(&writer);
            break;
        case ML_JSON_END:
        case ML_JSON_ERROR:
            break;
        }
    }
    enum ml_json_token last = reader.token;
    ml_json_reader_fini(&reader);
    return last == ML_JSON_END;
}

static bool check_one(struct ml_str json)
{
    struct ml_err err;
    struct ml_buf once = ML_BUF_INIT, twice = ML_BUF_INIT;
    bool good = rewrite(json, &once);
    ml_assert(good == (ml_json_check(json, 0, &err) == 0));
    ml_assert(good || ml_json_check(json, 10000, &err) < 0 ||
              ml_json_check(json, ML_JSON_DEPTH_MAX, &err) < 0);
    if (good) {
        ml_assert(ml_json_equal(json, ml_buf_str(&once)));
        ml_assert(rewrite(ml_buf_str(&once), &twice));
        ml_assert(ml_str_eq(ml_buf_str(&once), ml_buf_str(&twice)));
    } else {
        ml_assert(!ml_json_equal(json, json));
    }
    struct ml_str raw;
    if (ml_json_find(json, &raw, "a", "0", "b", NULL))
        ml_assert(ml_json_check(raw, 0, &err) == 0);
    free(ml_json_find_string(json, "a", NULL));
    ml_buf_fini(&once);
    ml_buf_fini(&twice);
    return good;
}

static bool is_object(struct ml_str json)
{
    return ml_str_starts(ml_str_trim(json), "{");
}

static void count_difference(void *context, struct ml_str field, struct ml_str from,
                             struct ml_str to)
{
    ml_assert(ml_str_is_utf8(field) && !(from.len > 0 && ml_str_eq(from, to)));
    ++*(size_t *)context;
}

/* The result is an object, and equal objects do not differ. */
static void check_apply(struct ml_str live, struct ml_str applied)
{
    const struct ml_str before[] = {ML_STR(""), live, applied};
    size_t differences = 0;
    struct ml_err err;
    for (size_t i = 0; i < sizeof before / sizeof before[0]; i++) {
        struct ml_buf out = ML_BUF_INIT;
        ml_assert(ml_json_apply(live, applied, before[i], &out, &err) == 0);
        ml_assert(ml_json_check(ml_buf_str(&out), 0, &err) == 0 && is_object(ml_buf_str(&out)));
        ml_buf_fini(&out);
    }
    ml_json_differences(live, applied, count_difference, &differences);
    ml_assert(differences == 0 || !ml_json_equal(live, applied));
}

static void check_two(struct ml_str a, struct ml_str b)
{
    struct ml_err err;
    struct ml_buf patch = ML_BUF_INIT, merged = ML_BUF_INIT;
    ml_assert(ml_json_equal(a, b) == ml_json_equal(b, a));
    ml_assert(ml_json_merge(a, b, &merged, &err) == 0);
    ml_assert(ml_json_check(ml_buf_str(&merged), 0, &err) == 0);
    if (is_object(a) && is_object(b)) {
        check_apply(a, b);
        ml_buf_clear(&merged);
        ml_assert(ml_json_merge_diff(a, b, &patch, &err) == 0);
        ml_assert(ml_json_merge(a, ml_buf_str(&patch), &merged, &err) == 0);
        /* A merge patch cannot say null. */
        if (!memmem(b.ptr, b.len, "null", 4))
            ml_assert(ml_json_equal(ml_buf_str(&merged), b));
        if (ml_json_equal(a, b) && !memmem(a.ptr, a.len, "null", 4))
            ml_assert(ml_str_is(ml_buf_str(&patch), "{}"));
    }
    ml_buf_fini(&patch);
    ml_buf_fini(&merged);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    const uint8_t *cut = size ? memchr(data, CUT, size) : NULL;
    struct ml_str a = {(const char *)data, cut ? (size_t)(cut - data) : size};
    bool good = check_one(a);
    if (cut) {
        struct ml_str b = {(const char *)cut + 1, size - a.len - 1};
        if (check_one(b) && good)
            check_two(a, b);
    }
    return 0;
}
