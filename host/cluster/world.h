/* L6 operator. A world in virtual time: the embedded API server and an operator on it, in one
 * process, without sockets, on a clock that stands still until it is moved. The same seed and the
 * same calls give the same world. For `moonloop test`, and for specs of what faults do.
 *
 * Nothing happens outside of settle and advance. What they run must not call them: a handler or a
 * timer of the server's Lua gets an error for it. */
#pragma once

#include "cluster/apiserver.h"
#include "cluster/transport_faults.h"
#include "operator/operator.h"
#include "operator/source.h"

struct ml_world;

/* What of it may change with a reset. All borrowed during the call. */
struct ml_world_setup {
    const char *const *scripts; /* files and folders that each operator reads when it begins;
                                   NULL-terminated, or NULL */
    struct ml_str settings;     /* JSON, for the server; empty: {} */
    uint64_t seed;
    int64_t wall_ns; /* what time it is at first; 0: 2026-01-01T00:00:00Z */
};

struct ml_world_options {
    struct ml_world_setup setup;
    int log_fd; /* borrowed; below 0: no log */
    enum ml_log_level log_level;
    bool files_first; /* as in ml_trusted_options */
};

/* Nothing has run yet. An operator, here and after reset and restart, begins with the next settle,
 * when the server has nothing left to do: what it is given before is there, and served, when the
 * operator looks. ML_EINVALID, ML_ESCRIPT: as ml_apiserver_new. */
ML_NODISCARD int ml_world_new(const struct ml_world_options *options, struct ml_world **out,
                              struct ml_err *err);
void ml_world_free(struct ml_world *world); /* not from inside its Lua; NULL is fine */

/* Begins again: an empty server, no faults, a new operator, the clock at its start. What the
 * server's Lua has loaded stays, so this costs little. On failure what is on the server is
 * undefined until a reset succeeds. */
ML_NODISCARD int ml_world_reset(struct ml_world *world, const struct ml_world_setup *setup,
                                struct ml_err *err);

/* Runs until nothing is left to do at this instant. ML_ELIMIT when there is no end after 10000
 * rounds of the loop; the message names the request that is made most. */
ML_NODISCARD int ml_world_settle(struct ml_world *world, struct ml_err *err);

/* Settles, then goes from timer to timer, settling at each, until `ns` have passed. On failure the
 * clock stands where it went wrong. */
ML_NODISCARD int ml_world_advance(struct ml_world *world, int64_t ns, struct ml_err *err);

/* As ml_transport_faults_add and _remove, for the operator's requests. */
int ml_world_fault(struct ml_world *world, const struct ml_fault *fault);
void ml_world_heal(struct ml_world *world, int fault);

/* The operator dies where it stands and another one takes its place, as after the kill of a
 * process: no work ends, requests under way are left, nothing is remembered. Faults and server
 * stay. From inside of what settle and advance run, too: it then dies when the round of the loop
 * has ended, and what it asks for until then reaches nobody. */
void ml_world_restart(struct ml_world *world);

/* As SIGTERM: work under way may end for `drain_ns`, then another operator takes its place. From
 * inside, too. Nothing for an operator that has not begun; a second one ends it at once. */
void ml_world_stop(struct ml_world *world, int64_t drain_ns);

/* Somebody sets the wall clock, forth or back; the monotonic one goes on. From inside, too. */
void ml_world_set_wall_clock(struct ml_world *world, int64_t delta_ns);

/* The machine stands still for so long, server and operator with it: both clocks go on, and no
 * timer comes before the next settle. */
ML_NODISCARD int ml_world_suspend(struct ml_world *world, int64_t ns, struct ml_err *err);

struct ml_operator *ml_world_operator(struct ml_world *world); /* until restart or reset */
struct ml_apiserver *ml_world_server(struct ml_world *world);
struct ml_trusted *ml_world_trusted(struct ml_world *world);

/* Gives the server's Lua all of this as `require "cluster.world"` (lua/cluster/meta/world.lua says
 * how); once, after ml_world_new. Lua calls settle, which runs the loop, which calls into the same
 * state: such a call stands above the caller on the caller's own Lua thread, so tests may run in
 * coroutines; only a yield cannot cross it. */
void ml_world_lua_open(struct ml_world *world);

/* A file or folder of scripts that is read once, when the operator begins: in virtual time nothing
 * is watched, and the kernel takes milliseconds to end a watch. */
struct ml_source *ml_world_source_new(struct ml_loop *loop, const char *path);
