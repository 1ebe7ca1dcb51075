/* Finds a host on this machine, or in this pod, and asks it. */
#include "cli/ask.h"

#include "codec/json.h"
#include "net/local.h"
#include "operator/inspect_server.h"

#include <errno.h>
#include <stdio.h>
#include <sys/socket.h>
#include <unistd.h>

#define ANSWER_MAX ((size_t)4 * 1024 * 1024)

/* The process id of a host that listens, in a line of /proc/net/unix; empty: it has none, or one of
 * another process id namespace. */
static struct ml_str pid_of_line(struct ml_str line, struct ml_str ns)
{
    struct ml_str name = {NULL, 0};
    while (line.len > 0)
        name = ml_str_cut(&line, ' ');
    if (!ml_str_starts(name, "@" ML_INSPECT_SOCKET))
        return ML_STR("");
    size_t prefix = strlen("@" ML_INSPECT_SOCKET);
    struct ml_str rest = {name.ptr + prefix, name.len - prefix};
    struct ml_str pid = ml_str_cut(&rest, '.');
    uint64_t number;
    return ml_str_to_u64(pid, &number) && ml_str_eq(rest, ns) ? pid : ML_STR("");
}

/* Is `pid` in the list, "12, 34"? */
static bool has_pid(struct ml_str pids, struct ml_str pid)
{
    while (pids.len > 0)
        if (ml_str_eq(ml_str_trim(ml_str_cut(&pids, ',')), pid))
            return true;
    return false;
}

/* Fills `pids` with those of all hosts, "12, 34". Returns how many there are. A connection has the
 * name of its host's socket as well. */
static size_t list_hosts(struct ml_buf *pids)
{
    ML_AUTO_FREE char *own = ml_inspect_socket("");
    struct ml_str ns = ml_str_of(own);
    size_t count = 0, capacity = 0;
    char *line = NULL;
    ssize_t len;
    FILE *sockets = fopen("/proc/net/unix", "re");
    (void)ml_str_cut(&ns, '.');
    while (sockets && (len = getline(&line, &capacity, sockets)) > 0) {
        struct ml_str pid = pid_of_line(ml_str_trim((struct ml_str){line, (size_t)len}), ns);
        if (pid.len > 0 && !has_pid(ml_buf_str(pids), pid))
            ml_buf_printf(pids, "%s" ML_STR_FMT, count++ > 0 ? ", " : "", ML_STR_ARG(pid));
    }
    free(line);
    if (sockets)
        fclose(sockets);
    return count;
}

int ml_ask_find(const char *pid, char **out, struct ml_err *err)
{
    ML_AUTO(ml_buf_fini) struct ml_buf pids = ML_BUF_INIT;
    size_t count = pid ? 1 : list_hosts(&pids);
    if (count == 0)
        return ml_err_set(err, ML_ENOT_FOUND,
                          "no moonloop host runs on this machine; one in a cluster is asked in its "
                          "pod: kubectl exec deploy/moonloop -- /moonloop status");
    if (count > 1)
        return ml_err_set(err, ML_EINVALID,
                          "several moonloop hosts run on this machine; choose one with --pid: %s",
                          ml_buf_cstr(&pids));
    *out = pid ? ml_strdup(pid) : ml_buf_take(&pids);
    return 0;
}

static int connect_to_host(const char *pid, int *out_fd, struct ml_err *err)
{
    ML_AUTO_FREE char *name = ml_inspect_socket(pid);
    if (ml_local_connect(name, out_fd, err) == 0)
        return 0;
    if (err->kind == ML_ENOT_FOUND)
        return ml_err_set(err, ML_ENOT_FOUND, "process %s is no moonloop host on this machine",
                          pid);
    return ml_err_wrap(err, "process %s", pid);
}

static bool write_all(int fd, struct ml_str bytes)
{
    while (bytes.len > 0) {
        ssize_t n = send(fd, bytes.ptr, bytes.len, MSG_NOSIGNAL);
        if (n < 0 && errno == EINTR)
            continue;
        if (n <= 0)
            return false;
        bytes = (struct ml_str){bytes.ptr + n, bytes.len - (size_t)n};
    }
    return true;
}

static bool read_all(int fd, struct ml_buf *out)
{
    char piece[16 * 1024];
    for (;;) {
        ssize_t n = read(fd, piece, sizeof piece);
        if (n < 0 && errno == EINTR)
            continue;
        if (n <= 0)
            return n == 0;
        if (!ml_buf_append(out, piece, (size_t)n)) {
            errno = EMSGSIZE;
            return false;
        }
    }
}

int ml_ask(const char *pid, struct ml_str path, struct ml_buf *out, struct ml_err *err)
{
    ML_AUTO(ml_buf_fini) struct ml_buf request = ML_BUF_INIT, answer = ML_BUF_INIT;
    int fd = -1;
    ml_buf_init(&answer, ANSWER_MAX);
    if (connect_to_host(pid, &fd, err) < 0)
        return err->kind;
    ml_buf_printf(&request, "GET " ML_STR_FMT " HTTP/1.0\r\n\r\n", ML_STR_ARG(path));
    bool answered = write_all(fd, ml_buf_str(&request)) && read_all(fd, &answer);
    int failed = errno;
    close(fd);
    bool cut = answered || failed == ECONNRESET || failed == EPIPE;
    if (cut && answer.len == 0)
        return ml_err_set(err, ML_EFORBIDDEN,
                          "the host answers its own user and root alone; run this as one of them");
    if (!answered)
        return ml_err_set(err, ML_EIO, "the host does not answer: %s", strerror(failed));
    const char *text = ml_buf_cstr(&answer), *body = strstr(text, "\r\n\r\n");
    if (!body || strncmp(text, "HTTP/", 5) != 0 || !strstr(text, " 200 ") ||
        ml_json_check(ml_str_of(body + 4), 0, err) < 0)
        return ml_err_set(err, ML_EIO, "the host's answer is broken");
    ml_buf_puts(out, body + 4);
    return 0;
}
