/* Sends what the client submits through net/http_client, with the credentials of the moment, and
 * once more when the server rejects them and there are others. */
#include "kube/transport.h"

#include "kube/credentials.h"

#include <stdio.h>
#include <string.h>

#define HEADERS_OWN 3 /* Accept, Content-Type, Authorization */

struct transport_http {
    struct ml_transport seam;
    struct ml_http_client *client;
    struct ml_credentials *credentials;
    char *host;
};

struct ml_transport_call {
    struct transport_http *transport;
    struct ml_http_handler handler;
    void *context;
    struct ml_transport_request request;
    struct ml_credentials_wait wait; /* for credentials, until `sent` */
    struct ml_http_call *sent;
    uint64_t generation; /* of the credentials that were sent */
    bool written;        /* a connection took the request, or part of it */
    bool repeated;       /* the request is sent for the second time */
    bool repeat;         /* send it again; the rest of this answer is dropped */
};

static void get_credentials_and_send(struct ml_transport_call *call);

static bool is_worth_repeating(struct ml_transport_call *call, bool in_handshake)
{
    return ml_credentials_rejected(call->transport->credentials, call->generation, in_handshake) &&
           !call->repeated;
}

/* The API server itself answered, and accepted the credentials. */
static bool is_answer_to_known_user(int status)
{
    return status < 500 && status != 401 && status != 407;
}

static void on_transport_head(void *context, const struct ml_http_head *head)
{
    struct ml_transport_call *call = context;
    if (head->status == 401 && is_worth_repeating(call, false)) {
        call->repeat = true;
        return;
    }
    if (is_answer_to_known_user(head->status))
        ml_credentials_accepted(call->transport->credentials, call->generation);
    if (call->handler.head)
        call->handler.head(call->context, head); /* may cancel the call */
}

static int on_transport_data(void *context, struct ml_str piece, struct ml_err *err)
{
    struct ml_transport_call *call = context;
    if (call->repeat || !call->handler.data)
        return 0;
    return call->handler.data(call->context, piece, err);
}

/* A connection is about to write the request. */
static int mark_written_if_allowed(void *context, struct ml_err *err)
{
    struct ml_transport_call *call = context;
    int r = call->request.may_send ? call->request.may_send(call->context, err) : 0;
    call->written = call->written || r == 0;
    return r;
}

static void transport_call_finish(struct ml_transport_call *call, const struct ml_err *err)
{
    struct ml_http_handler handler = call->handler;
    void *user = call->context;
    free(call);
    handler.done(user, err);
}

static void on_transport_done(void *context, const struct ml_err *err)
{
    struct ml_transport_call *call = context;
    call->sent = NULL;
    bool in_handshake = err && err->kind == ML_ETLS && !call->repeat;
    if (in_handshake && is_worth_repeating(call, true))
        call->repeat = !call->written;
    if (!call->repeat) {
        transport_call_finish(call, err);
        return;
    }
    call->repeat = false;
    call->repeated = true;
    get_credentials_and_send(call);
}

static void send_with_identity(struct ml_transport_call *call, const struct ml_identity *identity)
{
    static const struct ml_http_handler between = {on_transport_head, on_transport_data,
                                                   on_transport_done};
    const struct ml_transport_request *request = &call->request;
    const char *server = ml_credentials_server(call->transport->credentials);
    ML_AUTO_FREE char *url = ml_asprintf("%s%s", server, request->path);
    size_t count = 0, count_max = HEADERS_OWN + identity->impersonation_count;
    ML_AUTO_FREE struct ml_http_header *headers = ml_alloc(count_max * sizeof *headers);
    headers[count++] = (struct ml_http_header){"Accept", request->accept ? request->accept
                                                                         : "application/json"};
    if (request->content_type)
        headers[count++] = (struct ml_http_header){"Content-Type", request->content_type};
    if (identity->authorization)
        headers[count++] = (struct ml_http_header){"Authorization", identity->authorization};
    for (size_t i = 0; i < identity->impersonation_count; i++)
        headers[count++] = identity->impersonation[i];
    const struct ml_http_request http = {
        .method = request->method,
        .url = url,
        .headers = headers,
        .header_count = count,
        .body = request->body,
        .tls = identity->tls,
        .deadlines = request->deadlines,
        .streaming = request->streaming,
        .may_send = mark_written_if_allowed,
    };
    call->generation = identity->generation;
    call->sent = ml_http_send(call->transport->client, &http, &between, call);
}

static void on_credentials_ready(void *context, const struct ml_identity *identity,
                                 const struct ml_err *err)
{
    struct ml_transport_call *call = context;
    if (identity)
        send_with_identity(call, identity);
    else
        transport_call_finish(call, err);
}

static void get_credentials_and_send(struct ml_transport_call *call)
{
    struct ml_identity identity;
    call->wait = (struct ml_credentials_wait){.ready = on_credentials_ready, .context = call};
    if (ml_credentials_get(call->transport->credentials, &identity, &call->wait))
        send_with_identity(call, &identity);
}

static struct ml_transport_call *http_submit(struct ml_transport *seam,
                                             const struct ml_transport_request *request,
                                             const struct ml_http_handler *handler, void *context)
{
    struct ml_transport_call *call = ml_new(struct ml_transport_call);
    call->transport = ml_container_of(seam, struct transport_http, seam);
    call->handler = *handler;
    call->context = context;
    call->request = *request;
    get_credentials_and_send(call);
    return call;
}

static void http_cancel(struct ml_transport *seam, struct ml_transport_call *call)
{
    (void)seam;
    ml_credentials_cancel_wait(&call->wait);
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
static char *host_of_url(const char *url)
{
    const char *scheme_end = strstr(url, "://");
    const char *host = scheme_end ? scheme_end + 3 : url;
    return ml_strndup(host, strcspn(host, "/"));
}

struct ml_transport *ml_transport_http_new(struct ml_http_client *client,
                                           struct ml_credentials *credentials)
{
    struct transport_http *transport = ml_new(struct transport_http);
    transport->host = host_of_url(ml_credentials_server(credentials));
    transport->seam = (struct ml_transport){
        .submit = http_submit,
        .cancel = http_cancel,
        .free = http_free,
        .host = transport->host,
    };
    transport->client = client;
    transport->credentials = credentials;
    return &transport->seam;
}
