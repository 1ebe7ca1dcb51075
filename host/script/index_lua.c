/* The Lua side of indexes (index.h): moonloop.index, and the call of an index's function for one
 * object. declare.c opens and checks them, index.c calls the function. */
#include "script/index.h"

static const char index_key;

struct index_call {
    const struct script_index *index;
    struct ml_object *object;
    struct script_index_keys *keys;
};

ML_RAISES static int refuse_keys(lua_State *L, const struct index_call *call, const char *problem)
{
    return luaL_error(L,
                      "%s: the function of moonloop.index has to return a list of strings, or one, "
                      "or nothing: %s",
                      call->index->place, problem);
}

/* [-1, +0] The key on top. */
ML_RAISES static void add_key(lua_State *L, struct index_call *call)
{
    struct ml_buf *keys = &script_of(L)->outgoing;
    struct ml_str key = script_str(L, -1);
    if (!key.ptr) {
        lua_pushfstring(L, "got a %s", luaL_typename(L, -1));
        refuse_keys(L, call, lua_tostring(L, -1));
    }
    if (key.len > SCRIPT_INDEX_KEY_MAX)
        refuse_keys(L, call, "a key has at most 253 bytes");
    ml_buf_append_str(keys, key);
    call->keys->lens[call->keys->count++] = (uint16_t)key.len;
    lua_pop(L, 1);
}

/* [-1, +0] The list on top. */
ML_RAISES static void add_keys(lua_State *L, struct index_call *call)
{
    int list = lua_gettop(L);
    lazy_complete(L, list);
    lua_Integer count = (lua_Integer)lua_rawlen(L, list);
    if (count > SCRIPT_INDEX_KEYS_MAX)
        refuse_keys(L, call, "an object has at most 64 keys");
    lua_pushnil(L);
    for (lua_Integer seen = 0; lua_next(L, list); seen++) {
        if (seen == count || !lua_isinteger(L, -2))
            refuse_keys(L, call, "this is no list");
        lua_pop(L, 1);
    }
    for (lua_Integer i = 1; i <= count; i++) {
        script_cpu_check(L);
        lua_rawgeti(L, list, i);
        add_key(L, call);
    }
    lua_pop(L, 1);
}

/* Runs in script_protect. */
ML_RAISES static int index_main(lua_State *L)
{
    struct index_call *call = lua_touserdata(L, 1);
    struct ml_buf *keys = &script_of(L)->outgoing;
    lua_rawgeti(L, LUA_REGISTRYINDEX, call->index->function_ref);
    script_push_object(L, call->object, reads_self(script_reads_now(L)));
    lua_call(L, 1, 1);
    ml_buf_clear(keys);
    if (lua_isnil(L, -1))
        return 0;
    if (lua_istable(L, -1))
        add_keys(L, call);
    else
        add_key(L, call);
    script_charge_work(L);
    return 0;
}

int script_index_call(struct ml_script *script, const struct script_index *index,
                      struct ml_object *object, struct script_index_keys *out, struct ml_err *err)
{
    struct index_call call = {.index = index, .object = object, .keys = out};
    out->count = 0;
    script->thread.object = object;
    script->thread.reads = script->thread.log_lines = 0;
    script->index_reads = index->reads;
    int r = script_protect(script, index_main, &call,
                           script->limits.run_cpu_ns / ML_SCRIPT_WHEN_SHARE, err);
    script->index_reads = NULL;
    script->thread.object = NULL;
    return r;
}

/* ---- moonloop.index ---- */

ML_RAISES void script_index_open(lua_State *L)
{
    lua_newtable(L);
    script_register_metatable(L, &index_key);
}

const struct script_index *script_to_index(lua_State *L, int index)
{
    const size_t *number = script_to_userdata(L, index, &index_key);
    return number ? script_of(L)->indexes[*number] : NULL;
}

ML_RAISES static int refuse_index(lua_State *L, const char *problem)
{
    lua_pushnil(L);
    lua_pushstring(L, problem);
    return 2;
}

ML_RAISES int script_index_new(lua_State *L)
{
    struct ml_script *script = script_of(L);
    const struct ml_script_kind *kind = script_to_kind(L, 1);
    if (!kind || lua_type(L, 2) != LUA_TFUNCTION)
        return refuse_index(L, "expected a kind and a function");
    if (!script->files)
        return refuse_index(L, "an index is made while the script loads, at the top of the file");
    if (script->index_count == SCRIPT_INDEXES_MAX)
        return refuse_index(L, "more than 8 indexes");
    size_t *number = script_push_userdata(L, sizeof(*number), &index_key);
    *number = script->index_count;
    lua_pushvalue(L, 1);
    luaL_ref(L, LUA_REGISTRYINDEX); /* the kind's strings live as long as the state */
    lua_pushvalue(L, 2);
    int function_ref = luaL_ref(L, LUA_REGISTRYINDEX);
    lua_pushvalue(L, 2);
    lua_Debug place;
    lua_getinfo(L, ">S", &place);
    char text[SCRIPT_INDEX_PLACE_MAX];
    snprintf(text, sizeof(text), "%s:%d", place.short_src, place.linedefined);
    script_charge(L, sizeof(struct script_index));
    script_index_make(script, &kind->gvk, function_ref, text);
    return 1;
}

ML_RAISES void script_index_check_kinds(lua_State *L)
{
    const struct ml_script *script = script_of(L);
    for (size_t i = 0; i < script->index_count; i++) {
        const struct script_index *index = script->indexes[i];
        bool is_watched = false;
        for (size_t j = 0; j < script->declaration.kind_count; j++)
            is_watched |= script->kinds[j].use != ML_USE_TOUCHES &&
                          script_is_same_kind(&script->kinds[j].gvk, &index->gvk);
        if (!is_watched)
            luaL_error(L,
                       "%s: moonloop.index: %s is not watched, so there is no cache to look it up "
                       "in: add it to owns or watches",
                       index->place, index->gvk.kind.ptr);
    }
}
