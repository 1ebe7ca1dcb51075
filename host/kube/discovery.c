/* Which kinds the server has. Asks for one group and version at a time through the client, reads
 * the APIResourceList it answers, and keeps what it read. */
#include "kube/discovery.h"

#include "base/list.h"
#include "base/map.h"
#include "codec/json.h"
#include "net/loop.h"

#define NEGATIVE_FRESH_NS (1 * ML_NS_PER_S)
#define KINDS_MAX         65536 /* of all groups together; a cluster has hundreds */

/* A kind; never freed before the discovery. It owns the texts of `kind`. */
struct known {
    struct ml_kind kind;
    char *key; /* "apps/v1 Deployment" */
    char *api_version, *group, *plural;
    bool forgotten;
};

/* A group and version that the server was asked for, or is being asked for. */
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
    struct ml_task task; /* calls done() */
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

static char *make_gvk_key(const struct ml_gvk *gvk)
{
    return ml_asprintf(ML_STR_FMT "%s" ML_STR_FMT " " ML_STR_FMT, ML_STR_ARG(gvk->group),
                       gvk->group.len > 0 ? "/" : "", ML_STR_ARG(gvk->version),
                       ML_STR_ARG(gvk->kind));
}

static char *make_kind_key(const struct ml_kind *kind)
{
    return ml_asprintf("%s %s", kind->api_version, kind->kind);
}

static struct known *known_new(const char *api_version, char *key)
{
    struct known *known = ml_new(struct known);
    const char *slash = strchr(api_version, '/');
    known->key = key;
    known->api_version = ml_strdup(api_version);
    known->group = ml_strndup(api_version, slash ? (size_t)(slash - api_version) : 0);
    known->kind = (struct ml_kind){
        .api_version = known->api_version,
        .group = known->group,
        .version = known->api_version + (slash ? slash + 1 - api_version : 0),
        .kind = strchr(key, ' ') + 1,
    };
    return known;
}

/* Adds a kind, or brings it up to date; the struct stays the same. `kind`: group and version need
 * not be filled in. */
static void learn_kind(struct ml_discovery *discovery, const struct ml_kind *kind)
{
    ML_AUTO_FREE char *key = make_kind_key(kind);
    struct known *known = ml_map_get(&discovery->kinds, ml_str_of(key));
    if (!known) {
        if (discovery->kinds.len >= KINDS_MAX)
            return;
        known = known_new(kind->api_version, ml_take(&key));
        ml_map_put(&discovery->kinds, ml_str_of(known->key), known);
    }
    if (!known->plural || strcmp(known->plural, kind->plural) != 0) {
        free(known->plural);
        known->kind.plural = known->plural = ml_strdup(kind->plural);
    }
    known->kind.namespaced = kind->namespaced;
    known->kind.has_status = kind->has_status;
    known->forgotten = false;
}

struct ml_discovery *ml_discovery_new(struct ml_client *client, struct ml_loop *loop)
{
    struct ml_discovery *discovery = ml_new(struct ml_discovery);
    discovery->client = client;
    discovery->loop = loop;
    ml_list_init(&discovery->settled);
    /* The kinds that the host itself uses need no question to the server. */
    learn_kind(discovery, &ml_kind_configmap);
    learn_kind(discovery, &ml_kind_namespace);
    learn_kind(discovery, &ml_kind_event);
    learn_kind(discovery, &ml_kind_lease);
    return discovery;
}

static void discovery_wait_free(struct ml_discovery_wait *wait)
{
    ml_list_remove(&wait->node);
    ml_task_cancel(&wait->task);
    free(wait->key);
    free(wait);
}

static void discovery_waits_free(struct ml_list *waits)
{
    ml_list_each (node, waits)
        discovery_wait_free(ml_container_of(node, struct ml_discovery_wait, node));
}

void ml_discovery_free(struct ml_discovery *discovery)
{
    if (!discovery)
        return;
    discovery_waits_free(&discovery->settled);
    ml_map_each (&discovery->groups, group_cursor, entry) {
        struct group *group = entry;
        if (group->call)
            ml_client_cancel(group->call);
        discovery_waits_free(&group->waits);
        free(group->api_version);
        free(group);
    }
    ml_map_each (&discovery->kinds, kind_cursor, entry) {
        struct known *known = entry;
        free(known->key);
        free(known->api_version);
        free(known->group);
        free(known->plural);
        free(known);
    }
    ml_map_fini(&discovery->groups);
    ml_map_fini(&discovery->kinds);
    free(discovery);
}

static const struct ml_kind *find_known_kind(const struct ml_discovery *discovery, const char *key)
{
    const struct known *known = ml_map_get(&discovery->kinds, ml_str_of(key));
    return known && !known->forgotten ? &known->kind : NULL;
}

const struct ml_kind *ml_discovery_known(const struct ml_discovery *discovery,
                                         const struct ml_gvk *gvk)
{
    ML_AUTO_FREE char *key = make_gvk_key(gvk);
    return find_known_kind(discovery, key);
}

const struct ml_kind *ml_discovery_known_as(const struct ml_discovery *discovery,
                                            struct ml_str api_version, struct ml_str plural)
{
    ml_map_each (&discovery->kinds, cursor, entry) {
        const struct known *known = entry;
        if (!known->forgotten && ml_str_is(api_version, known->api_version) &&
            ml_str_is(plural, known->plural))
            return &known->kind;
    }
    return NULL;
}

void ml_discovery_forget(struct ml_discovery *discovery, const struct ml_kind *kind)
{
    ML_AUTO_FREE char *key = make_kind_key(kind);
    struct known *known = ml_map_get(&discovery->kinds, ml_str_of(key));
    ml_assert(known && &known->kind == kind);
    known->forgotten = true;
    /* The answer for its group is no longer valid either: the next one asks at once. */
    struct group *group = ml_map_get(&discovery->groups, ml_str_of(kind->api_version));
    if (group)
        group->answered = false;
}

static void notify_resolved(void *context)
{
    struct ml_discovery_wait *wait = context;
    struct ml_discovery_wait copy = *wait;
    discovery_wait_free(wait);
    copy.done(copy.context, copy.kind, copy.kind ? NULL : &copy.err);
}

/* Decides what the wait gets, from the kinds known now. `err`: why its group could not be read, or
 * NULL. */
static void settle_wait(struct ml_discovery_wait *wait, const struct ml_err *err)
{
    struct ml_discovery *discovery = wait->discovery;
    wait->kind = find_known_kind(discovery, wait->key);
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

/* ---- reading an APIResourceList ---- */

/* Plurals with a status subresource; each is its own key. */
static void statuses_fini(struct ml_map *statuses)
{
    ml_map_each (statuses, cursor, plural)
        free(plural);
    ml_map_fini(statuses);
}

/* Notes the plural of an entry that is called "ats/status". */
static void note_status_subresource(struct ml_map *statuses, struct ml_str entry)
{
    ML_AUTO_FREE char *name = ml_json_find_string(entry, "name", NULL);
    struct ml_str plural = ml_str_of(name);
    if (!ml_str_ends(plural, "/status"))
        return;
    plural.len -= strlen("/status");
    free(ml_map_put(statuses, plural, ml_take(&name)));
}

/* Entries without a valid kind and name are passed over. */
static void learn_entry(const struct group *group, const struct ml_map *statuses,
                        struct ml_str entry)
{
    ML_AUTO_FREE char *name = ml_json_find_string(entry, "name", NULL);
    ML_AUTO_FREE char *kind = ml_json_find_string(entry, "kind", NULL);
    struct ml_gvk ignored;
    if (!ml_name_valid(ml_str_of(name)) || !ml_gvk_parse(ML_STR("v1"), ml_str_of(kind), &ignored))
        return;
    struct ml_str namespaced = ML_STR("false");
    (void)ml_json_find(entry, &namespaced, "namespaced", NULL);
    const struct ml_kind found = {
        .api_version = group->api_version,
        .kind = kind,
        .plural = name,
        .namespaced = ml_str_is(namespaced, "true"),
        .has_status = ml_map_get(statuses, ml_str_of(name)) != NULL,
    };
    learn_kind(group->discovery, &found);
}

/* Reads the entries: without `group` only to learn which of them have a status, then again to learn
 * them as kinds of `group`. */
static void read_entries(struct ml_str resources, struct ml_map *statuses,
                         const struct group *group)
{
    ML_AUTO(ml_json_reader_fini) struct ml_json_reader reader;
    ml_json_reader_init(&reader, resources, 0);
    if (ml_json_next(&reader) != ML_JSON_ARRAY)
        return;
    for (struct ml_str entry; (entry = ml_json_skip(&reader)).len > 0;) {
        if (group)
            learn_entry(group, statuses, entry);
        else
            note_status_subresource(statuses, entry);
    }
}

/* ML_EINVALID: no such list. */
static int learn_resource_list(const struct group *group, struct ml_str json, struct ml_err *err)
{
    if (ml_json_check(json, 0, err) < 0)
        return err->kind;
    struct ml_str resources;
    if (!ml_json_find(json, &resources, "resources", NULL))
        return ml_err_set(err, ML_EINVALID, "the answer is no APIResourceList");
    ML_AUTO(statuses_fini) struct ml_map statuses = {0};
    read_entries(resources, &statuses, NULL);
    read_entries(resources, &statuses, group);
    return 0;
}

/* ---- asking for one ---- */

static void on_resource_list(void *context, struct ml_str body, const struct ml_err *failure)
{
    struct group *group = context;
    struct ml_err err = failure ? *failure : ML_ERR_INIT;
    group->call = NULL;
    if (!failure && learn_resource_list(group, body, &err) < 0)
        ml_err_wrap(&err, "resources of %s", group->api_version);
    if (err.kind == 0 || err.kind == ML_ENOT_FOUND) {
        group->answered = true;
        group->answered_ns = ml_clock_monotonic(ml_loop_clock(group->discovery->loop));
    }
    ml_list_each (node, &group->waits)
        settle_wait(ml_container_of(node, struct ml_discovery_wait, node), err.kind ? &err : NULL);
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
    group->call = ml_client_send(group->discovery->client, &request, on_resource_list, group);
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
    struct ml_discovery_wait *wait = ml_new(struct ml_discovery_wait);
    wait->discovery = discovery;
    wait->key = make_gvk_key(gvk);
    wait->done = done;
    wait->context = context;
    ml_task_init(&wait->task, notify_resolved, wait);
    ml_list_init(&wait->node);
    struct ml_str rest = ml_str_of(wait->key);
    struct group *group = group_get(discovery, ml_str_cut(&rest, ' '));
    if (find_known_kind(discovery, wait->key) || group_fresh(group)) {
        settle_wait(wait, NULL);
        return wait;
    }
    ml_list_push(&group->waits, &wait->node);
    if (!group->call)
        group_ask(group);
    return wait;
}

void ml_discovery_cancel(struct ml_discovery_wait *wait)
{
    discovery_wait_free(wait);
}
