/* Predicates: does a change count? They see both states and nothing else, and run to their end at
 * once. Each is asked for each change, and holds up all that follow: it has less time than others.
 */
#include "script/internal.h"

struct when_call {
    size_t index;
    struct ml_object *old, *new;
    bool counts;
};

/* Runs in script_protect. */
ML_RAISES
static int when_main(lua_State *L)
{
    struct when_call *call = lua_touserdata(L, 1);
    const struct ml_script *script = script_of(L);
    lua_rawgeti(L, LUA_REGISTRYINDEX, script->when_refs[call->index]);
    lua_Debug function;
    lua_pushvalue(L, -1);
    lua_getinfo(L, ">S", &function);
    script_push_object(L, call->old);
    script_push_object(L, call->new);
    lua_call(L, 2, 1);
    if (!lua_isboolean(L, -1))
        return luaL_error(L, "%s:%d: when: expected true or false for this change, got %s%s",
                          function.short_src, function.linedefined, lua_isnil(L, -1) ? "" : "a ",
                          lua_isnil(L, -1) ? "nothing" : luaL_typename(L, -1));
    call->counts = lua_toboolean(L, -1);
    return 0;
}

int ml_script_when(struct ml_script *script, size_t index, struct ml_object *old,
                   struct ml_object *new, bool *out_counts, struct ml_err *err)
{
    ml_assert(index < script->declaration.kind_count && script->kinds[index].when_function);
    struct when_call call = {.index = index, .old = old, .new = new};
    script->thread.object = new;
    script->thread.reads = script->thread.log_lines = 0;
    int r = script_protect(script, when_main, &call,
                           script->limits.run_cpu_ns / ML_SCRIPT_WHEN_SHARE, err);
    script->thread.object = NULL;
    if (r == 0)
        *out_counts = call.counts;
    return r;
}
