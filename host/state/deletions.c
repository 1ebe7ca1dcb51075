#include "state/deletions.h"

#define KINDS_MAX 8 /* in a sum; more are "other" */

struct count {
    const struct ml_kind *kind; /* NULL: others */
    size_t objects;
};

/* Of one controller, or for one owner; the ones that were told alone do not count. */
struct sum {
    char *controller, *revision;
    char *id;                /* in `owners`; NULL: of the controller */
    struct ml_object *owner; /* likewise */
    const struct ml_kind *owner_kind;
    char *first; /* "Pod default/a: no longer returned by site.lua:88" */
    size_t objects;
    struct count counts[KINDS_MAX + 1];
    struct ml_list node;
};

struct ml_deletions {
    void (*heard)(void *context, const struct ml_deletion *deletion); /* NULL: all below */
    void *context;
    struct ml_log *log;
    struct ml_recorder *recorder;
    struct ml_timer second; /* runs: some were told in it */
    size_t told;
    struct ml_list by_controller, by_owner;
    struct ml_map owners; /* "controller revision uid" -> sum */
};

/* "Pod default/x". */
static void append_object(const struct ml_deletion *deletion, struct ml_buf *out)
{
    ml_buf_printf(out, "%s ", deletion->kind->kind);
    if (deletion->ns.len > 0)
        ml_buf_printf(out, ML_STR_FMT "/", ML_STR_ARG(deletion->ns));
    ml_buf_append_str(out, deletion->name);
}

static void record(struct ml_deletions *self, const struct ml_kind *owner_kind,
                   const struct ml_object *owner, const char *controller, const char *note)
{
    struct ml_event event = ml_event_about(owner_kind, owner);
    event.reason = ML_STR("SuccessfulDelete");
    event.note = ml_str_of(note);
    event.source = event.controller = ml_str_of(controller);
    ml_recorder_event(self->recorder, &event);
}

static void tell_alone(struct ml_deletions *self, const struct ml_deletion *deletion)
{
    ML_AUTO(ml_buf_fini) struct ml_buf object = ML_BUF_INIT;
    append_object(deletion, &object);
    ml_info(self->log, deletion->controller, "deleted an object",
            ML_OBJECT_FIELDS(deletion->controller, deletion->owner_kind->kind,
                             ml_object_key(deletion->owner)),
            ML_S("deleted", ml_buf_cstr(&object)), ML_S("why", deletion->why),
            ML_S("revision", deletion->revision));
    ml_buf_printf(&object, ": %s (revision %s)", deletion->why, deletion->revision);
    record(self, deletion->owner_kind, deletion->owner, deletion->controller, ml_buf_cstr(&object));
}

/* ---- sums ---- */

static struct sum *sum_new(struct ml_list *list, const struct ml_deletion *deletion)
{
    ML_AUTO(ml_buf_fini) struct ml_buf first = ML_BUF_INIT;
    struct sum *sum = ml_new(struct sum);
    append_object(deletion, &first);
    ml_buf_printf(&first, ": %s", deletion->why);
    sum->controller = ml_strdup(deletion->controller);
    sum->revision = ml_strdup(deletion->revision);
    sum->first = ml_strdup(ml_buf_cstr(&first));
    ml_list_push(list, &sum->node);
    return sum;
}

static void sum_free(struct sum *sum)
{
    ml_list_remove(&sum->node);
    ml_object_unref(sum->owner);
    free(sum->id);
    free(sum->controller);
    free(sum->revision);
    free(sum->first);
    free(sum);
}

static void sum_add(struct sum *sum, const struct ml_kind *kind)
{
    size_t i = 0;
    while (i < KINDS_MAX && sum->counts[i].kind && sum->counts[i].kind != kind)
        i++;
    sum->counts[i].kind = i < KINDS_MAX ? kind : NULL;
    sum->counts[i].objects++;
    sum->objects++;
}

/* "75 Pod, 30 Service". */
static void append_counts(const struct sum *sum, struct ml_buf *out)
{
    const char *comma = "";
    for (size_t i = 0; i <= KINDS_MAX; i++) {
        if (sum->counts[i].objects == 0)
            continue;
        const struct ml_kind *kind = sum->counts[i].kind;
        ml_buf_printf(out, "%s%zu %s", comma, sum->counts[i].objects, kind ? kind->kind : "other");
        comma = ", ";
    }
}

static struct sum *sum_of_controller(struct ml_deletions *self, const struct ml_deletion *deletion)
{
    ml_list_each_entry (struct sum, sum, &self->by_controller)
        if (strcmp(sum->controller, deletion->controller) == 0 &&
            strcmp(sum->revision, deletion->revision) == 0)
            return sum;
    return sum_new(&self->by_controller, deletion);
}

/* NULL: there are too many. */
static struct sum *sum_of_owner(struct ml_deletions *self, const struct ml_deletion *deletion)
{
    ML_AUTO_FREE char *id = ml_asprintf("%s %s " ML_STR_FMT, deletion->controller,
                                        deletion->revision,
                                        ML_STR_ARG(ml_object_uid(deletion->owner)));
    struct sum *sum = ml_map_get(&self->owners, ml_str_of(id));
    if (sum || self->owners.len >= ML_DELETIONS_OWNERS)
        return sum;
    sum = sum_new(&self->by_owner, deletion);
    sum->owner_kind = deletion->owner_kind;
    sum->owner = ml_object_ref(deletion->owner);
    sum->id = ml_take(&id);
    ml_map_put(&self->owners, ml_str_of(sum->id), sum);
    return sum;
}

static void tell_sum_of_controller(struct ml_deletions *self, const struct sum *sum)
{
    ML_AUTO(ml_buf_fini) struct ml_buf kinds = ML_BUF_INIT;
    append_counts(sum, &kinds);
    ml_info(self->log, sum->controller, "deleted more objects in the same second",
            ML_S("controller", sum->controller), ML_I("objects", (int64_t)sum->objects),
            ML_S("kinds", ml_buf_cstr(&kinds)), ML_S("first", sum->first),
            ML_S("revision", sum->revision));
}

static void tell_sum_of_owner(struct ml_deletions *self, const struct sum *sum)
{
    ML_AUTO(ml_buf_fini) struct ml_buf note = ML_BUF_INIT;
    append_counts(sum, &note);
    if (sum->objects == 1)
        ml_buf_clear(&note);
    else
        ml_buf_puts(&note, "; the first: ");
    ml_buf_printf(&note, "%s (revision %s)", sum->first, sum->revision);
    record(self, sum->owner_kind, sum->owner, sum->controller, ml_buf_cstr(&note));
}

void ml_deletions_flush(struct ml_deletions *self)
{
    if (!self)
        return;
    self->told = 0;
    ml_list_each_entry (struct sum, sum, &self->by_controller) {
        tell_sum_of_controller(self, sum);
        sum_free(sum);
    }
    ml_map_fini(&self->owners);
    self->owners = (struct ml_map){0};
    ml_list_each_entry (struct sum, sum, &self->by_owner) {
        tell_sum_of_owner(self, sum);
        sum_free(sum);
    }
}

static void on_second_over(void *context)
{
    ml_deletions_flush(context);
}

void ml_deletions_note(struct ml_deletions *self, const struct ml_deletion *deletion)
{
    if (!self)
        return;
    if (self->heard) {
        self->heard(self->context, deletion);
        return;
    }
    if (self->told == 0)
        ml_timer_start(&self->second, ML_NS_PER_S);
    if (self->told++ < ML_DELETIONS_ALONE) {
        tell_alone(self, deletion);
        return;
    }
    sum_add(sum_of_controller(self, deletion), deletion->kind);
    struct sum *owner = sum_of_owner(self, deletion);
    if (owner)
        sum_add(owner, deletion->kind);
}

struct ml_deletions *ml_deletions_new(struct ml_loop *loop, struct ml_log *log,
                                      struct ml_recorder *recorder)
{
    struct ml_deletions *self = ml_new(struct ml_deletions);
    self->log = log;
    self->recorder = recorder;
    ml_list_init(&self->by_controller);
    ml_list_init(&self->by_owner);
    ml_timer_init(&self->second, loop, on_second_over, self);
    return self;
}

struct ml_deletions *ml_deletions_new_heard(void (*heard)(void *context,
                                                          const struct ml_deletion *deletion),
                                            void *context)
{
    struct ml_deletions *self = ml_new(struct ml_deletions);
    self->heard = heard;
    self->context = context;
    return self;
}

void ml_deletions_free(struct ml_deletions *self)
{
    if (!self)
        return;
    if (!self->heard) {
        ml_timer_stop(&self->second);
        ml_deletions_flush(self);
    }
    free(self);
}
