/* F24: writes that an old leader sent while it led, and that arrive 20 s later, when another one
 * leads: preconditions on uid and resourceVersion make them fail, or they do no harm. From each
 * write of the old leader on, everything it sends is late. */
#include "replicas.h"

#include "codec/json.h"
#include "tried.h"

#include <stdio.h>

#define MAPS    3
#define INDEXES 16
#define LATE_NS (20 * ML_NS_PER_S)

/* Every verb: for each value of n the map gets a child that carries it; the child of the value
 * before is deleted first, under the same name. */
static const char *const script =
    "local moonloop = require 'moonloop'\n"
    "local ConfigMap = moonloop.kind('v1', 'ConfigMap')\n"
    "local Secret = moonloop.kind('v1', 'Secret')\n"
    "local last = {}\n"
    "return moonloop.controller { name = 'counter', reconciles = ConfigMap, owns = { Secret },\n"
    "  reconcile = function(map, ctx)\n"
    "    local name, now = map.metadata.name, ctx.now()\n"
    "    local n = tonumber(map.data.n)\n"
    "    if not n then return end\n"
    "    if last[name] and now < last[name] + 1 then return { requeue_at = last[name] + 1 } end\n"
    "    local child = ctx.get(Secret, name)\n"
    "    if child and child.metadata.labels.n ~= map.data.n then\n"
    "      assert(ctx.delete(child))\n"
    "      child = nil\n"
    "    end\n"
    "    if not child then\n"
    "      assert(ctx.ensure { apiVersion = 'v1', kind = 'Secret',\n"
    "        metadata = { name = name, labels = { n = map.data.n } } })\n"
    "      return { requeue_after = 0.2 }\n"
    "    end\n"
    "    assert(ctx.patch(map, { data = { n = tostring(n + 1) } }))\n"
    "    last[name] = now\n"
    "    return { requeue_after = 1 }\n"
    "  end }\n";

static struct replicas *world_new(void)
{
    struct replicas *all = replicas_new(script, 1);
    replicas_lua(all, "for i = 1, 3 do assert(call('POST', '/api/v1/namespaces/default/configmaps',"
                      "{ kind = 'ConfigMap', apiVersion = 'v1', metadata = { name = 'map-' .. i },"
                      " data = { n = '0' } }) == 201) end");
    return all;
}

static bool is_work(const struct replicas_request *request)
{
    return strcmp(request->method, "GET") != 0 && !request_is_lease(request) &&
           !strstr(request->path, "/events");
}

static size_t writes_of(const struct replicas *all, size_t replica, size_t from)
{
    size_t count = 0;
    for (size_t i = from; i < all->log_len; i++)
        count += is_work(&all->log[i]) && all->log[i].replica == replica;
    return count;
}

static void fail_at(const struct replicas *all, size_t index, const char *why)
{
    const struct replicas_request *request = &all->log[index];
    fail_msg("%s: at %.3f s %c %s %s -> %d %.200s", why,
             (double)request->at_ns / (double)ML_NS_PER_S, (int)('a' + request->replica),
             request->method, request->path, request->status, request->body);
}

/* I4: each value of n once, in order, whoever wrote it. */
static void check_counted(const struct replicas *all)
{
    int64_t n[MAPS + 1] = {0};
    for (size_t i = 0; i < all->log_len; i++) {
        const struct replicas_request *request = &all->log[i];
        ML_AUTO_FREE char *name = request_name(request, "configmaps");
        if (!name || !request_wrote(request))
            continue;
        int64_t value = -1;
        ML_AUTO_FREE char *text = ml_json_find_string(ml_str_of(request->body), "data", "n", NULL);
        int64_t *last = &n[atoi(name + strlen("map-"))];
        if (!text || !ml_str_to_i64(ml_str_of(text), &value) || value != *last + 1)
            fail_at(all, i, "a value was left out, or written twice");
        *last = value;
    }
}

/* I3: what changes or deletes names the object that was seen; so of the old leader's writes that
 * arrive when the new one has written the same object, none is accepted. A create has no object to
 * name: it fails when the name is taken. Returns how many came too late and were refused. */
static size_t check_late(const struct replicas *all, size_t from)
{
    size_t refused = 0;
    bool taken[MAPS + 1] = {false};
    for (size_t i = from; i < all->log_len; i++) {
        const struct replicas_request *request = &all->log[i];
        ML_AUTO_FREE char *name = request_name(request, "configmaps");
        if (!is_work(request))
            continue;
        if (request->replica == 1 && name && request_wrote(request))
            taken[atoi(name + strlen("map-"))] = true;
        if (request->replica != 0)
            continue;
        refused += request->status == 409;
        struct ml_str raw, body = ml_str_of(request->body);
        if (strcmp(request->method, "DELETE") == 0 &&
            !ml_json_find(body, &raw, "preconditions", "uid", NULL))
            fail_at(all, i, "a delete without the uid");
        if (strcmp(request->method, "PATCH") == 0 &&
            !ml_json_find(body, &raw, "metadata", "resourceVersion", NULL))
            fail_at(all, i, "a patch without the resourceVersion");
        if (name && taken[atoi(name + strlen("map-"))] && request_wrote(request))
            fail_at(all, i, "a late write was accepted");
    }
    return refused;
}

static void check_end(struct replicas *all)
{
    replicas_lua(all, "for i = 1, 3 do\n"
                      "  local map = get('/api/v1/namespaces/default/configmaps/map-' .. i)\n"
                      "  assert(tonumber(map.data.n) > 20, map.data.n)\n"
                      "  local child = get('/api/v1/namespaces/default/secrets/map-' .. i)\n"
                      "  if child.kind == 'Secret' then\n"
                      "    assert(child.metadata.ownerReferences[1].uid == map.metadata.uid)\n"
                      "    assert(map.data.n - child.metadata.labels.n <= 1)\n"
                      "  end\n"
                      "end");
}

static void test_takeover_while_writes_are_under_way(void **state)
{
    size_t refused = 0;
    (void)state;
    for (size_t index = 1; index <= INDEXES; index++) {
        struct replicas *all = world_new();
        struct replica *old = replica_start(all, 0, 1000);
        replicas_run(all, 1000);
        replica_start(all, 1, 1000);
        replicas_run(all, 3000);
        size_t before = writes_of(all, 0, 0);
        while (writes_of(all, 0, 0) < before + index)
            replicas_run(all, 1);
        struct wire_mood *work = wire_mood(old->work);
        work->there_min_ns = work->there_max_ns = LATE_NS;
        wire_mood(old->leases)->silent = true;
        size_t from = all->log_len;
        replicas_run(all, 45000);
        assert_true(writes_of(all, 1, from) > 0);
        refused += check_late(all, from);
        check_counted(all);
        check_end(all);
        replicas_free(all);
    }
    assert_true(refused >= INDEXES);
    faults_tried("F24", INDEXES);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_takeover_while_writes_are_under_way),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
