#include <stdlib.h>
#include <sys/random.h>

#include "lprefix.h"

#include "lstate.h"

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
