/* A network between two event loops, each on its own clock: what stands on the near loop (a
 * replica) sends requests through the transport seam, and they reach the API server on the far loop
 * after a while, in no order, or not at all. A request that has left arrives whatever becomes of
 * who sent it: so late writes of the dead come about by themselves. */
#pragma once

#include "base/random.h"
#include "kube/transport.h"
#include "net/loop.h"

struct wire;

/* How the network is just now; for requests that leave, and answers that leave, from now on. Each
 * delay is drawn from [min, max] on the far clock; answers of one request stay in order. */
struct wire_mood {
    int64_t there_min_ns, there_max_ns;
    int64_t back_min_ns, back_max_ns;
    int lose_there_percent; /* never arrives; ends with ML_ENETWORK */
    int lose_back_percent;  /* the whole answer; ends with ML_ENETWORK. Not for streams */
    bool silent;            /* nothing arrives and nothing is told: only deadlines end a request */
    int64_t retry_after_ms; /* > 0: overloaded; all is answered 429 with this, and nothing done */
};

/* A request as the server has just handled it, a stream when it has begun. Strings live during the
 * call. */
struct wire_request {
    const char *method, *path, *body;
    int status;
    int sender; /* as in the options of its wire */
};

struct wire_opts {
    struct ml_loop *near, *far;
    struct ml_transport *server; /* on the far loop; taken over */
    struct ml_random *random;
    int sender;
    void (*handled)(void *context, const struct wire_request *request); /* on the far loop */
    void *context;
};

struct wire *wire_new(const struct wire_opts *opts);
/* With all that is still under way; after the near side has freed its seam. NULL is fine. */
void wire_free(struct wire *wire);

struct ml_transport *wire_seam(struct wire *wire);
struct wire_mood *wire_mood(struct wire *wire);
