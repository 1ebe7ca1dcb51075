/* L5 script, private. What a script gets as `err`: a userdata with the fields kind, code and
 * message, which prints and concatenates as its text. */
#pragma once

#include "script/internal.h"

struct script_failure {
    int kind;
    int http;
    char message[ML_ERR_MESSAGE_MAX];
    char text[SCRIPT_WHAT_MAX + ML_ERR_MESSAGE_MAX + 32]; /* "create Pod default/x: Forbidden: …" */
};

ML_RAISES
void script_open_failures(lua_State *L); /* once a state */
/* [-0, +1] `what` was tried; "" where nobody says. Lives as long as the value on the stack. */
ML_RAISES
const struct script_failure *script_push_failure(lua_State *L, const struct ml_err *err,
                                                 const char *what);
const struct script_failure *script_to_failure(lua_State *L, int index); /* or NULL */
