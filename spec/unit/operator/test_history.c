/* The revisions that are kept in a ConfigMap, on a scripted API server and a fake clock: what is
 * written there and by whom, what is dropped, and what is read back. */
#include "fake_transport.h"
#include "kept_revisions.h"
#include "unit.h"

#include "operator/history.h"

#include <sys/mman.h>

#define NOW INT64_C(1700000000000000000) /* 2023-11-14T22:13:20Z */

struct world {
    struct ml_clock_fake clock;
    struct ml_random random;
    struct ml_loop *loop;
    struct ml_metrics *metrics;
    struct ml_log log;
    struct fake_transport *server;
    struct ml_services services;
    struct ml_history *history;
    struct fake_call *watch;
    struct fake_call *early; /* asked before the watch; or NULL */
    int known, changed;
};

static void on_known(void *context)
{
    ((struct world *)context)->known++;
}

static void on_changed(void *context)
{
    ((struct world *)context)->changed++;
}

static int set_up(void **state)
{
    struct world *w = ml_new(struct world);
    ml_clock_fake_init(&w->clock, NOW);
    ml_random_init(&w->random, 1);
    w->loop = ml_loop_new(&w->clock.clock);
    w->metrics = ml_metrics_new();
    w->server = fake_transport_new(w->loop);
    ml_log_init(&w->log, &w->clock.clock, memfd_create("log", 0), ML_LOG_TEXT, ML_LOG_DEBUG);
    const struct ml_client_opts client = {.loop = w->loop,
                                          .transport = fake_transport_seam(w->server),
                                          .metrics = w->metrics,
                                          .random = &w->random};
    w->services = (struct ml_services){.loop = w->loop,
                                       .clock = &w->clock.clock,
                                       .random = &w->random,
                                       .log = &w->log,
                                       .metrics = w->metrics,
                                       .client = ml_client_new(&client)};
    const struct ml_informers_opts informers = {
        .client = w->services.client, .loop = w->loop, .random = &w->random, .metrics = w->metrics};
    w->services.informers = ml_informers_new(&informers);
    w->history = ml_history_new(&(struct ml_history_opts){.services = &w->services,
                                                          .ns = ML_STR("d"),
                                                          .name = ML_STR("scripts"),
                                                          .known = on_known,
                                                          .changed = on_changed,
                                                          .context = w});
    *state = w;
    return 0;
}

static int tear_down(void **state)
{
    struct world *w = *state;
    ml_history_free(w->history);
    ml_informers_free(w->services.informers);
    ml_client_free(w->services.client);
    fake_transport_free(w->server);
    ml_loop_free(w->loop);
    ml_metrics_free(w->metrics);
    close(w->log.fd);
    free(w);
    return 0;
}

static void advance(struct world *w, int64_t ns)
{
    ml_clock_fake_advance(&w->clock, ns);
    ml_loop_poll(w->loop);
}

/* Answers the list that the history begins with; NULL: there is no such ConfigMap. */
static void begin(struct world *w, const struct ml_buf *object)
{
    ML_AUTO_FREE char *list = kept_list(object);
    ml_loop_poll(w->loop);
    struct fake_call *call = fake_next(w->server);
    assert_non_null(strstr(call->path, KEPT_PATH "?"));
    assert_non_null(strstr(call->path, "metadata.name%3Dscripts-revisions"));
    assert_false(ml_history_is_known(w->history));
    fake_reply(call, 200, list);
    ml_loop_poll(w->loop);
    w->watch = fake_next(w->server);
    if (!strstr(w->watch->path, "watch=1")) {
        w->early = w->watch;
        w->watch = fake_next(w->server);
    }
    fake_head(w->watch, 200);
    assert_true(ml_history_is_known(w->history));
    assert_int_equal(w->known, 1);
}

static void watch_brings(struct world *w, const char *type, const struct ml_buf *object)
{
    ML_AUTO_FREE char *event = ml_asprintf("{\"type\":\"%s\",\"object\":%.*s}\n", type,
                                           (int)object->len, object->ptr);
    assert_true(fake_piece(w->watch, event));
    ml_loop_poll(w->loop);
}

/* `version` NULL: it is kept already. */
static void keep_text(struct world *w, const char *controller, const char *revision,
                      const char *version, const char *text)
{
    ML_AUTO(ml_files_fini) struct ml_files files = ML_FILES_INIT;
    ML_AUTO_FREE char *file = ml_asprintf("%s.lua", controller);
    struct ml_err err = ML_ERR_INIT;
    assert_int_equal(
        ml_files_add(&files, &ml_files_scripts, ml_str_of(file), ml_str_of(text), &err), 0);
    const struct ml_live_revision live = {.controller = controller,
                                          .revision = revision,
                                          .file = file,
                                          .version = version,
                                          .way = "edit",
                                          .files = &files};
    ml_history_keep(w->history, &live);
    ml_loop_poll(w->loop);
}

static void keep(struct world *w, const char *controller, const char *revision)
{
    keep_text(w, controller, revision, NULL, "return \"1\"\n");
}

/* The next request, which writes; its body is returned. */
static const char *expect_write(struct world *w, const char *method, struct fake_call **out)
{
    const char *path = strcmp(method, "POST") == 0 ? KEPT_PATH "?fieldManager=moonloop"
                                                   : KEPT_PATH
                           "/scripts-revisions?fieldManager=moonloop";
    *out = ml_take(&w->early);
    if (!*out)
        *out = fake_next(w->server);
    assert_string_equal((*out)->method, method);
    assert_string_equal((*out)->path, path);
    return (*out)->body;
}

static void assert_in(const char *text, const char *part)
{
    if (!strstr(text, part))
        fail_msg("no %s in %s", part, text);
}

static void assert_not_in(const char *text, const char *part)
{
    if (strstr(text, part))
        fail_msg("%s in %s", part, text);
}

static void assert_list(struct world *w, const char *controller, const char *want)
{
    ML_AUTO(ml_buf_fini) struct ml_buf list = ML_BUF_INIT;
    ml_history_list(w->history, ml_str_of(controller), &list);
    assert_string_equal(ml_buf_cstr(&list), want);
}

/* ---- writing ---- */

static void test_history_is_made_with_the_first_revision(void **state)
{
    struct world *w = *state;
    struct fake_call *call;
    keep(w, "site", "0000000a"); /* before it is known what is kept */
    begin(w, NULL);
    assert_list(w, "site", "none");
    const char *body = expect_write(w, "POST", &call);
    assert_in(body, "\"labels\":{\"app.kubernetes.io/managed-by\":\"moonloop\"}");
    assert_in(body, "\"data\":{\"site.0000000a\":\"{\\\"since\\\":\\\"2023-11-14T22:13:20.000000Z"
                    "\\\",\\\"way\\\":\\\"edit\\\",\\\"file\\\":\\\"site.lua\\\",\\\"files\\\":"
                    "{\\\"site.lua\\\":\\\"return \\\\\\\"1\\\\\\\"\\\\n\\\"}}\"}");
    ML_AUTO(ml_buf_fini) struct ml_buf made = ML_BUF_INIT;
    struct ml_json_writer writer = kept_begin(&made, 101, true);
    kept_put(&writer, "site", "0000000a", 0, "site.lua", "return 1\n");
    kept_end(&writer);
    fake_reply(call, 201, ml_buf_cstr(&made));
    ml_loop_poll(w->loop);
    assert_list(w, "site", "0000000a"); /* at once, before the watch has it */
    keep(w, "site", "0000000a");
    fake_expect_none(w->server);
}

static void test_history_keeps_five_of_each_controller(void **state)
{
    struct world *w = *state;
    struct fake_call *call;
    ML_AUTO(ml_buf_fini) struct ml_buf object = ML_BUF_INIT;
    struct ml_json_writer writer = kept_begin(&object, 50, true);
    for (int i = 0; i < ML_HISTORY_KEPT_MAX; i++) {
        char revision[9];
        snprintf(revision, sizeof revision, "0000000%d", i);
        kept_put(&writer, "site", revision, 10 + i, "site.lua", "return 1\n");
        kept_put(&writer, "site.two", revision, 20 + i, "two.lua", "return 1\n");
    }
    kept_end(&writer);
    begin(w, &object);
    assert_list(w, "site", "00000004, 00000003, 00000002, 00000001, 00000000");
    assert_list(w, "site.two", "00000004, 00000003, 00000002, 00000001, 00000000");
    keep(w, "site", "0000000a");
    const char *body = expect_write(w, "PATCH", &call);
    assert_in(body, "\"resourceVersion\":\"50\"");
    assert_in(body, "\"site.00000000\":null}");
    assert_not_in(body, "site.two");
    assert_not_in(body, "\"site.00000001\"");
    fake_reply(call, 200, "{}");
    ml_loop_poll(w->loop);
    keep(w, "site.two", "00000000"); /* the oldest is live again: nothing has to go for it */
    assert_not_in(expect_write(w, "PATCH", &call), "null");
    fake_reply(call, 200, "{}");
}

static void test_history_of_one_that_is_kept_says_since_when_again(void **state)
{
    struct world *w = *state;
    struct fake_call *call;
    ML_AUTO(ml_buf_fini) struct ml_buf object = ML_BUF_INIT;
    struct ml_json_writer writer = kept_begin(&object, 50, true);
    kept_put(&writer, "site", "0000000a", 10, "site.lua", "return 1\n");
    kept_put(&writer, "site", "0000000b", 20, "site.lua", "return 2\n");
    kept_end(&writer);
    begin(w, &object);
    keep(w, "site", "0000000b"); /* the newest already: a restart */
    fake_expect_none(w->server);
    keep(w, "site", "0000000a");
    const char *body = expect_write(w, "PATCH", &call);
    assert_in(body, "\\\"by\\\":\\\"kubectl-edit\\\",\\\"resourceVersion\\\":\\\"7\\\"");
    assert_in(body, "2023-11-14T22:13:20");
    fake_reply(call, 200, "{}");
}

static void test_history_says_who_wrote_the_version(void **state)
{
    struct world *w = *state;
    struct fake_call *call;
    begin(w, NULL);
    for (int i = 0; i < 2; i++) { /* the second time somebody has written since */
        keep_text(w, "site", "0000000a", i ? "40" : "41", "return 1\n");
        call = fake_expect(w->server, "GET", KEPT_PATH "/scripts");
        assert_in(call->accept, "as=PartialObjectMetadata");
        fake_reply(call, 200,
                   "{\"metadata\":{\"resourceVersion\":\"41\",\"managedFields\":["
                   "{\"manager\":\"kubectl-create\",\"time\":\"2023-11-13T22:13:20Z\"},"
                   "{\"manager\":\"kubectl-edit\",\"time\":\"2023-11-14T22:13:20Z\"},"
                   "{\"manager\":\"argocd\",\"time\":\"2023-11-12T22:13:20Z\"},{}]}}");
        ml_loop_poll(w->loop);
        const char *body = expect_write(w, "POST", &call);
        if (i == 0)
            assert_in(body, "\\\"by\\\":\\\"kubectl-edit\\\",\\\"resourceVersion\\\":\\\"41\\\"");
        else
            assert_not_in(body, "by\\\"");
        fake_reply(call, 201, "{}");
        ml_loop_poll(w->loop);
    }
}

/* It is no revision to go back to, and takes no room from those. */
static void test_history_remembers_what_was_stopped(void **state)
{
    struct world *w = *state;
    struct fake_call *call;
    ML_AUTO(ml_buf_fini) struct ml_buf object = ML_BUF_INIT, why = ML_BUF_INIT;
    struct ml_json_writer writer = kept_begin(&object, 50, true);
    for (int i = 0; i < ML_HISTORY_KEPT_MAX; i++) {
        char good[9], stopped[9];
        snprintf(good, sizeof good, "0000000%d", i);
        snprintf(stopped, sizeof stopped, "1111111%d", i);
        kept_put(&writer, "site", good, 10 + i, "site.lua", "return 1\n");
        kept_put_stopped(&writer, "site", stopped, 30 + i, "it failed");
    }
    kept_end(&writer);
    begin(w, &object);
    assert_list(w, "site", "00000004, 00000003, 00000002, 00000001, 00000000");
    assert_true(ml_history_is_newest(w->history, ML_STR("site"), ML_STR("00000004")));
    assert_false(ml_history_is_newest(w->history, ML_STR("site"), ML_STR("11111114")));
    assert_false(ml_history_is_stopped(w->history, ML_STR("site"), ML_STR("00000004"), &why));
    assert_true(ml_history_is_stopped(w->history, ML_STR("site"), ML_STR("11111114"), &why));
    assert_string_equal(ml_buf_cstr(&why), "it failed");
    ML_AUTO(ml_files_fini) struct ml_files files = ML_FILES_INIT;
    assert_false(ml_history_read(w->history, ML_STR("site"), ML_STR("11111114"), &files));
    ml_history_stop(w->history, "site", "11111114", NULL, "it failed"); /* it is written already */
    ml_loop_poll(w->loop);
    fake_expect_none(w->server);
    ml_history_stop(w->history, "site", "0000000a", NULL, "too many \"deletes\"");
    ml_loop_poll(w->loop);
    const char *body = expect_write(w, "PATCH", &call);
    assert_in(body, "\"data\":{\"site.0000000a\":\"{\\\"since\\\":\\\"2023-11-14T22:13:20.000000Z"
                    "\\\",\\\"way\\\":\\\"stopped\\\",\\\"why\\\":\\\"too many \\\\\\\"deletes"
                    "\\\\\\\"\\\"}\",\"site.11111110\":null}");
    fake_reply(call, 200, "{}");
    ml_loop_poll(w->loop);
    keep(w, "site", "11111114"); /* somebody let it go, and it was good */
    body = expect_write(w, "PATCH", &call);
    assert_in(body, "\"site.11111114\":\"{");
    assert_in(body, "\"site.00000000\":null}");
    fake_reply(call, 200, "{}");
}

static void test_history_tells_of_changes(void **state)
{
    struct world *w = *state;
    ML_AUTO(ml_buf_fini) struct ml_buf object = ML_BUF_INIT;
    begin(w, NULL);
    assert_int_equal(w->changed, 0);
    struct ml_json_writer writer = kept_begin(&object, 101, true);
    kept_put_stopped(&writer, "site", "0000000a", 1, "it failed");
    kept_end(&writer);
    watch_brings(w, "ADDED", &object);
    assert_int_equal(w->changed, 1);
}

static void test_history_is_written_by_the_replica_that_reconciles(void **state)
{
    struct world *w = *state;
    struct fake_call *call;
    ML_AUTO(ml_buf_fini) struct ml_buf object = ML_BUF_INIT;
    w->services.standby = true;
    begin(w, NULL);
    keep(w, "site", "0000000a");
    keep(w, "other", "0000000b");
    advance(w, ML_NS_PER_S);
    fake_expect_none(w->server);
    struct ml_json_writer writer = kept_begin(&object, 101, true); /* the leader's */
    kept_put(&writer, "site", "0000000a", 0, "site.lua", "return 1\n");
    kept_end(&writer);
    watch_brings(w, "ADDED", &object);
    advance(w, 2 * ML_NS_PER_S);
    w->services.standby = false;
    advance(w, 2 * ML_NS_PER_S);
    const char *body = expect_write(w, "PATCH", &call);
    assert_in(body, "\"other.0000000b\"");
    assert_not_in(body, "\"site.0000000a\"");
    fake_reply(call, 200, "{}");
}

static void test_history_is_written_again_after_another_replica_was_faster(void **state)
{
    struct world *w = *state;
    struct fake_call *call;
    ML_AUTO(ml_buf_fini) struct ml_buf object = ML_BUF_INIT;
    begin(w, NULL);
    keep(w, "site", "0000000a");
    expect_write(w, "POST", &call);
    fake_refuse(call, 409, "AlreadyExists", "it is there");
    struct ml_json_writer writer = kept_begin(&object, 101, true);
    kept_put(&writer, "other", "0000000b", 0, "other.lua", "return 1\n");
    kept_end(&writer);
    watch_brings(w, "ADDED", &object);
    advance(w, 3 * ML_NS_PER_S);
    assert_in(expect_write(w, "PATCH", &call), "\"resourceVersion\":\"101\"");
    fake_refuse(call, 409, "Conflict", "it has changed");
    advance(w, 3 * ML_NS_PER_S);
    assert_in(expect_write(w, "PATCH", &call), "\"site.0000000a\"");
    assert_int_equal(unit_count(w->log.fd, "is not kept"), 0);
    fake_refuse(call, 403, "Forbidden",
                "no right"); /* an error that lasts is told, and tried again */
    ml_loop_poll(w->loop);
    assert_int_equal(unit_count(w->log.fd, "a revision is not kept"), 1);
    advance(w, 31 * ML_NS_PER_S);
    expect_write(w, "PATCH", &call);
    fake_reply(call, 200, "{}");
}

static void test_history_leaves_the_configmap_of_somebody_else(void **state)
{
    struct world *w = *state;
    ML_AUTO(ml_buf_fini) struct ml_buf object = ML_BUF_INIT;
    struct ml_json_writer writer = kept_begin(&object, 50, false);
    ml_json_put_string(&writer, "site.lua", ML_STR("return 1"));
    kept_end(&writer);
    begin(w, &object);
    keep(w, "site", "0000000a");
    assert_int_equal(unit_count(w->log.fd, "so somebody else made it"), 1);
    advance(w, 31 * ML_NS_PER_S);
    fake_expect_none(w->server);
}

/* A text of so many bytes. */
static char *long_text(size_t bytes)
{
    char *text = ml_zalloc(bytes + 1);
    memset(text, '-', bytes);
    return text;
}

static void test_history_drops_the_oldest_for_room_but_the_newest_of_each(void **state)
{
    struct world *w = *state;
    struct fake_call *call;
    ML_AUTO(ml_buf_fini) struct ml_buf object = ML_BUF_INIT;
    ML_AUTO_FREE char *third = long_text(ML_HISTORY_BYTES_MAX / 3 - 1000);
    ML_AUTO_FREE char *half = long_text(ML_HISTORY_BYTES_MAX / 2);
    struct ml_json_writer writer = kept_begin(&object, 50, true);
    kept_put(&writer, "old", "00000001", 1, "old.lua", third); /* the only one of its controller */
    kept_put(&writer, "site", "00000002", 2, "site.lua", third);
    kept_put(&writer, "site", "00000003", 3, "site.lua", third);
    kept_end(&writer);
    begin(w, &object);
    keep_text(w, "new", "0000000a", NULL, half); /* no room: the others are the newest ones */
    keep_text(w, "new", "0000000b", NULL, third);
    assert_int_equal(unit_count(w->log.fd, "ConfigMap d/scripts-revisions has no room for"), 1);
    advance(w, 31 * ML_NS_PER_S);
    const char *body = expect_write(w, "PATCH", &call);
    assert_in(body, "\"new.0000000b\"");
    assert_in(body, "\"site.00000002\":null}");
    assert_not_in(body, "old.");
    assert_not_in(body, "site.00000003");
    fake_reply(call, 200, "{}");
}

static void test_history_goes_on_when_the_clock_was_set_back(void **state)
{
    struct world *w = *state;
    struct fake_call *call;
    ML_AUTO(ml_buf_fini) struct ml_buf object = ML_BUF_INIT;
    struct ml_json_writer writer = kept_begin(&object, 50, true);
    kept_put(&writer, "site", "0000000a", 59, "site.lua", "return 1\n");
    kept_end(&writer);
    w->clock.wall_ns = NOW - 3600 * ML_NS_PER_S;
    begin(w, &object);
    keep(w, "site", "0000000b");
    assert_in(expect_write(w, "PATCH", &call), "2023-11-14T22:00:59.001000Z");
    fake_reply(call, 200, "{}");
}

/* ---- reading ---- */

static void assert_file(bool found, struct ml_files *files, const char *text)
{
    assert_true(found);
    assert_string_equal(files->only, "site.lua");
    assert_int_equal(files->count, 1);
    assert_str_eq(files->files[0].text, text);
    ml_files_fini(files);
}

static bool read_newest(struct world *w, size_t n, struct ml_files *out)
{
    return ml_history_read_newest(w->history, ML_STR("site.lua"), &n, out);
}

static void test_history_gives_the_files_of_a_revision(void **state)
{
    struct world *w = *state;
    struct ml_files files;
    ML_AUTO(ml_buf_fini) struct ml_buf object = ML_BUF_INIT;
    struct ml_json_writer writer = kept_begin(&object, 50, true);
    kept_put(&writer, "site", "0000000a", 10, "site.lua", "return 'é\t\"'\n");
    kept_put(&writer, "site", "0000000b", 20, "site.lua", "return 2\n");
    kept_put(&writer, "other", "0000000c", 30, "other.lua", "return 3\n");
    kept_end(&writer);
    begin(w, &object);
    bool found = ml_history_read(w->history, ML_STR("site"), ML_STR("0000000a"), &files);
    assert_file(found, &files, "return 'é\t\"'\n");
    assert_false(ml_history_read(w->history, ML_STR("site"), ML_STR("0000000c"), &files));
    assert_false(ml_history_read(w->history, ML_STR("sit"), ML_STR("0000000a"), &files));
    found = read_newest(w, 0, &files);
    assert_file(found, &files, "return 2\n");
    found = read_newest(w, 1, &files);
    assert_file(found, &files, "return 'é\t\"'\n");
    size_t n = 5;
    assert_false(ml_history_read_newest(w->history, ML_STR("site.lua"), &n, &files));
    assert_int_equal(n, 3);
    watch_brings(w, "DELETED", &object);
    assert_list(w, "site", "none");
}

static void test_history_passes_over_garbage(void **state)
{
    static const char *const values[] = {
        "",
        "{",
        "[]",
        "{\"since\":\"yesterday\",\"file\":\"site.lua\",\"files\":{\"site.lua\":\"x\"}}",
        "{\"since\":\"2023-11-14T22:00:00Z\",\"file\":\"site.lua\"}",
        "{\"since\":\"2023-11-14T22:00:00Z\",\"file\":\"site.lua\",\"files\":{\"site.lua\":\"x\"}",
        "{\"since\":\"2023-11-14T22:00:00Z\",\"file\":7,\"files\":{\"site.lua\":\"x\"}}",
    };
    static const char *const files_of[] = {
        "{\"since\":\"2023-11-14T22:30:00Z\",\"file\":\"site.lua\",\"files\":[]}",
        "{\"since\":\"2023-11-14T22:30:00Z\",\"file\":\"site.lua\",\"files\":{\"b.lua\":\"x\"}}",
        "{\"since\":\"2023-11-14T22:30:00Z\",\"file\":\"site.lua\",\"files\":{\"site.lua\":7}}",
        "{\"since\":\"2023-11-14T22:30:00Z\",\"file\":\"site.lua\",\"files\":"
        "{\"site.lua\":\"x\",\"a/b.lua\":\"y\"}}",
    };
    struct world *w = *state;
    struct fake_call *call;
    struct ml_files files;
    ML_AUTO(ml_buf_fini) struct ml_buf object = ML_BUF_INIT;
    struct ml_json_writer writer = kept_begin(&object, 50, true);
    for (size_t i = 0; i < ML_COUNT(values); i++) {
        ML_AUTO_FREE char *key = ml_asprintf("site.1000000%zu", i);
        ml_json_put_string(&writer, key, ml_str_of(values[i]));
    }
    for (size_t i = 0; i < ML_COUNT(files_of); i++) {
        ML_AUTO_FREE char *key = ml_asprintf("site.2000000%zu", i);
        ml_json_put_string(&writer, key, ml_str_of(files_of[i]));
    }
    ml_json_put_string(&writer, "0000000a", ML_STR("{}"));
    ml_json_put_string(&writer, ".0000000a", ML_STR("{}"));
    ml_json_put_string(&writer, "README", ML_STR("not ours"));
    kept_put(&writer, "site", "0000000b", 1, "site.lua", "return 1\n");
    kept_end(&writer);
    begin(w, &object);
    bool found = read_newest(w, 0, &files);
    assert_file(found, &files, "return 1\n");
    assert_false(read_newest(w, 1, &files));
    for (size_t i = 0; i < ML_COUNT(files_of); i++) {
        ML_AUTO_FREE char *revision = ml_asprintf("2000000%zu", i);
        assert_false(ml_history_read(w->history, ML_STR("site"), ml_str_of(revision), &files));
    }
    keep(w, "site", "0000000a");
    const char *body = expect_write(w, "PATCH", &call);
    assert_in(body, "\"site.0000000a\":");
    assert_not_in(body, "null"); /* it is not ours, and takes no place of a revision */
    fake_reply(call, 200, "{}");
}

/* ---- the annotation ---- */

static void test_rollback_annotation_names_one_revision_for_each_controller(void **state)
{
    (void)state;
    struct ml_rollback found;
    const char *two = "site: 3f2a91bc instead of 99aa88bb ,\n my.db:00000001  instead of 00000002,";
    assert_true(ml_rollback_find(two, ML_STR("site"), &found));
    assert_str_eq(found.revision, "3f2a91bc");
    assert_str_eq(found.instead_of, "99aa88bb");
    assert_true(ml_rollback_find(two, ML_STR("my.db"), &found));
    assert_str_eq(found.revision, "00000001");
    assert_str_eq(found.instead_of, "00000002");
    assert_false(ml_rollback_find(two, ML_STR("my"), &found));
    assert_false(ml_rollback_find(NULL, ML_STR("site"), &found));
    static const char *const bad[] = {
        "site",
        "site: 3f2a91bc",
        "site: 3f2a91bc instead",
        "site: 3f2a91bc instead of",
        "site: 3f2a91bc instead of 99aa88b",
        "site: 3f2a91bc instead of 99aa88bbc",
        "site: 3F2A91BC instead of 99aa88bb",
        "site: instead of 99aa88bb",
        ": 3f2a91bc instead of 99aa88bb",
        "3f2a91bc instead of 99aa88bb",
        "site: 3f2a91bc for 99aa88bb",
    };
    for (size_t i = 0; i < ML_COUNT(bad); i++) {
        struct ml_err err = ML_ERR_INIT;
        ML_AUTO_FREE char *text = ml_asprintf("%s, last: 00000001 instead of 00000002", bad[i]);
        struct ml_str rest = ml_str_of(text);
        assert_true(ml_rollback_next(&rest, &found, &err));
        if (err.kind != ML_EINVALID)
            fail_msg("%s", bad[i]);
        assert_in(err.message, "is not of the form");
        assert_false(ml_rollback_find(bad[i], ML_STR("site"), &found));
        assert_true(ml_rollback_find(text, ML_STR("last"), &found)); /* one stops no other */
    }
}

#define HISTORY_TEST(name) cmocka_unit_test_setup_teardown(name, set_up, tear_down)

int main(void)
{
    const struct CMUnitTest tests[] = {
        HISTORY_TEST(test_history_is_made_with_the_first_revision),
        HISTORY_TEST(test_history_keeps_five_of_each_controller),
        HISTORY_TEST(test_history_of_one_that_is_kept_says_since_when_again),
        HISTORY_TEST(test_history_says_who_wrote_the_version),
        HISTORY_TEST(test_history_remembers_what_was_stopped),
        HISTORY_TEST(test_history_tells_of_changes),
        HISTORY_TEST(test_history_is_written_by_the_replica_that_reconciles),
        HISTORY_TEST(test_history_is_written_again_after_another_replica_was_faster),
        HISTORY_TEST(test_history_leaves_the_configmap_of_somebody_else),
        HISTORY_TEST(test_history_drops_the_oldest_for_room_but_the_newest_of_each),
        HISTORY_TEST(test_history_goes_on_when_the_clock_was_set_back),
        HISTORY_TEST(test_history_gives_the_files_of_a_revision),
        HISTORY_TEST(test_history_passes_over_garbage),
        cmocka_unit_test(test_rollback_annotation_names_one_revision_for_each_controller),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
