/* L4 state. Keeps its owner informed of all objects of one kind in one namespace (or all): LIST,
 * then WATCH, for ever, through all errors. An explicit state machine after client-go's reflector;
 * the decision what comes next (reflector_next in reflector_fsm.h) is a pure function.
 *
 * Never publishes part of a list; never takes a resourceVersion from a list item; keeps the
 * last one over a cut and resumes from it; lists again only when it must; does not apply a list
 * that is older than what it has reported already. */
#pragma once

#include "state/reflector_opts.h"

struct ml_reflector;

struct ml_reflector *ml_reflector_new(const struct ml_reflector_opts *opts);
void ml_reflector_start(struct ml_reflector *reflector);
void ml_reflector_free(struct ml_reflector *reflector); /* stops; no call comes afterwards.
                                                           Not from within one of its calls */
