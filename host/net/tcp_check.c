#include "net/tcp_check.h"

#include <errno.h>
#include <event2/event.h>
#include <netdb.h>
#include <stdio.h>
#include <sys/socket.h>
#include <unistd.h>

struct ml_tcp_check {
    int fd;
    int failed; /* errno of a connect that failed at once */
    struct event *event;
    char where[80];
    void (*done)(void *context, const struct ml_err *err);
    void *context;
};

static int problem_of(int fd)
{
    int problem = 0;
    socklen_t len = sizeof problem;
    return getsockopt(fd, SOL_SOCKET, SO_ERROR, &problem, &len) == 0 ? problem : errno;
}

static void on_ready(evutil_socket_t fd, short what, void *context)
{
    struct ml_tcp_check *check = context;
    struct ml_err err = ML_ERR_INIT;
    int problem = check->failed ? check->failed : problem_of((int)fd);
    if (problem == 0 && (what & EV_TIMEOUT))
        ml_err_set(&err, ML_ETIMEOUT, "connect to %s: timed out", check->where);
    else if (problem)
        ml_err_set(&err, ML_ENETWORK, "connect to %s: %s", check->where, strerror(problem));
    check->done(check->context, err.kind ? &err : NULL);
    ml_tcp_check_free(check);
}

static int resolve(const char *address, uint16_t port, struct addrinfo **out, struct ml_err *err)
{
    char service[8];
    const struct addrinfo hints = {.ai_socktype = SOCK_STREAM,
                                   .ai_flags = AI_NUMERICHOST | AI_NUMERICSERV};
    snprintf(service, sizeof service, "%u", (unsigned)port);
    if (getaddrinfo(address, service, &hints, out) != 0)
        return ml_err_set(err, ML_EINVALID, "\"%s\": no address", address);
    return 0;
}

int ml_tcp_check_start(struct ml_loop *loop, const char *address, uint16_t port, int64_t timeout_ns,
                       void (*done)(void *context, const struct ml_err *err), void *context,
                       struct ml_tcp_check **out, struct ml_err *err)
{
    struct addrinfo *info;
    const struct timeval timeout = {.tv_sec = (time_t)(timeout_ns / ML_NS_PER_S),
                                    .tv_usec = (suseconds_t)(timeout_ns % ML_NS_PER_S / 1000)};
    int r = resolve(address, port, &info, err);
    if (r < 0)
        return r;
    struct ml_tcp_check *check = ml_new(struct ml_tcp_check);
    check->done = done;
    check->context = context;
    snprintf(check->where, sizeof check->where, "%.64s:%u", address, (unsigned)port);
    check->fd = socket(info->ai_family, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0);
    if (check->fd < 0 ||
        (connect(check->fd, info->ai_addr, info->ai_addrlen) < 0 && errno != EINPROGRESS))
        check->failed = errno;
    freeaddrinfo(info);
    check->event = event_new(ml_loop_base(loop), check->fd, check->fd < 0 ? 0 : EV_WRITE, on_ready,
                             check);
    ml_assert(check->event != NULL);
    event_add(check->event, &timeout);
    if (check->failed)
        event_active(check->event, EV_WRITE, 0); /* told from the loop all the same */
    *out = check;
    return 0;
}

void ml_tcp_check_free(struct ml_tcp_check *check)
{
    if (!check)
        return;
    event_free(check->event);
    if (check->fd >= 0)
        close(check->fd);
    free(check);
}
