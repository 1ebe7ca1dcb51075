/* The marker's memory from one process to the next. A process ends here by closing the marker: the
 * page stays as it is, as after a kill. */
#include "unit.h"

#include "operator/load.h"

#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <sys/stat.h>
#include <sys/time.h>
#include <sys/wait.h>
#include <unistd.h>

#define A UINT64_C(0xa)
#define B UINT64_C(0xb)

struct folder {
    char path[40], file[64];
    struct ml_crash_marker *marker;
};

static int set_up(void **state)
{
    struct folder *folder = ml_new(struct folder);
    strcpy(folder->path, "/tmp/moonloop-marker-XXXXXX");
    assert_non_null(mkdtemp(folder->path));
    snprintf(folder->file, sizeof folder->file, "%s/crash-marker", folder->path);
    *state = folder;
    return 0;
}

static int tear_down(void **state)
{
    struct folder *folder = *state;
    ml_crash_marker_close(folder->marker);
    remove(folder->file);
    assert_int_equal(rmdir(folder->path), 0);
    free(folder);
    return 0;
}

static void start(struct folder *folder)
{
    struct ml_err err = ML_ERR_INIT;
    assert_null(folder->marker);
    int r = ml_crash_marker_open(folder->path, NULL, &folder->marker, &err);
    assert_string_equal(err.message, "");
    assert_int_equal(r, 0);
    assert_int_equal(*ml_crash_marker_at_work(folder->marker), 0);
}

static void die(struct folder *folder)
{
    ml_crash_marker_close(ml_take(&folder->marker));
}

static void die_in(struct folder *folder, uint64_t version)
{
    start(folder);
    *ml_crash_marker_at_work(folder->marker) = version;
    die(folder);
}

static bool quarantined(struct folder *folder, uint64_t version)
{
    start(folder);
    bool is = ml_crash_marker_quarantined(folder->marker, version);
    die(folder);
    return is;
}

static void test_marker_two_deaths_in_a_version_quarantine_it(void **state)
{
    struct folder *folder = *state;
    assert_false(quarantined(folder, A));
    die_in(folder, A);
    assert_false(quarantined(folder, A));
    die_in(folder, A);
    assert_true(quarantined(folder, A));
    assert_false(quarantined(folder, B));
    assert_false(quarantined(folder, 0));
}

static void test_marker_deaths_outside_of_scripts_count_for_none(void **state)
{
    struct folder *folder = *state;
    for (int i = 0; i < 5; i++)
        die_in(folder, 0);
    assert_false(quarantined(folder, A));
    die_in(folder, A);
    die_in(folder, 0); /* and do not make good what was */
    die_in(folder, A);
    assert_true(quarantined(folder, A));
}

static void test_marker_forgives_single_deaths_alone(void **state)
{
    struct folder *folder = *state;
    die_in(folder, B);
    die_in(folder, A);
    die_in(folder, A);
    start(folder);
    ml_crash_marker_forgive(folder->marker);
    die(folder);
    die_in(folder, B);
    assert_false(quarantined(folder, B));
    assert_true(quarantined(folder, A));
    die_in(folder, B);
    assert_true(quarantined(folder, B));
}

static void test_marker_drops_the_oldest_when_it_is_full(void **state)
{
    struct folder *folder = *state;
    for (uint64_t version = 1; version <= ML_CRASH_MARKER_VERSIONS_MAX + 1; version++) {
        die_in(folder, version);
        die_in(folder, version);
    }
    assert_false(quarantined(folder, 1));
    for (uint64_t version = 2; version <= ML_CRASH_MARKER_VERSIONS_MAX + 1; version++)
        assert_true(quarantined(folder, version));
}

static void write_file(const struct folder *folder, const void *bytes, size_t size, long at)
{
    int fd = open(folder->file, O_WRONLY | O_CREAT, 0644);
    assert_true(fd >= 0);
    assert_int_equal(pwrite(fd, bytes, size, at), (ssize_t)size);
    close(fd);
}

static off_t size_of(const struct folder *folder)
{
    struct stat info;
    assert_int_equal(stat(folder->file, &info), 0);
    assert_int_equal(info.st_mode & 07777, 0600);
    return info.st_size;
}

static void test_marker_begins_anew_when_the_file_is_damaged(void **state)
{
    struct folder *folder = *state;
    const uint64_t many = 3;
    char garbage[8192];
    memset(garbage, 0xee, sizeof garbage);
    die_in(folder, A);
    off_t size = size_of(folder);
    const struct {
        const void *bytes;
        size_t size;
        long at;
    } damages[] = {
        {garbage, sizeof garbage, 0},  /* another file */
        {garbage, 1, 0},               /* another format */
        {garbage, 1, (long)size},      /* longer */
        {&many, sizeof many, 24},      /* deaths that cannot be */
        {garbage, 8, (long)size - 16}, /* a hole in the table */
        {(uint64_t[]){0}, 8, 16},      /* deaths of nobody */
    };
    for (size_t i = 0; i < ML_COUNT(damages); i++) {
        die_in(folder, A);
        die_in(folder, A);
        assert_true(quarantined(folder, A));
        write_file(folder, damages[i].bytes, damages[i].size, damages[i].at);
        assert_false(quarantined(folder, A));
        assert_int_equal(size_of(folder), size);
    }
    assert_int_equal(truncate(folder->file, size - 1), 0);
    assert_false(quarantined(folder, A));
    assert_int_equal(size_of(folder), size);
}

static void refuses(struct folder *folder, int kind, const char *says)
{
    struct ml_crash_marker *marker = NULL;
    struct ml_err err = ML_ERR_INIT;
    assert_int_equal(ml_crash_marker_open(folder->path, NULL, &marker, &err), kind);
    assert_non_null(strstr(err.message, says));
    assert_null(marker);
}

static void test_marker_is_a_regular_file_of_one_process(void **state)
{
    struct folder *folder = *state;
    start(folder);
    refuses(folder, ML_EALREADY_EXISTS, "another process has it");
    die(folder);
    remove(folder->file);
    assert_int_equal(symlink("/dev/null", folder->file), 0);
    refuses(folder, ML_EIO, "cannot be opened");
    remove(folder->file);
    assert_int_equal(mkfifo(folder->file, 0600), 0);
    refuses(folder, ML_EINVALID, "is not a file");
    remove(folder->file);
    strcat(folder->path, "/none");
    refuses(folder, ML_EIO, "cannot be opened");
    *strrchr(folder->path, '/') = '\0';
}

static uint64_t version_of(const char *name, const char *text)
{
    return ml_file_fingerprint(&(struct ml_script_file){ml_str_of(name), ml_str_of(text)});
}

static void test_marker_version_is_of_name_and_text(void **state)
{
    (void)state;
    uint64_t version = version_of("a.lua", "return 1");
    assert_true(version == UINT64_C(0xf03992a8f10f1e29));
    assert_true(version != version_of("b.lua", "return 1"));
    assert_true(version != version_of("a.lua", "return 2"));
    assert_true(version_of("", "") != 0);
}

/* ---- with scripts ---- */

static const char *const controller =
    "local m = require 'moonloop'\n"
    "return m.controller { name = 'b', reconcile = function() end,\n"
    "  reconciles = m.kind('v1', 'Pod') }\n";
static const char *const endless = "while true do end";

static void load_two(struct folder *folder, const char *a, struct ml_load *load,
                     struct ml_files *files)
{
    static const struct ml_script_limits limits = {.load_cpu_ns = 10 * ML_NS_PER_S};
    const struct ml_load_opts opts = {.limits = &limits, .marker = folder->marker};
    struct ml_err err = ML_ERR_INIT;
    *files = ML_FILES_INIT;
    assert_int_equal(ml_files_add(files, &ml_files_scripts, ML_STR("a.lua"), ml_str_of(a), &err),
                     0);
    assert_int_equal(
        ml_files_add(files, &ml_files_scripts, ML_STR("b.lua"), ml_str_of(controller), &err), 0);
    ml_load_all(load, files, &opts);
    assert_int_equal(*ml_crash_marker_at_work(folder->marker), 0);
}

/* A process that is killed after 300 ms of CPU time: in the loop. */
static void die_loading(struct folder *folder, const char *a)
{
    const struct itimerval soon = {.it_value.tv_usec = 300000};
    struct ml_load load;
    struct ml_files files;
    int status = 0;
    pid_t pid = fork();
    assert_true(pid >= 0);
    if (pid == 0) {
        start(folder);
        setitimer(ITIMER_PROF, &soon, NULL);
        load_two(folder, a, &load, &files);
        _exit(0);
    }
    assert_int_equal(waitpid(pid, &status, 0), pid);
    assert_true(WIFSIGNALED(status));
    assert_int_equal(WTERMSIG(status), SIGPROF);
}

/* Checks the verdict on the two files in the next process; that ends in order. */
static void expect(struct folder *folder, const char *a, enum ml_load_outcome outcome,
                   const char *says)
{
    struct ml_load load;
    struct ml_files files;
    start(folder);
    load_two(folder, a, &load, &files);
    assert_string_equal(load.verdicts[0].err.message, says);
    assert_int_equal(load.verdicts[0].outcome, outcome);
    assert_int_equal(load.verdicts[1].outcome, ML_LOAD_CONTROLLER);
    ml_load_fini(&load);
    ml_files_fini(&files);
    ml_crash_marker_forgive(folder->marker);
    die(folder);
}

static void test_marker_version_in_which_two_processes_died_is_not_loaded(void **state)
{
    struct folder *folder = *state;
    die_loading(folder, endless);
    die_loading(folder, endless);
    expect(folder, endless, ML_LOAD_REFUSED,
           "a.lua: this version was at work when the process died twice in a row; change it to "
           "have it loaded again");
    expect(folder, "return", ML_LOAD_REFUSED,
           "a.lua:1: the file returns nothing; a script returns moonloop.controller{ … }, a module "
           "a table");
}

static void test_marker_version_in_which_one_process_died_is_loaded(void **state)
{
    struct folder *folder = *state;
    die_in(folder, version_of("b.lua", controller));
    expect(folder, "return 1", ML_LOAD_REFUSED,
           "a.lua:1: the file returns a number; a script returns moonloop.controller{ … }, a "
           "module a table");
    die_in(folder, version_of("b.lua", controller)); /* the one before was made good */
    expect(folder, "return 1", ML_LOAD_REFUSED,
           "a.lua:1: the file returns a number; a script returns moonloop.controller{ … }, a "
           "module a table");
}

#define TEST(function) cmocka_unit_test_setup_teardown(function, set_up, tear_down)

int main(void)
{
    const struct CMUnitTest tests[] = {
        TEST(test_marker_two_deaths_in_a_version_quarantine_it),
        TEST(test_marker_deaths_outside_of_scripts_count_for_none),
        TEST(test_marker_forgives_single_deaths_alone),
        TEST(test_marker_drops_the_oldest_when_it_is_full),
        TEST(test_marker_begins_anew_when_the_file_is_damaged),
        TEST(test_marker_is_a_regular_file_of_one_process),
        TEST(test_marker_version_is_of_name_and_text),
        TEST(test_marker_version_in_which_two_processes_died_is_not_loaded),
        TEST(test_marker_version_in_which_one_process_died_is_loaded),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
