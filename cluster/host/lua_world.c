/* `require "cluster.world"`: the functions of world.h for Lua, each with one JSON value as argument
 * and result; see cluster/meta/world.lua. Opened by cli/test.c. */
#include "cluster/host/world.h"

#include <math.h>
#include <stdio.h>

#include "codec/json.h"

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
    ml_buf_printf(result, "%d", ml_world_fault(world, &fault));
    return 0;
}

/* heal(number) */
static int lua_heal(void *world, struct ml_str argument, struct ml_buf *result, struct ml_err *err)
{
    double number;
    (void)result;
    int r = parse_nonnegative_number(argument, "heal", &number, err);
    if (r == 0)
        ml_world_heal(world, (int)number);
    return r;
}

static int lua_restart(void *world, struct ml_str argument, struct ml_buf *result,
                       struct ml_err *err)
{
    (void)argument, (void)result, (void)err;
    ml_world_restart(world);
    return 0;
}

/* stop(seconds) */
static int lua_stop(void *world, struct ml_str argument, struct ml_buf *result, struct ml_err *err)
{
    double seconds;
    (void)result;
    int r = parse_seconds(argument, "stop", &seconds, err);
    if (r == 0)
        ml_world_stop(world, (int64_t)(seconds * (double)ML_NS_PER_S));
    return r;
}

/* set_wall_clock(seconds), which may be below 0 */
static int lua_set_wall_clock(void *world, struct ml_str argument, struct ml_buf *result,
                              struct ml_err *err)
{
    double seconds;
    (void)result;
    int r = parse_number(argument, "set_wall_clock", &seconds, err);
    if (r == 0)
        ml_world_set_wall_clock(world, (int64_t)(seconds * (double)ML_NS_PER_S));
    return r;
}

/* suspend(seconds) */
static int lua_suspend(void *world, struct ml_str argument, struct ml_buf *result,
                       struct ml_err *err)
{
    double seconds;
    (void)result;
    int r = parse_seconds(argument, "suspend", &seconds, err);
    return r < 0 ? r : ml_world_suspend(world, (int64_t)(seconds * (double)ML_NS_PER_S), err);
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
    struct ml_informers *informers = ml_operator_informers(ml_world_operator(world));
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
    ML_AUTO(ml_buf_fini) struct ml_buf why = ML_BUF_INIT;
    struct ml_json_writer writer;
    (void)argument;
    (void)err;
    if (ml_operator_ready(ml_world_operator(world), &why))
        return 0;
    ml_json_writer_init(&writer, result);
    ml_json_string(&writer, ml_str_trim(ml_buf_str(&why)));
    return 0;
}

/* metrics() -> the page that /metrics serves, as text */
static int lua_metrics(void *world, struct ml_str argument, struct ml_buf *result,
                       struct ml_err *err)
{
    ML_AUTO(ml_buf_fini) struct ml_buf page = ML_BUF_INIT;
    struct ml_json_writer writer;
    (void)argument, (void)err;
    ml_metrics_write(ml_world_metrics(world), &page);
    ml_json_writer_init(&writer, result);
    ml_json_string(&writer, ml_buf_str(&page));
    return 0;
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
        r = ml_world_reset(world, &setup, err);
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
                     {"reset", lua_reset}};
    for (size_t i = 0; i < ML_COUNT(functions); i++)
        ml_server_lua_define(ml_world_server_lua(world), "cluster.world", functions[i].name,
                             functions[i].function, world);
}
