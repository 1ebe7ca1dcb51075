#include "net_unit.h"

#include <arpa/inet.h>
#include <unistd.h>

#include "net/http_proxy.h"

static void test_http_proxy_no_proxy_means_what_go_means_by_it(void **state)
{
    (void)state;
    static const struct {
        const char *list, *host, *port;
        bool direct;
    } rows[] = {
        {"", "example.com", "443", false},
        {"*", "example.com", "443", true},
        {"example.com", "example.com", "443", true},
        {"EXAMPLE.com", "example.COM", "443", true},
        {"example.com", "api.example.com", "443", true},
        {"example.com", "badexample.com", "443", false},
        {".example.com", "example.com", "443", false},
        {".example.com", "api.example.com", "443", true},
        {"*.example.com", "api.example.com", "443", true},
        {"*.example.com", "example.com", "443", false},
        {"example.com:443", "example.com", "443", true},
        {"example.com:6443", "example.com", "443", false},
        {"a, example.com ,b", "example.com", "443", true},
        {"10.0.0.1", "10.0.0.1", "443", true},
        {"10.0.0.1:443", "10.0.0.1", "443", true},
        {"10.0.0.1:6443", "10.0.0.1", "443", false},
        {"10.0.0.0/8", "10.255.0.1", "443", true},
        {"10.0.0.0/8", "11.0.0.1", "443", false},
        {"10.0.0.128/25", "10.0.0.127", "443", false},
        {"10.0.0.128/25", "10.0.0.129", "443", true},
        {"0.0.0.0/0", "1.2.3.4", "443", true},
        {"10.0.0.0/33", "10.0.0.1", "443", false},
        {"10.0.0.0/x", "10.0.0.1", "443", false},
        {"10.0.0.0/8", "ten.example", "443", false},
        {"fd00::1", "[fd00::1]", "443", true},
        {"[fd00::1]", "[fd00:0:0::1]", "443", true},
        {"[fd00::1]:443", "[fd00::1]", "443", true},
        {"[fd00::1]:80", "[fd00::1]", "443", false},
        {"fd00::/8", "[fdff::1]", "443", true},
        {"fd00::/8", "[fe80::1]", "443", false},
        {":443", "example.com", "443", false},
        {".", "example.com", "443", false},
        {",,", "example.com", "443", false},
    };
    for (size_t i = 0; i < ML_COUNT(rows); i++)
        if (ml_http_no_proxy(rows[i].list, rows[i].host, rows[i].port) != rows[i].direct)
            fail_msg("NO_PROXY=%s %s:%s", rows[i].list, rows[i].host, rows[i].port);
}

static void assert_proxy(bool https, const char *host, const char *wanted)
{
    ML_AUTO_FREE char *got = ml_http_proxy_from_env(https, host, "443");
    if (wanted)
        assert_string_equal(got, wanted);
    else
        assert_null(got);
}

static void test_http_proxy_comes_from_the_environment(void **state)
{
    static const char *const names[] = {"HTTPS_PROXY", "https_proxy", "HTTP_PROXY", "http_proxy",
                                        "ALL_PROXY",   "NO_PROXY",    "no_proxy"};
    (void)state;
    for (size_t i = 0; i < ML_COUNT(names); i++)
        unsetenv(names[i]);
    assert_proxy(true, "h", NULL);
    setenv("ALL_PROXY", "http://all:1", 1); /* none of Go's */
    assert_proxy(true, "h", NULL);
    setenv("https_proxy", "low:3128", 1);
    assert_proxy(true, "h", "http://low:3128");
    setenv("HTTPS_PROXY", "socks5://up:1080", 1);
    assert_proxy(true, "h", "socks5://up:1080");
    assert_proxy(false, "h", NULL);
    setenv("http_proxy", "http://plain:1", 1);
    assert_proxy(false, "h", "http://plain:1");
    assert_proxy(true, "localhost", NULL);
    assert_proxy(true, "127.0.0.2", NULL);
    assert_proxy(true, "[::1]", NULL);
    setenv("no_proxy", "h", 1);
    assert_proxy(true, "h", NULL);
    for (size_t i = 0; i < ML_COUNT(names); i++)
        unsetenv(names[i]);
}

/* ---- a SOCKS5 proxy that hears where it is to go, and answers itself ---- */

struct socks {
    struct net net;
    int listener, fd, port;
    struct ml_loop_watch *watch;
    int step;
    char host[64]; /* asked for */
};

static void socks_say(struct socks *socks, const char *bytes, size_t len)
{
    assert_int_equal(write(socks->fd, bytes, len), len);
}

static void socks_read(void *context)
{
    struct socks *socks = context;
    unsigned char bytes[1024];
    ssize_t len = read(socks->fd, bytes, sizeof bytes);
    if (len <= 0 || socks->step > 2)
        return;
    switch (socks->step++) {
    case 0: /* which ways to authenticate */
        socks_say(socks, "\x05\x00", 2);
        break;
    case 1:                            /* connect: version, command, 0, type of address */
        assert_int_equal(bytes[3], 3); /* a name, not an address that we looked up */
        snprintf(socks->host, sizeof socks->host, "%.*s", bytes[4], bytes + 5);
        socks_say(socks, "\x05\x00\x00\x01\x7f\x00\x00\x01\x00\x50", 10);
        break;
    default:
        socks_say(socks, "HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok", 40);
    }
}

static void socks_accept(void *context)
{
    struct socks *socks = context;
    ml_loop_watch_free(socks->watch);
    socks->fd = accept(socks->listener, NULL, NULL);
    socks->watch = ml_loop_watch_fd(socks->net.loop, socks->fd, socks_read, socks);
}

static void test_http_proxy_of_socks5_looks_names_up(void **state)
{
    struct socks socks = {.fd = -1};
    struct sockaddr_in address = {.sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
    socklen_t len = sizeof address;
    struct answer got;
    char proxy[64];
    (void)state;
    net_init(&socks.net);
    socks.listener = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
    assert_int_equal(bind(socks.listener, (struct sockaddr *)&address, sizeof address), 0);
    assert_int_equal(listen(socks.listener, 1), 0);
    getsockname(socks.listener, (struct sockaddr *)&address, &len);
    socks.watch = ml_loop_watch_fd(socks.net.loop, socks.listener, socks_accept, &socks);
    snprintf(proxy, sizeof proxy, "socks5://127.0.0.1:%d", ntohs(address.sin_port));
    const struct ml_http_tls tls = {.proxy_url = proxy};
    answer_get(
        &got, &socks.net,
        &(struct ml_http_request){.method = "GET", .url = "http://api.invalid/x", .tls = &tls});
    assert_int_equal(got.err.kind, 0);
    assert_str_eq(ml_buf_str(&got.body), "ok");
    assert_string_equal(socks.host, "api.invalid");
    ml_buf_fini(&got.body);
    ml_loop_watch_free(socks.watch);
    net_fini(&socks.net);
    close(socks.fd);
    close(socks.listener);
}

static void get_through(struct answer *got, struct net *net, const char *proxy)
{
    const struct ml_http_tls tls = {.proxy_url = proxy};
    answer_get(
        got, net,
        &(struct ml_http_request){.method = "GET", .url = "https://api.invalid/x", .tls = &tls});
    ml_buf_fini(&got->body);
}

static void test_http_proxy_that_is_not_there_is_named(void **state)
{
    static const struct {
        const char *proxy, *message;
    } rows[] = {
        {"http://127.0.0.1:1", "connect to the proxy 127.0.0.1:1: connection refused"},
        {"https://jane:secret@127.0.0.1:1", "connect to the proxy 127.0.0.1:1: connection refused"},
        {"socks5://jane:secret@127.0.0.1:1",
         "connect to api.invalid:443 through the proxy 127.0.0.1:1: connection refused"},
        {"http://jane:secret@[::1", "connect to the proxy: its URL is not valid"},
    };
    struct net *net = *state;
    for (size_t i = 0; i < ML_COUNT(rows); i++) {
        struct answer got;
        get_through(&got, net, rows[i].proxy);
        if (!strstr(got.err.message, rows[i].message) || strstr(got.err.message, "secret"))
            fail_msg("%s: %s", rows[i].proxy, got.err.message);
    }
}

/* libcurl's own choice would be 1080. */
static void test_http_proxy_without_a_port_is_at_80(void **state)
{
    struct sockaddr_in address = {.sin_family = AF_INET, .sin_port = htons(1080)};
    struct net *net = *state;
    struct answer got;
    char proxy[64], host[INET_ADDRSTRLEN];
    int listener = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
    /* An address of our own: others may be at work on this machine. */
    address.sin_addr.s_addr = htonl(0x7f000000 | ((uint32_t)getpid() & 0xffffff));
    assert_int_equal(bind(listener, (struct sockaddr *)&address, sizeof address), 0);
    assert_int_equal(listen(listener, 1), 0);
    inet_ntop(AF_INET, &address.sin_addr, host, sizeof host);
    snprintf(proxy, sizeof proxy, "http://%s", host);
    const struct ml_http_tls tls = {.proxy_url = proxy};
    answer_get(&got, net,
               &(struct ml_http_request){.method = "GET",
                                         .url = "https://api.invalid/x",
                                         .tls = &tls,
                                         .deadlines.total_ms = 300});
    assert_int_equal(accept(listener, NULL, NULL), -1);
    ml_buf_fini(&got.body);
    close(listener);
}

#define NET(test) cmocka_unit_test_setup_teardown(test, net_setup, net_teardown)

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_http_proxy_no_proxy_means_what_go_means_by_it),
        cmocka_unit_test(test_http_proxy_comes_from_the_environment),
        cmocka_unit_test(test_http_proxy_of_socks5_looks_names_up),
        NET(test_http_proxy_that_is_not_there_is_named),
        NET(test_http_proxy_without_a_port_is_at_80),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
