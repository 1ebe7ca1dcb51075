/* Several replicas of the operator before one embedded API server, in virtual time, each on a loop
 * and a clock of its own: clocks may run fast or slow, a replica may be stopped (SIGSTOP) and
 * woken, killed, and started anew, and the network between may be anything. What the server was
 * asked for is logged on its side. */
#pragma once

#include "unit.h"

#include "run/operator.h"
#include "wire.h"

#define REPLICAS_MAX 4

enum replica_state {
    REPLICA_ABSENT, /* not started, or it has ended */
    REPLICA_RUNS,
    REPLICA_STOPPED, /* asleep: SIGSTOP */
};

struct replica {
    struct replicas *all;
    size_t index;
    char name[32]; /* "a", "b", … and how often it was started: "a1" */
    int starts;
    enum replica_state state;
    int rate; /* of its clock, in permille */
    int64_t base_ns, base_real_ns;
    struct ml_clock_fake clock;
    struct ml_loop *loop;
    struct wire *work, *leases;
    struct ml_metrics *metrics;
    struct ml_operator *operator;
    bool lost; /* it was told so, and ends */
    bool ended;
};

/* A request that the server has handled. */
struct replicas_request {
    int64_t at_ns; /* since the start, on the server's clock */
    size_t replica;
    int start; /* which of its lives */
    int status;
    char *method, *path, *body;
};

struct replicas {
    struct ml_clock_fake clock;
    struct ml_random random;
    struct ml_loop *loop;
    struct ml_apiserver *server;
    char folder[32];
    char *script;
    int64_t start_ns;
    bool shares; /* the keys; else one works. To be set before the first starts */
    struct replica replicas[REPLICAS_MAX];
    struct replicas_request *log;
    size_t log_len, log_capacity;
    struct wire *old_wires[256]; /* of lives that have ended: what they sent is on its way */
    size_t old_wire_count;
    struct ml_log host_log;
    /* After each turn of any loop; NULL: none. */
    void (*check)(void *context);
    void *context;
};

/* `script` is the text of the one controller. */
struct replicas *replicas_new(const char *script, uint64_t seed);
void replicas_free(struct replicas *all);

/* A new life, with a clock that runs at `rate` permille of the server's. */
struct replica *replica_start(struct replicas *all, size_t index, int rate);
void replica_kill(struct replica *replica);  /* as SIGKILL */
void replica_sleep(struct replica *replica); /* as SIGSTOP */
void replica_wake(struct replica *replica);
void replica_term(struct replica *replica); /* as SIGTERM; its end comes by itself */

void replicas_run(struct replicas *all, int64_t ms);
int64_t replicas_now_ms(const struct replicas *all);

/* Lua in the server's state, with `server`, `host`, call(method, path, body) and get(path). */
void replicas_lua(struct replicas *all, const char *statements);
/* What the log is asked for. */
bool request_is_lease(const struct replicas_request *request);
bool request_wrote(const struct replicas_request *request); /* a write, and it was accepted */
/* The name of the object of collection `plural` that it is about, or NULL; the caller frees it. */
char *request_name(const struct replicas_request *request, const char *plural);
