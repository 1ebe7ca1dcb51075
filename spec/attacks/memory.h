/* How much the process has grown by what the operator does, measured by the kernel: at most at any
 * time, so that memory that is freed again counts too. The server's memory does not count. */
#pragma once

#include "base/base.h"

struct memory {
    int64_t start;  /* bytes resident */
    int64_t server; /* what of the growth is the server's */
    int64_t before; /* its turn */
    int64_t grown;
};

void memory_start(struct memory *memory);
void memory_end(struct memory *memory); /* of a turn of the operator */
void memory_server_begins(struct memory *memory);
void memory_server_ends(struct memory *memory);

/* Bytes that a program may make the host grow by. */
int64_t memory_allowed(int64_t mib);
