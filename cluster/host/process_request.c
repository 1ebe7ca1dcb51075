/* A request on its way: the file in memory that the host writes and a shim reads, and descriptors
 * over sockets, from the host to its supervisor, and that of a terminal back. */
#include "cluster/host/process_internal.h"

#include <errno.h>
#include <fcntl.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/buf.h"
#include "cluster/host/process_child.h"

_Static_assert(PROCESS_FD_COUNT <= PROCESS_CHILD_FDS_MAX, "all of a request go at once");

#define REQUEST_MAX ((size_t)8 * 1024 * 1024) /* of command line and environment */

/* ---- writing ---- */

static uint32_t count_strings(const char *const *list)
{
    uint32_t count = 0;
    while (list[count])
        count++;
    return count;
}

static void append_string(struct ml_buf *out, const char *text)
{
    text = text ? text : "";
    ml_buf_append(out, text, strlen(text) + 1);
}

static void append_container(struct ml_buf *out, const struct ml_process_container *container)
{
    append_string(out, container->root);
    append_string(out, container->hostname);
    for (size_t i = 0; i < container->mount_count; i++) {
        const struct ml_process_mount *mount = &container->mounts[i];
        append_string(out, mount->source);
        append_string(out, mount->subpath);
        append_string(out, mount->target);
        append_string(out, mount->read_only ? "ro" : "rw");
    }
}

static void append_request(struct ml_buf *out, const struct ml_process_opts *opts, int beside)
{
    const struct ml_process_container *container = opts->container;
    struct process_request_head head = {
        .count_max = opts->count_max ? opts->count_max : ML_PROCESS_COUNT_MAX,
        .argc = count_strings(opts->argv),
        .envc = count_strings(opts->env),
        .beside = beside,
        .has_directory = opts->directory != NULL,
        .has_container = container != NULL,
        .has_terminal = opts->terminal != NULL,
    };
    if (opts->terminal)
        head.terminal = *opts->terminal;
    if (container) {
        head.count_max++;
        head.mountc = (uint32_t)container->mount_count;
        head.user = container->user;
        head.group = container->group;
        head.read_only = container->read_only;
    }
    ml_assert(head.argc > 0);
    ml_buf_append(out, &head, sizeof head);
    for (uint32_t i = 0; i < head.argc; i++)
        append_string(out, opts->argv[i]);
    for (uint32_t i = 0; i < head.envc; i++)
        append_string(out, opts->env[i]);
    if (opts->directory)
        append_string(out, opts->directory);
    if (container)
        append_container(out, container);
}

int process_request_open(const struct ml_process_opts *opts, int beside)
{
    ML_AUTO(ml_buf_fini) struct ml_buf text = ML_BUF_INIT;
    ml_buf_init(&text, REQUEST_MAX);
    append_request(&text, opts, beside);
    if (text.failed) {
        errno = E2BIG;
        return -1;
    }
    int fd = memfd_create("request", MFD_CLOEXEC);
    if (fd < 0 || write(fd, text.ptr, text.len) == (ssize_t)text.len)
        return fd;
    close(fd);
    errno = ENOSPC;
    return -1;
}

/* ---- reading ---- */

static char *read_request_text(int fd)
{
    struct stat info;
    if (fstat(fd, &info) < 0 || info.st_size < (off_t)sizeof(struct process_request_head))
        return NULL;
    char *text = ml_alloc((size_t)info.st_size);
    if (pread(fd, text, (size_t)info.st_size, 0) != info.st_size)
        free(ml_take(&text));
    return text;
}

static char *next_string(char **at)
{
    char *text = *at;
    *at += strlen(text) + 1;
    return text;
}

/* A list of the next `count` strings. */
static char **next_strings(char **at, size_t count)
{
    char **list = ml_alloc((count + 1) * sizeof(*list));
    for (size_t i = 0; i < count; i++)
        list[i] = next_string(at);
    list[count] = NULL;
    return list;
}

/* "" stands for NULL. */
static const char *next_optional(char **at)
{
    const char *text = next_string(at);
    return *text ? text : NULL;
}

static void read_container(struct ml_process_container *container,
                           const struct process_request_head *head, char **at)
{
    struct ml_process_mount *mounts = ml_zalloc((head->mountc + 1) * sizeof(*mounts));
    container->root = next_string(at);
    container->hostname = next_string(at);
    container->user = head->user;
    container->group = head->group;
    container->read_only = head->read_only;
    for (uint32_t i = 0; i < head->mountc; i++) {
        mounts[i].source = next_optional(at);
        mounts[i].subpath = next_optional(at);
        mounts[i].target = next_string(at);
        mounts[i].read_only = strcmp(next_string(at), "ro") == 0;
    }
    container->mounts = mounts;
    container->mount_count = head->mountc;
}

bool process_request_read(struct process_request *request, int fd)
{
    struct process_request_head head;
    request->text = read_request_text(fd);
    if (!request->text)
        return false;
    memcpy(&head, request->text, sizeof head);
    char *at = request->text + sizeof head;
    request->argv = next_strings(&at, head.argc);
    request->env = next_strings(&at, head.envc);
    request->directory = head.has_directory ? next_string(&at) : NULL;
    request->beside = head.beside;
    request->has_container = head.has_container;
    request->has_terminal = head.has_terminal;
    request->terminal = head.terminal;
    if (head.has_container)
        read_container(&request->container, &head, &at);
    return true;
}

/* ---- descriptors ---- */

/* The byte has a bit for each descriptor that is there. */
bool process_fds_send(int socket, const int fds[PROCESS_FD_COUNT])
{
    int there[PROCESS_CHILD_FDS_MAX];
    unsigned char mask = 0;
    size_t count = 0;
    for (int i = 0; i < PROCESS_FD_COUNT; i++) {
        if (fds[i] < 0)
            continue;
        mask |= (unsigned char)(1U << i);
        there[count++] = fds[i];
    }
    return process_child_send(socket, &mask, 1, there, count);
}

bool process_fds_receive(int socket, int fds[PROCESS_FD_COUNT])
{
    int there[PROCESS_CHILD_FDS_MAX];
    unsigned char mask = 0;
    size_t count, used = 0;
    if (process_child_receive(socket, &mask, 1, there, &count, 0) <= 0)
        return false;
    for (int i = 0; i < PROCESS_FD_COUNT; i++)
        fds[i] = (mask >> i & 1) && used < count ? there[used++] : -1;
    return fds[PROCESS_FD_CONTROL] >= 0;
}

bool process_fds_send_terminal(int socket, int terminal)
{
    const unsigned char byte = 0;
    return process_child_send(socket, &byte, 1, &terminal, 1);
}

static bool is_upper_end(int fd)
{
    int number;
    return ioctl(fd, TIOCGPTN, &number) == 0;
}

int process_fds_receive_terminal(int socket)
{
    int fds[PROCESS_CHILD_FDS_MAX];
    unsigned char byte;
    size_t count;
    ssize_t len = process_child_receive(socket, &byte, 1, fds, &count, MSG_DONTWAIT);
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
