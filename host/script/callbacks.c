/* The functions of a script that the operator calls outside of a reconcile. They run in the main
 * thread and cannot wait; they read from caches only. */
#include "script/environment.h"
#include "script/objects.h"

/* ---- changes ----
 *
 * `when` says whether a change of an object counts, the `map` of a watch says which keys to
 * enqueue. when sees the old and the new object and nothing else. It is called for each change and
 * delays all later ones, so it has less CPU time than the others. */

struct when_call {
    size_t index;
    struct ml_object *old, *new;
    bool counts;
};

/* Runs in script_protect. */
ML_RAISES static int when_main(lua_State *L)
{
    struct when_call *call = lua_touserdata(L, 1);
    const struct ml_script *script = script_of(L);
    lua_rawgeti(L, LUA_REGISTRYINDEX, script->when_refs[call->index]);
    lua_Debug function = script_place_of_function(L);
    script_push_object(L, call->old, 0);
    script_push_object(L, call->new, 0);
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
    script->thread.kind = index;
    script->thread.reads = script->thread.log_lines = 0;
    int r = script_protect(script, when_main, &call,
                           script->limits.run_cpu_ns / ML_SCRIPT_WHEN_SHARE, err);
    script->thread.object = NULL;
    if (r == 0)
        *out_counts = call.counts;
    return r;
}

struct map_call {
    size_t index;
    bool is_list; /* the keys stand in script->outgoing, one a line */
};

ML_RAISES static int refuse_map_keys(lua_State *L, const struct map_call *call, lua_Integer place)
{
    const struct ml_script *script = script_of(L);
    return luaL_error(L,
                      "%s:%d: the watch function for %s returned no list of \"namespace/name\" "
                      "or { namespace =, name = }: look at entry %I",
                      script->declaration.file, script->kinds[call->index].line,
                      script->kinds[call->index].gvk.kind.ptr, place);
}

/* [-1, +1] Replaces the entry on top, a key or { namespace =, name = }, by its key. False: it is
 * neither. */
ML_RAISES static bool entry_to_key(lua_State *L)
{
    if (lua_istable(L, -1)) {
        lazy_complete(L, -1);
        script_push_field(L, -1, "namespace");
        script_push_field(L, -2, "name");
        struct ml_str ns = script_str(L, -2), name = script_str(L, -1);
        if (!ml_name_valid(name) || (ns.len > 0 && !ml_name_valid(ns)))
            return false;
        lua_pushfstring(L, "%s%s%s", ns.len > 0 ? ns.ptr : "", ns.len > 0 ? "/" : "", name.ptr);
        lua_replace(L, -4);
        lua_pop(L, 2);
        return true;
    }
    struct ml_str key = script_str(L, -1);
    if (!key.ptr)
        return false;
    return ml_name_valid(key) ||
           (ml_name_valid(ml_key_namespace(key)) && ml_name_valid(ml_key_name(key)));
}

/* Runs in script_protect. */
ML_RAISES static int map_main(lua_State *L)
{
    struct map_call *call = lua_touserdata(L, 1);
    const struct ml_script *script = script_of(L);
    lua_rawgeti(L, LUA_REGISTRYINDEX, script->map_refs[call->index]);
    script_push_object(L, script->thread.object, 0);
    lua_rawgeti(L, LUA_REGISTRYINDEX, script->ctx_ref);
    lua_call(L, 2, 1);
    if (lua_isnil(L, -1))
        return 0;
    if (!lua_istable(L, -1))
        return refuse_map_keys(L, call, 1);
    int list = lua_gettop(L);
    lazy_complete(L, list);
    lua_Integer count = (lua_Integer)lua_rawlen(L, list);
    lua_pushnil(L);
    if (count == 0 && lua_next(L, list)) /* a single { name = } instead of a list */
        return refuse_map_keys(L, call, 1);
    if (count > SCRIPT_KEYS_MAX)
        return luaL_error(L, "%s:%d: the watch function for %s returned %I names; at most %d",
                          script->declaration.file, script->kinds[call->index].line,
                          script->kinds[call->index].gvk.kind.ptr, (LUAI_UACINT)count,
                          SCRIPT_KEYS_MAX);
    lua_settop(L, list);
    struct ml_buf *keys = &script_of(L)->outgoing;
    ml_buf_clear(keys);
    for (lua_Integer i = 1; i <= count; i++) {
        script_cpu_check(L);
        lua_rawgeti(L, list, i);
        if (!entry_to_key(L))
            return refuse_map_keys(L, call, i);
        ml_buf_puts(keys, lua_tostring(L, -1));
        ml_buf_putc(keys, '\n'); /* a name cannot contain one */
        lua_pop(L, 1);
    }
    call->is_list = true;
    script_charge_work(L);
    return 0;
}

int ml_script_map(struct ml_script *script, size_t index, struct ml_object *object,
                  void (*emit)(void *context, struct ml_str key), void *context, struct ml_err *err)
{
    ml_assert(index < script->declaration.kind_count);
    ml_assert(script->kinds[index].use == ML_USE_WATCHES && script->binding.kinds);
    struct map_call call = {.index = index};
    script->thread.object = object;
    script->thread.kind = index;
    script->thread.reads = script->thread.log_lines = 0;
    int r = script_protect(script, map_main, &call, script->limits.run_cpu_ns, err);
    script->thread.object = NULL;
    if (r < 0 || !call.is_list)
        return r;
    /* Emit from a copy, after Lua has ended: emit may enter Lua again, which reuses `outgoing`. */
    struct ml_str rest = {NULL, script->outgoing.len};
    ML_AUTO_FREE char *keys = ml_buf_take(&script->outgoing);
    for (rest.ptr = keys; rest.len > 0;)
        emit(context, ml_str_cut(&rest, '\n'));
    script_release_work(script, SCRIPT_WORK_KEPT);
    return 0;
}

/* ---- webhooks: default, validate, and the functions of convert ---- */

struct hook_call {
    const char *name; /* for messages: "default", "convert.v1alpha1.to" */
    int function;     /* a reference */
    struct ml_str object;
    struct ml_str old; /* of validate; empty: none */
};

/* [-0, +1] The function of the call. Errors in its result name the line where it begins. */
ML_RAISES static lua_Debug push_hook(lua_State *L, const struct hook_call *call)
{
    lua_rawgeti(L, LUA_REGISTRYINDEX, call->function);
    lua_Debug place = script_place_of_function(L);
    script_thread_of(L)->result_line = ML_MAX(place.linedefined, 1);
    return place;
}

/* Runs in script_protect: default, or a function of convert. It changes the object that it is
 * given, or returns another one. */
ML_RAISES static int change_main(lua_State *L)
{
    const struct hook_call *call = lua_touserdata(L, 1);
    struct ml_buf *out = &script_of(L)->outgoing;
    script_push_answer(L, call->object);
    int given = lua_gettop(L);
    const lua_Debug place = push_hook(L, call);
    lua_pushvalue(L, given);
    lua_call(L, 1, 1);
    if (lua_isnil(L, -1))
        lua_pushvalue(L, given);
    bool is_table = lua_istable(L, -1);
    if (is_table)
        script_encode(L, -1, call->name, out);
    if (!is_table || out->ptr[0] != '{')
        return luaL_error(L,
                          "%s:%d: %s returned a %s; expected the object, or nothing when it was "
                          "changed in place",
                          place.short_src, place.linedefined, call->name,
                          is_table ? "list" : luaL_typename(L, -1));
    return 0;
}

/* Runs in script_protect: validate, and moonloop.validation, which makes an answer of its result.
 */
ML_RAISES static int validate_main(lua_State *L)
{
    const struct hook_call *call = lua_touserdata(L, 1);
    struct ml_script *script = script_of(L);
    lua_rawgeti(L, LUA_REGISTRYINDEX, script->answer_ref);
    int answer = lua_gettop(L);
    lua_pushnil(L); /* for the place */
    const lua_Debug place = push_hook(L, call);
    lua_pushfstring(L, "%s:%d", place.short_src, place.linedefined);
    lua_replace(L, answer + 1);
    script_push_answer(L, call->object);
    if (call->old.len > 0)
        script_push_answer(L, call->old);
    else
        lua_pushnil(L);
    lua_rawgeti(L, LUA_REGISTRYINDEX, script->ctx_ref);
    lua_call(L, 3, LUA_MULTRET);
    lua_call(L, lua_gettop(L) - answer, 1);
    luaL_checktype(L, -1, LUA_TTABLE);
    script_encode(L, -1, "", &script->outgoing);
    return 0;
}

static int call_hook(struct ml_script *script, lua_CFunction main, struct hook_call *call,
                     const struct ml_webhook_object *about, struct ml_buf *out, struct ml_err *err)
{
    struct script_thread *thread = &script->thread;
    ml_assert(!thread->object && call->function > 0);
    ml_script_index_work(script); /* it cannot wait: a lookup in an index with work left raises */
    if (about)
        thread->asked_about = *about;
    thread->kind = 0;
    thread->reads = thread->log_lines = 0;
    ml_buf_clear(&script->outgoing);
    int r = script_protect(script, main, call, script->limits.run_cpu_ns, err);
    thread->asked_about = (struct ml_webhook_object){.ns = {NULL, 0}};
    thread->result_line = 0;
    if (r == 0 && !ml_buf_append_str(out, ml_buf_str(&script->outgoing)))
        r = ml_err_set(err, ML_ESCRIPT, "%s: the answer is larger than %zu bytes", call->name,
                       out->len_max ? out->len_max : ML_BUF_MAX_DEFAULT);
    script_release_work(script, SCRIPT_WORK_KEPT);
    return r;
}

int ml_script_default(struct ml_script *script, const struct ml_webhook_object *about,
                      struct ml_str object, struct ml_buf *out, struct ml_err *err)
{
    struct hook_call call = {.name = "default", .function = script->default_ref, .object = object};
    return call_hook(script, change_main, &call, about, out, err);
}

int ml_script_validate(struct ml_script *script, const struct ml_webhook_object *about,
                       struct ml_str new, struct ml_str old, struct ml_buf *out, struct ml_err *err)
{
    struct hook_call call = {
        .name = "validate", .function = script->validate_ref, .object = new, .old = old};
    return call_hook(script, validate_main, &call, about, out, err);
}

int ml_script_convert(struct ml_script *script, size_t index, bool to, struct ml_str object,
                      struct ml_buf *out, struct ml_err *err)
{
    ml_assert(index < script->declaration.webhooks.version_count);
    ML_AUTO_FREE char *name = ml_asprintf(
        "convert.%s.%s", script->declaration.webhooks.versions[index], to ? "to" : "from");
    struct hook_call call = {
        .name = name,
        .function = to ? script->to_refs[index] : script->from_refs[index],
        .object = object,
    };
    return call_hook(script, change_main, &call, NULL, out, err);
}
