/* cluster, private. The state of the server's Lua for those files that bind C for it (lua_*.c): its
 * struct, calls into it, and how each table of `require "cluster.host"` is opened. Functions are in
 * server_lua_state.c unless it is said where else.
 *
 * Lua never runs out of memory here (the process ends first), so an API call raises only where
 * its manual says so for another reason. A function that may be left by a Lua error is marked
 * ML_RAISES and owns nothing. */
#pragma once

#include <lauxlib.h>
#include <lua.h>

#include "cluster/host/server_lua.h"
#include "codec/json.h"

#define ML_RAISES

#define BINDING_JSON_MAX ((size_t)512 * 1024 * 1024) /* of one text that encode makes */

struct json_member;
struct json_level;

/* Work space of host.json.encode, kept between calls. */
struct json_encoder {
    struct ml_buf out;
    struct json_member *members;
    size_t member_count, member_capacity;
    struct json_level *levels;
    size_t depth, level_capacity;
};

struct ml_server_lua {
    struct ml_server_lua_options options;
    struct ml_random random; /* when none was given */
    lua_State *L;            /* the main thread */
    lua_State *running;      /* the thread on which the host calls */
    struct ml_buf traceback;
    struct ml_buf work; /* of one binding at a time */
    struct json_encoder encoder;
    const void *array_mark;                    /* the metatable of marked arrays, to compare with */
    void (*volatile interrupt)(void *context); /* see ml_server_lua_interrupt */
    void *interrupt_context;
    int64_t turn_began;    /* when the loop last called into Lua */
    struct ml_list timers; /* of host.after, as long as Lua has them */
    struct ml_task deferred;
    /* Functions of host.defer, and threads that gave way, which wait for a turn. Places. */
    struct server_lua_queue {
        lua_Integer first, last;
    } functions, threads;
    struct ml_tls_authority *authority; /* NULL until first asked for */
};

/* From the extra space, which every thread of the state has. */
static inline struct ml_server_lua *server_lua_of(lua_State *L)
{
    return *(struct ml_server_lua **)lua_getextraspace(L);
}

ML_RAISES static inline struct ml_str binding_check_str(lua_State *L, int argument)
{
    struct ml_str text;
    text.ptr = luaL_checklstring(L, argument, &text.len);
    return text;
}

/* The work buffer, empty. */
static inline struct ml_buf *binding_clear_work(lua_State *L)
{
    struct ml_buf *work = &server_lua_of(L)->work;
    ml_buf_clear(work);
    return work;
}

/* [+2] nil and the message, for a function to return. */
int binding_push_error(lua_State *L, const char *message);
/* true, or nil and errno in words, behind "PATH: " when a path is given; to return. */
int binding_push_done(lua_State *L, bool done, const char *path);

/* Makes the type of a userdata known to the state. `methods` may be NULL. */
void binding_new_type(lua_State *L, const char *name, const luaL_Reg *methods, lua_CFunction gc);

/* Makes `require(name)` a table of these functions. Each has a copy of the `size` bytes at
 * `library`, what it works on, as its upvalue. The state must have a loop. */
void binding_add_module(struct ml_server_lua *lua, const char *name, const luaL_Reg *functions,
                        const void *library, size_t size);

/* A userdata that the loop calls back. The registry holds it under its own address, from
 * binding_hold (which takes it from the top of the stack) to binding_release; its callbacks are
 * user values. */
void binding_hold(lua_State *L, const void *userdata);
void binding_release(lua_State *L, const void *userdata);
void binding_push_callback(lua_State *L, const void *userdata, int which); /* [+1] */

/* Nanoseconds of a number of seconds, from 0 to 31 years: any number of seconds that an object
 * of the API says can be waited for. */
ML_RAISES int64_t binding_check_seconds(lua_State *L, int argument);

/* [-(arguments + 1), +results or +0] Calls the function below `arguments` on top.
 * On failure ML_ESCRIPT, and the message with its traceback is in lua->traceback. */
ML_NODISCARD int binding_call(struct ml_server_lua *lua, int arguments, int results);

/* [-(arguments + 1)] Calls the function below `arguments` on top on a Lua thread of its
 * own, so that it may wait: a binding that yields, and calls binding_resume later, from the loop.
 * Returns 0 when the function has ended or waits; its results are dropped. A failure before it
 * waits is ML_ESCRIPT, as for binding_call. */
ML_NODISCARD int binding_run(struct ml_server_lua *lua, int arguments);
/* Goes on with a thread that waits: the binding returns the `arguments` on the thread's
 * top. The caller holds the thread until this returns, and calls from the loop. As binding_run. */
ML_NODISCARD int binding_resume(struct ml_server_lua *lua, lua_State *thread, int arguments);
/* Passes the traceback of the last failure to `failed`. */
void binding_report_failure(struct ml_server_lua *lua);

/* As binding_run, for callbacks of the loop: a failure goes to `failed`. */
void binding_call_back(struct ml_server_lua *lua, int arguments);

/* Fills `err` from the first line of the traceback. Returns ML_ESCRIPT. */
int binding_fail(struct ml_server_lua *lua, struct ml_err *err);

/* lua_json.c. [+1] Pushes the value of `text`; on ML_EINVALID it pushes nothing. With `duplicates`
 * it also pushes the list of the paths of duplicate keys [+2]. */
ML_NODISCARD int binding_decode_json(lua_State *L, struct ml_str text, bool duplicates,
                                     struct ml_err *err);

/* lua_json.c. Writes the value at `index` as JSON to lua->encoder.out, which the next
 * call overwrites. ML_EINVALID names the path of the value that cannot be encoded. */
ML_NODISCARD int binding_encode_json(lua_State *L, int index, struct ml_err *err);
void binding_encoder_fini(struct json_encoder *encoder);

/* open_ pushes the module's table; add_ puts functions into the table on top. */
int binding_open_json(lua_State *L);
int binding_open_yaml(lua_State *L);
int binding_open_regex(lua_State *L);
int binding_open_file(lua_State *L);
int binding_open_x509(lua_State *L);
int binding_open_stream(lua_State *L);
void binding_add_misc(lua_State *L);
void binding_add_timers(lua_State *L);

/* lua_system.c. Cancels pending timers and deferred functions. */
void binding_forget_timers(struct ml_server_lua *lua);
