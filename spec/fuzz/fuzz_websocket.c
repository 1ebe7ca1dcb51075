/* The frames of a server, cut anywhere: the first byte says where. However they are cut, the same
 * messages must come out, none longer than the limit, and the same error. */
#include "net/websocket.h"

#define MESSAGE_MAX 300

struct seen {
    struct ml_buf text; /* of each event its kind, its length and its bytes */
    int end;            /* 0, or the error's kind */
};

static void note(struct seen *seen, enum ml_websocket_what what, struct ml_str payload)
{
    ml_assert(payload.len <=
              (what == ML_WEBSOCKET_MESSAGE ? MESSAGE_MAX : ML_WEBSOCKET_CONTROL_MAX));
    ml_buf_printf(&seen->text, "%d %zu ", (int)what, payload.len);
    ml_buf_append_str(&seen->text, payload);
}

/* Each piece in memory of its own, gone after it was read. */
static void read_all(struct ml_str bytes, size_t step, struct seen *seen)
{
    struct ml_websocket_reader reader;
    *seen = (struct seen){.end = 0};
    ml_websocket_reader_init(&reader, MESSAGE_MAX);
    for (size_t at = 0; at < bytes.len && seen->end == 0; at += step) {
        size_t len = ML_MIN(step, bytes.len - at);
        ML_AUTO_FREE char *piece = ml_strndup(bytes.ptr + at, len);
        struct ml_str rest = {piece, len}, payload;
        struct ml_err err = ML_ERR_INIT;
        enum ml_websocket_what what;
        int r;
        while ((r = ml_websocket_read(&reader, &rest, &what, &payload, &err)) == 1)
            note(seen, what, payload);
        ml_assert(r == err.kind);
        ml_assert(r < 0 || rest.len == 0);
        seen->end = r;
    }
    ml_websocket_reader_fini(&reader);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct seen whole, cut;
    if (size < 2)
        return 0;
    struct ml_str bytes = {(const char *)data + 1, size - 1};
    read_all(bytes, bytes.len, &whole);
    read_all(bytes, data[0] + (size_t)1, &cut);
    ml_assert(whole.end == cut.end);
    ml_assert(ml_str_eq(ml_buf_str(&whole.text), ml_buf_str(&cut.text)));
    ml_buf_fini(&whole.text);
    ml_buf_fini(&cut.text);
    return 0;
}
