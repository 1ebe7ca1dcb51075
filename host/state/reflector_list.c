/* Parses the pages of one LIST, item by item. Called by reflector.c. */
#include "state/reflector_list.h"

#include "codec/json.h"
#include "state/watch_event.h"

/* Returns the cached object when it has not changed, so that a relist needs no second copy of the
 * cache. */
static struct ml_object *list_reuse_held(const struct ml_reflector_opts *opts,
                                         struct ml_object *object)
{
    struct ml_object *held = opts->handler->current(opts->context, ml_object_key(object));
    if (!held || !ml_str_eq(ml_object_uid(held), ml_object_uid(object)) ||
        !ml_str_eq(ml_object_rv(held), ml_object_rv(object)))
        return object;
    ml_object_ref(held);
    ml_object_unref(object);
    return held;
}

static void list_keep(struct reflector_list *list, struct ml_object *object)
{
    if (list->count == list->capacity) {
        list->capacity = list->capacity ? list->capacity * 2 : 64;
        list->objects = ml_realloc(list->objects, list->capacity * sizeof(struct ml_object *));
    }
    list->objects[list->count++] = object;
}

struct ml_object *reflector_list_read(const struct ml_reflector_opts *opts, struct ml_str raw)
{
    struct ml_object *object;
    struct ml_err poison = ML_ERR_INIT;
    if (ml_selection_object(opts->selection, opts->dict, opts->kind, raw, &object, &poison) == 0)
        return list_reuse_held(opts, object);
    ML_AUTO_FREE char *key = watch_event_key(raw);
    opts->handler->poisoned(opts->context, ml_str_of(key), &poison);
    object = opts->handler->current(opts->context, ml_str_of(key));
    return object ? ml_object_ref(object) : NULL;
}

/* A bad item is reported and skipped; its last good version, if there is one, stays. */
static int list_accept_item(void *context, struct ml_str raw, struct ml_err *err)
{
    struct reflector_list *list = context;
    struct ml_object *object = reflector_list_read(list->opts, raw);
    (void)err;
    if (object)
        list_keep(list, object);
    return 0;
}

void reflector_list_init(struct reflector_list *list, const struct ml_reflector_opts *opts)
{
    *list = (struct reflector_list){.opts = opts};
}

void reflector_list_fini(struct reflector_list *list)
{
    ml_json_list_free(list->page);
    for (size_t i = 0; i < list->count; i++)
        ml_object_unref(list->objects[i]);
    free(list->objects);
    free(list->next);
    free(list->version);
    reflector_list_init(list, list->opts);
}

void reflector_list_open_page(struct reflector_list *list)
{
    const struct ml_json_list_handler handler = {.item = list_accept_item, .context = list};
    ml_json_list_free(list->page);
    list->page = ml_json_list_new(&handler, ML_OBJECT_SIZE_MAX);
}

int reflector_list_feed(struct reflector_list *list, struct ml_str piece, struct ml_err *err)
{
    return ml_json_list_feed(list->page, piece, err);
}

int reflector_list_close_page(struct reflector_list *list, struct ml_err *err)
{
    struct ml_str envelope;
    int r = ml_json_list_finish(list->page, &envelope, err);
    if (r < 0)
        return r;
    ML_AUTO_FREE char *kind = ml_json_find_string(envelope, "kind", NULL);
    if (kind && strcmp(kind, "Status") == 0)
        return ml_status_error(envelope, 0, err);
    ML_AUTO_FREE char *version = ml_json_find_string(envelope, "metadata", "resourceVersion", NULL);
    if (!kind || !ml_str_ends(ml_str_of(kind), "List") || !version || !*version)
        return ml_err_set(err, ML_EINVALID, "the answer is no list of %s, but %s",
                          list->opts->kind->plural, kind ? kind : "something else");
    free(list->next);
    list->next = ml_json_find_string(envelope, "metadata", "continue", NULL);
    if (list->next && !*list->next)
        free(ml_take(&list->next));
    /* All pages are of one version: that of the first page. */
    if (!list->version)
        list->version = ml_take(&version);
    ml_json_list_free(ml_take(&list->page));
    return 0;
}
