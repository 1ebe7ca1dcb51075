/* Processes as containers: what they see, what they can write, and that nothing of them is left. As
 * root and as any user; on a machine without user namespaces only the refusal is tested. */
#include <dirent.h>
#include <fcntl.h>
#include <ftw.h>
#include <sched.h>
#include <signal.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "cluster/host/process_memory.h"
#include "process_unit.h"

static char place[] = "/tmp/test_cluster_process_container.XXXXXX";
static char root[128], volume[128], file[128];

static void write_file(const char *path, const char *text)
{
    FILE *out = fopen(path, "w");
    assert_non_null(out);
    fputs(text, out);
    fclose(out);
}

static int remove_entry(const char *path, const struct stat *info, int type, struct FTW *walk)
{
    (void)info, (void)type, (void)walk;
    return remove(path);
}

static int make_place(void **state)
{
    (void)state;
    assert_non_null(mkdtemp(place));
    snprintf(root, sizeof root, "%s/root", place);
    snprintf(volume, sizeof volume, "%s/volume", place);
    snprintf(file, sizeof file, "%s/file", place);
    mkdir(root, 0700);
    mkdir(volume, 0700);
    write_file(file, "of a file\n");
    return 0;
}

static int remove_place(void **state)
{
    (void)state;
    return nftw(place, remove_entry, 16, FTW_DEPTH | FTW_PHYS);
}

/* A folder of the machine's with a name that only this test gives. */
static bool machine_has(const char *folder)
{
    ML_AUTO_FREE char *path = ml_asprintf("%s/ml-test-%d", folder, (int)getpid());
    bool found = access(path, F_OK) == 0;
    remove(path);
    return found;
}

#define MOUNTS(...)                                                                                \
    (const struct ml_process_mount[])                                                              \
    {                                                                                              \
        __VA_ARGS__                                                                                \
    }

struct run {
    const struct ml_process_mount *mounts;
    size_t count;
    const char *directory;
    uint32_t user;
    bool read_only;
    bool has_memory;
    int memory;
};

static void start_container(struct fixture *f, const char *script, const struct run *run)
{
    const struct ml_process_container container = {
        .root = root,
        .hostname = "pod-1",
        .user = run->user,
        .group = run->user,
        .read_only = run->read_only,
        .mounts = run->mounts,
        .mount_count = run->count,
    };
    start_with(f, &(struct ml_process_opts){.argv = (const char *[]){"sh", "-c", script, NULL},
                                            .directory = run->directory ? run->directory : "/",
                                            .container = &container,
                                            .has_memory = run->has_memory,
                                            .memory = run->memory,
                                            .count_max = LIMIT});
}

/* Runs it to its end, which must be a good one. */
static const char *contained(struct fixture *f, const char *script, const struct run *run)
{
    start_container(f, script, run);
    wait_end(f);
    assert_string_equal(f->end.message, "");
    if (f->end.code != 0)
        fail_msg("%s: %d %s", script, f->end.code, ml_buf_cstr(&f->said));
    return ml_buf_cstr(&f->said);
}

static const struct run plain = {0};

static void test_container_has_a_root_of_its_own(void **state)
{
    ML_AUTO_FREE char *script = ml_asprintf("for d in '' /tmp /etc /usr /var/lib /root /dev/shm; "
                                            "do mkdir $d/ml-test-%d || exit 1; done;"
                                            "ls / | tr '\\n' ' '; ls /home /root /var/lib /tmp; "
                                            "test ! -e %s && test -x /usr/bin/env && echo tools",
                                            (int)getpid(), place);
    const char *said = contained(*state, script, &plain);
    assert_has(said, "dev etc ");
    assert_has(said, " proc root run ");
    assert_has(said, "tools\n");
    assert_null(strstr(said, "lost+found"));
    static const char *const folders[] = {"",         "/tmp",  "/etc",    "/usr",
                                          "/var/lib", "/root", "/dev/shm"};
    for (size_t i = 0; i < ML_COUNT(folders); i++)
        assert_false(machine_has(folders[i]));
    assert_has(contained(*state, "ls -A /tmp /root | wc -l", &plain), "3\n"); /* a new one */
}

static void test_container_has_mounts_where_they_are_wanted(void **state)
{
    const struct run run = {
        .mounts = MOUNTS({volume, NULL, "/data", false}, {file, NULL, "/etc/resolv.conf", true},
                         {volume, NULL, "/usr/share/ml-test/html", true},
                         {volume, "sub/deep", "/data/inner", false},
                         {file, NULL, "/var/run/secrets/token", false},
                         {file, NULL, "/dev/termination-log", false},
                         {file, NULL, "/bin/ml-test-tool", true},
                         {NULL, NULL, "/work/here", false}),
        .count = 8,
        .directory = "/work/here",
    };
    ML_AUTO_FREE char *written = ml_asprintf("%s/written", volume);
    ML_AUTO_FREE char *inner = ml_asprintf("%s/sub/deep/in", volume);
    const char *said = contained(
        *state,
        "pwd; cat /etc/resolv.conf /run/secrets/token /usr/bin/ml-test-tool; echo a >/data/written;"
        "cat /usr/share/ml-test/html/written; echo b >/data/inner/in; ls /data;"
        "echo last words >/dev/termination-log;"
        "echo no >>/etc/resolv.conf || echo no >/usr/share/ml-test/html/written || echo read-only",
        &run);
    assert_has(said, "/work/here\nof a file\nof a file\nof a file\na\n");
    assert_has(said, "\ninner\n");
    assert_has(said, "read-only\n");
    assert_int_equal(access(written, F_OK), 0);
    assert_int_equal(access(inner, F_OK), 0);
    assert_has(contained(*state, "cat /f",
                         &(struct run){.mounts = MOUNTS({file, NULL, "/f", true}), .count = 1}),
               "last words\n");
    write_file(file, "of a file\n");
}

/* Mounts that a pod can ask for, and links that others may have put into a volume. */
/* The second container finds what the first has left; the machine's folder stays as it was. */
static void test_container_shares_a_folder_in_memory(void **state)
{
    const struct ml_memory_folder folder = {.path = volume, .bytes = 1 << 20, .mode = 02777};
    struct ml_err err = ML_ERR_INIT;
    struct run run = {.mounts = MOUNTS({volume, NULL, "/m", false}), .count = 1};
    ML_AUTO_FREE char *left = ml_asprintf("%s/left", volume);
    assert_int_equal(ml_memory_folders_new(&folder, 1, -1, &run.memory, &err), 0);
    run.has_memory = true;
    const char *said = contained(*state,
                                 "stat -f -c %T /m; stat -c '%a %u' /m; echo left >/m/left;"
                                 "head -c 2000000 /dev/zero 2>&1 >/m/big; test -s /m/big",
                                 &run);
    assert_has(said, "tmpfs\n2777 0\n");
    assert_has(said, "No space left on device");
    run.user = 7;
    assert_has(contained(*state, "stat -c %u /m/left; rm /m/big; cat /m/left", &run), "7\nleft\n");
    close(run.memory);
    assert_int_equal(access(left, F_OK), -1);
}

static void test_container_is_told_why_it_has_no_folder_in_memory(void **state)
{
    const struct ml_memory_folder folder = {.path = "/nowhere/ml-test", .mode = 0777};
    struct ml_err err = ML_ERR_INIT;
    int fd = -1;
    (void)state;
    assert_int_equal(ml_memory_folders_new(&folder, 1, -1, &fd, &err), ML_EIO);
    assert_string_equal(err.message, "mount a tmpfs: no such file or directory");
    assert_int_equal(fd, -1);
}

static void test_container_is_refused_mounts_that_lead_elsewhere(void **state)
{
    static const struct {
        struct ml_process_mount mount;
        const char *message;
    } cases[] = {
        {{volume, "out", "/d", false},
         "failed to prepare subPath \"out\" for volumeMount \"/d\": it leads out of its volume"},
        {{volume, "out/x", "/d", false},
         "failed to prepare subPath \"out/x\" for volumeMount \"/d\": it leads out of its volume"},
        {{volume, "up", "/d", false},
         "failed to prepare subPath \"up\" for volumeMount \"/d\": it leads out of its volume"},
        {{volume, NULL, "/etc/passwd", false},
         "error mounting to rootfs at \"/etc/passwd\": not a directory: are you trying to mount a "
         "directory onto a file (or vice-versa)?"},
        {{file, NULL, "/usr/bin", false},
         "error mounting to rootfs at \"/usr/bin\": not a directory: are you trying to mount a "
         "directory onto a file (or vice-versa)?"},
        {{volume, NULL, "/proc/sys", false},
         "error mounting to rootfs at \"/proc/sys\": it is inside /proc"},
        {{volume, NULL, "/sys/new", false},
         "error mounting to rootfs at \"/sys/new\": read-only file system"},
    };
    struct fixture *f = *state;
    ML_AUTO_FREE char *out = ml_asprintf("%s/out", volume), *up = ml_asprintf("%s/up", volume);
    assert_int_equal(symlink("/etc", out), 0);
    assert_int_equal(symlink("../../../../../tmp", up), 0);
    for (size_t i = 0; i < ML_COUNT(cases); i++) {
        start_container(f, "true", &(struct run){.mounts = &cases[i].mount, .count = 1});
        wait_end(f);
        assert_false(f->end.started);
        assert_int_equal(f->end.code, 128);
        assert_string_equal(f->end.message, cases[i].message);
    }
    assert_int_not_equal(access("/etc/x", F_OK), 0);
}

/* A mount over a link that an earlier volume brought stays in the container. */
static void test_container_follows_links_in_its_own_root(void **state)
{
    ML_AUTO_FREE char *link = ml_asprintf("%s/link", volume);
    ML_AUTO_FREE char *target = ml_asprintf("/a/link/ml-test-%d", (int)getpid());
    const struct run run = {
        .mounts = MOUNTS({volume, NULL, "/a", false}, {file, NULL, target, false}), .count = 2};
    assert_int_equal(symlink("/etc", link), 0);
    ML_AUTO_FREE char *script = ml_asprintf("cat /etc/ml-test-%d", (int)getpid());
    assert_has(contained(*state, script, &run), "of a file\n");
    assert_false(machine_has("/etc"));
}

static void test_container_sees_itself_only(void **state)
{
    const char *said = contained(
        *state,
        "id -u; id -g; hostname; cat /proc/1/comm; ls /proc >/tmp/ls; grep -c '^[0-9]*$' /tmp/ls; "
        "umask;"
        "tr '\\0' '\\n' </proc/1/environ | grep -c =; stat -c %u /tmp; ls -l /dev/stdin >/dev/null",
        &(struct run){.user = 4242});
    assert_string_equal(said, "4242\n4242\npod-1\nmoonloop-init\n3\n0022\n0\n4242\n");
}

static void test_container_has_no_rights_beyond_it(void **state)
{
    static const char *const scripts[] = {
        "mount -o remount,rw /sys",
        "mount -t tmpfs x /mnt",
        "umount /proc/sys",
        "echo 1 >/proc/sys/vm/drop_caches",
        "echo pod >/proc/sys/kernel/hostname",
        "unshare -Urm mount -o remount,rw /sys",
    };
    struct fixture *f = *state;
    for (size_t i = 0; i < ML_COUNT(scripts); i++) {
        start_container(f, scripts[i], &plain);
        wait_end(f);
        assert_true(f->end.started);
        if (f->end.code == 0)
            fail_msg("%s is possible", scripts[i]);
    }
}

static void test_container_can_have_a_root_to_read_only(void **state)
{
    const struct run run = {
        .mounts = MOUNTS({volume, NULL, "/etc/mine", false}), .count = 1, .read_only = true};
    assert_has(contained(*state,
                         "for d in / /tmp /etc /usr /root; do touch $d/x && exit 1; done;"
                         "touch /etc/mine/x /dev/shm/x && echo fine",
                         &run),
               "fine\n");
}

static void test_container_ends_as_its_command(void **state)
{
    static const struct {
        const char *script;
        int code;
        int signo;
    } cases[] = {{"exit 7", 7, 0},
                 {"kill -KILL $$", 137, SIGKILL},
                 {"kill -KILL 1; sleep 0.05; exit 6", 6, 0},
                 {"(sleep 0.05; exit 3) & exec sh -c 'wait; sleep 0.1; exit 4'", 4, 0}};
    struct fixture *f = *state;
    for (size_t i = 0; i < ML_COUNT(cases); i++) {
        start_container(f, cases[i].script, &plain);
        wait_end(f);
        if (f->end.code != cases[i].code || f->end.signo != cases[i].signo)
            fail_msg("%s: %d %d", cases[i].script, f->end.code, f->end.signo);
    }
    start_with(f, &(struct ml_process_opts){
                      .argv = (const char *[]){"no-such-command", NULL},
                      .container = &(struct ml_process_container){.root = root, .hostname = "p"}});
    wait_end(f);
    assert_string_equal(f->end.message,
                        "exec: \"no-such-command\": executable file not found in $PATH");
}

static void test_container_is_asked_to_end_and_then_killed(void **state)
{
    static const struct {
        const char *script;
        int64_t grace_ms;
        int code;
    } cases[] = {
        {"echo up; sleep 100; echo no", 60000, 143},
        {"trap 'echo bye; exit 3' TERM; echo up; sleep 100 & wait", 60000, 3},
        {"trap '' TERM; echo up; while :; do sleep 100; done", 100, 137},
        {"trap '' TERM; echo up; while :; do sleep 100; done", 0, 137},
    };
    struct fixture *f = *state;
    for (size_t i = 0; i < ML_COUNT(cases); i++) {
        start_container(f, cases[i].script, &plain);
        wait_said(f, "up");
        ml_process_stop(f->process, cases[i].grace_ms * ML_NS_PER_MS);
        wait_end(f);
        if (f->end.code != cases[i].code)
            fail_msg("%s: %d", cases[i].script, f->end.code);
    }
}

/* How many processes of the machine have this text in their command lines. */
static int count_with(const char *text)
{
    int count = 0;
    DIR *proc = opendir("/proc");
    assert_non_null(proc);
    for (const struct dirent *entry; (entry = readdir(proc));) {
        char path[300], line[4096];
        snprintf(path, sizeof path, "/proc/%s/cmdline", entry->d_name);
        int fd = open(path, O_RDONLY | O_CLOEXEC);
        ssize_t len = fd < 0 ? 0 : read(fd, line, sizeof line);
        if (fd >= 0)
            close(fd);
        count += len > 0 && memmem(line, (size_t)len, text, strlen(text));
    }
    closedir(proc);
    return count;
}

static bool is_mounted_for_us(const char *path)
{
    char line[4096];
    bool found = false;
    FILE *mounts = fopen("/proc/self/mountinfo", "r");
    assert_non_null(mounts);
    while (fgets(line, sizeof line, mounts))
        found |= strstr(line, path) != NULL;
    fclose(mounts);
    return found;
}

static void test_container_leaves_nothing_behind(void **state)
{
    struct fixture *f = *state;
    char mark[64];
    snprintf(mark, sizeof mark, "1000.%d", (int)getpid());
    ML_AUTO_FREE char *script = ml_asprintf(
        "sleep %s & setsid sleep %s & (setsid sh -c \"trap '' TERM; sleep %s; true\" &);"
        "sleep 0.1; echo up; sleep 100",
        mark, mark, mark);
    for (int how = 0; how < 3; how++) { /* is asked to end, is killed, is freed */
        start_container(f, script, &plain);
        wait_said(f, "up");
        assert_true(count_with(mark) >= 3);
        if (how == 2)
            ml_process_free(ml_take(&f->process));
        else
            ml_process_stop(f->process, how == 0 ? 60 * ML_NS_PER_S : 0);
        if (how < 2)
            wait_end(f);
        for (int i = 0; i < 1000 && count_with(mark); i++)
            net_settle(&f->net, 5);
        assert_int_equal(count_with(mark), 0);
    }
    assert_false(is_mounted_for_us(root));
    assert_int_equal(rmdir(root), 0); /* it is empty */
    mkdir(root, 0700);
}

static void test_container_with_too_many_processes_is_killed(void **state)
{
    struct fixture *f = *state;
    start_container(f, "while :; do setsid sleep 100 & sleep 0.001; done", &plain);
    wait_end(f);
    assert_true(f->end.too_many);
    assert_int_equal(f->end.code, 137);
    start_container(f, "i=0; while [ $i -lt 15 ]; do sleep 0.3 & i=$((i+1)); done; wait", &plain);
    wait_end(f);
    assert_int_equal(f->end.code, 0);
}

static void on_start(void *context)
{
    struct fixture *f = context;
    f->has_started = true;
}

/* Probes and hooks run in the container. */
static void test_container_takes_a_second_process(void **state)
{
    struct fixture *f = *state, probe = {.net = f->net, .processes = f->processes, .keep = true};
    struct ml_process_opts opts = {.argv = (const char *[]){"sh", "-c",
                                                            "cat /mine; hostname; id -u; "
                                                            "pwd; exit 5",
                                                            NULL},
                                   .directory = "/var/lib"};
    start_container(f, "echo of it >/mine; echo up; sleep 100", &(struct run){.user = 77});
    wait_said(f, "up");
    for (int i = 0; i < 1000 && !ml_process_pid(f->process); i++)
        net_settle(&f->net, 5);
    opts.beside = f->process;
    opts.started = on_start;
    start_with(&probe, &opts);
    wait_end(&probe);
    assert_string_equal(probe.end.message, "");
    assert_string_equal(ml_buf_cstr(&probe.said), "of it\npod-1\n77\n/var/lib\n");
    assert_int_equal(probe.end.code, 5);
    assert_true(probe.has_started);
    probe.has_started = false;
    opts.argv = (const char *[]){"no-such-command", NULL};
    start_with(&probe, &opts);
    wait_end(&probe);
    assert_has(probe.end.message, "executable file not found in $PATH");
    assert_false(probe.has_started);
    opts.argv = (const char *[]){"sleep", "100", NULL};
    start_with(&probe, &opts); /* ends with the container */
    net_until(&f->net, probe.has_started);
    ml_process_stop(f->process, 0);
    while (!f->is_over || !probe.is_over)
        net_run(&f->net);
    assert_int_equal(probe.end.code, 137);
    ml_buf_fini(&probe.said);
}

static void start_with_terminal(struct fixture *f, const char *script,
                                const struct ml_process *beside)
{
    static const struct ml_process_terminal size = {.rows = 11, .columns = 22};
    const struct ml_process_container container = {.root = root, .hostname = "pod-1", .user = 77};
    start_with(f, &(struct ml_process_opts){.argv = (const char *[]){"sh", "-c", script, NULL},
                                            .directory = "/",
                                            .container = beside ? NULL : &container,
                                            .beside = beside,
                                            .has_input = true,
                                            .terminal = &size,
                                            .count_max = LIMIT});
}

/* It is the first of the container's own, and its console; a second process has the second one. */
static void test_container_has_a_terminal_of_its_own(void **state)
{
    struct fixture *f = *state, other = {.net = f->net, .processes = f->processes, .keep = true};
    start_with_terminal(f,
                        "tty; stty size; ls /dev/pts | tr '\\n' ' '; stat -c %u /dev/pts/0;"
                        "echo >/dev/console console; echo up; read line; echo \"<$line>\"",
                        NULL);
    wait_said(f, "up\r\n");
    assert_string_equal(ml_buf_cstr(&f->said),
                        "/dev/pts/0\r\n11 22\r\n0 ptmx 77\r\nconsole\r\nup\r\n");
    for (int i = 0; i < 1000 && !ml_process_pid(f->process); i++)
        net_settle(&f->net, 5);
    start_with_terminal(&other, "tty; test -t 0 && test -t 2; echo $?; exec 2>&1 >/dev/tty; tty",
                        f->process);
    wait_end(&other);
    assert_string_equal(ml_buf_cstr(&other.said), "/dev/pts/1\r\n0\r\n/dev/pts/1\r\n");
    ml_process_write(f->process, ml_str_of("typed\n"));
    wait_end(f);
    assert_has(ml_buf_cstr(&f->said), "<typed>\r\n");
    assert_int_equal(f->end.code, 0);
    ml_buf_fini(&other.said);
}

/* The container's user can put any file at /dev/ptmx. */
static void test_container_cannot_pass_off_something_as_a_terminal(void **state)
{
    static const char *const fakes[] = {"mkfifo /dev/ptmx", "cp /etc/passwd /dev/ptmx",
                                        "ln -s zero /dev/ptmx", "ln -s tty /dev/ptmx", "true"};
    struct fixture *f = *state, other = {.net = f->net, .processes = f->processes, .keep = true};
    for (size_t i = 0; i < ML_COUNT(fakes); i++) {
        ML_AUTO_FREE char *script = ml_asprintf("rm /dev/ptmx; %s; echo up; exec sleep 100",
                                                fakes[i]);
        start_container(f, script, &plain);
        wait_said(f, "up\n");
        for (int k = 0; k < 1000 && !ml_process_pid(f->process); k++)
            net_settle(&f->net, 5);
        start_with_terminal(&other, "echo no", f->process);
        wait_end(&other);
        assert_false(other.end.started);
        assert_has(other.end.message, "open a terminal: ");
        ml_process_stop(f->process, 0);
        wait_end(f);
    }
    ml_buf_fini(&other.said);
}

static void test_container_reads_its_input(void **state)
{
    struct fixture *f = *state;
    const struct ml_process_container container = {.root = root, .hostname = "p", .user = 77};
    start_with(f, &(struct ml_process_opts){
                      .argv = (const char *[]){"sh", "-c",
                                               "read a; read b </dev/stdin; echo \"$a $b\"; cat;"
                                               "ls /proc/1/fd /proc/self/fd | wc -l",
                                               NULL},
                      .container = &container,
                      .has_input = true});
    ml_process_write(f->process, ml_str_of("one\ntwo\nthree\n"));
    ml_process_end_input(f->process);
    wait_end(f);
    assert_has(ml_buf_cstr(&f->said), "one two\nthree\n");
    assert_int_equal(f->end.code, 0);
}

/* ---- without user namespaces ---- */

/* A child that may make none any more; exits with 0 if it is told so. */
static int try_without_namespaces(void)
{
    struct ml_err err = ML_ERR_INIT;
    int limit = unshare(CLONE_NEWUSER) == 0 ? open("/proc/sys/user/max_user_namespaces", O_WRONLY)
                                            : -1;
    if (limit >= 0 && write(limit, "0", 1) != 1)
        return 2;
    if (ml_processes_try_container(root, &err) == 0)
        return 1;
    return strstr(err.message, "make namespaces: ") ? 0 : 3;
}

static void test_container_is_not_there_where_the_system_forbids_it(void **state)
{
    int status;
    (void)state;
    pid_t pid = fork();
    if (pid == 0)
        _exit(try_without_namespaces());
    assert_int_equal(waitpid(pid, &status, 0), pid);
    assert_int_equal(status, 0);
}

static const struct CMUnitTest without[] = {
    cmocka_unit_test(test_container_is_not_there_where_the_system_forbids_it),
};

static const struct CMUnitTest with[] = {
    PROCESS(test_container_has_a_root_of_its_own),
    PROCESS(test_container_has_mounts_where_they_are_wanted),
    PROCESS(test_container_shares_a_folder_in_memory),
    PROCESS(test_container_is_told_why_it_has_no_folder_in_memory),
    PROCESS(test_container_is_refused_mounts_that_lead_elsewhere),
    PROCESS(test_container_follows_links_in_its_own_root),
    PROCESS(test_container_sees_itself_only),
    PROCESS(test_container_has_no_rights_beyond_it),
    PROCESS(test_container_can_have_a_root_to_read_only),
    PROCESS(test_container_ends_as_its_command),
    PROCESS(test_container_is_asked_to_end_and_then_killed),
    PROCESS(test_container_leaves_nothing_behind),
    PROCESS(test_container_with_too_many_processes_is_killed),
    PROCESS(test_container_takes_a_second_process),
    PROCESS(test_container_has_a_terminal_of_its_own),
    PROCESS(test_container_cannot_pass_off_something_as_a_terminal),
    PROCESS(test_container_reads_its_input),
};

int main(void)
{
    struct ml_err err = ML_ERR_INIT;
    setenv("PATH", "/usr/sbin:/usr/bin:/sbin:/bin", 1); /* the kernel still shows the old value */
    make_place(NULL);
    bool can = ml_processes_try_container(root, &err) == 0;
    if (!can)
        print_message("[  SKIPPED ] containers: this machine allows none: %s\n", err.message);
    remove_place(NULL);
    strcpy(strrchr(place, '.'), ".XXXXXX");
    int failed = cmocka_run_group_tests(without, make_place, remove_place);
    strcpy(strrchr(place, '.'), ".XXXXXX");
    return can ? failed + cmocka_run_group_tests(with, make_place, remove_place) : failed;
}
