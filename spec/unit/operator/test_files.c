/* Files of a folder: those that are read, and those that are refused. */
#include "unit.h"

#include "operator/files.h"

#include <errno.h>
#include <fcntl.h>
#include <ftw.h>
#include <stdio.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <unistd.h>

struct folder {
    char path[32];
    struct ml_files files;
};

static int set_up(void **state)
{
    struct folder *folder = ml_new(struct folder);
    strcpy(folder->path, "/tmp/moonloop-files-XXXXXX");
    assert_non_null(mkdtemp(folder->path));
    *state = folder;
    return 0;
}

static int remove_one(const char *path, const struct stat *info, int type, struct FTW *at)
{
    (void)info, (void)type, (void)at;
    return remove(path);
}

static int tear_down(void **state)
{
    struct folder *folder = *state;
    ml_files_fini(&folder->files);
    nftw(folder->path, remove_one, 16, FTW_DEPTH | FTW_PHYS);
    free(folder);
    return 0;
}

static char *path_in(const struct folder *folder, const char *name)
{
    return ml_asprintf("%s/%s", folder->path, name);
}

static void write_file(const struct folder *folder, const char *name, size_t size)
{
    ML_AUTO_FREE char *path = path_in(folder, name);
    FILE *out = fopen(path, "w");
    assert_non_null(out);
    for (size_t i = 0; i < size; i++)
        putc('-', out);
    assert_int_equal(fclose(out), 0);
}

static void read_folder(struct folder *folder)
{
    struct ml_err err = ML_ERR_INIT;
    ml_files_fini(&folder->files);
    if (ml_files_read(&folder->files, &ml_files_scripts, folder->path, &err) < 0)
        fail_msg("%s", err.message);
}

/* Only good.lua was taken, and of this entry it is said what is wrong. */
static void expect_refused(struct folder *folder, const char *name, int kind, const char *part)
{
    write_file(folder, "good.lua", 5);
    read_folder(folder);
    assert_int_equal(folder->files.count, 1);
    assert_true(ml_str_is(folder->files.files[0].name, "good.lua"));
    assert_int_equal(folder->files.refused_count, 1);
    const struct ml_file_refused *refused = &folder->files.refused[0];
    assert_string_equal(refused->name, name);
    assert_int_equal(refused->err.kind, kind);
    if (!strstr(refused->err.message, part))
        fail_msg("'%s' is not in '%s'", part, refused->err.message);
}

/* Nobody writes to it: who opens it for reading waits for ever. */
static void test_files_pipe_is_refused_alone(void **state)
{
    ML_AUTO_FREE char *path = path_in(*state, "x.lua");
    assert_int_equal(mkfifo(path, 0600), 0);
    expect_refused(*state, "x.lua", ML_EINVALID, "/x.lua: is a pipe, not a file");
}

static void test_files_folder_of_a_scripts_name_is_refused_alone(void **state)
{
    ML_AUTO_FREE char *path = path_in(*state, "x.lua");
    assert_int_equal(mkdir(path, 0700), 0);
    expect_refused(*state, "x.lua", ML_EINVALID, "is a folder, not a file");
}

static void test_files_socket_is_refused_alone(void **state)
{
    ML_AUTO_FREE char *path = path_in(*state, "x.lua");
    struct sockaddr_un address = {.sun_family = AF_UNIX};
    strcpy(address.sun_path, path);
    int fd = socket(AF_UNIX, SOCK_STREAM, 0);
    assert_int_equal(bind(fd, (struct sockaddr *)&address, sizeof address), 0);
    close(fd);
    expect_refused(*state, "x.lua", ML_EINVALID, "is a socket, not a file");
}

static void test_files_device_is_refused_alone(void **state)
{
    ML_AUTO_FREE char *path = path_in(*state, "x.lua");
    assert_int_equal(symlink("/dev/zero", path), 0);
    expect_refused(*state, "x.lua", ML_EINVALID, "is a device, not a file");
}

static void test_files_dangling_link_is_refused_alone_and_may_mend(void **state)
{
    struct folder *folder = *state;
    ML_AUTO_FREE char *path = path_in(folder, "x.lua");
    assert_int_equal(symlink("nowhere", path), 0);
    expect_refused(folder, "x.lua", ML_EIO, "No such file or directory");
    assert_true(ml_files_may_recover(&folder->files));
}

static void test_files_unreadable_file_is_refused_alone(void **state)
{
    struct folder *folder = *state;
    if (geteuid() == 0)
        skip(); /* root reads everything */
    ML_AUTO_FREE char *path = path_in(folder, "x.lua");
    write_file(folder, "x.lua", 1);
    assert_int_equal(chmod(path, 0), 0);
    expect_refused(folder, "x.lua", ML_EIO, "Permission denied");
}

static void test_files_largest_file_is_taken_and_a_larger_one_refused_alone(void **state)
{
    struct folder *folder = *state;
    write_file(folder, "x.lua", ML_SCRIPT_SOURCE_MAX + 1);
    expect_refused(folder, "x.lua", ML_ELIMIT, "larger than 1048576 bytes");
    assert_false(ml_files_may_recover(&folder->files));
    write_file(folder, "x.lua", ML_SCRIPT_SOURCE_MAX);
    read_folder(folder);
    assert_int_equal(folder->files.count, 2);
    assert_int_equal(folder->files.refused_count, 0);
}

/* It would take hours, and all the memory there is, to read it before it is judged. */
static void test_files_size_is_judged_before_anything_is_read(void **state)
{
    ML_AUTO_FREE char *path = path_in(*state, "x.lua");
    write_file(*state, "x.lua", 0);
    assert_int_equal(truncate(path, (off_t)1 << 40), 0);
    expect_refused(*state, "x.lua", ML_ELIMIT, "larger than 1048576 bytes");
}

static void test_files_name_that_cannot_be_shown_is_refused_alone(void **state)
{
    static const struct {
        const char *name, *shown;
    } cases[] = {
        {"a\nerror.lua", "a?error.lua"}, {"a\x1b[2J.lua", "a?[2J.lua"}, {"a\x7f.lua", "a?.lua"},
        {"a\xc2\x9b.lua", "a??.lua"},    {"a\xff.lua", "a?.lua"},
    };
    struct folder *folder = *state;
    for (size_t i = 0; i < ML_COUNT(cases); i++) {
        ML_AUTO_FREE char *path = path_in(folder, cases[i].name);
        write_file(folder, cases[i].name, 1);
        expect_refused(folder, cases[i].shown, ML_EINVALID, "can be printed");
        assert_null(strstr(folder->files.refused[0].err.message, cases[i].name));
        assert_int_equal(unlink(path), 0);
    }
    write_file(folder, "größe.lua", 1);
    read_folder(folder);
    assert_int_equal(folder->files.count, 2);
}

static void test_files_name_may_have_253_bytes_and_no_more(void **state)
{
    struct ml_files *files = &((struct folder *)*state)->files;
    struct ml_err err;
    char name[ML_FILE_NAME_MAX + 2];
    memset(name, 'n', sizeof name);
    for (size_t len = ML_FILE_NAME_MAX; len <= ML_FILE_NAME_MAX + 1; len++)
        assert_int_equal(
            ml_files_add(files, &ml_files_scripts, (struct ml_str){name, len}, ML_STR("-"), &err),
            0);
    assert_int_equal(ml_files_add(files, &ml_files_scripts, ML_STR("../x"), ML_STR(""), &err), 0);
    assert_int_equal(ml_files_add(files, &ml_files_scripts, ML_STR(""), ML_STR(""), &err), 0);
    assert_int_equal(files->count, 1);
    assert_int_equal(files->refused_count, 3);
    assert_int_equal(strlen(files->refused[2].name), ML_FILE_NAME_MAX);
    assert_string_equal(files->refused[1].name, "..?x");
}

/* As the kubelet mounts a ConfigMap. */
static void test_files_links_are_followed(void **state)
{
    struct folder *folder = *state;
    ML_AUTO_FREE char *version = path_in(folder, "..2026");
    ML_AUTO_FREE char *data = path_in(folder, "..data");
    ML_AUTO_FREE char *link = path_in(folder, "x.lua");
    assert_int_equal(mkdir(version, 0700), 0);
    assert_int_equal(symlink("..2026", data), 0);
    assert_int_equal(symlink("..data/x.lua", link), 0);
    write_file(folder, "..2026/x.lua", 3);
    read_folder(folder);
    assert_int_equal(folder->files.count, 1);
    assert_int_equal(folder->files.refused_count, 0);
    assert_true(ml_str_is(folder->files.files[0].text, "---"));
}

static void test_files_too_many_entries_are_refused_as_a_whole(void **state)
{
    struct folder *folder = *state;
    struct ml_files files = ML_FILES_INIT;
    struct ml_err err = ML_ERR_INIT;
    for (int i = 0; i < ML_FILES_MAX; i++) {
        ML_AUTO_FREE char *name = ml_asprintf("%d.lua", i);
        write_file(folder, name, i % 2 ? 1 : 0);
    }
    read_folder(folder);
    assert_int_equal(folder->files.count, ML_FILES_MAX);
    ML_AUTO_FREE char *pipe = path_in(folder, "pipe.lua");
    assert_int_equal(mkfifo(pipe, 0600), 0);
    assert_int_equal(ml_files_read(&files, &ml_files_scripts, folder->path, &err), ML_ELIMIT);
    assert_string_equal(err.message, "more than 256 scripts");
}

static void test_files_too_much_text_is_refused_as_a_whole(void **state)
{
    struct folder *folder = *state;
    struct ml_files files = ML_FILES_INIT;
    struct ml_err err = ML_ERR_INIT;
    for (int i = 0; i < 8; i++) {
        ML_AUTO_FREE char *name = ml_asprintf("%d.lua", i);
        write_file(folder, name, ML_SCRIPT_SOURCE_MAX);
    }
    read_folder(folder);
    assert_int_equal(folder->files.count, 8);
    write_file(folder, "one-more.lua", 1);
    assert_int_equal(ml_files_read(&files, &ml_files_scripts, folder->path, &err), ML_ELIMIT);
    assert_string_equal(err.message, "scripts larger than 8388608 bytes in all");
}

static void test_files_path_of_its_own_is_refused_as_a_whole(void **state)
{
    struct ml_files files = ML_FILES_INIT;
    struct ml_err err = ML_ERR_INIT;
    ML_AUTO_FREE char *path = path_in(*state, "x.lua");
    assert_int_equal(mkfifo(path, 0600), 0);
    assert_int_equal(ml_files_read(&files, &ml_files_scripts, path, &err), ML_EINVALID);
    assert_non_null(strstr(err.message, "/x.lua: is a pipe, not a file"));
    assert_int_equal(files.count + files.refused_count, 0);
}

/* They are there for it to require; what is wrong with them does not concern it. */
static void test_files_script_of_its_own_comes_with_the_others_of_its_folder(void **state)
{
    struct folder *folder = *state;
    struct ml_files copy;
    struct ml_err err = ML_ERR_INIT;
    ML_AUTO_FREE char *path = path_in(folder, "b.lua"), *pipe = path_in(folder, "pipe.lua");
    write_file(folder, "a.lua", 1);
    write_file(folder, "b.lua", 2);
    write_file(folder, "b_test.lua", 3);
    write_file(folder, "c.yaml", 4);
    assert_int_equal(mkfifo(pipe, 0600), 0);
    assert_int_equal(ml_files_read(&folder->files, &ml_files_scripts, path, &err), 0);
    assert_int_equal(folder->files.count, 2);
    assert_int_equal(folder->files.refused_count, 0);
    assert_false(ml_files_asked_for(&folder->files, 0));
    assert_true(ml_files_asked_for(&folder->files, 1));
    assert_string_equal(folder->files.only, "b.lua");
    ml_files_copy(&copy, &folder->files);
    assert_true(ml_files_same(&copy, &folder->files));
    read_folder(folder);
    assert_true(ml_files_asked_for(&folder->files, 0));
    assert_false(ml_files_same(&copy, &folder->files));
    ml_files_fini(&copy);
}

static void test_files_that_a_script_was_made_from_are_copied(void **state)
{
    (void)state;
    ML_AUTO(ml_files_fini) struct ml_files files = ML_FILES_INIT, copy = ML_FILES_INIT;
    static const char *const texts[][2] = {
        {"a.lua", "return require 'c'"}, {"b.lua", "return 1"}, {"c.lua", "return {}"}};
    struct ml_err err = ML_ERR_INIT;
    struct ml_script *script = NULL;
    for (size_t i = 0; i < ML_COUNT(texts); i++)
        assert_int_equal(ml_files_add(&files, &ml_files_scripts, ml_str_of(texts[i][0]),
                                      ml_str_of(texts[i][1]), &err),
                         0);
    const struct ml_script_files all = {files.files, files.count};
    assert_int_equal(ml_script_load(NULL, NULL, &all, 0, &script, &err), 0);
    ml_files_copy_loaded(&copy, &files, script);
    ml_script_unref(script);
    assert_int_equal(copy.count, 2);
    assert_str_eq(copy.files[0].name, "a.lua");
    assert_str_eq(copy.files[1].name, "c.lua");
    assert_str_eq(copy.files[1].text, "return {}");
    assert_true(ml_files_have(&files, "b.lua"));
    assert_false(ml_files_have(&copy, "b.lua"));
}

static void test_files_that_are_refused_are_there(void **state)
{
    (void)state;
    ML_AUTO(ml_files_fini) struct ml_files files = ML_FILES_INIT;
    struct ml_err err = ML_ERR_INIT;
    assert_int_equal(
        ml_files_add(&files, &ml_files_scripts, ML_STR("a\n.lua"), ML_STR("return 1"), &err), 0);
    assert_int_equal(files.refused_count, 1);
    assert_true(ml_files_have(&files, files.refused[0].name));
    assert_false(ml_files_have(&files, "a.lua"));
}

/* Some editors write it. */
static void test_files_byte_order_mark_is_no_part_of_a_file(void **state)
{
    struct ml_files files = ML_FILES_INIT;
    struct ml_err err;
    (void)state;
    assert_int_equal(ml_files_add(&files, &ml_files_scripts, ML_STR("a.lua"),
                                  ML_STR("\xef\xbb\xbfreturn 1"), &err),
                     0);
    assert_str_eq(files.files[0].text, "return 1");
    ml_files_fini(&files);
}

static void test_files_of_utf16_are_refused_with_what_to_do(void **state)
{
    (void)state;
    static const char *const texts[] = {"\xff\xfe"
                                        "a\0",
                                        "\xfe\xff\0a"};
    for (size_t i = 0; i < ML_COUNT(texts); i++) {
        struct ml_files files = ML_FILES_INIT;
        struct ml_err err;
        assert_int_equal(ml_files_add(&files, &ml_files_scripts, ML_STR("a.lua"),
                                      (struct ml_str){texts[i], 4}, &err),
                         0);
        assert_int_equal(files.count, 0);
        assert_string_equal(files.refused[0].err.message, "a.lua: is UTF-16; save it as UTF-8");
        ml_files_fini(&files);
    }
}

static void test_files_script_of_its_own_is_read_from_a_folder_that_is_too_full(void **state)
{
    struct folder *folder = *state;
    struct ml_err err = ML_ERR_INIT;
    ML_AUTO_FREE char *path = path_in(folder, "x.lua");
    write_file(folder, "x.lua", 2);
    for (int i = 0; i < ML_FILES_MAX; i++) {
        ML_AUTO_FREE char *name = ml_asprintf("%d.lua", i);
        write_file(folder, name, 0);
    }
    assert_int_equal(ml_files_read(&folder->files, &ml_files_scripts, path, &err), 0);
    assert_int_equal(folder->files.count, 1);
    assert_true(ml_files_asked_for(&folder->files, 0));
}

static void test_files_manifest_of_its_own_comes_alone(void **state)
{
    struct folder *folder = *state;
    struct ml_err err = ML_ERR_INIT;
    ML_AUTO_FREE char *path = path_in(folder, "a.yaml");
    write_file(folder, "a.yaml", 1);
    write_file(folder, "b.yaml", 2);
    assert_int_equal(ml_files_read(&folder->files, &ml_files_manifests, path, &err), 0);
    assert_int_equal(folder->files.count, 1);
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, set_up, tear_down)

int main(void)
{
    const struct CMUnitTest tests[] = {
        TEST(test_files_pipe_is_refused_alone),
        TEST(test_files_folder_of_a_scripts_name_is_refused_alone),
        TEST(test_files_socket_is_refused_alone),
        TEST(test_files_device_is_refused_alone),
        TEST(test_files_dangling_link_is_refused_alone_and_may_mend),
        TEST(test_files_unreadable_file_is_refused_alone),
        TEST(test_files_largest_file_is_taken_and_a_larger_one_refused_alone),
        TEST(test_files_size_is_judged_before_anything_is_read),
        TEST(test_files_name_that_cannot_be_shown_is_refused_alone),
        TEST(test_files_name_may_have_253_bytes_and_no_more),
        TEST(test_files_links_are_followed),
        TEST(test_files_too_many_entries_are_refused_as_a_whole),
        TEST(test_files_too_much_text_is_refused_as_a_whole),
        TEST(test_files_path_of_its_own_is_refused_as_a_whole),
        TEST(test_files_script_of_its_own_comes_with_the_others_of_its_folder),
        TEST(test_files_script_of_its_own_is_read_from_a_folder_that_is_too_full),
        TEST(test_files_manifest_of_its_own_comes_alone),
        TEST(test_files_that_a_script_was_made_from_are_copied),
        TEST(test_files_that_are_refused_are_there),
        TEST(test_files_byte_order_mark_is_no_part_of_a_file),
        TEST(test_files_of_utf16_are_refused_with_what_to_do),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
