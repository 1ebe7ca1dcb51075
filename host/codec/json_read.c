/* The reader: one grammar, walked either token by token with every value decoded, or in
 * passing (ml_json_skip), where values are only checked. */
#include "codec/json.h"

#include "codec/json_scan.h"
#include "codec/json_spans.h"

#include <math.h>

/* What may come next. */
enum expect {
    EXPECT_VALUE,          /* at the start, behind a colon, behind a comma in an array */
    EXPECT_VALUE_OR_CLOSE, /* behind [ */
    EXPECT_KEY_OR_CLOSE,   /* behind { */
    EXPECT_MORE_OR_CLOSE,  /* behind a value in an object or array: a comma or its end */
    EXPECT_END,            /* behind the outermost value */
};

/* Does the walk decode what it meets? A constant wherever it is passed. */
enum mode { MODE_DECODE, MODE_CHECK };

#define LEVELS_SMALL (sizeof((struct ml_json_reader *)0)->in_object_small * 8)
#define NUMBER_SMALL 64 /* bytes; a longer number is copied to the heap */

void ml_json_reader_init(struct ml_json_reader *reader, struct ml_str json, size_t depth_max)
{
    /* Not one assignment: it would clear the small table each time for nothing. */
    reader->token = ML_JSON_NULL;
    reader->text = (struct ml_str){NULL, 0};
    reader->integer = 0;
    reader->real = 0;
    reader->depth = 0;
    reader->json = json.len ? json : ML_STR("");
    reader->at = 0;
    reader->depth_max = depth_max ? depth_max : ML_JSON_DEPTH_MAX;
    reader->expect = EXPECT_VALUE;
    reader->in_object = NULL;
    ml_buf_init(&reader->unescaped, json.len);
    reader->problem = NULL;
    reader->spans = NULL;
    reader->span = 0;
}

void ml_json_reader_fini(struct ml_json_reader *reader)
{
    if (!reader)
        return;
    free(reader->in_object);
    reader->in_object = NULL;
    ml_buf_fini(&reader->unescaped);
}

static enum ml_json_token fail(struct ml_json_reader *reader, const char *at, const char *problem)
{
    reader->at = (size_t)(at - reader->json.ptr);
    reader->problem = problem;
    return ML_JSON_ERROR;
}

/* The table of levels, in the reader itself until it is outgrown; NULL means that one, so
 * that a reader may be moved. */
static inline uint64_t *levels(struct ml_json_reader *reader)
{
    return reader->in_object ? reader->in_object : reader->in_object_small;
}

static void grow_levels(struct ml_json_reader *reader)
{
    size_t bytes = reader->depth / 8;
    uint64_t *grown = ml_alloc(bytes * 2);
    memcpy(grown, levels(reader), bytes);
    free(reader->in_object);
    reader->in_object = grown;
}

static inline bool inside_object(struct ml_json_reader *reader)
{
    size_t level = reader->depth - 1;
    return levels(reader)[level / 64] >> (level % 64) & 1;
}

static inline enum ml_json_token open_level(struct ml_json_reader *reader, const char *p,
                                            bool object)
{
    size_t level = reader->depth;
    if (level == reader->depth_max)
        return fail(reader, p, "nested too deep");
    /* The table doubles, so it is full exactly at the powers of two from its first size on. */
    if (ML_UNLIKELY(level >= LEVELS_SMALL && (level & (level - 1)) == 0))
        grow_levels(reader);
    uint64_t bit = UINT64_C(1) << (level % 64), *word = &levels(reader)[level / 64];
    *word = object ? *word | bit : *word & ~bit;
    reader->depth++;
    reader->at = (size_t)(p + 1 - reader->json.ptr);
    reader->expect = object ? EXPECT_KEY_OR_CLOSE : EXPECT_VALUE_OR_CLOSE;
    return object ? ML_JSON_OBJECT : ML_JSON_ARRAY;
}

/* A value ends before p. */
static inline void value_over(struct ml_json_reader *reader, const char *p)
{
    reader->at = (size_t)(p - reader->json.ptr);
    reader->expect = reader->depth ? EXPECT_MORE_OR_CLOSE : EXPECT_END;
}

static inline enum ml_json_token close_level(struct ml_json_reader *reader, const char *p)
{
    bool object = inside_object(reader);
    if (*p != (object ? '}' : ']'))
        return fail(reader, p, object ? "neither ',' nor '}'" : "neither ',' nor ']'");
    reader->depth--;
    value_over(reader, p + 1);
    return object ? ML_JSON_OBJECT_END : ML_JSON_ARRAY_END;
}

/* Passes over the string whose opening quote is at p; returns what follows it, or NULL. */
static inline const char *pass_string(struct ml_json_reader *reader, const char *p, const char *end,
                                      enum mode mode)
{
    bool escaped = false;
    struct ml_json_fault fault;
    const char *start = p + 1, *close = ml_json_plain_end(start, end);
    if (ML_UNLIKELY(close == end || *close != '"'))
        close = ml_json_scan_string(close, end, &escaped, &fault);
    if (ML_UNLIKELY(!close)) {
        fail(reader, fault.at, fault.problem);
        return NULL;
    }
    if (mode == MODE_CHECK)
        return close + 1;
    reader->text = (struct ml_str){start, (size_t)(close - start)};
    if (ML_UNLIKELY(escaped)) {
        ml_buf_clear(&reader->unescaped);
        char *room = ml_buf_reserve(&reader->unescaped, reader->text.len);
        ml_assert(room); /* the buffer may become as large as the whole text */
        reader->unescaped.len = (size_t)(ml_json_unescape(start, close, room) - room);
        reader->text = ml_buf_str(&reader->unescaped);
    }
    return close + 1;
}

static enum ml_json_token decode_real(struct ml_json_reader *reader)
{
    struct ml_str text = reader->text;
    char small[NUMBER_SMALL];
    ML_AUTO_FREE char *large = text.len < sizeof small ? NULL : ml_str_dup(text);
    if (!large) {
        memcpy(small, text.ptr, text.len);
        small[text.len] = '\0';
    }
    double value = strtod(large ? large : small, NULL);
    if (!isfinite(value))
        return ML_JSON_NUMBER;
    reader->real = value;
    return ML_JSON_REAL;
}

static inline enum ml_json_token read_number(struct ml_json_reader *reader, const char *p,
                                             const char *end, enum mode mode)
{
    bool whole;
    struct ml_json_fault fault;
    const char *over = ml_json_scan_number(p, end, &whole, &fault);
    if (!over)
        return fail(reader, fault.at, fault.problem);
    value_over(reader, over);
    if (mode == MODE_CHECK)
        return ML_JSON_NUMBER;
    reader->text = (struct ml_str){p, (size_t)(over - p)};
    if (!whole)
        return decode_real(reader);
    return ml_str_to_i64(reader->text, &reader->integer) ? ML_JSON_INT : ML_JSON_NUMBER;
}

static inline enum ml_json_token read_literal(struct ml_json_reader *reader, const char *p,
                                              const char *end, struct ml_str literal,
                                              enum ml_json_token token)
{
    if ((size_t)(end - p) < literal.len || memcmp(p, literal.ptr, literal.len) != 0)
        return fail(reader, p, "not a value");
    value_over(reader, p + literal.len);
    return token;
}

static inline enum ml_json_token read_value(struct ml_json_reader *reader, const char *p,
                                            const char *end, enum mode mode)
{
    if (p == end)
        return fail(reader, p, "the text ends where a value should be");
    switch (*p) {
    case '"':
        p = pass_string(reader, p, end, mode);
        if (!p)
            return ML_JSON_ERROR;
        value_over(reader, p);
        return ML_JSON_STRING;
    case '{':
        return open_level(reader, p, true);
    case '[':
        return open_level(reader, p, false);
    case 't':
        return read_literal(reader, p, end, ML_STR("true"), ML_JSON_TRUE);
    case 'f':
        return read_literal(reader, p, end, ML_STR("false"), ML_JSON_FALSE);
    case 'n':
        return read_literal(reader, p, end, ML_STR("null"), ML_JSON_NULL);
    default:
        return read_number(reader, p, end, mode);
    }
}

static inline enum ml_json_token read_key(struct ml_json_reader *reader, const char *p,
                                          const char *end, enum mode mode)
{
    if (p == end || *p != '"')
        return fail(reader, p, "not a key");
    p = pass_string(reader, p, end, mode);
    if (!p)
        return ML_JSON_ERROR;
    p = ml_json_space_end(p, end);
    if (p == end || *p != ':')
        return fail(reader, p, "no ':' behind a key");
    reader->at = (size_t)(p + 1 - reader->json.ptr);
    reader->expect = EXPECT_VALUE;
    return ML_JSON_KEY;
}

static inline enum ml_json_token step(struct ml_json_reader *reader, enum mode mode)
{
    const char *end = reader->json.ptr + reader->json.len;
    const char *p = ml_json_space_end(reader->json.ptr + reader->at, end);
    switch ((enum expect)reader->expect) {
    case EXPECT_VALUE:
        return read_value(reader, p, end, mode);
    case EXPECT_VALUE_OR_CLOSE:
        if (p < end && *p == ']')
            return close_level(reader, p);
        return read_value(reader, p, end, mode);
    case EXPECT_KEY_OR_CLOSE:
        if (p < end && *p == '}')
            return close_level(reader, p);
        return read_key(reader, p, end, mode);
    case EXPECT_MORE_OR_CLOSE:
        if (p == end)
            return fail(reader, p, "the text ends inside an object or array");
        if (*p != ',')
            return close_level(reader, p);
        p = ml_json_space_end(p + 1, end);
        return inside_object(reader) ? read_key(reader, p, end, mode)
                                     : read_value(reader, p, end, mode);
    case EXPECT_END:
        return p == end ? ML_JSON_END : fail(reader, p, "something behind the value");
    }
    ML_UNREACHABLE();
}

enum ml_json_token ml_json_next(struct ml_json_reader *reader)
{
    if (ML_LIKELY(reader->token != ML_JSON_ERROR))
        reader->token = step(reader, MODE_DECODE);
    return reader->token;
}

/* Where the value that comes next begins. */
static const char *value_start(const struct ml_json_reader *reader)
{
    const char *end = reader->json.ptr + reader->json.len;
    const char *p = ml_json_space_end(reader->json.ptr + reader->at, end);
    if (reader->expect == EXPECT_MORE_OR_CLOSE && p < end && *p == ',')
        p = ml_json_space_end(p + 1, end);
    return p;
}

/* Past the object or array at `start`, in a step. */
static struct ml_str skip_span(struct ml_json_reader *reader, const char *start)
{
    const struct ml_json_span *span = &reader->spans->items[reader->span];
    const char *end = reader->spans->text + span->end;
    reader->span = span->next;
    reader->token = *start == '{' ? ML_JSON_OBJECT : ML_JSON_ARRAY;
    value_over(reader, end);
    return (struct ml_str){start, (size_t)(end - start)};
}

struct ml_str ml_json_skip(struct ml_json_reader *reader)
{
    const struct ml_str none = {NULL, 0};
    if (reader->token == ML_JSON_ERROR)
        return none;
    const char *start = value_start(reader);
    if (reader->spans && start < reader->json.ptr + reader->json.len &&
        (*start == '{' || *start == '['))
        return skip_span(reader, start);
    size_t depth = reader->depth;
    reader->token = step(reader, MODE_CHECK);
    if (reader->token <= ML_JSON_ERROR || reader->token == ML_JSON_KEY || reader->depth < depth)
        return none;
    while (reader->depth > depth) {
        if (step(reader, MODE_CHECK) == ML_JSON_ERROR) {
            reader->token = ML_JSON_ERROR;
            return none;
        }
    }
    return (struct ml_str){start, (size_t)(reader->json.ptr + reader->at - start)};
}

int ml_json_error(const struct ml_json_reader *reader, struct ml_err *err)
{
    return ml_err_set(err, ML_EINVALID, "at byte %zu: %s", reader->at,
                      reader->problem ? reader->problem : "not what was expected");
}

int ml_json_check(struct ml_str json, size_t depth_max, struct ml_err *err)
{
    ML_AUTO(ml_json_reader_fini) struct ml_json_reader reader;
    ml_json_reader_init(&reader, json, depth_max);
    ml_json_skip(&reader);
    return ml_json_next(&reader) == ML_JSON_END ? 0 : ml_json_error(&reader, err);
}
