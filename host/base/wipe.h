/* L0 base. Wiping secrets: tokens, keys, passwords. Memory that is only freed keeps its bytes until
 * it is used again; a core dump or an intruder can find them. */
#pragma once

#include "base/buf.h"

/* Overwrites a text and frees it; NULL is fine. */
void ml_wipe_free(char *text);
/* The same for a buffer, which is empty and usable again. The memory that it had before it grew is
 * not wiped: fill a buffer that holds a secret in one piece. */
void ml_wipe_buf(struct ml_buf *buf);

/* `a` followed by `b`, for the caller to wipe. printf would leave copies of what it prints. */
char *ml_join(struct ml_str a, struct ml_str b);

/* Scoped: the variable's text is wiped and freed when it leaves scope. */
#define ML_AUTO_WIPE __attribute__((cleanup(ml_wipe_free_ptr)))
static inline void ml_wipe_free_ptr(void *pp)
{
    ml_wipe_free(*(char **)pp);
}

/* For libraries that copy secrets and free them without wiping: free and realloc that overwrite the
 * first 16 KiB of what they free. For memory of malloc. */
void ml_wiping_free(void *ptr);
void *ml_wiping_realloc(void *ptr, size_t size); /* NULL: out of memory */
