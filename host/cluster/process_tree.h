/* cluster. The tree of all processes of the machine, from /proc: what is below a keeper. */
#pragma once

#include <sys/types.h>

#include "base/base.h"

struct process_entry;

struct process_tree {
    struct process_entry *entries; /* by parent */
    size_t count;
    size_t capacity;
    pid_t *found; /* work space */
    size_t found_capacity;
};

/* Reads all processes anew. */
void process_tree_read(struct process_tree *tree);
/* The descendants of `root`, without it; valid until the next call. Returns how many. */
size_t process_tree_below(struct process_tree *tree, pid_t root, const pid_t **out);
void process_tree_fini(struct process_tree *tree);
