/* What our copy of Lua has beside the distribution's (docs/decisions/0007). Lua's own sources are
 * compiled with this included first. */
#pragma once

#include <stddef.h>
#include <stdint.h>
#include <string.h>

struct lua_State;

/* Two numbers that nobody outside the process knows, made when it starts. The multiplier is odd. */
extern uint64_t moonloop_lua_multiplier, moonloop_lua_seed;

/* Makes a new state one of scripts: no table is weak, whatever its metatable's __mode says, and
 * what
 * __call calls is a function, so that no call looks for the next one without end. */
void moonloop_lua_of_scripts(struct lua_State *L);

/* A number that differs, but for an accident, once the table or function at `index` holds other
 * values: what is in the table itself and its metatable, or the upvalues of the function. Raises
 * nothing, allocates nothing, and takes some nanoseconds for each value. */
uint64_t moonloop_lua_digest(struct lua_State *L, int index);

/* A use of a name that is no local variable, in code that was compiled: a field of _ENV. */
struct moonloop_lua_use {
    const char *name; /* terminated; may hold zeros, and lives as long as the function */
    size_t len;
    int line;
    int is_write;
    const struct moonloop_lua_scope *scope; /* for moonloop_lua_locals */
};

/* Calls `visit` with each such use in the Lua function at `index`, fresh from lua_load, and in the
 * functions in it, in the order of the code. `visit` may raise. Beside it nothing raises or
 * allocates, and one call takes time linear in the code. What goes through another table than the
 * chunk's own _ENV, or through a name that is computed, is no such use. */
void moonloop_lua_globals(struct lua_State *L, int index,
                          void (*visit)(void *context, const struct moonloop_lua_use *use),
                          void *context);

/* Calls `each` with the local variables that are in scope where the name is used, those of the
 * innermost function first. Only while `visit` runs. */
void moonloop_lua_locals(const struct moonloop_lua_use *use,
                         void (*each)(void *context, const char *name), void *context);

/* The seed of a state's strings: another for each. */
unsigned moonloop_lua_next_seed(void);

/* Labels and gotos that one function has open at a time: Lua resolves them in quadratic time, in
 * one go. */
#define MOONLOOP_LABELS_MAX 1000

/* 31 bits in which two numbers are the same as seldom as if they were drawn by lot, whichever two
 * were chosen by somebody who does not know the multiplier: the high bits of a product
 * (Dietzfelbinger et al.). */
static inline uint64_t moonloop_lua_hash(uint64_t number)
{
    return ((number ^ moonloop_lua_seed) * moonloop_lua_multiplier) >> 33;
}

/* No two floats that are the same come here with different bits: 0 and what else is whole is an
 * integer. */
static inline int moonloop_lua_hash_float(double number)
{
    uint64_t bits;
    memcpy(&bits, &number, sizeof(bits));
    return (int)moonloop_lua_hash(bits);
}

#define luai_makeseed(L) moonloop_lua_next_seed()
#define l_hashfloat      moonloop_lua_hash_float
