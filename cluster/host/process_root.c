/* The root of a container: the machine's tools, to be read; its volumes; /proc, /sys and /dev as
 * containers have them; all else is empty, its own, and gone with it.
 *
 * The folders of the machine that hold programs are the lower layers of overlays. A container's
 * writes there stay in the upper layers, in memory, as do all its writes outside of its volumes.
 * Homes, /var, /run, /tmp and unknown folders of the machine are not visible. */
#include "cluster/host/process_internal.h"

#include <errno.h>
#include <fcntl.h>
#include <linux/magic.h>
#include <stdio.h>
#include <sys/mount.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/vfs.h>
#include <unistd.h>

#include "base/str.h"
#include "cluster/host/process_path.h"

/* ---- volumes ---- */

/* The volumes of a container, and what else is mounted at a path of its root. In order: open,
 * prepare, attach. */
struct mounts {
    const struct ml_process_container *container;
    int *trees;    /* of each mount: a copy of its source that is mounted nowhere yet; -1: none */
    bool *folders; /* of each mount: is the source a folder? */
};

/* The folders of the machine that hold programs, as far as it has them. */
static const char *const machine_folders[] = {
    "usr", "etc", "opt", "bin", "sbin", "lib", "lib32", "lib64", "libx32", "nix", "gnu", NULL,
};

/* A copy of what is mounted at `path`, with all that is mounted below it, or -1 and errno. */
static int clone_mount(int base, const char *path, bool read_only)
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

static bool attach_tree(int tree, int base, const char *target)
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

/* ---- sources of volumes ---- */

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

static bool open_mount(struct mounts *mounts, size_t i, struct process_report *report)
{
    const struct ml_process_mount *mount = &mounts->container->mounts[i];
    struct stat info;
    mounts->folders[i] = true;
    if (!mount->source)
        return true;
    ML_AUTO(ml_close_fd) int source = open_source(mount, report);
    if (source < 0)
        return false;
    mounts->trees[i] = clone_mount(source, "", mount->read_only);
    if (mounts->trees[i] < 0 || fstat(source, &info) < 0)
        return mount_failed(report, mount, process_errno_text());
    mounts->folders[i] = S_ISDIR(info.st_mode);
    return true;
}

/* Takes hold of the sources, while the machine's files are there. */
static bool mounts_open(struct mounts *mounts, const struct ml_process_container *container,
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

static void mounts_fini(struct mounts *mounts)
{
    for (size_t i = 0; mounts->trees && i < mounts->container->mount_count; i++)
        ml_close_fd(&mounts->trees[i]);
    free(mounts->trees);
    free(mounts->folders);
    *mounts = (struct mounts){0};
}

/* ---- targets of volumes in folders of the machine ---- */

static bool is_machine_folder(struct ml_str name)
{
    for (size_t i = 0; machine_folders[i]; i++) {
        if (ml_str_is(name, machine_folders[i]))
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

/* Makes missing targets in folders of the machine: in their upper layers, which are in ./upper and
 * not part of an overlay yet. */
static bool mounts_prepare(const struct mounts *mounts, struct process_report *report)
{
    for (size_t i = 0; i < mounts->container->mount_count; i++) {
        if (!prepare_target(&mounts->container->mounts[i], mounts->folders[i], report))
            return false;
    }
    return true;
}

/* ---- mounting volumes ---- */

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
    return attach_tree(tree, target, "") || mount_failed(report, mount, process_errno_text());
}

/* Mounts all below `root`; other targets are made there. */
static bool mounts_attach(struct mounts *mounts, const char *root, struct process_report *report)
{
    ML_AUTO(ml_close_fd) int fd = open(root, O_PATH | O_DIRECTORY | O_CLOEXEC);
    for (size_t i = 0; i < mounts->container->mount_count; i++) {
        if (!attach_mount(&mounts->container->mounts[i], mounts->trees[i], mounts->folders[i], fd,
                          report))
            return false;
    }
    return true;
}

/* Folders of the container's own. */
static const struct {
    const char *path;
    mode_t mode;
} own_folders[] = {
    {"tmp", 01777},    {"run", 0755},       {"run/lock", 01777}, {"var", 0755},  {"var/lib", 0755},
    {"var/log", 0755}, {"var/cache", 0755}, {"var/spool", 0755}, {"root", 0700}, {"var/tmp", 01777},
    {"home", 0755},    {"mnt", 0755},       {"media", 0755},     {"srv", 0755},  {"proc", 0555},
    {"sys", 0555},     {"dev", 0755},       {"var/empty", 0555},
};

static const char *const own_links[][2] = {{"/run", "var/run"}, {"/run/lock", "var/lock"}};

static const char *const devices[] = {"null", "zero", "full", "random", "urandom", "tty"};

static const char *const device_links[][2] = {
    {"/proc/self/fd", "root/dev/fd"},       {"/proc/self/fd/0", "root/dev/stdin"},
    {"/proc/self/fd/1", "root/dev/stdout"}, {"/proc/self/fd/2", "root/dev/stderr"},
    {"pts/ptmx", "root/dev/ptmx"},
};

/* The machine's, which container runtimes let nobody write. */
static const char *const proc_read_only[] = {"bus", "fs", "irq", "sys", "sysrq-trigger"};

static bool root_failed(struct process_report *report, const char *what, const char *path)
{
    process_report_failure(report, "%s %s: %s", what, path, process_errno_text());
    return false;
}

/* ---- the container's own: one tmpfs with its root, and the layers of its overlays ---- */

static bool make_folder(const char *path, mode_t mode)
{
    return mkdir(path, mode) == 0 || errno == EEXIST;
}

/* From here on the working directory is the tmpfs: "root" becomes "/", "upper" and "work" hold the
 * layers of the machine's folders. */
static bool mount_own_layer(const struct ml_process_container *container,
                            struct process_report *report)
{
    const unsigned long flags = MS_NOSUID | MS_NODEV;
    if (mount(NULL, "/", NULL, MS_REC | MS_SLAVE, NULL) < 0)
        return root_failed(report, "make private", "/");
    if (mount("container", container->root, "tmpfs", flags, "mode=0755") < 0)
        return root_failed(report, "mount a tmpfs at", container->root);
    if (chdir(container->root) < 0 || !make_folder("root", 0755) || !make_folder("upper", 0755) ||
        !make_folder("work", 0755) || mount("root", "root", NULL, MS_BIND, NULL) < 0)
        return root_failed(report, "make folders in", container->root);
    return true;
}

static bool make_own_folders(struct process_report *report)
{
    char path[64];
    for (size_t i = 0; i < ML_COUNT(own_folders); i++) {
        snprintf(path, sizeof path, "root/%s", own_folders[i].path);
        if (!make_folder(path, own_folders[i].mode))
            return root_failed(report, "make", path);
    }
    for (size_t i = 0; i < ML_COUNT(own_links); i++) {
        snprintf(path, sizeof path, "root/%s", own_links[i][1]);
        if (symlink(own_links[i][0], path) < 0)
            return root_failed(report, "make", path);
    }
    return true;
}

/* ---- the machine's folders ---- */

/* Links stay links: /bin is often usr/bin. */
static bool copy_machine_link(const char *name, const char *machine)
{
    char target[512], path[64];
    ssize_t len = readlink(machine, target, sizeof target - 1);
    if (len < 0)
        return false;
    target[len] = '\0';
    snprintf(path, sizeof path, "root/%s", name);
    return symlink(target, path) == 0;
}

static bool make_layer_folders(const char *name, mode_t mode)
{
    static const char *const parents[] = {"root", "upper", "work"};
    char path[64];
    for (size_t i = 0; i < ML_COUNT(parents); i++) {
        snprintf(path, sizeof path, "%s/%s", parents[i], name);
        if (!make_folder(path, mode))
            return false;
    }
    return true;
}

/* Links, and the folders that overlays need. Missing folders are passed over. */
static bool make_machine_folders(struct process_report *report)
{
    for (size_t i = 0; machine_folders[i]; i++) {
        const char *name = machine_folders[i];
        char machine[64];
        struct stat info;
        snprintf(machine, sizeof machine, "/%s", name);
        if (lstat(machine, &info) < 0)
            continue;
        bool made = S_ISLNK(info.st_mode) ? copy_machine_link(name, machine)
                                          : make_layer_folders(name, info.st_mode & 0755);
        if (!made)
            return root_failed(report, "make", name);
    }
    return true;
}

/* The folder as it is, read-only. For one that an overlay cannot have below it: other file systems
 * are mounted in it. */
static bool bind_machine_folder(const char *machine, const char *target)
{
    ML_AUTO(ml_close_fd) int tree = clone_mount(AT_FDCWD, machine, true);
    return tree >= 0 && attach_tree(tree, AT_FDCWD, target);
}

static bool mount_machine_folders(bool read_only, struct process_report *report)
{
    for (size_t i = 0; machine_folders[i]; i++) {
        const char *name = machine_folders[i];
        char machine[64], target[64], layers[256];
        struct stat info;
        snprintf(machine, sizeof machine, "/%s", name);
        snprintf(target, sizeof target, "root/%s", name);
        snprintf(layers, sizeof layers, "lowerdir=/%s,upperdir=upper/%s,workdir=work/%s,userxattr",
                 name, name, name);
        if (lstat(target, &info) < 0 || !S_ISDIR(info.st_mode))
            continue;
        if (mount("overlay", target, "overlay", read_only ? MS_RDONLY : 0, layers) < 0 &&
            !bind_machine_folder(machine, target))
            return root_failed(report, "mount an overlay of", machine);
    }
    return true;
}

/* ---- /proc, /sys, /dev ---- */

static bool mount_proc(struct process_report *report)
{
    char path[64];
    if (mount("proc", "root/proc", "proc", MS_NOSUID | MS_NOEXEC | MS_NODEV, NULL) < 0)
        return root_failed(report, "mount", "/proc");
    for (size_t i = 0; i < ML_COUNT(proc_read_only); i++) {
        snprintf(path, sizeof path, "root/proc/%s", proc_read_only[i]);
        ML_AUTO(ml_close_fd) int tree = clone_mount(AT_FDCWD, path, true);
        bool is_there = tree >= 0 || errno != ENOENT;
        if (is_there && (tree < 0 || !attach_tree(tree, AT_FDCWD, path)))
            return root_failed(report, "protect", path + strlen("root"));
    }
    return true;
}

static bool mount_sys(struct process_report *report)
{
    ML_AUTO(ml_close_fd) int tree = clone_mount(AT_FDCWD, "/sys", true);
    return (tree >= 0 && attach_tree(tree, AT_FDCWD, "root/sys")) ||
           root_failed(report, "mount", "/sys");
}

static bool bind_device(const char *name)
{
    char machine[64], path[64];
    snprintf(machine, sizeof machine, "/dev/%s", name);
    snprintf(path, sizeof path, "root/dev/%s", name);
    ML_AUTO(ml_close_fd) int tree = clone_mount(AT_FDCWD, machine, false);
    if (tree < 0)
        return errno == ENOENT;
    int fd = open(path, O_WRONLY | O_CREAT | O_CLOEXEC, 0644);
    if (fd < 0)
        return false;
    close(fd);
    return attach_tree(tree, AT_FDCWD, path);
}

static bool mount_dev(bool has_terminal, struct process_report *report)
{
    const unsigned long flags = MS_NOSUID | MS_NODEV | MS_NOEXEC;
    if (mount("dev", "root/dev", "tmpfs", MS_NOSUID, "mode=0755,size=64k") < 0)
        return root_failed(report, "mount a tmpfs at", "/dev");
    for (size_t i = 0; i < ML_COUNT(devices); i++) {
        if (!bind_device(devices[i]))
            return root_failed(report, "mount /dev/", devices[i]);
    }
    for (size_t i = 0; i < ML_COUNT(device_links); i++) {
        if (symlink(device_links[i][0], device_links[i][1]) < 0)
            return root_failed(report, "make", device_links[i][1]);
    }
    if (!make_folder("root/dev/pts", 0755) || !make_folder("root/dev/shm", 01777) ||
        mount("pts", "root/dev/pts", "devpts", MS_NOSUID | MS_NOEXEC,
              "newinstance,ptmxmode=0666,mode=0620") < 0 ||
        mount("shm", "root/dev/shm", "tmpfs", flags, "mode=1777,size=64m") < 0)
        return root_failed(report, "mount", "/dev/pts and /dev/shm");
    if (has_terminal && symlink("pts/0", "root/dev/console") < 0)
        return root_failed(report, "make", "/dev/console");
    return true;
}

/* ---- the whole ---- */

static bool make_root_read_only(void)
{
    struct mount_attr only = {.attr_set = MOUNT_ATTR_RDONLY};
    return mount_setattr(AT_FDCWD, "root", 0, &only, sizeof only) == 0;
}

/* The old root goes with all that is mounted in it. */
static bool pivot_into_root(void)
{
    return chdir("root") == 0 && syscall(SYS_pivot_root, ".", ".") == 0 &&
           umount2(".", MNT_DETACH) == 0 && chdir("/") == 0;
}

bool process_root_enter(const struct ml_process_container *container, bool has_terminal,
                        struct process_report *report)
{
    struct mounts mounts = {0};
    umask(0);
    bool entered = mounts_open(&mounts, container, report) && mount_own_layer(container, report) &&
                   make_machine_folders(report) && make_own_folders(report) &&
                   mounts_prepare(&mounts, report) &&
                   mount_machine_folders(container->read_only, report) && mount_proc(report) &&
                   mount_sys(report) && mount_dev(has_terminal, report) &&
                   mounts_attach(&mounts, "root", report);
    mounts_fini(&mounts);
    umask(022);
    if (entered && container->read_only && !make_root_read_only())
        return root_failed(report, "make read-only", "/");
    if (entered && !pivot_into_root())
        return root_failed(report, "enter", container->root);
    return entered;
}
