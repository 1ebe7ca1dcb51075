/* L4 state. The services that all controllers and scripts of an operator share, in one struct
 * instead of globals. All borrowed; the operator (operator/operator.h) creates and frees them. */
#pragma once

#include "base/budget.h"
#include "kube/discovery.h"
#include "state/informer.h"
#include "state/outbound.h"
#include "state/recorder.h"
#include "state/shard.h"
#include "state/slices.h"

struct ml_authors;
struct ml_checked_texts;
struct ml_coverage;
struct ml_deletions;
struct ml_journal;
struct ml_openapi_cache;

struct ml_services {
    struct ml_loop *loop;
    struct ml_clock *clock;
    struct ml_random *random;
    struct ml_log *log;
    struct ml_metrics *metrics;
    struct ml_client *client;
    struct ml_discovery *discovery;
    struct ml_informers *informers;
    struct ml_recorder *recorder;
    struct ml_shard *shard; /* NULL: all keys are this replica's */
    bool standby;           /* another replica leads: caches are synced, nothing is reconciled */
    struct ml_budget_pool script_memory; /* of all scripts together */
    struct ml_slices *slices;            /* runs script code; NULL where no controller runs */
    struct ml_authors *authors;          /* state/writer.h; NULL where nobody asks */
    struct ml_deletions *deletions;      /* state/deletions.h; NULL where nobody asks */
    struct ml_journal *journal;          /* state/journal.h; NULL where nobody asks */
    struct ml_checked_texts *checked;    /* operator/text_check.h; NULL: each is analyzed */
    struct ml_openapi_cache *schemas;    /* kube/openapi.h; NULL: each is asked for */
    struct ml_coverage *coverage;        /* script/script.h; NULL: nobody asks */
    struct ml_outbound *outbound;        /* of ctx.http; NULL: scripts ask nobody */
};
