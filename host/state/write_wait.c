/* Waits for one write to show in the cache. Called by expectations.c and writer.c. */
#include "state/write_wait.h"

#include "codec/json.h"
#include "state/informer_internal.h"

#define READ_DELAY_FIRST_NS (10 * ML_NS_PER_S)
#define READ_DELAY_MAX_NS   (300 * ML_NS_PER_S)

static void write_wait_stop(struct ml_write_wait *wait)
{
    ml_timer_stop(&wait->read_timer);
    if (wait->reading)
        ml_client_cancel(ml_take(&wait->reading));
}

/* `ready` may start the wait anew. */
static void write_wait_finish(struct ml_write_wait *wait)
{
    write_wait_stop(wait);
    free(ml_take(&wait->ns));
    free(ml_take(&wait->name));
    wait->ready(wait->context);
}

static void write_wait_on_seen(void *context)
{
    write_wait_finish(context);
}

static void write_wait_arm_read(struct ml_write_wait *wait)
{
    ml_timer_start(&wait->read_timer, wait->read_delay_ns);
    wait->read_delay_ns = ML_MIN(2 * wait->read_delay_ns, READ_DELAY_MAX_NS);
}

static bool write_wait_object_is_cached(const struct ml_write_wait *wait)
{
    ML_AUTO_FREE char *key = *wait->ns ? ml_asprintf("%s/%s", wait->ns, wait->name)
                                       : ml_strdup(wait->name);
    return ml_store_get(wait->informer->store, ml_str_of(key)) != NULL;
}

static bool write_wait_answer_shows_write(const struct ml_write_wait *wait, struct ml_str body,
                                          const struct ml_err *err)
{
    if (err)
        return err->kind == ML_ENOT_FOUND && !write_wait_object_is_cached(wait);
    ML_AUTO_FREE char *version = ml_json_find_string(body, "metadata", "resourceVersion", NULL);
    uint64_t rv = version ? ml_rv_parse(ml_str_of(version)) : 0;
    return rv != ML_RV_OPAQUE && rv >= wait->rv;
}

static void write_wait_on_read(void *context, struct ml_str body, const struct ml_err *err)
{
    struct ml_write_wait *wait = context;
    struct ml_informer *informer = wait->informer;
    wait->reading = NULL;
    if (ml_write_wait_over(wait)) /* the watch was faster, or the informer ended */
        return;
    if (!write_wait_answer_shows_write(wait, body, err)) {
        write_wait_arm_read(wait);
        return;
    }
    ml_seen_wait_cancel(&wait->seen);
    ml_task_defer(&wait->shown, informer->informers->opts.loop);
    /* Comes last: a listener that is notified of the change may cancel the wait. */
    if (!err)
        informer_learn(informer, body);
}

static void write_wait_on_read_due(void *context)
{
    struct ml_write_wait *wait = context;
    if (ml_write_wait_over(wait))
        return;
    const struct ml_client_request request = {
        .verb = ML_VERB_GET,
        .kind = wait->informer->kind,
        .ns = ml_str_of(wait->ns),
        .name = ml_str_of(wait->name),
        .yields = true,
    };
    wait->reading = ml_client_send(wait->informer->informers->opts.client, &request,
                                   write_wait_on_read, wait);
}

void ml_write_wait_start(struct ml_write_wait *wait, struct ml_informer *informer, struct ml_str ns,
                         struct ml_str name, uint64_t rv, void (*ready)(void *context),
                         void *context)
{
    struct ml_loop *loop = informer->informers->opts.loop;
    *wait = (struct ml_write_wait){
        .ready = ready,
        .context = context,
        .informer = informer,
        .ns = ml_str_dup(ns),
        .name = ml_str_dup(name),
        .rv = rv,
        .read_delay_ns = READ_DELAY_FIRST_NS,
    };
    ml_timer_init(&wait->read_timer, loop, write_wait_on_read_due, wait);
    ml_task_init(&wait->shown, write_wait_on_seen, wait);
    ml_seen_wait_start(&wait->seen, informer, ns, rv, write_wait_on_seen, wait);
    if (!ml_seen_wait_over(&wait->seen))
        write_wait_arm_read(wait);
}

void ml_write_wait_cancel(struct ml_write_wait *wait)
{
    if (!wait->ready)
        return;
    write_wait_stop(wait);
    ml_seen_wait_cancel(&wait->seen);
    ml_task_cancel(&wait->shown);
    free(ml_take(&wait->ns));
    free(ml_take(&wait->name));
}

bool ml_write_wait_over(const struct ml_write_wait *wait)
{
    return ml_seen_wait_over(&wait->seen);
}
