/* The reader: one grammar, walked either token by token with every value decoded, or in passing
 * (ml_json_skip), where whole values are only checked, in a loop of their own. */
#include "codec/json.h"

#include "codec/json_members.h"
#include "codec/json_scan.h"

#include <math.h>

/* The tokens that may come next. */
enum expect {
    EXPECT_VALUE,          /* at the start, behind a colon, behind a comma in an array */
    EXPECT_VALUE_OR_CLOSE, /* behind [ */
    EXPECT_KEY_OR_CLOSE,   /* behind { */
    EXPECT_MORE_OR_CLOSE,  /* behind a value in an object or array: a comma or its end */
    EXPECT_END,            /* behind the outermost value */
};

#define LEVELS_SMALL (sizeof((struct ml_json_reader *)0)->in_object_small * 8)
#define NUMBER_SMALL 64 /* bytes; a longer number is copied to the heap */

#define NO_VALUE "the text ends where a value should be"
#define NO_KEY   "not a key"
#define NO_CLOSE "the text ends inside an object or array"

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
    if (!reader || (!reader->in_object && !reader->unescaped.ptr))
        return;
    free(reader->in_object);
    reader->in_object = NULL;
    ml_buf_fini(&reader->unescaped);
}

static enum ml_json_token reader_fail(struct ml_json_reader *reader, const char *at,
                                      const char *problem)
{
    reader->at = (size_t)(at - reader->json.ptr);
    reader->problem = problem;
    return ML_JSON_ERROR;
}

static const char *scan_fail(struct ml_json_reader *reader, const char *at, const char *problem)
{
    reader_fail(reader, at, problem);
    return NULL;
}

/* ---- strings and numbers: inner loops that never read at or behind `end` ---- */

static int hex_value(char c)
{
    if (c >= '0' && c <= '9')
        return c - '0';
    c |= 0x20;
    return c >= 'a' && c <= 'f' ? c - 'a' + 10 : -1;
}

/* The code unit of the \uXXXX at p, or -1. */
static int code_unit(const char *p, const char *end)
{
    if (end - p < 6 || p[0] != '\\' || p[1] != 'u')
        return -1;
    int unit = 0;
    for (int i = 2; i < 6; i++) {
        int digit = hex_value(p[i]);
        if (digit < 0)
            return -1;
        unit = unit << 4 | digit;
    }
    return unit;
}

static bool is_high_surrogate(int unit)
{
    return unit >= 0xD800 && unit <= 0xDBFF;
}

static bool is_low_surrogate(int unit)
{
    return unit >= 0xDC00 && unit <= 0xDFFF;
}

/* The character that an escape other than \u stands for, or 0. */
static char simple_escape(char c)
{
    switch (c) {
    case 'b':
        return '\b';
    case 'f':
        return '\f';
    case 'n':
        return '\n';
    case 'r':
        return '\r';
    case 't':
        return '\t';
    case '"':
    case '\\':
    case '/':
        return c;
    default:
        return 0;
    }
}

/* The bytes of the escape at p, a surrogate pair counting as one, or 0. */
static size_t escape_length(struct ml_json_reader *reader, const char *p, const char *end)
{
    if (end - p >= 2 && simple_escape(p[1]))
        return 2;
    int unit = code_unit(p, end);
    if (unit < 0) {
        scan_fail(reader, p, "not an escape");
        return 0;
    }
    if (is_high_surrogate(unit) && is_low_surrogate(code_unit(p + 6, end)))
        return 12;
    if (is_high_surrogate(unit) || is_low_surrogate(unit)) {
        scan_fail(reader, p, "half a surrogate pair");
        return 0;
    }
    return 6;
}

/* From behind the opening quote to the closing one, escapes and UTF-8 checked; NULL, with the
 * problem noted, when it is no string. Sets *escaped when there is a backslash. */
static const char *scan_string(struct ml_json_reader *reader, const char *p, const char *end,
                               bool *escaped)
{
    for (;;) {
        p = ml_json_plain_end(p, end);
        if (p == end)
            return scan_fail(reader, p, "string without an end");
        if (*p == '"')
            return p;
        size_t len;
        if (*p == '\\') {
            len = escape_length(reader, p, end);
            if (len == 0)
                return NULL;
            *escaped = true;
        } else {
            if ((unsigned char)*p < ' ')
                return scan_fail(reader, p, "raw control character in a string");
            len = ml_utf8_len(p, (size_t)(end - p));
            if (len == 0)
                return scan_fail(reader, p, "not UTF-8");
        }
        p += len;
    }
}

static char *write_utf8(char *out, unsigned code)
{
    if (code < 0x80) {
        *out++ = (char)code;
    } else if (code < 0x800) {
        *out++ = (char)(0xC0 | code >> 6);
        *out++ = (char)(0x80 | (code & 0x3F));
    } else if (code < 0x10000) {
        *out++ = (char)(0xE0 | code >> 12);
        *out++ = (char)(0x80 | (code >> 6 & 0x3F));
        *out++ = (char)(0x80 | (code & 0x3F));
    } else {
        *out++ = (char)(0xF0 | code >> 18);
        *out++ = (char)(0x80 | (code >> 12 & 0x3F));
        *out++ = (char)(0x80 | (code >> 6 & 0x3F));
        *out++ = (char)(0x80 | (code & 0x3F));
    }
    return out;
}

/* Writes what stands between the quotes of a string that scan_string has passed to `out`, which has
 * room for as many bytes. Returns the end of what it wrote. */
static char *unescape_string(const char *p, const char *end, char *out)
{
    while (p < end) {
        const char *run = memchr(p, '\\', (size_t)(end - p));
        size_t len = (size_t)((run ? run : end) - p);
        memcpy(out, p, len);
        out += len;
        p += len;
        if (!run)
            break;
        if (p[1] != 'u') {
            *out++ = simple_escape(p[1]);
            p += 2;
            continue;
        }
        unsigned code = (unsigned)code_unit(p, end);
        p += 6;
        if (is_high_surrogate((int)code)) {
            unsigned low = (unsigned)code_unit(p, end);
            code = 0x10000 + ((code - 0xD800) << 10) + (low - 0xDC00);
            p += 6;
        }
        out = write_utf8(out, code);
    }
    return out;
}

static const char *digits_end(const char *p, const char *end)
{
    while (p < end && (unsigned char)(*p - '0') <= 9)
        p++;
    return p;
}

/* The end of the number at p, or NULL. *whole: it has neither a fraction nor an exponent. */
static const char *scan_number(struct ml_json_reader *reader, const char *p, const char *end,
                               bool *whole)
{
    const char *start = p;
    p += *p == '-';
    const char *digits = p;
    p = digits_end(p, end);
    if (p == digits)
        return scan_fail(reader, p, p == start ? "not a value" : "not a number");
    if (*digits == '0' && p - digits > 1)
        return scan_fail(reader, digits, "number with a leading zero");
    *whole = true;
    if (p < end && *p == '.') {
        *whole = false;
        digits = ++p;
        p = digits_end(p, end);
        if (p == digits)
            return scan_fail(reader, p, "number without digits behind the point");
    }
    if (p < end && (*p | 0x20) == 'e') {
        *whole = false;
        p++;
        if (p < end && (*p == '+' || *p == '-'))
            p++;
        digits = p;
        p = digits_end(p, end);
        if (p == digits)
            return scan_fail(reader, p, "number without digits in the exponent");
    }
    return p;
}

/* ---- nesting ---- */

/* The table of levels, in the reader itself until it is outgrown; NULL means that one, so
 * that a reader may be moved. */
static inline uint64_t *reader_levels(struct ml_json_reader *reader)
{
    return reader->in_object ? reader->in_object : reader->in_object_small;
}

static void reader_grow_levels(struct ml_json_reader *reader)
{
    size_t bytes = reader->depth / 8;
    uint64_t *grown = ml_alloc(bytes * 2);
    memcpy(grown, reader_levels(reader), bytes);
    free(reader->in_object);
    reader->in_object = grown;
}

static inline bool reader_inside_object(struct ml_json_reader *reader)
{
    size_t level = reader->depth - 1;
    return reader_levels(reader)[level / 64] >> (level % 64) & 1;
}

static inline enum ml_json_token reader_open_level(struct ml_json_reader *reader, const char *p,
                                                   bool object)
{
    size_t level = reader->depth;
    if (level == reader->depth_max)
        return reader_fail(reader, p, "nested too deep");
    /* The table doubles, so it is full exactly at the powers of two from its first size on. */
    if (ML_UNLIKELY(level >= LEVELS_SMALL && (level & (level - 1)) == 0))
        reader_grow_levels(reader);
    uint64_t bit = UINT64_C(1) << (level % 64), *word = &reader_levels(reader)[level / 64];
    *word = object ? *word | bit : *word & ~bit;
    reader->depth++;
    reader->span++;
    reader->at = (size_t)(p + 1 - reader->json.ptr);
    reader->expect = object ? EXPECT_KEY_OR_CLOSE : EXPECT_VALUE_OR_CLOSE;
    return object ? ML_JSON_OBJECT : ML_JSON_ARRAY;
}

/* A value ends before p. */
static inline void reader_end_value(struct ml_json_reader *reader, const char *p)
{
    reader->at = (size_t)(p - reader->json.ptr);
    reader->expect = reader->depth ? EXPECT_MORE_OR_CLOSE : EXPECT_END;
}

static inline enum ml_json_token reader_close_level(struct ml_json_reader *reader, const char *p)
{
    bool object = reader_inside_object(reader);
    if (*p != (object ? '}' : ']'))
        return reader_fail(reader, p, object ? "neither ',' nor '}'" : "neither ',' nor ']'");
    reader->depth--;
    reader_end_value(reader, p + 1);
    return object ? ML_JSON_OBJECT_END : ML_JSON_ARRAY_END;
}

/* ---- values ---- */

/* The closing quote of the string whose opening one is at p, or NULL. Sets *escaped when there is a
 * backslash. */
static inline const char *string_close(struct ml_json_reader *reader, const char *p,
                                       const char *end, bool *escaped)
{
    const char *close = ml_json_plain_end(p + 1, end);
    if (ML_UNLIKELY(close == end || *close != '"'))
        close = scan_string(reader, close, end, escaped);
    return close;
}

static inline const char *scan_literal(struct ml_json_reader *reader, const char *p,
                                       const char *end, struct ml_str literal)
{
    if ((size_t)(end - p) < literal.len || memcmp(p, literal.ptr, literal.len) != 0)
        return scan_fail(reader, p, "not a value");
    return p + literal.len;
}

/* From behind a key to behind its colon. */
static inline const char *scan_colon(struct ml_json_reader *reader, const char *p, const char *end)
{
    p = ml_json_space_end(p, end);
    if (p == end || *p != ':')
        return scan_fail(reader, p, "no ':' behind a key");
    return p + 1;
}

/* ---- token by token ---- */

/* Passes over the string whose opening quote is at p; returns what follows it, or NULL. */
static inline const char *read_string(struct ml_json_reader *reader, const char *p, const char *end)
{
    bool escaped = false;
    const char *start = p + 1, *close = string_close(reader, p, end, &escaped);
    if (ML_UNLIKELY(!close))
        return NULL;
    reader->text = (struct ml_str){start, (size_t)(close - start)};
    if (ML_UNLIKELY(escaped)) {
        ml_buf_clear(&reader->unescaped);
        char *room = ml_buf_reserve(&reader->unescaped, reader->text.len);
        ml_assert(room); /* the buffer may become as large as the whole text */
        reader->unescaped.len = (size_t)(unescape_string(start, close, room) - room);
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

static enum ml_json_token read_number(struct ml_json_reader *reader, const char *p, const char *end)
{
    bool whole;
    const char *over = scan_number(reader, p, end, &whole);
    if (!over)
        return ML_JSON_ERROR;
    reader_end_value(reader, over);
    reader->text = (struct ml_str){p, (size_t)(over - p)};
    if (!whole)
        return decode_real(reader);
    return ml_str_to_i64(reader->text, &reader->integer) ? ML_JSON_INT : ML_JSON_NUMBER;
}

static enum ml_json_token read_literal(struct ml_json_reader *reader, const char *p,
                                       const char *end, struct ml_str literal,
                                       enum ml_json_token token)
{
    p = scan_literal(reader, p, end, literal);
    if (!p)
        return ML_JSON_ERROR;
    reader_end_value(reader, p);
    return token;
}

static enum ml_json_token read_value(struct ml_json_reader *reader, const char *p, const char *end)
{
    if (p == end)
        return reader_fail(reader, p, NO_VALUE);
    switch (*p) {
    case '"':
        p = read_string(reader, p, end);
        if (!p)
            return ML_JSON_ERROR;
        reader_end_value(reader, p);
        return ML_JSON_STRING;
    case '{':
        return reader_open_level(reader, p, true);
    case '[':
        return reader_open_level(reader, p, false);
    case 't':
        return read_literal(reader, p, end, ML_STR("true"), ML_JSON_TRUE);
    case 'f':
        return read_literal(reader, p, end, ML_STR("false"), ML_JSON_FALSE);
    case 'n':
        return read_literal(reader, p, end, ML_STR("null"), ML_JSON_NULL);
    default:
        return read_number(reader, p, end);
    }
}

static inline enum ml_json_token read_key(struct ml_json_reader *reader, const char *p,
                                          const char *end)
{
    if (p == end || *p != '"')
        return reader_fail(reader, p, NO_KEY);
    p = read_string(reader, p, end);
    p = p ? scan_colon(reader, p, end) : NULL;
    if (!p)
        return ML_JSON_ERROR;
    reader->at = (size_t)(p - reader->json.ptr);
    reader->expect = EXPECT_VALUE;
    return ML_JSON_KEY;
}

static inline enum ml_json_token reader_step(struct ml_json_reader *reader)
{
    const char *end = reader->json.ptr + reader->json.len;
    const char *p = ml_json_space_end(reader->json.ptr + reader->at, end);
    switch ((enum expect)reader->expect) {
    case EXPECT_VALUE:
        return read_value(reader, p, end);
    case EXPECT_VALUE_OR_CLOSE:
        if (p < end && *p == ']')
            return reader_close_level(reader, p);
        return read_value(reader, p, end);
    case EXPECT_KEY_OR_CLOSE:
        if (p < end && *p == '}')
            return reader_close_level(reader, p);
        return read_key(reader, p, end);
    case EXPECT_MORE_OR_CLOSE:
        if (p == end)
            return reader_fail(reader, p, NO_CLOSE);
        if (*p != ',')
            return reader_close_level(reader, p);
        p = ml_json_space_end(p + 1, end);
        return reader_inside_object(reader) ? read_key(reader, p, end) : read_value(reader, p, end);
    case EXPECT_END:
        return p == end ? ML_JSON_END : reader_fail(reader, p, "something behind the value");
    }
    ML_UNREACHABLE();
}

enum ml_json_token ml_json_next(struct ml_json_reader *reader)
{
    if (ML_LIKELY(reader->token != ML_JSON_ERROR))
        reader->token = reader_step(reader);
    return reader->token;
}

/* ---- in passing ---- */

/* The end of the string, number or literal at p, or NULL. */
static inline const char *pass_scalar(struct ml_json_reader *reader, const char *p, const char *end)
{
    bool ignored;
    switch (*p) {
    case '"':
        p = string_close(reader, p, end, &ignored);
        return p ? p + 1 : NULL;
    case 't':
        return scan_literal(reader, p, end, ML_STR("true"));
    case 'f':
        return scan_literal(reader, p, end, ML_STR("false"));
    case 'n':
        return scan_literal(reader, p, end, ML_STR("null"));
    default:
        return scan_number(reader, p, end, &ignored);
    }
}

/* From a key to its value, or NULL. */
static inline const char *pass_key(struct ml_json_reader *reader, const char *p, const char *end)
{
    bool ignored;
    if (p == end || *p != '"')
        return scan_fail(reader, p, NO_KEY);
    p = string_close(reader, p, end, &ignored);
    p = p ? scan_colon(reader, p + 1, end) : NULL;
    return p ? ml_json_space_end(p, end) : NULL;
}

/* The end of the value at p, or NULL. */
static const char *pass_value(struct ml_json_reader *reader, const char *p, const char *end)
{
    const size_t depth = reader->depth;
    bool in_object = false; /* the innermost level that the value has opened */
    for (;;) {
        if (p == end)
            return scan_fail(reader, p, NO_VALUE);
        bool opens = *p == '{' || *p == '[';
        if (opens) {
            in_object = *p == '{';
            if (reader_open_level(reader, p, in_object) == ML_JSON_ERROR)
                return NULL;
            p = ml_json_space_end(p + 1, end);
            opens = p == end || *p != (in_object ? '}' : ']'); /* not an empty one */
        } else {
            p = pass_scalar(reader, p, end);
            if (!p)
                return NULL;
        }
        while (!opens) { /* a value has ended before p */
            if (reader->depth == depth)
                return p;
            p = ml_json_space_end(p, end);
            if (p == end)
                return scan_fail(reader, p, NO_CLOSE);
            if (*p == ',')
                break;
            if (reader_close_level(reader, p) == ML_JSON_ERROR)
                return NULL;
            in_object = reader->depth > depth && reader_inside_object(reader);
            p++;
        }
        if (!opens)
            p = ml_json_space_end(p + 1, end);
        if (in_object)
            p = pass_key(reader, p, end);
        if (!p)
            return NULL;
    }
}

/* Where the value that comes next begins; NULL: none does. */
static inline const char *next_value_start(struct ml_json_reader *reader, const char *end)
{
    const char *p = ml_json_space_end(reader->json.ptr + reader->at, end);
    switch ((enum expect)reader->expect) {
    case EXPECT_VALUE:
        return p;
    case EXPECT_VALUE_OR_CLOSE:
        return p < end && *p == ']' ? NULL : p;
    case EXPECT_MORE_OR_CLOSE:
        if (p == end || *p != ',' || reader_inside_object(reader))
            return NULL;
        return ml_json_space_end(p + 1, end);
    case EXPECT_KEY_OR_CLOSE:
    case EXPECT_END:
        return NULL;
    }
    ML_UNREACHABLE();
}

static enum ml_json_token token_of_start(char c)
{
    switch (c) {
    case '"':
        return ML_JSON_STRING;
    case '{':
        return ML_JSON_OBJECT;
    case '[':
        return ML_JSON_ARRAY;
    case 't':
        return ML_JSON_TRUE;
    case 'f':
        return ML_JSON_FALSE;
    case 'n':
        return ML_JSON_NULL;
    default:
        return ML_JSON_NUMBER;
    }
}

/* The end of the object or array that comes next, whose span is known. */
static const char *pass_span(struct ml_json_reader *reader)
{
    const struct ml_json_span *span = &reader->spans->items[reader->span];
    reader->span = span->next;
    return reader->spans->text + span->end;
}

struct ml_str ml_json_skip(struct ml_json_reader *reader)
{
    const struct ml_str none = {NULL, 0};
    if (reader->token == ML_JSON_ERROR)
        return none;
    const char *end = reader->json.ptr + reader->json.len;
    const char *start = next_value_start(reader, end);
    if (!start) {
        ml_json_next(reader);
        return none;
    }
    bool is_span = reader->spans && start < end && (*start == '{' || *start == '[');
    const char *over = is_span ? pass_span(reader) : pass_value(reader, start, end);
    if (!over) {
        reader->token = ML_JSON_ERROR;
        return none;
    }
    reader->token = token_of_start(*start);
    reader_end_value(reader, over);
    return (struct ml_str){start, (size_t)(over - start)};
}

struct ml_str ml_json_opened(const struct ml_json_reader *reader, size_t *out_span)
{
    const char *start = reader->json.ptr + reader->at - 1;
    *out_span = reader->span - 1;
    const char *end = reader->spans->text + reader->spans->items[*out_span].end;
    return (struct ml_str){start, (size_t)(end - start)};
}

void ml_json_leave(struct ml_json_reader *reader)
{
    const struct ml_json_span *span = &reader->spans->items[reader->span - 1];
    reader->span = span->next;
    reader->depth--;
    reader_end_value(reader, reader->spans->text + span->end);
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
