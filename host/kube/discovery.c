/* Which kinds the server has. Asks for one group and version at a time through the client, reads
 * the APIResourceList it answers, and keeps what it read. Called by operator/ for the kinds that
 * scripts name, and by whoever works with a built-in kind. */
#include "kube/discovery.h"

#include "base/list.h"
#include "base/map.h"
#include "codec/json.h"
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

/* A group and version that the server was asked for, or is being asked for. */
struct group {
    struct ml_discovery *discovery;
    char *api_version;
    struct ml_client_call *call; /* NULL: not being asked */
    struct ml_list waits;        /* for this answer */
    int64_t answered_ns;         /* of the last answer, "no such group" included */
    bool answered;
};

/* A resource of a list; its slices live during the call that gets it. */
struct resource {
    struct ml_str kind;
    struct ml_str plural;
    bool namespaced;
    bool has_status;
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

static char *make_kind_key(struct ml_str api_version, struct ml_str kind)
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

/* Adds a kind, or brings it up to date; the struct stays the same. */
static void learn_kind(struct ml_discovery *discovery, struct ml_str api_version,
                       const struct resource *resource)
{
    ML_AUTO_FREE char *key = make_kind_key(api_version, resource->kind);
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

/* The kinds that the host itself works with: the server need not be asked. */
static void learn_built_in_kinds(struct ml_discovery *discovery)
{
    static const struct ml_kind *const kinds[] = {&ml_kind_configmap, &ml_kind_namespace,
                                                  &ml_kind_event, &ml_kind_lease};
    for (size_t i = 0; i < ML_COUNT(kinds); i++)
        learn_kind(discovery, ml_str_of(kinds[i]->api_version),
                   &(struct resource){ml_str_of(kinds[i]->kind), ml_str_of(kinds[i]->plural),
                                      kinds[i]->namespaced, kinds[i]->has_status});
}

struct ml_discovery *ml_discovery_new(struct ml_client *client, struct ml_loop *loop)
{
    struct ml_discovery *discovery = ml_new(struct ml_discovery);
    discovery->client = client;
    discovery->loop = loop;
    ml_list_init(&discovery->settled);
    learn_built_in_kinds(discovery);
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
    discovery_waits_free(&discovery->settled);
    ml_map_each (&discovery->groups, group_cursor, entry) {
        struct group *group = entry;
        if (group->call)
            ml_client_cancel(group->call);
        discovery_waits_free(&group->waits);
        free(group->api_version);
        free(group);
    }
    ml_map_each (&discovery->kinds, kind_cursor, known)
        known_free(known);
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
    ML_AUTO_FREE char *api_version = make_api_version(gvk);
    ML_AUTO_FREE char *key = make_kind_key(ml_str_of(api_version), gvk->kind);
    return find_known_kind(discovery, key);
}

void ml_discovery_forget(struct ml_discovery *discovery, const struct ml_kind *kind)
{
    ML_AUTO_FREE char *key = make_kind_key(ml_str_of(kind->api_version), ml_str_of(kind->kind));
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

/* An entry of "resources", "ats" or "ats/status". */
struct entry {
    struct ml_buf name;
    struct ml_buf kind;
    bool namespaced;
};

static void resource_entry_fini(struct entry *entry)
{
    ml_buf_fini(&entry->name);
    ml_buf_fini(&entry->kind);
}

/* The reader stands behind the entry's '{'. */
static void resource_entry_read(struct ml_json_reader *reader, struct entry *entry)
{
    ml_buf_clear(&entry->name);
    ml_buf_clear(&entry->kind);
    entry->namespaced = false;
    while (ml_json_next(reader) == ML_JSON_KEY) {
        bool is_name = ml_str_is(reader->text, "name");
        bool is_kind = ml_str_is(reader->text, "kind");
        bool is_namespaced = ml_str_is(reader->text, "namespaced");
        struct ml_str raw = ml_json_skip(reader);
        if (is_name)
            ml_json_to_string(raw, &entry->name);
        else if (is_kind)
            ml_json_to_string(raw, &entry->kind);
        else if (is_namespaced)
            entry->namespaced = ml_str_is(raw, "true");
    }
}

static bool resource_entry_valid(const struct entry *entry)
{
    struct ml_gvk ignored;
    return ml_name_valid(ml_buf_str(&entry->name)) &&
           ml_gvk_parse(ML_STR("v1"), ml_buf_str(&entry->kind), &ignored);
}

/* The plurals with a status subresource: keys own themselves. */
static void statuses_fini(struct ml_map *statuses)
{
    ml_map_each (statuses, cursor, plural)
        free(plural);
    ml_map_fini(statuses);
}

static void note_status_subresource(struct ml_map *statuses, struct ml_str name)
{
    if (!ml_str_ends(name, "/status"))
        return;
    struct ml_str plural = {name.ptr, name.len - strlen("/status")};
    if (ml_map_get(statuses, plural))
        return;
    char *copy = ml_str_dup(plural);
    ml_map_put(statuses, (struct ml_str){copy, plural.len}, copy);
}

/* Reads the entries: without `group` only to learn which of them have a status, then again to learn
 * them as kinds of `group`. Entries without a valid kind and name are passed over. */
static void read_entries(struct ml_str resources, struct ml_map *statuses,
                         const struct group *group)
{
    ML_AUTO(ml_json_reader_fini) struct ml_json_reader reader;
    ML_AUTO(resource_entry_fini) struct entry entry = {.namespaced = false};
    ml_json_reader_init(&reader, resources, 0);
    if (ml_json_next(&reader) != ML_JSON_ARRAY)
        return;
    while (ml_json_next(&reader) == ML_JSON_OBJECT) {
        resource_entry_read(&reader, &entry);
        struct ml_str name = ml_buf_str(&entry.name);
        if (!group) {
            note_status_subresource(statuses, name);
            continue;
        }
        if (!resource_entry_valid(&entry))
            continue;
        const struct resource found = {
            .kind = ml_buf_str(&entry.kind),
            .plural = name,
            .namespaced = entry.namespaced,
            .has_status = ml_map_get(statuses, name) != NULL,
        };
        learn_kind(group->discovery, ml_str_of(group->api_version), &found);
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
    ML_AUTO_FREE char *api_version = make_api_version(gvk);
    struct ml_discovery_wait *wait = ml_new(struct ml_discovery_wait);
    wait->discovery = discovery;
    wait->key = make_kind_key(ml_str_of(api_version), gvk->kind);
    wait->done = done;
    wait->context = context;
    ml_task_init(&wait->task, notify_resolved, wait);
    ml_list_init(&wait->node);
    if (find_known_kind(discovery, wait->key)) {
        settle_wait(wait, NULL);
        return wait;
    }
    struct group *group = group_get(discovery, ml_str_of(api_version));
    if (group_fresh(group)) {
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
