/* Connects to an address, and says if somebody listens there, for the probes of pods. */
#include "cluster/host/tcp_check.h"

#include <errno.h>
#include <event2/event.h>
#include <stdio.h>
#include <sys/socket.h>
#include <unistd.h>

#define WHERE_SIZE 80 /* of "ADDRESS:PORT" */

struct ml_tcp_check {
    int fd;
    int failed; /* errno of a connect that failed at once */
    struct event *event;
    char where[WHERE_SIZE];
    void (*done)(void *context, const struct ml_err *err);
    void *context;
};

static int socket_error(int fd)
{
    int problem = 0;
    socklen_t len = sizeof problem;
    return getsockopt(fd, SOL_SOCKET, SO_ERROR, &problem, &len) == 0 ? problem : errno;
}

static void on_connect_ended(evutil_socket_t fd, short what, void *context)
{
    struct ml_tcp_check *check = context;
    struct ml_err err = ML_ERR_INIT;
    int problem = check->failed ? check->failed : socket_error((int)fd);
    if (problem == 0 && (what & EV_TIMEOUT))
        ml_err_set(&err, ML_ETIMEOUT, "connect to %s: timed out", check->where);
    else if (problem)
        ml_err_set(&err, ML_ENETWORK, "connect to %s: %s", check->where, strerror(problem));
    check->done(check->context, err.kind ? &err : NULL);
    ml_tcp_check_free(check);
}

int ml_tcp_check_start(struct ml_loop *loop, int fd, const char *address, uint16_t port,
                       int64_t timeout_ns, void (*done)(void *context, const struct ml_err *err),
                       void *context, struct ml_tcp_check **out, struct ml_err *err)
{
    struct sockaddr_storage to;
    int to_len = sizeof to;
    char where[WHERE_SIZE];
    const struct timeval timeout = {.tv_sec = (time_t)(timeout_ns / ML_NS_PER_S),
                                    .tv_usec = (suseconds_t)(timeout_ns % ML_NS_PER_S / 1000)};
    snprintf(where, sizeof where, strchr(address, ':') ? "[%.64s]:%u" : "%.64s:%u", address,
             (unsigned)port);
    if (evutil_parse_sockaddr_port(where, (struct sockaddr *)&to, &to_len) < 0) {
        ml_close_fd(&fd);
        return ml_err_set(err, ML_EINVALID, "\"%s\": no address", address);
    }
    struct ml_tcp_check *check = ml_new(struct ml_tcp_check);
    check->done = done;
    check->context = context;
    memcpy(check->where, where, sizeof where);
    check->fd = fd >= 0 ? fd : socket(to.ss_family, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0);
    if (check->fd < 0 ||
        (connect(check->fd, (struct sockaddr *)&to, (socklen_t)to_len) < 0 && errno != EINPROGRESS))
        check->failed = errno;
    check->event = event_new(ml_loop_base(loop), check->fd, check->fd < 0 ? 0 : EV_WRITE,
                             on_connect_ended, check);
    ml_assert(check->event != NULL);
    event_add(check->event, &timeout);
    if (check->failed)
        event_active(check->event, EV_WRITE, 0); /* done() still comes from the loop */
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
