#include "cluster/process_root.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <sys/mount.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "cluster/process_exec.h"
#include "cluster/process_mounts.h"

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

/* What runtimes of containers let nobody write: it is the machine's. */
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
    for (size_t i = 0; process_machine_folders[i]; i++) {
        const char *name = process_machine_folders[i];
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
    ML_AUTO(ml_close_fd) int tree = process_mount_clone(AT_FDCWD, machine, true);
    return tree >= 0 && process_mount_attach(tree, AT_FDCWD, target);
}

static bool mount_machine_folders(bool read_only, struct process_report *report)
{
    for (size_t i = 0; process_machine_folders[i]; i++) {
        const char *name = process_machine_folders[i];
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
        ML_AUTO(ml_close_fd) int tree = process_mount_clone(AT_FDCWD, path, true);
        bool is_there = tree >= 0 || errno != ENOENT;
        if (is_there && (tree < 0 || !process_mount_attach(tree, AT_FDCWD, path)))
            return root_failed(report, "protect", path + strlen("root"));
    }
    return true;
}

static bool mount_sys(struct process_report *report)
{
    ML_AUTO(ml_close_fd) int tree = process_mount_clone(AT_FDCWD, "/sys", true);
    return (tree >= 0 && process_mount_attach(tree, AT_FDCWD, "root/sys")) ||
           root_failed(report, "mount", "/sys");
}

static bool bind_device(const char *name)
{
    char machine[64], path[64];
    snprintf(machine, sizeof machine, "/dev/%s", name);
    snprintf(path, sizeof path, "root/dev/%s", name);
    ML_AUTO(ml_close_fd) int tree = process_mount_clone(AT_FDCWD, machine, false);
    if (tree < 0)
        return errno == ENOENT;
    int fd = open(path, O_WRONLY | O_CREAT | O_CLOEXEC, 0644);
    if (fd < 0)
        return false;
    close(fd);
    return process_mount_attach(tree, AT_FDCWD, path);
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
    struct process_mounts mounts = {0};
    umask(0);
    bool entered = process_mounts_open(&mounts, container, report) &&
                   mount_own_layer(container, report) && make_machine_folders(report) &&
                   make_own_folders(report) && process_mounts_prepare(&mounts, report) &&
                   mount_machine_folders(container->read_only, report) && mount_proc(report) &&
                   mount_sys(report) && mount_dev(has_terminal, report) &&
                   process_mounts_attach(&mounts, "root", report);
    process_mounts_fini(&mounts);
    umask(022);
    if (entered && container->read_only && !make_root_read_only())
        return root_failed(report, "make read-only", "/");
    if (entered && !pivot_into_root())
        return root_failed(report, "enter", container->root);
    return entered;
}
