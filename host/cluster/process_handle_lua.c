/* process.start and its handles. Called by process_lua.c. */
#include "cluster/process_lua_internal.h"

#include "cluster/process_options.h"

#define PROCESS "cluster.process"

/* The functions of the options, as user values in this order. */
static const char *const callbacks[] = {"output", "ended", "started", "errors", "drained"};
enum { ON_OUTPUT = 1, ON_END, ON_START, ON_ERRORS, ON_DRAINED };

/* A full userdata. The registry holds it, under its own address, while it runs. */
struct process {
    struct ml_trusted *trusted;
    struct ml_process *process; /* NULL: it has ended */
};

static void call_output_function(void *context, struct ml_str bytes)
{
    struct process *process = context;
    lua_State *L = process->trusted->running;
    host_push_callback(L, process, ON_OUTPUT);
    lua_pushlstring(L, bytes.ptr, bytes.len);
    host_call_back(process->trusted, 1);
}

static void call_errors_function(void *context, struct ml_str bytes)
{
    struct process *process = context;
    lua_State *L = process->trusted->running;
    host_push_callback(L, process, ON_ERRORS);
    lua_pushlstring(L, bytes.ptr, bytes.len);
    host_call_back(process->trusted, 1);
}

static void call_started_function(void *context)
{
    struct process *process = context;
    host_push_callback(process->trusted->running, process, ON_START);
    host_call_back(process->trusted, 0);
}

static void call_drained_function(void *context)
{
    struct process *process = context;
    host_push_callback(process->trusted->running, process, ON_DRAINED);
    host_call_back(process->trusted, 0);
}

/* [+1] */
static void push_process_end(lua_State *L, const struct ml_process_end *end)
{
    lua_createtable(L, 0, 5);
    lua_pushinteger(L, end->code);
    lua_setfield(L, -2, "code");
    if (end->signo) {
        lua_pushinteger(L, end->signo);
        lua_setfield(L, -2, "signal");
    }
    lua_pushboolean(L, end->started);
    lua_setfield(L, -2, "started");
    lua_pushboolean(L, end->too_many);
    lua_setfield(L, -2, "too_many");
    lua_pushstring(L, end->message);
    lua_setfield(L, -2, "message");
}

static void call_ended_function(void *context, const struct ml_process_end *end)
{
    struct process *process = context;
    struct ml_trusted *trusted = process->trusted;
    lua_State *L = trusted->running;
    host_push_callback(L, process, ON_END);
    push_process_end(L, end);
    ml_process_free(ml_take(&process->process));
    host_release(L, process); /* may be collected from now on */
    host_call_back(trusted, 1);
}

/* The process of options.beside; false when it does not run. */
ML_RAISES static bool check_beside(lua_State *L, struct ml_process_opts *opts)
{
    bool is_given = lua_getfield(L, 1, "beside") != LUA_TNIL;
    const struct process *process = is_given ? luaL_testudata(L, -1, PROCESS) : NULL;
    luaL_argcheck(L, !is_given || process, 1, "beside");
    lua_pop(L, 1);
    if (process)
        opts->beside = process->process;
    return !process || (process->process && ml_process_pid(process->process));
}

/* Sets the functions of the options as user values of the userdata on top. Only output and ended
 * have to be there. */
ML_RAISES static void check_callbacks(lua_State *L, struct ml_process_opts *opts)
{
    bool is_there[ML_COUNT(callbacks) + 1];
    for (int i = ON_OUTPUT; i <= ON_DRAINED; i++) {
        int type = lua_getfield(L, 1, callbacks[i - 1]);
        is_there[i] = type == LUA_TFUNCTION;
        bool may_miss = i >= ON_START && type == LUA_TNIL;
        luaL_argcheck(L, is_there[i] || may_miss, 1, callbacks[i - 1]);
        lua_setiuservalue(L, -2, i);
    }
    opts->output = call_output_function;
    opts->ended = call_ended_function;
    opts->started = is_there[ON_START] ? call_started_function : NULL;
    opts->errors = is_there[ON_ERRORS] ? call_errors_function : NULL;
    opts->drained = is_there[ON_DRAINED] ? call_drained_function : NULL;
}

/* start(options) -> process, or nil and why not */
int process_handle_start(lua_State *L)
{
    struct ml_process_terminal terminal;
    struct ml_process_opts opts = {0};
    struct ml_err err = ML_ERR_INIT;
    process_check_options(L, &opts);
    opts.terminal = process_check_terminal(L, &terminal) ? &terminal : NULL;
    if (!check_beside(L, &opts))
        return host_push_error(L, "the container does not run");
    struct process *process = lua_newuserdatauv(L, sizeof *process, ML_COUNT(callbacks));
    *process = (struct process){.trusted = host_of(L)};
    luaL_setmetatable(L, PROCESS);
    check_callbacks(L, &opts);
    opts.context = process;
    if (ml_process_start(process_library_of(L)->processes, &opts, &process->process, &err) < 0)
        return host_push_error(L, err.message);
    host_hold(L, process);
    return 1;
}

/* process:signal(number): to its group; nothing when it has ended */
ML_RAISES static int process_signal(lua_State *L)
{
    struct process *process = luaL_checkudata(L, 1, PROCESS);
    lua_Integer signo = luaL_checkinteger(L, 2);
    luaL_argcheck(L, signo > 0 && signo < 65, 2, "a signal's number");
    if (process->process)
        ml_process_signal(process->process, (int)signo);
    return 0;
}

/* process:stop(seconds) */
ML_RAISES static int process_stop(lua_State *L)
{
    struct process *process = luaL_checkudata(L, 1, PROCESS);
    int64_t grace = host_check_seconds(L, 2);
    if (process->process)
        ml_process_stop(process->process, grace);
    return 0;
}

/* process:pause(bool) */
ML_RAISES static int process_pause(lua_State *L)
{
    struct process *process = luaL_checkudata(L, 1, PROCESS);
    luaL_checktype(L, 2, LUA_TBOOLEAN);
    if (process->process)
        ml_process_pause(process->process, lua_toboolean(L, 2));
    return 0;
}

/* process:write(bytes) -> how many bytes wait, or nil when more would: nothing was taken then */
ML_RAISES static int process_write(lua_State *L)
{
    struct process *process = luaL_checkudata(L, 1, PROCESS);
    struct ml_str bytes = host_check_str(L, 2);
    size_t waiting = process->process ? ml_process_write(process->process, bytes) : 0;
    if (waiting == ML_PROCESS_INPUT_FULL)
        lua_pushnil(L);
    else
        lua_pushinteger(L, (lua_Integer)waiting);
    return 1;
}

/* process:end_input() */
ML_RAISES static int process_end_input(lua_State *L)
{
    struct process *process = luaL_checkudata(L, 1, PROCESS);
    if (process->process)
        ml_process_end_input(process->process);
    return 0;
}

/* process:resize(columns, rows) */
ML_RAISES static int process_resize(lua_State *L)
{
    struct process *process = luaL_checkudata(L, 1, PROCESS);
    lua_Integer columns = luaL_checkinteger(L, 2), rows = luaL_checkinteger(L, 3);
    luaL_argcheck(L, columns >= 0 && columns <= UINT16_MAX, 2, "0 to 65535");
    luaL_argcheck(L, rows >= 0 && rows <= UINT16_MAX, 3, "0 to 65535");
    if (process->process)
        ml_process_resize(process->process, (uint16_t)columns, (uint16_t)rows);
    return 0;
}

/* process:pid() -> number, or nil when it does not run */
ML_RAISES static int process_pid(lua_State *L)
{
    struct process *process = luaL_checkudata(L, 1, PROCESS);
    int pid = process->process ? ml_process_pid(process->process) : 0;
    if (pid)
        lua_pushinteger(L, pid);
    else
        lua_pushnil(L);
    return 1;
}

/* Called for a running process only when the state is closed: the registry holds it until then. */
static int process_gc(lua_State *L)
{
    struct process *process = lua_touserdata(L, 1);
    ml_process_free(ml_take(&process->process));
    return 0;
}

void process_handle_open(lua_State *L)
{
    static const luaL_Reg methods[] = {{"signal", process_signal},
                                       {"stop", process_stop},
                                       {"pause", process_pause},
                                       {"write", process_write},
                                       {"end_input", process_end_input},
                                       {"resize", process_resize},
                                       {"pid", process_pid},
                                       {NULL, NULL}};
    host_new_type(L, PROCESS, methods, process_gc);
}
