#include "cluster/process_tree.h"

#include <dirent.h>
#include <fcntl.h>
#include <stdio.h>
#include <unistd.h>

#include "base/str.h"

struct process_entry {
    pid_t parent;
    pid_t pid;
};

/* The parent as /proc/PID/stat has it: "PID (name) S PARENT …"; 0 when the process is gone. */
static pid_t read_parent_pid(int proc, const char *pid)
{
    char path[32], text[512];
    snprintf(path, sizeof path, "%.10s/stat", pid);
    int fd = openat(proc, path, O_RDONLY | O_CLOEXEC);
    if (fd < 0)
        return 0;
    ssize_t len = read(fd, text, sizeof text - 1);
    close(fd);
    text[ML_MAX(len, 0)] = '\0';
    /* The name may contain parentheses; nothing after it does. */
    const char *behind = strrchr(text, ')');
    int parent = 0;
    if (!behind || sscanf(behind, ") %*c %d", &parent) != 1)
        return 0;
    return parent;
}

static int compare_by_parent(const void *a, const void *b)
{
    const struct process_entry *x = a, *y = b;
    return (x->parent > y->parent) - (x->parent < y->parent);
}

void process_tree_read(struct process_tree *tree)
{
    tree->count = 0;
    DIR *proc = opendir("/proc");
    if (!proc)
        return;
    for (const struct dirent *entry; (entry = readdir(proc));) {
        uint64_t pid = 0;
        if (!ml_str_to_u64(ml_str_of(entry->d_name), &pid))
            continue;
        pid_t parent = read_parent_pid(dirfd(proc), entry->d_name);
        if (parent <= 0)
            continue;
        tree->entries = ml_grow(tree->entries, &tree->capacity, tree->count,
                                sizeof(*tree->entries));
        tree->entries[tree->count++] = (struct process_entry){parent, (pid_t)pid};
    }
    closedir(proc);
    if (tree->count)
        qsort(tree->entries, tree->count, sizeof(*tree->entries), compare_by_parent);
}

/* The index of the first entry whose parent is `parent` or greater. */
static size_t find_first_child(const struct process_tree *tree, pid_t parent)
{
    size_t low = 0, high = tree->count;
    while (low < high) {
        size_t middle = low + (high - low) / 2;
        if (tree->entries[middle].parent < parent)
            low = middle + 1;
        else
            high = middle;
    }
    return low;
}

static size_t append_children(struct process_tree *tree, size_t found, pid_t parent)
{
    for (size_t i = find_first_child(tree, parent);
         i < tree->count && tree->entries[i].parent == parent; i++)
        tree->found[found++] = tree->entries[i].pid;
    return found;
}

size_t process_tree_below(struct process_tree *tree, pid_t root, const pid_t **out)
{
    /* /proc is read while processes come and go, so that a reused pid could make a cycle; the loop
     * below stops after as many pids as there are entries. */
    if (tree->found_capacity < 2 * tree->count + 1) {
        tree->found_capacity = 2 * tree->capacity + 1;
        tree->found = ml_realloc(tree->found, tree->found_capacity * sizeof(*tree->found));
    }
    size_t found = append_children(tree, 0, root);
    for (size_t i = 0; i < found && found <= tree->count; i++)
        found = append_children(tree, found, tree->found[i]);
    *out = tree->found;
    return found;
}

void process_tree_fini(struct process_tree *tree)
{
    free(tree->entries);
    free(tree->found);
    *tree = (struct process_tree){0};
}
