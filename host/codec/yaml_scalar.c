/* What a scalar says: YAML 1.1 as Kubernetes' reader has it.
 *
 * Rules: go.yaml.in/yaml/v2 resolve.go (resolve, parseTimestamp) and decode.go (scalar). */
#include "codec/yaml_internal.h"

#include "codec/base64.h"

#include <math.h>

/* What the first character makes possible. */
enum hint { HINT_TEXT, HINT_WORD, HINT_POINT, HINT_NUMBER };

static enum hint hint_of(struct ml_str text)
{
    if (text.len == 0)
        return HINT_WORD;
    char c = text.ptr[0];
    if (c == '.')
        return HINT_POINT;
    if ((c >= '0' && c <= '9') || c == '+' || c == '-')
        return HINT_NUMBER;
    return c && strchr("yYnNtTfFoO~", c) ? HINT_WORD : HINT_TEXT;
}

/* The words that are no text: each in small letters, with a capital, and in capitals. */
static bool find_word(struct ml_str text, struct ml_yaml_value *out)
{
    static const struct {
        const char *words[3];
        int type;
        bool truth;
        double real;
    } table[] = {
        {{"", "~", "~"}, ML_YAML_IS_NULL, false, 0},
        {{"null", "Null", "NULL"}, ML_YAML_IS_NULL, false, 0},
        {{"true", "True", "TRUE"}, ML_YAML_IS_BOOL, true, 0},
        {{"false", "False", "FALSE"}, ML_YAML_IS_BOOL, false, 0},
        {{"y", "Y", "Y"}, ML_YAML_IS_BOOL, true, 0},
        {{"n", "N", "N"}, ML_YAML_IS_BOOL, false, 0},
        {{"yes", "Yes", "YES"}, ML_YAML_IS_BOOL, true, 0},
        {{"no", "No", "NO"}, ML_YAML_IS_BOOL, false, 0},
        {{"on", "On", "ON"}, ML_YAML_IS_BOOL, true, 0},
        {{"off", "Off", "OFF"}, ML_YAML_IS_BOOL, false, 0},
        {{".nan", ".NaN", ".NAN"}, ML_YAML_IS_REAL, false, NAN},
        {{".inf", ".Inf", ".INF"}, ML_YAML_IS_REAL, false, INFINITY},
        {{"+.inf", "+.Inf", "+.INF"}, ML_YAML_IS_REAL, false, INFINITY},
        {{"-.inf", "-.Inf", "-.INF"}, ML_YAML_IS_REAL, false, -INFINITY},
    };
    if (text.len > 5)
        return false;
    for (size_t i = 0; i < ML_COUNT(table); i++)
        for (size_t j = 0; j < ML_COUNT(table[i].words); j++)
            if (ml_str_is(text, table[i].words[j])) {
                out->type = table[i].type;
                out->truth = table[i].truth;
                out->real = table[i].real;
                return true;
            }
    return false;
}

/* Fills the value, and its tag; text when it is nothing else. */
static enum ml_yaml_tag read_plain(struct ml_str text, struct ml_yaml_value *out)
{
    static const enum ml_yaml_tag tags[] = {
        [ML_YAML_IS_NULL] = ML_YAML_NULL,  [ML_YAML_IS_BOOL] = ML_YAML_BOOL,
        [ML_YAML_IS_INT] = ML_YAML_INT,    [ML_YAML_IS_NATURAL] = ML_YAML_INT,
        [ML_YAML_IS_REAL] = ML_YAML_FLOAT, [ML_YAML_IS_TEXT] = ML_YAML_STR,
    };
    enum hint hint = hint_of(text);
    if (hint != HINT_TEXT && find_word(text, out))
        return tags[out->type];
    if ((hint == HINT_POINT || hint == HINT_NUMBER) && ml_yaml_number(text, out))
        return tags[out->type];
    out->type = ML_YAML_IS_TEXT;
    out->text = text;
    return ML_YAML_STR;
}

/* ---- times, of which only matters whether they are some ---- */

/* Cuts a number of 1 to `digits` digits, within the bounds. */
static bool cut_number(struct ml_str *text, size_t digits, int min, int max, int *out)
{
    size_t len = 0;
    int value = 0;
    for (; len < text->len && len < digits && text->ptr[len] >= '0' && text->ptr[len] <= '9'; len++)
        value = value * 10 + text->ptr[len] - '0';
    *text = (struct ml_str){text->ptr + len, text->len - len};
    *out = value;
    return len > 0 && value >= min && value <= max;
}

static bool cut_char(struct ml_str *text, const char *choice)
{
    if (text->len == 0 || !text->ptr[0] || !strchr(choice, text->ptr[0]))
        return false;
    *text = (struct ml_str){text->ptr + 1, text->len - 1};
    return true;
}

static int days_of(int year, int month)
{
    static const int days[] = {31, 28, 31, 30, 31, 30, 31, 31, 30, 31, 30, 31};
    bool leap = (year % 4 == 0 && year % 100 != 0) || year % 400 == 0;
    return days[month - 1] + (month == 2 && leap);
}

static bool cut_clock(struct ml_str *text)
{
    int ignored;
    if (!cut_number(text, 2, 0, 23, &ignored) || !cut_char(text, ":") ||
        !cut_number(text, 2, 0, 59, &ignored) || !cut_char(text, ":") ||
        !cut_number(text, 2, 0, 59, &ignored))
        return false;
    struct ml_str rest = *text;
    if (cut_char(&rest, ".,") && rest.len && rest.ptr[0] >= '0' && rest.ptr[0] <= '9')
        for (*text = rest; cut_char(text, "0123456789");)
            continue;
    return true;
}

static bool cut_zone(struct ml_str *text)
{
    int ignored;
    struct ml_str zone = *text;
    if (cut_char(text, "Z"))
        return true;
    return zone.len == 6 && cut_char(text, "+-") && cut_number(text, 2, 0, 24, &ignored) &&
           cut_char(text, ":") && cut_number(text, 2, 0, 60, &ignored);
}

static bool is_timestamp(struct ml_str text)
{
    int year, month, day;
    struct ml_str start = text;
    if (!cut_number(&text, 4, 0, 9999, &year) || text.len + 4 != start.len ||
        !cut_char(&text, "-") || !cut_number(&text, 2, 1, 12, &month) || !cut_char(&text, "-") ||
        !cut_number(&text, 2, 1, 31, &day) || day > days_of(year, month))
        return false;
    if (text.len == 0)
        return true;
    if (cut_char(&text, " "))
        return cut_clock(&text) && text.len == 0;
    return cut_char(&text, "Tt") && cut_clock(&text) && cut_zone(&text) && text.len == 0;
}

/* ---- tags ---- */

static const char *const shown_tags[] = {
    [ML_YAML_STR] = "!!str",     [ML_YAML_BOOL] = "!!bool", [ML_YAML_INT] = "!!int",
    [ML_YAML_FLOAT] = "!!float", [ML_YAML_NULL] = "!!null", [ML_YAML_TIMESTAMP] = "!!timestamp",
};

static int decode_binary(const struct ml_yaml_node *node, struct ml_buf *binary,
                         struct ml_yaml_value *out, struct ml_yaml_fault *fault)
{
    ml_buf_clear(binary);
    binary->len_max = node->text.len + 4;
    /* Ours passes over spaces, Go's does not. */
    if (memchr(node->text.ptr, ' ', node->text.len) ||
        memchr(node->text.ptr, '\t', node->text.len) || !ml_base64_decode(node->text, binary))
        return ml_yaml_fail(fault, ML_EINVALID, node,
                            "!!binary value contains invalid base64 data");
    out->text = ml_buf_str(binary);
    return 0;
}

/* A tag that the text does not bear out is refused; a float may be written as an integer. */
static int check_tag(const struct ml_yaml_node *node, enum ml_yaml_tag found,
                     struct ml_yaml_value *out, struct ml_yaml_fault *fault)
{
    if (node->tag == ML_YAML_FLOAT && out->type == ML_YAML_IS_INT) {
        out->type = ML_YAML_IS_REAL;
        out->real = (double)out->integer;
        return 0;
    }
    if (node->tag == found)
        return 0;
    return ml_yaml_fail(fault, ML_EINVALID, node, "cannot decode %s `" ML_STR_FMT "` as a %s",
                        shown_tags[found], ML_STR_ARG(node->text), shown_tags[node->tag]);
}

int ml_yaml_resolve(const struct ml_yaml_node *node, struct ml_buf *binary,
                    struct ml_yaml_value *out, struct ml_yaml_fault *fault)
{
    out->type = ML_YAML_IS_TEXT;
    out->text = node->text;
    switch ((enum ml_yaml_tag)node->tag) {
    case ML_YAML_UNTAGGED:
        if (node->plain)
            (void)read_plain(node->text, out);
        return 0;
    case ML_YAML_BINARY:
        return decode_binary(node, binary, out, fault);
    case ML_YAML_TIMESTAMP:
        if (is_timestamp(node->text))
            return 0;
        return check_tag(node, read_plain(node->text, out), out, fault);
    case ML_YAML_BOOL:
    case ML_YAML_INT:
    case ML_YAML_FLOAT:
    case ML_YAML_NULL:
        return check_tag(node, read_plain(node->text, out), out, fault);
    case ML_YAML_STR:
    case ML_YAML_MERGE:
    case ML_YAML_OTHER:
        return 0;
    }
    ML_UNREACHABLE();
}
