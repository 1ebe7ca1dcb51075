/* cluster.process for the server's Lua, which the kubelet of `moonloop dev` uses: starts local
 * processes, checks that they answer, opens the folders in which pods and volumes live, and says
 * what machine this is. */
#include "cluster/host/lua_modules.h"

#include <arpa/inet.h>
#include <errno.h>
#include <fcntl.h>
#include <ifaddrs.h>
#include <limits.h>
#include <net/if.h>
#include <netdb.h>
#include <stdio.h>
#include <sys/stat.h>
#include <sys/statvfs.h>
#include <sys/utsname.h>
#include <unistd.h>

#include "cluster/host/process_memory.h"
#include "cluster/host/process_path.h"
#include "cluster/host/server_lua_internal.h"
#include "cluster/host/tcp_check.h"

/* The library that the module was opened with; each function has it as its upvalue. */
static const struct ml_process_library *process_library_of(lua_State *L)
{
    return lua_touserdata(L, lua_upvalueindex(1));
}

/* ---- folders in memory ---- */

#define MEMORY         "cluster.process.Memory"
#define MEMORY_FOLDERS 100

struct memory {
    int fd; /* see process_memory.h */
};

/* A number of the table on top, 0 to `max`. */
ML_RAISES static lua_Integer check_number_field(lua_State *L, const char *name, lua_Integer max)
{
    lua_getfield(L, -1, name);
    lua_Integer value = lua_tointeger(L, -1);
    if (!lua_isinteger(L, -1) || value < 0 || value > max)
        luaL_error(L, "process.memory: %s is no number up to %I", name, max);
    lua_pop(L, 1);
    return value;
}

/* Reads the list of so many that is the first argument; its texts belong to the tables there. */
ML_RAISES static void check_memory_folders(lua_State *L, size_t count,
                                           struct ml_memory_folder *folders)
{
    for (size_t i = 0; i < count; i++) {
        luaL_argcheck(L, lua_rawgeti(L, 1, (lua_Integer)i + 1) == LUA_TTABLE, 1, "folders");
        lua_getfield(L, -1, "path");
        folders[i].path = luaL_checkstring(L, -1);
        lua_pop(L, 1);
        folders[i].bytes = (uint64_t)check_number_field(L, "bytes", LUA_MAXINTEGER);
        folders[i].mode = (mode_t)check_number_field(L, "mode", 07777);
        lua_pop(L, 1);
    }
}

/* memory(folders, network) -> what stands for them, or nil and why there are none */
ML_RAISES static int process_memory(lua_State *L)
{
    struct ml_memory_folder folders[MEMORY_FOLDERS];
    struct ml_err err = ML_ERR_INIT;
    luaL_checktype(L, 1, LUA_TTABLE);
    size_t count = (size_t)lua_rawlen(L, 1);
    if (count > MEMORY_FOLDERS)
        return binding_push_error(L, "a pod has more than 100 of them");
    check_memory_folders(L, count, folders);
    int network = lua_network_pod(L, 2);
    luaL_argcheck(L, network >= 0 || lua_isnoneornil(L, 2), 2, "network");
    struct memory *memory = lua_newuserdatauv(L, sizeof *memory, 0);
    memory->fd = -1;
    luaL_setmetatable(L, MEMORY);
    if (ml_memory_folders_new(folders, count, network, &memory->fd, &err) < 0)
        return binding_push_error(L, err.message);
    return 1;
}

/* memory:close(): they go when the last container that has them has ended */
ML_RAISES static int memory_close(lua_State *L)
{
    struct memory *memory = luaL_checkudata(L, 1, MEMORY);
    ml_close_fd(&memory->fd);
    return 0;
}

/* ---- the options of process.start ---- */

#define WORDS_MAX  100000
#define MOUNTS_MAX 1000
#define ID_MAX     INT64_C(4294967294) /* the one above stands for none */

/* [+1] Pushes a userdata with the strings of options[name] as a list that ends with NULL; the
 * strings belong to the table. */
ML_RAISES static const char *const *check_string_list(lua_State *L, const char *name)
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

/* A string without NUL of the table on top; NULL when it is missing and may be. */
ML_RAISES static const char *check_text_field(lua_State *L, const char *name, bool may_miss)
{
    int type = lua_getfield(L, -1, name);
    const char *text = type == LUA_TSTRING ? lua_tostring(L, -1) : NULL; /* the table keeps it */
    bool is_good = text ? strlen(text) == lua_rawlen(L, -1) : may_miss && type == LUA_TNIL;
    if (!is_good)
        luaL_error(L, "process.start: %s is no string without NUL", name);
    lua_pop(L, 1);
    return text;
}

ML_RAISES static bool check_bool_field(lua_State *L, const char *name)
{
    lua_getfield(L, -1, name);
    bool value = lua_toboolean(L, -1);
    lua_pop(L, 1);
    return value;
}

ML_RAISES static uint32_t check_id_field(lua_State *L, const char *name)
{
    lua_getfield(L, -1, name);
    lua_Integer id = lua_tointeger(L, -1);
    if (!lua_isinteger(L, -1) || id < 0 || id > ID_MAX)
        luaL_error(L, "process.start: %s is no number of a user or group", name);
    lua_pop(L, 1);
    return (uint32_t)id;
}

/* [+1] Pushes a userdata with the mounts of the table on top. */
ML_RAISES static void check_mounts(lua_State *L, struct ml_process_container *container)
{
    int list = lua_gettop(L) + 1;
    if (lua_getfield(L, -1, "mounts") != LUA_TTABLE)
        luaL_error(L, "process.start: mounts is no list");
    lua_Unsigned count = lua_rawlen(L, list);
    luaL_argcheck(L, count <= MOUNTS_MAX, 1, "too many mounts");
    struct ml_process_mount *mounts = lua_newuserdatauv(L, ((size_t)count + 1) * sizeof(*mounts),
                                                        0);
    for (lua_Unsigned i = 0; i < count; i++) {
        luaL_argcheck(L, lua_rawgeti(L, list, (lua_Integer)i + 1) == LUA_TTABLE, 1, "mounts");
        mounts[i].source = check_text_field(L, "source", true);
        mounts[i].subpath = check_text_field(L, "subpath", true);
        mounts[i].target = check_text_field(L, "target", false);
        mounts[i].read_only = check_bool_field(L, "read_only");
        lua_pop(L, 1);
    }
    container->mounts = mounts;
    container->mount_count = (size_t)count;
    lua_remove(L, list);
}

/* [+3] The container of the options, if there is one. */
ML_RAISES static void check_container(lua_State *L, struct ml_process_opts *opts)
{
    int type = lua_getfield(L, 1, "container");
    luaL_argcheck(L, type == LUA_TTABLE || type == LUA_TNIL, 1, "container");
    if (type == LUA_TNIL)
        return;
    struct ml_process_container *container = lua_newuserdatauv(L, sizeof *container, 0);
    lua_insert(L, -2);
    *container = (struct ml_process_container){
        .root = check_text_field(L, "root", false),
        .hostname = check_text_field(L, "hostname", false),
        .user = check_id_field(L, "user"),
        .group = check_id_field(L, "group"),
        .read_only = check_bool_field(L, "read_only"),
    };
    check_mounts(L, container);
    opts->container = container;
}

/* A number of the table on top; 0 when it is missing. */
ML_RAISES static uint16_t check_size_field(lua_State *L, const char *name)
{
    lua_getfield(L, -1, name);
    lua_Integer size = luaL_optinteger(L, -1, 0);
    if (size < 0 || size > UINT16_MAX)
        luaL_error(L, "process.start: terminal.%s is not 0 to 65535", name);
    lua_pop(L, 1);
    return (uint16_t)size;
}

/* The terminal of the options; false when there is none. */
ML_RAISES static bool check_terminal(lua_State *L, struct ml_process_terminal *terminal)
{
    int type = lua_getfield(L, 1, "terminal");
    luaL_argcheck(L, type == LUA_TTABLE || type == LUA_TNIL, 1, "terminal");
    if (type == LUA_TTABLE) {
        terminal->rows = check_size_field(L, "rows");
        terminal->columns = check_size_field(L, "columns");
    }
    lua_pop(L, 1);
    return type == LUA_TTABLE;
}

/* Reads the table that is the only argument: argv, env, directory, count_max, container,
 * network, memory, input. Raises for what is wrong. Everything belongs to the table, and to what is
 * pushed for it; callbacks and `beside` are left alone. [+?] */
ML_RAISES static void check_options(lua_State *L, struct ml_process_opts *opts)
{
    luaL_checktype(L, 1, LUA_TTABLE);
    lua_settop(L, 1);
    opts->argv = check_string_list(L, "argv");
    opts->env = check_string_list(L, "env");
    luaL_argcheck(L, opts->argv[0], 1, "argv is empty");
    lua_getfield(L, 1, "directory");
    opts->directory = luaL_optstring(L, -1, NULL);
    lua_getfield(L, 1, "count_max");
    lua_Integer count = luaL_optinteger(L, -1, 0);
    luaL_argcheck(L, count >= 0 && count < UINT32_MAX, 1, "count_max");
    opts->count_max = (uint32_t)count;
    lua_getfield(L, 1, "input");
    opts->has_input = lua_toboolean(L, -1);
    check_container(L, opts);
    int type = lua_getfield(L, 1, "network");
    opts->network = lua_network_pod(L, -1);
    opts->has_network = opts->network >= 0;
    luaL_argcheck(L, type == LUA_TNIL || (opts->has_network && opts->container), 1, "network");
    lua_pop(L, 1);
    type = lua_getfield(L, 1, "memory");
    const struct memory *memory = luaL_testudata(L, -1, MEMORY);
    luaL_argcheck(L, type == LUA_TNIL || (memory && opts->container), 1, "memory");
    lua_pop(L, 1);
    opts->has_memory = memory != NULL;
    opts->memory = memory ? memory->fd : -1;
}

/* ---- process.start and its handles ---- */

#define PROCESS "cluster.process"

/* The functions of the options, as user values in this order. */
static const char *const callbacks[] = {"output", "ended", "started", "errors", "drained"};
enum { ON_OUTPUT = 1, ON_END, ON_START, ON_ERRORS, ON_DRAINED };

/* A full userdata. The registry holds it, under its own address, while it runs. */
struct process {
    struct ml_server_lua *lua;
    struct ml_process *process; /* NULL: it has ended */
};

static void call_with_bytes(struct process *process, int which, struct ml_str bytes)
{
    lua_State *L = process->lua->running;
    binding_push_callback(L, process, which);
    lua_pushlstring(L, bytes.ptr, bytes.len);
    binding_call_back(process->lua, 1);
}

static void call_output_function(void *context, struct ml_str bytes)
{
    call_with_bytes(context, ON_OUTPUT, bytes);
}

static void call_errors_function(void *context, struct ml_str bytes)
{
    call_with_bytes(context, ON_ERRORS, bytes);
}

static void call_started_function(void *context)
{
    struct process *process = context;
    binding_push_callback(process->lua->running, process, ON_START);
    binding_call_back(process->lua, 0);
}

static void call_drained_function(void *context)
{
    struct process *process = context;
    binding_push_callback(process->lua->running, process, ON_DRAINED);
    binding_call_back(process->lua, 0);
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
    struct ml_server_lua *lua = process->lua;
    lua_State *L = lua->running;
    binding_push_callback(L, process, ON_END);
    push_process_end(L, end);
    ml_process_free(ml_take(&process->process));
    binding_release(L, process); /* may be collected from now on */
    binding_call_back(lua, 1);
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
ML_RAISES static int process_start(lua_State *L)
{
    struct ml_process_terminal terminal;
    struct ml_process_opts opts = {0};
    struct ml_err err = ML_ERR_INIT;
    check_options(L, &opts);
    opts.terminal = check_terminal(L, &terminal) ? &terminal : NULL;
    if (!check_beside(L, &opts))
        return binding_push_error(L, "the container does not run");
    struct process *process = lua_newuserdatauv(L, sizeof *process, ML_COUNT(callbacks));
    *process = (struct process){.lua = server_lua_of(L)};
    luaL_setmetatable(L, PROCESS);
    check_callbacks(L, &opts);
    opts.context = process;
    if (ml_process_start(process_library_of(L)->processes, &opts, &process->process, &err) < 0)
        return binding_push_error(L, err.message);
    binding_hold(L, process);
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
    int64_t grace = binding_check_seconds(L, 2);
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
    struct ml_str bytes = binding_check_str(L, 2);
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

/* ---- folders ----
 *
 * Objects of the API name what is in them, and containers may write there: every path is below such
 * a folder, and no link on the way is followed (process_path.h). */

#define FOLDER   "cluster.process.Folder"
#define READ_MAX 4096

struct folder {
    int fd; /* O_PATH */
};

ML_RAISES static int folder_of(lua_State *L)
{
    const struct folder *folder = luaL_checkudata(L, 1, FOLDER);
    return folder->fd;
}

/* Also closes the descriptor, unless it is -1. */
ML_RAISES static int push_done(lua_State *L, int fd, bool done)
{
    int saved = errno;
    ml_close_fd(&fd);
    errno = saved;
    if (!done && errno == EXDEV)
        return binding_push_error(L, "it leads out of its folder");
    return binding_push_done(L, done, NULL);
}

/* open_folder(path) -> folder, or nil and why not. The path is the caller's own, never an object's:
 * links in it are followed. A missing folder is made, for its owner only. */
ML_RAISES static int process_open_folder(lua_State *L)
{
    const char *path = luaL_checkstring(L, 1);
    struct folder *folder = lua_newuserdatauv(L, sizeof *folder, 0);
    folder->fd = -1;
    luaL_setmetatable(L, FOLDER);
    if (mkdir(path, 0700) == 0 || errno == EEXIST)
        folder->fd = open(path, O_PATH | O_DIRECTORY | O_CLOEXEC);
    return folder->fd < 0 ? binding_push_done(L, false, path) : 1;
}

/* As chmod: by its path, as the descriptor is one that opens nothing (O_PATH). */
static bool set_folder_mode(int fd, mode_t mode)
{
    char path[32];
    snprintf(path, sizeof path, "/proc/self/fd/%d", fd);
    return chmod(path, mode) == 0;
}

/* folder:make_folder(path, mode) -> true, or nil and why not. Creates missing parents too, all for
 * their owner only, who is also the user that pods run as. With a mode the folder itself has it
 * then, also one that was there. */
ML_RAISES static int folder_make_folder(lua_State *L)
{
    int base = folder_of(L);
    const char *path = luaL_checkstring(L, 2);
    lua_Integer mode = luaL_optinteger(L, 3, -1);
    luaL_argcheck(L, mode >= -1 && mode <= 07777, 3, "permissions, 0 to 07777");
    int fd = process_path_folder(base, path, true);
    return push_done(L, fd, fd >= 0 && (mode < 0 || set_folder_mode(fd, (mode_t)mode)));
}

/* Removes the entry at the path; true if it is not there. */
ML_RAISES static int remove_entry(lua_State *L, bool (*remove_in)(int parent, const char *name))
{
    const char *name;
    int base = folder_of(L);
    int parent = process_path_parent(base, luaL_checkstring(L, 2), false, &name);
    bool removed = parent >= 0 ? remove_in(parent, name) : errno == ENOENT;
    return push_done(L, parent, removed);
}

/* folder:remove(path) -> true, or nil and why not: a file, or a folder with all that is in it;
 * true if it is not there. */
ML_RAISES static int folder_remove(lua_State *L)
{
    return remove_entry(L, process_path_remove);
}

static bool unlink_entry(int parent, const char *name)
{
    return unlinkat(parent, name, 0) == 0 || errno == ENOENT;
}

/* folder:unlink(path) -> true, or nil and why not: a file or a link; true if it is not there */
ML_RAISES static int folder_unlink(lua_State *L)
{
    return remove_entry(L, unlink_entry);
}

/* An existing file that is no plain one is refused: a pipe would make us wait. */
static bool write_file(int parent, const char *name, mode_t mode, struct ml_str text)
{
    struct stat info;
    int fd = openat(parent, name,
                    O_WRONLY | O_CREAT | O_NOFOLLOW | O_NONBLOCK | O_NOCTTY | O_CLOEXEC, 0600);
    if (fd < 0)
        return false;
    errno = EINVAL;
    bool written = fstat(fd, &info) == 0 && S_ISREG(info.st_mode) && ftruncate(fd, 0) == 0 &&
                   write(fd, text.ptr, text.len) == (ssize_t)text.len && fchmod(fd, mode) == 0;
    int saved = errno;
    close(fd);
    errno = saved;
    return written;
}

/* folder:write(path, text, mode) -> true, or nil and why not */
ML_RAISES static int folder_write(lua_State *L)
{
    int base = folder_of(L);
    const char *path = luaL_checkstring(L, 2), *name;
    struct ml_str text = binding_check_str(L, 3);
    lua_Integer mode = luaL_checkinteger(L, 4);
    luaL_argcheck(L, mode >= 0 && mode <= 0777, 4, "permissions, 0 to 0777");
    int parent = process_path_parent(base, path, false, &name);
    bool written = parent >= 0 && write_file(parent, name, (mode_t)mode, text);
    return push_done(L, parent, written);
}

/* folder:link(target, path) -> true, or nil and why not: a symbolic link; an existing one stays */
ML_RAISES static int folder_link(lua_State *L)
{
    int base = folder_of(L);
    const char *target = luaL_checkstring(L, 2), *name;
    int parent = process_path_parent(base, luaL_checkstring(L, 3), false, &name);
    bool linked = parent >= 0 && (symlinkat(target, parent, name) == 0 || errno == EEXIST);
    return push_done(L, parent, linked);
}

/* Without a moment in which neither the old nor the new one is there. */
static bool replace_link(int parent, const char *name, const char *target)
{
    ML_AUTO_FREE char *fresh = ml_asprintf("%s_tmp", name);
    return unlink_entry(parent, fresh) && symlinkat(target, parent, fresh) == 0 &&
           renameat(parent, fresh, parent, name) == 0;
}

/* folder:replace_link(target, path) -> true, or nil and why not: a symbolic link in place of the
 * link or file that is there, in one step. PATH_tmp is taken for it. */
ML_RAISES static int folder_replace_link(lua_State *L)
{
    int base = folder_of(L);
    const char *target = luaL_checkstring(L, 2), *name;
    int parent = process_path_parent(base, luaL_checkstring(L, 3), false, &name);
    bool replaced = parent >= 0 && replace_link(parent, name, target);
    return push_done(L, parent, replaced);
}

/* Only of a regular file: others might make us wait. */
static ssize_t read_file_end(int parent, const char *name, char *out, size_t max)
{
    struct stat info;
    int fd = openat(parent, name, O_RDONLY | O_NOFOLLOW | O_NONBLOCK | O_NOCTTY | O_CLOEXEC);
    ssize_t len = -1;
    if (fd < 0)
        return -1;
    if (fstat(fd, &info) == 0 && S_ISREG(info.st_mode))
        len = pread(fd, out, max, ML_MAX(info.st_size - (off_t)max, (off_t)0));
    close(fd);
    return len;
}

/* folder:read_end(path, max) -> the last bytes of a file, or nil where there is none */
ML_RAISES static int folder_read_end(lua_State *L)
{
    char bytes[READ_MAX];
    int base = folder_of(L);
    const char *path = luaL_checkstring(L, 2), *name;
    lua_Integer max = luaL_checkinteger(L, 3);
    luaL_argcheck(L, max > 0 && max <= READ_MAX, 3, "1 to 4096");
    int parent = process_path_parent(base, path, false, &name);
    ssize_t len = parent < 0 ? -1 : read_file_end(parent, name, bytes, (size_t)max);
    ml_close_fd(&parent);
    if (len < 0)
        lua_pushnil(L);
    else
        lua_pushlstring(L, bytes, (size_t)len);
    return 1;
}

/* folder:has(path) -> bool: whether something is there, a link as well */
ML_RAISES static int folder_has(lua_State *L)
{
    const char *name;
    int base = folder_of(L);
    int parent = process_path_parent(base, luaL_checkstring(L, 2), false, &name);
    lua_pushboolean(L, parent >= 0 && faccessat(parent, name, F_OK, AT_SYMLINK_NOFOLLOW) == 0);
    ml_close_fd(&parent);
    return 1;
}

/* folder:has_folder(path) -> bool: whether a folder is there, and no link to one */
ML_RAISES static int folder_has_folder(lua_State *L)
{
    int base = folder_of(L);
    int fd = process_path_folder(base, luaL_checkstring(L, 2), false);
    lua_pushboolean(L, fd >= 0);
    ml_close_fd(&fd);
    return 1;
}

/* folder:capacity() -> bytes of its file system, or nil */
ML_RAISES static int folder_capacity(lua_State *L)
{
    struct statvfs system;
    if (fstatvfs(folder_of(L), &system) == 0)
        lua_pushinteger(L, (lua_Integer)system.f_blocks * (lua_Integer)system.f_frsize);
    else
        lua_pushnil(L);
    return 1;
}

static int folder_gc(lua_State *L)
{
    struct folder *folder = lua_touserdata(L, 1);
    ml_close_fd(&folder->fd);
    return 0;
}

#define CHECK       "cluster.process.check"
#define HEADERS_MAX 64

/* ---- processes ---- */

/* try_container(folder) -> true, or nil and why this machine has none */
ML_RAISES static int process_try_container(lua_State *L)
{
    struct ml_err err = ML_ERR_INIT;
    if (ml_processes_try_container(luaL_checkstring(L, 1), &err) < 0)
        return binding_push_error(L, err.message);
    lua_pushboolean(L, true);
    return 1;
}

/* ---- checks of processes (probes) ---- */

/* A full userdata with the callback as its user value; the registry holds it, under its own
 * address, until there is an answer. */
struct check {
    struct ml_server_lua *lua;
    struct ml_pod_network *network;
    struct ml_tcp_check *tcp;
    struct ml_http_call *http;
    int status;
};

/* Calls fn(value), or fn(nil, message) for an error, and releases the check. */
static void call_check_function(struct check *check, lua_Integer value, const struct ml_err *err)
{
    struct ml_server_lua *lua = check->lua;
    lua_State *L = lua->running;
    binding_push_callback(L, check, 1);
    binding_release(L, check);
    if (err)
        lua_pushnil(L);
    else
        lua_pushinteger(L, value);
    lua_pushstring(L, err ? err->message : NULL);
    binding_call_back(lua, 2);
}

static void on_check_connected(void *context, const struct ml_err *err)
{
    struct check *check = context;
    check->tcp = NULL;
    call_check_function(check, 0, err);
}

static void on_check_head(void *context, const struct ml_http_head *head)
{
    struct check *check = context;
    check->status = head->status;
}

static int on_check_data(void *context, struct ml_str piece, struct ml_err *err)
{
    (void)context, (void)piece, (void)err; /* only the status counts */
    return 0;
}

static void on_check_done(void *context, const struct ml_err *err)
{
    struct check *check = context;
    check->http = NULL;
    call_check_function(check, check->status, err);
}

/* A socket that can connect to an address, or -1. */
static int open_check_socket(void *context, const struct sockaddr *address)
{
    const struct check *check = context;
    return lua_network_socket_to(check->network, address);
}

/* [+1] */
ML_RAISES static struct check *push_new_check(lua_State *L, int function)
{
    luaL_checktype(L, function, LUA_TFUNCTION);
    struct check *check = lua_newuserdatauv(L, sizeof *check, 1);
    *check = (struct check){.lua = server_lua_of(L), .network = process_library_of(L)->network};
    luaL_setmetatable(L, CHECK);
    lua_pushvalue(L, function);
    lua_setiuservalue(L, -2, 1);
    return check;
}

/* connect(address, port, seconds, fn) -> true; then fn(0), or fn(nil, message), from the loop. Or
 * nil and why nothing was started */
ML_RAISES static int process_connect(lua_State *L)
{
    struct ml_err err = ML_ERR_INIT;
    const char *address = luaL_checkstring(L, 1);
    lua_Integer port = luaL_checkinteger(L, 2);
    luaL_argcheck(L, port > 0 && port < 65536, 2, "a port");
    int64_t timeout_ns = binding_check_seconds(L, 3);
    struct check *check = push_new_check(L, 4);
    struct in_addr to;
    int fd = -1;
    if (inet_pton(AF_INET, address, &to) == 1) {
        fd = lua_network_socket(check->network, SOCK_STREAM, to, &err);
        if (fd < 0)
            return binding_push_error(L, err.message);
    }
    if (ml_tcp_check_start(check->lua->options.loop, fd, address, (uint16_t)port, timeout_ns,
                           on_check_connected, check, &check->tcp, &err) < 0)
        return luaL_error(L, "process.connect: %s", err.message);
    binding_hold(L, check);
    lua_pushboolean(L, true);
    return 1;
}

/* The list at `index` of { name, value } pairs; their texts belong to the tables there. */
ML_RAISES static size_t check_header_pairs(lua_State *L, int index, struct ml_http_header *headers)
{
    luaL_checktype(L, index, LUA_TTABLE);
    size_t count = (size_t)lua_rawlen(L, index);
    luaL_argcheck(L, count <= HEADERS_MAX, index, "too many headers");
    for (size_t i = 0; i < count; i++) {
        lua_rawgeti(L, index, (lua_Integer)i + 1);
        luaL_argcheck(L, lua_istable(L, -1), index, "pairs of name and value");
        bool texts = lua_rawgeti(L, -1, 1) == LUA_TSTRING && lua_rawgeti(L, -2, 2) == LUA_TSTRING;
        luaL_argcheck(L, texts, index, "pairs of name and value");
        headers[i] = (struct ml_http_header){lua_tostring(L, -2), lua_tostring(L, -1)};
        lua_pop(L, 3);
    }
    return count;
}

/* get(url, headers, seconds, fn): fn(status), or fn(nil, message), from the loop. Certificates
 * are not verified, redirects not followed, as with probes of the kubelet. */
ML_RAISES static int process_get(lua_State *L)
{
    static const struct ml_http_tls anybody = {.insecure = true, .proxy_url = ""};
    static const struct ml_http_handler handler = {on_check_head, on_check_data, on_check_done};
    struct ml_http_header headers[HEADERS_MAX];
    struct ml_http_request request = {
        .method = "GET",
        .url = luaL_checkstring(L, 1),
        .headers = headers,
        .tls = &anybody,
        .open_socket = open_check_socket,
    };
    request.header_count = check_header_pairs(L, 2, headers);
    request.deadlines.total_ms = binding_check_seconds(L, 3) / ML_NS_PER_MS + 1;
    struct check *check = push_new_check(L, 4);
    check->http = ml_http_send(process_library_of(L)->http, &request, &handler, check);
    binding_hold(L, check);
    return 0;
}

/* Called for an unanswered check only when the state is closed. */
static int check_gc(lua_State *L)
{
    struct check *check = lua_touserdata(L, 1);
    ml_tcp_check_free(ml_take(&check->tcp));
    if (check->http)
        ml_http_cancel(ml_take(&check->http));
    return 0;
}

/* ---- the machine ---- */

static bool is_reachable_address(const struct ifaddrs *entry)
{
    return entry->ifa_addr && entry->ifa_addr->sa_family == AF_INET &&
           (entry->ifa_flags & IFF_UP) && !(entry->ifa_flags & IFF_LOOPBACK);
}

/* The first address that others could reach; false when there is none. */
static bool find_machine_address(char out[NI_MAXHOST])
{
    struct ifaddrs *list;
    bool found = false;
    if (getifaddrs(&list) < 0)
        return false;
    for (const struct ifaddrs *entry = list; entry && !found; entry = entry->ifa_next)
        found = is_reachable_address(entry) &&
                getnameinfo(entry->ifa_addr, sizeof(struct sockaddr_in), out, NI_MAXHOST, NULL, 0,
                            NI_NUMERICHOST) == 0;
    freeifaddrs(list);
    return found;
}

/* The name that Go, and so Kubernetes, has for it. */
static const char *go_architecture(const char *machine)
{
    static const char *const names[][2] = {
        {"x86_64", "amd64"}, {"aarch64", "arm64"}, {"armv7l", "arm"}, {"i686", "386"}};
    for (size_t i = 0; i < ML_COUNT(names); i++)
        if (strcmp(machine, names[i][0]) == 0)
            return names[i][1];
    return machine;
}

/* machine() -> { address = nil or text, architecture =, kernel = } */
ML_RAISES static int process_machine(lua_State *L)
{
    char address[NI_MAXHOST];
    struct utsname name = {0};
    bool found = find_machine_address(address);
    uname(&name);
    lua_createtable(L, 0, 3);
    if (found)
        lua_pushstring(L, address);
    else
        lua_pushnil(L);
    lua_setfield(L, -2, "address");
    lua_pushstring(L, go_architecture(name.machine));
    lua_setfield(L, -2, "architecture");
    lua_pushstring(L, name.release);
    lua_setfield(L, -2, "kernel");
    return 1;
}

/* user() -> the numbers of the user and of the group that everything runs as */
static int process_user(lua_State *L)
{
    lua_pushinteger(L, geteuid());
    lua_pushinteger(L, getegid());
    return 2;
}

/* executable() -> the path of the program that runs, or nil and why it has none */
ML_RAISES static int process_executable(lua_State *L)
{
    char path[PATH_MAX];
    ssize_t len = readlink("/proc/self/exe", path, sizeof path - 1);
    path[ML_MAX(len, 0)] = '\0';
    if (access(path, X_OK) != 0)
        return binding_push_error(L,
                                  "the file of the running moonloop was replaced or removed: start "
                                  "moonloop again");
    lua_pushstring(L, path);
    return 1;
}

/* ---- the module ---- */

void ml_server_lua_add_processes(struct ml_server_lua *lua,
                                 const struct ml_process_library *library)
{
    static const luaL_Reg process_methods[] = {{"signal", process_signal},
                                               {"stop", process_stop},
                                               {"pause", process_pause},
                                               {"write", process_write},
                                               {"end_input", process_end_input},
                                               {"resize", process_resize},
                                               {"pid", process_pid},
                                               {NULL, NULL}};
    static const luaL_Reg folder_methods[] = {{"make_folder", folder_make_folder},
                                              {"remove", folder_remove},
                                              {"unlink", folder_unlink},
                                              {"write", folder_write},
                                              {"link", folder_link},
                                              {"replace_link", folder_replace_link},
                                              {"read_end", folder_read_end},
                                              {"has", folder_has},
                                              {"has_folder", folder_has_folder},
                                              {"capacity", folder_capacity},
                                              {NULL, NULL}};
    static const luaL_Reg memory_methods[] = {{"close", memory_close}, {NULL, NULL}};
    static const luaL_Reg functions[] = {{"start", process_start},
                                         {"try_container", process_try_container},
                                         {"connect", process_connect},
                                         {"get", process_get},
                                         {"open_folder", process_open_folder},
                                         {"machine", process_machine},
                                         {"memory", process_memory},
                                         {"user", process_user},
                                         {"executable", process_executable},
                                         {NULL, NULL}};
    lua_State *L = lua->running;
    binding_new_type(L, PROCESS, process_methods, process_gc);
    binding_new_type(L, FOLDER, folder_methods, folder_gc);
    binding_new_type(L, CHECK, NULL, check_gc);
    binding_new_type(L, MEMORY, memory_methods, memory_close);
    binding_add_module(lua, "cluster.process", functions, library, sizeof *library);
}
