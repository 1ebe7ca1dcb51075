/* Questions at a port: whose token it is, and what that user may know, are the API server's word.
 */
#define accept accept_status /* the fixture's, not that of sockets */
#include "run_scripts.h"
#undef accept

#include "codec/json.h"
#include "operator/inspect_server.h"
#include "state/journal.h"

#include <arpa/inet.h>
#include <errno.h>
#include <event2/event.h>
#include <fcntl.h>
#include <stdlib.h>
#include <sys/socket.h>

#define BOUND_NS (20 * ML_NS_PER_S) /* far beyond what any of it takes */

/* The port, and the API server's word. A token "alice-token" is alice's. */
static struct {
    struct world *world;
    struct ml_client *client;
    struct ml_inspect_server *reviews;
    int token_reviews, access_reviews;
    char last_access[2048]; /* the body of the last review */
    /* A review is allowed when its body has one of these texts; "": each is. */
    const char *alice[4], *bob[4], *carol[4];
    enum { ANSWERS, SILENT, REFUSES } api;
    struct fake_call *held[64]; /* while it is silent */
    size_t held_count;
} at;

static const char *const *texts_of(const char *body)
{
    return strstr(body, "\"user\":\"alice\"") ? at.alice
           : strstr(body, "\"user\":\"bob\"") ? at.bob
                                              : at.carol;
}

static void review_access(struct fake_call *call)
{
    bool allowed = false;
    at.access_reviews++;
    snprintf(at.last_access, sizeof at.last_access, "%s", call->body);
    for (const char *const *text = texts_of(call->body); *text; text++)
        allowed = allowed || strstr(call->body, *text);
    fake_reply(call, 201,
               allowed ? "{\"status\":{\"allowed\":true}}"
                       : "{\"status\":{\"allowed\":false,\"reason\":\"no rule\"}}");
}

static void review_token(struct fake_call *call)
{
    ML_AUTO_FREE char *token = ml_json_find_string(ml_str_of(call->body), "spec", "token", NULL);
    size_t name = strcspn(token, "-");
    at.token_reviews++;
    if (strcmp(token + name, "-token") != 0) {
        fake_reply(call, 201, "{\"status\":{\"error\":\"invalid bearer token\"}}");
        return;
    }
    ML_AUTO_FREE char *reply = ml_asprintf(
        "{\"spec\":{\"token\":\"%s\"},\"status\":{\"authenticated\":true,\"user\":{\"username\":"
        "\"%.*s\",\"uid\":\"u-1\",\"groups\":[\"devs\",\"all\"],\"extra\":{\"a/b\":[\"c\"]}}}}",
        token, (int)name, token);
    fake_reply(call, 201, reply);
}

static void answer_reviews(void *context, struct fake_call *call)
{
    bool of_token = strstr(call->path, "/tokenreviews") != NULL;
    if (!of_token && !strstr(call->path, "/subjectaccessreviews"))
        answer(context, call);
    else if (at.api == SILENT)
        at.held[at.held_count++] = call;
    else if (at.api == REFUSES)
        fake_refuse(call, 403, "Forbidden", "tokenreviews is forbidden");
    else if (of_token)
        review_token(call);
    else
        review_access(call);
}

static void look(void *context, struct ml_buf *why, struct ml_inspect_view *out)
{
    struct world *world = context;
    ml_buf_puts(why, "a line\n");
    *out = (struct ml_inspect_view){
        .services = &world->services, .scripts = world->scripts, .ready = true};
    out->why = ml_buf_str(why);
}

static int open_at(const char *address, struct ml_err *err)
{
    const struct ml_inspect_server_opts opts = {
        .loop = at.world->loop,
        .log = &at.world->log,
        .client = at.client,
        .address = address,
        .look = look,
        .context = at.world,
    };
    return ml_inspect_server_new(&opts, &at.reviews, err);
}

static int set_up_port(void **state)
{
    struct ml_err err = ML_ERR_INIT;
    memset(&at, 0, sizeof at);
    set_up(state);
    at.world = *state;
    at.world->services.journal = ml_journal_new(ML_JOURNAL_BYTES);
    at.bob[0] = "";
    at.alice[0] = "\"namespace\":\"d\"";
    fake_set_handler(at.world->server, answer_reviews, at.world);
    at.client = ml_client_new(&(struct ml_client_opts){
        .loop = at.world->loop,
        .transport = fake_transport_seam(at.world->server),
        .metrics = at.world->metrics,
        .random = &at.world->random,
        .in_flight_max = 32,
        .same_server = at.world->services.client,
    });
    assert_int_equal(0, open_at("127.0.0.1:0", &err));
    return 0;
}

static int tear_down_port(void **state)
{
    struct ml_journal *journal = at.world->services.journal;
    ml_inspect_server_free(at.reviews);
    ml_client_free(at.client);
    tear_down(state);
    ml_journal_free(journal);
    return 0;
}

/* ---- a person who asks ---- */

struct asking {
    int fd;
    struct ml_buf got;
    bool ended;
};

static void asking_init(struct asking *self)
{
    const struct sockaddr_in address = {
        .sin_family = AF_INET,
        .sin_port = htons((uint16_t)ml_inspect_server_port(at.reviews)),
        .sin_addr.s_addr = htonl(INADDR_LOOPBACK),
    };
    *self = (struct asking){.fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0)};
    assert_int_equal(0, connect(self->fd, (const struct sockaddr *)&address, sizeof address));
    assert_int_equal(0, fcntl(self->fd, F_SETFL, O_NONBLOCK));
}

static void asking_fini(struct asking *self)
{
    if (self->fd >= 0)
        close(self->fd);
    ml_buf_fini(&self->got);
}

/* Serves the sockets of the loop once, and what became due. */
static void turn(void)
{
    event_base_loop(ml_loop_base(at.world->loop), EVLOOP_NONBLOCK);
    ml_loop_poll(at.world->loop);
}

#define until(condition)                                                                           \
    do {                                                                                           \
        int64_t end_ns = ml_clock_monotonic(ml_clock_real()) + BOUND_NS;                           \
        while (!(condition)) {                                                                     \
            if (ml_clock_monotonic(ml_clock_real()) > end_ns)                                      \
                fail_msg("it did not come: %s", #condition);                                       \
            turn();                                                                                \
        }                                                                                          \
    } while (0)

/* Has the answer ended? */
static bool has_answer(struct asking *self)
{
    char piece[4096];
    ssize_t n;
    while (!self->ended && (n = recv(self->fd, piece, sizeof piece, 0)) != -1) {
        self->ended = n == 0;
        ml_buf_append(&self->got, piece, (size_t)n);
    }
    self->ended = self->ended || errno != EAGAIN;
    return self->ended;
}

static void send_all(struct asking *self, const char *text)
{
    size_t len = strlen(text), sent = 0;
    while (sent < len && !has_answer(self)) {
        ssize_t n = send(self->fd, text + sent, len - sent, MSG_NOSIGNAL);
        sent += n > 0 ? (size_t)n : 0;
        turn();
    }
}

static void begin(struct asking *self, const char *path, const char *authorization)
{
    ML_AUTO_FREE char *request = ml_asprintf("GET %s HTTP/1.1\r\nHost: a\r\n%s%s%s"
                                             "Connection: close\r\n\r\n",
                                             path, authorization ? "Authorization: " : "",
                                             authorization ? authorization : "",
                                             authorization ? "\r\n" : "");
    asking_init(self);
    send_all(self, request);
}

/* The whole answer; valid until the next one. */
static const char *ask(const char *path, const char *authorization)
{
    static char answer[64 * 1024];
    struct asking asking;
    begin(&asking, path, authorization);
    until(has_answer(&asking));
    snprintf(answer, sizeof answer, "%s", ml_buf_cstr(&asking.got));
    asking_fini(&asking);
    return answer;
}

static void assert_has(const char *answer, const char *part)
{
    if (!strstr(answer, part))
        fail_msg("%s lacks %s", answer, part);
}

static void assert_lacks(const char *answer, const char *part)
{
    if (strstr(answer, part))
        fail_msg("%s has %s", answer, part);
}

static void assert_status(const char *answer, int status)
{
    ML_AUTO_FREE char *line = ml_asprintf("HTTP/1.1 %d ", status);
    if (strncmp(answer, line, strlen(line)) != 0)
        fail_msg("not %d: %s", status, answer);
}

/* A script that has written the status of d/a. */
static void run_one(void)
{
    ML_AUTO_FREE char *one = script("one", "return { status = { phase = 'ONE' } }");
    tell(at.world, one, NULL);
    accept_status(at.world, only_write(at.world), 11, "ONE");
}

/* ---- tests ---- */

static void test_reviews_refuse_who_shows_no_token(void **state)
{
    static const char *const wrong[] = {NULL,         "",           "Bearer",      "Bearer  ",
                                        "Basic YTpi", "Bearer a b", "Bearer a\"b", "alice-token"};
    (void)state;
    for (size_t i = 0; i < ML_COUNT(wrong); i++) {
        const char *answer = ask("/status", wrong[i]);
        assert_status(answer, 401);
        assert_has(answer, "WWW-Authenticate: Bearer");
        assert_has(answer, "expected the header Authorization: Bearer TOKEN");
    }
    assert_int_equal(0, at.token_reviews);
}

static char *long_token(size_t len)
{
    char *token = ml_alloc(len + 8);
    memcpy(token, "Bearer ", 7);
    memset(token + 7, 'x', len);
    token[len + 7] = '\0';
    return token;
}

static void test_reviews_refuse_a_token_that_is_too_long(void **state)
{
    ML_AUTO_FREE char *some = long_token((size_t)48 * 1024);
    ML_AUTO_FREE char *huge = long_token((size_t)1024 * 1024);
    (void)state;
    assert_status(ask("/status", some), 401);
    assert_status(ask("/status", huge), 400);
    assert_int_equal(0, at.token_reviews);
    assert_status(ask("/status", "Bearer bob-token"), 200);
}

static void test_reviews_refuse_a_token_that_the_api_server_does_not_know(void **state)
{
    (void)state;
    assert_status(ask("/status", "Bearer mallory"), 401);
    assert_status(ask("/status", "Bearer mallory"), 401);
    assert_int_equal(1, at.token_reviews);
    assert_int_equal(0, at.access_reviews);
}

static void test_reviews_say_whom_and_what_they_ask_about(void **state)
{
    (void)state;
    run_one();
    const char *answer = ask("/why/things/d/a", "Bearer alice-token");
    assert_status(answer, 200);
    assert_has(answer, "Content-Type: application/json");
    assert_has(answer, "\"found\":true,\"acts\":true,");
    assert_has(answer, "\"result\":\"success\"");
    assert_string_equal(
        at.last_access,
        "{\"apiVersion\":\"authorization.k8s.io/v1\",\"kind\":\"SubjectAccessReview\",\"spec\":{"
        "\"user\":\"alice\",\"uid\":\"u-1\",\"groups\":[\"devs\",\"all\"],\"extra\":{\"a/b\":["
        "\"c\"]},\"resourceAttributes\":{\"namespace\":\"d\",\"verb\":\"get\",\"group\":"
        "\"test.dev\",\"version\":\"v1\",\"resource\":\"things\",\"name\":\"a\"}}}");
}

static void test_reviews_refuse_an_object_that_the_asker_may_not_get(void **state)
{
    (void)state;
    run_one();
    const char *answer = ask("/why/Thing/d/a", "Bearer carol-token");
    assert_status(answer, 403);
    assert_has(answer, "you may not get things.test.dev in namespace d, by the name a\n");
    assert_lacks(answer, "success");
    assert_status(ask("/why/Thing/e/a", "Bearer alice-token"), 403);
    assert_status(ask("/why/Thing/d/a", "Bearer alice-token"), 200);
}

static void test_reviews_leave_out_what_the_asker_may_not_list(void **state)
{
    (void)state;
    run_one();
    const char *none = ask("/status", "Bearer carol-token");
    assert_has(none, "\"controllers\":[],\"not_shown\":[\"1 controller is not shown: you may not "
                     "list things.test.dev\"]");
    assert_lacks(none, "\"one\"");
    assert_has(none, "\"checks\":[\"a line\",");
    const char *some = ask("/status", "Bearer alice-token");
    assert_has(some, "\"controllers\":[],\"not_shown\":");
    const char *all = ask("/status", "Bearer bob-token");
    assert_has(all, "\"controllers\":[{\"controller\":\"one\",");
    assert_lacks(all, "not_shown");
}

static void test_reviews_show_the_entries_of_the_namespaces_that_the_asker_may_list(void **state)
{
    const struct ml_journal_entry other = {.what = ML_JOURNAL_RUN,
                                           .controller = ML_STR("one"),
                                           .key = ML_STR("e/b"),
                                           .result = ML_STR("success")};
    struct world *world = *state;
    run_one();
    ml_journal_add(world->services.journal, &other);
    const char *some = ask("/trace/0", "Bearer alice-token");
    assert_has(some, "{\"entries\":[{\"write\":{");
    assert_has(some, "\"for\":\"d/a\"");
    assert_lacks(some, "e/b");
    assert_has(some, "\"next\":3,\"not_shown\":[\"1 run is not shown: you may not list "
                     "things.test.dev in namespace e\"]");
    const char *all = ask("/trace/0", "Bearer bob-token");
    assert_has(all, "e/b");
    assert_lacks(all, "not_shown");
    const char *none = ask("/trace/0", "Bearer carol-token");
    assert_has(none, "{\"entries\":[],");
    assert_has(none, "\"1 write is not shown: you may not list things.test.dev in namespace d\","
                     "\"1 run is not shown: you may not list things.test.dev in namespace d\"");
}

static void test_reviews_show_a_write_to_those_who_may_list_both_kinds(void **state)
{
    ML_AUTO_FREE char *one = ml_asprintf(
        "local m = require 'moonloop'\n"
        "local Part = m.kind('test.dev/v1', 'Part')\n"
        "return m.controller {\n"
        "  name = 'one', reconciles = m.kind('test.dev/v1', 'Thing'), owns = { Part },\n"
        "  reconcile = function(thing, ctx)\n"
        "    ctx.create { apiVersion = 'test.dev/v1', kind = 'Part', metadata = { name = 'p' } }\n"
        "  end,\n"
        "}\n");
    struct world *world = *state;
    tell(world, one, NULL);
    reply_no_parts(world);
    fake_reply(only_write(world), 201,
               "{\"kind\":\"Part\",\"apiVersion\":\"test.dev/v1\",\"metadata\":{\"name\":\"p\","
               "\"namespace\":\"d\",\"resourceVersion\":\"20\"}}");
    ml_loop_poll(world->loop);
    at.alice[0] = "\"resource\":\"things\"";
    at.carol[0] = "\"resource\":\"parts\"";
    const char *things = ask("/trace/0", "Bearer alice-token");
    assert_lacks(things, "\"create\"");
    assert_has(things, "1 write is not shown: you may not list parts.test.dev in namespace d");
    const char *why = ask("/why/Thing/d/a", "Bearer alice-token");
    assert_has(why, "\"writes\":[],\"not_shown\":[\"1 write is not shown: you may not list "
                    "parts.test.dev in namespace d\"]");
    assert_status(ask("/why/Part/d/p", "Bearer alice-token"), 403);
    const char *part = ask("/why/Part/d/p", "Bearer carol-token");
    assert_status(part, 200);
    assert_has(part, "\"writes\":[],\"not_shown\":");
    assert_has(ask("/why/Part/d/p", "Bearer bob-token"), "\"verb\":\"create\"");
}

static void test_top_shows_the_objects_that_the_asker_may_list(void **state)
{
    struct world *world = *state;
    ML_AUTO_FREE char *one = script("one", "return { requeue_after = 60 }");
    tell(world, one, NULL);
    const char *some = ask("/top/", "Bearer alice-token");
    assert_status(some, 200);
    assert_has(some, "\"keys_in_all\":1,");
    assert_has(some, "\"name\":\"d/a\",\"state\":\"due\"");
    const char *none = ask("/top/one", "Bearer carol-token");
    assert_status(none, 200);
    assert_has(none, "\"keys_in_all\":0,\"fails_of_host\":0,\"keys\":[],\"not_shown\":[");
    assert_has(none, "1 object is not shown: you may not list things.test.dev in namespace d");
    assert_lacks(none, "d/a");
}

/* The object is read with the host's right, after the API server has said that the asker may. */
static void test_a_field_is_told_after_the_object_was_read(void **state)
{
    struct world *world = *state;
    struct asking asking;
    run_one();
    begin(&asking, "/why/Thing/d/a?spec.list%5Bx%2Fy%5D", "Bearer alice-token");
    until(world->live_read);
    assert_false(has_answer(&asking));
    fake_reply(ml_take(&world->live_read), 200,
               "{\"metadata\":{\"name\":\"a\",\"managedFields\":[{\"manager\":\"kubectl\","
               "\"fieldsV1\":{\"f:spec\":{\"f:list\":{\"f:x/y\":{}}}}}]}}");
    until(has_answer(&asking));
    assert_status(ml_buf_cstr(&asking.got), 200);
    assert_has(ml_buf_cstr(&asking.got),
               "\"field\":{\"name\":\"spec.list[x/y]\",\"found\":false,\"managers\":[{\"manager\":"
               "\"kubectl\"}]}");
    asking_fini(&asking);
    assert_status(ask("/why/Thing/d/a?spec", "Bearer carol-token"), 403);
    assert_null(world->live_read);
}

static void test_an_object_that_is_not_shown_ends_the_question(void **state)
{
    struct world *world = *state;
    struct asking asking;
    run_one();
    begin(&asking, "/why/Thing/d/a?spec", "Bearer alice-token");
    until(world->live_read);
    fake_refuse(ml_take(&world->live_read), 403, "Forbidden", "things a is forbidden");
    until(has_answer(&asking));
    assert_status(ml_buf_cstr(&asking.got), 502);
    assert_has(ml_buf_cstr(&asking.got), "the API server does not show the object: ");
    asking_fini(&asking);
    begin(&asking, "/why/Thing/d/a?spec", "Bearer alice-token");
    until(world->live_read);
    asking_fini(&asking); /* nobody waits for it any more */
    until(world->live_read->canceled);
    world->live_read = NULL;
    assert_status(ask("/why/Thing/d/a?%00", "Bearer alice-token"), 400);
}

static void test_reviews_are_used_for_ten_seconds(void **state)
{
    struct world *world = *state;
    run_one();
    assert_status(ask("/why/Thing/d/a", "Bearer alice-token"), 200);
    int reviews = at.access_reviews;
    at.alice[0] = NULL;
    advance(world, 9 * ML_NS_PER_S);
    assert_status(ask("/why/Thing/d/a", "Bearer alice-token"), 200);
    assert_int_equal(1, at.token_reviews);
    assert_int_equal(reviews, at.access_reviews);
    advance(world, 1 * ML_NS_PER_S);
    assert_status(ask("/why/Thing/d/a", "Bearer alice-token"), 403);
    assert_int_equal(2, at.token_reviews);
}

static void test_reviews_of_many_tokens_make_room(void **state)
{
    (void)state;
    for (int i = 0; i < 2 * ML_INSPECT_ASKERS_MAX; i++) {
        ML_AUTO_FREE char *token = ml_asprintf("Bearer u%d-token", i);
        assert_status(ask("/status", token), 200);
    }
    assert_int_equal(2 * ML_INSPECT_ASKERS_MAX, at.token_reviews);
    assert_status(ask("/status", "Bearer u0-token"), 200);
    assert_int_equal(2 * ML_INSPECT_ASKERS_MAX + 1, at.token_reviews);
    assert_status(ask("/status", "Bearer u127-token"), 200);
    assert_int_equal(2 * ML_INSPECT_ASKERS_MAX + 1, at.token_reviews);
}

static void test_reviews_that_do_not_come_end_the_question_alone(void **state)
{
    struct world *world = *state;
    struct asking asking;
    at.api = SILENT;
    begin(&asking, "/status", "Bearer alice-token");
    until(at.held_count == 1);
    advance(world, 9 * ML_NS_PER_S);
    turn();
    assert_false(has_answer(&asking));
    advance(world, 1 * ML_NS_PER_S);
    until(has_answer(&asking));
    assert_status(ml_buf_cstr(&asking.got), 503);
    assert_has(ml_buf_cstr(&asking.got), "cannot ask the API server about you: ");
    asking_fini(&asking);
    assert_true(at.held[0]->canceled);
    at.api = ANSWERS;
    assert_status(ask("/status", "Bearer alice-token"), 200);
}

static const char *read_log(void)
{
    static char text[64 * 1024];
    ssize_t len = pread(at.world->log.fd, text, sizeof text - 1, 0);
    text[len > 0 ? len : 0] = '\0';
    return text;
}

static void test_reviews_that_the_host_may_not_ask_for_are_named(void **state)
{
    (void)state;
    at.api = REFUSES;
    const char *answer = ask("/status", "Bearer alice-token");
    assert_status(answer, 503);
    assert_has(answer, "tokenreviews is forbidden");
    assert_has(answer, "(moonloop rbac --inspect-bind-address prints the roles");
    assert_has(read_log(), "the API server does not review the asker");
}

static void test_reviews_write_no_token_into_the_log(void **state)
{
    (void)state;
    ml_log_init(&at.world->log, &at.world->clock.clock, at.world->log.fd, ML_LOG_TEXT,
                ML_LOG_DEBUG);
    run_one();
    ask("/status", "Bearer alice-token");
    ask("/why/Thing/d/a", "Bearer alice-token");
    ask("/status", "Bearer mallory-alice-token");
    ask("/nothing", "Bearer alice-token");
    at.api = REFUSES;
    assert_lacks(ask("/status", "Bearer other-alice-token"), "alice-token");
    assert_lacks(read_log(), "alice-token");
}

static void test_reviews_have_a_bound_of_questions_under_way(void **state)
{
    struct asking all[ML_INSPECT_UNDER_WAY_MAX];
    (void)state;
    at.api = SILENT;
    for (size_t i = 0; i < ML_COUNT(all); i++)
        begin(&all[i], "/status", "Bearer alice-token");
    until(at.held_count == ML_COUNT(all));
    const char *answer = ask("/status", "Bearer bob-token");
    assert_status(answer, 503);
    assert_has(answer, "too many questions are under way");
    for (size_t i = 0; i < ML_COUNT(all); i++)
        asking_fini(&all[i]); /* the clients leave */
    until(at.held[0]->canceled && at.held[15]->canceled);
    at.api = ANSWERS;
    assert_status(ask("/status", "Bearer bob-token"), 200);
}

static void test_reviews_end_with_the_port(void **state)
{
    struct asking asking;
    (void)state;
    at.api = SILENT;
    begin(&asking, "/status", "Bearer alice-token");
    until(at.held_count == 1);
    ml_inspect_server_free(ml_take(&at.reviews));
    assert_true(at.held[0]->canceled);
    asking_fini(&asking);
}

static void test_reviews_answer_nonsense(void **state)
{
    static const struct {
        const char *path;
        int status;
    } cases[] = {
        {"/", 404},
        {"/statusx", 404},
        {"/status/x", 404},
        {"/why", 404},
        {"/why/", 400},
        {"/why/Thing", 400},
        {"/why/Thing/", 400},
        {"/why/Thing/d/a/b", 400},
        {"/why/Thing/..", 400},
        {"/why/Thing/d%2Fa", 200},
        {"/why/Thing/d%00a", 400},
        {"/why/Node/a", 404},
        {"/why/Thing/d/absent", 200},
        {"/trace/x", 400},
        {"/trace/99999999999999999999999", 400},
        {"/trace/18446744073709551615", 200},
    };
    (void)state;
    run_one();
    for (size_t i = 0; i < ML_COUNT(cases); i++)
        assert_status(ask(cases[i].path, "Bearer bob-token"), cases[i].status);
    assert_has(ask("/why/Node/a", "Bearer bob-token"), "no script of this host has the kind Node");
    struct asking asking;
    asking_init(&asking);
    send_all(&asking, "POST /status HTTP/1.0\r\nAuthorization: Bearer bob-token\r\n\r\n");
    until(has_answer(&asking));
    assert_has(ml_buf_cstr(&asking.got), " 405 ");
    asking_fini(&asking);
}

static void test_reviews_come_at_loopback_alone(void **state)
{
    static const char *const wrong[] = {":8082", "0.0.0.0:8082", "10.1.2.3:8082", "[::]:8082",
                                        "example.com:8082"};
    (void)state;
    ml_inspect_server_free(ml_take(&at.reviews));
    for (size_t i = 0; i < ML_COUNT(wrong); i++) {
        struct ml_err err = ML_ERR_INIT;
        assert_int_equal(ML_EINVALID, open_at(wrong[i], &err));
        assert_has(err.message, "expected an address of loopback");
    }
}

#define PORT_TEST(name) cmocka_unit_test_setup_teardown(name, set_up_port, tear_down_port)

int main(void)
{
    const struct CMUnitTest tests[] = {
        PORT_TEST(test_reviews_refuse_who_shows_no_token),
        PORT_TEST(test_reviews_refuse_a_token_that_is_too_long),
        PORT_TEST(test_reviews_refuse_a_token_that_the_api_server_does_not_know),
        PORT_TEST(test_reviews_say_whom_and_what_they_ask_about),
        PORT_TEST(test_reviews_refuse_an_object_that_the_asker_may_not_get),
        PORT_TEST(test_reviews_leave_out_what_the_asker_may_not_list),
        PORT_TEST(test_reviews_show_the_entries_of_the_namespaces_that_the_asker_may_list),
        PORT_TEST(test_reviews_show_a_write_to_those_who_may_list_both_kinds),
        PORT_TEST(test_top_shows_the_objects_that_the_asker_may_list),
        PORT_TEST(test_a_field_is_told_after_the_object_was_read),
        PORT_TEST(test_an_object_that_is_not_shown_ends_the_question),
        PORT_TEST(test_reviews_are_used_for_ten_seconds),
        PORT_TEST(test_reviews_of_many_tokens_make_room),
        PORT_TEST(test_reviews_that_do_not_come_end_the_question_alone),
        PORT_TEST(test_reviews_that_the_host_may_not_ask_for_are_named),
        PORT_TEST(test_reviews_write_no_token_into_the_log),
        PORT_TEST(test_reviews_have_a_bound_of_questions_under_way),
        PORT_TEST(test_reviews_end_with_the_port),
        PORT_TEST(test_reviews_answer_nonsense),
        PORT_TEST(test_reviews_come_at_loopback_alone),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
