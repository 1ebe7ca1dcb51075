/* What is asked for: the URLs of lists and watches (machinery of the collection endpoints:
 * apimachinery, pkg/apis/meta/internalversion), and in which form the objects are to come. */
#include "state/reflector_internal.h"

#include <stdio.h>

#define PAGE_ITEMS "500"

static void append_fields(const struct ml_reflector *self, struct ml_buf *url)
{
    ML_AUTO(ml_buf_fini) struct ml_buf fields = ML_BUF_INIT;
    struct ml_str selected = self->opts.selection->fields;
    if (*self->name)
        ml_buf_printf(&fields, "metadata.name=%s%s", self->name, selected.len > 0 ? "," : "");
    ml_buf_append_str(&fields, selected);
    if (fields.len > 0)
        ml_url_query(url, "fieldSelector", ml_buf_str(&fields));
}

/* The URL of the collection, with what is selected of it. */
static void append_path(const struct ml_reflector *self, struct ml_buf *url)
{
    ml_kind_path(self->opts.kind, ml_str_of(self->ns), ML_STR(""), ML_STR(""), url);
    append_fields(self, url);
    if (self->opts.selection->labels.len > 0)
        ml_url_query(url, "labelSelector", self->opts.selection->labels);
}

void reflector_list_url(const struct ml_reflector *self, struct ml_buf *url)
{
    append_path(self, url);
    if (self->step.paged)
        ml_url_query(url, "limit", ML_STR(PAGE_ITEMS));
    /* A token and a version together are refused. */
    if (self->list.next) {
        ml_url_query(url, "continue", ml_str_of(self->list.next));
    } else if (!self->step.any_version) {
        ml_url_query(url, "resourceVersion", ml_str_of(self->version));
        ml_url_query(url, "resourceVersionMatch", ML_STR("NotOlderThan"));
    }
}

void reflector_watch_url(const struct ml_reflector *self, struct ml_buf *url)
{
    char timeout[24];
    int len = snprintf(timeout, sizeof timeout, "%lld", (long long)self->timeout_s);
    append_path(self, url);
    ml_url_query(url, "watch", ML_STR("1"));
    ml_url_query(url, "resourceVersion", ml_str_of(self->step.any_version ? "" : self->version));
    if (self->step.stream) {
        ml_url_query(url, "sendInitialEvents", ML_STR("true"));
        ml_url_query(url, "resourceVersionMatch", ML_STR("NotOlderThan"));
    }
    ml_url_query(url, "allowWatchBookmarks", ML_STR("true"));
    ml_url_query(url, "timeoutSeconds", (struct ml_str){timeout, (size_t)len});
}

static bool asks_metadata(const struct ml_reflector *self)
{
    return self->opts.selection->metadata_only && !self->opts.server->no_metadata;
}

const char *reflector_list_accept(const struct ml_reflector *self)
{
    return asks_metadata(self) ? "application/json;as=PartialObjectMetadataList;g=meta.k8s.io;v=v1,"
                                 "application/json"
                               : NULL;
}

const char *reflector_watch_accept(const struct ml_reflector *self)
{
    return asks_metadata(self) ? "application/json;as=PartialObjectMetadata;g=meta.k8s.io;v=v1,"
                                 "application/json"
                               : NULL;
}
