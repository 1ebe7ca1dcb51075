#include "net_unit.h"

#include "cluster/host/tcp_check.h"
#include "net/tcp.h"

#include <unistd.h>

struct fixture {
    struct net net;
    int calls;
    struct ml_err err;
};

static void on_done(void *context, const struct ml_err *err)
{
    struct fixture *f = context;
    f->calls++;
    f->err = err ? *err : ML_ERR_INIT;
    ml_loop_stop(f->net.loop);
}

static int setup(void **state)
{
    struct fixture *f = ml_new(struct fixture);
    net_init(&f->net);
    *state = f;
    return 0;
}

static int teardown(void **state)
{
    struct fixture *f = *state;
    net_fini(&f->net);
    free(f);
    return 0;
}

static int check(struct fixture *f, const char *address, int port, int64_t timeout_ms)
{
    struct ml_tcp_check *check = NULL;
    struct ml_err err = ML_ERR_INIT;
    f->calls = 0;
    int r = ml_tcp_check_start(f->net.loop, -1, address, (uint16_t)port, timeout_ms * ML_NS_PER_MS,
                               on_done, f, &check, &err);
    assert_int_equal(f->calls, 0); /* never inside the call */
    assert_int_equal(check != NULL, r == 0);
    if (r == 0)
        net_run(&f->net);
    return r;
}

static void test_tcp_check_tells_who_listens(void **state)
{
    static const char *const listeners[] = {"127.0.0.1:0", "[::1]:0"};
    static const char *const addresses[] = {"127.0.0.1", "::1"};
    struct fixture *f = *state;
    for (size_t i = 0; i < ML_COUNT(listeners); i++) {
        struct ml_err err = ML_ERR_INIT;
        int fd = -1;
        if (ml_tcp_listen(listeners[i], &fd, &err) < 0)
            continue; /* a machine without IPv6 */
        int port = ml_tcp_local_port(fd);
        assert_int_equal(check(f, addresses[i], port, 5000), 0);
        assert_int_equal(f->err.kind, 0);
        close(fd);
        assert_int_equal(check(f, addresses[i], port, 5000), 0);
        assert_int_equal(f->err.kind, ML_ENETWORK);
        assert_has(f->err.message, ": Connection refused");
    }
}

static void test_tcp_check_gives_up_in_time(void **state)
{
    struct fixture *f = *state;
    assert_int_equal(check(f, "192.0.2.1", 80, 30), 0); /* nobody's address */
    assert_true(f->err.kind == ML_ETIMEOUT || f->err.kind == ML_ENETWORK);
    assert_int_equal(f->calls, 1);
}

static void test_tcp_check_takes_addresses_only(void **state)
{
    struct fixture *f = *state;
    assert_int_equal(check(f, "localhost", 80, 1000), ML_EINVALID);
    assert_int_equal(check(f, "", 80, 1000), ML_EINVALID);
}

static void test_tcp_check_is_silent_once_freed(void **state)
{
    struct fixture *f = *state;
    struct ml_tcp_check *check = NULL;
    struct ml_err err = ML_ERR_INIT;
    assert_int_equal(
        ml_tcp_check_start(f->net.loop, -1, "127.0.0.1", 1, ML_NS_PER_S, on_done, f, &check, &err),
        0);
    ml_tcp_check_free(check);
    net_settle(&f->net, 20);
    assert_int_equal(f->calls, 0);
}

#define CHECK(test) cmocka_unit_test_setup_teardown(test, setup, teardown)

int main(void)
{
    const struct CMUnitTest tests[] = {
        CHECK(test_tcp_check_tells_who_listens),
        CHECK(test_tcp_check_gives_up_in_time),
        CHECK(test_tcp_check_takes_addresses_only),
        CHECK(test_tcp_check_is_silent_once_freed),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
