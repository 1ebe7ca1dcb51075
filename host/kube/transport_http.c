#include "kube/transport_http.h"

#include <stdio.h>
#include <string.h>

#define HEADERS_MAX 3

struct transport_http {
    struct ml_transport seam;
    struct ml_http_client *client;
    struct ml_kubeconfig *config;
    char *host;
};

struct ml_transport_call {
    struct transport_http *transport;
    struct ml_http_call *sent;
    struct ml_http_handler handler;
    int (*may_send)(void *context, struct ml_err *err);
    void *context;
};

/* The three pass on; each may be the end of the call, so nothing of it is touched after. */

static void on_head(void *context, const struct ml_http_head *head)
{
    struct ml_transport_call *call = context;
    if (head->status == 401)
        ml_kubeconfig_refresh(call->transport->config);
    if (call->handler.head)
        call->handler.head(call->context, head);
}

static int on_data(void *context, struct ml_str piece, struct ml_err *err)
{
    struct ml_transport_call *call = context;
    return call->handler.data ? call->handler.data(call->context, piece, err) : 0;
}

static int may_send(void *context, struct ml_err *err)
{
    struct ml_transport_call *call = context;
    return call->may_send(call->context, err);
}

static void on_done(void *context, const struct ml_err *err)
{
    struct ml_transport_call *call = context;
    struct ml_transport_call copy = *call;
    free(call);
    copy.handler.done(copy.context, err);
}

static struct ml_transport_call *http_submit(struct ml_transport *seam,
                                             const struct ml_transport_request *request,
                                             const struct ml_http_handler *handler, void *context)
{
    static const struct ml_http_handler between = {on_head, on_data, on_done};
    struct transport_http *transport = ml_container_of(seam, struct transport_http, seam);
    ML_AUTO_FREE char *url = ml_asprintf("%s%s", ml_kubeconfig_server(transport->config),
                                         request->path);
    const char *authorization = ml_kubeconfig_authorization(transport->config);
    struct ml_http_header headers[HEADERS_MAX];
    size_t count = 0;
    headers[count++] = (struct ml_http_header){"Accept", request->accept ? request->accept
                                                                         : "application/json"};
    if (request->content_type)
        headers[count++] = (struct ml_http_header){"Content-Type", request->content_type};
    if (authorization)
        headers[count++] = (struct ml_http_header){"Authorization", authorization};
    const struct ml_http_request http = {
        .method = request->method,
        .url = url,
        .headers = headers,
        .header_count = count,
        .body = request->body,
        .tls = ml_kubeconfig_tls(transport->config),
        .deadlines = request->deadlines,
        .streaming = request->streaming,
        .may_send = request->may_send ? may_send : NULL,
    };
    struct ml_transport_call *call = ml_new(struct ml_transport_call);
    call->transport = transport;
    call->handler = *handler;
    call->may_send = request->may_send;
    call->context = context;
    call->sent = ml_http_send(transport->client, &http, &between, call);
    return call;
}

static void http_cancel(struct ml_transport *seam, struct ml_transport_call *call)
{
    (void)seam;
    ml_http_cancel(call->sent);
    free(call);
}

static void http_free(struct ml_transport *seam)
{
    struct transport_http *transport = ml_container_of(seam, struct transport_http, seam);
    free(transport->host);
    free(transport);
}

/* "host:port" of a URL. */
static char *host_of(const char *url)
{
    const char *scheme_end = strstr(url, "://");
    const char *host = scheme_end ? scheme_end + 3 : url;
    return ml_strndup(host, strcspn(host, "/"));
}

struct ml_transport *ml_transport_http_new(struct ml_http_client *client,
                                           struct ml_kubeconfig *config)
{
    struct transport_http *transport = ml_new(struct transport_http);
    transport->host = host_of(ml_kubeconfig_server(config));
    transport->seam = (struct ml_transport){http_submit, http_cancel, http_free, transport->host};
    transport->client = client;
    transport->config = config;
    return &transport->seam;
}
