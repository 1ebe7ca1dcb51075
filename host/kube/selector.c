/* Parses label and field selectors, and matches labels. */
#include "kube/selector.h"

#include "base/buf.h"
#include "codec/json.h"
#include "codec/json_members.h"

#include <ctype.h>

#define NAME_MAX_BYTES   63 /* of a label's name, and of its value */
#define PREFIX_MAX_BYTES 253

enum operation {
    HAS,
    HAS_NOT,
    IN,     /* also = and == */
    NOT_IN, /* also !=; an object without the label meets it */
    ABOVE,
    BELOW,
};

struct requirement {
    struct ml_str text; /* the whole requirement */
    struct ml_str key;
    enum operation operation;
    struct ml_str values; /* as written, with commas between them */
};

static bool is_selector_space(char c)
{
    return c == ' ' || c == '\t' || c == '\r' || c == '\n';
}

static void skip_bytes(struct ml_str *rest, size_t bytes)
{
    rest->ptr += bytes;
    rest->len -= bytes;
}

static void skip_selector_spaces(struct ml_str *rest)
{
    while (rest->len > 0 && is_selector_space(rest->ptr[0]))
        skip_bytes(rest, 1);
}

/* Skips the symbol if it comes next. */
static bool accept_symbol(struct ml_str *rest, const char *symbol)
{
    skip_selector_spaces(rest);
    if (!ml_str_starts(*rest, symbol))
        return false;
    skip_bytes(rest, strlen(symbol));
    return true;
}

/* Reads up to a space or a symbol; the result may be empty. */
static struct ml_str read_word(struct ml_str *rest)
{
    skip_selector_spaces(rest);
    struct ml_str word = {rest->ptr, 0};
    while (rest->len > 0 && !is_selector_space(rest->ptr[0]) &&
           !memchr("=!(),<>", rest->ptr[0], 7)) {
        word.len++;
        skip_bytes(rest, 1);
    }
    return word;
}

/* A label's name: it begins and ends with a letter or digit. */
static bool is_label_name(struct ml_str name)
{
    if (name.len == 0 || name.len > NAME_MAX_BYTES || !isalnum((unsigned char)name.ptr[0]) ||
        !isalnum((unsigned char)name.ptr[name.len - 1]))
        return false;
    for (size_t i = 0; i < name.len; i++)
        if (!isalnum((unsigned char)name.ptr[i]) && !memchr("-_.", name.ptr[i], 3))
            return false;
    return true;
}

/* DNS-1123: lower case labels, dots between them. */
static bool is_label_prefix(struct ml_str prefix)
{
    if (prefix.len == 0 || prefix.len > PREFIX_MAX_BYTES)
        return false;
    while (prefix.ptr) {
        struct ml_str label = ml_str_cut(&prefix, '.');
        if (!is_label_name(label))
            return false;
        for (size_t i = 0; i < label.len; i++)
            if (label.ptr[i] == '_' || isupper((unsigned char)label.ptr[i]))
                return false;
    }
    return true;
}

static bool is_label_key(struct ml_str key)
{
    struct ml_str name = key;
    struct ml_str prefix = ml_str_cut(&name, '/');
    return name.ptr ? is_label_prefix(prefix) && is_label_name(name) : is_label_name(key);
}

static int check_requirement_values(const struct requirement *self, struct ml_err *err)
{
    struct ml_str rest = self->values;
    int64_t number;
    while (rest.ptr) {
        struct ml_str value = ml_str_trim(ml_str_cut(&rest, ','));
        if (self->operation >= ABOVE && !ml_str_to_i64(value, &number))
            return ml_err_set(err, ML_EINVALID, "'" ML_STR_FMT "': expected a whole number",
                              ML_STR_ARG(self->text));
        if (value.len > 0 && !is_label_name(value))
            return ml_err_set(err, ML_EINVALID,
                              "'" ML_STR_FMT "': no label has the value '" ML_STR_FMT "'",
                              ML_STR_ARG(self->text), ML_STR_ARG(value));
    }
    return 0;
}

/* "(a, b)". False: something else. */
static bool read_value_set(struct ml_str *rest, struct ml_str *out)
{
    if (!accept_symbol(rest, "("))
        return false;
    *out = (struct ml_str){rest->ptr, 0};
    do
        read_word(rest);
    while (accept_symbol(rest, ","));
    out->len = (size_t)(rest->ptr - out->ptr);
    return accept_symbol(rest, ")") && ml_str_trim(*out).len > 0;
}

/* Operator and values, behind the key. */
static bool read_operator(struct ml_str *rest, struct requirement *self)
{
    static const struct {
        const char *symbol;
        enum operation operation;
    } symbols[] = {{"==", IN}, {"=", IN}, {"!=", NOT_IN}, {">", ABOVE}, {"<", BELOW}};
    for (size_t i = 0; i < ML_COUNT(symbols); i++) {
        if (!accept_symbol(rest, symbols[i].symbol))
            continue;
        self->operation = symbols[i].operation;
        self->values = read_word(rest);
        return true;
    }
    struct ml_str word = read_word(rest);
    self->operation = ml_str_is(word, "in") ? IN : ml_str_is(word, "notin") ? NOT_IN : HAS;
    return self->operation == HAS ? word.len == 0 : read_value_set(rest, &self->values);
}

/* Reads the next requirement; false when it is malformed. `rest` is behind its comma then, with ptr
 * NULL behind the last. */
static bool next_requirement(struct ml_str *rest, struct requirement *out)
{
    skip_selector_spaces(rest);
    *out = (struct requirement){.text = {rest->ptr, 0}};
    bool absent = accept_symbol(rest, "!");
    out->key = read_word(rest);
    bool is_whole = out->key.len > 0 && (absent || read_operator(rest, out));
    if (absent)
        out->operation = HAS_NOT;
    out->text.len = (size_t)(rest->ptr - out->text.ptr);
    out->text = ml_str_trim(out->text);
    if (accept_symbol(rest, ","))
        return is_whole;
    is_whole = is_whole && rest->len == 0;
    *rest = (struct ml_str){NULL, 0};
    return is_whole;
}

int ml_label_selector_check(struct ml_str selector, struct ml_err *err)
{
    struct ml_str rest = selector;
    while (rest.ptr) {
        struct requirement requirement;
        struct ml_str here = rest;
        if (!next_requirement(&rest, &requirement))
            return ml_err_set(err, ML_EINVALID,
                              "'" ML_STR_FMT "': expected requirements like app=web, app!=web, "
                              "app in (a, b), app notin (a, b), app, !app, size>1 or size<9, with "
                              "commas between them",
                              ML_STR_ARG(here));
        if (!is_label_key(requirement.key))
            return ml_err_set(err, ML_EINVALID,
                              "'" ML_STR_FMT "': no label has the name '" ML_STR_FMT "'",
                              ML_STR_ARG(requirement.text), ML_STR_ARG(requirement.key));
        int r = check_requirement_values(&requirement, err);
        if (r < 0)
            return r;
    }
    return 0;
}

static bool requirement_has_value(const struct requirement *self, struct ml_str value)
{
    struct ml_str rest = self->values;
    while (rest.ptr)
        if (ml_str_eq(ml_str_trim(ml_str_cut(&rest, ',')), value))
            return true;
    return false;
}

static bool requirement_compares(const struct requirement *self, struct ml_str value)
{
    int64_t is, limit;
    if (!ml_str_to_i64(value, &is) || !ml_str_to_i64(self->values, &limit))
        return false;
    return self->operation == ABOVE ? is > limit : is < limit;
}

/* `value`: of the label, or NULL. */
static bool requirement_is_met(const struct requirement *self, const char *value)
{
    switch (self->operation) {
    case HAS:
        return value != NULL;
    case HAS_NOT:
        return value == NULL;
    case IN:
        return value && requirement_has_value(self, ml_str_of(value));
    case NOT_IN:
        return !value || !requirement_has_value(self, ml_str_of(value));
    case ABOVE:
    case BELOW:
        return value && requirement_compares(self, ml_str_of(value));
    }
    ML_UNREACHABLE();
}

/* The value of a label as a terminated copy; NULL when there is none. */
static char *find_label_value(const struct ml_json_members *labels, struct ml_str key)
{
    ML_AUTO(ml_buf_fini) struct ml_buf text = ML_BUF_INIT;
    const struct ml_json_member *label = ml_json_members_find(labels, key);
    return label && ml_json_to_string(label->value, &text) ? ml_buf_take(&text) : NULL;
}

bool ml_label_valid(struct ml_str key, struct ml_str value)
{
    return is_label_key(key) && (value.len == 0 || is_label_name(value));
}

bool ml_label_selector_matches(struct ml_str selector, struct ml_str labels,
                               struct ml_str *out_missed)
{
    ML_AUTO(ml_json_members_fini) struct ml_json_members known = {0};
    struct ml_str rest = selector;
    struct requirement requirement;
    struct ml_err err;
    if (rest.len > 0 && labels.len > 0 && !ml_json_members_read(&known, labels, 0, &err))
        known.len = 0; /* no object: it has no labels */
    while (rest.len > 0 && next_requirement(&rest, &requirement)) {
        ML_AUTO_FREE char *value = find_label_value(&known, requirement.key);
        if (requirement_is_met(&requirement, value))
            continue;
        *out_missed = requirement.text;
        return false;
    }
    return true;
}

/* ---- fields ---- */

/* Only the escapes \\ \, \= are allowed, and no bare =. */
static bool is_escaped_field_value(struct ml_str value)
{
    for (size_t i = 0; i < value.len; i++) {
        if (value.ptr[i] == '=')
            return false;
        if (value.ptr[i] == '\\' && (++i == value.len || !memchr("\\,=", value.ptr[i], 3)))
            return false;
    }
    return true;
}

/* Cuts at the first comma that has no backslash before it. */
static struct ml_str cut_field_term(struct ml_str *rest)
{
    struct ml_str term = *rest;
    for (size_t i = 0; i < rest->len; i++) {
        if (rest->ptr[i] == ',') {
            term.len = i;
            skip_bytes(rest, i + 1);
            return term;
        }
        if (rest->ptr[i] == '\\')
            i++;
    }
    *rest = (struct ml_str){NULL, 0};
    return term;
}

int ml_field_selector_check(struct ml_str selector, struct ml_err *err)
{
    struct ml_str rest = selector;
    while (rest.ptr) {
        struct ml_str term = cut_field_term(&rest), value = term;
        struct ml_str key = ml_str_cut(&value, '=');
        if (ml_str_ends(key, "!"))
            key.len--;
        else if (ml_str_starts(value, "="))
            skip_bytes(&value, 1);
        if (key.len == 0 || !value.ptr || !is_escaped_field_value(value))
            return ml_err_set(err, ML_EINVALID,
                              "'" ML_STR_FMT "': expected terms like spec.nodeName=n1 or "
                              "status.phase!=Failed, with commas between them",
                              ML_STR_ARG(term));
    }
    return 0;
}
