#include "state/turns.h"

#ifndef MOONLOOP_CPU_STRETCH
#define MOONLOOP_CPU_STRETCH 1 /* of a build that is slower than what the limits are meant for */
#endif

#define ROUND_MAX_NS    (10 * ML_NS_PER_MS) /* of script code; then the loop turns */
#define ROUND_TURNS_MAX 100
#define ROUND_HOPS      2 /* what a timer or a peer begins gets as far as a turn of its own */
#define ASK_MAX_NS      (40 * ML_NS_PER_MS)  /* of functions at changes, in one turn of the loop */
#define SHORT_MAX_NS    (2 * ML_NS_PER_MS)   /* a hundred such slices are no long wait */
#define SLICE_UNKNOWN   (SHORT_MAX_NS + 1)   /* of who has not shown yet what its slices take */
#define SHORT_SHARE     3                    /* times what the last long slice took */
#define AT_WORK_NS      (250 * ML_NS_PER_MS) /* so long after its turn a brief one is at work */

struct ml_turns {
    struct ml_loop *loop;
    bool metered;
    struct ml_list brief, dear; /* payers that have a turn to take, by their slices */
    struct ml_task round;       /* gives turns */
    struct ml_timer hop;        /* runs between two rounds: what is due by now goes first */
    int hops;                   /* turns of the loop until the next round */
    struct ml_timer rest;       /* runs while dear ones wait for the peers of brief ones */
    int64_t brief_seen_ns;      /* monotonic: when a brief one took a turn; or long ago */
    struct ml_task reset;       /* the loop has turned */
    int64_t round_ns;           /* what script code took since */
    int64_t brief_ns;           /* what brief ones took since the last dear one */
    int64_t brief_max_ns;       /* and how much they may before the next */
    bool in_round;
    struct ml_payer *running; /* NULL too when it ended inside of its turn */
};

static bool owes(const struct ml_payer *payer)
{
    return ml_timer_active(&payer->paid);
}

static bool is_dear(const struct ml_payer *payer)
{
    return payer->turns->metered && payer->slice_ns > SHORT_MAX_NS;
}

static void enlist(struct ml_payer *payer)
{
    struct ml_turns *self = payer->turns;
    if (!ml_list_empty(&payer->node) || ml_list_empty(&payer->waiting) || owes(payer) ||
        payer == self->running)
        return;
    ml_list_push(is_dear(payer) ? &self->dear : &self->brief, &payer->node);
    if (!self->in_round && !ml_timer_active(&self->hop))
        ml_task_defer(&self->round, self->loop);
}

/* The loop turns before the next round, whoever asks for one meanwhile. */
static void end_round(struct ml_turns *self)
{
    if (ml_timer_active(&self->hop))
        return;
    ml_task_cancel(&self->round);
    self->hops = ROUND_HOPS;
    ml_timer_start(&self->hop, 0);
}

static void settle(struct ml_payer *payer)
{
    if (owes(payer))
        return;
    if (ml_list_empty(&payer->waiting))
        payer->idle(payer->context);
    else
        enlist(payer);
}

static bool dear_may(const struct ml_turns *self)
{
    return !ml_list_empty(&self->dear) && !ml_timer_active(&self->rest);
}

static bool any_may(const struct ml_turns *self)
{
    return !ml_list_empty(&self->brief) || dear_may(self);
}

static struct ml_payer *next_payer(struct ml_turns *self)
{
    if (!any_may(self))
        return NULL;
    bool brief_may = !dear_may(self) || self->brief_ns < self->brief_max_ns;
    struct ml_list *first = brief_may && !ml_list_empty(&self->brief) ? &self->brief : &self->dear;
    struct ml_list *node = ml_list_shift(first);
    return node ? ml_container_of(node, struct ml_payer, node) : NULL;
}

/* Who is brief mostly waits for the API server, with nothing to run when the answer is not there
 * yet. So after a dear slice the thread stays free for as long as it took, while anybody brief is
 * at work. */
static void note_turn(struct ml_turns *self, bool dear, int64_t took_ns)
{
    int64_t now_ns = ml_clock_monotonic(ml_loop_clock(self->loop));
    self->brief_ns = dear ? 0 : self->brief_ns + took_ns;
    if (!dear) {
        self->brief_seen_ns = now_ns;
        return;
    }
    self->brief_max_ns = SHORT_SHARE * ML_MAX(took_ns, SHORT_MAX_NS);
    if (self->metered && took_ns > SHORT_MAX_NS &&
        now_ns - self->brief_seen_ns < AT_WORK_NS + took_ns)
        ml_timer_start(&self->rest, took_ns);
}

/* The payer may end inside of its turn, with all that belongs to it. What took long counts as dear,
 * even from one who was brief so far: those who are brief go next. */
static void give_turn(struct ml_turns *self, struct ml_payer *payer)
{
    struct ml_list *node = ml_list_shift(&payer->waiting);
    if (!node) { /* it was canceled */
        settle(payer);
        return;
    }
    struct ml_turn *turn = ml_container_of(node, struct ml_turn, node);
    bool was_dear = is_dear(payer);
    int64_t before_ns = self->round_ns;
    self->running = payer;
    turn->run(turn->context);
    int64_t took_ns = self->round_ns - before_ns;
    note_turn(self, was_dear || took_ns > SHORT_MAX_NS, took_ns);
    if (ml_take(&self->running))
        settle(payer);
}

static void run_round(void *context)
{
    struct ml_turns *self = context;
    self->in_round = true;
    for (size_t i = 0; i < ROUND_TURNS_MAX && self->round_ns < ROUND_MAX_NS; i++) {
        struct ml_payer *payer = next_payer(self);
        if (!payer)
            break;
        if (!owes(payer)) /* its timer brings it back */
            give_turn(self, payer);
    }
    self->in_round = false;
    if (any_may(self))
        end_round(self);
}

static void on_hop(void *context)
{
    struct ml_turns *self = context;
    if (--self->hops > 0)
        ml_timer_start(&self->hop, 0);
    else if (any_may(self))
        ml_task_defer(&self->round, self->loop);
}

static void on_rested(void *context)
{
    struct ml_turns *self = context;
    if (any_may(self) && !ml_timer_active(&self->hop))
        ml_task_defer(&self->round, self->loop);
}

static void on_reset(void *context)
{
    ((struct ml_turns *)context)->round_ns = 0;
}

struct ml_turns *ml_turns_new(struct ml_loop *loop, bool metered)
{
    struct ml_turns *self = ml_new(struct ml_turns);
    self->loop = loop;
    self->metered = metered;
    self->brief_max_ns = SHORT_SHARE * SHORT_MAX_NS;
    ml_list_init(&self->brief);
    ml_list_init(&self->dear);
    ml_task_init(&self->round, run_round, self);
    ml_task_init(&self->reset, on_reset, self);
    ml_timer_init(&self->hop, loop, on_hop, self);
    ml_timer_init(&self->rest, loop, on_rested, self);
    self->brief_seen_ns = -ML_NS_PER_S;
    return self;
}

void ml_turns_free(struct ml_turns *self)
{
    if (!self)
        return;
    ml_assert(ml_list_empty(&self->brief) && ml_list_empty(&self->dear));
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

static int64_t now_of(const struct ml_payer *payer)
{
    return ml_clock_monotonic(ml_loop_clock(payer->turns->loop));
}

static void on_paid(void *context)
{
    struct ml_payer *payer = context;
    int64_t debt_ns = ml_meter_debt(&payer->meter, now_of(payer));
    if (debt_ns > 0)
        ml_timer_start(&payer->paid, debt_ns); /* what went on before has added to it */
    else
        settle(payer);
}

void ml_payer_init(struct ml_payer *payer, struct ml_turns *turns, void (*idle)(void *context),
                   void *context)
{
    *payer = (struct ml_payer){.turns = turns, .idle = idle, .context = context};
    payer->slice_ns = SLICE_UNKNOWN;
    ml_list_init(&payer->waiting);
    ml_list_init(&payer->node);
    ml_timer_init(&payer->paid, turns->loop, on_paid, payer);
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
    return ml_list_empty(&payer->waiting) && !owes(payer);
}

void ml_payer_charge(struct ml_payer *payer, int64_t cpu_ns)
{
    if (payer && payer->seconds)
        ml_metric_add(payer->seconds, (double)cpu_ns / (double)ML_NS_PER_S);
    if (!payer || !payer->turns->metered)
        return;
    struct ml_turns *self = payer->turns;
    int64_t now_ns = now_of(payer);
    int64_t took_ns = cpu_ns / MOONLOOP_CPU_STRETCH;
    ml_meter_charge(&payer->meter, now_ns, took_ns);
    payer->slice_ns = ML_MAX(took_ns, payer->slice_ns - payer->slice_ns / 8);
    self->round_ns += took_ns;
    ml_task_defer(&self->reset, self->loop);
    if (self->round_ns >= ROUND_MAX_NS)
        end_round(self);
    int64_t debt_ns = ml_meter_debt(&payer->meter, now_ns);
    if (debt_ns == 0 || owes(payer))
        return;
    ml_timer_start(&payer->paid, debt_ns);
    if (payer->throttled)
        ml_metric_add(payer->throttled, 1);
}

bool ml_payer_may_go_on(const struct ml_payer *payer)
{
    if (!payer || !payer->turns->metered)
        return true;
    return ml_payer_idle(payer) && !is_dear(payer) && payer->turns->round_ns < ROUND_MAX_NS;
}

bool ml_payer_may_ask(const struct ml_payer *payer, int64_t slice_max_ns)
{
    if (!payer || !payer->turns->metered)
        return true;
    return !owes(payer) &&
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
    enlist(payer);
}

bool ml_turn_waits(const struct ml_turn *turn)
{
    return !ml_list_empty(&turn->node);
}

void ml_turn_cancel(struct ml_turn *turn)
{
    ml_list_remove(&turn->node);
}
