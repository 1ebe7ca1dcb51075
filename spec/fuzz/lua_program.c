/* Statements, and the script around them. */
#include "lua_grammar.h"

#define NODES_MAX 500 /* expressions and statements of one program */
#define VARIABLES 8   /* v0 … v7, of the file: what one function kept, another one finds */

static void write_variable(struct program *p)
{
    ml_buf_printf(p->out, "v%zu", choose(p->choices, VARIABLES));
}

static void write_assign(struct program *p)
{
    write_variable(p);
    if (chance(p->choices, 25)) {
        put(p, ", ");
        write_variable(p);
    }
    put(p, " = ");
    write_expression(p);
}

static void write_assign_field(struct program *p)
{
    put(p, "(");
    write_expression(p);
    put(p, ")[");
    write_expression(p);
    put(p, "] = ");
    write_expression(p);
}

/* Replaces a function that the library or this program might call. */
static void write_replace_global(struct program *p)
{
    static const char *const globals[] = {
        "type",           "ipairs",       "pairs",         "getmetatable",   "setmetatable",
        "tostring",       "error",        "select",        "next",           "rawequal",
        "rawget",         "assert",       "string.format", "string.match",   "string.byte",
        "table.concat",   "math.min",     "math.type",     "math.tointeger", "math.floor",
        "tonumber",       "string.rep",   "table.sort",    "cjson.encode",   "moonloop.kind",
        "time.duration",  "pcall",        "require",       "string.find",    "table.insert",
        "moonloop.array", "moonloop.null"};
    ml_buf_printf(p->out, "%s = ", PICK(p->choices, globals));
    write_expression(p);
}

static void write_keep(struct program *p)
{
    put(p, "kept[#kept + 1] = ");
    write_expression(p);
}

static void write_branch(struct program *p)
{
    put(p, "if ");
    write_expression(p);
    put(p, " then ");
    write_block(p);
    if (chance(p->choices, 30)) {
        put(p, "else ");
        write_block(p);
    }
    put(p, "end");
}

static void write_loop(struct program *p)
{
    static const char *const heads[] = {"for i = 1, 3 do v0 = i ", "for i = 1, 300 do v0 = i ",
                                        "while true do ", "for i = math.maxinteger - 1, 1/0 do "};
    static const char *const iterators[] = {"pairs(", "ipairs(", "next, (",
                                            "string.gmatch(\"a b\", ", "utf8.codes("};
    if (chance(p->choices, 50)) {
        put(p, PICK(p->choices, heads));
    } else {
        ml_buf_printf(p->out, "for k, v in %s", PICK(p->choices, iterators));
        write_expression(p);
        put(p, ") do v0, v1 = k, v ");
    }
    write_block(p);
    put(p, chance(p->choices, 70) ? "do break end end" : "end");
}

static void write_repeat(struct program *p)
{
    put(p, "repeat ");
    write_block(p);
    put(p, "until ");
    write_expression(p);
}

static void write_jump(struct program *p)
{
    int label = p->labels++;
    ml_buf_printf(p->out, "do local n = 0 ::l%d:: n = n + 1 ", label);
    write_block(p);
    ml_buf_printf(p->out, "if n < %zu then goto l%d end end", choose(p->choices, 5), label);
}

static void write_scope(struct program *p)
{
    put(p, "do local c <close> = ");
    write_expression(p);
    put(p, " ");
    write_block(p);
    put(p, "end");
}

static void write_named_function(struct program *p)
{
    put(p, "local function f(a, b, ...) ");
    write_block(p);
    put(p, "return ");
    write_expression(p);
    put(p, " end v0 = f v1 = f(v2, v3)");
}

static void write_raise(struct program *p)
{
    put(p, "error(");
    write_expression(p);
    put(p, ")");
}

static void write_call_statement(struct program *p)
{
    put(p, "local r, e = ");
    write_call(p);
    put(p, " v1, failure = r, e or failure");
}

static void write_nested_pcall(struct program *p)
{
    static const char *const ways[] = {
        "pcall(pcall, pcall, error, {})",
        "local function r() return pcall(r) end r()",
        "local function r() local t <close> = setmetatable({}, { __close = r }) end r()",
        "local t = setmetatable({}, { __index = function(t, k) return t[k] end }) v0 = t.x",
        "local function r() return (\"x\"):gsub(\"x\", r) end r()",
        "local t = {} t.__index = t setmetatable(t, t) v0 = t.x",
        "local function r(...) return r(1, ...) end r()",
        "v0 = (\"x\"):rep(1000, (\"y\"):rep(1000))"};
    put(p, PICK(p->choices, ways));
}

/* Writes a text that is cheap to write here and costs the compiler much work. */
static void write_source_bomb(struct program *p)
{
    static const struct {
        const char *begin, *part, *end;
    } bombs[] = {
        {"v0 = ", "(", "nil"},
        {"v0 = ", "{", ""},
        {"if v0 then ", "elseif v0 then v1 = 1 ", "end"},
        {"", "do ", ""},
        {"v0 = ", "1 .. ", "1"},
        {"v0 = ", "- -", "1"},
        {"v0 = ", "function() return ", "nil"},
        {"", "local x ", ""},
        {"v0 = v0", ".x", ""},
        {"v0 = {", "1,", "}"},
        {"", "goto nowhere ", ""},
        {"v0 = [", "=", "["},
    };
    size_t bomb = choose(p->choices, ML_COUNT(bombs));
    size_t count = (size_t)1 << choose(p->choices, 14);
    put(p, bombs[bomb].begin);
    for (size_t i = 0; i < count; i++)
        put(p, bombs[bomb].part);
    ml_buf_printf(p->out, "%s\n", bombs[bomb].end);
}

static void write_statement(struct program *p)
{
    static void (*const writers[])(struct program * p) = {
        write_call_statement, write_call_statement, write_call_statement, write_call_statement,
        write_assign,         write_assign,         write_assign,         write_keep,
        write_assign_field,   write_assign_field,   write_branch,         write_loop,
        write_loop,           write_repeat,         write_jump,           write_scope,
        write_named_function, write_raise,          write_nested_pcall};
    bool is_protected = !chance(p->choices, p->inner > 0 ? 40 : 2);
    p->nodes--;
    p->inner++;
    put(p, is_protected ? "S(function(...) " : "do ");
    if (chance(p->choices, 5))
        write_replace_global(p);
    else
        PICK(p->choices, writers)(p);
    put(p, is_protected ? " end)\n" : " end\n");
    p->inner--;
}

void write_block(struct program *p)
{
    if (p->nodes <= 0 || p->depth >= DEPTH_MAX)
        return;
    p->depth++;
    for (size_t count = choose(p->choices, 4); count > 0; count--)
        write_statement(p);
    p->depth--;
}

static void write_statements(struct program *p)
{
    int nodes = p->nodes;
    p->nodes = NODES_MAX / 4;
    for (size_t count = choose(p->choices, 8); count > 0; count--)
        write_statement(p);
    p->nodes = nodes;
}

static const char prelude[] =
    "local S = pcall\n"
    "local setmetatable, pairs, tostring, rep = setmetatable, pairs, tostring, string.rep\n"
    "local moonloop, time, cjson = require 'moonloop', require 'moonloop.time', require 'cjson'\n"
    "local crypto, base64 = require 'moonloop.crypto', require 'moonloop.base64'\n"
    "local quantity, yaml = require 'moonloop.quantity', require 'moonloop.yaml'\n"
    "local labels, regex = require 'moonloop.labels', require 'moonloop.regex'\n"
    "local At = moonloop.kind('example.com/v1', 'At')\n"
    "local Pod = moonloop.kind('v1', 'Pod')\n"
    "local Secret, Node = moonloop.kind('v1', 'Secret'), moonloop.kind('v1', 'Node')\n"
    "local Other = moonloop.kind('v1', 'Other')\n"
    "local v0, v1, v2, v3, v4, v5, v6, v7, a, b, ctx, object, old, new, failure\n"
    "local kept, big, by_name = {}, rep('a', 5000), nil\n"
    "local EVENTS = { '__index', '__newindex', '__call', '__len', '__eq', '__lt', '__le', "
    "'__concat',\n"
    "  '__unm', '__add', '__sub', '__mul', '__div', '__mod', '__pow', '__idiv', '__band', "
    "'__bor',\n"
    "  '__bxor', '__shl', '__shr', '__bnot', '__tostring', '__name', '__pairs', '__close' }\n"
    "local function every(h) local m = {} for i = 1, #EVENTS do m[EVENTS[i]] = h end return m end\n"
    "local function deep(n) local t = {} for _ = 1, n do t = { a = t } end return t end\n"
    "local function dag(n) local t = {} for _ = 1, n do t = { t, t } end return t end\n"
    "local function wide(n) local t = {} for i = 1, n do t['k' .. i] = i end return t end\n"
    "local function list(n) local t = {} for i = 1, n do t[i] = i end return t end\n"
    "local function cyclic() local t = {} t.a = { b = t } t[1] = t return t end\n"
    "local function colliding(n) local t = {} for i = 1, n do t[i << 40] = i end return t end\n"
    "local function strings(n) local t = {} for i = 1, n do t[i] = rep('s', 100 + i) end return t "
    "end\n"
    "local function weak(n) local t = S(setmetatable, {}, { __mode = 'kv' }) and\n"
    "  setmetatable({}, { __mode = 'kv' }) or {} for i = 1, n do t[rep('w', 60 + i)] = { rep('v', "
    "i) }\n"
    "  t[i] = rep('u', 60 + i) end return t end\n"
    "local function conditions(n) local t = {} for i = 1, n do t[i] = { type = 'C' .. i, status = "
    "'True' } end\n"
    "  return t end\n";

static void write_result(struct program *p)
{
    static const char *const outcomes[] = {"ctx.invalid(", "ctx.terminal("};
    put(p, "return ");
    switch (choose(p->choices, 5)) {
    case 0:
    case 1:
        put(p, "{ status = ");
        if (chance(p->choices, 30)) {
            put(p, "{ conditions = ");
            write_arguments(p, "t");
            put(p, ", text = ");
            write_arguments(p, "s");
            put(p, " }");
        } else {
            write_arguments(p, "t");
        }
        if (chance(p->choices, 40)) {
            put(p, chance(p->choices, 50) ? ", requeue_after = " : ", requeue_at = ");
            write_arguments(p, "n");
        }
        put(p, " }");
        break;
    case 2:
        put(p, PICK(p->choices, outcomes));
        write_arguments(p, "s?s");
        put(p, ")");
        break;
    case 3:
        put(p, "{ children = { ");
        for (size_t count = choose(p->choices, 4); count > 0; count--) {
            put(p, chance(p->choices, 30) ? "moonloop.recreate(" : "(");
            write_arguments(p, "o");
            put(p, "), ");
        }
        put(p, "} }");
        break;
    default:
        write_expression(p);
    }
    put(p, "\n");
}

/* The declaration is as it should be, mostly: else nothing of the rest would run. */
static void write_returned_controller(struct program *p)
{
    put(p, "return moonloop.controller { name = ");
    if (chance(p->choices, 5))
        write_arguments(p, "s");
    else
        put(p, "'at'");
    put(p, ", reconciles = At, reconcile = reconcile");
    put(p, chance(p->choices, 50) ? ", owns = { Pod }, uses = { Secret, Node }"
                                  : ", uses = { Secret, Node }");
    put(p, ", when = when, watches = { moonloop.watch(Pod, map");
    put(p, chance(p->choices, 30) ? ", when) }" : ") }");
    put(p, ", metrics = { m = { type = 'counter', help = 'x' }, g = { type = 'gauge', help = 'x', "
           "labels = { 'l' } } }");
    put(p, chance(p->choices, 60) ? ", finalize = finalize" : "");
    put(p, chance(p->choices, 40) ? ", default = hook" : "");
    put(p, chance(p->choices, 40) ? ", validate = hook" : "");
    put(p, chance(p->choices, 40) ? ", convert = { v1beta1 = { to = hook, from = hook } }" : "");
    if (chance(p->choices, 3)) {
        put(p, chance(p->choices, 50) ? ", max_concurrent = " : ", rollout = ");
        write_expression(p);
    }
    put(p, " }\n");
}

/* One of the functions that are called beside reconcile, map and when. */
static void write_declared_function(struct program *p, const char *head)
{
    put(p, head);
    write_statements(p);
    if (chance(p->choices, 50))
        write_result(p);
    else
        put(p, "return a\n");
    put(p, "end\n");
}

void lua_program_write(struct choices *choices, struct ml_buf *out)
{
    struct program p = {.choices = choices, .out = out, .nodes = NODES_MAX};
    put(&p, prelude);
    write_statements(&p);
    put(&p, "local function reconcile(o, c, ...)\nobject, ctx = o, c\n");
    write_statements(&p);
    write_statements(&p);
    write_result(&p);
    put(&p, "end\nlocal function map(o, c, ...)\nobject, ctx = o, c\n");
    write_statements(&p);
    put(&p, "return ");
    if (chance(choices, 50))
        put(&p, "{ 'default/x' }");
    else
        write_expression(&p);
    put(&p, "\nend\nlocal function when(o, n, ...)\nold, new = o, n\n");
    write_statements(&p);
    put(&p, chance(choices, 70) ? "return true\nend\n" : "return v0\nend\n");
    write_declared_function(&p, "local function finalize(o, c)\nobject, ctx, a = o, c, nil\n");
    write_declared_function(&p, "local function hook(o, b, c)\nobject, a, ctx = o, o, c or b\n");
    write_declared_function(&p, "local function keys(o)\nobject, a = o, 'x'\n");
    if (chance(choices, 50))
        put(&p, "by_name = moonloop.index(Pod, keys)\n");
    if (chance(choices, 30))
        write_statements(&p);
    if (chance(choices, 4))
        write_source_bomb(&p);
    write_returned_controller(&p);
}
