/* For the tests of the script layer: load a text as a script, and look at what it says. */
#pragma once

#include <stdio.h>

#include "unit.h"

#include "script/script.h"

/* Loads `text` as the only file, NAME.lua. NULL, with `err` filled, when it is refused. */
static inline struct ml_script *load_file(const char *name, const char *text,
                                          const struct ml_script_limits *limits, struct ml_err *err)
{
    const struct ml_script_file file = {ml_str_of(name), ml_str_of(text)};
    const struct ml_script_files files = {&file, 1};
    struct ml_script *script = NULL;
    *err = ML_ERR_INIT;
    int r = ml_script_load(NULL, limits, &files, 0, &script, err);
    assert_int_equal(r, err->kind);
    assert_true(r == 0 || r == ML_ESCRIPT);
    return script;
}

/* Runs statements in the sandbox; they assert what they have to say. */
static inline void run_lua(const char *statements)
{
    struct ml_err err;
    ML_AUTO_FREE char *text = ml_asprintf("%s\nreturn {}", statements);
    struct ml_script *script = load_file("t.lua", text, NULL, &err);
    if (!script)
        fail_msg("%s", err.message);
    ml_script_unref(script);
}

/* The same for statements that must be refused with a message that has `part`. */
static inline void refuse_lua(const char *statements, const char *part)
{
    struct ml_err err;
    ML_AUTO_FREE char *text = ml_asprintf("%s\nreturn {}", statements);
    struct ml_script *script = load_file("t.lua", text, NULL, &err);
    if (script) {
        ml_script_unref(script);
        fail_msg("was not refused: %s", statements);
    }
    if (!strstr(err.message, part))
        fail_msg("'%s' is not in '%s'", part, err.message);
}
