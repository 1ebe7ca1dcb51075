#include "kube/file.h"

#include <errno.h>
#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#define PIECE_LEN ((size_t)16 * 1024)

static void close_ptr(int *fd)
{
    if (*fd >= 0)
        close(*fd);
}

static int fail_errno(struct ml_err *err, const char *path)
{
    int kind = errno == ENOENT || errno == ENOTDIR ? ML_ENOT_FOUND : ML_EIO;
    return ml_err_set(err, kind, "%s: %s", path, strerror(errno));
}

static int read_all(int fd, char piece[PIECE_LEN], const char *path, struct ml_buf *out,
                    struct ml_err *err)
{
    for (;;) {
        ssize_t got = read(fd, piece, PIECE_LEN);
        if (got < 0 && errno == EINTR)
            continue;
        if (got < 0)
            return fail_errno(err, path);
        if (got == 0)
            return 0;
        if (!ml_buf_append(out, piece, (size_t)got))
            return ml_err_set(err, ML_ELIMIT, "%s: larger than %zu bytes", path, out->len_max);
    }
}

/* `flags` besides those that reading always has. */
static int read_file(const char *path, int flags, bool pipe_too, struct ml_buf *out,
                     struct ml_err *err)
{
    ML_AUTO(close_ptr) int fd = open(path, O_RDONLY | O_CLOEXEC | O_NOCTTY | flags);
    struct stat info;
    if (fd < 0 || fstat(fd, &info) < 0)
        return fail_errno(err, path);
    if (!S_ISREG(info.st_mode) && !(pipe_too && S_ISFIFO(info.st_mode)))
        return ml_err_set(err, ML_EIO, "%s: not a file", path);
    char piece[PIECE_LEN];
    int r = read_all(fd, piece, path, out, err);
    explicit_bzero(piece, sizeof piece); /* of a key, maybe */
    return r;
}

int ml_file_read(const char *path, struct ml_buf *out, struct ml_err *err)
{
    /* A pipe is what a shell makes of --kubeconfig <(command). */
    return read_file(path, 0, true, out, err);
}

int ml_file_read_again(const char *path, struct ml_buf *out, struct ml_err *err)
{
    return read_file(path, O_NONBLOCK, false, out, err);
}
