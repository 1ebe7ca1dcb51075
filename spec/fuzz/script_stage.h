/* Where the fuzzers run scripts: a world of its own for each input (clock that stands still, loop,
 * cache of Pods, an API server whose answers the input chooses) and, beside it, a bystander: an
 * honest script in its own state. After each step this looks for things that a script may not do:
 * more CPU time than twice the budget, more memory than the budget, a line of the log that the host
 * did not write, a request whose path is no path of the API or whose body is no JSON. A finding
 * aborts. */
#pragma once

#include "choices.h"

#include "script/script.h"
#include "state/expectations.h"
#include "state/services.h"

#define STAGE_KINDS_MAX 128

struct stage_call; /* a request that was not answered yet */

struct stage {
    struct ml_clock_fake clock;
    struct ml_loop *loop;
    struct ml_random random;
    struct ml_log log;
    int log_fd;
    struct ml_metrics *metrics;
    struct ml_transport transport;
    struct stage_call *first, **last;
    struct stage_call *watch; /* of Pods */
    struct ml_client *client;
    struct ml_informers *informers;
    struct ml_recorder *recorder;
    struct ml_keys keys;
    struct ml_expectations *gate;
    struct ml_services services;
    struct ml_informer *pods;
    struct ml_dict *dict;
    struct ml_object *object; /* an At */
    struct ml_object *pod;
    struct choices *answers;
    uint64_t rv;

    struct ml_script_limits limits;
    struct ml_script *script;
    struct ml_result
        result; /* of the last run, taken: it outlives the run, as a controller's does */
    struct ml_custom_metrics *custom;
    const struct ml_kind *kinds[STAGE_KINDS_MAX];
    struct ml_informer *in[STAGE_KINDS_MAX];
    bool slow;       /* CPU time is no finding */
    int64_t host_ns; /* of the step under way: the host's own, measured apart */
    int64_t slowest_ns;
    const char *slowest; /* what took so long over its budget; NULL: nothing */
};

/* The first one also loads the bystander. */
void stage_open(struct stage *stage, struct choices *answers, enum ml_log_format format);
void stage_close(struct stage *stage);

/* Takes in the script, and binds what it declares. False: it was refused. */
bool stage_load(struct stage *stage, struct ml_str text);
/* One reconcile to its end; the answers say whether it comes to one or is canceled. */
void stage_reconcile(struct stage *stage);
/* The same with finalize. */
void stage_finalize(struct stage *stage);
/* default, validate of a new and of a changed object, and each conversion to and from. */
void stage_webhooks(struct stage *stage);
/* Every watch function and every predicate, once; and the functions of indexes, of a pod. */
void stage_watch_functions(struct stage *stage);

/* Aborts when something is not as it was promised. */
void stage_check_log(struct stage *stage);
void stage_check_bystander(void);

/* For the end of an input, when it holds nothing: memory that nobody has any more is a finding. It
 * is looked for now and then only: that takes as long as many inputs. (libFuzzer's own way is to
 * look after each input that kept memory, and a bystander keeps some.) */
void stage_check_leaks(void);

/* The collector is made to run at each `every`th allocation of Lua; 0: as it likes. */
void stage_stress_collector(size_t every);

_Noreturn void stage_found(const char *what, ...) __attribute__((format(printf, 1, 2)));
