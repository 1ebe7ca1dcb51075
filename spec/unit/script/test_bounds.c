/* Every function that a script can reach has a row in docs/script-limits.md, and keeps to its
 * bound: called with the largest there is, until it ends or the deadline does, it takes at most
 * twice the deadline, and the script's memory stays inside its budget. Measured as CPU time of this
 * thread. Others that share the processor's caches and its core make that longer, never shorter: so
 * the shortest of a few tries counts. */
#include "script_world.h"

#include "script/internal.h"

#ifndef MOONLOOP_CPU_STRETCH
#define MOONLOOP_CPU_STRETCH 1
#endif

#define DEADLINE_NS   (20 * ML_NS_PER_MS * MOONLOOP_CPU_STRETCH)
#define MEMORY_MAX    ((size_t)16 * 1024 * 1024)
#define FUNCTIONS_MAX 300
#define TRIES_MAX     5
#define NAME_BYTES    80

static const struct ml_script_limits limits = {
    .run_cpu_ns = DEADLINE_NS,
    .load_cpu_ns = 500 * ML_NS_PER_MS * MOONLOOP_CPU_STRETCH,
    .memory_max = MEMORY_MAX,
};

/* ---- what there is ---- */

struct functions {
    char names[FUNCTIONS_MAX][NAME_BYTES];
    size_t count;
};

/* Where to look, in this order; the name in front, empty for what has none. Each is an entry of the
 * table `roots`, which reconcile holds. */
static const char *const roots[][2] = {
    {"globals", ""},
    {"moonloop", "moonloop"},
    {"time", "moonloop.time"},
    {"names", "moonloop.names"},
    {"result", "moonloop.result"},
    {"children", "moonloop.children"},
    {"webhooks", "moonloop.webhooks"},
    {"validation", "moonloop.validation"},
    {"calendar", "moonloop.calendar"},
    {"cron", "moonloop.cron"},
    {"zone", "moonloop.zone"},
    {"zone_rule", "moonloop.zone_rule"},
    {"zones", "moonloop.zones"},
    {"crypto", "moonloop.crypto"},
    {"base64", "moonloop.base64"},
    {"quantity", "moonloop.quantity"},
    {"amount", "moonloop.amount"},
    {"natural", "moonloop.natural"},
    {"yaml", "moonloop.yaml"},
    {"labels_module", "moonloop.labels"},
    {"regex", "moonloop.regex"},
    {"dialect", "moonloop.dialect"},
    {"regex_gmatch", "moonloop.regex.gmatch()"},
    {"objects", "moonloop.objects"},
    {"conditions", "moonloop.conditions"},
    {"variables", "moonloop.globals"},
    {"cjson", "cjson"},
    {"ctx", "ctx"},
    {"text", "string"},
    {"kind", "kind"},
    {"controller", "controller"},
    {"list", "list"},
    {"object", "object"},
    {"absent", "absent"},
    {"labels", "absent"},
    {"number", "number"},
    {"failure", "failure"},
    {"verdict", "verdict"},
    {"pairs", "pairs()"},
    {"ipairs", "ipairs()"},
    {"gmatch", "string.gmatch()"},
    {"codes", "utf8.codes()"},
};

static const char fill_roots[] =
    "local cjson = require 'cjson'\n"
    "roots.globals, roots.moonloop, roots.time, roots.cjson = _ENV, moonloop, time, cjson\n"
    "roots.names, roots.result = require 'moonloop.names', require 'moonloop.result'\n"
    "roots.children = require 'moonloop.children'\n"
    "roots.webhooks, roots.validation = require 'moonloop.webhooks', require "
    "'moonloop.validation'\n"
    "for _, name in ipairs { 'calendar', 'cron', 'crypto', 'base64', 'quantity', 'amount',\n"
    "  'natural', 'yaml', 'regex', 'dialect', 'zone', 'zone_rule', 'zones' } do\n"
    "  roots[name] = require('moonloop.' .. name) end\n"
    "roots.labels_module, roots.objects = require 'moonloop.labels', require 'moonloop.objects'\n"
    "roots.regex_gmatch = roots.regex.gmatch('x', 'x')\n"
    "roots.conditions, roots.variables = require 'moonloop.conditions', require "
    "'moonloop.globals'\n"
    "roots.ctx, roots.text, roots.kind, roots.list = ctx, '', Pod, moonloop.array {}\n"
    "roots.controller = moonloop.controller { name = 'x', reconciles = Pod, reconcile = error }\n"
    "roots.object, roots.absent, roots.labels = at, at.status, at.metadata.labels\n"
    "roots.number = cjson.decode '1e999' roots.failure = select(2, ctx.get(Pod, 'none'))\n"
    "roots.verdict, roots.gmatch = ctx.terminal 'x', ('x'):gmatch 'x'\n"
    "roots.pairs, roots.ipairs, roots.codes = pairs {}, ipairs {}, utf8.codes ''\n";

static bool has_name(const struct functions *list, const char *name)
{
    for (size_t i = 0; i < list->count; i++)
        if (strcmp(list->names[i], name) == 0)
            return true;
    return false;
}

static bool note_seen(lua_State *L, int seen)
{
    const void *pointer = lua_topointer(L, -1);
    bool is_new = lua_rawgetp(L, seen, pointer) == LUA_TNIL;
    lua_pop(L, 1);
    lua_pushboolean(L, 1);
    lua_rawsetp(L, seen, pointer);
    return is_new;
}

/* Appends a key to a name. The entries behind an __index count as the value's own. */
static void join_name(lua_State *L, const char *prefix, char out[NAME_BYTES])
{
    const char *key = lua_type(L, -2) == LUA_TSTRING ? lua_tostring(L, -2) : "?";
    if (strcmp(key, "__index") == 0 && lua_istable(L, -1))
        snprintf(out, NAME_BYTES, "%s", prefix);
    else
        snprintf(out, NAME_BYTES, "%s%s%s", prefix, *prefix ? "." : "", key);
}

/* Walks the value on top: its entries, its metatable. */
static void walk(lua_State *L, int seen, const char *name, struct functions *found)
{
    int type = lua_type(L, -1);
    if (type == LUA_TFUNCTION && !has_name(found, name)) {
        assert_true(found->count < FUNCTIONS_MAX);
        snprintf(found->names[found->count++], NAME_BYTES, "%s", name);
    }
    assert_true(lua_checkstack(L, 10));
    if (type == LUA_TTABLE && note_seen(L, seen)) {
        lua_pushnil(L);
        while (lua_next(L, -2)) {
            char below[NAME_BYTES];
            join_name(L, name, below);
            walk(L, seen, below, found);
            lua_pop(L, 1);
        }
    }
    bool is_other_text = type == LUA_TSTRING && strcmp(name, "string") != 0;
    if (!is_other_text && lua_getmetatable(L, -1)) {
        walk(L, seen, *name ? name : "_ENV", found);
        lua_pop(L, 1);
    }
}

struct looking {
    struct ml_script *script;
    struct functions *found;
};

/* Runs in script_protect: `roots` is an upvalue of reconcile. */
static int look(lua_State *L)
{
    const struct looking *looking = lua_touserdata(L, 1);
    const char *name = "";
    lua_newtable(L);
    int seen = lua_gettop(L);
    lua_rawgeti(L, LUA_REGISTRYINDEX, looking->script->reconcile_ref);
    for (int i = 1; name && strcmp(name, "roots") != 0; i++)
        name = lua_getupvalue(L, seen + 1, i);
    assert_non_null(name);
    int held = lua_gettop(L);
    for (size_t i = 0; i < ML_COUNT(roots); i++) {
        lua_pushstring(L, roots[i][0]);
        assert_int_not_equal(lua_rawget(L, held), LUA_TNIL);
        walk(L, seen, roots[i][1], looking->found);
        lua_pop(L, 1);
    }
    return 0;
}

static void find_functions(struct functions *found)
{
    struct world w;
    struct told told;
    struct ml_err err = ML_ERR_INIT;
    found->count = 0;
    world_open_file(&w, "local roots = {} ", "nil", fill_roots, NULL);
    assert_null(world_start(&w, &told));
    expect_outcome(&told, ML_OUTCOME_OK, "");
    struct looking looking = {w.script, found};
    if (script_protect(w.script, look, &looking, 10 * ML_NS_PER_S, &err) < 0)
        fail_msg("%s", err.message);
    world_close(&w);
}

/* ---- the table in the docs ---- */

/* The names in backticks in the first cell of a line "| `a`, `b` | … |". */
static void take_row(char *line, struct functions *rows)
{
    char *cell_end = line[0] == '|' ? strchr(line + 1, '|') : NULL;
    if (!cell_end)
        return;
    *cell_end = '\0';
    for (char *at = strchr(line, '`'); at; at = strchr(at, '`')) {
        char *end = strchr(++at, '`');
        assert_non_null(end);
        assert_true(rows->count < FUNCTIONS_MAX);
        snprintf(rows->names[rows->count++], NAME_BYTES, "%.*s", (int)(end - at), at);
        at = end + 1;
    }
}

static void read_rows(struct functions *rows)
{
    char line[4096];
    FILE *file = fopen(SOURCE_DIR "/docs/script-limits.md", "r");
    assert_non_null(file);
    rows->count = 0;
    while (fgets(line, sizeof line, file))
        take_row(line, rows);
    fclose(file);
}

static void test_each_function_has_a_row_and_each_row_a_function(void **state)
{
    (void)state;
    static struct functions found, rows;
    find_functions(&found);
    read_rows(&rows);
    size_t wrong = 0;
    for (size_t i = 0; i < found.count; i++)
        if (!has_name(&rows, found.names[i]) && ++wrong)
            print_error("%s has no row in docs/script-limits.md\n", found.names[i]);
    for (size_t i = 0; i < rows.count; i++)
        if (!has_name(&found, rows.names[i]) && ++wrong)
            print_error("docs/script-limits.md has a row for %s, which no script can reach\n",
                        rows.names[i]);
    assert_int_equal(wrong, 0);
}

/* ---- what each costs ---- */

/* The largest that fits: text S, list T, object D of long values, object K of many keys. */
static const char largest[] =
    "local cjson, names, result = require 'cjson', require 'moonloop.names', "
    "require 'moonloop.result' local children = require 'moonloop.children' "
    "local webhooks, validation = require 'moonloop.webhooks', require 'moonloop.validation' "
    "local calendar, cron = require 'moonloop.calendar', require 'moonloop.cron' "
    "local zone, zone_rule = require 'moonloop.zone', require 'moonloop.zone_rule' "
    "local zones = require 'moonloop.zones' "
    "local crypto, base64 = require 'moonloop.crypto', require 'moonloop.base64' "
    "local quantity, amount = require 'moonloop.quantity', require 'moonloop.amount' "
    "local natural, yaml = require 'moonloop.natural', require 'moonloop.yaml' "
    "local labels, regex = require 'moonloop.labels', require 'moonloop.regex' "
    "local dialect = require 'moonloop.dialect' "
    "local objects = require 'moonloop.objects' "
    "local conditions, globals = require 'moonloop.conditions', require 'moonloop.globals' "
    "local S, T, D, K = ('a'):rep(1000000), {}, {}, {} "
    "for i = 1, 100000 do T[i] = i end for i = 1, 1000 do D['k' .. i] = S end "
    "for i = 1, 30000 do K['k' .. i] = i end "
    "local function no() return false end "
    "local function each(f) while true do "
    "pcall(f) pcall(f, S) pcall(f, S, S) pcall(f, S, S, S) pcall(f, S, 1, -1) pcall(f, S, 1, S) "
    "pcall(f, S, 1000000) pcall(f, S, -1) pcall(f, S, '.', S) pcall(f, T) pcall(f, T, T) "
    "pcall(f, T, S) pcall(f, T, 1) pcall(f, T, 1, 100000, 2) pcall(f, T, 1, 1) pcall(f, T, no) "
    "pcall(f, D) pcall(f, D, D) pcall(f, K) pcall(f, K, K) pcall(f, K, 'k1') "
    "pcall(f, math.maxinteger) pcall(f, math.mininteger, math.maxinteger) pcall(f, 0 / 0, 1 / 0) "
    "pcall(f, 1e308, -1e-308) pcall(f, no) pcall(f, no, S) "
    "pcall(f, table.unpack(T, 1, 50000)) pcall(f, 1, table.unpack(T, 1, 50000)) "
    "pcall(f, S, table.unpack(T, 1, 50000)) end end ";

static char *many_items(void)
{
    struct ml_buf text = ML_BUF_INIT;
    ml_buf_puts(&text, "{\"kind\":\"SecretList\",\"items\":[");
    for (int i = 0; i < 20000; i++)
        ml_buf_printf(&text, "%s{\"metadata\":{\"name\":\"s%d\",\"ownerReferences\":[{},{},{}]}}",
                      i ? "," : "", i);
    ml_buf_puts(&text, "]}");
    return ml_buf_take(&text);
}

static char *large_object(void)
{
    struct ml_buf text = ML_BUF_INIT;
    ml_buf_puts(&text, "{\"kind\":\"Secret\",\"metadata\":{\"name\":\"s\",\"ownerReferences\":[");
    for (int i = 0; i < 10000; i++)
        ml_buf_printf(&text, "%s{\"uid\":\"u%d\"}", i ? "," : "", i);
    ml_buf_puts(&text, "]},\"data\":{");
    for (int i = 0; i < 40000; i++)
        ml_buf_printf(&text, "%s\"k%d\\u0001\":\"\\u0001\\u0002\"", i ? "," : "", i);
    ml_buf_puts(&text, "}}");
    return ml_buf_take(&text);
}

/* One that the reconciled object controls, full of keys. */
static char *large_secret(void)
{
    struct ml_buf text = ML_BUF_INIT;
    ml_buf_puts(&text, "{\"kind\":\"Secret\",\"metadata\":{\"name\":\"s\",\"uid\":\"u\","
                       "\"resourceVersion\":\"1\",\"ownerReferences\":[{\"uid\":\"at-uid\","
                       "\"controller\":true}]},\"data\":{");
    for (int i = 0; i < 40000; i++)
        ml_buf_printf(&text, "%s\"key%d\":\"eHh4eHh4\"", i ? "," : "", i);
    ml_buf_puts(&text, "}}");
    return ml_buf_take(&text);
}

/* Long values, which the search for a field has to pass over. */
static char *long_values(void)
{
    struct ml_buf text = ML_BUF_INIT;
    ml_buf_puts(&text, "{\"kind\":\"Pod\",\"metadata\":{\"name\":\"s\"},\"data\":{");
    for (int i = 0; i < 60; i++)
        ml_buf_printf(&text, "%s\"k%d\":\"%04000d\"", i ? "," : "", i, i);
    ml_buf_puts(&text, "}}");
    return ml_buf_take(&text);
}

#define LARGE_POD                                                                                  \
    "local p = pod(at) p.spec = K p.metadata.annotations = { a = S, b = S } "                      \
    "p.metadata.labels = K "
/* A text of YAML that is read over and over. */
#define YAML_OF(middle, before, after)                                                             \
    "local y = '" before "' .. " middle " .. '" after "' while true do yaml.decode(y) end"
#define OF_A_SECRET "{ apiVersion = 'v1', kind = 'Secret', metadata = { name = 's' } }"

/* Functions that need more than a call of their name, or have a worse argument than `largest`. */
static const struct {
    const char *name, *statements;
    char *(*answer)(void); /* to the one request that it makes */
} cases[] = {
    {"ctx.apply", LARGE_POD "while true do pcall(ctx.apply, p) end", NULL},
    {"ctx.create", LARGE_POD "while true do pcall(ctx.create, p) end", NULL},
    {"ctx.create", "ctx.create(pod(at))", large_object},
    {"ctx.create",
     "local p = pod(at) p.metadata.ownerReferences = {} for i = 1, 30000 do\n"
     "p.metadata.ownerReferences[i] = { name = 'x' } end while true do pcall(ctx.create, p) end",
     NULL},
    {"ctx.delete",
     LARGE_POD "p.metadata.uid = S while true do pcall(ctx.delete, p) pcall(ctx.delete, T) end",
     NULL},
    {"ctx.ensure", LARGE_POD "while true do pcall(ctx.ensure, p) end", NULL},
    {"ctx.ensure", "while true do pcall(ctx.ensure, T) pcall(ctx.ensure, D) end", NULL},
    {"ctx.event", "while true do pcall(ctx.event, 'Large', S) pcall(ctx.event, S, S) end", NULL},
    {"ctx.event",
     "while true do pcall(ctx.event, 'Large', 'x', { about = D, related = K }) pcall(ctx.event,\n"
     "'Large', S, { about = { apiVersion = 'v1', kind = 'Pod', name = S, uid = S }, type = S }) "
     "end",
     NULL},
    {"ctx.get", "while true do pcall(ctx.get, Pod, S) pcall(ctx.get, Pod, 'x', S) end", NULL},
    {"ctx.get", "while true do pcall(ctx.get, T) pcall(ctx.get, Pod, 'none') end", NULL},
    {"ctx.get", "ctx.get(Secret, 's')", large_object},
    {"ctx.http",
     "while true do pcall(ctx.http, K) pcall(ctx.http, { url = S }) pcall(ctx.http, { url = 'x', "
     "headers = K, body = S }) pcall(ctx.http, { url = 'https://a.test/' .. S }) end",
     NULL},
    {"ctx.invalid", "each(ctx.invalid)", NULL},
    {"ctx.invalid", "return ctx.invalid(S, S)", NULL},
    {"ctx.invalid", "while true do pcall(ctx.invalid, 'x', 'y', K) pcall(ctx.invalid, S, S, D) end",
     NULL},
    {"moonloop.conditions.list",
     "local all, one = {}, { status = true, message = S } for i = 1, 1000 do all['c' .. i] = one "
     "end while true do pcall(conditions.list, all) pcall(conditions.list, { [S] = one }) end",
     NULL},
    {"ctx.list",
     "while true do pcall(ctx.list, Secret, { labels = K }) pcall(ctx.list, Pod, K)\n"
     "pcall(ctx.list, Secret, { labels = { a = S } }) pcall(ctx.list, Pod, { namespace = S }) end",
     NULL},
    {"ctx.list",
     "while true do pcall(ctx.list, Pod, { fields = K }) pcall(ctx.list, Pod, { fields = D })\n"
     "pcall(ctx.list, Secret, { fields = { a = S } }) pcall(ctx.list, Pod, { key = S }) end",
     NULL},
    {"ctx.list", "ctx.list(Secret, { owned = true })", many_items},
    {"ctx.list", "ctx.list(Secret, { namespace = '*' })", many_items},
    {"ctx.log", "while true do pcall(ctx.log, S, K) pcall(ctx.log, S, D) end", NULL},
    {"ctx.metric",
     "while true do pcall(ctx.metric, 'm', 1, K) pcall(ctx.metric, S, 1, D)\n"
     "pcall(ctx.metric, 'm', 1, { l = S }) pcall(ctx.metric, 'm', 1, { l = S:sub(1, 256) }) end",
     NULL},
    {"ctx.now", "while true do ctx.now() end", NULL},
    {"ctx.once",
     "while true do pcall(ctx.once, 's', K) pcall(ctx.once, S, D) pcall(ctx.once, T) end", NULL},
    {"ctx.once",
     "local F = {} for i = 1, 100 do F['k' .. i] = function() return S:sub(1, 65536) end end\n"
     "ctx.once('s', F)",
     large_secret},
    {"ctx.once", "ctx.once('s', { a = function() return S end })", large_object},
    {"ctx.patch",
     LARGE_POD "p.metadata.uid, p.metadata.resourceVersion = 'u', '1'\n"
               "while true do pcall(ctx.patch, p, { spec = K }) pcall(ctx.patch, p, D) end",
     NULL},
    {"ctx.patch",
     "local s = " OF_A_SECRET " s.metadata.uid, s.metadata.resourceVersion = 'u', '1'\n"
     "ctx.patch(s, { data = { a = 'x' } })",
     large_object},
    {"ctx.terminal", "each(ctx.terminal)", NULL},
    {"ctx.terminal", "return ctx.terminal(S)", NULL},
    {"ctx.__newindex", "while true do pcall(function() ctx[S] = S end) end", NULL},
    {"ctx.__index", "while true do pcall(function() return ctx[S] end) end", NULL},
    {"_ENV.__index", "while true do pcall(function() return _ENV[S] end) end", NULL},
    {"_ENV.__newindex", "while true do pcall(function() _ENV[S] = S end) end", NULL},
    {"absent.__newindex",
     "while true do pcall(function() at.status[S] = S end)\n"
     "pcall(function() at.metadata.labels[S] = S end) end",
     NULL},
    {"object.__index", "while true do local _ = at[S], at.status, at[T] end", NULL},
    {"object.__index",
     "local s = ctx.create(pod(at)) while true do local _ = s.data.none, s.none end", long_values},
    {"object.__newindex",
     "local n = 0 while true do n = n + 1 at[S] = nil at['x' .. n] = nil at[n] = nil end", NULL},
    {"object.__newindex",
     "local s = ctx.create(pod(at)) local d = s.data while true do d.none = nil end", long_values},
    {"object.metadata.__newindex",
     "local m = at.metadata while true do m[S] = nil m.none = nil end", NULL},
    {"object.metadata.__index", "local m = at.metadata while true do local _ = m[S], m.labels end",
     NULL},
    {"kind.__eq", "while true do local _ = Pod == Secret end", NULL},
    {"kind.__index", "while true do pcall(function() return Pod[S] end) end", NULL},
    {"kind.__tostring", "while true do tostring(Pod) end", NULL},
    {"number.__eq",
     "local a, b = cjson.decode(('1'):rep(900000)), cjson.decode(('1'):rep(900001))\n"
     "while true do local _ = a == b end",
     NULL},
    {"number.__tostring", "local a = cjson.decode(('1'):rep(900000)) while true do tostring(a) end",
     NULL},
    {"failure.__concat",
     "local _, e = ctx.get(Pod, 'none') while true do local _ = e .. S, S .. e end", NULL},
    {"failure.__index",
     "local _, e = ctx.get(Pod, 'none') while true do pcall(function() return e[S] end) end", NULL},
    {"failure.__tostring", "local _, e = ctx.get(Pod, 'none') while true do tostring(e) end", NULL},
    {"ipairs()", "while true do for _ in ipairs(T) do end end", NULL},
    {"pairs()", "while true do for _ in pairs(K) do end end", NULL},
    {"pairs()",
     "local t = {} for i = 1, 50000 do t[i] = i end\n"
     "while true do for i in pairs(t) do for j = i, 50000 do t[j] = nil end end end",
     NULL},
    {"string.gmatch()", "while true do for _ in S:gmatch(('a?'):rep(30) .. 'b') do end end", NULL},
    {"utf8.codes()", "while true do for _ in utf8.codes(S) do end end", NULL},
    {"string.__add", "while true do pcall(function() return S + S end) end", NULL},
    {"string.__div", "while true do pcall(function() return S / 1 end) end", NULL},
    {"string.__idiv", "while true do pcall(function() return S // 1 end) end", NULL},
    {"string.__mod", "while true do pcall(function() return S % 1 end) end", NULL},
    {"string.__mul",
     "local n = ('1'):rep(1000000) while true do pcall(function() return n * n end) end", NULL},
    {"string.__pow", "while true do pcall(function() return S ^ S end) end", NULL},
    {"string.__sub", "while true do pcall(function() return S - S end) end", NULL},
    {"string.__unm", "while true do pcall(function() return -S end) end", NULL},
    {"string.format",
     "local f = ('%99.99f'):rep(9000)\n"
     "while true do pcall(string.format, f, table.unpack(T, 1, 9000)) end",
     NULL},
    {"string.gsub", "while true do S:gsub('()', ('%1'):rep(500000)) end", NULL},
    {"string.find", "S:find('%f[' .. ('%d'):rep(7000) .. ']')", NULL},
    {"string.match", "S:match('(.-)%1%1b')", NULL},
    {"table.sort",
     "local t = {} for i = 1, 20 do t[i] = S:sub(1, 300000) .. i end\n"
     "for i = 21, 20000 do t[i] = t[i % 20 + 1] end table.sort(t)",
     NULL},
    {"cjson.encode",
     "local t = {} for i = 1, 200000 do t[i] = i + 0.1 end\n"
     "while true do pcall(cjson.encode, t) end",
     NULL},
    {"cjson.encode", "local s = ('\\1'):rep(500000) while true do cjson.encode(s) end", NULL},
    {"cjson.decode", "local s = cjson.encode(K) while true do cjson.decode(s) end", NULL},
    {"cjson.decode",
     "local s = '\"' .. ('\\\\u0001'):rep(160000) .. '\"'\n"
     "while true do cjson.decode(s) end",
     NULL},
    {"moonloop.children.carry_out",
     "local l = {} for i = 1, 1000 do l[i] = pod(at) l[i].metadata.name = 'p' .. i end\n"
     "l[1000] = pod(at) l[1000].metadata.name = 'p1' return { children = l }",
     NULL},
    {"moonloop.children.carry_out",
     LARGE_POD "while true do pcall(children.carry_out, 'x', { p, p }) end", NULL},
    {"moonloop.controller",
     "while true do pcall(moonloop.controller, { name = S, reconciles = Pod, reconcile = error })\n"
     "pcall(moonloop.controller, { name = 'x', reconciles = Pod, reconcile = error, owns = T,\n"
     "watches = T, uses = T, when = T }) end",
     NULL},
    {"moonloop.kind",
     "while true do pcall(moonloop.kind, 'v1', 'Pod', { labels = S })\n"
     "pcall(moonloop.kind, 'v1', 'Pod', { labels = ('a,'):rep(511) .. 'b' })\n"
     "pcall(moonloop.kind, 'v1', 'Pod', K) pcall(moonloop.kind, S, S, { fields = S }) end",
     NULL},
    {"moonloop.__index", "while true do pcall(function() return moonloop[S] end) end", NULL},
    {"moonloop.time.__index", "while true do pcall(function() return time[S] end) end", NULL},
    {"moonloop.index",
     "while true do pcall(moonloop.index, Pod, error) pcall(moonloop.index, S, S) end", NULL},
    {"moonloop.watch", "while true do pcall(moonloop.watch, Pod, error, T) end", NULL},
    {"moonloop.time.duration",
     "local d = ('1s'):rep(8000) while true do pcall(time.duration, d) end", NULL},
    {"moonloop.time.cron",
     "while true do time.cron('0 0 30 2 *', 0) time.cron('59 23 29 2 *', -2e9) time.cron(S, 0)\n"
     "time.cron(('0-59/1,'):rep(34) .. '0 * * * *', 0) end",
     NULL},
    {"moonloop.time.cron", "while true do time.cron('0 0 30 2 *', 2e9, 'America/New_York') end",
     NULL},
    {"moonloop.time.cron_before",
     "while true do time.cron_before('0 0 30 2 *', 9e9, 'America/New_York') end", NULL},
    {"moonloop.time.zone",
     "local n = {} for h = -12, 14 do n[#n + 1] = ('Etc/GMT%+d'):format(h) end\n"
     "for _, c in ipairs { 'Europe/Berlin', 'Europe/Paris', 'Asia/Tokyo', 'America/New_York',\n"
     "'America/Chicago', 'Australia/Sydney', 'Africa/Cairo' } do n[#n + 1] = c end\n"
     "while true do for i = 1, #n do time.zone(n[i]) end end",
     NULL},
    {"moonloop.zone.at",
     "local z = zones.find 'Europe/Berlin' while true do zone.at(z, 1 << 40) zone.at(z, 0) end",
     NULL},
    {"moonloop.crypto.__index", "while true do pcall(function() return crypto[S] end) end", NULL},
    {"moonloop.base64.__index", "while true do pcall(function() return base64[S] end) end", NULL},
    {"moonloop.quantity.__index", "while true do pcall(function() return quantity[S] end) end",
     NULL},
    {"moonloop.yaml.__index", "while true do pcall(function() return yaml[S] end) end", NULL},
    {"moonloop.labels.__index", "while true do pcall(function() return labels[S] end) end", NULL},
    {"moonloop.regex.__index", "while true do pcall(function() return regex[S] end) end", NULL},
    {"moonloop.regex.match",
     "local p = '(?:(a|b)?){300}x' local s = S:sub(1, 1740) while true do regex.match(s, p) end",
     NULL},
    {"moonloop.regex.match",
     "local i = 0 while true do i = i + 1 pcall(regex.match, 'x', ('(?:a{0,1000})'):rep(44) .. i) "
     "end",
     NULL},
    {"moonloop.regex.match",
     "local i = 0 while true do i = i + 1 pcall(regex.match, 'x', '(?i)' .. ('\\\\PL'):rep(30) .. "
     "i) end",
     NULL},
    {"moonloop.regex.find", "while true do regex.find(S:sub(1, 100000), '(?:x+y|a*)+', -5) end",
     NULL},
    {"moonloop.regex.gsub", "while true do regex.gsub(S:sub(1, 200000), 'a+b|a', '$0$0') end",
     NULL},
    {"moonloop.regex.gsub", "while true do regex.gsub(S:sub(1, 9999), '', S:sub(1, 9)) end", NULL},
    {"moonloop.regex.gmatch()",
     "for _ in regex.gmatch(S:sub(1, 200000), 'a+b|a') do end while true do end", NULL},
    {"moonloop.regex.quote", "while true do regex.quote(('('):rep(1000000)) end", NULL},
    {"moonloop.crypto.password",
     "local all = {} for i = 0, 128 do all[i + 1] = string.char(i) end\n"
     "all = table.concat(all) while true do crypto.password(1024, all) end",
     NULL},
    {"moonloop.crypto.random", "while true do crypto.random(65536, 'hex') end", NULL},
    {"moonloop.crypto.sha256", "local s = S .. S .. S while true do crypto.sha256(s) end", NULL},
    {"moonloop.crypto.hmac_sha256",
     "local s = S .. S .. S while true do crypto.hmac_sha256(s, s) end", NULL},
    {"moonloop.base64.encode", "local s = S .. S while true do base64.encode(s) end", NULL},
    {"moonloop.base64.decode", "local s = S .. S .. S while true do base64.decode(s) end", NULL},
    {"moonloop.quantity.multiply",
     "local q = ('9'):rep(60) .. 'e-60' while true do quantity.multiply(q, q) end", NULL},
    {"moonloop.quantity.add",
     "local q = '0.' .. ('9'):rep(120) .. 'Ei' while true do quantity.add(q, '-1e35') end", NULL},
    {"moonloop.yaml.encode", "while true do pcall(yaml.encode, K) pcall(yaml.encode, T) end", NULL},
    {"moonloop.yaml.encode",
     "local t = { ('\xc2\x85'):rep(200000) } while true do pcall(yaml.encode, t) end", NULL},
    {"moonloop.yaml.encode",
     "local t = { (' \\n'):rep(200000) .. 'x' } while true do pcall(yaml.encode, t) end", NULL},
    {"moonloop.yaml.decode", YAML_OF("('a,'):rep(520000)", "[", "]"), NULL},
    {"moonloop.yaml.decode", YAML_OF("('[]:0,'):rep(170000)", "{", "}"), NULL},
    {"moonloop.yaml.decode", YAML_OF("('x: y\\n'):rep(200000)", "", ""), NULL},
    {"moonloop.yaml.decode", YAML_OF("('---\\n'):rep(260000)", "", ""), NULL},
    {"moonloop.yaml.decode", YAML_OF("('a b\\n\\n'):rep(200000)", "\"", "\""), NULL},
    {"moonloop.yaml.decode", YAML_OF("('0x1'):rep(300000)", "", ""), NULL},
    {"moonloop.yaml.decode", YAML_OF("('# x\\n'):rep(200000)", "", "a"), NULL},
    {"moonloop.yaml.decode",
     "local y = ('['):rep(120) .. ('{},'):rep(300000) while true do yaml.decode(y) end", NULL},
    {"moonloop.yaml.decode",
     "local y = {} for i = 1, 60000 do y[i] = 'k' .. i * 7919 % 60000 .. 'x:' end\n"
     "y = table.concat(y, '\\n') while true do yaml.decode(y) end",
     NULL},
    {"moonloop.yaml.decode",
     "local y = {} for i = 1, 70000 do y[i] = '%TAG !' .. i .. '! b' end\n"
     "y = table.concat(y, '\\n') .. '\\n--- a' while true do yaml.decode(y) end",
     NULL},
    {"moonloop.yaml.decode",
     "local y = { 'a: &a {' } for i = 1, 3000 do y[i + 1] = 'k' .. i .. ': 1,' end\n"
     "y = table.concat(y) .. '}\\nb:\\n  <<: [' .. ('*a,'):rep(3000) .. ']\\n'\n"
     "while true do yaml.decode(y) end",
     NULL},
    {"moonloop.labels.match",
     "local l, s = {}, ('a,'):rep(2040) .. 'b' for i = 1, 900 do l['k' .. i] = 'v' end l.a = ''\n"
     "while true do labels.match(s, l) end",
     NULL},
    {"moonloop.labels.match",
     "local v = {} for i = 1, 900 do v[i] = 'v' .. i end\n"
     "local e = { key = 'a', operator = 'In', values = v }\n"
     "while true do labels.match({ matchExpressions = { e } }, { a = 'b' }) end",
     NULL},
};

struct cost {
    int64_t cpu_ns;
    size_t memory;
    char end[ML_ERR_MESSAGE_MAX]; /* the error that it ended with, if any */
};

static struct cost cost_of(const char *statements, char *(*answer)(void))
{
    struct world w;
    struct told told;
    ML_AUTO_FREE char *body = ml_asprintf("do %s end", statements);
    ML_AUTO_FREE char *text = answer ? answer() : NULL;
    world_open_file(&w, largest, "nil", body, &limits);
    struct ml_run *run = NULL;
    int64_t begin_ns = unit_cpu_ns();
    run = world_start(&w, &told);
    int64_t first_ns = unit_cpu_ns() - begin_ns, second_ns = 0;
    if (text && !run)
        fail_msg("it asks for nothing (%s): %s", told.message, statements);
    if (run && text) {
        struct fake_call *call = fake_next(w.fake);
        begin_ns = unit_cpu_ns();
        world_answer(&w, call, 200, text);
        second_ns = unit_cpu_ns() - begin_ns;
    }
    if (run && told.count == 0)
        ml_script_cancel(run);
    struct cost cost = {.cpu_ns = ML_MAX(first_ns, second_ns),
                        .memory = ml_script_budget(w.script)->used};
    snprintf(cost.end, sizeof cost.end, "%s", told.message);
    world_close(&w);
    return cost;
}

static size_t check_cost(const char *name, const char *statements, char *(*answer)(void))
{
    struct cost cost = cost_of(statements, answer);
    bool is_endless = strstr(statements, "while true") || strstr(statements, "each(");
    bool is_ended = strstr(cost.end, "of CPU time") || strstr(cost.end, "out of memory");
    if (is_endless && !is_ended) {
        print_error("%s: it measures nothing, it ended with '%s': %s\n", name, cost.end,
                    statements);
        return 1;
    }
    for (int i = 1; i < TRIES_MAX && cost.cpu_ns > 2 * DEADLINE_NS; i++)
        cost.cpu_ns = ML_MIN(cost.cpu_ns, cost_of(statements, answer).cpu_ns);
    if (cost.cpu_ns <= 2 * DEADLINE_NS && cost.memory <= MEMORY_MAX)
        return 0;
    print_error("%s: %d ms of CPU with a deadline of %d ms, %zu KiB: %s\n", name,
                (int)(cost.cpu_ns / ML_NS_PER_MS), (int)(DEADLINE_NS / ML_NS_PER_MS),
                cost.memory / 1024, statements);
    return 1;
}

/* As a script has it, or NULL: it is called in another way. */
static char *expression_of(const char *name)
{
    if (strstr(name, "__") || strstr(name, "()") || strncmp(name, "ctx.", 4) == 0)
        return NULL;
    if (strncmp(name, "moonloop.time.", 14) == 0)
        return ml_asprintf("time.%s", name + 14);
    bool is_of_module = strncmp(name, "moonloop.", 9) == 0 && strchr(name + 9, '.');
    return ml_strdup(is_of_module ? name + 9 : name);
}

static void test_each_function_keeps_to_its_bound(void **state)
{
    (void)state;
    static struct functions found;
    find_functions(&found);
    size_t wrong = 0;
    for (size_t i = 0; i < found.count; i++) {
        const char *name = found.names[i];
        ML_AUTO_FREE char *expression = expression_of(name);
        size_t measured = expression != NULL;
        if (expression) {
            ML_AUTO_FREE char *statements = ml_asprintf("each(%s)", expression);
            wrong += check_cost(name, statements, NULL);
        }
        for (size_t k = 0; k < ML_COUNT(cases); k++) {
            if (strcmp(cases[k].name, name) != 0)
                continue;
            wrong += check_cost(name, cases[k].statements, cases[k].answer);
            measured++;
        }
        if (measured == 0 && ++wrong)
            print_error("%s is not measured: it needs a case here\n", name);
    }
    assert_int_equal(wrong, 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_each_function_has_a_row_and_each_row_a_function),
        cmocka_unit_test(test_each_function_keeps_to_its_bound),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
