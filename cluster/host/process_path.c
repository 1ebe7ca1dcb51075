#include "cluster/host/process_path.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <linux/openat2.h>
#include <stdio.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "base/str.h"

#define DEPTH_MAX 16 /* folders that are open at once; a deeper one is moved up first */

static int open_within(int base, const char *path, enum process_path_links links)
{
    struct open_how how = {
        .flags = O_PATH | O_CLOEXEC,
        .resolve = RESOLVE_NO_MAGICLINKS |
                   (links == PROCESS_PATH_BENEATH ? RESOLVE_BENEATH : RESOLVE_IN_ROOT),
    };
    return (int)syscall(SYS_openat2, base, *path ? path : ".", &how, sizeof how);
}

static bool make_entry(int parent, const char *name, bool folder)
{
    if (folder)
        return mkdirat(parent, name, 0755) == 0 || errno == EEXIST;
    int fd = openat(parent, name, O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC, 0644);
    if (fd >= 0)
        close(fd);
    return fd >= 0 || errno == EEXIST;
}

/* Makes the last part of `path`, whose parent is there. */
static bool make_last_part(int base, char *path, enum process_path_links links, bool folder)
{
    char *slash = strrchr(path, '/');
    if (slash)
        *slash = '\0';
    ML_AUTO(ml_close_fd) int parent = open_within(base, slash ? path : "", links);
    if (slash)
        *slash = '/';
    return parent >= 0 && make_entry(parent, slash ? slash + 1 : path, folder);
}

int process_path_open(int base, const char *path, enum process_path_links links, bool folder)
{
    ML_AUTO_FREE char *part = ml_strdup(path + strspn(path, "/"));
    size_t len = strlen(part);
    for (size_t i = 1; i <= len; i++) {
        if (part[i] != '/' && part[i] != '\0')
            continue;
        char rest = part[i];
        part[i] = '\0';
        int fd = open_within(base, part, links);
        if (fd < 0 && errno == ENOENT && make_last_part(base, part, links, folder || rest))
            fd = open_within(base, part, links);
        if (fd < 0 || !rest)
            return fd;
        close(fd);
        part[i] = rest;
    }
    return open_within(base, part, links); /* the folder itself */
}

/* ---- without links ---- */

static int step_into(int folder, const char *name, bool make)
{
    const int flags = O_PATH | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC;
    if (!strcmp(name, "..")) {
        errno = EXDEV;
        return -1;
    }
    if (make && mkdirat(folder, name, 0700) < 0 && errno != EEXIST)
        return -1;
    return openat(folder, name, flags);
}

static bool leads_up(struct ml_str path)
{
    while (path.len)
        if (ml_str_is(ml_str_cut(&path, '/'), ".."))
            return true;
    return false;
}

/* In one call: -1 where that cannot be. */
static int open_at_once(int base, const char *path)
{
    struct open_how how = {
        .flags = O_PATH | O_DIRECTORY | O_CLOEXEC,
        .resolve = RESOLVE_BENEATH | RESOLVE_NO_SYMLINKS | RESOLVE_NO_MAGICLINKS,
    };
    return leads_up(ml_str_of(path)) ? -1 : (int)syscall(SYS_openat2, base, path, &how, sizeof how);
}

/* Opens as much of a path as is there, most often all or all but its last part, and leaves what is
 * to be walked in *rest. */
static int begin_walk(int base, char *parts, struct ml_str *rest)
{
    int folder = open_at_once(base, *parts ? parts : ".");
    *rest = (struct ml_str){0};
    char *slash = folder < 0 ? strrchr(parts, '/') : NULL;
    if (slash) {
        *slash = '\0';
        folder = open_at_once(base, *parts ? parts : ".");
        *slash = '/';
        *rest = ml_str_of(slash + 1);
    }
    if (folder >= 0)
        return folder;
    *rest = ml_str_of(parts);
    return openat(base, ".", O_PATH | O_DIRECTORY | O_CLOEXEC);
}

/* The first `len` bytes of a path. */
static int open_folder_below(int base, const char *path, size_t len, bool make)
{
    while (len > 0 && path[len - 1] == '/')
        len--;
    ML_AUTO_FREE char *parts = ml_strndup(path, len);
    struct ml_str rest;
    int folder = begin_walk(base, parts, &rest);
    while (folder >= 0 && rest.len) {
        struct ml_str part = ml_str_cut(&rest, '/');
        if (part.len == 0 || ml_str_is(part, "."))
            continue;
        char *name = ml_strndup(part.ptr, part.len);
        int next = step_into(folder, name, make), saved = errno;
        free(name);
        close(folder);
        errno = saved;
        folder = next;
    }
    return folder;
}

int process_path_folder(int base, const char *path, bool make)
{
    return open_folder_below(base, path, strlen(path), make);
}

int process_path_parent(int base, const char *path, bool make, const char **out_name)
{
    const char *slash = strrchr(path, '/');
    const char *name = slash ? slash + 1 : path;
    if (!*name || !strcmp(name, ".") || !strcmp(name, "..")) {
        errno = EXDEV;
        return -1;
    }
    *out_name = name;
    return open_folder_below(base, path, (size_t)(name - path), make);
}

/* ---- removing ---- */

struct removal {
    int top;     /* the folder that is removed */
    dev_t disk;  /* of it */
    unsigned up; /* numbers the folders that were moved up into it */
};

/* To be listed and emptied, also when its mode forbids its owner that. */
static int open_to_empty(int parent, const char *name, struct stat *info)
{
    ML_AUTO(ml_close_fd)
    int folder = openat(parent, name, O_PATH | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
    char path[32];
    if (folder < 0 || fstat(folder, info) < 0)
        return -1;
    snprintf(path, sizeof path, "/proc/self/fd/%d", folder);
    if ((info->st_mode & 0700) != 0700 && chmod(path, 0700) < 0)
        return -1;
    return openat(folder, ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
}

static bool move_up(struct removal *removal, int parent, const char *name)
{
    char up[32];
    do
        snprintf(up, sizeof up, ".removed-%u", removal->up++);
    while (renameat2(parent, name, removal->top, up, RENAME_NOREPLACE) < 0 && errno == EEXIST);
    return faccessat(parent, name, F_OK, AT_SYMLINK_NOFOLLOW) < 0 && errno == ENOENT;
}

static bool empty_folder(struct removal *removal, int fd, int depth, size_t *out_removed);

static bool remove_within(struct removal *removal, int parent, const struct dirent *entry,
                          int depth)
{
    const char *name = entry->d_name;
    struct stat info;
    size_t removed;
    if (entry->d_type != DT_DIR) {
        if (unlinkat(parent, name, 0) == 0 || errno == ENOENT)
            return true;
        if (errno != EISDIR && errno != EPERM)
            return false;
    }
    if (unlinkat(parent, name, AT_REMOVEDIR) == 0 || errno == ENOENT)
        return true;
    int fd = open_to_empty(parent, name, &info);
    if (fd >= 0 && depth < DEPTH_MAX && info.st_dev == removal->disk)
        return empty_folder(removal, fd, depth + 1, &removed) &&
               unlinkat(parent, name, AT_REMOVEDIR) == 0;
    if (fd < 0)
        return false;
    close(fd);
    errno = EXDEV;
    return info.st_dev == removal->disk && move_up(removal, parent, name);
}

/* Closes `fd`. *out_removed: entries that it had. */
static bool empty_folder(struct removal *removal, int fd, int depth, size_t *out_removed)
{
    DIR *folder = fdopendir(fd);
    const struct dirent *entry;
    bool removed = folder != NULL;
    *out_removed = 0;
    if (!folder)
        close(fd);
    while (removed && (entry = readdir(folder))) {
        if (!strcmp(entry->d_name, ".") || !strcmp(entry->d_name, ".."))
            continue;
        removed = remove_within(removal, fd, entry, depth);
        ++*out_removed;
    }
    int saved = errno;
    if (folder)
        closedir(folder);
    errno = saved;
    return removed;
}

bool process_path_remove(int parent, const char *name)
{
    struct stat info;
    size_t removed = 1;
    if (unlinkat(parent, name, 0) == 0 || errno == ENOENT)
        return true;
    if (errno != EISDIR && errno != EPERM)
        return false;
    ML_AUTO(ml_close_fd) int top = open_to_empty(parent, name, &info);
    struct removal removal = {.top = top, .disk = info.st_dev};
    /* Again as long as something was there: an entry that was moved up meanwhile may have been
     * missed. */
    while (top >= 0 && removed > 0) {
        int fd = openat(top, ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
        if (fd < 0 || !empty_folder(&removal, fd, 1, &removed))
            return false;
    }
    return top >= 0 && unlinkat(parent, name, AT_REMOVEDIR) == 0;
}
