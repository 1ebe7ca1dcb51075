#include "kube/discovery.h"

#include "base/list.h"
#include "base/map.h"
#include "codec/json.h"
#include "kube/discovery_parse.h"
#include "net/loop.h"

#define NEGATIVE_FRESH_NS (1 * ML_NS_PER_S)
#define KINDS_MAX         65536 /* of all groups together; a cluster has hundreds */

/* A kind under the key "apps/v1 Deployment"; never freed before the discovery. */
struct known {
    struct ml_kind kind;
    char *key;
    char *strings[5]; /* what `kind` points at */
    bool forgotten;
};

/* A group and version that was, or is being, asked for. */
struct group {
    struct ml_discovery *discovery;
    char *api_version;
    struct ml_client_call *call; /* NULL: not being asked */
    struct ml_list waits;        /* for this answer */
    int64_t answered_ns;         /* of the last answer, "no such group" included */
    bool answered;
};

struct ml_discovery_wait {
    struct ml_list node; /* on a group's waits, or on the discovery's settled */
    struct ml_discovery *discovery;
    char *key; /* of the kind; its first word is the group's */
    ml_discovery_done *done;
    void *context;
    struct ml_task task; /* tells the result */
    const struct ml_kind *kind;
    struct ml_err err;
};

struct ml_discovery {
    struct ml_client *client;
    struct ml_loop *loop;
    struct ml_map kinds;  /* key -> struct known */
    struct ml_map groups; /* api_version -> struct group */
    struct ml_list settled;
};

static char *make_key(struct ml_str api_version, struct ml_str kind)
{
    return ml_asprintf(ML_STR_FMT " " ML_STR_FMT, ML_STR_ARG(api_version), ML_STR_ARG(kind));
}

static char *make_api_version(const struct ml_gvk *gvk)
{
    if (gvk->group.len == 0)
        return ml_str_dup(gvk->version);
    return ml_asprintf(ML_STR_FMT "/" ML_STR_FMT, ML_STR_ARG(gvk->group), ML_STR_ARG(gvk->version));
}

static void known_set_string(struct known *known, size_t index, const char **field,
                             struct ml_str text)
{
    if (*field && ml_str_is(text, *field))
        return;
    free(known->strings[index]);
    *field = known->strings[index] = ml_str_dup(text);
}

/* Takes a resource in, or brings what is known of it up to date; the struct stays the same. */
static void learn(struct ml_discovery *discovery, struct ml_str api_version,
                  const struct ml_discovery_resource *resource)
{
    ML_AUTO_FREE char *key = make_key(api_version, resource->kind);
    struct known *known = ml_map_get(&discovery->kinds, ml_str_of(key));
    if (!known) {
        if (discovery->kinds.len >= KINDS_MAX)
            return;
        known = ml_new(struct known);
        known->key = ml_take(&key);
        ml_map_put(&discovery->kinds, ml_str_of(known->key), known);
    }
    struct ml_str version = api_version;
    struct ml_str group = ml_str_cut(&version, '/');
    if (!version.ptr) {
        version = group;
        group = ML_STR("");
    }
    struct ml_kind *kind = &known->kind;
    known_set_string(known, 0, &kind->api_version, api_version);
    known_set_string(known, 1, &kind->group, group);
    known_set_string(known, 2, &kind->version, version);
    known_set_string(known, 3, &kind->kind, resource->kind);
    known_set_string(known, 4, &kind->plural, resource->plural);
    kind->namespaced = resource->namespaced;
    kind->has_status = resource->has_status;
    known->forgotten = false;
}

/* What the host itself works with: no question needed. */
static void learn_built_in(struct ml_discovery *discovery)
{
    static const struct {
        const char *api_version;
        struct ml_discovery_resource resource;
    } built_in[] = {
        {"v1", {ML_STR("ConfigMap"), ML_STR("configmaps"), true, false}},
        {"v1", {ML_STR("Namespace"), ML_STR("namespaces"), false, true}},
        {"events.k8s.io/v1", {ML_STR("Event"), ML_STR("events"), true, false}},
        {"coordination.k8s.io/v1", {ML_STR("Lease"), ML_STR("leases"), true, false}},
    };
    for (size_t i = 0; i < ML_COUNT(built_in); i++)
        learn(discovery, ml_str_of(built_in[i].api_version), &built_in[i].resource);
}

struct ml_discovery *ml_discovery_new(struct ml_client *client, struct ml_loop *loop)
{
    struct ml_discovery *discovery = ml_new(struct ml_discovery);
    discovery->client = client;
    discovery->loop = loop;
    ml_list_init(&discovery->settled);
    learn_built_in(discovery);
    return discovery;
}

static void wait_free(struct ml_discovery_wait *wait)
{
    ml_list_remove(&wait->node);
    ml_task_cancel(&wait->task);
    free(wait->key);
    free(wait);
}

static void waits_free(struct ml_list *waits)
{
    ml_list_each (node, waits)
        wait_free(ml_container_of(node, struct ml_discovery_wait, node));
}

static void known_free(struct known *known)
{
    for (size_t i = 0; i < ML_COUNT(known->strings); i++)
        free(known->strings[i]);
    free(known->key);
    free(known);
}

void ml_discovery_free(struct ml_discovery *discovery)
{
    if (!discovery)
        return;
    waits_free(&discovery->settled);
    ml_map_each (&discovery->groups, group_cursor, entry) {
        struct group *group = entry;
        if (group->call)
            ml_client_cancel(group->call);
        waits_free(&group->waits);
        free(group->api_version);
        free(group);
    }
    ml_map_each (&discovery->kinds, kind_cursor, known)
        known_free(known);
    ml_map_fini(&discovery->groups);
    ml_map_fini(&discovery->kinds);
    free(discovery);
}

static const struct ml_kind *find_kind(const struct ml_discovery *discovery, const char *key)
{
    const struct known *known = ml_map_get(&discovery->kinds, ml_str_of(key));
    return known && !known->forgotten ? &known->kind : NULL;
}

const struct ml_kind *ml_discovery_known(const struct ml_discovery *discovery,
                                         const struct ml_gvk *gvk)
{
    ML_AUTO_FREE char *api_version = make_api_version(gvk);
    ML_AUTO_FREE char *key = make_key(ml_str_of(api_version), gvk->kind);
    return find_kind(discovery, key);
}

void ml_discovery_forget(struct ml_discovery *discovery, const struct ml_kind *kind)
{
    ML_AUTO_FREE char *key = make_key(ml_str_of(kind->api_version), ml_str_of(kind->kind));
    struct known *known = ml_map_get(&discovery->kinds, ml_str_of(key));
    ml_assert(known && &known->kind == kind);
    known->forgotten = true;
    /* Its group's answer is old news now, too: asked again at once. */
    struct group *group = ml_map_get(&discovery->groups, ml_str_of(kind->api_version));
    if (group)
        group->answered = false;
}

static void tell(void *context)
{
    struct ml_discovery_wait *wait = context;
    struct ml_discovery_wait copy = *wait;
    wait_free(wait);
    copy.done(copy.context, copy.kind, copy.kind ? NULL : &copy.err);
}

/* Takes the result for the wait off what is known now; `err` is why nothing new is. */
static void settle(struct ml_discovery_wait *wait, const struct ml_err *err)
{
    struct ml_discovery *discovery = wait->discovery;
    wait->kind = find_kind(discovery, wait->key);
    const char *space = strchr(wait->key, ' ');
    if (!wait->kind && err && err->kind != ML_ENOT_FOUND)
        wait->err = *err;
    else if (!wait->kind)
        ml_err_set(&wait->err, ML_ENOT_FOUND,
                   "the server has no kind %s in %.*s; is its CRD installed?", space + 1,
                   (int)(space - wait->key), wait->key);
    ml_list_remove(&wait->node);
    ml_list_push(&discovery->settled, &wait->node);
    ml_task_defer(&wait->task, discovery->loop);
}

static void learn_resource(void *context, const struct ml_discovery_resource *resource)
{
    const struct group *group = context;
    learn(group->discovery, ml_str_of(group->api_version), resource);
}

static void on_answer(void *context, struct ml_str body, const struct ml_err *failure)
{
    struct group *group = context;
    struct ml_err err = failure ? *failure : ML_ERR_INIT;
    group->call = NULL;
    if (!failure && ml_discovery_parse(body, learn_resource, group, &err) < 0)
        ml_err_wrap(&err, "resources of %s", group->api_version);
    if (err.kind == 0 || err.kind == ML_ENOT_FOUND) {
        group->answered = true;
        group->answered_ns = ml_clock_monotonic(ml_loop_clock(group->discovery->loop));
    }
    ml_list_each (node, &group->waits)
        settle(ml_container_of(node, struct ml_discovery_wait, node), err.kind ? &err : NULL);
}

static struct group *group_get(struct ml_discovery *discovery, struct ml_str api_version)
{
    struct group *group = ml_map_get(&discovery->groups, api_version);
    if (group)
        return group;
    group = ml_new(struct group);
    group->discovery = discovery;
    group->api_version = ml_str_dup(api_version);
    ml_list_init(&group->waits);
    ml_map_put(&discovery->groups, ml_str_of(group->api_version), group);
    return group;
}

static void group_ask(struct group *group)
{
    bool core = strchr(group->api_version, '/') == NULL;
    ML_AUTO_FREE char *path = ml_asprintf("%s/%s", core ? "/api" : "/apis", group->api_version);
    const struct ml_client_request request = {.verb = ML_VERB_GET, .path = path};
    group->call = ml_client_send(group->discovery->client, &request, on_answer, group);
}

static bool group_fresh(const struct group *group)
{
    int64_t now = ml_clock_monotonic(ml_loop_clock(group->discovery->loop));
    return group->answered && now - group->answered_ns < NEGATIVE_FRESH_NS;
}

struct ml_discovery_wait *ml_discovery_resolve(struct ml_discovery *discovery,
                                               const struct ml_gvk *gvk, ml_discovery_done *done,
                                               void *context)
{
    ML_AUTO_FREE char *api_version = make_api_version(gvk);
    struct ml_discovery_wait *wait = ml_new(struct ml_discovery_wait);
    wait->discovery = discovery;
    wait->key = make_key(ml_str_of(api_version), gvk->kind);
    wait->done = done;
    wait->context = context;
    ml_task_init(&wait->task, tell, wait);
    ml_list_init(&wait->node);
    if (find_kind(discovery, wait->key)) {
        settle(wait, NULL);
        return wait;
    }
    struct group *group = group_get(discovery, ml_str_of(api_version));
    if (group_fresh(group)) {
        settle(wait, NULL);
        return wait;
    }
    ml_list_push(&group->waits, &wait->node);
    if (!group->call)
        group_ask(group);
    return wait;
}

void ml_discovery_cancel(struct ml_discovery_wait *wait)
{
    wait_free(wait);
}
