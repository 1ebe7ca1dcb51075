/* Counts runs of a key that change the same fields (streak.h). For enqueue_filter.c. */
#include "operator/streak.h"

#include "base/clock.h"

#define FREE_RUNS       20u
#define SOON_NS         (60 * ML_NS_PER_S) /* 20 runs in more time than this are no loop */
#define PAUSE_FIRST_NS  ML_NS_PER_S
#define PAUSE_MAX_NS    (1000 * ML_NS_PER_S)
#define PAUSE_DOUBLINGS 10u /* the pause has reached its maximum */
#define IDLE_RUNS_MAX   3u

void streak_end(struct streak *streak)
{
    free(ml_take(&streak->fields));
    free(ml_take(&streak->rival));
    streak->runs = streak->idle_runs = 0;
    streak->pause_ns = 0;
}

void streak_end_contest(struct streak *streak)
{
    free(ml_take(&streak->contested));
    free(ml_take(&streak->contender));
}

static bool is_about(const struct streak *streak, struct ml_str fields)
{
    return streak->fields && ml_str_is(fields, streak->fields);
}

/* The runs of a streak come one soon after the other. A rival is slowed, too: its pause adds to
 * this one's, and may be the next longer one. */
static bool goes_on(const struct streak *streak, struct ml_str fields, int64_t now_ns)
{
    int64_t pause_ns = streak->rival ? 3 * streak->pause_ns : streak->pause_ns;
    if (!is_about(streak, fields) || now_ns - streak->last_ns > pause_ns + SOON_NS)
        return false;
    return streak->runs != FREE_RUNS || now_ns - streak->began_ns <= SOON_NS;
}

/* What another controller had changed, this run has changed again. */
static void note_rival(struct streak *streak, struct ml_str fields)
{
    if (!streak_is_contested(streak, fields))
        return;
    free(streak->rival);
    streak->rival = ml_take(&streak->contender);
    streak_end_contest(streak);
}

bool streak_count(struct streak *streak, struct ml_str fields, int64_t now_ns)
{
    if (!goes_on(streak, fields, now_ns)) {
        streak_end(streak);
        streak->fields = ml_str_dup(fields);
        streak->began_ns = now_ns;
    }
    note_rival(streak, fields);
    streak->idle_runs = 0;
    streak->last_ns = now_ns;
    if (++streak->runs <= FREE_RUNS)
        return false;
    uint32_t doublings = ML_MIN(streak->runs - FREE_RUNS - 1, PAUSE_DOUBLINGS);
    streak->pause_ns = ML_MIN(PAUSE_FIRST_NS << doublings, PAUSE_MAX_NS);
    return true;
}

void streak_pass_idle(struct streak *streak)
{
    if (!streak->rival || ++streak->idle_runs > IDLE_RUNS_MAX)
        streak_end(streak);
}

bool streak_is_contest(const struct streak *streak, const char *author, struct ml_str fields)
{
    return author || (streak->rival && is_about(streak, fields));
}

int64_t streak_contest(struct streak *streak, const char *author, struct ml_str fields)
{
    streak_end_contest(streak);
    streak->contender = ml_strdup(author ? author : streak->rival);
    streak->contested = ml_str_dup(fields);
    streak->contest_is_new = true;
    return streak->rival && is_about(streak, fields) ? streak->pause_ns : 0;
}

bool streak_is_contested(const struct streak *streak, struct ml_str fields)
{
    return streak->contested && ml_str_is(fields, streak->contested);
}
