#include "unit.h"

#include "codec/json.h"
#include "codec/json_diff.h"
#include "kube/object.h"

#include <stdio.h>

#define UID       "0f6a3c1e-8a4b-4c2d-9e5f-112233445566"
#define OWNER_UID "aaaaaaaa-bbbb-4ccc-8ddd-eeeeeeeeeeee"

static struct ml_object *make(struct ml_dict *dict, const char *json)
{
    struct ml_object *object = NULL;
    struct ml_err err = ML_ERR_INIT;
    if (ml_object_new(dict, "v1", "Pod", ml_str_of(json), &object, &err) < 0)
        fail_msg("%s: %s", err.message, json);
    return object;
}

static void assert_json(const struct ml_object *object, const char *want)
{
    ML_AUTO(ml_buf_fini) struct ml_buf got = ML_BUF_INIT;
    ml_object_json(object, &got);
    assert_string_equal(ml_buf_cstr(&got), want);
}

static void test_object_keeps_what_the_host_asks_for(void **state)
{
    (void)state;
    struct ml_dict *dict = ml_dict_new();
    struct ml_object *object = make(
        dict, "{\"apiVersion\":\"v1\",\"kind\":\"Pod\",\"metadata\":{\"name\":\"web\","
              "\"namespace\":\"shop\",\"uid\":\"" UID "\",\"resourceVersion\":\"123\","
              "\"generation\":7,\"deletionTimestamp\":\"2026-01-01T00:00:00Z\","
              "\"ownerReferences\":[{\"apiVersion\":\"v1\",\"kind\":\"Node\",\"name\":\"n\","
              "\"uid\":\"u\"},{\"apiVersion\":\"apps/v1\",\"kind\":\"ReplicaSet\","
              "\"name\":\"web-1\",\"uid\":\"" OWNER_UID "\",\"controller\":true}]}}");
    ml_dict_unref(dict);
    assert_str_eq(ml_object_key(object), "shop/web");
    assert_str_eq(ml_object_namespace(object), "shop");
    assert_str_eq(ml_object_name(object), "web");
    assert_str_eq(ml_object_uid(object), UID);
    assert_str_eq(ml_object_rv(object), "123");
    assert_true(ml_object_rv_number(object) == 123);
    assert_true(ml_object_generation(object) == 7);
    assert_true(ml_object_deleting(object));
    struct ml_owner owner;
    assert_true(ml_object_controller(object, &owner));
    assert_str_eq(owner.group, "apps");
    assert_str_eq(owner.kind, "ReplicaSet");
    assert_str_eq(owner.name, "web-1");
    assert_str_eq(owner.uid, OWNER_UID);
    assert_ptr_equal(ml_object_ref(object), object);
    ml_object_unref(object);
    ml_object_unref(object);
}

static void test_object_without_the_optional_has_none_of_it(void **state)
{
    (void)state;
    struct ml_dict *dict = ml_dict_new();
    struct ml_object *object = make(
        dict, "{\"metadata\":{\"name\":\"n\",\"uid\":\"u\",\"resourceVersion\":\"x1\","
              "\"deletionTimestamp\":null,\"ownerReferences\":null}}");
    assert_str_eq(ml_object_key(object), "n");
    assert_str_eq(ml_object_namespace(object), "");
    assert_true(ml_object_rv_number(object) == ML_RV_OPAQUE);
    assert_true(ml_object_generation(object) == 0);
    assert_false(ml_object_deleting(object));
    struct ml_owner owner;
    assert_false(ml_object_controller(object, &owner));
    assert_json(object, "{\"apiVersion\":\"v1\",\"kind\":\"Pod\",\"metadata\":{\"name\":\"n\","
                        "\"uid\":\"u\",\"resourceVersion\":\"x1\",\"deletionTimestamp\":null,"
                        "\"ownerReferences\":null}}");
    ml_object_unref(object);
    ml_dict_unref(dict);
}

#define NAMED "\"name\":\"n\",\"uid\":\"" UID "\",\"resourceVersion\":\"12345\""

/* Rows of a text that goes in and the text that comes out; NULL: the same to the byte. */
static void test_object_json_differs_only_where_it_should(void **state)
{
    (void)state;
    static const struct {
        const char *in, *out;
    } rows[] = {
        {"{\"kind\":\"Pod\",\"apiVersion\":\"v1\",\"metadata\":{" NAMED "}}", NULL},
        {" { \"kind\" : \"Pod\" ,\n\"apiVersion\":\"v1\",\"metadata\": {" NAMED " } , \"x\":1 } ",
         NULL},
        {"{\"metadata\":{" NAMED "},\"kind\":\"Pod\"}",
         "{\"apiVersion\":\"v1\",\"metadata\":{" NAMED "},\"kind\":\"Pod\"}"},
        {"{\"apiVersion\":\"v1\",\"metadata\":{" NAMED "}}",
         "{\"kind\":\"Pod\",\"apiVersion\":\"v1\",\"metadata\":{" NAMED "}}"},
        {"{\"apiVersion\":\"v1\",\"kind\":\"Pod\",\"metadata\":{\"managedFields\":[{\"a\":{}}]"
         "," NAMED "},\"n\":1e400}",
         "{\"apiVersion\":\"v1\",\"kind\":\"Pod\",\"metadata\":{" NAMED "},\"n\":1e400}"},
        {"{\"apiVersion\":\"v1\",\"kind\":\"Pod\",\"metadata\":{" NAMED
         " , \"managedFields\" : [ ] , \"labels\":{}}}",
         "{\"apiVersion\":\"v1\",\"kind\":\"Pod\",\"metadata\":{" NAMED " , \"labels\":{}}}"},
        {"{\"apiVersion\":\"v1\",\"kind\":\"Pod\",\"metadata\":{" NAMED
         ",\"managedFields\":[]},\"managedFields\":[]}",
         "{\"apiVersion\":\"v1\",\"kind\":\"Pod\",\"metadata\":{" NAMED "},\"managedFields\":[]}"},
        {"{\"apiVersion\":\"v1\",\"kind\":\"Pod\",\"metadata\":{\"name\":\"a\\u0026b\","
         "\"uid\":\"" UID "\",\"resourceVersion\":\"9\"}}",
         NULL},
        {"{\"apiVersion\":\"v1\",\"kind\":\"Pod\",\"metadata\":{" NAMED "},\"copy\":\"" UID
         "\",\"esc\":\"\\u0001\\u00010\"}",
         NULL},
    };
    struct ml_dict *dict = ml_dict_new();
    for (int round = 0; round < 3; round++) { /* with another dictionary each time */
        for (size_t i = 0; i < ML_COUNT(rows); i++) {
            struct ml_object *object = make(dict, rows[i].in);
            assert_json(object, rows[i].out ? rows[i].out : rows[i].in);
            ml_object_unref(object);
        }
    }
    ml_dict_unref(dict);
}

/* A version of up to two bytes is kept in the text. */
static void test_object_json_with_another_version(void **state)
{
    (void)state;
    static const struct {
        const char *version, *asked, *want;
    } rows[] = {
        {"1234", "5678", "5678"}, {"1234", "7", "7"},   {"1234", "1234567890", "1234567890"},
        {"123", "", ""},          {"12", "5678", "12"},
    };
    for (size_t i = 0; i < ML_COUNT(rows); i++) {
        struct ml_dict *dict = ml_dict_new();
        ML_AUTO_FREE char *json = ml_asprintf(
            "{\"apiVersion\":\"v1\",\"kind\":\"Pod\",\"metadata\":{\"uid\":\"" UID
            "\",\"resourceVersion\":\"%s\",\"name\":\"web\"},\"n\":\"%s\"}",
            rows[i].version, rows[i].version);
        ML_AUTO_FREE char *want = ml_asprintf(
            "{\"apiVersion\":\"v1\",\"kind\":\"Pod\",\"metadata\":{\"uid\":\"" UID
            "\",\"resourceVersion\":\"%s\",\"name\":\"web\"},\"n\":\"%s\"}",
            rows[i].want, rows[i].version);
        struct ml_object *object = make(dict, json);
        ML_AUTO(ml_buf_fini) struct ml_buf got = ML_BUF_INIT;
        ml_object_json_as(object, ml_str_of(rows[i].asked), &got);
        assert_string_equal(ml_buf_cstr(&got), want);
        assert_json(object, json);
        ml_object_unref(object);
        ml_dict_unref(dict);
    }
}

static void test_object_name_with_escapes_is_read(void **state)
{
    (void)state;
    struct ml_dict *dict = ml_dict_new();
    struct ml_object *object = make(
        dict, "{\"metadata\":{\"name\":\"a\\u0026b\",\"uid\":\"\\u0075\\u0076\","
              "\"resourceVersion\":\"9\"}}");
    assert_str_eq(ml_object_key(object), "a&b");
    assert_str_eq(ml_object_uid(object), "uv");
    ml_object_unref(object);
    ml_dict_unref(dict);
}

static void test_object_refuses_what_is_broken(void **state)
{
    (void)state;
    static const struct {
        const char *json, *message;
    } rows[] = {
        {"", NULL},
        {"nonsense", NULL},
        {"[]", "not an object"},
        {"{}", "no metadata.name"},
        {"{\"metadata\":7}", "no metadata.name"},
        {"{\"metadata\":{\"name\":7,\"uid\":\"u\",\"resourceVersion\":\"1\"}}", "no metadata.name"},
        {"{\"metadata\":{\"name\":\"n\",\"resourceVersion\":\"1\"}}", "no metadata.uid"},
        {"{\"metadata\":{\"name\":\"n\",\"uid\":\"u\"}}", "no metadata.resourceVersion"},
        {"{\"metadata\":{\"name\":\"a/b\",\"uid\":\"u\",\"resourceVersion\":\"1\"}}",
         "metadata.name has a '/'"},
        {"{\"metadata\":{\"name\":\"n\",\"uid\":\"u\",\"resourceVersion\":\"1\"}} x", NULL},
        {"{\"metadata\":{\"name\":\"n\",\"uid\":\"u\",\"resourceVersion\":\"1\"},}", NULL},
        {"{\"metadata\":{\"name\":\"n\",\"uid\":\"u\",\"resourceVersion\":\"1\"},\"x\":\"\xff\"}",
         NULL},
        {"{\"metadata\":{\"name\":\"n\",\"uid\":\"u\",\"resourceVersion\":\"1\","
         "\"ownerReferences\":[{\"controller\":true}]}}",
         "no apiVersion of the owner"},
    };
    struct ml_dict *dict = ml_dict_new();
    for (size_t i = 0; i < ML_COUNT(rows); i++) {
        struct ml_object *object = NULL;
        struct ml_err err = ML_ERR_INIT;
        int r = ml_object_new(dict, "v1", "Pod", ml_str_of(rows[i].json), &object, &err);
        if (r != ML_EINVALID || object)
            fail_msg("%s", rows[i].json);
        if (rows[i].message)
            assert_string_equal(err.message, rows[i].message);
        assert_int_not_equal(err.message[0], 0);
    }
    ml_dict_unref(dict);
}

static void test_object_without_kind_to_put_in_is_refused(void **state)
{
    (void)state;
    struct ml_dict *dict = ml_dict_new();
    struct ml_object *object = NULL;
    struct ml_err err = ML_ERR_INIT;
    assert_int_equal(
        ml_object_new(dict, "", NULL, ML_STR("{\"metadata\":{" NAMED "}}"), &object, &err),
        ML_EINVALID);
    assert_string_equal(err.message, "no apiVersion");
    ml_dict_unref(dict);
}

static void test_object_refuses_depth_and_size(void **state)
{
    (void)state;
    struct ml_dict *dict = ml_dict_new();
    struct ml_object *object = NULL;
    struct ml_err err = ML_ERR_INIT;
    ML_AUTO(ml_buf_fini) struct ml_buf deep = ML_BUF_INIT;
    ml_buf_puts(&deep, "{\"metadata\":{" NAMED "},\"x\":");
    for (int i = 0; i < 10000; i++)
        ml_buf_putc(&deep, '[');
    for (int i = 0; i < 10000; i++)
        ml_buf_putc(&deep, ']');
    ml_buf_putc(&deep, '}');
    assert_int_equal(ml_object_new(dict, "v1", "Pod", ml_buf_str(&deep), &object, &err),
                     ML_EINVALID);

    ML_AUTO(ml_buf_fini) struct ml_buf large = ML_BUF_INIT;
    char *room = ml_buf_reserve(&large, ML_OBJECT_SIZE_MAX + 1);
    memset(room, ' ', ML_OBJECT_SIZE_MAX + 1);
    large.len = ML_OBJECT_SIZE_MAX + 1;
    assert_int_equal(ml_object_new(dict, "v1", "Pod", ml_buf_str(&large), &object, &err),
                     ML_EINVALID);
    assert_null(object);
    ml_dict_unref(dict);
}

/* 1.5 MB that hardly packs, through a dictionary made of something else. */
static void test_object_of_megabytes_comes_back(void **state)
{
    (void)state;
    struct ml_dict *dict = ml_dict_new();
    struct ml_object *small = make(dict, "{\"metadata\":{" NAMED "}}");
    ML_AUTO(ml_buf_fini) struct ml_buf json = ML_BUF_INIT;
    ml_buf_puts(&json, "{\"apiVersion\":\"v1\",\"kind\":\"Pod\",\"metadata\":{" NAMED "},\"x\":\"");
    uint64_t noise = 1;
    for (int i = 0; i < 1500000; i++) {
        noise = noise * UINT64_C(6364136223846793005) + 1442695040888963407u;
        ml_buf_putc(&json, (char)('A' + (noise >> 60)));
    }
    ml_buf_puts(&json, "\"}");
    struct ml_object *large = make(dict, ml_buf_cstr(&json));
    assert_json(large, ml_buf_cstr(&json));
    assert_json(small, "{\"apiVersion\":\"v1\",\"kind\":\"Pod\",\"metadata\":{" NAMED "}}");
    ml_object_unref(large);
    ml_object_unref(small);
    ml_dict_unref(dict);
}

static char *pod_json(int i, bool running)
{
    return ml_asprintf(
        "{\"metadata\":{\"name\":\"example-%05d-pod\",\"namespace\":\"default\",\"uid\":"
        "\"%08x-8a4b-4c2d-9e5f-%012x\",\"resourceVersion\":\"%d\",\"generation\":1,"
        "\"creationTimestamp\":\"2026-11-21T04:12:%02dZ\",\"labels\":{\"app\":\"example-%05d\"},"
        "\"ownerReferences\":[{\"apiVersion\":\"cnat.programming-kubernetes.info/v1alpha1\","
        "\"kind\":\"At\",\"name\":\"example-%05d\",\"uid\":\"%08x-1111-4222-8333-%012x\","
        "\"controller\":true,\"blockOwnerDeletion\":true}],\"managedFields\":[{\"manager\":"
        "\"moonloop\",\"operation\":\"Update\",\"apiVersion\":\"v1\",\"fieldsType\":\"FieldsV1\","
        "\"fieldsV1\":{\"f:metadata\":{\"f:labels\":{\".\":{},\"f:app\":{}}}}}]},\"spec\":{"
        "\"volumes\":[{\"name\":\"kube-api-access-%05x\",\"projected\":{\"sources\":[{"
        "\"serviceAccountToken\":{\"expirationSeconds\":3607,\"path\":\"token\"}},{\"configMap\":{"
        "\"name\":\"kube-root-ca.crt\",\"items\":[{\"key\":\"ca.crt\",\"path\":\"ca.crt\"}]}}],"
        "\"defaultMode\":420}}],\"containers\":[{\"name\":\"busybox\",\"image\":\"busybox\","
        "\"command\":[\"echo\",\"hello\"],\"resources\":{},\"terminationMessagePath\":"
        "\"/dev/termination-log\",\"terminationMessagePolicy\":\"File\",\"imagePullPolicy\":"
        "\"Always\"}],\"restartPolicy\":\"OnFailure\",\"terminationGracePeriodSeconds\":30,"
        "\"dnsPolicy\":\"ClusterFirst\",\"nodeName\":\"node-%d\",\"securityContext\":{},"
        "\"schedulerName\":\"default-scheduler\",\"enableServiceLinks\":true},\"status\":{%s"
        "\"qosClass\":\"BestEffort\"}}",
        i, i * 2654435761u, i * 40503u, 30000 + i * 13, i % 60, i, i, i * 2246822519u, i * 97u,
        i * 31u & 0xfffff, i % 5,
        running ? "\"phase\":\"Running\",\"conditions\":[{\"type\":\"Ready\",\"status\":\"True\","
                  "\"lastTransitionTime\":\"2026-11-21T04:13:00Z\"}],\"hostIP\":\"10.0.0.1\","
                  "\"podIP\":\"10.1.0.7\",\"startTime\":\"2026-11-21T04:12:59Z\","
                : "\"phase\":\"Pending\",");
}

static void test_object_of_a_cnat_pod_stays_below_300_bytes(void **state)
{
    (void)state;
    enum { COUNT = 1000 };
    struct ml_dict *dict = ml_dict_new();
    static struct ml_object *objects[COUNT];
    size_t total = 0;
    for (int i = 0; i < COUNT; i++) {
        ML_AUTO_FREE char *json = pod_json(i, i % 2);
        objects[i] = make(dict, json);
        total += ml_object_bytes(objects[i]);
    }
    ml_dict_unref(dict);
    for (int i = 0; i < COUNT; i++) {
        ML_AUTO(ml_buf_fini) struct ml_buf got = ML_BUF_INIT;
        ml_object_json(objects[i], &got);
        ML_AUTO_FREE char *json = pod_json(i, i % 2);
        struct ml_str spec, spec_got;
        assert_true(ml_json_find(ml_str_of(json), &spec, "spec", NULL));
        assert_true(ml_json_find(ml_buf_str(&got), &spec_got, "spec", NULL));
        assert_true(ml_str_eq(spec, spec_got));
        ml_object_unref(objects[i]);
    }
    print_message("bytes per pod: %zu\n", total / COUNT);
#if !defined(__SANITIZE_ADDRESS__)
    assert_in_range(total / COUNT, 1, 300);
#endif
}

/* With so many bytes that are its number's own. */
static char *filled_json(int number, size_t length)
{
    struct ml_buf json = ML_BUF_INIT;
    uint64_t state = (uint64_t)number;
    ml_buf_puts(&json, "{\"apiVersion\":\"v1\",\"kind\":\"Pod\",\"metadata\":{" NAMED "},\"d\":\"");
    for (size_t i = 0; i < length; i++) {
        state = state * UINT64_C(6364136223846793005) + 1442695040888963407;
        char byte = (char)('#' + (state >> 33) % 50);
        ml_buf_append(&json, &byte, 1);
    }
    ml_buf_puts(&json, "\"}");
    return ml_buf_take(&json);
}

/* zstd makes tables of some samples, and of others, too short or all alike, it does not. */
static void test_object_comes_back_whatever_its_dictionary_was_made_of(void **state)
{
    (void)state;
    enum { COUNT = 200 };
    static const struct {
        size_t shortest, step;
    } rows[] = {{0, 0}, {0, 1}, {40, 7}, {9000, 50}};
    static struct ml_object *objects[COUNT];
    for (size_t row = 0; row < ML_COUNT(rows); row++) {
        struct ml_dict *dict = ml_dict_new();
        for (int i = 0; i < COUNT; i++) {
            ML_AUTO_FREE char *json = filled_json(i,
                                                  rows[row].shortest + rows[row].step * (size_t)i);
            objects[i] = make(dict, json);
        }
        ml_dict_unref(dict);
        for (int i = 0; i < COUNT; i++) {
            ML_AUTO_FREE char *json = filled_json(i,
                                                  rows[row].shortest + rows[row].step * (size_t)i);
            assert_json(objects[i], json);
            ml_object_unref(objects[i]);
        }
    }
}

static void test_rv_parse_knows_decimal_from_opaque(void **state)
{
    (void)state;
    static const struct {
        const char *text;
        uint64_t number;
    } rows[] = {
        {"0", 0},
        {"1", 1},
        {"18446744073709551614", UINT64_MAX - 1},
        {"18446744073709551615", ML_RV_OPAQUE},
        {"18446744073709551616", ML_RV_OPAQUE},
        {"007", ML_RV_OPAQUE},
        {"", ML_RV_OPAQUE},
        {"-1", ML_RV_OPAQUE},
        {"12a", ML_RV_OPAQUE},
    };
    for (size_t i = 0; i < ML_COUNT(rows); i++)
        assert_true(ml_rv_parse(ml_str_of(rows[i].text)) == rows[i].number);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_object_keeps_what_the_host_asks_for),
        cmocka_unit_test(test_object_without_the_optional_has_none_of_it),
        cmocka_unit_test(test_object_json_differs_only_where_it_should),
        cmocka_unit_test(test_object_json_with_another_version),
        cmocka_unit_test(test_object_name_with_escapes_is_read),
        cmocka_unit_test(test_object_refuses_what_is_broken),
        cmocka_unit_test(test_object_without_kind_to_put_in_is_refused),
        cmocka_unit_test(test_object_refuses_depth_and_size),
        cmocka_unit_test(test_object_of_megabytes_comes_back),
        cmocka_unit_test(test_object_of_a_cnat_pod_stays_below_300_bytes),
        cmocka_unit_test(test_object_comes_back_whatever_its_dictionary_was_made_of),
        cmocka_unit_test(test_rv_parse_knows_decimal_from_opaque),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
