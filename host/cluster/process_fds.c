/* Called by process_submit.c, process_warden.c, process_terminal.c and process.c. */
#include "cluster/process_internal.h"

#include <errno.h>
#include <fcntl.h>
#include <sys/ioctl.h>
#include <sys/socket.h>
#include <unistd.h>

/* One byte and descriptors. */
static bool send_fds(int socket, unsigned char byte, const int *fds, size_t count)
{
    union {
        struct cmsghdr head; /* for its alignment */
        char space[CMSG_SPACE(sizeof(int) * PROCESS_FD_COUNT)];
    } control = {.space = {0}};
    struct iovec data = {&byte, 1};
    struct msghdr message = {.msg_iov = &data,
                             .msg_iovlen = 1,
                             .msg_control = control.space,
                             .msg_controllen = CMSG_SPACE(sizeof(int) * count)};
    struct cmsghdr *head = CMSG_FIRSTHDR(&message);
    head->cmsg_level = SOL_SOCKET;
    head->cmsg_type = SCM_RIGHTS;
    head->cmsg_len = CMSG_LEN(sizeof(int) * count);
    memcpy(CMSG_DATA(head), fds, sizeof(int) * count);
    return sendmsg(socket, &message, MSG_NOSIGNAL) == 1;
}

/* Returns as recv; `*count` descriptors are in `fds`, whose room is PROCESS_FD_COUNT. */
static ssize_t receive_fds(int socket, unsigned char *byte, int *fds, size_t *count, int flags)
{
    union {
        struct cmsghdr head; /* for its alignment */
        char space[CMSG_SPACE(sizeof(int) * PROCESS_FD_COUNT)];
    } control;
    int all[sizeof control / sizeof(int)];
    struct iovec data = {byte, 1};
    struct msghdr message = {.msg_iov = &data,
                             .msg_iovlen = 1,
                             .msg_control = control.space,
                             .msg_controllen = sizeof control.space};
    ssize_t len;
    *count = 0;
    do
        len = recvmsg(socket, &message, MSG_CMSG_CLOEXEC | flags);
    while (len < 0 && errno == EINTR);
    const struct cmsghdr *head = len > 0 ? CMSG_FIRSTHDR(&message) : NULL;
    if (!head || head->cmsg_level != SOL_SOCKET || head->cmsg_type != SCM_RIGHTS)
        return len;
    size_t found = (head->cmsg_len - CMSG_LEN(0)) / sizeof(int);
    memcpy(all, CMSG_DATA(head), found * sizeof(int)); /* CMSG_SPACE may have room for one more */
    for (size_t i = 0; i < found; i++) {
        if (i < PROCESS_FD_COUNT)
            fds[i] = all[i];
        else
            close(all[i]);
    }
    *count = ML_MIN(found, (size_t)PROCESS_FD_COUNT);
    return len;
}

/* The byte has a bit for each descriptor that is there. */
bool process_fds_send(int socket, const int fds[PROCESS_FD_COUNT])
{
    int there[PROCESS_FD_COUNT];
    unsigned char mask = 0;
    size_t count = 0;
    for (int i = 0; i < PROCESS_FD_COUNT; i++) {
        if (fds[i] < 0)
            continue;
        mask |= (unsigned char)(1U << i);
        there[count++] = fds[i];
    }
    return send_fds(socket, mask, there, count);
}

bool process_fds_receive(int socket, int fds[PROCESS_FD_COUNT])
{
    int there[PROCESS_FD_COUNT];
    unsigned char mask = 0;
    size_t count, used = 0;
    if (receive_fds(socket, &mask, there, &count, 0) <= 0)
        return false;
    for (int i = 0; i < PROCESS_FD_COUNT; i++)
        fds[i] = (mask >> i & 1) && used < count ? there[used++] : -1;
    return fds[PROCESS_FD_CONTROL] >= 0;
}

bool process_fds_send_terminal(int socket, int terminal)
{
    return send_fds(socket, 0, &terminal, 1);
}

static bool is_upper_end(int fd)
{
    int number;
    return ioctl(fd, TIOCGPTN, &number) == 0;
}

int process_fds_receive_terminal(int socket)
{
    int fds[PROCESS_FD_COUNT];
    unsigned char byte;
    size_t count;
    ssize_t len = receive_fds(socket, &byte, fds, &count, MSG_DONTWAIT);
    if (len < 0)
        return -1;
    if (count == 1 && is_upper_end(fds[0])) {
        fcntl(fds[0], F_SETFL, O_NONBLOCK);
        return fds[0];
    }
    for (size_t i = 0; i < count; i++)
        close(fds[i]);
    errno = EPIPE;
    return -1;
}
