/* cluster, private. What the files behind `require "cluster.host"` share: the trusted state,
 * and how each table is opened.
 *
 * Lua never runs out of memory here (the process ends first), so an API call raises only where
 * its manual says so for another reason. A function that may be left by a Lua error is marked
 * ML_RAISES and owns nothing. */
#pragma once

#include <lauxlib.h>
#include <lua.h>

#include "cluster/trusted.h"
#include "codec/json.h"

#define ML_RAISES

#define HOST_JSON_MAX ((size_t)512 * 1024 * 1024) /* of one text that encode makes */

struct json_member;
struct json_level;

/* Work space of host.json.encode, kept between calls. */
struct host_encoder {
    struct ml_buf out;
    struct json_member *members;
    size_t member_count, member_capacity;
    struct json_level *levels;
    size_t depth, level_capacity;
};

struct ml_trusted {
    struct ml_trusted_options options;
    struct ml_random random; /* when none was given */
    lua_State *L;            /* the main thread */
    lua_State *running;      /* the thread on which the host calls: see host_enter */
    struct ml_buf traceback;
    struct ml_buf work; /* of one binding at a time */
    struct host_encoder encoder;
    const void *array_mark;                    /* the metatable of marked arrays, to compare with */
    void (*volatile interrupt)(void *context); /* see ml_trusted_interrupt */
    void *interrupt_context;
    int64_t turn_began;    /* when the loop last called into Lua */
    struct ml_list timers; /* of host.after, as long as Lua has them */
    struct ml_task deferred;
    lua_Integer deferred_first, deferred_last; /* places in the queue of host.defer */
    void *matching;                            /* of host.regex; NULL until first used */
    struct ml_tls_authority *authority;        /* NULL until first asked for */
};

/* The extra space of every thread of a trusted state. */
static inline struct ml_trusted *host_of(lua_State *L)
{
    return *(struct ml_trusted **)lua_getextraspace(L);
}

ML_RAISES static inline struct ml_str host_check_str(lua_State *L, int argument)
{
    struct ml_str text;
    text.ptr = luaL_checklstring(L, argument, &text.len);
    return text;
}

/* trusted.c. [+2] nil and the message, for a function to return. */
int host_push_error(lua_State *L, const char *message);
/* trusted.c. true, or nil and errno in words, behind "PATH: " when a path is given; to return. */
int host_push_done(lua_State *L, bool done, const char *path);

/* Makes the type of a userdata known to the state. `methods` may be NULL. */
void host_new_type(lua_State *L, const char *name, const luaL_Reg *methods, lua_CFunction gc);

/* A userdata that the loop calls back. The registry holds it under its own address, from host_hold
 * (which takes it from the top of the stack) to host_release; its callbacks are user values. */
void host_hold(lua_State *L, const void *userdata);
void host_release(lua_State *L, const void *userdata);
void host_push_callback(lua_State *L, const void *userdata, int which); /* [+1] */

/* Nanoseconds of a number of seconds, from 0 to 31 years: whatever number of seconds an object of
 * the API says can be waited for. */
ML_RAISES int64_t host_check_seconds(lua_State *L, int argument);

/* trusted.c. [-(arguments + 1), +results or +0] Calls the function below `arguments` on top.
 * On failure ML_ESCRIPT, and the message with its traceback is in trusted->traceback. */
ML_NODISCARD int host_call(struct ml_trusted *trusted, int arguments, int results);

/* trusted.c. [-(arguments + 1)] Calls the function below `arguments` on top on a Lua thread of its
 * own, so that it may wait: a binding that yields, and calls host_resume later, from the loop.
 * Returns 0 when the function has ended or waits; its results are dropped. A failure before it
 * waits is ML_ESCRIPT, as for host_call. */
ML_NODISCARD int host_run(struct ml_trusted *trusted, int arguments);
/* trusted.c. Goes on with a thread that waits: the binding returns the `arguments` on the thread's
 * top. The caller holds the thread until this returns, and calls from the loop. As host_run. */
ML_NODISCARD int host_resume(struct ml_trusted *trusted, lua_State *thread, int arguments);
/* trusted.c. Passes the traceback of the last failure to `failed`. */
void host_tell_failure(struct ml_trusted *trusted);

/* As host_run, for callbacks of the loop: a failure goes to `failed`. */
void host_call_back(struct ml_trusted *trusted, int arguments);

/* Fills `err` from the first line of the traceback. Returns ML_ESCRIPT. */
int host_fail(struct ml_trusted *trusted, struct ml_err *err);

/* A binding that may run the event loop calls host_enter before and host_leave after, with what
 * host_enter returned. Callbacks of the loop then run on the binding's own Lua thread, because the
 * main thread may be suspended in a resume. The pairs nest. Nothing between them may raise. */
ML_NODISCARD lua_State *host_enter(lua_State *L);
void host_leave(lua_State *L, lua_State *before);

/* host_json.c. [+1] Pushes the value of `text`; on ML_EINVALID it pushes nothing. With `duplicates`
 * it also pushes the list of the paths of duplicate keys [+2]. */
ML_NODISCARD int host_decode(lua_State *L, struct ml_str text, bool duplicates, struct ml_err *err);

/* host_json_encode.c. Writes the value at `index` as JSON to trusted->encoder.out, which the next
 * call overwrites. ML_EINVALID names the path of the value that cannot be encoded. */
ML_NODISCARD int host_encode(lua_State *L, int index, struct ml_err *err);
void host_encoder_fini(struct host_encoder *encoder);

/* open_ pushes the module's table; add_ puts functions into the table on top. */
int host_open_json(lua_State *L);
int host_open_yaml(lua_State *L);
int host_open_regex(lua_State *L);
int host_open_file(lua_State *L);
int host_open_x509(lua_State *L);
int host_open_stream(lua_State *L);
void host_add_misc(lua_State *L);
void host_add_timers(lua_State *L);

void host_regex_fini(struct ml_trusted *trusted);

/* host_system.c. Cancels pending timers and deferred functions. */
void host_forget(struct ml_trusted *trusted);
