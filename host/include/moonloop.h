/* libmoonloop: a Kubernetes operator host whose reconcilers are Lua scripts.
 *
 *     struct moonloop_opts opts = MOONLOOP_OPTS_INIT;
 *     opts.scripts = (const char *const[]){"reconcilers", NULL};
 *     struct moonloop *host = moonloop_new(&opts);
 *     int code = moonloop_run(host);      // serves until a signal or moonloop_stop
 *     if (code != MOONLOOP_EXIT_OK)
 *         fputs(moonloop_error(host), stderr);
 *     moonloop_free(host);
 *
 * One host is one thread and one event loop (a second thread only checks that the loop runs), and a
 * process runs one at a time: the CPU clock that limits scripts belongs to the process. Nothing
 * here is thread-safe except moonloop_stop. */
#pragma once

#include <stddef.h>

#ifdef __cplusplus
extern "C" {
#endif

struct moonloop; /* opaque */
struct ml_tester;

/* The results of moonloop_run, and the exit codes of the program. */
enum moonloop_exit {
    MOONLOOP_EXIT_OK = 0,
    MOONLOOP_EXIT_BAD = 1,         /* the thing asked about is bad: a script, a file;
                                    * or it was asked to stop twice */
    MOONLOOP_EXIT_USAGE = 2,       /* invalid options */
    MOONLOOP_EXIT_CHANGES = 2,     /* of `moonloop plan`: there is something to do */
    MOONLOOP_EXIT_UNREACHABLE = 3, /* cannot reach the API server, or authenticate to it */
    MOONLOOP_EXIT_LOST_LEASE = 4,
};

/* The limits of a new version that is guarded. It is held when it would delete more than both of
 * the first two: objects, and so many in a hundred of what the tried objects own. It is refused
 * when it fails for more than so many in a hundred objects. When there are more than `sample` (1 to
 * 10000), so many are tried. Once live, it has to do no harm for `settle_seconds` (0 to 86400)
 * after its objects were reconciled, or the one before works again. A controller can set its own
 * (docs/changing.md). */
struct moonloop_rollout_limits {
    int max_deletes;
    int max_deletes_percent;
    int max_failures_percent;
    int sample;
    int settle_seconds;
};

#define MOONLOOP_ROLLOUT_LIMITS_INIT                                                               \
    {                                                                                              \
        10, 5, 20, 500, 10                                                                         \
    }

/* All strings and lists are borrowed until moonloop_free, the struct itself until moonloop_new
 * returns. NULL and 0 mean the default. */
struct moonloop_opts {
    const char *kubeconfig;        /* a file; default: $KUBECONFIG, in-cluster, ~/.kube/config */
    const char *context;           /* of the kubeconfig; default: its current-context */
    const char *const *namespaces; /* NULL-terminated; default: all */
    int watch_list;                /* lists are asked for as streams; default no */
    const char *const *scripts;    /* files or folders, NULL-terminated */
    const char *const *scripts_configmaps; /* "NAMESPACE/NAME", NULL-terminated */
    const char *metrics_bind_address;      /* "host:port"; default and "0": not served */
    const char *health_probe_bind_address; /* the same */
    /* The same, on loopback alone: answers `moonloop status`, `top`, `why` and `trace` of users who
     * come through the API server and show a token. */
    const char *inspect_bind_address;
    /* Where API servers call the webhooks of the scripts, over TLS; default and "0": not served.
     * The certificate is the host's own, kept in a Secret, unless there is a folder with tls.crt
     * and tls.key, which is read again whenever it changes. */
    const char *webhook_bind_address;
    const char *webhook_cert_dir;
    const char *webhook_url;         /* "https://host:port", if they call this and no Service */
    const char *webhook_namespace;   /* of Service and Secret; default: as that of the Lease */
    const char *webhook_service;     /* default "moonloop-webhook" */
    const char *webhook_cert_secret; /* default "moonloop-webhook-cert" */
    int webhook_cert_seconds;        /* how long its own certificate is good for; default a year */
    /* A folder of this process alone, which outlives it. The host records there which version of a
     * script ran when the process died, and loads the last good version instead of that one after
     * two deaths in a row. Default: nothing is recorded. */
    const char *state_dir;
    /* How a new version of a script takes over: "guarded" (default), when what it would do to the
     * objects in the cache is harmless, else somebody has to approve it; "canary", likewise, and it
     * works for one object first, then for more and more; "plan", when it would do nothing; or
     * "immediate". */
    const char *rollout;
    const struct moonloop_rollout_limits *rollout_limits; /* default: as initialized */
    /* Runs the tests beside the scripts (host/operator/own_tests.h), for a program that has a
     * cluster to run them on. Default: they are not run. */
    struct ml_tester *tester;
    const char *log_format;   /* "json" or "text"; default json */
    const char *log_level;    /* "debug", "info", "warn", "error"; default info */
    int log_fd;               /* default 1, standard output */
    size_t script_memory_max; /* bytes of one script's state; default 16 MiB */
    int drain_seconds;        /* for the shutdown: running reconciles, Events; default 25 */
    /* The origins that scripts may ask by ctx.http, such as "https://billing.example.com";
     * NULL-terminated, default: none. The proxy (default: as HTTPS_PROXY, HTTP_PROXY and NO_PROXY
     * say; "": none), and a file with the authority of these servers (default: the system's). */
    const char *const *allow_http;
    const char *http_proxy;
    const char *http_ca_file;
    int handle_signals; /* SIGTERM and SIGINT stop the host; default no */
    /* Before the first script is loaded, the whole process permanently gives up the rights that an
     * operator does not need: starting programs, writing files and reading files other than its own
     * (landlock), core dumps, most system calls (seccomp). Only for a process that does nothing
     * else and has no other thread. Default no; `moonloop run` does it. */
    int lock_down;

    /* With several replicas, either the one that holds a Lease reconciles (leader_elect), or they
     * share the objects and each holds its own Lease (shard). Not both. In a replica that loses its
     * Lease moonloop_run returns MOONLOOP_EXIT_LOST_LEASE; start it again. */
    int leader_elect;                      /* default no */
    int shard;                             /* default no */
    const char *leader_election_id;        /* name of the Lease, or of the group; "moonloop" */
    const char *leader_election_namespace; /* default: the pod's, else the kubeconfig's */
    int leader_election_lease_duration_ms; /* whole seconds; default 15000 */
    int leader_election_renew_deadline_ms; /* default 10000 */
    int leader_election_retry_period_ms;   /* default 2000 */
};

#define MOONLOOP_OPTS_INIT                                                                         \
    {                                                                                              \
        0                                                                                          \
    }

const char *moonloop_version(void); /* "0.1.0" */

/* Never NULL: moonloop_run reports invalid options. Free it in any case. Keep what `opts` points to
 * until then. */
struct moonloop *moonloop_new(const struct moonloop_opts *opts);
void moonloop_free(struct moonloop *host);

/* Connects, loads the scripts, reconciles; drains and returns after moonloop_stop or a signal.
 * To be called once. */
int moonloop_run(struct moonloop *host);

/* Asks a running host to drain and return. May be called from another thread or from a signal
 * handler. A second call skips the drain: moonloop_run returns MOONLOOP_EXIT_BAD. */
void moonloop_stop(struct moonloop *host);

/* One line about why moonloop_run failed; "" when it did not. Owned by the host. */
const char *moonloop_error(const struct moonloop *host);

#ifdef __cplusplus
}
#endif
