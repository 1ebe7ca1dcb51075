/* cluster.process: starting local processes. */
#include "cluster/process_lua_internal.h"

#define PROCESS   "cluster.process"
#define WORDS_MAX 100000

enum { ON_OUTPUT = 1, ON_END }; /* user values */

/* A full userdata. While it runs the registry holds it, under its own address. */
struct process {
    struct ml_trusted *trusted;
    struct ml_process *process; /* NULL: it has ended */
};

/* [+1] The function that is user value `which` of a process that runs. */
static void push_callback(struct process *process, int which)
{
    lua_State *L = process->trusted->running;
    lua_rawgetp(L, LUA_REGISTRYINDEX, process);
    lua_getiuservalue(L, -1, which);
    lua_remove(L, -2);
}

static void on_output(void *context, struct ml_str bytes)
{
    struct process *process = context;
    push_callback(process, ON_OUTPUT);
    lua_pushlstring(process->trusted->running, bytes.ptr, bytes.len);
    host_call_back(process->trusted, 1);
}

/* [+1] */
static void push_end(lua_State *L, const struct ml_process_end *end)
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

static void on_end(void *context, const struct ml_process_end *end)
{
    struct process *process = context;
    struct ml_trusted *trusted = process->trusted;
    lua_State *L = trusted->running;
    push_callback(process, ON_END);
    push_end(L, end);
    ml_process_free(ml_take(&process->process));
    lua_pushnil(L);
    lua_rawsetp(L, LUA_REGISTRYINDEX, process); /* may be collected from here on */
    host_call_back(trusted, 1);
}

/* [+1] The strings of options[name] as a list that ends with NULL. It lives as long as the
 * userdata that is pushed; the strings, as long as the table. */
ML_RAISES
static const char *const *check_words(lua_State *L, const char *name)
{
    lua_getfield(L, 1, name);
    luaL_argcheck(L, lua_istable(L, -1), 1, name);
    lua_Unsigned count = lua_rawlen(L, -1);
    luaL_argcheck(L, count <= WORDS_MAX, 1, name);
    const char **words = lua_newuserdatauv(L, ((size_t)count + 1) * sizeof(*words), 0);
    for (lua_Unsigned i = 0; i < count; i++) {
        lua_rawgeti(L, -2, (lua_Integer)i + 1);
        if (lua_type(L, -1) != LUA_TSTRING || strlen(lua_tostring(L, -1)) != lua_rawlen(L, -1))
            luaL_error(L, "process.start: %s[%d] is no string without NUL", name, (int)i + 1);
        words[i] = lua_tostring(L, -1); /* the table keeps it */
        lua_pop(L, 1);
    }
    words[count] = NULL;
    lua_remove(L, -2);
    return words;
}

ML_RAISES
static void check_options(lua_State *L, struct ml_process_opts *opts)
{
    luaL_checktype(L, 1, LUA_TTABLE);
    lua_settop(L, 1);
    opts->argv = check_words(L, "argv");
    opts->env = check_words(L, "env");
    luaL_argcheck(L, opts->argv[0], 1, "argv is empty");
    lua_getfield(L, 1, "directory");
    opts->directory = luaL_optstring(L, -1, NULL);
    lua_getfield(L, 1, "count_max");
    lua_Integer count = luaL_optinteger(L, -1, 0);
    luaL_argcheck(L, count >= 0 && count < UINT32_MAX, 1, "count_max");
    opts->count_max = (uint32_t)count;
}

/* start(options) -> process, or nil and why not */
ML_RAISES
static int process_start(lua_State *L)
{
    static const char *const callbacks[] = {[ON_OUTPUT] = "output", [ON_END] = "ended"};
    struct ml_process_opts opts = {.output = on_output, .ended = on_end};
    struct ml_err err = ML_ERR_INIT;
    check_options(L, &opts);
    struct process *process = lua_newuserdatauv(L, sizeof *process, 2);
    *process = (struct process){.trusted = host_of(L)};
    luaL_setmetatable(L, PROCESS);
    for (int i = ON_OUTPUT; i <= ON_END; i++) {
        luaL_argcheck(L, lua_getfield(L, 1, callbacks[i]) == LUA_TFUNCTION, 1, callbacks[i]);
        lua_setiuservalue(L, -2, i);
    }
    opts.context = process;
    if (ml_process_start(process_library(L)->processes, &opts, &process->process, &err) < 0) {
        lua_pushnil(L);
        lua_pushstring(L, err.message);
        return 2;
    }
    lua_pushvalue(L, -1);
    lua_rawsetp(L, LUA_REGISTRYINDEX, process);
    return 1;
}

/* process:signal(number): to its group; nothing when it has ended */
ML_RAISES
static int process_signal(lua_State *L)
{
    struct process *process = luaL_checkudata(L, 1, PROCESS);
    lua_Integer signo = luaL_checkinteger(L, 2);
    luaL_argcheck(L, signo > 0 && signo < 65, 2, "a signal's number");
    if (process->process)
        ml_process_signal(process->process, (int)signo);
    return 0;
}

/* process:stop(seconds) */
ML_RAISES
static int process_stop(lua_State *L)
{
    struct process *process = luaL_checkudata(L, 1, PROCESS);
    double seconds = luaL_checknumber(L, 2);
    luaL_argcheck(L, seconds >= 0 && seconds < 1e9, 2, "seconds, from 0 on");
    if (process->process)
        ml_process_stop(process->process, (int64_t)(seconds * (double)ML_NS_PER_S));
    return 0;
}

/* process:pause(bool) */
ML_RAISES
static int process_pause(lua_State *L)
{
    struct process *process = luaL_checkudata(L, 1, PROCESS);
    luaL_checktype(L, 2, LUA_TBOOLEAN);
    if (process->process)
        ml_process_pause(process->process, lua_toboolean(L, 2));
    return 0;
}

/* process:pid() -> number, or nil when it does not run */
ML_RAISES
static int process_pid(lua_State *L)
{
    struct process *process = luaL_checkudata(L, 1, PROCESS);
    int pid = process->process ? ml_process_pid(process->process) : 0;
    if (pid)
        lua_pushinteger(L, pid);
    else
        lua_pushnil(L);
    return 1;
}

/* Of one that runs only as the state is closed: the registry holds it till then. */
static int process_gc(lua_State *L)
{
    struct process *process = lua_touserdata(L, 1);
    ml_process_free(ml_take(&process->process));
    return 0;
}

static void open_handle(lua_State *L)
{
    static const luaL_Reg methods[] = {{"signal", process_signal},
                                       {"stop", process_stop},
                                       {"pause", process_pause},
                                       {"pid", process_pid},
                                       {NULL, NULL}};
    luaL_newmetatable(L, PROCESS);
    luaL_newlib(L, methods);
    lua_setfield(L, -2, "__index");
    lua_pushcfunction(L, process_gc);
    lua_setfield(L, -2, "__gc");
    lua_pop(L, 1);
}

static void add_functions(lua_State *L, const luaL_Reg *functions)
{
    lua_pushvalue(L, -2); /* the library */
    luaL_setfuncs(L, functions, 1);
}

void ml_trusted_add_processes(struct ml_trusted *trusted, const struct ml_process_library *library)
{
    static const luaL_Reg functions[] = {{"start", process_start}, {NULL, NULL}};
    lua_State *L = trusted->running;
    ml_assert(trusted->options.loop != NULL);
    open_handle(L);
    process_open_checks(L);
    struct ml_process_library *own = lua_newuserdatauv(L, sizeof *own, 0);
    *own = *library;
    lua_newtable(L);
    add_functions(L, functions);
    add_functions(L, process_checks);
    add_functions(L, process_files);
    add_functions(L, process_machines);
    luaL_getsubtable(L, LUA_REGISTRYINDEX, LUA_LOADED_TABLE);
    lua_pushvalue(L, -2);
    lua_setfield(L, -2, "cluster.process");
    lua_pop(L, 3);
}
