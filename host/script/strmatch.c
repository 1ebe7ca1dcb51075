/* string.find, match, gmatch and gsub on the host's own matcher. The same results as Lua 5.4's
 * (spec/unit compares them), but a deadline ends them. */
#include "script/internal.h"
#include "script/pattern.h"

/* Raises what stopped the matcher, if anything did. */
ML_RAISES
static void check_problem(lua_State *L, const struct pattern *match)
{
    if (match->stopped)
        script_cpu_check(L);
    if (match->problem[0])
        luaL_error(L, "%s", match->problem);
}

ML_RAISES
static struct ml_str check_string(lua_State *L, int index)
{
    struct ml_str text;
    text.ptr = luaL_checklstring(L, index, &text.len);
    return text;
}

/* A position argument as an offset from 0; beyond the end gives len + 1. */
ML_RAISES
static size_t check_offset(lua_State *L, int index, size_t len)
{
    lua_Integer position = luaL_optinteger(L, index, 1);
    if (position < 0)
        position = position < -(lua_Integer)len ? 1 : (lua_Integer)len + position + 1;
    if (position == 0)
        return 0;
    return position > (lua_Integer)len + 1 ? len + 1 : (size_t)position - 1;
}

/* [-0, +1] Capture `index`, or the whole match start … end when there are none. */
ML_RAISES
static void push_capture(lua_State *L, const struct pattern *match, int index, const char *start,
                         const char *end)
{
    if (index >= match->capture_count) {
        if (index != 0)
            luaL_error(L, "invalid capture index %%%d", index + 1);
        lua_pushlstring(L, start, (size_t)(end - start));
        return;
    }
    const struct pattern_capture *capture = &match->captures[index];
    if (capture->len == PATTERN_UNFINISHED)
        luaL_error(L, "unfinished capture");
    if (capture->len == PATTERN_POSITION)
        lua_pushinteger(L, capture->start - match->subject.ptr + 1);
    else
        lua_pushlstring(L, capture->start, (size_t)capture->len);
}

/* [-0, +n] All captures; without any the whole match, unless `start` is NULL. */
ML_RAISES
static int push_captures(lua_State *L, const struct pattern *match, const char *start,
                         const char *end)
{
    int count = match->capture_count == 0 && start ? 1 : match->capture_count;
    luaL_checkstack(L, count, "too many captures");
    for (int i = 0; i < count; i++)
        push_capture(L, match, i, start, end);
    return count;
}

/* Of one that is too long the matcher says so. */
static bool has_specials(struct ml_str pattern)
{
    if (pattern.len > SCRIPT_PATTERN_MAX)
        return true;
    for (size_t i = 0; i < pattern.len; i++)
        if (memchr("^$*+?.([%-", pattern.ptr[i], 10))
            return true;
    return false;
}

ML_RAISES
static int find_plain(lua_State *L, struct ml_str subject, struct ml_str text, size_t offset)
{
    const char *found = text.len == 0 ? subject.ptr + offset
                                      : memmem(subject.ptr + offset, subject.len - offset, text.ptr,
                                               text.len);
    if (!found) {
        lua_pushnil(L);
        return 1;
    }
    lua_pushinteger(L, found - subject.ptr + 1);
    lua_pushinteger(L, found - subject.ptr + (lua_Integer)text.len);
    return 2;
}

ML_RAISES
static int search(lua_State *L, bool is_find)
{
    struct ml_str subject = check_string(L, 1), pattern = check_string(L, 2);
    size_t offset = check_offset(L, 3, subject.len);
    if (offset > subject.len) {
        lua_pushnil(L);
        return 1;
    }
    if (is_find && (lua_toboolean(L, 4) || !has_specials(pattern)))
        return find_plain(L, subject, pattern, offset);
    bool anchored = pattern.len > 0 && *pattern.ptr == '^';
    if (anchored)
        pattern = (struct ml_str){pattern.ptr + 1, pattern.len - 1};
    struct pattern match;
    pattern_init(&match, subject, script_cpu_expired);
    const char *start = subject.ptr + offset;
    do {
        const char *end = pattern_at(&match, start, pattern);
        check_problem(L, &match);
        if (end && is_find) {
            lua_pushinteger(L, start - subject.ptr + 1);
            lua_pushinteger(L, end - subject.ptr);
            return push_captures(L, &match, NULL, NULL) + 2;
        }
        if (end)
            return push_captures(L, &match, start, end);
    } while (start++ < subject.ptr + subject.len && !anchored);
    lua_pushnil(L);
    return 1;
}

ML_RAISES
static int string_find(lua_State *L)
{
    return search(L, true);
}

ML_RAISES
static int string_match(lua_State *L)
{
    return search(L, false);
}

/* Upvalues: subject, pattern, where to go on, where the last match ended (or -1). */
ML_RAISES
static int gmatch_step(lua_State *L)
{
    struct ml_str subject = check_string(L, lua_upvalueindex(1));
    struct ml_str pattern = check_string(L, lua_upvalueindex(2));
    lua_Integer offset = lua_tointeger(L, lua_upvalueindex(3));
    lua_Integer last = lua_tointeger(L, lua_upvalueindex(4));
    struct pattern match;
    pattern_init(&match, subject, script_cpu_expired);
    for (; offset <= (lua_Integer)subject.len; offset++) {
        const char *end = pattern_at(&match, subject.ptr + offset, pattern);
        check_problem(L, &match);
        if (!end || end - subject.ptr == last)
            continue;
        lua_pushinteger(L, end - subject.ptr);
        lua_copy(L, -1, lua_upvalueindex(3));
        lua_replace(L, lua_upvalueindex(4));
        return push_captures(L, &match, subject.ptr + offset, end);
    }
    lua_pushinteger(L, offset);
    lua_replace(L, lua_upvalueindex(3));
    return 0;
}

ML_RAISES
static int string_gmatch(lua_State *L)
{
    struct ml_str subject = check_string(L, 1);
    check_string(L, 2);
    size_t offset = check_offset(L, 3, subject.len);
    lua_settop(L, 2);
    lua_pushinteger(L, (lua_Integer)offset);
    lua_pushinteger(L, -1);
    lua_pushcclosure(L, gmatch_step, 4);
    return 1;
}

struct substitution {
    const struct pattern *match;
    const char *start, *end; /* of the match at hand */
    struct ml_str text;      /* the replacement, when it is a string */
    int type;
};

/* The replacement string with its %0 … %9 filled in. */
ML_RAISES
static void add_text(lua_State *L, luaL_Buffer *out, const struct substitution *sub)
{
    const char *at = sub->text.ptr, *end = at + sub->text.len, *percent;
    while ((percent = memchr(at, '%', (size_t)(end - at)))) {
        script_cpu_check(L);
        luaL_addlstring(out, at, (size_t)(percent - at));
        char which = percent + 1 < end ? percent[1] : '\0';
        at = percent + (percent + 1 < end ? 2 : 1);
        if (which == '%') {
            luaL_addchar(out, '%');
        } else if (which == '0') {
            luaL_addlstring(out, sub->start, (size_t)(sub->end - sub->start));
        } else if (which >= '1' && which <= '9') {
            push_capture(L, sub->match, which - '1', sub->start, sub->end);
            luaL_tolstring(L, -1, NULL);
            lua_remove(L, -2);
            luaL_addvalue(out);
        } else {
            luaL_error(L, "invalid use of '%%' in replacement string");
        }
    }
    luaL_addlstring(out, at, (size_t)(end - at));
}

/* What the table or function makes of the match; nil and false keep it. */
ML_RAISES
static void add_value(lua_State *L, luaL_Buffer *out, const struct substitution *sub)
{
    if (sub->type == LUA_TTABLE) {
        push_capture(L, sub->match, 0, sub->start, sub->end);
        lua_gettable(L, 3);
    } else {
        lua_pushvalue(L, 3);
        int count = push_captures(L, sub->match, sub->start, sub->end);
        lua_call(L, count, 1);
    }
    if (!lua_toboolean(L, -1)) {
        lua_pop(L, 1);
        luaL_addlstring(out, sub->start, (size_t)(sub->end - sub->start));
    } else if (!lua_isstring(L, -1)) {
        luaL_error(L, "invalid replacement value (a %s)", luaL_typename(L, -1));
    } else {
        luaL_addvalue(out);
    }
}

ML_RAISES
static int string_gsub(lua_State *L)
{
    struct ml_str subject = check_string(L, 1), pattern = check_string(L, 2);
    struct pattern match;
    struct substitution sub = {.match = &match, .type = lua_type(L, 3)};
    luaL_argexpected(L, lua_isstring(L, 3) || sub.type == LUA_TTABLE || sub.type == LUA_TFUNCTION,
                     3, "string/function/table");
    if (lua_isstring(L, 3))
        sub.text = check_string(L, 3);
    lua_Integer most = luaL_optinteger(L, 4, (lua_Integer)subject.len + 1), count = 0;
    bool anchored = pattern.len > 0 && *pattern.ptr == '^';
    if (anchored)
        pattern = (struct ml_str){pattern.ptr + 1, pattern.len - 1};
    const char *at = subject.ptr, *last = NULL;
    luaL_Buffer out;
    luaL_buffinit(L, &out);
    pattern_init(&match, subject, script_cpu_expired);
    while (count < most) {
        const char *end = pattern_at(&match, at, pattern);
        check_problem(L, &match);
        if (end && end != last) {
            count++;
            sub.start = at;
            sub.end = at = last = end;
            if (sub.text.ptr)
                add_text(L, &out, &sub);
            else
                add_value(L, &out, &sub);
        } else if (at < subject.ptr + subject.len) {
            luaL_addchar(&out, *at++);
        } else {
            break;
        }
        if (anchored)
            break;
    }
    luaL_addlstring(&out, at, (size_t)(subject.ptr + subject.len - at));
    luaL_pushresult(&out);
    lua_pushinteger(L, count);
    return 2;
}

ML_RAISES
void script_open_matching(lua_State *L)
{
    static const luaL_Reg functions[] = {{"find", string_find},
                                         {"match", string_match},
                                         {"gmatch", string_gmatch},
                                         {"gsub", string_gsub},
                                         {NULL, NULL}};
    luaL_setfuncs(L, functions, 0);
}
