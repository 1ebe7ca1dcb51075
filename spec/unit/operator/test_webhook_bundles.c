/* Whom API servers are told to trust, and where: on a scripted API server. */
#include "script_world.h"

#include "codec/json.h"
#include "operator/webhook_bundles.h"

#define CA       "PEM\n"
#define BUNDLE   "UEVNCg=="
#define MUTATING "/apis/admissionregistration.k8s.io/v1/mutatingwebhookconfigurations/moonloop-at"
#define VALIDATING                                                                                 \
    "/apis/admissionregistration.k8s.io/v1/validatingwebhookconfigurations/moonloop-at"
#define DEFINITION "/apis/apiextensions.k8s.io/v1/customresourcedefinitions/ats.example.com"

struct bundles_world {
    struct world w;
    struct ml_webhook_bundles *bundles;
    bool standby;
};

static bool may_write(void *context)
{
    return !((struct bundles_world *)context)->standby;
}

static bool next_script(void *context, size_t *cursor, struct ml_webhook_target *out)
{
    const struct bundles_world *b = context;
    *out = (struct ml_webhook_target){b->w.script, &world_at, NULL};
    return (*cursor)++ == 0;
}

static void open_bundles(struct bundles_world *b)
{
    *b = (struct bundles_world){.bundles = NULL};
    world_open(&b->w,
               "end,\ndefault = function() end, validate = function() end,\n"
               "convert = { v1alpha1 = { to = function() end, from = function() end } },\n"
               "when = function() return true",
               NULL);
    b->bundles = ml_webhook_bundles_new(&(struct ml_webhook_bundles_opts){
        .loop = b->w.loop,
        .log = &b->w.log,
        .client = b->w.client,
        .may_write = may_write,
        .next = next_script,
        .context = b,
    });
}

static void close_bundles(struct bundles_world *b)
{
    ml_webhook_bundles_free(b->bundles);
    world_close(&b->w);
}

static struct fake_call *next(struct bundles_world *b, const char *method, const char *path)
{
    ml_loop_poll(b->w.loop);
    struct fake_call *call = fake_next(b->w.fake);
    assert_string_equal(call->method, method);
    if (strncmp(call->path, path, strlen(path)) != 0)
        fail_msg("%s %s instead of %s", call->method, call->path, path);
    return call;
}

#define HOOK(name, bundle) "{\"name\":\"" name "\",\"clientConfig\":{\"url\":\"u\"" bundle "}}"

static void test_bundles_are_written_where_our_name_stands(void **state)
{
    (void)state;
    struct bundles_world b;
    open_bundles(&b);
    ml_webhook_bundles_set(b.bundles, CA);
    world_answer(
        &b.w, next(&b, "GET", MUTATING), 200,
        "{\"metadata\":{\"resourceVersion\":\"7\"},\"webhooks\":[" HOOK(
            "other.example.com", ",\"caBundle\":\"eA==\"") "," HOOK("default.at.moonloop.dev",
                                                                    ",\"caBundle\":\"eA==\"") "]}");
    struct fake_call *patch = next(&b, "PATCH", MUTATING);
    assert_string_equal(
        patch->body, "{\"metadata\":{\"resourceVersion\":\"7\"},\"webhooks\":[" HOOK(
                         "other.example.com",
                         ",\"caBundle\":\"eA==\"") "," HOOK("default.at.moonloop.dev",
                                                            ",\"caBundle\":\"" BUNDLE "\"") "]}");
    world_answer(&b.w, patch, 200, "{}");
    world_answer(&b.w, next(&b, "GET", VALIDATING), 200,
                 "{\"metadata\":{\"resourceVersion\":\"8\"},\"webhooks\":[" HOOK(
                     "validate.at.moonloop.dev", ",\"caBundle\":\"" BUNDLE "\"") "]}");
    /* That one was right. */
    world_answer(&b.w, next(&b, "GET", DEFINITION), 200,
                 "{\"metadata\":{\"resourceVersion\":\"9\"},\"spec\":{\"conversion\":{\"strategy\":"
                 "\"Webhook\",\"webhook\":{\"clientConfig\":{\"url\":\"u\"}}}}}");
    patch = next(&b, "PATCH", DEFINITION);
    assert_string_equal(patch->body, "{\"metadata\":{\"resourceVersion\":\"9\"},\"spec\":{"
                                     "\"conversion\":{\"webhook\":{\"clientConfig\":{\"caBundle\":"
                                     "\"" BUNDLE "\"}}}}}");
    world_answer(&b.w, patch, 200, "{}");
    close_bundles(&b);
}

/* A configuration that is missing, or calls another server, is left alone and read again soon. */
static void test_bundles_are_not_written_where_nobody_registered_us(void **state)
{
    (void)state;
    struct bundles_world b;
    open_bundles(&b);
    ml_webhook_bundles_set(b.bundles, CA);
    for (int round = 0; round < 2; round++) {
        world_answer(&b.w, next(&b, "GET", MUTATING), 404, NOT_FOUND);
        world_answer(&b.w, next(&b, "GET", VALIDATING), 404, NOT_FOUND);
        world_answer(&b.w, next(&b, "GET", DEFINITION), 200,
                     "{\"metadata\":{\"resourceVersion\":\"9\"},\"spec\":{\"conversion\":{"
                     "\"strategy\":\"None\"}}}");
        ml_clock_fake_advance(&b.w.clock, 6 * ML_NS_PER_S);
    }
    close_bundles(&b);
}

static void test_bundles_are_written_again_when_they_were_changed(void **state)
{
    (void)state;
    struct bundles_world b;
    open_bundles(&b);
    ml_webhook_bundles_set(b.bundles, CA);
    next(&b, "GET", MUTATING);
    ml_webhook_bundles_set(b.bundles, CA); /* the same: goes on */
    ml_webhook_bundles_set(b.bundles, CA CA);
    world_answer(&b.w, next(&b, "GET", MUTATING), 200,
                 "{\"metadata\":{\"resourceVersion\":\"7\"},\"webhooks\":[" HOOK(
                     "default.at.moonloop.dev", "") "]}");
    struct fake_call *write = next(&b, "PATCH", MUTATING);
    assert_non_null(strstr(write->body, "\"caBundle\":\"UEVNClBFTQo=\""));
    ml_webhook_bundles_set(b.bundles, CA); /* a write has its answer first */
    world_answer(&b.w, write, 200, "{}");
    world_answer(&b.w, next(&b, "GET", MUTATING), 200,
                 "{\"metadata\":{\"resourceVersion\":\"8\"},\"webhooks\":[" HOOK(
                     "default.at.moonloop.dev", "") "]}");
    assert_non_null(strstr(next(&b, "PATCH", MUTATING)->body, "\"caBundle\":\"UEVNCg==\""));
    close_bundles(&b);
}

static void test_bundles_are_not_written_by_a_replica_that_stands_by(void **state)
{
    (void)state;
    struct bundles_world b;
    open_bundles(&b);
    b.standby = true;
    ml_webhook_bundles_set(b.bundles, CA);
    ml_loop_poll(b.w.loop);
    fake_expect_none(b.w.fake);
    b.standby = false;
    ml_clock_fake_advance(&b.w.clock, 6 * ML_NS_PER_S);
    next(&b, "GET", MUTATING);
    close_bundles(&b);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_bundles_are_written_where_our_name_stands),
        cmocka_unit_test(test_bundles_are_not_written_where_nobody_registered_us),
        cmocka_unit_test(test_bundles_are_written_again_when_they_were_changed),
        cmocka_unit_test(test_bundles_are_not_written_by_a_replica_that_stands_by),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
