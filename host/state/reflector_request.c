/* What a reflector asks the server for, at the collection endpoints of apimachinery
 * (pkg/apis/meta/internalversion), and how it reads the answer. Called by reflector.c; selections
 * by the informers as well. */
#include "state/reflector_internal.h"

#include "codec/json.h"
#include "state/watch_event.h"

#include <stdio.h>

#define PAGE_ITEMS "500"

/* ---- what is watched ---- */

bool ml_selection_eq(const struct ml_selection *a, const struct ml_selection *b)
{
    return ml_str_eq(a->labels, b->labels) && ml_str_eq(a->fields, b->fields) &&
           a->metadata_only == b->metadata_only;
}

int ml_selection_object(const struct ml_selection *selection, struct ml_dict *dict,
                        const struct ml_kind *kind, struct ml_str json, struct ml_object **out,
                        struct ml_err *err)
{
    if (!selection->metadata_only)
        return ml_object_new(dict, kind->api_version, kind->kind, json, out, err);
    struct ml_str metadata;
    if (!ml_json_find(json, &metadata, "metadata", NULL))
        return ml_err_set(err, ML_EINVALID, "no metadata");
    ML_AUTO(ml_buf_fini) struct ml_buf bare = ML_BUF_INIT;
    ml_buf_puts(&bare, "{\"metadata\":");
    ml_buf_append_str(&bare, metadata);
    ml_buf_puts(&bare, "}");
    return ml_object_new(dict, kind->api_version, kind->kind, ml_buf_str(&bare), out, err);
}

/* ---- requests ---- */

/* The URL of the collection, with what is selected of it. */
static void append_collection_path(const struct ml_reflector_opts *opts, struct ml_buf *url)
{
    struct ml_str fields = opts->selection->fields;
    ml_kind_path(opts->kind, opts->ns, ML_STR(""), ML_STR(""), url);
    ML_AUTO_FREE char *own = ml_asprintf("metadata.name=" ML_STR_FMT "%s" ML_STR_FMT,
                                         ML_STR_ARG(opts->name), fields.len > 0 ? "," : "",
                                         ML_STR_ARG(fields));
    if (opts->name.len > 0)
        fields = ml_str_of(own);
    if (fields.len > 0)
        ml_url_query(url, "fieldSelector", fields);
    if (opts->selection->labels.len > 0)
        ml_url_query(url, "labelSelector", opts->selection->labels);
}

void reflector_list_url(const struct ml_reflector_opts *opts, const struct reflector_step *step,
                        const char *version, const char *next, struct ml_buf *url)
{
    append_collection_path(opts, url);
    if (step->paged)
        ml_url_query(url, "limit", ML_STR(PAGE_ITEMS));
    /* The server refuses a continue token together with a version. */
    if (next) {
        ml_url_query(url, "continue", ml_str_of(next));
    } else if (!step->any_version) {
        ml_url_query(url, "resourceVersion", ml_str_of(version));
        ml_url_query(url, "resourceVersionMatch", ML_STR("NotOlderThan"));
    }
}

void reflector_object_url(const struct ml_reflector_opts *opts, struct ml_object *object,
                          struct ml_buf *url)
{
    ML_AUTO_FREE char *selector = ml_asprintf("metadata.name=" ML_STR_FMT,
                                              ML_STR_ARG(ml_object_name(object)));
    ml_kind_path(opts->kind, ml_object_namespace(object), ML_STR(""), ML_STR(""), url);
    ml_url_query(url, "fieldSelector", ml_str_of(selector));
    ml_url_query(url, "limit", ML_STR("1"));
}

void reflector_watch_url(const struct ml_reflector_opts *opts, const struct reflector_step *step,
                         const char *version, int64_t timeout_s, struct ml_buf *url)
{
    char timeout[24];
    int len = snprintf(timeout, sizeof timeout, "%lld", (long long)timeout_s);
    append_collection_path(opts, url);
    ml_url_query(url, "watch", ML_STR("1"));
    ml_url_query(url, "resourceVersion", ml_str_of(step->any_version ? "" : version));
    if (step->stream) {
        ml_url_query(url, "sendInitialEvents", ML_STR("true"));
        ml_url_query(url, "resourceVersionMatch", ML_STR("NotOlderThan"));
    }
    ml_url_query(url, "allowWatchBookmarks", ML_STR("true"));
    ml_url_query(url, "timeoutSeconds", (struct ml_str){timeout, (size_t)len});
}

const char *reflector_accept(const struct ml_reflector_opts *opts, bool list)
{
    if (!opts->selection->metadata_only || opts->server->no_metadata)
        return NULL;
    return list ? "application/json;as=PartialObjectMetadataList;g=meta.k8s.io;v=v1,"
                  "application/json"
                : "application/json;as=PartialObjectMetadata;g=meta.k8s.io;v=v1,application/json";
}

/* ---- objects ---- */

bool reflector_read(const struct ml_reflector_opts *opts, struct ml_str raw, struct ml_object **out)
{
    struct ml_err poison = ML_ERR_INIT;
    if (ml_selection_object(opts->selection, opts->dict, opts->kind, raw, out, &poison) < 0) {
        ML_AUTO_FREE char *key = watch_event_key(raw);
        opts->handler->poisoned(opts->context, ml_str_of(key), &poison);
        struct ml_object *held = opts->handler->current(opts->context, ml_str_of(key));
        *out = held ? ml_object_ref(held) : NULL;
        return false;
    }
    struct ml_object *held = opts->handler->current(opts->context, ml_object_key(*out));
    if (held && ml_str_eq(ml_object_uid(held), ml_object_uid(*out)) &&
        ml_str_eq(ml_object_rv(held), ml_object_rv(*out))) {
        ml_object_unref(*out);
        *out = ml_object_ref(held);
    }
    return true;
}

/* ---- lists ---- */

static struct ml_str list_object_key(const void *object)
{
    return ml_object_key(object);
}

void reflector_list_init(struct reflector_list *list, const struct ml_reflector_opts *opts)
{
    *list = (struct reflector_list){.opts = opts, .objects.key = list_object_key};
}

void reflector_list_clear(struct reflector_list *list)
{
    ml_set_each (&list->objects, cursor, object)
        ml_object_unref(object);
    ml_set_fini(&list->objects);
    ml_json_list_free(list->page);
    free(list->next);
    free(list->version);
    reflector_list_init(list, list->opts);
}

void reflector_list_add(struct reflector_list *list, struct ml_str raw)
{
    struct ml_object *object;
    reflector_read(list->opts, raw, &object);
    if (object)
        ml_object_unref(ml_set_put(&list->objects, object));
}

static int list_on_item(void *context, struct ml_str raw, struct ml_err *err)
{
    (void)err; /* a bad item does not spoil the list */
    reflector_list_add(context, raw);
    return 0;
}

void reflector_list_open_page(struct reflector_list *list)
{
    const struct ml_json_list_handler handler = {.item = list_on_item, .context = list};
    ml_json_list_free(list->page);
    list->page = ml_json_list_new(&handler, ML_OBJECT_SIZE_MAX);
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

bool reflector_list_confirms(const struct reflector_list *list, struct ml_object *object,
                             const char *version)
{
    struct ml_object *shown = ml_set_get(&list->objects, ml_object_key(object));
    return shown && ml_str_eq(ml_object_uid(shown), ml_object_uid(object)) &&
           ml_str_eq(ml_object_rv(shown), ml_object_rv(object)) &&
           !ml_rv_older(ml_str_of(list->version), ml_str_of(version));
}
