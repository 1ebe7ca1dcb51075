/* moonloop.index, and ctx.list by an index and by fields: what is found, what waits, what fails and
 * what a lookup reads. */
#include "script_world.h"

#include "script/internal.h"

/* A world whose script has an index of Pods, told of their changes as revision.c does it. */
struct indexed {
    struct world w;
    struct ml_listener listener;
    struct ml_slices *slices;
    struct ml_cpu_account cpu_account;
    size_t failures;
    char why[ML_ERR_MESSAGE_MAX];
};

static void on_change(void *context, struct ml_informer *informer, struct ml_object *old,
                      struct ml_object *new)
{
    struct indexed *self = context;
    (void)informer;
    ml_script_index_change(self->w.script, 1, old, new);
    ml_script_index_change(self->w.script, 2, old, new); /* Pods are declared twice */
}

static void on_synced(void *context, struct ml_informer *informer)
{
    (void)context, (void)informer;
}

static void on_failed(void *context, size_t kind, struct ml_object *object,
                      const struct ml_err *err)
{
    struct indexed *self = context;
    assert_int_equal(kind, 1);
    assert_non_null(object);
    self->failures++;
    snprintf(self->why, sizeof self->why, "%s", err->message);
}

static void nothing_idle(void *context)
{
    (void)context;
}

/* `keys`: the body of the index's function of a pod. */
static void open_limited(struct indexed *self, const char *keys, const char *selection,
                         const char *body, const struct ml_script_limits *limits)
{
    static const char list[] =
        "local function list(ctx, key, more) local names, options = {}, more or {}\n"
        "options.index, options.key = INDEX, key\n"
        "for _, pod in ipairs(ctx.list(Pod, options)) do names[#names + 1] = pod.metadata.name "
        "end\n"
        "return table.concat(names, ' ') end\n";
    ML_AUTO_FREE char *text = ml_asprintf(
        "local INDEX = moonloop.index(Pod, function(pod)\n%s\nend)\n%s", keys, list);
    *self = (struct indexed){.failures = 0};
    world_open_file(&self->w, text, selection, body, limits);
    self->slices = ml_slices_new(self->w.loop, false);
    ml_cpu_account_init(&self->cpu_account, self->slices, nothing_idle, NULL);
    ml_script_bind(self->w.script, &(struct ml_script_binding){.kinds = self->w.kinds,
                                                               .informers = self->w.in,
                                                               .expectations = self->w.expectations,
                                                               .cpu_account = &self->cpu_account});
    ml_script_on_index_failed(self->w.script, on_failed, self);
    self->listener = (struct ml_listener){
        .change = on_change, .synced = on_synced, .context = self};
    ml_informer_listen(self->w.pods, &self->listener);
    ml_loop_poll(self->w.loop);
}

static void open_index(struct indexed *self, const char *keys, const char *body)
{
    open_limited(self, keys, "nil", body, NULL);
}

static void close_all(struct indexed *self)
{
    ml_informer_unlisten(&self->listener);
    ml_cpu_account_fini(&self->cpu_account);
    ml_script_bind(self->w.script,
                   &(struct ml_script_binding){.kinds = self->w.kinds,
                                               .informers = self->w.in,
                                               .expectations = self->w.expectations});
    ml_slices_free(self->slices);
    world_close(&self->w);
}

/* A pod of namespace default; `spec` is JSON. */
static void pod_event(struct indexed *self, const char *type, const char *name, int rv,
                      const char *spec)
{
    ML_AUTO_FREE char *object = ml_asprintf(
        "{\"apiVersion\":\"v1\",\"kind\":\"Pod\",\"metadata\":{\"name\":\"%s\",\"namespace\":"
        "\"default\",\"uid\":\"u-%s\",\"resourceVersion\":\"%d\"},\"spec\":%s}",
        name, name, rv, spec);
    world_event(&self->w, type, object);
}

static void expect_status(struct indexed *self, const char *status)
{
    struct told told;
    ML_AUTO_FREE char *want = ml_asprintf("{\"n\":\"%s\"}", status);
    struct ml_run *run = world_start(&self->w, &told);
    (void)run;
    expect_outcome(&told, ML_OUTCOME_OK, want);
}

static void expect_error(struct indexed *self, const char *part)
{
    struct told told;
    world_start(&self->w, &told);
    if (told.count != 1 || told.outcome != ML_OUTCOME_ERROR || !strstr(told.message, part))
        fail_msg("'%s' is not in '%s'", part, told.message);
}

static void test_index_finds_the_objects_of_a_key(void **state)
{
    (void)state;
    struct indexed self;
    open_index(&self, "return { pod.spec.node }", "return { status = { n = list(ctx, 'n1') } }");
    expect_status(&self, "");
    pod_event(&self, "ADDED", "b", 101, "{\"node\":\"n1\"}");
    pod_event(&self, "ADDED", "a", 102, "{\"node\":\"n1\"}");
    pod_event(&self, "ADDED", "c", 103, "{\"node\":\"n2\"}");
    pod_event(&self, "ADDED", "d", 104, "{}");
    expect_status(&self, "a b");
    pod_event(&self, "MODIFIED", "c", 105, "{\"node\":\"n1\"}");
    pod_event(&self, "MODIFIED", "a", 106, "{\"node\":\"n2\"}");
    expect_status(&self, "b c");
    pod_event(&self, "MODIFIED", "b", 107, "{\"node\":\"n1\",\"x\":1}");
    expect_status(&self, "b c");
    pod_event(&self, "DELETED", "b", 108, "{\"node\":\"n1\"}");
    expect_status(&self, "c");
    assert_int_equal(self.failures, 0);
    close_all(&self);
}

static void test_index_takes_several_keys_one_or_none(void **state)
{
    (void)state;
    struct indexed self;
    open_index(
        &self, "return pod.spec.keys",
        "return { status = { n = list(ctx, 'x') .. '/' .. list(ctx, 'y') .. '/' .. list(ctx, '') }"
        " }");
    pod_event(&self, "ADDED", "a", 101, "{\"keys\":[\"x\",\"y\",\"x\"]}");
    pod_event(&self, "ADDED", "b", 102, "{\"keys\":\"y\"}");
    pod_event(&self, "ADDED", "c", 103, "{\"keys\":[]}");
    pod_event(&self, "ADDED", "d", 104, "{}");
    pod_event(&self, "ADDED", "e", 105, "{\"keys\":[\"\"]}");
    expect_status(&self, "a/a b/e");
    assert_int_equal(self.failures, 0);
    close_all(&self);
}

static void test_index_lookup_is_filtered_as_every_list(void **state)
{
    (void)state;
    struct indexed self;
    open_index(
        &self, "return pod.spec.node",
        "return { status = { n = list(ctx, 'n1', { fields = { ['spec.role'] = 'db' } }) .. '/' ..\n"
        "list(ctx, 'n1', { owned = true }) .. '/' .. list(ctx, 'n1', { namespace = 'other' }) ..\n"
        "'/' .. list(ctx, 'n1', { labels = { app = 'x' } }) } }");
    pod_event(&self, "ADDED", "a", 101, "{\"node\":\"n1\",\"role\":\"db\"}");
    pod_event(&self, "ADDED", "b", 102, "{\"node\":\"n1\",\"role\":\"web\"}");
    world_event(&self.w, "ADDED",
                "{\"apiVersion\":\"v1\",\"kind\":\"Pod\",\"metadata\":{\"name\":\"c\","
                "\"namespace\":\"default\",\"uid\":\"c\",\"resourceVersion\":\"103\",\"labels\":{"
                "\"app\":\"x\"},\"ownerReferences\":[{\"apiVersion\":\"example.com/v1\",\"kind\":"
                "\"At\",\"name\":\"x\",\"uid\":\"at-uid\",\"controller\":true}]},"
                "\"spec\":{\"node\":\"n1\"}}");
    expect_status(&self, "a/c//c");
    close_all(&self);
}

static void test_list_by_fields_compares_as_the_server_does(void **state)
{
    (void)state;
    static const struct {
        const char *path, *value, *want;
    } cases[] = {
        {"spec.s", "x", "a"},
        {"spec.n", "3", "a"},
        {"spec.f", "1.5", "a"},
        {"spec.b", "true", "a"},
        {"spec.s", "", "b"},
        {"spec.none.deep", "", "a b"},
        {"spec.o", "", "b"},
        {"spec.list", "", "b"},
        {"spec.list.0", "x", ""},
        {"metadata.name", "b", "b"},
        {"spec.null", "", "a b"},
        {"spec.s.t", "", "a b"},
        {"metadata.namespace", "default", "a b"},
    };
    for (size_t i = 0; i < ML_COUNT(cases); i++) {
        struct indexed self;
        ML_AUTO_FREE char *body = ml_asprintf(
            "local names = {} for _, p in ipairs(ctx.list(Pod, { fields = { ['%s'] = '%s' } })) "
            "do\n"
            "names[#names + 1] = p.metadata.name end\n"
            "return { status = { n = table.concat(names, ' ') } }",
            cases[i].path, cases[i].value);
        open_index(&self, "", body);
        pod_event(&self, "ADDED", "a", 101,
                  "{\"s\":\"x\",\"n\":3,\"f\":1.5,\"b\":true,\"o\":{\"p\":1},\"list\":[\"x\"],"
                  "\"null\":null}");
        pod_event(&self, "ADDED", "b", 102, "{}");
        expect_status(&self, cases[i].want);
        close_all(&self);
    }
}

static void test_list_of_what_is_not_watched_asks_by_field_selector(void **state)
{
    (void)state;
    struct world w;
    struct told told;
    world_open(&w,
               "ctx.list(Secret, { labels = { a = 'b' }, fields = { ['metadata.name'] = 's',\n"
               "type = 'a,b=c' } })",
               NULL);
    assert_non_null(world_start(&w, &told));
    struct fake_call *call = fake_next(w.fake);
    assert_string_equal(call->path, "/api/v1/namespaces/default/secrets?labelSelector=a%3Db"
                                    "&fieldSelector=metadata.name%3Ds%2Ctype%3Da%5C%2Cb%5C%3Dc");
    world_answer(&w, call, 200, "{\"kind\":\"SecretList\",\"items\":[]}");
    expect_outcome(&told, ML_OUTCOME_OK, "");
    world_close(&w);
}

static void test_index_function_that_fails_leaves_its_object_out(void **state)
{
    (void)state;
    struct indexed self;
    open_index(&self, "if pod.spec.bad then error 'no node' end return pod.spec.node",
               "return { status = { n = list(ctx, 'n1') } }");
    pod_event(&self, "ADDED", "a", 101, "{\"node\":\"n1\"}");
    pod_event(&self, "ADDED", "b", 102, "{\"node\":\"n1\"}");
    expect_status(&self, "a b");
    pod_event(&self, "MODIFIED", "a", 103, "{\"node\":\"n1\",\"bad\":true}");
    expect_status(&self, "b");
    assert_int_equal(self.failures, 1);
    assert_string_equal(self.why, "at.lua:12: no node");
    pod_event(&self, "MODIFIED", "a", 104, "{\"node\":\"n1\"}");
    expect_status(&self, "a b");
    assert_int_equal(self.failures, 1);
    close_all(&self);
}

static void test_index_function_has_limits(void **state)
{
    (void)state;
    static const struct {
        const char *keys, *why;
    } cases[] = {
        {"return 3", "or nothing: got a number"},
        {"return true", "or nothing: got a boolean"},
        {"return { 'a', 3 }", "or nothing: got a number"},
        {"return { {} }", "or nothing: got a table"},
        {"return { name = 'x' }", "or nothing: this is no list"},
        {"return { 'a', n = 1 }", "or nothing: this is no list"},
        {"return pod", "or nothing: this is no list"},
        {"return ('x'):rep(254)", "a key has at most 253 bytes"},
        {"local t = {} for i = 1, 65 do t[i] = 'k' .. i end return t",
         "an object has at most 64 keys"},
        {"while true do end", "at.lua:12: used more than"},
        {"return pod.spec.deep.er", "attempt to index a nil value"},
        {"error 'no'", "at.lua:12: no"},
    };
    for (size_t i = 0; i < ML_COUNT(cases); i++) {
        struct indexed self;
        open_index(&self, cases[i].keys, "return { status = { n = list(ctx, 'n1') } }");
        pod_event(&self, "ADDED", "a", 101, "{\"node\":\"n1\"}");
        expect_status(&self, "");
        if (self.failures != 1 || !strstr(self.why, cases[i].why))
            fail_msg("%s: %zu failures, %s", cases[i].keys, self.failures, self.why);
        close_all(&self);
    }
}

static void test_index_that_needs_too_much_memory_answers_nothing_wrong(void **state)
{
    (void)state;
    struct indexed self;
    const struct ml_script_limits limits = {.memory_max = (size_t)900 * 1024};
    open_limited(
        &self,
        "local t = {} for i = 1, 64 do t[i] = ('x'):rep(200) .. pod.metadata.name .. i end "
        "return t",
        "nil", "return { status = { n = list(ctx, 'n1') } }", &limits);
    for (int i = 0; i < 100; i++) {
        ML_AUTO_FREE char *name = ml_asprintf("p%d", i);
        pod_event(&self, "ADDED", name, 101 + i, "{}");
        ml_script_index_work(self.w.script);
    }
    assert_int_equal(self.failures, 1);
    assert_non_null(strstr(self.why, "at.lua:11: moonloop.index holds nothing any more: out of"));
    expect_error(&self, "the index of Pod needs more memory than the script has");
    assert_true(ml_script_budget(self.w.script)->used < (size_t)500 * 1024);
    close_all(&self);
}

static void test_index_is_worked_off_in_pieces_and_a_lookup_waits(void **state)
{
    (void)state;
    struct indexed self;
    open_index(
        &self, "for i = 1, 20000 do end return 'k'",
        "return { status = { n = tostring(#ctx.list(Pod, { index = INDEX, key = 'k' })) } }");
    for (int i = 0; i < 200; i++) {
        ML_AUTO_FREE char *name = ml_asprintf("p%d", i);
        pod_event(&self, "ADDED", name, 101 + i, "{}");
    }
    assert_true(ml_script_index_pending(self.w.script));
    assert_false(ml_script_index_work(self.w.script));
    struct told told = {.count = 0};
    struct ml_run *run = ml_script_reconcile(self.w.script, self.w.at, "0000abcd", world_done,
                                             &told);
    assert_non_null(run);
    for (int rounds = 0; rounds < 1000 && told.count == 0; rounds++)
        ml_loop_poll(self.w.loop);
    expect_outcome(&told, ML_OUTCOME_OK, "{\"n\":\"200\"}");
    assert_false(ml_script_index_pending(self.w.script));
    close_all(&self);
}

static void test_index_run_that_waits_can_be_canceled(void **state)
{
    (void)state;
    struct indexed self;
    struct told told = {.count = 0};
    open_index(&self, "return 'k'", "return { status = { n = list(ctx, 'k') } }");
    pod_event(&self, "ADDED", "a", 101, "{}");
    struct ml_run *run = ml_script_reconcile(self.w.script, self.w.at, "0000abcd", world_done,
                                             &told);
    assert_non_null(run);
    ml_script_cancel(run);
    ml_loop_poll(self.w.loop);
    assert_int_equal(told.count, 0);
    close_all(&self);
}

static void no_key(void *context, struct ml_str key)
{
    (void)context, (void)key;
    fail();
}

/* A function that cannot wait gets an error, rather than a part. */
static void test_index_that_is_not_complete_is_an_error_where_nothing_waits(void **state)
{
    (void)state;
    struct world w;
    struct ml_err err = ML_ERR_INIT;
    world_open_file(&w,
                    "local INDEX = moonloop.index(Pod, function() return 'k' end)\n"
                    "map = function(pod, ctx) local all = ctx.list(Pod, { index = INDEX, key = 'k' "
                    "}) assert(#all == 1) end\n",
                    "nil", "", NULL);
    ML_AUTO_FREE char *json = world_pod_json("110", NULL);
    world_event(&w, "ADDED", json);
    struct ml_object *pod = ml_store_get(ml_informer_store(w.pods), ML_STR("default/x-pod"));
    ml_script_index_change(w.script, 1, NULL, pod);
    assert_int_equal(ml_script_map(w.script, 2, pod, no_key, NULL, &err), ML_ESCRIPT);
    assert_non_null(strstr(err.message, "index: it is not complete yet"));
    assert_true(ml_script_index_work(w.script));
    if (ml_script_map(w.script, 2, pod, no_key, NULL, &err) < 0)
        fail_msg("%s", err.message);
    world_close(&w);
}

static void test_index_in_a_watch_function(void **state)
{
    (void)state;
    struct ml_err err;
    static const char text[] =
        "local m = require 'moonloop' local Pod = m.kind('v1', 'Pod')\n"
        "local Map = m.kind('v1', 'ConfigMap')\n"
        "local by_map = m.index(Pod, function(pod) return pod.spec.map end)\n"
        "return m.controller { name = 'x', reconciles = Pod, reconcile = function() end,\n"
        "watches = { m.watch(Map, function(map, ctx) return ctx.list(Pod, { index = by_map,\n"
        "key = map.metadata.name }) end) } }";
    struct ml_script *script = load_file("t.lua", text, NULL, &err);
    if (!script)
        fail_msg("%s", err.message);
    assert_true(ml_script_indexes(script, 0));
    assert_false(ml_script_indexes(script, 1));
    ml_script_unref(script);
}

static void test_index_is_refused_where_there_is_nothing_to_look_up(void **state)
{
    (void)state;
    static const char head[] = "local m = require 'moonloop' local Pod = m.kind('v1', 'Pod')\n"
                               "local Map = m.kind('v1', 'ConfigMap')\n";
    static const char foot[] =
        "\nreturn m.controller { name = 'x', reconciles = Pod, uses = { Map },\n"
        "reconcile = function() end }";
    static const struct {
        const char *made, *why;
    } cases[] = {
        {"m.index(Map, error)", "moonloop.index: ConfigMap is not watched"},
        {"m.index(m.kind('v1', 'Node'), function() end)", "moonloop.index: Node is not watched"},
        {"m.index(Pod)", "t.lua:3: moonloop.index(Kind, function(object) … end): expected a kind"},
        {"m.index('Pod', error)", "expected a kind and a function"},
        {"for i = 1, 9 do m.index(Pod, error) end", "more than 8 indexes"},
    };
    for (size_t i = 0; i < ML_COUNT(cases); i++) {
        struct ml_err err;
        ML_AUTO_FREE char *text = ml_asprintf("%s%s%s", head, cases[i].made, foot);
        struct ml_script *script = load_file("t.lua", text, NULL, &err);
        ml_script_unref(script);
        if (script || !strstr(err.message, cases[i].why))
            fail_msg("%s: %s", cases[i].made, script ? "not refused" : err.message);
    }
}

static void test_index_lookup_that_makes_no_sense_is_refused(void **state)
{
    (void)state;
    static const struct {
        const char *call, *why;
    } cases[] = {
        {"ctx.list(Pod, { index = INDEX })", "key: expected the string to look up"},
        {"ctx.list(Pod, { index = INDEX, key = 3 })", "key: expected the string to look up"},
        {"ctx.list(Pod, { key = 'x' })", "index: expected an index of moonloop.index, got nil"},
        {"ctx.list(Pod, { index = 'x', key = 'x' })", "index: expected an index of moonloop.index"},
        {"ctx.list(Secret, { index = INDEX, key = 'x' })",
         "index: it is one of Pod, not of Secret"},
        {"moonloop.index(Pod, error)", "an index is made while the script loads"},
        {"ctx.list(Pod, { fields = 'a=b' })", "fields: expected a table"},
        {"ctx.list(Pod, { fields = { 'a' } })", "fields: expected a table from paths to strings"},
        {"ctx.list(Pod, { fields = { a = 3 } })", "fields: expected a table from paths to strings"},
        {"ctx.list(Pod, { fields = { ['a..b'] = 'x' } })", "expected the path of a field"},
        {"ctx.list(Pod, { fields = { ['a[0]'] = 'x' } })", "expected the path of a field"},
        {"ctx.list(Pod, { fields = { [('a'):rep(254)] = 'x' } })", "expected the path of a field"},
        {"local f = {} for i = 1, 9 do f['f' .. i] = '' end ctx.list(Pod, { fields = f })",
         "fields: at most 8"},
    };
    for (size_t i = 0; i < ML_COUNT(cases); i++) {
        struct indexed self;
        open_index(&self, "return 'x'", cases[i].call);
        expect_error(&self, cases[i].why);
        close_all(&self);
    }
}

static void test_list_by_fields_of_a_part_knows_what_it_has(void **state)
{
    (void)state;
    struct indexed self;
    open_limited(&self, "", "{ metadata_only = true }",
                 "assert(#ctx.list(Pod, { fields = { ['metadata.name'] = 'a' } }) == 0)\n"
                 "ctx.list(Pod, { fields = { ['spec.nodeName'] = 'a' } })",
                 NULL);
    expect_error(&self, "watched with metadata_only, which leaves out 'spec.nodeName'");
    close_all(&self);
}

/* ---- what a lookup reads ---- */

struct reading {
    struct ml_read_set *set;
};

static void keep_reads(void *context, struct ml_result *result)
{
    struct reading *reading = context;
    if (!result->reads)
        fail_msg("%s", result->reads_gave_up);
    reading->set = ml_read_set_ref(result->reads);
}

static struct ml_object *make_pod(struct indexed *self, const char *spec)
{
    ML_AUTO_FREE char *json = ml_asprintf(
        "{\"apiVersion\":\"v1\",\"kind\":\"Pod\",\"metadata\":{"
        "\"name\":\"a\",\"namespace\":\"default\",\"uid\":\"u-a\","
        "\"resourceVersion\":\"9\"},\"spec\":%s}",
        spec);
    struct ml_object *object = NULL;
    struct ml_err err = ML_ERR_INIT;
    assert_int_equal(ml_object_new(self->w.dict, "v1", "Pod", ml_str_of(json), &object, &err), 0);
    return object;
}

/* Does a change of the pod a from one spec to another (NULL: it does not exist) touch the set? */
static bool touches(struct indexed *self, const struct reading *reading, const char *old,
                    const char *new)
{
    struct ml_object *before = old ? make_pod(self, old) : NULL;
    struct ml_object *after = new ? make_pod(self, new) : NULL;
    const struct ml_read_change change = {
        .kind = 1, .old = before, .new = after, .own_key = ML_STR("default/x")};
    bool touched = ml_read_set_touched(reading->set, &change, NULL);
    ml_object_unref(before);
    ml_object_unref(after);
    return touched;
}

static void test_index_lookup_depends_on_what_its_function_reads(void **state)
{
    (void)state;
    struct indexed self;
    struct reading reading = {NULL};
    open_index(&self,
               "local keys = {} for i, v in ipairs(pod.spec.maps) do keys[i] = v.name end "
               "return keys",
               "for _, p in ipairs(ctx.list(Pod, { index = INDEX, key = 'k' })) do\n"
               "local _ = p.spec.size end");
    pod_event(&self, "ADDED", "a", 101, "{\"maps\":[{\"name\":\"k\",\"x\":1}],\"size\":1}");
    ml_script_index_work(self.w.script);
    assert_null(ml_script_reconcile(self.w.script, self.w.at, "0000abcd", keep_reads, &reading));
#define OTHER "{\"maps\":[{\"name\":\"o\",\"x\":1}],\"y\":1}"
    assert_true(touches(&self, &reading, OTHER, "{\"maps\":[{\"name\":\"k\",\"x\":1}],\"y\":1}"));
    assert_true(touches(&self, &reading, OTHER,
                        "{\"maps\":[{\"name\":\"o\",\"x\":1},{\"name\":\"k\"}],\"y\":1}"));
    assert_true(touches(&self, &reading, OTHER, NULL));
    assert_true(touches(&self, &reading, NULL, OTHER));
    assert_true(touches(&self, &reading, OTHER,
                        "{\"maps\":[{\"name\":\"o\",\"x\":1}],\"y\":1,\"size\":2}"));
    assert_false(touches(&self, &reading, OTHER, "{\"maps\":[{\"name\":\"o\",\"x\":2}],\"y\":2}"));
    ml_read_set_unref(reading.set);
    close_all(&self);
}

static void test_index_lookup_depends_on_all_when_its_function_may(void **state)
{
    (void)state;
    struct indexed self;
    struct reading reading = {NULL};
    open_index(&self, "return math.random() < 2 and pod.spec.node",
               "return list(ctx, 'k') and nil");
    pod_event(&self, "ADDED", "a", 101, "{\"node\":\"k\"}");
    ml_script_index_work(self.w.script);
    assert_null(ml_script_reconcile(self.w.script, self.w.at, "0000abcd", keep_reads, &reading));
    assert_true(touches(&self, &reading, "{\"x\":1}", "{\"x\":2}"));
    ml_read_set_unref(reading.set);
    close_all(&self);
}

/* A counter that only the function of the index knows. */
static void test_index_function_that_remembers_ends_read_sets(void **state)
{
    (void)state;
    static const char text[] =
        "local m = require 'moonloop' local Pod = m.kind('v1', 'Pod') local calls = 0\n"
        "m.index(Pod, function(pod) calls = calls + 1 return 'k' end)\n"
        "return m.controller { name = 'x', reconciles = Pod, reconcile = function() end }";
    struct ml_err err;
    struct ml_script *script = load_file("t.lua", text, NULL, &err);
    assert_non_null(script);
    assert_null(ml_script_reads_off(script));
    struct ml_dict *dict = ml_dict_new();
    struct ml_object *pod = NULL;
    assert_int_equal(ml_object_new(dict, "v1", "Pod",
                                   ML_STR("{\"metadata\":{\"name\":\"a\",\"uid\":\"u\","
                                          "\"resourceVersion\":\"1\"}}"),
                                   &pod, &err),
                     0);
    ml_script_index_change(script, 0, NULL, pod);
    assert_true(ml_script_index_work(script));
    assert_string_equal(ml_script_reads_off(script),
                        "a local variable changed that the function at t.lua:2 uses: calls");
    ml_script_unref(script);
    ml_object_unref(pod);
    ml_dict_unref(dict);
}

static void test_list_by_fields_depends_on_them(void **state)
{
    (void)state;
    struct indexed self;
    struct reading reading = {NULL};
    open_index(&self, "", "ctx.list(Pod, { fields = { ['spec.a.b'] = 'x' } })");
    assert_null(ml_script_reconcile(self.w.script, self.w.at, "0000abcd", keep_reads, &reading));
    assert_true(touches(&self, &reading, "{\"a\":{\"b\":\"x\"}}", "{\"a\":{\"b\":\"y\"}}"));
    assert_true(touches(&self, &reading, "{}", "{\"a\":{\"b\":\"x\"}}"));
    assert_false(
        touches(&self, &reading, "{\"a\":{\"b\":\"x\"}}", "{\"a\":{\"b\":\"x\",\"c\":1}}"));
    ml_read_set_unref(reading.set);
    close_all(&self);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_index_finds_the_objects_of_a_key),
        cmocka_unit_test(test_index_takes_several_keys_one_or_none),
        cmocka_unit_test(test_index_lookup_is_filtered_as_every_list),
        cmocka_unit_test(test_list_by_fields_compares_as_the_server_does),
        cmocka_unit_test(test_list_of_what_is_not_watched_asks_by_field_selector),
        cmocka_unit_test(test_index_function_that_fails_leaves_its_object_out),
        cmocka_unit_test(test_index_function_has_limits),
        cmocka_unit_test(test_index_that_needs_too_much_memory_answers_nothing_wrong),
        cmocka_unit_test(test_index_is_worked_off_in_pieces_and_a_lookup_waits),
        cmocka_unit_test(test_index_run_that_waits_can_be_canceled),
        cmocka_unit_test(test_index_that_is_not_complete_is_an_error_where_nothing_waits),
        cmocka_unit_test(test_index_in_a_watch_function),
        cmocka_unit_test(test_index_is_refused_where_there_is_nothing_to_look_up),
        cmocka_unit_test(test_index_lookup_that_makes_no_sense_is_refused),
        cmocka_unit_test(test_list_by_fields_of_a_part_knows_what_it_has),
        cmocka_unit_test(test_index_lookup_depends_on_what_its_function_reads),
        cmocka_unit_test(test_index_lookup_depends_on_all_when_its_function_may),
        cmocka_unit_test(test_index_function_that_remembers_ends_read_sets),
        cmocka_unit_test(test_list_by_fields_depends_on_them),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
