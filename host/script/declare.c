/* How a controller becomes a `struct ml_declaration`. moonloop/init.lua has checked it, with
 * messages that help; here nothing is believed, and what is wrong nevertheless costs the script an
 * error. */
#include "kube/object_diff.h"
#include "script/ctx.h"

ML_RAISES
ML_NORETURN static void refuse(lua_State *L, const char *field)
{
    luaL_error(L, "%s: not a controller of moonloop.controller: look at %s",
               script_of(L)->declaration.file, field);
    ML_UNREACHABLE();
}

/* [-0, +1] A field of the table at `index`, which no metamethod is asked for. */
ML_RAISES
static int push_field(lua_State *L, int index, const char *field)
{
    index = lua_absindex(L, index);
    lua_pushstring(L, field);
    return lua_rawget(L, index);
}

/* The kind on top becomes the declaration's next one. [-1, +0] */
ML_RAISES
static void add_kind(lua_State *L, const char *field, enum ml_script_use use)
{
    struct ml_script *script = script_of(L);
    struct ml_declaration *declaration = &script->declaration;
    const struct ml_script_kind *made = script_to_kind(L, -1);
    if (!made || declaration->kind_count == SCRIPT_KINDS_MAX)
        refuse(L, field);
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
    if (push_field(L, definition, field) != LUA_TTABLE)
        refuse(L, field);
    for (lua_Integer i = 1; lua_rawgeti(L, -1, i) != LUA_TNIL; i++)
        add_kind(L, field, use);
    lua_pop(L, 2);
}

/* The parts that the word on top names; 0: it is none. */
static unsigned parts_of(lua_State *L)
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
    if (lua_type(L, -1) != LUA_TSTRING)
        return 0;
    for (size_t word = 0; word < ML_COUNT(words); word++)
        if (strcmp(lua_tostring(L, -1), words[word].name) == 0)
            return words[word].parts;
    return 0;
}

/* What it takes for a change of the last kind to count: a list of parts, a function, or nil for
 * any. [-1, +0] */
ML_RAISES
static void add_when(lua_State *L)
{
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
    if (!lua_istable(L, -1))
        refuse(L, "when");
    kind->when = 0;
    for (lua_Integer i = 1; lua_rawgeti(L, -1, i) != LUA_TNIL; i++) {
        unsigned parts = parts_of(L);
        if (parts == 0 || i > SCRIPT_WHEN_MAX)
            refuse(L, "when");
        kind->when |= parts;
        lua_pop(L, 1);
    }
    lua_pop(L, 2);
}

ML_RAISES
static void add_watches(lua_State *L, int definition)
{
    struct ml_script *script = script_of(L);
    if (push_field(L, definition, "watches") != LUA_TTABLE)
        refuse(L, "watches");
    for (lua_Integer i = 1; lua_rawgeti(L, -1, i) != LUA_TNIL; i++) {
        if (!lua_istable(L, -1))
            refuse(L, "watches");
        push_field(L, -1, "kind");
        add_kind(L, "watches", ML_USE_WATCHES);
        if (push_field(L, -1, "map") != LUA_TFUNCTION)
            refuse(L, "watches");
        script->map_refs[script->declaration.kind_count - 1] = luaL_ref(L, LUA_REGISTRYINDEX);
        push_field(L, -1, "when");
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
    if (push_field(L, definition, "reconcile") != LUA_TFUNCTION)
        refuse(L, "reconcile");
    lua_pushvalue(L, -1);
    lua_getinfo(L, ">S", &function);
    script->reconcile_line = ML_MAX(function.linedefined, 0);
    script->reconcile_ref = luaL_ref(L, LUA_REGISTRYINDEX);
    script_push_library(L, "moonloop.result");
    lua_getfield(L, -1, "check");
    script->check_ref = luaL_ref(L, LUA_REGISTRYINDEX);
    lua_pop(L, 1);
    script_open_ctx(L);
    script->ctx_ref = luaL_ref(L, LUA_REGISTRYINDEX);
}

/* What the host's own parts call themselves in the log: a script of such a name would speak with
 * their voice. tools/check-operations.lua compares it with the code. */
static const char *const host_loggers[] = {
    "apiserver", "client",   "connect", "credentials", "dev",   "election",
    "host",      "informer", "log",     "scripts",     "shard", "watchdog",
};

static bool is_host_logger(const char *name)
{
    for (size_t i = 0; i < ML_COUNT(host_loggers); i++)
        if (strcmp(name, host_loggers[i]) == 0)
            return true;
    return false;
}

/* A DNS label: it is part of URLs, labels, log lines and metrics. */
static bool name_ok(struct ml_str name)
{
    if (name.len == 0 || name.len > SCRIPT_NAME_MAX)
        return false;
    for (size_t i = 0; i < name.len; i++) {
        char c = name.ptr[i];
        bool inside = c == '-' && i > 0 && i < name.len - 1;
        if (!inside && (c < 'a' || c > 'z') && (c < '0' || c > '9'))
            return false;
    }
    return true;
}

ML_RAISES
static void add_name(lua_State *L, int definition)
{
    struct ml_script *script = script_of(L);
    struct ml_str name;
    if (push_field(L, definition, "name") != LUA_TSTRING)
        refuse(L, "name");
    name.ptr = lua_tolstring(L, -1, &name.len);
    if (!name_ok(name))
        refuse(L, "name");
    if (is_host_logger(name.ptr))
        luaL_error(L,
                   "moonloop.controller: name: a part of the host has the name '%s' in the log; "
                   "give this controller another one",
                   name.ptr);
    script->declaration.name = ml_strdup(name.ptr);
    script->field_manager = ml_asprintf("moonloop-%s", name.ptr);
    lua_pop(L, 1);
}

ML_RAISES
static void add_concurrency(lua_State *L, int definition)
{
    push_field(L, definition, "max_concurrent");
    lua_Integer most = lua_isinteger(L, -1) ? lua_tointeger(L, -1) : 0;
    if (most < 1 || most > SCRIPT_RUNNING_MAX)
        refuse(L, "max_concurrent");
    script_of(L)->declaration.concurrency_max = most;
    lua_pop(L, 1);
}

/* Reads the controller at `index`. */
ML_RAISES
void script_declare(lua_State *L, int index)
{
    struct ml_script *script = script_of(L);
    lua_getiuservalue(L, index, 1);
    int definition = lua_gettop(L);
    if (!lua_istable(L, definition))
        refuse(L, "the table given to it");
    add_name(L, definition);
    add_concurrency(L, definition);
    script->declaration.kinds = script->kinds;
    push_field(L, definition, "reconciles");
    add_kind(L, "reconciles", ML_USE_RECONCILES);
    push_field(L, definition, "when");
    add_when(L);
    add_list(L, definition, "owns", ML_USE_OWNS);
    add_watches(L, definition);
    add_list(L, definition, "uses", ML_USE_TOUCHES);
    add_reconcile(L, definition);
    script->is_controller = true;
    lua_settop(L, definition - 1);
}
