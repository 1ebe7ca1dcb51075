/* L4 state. Waits until the cache shows a write of one object. The watch brings it, as a rule in
 * milliseconds. A watch that lags for ten seconds is overtaken by asking the server for the object
 * itself (a consistent read): what that answers enters the cache, and the wait is over when it is
 * as new as the write. Then again after 20 s, 40 s, and so on up to every five minutes. Time alone
 * never ends a wait: acting on an old view is what this prevents.
 *
 * A read that says NotFound ends it only when the cache holds no such object either: what the
 * cache still shows of it is an old view.  */
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
    struct ml_task shown;           /* tells, off the stack of the read */
};

/* Calls `ready` once, from the loop, when the cache shows what the server answered with `rv` for
 * ns/name of the informer's kind; or when the informer ends. */
void ml_write_wait_start(struct ml_write_wait *wait, struct ml_informer *informer, struct ml_str ns,
                         struct ml_str name, uint64_t rv, void (*ready)(void *context),
                         void *context);
void ml_write_wait_cancel(struct ml_write_wait *wait); /* fine on a zeroed or finished one */
/* Nothing is left to wait for: `ready` was called, or is about to be. */
bool ml_write_wait_over(const struct ml_write_wait *wait);
