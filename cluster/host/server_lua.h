/* cluster. The server's Lua: the Lua state of the embedded API server and of the test harness. It
 * has the whole standard library, no CPU limit and no memory budget; the process ends when memory
 * runs out. Users' scripts never run in it.
 *
 * `require` finds the embedded library (lua/moonloop/ without its stubs), then files by
 * package.path. The files lua_*.c bind C for it: file, json, regex, stream, system, x509 and yaml
 * make "cluster.host", each other file a module of its own name. Names that begin with binding_
 * (server_lua_internal.h) are for these files only. A callback that the loop runs
 * (host.after, host.defer) has a Lua thread of its own, so that it may wait for an answer while
 * others run; an error in it ends that callback only, and is passed to `failed`. */
#pragma once

#include "base/buf.h"
#include "base/log.h"
#include "base/random.h"
#include "net/loop.h"

struct ml_server_lua;

struct ml_server_lua_options {
    struct ml_loop *loop;     /* borrowed; NULL: host.after and host.defer raise */
    struct ml_clock *clock;   /* borrowed; NULL: the real one */
    struct ml_random *random; /* borrowed; NULL: one of its own, seeded by the kernel */
    struct ml_log *log;       /* where host.log writes; borrowed; NULL: nowhere */
    const char *logger;       /* the name in those lines; a literal */
    bool files_first;         /* require looks at package.path before the embedded library */
    /* How far memory may grow before garbage is collected, in percent of what the last collection
     * left (Lua's setpause); 0: Lua's own 200. */
    int garbage_percent;
    /* An error that no Lua code caught, with its traceback. NULL: it is lost. */
    void (*failed)(void *context, const char *message);
    void *context;
};

struct ml_server_lua *ml_server_lua_new(const struct ml_server_lua_options *options);
/* Timers and deferred functions that still wait are forgotten. Not from inside Lua. */
void ml_server_lua_free(struct ml_server_lua *lua);

/* Runs a chunk of source text; `chunk` names it in messages ("demo.lua"). ML_ESCRIPT, with the
 * first line of the message, when it does not compile or raises. */
ML_NODISCARD int ml_server_lua_run(struct ml_server_lua *lua, const char *chunk, struct ml_str text,
                                   struct ml_err *err);

/* The cluster's authority, whose certificate is published and which signs requests. Without
 * ml_server_lua_set_authority one is made in memory when it is first asked for: NULL and ML_ETLS
 * when that fails. It lives as long as `lua`. */
struct ml_tls_authority;
struct ml_tls_authority *ml_server_lua_authority(struct ml_server_lua *lua, struct ml_err *err);
/* Takes it over. Before anybody has asked for it. */
void ml_server_lua_set_authority(struct ml_server_lua *lua, struct ml_tls_authority *authority);

/* The message of its last failure with its traceback; "" at first. */
const char *ml_server_lua_traceback(const struct ml_server_lua *lua);

/* Calls `function` of the module, which is required if it was not yet, with `argument` (JSON;
 * empty: nil) and appends what it returns, as JSON, to `result`; nil appends nothing. `result` may
 * be NULL. ML_ESCRIPT as above. */
ML_NODISCARD int ml_server_lua_call(struct ml_server_lua *lua, const char *module,
                                    const char *function, struct ml_str argument,
                                    struct ml_buf *result, struct ml_err *err);

/* A function of the host's for Lua: its argument as JSON (empty when left out or nil), its result
 * as JSON (nothing written: true). On failure Lua gets nil and the message. It may run the loop:
 * what the loop then calls in this state runs above the caller, each callback on a Lua thread of
 * its own. It must not free the state. */
typedef int ml_server_lua_function(void *context, struct ml_str argument, struct ml_buf *result,
                                   struct ml_err *err);

/* Makes it the field `name` of the module that `require` returns. For functions that only one
 * program has, such as a clock that can be advanced. */
void ml_server_lua_define(struct ml_server_lua *lua, const char *module, const char *name,
                          ml_server_lua_function *function, void *context);

/* Has `fn` called at the next instruction that Lua executes, whatever that is in the middle of;
 * NULL takes it back. `fn` calls nothing of this state. From a signal handler of the thread that
 * runs Lua, or outside of Lua. */
void ml_server_lua_interrupt(struct ml_server_lua *lua, void (*fn)(void *context), void *context);
