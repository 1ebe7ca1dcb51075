/* Splits lists into their items and watches into their lines.
 *
 * The list splitter is a byte machine that finds only what it must: where strings begin and end,
 * how deep the brackets are, which key of the outermost object is "items". The text around the
 * items is gathered as the envelope and checked as JSON at the end. */
#include "codec/json_stream.h"

#include "codec/json.h"
#include "codec/json_scan.h"

enum list_state {
    LIST_START,         /* before the '{' */
    LIST_KEY,           /* in the outermost object, where a key or the '}' may come */
    LIST_IN_KEY,        /* behind a key's opening quote */
    LIST_COLON,         /* behind a key */
    LIST_ITEMS,         /* behind "items": */
    LIST_VALUE,         /* in a value of the envelope, up to the ',' or '}' behind it */
    LIST_ITEM_OR_CLOSE, /* behind the '[' of items */
    LIST_ITEM,          /* behind a comma in items */
    LIST_IN_ITEM,       /* in an item, up to the ',' or ']' behind it */
    LIST_OVER,          /* behind the last '}' */
    LIST_BROKEN,        /* refused before, or stopped by the handler */
};

struct ml_json_list {
    struct ml_json_list_handler handler;
    size_t item_max;
    size_t fed; /* bytes of the pieces before this one, for messages */
    enum list_state state;

    /* Inside a key or a value. */
    size_t depth; /* of brackets; only the size limits it */
    bool in_string;
    bool escaped; /* the last byte was a backslash that escapes the next */

    bool items_seen;
    size_t key_at; /* where in the envelope the last key begins */
    struct ml_buf envelope;
    struct ml_buf item; /* its part in earlier pieces */
};

/* A place in the piece being fed. */
struct cursor {
    const char *start, *p, *end;
};

struct ml_json_list *ml_json_list_new(const struct ml_json_list_handler *handler, size_t item_max)
{
    struct ml_json_list *list = ml_new(struct ml_json_list);
    list->handler = *handler;
    list->item_max = item_max;
    ml_buf_init(&list->envelope, item_max);
    ml_buf_init(&list->item, item_max);
    return list;
}

void ml_json_list_free(struct ml_json_list *list)
{
    if (!list)
        return;
    ml_buf_fini(&list->envelope);
    ml_buf_fini(&list->item);
    free(list);
}

static int list_refuse(const struct ml_json_list *list, const struct cursor *at,
                       const char *problem, struct ml_err *err)
{
    return ml_err_set(err, ML_EINVALID, "at byte %zu of a list: %s",
                      list->fed + (size_t)(at->p - at->start), problem);
}

/* Adds what lies between `from` and the cursor to `buf`. */
static int list_gather(const struct ml_json_list *list, struct ml_buf *buf, const char *from,
                       const struct cursor *at, struct ml_err *err)
{
    if (ml_buf_append(buf, from, (size_t)(at->p - from)))
        return 0;
    return ml_err_set(err, ML_ELIMIT, "%s of a list is larger than %zu bytes",
                      buf == &list->item ? "an item" : "the part outside the items",
                      list->item_max);
}

/* Passes over the rest of a string; true when its closing quote was passed. */
static bool list_pass_string(struct ml_json_list *list, struct cursor *at)
{
    while (at->p < at->end) {
        if (list->escaped) {
            list->escaped = false;
            at->p++;
            continue;
        }
        at->p = ml_json_quote_end(at->p, at->end);
        if (at->p == at->end)
            break;
        if (*at->p++ == '"')
            return true;
        list->escaped = true;
    }
    return false;
}

/* Passes over a value; true when the cursor stands at the ',', ']' or '}' behind it. */
static bool list_pass_value(struct ml_json_list *list, struct cursor *at)
{
    if (list->in_string && !list_pass_string(list, at))
        return false;
    list->in_string = false;
    for (;;) {
        at->p = ml_json_structure_end(at->p, at->end, list->depth == 0);
        if (at->p == at->end)
            return false;
        char c = *at->p;
        if (c == '"') {
            at->p++;
            list->in_string = !list_pass_string(list, at);
            if (list->in_string)
                return false;
            continue;
        }
        bool opens = (c | 0x20) == '{';
        if (list->depth == 0 && !opens)
            return true;
        list->depth += opens ? 1 : (size_t)-1;
        at->p++;
    }
}

/* One function a state. Each consumes at least one byte or changes the state. White space was
 * skipped where it has no meaning. */

static int list_on_start(struct ml_json_list *list, struct cursor *at, struct ml_err *err)
{
    if (*at->p != '{')
        return list_refuse(list, at, "not an object", err);
    list->state = LIST_KEY;
    const char *from = at->p++;
    return list_gather(list, &list->envelope, from, at, err);
}

static int list_on_key(struct ml_json_list *list, struct cursor *at, struct ml_err *err)
{
    if (*at->p != '"' && *at->p != '}')
        return list_refuse(list, at, "not a key", err);
    list->state = *at->p == '}' ? LIST_OVER : LIST_IN_KEY;
    list->key_at = list->envelope.len;
    const char *from = at->p++;
    return list_gather(list, &list->envelope, from, at, err);
}

static int list_on_in_key(struct ml_json_list *list, struct cursor *at, struct ml_err *err)
{
    const char *from = at->p;
    if (list_pass_string(list, at))
        list->state = LIST_COLON;
    return list_gather(list, &list->envelope, from, at, err);
}

/* However the key is written: "\u0069tems" is one too. */
static bool key_is_items(const struct ml_json_list *list)
{
    struct ml_str raw = {list->envelope.ptr + list->key_at, list->envelope.len - list->key_at};
    ML_AUTO(ml_buf_fini) struct ml_buf key;
    ml_buf_init(&key, raw.len);
    return ml_json_to_string(raw, &key) && ml_str_is(ml_buf_str(&key), "items");
}

static int list_on_colon(struct ml_json_list *list, struct cursor *at, struct ml_err *err)
{
    if (*at->p != ':')
        return list_refuse(list, at, "no ':' behind a key", err);
    list->state = key_is_items(list) ? LIST_ITEMS : LIST_VALUE;
    const char *from = at->p++;
    return list_gather(list, &list->envelope, from, at, err);
}

/* Go writes null for a list that was never made. */
static int list_on_items(struct ml_json_list *list, struct cursor *at, struct ml_err *err)
{
    if (list->items_seen)
        return list_refuse(list, at, "\"items\" twice", err);
    if (*at->p != '[' && *at->p != 'n')
        return list_refuse(list, at, "\"items\" is not an array", err);
    list->items_seen = true;
    if (*at->p == 'n') {
        list->state = LIST_VALUE;
        return 0;
    }
    list->state = LIST_ITEM_OR_CLOSE;
    const char *from = at->p++;
    return list_gather(list, &list->envelope, from, at, err);
}

static int list_on_value(struct ml_json_list *list, struct cursor *at, struct ml_err *err)
{
    const char *from = at->p;
    if (list_pass_value(list, at)) {
        if (*at->p == ']')
            return list_refuse(list, at, "']' where nothing is open", err);
        list->state = *at->p == ',' ? LIST_KEY : LIST_OVER;
        at->p++;
    }
    return list_gather(list, &list->envelope, from, at, err);
}

/* Behind the last item: the rest is part of the envelope again. */
static int list_close_items(struct ml_json_list *list, struct cursor *at, struct ml_err *err)
{
    list->state = LIST_VALUE;
    const char *from = at->p++;
    return list_gather(list, &list->envelope, from, at, err);
}

static int list_on_item(struct ml_json_list *list, struct cursor *at, struct ml_err *err)
{
    if (*at->p == ']' && list->state == LIST_ITEM_OR_CLOSE)
        return list_close_items(list, at, err);
    if (*at->p == ',' || *at->p == ']' || *at->p == '}')
        return list_refuse(list, at, "an item is missing", err);
    list->state = LIST_IN_ITEM;
    return 0;
}

/* Hands the item on: straight from the piece when it holds all of it. */
static int list_deliver_item(struct ml_json_list *list, const char *from, const struct cursor *at,
                             struct ml_err *err)
{
    struct ml_str raw = {from, (size_t)(at->p - from)};
    if (list->item.len > 0 || raw.len > list->item_max) {
        int r = list_gather(list, &list->item, from, at, err);
        if (r < 0)
            return r;
        raw = ml_buf_str(&list->item);
    }
    int r = list->handler.item(list->handler.context, ml_str_trim(raw), err);
    ml_buf_clear(&list->item);
    return r;
}

static int list_on_in_item(struct ml_json_list *list, struct cursor *at, struct ml_err *err)
{
    const char *from = at->p;
    if (!list_pass_value(list, at))
        return list_gather(list, &list->item, from, at, err);
    if (*at->p == '}')
        return list_refuse(list, at, "'}' where nothing is open", err);
    int r = list_deliver_item(list, from, at, err);
    if (r != 0)
        return r;
    if (*at->p == ']')
        return list_close_items(list, at, err);
    at->p++;
    list->state = LIST_ITEM;
    return 0;
}

static int list_step(struct ml_json_list *list, struct cursor *at, struct ml_err *err)
{
    switch (list->state) {
    case LIST_START:
        return list_on_start(list, at, err);
    case LIST_KEY:
        return list_on_key(list, at, err);
    case LIST_IN_KEY:
        return list_on_in_key(list, at, err);
    case LIST_COLON:
        return list_on_colon(list, at, err);
    case LIST_ITEMS:
        return list_on_items(list, at, err);
    case LIST_VALUE:
        return list_on_value(list, at, err);
    case LIST_ITEM_OR_CLOSE:
    case LIST_ITEM:
        return list_on_item(list, at, err);
    case LIST_IN_ITEM:
        return list_on_in_item(list, at, err);
    case LIST_OVER:
        return list_refuse(list, at, "something behind the list", err);
    case LIST_BROKEN:
        return ml_err_set(err, ML_EINVALID, "the list was given up before");
    }
    ML_UNREACHABLE();
}

int ml_json_list_feed(struct ml_json_list *list, struct ml_str piece, struct ml_err *err)
{
    if (piece.len == 0)
        return 0;
    struct cursor at = {piece.ptr, piece.ptr, piece.ptr + piece.len};
    for (;;) {
        bool inside = list->state == LIST_IN_KEY || list->state == LIST_VALUE ||
                      list->state == LIST_IN_ITEM;
        if (!inside)
            at.p = ml_json_space_end(at.p, at.end);
        if (at.p == at.end)
            break;
        int r = list_step(list, &at, err);
        if (r != 0) {
            list->state = LIST_BROKEN;
            return r;
        }
    }
    list->fed += piece.len;
    return 0;
}

int ml_json_list_finish(struct ml_json_list *list, struct ml_str *out_envelope, struct ml_err *err)
{
    if (list->state == LIST_BROKEN)
        return ml_err_set(err, ML_EINVALID, "the list was given up before");
    if (list->state != LIST_OVER)
        return ml_err_set(err, ML_EINVALID, "the list ends after %zu bytes without being complete",
                          list->fed);
    if (ml_json_check(ml_buf_str(&list->envelope), 0, err) < 0)
        return ml_err_wrap(err, "the list without its items");
    *out_envelope = ml_buf_str(&list->envelope);
    return 0;
}

/* ---- lines ---- */

void ml_json_lines_init(struct ml_json_lines *lines, size_t line_max)
{
    ml_buf_init(&lines->pending, line_max);
    lines->taken = false;
}

void ml_json_lines_fini(struct ml_json_lines *lines)
{
    if (lines)
        ml_buf_fini(&lines->pending);
}

/* Appends `part` to what is pending. A line that is handed on straight from its piece obeys the
 * maximum, too. */
static int lines_gather(struct ml_json_lines *lines, struct ml_str part, bool keep,
                        struct ml_str *out_line, struct ml_err *err)
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

int ml_json_lines_next(struct ml_json_lines *lines, struct ml_str *piece, struct ml_str *out_line,
                       struct ml_err *err)
{
    struct ml_str line;
    while (piece->len > 0) {
        if (lines->taken)
            ml_buf_clear(&lines->pending);
        const char *newline = memchr(piece->ptr, '\n', piece->len);
        struct ml_str part = {piece->ptr, newline ? (size_t)(newline - piece->ptr) : piece->len};
        size_t used = part.len + (newline ? 1 : 0);
        *piece = (struct ml_str){piece->ptr + used, piece->len - used};
        lines->taken = newline;
        int r = lines_gather(lines, part, !newline, &line, err);
        if (r < 0)
            return r;
        if (newline && ml_str_trim(line).len > 0) {
            *out_line = line;
            return 1;
        }
    }
    return 0;
}
