/* Through the credentials that it is for. */
#include "credentials_world.h"

#include "codec/json.h"

static void test_exec_plugin_is_told_what_it_needs(void **state)
{
    struct credentials_world *world = *state;
    struct waiter w;
    world_open(world, CONFIG_EXEC);
    assert_int_equal(plugin.starts, 0); /* nobody has asked yet */
    assert_null(shown(world, &w));
    assert_string_equal(plugin.home, "/x");
    ML_AUTO_FREE char *kind = ml_json_find_string(ml_str_of(plugin.info), "kind", NULL);
    ML_AUTO_FREE char *server = ml_json_find_string(ml_str_of(plugin.info), "spec", "cluster",
                                                    "server", NULL);
    struct ml_str ca, interactive;
    assert_string_equal(kind, "ExecCredential");
    assert_string_equal(server, "https://h:6443");
    assert_true(ml_json_find(ml_str_of(plugin.info), &ca, "spec", "cluster",
                             "certificate-authority-data", NULL));
    assert_true(ml_json_find(ml_str_of(plugin.info), &interactive, "spec", "interactive", NULL));
    assert_str_eq(interactive, "false");
    plugin_give("t", 0);
    assert_int_equal(w.ready, 1);
    assert_string_equal(w.authorization, "Bearer t");
}

static void test_exec_plugin_runs_once_for_all_who_wait(void **state)
{
    struct credentials_world *world = *state;
    struct waiter waiters[20];
    world_open(world, CONFIG_EXEC);
    for (size_t i = 0; i < ML_COUNT(waiters); i++)
        assert_null(shown(world, &waiters[i]));
    ml_credentials_cancel_wait(&waiters[3].wait);
    assert_int_equal(plugin.starts, 1);
    plugin_give("t", 0);
    for (size_t i = 0; i < ML_COUNT(waiters); i++)
        assert_int_equal(waiters[i].ready, i == 3 ? 0 : 1);
    for (int i = 0; i < 100; i++)
        assert_string_equal(shown(world, &waiters[0]), "t");
    world_wait(world, 86400 * ML_NS_PER_S);
    assert_string_equal(shown(world, &waiters[0]), "t"); /* it never said when it expires */
    assert_int_equal(plugin.starts, 1);
}

static void test_exec_plugin_is_asked_again_before_its_token_expires(void **state)
{
    struct credentials_world *world = *state;
    struct waiter w, late;
    world_open(world, CONFIG_EXEC);
    shown(world, &w);
    plugin_give("one", 600);
    ml_credentials_accepted(world->credentials, w.identity.generation);
    world_wait(world, 479 * ML_NS_PER_S);
    assert_string_equal(shown(world, &w), "one");
    assert_int_equal(plugin.starts, 1);
    /* A fifth before the end; nobody waits for it. */
    world_wait(world, 2 * ML_NS_PER_S);
    assert_string_equal(shown(world, &w), "one");
    assert_string_equal(shown(world, &w), "one");
    assert_int_equal(plugin.starts, 2);
    plugin_give("two", 1200);
    assert_string_equal(shown(world, &w), "two");
    /* One that hangs is waited for when there is nothing else. */
    world_wait(world, 715 * ML_NS_PER_S);
    assert_string_equal(shown(world, &w), "two");
    assert_int_equal(plugin.starts, 3);
    world_wait(world, 5 * ML_NS_PER_S);
    assert_null(shown(world, &late));
    plugin_give("three", 2000);
    assert_string_equal(late.authorization, "Bearer three");
}

static void test_exec_plugin_that_fails_leaves_what_has_not_expired(void **state)
{
    struct credentials_world *world = *state;
    struct waiter w;
    world_open(world, CONFIG_EXEC);
    shown(world, &w);
    plugin_give("one", 600);
    ml_credentials_accepted(world->credentials, w.identity.generation);
    world_wait(world, 500 * ML_NS_PER_S);
    assert_string_equal(shown(world, &w), "one");
    plugin_end(&(struct ml_child_end){.code = 1, .errors = ML_STR("no network\n")});
    assert_string_equal(shown(world, &w), "one");
    assert_int_equal(world_logged(world, "the exec plugin failed"), 1);
    world_wait(world, 101 * ML_NS_PER_S);
    assert_null(shown(world, &w)); /* now it has */
    plugin_end(&(struct ml_child_end){.code = 1, .errors = ML_STR("no network\n")});
    assert_int_equal(w.ready, 1);
    assert_int_equal(w.err.kind, ML_EUNAUTHORIZED);
    assert_string_equal(w.err.message, "exec plugin login: exit code 1: no network");
}

static void test_exec_plugin_that_fails_is_not_run_in_a_hot_loop(void **state)
{
    struct credentials_world *world = *state;
    struct waiter w;
    world_open(world, CONFIG_EXEC);
    /* A request each 10 ms for 10 minutes. */
    for (int i = 0; i < 60000; i++) {
        if (!ask(world, &w) && plugin.child)
            plugin_end(&(struct ml_child_end){.code = 1});
        world_wait(world, 10 * ML_NS_PER_MS);
        assert_int_equal(w.ready, 1);
        assert_int_equal(w.err.kind, ML_EUNAUTHORIZED);
    }
    assert_in_range(plugin.starts, 12, 30);
    /* And when it is well again, so are we: within a minute. */
    int before = plugin.starts;
    world_wait(world, 60 * ML_NS_PER_S);
    assert_null(shown(world, &w));
    assert_int_equal(plugin.starts, before + 1);
    plugin_give("t", 0);
    assert_string_equal(w.authorization, "Bearer t");
}

static void
test_exec_plugin_that_fails_while_its_token_is_good_is_not_run_in_a_hot_loop(void **state)
{
    struct credentials_world *world = *state;
    struct waiter w;
    world_open(world, CONFIG_EXEC);
    shown(world, &w);
    plugin_give("one", 600);
    ml_credentials_accepted(world->credentials, w.identity.generation);
    world_wait(world, 480 * ML_NS_PER_S);
    for (int i = 0; i < 11000; i++) { /* a request each 10 ms to the end of the token */
        assert_string_equal(shown(world, &w), "one");
        ml_credentials_accepted(world->credentials, w.identity.generation);
        if (plugin.child)
            plugin_end(&(struct ml_child_end){.code = 1});
        world_wait(world, 10 * ML_NS_PER_MS);
    }
    assert_in_range(plugin.starts, 5, 15);
}

static void test_exec_plugin_is_asked_again_after_a_refusal(void **state)
{
    struct credentials_world *world = *state;
    struct waiter w, other;
    world_open(world, CONFIG_EXEC);
    shown(world, &w);
    plugin_give("one", 0);
    uint64_t first = w.identity.generation;
    ml_credentials_accepted(world->credentials, first);
    /* Two were refused; the plugin runs once, and all wait for it. */
    assert_true(ml_credentials_rejected(world->credentials, first, false));
    assert_null(shown(world, &w));
    assert_true(ml_credentials_rejected(world->credentials, first, false));
    assert_null(shown(world, &other));
    assert_int_equal(plugin.starts, 2);
    plugin_give("two", 0);
    assert_string_equal(w.authorization, "Bearer two");
    assert_string_equal(other.authorization, "Bearer two");
    /* A token says nothing in a handshake. */
    assert_false(ml_credentials_rejected(world->credentials, w.identity.generation, true));
    assert_int_equal(plugin.starts, 2);
}

static void test_exec_plugin_that_helps_nothing_is_run_less_and_less(void **state)
{
    struct credentials_world *world = *state;
    struct waiter w;
    int refusals = 0, worth = 0;
    world_open(world, CONFIG_EXEC);
    for (int i = 0; i < 60000; i++) { /* 401 for ever, a request each 10 ms for 10 minutes */
        if (!ask(world, &w))
            plugin_give("same", 0);
        refusals++;
        worth += ml_credentials_rejected(world->credentials, w.identity.generation, false);
        if (plugin.child)
            plugin_give("same", 0);
        world_wait(world, 10 * ML_NS_PER_MS);
    }
    assert_int_equal(refusals, 60000);
    assert_in_range(plugin.starts, 12, 30);
    assert_in_range(worth, 0, 30);
}

static void test_exec_plugin_that_is_missing_says_how_to_get_it(void **state)
{
    struct credentials_world *world = *state;
    struct waiter w;
    world_open(world, CONFIG_EXEC);
    plugin.refuse = ML_ENOT_FOUND;
    assert_null(shown(world, &w));
    assert_int_equal(w.ready, 0); /* never at once */
    ml_loop_poll(world->loop);
    assert_string_equal(w.err.message,
                        "exec plugin login: No such file or directory; install it where moonloop "
                        "runs, or correct exec.command in the kubeconfig: get it");
    assert_null(shown(world, &w));
    ml_loop_poll(world->loop);
    assert_int_equal(w.ready, 1);
    assert_int_equal(plugin.starts, 1);
}

static void test_exec_plugin_says_what_is_wrong_with_its_answer(void **state)
{
    struct credentials_world *world = *state;
    static const struct {
        struct ml_child_end end;
        const char *message;
    } rows[] = {
        {{.timed_out = true, .code = 137, .signo = 9, .errors = ML_STR("open http://…")},
         "did not end within 60 s and was killed; run it by hand"},
        {{.too_long = true, .code = 137, .signo = 9}, "wrote more than 1048576 bytes"},
        {{.code = 139, .signo = 11}, "killed by signal 11"},
        {{.code = 2, .errors = ML_STR("a\x1b[31m\nb\xff")}, "exit code 2: a [31m b?"},
        {{.output = ML_STR("")}, "it wrote no JSON"},
        {{.output = ML_STR("please log in")}, "it wrote no JSON"},
        {{.output = ML_STR("[]")}, "no ExecCredential"},
        {{.output = ML_STR("{\"kind\":\"Pod\"}")}, "no ExecCredential"},
        {{.output = ML_STR("{\"kind\":\"ExecCredential\",\"apiVersion\":"
                           "\"client.authentication.k8s.io/v1beta1\",\"status\":{}}")},
         "apiVersion client.authentication.k8s.io/v1beta1, and the kubeconfig says "
         "client.authentication.k8s.io/v1"},
        {{.output = ML_STR("{\"kind\":\"ExecCredential\"}")}, "apiVersion (none)"},
        {{.output = ML_STR(V1 "\"status\":null}")}, "has no status"},
        {{.output = ML_STR(V1 "\"status\":{}}")}, "neither a token nor a certificate"},
        {{.output = ML_STR(V1 "\"status\":{\"token\":7}}")}, "neither a token nor a certificate"},
        {{.output = ML_STR(V1 "\"status\":{\"token\":\"a b\"}}")}, "the token has a space"},
        {{.output = ML_STR(V1 "\"status\":{\"clientKeyData\":\"x\"}}")}, "not both"},
        {{.output = ML_STR(V1 "\"status\":{\"clientCertificateData\":\"x\",\"clientKeyData\":\"y\"}"
                              "}")},
         "the certificate cannot be read"},
        {{.output = ML_STR(V1 "\"status\":{\"token\":\"t\",\"expirationTimestamp\":\"soon\"}}")},
         "expirationTimestamp soon is not a time"},
    };
    struct waiter w;
    world_open(world, CONFIG_EXEC);
    for (size_t i = 0; i < ML_COUNT(rows); i++) {
        world_wait(world, 60 * ML_NS_PER_S);
        assert_null(shown(world, &w));
        plugin_end(&rows[i].end);
        assert_int_equal(w.err.kind, ML_EUNAUTHORIZED);
        if (!strstr(w.err.message, "exec plugin login: ") ||
            !strstr(w.err.message, rows[i].message))
            fail_msg("%s\n is not about: %s", w.err.message, rows[i].message);
    }
}

static void give_pair(const struct ml_tls_identity *pair)
{
    ML_AUTO(ml_buf_fini) struct ml_buf text = ML_BUF_INIT;
    struct ml_json_writer writer;
    ml_json_writer_init(&writer, &text);
    ml_buf_puts(&text, V1 "\"status\":");
    ml_json_begin_object(&writer);
    ml_json_put_string(&writer, "clientCertificateData", ml_str_of(pair->cert_pem));
    ml_json_put_string(&writer, "clientKeyData", ml_str_of(pair->key_pem));
    ml_json_end_object(&writer);
    ml_buf_puts(&text, "}\n");
    plugin_write(ml_buf_cstr(&text));
}

static void test_exec_plugin_gives_a_certificate(void **state)
{
    struct credentials_world *world = *state;
    struct waiter w;
    ML_AUTO(ml_buf_fini) struct ml_buf metrics = ML_BUF_INIT;
    world_open(world, CONFIG_EXEC);
    ml_metrics_write(world->metrics, &metrics);
    assert_non_null(strstr(ml_buf_cstr(&metrics), "rest_client_exec_plugin_ttl_seconds +Inf\n"));
    assert_non_null(strstr(ml_buf_cstr(&metrics), "rest_client_exec_plugin_call_total{code=\"1\","
                                                  "call_status=\"plugin_execution_error\"} 0\n"));
    shown(world, &w);
    give_pair(&world->one);
    assert_string_equal(w.authorization, "");
    assert_str_eq(w.identity.tls->cert_pem, world->one.cert_pem);
    ml_credentials_accepted(world->credentials, w.identity.generation);
    /* It lives for an hour; that counts as if the plugin had said so. */
    world_wait(world, 3500 * ML_NS_PER_S);
    shown(world, &w);
    assert_int_equal(plugin.starts, 2);
    give_pair(&world->two);
    shown(world, &w);
    assert_str_eq(w.identity.tls->key_pem, world->two.key_pem);
    ml_credentials_accepted(world->credentials, w.identity.generation);
    /* A handshake that fails may be because of it. */
    assert_true(ml_credentials_rejected(world->credentials, w.identity.generation, true));
    assert_int_equal(plugin.starts, 3);
    plugin_end(&(struct ml_child_end){.code = 7});
    ml_buf_clear(&metrics);
    ml_metrics_write(world->metrics, &metrics);
    const char *text = ml_buf_cstr(&metrics);
    assert_non_null(strstr(text, "rest_client_exec_plugin_ttl_seconds 100\n"));
    assert_non_null(strstr(text, "rest_client_exec_plugin_certificate_rotation_age_count 1\n"));
    assert_non_null(strstr(text, "rest_client_exec_plugin_call_total{code=\"0\",call_status="
                                 "\"no_error\"} 2\n"));
    assert_non_null(strstr(text, "rest_client_exec_plugin_call_total{code=\"7\",call_status="
                                 "\"plugin_execution_error\"} 1\n"));
}

static void test_exec_plugin_may_give_the_same_certificate_again(void **state)
{
    struct credentials_world *world = *state;
    struct waiter w;
    world_open(world, CONFIG_EXEC);
    for (int i = 1; i <= 2; i++) {
        shown(world, &w);
        assert_int_equal(plugin.starts, i);
        give_pair(&world->one);
        shown(world, &w);
        assert_str_eq(w.identity.tls->cert_pem, world->one.cert_pem);
        assert_str_eq(w.identity.tls->key_pem, world->one.key_pem);
        ml_credentials_accepted(world->credentials, w.identity.generation);
        world_wait(world, 3500 * ML_NS_PER_S);
    }
}

static void test_exec_plugin_whose_token_has_expired_already_is_not_run_at_once(void **state)
{
    struct credentials_world *world = *state;
    struct waiter w;
    world_open(world, CONFIG_EXEC);
    shown(world, &w);
    plugin_give("old", -5);
    assert_string_equal(w.authorization, "Bearer old"); /* maybe it is our clock */
    ml_credentials_accepted(world->credentials, w.identity.generation);
    for (int i = 0; i < 47; i++) {
        assert_string_equal(shown(world, &w), "old");
        world_wait(world, ML_NS_PER_S);
    }
    assert_int_equal(plugin.starts, 1);
    assert_int_equal(world_logged(world, "has expired already"), 1);
}

static void test_exec_plugin_under_way_at_the_end_is_killed(void **state)
{
    struct credentials_world *world = *state;
    struct waiter w;
    world_open(world, CONFIG_EXEC);
    shown(world, &w);
    assert_non_null(plugin.child);
    ml_credentials_cancel_wait(&w.wait);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        WITH_WORLD(test_exec_plugin_is_told_what_it_needs),
        WITH_WORLD(test_exec_plugin_runs_once_for_all_who_wait),
        WITH_WORLD(test_exec_plugin_is_asked_again_before_its_token_expires),
        WITH_WORLD(test_exec_plugin_that_fails_leaves_what_has_not_expired),
        WITH_WORLD(test_exec_plugin_that_fails_is_not_run_in_a_hot_loop),
        WITH_WORLD(test_exec_plugin_that_fails_while_its_token_is_good_is_not_run_in_a_hot_loop),
        WITH_WORLD(test_exec_plugin_is_asked_again_after_a_refusal),
        WITH_WORLD(test_exec_plugin_that_helps_nothing_is_run_less_and_less),
        WITH_WORLD(test_exec_plugin_that_is_missing_says_how_to_get_it),
        WITH_WORLD(test_exec_plugin_says_what_is_wrong_with_its_answer),
        WITH_WORLD(test_exec_plugin_gives_a_certificate),
        WITH_WORLD(test_exec_plugin_may_give_the_same_certificate_again),
        WITH_WORLD(test_exec_plugin_whose_token_has_expired_already_is_not_run_at_once),
        WITH_WORLD(test_exec_plugin_under_way_at_the_end_is_killed),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
