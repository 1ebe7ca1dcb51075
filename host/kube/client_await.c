/* Those who wait until the API server can be reached: one of them at a time goes and looks. */
#include "kube/client_internal.h"

#define SCOUT_NS        (1 * ML_NS_PER_S) /* and up to as much again, by chance */
#define SERVER_CODE_MAX 499 /* above, a proxy may speak for a server that is still away */

static void rest(struct ml_client *client)
{
    ml_timer_start(&client->scout, SCOUT_NS + ml_random_between(client->random, 0, SCOUT_NS));
}

static struct ml_client_await *next(struct ml_client *client)
{
    struct ml_list *node = ml_list_shift(&client->awaiting);
    return node ? ml_container_of(node, struct ml_client_await, node) : NULL;
}

static void on_scout(void *context)
{
    struct ml_client *client = context;
    struct ml_client_await *await = next(client);
    if (!await)
        return;
    rest(client);
    await->again(await->context, false);
}

static bool waits(const struct ml_client_await *await)
{
    return await->node.next && !ml_list_empty(&await->node);
}

void ml_client_await_init(struct ml_client *client)
{
    ml_list_init(&client->awaiting);
    ml_timer_init(&client->scout, client->loop, on_scout, client);
}

void ml_client_await(struct ml_client *client, struct ml_client_await *await)
{
    if (!waits(await))
        ml_list_push(&client->awaiting, &await->node);
    rest(client); /* it has just looked */
}

void ml_client_await_stop(struct ml_client_await *await)
{
    if (waits(await))
        ml_list_remove(&await->node);
}

void ml_client_answered(struct ml_client *client, int status)
{
    if (status > SERVER_CODE_MAX)
        return;
    for (struct ml_client_await *await; (await = next(client)) != NULL;)
        await->again(await->context, true);
}
