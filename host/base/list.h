/* L0 base. An intrusive, circular, doubly linked list: the node lives in the element, so
 * nothing is allocated and an element leaves in O(1). An element is on one list at most per
 * node it embeds. */
#pragma once

#include "base/base.h"

struct ml_list {
    struct ml_list *prev;
    struct ml_list *next;
};

static inline void ml_list_init(struct ml_list *list)
{
    list->prev = list->next = list;
}

static inline bool ml_list_empty(const struct ml_list *list)
{
    return list->next == list;
}

static inline void ml_list_push(struct ml_list *list, struct ml_list *node) /* at the tail */
{
    node->prev = list->prev;
    node->next = list;
    list->prev->next = node;
    list->prev = node;
}

/* Safe on a node that is initialised but on no list. */
static inline void ml_list_remove(struct ml_list *node)
{
    node->prev->next = node->next;
    node->next->prev = node->prev;
    ml_list_init(node);
}

/* Takes the head off; NULL when empty. */
static inline struct ml_list *ml_list_shift(struct ml_list *list)
{
    struct ml_list *head = list->next;
    if (head == list)
        return NULL;
    ml_list_remove(head);
    return head;
}

/* `node` may be removed (and freed) in the body. */
#define ml_list_each(node, list)                                                                   \
    for (struct ml_list *node = (list)->next, *node##_next = node->next; node != (list);           \
         node = node##_next, node##_next = node->next)

/* The same with the elements, of a struct whose node is `node`: ml_list_each_entry (struct thing,
 * thing, &things). */
#define ml_list_each_entry(type, entry, list)                                                      \
    for (type *entry = ml_container_of((list)->next, type, node),                                  \
              *entry##_next = ml_container_of(entry->node.next, type, node);                       \
         &entry->node != (list);                                                                   \
         entry = entry##_next, entry##_next = ml_container_of(entry->node.next, type, node))
