/* Objects that are decoded as a script touches them, held against the same objects decoded whole:
 * random programs on random objects must see the same, errors and the order of keys included. Then
 * what random programs do not come by: memory that runs out, objects kept from run to run. */
#include "script_world.h"

#include "script/objects.h"

#ifndef MOONLOOP_CPU_STRETCH
#define MOONLOOP_CPU_STRETCH 1
#endif

#ifdef MOONLOOP_GC_STRESS
#define OBJECTS 40
#else
#define OBJECTS 600
#endif

/* reconcile(seed): a random object as JSON. reconcile(object, seed): runs a random program on it,
 * gives what it saw. Tables are written as the number under which they were seen first, so that
 * identity counts. No list with holes is made of an object: how long Lua says it is depends on what
 * else is in the table. */
static const char program[] =
    "local cjson = require 'cjson'\n"
    "local function dice(seed)\n"
    "  local state = seed * 2654435761 + 12345\n"
    "  return function(n)\n"
    "    state = (state * 6364136223846793005 + 1442695040888963407)\n"
    "    return (state >> 33) % n + 1\n"
    "  end\n"
    "end\n"
    "local names = { 'spec', 'status', 'metadata', 'labels', 'annotations', 'a', 'b', 'phase',\n"
    "  'managedFields', 'name', 'x y', '__index', '__gc', 'items', '' }\n"
    "local scalars = { '1', '-0', '9007199254740993', '1.0', '1.50', '1e3', '1e999',\n"
    "  '123456789012345678901234567890', '\"\"', '\"text\"', '\"\\\\u003c/\\\\n\"', "
    "'\"\\195\\188\"',\n"
    "  'true', 'false', 'null', '{}', '[]', '[[],[{}],{}]' }\n"
    "local function value(roll, depth)\n"
    "  local kind = roll(10)\n"
    "  if depth > 4 or kind <= 4 then return scalars[roll(#scalars)] end\n"
    "  local parts = {}\n"
    "  if kind <= 6 then\n"
    "    for i = 1, roll(5) - 1 do parts[i] = value(roll, depth + 1) end\n"
    "    return '[' .. table.concat(parts, roll(2) == 1 and ',' or ' , ') .. ']'\n"
    "  end\n"
    "  local count = roll(40) == 1 and 60 + roll(8) or roll(8) - 1\n"
    "  for i = 1, count do\n"
    "    local name = count > 8 and roll(9) > 1 and 'k' .. i or names[roll(#names)]\n"
    "    if roll(30) == 1 then name = '\\\\u0061' end\n"
    "    parts[i] = ('\"%s\":%s'):format(name, value(roll, depth + 1))\n"
    "  end\n"
    "  if roll(3) > 1 then\n" /* mostly without duplicates */
    "    local seen, kept = {}, {}\n"
    "    for _, part in ipairs(parts) do\n"
    "      local name = part:match '^\"(.-)\"'\n"
    "      if not seen[name] then kept[#kept + 1] = part end\n"
    "      seen[name] = true\n"
    "    end\n"
    "    parts = kept\n"
    "  end\n"
    "  return '{' .. table.concat(parts, ',') .. '}'\n"
    "end\n"
    "local function make(roll)\n"
    "  local parts = {}\n"
    "  for i, name in ipairs { 'apiVersion', 'metadata', 'spec', 'status', 'data' } do\n"
    "    local text = value(roll, 1)\n"
    "    if roll(4) > 1 then parts[#parts + 1] = ('\"%s\":%s'):format(name, text) end\n"
    "  end\n"
    "  return '{' .. table.concat(parts, ',') .. '}'\n"
    "end\n"
    "local function run(object, roll)\n"
    "  local log, tables, ids, lists = {}, { object }, { [object] = 1 }, {}\n"
    "  local function show(v)\n"
    "    if type(v) == 'table' then\n"
    "      if not ids[v] then\n"
    "        tables[#tables + 1] = v ids[v], lists[v] = #tables, rawlen(v) > 0\n"
    "      end\n"
    "      return '#' .. ids[v]\n"
    "    end\n"
    "    return (math.type(v) or type(v)) .. ' ' .. tostring(v)\n"
    "  end\n"
    "  local function say(what, ...)\n"
    "    local line = { what }\n"
    "    for i = 1, select('#', ...) do line[i + 1] = show((select(i, ...))) end\n"
    "    log[#log + 1] = table.concat(line, ' | ')\n"
    "  end\n"
    "  local function try(what, f, ...) say(what, pcall(f, ...)) end\n"
    "  local function any() return tables[roll(#tables)] end\n"
    "  local function key(t)\n"
    "    local sort = roll(12)\n"
    "    if sort == 1 and lists[t] then return roll(4) end\n"
    "    if sort == 2 then return ({ lists[t] and 1.0 or 'k1', 0.5, true, 'k3', 'k70', false "
    "})[roll(6)] end\n"
    "    return names[roll(#names)]\n"
    "  end\n"
    "  local function fresh()\n"
    "    return ({ roll(5), 'new', true, { a = 1 }, {}, any() })[roll(6)]\n"
    "  end\n"
    "  local function copy(v, depth)\n"
    "    if type(v) ~= 'table' or depth > 6 then return v end\n"
    "    local to = {}\n"
    "    for k, inner in pairs(v) do to[k] = copy(inner, depth + 1) end\n"
    "    return to\n"
    "  end\n"
    "  local function text(v) return cjson.encode(v) end\n"
    "  local function keys(t)\n"
    "    local list = {}\n"
    "    for k, v in pairs(t) do list[#list + 1] = show(k) .. '=' .. show(v) end\n"
    "    return table.concat(list, ' ')\n"
    "  end\n"
    "  local ops = {\n"
    "    function(t, k) say('get', k, t[k]) end,\n"
    "    function(t, k) say('get', k, t[k]) end,\n"
    "    function(t, k) say('get', k, t[k]) end,\n"
    "    function(t, k) say('same', t[k] == t[k]) end,\n"
    "    function(t, k) local v = t[k] if type(v) == 'table' then say('deep', v[key(v)]) end end,\n"
    "    function(t, k) try('set', function(v) t[k] = v end, fresh()) say('is', t[k]) end,\n"
    "    function(t, k) try('remove', function() t[k] = nil end) say('is', t[k]) end,\n"
    "    function(t, k) try('rawset', function(v) rawset(t, k, v) end, fresh()) end,\n"
    "    function(t, k) try('rawset nil', function() rawset(t, k, nil) end) end,\n"
    "    function(t, k) say('rawget', rawget(t, k)) end,\n"
    "    function(t) say('pairs', keys(t)) end,\n"
    "    function(t) say('ipairs') for i, v in ipairs(t) do say('at', i, v) end end,\n"
    "    function(t, k) try('next', next, t, k) say('first', next(t)) end,\n"
    "    function(t) say('length', #t, rawlen(t)) end,\n"
    "    function(t) try('encode', text, t) end,\n"
    "    function(t) try('encode it', text, { it = t, list = { t } }) end,\n"
    "    function(t) try('copy', function() return text(copy(t, 0)) end) end,\n"
    "    function(t, k) try('absent', function() t[k].x = 1 end) end,\n"
    "    function(t, k) try('nil key', function() t[nil] = 1 end) end,\n"
    "    function(t, k) try('nan key', function() t[0 / 0] = 1 end) end,\n"
    "    function(t) try('setmetatable', setmetatable, t, {}) say('meta', getmetatable(t)) end,\n"
    "    function(t, k)\n"
    "      local made, it = pcall(setmetatable, {}, t)\n"
    "      say('as metatable', made)\n"
    "      if made then try('through it', function() return it[k] end) end\n"
    "    end,\n"
    "    function(t, k) local over = setmetatable({}, { __index = t }) say('over', over[k]) end,\n"
    "    function(t, k)\n"
    "      local over = setmetatable({}, { __newindex = t })\n"
    "      try('set over', function() over[k] = 5 end) say('is', t[k])\n"
    "    end,\n"
    "    function(t) try('array', function() return require('moonloop').array(t) end) end,\n"
    "    function(t) try('insert', table.insert, t, fresh()) end,\n"
    "    function(t) try('insert', table.insert, t, 1, fresh()) end,\n"
    "    function(t) try('take', table.remove, t) end,\n"
    "    function(t) try('concat', table.concat, t, ',') end,\n"
    "    function(t) try('unpack', table.unpack, t) end,\n"
    "    function(t) try('move', table.move, t, 1, #t, 1, {}) end,\n"
    "    function(t) try('move to', table.move, { 1, 2 }, 1, 2, #t + 1, t) end,\n"
    "    function(t) try('sort', table.sort, t, function(a, b) return show(a) < show(b) end) end,\n"
    "    function(t) try('sort', table.sort, t) end,\n"
    "    function(t) try('gsub', string.gsub, 'spec phase a', '%w+', t) end,\n"
    "    function(t) try('call', function() return t() end) try('add', function() return t + 1 "
    "end) "
    "end,\n"
    "    function(t, k) try('call', function() return t[k]() end) end,\n"
    "    function(t, k) try('order', function() return t < t end) end,\n"
    "    function(t)\n"
    "      local seen = {}\n"
    "      for k in pairs(t) do\n"
    "        seen[#seen + 1] = show(k) t[k] = nil\n"
    "        if roll(2) == 1 then t[key(t)] = nil end\n"
    "      end\n"
    "      say('emptied', table.concat(seen, ' '), next(t))\n"
    "    end,\n"
    "    function(t, k)\n"
    "      local step, _, first = pairs(any())\n"
    "      try('iterator', step, t, first)\n"
    "    end,\n"
    "    function(t) say('raw', rawequal(t, any()), tostring(t), type(t)) end,\n"
    "  }\n"
    "  for _ = 1, 10 + roll(60) do\n"
    "    local t = any()\n"
    "    local op = ops[roll(#ops)]\n"
    "    try('op', op, t, key(t))\n"
    "  end\n"
    "  try('whole', text, object)\n"
    "  for i = 1, #tables do say('then ' .. i, pcall(keys, tables[i])) end\n"
    "  return table.concat(log, '\\n')\n"
    "end\n";

static const char body[] = "if type(at) == 'number' then return make(dice(at)) end\n"
                           "if ctx == nil then return cjson.encode(at) end\n"
                           "return run(at, dice(ctx + 1000000))";

struct comparison {
    struct ml_script *script;
    lua_Integer seed;
};

/* Pushes what the program sees of the object on top. */
static void push_sight(lua_State *L, const struct comparison *comparison)
{
    lua_rawgeti(L, LUA_REGISTRYINDEX, comparison->script->reconcile_ref);
    lua_insert(L, -2);
    lua_pushinteger(L, comparison->seed);
    lua_call(L, 2, 1);
}

/* Runs in script_protect. */
static int compare_once(lua_State *L)
{
    const struct comparison *comparison = lua_touserdata(L, 1);
    lua_rawgeti(L, LUA_REGISTRYINDEX, comparison->script->reconcile_ref);
    lua_pushinteger(L, comparison->seed);
    lua_call(L, 1, 1);
    const char *text = lua_tostring(L, -1);
    script_push_json(L, ml_str_of(text), ROOT_OBJECT);
    push_sight(L, comparison);
    script_push_lazy(L, ml_str_of(text), 0);
    push_sight(L, comparison);
    const char *whole = lua_tostring(L, -2), *lazy = lua_tostring(L, -1);
    if (strcmp(whole, lazy) == 0)
        return 0;
    size_t same = 0;
    while (whole[same] && whole[same] == lazy[same])
        same++;
    while (same > 0 && whole[same - 1] != '\n')
        same--;
    print_error("seed %d of %.500s\nwhole: %.160s\nlazy: %.160s\n", (int)comparison->seed, text,
                whole + same, lazy + same);
    return luaL_error(L, "they differ");
}

static void test_a_program_sees_the_same(void **state)
{
    (void)state;
    struct world w;
    struct ml_err err = ML_ERR_INIT;
    world_open_file(&w, program, "nil", body, NULL);
    for (int seed = 1; seed <= OBJECTS; seed++) {
        struct comparison comparison = {w.script, seed};
        if (script_protect(w.script, compare_once, &comparison, 10 * ML_NS_PER_S, &err) < 0)
            fail_msg("seed %d: %s", seed, err.message);
    }
    world_close(&w);
}

/* ---- memory that runs out in the middle ---- */

static const char many[] =
    "{\"metadata\":{\"name\":\"x\"},\"spec\":{\"a\":[{\"x\":1},[{}]],\"b\":{}},"
    "\"b\":\"text that is longer than forty bytes, so that it is not shared\","
    "\"c\":{\"d\":1e999},\"e\":\"f\",\"status\":{\"g\":null}}";
/* Of a table: what was in the text goes, something else comes, the rest is encoded. */
static const char change_it[] = "if ctx == 'change' then\n"
                                "  at.e, at.b, at.new, at.spec.c = nil, 'mine', 1, 2\n"
                                "end\n"
                                "if ctx == 'complete' then return next(at) end\n"
                                "return cjson.encode(at)";

struct hunger {
    struct ml_script *script;
    const char *what;
    bool whole;
    int ref; /* of the object; 0: make one */
    size_t more;
    char out[512];
};

/* Runs in script_protect, with `more` bytes of memory for what it calls. */
static int starve(lua_State *L)
{
    struct hunger *hunger = lua_touserdata(L, 1);
    size_t memory_max = hunger->script->memory.max;
    if (hunger->ref == 0) {
        if (hunger->whole)
            script_push_json(L, ml_str_of(many), ROOT_OBJECT);
        else
            script_push_lazy(L, ml_str_of(many), 0);
        hunger->ref = luaL_ref(L, LUA_REGISTRYINDEX);
    }
    lua_rawgeti(L, LUA_REGISTRYINDEX, hunger->script->reconcile_ref);
    lua_rawgeti(L, LUA_REGISTRYINDEX, hunger->ref);
    lua_pushstring(L, hunger->what);
    lua_gc(L, LUA_GCCOLLECT); /* or it makes room once it is refused */
    if (hunger->more < memory_max)
        hunger->script->memory.max = hunger->script->memory.used + hunger->more;
    int status = lua_pcall(L, 2, 1, 0);
    hunger->script->memory.max = memory_max;
    if (status != LUA_OK)
        return lua_error(L);
    snprintf(hunger->out, sizeof hunger->out, "%s", lua_tostring(L, -1));
    return 0;
}

static int run_hunger(struct hunger *hunger, const char *what, size_t more)
{
    struct ml_err err = ML_ERR_INIT;
    hunger->what = what;
    hunger->more = more;
    return script_protect(hunger->script, starve, hunger, 10 * ML_NS_PER_S, &err);
}

static void test_what_runs_out_of_memory_leaves_the_object_as_it_was(void **state)
{
    (void)state;
    struct world w;
    world_open_file(&w, "local cjson = require 'cjson'\n", "nil", change_it, NULL);
    struct hunger whole = {.script = w.script, .whole = true};
    assert_int_equal(run_hunger(&whole, "change", SIZE_MAX), 0);
    size_t failed = 0;
    for (size_t more = 0; more < 4096; more += 16) {
        struct hunger lazy = {.script = w.script};
        assert_int_equal(run_hunger(&lazy, "nothing", SIZE_MAX), 0);
        failed += run_hunger(&lazy, "complete", more) < 0;
        assert_int_equal(run_hunger(&lazy, "change", SIZE_MAX), 0);
        assert_string_equal(lazy.out, whole.out);
    }
    assert_in_range(failed, 20, 200); /* it was refused at many places, and went well at others */
    world_close(&w);
}

/* ---- C that looks past metamethods ---- */

static void note_key(void *context, struct ml_str key)
{
    struct ml_buf *keys = context;
    ml_buf_append_str(keys, key);
    ml_buf_putc(keys, ' ');
}

static void test_a_watch_function_names_an_untouched_table(void **state)
{
    (void)state;
    struct world w;
    struct ml_err err = ML_ERR_INIT;
    ML_AUTO(ml_buf_fini) struct ml_buf keys = ML_BUF_INIT;
    world_open_file(&w, "map = function(pod) return { pod.metadata } end\n", "nil", "", NULL);
    assert_int_equal(ml_script_map(w.script, 2, w.at, note_key, &keys, &err), 0);
    assert_string_equal(ml_buf_cstr(&keys), "default/x ");
    world_close(&w);
}

static void test_a_list_takes_labels_of_an_untouched_table(void **state)
{
    (void)state;
    struct world w;
    struct told told;
    world_open(&w,
               "local pod = ctx.get(Pod, 'x-pod')\n"
               "local found = ctx.list(Pod, { labels = pod.metadata.labels })\n"
               "local _, why = pcall(ctx.list, Pod, pod.status)\n"
               "return { status = { found = #found, why = why:match \"unknown field '(.-)'\" } }",
               NULL);
    ML_AUTO_FREE char *pod = world_pod_json("101", NULL);
    world_event(&w, "ADDED", pod);
    assert_null(world_start(&w, &told));
    expect_outcome(&told, ML_OUTCOME_OK, "{\"found\":1,\"why\":\"phase\"}");
    world_close(&w);
}

/* ---- from run to run, and what is recorded ---- */

static void test_an_object_outlives_its_run(void **state)
{
    (void)state;
    struct world w;
    struct told told;
    world_open_file(&w, "local kept, all = nil, {}\n", "nil",
                    "for i = 1, 50 do all[i % 5] = ctx.list(Pod) end\n"
                    "local last = kept\n"
                    "kept = at\n"
                    "return last and { status = last.spec }",
                    NULL);
    assert_null(world_start(&w, &told));
    expect_outcome(&told, ML_OUTCOME_OK, "");
    for (int run = 0; run < 10; run++) {
        assert_null(world_start(&w, &told));
        expect_outcome(&told, ML_OUTCOME_OK, "{\"size\":3}");
    }
    world_close(&w);
}

struct noted {
    struct ml_read_set *reads;
    char gave_up[128];
};

static void note_result(void *context, struct ml_result *result)
{
    struct noted *noted = context;
    if (result->outcome != ML_OUTCOME_OK)
        fail_msg("%s", result->err->message);
    noted->reads = result->reads ? ml_read_set_ref(result->reads) : NULL;
    snprintf(noted->gave_up, sizeof noted->gave_up, "%s",
             result->reads_gave_up ? result->reads_gave_up : "");
}

static struct noted run_and_note(struct world *w)
{
    struct noted noted = {.reads = NULL};
    assert_null(ml_script_reconcile(w->script, w->at, "0000abcd", note_result, &noted));
    return noted;
}

static struct ml_object *pod_with_status(struct world *w, const char *status)
{
    struct ml_object *object;
    struct ml_err err = ML_ERR_INIT;
    ML_AUTO_FREE char *text = ml_asprintf(
        "{\"apiVersion\":\"v1\",\"kind\":\"Pod\",\"metadata\":{\"name\":\"x-pod\","
        "\"namespace\":\"default\",\"uid\":\"u\",\"resourceVersion\":\"7\"},"
        "\"status\":%s}",
        status);
    if (ml_object_new(w->dict, "", "", ml_str_of(text), &object, &err) < 0)
        fail_msg("%s", err.message);
    return object;
}

#define READY "{\"type\":\"Ready\",\"status\":\"True\"}"

/* With the pod's status as the first text says, is a change to the second one told? */
static const struct {
    const char *statements, *before, *after;
    bool is_touched;
} changes[] = {
    {"local _ = pod.status.phase", "{\"phase\":1,\"ip\":2}", "{\"phase\":3,\"ip\":2}", true},
    {"local _ = pod.status.phase", "{\"phase\":1,\"ip\":2}", "{\"phase\":1,\"ip\":3}", false},
    {"local _ = pod.status.reason", "{\"phase\":1}", "{\"phase\":1,\"reason\":2}", true},
    {"local _ = pod.status.reason", "{\"phase\":1}", "{\"phase\":2}", false},
    {"local _ = pod.status", "{\"phase\":1}", "{\"phase\":2}", false},
    {"pod.status.phase = 5", "{\"phase\":1}", "{\"phase\":2}", false},
    {"for _ in pairs(pod.status) do end", "{\"phase\":1}", "{\"phase\":2}", true},
    {"for _ in pairs(pod.status) do end", "{\"phase\":1}", "{\"phase\":1,\"ip\":2}", true},
    {"for _ in pairs(pod.status) do end", "{\"a\":{\"b\":1}}", "{\"a\":{\"b\":2}}", false},
    {"local _ = rawget(pod.status, 'phase')", "{\"phase\":1}", "{\"phase\":2}", true},
    {"local _ = next(pod.status)", "{\"phase\":1}", "{\"phase\":2}", true},
    {"cjson.encode(pod)", "{\"a\":{\"b\":1}}", "{\"a\":{\"b\":2}}", true},
    {"cjson.encode({ pod.status.a })", "{\"a\":{\"b\":1}}", "{\"a\":{\"b\":2}}", true},
    {"cjson.encode({ pod.status.a })", "{\"a\":{},\"b\":1}", "{\"a\":{},\"b\":2}", false},
    {"for _, c in ipairs(pod.status.list) do local _ = c.type end", "{\"list\":[" READY "]}",
     "{\"list\":[{\"type\":\"Ready\",\"status\":\"False\"}]}", false},
    {"for _, c in ipairs(pod.status.list) do local _ = c.type end", "{\"list\":[" READY "]}",
     "{\"list\":[{\"type\":\"Other\",\"status\":\"True\"}]}", true},
    {"for _, c in ipairs(pod.status.list) do local _ = c.type end", "{\"list\":[" READY "]}",
     "{\"list\":[" READY "," READY "]}", true},
    {"local _ = pod.status['k1']", "{\"k1\":1,\"k1\":2,\"b\":3}", "{\"k1\":2,\"b\":4}", true},
};

static void test_what_is_touched_is_recorded(void **state)
{
    (void)state;
    for (size_t i = 0; i < ML_COUNT(changes); i++) {
        struct world w;
        ML_AUTO_FREE char *statements = ml_asprintf("local pod = assert(ctx.get(Pod, 'x-pod'))\n%s",
                                                    changes[i].statements);
        world_open_file(&w, "local cjson = require 'cjson'\n", "nil", statements, NULL);
        struct ml_object *old = pod_with_status(&w, changes[i].before);
        struct ml_object *new = pod_with_status(&w, changes[i].after);
        ML_AUTO(ml_buf_fini) struct ml_buf json = ML_BUF_INIT, field = ML_BUF_INIT;
        ml_object_json(old, &json);
        world_event(&w, "ADDED", ml_buf_cstr(&json));
        struct noted noted = run_and_note(&w);
        if (!noted.reads)
            fail_msg("%s: %s", changes[i].statements, noted.gave_up);
        const struct ml_read_change change = {
            .kind = 1, .old = old, .new = new, .own_key = ml_object_key(w.at)};
        if (ml_read_set_touched(noted.reads, &change, &field) != changes[i].is_touched)
            fail_msg("%s: %s to %s: '%s'", changes[i].statements, changes[i].before,
                     changes[i].after, ml_buf_cstr(&field));
        ml_read_set_unref(noted.reads);
        ml_object_unref(old);
        ml_object_unref(new);
        world_close(&w);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_a_program_sees_the_same),
        cmocka_unit_test(test_what_runs_out_of_memory_leaves_the_object_as_it_was),
        cmocka_unit_test(test_a_watch_function_names_an_untouched_table),
        cmocka_unit_test(test_a_list_takes_labels_of_an_untouched_table),
        cmocka_unit_test(test_an_object_outlives_its_run),
        cmocka_unit_test(test_what_is_touched_is_recorded),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
