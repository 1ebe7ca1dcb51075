/* F32: the keeper of the webhooks' certificates dies before and after every write, through the life
 * of an authority and into that of the next. API servers trust each certificate that is shown, and
 * the end is the same as that of an undisturbed run. */
#include "script_world.h"

#include "codec/base64.h"
#include "codec/json.h"
#include "codec/rfc3339.h"
#include "net/tls.h"
#include "operator/webhook_bundles.h"
#include "operator/webhook_secret.h"
#include "tried.h"

#define CERT_S 1000 /* so an authority lives 10,000 s, and changes spread within 100 s */
/* Step by step through the time in which the authority is replaced, and quicker before it. */
#define CALM_NS (8400 * ML_NS_PER_S)
#define END_NS  (9400 * ML_NS_PER_S)
#define STEP_NS (20 * ML_NS_PER_S)
#define LEAP_NS (300 * ML_NS_PER_S)
#define HOOK    "default.at.moonloop.dev"
#define HOOKS                                                                                      \
    "{\"metadata\":{\"resourceVersion\":\"%d\"},\"webhooks\":[{\"name\":\"" HOOK "\","             \
    "\"clientConfig\":{\"url\":\"u\",\"caBundle\":\"%s\"}}]}"
#define CONFLICT "{\"kind\":\"Status\",\"status\":\"Failure\",\"reason\":\"Conflict\",\"code\":409}"

/* The state of the API server. */
struct server {
    char *data;   /* of the Secret, JSON; NULL: there is none */
    char *bundle; /* base64, in the configuration */
    int version;
    int writes;
};

struct keeper {
    struct world w;
    struct server server;
    struct ml_webhook_secret *secret;
    struct ml_webhook_bundles *bundles;
    char *trusted; /* the bundle and the certificate that were compared last */
    char *shown;   /* the certificate, by the process that lives; NULL: none yet */
    int die_at;    /* number of a write; -1: never */
    bool die_after;
    bool is_dead;
};

static const char *const names[] = {"moonloop-webhook.ns.svc"};

/* ---- the process ---- */

static bool may_write(void *context)
{
    (void)context;
    return true;
}

static bool next_script(void *context, size_t *cursor, struct ml_webhook_target *out)
{
    const struct keeper *k = context;
    *out = (struct ml_webhook_target){k->w.script, &world_at, NULL};
    return (*cursor)++ == 0;
}

static void shows(void *context, const struct ml_webhook_pair *pair)
{
    struct keeper *k = context;
    ml_webhook_bundles_set(k->bundles, pair->ca);
    free(k->shown);
    k->shown = ml_strdup(pair->cert);
}

static void begin_process(struct keeper *k)
{
    k->bundles = ml_webhook_bundles_new(&(struct ml_webhook_bundles_opts){
        .loop = k->w.loop,
        .log = &k->w.log,
        .client = k->w.client,
        .may_write = may_write,
        .next = next_script,
        .context = k,
    });
    k->secret = ml_webhook_secret_new(&(struct ml_webhook_secret_opts){
        .loop = k->w.loop,
        .log = &k->w.log,
        .client = k->w.client,
        .ns = "ns",
        .name = "certs",
        .names = {names, 1},
        .term = ml_webhook_term_of(CERT_S),
        .may_write = may_write,
        .shows = shows,
        .context = k,
    });
    ml_webhook_secret_start(k->secret);
}

static void end_process(struct keeper *k)
{
    ml_webhook_secret_free(k->secret);
    ml_webhook_bundles_free(k->bundles);
    free(ml_take(&k->shown));
}

/* ---- the API server ---- */

static void reply_secret(struct keeper *k, struct fake_call *call)
{
    if (!k->server.data) {
        fake_reply(call, 404, NOT_FOUND);
        return;
    }
    ML_AUTO_FREE char *body = ml_asprintf("{\"kind\":\"Secret\",\"metadata\":{\"resourceVersion\":"
                                          "\"%d\"},\"data\":%s}",
                                          k->server.version, k->server.data);
    fake_reply(call, 200, body);
}

static void store(struct keeper *k, const struct fake_call *call)
{
    struct ml_str body = ml_str_of(call->body), data;
    if (ml_json_find(body, &data, "data", NULL)) {
        free(k->server.data);
        k->server.data = ml_str_dup(data);
    } else {
        free(k->server.bundle);
        k->server.bundle = ml_json_find_string(body, "webhooks", "0", "clientConfig", "caBundle",
                                               NULL);
    }
    k->server.version++;
}

static bool is_up_to_date(const struct keeper *k, const struct fake_call *call)
{
    ML_AUTO_FREE char *is = ml_json_find_string(ml_str_of(call->body), "metadata",
                                                "resourceVersion", NULL);
    ML_AUTO_FREE char *wanted = ml_asprintf("%d", k->server.version);
    return strcmp(call->method, "POST") == 0 ? !k->server.data : is && strcmp(is, wanted) == 0;
}

static void answer(void *context, struct fake_call *call)
{
    struct keeper *k = context;
    bool is_secret = strstr(call->path, "/secrets") != NULL;
    if (strcmp(call->method, "GET") == 0 && is_secret) {
        reply_secret(k, call);
    } else if (strcmp(call->method, "GET") == 0) {
        ML_AUTO_FREE char *hooks = ml_asprintf(HOOKS, k->server.version, k->server.bundle);
        fake_reply(call, 200, hooks);
    } else if (k->is_dead) {
        return;
    } else if (!is_up_to_date(k, call)) {
        fake_reply(call, 409, CONFLICT);
    } else {
        k->is_dead = k->server.writes++ == k->die_at;
        if (!k->is_dead || k->die_after)
            store(k, call);
        if (!k->is_dead)
            fake_reply(call, 200, "{}");
    }
}

/* ---- what is checked ---- */

/* Does an API server with this bundle accept the certificate now? */
static bool is_trusted(const struct keeper *k)
{
    struct ml_buf bundle = ML_BUF_INIT;
    struct ml_tls_validity cert, ca;
    struct ml_err err;
    int64_t now_ns = k->w.clock.wall_ns;
    bool trusted = false;
    assert_true(ml_base64_decode(ml_str_of(k->server.bundle), &bundle));
    assert_int_equal(ml_tls_validity_of(ml_str_of(k->shown), &cert, &err), 0);
    for (const char *at = ml_buf_cstr(&bundle); at && *at; at = strstr(at + 1, "-----BEGIN"))
        if (ml_tls_is_signed_by(ml_str_of(k->shown), ml_str_of(at)) &&
            ml_tls_validity_of(ml_str_of(at), &ca, &err) == 0 && now_ns < ca.not_after_ns)
            trusted = true;
    ml_buf_fini(&bundle);
    return trusted && now_ns < cert.not_after_ns;
}

/* Is any of the two another one than when they were compared last? (At the end both are compared
 * once more: one that expired meanwhile would not have been renewed since.) */
static bool is_other(struct keeper *k)
{
    char *now = ml_asprintf("%s %s", k->server.bundle, k->shown);
    bool other = !k->trusted || strcmp(k->trusted, now) != 0;
    free(k->trusted);
    k->trusted = now;
    return other;
}

static size_t authorities(const struct keeper *k)
{
    struct ml_buf bundle = ML_BUF_INIT;
    size_t count = 0;
    assert_true(ml_base64_decode(ml_str_of(k->server.bundle), &bundle));
    for (const char *at = ml_buf_cstr(&bundle); (at = strstr(at, "-----BEGIN")); at++)
        count++;
    ml_buf_fini(&bundle);
    return count;
}

/* Runs it all, and returns how many writes there were. */
static int run(int die_at, bool die_after, char **out_first)
{
    struct keeper k = {.die_at = die_at, .die_after = die_after};
    world_open(&k.w, "end,\ndefault = function() end,\nwhen = function() return true", NULL);
    k.server.bundle = ml_strdup("");
    k.server.version = 1;
    fake_set_handler(k.w.fake, answer, &k);
    begin_process(&k);
    while (k.w.clock.wall_ns < WORLD_NOW + END_NS) {
        ml_loop_poll(k.w.loop);
        if (k.is_dead) {
            end_process(&k);
            k.is_dead = false;
            begin_process(&k);
            ml_loop_poll(k.w.loop);
        }
        if (!k.shown || !*k.server.bundle || (is_other(&k) && !is_trusted(&k)))
            fail_msg("write %d, %s: after %d s nobody trusts what is shown", die_at,
                     die_after ? "after" : "before",
                     (int)((k.w.clock.wall_ns - WORLD_NOW) / ML_NS_PER_S));
        if (!*out_first)
            *out_first = ml_strdup(k.server.bundle);
        bool is_calm = k.w.clock.wall_ns < WORLD_NOW + CALM_NS;
        ml_clock_fake_advance(&k.w.clock, is_calm ? LEAP_NS : STEP_NS);
    }
    assert_true(is_trusted(&k));
    assert_int_equal(authorities(&k), 1);
    assert_string_not_equal(k.server.bundle, *out_first); /* the next authority */
    int writes = k.server.writes;
    end_process(&k);
    free(k.server.data);
    free(k.server.bundle);
    free(k.trusted);
    world_close(&k.w);
    return writes;
}

static void test_f32_killed_at_every_write(void **state)
{
    (void)state;
    char *first = NULL;
    int writes = run(-1, false, &first);
    size_t tried = 0;
    free(ml_take(&first));
    assert_true(writes > 15);
    for (int at = 0; at < writes; at++)
        for (int after = 0; after < 2; after++, tried++) {
            run(at, after, &first);
            free(ml_take(&first));
        }
    faults_tried("F32", tried);
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(test_f32_killed_at_every_write)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
