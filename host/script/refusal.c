/* Logs each write that the API server, or the host in its place, refuses to a script: the script
 * may drop the error that it gets. Called by ctx_write.c. */
#include "script/ctx.h"

#define LEVELS_MAX 16 /* of the stack, searched for the line */

/* Where the script called, or 0: in its own file, or in what that calls of others. */
static int64_t line_of_call(lua_State *L, const char *file)
{
    lua_Debug at;
    for (int level = 1; level < LEVELS_MAX && lua_getstack(L, level, &at); level++)
        if (lua_getinfo(L, "Sl", &at) && strcmp(at.short_src, file) == 0)
            return at.currentline;
    return 0;
}

/* That somebody else made an object first is what scripts reckon with. */
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
    const struct ml_services *cluster = script->cluster;
    ML_AUTO_FREE char *key = refusal_key(run);
    struct ml_repeat *repeat = ml_repeats_get(&script->refusals, ml_str_of(key));
    if (!ml_repeat_failed(repeat, ml_str_of(err->message), ml_clock_monotonic(cluster->clock)))
        return;
    struct ml_str target = ml_str_of(run->what);
    struct ml_str verb = ml_str_cut(&target, ' '), kind = ml_str_cut(&target, ' ');
    ml_log(cluster->log, level_of_refusal(err), script->declaration.name,
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
