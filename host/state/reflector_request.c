/* The collection endpoints of apimachinery (pkg/apis/meta/internalversion). Called by reflector.c.
 */
#include "state/reflector_request.h"

#include <stdio.h>

#define PAGE_ITEMS "500"

static void append_field_selector(const struct ml_reflector_opts *opts, struct ml_buf *url)
{
    ML_AUTO(ml_buf_fini) struct ml_buf fields = ML_BUF_INIT;
    struct ml_str selected = opts->selection->fields;
    if (opts->name.len > 0)
        ml_buf_printf(&fields, "metadata.name=" ML_STR_FMT "%s", ML_STR_ARG(opts->name),
                      selected.len > 0 ? "," : "");
    ml_buf_append_str(&fields, selected);
    if (fields.len > 0)
        ml_url_query(url, "fieldSelector", ml_buf_str(&fields));
}

/* The URL of the collection, with what is selected of it. */
static void append_collection_path(const struct ml_reflector_opts *opts, struct ml_buf *url)
{
    ml_kind_path(opts->kind, opts->ns, ML_STR(""), ML_STR(""), url);
    append_field_selector(opts, url);
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
