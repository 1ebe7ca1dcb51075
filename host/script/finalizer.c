/* The finalizer of a controller that cleans up: before the first write on behalf of an object the
 * host adds it, and holds that write back till then. operator/reconcile.c does the same before a
 * status is written, and removes it. */
#include "codec/json.h"
#include "kube/object.h"
#include "script/run.h"

/* A write whose texts are copies: buffers of the script change while it waits. */
struct held_write {
    struct ml_write write;
    bool wait_for_cache;
    char texts[];
};

bool run_lacks_finalizer(struct ml_run *run)
{
    const struct ml_declaration *declaration = &run->thread.script->declaration;
    const struct ml_object *object = run->thread.object;
    if (!declaration->finalizes || run->has_finalizer || ml_object_deleting(object))
        return false;
    run->has_finalizer = ml_finalizers_have(object, ml_str_of(declaration->finalizer));
    return !run->has_finalizer;
}

static size_t texts_bytes(const struct ml_write *write)
{
    const struct ml_client_request *request = &write->request;
    return request->body.len + request->ns.len + request->name.len + ml_str_of(request->uid).len +
           ml_str_of(request->resource_version).len + ml_str_of(write->deletion.why).len +
           ml_str_of(write->place).len + 7;
}

size_t run_held_bytes(const struct ml_write *write)
{
    return sizeof(struct held_write) + texts_bytes(write) + SCRIPT_WRITE_NOTED;
}

/* Copies `text`, terminated, to `*at` and moves that behind it. */
static struct ml_str hold_text(char **at, struct ml_str text)
{
    struct ml_str copy = {*at, text.len};
    if (text.len > 0)
        memcpy(*at, text.ptr, text.len);
    (*at)[text.len] = '\0';
    *at += text.len + 1;
    return copy;
}

/* All else that it points to lives as long as the run: kind, field manager, the reconciled object,
 * its key and uid. */
static struct held_write *hold_write(const struct ml_write *write, bool wait_for_cache)
{
    struct held_write *held = ml_zalloc(sizeof *held + texts_bytes(write));
    struct ml_client_request *request = &held->write.request;
    char *at = held->texts;
    held->write = *write;
    held->wait_for_cache = wait_for_cache;
    request->body = hold_text(&at, request->body);
    request->ns = hold_text(&at, request->ns);
    request->name = hold_text(&at, request->name);
    if (write->place)
        held->write.place = hold_text(&at, ml_str_of(write->place)).ptr;
    if (write->deletion.why)
        held->write.deletion.why = hold_text(&at, ml_str_of(write->deletion.why)).ptr;
    if (request->uid)
        request->uid = hold_text(&at, ml_str_of(request->uid)).ptr;
    if (request->resource_version)
        request->resource_version = hold_text(&at, ml_str_of(request->resource_version)).ptr;
    return held;
}

/* If the object is gone, the run ends with a Conflict: no failure that has to be reported. */
static void fail_for_finalizer(struct ml_run *run, const struct ml_err *err)
{
    *run_make_err(run) = *err;
    ml_err_wrap(run->err, "add the finalizer %s", run->thread.script->declaration.finalizer);
    if (err->kind == ML_ENOT_FOUND)
        run->err->kind = ML_ECONFLICT;
    run_fail(run, ML_LIMIT_NONE);
}

static void on_finalizer_added(void *context, struct ml_str body, const struct ml_err *err)
{
    struct ml_run *run = context;
    run->write = NULL;
    if (err) {
        fail_for_finalizer(run, err);
        return;
    }
    struct held_write *held = ml_take(&run->held);
    run->has_finalizer = true;
    run->version = ml_json_find_string(body, "metadata", "resourceVersion", NULL);
    if (!held) { /* run_add_finalizer */
        run_continue(run);
        return;
    }
    run_write(run, &held->write, held->wait_for_cache);
    free(held);
}

void run_add_finalizer(struct ml_run *run)
{
    struct ml_script *script = run->thread.script;
    const struct ml_object *object = run->thread.object;
    ML_AUTO(ml_buf_fini) struct ml_buf patch = ML_BUF_INIT;
    ml_finalizers_patch(object, ml_object_rv(object), ml_str_of(script->declaration.finalizer),
                        script->declaration.former_finalizers, true, &patch);
    const struct ml_write add = {
        .request =
            {
                .verb = ML_VERB_PATCH_MERGE,
                .kind = script->binding.kinds[0],
                .ns = ml_object_namespace(object),
                .name = ml_object_name(object),
                .body = ml_buf_str(&patch),
                .flow = script->field_manager,
                .budget = &script->memory,
            },
        .expectations = script->binding.expectations,
        .check = script->binding.check,
        .informer = script->binding.informers[0],
        .key = ml_object_key(object),
    };
    run->write = ml_writer_send(script->services, &add, on_finalizer_added, run);
}

void run_write_later(struct ml_run *run, const struct ml_write *write, bool wait_for_cache)
{
    run->held = hold_write(write, wait_for_cache);
    run_add_finalizer(run);
}
