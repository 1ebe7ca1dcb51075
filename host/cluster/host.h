/* L5 script, private. What the files behind `require "cluster.host"` share: the trusted state,
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
    const void *array_mark; /* the metatable of marked arrays, to compare with */
    struct ml_list timers;  /* of host.after, as long as Lua has them */
    struct ml_task deferred;
    lua_Integer deferred_first, deferred_last; /* places in the queue of host.defer */
    void *matching;                            /* of host.regex; NULL until first used */
};

/* The extra space of every thread of a trusted state. */
static inline struct ml_trusted *host_of(lua_State *L)
{
    return *(struct ml_trusted **)lua_getextraspace(L);
}

/* trusted_door.c. [-(arguments + 1), +results or +0] Calls the function below `arguments` on top.
 * On failure ML_ESCRIPT, and the message with its traceback is in trusted->traceback. */
ML_NODISCARD int host_call(struct ml_trusted *trusted, int arguments, int results);

/* The same for what the loop calls: a failure goes to `failed`, and results are dropped. */
void host_call_back(struct ml_trusted *trusted, int arguments);

/* Fills `err` from the first line of the traceback. Returns ML_ESCRIPT. */
int host_fail(struct ml_trusted *trusted, struct ml_err *err);

/* A binding that may run the event loop stands between these two. What the loop calls meanwhile
 * runs on the binding's own thread, above it: the main thread may stand still in a resume. They
 * nest; nothing in between may raise. Enter returns what leave takes. */
ML_NODISCARD lua_State *host_enter(lua_State *L);
void host_leave(lua_State *L, lua_State *before);

/* host_value.c: objects, arrays and null. */
void host_make_array_mark(lua_State *L); /* once a state, before any of the others */
void host_push_null(lua_State *L);
bool host_is_null(lua_State *L, int index);
void host_push_array_mark(lua_State *L); /* the metatable of marked arrays */
void host_mark_array(lua_State *L, int index);
bool host_is_array(lua_State *L, int index); /* a table: marked, or t[1] ~= nil */

/* host_json_decode.c. [+1] The value of `text`; or ML_EINVALID and nothing pushed. With
 * `duplicates` another list follows it on the stack [+2]: paths of keys that came twice. */
ML_NODISCARD int host_decode(lua_State *L, struct ml_str text, bool duplicates, struct ml_err *err);

/* host_json_encode.c. The value at `index` as JSON in trusted->encoder.out, until the next call.
 * ML_EINVALID with the path of what cannot be encoded. */
ML_NODISCARD int host_encode(lua_State *L, int index, struct ml_err *err);
void host_encoder_fini(struct host_encoder *encoder);

/* Each pushes its table, or puts its functions into the table on top. */
int host_open_json(lua_State *L);
int host_open_yaml(lua_State *L);
int host_open_regex(lua_State *L);
int host_open_file(lua_State *L);
void host_add_misc(lua_State *L);
void host_add_timers(lua_State *L);

void host_regex_fini(struct ml_trusted *trusted);

/* host_re2.c. A pattern of Go's regexp as one of PCRE2's, without groups that capture, appended to
 * `out`. False: `out` has Go's message instead. */
ML_NODISCARD bool host_re2_translate(struct ml_str pattern, struct ml_buf *out);

/* host_timer.c. Forgets timers and deferred functions that wait. */
void host_forget(struct ml_trusted *trusted);
