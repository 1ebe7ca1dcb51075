/* The certificates of webhooks over the years: on a fake clock, at each step a client that trusts
 * what was published before would have had its call answered. */
#include "unit.h"

#include "net/tls.h"
#include "operator/webhook_pair.h"

#define NOW  (INT64_C(1767225600) * ML_NS_PER_S)
#define DAY  (24 * 3600 * ML_NS_PER_S)
#define YEAR (365 * DAY)

static const char *const names[] = {"moonloop-webhook.default.svc"};
static const struct ml_webhook_names wanted = {names, 1};

static bool renew(struct ml_webhook_pair *pair, const struct ml_webhook_term *term,
                  struct ml_clock_fake *clock)
{
    struct ml_err err;
    bool changed = false;
    int r = ml_webhook_pair_renew(pair, term, &clock->clock, &wanted, &changed, &err);
    if (r < 0)
        fail_msg("%s", err.message);
    return changed;
}

static struct ml_webhook_pair make(const struct ml_webhook_term *term, struct ml_clock_fake *clock)
{
    struct ml_webhook_pair pair;
    struct ml_err err;
    int r = ml_webhook_pair_make(term, &clock->clock, &wanted, &pair, &err);
    if (r < 0)
        fail_msg("%s", err.message);
    return pair;
}

/* Does somebody who trusts these authorities accept the certificate at this time? */
static bool is_trusted(const char *bundle, const struct ml_webhook_pair *pair,
                       struct ml_clock_fake *clock)
{
    struct ml_tls_validity cert, ca;
    struct ml_err err;
    int64_t now_ns = ml_clock_wall(&clock->clock);
    assert_int_equal(ml_tls_validity_of(ml_str_of(pair->cert), &cert, &err), 0);
    if (now_ns < cert.not_before_ns || now_ns > cert.not_after_ns)
        return false;
    for (const char *at = bundle; at && *at; at = strstr(at + 1, "-----BEGIN"))
        if (ml_tls_is_signed_by(ml_str_of(pair->cert), ml_str_of(at)) &&
            ml_tls_validity_of(ml_str_of(at), &ca, &err) == 0 && now_ns <= ca.not_after_ns)
            return true;
    return false;
}

static size_t count_authorities(const char *bundle)
{
    size_t count = 0;
    for (const char *at = bundle; (at = strstr(at, "-----BEGIN")); at++)
        count++;
    return count;
}

static void test_pair_new_one_is_good_and_stays(void **state)
{
    (void)state;
    struct ml_clock_fake clock;
    const struct ml_webhook_term term = ml_webhook_term_of(0);
    ml_clock_fake_init(&clock, NOW);
    struct ml_webhook_pair pair = make(&term, &clock);
    assert_true(is_trusted(pair.ca, &pair, &clock));
    assert_true(ml_tls_has_name(ml_str_of(pair.cert), names[0]));
    assert_false(ml_tls_has_name(ml_str_of(pair.cert), "other.default.svc"));
    assert_false(renew(&pair, &term, &clock));
    ml_clock_fake_advance(&clock, YEAR / 2);
    assert_false(renew(&pair, &term, &clock));
    ml_webhook_pair_fini(&pair);
}

/* Twenty years in steps of ten days; what clients trust is a step behind. */
static void test_pair_is_renewed_without_a_failed_call(void **state)
{
    (void)state;
    struct ml_clock_fake clock;
    const struct ml_webhook_term term = ml_webhook_term_of(0);
    ml_clock_fake_init(&clock, NOW);
    struct ml_webhook_pair pair = make(&term, &clock);
    ML_AUTO_FREE char *first = ml_strdup(pair.ca);
    char *trusted = ml_strdup(pair.ca);
    size_t changes = 0, most = 0;
    for (int day = 0; day < 20 * 365; day += 10) {
        ml_clock_fake_advance(&clock, 10 * DAY);
        changes += renew(&pair, &term, &clock);
        if (!is_trusted(trusted, &pair, &clock))
            fail_msg("day %d: nobody trusts the certificate", day);
        most = ML_MAX(most, count_authorities(pair.ca));
        free(trusted);
        trusted = ml_strdup(pair.ca);
    }
    free(trusted);
    assert_true(changes >= 25); /* once in eight months, and authorities */
    assert_int_equal(most, 2);
    assert_null(strstr(pair.ca, first)); /* the first authority has ended */
    ml_webhook_pair_fini(&pair);
}

/* The authority's successor signs nothing before everybody can trust it. */
static void test_pair_new_authority_is_published_before_it_signs(void **state)
{
    (void)state;
    struct ml_clock_fake clock;
    const struct ml_webhook_term term = ml_webhook_term_of(1000);
    assert_int_equal(term.overlap_s, 100);
    ml_clock_fake_init(&clock, NOW);
    struct ml_webhook_pair pair = make(&term, &clock);
    for (int steps = 0; count_authorities(pair.ca) == 1; steps++) {
        assert_true(steps < 1000);
        ml_clock_fake_advance(&clock, 10 * ML_NS_PER_S);
        renew(&pair, &term, &clock);
    }
    ML_AUTO_FREE char *cert = ml_strdup(pair.cert);
    for (int seconds = 0; seconds < 100; seconds += 10) {
        assert_false(renew(&pair, &term, &clock));
        ml_clock_fake_advance(&clock, 10 * ML_NS_PER_S);
    }
    assert_true(renew(&pair, &term, &clock));
    assert_string_not_equal(pair.cert, cert);
    assert_true(ml_tls_is_signed_by(ml_str_of(pair.cert), ml_str_of(pair.ca)));
    assert_int_equal(count_authorities(pair.ca), 2);
    assert_false(renew(&pair, &term, &clock)); /* other replicas show the old one */
    ml_clock_fake_advance(&clock, 100 * ML_NS_PER_S);
    assert_true(renew(&pair, &term, &clock));
    assert_int_equal(count_authorities(pair.ca), 1);
    assert_true(is_trusted(pair.ca, &pair, &clock));
    ml_webhook_pair_fini(&pair);
}

/* A host that did not run for a long time: everything has expired. */
static void test_pair_that_has_expired_is_good_after_two_steps(void **state)
{
    (void)state;
    struct ml_clock_fake clock;
    const struct ml_webhook_term term = ml_webhook_term_of(0);
    ml_clock_fake_init(&clock, NOW);
    struct ml_webhook_pair pair = make(&term, &clock);
    ml_clock_fake_advance(&clock, 30 * YEAR);
    assert_false(is_trusted(pair.ca, &pair, &clock));
    assert_true(renew(&pair, &term, &clock));
    assert_true(renew(&pair, &term, &clock));
    assert_true(is_trusted(pair.ca, &pair, &clock));
    ml_webhook_pair_fini(&pair);
}

static void test_pair_without_the_name_is_renewed(void **state)
{
    (void)state;
    struct ml_clock_fake clock;
    struct ml_err err;
    bool changed;
    const char *const more[] = {"moonloop-webhook.default.svc", "192.0.2.7"};
    const struct ml_webhook_names both = {more, 2};
    const struct ml_webhook_term term = ml_webhook_term_of(0);
    ml_clock_fake_init(&clock, NOW);
    struct ml_webhook_pair pair = make(&term, &clock);
    assert_int_equal(ml_webhook_pair_renew(&pair, &term, &clock.clock, &both, &changed, &err), 0);
    assert_true(changed);
    assert_true(ml_tls_has_name(ml_str_of(pair.cert), "192.0.2.7"));
    ml_webhook_pair_fini(&pair);
}

static void test_pair_survives_a_secret(void **state)
{
    (void)state;
    struct ml_clock_fake clock;
    struct ml_err err;
    struct ml_buf secret = ML_BUF_INIT;
    struct ml_json_writer writer;
    const struct ml_webhook_term term = ml_webhook_term_of(0);
    ml_clock_fake_init(&clock, NOW);
    struct ml_webhook_pair pair = make(&term, &clock), read;
    ml_json_writer_init(&writer, &secret);
    ml_json_begin_object(&writer);
    ml_json_key(&writer, ML_STR("data"));
    ml_webhook_pair_write(&pair, &writer);
    ml_json_end_object(&writer);
    assert_int_equal(ml_webhook_pair_read(ml_buf_str(&secret), &read, &err), 0);
    assert_string_equal(read.ca, pair.ca);
    assert_string_equal(read.ca_key, pair.ca_key);
    assert_string_equal(read.cert, pair.cert);
    assert_string_equal(read.key, pair.key);
    ml_webhook_pair_fini(&read);
    static const char *const bad[][2] = {
        {"{}", "it has no ca.crt"},
        {"{\"data\":{\"ca.crt\":\"!\"}}", "it has no ca.crt"},
        {"{\"data\":{\"ca.crt\":\"eA==\",\"ca.key\":\"eA==\",\"tls.crt\":\"eA==\",\"tls.key\":"
         "\"eA==\"}}",
         "tls.crt and tls.key: the certificate cannot be read"},
    };
    for (size_t i = 0; i < ML_COUNT(bad); i++) {
        assert_int_equal(ml_webhook_pair_read(ml_str_of(bad[i][0]), &read, &err), ML_EINVALID);
        assert_non_null(strstr(err.message, bad[i][1]));
    }
    ml_webhook_pair_fini(&pair);
    ml_buf_fini(&secret);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_pair_new_one_is_good_and_stays),
        cmocka_unit_test(test_pair_is_renewed_without_a_failed_call),
        cmocka_unit_test(test_pair_new_authority_is_published_before_it_signs),
        cmocka_unit_test(test_pair_that_has_expired_is_good_after_two_steps),
        cmocka_unit_test(test_pair_without_the_name_is_renewed),
        cmocka_unit_test(test_pair_survives_a_secret),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
