#include "cluster/process_mounts.h"

#include <errno.h>
#include <fcntl.h>
#include <linux/magic.h>
#include <stdio.h>
#include <sys/mount.h>
#include <sys/stat.h>
#include <sys/vfs.h>
#include <unistd.h>

#include "base/str.h"
#include "cluster/process_exec.h"
#include "cluster/process_path.h"

const char *const process_machine_folders[] = {
    "usr", "etc", "opt", "bin", "sbin", "lib", "lib32", "lib64", "libx32", "nix", "gnu", NULL,
};

int process_mount_clone(int base, const char *path, bool read_only)
{
    struct mount_attr only = {.attr_set = MOUNT_ATTR_RDONLY};
    int tree = open_tree(base, path,
                         OPEN_TREE_CLONE | OPEN_TREE_CLOEXEC | AT_RECURSIVE | AT_EMPTY_PATH);
    if (tree < 0 || !read_only ||
        mount_setattr(tree, "", AT_EMPTY_PATH | AT_RECURSIVE, &only, sizeof only) == 0)
        return tree;
    int saved = errno;
    close(tree);
    errno = saved;
    return -1;
}

bool process_mount_attach(int tree, int base, const char *target)
{
    return move_mount(tree, "", base, target, MOVE_MOUNT_F_EMPTY_PATH | MOVE_MOUNT_T_EMPTY_PATH) ==
           0;
}

static bool mount_failed(struct process_report *report, const struct ml_process_mount *mount,
                         const char *why)
{
    process_report_failure(report, "error mounting to rootfs at \"%s\": %s", mount->target, why);
    return false;
}

/* ---- sources ---- */

static int open_source(const struct ml_process_mount *mount, struct process_report *report)
{
    if (!mount->subpath) {
        int fd = open(mount->source, O_PATH | O_CLOEXEC);
        if (fd < 0)
            process_report_failure(report, "open %s: %s", mount->source, process_errno_text());
        return fd;
    }
    ML_AUTO(ml_close_fd) int folder = open(mount->source, O_PATH | O_DIRECTORY | O_CLOEXEC);
    int fd = folder < 0 ? -1
                        : process_path_open(folder, mount->subpath, PROCESS_PATH_BENEATH, true);
    if (fd < 0)
        process_report_failure(
            report, "failed to prepare subPath \"%s\" for volumeMount \"%s\": %s", mount->subpath,
            mount->target, errno == EXDEV ? "it leads out of its volume" : process_errno_text());
    return fd;
}

static bool open_mount(struct process_mounts *mounts, size_t i, struct process_report *report)
{
    const struct ml_process_mount *mount = &mounts->container->mounts[i];
    struct stat info;
    mounts->folders[i] = true;
    if (!mount->source)
        return true;
    ML_AUTO(ml_close_fd) int source = open_source(mount, report);
    if (source < 0)
        return false;
    mounts->trees[i] = process_mount_clone(source, "", mount->read_only);
    if (mounts->trees[i] < 0 || fstat(source, &info) < 0)
        return mount_failed(report, mount, process_errno_text());
    mounts->folders[i] = S_ISDIR(info.st_mode);
    return true;
}

bool process_mounts_open(struct process_mounts *mounts,
                         const struct ml_process_container *container,
                         struct process_report *report)
{
    size_t count = container->mount_count;
    mounts->container = container;
    mounts->trees = ml_alloc((count + 1) * sizeof(*mounts->trees));
    mounts->folders = ml_zalloc((count + 1) * sizeof(*mounts->folders));
    for (size_t i = 0; i < count; i++)
        mounts->trees[i] = -1;
    for (size_t i = 0; i < count; i++) {
        if (!open_mount(mounts, i, report))
            return false;
    }
    return true;
}

void process_mounts_fini(struct process_mounts *mounts)
{
    for (size_t i = 0; mounts->trees && i < mounts->container->mount_count; i++)
        ml_close_fd(&mounts->trees[i]);
    free(mounts->trees);
    free(mounts->folders);
    *mounts = (struct process_mounts){0};
}

/* ---- targets in folders of the machine ---- */

static bool is_machine_folder(struct ml_str name)
{
    for (size_t i = 0; process_machine_folders[i]; i++) {
        if (ml_str_is(name, process_machine_folders[i]))
            return true;
    }
    return false;
}

/* The name of the folder below "/" that an absolute path is in. */
static struct ml_str first_part(const char *path)
{
    struct ml_str rest = ml_str_of(path + 1);
    return ml_str_cut(&rest, '/');
}

/* The path, in a folder that the machine has, without links in it; its end may be missing. NULL and
 * errno: EXDEV when it leads out of the folders of the machine. The caller frees it. */
static char *resolve_machine_path(const char *path)
{
    ML_AUTO_FREE char *there = ml_strdup(path), *real = NULL;
    while (!(real = realpath(there, NULL)) && errno == ENOENT)
        *strrchr(there, '/') = '\0';
    if (!real)
        return NULL;
    errno = EXDEV;
    return is_machine_folder(first_part(real)) ? ml_asprintf("%s%s", real, path + strlen(there))
                                               : NULL;
}

/* Makes a folder's parents in the upper layer, with the modes that the machine's have. */
static bool make_upper_parents(char *path)
{
    for (char *at = path + 1; (at = strchr(at, '/')); at++) {
        struct stat info = {.st_mode = 0755};
        *at = '\0';
        ML_AUTO_FREE char *upper = ml_asprintf("upper%s", path);
        bool made = (stat(path, &info) == 0 || errno == ENOENT) &&
                    (mkdir(upper, info.st_mode & 0755) == 0 || errno == EEXIST);
        *at = '/';
        if (!made)
            return false;
    }
    return true;
}

static bool make_upper_entry(char *path, bool folder)
{
    ML_AUTO_FREE char *upper = ml_asprintf("upper%s", path);
    if (!make_upper_parents(path))
        return false;
    if (folder)
        return mkdir(upper, 0755) == 0 || errno == EEXIST;
    int fd = open(upper, O_WRONLY | O_CREAT | O_CLOEXEC, 0644);
    if (fd >= 0)
        close(fd);
    return fd >= 0;
}

/* Is the path below a folder that the machine has? */
static bool is_in_machine_folder(const char *path)
{
    struct ml_str first = first_part(path);
    ML_AUTO_FREE char *folder = ml_asprintf("/" ML_STR_FMT, ML_STR_ARG(first));
    return is_machine_folder(first) && path[1 + first.len] && access(folder, F_OK) == 0;
}

/* A link at the end of the path is hidden, not followed: /etc/resolv.conf often is one. */
static bool prepare_target(const struct ml_process_mount *mount, bool folder,
                           struct process_report *report)
{
    if (!is_in_machine_folder(mount->target))
        return true;
    ML_AUTO_FREE char *parent = ml_strdup(mount->target);
    char *name = strrchr(parent, '/');
    *name++ = '\0';
    ML_AUTO_FREE char *real = resolve_machine_path(parent);
    ML_AUTO_FREE char *path = real ? ml_asprintf("%s/%s", real, name) : NULL;
    struct stat info;
    if (!path)
        return mount_failed(report, mount,
                            errno == EXDEV ? "a link there leads to what containers do not see"
                                           : process_errno_text());
    bool is_there = lstat(path, &info) == 0 && !S_ISLNK(info.st_mode);
    if (is_there && folder != S_ISDIR(info.st_mode))
        return mount_failed(report, mount,
                            "not a directory: are you trying to mount a directory onto a file (or "
                            "vice-versa)?");
    return is_there || make_upper_entry(path, folder) ||
           mount_failed(report, mount, process_errno_text());
}

bool process_mounts_prepare(const struct process_mounts *mounts, struct process_report *report)
{
    for (size_t i = 0; i < mounts->container->mount_count; i++) {
        if (!prepare_target(&mounts->container->mounts[i], mounts->folders[i], report))
            return false;
    }
    return true;
}

/* ---- mounting ---- */

static bool attach_mount(const struct ml_process_mount *mount, int tree, bool folder, int root,
                         struct process_report *report)
{
    struct statfs info;
    ML_AUTO(ml_close_fd)
    int target = process_path_open(root, mount->target, PROCESS_PATH_IN_ROOT, folder);
    if (target < 0)
        return mount_failed(report, mount, process_errno_text());
    if (tree < 0)
        return true;
    if (fstatfs(target, &info) == 0 && info.f_type == PROC_SUPER_MAGIC)
        return mount_failed(report, mount, "it is inside /proc");
    return process_mount_attach(tree, target, "") ||
           mount_failed(report, mount, process_errno_text());
}

bool process_mounts_attach(struct process_mounts *mounts, const char *root,
                           struct process_report *report)
{
    ML_AUTO(ml_close_fd) int fd = open(root, O_PATH | O_DIRECTORY | O_CLOEXEC);
    for (size_t i = 0; i < mounts->container->mount_count; i++) {
        if (!attach_mount(&mounts->container->mounts[i], mounts->trees[i], mounts->folders[i], fd,
                          report))
            return false;
    }
    return true;
}
