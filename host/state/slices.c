/* Runs the slices of script code. Controllers and sources have accounts (operator/controller.c,
 * operator/scripts.c). */
#include "state/slices.h"

#ifndef MOONLOOP_CPU_STRETCH
#define MOONLOOP_CPU_STRETCH 1 /* for builds (ASan) that are slower than the limits allow for */
#endif

#define ROUND_MAX_NS     (10 * ML_NS_PER_MS) /* of script code; then the loop turns */
#define ROUND_SLICES_MAX 100
#define ROUND_HOPS       2 /* work that a timer or a peer starts reaches its own slice by then */
#define ASK_MAX_NS                                                                                 \
    (40 * ML_NS_PER_MS) /* for functions called at changes, in one turn of the loop */
#define QUICK_MAX_NS  (2 * ML_NS_PER_MS) /* a hundred such slices are a short wait */
#define SLICE_UNKNOWN (QUICK_MAX_NS + 1) /* for an account that has not run yet */
#define QUICK_SHARE   3                  /* times what the last long slice took */
#define AT_WORK_NS                                                                                 \
    (250 * ML_NS_PER_MS) /* a quick account counts as working for this long after its slice */

struct ml_slices {
    struct ml_loop *loop;
    bool metered;
    struct ml_list quick, slow; /* accounts with a waiting slice */
    struct ml_task round;       /* runs slices */
    struct ml_timer hop;        /* runs between two rounds: due timers and I/O go first */
    int hops;                   /* turns of the loop until the next round */
    struct ml_timer rest;       /* runs while slow accounts wait for the sake of quick ones */
    int64_t quick_seen_ns;      /* monotonic: when a quick account last ran a slice */
    struct ml_task reset;       /* the loop has turned */
    int64_t round_ns;           /* what script code took since */
    int64_t quick_ns;           /* what quick accounts took since the last slow one */
    int64_t quick_max_ns;       /* and may take before the next slow one */
    bool in_round;
    struct ml_cpu_account *running; /* also NULL when it ended inside its slice */
};

static bool account_owes(const struct ml_cpu_account *account)
{
    return ml_timer_active(&account->paid);
}

static bool account_is_slow(const struct ml_cpu_account *account)
{
    return account->slices->metered && account->slice_ns > QUICK_MAX_NS;
}

static void account_enlist(struct ml_cpu_account *account)
{
    struct ml_slices *self = account->slices;
    if (!ml_list_empty(&account->node) || ml_list_empty(&account->waiting) ||
        account_owes(account) || account == self->running)
        return;
    ml_list_push(account_is_slow(account) ? &self->slow : &self->quick, &account->node);
    if (!self->in_round && !ml_timer_active(&self->hop))
        ml_task_defer(&self->round, self->loop);
}

/* Makes the loop turn before the next round, even if somebody asks for one meanwhile. */
static void slices_end_round(struct ml_slices *self)
{
    if (ml_timer_active(&self->hop))
        return;
    ml_task_cancel(&self->round);
    self->hops = ROUND_HOPS;
    ml_timer_start(&self->hop, 0);
}

static void account_settle(struct ml_cpu_account *account)
{
    if (account_owes(account))
        return;
    if (ml_list_empty(&account->waiting))
        account->idle(account->context);
    else
        account_enlist(account);
}

static bool slices_slow_may_run(const struct ml_slices *self)
{
    return !ml_list_empty(&self->slow) && !ml_timer_active(&self->rest);
}

static bool slices_any_may_run(const struct ml_slices *self)
{
    return !ml_list_empty(&self->quick) || slices_slow_may_run(self);
}

static struct ml_cpu_account *slices_next_account(struct ml_slices *self)
{
    if (!slices_any_may_run(self))
        return NULL;
    bool quick_may = !slices_slow_may_run(self) || self->quick_ns < self->quick_max_ns;
    struct ml_list *first = quick_may && !ml_list_empty(&self->quick) ? &self->quick : &self->slow;
    struct ml_list *node = ml_list_shift(first);
    return node ? ml_container_of(node, struct ml_cpu_account, node) : NULL;
}

/* A quick account mostly waits for the API server, and has nothing to run before the answer is
 * there. So after a slow slice the thread stays free for as long as that slice took, while a quick
 * account is at work. */
static void slices_note(struct ml_slices *self, bool slow, int64_t took_ns)
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

/* The account may end inside its slice. A long slice counts as slow even from an account that was
 * quick so far: quick accounts go next. */
static void slices_run_one(struct ml_slices *self, struct ml_cpu_account *account)
{
    struct ml_list *node = ml_list_shift(&account->waiting);
    if (!node) { /* it was canceled */
        account_settle(account);
        return;
    }
    struct ml_slice *slice = ml_container_of(node, struct ml_slice, node);
    bool was_slow = account_is_slow(account);
    int64_t before_ns = self->round_ns;
    self->running = account;
    slice->run(slice->context);
    int64_t took_ns = self->round_ns - before_ns;
    slices_note(self, was_slow || took_ns > QUICK_MAX_NS, took_ns);
    if (ml_take(&self->running))
        account_settle(account);
}

static void slices_run_round(void *context)
{
    struct ml_slices *self = context;
    self->in_round = true;
    for (size_t i = 0; i < ROUND_SLICES_MAX && self->round_ns < ROUND_MAX_NS; i++) {
        struct ml_cpu_account *account = slices_next_account(self);
        if (!account)
            break;
        if (!account_owes(account)) /* its timer brings it back */
            slices_run_one(self, account);
    }
    self->in_round = false;
    if (slices_any_may_run(self))
        slices_end_round(self);
}

static void slices_on_hop(void *context)
{
    struct ml_slices *self = context;
    if (--self->hops > 0)
        ml_timer_start(&self->hop, 0);
    else if (slices_any_may_run(self))
        ml_task_defer(&self->round, self->loop);
}

static void slices_on_rested(void *context)
{
    struct ml_slices *self = context;
    if (slices_any_may_run(self) && !ml_timer_active(&self->hop))
        ml_task_defer(&self->round, self->loop);
}

static void slices_on_loop_turned(void *context)
{
    ((struct ml_slices *)context)->round_ns = 0;
}

struct ml_slices *ml_slices_new(struct ml_loop *loop, bool metered)
{
    struct ml_slices *self = ml_new(struct ml_slices);
    self->loop = loop;
    self->metered = metered;
    self->quick_max_ns = QUICK_SHARE * QUICK_MAX_NS;
    ml_list_init(&self->quick);
    ml_list_init(&self->slow);
    ml_task_init(&self->round, slices_run_round, self);
    ml_task_init(&self->reset, slices_on_loop_turned, self);
    ml_timer_init(&self->hop, loop, slices_on_hop, self);
    ml_timer_init(&self->rest, loop, slices_on_rested, self);
    self->quick_seen_ns = -ML_NS_PER_S;
    return self;
}

void ml_slices_free(struct ml_slices *self)
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

bool ml_slices_metered(const struct ml_slices *self)
{
    return self->metered;
}

static int64_t account_now(const struct ml_cpu_account *account)
{
    return ml_clock_monotonic(ml_loop_clock(account->slices->loop));
}

static void account_on_paid(void *context)
{
    struct ml_cpu_account *account = context;
    int64_t debt_ns = ml_meter_debt(&account->meter, account_now(account));
    if (debt_ns > 0)
        ml_timer_start(&account->paid, debt_ns); /* work that was under way has added to the debt */
    else
        account_settle(account);
}

void ml_cpu_account_init(struct ml_cpu_account *account, struct ml_slices *slices,
                         void (*idle)(void *context), void *context)
{
    *account = (struct ml_cpu_account){.slices = slices, .idle = idle, .context = context};
    account->slice_ns = SLICE_UNKNOWN;
    ml_list_init(&account->waiting);
    ml_list_init(&account->node);
    ml_timer_init(&account->paid, slices->loop, account_on_paid, account);
}

void ml_cpu_account_drop_slices(struct ml_cpu_account *account)
{
    ml_list_each_entry (struct ml_slice, slice, &account->waiting)
        ml_slice_cancel(slice);
}

void ml_cpu_account_fini(struct ml_cpu_account *account)
{
    ml_assert(ml_list_empty(&account->waiting));
    if (account->slices->running == account)
        account->slices->running = NULL;
    ml_list_remove(&account->node);
    ml_timer_stop(&account->paid);
}

bool ml_cpu_account_idle(const struct ml_cpu_account *account)
{
    return ml_list_empty(&account->waiting) && !account_owes(account);
}

void ml_cpu_account_charge(struct ml_cpu_account *account, int64_t cpu_ns)
{
    if (account && account->seconds)
        ml_metric_add(account->seconds, (double)cpu_ns / (double)ML_NS_PER_S);
    if (!account || !account->slices->metered)
        return;
    struct ml_slices *self = account->slices;
    int64_t now_ns = account_now(account);
    int64_t took_ns = cpu_ns / MOONLOOP_CPU_STRETCH;
    ml_meter_charge(&account->meter, now_ns, took_ns);
    account->slice_ns = ML_MAX(took_ns, account->slice_ns - account->slice_ns / 8);
    self->round_ns += took_ns;
    ml_task_defer(&self->reset, self->loop);
    if (self->round_ns >= ROUND_MAX_NS)
        slices_end_round(self);
    int64_t debt_ns = ml_meter_debt(&account->meter, now_ns);
    if (debt_ns == 0 || account_owes(account))
        return;
    ml_timer_start(&account->paid, debt_ns);
    if (account->throttled)
        ml_metric_add(account->throttled, 1);
}

bool ml_cpu_account_may_go_on(const struct ml_cpu_account *account)
{
    if (!account || !account->slices->metered)
        return true;
    return ml_cpu_account_idle(account) && !account_is_slow(account) &&
           account->slices->round_ns < ROUND_MAX_NS;
}

bool ml_cpu_account_may_ask(const struct ml_cpu_account *account, int64_t slice_max_ns)
{
    if (!account || !account->slices->metered)
        return true;
    return !account_owes(account) &&
           account->slices->round_ns + ML_MIN(slice_max_ns, account->slice_ns) < ASK_MAX_NS;
}

void ml_slice_init(struct ml_slice *slice, void (*run)(void *context), void *context)
{
    *slice = (struct ml_slice){.run = run, .context = context};
    ml_list_init(&slice->node);
}

void ml_slice_wait(struct ml_slice *slice, struct ml_cpu_account *account)
{
    ml_assert(ml_list_empty(&slice->node));
    ml_list_push(&account->waiting, &slice->node);
    account_enlist(account);
}

bool ml_slice_waits(const struct ml_slice *slice)
{
    return !ml_list_empty(&slice->node);
}

void ml_slice_cancel(struct ml_slice *slice)
{
    ml_list_remove(&slice->node);
}
