/* Opens listening sockets, and sets options of all TCP sockets. */
#include "net/tcp.h"

#include <errno.h>
#include <netdb.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <stdio.h>
#include <sys/socket.h>
#include <unistd.h>

#define LISTEN_BACKLOG 512

/* Splits "host:port", "[v6]:port" or ":port". */
static bool split_address(const char *address, char *host, size_t host_size, char *port,
                          size_t port_size)
{
    const char *colon = strrchr(address, ':');
    uint64_t number = 0;
    if (!colon || !ml_str_to_u64(ml_str_of(colon + 1), &number) || number > 65535)
        return false;
    struct ml_str name = {address, (size_t)(colon - address)};
    if (name.len >= 2 && name.ptr[0] == '[' && name.ptr[name.len - 1] == ']')
        name = (struct ml_str){name.ptr + 1, name.len - 2};
    else if (memchr(name.ptr, ':', name.len))
        return false;
    if (name.len >= host_size)
        return false;
    snprintf(host, host_size, ML_STR_FMT, ML_STR_ARG(name));
    snprintf(port, port_size, "%u", (unsigned)number);
    return true;
}

/* A listening socket, or -1 with errno set. All addresses means both families on one socket. */
static int open_listener(const struct addrinfo *info)
{
    int on = 1, off = 0;
    int fd = socket(info->ai_family, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0);
    if (fd < 0)
        return -1;
    setsockopt(fd, SOL_SOCKET, SO_REUSEADDR, &on, sizeof on);
    if (info->ai_family == AF_INET6)
        setsockopt(fd, IPPROTO_IPV6, IPV6_V6ONLY, &off, sizeof off);
    if (bind(fd, info->ai_addr, info->ai_addrlen) == 0 && listen(fd, LISTEN_BACKLOG) == 0)
        return fd;
    int saved = errno;
    close(fd);
    errno = saved;
    return -1;
}

int ml_tcp_listen(const char *address, int *out_fd, struct ml_err *err)
{
    char host[256], port[8];
    if (!split_address(address, host, sizeof host, port, sizeof port))
        return ml_err_set(err, ML_EINVALID, "address \"%s\": not host:port or :port", address);
    /* IPv6 first where both are meant: only that socket can serve the two. */
    static const int families[] = {AF_INET6, AF_INET};
    int fd = -1, failed = EADDRNOTAVAIL;
    bool resolved = false;
    for (size_t i = 0; i < ML_COUNT(families) && fd < 0; i++) {
        struct addrinfo hints = {.ai_family = families[i],
                                 .ai_socktype = SOCK_STREAM,
                                 .ai_flags = AI_PASSIVE | AI_NUMERICSERV};
        struct addrinfo *info = NULL;
        if (getaddrinfo(host[0] ? host : NULL, port, &hints, &info) != 0)
            continue;
        resolved = true;
        fd = open_listener(info);
        failed = errno;
        freeaddrinfo(info);
    }
    if (fd < 0 && !resolved)
        return ml_err_set(err, ML_EINVALID, "address \"%s\": no such host", address);
    if (fd < 0)
        return ml_err_set(err, ML_EIO, "listen on %s: %s", address, strerror(failed));
    *out_fd = fd;
    return 0;
}

void ml_tcp_notice_dead_peer(int fd)
{
    int on = 1, idle_s = ML_TCP_DEAD_PEER_S / 2, every_s = ML_TCP_DEAD_PEER_S / 4, probes = 2;
    setsockopt(fd, SOL_SOCKET, SO_KEEPALIVE, &on, sizeof on);
    setsockopt(fd, IPPROTO_TCP, TCP_KEEPIDLE, &idle_s, sizeof idle_s);
    setsockopt(fd, IPPROTO_TCP, TCP_KEEPINTVL, &every_s, sizeof every_s);
    setsockopt(fd, IPPROTO_TCP, TCP_KEEPCNT, &probes, sizeof probes);
}

int ml_tcp_local_port(int fd)
{
    struct sockaddr_storage address = {0};
    socklen_t len = sizeof address;
    char port[8] = "0";
    if (getsockname(fd, (struct sockaddr *)&address, &len) == 0)
        getnameinfo((struct sockaddr *)&address, len, NULL, 0, port, sizeof port, NI_NUMERICSERV);
    return atoi(port);
}
