/* Literals and tables, harmless and hostile. */
#include "lua_grammar.h"

#define BYTES_MAX 12

void write_number(struct program *p)
{
    static const char *const numbers[] = {"1",
                                          "0",
                                          "2",
                                          "3",
                                          "-1",
                                          "10",
                                          "100",
                                          "1000",
                                          "70000",
                                          "1000000",
                                          "0.5",
                                          "-0.0",
                                          "1e308",
                                          "(0/0)",
                                          "(1/0)",
                                          "(-1/0)",
                                          "math.maxinteger",
                                          "math.mininteger",
                                          "2^53",
                                          "2^63",
                                          "-2^63",
                                          "0x7fffffff",
                                          "0x80000000",
                                          "9e9",
                                          "1e-320",
                                          "3.0",
                                          "math.pi",
                                          "255",
                                          "256",
                                          "65536",
                                          "9007199254740993",
                                          "1e15",
                                          "253402300800",
                                          "-62135596801",
                                          "20",
                                          "200",
                                          "5000"};
    put(p, PICK(p->choices, numbers));
}

static void write_bytes(struct program *p)
{
    size_t count = choose(p->choices, BYTES_MAX);
    ml_buf_putc(p->out, '"');
    for (size_t i = 0; i < count; i++)
        ml_buf_printf(p->out, "\\%03zu", choose(p->choices, 256));
    ml_buf_putc(p->out, '"');
}

static void write_repeated(struct program *p, const char *text)
{
    static const char *const counts[] = {"3", "50", "1000", "20000", "300000", "1100000"};
    ml_buf_printf(p->out, "(\"%s\"):rep(%s)", text, PICK(p->choices, counts));
}

void write_string(struct program *p)
{
    static const char *const strings[] = {"\"a\"",
                                          "\"\"",
                                          "\"x-pod\"",
                                          "\"m\"",
                                          "\"g\"",
                                          "\"default\"",
                                          "\"kube-system\"",
                                          "\"*\"",
                                          "\"../others\"",
                                          "\"a/b\"",
                                          "\"..\"",
                                          "\"x?watch=1\"",
                                          "\"%\"",
                                          "\"%d\"",
                                          "\"%s%s%s\"",
                                          "\"\\n2026-01-01T00:00:00.000Z error forged: line\"",
                                          "\"\\r\\27[2J\\27]0;x\\7\"",
                                          "\"a\\0b\"",
                                          "\"\\255\\254\"",
                                          "\"\\u{10FFFF}\\u{202E}\"",
                                          "\"\\u{7FFFFFFF}\"",
                                          "\"Normal\"",
                                          "\"Warning\"",
                                          "\"metadata\"",
                                          "\"spec\"",
                                          "\"status\"",
                                          "\"__index\"",
                                          "\"__mode\"",
                                          "\"__metatable\"",
                                          "\"__gc\"",
                                          "\"__pairs\"",
                                          "\"v1\"",
                                          "\"apps/v1\"",
                                          "\"Pod\"",
                                          "\"At\"",
                                          "\"example.com/v1\"",
                                          "\"2006-01-02T15:04:05Z\"",
                                          "\"2006-01-02T15:04:05.999999999+23:59\"",
                                          "\"5m30s\"",
                                          "\"999999999999h\"",
                                          "\"1e400\"",
                                          "\"0x1p-1074\"",
                                          "\"nan\"",
                                          "\"app=web\"",
                                          "\"a in (b,c),!d\"",
                                          "\"metadata.name=x\"",
                                          "\"{\\\"a\\\":[1,2.5e3,{},null]}\"",
                                          "\"[[[[[[\"",
                                          "\"null\"",
                                          "\"\\\"\\\\ud800\\\"\"",
                                          "\"-0\"",
                                          "\"12345678901234567890123\"",
                                          "\"spec.size\"",
                                          "\"moonloop\"",
                                          "\"moonloop.result\"",
                                          "\"moonloop.names\"",
                                          "\"moonloop.time\"",
                                          "\"Europe/Berlin\"",
                                          "\"Europe/../../../etc/passwd\"",
                                          "\"30 2 * 3,10 sun\"",
                                          "\"cluster.testing.moonloop\"",
                                          "\"cjson\"",
                                          "\"at\"",
                                          "\"True\"",
                                          "\"Ready\"",
                                          "\"k\"",
                                          "\"v\"",
                                          "\"generation\"",
                                          "\"labels\"",
                                          "\"year\"",
                                          "\"name\"",
                                          "\"kind\"",
                                          "\"apiVersion\""};
    static const char *const parts[] = {
        "x", "\\n", "\\27", "a,", "[", "{\\\"a\\\":", "1 ", "\\255", "%", "()", "ab", "\\0"};
    switch (choose(p->choices, 8)) {
    case 5:
        write_repeated(p, PICK(p->choices, parts));
        break;
    case 6:
        write_bytes(p);
        break;
    case 7:
        if (!is_deep(p)) {
            put(p, "(tostring(");
            write_expression(p);
            put(p, ") .. ");
            write_string(p);
            put(p, ")");
            break;
        }
        /* fallthrough */
    default:
        put(p, PICK(p->choices, strings));
    }
}

void write_pattern(struct program *p)
{
    static const char *const items[] = {
        "a",        ".",    "%a",   "%w", "%s", "%d", "[a-z]", "[^%w]", "[%]]", "[]-a]", "%f[%w]",
        "%f[^\\0]", "%bxy", "%b()", "(",  ")",  "()", "%1",    "%2",    "$",    "^",     "%",
        "[",        "[^",   "[a",   "%f", "%b", "x",  "\\0",   "\\255", "%z",   "%g",    "%%"};
    static const char *const marks[] = {"", "", "*", "+", "-", "?"};
    if (chance(p->choices, 10)) {
        static const char *const costly[] = {".-", "%f[^x]", "[^\\0\\1]", "(a*)",
                                             "a?", "()",     "%b  ",      "[%a%d_-]*"};
        write_repeated(p, PICK(p->choices, costly));
        put(p, " .. \"z\"");
        return;
    }
    put(p, "\"");
    for (size_t count = choose(p->choices, 8) + 1; count > 0; count--) {
        put(p, PICK(p->choices, items));
        put(p, PICK(p->choices, marks));
    }
    put(p, "\"");
}

void write_format(struct program *p)
{
    static const char *const formats[] = {"\"%s\"",           "\"%d\"",      "\"%5.2f\"",
                                          "\"%q\"",           "\"%99.99f\"", "\"%a\"",
                                          "\"%i%c%x\"",       "\"%-10s|\"",  "\"%.3s\"",
                                          "\"%p\"",           "\"%s\\n%s\"", "\"%\"",
                                          "\"%1000d\"",       "\"%+#08x\"",  "\"%g %e\"",
                                          "\"%u\"",           "\"%.99f\"",   "\"%s%s%s%s%s%s%s%s\"",
                                          "\"%5$d\"",         "\"% d\"",     "\"%o\"",
                                          "(\"%s\"):rep(250)"};
    put(p, PICK(p->choices, formats));
}

void write_metatable(struct program *p)
{
    static const char *const events[] = {
        "__index",  "__newindex", "__call", "__len",       "__eq",   "__lt",       "__le",
        "__concat", "__unm",      "__add",  "__sub",       "__mul",  "__div",      "__mod",
        "__pow",    "__idiv",     "__band", "__shl",       "__bnot", "__tostring", "__name",
        "__pairs",  "__close",    "__mode", "__metatable", "__gc"};
    switch (choose(p->choices, 4)) {
    case 0:
        put(p, "{ __index = ");
        write_expression(p);
        put(p, " }");
        return;
    case 1: /* every one of them */
        put(p, "every(");
        write_expression(p);
        put(p, ")");
        return;
    case 2:
        put(p, "{ __mode = ");
        put(p, chance(p->choices, 50) ? "\"k\"" : "\"v\"");
        put(p, " }");
        return;
    default:
        put(p, "{ ");
        for (size_t count = choose(p->choices, 4) + 1; count > 0; count--) {
            ml_buf_printf(p->out, "%s = ", PICK(p->choices, events));
            write_expression(p);
            put(p, ", ");
        }
        put(p, "}");
    }
}

void write_key(struct program *p)
{
    static const char *const names[] = {"a",
                                        "b",
                                        "name",
                                        "namespace",
                                        "metadata",
                                        "spec",
                                        "status",
                                        "labels",
                                        "kind",
                                        "n",
                                        "apiVersion",
                                        "uid",
                                        "resourceVersion",
                                        "conditions",
                                        "ownerReferences",
                                        "type",
                                        "reconcile",
                                        "annotations",
                                        "missing",
                                        "outcome",
                                        "field",
                                        "message",
                                        "code",
                                        "requeue_after"};
    put(p, PICK(p->choices, names));
}

static void write_fields(struct program *p)
{
    put(p, "{ ");
    for (size_t count = choose(p->choices, 5); count > 0; count--) {
        switch (choose(p->choices, 3)) {
        case 0:
            break;
        case 1:
            write_key(p);
            put(p, " = ");
            break;
        default:
            put(p, "[");
            write_expression(p);
            put(p, "] = ");
        }
        write_expression(p);
        put(p, ", ");
    }
    put(p, "}");
}

void write_table(struct program *p)
{
    static const char *const made[] = {"{}",
                                       "deep(50)",
                                       "deep(300)",
                                       "dag(25)",
                                       "wide(100)",
                                       "wide(3000)",
                                       "cyclic()",
                                       "list(20)",
                                       "list(3000)",
                                       "weak(50)",
                                       "moonloop.array()",
                                       "object",
                                       "object.spec",
                                       "object.metadata",
                                       "_ENV",
                                       "string",
                                       "moonloop",
                                       "kept",
                                       "conditions(40)",
                                       "colliding(200)",
                                       "strings(40)"};
    switch (choose(p->choices, 5)) {
    case 0:
        put(p, "{}");
        break;
    case 1:
    case 2:
        write_fields(p);
        break;
    case 3:
        put(p, PICK(p->choices, made));
        break;
    default:
        put(p, "setmetatable(");
        write_table(p);
        put(p, ", ");
        write_metatable(p);
        put(p, ")");
    }
}

static void write_strings_map(struct program *p)
{
    put(p, "{ ");
    for (size_t count = choose(p->choices, 3); count > 0; count--) {
        put(p, "[");
        write_arguments(p, "s");
        put(p, "] = ");
        write_arguments(p, "s");
        put(p, ", ");
    }
    put(p, "}");
}

static void write_metadata(struct program *p)
{
    static const char *const names[] = {"\"x-pod\"", "\"x\"", "\"y\"", "\"z\""};
    put(p, "{ name = ");
    if (chance(p->choices, 20))
        write_arguments(p, "s");
    else
        put(p, PICK(p->choices, names));
    if (chance(p->choices, 20)) {
        put(p, ", namespace = ");
        write_arguments(p, "s");
    }
    if (chance(p->choices, 30)) {
        put(p, ", labels = ");
        write_strings_map(p);
    }
    if (chance(p->choices, 15)) {
        put(p, ", ownerReferences = ");
        write_arguments(p, "t");
    }
    if (chance(p->choices, 30))
        put(p, ", uid = \"pod-uid\", resourceVersion = \"101\"");
    if (chance(p->choices, 10)) {
        put(p, ", annotations = ");
        write_arguments(p, "t");
    }
    put(p, " }");
}

void write_manifest(struct program *p)
{
    static const char *const heads[] = {
        "apiVersion = \"v1\", kind = \"Pod\"", "apiVersion = \"v1\", kind = \"Pod\"",
        "apiVersion = \"v1\", kind = \"Secret\"", "apiVersion = \"v1\", kind = \"Node\"",
        "apiVersion = \"example.com/v1\", kind = \"At\""};
    if (chance(p->choices, 15)) {
        put(p, chance(p->choices, 50) ? "object" : "ctx.get(Pod, \"x-pod\")");
        return;
    }
    ml_buf_printf(p->out, "{ %s, metadata = ", PICK(p->choices, heads));
    if (chance(p->choices, 8))
        write_arguments(p, "t");
    else
        write_metadata(p);
    put(p, ", spec = ");
    write_arguments(p, "t");
    put(p, " }");
}

void write_options(struct program *p)
{
    static const char *const namespaces[] = {"nil", "\"*\"", "\"default\"", "\"other\""};
    put(p, "{ namespace = ");
    if (chance(p->choices, 20))
        write_arguments(p, "s");
    else
        put(p, PICK(p->choices, namespaces));
    if (chance(p->choices, 40)) {
        put(p, ", labels = ");
        write_strings_map(p);
    }
    if (chance(p->choices, 30))
        put(p, ", owned = true");
    if (chance(p->choices, 20)) {
        put(p, ", index = by_name, key = ");
        write_arguments(p, "s");
    }
    put(p, " }");
}

void write_date(struct program *p)
{
    static const char *const names[] = {"year", "month", "day", "hour", "min", "sec", "later"};
    put(p, "{ ");
    for (size_t i = 0; i < ML_COUNT(names); i++) {
        ml_buf_printf(p->out, "%s = ", names[i]);
        if (chance(p->choices, 25))
            write_expression(p);
        else
            ml_buf_printf(p->out, "%zu", choose(p->choices, 30) + (i == 0 ? 2000 : 1));
        put(p, ", ");
    }
    put(p, "}");
}
