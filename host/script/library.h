/* L5 script. Lua files, compiled and put into the binary by the build (cmake/embed.cmake):
 * script_library is lua/moonloop/; scripts may require all of it. */
#pragma once

#include <stddef.h>

struct script_library {
    const char *name; /* the argument of require: "moonloop.time"; NULL ends the list */
    const char *file; /* for messages: "moonloop/time.lua" */
    const unsigned char *code, *end;
};

extern const struct script_library script_library[];
extern const struct script_library analysis_library[]; /* lua/analysis/ and lua/script_api.lua */
extern const struct script_library cluster_library[];  /* cluster/; cluster/host has it */
