#include "operator/file_rights.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <linux/landlock.h>
#include <stdio.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

/* What kernels newer than the headers know (Documentation/userspace-api/landlock.rst). */
#define FS_REFER      (UINT64_C(1) << 13) /* ABI 2 */
#define FS_TRUNCATE   (UINT64_C(1) << 14) /* ABI 3 */
#define NET_BIND_TCP  (UINT64_C(1) << 0)  /* ABI 4 */
#define FS_IOCTL_DEV  (UINT64_C(1) << 15) /* ABI 5 */
#define SCOPE_SIGNAL  (UINT64_C(1) << 1)  /* ABI 6 */
#define SCOPE_SOCKETS (UINT64_C(1) << 0)  /* the same: abstract Unix sockets */

#define FS_ALL_OF_ABI_1 ((UINT64_C(1) << 13) - 1)
#define FS_READ         (LANDLOCK_ACCESS_FS_READ_FILE | LANDLOCK_ACCESS_FS_READ_DIR)
#define FS_WRITE                                                                                   \
    (FS_READ | LANDLOCK_ACCESS_FS_WRITE_FILE | LANDLOCK_ACCESS_FS_MAKE_REG |                       \
     LANDLOCK_ACCESS_FS_REMOVE_FILE | FS_TRUNCATE)
#define FS_OF_A_FILE (LANDLOCK_ACCESS_FS_READ_FILE | LANDLOCK_ACCESS_FS_WRITE_FILE | FS_TRUNCATE)

struct ruleset_attr {
    uint64_t fs, net, scoped;
};

struct ruleset {
    int fd;
    struct ruleset_attr handled;
    bool reads_all; /* reading is not to be restricted */
    int failed;     /* an errno, or 0 */
};

static void handle(int abi, struct ruleset_attr *out)
{
    *out = (struct ruleset_attr){.fs = FS_ALL_OF_ABI_1};
    out->fs |= abi >= 2 ? FS_REFER : 0;
    out->fs |= abi >= 3 ? FS_TRUNCATE : 0;
    out->fs |= abi >= 5 ? FS_IOCTL_DEV : 0;
    out->net |= abi >= 4 ? NET_BIND_TCP : 0;
    out->scoped |= abi >= 6 ? SCOPE_SIGNAL | SCOPE_SOCKETS : 0;
}

/* What is not there is no loss. */
static void allow(struct ruleset *rules, const char *path, uint64_t access)
{
    struct stat info;
    int fd = open(path, O_PATH | O_CLOEXEC);
    if (fd < 0)
        return;
    if (fstat(fd, &info) == 0) {
        const struct landlock_path_beneath_attr rule = {
            .allowed_access = access & rules->handled.fs &
                              (S_ISDIR(info.st_mode) ? UINT64_MAX : FS_OF_A_FILE),
            .parent_fd = fd,
        };
        if (syscall(SYS_landlock_add_rule, rules->fd, LANDLOCK_RULE_PATH_BENEATH, &rule, 0) < 0)
            rules->failed = errno;
    }
    close(fd);
}

/* Cuts the last name off; "" is the current folder, written as ".". False: there is none. */
static bool cut_last_name(char *path)
{
    char *slash = strrchr(path, '/');
    if (!slash && strcmp(path, ".") == 0)
        return false;
    if (!slash)
        strcpy(path, "."); /* a name has at least one byte */
    else
        slash[slash == path] = '\0';
    return true;
}

/* The folder that `path` stands in, or the next one above that is there. */
static void allow_around(struct ruleset *rules, const char *path)
{
    char folder[PATH_MAX], real[PATH_MAX];
    if (snprintf(folder, sizeof folder, "%s", path) >= (int)sizeof folder)
        return;
    for (size_t len = strlen(folder); len > 1 && folder[len - 1] == '/'; len--)
        folder[len - 1] = '\0';
    while (cut_last_name(folder) && !realpath(folder, real) && strcmp(folder, "/") != 0)
        ;
    if (!realpath(folder, real))
        return;
    if (strcmp(real, "/") != 0)
        allow(rules, real, FS_READ);
    else if (access(path, F_OK) == 0)
        allow(rules, path, FS_READ);
    else
        rules->reads_all = true;
}

static void allow_place(struct ruleset *rules, const char *path)
{
    char target[PATH_MAX];
    allow_around(rules, path);
    if (realpath(path, target))
        allow_around(rules, target);
}

static void allow_system(struct ruleset *rules)
{
    static const char *const folders[] = {"/etc",  "/usr", "/lib",        "/lib64",
                                          "/proc", "/sys", "/dev/random", "/dev/urandom"};
    /* OpenSSL's own; resolv.conf may link to anywhere; a sanitizer's report has names in it. */
    const char *const files[] = {getenv("SSL_CERT_FILE"), getenv("SSL_CERT_DIR"),
                                 "/etc/resolv.conf"};
    for (size_t i = 0; i < ML_COUNT(folders); i++)
        allow(rules, folders[i], FS_READ);
    for (size_t i = 0; i < ML_COUNT(files); i++)
        if (files[i] && *files[i])
            allow_place(rules, files[i]);
    allow(rules, "/proc/self/exe", FS_READ);
}

static void allow_all(struct ruleset *rules, const struct ml_file_rights_opts *opts)
{
    allow_system(rules);
    for (const char *const *path = opts->readable; path && *path; path++)
        allow_place(rules, *path);
    for (const char *const *path = opts->writable; path && *path; path++)
        allow(rules, *path, FS_WRITE);
    if (rules->reads_all)
        allow(rules, "/", FS_READ);
}

static int fail(struct ml_err *err, int failed)
{
    bool unknown = failed == ENOSYS || failed == EOPNOTSUPP;
    return ml_err_set(err, unknown ? ML_EUNSUPPORTED : ML_EIO, "landlock: %s", strerror(failed));
}

int ml_file_rights_restrict(const struct ml_file_rights_opts *opts, enum ml_file_reads *out,
                            struct ml_err *err)
{
    struct ruleset rules = {.fd = -1};
    long abi = syscall(SYS_landlock_create_ruleset, NULL, 0, LANDLOCK_CREATE_RULESET_VERSION);
    if (abi < 1)
        return fail(err, errno);
    handle((int)abi, &rules.handled);
    rules.fd = (int)syscall(SYS_landlock_create_ruleset, &rules.handled, sizeof rules.handled, 0);
    if (rules.fd < 0)
        return fail(err, errno);
    allow_all(&rules, opts);
    if (!rules.failed && syscall(SYS_landlock_restrict_self, rules.fd, 0) < 0)
        rules.failed = errno;
    close(rules.fd);
    if (rules.failed)
        return fail(err, rules.failed);
    *out = rules.reads_all ? ML_FILE_READS_ALL : ML_FILE_READS_LISTED;
    return 0;
}
