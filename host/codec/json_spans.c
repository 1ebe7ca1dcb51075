#include "codec/json_spans.h"

#include "codec/json_scan.h"

void ml_json_spans_fini(struct ml_json_spans *spans)
{
    if (!spans)
        return;
    free(spans->items);
    *spans = (struct ml_json_spans){NULL};
}

static void open_span(struct ml_json_spans *spans)
{
    if (spans->len == spans->capacity) {
        spans->capacity = spans->capacity ? spans->capacity * 2 : 64;
        spans->items = ml_realloc(spans->items, spans->capacity * sizeof spans->items[0]);
    }
    spans->len++;
}

/* Behind the string whose first byte is at p. */
static const char *string_end(const char *p, const char *end)
{
    for (;;) {
        p = ml_json_quote_end(p, end);
        if (p >= end || *p == '"')
            return p + 1;
        p += 2;
    }
}

void ml_json_spans_read(struct ml_json_spans *spans, struct ml_str json)
{
    ml_assert(json.len <= UINT32_MAX);
    size_t open[ML_JSON_DEPTH_MAX], depth = 0;
    const char *end = json.ptr + json.len, *p = json.ptr;
    spans->text = json.ptr;
    while ((p = ml_json_structure_end(p, end, false)) < end) {
        if (*p == '"') {
            p = string_end(p + 1, end);
            continue;
        }
        if (*p == '{' || *p == '[') {
            ml_assert(depth < ML_JSON_DEPTH_MAX);
            open[depth++] = spans->len;
            open_span(spans);
        } else {
            ml_assert(depth > 0);
            struct ml_json_span *span = &spans->items[open[--depth]];
            span->end = (uint32_t)(p + 1 - json.ptr);
            span->next = (uint32_t)spans->len;
        }
        p++;
    }
    ml_assert(depth == 0);
}

void ml_json_reader_use(struct ml_json_reader *reader, const struct ml_json_spans *spans,
                        size_t span)
{
    reader->spans = spans;
    reader->span = span + 1; /* its own bracket is read */
}
