/* libyaml's events, written as JSON while they come. What an anchor names is remembered as
 * its place in the output, and an alias copies it from there: no tree is built. Called for
 * kubeconfigs, manifests, and by the embedded API server. */
#include "codec/yaml.h"

#include "base/escape.h"
#include "base/map.h"
#include "codec/json.h"

#include <yaml.h>

/* Of one document. */
#define ANCHORS_MAX ((size_t)10000)
/* What aliases may add, beyond the length of the text itself. Honest documents stay far below; a
 * few aliases that each double the one before would fill any memory. */
#define ALIASED_BYTES_MAX ((size_t)1024 * 1024)

struct anchor {
    char *name;
    size_t start, end; /* its JSON in the output */
    bool open;         /* its node is not over yet */
};

/* One conversion. */
struct yaml {
    yaml_parser_t parser;
    yaml_event_t event; /* the current one; freed by the next */
    struct ml_buf *out;
    size_t out_max;     /* of out->len */
    size_t aliased_max; /* bytes that aliases may still add */
    size_t depth;
    struct anchor *anchors; /* of this document; a later one of the same name counts */
    size_t anchors_len, anchors_capacity;
    struct ml_map anchor_by_name; /* to place + 1 */
    struct ml_err *err;
};

static int yaml_refuse_at(struct yaml *yaml, const yaml_mark_t *mark, const char *problem)
{
    return ml_err_set(yaml->err, ML_EINVALID, "line %zu: %s", mark->line + 1, problem);
}

static int yaml_refuse(struct yaml *yaml, const char *problem)
{
    return yaml_refuse_at(yaml, &yaml->event.start_mark, problem);
}

static int yaml_refuse_size(struct yaml *yaml)
{
    return ml_err_set(yaml->err, ML_ELIMIT, "line %zu: as JSON the text becomes too large",
                      yaml->event.start_mark.line + 1);
}

/* Call after each addition to the output. */
static int yaml_check_size(struct yaml *yaml)
{
    return yaml->out->failed || yaml->out->len > yaml->out_max ? yaml_refuse_size(yaml) : 0;
}

static int yaml_next_event(struct yaml *yaml)
{
    yaml_event_delete(&yaml->event);
    if (yaml_parser_parse(&yaml->parser, &yaml->event))
        return 0;
    const yaml_parser_t *parser = &yaml->parser;
    const char *problem = parser->problem ? parser->problem : "not YAML";
    /* Trouble with the bytes themselves comes without a mark. */
    const yaml_mark_t *mark = parser->error == YAML_READER_ERROR ? &parser->mark
                                                                 : &parser->problem_mark;
    return yaml_refuse_at(yaml, mark, problem);
}

static void forget_anchors(struct yaml *yaml)
{
    for (size_t i = 0; i < yaml->anchors_len; i++)
        free(yaml->anchors[i].name);
    yaml->anchors_len = 0;
    ml_map_fini(&yaml->anchor_by_name);
    yaml->anchor_by_name = (struct ml_map){0};
}

/* Gives the anchor's place + 1; 0 when the node has none. Its JSON begins where the output ends. */
static int open_anchor(struct yaml *yaml, const yaml_char_t *name, size_t *out)
{
    *out = 0;
    if (!name)
        return 0;
    if (yaml->anchors_len == ANCHORS_MAX)
        return yaml_refuse(yaml, "more than 10000 anchors");
    yaml->anchors = ml_grow(yaml->anchors, &yaml->anchors_capacity, yaml->anchors_len,
                            sizeof yaml->anchors[0]);
    struct anchor *anchor = &yaml->anchors[yaml->anchors_len++];
    *anchor = (struct anchor){
        .name = ml_strdup((const char *)name), .start = yaml->out->len, .open = true};
    ml_map_put(&yaml->anchor_by_name, ml_str_of(anchor->name),
               (void *)(uintptr_t)yaml->anchors_len);
    *out = yaml->anchors_len;
    return 0;
}

static void close_anchor(struct yaml *yaml, size_t place)
{
    if (place == 0)
        return;
    yaml->anchors[place - 1].end = yaml->out->len;
    yaml->anchors[place - 1].open = false;
}

/* The current event is an alias. */
static int write_alias(struct yaml *yaml)
{
    const char *name = (const char *)yaml->event.data.alias.anchor;
    uintptr_t place = (uintptr_t)ml_map_get(&yaml->anchor_by_name, ml_str_of(name));
    if (place == 0)
        return yaml_refuse(yaml, "an alias to an anchor that is not defined");
    const struct anchor *anchor = &yaml->anchors[place - 1];
    if (anchor->open)
        return yaml_refuse(yaml, "an anchor inside what it names");
    size_t len = anchor->end - anchor->start;
    if (len > yaml->aliased_max) /* the words of Kubernetes' parser */
        return ml_err_set(yaml->err, ML_ELIMIT, "document contains excessive aliasing");
    yaml->aliased_max -= len;
    if (yaml->out->len + len > yaml->out_max)
        return yaml_refuse_size(yaml);
    /* Reserve first: growing the buffer would move the bytes that are copied from it. */
    if (ml_buf_reserve(yaml->out, len))
        ml_buf_append(yaml->out, yaml->out->ptr + anchor->start, len);
    return yaml_check_size(yaml);
}

/* ---- scalars: the core schema of YAML 1.2 (section 10.3.2) ----
 *
 * Each write_ appends the scalar as JSON and returns NULL, or what is wrong with it. A full buffer
 * is left for the caller to notice. */

typedef const char *scalar_writer(struct ml_str text, struct ml_buf *out);

static bool is_one_of(struct ml_str text, const char *const *words)
{
    for (; *words; words++)
        if (ml_str_is(text, *words))
            return true;
    return false;
}

static bool is_null(struct ml_str text)
{
    static const char *const words[] = {"", "~", "null", "Null", "NULL", NULL};
    return is_one_of(text, words);
}

static bool is_true(struct ml_str text)
{
    static const char *const words[] = {"true", "True", "TRUE", NULL};
    return is_one_of(text, words);
}

static bool is_false(struct ml_str text)
{
    static const char *const words[] = {"false", "False", "FALSE", NULL};
    return is_one_of(text, words);
}

static bool is_sign(char c)
{
    return c == '+' || c == '-';
}

/* Infinity or not a number. */
static bool is_not_finite(struct ml_str text)
{
    static const char *const infinity[] = {".inf", ".Inf", ".INF", NULL};
    static const char *const nan[] = {".nan", ".NaN", ".NAN", NULL};
    if (is_one_of(text, nan))
        return true;
    if (text.len && is_sign(text.ptr[0])) {
        text.ptr++;
        text.len--;
    }
    return is_one_of(text, infinity);
}

/* Takes the leading decimal digits off. */
static struct ml_str cut_digits(struct ml_str *text)
{
    struct ml_str digits = {text->ptr, 0};
    while (text->len && text->ptr[0] >= '0' && text->ptr[0] <= '9') {
        text->ptr++;
        text->len--;
        digits.len++;
    }
    return digits;
}

static bool cut_any(struct ml_str *text, const char *choice, char *out)
{
    if (text->len == 0 || text->ptr[0] == '\0' || !strchr(choice, text->ptr[0]))
        return false;
    *out = text->ptr[0];
    text->ptr++;
    text->len--;
    return true;
}

/* A decimal number in its parts; the exponent keeps its sign. */
struct decimal {
    bool negative, point;
    struct ml_str whole, fraction, exponent;
};

static bool parse_decimal(struct ml_str text, struct decimal *decimal)
{
    char c = '+';
    *decimal = (struct decimal){0};
    cut_any(&text, "+-", &c);
    decimal->negative = c == '-';
    decimal->whole = cut_digits(&text);
    decimal->point = cut_any(&text, ".", &c);
    if (decimal->point)
        decimal->fraction = cut_digits(&text);
    if (decimal->whole.len + decimal->fraction.len == 0)
        return false;
    struct ml_str rest = text;
    if (!cut_any(&text, "eE", &c))
        return text.len == 0;
    decimal->exponent = (struct ml_str){rest.ptr + 1, rest.len - 1};
    cut_any(&text, "+-", &c);
    return cut_digits(&text).len > 0 && text.len == 0;
}

static bool is_whole(const struct decimal *decimal)
{
    return !decimal->point && decimal->exponent.len == 0;
}

/* JSON wants digits on both sides of a point and no zero in front. */
static void write_decimal(const struct decimal *decimal, bool as_float, struct ml_buf *out)
{
    struct ml_str whole = decimal->whole;
    while (whole.len > 1 && whole.ptr[0] == '0') {
        whole.ptr++;
        whole.len--;
    }
    if (decimal->negative)
        ml_buf_putc(out, '-');
    ml_buf_append_str(out, whole.len ? whole : ML_STR("0"));
    if (decimal->point || (as_float && is_whole(decimal))) {
        ml_buf_putc(out, '.');
        ml_buf_append_str(out, decimal->fraction.len ? decimal->fraction : ML_STR("0"));
    }
    if (decimal->exponent.len) {
        ml_buf_putc(out, 'e');
        ml_buf_append_str(out, decimal->exponent);
    }
}

static int digit_value(char c)
{
    if (c >= '0' && c <= '9')
        return c - '0';
    c |= 0x20;
    return c >= 'a' && c <= 'f' ? c - 'a' + 10 : 16;
}

/* 0o17 and 0x1F. */
static bool is_based(struct ml_str text, int *base)
{
    *base = ml_str_starts(text, "0o") ? 8 : 16;
    if (text.len < 3 || (*base == 16 && !ml_str_starts(text, "0x")))
        return false;
    for (size_t i = 2; i < text.len; i++)
        if (digit_value(text.ptr[i]) >= *base)
            return false;
    return true;
}

static const char *write_based_int(struct ml_str text, int base, struct ml_buf *out)
{
    uint64_t value = 0;
    for (size_t i = 2; i < text.len; i++) {
        if (value > UINT64_MAX / (uint64_t)base)
            return "an octal or hexadecimal number has more than 64 bits";
        value = value * (uint64_t)base + (uint64_t)digit_value(text.ptr[i]);
    }
    ml_buf_printf(out, "%llu", (unsigned long long)value);
    return NULL;
}

static const char *write_text(struct ml_str text, struct ml_buf *out)
{
    ml_escape_json(out, text);
    return NULL;
}

static const char *write_null(struct ml_str text, struct ml_buf *out)
{
    if (!is_null(text))
        return "tagged !!null but not null";
    ml_buf_puts(out, "null");
    return NULL;
}

static const char *write_bool(struct ml_str text, struct ml_buf *out)
{
    if (!is_true(text) && !is_false(text))
        return "tagged !!bool but neither true nor false";
    ml_buf_puts(out, is_true(text) ? "true" : "false");
    return NULL;
}

static const char *write_int(struct ml_str text, struct ml_buf *out)
{
    int base;
    struct decimal decimal;
    if (is_based(text, &base))
        return write_based_int(text, base, out);
    if (!parse_decimal(text, &decimal) || !is_whole(&decimal))
        return "tagged !!int but not an integer";
    write_decimal(&decimal, false, out);
    return NULL;
}

static const char *write_float(struct ml_str text, struct ml_buf *out)
{
    struct decimal decimal;
    if (is_not_finite(text))
        return "JSON has no infinity and no NaN";
    if (!parse_decimal(text, &decimal))
        return "tagged !!float but not a number";
    write_decimal(&decimal, true, out);
    return NULL;
}

/* A plain scalar: the core schema says what it is. */
static const char *write_untagged(struct ml_str text, struct ml_buf *out)
{
    int base;
    struct decimal decimal;
    if (is_null(text))
        return write_null(text, out);
    if (is_true(text) || is_false(text))
        return write_bool(text, out);
    if (is_based(text, &base))
        return write_based_int(text, base, out);
    if (is_not_finite(text))
        return write_float(text, out);
    if (!parse_decimal(text, &decimal))
        return write_text(text, out);
    write_decimal(&decimal, false, out);
    return NULL;
}

/* NULL for a tag that is not supported. */
static scalar_writer *writer_of_scalar(const yaml_event_t *event)
{
    static const struct {
        const char *tag;
        scalar_writer *writer;
    } writers[] = {
        {YAML_STR_TAG, write_text}, {YAML_NULL_TAG, write_null},   {YAML_BOOL_TAG, write_bool},
        {YAML_INT_TAG, write_int},  {YAML_FLOAT_TAG, write_float},
    };
    const char *tag = (const char *)event->data.scalar.tag;
    if (!tag)
        return event->data.scalar.style == YAML_PLAIN_SCALAR_STYLE ? write_untagged : write_text;
    for (size_t i = 0; i < ML_COUNT(writers); i++)
        if (strcmp(tag, writers[i].tag) == 0)
            return writers[i].writer;
    return NULL;
}

static int write_scalar(struct yaml *yaml)
{
    scalar_writer *write = writer_of_scalar(&yaml->event);
    if (!write)
        return yaml_refuse(yaml, "a tag other than !!str, !!int, !!float, !!bool and !!null");
    struct ml_str text = {(const char *)yaml->event.data.scalar.value,
                          yaml->event.data.scalar.length};
    size_t anchor;
    int r = open_anchor(yaml, yaml->event.data.scalar.anchor, &anchor);
    if (r < 0)
        return r;
    const char *problem = write(text, yaml->out);
    close_anchor(yaml, anchor);
    return problem ? yaml_refuse(yaml, problem) : yaml_check_size(yaml);
}

/* ---- collections and documents ---- */

/* The keys of one mapping, each the value of its own entry. */
static void free_keys(struct ml_map *keys)
{
    ml_map_each (keys, cursor, key) {
        free(key);
    }
    ml_map_fini(keys);
}

/* Notes the key that stands in the output from `start` on. */
static int remember_key(struct yaml *yaml, struct ml_map *keys, size_t start)
{
    struct ml_str text = {yaml->out->ptr + start, yaml->out->len - start};
    if (ml_map_get(keys, text))
        return yaml_refuse(yaml, "a key that the mapping has already");
    char *key = ml_str_dup(text);
    ml_map_put(keys, (struct ml_str){key, text.len}, key);
    return 0;
}

/* Puts quotes around the number or boolean that was written from `start` on. Anchors from
 * `anchors` on name the bare value and move with it. */
static int quote_key(struct yaml *yaml, size_t start, size_t anchors)
{
    struct ml_buf *out = yaml->out;
    size_t len = out->len - start;
    ml_buf_puts(out, "\"\"");
    if (yaml_check_size(yaml) < 0)
        return yaml->err->kind;
    memmove(out->ptr + start + 1, out->ptr + start, len);
    out->ptr[start] = '"';
    for (; anchors < yaml->anchors_len; anchors++) {
        yaml->anchors[anchors].start++;
        yaml->anchors[anchors].end++;
    }
    return 0;
}

/* Writes the current event as a key. */
static int write_key(struct yaml *yaml, struct ml_map *keys)
{
    size_t start = yaml->out->len, anchors = yaml->anchors_len;
    int r = yaml->event.type == YAML_SCALAR_EVENT ? write_scalar(yaml)
            : yaml->event.type == YAML_ALIAS_EVENT
                ? write_alias(yaml)
                : yaml_refuse(yaml, "a key that is a collection");
    if (r < 0)
        return r;
    char first = yaml->out->ptr[start];
    if (first == '{' || first == '[')
        return yaml_refuse(yaml, "a key that is a collection");
    if (first == 'n')
        return yaml_refuse(yaml, "a key that is null");
    if (first != '"')
        r = quote_key(yaml, start, anchors);
    return r < 0 ? r : remember_key(yaml, keys, start);
}

static int write_node(struct yaml *yaml);

/* Begins at the collection's first event and ends at its last. */
static int write_items(struct yaml *yaml, bool mapping)
{
    ML_AUTO(free_keys) struct ml_map keys = {0};
    yaml_event_type_t end = mapping ? YAML_MAPPING_END_EVENT : YAML_SEQUENCE_END_EVENT;
    ml_buf_putc(yaml->out, mapping ? '{' : '[');
    for (bool first = true;; first = false) {
        int r = yaml_next_event(yaml);
        if (r < 0)
            return r;
        if (yaml->event.type == end)
            break;
        if (!first)
            ml_buf_putc(yaml->out, ',');
        if (mapping) {
            r = write_key(yaml, &keys);
            if (r < 0)
                return r;
            ml_buf_putc(yaml->out, ':');
            r = yaml_next_event(yaml);
        }
        if (r == 0)
            r = write_node(yaml);
        if (r < 0)
            return r;
    }
    ml_buf_putc(yaml->out, mapping ? '}' : ']');
    return yaml_check_size(yaml);
}

static int write_collection(struct yaml *yaml)
{
    bool mapping = yaml->event.type == YAML_MAPPING_START_EVENT;
    const yaml_char_t *tag = mapping ? yaml->event.data.mapping_start.tag
                                     : yaml->event.data.sequence_start.tag;
    const yaml_char_t *name = mapping ? yaml->event.data.mapping_start.anchor
                                      : yaml->event.data.sequence_start.anchor;
    if (tag)
        return yaml_refuse(yaml, "a tag on a collection");
    if (yaml->depth == ML_JSON_DEPTH_MAX)
        return yaml_refuse(yaml, "nested too deep");
    size_t anchor;
    int r = open_anchor(yaml, name, &anchor);
    if (r < 0)
        return r;
    yaml->depth++;
    r = write_items(yaml, mapping);
    yaml->depth--;
    close_anchor(yaml, anchor);
    return r;
}

/* The current event begins a node. One level of recursion a level of nesting. */
static int write_node(struct yaml *yaml)
{
    if (yaml->event.type == YAML_ALIAS_EVENT)
        return write_alias(yaml);
    if (yaml->event.type == YAML_SCALAR_EVENT)
        return write_scalar(yaml);
    return write_collection(yaml);
}

/* Nothing was written between two document marks, not even "null". */
static bool is_empty_document(const yaml_event_t *root)
{
    return root->type == YAML_SCALAR_EVENT && root->data.scalar.length == 0 &&
           root->data.scalar.style == YAML_PLAIN_SCALAR_STYLE && !root->data.scalar.tag &&
           !root->data.scalar.anchor;
}

/* Nesting was limited while it was read, but an alias deep inside may name something deep. */
static int check_document(struct yaml *yaml, size_t start)
{
    struct ml_err deep;
    struct ml_str json = {yaml->out->ptr + start, yaml->out->len - start};
    return ml_json_check(json, 0, &deep) < 0 ? yaml_refuse(yaml, "nested too deep through an alias")
                                             : 0;
}

/* The current event is the document's start; afterwards it is its end. */
static int write_document(struct yaml *yaml)
{
    size_t start = yaml->out->len;
    int r = yaml_next_event(yaml);
    if (r == 0 && !is_empty_document(&yaml->event)) {
        r = write_node(yaml);
        if (r == 0)
            r = check_document(yaml, start);
        ml_buf_putc(yaml->out, '\n');
    }
    forget_anchors(yaml);
    return r < 0 ? r : yaml_next_event(yaml);
}

static int write_stream(struct yaml *yaml)
{
    int r = 0;
    while (r == 0 && yaml->event.type != YAML_STREAM_END_EVENT) {
        if (yaml->event.type == YAML_DOCUMENT_START_EVENT)
            r = write_document(yaml);
        if (r == 0)
            r = yaml_next_event(yaml);
    }
    return r < 0 ? r : yaml_check_size(yaml);
}

int ml_yaml_to_json(struct ml_str text, size_t json_max, struct ml_buf *out, struct ml_err *err)
{
    size_t len_before = out->len;
    struct yaml yaml = {
        .out = out,
        .out_max = len_before + ML_MIN(json_max, SIZE_MAX / 2),
        .aliased_max = text.len + ALIASED_BYTES_MAX,
        .err = err,
    };
    if (!yaml_parser_initialize(&yaml.parser))
        ml_assert(!"memory for a YAML parser");
    yaml_parser_set_encoding(&yaml.parser, YAML_UTF8_ENCODING);
    const char *input = text.ptr ? text.ptr : "";
    yaml_parser_set_input_string(&yaml.parser, (const unsigned char *)input, text.len);
    int r = write_stream(&yaml);
    yaml_event_delete(&yaml.event);
    yaml_parser_delete(&yaml.parser);
    free(yaml.anchors);
    if (r < 0)
        out->len = len_before;
    return r;
}
