/* What is noticed of a folder, on the real clock and the real inotify. */
#include "net_unit.h"

#include "operator/path_watch.h"

#include <sys/stat.h>
#include <unistd.h>

struct fixture {
    struct net net;
    char parent[32], folder[48], file[64];
    struct ml_path_watch *watch;
};

static int setup(void **state)
{
    struct fixture *f = ml_new(struct fixture);
    net_init(&f->net);
    strcpy(f->parent, "/tmp/moonloop-watch-XXXXXX");
    assert_non_null(mkdtemp(f->parent));
    snprintf(f->folder, sizeof f->folder, "%s/scripts", f->parent);
    snprintf(f->file, sizeof f->file, "%s/a.lua", f->folder);
    *state = f;
    return 0;
}

static int teardown(void **state)
{
    struct fixture *f = *state;
    ml_path_watch_free(f->watch);
    unlink(f->file);
    rmdir(f->folder);
    rmdir(f->parent);
    net_fini(&f->net);
    free(f);
    return 0;
}

/* Stops the loop when the folder is there; so each later call is one change of it. */
static bool on_changed(void *context)
{
    struct fixture *f = context;
    bool there = access(f->folder, F_OK) == 0;
    if (there)
        ml_loop_stop(f->net.loop);
    return there;
}

static void make_folder(void *context)
{
    struct fixture *f = context;
    assert_int_equal(mkdir(f->folder, 0700), 0);
}

static void write_file(struct fixture *f)
{
    FILE *out = fopen(f->file, "w");
    assert_non_null(out);
    assert_int_equal(fclose(out), 0);
}

static void test_path_watch_notices_files_of_a_folder_that_came_later(void **state)
{
    struct fixture *f = *state;
    struct ml_task later;
    f->watch = ml_path_watch_new(f->net.loop, f->folder, on_changed, f);
    ml_loop_poll(f->net.loop); /* looks for the folder once, before it is there */
    ml_task_init(&later, make_folder, f);
    ml_task_defer(&later, f->net.loop);
    net_run(&f->net);
    write_file(f);
    net_run(&f->net);
}

static void test_path_watch_notices_files_of_a_folder_made_again(void **state)
{
    struct fixture *f = *state;
    make_folder(f);
    f->watch = ml_path_watch_new(f->net.loop, f->folder, on_changed, f);
    net_run(&f->net);
    assert_int_equal(rmdir(f->folder), 0);
    make_folder(f);
    net_run(&f->net);
    write_file(f);
    net_run(&f->net);
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, setup, teardown)

int main(void)
{
    const struct CMUnitTest tests[] = {
        TEST(test_path_watch_notices_files_of_a_folder_that_came_later),
        TEST(test_path_watch_notices_files_of_a_folder_made_again),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
