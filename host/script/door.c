/* The doors from the host into Lua: one lua_pcall, one lua_resume. Each runs on the clock of
 * limits.c, and turns whatever a script raises into a `struct ml_err` and a traceback, without
 * asking Lua for memory or running code of the script while it does so. */
#include "script/failure.h"
#include "script/internal.h"

#define TRACEBACK_LEVELS_MAX 24
#define TRACEBACK_NAME_MAX   64 /* bytes of a function's name; a script may choose a megabyte */

/* "cnat.lua:12: in function 'due'" per level, as luaL_traceback says it, without addresses. */
static void write_traceback(lua_State *L, struct ml_buf *out)
{
    ml_buf_clear(out);
    lua_Debug activation;
    for (int level = 0; level < TRACEBACK_LEVELS_MAX; level++) {
        if (!lua_getstack(L, level, &activation))
            return;
        lua_getinfo(L, "Sln", &activation);
        if (activation.what[0] == 'C')
            ml_buf_puts(out, "[host]: in ");
        else
            ml_buf_printf(out, "%s:%d: in ", activation.short_src, activation.currentline);
        if (activation.name)
            ml_buf_printf(out, "%s '%.*s'\n", activation.namewhat, TRACEBACK_NAME_MAX,
                          activation.name);
        else if (activation.what[0] == 'm')
            ml_buf_puts(out, "main chunk\n");
        else
            ml_buf_printf(out, "function <%d>\n", activation.linedefined);
    }
    ml_buf_puts(out, "...\n");
}

/* The place of the innermost function of the script, "cnat.lua:12: ", or nothing. */
static void write_place(lua_State *L, char *out, size_t size)
{
    lua_Debug activation;
    out[0] = '\0';
    for (int level = 0; lua_getstack(L, level, &activation); level++) {
        lua_getinfo(L, "Sl", &activation);
        if (activation.currentline <= 0 || strncmp(activation.short_src, "moonloop/", 9) == 0)
            continue;
        snprintf(out, size, "%s:%d: ", activation.short_src, activation.currentline);
        return;
    }
}

bool script_has_place(const char *message)
{
    const char *space = strchr(message, ' ');
    const char *colon = memchr(message, ':', space ? (size_t)(space - message) : 0);
    return colon && colon[1] >= '0' && colon[1] <= '9' && space[-1] == ':';
}

static void out_of_memory(const struct ml_script *script, struct ml_err *err)
{
    size_t kib = script->memory.max / 1024;
    bool whole = kib % 1024 == 0;
    ml_err_set(err, ML_ESCRIPT, "out of memory (limit %zu %s)", whole ? kib / 1024 : kib,
               whole ? "MiB" : "KiB");
}

/* What was raised, at the top of the main thread, as one line that begins with its place. Never
 * calls __tostring: no hook watches an error's handler. */
static int describe(struct ml_script *script, int status, struct ml_err *err)
{
    lua_State *L = script->L;
    const struct script_failure *failure = script_to_failure(L, -1);
    if (status == LUA_ERRMEM)
        out_of_memory(script, err);
    else if (failure)
        ml_err_set(err, ML_ESCRIPT, "%s", failure->text);
    else if (lua_type(L, -1) == LUA_TSTRING)
        ml_err_set(err, ML_ESCRIPT, "%s", lua_tostring(L, -1));
    else
        ml_err_set(err, ML_ESCRIPT, "error() was called with a %s instead of a message",
                   luaL_typename(L, -1));
    size_t len = strlen(script->place);
    if (len > 2 && !script_has_place(err->message))
        ml_err_wrap(err, "%.*s", (int)len - 2, script->place);
    return err->kind;
}

static int handler(lua_State *L)
{
    struct ml_script *script = script_of(L);
    write_traceback(L, &script->traceback);
    write_place(L, script->place, sizeof(script->place));
    return 1;
}

static void count_use(struct ml_script *script, int64_t used_ns, bool expired, int status)
{
    script->limit_hit = expired                ? ML_LIMIT_CPU
                        : status == LUA_ERRMEM ? ML_LIMIT_MEMORY
                                               : ML_LIMIT_NONE;
    ml_payer_charge(script->binding.payer, used_ns);
}

int script_protect(struct ml_script *script, lua_CFunction function, void *argument, int64_t cpu_ns,
                   struct ml_err *err)
{
    lua_State *L = script->L;
    int top = lua_gettop(L);
    ml_buf_clear(&script->traceback);
    script->place[0] = '\0';
    if (!lua_checkstack(L, LUA_MINSTACK)) {
        out_of_memory(script, err);
        return err->kind;
    }
    lua_pushcfunction(L, handler);
    lua_pushcfunction(L, function);
    lua_pushlightuserdata(L, argument);
    bool expired;
    script_cpu_begin(L, cpu_ns);
    int status = lua_pcall(L, 1, 0, top + 1);
    int64_t used_ns = script_cpu_end(&expired);
    count_use(script, used_ns, expired, status);
    int r = 0;
    if (status != LUA_OK)
        r = describe(script, status, err);
    else if (expired)
        r = ml_err_set(err, ML_ESCRIPT, "used more than %d ms of CPU time",
                       (int)(cpu_ns / ML_NS_PER_MS));
    lua_settop(L, top);
    return r;
}

static enum script_resumed out_of_time(struct ml_run *run, int64_t budget_ns, const char *within)
{
    run->thread.script->limit_hit = ML_LIMIT_CPU;
    ml_err_set(&run->err, ML_ESCRIPT, "used more than %d ms of CPU time %s",
               (int)(budget_ns / ML_NS_PER_MS), within);
    return SCRIPT_FAILED;
}

enum script_resumed script_resume(struct ml_run *run)
{
    struct ml_script *script = run->thread.script;
    lua_State *L = run->coroutine.L;
    ml_buf_clear(&script->traceback);
    if (run->overdue)
        return out_of_time(run, script->limits.run_cpu_ns, "without waiting");
    if (run->cpu_left_ns <= 0)
        return out_of_time(run, SCRIPT_CPU_IN_ALL * script->limits.run_cpu_ns, "in one reconcile");
    bool expired;
    int results = 0;
    script_cpu_begin(L, ML_MIN(script->limits.run_cpu_ns, run->cpu_left_ns));
    int status = lua_resume(L, NULL, 0, &results);
    int64_t used_ns = script_cpu_end(&expired);
    run->cpu_left_ns -= used_ns;
    count_use(script, used_ns, expired, status);
    if (status != LUA_OK && status != LUA_YIELD) {
        write_traceback(L, &script->traceback); /* it lies there as it fell */
        write_place(L, script->place, sizeof(script->place));
        lua_xmove(L, script->L, 1); /* where there is room to look at it */
        describe(script, status, &run->err);
        lua_settop(script->L, 0);
        if (!script_has_place(run->err.message))
            ml_err_wrap(&run->err, "%s:%d", script->declaration.file, script->reconcile_line);
        return SCRIPT_FAILED;
    }
    lua_pop(L, results);
    if (status == LUA_YIELD) { /* what it waits for goes on: a write's outcome must be known */
        run->overdue = expired;
        return SCRIPT_WAITS;
    }
    if (expired) /* rang between the last instruction and here */
        return out_of_time(run, script->limits.run_cpu_ns, "without waiting");
    return SCRIPT_ENDED;
}
