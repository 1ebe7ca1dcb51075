#include "state/reflector_internal.h"

#include <stdio.h>

#define SLOW_RETRY_NS (10 * ML_NS_PER_S) /* for what a person has to mend: 403, 404 */

static void run_step(struct ml_reflector *self)
{
    if (self->step.watch || self->step.stream)
        reflector_start_watch(self);
    else
        reflector_start_list(self);
}

static void retry_after(struct ml_reflector *self, int64_t delay_ns)
{
    self->retry_ns = ml_clock_monotonic(self->clock) + delay_ns;
    ml_timer_start(&self->retry, delay_ns);
}

static void on_retry(void *context)
{
    struct ml_reflector *self = context;
    ml_client_await_stop(&self->await);
    run_step(self);
}

/* The server could not be reached, and now answers somebody, or it is our turn to look. */
static void on_again(void *context, bool answered)
{
    struct ml_reflector *self = context;
    int64_t now_ns = ml_clock_monotonic(self->clock);
    struct ml_backoff first = {0};
    int64_t delay_ns = answered ? ml_backoff_next(&first, self->opts.random, now_ns) : 0;
    retry_after(self, ML_MIN(delay_ns, self->retry_ns - now_ns));
}

static void tell_trouble(struct ml_reflector *self, const struct ml_err *err, int64_t delay_ns)
{
    int kind = err ? err->kind : 0;
    if (kind == self->trouble.kind)
        return;
    self->trouble = err ? *err : ML_ERR_INIT;
    self->opts.handler->trouble(self->opts.context, err, delay_ns / ML_NS_PER_MS);
}

void reflector_works(struct ml_reflector *self)
{
    tell_trouble(self, NULL, 0);
}

/* How long to wait before `step`: what the server asked for, or our own backoff. */
static int64_t delay_of(struct ml_reflector *self, const struct ml_err *err)
{
    if (!self->step.wait)
        return 0;
    if (err && err->retry_after_ms >= 0) {
        int64_t asked_ns = ML_MIN(err->retry_after_ms, 60000) * ML_NS_PER_MS;
        asked_ns = ML_MAX(asked_ns, ML_NS_PER_S);
        return asked_ns +
               ml_random_between(self->opts.random, 0, asked_ns / 2); /* not all at once */
    }
    if (err && (err->kind == ML_ENOT_FOUND || err->kind == ML_EFORBIDDEN))
        return SLOW_RETRY_NS + ml_random_between(self->opts.random, 0, ML_NS_PER_S);
    return ml_backoff_next(&self->backoff, self->opts.random, ml_clock_monotonic(self->clock));
}

/* Ends that are mended by what follows at once, and that nobody has to know of. */
static bool is_quiet(enum reflector_end how)
{
    return how == WATCH_ENDED || how == WATCH_HASTY || how == WATCH_GONE || how == LIST_GONE ||
           how == LIST_PAGE_GONE || how == STREAM_REFUSED;
}

static bool lists_by_stream(const struct ml_reflector *self)
{
    return self->opts.streams && !self->opts.server->no_streams;
}

void reflector_end(struct ml_reflector *self, enum reflector_end how, const struct ml_err *err)
{
    const struct ml_reflector_opts *opts = &self->opts;
    bool watched = self->step.watch;
    self->step = reflector_next(&self->step, how, lists_by_stream(self));
    if (!self->version && !self->step.watch)
        self->step.any_version = true;
    opts->handler->turn(opts->context, watched, reflector_end_name(how), !self->step.watch);
    if (err && err->kind == ML_ENOT_FOUND)
        opts->handler->missing(opts->context);
    /* It had worked: what fails next is a trouble of its own, not one more of the last. */
    if (how == WATCH_ENDED)
        self->backoff = (struct ml_backoff){0};
    int64_t delay_ns = delay_of(self, err);
    if (err && !is_quiet(how))
        tell_trouble(self, err, delay_ns);
    retry_after(self, delay_ns);
    if (err && err->kind == ML_ENETWORK)
        ml_client_await(opts->client, &self->await);
}

bool reflector_is_gone(const struct ml_err *err)
{
    return err->kind == ML_EGONE || strcmp(err->reason, "ResourceVersionTooLarge") == 0;
}

static void set_version(struct ml_reflector *self, const char *version)
{
    if (!self->version || strcmp(self->version, version) != 0) {
        free(self->version);
        self->version = ml_strdup(version);
    }
    self->opts.handler->progress(self->opts.context, ml_rv_parse(ml_str_of(version)));
}

void reflector_advance(struct ml_reflector *self, const char *version)
{
    if (!self->version || !ml_rv_older(ml_str_of(version), ml_str_of(self->version)))
        set_version(self, version);
}

int reflector_publish(struct ml_reflector *self, struct ml_object *const *objects, size_t count,
                      const char *version, struct ml_err *err)
{
    const struct ml_reflector_opts *opts = &self->opts;
    int64_t now_ns = ml_clock_monotonic(self->clock);
    enum reflector_age age = reflector_epoch_judge(&self->epoch, self->version, version, now_ns);
    if (age == AGE_BEHIND) {
        ml_err_set(err, ML_EUNAVAILABLE,
                   "the server shows version %s, older than %s that it showed before: it is "
                   "behind, or was restored from a backup",
                   version, self->version);
        snprintf(err->reason, sizeof err->reason, "%s", REFLECTOR_BEHIND);
        return err->kind;
    }
    if (age == AGE_RESTORED)
        opts->handler->restored(opts->context, ml_str_of(self->version), ml_str_of(version));
    opts->handler->replace(opts->context, objects, count, ml_rv_parse(ml_str_of(version)));
    set_version(self, version);
    self->heard_ns = now_ns;
    return 0;
}

struct ml_reflector *ml_reflector_new(const struct ml_reflector_opts *opts)
{
    struct ml_reflector *self = ml_new(struct ml_reflector);
    self->opts = *opts;
    self->clock = ml_loop_clock(opts->loop);
    self->ns = ml_str_dup(opts->ns);
    self->name = ml_str_dup(opts->name);
    self->step = reflector_first(lists_by_stream(self));
    self->trouble = ML_ERR_INIT;
    ml_timer_init(&self->retry, opts->loop, on_retry, self);
    self->await = (struct ml_client_await){.again = on_again, .context = self};
    reflector_list_init(&self->list, &self->opts);
    reflector_watch_init(self);
    return self;
}

void ml_reflector_start(struct ml_reflector *self)
{
    run_step(self);
}

void ml_reflector_free(struct ml_reflector *self)
{
    if (!self)
        return;
    if (self->call)
        ml_client_cancel(self->call);
    ml_client_await_stop(&self->await);
    ml_timer_stop(&self->retry);
    ml_timer_stop(&self->idle);
    ml_json_lines_fini(&self->lines);
    reflector_list_fini(&self->list);
    reflector_stream_drop(self);
    reflector_epoch_fini(&self->epoch);
    free(self->version);
    free(self->ns);
    free(self->name);
    free(self);
}
