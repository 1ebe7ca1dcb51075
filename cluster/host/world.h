/* cluster. A world in virtual time for `moonloop test` and for fault specs: the embedded API server
 * and an operator in one process, without sockets, on a clock that only the test advances. The
 * same seed and the same calls give the same world.
 *
 * Nothing happens outside settle and advance. Handlers and timers that they run must not call them,
 * and get an error if they do. */
#pragma once

#include "cluster/host/apiserver.h"
#include "cluster/host/transport_embedded.h"
#include "operator/operator.h"

struct ml_world;

/* The parts of a world that a reset may change. All borrowed during the call. */
struct ml_world_setup {
    const char *const *scripts; /* files and folders that each operator reads when it begins;
                                   NULL-terminated, or NULL */
    struct ml_str settings;     /* JSON, for the server; empty: {} */
    uint64_t seed;
    int64_t wall_ns; /* the wall clock at the start; 0: 2026-01-01T00:00:00Z */
};

struct ml_world_options {
    struct ml_world_setup setup;
    int log_fd; /* borrowed; below 0: no log */
    enum ml_log_level log_level;
    bool files_first; /* as in ml_server_lua_options */
    bool coverage;    /* notes which lines of scripts run */
};

/* Nothing has run yet. The operator, also after reset and restart, starts within the next settle,
 * once the server is idle: objects created before are served when the operator lists them.
 * ML_EINVALID, ML_ESCRIPT: as ml_apiserver_new. */
ML_NODISCARD int ml_world_new(const struct ml_world_options *options, struct ml_world **out,
                              struct ml_err *err);
void ml_world_free(struct ml_world *world); /* not from inside its Lua; NULL is fine */

/* Runs until nothing is left to do at this instant. ML_ELIMIT when there is no end after 10000
 * rounds of the loop; the message names the request that is made most. */
ML_NODISCARD int ml_world_settle(struct ml_world *world, struct ml_err *err);

/* Settles, then moves the clock from timer to timer, settling at each, until `ns` have passed. On
 * failure the clock stays at that time. */
ML_NODISCARD int ml_world_advance(struct ml_world *world, int64_t ns, struct ml_err *err);

struct ml_server_lua *ml_world_server_lua(struct ml_world *world);

/* Gives the server's Lua this and more, such as faults, restart and reset, as `require
 * "cluster.world"` (cluster/meta/world.lua says how); once, after ml_world_new. Lua calls settle,
 * which runs the loop, which calls into the same state: such a call runs on the caller's own Lua
 * thread, so tests may run in coroutines; only a yield cannot cross it. */
void ml_world_lua_open(struct ml_world *world);

/* A file or folder of scripts that is read once, when the operator begins: in virtual time nothing
 * is watched, and the kernel takes milliseconds to end a watch. */
struct ml_source *ml_world_source_new(struct ml_loop *loop, const char *path);
