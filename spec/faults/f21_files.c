/* F21: token, certificate, key and CA exchanged under a running host, in place and slowly: every
 * length of a half-written file, every order of two. The server is one that knows some tokens. */
#include "credentials_world.h"

#include "net/tls.h"
#include "tried.h"

#define TOKEN_OLD "eyJhbGciOiJFUzI1NiJ9.eyJleHAiOjF9.old-signature"
#define TOKEN_NEW "eyJhbGciOiJFUzI1NiJ9.eyJleHAiOjJ9.another-signature"

struct server {
    const char *known[2];
    int requests;
};

static bool knows(struct server *server, const char *authorization)
{
    server->requests++;
    for (size_t i = 0; i < ML_COUNT(server->known); i++)
        if (server->known[i] && strcmp(authorization + strlen("Bearer "), server->known[i]) == 0)
            return true;
    return false;
}

/* Sends one request as a transport does; false: it failed for good. */
static bool request(struct credentials_world *world, struct server *server)
{
    struct waiter w;
    for (int attempt = 0; attempt < 2; attempt++) {
        assert_true(ask(world, &w));
        if (knows(server, w.authorization)) {
            ml_credentials_accepted(world->credentials, w.identity.generation);
            return true;
        }
        if (!ml_credentials_rejected(world->credentials, w.identity.generation, false))
            return false;
    }
    return false;
}

/* A minute of requests, one each two seconds; all must succeed. */
static void requests_work(struct credentials_world *world, struct server *server)
{
    for (int i = 0; i < 30; i++) {
        assert_true(request(world, server));
        world_wait(world, 2 * ML_NS_PER_S);
    }
}

static void test_token_half_written_at_every_length(void **state)
{
    struct credentials_world *world = *state;
    world_put(world, "token", TOKEN_OLD);
    world_open(world, CONFIG("tokenFile: token"));
    for (size_t len = 0; len <= strlen(TOKEN_NEW); len++) {
        struct server server = {.known = {TOKEN_OLD, TOKEN_NEW}};
        world_write(world, "token", (struct ml_str){TOKEN_NEW, len});
        requests_work(world, &server);
        assert_in_range(server.requests, 30, 31); /* one retry at most */
        world_put(world, "token", TOKEN_OLD);
        requests_work(world, &server);
    }
    faults_tried("F21", strlen(TOKEN_NEW) + 1);
}

/* The old one ends in the moment in which the new one is there. */
static void test_token_rotated_at_every_moment(void **state)
{
    struct credentials_world *world = *state;
    static const char *const tokens[] = {TOKEN_OLD, TOKEN_NEW};
    world_put(world, "token", TOKEN_OLD);
    world_open(world, CONFIG("tokenFile: token"));
    for (int ms = 0; ms < 20000; ms += 100) {
        struct server server = {.known = {tokens[(ms / 100 + 1) % 2]}};
        world_wait(world, ms * ML_NS_PER_MS);
        world_put(world, "token", server.known[0]);
        requests_work(world, &server);
        assert_in_range(server.requests, 30, 31);
    }
    faults_tried("F21", 200);
}

/* Both tokens are refused for an hour, the file changes all the time: no more than two requests
 * for each that somebody makes, and the first good token is found at once. */
static void test_token_refused_for_ever(void **state)
{
    struct credentials_world *world = *state;
    struct server server = {.known = {"not this"}};
    world_put(world, "token", TOKEN_OLD);
    world_open(world, CONFIG("tokenFile: token"));
    for (int i = 0; i < 3600; i++) {
        if (i % 7 == 0)
            world_put(world, "token", i % 2 ? TOKEN_OLD : TOKEN_NEW);
        assert_false(request(world, &server));
        world_wait(world, ML_NS_PER_S);
    }
    assert_in_range(server.requests, 3600, 7200);
    server.known[0] = "at-last";
    world_put(world, "token", "at-last");
    assert_true(request(world, &server));
    faults_tried("F21", 3600);
}

/* The certificate and key for a connection fit together, and its CA is sound. */
static void check_tls(struct credentials_world *world)
{
    struct waiter w;
    struct ml_tls_validity validity;
    struct ml_err err = ML_ERR_INIT;
    assert_true(ask(world, &w));
    assert_int_equal(
        ml_tls_check_pair(w.identity.tls->cert_pem, w.identity.tls->key_pem, &validity, &err), 0);
    assert_int_equal(ml_tls_check_ca(w.identity.tls->ca_pem, &err), 0);
}

/* One file grows byte by byte from nothing to what it shall be. */
static size_t grow(struct credentials_world *world, const char *name, const char *text)
{
    for (size_t len = 0; len <= strlen(text); len++) {
        world_write(world, name, (struct ml_str){text, len});
        world_wait(world, 11 * ML_NS_PER_S);
        check_tls(world);
    }
    return strlen(text) + 1;
}

static void test_certificate_key_and_ca_half_written_at_every_length(void **state)
{
    struct credentials_world *world = *state;
    static const char *const orders[][3] = {{"tls.crt", "tls.key", "ca.crt"},
                                            {"ca.crt", "tls.key", "tls.crt"}};
    size_t tried = 0;
    world_put(world, "tls.crt", world->one.cert_pem);
    world_put(world, "tls.key", world->one.key_pem);
    world_open(world, CONFIG("client-certificate: tls.crt, client-key: tls.key"));
    for (size_t i = 0; i < ML_COUNT(orders); i++) {
        const struct ml_tls_identity *next = i % 2 ? &world->one : &world->two;
        for (size_t file = 0; file < 3; file++) {
            const char *name = orders[i][file];
            const char *text = strcmp(name, "ca.crt") == 0    ? next->ca_pem
                               : strcmp(name, "tls.crt") == 0 ? next->cert_pem
                                                              : next->key_pem;
            tried += grow(world, name, text);
        }
        struct waiter w;
        world_wait(world, 11 * ML_NS_PER_S);
        assert_true(ask(world, &w));
        assert_str_eq(w.identity.tls->cert_pem, next->cert_pem);
        assert_str_eq(w.identity.tls->key_pem, next->key_pem);
        assert_str_eq(w.identity.tls->ca_pem, next->ca_pem);
    }
    faults_tried("F21", tried);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        WITH_WORLD(test_token_half_written_at_every_length),
        WITH_WORLD(test_token_rotated_at_every_moment),
        WITH_WORLD(test_token_refused_for_ever),
        WITH_WORLD(test_certificate_key_and_ca_half_written_at_every_length),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
