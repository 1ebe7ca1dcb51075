/* L1 codec. The fast loops over JSON text, sixteen bytes at a time where the processor can. They
 * take the text as pointers, never read at or behind `end`, and ignore nesting. */
#pragma once

#include "base/base.h"

#ifdef __SSE2__
#include <emmintrin.h>
#endif

/* The first byte in [p, end) that cannot stand in a string as it is, or that must be checked:
 * '"', '\\', a control character, anything but ASCII. `end` when there is none. */
static inline const char *ml_json_plain_end(const char *p, const char *end)
{
#ifdef __SSE2__
    const __m128i quote = _mm_set1_epi8('"'), backslash = _mm_set1_epi8('\\');
    const __m128i space = _mm_set1_epi8(' ');
    for (; end - p >= 16; p += 16) {
        __m128i block = _mm_loadu_si128((const __m128i *)(const void *)p);
        /* Compared as signed bytes, what is not ASCII is below the space too. */
        __m128i special = _mm_or_si128(
            _mm_cmplt_epi8(block, space),
            _mm_or_si128(_mm_cmpeq_epi8(block, quote), _mm_cmpeq_epi8(block, backslash)));
        int mask = _mm_movemask_epi8(special);
        if (mask)
            return p + __builtin_ctz((unsigned)mask);
    }
#else
    const uint64_t ones = UINT64_C(0x0101010101010101), highs = ones << 7;
    for (; end - p >= 8; p += 8) {
        uint64_t block;
        memcpy(&block, p, sizeof block);
        /* (x - 1) & ~x has its high bit set where a byte x is zero, and perhaps in bytes
         * above one that is: good enough to know whether there is any. */
        uint64_t quote = block ^ ones * '"', backslash = block ^ ones * '\\';
        uint64_t special = block | ((block - ones * ' ') & ~block) | ((quote - ones) & ~quote) |
                           ((backslash - ones) & ~backslash);
        if (special & highs)
            break;
    }
#endif
    while (p < end && *p != '"' && *p != '\\' && (signed char)*p >= ' ')
        p++;
    return p;
}

static inline const char *ml_json_space_end(const char *p, const char *end)
{
    while (p < end && ML_UNLIKELY((unsigned char)*p <= ' ') &&
           (*p == ' ' || *p == '\n' || *p == '\t' || *p == '\r'))
        p++;
    return p;
}

/* The next '"' or '\\' in [p, end), else `end`: inside a string that is not to be checked. */
static inline const char *ml_json_quote_end(const char *p, const char *end)
{
#ifdef __SSE2__
    const __m128i quote = _mm_set1_epi8('"'), backslash = _mm_set1_epi8('\\');
    for (; end - p >= 16; p += 16) {
        __m128i block = _mm_loadu_si128((const __m128i *)(const void *)p);
        int mask = _mm_movemask_epi8(
            _mm_or_si128(_mm_cmpeq_epi8(block, quote), _mm_cmpeq_epi8(block, backslash)));
        if (mask)
            return p + __builtin_ctz((unsigned)mask);
    }
#endif
    while (p < end && *p != '"' && *p != '\\')
        p++;
    return p;
}

/* The next '"' or bracket of either kind in [p, end), or ',' when `commas`, else `end`: outside
 * a string. */
static inline const char *ml_json_structure_end(const char *p, const char *end, bool commas)
{
    const char comma = commas ? ',' : '"';
#ifdef __SSE2__
    const __m128i quotes = _mm_set1_epi8('"'), commas_or_quotes = _mm_set1_epi8(comma);
    const __m128i open = _mm_set1_epi8('{'), close = _mm_set1_epi8('}');
    for (; end - p >= 16; p += 16) {
        __m128i block = _mm_loadu_si128((const __m128i *)(const void *)p);
        /* With this bit '[' is '{' and ']' is '}'; nothing else becomes one of them. */
        __m128i braces = _mm_or_si128(block, _mm_set1_epi8(0x20));
        int mask = _mm_movemask_epi8(_mm_or_si128(
            _mm_or_si128(_mm_cmpeq_epi8(block, quotes), _mm_cmpeq_epi8(block, commas_or_quotes)),
            _mm_or_si128(_mm_cmpeq_epi8(braces, open), _mm_cmpeq_epi8(braces, close))));
        if (mask)
            return p + __builtin_ctz((unsigned)mask);
    }
#endif
    while (p < end && *p != '"' && *p != comma && (*p | 0x20) != '{' && (*p | 0x20) != '}')
        p++;
    return p;
}
