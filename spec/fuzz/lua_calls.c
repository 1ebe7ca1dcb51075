/* Functions, calls of the script API, and expressions of them. */
#include "lua_grammar.h"
#include "lua_signatures.h"

void write_function(struct program *p)
{
    static const char *const simple[] = {"function() end",
                                         "function(a) return a end",
                                         "function(...) return ... end",
                                         "function(a, b) return a < b end",
                                         "function() return true end",
                                         "error",
                                         "pcall",
                                         "tostring",
                                         "function(a, b) return b, a end",
                                         "function() while true do end end",
                                         "setmetatable",
                                         "function(a) kept[#kept + 1] = a return a end",
                                         "function() error({}) end",
                                         "ctx.get",
                                         "function() return ctx.get(Pod, \"x-pod\") end",
                                         "function(a) return tostring(a) end",
                                         "function() return ctx.list(Pod) end",
                                         "next",
                                         "rawset",
                                         "rawget",
                                         "type",
                                         "string.rep",
                                         "function(a) v0 = a return v1 end",
                                         "function() return nil end",
                                         "table.unpack"};
    if (is_deep(p) || chance(p->choices, 60)) {
        put(p, PICK(p->choices, simple));
        return;
    }
    put(p, "function(a, b, ...) ");
    write_block(p);
    put(p, "return ");
    write_expression(p);
    put(p, " end");
}

static void write_declaration(struct program *p)
{
    put(p, "{ name = ");
    write_arguments(p, "s");
    put(p, ", reconciles = ");
    write_arguments(p, "k");
    put(p, ", reconcile = ");
    write_arguments(p, "f");
    put(p, ", when = ");
    write_arguments(p, "w");
    put(p, ", owns = ");
    write_arguments(p, "t");
    put(p, " }");
}

static void write_selection(struct program *p)
{
    put(p, "{ labels = ");
    write_arguments(p, "s");
    put(p, ", fields = ");
    write_arguments(p, "s");
    put(p, " }");
}

static void write_kind(struct program *p)
{
    static const char *const kinds[] = {"Pod", "Pod", "Secret", "At", "Node", "Other"};
    put(p, PICK(p->choices, kinds));
}

static void write_when(struct program *p)
{
    static const char *const parts[] = {"{ \"generation\" }", "{ \"labels\", \"status\" }",
                                        "function(old, new) return old.spec ~= new.spec end"};
    if (chance(p->choices, 50))
        put(p, PICK(p->choices, parts));
    else
        write_expression(p);
}

static void write_replacement(struct program *p)
{
    switch (choose(p->choices, 3)) {
    case 0:
        write_string(p);
        break;
    case 1:
        write_function(p);
        break;
    default:
        write_table(p);
    }
}

/* One argument of what a signature asks for; now and then anything else. */
static void write_argument(struct program *p, char type)
{
    static const struct {
        char type;
        void (*write)(struct program *p);
    } writers[] = {{'s', write_string},    {'i', write_number},      {'n', write_number},
                   {'t', write_table},     {'f', write_function},    {'c', write_function},
                   {'p', write_pattern},   {'r', write_replacement}, {'F', write_format},
                   {'k', write_kind},      {'o', write_manifest},    {'q', write_options},
                   {'d', write_date},      {'T', write_declaration}, {'w', write_when},
                   {'e', write_selection}, {'m', write_metatable}};
    if (chance(p->choices, 12)) {
        write_expression(p);
        return;
    }
    for (size_t i = 0; i < ML_COUNT(writers); i++)
        if (writers[i].type == type) {
            p->depth++;
            writers[i].write(p);
            p->depth--;
            return;
        }
    write_expression(p);
}

void write_arguments(struct program *p, const char *types)
{
    bool first = true, may_end = false;
    for (; *types; types++) {
        if (*types == '?') {
            may_end = true;
            continue;
        }
        if (may_end && chance(p->choices, 50))
            return;
        if (!first)
            put(p, ", ");
        first = false;
        if (is_deep(p))
            put(p, "v0");
        else
            write_argument(p, *types);
    }
}

void write_call(struct program *p)
{
    const struct signature *signature = &PICK(p->choices, signatures);
    ml_buf_printf(p->out, "%s(", signature->name);
    p->nodes--;
    write_arguments(p, signature->types);
    put(p, ")");
}

static void write_leaf(struct program *p)
{
    static const char *const leaves[] = {"nil",
                                         "true",
                                         "false",
                                         "v0",
                                         "v1",
                                         "v2",
                                         "v3",
                                         "v4",
                                         "v5",
                                         "v6",
                                         "v7",
                                         "a",
                                         "b",
                                         "ctx",
                                         "object",
                                         "object.spec",
                                         "object.status",
                                         "object.metadata.annotations",
                                         "object.metadata.name",
                                         "moonloop.null",
                                         "cjson.null",
                                         "Pod",
                                         "At",
                                         "_ENV",
                                         "string",
                                         "table",
                                         "math",
                                         "moonloop",
                                         "time",
                                         "cjson",
                                         "kept",
                                         "failure",
                                         "failure.message",
                                         "getmetatable(\"\")",
                                         "(...)",
                                         "select(\"#\", ...)",
                                         "#kept",
                                         "ctx.log",
                                         "ctx.ensure",
                                         "old",
                                         "new",
                                         "_VERSION",
                                         "utf8.charpattern",
                                         "string.rep",
                                         "getmetatable(failure)",
                                         "object.metadata.labels",
                                         "object.spec.items",
                                         "ctx.now()",
                                         "big",
                                         "object.spec.number"};
    put(p, PICK(p->choices, leaves));
}

static void write_operation(struct program *p)
{
    static const char *const two[] = {"+", "-",  "*", "/", "//", "%",  "^",  "..",  "==", "~=",
                                      "<", "<=", "&", "|", "~",  "<<", ">>", "and", "or"};
    static const char *const one[] = {"-", "not ", "#", "~"};
    put(p, "(");
    if (chance(p->choices, 25)) {
        put(p, PICK(p->choices, one));
        write_expression(p);
    } else {
        write_expression(p);
        ml_buf_printf(p->out, " %s ", PICK(p->choices, two));
        write_expression(p);
    }
    put(p, ")");
}

static void write_member(struct program *p)
{
    put(p, "(");
    write_expression(p);
    put(p, ")");
    if (chance(p->choices, 50)) {
        put(p, ".");
        write_key(p);
    } else {
        put(p, "[");
        write_expression(p);
        put(p, "]");
    }
}

/* A function that another one made, a method, or a value that may well be no function. */
static void write_indirect_call(struct program *p)
{
    static const char *const methods[] = {"gsub", "find",   "rep",   "format", "byte",
                                          "sub",  "gmatch", "upper", "len",    "match"};
    put(p, "(");
    write_expression(p);
    put(p, ")");
    if (chance(p->choices, 40)) {
        ml_buf_printf(p->out, ":%s(", PICK(p->choices, methods));
        write_arguments(p, "p?ri");
    } else {
        put(p, "(");
        write_arguments(p, "?vvv");
    }
    put(p, ")");
}

void write_expression(struct program *p)
{
    static void (*const writers[])(struct program * p) = {
        write_leaf,   write_leaf,          write_leaf,     write_number,
        write_string, write_call,          write_call,     write_call,
        write_table,  write_table,         write_function, write_operation,
        write_member, write_indirect_call, write_pattern,  write_manifest};
    p->nodes--;
    if (is_deep(p)) {
        write_leaf(p);
        return;
    }
    p->depth++;
    PICK(p->choices, writers)(p);
    p->depth--;
}
