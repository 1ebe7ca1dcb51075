/* Unix sockets in the abstract namespace (unix(7)). */
#include "net/local.h"

#include <errno.h>
#include <stddef.h>
#include <sys/socket.h>
#include <sys/time.h>
#include <sys/un.h>
#include <unistd.h>

#define LOCAL_BACKLOG   8
#define LOCAL_TIMEOUT_S 10

static int local_address(const char *name, struct sockaddr_un *out, socklen_t *out_len,
                         struct ml_err *err)
{
    size_t len = strlen(name);
    if (len > ML_LOCAL_NAME_MAX)
        return ml_err_set(err, ML_EIO, "socket %s: its name is too long", name);
    *out = (struct sockaddr_un){.sun_family = AF_UNIX};
    memcpy(out->sun_path + 1, name, len);
    *out_len = (socklen_t)(offsetof(struct sockaddr_un, sun_path) + 1 + len);
    return 0;
}

static int local_fail(int fd, const char *name, int kind, struct ml_err *err)
{
    ml_err_set(err, kind, "socket %s: %s", name, strerror(errno));
    if (fd >= 0)
        close(fd);
    return kind;
}

int ml_local_listen(const char *name, int *out_fd, struct ml_err *err)
{
    struct sockaddr_un address;
    socklen_t len = 0;
    if (local_address(name, &address, &len, err) < 0)
        return err->kind;
    int fd = socket(AF_UNIX, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0);
    if (fd < 0 || bind(fd, (struct sockaddr *)&address, len) < 0 || listen(fd, LOCAL_BACKLOG) < 0)
        return local_fail(fd, name, ML_EIO, err);
    *out_fd = fd;
    return 0;
}

int ml_local_connect(const char *name, int *out_fd, struct ml_err *err)
{
    const struct timeval patience = {.tv_sec = LOCAL_TIMEOUT_S};
    struct sockaddr_un address;
    socklen_t len = 0;
    if (local_address(name, &address, &len, err) < 0)
        return err->kind;
    int fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
    if (fd < 0 || connect(fd, (struct sockaddr *)&address, len) < 0)
        return local_fail(fd, name, errno == ECONNREFUSED ? ML_ENOT_FOUND : ML_EIO, err);
    if (!ml_local_is_trusted(fd)) {
        close(fd);
        return ml_err_set(err, ML_EFORBIDDEN, "socket %s: a process of another user listens", name);
    }
    setsockopt(fd, SOL_SOCKET, SO_RCVTIMEO, &patience, sizeof patience);
    setsockopt(fd, SOL_SOCKET, SO_SNDTIMEO, &patience, sizeof patience);
    *out_fd = fd;
    return 0;
}

bool ml_local_is_trusted(int fd)
{
    struct ucred peer;
    socklen_t len = sizeof peer;
    if (getsockopt(fd, SOL_SOCKET, SO_PEERCRED, &peer, &len) < 0 || len != sizeof peer)
        return false;
    return peer.uid == geteuid() || peer.uid == 0;
}
