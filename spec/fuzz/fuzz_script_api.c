/* The C functions of a script's state, called as no library would: each that can be reached in it,
 * from the environment, the metatables and the upvalues of what the host handed out, and the Lua
 * functions of the library as well, with whatever stands on the stack: too many arguments or too
 * few, of any type, with metatables, of other functions' results. In a reconcile, in a callback of
 * a C function there, in watch functions, and while a file is taken in. script_stage.h says what
 * counts as a finding; FUZZ_PRINT=1 prints each call. */
#include <math.h>
#include <stdio.h>

#include "script_stage.h"

#include "script/internal.h"

#define HEAD          4
#define ANSWERS       16
#define VALUES_MAX    100 /* kept of what calls returned */
#define ARGUMENTS_MAX 120
#define LOAD_CPU      (200 * ML_NS_PER_MS)
#define TRIES         3

static const char driver[] =
    "local moonloop, cjson, time = require 'moonloop', require 'cjson', require 'moonloop.time'\n"
    "local crypto, base64 = require 'moonloop.crypto', require 'moonloop.base64'\n"
    "local quantity, yaml = require 'moonloop.quantity', require 'moonloop.yaml'\n"
    "local labels, regex = require 'moonloop.labels', require 'moonloop.regex'\n"
    "local pcall, gsub, sort, setmetatable = pcall, string.gsub, table.sort, setmetatable\n"
    "local At, Pod = moonloop.kind('example.com/v1', 'At'), moonloop.kind('v1', 'Pod')\n"
    "local Secret, first = moonloop.kind('v1', 'Secret'), true\n"
    "local env = _ENV\n" /* of names that are planted later the script would be refused */
    "local function values(o, c)\n"
    "  return At, Pod, Secret, moonloop, cjson, time, _ENV, o, c, o.spec, o.metadata.annotations, "
    "moonloop.null,\n"
    "    o.metadata, o.spec.number, moonloop.array { 1, 2 }, cjson.decode '{\"b\":1,\"a\":[]}',\n"
    "    moonloop.watch(Pod, error), c and c.invalid('f', 'why'), { apiVersion = 'v1', kind = "
    "'Pod',\n"
    "    metadata = { name = 'x-pod' }, spec = {} }, { apiVersion = 'v1', kind = 'Secret', "
    "metadata = {\n"
    "    name = 'x', uid = 'u', resourceVersion = '7' } }, { labels = { app = 'x' }, owned = true "
    "},\n"
    "    function(...) return ... end, function() error({}) end, function(a, b) return b end,\n"
    "    function(a, k) return k end, function() return true end, string, table, math, utf8,\n"
    "    crypto, base64, quantity, yaml, labels, regex\n"
    "end\n"
    "local function call() env.fuzz_keep(pcall(env.fuzz_call())) end\n"
    "local function drive(o, c)\n"
    "  if first then env.fuzz_keep(true, values(o, c)) first = false end\n"
    "  for _ = 1, env.fuzz_count() do call() end\n"
    "  pcall(gsub, 'xxx', 'x', call)\n"
    "  pcall(sort, { 3, 2, 1 }, call)\n"
    "  pcall(function() return setmetatable({}, { __index = call }).x end)\n"
    "end\n"
    "moonloop.index(Pod, function(o) drive(o) return o.metadata.name end)\n"
    "local hook = { to = function(o, c) drive(o, c) return o end, from = drive }\n"
    "return moonloop.controller { name = 'at', reconciles = At, owns = { Pod }, uses = { Secret "
    "},\n"
    "  watches = { moonloop.watch(Pod, drive) }, when = drive, reconcile = drive, finalize = "
    "drive,\n"
    "  default = drive, validate = function(o, _, c) drive(o, c) end, convert = { v1beta1 = hook "
    "},\n"
    "  metrics = { m = { type = 'counter', help = 'x' } } }\n";

static struct {
    struct choices choices;
    int functions, names, values, private; /* references */
    bool print;
} api;

/* {{{ What there is to call */

/* With `todo` on top: appends the value at `index` to it, named after what it was found in. */
ML_RAISES static void remember(lua_State *L, int index, const char *parent, const char *name)
{
    if (lua_type(L, index) < LUA_TTABLE && lua_type(L, index) != LUA_TLIGHTUSERDATA)
        return;
    lua_pushvalue(L, index);
    lua_rawseti(L, -2, (lua_Integer)lua_rawlen(L, -2) + 1);
    lua_pushfstring(L, "%s.%s", strlen(parent) > 60 ? parent + strlen(parent) - 60 : parent, name);
    lua_rawseti(L, -2, (lua_Integer)lua_rawlen(L, -2) + 1);
}

/* `value`, `todo` on top. */
ML_RAISES static void remember_fields(lua_State *L, const char *path)
{
    lua_pushnil(L);
    while (lua_next(L, -3)) {
        const char *name = lua_type(L, -2) == LUA_TSTRING ? lua_tostring(L, -2) : "?";
        lua_pushvalue(L, -3);
        remember(L, -2, path, name);
        remember(L, -3, path, "key");
        lua_pop(L, 2);
    }
}

ML_RAISES static void remember_upvalues(lua_State *L, const char *path)
{
    for (int i = 1; lua_getupvalue(L, -2, i); i++) {
        lua_pushvalue(L, -2);
        remember(L, -2, path, "upvalue");
        lua_pop(L, 2);
    }
}

ML_RAISES static void add_to(lua_State *L, int reference, int index)
{
    index = lua_absindex(L, index);
    lua_rawgeti(L, LUA_REGISTRYINDEX, reference);
    lua_pushvalue(L, index);
    lua_rawseti(L, -2, (lua_Integer)lua_rawlen(L, -2) + 1);
    lua_pop(L, 1);
}

/* The function on top, when it is the host's or the library's. */
ML_RAISES static void add_function(lua_State *L, const char *path)
{
    lua_Debug about;
    lua_pushvalue(L, -1);
    lua_getinfo(L, ">S", &about);
    if (about.what[0] != 'C' && strncmp(about.source, "@moonloop/", 10) != 0)
        return;
    add_to(L, api.functions, -1);
    lua_pushstring(L, path);
    add_to(L, api.names, -1);
    lua_pop(L, 1);
}

/* value, path and todo on top; `seen` below them. */
ML_RAISES static void visit(lua_State *L)
{
    const char *path = lua_tostring(L, -2);
    lua_pushvalue(L, -3);
    lua_insert(L, -2); /* value, path, value, todo */
    if (lua_type(L, -2) == LUA_TTABLE) {
        lua_rawgeti(L, LUA_REGISTRYINDEX, api.private);
        lua_pushvalue(L, -3);
        lua_pushboolean(L, 1);
        lua_rawset(L, -3);
        lua_pop(L, 1);
        remember_fields(L, path);
    }
    if (lua_type(L, -2) == LUA_TFUNCTION) {
        remember_upvalues(L, path);
        lua_pushvalue(L, -2);
        add_function(L, path);
        lua_pop(L, 1);
    }
    if (lua_getmetatable(L, -2)) {
        lua_pushvalue(L, -2);
        remember(L, -2, path, "metatable");
        lua_pop(L, 2);
    }
    if (lua_type(L, -2) == LUA_TUSERDATA)
        for (int i = 1; lua_getiuservalue(L, -2, i) != LUA_TNONE; i++) {
            lua_pushvalue(L, -2);
            remember(L, -2, path, "uservalue");
            lua_pop(L, 2);
        }
    lua_settop(L, -2 - 1); /* todo and the copy of value */
}

/* Walks all of the state. Runs in script_protect. */
ML_RAISES static int find_functions(lua_State *L)
{
    int *const references[] = {&api.functions, &api.names, &api.values, &api.private};
    for (size_t i = 0; i < ML_COUNT(references); i++) {
        lua_newtable(L);
        *references[i] = luaL_ref(L, LUA_REGISTRYINDEX);
    }
    lua_settop(L, 0);
    lua_newtable(L); /* seen */
    lua_newtable(L); /* todo: value, path, value, path, … */
    remember(L, LUA_REGISTRYINDEX, "", "registry");
    lua_pushliteral(L, "");
    if (lua_getmetatable(L, -1)) {
        lua_remove(L, -2);
        lua_pushvalue(L, 2);
        remember(L, -2, "", "strings");
    }
    for (lua_Integer i = 1; i < (lua_Integer)lua_rawlen(L, 2); i += 2) {
        lua_settop(L, 2);
        lua_rawgeti(L, 2, i);
        lua_pushvalue(L, 3);
        if (lua_rawget(L, 1) != LUA_TNIL)
            continue;
        lua_settop(L, 3);
        lua_pushvalue(L, 3);
        lua_pushboolean(L, 1);
        lua_rawset(L, 1);
        lua_rawgeti(L, 2, i + 1);
        lua_pushvalue(L, 2);
        visit(L);
    }
    return 0;
}

/* }}} */

/* {{{ What to call it with */

static void push_value(lua_State *L, int depth);

ML_RAISES static void push_number(lua_State *L)
{
    static const double floats[] = {0.5,   -0.0, 1e308, HUGE_VAL, -HUGE_VAL, 9007199254740993.0,
                                    9.3e18};
    static const lua_Integer integers[] = {0,
                                           1,
                                           2,
                                           3,
                                           -1,
                                           10,
                                           64,
                                           255,
                                           1000,
                                           65536,
                                           1000001,
                                           INT32_MAX,
                                           LUA_MAXINTEGER,
                                           LUA_MININTEGER};
    if (chance(&api.choices, 25))
        lua_pushnumber(L, floats[choose(&api.choices, ML_COUNT(floats))]);
    else
        lua_pushinteger(L, integers[choose(&api.choices, ML_COUNT(integers))]);
}

ML_RAISES static void push_string(lua_State *L)
{
    static const char *const strings[] = {"",
                                          "a",
                                          "x-pod",
                                          "default",
                                          "*",
                                          "../x",
                                          "v1",
                                          "Pod",
                                          "%s%d",
                                          "(%a+)-%f[%w].-",
                                          "(?P<n>\\pL*)|(a|b)?$",
                                          "${n}$1$$",
                                          "[",
                                          "__index",
                                          "\n2026-01-01T00:00:00.000Z error forged: x",
                                          "\x1b[2J",
                                          "\xff\xfe",
                                          "{\"a\":[1,{}]}",
                                          "[[[[",
                                          "5m30s",
                                          "2006-01-02T15:04:05Z",
                                          "moonloop",
                                          "moonloop.result",
                                          "cjson",
                                          "app=web",
                                          "at.lua:1",
                                          "labels",
                                          "owns",
                                          "metadata.name=x",
                                          "example.com/v1",
                                          "Warning",
                                          "status",
                                          "name"};
    size_t chosen = choose(&api.choices, ML_COUNT(strings) + 2);
    if (chosen < ML_COUNT(strings)) {
        lua_pushstring(L, strings[chosen]);
        return;
    }
    luaL_Buffer text;
    size_t len = chosen == ML_COUNT(strings) ? 300 : 40000;
    memset(luaL_buffinitsize(L, &text, len), "a\n%x"[choose(&api.choices, 4)], len);
    luaL_pushresultsize(&text, len);
}

ML_RAISES static void push_metatable(lua_State *L, int depth)
{
    static const char *const events[] = {"__index", "__newindex", "__call",      "__len",
                                         "__eq",    "__lt",       "__concat",    "__tostring",
                                         "__name",  "__pairs",    "__metatable", "__close",
                                         "__unm",   "__mode",     "__gc"};
    lua_newtable(L);
    for (size_t count = choose(&api.choices, 4); count > 0; count--) {
        push_value(L, depth + 1);
        const char *event = events[choose(&api.choices, ML_COUNT(events))];
        if (strcmp(event, "__mode") == 0 || strcmp(event, "__gc") == 0) /* a script cannot */
            lua_pop(L, 1);
        else
            lua_setfield(L, -2, event);
    }
}

ML_RAISES static void push_table(lua_State *L, int depth)
{
    static const char *const names[] = {"a",          "name",       "namespace", "metadata", "kind",
                                        "apiVersion", "labels",     "owned",     "n",        "uid",
                                        "status",     "reconciles", "reconcile", "when",     "owns",
                                        "watches",    "year",       "month",     "day",      "map"};
    lua_newtable(L);
    for (size_t count = choose(&api.choices, 5); count > 0; count--) {
        if (chance(&api.choices, 40))
            lua_pushinteger(L, (lua_Integer)choose(&api.choices, 4));
        else
            lua_pushstring(L, names[choose(&api.choices, ML_COUNT(names))]);
        push_value(L, depth + 1);
        lua_rawset(L, -3);
    }
    if (chance(&api.choices, 30)) {
        push_metatable(L, depth);
        lua_setmetatable(L, -2);
    }
}

ML_RAISES static void push_kept(lua_State *L, int reference)
{
    lua_rawgeti(L, LUA_REGISTRYINDEX, reference);
    size_t count = lua_rawlen(L, -1);
    lua_rawgeti(L, -1, count ? 1 + (lua_Integer)choose(&api.choices, count) : 1);
    lua_remove(L, -2);
}

ML_RAISES static void push_value(lua_State *L, int depth)
{
    static char target;
    luaL_checkstack(L, 10, NULL);
    switch (choose(&api.choices, depth > 3 ? 10 : 12)) {
    case 0:
        lua_pushnil(L);
        break;
    case 1:
        lua_pushboolean(L, (int)choose(&api.choices, 2));
        break;
    case 2:
        push_number(L);
        break;
    case 3:
    case 4:
        push_string(L);
        break;
    case 5:
        if (chance(&api.choices, 50))
            lua_pushlightuserdata(L, chance(&api.choices, 50) ? &target : NULL);
        else
            *(char *)lua_newuserdatauv(L, 1, (int)choose(&api.choices, 2)) = 0;
        break;
    case 6:
        push_kept(L, api.functions);
        break;
    case 10:
    case 11:
        push_table(L, depth);
        break;
    default:
        push_kept(L, api.values);
    }
}

/* }}} */

ML_RAISES static void print_call(lua_State *L, const char *name, int count)
{
    fprintf(stderr, "-- %s(", name);
    for (int i = count; i > 0; i--) {
        if (lua_type(L, -i) == LUA_TNUMBER || lua_type(L, -i) == LUA_TSTRING) {
            lua_pushvalue(L, -i);
            fprintf(stderr, "%.40s", lua_tostring(L, -1));
            lua_pop(L, 1);
        } else {
            fprintf(stderr, "%s", luaL_typename(L, -i));
        }
        fputs(i > 1 ? ", " : "", stderr);
    }
    fputs(")\n", stderr);
}

/* The next call: a function and its arguments, for pcall. */
ML_RAISES static int fuzz_call(lua_State *L)
{
    lua_settop(L, 0);
    lua_rawgeti(L, LUA_REGISTRYINDEX, api.functions);
    lua_rawgeti(L, LUA_REGISTRYINDEX, api.names);
    lua_Integer chosen = 1 + (lua_Integer)choose(&api.choices, lua_rawlen(L, 1));
    lua_rawgeti(L, 2, chosen);
    lua_rawgeti(L, 1, chosen);
    int count = (int)choose(&api.choices, 6);
    if (chance(&api.choices, 2))
        count = ARGUMENTS_MAX;
    luaL_checkstack(L, count, NULL);
    for (int i = 0; i < count; i++)
        push_value(L, 0);
    if (api.print)
        print_call(L, lua_tostring(L, 3), count);
    return count + 1;
}

/* Keeps the values that pcall returned: later calls may get them as arguments. Leaves out values
 * that only the host's own code holds: a script that had one could do anything. */
ML_RAISES static int fuzz_keep(lua_State *L)
{
    int count = lua_gettop(L);
    lua_rawgeti(L, LUA_REGISTRYINDEX, api.values);
    lua_rawgeti(L, LUA_REGISTRYINDEX, api.private);
    for (int i = 2; i <= count; i++) {
        lua_pushvalue(L, i);
        bool is_private = lua_isnil(L, i) || lua_rawget(L, count + 2) != LUA_TNIL;
        lua_settop(L, count + 2);
        size_t kept = lua_rawlen(L, count + 1);
        if (is_private)
            continue;
        lua_pushvalue(L, i);
        lua_rawseti(L, count + 1,
                    kept < VALUES_MAX ? (lua_Integer)kept + 1
                                      : 1 + (lua_Integer)choose(&api.choices, VALUES_MAX));
    }
    return 0;
}

ML_RAISES static int fuzz_count(lua_State *L)
{
    lua_pushinteger(L, (lua_Integer)choose(&api.choices, 60));
    return 1;
}

/* Values that a script reaches itself are not private: its globals, and the tables in them. */
ML_RAISES static int plant(lua_State *L)
{
    static const luaL_Reg functions[] = {{"fuzz_call", fuzz_call},
                                         {"fuzz_keep", fuzz_keep},
                                         {"fuzz_count", fuzz_count},
                                         {NULL, NULL}};
    lua_rawgeti(L, LUA_REGISTRYINDEX, LUA_RIDX_GLOBALS);
    int environment = lua_gettop(L);
    for (const luaL_Reg *function = functions; function->name; function++) {
        lua_pushstring(L, function->name);
        lua_pushcfunction(L, function->func);
        lua_rawset(L, environment);
    }
    lua_rawgeti(L, LUA_REGISTRYINDEX, api.private);
    lua_pushvalue(L, environment);
    lua_pushnil(L);
    lua_rawset(L, -3);
    lua_pushnil(L);
    while (lua_next(L, environment)) {
        lua_pushnil(L);
        lua_rawset(L, -4); /* eats the value as key */
    }
    return 0;
}

/* One call while the script takes in a file. */
ML_RAISES static int call_while_loading(lua_State *L)
{
    lua_settop(L, 0);
    for (int i = 0; i < 4; i++) {
        lua_pushcfunction(L, fuzz_call);
        lua_call(L, 0, LUA_MULTRET);
        if (lua_pcall(L, lua_gettop(L) - 1, LUA_MULTRET, 0) == LUA_ERRMEM)
            lua_error(L);
        lua_settop(L, 0);
    }
    return 0;
}

static void drive_loading(struct stage *stage)
{
    const struct ml_script_file file = {ML_STR("x.lua"), ML_STR("return { ... }")};
    const struct ml_script_files files = {&file, 1};
    struct ml_err err = ML_ERR_INIT;
    stage->script->files = &files;
    stage->script->thread.object = stage->object;
    if (script_protect(stage->script, call_while_loading, NULL, stage->limits.run_cpu_ns, &err) < 0)
        ml_warn(&stage->log, "scripts", "script refused", ML_ERR(&err));
    stage->script->files = NULL;
    stage->script->thread.object = NULL;
}

static void open_script(struct stage *stage)
{
    struct ml_err err = ML_ERR_INIT;
    if (!stage_load(stage, ml_str_of(driver)))
        stage_found("the driver does not load");
    if (script_protect(stage->script, find_functions, NULL, LOAD_CPU, &err) < 0 ||
        script_protect(stage->script, plant, NULL, LOAD_CPU, &err) < 0)
        stage_found("%s", err.message);
}

static const char *run(const uint8_t *data, size_t size, int64_t *out_over_ns)
{
    struct stage stage;
    struct choices answers;
    uint64_t seed = data[2] & 2 ? choices_seed(data, size) : 0;
    size_t skip = ML_MIN(size, (size_t)HEAD + ANSWERS);
    choices_init(&answers, data + HEAD, skip - HEAD, seed);
    choices_init(&api.choices, data + skip, size - skip, seed);
    api.print = getenv("FUZZ_PRINT");
    stage_open(&stage, &answers, ML_LOG_JSON);
    stage.limits = (struct ml_script_limits){.memory_max = (size_t)2 << (20 + data[1] % 2),
                                             .load_cpu_ns = LOAD_CPU,
                                             .run_cpu_ns = (5 + data[0] % 6) * ML_NS_PER_MS,
                                             .reads_max = 50,
                                             .writes_max = 10};
    stage.slow = data[2] & 1;
    if (stage.slow)
        stage.limits.run_cpu_ns = ML_NS_PER_S / 10;
    open_script(&stage);
    stage_stress_collector(stage.slow ? 1 + data[3] % 8 : 0);
    stage_reconcile(&stage);
    stage_watch_functions(&stage);
    drive_loading(&stage);
    stage_webhooks(&stage);
    stage_finalize(&stage);
    stage_reconcile(&stage);
    stage_stress_collector(0);
    stage_check_log(&stage);
    stage_check_bystander();
    stage_close(&stage);
    *out_over_ns = stage.slowest_ns;
    return stage.slowest;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    if (size <= HEAD)
        return -1;
    int64_t over_ns = 0;
    const char *slow = run(data, size, &over_ns);
    for (int tries = 1; slow && tries < TRIES; tries++) /* a busy machine is no finding */
        slow = run(data, size, &over_ns);
    if (slow)
        stage_found("%s: %lld ms more than twice the budget", slow,
                    (long long)(over_ns / ML_NS_PER_MS));
    stage_check_leaks();
    return 0;
}
