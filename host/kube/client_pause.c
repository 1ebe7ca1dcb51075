#include "kube/client_internal.h"

#define PAUSE_MS_MIN INT64_C(1000) /* also when the server did not say, or said 0 or nonsense */
#define PAUSE_MS_MAX INT64_C(60000)

bool ml_client_paused(const struct ml_client *client)
{
    return ml_timer_active(&client->pause.over);
}

void ml_client_pause_init(struct ml_client *client, struct ml_metrics *metrics,
                          void (*over)(void *client))
{
    ml_timer_init(&client->pause.over, client->loop, over, client);
    if (metrics)
        client->pause.count = ml_metric_only(ml_metrics_counter(
            metrics, "moonloop_throttled_total",
            "Answers 429 of the API server, each of which paused the process.", NULL));
}

/* Up to a tenth more: clients that were refused together come back apart. */
static int64_t pause_ms(struct ml_client *client, int64_t asked_ms)
{
    int64_t ms = ML_MAX(PAUSE_MS_MIN, ML_MIN(asked_ms, PAUSE_MS_MAX));
    return ML_MIN(ms + ml_random_between(client->random, 0, ms / 10 + 1), PAUSE_MS_MAX);
}

void ml_client_pause_take(struct ml_client *client, int status, int64_t retry_after_ms)
{
    struct ml_client_pause *pause = &client->pause;
    if (client->exempt)
        return;
    if (status != 429) {
        if (pause->told && status > 0)
            ml_info(client->log, "client", "the API server takes requests again");
        pause->told = pause->told && status == 0;
        return;
    }
    if (pause->count)
        ml_metric_add(pause->count, 1);
    int64_t ms = pause_ms(client, retry_after_ms);
    int64_t now_ns = ml_clock_monotonic(ml_loop_clock(client->loop));
    if (!pause->told)
        ml_warn(client->log, "client", "the API server is overloaded; pausing all requests",
                ML_F("seconds", (double)ms / 1000));
    pause->told = true;
    /* Of several answers the longest counts. */
    if (ml_client_paused(client) && now_ns + ms * ML_NS_PER_MS <= pause->until_ns)
        return;
    pause->until_ns = now_ns + ms * ML_NS_PER_MS;
    ml_timer_start(&pause->over, ms * ML_NS_PER_MS);
}
