/* L0 base. The end of secrets: tokens, keys, passwords. Memory that is only freed keeps its bytes
 * until somebody else needs it, for a core dump or an intruder to find. */
#pragma once

#include "base/buf.h"

/* Overwrites a text and frees it; NULL is fine. */
void ml_wipe_free(char *text);
/* The same for a buffer, with what was in it before; it is empty and usable again. What it held
 * before it grew is not reached: give one that holds a secret its contents in one piece. */
void ml_wipe_buf(struct ml_buf *buf);

/* One behind the other, for the caller to wipe. printf would leave copies of what it prints. */
char *ml_join(struct ml_str a, struct ml_str b);

/* Scoped: the variable's text is wiped and freed when it leaves scope. */
#define ML_AUTO_WIPE __attribute__((cleanup(ml_wipe_free_ptr)))
static inline void ml_wipe_free_ptr(void *pp)
{
    ml_wipe_free(*(char **)pp);
}

/* For libraries that copy what they get, and free it as it is: free and realloc that overwrite
 * the first 16 KiB of what is given back. For memory of malloc. */
void ml_wiping_free(void *ptr);
void *ml_wiping_realloc(void *ptr, size_t size); /* NULL when there is none */
