/* How long Lua is stayed in at a time: the linker puts these between call.c and limits.c, and
 * between limits.c and Lua's library. */
#include "stay.h"

#include "script/internal.h"

#include <time.h>

struct stay stay;
static int64_t began_ns, budget;
static volatile int64_t alarm_ns; /* when the CPU timer rang; 0: not yet */

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
void __real_lua_sethook(lua_State *L, lua_Hook hook, int mask, int count);
void __wrap_lua_sethook(lua_State *L, lua_Hook hook, int mask, int count);

void __wrap_script_cpu_begin(lua_State *L, int64_t budget_ns)
{
    budget = budget_ns;
    alarm_ns = 0;
    began_ns = stay_cpu_ns();
    __real_script_cpu_begin(L, budget_ns);
}

/* The handler of the CPU timer sets a hook, and nothing else does. */
void __wrap_lua_sethook(lua_State *L, lua_Hook hook, int mask, int count)
{
    if (hook && alarm_ns == 0)
        alarm_ns = stay_cpu_ns();
    __real_lua_sethook(L, hook, mask, count);
}

/* An alarm that rings late is no fault of the host: the CPU clock of a virtual machine also counts
 * what its hypervisor gave to others. So the time up to the alarm counts as the budget. */
int64_t __wrap_script_cpu_end(enum script_deadline *out_deadline)
{
    int64_t now_ns = stay_cpu_ns();
    int64_t used = alarm_ns > 0 ? budget + (now_ns - alarm_ns) : now_ns - began_ns;
    if (used - 2 * budget > stay.used_ns - 2 * stay.budget_ns || stay.used_ns == 0) {
        stay.used_ns = used;
        stay.budget_ns = budget;
    }
    return __real_script_cpu_end(out_deadline);
}
