#include "credentials_world.h"

#include "codec/base64.h"

static void test_credentials_read_a_token_file_again_in_time(void **state)
{
    struct credentials_world *world = *state;
    struct waiter w;
    world_put(world, "token", "one");
    world_open(world, CONFIG("tokenFile: token"));
    world_put(world, "token", "two\n");
    world_wait(world, 10 * ML_NS_PER_S);
    assert_string_equal(shown(world, &w), "one");
    world_wait(world, ML_NS_PER_S);
    assert_string_equal(shown(world, &w), "two");
    assert_int_equal(world_logged(world, "changed on disk"), 1);
}

static void test_credentials_keep_a_token_while_its_file_is_no_good(void **state)
{
    struct credentials_world *world = *state;
    static const char *const bad[] = {"", " \n", "a\nb", NULL};
    struct waiter w;
    world_put(world, "token", "one");
    world_open(world, CONFIG("tokenFile: token"));
    for (size_t i = 0; i < ML_COUNT(bad); i++) {
        ML_AUTO_FREE char *path = ml_asprintf("%s/token", world->dir);
        if (bad[i])
            world_put(world, "token", bad[i]);
        else
            unlink(path);
        world_wait(world, 11 * ML_NS_PER_S);
        assert_string_equal(shown(world, &w), "one");
        assert_string_equal(shown(world, &w), "one");
        world_wait(world, 2 * ML_NS_PER_S);
        assert_string_equal(shown(world, &w), "one");
    }
    /* Empty and blank are one problem, logged after 0, 2 and 13 s, the others after 0 and 2 s. */
    assert_int_equal(world_logged(world, "a credentials file cannot be used"), 7);
    assert_int_equal(world_logged(world, "\"failures\":1,\"retry_seconds\":1"), 3);
    assert_int_equal(world_logged(world, "\"failures\":3,\"retry_seconds\":1"), 1);
    /* It is looked for again soon, not only after a minute. */
    world_put(world, "token", "two");
    world_wait(world, 2 * ML_NS_PER_S);
    assert_string_equal(shown(world, &w), "two");
}

/* ---- credentials in the kubeconfig itself ---- */

static void test_credentials_read_a_token_of_the_kubeconfig_again(void **state)
{
    struct credentials_world *world = *state;
    struct waiter w;
    world_open(world, CONFIG("token: one"));
    assert_string_equal(shown(world, &w), "one");
    world_put(world, "config", CONFIG("token: two"));
    world_wait(world, 11 * ML_NS_PER_S);
    assert_string_equal(shown(world, &w), "two");
    /* After a refusal at once. */
    world_put(world, "config.new", CONFIG("token: three"));
    ML_AUTO_FREE char *from = ml_asprintf("%s/config.new", world->dir);
    ML_AUTO_FREE char *to = ml_asprintf("%s/config", world->dir);
    assert_int_equal(rename(from, to), 0);
    assert_true(ml_credentials_rejected(world->credentials, w.identity.generation, false));
    assert_string_equal(shown(world, &w), "three");
    /* A token file takes its place, and goes again. */
    world_put(world, "token", "four");
    world_put(world, "config", CONFIG("tokenFile: token"));
    world_wait(world, 11 * ML_NS_PER_S);
    assert_string_equal(shown(world, &w), "four");
    world_put(world, "config", CONFIG("token: five"));
    world_wait(world, 11 * ML_NS_PER_S);
    assert_string_equal(shown(world, &w), "five");
    assert_int_equal(world_logged(world, "changed on disk"), 4);
    world_wait(world, 11 * ML_NS_PER_S);
    assert_string_equal(shown(world, &w), "five");
    assert_int_equal(world_logged(world, "changed on disk"), 4);
}

static void test_credentials_keep_what_a_bad_kubeconfig_had_before(void **state)
{
    struct credentials_world *world = *state;
    static const char *const bad[] = {
        "",
        "clusters: [",
        "a: b",
        CONFIG("tokken: two") "users: []\n",
        "clusters: [{name: c, cluster: {server: 'https://another:6443'}}]\n"
        "contexts: [{name: x, context: {cluster: c, user: u}}]\n"
        "users: [{name: u, user: {token: two}}]\n",
        "contexts: [{name: y, context: {cluster: c, user: u}}]\ncurrent-context: y\n",
        NULL};
    struct waiter w;
    world_open(world, CONFIG("token: one"));
    for (size_t i = 0; i < ML_COUNT(bad); i++) {
        ML_AUTO_FREE char *path = ml_asprintf("%s/config", world->dir);
        if (bad[i])
            world_put(world, "config", bad[i]);
        else
            unlink(path);
        world_wait(world, 11 * ML_NS_PER_S);
        assert_string_equal(shown(world, &w), "one");
        world_wait(world, 2 * ML_NS_PER_S);
        assert_string_equal(shown(world, &w), "one");
    }
    assert_true(world_logged(world, "the server is another one now, https://another:6443") > 0);
    world_put(world, "config", CONFIG("token: two"));
    world_wait(world, 11 * ML_NS_PER_S);
    assert_string_equal(shown(world, &w), "two");
}

/* The context of the start, whatever is the current one now. */
static void test_credentials_keep_the_context_of_the_start(void **state)
{
    struct credentials_world *world = *state;
    struct waiter w;
    world_open(world, CONFIG("token: one"));
    world_put(world, "config",
              "clusters: [{name: c, cluster: {server: 'https://h:6443', certificate-authority: "
              "ca.crt}}]\n"
              "contexts: [{name: y, context: {cluster: c, user: v}}, {name: x, context: {cluster: "
              "c, user: u}}]\ncurrent-context: y\n"
              "users: [{name: v, user: {token: other}}, {name: u, user: {token: two}}]\n");
    world_wait(world, 11 * ML_NS_PER_S);
    assert_string_equal(shown(world, &w), "two");
}

static char *config_with_pair(const struct ml_tls_identity *identity)
{
    struct ml_buf cert = ML_BUF_INIT, key = ML_BUF_INIT;
    ml_base64_encode(ml_str_of(identity->cert_pem), &cert);
    ml_base64_encode(ml_str_of(identity->key_pem), &key);
    char *text = ml_asprintf(CONFIG("client-certificate-data: %s, client-key-data: %s"),
                             ml_buf_cstr(&cert), ml_buf_cstr(&key));
    ml_buf_fini(&cert);
    ml_buf_fini(&key);
    return text;
}

static void test_credentials_read_a_certificate_of_the_kubeconfig_again(void **state)
{
    struct credentials_world *world = *state;
    struct waiter w;
    ML_AUTO_FREE char *one = config_with_pair(&world->one);
    ML_AUTO_FREE char *two = config_with_pair(&world->two);
    const struct ml_tls_identity mixed = {.cert_pem = world->one.cert_pem,
                                          .key_pem = world->two.key_pem};
    ML_AUTO_FREE char *half = config_with_pair(&mixed);
    world_open(world, one);
    shown(world, &w);
    assert_str_eq(w.identity.tls->cert_pem, world->one.cert_pem);
    world_put(world, "config", half);
    world_wait(world, 11 * ML_NS_PER_S);
    shown(world, &w);
    assert_str_eq(w.identity.tls->key_pem, world->one.key_pem);
    world_put(world, "config", two);
    world_wait(world, 11 * ML_NS_PER_S);
    shown(world, &w);
    assert_str_eq(w.identity.tls->cert_pem, world->two.cert_pem);
    assert_str_eq(w.identity.tls->key_pem, world->two.key_pem);
}

/* As with a shell's <(command): what was in it is gone, and opening it would wait for ever. */
static void test_credentials_do_not_wait_for_a_pipe(void **state)
{
    struct credentials_world *world = *state;
    struct waiter w;
    ML_AUTO_FREE char *path = ml_asprintf("%s/token", world->dir);
    world_put(world, "token", "one");
    world_open(world, CONFIG("tokenFile: token"));
    unlink(path);
    assert_int_equal(mkfifo(path, 0600), 0);
    world_wait(world, 11 * ML_NS_PER_S);
    assert_string_equal(shown(world, &w), "one");
    assert_int_equal(world_logged(world, "not a file"), 1);
}

static void test_credentials_find_a_ca_that_was_missing_at_the_start(void **state)
{
    struct credentials_world *world = *state;
    struct waiter w;
    world_put(world, "token", "one");
    world_open(world, CONFIG("tokenFile: token"));
    /* As in a pod whose ca.crt came late. */
    free((char *)world->config->tls.ca_pem.ptr);
    world->config->tls.ca_pem = (struct ml_str){NULL, 0};
    shown(world, &w);
    assert_true(ml_credentials_rejected(world->credentials, w.identity.generation, true));
    assert_str_eq(w.identity.tls->ca_pem, world->one.ca_pem);
}

static void test_credentials_read_again_after_a_refusal(void **state)
{
    struct credentials_world *world = *state;
    struct waiter w;
    world_put(world, "token", "one");
    world_open(world, CONFIG("tokenFile: token"));
    assert_string_equal(shown(world, &w), "one");
    uint64_t old = w.identity.generation;
    assert_false(ml_credentials_rejected(world->credentials, old, false)); /* nothing new */
    world_put(world, "token", "two");
    assert_true(ml_credentials_rejected(world->credentials, old, false));
    assert_string_equal(shown(world, &w), "two");
    assert_true(w.identity.generation != old);
    /* Others were on the way with the old one. */
    assert_true(ml_credentials_rejected(world->credentials, old, false));
}

static void test_credentials_go_back_when_a_new_token_is_refused(void **state)
{
    struct credentials_world *world = *state;
    struct waiter w;
    world_put(world, "token", "header.payload.signature");
    world_open(world, CONFIG("tokenFile: token"));
    shown(world, &w);
    ml_credentials_accepted(world->credentials, w.identity.generation);
    world_put(world, "token", "header.pay"); /* half written */
    world_wait(world, 11 * ML_NS_PER_S);
    assert_string_equal(shown(world, &w), "header.pay");
    assert_true(ml_credentials_rejected(world->credentials, w.identity.generation, false));
    assert_string_equal(shown(world, &w), "header.payload.signature");
    ml_credentials_accepted(world->credentials, w.identity.generation);
    /* It is not taken again as long as the file says the same. */
    for (int i = 0; i < 10; i++) {
        world_wait(world, 11 * ML_NS_PER_S);
        assert_string_equal(shown(world, &w), "header.payload.signature");
    }
    world_put(world, "token", "header.payload.second");
    world_wait(world, 11 * ML_NS_PER_S);
    assert_string_equal(shown(world, &w), "header.payload.second");
    ml_credentials_accepted(world->credentials, w.identity.generation);
    /* Taken by the server: there is no way back any more. */
    assert_false(ml_credentials_rejected(world->credentials, w.identity.generation, false));
    assert_string_equal(shown(world, &w), "header.payload.second");
}

static void test_credentials_try_both_tokens_when_both_are_refused(void **state)
{
    struct credentials_world *world = *state;
    struct waiter w;
    world_put(world, "token", "one");
    world_open(world, CONFIG("tokenFile: token"));
    world_put(world, "token", "two");
    world_wait(world, 11 * ML_NS_PER_S);
    assert_string_equal(shown(world, &w), "two");
    assert_true(ml_credentials_rejected(world->credentials, w.identity.generation, false));
    assert_string_equal(shown(world, &w), "one");
    assert_true(ml_credentials_rejected(world->credentials, w.identity.generation, false));
    assert_string_equal(shown(world, &w), "two");
}

static void test_credentials_never_go_over_plain_http(void **state)
{
    struct credentials_world *world = *state;
    struct waiter w;
    world_open(world, "clusters: [{name: c, cluster: {server: 'http://h:8080'}}]\n"
                      "contexts: [{name: x, context: {cluster: c, user: u}}]\n"
                      "users: [{name: u, user: {token: abc, as: jane}}]\ncurrent-context: x\n");
    assert_string_equal(shown(world, &w), "");
    assert_int_equal(w.identity.impersonation_count, 0);
}

#define CONFIG_PAIR CONFIG("client-certificate: tls.crt, client-key: tls.key")

static void put_pair(struct credentials_world *world, const char *cert, const char *key)
{
    world_put(world, "tls.crt", cert);
    world_put(world, "tls.key", key);
}

static void test_credentials_take_a_new_pair_only_when_both_are_there(void **state)
{
    struct credentials_world *world = *state;
    struct waiter w;
    put_pair(world, world->one.cert_pem, world->one.key_pem);
    world_open(world, CONFIG_PAIR);
    const struct ml_http_tls *tls = (shown(world, &w), w.identity.tls);
    assert_str_eq(tls->cert_pem, world->one.cert_pem);
    world_put(world, "tls.crt", world->two.cert_pem);
    for (int i = 0; i < 5; i++) {
        world_wait(world, 11 * ML_NS_PER_S);
        shown(world, &w);
        assert_str_eq(tls->cert_pem, world->one.cert_pem);
        assert_str_eq(tls->key_pem, world->one.key_pem);
    }
    /* After 0, 11, 22 and 44 s. */
    assert_int_equal(world_logged(world, "do not belong together"), 4);
    assert_int_equal(world_logged(world, "\"failures\":5,"), 1);
    world_put(world, "tls.key", world->two.key_pem);
    world_wait(world, 2 * ML_NS_PER_S);
    shown(world, &w);
    assert_ptr_equal(w.identity.tls, tls);
    assert_str_eq(tls->cert_pem, world->two.cert_pem);
    assert_str_eq(tls->key_pem, world->two.key_pem);
}

static void test_credentials_keep_a_pair_whose_files_are_no_good(void **state)
{
    struct credentials_world *world = *state;
    struct waiter w;
    static const char *const bad[] = {"", "-----BEGIN CERTIFICATE-----\nMIIB\n", "garbage"};
    put_pair(world, world->one.cert_pem, world->one.key_pem);
    world_open(world, CONFIG_PAIR);
    for (size_t i = 0; i < ML_COUNT(bad); i++) {
        put_pair(world, bad[i], bad[i]);
        world_wait(world, 11 * ML_NS_PER_S);
        shown(world, &w);
        assert_str_eq(w.identity.tls->cert_pem, world->one.cert_pem);
        assert_str_eq(w.identity.tls->key_pem, world->one.key_pem);
    }
}

static void test_credentials_take_a_new_ca_after_a_failed_handshake(void **state)
{
    struct credentials_world *world = *state;
    struct waiter w;
    world_open(world, CONFIG("token: abc"));
    shown(world, &w);
    assert_false(ml_credentials_rejected(world->credentials, w.identity.generation, true));
    world_put(world, "ca.crt", "");
    assert_false(ml_credentials_rejected(world->credentials, w.identity.generation, true));
    assert_str_eq(w.identity.tls->ca_pem, world->one.ca_pem);
    world_put(world, "ca.crt", world->two.ca_pem);
    assert_true(ml_credentials_rejected(world->credentials, w.identity.generation, true));
    assert_str_eq(w.identity.tls->ca_pem, world->two.ca_pem);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        WITH_WORLD(test_credentials_read_a_token_of_the_kubeconfig_again),
        WITH_WORLD(test_credentials_keep_what_a_bad_kubeconfig_had_before),
        WITH_WORLD(test_credentials_keep_the_context_of_the_start),
        WITH_WORLD(test_credentials_read_a_certificate_of_the_kubeconfig_again),
        WITH_WORLD(test_credentials_read_a_token_file_again_in_time),
        WITH_WORLD(test_credentials_keep_a_token_while_its_file_is_no_good),
        WITH_WORLD(test_credentials_do_not_wait_for_a_pipe),
        WITH_WORLD(test_credentials_find_a_ca_that_was_missing_at_the_start),
        WITH_WORLD(test_credentials_read_again_after_a_refusal),
        WITH_WORLD(test_credentials_go_back_when_a_new_token_is_refused),
        WITH_WORLD(test_credentials_try_both_tokens_when_both_are_refused),
        WITH_WORLD(test_credentials_never_go_over_plain_http),
        WITH_WORLD(test_credentials_take_a_new_pair_only_when_both_are_there),
        WITH_WORLD(test_credentials_keep_a_pair_whose_files_are_no_good),
        WITH_WORLD(test_credentials_take_a_new_ca_after_a_failed_handshake),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
