/* The set of files that is kept for when a version is quarantined, and what damage makes of it. */
#include "unit.h"

#include "operator/crash_marker.h"

#include <dirent.h>
#include <fcntl.h>
#include <stdio.h>
#include <sys/stat.h>
#include <unistd.h>

struct folder {
    char path[40];
    struct ml_clock_fake clock;
    struct ml_loop *loop;
    struct ml_last_good *kept;
    bool works;
};

static bool set_works(void *context)
{
    return ((struct folder *)context)->works;
}

static int open_kept(struct folder *folder, struct ml_last_good **out)
{
    struct ml_err err = ML_ERR_INIT;
    const struct ml_last_good_opts opts = {
        .loop = folder->loop,
        .folder = folder->path,
        .source = "test",
        .works = set_works,
        .context = folder,
    };
    return ml_last_good_open(&opts, out, &err);
}

static void start(struct folder *folder)
{
    ml_last_good_close(ml_take(&folder->kept));
    assert_int_equal(open_kept(folder, &folder->kept), 0);
}

static int set_up(void **state)
{
    struct folder *folder = ml_new(struct folder);
    strcpy(folder->path, "/tmp/moonloop-good-XXXXXX");
    assert_non_null(mkdtemp(folder->path));
    ml_clock_fake_init(&folder->clock, 0);
    folder->loop = ml_loop_new(&folder->clock.clock);
    folder->works = true;
    start(folder);
    *state = folder;
    return 0;
}

/* Calls it with the path of each file in the folder. */
static void for_each_file(const struct folder *folder, void (*visit)(const char *path))
{
    DIR *dir = opendir(folder->path);
    assert_non_null(dir);
    for (struct dirent *entry; (entry = readdir(dir));) {
        ML_AUTO_FREE char *path = ml_asprintf("%s/%s", folder->path, entry->d_name);
        if (entry->d_name[0] != '.')
            visit(path);
    }
    closedir(dir);
}

static void remove_one(const char *path)
{
    assert_int_equal(unlink(path), 0);
}

static int tear_down(void **state)
{
    struct folder *folder = *state;
    ml_last_good_close(folder->kept);
    ml_loop_free(folder->loop);
    for_each_file(folder, remove_one);
    assert_int_equal(rmdir(folder->path), 0);
    free(folder);
    return 0;
}

static void load(struct folder *folder, const char *a, const char *b, bool good)
{
    ML_AUTO(ml_files_fini) struct ml_files files = ML_FILES_INIT;
    struct ml_err err = ML_ERR_INIT;
    assert_int_equal(ml_files_add(&files, &ml_files_scripts, ML_STR("a.lua"), ml_str_of(a), &err),
                     0);
    if (b)
        assert_int_equal(
            ml_files_add(&files, &ml_files_scripts, ML_STR("b.lua"), ml_str_of(b), &err), 0);
    ml_last_good_propose(folder->kept, &files, good);
}

static void propose(struct folder *folder, const char *a, const char *b)
{
    load(folder, a, b, true);
}

static void pass(struct folder *folder, int64_t ns)
{
    ml_clock_fake_advance(&folder->clock, ns);
    ml_loop_poll(folder->loop);
}

/* The set has worked for long enough. */
static void accept(struct folder *folder)
{
    pass(folder, ML_CRASH_MARKER_WORKED_NS);
}

/* In this process and in the next one; `b` NULL: a single file. `a` NULL: there is none. */
static void expect(struct folder *folder, const char *a, const char *b)
{
    for (int i = 0; i < 2; i++, start(folder)) {
        ML_AUTO(ml_files_fini) struct ml_files files = ML_FILES_INIT;
        assert_int_equal(ml_last_good_read(folder->kept, &files), a != NULL);
        assert_int_equal(files.count, a ? 1 + (b != NULL) : 0);
        if (!a)
            continue;
        assert_str_eq(files.files[0].name, "a.lua");
        assert_str_eq(files.files[0].text, a);
        if (b)
            assert_str_eq(files.files[1].text, b);
    }
}

static void test_last_good_set_is_read_once_it_was_accepted(void **state)
{
    struct folder *folder = *state;
    expect(folder, NULL, NULL);
    accept(folder); /* nothing is proposed */
    expect(folder, NULL, NULL);
    propose(folder, "one", "");
    expect(folder, NULL, NULL);
    accept(folder); /* that was of the process before */
    expect(folder, NULL, NULL);
    propose(folder, "one", "");
    accept(folder);
    expect(folder, "one", "");
}

static void test_last_good_set_stays_till_the_next_is_accepted(void **state)
{
    struct folder *folder = *state;
    const char *const texts[] = {"a long first text", "2", "the third", ""};
    for (size_t i = 0; i < ML_COUNT(texts); i++) {
        propose(folder, texts[i], NULL);
        accept(folder);
        expect(folder, texts[i], NULL);
        propose(folder, "bad", "worse");
        expect(folder, texts[i], NULL);
    }
}

static void test_last_good_set_is_one_that_works_after_its_time(void **state)
{
    struct folder *folder = *state;
    propose(folder, "one", "");
    pass(folder, ML_CRASH_MARKER_WORKED_NS - 1);
    expect(folder, NULL, NULL);
    folder->works = false;
    propose(folder, "one", "");
    accept(folder);
    folder->works = true; /* looked at again after the same time */
    pass(folder, ML_CRASH_MARKER_WORKED_NS - 1);
    propose(folder, "one", ""); /* the same set: its time goes on */
    pass(folder, 1);
    expect(folder, "one", "");
}

static void test_last_good_set_is_not_one_with_a_refused_file(void **state)
{
    struct folder *folder = *state;
    propose(folder, "one", "");
    load(folder, "two", "", false);
    accept(folder);
    expect(folder, NULL, NULL);
}

static void test_last_good_set_that_works_is_accepted_at_the_end(void **state)
{
    struct folder *folder = *state;
    propose(folder, "one", "");
    folder->works = false;
    ml_last_good_end(folder->kept);
    expect(folder, NULL, NULL);
    propose(folder, "two", "");
    folder->works = true;
    ml_last_good_end(folder->kept);
    expect(folder, "two", "");
}

static void overwrite_end(const char *path)
{
    int fd = open(path, O_WRONLY);
    assert_true(fd >= 0);
    assert_true(lseek(fd, -1, SEEK_END) >= 0 || lseek(fd, 0, SEEK_END) == 0);
    assert_int_equal(write(fd, "!", 1), 1);
    close(fd);
}

static void fill_with_garbage(const char *path)
{
    char garbage[512];
    int fd = open(path, O_WRONLY);
    assert_true(fd >= 0);
    memset(garbage, 0xee, sizeof garbage);
    assert_int_equal(write(fd, garbage, sizeof garbage), sizeof garbage);
    close(fd);
}

/* Behind the header; the first record says that its name and text are huge. */
static void make_huge(const char *path)
{
    const uint64_t huge[2] = {UINT64_MAX, UINT64_MAX};
    int fd = open(path, O_WRONLY);
    assert_int_equal(pwrite(fd, huge, sizeof huge, 32), sizeof huge);
    close(fd);
}

static void cut_short(const char *path)
{
    struct stat info;
    assert_int_equal(stat(path, &info), 0);
    assert_int_equal(info.st_mode & 07777, 0600);
    assert_int_equal(truncate(path, info.st_size ? info.st_size - 1 : 0), 0);
}

static void test_last_good_set_that_is_damaged_is_none(void **state)
{
    struct folder *folder = *state;
    void (*const damages[])(const char *path) = {overwrite_end, fill_with_garbage, make_huge,
                                                 cut_short};
    for (size_t i = 0; i < ML_COUNT(damages); i++) {
        propose(folder, "one", "two");
        accept(folder);
        for_each_file(folder, damages[i]);
        expect(folder, NULL, NULL);
        for_each_file(folder, remove_one);
        start(folder);
    }
}

static void test_last_good_file_that_is_none_is_refused(void **state)
{
    struct folder *folder = *state;
    struct ml_last_good *kept = NULL;
    ML_AUTO_FREE char *path = ml_asprintf("%s/last-good-%016llx-1", folder->path,
                                          (unsigned long long)ml_str_hash(ML_STR("test")));
    assert_int_equal(unlink(path), 0);
    assert_int_equal(mkfifo(path, 0600), 0);
    assert_int_equal(open_kept(folder, &kept), ML_EINVALID);
    assert_int_equal(unlink(path), 0);
    assert_int_equal(symlink("/dev/null", path), 0);
    assert_int_equal(open_kept(folder, &kept), ML_EIO);
    assert_null(kept);
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, set_up, tear_down)

int main(void)
{
    const struct CMUnitTest tests[] = {
        TEST(test_last_good_set_is_read_once_it_was_accepted),
        TEST(test_last_good_set_stays_till_the_next_is_accepted),
        TEST(test_last_good_set_is_one_that_works_after_its_time),
        TEST(test_last_good_set_is_not_one_with_a_refused_file),
        TEST(test_last_good_set_that_works_is_accepted_at_the_end),
        TEST(test_last_good_set_that_is_damaged_is_none),
        TEST(test_last_good_file_that_is_none_is_refused),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
