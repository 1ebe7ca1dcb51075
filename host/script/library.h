/* L5 script, private. The Lua library (lua/moonloop/), put into the binary by the build. */
#pragma once

#include <stddef.h>

struct script_library {
    const char *name; /* what require is given: "moonloop.time"; NULL ends the list */
    const char *file; /* for messages: "moonloop/time.lua" */
    const unsigned char *text;
    size_t len;
};

extern const struct script_library script_library[];
