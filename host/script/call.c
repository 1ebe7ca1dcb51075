/* The only two ways from the host into Lua: one lua_pcall, one lua_resume. Each runs under the CPU
 * deadline of limits.c, and turns whatever a script raises into a `struct ml_err` and a traceback.
 * Doing so neither allocates in Lua nor runs code of the script. */
#include "script/internal.h"

static int set_out_of_time(struct ml_err *err, int64_t budget_ns, const char *within)
{
    return ml_err_set(err, ML_ESCRIPT, "used more than %d ms of CPU time %s",
                      (int)(budget_ns / ML_NS_PER_MS), within);
}

static void add_error_place(const struct ml_script *script, struct ml_err *err)
{
    if (*script->place && !script_has_place(err->message))
        ml_err_wrap(err, "%s", script->place);
}

/* The kind of an error that the script raised, and that a call of ctx gave it. Of those that pass
 * by themselves a script gets Network and Timeout alone, of ctx.http: the run then fails as one
 * does for a server that is away. Not with the kind itself, which means that the API server is
 * away. */
static int kind_of_raised(const struct script_failure *failure)
{
    bool passes = failure->kind == ML_ENETWORK || failure->kind == ML_ETIMEOUT;
    return passes ? ML_EUNAVAILABLE : ML_ESCRIPT;
}

/* Fills `err` from the error value on top of the main thread: one line that begins with its place.
 * Never calls __tostring, as no deadline holds here. */
static int describe_error(struct ml_script *script, int status, struct ml_err *err)
{
    lua_State *L = script->L;
    const struct script_failure *failure = script_to_failure(L, -1);
    if (status == LUA_ERRMEM)
        script_out_of_memory(script, err);
    else if (failure)
        ml_err_set(err, kind_of_raised(failure), "%s", failure->text);
    else if (lua_type(L, -1) == LUA_TSTRING)
        ml_err_set(err, ML_ESCRIPT, "%s", lua_tostring(L, -1));
    else
        ml_err_set(err, ML_ESCRIPT, "error() was called with a %s instead of a message",
                   luaL_typename(L, -1));
    add_error_place(script, err);
    return err->kind;
}

/* Once stopped, each pending __close is ended anew; stop_script noted the place that counts. */
static int traceback_handler(lua_State *L)
{
    if (!script_cpu_stopped())
        script_note_place(L);
    return 1;
}

/* Ends the deadline that script_cpu_begin set, and says what the code used, ns. */
static int64_t end_code(struct ml_script *script, int status, enum script_deadline *out_deadline)
{
    int64_t used_ns = script_cpu_end(out_deadline);
    script->limit_hit = *out_deadline != DEADLINE_KEPT ? ML_LIMIT_CPU
                        : status == LUA_ERRMEM         ? ML_LIMIT_MEMORY
                                                       : ML_LIMIT_NONE;
    ml_cpu_account_charge(script->binding.cpu_account, used_ns);
    script->cpu_used_ns = used_ns;
    return used_ns;
}

int script_protect(struct ml_script *script, lua_CFunction function, void *argument, int64_t cpu_ns,
                   struct ml_err *err)
{
    lua_State *L = script->L;
    int top = lua_gettop(L);
    ml_buf_clear(&script->traceback);
    script->place[0] = '\0';
    if (!lua_checkstack(L, LUA_MINSTACK)) {
        script_out_of_memory(script, err);
        return err->kind;
    }
    lua_pushcfunction(L, traceback_handler);
    lua_pushcfunction(L, function);
    lua_pushlightuserdata(L, argument);
    enum script_deadline deadline;
    script_cpu_begin(L, cpu_ns);
    int status = lua_pcall(L, 1, 0, top + 1);
    end_code(script, status, &deadline);
    script_check_outliving_state(script);
    int r = 0;
    if (deadline != DEADLINE_KEPT) { /* it caused all errors that were raised afterwards */
        r = set_out_of_time(err, cpu_ns, "without waiting");
        add_error_place(script, err);
    } else if (status != LUA_OK) {
        r = describe_error(script, status, err);
    }
    lua_settop(L, top);
    return r;
}

/* The run's coroutine died, with its stack as it was; or the deadline ended it, and noted the
 * place. */
static enum script_resumed resume_failed(struct ml_run *run, int status,
                                         enum script_deadline deadline, int64_t budget_ns)
{
    struct ml_script *script = run->thread.script;
    lua_State *L = run->coroutine.L;
    struct ml_err *err = run_make_err(run);
    if (status != LUA_YIELD)
        script_note_place(L);
    if (deadline != DEADLINE_KEPT) {
        set_out_of_time(err, budget_ns, "without waiting");
        add_error_place(script, err);
    } else {
        lua_xmove(L, script->L, 1); /* the coroutine's stack may be full */
        describe_error(script, status, err);
        lua_settop(script->L, 0);
    }
    if (!script_has_place(err->message))
        ml_err_wrap(err, "%s:%d", script->declaration.file, script_run_line(script, run));
    return SCRIPT_FAILED;
}

enum script_resumed script_resume(struct ml_run *run)
{
    struct ml_script *script = run->thread.script;
    lua_State *L = run->coroutine.L;
    ml_buf_clear(&script->traceback);
    script->place[0] = '\0';
    int64_t budget_ns = ML_MIN(script->limits.run_cpu_ns, run->cpu_left_ns);
    if (run->overdue)
        set_out_of_time(run_make_err(run), script->limits.run_cpu_ns, "without waiting");
    else if (budget_ns <= 0)
        set_out_of_time(run_make_err(run), SCRIPT_CPU_IN_ALL * script->limits.run_cpu_ns,
                        "in one reconcile");
    if (run->overdue || budget_ns <= 0) {
        script->limit_hit = ML_LIMIT_CPU;
        return SCRIPT_FAILED;
    }
    enum script_deadline deadline;
    int results = 0;
    script_cpu_begin(L, budget_ns);
    int status = lua_resume(L, NULL, 0, &results);
    run->cpu_left_ns -= end_code(script, status, &deadline);
    script_check_outliving_state(script);
    if (status == LUA_YIELD && deadline != DEADLINE_STOPPED) {
        run->overdue = deadline == DEADLINE_RANG; /* what it waits for goes on: a write's outcome */
        lua_pop(L, results);                      /* has to be known */
        return SCRIPT_WAITS;
    }
    if (status != LUA_OK || deadline != DEADLINE_KEPT)
        return resume_failed(run, status, deadline, budget_ns);
    lua_pop(L, results);
    return SCRIPT_ENDED;
}
