#include "state/reflector_fsm.h"

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

static struct reflector_step after_wait(struct reflector_step step)
{
    step.wait = true;
    return step;
}

static struct reflector_step from_any(bool streams)
{
    return streams ? stream_any : list_any;
}

static struct reflector_step from_last(bool streams)
{
    return streams ? stream_last : list_last;
}

struct reflector_step reflector_first(bool streams)
{
    return from_any(streams);
}

/* What follows when a streaming list did not come to its end. One that cannot be had costs a
 * plain list at once; whether the next one is a stream again is `streams`. */
static struct reflector_step after_stream(const struct reflector_step *last, enum reflector_end end)
{
    if (end == WATCH_GONE) /* once at any version, as for a list */
        return last->any_version ? after_wait(stream_any) : stream_any;
    if (end == LIST_BEHIND)
        return after_wait(stream_any);
    if (end == WATCH_THROTTLED || end == WATCH_ENDED || end == WATCH_HASTY || end == WATCH_SHORT)
        return after_wait(*last);
    return last->any_version ? list_any : list_last;
}

static struct reflector_step after_list(const struct reflector_step *last, enum reflector_end end,
                                        bool streams)
{
    if (end == LIST_GONE) /* once at any version; if that is "gone" too, not in a hot loop */
        return last->any_version ? after_wait(list_any) : list_any;
    if (end == LIST_PAGE_GONE) /* in one piece no token can expire */
        return list_any_whole;
    bool any_version = last->any_version || end == LIST_BEHIND;
    return after_wait(any_version ? from_any(streams) : from_last(streams));
}

static struct reflector_step after_watch(enum reflector_end end, bool streams)
{
    if (end == WATCH_ENDED)
        return watch;
    if (end == WATCH_SILENT)
        return from_last(streams);
    if (end == WATCH_HASTY || end == WATCH_THROTTLED)
        return after_wait(watch);
    /* "Gone" as well: every client is told so at once, and not all of them are to list at once. */
    return after_wait(from_last(streams));
}

struct reflector_step reflector_next(const struct reflector_step *last, enum reflector_end end,
                                     bool streams)
{
    if (end == LIST_COMPLETE)
        return watch;
    if (last->stream)
        return after_stream(last, end);
    return last->watch ? after_watch(end, streams) : after_list(last, end, streams);
}
