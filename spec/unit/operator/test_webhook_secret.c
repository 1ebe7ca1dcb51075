/* The Secret of the webhooks' certificates, on a scripted API server: who makes it, who reads it,
 * and whose time it is. */
#include <sys/mman.h>
#include <unistd.h>

#include "fake_transport.h"
#include "unit.h"

#include "codec/rfc3339.h"
#include "net/tls.h"
#include "operator/webhook_secret.h"

#define NOW  (INT64_C(1767225600) * ML_NS_PER_S)
#define YEAR (365 * INT64_C(24) * 3600 * ML_NS_PER_S)

struct world {
    struct ml_clock_fake clock;
    struct ml_loop *loop;
    struct ml_random random;
    struct ml_log log;
    struct ml_metrics *metrics;
    struct fake_transport *fake;
    struct ml_client *client;
    struct ml_webhook_secret *secret;
    int64_t server_ahead_ns; /* its clock */
    bool standby;
    char *shown; /* the certificate */
    size_t shows;
};

static const char *const names[] = {"moonloop-webhook.ns.svc"};

static bool may_write(void *context)
{
    return !((struct world *)context)->standby;
}

static void shows(void *context, const struct ml_webhook_pair *pair)
{
    struct world *w = context;
    free(w->shown);
    w->shown = ml_strdup(pair->cert);
    w->shows++;
}

static void open_world(struct world *w)
{
    *w = (struct world){.loop = NULL};
    ml_clock_fake_init(&w->clock, NOW);
    w->loop = ml_loop_new(&w->clock.clock);
    ml_random_init(&w->random, 1);
    ml_log_init(&w->log, &w->clock.clock, memfd_create("log", 0), ML_LOG_TEXT, ML_LOG_DEBUG);
    w->metrics = ml_metrics_new();
    w->fake = fake_transport_new(w->loop);
    w->client = ml_client_new(&(struct ml_client_opts){.loop = w->loop,
                                                       .transport = fake_transport_seam(w->fake),
                                                       .metrics = w->metrics,
                                                       .random = &w->random,
                                                       .log = &w->log});
    w->secret = ml_webhook_secret_new(&(struct ml_webhook_secret_opts){
        .loop = w->loop,
        .log = &w->log,
        .client = w->client,
        .ns = "ns",
        .name = "certs",
        .names = {names, 1},
        .term = ml_webhook_term_of(0),
        .may_write = may_write,
        .shows = shows,
        .context = w,
    });
}

static void close_world(struct world *w)
{
    ml_webhook_secret_free(w->secret);
    ml_client_free(w->client);
    fake_transport_free(w->fake);
    ml_loop_poll(w->loop);
    ml_loop_free(w->loop);
    ml_metrics_free(w->metrics);
    close(w->log.fd);
    free(w->shown);
}

static void advance(struct world *w, int64_t ns)
{
    ml_clock_fake_advance(&w->clock, ns);
    ml_loop_poll(w->loop);
}

/* The next request, which is this one. */
static struct fake_call *next(struct world *w, const char *method, const char *path)
{
    ml_loop_poll(w->loop);
    struct fake_call *call = fake_next(w->fake);
    assert_string_equal(call->method, method);
    if (strncmp(call->path, path, strlen(path)) != 0)
        fail_msg("%s %s instead of %s", call->method, call->path, path);
    return call;
}

/* Every answer says what the server's time is. */
static void reply(struct world *w, struct fake_call *call, int status, const char *body)
{
    const struct ml_http_head head = {
        .status = status,
        .retry_after_ms = -1,
        .date_s = (ml_clock_wall(&w->clock.clock) + w->server_ahead_ns) / ML_NS_PER_S,
        .content_type = ML_STR("application/json"),
    };
    fake_reply_head(call, &head, body);
    ml_loop_poll(w->loop);
}

#define NOT_FOUND                                                                                  \
    "{\"kind\":\"Status\",\"status\":\"Failure\",\"reason\":\"NotFound\",\"code\":404}"
#define ALREADY_EXISTS                                                                             \
    "{\"kind\":\"Status\",\"status\":\"Failure\",\"reason\":\"AlreadyExists\",\"code\":409}"
#define CONFLICT "{\"kind\":\"Status\",\"status\":\"Failure\",\"reason\":\"Conflict\",\"code\":409}"
#define SECRET   "/api/v1/namespaces/ns/secrets/certs"

/* Lets it make the Secret. Returns that as the server has it; the caller frees it. */
static char *make_secret(struct world *w)
{
    ml_webhook_secret_start(w->secret);
    reply(w, next(w, "GET", SECRET), 404, NOT_FOUND);
    struct fake_call *create = next(w, "POST", "/api/v1/namespaces/ns/secrets?");
    struct ml_str data;
    assert_true(ml_json_find(ml_str_of(create->body), &data, "data", NULL));
    char *stored = ml_asprintf("{\"kind\":\"Secret\",\"metadata\":{\"name\":\"certs\","
                               "\"resourceVersion\":\"7\"},\"data\":" ML_STR_FMT "}",
                               ML_STR_ARG(data));
    reply(w, create, 201, stored);
    return stored;
}

static struct ml_tls_validity validity_of(const char *cert)
{
    struct ml_tls_validity validity;
    struct ml_err err;
    assert_int_equal(ml_tls_validity_of(ml_str_of(cert), &validity, &err), 0);
    return validity;
}

static void test_secret_is_made_once_and_read_again(void **state)
{
    (void)state;
    struct world w;
    open_world(&w);
    ML_AUTO_FREE char *stored = make_secret(&w);
    assert_int_equal(w.shows, 1);
    ML_AUTO_FREE char *first = ml_strdup(w.shown);
    advance(&w, 61 * ML_NS_PER_S);
    reply(&w, next(&w, "GET", SECRET), 200, stored);
    assert_int_equal(w.shows, 2);
    assert_string_equal(w.shown, first);
    assert_true(ml_tls_has_name(ml_str_of(first), names[0]));
    close_world(&w);
}

static void test_secret_of_a_faster_replica_counts(void **state)
{
    (void)state;
    struct world w, other;
    open_world(&other);
    ML_AUTO_FREE char *stored = make_secret(&other);
    open_world(&w);
    ml_webhook_secret_start(w.secret);
    reply(&w, next(&w, "GET", SECRET), 404, NOT_FOUND);
    reply(&w, next(&w, "POST", "/api/v1/namespaces/ns/secrets?"), 409, ALREADY_EXISTS);
    assert_int_equal(w.shows, 0); /* nothing of its own was shown */
    reply(&w, next(&w, "GET", SECRET), 200, stored);
    assert_string_equal(w.shown, other.shown);
    close_world(&w);
    close_world(&other);
}

static void test_secret_is_only_read_by_a_replica_that_stands_by(void **state)
{
    (void)state;
    struct world w, leader;
    open_world(&leader);
    ML_AUTO_FREE char *stored = make_secret(&leader);
    open_world(&w);
    w.standby = true;
    ml_webhook_secret_start(w.secret);
    reply(&w, next(&w, "GET", SECRET), 404, NOT_FOUND);
    advance(&w, 3 * ML_NS_PER_S);
    reply(&w, next(&w, "GET", SECRET), 200, stored);
    assert_string_equal(w.shown, leader.shown);
    advance(&w, 2 * YEAR); /* it has expired, and is not this replica's to renew */
    reply(&w, next(&w, "GET", SECRET), 200, stored);
    close_world(&w);
    close_world(&leader);
}

/* The machine is two years ahead of the API server, or behind. */
static void test_secret_is_made_by_the_servers_time(void **state)
{
    (void)state;
    static const int64_t offsets[] = {-2 * YEAR, 2 * YEAR};
    for (size_t i = 0; i < ML_COUNT(offsets); i++) {
        struct world w;
        open_world(&w);
        int64_t server_ns = NOW + offsets[i];
        w.server_ahead_ns = offsets[i];
        ML_AUTO_FREE char *stored = make_secret(&w);
        struct ml_tls_validity validity = validity_of(w.shown);
        assert_true(validity.not_before_ns <= server_ns && validity.not_after_ns > server_ns);
        advance(&w, 61 * ML_NS_PER_S);
        reply(&w, next(&w, "GET", SECRET), 200, stored);
        advance(&w, ML_NS_PER_S); /* it is not renewed: by the server's time it is new */
        assert_int_equal(w.shows, 2);
        close_world(&w);
    }
}

static void test_secret_is_renewed_in_time_guarded_by_its_version(void **state)
{
    (void)state;
    struct world w;
    open_world(&w);
    ML_AUTO_FREE char *stored = make_secret(&w);
    ML_AUTO_FREE char *first = ml_strdup(w.shown);
    advance(&w, YEAR * 3 / 4);
    reply(&w, next(&w, "GET", SECRET), 200, stored);
    struct fake_call *patch = next(&w, "PATCH", SECRET);
    assert_non_null(strstr(patch->body, "\"resourceVersion\":\"7\""));
    reply(&w, patch, 409, CONFLICT); /* somebody else renewed it */
    assert_string_equal(w.shown, first);
    reply(&w, next(&w, "GET", SECRET), 200, stored);
    reply(&w, next(&w, "PATCH", SECRET), 200, "{}");
    assert_string_not_equal(w.shown, first);
    close_world(&w);
}

static void test_secret_of_somebody_else_is_left_alone(void **state)
{
    (void)state;
    struct world w;
    open_world(&w);
    ml_webhook_secret_start(w.secret);
    reply(
        &w, next(&w, "GET", SECRET), 200,
        "{\"kind\":\"Secret\",\"metadata\":{\"resourceVersion\":\"1\"},\"data\":{\"a\":\"eA==\"}}");
    assert_int_equal(w.shows, 0);
    advance(&w, 3 * ML_NS_PER_S);
    reply(&w, next(&w, "GET", SECRET), 404, NOT_FOUND); /* it was deleted */
    next(&w, "POST", "/api/v1/namespaces/ns/secrets?");
    close_world(&w);
}

/* The stored Secret with one key of it damaged; to free. */
static char *damaged(const char *stored, const char *key)
{
    struct ml_str data, value;
    assert_true(ml_json_find(ml_str_of(stored), &data, "data", NULL));
    assert_true(ml_json_find(data, &value, key, NULL));
    return ml_asprintf("{\"kind\":\"Secret\",\"metadata\":{\"name\":\"certs\",\"resourceVersion\":"
                       "\"8\",\"labels\":{\"app.kubernetes.io/managed-by\":\"moonloop\"}},"
                       "\"data\":%.*s\"Zm9v\"" ML_STR_FMT "}",
                       (int)(value.ptr - data.ptr), data.ptr,
                       (int)(data.ptr + data.len - (value.ptr + value.len)), value.ptr + value.len);
}

static char *key_of(const char *json, const char *key)
{
    return ml_json_find_string(ml_str_of(json), "data", key, NULL);
}

/* The replica that made it still has it. */
static void test_secret_that_was_damaged_is_repaired_from_memory(void **state)
{
    (void)state;
    static const char *const keys[] = {"tls.crt", "tls.key", "ca.crt", "ca.key"};
    for (size_t i = 0; i < ML_COUNT(keys); i++) {
        struct world w;
        open_world(&w);
        ML_AUTO_FREE char *stored = make_secret(&w);
        ML_AUTO_FREE char *bad = damaged(stored, keys[i]);
        advance(&w, 61 * ML_NS_PER_S);
        reply(&w, next(&w, "GET", SECRET), 200, bad);
        struct fake_call *patch = next(&w, "PATCH", SECRET);
        assert_non_null(strstr(patch->body, "\"resourceVersion\":\"8\""));
        for (size_t j = 0; j < ML_COUNT(keys); j++) {
            ML_AUTO_FREE char *was = key_of(stored, keys[j]), *is = key_of(patch->body, keys[j]);
            assert_string_equal(was, is);
        }
        reply(&w, patch, 200, "{}");
        close_world(&w);
    }
}

/* A replica that starts shows nothing of it. Its sound parts stay: others show the pair that
 * its authority signed. */
static void test_secret_that_was_damaged_is_repaired_at_a_start(void **state)
{
    (void)state;
    static const char *const keys[] = {"tls.crt", "tls.key", "ca.crt", "ca.key"};
    for (size_t i = 0; i < ML_COUNT(keys); i++) {
        struct world w, other;
        open_world(&other);
        ML_AUTO_FREE char *stored = make_secret(&other);
        ML_AUTO_FREE char *bad = damaged(stored, keys[i]);
        open_world(&w);
        ml_webhook_secret_start(w.secret);
        reply(&w, next(&w, "GET", SECRET), 200, bad);
        assert_int_equal(w.shows, 0);
        struct fake_call *patch = next(&w, "PATCH", SECRET);
        ML_AUTO_FREE char *was = key_of(stored, "ca.crt"), *is = key_of(patch->body, "ca.crt");
        if (i < 2)
            assert_string_equal(was, is);
        else
            assert_string_not_equal(was, is);
        reply(&w, patch, 200, "{}");
        assert_int_equal(w.shows, 1);
        close_world(&w);
        close_world(&other);
    }
}

/* Clients refuse a sound pair if another authority has signed it. */
static void test_secret_with_a_certificate_of_another_authority_is_damaged(void **state)
{
    (void)state;
    struct world w, other, stranger;
    open_world(&other);
    open_world(&stranger);
    ML_AUTO_FREE char *stored = make_secret(&other), *strange = make_secret(&stranger);
    ML_AUTO_FREE char *ca = key_of(stored, "ca.crt"), *ca_key = key_of(stored, "ca.key");
    ML_AUTO_FREE char *cert = key_of(strange, "tls.crt"), *key = key_of(strange, "tls.key");
    ML_AUTO_FREE char *mixed = ml_asprintf(
        "{\"metadata\":{\"resourceVersion\":\"8\",\"labels\":{\"app.kubernetes.io/managed-by\":"
        "\"moonloop\"}},\"data\":{\"ca.crt\":\"%s\",\"ca.key\":\"%s\",\"tls.crt\":\"%s\","
        "\"tls.key\":\"%s\"}}",
        ca, ca_key, cert, key);
    open_world(&w);
    w.standby = true;
    ml_webhook_secret_start(w.secret);
    reply(&w, next(&w, "GET", SECRET), 200, mixed);
    assert_int_equal(w.shows, 0);
    fake_expect_none(w.fake); /* the leader repairs it */
    advance(&w, 3 * ML_NS_PER_S);
    reply(&w, next(&w, "GET", SECRET), 200, stored);
    assert_int_equal(w.shows, 1);
    close_world(&w);
    close_world(&other);
    close_world(&stranger);
}

static void test_secret_without_rights_is_tried_again(void **state)
{
    (void)state;
    struct world w;
    open_world(&w);
    ml_webhook_secret_start(w.secret);
    reply(&w, next(&w, "GET", SECRET), 403,
          "{\"kind\":\"Status\",\"status\":\"Failure\",\"reason\":\"Forbidden\",\"code\":403}");
    advance(&w, 3 * ML_NS_PER_S);
    next(&w, "GET", SECRET);
    close_world(&w);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_secret_is_made_once_and_read_again),
        cmocka_unit_test(test_secret_of_a_faster_replica_counts),
        cmocka_unit_test(test_secret_is_only_read_by_a_replica_that_stands_by),
        cmocka_unit_test(test_secret_is_made_by_the_servers_time),
        cmocka_unit_test(test_secret_is_renewed_in_time_guarded_by_its_version),
        cmocka_unit_test(test_secret_of_somebody_else_is_left_alone),
        cmocka_unit_test(test_secret_without_rights_is_tried_again),
        cmocka_unit_test(test_secret_that_was_damaged_is_repaired_from_memory),
        cmocka_unit_test(test_secret_that_was_damaged_is_repaired_at_a_start),
        cmocka_unit_test(test_secret_with_a_certificate_of_another_authority_is_damaged),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
