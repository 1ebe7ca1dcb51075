/* How a controller, which moonloop/init.lua has checked, becomes a `struct ml_declaration`. */
#include "kube/object_diff.h"
#include "script/ctx.h"

/* The kind on top becomes the declaration's next one. [-1, +0] */
ML_RAISES
static void add_kind(lua_State *L, enum ml_script_use use)
{
    struct ml_script *script = script_of(L);
    struct ml_declaration *declaration = &script->declaration;
    const struct ml_script_kind *made = script_to_kind(L, -1);
    if (!made || declaration->kind_count == SCRIPT_KINDS_MAX)
        luaL_error(L, "%s: not a controller of moonloop.controller", declaration->file);
    size_t index = declaration->kind_count++;
    struct ml_script_kind *kind = &script->kinds[index];
    script->kind_text[index] = ml_alloc(script_kind_text(made));
    script_copy_kind(kind, made, script->kind_text[index]);
    kind->use = use;
    kind->when = ML_PART_ALL;
    lua_pop(L, 1);
}

ML_RAISES
static void add_list(lua_State *L, int definition, const char *field, enum ml_script_use use)
{
    lua_getfield(L, definition, field);
    for (lua_Integer i = 1; lua_rawgeti(L, -1, i) != LUA_TNIL; i++)
        add_kind(L, use);
    lua_pop(L, 2);
}

/* What it takes for a change of the last kind to count: a list of parts, a function, or nil for
 * any. [-1, +0] */
ML_RAISES
static void add_when(lua_State *L)
{
    static const struct {
        const char *name;
        unsigned parts;
    } words[] = {
        {"generation", ML_PART_GENERATION | ML_PART_SPEC},
        {"labels", ML_PART_LABELS},
        {"annotations", ML_PART_ANNOTATIONS},
        {"status", ML_PART_STATUS},
    };
    struct ml_script *script = script_of(L);
    size_t index = script->declaration.kind_count - 1;
    struct ml_script_kind *kind = &script->kinds[index];
    if (lua_isfunction(L, -1)) {
        kind->when_function = true;
        script->when_refs[index] = luaL_ref(L, LUA_REGISTRYINDEX);
        return;
    }
    if (lua_isnil(L, -1)) {
        lua_pop(L, 1);
        return;
    }
    kind->when = 0;
    for (lua_Integer i = 1; lua_rawgeti(L, -1, i) != LUA_TNIL; i++) {
        for (size_t word = 0; word < ML_COUNT(words); word++)
            if (strcmp(luaL_checkstring(L, -1), words[word].name) == 0)
                kind->when |= words[word].parts;
        lua_pop(L, 1);
    }
    lua_pop(L, 2);
}

ML_RAISES
static void add_watches(lua_State *L, int definition)
{
    struct ml_script *script = script_of(L);
    lua_getfield(L, definition, "watches");
    for (lua_Integer i = 1; lua_rawgeti(L, -1, i) != LUA_TNIL; i++) {
        lua_getfield(L, -1, "kind");
        add_kind(L, ML_USE_WATCHES);
        lua_getfield(L, -1, "map");
        script->map_refs[script->declaration.kind_count - 1] = luaL_ref(L, LUA_REGISTRYINDEX);
        lua_getfield(L, -1, "when");
        add_when(L);
        lua_pop(L, 1);
    }
    lua_pop(L, 2);
}

ML_RAISES
static void add_reconcile(lua_State *L, int definition)
{
    struct ml_script *script = script_of(L);
    lua_Debug function;
    lua_getfield(L, definition, "reconcile");
    lua_pushvalue(L, -1);
    lua_getinfo(L, ">S", &function);
    script->reconcile_line = ML_MAX(function.linedefined, 0);
    script->reconcile_ref = luaL_ref(L, LUA_REGISTRYINDEX);
    script_require_name(L, "moonloop.result");
    lua_getfield(L, -1, "check");
    script->check_ref = luaL_ref(L, LUA_REGISTRYINDEX);
    lua_pop(L, 1);
    script_open_ctx(L);
    script->ctx_ref = luaL_ref(L, LUA_REGISTRYINDEX);
}

/* Reads the controller at `index`, which moonloop/init.lua has checked. */
ML_RAISES
void script_declare(lua_State *L, int index)
{
    struct ml_script *script = script_of(L);
    struct ml_declaration *declaration = &script->declaration;
    lua_getiuservalue(L, index, 1);
    int definition = lua_gettop(L);
    luaL_checktype(L, definition, LUA_TTABLE);
    lua_getfield(L, definition, "name");
    declaration->name = ml_strdup(luaL_checkstring(L, -1));
    script->field_manager = ml_asprintf("moonloop-%s", declaration->name);
    lua_getfield(L, definition, "max_concurrent");
    declaration->concurrency_max = luaL_checkinteger(L, -1);
    declaration->kinds = script->kinds;
    lua_getfield(L, definition, "reconciles");
    add_kind(L, ML_USE_RECONCILES);
    lua_getfield(L, definition, "when");
    add_when(L);
    add_list(L, definition, "owns", ML_USE_OWNS);
    add_watches(L, definition);
    add_list(L, definition, "uses", ML_USE_TOUCHES);
    add_reconcile(L, definition);
    script->is_controller = true;
    lua_settop(L, definition - 1);
}
