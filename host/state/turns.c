/* Gives turns to script code. Controllers and sources are its payers (operator/controller.c,
 * operator/scripts.c). */
#include "state/turns.h"

#ifndef MOONLOOP_CPU_STRETCH
#define MOONLOOP_CPU_STRETCH 1 /* for builds (ASan) that are slower than the limits allow for */
#endif

#define ROUND_MAX_NS    (10 * ML_NS_PER_MS) /* of script code; then the loop turns */
#define ROUND_TURNS_MAX 100
#define ROUND_HOPS      2 /* work that a timer or a peer starts reaches its own turn by then */
#define ASK_MAX_NS                                                                                 \
    (40 * ML_NS_PER_MS) /* for functions called at changes, in one turn of the loop */
#define QUICK_MAX_NS  (2 * ML_NS_PER_MS) /* a hundred such slices are a short wait */
#define SLICE_UNKNOWN (QUICK_MAX_NS + 1) /* for a payer that has not run yet */
#define QUICK_SHARE   3                  /* times what the last long slice took */
#define AT_WORK_NS                                                                                 \
    (250 * ML_NS_PER_MS) /* a quick payer counts as working for this long after its turn */

struct ml_turns {
    struct ml_loop *loop;
    bool metered;
    struct ml_list quick, slow; /* payers with a waiting turn */
    struct ml_task round;       /* gives turns */
    struct ml_timer hop;        /* runs between two rounds: due timers and I/O go first */
    int hops;                   /* turns of the loop until the next round */
    struct ml_timer rest;       /* runs while slow payers wait for the sake of quick ones */
    int64_t quick_seen_ns;      /* monotonic: when a quick payer last took a turn */
    struct ml_task reset;       /* the loop has turned */
    int64_t round_ns;           /* what script code took since */
    int64_t quick_ns;           /* what quick payers took since the last slow one */
    int64_t quick_max_ns;       /* and may take before the next slow one */
    bool in_round;
    struct ml_payer *running; /* also NULL when it ended inside its turn */
};

static bool payer_owes(const struct ml_payer *payer)
{
    return ml_timer_active(&payer->paid);
}

static bool payer_is_slow(const struct ml_payer *payer)
{
    return payer->turns->metered && payer->slice_ns > QUICK_MAX_NS;
}

static void payer_enlist(struct ml_payer *payer)
{
    struct ml_turns *self = payer->turns;
    if (!ml_list_empty(&payer->node) || ml_list_empty(&payer->waiting) || payer_owes(payer) ||
        payer == self->running)
        return;
    ml_list_push(payer_is_slow(payer) ? &self->slow : &self->quick, &payer->node);
    if (!self->in_round && !ml_timer_active(&self->hop))
        ml_task_defer(&self->round, self->loop);
}

/* Makes the loop turn before the next round, even if somebody asks for one meanwhile. */
static void turns_end_round(struct ml_turns *self)
{
    if (ml_timer_active(&self->hop))
        return;
    ml_task_cancel(&self->round);
    self->hops = ROUND_HOPS;
    ml_timer_start(&self->hop, 0);
}

static void payer_settle(struct ml_payer *payer)
{
    if (payer_owes(payer))
        return;
    if (ml_list_empty(&payer->waiting))
        payer->idle(payer->context);
    else
        payer_enlist(payer);
}

static bool turns_slow_may_run(const struct ml_turns *self)
{
    return !ml_list_empty(&self->slow) && !ml_timer_active(&self->rest);
}

static bool turns_any_may_run(const struct ml_turns *self)
{
    return !ml_list_empty(&self->quick) || turns_slow_may_run(self);
}

static struct ml_payer *turns_next_payer(struct ml_turns *self)
{
    if (!turns_any_may_run(self))
        return NULL;
    bool quick_may = !turns_slow_may_run(self) || self->quick_ns < self->quick_max_ns;
    struct ml_list *first = quick_may && !ml_list_empty(&self->quick) ? &self->quick : &self->slow;
    struct ml_list *node = ml_list_shift(first);
    return node ? ml_container_of(node, struct ml_payer, node) : NULL;
}

/* A quick payer mostly waits for the API server, and has nothing to run before the answer is there.
 * So after a slow slice the thread stays free for as long as that slice took, while a quick payer
 * is at work. */
static void turns_note_turn(struct ml_turns *self, bool slow, int64_t took_ns)
{
    int64_t now_ns = ml_clock_monotonic(ml_loop_clock(self->loop));
    self->quick_ns = slow ? 0 : self->quick_ns + took_ns;
    if (!slow) {
        self->quick_seen_ns = now_ns;
        return;
    }
    self->quick_max_ns = QUICK_SHARE * ML_MAX(took_ns, QUICK_MAX_NS);
    if (self->metered && took_ns > QUICK_MAX_NS &&
        now_ns - self->quick_seen_ns < AT_WORK_NS + took_ns)
        ml_timer_start(&self->rest, took_ns);
}

/* The payer may end inside its turn. A long slice counts as slow even from a payer that was quick
 * so far: quick payers go next. */
static void turns_give_turn(struct ml_turns *self, struct ml_payer *payer)
{
    struct ml_list *node = ml_list_shift(&payer->waiting);
    if (!node) { /* it was canceled */
        payer_settle(payer);
        return;
    }
    struct ml_turn *turn = ml_container_of(node, struct ml_turn, node);
    bool was_slow = payer_is_slow(payer);
    int64_t before_ns = self->round_ns;
    self->running = payer;
    turn->run(turn->context);
    int64_t took_ns = self->round_ns - before_ns;
    turns_note_turn(self, was_slow || took_ns > QUICK_MAX_NS, took_ns);
    if (ml_take(&self->running))
        payer_settle(payer);
}

static void turns_run_round(void *context)
{
    struct ml_turns *self = context;
    self->in_round = true;
    for (size_t i = 0; i < ROUND_TURNS_MAX && self->round_ns < ROUND_MAX_NS; i++) {
        struct ml_payer *payer = turns_next_payer(self);
        if (!payer)
            break;
        if (!payer_owes(payer)) /* its timer brings it back */
            turns_give_turn(self, payer);
    }
    self->in_round = false;
    if (turns_any_may_run(self))
        turns_end_round(self);
}

static void turns_on_hop(void *context)
{
    struct ml_turns *self = context;
    if (--self->hops > 0)
        ml_timer_start(&self->hop, 0);
    else if (turns_any_may_run(self))
        ml_task_defer(&self->round, self->loop);
}

static void turns_on_rested(void *context)
{
    struct ml_turns *self = context;
    if (turns_any_may_run(self) && !ml_timer_active(&self->hop))
        ml_task_defer(&self->round, self->loop);
}

static void turns_on_loop_turned(void *context)
{
    ((struct ml_turns *)context)->round_ns = 0;
}

struct ml_turns *ml_turns_new(struct ml_loop *loop, bool metered)
{
    struct ml_turns *self = ml_new(struct ml_turns);
    self->loop = loop;
    self->metered = metered;
    self->quick_max_ns = QUICK_SHARE * QUICK_MAX_NS;
    ml_list_init(&self->quick);
    ml_list_init(&self->slow);
    ml_task_init(&self->round, turns_run_round, self);
    ml_task_init(&self->reset, turns_on_loop_turned, self);
    ml_timer_init(&self->hop, loop, turns_on_hop, self);
    ml_timer_init(&self->rest, loop, turns_on_rested, self);
    self->quick_seen_ns = -ML_NS_PER_S;
    return self;
}

void ml_turns_free(struct ml_turns *self)
{
    if (!self)
        return;
    ml_assert(ml_list_empty(&self->quick) && ml_list_empty(&self->slow));
    ml_task_cancel(&self->round);
    ml_task_cancel(&self->reset);
    ml_timer_stop(&self->hop);
    ml_timer_stop(&self->rest);
    free(self);
}

bool ml_turns_metered(const struct ml_turns *self)
{
    return self->metered;
}

static int64_t payer_now(const struct ml_payer *payer)
{
    return ml_clock_monotonic(ml_loop_clock(payer->turns->loop));
}

static void payer_on_paid(void *context)
{
    struct ml_payer *payer = context;
    int64_t debt_ns = ml_meter_debt(&payer->meter, payer_now(payer));
    if (debt_ns > 0)
        ml_timer_start(&payer->paid, debt_ns); /* work that was under way has added to the debt */
    else
        payer_settle(payer);
}

void ml_payer_init(struct ml_payer *payer, struct ml_turns *turns, void (*idle)(void *context),
                   void *context)
{
    *payer = (struct ml_payer){.turns = turns, .idle = idle, .context = context};
    payer->slice_ns = SLICE_UNKNOWN;
    ml_list_init(&payer->waiting);
    ml_list_init(&payer->node);
    ml_timer_init(&payer->paid, turns->loop, payer_on_paid, payer);
}

void ml_payer_drop_turns(struct ml_payer *payer)
{
    ml_list_each_entry (struct ml_turn, turn, &payer->waiting)
        ml_turn_cancel(turn);
}

void ml_payer_fini(struct ml_payer *payer)
{
    ml_assert(ml_list_empty(&payer->waiting));
    if (payer->turns->running == payer)
        payer->turns->running = NULL;
    ml_list_remove(&payer->node);
    ml_timer_stop(&payer->paid);
}

bool ml_payer_idle(const struct ml_payer *payer)
{
    return ml_list_empty(&payer->waiting) && !payer_owes(payer);
}

void ml_payer_charge(struct ml_payer *payer, int64_t cpu_ns)
{
    if (payer && payer->seconds)
        ml_metric_add(payer->seconds, (double)cpu_ns / (double)ML_NS_PER_S);
    if (!payer || !payer->turns->metered)
        return;
    struct ml_turns *self = payer->turns;
    int64_t now_ns = payer_now(payer);
    int64_t took_ns = cpu_ns / MOONLOOP_CPU_STRETCH;
    ml_meter_charge(&payer->meter, now_ns, took_ns);
    payer->slice_ns = ML_MAX(took_ns, payer->slice_ns - payer->slice_ns / 8);
    self->round_ns += took_ns;
    ml_task_defer(&self->reset, self->loop);
    if (self->round_ns >= ROUND_MAX_NS)
        turns_end_round(self);
    int64_t debt_ns = ml_meter_debt(&payer->meter, now_ns);
    if (debt_ns == 0 || payer_owes(payer))
        return;
    ml_timer_start(&payer->paid, debt_ns);
    if (payer->throttled)
        ml_metric_add(payer->throttled, 1);
}

bool ml_payer_may_go_on(const struct ml_payer *payer)
{
    if (!payer || !payer->turns->metered)
        return true;
    return ml_payer_idle(payer) && !payer_is_slow(payer) && payer->turns->round_ns < ROUND_MAX_NS;
}

bool ml_payer_may_ask(const struct ml_payer *payer, int64_t slice_max_ns)
{
    if (!payer || !payer->turns->metered)
        return true;
    return !payer_owes(payer) &&
           payer->turns->round_ns + ML_MIN(slice_max_ns, payer->slice_ns) < ASK_MAX_NS;
}

void ml_turn_init(struct ml_turn *turn, void (*run)(void *context), void *context)
{
    *turn = (struct ml_turn){.run = run, .context = context};
    ml_list_init(&turn->node);
}

void ml_turn_wait(struct ml_turn *turn, struct ml_payer *payer)
{
    ml_assert(ml_list_empty(&turn->node));
    ml_list_push(&payer->waiting, &turn->node);
    payer_enlist(payer);
}

bool ml_turn_waits(const struct ml_turn *turn)
{
    return !ml_list_empty(&turn->node);
}

void ml_turn_cancel(struct ml_turn *turn)
{
    ml_list_remove(&turn->node);
}
