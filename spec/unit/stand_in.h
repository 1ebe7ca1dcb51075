/* A stand-in for lua/moonloop/apiserver/: a Lua text of the test's own, in a folder where
 * `require "moonloop.apiserver"` of a state with files_first finds it. */
#pragma once

#include <stdio.h>
#include <sys/stat.h>
#include <unistd.h>

#include "unit.h"

struct stand_in {
    char folder[64];
};

static inline char *stand_in_file(const struct stand_in *stand_in)
{
    return ml_asprintf("%s/moonloop/apiserver.lua", stand_in->folder);
}

static inline void stand_in_write(struct stand_in *stand_in, const char *text)
{
    snprintf(stand_in->folder, sizeof stand_in->folder, "/tmp/moonloop-test-XXXXXX");
    assert_non_null(mkdtemp(stand_in->folder));
    ML_AUTO_FREE char *parent = ml_asprintf("%s/moonloop", stand_in->folder);
    ML_AUTO_FREE char *file = stand_in_file(stand_in);
    ML_AUTO_FREE char *pattern = ml_asprintf("%s/?.lua;;", stand_in->folder);
    assert_int_equal(mkdir(parent, 0700), 0);
    FILE *out = fopen(file, "w");
    assert_non_null(out);
    fputs(text, out);
    fclose(out);
    setenv("LUA_PATH", pattern, 1);
}

static inline void stand_in_remove(const struct stand_in *stand_in)
{
    ML_AUTO_FREE char *parent = ml_asprintf("%s/moonloop", stand_in->folder);
    ML_AUTO_FREE char *file = stand_in_file(stand_in);
    unlink(file);
    rmdir(parent);
    rmdir(stand_in->folder);
}
