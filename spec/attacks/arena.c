#include "arena.h"

#include "judge.h"
#include "memory.h"
#include "stay.h"
#include "wire.h"

#include "cluster/host/transport_embedded.h"
#include "operator/operator.h"
#include "operator/source.h"

#include <event2/event.h>
#include <fcntl.h>
#include <stdio.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <time.h>
#include <unistd.h>

#ifndef MOONLOOP_CPU_STRETCH
#define MOONLOOP_CPU_STRETCH 1
#endif

#define WALL_NS      (INT64_C(1935446400) * ML_NS_PER_S) /* 2031-05-01, which no forged line has */
#define START_NS     ML_NS_PER_S
#define PATIENCE_NS  (3 * ML_NS_PER_S)    /* for a bystander that ticks, and for what is expected */
#define AFTER_NS     (120 * ML_NS_PER_MS) /* how it fares once that has come */
#define HELD_NS      (400 * ML_NS_PER_MS)
#define TOUCH_NS     (50 * ML_NS_PER_MS)
#define RENAME_NS    (20 * ML_NS_PER_MS)
#define SERVER_TURNS 100
#define TICKS_FIRST  3
#define TIMER_NS     (10 * ML_NS_PER_MS) /* between two looks of the kernel at a CPU timer */

struct arena {
    const struct program *program;
    struct report *report;
    struct judge judge;

    struct ml_clock clock;
    int64_t idle_ns, worked_ns; /* what has passed */
    bool in_turn;
    int64_t turn_cpu_ns;

    struct ml_loop *loop;
    struct ml_log log;
    struct ml_random random;
    struct ml_metrics *metrics;
    struct wire *wire;
    struct ml_operator *operator;
    struct ml_source source;
    char *folder; /* of scripts; NULL: they are told */
    struct memory memory;

    int64_t told_ns; /* when the program came; 0: not yet */
    int64_t came_ns; /* when what is expected had come; 0: not yet */
    int64_t touched, renamed;
};

/* Made once, for all programs. */
static struct {
    struct ml_clock_fake clock;
    struct ml_random random;
    struct ml_loop *loop;
    struct ml_apiserver *api;
    char *source_dir;
} server;

/* ---- time ---- */

static int64_t passed_ns(const struct arena *arena)
{
    int64_t turn = arena->in_turn ? stay_cpu_ns() - arena->turn_cpu_ns : 0;
    return arena->idle_ns + arena->worked_ns + turn / MOONLOOP_CPU_STRETCH;
}

static int64_t arena_monotonic(struct ml_clock *clock)
{
    return START_NS + passed_ns(ml_container_of(clock, struct arena, clock));
}

static int64_t arena_wall(struct ml_clock *clock)
{
    return WALL_NS + passed_ns(ml_container_of(clock, struct arena, clock));
}

static void begin_turn(struct arena *arena)
{
    arena->turn_cpu_ns = stay_cpu_ns();
    arena->in_turn = true;
}

static void end_turn(struct arena *arena)
{
    int64_t used = stay_cpu_ns() - arena->turn_cpu_ns;
    arena->in_turn = false;
    arena->worked_ns += used / MOONLOOP_CPU_STRETCH;
    arena->report->cpu_ns += used;
    arena->report->turn_ns = ML_MAX(arena->report->turn_ns, used);
    memory_end(&arena->memory);
    arena->report->grown = arena->memory.grown;
}

/* ---- the server ---- */

static void server_lua(const char *statements)
{
    struct ml_err err = ML_ERR_INIT;
    struct ml_server_lua *lua = ml_apiserver_lua(server.api);
    if (ml_server_lua_run(lua, "world", ml_str_of(statements), &err) == 0)
        return;
    fprintf(stderr, "%s\n", ml_server_lua_traceback(lua));
    exit(2);
}

static char *read_own(const char *name)
{
    ML_AUTO_FREE char *path = ml_asprintf("%s/spec/attacks/%s", server.source_dir, name);
    ML_AUTO(ml_buf_fini) struct ml_buf text = ML_BUF_INIT;
    FILE *in = fopen(path, "r");
    if (!in) {
        perror(path);
        exit(2);
    }
    char piece[4096];
    for (size_t got; (got = fread(piece, 1, sizeof piece, in)) > 0;)
        ml_buf_append_str(&text, (struct ml_str){piece, got});
    fclose(in);
    ml_buf_cstr(&text);
    return ml_buf_take(&text);
}

void arena_build(const char *source_dir)
{
    server.source_dir = ml_strdup(source_dir);
    ml_clock_fake_init(&server.clock, WALL_NS);
    server.clock.monotonic_ns = START_NS;
    ml_random_init(&server.random, 1);
    server.loop = ml_loop_new(&server.clock.clock);
    const struct ml_apiserver_options options = {
        .loop = server.loop, .clock = &server.clock.clock, .random = &server.random};
    struct ml_err err = ML_ERR_INIT;
    if (ml_apiserver_new(&options, &server.api, &err) < 0) {
        fprintf(stderr, "%s\n", err.message);
        exit(2);
    }
    ml_loop_poll(server.loop);
    ML_AUTO_FREE char *world = read_own("world.lua");
    server_lua(world);
    server_lua("Build()");
    ml_loop_poll(server.loop);
}

static void on_handled(void *context, const struct wire_request *request)
{
    struct arena *arena = context;
    judge_request(&arena->judge, request->method, request->path, request->body);
}

/* ---- scripts ---- */

static void source_start(struct ml_source *source, struct ml_services *services)
{
    (void)source, (void)services;
}

static void source_report(struct ml_source *source, bool warning, const char *reason,
                          const char *note)
{
    (void)source, (void)warning, (void)reason, (void)note;
}

static void source_free(struct ml_source *source)
{
    (void)source;
}

static const struct ml_source_class source_class = {
    .start = source_start, .report = source_report, .free = source_free};

static void put_file(struct arena *arena, struct ml_files *files, const char *name,
                     struct ml_str text)
{
    struct ml_err err = ML_ERR_INIT;
    if (!arena->folder) {
        if (ml_files_add(files, &ml_files_scripts, ml_str_of(name), text, &err) < 0)
            report_fail(arena->report, "%s", err.message);
        return;
    }
    ML_AUTO_FREE char *path = ml_asprintf("%s/%s", arena->folder, name);
    FILE *out = fopen(path, "w");
    if (out) {
        fwrite(text.ptr, 1, text.len, out);
        fclose(out);
    }
}

static void make_entry(const char *folder, const struct program_entry *entry)
{
    ML_AUTO_FREE char *path = ml_asprintf("%s/%s", folder, entry->name);
    int r = -1;
    if (strcmp(entry->what, "fifo") == 0) {
        r = mkfifo(path, 0600);
    } else if (strcmp(entry->what, "folder") == 0) {
        r = mkdir(path, 0700);
    } else if (strcmp(entry->what, "dangling") == 0) {
        r = symlink("/nowhere/at-all", path);
    } else if (strcmp(entry->what, "zero") == 0) {
        r = symlink("/dev/zero", path);
    } else if (strcmp(entry->what, "random") == 0) {
        r = symlink("/dev/random", path);
    } else if (strcmp(entry->what, "loop") == 0) {
        r = symlink(entry->name, path);
    } else if (strcmp(entry->what, "locked") == 0) {
        int fd = open(path, O_CREAT | O_WRONLY | O_CLOEXEC, 0);
        r = close(fd);
    } else if (strcmp(entry->what, "huge") == 0) {
        int fd = open(path, O_CREAT | O_WRONLY | O_CLOEXEC, 0600);
        r = ftruncate(fd, (off_t)1 << 36);
        close(fd);
    } else if (strcmp(entry->what, "socket") == 0) {
        struct sockaddr_un address = {.sun_family = AF_UNIX};
        snprintf(address.sun_path, sizeof address.sun_path, "%.100s", path);
        int fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
        r = bind(fd, (struct sockaddr *)&address, sizeof address);
    }
    if (r < 0) {
        fprintf(stderr, "%s %s: cannot be made\n", entry->what, path);
        exit(2);
    }
}

/* The set with the program, or without: only the bystander. */
static void tell(struct arena *arena, bool with_program)
{
    const struct program *program = arena->program;
    struct ml_files files = ML_FILES_INIT;
    ML_AUTO_FREE char *bystander = read_own("bystander.lua");
    put_file(arena, &files, "bystander.lua", ml_str_of(bystander));
    for (int64_t copy = 1; with_program && copy <= program->copies; copy++) {
        ML_AUTO_FREE char *text = program_text(program->parts[0].text, copy + arena->renamed);
        ML_AUTO_FREE char *name = program->copies == 1 ? ml_strdup("attack.lua")
                                                       : ml_asprintf("attack-%d.lua", (int)copy);
        put_file(arena, &files, name, ml_str_of(text));
    }
    for (size_t i = 1; with_program && i < program->part_count; i++) {
        ML_AUTO_FREE char *name = ml_str_dup(program->parts[i].name);
        ML_AUTO_FREE char *text = program_text(program->parts[i].text, 1 + arena->renamed);
        put_file(arena, &files, name, ml_str_of(text));
    }
    if (with_program && strstr(program->text, "require \"hostile\"")) {
        ML_AUTO_FREE char *hostile = read_own("hostile.lua");
        put_file(arena, &files, "hostile.lua", ml_str_of(hostile));
    }
    for (size_t i = 0; with_program && i < program->entry_count && !arena->renamed; i++)
        make_entry(arena->folder, &program->entries[i]);
    begin_turn(arena);
    if (!arena->folder)
        ml_source_notify_files(&arena->source, &files);
    end_turn(arena);
    ml_files_fini(&files);
}

static void make_folder(struct arena *arena)
{
    arena->folder = ml_strdup("/tmp/moonloop-attack-XXXXXX");
    if (!mkdtemp(arena->folder)) {
        perror(arena->folder);
        exit(2);
    }
}

static void remove_folder(struct arena *arena)
{
    if (!arena->folder)
        return;
    ML_AUTO_FREE char *command = ml_asprintf("rm -rf '%s'", arena->folder);
    if (system(command) != 0)
        fprintf(stderr, "%s: cannot be removed\n", arena->folder);
    free(arena->folder);
}

/* ---- the operator ---- */

static void make_operator(struct arena *arena, int log_fd)
{
    static const char *const everywhere[] = {NULL};
    arena->clock = (struct ml_clock){arena_monotonic, arena_wall};
    arena->loop = ml_loop_new(&arena->clock);
    ml_random_init(&arena->random, 2);
    ml_log_init(&arena->log, &arena->clock, log_fd,
                arena->program->json ? ML_LOG_JSON : ML_LOG_TEXT, ML_LOG_INFO);
    arena->metrics = ml_metrics_new();
    arena->wire = wire_new(&(struct wire_opts){
        .near = arena->loop,
        .far = server.loop,
        .server = ml_transport_embedded_new(server.loop, server.api, NULL),
        .random = &server.random,
        .handled = on_handled,
        .context = arena,
    });
    const struct ml_operator_opts opts = {
        .loop = arena->loop,
        .transport = wire_seam(arena->wire),
        .random = &arena->random,
        .log = &arena->log,
        .metrics = arena->metrics,
        .namespaces = everywhere,
        .instance = "moonloop-attacks",
    };
    arena->operator= ml_operator_new(&opts);
    arena->source = (struct ml_source){
        .class = &source_class, .name = ml_strdup("scripts"), .allows_unknown_names = true};
    ml_scripts_add_source(ml_operator_scripts(arena->operator),
                          arena->folder ? ml_source_path_new(arena->folder) : &arena->source);
}

static void end_operator(struct arena *arena)
{
    begin_turn(arena);
    ml_operator_free(ml_take(&arena->operator));
    end_turn(arena);
    wire_seam(arena->wire)->free(wire_seam(arena->wire));
}

/* ---- turns ---- */

static void turn(struct arena *arena)
{
    int64_t now = START_NS + passed_ns(arena);
    ml_clock_fake_advance(&server.clock, now - server.clock.monotonic_ns);
    memory_server_begins(&arena->memory);
    ml_loop_poll_rounds(server.loop, SERVER_TURNS);
    memory_server_ends(&arena->memory);
    begin_turn(arena);
    if (arena->folder)
        event_base_loop(ml_loop_base(arena->loop), EVLOOP_NONBLOCK);
    ml_loop_poll_rounds(arena->loop, 1);
    end_turn(arena);
    judge_log(&arena->judge);
}

/* Goes to the next thing to do, at most so far. */
static void rest(struct arena *arena, int64_t until_ns)
{
    int64_t now = passed_ns(arena);
    int64_t next = ML_MIN(ml_loop_next(arena->loop), ml_loop_next(server.loop));
    next = ML_MIN(next > START_NS ? next - START_NS : 0, until_ns);
    if (next > now)
        arena->idle_ns += next - now;
}

static bool works_well(struct arena *arena)
{
    ML_AUTO(ml_buf_fini) struct ml_buf text = ML_BUF_INIT;
    static const char total[] = "controller_runtime_reconcile_total{controller=\"";
    ml_metrics_write(arena->metrics, &text);
    struct ml_str rest = ml_buf_str(&text);
    while (rest.len > 0) {
        ML_AUTO_FREE char *line = ml_str_dup(ml_str_cut(&rest, '\n'));
        const char *value = strrchr(line, ' ');
        if (strncmp(line, total, sizeof total - 1) == 0 && !strstr(line, "\"bystander\"") &&
            !strstr(line, "result=\"error\"") && value && atof(value) > 0)
            return true;
    }
    return false;
}

static bool has_come(struct arena *arena)
{
    const struct program *program = arena->program;
    if (arena->touched < program->touches || arena->renamed < program->renames)
        return false;
    switch (program->expect) {
    case EXPECT_HELD:
        return passed_ns(arena) - arena->told_ns > HELD_NS;
    case EXPECT_OK:
        return works_well(arena);
    case EXPECT_REFUSED:
    case EXPECT_ERROR:
    case EXPECT_CPU:
    case EXPECT_MEMORY:
        return arena->judge.came;
    }
    return true;
}

static void touch_in_time(struct arena *arena)
{
    int64_t since = passed_ns(arena) - arena->told_ns;
    if (arena->touched < arena->program->touches && since > (arena->touched + 1) * TOUCH_NS) {
        ML_AUTO_FREE char *text = ml_asprintf("Touch(%d)", (int)++arena->touched);
        memory_server_begins(&arena->memory);
        server_lua(text);
        memory_server_ends(&arena->memory);
    }
    if (arena->renamed < arena->program->renames && since > (arena->renamed + 1) * RENAME_NS) {
        arena->renamed++;
        tell(arena, true);
    }
}

static bool is_over(struct arena *arena)
{
    int64_t now = passed_ns(arena);
    if (arena->program->for_ns > 0)
        return now - arena->told_ns > arena->program->for_ns;
    if (arena->came_ns == 0 && has_come(arena))
        arena->came_ns = now;
    if (arena->came_ns > 0)
        return now - arena->came_ns > AFTER_NS;
    return now - arena->told_ns > PATIENCE_NS;
}

static bool wait_for_bystander(struct arena *arena)
{
    while (arena->report->ticks < TICKS_FIRST && passed_ns(arena) < PATIENCE_NS) {
        turn(arena);
        rest(arena, PATIENCE_NS);
    }
    return arena->report->ticks >= TICKS_FIRST;
}

static void attack(struct arena *arena)
{
    struct report *report = arena->report;
    if (!arena->program->at_start)
        tell(arena, true);
    arena->told_ns = passed_ns(arena);
    arena->judge.watching = true;
    report->loaded = true;
    report->cpu_ns = 0;
    while (!is_over(arena)) {
        turn(arena);
        touch_in_time(arena);
        rest(arena, passed_ns(arena) + 10 * ML_NS_PER_MS);
    }
    report->passed_ns = passed_ns(arena) - arena->told_ns;
}

/* ---- the judgement ---- */

static void judge_arena(struct arena *arena)
{
    const struct program *program = arena->program;
    struct report *report = arena->report;
    int64_t of_the_day = WALL_NS + passed_ns(arena);
    judge_end(&arena->judge, of_the_day / ML_NS_PER_MS % (24 * 3600 * 1000));
    if (program->expect == EXPECT_OK && arena->judge.failures > 0)
        report_fail(report, "it failed %zu times", arena->judge.failures);
    else if (program->expect == EXPECT_OK && !works_well(arena))
        report_fail(report, "none of its reconciles succeeded");
    report->entry_ns = stay.used_ns;
    report->entry_budget_ns = stay.budget_ns;
    if (stay.used_ns > 2 * stay.budget_ns + TIMER_NS)
        report_fail(report, "%lld ms of CPU time in Lua, where %lld are allowed",
                    (long long)(stay.used_ns / ML_NS_PER_MS),
                    (long long)(stay.budget_ns / ML_NS_PER_MS));
    int64_t most = memory_allowed(program->memory_mib);
    if (report->grown > most)
        report_fail(report, "grew by %lld MiB, where %lld are allowed",
                    (long long)(report->grown >> 20), (long long)(most >> 20));
    int64_t share = report->cpu_ns / MOONLOOP_CPU_STRETCH * 100 / ML_MAX(report->passed_ns, 1);
    if (program->share > 0 && share > program->share)
        report_fail(report, "took %lld %% of a processor", (long long)share);
}

void arena_run(const struct program *program, int log_fd, struct report *report)
{
    struct arena *arena = ml_new(struct arena);
    arena->program = program;
    arena->report = report;
    arena->judge = (struct judge){.program = program, .report = report, .fd = log_fd};
    if (program->entry_count > 0)
        make_folder(arena);
    ML_AUTO_FREE char *fill = ml_asprintf("Fill(%d)", (int)program->objects);
    server_lua(fill);
    memory_start(&arena->memory);
    make_operator(arena, log_fd);
    if (arena->folder)
        tell(arena, program->at_start);
    begin_turn(arena);
    ml_operator_start(arena->operator);
    end_turn(arena);
    if (!arena->folder)
        tell(arena, program->at_start);
    if (wait_for_bystander(arena))
        attack(arena);
    else
        report_fail(report, "the bystander does not work");
    judge_arena(arena);
    end_operator(arena);
    judge_log(&arena->judge);
    server_lua("Check()");
    remove_folder(arena);
    report->over = true;
}
