/* Slices of text: compared, cut, read as numbers, checked as UTF-8. */
#include "base/str.h"

bool ml_str_starts(struct ml_str s, const char *prefix)
{
    size_t len = strlen(prefix);
    return s.len >= len && memcmp(s.ptr, prefix, len) == 0;
}

bool ml_str_ends(struct ml_str s, const char *suffix)
{
    size_t len = strlen(suffix);
    return s.len >= len && memcmp(s.ptr + s.len - len, suffix, len) == 0;
}

int ml_str_cmp(struct ml_str a, struct ml_str b)
{
    size_t len = ML_MIN(a.len, b.len);
    int order = len ? memcmp(a.ptr, b.ptr, len) : 0;
    if (order != 0 || a.len == b.len)
        return order;
    return a.len < b.len ? -1 : 1;
}

static bool is_space(char c)
{
    return c == ' ' || c == '\t' || c == '\n' || c == '\r';
}

struct ml_str ml_str_trim(struct ml_str s)
{
    while (s.len && is_space(s.ptr[0])) {
        s.ptr++;
        s.len--;
    }
    while (s.len && is_space(s.ptr[s.len - 1]))
        s.len--;
    return s;
}

struct ml_str ml_str_head(struct ml_str s, size_t max)
{
    if (s.len <= max)
        return s;
    while (max > 0 && ((unsigned char)s.ptr[max] & 0xC0) == 0x80)
        max--;
    return (struct ml_str){s.ptr, max};
}

struct ml_str ml_str_cut(struct ml_str *rest, char separator)
{
    struct ml_str head = *rest;
    const char *at = rest->len ? memchr(rest->ptr, separator, rest->len) : NULL;
    if (!at) {
        *rest = (struct ml_str){NULL, 0};
        return head;
    }
    head.len = (size_t)(at - head.ptr);
    rest->ptr = at + 1;
    rest->len -= head.len + 1;
    return head;
}

bool ml_str_to_u64(struct ml_str s, uint64_t *out)
{
    if (s.len == 0)
        return false;
    uint64_t value = 0;
    for (size_t i = 0; i < s.len; i++) {
        unsigned digit = (unsigned char)s.ptr[i] - '0';
        if (digit > 9 || __builtin_mul_overflow(value, UINT64_C(10), &value) ||
            __builtin_add_overflow(value, (uint64_t)digit, &value))
            return false;
    }
    *out = value;
    return true;
}

bool ml_str_to_i64(struct ml_str s, int64_t *out)
{
    bool negative = s.len && s.ptr[0] == '-';
    uint64_t magnitude = 0;
    if (negative) {
        s.ptr++;
        s.len--;
    }
    if (!ml_str_to_u64(s, &magnitude) || magnitude > (uint64_t)INT64_MAX + negative)
        return false;
    *out = negative ? (int64_t)(0 - magnitude) : (int64_t)magnitude;
    return true;
}

uint64_t ml_str_hash(struct ml_str s)
{
    uint64_t hash = UINT64_C(0xcbf29ce484222325);
    for (size_t i = 0; i < s.len; i++)
        hash = (hash ^ (unsigned char)s.ptr[i]) * UINT64_C(0x100000001b3);
    return hash;
}

size_t ml_utf8_len(const char *text, size_t len)
{
    const unsigned char *p = (const unsigned char *)text;
    unsigned char lead = p[0];
    if (lead < 0x80)
        return 1;
    size_t need = lead >= 0xC2 && lead <= 0xDF ? 2 : (lead & 0xF0) == 0xE0 ? 3 : 4;
    if (lead < 0xC2 || lead > 0xF4 || need > len)
        return 0;
    /* Only the second byte has a range of its own: it shuts out overlong forms, surrogates
     * and what lies above U+10FFFF. */
    unsigned char low = lead == 0xE0 ? 0xA0 : lead == 0xF0 ? 0x90 : 0x80;
    unsigned char high = lead == 0xED ? 0x9F : lead == 0xF4 ? 0x8F : 0xBF;
    if (p[1] < low || p[1] > high)
        return 0;
    for (size_t i = 2; i < need; i++)
        if ((p[i] & 0xC0) != 0x80)
            return 0;
    return need;
}

bool ml_str_is_utf8(struct ml_str s)
{
    size_t i = 0;
    while (i < s.len) {
        uint64_t block;
        if (s.len - i >= sizeof block) {
            memcpy(&block, s.ptr + i, sizeof block);
            if (!(block & UINT64_C(0x8080808080808080))) {
                i += sizeof block;
                continue;
            }
        }
        size_t step = ml_utf8_len(s.ptr + i, s.len - i);
        if (step == 0)
            return false;
        i += step;
    }
    return true;
}
