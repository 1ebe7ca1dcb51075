/* L4 state. Waits until the cache shows a write of one object. The watch usually brings it within
 * milliseconds. If it has not after ten seconds, the object is read from the server (a consistent
 * read) and put into the cache; the wait ends when that is at least as new as the write. The read
 * is repeated after 20 s, 40 s, and so on, up to every five minutes. Time alone never ends a wait:
 * nobody is to act on a stale cache.
 *
 * A read that answers NotFound ends the wait only when the cache does not hold the object either;
 * otherwise the cache is still stale.  */
#pragma once

#include "state/informer.h"

/* Embed it; all is private. */
struct ml_write_wait {
    void (*ready)(void *context);
    void *context;
    struct ml_informer *informer;
    char *ns, *name;
    uint64_t rv;
    struct ml_seen_wait seen;
    struct ml_timer read_timer;
    int64_t read_delay_ns;
    struct ml_client_call *reading; /* NULL: not asking */
    struct ml_task shown;           /* calls `ready`, off the stack of the read */
};

/* Calls `ready` once, from the loop, when the cache shows what the server answered with `rv` for
 * ns/name of the informer's kind; or when the informer ends. */
void ml_write_wait_start(struct ml_write_wait *wait, struct ml_informer *informer, struct ml_str ns,
                         struct ml_str name, uint64_t rv, void (*ready)(void *context),
                         void *context);
void ml_write_wait_cancel(struct ml_write_wait *wait); /* fine on a zeroed or finished one */
/* The wait is over: `ready` was called, or is about to be. */
bool ml_write_wait_over(const struct ml_write_wait *wait);
