/* A binary heap of pointers to the nodes of its elements. */
#include "base/heap.h"

static bool before(const struct ml_heap_node *a, const struct ml_heap_node *b)
{
    return a->key != b->key ? a->key < b->key : a->sequence < b->sequence;
}

static void place(struct ml_heap *heap, size_t index, struct ml_heap_node *node)
{
    heap->nodes[index - 1] = node;
    node->index = index;
}

static void sift_up(struct ml_heap *heap, struct ml_heap_node *node)
{
    size_t index = node->index;
    while (index > 1 && before(node, heap->nodes[index / 2 - 1])) {
        place(heap, index, heap->nodes[index / 2 - 1]);
        index /= 2;
    }
    place(heap, index, node);
}

static void sift_down(struct ml_heap *heap, struct ml_heap_node *node)
{
    size_t index = node->index;
    for (;;) {
        size_t child = index * 2;
        if (child > heap->len)
            break;
        if (child < heap->len && before(heap->nodes[child], heap->nodes[child - 1]))
            child++;
        if (!before(heap->nodes[child - 1], node))
            break;
        place(heap, index, heap->nodes[child - 1]);
        index = child;
    }
    place(heap, index, node);
}

void ml_heap_fini(struct ml_heap *heap)
{
    free(heap->nodes);
    *heap = (struct ml_heap){0};
}

void ml_heap_insert(struct ml_heap *heap, struct ml_heap_node *node, uint64_t key)
{
    ml_assert(!ml_heap_has(node));
    if (heap->len == heap->capacity) {
        heap->capacity = heap->capacity ? heap->capacity * 2 : 16;
        heap->nodes = ml_realloc(heap->nodes, heap->capacity * sizeof(struct ml_heap_node *));
    }
    node->key = key;
    node->sequence = heap->sequence++;
    heap->len++;
    place(heap, heap->len, node);
    sift_up(heap, node);
}

void ml_heap_remove(struct ml_heap *heap, struct ml_heap_node *node)
{
    if (!ml_heap_has(node))
        return;
    size_t index = node->index;
    ml_assert(heap->nodes[index - 1] == node);
    struct ml_heap_node *last = heap->nodes[--heap->len];
    node->index = 0;
    if (last == node)
        return;
    place(heap, index, last);
    sift_up(heap, last);
    sift_down(heap, last);
}

struct ml_heap_node *ml_heap_top(const struct ml_heap *heap)
{
    return heap->len ? heap->nodes[0] : NULL;
}
