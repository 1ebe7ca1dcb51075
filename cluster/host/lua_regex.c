/* host.regex: the patterns of CRD schemas and of CEL. cluster/regex.lua has Go's messages. */
#include "cluster/host/server_lua_internal.h"
#include "codec/regex.h"

#define REGEX "moonloop.regex"

/* Bytes, for a pattern and for the states that RE2 keeps between matches. With RE2's own default,
 * 8 MiB, it refuses patterns that Go takes. */
#define MEMORY_MAX ((size_t)64 << 20)

/* Of all matches in a text: for each, a pattern like "x+y|x" looks at the rest of the text. */
#define FIND_TIME_MAX_NS (ML_NS_PER_S / 2)

#define NOT_UTF8 "the text is not UTF-8"

/* compile(pattern) -> re | nil, reason, the part of the pattern that is wrong */
ML_RAISES static int regex_compile(lua_State *L)
{
    struct ml_str pattern = binding_check_str(L, 1), part;
    struct ml_regex **regex = lua_newuserdatauv(L, sizeof *regex, 0);
    *regex = NULL;
    luaL_setmetatable(L, REGEX);
    *regex = ml_regex_new(pattern, MEMORY_MAX);
    const char *reason = ml_regex_problem(*regex, &part);
    if (!reason)
        return 1;
    lua_pushnil(L);
    lua_pushstring(L, reason);
    lua_pushlstring(L, part.ptr, part.len);
    return 3;
}

ML_RAISES static struct ml_regex *check_regex(lua_State *L)
{
    return *(struct ml_regex **)luaL_checkudata(L, 1, REGEX);
}

/* re:match(text) -> bool; false and a message when the text is not UTF-8 */
ML_RAISES static int regex_match(lua_State *L)
{
    struct ml_regex *regex = check_regex(L);
    struct ml_str text = binding_check_str(L, 2);
    bool readable = ml_str_is_utf8(text);
    lua_pushboolean(L, readable && ml_regex_matches(regex, text));
    if (readable)
        return 1;
    lua_pushliteral(L, NOT_UTF8);
    return 2;
}

/* re:find_all(text, count) -> { from, to, from, to, … } | nil, message when it takes too long or
 * the text is not UTF-8. */
ML_RAISES static int regex_find_all(lua_State *L)
{
    struct ml_regex_walk walk = {
        .regex = check_regex(L), .text = binding_check_str(L, 2), .before = ML_REGEX_NOWHERE};
    lua_Integer count = luaL_checkinteger(L, 3), found = 0;
    if (!ml_str_is_utf8(walk.text))
        return binding_push_error(L, NOT_UTF8);
    lua_newtable(L);
    const int64_t end_ns = ml_clock_monotonic(ml_clock_real()) + FIND_TIME_MAX_NS;
    enum ml_regex_found next;
    struct ml_str match;
    while ((count < 0 || found < count) &&
           (next = ml_regex_next(&walk, &match, 1)) != ML_REGEX_NONE) {
        if (ml_clock_monotonic(ml_clock_real()) > end_ns)
            return binding_push_error(L, "finding all matches takes too long");
        if (next == ML_REGEX_AGAIN)
            continue;
        lua_pushinteger(L, match.ptr - walk.text.ptr + 1);
        lua_rawseti(L, -2, 2 * found + 1);
        lua_pushinteger(L, match.ptr - walk.text.ptr + (lua_Integer)match.len);
        lua_rawseti(L, -2, 2 * found + 2);
        found++;
    }
    return 1;
}

static int regex_gc(lua_State *L)
{
    ml_regex_free(*(struct ml_regex **)lua_touserdata(L, 1));
    return 0;
}

int binding_open_regex(lua_State *L)
{
    static const luaL_Reg functions[] = {{"compile", regex_compile}, {NULL, NULL}};
    static const luaL_Reg methods[] = {
        {"match", regex_match}, {"find_all", regex_find_all}, {NULL, NULL}};
    binding_new_type(L, REGEX, methods, regex_gc);
    luaL_newlib(L, functions);
    return 1;
}
