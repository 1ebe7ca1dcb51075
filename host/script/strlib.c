/* The string library of the sandbox: stock functions where they cannot be abused, own ones for
 * what can run long or tell addresses. find, match, gmatch and gsub use the host's own matcher
 * (pattern.h): the same results as Lua 5.4's (spec/unit compares them), but a deadline ends them.
 * Left out: dump, pack, packsize, unpack. */
#include <lualib.h>
#include <stdio.h>

#include "script/environment.h"
#include "script/pattern.h"

#define SPEC_MAX   32  /* longer than "%-+ #099.99lld" */
#define NUMBER_MAX 512 /* %99.99f of the largest double */

/* Raises when the deadline or a bad pattern stopped the matcher. */
ML_RAISES static void raise_pattern_problem(lua_State *L, const struct pattern *match)
{
    if (match->stopped)
        script_cpu_check(L);
    if (match->problem[0])
        luaL_error(L, "%s", match->problem);
}

/* A position argument as an offset from 0; beyond the end gives len + 1. */
ML_RAISES static size_t check_offset(lua_State *L, int index, size_t len)
{
    lua_Integer position = luaL_optinteger(L, index, 1);
    if (position < 0)
        position = position < -(lua_Integer)len ? 1 : (lua_Integer)len + position + 1;
    if (position == 0)
        return 0;
    return position > (lua_Integer)len + 1 ? len + 1 : (size_t)position - 1;
}

/* [-0, +1] Capture `index`, or the whole match start … end when there are none. */
ML_RAISES static void push_capture(lua_State *L, const struct pattern *match, int index,
                                   const char *start, const char *end)
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
ML_RAISES static int push_captures(lua_State *L, const struct pattern *match, const char *start,
                                   const char *end)
{
    int count = match->capture_count == 0 && start ? 1 : match->capture_count;
    luaL_checkstack(L, count, "too many captures");
    for (int i = 0; i < count; i++)
        push_capture(L, match, i, start, end);
    return count;
}

/* Takes a leading '^' away: was there one? */
static bool cut_anchor(struct ml_str *pattern)
{
    bool anchored = pattern->len > 0 && *pattern->ptr == '^';
    pattern->ptr += anchored;
    pattern->len -= anchored;
    return anchored;
}

/* A pattern that is too long goes to the matcher, which refuses it. */
static bool pattern_has_specials(struct ml_str pattern)
{
    if (pattern.len > SCRIPT_PATTERN_MAX)
        return true;
    for (size_t i = 0; i < pattern.len; i++)
        if (memchr("^$*+?.([%-", pattern.ptr[i], 10))
            return true;
    return false;
}

ML_RAISES static int find_plain_text(lua_State *L, struct ml_str subject, struct ml_str text,
                                     size_t offset)
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

ML_RAISES static int find_or_match(lua_State *L, bool is_find)
{
    struct ml_str subject = script_check_str(L, 1), pattern = script_check_str(L, 2);
    size_t offset = check_offset(L, 3, subject.len);
    if (offset > subject.len) {
        lua_pushnil(L);
        return 1;
    }
    if (is_find && (lua_toboolean(L, 4) || !pattern_has_specials(pattern)))
        return find_plain_text(L, subject, pattern, offset);
    bool anchored = cut_anchor(&pattern);
    struct pattern match;
    pattern_init(&match, subject, script_cpu_expired);
    const char *start = subject.ptr + offset;
    do {
        const char *end = pattern_at(&match, start, pattern);
        raise_pattern_problem(L, &match);
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

ML_RAISES static int string_find(lua_State *L)
{
    return find_or_match(L, true);
}

ML_RAISES static int string_match(lua_State *L)
{
    return find_or_match(L, false);
}

/* Upvalues: subject, pattern, where to go on, where the last match ended (or -1). */
ML_RAISES static int gmatch_step(lua_State *L)
{
    struct ml_str subject = script_check_str(L, lua_upvalueindex(1));
    struct ml_str pattern = script_check_str(L, lua_upvalueindex(2));
    lua_Integer offset = lua_tointeger(L, lua_upvalueindex(3));
    lua_Integer last = lua_tointeger(L, lua_upvalueindex(4));
    struct pattern match;
    pattern_init(&match, subject, script_cpu_expired);
    for (; offset <= (lua_Integer)subject.len; offset++) {
        const char *end = pattern_at(&match, subject.ptr + offset, pattern);
        raise_pattern_problem(L, &match);
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

ML_RAISES static int string_gmatch(lua_State *L)
{
    struct ml_str subject = script_check_str(L, 1);
    script_check_str(L, 2);
    size_t offset = check_offset(L, 3, subject.len);
    lua_settop(L, 2);
    lua_pushinteger(L, (lua_Integer)offset);
    lua_pushinteger(L, -1);
    lua_pushcclosure(L, gmatch_step, 4);
    return 1;
}

struct substitution {
    const struct pattern *match;
    const char *start, *end; /* of the current match */
    struct ml_str text;      /* the replacement, when it is a string */
    int type;
};

/* Adds the replacement string with its %0 … %9 filled in. */
ML_RAISES static void gsub_add_text(lua_State *L, luaL_Buffer *out, const struct substitution *sub)
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

/* Adds what the table or function returns for the match; nil and false keep it. */
ML_RAISES static void gsub_add_result(lua_State *L, luaL_Buffer *out,
                                      const struct substitution *sub)
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

ML_RAISES static int string_gsub(lua_State *L)
{
    struct ml_str subject = script_check_str(L, 1), pattern = script_check_str(L, 2);
    struct pattern match;
    struct substitution sub = {.match = &match, .type = lua_type(L, 3)};
    luaL_argexpected(L, lua_isstring(L, 3) || sub.type == LUA_TTABLE || sub.type == LUA_TFUNCTION,
                     3, "string/function/table");
    if (lua_isstring(L, 3))
        sub.text = script_check_str(L, 3);
    lua_Integer most = luaL_optinteger(L, 4, (lua_Integer)subject.len + 1), count = 0;
    bool anchored = cut_anchor(&pattern);
    const char *at = subject.ptr, *last = NULL;
    luaL_Buffer out;
    luaL_buffinit(L, &out);
    pattern_init(&match, subject, script_cpu_expired);
    while (count < most) {
        const char *end = pattern_at(&match, at, pattern);
        raise_pattern_problem(L, &match);
        if (end && end != last) {
            count++;
            sub.start = at;
            sub.end = at = last = end;
            if (sub.text.ptr)
                gsub_add_text(L, &out, &sub);
            else
                gsub_add_result(L, &out, &sub);
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

ML_RAISES static int string_rep(lua_State *L)
{
    size_t len, separator_len;
    const char *text = luaL_checklstring(L, 1, &len);
    lua_Integer count = luaL_checkinteger(L, 2);
    const char *separator = luaL_optlstring(L, 3, "", &separator_len);
    if (count <= 0 || len + separator_len == 0) {
        lua_pushliteral(L, "");
        return 1;
    }
    if (len + separator_len > SCRIPT_STRING_MAX / (size_t)count)
        return luaL_error(L, "string.rep: the result is larger than 1 MiB");
    size_t total = (size_t)count * (len + separator_len) - separator_len;
    luaL_Buffer out;
    char *result = luaL_buffinitsize(L, &out, total);
    memcpy(result, text, len);
    size_t filled = ML_MIN(len + separator_len, total);
    memcpy(result + len, separator, filled - len);
    while (filled < total) { /* each round doubles what is there */
        size_t more = ML_MIN(filled, total - filled);
        memcpy(result + filled, result, more);
        filled += more;
    }
    luaL_pushresultsize(&out, total);
    return 1;
}

/* Copies one conversion, "%-5.2f", with room for a length modifier. Returns its letter. */
ML_RAISES static char format_read_spec(lua_State *L, const char **at, char spec[SPEC_MAX])
{
    const char *start = *at;
    size_t len = strspn(start, "-+ #0");
    if (len > 5)
        luaL_error(L, "string.format: too many flags");
    for (int part = 0; part < 2; part++) { /* width, then precision */
        size_t digits = strspn(start + len, "0123456789");
        if (digits > 2)
            luaL_error(L, "string.format: a width or precision has at most two digits");
        len += digits;
        if (part == 0 && start[len] != '.')
            break;
        len += part == 0;
    }
    spec[0] = '%';
    memcpy(spec + 1, start, len);
    spec[len + 1] = '\0';
    *at = start + len;
    return start[len];
}

ML_RAISES static void format_quoted(lua_State *L, luaL_Buffer *out, int index)
{
    size_t len;
    const char *text = luaL_checklstring(L, index, &len);
    luaL_addchar(out, '"');
    for (size_t i = 0; i < len; i++) {
        char c = text[i], code[8];
        script_cpu_check(L);
        if (c == '"' || c == '\\' || c == '\n') {
            luaL_addchar(out, '\\');
            luaL_addchar(out, c);
        } else if (c == '\r' || c == '\0') {
            bool digit_follows = i + 1 < len && text[i + 1] >= '0' && text[i + 1] <= '9';
            snprintf(code, sizeof(code), digit_follows ? "\\%03d" : "\\%d", c);
            luaL_addstring(out, code);
        } else {
            luaL_addchar(out, c);
        }
    }
    luaL_addchar(out, '"');
}

ML_RAISES static void format_string(lua_State *L, luaL_Buffer *out, const char *spec, int index)
{
    size_t len;
    const char *text = script_tolstring(L, index, &len);
    char padded[NUMBER_MAX];
    if (spec[1] == '\0') {
        luaL_addvalue(out);
        return;
    }
    if (strlen(text) != len)
        luaL_argerror(L, index, "string contains zeros");
    char conversion[SPEC_MAX + 2];
    snprintf(conversion, sizeof(conversion), "%ss", spec);
    if (!strchr(spec, '.') && len >= 100) { /* longer than any width */
        luaL_addvalue(out);
        return;
    }
    snprintf(padded, sizeof(padded), conversion, text);
    lua_pop(L, 1);
    luaL_addstring(out, padded);
}

ML_RAISES static void format_number(lua_State *L, luaL_Buffer *out, const char *spec, char letter,
                                    int index)
{
    char conversion[SPEC_MAX + 4], text[NUMBER_MAX];
    if (letter == 'c') {
        luaL_addchar(out, (char)luaL_checkinteger(L, index));
        return;
    }
    if (strchr("dixXo", letter)) {
        snprintf(conversion, sizeof(conversion), "%sll%c", spec, letter);
        snprintf(text, sizeof(text), conversion, (long long)luaL_checkinteger(L, index));
    } else {
        snprintf(conversion, sizeof(conversion), "%s%c", spec, letter);
        snprintf(text, sizeof(text), conversion, (double)luaL_checknumber(L, index));
    }
    luaL_addstring(out, text);
}

ML_RAISES static int string_format(lua_State *L)
{
    size_t len, total = 0;
    const char *at = luaL_checklstring(L, 1, &len), *end = at + len;
    int argument = 1, arguments = lua_gettop(L);
    luaL_Buffer out;
    luaL_buffinit(L, &out);
    while (at < end) {
        script_cpu_check(L);
        if (*at != '%' || *++at == '%') {
            luaL_addchar(&out, *at++);
            continue;
        }
        char spec[SPEC_MAX], letter = format_read_spec(L, &at, spec);
        if (++argument > arguments)
            return luaL_error(L, "string.format: no value for conversion %d", argument - 1);
        if (letter == 's')
            format_string(L, &out, spec, argument);
        else if (letter == 'q' && spec[1] == '\0')
            format_quoted(L, &out, argument);
        else if (letter != '\0' && strchr("cdixXoaAeEfFgG", letter))
            format_number(L, &out, spec, letter, argument);
        else
            luaL_error(L, "string.format: no conversion '%s%c'", spec, letter ? letter : ' ');
        at++;
        total = luaL_bufflen(&out);
        if (total > SCRIPT_STRING_MAX)
            luaL_error(L, "string.format: the result is larger than 1 MiB");
    }
    luaL_pushresult(&out);
    return 1;
}

ML_RAISES int script_open_string(lua_State *L)
{
    static const char *const stock[] = {"byte",    "char", "len",   "lower",
                                        "reverse", "sub",  "upper", NULL};
    static const luaL_Reg own[] = {
        {"find", string_find}, {"format", string_format}, {"gmatch", string_gmatch},
        {"gsub", string_gsub}, {"match", string_match},   {"rep", string_rep},
        {NULL, NULL},
    };
    luaL_newlib(L, own);
    lua_pushcfunction(L, luaopen_string);
    lua_call(L, 0, 1);
    script_move_fields(L, -2, stock);
    return 1;
}

/* Each luaopen_string makes a new metatable for all strings. It keeps the stock arithmetic ("10" +
 * 1) and gets the sandbox's functions as methods, in a table that no script can reach, as the
 * library calls them, too. */
ML_RAISES void script_open_string_methods(lua_State *L)
{
    lua_pushliteral(L, "");
    script_open_string(L);
    lua_getmetatable(L, -2);
    lua_insert(L, -2);
    lua_setfield(L, -2, "__index");
    script_hide_metatable(L);
    lua_pop(L, 2);
}
