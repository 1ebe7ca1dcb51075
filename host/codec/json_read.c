/* The reader: one grammar, walked either token by token with every value decoded, or in passing
 * (ml_json_skip), where values are only checked. */
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

/* Are values decoded, or only checked? A constant wherever it is passed. */
enum read_mode { MODE_DECODE, MODE_CHECK };

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

/* Passes over the string whose opening quote is at p; returns what follows it, or NULL. */
static inline const char *read_string(struct ml_json_reader *reader, const char *p, const char *end,
                                      enum read_mode mode)
{
    bool escaped = false;
    const char *start = p + 1, *close = ml_json_plain_end(start, end);
    if (ML_UNLIKELY(close == end || *close != '"'))
        close = scan_string(reader, close, end, &escaped);
    if (ML_UNLIKELY(!close))
        return NULL;
    if (mode == MODE_CHECK)
        return close + 1;
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

static inline enum ml_json_token read_number(struct ml_json_reader *reader, const char *p,
                                             const char *end, enum read_mode mode)
{
    bool whole;
    const char *over = scan_number(reader, p, end, &whole);
    if (!over)
        return ML_JSON_ERROR;
    reader_end_value(reader, over);
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
        return reader_fail(reader, p, "not a value");
    reader_end_value(reader, p + literal.len);
    return token;
}

static inline enum ml_json_token read_value(struct ml_json_reader *reader, const char *p,
                                            const char *end, enum read_mode mode)
{
    if (p == end)
        return reader_fail(reader, p, "the text ends where a value should be");
    switch (*p) {
    case '"':
        p = read_string(reader, p, end, mode);
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
        return read_number(reader, p, end, mode);
    }
}

static inline enum ml_json_token read_key(struct ml_json_reader *reader, const char *p,
                                          const char *end, enum read_mode mode)
{
    if (p == end || *p != '"')
        return reader_fail(reader, p, "not a key");
    p = read_string(reader, p, end, mode);
    if (!p)
        return ML_JSON_ERROR;
    p = ml_json_space_end(p, end);
    if (p == end || *p != ':')
        return reader_fail(reader, p, "no ':' behind a key");
    reader->at = (size_t)(p + 1 - reader->json.ptr);
    reader->expect = EXPECT_VALUE;
    return ML_JSON_KEY;
}

static inline enum ml_json_token reader_step(struct ml_json_reader *reader, enum read_mode mode)
{
    const char *end = reader->json.ptr + reader->json.len;
    const char *p = ml_json_space_end(reader->json.ptr + reader->at, end);
    switch ((enum expect)reader->expect) {
    case EXPECT_VALUE:
        return read_value(reader, p, end, mode);
    case EXPECT_VALUE_OR_CLOSE:
        if (p < end && *p == ']')
            return reader_close_level(reader, p);
        return read_value(reader, p, end, mode);
    case EXPECT_KEY_OR_CLOSE:
        if (p < end && *p == '}')
            return reader_close_level(reader, p);
        return read_key(reader, p, end, mode);
    case EXPECT_MORE_OR_CLOSE:
        if (p == end)
            return reader_fail(reader, p, "the text ends inside an object or array");
        if (*p != ',')
            return reader_close_level(reader, p);
        p = ml_json_space_end(p + 1, end);
        return reader_inside_object(reader) ? read_key(reader, p, end, mode)
                                            : read_value(reader, p, end, mode);
    case EXPECT_END:
        return p == end ? ML_JSON_END : reader_fail(reader, p, "something behind the value");
    }
    ML_UNREACHABLE();
}

enum ml_json_token ml_json_next(struct ml_json_reader *reader)
{
    if (ML_LIKELY(reader->token != ML_JSON_ERROR))
        reader->token = reader_step(reader, MODE_DECODE);
    return reader->token;
}

/* Where the value that comes next begins. */
static const char *next_value_start(const struct ml_json_reader *reader)
{
    const char *end = reader->json.ptr + reader->json.len;
    const char *p = ml_json_space_end(reader->json.ptr + reader->at, end);
    if (reader->expect == EXPECT_MORE_OR_CLOSE && p < end && *p == ',')
        p = ml_json_space_end(p + 1, end);
    return p;
}

/* Past the object or array at `start`, in a step. */
static struct ml_str reader_skip_span(struct ml_json_reader *reader, const char *start)
{
    const struct ml_json_span *span = &reader->spans->items[reader->span];
    const char *end = reader->spans->text + span->end;
    reader->span = span->next;
    reader->token = *start == '{' ? ML_JSON_OBJECT : ML_JSON_ARRAY;
    reader_end_value(reader, end);
    return (struct ml_str){start, (size_t)(end - start)};
}

struct ml_str ml_json_skip(struct ml_json_reader *reader)
{
    const struct ml_str none = {NULL, 0};
    if (reader->token == ML_JSON_ERROR)
        return none;
    const char *start = next_value_start(reader);
    if (reader->spans && start < reader->json.ptr + reader->json.len &&
        (*start == '{' || *start == '['))
        return reader_skip_span(reader, start);
    size_t depth = reader->depth;
    reader->token = reader_step(reader, MODE_CHECK);
    if (reader->token <= ML_JSON_ERROR || reader->token == ML_JSON_KEY || reader->depth < depth)
        return none;
    while (reader->depth > depth) {
        if (reader_step(reader, MODE_CHECK) == ML_JSON_ERROR) {
            reader->token = ML_JSON_ERROR;
            return none;
        }
    }
    return (struct ml_str){start, (size_t)(reader->json.ptr + reader->at - start)};
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
