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

/* Odd and without a pattern: for the type of a value, and for its place. */
#define TYPE_FACTOR  UINT64_C(0xd6e8feb86659fd93)
#define PLACE_FACTOR UINT64_C(0xa0761d6478bd642f)

static inline uint64_t mix(uint64_t digest, uint64_t number)
{
    digest = (digest ^ number) * UINT64_C(0x9e3779b97f4a7c15);
    return digest ^ digest >> 29;
}

/* Of a value that is no number and no object only the type says which it is. */
static inline uint64_t number_of(const Value *value, lu_byte type)
{
    uint64_t bits;
    if (novariant(type) <= LUA_TBOOLEAN)
        return novariant(type) == LUA_TNIL ? 0 : type * TYPE_FACTOR;
    memcpy(&bits, value, sizeof(bits));
    return bits + type * TYPE_FACTOR;
}

static inline uint64_t mix_value(uint64_t digest, const TValue *value)
{
    return mix(digest, number_of(&value->value_, rawtt(value)));
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

/* How many of its nodes are free decides when a table grows, and so which lengths are found. The
 * collector may change a node without a value. */
static uint64_t digest_nodes(const Table *table)
{
    if (isdummy(table))
        return 0;
    const Node *node = table->node, *end = node + sizenode(table);
    uint64_t digest = mix(mix(DIGEST_SEED, (uint64_t)(end - node)),
                          (uint64_t)(table->lastfree - node));
    for (uint64_t place = 0; node < end; node++, place += PLACE_FACTOR) {
        if (isempty(gval(node)))
            continue;
        digest = mix(digest, number_of(&keyval(node), keytt(node)) + place);
        digest = mix_value(digest, gval(node));
    }
    return digest;
}

/* Has the side effect of forget_length. */
static uint64_t digest_table(Table *table)
{
    forget_length(table);
    unsigned array = table->alimit;
    uint64_t digest = mix(mix(DIGEST_SEED, array), (uintptr_t)table->metatable);
    for (unsigned i = 0; i < array; i++)
        digest = mix_value(digest, &table->array[i]);
    return mix(digest, digest_nodes(table));
}

static uint64_t digest_object(const TValue *object)
{
    uint64_t digest = DIGEST_SEED;
    if (ttistable(object))
        return digest_table(hvalue(object));
    if (ttisLclosure(object)) {
        const LClosure *function = clLvalue(object);
        for (int i = 0; i < function->nupvalues; i++)
            digest = mix_value(digest, upvalue_of(function, i));
    } else if (ttisCclosure(object)) {
        const CClosure *function = clCvalue(object);
        for (int i = 0; i < function->nupvalues; i++)
            digest = mix_value(digest, &function->upvalue[i]);
    }
    return digest;
}

void moonloop_lua_digests(struct lua_State *L, int index, uint64_t *out, size_t count)
{
    Table *list = (Table *)lua_topointer(L, index);
    for (size_t i = 0; i < count; i++)
        out[i] = digest_object(luaH_getint(list, (lua_Integer)i + 1));
}

size_t moonloop_lua_changed(struct lua_State *L, int index, const uint64_t *digests, size_t count)
{
    Table *list = (Table *)lua_topointer(L, index);
    for (size_t i = 0; i < count; i++)
        if (digest_object(luaH_getint(list, (lua_Integer)i + 1)) != digests[i])
            return i + 1;
    return 0;
}
