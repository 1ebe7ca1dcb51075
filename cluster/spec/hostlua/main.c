/* hostlua: a plain Lua 5.4 interpreter that has cluster.host, for the specs of the host's own
 * Lua (busted --lua=hostlua). Modules come from files first, so that an edit needs no build.
 *
 *   hostlua script.lua [word…]      hostlua -e 'statements'
 *
 * `require "hostlua"` gives what a spec needs beside it: freeze(seconds) stops the clock at that
 * wall time, advance(seconds) moves a stopped clock on and runs what became due, poll() runs
 * what is due now, seed(n) makes random and uuid repeat themselves; scripts in their sandbox
 * (sandbox.h); and requests (http.h). */
#include <stdio.h>
#include <unistd.h>

#include "codec/json.h"
#include "http.h"
#include "sandbox.h"

struct hostlua {
    struct ml_clock clock;
    struct ml_clock_fake frozen;
    bool is_frozen;
    struct ml_random random;
    struct ml_loop *loop;
    bool is_polling;
    size_t failures; /* in callbacks */
    char **words;    /* of the command line; ends with NULL */
};

static int64_t monotonic_ns(struct ml_clock *clock)
{
    struct hostlua *hostlua = ml_container_of(clock, struct hostlua, clock);
    return ml_clock_monotonic(hostlua->is_frozen ? &hostlua->frozen.clock : ml_clock_real());
}

static int64_t wall_ns(struct ml_clock *clock)
{
    struct hostlua *hostlua = ml_container_of(clock, struct hostlua, clock);
    return ml_clock_wall(hostlua->is_frozen ? &hostlua->frozen.clock : ml_clock_real());
}

/* Reads the argument of the functions below: a number of seconds, or a seed. */
static int number_of(struct ml_str argument, double *out, struct ml_err *err)
{
    ML_AUTO_FREE char *text = ml_str_dup(argument);
    char *end;
    *out = strtod(text, &end);
    bool good = argument.len > 0 && *end == '\0';
    return good ? 0 : ml_err_set(err, ML_EINVALID, "a number is what it takes");
}

static int freeze(void *context, struct ml_str argument, struct ml_buf *result, struct ml_err *err)
{
    struct hostlua *hostlua = context;
    double seconds;
    (void)result;
    int r = number_of(argument, &seconds, err);
    if (r < 0)
        return r;
    int64_t now_ns = monotonic_ns(&hostlua->clock);
    ml_clock_fake_init(&hostlua->frozen, (int64_t)(seconds * (double)ML_NS_PER_S));
    hostlua->frozen.monotonic_ns = now_ns; /* timers that wait go on waiting */
    hostlua->is_frozen = true;
    return 0;
}

static int poll_loop(void *context, struct ml_str argument, struct ml_buf *result,
                     struct ml_err *err)
{
    struct hostlua *hostlua = context;
    (void)argument, (void)result;
    if (hostlua->is_polling)
        return ml_err_set(err, ML_EINVALID, "poll inside of what the loop runs");
    hostlua->is_polling = true;
    ml_loop_poll(hostlua->loop);
    hostlua->is_polling = false;
    return 0;
}

static int advance(void *context, struct ml_str argument, struct ml_buf *result, struct ml_err *err)
{
    struct hostlua *hostlua = context;
    double seconds;
    int r = number_of(argument, &seconds, err);
    if (r < 0)
        return r;
    ml_clock_fake_advance(&hostlua->frozen, (int64_t)(seconds * (double)ML_NS_PER_S));
    return poll_loop(context, argument, result, err);
}

static int seed(void *context, struct ml_str argument, struct ml_buf *result, struct ml_err *err)
{
    struct hostlua *hostlua = context;
    double number;
    (void)result;
    int r = number_of(argument, &number, err);
    if (r < 0)
        return r;
    ml_random_init(&hostlua->random, (uint64_t)(int64_t)number);
    return 0;
}

/* words() -> the command line */
static int list_words(void *context, struct ml_str argument, struct ml_buf *result,
                      struct ml_err *err)
{
    struct hostlua *hostlua = context;
    struct ml_json_writer writer;
    (void)argument, (void)err;
    ml_json_writer_init(&writer, result);
    ml_json_begin_array(&writer);
    for (char **word = hostlua->words; *word; word++)
        ml_json_string(&writer, ml_str_of(*word));
    ml_json_end_array(&writer);
    return 0;
}

static void on_failed(void *context, const char *message)
{
    struct hostlua *hostlua = context;
    hostlua->failures++;
    fprintf(stderr, "hostlua: in a callback: %s\n", message);
}

/* Runs a file as the `lua` program does: `arg` and `...` are the words behind it. */
static const char file_runner[] = "local words = require 'hostlua'.words()\n"
                                  "arg = table.move(words, 1, #words, -1, {})\n"
                                  "local chunk = assert(loadfile(arg[0], 't'))\n"
                                  "return chunk(table.unpack(arg))\n";

static int run(struct ml_server_lua *lua, int argc, char **argv)
{
    struct ml_err err;
    if (argc == 3 && strcmp(argv[1], "-e") == 0)
        return ml_server_lua_run(lua, "(command line)", ml_str_of(argv[2]), &err);
    return ml_server_lua_run(lua, "hostlua", ml_str_of(file_runner), &err);
}

int main(int argc, char **argv)
{
    if (argc < 2 || (strcmp(argv[1], "-e") == 0 && argc != 3)) {
        fprintf(stderr, "usage: hostlua SCRIPT [WORD…] | hostlua -e STATEMENTS\n");
        return 2;
    }
    struct hostlua hostlua = {.clock = {monotonic_ns, wall_ns}, .words = argv};
    struct ml_log log;
    ml_random_init_real(&hostlua.random);
    hostlua.loop = ml_loop_new(&hostlua.clock);
    ml_log_init(&log, &hostlua.clock, STDERR_FILENO, ML_LOG_TEXT, ML_LOG_WARN);
    struct ml_server_lua *lua = ml_server_lua_new(&(struct ml_server_lua_options){
        .loop = hostlua.loop,
        .clock = &hostlua.clock,
        .random = &hostlua.random,
        .log = &log,
        .logger = "hostlua",
        .files_first = true,
        .failed = on_failed,
        .context = &hostlua,
    });
    ml_server_lua_define(lua, "hostlua", "freeze", freeze, &hostlua);
    ml_server_lua_define(lua, "hostlua", "advance", advance, &hostlua);
    ml_server_lua_define(lua, "hostlua", "poll", poll_loop, &hostlua);
    ml_server_lua_define(lua, "hostlua", "seed", seed, &hostlua);
    ml_server_lua_define(lua, "hostlua", "words", list_words, &hostlua);
    hostlua_define_sandbox(lua);
    struct hostlua_http *http = hostlua_http_new(lua);
    int r = run(lua, argc, argv);
    if (r < 0)
        fprintf(stderr, "hostlua: %s\n", ml_server_lua_traceback(lua));
    ml_server_lua_free(lua);
    hostlua_http_free(http);
    ml_loop_free(hostlua.loop);
    return r == 0 && hostlua.failures == 0 ? 0 : 1;
}
