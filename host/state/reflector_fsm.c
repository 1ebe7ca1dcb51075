#include "state/reflector_fsm.h"

static const struct reflector_step list_last = {0};
static const struct reflector_step list_any = {.any_version = true, .paged = true};
static const struct reflector_step list_any_whole = {.any_version = true};
static const struct reflector_step watch = {.watch = true};

static struct reflector_step after_wait(struct reflector_step step)
{
    step.wait = true;
    return step;
}

struct reflector_step reflector_first(void)
{
    return list_any;
}

struct reflector_step reflector_next(const struct reflector_step *last, enum reflector_end end)
{
    switch (end) {
    case LIST_COMPLETE:
    case WATCH_ENDED:
        return watch;
    case LIST_GONE: /* once at any version; if that is "gone" too, not in a hot loop */
        return last->any_version ? after_wait(list_any) : list_any;
    case LIST_PAGE_GONE: /* in one piece no token can expire */
        return list_any_whole;
    case LIST_FAILED:
        return after_wait(last->any_version ? list_any : list_last);
    case WATCH_SILENT:
        return list_last;
    case WATCH_THROTTLED:
        return after_wait(watch);
    case WATCH_GONE: /* every client is told so at once: not all of them list at once */
    case WATCH_SHORT:
    case WATCH_FAILED:
        return after_wait(list_last);
    }
    ML_UNREACHABLE();
}
