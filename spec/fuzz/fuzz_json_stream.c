/* A list and a stream of lines, cut anywhere: the first byte says where. However they are cut,
 * the same must come out; and a list whose parts are JSON is JSON. */
#include "codec/json.h"
#include "codec/json_stream.h"

#define ITEM_MAX 512

struct seen {
    struct ml_buf text; /* the items that were handed on */
    bool items_good;
};

static int note(void *context, struct ml_str raw, struct ml_err *err)
{
    struct seen *seen = context;
    struct ml_err ignored;
    (void)err;
    ml_assert(raw.len <= ITEM_MAX);
    ml_buf_append_str(&seen->text, raw);
    ml_buf_putc(&seen->text, '|');
    if (ml_json_check(raw, ML_JSON_DEPTH_MAX - 2, &ignored) < 0)
        seen->items_good = false;
    return 0;
}

/* Each piece in memory of its own, gone after its feed. */
static bool split_list(struct ml_str text, size_t step, struct seen *seen)
{
    const struct ml_json_list_handler handler = {note, seen};
    struct ml_json_list *list = ml_json_list_new(&handler, ITEM_MAX);
    struct ml_err err;
    struct ml_str envelope;
    int r = 0;
    *seen = (struct seen){.items_good = true};
    for (size_t at = 0; at < text.len && r == 0; at += step) {
        size_t len = ML_MIN(step, text.len - at);
        ML_AUTO_FREE char *piece = ml_strndup(text.ptr + at, len);
        r = ml_json_list_feed(list, (struct ml_str){piece, len}, &err);
    }
    if (r == 0)
        r = ml_json_list_finish(list, &envelope, &err);
    if (r == 0)
        ml_buf_append_str(&seen->text, envelope);
    ml_json_list_free(list);
    return r == 0;
}

static bool split_lines(struct ml_str text, size_t step, struct seen *seen)
{
    struct ml_json_lines lines;
    struct ml_err err;
    int r = 0;
    *seen = (struct seen){.items_good = true};
    ml_json_lines_init(&lines, ITEM_MAX);
    for (size_t at = 0; at < text.len && r == 0; at += step) {
        size_t len = ML_MIN(step, text.len - at);
        ML_AUTO_FREE char *piece = ml_strndup(text.ptr + at, len);
        struct ml_str rest = {piece, len}, line;
        while ((r = ml_json_lines_next(&lines, &rest, &line, &err)) > 0)
            note(seen, line, &err);
    }
    ml_json_lines_fini(&lines);
    return r == 0;
}

static void compare(struct ml_str text, size_t step,
                    bool (*split)(struct ml_str text, size_t step, struct seen *seen), bool is_list)
{
    struct seen whole, pieces;
    struct ml_err err;
    bool good = split(text, text.len ? text.len : 1, &whole);
    ml_assert(split(text, step, &pieces) == good);
    ml_assert(ml_str_eq(ml_buf_str(&whole.text), ml_buf_str(&pieces.text)));
    if (is_list && good && whole.items_good)
        ml_assert(ml_json_check(text, 0, &err) == 0);
    ml_buf_fini(&whole.text);
    ml_buf_fini(&pieces.text);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    if (size == 0)
        return 0;
    struct ml_str text = {(const char *)data + 1, size - 1};
    size_t step = (size_t)data[0] % 64 + 1;
    compare(text, step, split_list, true);
    compare(text, step, split_lines, false);
    return 0;
}
