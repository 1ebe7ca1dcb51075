/* Gives up the rights that the host does not need: keeps its memory private, restricts files by
 * landlock and system calls by a seccomp filter, both made here without a library. They hold for
 * all threads, and for good. moonloop.c calls it once. */
#include "operator/lockdown.h"

#include <errno.h>
#include <fcntl.h>
#include <libgen.h>
#include <limits.h>
#include <linux/audit.h>
#include <linux/filter.h>
#include <linux/landlock.h>
#include <linux/netlink.h>
#include <linux/seccomp.h>
#include <sched.h>
#include <stdio.h>
#include <sys/auxv.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

#if defined(__x86_64__)
#define OUR_ARCH AUDIT_ARCH_X86_64
#elif defined(__aarch64__)
#define OUR_ARCH AUDIT_ARCH_AARCH64
#else
#define OUR_ARCH 0
#endif

/* ---- files: landlock ---- */

/* Rights of kernels newer than the headers (Documentation/userspace-api/landlock.rst). */
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

struct landlock_handled {
    uint64_t fs, net, scoped;
};

struct landlock_rules {
    int fd;
    struct landlock_handled handled;
    bool reads_all; /* reading cannot be restricted */
    int failed;     /* an errno, or 0 */
};

static void landlock_handled_by(int abi, struct landlock_handled *out)
{
    *out = (struct landlock_handled){.fs = FS_ALL_OF_ABI_1};
    out->fs |= abi >= 2 ? FS_REFER : 0;
    out->fs |= abi >= 3 ? FS_TRUNCATE : 0;
    out->fs |= abi >= 5 ? FS_IOCTL_DEV : 0;
    out->net |= abi >= 4 ? NET_BIND_TCP : 0;
    out->scoped |= abi >= 6 ? SCOPE_SIGNAL | SCOPE_SOCKETS : 0;
}

/* A path that does not exist is left out. */
static void landlock_allow(struct landlock_rules *rules, const char *path, uint64_t access)
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

/* Allows the folder of `path`, or the next one above it that exists. */
static void landlock_allow_around(struct landlock_rules *rules, const char *path)
{
    char copy[PATH_MAX], real[PATH_MAX];
    if (snprintf(copy, sizeof copy, "%s", path) >= (int)sizeof copy)
        return;
    const char *folder = dirname(copy);
    while (!realpath(folder, real) && strcmp(folder, "/") != 0 && strcmp(folder, ".") != 0)
        folder = dirname(copy);
    if (!realpath(folder, real))
        return;
    if (strcmp(real, "/") != 0)
        landlock_allow(rules, real, FS_READ);
    else if (access(path, F_OK) == 0)
        landlock_allow(rules, path, FS_READ);
    else
        rules->reads_all = true;
}

static void landlock_allow_place(struct landlock_rules *rules, const char *path)
{
    char target[PATH_MAX];
    landlock_allow_around(rules, path);
    if (realpath(path, target))
        landlock_allow_around(rules, target);
}

static void landlock_allow_system(struct landlock_rules *rules)
{
    static const char *const folders[] = {"/etc",  "/usr", "/lib",        "/lib64",
                                          "/proc", "/sys", "/dev/random", "/dev/urandom"};
    /* OpenSSL's own; the time zones' folder; resolv.conf may link to anywhere; a sanitizer's report
     * has names in it. */
    const char *const files[] = {getenv("SSL_CERT_FILE"), getenv("SSL_CERT_DIR"), getenv("TZDIR"),
                                 "/etc/resolv.conf"};
    for (size_t i = 0; i < ML_COUNT(folders); i++)
        landlock_allow(rules, folders[i], FS_READ);
    for (size_t i = 0; i < ML_COUNT(files); i++)
        if (files[i] && *files[i])
            landlock_allow_place(rules, files[i]);
    landlock_allow(rules, "/proc/self/exe", FS_READ);
}

static void landlock_allow_all(struct landlock_rules *rules, const struct ml_lockdown_opts *opts)
{
    landlock_allow_system(rules);
    for (const char *const *path = opts->readable; path && *path; path++)
        landlock_allow_place(rules, *path);
    for (const char *const *path = opts->writable; path && *path; path++)
        landlock_allow(rules, *path, FS_WRITE);
    if (rules->reads_all)
        landlock_allow(rules, "/", FS_READ);
}

static int landlock_fail(struct ml_err *err, int failed)
{
    bool unknown = failed == ENOSYS || failed == EOPNOTSUPP;
    return ml_err_set(err, unknown ? ML_EUNSUPPORTED : ML_EIO, "landlock: %s", strerror(failed));
}

static int landlock_restrict(const struct ml_lockdown_opts *opts, bool *out_reads_all,
                             struct ml_err *err)
{
    struct landlock_rules rules = {.fd = -1};
    long abi = syscall(SYS_landlock_create_ruleset, NULL, 0, LANDLOCK_CREATE_RULESET_VERSION);
    if (abi < 1)
        return landlock_fail(err, errno);
    landlock_handled_by((int)abi, &rules.handled);
    rules.fd = (int)syscall(SYS_landlock_create_ruleset, &rules.handled, sizeof rules.handled, 0);
    if (rules.fd < 0)
        return landlock_fail(err, errno);
    landlock_allow_all(&rules, opts);
    if (!rules.failed && syscall(SYS_landlock_restrict_self, rules.fd, 0) < 0)
        rules.failed = errno;
    close(rules.fd);
    if (rules.failed)
        return landlock_fail(err, rules.failed);
    *out_reads_all = rules.reads_all;
    return 0;
}

/* ---- system calls: seccomp ---- */

#define PROGRAM_MAX 1024 /* instructions; the kernel's limit is 4096 */
#define TESTS_MAX   3    /* of one rule */

/* The bits `mask` of an argument have the value `is`. A 64-bit argument is two words; both machines
 * have the lower one first. */
struct argument_test {
    int word;
    uint32_t mask, is;
};
#define LOW(argument)  (2 * (argument))
#define HIGH(argument) (2 * (argument) + 1)
#define ALL_BITS       0xffffffffU
#define IS(argument, x)                                                                            \
    {                                                                                              \
        LOW(argument), ALL_BITS, (uint32_t)(x)                                                     \
    }
#define NULL_PTR(argument)                                                                         \
    IS(argument, 0),                                                                               \
    {                                                                                              \
        HIGH(argument), ALL_BITS, 0                                                                \
    }

/* The call is allowed when all tests hold; the first with mask 0 ends them. A call may have several
 * rules. */
struct syscall_rule {
    int nr;
    struct argument_test tests[TESTS_MAX];
};

#define ANY(name)       ((struct syscall_rule){.nr = SYS_##name})
#define WHEN(name, ...) ((struct syscall_rule){.nr = SYS_##name, .tests = {__VA_ARGS__}})

/* The flags of open that create, change or truncate a file. */
#define OPEN_WRITES ((uint32_t)(O_ACCMODE | O_CREAT | O_TRUNC))

/* clang-format off */
static const struct syscall_rule at_work[] = {
    /* The calls of every turn of the loop come first. */
    ANY(read), ANY(write), ANY(readv), ANY(writev), ANY(recvfrom), ANY(sendto), ANY(recvmsg),
    ANY(sendmsg), ANY(epoll_pwait), ANY(epoll_ctl), ANY(timer_settime), ANY(futex), ANY(ppoll),
    ANY(rt_sigreturn),
#ifdef __x86_64__
    ANY(epoll_wait), ANY(poll),
#endif

    /* memory, but none that is executed */
    ANY(brk), ANY(munmap), ANY(mremap), ANY(madvise), WHEN(mmap, {LOW(2), PROT_EXEC, 0}),
    WHEN(mprotect, {LOW(2), PROT_EXEC, 0}),

    /* files, read only */
    WHEN(openat, {LOW(2), OPEN_WRITES, O_RDONLY}), ANY(close), ANY(fstat), ANY(newfstatat),
    ANY(statx), ANY(statfs), ANY(fstatfs), ANY(lseek), ANY(pread64), ANY(faccessat),
    ANY(faccessat2), ANY(readlinkat), ANY(getdents64), ANY(getcwd), ANY(fadvise64), ANY(fcntl),
    ANY(dup), ANY(dup3), ANY(pipe2), ANY(pselect6), WHEN(ioctl, IS(1, FIONREAD)),
    WHEN(ioctl, IS(1, FIONBIO)), WHEN(ioctl, IS(1, TCGETS)),
#ifdef __x86_64__
    WHEN(open, {LOW(1), OPEN_WRITES, O_RDONLY}), ANY(stat), ANY(lstat), ANY(access),
    ANY(readlink), ANY(dup2), ANY(pipe), ANY(select),
#endif
    ANY(inotify_init1), ANY(inotify_add_watch), ANY(inotify_rm_watch),

    /* the network: TCP and UDP as a client, and the resolver's questions to the kernel. The
     * host has opened its listening sockets before. */
    WHEN(socket, IS(0, AF_INET), {LOW(1), 0xf, SOCK_STREAM}),
    WHEN(socket, IS(0, AF_INET), {LOW(1), 0xf, SOCK_DGRAM}),
    WHEN(socket, IS(0, AF_INET6), {LOW(1), 0xf, SOCK_STREAM}),
    WHEN(socket, IS(0, AF_INET6), {LOW(1), 0xf, SOCK_DGRAM}),
    WHEN(socket, IS(0, AF_NETLINK), IS(2, NETLINK_ROUTE)), ANY(socketpair), ANY(connect),
    ANY(bind), ANY(accept), ANY(accept4), ANY(shutdown), ANY(getsockname), ANY(getpeername),
    ANY(getsockopt), ANY(setsockopt), ANY(sendmmsg), ANY(recvmmsg),

    /* waiting and time */
    ANY(epoll_create1), ANY(epoll_pwait2), ANY(eventfd2), ANY(timerfd_create),
    ANY(timerfd_settime), ANY(timerfd_gettime), ANY(timer_create), ANY(timer_gettime),
    ANY(timer_getoverrun), ANY(timer_delete), ANY(clock_gettime), ANY(clock_getres),
    ANY(clock_nanosleep), ANY(nanosleep), ANY(gettimeofday),
#ifdef __x86_64__
    ANY(time),
#endif

    /* itself: threads, signals, what it is */
    WHEN(clone, {LOW(0), CLONE_THREAD, CLONE_THREAD}), ANY(set_robust_list), ANY(rseq),
    ANY(set_tid_address), ANY(sched_yield), ANY(sched_getaffinity), ANY(rt_sigaction),
    ANY(rt_sigprocmask), ANY(sigaltstack), ANY(restart_syscall), ANY(exit), ANY(exit_group),
    ANY(getpid), ANY(getppid), ANY(gettid), ANY(getuid), ANY(geteuid), ANY(getgid),
    ANY(getegid), ANY(getrusage), ANY(sysinfo), ANY(uname), ANY(getrandom), ANY(membarrier),
    WHEN(prlimit64, NULL_PTR(2)), /* to read */
    WHEN(prctl, IS(0, PR_SET_NAME)), WHEN(prctl, IS(0, PR_GET_NAME)),
};

/* Also allowed with a shared C library, which loads resolvers (nsswitch.conf). No memory is both
 * written and executed. */
static const struct syscall_rule with_libraries[] = {WHEN(mmap, {LOW(2), PROT_WRITE, 0})};

/* Also allowed where something may be written. */
static const struct syscall_rule with_files[] = {
    ANY(openat),   ANY(pwrite64), ANY(ftruncate), ANY(fsync), ANY(fdatasync), ANY(mkdirat),
    ANY(unlinkat), ANY(renameat), ANY(renameat2), ANY(flock), ANY(fchmod),    ANY(chdir),
#ifdef __x86_64__
    ANY(open),     ANY(mkdir),    ANY(unlink),    ANY(rmdir), ANY(rename),
#endif
};

/* Also allowed in a build with sanitizers, which look for leaks at the end. */
static const struct syscall_rule sanitized[] = {
    ANY(clone), ANY(ptrace), ANY(wait4), ANY(prctl), ANY(sched_getparam), ANY(sched_getscheduler),
#ifdef __x86_64__
    ANY(getdents), ANY(arch_prctl),
#endif
};

/* Calls that neither the host nor its libraries make. */
static const int hostile[] = {
    SYS_ptrace, SYS_process_vm_readv, SYS_process_vm_writev, SYS_kcmp, SYS_bpf,
    SYS_perf_event_open, SYS_userfaultfd, SYS_io_uring_setup, SYS_io_uring_enter,
    SYS_io_uring_register, SYS_mount, SYS_umount2, SYS_pivot_root, SYS_chroot, SYS_move_mount,
    SYS_open_tree, SYS_fsopen, SYS_fsmount, SYS_fsconfig, SYS_fspick, SYS_mount_setattr,
    SYS_unshare, SYS_setns, SYS_kexec_load, SYS_kexec_file_load, SYS_init_module,
    SYS_finit_module, SYS_delete_module, SYS_keyctl, SYS_add_key, SYS_request_key, SYS_reboot,
    SYS_swapon, SYS_swapoff, SYS_acct, SYS_quotactl, SYS_syslog, SYS_settimeofday,
    SYS_clock_settime, SYS_adjtimex, SYS_clock_adjtime, SYS_sethostname, SYS_setdomainname,
    SYS_open_by_handle_at, SYS_name_to_handle_at, SYS_fanotify_init, SYS_personality,
    SYS_lookup_dcookie, SYS_nfsservctl, SYS_vhangup, SYS_move_pages, SYS_migrate_pages,
    SYS_mbind, SYS_set_mempolicy,
#ifdef __x86_64__
    SYS_iopl, SYS_ioperm, SYS_modify_ldt, SYS_uselib, SYS_create_module,
#endif
};

/* Also hostile in a process that starts no other program. */
static const int hostile_alone[] = {
    SYS_execve,   SYS_execveat,  SYS_memfd_create, SYS_setuid,    SYS_setgid, SYS_setreuid,
    SYS_setregid, SYS_setresuid, SYS_setresgid,    SYS_setgroups, SYS_capset, SYS_seccomp,
#ifdef __x86_64__
    SYS_fork,     SYS_vfork,
#endif
};
/* clang-format on */

struct seccomp_program {
    struct sock_filter code[PROGRAM_MAX];
    size_t count;
};

static void seccomp_emit(struct seccomp_program *program, uint16_t code, uint8_t skip_true,
                         uint8_t skip_false, uint32_t k)
{
    ml_assert(program->count < PROGRAM_MAX);
    program->code[program->count++] = (struct sock_filter){code, skip_true, skip_false, k};
}

static void seccomp_load(struct seccomp_program *program, size_t offset)
{
    seccomp_emit(program, BPF_LD | BPF_W | BPF_ABS, 0, 0, (uint32_t)offset);
}

static void seccomp_answer(struct seccomp_program *program, uint32_t action)
{
    seccomp_emit(program, BPF_RET | BPF_K, 0, 0, action);
}

static void seccomp_load_number(struct seccomp_program *program)
{
    seccomp_load(program, offsetof(struct seccomp_data, nr));
}

/* Expects the number of the call in the accumulator, and leaves it there. */
static void seccomp_answer_number(struct seccomp_program *program, int nr, uint32_t action)
{
    seccomp_emit(program, BPF_JMP | BPF_JEQ | BPF_K, 0, 1, (uint32_t)nr);
    seccomp_answer(program, action);
}

static size_t count_tests(const struct syscall_rule *rule)
{
    size_t count = 0;
    while (count < TESTS_MAX && rule->tests[count].mask)
        count++;
    return count;
}

static void seccomp_allow(struct seccomp_program *program, const struct syscall_rule *rule)
{
    size_t tests = count_tests(rule);
    if (tests == 0) {
        seccomp_answer_number(program, rule->nr, SECCOMP_RET_ALLOW);
        return;
    }
    seccomp_emit(program, BPF_JMP | BPF_JEQ | BPF_K, 0, (uint8_t)(3 * tests + 2),
                 (uint32_t)rule->nr);
    for (size_t i = 0; i < tests; i++) {
        const struct argument_test *test = &rule->tests[i];
        seccomp_load(program, offsetof(struct seccomp_data, args) + (size_t)test->word * 4);
        seccomp_emit(program, BPF_ALU | BPF_AND | BPF_K, 0, 0, test->mask);
        seccomp_emit(program, BPF_JMP | BPF_JEQ | BPF_K, 0, (uint8_t)(3 * (tests - 1 - i) + 1),
                     test->is);
    }
    seccomp_answer(program, SECCOMP_RET_ALLOW);
    seccomp_load_number(program);
}

static void seccomp_allow_all(struct seccomp_program *program, const struct syscall_rule *rules,
                              size_t count)
{
    for (size_t i = 0; i < count; i++)
        seccomp_allow(program, &rules[i]);
}

/* A listed call that reaches this point has other arguments than those allowed. */
static void seccomp_refuse_other_arguments(struct seccomp_program *program,
                                           const struct syscall_rule *rules, size_t count)
{
    for (size_t i = 0; i < count; i++)
        if (count_tests(&rules[i]) > 0 && (i == 0 || rules[i].nr != rules[i - 1].nr))
            seccomp_answer_number(program, rules[i].nr, SECCOMP_RET_ERRNO | EPERM);
}

static void seccomp_answer_each(struct seccomp_program *program, const int *numbers, size_t count,
                                uint32_t action)
{
    for (size_t i = 0; i < count; i++)
        seccomp_answer_number(program, numbers[i], action);
}

/* On another architecture the same numbers are other calls, which would bypass every list. */
static void seccomp_check_architecture(struct seccomp_program *program)
{
    seccomp_load(program, offsetof(struct seccomp_data, arch));
    seccomp_emit(program, BPF_JMP | BPF_JEQ | BPF_K, 1, 0, OUR_ARCH);
    seccomp_answer(program, SECCOMP_RET_KILL_PROCESS);
    seccomp_load_number(program);
#ifdef __x86_64__
    seccomp_emit(program, BPF_JMP | BPF_JGE | BPF_K, 0, 1, 0x40000000); /* x32 */
    seccomp_answer(program, SECCOMP_RET_KILL_PROCESS);
#endif
}

/* Allows the calls that the host makes, and no others. Calls that only an attacker makes (execve,
 * ptrace, mount, bpf, io_uring, …) end the process with SIGSYS. A listed call with other arguments
 * (a new listening socket, a fork, executable memory) gets EPERM; all others get ENOSYS, as on a
 * kernel that does not have them, for which libraries have a fallback. `files`: they may be
 * written, created and renamed where landlock allows it. */
static void seccomp_write_strict(struct seccomp_program *program, bool files)
{
    seccomp_allow_all(program, at_work, ML_COUNT(at_work));
    if (getauxval(AT_BASE)) /* of the loader of shared libraries */
        seccomp_allow_all(program, with_libraries, ML_COUNT(with_libraries));
    if (files)
        seccomp_allow_all(program, with_files, ML_COUNT(with_files));
    if (ML_SANITIZED)
        seccomp_allow_all(program, sanitized, ML_COUNT(sanitized));
    seccomp_refuse_other_arguments(program, at_work, ML_COUNT(at_work));
    seccomp_answer_each(program, hostile, ML_COUNT(hostile), SECCOMP_RET_KILL_PROCESS);
    seccomp_answer_each(program, hostile_alone, ML_COUNT(hostile_alone), SECCOMP_RET_KILL_PROCESS);
    seccomp_answer_number(program, SYS_listen, SECCOMP_RET_ERRNO | EPERM);
    seccomp_answer(program, SECCOMP_RET_ERRNO | ENOSYS);
}

/* The process starts other programs (a credential plugin), which inherit the filter. Allows all
 * calls but those that only an attacker makes, which get EPERM. */
static void seccomp_write_with_programs(struct seccomp_program *program)
{
    if (ML_SANITIZED)
        seccomp_allow_all(program, sanitized, ML_COUNT(sanitized));
    seccomp_answer_each(program, hostile, ML_COUNT(hostile), SECCOMP_RET_ERRNO | EPERM);
    seccomp_answer(program, SECCOMP_RET_ALLOW);
}

/* Without SPEC_ALLOW, kernels before 5.16 slow the whole process down to mitigate attacks by code
 * compiled at run time, which this process does not have. */
static bool seccomp_install(const struct seccomp_program *program)
{
    const struct sock_fprog filter = {(unsigned short)program->count,
                                      (struct sock_filter *)program->code};
    return syscall(SYS_seccomp, SECCOMP_SET_MODE_FILTER,
                   SECCOMP_FILTER_FLAG_TSYNC | SECCOMP_FILTER_FLAG_SPEC_ALLOW, &filter) == 0 ||
           syscall(SYS_seccomp, SECCOMP_SET_MODE_FILTER, SECCOMP_FILTER_FLAG_TSYNC, &filter) == 0;
}

static int seccomp_restrict(const struct ml_lockdown_opts *opts, struct ml_err *err)
{
    struct seccomp_program program = {.count = 0};
    if (!OUR_ARCH)
        return ml_err_set(err, ML_EUNSUPPORTED, "no list for this architecture");
    seccomp_check_architecture(&program);
    if (opts->runs_programs)
        seccomp_write_with_programs(&program);
    else
        seccomp_write_strict(&program, opts->writable && opts->writable[0]);
    if (seccomp_install(&program))
        return 0;
    bool unknown = errno == ENOSYS || errno == EINVAL;
    return ml_err_set(err, unknown ? ML_EUNSUPPORTED : ML_EIO, "seccomp: %s", strerror(errno));
}

/* ---- all of it ---- */

#define OWNER_ONLY 077

/* Memory holds tokens and keys: no core dump may contain it, no other process of this user read it.
 */
static void keep_memory_private(void)
{
    const struct rlimit none = {0, 0};
    setrlimit(RLIMIT_CORE, &none);
    prctl(PR_SET_DUMPABLE, 0, 0, 0, 0);
    umask(OWNER_ONLY);
}

/* One part that is in force, for the log. */
struct lockdown_part {
    char says[ML_ERR_MESSAGE_MAX + 8];
};

static struct lockdown_part describe_part(int r, const char *in_force, const struct ml_err *err)
{
    struct lockdown_part part;
    if (r < 0)
        snprintf(part.says, sizeof part.says, "off: %s", err->message);
    else
        snprintf(part.says, sizeof part.says, "%s", in_force);
    return part;
}

static struct lockdown_part restrict_files(const struct ml_lockdown_opts *opts)
{
    struct ml_err err = ML_ERR_INIT;
    bool reads_all = false;
    int r = opts->runs_programs ? ml_err_set(&err, ML_EUNSUPPORTED, "a credential plugin is in use")
                                : landlock_restrict(opts, &reads_all, &err);
    return describe_part(r, reads_all ? "writes listed folders only" : "listed folders only", &err);
}

static struct lockdown_part restrict_syscalls(const struct ml_lockdown_opts *opts)
{
    struct ml_err err = ML_ERR_INIT;
    int r = seccomp_restrict(opts, &err);
    return describe_part(r, opts->runs_programs ? "hostile calls refused" : "listed calls only",
                         &err);
}

void ml_lockdown(const struct ml_lockdown_opts *opts)
{
    keep_memory_private();
    bool bound = prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) == 0;
    const struct lockdown_part landlock = restrict_files(opts), seccomp = restrict_syscalls(opts);
    ml_info(opts->log, "host", "gave up the rights that are not needed",
            ML_S("no_new_privs", bound ? "on" : "off"), ML_S("core_dumps", "off"),
            ML_S("seccomp", seccomp.says), ML_S("landlock", landlock.says));
}
