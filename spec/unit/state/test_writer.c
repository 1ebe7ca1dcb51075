#include "state_informers.h"

#include "state/writer.h"

struct writer_world {
    struct informers_world all;
    struct ml_keys keys;
    struct ml_services services;
    struct ml_informer *informer;
    struct fake_call *watch; /* open, at version 5 */
    struct ml_expectations *expectations;
    struct ml_object *owner; /* of what is deleted */
    /* The last arguments of done(). */
    int done_count;
    struct ml_err err;
    char body[1024];
};

static void on_done(void *context, struct ml_str body, const struct ml_err *err)
{
    struct writer_world *self = context;
    self->done_count++;
    self->err = err ? *err : ML_ERR_INIT;
    snprintf(self->body, sizeof self->body, ML_STR_FMT, ML_STR_ARG(body));
}

static int setup(void **state)
{
    struct writer_world *self = ml_new(struct writer_world);
    informers_world_init(&self->all, NULL);
    self->informer = ml_informers_get(self->all.informers, &pods, NULL);
    self->watch = list_and_watch(&self->all, 5, "");
    self->expectations = ml_expectations_new(
        &self->keys, self->all.world.loop, self->all.world.client, self->all.world.metrics, "cnat");
    struct ml_err err;
    struct ml_dict *dict = ml_dict_new();
    int r = ml_object_new(dict, "", "", ml_str_of(pod("owner", "uo", 5)), &self->owner, &err);
    assert_int_equal(r, 0);
    ml_dict_unref(dict);
    self->services = (struct ml_services){
        .loop = self->all.world.loop,
        .clock = &self->all.world.clock.clock,
        .random = &self->all.world.random,
        .log = &self->all.log,
        .metrics = self->all.world.metrics,
        .client = self->all.world.client,
        .informers = self->all.informers,
    };
    *state = self;
    return 0;
}

static int teardown(void **state)
{
    struct writer_world *self = *state;
    ml_object_unref(self->owner);
    ml_expectations_free(self->expectations);
    ml_keys_fini(&self->keys);
    ml_informer_put(self->informer);
    ml_loop_poll(self->all.world.loop);
    informers_world_fini(&self->all);
    free(self);
    return 0;
}

static struct ml_write write_of(struct writer_world *self, enum ml_verb verb)
{
    return (struct ml_write){
        .request =
            {
                .verb = verb,
                .kind = &pods,
                .ns = ML_STR("default"),
                .name = ML_STR("a"),
                .body = ML_STR("{}"),
                .field_manager = "moonloop",
            },
        .expectations = self->expectations,
        .informer = self->informer,
        .key = ML_STR("default/owner"),
        .owner_uid = ML_STR("uo"),
        .deletion = {"not wanted any more", "1a2b3c4d", &pods, self->owner},
    };
}

static struct ml_writer_call *send_write(struct writer_world *self, const struct ml_write *write)
{
    self->done_count = 0;
    return ml_writer_send(&self->services, write, on_done, self);
}

static void ignore_key(void *context, struct ml_str key)
{
    (void)context;
    (void)key;
}

static bool gate_is_open(struct writer_world *self)
{
    return ml_expectations_satisfied(self->expectations, ML_STR("default/owner"), ignore_key, NULL);
}

/* The run is over, and the object gone. */
static void forget_key(struct writer_world *self)
{
    if (gate_is_open(self))
        ml_expectations_ended(self->expectations, ML_STR("default/owner"), true);
    ml_expectations_clear(self->expectations, ML_STR("default/owner"), false);
}

static struct fake_call *next_call(struct writer_world *self)
{
    ml_loop_poll(self->all.world.loop);
    return fake_next(self->all.world.server);
}

static bool lets_all_but_deletes(void *context, const struct ml_write *write, struct ml_err *err)
{
    ++*(int *)context;
    if (write->request.verb != ML_VERB_DELETE)
        return true;
    ml_err_set(err, ML_ECANCELED, "it was stopped");
    return false;
}

/* It is answered later, like one that the server refuses, and leaves nothing behind. */
static void test_writer_sends_nothing_that_its_check_refuses(void **state)
{
    struct writer_world *self = *state;
    int asked = 0;
    const struct ml_write_check check = {.lets = lets_all_but_deletes, .context = &asked};
    struct ml_write write = write_of(self, ML_VERB_DELETE);
    write.request.body = ML_STR("");
    write.check = &check;
    send_write(self, &write);
    assert_int_equal(self->done_count, 0);
    ml_loop_poll(self->all.world.loop);
    assert_int_equal(self->done_count, 1);
    assert_int_equal(self->err.kind, ML_ECANCELED);
    assert_string_equal(self->err.message, "it was stopped");
    assert_true(gate_is_open(self));
    fake_expect_none(self->all.world.server);
    struct ml_writer_call *call = send_write(self, &write);
    ml_writer_cancel(call);
    ml_loop_poll(self->all.world.loop);
    assert_int_equal(self->done_count, 0);
    write = write_of(self, ML_VERB_CREATE);
    write.check = &check;
    send_write(self, &write);
    fake_reply(next_call(self), 201, pod("a", "ua", 10));
    assert_int_equal(self->err.kind, 0);
    assert_int_equal(asked, 3);
    forget_key(self);
}

static void test_writer_answer_is_remembered_in_the_gate(void **state)
{
    struct writer_world *self = *state;
    static const enum ml_verb verbs[] = {ML_VERB_CREATE, ML_VERB_UPDATE, ML_VERB_PATCH_MERGE,
                                         ML_VERB_APPLY};
    for (size_t i = 0; i < ML_COUNT(verbs); i++) {
        struct ml_write write = write_of(self, verbs[i]);
        int rv = 10 + (int)i;
        send_write(self, &write);
        fake_reply(next_call(self), 200, pod("a", "ua", rv));
        assert_int_equal(self->done_count, 1);
        assert_int_equal(self->err.kind, 0);
        assert_string_equal(self->body, pod("a", "ua", rv));
        assert_false(gate_is_open(self));
        send_bookmark(self->watch, rv);
        assert_true(gate_is_open(self));
    }
}

static void test_writer_without_informer_just_writes(void **state)
{
    struct writer_world *self = *state;
    static const struct ml_kind unwatched = {"v1", "", "v1", "Service", "services", true, true};
    struct ml_write write = write_of(self, ML_VERB_CREATE);
    write.request.kind = &unwatched;
    write.informer = NULL;
    send_write(self, &write);
    fake_reply(next_call(self), 201, pod("a", "ua", 11));
    assert_int_equal(self->done_count, 1);
    assert_true(gate_is_open(self));
}

static void test_writer_delete_counts_only_when_the_answer_has_a_version(void **state)
{
    struct writer_world *self = *state;
    struct ml_write write = write_of(self, ML_VERB_DELETE);
    send_write(self, &write);
    fake_reply(next_call(self), 200,
               "{\"kind\":\"Status\",\"status\":\"Success\",\"metadata\":{}}");
    assert_int_equal(self->done_count, 1);
    assert_true(gate_is_open(self));
    send_write(self, &write);
    fake_reply(next_call(self), 200, pod("a", "ua", 12)); /* its deletionTimestamp was set */
    assert_int_equal(self->done_count, 1);
    assert_false(gate_is_open(self));
    send_event(self->watch, "MODIFIED", pod("a", "ua", 12));
    assert_true(gate_is_open(self));
}

/* By whichever answer it knows that; and it tells only what has happened. */
static void test_writer_traces_what_it_deleted(void **state)
{
    struct writer_world *self = *state;
    static const struct {
        int status; /* 0: the reply is lost, and the object is then looked for */
        int found;
        size_t told;
    } rows[] = {{200, 0, 1}, {404, 0, 0}, {409, 0, 0}, {0, 404, 1}, {0, 200, 0}};
    struct ml_recorder *recorder = ml_recorder_new(&(struct ml_recorder_opts){
        .client = self->all.world.client,
        .loop = self->all.world.loop,
        .metrics = self->all.world.metrics,
        .controller = "moonloop",
        .instance = "host-1",
    });
    self->services.deletions = ml_deletions_new(self->all.world.loop, &self->all.log, recorder);
    struct ml_write write = write_of(self, ML_VERB_DELETE);
    write.request.uid = "ua";
    write.request.resource_version = "5";
    size_t told = 0;
    for (size_t i = 0; i < ML_COUNT(rows); i++) {
        send_write(self, &write);
        struct fake_call *call = next_call(self);
        if (rows[i].status) {
            fake_reply(call, rows[i].status, "{}");
        } else {
            fake_fail(call, ML_ENETWORK, "lost");
            fake_reply(next_call(self), rows[i].found,
                       rows[i].found == 200 ? pod("a", "ua", 5) : "{}");
        }
        assert_int_equal(self->done_count, 1);
        told += rows[i].told;
        assert_int_equal(count_logged(&self->all, "deleted an object"), told);
        while (fake_waiting(self->all.world.server) > 1) /* the watch */
            fake_reply(next_call(self), 201, "{}");
    }
    assert_int_equal(count_logged(&self->all, "why=\"not wanted any more\""), told);
    ml_deletions_free(self->services.deletions);
    ml_recorder_free(recorder);
}

/* A refused write did not happen: the writer asks no question and leaves no expectation. */
static void test_writer_refusals_go_up_as_they_are(void **state)
{
    struct writer_world *self = *state;
    static const struct {
        int status;
        const char *reason;
        int kind;
    } rows[] = {
        {409, "AlreadyExists", ML_EALREADY_EXISTS},
        {409, "Conflict", ML_ECONFLICT},
        {422, "Invalid", ML_EINVALID},
        {403, "Forbidden", ML_EFORBIDDEN},
        {404, "NotFound", ML_ENOT_FOUND},
        {500, "InternalError", ML_ESERVER},
    };
    for (size_t i = 0; i < ML_COUNT(rows); i++) {
        struct ml_write write = write_of(self, ML_VERB_CREATE);
        send_write(self, &write);
        fake_refuse(next_call(self), rows[i].status, rows[i].reason, "no");
        assert_int_equal(self->done_count, 1);
        assert_int_equal(self->err.kind, rows[i].kind);
        assert_true(gate_is_open(self));
    }
    ml_loop_poll(self->all.world.loop);
    fake_expect_none(self->all.world.server);
}

#define OWNED_BY(uid, controller)                                                                  \
    "{\"metadata\":{\"name\":\"a\",\"resourceVersion\":\"10\",\"ownerReferences\":[{\"uid\":"      \
    "\"someone\"},{\"uid\":\"" uid "\",\"controller\":" controller "}]}}"

/* The reply of a create was lost in one of the ways that leave its outcome open. */
static struct fake_call *lose_create(struct writer_world *self, const struct ml_write *write,
                                     size_t way)
{
    static const int statuses[] = {0, 0, 502, 503, 504};
    static const int kinds[] = {ML_ENETWORK, ML_ETIMEOUT, 0, 0, 0};
    assert_in_range(way, 0, ML_COUNT(statuses) - 1);
    send_write(self, write);
    struct fake_call *create = next_call(self);
    assert_string_equal(create->method, "POST");
    if (statuses[way])
        fake_reply(create, statuses[way], "bad gateway");
    else
        fake_fail(create, kinds[way], "lost");
    assert_int_equal(self->done_count, 0);
    ml_loop_poll(self->all.world.loop);
    return fake_expect(self->all.world.server, "GET", "/api/v1/namespaces/default/pods/a");
}

static void test_writer_create_with_a_lost_reply_is_settled_by_reading(void **state)
{
    struct writer_world *self = *state;
    for (size_t way = 0; way < 5; way++) {
        struct ml_write write = write_of(self, ML_VERB_CREATE);
        fake_reply(lose_create(self, &write, way), 200, OWNED_BY("uo", "true"));
        assert_int_equal(self->done_count, 1);
        assert_int_equal(self->err.kind, 0);
        assert_string_equal(self->body, OWNED_BY("uo", "true"));
        assert_false(gate_is_open(self)); /* it counts like any other write */
        forget_key(self);
    }
}

static void test_writer_create_that_is_not_found_or_not_ours_is_the_first_error(void **state)
{
    struct writer_world *self = *state;
    static const struct {
        int status;
        const char *body;
    } rows[] = {
        {404, "{\"kind\":\"Status\",\"reason\":\"NotFound\",\"code\":404}"},
        {403, "{\"kind\":\"Status\",\"reason\":\"Forbidden\",\"code\":403}"},
        {200, OWNED_BY("stranger", "true")},
        {200, OWNED_BY("uo", "false")},
        {200, "{\"metadata\":{\"name\":\"a\",\"resourceVersion\":\"10\"}}"},
        {200, "{\"metadata\":{\"ownerReferences\":\"uo\"}}"},
        {200, "nonsense"},
    };
    for (size_t i = 0; i < ML_COUNT(rows); i++) {
        struct ml_write write = write_of(self, ML_VERB_CREATE);
        fake_reply(lose_create(self, &write, 0), rows[i].status, rows[i].body);
        assert_int_equal(self->done_count, 1);
        assert_int_equal(self->err.kind, ML_ENETWORK);
        assert_true(gate_is_open(self));
    }
}

static void test_writer_create_without_owner_is_there_when_it_is_found(void **state)
{
    struct writer_world *self = *state;
    struct ml_write write = write_of(self, ML_VERB_CREATE);
    write.owner_uid = ML_STR("");
    fake_reply(lose_create(self, &write, 0), 200, pod("a", "ua", 10));
    assert_int_equal(self->done_count, 1);
    assert_int_equal(self->err.kind, 0);
}

#define POD_A(uid, rv, more)                                                                       \
    "{\"metadata\":{\"name\":\"a\",\"uid\":\"" uid "\",\"resourceVersion\":\"" rv "\"" more "}}"
#define NOT_FOUND "{\"kind\":\"Status\",\"reason\":\"NotFound\",\"code\":404}"
#define FORBIDDEN "{\"kind\":\"Status\",\"reason\":\"Forbidden\",\"code\":403}"

/* A write guarded by uid "ua" and version 5 lost its reply; the server then says `status`, `body`.
 */
static void lose_and_look(struct writer_world *self, enum ml_verb verb, int status,
                          const char *body)
{
    struct ml_write write = write_of(self, verb);
    if (verb == ML_VERB_DELETE) {
        write.request.uid = "ua";
        write.request.resource_version = "5";
    } else {
        write.request.body = ML_STR(POD_A("ua", "5", ""));
    }
    send_write(self, &write);
    fake_fail(next_call(self), ML_ENETWORK, "lost");
    assert_int_equal(self->done_count, 0);
    struct fake_call *read = next_call(self);
    assert_string_equal(read->method, "GET");
    fake_reply(read, status, body);
    assert_int_equal(self->done_count, 1);
}

static void test_writer_change_with_a_lost_reply_is_settled_by_reading(void **state)
{
    struct writer_world *self = *state;
    static const enum ml_verb verbs[] = {ML_VERB_UPDATE, ML_VERB_PATCH_MERGE, ML_VERB_APPLY};
    static const struct {
        int status;
        const char *body;
        int kind;
        bool gate_open;
    } rows[] = {
        {200, POD_A("ua", "5", ""), ML_ENETWORK, true},   /* as it was: not done */
        {200, POD_A("ua", "9", ""), ML_ECONFLICT, false}, /* changed: by whom? */
        {200, POD_A("ub", "9", ""), ML_ECONFLICT, false}, /* another one by now */
        {404, NOT_FOUND, ML_ENETWORK, true},
        {403, FORBIDDEN, ML_ENETWORK, true}, /* still unknown */
    };
    for (size_t i = 0; i < ML_COUNT(verbs) * ML_COUNT(rows); i++) {
        size_t row = i % ML_COUNT(rows);
        lose_and_look(self, verbs[i / ML_COUNT(rows)], rows[row].status, rows[row].body);
        assert_int_equal(self->err.kind, rows[row].kind);
        assert_int_equal(gate_is_open(self), rows[row].gate_open);
        forget_key(self);
    }
}

/* Without guards it may be sent again. */
static void test_writer_apply_without_guards_is_not_settled(void **state)
{
    struct writer_world *self = *state;
    struct ml_write write = write_of(self, ML_VERB_APPLY);
    send_write(self, &write);
    fake_fail(next_call(self), ML_ETIMEOUT, "lost");
    fake_reply(next_call(self), 200, pod("a", "ua", 9));
    assert_int_equal(self->err.kind, ML_ETIMEOUT);
    assert_true(gate_is_open(self));
}

static void test_writer_delete_with_a_lost_reply_is_settled_by_reading(void **state)
{
    struct writer_world *self = *state;
    static const struct {
        int status;
        const char *body;
        int kind;
    } rows[] = {
        {404, NOT_FOUND, 0},
        {200, POD_A("ub", "9", ""), 0}, /* that one is gone */
        {200, POD_A("ua", "9", ",\"deletionTimestamp\":\"2026-01-01T00:00:00Z\""), 0},
        {200, POD_A("ua", "5", ""), ML_ENETWORK},
        {403, FORBIDDEN, ML_ENETWORK},
    };
    for (size_t i = 0; i < ML_COUNT(rows); i++) {
        lose_and_look(self, ML_VERB_DELETE, rows[i].status, rows[i].body);
        assert_int_equal(self->err.kind, rows[i].kind);
        forget_key(self);
    }
}

static void test_writer_canceled_at_any_point_is_silent(void **state)
{
    struct writer_world *self = *state;
    struct ml_write write = write_of(self, ML_VERB_CREATE);
    struct ml_writer_call *call = send_write(self, &write);
    struct fake_call *sent = next_call(self);
    ml_writer_cancel(call); /* under way */
    assert_true(sent->canceled);

    call = send_write(self, &write);
    fake_fail(next_call(self), ML_ENETWORK, "lost");
    struct fake_call *looking = next_call(self);
    ml_writer_cancel(call); /* looking for itself */
    assert_true(looking->canceled);

    ml_loop_poll(self->all.world.loop);
    assert_int_equal(self->done_count, 0);
    ml_writer_cancel(NULL);
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, setup, teardown)

int main(void)
{
    const struct CMUnitTest tests[] = {
        TEST(test_writer_answer_is_remembered_in_the_gate),
        TEST(test_writer_sends_nothing_that_its_check_refuses),
        TEST(test_writer_without_informer_just_writes),
        TEST(test_writer_delete_counts_only_when_the_answer_has_a_version),
        TEST(test_writer_traces_what_it_deleted),
        TEST(test_writer_refusals_go_up_as_they_are),
        TEST(test_writer_create_with_a_lost_reply_is_settled_by_reading),
        TEST(test_writer_create_that_is_not_found_or_not_ours_is_the_first_error),
        TEST(test_writer_create_without_owner_is_there_when_it_is_found),
        TEST(test_writer_change_with_a_lost_reply_is_settled_by_reading),
        TEST(test_writer_apply_without_guards_is_not_settled),
        TEST(test_writer_delete_with_a_lost_reply_is_settled_by_reading),
        TEST(test_writer_canceled_at_any_point_is_silent),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
