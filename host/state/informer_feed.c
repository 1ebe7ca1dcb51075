/* What reflectors tell: it fills the store, and listeners hear of it. */
#include "state/informer_internal.h"

#include <malloc.h>
#include <stdio.h>

#include "base/map.h"

/* After a list of this many objects the memory of its making goes back to the system. */
#define TRIM_COUNT 1000

static bool same_uid(struct ml_object *a, struct ml_object *b)
{
    return ml_str_eq(ml_object_uid(a), ml_object_uid(b));
}

/* Not newer than what is held: a repeated event, one from before the last list, or one of an
 * earlier object by the name. */
static bool is_old_news(struct ml_object *held, struct ml_object *object)
{
    struct ml_str had = ml_object_rv(held), has = ml_object_rv(object);
    return ml_rv_older(has, had) || (same_uid(held, object) && ml_str_eq(had, has));
}

/* Another uid under the same name is another object: the old one went unseen. */
static void tell_put(struct ml_informer *self, struct ml_object *old, struct ml_object *new)
{
    if (old && !same_uid(old, new)) {
        informer_tell(self, old, NULL);
        old = NULL;
    }
    informer_tell(self, old, new);
}

static void put(struct ml_informer *self, struct ml_object *object)
{
    struct ml_object *held = ml_store_get(self->store, ml_object_key(object));
    if (held ? is_old_news(held, object)
             : tombstones_has(&self->tombstones, ml_object_uid(object), ml_object_rv(object)))
        return;
    struct ml_object *old = ml_store_put(self->store, object);
    tell_put(self, old, object);
    ml_object_unref(old);
}

static void on_upsert(void *context, struct ml_object *object)
{
    put(((struct informer_scope *)context)->informer, object);
}

/* It was gone at version `rv`. The reference goes to the caller. */
static struct ml_object *take_out(struct ml_informer *self, struct ml_object *held,
                                  struct ml_str rv)
{
    tombstones_put(&self->tombstones, ml_object_uid(held), rv);
    return ml_store_remove(self->store, ml_object_key(held));
}

static void on_remove(void *context, struct ml_object *last)
{
    struct ml_informer *self = ((struct informer_scope *)context)->informer;
    struct ml_object *held = ml_store_get(self->store, ml_object_key(last));
    if (!held || !same_uid(held, last) || ml_rv_older(ml_object_rv(last), ml_object_rv(held)))
        return;
    struct ml_object *old = take_out(self, held, ml_object_rv(last));
    informer_tell(self, old, NULL);
    ml_object_unref(old);
}

static bool in_scope(const struct informer_scope *scope, struct ml_object *object)
{
    return !*scope->ns || ml_str_is(ml_object_namespace(object), scope->ns);
}

struct change {
    struct ml_object *old, *new; /* a reference each */
};

/* Takes what the list no longer has out of the store; these changes come first. */
static size_t drop_missing(struct informer_scope *scope, struct ml_object *const *objects,
                           size_t count, uint64_t rv, struct change *changes)
{
    struct ml_store *store = scope->informer->store;
    struct ml_map listed = {0};
    char text[24];
    int len = snprintf(text, sizeof text, "%llu", (unsigned long long)rv);
    size_t cursor = 0, found = 0;
    if (ml_store_len(store) == 0)
        return 0;
    for (size_t i = 0; i < count; i++)
        ml_map_put(&listed, ml_object_key(objects[i]), objects[i]);
    for (struct ml_object *held; (held = ml_store_next(store, &cursor));)
        if (in_scope(scope, held) && !ml_map_get(&listed, ml_object_key(held)))
            changes[found++].old = take_out(scope->informer, held,
                                            (struct ml_str){text, (size_t)len});
    ml_map_fini(&listed);
    return found;
}

static size_t put_listed(struct informer_scope *scope, struct ml_object *const *objects,
                         size_t count, struct change *changes)
{
    struct ml_store *store = scope->informer->store;
    size_t found = 0;
    for (size_t i = 0; i < count; i++) {
        if (ml_store_get(store, ml_object_key(objects[i])) == objects[i])
            continue;
        changes[found++] = (struct change){
            .old = ml_store_put(store, objects[i]),
            .new = ml_object_ref(objects[i]),
        };
    }
    return found;
}

/* The whole list enters the store before anybody hears of it. */
void informer_replace(struct informer_scope *scope, struct ml_object *const *objects, size_t count,
                      uint64_t rv)
{
    struct ml_informer *self = scope->informer;
    size_t room = ml_store_len(self->store) + count;
    struct change *changes = ml_zalloc(room * sizeof *changes);
    size_t found = drop_missing(scope, objects, count, rv, changes);
    found += put_listed(scope, objects, count, changes + found);
    scope->seen = rv;
    for (size_t i = 0; i < found; i++) {
        if (changes[i].new)
            tell_put(self, changes[i].old, changes[i].new);
        else
            informer_tell(self, changes[i].old, NULL);
        ml_object_unref(changes[i].old);
        ml_object_unref(changes[i].new);
    }
    free(changes);
    informer_release_seen(scope, scope->listing);
    scope->listing = 0;
    if (!scope->synced) {
        scope->synced = true;
        if (--self->unsynced == 0)
            informer_tell_synced(self);
    }
    if (count > TRIM_COUNT)
        malloc_trim(0);
}

static void on_replace(void *context, struct ml_object *const *objects, size_t count, uint64_t rv)
{
    informer_replace(context, objects, count, rv);
}

static void on_listing(void *context)
{
    struct informer_scope *scope = context;
    scope->listing = scope->waits.sequence;
}

static void on_progress(void *context, uint64_t rv)
{
    struct informer_scope *scope = context;
    if (rv == ML_RV_OPAQUE || rv > scope->seen)
        scope->seen = rv;
    informer_release_seen(scope, 0);
}

static struct ml_object *on_current(void *context, struct ml_str key)
{
    return ml_store_get(((struct informer_scope *)context)->informer->store, key);
}

static void on_poisoned(void *context, struct ml_str key, const struct ml_err *err)
{
    struct ml_informer *self = ((struct informer_scope *)context)->informer;
    ml_error(self->informers->opts.log, "informer", "object cannot be read; left out",
             ML_S("resource", self->kind->plural), ML_STR_FIELD("object", key), ML_ERR(err));
    ml_metric_add(ml_metric_with(self->informers->poisoned, ml_metric_labels(self->kind->plural)),
                  1);
}

static void on_trouble(void *context, const struct ml_err *err, int64_t retry_ms)
{
    struct informer_scope *scope = context;
    struct ml_informer *self = scope->informer;
    struct ml_log *log = self->informers->opts.log;
    scope->trouble = err ? *err : ML_ERR_INIT;
    if (err)
        ml_warn(log, "informer", "cannot list or watch; trying again",
                ML_S("resource", self->kind->plural), ML_S("namespace", scope->ns), ML_ERR(err),
                ML_F("retry_seconds", (double)retry_ms / 1000));
    else
        ml_info(log, "informer", "list and watch work again", ML_S("resource", self->kind->plural),
                ML_S("namespace", scope->ns));
    if (!ml_informer_trouble(self))
        informer_tell_mended(self);
}

void informer_count_list(struct ml_informer *self, const char *reason)
{
    ml_metric_add(
        ml_metric_with(self->informers->lists, ml_metric_labels(self->kind->plural, reason)), 1);
}

static void on_turn(void *context, bool watched, const char *how, bool lists)
{
    struct ml_informer *self = ((struct informer_scope *)context)->informer;
    if (watched)
        ml_metric_add(
            ml_metric_with(self->informers->watch_ends, ml_metric_labels(self->kind->plural, how)),
            1);
    if (lists)
        informer_count_list(self, how);
}

static void on_restored(void *context, struct ml_str known, struct ml_str shown)
{
    struct ml_informer *self = ((struct informer_scope *)context)->informer;
    tombstones_fini(&self->tombstones); /* versions of another epoch cannot be compared */
    ml_warn(self->informers->opts.log, "informer",
            "the server was restored to an earlier state; taking it as it is now",
            ML_S("resource", self->kind->plural), ML_STR_FIELD("known_version", known),
            ML_STR_FIELD("version", shown));
}

static void on_missing(void *context)
{
    informer_look_up(((struct informer_scope *)context)->informer);
}

const struct ml_reflector_handler informer_feed = {
    .listing = on_listing,
    .replace = on_replace,
    .upsert = on_upsert,
    .remove = on_remove,
    .progress = on_progress,
    .poisoned = on_poisoned,
    .trouble = on_trouble,
    .current = on_current,
    .turn = on_turn,
    .restored = on_restored,
    .missing = on_missing,
};

/* Of a part of the kind only what is in it already: the watch says what is selected. */
void informer_learn(struct ml_informer *self, struct ml_str json)
{
    struct ml_object *object = NULL;
    struct ml_err err = ML_ERR_INIT;
    if (ml_selection_object(&self->selection, self->dict, self->kind, json, &object, &err) < 0)
        return; /* the watch will bring it, and say what is wrong with it */
    if (!ml_selection_is_part(&self->selection) || ml_store_get(self->store, ml_object_key(object)))
        put(self, object);
    ml_object_unref(object);
}
