/* The functions that all functions of ctx share: which kind and namespace a call means, whether it
 * may wait, how it fails, the log line of a refused write. Also ctx.log, event and now. */
#include "script/ctx.h"
#include "script/ctx_calls.h"
#include "script/objects.h"

#include <stdio.h>

#define EVENT_TEXT_MAX 253 /* bytes of a name, a kind, a uid */
#define REASON_MAX     128
#define MESSAGE_MAX    1024
#define LEVELS_MAX     16 /* of the stack, searched for the line of a refused write */

ML_RAISES static int failure_index(lua_State *L)
{
    const struct script_failure *failure = script_to_failure(L, 1);
    const char *field = lua_tostring(L, 2);
    if (failure && field && strcmp(field, "kind") == 0)
        lua_pushstring(L, ml_err_name(failure->kind));
    else if (failure && field && strcmp(field, "code") == 0)
        lua_pushinteger(L, failure->http);
    else if (failure && field && strcmp(field, "message") == 0)
        lua_pushstring(L, failure->text + failure->message_at);
    else
        script_missing_field(L, "an error", "error", 2);
    return 1;
}

ML_RAISES static int failure_tostring(lua_State *L)
{
    const struct script_failure *failure = script_to_failure(L, 1);
    lua_pushstring(L, failure ? failure->text : "error");
    return 1;
}

ML_RAISES static int failure_concat(lua_State *L)
{
    script_tolstring(L, 1, NULL);
    script_tolstring(L, 2, NULL);
    lua_concat(L, 2);
    return 1;
}

ML_RAISES void ctx_open_failures(lua_State *L)
{
    static const luaL_Reg methods[] = {{"__index", failure_index},
                                       {"__tostring", failure_tostring},
                                       {"__concat", failure_concat},
                                       {NULL, NULL}};
    luaL_newlib(L, methods);
    script_register_metatable(L, &script_failure_key);
}

ML_RAISES int ctx_fail(lua_State *L, const struct ml_err *err)
{
    struct ml_run *run = script_thread_of(L)->run;
    lua_pushnil(L);
    const struct script_failure *failure = script_push_failure(L, err, run ? run->what : "");
    if (run) {
        free(run->last_failure);
        run->last_failure = ml_strdup(failure->text);
        run->last_failure_at = failure->message_at;
    }
    return 2;
}

ML_RAISES int ctx_answered(lua_State *L, int status ML_UNUSED, lua_KContext context ML_UNUSED)
{
    struct ml_run *run = script_thread_of(L)->run;
    if (run->err)
        return ctx_fail(L, run->err);
    script_push_answer(L, run->body);
    return 1;
}

ML_RAISES struct ctx_kind ctx_kind_of(lua_State *L, const struct ml_gvk *gvk)
{
    const struct ml_script *script = script_of(L);
    const struct ml_declaration *declaration = &script->declaration;
    struct ctx_kind found = {.kind = NULL};
    if (!script->binding.kinds) /* a webhook is served from the start on */
        luaL_error(L, "the caches of this script are not complete yet");
    for (size_t i = 0; i < declaration->kind_count; i++) {
        if (!script_is_same_kind(&declaration->kinds[i].gvk, gvk))
            continue;
        /* A kind may be both owned and watched; then it counts as owned. */
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

ML_RAISES struct ml_str ctx_namespace(lua_State *L, const char *call, const struct ml_kind *kind,
                                      struct ml_str given)
{
    struct ml_err err = ML_ERR_INIT;
    if (given.len > 0 && ml_name_check(given, &err) < 0) /* in a URL, ".." would lead elsewhere */
        luaL_error(L, "%s: the namespace %s", call, err.message);
    if (!kind->namespaced) {
        if (given.len > 0)
            luaL_error(L, "%s: %s is cluster-scoped, it has no namespace", call, kind->kind);
        return (struct ml_str){"", 0};
    }
    struct ml_str ns = given.len > 0 ? given : script_thread_namespace(script_thread_of(L));
    if (ns.len == 0)
        luaL_error(L, "%s: say which namespace; the object at hand has none to default to", call);
    return ns;
}

ML_RAISES void ctx_count_read(lua_State *L)
{
    struct script_thread *thread = script_thread_of(L);
    size_t reads_max = thread->script->limits.reads_max;
    script_cpu_check(L);
    if (thread->reads++ >= reads_max)
        luaL_error(L, "more than %d reads in one reconcile", (int)reads_max);
}

ML_RAISES struct ml_run *ctx_may_wait(lua_State *L, const char *call)
{
    struct ml_run *run = script_thread_of(L)->run;
    if (!run)
        luaL_error(L,
                   "%s: a watch function or a webhook cannot wait for the API server; it reads "
                   "watched kinds only",
                   call);
    if (!lua_isyieldable(L))
        luaL_error(L,
                   "%s: cannot wait inside a function that string.gsub, table.sort or a "
                   "metamethod calls",
                   call);
    return run;
}

ML_RAISES bool ctx_must_wait(lua_State *L, const char *call, const struct ctx_kind *kind)
{
    struct ml_run *run = script_thread_of(L)->run;
    if (!run || !kind->informer ||
        ml_expectations_shown(script_of(L)->binding.expectations, ml_object_key(run->thread.object),
                              kind->informer))
        return false;
    run_wait_for_cache(ctx_may_wait(L, call), kind->informer);
    return true;
}

void ctx_write_key(struct ml_str ns, struct ml_str name, char out[CTX_KEY_MAX])
{
    snprintf(out, CTX_KEY_MAX, ML_STR_FMT "%s" ML_STR_FMT, ML_STR_ARG(ns), ns.len > 0 ? "/" : "",
             ML_STR_ARG(name));
}

void ctx_note_request(struct ml_run *run, const char *verb, const struct ctx_kind *kind,
                      const char *key)
{
    if (run)
        snprintf(run->what, sizeof(run->what), "%s %.64s %s", verb, kind->kind->kind, key);
}

struct ml_object *ctx_cached(const struct ctx_kind *kind, const char *key)
{
    return kind->informer ? ml_store_get(ml_informer_store(kind->informer), ml_str_of(key)) : NULL;
}

/* ctx.now(): wall clock, seconds since 1970. */
ML_RAISES static int ctx_now(lua_State *L)
{
    int64_t now_ns = ml_clock_wall(script_of(L)->services->clock);
    struct ml_run *run = script_thread_of(L)->run;
    if (run)
        run->asked_time = true;
    lua_pushnumber(L, (double)now_ns / (double)ML_NS_PER_S);
    return 1;
}

/* Of the reconciled object, or in a watch function of the one that changed. */
static void write_log_line(const struct script_thread *thread, struct ml_str message,
                           struct ml_str fields)
{
    const struct ml_script *script = thread->script;
    ML_AUTO_FREE char *text = ml_str_dup(message);
    ml_info(script->services->log, script->declaration.name, text,
            ML_OBJECT_FIELDS(script->declaration.name, script->kinds[0].gvk.kind.ptr,
                             script_thread_key(thread)),
            ML_S(thread->run ? "reconcileID" : "", thread->run ? thread->run->id : NULL),
            ML_S(thread->run ? "" : "kind", script->declaration.kinds[thread->kind].gvk.kind.ptr),
            ML_RAW(fields.len > 0 ? "fields" : "", fields));
}

ML_RAISES static int ctx_log(lua_State *L)
{
    struct script_thread *thread = script_thread_of(L);
    struct ml_buf *out = &thread->script->outgoing;
    if (lua_type(L, 1) != LUA_TSTRING)
        return luaL_error(L, LOG_CALL ": expected a message");
    if (!lua_isnoneornil(L, 2) && !lua_istable(L, 2))
        return luaL_error(L, LOG_CALL ": fields: expected a table");
    struct ml_str message = ml_str_head(script_str(L, 1), MESSAGE_MAX), fields = {NULL, 0};
    if (lua_istable(L, 2)) {
        script_encode(L, 2, "fields", out);
        fields = ml_buf_str(out);
    }
    if (thread->log_lines++ < SCRIPT_LOG_LINES_MAX)
        write_log_line(thread, message, fields);
    return 0;
}

/* ---- ctx.event ---- */

/* [-0, +1] Of an object that was read, nothing but this field counts as read. */
ML_RAISES static void push_event_field(lua_State *L, int table, const char *field)
{
    if (lazy_is_pending(L, table))
        lua_getfield(L, table, field);
    else
        script_push_field(L, table, field);
}

/* [-0, +1] A text of an object that an Event names; empty when it is absent. `table`: the object,
 * its metadata, or a reference. */
ML_RAISES static struct ml_str push_event_text(lua_State *L, int table, const char *place,
                                               const char *field)
{
    push_event_field(L, table, field);
    if (lua_isnil(L, -1) || script_is_null(L, -1))
        return (struct ml_str){"", 0};
    if (lua_type(L, -1) != LUA_TSTRING)
        luaL_error(L, EVENT_CALL ": %s: its %s: expected a text, got a %s", place, field,
                   luaL_typename(L, -1));
    struct ml_str text = script_str(L, -1);
    if (text.len > EVENT_TEXT_MAX || !ml_str_is_utf8(text))
        luaL_error(L, EVENT_CALL ": %s: its %s: expected text of at most %d bytes", place, field,
                   EVENT_TEXT_MAX);
    return text;
}

/* An object without a namespace is where ctx would look for it, if the script declares its kind;
 * else it is one without a namespace. */
ML_RAISES static struct ml_str check_event_namespace(lua_State *L, const char *place,
                                                     const struct ml_gvk *gvk, struct ml_str ns)
{
    const struct ml_script *script = script_of(L);
    struct ml_err err = ML_ERR_INIT;
    for (size_t i = 0; i < script->declaration.kind_count; i++)
        if (script_is_same_kind(&script->declaration.kinds[i].gvk, gvk))
            return ctx_namespace(L, EVENT_CALL, script->binding.kinds[i], ns);
    if (ns.len > 0 && ml_name_check(ns, &err) < 0)
        luaL_error(L, EVENT_CALL ": %s: its namespace %s", place, err.message);
    return ns;
}

/* [-0, +n] The object in the option `place`: one that was read, a manifest, or a reference. The
 * texts stay on the stack. Its resourceVersion is left out: to read it would make the run depend
 * on each change of the object. */
ML_RAISES static void read_event_object(lua_State *L, const char *place,
                                        struct ml_event_object *object)
{
    struct ml_gvk gvk;
    struct ml_err err = ML_ERR_INIT;
    int given = lua_gettop(L) + 1;
    if (script_push_field(L, 3, place) == LUA_TNIL)
        return;
    if (!lua_istable(L, given))
        luaL_error(L,
                   EVENT_CALL ": %s: expected an object, or a reference as in { apiVersion = "
                              "\"v1\", kind = \"Node\", name = \"a\" }, got a %s",
                   place, luaL_typename(L, given));
    object->api_version = push_event_text(L, given, place, "apiVersion");
    object->kind = push_event_text(L, given, place, "kind");
    if (!ml_gvk_parse(object->api_version, object->kind, &gvk))
        luaL_error(L, EVENT_CALL ": %s: it needs apiVersion and kind, as in a manifest", place);
    push_event_field(L, given, "metadata");
    int named = lua_istable(L, -1) ? lua_gettop(L) : given;
    object->name = push_event_text(L, named, place, "name");
    if (ml_name_check(object->name, &err) < 0)
        luaL_error(L, EVENT_CALL ": %s: its name %s", place, err.message);
    object->ns = check_event_namespace(L, place, &gvk,
                                       push_event_text(L, named, place, "namespace"));
    object->uid = push_event_text(L, named, place, "uid");
}

ML_RAISES static bool check_is_warning(lua_State *L, int index)
{
    struct ml_str type = script_str(L, index);
    bool is_warning = ml_str_is(type, "Warning");
    if (!is_warning && !ml_str_is(type, "Normal"))
        luaL_error(L, EVENT_CALL ": the type is \"Normal\" or \"Warning\"");
    return is_warning;
}

/* The options at stack index 3: a table, a type alone, or nothing. */
ML_RAISES static void read_event_options(lua_State *L, struct ml_event *event)
{
    if (lua_isnil(L, 3))
        return;
    if (!lua_istable(L, 3)) {
        event->warning = check_is_warning(L, 3);
        return;
    }
    struct ml_event_object about = {.name = {NULL, 0}};
    luaL_checkstack(L, 24, NULL);
    lazy_complete(L, 3);
    script_check_fields(L, EVENT_CALL, "event_options", 3);
    if (script_push_field(L, 3, "type") != LUA_TNIL)
        event->warning = check_is_warning(L, -1);
    read_event_object(L, "about", &about);
    if (about.name.len > 0)
        event->about = about;
    read_event_object(L, "related", &event->related);
}

ML_RAISES int ctx_event(lua_State *L)
{
    struct script_thread *thread = script_thread_of(L);
    if (!thread->run)
        return luaL_error(L, EVENT_CALL ": only while reconciling");
    lua_settop(L, 3);
    struct ml_str reason = script_str(L, 1), note = script_str(L, 2);
    if (!reason.ptr || !note.ptr)
        return luaL_error(L, EVENT_CALL ": expected two strings");
    if (reason.len == 0 || reason.len > REASON_MAX)
        return luaL_error(L, EVENT_CALL ": a reason has 1 to 128 bytes, as in \"PodCreated\"");
    const struct ml_script *script = thread->script;
    struct ml_event event = ml_event_about(script->binding.kinds[0], thread->object);
    event.reason = reason;
    event.note = note;
    event.source = event.controller = ml_str_of(script->declaration.name);
    read_event_options(L, &event);
    if (thread->events++ < SCRIPT_EVENTS_MAX)
        ml_recorder_event(script->services->recorder, &event);
    return 0;
}

const luaL_Reg script_ctx[] = {
    {"event", ctx_event}, {"log", ctx_log}, {"now", ctx_now}, {NULL, NULL}};

/* ---- refused writes ----
 *
 * Each write that the API server, or the host in its place, refuses is logged: the script may drop
 * the error that it gets. */

/* Where the script called, or 0: in its own file, or in what that calls of others. */
static int64_t line_of_call(lua_State *L, const char *file)
{
    lua_Debug at;
    for (int level = 1; level < LEVELS_MAX && lua_getstack(L, level, &at); level++)
        if (lua_getinfo(L, "Sl", &at) && strcmp(at.short_src, file) == 0)
            return at.currentline;
    return 0;
}

/* Scripts expect that somebody else may have made an object first. */
static enum ml_log_level level_of_refusal(const struct ml_err *err)
{
    return strcmp(err->reason, "AlreadyExists") == 0 ? ML_LOG_INFO : ML_LOG_WARN;
}

/* "create Pod default/x", of the object that is reconciled. */
static char *refusal_key(const struct ml_run *run)
{
    return ml_asprintf(ML_STR_FMT " %s", ML_STR_ARG(ml_object_key(run->thread.object)), run->what);
}

static void log_refusal(const struct ml_run *run, const struct ml_err *err, int64_t line)
{
    struct ml_script *script = run->thread.script;
    const struct ml_services *services = script->services;
    ML_AUTO_FREE char *key = refusal_key(run);
    struct ml_repeat *repeat = ml_repeats_get(&script->refusals, ml_str_of(key));
    if (!ml_repeat_failed(repeat, ml_str_of(err->message), ml_clock_monotonic(services->clock)))
        return;
    struct ml_str target = ml_str_of(run->what);
    struct ml_str verb = ml_str_cut(&target, ' '), kind = ml_str_cut(&target, ' ');
    ml_log(services->log, level_of_refusal(err), script->declaration.name,
           "a write of the script was refused",
           ML_OBJECT_FIELDS(script->declaration.name, script->binding.kinds[0]->kind,
                            ml_object_key(run->thread.object)),
           ML_S("reconcileID", run->id), ML_ERR(err), ML_S("errorKind", ml_err_name(err->kind)),
           ML_S("script", script->declaration.file), ML_I(line > 0 ? "line" : "", line),
           ML_STR_FIELD("verb", verb), ML_STR_FIELD("kind", kind), ML_STR_FIELD("target", target),
           ML_S("reason", *err->reason ? err->reason : ml_err_name(err->kind)),
           ML_REPEAT_FIELDS(repeat, -1));
}

ML_RAISES int ctx_refuse_write(lua_State *L, const struct ml_err *err)
{
    struct ml_run *run = script_thread_of(L)->run;
    log_refusal(run, err, line_of_call(L, run->thread.script->declaration.file));
    return ctx_fail(L, err);
}

void ctx_accept_write(struct ml_run *run)
{
    struct ml_script *script = run->thread.script;
    if (script->refusals.by_id.len == 0)
        return;
    ML_AUTO_FREE char *key = refusal_key(run);
    ml_repeats_over(&script->refusals, ml_str_of(key));
}
