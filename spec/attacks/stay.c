/* How long Lua is stayed in at a time: the linker puts these between call.c and limits.c. */
#include "stay.h"

#include "script/internal.h"

#include <time.h>

struct stay stay;
static int64_t began_ns, budget;

int64_t stay_cpu_ns(void)
{
    struct timespec now;
    clock_gettime(CLOCK_THREAD_CPUTIME_ID, &now);
    return (int64_t)now.tv_sec * ML_NS_PER_S + now.tv_nsec;
}

void __real_script_cpu_begin(lua_State *L, int64_t budget_ns);
void __wrap_script_cpu_begin(lua_State *L, int64_t budget_ns);
int64_t __real_script_cpu_end(enum script_deadline *out_deadline);
int64_t __wrap_script_cpu_end(enum script_deadline *out_deadline);

void __wrap_script_cpu_begin(lua_State *L, int64_t budget_ns)
{
    budget = budget_ns;
    began_ns = stay_cpu_ns();
    __real_script_cpu_begin(L, budget_ns);
}

int64_t __wrap_script_cpu_end(enum script_deadline *out_deadline)
{
    int64_t used = stay_cpu_ns() - began_ns;
    if (used - 2 * budget > stay.used_ns - 2 * stay.budget_ns || stay.used_ns == 0) {
        stay.used_ns = used;
        stay.budget_ns = budget;
    }
    return __real_script_cpu_end(out_deadline);
}
