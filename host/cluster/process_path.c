#include "cluster/process_path.h"

#include <errno.h>
#include <fcntl.h>
#include <linux/openat2.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

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
