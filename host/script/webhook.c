/* The functions of a script that the API server asks by webhook: default, validate, and those of
 * convert. They run in the main thread and cannot wait; what they read comes from caches. The
 * declaration of them is read here, too. Called by operator/webhook_review.c. */
#include "script/internal.h"

#define SELECTOR_JSON_MAX 4096
#define TIMEOUT_DEFAULT_S 10

/* ---- the declaration ---- */

ML_RAISES static int declare_hook(lua_State *L, int webhooks, const char *field)
{
    int type = script_push_field(L, webhooks, field);
    if (type != LUA_TFUNCTION && type != LUA_TNIL)
        script_refuse_definition(L, field);
    if (type == LUA_TFUNCTION)
        return luaL_ref(L, LUA_REGISTRYINDEX);
    lua_pop(L, 1);
    return LUA_NOREF;
}

/* [-1, +0] With the table { to =, from = } of the version on top. */
ML_RAISES static void declare_conversion(lua_State *L, const char *version)
{
    struct ml_script *script = script_of(L);
    struct ml_script_webhooks *into = &script->declaration.webhooks;
    size_t index = into->version_count;
    if (index == ML_SCRIPT_VERSIONS_MAX || !lua_istable(L, -1))
        script_refuse_definition(L, "convert");
    int conversion = lua_gettop(L);
    script->to_refs[index] = declare_hook(L, conversion, "to");
    script->from_refs[index] = declare_hook(L, conversion, "from");
    if (script->to_refs[index] < 0 || script->from_refs[index] < 0)
        script_refuse_definition(L, "convert");
    into->versions[index] = ml_strdup(version);
    into->version_count++;
    lua_pop(L, 1);
}

ML_RAISES static void declare_conversions(lua_State *L, int webhooks)
{
    if (script_push_field(L, webhooks, "versions") == LUA_TTABLE) {
        int versions = lua_gettop(L);
        if (script_push_field(L, webhooks, "conversions") != LUA_TTABLE)
            script_refuse_definition(L, "convert");
        for (lua_Integer i = 1; lua_rawgeti(L, versions, i) == LUA_TSTRING; i++) {
            const char *version = lua_tostring(L, -1);
            script_push_field(L, versions + 1, version);
            declare_conversion(L, version);
            lua_pop(L, 1);
        }
    }
    lua_settop(L, webhooks);
}

/* [-0, +0] A selector as JSON; NULL when there is none. */
ML_RAISES static void declare_selector(lua_State *L, int settings, const char *field,
                                       const char **out)
{
    struct ml_script *script = script_of(L);
    if (script_push_field(L, settings, field) == LUA_TTABLE) {
        script_encode(L, -1, field, &script->outgoing);
        if (script->outgoing.len > SELECTOR_JSON_MAX || script->outgoing.ptr[0] != '{')
            luaL_error(L,
                       "moonloop.controller: webhooks.%s: expected a label selector of at most "
                       "%d bytes",
                       field, SELECTOR_JSON_MAX);
        *out = ml_str_dup(ml_buf_str(&script->outgoing));
    }
    lua_pop(L, 1);
}

ML_RAISES static void declare_settings(lua_State *L, int webhooks)
{
    struct ml_script_webhooks *into = &script_of(L)->declaration.webhooks;
    if (script_push_field(L, webhooks, "settings") != LUA_TTABLE)
        script_refuse_definition(L, "webhooks");
    int settings = lua_gettop(L);
    script_push_field(L, settings, "failure_policy");
    into->ignores_failure = ml_str_is(script_str(L, -1), "Ignore");
    script_push_field(L, settings, "match_policy");
    into->matches_exactly = ml_str_is(script_str(L, -1), "Exact");
    script_push_field(L, settings, "timeout_seconds");
    lua_Integer seconds = lua_isinteger(L, -1) ? lua_tointeger(L, -1) : TIMEOUT_DEFAULT_S;
    if (seconds < 1 || seconds > 30)
        script_refuse_definition(L, "webhooks.timeout_seconds");
    into->timeout_seconds = (int)seconds;
    declare_selector(L, settings, "namespace_selector", &into->namespace_selector);
    declare_selector(L, settings, "object_selector", &into->object_selector);
    lua_settop(L, webhooks);
}

ML_RAISES void script_declare_webhooks(lua_State *L, int definition)
{
    struct ml_script *script = script_of(L);
    struct ml_script_webhooks *into = &script->declaration.webhooks;
    if (script_push_field(L, definition, "webhooks") == LUA_TTABLE) {
        int webhooks = lua_gettop(L);
        script->default_ref = declare_hook(L, webhooks, "default");
        script->validate_ref = declare_hook(L, webhooks, "validate");
        into->defaults = script->default_ref >= 0;
        into->validates = script->validate_ref >= 0;
        declare_conversions(L, webhooks);
        declare_settings(L, webhooks);
        script_push_library(L, "moonloop.verdict");
        lua_getfield(L, -1, "answer");
        script->answer_ref = luaL_ref(L, LUA_REGISTRYINDEX);
        lua_pop(L, 1);
    }
    lua_pop(L, 1);
}

void script_webhooks_fini(struct ml_script_webhooks *webhooks)
{
    for (size_t i = 0; i < webhooks->version_count; i++)
        free((char *)webhooks->versions[i]);
    free((char *)webhooks->namespace_selector);
    free((char *)webhooks->object_selector);
}

/* ---- the calls ---- */

struct hook_call {
    const char *name; /* for messages: "default", "convert.v1alpha1.to" */
    int function;     /* a reference */
    struct ml_str object;
    struct ml_str old; /* of validate; empty: none */
};

/* [-0, +1] The function of the call. What it returns is encoded at its place. */
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

/* Runs in script_protect: validate, and what moonloop.verdict makes of its result. */
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
    ml_script_index_work(script); /* it cannot wait for an index; what is left is an error there */
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
