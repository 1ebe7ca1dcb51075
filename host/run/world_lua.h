/* L6 run, private to world.c. The world for Lua: `require "moonloop.world.host"`. */
#pragma once

#include "run/world.h"

void world_lua_define(struct ml_world *world);
