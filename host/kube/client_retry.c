#include "kube/client_internal.h"

/* client-go rest/with_retry.go: an answer is asked for again only where the server says when;
 * a lost connection only for reads. */
#define ATTEMPTS_MAX       10
#define LOST_ATTEMPTS_MAX  4 /* the first, and three more */
#define LOST_DELAY_NS      (200 * ML_NS_PER_MS)
#define RETRY_AFTER_MS_MIN INT64_C(1000)
#define RETRY_AFTER_MS_MAX INT64_C(60000)

/* Up to half as much again: clients that were refused together come back apart. */
static int64_t jitter(int64_t delay_ns, struct ml_random *random)
{
    return delay_ns + ml_random_between(random, 0, delay_ns / 2 + 1);
}

static int64_t lost_delay(const struct ml_client_outcome *outcome, struct ml_random *random)
{
    if (outcome->writes || outcome->attempts >= LOST_ATTEMPTS_MAX)
        return -1;
    return jitter(LOST_DELAY_NS << (outcome->attempts - 1), random);
}

static int64_t refused_delay(const struct ml_client_outcome *outcome, struct ml_random *random)
{
    if (outcome->header_retry_after_ms < 0 || outcome->attempts >= ATTEMPTS_MAX)
        return -1;
    int64_t delay_ms = ML_MAX(RETRY_AFTER_MS_MIN,
                              ML_MIN(outcome->header_retry_after_ms, RETRY_AFTER_MS_MAX));
    return jitter(delay_ms * ML_NS_PER_MS, random);
}

int64_t ml_client_retry_delay(const struct ml_client_outcome *outcome, struct ml_random *random)
{
    const struct ml_err *err = outcome->err;
    if (err->http == 0)
        return err->kind == ML_ENETWORK ? lost_delay(outcome, random) : -1;
    /* After a 5xx a write may have happened. A 429 is for client_pause.c. */
    return err->http >= 500 && !outcome->writes ? refused_delay(outcome, random) : -1;
}
