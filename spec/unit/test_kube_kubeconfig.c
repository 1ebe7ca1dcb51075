#include "unit.h"

#include "kube/kubeconfig_internal.h"

#include <stdio.h>
#include <sys/stat.h>
#include <unistd.h>

#define PEM_B64                                                                                    \
    "LS0tLS1CRUdJTiBDRVJUSUZJQ0FURS0tLS0tCmFiYwo=" /* -----BEGIN CERTIFICATE-----\nabc */
#define PEM "-----BEGIN CERTIFICATE-----\nabc\n"

/* A folder of its own for each test. */
struct world {
    struct ml_clock_fake clock;
    char dir[64];
    struct ml_kubeconfig_env env;
    struct ml_kubeconfig *config;
    struct ml_err err;
};

static int setup(void **state)
{
    struct world *world = ml_new(struct world);
    ml_clock_fake_init(&world->clock, 0);
    strcpy(world->dir, "/tmp/test_kubeconfig_XXXXXX");
    assert_non_null(mkdtemp(world->dir));
    world->env.account_dir = "/nonexistent";
    *state = world;
    return 0;
}

static int teardown(void **state)
{
    struct world *world = *state;
    ml_kubeconfig_free(world->config);
    ML_AUTO_FREE char *command = ml_asprintf("rm -r '%s'", world->dir);
    assert_int_equal(system(command), 0);
    free(world);
    return 0;
}

/* The path of a file in the folder, which the caller frees. */
static char *path_of(const struct world *world, const char *name)
{
    return ml_asprintf("%s/%s", world->dir, name);
}

static void write_file(const struct world *world, const char *name, const char *text)
{
    ML_AUTO_FREE char *path = path_of(world, name);
    FILE *file = fopen(path, "w");
    assert_non_null(file);
    fputs(text, file);
    fclose(file);
}

static int load(struct world *world, const char *name, const char *context)
{
    ML_AUTO_FREE char *path = name ? path_of(world, name) : NULL;
    const struct ml_kubeconfig_opts opts = {path, context};
    ml_kubeconfig_free(ml_take(&world->config));
    return ml_kubeconfig_load_env(&opts, &world->env, &world->clock.clock, &world->config,
                                  &world->err);
}

static void load_ok(struct world *world, const char *name, const char *context)
{
    if (load(world, name, context) < 0)
        fail_msg("%s", world->err.message);
}

#define CLUSTERS(fields)                                                                           \
    "clusters:\n- name: c\n  cluster: {" fields "}\n"                                              \
    "contexts:\n- name: x\n  context: {cluster: c, user: u}\ncurrent-context: x\n"
#define USERS(fields) "users:\n- name: u\n  user: {" fields "}\n"
#define HTTPS         CLUSTERS("server: 'https://h:6443'")

static void test_kubeconfig_reads_a_whole_file(void **state)
{
    struct world *world = *state;
    write_file(world, "ca.crt", PEM);
    write_file(world, "config",
               "apiVersion: v1\nkind: Config\ncurrent-context: dev\n"
               "clusters:\n"
               "- name: one\n  cluster:\n    server: https://one:6443/\n"
               "    certificate-authority: ca.crt\n    tls-server-name: inner\n"
               "    proxy-url: socks5://p:1080\n"
               "- name: two\n  cluster:\n    server: https://two/k8s/c-1\n"
               "    insecure-skip-tls-verify: true\n"
               "contexts:\n"
               "- name: dev\n  context: {cluster: one, user: cert, namespace: team}\n"
               "- name: prod\n  context: {cluster: two, user: token}\n"
               "users:\n"
               "- name: cert\n  user:\n    client-certificate-data: " PEM_B64
               "\n    client-key-data: " PEM_B64 "\n"
               "- name: token\n  user: {token: abc}\n");
    load_ok(world, "config", NULL);
    assert_string_equal(ml_kubeconfig_server(world->config), "https://one:6443");
    assert_string_equal(ml_kubeconfig_namespace(world->config), "team");
    const struct ml_http_tls *tls = ml_kubeconfig_tls(world->config);
    assert_str_eq(tls->ca_pem, PEM);
    assert_str_eq(tls->cert_pem, PEM);
    assert_str_eq(tls->key_pem, PEM);
    assert_string_equal(tls->server_name, "inner");
    assert_string_equal(tls->proxy_url, "socks5://p:1080");
    assert_false(tls->insecure);
    assert_null(ml_kubeconfig_authorization(world->config));

    load_ok(world, "config", "prod");
    assert_string_equal(ml_kubeconfig_server(world->config), "https://two/k8s/c-1");
    assert_string_equal(ml_kubeconfig_namespace(world->config), "default");
    assert_true(ml_kubeconfig_tls(world->config)->insecure);
    assert_true(ml_kubeconfig_tls(world->config)->ca_pem.len == 0);
    assert_string_equal(ml_kubeconfig_authorization(world->config), "Bearer abc");
    assert_non_null(strstr(ml_kubeconfig_source(world->config), "/config, context \"prod\""));
}

static void test_kubeconfig_chooses_among_credentials(void **state)
{
    struct world *world = *state;
    static const struct {
        const char *yaml;
        const char *authorization; /* NULL: none */
    } rows[] = {
        {HTTPS USERS("token: abc"), "Bearer abc"},
        {HTTPS USERS("token: ' abc '"), "Bearer abc"},
        {HTTPS USERS("token: abc, tokenFile: token"), "Bearer from-file"},
        {HTTPS USERS("username: u, password: p"), "Basic dTpw"},
        {HTTPS USERS("username: u"), "Basic dTo="},
        {HTTPS USERS("token: abc, exec: {command: x}"), "Bearer abc"},
        {HTTPS USERS(""), NULL},
        {HTTPS USERS("token: null, exec: null"), NULL},
        {CLUSTERS("server: 'http://h:8080'") USERS("token: abc"), NULL},
        {CLUSTERS("server: 'HTTPS://h'") USERS("token: abc"), "Bearer abc"},
        {"clusters: [{name: c, cluster: {server: 'https://h'}}]\ncontexts: [{name: x, context: "
         "{cluster: c}}]\ncurrent-context: x\n",
         NULL},
    };
    write_file(world, "token", "\n from-file\n");
    for (size_t i = 0; i < ML_COUNT(rows); i++) {
        write_file(world, "config", rows[i].yaml);
        load_ok(world, "config", NULL);
        const char *got = ml_kubeconfig_authorization(world->config);
        if (rows[i].authorization)
            assert_string_equal(got, rows[i].authorization);
        else
            assert_null(got);
    }
}

static void test_kubeconfig_says_what_is_wrong(void **state)
{
    struct world *world = *state;
    static const struct {
        const char *yaml;
        const char *message; /* part of it */
    } rows[] = {
        {"", "/config: no current-context; choose one with --context"},
        {"clusters: [", "/config: line "},
        {"- a\n", "/config: not a kubeconfig"},
        {"a: 1\n---\nb: 2\n", "/config: more than one YAML document"},
        {"current-context: y\ncontexts: []\n", "/config: no context \"y\""},
        {"current-context: y\ncontexts: 7\n", "/config: no context \"y\""},
        {"current-context: x\ncontexts: [{name: x}]\n", "context \"x\" has no contents"},
        {"current-context: x\ncontexts: [{name: x, context: {}}]\n",
         "context \"x\": names no cluster"},
        {"current-context: x\ncontexts: [{name: x, context: {cluster: q}}]\n",
         "context \"x\": names cluster \"q\", which is not defined"},
        {HTTPS, "context \"x\": names user \"u\", which is not defined"},
        {HTTPS "users: [{name: u, user: {}}, {name: u, user: {}}]\n",
         "/config: two users named \"u\""},
        {CLUSTERS("") USERS(""), "cluster \"c\": no server"},
        {CLUSTERS("server: 7") USERS(""), "cluster \"c\": server must be a string"},
        {CLUSTERS("server: 'h:6443'") USERS(""), "must start with https://"},
        {CLUSTERS("server: 'https:///x'") USERS(""), "is not a URL of a server"},
        {CLUSTERS("server: 'https://u@h'") USERS(""), "is not a URL of a server"},
        {CLUSTERS("server: \"https://h\\n\"") USERS(""), "line end or control character"},
        {CLUSTERS("server: 'https://h', insecure-skip-tls-verify: yes") USERS(""),
         "insecure-skip-tls-verify must be true or false"},
        {CLUSTERS("server: 'https://h', insecure-skip-tls-verify: true, "
                  "certificate-authority-data: " PEM_B64) USERS(""),
         "exclude each other"},
        {CLUSTERS("server: 'https://h', certificate-authority-data: '*'") USERS(""),
         "certificate-authority-data is not base64"},
        {CLUSTERS("server: 'https://h', certificate-authority-data: YWJj") USERS(""),
         "certificate-authority-data is not PEM"},
        {CLUSTERS("server: 'https://h', certificate-authority: missing.crt") USERS(""),
         "missing.crt: No such file"},
        {CLUSTERS("server: 'https://h', certificate-authority: .") USERS(""), "not a file"},
        {HTTPS USERS("client-certificate-data: " PEM_B64), "go together"},
        {HTTPS USERS("client-key-data: " PEM_B64), "go together"},
        {HTTPS USERS("token: a, username: u"), "token and username/password exclude each other"},
        {HTTPS USERS("tokenFile: nowhere"), "tokenFile: "},
        {HTTPS USERS("token: a b"), "token: the token has a space"},
        {HTTPS USERS("token: 123"), "token must be a string; put it in quotes"},
        {HTTPS USERS("exec: {command: aws}"), "user \"u\": not supported yet: exec"},
        {HTTPS USERS("auth-provider: {name: gcp}"), "user \"u\": not supported yet: auth-provider"},
        {HTTPS USERS("token: a, as: admin"), "not supported yet: impersonation (as)"},
    };
    for (size_t i = 0; i < ML_COUNT(rows); i++) {
        write_file(world, "config", rows[i].yaml);
        if (load(world, "config", NULL) != ML_EINVALID)
            fail_msg("accepted: %s", rows[i].yaml);
        if (!strstr(world->err.message, rows[i].message))
            fail_msg("%s\n is not about: %s", world->err.message, rows[i].message);
    }
}

static void test_kubeconfig_named_explicitly_must_exist(void **state)
{
    struct world *world = *state;
    assert_int_equal(load(world, "missing", NULL), ML_EINVALID);
    assert_non_null(strstr(world->err.message, "missing: No such file"));
}

static void test_kubeconfig_list_merges_by_whole_entries(void **state)
{
    struct world *world = *state;
    write_file(world, "a",
               "clusters: [{name: c, cluster: {server: 'https://first'}}]\n"
               "users: [{name: u, user: {}}]\ncurrent-context: ''\n");
    write_file(world, "b",
               CLUSTERS("server: 'https://second', tls-server-name: second")
                   USERS("token: second"));
    write_file(world, "c", "current-context: other\n");
    ML_AUTO_FREE char *list = ml_asprintf("%s/missing::%s/a:%s/b:%s/a:%s/c", world->dir, world->dir,
                                          world->dir, world->dir, world->dir);
    world->env.kubeconfig = list;
    load_ok(world, NULL, NULL);
    assert_string_equal(ml_kubeconfig_server(world->config), "https://first");
    assert_null(ml_kubeconfig_tls(world->config)->server_name);
    assert_null(ml_kubeconfig_authorization(world->config));
    assert_non_null(strstr(ml_kubeconfig_source(world->config), "/b, context \"x\""));
}

static void test_kubeconfig_list_of_missing_files_is_an_error(void **state)
{
    struct world *world = *state;
    ML_AUTO_FREE char *list = ml_asprintf("%s/p:%s/q", world->dir, world->dir);
    world->env.kubeconfig = list;
    assert_int_equal(load(world, NULL, NULL), ML_EINVALID);
    assert_non_null(strstr(world->err.message, "KUBECONFIG names no file that exists"));
}

static void test_kubeconfig_list_does_not_pass_over_a_broken_file(void **state)
{
    struct world *world = *state;
    write_file(world, "a", "x: [\n");
    write_file(world, "b", HTTPS USERS(""));
    ML_AUTO_FREE char *list = ml_asprintf("%s/a:%s/b", world->dir, world->dir);
    world->env.kubeconfig = list;
    assert_int_equal(load(world, NULL, NULL), ML_EINVALID);
}

static void test_kubeconfig_falls_back_to_home_and_then_gives_up(void **state)
{
    struct world *world = *state;
    world->env.home = world->dir;
    assert_int_equal(load(world, NULL, NULL), ML_ENOT_FOUND);
    assert_non_null(strstr(world->err.message, "no API server is configured"));
    ML_AUTO_FREE char *kube = path_of(world, ".kube");
    assert_int_equal(mkdir(kube, 0700), 0);
    write_file(world, ".kube/config", HTTPS USERS("tokenFile: t"));
    write_file(world, ".kube/t", "home");
    load_ok(world, NULL, NULL);
    assert_string_equal(ml_kubeconfig_authorization(world->config), "Bearer home");
}

static void test_kubeconfig_in_a_pod_uses_the_service_account(void **state)
{
    struct world *world = *state;
    world->env.account_dir = world->dir;
    world->env.service_host = "10.0.0.1";
    world->env.service_port = "443";
    assert_int_equal(load(world, NULL, NULL), ML_ENOT_FOUND); /* no token mounted */
    write_file(world, "token", "sa\n");
    load_ok(world, NULL, NULL); /* a missing ca.crt: the system's roots */
    assert_true(ml_kubeconfig_tls(world->config)->ca_pem.len == 0);
    assert_string_equal(ml_kubeconfig_namespace(world->config), "default");
    write_file(world, "ca.crt", PEM);
    write_file(world, "namespace", "ops\n");
    load_ok(world, NULL, NULL);
    assert_string_equal(ml_kubeconfig_server(world->config), "https://10.0.0.1:443");
    assert_string_equal(ml_kubeconfig_namespace(world->config), "ops");
    assert_str_eq(ml_kubeconfig_tls(world->config)->ca_pem, PEM);
    assert_string_equal(ml_kubeconfig_authorization(world->config), "Bearer sa");
    world->env.service_host = "fd00::1";
    load_ok(world, NULL, NULL);
    assert_string_equal(ml_kubeconfig_server(world->config), "https://[fd00::1]:443");
    /* Who names a file or a context means it. */
    write_file(world, "config", HTTPS USERS("token: abc"));
    load_ok(world, "config", NULL);
    assert_string_equal(ml_kubeconfig_server(world->config), "https://h:6443");
    assert_int_equal(load(world, NULL, "x"), ML_ENOT_FOUND);
}

static void test_kubeconfig_token_file_is_read_again_in_time(void **state)
{
    struct world *world = *state;
    write_file(world, "config", HTTPS USERS("tokenFile: token"));
    write_file(world, "token", "one");
    load_ok(world, "config", NULL);
    write_file(world, "token", "two");
    ml_clock_fake_advance(&world->clock, 50 * ML_NS_PER_S);
    assert_string_equal(ml_kubeconfig_authorization(world->config), "Bearer one");
    ml_clock_fake_advance(&world->clock, ML_NS_PER_S);
    assert_string_equal(ml_kubeconfig_authorization(world->config), "Bearer two");

    write_file(world, "token", "three");
    ml_kubeconfig_refresh(world->config);
    assert_string_equal(ml_kubeconfig_authorization(world->config), "Bearer three");

    static const char *const bad[] = {"", " \n", "a\nb"};
    for (size_t i = 0; i < ML_COUNT(bad); i++) {
        write_file(world, "token", bad[i]);
        ml_kubeconfig_refresh(world->config);
        assert_string_equal(ml_kubeconfig_authorization(world->config), "Bearer three");
    }
    ML_AUTO_FREE char *token = path_of(world, "token");
    unlink(token);
    ml_kubeconfig_refresh(world->config);
    assert_string_equal(ml_kubeconfig_authorization(world->config), "Bearer three");
}

#define WITH(test) cmocka_unit_test_setup_teardown(test, setup, teardown)

int main(void)
{
    const struct CMUnitTest tests[] = {
        WITH(test_kubeconfig_reads_a_whole_file),
        WITH(test_kubeconfig_chooses_among_credentials),
        WITH(test_kubeconfig_says_what_is_wrong),
        WITH(test_kubeconfig_named_explicitly_must_exist),
        WITH(test_kubeconfig_list_merges_by_whole_entries),
        WITH(test_kubeconfig_list_of_missing_files_is_an_error),
        WITH(test_kubeconfig_list_does_not_pass_over_a_broken_file),
        WITH(test_kubeconfig_falls_back_to_home_and_then_gives_up),
        WITH(test_kubeconfig_in_a_pod_uses_the_service_account),
        WITH(test_kubeconfig_token_file_is_read_again_in_time),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
