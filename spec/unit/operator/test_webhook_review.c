/* Reviews in, answers out: what the API server is told of a script's webhooks, and of reviews that
 * are no good. */
#include "script_world.h"

#include "codec/base64.h"
#include "codec/json.h"
#include "operator/webhook_review.h"

#define DEFAULT                                                                                    \
    "default = function(o) if o.spec.bad then return 1 end o.spec.size = o.spec.size or 3 "        \
    "o.spec.old = nil end,\n"
#define VALIDATE                                                                                   \
    "validate = function(new, old, ctx)\n"                                                         \
    "  if new.spec.loop then while true do end end\n"                                              \
    "  if new.spec.raise then error('boom') end\n"                                                 \
    "  if new.spec.get then assert(ctx.get(Pod, new.spec.get)) end\n"                              \
    "  if new.spec.secret then ctx.get(Secret, 'x') end\n"                                         \
    "  if new.spec.warn then return nil, new.spec.warn end\n"                                      \
    "  if old then return { { field = 'spec', message = old.spec.size .. ' was' } } end\n"         \
    "  if new.spec.size == 0 then return ctx.invalid('spec.size', 'is zero') end\n"                \
    "  return new.spec.why\n"                                                                      \
    "end,\n"
#define CONVERT                                                                                    \
    "convert = { v1alpha1 = {\n"                                                                   \
    "  to = function(o) o.spec.size, o.spec.width = o.spec.width, nil return o end,\n"             \
    "  from = function(o) o.spec.width, o.spec.size = o.spec.size, nil return o end },\n"          \
    "v2 = { to = function(o) if o.spec.raise then error('boom') end\n"                             \
    "    if o.spec.rename then o.metadata.name = 'y' end if o.spec.uid then o.metadata.uid = nil " \
    "end\n"                                                                                        \
    "    o.metadata.resourceVersion = '0' o.metadata.labels = { a = 'b' } end,\n"                  \
    "  from = function(o) o.spec.two = true end } },\n"

/* `extra`: fields of the controller. Its reconcile does nothing. */
static void open_hooks(struct world *w, const char *extra)
{
    ML_AUTO_FREE char *body = ml_asprintf("end,\n%swhen = function() return true", extra);
    world_open(w, body, &(struct ml_script_limits){0}); /* as a host's: some never end */
}

/* The answer, to free; its status in `status`. */
static char *ask(struct world *w, enum ml_webhook webhook, const char *body, int *status)
{
    struct ml_review *review = ml_review_new(webhook, w->script, ml_str_of(body));
    struct ml_review_answer answer;
    int steps = 0;
    while (!ml_review_step(review, &answer))
        assert_true(++steps < 100);
    *status = answer.status;
    char *text = ml_str_dup(answer.body);
    ml_review_free(review);
    return text;
}

static char *admission(const char *operation, const char *object, const char *old)
{
    return ml_asprintf(
        "{\"apiVersion\":\"admission.k8s.io/v1\",\"kind\":\"AdmissionReview\","
        "\"request\":{\"uid\":\"u-1\",\"operation\":\"%s\",\"namespace\":\"default\","
        "\"name\":\"x\",\"object\":%s,\"oldObject\":%s}}",
        operation, object, old);
}

static char *at(const char *spec)
{
    return ml_asprintf("{\"apiVersion\":\"example.com/v1\",\"kind\":\"At\",\"metadata\":{\"name\":"
                       "\"x\",\"namespace\":\"default\",\"managedFields\":[{\"manager\":\"m\"}]},"
                       "\"spec\":%s}",
                       spec);
}

static void expect_answer(struct world *w, enum ml_webhook webhook, const char *spec, int status,
                          const char *text)
{
    ML_AUTO_FREE char *object = at(spec);
    ML_AUTO_FREE char *review = admission("CREATE", object, "null");
    int is;
    ML_AUTO_FREE char *answer = ask(w, webhook, review, &is);
    if (is != status || !strstr(answer, text))
        fail_msg("%s: %d %s", spec, is, answer);
}

static void test_review_default_answers_with_a_patch(void **state)
{
    (void)state;
    struct world w;
    int status;
    open_hooks(&w, DEFAULT);
    ML_AUTO_FREE char *object = at("{\"old\":1}");
    ML_AUTO_FREE char *review = admission("UPDATE", object, "null");
    ML_AUTO_FREE char *answer = ask(&w, ML_WEBHOOK_DEFAULT, review, &status);
    ML_AUTO_FREE char *patch = ml_json_find_string(ml_str_of(answer), "response", "patch", NULL);
    ML_AUTO(ml_buf_fini) struct ml_buf decoded = ML_BUF_INIT;
    assert_int_equal(status, 200);
    assert_non_null(strstr(answer, "\"uid\":\"u-1\",\"allowed\":true,\"patchType\":\"JSONPatch\""));
    assert_true(ml_base64_decode(ml_str_of(patch), &decoded));
    assert_string_equal(ml_buf_cstr(&decoded), "[{\"op\":\"remove\",\"path\":\"/spec/old\"},"
                                               "{\"op\":\"add\",\"path\":\"/spec/size\","
                                               "\"value\":3}]");
    expect_answer(&w, ML_WEBHOOK_DEFAULT, "{\"size\":1}", 200,
                  "\"response\":{\"uid\":\"u-1\",\"allowed\":true}}");
    expect_answer(&w, ML_WEBHOOK_DEFAULT, "{\"bad\":1}", 500, "at.lua:");
    world_close(&w);
}

static void test_review_validate_says_what_the_script_says(void **state)
{
    (void)state;
    struct world w;
    open_hooks(&w, VALIDATE);
    static const struct {
        const char *spec;
        int status;
        const char *text;
    } cases[] = {
        {"{}", 200, "\"allowed\":true"},
        {"{\"why\":\"no\"}", 200, "\"allowed\":false"},
        {"{\"why\":\"no\"}", 200, "\"message\":\"no\""},
        {"{\"why\":\"no\"}", 200, "\"code\":422"},
        {"{\"size\":0}", 200, "\"field\":\"spec.size\""},
        {"{\"size\":0}", 200, "\"message\":\"spec.size: is zero\""},
        {"{\"warn\":\"a\\nb\"}", 200, "\"warnings\":[\"a b\"]"},
        {"{\"warn\":[\"a\",\"b\"]}", 200, "\"allowed\":true,\"warnings\":[\"a\",\"b\"]"},
        {"{\"warn\":7}", 500,
         "validate returned a second result that is no warning: expected a string"},
        {"{\"why\":7}", 500, "validate returned a number; expected nothing"},
        {"{\"why\":[{\"field\":\"a\"}]}", 500, "entry 1: expected { field =, message = }"},
        {"{\"why\":{\"field\":\"a\"}}", 500, "expected a list of { field =, message = }"},
        {"{\"raise\":true}", 500, "boom"},
        {"{\"loop\":true}", 500, "ms of CPU time"},
        {"{\"get\":\"none\"}", 500, "not found"},
        {"{\"secret\":true}", 500, "a watch function or a webhook cannot wait"},
    };
    for (size_t i = 0; i < ML_COUNT(cases); i++)
        expect_answer(&w, ML_WEBHOOK_VALIDATE, cases[i].spec, cases[i].status, cases[i].text);
    ML_AUTO_FREE char *new = at("{}");
    ML_AUTO_FREE char *old = at("{\"size\":5}");
    ML_AUTO_FREE char *review = admission("UPDATE", new, old);
    int status;
    ML_AUTO_FREE char *answer = ask(&w, ML_WEBHOOK_VALIDATE, review, &status);
    assert_non_null(strstr(answer, "\"message\":\"spec: 5 was\""));
    world_close(&w);
}

/* A warning is cut at 256 bytes, between two characters; more than 16 are dropped. */
static void test_review_validate_warnings_have_limits(void **state)
{
    (void)state;
    struct world w;
    open_hooks(&w, "validate = function() local all = {} for i = 1, 100 do\n"
                   "all[i] = ('x') .. ('\xc3\xbc'):rep(500) end return nil, all end,\n");
    ML_AUTO_FREE char *object = at("{}");
    ML_AUTO_FREE char *review = admission("CREATE", object, "null");
    int status;
    ML_AUTO_FREE char *answer = ask(&w, ML_WEBHOOK_VALIDATE, review, &status);
    struct ml_str raw;
    assert_int_equal(status, 200);
    assert_true(ml_json_find(ml_str_of(answer), &raw, "response", "warnings", "15", NULL));
    assert_int_equal(raw.len, 2 + 255);
    assert_false(ml_json_find(ml_str_of(answer), &raw, "response", "warnings", "16", NULL));
    world_close(&w);
}

static void test_review_of_what_goes_or_is_no_write_is_allowed(void **state)
{
    (void)state;
    struct world w;
    int status;
    open_hooks(&w, "validate = function() return 'never' end,\n");
    static const char *const reviews[] = {
        "{\"apiVersion\":\"admission.k8s.io/v1\",\"kind\":\"AdmissionReview\",\"request\":{"
        "\"uid\":\"u-1\",\"operation\":\"DELETE\",\"object\":null,\"oldObject\":{}}}",
        "{\"apiVersion\":\"admission.k8s.io/v1\",\"kind\":\"AdmissionReview\",\"request\":{"
        "\"uid\":\"u-1\",\"operation\":\"UPDATE\",\"subResource\":\"scale\",\"object\":{}}}",
        "{\"apiVersion\":\"admission.k8s.io/v1\",\"kind\":\"AdmissionReview\",\"request\":{"
        "\"uid\":\"u-1\",\"operation\":\"UPDATE\",\"object\":{\"apiVersion\":\"example.com/v1\","
        "\"kind\":\"At\",\"metadata\":{\"name\":\"x\",\"deletionTimestamp\":\"2026-01-01T00:00:"
        "00Z\""
        "}}}}",
    };
    for (size_t i = 0; i < ML_COUNT(reviews); i++) {
        ML_AUTO_FREE char *answer = ask(&w, ML_WEBHOOK_VALIDATE, reviews[i], &status);
        assert_int_equal(status, 200);
        assert_non_null(strstr(answer, "\"allowed\":true"));
    }
    expect_answer(&w, ML_WEBHOOK_VALIDATE, "{}", 200, "\"message\":\"never\"");
    expect_answer(&w, ML_WEBHOOK_DEFAULT, "{}", 200, "\"allowed\":true}"); /* it has none */
    world_close(&w);
}

static void test_review_that_is_none_is_a_bad_request(void **state)
{
    (void)state;
    struct world w;
    int status;
    open_hooks(&w, VALIDATE);
    static const char *const cases[][2] = {
        {"", "the body is no JSON"},
        {"{", "the body is no JSON"},
        {"[]", "expected AdmissionReview of admission.k8s.io/v1, got nothing of nothing"},
        {"{\"apiVersion\":\"admission.k8s.io/v1beta1\",\"kind\":\"AdmissionReview\"}",
         "got AdmissionReview of admission.k8s.io/v1beta1; the configuration's "
         "admissionReviewVersions is [\"v1\"]"},
        {"{\"apiVersion\":\"admission.k8s.io/v1\",\"kind\":\"AdmissionReview\"}",
         "the review has no request with a uid"},
        {"{\"apiVersion\":\"admission.k8s.io/v1\",\"kind\":\"AdmissionReview\",\"request\":{"
         "\"uid\":\"\"}}",
         "the review has no request with a uid"},
        {"{\"apiVersion\":\"admission.k8s.io/v1\",\"kind\":\"AdmissionReview\",\"request\":{"
         "\"uid\":\"u\",\"operation\":\"CREATE\",\"object\":{\"apiVersion\":\"example.com/v9\","
         "\"kind\":\"At\"}}}",
         "the review is about At of example.com/v9; controller at reconciles At of example.com/v1"},
    };
    for (size_t i = 0; i < ML_COUNT(cases); i++) {
        ML_AUTO_FREE char *answer = ask(&w, ML_WEBHOOK_VALIDATE, cases[i][0], &status);
        if (status != 400 || !strstr(answer, cases[i][1]))
            fail_msg("%s: %d %s", cases[i][0], status, answer);
    }
    ML_AUTO_FREE char *deep = ml_zalloc(400);
    memset(deep, '[', 300);
    ML_AUTO_FREE char *answer = ask(&w, ML_WEBHOOK_CONVERT, deep, &status);
    assert_int_equal(status, 400);
    world_close(&w);
}

static char *conversion(const char *version, const char *objects)
{
    return ml_asprintf("{\"apiVersion\":\"apiextensions.k8s.io/v1\",\"kind\":\"ConversionReview\","
                       "\"request\":{\"uid\":\"u-2\",\"desiredAPIVersion\":\"%s\",\"objects\":%s}}",
                       version, objects);
}

#define OBJECT(version, spec)                                                                      \
    "{\"apiVersion\":\"example.com/" version "\",\"kind\":\"At\",\"metadata\":{\"name\":\"x\","    \
    "\"uid\":\"u\",\"resourceVersion\":\"7\"},\"spec\":" spec "}"

static void test_review_convert_goes_by_way_of_the_reconciled_version(void **state)
{
    (void)state;
    struct world w;
    open_hooks(&w, CONVERT);
    static const char *const cases[][3] = {
        {"example.com/v1", "[]", "\"convertedObjects\":[],\"result\":{\"status\":\"Success\"}"},
        {"example.com/v1", "[" OBJECT("v1alpha1", "{\"width\":1}") "," OBJECT("v1", "{}") "]",
         "\"convertedObjects\":[" OBJECT("v1", "{\"size\":1}") "," OBJECT("v1", "{}") "]"},
        {"example.com/v1alpha1", "[" OBJECT("v1", "{\"size\":1}") "]",
         "[" OBJECT("v1alpha1", "{\"width\":1}") "]"},
        {"example.com/v2", "[" OBJECT("v1alpha1", "{\"width\":1}") "]",
         "[" OBJECT("v2", "{\"size\":1,\"two\":true}") "]"},
        /* of the metadata, labels are the function's, the rest is the object's */
        {"example.com/v1", "[" OBJECT("v2", "{}") "]",
         "\"resourceVersion\":\"7\",\"labels\":{\"a\":\"b\"}}"},
        {"example.com/v1", "[" OBJECT("v2", "{\"rename\":1}") "]",
         "\"convertedObjects\":[],\"result\":{\"status\":\"Failure\",\"message\":\"x: at.lua: "
         "convert.v2.to returned an object with another metadata.name: "},
        {"example.com/v1", "[" OBJECT("v2", "{\"uid\":1}") "]",
         "another metadata.uid: nothing instead of "},
        {"example.com/v1", "[" OBJECT("v2", "{\"raise\":1}") "]", "boom"},
        {"example.com/v1", "[" OBJECT("v1", "{}") "," OBJECT("v2", "{\"raise\":1}") "]",
         "\"convertedObjects\":[],\"result\":{\"status\":\"Failure\""},
        {"example.com/v9", "[" OBJECT("v1", "{}") "]",
         "at.lua: convert has no functions for example.com/v9"},
        {"other.com/v2", "[" OBJECT("v1", "{}") "]", "convert has no functions for other.com/v2"},
        {"example.com/v1", "[7]", "an entry in objects that is no object"},
    };
    for (size_t i = 0; i < ML_COUNT(cases); i++) {
        ML_AUTO_FREE char *review = conversion(cases[i][0], cases[i][1]);
        int status;
        ML_AUTO_FREE char *answer = ask(&w, ML_WEBHOOK_CONVERT, review, &status);
        struct ml_err err;
        assert_int_equal(ml_json_check(ml_str_of(answer), 0, &err), 0);
        if (status != 200 || !strstr(answer, cases[i][2]) || !strstr(answer, "\"uid\":\"u-2\""))
            fail_msg("%s: %d %s", cases[i][1], status, answer);
    }
    world_close(&w);
}

/* Before its caches are complete a script answers, but for what it reads. */
static void test_review_reads_fail_before_the_caches_are_complete(void **state)
{
    (void)state;
    struct world w;
    open_hooks(&w, VALIDATE CONVERT);
    ml_script_bind(w.script, &(struct ml_script_binding){.kinds = NULL});
    expect_answer(&w, ML_WEBHOOK_VALIDATE, "{}", 200, "\"allowed\":true");
    expect_answer(&w, ML_WEBHOOK_VALIDATE, "{\"get\":\"a\"}", 500,
                  "the caches of this script are not complete yet");
    world_close(&w);
}

/* Each bad deed or result of a function is an error of that call, and the next one works. */
static void test_review_hostile_functions_fail_alone(void **state)
{
    (void)state;
    static const char *const bodies[] = {
        "o.self = o return o",
        "o.f = error return o",
        "o.spec.deep = {} local at = o.spec.deep for _ = 1, 200 do at.x = {} at = at.x end return "
        "o",
        "o.spec.text = ('x'):rep(1000000):rep(9) return o",
        "local t = {} while true do t[#t + 1] = ('x'):rep(100000) .. #t end",
        "return setmetatable({}, { __index = error, __pairs = error })",
        "return setmetatable({ 1 }, { __index = error })",
        "return { { field = 'a', message = error } }",
        "return { [3] = 1 }",
        "error({})",
        "error(nil)",
        "error(setmetatable({}, { __tostring = function() while true do end end }))",
        "o.metadata = 7 return o",
        "o.kind = 'Pod' return o",
        "o.apiVersion = 'v1' return o",
        "o.spec.text = '\\xff' return o",
        "o.spec.n = 0 / 0 return o",
        "local function f() return f() + 1 end return f()",
        "string.rep(('a'):rep(20) .. 'b', 20):find(('a-'):rep(20) .. 'c')",
    };
    for (size_t i = 0; i < ML_COUNT(bodies); i++) {
        struct world w;
        ML_AUTO_FREE char *extra = ml_asprintf(
            "default = function(o) if o.spec.good then return end %s end,\n"
            "validate = function(o) if o.spec.good then return end %s end,\n",
            bodies[i], bodies[i]);
        open_hooks(&w, extra);
        for (int round = 0; round < 2; round++) {
            expect_answer(&w, ML_WEBHOOK_DEFAULT, "{}", 500, "");
            expect_answer(&w, ML_WEBHOOK_VALIDATE, "{\"good\":true}", 200, "\"allowed\":true");
            expect_answer(&w, ML_WEBHOOK_DEFAULT, "{\"good\":true}", 200, "\"allowed\":true");
        }
        ML_AUTO_FREE char *object = at("{}");
        ML_AUTO_FREE char *review = admission("CREATE", object, "null");
        int status;
        ML_AUTO_FREE char *answer = ask(&w, ML_WEBHOOK_VALIDATE, review, &status);
        assert_true(status == 500 || status == 200);
        world_close(&w);
    }
}

static void test_review_paths(void **state)
{
    (void)state;
    static const char *const none[] = {"",          "/",           "default/a", "/default",
                                       "/default/", "/default/a/", "/other/a",  "//a"};
    enum ml_webhook webhook;
    struct ml_str name;
    for (size_t i = 0; i < ML_COUNT(none); i++)
        assert_false(ml_webhook_parse(ml_str_of(none[i]), &webhook, &name));
    assert_true(ml_webhook_parse(ML_STR("/convert/my-at"), &webhook, &name));
    assert_int_equal(webhook, ML_WEBHOOK_CONVERT);
    assert_true(ml_str_is(name, "my-at"));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_review_default_answers_with_a_patch),
        cmocka_unit_test(test_review_validate_says_what_the_script_says),
        cmocka_unit_test(test_review_validate_warnings_have_limits),
        cmocka_unit_test(test_review_of_what_goes_or_is_no_write_is_allowed),
        cmocka_unit_test(test_review_that_is_none_is_a_bad_request),
        cmocka_unit_test(test_review_convert_goes_by_way_of_the_reconciled_version),
        cmocka_unit_test(test_review_reads_fail_before_the_caches_are_complete),
        cmocka_unit_test(test_review_hostile_functions_fail_alone),
        cmocka_unit_test(test_review_paths),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
