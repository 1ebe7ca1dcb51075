#include "kube/client_internal.h"

#define IN_FLIGHT_DEFAULT 100

static void on_pause_over(void *context)
{
    struct ml_client *client = context;
    ml_client_release_held(client);
    ml_client_pump(client);
}

struct ml_client *ml_client_new(const struct ml_client_opts *opts)
{
    struct ml_client *client = ml_new(struct ml_client);
    client->loop = opts->loop;
    client->transport = opts->transport;
    client->random = opts->random;
    client->log = opts->log;
    client->exempt = opts->exempt;
    client->in_flight_max = opts->in_flight_max ? opts->in_flight_max : IN_FLIGHT_DEFAULT;
    client->warnings.log = opts->log;
    ml_client_queue_init(&client->queue);
    ml_list_init(&client->held);
    ml_client_await_init(client);
    ml_client_pause_init(client, opts->metrics, on_pause_over);
    ml_client_meter_init(&client->meter, opts->metrics, opts->transport->host);
    if (opts->metrics)
        client->waiting = ml_metric_only(
            ml_metrics_gauge(opts->metrics, "moonloop_requests_waiting",
                             "Requests that wait for a place, or for the end of a pause.", NULL));
    return client;
}

void ml_client_free(struct ml_client *client)
{
    if (!client)
        return;
    ml_assert(client->calls == 0);
    ml_timer_stop(&client->pause.over);
    ml_timer_stop(&client->scout);
    ml_client_warnings_fini(&client->warnings);
    free(client);
}

void ml_client_set_fence(struct ml_client *client, ml_client_fence *fence, void *context)
{
    client->fence = fence;
    client->fence_context = context;
}
