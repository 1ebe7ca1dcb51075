/* The table `ctx`: what of it needs no waiting, and the checks that all its functions share. */
#include "script/ctx.h"

#include <ctype.h>

#define REASON_MAX  128
#define MESSAGE_MAX 1024

ML_RAISES
int ctx_fail(lua_State *L, const struct ml_err *err)
{
    struct ml_operator *run = script_thread_of(L)->run;
    lua_pushnil(L);
    const struct script_failure *failure = script_push_failure(L, err, run ? run->what : "");
    if (run) {
        free(run->last_failure);
        run->last_failure = ml_strdup(failure->text);
    }
    return 2;
}

ML_RAISES
int ctx_abandon(lua_State *L, const struct ml_err *err)
{
    struct ml_operator *run = script_thread_of(L)->run;
    run->err = *err;
    run->abandoned = true;
    return lua_yield(L, 0);
}

ML_RAISES
int ctx_misuse(lua_State *L, const char *call, const char *why)
{
    return luaL_error(L, "%s: %s", call, why);
}

ML_RAISES
struct ctx_kind ctx_kind_of(lua_State *L, const struct ml_gvk *gvk)
{
    const struct ml_script *script = script_of(L);
    const struct ml_declaration *declaration = &script->declaration;
    struct ctx_kind found = {.kind = NULL};
    for (size_t i = 0; i < declaration->kind_count; i++) {
        const struct ml_gvk *declared = &declaration->kinds[i].gvk;
        if (!ml_str_eq(declared->kind, gvk->kind) || !ml_str_eq(declared->group, gvk->group) ||
            !ml_str_eq(declared->version, gvk->version))
            continue;
        /* Owned and watched as well: owned says more. */
        if (found.kind && declaration->kinds[i].use == ML_USE_WATCHES)
            continue;
        found = (struct ctx_kind){i, declaration->kinds[i].use, &declaration->kinds[i].selection,
                                  script->binding.kinds[i], script->binding.informers[i]};
    }
    if (!found.kind) {
        lua_pushlstring(L, gvk->kind.ptr, gvk->kind.len);
        lua_pushlstring(L, gvk->group.ptr, gvk->group.len);
        lua_pushlstring(L, gvk->version.ptr, gvk->version.len);
        luaL_error(L, "%s %s%s%s is not declared: add it to owns, watches or uses",
                   lua_tostring(L, -3), lua_tostring(L, -2), gvk->group.len > 0 ? "/" : "",
                   lua_tostring(L, -1));
    }
    return found;
}

ML_RAISES
struct ctx_kind ctx_check_kind(lua_State *L, int index, const char *call)
{
    const struct ml_script_kind *kind = script_to_kind(L, index);
    if (!kind)
        luaL_error(L, "%s: expected a kind of moonloop.kind(apiVersion, kind), got a %s", call,
                   luaL_typename(L, index));
    return ctx_kind_of(L, &kind->gvk);
}

ML_RAISES
struct ml_str ctx_namespace(lua_State *L, const char *call, const struct ml_kind *kind,
                            struct ml_str given)
{
    if (given.len > 0 && !ml_name_valid(given)) /* in a URL, ".." would lead elsewhere */
        luaL_error(L, "%s: expected the name of a namespace, got one that none can have", call);
    if (!kind->namespaced) {
        if (given.len > 0)
            luaL_error(L, "%s: %s is cluster-scoped, it has no namespace", call, kind->kind);
        return (struct ml_str){"", 0};
    }
    const struct ml_object *object = script_thread_of(L)->object;
    struct ml_str ns = given.len > 0 ? given : ml_object_namespace(object);
    if (ns.len == 0)
        luaL_error(L, "%s: say which namespace; the object at hand has none to default to", call);
    return ns;
}

ML_RAISES
void ctx_count_read(lua_State *L)
{
    struct script_thread *thread = script_thread_of(L);
    size_t reads_max = thread->script->limits.reads_max;
    script_cpu_check(L);
    if (thread->reads++ >= reads_max)
        luaL_error(L, "more than %d reads in one reconcile", (int)reads_max);
}

ML_RAISES
void ctx_count_write(lua_State *L)
{
    struct ml_operator *run = script_thread_of(L)->run;
    size_t writes_max = run->thread.script->limits.writes_max;
    script_cpu_check(L);
    if (run->writes++ >= writes_max)
        luaL_error(L, "more than %d writes in one reconcile", (int)writes_max);
    script_charge_work(L);
}

ML_RAISES
struct ml_operator *ctx_may_wait(lua_State *L, const char *call)
{
    struct ml_operator *run = script_thread_of(L)->run;
    if (!run)
        luaL_error(L,
                   "%s: a watch function cannot wait for the API server; it reads watched "
                   "kinds only",
                   call);
    if (!lua_isyieldable(L))
        luaL_error(L,
                   "%s: cannot wait inside a function that string.gsub, table.sort or a "
                   "metamethod calls",
                   call);
    return run;
}

ML_RAISES
bool ctx_must_wait(lua_State *L, const char *call, const struct ctx_kind *kind)
{
    struct ml_operator *run = script_thread_of(L)->run;
    if (!run || !kind->informer)
        return false;
    for (size_t i = 0; i < run->wrote_count; i++) {
        struct script_wrote *wrote = &run->wrote[i];
        if (wrote->kind != kind->index || wrote->shown ||
            ml_informer_seen(kind->informer, ml_str_of(wrote->ns), wrote->rv))
            continue;
        run_see(ctx_may_wait(L, call), kind, wrote);
        return true;
    }
    return false;
}

/* ctx.now(): wall clock, seconds since 1970. */
ML_RAISES
static int ctx_now(lua_State *L)
{
    int64_t now_ns = ml_clock_wall(script_of(L)->cluster->clock);
    lua_pushnumber(L, (double)now_ns / (double)ML_NS_PER_S);
    return 1;
}

static void log_line(const struct script_thread *thread, struct ml_str message,
                     struct ml_str fields)
{
    struct ml_script *script = thread->script;
    const struct ml_object *object = thread->object;
    char noun[64]; /* the book's log lines have the object under its kind, "at":"example-at" */
    snprintf(noun, sizeof(noun), "%s", script->binding.kinds[0]->kind);
    for (char *c = noun; *c; c++)
        *c = (char)tolower((unsigned char)*c);
    if (!thread->run)
        noun[0] = '\0';
    const struct ml_field line[] = {
        ML_STR_FIELD("namespace", ml_object_namespace(object)),
        ML_STR_FIELD(noun[0] ? noun : "changed", ml_object_name(object)),
        ML_S(thread->run ? "reconcileID" : "", thread->run ? thread->run->id : NULL),
        ML_RAW(fields.len > 0 ? "fields" : NULL, fields),
        {.key = NULL},
    };
    char *text = ml_str_dup(message);
    ml_log_write(script->cluster->log, ML_LOG_INFO, script->declaration.name, text, line);
    free(text);
}

ML_RAISES
static int ctx_log(lua_State *L)
{
    static const char call[] = "ctx.log(message [, fields])";
    struct script_thread *thread = script_thread_of(L);
    struct ml_buf *out = &thread->script->outgoing;
    if (lua_type(L, 1) != LUA_TSTRING)
        return ctx_misuse(L, call, "expected a message");
    if (!lua_isnoneornil(L, 2) && !lua_istable(L, 2))
        return ctx_misuse(L, call, "fields: expected a table");
    struct ml_str message, fields = {NULL, 0};
    message.ptr = lua_tolstring(L, 1, &message.len);
    message = ml_str_head(message, MESSAGE_MAX);
    if (lua_istable(L, 2)) {
        script_encode(L, 2, "fields", out);
        fields = ml_buf_str(out);
    }
    if (thread->log_lines++ < SCRIPT_LOG_LINES_MAX)
        log_line(thread, message, fields);
    return 0;
}

static void record(const struct script_thread *thread, struct ml_str reason, struct ml_str note,
                   bool warning)
{
    const struct ml_script *script = thread->script;
    const struct ml_object *object = thread->object;
    const struct ml_kind *kind = script->binding.kinds[0];
    const struct ml_event event = {
        .api_version = ml_str_of(kind->api_version),
        .kind = ml_str_of(kind->kind),
        .ns = ml_object_namespace(object),
        .name = ml_object_name(object),
        .uid = ml_object_uid(object),
        .rv = ml_object_rv(object),
        .warning = warning,
        .reason = reason,
        .action = ML_STR("Reconcile"),
        .note = note,
        .source = ml_str_of(script->declaration.name),
    };
    ml_recorder_event(script->cluster->recorder, &event);
}

ML_RAISES
static int ctx_event(lua_State *L)
{
    static const char call[] = "ctx.event(reason, note [, \"Warning\"])";
    struct script_thread *thread = script_thread_of(L);
    if (!thread->run)
        return ctx_misuse(L, call, "only while reconciling");
    if (lua_type(L, 1) != LUA_TSTRING || lua_type(L, 2) != LUA_TSTRING)
        return ctx_misuse(L, call, "expected two strings");
    struct ml_str reason, note;
    reason.ptr = lua_tolstring(L, 1, &reason.len);
    note.ptr = lua_tolstring(L, 2, &note.len);
    if (reason.len == 0 || reason.len > REASON_MAX)
        return ctx_misuse(L, call, "a reason has 1 to 128 bytes, as in \"PodCreated\"");
    const char *type = luaL_optstring(L, 3, "Normal");
    if (strcmp(type, "Normal") != 0 && strcmp(type, "Warning") != 0)
        return ctx_misuse(L, call, "the type is \"Normal\" or \"Warning\"");
    if (thread->events++ < SCRIPT_EVENTS_MAX)
        record(thread, reason, note, type[0] == 'W');
    return 0;
}

ML_RAISES
static int ctx_unknown(lua_State *L)
{
    return luaL_error(L,
                      "ctx has no function '%s'; it has get, list, ensure, create, apply, patch, "
                      "delete, event, log, now, invalid, terminal",
                      script_tolstring(L, 2, NULL));
}

ML_RAISES
static int ctx_assigned(lua_State *L)
{
    return luaL_error(L, "ctx cannot be changed");
}

ML_RAISES
int script_open_ctx(lua_State *L)
{
    static const luaL_Reg functions[] = {
        {"event", ctx_event}, {"list", script_ctx_list}, {"log", ctx_log}, {"now", ctx_now},
        {NULL, NULL},
    };
    static const char *const results[] = {"invalid", "terminal", NULL};
    script_open_failures(L);
    luaL_newlib(L, functions);
    luaL_setfuncs(L, script_ctx_read, 0);
    luaL_setfuncs(L, script_ctx_write, 0);
    script_push_library(L, "moonloop.result");
    for (const char *const *name = results; *name; name++) {
        lua_getfield(L, -1, *name);
        lua_setfield(L, -3, *name);
    }
    lua_pop(L, 1);
    lua_createtable(L, 0, 1); /* a name that is none of them */
    lua_pushcfunction(L, ctx_unknown);
    lua_setfield(L, -2, "__index");
    lua_setmetatable(L, -2);
    lua_newtable(L); /* what scripts see stays empty, so that every assignment is noticed */
    lua_createtable(L, 0, 3);
    lua_pushvalue(L, -3);
    lua_setfield(L, -2, "__index");
    lua_pushcfunction(L, ctx_assigned);
    lua_setfield(L, -2, "__newindex");
    lua_pushboolean(L, 0);
    lua_setfield(L, -2, "__metatable");
    lua_setmetatable(L, -2);
    lua_remove(L, -2);
    return 1;
}
