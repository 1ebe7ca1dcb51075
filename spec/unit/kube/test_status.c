#include "unit.h"

#include "kube/client.h"

#define STATUS(fields)                                                                             \
    "{\"kind\":\"Status\",\"apiVersion\":\"v1\",\"status\":\"Failure\"," fields "}"

static void test_status_error_decides_by_reason_then_code(void **state)
{
    (void)state;
    static const struct {
        const char *body;
        int http;
        int kind, code;
        const char *reason, *message;
    } rows[] = {
        {STATUS("\"reason\":\"AlreadyExists\",\"code\":409,\"message\":\"it exists\""), 409,
         ML_EALREADY_EXISTS, 409, "AlreadyExists", "it exists"},
        {STATUS("\"reason\":\"Conflict\",\"code\":409,\"message\":\"changed.\""), 409, ML_ECONFLICT,
         409, "Conflict", "changed"},
        {STATUS("\"reason\":\"Expired\",\"code\":410"), 200, ML_EGONE, 410, "Expired",
         "HTTP 410 Expired"},
        {STATUS("\"reason\":\"Gone\",\"code\":410"), 410, ML_EGONE, 410, "Gone", "HTTP 410 Gone"},
        {STATUS("\"reason\":\"NotFound\",\"code\":404,\"message\":\"no\""), 404, ML_ENOT_FOUND, 404,
         "NotFound", "no"},
        {STATUS("\"reason\":\"Forbidden\",\"message\":\"no\""), 403, ML_EFORBIDDEN, 403,
         "Forbidden", "no"},
        {STATUS("\"reason\":\"Unauthorized\",\"message\":\"no\""), 401, ML_EUNAUTHORIZED, 401,
         "Unauthorized", "no"},
        {STATUS("\"reason\":\"Invalid\",\"message\":\"no\""), 422, ML_EINVALID, 422, "Invalid",
         "no"},
        {STATUS("\"reason\":\"TooManyRequests\",\"message\":\"no\""), 429, ML_ETOO_MANY, 429,
         "TooManyRequests", "no"},
        {STATUS("\"reason\":\"Timeout\",\"message\":\"no\""), 504, ML_ETIMEOUT, 504, "Timeout",
         "no"},
        {STATUS("\"reason\":\"Timeout\",\"message\":\"Too large resource version: 9, current: 1\","
                "\"details\":{\"causes\":[{\"reason\":\"ResourceVersionTooLarge\",\"message\":"
                "\"Too large resource version\"}],\"retryAfterSeconds\":1}"),
         504, ML_ETIMEOUT, 504, "ResourceVersionTooLarge",
         "Too large resource version: 9, current: 1"},
        {STATUS("\"reason\":\"\",\"message\":\"no\""), 409, ML_ECONFLICT, 409, "", "no"},
        {STATUS("\"reason\":\"Invented\",\"message\":\"no\""), 503, ML_EUNAVAILABLE, 503,
         "Invented", "no"},
        {STATUS("\"message\":\"failed to create typed patch object (d/x; v1, Kind=Pod): .spec.y: "
                "field not declared in schema\",\"code\":500"),
         500, ML_EINVALID, 500, "",
         "failed to create typed patch object (d/x; v1, Kind=Pod): .spec.y: field not declared in "
         "schema"},
        {STATUS("\"message\":\"etcd is down\",\"code\":500"), 500, ML_ESERVER, 500, "",
         "etcd is down"},
        {STATUS("\"message\":\"two\\nlines\",\"code\":500"), 500, ML_ESERVER, 500, "", "two lines"},
        {STATUS("\"code\":777777"), 500, ML_ESERVER, 500, "", "HTTP 500 Internal Server Error"},
        {"", 503, ML_EUNAVAILABLE, 503, "", "HTTP 503 Service Unavailable"},
        {"404 page not found\n", 404, ML_ENOT_FOUND, 404, "",
         "HTTP 404 Not Found: 404 page not found"},
        {"<html><body><h1>502</h1></body></html>", 502, ML_EUNAVAILABLE, 502, "",
         "HTTP 502 Bad Gateway: an HTML page, so a proxy and not the API server answered"},
        {"{\"error\":\"x\"}", 500, ML_ESERVER, 500, "",
         "HTTP 500 Internal Server Error: JSON, but no Status object"},
        {"{\"kind\":\"Status\"", 500, ML_ESERVER, 500, "", "HTTP 500 Internal Server Error"},
        {"\xff\xfe", 418, ML_EINVALID, 418, "", "HTTP 418: ??"},
        {"x", 299, ML_EINTERNAL, 299, "", "HTTP 299: x"},
        {STATUS("\"code\":0"), 200, ML_EINTERNAL, 200, "", "HTTP 200 "},
    };
    for (size_t i = 0; i < ML_COUNT(rows); i++) {
        struct ml_err err = ML_ERR_INIT;
        int r = ml_status_error(ml_str_of(rows[i].body), rows[i].http, &err);
        assert_string_equal(err.message, rows[i].message);
        assert_string_equal(ml_err_name(r), ml_err_name(rows[i].kind));
        assert_int_equal(err.kind, r);
        assert_int_equal(err.http, rows[i].code);
        assert_string_equal(err.reason, rows[i].reason);
    }
}

static void test_status_error_carries_the_wait(void **state)
{
    (void)state;
    struct ml_err err = ML_ERR_INIT;
    ml_status_error(ML_STR(STATUS("\"details\":{\"retryAfterSeconds\":5}")), 429, &err);
    assert_true(err.retry_after_ms == 5000);
    ml_status_error(ML_STR(STATUS("\"details\":{\"retryAfterSeconds\":\"5\"}")), 429, &err);
    assert_true(err.retry_after_ms == -1);
    ml_status_error(ML_STR(STATUS("\"details\":{\"retryAfterSeconds\":9223372036854775807}")), 429,
                    &err);
    assert_true(err.retry_after_ms == -1);
}

static void test_status_error_cuts_long_messages_between_characters(void **state)
{
    (void)state;
    ML_AUTO(ml_buf_fini) struct ml_buf body = ML_BUF_INIT;
    ml_buf_puts(&body, "{\"kind\":\"Status\",\"message\":\"x");
    for (int i = 0; i < ML_ERR_MESSAGE_MAX; i++)
        ml_buf_puts(&body, "\xc3\xa4");
    ml_buf_puts(&body, "\"}");
    struct ml_err err = ML_ERR_INIT;
    ml_status_error(ml_buf_str(&body), 500, &err);
    assert_in_range(strlen(err.message), ML_ERR_MESSAGE_MAX - 12, ML_ERR_MESSAGE_MAX - 1);
    assert_true(ml_str_is_utf8(ml_str_of(err.message)));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_status_error_decides_by_reason_then_code),
        cmocka_unit_test(test_status_error_carries_the_wait),
        cmocka_unit_test(test_status_error_cuts_long_messages_between_characters),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
