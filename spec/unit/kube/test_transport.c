#include "unit.h"

#include "kube/credentials.h"
#include "kube/kubeconfig.h"
#include "kube/transport.h"
#include "net/http_server.h"
#include "net/tls.h"

#include <openssl/ssl.h>
#include <stdio.h>
#include <unistd.h>

#define BOUND_NS (10 * ML_NS_PER_S)

/* A server over TLS that knows one token, a client and one call on the real loop. */
struct world {
    struct ml_loop *loop;
    struct ml_tls_identity tls;
    struct ml_http_server *server;
    const char *token; /* "Bearer …" */
    int requests;
    char impersonated[64];
    struct ml_http_client *http;
    struct ml_kubeconfig config;
    struct ml_credentials *credentials;
    char token_path[64];
    struct ml_transport *transport;
    struct ml_transport_call *call;
    struct ml_timer bound;
    int status;
    char body[64];
    int done_count;
    int kind;
    bool cancel_in_head;
};

static void on_bound(void *context)
{
    (void)context;
    fail_msg("nothing happened in time");
}

static const char *header_of(const struct ml_http_exchange *exchange, const char *name)
{
    const char *value = ml_http_header(exchange, name);
    return value ? value : "";
}

static void answer(void *context, struct ml_http_exchange *exchange)
{
    struct world *world = context;
    bool known = strcmp(header_of(exchange, "Authorization"), world->token) == 0;
    world->requests++;
    snprintf(world->impersonated, sizeof world->impersonated, "%s",
             header_of(exchange, "Impersonate-User"));
    ml_http_answer(exchange,
                   &(struct ml_http_answer){.status = known ? 200 : 401,
                                            .content_type = "text/plain",
                                            .body = ml_str_of(known ? exchange->query : "who?")});
}

static void serve(struct world *world)
{
    const struct ml_tls_authority_opts opts = {.clock = ml_clock_real(), .valid_s = 3600};
    struct ml_err err = ML_ERR_INIT;
    SSL_CTX *ctx = NULL;
    assert_int_equal(ml_tls_authority_make(&opts, &world->tls, &err), 0);
    assert_int_equal(ml_tls_server_context(ml_str_of(world->tls.cert_pem),
                                           ml_str_of(world->tls.key_pem), &ctx, &err),
                     0);
    const struct ml_http_server_opts server = {.loop = world->loop,
                                               .address = "127.0.0.1:0",
                                               .tls = ctx,
                                               .handle = answer,
                                               .context = world};
    assert_int_equal(ml_http_server_new(&server, &world->server, &err), 0);
    SSL_CTX_free(ctx);
}

static void put_token(const struct world *world, const char *token)
{
    FILE *file = fopen(world->token_path, "w");
    assert_non_null(file);
    fputs(token, file);
    fclose(file);
}

static int setup(void **state)
{
    struct world *world = ml_new(struct world);
    struct ml_err err = ML_ERR_INIT;
    world->loop = ml_loop_new(ml_clock_real());
    serve(world);
    world->token = "Bearer one";
    snprintf(world->token_path, sizeof world->token_path, "/tmp/test_transport.%d.token",
             (int)getpid());
    put_token(world, "one");
    world->http = ml_http_client_new(world->loop, "moonloop-test");
    world->config.server = ml_asprintf("https://127.0.0.1:%d", ml_http_server_port(world->server));
    world->config.tls.ca_pem = ml_str_of(world->tls.ca_pem);
    world->config.token_file = world->token_path;
    assert_int_equal(ml_kubeconfig_read_token(&world->config, &err), 0);
    world->credentials = ml_credentials_new(
        &(struct ml_credentials_opts){.loop = world->loop, .config = &world->config});
    world->transport = ml_transport_http_new(world->http, world->credentials);
    ml_timer_init(&world->bound, world->loop, on_bound, NULL);
    *state = world;
    return 0;
}

static int teardown(void **state)
{
    struct world *world = *state;
    ml_timer_stop(&world->bound);
    world->transport->free(world->transport);
    ml_credentials_free(world->credentials);
    ml_http_client_free(world->http);
    ml_http_server_free(world->server);
    ml_loop_free(world->loop);
    ml_tls_identity_fini(&world->tls);
    free(world->config.server);
    free(world->config.authorization);
    unlink(world->token_path);
    free(world);
    return 0;
}

static void on_head(void *context, const struct ml_http_head *head)
{
    struct world *world = context;
    world->status = head->status;
    if (!world->cancel_in_head)
        return;
    world->transport->cancel(world->transport, world->call);
    ml_loop_stop(world->loop);
}

static int on_data(void *context, struct ml_str piece, struct ml_err *err)
{
    struct world *world = context;
    (void)err;
    strncat(world->body, piece.ptr, piece.len);
    return 0;
}

static void on_done(void *context, const struct ml_err *err)
{
    struct world *world = context;
    world->done_count++;
    world->kind = err ? err->kind : 0;
    ml_loop_stop(world->loop);
}

static int forbid(void *context, struct ml_err *err)
{
    (void)context;
    return ml_err_set(err, ML_ECANCELED, "not any more");
}

static void submit(struct world *world, const char *path, bool streaming,
                   int (*may_send)(void *context, struct ml_err *err))
{
    static const struct ml_http_handler handler = {on_head, on_data, on_done};
    const struct ml_transport_request request = {.method = "GET",
                                                 .path = path,
                                                 .deadlines = {.total_ms = 9000},
                                                 .streaming = streaming,
                                                 .may_send = may_send};
    world->status = world->done_count = world->kind = world->requests = 0;
    world->body[0] = '\0';
    ml_timer_start(&world->bound, BOUND_NS);
    world->call = world->transport->submit(world->transport, &request, &handler, world);
    assert_int_equal(world->done_count, 0);
}

static void get(struct world *world, const char *path)
{
    submit(world, path, false, NULL);
    ml_loop_run(world->loop);
}

static void assert_answered(struct world *world, int status, const char *body, int requests)
{
    assert_int_equal(world->done_count, 1);
    assert_int_equal(world->kind, 0);
    assert_int_equal(world->status, status);
    assert_string_equal(world->body, body);
    assert_int_equal(world->requests, requests);
}

static void test_transport_carries_path_and_query(void **state)
{
    struct world *world = *state;
    get(world, "/x?limit=5");
    assert_answered(world, 200, "limit=5", 1);
    assert_string_equal(world->transport->host, world->config.server + strlen("https://"));
}

static void test_transport_carries_whom_to_impersonate(void **state)
{
    struct world *world = *state;
    struct ml_http_header header = {"Impersonate-User", "jane"};
    world->config.impersonation = &header;
    world->config.impersonation_count = 1;
    get(world, "/x");
    assert_answered(world, 200, "", 1);
    assert_string_equal(world->impersonated, "jane");
}

static void test_transport_asks_once_more_with_what_is_new_after_a_401(void **state)
{
    struct world *world = *state;
    get(world, "/x?a");
    world->token = "Bearer two"; /* rotated; the kubelet has written it */
    put_token(world, "two\n");
    get(world, "/x?b");
    assert_answered(world, 200, "b", 2);
    get(world, "/x?c");
    assert_answered(world, 200, "c", 1);
    world->token = "Bearer three";
    put_token(world, "three");
    submit(world, "/x?watch", true, NULL);
    ml_loop_run(world->loop);
    assert_answered(world, 200, "watch", 2);
}

static void test_transport_passes_a_401_on_when_there_is_nothing_new(void **state)
{
    struct world *world = *state;
    world->token = "Bearer two";
    get(world, "/x");
    assert_answered(world, 401, "who?", 1);
    put_token(world, "three"); /* that is not it either */
    get(world, "/x");
    assert_answered(world, 401, "who?", 2);
}

static void test_transport_asks_once_more_with_a_new_ca(void **state)
{
    struct world *world = *state;
    struct ml_tls_identity other;
    struct ml_err err = ML_ERR_INIT;
    const struct ml_tls_authority_opts opts = {.clock = ml_clock_real(), .valid_s = 3600};
    char path[] = "/tmp/test_transport.ca.XXXXXX";
    FILE *file = fdopen(mkstemp(path), "w");
    fputs(world->tls.ca_pem, file);
    fclose(file);
    assert_int_equal(ml_tls_authority_make(&opts, &other, &err), 0);
    world->config.tls.ca_pem = ml_str_of(other.ca_pem);
    get(world, "/x");
    assert_int_equal(world->kind, ML_ETLS);
    world->config.ca_file = path;
    world->config.tls.ca_pem = ml_str_of(ml_strdup(other.ca_pem));
    get(world, "/x");
    assert_answered(world, 200, "", 1);
    free((char *)world->config.tls.ca_pem.ptr);
    ml_tls_identity_fini(&other);
    unlink(path);
}

/* The fence is asked before the second attempt, too. */
static int forbid_second(void *context, struct ml_err *err)
{
    struct world *world = context;
    return world->requests == 0 ? 0 : forbid(context, err);
}

static void test_transport_asks_the_fence_each_time(void **state)
{
    struct world *world = *state;
    world->token = "Bearer two";
    put_token(world, "two");
    submit(world, "/x", false, forbid_second);
    ml_loop_run(world->loop);
    assert_int_equal(world->done_count, 1);
    assert_int_equal(world->kind, ML_ECANCELED);
    assert_int_equal(world->requests, 1);
    submit(world, "/x", false, forbid);
    ml_loop_run(world->loop);
    assert_int_equal(world->kind, ML_ECANCELED);
    assert_int_equal(world->requests, 0);
}

/* ---- a plugin ---- */

static struct ml_child_opts plugin;

static int plugin_start(struct ml_loop *loop, const struct ml_child_opts *opts,
                        struct ml_child **out, struct ml_err *err)
{
    (void)loop, (void)err;
    plugin = *opts;
    *out = (struct ml_child *)&plugin;
    return 0;
}

static void plugin_free(struct ml_child *child)
{
    (void)child;
}

static void use_plugin(struct world *world, struct ml_exec_config *config)
{
    static const struct ml_exec_runner runner = {plugin_start, plugin_free};
    static struct ml_random random;
    static char *argv[] = {"login", NULL};
    *config = (struct ml_exec_config){.argv = {argv, 1}, .api_version = ML_EXEC_V1};
    ml_random_init(&random, 1);
    world->transport->free(world->transport);
    ml_credentials_free(world->credentials);
    world->config.token_file = NULL;
    world->config.exec = config;
    world->credentials = ml_credentials_new(&(struct ml_credentials_opts){
        .loop = world->loop, .config = &world->config, .random = &random, .runner = &runner});
    world->transport = ml_transport_http_new(world->http, world->credentials);
}

static void plugin_end(int code, const char *token)
{
    ML_AUTO_FREE char *text = ml_asprintf(
        "{\"kind\":\"ExecCredential\",\"apiVersion\":\"%s\",\"status\":{\"token\":\"%s\"}}",
        ML_EXEC_V1, token);
    plugin.ended(plugin.context, &(struct ml_child_end){.code = code, .output = ml_str_of(text)});
}

static void test_transport_waits_for_the_exec_plugin(void **state)
{
    struct world *world = *state;
    struct ml_exec_config config;
    use_plugin(world, &config);
    submit(world, "/x?a", false, NULL);
    ml_loop_poll(world->loop);
    assert_int_equal(world->requests, 0);
    plugin_end(0, "one");
    ml_loop_run(world->loop);
    assert_answered(world, 200, "a", 1);
}

static void test_transport_tells_why_the_exec_plugin_gave_nothing(void **state)
{
    struct world *world = *state;
    struct ml_exec_config config;
    use_plugin(world, &config);
    submit(world, "/x", false, NULL);
    plugin_end(1, "");
    assert_int_equal(world->done_count, 1);
    assert_int_equal(world->kind, ML_EUNAUTHORIZED);
    assert_int_equal(world->requests, 0);
}

static void test_transport_cancel_while_the_exec_plugin_runs_is_the_end(void **state)
{
    struct world *world = *state;
    struct ml_exec_config config;
    use_plugin(world, &config);
    submit(world, "/x", false, NULL);
    world->transport->cancel(world->transport, world->call);
    plugin_end(0, "one");
    ml_loop_poll(world->loop);
    assert_int_equal(world->done_count, 0);
    assert_int_equal(world->requests, 0);
}

static void plugin_answer(void *context)
{
    (void)context;
    plugin_end(0, "two");
}

static void test_transport_runs_the_exec_plugin_after_a_401(void **state)
{
    struct world *world = *state;
    struct ml_exec_config config;
    struct ml_timer soon;
    use_plugin(world, &config);
    submit(world, "/x", false, NULL);
    plugin_end(0, "one");
    ml_loop_run(world->loop);
    assert_answered(world, 200, "", 1);
    world->token = "Bearer two";
    ml_timer_init(&soon, world->loop, plugin_answer, NULL);
    ml_timer_start(&soon, 200 * ML_NS_PER_MS);
    get(world, "/x?a");
    assert_answered(world, 200, "a", 2);
}

static void test_transport_cancel_in_head_is_the_end(void **state)
{
    struct world *world = *state;
    world->cancel_in_head = true;
    get(world, "/x?never-seen");
    ml_loop_poll(world->loop);
    assert_int_equal(world->done_count, 0);
    assert_string_equal(world->body, "");
}

static int refuse_to_send(void *context, struct ml_err *err)
{
    assert_int_equal(((struct world *)context)->done_count, 0);
    return ml_err_set(err, ML_ECANCELED, "not any more");
}

static void test_transport_asks_once_more_before_it_sends(void **state)
{
    static const struct ml_http_handler handler = {on_head, on_data, on_done};
    static const struct ml_transport_request request = {
        .method = "POST",
        .path = "/x",
        .body = ML_STR("{}"),
        .deadlines = {.total_ms = 9000},
        .may_send = refuse_to_send,
    };
    struct world *world = *state;
    ml_timer_start(&world->bound, BOUND_NS);
    world->call = world->transport->submit(world->transport, &request, &handler, world);
    ml_loop_run(world->loop);
    assert_int_equal(world->kind, ML_ECANCELED);
    assert_int_equal(world->status, 0);
}

static void test_transport_reports_a_server_that_is_not_there(void **state)
{
    struct world *world = *state;
    ml_http_server_free(ml_take(&world->server));
    get(world, "/x");
    assert_int_equal(world->done_count, 1);
    assert_int_equal(world->kind, ML_ENETWORK);
}

#define WITH(test) cmocka_unit_test_setup_teardown(test, setup, teardown)

int main(void)
{
    const struct CMUnitTest tests[] = {
        WITH(test_transport_carries_path_and_query),
        WITH(test_transport_carries_whom_to_impersonate),
        WITH(test_transport_asks_once_more_with_what_is_new_after_a_401),
        WITH(test_transport_passes_a_401_on_when_there_is_nothing_new),
        WITH(test_transport_asks_once_more_with_a_new_ca),
        WITH(test_transport_asks_the_fence_each_time),
        WITH(test_transport_waits_for_the_exec_plugin),
        WITH(test_transport_tells_why_the_exec_plugin_gave_nothing),
        WITH(test_transport_cancel_while_the_exec_plugin_runs_is_the_end),
        WITH(test_transport_runs_the_exec_plugin_after_a_401),
        WITH(test_transport_cancel_in_head_is_the_end),
        WITH(test_transport_asks_once_more_before_it_sends),
        WITH(test_transport_reports_a_server_that_is_not_there),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
