/* cluster. What scripts ask by ctx.http in a world of `moonloop test`: answered by a function of
 * the test, without a socket. */
#pragma once

#include "cluster/trusted.h"
#include "state/outbound.h"

/* Both are borrowed. Free it when no operator uses it any more. */
struct ml_outbound *ml_world_http_new(struct ml_loop *loop, struct ml_trusted *trusted);
void ml_world_http_free(struct ml_outbound *outbound); /* NULL is fine */
