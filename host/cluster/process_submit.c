/* Called by process.c. */
#include "cluster/process_internal.h"

#include <errno.h>
#include <fcntl.h>
#include <sys/socket.h>
#include <unistd.h>

static void close_open_fds(const int *fds, size_t count)
{
    int saved = errno;
    for (size_t i = 0; i < count; i++) {
        if (fds[i] >= 0)
            close(fds[i]);
    }
    errno = saved;
}

/* The host's ends of what a process is connected with, and the others; -1 where there is none. */
struct ends {
    int ours[PROCESS_FD_COUNT];
    int theirs[PROCESS_FD_COUNT];
};

static bool open_pipe(int *reader, int *writer)
{
    int fds[2];
    if (pipe2(fds, O_CLOEXEC) < 0)
        return false;
    *reader = fds[0];
    *writer = fds[1];
    return true;
}

static bool open_sockets(int *ours, int *theirs)
{
    int fds[2];
    if (socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, fds) < 0)
        return false;
    *ours = fds[0];
    *theirs = fds[1];
    return true;
}

/* What has been opened is in `ends` in any case; all is -1 before. */
static bool open_ends(struct ends *ends, const struct ml_process_opts *opts)
{
    int *ours = ends->ours, *theirs = ends->theirs;
    theirs[PROCESS_FD_REQUEST] = process_request_open(opts);
    if (theirs[PROCESS_FD_REQUEST] < 0 ||
        !open_sockets(&ours[PROCESS_FD_CONTROL], &theirs[PROCESS_FD_CONTROL]))
        return false;
    if (opts->terminal)
        return open_sockets(&ours[PROCESS_FD_OUTPUT], &theirs[PROCESS_FD_OUTPUT]);
    return open_pipe(&ours[PROCESS_FD_OUTPUT], &theirs[PROCESS_FD_OUTPUT]) &&
           (!opts->errors || open_pipe(&ours[PROCESS_FD_ERRORS], &theirs[PROCESS_FD_ERRORS])) &&
           (!opts->has_input || open_pipe(&theirs[PROCESS_FD_INPUT], &ours[PROCESS_FD_INPUT]));
}

bool process_submit(int warden, const struct ml_process_opts *opts, int ours[PROCESS_FD_COUNT])
{
    struct ends ends;
    memset(&ends, -1, sizeof ends);
    bool sent = open_ends(&ends, opts);
    if (sent) {
        int fds[PROCESS_FD_COUNT];
        memcpy(fds, ends.theirs, sizeof fds);
        fds[PROCESS_FD_NETWORK] = opts->has_network ? opts->network : -1; /* stays the caller's */
        sent = process_fds_send(warden, fds);
    }
    close_open_fds(ends.theirs, PROCESS_FD_COUNT);
    if (!sent) {
        close_open_fds(ends.ours, PROCESS_FD_COUNT);
        return false;
    }
    for (size_t i = 0; i < PROCESS_FD_COUNT; i++) {
        if (ends.ours[i] >= 0)
            fcntl(ends.ours[i], F_SETFL, O_NONBLOCK);
    }
    memcpy(ours, ends.ours, sizeof ends.ours);
    return true;
}
