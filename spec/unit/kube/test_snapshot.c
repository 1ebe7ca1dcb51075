/* Answers of a server are kept, written to a file, read again, and given in place of the server. */
#include "unit.h"

#include "base/buf.h"
#include "fake_transport.h"
#include "kube/snapshot.h"

#include <stdio.h>
#include <sys/stat.h>
#include <unistd.h>

struct world {
    struct ml_clock_fake clock;
    struct ml_loop *loop;
    struct fake_transport *server;
    struct ml_random random;
    struct ml_snapshot *snapshot;
    struct ml_transport *recorder;
    char file[64];
};

/* An answer as the one who asked gets it. */
struct got {
    int status, ended;
    struct ml_buf body;
    struct ml_err err;
};

static void got_head(void *context, const struct ml_http_head *head)
{
    ((struct got *)context)->status = head->status;
}

static int got_data(void *context, struct ml_str piece, struct ml_err *err ML_UNUSED)
{
    ml_buf_append_str(&((struct got *)context)->body, piece);
    return 0;
}

static void got_done(void *context, const struct ml_err *err)
{
    struct got *got = context;
    got->ended++;
    if (err)
        got->err = *err;
}

static const struct ml_http_handler handler = {got_head, got_data, got_done};

static int setup(void **state)
{
    struct world *world = ml_new(struct world);
    struct ml_err err;
    ml_clock_fake_init(&world->clock, 0);
    world->loop = ml_loop_new(&world->clock.clock);
    world->server = fake_transport_new(world->loop);
    ml_random_init(&world->random, 1);
    assert_int_equal(ml_snapshot_new(&world->random, NULL, &world->snapshot, &err), 0);
    world->recorder = ml_snapshot_recorder_new(world->snapshot, fake_transport_seam(world->server));
    snprintf(world->file, sizeof world->file, "/tmp/moonloop-snapshot-%d", (int)getpid());
    *state = world;
    return 0;
}

static int teardown(void **state)
{
    struct world *world = *state;
    unlink(world->file);
    world->recorder->free(world->recorder);
    ml_snapshot_free(world->snapshot);
    fake_transport_free(world->server);
    ml_loop_free(world->loop);
    free(world);
    return 0;
}

static struct ml_transport_call *ask(struct ml_transport *transport, const char *method,
                                     const char *path, const char *accept, struct got *got)
{
    const struct ml_transport_request request = {.method = method, .path = path, .accept = accept};
    *got = (struct got){.err = ML_ERR_INIT};
    return transport->submit(transport, &request, &handler, got);
}

/* Has the server answer a read, whose answer comes as it is. */
static void record(struct world *world, const char *path, int status, const char *body)
{
    struct got got;
    (void)ask(world->recorder, "GET", path, NULL, &got);
    fake_reply(fake_expect(world->server, "GET", path), status, body);
    assert_int_equal(got.ended, 1);
    assert_int_equal(got.status, status);
    assert_string_equal(ml_buf_cstr(&got.body), body);
    ml_buf_fini(&got.body);
}

/* Writes the snapshot, reads it again. */
static struct ml_snapshot *again(struct world *world)
{
    struct ml_snapshot *read;
    struct ml_err err = ML_ERR_INIT;
    assert_int_equal(ml_snapshot_write(world->snapshot, world->file, &err), 0);
    if (ml_snapshot_read(world->file, &read, &err) < 0)
        fail_msg("%s", err.message);
    return read;
}

/* `body` NULL: there is no answer. */
static void assert_answer(struct world *world, struct ml_snapshot *snapshot, const char *path,
                          int status, const char *body)
{
    struct got got;
    struct ml_transport *transport = ml_snapshot_transport_new(snapshot, world->loop);
    (void)ask(transport, "GET", path, NULL, &got);
    assert_int_equal(got.ended, 0);
    ml_loop_poll(world->loop);
    assert_int_equal(got.ended, 1);
    if (body) {
        assert_int_equal(got.status, status);
        assert_string_equal(ml_buf_cstr(&got.body), body);
    } else {
        assert_int_equal(got.err.kind, ML_EINVALID);
        assert_non_null(strstr(got.err.message, " is not in the snapshot"));
    }
    ml_buf_fini(&got.body);
    transport->free(transport);
}

#define MAPS "/api/v1/configmaps"

static void test_pages_become_one_list(void **state)
{
    struct world *world = *state;
    for (int i = 0; i < 2; i++) { /* a relist begins anew */
        record(world, MAPS "?limit=2&resourceVersion=0&labelSelector=a%3Db", 200,
               "{\"kind\":\"ConfigMapList\",\"apiVersion\":\"v1\",\"metadata\":{"
               "\"resourceVersion\":\"7\",\"continue\":\"x\"},\"items\":[{\"metadata\":{\"name\":"
               "\"a\",\"managedFields\":[]}},\n{\"metadata\":{\"name\":\"b\"}}]}");
        record(world, MAPS "?limit=2&continue=x&labelSelector=a%3Db", 200,
               "{\"kind\":\"ConfigMapList\",\"apiVersion\":\"v1\",\"metadata\":{"
               "\"resourceVersion\":\"7\"},\"items\":[{\"metadata\":{\"name\":\"c\"},"
               "\"data\":{\"x\":\"\\n\"}}]}");
    }
    struct ml_snapshot *read = again(world);
    assert_answer(world, read, MAPS "?labelSelector=a%3Db&limit=500", 200,
                  "{\"kind\":\"ConfigMapList\",\"apiVersion\":\"v1\",\"metadata\":{"
                  "\"resourceVersion\":\"7\"},\"items\":[{\"metadata\":{\"name\":\"a\"}},"
                  "{\"metadata\":{\"name\":\"b\"}},{\"metadata\":{\"name\":\"c\"},"
                  "\"data\":{\"x\":\"\\n\"}}]}");
    assert_answer(world, read, MAPS "?limit=500", 0, NULL);
    assert_null(ml_snapshot_namespace(read));
    ml_snapshot_free(read);
}

static void test_objects_and_refusals_are_kept(void **state)
{
    struct world *world = *state;
    record(world, "/apis/test.dev/v1", 200, "{\"kind\":\"APIResourceList\",\n\"resources\":[]}");
    record(world, MAPS "/none", 404, "{\"kind\":\"Status\",\"code\":404}");
    record(world, MAPS "/busy", 503, "{\"kind\":\"Status\",\"code\":503}");
    record(world, MAPS "/broken", 200, "{\"kind\":");
    struct ml_snapshot *read = again(world);
    assert_answer(world, read, "/apis/test.dev/v1", 200,
                  "{\"kind\":\"APIResourceList\",\"resources\":[]}");
    assert_answer(world, read, MAPS "/none", 404, "{\"kind\":\"Status\",\"code\":404}");
    assert_answer(world, read, MAPS "/busy", 0, NULL);
    assert_answer(world, read, MAPS "/broken", 0, NULL);
    ml_snapshot_free(read);
}

#define SECRET                                                                                     \
    "{\"kind\":\"Secret\",\"metadata\":{\"name\":\"s\",\"annotations\":{\"kubectl.kubernetes.io/"  \
    "last-applied-configuration\":\"VALUE\",\"a\":\"b\"},\"managedFields\":[]},\"data\":{"         \
    "\"k\":\"VALUE\"},\"stringData\":{\"k\":\"VALUE\"}}"

static void test_values_of_secrets_are_left_out_wherever_they_are(void **state)
{
    struct world *world = *state;
    static const char *const paths[] = {"/api/v1/namespaces/d/secrets/s", "/api/v1/secrets",
                                        "/api/v1/namespaces/d/secrets?fieldSelector=metadata.name"};
    for (size_t i = 0; i < ML_COUNT(paths); i++)
        record(world, paths[i], 200,
               i == 0 ? SECRET
                      : "{\"kind\":\"SecretList\",\"apiVersion\":\"v1\",\"metadata\":{},\"items\":"
                        "[" SECRET "]}");
    /* A list that does not say so. */
    record(world, "/api/v1/secrets?labelSelector=a", 200,
           "{\"kind\":\"Table\",\"items\":[" SECRET "]}");
    ml_snapshot_free(again(world));
    ML_AUTO(ml_buf_fini) struct ml_buf text = ML_BUF_INIT;
    FILE *file = fopen(world->file, "re");
    char *room = ml_buf_reserve(&text, 8192);
    text.len = fread(room, 1, 8192, file);
    fclose(file);
    assert_null(strstr(ml_buf_cstr(&text), "VALUE"));
    size_t hidden = 0;
    for (const char *at = ml_buf_cstr(&text); (at = strstr(at, "\"k\":\"aGlkZGVu")); at++)
        hidden++;
    assert_int_equal(hidden, 6);
    assert_non_null(strstr(ml_buf_cstr(&text), "\"annotations\":{\"a\":\"b\"}"));
}

static void test_only_the_owner_can_read_the_file(void **state)
{
    struct world *world = *state;
    struct stat stat_of;
    ml_snapshot_free(again(world));
    assert_int_equal(stat(world->file, &stat_of), 0);
    assert_int_equal(stat_of.st_mode & 0777, 0600);
}

static void test_watches_and_writes_are_passed_on_and_not_kept(void **state)
{
    struct world *world = *state;
    struct got got;
    struct ml_transport_call *watch = ask(world->recorder, "GET", MAPS "?watch=1", NULL, &got);
    fake_head(fake_expect(world->server, "GET", MAPS "?watch=1"), 200);
    assert_int_equal(got.status, 200);
    world->recorder->cancel(world->recorder, watch);
    (void)ask(world->recorder, "POST", MAPS, NULL, &got);
    fake_reply(fake_expect(world->server, "POST", MAPS), 200, "{}");
    assert_int_equal(got.ended, 1);
    ml_buf_fini(&got.body);
    struct ml_snapshot *read = again(world);
    assert_answer(world, read, MAPS, 0, NULL);
    struct ml_transport *transport = ml_snapshot_transport_new(read, world->loop);
    watch = ask(transport, "GET", MAPS "?watch=1", NULL, &got);
    ml_loop_poll(world->loop);
    assert_int_equal(got.status, 200);
    assert_int_equal(got.ended, 0);
    transport->cancel(transport, watch);
    transport->free(transport);
    ml_snapshot_free(read);
}

static void test_lists_of_metadata_are_others(void **state)
{
    struct world *world = *state;
    struct got got;
    record(world, MAPS, 200, "{\"kind\":\"ConfigMapList\",\"metadata\":{},\"items\":[]}");
    (void)ask(world->recorder, "GET", MAPS, "as=Partial", &got);
    fake_reply(fake_expect(world->server, "GET", MAPS), 200,
               "{\"kind\":\"PartialObjectMetadataList\",\"metadata\":{},\"items\":[]}");
    ml_buf_fini(&got.body);
    struct ml_snapshot *read = again(world);
    struct ml_transport *transport = ml_snapshot_transport_new(read, world->loop);
    (void)ask(transport, "GET", MAPS, "as=Partial", &got);
    ml_loop_poll(world->loop);
    assert_non_null(strstr(ml_buf_cstr(&got.body), "PartialObjectMetadataList"));
    ml_buf_fini(&got.body);
    transport->free(transport);
    assert_answer(world, read, MAPS, 200,
                  "{\"kind\":\"ConfigMapList\",\"apiVersion\":\"\",\"metadata\":{"
                  "\"resourceVersion\":\"\"},\"items\":[]}");
    ml_snapshot_free(read);
}

static void test_file_that_is_no_snapshot_is_refused(void **state)
{
    struct world *world = *state;
#define FIRST "{\"kind\":\"Snapshot\"}\n"
    static const struct {
        const char *text, *want;
    } rows[] = {
        {"", ": no snapshot of"},
        {"\n\n", ": no snapshot of"},
        {"[]\n", ":1: no snapshot of"},
        {FIRST, ": it is not whole"},
        {FIRST "{\"end\":1}", ": it is not whole"},
        {FIRST "{\"end\":2}\n", ":2: neither an answer"},
        {FIRST "{\"end\":1}\n{}\n", ":3: there is more behind the end"},
        {FIRST "{\"item\":{}}\n", ":2: neither an answer"},
        {FIRST "{\"get\":\"/a\",\"status\":200}\n", ":2: `answer` is missing"},
        {FIRST "{\"get\":\"/a\",\"status\":500,\"answer\":{}}\n", ":2: `status` is neither"},
        {FIRST "{\"get\":5,\"status\":200,\"answer\":{}}\n", ":2: `get` is no path"},
        {FIRST "{\"list\":\"/a\",\"status\":200}\n", ":2: a list without kind"},
        {FIRST "{\"list\":\"/a\"", ": it is not whole"},
        {FIRST "x\n", ":2: at byte 0"},
    };
    for (size_t i = 0; i < ML_COUNT(rows); i++) {
        struct ml_snapshot *read;
        struct ml_err err = ML_ERR_INIT;
        FILE *file = fopen(world->file, "we");
        fputs(rows[i].text, file);
        fclose(file);
        assert_int_equal(ml_snapshot_read(world->file, &read, &err), ML_EINVALID);
        if (!strstr(err.message, rows[i].want))
            fail_msg("row %zu: %s", i, err.message);
    }
}

static void test_file_that_cannot_be_written_leaves_nothing(void **state)
{
    struct world *world = *state;
    struct ml_err err;
    assert_int_equal(ml_snapshot_write(world->snapshot, "/none/file", &err), ML_EIO);
    assert_non_null(strstr(err.message, "/none/file: cannot be written: No such file"));
    assert_int_equal(ml_snapshot_write(world->snapshot, "/proc", &err), ML_EIO);
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, setup, teardown)

int main(void)
{
    const struct CMUnitTest tests[] = {
        TEST(test_pages_become_one_list),
        TEST(test_objects_and_refusals_are_kept),
        TEST(test_values_of_secrets_are_left_out_wherever_they_are),
        TEST(test_only_the_owner_can_read_the_file),
        TEST(test_watches_and_writes_are_passed_on_and_not_kept),
        TEST(test_lists_of_metadata_are_others),
        TEST(test_file_that_is_no_snapshot_is_refused),
        TEST(test_file_that_cannot_be_written_leaves_nothing),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
