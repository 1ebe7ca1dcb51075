/* Writes of a script: those that go over the wire, those that do not, and their results. */
#include "script_world.h"

#include "script/internal.h"

static void test_ensure_missing_is_created_and_awaited(void **state)
{
    (void)state;
    struct world w;
    struct told told;
    world_open(&w,
               "local pod = assert(ctx.ensure(pod(at)))\n"
               "return { status = { uid = pod.metadata.uid, phase = pod.status.phase } }",
               NULL);
    assert_non_null(world_start(&w, &told));
    struct fake_call *call = fake_next(w.fake);
    assert_string_equal(call->method, "POST");
    assert_non_null(strstr(call->path, PODS "?fieldManager=moonloop-at"));
    assert_string_equal(
        call->body,
        "{\"apiVersion\":\"v1\",\"kind\":\"Pod\",\"metadata\":{\"name\":\"x-pod\",\"namespace\":"
        "\"default\",\"ownerReferences\":[{\"apiVersion\":\"example.com/v1\",\"kind\":\"At\","
        "\"name\":\"x\",\"uid\":\"at-uid\",\"controller\":true,\"blockOwnerDeletion\":true}]},"
        "\"spec\":{}}");
    ML_AUTO_FREE char *pod = world_pod_json("101", "at-uid");
    world_answer(&w, call, 201, pod);
    assert_int_equal(told.count, 0); /* the cache does not show it yet */
    world_event(&w, "ADDED", pod);
    expect_outcome(&told, ML_OUTCOME_OK, "{\"phase\":\"Running\",\"uid\":\"pod-uid\"}");
    fake_expect_none(w.fake);

    assert_null(world_start(&w, &told)); /* from the cache now */
    expect_outcome(&told, ML_OUTCOME_OK, "{\"phase\":\"Running\",\"uid\":\"pod-uid\"}");
    fake_expect_none(w.fake);
    world_close(&w);
}

/* The event may be faster than the answer. */
static void test_ensure_does_not_wait_for_what_shows_already(void **state)
{
    (void)state;
    struct world w;
    struct told told;
    world_open(&w, "return { status = { uid = assert(ctx.ensure(pod(at))).metadata.uid } }", NULL);
    assert_non_null(world_start(&w, &told));
    struct fake_call *call = fake_next(w.fake);
    ML_AUTO_FREE char *pod = world_pod_json("101", "at-uid");
    world_event(&w, "ADDED", pod);
    assert_int_equal(told.count, 0);
    world_answer(&w, call, 201, pod);
    expect_outcome(&told, ML_OUTCOME_OK, "{\"uid\":\"pod-uid\"}");
    world_close(&w);
}

/* No time ends the wait; the answer is kept as long as it lasts, on the script's account. */
static void test_ensure_waits_for_the_cache_as_long_as_it_takes(void **state)
{
    (void)state;
    struct world w;
    struct told told;
    world_open(&w, "return { status = { uid = assert(ctx.ensure(pod(at))).metadata.uid } }", NULL);
    lua_gc(w.script->L, LUA_GCCOLLECT, 0); /* of the load: a run may collect it */
    size_t before = ml_script_budget(w.script)->used;
    assert_non_null(world_start(&w, &told));
    struct fake_call *call = fake_next(w.fake);
    struct ml_buf pod = ML_BUF_INIT;
    ML_AUTO_FREE char *start = world_pod_json("101", "at-uid");
    start[strlen(start) - 1] = '\0';
    ml_buf_printf(&pod, "%s,\"big\":\"%0*d\"}", start, 500000, 0);
    world_answer(&w, call, 201, ml_buf_cstr(&pod));
    assert_true(ml_script_budget(w.script)->used > before + 500000);
    ml_clock_fake_advance(&w.clock, 9 * ML_NS_PER_S);
    ml_loop_poll(w.loop);
    assert_int_equal(told.count, 0);
    world_event(&w, "ADDED", ml_buf_cstr(&pod));
    expect_outcome(&told, ML_OUTCOME_OK, "{\"uid\":\"pod-uid\"}");
    ml_buf_fini(&pod);
    world_close(&w);
}

static void test_owner_references_have_a_limit(void **state)
{
    (void)state;
    static const int counts[] = {65, 20000};
    for (size_t i = 0; i < ML_COUNT(counts); i++) {
        struct world w;
        struct told told;
        ML_AUTO_FREE char *body = ml_asprintf(
            "local new = pod(at) new.metadata.ownerReferences = {}\n"
            "for i = 1, %d do new.metadata.ownerReferences[i] = { name = 'n' .. i } end\n"
            "ctx.create(new)",
            counts[i]);
        world_open(&w, body, NULL);
        assert_null(world_start(&w, &told));
        expect_outcome(&told, ML_OUTCOME_ERROR, "");
        assert_non_null(strstr(told.message, "metadata.ownerReferences: at most 64"));
        fake_expect_none(w.fake);
        world_close(&w);
    }
}

/* The server's objects may have any number of them. */
static void test_owner_references_are_read_once(void **state)
{
    (void)state;
    struct world w;
    struct told told;
    struct ml_buf pod = ML_BUF_INIT;
    world_open(&w, "local pod, err = ctx.ensure(pod(at)) return { status = { kind = err.kind } }",
               NULL);
    assert_non_null(world_start(&w, &told));
    fake_refuse(fake_next(w.fake), 409, "AlreadyExists", "it is there");
    ml_loop_poll(w.loop);
    ml_buf_puts(&pod, "{\"apiVersion\":\"v1\",\"kind\":\"Pod\",\"metadata\":{\"name\":\"x-pod\","
                      "\"ownerReferences\":[");
    for (int i = 0; i < 20000; i++)
        ml_buf_printf(&pod, "{\"kind\":\"At\",\"name\":\"n%d\",\"uid\":\"u%d\"},", i, i);
    ml_buf_puts(&pod, "{\"kind\":\"At\",\"name\":\"y\",\"uid\":\"u\",\"controller\":true}]}}");
    int64_t begin_ns = unit_cpu_ns();
    world_answer(&w, fake_next(w.fake), 200, ml_buf_cstr(&pod));
    assert_true(unit_cpu_ns() - begin_ns <
                1500 * ML_NS_PER_MS); /* 10 in the release build; it was half a minute */
    expect_outcome(&told, ML_OUTCOME_OK, "{\"kind\":\"AlreadyExists\"}");
    ml_buf_fini(&pod);
    world_close(&w);
}

static void test_ensure_of_anothers_is_refused(void **state)
{
    (void)state;
    static const struct {
        const char *owner, *want;
    } cases[] = {
        {"other-uid", "Pod default/x-pod exists and is controlled by At y; an object has one "
                      "controller: give yours another name"},
        {NULL, "Pod default/x-pod exists and is controlled by nothing, and controller at has not "
               "made it; give yours another name, delete this one, or take it over with adopt = "
               "true in the call or in owns, { kind = Pod, adopt = true }"},
    };
    for (size_t i = 0; i < ML_COUNT(cases); i++) {
        struct world w;
        struct told told;
        world_open(
            &w,
            "local pod, err = ctx.ensure(pod(at)) assert(pod == nil)\n"
            "return { status = { kind = err.kind, code = err.code, message = err.message } }",
            NULL);
        ML_AUTO_FREE char *pod = world_pod_json("101", cases[i].owner);
        world_event(&w, "ADDED", pod);
        assert_int_equal(world_start(&w, &told) != NULL, !cases[i].owner);
        if (!cases[i].owner) /* who made it is not in the cache */
            world_answer(&w, fake_expect(w.fake, "GET", PODS "/x-pod"), 200, pod);
        ML_AUTO_FREE char *want = ml_asprintf(
            "{\"code\":409,\"kind\":\"AlreadyExists\",\"message\":\"%s\"}", cases[i].want);
        expect_outcome(&told, ML_OUTCOME_OK, want);
        assert_int_equal(unit_count(w.log.fd, " warn  at: a write of the script was refused"), 1);
        world_close(&w);
    }
}

/* A Pod without a controller, whose fields these managers have set. */
static char *orphan_json(const char *rv, const char *managers)
{
    ML_AUTO_FREE char *pod = world_pod_json(rv, NULL);
    const char *tail = strstr(pod, "\"labels\"");
    return ml_asprintf("%.*s\"managedFields\":[%s],%s", (int)(tail - pod), pod, managers, tail);
}

#define MANAGER(NAME, OPERATION, FIELDS)                                                           \
    "{\"manager\":\"" NAME "\",\"operation\":\"" OPERATION                                         \
    "\",\"apiVersion\":\"v1\",\"fieldsType\":\"FieldsV1\",\"fieldsV1\":" FIELDS "}"

/* It has lost its owner. The guards are those of the object that the server had, not the cache. */
static void test_what_this_controller_made_comes_home(void **state)
{
    (void)state;
    static const char *const calls[] = {"ensure", "apply"};
    for (size_t i = 0; i < ML_COUNT(calls); i++) {
        struct world w;
        struct told told;
        ML_AUTO_FREE char *body = ml_asprintf(
            "return { status = { uid = assert(ctx.%s(pod(at))).metadata.uid } }", calls[i]);
        world_open(&w, body, NULL);
        ML_AUTO_FREE char *cached = world_pod_json("101", NULL);
        ML_AUTO_FREE char *live = orphan_json("102", MANAGER("moonloop-at", "Update", "{}"));
        ML_AUTO_FREE char *ours = world_pod_json("103", "at-uid");
        world_event(&w, "ADDED", cached);
        assert_non_null(world_start(&w, &told));
        world_answer(&w, fake_expect(w.fake, "GET", PODS "/x-pod"), 200, live);
        struct fake_call *write = fake_next(w.fake);
        assert_string_equal(write->method, "PATCH");
        assert_non_null(strstr(write->path, "fieldManager=moonloop-at"));
        assert_non_null(strstr(write->body, "\"uid\":\"pod-uid\",\"resourceVersion\":\"102\""));
        assert_non_null(strstr(write->body, CREATED_BY_US ",\"controller\":true"));
        assert_int_equal(strstr(write->body, "spec") != NULL, i == 1); /* ensure changes no more */
        world_answer(&w, write, 200, ours);
        world_event(&w, "MODIFIED", ours);
        expect_outcome(&told, ML_OUTCOME_OK, "{\"uid\":\"pod-uid\"}");
        fake_expect_none(w.fake);
        world_close(&w);
    }
}

/* A patch of what is another's is meant so, and is no proof that it is ours. */
static void test_a_patch_of_ours_does_not_make_it_ours(void **state)
{
    (void)state;
    static const char *const managers[] = {
        MANAGER("moonloop-at/patch", "Update", "{}"),
        MANAGER("moonloop-at2", "Apply", "{}"),
        "{\"manager\":\"moonloop-at\",\"operation\":\"Update\",\"subresource\":\"status\"}",
    };
    for (size_t i = 0; i < ML_COUNT(managers); i++) {
        struct world w;
        struct told told;
        world_open(&w, "local _, err = ctx.apply(pod(at)) return { status = { got = err.kind } }",
                   NULL);
        ML_AUTO_FREE char *pod = orphan_json("101", managers[i]);
        world_event(&w, "ADDED", pod);
        assert_non_null(world_start(&w, &told));
        world_answer(&w, fake_expect(w.fake, "GET", PODS "/x-pod"), 200, pod);
        expect_outcome(&told, ML_OUTCOME_OK, "{\"got\":\"AlreadyExists\"}");
        fake_expect_none(w.fake);
        world_close(&w);
    }
}

/* As a child: what is to be made must not be there, what is there must be the one that was seen. */
static void test_apply_is_guarded(void **state)
{
    (void)state;
    static const struct {
        const char *owner, *want, *not ;
    } cases[] = {
        {NULL, "\"resourceVersion\":\"1\"", "\"uid\":\"pod-uid\""},
        {"at-uid", "\"uid\":\"pod-uid\"", "resourceVersion"},
    };
    for (size_t i = 0; i < ML_COUNT(cases); i++) {
        struct world w;
        struct told told;
        world_open(&w, "ctx.apply(pod(at))", NULL);
        ML_AUTO_FREE char *pod = world_pod_json("101", "at-uid");
        if (cases[i].owner)
            world_event(&w, "ADDED", pod);
        struct ml_run *run = world_start(&w, &told);
        struct fake_call *apply = fake_next(w.fake);
        assert_non_null(strstr(apply->body, cases[i].want));
        assert_null(strstr(apply->body, cases[i].not ));
        ml_script_cancel(run);
        world_close(&w);
    }
}

static void test_apply_of_anothers_sends_nothing(void **state)
{
    (void)state;
    struct world w;
    struct told told;
    world_open(&w,
               "local _, err = ctx.apply(pod(at), { adopt = true })\n"
               "return { status = { got = err.kind } }",
               NULL);
    ML_AUTO_FREE char *pod = world_pod_json("101", "other-uid");
    world_event(&w, "ADDED", pod);
    assert_null(world_start(&w, &told));
    expect_outcome(&told, ML_OUTCOME_OK, "{\"got\":\"AlreadyExists\"}");
    fake_expect_none(w.fake);
    world_close(&w);
}

static void test_write_options_are_checked(void **state)
{
    (void)state;
    static const struct {
        const char *options, *want;
    } cases[] = {
        {"'adopt'", "expected options as in { adopt = true }, got a string"},
        {"7", "expected options as in { adopt = true }, got a number"},
        {"{ adopts = true }", "unknown field 'adopts'; did you mean 'adopt'?"},
        {"{ adopt = 'yes' }", "adopt: expected true or false, got a string"},
    };
    static const char *const calls[] = {"ensure", "apply"};
    for (size_t i = 0; i < ML_COUNT(cases) * ML_COUNT(calls); i++) {
        struct world w;
        struct told told;
        ML_AUTO_FREE char *body = ml_asprintf("ctx.%s(pod(at), %s)", calls[i % 2],
                                              cases[i / 2].options);
        world_open(&w, body, NULL);
        assert_null(world_start(&w, &told));
        assert_int_equal(told.outcome, ML_OUTCOME_ERROR);
        if (!strstr(told.message, cases[i / 2].want))
            fail_msg("'%s' is not in '%s'", cases[i / 2].want, told.message);
        fake_expect_none(w.fake);
        world_close(&w);
    }
}

/* Fields that ensure has set become a part of the apply: then the next apply can remove them. */
static void test_apply_joins_the_fields_of_earlier_creates(void **state)
{
    (void)state;
    struct world w;
    struct told told;
    world_open(&w, "return { status = { uid = assert(ctx.apply(pod(at))).metadata.uid } }",
               &(struct ml_script_limits){.writes_max = 1});
    ML_AUTO_FREE char *pod = world_pod_json("101", "at-uid");
    world_event(&w, "ADDED", pod);
    assert_non_null(world_start(&w, &told));
    ML_AUTO_FREE char *mixed = orphan_json(
        "102", MANAGER("moonloop-at", "Apply", "{\"f:a\":{}}") "," MANAGER(
                   "moonloop-at", "Update", "{\"f:b\":{}}") "," MANAGER("kubectl", "Update", "{}"));
    struct fake_call *first = fake_next(w.fake);
    ML_AUTO_FREE char *sent = ml_strdup(first->body);
    world_answer(&w, first, 200, mixed);
    struct fake_call *join = fake_next(w.fake);
    assert_string_equal(join->content_type, "application/merge-patch+json");
    assert_string_equal(
        join->body,
        "{\"metadata\":{\"uid\":\"pod-uid\",\"resourceVersion\":\"102\",\"managedFields\":"
        "[" MANAGER("moonloop-at", "Apply",
                    "{\"f:a\":{},\"f:b\":{}}") "," MANAGER("kubectl", "Update", "{}") "]}}");
    world_answer(&w, join, 200, mixed); /* whatever the server makes of it, it is sent once */
    struct fake_call *again = fake_next(w.fake);
    assert_string_equal(again->body, sent);
    world_answer(&w, again, 200, mixed);
    expect_outcome(&told, ML_OUTCOME_OK, "{\"uid\":\"pod-uid\"}");
    fake_expect_none(w.fake);
    world_close(&w);
}

/* Fields of ctx.patch stay while the script has the word, and go with the next apply when not. */
static void test_apply_joins_the_fields_of_patches_that_no_script_makes(void **state)
{
    (void)state;
    static const char *const bodies[] = {"ctx.apply(pod(at))", "ctx.apply(pod(at)) -- ctx.patch"};
    for (size_t i = 0; i < ML_COUNT(bodies); i++) {
        struct world w;
        struct told told;
        world_open(&w, bodies[i], NULL);
        ML_AUTO_FREE char *pod = world_pod_json("101", "at-uid");
        world_event(&w, "ADDED", pod);
        struct ml_run *run = world_start(&w, &told);
        ML_AUTO_FREE char *mixed = orphan_json(
            "102", MANAGER("moonloop-at", "Apply", "{\"f:a\":{}}") "," MANAGER(
                       "moonloop-at/patch", "Update", "{\"f:b\":{}}"));
        world_answer(&w, fake_next(w.fake), 200, mixed);
        assert_int_equal(told.count, i);
        if (i == 0) {
            assert_non_null(strstr(fake_next(w.fake)->body, "\"f:a\":{},\"f:b\":{}"));
            ml_script_cancel(run);
        }
        fake_expect_none(w.fake);
        world_close(&w);
    }
}

/* As the API server keeps it: so an apply owns the fields of data, and can remove them. */
static void test_string_data_is_encoded(void **state)
{
    (void)state;
    static const struct {
        const char *given, *want;
    } cases[] = {
        {"stringData = { a = 'x' }", "\"data\":{\"a\":\"eA==\"}"},
        {"data = { a = 'bad', b = 'eQ==' }, stringData = { a = 'x' }",
         "\"data\":{\"b\":\"eQ==\",\"a\":\"eA==\"}"},
        {"stringData = { a = '\\0\\n\"' }", "\"data\":{\"a\":\"AAoi\"}"},
        {"stringData = { a = '' }", "\"data\":{\"a\":\"\"}"},
        {"stringData = { a = 7 }", "\"stringData\":{\"a\":7}"}, /* the server refuses it */
        {"stringData = 'x'", "\"stringData\":\"x\""},
        {"data = 7, stringData = { a = 'x' }", "\"data\":7,"},
    };
    for (size_t i = 0; i < ML_COUNT(cases); i++) {
        struct world w;
        struct told told;
        ML_AUTO_FREE char *body = ml_asprintf("ctx.create { apiVersion = 'v1', kind = 'Secret',\n"
                                              "  metadata = { name = 's' }, %s }",
                                              cases[i].given);
        world_open(&w, body, NULL);
        struct ml_run *run = world_start(&w, &told);
        struct fake_call *post = fake_next(w.fake);
        if (!strstr(post->body, cases[i].want))
            fail_msg("'%s' is not in '%s'", cases[i].want, post->body);
        bool is_encoded = strstr(cases[i].want, "stringData") == NULL && i != 6;
        assert_int_equal(strstr(post->body, "stringData") == NULL, is_encoded);
        assert_non_null(strstr(post->body, "\"namespace\":\"default\""));
        ml_script_cancel(run);
        world_close(&w);
    }
}

static void test_ensure_already_exists_looks_whose_it_is(void **state)
{
    (void)state;
    static const struct {
        const char *owner, *status;
    } cases[] = {
        {"at-uid", "{\"got\":\"pod-uid\"}"},
        {"other-uid", "{\"got\":\"AlreadyExists\"}"},
    };
    for (size_t i = 0; i < ML_COUNT(cases); i++) {
        struct world w;
        struct told told;
        world_open(&w,
                   "local pod, err = ctx.ensure(pod(at))\n"
                   "return { status = { got = err and err.kind or pod.metadata.uid } }",
                   NULL);
        assert_non_null(world_start(&w, &told));
        fake_refuse(fake_next(w.fake), 409, "AlreadyExists", "pods \\\"x-pod\\\" already exists");
        ml_loop_poll(w.loop);
        struct fake_call *get = fake_expect(w.fake, "GET", PODS "/x-pod");
        ML_AUTO_FREE char *pod = world_pod_json("101", cases[i].owner);
        world_answer(&w, get, 200, pod);
        expect_outcome(&told, ML_OUTCOME_OK, cases[i].status);
        world_close(&w);
    }
}

static void test_ensure_lost_reply_is_settled_by_reading(void **state)
{
    (void)state;
    struct world w;
    struct told told;
    world_open(&w, "return { status = { uid = assert(ctx.ensure(pod(at))).metadata.uid } }", NULL);
    assert_non_null(world_start(&w, &told));
    fake_fail(fake_next(w.fake), ML_ENETWORK, "connection reset");
    ml_loop_poll(w.loop);
    struct fake_call *get = fake_expect(w.fake, "GET", PODS "/x-pod");
    ML_AUTO_FREE char *pod = world_pod_json("101", "at-uid");
    world_answer(&w, get, 200, pod);
    assert_int_equal(told.count, 0); /* what was found waits for the cache like an answer */
    world_event(&w, "ADDED", pod);
    expect_outcome(&told, ML_OUTCOME_OK, "{\"uid\":\"pod-uid\"}");
    fake_expect_none(w.fake);
    world_close(&w);
}

static void test_ensure_of_what_is_used_is_read_first(void **state)
{
    (void)state;
    struct world w;
    struct told told;
    world_open(&w,
               "local s = assert(ctx.ensure { apiVersion = 'v1', kind = 'Secret',\n"
               "  metadata = { name = 's' } })\n"
               "return { status = { rv = s.metadata.resourceVersion } }",
               NULL);
    assert_non_null(world_start(&w, &told));
    struct fake_call *get = fake_expect(w.fake, "GET", "/api/v1/namespaces/default/secrets/s");
    world_answer(&w, get, 404, NOT_FOUND);
    struct fake_call *post = fake_next(w.fake);
    assert_string_equal(post->method, "POST");
    assert_null(strstr(post->body, "ownerReferences"));
    world_answer(&w, post, 201,
                 "{\"apiVersion\":\"v1\",\"kind\":\"Secret\",\"metadata\":{\"name\":\"s\","
                 "\"resourceVersion\":\"7\"}}");
    expect_outcome(&told, ML_OUTCOME_OK, "{\"rv\":\"7\"}");
    world_close(&w);
}

static void test_what_the_selection_leaves_out_is_not_written(void **state)
{
    (void)state;
    static const char *const calls[] = {"ensure", "create", "apply"};
    static const char *const labels[] = {"nil", "{ app = 'y' }"};
    for (size_t i = 0; i < ML_COUNT(calls) * ML_COUNT(labels); i++) {
        struct world w;
        struct told told;
        const char *call = calls[i / ML_COUNT(labels)];
        ML_AUTO_FREE char *body = ml_asprintf("local p = pod(at) p.metadata.labels = %s ctx.%s(p)",
                                              labels[i % 2], call);
        world_open_part(&w, "{ labels = 'app=x' }", body, NULL);
        assert_null(world_start(&w, &told));
        assert_int_equal(told.outcome, ML_OUTCOME_ERROR);
        ML_AUTO_FREE char *want = ml_asprintf(
            "ctx.%s(object%s): this script watches the objects of Pod with the labels 'app=x' "
            "only, "
            "and would never see this one: 'app=x' does not hold for its metadata.labels",
            call, strcmp(call, "create") == 0 ? "" : " [, { adopt = }]");
        if (!strstr(told.message, want))
            fail_msg("'%s' is not in '%s'", want, told.message);
        fake_expect_none(w.fake);
        world_close(&w);
    }
}

static void test_ensure_of_what_is_selected_is_created(void **state)
{
    (void)state;
    struct world w;
    struct told told;
    world_open_part(&w, "{ labels = 'app in (x, z),!old' }",
                    "local p = pod(at) p.metadata.labels = { app = 'x' } ctx.ensure(p)", NULL);
    struct ml_run *run = world_start(&w, &told);
    assert_string_equal(fake_next(w.fake)->method, "POST");
    ml_script_cancel(run);
    world_close(&w);
}

/* The cache has no spec and status of it: what gives the object back reads it whole, and what would
 * compare it with the cached one does not. */
static void test_ensure_of_metadata_reads_the_object(void **state)
{
    (void)state;
    struct world w;
    struct told told;
    world_open_part(&w, "{ metadata_only = true }",
                    "return { status = { phase = ctx.ensure(pod(at)).status.phase } }", NULL);
    ML_AUTO_FREE char *pod = world_pod_json("101", "at-uid");
    world_event(&w, "ADDED", pod);
    assert_non_null(world_start(&w, &told));
    world_answer(&w, fake_expect(w.fake, "GET", PODS "/x-pod"), 200, pod);
    expect_outcome(&told, ML_OUTCOME_OK, "{\"phase\":\"Running\"}");

    struct ml_run *run = world_start(&w, &told); /* gone, and the cache does not show it yet */
    fake_refuse(fake_expect(w.fake, "GET", PODS "/x-pod"), 404, "NotFound", "not found");
    ml_loop_poll(w.loop);
    assert_string_equal(fake_next(w.fake)->method, "POST");
    ml_script_cancel(run);
    world_close(&w);
}

static void test_patch_of_metadata_is_always_sent(void **state)
{
    (void)state;
    struct world w;
    struct told told;
    world_open_part(&w, "{ metadata_only = true }",
                    "ctx.patch(ctx.get(Pod, 'x-pod'), { data = moonloop.null })", NULL);
    ML_AUTO_FREE char *pod = world_pod_json("101", "at-uid");
    world_event(&w, "ADDED", pod);
    struct ml_run *run = world_start(&w, &told);
    assert_string_equal(fake_next(w.fake)->method, "PATCH");
    ml_script_cancel(run);
    world_close(&w);
}

/* The same text once more, to an object in the version which the first was answered with. */
static void test_apply_that_changes_nothing_is_not_sent(void **state)
{
    (void)state;
    struct world w;
    struct told told;
    world_open(&w,
               "local wanted = pod(at)\n"
               "wanted.spec.size = at.spec.size\n"
               "return { status = { uid = assert(ctx.apply(wanted)).metadata.uid } }",
               NULL);
    assert_non_null(world_start(&w, &told));
    ML_AUTO_FREE char *first = world_pod_json("101", "at-uid");
    world_answer(&w, fake_next(w.fake), 200, first);
    expect_outcome(&told, ML_OUTCOME_OK, "{\"uid\":\"pod-uid\"}");
    assert_non_null(world_start(&w, &told)); /* the cache does not show it yet */
    world_answer(&w, fake_next(w.fake), 200, first);
    world_event(&w, "ADDED", first);
    assert_null(world_start(&w, &told));
    expect_outcome(&told, ML_OUTCOME_OK, "{\"uid\":\"pod-uid\"}");
    fake_expect_none(w.fake);
    ML_AUTO_FREE char *second = world_pod_json("102", "at-uid"); /* somebody else's change */
    world_event(&w, "MODIFIED", second);
    assert_non_null(world_start(&w, &told));
    world_answer(&w, fake_next(w.fake), 200, second);
    assert_null(world_start(&w, &told));
    fake_expect_none(w.fake);
    world_close(&w);
}

static void test_apply_of_another_text_is_sent(void **state)
{
    (void)state;
    struct world w;
    struct told told;
    world_open(&w,
               "local wanted = pod(at)\n"
               "assert(ctx.apply(wanted))\n"
               "wanted.spec = nil\n" /* may have been ours to remove */
               "assert(ctx.apply(wanted))",
               NULL);
    assert_non_null(world_start(&w, &told));
    ML_AUTO_FREE char *pod = world_pod_json("101", "at-uid");
    world_answer(&w, fake_next(w.fake), 200, pod);
    world_event(&w, "ADDED", pod);
    world_answer(&w, fake_next(w.fake), 200, pod);
    expect_outcome(&told, ML_OUTCOME_OK, "");
    world_close(&w);
}

static void test_patch_is_guarded_and_left_out_when_nothing_differs(void **state)
{
    (void)state;
    struct world w;
    struct told told;
    world_open(
        &w,
        "local pod = assert(ctx.get(Pod, 'x-pod'))\n"
        "assert(ctx.patch(pod, { metadata = { labels = { app = 'x', no = moonloop.null } } }))\n"
        "assert(ctx.patch(pod, { metadata = { labels = { app = moonloop.null, b = 'c' } } }))\n"
        "assert(not pcall(ctx.patch, pod, { status = { phase = 'x' } }))",
        NULL);
    ML_AUTO_FREE char *pod = world_pod_json("101", "at-uid");
    world_event(&w, "ADDED", pod);
    assert_non_null(world_start(&w, &told));
    struct fake_call *call = fake_next(w.fake);
    assert_string_equal(call->method, "PATCH");
    assert_string_equal(call->content_type, "application/merge-patch+json");
    assert_string_equal(call->body, "{\"metadata\":{\"labels\":{\"app\":null,\"b\":\"c\"},\"uid\":"
                                    "\"pod-uid\",\"resourceVersion\":\"101\"}}");
    world_answer(&w, call, 200, pod);
    expect_outcome(&told, ML_OUTCOME_OK, "");
    world_close(&w);
}

static void test_delete_has_a_precondition_and_absent_is_fine(void **state)
{
    (void)state;
    static const int statuses[] = {200, 404};
    for (size_t i = 0; i < ML_COUNT(statuses); i++) {
        struct world w;
        struct told told;
        world_open(&w, "return { status = { gone = ctx.delete(ctx.get(Pod, 'x-pod')) } }", NULL);
        ML_AUTO_FREE char *pod = world_pod_json("101", "at-uid");
        world_event(&w, "ADDED", pod);
        assert_non_null(world_start(&w, &told));
        struct fake_call *call = fake_next(w.fake);
        assert_string_equal(call->method, "DELETE");
        assert_non_null(strstr(call->body, "\"preconditions\":{\"uid\":\"pod-uid\","
                                           "\"resourceVersion\":\"101\"}"));
        world_answer(&w, call, statuses[i], statuses[i] == 200 ? pod : NOT_FOUND);
        expect_outcome(&told, ML_OUTCOME_OK, "{\"gone\":true}");
        world_close(&w);
    }
}

/* The object may be there for a while, and then the answer has a version that will show. */
static void test_read_after_delete_waits_only_when_the_answer_has_a_version(void **state)
{
    (void)state;
    struct world w;
    struct told told;
    world_open(&w,
               "ctx.delete(ctx.get(Pod, 'x-pod'))\n"
               "return { status = { rv = ctx.get(Pod, 'x-pod').metadata.resourceVersion } }",
               NULL);
    ML_AUTO_FREE char *pod = world_pod_json("101", "at-uid");
    ML_AUTO_FREE char *going = world_pod_json("102", "at-uid");
    world_event(&w, "ADDED", pod);
    assert_non_null(world_start(&w, &told));
    world_answer(&w, fake_next(w.fake), 200,
                 "{\"kind\":\"Status\",\"status\":\"Success\",\"metadata\":{}}");
    expect_outcome(&told, ML_OUTCOME_OK, "{\"rv\":\"101\"}");
    assert_non_null(world_start(&w, &told));
    world_answer(&w, fake_next(w.fake), 200, going);
    assert_int_equal(told.count, 0);
    world_event(&w, "MODIFIED", going);
    expect_outcome(&told, ML_OUTCOME_OK, "{\"rv\":\"102\"}");
    world_close(&w);
}

/* A script that drops the error of a write cannot hide it. */
static void test_refused_write_is_logged_though_the_script_drops_it(void **state)
{
    (void)state;
    struct world w;
    struct told told;
    world_open(&w, "ctx.create(pod(at)) return { status = { n = 1 } }", NULL);
    for (int i = 0; i < 3; i++) {
        assert_non_null(world_start(&w, &told));
        fake_refuse(fake_next(w.fake), 403, "Forbidden", "pods is forbidden");
        ml_loop_poll(w.loop);
        expect_outcome(&told, ML_OUTCOME_OK, "{\"n\":1}");
        ml_clock_fake_advance(&w.clock, 600 * ML_NS_PER_MS);
    }
    assert_int_equal(
        unit_count(w.log.fd,
                   " warn  at: a write of the script was refused controller=\"at\" "
                   "controllerKind=\"At\" namespace=\"default\" name=\"x\" "
                   "reconcileID=\"0000abcd\" error=\"pods is forbidden\" "
                   "errorKind=\"Forbidden\" script=\"at.lua\" line=13 verb=\"create\" "
                   "kind=\"Pod\" target=\"default/x-pod\" reason=\"Forbidden\" failures="),
        2); /* the first and the third, after more than a second */
    assert_non_null(world_start(&w, &told));
    ML_AUTO_FREE char *pod = world_pod_json("101", "at-uid");
    world_answer(&w, fake_next(w.fake), 201, pod);
    world_event(&w, "ADDED", pod);
    assert_non_null(world_start(&w, &told));
    fake_refuse(fake_next(w.fake), 409, "AlreadyExists", "it is there");
    ml_loop_poll(w.loop);
    assert_int_equal(unit_count(w.log.fd, " info  at: a write of the script was refused"), 1);
    assert_int_equal(unit_count(w.log.fd, "failures=1"), 2);
    world_close(&w);
}

static void test_what_the_host_settles_is_no_refused_write(void **state)
{
    (void)state;
    static const char *const bodies[] = {"ctx.delete(ctx.get(Pod, 'x-pod'))", "ctx.ensure(pod(at))",
                                         "ctx.patch(ctx.get(Pod, 'x-pod'), { spec = { a = 1 } })"};
    for (size_t i = 0; i < ML_COUNT(bodies); i++) {
        struct world w;
        struct told told;
        world_open(&w, bodies[i], NULL);
        ML_AUTO_FREE char *pod = world_pod_json("101", "at-uid");
        if (i != 1)
            world_event(&w, "ADDED", pod);
        assert_non_null(world_start(&w, &told));
        struct fake_call *write = fake_next(w.fake);
        if (i == 0)
            fake_refuse(write, 404, "NotFound", "it is gone");
        else
            fake_refuse(write, 409, i == 1 ? "AlreadyExists" : "Conflict", "somebody was faster");
        ml_loop_poll(w.loop);
        if (i == 1)
            world_answer(&w, fake_next(w.fake), 200, pod);
        assert_int_equal(told.outcome, i == 2 ? ML_OUTCOME_ERROR : ML_OUTCOME_OK);
        assert_int_equal(unit_count(w.log.fd, "refused"), 0);
        world_close(&w);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_ensure_missing_is_created_and_awaited),
        cmocka_unit_test(test_ensure_does_not_wait_for_what_shows_already),
        cmocka_unit_test(test_ensure_waits_for_the_cache_as_long_as_it_takes),
        cmocka_unit_test(test_owner_references_have_a_limit),
        cmocka_unit_test(test_owner_references_are_read_once),
        cmocka_unit_test(test_ensure_of_anothers_is_refused),
        cmocka_unit_test(test_what_this_controller_made_comes_home),
        cmocka_unit_test(test_a_patch_of_ours_does_not_make_it_ours),
        cmocka_unit_test(test_apply_is_guarded),
        cmocka_unit_test(test_apply_of_anothers_sends_nothing),
        cmocka_unit_test(test_write_options_are_checked),
        cmocka_unit_test(test_apply_joins_the_fields_of_earlier_creates),
        cmocka_unit_test(test_apply_joins_the_fields_of_patches_that_no_script_makes),
        cmocka_unit_test(test_string_data_is_encoded),
        cmocka_unit_test(test_refused_write_is_logged_though_the_script_drops_it),
        cmocka_unit_test(test_what_the_host_settles_is_no_refused_write),
        cmocka_unit_test(test_ensure_already_exists_looks_whose_it_is),
        cmocka_unit_test(test_ensure_lost_reply_is_settled_by_reading),
        cmocka_unit_test(test_ensure_of_what_is_used_is_read_first),
        cmocka_unit_test(test_what_the_selection_leaves_out_is_not_written),
        cmocka_unit_test(test_ensure_of_what_is_selected_is_created),
        cmocka_unit_test(test_ensure_of_metadata_reads_the_object),
        cmocka_unit_test(test_patch_of_metadata_is_always_sent),
        cmocka_unit_test(test_patch_is_guarded_and_left_out_when_nothing_differs),
        cmocka_unit_test(test_apply_that_changes_nothing_is_not_sent),
        cmocka_unit_test(test_apply_of_another_text_is_sent),
        cmocka_unit_test(test_delete_has_a_precondition_and_absent_is_fine),
        cmocka_unit_test(test_read_after_delete_waits_only_when_the_answer_has_a_version),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
