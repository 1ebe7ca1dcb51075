/* The world of `moonloop test`: server, faults and operator in one process on a clock that stands
 * still; what its scripts ask by ctx.http, answered by a function of the test; and the lines of
 * them that run. Driven by Lua with `require "cluster.world"`, by specs in C directly. */
#include "cluster/host/world.h"

#include <math.h>
#include <stdio.h>
#include <sys/stat.h>
#include <unistd.h>

#include "cluster/host/local_webhooks.h"
#include "cluster/host/transport_embedded.h"
#include "codec/base64.h"
#include "codec/json.h"
#include "operator/inspect.h"
#include "operator/text_check.h"
#include "script/script.h"
#include "state/outbound.h"

/* ---- ctx.http, of any origin, answered by cluster/testing/http.lua ---- */

struct world_http {
    struct ml_outbound seam;
    struct ml_loop *loop;
    struct ml_server_lua *lua;
};

struct ml_outbound_call {
    struct world_http *world;
    struct ml_buf request; /* JSON, for Lua */
    int (*may_send)(void *context, struct ml_err *err);
    ml_outbound_done *done;
    void *context;
    struct ml_task task;
};

static bool allows_all(struct ml_outbound *seam, const char *origin)
{
    (void)seam, (void)origin;
    return true;
}

static void put_base64(struct ml_json_writer *writer, const char *key, struct ml_str bytes)
{
    ML_AUTO(ml_buf_fini) struct ml_buf text = ML_BUF_INIT;
    (void)ml_base64_encode(bytes, &text);
    ml_json_put_string(writer, key, ml_buf_str(&text));
}

static void write_request(const struct ml_outbound_request *request, struct ml_buf *out)
{
    struct ml_json_writer writer;
    ml_json_writer_init(&writer, out);
    ml_json_begin_object(&writer);
    ml_json_put_string(&writer, "method", ml_str_of(request->method));
    ml_json_put_string(&writer, "url", ml_str_of(request->url));
    ml_json_key(&writer, ML_STR("headers"));
    ml_json_begin_object(&writer);
    for (size_t i = 0; i < request->header_count; i++)
        ml_json_put_string(&writer, request->headers[i].name, ml_str_of(request->headers[i].value));
    ml_json_end_object(&writer);
    put_base64(&writer, "body", request->body);
    ml_json_end_object(&writer);
}

/* Reads the answer that http.lua returned. */
static int read_answer(struct ml_str json, struct ml_buf *out, struct ml_err *err)
{
    ML_AUTO_FREE char *message = ml_json_find_string(json, "message", NULL);
    ML_AUTO_FREE char *kind = ml_json_find_string(json, "kind", NULL);
    ML_AUTO_FREE char *body = ml_json_find_string(json, "body", NULL);
    struct ml_str head;
    if (message)
        return ml_err_set(err, kind && strcmp(kind, "Timeout") == 0 ? ML_ETIMEOUT : ML_ENETWORK,
                          "%s", message);
    if (!body || !ml_json_find(json, &head, "head", NULL))
        return ml_err_set(err, ML_ENETWORK, "world.http: no answer");
    ml_buf_append_str(out, head);
    ml_buf_putc(out, '\n');
    size_t before = out->len;
    if (!ml_base64_decode(ml_str_of(body), out) || out->len - before > ML_OUTBOUND_BODY_MAX)
        return ml_err_set(err, ML_ELIMIT, "the answer has more than 1 MiB");
    return 0;
}

static void call_free(struct ml_outbound_call *call)
{
    ml_task_cancel(&call->task);
    ml_buf_fini(&call->request);
    free(call);
}

static void on_call_turn(void *context)
{
    struct ml_outbound_call *call = context;
    ML_AUTO(ml_buf_fini) struct ml_buf result = ML_BUF_INIT, answer = ML_BUF_INIT;
    struct ml_err err = ML_ERR_INIT;
    int r = call->may_send ? call->may_send(call->context, &err) : 0;
    if (r == 0 && ml_server_lua_call(call->world->lua, "cluster.testing.http", "answer",
                                     ml_buf_str(&call->request), &result, &err) < 0)
        r = ml_err_set(&err, ML_ENETWORK, "world.http: %s",
                       ml_server_lua_traceback(call->world->lua));
    if (r == 0)
        r = read_answer(ml_buf_str(&result), &answer, &err);
    call->done(call->context, ml_buf_str(&answer), r < 0 ? &err : NULL);
    call_free(call);
}

static struct ml_outbound_call *send_to_test(struct ml_outbound *seam,
                                             const struct ml_outbound_request *request,
                                             ml_outbound_done *done, void *context)
{
    struct world_http *self = ml_container_of(seam, struct world_http, seam);
    struct ml_outbound_call *call = ml_new(struct ml_outbound_call);
    call->world = self;
    call->may_send = request->may_send;
    call->done = done;
    call->context = context;
    write_request(request, &call->request);
    ml_task_init(&call->task, on_call_turn, call);
    ml_task_defer(&call->task, self->loop);
    return call;
}

static void cancel_call(struct ml_outbound *seam, struct ml_outbound_call *call)
{
    (void)seam;
    call_free(call);
}

/* Both are borrowed. Free it when no operator uses it any more. */
static struct ml_outbound *world_http_new(struct ml_loop *loop, struct ml_server_lua *lua)
{
    struct world_http *self = ml_new(struct world_http);
    self->seam = (struct ml_outbound){allows_all, send_to_test, cancel_call};
    self->loop = loop;
    self->lua = lua;
    return &self->seam;
}

static void world_http_free(struct ml_outbound *outbound)
{
    if (outbound)
        free(ml_container_of(outbound, struct world_http, seam));
}

/* ---- the lines of scripts that can run, and how often each did, for --coverage ---- */

#define COVERED_LINES_MAX 1048576 /* of a file: it has at most 1 MiB */
#define CANNOT_RUN        UINT32_MAX

struct covered_file {
    char *path;
    const char *name; /* in the path: as scripts of this world call it */
    uint32_t *times;  /* by line; or CANNOT_RUN */
    size_t count;     /* of these */
    bool is_of_world;
};

/* Over all resets of a world. */
struct coverage {
    struct ml_coverage sink;
    const char *const *scripts; /* of the world */
    struct covered_file *files;
    size_t count;
};

/* The path of a file that a script of the world calls by this name; the caller frees it. */
static char *path_of(const struct coverage *self, const char *name)
{
    struct stat status;
    for (const char *const *script = self->scripts; script && *script; script++) {
        bool is_folder = stat(*script, &status) == 0 && S_ISDIR(status.st_mode);
        const char *slash = strrchr(*script, '/');
        int len = is_folder ? (int)strlen(*script) : slash ? (int)(slash - *script) : 0;
        while (len > 1 && (*script)[len - 1] == '/')
            len--;
        char *path = len > 0 ? ml_asprintf("%.*s/%s", len, *script, name) : ml_strdup(name);
        if (access(path, R_OK) == 0)
            return path;
        free(path);
    }
    return ml_strdup(name);
}

static struct covered_file *find_by_name(const struct coverage *self, const char *name)
{
    for (size_t i = self->count; i-- > 0;)
        if (self->files[i].is_of_world && strcmp(self->files[i].name, name) == 0)
            return &self->files[i];
    return NULL;
}

static struct covered_file *find_by_path(const struct coverage *self, const char *path)
{
    for (size_t i = 0; i < self->count; i++)
        if (strcmp(self->files[i].path, path) == 0)
            return &self->files[i];
    return NULL;
}

static struct covered_file *add_file(struct coverage *self, const char *name)
{
    char *path = path_of(self, name);
    struct covered_file *file = find_by_path(self, path);
    if (file) {
        free(path);
    } else {
        self->files = ml_realloc(self->files, (self->count + 1) * sizeof *self->files);
        file = &self->files[self->count++];
        *file = (struct covered_file){.path = path};
    }
    file->name = file->path + strlen(file->path) - strlen(name);
    file->is_of_world = true;
    return file;
}

static void on_can_run(struct ml_coverage *sink, const char *name, int line)
{
    struct coverage *self = ml_container_of(sink, struct coverage, sink);
    struct covered_file *file = find_by_name(self, name);
    size_t needed = (size_t)line + 1;
    if (line <= 0 || needed > COVERED_LINES_MAX)
        return;
    if (!file)
        file = add_file(self, name);
    if (needed > file->count) {
        file->times = ml_realloc(file->times, needed * sizeof *file->times);
        memset(file->times + file->count, 0xff, (needed - file->count) * sizeof *file->times);
        file->count = needed;
    }
    if (file->times[line] == CANNOT_RUN)
        file->times[line] = 0;
}

static void on_runs(struct ml_coverage *sink, const char *name, int line)
{
    struct coverage *self = ml_container_of(sink, struct coverage, sink);
    struct covered_file *file = find_by_name(self, name);
    if (file && line > 0 && (size_t)line < file->count && file->times[line] < CANNOT_RUN - 1)
        file->times[line]++;
}

static struct coverage *coverage_new(void)
{
    struct coverage *self = ml_new(struct coverage);
    self->sink = (struct ml_coverage){on_can_run, on_runs};
    return self;
}

static void coverage_free(struct coverage *self)
{
    if (!self)
        return;
    for (size_t i = 0; i < self->count; i++) {
        free(self->files[i].path);
        free(self->files[i].times);
    }
    free(self->files);
    free(self);
}

static struct ml_coverage *coverage_sink(struct coverage *self)
{
    return self ? &self->sink : NULL;
}

/* Scripts name their files as found in these files and folders from now on. `scripts` ends with
 * NULL, and is borrowed until the next call. */
static void coverage_begin_world(struct coverage *self, const char *const *scripts)
{
    self->scripts = scripts;
    for (size_t i = 0; i < self->count; i++)
        self->files[i].is_of_world = false;
}

static int by_path(const void *a, const void *b)
{
    return strcmp(((const struct covered_file *)a)->path, ((const struct covered_file *)b)->path);
}

/* As a list of { file, lines = list of { line, times } }, by path. */
static void coverage_write(const struct coverage *self, struct ml_json_writer *writer)
{
    if (self->count > 0)
        qsort(self->files, self->count, sizeof *self->files, by_path);
    ml_json_begin_array(writer);
    for (size_t i = 0; i < self->count; i++) {
        const struct covered_file *file = &self->files[i];
        ml_json_begin_object(writer);
        ml_json_put_string(writer, "file", ml_str_of(file->path));
        ml_json_key(writer, ML_STR("lines"));
        ml_json_begin_array(writer);
        for (size_t line = 1; line < file->count; line++) {
            if (file->times[line] == CANNOT_RUN)
                continue;
            ml_json_begin_array(writer);
            ml_json_int(writer, (int64_t)line);
            ml_json_int(writer, file->times[line]);
            ml_json_end_array(writer);
        }
        ml_json_end_array(writer);
        ml_json_end_object(writer);
    }
    ml_json_end_array(writer);
}

/* ---- the world ---- */

#define ROUNDS_MAX  10000 /* of one settle */
#define ROUNDS_MORE 200   /* after those, to find what does not end */
#define TALLIES_MAX 16
#define WALL_NS     (INT64_C(1767225600) * ML_NS_PER_S)
#define INSTANCE    "moonloop-world"
/* A world is small and short-lived: collecting its garbage as often as a long-lived server's would
 * take a third of the time of its tests. */
#define GARBAGE_PERCENT 400

struct world_source {
    struct ml_source source;
    struct ml_loop *loop;
    struct ml_task read;
};

static void world_source_read(void *context)
{
    struct world_source *self = context;
    ML_AUTO(ml_files_fini) struct ml_files files = ML_FILES_INIT;
    struct ml_err err = ML_ERR_INIT;
    if (ml_files_read(&files, &ml_files_scripts, self->source.name, &err) == 0)
        ml_source_notify_files(&self->source, &files);
    else
        ml_source_notify_trouble(&self->source, &err);
}

static void world_source_start(struct ml_source *source, struct ml_services *services)
{
    struct world_source *self = ml_container_of(source, struct world_source, source);
    (void)services;
    ml_task_defer(&self->read, self->loop);
}

static void world_source_free(struct ml_source *source)
{
    struct world_source *self = ml_container_of(source, struct world_source, source);
    ml_task_cancel(&self->read);
    free(self);
}

static const struct ml_source_class world_source_class = {.start = world_source_start,
                                                          .free = world_source_free};

struct ml_source *ml_world_source_new(struct ml_loop *loop, const char *path)
{
    struct world_source *self = ml_new(struct world_source);
    self->source.class = &world_source_class;
    self->source.name = ml_strdup(path);
    self->loop = loop;
    ml_task_init(&self->read, world_source_read, self);
    return &self->source;
}

/* A request, and how often it was made in the rounds after ROUNDS_MAX. */
struct tally {
    char *request; /* "PATCH /api/v1/…" */
    size_t count;
};

/* Of an operator. */
enum life {
    LIFE_AHEAD, /* starts once the server is idle */
    LIFE_BEGUN,
    LIFE_OVER, /* replaced at the end of the loop's round */
};

struct ml_world {
    struct ml_clock_fake clock;
    struct ml_random random;
    struct ml_log log;
    struct ml_loop *loop;
    struct ml_apiserver *server;
    char **scripts;  /* as in the setup; copies */
    bool is_running; /* inside settle or advance */

    struct ml_transport *transport; /* with the faults, which outlive a restart */
    struct ml_outbound *outbound;   /* answers ctx.http */
    struct coverage *coverage;      /* NULL: nobody asks */

    /* Made anew for each life of the operator. */
    struct ml_metrics *metrics;
    struct ml_operator *operator;
    enum life life;
    struct ml_err trouble; /* with registering webhooks: of the settle under way */

    struct tally tallies[TALLIES_MAX];
    size_t tally_count;
};

static void tally_request(void *context, const struct ml_transport_request *request)
{
    struct ml_world *world = context;
    ML_AUTO_FREE char *text = ml_asprintf("%s %s", request->method, request->path);
    for (size_t i = 0; i < world->tally_count; i++) {
        if (strcmp(world->tallies[i].request, text) == 0) {
            world->tallies[i].count++;
            return;
        }
    }
    if (world->tally_count < TALLIES_MAX)
        world->tallies[world->tally_count++] = (struct tally){ml_take(&text), 1};
}

static void on_script_live(void *context)
{
    struct ml_world *world = context;
    struct ml_err err = ML_ERR_INIT;
    if (ml_local_webhooks_register(world->operator, ml_world_server_lua(world), &err) < 0)
        world->trouble = err;
}

static void make_world_operator(struct ml_world *world)
{
    static const char *const everywhere[] = {NULL};
    static struct ml_checked_texts
        checked; /* by all worlds: most have the same scripts and kinds */
    world->metrics = ml_metrics_new();
    const struct ml_operator_opts opts = {
        .virtual_time = true,
        .loop = world->loop,
        .transport = world->transport,
        .random = &world->random,
        .log = world->log.fd < 0 ? NULL : &world->log,
        .metrics = world->metrics,
        .namespaces = everywhere,
        .instance = INSTANCE,
        .outbound = world->outbound,
        .checked = &checked,
        .coverage = coverage_sink(world->coverage),
    };
    world->operator= ml_operator_new(&opts);
    struct ml_scripts *scripts = ml_operator_scripts(world->operator);
    ml_operator_on_live(world->operator, on_script_live, world);
    for (size_t i = 0; world->scripts[i]; i++)
        ml_scripts_add_source(scripts, ml_world_source_new(world->loop, world->scripts[i]));
    world->life = LIFE_AHEAD;
}

static void free_world_operator(struct ml_world *world)
{
    ml_operator_free(ml_take(&world->operator));
    ml_metrics_free(ml_take(&world->metrics));
}

static void free_world_scripts(struct ml_world *world)
{
    for (char **script = world->scripts; script && *script; script++)
        free(*script);
    free(world->scripts);
    world->scripts = NULL;
}

static void copy_world_scripts(struct ml_world *world, const char *const *scripts)
{
    size_t count = 0;
    while (scripts && scripts[count])
        count++;
    char **copies = ml_zalloc((count + 1) * sizeof *copies);
    for (size_t i = 0; i < count; i++)
        copies[i] = ml_strdup(scripts[i]);
    free_world_scripts(world); /* which `scripts` may be */
    world->scripts = copies;
}

static void set_time_and_seed(struct ml_world *world, const struct ml_world_setup *setup)
{
    ml_clock_fake_init(&world->clock, setup->wall_ns ? setup->wall_ns : WALL_NS);
    ml_random_init(&world->random, setup->seed);
}

/* Makes what uses the server: transport and operator. */
static void build_on_server(struct ml_world *world, const struct ml_world_setup *setup)
{
    world->transport = ml_transport_embedded_new(world->loop, world->server, NULL);
    copy_world_scripts(world, setup->scripts);
    if (world->coverage)
        coverage_begin_world(world->coverage, (const char *const *)world->scripts);
    make_world_operator(world);
}

static void tear_down_on_server(struct ml_world *world)
{
    free_world_operator(world);
    if (world->transport)
        world->transport->free(ml_take(&world->transport));
}

int ml_world_new(const struct ml_world_options *options, struct ml_world **out, struct ml_err *err)
{
    struct ml_world *world = ml_new(struct ml_world);
    set_time_and_seed(world, &options->setup);
    ml_log_init(&world->log, &world->clock.clock, options->log_fd, ML_LOG_TEXT, options->log_level);
    world->loop = ml_loop_new(&world->clock.clock);
    const struct ml_apiserver_options server = {
        .loop = world->loop,
        .clock = &world->clock.clock,
        .random = &world->random,
        .log = options->log_fd < 0 ? NULL : &world->log,
        .settings = options->setup.settings,
        .files_first = options->files_first,
        .garbage_percent = GARBAGE_PERCENT,
    };
    int r = ml_apiserver_new(&server, &world->server, err);
    if (r < 0) {
        ml_world_free(world);
        return r;
    }
    ml_local_webhooks_open(ml_world_server_lua(world), &world->operator);
    world->outbound = world_http_new(world->loop, ml_world_server_lua(world));
    world->coverage = options->coverage ? coverage_new() : NULL;
    build_on_server(world, &options->setup);
    *out = world;
    return 0;
}

void ml_world_free(struct ml_world *world)
{
    if (!world)
        return;
    tear_down_on_server(world);
    world_http_free(world->outbound);
    ml_apiserver_free(world->server);
    ml_loop_free(world->loop);
    coverage_free(world->coverage);
    free_world_scripts(world);
    free(world);
}

/* ML_EINVALID inside settle and advance. */
static int check_not_running(const struct ml_world *world, const char *what, struct ml_err *err)
{
    if (!world->is_running)
        return 0;
    return ml_err_set(err, ML_EINVALID, "%s: not from inside of what settle and advance run", what);
}

/* Begins again: an empty server, no faults, a new operator, the clock at its start. It is cheap,
 * because the server's Lua modules stay loaded. After a failure the server's content is undefined
 * until a reset succeeds. */
static int reset_world(struct ml_world *world, const struct ml_world_setup *setup,
                       struct ml_err *err)
{
    int r = check_not_running(world, "reset", err);
    if (r < 0)
        return r;
    tear_down_on_server(world);
    set_time_and_seed(world, setup);
    r = ml_apiserver_reset(world->server, setup->settings, err);
    build_on_server(world, setup); /* also on failure: a world always has one */
    return r;
}

/* Runs some more rounds to find the request that is repeated. */
static int fail_endless_settle(struct ml_world *world, struct ml_err *err)
{
    const struct tally *most = NULL;
    ml_transport_embedded_observe(world->transport, tally_request, world);
    (void)ml_loop_poll_rounds(world->loop, ROUNDS_MORE);
    ml_transport_embedded_observe(world->transport, NULL, NULL);
    for (size_t i = 0; i < world->tally_count; i++)
        if (!most || world->tallies[i].count > most->count)
            most = &world->tallies[i];
    if (most)
        ml_err_set(err, ML_ELIMIT, "no end after %d rounds: %s, %zu times in the last %d",
                   ROUNDS_MAX, most->request, most->count, ROUNDS_MORE);
    else
        ml_err_set(err, ML_ELIMIT,
                   "no end after %d rounds, and no request in the last %d: a timer or a deferred "
                   "function begins itself anew without waiting",
                   ROUNDS_MAX, ROUNDS_MORE);
    for (size_t i = 0; i < world->tally_count; i++)
        free(world->tallies[i].request);
    world->tally_count = 0;
    return err->kind;
}

static void replace_world_operator(struct ml_world *world)
{
    free_world_operator(world);
    make_world_operator(world);
}

static int poll_until_idle(struct ml_world *world, struct ml_err *err)
{
    for (size_t rounds = 0; rounds < ROUNDS_MAX; rounds++) {
        bool is_idle = ml_loop_poll_rounds(world->loop, 1);
        if (world->life == LIFE_OVER)
            replace_world_operator(world);
        else if (is_idle)
            return 0;
    }
    return fail_endless_settle(world, err);
}

static int settle_world(struct ml_world *world, struct ml_err *err)
{
    int r = poll_until_idle(world, err);
    while (r == 0 && world->life == LIFE_AHEAD) {
        world->life = LIFE_BEGUN;
        ml_operator_start(world->operator);
        r = poll_until_idle(world, err);
    }
    if (r == 0 && world->trouble.kind) {
        *err = world->trouble;
        r = err->kind;
    }
    world->trouble = ML_ERR_INIT;
    return r;
}

static int advance_world(struct ml_world *world, int64_t ns, struct ml_err *err)
{
    struct ml_clock *clock = &world->clock.clock;
    int64_t end = ml_clock_monotonic(clock) + ns;
    int r = settle_world(world, err);
    while (r == 0 && ml_clock_monotonic(clock) < end) {
        int64_t next = ML_MIN(ml_loop_next(world->loop), end);
        ml_clock_fake_advance(&world->clock, next - ml_clock_monotonic(clock));
        r = settle_world(world, err);
    }
    return r;
}

static int run_world(struct ml_world *world, const char *what, int64_t ns, struct ml_err *err)
{
    int r = check_not_running(world, what, err);
    if (r < 0)
        return r;
    world->is_running = true;
    r = advance_world(world, ns, err);
    world->is_running = false;
    return r;
}

int ml_world_settle(struct ml_world *world, struct ml_err *err)
{
    return run_world(world, "settle", 0, err);
}

int ml_world_advance(struct ml_world *world, int64_t ns, struct ml_err *err)
{
    return run_world(world, "advance", ns, err);
}

struct ml_server_lua *ml_world_server_lua(struct ml_world *world)
{
    return ml_apiserver_lua(world->server);
}

/* ---- `require "cluster.world"`: each function with one JSON value as argument and result; see
 * cluster/meta/world.lua ---- */

#define SCRIPTS_MAX 64
#define SECONDS_MAX 1e9

static int lua_settle(void *world, struct ml_str argument, struct ml_buf *result,
                      struct ml_err *err)
{
    (void)argument, (void)result;
    return ml_world_settle(world, err);
}

/* A number, as JSON; 0 when there is none. */
static int parse_number(struct ml_str json, const char *name, double *out, struct ml_err *err)
{
    ML_AUTO_FREE char *text = ml_str_dup(json);
    char *end = text;
    *out = strtod(text, &end);
    if (json.len > 0 && (*end || end == text || fabs(*out) > SECONDS_MAX * 10))
        return ml_err_set(err, ML_EINVALID, "%s: a number", name);
    return 0;
}

static int parse_nonnegative_number(struct ml_str json, const char *name, double *out,
                                    struct ml_err *err)
{
    int r = parse_number(json, name, out, err);
    if (r == 0 && *out < 0)
        r = ml_err_set(err, ML_EINVALID, "%s: a number from 0 on", name);
    return r;
}

static int parse_seconds(struct ml_str json, const char *name, double *out, struct ml_err *err)
{
    int r = parse_nonnegative_number(json, name, out, err);
    if (r == 0 && *out > SECONDS_MAX)
        r = ml_err_set(err, ML_EINVALID, "%s: seconds, at most 1e9", name);
    return r;
}

/* advance(seconds) */
static int lua_advance(void *world, struct ml_str argument, struct ml_buf *result,
                       struct ml_err *err)
{
    double seconds;
    (void)result;
    int r = parse_seconds(argument, "advance", &seconds, err);
    return r < 0 ? r : ml_world_advance(world, (int64_t)(seconds * (double)ML_NS_PER_S), err);
}

static int parse_field_number(struct ml_str object, const char *name, double *out,
                              struct ml_err *err)
{
    struct ml_str raw = {NULL, 0};
    (void)ml_json_find(object, &raw, name, NULL);
    return parse_nonnegative_number(raw, name, out, err);
}

static int parse_fault_kind(struct ml_str name, enum ml_fault_kind *out, struct ml_err *err)
{
    static const char *const names[] = {[ML_FAULT_REFUSE] = "refuse",
                                        [ML_FAULT_LOSE] = "lose",
                                        [ML_FAULT_LOSE_REPLY] = "lose_reply",
                                        [ML_FAULT_TIME_OUT] = "time_out",
                                        [ML_FAULT_CUT] = "cut",
                                        [ML_FAULT_HOLD] = "hold"};
    for (size_t i = 0; i < ML_COUNT(names); i++) {
        if (!ml_str_is(name, names[i]))
            continue;
        *out = (enum ml_fault_kind)i;
        return 0;
    }
    return ml_err_set(err, ML_EINVALID,
                      "fault: kind is refuse, lose, lose_reply, time_out, cut or hold");
}

/* fault{kind=, method=, path=, times=, status=, reason=, bytes=} -> number */
static int lua_fault(void *world, struct ml_str argument, struct ml_buf *result, struct ml_err *err)
{
    struct ml_world *self = world;
    double times = 0, status = 0, bytes = 0;
    ML_AUTO_FREE char *kind = ml_json_find_string(argument, "kind", NULL);
    ML_AUTO_FREE char *method = ml_json_find_string(argument, "method", NULL);
    ML_AUTO_FREE char *path = ml_json_find_string(argument, "path", NULL);
    ML_AUTO_FREE char *reason = ml_json_find_string(argument, "reason", NULL);
    struct ml_fault fault = {.method = method, .path = path, .reason = reason};
    int r = parse_fault_kind(ml_str_of(kind), &fault.kind, err);
    if (r == 0)
        r = parse_field_number(argument, "times", &times, err);
    if (r == 0)
        r = parse_field_number(argument, "status", &status, err);
    if (r == 0)
        r = parse_field_number(argument, "bytes", &bytes, err);
    if (r < 0)
        return r;
    if (fault.kind == ML_FAULT_REFUSE && (status < 400 || status > 599))
        return ml_err_set(err, ML_EINVALID, "fault: refuse needs a status from 400 to 599");
    fault.times = (size_t)times;
    fault.status = (int)status;
    fault.bytes = (size_t)bytes;
    ml_buf_printf(result, "%d", ml_transport_embedded_add_fault(self->transport, &fault));
    return 0;
}

/* heal(number) */
static int lua_heal(void *world, struct ml_str argument, struct ml_buf *result, struct ml_err *err)
{
    struct ml_world *self = world;
    double number;
    (void)result;
    int r = parse_nonnegative_number(argument, "heal", &number, err);
    if (r == 0)
        ml_transport_embedded_remove_fault(self->transport, (int)number);
    return r;
}

/* Replaces the operator as SIGKILL and a restart would: work and requests in progress are dropped,
 * nothing is remembered; server and faults stay. Inside settle and advance the operator dies at the
 * end of the loop's round, and answers until then are lost. */
static int lua_restart(void *world, struct ml_str argument, struct ml_buf *result,
                       struct ml_err *err)
{
    struct ml_world *self = world;
    (void)argument, (void)result, (void)err;
    if (self->is_running)
        self->life = LIFE_OVER;
    else
        replace_world_operator(self);
    return 0;
}

static void on_operator_stopped(void *context)
{
    struct ml_world *world = context;
    world->life = LIFE_OVER;
}

/* stop(seconds): as SIGTERM: the operator drains for so long, then another one replaces it. Does
 * nothing before the operator has started; a second call ends it at once. */
static int lua_stop(void *world, struct ml_str argument, struct ml_buf *result, struct ml_err *err)
{
    struct ml_world *self = world;
    double seconds;
    (void)result;
    int r = parse_seconds(argument, "stop", &seconds, err);
    if (r == 0 && self->life == LIFE_BEGUN)
        ml_operator_stop(self->operator, (int64_t)(seconds * (double)ML_NS_PER_S),
                         on_operator_stopped, self);
    return r;
}

/* set_wall_clock(seconds), which may be below 0; the monotonic clock is not changed */
static int lua_set_wall_clock(void *world, struct ml_str argument, struct ml_buf *result,
                              struct ml_err *err)
{
    struct ml_world *self = world;
    double seconds;
    (void)result;
    int r = parse_number(argument, "set_wall_clock", &seconds, err);
    if (r == 0)
        self->clock.wall_ns += (int64_t)(seconds * (double)ML_NS_PER_S);
    return r;
}

/* suspend(seconds): suspends the machine, server and operator: both clocks move on, and no timer
 * fires before the next settle. */
static int lua_suspend(void *world, struct ml_str argument, struct ml_buf *result,
                       struct ml_err *err)
{
    struct ml_world *self = world;
    double seconds;
    (void)result;
    int r = parse_seconds(argument, "suspend", &seconds, err);
    if (r == 0)
        r = check_not_running(self, "suspend", err);
    if (r == 0)
        ml_clock_fake_advance(&self->clock, (int64_t)(seconds * (double)ML_NS_PER_S));
    return r;
}

static void put_informer_objects(struct ml_json_writer *writer, struct ml_informer *informer)
{
    const struct ml_kind *kind = ml_informer_kind(informer);
    const struct ml_store *store = ml_informer_store(informer);
    size_t cursor = 0;
    for (struct ml_object *object; (object = ml_store_next(store, &cursor));) {
        ml_json_begin_object(writer);
        ml_json_put_string(writer, "apiVersion", ml_str_of(kind->api_version));
        ml_json_put_string(writer, "kind", ml_str_of(kind->kind));
        ml_json_put_string(writer, "key", ml_object_key(object));
        ml_json_put_string(writer, "uid", ml_object_uid(object));
        ml_json_put_string(writer, "resourceVersion", ml_object_rv(object));
        ml_json_end_object(writer);
    }
}

/* cached() -> list of { apiVersion, kind, key, uid, resourceVersion } */
static int lua_cached(void *world, struct ml_str argument, struct ml_buf *result,
                      struct ml_err *err)
{
    const struct ml_world *self = world;
    struct ml_informers *informers = ml_operator_informers(self->operator);
    struct ml_json_writer writer;
    (void)argument, (void)err;
    ml_json_writer_init(&writer, result);
    ml_json_begin_array(&writer);
    for (struct ml_informer *each = NULL; (each = ml_informers_next(informers, each));)
        put_informer_objects(&writer, each);
    ml_json_end_array(&writer);
    return 0;
}

/* ready() -> true, or a text of what is missing */
static int lua_ready(void *world, struct ml_str argument, struct ml_buf *result, struct ml_err *err)
{
    const struct ml_world *self = world;
    ML_AUTO(ml_buf_fini) struct ml_buf why = ML_BUF_INIT;
    struct ml_json_writer writer;
    (void)argument, (void)err;
    if (ml_operator_ready(self->operator, & why))
        return 0;
    ml_json_writer_init(&writer, result);
    ml_json_string(&writer, ml_str_trim(ml_buf_str(&why)));
    return 0;
}

/* metrics() -> the page that /metrics serves, as text */
static int lua_metrics(void *world, struct ml_str argument, struct ml_buf *result,
                       struct ml_err *err)
{
    const struct ml_world *self = world;
    ML_AUTO(ml_buf_fini) struct ml_buf page = ML_BUF_INIT;
    struct ml_json_writer writer;
    (void)argument, (void)err;
    ml_metrics_write(self->metrics, &page);
    ml_json_writer_init(&writer, result);
    ml_json_string(&writer, ml_buf_str(&page));
    return 0;
}

/* coverage() -> list of { file, lines }; true: nobody asks */
static int lua_coverage(void *world, struct ml_str argument, struct ml_buf *result,
                        struct ml_err *err)
{
    const struct ml_world *self = world;
    struct ml_json_writer writer;
    (void)argument, (void)err;
    ml_json_writer_init(&writer, result);
    if (self->coverage)
        coverage_write(self->coverage, &writer);
    return 0;
}

/* waiting() -> the answer of moonloop top: operator/inspect.h */
static int lua_waiting(void *world, struct ml_str argument, struct ml_buf *result,
                       struct ml_err *err)
{
    const struct ml_world *self = world;
    const struct ml_inspect_view view = {.services = ml_operator_services(self->operator),
                                         .scripts = ml_operator_scripts(self->operator)};
    (void)argument;
    int status = ml_inspect_answer(&view, "/top/", "", result);
    return status == 200 ? 0 : ml_err_set(err, ML_EINVALID, "waiting: status %d", status);
}

/* Copies the strings of the list `scripts` to `out`, which ends with NULL. */
static int read_reset_scripts(struct ml_str argument, char **out, struct ml_err *err)
{
    char index[24];
    struct ml_str raw;
    size_t count = 0;
    for (;; count++) {
        snprintf(index, sizeof index, "%zu", count);
        if (!ml_json_find(argument, &raw, "scripts", index, NULL))
            return 0;
        if (count == SCRIPTS_MAX)
            return ml_err_set(err, ML_ELIMIT, "reset: up to %d scripts", SCRIPTS_MAX);
        out[count] = ml_json_find_string(argument, "scripts", index, NULL);
        if (!out[count])
            return ml_err_set(err, ML_EINVALID, "reset: scripts is a list of paths");
    }
}

/* reset{scripts=, settings=, seed=, now=} */
static int lua_reset(void *world, struct ml_str argument, struct ml_buf *result, struct ml_err *err)
{
    char *scripts[SCRIPTS_MAX + 1] = {NULL};
    double seed, now;
    struct ml_world_setup setup = {.scripts = (const char *const *)scripts};
    (void)result;
    (void)ml_json_find(argument, &setup.settings, "settings", NULL);
    int r = read_reset_scripts(argument, scripts, err);
    if (r == 0)
        r = parse_field_number(argument, "seed", &seed, err);
    if (r == 0)
        r = parse_field_number(argument, "now", &now, err);
    if (r == 0) {
        setup.seed = (uint64_t)seed;
        setup.wall_ns = (int64_t)(now * (double)ML_NS_PER_S);
        r = reset_world(world, &setup, err);
    }
    for (char **script = scripts; *script; script++)
        free(*script);
    return r;
}

void ml_world_lua_open(struct ml_world *world)
{
    static const struct {
        const char *name;
        ml_server_lua_function *function;
    } functions[] = {{"settle", lua_settle},
                     {"advance", lua_advance},
                     {"fault", lua_fault},
                     {"heal", lua_heal},
                     {"restart", lua_restart},
                     {"stop", lua_stop},
                     {"set_wall_clock", lua_set_wall_clock},
                     {"suspend", lua_suspend},
                     {"cached", lua_cached},
                     {"ready", lua_ready},
                     {"metrics", lua_metrics},
                     {"waiting", lua_waiting},
                     {"coverage", lua_coverage},
                     {"reset", lua_reset}};
    for (size_t i = 0; i < ML_COUNT(functions); i++)
        ml_server_lua_define(ml_world_server_lua(world), "cluster.world", functions[i].name,
                             functions[i].function, world);
}
