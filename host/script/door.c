/* The doors from the host into Lua: one lua_pcall, one lua_resume. Each runs on the clock of
 * limits.c, and turns whatever a script raises into a `struct ml_err` and a traceback, without
 * asking Lua for memory or running code of the script while it does so. */
#include "script/ctx.h"
#include "script/internal.h"

#define TRACEBACK_LEVELS_MAX 24

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
            ml_buf_printf(out, "%s '%s'\n", activation.namewhat, activation.name);
        else if (activation.what[0] == 'm')
            ml_buf_puts(out, "main chunk\n");
        else
            ml_buf_printf(out, "function <%d>\n", activation.linedefined);
    }
    ml_buf_puts(out, "...\n");
}

/* The place of the innermost Lua function, "cnat.lua:12: ", or nothing. */
static void write_where(lua_State *L, char *out, size_t size)
{
    lua_Debug activation;
    out[0] = '\0';
    for (int level = 0; lua_getstack(L, level, &activation); level++) {
        lua_getinfo(L, "Sl", &activation);
        if (activation.currentline <= 0)
            continue;
        snprintf(out, size, "%s:%d: ", activation.short_src, activation.currentline);
        return;
    }
}

static int out_of_memory(const struct ml_script *script, const char *where, struct ml_err *err)
{
    size_t kib = script->memory.max / 1024;
    if (kib % 1024 == 0)
        return ml_err_set(err, ML_ESCRIPT, "%sout of memory (limit %zu MiB)", where, kib / 1024);
    return ml_err_set(err, ML_ESCRIPT, "%sout of memory (limit %zu KiB)", where, kib);
}

/* What was raised, as one line. Never calls __tostring: no hook watches an error's handler. */
static int describe(struct ml_script *script, lua_State *L, int status, struct ml_err *err)
{
    if (status == LUA_ERRMEM) {
        char where[LUA_IDSIZE + 16];
        write_where(L, where, sizeof(where));
        return out_of_memory(script, where, err);
    }
    const struct script_failure *failure = script_to_failure(L, -1);
    if (failure)
        return ml_err_set(err, ML_ESCRIPT, "%s", failure->text);
    if (lua_type(L, -1) == LUA_TSTRING)
        return ml_err_set(err, ML_ESCRIPT, "%s", lua_tostring(L, -1));
    return ml_err_set(err, ML_ESCRIPT, "error() was called with a %s instead of a message",
                      luaL_typename(L, -1));
}

static int handler(lua_State *L)
{
    write_traceback(L, &script_of(L)->traceback);
    return 1;
}

int script_protect(struct ml_script *script, lua_CFunction function, void *argument, int64_t cpu_ns,
                   struct ml_err *err)
{
    lua_State *L = script->L;
    int top = lua_gettop(L);
    if (!lua_checkstack(L, LUA_MINSTACK))
        return out_of_memory(script, "", err);
    ml_buf_clear(&script->traceback);
    lua_pushcfunction(L, handler);
    lua_pushcfunction(L, function);
    lua_pushlightuserdata(L, argument);
    bool expired;
    script_cpu_begin(L, cpu_ns);
    int status = lua_pcall(L, 1, 0, top + 1);
    script_cpu_end(&expired);
    int r = 0;
    if (status != LUA_OK)
        r = describe(script, L, status, err);
    else if (expired)
        r = ml_err_set(err, ML_ESCRIPT, "used more than %d ms of CPU time",
                       (int)(cpu_ns / ML_NS_PER_MS));
    lua_settop(L, top);
    return r;
}

enum script_resumed script_resume(struct ml_run *run)
{
    struct ml_script *script = run->thread.script;
    lua_State *L = run->coroutine.L;
    ml_buf_clear(&script->traceback);
    if (run->cpu_left_ns <= 0) {
        ml_err_set(&run->err, ML_ESCRIPT, "used more than %d ms of CPU time in one reconcile",
                   (int)(10 * script->limits.run_cpu_ns / ML_NS_PER_MS));
        return SCRIPT_FAILED;
    }
    bool expired;
    int results = 0;
    script_cpu_begin(L, ML_MIN(script->limits.run_cpu_ns, run->cpu_left_ns));
    int status = lua_resume(L, NULL, 0, &results);
    run->cpu_left_ns -= script_cpu_end(&expired);
    if (status != LUA_OK && status != LUA_YIELD) {
        describe(script, L, status, &run->err);
        write_traceback(L, &script->traceback);
        return SCRIPT_FAILED;
    }
    lua_pop(L, results);
    if (expired && !run->abandoned) { /* rang between the last instruction and here */
        ml_err_set(&run->err, ML_ESCRIPT, "used more than %d ms of CPU time without waiting",
                   (int)(script->limits.run_cpu_ns / ML_NS_PER_MS));
        return SCRIPT_FAILED;
    }
    return status == LUA_OK ? SCRIPT_ENDED : SCRIPT_WAITS;
}
