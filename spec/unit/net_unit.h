/* For tests of the net layer: the real loop with a bound, a client, and an answer that keeps
 * what its callbacks were told. */
#pragma once

#include <stdio.h>

#include "unit.h"

#include "base/buf.h"
#include "net/http_client.h"

#define NET_BOUND_NS (20 * ML_NS_PER_S) /* far beyond what any of it takes */

struct net {
    struct ml_loop *loop;
    struct ml_http_client *client;
    struct ml_timer bound;
};

static inline void net_bound_fired(void *context)
{
    (void)context;
    fail_msg("the event that the test waits for did not come");
}

static inline void net_init(struct net *net)
{
    static const char *const proxies[] = {"http_proxy", "https_proxy", "HTTPS_PROXY", "all_proxy",
                                          "ALL_PROXY"};
    for (size_t i = 0; i < ML_COUNT(proxies); i++)
        unsetenv(proxies[i]);
    net->loop = ml_loop_new(ml_clock_real());
    net->client = ml_http_client_new(net->loop, "unit/1.0");
    ml_timer_init(&net->bound, net->loop, net_bound_fired, net);
}

static inline void net_fini(struct net *net)
{
    ml_http_client_free(net->client);
    ml_loop_free(net->loop);
}

/* Serves the loop until somebody stops it. */
static inline void net_run(struct net *net)
{
    ml_timer_start(&net->bound, NET_BOUND_NS);
    ml_loop_run(net->loop);
    ml_timer_stop(&net->bound);
}

static inline void net_stop(void *context)
{
    struct net *net = context;
    ml_loop_stop(net->loop);
}

/* Serves the loop for a while: what must not happen would have happened by then. */
static inline void net_settle(struct net *net, int64_t ms)
{
    struct ml_timer timer;
    ml_timer_init(&timer, net->loop, net_stop, net);
    ml_timer_start(&timer, ms * ML_NS_PER_MS);
    net_run(net);
    ml_timer_stop(&timer); /* something else may have stopped the loop */
}

struct answer {
    struct net *net;
    struct ml_http_call *call;
    int heads;
    int pieces;
    int dones;
    int *waiting; /* calls still open; the last one stops the loop. NULL: stop at once */
    int status;
    int64_t retry_after_ms;
    char content_type[64];
    char warning[128];
    struct ml_buf body;
    struct ml_err err; /* kind 0 when it ended well */
    enum { ANSWER_TAKE, ANSWER_CANCEL_IN_HEAD, ANSWER_CANCEL_IN_DATA, ANSWER_REFUSE_DATA } act;
};

static inline void answer_head(void *context, const struct ml_http_head *head)
{
    struct answer *answer = context;
    answer->heads++;
    answer->status = head->status;
    answer->retry_after_ms = head->retry_after_ms;
    snprintf(answer->content_type, sizeof answer->content_type, ML_STR_FMT,
             ML_STR_ARG(head->content_type));
    snprintf(answer->warning, sizeof answer->warning, ML_STR_FMT, ML_STR_ARG(head->warning));
    if (answer->act == ANSWER_CANCEL_IN_HEAD)
        ml_http_cancel(answer->call);
}

static inline int answer_data(void *context, struct ml_str piece, struct ml_err *err)
{
    struct answer *answer = context;
    answer->pieces++;
    ml_buf_append_str(&answer->body, piece);
    if (answer->act == ANSWER_CANCEL_IN_DATA)
        ml_http_cancel(answer->call);
    if (answer->act == ANSWER_REFUSE_DATA)
        return ml_err_set(err, ML_ELIMIT, "too much");
    return 0;
}

static inline void answer_done(void *context, const struct ml_err *err)
{
    struct answer *answer = context;
    answer->dones++;
    if (err)
        answer->err = *err;
    if (!answer->waiting || --*answer->waiting == 0)
        ml_loop_stop(answer->net->loop);
}

static const struct ml_http_handler answer_handler = {answer_head, answer_data, answer_done};

static inline void answer_send(struct answer *answer, const struct ml_http_request *request)
{
    answer->call = ml_http_send(answer->net->client, request, &answer_handler, answer);
}

/* Sends and waits for the end. The caller ends `answer->body`. */
static inline void answer_get(struct answer *answer, struct net *net,
                              const struct ml_http_request *request)
{
    *answer = (struct answer){.net = net};
    answer_send(answer, request);
    net_run(net);
    assert_int_equal(answer->dones, 1);
}

static inline int net_setup(void **state)
{
    struct net *net = ml_new(struct net);
    net_init(net);
    *state = net;
    return 0;
}

static inline int net_teardown(void **state)
{
    struct net *net = *state;
    net_fini(net);
    free(net);
    return 0;
}

/* Of a server on this port; valid until the next call. */
static inline const char *local_url(int port)
{
    static char url[64];
    snprintf(url, sizeof url, "http://127.0.0.1:%d/api/v1?watch=1", port);
    return url;
}

static inline void assert_has(const char *text, const char *part)
{
    if (!strstr(text, part))
        fail_msg("\"%s\" is not in \"%s\"", part, text);
}
