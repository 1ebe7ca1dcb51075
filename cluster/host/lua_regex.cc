// host.regex: RE2, whose syntax and answers are those of Go's regexp, for the patterns of CRD
// schemas and of CEL. A match takes time in proportion to its text. cluster/regex.lua rewrites the
// little that RE2 reads in another way than Go (docs/decisions/0032-re2.md).
//
// The only file in C++, since RE2 has no interface for C. No exception passes through Lua: RE2
// throws none, and without memory the program ends, as everywhere.
#include <new>
#include <re2/re2.h>

extern "C" {
#include "cluster/host/server_lua_internal.h"
}

#define REGEX "moonloop.regex"

// Bytes, for a pattern and for the states that RE2 keeps between matches. With RE2's own default,
// 8 MiB, it refuses patterns that Go takes.
#define MEMORY_MAX (64 << 20)

// Of all matches in a text: for each, a pattern like "x+y|x" looks at the rest of the text.
#define FIND_TIME_MAX_NS (ML_NS_PER_S / 2)

#define NOT_UTF8 "the text is not UTF-8"

using re2::StringPiece;

// Go's words.
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

// compile(pattern) -> re | nil, reason, the part of the pattern that is wrong
ML_RAISES static int regex_compile(lua_State *L)
{
    struct ml_str pattern = binding_check_str(L, 1);
    RE2::Options options;
    options.set_log_errors(false);
    options.set_max_mem(MEMORY_MAX);
    void *memory = lua_newuserdatauv(L, sizeof(RE2), 0);
    const RE2 *re = new (memory) RE2(StringPiece(pattern.ptr, pattern.len), options);
    luaL_setmetatable(L, REGEX);
    if (re->ok())
        return 1;
    lua_pushnil(L);
    lua_pushstring(L, reason_of(re->error_code()));
    lua_pushlstring(L, re->error_arg().data(), re->error_arg().size());
    return 3;
}

ML_RAISES static const RE2 *check_regex(lua_State *L)
{
    return static_cast<const RE2 *>(luaL_checkudata(L, 1, REGEX));
}

// re:match(text) -> bool; false and a message when the text is not UTF-8
ML_RAISES static int regex_match(lua_State *L)
{
    const RE2 *re = check_regex(L);
    struct ml_str text = binding_check_str(L, 2);
    bool readable = ml_str_is_utf8(text);
    lua_pushboolean(L, readable && RE2::PartialMatch(StringPiece(text.ptr, text.len), *re));
    if (readable)
        return 1;
    lua_pushliteral(L, NOT_UTF8);
    return 2;
}

// Within a character, where RE2 finds \B.
static bool splits_character(struct ml_str text, size_t at)
{
    return at < text.len && ((unsigned char)text.ptr[at] & 0xc0) == 0x80;
}

// re:find_all(text, count) -> { from, to, from, to, … } | nil, message when it takes too long or
// the text is not UTF-8. As Go's FindAllString: an empty match that touches the one before it does
// not count.
ML_RAISES static int regex_find_all(lua_State *L)
{
    const RE2 *re = check_regex(L);
    struct ml_str text = binding_check_str(L, 2);
    lua_Integer count = luaL_checkinteger(L, 3), found = 0;
    if (!ml_str_is_utf8(text))
        return binding_push_error(L, NOT_UTF8);
    lua_newtable(L);
    const int64_t end_ns = ml_clock_monotonic(ml_clock_real()) + FIND_TIME_MAX_NS;
    StringPiece part;
    size_t at = 0, before = SIZE_MAX;
    while (at <= text.len && (count < 0 || found < count) &&
           re->Match(StringPiece(text.ptr, text.len), at, text.len, RE2::UNANCHORED, &part, 1)) {
        if (ml_clock_monotonic(ml_clock_real()) > end_ns)
            return binding_push_error(L, "finding all matches takes too long");
        size_t from = (size_t)(part.data() - text.ptr), to = from + part.size();
        if (to != from || (from != before && !splits_character(text, from))) {
            lua_pushinteger(L, (lua_Integer)from + 1);
            lua_rawseti(L, -2, 2 * found + 1);
            lua_pushinteger(L, (lua_Integer)to);
            lua_rawseti(L, -2, 2 * found + 2);
            found++;
        }
        at = to + (to == from);
        while (splits_character(text, at))
            at++;
        before = to;
    }
    return 1;
}

static int regex_gc(lua_State *L)
{
    static_cast<RE2 *>(lua_touserdata(L, 1))->~RE2();
    return 0;
}

int binding_open_regex(lua_State *L)
{
    static const luaL_Reg functions[] = {{"compile", regex_compile}, {nullptr, nullptr}};
    static const luaL_Reg methods[] = {
        {"match", regex_match}, {"find_all", regex_find_all}, {nullptr, nullptr}};
    binding_new_type(L, REGEX, methods, regex_gc);
    luaL_newlib(L, functions);
    return 1;
}
