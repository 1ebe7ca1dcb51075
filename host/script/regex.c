/* Regular expressions of scripts, for moonloop/regex.lua: the compiled ones that a script keeps,
 * and their matches. Their memory counts as the script's. RE2 cannot be interrupted, so
 * the work of one match has a bound, and the deadline is checked between matches. */
#include "codec/regex.h"
#include "script/environment.h"

#define KEPT_MAX       64                        /* compiled expressions of a script */
#define KEPT_BYTES_MAX ((size_t)2 * 1024 * 1024) /* all together; the one at work may have more */
#define WORK_MAX       ((size_t)2 * 1024 * 1024) /* bytes of text times instructions: 20 ms */

static const char expressions_key;

struct expression {
    struct ml_str pattern; /* lies in Lua's string; ptr NULL: this place is free */
    struct ml_regex *regex;
    size_t charged;
    uint64_t used_at;
};

/* A userdata. Its user value is a list that has two places for each: the pattern, and the names of
 * its groups. */
struct expressions {
    struct ml_budget *budget;
    size_t charged; /* for all */
    uint64_t uses;
    struct expression items[KEPT_MAX];
};

static void release(struct expressions *all, struct expression *item)
{
    ml_regex_free(item->regex);
    ml_budget_give(all->budget, item->charged);
    all->charged -= item->charged;
    *item = (struct expression){0};
}

static int expressions_gc(lua_State *L)
{
    struct expressions *all = lua_touserdata(L, 1);
    for (size_t i = 0; i < KEPT_MAX; i++)
        release(all, &all->items[i]);
    return 0;
}

/* [-0, +1] Those of the script, made on first use. */
ML_RAISES static struct expressions *push_expressions(lua_State *L)
{
    if (lua_rawgetp(L, LUA_REGISTRYINDEX, &expressions_key) == LUA_TUSERDATA)
        return lua_touserdata(L, -1);
    lua_pop(L, 1);
    struct expressions *all = lua_newuserdatauv(L, sizeof *all, 1);
    *all = (struct expressions){.budget = &script_of(L)->memory};
    lua_newtable(L);
    lua_setiuservalue(L, -2, 1);
    lua_createtable(L, 0, 1);
    lua_pushcfunction(L, expressions_gc);
    lua_setfield(L, -2, "__gc");
    lua_setmetatable(L, -2);
    lua_pushvalue(L, -1);
    lua_rawsetp(L, LUA_REGISTRYINDEX, &expressions_key);
    return all;
}

static struct expression *find_expression(struct expressions *all, struct ml_str pattern)
{
    for (size_t i = 0; i < KEPT_MAX; i++)
        if (all->items[i].pattern.ptr && ml_str_eq(all->items[i].pattern, pattern))
            return &all->items[i];
    return NULL;
}

/* Where the list of the user value has the pattern of an expression; the names come next. */
static lua_Integer place_of(const struct expressions *all, const struct expression *item)
{
    return 2 * (item - all->items) + 1;
}

/* [-0, +0] Needs no memory. `expressions`: the stack slot of them all. */
ML_RAISES static void drop(lua_State *L, int expressions, struct expression *item)
{
    struct expressions *all = lua_touserdata(L, expressions);
    if (item->pattern.ptr) {
        lua_getiuservalue(L, expressions, 1);
        for (int i = 0; i < 2; i++) {
            lua_pushnil(L);
            lua_rawseti(L, -2, place_of(all, item) + i);
        }
        lua_pop(L, 1);
    }
    release(all, item);
}

/* The one that has not been used for the longest time. Not `in_use`: or a free place. */
static struct expression *least_used(struct expressions *all, bool in_use)
{
    struct expression *least = NULL;
    for (size_t i = 0; i < KEPT_MAX; i++) {
        struct expression *item = &all->items[i];
        if ((item->regex || !in_use) && (!least || item->used_at < least->used_at))
            least = item;
    }
    return least;
}

/* Charges what the expression at work holds by now. Drops others when all hold too much, and itself
 * when the script has no more memory: then raises. */
ML_RAISES static void settle(lua_State *L, int expressions, struct expression *item)
{
    struct expressions *all = lua_touserdata(L, expressions);
    size_t holds = ml_regex_memory(item->regex);
    if (holds > item->charged && !ml_budget_take(all->budget, holds - item->charged)) {
        drop(L, expressions, item);
        script_raise_out_of_memory(L);
    }
    if (holds < item->charged)
        ml_budget_give(all->budget, item->charged - holds);
    all->charged += holds - item->charged;
    item->charged = holds;
    for (struct expression *least; all->charged > KEPT_BYTES_MAX; drop(L, expressions, least))
        if ((least = least_used(all, true)) == item)
            break;
}

/* regex_compile(pattern, plain, names) -> true | nil, reason, the part of `plain` that is wrong */
ML_RAISES static int host_regex_compile(lua_State *L)
{
    struct ml_str pattern = script_check_str(L, 1), plain = script_check_str(L, 2), part;
    luaL_checktype(L, 3, LUA_TTABLE);
    struct expressions *all = push_expressions(L);
    int expressions = lua_gettop(L);
    struct expression *item = least_used(all, false);
    drop(L, expressions, item);
    item->regex = ml_regex_new(plain, SCRIPT_REGEX_BYTES);
    item->used_at = ++all->uses;
    const char *reason = ml_regex_problem(item->regex, &part);
    if (!reason && ml_regex_groups(item->regex) > ML_REGEX_GROUPS_MAX) {
        reason = "more than 64 groups; write (?:…) for those whose text is not needed";
        part = (struct ml_str){"", 0};
    }
    if (reason) {
        lua_pushnil(L);
        lua_pushstring(L, reason);
        lua_pushlstring(L, part.ptr, part.len);
        release(all, item);
        return 3;
    }
    settle(L, expressions, item);
    lua_getiuservalue(L, expressions, 1);
    lua_pushvalue(L, 1);
    lua_rawseti(L, -2, place_of(all, item));
    lua_pushvalue(L, 3);
    lua_rawseti(L, -2, place_of(all, item) + 1);
    item->pattern = pattern;
    lua_pushboolean(L, true);
    return 1;
}

/* regex_ready(pattern, text) -> names of groups, their number | nil, why the text is too long;
 * nothing: the pattern is not compiled, or no longer */
ML_RAISES static int host_regex_ready(lua_State *L)
{
    struct ml_str pattern = script_check_str(L, 1), text = script_check_str(L, 2);
    struct expressions *all = push_expressions(L);
    struct expression *item = find_expression(all, pattern);
    if (!item)
        return 0;
    size_t most = WORK_MAX / ML_MAX(ml_regex_size(item->regex), 1);
    if (text.len > most) {
        lua_pushnil(L);
        lua_pushfstring(L,
                        "text: %I bytes; for a pattern of this size at most %I: pass a part of it, "
                        "such as a line, or make the pattern smaller",
                        (lua_Integer)text.len, (lua_Integer)most);
        return 2;
    }
    item->used_at = ++all->uses;
    lua_getiuservalue(L, -1, 1);
    lua_rawgeti(L, -1, place_of(all, item) + 1);
    lua_pushinteger(L, (lua_Integer)ml_regex_groups(item->regex));
    return 2;
}

/* [-0, +n] Its place, then its groups; false for one that took no part. */
ML_RAISES static int push_match(lua_State *L, struct ml_str text, const struct ml_str *groups,
                                size_t count)
{
    luaL_checkstack(L, (int)count + 2, NULL);
    lua_pushinteger(L, groups[0].ptr - text.ptr + 1);
    lua_pushinteger(L, groups[0].ptr - text.ptr + (lua_Integer)groups[0].len);
    for (size_t i = 1; i < count; i++)
        if (groups[i].ptr)
            lua_pushlstring(L, groups[i].ptr, groups[i].len);
        else
            lua_pushboolean(L, false);
    return (int)count + 1;
}

/* regex_next(pattern, text, at, before) -> from, to, groups…; nothing: there is no more. `at`: how
 * many bytes to pass over; `before`: where the match before ended, nil: there was none. Right after
 * regex_ready. */
ML_RAISES static int host_regex_next(lua_State *L)
{
    struct ml_str groups[1 + ML_REGEX_GROUPS_MAX];
    lua_settop(L, 4);
    struct expressions *all = push_expressions(L);
    struct expression *item = find_expression(all, script_check_str(L, 1));
    luaL_argcheck(L, item, 1, "not compiled");
    struct ml_regex_walk walk = {.regex = item->regex,
                                 .text = script_check_str(L, 2),
                                 .at = (size_t)luaL_checkinteger(L, 3),
                                 .before = (size_t)luaL_optinteger(L, 4, -1)};
    size_t count = 1 + ml_regex_groups(item->regex);
    enum ml_regex_found found;
    do {
        script_cpu_check(L);
        found = ml_regex_next(&walk, groups, count);
        settle(L, 5, item);
    } while (found == ML_REGEX_AGAIN);
    return found == ML_REGEX_NONE ? 0 : push_match(L, walk.text, groups, count);
}

const luaL_Reg script_regex[] = {{"regex_compile", host_regex_compile},
                                 {"regex_next", host_regex_next},
                                 {"regex_ready", host_regex_ready},
                                 {NULL, NULL}};
