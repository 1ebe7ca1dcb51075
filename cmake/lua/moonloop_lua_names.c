/* Finds the names of the environment that compiled code uses, and the lines that it is on
 * (moonloop_lua.h), for host/script/module.c: reads Lua's own code, and changes nothing. */
#include "lprefix.h"

#include "ldebug.h"
#include "lfunc.h"
#include "lobject.h"
#include "lopcodes.h"
#include "lstate.h"

#define ENV_WORDS ((MAXUPVAL + 64) / 64)

/* A function that is being read, at an instruction of it. */
struct moonloop_lua_scope {
    const Proto *function;
    int pc;
    const struct moonloop_lua_scope *outer; /* NULL: the chunk */
    uint64_t env[ENV_WORDS];                /* a bit for each upvalue that is the chunk's _ENV */
};

struct reader {
    void (*visit)(void *context, const struct moonloop_lua_use *use);
    void *context;
};

static int is_env(const struct moonloop_lua_scope *scope, int upvalue)
{
    return (scope->env[upvalue / 64] >> (upvalue % 64)) & 1;
}

static void visit_name(const struct reader *reader, const struct moonloop_lua_scope *scope,
                       const TValue *name)
{
    if (!ttisstring(name))
        return;
    const struct moonloop_lua_use use = {
        .name = getstr(tsvalue(name)),
        .len = tsslen(tsvalue(name)),
        .line = luaG_getfuncline(scope->function, scope->pc),
        .is_write = GET_OPCODE(scope->function->code[scope->pc]) == OP_SETTABUP,
        .scope = scope,
    };
    reader->visit(reader->context, &use);
}

/* With more than 255 constants, or a long name, the compiler does not use the instructions for
 * fields of upvalues: it puts _ENV and the name into two registers. NULL: no such read is here. */
static const TValue *name_in_register(const Proto *function, int pc)
{
    const Instruction *code = &function->code[pc];
    int at = 2, place;
    if (pc + 3 >= function->sizecode || GETARG_A(code[1]) != GETARG_A(code[0]) + 1)
        return NULL;
    if (GET_OPCODE(code[1]) == OP_LOADK) {
        place = GETARG_Bx(code[1]);
    } else if (GET_OPCODE(code[1]) == OP_LOADKX) {
        place = GETARG_Ax(code[2]);
        at = 3;
    } else {
        return NULL;
    }
    if (GET_OPCODE(code[at]) != OP_GETTABLE || GETARG_B(code[at]) != GETARG_A(code[0]) ||
        GETARG_C(code[at]) != GETARG_A(code[1]))
        return NULL;
    return &function->k[place];
}

static void read_function(const struct reader *reader, struct moonloop_lua_scope *scope);

/* The function is made at scope->pc. Lua's compiler limits how deep functions are nested. */
static void read_inner(const struct reader *reader, const struct moonloop_lua_scope *scope,
                       const Proto *function)
{
    struct moonloop_lua_scope inner = {.function = function, .outer = scope};
    for (int i = 0; i < function->sizeupvalues; i++)
        if (!function->upvalues[i].instack && is_env(scope, function->upvalues[i].idx))
            inner.env[i / 64] |= UINT64_C(1) << (i % 64);
    read_function(reader, &inner);
}

static void read_function(const struct reader *reader, struct moonloop_lua_scope *scope)
{
    const Proto *function = scope->function;
    for (scope->pc = 0; scope->pc < function->sizecode; scope->pc++) {
        Instruction code = function->code[scope->pc];
        const TValue *name = NULL;
        switch (GET_OPCODE(code)) {
        case OP_GETTABUP:
            name = is_env(scope, GETARG_B(code)) ? &function->k[GETARG_C(code)] : NULL;
            break;
        case OP_SETTABUP:
            name = is_env(scope, GETARG_A(code)) ? &function->k[GETARG_B(code)] : NULL;
            break;
        case OP_GETUPVAL:
            name = is_env(scope, GETARG_B(code)) ? name_in_register(function, scope->pc) : NULL;
            break;
        case OP_CLOSURE:
            read_inner(reader, scope, function->p[GETARG_Bx(code)]);
            break;
        default:
            break;
        }
        if (name)
            visit_name(reader, scope, name);
    }
}

void moonloop_lua_globals(struct lua_State *L, int index,
                          void (*visit)(void *context, const struct moonloop_lua_use *use),
                          void *context)
{
    const LClosure *closure = lua_topointer(L, index);
    const struct reader reader = {visit, context};
    struct moonloop_lua_scope chunk = {.function = closure->p, .env = {1}};
    read_function(&reader, &chunk);
}

void moonloop_lua_locals(const struct moonloop_lua_use *use,
                         void (*each)(void *context, const char *name), void *context)
{
    const struct moonloop_lua_scope *scope = use->scope;
    int pc = scope->pc;
    for (; scope; scope = scope->outer) {
        const Proto *function = scope->function;
        if (scope != use->scope)
            pc = scope->pc + 1; /* a function is in scope in itself */
        for (int i = 0; i < function->sizelocvars; i++)
            if (function->locvars[i].startpc <= pc && pc < function->locvars[i].endpc)
                each(context, getstr(function->locvars[i].varname));
    }
}

static void visit_lines(const Proto *function, void (*visit)(void *context, int line),
                        void *context)
{
    OpCode before = OP_VARARGPREP;
    for (int pc = 0; pc < function->sizecode - 1; pc++) {
        OpCode code = GET_OPCODE(function->code[pc]);
        if (code != OP_JMP && code != OP_VARARGPREP && before != OP_TAILCALL)
            visit(context, luaG_getfuncline(function, pc));
        before = code;
    }
    for (int i = 0; i < function->sizep; i++)
        visit_lines(function->p[i], visit, context);
}

void moonloop_lua_lines(struct lua_State *L, int index, void (*visit)(void *context, int line),
                        void *context)
{
    const LClosure *closure = lua_topointer(L, index);
    visit_lines(closure->p, visit, context);
}
