#include "codec/json_stream.h"

void ml_json_lines_init(struct ml_json_lines *lines, size_t line_max)
{
    ml_buf_init(&lines->pending, line_max);
}

void ml_json_lines_fini(struct ml_json_lines *lines)
{
    if (lines)
        ml_buf_fini(&lines->pending);
}

/* Puts `part` behind what is pending. Keeps within the maximum, which a line that is handed
 * on straight from its piece obeys too. */
static int join(struct ml_json_lines *lines, struct ml_str part, bool keep, struct ml_str *out_line,
                struct ml_err *err)
{
    struct ml_buf *pending = &lines->pending;
    size_t line_max = pending->len_max ? pending->len_max : ML_BUF_MAX_DEFAULT;
    if (part.len > line_max - pending->len)
        return ml_err_set(err, ML_ELIMIT, "a line is longer than %zu bytes", line_max);
    *out_line = part;
    if (keep || pending->len > 0) {
        ml_buf_append_str(pending, part);
        *out_line = ml_buf_str(pending);
    }
    return 0;
}

int ml_json_lines_feed(struct ml_json_lines *lines, struct ml_str piece,
                       int (*line)(void *context, struct ml_str raw, struct ml_err *err),
                       void *context, struct ml_err *err)
{
    struct ml_str whole;
    while (piece.len > 0) {
        const char *newline = memchr(piece.ptr, '\n', piece.len);
        if (!newline)
            return join(lines, piece, true, &whole, err);
        struct ml_str part = {piece.ptr, (size_t)(newline - piece.ptr)};
        piece.ptr += part.len + 1;
        piece.len -= part.len + 1;
        int r = join(lines, part, false, &whole, err);
        if (r == 0 && ml_str_trim(whole).len > 0)
            r = line(context, whole, err);
        ml_buf_clear(&lines->pending);
        if (r != 0)
            return r;
    }
    return 0;
}
