/* The stream of a watch, cut anywhere (the first byte says where): lines, events, objects. An
 * object that is taken must give back its JSON and be found under the key and the version that
 * are read without parsing it; and however the stream is cut, the same must come out. */
#include "codec/json.h"
#include "codec/json_stream.h"
#include "kube/object.h"
#include "state/watch_event.h"

#define LINE_MAX ((size_t)64 * 1024)

struct seen {
    struct ml_dict *dict;
    struct ml_buf text; /* the events that were handed on */
};

static void check_object(const struct watch_event *event, const struct ml_object *object,
                         struct ml_str key, struct ml_str version)
{
    struct ml_err err;
    ML_AUTO(ml_buf_fini) struct ml_buf json = ML_BUF_INIT;
    ml_object_json(object, &json);
    ml_assert(ml_json_check(ml_buf_str(&json), 0, &err) == 0);
    ml_assert(event->object.len > 0);
    ml_assert(ml_str_eq(ml_object_key(object), key));
    ml_assert(ml_str_eq(ml_object_rv(object), version));
}

static int take_line(struct seen *seen, struct ml_str line, struct ml_err *err)
{
    struct watch_event event;
    if (watch_event_parse(line, &event, err) < 0)
        return err->kind;
    ml_assert(event.object.ptr >= line.ptr);
    ml_assert(event.object.ptr + event.object.len <= line.ptr + line.len);
    ML_AUTO_FREE char *version = watch_event_version(event.object);
    ML_AUTO_FREE char *key = watch_event_key(event.object);
    ml_assert(key);
    struct ml_object *object = NULL;
    struct ml_err poison;
    if (ml_object_new(seen->dict, "v1", "Pod", event.object, &object, &poison) == 0)
        check_object(&event, object, ml_str_of(key), ml_str_of(version));
    ml_buf_printf(&seen->text, "%d %s@%s %d|", (int)event.type, key, version ? version : "-",
                  object != NULL);
    ml_object_unref(object);
    return 0;
}

/* Each piece in memory of its own, gone after its feed. */
static bool stream(struct ml_str text, size_t step, struct seen *seen)
{
    struct ml_json_lines lines;
    struct ml_err err;
    int r = 0;
    *seen = (struct seen){.dict = ml_dict_new()};
    ml_json_lines_init(&lines, LINE_MAX);
    for (size_t at = 0; at < text.len && r == 0; at += step) {
        size_t len = ML_MIN(step, text.len - at);
        ML_AUTO_FREE char *piece = ml_strndup(text.ptr + at, len);
        struct ml_str rest = {piece, len}, line;
        while ((r = ml_json_lines_next(&lines, &rest, &line, &err)) > 0)
            if ((r = take_line(seen, line, &err)) < 0)
                break;
    }
    ml_json_lines_fini(&lines);
    ml_dict_unref(seen->dict);
    return r == 0;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct seen whole, pieces;
    if (size == 0)
        return 0;
    struct ml_str text = {(const char *)data + 1, size - 1};
    bool good = stream(text, ML_MAX(text.len, 1), &whole);
    ml_assert(stream(text, (size_t)data[0] % 64 + 1, &pieces) == good);
    ml_assert(ml_str_eq(ml_buf_str(&whole.text), ml_buf_str(&pieces.text)));
    ml_buf_fini(&whole.text);
    ml_buf_fini(&pieces.text);
    return 0;
}
