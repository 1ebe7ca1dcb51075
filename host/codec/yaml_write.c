/* JSON as YAML in block style. Kubernetes' reader and those of YAML 1.2 take it for the same value:
 * a text that one of them would read as something else is quoted, and so are characters that they
 * refuse or change. */
#include <strings.h>

#include "base/escape.h"
#include "codec/json.h"
#include "codec/yaml.h"

#define KEY_MAX 500 /* bytes; readers take a longer one only after "? " */

struct printer {
    struct ml_json_reader reader;
    enum ml_yaml_style style;
    const struct ml_yaml_watch *watch; /* NULL: nobody */
    struct ml_buf *out;
    struct ml_err *err;
};

static void put_margin(struct ml_buf *out, int indent)
{
    while (indent-- > 0)
        ml_buf_putc(out, ' ');
}

/* ---- texts ---- */

static bool is_letter(char c)
{
    return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z');
}

/* The texts that begin with a letter and that Kubernetes' reader takes for something else. */
static bool is_reserved(struct ml_str text)
{
    static const char *const words[] = {"y",   "n",    "yes",   "no",  "on",
                                        "off", "true", "false", "null"};
    for (size_t i = 0; i < ML_COUNT(words); i++)
        if (text.len == strlen(words[i]) && strncasecmp(text.ptr, words[i], text.len) == 0)
            return true;
    return false;
}

/* May it stand without quotes? */
static bool is_plain(struct ml_str text, enum ml_yaml_style style)
{
    bool is_word = style == ML_YAML_WORDS;
    if (text.len == 0 || !(is_letter(text.ptr[0]) || (!is_word && memchr("_/", text.ptr[0], 2))))
        return false;
    for (size_t i = 0; i < text.len; i++) {
        char c = text.ptr[i], next = i + 1 < text.len ? text.ptr[i + 1] : ' ';
        if (!is_letter(c) && !(c >= '0' && c <= '9') && !memchr("-_./:@ ", c, is_word ? 4 : 7))
            return false;
        if (c == ':' && (next == ':' || next == ' '))
            return false;
    }
    return !ml_str_ends(text, " ") && !is_reserved(text);
}

/* Would a block, "|" with a line for each of its lines, be read as this text? `quoted`: the same as
 * a JSON string, which shows the characters that have to be escaped. */
static bool is_block(struct ml_str text, struct ml_str quoted)
{
    if (!memchr(text.ptr, '\n', text.len) || memchr(" \n", text.ptr[0], 2) ||
        ml_str_ends(text, "\n\n"))
        return false;
    for (size_t i = 0; i + 1 < quoted.len; i++)
        if (quoted.ptr[i] == '\\' && !memchr("n\"\\", quoted.ptr[++i], 3))
            return false;
    while (text.len > 0) {
        struct ml_str line = ml_str_cut(&text, '\n');
        if (line.len > 0 && ml_str_trim(line).len == 0)
            return false;
    }
    return true;
}

static void put_block(struct ml_buf *out, struct ml_str text, int indent)
{
    ml_buf_puts(out, ml_str_ends(text, "\n") ? "|" : "|-");
    while (text.len > 0) {
        struct ml_str line = ml_str_cut(&text, '\n');
        ml_buf_putc(out, '\n');
        put_margin(out, line.len > 0 ? indent : 0);
        ml_buf_append_str(out, line);
    }
}

/* `indent`: of the lines of a block; 0: there must be none. */
static void put_text(struct printer *self, struct ml_str text, int indent)
{
    struct ml_buf *out = self->out;
    size_t start = out->len;
    if (is_plain(text, self->style)) {
        ml_buf_append_str(out, text);
        return;
    }
    ml_escape_json(out, text);
    if (text.len > 0 && indent > 0 && self->style == ML_YAML_SENTENCES &&
        is_block(text, (struct ml_str){out->ptr + start, out->len - start})) {
        out->len = start;
        put_block(out, text, indent);
    }
}

static void put_key(struct printer *self, int indent)
{
    struct ml_buf *out = self->out;
    size_t start = out->len;
    put_text(self, self->reader.text, 0);
    size_t len = out->len - start;
    if (len > KEY_MAX && ml_buf_puts(out, "? ")) {
        memmove(out->ptr + start + 2, out->ptr + start, len);
        memcpy(out->ptr + start, "? ", 2);
        ml_buf_putc(out, '\n');
        put_margin(out, indent);
    }
    ml_buf_putc(out, ':');
}

/* ---- values ---- */

static int put_number(struct printer *self)
{
    const struct ml_json_reader *reader = &self->reader;
    double real = reader->real, min = (double)INT64_MIN;
    if (reader->token == ML_JSON_NUMBER && self->style == ML_YAML_SENTENCES)
        return ml_err_set(self->err, ML_EINVALID,
                          "readers of YAML do not hold the number " ML_STR_FMT,
                          ML_STR_ARG(reader->text));
    /* Readers turn one without a fraction into an integer, and so does this. */
    if (reader->token == ML_JSON_REAL && real >= min && real < -min &&
        (double)(int64_t)real == real)
        ml_buf_printf(self->out, "%lld", (long long)real);
    else
        ml_buf_append_str(self->out, reader->text);
    return 0;
}

static int put_scalar(struct printer *self, int indent)
{
    enum ml_json_token token = self->reader.token;
    if (token == ML_JSON_STRING)
        put_text(self, self->reader.text, indent);
    else if (token == ML_JSON_INT || token == ML_JSON_REAL || token == ML_JSON_NUMBER)
        return put_number(self);
    else if (token == ML_JSON_TRUE || token == ML_JSON_FALSE)
        ml_buf_puts(self->out, token == ML_JSON_TRUE ? "true" : "false");
    else if (token == ML_JSON_NULL)
        ml_buf_puts(self->out, "null");
    else
        return ml_json_error(&self->reader, self->err);
    return 0;
}

static int put_value(struct printer *self, int indent, bool after_key);

/* Of an object, whose first key is the current token, or of a list, whose first value it is. */
static int put_members(struct printer *self, int indent, bool is_list)
{
    for (;;) {
        if (is_list) {
            ml_buf_puts(self->out, "- ");
        } else {
            put_key(self, indent);
            ml_json_next(&self->reader);
        }
        int r = put_value(self, indent + 2, !is_list);
        if (r < 0)
            return r;
        enum ml_json_token token = ml_json_next(&self->reader);
        if (token == ML_JSON_OBJECT_END || token == ML_JSON_ARRAY_END)
            return 0;
        if (token == ML_JSON_ERROR)
            return ml_json_error(&self->reader, self->err);
        put_margin(self->out, indent);
    }
}

/* Writes the current value, to the end of its last line. `indent`: where the lines of its members
 * begin, or of a block. A list below a key is not indented further than the key. */
static int put_value(struct printer *self, int indent, bool after_key)
{
    struct ml_buf *out = self->out;
    bool is_list = self->reader.token == ML_JSON_ARRAY;
    if (self->watch && !self->watch->go_on(self->watch->context, 0))
        return ml_err_set(self->err, ML_ELIMIT, "the writing was ended");
    if (!is_list && self->reader.token != ML_JSON_OBJECT) {
        ml_buf_puts(out, after_key ? " " : "");
        int r = put_scalar(self, ML_MAX(indent, 2));
        ml_buf_putc(out, '\n');
        return out->failed ? ml_err_set(self->err, ML_ELIMIT, "as YAML it becomes too large") : r;
    }
    ml_json_next(&self->reader);
    if (self->reader.token == ML_JSON_OBJECT_END || self->reader.token == ML_JSON_ARRAY_END) {
        ml_buf_printf(out, "%s%s\n", after_key ? " " : "", is_list ? "[]" : "{}");
        return 0;
    }
    if (after_key) {
        indent -= is_list ? 2 : 0;
        ml_buf_putc(out, '\n');
        put_margin(out, indent);
    }
    return put_members(self, indent, is_list);
}

int ml_yaml_write(struct ml_str json, enum ml_yaml_style style, const struct ml_yaml_watch *watch,
                  struct ml_buf *out, struct ml_err *err)
{
    struct printer self = {.style = style, .watch = watch, .out = out, .err = err};
    ml_json_reader_init(&self.reader, json, 0);
    ml_json_next(&self.reader);
    int r = put_value(&self, 0, false);
    if (r == 0 && ml_json_next(&self.reader) != ML_JSON_END)
        r = ml_json_error(&self.reader, err);
    ml_json_reader_fini(&self.reader);
    return r;
}
