/* The state of a script that outlives a run: local variables of the files, and the tables of
 * modules. A script that changes any of it may come to another result for the same objects, so its
 * runs have no read sets any more (reads.h). It is collected once a script is loaded, and checked
 * each time that code of the script has run.
 *
 * The registry has an array of all tables and functions that are reached from the reconcile
 * function, the functions of indexes, the environment and the modules, and a userdata with a digest
 * of each: of what is in the table, or in the upvalues of the function. A digest has the addresses
 * of strings, functions, userdata and metatables; so the array holds these as well, in a table at
 * [0]: a freed address that is used again would look like the value that had it first. */
#include <moonloop_lua.h>
#include <stdio.h>

#include "script/environment.h"
#include "script/index.h"
#include "script/objects.h"

#define VALUES_MAX 4096 /* fields and upvalues; a check looks at each, some nanoseconds long */

static const char array_key, digests_key;

struct collection {
    int array, seen, held; /* stack slots: tables and functions found; true for each; the rest */
    size_t count, values, held_count;
};

/* Values of the host that nobody can change. */
ML_RAISES static bool is_constant(lua_State *L, int index)
{
    struct ml_str text;
    return script_to_kind(L, index) || script_is_controller(L, index) ||
           script_number_text(L, index, &text) || script_to_failure(L, index) ||
           script_to_index(L, index);
}

static void end_read_sets(struct ml_script *script, const char *why)
{
    if (!script->outliving_change[0])
        snprintf(script->outliving_change, sizeof script->outliving_change, "%s", why);
}

/* The function on top; most of the libraries' have none. */
static bool has_upvalues(lua_State *L)
{
    bool has = lua_getupvalue(L, -1, 1) != NULL;
    lua_pop(L, has);
    return has;
}

/* [-1, +0] */
ML_RAISES static void hold_value(lua_State *L, struct collection *found)
{
    lua_rawseti(L, found->held, (lua_Integer)++found->held_count);
}

/* [-1, +0] Adds the value on top if it can hold others, and holds it if the collector may free it.
 */
ML_RAISES static void collect_value(lua_State *L, struct collection *found)
{
    int type = lua_type(L, -1);
    script_cpu_check(L);
    if (++found->values > VALUES_MAX)
        end_read_sets(script_of(L), "it keeps more than 4096 values from one run to the next");
    else if (type == LUA_TTHREAD || (type == LUA_TUSERDATA && !is_constant(L, -1)))
        end_read_sets(script_of(L),
                      "it keeps a value of which it cannot be told whether it changes");
    bool holds = type == LUA_TTABLE || (type == LUA_TFUNCTION && has_upvalues(L));
    bool is_freed = type == LUA_TSTRING || type == LUA_TUSERDATA ||
                    (type == LUA_TFUNCTION && !lua_iscfunction(L, -1));
    if (!holds && is_freed && !script_of(L)->outliving_change[0]) {
        hold_value(L, found);
        return;
    }
    lua_pushvalue(L, -1);
    if (!holds || script_of(L)->outliving_change[0] || lua_rawget(L, found->seen) != LUA_TNIL) {
        lua_pop(L, 2);
        return;
    }
    lua_pop(L, 1);
    lua_pushvalue(L, -1);
    lua_pushboolean(L, 1);
    lua_rawset(L, found->seen);
    lua_rawseti(L, found->array, (lua_Integer)++found->count);
}

/* Has the table a metatable of key_order.c, which no script can reach and which changes by itself?
 */
ML_RAISES static bool has_own_metatable(lua_State *L, int index)
{
    if (script_is_array(L, index))
        return true;
    bool is_object = key_order_keys(L, index);
    lua_pop(L, is_object);
    return is_object;
}

/* Adds the fields of the table on top. */
ML_RAISES static void collect_fields(lua_State *L, struct collection *found)
{
    if (lua_getmetatable(L, -1)) {
        if (has_own_metatable(L, -2))
            hold_value(L, found);
        else
            collect_value(L, found);
    }
    lua_pushnil(L);
    while (lua_next(L, -2)) {
        collect_value(L, found);
        lua_pushvalue(L, -1);
        collect_value(L, found);
    }
}

ML_RAISES static void collect_reachable(lua_State *L, struct collection *found)
{
    for (size_t i = 1; i <= found->count && !script_of(L)->outliving_change[0]; i++) {
        int type = lua_rawgeti(L, found->array, (lua_Integer)i);
        if (type == LUA_TTABLE)
            collect_fields(L, found);
        for (int value = 1; type == LUA_TFUNCTION && lua_getupvalue(L, -1, value); value++)
            collect_value(L, found);
        lua_pop(L, 1);
    }
}

ML_RAISES static void keep_digests(lua_State *L, const struct collection *found)
{
    uint64_t *digests = lua_newuserdatauv(L, found->count * sizeof(*digests), 0);
    moonloop_lua_digests(L, found->array, digests, found->count);
    lua_rawsetp(L, LUA_REGISTRYINDEX, &digests_key);
    lua_pushvalue(L, found->held);
    lua_rawseti(L, found->array, 0);
    lua_pushvalue(L, found->array);
    lua_rawsetp(L, LUA_REGISTRYINDEX, &array_key);
    script_of(L)->outliving_count = found->count;
}

ML_RAISES void script_find_outliving_state(lua_State *L)
{
    struct ml_script *script = script_of(L);
    int top = lua_gettop(L);
    struct collection found = {.array = top + 1, .seen = top + 2, .held = top + 3};
    luaL_checkstack(L, 12, NULL);
    lua_newtable(L);
    lua_newtable(L);
    lua_newtable(L);
    lua_rawgeti(L, LUA_REGISTRYINDEX, script->reconcile_ref);
    collect_value(L, &found);
    for (size_t i = 0; i < script->index_count; i++) {
        lua_rawgeti(L, LUA_REGISTRYINDEX, script->indexes[i]->function_ref);
        collect_value(L, &found);
    }
    lua_rawgeti(L, LUA_REGISTRYINDEX, LUA_RIDX_GLOBALS);
    collect_value(L, &found);
    script_push_loaded(L);
    collect_value(L, &found);
    collect_reachable(L, &found);
    if (!script->outliving_change[0])
        keep_digests(L, &found);
    lua_settop(L, top);
}

/* ---- the name of a change ---- */

/* The name of the upvalue of the function on top that holds the value at `held`. NULL: none. */
static const char *name_of_upvalue(lua_State *L, int held)
{
    const char *name;
    for (int i = 1; (name = lua_getupvalue(L, -1, i)); i++) {
        bool is_it = lua_rawequal(L, -1, held);
        lua_pop(L, 1);
        if (is_it)
            return name;
    }
    return NULL;
}

/* An upvalue of the function on top has changed. A digest cannot say which one, so all are named.
 */
static void name_function(lua_State *L, struct ml_script *script)
{
    lua_Debug place = script_place_of_function(L);
    const size_t room = sizeof script->outliving_change;
    int len = snprintf(script->outliving_change, room,
                       "a local variable changed that the function at %s:%d uses:", place.short_src,
                       ML_MAX(place.linedefined, 1));
    const char *name;
    for (int i = 1; (name = lua_getupvalue(L, -1, i)); i++) {
        lua_pop(L, 1);
        if (strcmp(name, "_ENV") != 0 && len < (int)room)
            len += snprintf(script->outliving_change + len, room - (size_t)len, " %.32s", name);
    }
}

/* The table on top has changed: a function that has it as an upvalue gives it a name. */
static void name_table(lua_State *L, struct ml_script *script, int array)
{
    int changed = lua_gettop(L);
    const char *name = NULL;
    end_read_sets(script, "a table changed that outlives the run");
    for (size_t i = 1; i <= script->outliving_count && !name; i++) {
        if (lua_rawgeti(L, array, (lua_Integer)i) == LUA_TFUNCTION)
            name = name_of_upvalue(L, changed);
        if (name) {
            lua_Debug place = script_place_of_function(L);
            snprintf(script->outliving_change, sizeof script->outliving_change,
                     "the table '%.32s' changed, which the function at %s:%d uses", name,
                     place.short_src, ML_MAX(place.linedefined, 1));
        }
        lua_pop(L, 1);
    }
}

void script_check_outliving_state(struct ml_script *script)
{
    lua_State *L = script->L;
    if (script->outliving_count == 0 || script->outliving_change[0])
        return;
    int top = lua_gettop(L), array = top + 1;
    if (!lua_checkstack(L, 8)) {
        end_read_sets(script, "memory");
        return;
    }
    lua_rawgetp(L, LUA_REGISTRYINDEX, &array_key);
    lua_rawgetp(L, LUA_REGISTRYINDEX, &digests_key);
    const uint64_t *digests = lua_touserdata(L, -1);
    size_t changed = moonloop_lua_changed(L, array, digests, script->outliving_count);
    if (changed > 0 && lua_rawgeti(L, array, (lua_Integer)changed) == LUA_TTABLE)
        name_table(L, script, array);
    else if (changed > 0)
        name_function(L, script);
    lua_settop(L, top);
}

const char *ml_script_reads_off(const struct ml_script *script)
{
    return script->outliving_change[0] && !script->declaration.wakes_all ? script->outliving_change
                                                                         : NULL;
}
