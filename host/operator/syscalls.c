#include "operator/syscalls.h"

#include <errno.h>
#include <fcntl.h>
#include <linux/audit.h>
#include <linux/filter.h>
#include <linux/netlink.h>
#include <linux/seccomp.h>
#include <sched.h>
#include <sys/auxv.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <unistd.h>

#if defined(__x86_64__)
#define ARCH AUDIT_ARCH_X86_64
#elif defined(__aarch64__)
#define ARCH AUDIT_ARCH_AARCH64
#else
#define ARCH 0
#endif

#if defined(__SANITIZE_ADDRESS__)
#define SANITIZED true
#elif defined(__has_feature)
#if __has_feature(address_sanitizer)
#define SANITIZED true
#endif
#endif
#ifndef SANITIZED
#define SANITIZED false
#endif

#define PROGRAM_MAX 1024 /* instructions; the kernel's limit is 4096 */
#define TESTS_MAX   3    /* of one rule */

/* ---- the lists ---- */

/* Every bit of `mask` in an argument is as in `is`. The halves of a 64-bit argument are words of
 * their own; both machines have the lower one first. */
struct test {
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

/* Allowed when all tests hold; one whose mask is 0 is none. A call may have several rules. */
struct rule {
    int nr;
    struct test tests[TESTS_MAX];
};

#define ANY(name)                                                                                  \
    {                                                                                              \
        .nr = SYS_##name                                                                           \
    }
#define WHEN(name, ...)                                                                            \
    {                                                                                              \
        .nr = SYS_##name, .tests = { __VA_ARGS__ }                                                 \
    }

/* The bits of open's flags that make, change or empty a file. */
#define OPEN_WRITES ((uint32_t)(O_ACCMODE | O_CREAT | O_TRUNC))

/* clang-format off */
static const struct rule at_work[] = {
    /* What each turn of the loop does comes first. */
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

    /* the network: TCP and UDP as a client, and what the resolver asks the kernel for. What the
     * host listens on was opened before. */
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

/* Besides those, where the C library is a shared one: it loads resolvers (nsswitch.conf). What is
 * executed still cannot be written. */
static const struct rule with_libraries[] = {WHEN(mmap, {LOW(2), PROT_WRITE, 0})};

/* Besides those, where something may be written. */
static const struct rule with_files[] = {
    ANY(openat),   ANY(pwrite64), ANY(ftruncate), ANY(fsync), ANY(fdatasync), ANY(mkdirat),
    ANY(unlinkat), ANY(renameat), ANY(renameat2), ANY(flock), ANY(fchmod),
#ifdef __x86_64__
    ANY(open),     ANY(mkdir),    ANY(unlink),    ANY(rmdir), ANY(rename),
#endif
};

/* Besides those, in a build with sanitizers: how they look for leaks at the end. */
static const struct rule sanitized[] = {
    ANY(clone), ANY(ptrace), ANY(wait4), ANY(prctl), ANY(sched_getparam), ANY(sched_getscheduler),
#ifdef __x86_64__
    ANY(getdents), ANY(arch_prctl),
#endif
};

/* What nothing in here, and no library of ours, has a use for. */
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

/* Where no other program is ever started, neither are these. */
static const int hostile_alone[] = {
    SYS_execve,   SYS_execveat,  SYS_memfd_create, SYS_setuid,    SYS_setgid, SYS_setreuid,
    SYS_setregid, SYS_setresuid, SYS_setresgid,    SYS_setgroups, SYS_capset, SYS_seccomp,
#ifdef __x86_64__
    SYS_fork,     SYS_vfork,
#endif
};
/* clang-format on */

/* ---- the filter ---- */

struct program {
    struct sock_filter code[PROGRAM_MAX];
    size_t count;
};

static void emit(struct program *program, uint16_t code, uint8_t skip_true, uint8_t skip_false,
                 uint32_t k)
{
    ml_assert(program->count < PROGRAM_MAX);
    program->code[program->count++] = (struct sock_filter){code, skip_true, skip_false, k};
}

static void load(struct program *program, size_t offset)
{
    emit(program, BPF_LD | BPF_W | BPF_ABS, 0, 0, (uint32_t)offset);
}

static void answer(struct program *program, uint32_t action)
{
    emit(program, BPF_RET | BPF_K, 0, 0, action);
}

static void load_number(struct program *program)
{
    load(program, offsetof(struct seccomp_data, nr));
}

/* What is loaded is the number of the call, before and after. */
static void answer_number(struct program *program, int nr, uint32_t action)
{
    emit(program, BPF_JMP | BPF_JEQ | BPF_K, 0, 1, (uint32_t)nr);
    answer(program, action);
}

static size_t count_tests(const struct rule *rule)
{
    size_t count = 0;
    while (count < TESTS_MAX && rule->tests[count].mask)
        count++;
    return count;
}

static void allow(struct program *program, const struct rule *rule)
{
    size_t tests = count_tests(rule);
    if (tests == 0) {
        answer_number(program, rule->nr, SECCOMP_RET_ALLOW);
        return;
    }
    emit(program, BPF_JMP | BPF_JEQ | BPF_K, 0, (uint8_t)(3 * tests + 2), (uint32_t)rule->nr);
    for (size_t i = 0; i < tests; i++) {
        const struct test *test = &rule->tests[i];
        load(program, offsetof(struct seccomp_data, args) + (size_t)test->word * 4);
        emit(program, BPF_ALU | BPF_AND | BPF_K, 0, 0, test->mask);
        emit(program, BPF_JMP | BPF_JEQ | BPF_K, 0, (uint8_t)(3 * (tests - 1 - i) + 1), test->is);
    }
    answer(program, SECCOMP_RET_ALLOW);
    load_number(program);
}

static void allow_all(struct program *program, const struct rule *rules, size_t count)
{
    for (size_t i = 0; i < count; i++)
        allow(program, &rules[i]);
}

/* Whatever got so far had other arguments than those allowed. */
static void refuse_other_arguments(struct program *program, const struct rule *rules, size_t count)
{
    for (size_t i = 0; i < count; i++)
        if (count_tests(&rules[i]) > 0 && (i == 0 || rules[i].nr != rules[i - 1].nr))
            answer_number(program, rules[i].nr, SECCOMP_RET_ERRNO | EPERM);
}

static void answer_each(struct program *program, const int *numbers, size_t count, uint32_t action)
{
    for (size_t i = 0; i < count; i++)
        answer_number(program, numbers[i], action);
}

/* Numbers mean other calls on another architecture: a way around every list. */
static void begin(struct program *program)
{
    load(program, offsetof(struct seccomp_data, arch));
    emit(program, BPF_JMP | BPF_JEQ | BPF_K, 1, 0, ARCH);
    answer(program, SECCOMP_RET_KILL_PROCESS);
    load_number(program);
#ifdef __x86_64__
    emit(program, BPF_JMP | BPF_JGE | BPF_K, 0, 1, 0x40000000); /* x32 */
    answer(program, SECCOMP_RET_KILL_PROCESS);
#endif
}

static void write_strict(struct program *program, bool files)
{
    allow_all(program, at_work, ML_COUNT(at_work));
    if (getauxval(AT_BASE)) /* of the loader of shared libraries */
        allow_all(program, with_libraries, ML_COUNT(with_libraries));
    if (files)
        allow_all(program, with_files, ML_COUNT(with_files));
    if (SANITIZED)
        allow_all(program, sanitized, ML_COUNT(sanitized));
    refuse_other_arguments(program, at_work, ML_COUNT(at_work));
    answer_each(program, hostile, ML_COUNT(hostile), SECCOMP_RET_KILL_PROCESS);
    answer_each(program, hostile_alone, ML_COUNT(hostile_alone), SECCOMP_RET_KILL_PROCESS);
    answer_number(program, SYS_listen, SECCOMP_RET_ERRNO | EPERM);
    answer(program, SECCOMP_RET_ERRNO | ENOSYS);
}

static void write_with_programs(struct program *program)
{
    if (SANITIZED)
        allow_all(program, sanitized, ML_COUNT(sanitized));
    answer_each(program, hostile, ML_COUNT(hostile), SECCOMP_RET_ERRNO | EPERM);
    answer(program, SECCOMP_RET_ALLOW);
}

/* Without SPEC_ALLOW, kernels before 5.16 slow the whole process down against attacks by code
 * that is compiled at run time; there is none in here. */
static bool install(const struct program *program)
{
    const struct sock_fprog filter = {(unsigned short)program->count,
                                      (struct sock_filter *)program->code};
    return syscall(SYS_seccomp, SECCOMP_SET_MODE_FILTER,
                   SECCOMP_FILTER_FLAG_TSYNC | SECCOMP_FILTER_FLAG_SPEC_ALLOW, &filter) == 0 ||
           syscall(SYS_seccomp, SECCOMP_SET_MODE_FILTER, SECCOMP_FILTER_FLAG_TSYNC, &filter) == 0;
}

int ml_syscalls_restrict(enum ml_syscalls which, struct ml_err *err)
{
    struct program program = {.count = 0};
    if (!ARCH)
        return ml_err_set(err, ML_EUNSUPPORTED, "no list for this architecture");
    begin(&program);
    if (which == ML_SYSCALLS_WITH_PROGRAMS)
        write_with_programs(&program);
    else
        write_strict(&program, which == ML_SYSCALLS_STRICT_AND_FILES);
    if (install(&program))
        return 0;
    bool unknown = errno == ENOSYS || errno == EINVAL;
    return ml_err_set(err, unknown ? ML_EUNSUPPORTED : ML_EIO, "seccomp: %s", strerror(errno));
}
