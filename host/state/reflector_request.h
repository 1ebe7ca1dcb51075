/* L4 state. What a reflector asks the server for: a LIST or WATCH of its objects. */
#pragma once

#include "state/reflector_fsm.h"
#include "state/reflector_opts.h"

/* Appends the path with its query. `version`: up to which all is known, or NULL; `next`: the
 * continue token of a later page, or NULL. */
void reflector_list_url(const struct ml_reflector_opts *opts, const struct reflector_step *step,
                        const char *version, const char *next, struct ml_buf *url);
void reflector_watch_url(const struct ml_reflector_opts *opts, const struct reflector_step *step,
                         const char *version, int64_t timeout_s, struct ml_buf *url);

/* The Accept field; NULL: plain JSON. */
const char *reflector_accept(const struct ml_reflector_opts *opts, bool list);
