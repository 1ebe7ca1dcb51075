/* The origins that a script declares: who has to allow them, and what no script may ask. */
#include "script_world.h"

#include "net/address.h"

static bool allows_one(struct ml_outbound *outbound, const char *origin)
{
    (void)outbound;
    return ml_origin_covers("https://billing.example.com", origin) ||
           ml_origin_covers(origin, "https://billing.example.com");
}

static struct ml_outbound one = {.allows = allows_one};

/* Loads a script that declares this; the message, or "" when it is good. */
static void load(struct ml_services *services, const char *declared, char out[ML_ERR_MESSAGE_MAX])
{
    ML_AUTO_FREE char *text = ml_asprintf(
        "local m = require 'moonloop'\n"
        "return m.controller { name = 'a', reconciles = m.kind('example.com/v1', 'At'),\n"
        "  http = %s, reconcile = function() end }\n",
        declared);
    const struct ml_script_file file = {ML_STR("a.lua"), ml_str_of(text)};
    const struct ml_script_files files = {&file, 1};
    struct ml_script *script = NULL;
    struct ml_err err = ML_ERR_INIT;
    if (ml_script_load(services, NULL, &files, 0, &script, &err) == 0)
        ml_script_unref(script);
    snprintf(out, ML_ERR_MESSAGE_MAX, "%s", err.message);
}

static void expect(struct ml_services *services, const char *declared, const char *message)
{
    char got[ML_ERR_MESSAGE_MAX];
    load(services, declared, got);
    if (!strstr(got, message) || (!*message && *got))
        fail_msg("%s: got '%s', want '%s'", declared, got, message);
}

static void test_http_origin_has_to_be_allowed(void **state)
{
    (void)state;
    struct world w;
    world_open(&w, "", NULL);
    expect(&w.services, "{}", "");
    expect(&w.services, "{ 'https://billing.example.com' }",
           "a.lua:2: moonloop.controller: http: scripts may not ask https://billing.example.com "
           "here: start moonloop with --allow-http https://billing.example.com");
    w.services.outbound = &one;
    expect(&w.services, "{ 'https://billing.example.com' }", "");
    expect(&w.services, "{ 'HTTPS://Billing.Example.com/' }", "");
    expect(&w.services, "{ 'https://billing.example.com', 'https://x.test' }",
           "may not ask https://x.test here");
    expect(&w.services, "{ 'https://*.example.com' }", "");
    expect(&w.services, "{ 'https://*.example.org' }", "may not ask https://*.example.org here");
    expect(NULL, "{ 'https://x.test' }", ""); /* moonloop check */
    w.services.outbound = NULL;
    world_close(&w);
}

static void test_http_origin_has_a_form(void **state)
{
    (void)state;
    static const char *const bad[] = {
        "{ 'billing.example.com' }",
        "{ 'ftp://x' }",
        "{ 'https://x/path' }",
        "{ 'https://u@x' }",
        "{ 'https://x?a' }",
        "{ 'https://' }",
        "{ 5 }",
        "{ 'https://a b' }",
        "{ 'https://*' }",
        "{ 'https://*.*.example.com' }",
        "{ 'https://a.*.example.com' }",
        "{ 'https://*a.example.com' }",
    };
    for (size_t i = 0; i < ML_COUNT(bad); i++)
        expect(NULL, bad[i], "http[1]: expected an origin, as in");
    expect(NULL, "'https://x'", "http: expected a list, got a string");
    expect(NULL, "{ x = 'https://x' }", "http: expected a list, found the key 'x'");
    expect(NULL,
           "(function() local t = {} for i = 1, 17 do t[i] = 'https://x' .. i end return t end)()",
           "http: 17 entries; at most 16");
}

static void test_http_pattern_is_of_names_below_two_labels(void **state)
{
    (void)state;
    static const char *const bad[] = {
        "{ 'https://*.com' }",          "{ 'https://*.' }",
        "{ 'https://*..example.com' }", "{ 'https://*.example.' }",
        "{ 'https://*.254.169.254' }",  "{ 'http://*.com:80' }",
    };
    for (size_t i = 0; i < ML_COUNT(bad); i++)
        expect(NULL, bad[i], "'*' stands for the first labels of a name, with at least two more");
    expect(NULL, "{ 'https://*.monitoring.svc:9090' }", "");
}

static void test_http_metadata_address_is_never_allowed(void **state)
{
    (void)state;
    static const char *const bad[] = {
        "{ 'http://169.254.169.254' }",
        "{ 'http://[fd00:ec2::254]:80' }",
        "{ 'http://0xa9fea9fe' }",
    };
    for (size_t i = 0; i < ML_COUNT(bad); i++)
        expect(NULL, bad[i], "scripts may not connect to");
}

static void test_http_without_a_declared_origin_asks_nobody(void **state)
{
    (void)state;
    struct world w;
    struct told told;
    world_open(&w, "local ok, why = pcall(ctx.http, { url = 'https://x' }) error(why, 0)", NULL);
    assert_null(world_start(&w, &told));
    assert_non_null(strstr(told.message, "it is below no origin that the script declares"));
    world_close(&w);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_http_origin_has_to_be_allowed),
        cmocka_unit_test(test_http_origin_has_a_form),
        cmocka_unit_test(test_http_pattern_is_of_names_below_two_labels),
        cmocka_unit_test(test_http_metadata_address_is_never_allowed),
        cmocka_unit_test(test_http_without_a_declared_origin_asks_nobody),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
