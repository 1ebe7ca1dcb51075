#include "cluster/transport_faults.h"

#include "base/buf.h"
#include "codec/json.h"

struct rule {
    struct ml_list node;
    int number;
    struct ml_fault fault; /* strings owned */
    size_t left;           /* 0: without end */
};

struct ml_transport_faults {
    struct ml_transport seam;
    struct ml_transport *inner;
    struct ml_loop *loop;
    struct ml_list rules; /* oldest first */
    struct ml_list calls;
    int last_number;
};

/* An inner call may be over while its caller still has to get its end: held bytes, or a refusal,
 * which must not come inside submit. */
struct ml_transport_call {
    struct ml_list node;
    struct ml_transport_faults *faults;
    struct ml_transport_call *inner; /* NULL: over, or never sent */
    struct ml_http_handler handler;
    void *context;
    char *method;
    char *path;
    bool streaming;
    bool in_callback; /* inside one of its caller's callbacks */
    bool is_canceled; /* canceled inside the callback: after_callback frees it */

    bool is_faulty;
    enum ml_fault_kind kind; /* of the fault that applies, never HOLD */
    size_t bytes_left;       /* CUT */
    int status;              /* REFUSE */
    struct ml_buf refusal;   /* REFUSE: the Status */

    struct ml_task later; /* delivers what could not be delivered at once */
    struct ml_buf held;   /* HOLD: the body so far */
    bool over;            /* HOLD: the inner call has ended */
    struct ml_err err;    /* kind 0: a regular one */
};

static void faults_call_free(struct ml_transport_call *call)
{
    ml_task_cancel(&call->later);
    if (call->in_callback) {
        call->is_canceled = true;
        return;
    }
    ml_list_remove(&call->node);
    ml_buf_fini(&call->refusal);
    ml_buf_fini(&call->held);
    free(call->method);
    free(call->path);
    free(call);
}

static void faults_call_done(struct ml_transport_call *call, const struct ml_err *err)
{
    const struct ml_http_handler handler = call->handler;
    void *context = call->context;
    const struct ml_err copy = err ? *err : ML_ERR_INIT;
    faults_call_free(call);
    handler.done(context, err ? &copy : NULL);
}

static bool fault_fits_request(const struct ml_fault *fault, const char *method, const char *path)
{
    return (!fault->method || strcmp(fault->method, method) == 0) &&
           (!fault->path || strstr(path, fault->path));
}

static bool is_stream_held(const struct ml_transport_call *call)
{
    if (!call->streaming)
        return false;
    ml_list_each (node, &call->faults->rules) {
        const struct rule *rule = ml_container_of(node, struct rule, node);
        if (rule->fault.kind == ML_FAULT_HOLD &&
            fault_fits_request(&rule->fault, call->method, call->path))
            return true;
    }
    return false;
}

static void set_injected_error(const struct ml_transport_call *call, struct ml_err *err)
{
    if (call->kind == ML_FAULT_TIME_OUT)
        ml_err_set(err, ML_ETIMEOUT, "%s: no answer in time (injected)", call->faults->seam.host);
    else
        ml_err_set(err, ML_ENETWORK, "%s: connection lost (injected)", call->faults->seam.host);
}

static bool is_reply_lost(const struct ml_transport_call *call)
{
    return call->is_faulty &&
           (call->kind == ML_FAULT_LOSE_REPLY || call->kind == ML_FAULT_TIME_OUT);
}

static void faults_on_head(void *context, const struct ml_http_head *head)
{
    struct ml_transport_call *call = context;
    if (!is_reply_lost(call) && call->handler.head)
        call->handler.head(call->context, head);
}

/* To be called after each callback. False: the caller canceled inside it, the call is freed. */
static bool after_callback(struct ml_transport_call *call)
{
    call->in_callback = false;
    if (!call->is_canceled)
        return true;
    faults_call_free(call);
    return false;
}

static bool deliver_piece(struct ml_transport_call *call, struct ml_str piece, struct ml_err *err,
                          int *out)
{
    *out = 0;
    if (!call->handler.data || piece.len == 0)
        return true;
    call->in_callback = true;
    *out = call->handler.data(call->context, piece, err);
    return after_callback(call);
}

static int faults_on_data(void *context, struct ml_str piece, struct ml_err *err)
{
    struct ml_transport_call *call = context;
    if (is_reply_lost(call))
        return 0;
    if (is_stream_held(call) || call->held.len) {
        ml_buf_append_str(&call->held, piece);
        return 0;
    }
    bool is_cut = call->is_faulty && call->kind == ML_FAULT_CUT && piece.len >= call->bytes_left;
    if (call->is_faulty && call->kind == ML_FAULT_CUT) {
        piece.len = ML_MIN(piece.len, call->bytes_left);
        call->bytes_left -= piece.len;
    }
    int r;
    if (!deliver_piece(call, piece, err, &r) || r != 0 || !is_cut)
        return r;
    set_injected_error(call, err);
    return err->kind;
}

static void faults_on_done(void *context, const struct ml_err *err)
{
    struct ml_transport_call *call = context;
    struct ml_err injected;
    call->inner = NULL;
    if (is_stream_held(call) || call->held.len) {
        call->over = true;
        call->err = err ? *err : ML_ERR_INIT;
        return;
    }
    if (is_reply_lost(call)) {
        set_injected_error(call, &injected);
        err = &injected;
    }
    faults_call_done(call, err);
}

static void deliver_refusal(struct ml_transport_call *call)
{
    const struct ml_http_head head = {
        .status = call->status,
        .retry_after_ms = -1,
        .content_type = ML_STR("application/json"),
    };
    struct ml_err err = ML_ERR_INIT;
    int r;
    call->in_callback = true;
    if (call->handler.head)
        call->handler.head(call->context, &head);
    if (after_callback(call) && deliver_piece(call, ml_buf_str(&call->refusal), &err, &r))
        faults_call_done(call, r ? &err : NULL);
}

static void deliver_held(struct ml_transport_call *call)
{
    ML_AUTO(ml_buf_fini) struct ml_buf held = call->held;
    struct ml_err err = ML_ERR_INIT;
    int r;
    call->held = ML_BUF_INIT;
    if (!deliver_piece(call, ml_buf_str(&held), &err, &r))
        return;
    if (r && call->inner)
        call->faults->inner->cancel(call->faults->inner, call->inner);
    if (r)
        faults_call_done(call, &err);
    else if (call->over)
        faults_call_done(call, call->err.kind ? &call->err : NULL);
}

static void on_deferred_delivery(void *context)
{
    struct ml_transport_call *call = context;
    struct ml_err err;
    if (!call->is_faulty || call->kind == ML_FAULT_CUT) {
        deliver_held(call);
    } else if (call->kind == ML_FAULT_REFUSE) {
        deliver_refusal(call);
    } else {
        set_injected_error(call, &err);
        faults_call_done(call, &err);
    }
}

static void fault_rule_free(struct rule *rule)
{
    ml_list_remove(&rule->node);
    free((char *)rule->fault.method);
    free((char *)rule->fault.path);
    free((char *)rule->fault.reason);
    free(rule);
}

static void write_refusal_status(struct ml_transport_call *call, const struct ml_fault *fault)
{
    struct ml_json_writer writer;
    const char *reason = fault->reason ? fault->reason : "";
    call->status = fault->status;
    ml_json_writer_init(&writer, &call->refusal);
    ml_json_begin_object(&writer);
    ml_json_put_string(&writer, "kind", ML_STR("Status"));
    ml_json_put_string(&writer, "apiVersion", ML_STR("v1"));
    ml_json_put_string(&writer, "status", ML_STR("Failure"));
    ml_json_put_string(&writer, "message", ML_STR("injected fault"));
    ml_json_put_string(&writer, "reason", ml_str_of(reason));
    ml_json_put_int(&writer, "code", fault->status);
    ml_json_end_object(&writer);
}

/* Finds the fault for a new call and counts down its `times`. */
static void find_fault_for_call(struct ml_transport_call *call)
{
    ml_list_each (node, &call->faults->rules) {
        struct rule *rule = ml_container_of(node, struct rule, node);
        if (rule->fault.kind == ML_FAULT_HOLD ||
            !fault_fits_request(&rule->fault, call->method, call->path))
            continue;
        call->is_faulty = true;
        call->kind = rule->fault.kind;
        call->bytes_left = rule->fault.bytes;
        if (call->kind == ML_FAULT_REFUSE)
            write_refusal_status(call, &rule->fault);
        if (rule->left && --rule->left == 0)
            fault_rule_free(rule);
        return;
    }
}

static struct ml_transport_call *faults_submit(struct ml_transport *seam,
                                               const struct ml_transport_request *request,
                                               const struct ml_http_handler *handler, void *context)
{
    static const struct ml_http_handler between = {faults_on_head, faults_on_data, faults_on_done};
    struct ml_transport_faults *faults = ml_container_of(seam, struct ml_transport_faults, seam);
    struct ml_transport_call *call = ml_new(struct ml_transport_call);
    call->faults = faults;
    call->handler = *handler;
    call->context = context;
    call->method = ml_strdup(request->method);
    call->path = ml_strdup(request->path);
    call->streaming = request->streaming;
    call->err = ML_ERR_INIT;
    ml_task_init(&call->later, on_deferred_delivery, call);
    ml_list_push(&faults->calls, &call->node);
    find_fault_for_call(call);
    struct ml_transport_request passed_on = *request;
    passed_on.may_send = NULL; /* it would be called with our `call` */
    if (call->is_faulty && (call->kind == ML_FAULT_REFUSE || call->kind == ML_FAULT_LOSE))
        ml_task_defer(&call->later, faults->loop);
    else
        call->inner = faults->inner->submit(faults->inner, &passed_on, &between, call);
    return call;
}

static void faults_cancel(struct ml_transport *seam, struct ml_transport_call *call)
{
    struct ml_transport_faults *faults = ml_container_of(seam, struct ml_transport_faults, seam);
    if (call->inner)
        faults->inner->cancel(faults->inner, call->inner);
    faults_call_free(call);
}

static void faults_free(struct ml_transport *seam)
{
    struct ml_transport_faults *faults = ml_container_of(seam, struct ml_transport_faults, seam);
    ml_assert(ml_list_empty(&faults->calls));
    ml_list_each (node, &faults->rules)
        fault_rule_free(ml_container_of(node, struct rule, node));
    faults->inner->free(faults->inner);
    free(faults);
}

struct ml_transport *ml_transport_faults_new(struct ml_loop *loop, struct ml_transport *inner,
                                             struct ml_transport_faults **out)
{
    struct ml_transport_faults *faults = ml_new(struct ml_transport_faults);
    faults->seam = (struct ml_transport){faults_submit, faults_cancel, faults_free, inner->host};
    faults->inner = inner;
    faults->loop = loop;
    ml_list_init(&faults->rules);
    ml_list_init(&faults->calls);
    *out = faults;
    return &faults->seam;
}

int ml_transport_faults_add(struct ml_transport_faults *faults, const struct ml_fault *fault)
{
    struct rule *rule = ml_new(struct rule);
    rule->number = ++faults->last_number;
    rule->fault = *fault;
    rule->fault.method = ml_strdup(fault->method);
    rule->fault.path = ml_strdup(fault->path);
    rule->fault.reason = ml_strdup(fault->reason);
    rule->left = fault->times;
    ml_list_push(&faults->rules, &rule->node);
    return rule->number;
}

void ml_transport_faults_remove(struct ml_transport_faults *faults, int number)
{
    ml_list_each (node, &faults->rules) {
        struct rule *rule = ml_container_of(node, struct rule, node);
        if (rule->number == number)
            fault_rule_free(rule);
    }
    ml_list_each (node, &faults->calls) {
        struct ml_transport_call *call = ml_container_of(node, struct ml_transport_call, node);
        if ((call->held.len || call->over) && !is_stream_held(call))
            ml_task_defer(&call->later, faults->loop);
    }
}
