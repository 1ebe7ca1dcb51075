/* All scripts of a host: sources deliver sets of files, which are loaded in turns of the event
 * loop; each file has an entry, with the controller of its script. A controller ends because its
 * author wants it removed or because its script has another name now: its finalizers go first, then
 * it stops, and the author reads what stays behind. */
#include "operator/scripts.h"

#include "base/escape.h"
#include "operator/text_check.h"

#define SOURCES_MAX 64
#define INFO_METRIC "moonloop_script_info"

/* An editor or git may put a file back that it has just taken away. */
#define MISSING_NS ML_NS_PER_S

/* A new version waits so long for the kept revisions: one of them ran before. */
#define BASELINE_NS (10 * ML_NS_PER_S)

/* One file of one source, and its controller. An older version runs in its place when the newest
 * one is refused and none runs, or when the source says so (history.h). */
struct entry {
    struct ml_source *source;
    char *file;
    struct ml_controller *controller; /* NULL until a version was good */
    struct ml_controller *successor;  /* same file, other name: takes over when it is live */
    uint64_t fingerprint;             /* of the version offered last, and not refused */
    uint64_t live_fingerprint;        /* of the one that runs */
    uint64_t refused;                 /* of the set refused last; 0: the newest is not refused */
    uint64_t refused_text;            /* of the text of the file in that set */
    struct ml_err why;                /* why the newest version was refused */
    struct ml_text_check *check;      /* of the version that was offered or refused last; or NULL */
    struct ml_controller *checked;    /* what it was offered to; NULL: it is refused */
    bool is_ready;                    /* that version could take over, but for the check */
    struct ml_own_tests *tests;       /* of that version; or NULL */
    struct ml_controller *tested;     /* what it was offered to */
    bool tests_failed;                /* what is refused failed in its tests */
    bool is_first_of_folder;          /* that version came with the first files of a folder */
    struct ml_plan *plan; /* of that version: the last step before it takes over; or NULL */
    bool awaits_baseline; /* it is not known yet which version ran before: the history has it */
    struct ml_timer baseline_late;
    bool held;                          /* what is refused would do harm; somebody may approve it */
    uint64_t offered_set, offered_text; /* of that version: what `refused` would be */
    char *offered_from, *live_from;     /* versions of the source; NULL: it has none */
    struct ml_files offered_files;      /* what that version was loaded from, until it is live */
    uint64_t live_set, live_text;       /* of the one that runs, as `offered_set` and the next */
    struct ml_files live_files;         /* likewise; may be none: the history has them */
    const char *way;                    /* how that came to run; as in struct ml_live_revision */
    struct ml_files planned_over;       /* of the version that the last plan compared with */
    struct ml_files before; /* of the version to go back to, while a newer one is on trial */
    bool is_settled;        /* the one that runs is not on trial any more, or never was */
    char *stopped;          /* the revision that was stopped last, and did not settle after that */
    struct ml_err *stopped_why;
    bool awaits_before;   /* that runs first, as the newest one takes over step by step */
    uint64_t rolled_back; /* the set whose version is replaced by an older one, as its
                             source says; 0: none is */
    bool awaits_history;  /* that version is not known yet */
    bool missing;         /* the file is gone from its source */
    char *removed;        /* the name of its controller, which was removed; or NULL */
    size_t draining;      /* controllers of it in ml_scripts.draining */
    bool dead;            /* freed when those have ended */
    struct ml_list node;
};

struct ml_scripts {
    struct ml_services *services;
    struct ml_script_limits limits;
    struct ml_crash_marker *marker; /* NULL: none is kept */
    struct ml_list sources;
    size_t source_count;
    struct ml_list entries;
    struct ml_list dead; /* entries */
    /* Removed, or replaced by controllers of other names; freed when their finalizers are gone and
     * their reconciles have ended. */
    struct ml_controller *draining[ML_CONTROLLERS_MAX];
    size_t draining_count;
    bool stopping;
    struct ml_guard_opts guard;
    struct ml_tester *tester; /* NULL: tests are not run */
    bool told_of_tests;       /* that they are not */
    size_t running;           /* controllers that have not stopped yet */
    void (*stopped)(void *context);
    void *stopped_context;
    struct ml_task stopped_task;
    struct ml_cpu_account check_account; /* of checks of names: a file that loads for long must not
                                            delay them */
    struct ml_metric_family *refusals;
    struct ml_metric_family *refused; /* 1: the newest version is */
    struct ml_metric_family *held;    /* 1: likewise, and it may be approved */
    struct ml_metric_family *drifted; /* 1: what its source has is not what runs */
    struct ml_metric_family *quarantines;
    struct ml_metric_family *loads;
    struct ml_metric *without_file, *not_working;
    struct ml_metrics_collector collector;
    struct ml_metrics_member info; /* a series for each revision that runs */
    void (*live)(void *context);   /* NULL: nobody asked */
    void *live_context;
};

/* ---- an entry ---- */

/* The newest good version: offered, or else current; or NULL. Borrowed. */
static struct ml_script *entry_script(const struct entry *entry)
{
    const struct ml_controller *controller = entry->successor ? entry->successor
                                                              : entry->controller;
    const struct ml_revision *revision = controller ? ml_controller_offered(controller) : NULL;
    if (controller && !revision)
        revision = ml_controller_current(controller);
    return revision ? revision->script : NULL;
}

/* A version of it is live. */
static bool entry_works(const struct entry *entry)
{
    return entry->controller && ml_controller_current(entry->controller);
}

/* NULL: there is none. */
static struct entry *entry_find(const struct ml_source *source, struct ml_str file)
{
    ml_list_each_entry (struct entry, entry, &source->scripts->entries)
        if (entry->source == source && ml_str_is(file, entry->file))
            return entry;
    return NULL;
}

static void entry_on_baseline_late(void *context);

static struct entry *entry_get(struct ml_source *source, struct ml_str file)
{
    struct entry *entry = entry_find(source, file);
    if (entry)
        return entry;
    entry = ml_new(struct entry);
    entry->source = source;
    entry->file = ml_str_dup(file);
    entry->why = ML_ERR_INIT;
    ml_timer_init(&entry->baseline_late, source->scripts->services->loop, entry_on_baseline_late,
                  entry);
    ml_list_push(&source->scripts->entries, &entry->node);
    /* At 0 until it happens: increase() sees the first refusal of a file that was good before. */
    (void)ml_metric_with(source->scripts->refusals, ml_metric_labels(entry->file));
    (void)ml_metric_with(source->scripts->quarantines, ml_metric_labels(entry->file));
    return entry;
}

/* Sets the gauges: is what its source has not what runs? */
static void entry_show_refused(const struct entry *entry, bool refused)
{
    const struct ml_scripts *self = entry->source->scripts;
    const char *const *labels = ml_metric_labels(entry->file);
    ml_metric_set(ml_metric_with(self->refused, labels), refused && !entry->held);
    ml_metric_set(ml_metric_with(self->held, labels), refused && entry->held);
}

static void entry_show_drifted(const struct entry *entry, bool drifted)
{
    ml_metric_set(ml_metric_with(entry->source->scripts->drifted, ml_metric_labels(entry->file)),
                  drifted);
}

static void source_report(struct ml_source *source, bool warning, const char *reason,
                          const char *note)
{
    if (source->class->report)
        source->class->report(source, warning, reason, note);
}

static void entry_cancel_check(struct entry *entry)
{
    ml_text_check_cancel(ml_take(&entry->check));
    entry->checked = NULL;
}

static void entry_cancel_tests(struct entry *entry)
{
    ml_own_tests_cancel(ml_take(&entry->tests));
    entry->tested = NULL;
}

static void entry_cancel_plan(struct entry *entry)
{
    entry->awaits_baseline = false;
    ml_timer_stop(&entry->baseline_late);
    ml_plan_free(ml_take(&entry->plan));
}

/* Says so in the log, as a metric, and as an Event for the author. `older`: the version that is
 * about to run instead, or NULL. */
static void entry_refuse(struct entry *entry, const struct ml_err *err, bool quarantined,
                         const struct ml_script *older)
{
    struct ml_scripts *self = entry->source->scripts;
    const char *message = entry_works(entry) || older
                              ? "script refused; the last good version keeps running"
                              : "script refused";
    if (!entry->checked) /* that of an earlier version, which was refused, too */
        entry_cancel_check(entry);
    entry->held = entry->tests_failed = false;
    entry->why = *err;
    ml_error(self->services->log, "scripts", message, ML_S("source", entry->source->name),
             ML_ERR_FIELDS(err), ML_S("script", entry->file));
    ml_metric_add(ml_metric_with(self->refusals, ml_metric_labels(entry->file)), 1);
    entry_show_refused(entry, true);
    if (quarantined)
        ml_metric_add(ml_metric_with(self->quarantines, ml_metric_labels(entry->file)), 1);
    source_report(entry->source, true, quarantined ? "ScriptQuarantined" : "ScriptRefused",
                  err->message);
}

/* The version is good, but what it would do may be harm; or what it did, and it was `stopped`. */
static void entry_hold(struct entry *entry, const struct ml_err *err, bool stopped)
{
    entry->held = true;
    entry->why = *err;
    ml_warn(entry->source->scripts->services->log, "scripts",
            stopped ? "script stopped; the version before it runs again"
                    : "script held; the last good version keeps running",
            ML_S("source", entry->source->name), ML_ERR(err), ML_S("script", entry->file));
    entry_show_refused(entry, true);
    source_report(entry->source, true, stopped ? "ScriptStopped" : "ScriptHeld", err->message);
}

static void entry_drop_successor(struct entry *entry)
{
    if (!entry->successor)
        return;
    if (entry->checked == entry->successor)
        entry_cancel_check(entry);
    if (entry->tested == entry->successor)
        entry_cancel_tests(entry);
    entry->source->scripts->running--;
    ml_controller_free(ml_take(&entry->successor));
}

/* Its controllers go with it; while some of them drain, it stays among the dead ones. */
static void entry_free(struct entry *entry)
{
    ml_list_remove(&entry->node);
    if (!entry->dead) {
        entry_show_refused(entry, false);
        entry_show_drifted(entry, false);
    }
    entry_cancel_check(entry);
    entry_cancel_tests(entry);
    entry_cancel_plan(entry);
    ml_files_fini(&entry->offered_files);
    ml_files_fini(&entry->live_files);
    ml_files_fini(&entry->planned_over);
    ml_files_fini(&entry->before);
    entry_drop_successor(entry);
    ml_controller_free(ml_take(&entry->controller));
    free(ml_take(&entry->offered_from));
    free(ml_take(&entry->live_from));
    free(ml_take(&entry->stopped));
    free(ml_take(&entry->stopped_why));
    if (entry->draining > 0) { /* they refer to it */
        entry->dead = true;
        ml_list_push(&entry->source->scripts->dead, &entry->node);
        return;
    }
    free(entry->removed);
    free(entry->file);
    free(entry);
}

/* For a file that never was a controller and is gone, or is a module: readiness must not wait for
 * it. NULL is fine. */
static void entry_free_unless_controller(struct entry *entry)
{
    if (entry && !entry->controller)
        entry_free(entry);
}

/* ---- the end of a controller ---- */

/* The controller of the entry ends: first its finalizers go, if it `removes_finalizers` and no
 * other one takes them over, then it stops. */
static void entry_drain(struct entry *entry, struct ml_controller *controller,
                        bool removes_finalizers)
{
    struct ml_scripts *self = entry->source->scripts;
    ml_assert(self->draining_count < ML_CONTROLLERS_MAX);
    self->draining[self->draining_count++] = controller;
    entry->draining++;
    if (removes_finalizers && ml_controller_current(controller))
        ml_controller_remove(controller);
    else
        ml_controller_stop(controller);
}

static void entry_report_removed(const struct entry *entry, const struct ml_controller *controller,
                                 size_t count)
{
    const struct ml_scripts *self = entry->source->scripts;
    const char *name = ml_controller_name(controller), *kind;
    size_t objects = ml_controller_objects(controller, &kind);
    ML_AUTO_FREE char *note = ml_asprintf(
        "%s: controller %s is removed; moonloop.dev/%s was taken off %zu objects; what stays: %zu "
        "objects of %s, and the objects that they own",
        entry->file, name, name, count, objects, kind);
    ml_info(self->services->log, "scripts", "controller is removed; its objects stay",
            ML_S("controller", name), ML_S("controllerKind", kind),
            ML_S("source", entry->source->name), ML_S("script", entry->file),
            ML_I("finalizers", (int64_t)count), ML_I("objects", (int64_t)objects));
    source_report(entry->source, false, "ControllerRemoved", note);
}

/* Files that were refused because of its name may be good now, and its own may be back. */
static void scripts_look_again(struct ml_scripts *self)
{
    ml_list_each_entry (struct entry, entry, &self->entries)
        entry->refused = 0;
    ml_list_each_entry (struct ml_source, each, &self->sources)
        if (!self->stopping && each->class->again)
            each->class->again(each);
}

static void entry_on_removed(void *context, struct ml_controller *controller, size_t count)
{
    struct entry *entry = context;
    struct ml_scripts *self = entry->source->scripts;
    bool has_successor = controller != entry->controller; /* and drains */
    if (!has_successor || count > 0)
        entry_report_removed(entry, controller, count);
    ml_controller_stop(controller);
    if (!has_successor) {
        entry_cancel_check(entry);
        entry_cancel_tests(entry);
        entry_cancel_plan(entry);
        entry->controller = NULL;
        entry_drain(entry, controller, true);
        free(entry->removed);
        entry->removed = ml_strdup(ml_controller_name(controller));
        if (entry->missing)
            entry_free(entry);
    }
    scripts_look_again(self);
}

/* Is the finalizer of a controller of that name being taken off, as another one took over? One that
 * begins meanwhile would lose its own. */
static bool scripts_remove_name(const struct ml_scripts *self, const char *name)
{
    for (size_t i = 0; i < self->draining_count; i++)
        if (ml_controller_is_removed(self->draining[i]) &&
            strcmp(ml_controller_name(self->draining[i]), name) == 0)
            return true;
    return false;
}

/* Is the name in the list, "a, b"? */
static bool list_has(const char *list, const char *name)
{
    for (struct ml_str rest = ml_str_of(list); rest.ptr;)
        if (ml_str_is(ml_str_trim(ml_str_cut(&rest, ',')), name))
            return true;
    return false;
}

/* Is the controller of that name to be removed? */
static bool source_removes(const struct ml_source *source, const char *name)
{
    return list_has(source->removed, name);
}

static bool source_knows_controller(const struct ml_source *source, struct ml_str name)
{
    ml_list_each_entry (const struct entry, entry, &source->scripts->entries) {
        const struct ml_controller *controller = entry->controller;
        if (entry->source == source &&
            ((controller && ml_str_is(name, ml_controller_name(controller))) ||
             (entry->removed && ml_str_is(name, entry->removed))))
            return true;
    }
    return false;
}

/* ---- pauses ---- */

static bool source_pauses(const struct ml_source *source, const char *name)
{
    return list_has(source->paused, "true") || list_has(source->paused, name);
}

/* Its controller begins no run any more, or begins again. */
static void entry_pause(struct entry *entry, struct ml_controller *controller)
{
    const struct ml_services *services = entry->source->scripts->services;
    const char *name = ml_controller_name(controller);
    bool paused = source_pauses(entry->source, name);
    if (!ml_controller_pause(controller, paused))
        return;
    ML_AUTO_FREE char *note = ml_asprintf(
        paused ? "controller %s reconciles nothing until " ML_PAUSED_ANNOTATION " is removed"
               : "controller %s reconciles again",
        name);
    ml_info(
        services->log, "scripts", paused ? "controller is paused" : "controller reconciles again",
        ML_S("controller", name), ML_S("source", entry->source->name), ML_S("script", entry->file));
    source_report(entry->source, false, paused ? "Paused" : "Resumed", note);
}

/* "site: 2026-11-29T…" is for one controller; any other text, as one with a time alone, for all. */
static bool source_retries(const struct ml_source *source, const char *name)
{
    struct ml_str rest = ml_str_of(source->retry);
    struct ml_str first = ml_str_trim(ml_str_cut(&rest, ':'));
    return ml_str_is(first, name) || !source_knows_controller(source, first);
}

/* Nothing has run yet when the annotation is seen for the first time. */
static void source_follow_retry(struct ml_source *self)
{
    bool asks = self->retry && (!self->retried || strcmp(self->retry, self->retried) != 0);
    free(self->retried);
    self->retried = ml_strdup(self->retry);
    if (!asks)
        return;
    ml_list_each_entry (struct entry, entry, &self->scripts->entries) {
        if (entry->source != self || !entry->controller ||
            !source_retries(self, ml_controller_name(entry->controller)))
            continue;
        ml_info(self->scripts->services->log, "scripts", "controller tries all objects again",
                ML_S("controller", ml_controller_name(entry->controller)),
                ML_S("source", self->name), ML_S("script", entry->file));
        ml_controller_resync(entry->controller);
    }
}

/* Before its files: a version that comes with a pause does not run. */
static void source_follow_pause(struct ml_source *self)
{
    ml_list_each_entry (struct entry, entry, &self->scripts->entries) {
        if (entry->source != self)
            continue;
        if (entry->controller)
            entry_pause(entry, entry->controller);
        if (entry->successor)
            entry_pause(entry, entry->successor);
    }
}

/* The controller was removed, and its source still says so. */
static bool entry_stays_removed(const struct entry *entry, const char *name)
{
    return entry->removed && strcmp(entry->removed, name) == 0 &&
           source_removes(entry->source, name);
}

/* Begins to remove its controller, unless that is being done. */
static void entry_remove(struct entry *entry)
{
    struct ml_controller *controller = entry->controller;
    if (!controller || ml_controller_is_removed(controller))
        return;
    ml_info(entry->source->scripts->services->log, "scripts", "controller is being removed",
            ML_S("controller", ml_controller_name(controller)), ML_S("source", entry->source->name),
            ML_S("script", entry->file));
    ml_controller_remove(controller);
}

/* ---- versions ---- */

static bool controller_has_name(const struct ml_controller *controller, const char *name)
{
    return controller && strcmp(ml_controller_name(controller), name) == 0;
}

/* Another file whose controller has the name, or NULL. */
static const struct entry *entry_with_name(const struct entry *mine, const char *name)
{
    ml_list_each_entry (struct entry, entry, &mine->source->scripts->entries)
        if (entry != mine && (controller_has_name(entry->controller, name) ||
                              controller_has_name(entry->successor, name)))
            return entry;
    return NULL;
}

/* Does it say that it was the other one formerly? */
static bool takes_over(const struct ml_controller *controller, const struct ml_controller *other)
{
    const struct ml_revision *revision = ml_controller_current(controller);
    return revision &&
           ml_declaration_is_called(revision->declaration, ml_str_of(ml_controller_name(other)));
}

/* Also where no history is, as that of a folder, or its write is under way. NULL: none counts. */
static void entry_keep_stop(struct entry *entry, const char *revision, const struct ml_err *why)
{
    free(entry->stopped);
    free(entry->stopped_why);
    entry->stopped = ml_strdup(revision);
    entry->stopped_why = why ? ml_err_dup(why) : NULL;
}

/* The revision that is live is good, and goes to the history. */
static void entry_on_settled(void *context, struct ml_controller *controller)
{
    struct entry *entry = context;
    const struct ml_declaration *declaration = ml_controller_current(controller)->declaration;
    const struct ml_live_revision live = {
        .controller = declaration->name,
        .revision = declaration->revision,
        .file = declaration->file,
        .version = entry->live_from,
        .way = entry->way,
        .files = &entry->live_files,
    };
    entry->is_settled = true;
    ml_files_fini(&entry->before);
    if (entry->stopped && strcmp(entry->stopped, declaration->revision) == 0)
        entry_keep_stop(entry, NULL, NULL);
    if (entry->source->history && entry->live_files.count > 0)
        ml_history_keep(entry->source->history, &live);
}

/* The files of the source are loaded again. */
static void entry_look_again(struct entry *entry)
{
    entry->refused = 0;
    if (entry->source->class->again)
        entry->source->class->again(entry->source);
}

/* The version that is live: an older one that the source names, or one that runs again. */
static void entry_tell_live(const struct entry *entry, const struct ml_controller *controller,
                            bool first)
{
    const struct ml_source *source = entry->source;
    const struct ml_revision *revision = ml_controller_current(controller);
    bool is_older = entry->fingerprint == 0;
    ML_AUTO_FREE char *note = ml_asprintf(
        "%s: controller %s runs %s, revision %s%s", entry->file, ml_controller_name(controller),
        is_older ? "an older version" : "the new version", revision->declaration->revision,
        entry->rolled_back ? ", as " ML_ROLLBACK_ANNOTATION " says, until the script is edited"
                           : "");
    ml_info(source->scripts->services->log, "scripts",
            entry->rolled_back ? "older version is live, as its source says"
            : first            ? "script is live"
            : is_older         ? "the version before is live again"
                               : "new version is live",
            ML_S("controller", ml_controller_name(controller)), ML_S("source", source->name),
            ML_S(entry->live_from ? "resourceVersion" : "", entry->live_from),
            ML_REVISION_FIELDS(revision));
    source_report(entry->source, false, entry->rolled_back ? "RolledBack" : "ScriptLoaded", note);
}

static void entry_on_live(void *context, struct ml_controller *controller, bool first)
{
    struct entry *entry = context;
    struct ml_scripts *self = entry->source->scripts;
    if (controller == entry->successor) {
        if (entry->controller) /* it was not removed meanwhile */
            entry_drain(entry, entry->controller, !takes_over(controller, entry->controller));
        entry->controller = ml_take(&entry->successor);
        free(ml_take(&entry->removed));
    }
    free(entry->live_from);
    entry->live_from = ml_strdup(entry->offered_from);
    entry->live_fingerprint = entry->fingerprint;
    entry->is_settled = false;
    entry->live_set = entry->offered_set;
    entry->live_text = entry->offered_text;
    ml_files_fini(&entry->live_files);
    entry->live_files = entry->offered_files;
    entry->offered_files = ML_FILES_INIT;
    entry->way = entry->rolled_back        ? "rollback"
                 : first                   ? "start"
                 : entry->fingerprint == 0 ? "return"
                                           : "edit";
    ml_metric_add(ml_metric_with(self->loads, ml_metric_labels(ml_controller_name(controller))), 1);
    entry_tell_live(entry, controller, first);
    if (entry->awaits_before) {
        entry->awaits_before = false;
        entry_look_again(entry);
    }
    if (self->live)
        self->live(self->live_context);
}

static void entry_on_circuit(void *context, struct ml_controller *controller, bool open,
                             const char *note)
{
    struct entry *entry = context;
    if (controller == entry->controller)
        source_report(entry->source, open, open ? "CircuitOpen" : "CircuitClosed", note);
}

static void entry_on_stopped(void *context, struct ml_controller *controller)
{
    struct entry *entry = context;
    struct ml_scripts *self = entry->source->scripts;
    for (size_t i = 0; i < self->draining_count; i++) {
        if (self->draining[i] != controller)
            continue;
        self->draining[i] = self->draining[--self->draining_count];
        ml_controller_free(controller);
        if (--entry->draining == 0 && entry->dead)
            entry_free(entry);
        break;
    }
    if (--self->running == 0 && self->stopping)
        ml_task_defer(&self->stopped_task, self->services->loop);
}

/* Of ml_load_opts: those that were live, newest first, then the one of the last good set. */
static bool source_find_older(void *context, struct ml_str file, size_t n, struct ml_files *out)
{
    const struct ml_source *self = context;
    const struct entry *entry = entry_find(self, file);
    if (entry && entry_script(entry)) /* a version runs, or is about to */
        return false;
    return (self->history && ml_history_read_newest(self->history, file, &n, out)) ||
           (n == 0 && ml_last_good_read(self->last_good, out));
}

static struct ml_load_opts source_load_opts(struct ml_source *self)
{
    return (struct ml_load_opts){
        .services = self->scripts->services,
        .limits = &self->limits,
        .marker = self->scripts->marker,
        .older = source_find_older,
        .context = self,
    };
}

static void entry_offer(struct entry *entry, struct ml_script *script, const struct ml_load *load,
                        const struct ml_files *files);

/* An older version runs in place of the one that is refused. Takes over the reference. */
static void entry_offer_older(struct entry *entry, struct ml_script *script)
{
    uint64_t refused = entry->refused;
    struct ml_err why = entry->why;
    bool held = entry->held, tests_failed = entry->tests_failed;
    entry_offer(entry, script, NULL, NULL);
    entry->refused = refused;
    entry->why = why;
    entry->held = held;
    entry->tests_failed = tests_failed;
    entry_show_refused(entry, true);
}

/* The offered version is refused, or `held`. An older one takes its place, if none runs. */
static void entry_refuse_offered(struct entry *entry, struct ml_controller *controller,
                                 const struct ml_err *problem, bool held)
{
    const struct ml_load_opts opts = source_load_opts(entry->source);
    struct ml_text_check *check = ml_take(&entry->check); /* goes on */
    if (controller == entry->successor)
        entry_drop_successor(entry);
    else
        ml_controller_withdraw(controller);
    struct ml_script *older = ml_load_older(&opts, ml_str_of(entry->file));
    if (held)
        entry_hold(entry, problem, false);
    else
        entry_refuse(entry, problem, false, older);
    entry->fingerprint = entry->live_fingerprint;
    entry->refused = entry->offered_set;
    entry->refused_text = entry->offered_text;
    if (older)
        entry_offer_older(entry, older);
    entry->check = check;
}

/* ---- the guard (guard.h) ---- */

/* The files of the version that runs; or, before one does, of the one that ran last. The caller
 * frees them. False: none is known. */
static bool entry_baseline(const struct entry *entry, struct ml_files *out)
{
    const struct ml_history *history = entry->source->history;
    size_t newest = 0;
    if (entry->live_files.count > 0) {
        ml_files_copy(out, &entry->live_files);
        return true;
    }
    if (!history)
        return false;
    if (!entry_works(entry))
        return ml_history_read_newest(history, ml_str_of(entry->file), &newest, out);
    const struct ml_declaration *live = ml_controller_current(entry->controller)->declaration;
    return ml_history_read(history, ml_str_of(live->name), ml_str_of(live->revision), out);
}

/* How the version after one of that declaration takes over. */
static struct ml_rollout entry_rollout(const struct entry *entry, const struct ml_declaration *runs)
{
    return ml_guard_rollout(runs, entry->source->mode, &entry->source->scripts->guard);
}

/* May the newest version, which is offered, have to pass it? An older one runs because somebody
 * said so, or because nothing else can; a renamed controller has no predecessor. Before anything
 * runs, only the kept revision that ran last knows. */
static bool entry_may_be_guarded(const struct entry *entry, const struct ml_controller *controller)
{
    const struct ml_scripts *self = entry->source->scripts;
    const struct ml_revision *offered = ml_controller_offered(controller);
    const struct ml_revision *runs = ml_controller_current(controller);
    if (self->guard.rollout.mode == ML_ROLLOUT_UNSET ||
        (runs && entry_rollout(entry, runs->declaration).mode == ML_ROLLOUT_IMMEDIATE))
        return false;
    return offered && controller == entry->controller && entry->fingerprint != 0 &&
           entry->offered_files.count > 0 &&
           !list_has(entry->source->approved, offered->declaration->revision);
}

/* Was the offered version stopped before, in this process or in another? */
static bool entry_was_stopped(const struct entry *entry, const struct ml_controller *controller,
                              struct ml_err *why)
{
    ML_AUTO(ml_buf_fini) struct ml_buf text = ML_BUF_INIT;
    const struct ml_revision *offered = ml_controller_offered(controller);
    const struct ml_history *history = entry->source->history;
    if (!entry_may_be_guarded(entry, controller))
        return false;
    if (entry->stopped && strcmp(entry->stopped, offered->declaration->revision) == 0) {
        *why = *entry->stopped_why;
        return true;
    }
    if (!history || !ml_history_is_stopped(history, ml_str_of(ml_controller_name(controller)),
                                           ml_str_of(offered->declaration->revision), &text))
        return false;
    ml_err_set(why, ML_ESCRIPT, "%s", ml_buf_cstr(&text));
    return true;
}

/* Step by step, the version before has to work for the other objects: it runs first, as it did
 * before this process began, and the newest one is loaded again after that. False: it runs. */
static bool entry_begin_before(struct entry *entry, const struct ml_rollout *limits)
{
    ML_AUTO(ml_files_fini) struct ml_files files = ML_FILES_INIT;
    const struct ml_load_opts opts = source_load_opts(entry->source);
    struct ml_err err = ML_ERR_INIT;
    if (limits->mode != ML_ROLLOUT_CANARY || entry_works(entry) || !entry->source->class->again)
        return false;
    ml_files_copy(&files, &entry->planned_over);
    struct ml_script *older = ml_load_kept(&opts, &files, &err);
    if (!older)
        return false;
    entry_offer(entry, older, NULL, &files);
    entry->awaits_before = true;
    return true;
}

/* The offered version takes over under a brake. */
static void entry_try(struct entry *entry, const struct ml_brake *brake)
{
    if (entry->before.count == 0) {
        entry->before = entry->planned_over;
        entry->planned_over = ML_FILES_INIT;
    }
    ml_controller_promote(entry->controller, brake);
}

static void entry_on_planned(void *context)
{
    struct entry *entry = context;
    struct ml_plan *plan = ml_take(&entry->plan);
    struct ml_err why = ML_ERR_INIT;
    const struct ml_rollout limits = entry_rollout(entry, ml_plan_predecessor(plan));
    enum ml_guard_verdict verdict = ml_guard_judge(plan, &limits, &why);
    const struct ml_brake brake = ml_brake_of(plan, &limits);
    ml_plan_free(plan);
    if (!entry_may_be_guarded(entry, entry->controller)) /* somebody has let it go meanwhile */
        ml_controller_promote(entry->controller, NULL);
    else if (verdict != ML_GUARD_PASSES)
        entry_refuse_offered(entry, entry->controller, &why, verdict == ML_GUARD_HOLDS);
    else if (!entry_begin_before(entry, &limits))
        entry_try(entry, &brake);
    ml_files_fini(&entry->planned_over);
}

/* The version before runs again: from its files, or as kept. */
static void entry_go_back(struct entry *entry)
{
    ML_AUTO(ml_files_fini) struct ml_files files = ML_FILES_INIT;
    const struct ml_load_opts opts = source_load_opts(entry->source);
    struct ml_err err = ML_ERR_INIT;
    uint64_t refused = entry->refused, text = entry->refused_text;
    struct ml_err why = entry->why;
    ml_files_copy(&files, &entry->before);
    struct ml_script *older = files.count > 0 ? ml_load_kept(&opts, &files, &err)
                                              : ml_load_older(&opts, ml_str_of(entry->file));
    if (older)
        entry_offer(entry, older, NULL, files.count > 0 ? &files : NULL);
    else
        ml_error(entry->source->scripts->services->log, "scripts",
                 "the version before cannot be loaded; nothing runs until the script is edited",
                 ML_S("source", entry->source->name), ML_S("script", entry->file),
                 ML_S(err.kind ? "error" : "", err.message));
    entry->refused = refused;
    entry->refused_text = text;
    entry->held = true;
    entry->why = why;
    entry_show_refused(entry, true);
}

/* A revision was stopped, by the brake or in another process. If it was live, nothing runs now. */
static void entry_follow_stop(struct entry *entry, struct ml_controller *controller,
                              const char *revision, const struct ml_err *why)
{
    bool was_live = !ml_controller_current(controller);
    bool is_newest = !ml_controller_offered(controller);
    if (is_newest)
        entry_cancel_check(entry);
    entry_keep_stop(entry, revision, why);
    entry_hold(entry, why, true);
    if (!is_newest) { /* another one is about to be live, and is not held */
        entry->held = false;
        entry->why = ML_ERR_INIT;
        entry_show_refused(entry, false);
        return;
    }
    entry->refused = was_live ? entry->live_set : entry->offered_set;
    entry->refused_text = was_live ? entry->live_text : entry->offered_text;
    entry->fingerprint = entry->live_fingerprint;
    if (was_live || !entry->is_settled) /* the way back is to one that was good */
        entry_go_back(entry);
}

static void entry_on_braked(void *context, struct ml_controller *controller, const char *revision,
                            const struct ml_err *why)
{
    struct entry *entry = context;
    const char *version = ml_controller_current(controller) ? entry->offered_from
                                                            : entry->live_from;
    if (entry->source->history)
        ml_history_stop(entry->source->history, ml_controller_name(controller), revision, version,
                        why->message);
    entry_follow_stop(entry, controller, revision, why);
}

/* False: there is nothing to compare with. */
static bool entry_begin_plan(struct entry *entry)
{
    ML_AUTO(ml_files_fini) struct ml_files runs = ML_FILES_INIT;
    struct ml_scripts *self = entry->source->scripts;
    struct ml_err err = ML_ERR_INIT;
    if (!entry_baseline(entry, &runs) || ml_files_same(&runs, &entry->offered_files))
        return false;
    const struct ml_plan_opts opts = {
        .services = self->services,
        .limits = &self->limits,
        .marker = self->marker,
        .files = &entry->offered_files,
        .runs = &runs,
        .objects_max = (size_t)self->guard.sample,
        .reads_max = ML_GUARD_READS_MAX,
        .done = entry_on_planned,
        .context = entry,
    };
    if (ml_plan_new(&opts, &entry->plan, &err) == 0) {
        ml_files_fini(&entry->planned_over);
        ml_files_copy(&entry->planned_over, &runs);
        if (entry_rollout(entry, ml_plan_predecessor(entry->plan)).mode != ML_ROLLOUT_IMMEDIATE)
            return true;
        ml_plan_free(ml_take(&entry->plan));
        return false;
    }
    ml_warn(self->services->log, "scripts", "no plan of the new version; it goes live without one",
            ML_S("source", entry->source->name), ML_ERR_FIELDS(&err), ML_S("script", entry->file));
    return false;
}

/* Its plan is the last step before it takes over. */
static void entry_pass(struct entry *entry, struct ml_controller *controller)
{
    struct ml_err why = ML_ERR_INIT;
    if (entry_was_stopped(entry, controller, &why))
        entry_refuse_offered(entry, controller, &why, true);
    else if (!entry_may_be_guarded(entry, controller) || !entry_begin_plan(entry))
        ml_controller_promote(controller, NULL);
}

/* ---- its own tests (own_tests.h) ---- */

static void entry_on_tested(void *context, enum ml_tests_outcome outcome, const struct ml_err *err)
{
    struct entry *entry = context;
    const struct ml_source *source = entry->source;
    struct ml_log *log = source->scripts->services->log;
    struct ml_controller *controller = ml_take(&entry->tested);
    entry->tests = NULL;
    if (outcome == ML_TESTS_FAIL) {
        entry_refuse_offered(entry, controller, err, false);
        entry->tests_failed = true;
        return;
    }
    if (outcome == ML_TESTS_PASS)
        ml_info(log, "scripts", "the new version passes its own tests",
                ML_S("source", source->name), ML_S("script", entry->file));
    else
        ml_warn(log, "scripts", "the tests of a script were not run; it goes live without them",
                ML_S("source", source->name), ML_ERR_FIELDS(err), ML_S("script", entry->file));
    entry_pass(entry, controller);
}

/* Does the newest version, which is offered, have to pass its own tests? A folder's revisions are
 * not kept: which version ran before the process is not known, and that one needs no test. */
static bool entry_has_to_pass_tests(const struct entry *entry)
{
    return entry->source->scripts->tester && entry->source->tests_seen && entry->fingerprint != 0 &&
           entry->offered_files.count > 0 && !entry->is_first_of_folder;
}

/* False: there is nothing to test, or it is the version that ran before. */
static bool entry_begin_tests(struct entry *entry, struct ml_controller *controller)
{
    ML_AUTO(ml_files_fini) struct ml_files runs = ML_FILES_INIT;
    const struct ml_source *source = entry->source;
    if (entry_baseline(entry, &runs) && ml_files_same(&runs, &entry->offered_files))
        return false;
    const struct ml_own_tests_opts opts = {
        .services = source->scripts->services,
        .tester = source->scripts->tester,
        .declaration = ml_controller_offered(controller)->declaration,
        .version = &entry->offered_files,
        .scripts = &source->scripts_seen,
        .tests = &source->tests,
        .folder = source->folder,
        .done = entry_on_tested,
        .context = entry,
    };
    entry->tests = ml_own_tests_new(&opts);
    entry->tested = entry->tests ? controller : NULL;
    return entry->tests;
}

/* The offered version is ready, and its names are checked. */
static void entry_take_over(struct entry *entry, struct ml_controller *controller)
{
    const struct ml_history *history = entry->source->history;
    bool is_tested = entry_has_to_pass_tests(entry);
    entry_cancel_tests(entry);
    entry_cancel_plan(entry);
    entry->awaits_baseline = (is_tested || entry_may_be_guarded(entry, controller)) &&
                             controller == entry->controller && !entry_works(entry) && history &&
                             !ml_history_is_known(history);
    if (entry->awaits_baseline)
        ml_timer_start(&entry->baseline_late, BASELINE_NS);
    else if (!is_tested || !entry_begin_tests(entry, controller))
        entry_pass(entry, controller);
}

/* The right to read them may be missing: a process that ran nothing for that would be worse. */
static void entry_on_baseline_late(void *context)
{
    struct entry *entry = context;
    ml_warn(entry->source->scripts->services->log, "scripts",
            "the kept revisions cannot be read; the script goes live without a plan",
            ML_S("source", entry->source->name), ML_S("script", entry->file));
    entry_cancel_plan(entry);
    if (!entry_has_to_pass_tests(entry) || !entry_begin_tests(entry, entry->controller))
        ml_controller_promote(entry->controller, NULL);
}

/* A fingerprint of all tests, also of those that cannot be read; 0: there are none. */
static uint64_t source_tests_fingerprint(const struct ml_source *self)
{
    if (self->tests_trouble.kind)
        return ml_str_hash(ml_str_of(self->tests_trouble.message)) | 1;
    if (self->tests.count + self->tests.refused_count == 0)
        return 0;
    uint64_t print = ml_files_fingerprint(&self->tests, NULL);
    for (size_t i = 0; i < self->tests.refused_count; i++)
        print = print * 31 + ml_str_hash(ml_str_of(self->tests.refused[i].err.message));
    return print | 1;
}

static void source_tell_of_tests(const struct ml_source *self)
{
    struct ml_scripts *scripts = self->scripts;
    if (self->tests_trouble.kind)
        ml_warn(scripts->services->log, "scripts", "the tests beside the scripts are not run",
                ML_S("source", self->name), ML_ERR(&self->tests_trouble));
    if (self->tests_seen && !scripts->tester && !scripts->told_of_tests) {
        scripts->told_of_tests = true;
        ml_info(scripts->services->log, "scripts",
                "tests beside the scripts are not run: only the development binary can",
                ML_S("source", self->name));
    }
}

/* With other tests, a version that is not live yet is tested once more; so is one that has failed.
 * Nothing happens to those that are live. True: files have to be loaded again. */
static bool source_follow_tests(struct ml_source *self, const struct ml_files *files)
{
    uint64_t print = source_tests_fingerprint(self);
    bool has_failed = false;
    ml_files_fini(&self->scripts_seen);
    if (print && self->scripts->tester)
        ml_files_copy(&self->scripts_seen, files);
    if (!self->scripts->tester)
        ml_files_fini(&self->tests);
    if (print == self->tests_seen)
        return false;
    self->tests_seen = print;
    source_tell_of_tests(self);
    ml_list_each_entry (struct entry, entry, &self->scripts->entries) {
        if (entry->source != self)
            continue;
        if (entry->tests || entry->plan)
            entry_take_over(entry, entry->tests ? entry->tested : entry->controller);
        if (!entry->refused || !entry->tests_failed)
            continue;
        entry->refused = 0;
        has_failed = true;
    }
    return has_failed;
}

static void source_try_held(struct ml_source *self)
{
    ml_list_each_entry (struct entry, entry, &self->scripts->entries)
        if (entry->source == self && entry->held)
            entry->refused = 0;
}

/* A version on trial that somebody lets go needs no more of it. */
static void source_settle_approved(const struct ml_source *self)
{
    ml_list_each_entry (struct entry, entry, &self->scripts->entries) {
        size_t tried;
        const struct ml_revision *revision = entry->source == self && entry->controller
                                                 ? ml_controller_on_trial(entry->controller, &tried)
                                                 : NULL;
        if (revision && list_has(self->approved, revision->declaration->revision))
            ml_controller_settle(entry->controller);
    }
}

/* Versions that are held may have been approved. True: the annotation has changed. */
static bool source_follow_approval(struct ml_source *self)
{
    const char *is = self->approved ? self->approved : "";
    if (strcmp(is, self->approvals_seen ? self->approvals_seen : "") == 0)
        return false;
    free(self->approvals_seen);
    self->approvals_seen = ml_strdup(is);
    source_try_held(self);
    source_settle_approved(self);
    return true;
}

/* Versions that are held may go live now. A word that is not known guards: it may stand for less
 * harm, not for more. True: the annotation has changed. */
static bool source_follow_rollout(struct ml_source *self)
{
    const char *is = self->rollout ? self->rollout : "";
    if (strcmp(is, self->rollout_seen ? self->rollout_seen : "") == 0)
        return false;
    source_try_held(self);
    free(self->rollout_seen);
    self->rollout_seen = ml_strdup(is);
    self->mode = ML_ROLLOUT_UNSET;
    if (!*is || ml_rollout_mode_parse(ml_str_of(is), &self->mode))
        return true;
    self->mode = ML_ROLLOUT_GUARDED;
    ML_AUTO_FREE char *note = ml_asprintf(
        ML_ROLLOUT_ANNOTATION ": expected " ML_ROLLOUT_MODES ", got '%s'; new versions are guarded",
        is);
    ml_warn(self->scripts->services->log, "scripts", "the annotation for the rollout is not known",
            ML_S("source", self->name), ML_S("error", note));
    source_report(self, true, "RolloutUnknown", note);
    return true;
}

static void entry_on_checked(void *context, const struct ml_err *problem)
{
    struct entry *entry = context;
    struct ml_controller *controller = ml_take(&entry->checked);
    if (problem && !entry->source->allows_unknown_names) {
        entry_refuse_offered(entry, controller, problem, false);
        return;
    }
    if (problem) {
        ml_warn(entry->source->scripts->services->log, "scripts",
                "the script has names that do not exist; its source allows them",
                ML_S("source", entry->source->name), ML_ERR_FIELDS(problem));
        entry_cancel_check(entry);
    }
    entry->check = NULL;
    if (!controller)
        entry_look_again(entry);
    else if (entry->is_ready)
        entry_take_over(entry, controller);
}

/* It takes over when its names are checked, and its plan does no harm. */
static void entry_on_ready(void *context, struct ml_controller *controller)
{
    struct entry *entry = context;
    entry->is_ready = true;
    if (entry->check && entry->checked == controller)
        ml_text_check_kinds_exist(entry->check);
    else
        entry_take_over(entry, controller);
}

static const struct ml_controller_handler controller_handler = {
    .ready = entry_on_ready,
    .live = entry_on_live,
    .settled = entry_on_settled,
    .braked = entry_on_braked,
    .circuit = entry_on_circuit,
    .removed = entry_on_removed,
    .stopped = entry_on_stopped,
};

static struct ml_controller *entry_new_controller(struct entry *entry, const char *name)
{
    struct ml_scripts *self = entry->source->scripts;
    self->running++;
    (void)ml_metric_with(self->loads, ml_metric_labels(name));
    struct ml_controller *controller = ml_controller_new(self->services, name, &controller_handler,
                                                         entry);
    entry_pause(entry, controller);
    return controller;
}

/* Names of the controllers that keep running without a file: "a, b, c". Returns how many. */
static size_t scripts_list_without_file(const struct ml_scripts *self, struct ml_buf *names)
{
    size_t count = 0;
    ml_list_each_entry (const struct entry, entry, &self->entries) {
        if (!entry->controller || entry->removed ||
            (!entry->missing && !entry->source->trouble.kind))
            continue;
        ml_buf_printf(names, "%s%s", count++ ? ", " : "", ml_controller_name(entry->controller));
    }
    return count;
}

static bool entry_has_room(struct entry *entry, struct ml_err *err)
{
    ML_AUTO(ml_buf_fini) struct ml_buf names = ML_BUF_INIT;
    if (entry->source->scripts->running < ML_CONTROLLERS_MAX)
        return true;
    scripts_list_without_file(entry->source->scripts, &names);
    ml_err_set(
        err, ML_ELIMIT,
        "%s: the limit of %d controllers is reached; a restart ends those whose file is gone: "
        "%s",
        entry->file, ML_CONTROLLERS_MAX, names.len ? ml_buf_cstr(&names) : "none");
    return false;
}

/* Another file whose controller has a name that the script says was its own, or says that of the
 * script's name, or NULL. Both would take the other's objects. */
static const struct entry *entry_in_formerly(const struct entry *mine,
                                             const struct ml_declaration *declaration)
{
    ml_list_each_entry (const struct entry, entry, &mine->source->scripts->entries) {
        const struct ml_script *script = entry == mine ? NULL : entry_script(entry);
        const struct ml_declaration *other = script ? ml_script_declaration(script) : NULL;
        if (other && (ml_declaration_is_called(declaration, ml_str_of(other->name)) ||
                      ml_declaration_is_called(other, ml_str_of(declaration->name))))
            return entry;
    }
    return NULL;
}

/* Nobody would watch the objects any more that carry the finalizer. */
static bool entry_changes_kind(const struct entry *entry, const struct ml_script *script,
                               struct ml_err *err)
{
    const struct ml_declaration *new = ml_script_declaration(script);
    const struct ml_declaration *old = entry_works(entry)
                                           ? ml_controller_current(entry->controller)->declaration
                                           : NULL;
    if (!old || !old->finalizes || !ml_declaration_is_called(new, ml_str_of(old->name)))
        return false;
    const struct ml_gvk *was = &old->kinds[0].gvk, *is = &new->kinds[0].gvk;
    if (ml_str_eq(was->group, is->group) && ml_str_eq(was->kind, is->kind))
        return false;
    ml_err_set(err, ML_ESCRIPT,
               "%s: controller %s reconciles " ML_STR_FMT " now, and objects of " ML_STR_FMT
               " carry its finalizer %s; give the controller of " ML_STR_FMT " another name",
               entry->file, new->name, ML_STR_ARG(is->kind), ML_STR_ARG(was->kind), old->finalizer,
               ML_STR_ARG(is->kind));
    return true;
}

/* The names in the script, which was loaded from files of `load`, are checked before it takes over.
 * `load` NULL: it is the last good version, and was checked before. */
static void entry_begin_check(struct entry *entry, struct ml_controller *controller,
                              const struct ml_script *script, const struct ml_load *load)
{
    struct ml_source *source = entry->source;
    entry_cancel_check(entry);
    if (!load)
        return;
    entry->checked = controller;
    entry->is_ready = false;
    entry->check = ml_text_check_new(source->scripts->services, &source->scripts->check_account,
                                     &load->files, script, entry_on_checked, entry);
    entry->offered_set = load->fingerprint;
    entry->offered_text = 0;
    for (size_t i = 0; i < load->files.count; i++)
        if (ml_str_is(load->files.files[i].name, entry->file))
            entry->offered_text = ml_str_hash(load->files.files[i].text);
}

/* Takes over the reference to `script`. `load`: it is the newest version, and part of that; NULL:
 * it is an older one. `files`: those that it was loaded from; NULL: the history has them. */
static void entry_offer(struct entry *entry, struct ml_script *script, const struct ml_load *load,
                        const struct ml_files *files)
{
    const char *name = ml_script_declaration(script)->name;
    const struct entry *other = entry_with_name(entry, name);
    const struct entry *former = entry_in_formerly(entry, ml_script_declaration(script));
    bool renamed = entry->controller && !controller_has_name(entry->controller, name);
    if (entry_stays_removed(entry, name)) {
        entry->refused = 0;
        entry->why = ML_ERR_INIT;
        entry_show_refused(entry, false);
        ml_script_unref(script);
        return;
    }
    struct ml_controller **place = renamed ? &entry->successor : &entry->controller;
    struct ml_err err = ML_ERR_INIT;
    if (other)
        ml_err_set(&err, ML_ESCRIPT, "%s: the name \"%s\" is taken by %s of %s", entry->file, name,
                   other->file, other->source->name);
    else if (former)
        ml_err_set(&err, ML_ESCRIPT,
                   "%s: formerly: controllers \"%s\" and \"%s\" of %s would be one, and both are "
                   "loaded; end one of them, or take its name out of formerly",
                   entry->file, name, ml_script_declaration(entry_script(former))->name,
                   former->file);
    else if (scripts_remove_name(entry->source->scripts, name))
        ml_err_set(&err, ML_ESCRIPT,
                   "%s: controller %s is being removed; this script is loaded after that",
                   entry->file, name);
    if (err.kind || entry_changes_kind(entry, script, &err) ||
        (!*place && !entry_has_room(entry, &err))) {
        entry_refuse(entry, &err, false, NULL);
        ml_script_unref(script);
        return;
    }
    entry->fingerprint = load ? ml_files_fingerprint(&load->files, script) : 0;
    entry->is_first_of_folder = load && !entry->source->loaded && !entry->source->history;
    entry->rolled_back = 0;
    entry->refused = 0;
    entry->held = entry->tests_failed = false;
    entry->why = ML_ERR_INIT;
    entry_show_refused(entry, false);
    entry_drop_successor(entry);
    entry_cancel_tests(entry);
    entry_cancel_plan(entry);
    if (!*place)
        *place = entry_new_controller(entry, name);
    entry_begin_check(entry, *place, script, load);
    ml_files_fini(&entry->offered_files);
    if (files)
        ml_files_copy_loaded(&entry->offered_files, files, script);
    free(entry->offered_from);
    entry->offered_from = load ? ml_strdup(entry->source->version) : NULL;
    ml_controller_offer(*place, script);
    free(ml_take(&entry->removed));
    if (source_removes(entry->source, name))
        entry_remove(entry);
}

/* ---- an older version in place of the newest, as the source says ---- */

/* Nothing is wrong any more with what its source has. */
static void entry_forget_refused(struct entry *entry)
{
    if (!entry->refused)
        return;
    if (!entry->checked)
        entry_cancel_check(entry);
    entry->refused = 0;
    entry->held = entry->tests_failed = false;
    entry->why = ML_ERR_INIT;
    entry_show_refused(entry, false);
}

static void entry_report_rollback_failed(const struct entry *entry,
                                         const struct ml_rollback *rollback,
                                         const struct ml_err *why)
{
    const struct ml_source *source = entry->source;
    ML_AUTO(ml_buf_fini) struct ml_buf kept = ML_BUF_INIT;
    ml_history_list(source->history, rollback->controller, &kept);
    ML_AUTO_FREE char *note = ml_asprintf(
        ML_ROLLBACK_ANNOTATION ": revision " ML_STR_FMT " of controller " ML_STR_FMT
                               " does not run: %s; %s" ML_HISTORY_SUFFIX " has these: %s",
        ML_STR_ARG(rollback->revision), ML_STR_ARG(rollback->controller), why->message,
        source->name, ml_buf_cstr(&kept));
    ml_warn(source->scripts->services->log, "scripts", "no rollback to that revision",
            ML_STR_FIELD("controller", rollback->controller), ML_S("source", source->name),
            ML_S("script", entry->file), ML_S("error", note));
    source_report(entry->source, true, "RollbackFailed", note);
}

/* NULL: it is not kept, or cannot be loaded; that is reported. */
static struct ml_script *entry_load_rollback(const struct entry *entry,
                                             const struct ml_rollback *rollback,
                                             struct ml_files *files)
{
    struct ml_source *source = entry->source;
    const struct ml_load_opts opts = source_load_opts(source);
    struct ml_err err = ML_ERR_INIT;
    struct ml_script *script = NULL;
    if (ml_history_read(source->history, rollback->controller, rollback->revision, files))
        script = ml_load_kept(&opts, files, &err);
    else
        ml_err_set(&err, ML_ENOT_FOUND, "it is not kept");
    if (!script)
        entry_report_rollback_failed(entry, rollback, &err);
    return script;
}

/* It must not run meanwhile: the person who asked for an older version does not want this one. */
static void entry_await_history(struct entry *entry)
{
    if (entry->awaits_history)
        return;
    entry->awaits_history = true;
    ml_err_set(&entry->why, ML_EUNAVAILABLE,
               "%s: " ML_ROLLBACK_ANNOTATION " names a revision, and %s" ML_HISTORY_SUFFIX
               " has not been read yet",
               entry->file, entry->source->name);
    ml_info(entry->source->scripts->services->log, "scripts", "waiting for the kept revisions",
            ML_S("source", entry->source->name), ML_S("script", entry->file), ML_ERR(&entry->why));
}

static bool runs_revision(const struct entry *entry, struct ml_str revision)
{
    const struct ml_script *script = entry_script(entry);
    return script && ml_str_is(revision, ml_script_declaration(script)->revision);
}

/* There is no rollback to the revision that its source names: the version that runs goes on, or the
 * one that did before this process began. False: there is none. */
static bool entry_stay(struct entry *entry, const struct ml_script *newest,
                       const struct ml_load *load)
{
    struct ml_script *before = entry_script(entry)
                                   ? NULL
                                   : ml_load_older(&load->opts, ml_str_of(entry->file));
    if (before)
        entry_offer(entry, before, NULL, NULL);
    if (runs_revision(entry, ml_str_of(ml_script_declaration(newest)->revision)))
        entry->fingerprint = ml_files_fingerprint(&load->files, newest);
    else
        entry->rolled_back = load->fingerprint;
    return entry_script(entry);
}

/* True: `script`, the newest version, is not to be offered: its source says that an older one runs
 * in its place. */
static bool entry_roll_back(struct entry *entry, const struct ml_script *script,
                            const struct ml_load *load)
{
    ML_AUTO(ml_files_fini) struct ml_files files = ML_FILES_INIT;
    const struct ml_source *source = entry->source;
    const struct ml_declaration *newest = ml_script_declaration(script);
    struct ml_rollback rollback;
    bool is_wanted = source->history &&
                     ml_rollback_find(source->rollback, ml_str_of(newest->name), &rollback) &&
                     ml_str_is(rollback.instead_of, newest->revision);
    if (is_wanted && !ml_history_is_known(source->history)) {
        entry_await_history(entry);
        return true;
    }
    entry->awaits_history = false;
    if (!is_wanted)
        return false;
    if (!runs_revision(entry, rollback.revision)) {
        struct ml_script *older = entry_load_rollback(entry, &rollback, &files);
        if (!older)
            return entry_stay(entry, script, load);
        entry_offer(entry, older, NULL, &files);
    }
    entry_forget_refused(entry);
    entry->rolled_back = load->fingerprint;
    return true;
}

/* The annotation has changed. Versions that it was about, or is about now, are loaded again. */
static void entry_follow_rollback(struct entry *entry)
{
    const struct ml_script *runs = entry_script(entry);
    const char *name = runs ? ml_script_declaration(runs)->name : "";
    struct ml_rollback rollback;
    bool is_named = ml_rollback_find(entry->source->rollback, ml_str_of(name), &rollback) &&
                    runs_revision(entry, rollback.instead_of);
    if (entry->rolled_back || entry->awaits_history || is_named)
        entry->fingerprint = entry->rolled_back = 0;
}

static void source_report_bad_rollbacks(struct ml_source *self)
{
    struct ml_str rest = ml_str_of(self->rollback);
    struct ml_rollback rollback;
    struct ml_err err = ML_ERR_INIT;
    for (; ml_rollback_next(&rest, &rollback, &err); err = ML_ERR_INIT) {
        if (!err.kind)
            continue;
        ml_warn(self->scripts->services->log, "scripts", "no rollback to that revision",
                ML_S("source", self->name), ML_ERR(&err));
        source_report(self, true, "RollbackFailed", err.message);
    }
}

/* True: it has changed. */
static bool source_follow_rollback(struct ml_source *self)
{
    const char *is = self->rollback ? self->rollback : "";
    if (strcmp(is, self->rolled_back ? self->rolled_back : "") == 0)
        return false;
    free(self->rolled_back);
    self->rolled_back = ml_strdup(is);
    source_report_bad_rollbacks(self);
    ml_list_each_entry (struct entry, entry, &self->scripts->entries)
        if (entry->source == self)
            entry_follow_rollback(entry);
    return true;
}

/* The kept revisions are known: versions that are refused, or wait for them, may have an older one.
 */
static void source_on_history_known(void *context)
{
    struct ml_source *self = context;
    const struct ml_load_opts opts = source_load_opts(self);
    bool awaits = false;
    ml_list_each_entry (struct entry, entry, &self->scripts->entries) {
        if (entry->source != self)
            continue;
        awaits = awaits || entry->awaits_history;
        if (entry->awaits_baseline)
            entry_take_over(entry, entry->controller);
        struct ml_script *older = entry->refused ? ml_load_older(&opts, ml_str_of(entry->file))
                                                 : NULL;
        if (older)
            entry_offer_older(entry, older);
    }
    if (awaits && self->class->again)
        self->class->again(self);
}

/* Another replica has stopped the revision that runs here, or found that it is good. */
static void entry_follow_history(struct entry *entry)
{
    ML_AUTO(ml_buf_fini) struct ml_buf why = ML_BUF_INIT;
    struct ml_controller *controller = entry->controller;
    const struct ml_source *source = entry->source;
    size_t tried;
    const struct ml_revision *trial = ml_controller_on_trial(controller, &tried);
    const struct ml_revision *revision = trial ? trial : ml_controller_current(controller);
    if (!revision)
        return;
    struct ml_str name = ml_str_of(ml_controller_name(controller));
    struct ml_str is = ml_str_of(revision->declaration->revision);
    struct ml_err err = ML_ERR_INIT;
    bool may_stop = source->scripts->guard.rollout.mode != ML_ROLLOUT_UNSET &&
                    !entry->rolled_back && !list_has(source->approved, is.ptr) &&
                    entry_rollout(entry, NULL).mode != ML_ROLLOUT_IMMEDIATE;
    if (may_stop && ml_history_is_stopped(source->history, name, is, &why)) {
        ML_AUTO_FREE char *stopped = ml_strdup(is.ptr);
        ml_err_set(&err, ML_ESCRIPT, "%s", ml_buf_cstr(&why));
        ml_controller_stop_revision(controller);
        entry_follow_stop(entry, controller, stopped, &err);
    } else if (trial && source->scripts->services->standby &&
               ml_history_is_newest(source->history, name, is)) {
        ml_controller_settle(controller);
    }
}

static void source_on_history_changed(void *context)
{
    struct ml_source *self = context;
    ml_list_each_entry (struct entry, entry, &self->scripts->entries)
        if (entry->source == self && entry->controller)
            entry_follow_history(entry);
}

/* ---- verdicts on the files of a source ---- */

/* A version that runs is not loaded again while the files it was made from are unchanged; one that
 * was refused or rolled back, while the whole set is. `entry` NULL: the file is new. */
static bool entry_knows(const struct entry *entry, const struct ml_load *load,
                        struct ml_load_verdict *out)
{
    struct ml_script *script = entry ? entry_script(entry) : NULL;
    *out = (struct ml_load_verdict){.outcome = ML_LOAD_UNCHANGED, .err = ML_ERR_INIT};
    if (entry && entry->refused && entry->refused == load->fingerprint) {
        out->outcome = ML_LOAD_REFUSED;
        out->err = entry->why;
        return true;
    }
    bool is_rolled_back = script && entry->rolled_back && entry->rolled_back == load->fingerprint;
    if (!is_rolled_back &&
        (!script || ml_files_fingerprint(&load->files, script) != entry->fingerprint))
        return false;
    out->script = ml_script_ref(script);
    return true;
}

static void source_follow_verdict(struct ml_source *self, const struct ml_load *load, size_t index)
{
    const struct ml_script_file *file = &load->files.files[index];
    const struct ml_load_verdict *verdict = &load->verdicts[index];
    if (verdict->outcome == ML_LOAD_MODULE) {
        entry_free_unless_controller(entry_find(self, file->name));
        return;
    }
    struct entry *entry = entry_get(self, file->name);
    entry->missing = false;
    if (verdict->outcome == ML_LOAD_UNCHANGED) {
        entry_forget_refused(entry);
        return;
    }
    if (verdict->err.kind && entry->refused != load->fingerprint)
        entry_refuse(entry, &verdict->err, verdict->quarantined, verdict->script);
    bool is_newest = !verdict->err.kind;
    bool is_controller = verdict->outcome == ML_LOAD_CONTROLLER;
    if (is_controller && !(is_newest && entry_roll_back(entry, verdict->script, load)))
        entry_offer(entry, ml_script_ref(verdict->script), is_newest ? load : NULL,
                    is_newest ? &load->files : NULL);
    if (is_newest)
        return;
    entry->why = verdict->err;
    entry_show_refused(entry, true);
    if (verdict->quarantined && verdict->script) /* only an edit of it has it loaded again */
        return;
    entry->refused = load->fingerprint;
    entry->refused_text = ml_str_hash(file->text);
}

/* Reported again only when something else is wrong with the file. */
static void source_refuse_file(struct ml_source *source, const struct ml_file_refused *refused)
{
    struct entry *entry = entry_get(source, ml_str_of(refused->name));
    uint64_t fingerprint = ml_str_hash(ml_str_of(refused->err.message));
    entry->missing = false;
    if (entry->refused != fingerprint)
        entry_refuse(entry, &refused->err, false, NULL);
    entry->refused = fingerprint;
}

static void source_report_missing(struct ml_source *source, const struct ml_files *files)
{
    ml_list_each_entry (struct entry, entry, &source->scripts->entries) {
        if (entry->source != source || entry->missing || ml_files_have(files, entry->file))
            continue;
        struct ml_err err;
        entry->missing = true;
        if (!entry->controller) { /* a file that was refused is gone: nothing is wrong any more */
            ml_info(source->scripts->services->log, "scripts", "a script that never ran is gone",
                    ML_S("source", source->name), ML_S("script", entry->file));
            entry_free(entry);
            continue;
        }
        ml_err_set(&err, ML_ENOT_FOUND, "%s: is no longer in %s", entry->file, source->name);
        entry_refuse(entry, &err, false, NULL);
    }
}

/* ---- controllers that the source wants removed ---- */

/* Its kind is only known from its script. */
static void source_report_unknown(struct ml_source *source, struct ml_str name)
{
    ML_AUTO_FREE char *note = ml_asprintf(
        "moonloop.dev/remove: no script here has the controller '" ML_STR_FMT
        "'; put its script back to have its finalizers taken off",
        ML_STR_ARG(name));
    ml_warn(source->scripts->services->log, "scripts", "no such controller to remove",
            ML_S("source", source->name), ML_S("error", note));
    source_report(source, true, "ControllerUnknown", note);
}

static void source_check_names(struct ml_source *source)
{
    struct ml_str names = ml_str_of(source->removed);
    uint64_t hash = names.len > 0 ? ml_str_hash(names) : 0;
    if (hash == source->removals_told)
        return;
    source->removals_told = hash;
    for (struct ml_str rest = names; rest.ptr;) {
        struct ml_str name = ml_str_trim(ml_str_cut(&rest, ','));
        if (name.len > 0 && !source_knows_controller(source, name))
            source_report_unknown(source, name);
    }
}

static bool entry_is_orphan(const struct entry *entry)
{
    return entry->missing && entry->controller && entry->source->removes_missing;
}

/* A set was loaded, or there is none: removes the controllers that its source wants removed. The
 * annotation moonloop.dev/remove of a ConfigMap names them; in `moonloop dev` a file that is gone
 * does. */
static void source_remove_controllers(struct ml_source *source)
{
    ml_list_each_entry (struct entry, entry, &source->scripts->entries) {
        if (entry->source != source || !entry->controller)
            continue;
        if (source_removes(source, ml_controller_name(entry->controller)))
            entry_remove(entry);
        else if (entry_is_orphan(entry) && !ml_timer_active(&source->missing))
            ml_timer_start(&source->missing, MISSING_NS);
    }
    source_check_names(source);
}

/* A controller that was never live is dropped at once. */
static void source_remove_missing(void *context)
{
    struct ml_source *source = context;
    ml_list_each_entry (struct entry, entry, &source->scripts->entries) {
        if (entry->source != source || !entry_is_orphan(entry))
            continue;
        if (ml_controller_current(entry->controller))
            entry_remove(entry);
        else
            entry_on_removed(entry, entry->controller, 0);
    }
}

static void show_controllers_without_file(const struct ml_scripts *self)
{
    ML_AUTO(ml_buf_fini) struct ml_buf names = ML_BUF_INIT;
    ml_metric_set(self->without_file, (double)scripts_list_without_file(self, &names));
}

/* ---- the last good set ---- */

/* Every file of the source runs in its newest version, and this process reconciles. */
static bool source_works(void *context)
{
    const struct ml_source *source = context;
    const struct ml_scripts *self = source->scripts;
    size_t tried;
    if (self->services->standby)
        return false;
    ml_list_each_entry (const struct entry, entry, &self->entries)
        if (entry->source == source && !entry->missing && !entry->removed &&
            (!entry_works(entry) || entry->refused || entry->rolled_back || entry->successor ||
             ml_controller_offered(entry->controller) ||
             ml_controller_on_trial(entry->controller, &tried)))
            return false;
    return true;
}

static void source_open_last_good(struct ml_source *source)
{
    const struct ml_scripts *self = source->scripts;
    struct ml_err err;
    if (!self->marker)
        return;
    const struct ml_last_good_opts opts = {
        .loop = self->services->loop,
        .log = self->services->log,
        .folder = ml_crash_marker_folder(self->marker),
        .source = source->name,
        .works = source_works,
        .context = source,
    };
    ml_last_good_open(&opts, &source->last_good, &err);
}

/* Of files that are too large, or cannot be read at all. */
static void source_replace_refused(struct ml_source *self, const struct ml_load *load)
{
    for (size_t i = 0; i < load->files.refused_count; i++) {
        struct ml_str name = ml_str_of(load->files.refused[i].name);
        struct ml_script *older = ml_load_older(&load->opts, name);
        if (older)
            entry_offer_older(entry_get(self, name), older);
    }
}

/* ---- loading, in slices (state/slices.h), so that slow files hold up nobody ---- */

/* A file that was refused and not edited since would most likely be refused again, and may use up
 * the time that is left for loading: it comes last. */
static void source_sort_files(const struct ml_source *self, struct ml_load *load)
{
    ML_AUTO_FREE size_t *late = ml_zalloc(load->order_count * sizeof *late);
    size_t early_count = 0, late_count = 0;
    for (size_t i = 0; i < load->order_count; i++) {
        const struct ml_script_file *file = &load->files.files[load->order[i]];
        const struct entry *entry = entry_find(self, file->name);
        if (entry && entry->refused && entry->refused_text == ml_str_hash(file->text))
            late[late_count++] = load->order[i];
        else
            load->order[early_count++] = load->order[i];
    }
    for (size_t i = 0; i < late_count; i++)
        load->order[early_count + i] = late[i];
}

/* Loads one file, and follows the verdicts that are known without loading. False: it was the last
 * one. */
static bool source_load_next(struct ml_source *self)
{
    struct ml_load *load = self->load;
    for (bool loaded = false; load->next < load->order_count;) {
        size_t index = load->order[load->next];
        struct ml_str name = load->files.files[index].name;
        struct ml_load_verdict verdict;
        bool is_known = entry_knows(entry_find(self, name), load, &verdict) ||
                        ml_load_recall(load, index, self->before, &verdict);
        if (!is_known && loaded)
            return true;
        loaded |= !is_known;
        ml_load_next(load, is_known ? &verdict : NULL);
        if (load->verdicts[index].outcome != ML_LOAD_MODULE)
            source_follow_verdict(self, load, index);
    }
    return false;
}

static void source_end_load(struct ml_source *self, struct ml_load *load)
{
    /* The users of a module are known now. */
    for (size_t i = 0; i < load->files.count; i++)
        if (ml_load_check_module(load, i))
            source_follow_verdict(self, load, i);
    source_replace_refused(self, load);
    ml_last_good_propose(self->last_good, &load->files, ml_load_is_good(load));
    self->loaded = true;
    source_report_missing(self, &load->files);
    source_remove_controllers(self);
    show_controllers_without_file(self->scripts);
}

static void load_free(struct ml_load *load)
{
    if (load)
        ml_load_fini(load);
    free(load);
}

static void source_on_slice(void *context)
{
    struct ml_source *self = context;
    if (source_load_next(self)) {
        ml_slice_wait(&self->slice, &self->cpu_account);
        return;
    }
    struct ml_load *done = ml_take(&self->load);
    load_free(ml_take(&self->before));
    source_end_load(self, done);
    load_free(done);
}

static void source_on_idle(void *context)
{
    (void)context; /* whenever there is something to load, a slice waits */
}

/* The set replaces one that is still being loaded; files that are already loaded and the same in
 * both are kept. `anew`: also when it is the same set. */
static void source_load(struct ml_source *self, const struct ml_files *files, bool anew)
{
    const struct ml_load_opts opts = source_load_opts(self);
    if (self->load && !anew && ml_files_same(&self->load->files, files))
        return;
    if (self->load) {
        load_free(self->before);
        self->before = ml_take(&self->load);
    }
    self->load = ml_new(struct ml_load);
    ml_load_begin(self->load, files, &opts);
    source_sort_files(self, self->load);
    if (!ml_slice_waits(&self->slice))
        ml_slice_wait(&self->slice, &self->cpu_account);
}

/* Files that were refused are loaded again when what is refused is another. */
static void source_note_what_is_allowed(struct ml_source *self)
{
    if (self->allowed_unknown_names == self->allows_unknown_names)
        return;
    self->allowed_unknown_names = self->allows_unknown_names;
    ml_list_each_entry (struct entry, entry, &self->scripts->entries)
        if (entry->source == self)
            entry->refused = 0;
}

void ml_source_notify_files(struct ml_source *self, const struct ml_files *files)
{
    self->read = true;
    if (self->scripts->stopping)
        return;
    self->trouble = ML_ERR_INIT;
    source_follow_pause(self);
    source_follow_retry(self);
    source_note_what_is_allowed(self);
    bool anew = source_follow_approval(self);
    anew = source_follow_rollout(self) || anew;
    anew = source_follow_rollback(self) || anew;
    anew = source_follow_tests(self, files) || anew;
    for (size_t i = 0; i < files->refused_count; i++)
        source_refuse_file(self, &files->refused[i]);
    source_load(self, files, anew);
}

void ml_source_notify_trouble(struct ml_source *self, const struct ml_err *err)
{
    self->trouble = *err;
    source_follow_pause(self);
    ml_error(self->scripts->services->log, "scripts",
             "no scripts to read; running scripts keep running", ML_S("source", self->name),
             ML_ERR(err));
    source_report(self, true, "ScriptsMissing", err->message);
    source_remove_controllers(self);
    show_controllers_without_file(self->scripts);
}

/* It was loaded, and there is no script in it. */
static bool source_is_empty(const struct ml_source *self)
{
    ml_list_each_entry (const struct entry, entry, &self->scripts->entries)
        if (entry->source == self)
            return false;
    return self->loaded;
}

/* False: not yet, and `why` gets a line. */
static bool source_is_loaded(const struct ml_source *self, struct ml_buf *why)
{
    if (self->loaded)
        return true;
    if (self->trouble.kind)
        ml_append_line(why, "%s", self->trouble.message);
    else
        ml_append_line(why, "%s %s", self->name,
                       self->read ? "is being loaded" : "has not been read yet");
    return false;
}

void ml_scripts_add_source(struct ml_scripts *self, struct ml_source *source)
{
    ml_assert(self->source_count < SOURCES_MAX);
    self->source_count++;
    ml_list_push(&self->sources, &source->node);
    source->scripts = self;
    source->trouble = source->tests_trouble = ML_ERR_INIT;
    source->limits = self->limits;
    source->limits.load_account = &source->cpu_account;
    ml_cpu_account_init(&source->cpu_account, self->services->slices, source_on_idle, source);
    ml_slice_init(&source->slice, source_on_slice, source);
    ml_timer_init(&source->missing, self->services->loop, source_remove_missing, source);
    source_open_last_good(source);
}

/* Nothing is loaded any more. */
static void source_stop(struct ml_source *self)
{
    ml_timer_stop(&self->missing);
    ml_slice_cancel(&self->slice);
    load_free(ml_take(&self->load));
    load_free(ml_take(&self->before));
}

static void source_free(struct ml_source *self)
{
    char *name = self->name, *removed = self->removed, *version = self->version;
    char *paused = self->paused, *retry = self->retry, *retried = self->retried;
    char *rollback = self->rollback, *rolled_back = self->rolled_back;
    char *approved = self->approved, *approvals_seen = self->approvals_seen, *folder = self->folder;
    char *rollout = self->rollout, *rollout_seen = self->rollout_seen;
    struct ml_files tests = self->tests, scripts_seen = self->scripts_seen;
    source_stop(self);
    ml_history_free(self->history);
    ml_cpu_account_fini(&self->cpu_account);
    ml_last_good_close(self->last_good);
    self->class->free(self);
    free(name);
    free(removed);
    free(paused);
    free(retry);
    free(retried);
    free(rollback);
    free(rolled_back);
    free(approved);
    free(approvals_seen);
    free(rollout);
    free(rollout_seen);
    free(version);
    free(folder);
    ml_files_fini(&tests);
    ml_files_fini(&scripts_seen);
}

/* ---- all of them ---- */

static void count_entry(const struct entry *entry, struct ml_scripts_count *out)
{
    ML_AUTO(ml_buf_fini) struct ml_buf why = ML_BUF_INIT;
    bool works = entry_works(entry);
    const struct ml_revision *revision = NULL;
    if (entry->controller)
        revision = works ? ml_controller_current(entry->controller)
                         : ml_controller_offered(entry->controller);
    if (works && ml_revision_stays_synced(revision, &why))
        out->live++;
    else if (!works && entry->why.kind)
        out->refused++;
    else if (revision && ml_revision_misses_kind(revision))
        out->missing_kind++;
    else if (works)
        out->blocked++;
    else
        out->pending++;
}

struct ml_scripts_count ml_scripts_count(const struct ml_scripts *self)
{
    ML_AUTO(ml_buf_fini) struct ml_buf why = ML_BUF_INIT;
    struct ml_scripts_count count = {.read = true};
    ml_list_each_entry (const struct ml_source, source, &self->sources)
        count.read = source_is_loaded(source, &why) && count.read;
    ml_list_each_entry (const struct entry, entry, &self->entries)
        if (!entry->removed)
            count_entry(entry, &count);
    return count;
}

/* Does another version run than the one in the source, or none? */
static bool entry_drifts(const struct entry *entry)
{
    return entry->refused || entry->rolled_back || entry->missing || entry->successor ||
           entry->source->trouble.kind || !entry_works(entry) ||
           ml_controller_offered(entry->controller);
}

static void collect(void *context)
{
    struct ml_scripts *self = context;
    struct ml_scripts_count count = ml_scripts_count(self);
    ml_metric_set(self->not_working,
                  (double)(count.missing_kind + count.refused + count.blocked + count.pending));
    ml_list_each_entry (const struct entry, entry, &self->entries)
        entry_show_drifted(entry, !entry->removed && entry_drifts(entry));
}

static void write_info(void *context, struct ml_buf *out)
{
    struct ml_scripts *self = context;
    ml_list_each_entry (const struct entry, entry, &self->entries) {
        const struct ml_revision *revision = entry->controller
                                                 ? ml_controller_current(entry->controller)
                                                 : NULL;
        ML_AUTO(ml_buf_fini) struct ml_buf labels = ML_BUF_INIT;
        if (!revision)
            continue;
        ml_metrics_label(&labels, "controller", ml_str_of(ml_controller_name(entry->controller)));
        ml_buf_putc(&labels, ',');
        ml_metrics_label(&labels, "revision", ml_str_of(revision->declaration->revision));
        ml_buf_putc(&labels, ',');
        ml_metrics_label(&labels, "source", ml_str_of(entry->source->name));
        ml_buf_putc(&labels, ',');
        ml_metrics_label(&labels, "resource_version",
                         ml_str_of(entry->live_from ? entry->live_from : ""));
        ml_metrics_sample_write(out, INFO_METRIC, "", ml_buf_cstr(&labels), 1);
    }
}

static void scripts_on_idle(void *context)
{
    (void)context; /* whenever there is something to check, a slice waits */
}

static void scripts_on_all_stopped(void *context)
{
    struct ml_scripts *self = context;
    self->stopped(self->stopped_context);
}

struct ml_scripts *ml_scripts_new(struct ml_services *services,
                                  const struct ml_script_limits *limits,
                                  struct ml_crash_marker *marker, void (*live)(void *context),
                                  void *context)
{
    struct ml_scripts *self = ml_new(struct ml_scripts);
    self->live = live;
    self->live_context = context;
    self->services = services;
    self->limits = *limits;
    self->marker = marker;
    ml_task_init(&self->stopped_task, scripts_on_all_stopped, self);
    ml_cpu_account_init(&self->check_account, services->slices, scripts_on_idle, self);
    ml_list_init(&self->sources);
    ml_list_init(&self->entries);
    ml_list_init(&self->dead);
    self->refusals = ml_metrics_counter(services->metrics, "moonloop_script_refused_total",
                                        "Script versions refused, by file.",
                                        ml_metric_labels("file"));
    self->refused = ml_metrics_gauge(
        services->metrics, "moonloop_script_refused",
        "1 while the newest version of the file is refused, and an older one or none runs.",
        ml_metric_labels("file"));
    self->held = ml_metrics_gauge(
        services->metrics, "moonloop_script_held",
        "1 while the newest version of the file waits for approval, and an older one runs.",
        ml_metric_labels("file"));
    self->drifted = ml_metrics_gauge(
        services->metrics, "moonloop_script_drifted",
        "1 while what runs is not what the source has in the file, or nothing runs.",
        ml_metric_labels("file"));
    self->quarantines = ml_metrics_counter(
        services->metrics, "moonloop_script_quarantined_total",
        "Script versions refused because the process died while running them, by file.",
        ml_metric_labels("file"));
    self->loads = ml_metrics_counter(services->metrics, "moonloop_script_loaded_total",
                                     "Script versions that went live.",
                                     ml_metric_labels("controller"));
    self->without_file = ml_metric_only(ml_metrics_gauge(
        services->metrics, "moonloop_controllers_without_file",
        "Controllers that keep running although their script file is gone.", NULL));
    self->not_working = ml_metric_only(
        ml_metrics_gauge(services->metrics, "moonloop_scripts_not_working",
                         "Scripts that are not live, or lack a kind or a right.", NULL));
    self->collector = (struct ml_metrics_collector){.collect = collect, .context = self};
    ml_metrics_on_collect(services->metrics, &self->collector);
    self->info = (struct ml_metrics_member){.write = write_info, .context = self};
    bool joined = ml_metrics_join(services->metrics, &self->info, INFO_METRIC, "gauge",
                                  "1 for the revision of each controller that runs.");
    ml_assert(joined);
    return self;
}

void ml_scripts_set_guard(struct ml_scripts *self, const struct ml_guard_opts *guard)
{
    self->guard = *guard;
}

void ml_scripts_set_tester(struct ml_scripts *self, struct ml_tester *tester)
{
    self->tester = tester;
}

void ml_scripts_free(struct ml_scripts *self)
{
    if (!self)
        return;
    ml_task_cancel(&self->stopped_task);
    ml_metrics_collector_remove(&self->collector);
    ml_metrics_leave(self->services->metrics, &self->info);
    for (size_t i = 0; i < self->draining_count; i++)
        ml_controller_free(self->draining[i]);
    ml_list_each_entry (struct entry, entry, &self->entries) {
        entry->draining = 0;
        entry_free(entry);
    }
    ml_list_each_entry (struct entry, dead, &self->dead) {
        dead->draining = 0;
        entry_free(dead);
    }
    ml_list_each_entry (struct ml_source, source, &self->sources)
        source_free(source);
    ml_cpu_account_fini(&self->check_account);
    free(self);
}

static void source_open_history(struct ml_source *self)
{
    const struct ml_history_opts opts = {
        .services = self->scripts->services,
        .ns = self->ns,
        .name = self->configmap,
        .known = source_on_history_known,
        .changed = source_on_history_changed,
        .context = self,
    };
    self->history = self->configmap.len > 0 ? ml_history_new(&opts) : NULL;
}

void ml_scripts_start(struct ml_scripts *self)
{
    ml_list_each_entry (struct ml_source, source, &self->sources) {
        source_open_history(source);
        source->class->start(source, self->services);
    }
}

size_t ml_scripts_controllers(const struct ml_scripts *self,
                              struct ml_controller *out[ML_CONTROLLERS_MAX])
{
    size_t count = 0;
    ml_list_each_entry (const struct entry, entry, &self->entries) {
        if (entry->controller)
            out[count++] = entry->controller;
        if (entry->successor)
            out[count++] = entry->successor;
    }
    for (size_t i = 0; i < self->draining_count; i++)
        out[count++] = self->draining[i];
    return count;
}

void ml_scripts_stop(struct ml_scripts *self, void (*done)(void *context), void *context)
{
    struct ml_controller *all[ML_CONTROLLERS_MAX];
    self->stopping = true;
    ml_list_each_entry (struct ml_source, source, &self->sources) {
        source_stop(source);
        ml_last_good_end(source->last_good);
    }
    ml_list_each_entry (struct entry, entry, &self->entries) {
        entry_cancel_check(entry);
        entry_cancel_tests(entry);
        entry_cancel_plan(entry);
    }
    self->stopped = done;
    self->stopped_context = context;
    if (self->running == 0)
        ml_task_defer(&self->stopped_task, self->services->loop);
    size_t count = ml_scripts_controllers(self, all);
    for (size_t i = 0; i < count; i++)
        ml_controller_stop(all[i]);
}

/* Does a version of it run that sees its kinds? If not, `why` gets a line. */
static bool entry_is_ready(const struct entry *entry, struct ml_buf *why)
{
    const struct ml_controller *controller = entry->controller;
    if (entry_works(entry))
        return ml_revision_stays_synced(ml_controller_current(controller), why);
    const struct ml_revision *offered = controller ? ml_controller_offered(controller) : NULL;
    bool synced = !offered || ml_revision_is_synced(offered, why);
    if (entry->why.kind)
        ml_append_line(why, "%s", entry->why.message);
    else if (synced)
        ml_append_line(why, "%s: is about to go live", entry->file);
    return false;
}

bool ml_scripts_ready(const struct ml_scripts *self, struct ml_buf *why)
{
    bool ready = true;
    ml_list_each_entry (const struct ml_source, source, &self->sources)
        ready = source_is_loaded(source, why) && ready;
    ml_list_each_entry (const struct entry, entry, &self->entries)
        ready = (entry->removed || entry_is_ready(entry, why)) && ready;
    return ready;
}

/* Why the version that runs is not the newest. */
static const char *drift_of(const struct entry *entry)
{
    return entry->held          ? "; the newest version is held"
           : entry->refused     ? "; the newest version is refused"
           : entry->rolled_back ? "; rolled back"
           : entry->missing     ? "; its file is gone"
                                : "";
}

void ml_scripts_list_ready(const struct ml_scripts *self, struct ml_buf *out)
{
    ML_AUTO(ml_buf_fini) struct ml_buf why = ML_BUF_INIT;
    ml_list_each_entry (const struct ml_source, source, &self->sources)
        if (source_is_loaded(source, &why))
            ml_append_line(out, "[+]%s ok", source->name);
    ml_list_each_entry (const struct entry, entry, &self->entries)
        if (!entry->removed && entry_is_ready(entry, &why))
            ml_append_line(out, "[+]%s ok: controller %s runs revision %s%s", entry->file,
                           ml_controller_name(entry->controller),
                           ml_controller_current(entry->controller)->declaration->revision,
                           drift_of(entry));
}

/* Walks over all controllers of files. A successor answers as soon as it is asked by its name. */
static bool next_target(const struct ml_scripts *self, size_t *cursor,
                        struct ml_webhook_target *out)
{
    size_t at = 0;
    ml_list_each_entry (const struct entry, entry, &self->entries) {
        struct ml_controller *const both[] = {entry->controller, entry->successor};
        for (size_t i = 0; i < ML_COUNT(both); i++)
            if (at++ >= *cursor && both[i] && ml_controller_webhook(both[i], out)) {
                *cursor = at;
                return true;
            }
    }
    return false;
}

bool ml_scripts_webhook(const struct ml_scripts *self, struct ml_str name,
                        struct ml_webhook_target *out)
{
    struct ml_webhook_target target;
    for (size_t cursor = 0; next_target(self, &cursor, &target);)
        if (ml_declaration_is_called(ml_script_declaration(target.script), name)) {
            *out = target;
            return true;
        }
    return false;
}

bool ml_scripts_next_webhook(const struct ml_scripts *self, size_t *cursor,
                             struct ml_webhook_target *out)
{
    while (next_target(self, cursor, out)) {
        const struct ml_script_webhooks *has = &ml_script_declaration(out->script)->webhooks;
        if (has->defaults || has->validates || has->version_count > 0)
            return true;
    }
    return false;
}

int64_t ml_scripts_next(const struct ml_scripts *self)
{
    struct ml_controller *all[ML_CONTROLLERS_MAX];
    size_t count = ml_scripts_controllers(self, all);
    int64_t next = INT64_MAX;
    ml_list_each_entry (const struct ml_source, source, &self->sources)
        if (!source->read || source->load)
            return 0;
    ml_list_each_entry (const struct entry, entry, &self->entries)
        if (entry->tests)
            return 0;
    for (size_t i = 0; i < count; i++)
        next = ML_MIN(next, ml_controller_next(all[i]));
    return next;
}

bool ml_scripts_fail(const struct ml_scripts *self, struct ml_buf *why)
{
    bool fail = false;
    ml_list_each_entry (const struct ml_source, source, &self->sources) {
        if (!source_is_empty(source))
            continue;
        fail = true;
        ml_append_line(why, "%s: no script in it", source->name);
    }
    ml_list_each_entry (const struct entry, entry, &self->entries)
        fail = (entry->controller && ml_controller_fails(entry->controller, why)) || fail;
    return fail;
}
