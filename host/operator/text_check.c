/* Drives an analysis: a slice for each step, and a wait for the schemas in between. It begins at
 * once, while the caches of the script are synced. If a kind of the script has no schema by then,
 * its CustomResourceDefinition may be on its way: the texts are analyzed once more when it is
 * there. After a problem was reported, they are analyzed from time to time, because a later version
 * of a CustomResourceDefinition may have the field. */
#include "operator/text_check.h"

#include <malloc.h>

/* A server publishes the schemas of a new CustomResourceDefinition some time after it has the kind:
 * kube-aggregator collects them each second. */
#define LATE_NS    (500 * ML_NS_PER_MS)
#define LATE_TRIES 6

#define RECHECK_MIN_NS (15 * ML_NS_PER_S)
#define RECHECK_MAX_NS (300 * ML_NS_PER_S)

struct ml_text_check {
    struct ml_services *services;
    struct ml_cpu_account *account;
    struct ml_script *script; /* NULL after a problem was reported */
    struct ml_files files;
    struct ml_analysis *analysis;
    struct ml_slice slice;
    struct ml_openapi_request *schemas; /* being asked for; or NULL */
    struct ml_timer late;               /* until they are asked for again */
    unsigned late_tries;
    struct ml_timer recheck;       /* until the texts are analyzed again, after a problem */
    int64_t recheck_ns;            /* its last wait; 0: no problem was reported */
    bool *has_schema;              /* by kind of the analysis */
    bool kinds_exist, asked_early; /* early: before that */
    bool is_incomplete; /* it asked early, and a kind that the script declares had no schema */
    bool is_over;       /* without a problem; the kinds do not exist yet */
    bool is_partial;    /* a kind had no schema: another server may know better */
    ml_text_check_done *done;
    void *context;
};

static void drop_analysis(struct ml_text_check *self)
{
    ml_timer_stop(&self->late);
    ml_timer_stop(&self->recheck);
    ml_openapi_cancel(ml_take(&self->schemas));
    if (self->analysis) {
        ml_analysis_free(ml_take(&self->analysis));
        malloc_trim(0); /* it took as much as a script may, between what stays */
    }
    free(ml_take(&self->has_schema));
}

static void check_free(struct ml_text_check *self)
{
    ml_slice_cancel(&self->slice);
    drop_analysis(self);
    ml_files_fini(&self->files);
    ml_script_unref(self->script);
    free(self);
}

static void analyze(struct ml_text_check *self)
{
    const struct ml_script_files files = {self->files.files, self->files.count};
    drop_analysis(self);
    self->is_over = self->is_incomplete = false;
    self->analysis = ml_analysis_new(&files, 0);
    ml_slice_wait(&self->slice, self->account);
}

/* ---- texts that were analyzed before ---- */

static bool is_checked(const struct ml_text_check *self)
{
    const struct ml_checked_texts *checked = self->services->checked;
    uint64_t print = ml_files_fingerprint(&self->files, NULL);
    for (size_t i = 0; checked && i < ML_CHECKED_TEXTS_MAX; i++)
        if (checked->prints[i] == print)
            return true;
    return false;
}

static void remember_checked(const struct ml_text_check *self)
{
    struct ml_checked_texts *checked = self->services->checked;
    if (!checked || self->is_partial || is_checked(self))
        return;
    checked->prints[checked->next++ % ML_CHECKED_TEXTS_MAX] = ml_files_fingerprint(&self->files,
                                                                                   NULL);
}

/* ---- the end ---- */

static void describe_problems(const struct ml_analysis *analysis, struct ml_err *out)
{
    size_t count = ml_analysis_problem_count(analysis);
    const char *first = count > 0 ? ml_analysis_problem(analysis, 0)->text : "";
    if (count == 1)
        ml_err_set(out, ML_ESCRIPT, "%s", first);
    else if (count > 1)
        ml_err_set(out, ML_ESCRIPT, "%s (and %zu more)", first, count - 1);
}

/* The problems are reported once; the check then waits until there are none. */
static void check_fail(struct ml_text_check *self)
{
    struct ml_err problem = ML_ERR_INIT;
    bool is_first = self->recheck_ns == 0;
    describe_problems(self->analysis, &problem);
    drop_analysis(self); /* it may be as large as a script */
    ml_script_unref(ml_take(&self->script));
    self->recheck_ns = is_first ? RECHECK_MIN_NS : ML_MIN(2 * self->recheck_ns, RECHECK_MAX_NS);
    ml_timer_start(&self->recheck, self->recheck_ns);
    if (is_first)
        self->done(self->context, &problem);
}

static void on_recheck(void *context)
{
    analyze(context);
}

static void check_succeed(struct ml_text_check *self)
{
    ml_text_check_done *done = self->done;
    void *context = self->context;
    remember_checked(self);
    check_free(self);
    done(context, NULL);
}

static void on_analyzed(struct ml_text_check *self)
{
    const struct ml_err *gave_up = ml_analysis_why(self->analysis);
    self->is_partial = self->is_partial || gave_up->kind;
    if (gave_up->kind && self->script)
        ml_warn(self->services->log, "scripts", "the names in a script are not checked",
                ML_S("script", ml_script_declaration(self->script)->file), ML_ERR(gave_up));
    if (ml_analysis_problem_count(self->analysis) > 0)
        check_fail(self);
    else if (self->recheck_ns > 0)
        check_succeed(self);
    else if (!self->kinds_exist)
        self->is_over = true;
    else if (self->is_incomplete)
        analyze(self);
    else
        check_succeed(self);
}

void ml_text_check_kinds_exist(struct ml_text_check *self)
{
    self->kinds_exist = true;
    if (self->is_over && self->is_incomplete)
        analyze(self);
    else if (self->is_over)
        ml_slice_wait(&self->slice, self->account);
}

/* ---- schemas ---- */

/* Does a kind that the script declares have no schema? */
static bool misses_schema(const struct ml_text_check *self)
{
    if (!self->script)
        return false;
    const struct ml_declaration *declaration = ml_script_declaration(self->script);
    for (size_t i = 0; i < ml_analysis_kind_count(self->analysis); i++) {
        const struct ml_gvk gvk = ml_analysis_kind(self->analysis, i);
        for (size_t j = 0; !self->has_schema[i] && j < declaration->kind_count; j++)
            if (ml_str_eq(gvk.group, declaration->kinds[j].gvk.group) &&
                ml_str_eq(gvk.version, declaration->kinds[j].gvk.version) &&
                ml_str_eq(gvk.kind, declaration->kinds[j].gvk.kind))
                return true;
    }
    return false;
}

static void on_schema(void *context, size_t index, struct ml_str schema)
{
    const struct ml_text_check *self = context;
    self->has_schema[index] = true;
    ml_analysis_give_schema(self->analysis, index, schema);
}

static void on_kind(void *context, const struct ml_gvk *gvk)
{
    const struct ml_text_check *self = context;
    ml_analysis_give_kind(self->analysis, gvk);
}

static void on_schemas_done(void *context, bool are_published)
{
    struct ml_text_check *self = context;
    bool misses = misses_schema(self);
    self->schemas = NULL;
    self->is_partial = misses || !are_published;
    self->is_incomplete = self->asked_early && misses && are_published;
    if (misses && are_published && !self->asked_early && self->late_tries++ < LATE_TRIES)
        ml_timer_start(&self->late, LATE_NS);
    else
        ml_slice_wait(&self->slice, self->account);
}

static void ask_for_schemas(struct ml_text_check *self)
{
    static const struct ml_openapi_handler handler = {on_schema, on_kind, on_schemas_done};
    size_t count = ml_analysis_kind_count(self->analysis);
    self->asked_early = !self->kinds_exist;
    ML_AUTO_FREE struct ml_gvk *gvks = ml_zalloc((count + 1) * sizeof *gvks);
    if (!self->has_schema)
        self->has_schema = ml_zalloc((count + 1) * sizeof *self->has_schema);
    for (size_t i = 0; i < count; i++)
        gvks[i] = ml_analysis_kind(self->analysis, i);
    const struct ml_openapi_opts opts = {
        .client = self->services->client,
        .loop = self->services->loop,
        .cache = self->services->schemas,
        .gvks = gvks,
        .count = count,
    };
    if (count > 0)
        self->schemas = ml_openapi_ask(&opts, &handler, self);
    else
        ml_slice_wait(&self->slice, self->account);
}

static void on_late(void *context)
{
    ask_for_schemas(context);
}

/* ---- steps ---- */

static enum ml_analysis_state take_step(struct ml_text_check *self)
{
    struct ml_clock *clock = self->services->clock;
    int64_t begin_ns = ml_clock_monotonic(clock);
    enum ml_analysis_state state = ml_analysis_step(self->analysis);
    ml_cpu_account_charge(self->account, ml_clock_monotonic(clock) - begin_ns);
    return state;
}

static void on_slice(void *context)
{
    struct ml_text_check *self = context;
    if (self->is_over) {
        check_succeed(self);
        return;
    }
    switch (take_step(self)) {
    case ML_ANALYSIS_READS:
        ml_slice_wait(&self->slice, self->account);
        break;
    case ML_ANALYSIS_WANTS_KINDS:
        ask_for_schemas(self);
        break;
    case ML_ANALYSIS_GAVE_UP:
    case ML_ANALYSIS_DONE:
        on_analyzed(self);
        break;
    }
}

struct ml_text_check *ml_text_check_new(struct ml_services *services,
                                        struct ml_cpu_account *account,
                                        const struct ml_files *files,
                                        const struct ml_script *script, ml_text_check_done *done,
                                        void *context)
{
    struct ml_text_check *self = ml_new(struct ml_text_check);
    self->services = services;
    self->account = account;
    self->done = done;
    self->context = context;
    self->script = ml_script_ref((struct ml_script *)script);
    ml_files_copy_loaded(&self->files, files, script);
    ml_slice_init(&self->slice, on_slice, self);
    ml_timer_init(&self->late, services->loop, on_late, self);
    ml_timer_init(&self->recheck, services->loop, on_recheck, self);
    if (is_checked(self))
        self->is_over = true;
    else
        analyze(self);
    return self;
}

void ml_text_check_cancel(struct ml_text_check *self)
{
    if (self)
        check_free(self);
}
