#include "cluster/dev_files.h"

#include "base/buf.h"
#include "codec/base64.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <ftw.h>
#include <stdio.h>
#include <sys/file.h>
#include <sys/random.h>
#include <sys/stat.h>
#include <unistd.h>

#define PREFIX "moonloop-"
/* In each folder; locked as long as the process lives that has made it. */
#define LOCK ".lock"

static int remove_one(const char *path, const struct stat *info, int type, struct FTW *at)
{
    (void)info, (void)type, (void)at;
    return remove(path);
}

static void remove_folder(const char *folder)
{
    nftw(folder, remove_one, 16, FTW_DEPTH | FTW_PHYS | FTW_MOUNT);
}

/* ---- what others have left ---- */

/* A folder of ours, whose maker has ended without taking it away. */
static bool is_left(const char *folder)
{
    struct stat info;
    if (lstat(folder, &info) < 0 || !S_ISDIR(info.st_mode) || info.st_uid != geteuid())
        return false;
    ML_AUTO_FREE char *lock = ml_asprintf("%s/" LOCK, folder);
    int fd = open(lock, O_RDONLY | O_NOFOLLOW | O_NONBLOCK | O_CLOEXEC);
    if (fd < 0)
        return false;
    bool left = flock(fd, LOCK_EX | LOCK_NB) == 0;
    close(fd);
    return left;
}

static void sweep(const char *parent)
{
    DIR *all = opendir(parent);
    const struct dirent *entry;
    while (all && (entry = readdir(all))) {
        if (strncmp(entry->d_name, PREFIX, strlen(PREFIX)) != 0)
            continue;
        ML_AUTO_FREE char *folder = ml_asprintf("%s/%s", parent, entry->d_name);
        if (is_left(folder))
            remove_folder(folder);
    }
    if (all)
        closedir(all);
}

/* Under its name there is only a file that is locked: who sweeps takes any other for left. */
static int lock_folder(struct ml_dev_files *files)
{
    ML_AUTO_FREE char *beside = ml_asprintf("%s/" LOCK ".new", files->folder);
    ML_AUTO_FREE char *lock = ml_asprintf("%s/" LOCK, files->folder);
    files->lock = open(beside, O_RDWR | O_CREAT | O_EXCL | O_CLOEXEC, 0600);
    if (files->lock < 0 || flock(files->lock, LOCK_EX | LOCK_NB) < 0)
        return -1;
    return rename(beside, lock);
}

int ml_dev_files_make(struct ml_dev_files *files, struct ml_err *err)
{
    const char *parent = getenv("TMPDIR");
    parent = parent && *parent ? parent : "/tmp";
    *files = (struct ml_dev_files){.lock = -1};
    sweep(parent);
    char *folder = ml_asprintf("%s/" PREFIX "XXXXXX", parent);
    if (!mkdtemp(folder)) {
        int r = ml_err_set(err, ML_EIO, "%s: cannot be made: %s", folder, strerror(errno));
        free(folder);
        return r;
    }
    files->folder = folder;
    if (lock_folder(files) < 0)
        return ml_err_set(err, ML_EIO, "%s/" LOCK ": cannot be made: %s", folder, strerror(errno));
    return 0;
}

static void describe(struct ml_buf *out, const struct ml_dev_access *access)
{
    ml_buf_puts(out, "apiVersion: v1\nkind: Config\ncurrent-context: moonloop\n"
                     "clusters:\n- name: moonloop\n  cluster:\n");
    ml_buf_printf(
        out, "    server: https://127.0.0.1:%d\n    certificate-authority-data: ", access->port);
    ml_base64_encode(ml_str_of(access->ca_pem), out);
    ml_buf_printf(out, "\nusers:\n- name: moonloop\n  user:\n    token: %s\n", access->token);
    ml_buf_puts(out, "contexts:\n- name: moonloop\n  context:\n    cluster: moonloop\n"
                     "    user: moonloop\n    namespace: default\n");
}

static int write_all(int fd, struct ml_str text)
{
    while (text.len) {
        ssize_t sent = write(fd, text.ptr, text.len);
        if (sent < 0)
            return -1;
        text.ptr += sent;
        text.len -= (size_t)sent;
    }
    return 0;
}

/* Beside the place and then into it: nobody reads half a file, or one of another's mode. */
int ml_dev_files_write_kubeconfig(struct ml_dev_files *files, const char *path,
                                  const struct ml_dev_access *access, struct ml_err *err)
{
    ML_AUTO(ml_buf_fini) struct ml_buf text = ML_BUF_INIT;
    char *name = path ? ml_strdup(path) : ml_asprintf("%s/kubeconfig", files->folder);
    ML_AUTO_FREE char *beside = ml_asprintf("%s.XXXXXX", name);
    describe(&text, access);
    int fd = mkostemp(beside, O_CLOEXEC); /* mode 0600 */
    int r = fd < 0 ? -1 : write_all(fd, ml_buf_str(&text));
    if (fd >= 0 && close(fd) < 0)
        r = -1;
    if (r == 0)
        r = rename(beside, name);
    if (r < 0) {
        ml_err_set(err, ML_EIO, "%s: cannot be written: %s", name, strerror(errno));
        if (fd >= 0)
            unlink(beside);
        free(name);
        return err->kind;
    }
    free(files->kubeconfig);
    files->kubeconfig = name;
    return 0;
}

void ml_dev_files_fini(struct ml_dev_files *files)
{
    if (files->kubeconfig)
        unlink(files->kubeconfig);
    if (files->folder)
        remove_folder(files->folder);
    if (files->folder && files->lock >= 0)
        close(files->lock);
    free(files->kubeconfig);
    free(files->folder);
    *files = (struct ml_dev_files){0};
}

int ml_dev_token(char out[ML_DEV_TOKEN_LEN + 1], struct ml_err *err)
{
    static const char letters[] = "abcdefghijklmnopqrstuvwxyz234567"; /* 32: no bias */
    unsigned char bytes[ML_DEV_TOKEN_LEN];
    if (getrandom(bytes, sizeof bytes, 0) != (ssize_t)sizeof bytes)
        return ml_err_set(err, ML_EIO, "no random bytes: %s", strerror(errno));
    for (size_t i = 0; i < ML_DEV_TOKEN_LEN; i++)
        out[i] = letters[bytes[i] % 32];
    out[ML_DEV_TOKEN_LEN] = '\0';
    return 0;
}
