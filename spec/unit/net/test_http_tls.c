#include "net_tls.h"

#include <curl/curl.h>
#include <sched.h>
#include <sys/mount.h>

/* Reads "ACCEPT 127.0.0.1:PORT" from what the server says first. */
static int read_port(int fd)
{
    FILE *said = fdopen(fd, "r");
    char line[256];
    int port = 0;
    while (port == 0 && fgets(line, sizeof line, said))
        sscanf(line, "ACCEPT 127.0.0.1:%d", &port);
    fclose(said);
    return port;
}

static void server_start(struct tls_fixture *f, bool wants_client)
{
    int out[2];
    char cert[64], key[64], ca[64];
    snprintf(cert, sizeof cert, "%s/server.pem", f->folder);
    snprintf(key, sizeof key, "%s/server.key", f->folder);
    snprintf(ca, sizeof ca, "%s/ca.pem", f->folder);
    char *argv[] = {"openssl", "s_server",
                    "-accept", "127.0.0.1:0",
                    "-www",    "-cert",
                    cert,      "-key",
                    key,       "-CAfile",
                    ca,        wants_client ? "-Verify" : NULL,
                    "1",       "-verify_return_error",
                    NULL};
    assert_int_equal(pipe2(out, O_CLOEXEC), 0);
    f->server = tls_spawn(argv, out[1]);
    close(out[1]);
    f->port = read_port(out[0]);
    assert_true(f->port > 0);
}

struct tls_case {
    const char *name;
    const char *host;
    const char *ca;
    const char *cert;
    const char *key;
    const char *server_name;
    bool insecure;
    int kind;
    const char *message;
};

static void check(struct tls_fixture *f, const struct tls_case *c)
{
    struct ml_http_tls tls = {.ca_pem = tls_pem(f, c->ca),
                              .cert_pem = tls_pem(f, c->cert),
                              .key_pem = tls_pem(f, c->key),
                              .server_name = c->server_name,
                              .insecure = c->insecure};
    struct answer got;
    char url[64];
    snprintf(url, sizeof url, "https://%s:%d/", c->host, f->port);
    answer_get(&got, &f->net,
               &(struct ml_http_request){
                   .method = "GET", .url = url, .tls = &tls, .deadlines.total_ms = 15000});
    if (got.err.kind != c->kind || !strstr(got.err.message, c->message ? c->message : ""))
        fail_msg("%s: %s: %s", c->name, ml_err_name(got.err.kind), got.err.message);
    assert_int_equal(got.status, c->kind ? 0 : 200);
    ml_buf_fini(&got.body);
    free((char *)tls.ca_pem.ptr);
    free((char *)tls.cert_pem.ptr);
    free((char *)tls.key_pem.ptr);
}

static void test_http_tls_trusts_only_the_right_server(void **state)
{
    static const struct tls_case cases[] = {
        {.name = "right CA", .host = "127.0.0.1", .ca = "ca.pem"},
        {.name = "right name in server_name",
         .host = "localhost",
         .ca = "ca.pem",
         .server_name = "api.test"},
        {.name = "insecure", .host = "localhost", .insecure = true},
        {.name = "other CA",
         .host = "127.0.0.1",
         .ca = "other.pem",
         .kind = ML_ETLS,
         .message = "(check certificate-authority in the kubeconfig)"},
        {.name = "system roots",
         .host = "127.0.0.1",
         .kind = ML_ETLS,
         .message = "certificate verify failed"},
        {.name = "wrong host",
         .host = "localhost",
         .ca = "ca.pem",
         .kind = ML_ETLS,
         .message = "(check server and tls-server-name in the kubeconfig)"},
        {.name = "wrong server_name",
         .host = "127.0.0.1",
         .ca = "ca.pem",
         .server_name = "other.test",
         .kind = ML_ETLS,
         .message = "'other.test'"},
        {.name = "CA is no PEM",
         .host = "127.0.0.1",
         .ca = "server.ext",
         .kind = ML_ETLS,
         .message = "unusable CA certificates"},
    };
    struct tls_fixture *f = *state;
    server_start(f, false);
    for (size_t i = 0; i < ML_COUNT(cases); i++)
        check(f, &cases[i]);
    tls_server_stop(f);
}

static void test_http_tls_shows_the_client_certificate(void **state)
{
    static const struct tls_case cases[] = {
        {.name = "right one",
         .host = "127.0.0.1",
         .ca = "ca.pem",
         .cert = "client.pem",
         .key = "client.key"},
        {.name = "none",
         .host = "127.0.0.1",
         .ca = "ca.pem",
         .kind = ML_ETLS,
         .message = "(check client-certificate and client-key in the kubeconfig)"},
        {.name = "of another CA",
         .host = "127.0.0.1",
         .ca = "ca.pem",
         .cert = "other.pem",
         .key = "other.key",
         .kind = ML_ETLS,
         .message = "(check client-certificate and client-key in the kubeconfig)"},
        {.name = "with another key",
         .host = "127.0.0.1",
         .ca = "ca.pem",
         .cert = "client.pem",
         .key = "other.key",
         .kind = ML_ETLS,
         .message = "unusable client certificate"},
        {.name = "no PEM",
         .host = "127.0.0.1",
         .ca = "ca.pem",
         .cert = "client.ext",
         .key = "client.key",
         .kind = ML_ETLS,
         .message = "unusable client certificate"},
    };
    struct tls_fixture *f = *state;
    server_start(f, true);
    for (size_t i = 0; i < ML_COUNT(cases); i++)
        check(f, &cases[i]);
    tls_server_stop(f);
}

static void test_http_tls_tells_broken_handshakes_from_refused_ones(void **state)
{
    static const struct {
        const char *bytes;
        enum peer_end end;
        int64_t connect_ms;
        int kind;
        const char *message;
    } cases[] = {
        {"HTTP/1.1 400 Bad Request\r\n\r\n", PEER_CLOSE, 9000, ML_ETLS, "http instead of https?"},
        {"", PEER_CLOSE, 9000, ML_ENETWORK, "TLS to 127.0.0.1:"},
        {"", PEER_RESET, 9000, ML_ENETWORK, "TLS to 127.0.0.1:"},
        {"\x15\x03\x03", PEER_HOLD, 300, ML_ETIMEOUT, "no connection within 0.3 s"},
    };
    struct ml_http_tls tls = {.insecure = true};
    struct tls_fixture *f = *state;
    for (size_t i = 0; i < ML_COUNT(cases); i++) {
        const struct peer_step steps[] = {{0, cases[i].bytes}, {0}};
        struct peer peer;
        peer_init(&peer, &f->net, steps, cases[i].end);
        peer.plays_at_once = true;
        struct answer got;
        char url[64];
        snprintf(url, sizeof url, "https://127.0.0.1:%d/", peer.port);
        answer_get(&got, &f->net,
                   &(struct ml_http_request){.method = "GET",
                                             .url = url,
                                             .deadlines.connect_ms = cases[i].connect_ms,
                                             .tls = &tls});
        if (got.err.kind != cases[i].kind || !strstr(got.err.message, cases[i].message))
            fail_msg("case %zu: %s: %s", i, ml_err_name(got.err.kind), got.err.message);
        peer_fini(&peer);
    }
}

/* Puts the authority among the system's roots, for this process alone. False where it may not. */
static bool become_system_root(struct tls_fixture *f)
{
    const curl_version_info_data *libcurl = curl_version_info(CURLVERSION_NOW);
    char roots[64], command[512];
    snprintf(roots, sizeof roots, "%s/roots", f->folder);
    if (!libcurl->capath || !libcurl->cainfo || unshare(CLONE_NEWNS) < 0 ||
        mount(NULL, "/", NULL, MS_REC | MS_PRIVATE, NULL) < 0)
        return false;
    snprintf(command, sizeof command,
             "cd %s && mkdir roots && cp ca.pem roots/$(openssl x509 -hash -noout -in ca.pem).0 &&"
             " cp ca.pem roots/${1##*/}",
             f->folder);
    char *argv[] = {"sh", "-c", command, "sh", (char *)libcurl->cainfo, NULL};
    int status = -1;
    waitpid(tls_spawn(argv, -1), &status, 0);
    assert_int_equal(status, 0);
    return mount(roots, libcurl->capath, NULL, MS_BIND, NULL) == 0;
}

/* The last one: the process goes on with those roots. */
static void test_http_tls_of_a_named_authority_trusts_no_system_root(void **state)
{
    static const struct {
        const char *ca;
        bool by_proxy;
        const char *message;
    } cases[] = {
        {NULL, false, ""},
        {"other.pem", false, "TLS to 127.0.0.1"},
        {"other.pem", true, "TLS to the proxy 127.0.0.1"},
    };
    struct tls_fixture *f = *state;
    if (!become_system_root(f))
        skip();
    server_start(f, false);
    for (size_t i = 0; i < ML_COUNT(cases); i++) {
        struct answer got;
        char url[64];
        snprintf(url, sizeof url, "https://127.0.0.1:%d/", f->port);
        struct ml_http_tls tls = {.ca_pem = tls_pem(f, cases[i].ca),
                                  .proxy_url = cases[i].by_proxy ? url : NULL};
        answer_get(&got, &f->net,
                   &(struct ml_http_request){
                       .method = "GET", .url = url, .tls = &tls, .deadlines.total_ms = 15000});
        if (!strstr(got.err.message, cases[i].message) || (cases[i].ca && got.err.kind != ML_ETLS))
            fail_msg("case %zu: %s: %s", i, ml_err_name(got.err.kind), got.err.message);
        ml_buf_fini(&got.body);
        free((char *)tls.ca_pem.ptr);
    }
    tls_server_stop(f);
}

#define TLS(test) cmocka_unit_test_setup_teardown(test, tls_setup, tls_teardown)

int main(void)
{
    const struct CMUnitTest tests[] = {
        TLS(test_http_tls_trusts_only_the_right_server),
        TLS(test_http_tls_shows_the_client_certificate),
        TLS(test_http_tls_tells_broken_handshakes_from_refused_ones),
        TLS(test_http_tls_of_a_named_authority_trusts_no_system_root),
    };
    return cmocka_run_group_tests(tests, tls_group_setup, tls_group_teardown);
}
