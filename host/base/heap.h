/* L0 base. An intrusive binary min-heap ordered by a 64-bit key, first in first out among
 * equals. For timers, delayed work and consistency waits. The heap holds pointers only; the
 * element embeds the node and outlives its stay. */
#pragma once

#include "base/base.h"

struct ml_heap_node {
    uint64_t key;
    uint64_t sequence; /* set on insertion; breaks ties */
    size_t index;      /* 1-based place in the heap; 0 when in none */
};

struct ml_heap {
    struct ml_heap_node **nodes;
    size_t len;
    size_t capacity;
    uint64_t sequence;
};

void ml_heap_fini(struct ml_heap *heap); /* frees the array, not the elements */

/* The node must be in no heap. */
void ml_heap_insert(struct ml_heap *heap, struct ml_heap_node *node, uint64_t key);
void ml_heap_remove(struct ml_heap *heap, struct ml_heap_node *node); /* no-op outside of a heap */
struct ml_heap_node *ml_heap_top(const struct ml_heap *heap);         /* NULL when empty */

static inline bool ml_heap_has(const struct ml_heap_node *node)
{
    return node->index != 0;
}
