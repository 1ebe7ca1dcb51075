#include "unit.h"

#include "codec/json_stream.h"

#define ITEM_MAX 4096

/* Items, each followed by '|'. */
static int note_item(void *context, struct ml_str raw, struct ml_err *err)
{
    (void)err;
    ml_buf_append_str(context, raw);
    ml_buf_putc(context, '|');
    return 0;
}

/* Feeds `text` in pieces of `step` bytes, the first one of `first`; each piece is a copy of its
 * own, so that the sanitizer sees what is kept too long. On success adds the envelope. */
static int split(struct ml_str text, size_t first, size_t step, struct ml_buf *out,
                 struct ml_err *err)
{
    const struct ml_json_list_handler handler = {note_item, out};
    struct ml_json_list *list = ml_json_list_new(&handler, ITEM_MAX);
    struct ml_str envelope;
    int r = 0;
    for (size_t at = 0, next = first; at < text.len && r == 0; at += next, next = step) {
        next = ML_MIN(next, text.len - at);
        char *piece = ml_alloc(next ? next : 1);
        memcpy(piece, text.ptr + at, next);
        r = ml_json_list_feed(list, (struct ml_str){piece, next}, err);
        free(piece);
    }
    if (r == 0)
        r = ml_json_list_finish(list, &envelope, err);
    if (r == 0)
        ml_buf_append_str(out, envelope);
    ml_json_list_free(list);
    return r;
}

static const struct {
    const char *text, *result;
} lists[] = {
    {"{}", "{}"},
    {"{\"items\":[]}", "{\"items\":[]}"},
    {" { \"items\" : [ ] } ", "{\"items\":[] }"},
    {"{\"items\":null,\"kind\":\"L\"}", "{\"items\":null,\"kind\":\"L\"}"},
    {"{\"kind\":\"L\",\"items\":[{\"a\":1},{\"b\":2}]}",
     "{\"a\":1}|{\"b\":2}|{\"kind\":\"L\",\"items\":[]}"},
    {"{\"items\":[{\"a\":1}],\"kind\":\"L\"}", "{\"a\":1}|{\"items\":[],\"kind\":\"L\"}"},
    {"{ \"items\" : [ {\"a\" : 1} , {} ] , \"kind\" : \"L\" }\n",
     "{\"a\" : 1}|{}|{\"items\":[] ,\"kind\": \"L\" }"},
    {"{\"items\":[1,\"a,]\",null,[2,[3]],true]}", "1|\"a,]\"|null|[2,[3]]|true|{\"items\":[]}"},
    {"{\"items\":[{\"items\":[1,2]},{\"x\":{\"items\":[]}}]}",
     "{\"items\":[1,2]}|{\"x\":{\"items\":[]}}|{\"items\":[]}"},
    {"{\"metadata\":{\"items\":[1,2]},\"items\":[3]}",
     "3|{\"metadata\":{\"items\":[1,2]},\"items\":[]}"},
    {"{\"kind\":\"items\",\"items\":[3]}", "3|{\"kind\":\"items\",\"items\":[]}"},
    {"{\"items2\":[1],\"item\":[2]}", "{\"items2\":[1],\"item\":[2]}"},
    {"{\"\\u0069tem\\u0073\":[4]}", "4|{\"\\u0069tem\\u0073\":[]}"},
    {"{\"it\\\"ems\":[1],\"items\":[5]}", "5|{\"it\\\"ems\":[1],\"items\":[]}"},
    {"{\"a\":\"}],{[\\\"\\\\\",\"items\":[\"\\\\\",\"\\\"]\"]}",
     "\"\\\\\"|\"\\\"]\"|{\"a\":\"}],{[\\\"\\\\\",\"items\":[]}"},
    {"{\"items\":[{\"s\":\"\u20ac and a good deal of text behind it ]},{[\"}]}",
     "{\"s\":\"\u20ac and a good deal of text behind it ]},{[\"}|{\"items\":[]}"},
    /* Bad items are the business of who reads them. */
    {"{\"items\":[{\"a\" 1},nul,{\"b\":2}]}", "{\"a\" 1}|nul|{\"b\":2}|{\"items\":[]}"},
};

static void test_list_is_the_same_however_it_is_cut(void **state)
{
    (void)state;
    for (size_t i = 0; i < ML_COUNT(lists); i++) {
        struct ml_str text = ml_str_of(lists[i].text);
        for (size_t first = 0; first <= text.len; first++) {
            struct ml_err err = ML_ERR_INIT;
            struct ml_buf out = ML_BUF_INIT;
            if (split(text, first, text.len, &out, &err) != 0)
                fail_msg("%s cut at %zu: %s", lists[i].text, first, err.message);
            assert_string_equal(ml_buf_cstr(&out), lists[i].result);
            ml_buf_fini(&out);
        }
        for (size_t step = 1; step < 8; step++) {
            struct ml_err err;
            struct ml_buf out = ML_BUF_INIT;
            assert_int_equal(split(text, step, step, &out, &err), 0);
            assert_string_equal(ml_buf_cstr(&out), lists[i].result);
            ml_buf_fini(&out);
        }
    }
}

static void test_list_broken_documents_are_refused_however_cut(void **state)
{
    (void)state;
    static const char *const bad[] = {
        "",
        " ",
        "[]",
        "1",
        "null",
        "{",
        "{\"items\":[",
        "{\"items\":[1",
        "{\"items\":[1]",
        "{\"items\":[1,]}",
        "{\"items\":[,1]}",
        "{\"items\":[1,,2]}",
        "{\"items\":[1}",
        "{\"items\":[1}]",
        "{\"items\":{}}",
        "{\"items\":1}",
        "{\"items\":\"x\"}",
        "{\"items\":nope}",
        "{\"items\":[],\"items\":[]}",
        "{\"items\":[]}}",
        "{\"items\":[]}{}",
        "{\"items\":[]}x",
        "{\"items\":[]]}",
        "{\"items\":[] 1}",
        "{\"items\" [1]}",
        "{\"items\":[],}",
        "{\"a\":1,}",
        "{,}",
        "{\"a\":}",
        "{\"a\":1]}",
        "{\"a\" 1}",
        "{a:1}",
        "{\"a\":tru}",
        "{\"a\":\"\\x\"}",
        "{\"\xff\":1}",
    };
    for (size_t i = 0; i < ML_COUNT(bad); i++) {
        struct ml_str text = ml_str_of(bad[i]);
        for (size_t first = 0; first <= text.len; first++) {
            struct ml_err err;
            struct ml_buf out = ML_BUF_INIT;
            if (split(text, first, text.len, &out, &err) != ML_EINVALID)
                fail_msg("taken: %s cut at %zu", bad[i], first);
            ml_buf_fini(&out);
        }
    }
}

static void test_list_every_prefix_is_incomplete(void **state)
{
    (void)state;
    struct ml_str text = ml_str_of(lists[5].text);
    for (size_t len = 0; len < text.len; len++) {
        struct ml_err err;
        struct ml_buf out = ML_BUF_INIT;
        assert_int_equal(split((struct ml_str){text.ptr, len}, 3, 3, &out, &err), ML_EINVALID);
        ml_buf_fini(&out);
    }
}

/* An item of `len` bytes between a small one before and behind. */
static char *list_with_item_of(size_t len)
{
    char *filler = ml_alloc(len - 1);
    memset(filler, 'x', len - 2);
    filler[len - 2] = '\0';
    char *text = ml_asprintf("{\"items\":[1,\"%s\",2]}", filler);
    free(filler);
    return text;
}

static void test_list_items_up_to_the_maximum_pass_and_no_further(void **state)
{
    (void)state;
    static const size_t steps[] = {1, 100, ITEM_MAX * 2};
    for (size_t i = 0; i < ML_COUNT(steps); i++) {
        struct ml_err err;
        struct ml_buf out = ML_BUF_INIT;
        ML_AUTO_FREE char *fits = list_with_item_of(ITEM_MAX);
        ML_AUTO_FREE char *large = list_with_item_of(ITEM_MAX + 1);
        assert_int_equal(split(ml_str_of(fits), steps[i], steps[i], &out, &err), 0);
        assert_int_equal(split(ml_str_of(large), steps[i], steps[i], &out, &err), ML_ELIMIT);
        ml_buf_fini(&out);
    }
}

static void test_list_envelope_past_the_maximum_is_a_limit(void **state)
{
    (void)state;
    struct ml_err err;
    struct ml_buf out = ML_BUF_INIT;
    ML_AUTO_FREE char *text = ml_asprintf("{\"items\":[1],\"a\":\"%*s\"}", ITEM_MAX, "");
    assert_int_equal(split(ml_str_of(text), 10, 10, &out, &err), ML_ELIMIT);
    ml_buf_fini(&out);
}

static int note_length(void *context, struct ml_str raw, struct ml_err *err)
{
    (void)err;
    *(size_t *)context += raw.len;
    return 0;
}

static void test_list_item_of_any_depth_passes_whole(void **state)
{
    (void)state;
    enum { DEPTH = 10000 };
    struct ml_buf text = ML_BUF_INIT;
    ml_buf_puts(&text, "{\"items\":[");
    for (int i = 0; i < DEPTH; i++)
        ml_buf_puts(&text, "{\"a\":[");
    for (int i = 0; i < DEPTH; i++)
        ml_buf_puts(&text, "]}");
    ml_buf_puts(&text, ",{}]}");
    size_t total = 0;
    const struct ml_json_list_handler handler = {note_length, &total};
    struct ml_json_list *list = ml_json_list_new(&handler, 1 << 20);
    struct ml_err err;
    struct ml_str envelope;
    assert_int_equal(ml_json_list_feed(list, ml_buf_str(&text), &err), 0);
    assert_int_equal(ml_json_list_finish(list, &envelope, &err), 0);
    assert_int_equal(total, DEPTH * 8 + 2);
    ml_json_list_free(list);
    ml_buf_fini(&text);
}

static int refuse_second(void *context, struct ml_str raw, struct ml_err *err)
{
    (void)raw;
    return ++*(int *)context == 2 ? ml_err_set(err, ML_ECONFLICT, "enough") : 0;
}

static void test_list_stops_when_the_handler_says_so(void **state)
{
    (void)state;
    int calls = 0;
    const struct ml_json_list_handler handler = {refuse_second, &calls};
    struct ml_json_list *list = ml_json_list_new(&handler, ITEM_MAX);
    struct ml_err err;
    struct ml_str envelope;
    assert_int_equal(ml_json_list_feed(list, ML_STR("{\"items\":[1,2,3]}"), &err), ML_ECONFLICT);
    assert_string_equal(err.message, "enough");
    assert_int_equal(calls, 2);
    assert_int_equal(ml_json_list_feed(list, ML_STR("3]}"), &err), ML_EINVALID);
    assert_int_equal(ml_json_list_finish(list, &envelope, &err), ML_EINVALID);
    ml_json_list_free(list);
    ml_json_list_free(NULL);
}

/* Adds the lines of the piece to `out`. Returns as ml_json_lines_next. */
static int note_lines(struct ml_json_lines *lines, struct ml_str piece, struct ml_buf *out,
                      struct ml_err *err)
{
    struct ml_str line;
    int r;
    while ((r = ml_json_lines_next(lines, &piece, &line, err)) > 0)
        note_item(out, line, err);
    return r;
}

static void test_lines_are_the_same_however_they_are_cut(void **state)
{
    (void)state;
    struct ml_str text = ML_STR("{\"a\":1}\n\n \r\n{\"b\":2}\r\n{}\n{\"unfinished\":");
    for (size_t step = 1; step <= text.len; step++) {
        struct ml_err err;
        struct ml_buf out = ML_BUF_INIT;
        struct ml_json_lines lines;
        ml_json_lines_init(&lines, 16);
        for (size_t at = 0; at < text.len; at += step) {
            struct ml_str piece = {text.ptr + at, ML_MIN(step, text.len - at)};
            assert_int_equal(note_lines(&lines, piece, &out, &err), 0);
        }
        assert_string_equal(ml_buf_cstr(&out), "{\"a\":1}|{\"b\":2}\r|{}|");
        ml_json_lines_fini(&lines);
        ml_buf_fini(&out);
    }
}

static void test_lines_too_long_are_a_limit_whole_or_in_pieces(void **state)
{
    (void)state;
    struct ml_str text = ML_STR("12345678\n123456789\n");
    for (size_t step = 1; step <= text.len; step++) {
        struct ml_err err;
        struct ml_buf out = ML_BUF_INIT;
        struct ml_json_lines lines;
        ml_json_lines_init(&lines, 8);
        int r = 0;
        for (size_t at = 0; at < text.len && r == 0; at += step) {
            struct ml_str piece = {text.ptr + at, ML_MIN(step, text.len - at)};
            r = note_lines(&lines, piece, &out, &err);
        }
        assert_int_equal(r, ML_ELIMIT);
        assert_string_equal(ml_buf_cstr(&out), "12345678|");
        ml_json_lines_fini(&lines);
        ml_buf_fini(&out);
    }
}

static void test_lines_are_taken_one_at_a_time(void **state)
{
    (void)state;
    struct ml_err err;
    struct ml_str first = ML_STR("1"), piece = ML_STR("\n2\n3\n4"), line;
    struct ml_json_lines lines;
    ml_json_lines_init(&lines, 8);
    assert_int_equal(ml_json_lines_next(&lines, &first, &line, &err), 0);
    assert_int_equal(ml_json_lines_next(&lines, &piece, &line, &err), 1);
    assert_true(ml_str_is(line, "1"));
    assert_true(ml_str_is(piece, "2\n3\n4"));
    assert_int_equal(ml_json_lines_next(&lines, &piece, &line, &err), 1);
    assert_true(ml_str_is(line, "2"));
    assert_int_equal(ml_json_lines_next(&lines, &piece, &line, &err), 1);
    assert_true(ml_str_is(line, "3"));
    assert_int_equal(ml_json_lines_next(&lines, &piece, &line, &err), 0);
    assert_int_equal(piece.len, 0);
    ml_json_lines_fini(&lines);
    ml_json_lines_fini(NULL);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_list_is_the_same_however_it_is_cut),
        cmocka_unit_test(test_list_broken_documents_are_refused_however_cut),
        cmocka_unit_test(test_list_every_prefix_is_incomplete),
        cmocka_unit_test(test_list_items_up_to_the_maximum_pass_and_no_further),
        cmocka_unit_test(test_list_envelope_past_the_maximum_is_a_limit),
        cmocka_unit_test(test_list_item_of_any_depth_passes_whole),
        cmocka_unit_test(test_list_stops_when_the_handler_says_so),
        cmocka_unit_test(test_lines_are_the_same_however_they_are_cut),
        cmocka_unit_test(test_lines_too_long_are_a_limit_whole_or_in_pieces),
        cmocka_unit_test(test_lines_are_taken_one_at_a_time),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
