/* The pools of libcurl's connections: their sockets and timers on the loop, and their end. */
#include "net/http_pool.h"

#include "base/wipe.h"
#include "net/tcp.h"

#include <errno.h>
#include <event2/event.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <openssl/ssl.h>
#include <sys/socket.h>
#include <unistd.h>

/* Below the idle limits of usual load balancers, above the pace of a lease renewal. */
#define POOL_IDLE_NS (90 * ML_NS_PER_S)

static void pool_drain(struct ml_http_pool *pool)
{
    CURLMsg *message;
    int left;
    while ((message = curl_multi_info_read(pool->multi, &left)))
        if (message->msg == CURLMSG_DONE)
            pool->all->ended(message->easy_handle, message->data.result);
}

static void pool_act(struct ml_http_pool *pool, curl_socket_t fd, int events)
{
    int running;
    ml_assert(!pool->all->inside);
    pool->all->inside = true;
    curl_multi_socket_action(pool->multi, fd, events, &running);
    pool->all->inside = false;
    pool->calls++; /* `ended` may put the last call back, and the pool must outlive this function */
    pool_drain(pool);
    ml_http_pool_put(pool);
}

static void on_socket_event(evutil_socket_t fd, short what, void *context)
{
    int events = (what & EV_READ ? CURL_CSELECT_IN : 0) | (what & EV_WRITE ? CURL_CSELECT_OUT : 0);
    pool_act(context, fd, events);
}

static void on_pool_timer(void *context)
{
    pool_act(context, CURL_SOCKET_TIMEOUT, 0);
}

static int on_curl_sets_timer(CURLM *multi, long timeout_ms, void *context)
{
    struct ml_http_pool *pool = context;
    (void)multi;
    if (timeout_ms < 0)
        ml_timer_stop(&pool->timer);
    else
        ml_timer_start(&pool->timer, timeout_ms * ML_NS_PER_MS);
    return 0;
}

/* `assigned` is the libevent event that we gave libcurl to keep with the socket. */
static int on_curl_sets_socket(CURL *easy, curl_socket_t fd, int what, void *context,
                               void *assigned)
{
    struct ml_http_pool *pool = context;
    struct event *event = assigned;
    (void)easy;
    if (event)
        event_del(event);
    if (what == CURL_POLL_REMOVE) {
        if (event)
            event_free(event);
        return 0;
    }
    short events = EV_PERSIST;
    events |= what & CURL_POLL_IN ? EV_READ : 0;
    events |= what & CURL_POLL_OUT ? EV_WRITE : 0;
    struct event_base *base = ml_loop_base(pool->all->loop);
    if (event) {
        event_assign(event, base, fd, events, on_socket_event, pool);
    } else {
        event = event_new(base, fd, events, on_socket_event, pool);
        ml_assert(event != NULL);
        curl_multi_assign(pool->multi, fd, event);
    }
    event_add(event, NULL);
    return 0;
}

/* ---- sockets ---- */

static void pool_forget_socket(struct ml_http_pool *pool, int fd)
{
    for (size_t i = 0; i < pool->socket_count; i++)
        if (pool->sockets[i] == fd)
            pool->sockets[i--] = pool->sockets[--pool->socket_count];
}

static int on_socket_opened(void *context, curl_socket_t fd, curlsocktype purpose)
{
    struct ml_http_pool *pool = context;
    unsigned int timeout_ms = ML_TCP_DEAD_PEER_S * 1000;
    (void)purpose;
    ml_tcp_notice_dead_peer(fd);
    /* No probes are sent while data waits for its acknowledgment. */
    setsockopt(fd, IPPROTO_TCP, TCP_USER_TIMEOUT, &timeout_ms, sizeof timeout_ms);
    pool_forget_socket(pool, fd);
    size_t bytes = (pool->socket_count + 1) * sizeof *pool->sockets;
    pool->sockets = ml_realloc(pool->sockets, bytes);
    pool->sockets[pool->socket_count++] = fd;
    return CURL_SOCKOPT_OK;
}

static int on_socket_unused(void *context, curl_socket_t fd)
{
    pool_forget_socket(context, fd);
    return close(fd);
}

void ml_http_pool_follow_sockets(struct ml_http_pool *pool, CURL *easy)
{
    curl_easy_setopt(easy, CURLOPT_SOCKOPTFUNCTION, on_socket_opened);
    curl_easy_setopt(easy, CURLOPT_SOCKOPTDATA, pool);
    curl_easy_setopt(easy, CURLOPT_CLOSESOCKETFUNCTION, on_socket_unused);
    curl_easy_setopt(easy, CURLOPT_CLOSESOCKETDATA, pool);
}

/* HTTP/2 has frames that come unasked, and each answer says which request it is for. */
static bool connection_multiplexes(CURL *easy)
{
    const struct curl_tlssessioninfo *session = NULL;
    const unsigned char *protocol = NULL;
    unsigned int len = 0;
    curl_easy_getinfo(easy, CURLINFO_TLS_SSL_PTR, &session);
    if (session && session->internals)
        SSL_get0_alpn_selected(session->internals, &protocol, &len);
    return len == 2 && memcmp(protocol, "h2", 2) == 0;
}

static bool socket_has_bytes_or_end(int fd)
{
    char byte;
    return recv(fd, &byte, 1, MSG_PEEK | MSG_DONTWAIT) >= 0 || errno != EAGAIN;
}

/* libcurl says of the connection only which port it has. */
bool ml_http_pool_connection_is_unclean(const struct ml_http_pool *pool, CURL *easy, int local_port)
{
    long connects = 1;
    curl_easy_getinfo(easy, CURLINFO_NUM_CONNECTS, &connects);
    if (connects > 0 || connection_multiplexes(easy))
        return false;
    for (size_t i = 0; i < pool->socket_count; i++)
        if (ml_tcp_local_port(pool->sockets[i]) == local_port &&
            socket_has_bytes_or_end(pool->sockets[i]))
            return true;
    return false;
}

/* ---- pools ---- */

static struct ml_str copy_str(struct ml_str s)
{
    return (struct ml_str){s.len ? ml_str_dup(s) : NULL, s.len};
}

static void pool_copy_tls(struct ml_http_pool *pool, const struct ml_http_tls *tls)
{
    if (!tls)
        return;
    pool->tls = *tls;
    pool->tls.ca_pem = copy_str(tls->ca_pem);
    pool->tls.cert_pem = copy_str(tls->cert_pem);
    pool->tls.key_pem = copy_str(tls->key_pem);
    pool->tls.ca_file = ml_strdup(tls->ca_file);
    pool->tls.server_name = ml_strdup(tls->server_name);
    pool->tls.proxy_url = ml_strdup(tls->proxy_url);
}

static void pool_free(void *context)
{
    struct ml_http_pool *pool = context;
    ml_assert(pool->calls == 0 && !pool->all->inside);
    ml_list_remove(&pool->node);
    curl_multi_cleanup(pool->multi); /* closes connections: still calls on_set_socket */
    ml_timer_stop(&pool->timer);
    ml_timer_stop(&pool->idle);
    free((char *)pool->tls.ca_pem.ptr);
    free((char *)pool->tls.cert_pem.ptr);
    ml_wipe_free((char *)pool->tls.key_pem.ptr);
    free((char *)pool->tls.ca_file);
    free((char *)pool->tls.server_name);
    ml_wipe_free((char *)pool->tls.proxy_url);
    ml_http_route_fini(&pool->route);
    free(pool->sockets);
    free(pool);
}

static struct ml_http_pool *pool_new(struct ml_http_pools *pools, const struct ml_http_tls *tls,
                                     bool streaming)
{
    struct ml_http_pool *pool = ml_new(struct ml_http_pool);
    pool->all = pools;
    pool->key = tls;
    pool->streaming = streaming;
    pool_copy_tls(pool, tls);
    ml_timer_init(&pool->timer, pools->loop, on_pool_timer, pool);
    ml_timer_init(&pool->idle, pools->loop, pool_free, pool);
    pool->multi = curl_multi_init();
    ml_assert(pool->multi != NULL);
    curl_multi_setopt(pool->multi, CURLMOPT_SOCKETFUNCTION, on_curl_sets_socket);
    curl_multi_setopt(pool->multi, CURLMOPT_SOCKETDATA, pool);
    curl_multi_setopt(pool->multi, CURLMOPT_TIMERFUNCTION, on_curl_sets_timer);
    curl_multi_setopt(pool->multi, CURLMOPT_TIMERDATA, pool);
    /* Streams get a connection each. libcurl 7.88 now and then leaves one of several long bodies
     * on one HTTP/2 connection without another byte (seen in one of a hundred starts, with two
     * lists of 16 KiB and more); and one slow reader's window must not hold the others up. */
    long pipelining = streaming ? CURLPIPE_NOTHING : CURLPIPE_MULTIPLEX;
    curl_multi_setopt(pool->multi, CURLMOPT_PIPELINING, pipelining);
    ml_list_push(&pools->list, &pool->node);
    return pool;
}

void ml_http_pools_init(struct ml_http_pools *pools, struct ml_loop *loop,
                        void (*ended)(CURL *easy, CURLcode code))
{
    *pools = (struct ml_http_pools){.loop = loop, .ended = ended};
    ml_list_init(&pools->list);
}

void ml_http_pools_fini(struct ml_http_pools *pools)
{
    ml_list_each (node, &pools->list)
        pool_free(ml_container_of(node, struct ml_http_pool, node));
}

static void pool_retire(struct ml_http_pool *pool)
{
    pool->stale = true;
    if (pool->calls == 0)
        ml_timer_start(&pool->idle, 0);
}

void ml_http_pool_leave_connections(struct ml_http_pool *pool)
{
    ml_list_each (node, &pool->all->list) {
        struct ml_http_pool *other = ml_container_of(node, struct ml_http_pool, node);
        if (other->key == pool->key)
            pool_retire(other);
    }
}

static bool same_text(const char *a, const char *b)
{
    return ml_str_eq(ml_str_of(a), ml_str_of(b));
}

/* Besides the generation the contents count: another identity may have been put where a
 * freed one was, and must not get its connections. */
static bool pool_is_of(const struct ml_http_pool *pool, const struct ml_http_tls *tls)
{
    const struct ml_http_tls *own = &pool->tls;
    return !tls ||
           (own->generation == tls->generation && own->insecure == tls->insecure &&
            ml_str_eq(own->ca_pem, tls->ca_pem) && ml_str_eq(own->cert_pem, tls->cert_pem) &&
            ml_str_eq(own->key_pem, tls->key_pem) && same_text(own->ca_file, tls->ca_file) &&
            same_text(own->server_name, tls->server_name) &&
            same_text(own->proxy_url, tls->proxy_url));
}

struct ml_http_pool *ml_http_pool_get(struct ml_http_pools *pools, const struct ml_http_tls *tls,
                                      bool streaming)
{
    struct ml_http_pool *found = NULL;
    ml_list_each (node, &pools->list) {
        struct ml_http_pool *pool = ml_container_of(node, struct ml_http_pool, node);
        if (pool->stale || pool->key != tls)
            continue;
        if (!pool_is_of(pool, tls))
            pool_retire(pool);
        else if (pool->streaming == streaming)
            found = pool;
    }
    if (!found)
        found = pool_new(pools, tls, streaming);
    found->calls++;
    ml_timer_stop(&found->idle);
    return found;
}

void ml_http_pool_put(struct ml_http_pool *pool)
{
    ml_assert(pool->calls > 0);
    if (--pool->calls == 0)
        ml_timer_start(&pool->idle, pool->stale ? 0 : POOL_IDLE_NS);
}

CURLcode ml_http_pool_unpause(struct ml_http_pool *pool, CURL *easy)
{
    ml_assert(!pool->all->inside);
    pool->all->inside = true;
    CURLcode code = curl_easy_pause(easy, CURLPAUSE_CONT);
    pool->all->inside = false;
    return code;
}
