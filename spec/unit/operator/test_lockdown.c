/* Each test asks a child that has locked itself down. */
#include "unit.h"

#include "operator/lockdown.h"

#include <errno.h>
#include <fcntl.h>
#include <linux/netlink.h>
#include <netdb.h>
#include <netinet/in.h>
#include <pthread.h>
#include <sched.h>
#include <signal.h>
#include <stdio.h>
#include <sys/inotify.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/ptrace.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#if defined(__SANITIZE_ADDRESS__)
#define SANITIZED 1
#include <sanitizer/lsan_interface.h>
#else
#define SANITIZED 0
#endif

#define PASSED 100 /* exit code of a child whose try ended as it should */

static struct ml_lockdown_opts opts; /* of the children */

/* Runs `try` in a child after the lockdown; returns how that ended, as waitpid tells it. */
static int in_lockdown(bool (*try)(void))
{
    struct ml_log log;
    ml_log_init(&log, ml_clock_real(), open("/dev/null", O_WRONLY | O_CLOEXEC), ML_LOG_JSON,
                ML_LOG_INFO);
    pid_t child = fork();
    assert_true(child >= 0);
    if (child == 0) {
        opts.log = &log;
        ml_lockdown(&opts);
        _exit(try() ? PASSED : 1);
    }
    int status = 0;
    assert_int_equal(waitpid(child, &status, 0), child);
    close(log.fd);
    return status;
}

static void assert_passes(bool (*try)(void))
{
    int status = in_lockdown(try);
    assert_true(WIFEXITED(status));
    assert_int_equal(WEXITSTATUS(status), PASSED);
}

static void assert_fatal(bool (*try)(void))
{
    int status = in_lockdown(try);
    assert_true(WIFSIGNALED(status));
    assert_int_equal(WTERMSIG(status), SIGSYS);
}

/* Without filters in the kernel there is nothing to see. */
static void need_filters(void)
{
    const unsigned action = 0x80000000U; /* SECCOMP_RET_KILL_PROCESS */
    if (syscall(SYS_seccomp, 2 /* SECCOMP_GET_ACTION_AVAIL */, 0, &action) != 0)
        skip();
}

static bool refused(long result, int want)
{
    return result == -1 && errno == want;
}

/* ---- what ends the process ---- */

static bool try_execve(void)
{
    char *const argv[] = {"/bin/true", NULL}, *const env[] = {NULL};
    return refused(execve("/bin/true", argv, env), EPERM);
}

static bool try_io_uring(void)
{
    return refused(syscall(SYS_io_uring_setup, 1, NULL), EPERM);
}

static bool try_mount(void)
{
    return refused(syscall(SYS_mount, "none", "/tmp", "tmpfs", 0, NULL), EPERM);
}

static bool try_bpf(void)
{
    return refused(syscall(SYS_bpf, 0, NULL, 0), EPERM);
}

static bool try_process_vm_writev(void)
{
    return refused(syscall(SYS_process_vm_writev, getppid(), NULL, 0, NULL, 0, 0), EPERM);
}

static bool try_unshare(void)
{
    return refused(syscall(SYS_unshare, CLONE_NEWUSER), EPERM);
}

static bool try_keyctl(void)
{
    return refused(syscall(SYS_keyctl, 0, 0, 0), EPERM);
}

static bool try_memfd(void)
{
    return refused(syscall(SYS_memfd_create, "x", 0), EPERM);
}

static bool try_ptrace(void)
{
    return refused(ptrace(PTRACE_ATTACH, getppid(), NULL, NULL), EPERM);
}

static void test_hostile_calls_end_the_process(void **state)
{
    (void)state;
    need_filters();
    assert_fatal(try_execve);
    assert_fatal(try_io_uring);
    assert_fatal(try_mount);
    assert_fatal(try_bpf);
    assert_fatal(try_process_vm_writev);
    assert_fatal(try_unshare);
    assert_fatal(try_keyctl);
    assert_fatal(try_memfd);
    if (!SANITIZED) /* which trace themselves to look for leaks */
        assert_fatal(try_ptrace);
}

#ifdef __x86_64__
/* As 32-bit programs call, where other calls have the numbers. */
static bool try_another_architecture(void)
{
    long result = 0;
    __asm__ volatile("int $0x80" : "=a"(result) : "a"(20 /* getpid */) : "memory");
    return false;
}
#endif

static void test_calls_of_another_architecture_end_the_process(void **state)
{
    (void)state;
#ifdef __x86_64__
    need_filters();
    int status = in_lockdown(try_another_architecture);
    assert_true(WIFSIGNALED(status));
    /* SIGSEGV: a kernel without 32-bit calls. */
    assert_true(WTERMSIG(status) == SIGSYS || WTERMSIG(status) == SIGSEGV);
#else
    skip();
#endif
}

/* ---- what is refused ---- */

static bool try_to_fork(void)
{
    return refused(syscall(SYS_clone, SIGCHLD, NULL, NULL, NULL, NULL), EPERM);
}

static bool try_clone3(void)
{
    return refused(syscall(SYS_clone3, NULL, 0), ENOSYS); /* pthread_create then uses clone */
}

static bool try_packet_socket(void)
{
    return refused(socket(AF_PACKET, SOCK_RAW, 0), EPERM);
}

static bool try_raw_socket(void)
{
    return refused(socket(AF_INET, SOCK_RAW, IPPROTO_ICMP), EPERM);
}

static bool try_unix_socket(void)
{
    return refused(socket(AF_UNIX, SOCK_STREAM, 0), EPERM);
}

static bool try_other_netlink(void)
{
    return refused(socket(AF_NETLINK, SOCK_RAW, NETLINK_NETFILTER), EPERM);
}

static bool try_to_listen(void)
{
    int fd = socket(AF_INET, SOCK_STREAM, 0);
    return fd >= 0 && refused(listen(fd, 1), EPERM);
}

static bool try_to_write_a_file(void)
{
    return refused(open("/dev/null", O_WRONLY), EPERM) &&
           refused(open("/dev/null", O_RDWR), EPERM) &&
           refused(open("/dev/null", O_RDONLY | O_TRUNC), EPERM) &&
           refused(open("/tmp/moonloop-unit-x", O_RDONLY | O_CREAT, 0600), EPERM) &&
           refused(open("/tmp", O_TMPFILE | O_RDWR, 0600), EPERM) &&
           refused(open("/nonexistent", O_RDONLY), ENOENT);
}

static bool try_other_ways_to_write(void)
{
    return refused(mkdir("/tmp/moonloop-unit-x", 0700), ENOSYS) &&
           refused(unlink("/tmp/moonloop-unit-x"), ENOSYS) &&
           refused(rename("/tmp/moonloop-unit-x", "/tmp/moonloop-unit-y"), ENOSYS) &&
           refused(syscall(SYS_openat2, AT_FDCWD, "/tmp", NULL, 0), ENOSYS);
}

static bool try_memory_to_execute(void)
{
    const int anonymous = MAP_PRIVATE | MAP_ANONYMOUS;
    void *page = mmap(NULL, 4096, PROT_READ | PROT_WRITE, anonymous, -1, 0);
    return page != MAP_FAILED && refused(mprotect(page, 4096, PROT_READ | PROT_EXEC), EPERM) &&
           mmap(NULL, 4096, PROT_READ | PROT_WRITE | PROT_EXEC, anonymous, -1, 0) == MAP_FAILED &&
           errno == EPERM;
}

static bool try_to_raise_limits(void)
{
    const struct rlimit some = {0, 0};
    return refused(setrlimit(RLIMIT_CORE, &some), EPERM);
}

static bool try_terminal(void)
{
    return refused(syscall(SYS_ioctl, 0, 0x5412 /* TIOCSTI */, "x"), EPERM);
}

/* The end of another process: nothing is ended but the caller itself. */
static bool try_to_kill(void)
{
    return refused(kill(getppid(), 0), ENOSYS);
}

static void test_other_arguments_and_unlisted_calls_are_refused(void **state)
{
    (void)state;
    need_filters();
    if (!SANITIZED)
        assert_passes(try_to_fork);
    assert_passes(try_clone3);
    assert_passes(try_packet_socket);
    assert_passes(try_raw_socket);
    assert_passes(try_unix_socket);
    assert_passes(try_other_netlink);
    assert_passes(try_to_listen);
    assert_passes(try_to_write_a_file);
    assert_passes(try_other_ways_to_write);
    assert_passes(try_memory_to_execute);
    assert_passes(try_to_raise_limits);
    assert_passes(try_terminal);
    assert_passes(try_to_kill);
}

/* ---- what goes on ---- */

static bool resolves_names(void)
{
    const struct addrinfo hints = {.ai_socktype = SOCK_STREAM};
    struct addrinfo *info = NULL;
    int failed = getaddrinfo("localhost", "80", &hints, &info);
    if (!failed)
        freeaddrinfo(info);
    return !failed;
}

static void *answer(void *context)
{
    *(int *)context = 42;
    return context;
}

static bool has_threads(void)
{
    pthread_t thread;
    int got = 0;
    return pthread_create(&thread, NULL, answer, &got) == 0 && pthread_join(thread, NULL) == 0 &&
           got == 42;
}

static bool has_cpu_timers(void)
{
    struct sigevent event = {.sigev_notify = SIGEV_THREAD_ID, .sigev_signo = SIGVTALRM};
    event._sigev_un._tid = gettid();
    const struct itimerspec soon = {.it_value = {.tv_nsec = 1000}};
    timer_t timer;
    return timer_create(CLOCK_THREAD_CPUTIME_ID, &event, &timer) == 0 &&
           timer_settime(timer, 0, &soon, NULL) == 0 && timer_delete(timer) == 0;
}

static bool watches_folders(void)
{
    int fd = inotify_init1(IN_NONBLOCK | IN_CLOEXEC);
    return fd >= 0 && inotify_add_watch(fd, "/tmp", IN_CREATE) >= 0 && close(fd) == 0;
}

static bool reads_of_itself(void)
{
    char piece[64];
    int fd = open("/proc/self/statm", O_RDONLY | O_CLOEXEC);
    int folder = open("/proc/self/fd", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    return fd >= 0 && read(fd, piece, sizeof piece) > 0 && folder >= 0;
}

static bool keeps_memory_private(void)
{
    struct rlimit limit = {1, 1};
    return getrlimit(RLIMIT_CORE, &limit) == 0 && limit.rlim_cur == 0 && limit.rlim_max == 0 &&
           (SANITIZED || prctl(PR_GET_DUMPABLE) == -1); /* it may not even ask */
}

static void test_what_the_host_does_goes_on(void **state)
{
    (void)state;
    assert_passes(resolves_names);
    assert_passes(has_threads);
    assert_passes(has_cpu_timers);
    assert_passes(watches_folders);
    assert_passes(reads_of_itself);
    assert_passes(keeps_memory_private);
}

#if SANITIZED
static void *volatile lost;

static bool finds_leaks(void)
{
    lost = malloc(100);
    lost = NULL;
    return __lsan_do_recoverable_leak_check() != 0;
}

/* The suites would be blind otherwise: what they run has locked itself down. */
static void test_leaks_are_still_found(void **state)
{
    (void)state;
    assert_passes(finds_leaks);
}
#endif

/* As in the image: process metrics need /proc/self, which belongs to root in a process that has
 * no core dumps. */
static void test_metrics_are_there_without_root(void **state)
{
    (void)state;
    if (getuid() != 0)
        skip();
    pid_t child = fork();
    assert_true(child >= 0);
    if (child == 0) {
        if (setresgid(65532, 65532, 65532) < 0 || setresuid(65532, 65532, 65532) < 0)
            _exit(1);
        ml_lockdown(&opts);
        _exit(reads_of_itself() ? PASSED : 1);
    }
    int status = 0;
    assert_int_equal(waitpid(child, &status, 0), child);
    assert_int_equal(WEXITSTATUS(status), PASSED);
}

/* ---- files ---- */

/* A folder of its own with scripts/x.lua, state/ and secret/x.lua. */
static char root[] = "/tmp/moonloop-unit-XXXXXX";

static const char *in_root(const char *path)
{
    static char full[4][128];
    static size_t next;
    char *out = full[next++ % ML_COUNT(full)];
    snprintf(out, sizeof full[0], "%s/%s", root, path);
    return out;
}

static void write_file(const char *path)
{
    int fd = open(in_root(path), O_WRONLY | O_CREAT | O_CLOEXEC, 0600);
    assert_true(fd >= 0);
    assert_int_equal(write(fd, "x", 1), 1);
    close(fd);
}

static int make_folders(void **state)
{
    (void)state;
    assert_non_null(mkdtemp(root));
    static const char *const folders[] = {"op",     "op/scripts", "state",
                                          "secret", "releases",   "releases/1"};
    for (size_t i = 0; i < ML_COUNT(folders); i++)
        assert_int_equal(mkdir(in_root(folders[i]), 0700), 0);
    write_file("op/scripts/x.lua");
    write_file("releases/1/x.lua");
    write_file("secret/x.lua");
    assert_int_equal(symlink("../releases/1", in_root("op/current")), 0);
    return 0;
}

static int remove_folders(void **state)
{
    (void)state;
    ML_AUTO_FREE char *command = ml_asprintf("rm -rf %s", root);
    return system(command);
}

static int forget_opts(void **state)
{
    (void)state;
    opts = (struct ml_lockdown_opts){.log = NULL};
    return 0;
}

/* Without landlock in the kernel there is nothing to see. */
static void need_landlock(void)
{
    if (syscall(SYS_landlock_create_ruleset, NULL, 0, 1 /* the version */) < 1)
        skip();
}

static bool can_read(const char *path)
{
    char byte;
    int fd = open(in_root(path), O_RDONLY | O_CLOEXEC);
    bool read_it = fd >= 0 && read(fd, &byte, 1) == 1;
    if (fd >= 0)
        close(fd);
    return read_it;
}

static bool reads_only_what_is_listed(void)
{
    return can_read("op/scripts/x.lua") && can_read("op/current/x.lua") &&
           refused(open(in_root("secret/x.lua"), O_RDONLY), EACCES) &&
           refused(open("/root", O_RDONLY | O_DIRECTORY), EACCES) &&
           refused(open(root, O_RDONLY | O_DIRECTORY), EACCES) && can_read("releases/1/x.lua") &&
           resolves_names() && reads_of_itself();
}

static bool writes_nothing(void)
{
    return refused(open(in_root("op/scripts/x.lua"), O_WRONLY), EPERM) &&
           refused(open(in_root("state/y"), O_WRONLY | O_CREAT, 0600), EPERM);
}

static bool writes_only_where_it_may(void)
{
    int fd = open(in_root("state/new"), O_RDWR | O_CREAT | O_TRUNC | O_CLOEXEC, 0600);
    return fd >= 0 && write(fd, "y", 1) == 1 && fsync(fd) == 0 && close(fd) == 0 &&
           rename(in_root("state/new"), in_root("state/marker")) == 0 && can_read("state/marker") &&
           unlink(in_root("state/marker")) == 0 &&
           refused(open(in_root("op/scripts/x.lua"), O_WRONLY), EACCES) &&
           refused(open(in_root("op/scripts/y.lua"), O_WRONLY | O_CREAT, 0600), EACCES) &&
           refused(unlink(in_root("op/scripts/x.lua")), EACCES) &&
           refused(mkdir(in_root("state/folder"), 0700), EACCES) &&
           refused(open("/dev/null", O_WRONLY), EACCES);
}

static bool takes_no_port(void)
{
    const struct sockaddr_in any = {.sin_family = AF_INET};
    int fd = socket(AF_INET, SOCK_STREAM, 0);
    return fd >= 0 && refused(bind(fd, (const struct sockaddr *)&any, sizeof any), EACCES);
}

static void test_files_are_read_where_they_are_listed_and_written_nowhere(void **state)
{
    (void)state;
    need_landlock();
    opts.readable = (const char *const[]){in_root("op/scripts"), in_root("op/current"), NULL};
    assert_passes(reads_only_what_is_listed);
    assert_passes(writes_nothing);
    if (syscall(SYS_landlock_create_ruleset, NULL, 0, 1) >= 4)
        assert_passes(takes_no_port);
}

static void test_files_are_written_in_listed_folders(void **state)
{
    (void)state;
    need_landlock();
    need_filters();
    opts.readable = (const char *const[]){in_root("op/scripts"), NULL};
    opts.writable = (const char *const[]){in_root("state"), NULL};
    assert_passes(writes_only_where_it_may);
}

/* ---- a folder that is replaced ---- */

static int to_test[2], to_child[2];

static bool reads_after_the_swap(void)
{
    char byte;
    return write(to_test[1], "", 1) == 1 && read(to_child[0], &byte, 1) == 1 &&
           can_read("op/scripts/x.lua") && can_read("op/later/x.lua");
}

static void *swap_folders(void *context)
{
    char byte;
    (void)context;
    assert_int_equal(read(to_test[0], &byte, 1), 1);
    assert_int_equal(rename(in_root("op/scripts"), in_root("op/old")), 0);
    assert_int_equal(rename(in_root("releases/1"), in_root("op/scripts")), 0);
    assert_int_equal(rename(in_root("secret"), in_root("op/later")), 0);
    assert_int_equal(write(to_child[1], "", 1), 1);
    return NULL;
}

/* As one does who publishes scripts: the new folder takes the old one's name at once. */
static void test_a_folder_may_be_replaced_or_come_later(void **state)
{
    (void)state;
    pthread_t thread;
    need_landlock();
    assert_int_equal(pipe(to_test), 0);
    assert_int_equal(pipe(to_child), 0);
    opts.readable = (const char *const[]){in_root("op/scripts"), in_root("op/later"), NULL};
    assert_int_equal(pthread_create(&thread, NULL, swap_folders, NULL), 0);
    assert_passes(reads_after_the_swap);
    pthread_join(thread, NULL);
    for (int i = 0; i < 2; i++) {
        close(to_test[i]);
        close(to_child[i]);
    }
}

/* ---- with credential plugins ---- */

static bool starts_programs(void)
{
    pid_t child = fork();
    if (child == 0) {
        execl("/bin/sh", "sh", "-c", "exec >/dev/null && echo it", (char *)NULL);
        _exit(1);
    }
    int status = 0;
    return waitpid(child, &status, 0) == child && WIFEXITED(status) && WEXITSTATUS(status) == 0;
}

static void test_plugins_are_started_and_inherit_the_rest(void **state)
{
    (void)state;
    need_filters();
    opts.runs_programs = true;
    assert_passes(starts_programs);
    assert_passes(has_threads);
    if (!SANITIZED)
        assert_passes(try_ptrace);
    assert_passes(try_io_uring);
    assert_passes(try_mount);
    assert_passes(try_bpf);
    assert_passes(try_process_vm_writev);
    opts.runs_programs = false;
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_hostile_calls_end_the_process),
        cmocka_unit_test(test_calls_of_another_architecture_end_the_process),
        cmocka_unit_test(test_other_arguments_and_unlisted_calls_are_refused),
        cmocka_unit_test(test_what_the_host_does_goes_on),
#if SANITIZED
        cmocka_unit_test(test_leaks_are_still_found),
#endif
        cmocka_unit_test(test_metrics_are_there_without_root),
        cmocka_unit_test_teardown(test_files_are_read_where_they_are_listed_and_written_nowhere,
                                  forget_opts),
        cmocka_unit_test_teardown(test_files_are_written_in_listed_folders, forget_opts),
        cmocka_unit_test_teardown(test_a_folder_may_be_replaced_or_come_later, forget_opts),
        cmocka_unit_test(test_plugins_are_started_and_inherit_the_rest),
    };
    return cmocka_run_group_tests(tests, make_folders, remove_folders);
}
