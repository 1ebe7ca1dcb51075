/* The floor of scenarios/lifecycles.sh: what libcurl, nghttp2, OpenSSL and the kernel take for the
 * requests and watches of cnat. It sends what the operator sends, at the same moments, over the
 * same kind of connections, and does nothing else: no JSON is parsed (a few strings are searched in
 * each line), nothing is cached, checked, counted or tried again, and all that libcurl lets one
 * keep between requests is kept. It ends when each At is DONE.
 *
 *   bare_operator SERVER CA_FILE NAMESPACE COUNT      the token is in $TOKEN
 *
 * Started before the Ats are made; they end in their number (load's ats). Prints the seconds of CPU
 * that it took from the first At on. */
#include "base/buf.h"

#include <curl/curl.h>
#include <event2/event.h>
#include <stdio.h>
#include <sys/resource.h>

#define ATS            "/apis/cnat.programming-kubernetes.info/v1alpha1"
#define BUFFER         (16 * 1024L)
#define HANDLES_MAX    256
#define WATCH_LINE_MAX (256 * 1024)

enum step { STEP_NEW, STEP_CREATE, STEP_RUNNING, STEP_WAIT, STEP_DONE, STEP_OVER };

struct at {
    char uid[64];
    char rv[32];
    enum step step; /* what is asked for, or waited for */
    bool pod_ended;
};

/* A handle of libcurl that is used again for one request after the other. */
struct call {
    CURL *easy;
    struct at *at; /* NULL: a watch */
    struct ml_buf answer;
    char body[1024];
};

/* Connections: one pool for requests, which share one, and one for watches, which do not. */
struct pool {
    CURLM *multi;
    struct event *timer;
};

static struct {
    struct event_base *loop;
    struct pool requests, watches;
    struct curl_slist *watch_headers, *create_headers, *patch_headers;
    const char *server, *ca_file, *ns;
    struct call *spare[HANDLES_MAX];
    size_t spare_count;
    struct at *ats;
    size_t count, over;
    bool begun;
    struct rusage began;
} bench;

static void fail(const char *what, const char *why)
{
    fprintf(stderr, "bare_operator: %s: %s\n", what, why);
    exit(1);
}

/* ---- libcurl on libevent ---- */

static void call_ended(struct call *call, CURLcode code);

static void pool_act(struct pool *pool, curl_socket_t fd, int events)
{
    int running, left;
    struct call *call;
    curl_multi_socket_action(pool->multi, fd, events, &running);
    for (CURLMsg *message; (message = curl_multi_info_read(pool->multi, &left));) {
        CURLcode code = message->data.result;
        curl_easy_getinfo(message->easy_handle, CURLINFO_PRIVATE, &call);
        curl_multi_remove_handle(pool->multi, call->easy);
        call_ended(call, code);
    }
}

static void on_socket_event(evutil_socket_t fd, short what, void *pool)
{
    pool_act(pool, fd,
             (what & EV_READ ? CURL_CSELECT_IN : 0) | (what & EV_WRITE ? CURL_CSELECT_OUT : 0));
}

static void on_timer(evutil_socket_t fd, short what, void *pool)
{
    (void)fd, (void)what;
    pool_act(pool, CURL_SOCKET_TIMEOUT, 0);
}

static int on_curl_sets_timer(CURLM *multi, long timeout_ms, void *context)
{
    struct pool *pool = context;
    struct timeval delay = {timeout_ms / 1000, timeout_ms % 1000 * 1000};
    (void)multi;
    if (timeout_ms < 0)
        event_del(pool->timer);
    else
        event_add(pool->timer, &delay);
    return 0;
}

static int on_curl_sets_socket(CURL *easy, curl_socket_t fd, int what, void *context,
                               void *assigned)
{
    struct pool *pool = context;
    struct event *event = assigned;
    (void)easy;
    if (event)
        event_free(event);
    if (what == CURL_POLL_REMOVE)
        return 0;
    short events = EV_PERSIST;
    events |= what & CURL_POLL_IN ? EV_READ : 0;
    events |= what & CURL_POLL_OUT ? EV_WRITE : 0;
    event = event_new(bench.loop, fd, events, on_socket_event, pool);
    curl_multi_assign(pool->multi, fd, event);
    event_add(event, NULL);
    return 0;
}

static void pool_init(struct pool *pool, long pipelining)
{
    pool->multi = curl_multi_init();
    pool->timer = event_new(bench.loop, -1, 0, on_timer, pool);
    curl_multi_setopt(pool->multi, CURLMOPT_SOCKETFUNCTION, on_curl_sets_socket);
    curl_multi_setopt(pool->multi, CURLMOPT_SOCKETDATA, pool);
    curl_multi_setopt(pool->multi, CURLMOPT_TIMERFUNCTION, on_curl_sets_timer);
    curl_multi_setopt(pool->multi, CURLMOPT_TIMERDATA, pool);
    curl_multi_setopt(pool->multi, CURLMOPT_PIPELINING, pipelining);
}

/* ---- requests ---- */

static size_t on_request_data(char *bytes, size_t one, size_t len, void *context)
{
    struct call *call = context;
    (void)one;
    ml_buf_append(&call->answer, bytes, len);
    return len;
}

static struct call *call_new(curl_write_callback on_data)
{
    struct call *call = ml_new(struct call);
    CURL *easy = call->easy = curl_easy_init();
    curl_easy_setopt(easy, CURLOPT_PRIVATE, call);
    curl_easy_setopt(easy, CURLOPT_CAINFO, bench.ca_file);
    curl_easy_setopt(easy, CURLOPT_CAPATH, NULL);
    curl_easy_setopt(easy, CURLOPT_NOSIGNAL, 1L);
    curl_easy_setopt(easy, CURLOPT_HTTP_VERSION, (long)CURL_HTTP_VERSION_2TLS);
    curl_easy_setopt(easy, CURLOPT_PIPEWAIT, 1L);
    curl_easy_setopt(easy, CURLOPT_BUFFERSIZE, BUFFER);
    curl_easy_setopt(easy, CURLOPT_UPLOAD_BUFFERSIZE, BUFFER);
    curl_easy_setopt(easy, CURLOPT_WRITEFUNCTION, on_data);
    curl_easy_setopt(easy, CURLOPT_WRITEDATA, call);
    return call;
}

static struct call *call_take(struct at *at)
{
    struct call *call = bench.spare_count ? bench.spare[--bench.spare_count]
                                          : call_new(on_request_data);
    call->at = at;
    ml_buf_clear(&call->answer);
    return call;
}

static void call_send(struct call *call, const char *method, const char *path, const char *name,
                      struct curl_slist *headers)
{
    char url[512];
    snprintf(url, sizeof url, "%s%s/namespaces/%s/%s?fieldManager=moonloop-cnat", bench.server,
             path, bench.ns, name);
    curl_easy_setopt(call->easy, CURLOPT_URL, url);
    curl_easy_setopt(call->easy, CURLOPT_HTTPHEADER, headers);
    curl_easy_setopt(call->easy, CURLOPT_POSTFIELDSIZE, (long)strlen(call->body));
    curl_easy_setopt(call->easy, CURLOPT_POSTFIELDS, call->body);
    curl_easy_setopt(call->easy, CURLOPT_CUSTOMREQUEST, method);
    curl_multi_add_handle(bench.requests.multi, call->easy);
}

static void at_create_pod(struct at *at, const char *name)
{
    struct call *call = call_take(at);
    snprintf(call->body, sizeof call->body,
             "{\"apiVersion\":\"v1\",\"kind\":\"Pod\",\"metadata\":{\"labels\":{\"app\":\"%s\"},"
             "\"name\":\"%s-pod\",\"namespace\":\"%s\",\"ownerReferences\":[{\"apiVersion\":"
             "\"cnat.programming-kubernetes.info/v1alpha1\",\"kind\":\"At\",\"name\":\"%s\","
             "\"uid\":\"%s\",\"controller\":true,\"blockOwnerDeletion\":true}]},\"spec\":{"
             "\"containers\":[{\"command\":[\"echo\",\"YAY\"],\"image\":\"busybox\",\"name\":"
             "\"busybox\"}],\"restartPolicy\":\"OnFailure\"}}",
             name, name, bench.ns, name, at->uid);
    at->step = STEP_CREATE;
    call_send(call, "POST", "/api/v1", "pods", bench.create_headers);
}

static void at_patch_status(struct at *at, enum step step)
{
    struct call *call = call_take(at);
    char path[64];
    snprintf(path, sizeof path, "ats/at-%05zu/status", (size_t)(at - bench.ats));
    snprintf(call->body, sizeof call->body,
             "{\"metadata\":{\"uid\":\"%s\",\"resourceVersion\":\"%s\"},"
             "\"status\":{\"phase\":\"%s\"}}",
             at->uid, at->rv, step == STEP_DONE ? "DONE" : "RUNNING");
    at->step = step;
    call_send(call, "PATCH", ATS, path, bench.patch_headers);
}

/* Copies the value of the member whose quoted key and opening quote `key` has. */
static void copy_string(struct ml_str json, const char *key, char *out, size_t size)
{
    const char *at = memmem(json.ptr, json.len, key, strlen(key));
    const char *text = at ? at + strlen(key) : NULL;
    const char *end = text ? memchr(text, '"', (size_t)(json.ptr + json.len - text)) : NULL;
    if (!end || (size_t)(end - text) >= size)
        fail(key, "is not in an object");
    memcpy(out, text, (size_t)(end - text));
    out[end - text] = '\0';
}

static void at_over(struct at *at)
{
    struct rusage now;
    at->step = STEP_OVER;
    if (++bench.over < bench.count)
        return;
    getrusage(RUSAGE_SELF, &now);
    double user = (double)(now.ru_utime.tv_sec - bench.began.ru_utime.tv_sec) +
                  (double)(now.ru_utime.tv_usec - bench.began.ru_utime.tv_usec) / 1e6;
    double system = (double)(now.ru_stime.tv_sec - bench.began.ru_stime.tv_sec) +
                    (double)(now.ru_stime.tv_usec - bench.began.ru_stime.tv_usec) / 1e6;
    printf("user\t%.3f\nsystem\t%.3f\ncpu\t%.3f\n", user, system, user + system);
    event_base_loopbreak(bench.loop);
}

static void at_advance(struct at *at)
{
    if (at->step == STEP_CREATE)
        at_patch_status(at, STEP_RUNNING);
    else if (at->step == STEP_DONE)
        at_over(at);
    else if (at->pod_ended)
        at_patch_status(at, STEP_DONE);
    else
        at->step = STEP_WAIT;
}

static void call_ended(struct call *call, CURLcode code)
{
    struct at *at = call->at;
    long status = 0;
    if (code != CURLE_OK)
        fail("a request failed", curl_easy_strerror(code));
    if (!at)
        fail("a watch", "ended");
    curl_easy_getinfo(call->easy, CURLINFO_RESPONSE_CODE, &status);
    if (status / 100 != 2)
        fail("a write was refused", ml_buf_cstr(&call->answer));
    if (at->step == STEP_RUNNING)
        copy_string(ml_buf_str(&call->answer), "\"resourceVersion\":\"", at->rv, sizeof at->rv);
    if (bench.spare_count < HANDLES_MAX)
        bench.spare[bench.spare_count++] = call;
    at_advance(at);
}

/* ---- watches ---- */

static void on_event(struct ml_str line)
{
    char name[128];
    size_t number;
    copy_string(line, "\"name\":\"", name, sizeof name);
    bool is_pod = strstr(name, "-pod") != NULL;
    if (sscanf(name, "at-%zu", &number) != 1 || number >= bench.count)
        fail(name, "is no name of ours");
    struct at *at = &bench.ats[number];
    if (is_pod && memmem(line.ptr, line.len, "\"phase\":\"Succeeded\"", 19)) {
        at->pod_ended = true;
        if (at->step == STEP_WAIT)
            at_advance(at);
    } else if (!is_pod && at->step == STEP_NEW) {
        if (!bench.begun)
            getrusage(RUSAGE_SELF, &bench.began);
        bench.begun = true;
        copy_string(line, "\"uid\":\"", at->uid, sizeof at->uid);
        copy_string(line, "\"resourceVersion\":\"", at->rv, sizeof at->rv);
        at_create_pod(at, name);
    }
}

static size_t on_watch_data(char *bytes, size_t one, size_t len, void *context)
{
    struct call *call = context;
    (void)one;
    ml_buf_append(&call->answer, bytes, len);
    struct ml_str rest = ml_buf_str(&call->answer);
    for (const char *end; (end = memchr(rest.ptr, '\n', rest.len));) {
        on_event((struct ml_str){rest.ptr, (size_t)(end - rest.ptr)});
        rest = (struct ml_str){end + 1, rest.len - (size_t)(end + 1 - rest.ptr)};
    }
    memmove(call->answer.ptr, rest.ptr, rest.len);
    call->answer.len = rest.len;
    return len;
}

static void watch(const char *path, const char *plural)
{
    struct call *call = call_new(on_watch_data);
    char url[512];
    snprintf(url, sizeof url, "%s%s/namespaces/%s/%s?watch=true", bench.server, path, bench.ns,
             plural);
    ml_buf_init(&call->answer, WATCH_LINE_MAX);
    curl_easy_setopt(call->easy, CURLOPT_URL, url);
    curl_easy_setopt(call->easy, CURLOPT_HTTPHEADER, bench.watch_headers);
    curl_multi_add_handle(bench.watches.multi, call->easy);
}

static struct curl_slist *headers_of(const char *content_type)
{
    char *type = ml_asprintf("Content-Type:%s%s", *content_type ? " " : "", content_type);
    char *token = ml_asprintf("Authorization: Bearer %s", getenv("TOKEN"));
    struct curl_slist *list = curl_slist_append(NULL, "Accept: application/json");
    curl_slist_append(list, type);
    curl_slist_append(list, token);
    curl_slist_append(list, "User-Agent: moonloop/bare");
    curl_slist_append(list, "Expect:");
    free(type);
    free(token);
    return list;
}

int main(int argc, char **argv)
{
    if (argc != 5 || !getenv("TOKEN"))
        fail("usage", "TOKEN=... bare_operator SERVER CA_FILE NAMESPACE COUNT");
    bench.server = argv[1];
    bench.ca_file = argv[2];
    bench.ns = argv[3];
    bench.count = strtoul(argv[4], NULL, 10);
    bench.ats = ml_zalloc(bench.count * sizeof *bench.ats);
    curl_global_init(CURL_GLOBAL_DEFAULT);
    bench.loop = event_base_new();
    bench.watch_headers = headers_of("");
    bench.create_headers = headers_of("application/json");
    bench.patch_headers = headers_of("application/merge-patch+json");
    pool_init(&bench.requests, CURLPIPE_MULTIPLEX);
    /* Further requests wait inside libcurl; else it would open more connections in a burst. */
    curl_multi_setopt(bench.requests.multi, CURLMOPT_MAX_HOST_CONNECTIONS, 1L);
    pool_init(&bench.watches, CURLPIPE_NOTHING);
    watch(ATS, "ats");
    watch("/api/v1", "pods");
    event_base_loop(bench.loop, EVLOOP_NO_EXIT_ON_EMPTY);
    return 0;
}
