/* Children that a reconcile returns: the requests for them, their order and their guards, the
 * objects that are deleted beside them, and those that are left alone. */
#include "script_world.h"

#include "codec/json.h"
#include "state/deletions.h"

/* named 'x': a child. kids { 'a', 'b' }: what reconcile returns for these names. */
#define PRELUDE                                                                                    \
    "local function named(name)\n"                                                                 \
    "  local p = pod { metadata = { name = '' } } p.metadata.name = name return p end\n"           \
    "local function kids(names)\n"                                                                 \
    "  local list = {} for i, name in ipairs(names) do list[i] = named(name) end\n"                \
    "  return { children = list, status = { ready = true } } end\n"

#define READY "{\"ready\":true}"

static void open_world(struct world *w, const char *body, const struct ml_script_limits *limits)
{
    world_open_file(w, PRELUDE, "nil", body, limits);
}

/* A Pod of that name as the server has it. `more`: further metadata, with a comma behind. */
static char *pod_json(const char *name, const char *rv, const char *owner, const char *more)
{
    return ml_asprintf("{\"apiVersion\":\"v1\",\"kind\":\"Pod\",\"metadata\":{\"name\":\"%s\",%s"
                       "\"namespace\":\"default\",\"uid\":\"%s-uid\",\"resourceVersion\":\"%s\","
                       "\"ownerReferences\":[{\"apiVersion\":\"example.com/v1\",\"kind\":\"At\","
                       "\"name\":\"y\",\"uid\":\"%s\",\"controller\":true}]}}",
                       name, more, name, rv, owner);
}

static void show(struct world *w, const char *type, const char *name, const char *rv,
                 const char *owner)
{
    ML_AUTO_FREE char *pod = pod_json(name, rv, owner, "");
    world_event(w, type, pod);
}

/* The next request applies the pod; it gets version `rv`, and the watch shows it. */
static struct fake_call *accept_apply(struct world *w, const char *name, const char *rv)
{
    ML_AUTO_FREE char *path = ml_asprintf(PODS "/%s?fieldManager=moonloop-at&force=true", name);
    ML_AUTO_FREE char *pod = pod_json(name, rv, "at-uid", "");
    struct fake_call *call = fake_expect(w->fake, "PATCH", path);
    assert_string_equal(call->content_type, "application/apply-patch+yaml");
    world_answer(w, call, 200, pod);
    world_event(w, "MODIFIED", pod);
    return call;
}

static void expect_error(const struct told *told, const char *want)
{
    assert_int_equal(told->count, 1);
    assert_int_equal(told->outcome, ML_OUTCOME_ERROR);
    if (!strstr(told->message, want))
        fail_msg("'%s' is not in '%s'", want, told->message);
}

static void test_children_are_applied_in_order_and_once(void **state)
{
    (void)state;
    struct world w;
    struct told told;
    open_world(&w, "return kids { 'b', 'a' }", NULL);
    assert_non_null(world_start(&w, &told));
    struct fake_call *call = accept_apply(&w, "b", "101");
    assert_non_null(strstr(call->body, CREATED_BY_US));
    assert_int_equal(told.count, 0);
    accept_apply(&w, "a", "102");
    expect_outcome(&told, ML_OUTCOME_OK, READY);
    assert_null(world_start(&w, &told)); /* nothing differs any more */
    expect_outcome(&told, ML_OUTCOME_OK, READY);
    fake_expect_none(w.fake);
    world_close(&w);
}

/* One that is to be made must not be there, one that is there must be the one that was seen. */
static void test_children_are_guarded(void **state)
{
    (void)state;
    struct world w;
    struct told told;
    open_world(&w, "return kids { 'new', 'old' }", NULL);
    show(&w, "ADDED", "old", "101", "at-uid");
    assert_non_null(world_start(&w, &told));
    struct fake_call *call = accept_apply(&w, "new", "102");
    assert_non_null(strstr(call->body, "\"resourceVersion\":\"1\""));
    call = accept_apply(&w, "old", "103");
    assert_non_null(strstr(call->body, "\"uid\":\"old-uid\""));
    assert_null(strstr(call->body, "resourceVersion"));
    expect_outcome(&told, ML_OUTCOME_OK, READY);
    world_close(&w);
}

static void test_child_of_another_is_left_alone_and_the_rest_is_applied(void **state)
{
    (void)state;
    struct world w;
    struct told told;
    open_world(&w, "return kids { 'theirs', 'ours' }", NULL);
    show(&w, "ADDED", "theirs", "101", "other-uid");
    show(&w, "ADDED", "stray", "102", "at-uid");
    assert_non_null(world_start(&w, &told));
    accept_apply(&w, "ours", "103");
    expect_error(&told, "at.lua:");
    expect_error(&told,
                 "children: Pod default/theirs: AlreadyExists: Pod default/theirs exists and "
                 "is controlled by At y");
    fake_expect_none(w.fake); /* nothing is pruned */
    world_close(&w);
}

/* A server's message about a schema fills the whole error: that there was another failure stays. */
static void test_count_of_failures_survives_a_long_one(void **state)
{
    (void)state;
    struct world w;
    struct told told;
    struct ml_buf message = ML_BUF_INIT;
    while (message.len < 4090)
        ml_buf_puts(&message, "\xc3\xa4");
    open_world(&w, "return kids { 'a', 'b' }", NULL);
    assert_non_null(world_start(&w, &told));
    fake_refuse(fake_next(w.fake), 422, "Invalid", ml_buf_cstr(&message));
    ml_loop_poll(w.loop);
    fake_refuse(fake_next(w.fake), 403, "Forbidden", "no");
    ml_loop_poll(w.loop);
    expect_error(&told, "children: Pod default/a: Invalid: ");
    expect_error(&told, "\xc3\xa4… (and 1 more)");
    ml_buf_fini(&message);
    world_close(&w);
}

static void test_nothing_is_pruned_when_a_child_is_refused(void **state)
{
    (void)state;
    struct world w;
    struct told told;
    open_world(&w, "return kids { 'a', 'b', 'c' }", NULL);
    show(&w, "ADDED", "stray", "101", "at-uid");
    assert_non_null(world_start(&w, &told));
    fake_refuse(fake_next(w.fake), 422, "Invalid", "spec.x: Required value");
    ml_loop_poll(w.loop);
    accept_apply(&w, "b", "102");
    fake_refuse(fake_next(w.fake), 403, "Forbidden", "no");
    ml_loop_poll(w.loop);
    expect_error(&told, "children: Pod default/a: Invalid: spec.x: Required value (and 1 more)");
    fake_expect_none(w.fake);
    world_close(&w);
}

static void expect_delete(struct world *w, const char *name, const char *rv)
{
    ML_AUTO_FREE char *path = ml_asprintf(PODS "/%s", name);
    ML_AUTO_FREE char *guard = ml_asprintf(
        "\"preconditions\":{\"uid\":\"%s-uid\",\"resourceVersion\":\"%s\"}", name, rv);
    struct fake_call *call = fake_expect(w->fake, "DELETE", path);
    assert_non_null(strstr(call->body, guard));
    world_answer(w, call, 200, "{\"kind\":\"Status\",\"status\":\"Success\"}");
}

static void test_what_is_not_among_the_children_is_deleted_in_reverse(void **state)
{
    (void)state;
    struct world w;
    struct told told;
    open_world(&w, "return kids { 'keep' }", NULL);
    show(&w, "ADDED", "a", "101", "at-uid");
    show(&w, "ADDED", "keep", "102", "at-uid");
    show(&w, "ADDED", "c", "103", "at-uid");
    show(&w, "ADDED", "b", "104", "at-uid");
    show(&w, "ADDED", "theirs", "105", "other-uid");
    assert_non_null(world_start(&w, &told));
    accept_apply(&w, "keep", "106");
    expect_delete(&w, "c", "103");
    expect_delete(&w, "b", "104");
    expect_delete(&w, "a", "101");
    expect_outcome(&told, ML_OUTCOME_OK, READY);
    fake_expect_none(w.fake);
    world_close(&w);
}

static void test_an_empty_list_prunes_and_no_list_does_not(void **state)
{
    (void)state;
    struct world w;
    struct told told;
    open_world(&w, "if at.spec.size == 3 then return { children = {} } end return {}", NULL);
    show(&w, "ADDED", "a", "101", "at-uid");
    struct ml_run *run = world_start(&w, &told);
    assert_non_null(run);
    expect_delete(&w, "a", "101");
    expect_outcome(&told, ML_OUTCOME_OK, "");
    world_close(&w);
    open_world(&w, "return { status = { ready = true } }", NULL);
    show(&w, "ADDED", "a", "101", "at-uid");
    assert_null(world_start(&w, &told));
    expect_outcome(&told, ML_OUTCOME_OK, READY);
    fake_expect_none(w.fake);
    world_close(&w);
}

/* The cache has to show what the run wrote before anything is looked for that is too much. */
static void test_pruning_waits_for_the_caches(void **state)
{
    (void)state;
    struct world w;
    struct told told;
    open_world(&w, "return kids { 'a' }", NULL);
    show(&w, "ADDED", "stray", "101", "at-uid");
    assert_non_null(world_start(&w, &told));
    ML_AUTO_FREE char *pod = pod_json("a", "102", "at-uid", "");
    world_answer(&w, fake_next(w.fake), 200, pod);
    fake_expect_none(w.fake);
    assert_int_equal(told.count, 0);
    world_event(&w, "ADDED", pod);
    expect_delete(&w, "stray", "101");
    expect_outcome(&told, ML_OUTCOME_OK, READY);
    world_close(&w);
}

static void test_what_the_run_got_otherwise_is_not_pruned(void **state)
{
    (void)state;
    struct world w;
    struct told told;
    open_world(&w, "assert(ctx.ensure(named 'kept')) return { children = {} }", NULL);
    show(&w, "ADDED", "kept", "101", "at-uid");
    assert_null(world_start(&w, &told));
    expect_outcome(&told, ML_OUTCOME_OK, "");
    fake_expect_none(w.fake);
    world_close(&w);
}

/* It is not there any more, and not gone: nothing can be said of it yet. */
static void test_a_child_that_is_leaving_is_not_written_and_nothing_pruned(void **state)
{
    (void)state;
    struct world w;
    struct told told;
    open_world(&w, "return kids { 'a' }", NULL);
    ML_AUTO_FREE char *pod = pod_json("a", "101", "at-uid",
                                      "\"deletionTimestamp\":\"2026-01-01T00:00:00Z\",");
    world_event(&w, "ADDED", pod);
    show(&w, "ADDED", "stray", "102", "at-uid");
    assert_null(world_start(&w, &told));
    expect_outcome(&told, ML_OUTCOME_OK, READY);
    fake_expect_none(w.fake);
    world_close(&w);
}

static void test_more_children_than_writes_go_on_in_the_next_run(void **state)
{
    (void)state;
    struct world w;
    struct told told;
    const struct ml_script_limits two = {.writes_max = 2};
    open_world(&w, "return kids { 'bad', 'a', 'b', 'c' }", &two);
    for (int run = 0; run < 2; run++) {
        assert_non_null(world_start(&w, &told));
        fake_refuse(fake_next(w.fake), 422, "Invalid", "bad"); /* no write of the two */
        ml_loop_poll(w.loop);
        if (run == 0) {
            accept_apply(&w, "a", "101");
            accept_apply(&w, "b", "102");
            expect_outcome(&told, ML_OUTCOME_OK, ""); /* the status is not true yet */
            assert_int_equal(told.after_ns, 0);
        }
    }
    accept_apply(&w, "c", "103");
    expect_error(&told, "children: Pod default/bad: Invalid: bad");
    fake_expect_none(w.fake);
    world_close(&w);
}

static void test_more_strays_than_writes_go_on_in_the_next_run(void **state)
{
    (void)state;
    struct world w;
    struct told told;
    const struct ml_script_limits one = {.writes_max = 1};
    open_world(&w, "return kids {}", &one);
    show(&w, "ADDED", "a", "101", "at-uid");
    show(&w, "ADDED", "b", "102", "at-uid");
    assert_non_null(world_start(&w, &told));
    expect_delete(&w, "b", "102");
    expect_outcome(&told, ML_OUTCOME_OK, "");
    assert_int_equal(told.after_ns, 0);
    show(&w, "DELETED", "b", "103", "at-uid");
    assert_non_null(world_start(&w, &told));
    expect_delete(&w, "a", "101");
    expect_outcome(&told, ML_OUTCOME_OK, READY);
    world_close(&w);
}

#define RECREATE "return { children = { moonloop.recreate(named 'a') }, status = { ready = true } }"
#define DRY_RUN  PODS "?fieldManager=moonloop-at&dryRun=All"

/* Opens a world whose server has refused to change the child. */
static void open_refused(struct world *w, struct told *told)
{
    open_world(w, RECREATE, NULL);
    show(w, "ADDED", "a", "101", "at-uid");
    assert_non_null(world_start(w, told));
    fake_refuse(fake_next(w->fake), 422, "Invalid", "spec: Forbidden: may not change");
    ml_loop_poll(w->loop);
}

static void test_recreate_deletes_the_old_and_then_makes_the_new(void **state)
{
    (void)state;
    struct world w;
    struct told told;
    open_refused(&w, &told);
    w.services.deletions = ml_deletions_new(w.loop, &w.log, w.recorder);
    fake_refuse(fake_expect(w.fake, "POST", DRY_RUN), 409, "AlreadyExists", "it is there");
    ml_loop_poll(w.loop);
    struct fake_call *call = fake_expect(w.fake, "DELETE", PODS "/a");
    assert_non_null(strstr(call->body, "\"propagationPolicy\":\"Foreground\""));
    assert_non_null(strstr(call->body, "\"preconditions\":{\"uid\":\"a-uid\"}"));
    ML_AUTO_FREE char *leaving = pod_json("a", "102", "at-uid",
                                          "\"deletionTimestamp\":\"2026-01-01T00:00:00Z\",");
    world_answer(&w, call, 200, leaving);
    expect_outcome(&told, ML_OUTCOME_OK, ""); /* the script has not seen it yet */
    assert_int_equal(told.after_ns, 0);
    assert_int_equal(unit_count(w.log.fd, "refused"), 0); /* all is well */
    assert_non_null(
        strstr(fake_next(w.fake)->body,
               "\"note\":\"Pod default/a: made again, as the server refuses the change: "
               "spec: Forbidden: may not change (revision "));
    ml_deletions_free(ml_take(&w.services.deletions));

    world_event(&w, "MODIFIED", leaving); /* never two at once */
    assert_null(world_start(&w, &told));
    expect_outcome(&told, ML_OUTCOME_OK, READY);
    fake_expect_none(w.fake);

    show(&w, "DELETED", "a", "103", "at-uid");
    assert_non_null(world_start(&w, &told));
    call = accept_apply(&w, "a", "104");
    assert_non_null(strstr(call->body, "\"resourceVersion\":\"1\""));
    expect_outcome(&told, ML_OUTCOME_OK, READY);
    world_close(&w);
}

/* The mark is a metatable. All else of the object stays: the order of its keys, and absent fields
 * that read as empty. Marking it again changes nothing. */
static void test_recreate_marks_any_object_and_nothing_else(void **state)
{
    (void)state;
    static const char *const statements[] = {
        "local p = named 'a' assert(moonloop.recreate(p) == p and moonloop.recreate(p) == p)",
        "local j = require 'cjson' local o = j.decode '{\"z\":1,\"kind\":\"x\",\"a\":2}'\n"
        "local before = j.encode(o) assert(j.encode(moonloop.recreate(o)) == before)\n"
        "assert(j.encode(moonloop.recreate(o)) == before)\n"
        "local keys = '' for k in pairs(o) do keys = keys .. k end assert(keys == 'zkinda')",
        "local o = moonloop.recreate(at) assert(o.metadata.name == 'x' and o.status.none == nil)\n"
        "assert(require('cjson').encode(o):find '\"size\":3')",
        "assert(not pcall(moonloop.recreate, moonloop.array { 1 }))",
        "assert(not pcall(moonloop.recreate, setmetatable({}, {})))",
        "local _, why = pcall(moonloop.recreate, setmetatable({}, {}))\n"
        "assert(why:find 'expected an object as in a manifest, got a table with a metatable', why)",
    };
    for (size_t i = 0; i < ML_COUNT(statements); i++) {
        struct world w;
        struct told told;
        open_world(&w, statements[i], NULL);
        world_start(&w, &told);
        expect_outcome(&told, ML_OUTCOME_OK, "");
        world_close(&w);
    }
}

static void test_recreate_keeps_the_old_when_the_new_is_no_good(void **state)
{
    (void)state;
    struct world w;
    struct told told;
    open_refused(&w, &told);
    fake_refuse(fake_expect(w.fake, "POST", DRY_RUN), 422, "Invalid", "spec.x: Required value");
    ml_loop_poll(w.loop);
    expect_error(&told, "children: Pod default/a: Invalid: spec.x: Required value");
    assert_int_equal(unit_count(w.log.fd, "a write of the script was refused"), 2);
    assert_int_equal(unit_count(w.log.fd, "error=\"spec: Forbidden: may not change\""), 1);
    assert_int_equal(unit_count(w.log.fd, "verb=\"apply\""), 1);
    assert_int_equal(unit_count(w.log.fd, "error=\"spec.x: Required value\""), 1);
    assert_int_equal(unit_count(w.log.fd, "verb=\"create\""), 1);
    fake_expect_none(w.fake);
    world_close(&w);
}

/* The answer was lost: the object may be gone. Nothing that follows may hit its successor. */
static void test_recreate_does_not_delete_what_has_gone_meanwhile(void **state)
{
    (void)state;
    struct world w;
    struct told told;
    open_refused(&w, &told);
    struct fake_call *call = fake_expect(w.fake, "POST", DRY_RUN);
    show(&w, "DELETED", "a", "102", "at-uid");
    fake_refuse(call, 409, "AlreadyExists", "it is there");
    ml_loop_poll(w.loop);
    expect_outcome(&told, ML_OUTCOME_OK, READY);
    fake_expect_none(w.fake);
    world_close(&w);
}

/* ---- maps without keys of others ---- */

#define EXACT                                                                                      \
    "return { children = { moonloop.exact(named 'a', 'metadata.labels') }, "                       \
    "status = { ready = true } }"
#define LABELS_OF_OTHERS "\"labels\":{\"b\":\"1\",\"a\":\"2\"},"

/* Opens a world whose server has answered the apply with labels of others. */
static void open_with_others(struct world *w, struct told *told,
                             const struct ml_script_limits *limits)
{
    open_world(w, EXACT, limits);
    show(w, "ADDED", "a", "101", "at-uid");
    assert_non_null(world_start(w, told));
    ML_AUTO_FREE char *pod = pod_json("a", "102", "at-uid", LABELS_OF_OTHERS);
    world_answer(w, fake_next(w->fake), 200, pod);
}

static struct fake_call *expect_removal(struct world *w)
{
    struct fake_call *call = fake_expect(w->fake, "PATCH", PODS "/a?fieldManager=moonloop-at");
    assert_string_equal(call->content_type, "application/merge-patch+json");
    assert_string_equal(call->body, "{\"metadata\":{\"uid\":\"a-uid\",\"resourceVersion\":\"102\","
                                    "\"labels\":{\"b\":null,\"a\":null}}}");
    return call;
}

static void test_exact_removes_keys_of_others_once(void **state)
{
    (void)state;
    struct world w;
    struct told told;
    open_with_others(&w, &told, NULL);
    struct fake_call *call = expect_removal(&w);
    ML_AUTO_FREE char *pod = pod_json("a", "103", "at-uid", "");
    world_answer(&w, call, 200, pod);
    world_event(&w, "MODIFIED", pod);
    expect_outcome(&told, ML_OUTCOME_OK, READY);
    assert_null(world_start(&w, &told));
    expect_outcome(&told, ML_OUTCOME_OK, READY);
    fake_expect_none(w.fake);
    world_close(&w);
}

/* Somebody wrote the object between the two requests. */
static void test_exact_begins_again_when_the_object_has_changed(void **state)
{
    (void)state;
    struct world w;
    struct told told;
    open_with_others(&w, &told, NULL);
    fake_refuse(expect_removal(&w), 409, "Conflict", "the object has been modified");
    ml_loop_poll(w.loop);
    assert_int_equal(told.outcome, ML_OUTCOME_ERROR);
    assert_int_equal(told.kind, ML_ECONFLICT);
    fake_expect_none(w.fake);
    show(&w, "MODIFIED", "a", "103", "at-uid");
    assert_non_null(world_start(&w, &told));
    accept_apply(&w, "a", "104");
    expect_outcome(&told, ML_OUTCOME_OK, READY);
    world_close(&w);
}

static void test_exact_goes_on_in_the_next_run_when_writes_are_used_up(void **state)
{
    (void)state;
    struct world w;
    struct told told;
    const struct ml_script_limits one = {.writes_max = 1};
    open_with_others(&w, &told, &one);
    expect_outcome(&told, ML_OUTCOME_OK, "");
    assert_int_equal(told.after_ns, 0);
    fake_expect_none(w.fake);
    world_close(&w);
}

static void test_only_marked_children_are_made_again(void **state)
{
    (void)state;
    struct world w;
    struct told told;
    open_world(&w, "return kids { 'a' }", NULL);
    show(&w, "ADDED", "a", "101", "at-uid");
    assert_non_null(world_start(&w, &told));
    fake_refuse(fake_next(w.fake), 422, "Invalid", "spec: Forbidden: may not change");
    ml_loop_poll(w.loop);
    expect_error(&told, "children: Pod default/a: Invalid: spec: Forbidden: may not change");
    fake_expect_none(w.fake);
    world_close(&w);
}

/* The list of the children that cannot be owned is a write to the object itself, which another one
 * may have changed or deleted by now. */
static void test_inventory_of_an_object_that_has_changed_or_gone_is_a_conflict(void **state)
{
    (void)state;
    static const struct {
        int status;
        const char *reason;
    } cases[] = {{409, "Conflict"}, {404, "NotFound"}};
    for (size_t i = 0; i < ML_COUNT(cases); i++) {
        struct world w;
        struct told told;
        open_world(
            &w,
            "local p = named 'far' p.metadata.namespace = 'other' return { children = { p } }\n"
            "end, finalize = function() ",
            NULL);
        assert_non_null(world_start(&w, &told));
        struct fake_call *call = fake_next(w.fake);
        assert_non_null(strstr(call->body, "v1 Pod other/far"));
        fake_refuse(call, cases[i].status, cases[i].reason, "sorry");
        ml_loop_poll(w.loop);
        expect_error(&told, "patch At default/x: sorry");
        assert_int_equal(told.kind, ML_ECONFLICT);
        assert_int_equal(unit_count(w.log.fd, "refused"), 0);
        fake_expect_none(w.fake);
        world_close(&w);
    }
}

static void test_lists_that_are_none_are_refused_before_any_write(void **state)
{
    (void)state;
    static const char *const cases[][2] = {
        {"return kids { 'a', 'b', 'a' }", "children: Pod default/a is there twice, at 1 and 3"},
        {"local c = named 'a' c.metadata.namespace = 'default' return { children = { c, named 'a' "
         "} }",
         "children: Pod default/a is there twice"},
        {"local l = {} for i = 1, 10000 do l[i] = 'p' .. i end return kids(l)",
         "children: 10000 objects; at most 1000"},
        {"return { children = named 'a' }",
         "children: expected a list of objects, found the key '"},
        {"return { children = 'a' }", "children: expected a list of objects, got a string"},
        {"return { children = { named 'a', nil, named 'b' } }",
         "children: a list without gaps is needed, and there is nothing at 2"},
        {"return { children = { named 'a', 5 } }",
         "children[2]: expected an object as in a manifest, got a number"},
        {"local c = named 'a' c.metadata.name = nil c.metadata.generateName = 'a-'\n"
         "return { children = { named 'b', c } }",
         "children[2]: metadata.name is missing; a generateName is for ctx.ensure and ctx.create"},
        {"return { children = { named 'a', { apiVersion = 'v1', kind = 'Secret',\n"
         "metadata = { name = 's' } } } }",
         "children[2]: Secret is not in owns; children are of the kinds in owns"},
        {"return { children = { named 'a', { apiVersion = 'v1', kind = 'Node',\n"
         "metadata = { name = 's' } } } }",
         "Node v1 is not declared"},
        {"local c = named 'a' c.metadata.namespace = 'elsewhere' return { children = { named 'b', "
         "c } }",
         "children[2]: a Pod elsewhere/a cannot be owned by a At of another namespace; declare "
         "finalize (it may be empty), and the host lists it on the At and deletes it afterwards"},
    };
    for (size_t i = 0; i < ML_COUNT(cases); i++) {
        struct world w;
        struct told told;
        open_world(&w, cases[i][0], NULL);
        show(&w, "ADDED", "stray", "101", "at-uid");
        assert_null(world_start(&w, &told));
        expect_error(&told, cases[i][1]);
        if (strncmp(told.message, "at.lua:", 7) != 0)
            fail_msg("'%s' has no place", told.message);
        fake_expect_none(w.fake);
        world_close(&w);
    }
}

/* A child that the watch leaves out may be there: the server is asked before it is made. */
static void test_child_that_the_watch_may_leave_out_is_looked_up(void **state)
{
    (void)state;
    static const struct {
        const char *owner, *want;
    } cases[] = {{NULL, NULL}, {"at-uid", NULL}, {"other-uid", "is controlled by At y"}};
    for (size_t i = 0; i < ML_COUNT(cases); i++) {
        struct world w;
        struct told told;
        world_open_file(&w, PRELUDE, "{ labels = 'app=x' }",
                        "local c = named 'a' c.metadata.labels = { app = 'x' }\n"
                        "return { children = { c } }",
                        NULL);
        assert_non_null(world_start(&w, &told));
        struct fake_call *get = fake_expect(w.fake, "GET", PODS "/a");
        ML_AUTO_FREE char *pod = cases[i].owner ? pod_json("a", "101", cases[i].owner, "") : NULL;
        world_answer(&w, get, pod ? 200 : 404, pod ? pod : NOT_FOUND);
        if (cases[i].want)
            expect_error(&told, cases[i].want);
        else
            assert_non_null(strstr(accept_apply(&w, "a", "102")->body,
                                   pod ? "\"uid\":\"a-uid\"" : "\"resourceVersion\":\"1\""));
        fake_expect_none(w.fake);
        world_close(&w);
    }
}

static void test_children_of_a_selection_by_fields_are_refused(void **state)
{
    (void)state;
    struct world w;
    struct told told;
    world_open_file(&w, PRELUDE, "{ fields = 'spec.nodeName=n' }", "return kids { 'a' }", NULL);
    assert_null(world_start(&w, &told));
    expect_error(&told, "this script watches the objects of Pod with the fields 'spec.nodeName=n' "
                        "only, and would lose sight of this one; children need a kind without "
                        "fields");
    world_close(&w);
}

/* ---- generateName ---- */

static const char *name_in(struct fake_call *call, char out[80])
{
    ML_AUTO_FREE char *name = ml_json_find_string(ml_str_of(call->body), "metadata", "name", NULL);
    snprintf(out, 80, "%s", name ? name : "");
    return out;
}

static void test_generated_names_are_the_same_in_each_run(void **state)
{
    (void)state;
    char first[2][80], again[80];
    struct world w;
    struct told told;
    open_world(&w,
               "local c = pod(at) c.metadata = { generateName = 'job-' }\n"
               "ctx.create(c) ctx.create(c) assert(c.metadata.name == nil)",
               NULL);
    for (int run = 0; run < 2; run++) {
        assert_non_null(world_start(&w, &told));
        for (int i = 0; i < 2; i++) {
            struct fake_call *call = fake_next(w.fake);
            name_in(call, run == 0 ? first[i] : again);
            if (run > 0)
                assert_string_equal(first[i], again);
            fake_refuse(call, 403, "Forbidden", "no");
            ml_loop_poll(w.loop);
        }
        expect_outcome(&told, ML_OUTCOME_OK, "");
    }
    world_close(&w);
    assert_string_not_equal(first[0], first[1]); /* two uses of it, two objects */
    assert_int_equal(strlen(first[0]), strlen("job-") + 10);
    assert_int_equal(strncmp(first[0], "job-", 4), 0);
}

static void test_ensure_finds_the_generated_name_again(void **state)
{
    (void)state;
    struct world w;
    struct told told;
    char name[80];
    open_world(&w,
               "local c = pod(at) c.metadata = { generateName = 'job-' }\n"
               "return { status = { uid = assert(ctx.ensure(c)).metadata.uid } }",
               NULL);
    assert_non_null(world_start(&w, &told));
    struct fake_call *call = fake_next(w.fake);
    name_in(call, name);
    fake_fail(call, ML_ENETWORK, "connection reset"); /* the reply is lost, and so is the lookup */
    ml_loop_poll(w.loop);
    fake_fail(fake_next(w.fake), ML_ENETWORK, "connection reset");
    ml_loop_poll(w.loop);
    while (told.count == 0) {
        ml_clock_fake_advance(&w.clock, ML_NS_PER_S);
        ml_loop_poll(w.loop);
        if (fake_waiting(w.fake) > 1)
            fake_fail(fake_next(w.fake), ML_ENETWORK, "connection reset");
        ml_loop_poll(w.loop);
    }
    show(&w, "ADDED", name, "101", "at-uid");
    assert_null(world_start(&w, &told));
    ML_AUTO_FREE char *want = ml_asprintf("{\"uid\":\"%s-uid\"}", name);
    expect_outcome(&told, ML_OUTCOME_OK, want);
    fake_expect_none(w.fake);
    world_close(&w);
}

static void test_generated_name_is_not_for_apply(void **state)
{
    (void)state;
    struct world w;
    struct told told;
    open_world(&w,
               "ctx.apply { apiVersion = 'v1', kind = 'Pod', metadata = { generateName = 'x' } }",
               NULL);
    assert_null(world_start(&w, &told));
    expect_error(&told, "ctx.apply(object [, { adopt = }]): metadata.name is missing; a "
                        "generateName is for ctx.ensure and ctx.create");
    world_close(&w);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_children_are_applied_in_order_and_once),
        cmocka_unit_test(test_children_are_guarded),
        cmocka_unit_test(test_child_of_another_is_left_alone_and_the_rest_is_applied),
        cmocka_unit_test(test_count_of_failures_survives_a_long_one),
        cmocka_unit_test(test_nothing_is_pruned_when_a_child_is_refused),
        cmocka_unit_test(test_what_is_not_among_the_children_is_deleted_in_reverse),
        cmocka_unit_test(test_an_empty_list_prunes_and_no_list_does_not),
        cmocka_unit_test(test_pruning_waits_for_the_caches),
        cmocka_unit_test(test_what_the_run_got_otherwise_is_not_pruned),
        cmocka_unit_test(test_a_child_that_is_leaving_is_not_written_and_nothing_pruned),
        cmocka_unit_test(test_more_children_than_writes_go_on_in_the_next_run),
        cmocka_unit_test(test_more_strays_than_writes_go_on_in_the_next_run),
        cmocka_unit_test(test_recreate_deletes_the_old_and_then_makes_the_new),
        cmocka_unit_test(test_recreate_marks_any_object_and_nothing_else),
        cmocka_unit_test(test_recreate_keeps_the_old_when_the_new_is_no_good),
        cmocka_unit_test(test_recreate_does_not_delete_what_has_gone_meanwhile),
        cmocka_unit_test(test_exact_removes_keys_of_others_once),
        cmocka_unit_test(test_exact_begins_again_when_the_object_has_changed),
        cmocka_unit_test(test_exact_goes_on_in_the_next_run_when_writes_are_used_up),
        cmocka_unit_test(test_only_marked_children_are_made_again),
        cmocka_unit_test(test_inventory_of_an_object_that_has_changed_or_gone_is_a_conflict),
        cmocka_unit_test(test_lists_that_are_none_are_refused_before_any_write),
        cmocka_unit_test(test_child_that_the_watch_may_leave_out_is_looked_up),
        cmocka_unit_test(test_children_of_a_selection_by_fields_are_refused),
        cmocka_unit_test(test_generated_names_are_the_same_in_each_run),
        cmocka_unit_test(test_ensure_finds_the_generated_name_again),
        cmocka_unit_test(test_generated_name_is_not_for_apply),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
