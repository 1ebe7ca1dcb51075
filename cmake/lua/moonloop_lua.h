/* The additions in our copy of Lua to the distribution's (docs/decisions/0007). The compiler
 * includes this file first in each of Lua's own sources. */
#pragma once

#include <stddef.h>
#include <stdint.h>
#include <string.h>

struct lua_State;

/* Two numbers that nobody outside the process knows, made when it starts. The multiplier is odd. */
extern uint64_t moonloop_lua_multiplier, moonloop_lua_seed;

/* Makes a new state one of scripts: no table is weak, even if its metatable has __mode, and __call
 * must be a function, so that no call follows a chain of __call without end. */
void moonloop_lua_of_scripts(struct lua_State *L);

/* Writes a digest of each of the `count` tables and functions in the list at `index`: a number that
 * almost certainly changes when it gets other values: those in the table itself and its metatable,
 * or the upvalues of the function. Raises nothing, allocates nothing, and takes some nanoseconds
 * for each value. */
void moonloop_lua_digests(struct lua_State *L, int index, uint64_t *out, size_t count);

/* Returns the place in the list, from 1, of the first that has another digest now; 0: none has. */
size_t moonloop_lua_changed(struct lua_State *L, int index, const uint64_t *digests, size_t count);

/* A use of a name that is no local variable, in code that was compiled: a field of _ENV. */
struct moonloop_lua_use {
    const char *name; /* terminated; may hold zeros, and lives as long as the function */
    size_t len;
    int line;
    int is_write;
    const struct moonloop_lua_scope *scope; /* for moonloop_lua_locals */
};

/* Calls `visit` with each such use in the Lua function at `index`, fresh from lua_load, and in the
 * functions in it, in the order of the code. Only `visit` may raise or allocate; the call takes
 * time linear in the code. An access through another table than the chunk's own _ENV, or through a
 * name that is computed, does not count as a use. */
void moonloop_lua_globals(struct lua_State *L, int index,
                          void (*visit)(void *context, const struct moonloop_lua_use *use),
                          void *context);

/* Calls `each` with the local variables that are in scope where the name is used, those of the
 * innermost function first. Only while `visit` runs. */
void moonloop_lua_locals(const struct moonloop_lua_use *use,
                         void (*each)(void *context, const char *name), void *context);

/* Calls `visit` with each line that code of the Lua function at `index`, fresh from lua_load, and
 * of the functions in it is on: some more than once, in no stated order. Jumps do not count, nor do
 * the returns that the compiler adds at a function's end and behind a tail call: no code may come
 * to these. */
void moonloop_lua_lines(struct lua_State *L, int index, void (*visit)(void *context, int line),
                        void *context);

/* Returns a new random seed, for the strings of one state. */
unsigned moonloop_lua_next_seed(void);

/* The most labels and gotos that one function may have open at a time: Lua resolves them without a
 * break, and in quadratic time. */
#define MOONLOOP_LABELS_MAX 1000

/* Returns 31 bits, the high bits of a product (Dietzfelbinger et al.). Two numbers get the same
 * bits only as often as random ones would, even if somebody chose the two who does not know the
 * multiplier. */
static inline uint64_t moonloop_lua_hash(uint64_t number)
{
    return ((number ^ moonloop_lua_seed) * moonloop_lua_multiplier) >> 33;
}

/* Equal floats have equal bits here: the callers turn whole numbers, 0 among them, into
 * integers. */
static inline int moonloop_lua_hash_float(double number)
{
    uint64_t bits;
    memcpy(&bits, &number, sizeof(bits));
    return (int)moonloop_lua_hash(bits);
}

#define luai_makeseed(L) moonloop_lua_next_seed()
#define l_hashfloat      moonloop_lua_hash_float
