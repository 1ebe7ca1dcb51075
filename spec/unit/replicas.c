#include "replicas.h"

#include "codec/json.h"
#include "run/transport_embedded.h"
#include "run/world_source.h"

#include <stdio.h>
#include <unistd.h>

#define FOLDER    "/tmp/moonloop-test-XXXXXX"
#define WALL_NS   (INT64_C(1767225600) * ML_NS_PER_S)
#define TURNS_MAX 50000000

static int64_t now_ns(const struct replicas *all)
{
    return all->clock.monotonic_ns;
}

int64_t replicas_now_ms(const struct replicas *all)
{
    return (now_ns(all) - all->start_ns) / ML_NS_PER_MS;
}

/* ---- the log ---- */

static void on_handled(void *context, const struct wire_request *request)
{
    const struct replica *replica = context;
    struct replicas *all = replica->all;
    if (all->log_len == all->log_capacity) {
        all->log_capacity = ML_MAX((size_t)1024, 2 * all->log_capacity);
        all->log = ml_realloc(all->log, all->log_capacity * sizeof *all->log);
    }
    all->log[all->log_len++] = (struct replicas_request){
        .at_ns = now_ns(all) - all->start_ns,
        .replica = replica->index,
        .start = request->sender,
        .status = request->status,
        .method = ml_strdup(request->method),
        .path = ml_strdup(request->path),
        .body = ml_strdup(request->body),
    };
}

bool request_is_lease(const struct replicas_request *request)
{
    return strstr(request->path, "/leases") != NULL;
}

bool request_wrote(const struct replicas_request *request)
{
    return strcmp(request->method, "GET") != 0 && request->status / 100 == 2;
}

char *request_name(const struct replicas_request *request, const char *plural)
{
    ML_AUTO_FREE char *part = ml_asprintf("/%s", plural);
    const char *at = strstr(request->path, part);
    if (!at)
        return NULL;
    at += strlen(part);
    if (*at == '/')
        return ml_strndup(at + 1, strcspn(at + 1, "/?"));
    return ml_json_find_string(ml_str_of(request->body), "metadata", "name", NULL);
}

/* ---- a life ---- */

static void on_lost(void *context, const struct ml_err *err)
{
    struct replica *self = context;
    (void)err;
    self->lost = true;
}

static void on_ended(void *context)
{
    struct replica *self = context;
    self->ended = true;
}

static struct wire *connect_to(struct replica *self)
{
    struct replicas *all = self->all;
    return wire_new(&(struct wire_opts){
        .near = self->loop,
        .far = all->loop,
        .server = ml_transport_embedded_new(all->loop, all->server, NULL),
        .random = &all->random,
        .sender = self->starts,
        .handled = on_handled,
        .context = self,
    });
}

static void make_operator(struct replica *self)
{
    static const char *const everywhere[] = {NULL};
    const struct ml_replica_opts replica = {
        .transport = wire_seam(self->leases),
        .ns = "default",
        .name = "moonloop",
        .identity = self->name,
        .times = ML_LEASE_TIMES_DEFAULT,
        .shares = self->all->shares,
        .lost = on_lost,
        .context = self,
    };
    const struct ml_operator_opts opts = {
        .virtual_time = true,
        .loop = self->loop,
        .transport = wire_seam(self->work),
        .random = &self->all->random,
        .log = self->all->host_log.fd > 0 ? &self->all->host_log : NULL,
        .metrics = self->metrics,
        .namespaces = everywhere,
        .instance = self->name,
        .replica = &replica,
    };
    self->operator= ml_operator_new(&opts);
    ml_operator_add_source(self->operator, world_source_new(self->loop, self->all->script));
}

struct replica *replica_start(struct replicas *all, size_t index, int rate)
{
    struct replica *self = &all->replicas[index];
    ml_assert(self->state == REPLICA_ABSENT);
    self->all = all;
    self->index = index;
    self->starts++;
    self->rate = rate;
    self->lost = self->ended = false;
    snprintf(self->name, sizeof self->name, "%c%d", (int)('a' + index), self->starts);
    /* Another machine's clock: it shares neither zero nor wall time with the others. */
    ml_clock_fake_init(&self->clock, WALL_NS + (int64_t)index * 3600 * ML_NS_PER_S);
    self->clock.monotonic_ns = self->base_ns = (int64_t)(index + 1) * 1000 * ML_NS_PER_S;
    self->base_real_ns = now_ns(all);
    self->loop = ml_loop_new(&self->clock.clock);
    self->work = connect_to(self);
    self->leases = connect_to(self);
    self->metrics = ml_metrics_new();
    make_operator(self);
    ml_operator_start(self->operator);
    self->state = REPLICA_RUNS;
    return self;
}

/* Its loop goes; what it has sent goes on, and its wires with it. */
static void end_life(struct replica *self)
{
    struct replicas *all = self->all;
    ml_operator_free(ml_take(&self->operator));
    wire_seam(self->work)->free(wire_seam(self->work));
    wire_seam(self->leases)->free(wire_seam(self->leases));
    ml_assert(all->old_wire_count + 2 <= ML_COUNT(all->old_wires));
    all->old_wires[all->old_wire_count++] = ml_take(&self->work);
    all->old_wires[all->old_wire_count++] = ml_take(&self->leases);
    ml_metrics_free(ml_take(&self->metrics));
    ml_loop_free(ml_take(&self->loop));
    self->state = REPLICA_ABSENT;
}

void replica_kill(struct replica *self)
{
    if (self->state != REPLICA_ABSENT)
        end_life(self);
}

void replica_sleep(struct replica *self)
{
    ml_assert(self->state == REPLICA_RUNS);
    self->state = REPLICA_STOPPED;
}

void replica_wake(struct replica *self)
{
    ml_assert(self->state == REPLICA_STOPPED);
    self->state = REPLICA_RUNS;
}

void replica_term(struct replica *self)
{
    ml_assert(self->state == REPLICA_RUNS);
    ml_operator_stop(self->operator, 25 * ML_NS_PER_S, on_ended, self);
}

/* ---- time ---- */

/* When a replica's loop is next needed, on the server's clock, rounded up. */
static int64_t next_of(const struct replica *self)
{
    if (self->state != REPLICA_RUNS)
        return INT64_MAX;
    int64_t next = ml_loop_next(self->loop);
    if (next == 0 || next <= self->clock.monotonic_ns)
        return 0;
    if (next > self->clock.monotonic_ns + INT64_C(100000) * ML_NS_PER_S)
        return INT64_MAX;
    int64_t passed = next - self->base_ns;
    return self->base_real_ns + (passed * 1000 + self->rate - 1) / self->rate;
}

static void set_time(struct replicas *all, int64_t real_ns)
{
    ml_clock_fake_advance(&all->clock, real_ns - now_ns(all));
    for (size_t i = 0; i < REPLICAS_MAX; i++) {
        struct replica *self = &all->replicas[i];
        if (self->state == REPLICA_ABSENT)
            continue;
        int64_t at = self->base_ns + (real_ns - self->base_real_ns) * self->rate / 1000;
        ml_clock_fake_advance(&self->clock, at - self->clock.monotonic_ns);
    }
}

static void turn(struct replicas *all)
{
    ml_loop_poll(all->loop);
    if (all->check)
        all->check(all->context);
    for (size_t i = 0; i < REPLICAS_MAX; i++) {
        struct replica *self = &all->replicas[i];
        if (self->state != REPLICA_RUNS)
            continue;
        ml_loop_poll(self->loop);
        if (all->check)
            all->check(all->context);
        if (self->lost || self->ended)
            end_life(self);
    }
}

void replicas_run(struct replicas *all, int64_t ms)
{
    int64_t end_ns = now_ns(all) + ms * ML_NS_PER_MS;
    turn(all);
    for (int turns = 0; now_ns(all) < end_ns; turns++) {
        int64_t next = ML_MIN(end_ns, ml_loop_next(all->loop));
        for (size_t i = 0; i < REPLICAS_MAX; i++)
            next = ML_MIN(next, next_of(&all->replicas[i]));
        ml_assert(turns < TURNS_MAX);
        set_time(all, ML_MAX(next, now_ns(all)));
        turn(all);
    }
}

/* ---- the world ---- */

static void write_script(struct replicas *all, const char *script)
{
    snprintf(all->folder, sizeof all->folder, "%s", FOLDER);
    assert_non_null(mkdtemp(all->folder));
    all->script = ml_asprintf("%s/script.lua", all->folder);
    FILE *out = fopen(all->script, "w");
    assert_non_null(out);
    fputs(script, out);
    fclose(out);
}

struct replicas *replicas_new(const char *script, uint64_t seed)
{
    struct replicas *all = ml_new(struct replicas);
    setenv("LUA_PATH", SOURCE_DIR "/lua/?.lua;" SOURCE_DIR "/lua/?/init.lua;;", 1);
    write_script(all, script);
    ml_clock_fake_init(&all->clock, WALL_NS);
    all->start_ns = now_ns(all);
    ml_random_init(&all->random, seed);
    all->loop = ml_loop_new(&all->clock.clock);
    const struct ml_apiserver_options server = {
        .loop = all->loop, .clock = &all->clock.clock, .random = &all->random};
    struct ml_err err;
    if (ml_apiserver_new(&server, &all->server, &err) < 0)
        fail_msg("%s", err.message);
    ml_loop_poll(all->loop);
    if (getenv("REPLICAS_LOG"))
        ml_log_init(&all->host_log, &all->clock.clock, STDERR_FILENO, ML_LOG_TEXT, ML_LOG_DEBUG);
    return all;
}

void replicas_free(struct replicas *all)
{
    for (size_t i = 0; i < REPLICAS_MAX; i++)
        if (all->replicas[i].state != REPLICA_ABSENT)
            end_life(&all->replicas[i]);
    for (size_t i = 0; i < all->old_wire_count; i++)
        wire_free(all->old_wires[i]);
    ml_apiserver_free(all->server);
    ml_loop_free(all->loop);
    for (size_t i = 0; i < all->log_len; i++) {
        free(all->log[i].method);
        free(all->log[i].path);
        free(all->log[i].body);
    }
    free(all->log);
    unlink(all->script);
    rmdir(all->folder);
    free(all->script);
    free(all);
}

void replicas_lua(struct replicas *all, const char *statements)
{
    struct ml_trusted *trusted = ml_apiserver_trusted(all->server);
    ML_AUTO_FREE char *text = ml_asprintf(
        "local server = require 'moonloop.apiserver.running'\n"
        "local host = require 'moonloop.host'\n"
        "local function call(...) return server:call(...) end\n"
        "local function get(path) local _, object = call('GET', path) return object end\n%s",
        statements);
    struct ml_err err;
    if (ml_trusted_run(trusted, "test", ml_str_of(text), &err) < 0)
        fail_msg("%s", ml_trusted_traceback(trusted));
}
