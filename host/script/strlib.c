/* The string library of the sandbox: stock functions where they cannot be abused, own ones for
 * what can run long or tell addresses. Left out: dump, pack, packsize, unpack. */
#include <lualib.h>
#include <stdio.h>

#include "script/internal.h"

#define SPEC_MAX   32  /* "%-+ #099.99lld" and what is wrong with it */
#define NUMBER_MAX 512 /* %99.99f of the largest double */

ML_RAISES
static int string_rep(lua_State *L)
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
ML_RAISES
static char read_spec(lua_State *L, const char **at, char spec[SPEC_MAX])
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

ML_RAISES
static void add_quoted(lua_State *L, luaL_Buffer *out, int index)
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

ML_RAISES
static void add_string(lua_State *L, luaL_Buffer *out, const char *spec, int index)
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
    if (!strchr(spec, '.') && len >= 100) { /* no width reaches that far */
        luaL_addvalue(out);
        return;
    }
    snprintf(padded, sizeof(padded), conversion, text);
    lua_pop(L, 1);
    luaL_addstring(out, padded);
}

ML_RAISES
static void add_number(lua_State *L, luaL_Buffer *out, const char *spec, char letter, int index)
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

ML_RAISES
static int string_format(lua_State *L)
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
        char spec[SPEC_MAX], letter = read_spec(L, &at, spec);
        if (++argument > arguments)
            return luaL_error(L, "string.format: no value for conversion %d", argument - 1);
        if (letter == 's')
            add_string(L, &out, spec, argument);
        else if (letter == 'q' && spec[1] == '\0')
            add_quoted(L, &out, argument);
        else if (letter != '\0' && strchr("cdixXoaAeEfFgG", letter))
            add_number(L, &out, spec, letter, argument);
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

ML_RAISES
int script_open_string(lua_State *L)
{
    static const char *const stock[] = {"byte",    "char", "len",   "lower",
                                        "reverse", "sub",  "upper", NULL};
    static const luaL_Reg own[] = {{"rep", string_rep}, {"format", string_format}, {NULL, NULL}};
    lua_newtable(L);
    int library = lua_gettop(L);
    lua_pushcfunction(L, luaopen_string);
    lua_call(L, 0, 1);
    for (const char *const *name = stock; *name; name++) {
        lua_getfield(L, -1, *name);
        lua_setfield(L, library, *name);
    }
    lua_pop(L, 1);
    luaL_setfuncs(L, own, 0);
    script_open_matching(L);
    return 1;
}

/* The metatable that all strings share comes from the stock library, made anew each time that is
 * opened, and keeps its arithmetic ("10" + 1). Its methods are those of the sandbox, in a table
 * that no script can reach: the library calls them. */
ML_RAISES
void script_open_string_methods(lua_State *L)
{
    lua_pushliteral(L, "");
    script_open_string(L);
    lua_getmetatable(L, -2);
    lua_insert(L, -2);
    lua_setfield(L, -2, "__index");
    lua_pushboolean(L, 0);
    lua_setfield(L, -2, "__metatable");
    lua_pop(L, 2);
}
