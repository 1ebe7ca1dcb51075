/* Those who wait until the API server can be reached again. */
#include "kube/client_internal.h"

#define SERVER_CODE_MAX 499 /* above, a proxy may speak for a server that is still away */

static bool waits(const struct ml_client_await *await)
{
    return await->node.next && !ml_list_empty(&await->node);
}

void ml_client_await(struct ml_client *client, struct ml_client_await *await)
{
    if (!waits(await))
        ml_list_push(&client->awaiting, &await->node);
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
    for (struct ml_list *node; (node = ml_list_shift(&client->awaiting)) != NULL;) {
        struct ml_client_await *await = ml_container_of(node, struct ml_client_await, node);
        await->answered(await->context);
    }
}
