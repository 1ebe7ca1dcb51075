/* LIST: page after page into the shadow, which is published when it is whole. */
#include "state/reflector_internal.h"

static void request_page(struct ml_reflector *self);

static void publish(struct ml_reflector *self)
{
    struct ml_err behind = ML_ERR_INIT;
    int r = reflector_publish(self, self->list.objects, self->list.count, self->list.version,
                              &behind);
    reflector_list_fini(&self->list);
    reflector_end(self, r < 0 ? LIST_BEHIND : LIST_COMPLETE, r < 0 ? &behind : NULL);
}

static int on_data(void *context, struct ml_str piece, struct ml_err *err)
{
    struct ml_reflector *self = context;
    return reflector_list_feed(&self->list, piece, err);
}

static enum reflector_end judge(struct ml_reflector *self, const struct ml_err *err)
{
    if (err->kind == ML_EUNSUPPORTED) /* 406, 415: plain JSON from now on */
        self->opts.server->no_metadata = true;
    if (!reflector_is_gone(err))
        return LIST_FAILED;
    return self->later_page ? LIST_PAGE_GONE : LIST_GONE;
}

static void on_done(void *context, const struct ml_err *err)
{
    struct ml_reflector *self = context;
    struct ml_err bad = ML_ERR_INIT;
    self->call = NULL;
    if (!err && reflector_list_close_page(&self->list, &bad) < 0)
        err = &bad;
    if (err) {
        reflector_list_fini(&self->list);
        reflector_end(self, judge(self, err), err);
    } else if (self->list.next) {
        self->later_page = true;
        request_page(self);
    } else {
        publish(self);
    }
}

static void request_page(struct ml_reflector *self)
{
    static const struct ml_http_deadlines deadlines = {
        .connect_ms = 10000,
        .first_byte_ms = 60000,
        .idle_ms = 30000,
    };
    const struct ml_client_stream handler = {
        .data = on_data,
        .done = on_done,
        .accept = reflector_list_accept(self),
    };
    ML_AUTO(ml_buf_fini) struct ml_buf url = ML_BUF_INIT;
    reflector_list_url(self, &url);
    reflector_list_open_page(&self->list);
    self->call = ml_client_stream(self->opts.client, ml_buf_cstr(&url), &deadlines, &handler, self);
}

void reflector_start_list(struct ml_reflector *self)
{
    self->later_page = false;
    reflector_list_fini(&self->list);
    if (self->step.any_version)
        self->opts.handler->listing(self->opts.context);
    request_page(self);
}
