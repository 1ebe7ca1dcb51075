/* Changes of a folder that are noticed, on the real clock and the real inotify. */
#include "net_unit.h"

#include "operator/files.h"

#include <sys/stat.h>
#include <unistd.h>

struct fixture {
    struct net net;
    char parent[32], folder[48], file[64];
    int calls;
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
    ML_AUTO_FREE char *command = ml_asprintf("rm -rf %s", f->parent);
    assert_int_equal(system(command), 0);
    net_fini(&f->net);
    free(f);
    return 0;
}

/* Stops the loop when the folder is there; so each later call is one change of it. */
static bool on_changed(void *context)
{
    struct fixture *f = context;
    bool there = access(f->folder, F_OK) == 0;
    f->calls++;
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

/* ---- links ---- */

/* Runs it in the folder above that of the scripts. */
static void shell(struct fixture *f, const char *command)
{
    ML_AUTO_FREE char *line = ml_asprintf("cd %s && %s", f->parent, command);
    assert_int_equal(system(line), 0);
}

static void watch_path(struct fixture *f, const char *path)
{
    f->watch = ml_path_watch_new(f->net.loop, path, on_changed, f);
    net_run(&f->net);
}

/* Each of these commands is noticed. */
static void assert_noticed(struct fixture *f, const char *const *commands)
{
    for (; *commands; commands++) {
        shell(f, *commands);
        net_run(&f->net);
    }
}

static void test_path_watch_notices_the_target_of_a_link(void **state)
{
    struct fixture *f = *state;
    static const char *const changes[] = {
        "echo 1 >> far/away/real.lua",                                /* in place */
        "echo 2 > far/away/new && mv far/away/new far/away/real.lua", /* by rename */
        "echo 3 >> far/away/real.lua",                                /* of the new one */
        "ln -sf ../far/other.lua scripts/a.lua",                      /* another target */
        "echo 4 >> far/other.lua",
        "rm far/other.lua",
        "echo 5 > far/other.lua",
        NULL};
    shell(f, "mkdir -p scripts far/away && echo 0 > far/away/real.lua && echo 0 > far/other.lua");
    shell(f, "ln -s ../far/away/real.lua scripts/a.lua");
    watch_path(f, f->folder);
    assert_noticed(f, changes);
}

static void test_path_watch_notices_the_target_of_a_file_that_is_a_link(void **state)
{
    struct fixture *f = *state;
    static const char *const changes[] = {"echo 1 >> far/real.lua", "echo 2 >> far/real.lua", NULL};
    shell(f,
          "mkdir -p scripts far && echo 0 > far/real.lua && ln -s ../far/real.lua scripts/a.lua");
    watch_path(f, f->file);
    assert_noticed(f, changes);
}

static void test_path_watch_notices_each_link_of_a_chain(void **state)
{
    struct fixture *f = *state;
    static const char *const changes[] = {
        "echo 1 >> c/real.lua",
        "echo 0 > c/new.lua && ln -sf ../c/new.lua b/link.lua", /* the one in the middle */
        "echo 2 >> c/new.lua", NULL};
    shell(f, "mkdir -p scripts b c && echo 0 > c/real.lua && ln -s ../c/real.lua b/link.lua");
    shell(f, "ln -s $PWD/b/link.lua scripts/a.lua");
    watch_path(f, f->folder);
    assert_noticed(f, changes);
}

static void test_path_watch_notices_a_folder_that_is_a_link(void **state)
{
    struct fixture *f = *state;
    static const char *const changes[] = {
        "echo 1 >> v1/a.lua", "ln -s v2 next && mv -T next scripts", /* as deployments switch it */
        "echo 2 >> v2/a.lua", "ln -s ../v1/a.lua v2/b.lua",          "echo 3 >> v1/a.lua", NULL};
    shell(f, "mkdir v1 v2 && echo 0 > v1/a.lua && echo 0 > v2/a.lua && ln -s v1 scripts");
    watch_path(f, f->folder);
    assert_noticed(f, changes);
}

/* As the kubelet mounts it. */
static void test_path_watch_notices_a_mounted_configmap(void **state)
{
    struct fixture *f = *state;
    static const char *const changes[] = {
        "mkdir scripts/..2 && echo 2 > scripts/..2/a.lua && ln -s ..2 scripts/..new && "
        "mv -T scripts/..new scripts/..data && rm -r scripts/..1",
        "echo 3 >> scripts/..2/a.lua", NULL};
    shell(f, "mkdir -p scripts/..1 && echo 1 > scripts/..1/a.lua && ln -s ..1 scripts/..data && "
             "ln -s ..data/a.lua scripts/a.lua");
    watch_path(f, f->folder);
    assert_noticed(f, changes);
}

/* In a folder that a link leads into only the file counts. Links in a circle end. */
static void test_path_watch_notices_nothing_else_beside_a_target(void **state)
{
    struct fixture *f = *state;
    shell(f,
          "mkdir -p scripts far && echo 0 > far/real.lua && ln -s ../far/real.lua scripts/a.lua");
    shell(f, "ln -s b.lua scripts/c.lua && ln -s c.lua scripts/b.lua");
    watch_path(f, f->folder);
    int calls = f->calls;
    shell(f, "echo 1 > far/another.lua; touch far/a far/b far/c");
    shell(f, "echo 1 > far/real.lua");
    net_run(&f->net);
    assert_int_equal(f->calls, calls + 1);
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, setup, teardown)

int main(void)
{
    const struct CMUnitTest tests[] = {
        TEST(test_path_watch_notices_files_of_a_folder_that_came_later),
        TEST(test_path_watch_notices_files_of_a_folder_made_again),
        TEST(test_path_watch_notices_the_target_of_a_link),
        TEST(test_path_watch_notices_the_target_of_a_file_that_is_a_link),
        TEST(test_path_watch_notices_each_link_of_a_chain),
        TEST(test_path_watch_notices_a_folder_that_is_a_link),
        TEST(test_path_watch_notices_a_mounted_configmap),
        TEST(test_path_watch_notices_nothing_else_beside_a_target),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
