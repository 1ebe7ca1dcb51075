/* L4 state. The reflector's decisions, as a pure function: how the last LIST or WATCH ended
 * decides what comes next. The rules are client-go's (tools/cache/reflector.go), the quirks
 * that only cost requests left out. */
#pragma once

#include "base/base.h"

enum reflector_end {
    LIST_COMPLETE,
    LIST_GONE,      /* first page: 410, or a version the server has not reached */
    LIST_PAGE_GONE, /* a later page: the continue token expired */
    LIST_FAILED,
    WATCH_ENDED,     /* as it should: time-out, cut, idle */
    WATCH_SHORT,     /* the same within a second and without an event: something is wrong */
    WATCH_SILENT,    /* ended, and for long not even a bookmark came: a server that was restored
                        to an earlier state says nothing to a version it has not reached */
    WATCH_GONE,      /* 410: our version was compacted away */
    WATCH_THROTTLED, /* 429 or refused: the version is still good */
    WATCH_FAILED,
};

struct reflector_step {
    bool watch;       /* else LIST */
    bool any_version; /* LIST: at the most recent version instead of the last one seen */
    bool paged;       /* LIST: in pages; only legal at the most recent version, since a limit
                         together with a version asks for exactly that version */
    bool wait;        /* after a backoff, or what the server asked for */
};

/* `last` is the step that ended so. A reflector that has seen no version lists with
 * any_version whatever this says. */
struct reflector_step reflector_next(const struct reflector_step *last, enum reflector_end end);

/* The first step. The most recent version, unlike client-go's "any cached one": after a
 * restart we must not see less than our predecessor wrote. */
struct reflector_step reflector_first(void);
