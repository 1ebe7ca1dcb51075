/* Containers: processes in user, mount, pid, ipc and uts namespaces of their own, with the root of
 * process_root.c. They need no rights of the machine, and have none there: the user that they see
 * is the host's user, under another number.
 *
 * The first process of a container is an init: it starts the command, passes signals on, reaps
 * orphans, and ends with the command. The kernel then kills all that is left in the container. */
#include "cluster/host/process_internal.h"

#include <errno.h>
#include <fcntl.h>
#include <linux/capability.h>
#include <poll.h>
#include <sched.h>
#include <signal.h>
#include <stdio.h>
#include <sys/prctl.h>
#include <sys/signalfd.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include "cluster/host/process_child.h"

#define NAMESPACES (CLONE_NEWUSER | CLONE_NEWNS | CLONE_NEWPID | CLONE_NEWIPC | CLONE_NEWUTS)

/* Capabilities that container runtimes leave to root. They are worth nothing outside of the
 * container. */
#define CAPABILITY(name) (UINT64_C(1) << CAP_##name)
#define ROOT_CAPABILITIES                                                                          \
    (CAPABILITY(CHOWN) | CAPABILITY(DAC_OVERRIDE) | CAPABILITY(FOWNER) | CAPABILITY(FSETID) |      \
     CAPABILITY(KILL) | CAPABILITY(SETGID) | CAPABILITY(SETUID) | CAPABILITY(SETPCAP) |            \
     CAPABILITY(NET_BIND_SERVICE) | CAPABILITY(NET_RAW) | CAPABILITY(SYS_CHROOT) |                 \
     CAPABILITY(MKNOD) | CAPABILITY(AUDIT_WRITE) | CAPABILITY(SETFCAP))

/* As fork, with more flags. */
static pid_t clone_process(unsigned long flags)
{
    return (pid_t)syscall(SYS_clone, flags | SIGCHLD, NULL, NULL, NULL, NULL);
}

static void send_child_report(int reports, const struct process_report *report)
{
    ssize_t written = write(reports, report, sizeof *report);
    (void)written; /* if the shim is gone, so is this process */
}

/* ---- entering ---- */

/* `reports` is the shim's pipe: without a reader the shim has ended before this call. */
static void die_with_shim(const int reports[2])
{
    struct pollfd broken = {reports[1], 0, 0};
    prctl(PR_SET_PDEATHSIG, SIGKILL);
    close(reports[0]);
    if (poll(&broken, 1, 0) > 0)
        _exit(127);
}

/* Leaves root what it has in a container, and others nothing; no program gives it back. */
static bool drop_rights(void)
{
    struct __user_cap_header_struct head = {.version = _LINUX_CAPABILITY_VERSION_3};
    uint64_t capabilities = getuid() == 0 ? ROOT_CAPABILITIES : 0;
    struct __user_cap_data_struct data[2] = {
        {.effective = (uint32_t)capabilities, .permitted = (uint32_t)capabilities},
        {.effective = (uint32_t)(capabilities >> 32), .permitted = (uint32_t)(capabilities >> 32)},
    };
    for (int i = 0; prctl(PR_CAPBSET_READ, i) >= 0; i++) {
        if (!(ROOT_CAPABILITIES >> i & 1) && prctl(PR_CAPBSET_DROP, i) < 0)
            return false;
    }
    return prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) == 0 && syscall(SYS_capset, &head, data) == 0;
}

static bool enter_container(const struct process_request *request, uid_t user, gid_t group,
                            struct process_report *report)
{
    const struct ml_process_container *container = &request->container;
    if (!process_child_map_ids(container->user, container->group, user, group))
        process_report_failure(report, "map the user: %s", process_errno_text());
    else if (sethostname(container->hostname, strlen(container->hostname)) < 0)
        process_report_failure(report, "sethostname: %s", process_errno_text());
    else if (!process_root_enter(container, request->has_terminal, report))
        return false;
    else if (!drop_rights())
        process_report_failure(report, "give up rights: %s", process_errno_text());
    else
        return true;
    return false;
}

/* ---- its init ---- */

static int compare_fds(const void *a, const void *b)
{
    return *(const int *)a - *(const int *)b;
}

/* Closes what the shim had open, but these. Sorts them. */
static void close_shim_fds(int *kept_fds, size_t count)
{
    int next = 3;
    qsort(kept_fds, count, sizeof(*kept_fds), compare_fds);
    for (size_t i = 0; i < count; i++) {
        if (kept_fds[i] > next)
            close_range((unsigned)next, (unsigned)kept_fds[i] - 1, 0);
        next = ML_MAX(next, kept_fds[i] + 1);
    }
    close_range((unsigned)next, ~0U, 0);
}

/* Reaps; at the end of the command, reports it and exits. */
static void init_reap(pid_t command, int reports)
{
    struct process_report report = {.what = PROCESS_ENDED};
    pid_t pid;
    while ((pid = waitpid(-1, &report.value, WNOHANG)) > 0) {
        if (pid != command)
            continue;
        send_child_report(reports, &report);
        _exit(0);
    }
}

/* Starts the command; exits when that fails. */
static pid_t init_start_command(const struct process_request *request,
                                const struct process_stdio *stdio, int reports)
{
    struct process_report report = {0};
    int failed[2] = {-1, -1};
    pid_t pid = pipe2(failed, O_CLOEXEC) == 0 ? fork() : -1;
    if (pid == 0)
        process_exec(request, stdio, failed[1]);
    if (pid < 0)
        process_report_failure(&report, "fork: %s", process_errno_text());
    close(failed[1]);
    if (pid < 0 || read(failed[0], &report, sizeof report) == sizeof report) {
        send_child_report(reports, &report);
        _exit(127);
    }
    return pid;
}

ML_NORETURN static void run_init(const struct process_request *request,
                                 const struct process_stdio *stdio, int reports)
{
    struct process_report report = {.what = PROCESS_STARTED};
    struct signalfd_siginfo info;
    sigset_t all;
    sigfillset(&all);
    sigprocmask(SIG_SETMASK, &all, NULL);
    int signals = signalfd(-1, &all, SFD_CLOEXEC);
    prctl(PR_SET_NAME, "moonloop-init");
    setsid();
    close_shim_fds((int[]){stdio->input, stdio->output, stdio->errors, reports, signals}, 5);
    pid_t command = init_start_command(request, stdio, reports);
    close_shim_fds((int[]){reports, signals}, 2);
    send_child_report(reports, &report);
    for (;;) {
        if (read(signals, &info, sizeof info) != sizeof info)
            continue;
        if (info.ssi_signo != SIGCHLD)
            kill(-command, (int)info.ssi_signo);
        init_reap(command, reports);
    }
}

pid_t process_container_start(const struct process_request *request,
                              const struct process_stdio *stdio, const int reports[2])
{
    uid_t user = geteuid();
    gid_t group = getegid();
    pid_t pid = clone_process(NAMESPACES);
    if (pid != 0)
        return pid;
    struct process_report report = {0};
    die_with_shim(reports);
    if (enter_container(request, user, group, &report))
        run_init(request, stdio, reports[1]);
    send_child_report(reports[1], &report);
    _exit(127);
}

/* ---- another process in it ---- */

/* With the network of its pod. A process that is in the machine's network already may not enter it
 * again. */
static bool enter_namespaces(int container)
{
    if (setns(container, NAMESPACES | CLONE_NEWNET) == 0)
        return true;
    return errno == EPERM && setns(container, NAMESPACES) == 0;
}

/* Enters the container; its child, which is our sibling, executes the command. */
ML_NORETURN static void join_container(const struct process_request *request,
                                       const struct process_stdio *stdio, const int reports[2],
                                       int result)
{
    struct process_report report = {0};
    int container = (int)syscall(SYS_pidfd_open, request->beside, 0);
    pid_t pid = container >= 0 && enter_namespaces(container) ? clone_process(CLONE_PARENT) : -1;
    if (pid == 0) {
        die_with_shim(reports);
        umask(022);
        if (drop_rights())
            process_exec(request, stdio, reports[1]);
    }
    if (pid <= 0) {
        process_report_failure(&report, "enter the container: %s", process_errno_text());
        send_child_report(reports[1], &report);
    }
    if (pid == 0)
        _exit(127);
    if (write(result, &pid, sizeof pid) != sizeof pid)
        _exit(1);
    _exit(0);
}

pid_t process_container_join(const struct process_request *request,
                             const struct process_stdio *stdio, const int reports[2])
{
    int result[2];
    if (pipe2(result, O_CLOEXEC) < 0)
        return -1;
    pid_t pid = -1, between = fork();
    if (between == 0)
        join_container(request, stdio, reports, result[1]);
    close(result[1]);
    if (between > 0) {
        if (read(result[0], &pid, sizeof pid) != sizeof pid)
            pid = -1;
        while (waitpid(between, NULL, 0) < 0 && errno == EINTR)
            ;
    }
    close(result[0]);
    return pid;
}

/* ---- whether there can be containers ---- */

ML_NORETURN static void try_container(const char *folder, const int reports[2])
{
    const struct process_request request = {
        .container = {.root = folder, .hostname = "test", .user = geteuid(), .group = getegid()}};
    struct process_report report = {0};
    uid_t user = geteuid();
    gid_t group = getegid();
    pid_t pid = clone_process(NAMESPACES);
    if (pid == 0) {
        if (!enter_container(&request, user, group, &report))
            send_child_report(reports[1], &report);
        _exit(0);
    }
    if (pid < 0) {
        process_report_failure(&report, "make namespaces: %s", process_errno_text());
        send_child_report(reports[1], &report);
    }
    waitpid(pid, NULL, 0);
    _exit(0);
}

bool process_container_try(const char *folder, struct process_report *report)
{
    int reports[2];
    if (pipe2(reports, O_CLOEXEC) < 0) {
        process_report_failure(report, "pipe: %s", process_errno_text());
        return false;
    }
    pid_t pid = fork();
    if (pid == 0)
        try_container(folder, reports);
    close(reports[1]);
    if (pid < 0)
        process_report_failure(report, "fork: %s", process_errno_text());
    bool failed = pid < 0 || read(reports[0], report, sizeof *report) == sizeof *report;
    close(reports[0]);
    while (pid > 0 && waitpid(pid, NULL, 0) < 0 && errno == EINTR)
        ;
    return !failed;
}
