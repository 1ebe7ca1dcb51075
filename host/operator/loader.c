#include "operator/loader.h"

/* A set, and what came of it as far as it is loaded. */
struct round {
    struct ml_files files;
    struct ml_batch batch;
};

struct ml_loader {
    struct ml_cluster *cluster;
    struct ml_script_limits limits;
    struct ml_crash_marker *marker;
    struct ml_source *source;
    const struct ml_loader_handler *handler;
    void *context;
    struct ml_payer payer;
    struct ml_turn turn;
    struct round *now;    /* NULL: nothing is on its way */
    struct round *before; /* was left when `now` came; NULL: none was */
};

static void round_free(struct round *round)
{
    if (!round)
        return;
    ml_batch_fini(&round->batch);
    ml_files_fini(&round->files);
    free(round);
}

/* What the set before had loaded already, from the same text. */
static bool known_before(const struct ml_loader *self, size_t index, struct ml_batch_entry *entry)
{
    const struct round *before = self->before;
    struct ml_str name = self->now->files.files[index].name;
    for (size_t i = 0; before && i < before->files.count; i++) {
        struct ml_script *script = before->batch.entries[i].script;
        if (!script || !ml_str_eq(before->files.files[i].name, name) ||
            ml_batch_fingerprint(&before->files, script) !=
                ml_batch_fingerprint(&self->now->files, script))
            continue;
        *entry = before->batch.entries[i];
        ml_script_ref(script);
        return true;
    }
    return false;
}

static bool known(void *context, size_t index, struct ml_batch_entry *entry)
{
    const struct ml_loader *self = context;
    return self->handler->known(self->context, self->source, &self->now->batch, index, entry) ||
           known_before(self, index, entry);
}

static bool late(void *context, const struct ml_script_file *file)
{
    const struct ml_loader *self = context;
    return self->handler->late(self->context, self->source, file);
}

static void on_judged(void *context, size_t index)
{
    const struct ml_loader *self = context;
    self->handler->judged(self->context, self->source, &self->now->batch, index);
}

static bool last_good(void *context, size_t index, struct ml_files *out)
{
    const struct ml_loader *self = context;
    return self->handler->last_good(self->context, self->source, &self->now->batch, index, out);
}

static void on_turn(void *context)
{
    struct ml_loader *self = context;
    if (ml_batch_step(&self->now->batch)) {
        ml_turn_wait(&self->turn, &self->payer);
        return;
    }
    struct round *done = ml_take(&self->now);
    round_free(ml_take(&self->before));
    self->handler->loaded(self->context, self->source, &done->batch);
    round_free(done);
}

static void on_idle(void *context)
{
    (void)context; /* whenever there is something to load, a turn waits */
}

struct ml_loader *ml_loader_new(const struct ml_loader_opts *opts)
{
    struct ml_loader *self = ml_new(struct ml_loader);
    self->cluster = opts->cluster;
    self->limits = *opts->limits;
    self->limits.load_payer = &self->payer;
    self->marker = opts->marker;
    self->source = opts->source;
    self->handler = opts->handler;
    self->context = opts->context;
    ml_payer_init(&self->payer, self->cluster->turns, on_idle, self);
    ml_turn_init(&self->turn, on_turn, self);
    return self;
}

void ml_loader_free(struct ml_loader *self)
{
    if (!self)
        return;
    ml_turn_cancel(&self->turn);
    ml_payer_fini(&self->payer);
    round_free(self->now);
    round_free(self->before);
    free(self);
}

void ml_loader_load(struct ml_loader *self, const struct ml_files *files)
{
    if (self->now && ml_files_same(&self->now->files, files))
        return;
    const struct ml_batch_opts opts = {
        .cluster = self->cluster,
        .limits = &self->limits,
        .marker = self->marker,
        .known = known,
        .last_good = last_good,
        .late = late,
        .judged = on_judged,
        .context = self,
    };
    struct round *round = ml_new(struct round);
    ml_files_copy(&round->files, files);
    ml_batch_begin(&round->batch, &round->files, &opts);
    if (self->now) {
        round_free(self->before);
        self->before = self->now;
    }
    self->now = round;
    if (!ml_turn_waits(&self->turn))
        ml_turn_wait(&self->turn, &self->payer);
}

bool ml_loader_busy(const struct ml_loader *self)
{
    return self->now != NULL;
}
