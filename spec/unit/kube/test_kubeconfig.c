#include "unit.h"

#include "kube/kubeconfig.h"

#include <stdio.h>
#include <sys/stat.h>
#include <unistd.h>

#define PEM_B64                                                                                    \
    "LS0tLS1CRUdJTiBDRVJUSUZJQ0FURS0tLS0tCmFiYwo=" /* -----BEGIN CERTIFICATE-----\nabc */
#define PEM "-----BEGIN CERTIFICATE-----\nabc\n"

/* A folder of its own for each test. */
struct world {
    char dir[64];
    struct ml_kubeconfig_env env;
    struct ml_kubeconfig *config;
    struct ml_err err;
};

static int setup(void **state)
{
    struct world *world = ml_new(struct world);
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
    return ml_kubeconfig_load_env(&opts, &world->env, &world->config, &world->err);
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
#define EXEC(fields)  USERS("exec: {apiVersion: client.authentication.k8s.io/v1, " fields "}")
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
    assert_string_equal(world->config->server, "https://one:6443");
    assert_string_equal(world->config->ns, "team");
    const struct ml_http_tls *tls = &world->config->tls;
    assert_str_eq(tls->ca_pem, PEM);
    assert_str_eq(tls->cert_pem, PEM);
    assert_str_eq(tls->key_pem, PEM);
    assert_string_equal(tls->server_name, "inner");
    assert_string_equal(tls->proxy_url, "socks5://p:1080");
    assert_false(tls->insecure);
    assert_null(world->config->authorization);

    load_ok(world, "config", "prod");
    assert_string_equal(world->config->server, "https://two/k8s/c-1");
    assert_string_equal(world->config->ns, "default");
    assert_true(world->config->tls.insecure);
    assert_true(world->config->tls.ca_pem.len == 0);
    assert_string_equal(world->config->authorization, "Bearer abc");
    assert_non_null(strstr(world->config->source, "/config, context \"prod\""));
}

/* Of an editor, and in the middle where files were put together: OpenSSL passes over a certificate
 * behind one without a word. */
static void test_kubeconfig_byte_order_marks_are_no_part_of_files(void **state)
{
    struct world *world = *state;
    write_file(world, "ca.crt", "\xef\xbb\xbf" PEM "\n\xef\xbb\xbf" PEM);
    write_file(world, "token",
               "\xef\xbb\xbf"
               "abc\r\n");
    write_file(world, "config",
               "\xef\xbb\xbf" CLUSTERS("server: 'https://h', certificate-authority: ca.crt")
                   USERS("tokenFile: token"));
    load_ok(world, "config", NULL);
    assert_str_eq(world->config->tls.ca_pem, PEM "\n" PEM);
    assert_string_equal(world->config->authorization, "Bearer abc");
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
        {CLUSTERS("server: 'HTTPS://h'") USERS("token: abc"), "Bearer abc"},
        {"clusters: [{name: c, cluster: {server: 'https://h'}}]\ncontexts: [{name: x, context: "
         "{cluster: c}}]\ncurrent-context: x\n",
         NULL},
    };
    write_file(world, "token", "\n from-file\n");
    for (size_t i = 0; i < ML_COUNT(rows); i++) {
        write_file(world, "config", rows[i].yaml);
        load_ok(world, "config", NULL);
        const char *got = world->config->authorization;
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
        {"current-context: k\ncontexts: []\n", "/config: no context \"k\""},
        {"current-context: k\ncontexts: 7\n", "/config: no context \"k\""},
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
        {CLUSTERS("server: 'https://h', insecure-skip-tls-verify: 'yes'") USERS(""),
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
        {HTTPS USERS("exec: {}"), "exec of user \"u\": no command"},
        {HTTPS USERS("exec: 7"), "exec of user \"u\": no command"},
        {HTTPS USERS("exec: {command: aws}"), "apiVersion \"\" is not supported"},
        {HTTPS USERS("exec: {command: aws, apiVersion: client.authentication.k8s.io/v1alpha1}"),
         "client.authentication.k8s.io/v1alpha1\" is not supported; the plugin's tool writes a new "
         "kubeconfig"},
        {HTTPS EXEC("command: aws"), "no interactiveMode; add Never or IfAvailable"},
        {HTTPS EXEC("command: aws, interactiveMode: Always"), "none is there; use a token"},
        {HTTPS EXEC("command: aws, interactiveMode: Maybe"), "\"Maybe\"; use Never or IfAvailable"},
        {HTTPS EXEC("command: aws, interactiveMode: Never, args: x"), "args must be a list"},
        {HTTPS EXEC("command: aws, interactiveMode: Never, args: [1]"),
         "args must be a list of strings; put them in quotes"},
        {HTTPS EXEC("command: aws, interactiveMode: Never, env: [{value: x}]"),
         "env: each variable needs a name"},
        {HTTPS EXEC("command: aws, interactiveMode: Never, env: [{name: A, value: 1}]"),
         "env: the value of A must be a string"},
        {HTTPS EXEC("command: aws, interactiveMode: Never, provideClusterInfo: 1"),
         "provideClusterInfo must be true or false"},
        {HTTPS USERS("auth-provider: {name: gcp}"), "user \"u\": auth-provider was removed"},
        {HTTPS USERS("token: a, as-groups: [x]"), "need a user: add \"as\""},
        {HTTPS USERS("token: a, as: x, as-groups: x"), "as-groups must be a list"},
        {HTTPS USERS("token: a, as: x, as-user-extra: [x]"), "as-user-extra must map names"},
        {HTTPS USERS("token: a, as: x, as-user-extra: {k: v}"),
         "as-user-extra of user \"u\": k must be a list"},
        {HTTPS USERS("token: a, as: x, as-groups: [\"a\\nb\"]"), "a line end or control character"},
        {CLUSTERS("server: 'https://h', proxy-url: 'ftp://p'") USERS(""),
         "proxy-url must start with http://, https:// or socks5://"},
        {CLUSTERS("server: 'https://h', disable-compression: 1") USERS(""),
         "disable-compression must be true or false"},
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
    assert_string_equal(world->config->server, "https://first");
    assert_null(world->config->tls.server_name);
    assert_null(world->config->authorization);
    assert_non_null(strstr(world->config->source, "/b, context \"x\""));
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
    assert_string_equal(world->config->authorization, "Bearer home");
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
    assert_true(world->config->tls.ca_pem.len == 0);
    assert_string_equal(world->config->ns, "default");
    write_file(world, "ca.crt", PEM);
    write_file(world, "namespace", "ops\n");
    load_ok(world, NULL, NULL);
    assert_string_equal(world->config->server, "https://10.0.0.1:443");
    assert_string_equal(world->config->ns, "ops");
    assert_str_eq(world->config->tls.ca_pem, PEM);
    assert_string_equal(world->config->authorization, "Bearer sa");
    world->env.service_host = "fd00::1";
    load_ok(world, NULL, NULL);
    assert_string_equal(world->config->server, "https://[fd00::1]:443");
    /* A named file or context has precedence over the service account. */
    write_file(world, "config", HTTPS USERS("token: abc"));
    load_ok(world, "config", NULL);
    assert_string_equal(world->config->server, "https://h:6443");
    assert_int_equal(load(world, NULL, "x"), ML_ENOT_FOUND);
}

static void test_kubeconfig_reads_an_exec_plugin(void **state)
{
    struct world *world = *state;
    write_file(
        world, "config",
        CLUSTERS("server: 'https://h', extensions: [{name: other, extension: 1}, {name: "
                 "client.authentication.k8s.io/exec, extension: {audience: [a]}}]")
            EXEC("command: bin/login, args: [one, \"two\\n2\"], env: [{name: A, value: '1'}, "
                 "{name: B}], interactiveMode: IfAvailable, provideClusterInfo: true, "
                 "installHint: get it"));
    load_ok(world, "config", NULL);
    const struct ml_exec_config *exec = world->config->exec;
    ML_AUTO_FREE char *command = path_of(world, "bin/login");
    assert_string_equal(exec->argv.items[0], command);
    assert_string_equal(exec->argv.items[1], "one");
    assert_string_equal(exec->argv.items[2], "two\n2");
    assert_null(exec->argv.items[3]);
    assert_string_equal(exec->env.items[0], "A=1");
    assert_string_equal(exec->env.items[1], "B=");
    assert_null(exec->env.items[2]);
    assert_string_equal(exec->api_version, ML_EXEC_V1);
    assert_string_equal(exec->install_hint, "get it");
    assert_string_equal(exec->cluster_config, "{\"audience\":[\"a\"]}");
    assert_true(exec->provide_cluster_info);

    /* A name is for PATH, an absolute path as it is; v1beta1 needs no interactiveMode. */
    write_file(
        world, "config",
        HTTPS USERS("exec: {apiVersion: client.authentication.k8s.io/v1beta1, command: aws}"));
    load_ok(world, "config", NULL);
    assert_string_equal(world->config->exec->argv.items[0], "aws");
    assert_null(world->config->exec->argv.items[1]);
    write_file(world, "config", HTTPS EXEC("command: /bin/x, interactiveMode: Never"));
    load_ok(world, "config", NULL);
    assert_string_equal(world->config->exec->argv.items[0], "/bin/x");

    /* Nobody is asked where something else is there. */
    write_file(world, "config", HTTPS USERS("token: abc, exec: {command: x}"));
    load_ok(world, "config", NULL);
    assert_null(world->config->exec);
}

static void test_kubeconfig_reads_whom_to_impersonate(void **state)
{
    struct world *world = *state;
    static const char *const headers[][2] = {
        {"Impersonate-User", "jane"},
        {"Impersonate-Uid", "u-1"},
        {"Impersonate-Group", "dev"},
        {"Impersonate-Group", "ops"},
        {"Impersonate-Extra-100%25", "1"},
        {"Impersonate-Extra-acme.com%2Fscopes", "view"},
        {"Impersonate-Extra-acme.com%2Fscopes", "edit"},
    };
    write_file(world, "config",
               HTTPS USERS("token: a, as: jane, as-uid: u-1, as-groups: [dev, ops], as-user-extra: "
                           "{Acme.com/scopes: [view, edit], 100%: ['1'], none: []}"));
    load_ok(world, "config", NULL);
    assert_int_equal(world->config->impersonation_count, ML_COUNT(headers));
    for (size_t i = 0; i < ML_COUNT(headers); i++) {
        assert_string_equal(world->config->impersonation[i].name, headers[i][0]);
        assert_string_equal(world->config->impersonation[i].value, headers[i][1]);
    }
}

#define WITH(test) cmocka_unit_test_setup_teardown(test, setup, teardown)

int main(void)
{
    const struct CMUnitTest tests[] = {
        WITH(test_kubeconfig_reads_a_whole_file),
        WITH(test_kubeconfig_byte_order_marks_are_no_part_of_files),
        WITH(test_kubeconfig_chooses_among_credentials),
        WITH(test_kubeconfig_says_what_is_wrong),
        WITH(test_kubeconfig_named_explicitly_must_exist),
        WITH(test_kubeconfig_list_merges_by_whole_entries),
        WITH(test_kubeconfig_list_of_missing_files_is_an_error),
        WITH(test_kubeconfig_list_does_not_pass_over_a_broken_file),
        WITH(test_kubeconfig_falls_back_to_home_and_then_gives_up),
        WITH(test_kubeconfig_in_a_pod_uses_the_service_account),
        WITH(test_kubeconfig_reads_an_exec_plugin),
        WITH(test_kubeconfig_reads_whom_to_impersonate),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
