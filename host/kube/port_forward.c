/* Connections to ports in pods, over WebSockets. */
#include "kube/port_forward.h"

#include "base/wipe.h"
#include "kube/client.h"
#include "net/websocket.h"

#define PROTOCOL      "v4.channel.k8s.io"
#define MESSAGE_MAX   ((size_t)1024 * 1024) /* kubelets send 32 KiB */
#define ERROR_MAX     ((size_t)4 * 1024)
#define CHANNEL_DATA  0
#define CHANNEL_ERROR 1
#define PORT_BYTES    2 /* that each channel begins with */

struct ml_port_forward {
    struct ml_port_forward_opts opts;
    char *path;
    struct ml_port_forward_handler handler;
    void *context;
    struct ml_credentials_wait wait;
    struct ml_websocket *websocket; /* NULL: it waits for credentials, or has ended */
    size_t port_bytes[2];           /* that have come, of each channel */
};

void ml_port_forward_free(struct ml_port_forward *self)
{
    if (!self)
        return;
    ml_credentials_cancel_wait(&self->wait);
    ml_websocket_free(self->websocket);
    free(self->path);
    free(self);
}

static void on_open(void *context)
{
    struct ml_port_forward *self = context;
    self->handler.open(self->context);
}

/* The bytes of a channel behind its port. */
static struct ml_str skip_port(struct ml_port_forward *self, unsigned channel, struct ml_str bytes)
{
    size_t skip = ML_MIN(bytes.len, PORT_BYTES - self->port_bytes[channel]);
    self->port_bytes[channel] += skip;
    return (struct ml_str){bytes.ptr + skip, bytes.len - skip};
}

static int on_message(void *context, struct ml_str message, struct ml_err *err)
{
    struct ml_port_forward *self = context;
    unsigned channel = message.len > 0 ? (unsigned char)message.ptr[0] : CHANNEL_ERROR + 1;
    if (channel > CHANNEL_ERROR)
        return ml_err_set(err, ML_EINVALID, "port-forward: a message of an unknown channel");
    struct ml_str bytes = skip_port(self, channel,
                                    (struct ml_str){message.ptr + 1, message.len - 1});
    if (bytes.len > 0 && channel == CHANNEL_ERROR)
        return ml_err_set(err, ML_ENETWORK, "port %d of pod " ML_STR_FMT ": " ML_STR_FMT,
                          self->opts.port, ML_STR_ARG(self->opts.pod),
                          ML_STR_ARG(ml_str_trim(ml_str_head(bytes, ERROR_MAX))));
    if (bytes.len > 0)
        self->handler.received(self->context, bytes); /* may free it */
    return 0;
}

static void on_refused(void *context, int status, struct ml_str body, struct ml_err *err)
{
    (void)context;
    ml_status_error(body, status, err);
}

static void on_closed(void *context, const struct ml_err *err)
{
    struct ml_port_forward *self = context;
    self->websocket = NULL; /* freed by itself */
    self->handler.closed(self->context, err);
    ml_port_forward_free(self);
}

static void connect_as(struct ml_port_forward *self, const struct ml_identity *identity)
{
    static const struct ml_websocket_handler handler = {on_open, on_message, on_refused, on_closed};
    const char *server = ml_credentials_server(self->opts.credentials);
    ML_AUTO_FREE char *url = ml_asprintf("%s%s", server, self->path);
    size_t count = 0;
    ML_AUTO_FREE struct ml_http_header *headers = ml_alloc((identity->impersonation_count + 1) *
                                                           sizeof *headers);
    if (identity->authorization)
        headers[count++] = (struct ml_http_header){"Authorization", identity->authorization};
    for (size_t i = 0; i < identity->impersonation_count; i++)
        headers[count++] = identity->impersonation[i];
    self->websocket = ml_websocket_open(
        &(struct ml_websocket_opts){.client = self->opts.http,
                                    .loop = self->opts.loop,
                                    .url = url,
                                    .protocol = PROTOCOL,
                                    .headers = headers,
                                    .header_count = count,
                                    .tls = identity->tls,
                                    .patience_ms = self->opts.patience_ms,
                                    .message_bytes_max = MESSAGE_MAX},
        &handler, self);
}

static void on_credentials(void *context, const struct ml_identity *identity,
                           const struct ml_err *err)
{
    if (identity)
        connect_as(context, identity);
    else
        on_closed(context, err);
}

struct ml_port_forward *ml_port_forward_open(const struct ml_port_forward_opts *opts,
                                             const struct ml_port_forward_handler *handler,
                                             void *context)
{
    static const struct ml_kind pods = {"v1", "", "v1", "Pod", "pods", true, true};
    struct ml_port_forward *self = ml_new(struct ml_port_forward);
    struct ml_identity identity;
    ML_AUTO(ml_buf_fini) struct ml_buf path = ML_BUF_INIT;
    ML_AUTO_FREE char *port = ml_asprintf("%d", opts->port);
    ml_kind_path(&pods, opts->ns, opts->pod, ML_STR("portforward"), &path);
    ml_url_query(&path, "ports", ml_str_of(port));
    self->opts = *opts;
    self->path = ml_buf_take(&path);
    self->handler = *handler;
    self->context = context;
    self->wait = (struct ml_credentials_wait){.ready = on_credentials, .context = self};
    if (ml_credentials_get(opts->credentials, &identity, &self->wait))
        connect_as(self, &identity);
    return self;
}

void ml_port_forward_send(struct ml_port_forward *self, struct ml_str bytes)
{
    ML_AUTO(ml_wipe_buf) struct ml_buf message = ML_BUF_INIT;
    ml_buf_reserve(&message, bytes.len + 1);
    ml_buf_putc(&message, CHANNEL_DATA);
    ml_buf_append_str(&message, bytes);
    ml_websocket_send(self->websocket, ml_buf_str(&message));
}
