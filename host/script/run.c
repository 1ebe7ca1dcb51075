/* A reconcile under way: its coroutine, the one request it waits for, and its result. An answer
 * resumes the coroutine at once, while its body is valid, or in a later slice with a copy.
 */
#include "script/run.h"
#include "base/wipe.h"
#include "script/objects.h"
#include "script/reads.h"

#define SAID_MIN          100 /* bytes of a message by which it is known */
#define FINALIZE_AGAIN_NS (60 * ML_NS_PER_S)
#define CHILDREN_AGAIN_S  10 /* that are going; their last event comes first */

/* The script gets these errors as nil, err; all others end the run. */
static bool is_error_expected(int kind)
{
    switch (kind) {
    case ML_EINVALID:
    case ML_ENOT_FOUND:
    case ML_EALREADY_EXISTS:
    case ML_EFORBIDDEN:
    case ML_ELIMIT:
    case ML_EUNSUPPORTED:
        return true;
    default:
        return false;
    }
}

/* Runs in script_protect: a new coroutine, held by the registry. */
ML_RAISES static int new_coroutine(lua_State *L)
{
    struct script_coroutine *out = lua_touserdata(L, 1);
    lua_State *thread = lua_newthread(L);
    out->ref = luaL_ref(L, LUA_REGISTRYINDEX);
    out->L = thread;
    return 0;
}

/* A failure is run->err. */
static int acquire_coroutine(struct ml_run *run)
{
    struct ml_script *script = run->thread.script;
    if (script->idle_count > 0)
        run->coroutine = script->idle[--script->idle_count];
    int r = 0;
    if (!run->coroutine.L)
        r = script_protect(script, new_coroutine, &run->coroutine, script->limits.run_cpu_ns,
                           run_make_err(run));
    if (r < 0)
        return r;
    free(ml_take(&run->err));
    *(struct script_thread **)lua_getextraspace(run->coroutine.L) = &run->thread;
    return 0;
}

/* Keeps a coroutine that has ended for the next run. One that was left in the middle is dropped:
 * closing it would run code of the script. */
static void release_coroutine(struct ml_run *run, bool reuse)
{
    struct ml_script *script = run->thread.script;
    if (!run->coroutine.L)
        return;
    *(struct script_thread **)lua_getextraspace(run->coroutine.L) = &script->thread;
    if (reuse && script->idle_count < SCRIPT_IDLE_MAX)
        script->idle[script->idle_count++] = run->coroutine;
    else
        luaL_unref(script->L, LUA_REGISTRYINDEX, run->coroutine.ref);
    run->coroutine.L = NULL;
}

/* The copy of an answer, kept until the run may go on, counts as memory of the script. */
static void drop_kept_body(struct ml_run *run)
{
    ml_budget_give(&run->thread.script->memory, run->kept.len);
    free((char *)run->kept.ptr);
    run->kept = (struct ml_str){NULL, 0};
}

/* A copy of the Secret that is written counts as memory of the script. */
static void keep_secret(struct ml_run *run, const struct ml_client_request *request)
{
    const struct ml_kind *kind = request->kind;
    const struct ml_gvk gvk = {ml_str_of(kind->group), ml_str_of(kind->version),
                               ml_str_of(kind->kind)};
    if (request->body.len == 0 || !ctx_is_secret(&gvk))
        return;
    ml_budget_force(&run->thread.script->memory, request->body.len);
    run->secret = (struct ml_str){ml_str_dup(request->body), request->body.len};
}

static void drop_secret(struct ml_run *run)
{
    ml_budget_give(&run->thread.script->memory, run->secret.len);
    ml_wipe_free((char *)run->secret.ptr);
    run->secret = (struct ml_str){NULL, 0};
}

static struct ml_outbound *outbound_of(const struct ml_run *run)
{
    return run->thread.script->services->outbound;
}

struct ml_result ml_result_take(struct ml_result *result)
{
    struct ml_result taken = *result;
    taken.status = taken.field = taken.version = (struct ml_str){NULL, 0};
    taken.traceback = NULL;
    result->err = NULL;
    result->names = (struct ml_read_names){.count = 0};
    result->reads = NULL;
    result->notes = NULL;
    return taken;
}

void ml_result_fini(struct ml_result *result)
{
    free(ml_take(&result->err));
    ml_read_names_fini(&result->names);
    ml_read_set_unref(ml_take(&result->reads));
    ml_custom_notes_free(ml_take(&result->notes));
}

static void free_values(struct ml_map *map)
{
    ml_map_each (map, cursor, value)
        free(value);
    ml_map_fini(map);
}

static void run_end(struct ml_run *run)
{
    if (run->read)
        ml_client_cancel(run->read);
    if (run->http)
        outbound_of(run)->cancel(outbound_of(run), run->http);
    if (run->write)
        ml_writer_cancel(run->write);
    free(run->held);
    if (run->waits_for_cache)
        ml_expectations_cancel(run->thread.script->binding.expectations,
                               ml_object_key(run->thread.object));
    release_coroutine(run, false);
    ml_slice_cancel(&run->slice);
    drop_kept_body(run);
    free_values(&run->wanted);
    free_values(&run->generated);
    drop_secret(run);
    script_reads_free(run->reads);
    ml_result_fini(&run->result);
    ml_custom_notes_free(run->notes);
    free(run->err);
    free(run->last_failure);
    free(run->field);
    free(run->version);
    ml_buf_fini(&run->status);
    ml_budget_give(&run->thread.script->memory, run->charged);
    run->thread.script->collected_at = 0; /* the run leaves garbage in Lua */
    ml_object_unref(run->thread.object);
    ml_script_unref(run->thread.script);
    free(run);
}

/* -1: none. moonloop.result has checked it, but it is Lua; nothing of it is trusted here. */
ML_RAISES static int64_t result_seconds_to_ns(lua_State *L, int index, const char *field)
{
    int64_t ns = -1;
    if (lua_isnoneornil(L, index))
        return ns;
    if (lua_type(L, index) != LUA_TNUMBER || !ml_seconds_to_ns(lua_tonumber(L, index), &ns))
        luaL_error(L, "%s:%d: %s: expected a number of seconds, from 0 to 9000000000",
                   script_of(L)->declaration.file,
                   script_run_line(script_of(L), script_thread_of(L)->run), field);
    return ns;
}

/* Reads the values that moonloop.result's check made: outcome, status, requeue_after, requeue_at,
 * field, message at 1 … 6. */
ML_RAISES static void read_result(lua_State *L, struct ml_run *run)
{
    const struct ml_script *script = run->thread.script;
    const char *outcome = luaL_checkstring(L, 1);
    struct ml_result *result = &run->result;
    result->outcome = ML_OUTCOME_OK;
    if (lua_istable(L, 2)) {
        script_encode(L, 2, "status", &run->status);
        if (run->status.len > SCRIPT_STATUS_MAX)
            luaL_error(L, "%s:%d: status: larger than %d KiB as JSON", script->declaration.file,
                       script_run_line(script, run), (int)(SCRIPT_STATUS_MAX / 1024));
        script_charge(L, run->status.capacity);
        run->charged += run->status.capacity;
        if (run->status.ptr[0] != '{')
            luaL_error(L, "%s:%d: status: expected an object, not a list", script->declaration.file,
                       script_run_line(script, run));
        result->status = ml_buf_str(&run->status);
    }
    result->requeue_after_ns = result_seconds_to_ns(L, 3, "requeue_after");
    result->requeue_at_ns = result_seconds_to_ns(L, 4, "requeue_at");
    if (strcmp(outcome, "ok") == 0)
        return;
    result->outcome = outcome[0] == 'i' ? ML_OUTCOME_INVALID : ML_OUTCOME_TERMINAL;
    struct ml_str message = ml_str_of(luaL_checkstring(L, 6));
    run->field = ml_str_dup(ml_str_head(ml_str_of(luaL_optstring(L, 5, "")), SCRIPT_FIELD_MAX));
    result->field = ml_str_of(run->field);
    result->err = ml_alloc(sizeof *result->err);
    ml_err_set(result->err, ML_EINVALID, ML_STR_FMT, ML_STR_ARG(message));
}

/* finalize is done when it returned nothing. If it returned a table, it is called again, even
 * without a time: otherwise the object might stay for ever. */
static void read_finalized(struct ml_run *run)
{
    struct ml_result *result = &run->result;
    if (!run->finalizes || result->outcome != ML_OUTCOME_OK)
        return;
    result->finalized = run->returned_nothing;
    if (!run->returned_nothing && result->requeue_after_ns < 0 && result->requeue_at_ns < 0)
        result->requeue_after_ns = FINALIZE_AGAIN_NS;
}

/* On top is the result of moonloop.children's carry_out, below it that of moonloop.result's check.
 */
ML_RAISES static int children_carried_out(lua_State *L, int status ML_UNUSED,
                                          lua_KContext context ML_UNUSED)
{
    struct ml_run *run = script_thread_of(L)->run;
    bool goes_on = strcmp(luaL_checkstring(L, -1), "later") == 0;
    bool waits = strcmp(luaL_checkstring(L, -1), "wait") == 0;
    lua_settop(L, goes_on || waits ? 1 : 6);
    if (goes_on || waits) { /* the status is not true yet, and the next run returns it again */
        run->returned_nothing = false;
        lua_pushnil(L);
        lua_pushinteger(L, goes_on ? 0 : CHILDREN_AGAIN_S);
        lua_settop(L, 6);
    }
    read_result(L, run);
    read_finalized(run);
    lua_settop(L, 0);
    return 0;
}

/* The stack has the values that the function returned, and nothing else. */
ML_RAISES static int run_returned(lua_State *L, int status ML_UNUSED,
                                  lua_KContext context ML_UNUSED)
{
    struct ml_run *run = script_thread_of(L)->run;
    const struct ml_script *script = run->thread.script;
    int count = lua_gettop(L);
    run->returned_nothing = lua_isnoneornil(L, 1);
    luaL_checkstack(L, 12, NULL);
    lua_rawgeti(L, LUA_REGISTRYINDEX, script->check_ref);
    lua_pushfstring(L, "%s:%d: %s", script->declaration.file, script_run_line(script, run),
                    run->finalizes ? "finalize" : "reconcile");
    lua_rotate(L, 1, 2);
    lua_call(L, count + 1, 7);
    if (lua_isnil(L, 7) && !(run->finalizes && run->returned_nothing)) {
        lua_pushliteral(L, "done");
        return children_carried_out(L, LUA_OK, 0);
    }
    lua_rawgeti(L, LUA_REGISTRYINDEX, script->children_ref);
    lua_pushfstring(L, "%s:%d", script->declaration.file, script_run_line(script, run));
    lua_pushvalue(L, 7);
    lua_callk(L, 2, 1, 0, children_carried_out);
    return children_carried_out(L, LUA_OK, 0);
}

/* The coroutine's body: reconcile(object, ctx), or finalize. */
ML_RAISES static int run_main(lua_State *L)
{
    const struct script_thread *thread = script_thread_of(L);
    const struct ml_script *script = thread->script;
    int function = thread->run->finalizes ? script->finalize_ref : script->reconcile_ref;
    if (function == LUA_NOREF)
        return run_returned(L, LUA_OK, 0);
    lua_rawgeti(L, LUA_REGISTRYINDEX, function);
    script_push_object(L, thread->object, reads_self(thread->run->reads));
    lua_rawgeti(L, LUA_REGISTRYINDEX, script->ctx_ref);
    lua_callk(L, 2, LUA_MULTRET, 0, run_returned);
    return run_returned(L, LUA_OK, 0);
}

/* Notes the reads that the result depends on; none when it depends on more than the cache. */
static void note_reads(struct ml_run *run)
{
    struct ml_result *result = &run->result;
    struct script_reads *reads = run->reads;
    bool is_timed = result->requeue_after_ns >= 0 || result->requeue_at_ns >= 0;
    if (result->outcome != ML_OUTCOME_OK)
        reads_give_up(reads, "it failed");
    if (run->asked_time && !is_timed)
        reads_give_up(reads, "it asked for the time and not to be called again");
    if (ml_script_reads_off(run->thread.script))
        reads_give_up(reads, "state that outlives the run");
    if (result->status.len > 0)
        reads_returns_status(reads);
    if (reads)
        result->names = script_reads_take_names(reads);
    result->reads = script_reads_pack(reads);
    result->reads_gave_up = script_reads_gave_up(reads);
    if (result->reads)
        result->read_versions = *script_reads_versions(reads);
}

/* Reports the result and ends the run. */
static void finish_run(struct ml_run *run, bool reuse)
{
    ml_script_done *done = run->done;
    void *context = run->context;
    struct ml_result *result = &run->result;
    struct ml_script *script = run->thread.script;
    ml_assert(!run->read && !run->write && !run->http && !run->waits_for_cache);
    ML_AUTO_FREE char *traceback = NULL;
    if (result->outcome == ML_OUTCOME_ERROR && script->traceback.len > 0)
        result->traceback = traceback = ml_strdup(ml_buf_cstr(&script->traceback));
    result->writes = run->writes;
    result->cpu_ns = SCRIPT_CPU_IN_ALL * script->limits.run_cpu_ns - run->cpu_left_ns;
    result->version = ml_str_of(run->version);
    result->finalizes = run->finalizes;
    result->notes = ml_take(&run->notes);
    note_reads(run);
    release_coroutine(run, reuse); /* first: done may start the next reconcile */
    script_release_work(script, SCRIPT_WORK_KEPT);
    done(context, result);
    run_end(run);
}

static void finish_run_with_error(struct ml_run *run, enum ml_limit_hit limit)
{
    struct ml_err *err = ml_take(&run->err);
    ml_result_fini(&run->result);
    run->result = (struct ml_result){.outcome = ML_OUTCOME_ERROR,
                                     .err = err,
                                     .requeue_after_ns = -1,
                                     .requeue_at_ns = -1,
                                     .limit = limit};
    finish_run(run, false);
}

/* The script has not raised the error: there is no traceback. */
void run_fail(struct ml_run *run, enum ml_limit_hit limit)
{
    ml_buf_clear(&run->thread.script->traceback);
    finish_run_with_error(run, limit);
}

/* Has the error the message, or its beginning where that is long? */
static bool says_already(const struct ml_err *err, const char *message)
{
    struct ml_str head = ml_str_head(ml_str_of(message), SAID_MIN);
    return memmem(err->message, strlen(err->message), head.ptr, head.len) != NULL;
}

/* A script often raises an error because an earlier call failed: add that failure's message. */
static void add_last_failure(struct ml_run *run)
{
    struct ml_err *err = run->err;
    if (!run->last_failure || says_already(err, run->last_failure + run->last_failure_at))
        return;
    size_t len = strlen(err->message), room = sizeof(err->message) - len;
    struct ml_str shown = ml_str_head(ml_str_of(run->last_failure),
                                      ML_MAX(room, sizeof(" (after: )")) - sizeof(" (after: )"));
    if (shown.len > 0)
        snprintf(err->message + len, room, " (after: " ML_STR_FMT ")", ML_STR_ARG(shown));
}

/* Resumes the coroutine. False: the run has ended and is freed. */
static bool run_step(struct ml_run *run)
{
    struct ml_script *script = run->thread.script;
    switch (script_resume(run)) {
    case SCRIPT_WAITS:
        if (!run->abandoned) {
            script_release_work(script, SCRIPT_WORK_KEPT);
            return true;
        }
        run_fail(run, ML_LIMIT_NONE);
        return false;
    case SCRIPT_ENDED:
        finish_run(run, true);
        return false;
    case SCRIPT_FAILED:
        add_last_failure(run);
        finish_run_with_error(run, script->limit_hit);
        return false;
    }
    ML_UNREACHABLE();
}

/* The caller has charged the script for it. */
static void keep_body(struct ml_run *run, struct ml_str body)
{
    run->kept = (struct ml_str){body.ptr ? ml_str_dup(body) : NULL, body.len};
}

/* The run waits for a slice in which no object of an index is pending; until then it uses its
 * slices to work these off. */
static bool run_waits_for_index(struct ml_run *run)
{
    struct ml_script *script = run->thread.script;
    if (!run->waits_for_index)
        return false;
    if (!ml_script_index_work(script)) {
        ml_slice_wait(&run->slice, script->binding.cpu_account);
        return true;
    }
    run->waits_for_index = false;
    free(ml_take(&run->err));
    return false;
}

void run_wait_for_index(struct ml_run *run)
{
    ml_assert(run->thread.script->binding.cpu_account);
    run->waits_for_index = true;
    ml_slice_wait(&run->slice, run->thread.script->binding.cpu_account);
}

/* The run got its slice. The kept body lives until the coroutine waits again, or the run ends. */
static void run_goes_on(void *context)
{
    struct ml_run *run = context;
    if (run_waits_for_index(run))
        return;
    run->body = run->kept;
    if (run_step(run))
        drop_kept_body(run);
}

/* `err` NULL: success. `handled`: the script can handle the error; others end the run here. */
static void run_got(struct ml_run *run, struct ml_str body, const struct ml_err *err, bool handled)
{
    struct ml_script *script = run->thread.script;
    run->body = body;
    free(run->err);
    run->err = ml_err_dup(err);
    if (err && !handled) {
        ml_err_wrap(run->err, "%s", run->what);
        run_fail(run, ML_LIMIT_NONE);
    } else if (ml_cpu_account_may_go_on(script->binding.cpu_account)) {
        run_step(run);
    } else if (ml_budget_take(&script->memory, body.len)) {
        keep_body(run, body);
        ml_slice_wait(&run->slice, script->binding.cpu_account);
    } else {
        ml_err_set(run_make_err(run), ML_ESCRIPT, "%s: no memory left for the answer", run->what);
        run_fail(run, ML_LIMIT_MEMORY);
    }
}

static void run_answered(struct ml_run *run, struct ml_str body, const struct ml_err *err)
{
    run_got(run, body, err, err && is_error_expected(err->kind));
}

void run_continue(struct ml_run *run)
{
    run_got(run, ML_STR(""), NULL, false);
}

static void run_read_done(void *context, struct ml_str body, const struct ml_err *err)
{
    struct ml_run *run = context;
    run->read = NULL;
    run_answered(run, body, err);
}

static void on_cache_shows(void *context, struct ml_str key ML_UNUSED)
{
    struct ml_run *run = context;
    run->waits_for_cache = false;
    free(ml_take(&run->err));
    if (ml_cpu_account_may_go_on(run->thread.script->binding.cpu_account))
        run_goes_on(run);
    else
        ml_slice_wait(&run->slice, run->thread.script->binding.cpu_account);
}

void run_wait_for_cache(struct ml_run *run, const struct ml_informer *informer)
{
    run->waits_for_cache = true;
    ml_expectations_await(run->thread.script->binding.expectations,
                          ml_object_key(run->thread.object), informer, on_cache_shows, run);
}

/* `err` as everybody may see it: `shown`, or NULL when there is none. */
static const struct ml_err *show_without_secret(struct ml_run *run, const struct ml_err *err,
                                                struct ml_err *shown)
{
    if (err && run->secret.ptr) {
        *shown = *err;
        secret_redact(run->secret, shown);
        err = shown;
    }
    drop_secret(run);
    return err;
}

static void run_write_done(void *context, struct ml_str body, const struct ml_err *err)
{
    struct ml_run *run = context;
    const struct ml_script_binding *binding = &run->thread.script->binding;
    struct ml_err shown;
    err = show_without_secret(run, err, &shown);
    run->write = NULL;
    if (err)
        reads_give_up(run->reads, "a write of it failed");
    if (err || !run->awaited ||
        ml_expectations_shown(binding->expectations, ml_object_key(run->thread.object),
                              run->awaited)) {
        run_answered(run, body, err);
        return;
    }
    ml_budget_force(&run->thread.script->memory, body.len); /* cannot fail: the write is done */
    keep_body(run, body);
    run_wait_for_cache(run, run->awaited);
}

void run_read(struct ml_run *run, const struct ml_client_request *request)
{
    reads_give_up(run->reads, "it asks the server itself");
    struct ml_client_request mine = *request;
    mine.flow = run->thread.script->field_manager;
    mine.budget = &run->thread.script->memory;
    run->read = ml_client_send(run->thread.script->services->client, &mine, run_read_done, run);
}

/* Other servers fail for reasons of their own: the script sees these errors, except one: this
 * process has lost its right to act. */
static void run_http_done(void *context, struct ml_str answer, const struct ml_err *err)
{
    struct ml_run *run = context;
    run->http = NULL;
    run_got(run, answer, err, err && err->kind != ML_ECANCELED);
}

/* A process that has lost its Lease writes nothing anywhere. */
static int may_send_http(void *context, struct ml_err *err)
{
    const struct ml_run *run = context;
    if (!run->http_writes)
        return 0;
    return ml_client_ask_fence(run->thread.script->services->client, "ctx.http", run->what, err);
}

void run_http(struct ml_run *run, const struct ml_outbound_request *request, bool writes)
{
    struct ml_outbound_request mine = *request;
    reads_give_up(run->reads, "it asks another server");
    mine.budget = &run->thread.script->memory;
    mine.may_send = may_send_http;
    run->http_writes = writes;
    run->http = outbound_of(run)->send(outbound_of(run), &mine, run_http_done, run);
}

void run_write(struct ml_run *run, const struct ml_write *write, bool wait_for_cache)
{
    /* The expectations will hold these bytes. */
    size_t bytes = SCRIPT_WRITE_NOTED + write->request.ns.len + write->request.name.len;
    ml_budget_force(&run->thread.script->memory, bytes);
    run->charged += bytes;
    run->awaited = wait_for_cache ? write->informer : NULL;
    keep_secret(run, &write->request);
    struct ml_write mine = *write;
    mine.request.flow = run->thread.script->field_manager;
    mine.request.budget = &run->thread.script->memory;
    mine.check = run->thread.script->binding.check;
    run->write = ml_writer_send(run->thread.script->services, &mine, run_write_done, run);
}

static struct ml_run *start_run(struct ml_script *script, struct ml_object *object, bool finalizes,
                                const char *id, ml_script_done *done, void *context)
{
    ml_assert(script->is_controller && script->binding.kinds);
    struct ml_run *run = ml_new(struct ml_run);
    run->thread = (struct script_thread){
        .script = ml_script_ref(script), .run = run, .object = ml_object_ref(object)};
    run->finalizes = finalizes;
    run->reads = script_reads_new(script, object);
    if (script->declaration.wakes_all || finalizes)
        reads_give_up(run->reads, finalizes ? "it finalizes" : "everything wakes it");
    run->id = id;
    run->done = done;
    run->context = context;
    run->cpu_left_ns = SCRIPT_CPU_IN_ALL * script->limits.run_cpu_ns;
    ml_slice_init(&run->slice, run_goes_on, run);
    run->result.requeue_after_ns = run->result.requeue_at_ns = -1;
    if (acquire_coroutine(run) < 0) {
        finish_run_with_error(run, script->limit_hit);
        return NULL;
    }
    lua_pushcfunction(run->coroutine.L, run_main);
    return run_step(run) ? run : NULL;
}

struct ml_run *ml_script_reconcile(struct ml_script *script, struct ml_object *object,
                                   const char *id, ml_script_done *done, void *context)
{
    return start_run(script, object, false, id, done, context);
}

struct ml_run *ml_script_finalize(struct ml_script *script, struct ml_object *object,
                                  const char *id, ml_script_done *done, void *context)
{
    return start_run(script, object, true, id, done, context);
}

bool ml_script_writes(const struct ml_run *run)
{
    return run->write || (run->http && run->http_writes);
}

void ml_script_cancel(struct ml_run *run)
{
    if (run)
        run_end(run);
}
