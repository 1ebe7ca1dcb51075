#include <stdlib.h>
#include <sys/random.h>

#include "lprefix.h"

#include "lobject.h"
#include "lstate.h"
#include "ltable.h"

uint64_t moonloop_lua_multiplier, moonloop_lua_seed;

__attribute__((constructor)) static void draw(void)
{
    uint64_t drawn[2];
    if (getentropy(drawn, sizeof(drawn)) != 0)
        abort();
    moonloop_lua_multiplier = drawn[0] | 1;
    moonloop_lua_seed = drawn[1];
}

unsigned moonloop_lua_next_seed(void)
{
    unsigned seed;
    if (getentropy(&seed, sizeof(seed)) != 0)
        abort();
    return seed;
}

void moonloop_lua_of_scripts(struct lua_State *L)
{
    G(L)->ofscripts = 1;
}

/* A digest begins with it: two equal numbers, mixed with nothing else, would come to 0. */
#define DIGEST_SEED UINT64_C(0x6d6f6f6e6c6f6f70)

static uint64_t mix(uint64_t digest, uint64_t number)
{
    digest = (digest ^ number) * UINT64_C(0x9e3779b97f4a7c15);
    return digest ^ digest >> 29;
}

/* Of a value that is no number and no object only the type says which it is. */
static uint64_t mix_value(uint64_t digest, const TValue *value)
{
    uint64_t bits = 0;
    if (ttisnil(value))
        return mix(digest, LUA_TNIL);
    if (!ttisboolean(value))
        memcpy(&bits, &value->value_, sizeof(value->value_));
    return mix(mix(digest, (uint64_t)rawtt(value) + 1), bits);
}

/* The value of an upvalue: Lua has the pointer in a union since 5.4.5. */
static const TValue *upvalue_of(const LClosure *function, int i)
{
#if LUA_VERSION_RELEASE_NUM < 50405
    return function->upvals[i]->v;
#else
    return function->upvals[i]->v.p;
#endif
}

/* A table remembers where its length was found, and begins there the next time. With holes in it
 * that gives another length, so a run could tell the next one something by it. */
static void forget_length(Table *table)
{
    table->alimit = luaH_realasize(table);
    setrealasize(table);
}

/* How many of its nodes are free decides when a table grows, and so which lengths are found. */
static uint64_t digest_nodes(const Table *table)
{
    if (isdummy(table))
        return 0;
    return mix(mix(DIGEST_SEED, (uint64_t)sizenode(table)),
               (uint64_t)(table->lastfree - table->node));
}

/* Has the side effect of forget_length. */
static uint64_t digest_table(Table *table)
{
    forget_length(table);
    unsigned array = table->alimit;
    uint64_t digest = mix(mix(DIGEST_SEED, array), (uintptr_t)table->metatable);
    digest = mix(digest, digest_nodes(table));
    for (unsigned i = 0; i < array; i++)
        digest = mix_value(digest, &table->array[i]);
    for (int i = 0; i < sizenode(table); i++) {
        Node *node = gnode(table, i);
        if (isempty(gval(node))) /* the collector may change such a node */
            continue;
        TValue key;
        getnodekey((lua_State *)NULL, &key, node);
        digest = mix_value(mix_value(mix(digest, (uint64_t)i), &key), gval(node));
    }
    return digest;
}

uint64_t moonloop_lua_digest(struct lua_State *L, int index)
{
    const void *pointer = lua_topointer(L, index);
    uint64_t digest = DIGEST_SEED;
    if (lua_istable(L, index))
        return digest_table((Table *)pointer);
    if (!lua_isfunction(L, index) || !lua_getupvalue(L, index, 1))
        return digest;
    lua_pop(L, 1);
    if (lua_iscfunction(L, index)) {
        const CClosure *function = pointer;
        for (int i = 0; i < function->nupvalues; i++)
            digest = mix_value(digest, &function->upvalue[i]);
        return digest;
    }
    const LClosure *function = pointer;
    for (int i = 0; i < function->nupvalues; i++)
        digest = mix_value(digest, upvalue_of(function, i));
    return digest;
}
