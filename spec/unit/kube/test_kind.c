#include "unit.h"

#include "kube/kind.h"

static void test_gvk_parse_accepts_names_of_the_api_only(void **state)
{
    (void)state;
    static const struct {
        const char *api_version, *kind;
        const char *group, *version; /* NULL: refused */
    } rows[] = {
        {"v1", "Pod", "", "v1"},
        {"apps/v1", "Deployment", "apps", "v1"},
        {"cnat.programming-kubernetes.info/v1alpha1", "At", "cnat.programming-kubernetes.info",
         "v1alpha1"},
        {"", "Pod", NULL, NULL},
        {"v1", "", NULL, NULL},
        {"/v1", "Pod", NULL, NULL},
        {"apps/", "Pod", NULL, NULL},
        {"a/b/c", "Pod", NULL, NULL},
        {"Apps/v1", "Pod", NULL, NULL},
        {"apps./v1", "Pod", NULL, NULL},
        {"a..b/v1", "Pod", NULL, NULL},
        {"a.-b/v1", "Pod", NULL, NULL},
        {"a-.b/v1", "Pod", NULL, NULL},
        {"apps/V1", "Pod", NULL, NULL},
        {"apps/v1?x=1", "Pod", NULL, NULL},
        {"v1", "Po d", NULL, NULL},
        {"v1", "../Pod", NULL, NULL},
        {"v1", "1Pod", NULL, NULL},
        {"v1", "Pod-", NULL, NULL},
    };
    for (size_t i = 0; i < ML_COUNT(rows); i++) {
        struct ml_gvk gvk;
        bool ok = ml_gvk_parse(ml_str_of(rows[i].api_version), ml_str_of(rows[i].kind), &gvk);
        if (ok != (rows[i].version != NULL))
            fail_msg("%s %s", rows[i].api_version, rows[i].kind);
        if (!ok)
            continue;
        assert_str_eq(gvk.group, rows[i].group);
        assert_str_eq(gvk.version, rows[i].version);
        assert_str_eq(gvk.kind, rows[i].kind);
    }
}

static const struct ml_kind pods = {"v1", "", "v1", "Pod", "pods", true, true};
static const struct ml_kind deployments = {"apps/v1",     "apps", "v1", "Deployment",
                                           "deployments", true,   true};
static const struct ml_kind nodes = {"v1", "", "v1", "Node", "nodes", false, true};
static const struct ml_kind roles = {"rbac.authorization.k8s.io/v1",
                                     "rbac.authorization.k8s.io",
                                     "v1",
                                     "ClusterRole",
                                     "clusterroles",
                                     false,
                                     false};

static void test_kind_path_names_collection_object_and_subresource(void **state)
{
    (void)state;
    static const struct {
        const struct ml_kind *kind;
        const char *ns, *name, *subresource, *path;
    } rows[] = {
        {&pods, "", "", "", "/api/v1/pods"},
        {&pods, "default", "", "", "/api/v1/namespaces/default/pods"},
        {&pods, "default", "a", "", "/api/v1/namespaces/default/pods/a"},
        {&deployments, "x", "web", "status", "/apis/apps/v1/namespaces/x/deployments/web/status"},
        {&deployments, "", "", "", "/apis/apps/v1/deployments"},
        {&nodes, "", "n1", "", "/api/v1/nodes/n1"},
        {&nodes, "ignored", "n1", "", "/api/v1/nodes/n1"},
        {&roles, "", "system:node", "",
         "/apis/rbac.authorization.k8s.io/v1/clusterroles/system:node"},
        {&pods, "a/b", "c?d#e%f g", "", "/api/v1/namespaces/a%2Fb/pods/c%3Fd%23e%25f%20g"},
    };
    for (size_t i = 0; i < ML_COUNT(rows); i++) {
        ML_AUTO(ml_buf_fini) struct ml_buf path = ML_BUF_INIT;
        ml_kind_path(rows[i].kind, ml_str_of(rows[i].ns), ml_str_of(rows[i].name),
                     ml_str_of(rows[i].subresource), &path);
        assert_string_equal(ml_buf_cstr(&path), rows[i].path);
    }
}

static void test_kind_path_encodes_a_nul(void **state)
{
    (void)state;
    ML_AUTO(ml_buf_fini) struct ml_buf path = ML_BUF_INIT;
    ml_kind_path(&nodes, ML_STR(""), ML_STR("a\0b"), ML_STR(""), &path);
    assert_string_equal(ml_buf_cstr(&path), "/api/v1/nodes/a%00b");
}

static void test_url_query_starts_and_goes_on(void **state)
{
    (void)state;
    ML_AUTO(ml_buf_fini) struct ml_buf url = ML_BUF_INIT;
    ml_buf_puts(&url, "/x");
    ml_url_query(&url, "labelSelector", ML_STR("a=b,c in (d)"));
    ml_url_query(&url, "limit", ML_STR("500"));
    assert_string_equal(ml_buf_cstr(&url), "/x?labelSelector=a%3Db%2Cc%20in%20%28d%29&limit=500");
}

static void test_key_comes_apart(void **state)
{
    (void)state;
    assert_str_eq(ml_key_namespace(ML_STR("ns/name")), "ns");
    assert_str_eq(ml_key_name(ML_STR("ns/name")), "name");
    assert_str_eq(ml_key_namespace(ML_STR("name")), "");
    assert_str_eq(ml_key_name(ML_STR("name")), "name");
    assert_str_eq(ml_key_name(ML_STR("")), "");
}

static void test_name_valid_keeps_urls_in_shape(void **state)
{
    (void)state;
    static const struct {
        const char *name;
        bool valid;
    } rows[] = {
        {"a", true},    {"a.b-c", true},     {"system:node", true}, {"system::x", true},
        {"A1", true},   {"", false},         {".", false},          {"..", false},
        {"a/b", false}, {"a..b", false},     {"-a", false},         {"a-", false},
        {"a.", false},  {".a", false},       {"a b", false},        {"a%2f", false},
        {"a\n", false}, {"\xc3\xa4", false},
    };
    for (size_t i = 0; i < ML_COUNT(rows); i++)
        if (ml_name_valid(ml_str_of(rows[i].name)) != rows[i].valid)
            fail_msg("%s", rows[i].name);
    char long_name[255];
    memset(long_name, 'a', sizeof long_name);
    assert_true(ml_name_valid((struct ml_str){long_name, 253}));
    assert_false(ml_name_valid((struct ml_str){long_name, 254}));
}

static void test_key_valid_takes_one_or_two_names(void **state)
{
    (void)state;
    static const struct {
        const char *key;
        bool valid;
    } rows[] = {
        {"a", true},    {"ns/a", true},    {"", false},      {"/", false},     {"/a", false},
        {"ns/", false}, {"ns/a/b", false}, {"n s/a", false}, {"ns/..", false}, {"..", false},
    };
    for (size_t i = 0; i < ML_COUNT(rows); i++)
        if (ml_key_valid(ml_str_of(rows[i].key)) != rows[i].valid)
            fail_msg("%s", rows[i].key);
}

static void test_group_is_built_in_where_the_api_server_has_it(void **state)
{
    (void)state;
    static const struct {
        const char *group;
        bool built_in;
    } rows[] = {
        {"", true},
        {"apps", true},
        {"networking.k8s.io", true},
        {"rbac.authorization.k8s.io", true},
        {"flowcontrol.apiserver.k8s.io", true},
        {"gateway.networking.k8s.io", false},
        {"metrics.k8s.io", false},
        {".k8s.io", false},
        {"cnat.io", false},
    };
    for (size_t i = 0; i < ML_COUNT(rows); i++)
        if (ml_group_is_built_in(ml_str_of(rows[i].group)) != rows[i].built_in)
            fail_msg("%s", rows[i].group);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_gvk_parse_accepts_names_of_the_api_only),
        cmocka_unit_test(test_kind_path_names_collection_object_and_subresource),
        cmocka_unit_test(test_kind_path_encodes_a_nul),
        cmocka_unit_test(test_url_query_starts_and_goes_on),
        cmocka_unit_test(test_key_comes_apart),
        cmocka_unit_test(test_name_valid_keeps_urls_in_shape),
        cmocka_unit_test(test_key_valid_takes_one_or_two_names),
        cmocka_unit_test(test_group_is_built_in_where_the_api_server_has_it),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
