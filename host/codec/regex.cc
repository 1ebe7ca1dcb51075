/* The only file in C++, since RE2 has no interface for C. No exception leaves it: RE2 throws none,
 * and without memory the program ends, as everywhere. */
#include <malloc.h>
#include <new>
#include <re2/re2.h>

extern "C" {
#include "codec/regex.h"
}

using re2::StringPiece;

/* ---- memory ----
 *
 * RE2 does not tell how much it holds. All that is allocated in C++ is its own, so it is counted
 * here. */

static size_t held; /* bytes */

void *operator new(size_t size)
{
    void *ptr = ml_alloc(size);
    held += malloc_usable_size(ptr);
    return ptr;
}

void *operator new[](size_t size)
{
    return operator new(size);
}

void operator delete(void *ptr) noexcept
{
    held -= malloc_usable_size(ptr);
    free(ptr);
}

void operator delete(void *ptr, size_t) noexcept
{
    operator delete(ptr);
}

void operator delete[](void *ptr) noexcept
{
    operator delete(ptr);
}

void operator delete[](void *ptr, size_t) noexcept
{
    operator delete(ptr);
}

/* ---- compiling ---- */

struct ml_regex {
    ml_regex(struct ml_str pattern, const RE2::Options &options)
        : re2(StringPiece(pattern.ptr, pattern.len), options)
    {
    }
    RE2 re2;
    size_t memory = 0;
};

struct ml_regex *ml_regex_new(struct ml_str pattern, size_t memory_max)
{
    RE2::Options options(RE2::Quiet);
    options.set_max_mem((int64_t)memory_max);
    size_t before = held;
    struct ml_regex *regex = new ml_regex(pattern, options);
    regex->memory = held - before;
    return regex;
}

void ml_regex_free(struct ml_regex *regex)
{
    delete regex;
}

static const char *reason_of(RE2::ErrorCode code)
{
    switch (code) {
    case RE2::ErrorBadEscape:
        return "invalid escape sequence";
    case RE2::ErrorBadCharClass:
    case RE2::ErrorBadCharRange:
        return "invalid character class range";
    case RE2::ErrorMissingBracket:
        return "missing closing ]";
    case RE2::ErrorMissingParen:
        return "missing closing )";
    case RE2::ErrorUnexpectedParen:
        return "unexpected )";
    case RE2::ErrorTrailingBackslash:
        return "trailing backslash at end of expression";
    case RE2::ErrorRepeatArgument:
        return "missing argument to repetition operator";
    case RE2::ErrorRepeatSize:
        return "invalid repeat count";
    case RE2::ErrorRepeatOp:
        return "invalid nested repetition operator";
    case RE2::ErrorBadPerlOp:
        return "invalid or unsupported Perl syntax";
    case RE2::ErrorBadUTF8:
        return "invalid UTF-8";
    case RE2::ErrorBadNamedCapture:
        return "invalid named capture";
    case RE2::ErrorPatternTooLarge:
        return "expression too large";
    case RE2::NoError:
    case RE2::ErrorInternal:
        break;
    }
    return "internal error";
}

const char *ml_regex_problem(const struct ml_regex *regex, struct ml_str *out_part)
{
    if (regex->re2.ok())
        return NULL;
    const std::string &part = regex->re2.error_arg();
    *out_part = (struct ml_str){part.data(), part.size()};
    return reason_of(regex->re2.error_code());
}

size_t ml_regex_groups(const struct ml_regex *regex)
{
    return (size_t)regex->re2.NumberOfCapturingGroups();
}

size_t ml_regex_size(const struct ml_regex *regex)
{
    return (size_t)regex->re2.ProgramSize();
}

size_t ml_regex_memory(const struct ml_regex *regex)
{
    return regex->memory;
}

/* ---- matching ---- */

static bool match(struct ml_regex *regex, struct ml_str text, size_t at, StringPiece *parts,
                  size_t count)
{
    size_t before = held;
    bool matches = regex->re2.Match(StringPiece(text.ptr, text.len), at, text.len, RE2::UNANCHORED,
                                    parts, (int)count);
    regex->memory += held - before; /* or less than before: these wrap around alike */
    return matches;
}

bool ml_regex_matches(struct ml_regex *regex, struct ml_str text)
{
    return match(regex, text, 0, NULL, 0);
}

/* Within a character, where RE2 finds \B. */
static bool splits_character(struct ml_str text, size_t at)
{
    return at < text.len && ((unsigned char)text.ptr[at] & 0xc0) == 0x80;
}

enum ml_regex_found ml_regex_next(struct ml_regex_walk *walk, struct ml_str *groups, size_t count)
{
    StringPiece parts[1 + ML_REGEX_GROUPS_MAX];
    ml_assert(count >= 1 && count <= ML_COUNT(parts));
    if (walk->at > walk->text.len || !match(walk->regex, walk->text, walk->at, parts, count)) {
        walk->at = walk->text.len + 1;
        return ML_REGEX_NONE;
    }
    for (size_t i = 0; i < count; i++)
        groups[i] = (struct ml_str){parts[i].data(), parts[i].size()};
    size_t from = (size_t)(groups[0].ptr - walk->text.ptr), to = from + groups[0].len;
    bool counts = to != from || (from != walk->before && !splits_character(walk->text, from));
    walk->at = to + (to == from);
    while (splits_character(walk->text, walk->at))
        walk->at++;
    walk->before = to;
    return counts ? ML_REGEX_MATCH : ML_REGEX_AGAIN;
}
