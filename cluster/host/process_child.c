#include "cluster/host/process_child.h"

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <unistd.h>

/* Closes the host's descriptors, or its peers would not see them closed when it ends. */
static void close_inherited_fds(int socket)
{
    int null = open("/dev/null", O_RDWR | O_CLOEXEC);
    dup2(null, 0);
    dup2(null, 1);
    dup2(null, 2); /* often a terminal, which a container would reach by an init's /proc/1/fd/2 */
    if (socket > 3)
        close_range(3, (unsigned)socket - 1, 0);
    close_range((unsigned)socket + 1, ~0U, 0);
}

/* Wipes the host's environment as the kernel shows it: a container can read that of its init in
 * /proc/1/environ. It has also variables that were set anew or removed since, which `environ` does
 * not. proc(5): env_start and env_end are the fields 50 and 51. */
static void wipe_inherited_environment(void)
{
    char stat[1024];
    unsigned long start = 0, end = 0;
    int fd = open("/proc/self/stat", O_RDONLY | O_CLOEXEC);
    ssize_t len = fd >= 0 ? read(fd, stat, sizeof stat - 1) : 0;
    ml_close_fd(&fd);
    stat[ML_MAX(len, 0)] = '\0';
    const char *at = strrchr(stat, ')'); /* ends field 2, which may have spaces */
    for (int field = 2; at && field < 50; field++)
        at = strchr(at + 1, ' ');
    if (at && sscanf(at, " %lu %lu", &start, &end) == 2 && end > start)
        memset((char *)start, 0, end - start); /* of our own stack */
    for (char **variable = environ; variable && *variable; variable++)
        memset(*variable, 0, strlen(*variable));
    environ = NULL;
}

/* Resets handlers, and blocked or ignored signals, which started processes would inherit. */
static void reset_inherited_signals(void)
{
    sigset_t none;
    for (int signo = 1; signo < NSIG; signo++)
        signal(signo, SIG_DFL);
    sigemptyset(&none);
    sigprocmask(SIG_SETMASK, &none, NULL);
}

void process_child_begin(int socket, const char *name)
{
    setsid(); /* ^C at the terminal goes to the host only */
    prctl(PR_SET_NAME, name);
    close_inherited_fds(socket);
    wipe_inherited_environment();
    reset_inherited_signals();
}

bool process_child_write(const char *path, const char *text)
{
    ML_AUTO(ml_close_fd) int fd = open(path, O_WRONLY | O_CLOEXEC);
    return fd >= 0 && write(fd, text, strlen(text)) == (ssize_t)strlen(text);
}

bool process_child_map_ids(uint32_t user, uint32_t group, uid_t own_user, gid_t own_group)
{
    char users[64], groups[64];
    snprintf(users, sizeof users, "%u %u 1", user, own_user);
    snprintf(groups, sizeof groups, "%u %u 1", group, own_group);
    return process_child_write("/proc/self/setgroups", "deny") &&
           process_child_write("/proc/self/gid_map", groups) &&
           process_child_write("/proc/self/uid_map", users);
}

union descriptors {
    struct cmsghdr head; /* for its alignment */
    char space[CMSG_SPACE(sizeof(int) * PROCESS_CHILD_FDS_MAX)];
};

bool process_child_send(int socket, const void *bytes, size_t len, const int *fds, size_t count)
{
    union descriptors control = {.space = {0}};
    struct iovec data = {(void *)bytes, len};
    struct msghdr message = {.msg_iov = &data, .msg_iovlen = 1};
    if (count > 0) {
        message.msg_control = control.space;
        message.msg_controllen = CMSG_SPACE(sizeof(int) * count);
        struct cmsghdr *head = CMSG_FIRSTHDR(&message);
        head->cmsg_level = SOL_SOCKET;
        head->cmsg_type = SCM_RIGHTS;
        head->cmsg_len = CMSG_LEN(sizeof(int) * count);
        memcpy(CMSG_DATA(head), fds, sizeof(int) * count);
    }
    return sendmsg(socket, &message, MSG_NOSIGNAL) == (ssize_t)len;
}

ssize_t process_child_receive(int socket, void *bytes, size_t len, int fds[PROCESS_CHILD_FDS_MAX],
                              size_t *count, int flags)
{
    union descriptors control;
    int all[sizeof control / sizeof(int)];
    struct iovec data = {bytes, len};
    struct msghdr message = {.msg_iov = &data,
                             .msg_iovlen = 1,
                             .msg_control = control.space,
                             .msg_controllen = sizeof control.space};
    ssize_t received;
    *count = 0;
    do
        received = recvmsg(socket, &message, MSG_CMSG_CLOEXEC | flags);
    while (received < 0 && errno == EINTR);
    const struct cmsghdr *head = received > 0 ? CMSG_FIRSTHDR(&message) : NULL;
    if (!head || head->cmsg_level != SOL_SOCKET || head->cmsg_type != SCM_RIGHTS)
        return received;
    size_t found = (head->cmsg_len - CMSG_LEN(0)) / sizeof(int);
    memcpy(all, CMSG_DATA(head), found * sizeof(int)); /* CMSG_SPACE may have room for one more */
    for (size_t i = 0; i < found; i++) {
        if (i < PROCESS_CHILD_FDS_MAX)
            fds[i] = all[i];
        else
            close(all[i]);
    }
    *count = ML_MIN(found, (size_t)PROCESS_CHILD_FDS_MAX);
    return received;
}
