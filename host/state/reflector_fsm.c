/* What a reflector does next, as pure functions: after a LIST or WATCH ended, and when a list is
 * older than what is known. Called by reflector.c. */
#include "state/reflector_fsm.h"

#include "kube/object.h"

#define MOVING_NS   (30 * ML_NS_PER_S)
#define STANDING_NS (600 * ML_NS_PER_S)

static const struct reflector_step list_last = {0};
static const struct reflector_step list_any = {.any_version = true, .paged = true};
static const struct reflector_step list_any_whole = {.any_version = true};
static const struct reflector_step stream_last = {.stream = true};
static const struct reflector_step stream_any = {.stream = true, .any_version = true};
static const struct reflector_step watch = {.watch = true};

const char *reflector_end_name(enum reflector_end end)
{
    static const char *const names[] = {
#define REFLECTOR_END_NAME(name, text) [name] = text,
        REFLECTOR_ENDS(REFLECTOR_END_NAME)
#undef REFLECTOR_END_NAME
    };
    return names[end];
}

static struct reflector_step step_after_wait(struct reflector_step step)
{
    step.wait = true;
    return step;
}

static struct reflector_step list_from_any_version(bool streams)
{
    return streams ? stream_any : list_any;
}

static struct reflector_step list_from_last_version(bool streams)
{
    return streams ? stream_last : list_last;
}

struct reflector_step reflector_first(bool streams)
{
    return list_from_any_version(streams);
}

/* What follows a streaming list that did not complete. If the server cannot stream, a plain list
 * follows at once. */
static struct reflector_step step_after_stream(const struct reflector_step *last,
                                               enum reflector_end end)
{
    if (end == WATCH_GONE) /* tried once at any version, as for a list */
        return last->any_version ? step_after_wait(stream_any) : stream_any;
    if (end == LIST_BEHIND)
        return step_after_wait(stream_any);
    if (end == WATCH_THROTTLED || end == WATCH_ENDED || end == WATCH_HASTY || end == WATCH_SHORT)
        return step_after_wait(*last);
    return last->any_version ? list_any : list_last;
}

static struct reflector_step step_after_list(const struct reflector_step *last,
                                             enum reflector_end end, bool streams)
{
    if (end ==
        LIST_GONE) /* tried once at any version; if that is "gone" too, wait, so as not to loop */
        return last->any_version ? step_after_wait(list_any) : list_any;
    if (end == LIST_PAGE_GONE) /* in one piece no token can expire */
        return list_any_whole;
    bool any_version = last->any_version || end == LIST_BEHIND;
    return step_after_wait(any_version ? list_from_any_version(streams)
                                       : list_from_last_version(streams));
}

static struct reflector_step step_after_watch(enum reflector_end end, bool streams)
{
    if (end == WATCH_ENDED)
        return watch;
    if (end == WATCH_SILENT)
        return list_from_last_version(streams);
    if (end == WATCH_HASTY || end == WATCH_THROTTLED)
        return step_after_wait(watch);
    /* Also for "gone": the server tells every client at the same moment, and they must not all list
     * at once. */
    return step_after_wait(list_from_last_version(streams));
}

struct reflector_step reflector_next(const struct reflector_step *last, enum reflector_end end,
                                     bool streams)
{
    if (end == LIST_COMPLETE)
        return watch;
    if (last->stream)
        return step_after_stream(last, end);
    return last->watch ? step_after_watch(end, streams) : step_after_list(last, end, streams);
}

/* ---- epochs ---- */

void reflector_epoch_fini(struct reflector_epoch *epoch)
{
    free(epoch->shown);
    *epoch = (struct reflector_epoch){0};
}

enum reflector_age reflector_epoch_check(struct reflector_epoch *epoch, const char *known,
                                         const char *shown, int64_t now_ns)
{
    if (!known || !ml_rv_older(ml_str_of(shown), ml_str_of(known))) {
        reflector_epoch_fini(epoch);
        return AGE_CURRENT;
    }
    if (!epoch->shown) {
        epoch->shown = ml_strdup(shown);
        epoch->since_ns = now_ns;
        return AGE_BEHIND;
    }
    bool moves = ml_rv_older(ml_str_of(epoch->shown), ml_str_of(shown));
    if (now_ns - epoch->since_ns < (moves ? MOVING_NS : STANDING_NS))
        return AGE_BEHIND;
    reflector_epoch_fini(epoch);
    return AGE_RESTORED;
}
