/* Calls: from ml_http_send over the head and the pieces to done(). libcurl's handles may only be
 * added and removed while libcurl is not on the stack, so both happen in a task. */
#include "net/http_client.h"

#include <pthread.h>
#include <strings.h>
#include <sys/socket.h>

#include "base/wipe.h"
#include "net/http_curl.h"
#include "net/http_pool.h"

/* ---- the head of an answer ---- */

void ml_http_head_init(struct ml_http_head_parser *parser)
{
    *parser = (struct ml_http_head_parser){.head.retry_after_ms = -1};
}

void ml_http_head_fini(struct ml_http_head_parser *parser)
{
    free(parser->content_type);
    free(parser->warning);
    free((char *)parser->length.ptr);
    ml_http_head_init(parser);
}

/* "HTTP/1.1 200 OK", "HTTP/2 200". */
static int parse_status_line(struct ml_str line)
{
    int64_t status = 0;
    (void)ml_str_cut(&line, ' ');
    if (!ml_str_to_i64(ml_str_cut(&line, ' '), &status) || status > 999)
        return 0;
    return (int)status;
}

/* client-go reads seconds only; the date form counts as absent there and so it does here. */
static int64_t parse_retry_after(struct ml_str value)
{
    uint64_t seconds = 0;
    if (!ml_str_to_u64(value, &seconds))
        return -1;
    return (int64_t)ML_MIN(seconds, (uint64_t)INT64_MAX / 1000) * 1000;
}

/* libcurl reads the three forms of RFC 9110, 5.6.7, and some more; 0 for others. */
static int64_t parse_date(struct ml_str value)
{
    ML_AUTO_FREE char *text = ml_str_dup(value);
    time_t seconds = curl_getdate(text, NULL);
    return seconds > 0 ? (int64_t)seconds : 0;
}

/* The text in `299 agent "text"`, without the escapes of its quoted form; NULL when it is no
 * such warning. The caller frees it. */
static char *parse_warning(struct ml_str value)
{
    if (!ml_str_is(ml_str_cut(&value, ' '), "299"))
        return NULL;
    (void)ml_str_cut(&value, ' '); /* the agent; API servers write "-" */
    if (value.len == 0 || value.ptr[0] != '"')
        return NULL;
    char *text = ml_alloc(value.len);
    size_t len = 0;
    for (size_t i = 1; i < value.len && value.ptr[i] != '"'; i++) {
        if (value.ptr[i] == '\\' && i + 1 < value.len)
            i++;
        text[len++] = value.ptr[i];
    }
    text[len] = '\0';
    return text;
}

/* RFC 9112, 6.3: a body with two different lengths, or with one that is no number, has none. The
 * same number may stand there more than once. */
static void head_accept_length(struct ml_http_head_parser *parser, struct ml_str value)
{
    uint64_t number = 0;
    for (struct ml_str rest = value; rest.ptr && !parser->bad;) {
        struct ml_str each = ml_str_trim(ml_str_cut(&rest, ','));
        if (!ml_str_to_u64(each, &number))
            parser->bad = "its Content-Length is not a number";
        else if (!parser->length.ptr)
            parser->length = (struct ml_str){ml_str_dup(each), each.len};
        else if (!ml_str_eq(parser->length, each))
            parser->bad = "it has two different values of Content-Length";
    }
}

static bool field_name_is(struct ml_str name, const char *want)
{
    return name.len == strlen(want) && strncasecmp(name.ptr, want, name.len) == 0;
}

static void head_accept_field(struct ml_http_head_parser *parser, struct ml_str name,
                              struct ml_str value)
{
    struct ml_http_head *head = &parser->head;
    if (field_name_is(name, "Retry-After")) {
        head->retry_after_ms = parse_retry_after(value);
    } else if (field_name_is(name, "Date")) {
        head->date_s = parse_date(value);
    } else if (field_name_is(name, "Content-Type")) {
        free(parser->content_type);
        parser->content_type = ml_str_dup(value);
        head->content_type = ml_str_of(parser->content_type);
    } else if (field_name_is(name, "Warning") && !parser->warning) {
        parser->warning = parse_warning(value);
        head->warning = ml_str_of(parser->warning);
    } else if (field_name_is(name, "Content-Length")) {
        head_accept_length(parser, value);
    }
}

static bool head_end(struct ml_http_head_parser *parser)
{
    int status = parser->head.status;
    if (status == 101)
        parser->bad = "status 101 switches to a protocol that was not asked for";
    else if (status < 100)
        parser->bad = "it has no HTTP status";
    parser->complete = status >= 200 || status == 101 || status < 100;
    return parser->complete;
}

bool ml_http_head_line(struct ml_http_head_parser *parser, struct ml_str line)
{
    if (parser->complete)
        return false;
    line = ml_str_trim(line);
    if (line.len == 0)
        return head_end(parser);
    if (ml_str_starts(line, "HTTP/")) {
        ml_http_head_fini(parser);
        parser->head.status = parse_status_line(line);
        return false;
    }
    struct ml_str value = line;
    struct ml_str name = ml_str_cut(&value, ':');
    head_accept_field(parser, ml_str_trim(name), ml_str_trim(value));
    return false;
}

/* ---- calls ---- */

/* libcurl allocates 22 KiB for a handle that has made a request. */
#define SPARE_MAX 32

struct ml_http_client {
    struct ml_loop *loop;
    char *user_agent;
    struct ml_http_pools pools;
    struct ml_list starting; /* calls to hand to libcurl */
    struct ml_list running;
    struct ml_list ending; /* canceled calls, to remove from libcurl */
    struct ml_task work;
    bool in_done;
    CURL *spare[SPARE_MAX]; /* handles that are used again */
    size_t spare_count;
};

enum call_phase {
    CALL_CONNECTING, /* or waiting for a connection */
    CALL_WAITING,    /* for the head */
    CALL_READING,
    CALL_CANCELED,
    CALL_DONE,
};

struct ml_http_call {
    struct ml_list node;
    struct ml_http_client *client;
    struct ml_http_pool *pool;
    CURL *easy;
    bool added; /* to the pool's multi handle */
    enum call_phase phase;
    struct ml_http_handler handler;
    void *context;
    int (*may_send)(void *context, struct ml_err *err);
    int (*open_socket)(void *context, const struct sockaddr *address);
    int (*may_connect)(void *context, const struct sockaddr *address, struct ml_err *err);
    struct ml_err *refused; /* by may_connect: why the last address was; NULL: none was */
    void (*field)(void *context, struct ml_str name, struct ml_str value);
    bool writes;
    char *url;
    struct ml_http_options options;
    struct ml_http_head_parser head;
    struct ml_http_deadlines deadlines;
    int64_t total_due; /* monotonic ns; INT64_MAX: none */
    struct ml_timer timer;
    bool unclean;          /* its connection had bytes that nobody asked for: it gets another one */
    bool paused;           /* by its owner */
    bool held;             /* by libcurl, which keeps a piece */
    struct ml_task resume; /* lets libcurl go on */
    struct ml_err *err;    /* the reason to end the call, if it is ours and not that of libcurl */
    char detail[CURL_ERROR_SIZE];
};

static CURL *client_get_easy(struct ml_http_client *client)
{
    if (client->spare_count > 0)
        return client->spare[--client->spare_count];
    CURL *easy = curl_easy_init();
    ml_assert(easy != NULL);
    return easy;
}

static void client_keep_easy(struct ml_http_client *client, CURL *easy)
{
    if (client->spare_count == SPARE_MAX) {
        curl_easy_cleanup(easy);
        return;
    }
    curl_easy_reset(easy);
    client->spare[client->spare_count++] = easy;
}

static void call_free(struct ml_http_call *call)
{
    if (call->added)
        curl_multi_remove_handle(call->pool->multi, call->easy);
    client_keep_easy(call->client, call->easy);
    ml_http_options_fini(&call->options);
    ml_http_pool_put(call->pool);
    ml_timer_stop(&call->timer);
    ml_task_cancel(&call->resume);
    ml_list_remove(&call->node);
    ml_http_head_fini(&call->head);
    free(call->url);
    free(call->err);
    free(call->refused);
    free(call);
}

static void call_finish(struct ml_http_call *call, const struct ml_err *err)
{
    /* Its handle goes first: the connection is free for what done() starts. */
    if (call->added)
        curl_multi_remove_handle(call->pool->multi, call->easy);
    call->added = false;
    call->phase = CALL_DONE;
    ml_timer_stop(&call->timer);
    call->client->in_done = true;
    call->handler.done(call->context, err);
    call->client->in_done = false;
    call_free(call);
}

static struct ml_err *call_err(struct ml_http_call *call)
{
    if (!call->err)
        call->err = ml_new(struct ml_err);
    *call->err = ML_ERR_INIT;
    return call->err;
}

/* The deadline of the phase the call is in, in milliseconds; 0: none. */
static int64_t phase_limit_ms(const struct ml_http_call *call)
{
    switch (call->phase) {
    case CALL_CONNECTING:
        return call->deadlines.connect_ms;
    case CALL_WAITING:
        return call->deadlines.first_byte_ms;
    case CALL_READING:
        return call->paused ? 0 : call->deadlines.idle_ms;
    case CALL_CANCELED:
    case CALL_DONE:
        return 0;
    }
    ML_UNREACHABLE();
}

/* Starts the phase's deadline anew, never past the one for the whole call. */
static void call_arm(struct ml_http_call *call)
{
    int64_t limit_ms = phase_limit_ms(call);
    int64_t delay_ns = INT64_MAX;
    if (limit_ms > 0)
        delay_ns = limit_ms * ML_NS_PER_MS;
    if (call->total_due != INT64_MAX) {
        int64_t now = ml_clock_monotonic(ml_loop_clock(call->client->loop));
        delay_ns = ML_MIN(delay_ns, call->total_due - now);
    }
    if (delay_ns != INT64_MAX)
        ml_timer_start(&call->timer, delay_ns);
    else
        ml_timer_stop(&call->timer);
}

static void call_enter(struct ml_http_call *call, enum call_phase phase)
{
    call->phase = phase;
    call_arm(call);
}

/* Whom the call talks to, for messages: a proxy until it answers 2xx to a CONNECT, then the server.
 * For SOCKS, libcurl does not say how far it got. */
static char *call_peer(const struct ml_http_call *call)
{
    long answer = 0;
    const char *proxy = call->options.proxy;
    curl_easy_getinfo(call->easy, CURLINFO_HTTP_CONNECTCODE, &answer);
    if (!proxy || call->phase != CALL_CONNECTING || answer / 100 == 2)
        return ml_http_url_peer(call->url);
    ML_AUTO_FREE char *at_proxy = ml_http_proxy_peer(proxy);
    if (strncasecmp(proxy, "http", 4) == 0)
        return ml_take(&at_proxy);
    ML_AUTO_FREE char *server = ml_http_url_peer(call->url);
    return ml_asprintf("%s through %s", server, at_proxy);
}

/* Says which deadline passed, and who did not answer. */
static void call_set_timeout(struct ml_http_call *call, struct ml_err *err)
{
    ML_AUTO_FREE char *peer = call_peer(call);
    double limit_s = (double)phase_limit_ms(call) / 1000;
    int64_t now = ml_clock_monotonic(ml_loop_clock(call->client->loop));
    if (now >= call->total_due)
        ml_err_set(err, ML_ETIMEOUT, "request to %s: not done within %g s", peer,
                   (double)call->deadlines.total_ms / 1000);
    else if (call->phase == CALL_CONNECTING)
        ml_err_set(err, ML_ETIMEOUT, "connect to %s: no connection within %g s", peer, limit_s);
    else if (call->phase == CALL_WAITING)
        ml_err_set(err, ML_ETIMEOUT, "no answer from %s within %g s", peer, limit_s);
    else
        ml_err_set(err, ML_ETIMEOUT, "answer of %s stalled: no byte for %g s", peer, limit_s);
}

static void on_call_deadline(void *context)
{
    struct ml_http_call *call = context;
    call_set_timeout(call, call_err(call));
    /* The connection may be dead, and so may all others to this server: the next request must not
     * find out about each of them. */
    curl_easy_setopt(call->easy, CURLOPT_FORBID_REUSE, 1L);
    if (call->phase != CALL_CONNECTING)
        ml_http_pool_leave_connections(call->pool);
    call_finish(call, call->err);
}

/* libcurl repeats any request when a kept connection breaks, because the connection may have died
 * of age. But it may have broken after the server got the request, and then a write has been done.
 */
static int call_refuse_resend(struct ml_http_call *call)
{
    ML_AUTO_FREE char *peer = ml_http_url_peer(call->url);
    return ml_err_set(call_err(call), ML_ENETWORK,
                      "connection to %s broke before the answer; a write is not sent again", peer);
}

/* libcurl has a connection and is about to send. */
static int on_call_connected(void *context, char *peer_ip, char *local_ip, int peer_port,
                             int local_port)
{
    struct ml_http_call *call = context;
    struct ml_err err = ML_ERR_INIT;
    (void)peer_ip, (void)local_ip, (void)peer_port;
    if (call->phase == CALL_CANCELED)
        return CURL_PREREQFUNC_ABORT;
    if (call->phase != CALL_CONNECTING && call->writes && call_refuse_resend(call) < 0)
        return CURL_PREREQFUNC_ABORT;
    call->unclean = ml_http_pool_connection_is_unclean(call->pool, call->easy, local_port);
    if (call->unclean)
        return CURL_PREREQFUNC_ABORT;
    if (call->may_send && call->may_send(call->context, &err) < 0) {
        *call_err(call) = err;
        return CURL_PREREQFUNC_ABORT;
    }
    if (call->phase == CALL_CONNECTING)
        call_enter(call, CALL_WAITING);
    return CURL_PREREQFUNC_OK;
}

/* Of an interim answer (1xx) nothing is passed on. */
static void call_pass_field(struct ml_http_call *call, struct ml_str line)
{
    line = ml_str_trim(line);
    if (!call->field || call->head.complete || call->head.head.status < 200 || line.len == 0 ||
        ml_str_starts(line, "HTTP/"))
        return;
    struct ml_str value = line;
    struct ml_str name = ml_str_cut(&value, ':');
    call->field(call->context, ml_str_trim(name), ml_str_trim(value));
}

static int call_refuse_answer(struct ml_http_call *call)
{
    ML_AUTO_FREE char *peer = ml_http_url_peer(call->url);
    return ml_err_set(call_err(call), ML_ENETWORK, "the answer of %s is not valid HTTP: %s", peer,
                      call->head.bad);
}

static size_t on_head_line(char *bytes, size_t one, size_t len, void *context)
{
    struct ml_http_call *call = context;
    (void)one;
    if (call->phase == CALL_CANCELED)
        return CURL_WRITEFUNC_ERROR;
    call_pass_field(call, (struct ml_str){bytes, len});
    if (!ml_http_head_line(&call->head, (struct ml_str){bytes, len}))
        return len;
    if (call->head.bad && call_refuse_answer(call) < 0)
        return CURL_WRITEFUNC_ERROR;
    call_enter(call, CALL_READING);
    ml_http_options_forget(&call->options);
    call->handler.head(call->context, &call->head.head);
    return call->phase == CALL_CANCELED ? CURL_WRITEFUNC_ERROR : len;
}

static size_t on_body_piece(char *bytes, size_t one, size_t len, void *context)
{
    struct ml_http_call *call = context;
    struct ml_err err = ML_ERR_INIT;
    (void)one;
    if (call->phase == CALL_CANCELED)
        return CURL_WRITEFUNC_ERROR;
    call->held = call->paused;
    if (call->held)
        return CURL_WRITEFUNC_PAUSE;
    call_arm(call);
    if (len == 0)
        return 0;
    int r = call->handler.data(call->context, (struct ml_str){bytes, len}, &err);
    if (r == 0)
        return call->phase == CALL_CANCELED ? CURL_WRITEFUNC_ERROR : len;
    *call_err(call) = err;
    return CURL_WRITEFUNC_ERROR;
}

static void call_set_failure(struct ml_http_call *call, CURLcode code, struct ml_err *err)
{
    ML_AUTO_FREE char *peer = call_peer(call);
    struct ml_http_failure failure = {
        .code = code, .url = call->url, .peer = peer, .detail = call->detail};
    curl_easy_getinfo(call->easy, CURLINFO_OS_ERRNO, &failure.os_errno);
    bool connecting = call->phase == CALL_CONNECTING && call->deadlines.connect_ms > 0;
    if (call->refused && call->phase == CALL_CONNECTING) {
        *err = *call->refused;
        return;
    }
    if (code == CURLE_OPERATION_TIMEDOUT && connecting)
        call_set_timeout(call, err); /* libcurl was a moment ahead of our timer */
    else
        ml_http_error_set(err, &failure);
}

/* Nothing of the request has been sent. libcurl has closed the connection. */
static void call_connect_anew(struct ml_http_call *call)
{
    call->unclean = false;
    curl_multi_remove_handle(call->pool->multi, call->easy);
    curl_easy_setopt(call->easy, CURLOPT_FRESH_CONNECT, 1L);
    CURLMcode code = curl_multi_add_handle(call->pool->multi, call->easy);
    ml_assert(code == CURLM_OK);
}

static void on_transfer_ended(CURL *easy, CURLcode code)
{
    struct ml_http_call *call = NULL;
    curl_easy_getinfo(easy, CURLINFO_PRIVATE, &call);
    if (call->phase == CALL_CANCELED) {
        call_free(call);
        return;
    }
    if (call->unclean) {
        call_connect_anew(call);
        return;
    }
    if (code != CURLE_OK && !call->err)
        call_set_failure(call, code, call_err(call));
    call_finish(call, call->err);
}

static void on_call_resumed(void *context)
{
    struct ml_http_call *call = context;
    call->held = false;
    CURLcode code = ml_http_pool_unpause(call->pool, call->easy);
    if (code == CURLE_OK || call->phase == CALL_CANCELED)
        return;
    if (!call->err)
        call_set_failure(call, code, call_err(call));
    call_finish(call, call->err);
}

static void call_start(struct ml_http_call *call)
{
    if (call->err) {
        call_finish(call, call->err);
        return;
    }
    ml_list_push(&call->client->running, &call->node);
    call->added = true;
    CURLMcode code = curl_multi_add_handle(call->pool->multi, call->easy);
    ml_assert(code == CURLM_OK);
}

static void on_client_task(void *context)
{
    struct ml_http_client *client = context;
    struct ml_list *node;
    while ((node = ml_list_shift(&client->ending)))
        call_free(ml_container_of(node, struct ml_http_call, node));
    /* A request that the done() of a failed call sends waits for a task of its own. */
    struct ml_list *last = client->starting.prev;
    while ((node = ml_list_shift(&client->starting))) {
        call_start(ml_container_of(node, struct ml_http_call, node));
        if (node == last)
            break;
    }
}

/* libcurl's buffers and copies of headers have tokens in them: they are wiped. */
static void curl_init_once(void)
{
    CURLcode code = curl_global_init_mem(CURL_GLOBAL_DEFAULT, malloc, ml_wiping_free,
                                         ml_wiping_realloc, strdup, calloc);
    ml_assert(code == CURLE_OK);
}

struct ml_http_client *ml_http_client_new(struct ml_loop *loop, const char *user_agent)
{
    /* libcurl's tables, set up once a process and left to its end. */
    static pthread_once_t once = PTHREAD_ONCE_INIT;
    pthread_once(&once, curl_init_once);
    struct ml_http_client *client = ml_new(struct ml_http_client);
    client->loop = loop;
    client->user_agent = ml_strdup(user_agent);
    ml_http_pools_init(&client->pools, loop, on_transfer_ended);
    ml_list_init(&client->starting);
    ml_list_init(&client->running);
    ml_list_init(&client->ending);
    ml_task_init(&client->work, on_client_task, client);
    return client;
}

static void free_calls(struct ml_list *list)
{
    for (struct ml_list *node; (node = ml_list_shift(list));)
        call_free(ml_container_of(node, struct ml_http_call, node));
}

void ml_http_client_free(struct ml_http_client *client)
{
    if (!client)
        return;
    ml_assert(!client->in_done && !client->pools.inside);
    free_calls(&client->starting);
    free_calls(&client->running);
    free_calls(&client->ending);
    ml_task_cancel(&client->work);
    while (client->spare_count > 0)
        curl_easy_cleanup(client->spare[--client->spare_count]);
    ml_http_pools_fini(&client->pools);
    free(client->user_agent);
    free(client);
}

/* libcurl opens a socket for an address of the server. */
static curl_socket_t on_socket_wanted(void *context, curlsocktype purpose,
                                      struct curl_sockaddr *address)
{
    struct ml_http_call *call = context;
    struct ml_err err = ML_ERR_INIT;
    (void)purpose; /* there is only one: to connect */
    if (call->may_connect && !call->options.proxy &&
        call->may_connect(call->context, &address->addr, &err) < 0) {
        call->refused = call->refused ? call->refused : ml_new(struct ml_err);
        *call->refused = err;
        return CURL_SOCKET_BAD;
    }
    int fd = call->open_socket
                 ? call->open_socket(call->context, &address->addr)
                 : socket(address->family, address->socktype | SOCK_CLOEXEC, address->protocol);
    return fd >= 0 ? fd : CURL_SOCKET_BAD;
}

static void call_set_callbacks(struct ml_http_call *call)
{
    CURL *easy = call->easy;
    if (call->open_socket || call->may_connect) {
        curl_easy_setopt(easy, CURLOPT_OPENSOCKETFUNCTION, on_socket_wanted);
        curl_easy_setopt(easy, CURLOPT_OPENSOCKETDATA, call);
    }
    ml_http_pool_follow_sockets(call->pool, easy);
    curl_easy_setopt(easy, CURLOPT_PRIVATE, call);
    curl_easy_setopt(easy, CURLOPT_ERRORBUFFER, call->detail);
    curl_easy_setopt(easy, CURLOPT_USERAGENT, call->client->user_agent);
    curl_easy_setopt(easy, CURLOPT_PREREQFUNCTION, on_call_connected);
    curl_easy_setopt(easy, CURLOPT_PREREQDATA, call);
    curl_easy_setopt(easy, CURLOPT_HEADERFUNCTION, on_head_line);
    curl_easy_setopt(easy, CURLOPT_HEADERDATA, call);
    curl_easy_setopt(easy, CURLOPT_WRITEFUNCTION, on_body_piece);
    curl_easy_setopt(easy, CURLOPT_WRITEDATA, call);
}

struct ml_http_call *ml_http_send(struct ml_http_client *client,
                                  const struct ml_http_request *request,
                                  const struct ml_http_handler *handler, void *context)
{
    struct ml_http_call *call = ml_new(struct ml_http_call);
    struct ml_err err = ML_ERR_INIT;
    call->client = client;
    call->handler = *handler;
    call->context = context;
    call->may_send = request->may_send;
    call->open_socket = request->open_socket;
    call->may_connect = request->may_connect;
    call->field = request->field;
    call->writes = strcmp(request->method, "GET") != 0 && strcmp(request->method, "HEAD") != 0;
    call->url = ml_strdup(request->url);
    call->deadlines = request->deadlines;
    call->total_due = INT64_MAX;
    if (request->deadlines.total_ms > 0)
        call->total_due = ml_clock_monotonic(ml_loop_clock(client->loop)) +
                          request->deadlines.total_ms * ML_NS_PER_MS;
    ml_timer_init(&call->timer, client->loop, on_call_deadline, call);
    ml_task_init(&call->resume, on_call_resumed, call);
    ml_http_head_init(&call->head);
    call->pool = ml_http_pool_get(&client->pools, request->tls, request->streaming);
    call->easy = client_get_easy(client);
    call_set_callbacks(call);
    if (ml_http_options_apply(&call->options, call->easy, request, &call->pool->tls,
                              &call->pool->route, &err) < 0)
        *call_err(call) = err;
    call_enter(call, CALL_CONNECTING);
    ml_list_push(&client->starting, &call->node);
    ml_task_defer(&client->work, client->loop);
    return call;
}

void ml_http_cancel(struct ml_http_call *call)
{
    if (!call || call->phase == CALL_CANCELED || call->phase == CALL_DONE)
        return;
    ml_timer_stop(&call->timer);
    ml_task_cancel(&call->resume);
    call->phase = CALL_CANCELED;
    ml_list_remove(&call->node);
    ml_list_push(&call->client->ending, &call->node);
    ml_task_defer(&call->client->work, call->client->loop);
}

void ml_http_call_pause(struct ml_http_call *call, bool paused)
{
    if (call->paused == paused || call->phase == CALL_CANCELED || call->phase == CALL_DONE)
        return;
    call->paused = paused;
    if (call->phase == CALL_READING)
        call_arm(call);
    if (paused)
        ml_task_cancel(&call->resume);
    else if (call->held)
        ml_task_defer(&call->resume, call->client->loop);
}
