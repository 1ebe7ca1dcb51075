#include "cluster/host/process_memory.h"

#include <errno.h>
#include <fcntl.h>
#include <linux/nsfs.h>
#include <sched.h>
#include <stdio.h>
#include <sys/ioctl.h>
#include <sys/mount.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include "cluster/host/process_child.h"
#include "cluster/host/process_internal.h"

static bool failed(struct process_report *report, const char *what)
{
    process_report_failure(report, "%s: %s", what, process_errno_text());
    return false;
}

/* A mount namespace of our own. It belongs to the user namespace of the network, in which the
 * containers are made, or else to a new one, in which the user has the number of the machine. */
static bool enter_own_mounts(int network, struct process_report *report)
{
    uid_t user = geteuid();
    gid_t group = getegid();
    if (network >= 0) {
        ML_AUTO(ml_close_fd) int users = ioctl(network, NS_GET_USERNS);
        return (users >= 0 && setns(users, CLONE_NEWUSER) == 0 && unshare(CLONE_NEWNS) == 0) ||
               failed(report, "enter the pod's network");
    }
    if (unshare(CLONE_NEWUSER | CLONE_NEWNS) < 0)
        return failed(report, "make namespaces");
    return process_child_map_ids(user, group, user, group) || failed(report, "map the user");
}

static bool mount_folder(const struct ml_memory_folder *folder, struct process_report *report)
{
    char options[64];
    int len = snprintf(options, sizeof options, "mode=%o", (unsigned)folder->mode);
    if (folder->bytes)
        snprintf(options + len, sizeof options - (size_t)len, ",size=%llu",
                 (unsigned long long)folder->bytes);
    return mount("memory", folder->path, "tmpfs", MS_NOSUID | MS_NODEV, options) == 0 ||
           failed(report, "mount a tmpfs");
}

/* In a child of the host: answers with the namespace, or with why there is none. */
ML_NORETURN static void make_folders(const struct ml_memory_folder *folders, size_t count,
                                     int network, int socket)
{
    struct process_report report = {.what = PROCESS_STARTED};
    bool made = enter_own_mounts(network, &report);
    for (size_t i = 0; made && i < count; i++)
        made = mount_folder(&folders[i], &report);
    int mounts = made ? open("/proc/self/ns/mnt", O_RDONLY | O_CLOEXEC) : -1;
    if (made && mounts < 0)
        failed(&report, "open the namespace");
    process_child_send(socket, &report, sizeof report, &mounts, mounts >= 0 ? 1 : 0);
    _exit(0);
}

/* Waits for the answer. Returns its descriptor, or -1 with the report of a failure. */
static int receive_answer(int socket, struct process_report *report)
{
    int fds[PROCESS_CHILD_FDS_MAX];
    size_t count;
    ssize_t len = process_child_receive(socket, report, sizeof *report, fds, &count, 0);
    if (len != sizeof *report)
        process_report_failure(report, "the process that makes them has gone");
    return len == sizeof *report && count == 1 ? fds[0] : -1;
}

int ml_memory_folders_new(const struct ml_memory_folder *folders, size_t count, int network,
                          int *out_fd, struct ml_err *err)
{
    struct process_report report = {0};
    int sockets[2];
    if (socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, sockets) < 0)
        return ml_err_set(err, ML_EIO, "socketpair: %s", process_errno_text());
    pid_t pid = fork();
    if (pid == 0)
        make_folders(folders, count, network, sockets[1]);
    if (pid < 0)
        process_report_failure(&report, "fork: %s", process_errno_text());
    close(sockets[1]);
    int fd = pid < 0 ? -1 : receive_answer(sockets[0], &report);
    close(sockets[0]);
    while (pid > 0 && waitpid(pid, NULL, 0) < 0 && errno == EINTR)
        ;
    if (fd < 0)
        return ml_err_set(err, ML_EIO, "%s", report.message);
    *out_fd = fd;
    return 0;
}
