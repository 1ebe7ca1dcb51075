/* Which addresses scripts may ask, in each form that one can be written in. */
#include <arpa/inet.h>
#include <netinet/in.h>

#include "unit.h"

#include "net/address.h"

/* The kind of the error, 0: it may be asked. */
static int check(const char *text, bool loopback)
{
    struct sockaddr_in6 v6 = {.sin6_family = AF_INET6};
    struct sockaddr_in v4 = {.sin_family = AF_INET};
    struct ml_err err = ML_ERR_INIT;
    if (inet_pton(AF_INET, text, &v4.sin_addr) == 1)
        return ml_address_check((const struct sockaddr *)&v4, loopback, &err);
    assert_int_equal(inet_pton(AF_INET6, text, &v6.sin6_addr), 1);
    return ml_address_check((const struct sockaddr *)&v6, loopback, &err);
}

static void test_address_of_a_server_is_fine(void **state)
{
    (void)state;
    static const char *const fine[] = {"10.1.2.3",
                                       "192.168.0.1",
                                       "172.16.0.9",
                                       "100.100.100.1",
                                       "8.8.8.8",
                                       "169.253.255.255",
                                       "192.0.1.1",
                                       "2001:db8::1",
                                       "fd00::1",
                                       "fd00:ec3::1",
                                       "fd00:42::43",
                                       "::ffff:10.0.0.1",
                                       "::ffff:0:10.0.0.1",
                                       "64:ff9b::10.0.0.1",
                                       "64:ff9b:1::10.0.0.1",
                                       "64:ff9b:1:0a01:2:300::",
                                       "2002:a00:1::1",
                                       "2001:db8:a9fe:1::1",
                                       "2001:db8::169.254.1.1",
                                       "2606:4700:4700::1111",
                                       "2001:4860:4860::8888",
                                       "2001:0:4136:e378:0:0:3fff:fdd2"};
    for (size_t i = 0; i < ML_COUNT(fine); i++)
        if (check(fine[i], false) != 0)
            fail_msg("%s is refused", fine[i]);
}

static void test_address_of_metadata_and_links_is_refused(void **state)
{
    (void)state;
    static const char *const bad[] = {
        "169.254.169.254", "169.254.0.1", "169.254.255.255", "100.100.100.200", "168.63.129.16",
        "192.0.0.192", "192.0.0.1", "0.0.0.0", "0.1.2.3", "224.0.0.1", "240.0.0.1",
        "255.255.255.255", "fe80::1", "febf::1", "fe80::a9fe:a9fe", "::", "ff02::1",
        /* of clouds: AWS, Google, Oracle, Scaleway, Linode */
        "fd00:ec2::254", "fd00:ec2::23", "fd00:ec2:ffff::1", "fd20:ce::254", "fd00:c1::a9fe:a9fe",
        "fd00:c1::1", "fd00:42::42", "fd00:a9fe:a9fe::1",
        /* an address of IPv4 in each form of IPv6 that carries one */
        "::169.254.1.1", "::100.100.100.200", "::ffff:169.254.1.1", "::ffff:0.0.0.0",
        "::ffff:168.63.129.16", "::ffff:192.0.0.192", "::ffff:0:169.254.169.254",
        "::ffff:0:100.100.100.200", "64:ff9b::a9fe:a9fe", "64:ff9b::100.100.100.200",
        "64:ff9b:1::169.254.169.254", "64:ff9b:1:abcd::100.100.100.200",
        "64:ff9b:1:a9fe:a9:fe00::", "64:ff9b:1:a9:fe:a9fe::", "64:ff9b:1:0:a9:fea9:fe00:0",
        "64:ff9b:1::169.254.7.7", "2002:a9fe:1::", "2002:a9fe:a9fe::1", "2002:6464:64c8::1",
        "2002:c000:c0::1", "2001:0:a9fe:a9fe:0:0:3fff:fdd2", "2001:0:4136:e378::5601:5601",
        "fd12::5efe:169.254.169.254", "2001:db8::200:5efe:169.254.169.254",
        /* behind a prefix of NAT64 that a network chose itself (RFC 6052, 2.2) */
        "2001:db8:a9fe:a9fe::", "2001:db8:1a9:fea9:fe::", "2001:db8:1:a9fe:a9:fe00::",
        "2001:db8:1:1a9:fe:a9fe::", "2001:db8:1:1:a9:fea9:fe00::", "2001:db8:1:1::169.254.169.254",
        "2001:db8:1:1::100.100.100.200", "2001:db8:1:1::169.254.170.2",
        "2001:db8:1:1::192.0.0.192"};
    for (size_t i = 0; i < ML_COUNT(bad); i++)
        if (check(bad[i], false) != ML_EFORBIDDEN || check(bad[i], true) != ML_EFORBIDDEN)
            fail_msg("%s may be asked", bad[i]);
}

static void test_address_of_this_machine_only_when_asked_for(void **state)
{
    (void)state;
    static const char *const own[] = {
        "127.0.0.1",          "127.255.0.1",         "::1", "::ffff:127.0.0.1", "64:ff9b::7f00:1",
        "::ffff:0:127.0.0.1", "64:ff9b:1::127.0.0.1"};
    for (size_t i = 0; i < ML_COUNT(own); i++) {
        assert_int_equal(check(own[i], false), ML_EFORBIDDEN);
        assert_int_equal(check(own[i], true), 0);
    }
}

static void test_address_in_an_origin(void **state)
{
    (void)state;
    static const struct {
        const char *origin;
        bool loopback, fine;
    } cases[] = {
        {"https://billing.example.com", false, true},
        {"https://billing.example.com:8443", false, true},
        {"http://localhost:8080", true, true},
        {"http://LOCALHOST", true, true},
        {"http://127.0.0.1:1", true, true},
        {"http://127.1", true, true},
        {"http://2130706433", true, true},
        {"http://[::1]:80", true, true},
        {"http://localhost.example.com", false, true},
        {"http://169.254.169.254", false, false},
        {"http://0xa9fea9fe", false, false},
        {"http://[fe80::1]", false, false},
        {"http://[::ffff:a9fe:a9fe]", false, false},
        {"http://[fd00:ec2::254]:80", false, false},
        {"http://0251.0376.0251.0376", false, false},
        {"http://100.100.25800", false, false},
        {"http://0", false, false},
    };
    for (size_t i = 0; i < ML_COUNT(cases); i++) {
        struct ml_err err = ML_ERR_INIT;
        if (ml_origin_is_loopback(cases[i].origin) != cases[i].loopback ||
            (ml_origin_check(cases[i].origin, &err) == 0) != cases[i].fine)
            fail_msg("%s: %s", cases[i].origin, err.message);
    }
}

static void test_address_of_a_pattern(void **state)
{
    (void)state;
    static const struct {
        const char *pattern, *origin;
        bool covers;
    } cases[] = {
        {"https://a.test", "https://A.test", true},
        {"https://a.test", "https://b.a.test", false},
        {"https://a.test", "https://a.test:443", false},
        {"https://*.a.test", "https://b.a.test", true},
        {"https://*.a.test", "https://c.b.A.TEST", true},
        {"https://*.a.test", "https://a.test", false},
        {"https://*.a.test", "https://.a.test", false},
        {"https://*.a.test", "https://b..a.test", false},
        {"https://*.a.test", "https://ba.test", false},
        {"https://*.a.test", "http://b.a.test", false},
        {"https://*.a.test", "https://b.a.test:80", false},
        {"https://*.a.test:80", "https://b.a.test:80", true},
        {"https://*.a.test", "https://x:80.a.test", false},
        {"https://*.a.test", "https://x@b.a.test", false},
        {"https://*.a.test", "https://*.a.test", true},
        {"https://*.a.test", "https://*.b.a.test", true},
        {"https://*.b.a.test", "https://*.a.test", false},
    };
    for (size_t i = 0; i < ML_COUNT(cases); i++)
        if (ml_origin_covers(cases[i].pattern, cases[i].origin) != cases[i].covers)
            fail_msg("%s and %s", cases[i].pattern, cases[i].origin);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_address_of_a_server_is_fine),
        cmocka_unit_test(test_address_of_metadata_and_links_is_refused),
        cmocka_unit_test(test_address_of_this_machine_only_when_asked_for),
        cmocka_unit_test(test_address_in_an_origin),
        cmocka_unit_test(test_address_of_a_pattern),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
