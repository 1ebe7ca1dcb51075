/* L5 script, private. The Lua library (lua/moonloop/ without its stubs), put into the binary by
 * the build. */
#pragma once

#include <stdbool.h>
#include <stddef.h>

struct script_library {
    const char *name; /* what require is given: "moonloop.time"; NULL ends the list */
    const char *file; /* for messages: "moonloop/time.lua" */
    const unsigned char *text, *end;
    bool for_scripts; /* else only the host's own Lua may require it */
};

extern const struct script_library script_library[];
