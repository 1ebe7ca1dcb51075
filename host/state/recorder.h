/* L4 state. Kubernetes Events (events.k8s.io/v1). Recording never blocks and never fails the
 * caller. Events are sent after all other requests, and kept while the server does not answer: at
 * most a thousand in 2 MiB, a quarter of both for one source, each tried twelve times, ten seconds
 * apart. Events that fail then, or exceed these limits, are dropped and counted. The same
 * (object, reason, note) within six minutes becomes a series instead of a new Event; ten different
 * notes for one reason within ten minutes are combined into one, which shows the newest of them;
 * each object may cause 25 Events of a controller and a type, and then one in 5 minutes
 * (client-go's aggregator and spam filter, which do not tell types apart: what goes well must not
 * hide what fails). */
#pragma once

#include "base/map.h"
#include "base/metrics.h"
#include "kube/client.h"
#include "kube/object.h"

struct ml_recorder;

struct ml_recorder_opts {
    struct ml_client *client;
    struct ml_loop *loop;
    struct ml_metrics *metrics;
    const char *controller; /* reportingController of Events that name none: "moonloop" */
    const char *instance;   /* reportingInstance: host name and process */
};

struct ml_recorder *ml_recorder_new(const struct ml_recorder_opts *opts);
void ml_recorder_free(struct ml_recorder *recorder);

struct ml_event_object {
    struct ml_str api_version, kind, ns, name, uid, rv; /* ns, uid, rv: empty when it has none */
};

struct ml_event {
    struct ml_event_object about;   /* its namespace is the Event's, or "default" */
    struct ml_event_object related; /* a second one; without a name: none */
    bool warning;                   /* type Warning, else Normal */
    bool numbers_vary; /* notes that differ only in numbers behind their first ": " are one Event */
    bool passing;      /* its cause may soon be over: it is tried once, and not kept */
    struct ml_str reason; /* CamelCase; cut at 128 bytes */
    struct ml_str action; /* "Reconcile", "LoadScript"; cut at 128 bytes */
    struct ml_str note;   /* cut at 1024 bytes, at a character's end, before " (and 3 more)" */
    struct ml_str source; /* the script that records it, for its quarter; empty: the host */
    /* reportingController, what kubectl shows as its origin: the name of the controller that
     * reconciles the object, as controller-runtime's recorders have it; empty: the host's. */
    struct ml_str controller;
};

/* The beginning of an Event about an object that is reconciled, for the caller to fill in reason,
 * note and, where it is one, `warning`. Borrows from both. */
struct ml_event ml_event_about(const struct ml_kind *kind, const struct ml_object *object);

void ml_recorder_event(struct ml_recorder *recorder, const struct ml_event *event);

/* Has the server an Event of this type, by this controller, about this object? As far as it is
 * known: of a thousand Events, the oldest are forgotten first. */
bool ml_recorder_shows(const struct ml_recorder *recorder, const struct ml_event *event);

/* Calls `done`, later from the loop, when all recorded Events have been answered or dropped: for
 * shutdown. */
void ml_recorder_flush(struct ml_recorder *recorder, void (*done)(void *context), void *context);

/* ---- for the recorder and its tests: the limits on the number of Events ---- */

/* The keys that were seen lately. Bounded: the one that was quiet longest is forgotten first. */
struct ml_event_recent {
    struct ml_set by_key; /* in the order of their last use */
};

void ml_event_recent_init(struct ml_event_recent *recent);
void ml_event_recent_fini(struct ml_event_recent *recent);

/* Events that differ only in their notes: when an object has had ten different notes for one reason
 * within ten minutes, further new ones are combined into one (client-go's EventAggregator).
 * At most ML_EVENT_SIMILAR_MAX reasons of objects are remembered. */
#define ML_EVENT_SIMILAR_MAX    1024
#define ML_EVENT_COMBINED_NOTES 10
#define ML_EVENT_COMBINED       "(combined from similar events): "

/* `reason`: object, type and reason. True: this note is to be combined. */
bool ml_event_similar_combines(struct ml_event_recent *similar, struct ml_str reason,
                               struct ml_str note, int64_t now_ns);

/* Limits the Events of an object: a token bucket of 25, refilled by one each five
 * minutes (client-go's EventSourceObjectSpamFilter). At most ML_EVENT_SPAM_OBJECTS are remembered.
 */
#define ML_EVENT_SPAM_OBJECTS 1024

bool ml_event_spam_allows(struct ml_event_recent *spam, struct ml_str object, int64_t now_ns);
