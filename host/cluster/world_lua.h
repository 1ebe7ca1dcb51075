/* L6 operator. A world for Lua: with this, the server's state (ml_world_trusted) has all of it as
 * `require "cluster.world"`; lua/cluster/meta/world.lua tells how.
 *
 * Lua calls settle, which runs the loop, which calls into the same state: such a call stands above
 * the caller on the caller's own Lua thread, so tests may run in coroutines; only a yield cannot
 * cross it. */
#pragma once

#include "cluster/world.h"

void ml_world_lua_open(struct ml_world *world); /* once, after ml_world_new */
