/* The records of a controller's keys: the map that finds them, the references that keep them, and
 * the three small parts that have no file of their own. */
#include "state/key.h"

struct ml_str ml_key_str(const struct ml_key *key)
{
    return (struct ml_str){key->bytes, key->len};
}

struct ml_key *ml_keys_find(const struct ml_keys *self, struct ml_str name)
{
    return ml_map_get(&self->by_name, name);
}

static struct ml_key *key_new(struct ml_keys *self, struct ml_str name)
{
    ml_assert(name.len <= UINT32_MAX);
    struct ml_key *key = ml_zalloc(sizeof *key + name.len);
    key->keys = self;
    key->len = (uint32_t)name.len;
    memcpy(key->bytes, name.ptr, name.len);
    ml_map_put(&self->by_name, ml_key_str(key), key);
    return key;
}

struct ml_key *ml_keys_ref(struct ml_keys *self, struct ml_str name)
{
    struct ml_key *key = ml_keys_find(self, name);
    if (!key)
        key = key_new(self, name);
    key->refs++;
    return key;
}

void ml_key_unref(struct ml_key *key)
{
    if (--key->refs > 0)
        return;
    ml_map_remove(&key->keys->by_name, ml_key_str(key));
    free(key);
}

size_t ml_keys_len(const struct ml_keys *self)
{
    return self->by_name.len;
}

void ml_keys_fini(struct ml_keys *self)
{
    ml_assert(self->by_name.len == 0);
    ml_map_fini(&self->by_name);
}

/* ---- failures ---- */

static void free_failures(struct ml_key *key)
{
    if (!key || !key->failures)
        return;
    free(ml_take(&key->failures));
    ml_key_unref(key);
}

struct ml_key_failures *ml_keys_failures(struct ml_keys *self, struct ml_str name)
{
    struct ml_key *key = ml_keys_find(self, name);
    if (key && key->failures)
        return key->failures;
    key = ml_keys_ref(self, name);
    key->failures = ml_new(struct ml_key_failures);
    return key->failures;
}

struct ml_repeat ml_keys_reconciled(struct ml_keys *self, struct ml_str name)
{
    struct ml_key *key = ml_keys_find(self, name);
    if (!key || !key->failures)
        return (struct ml_repeat){0};
    struct ml_repeat was = key->failures->reconcile;
    ml_repeat_over(&key->failures->reconcile);
    if (key->failures->slowed_ns == 0)
        free_failures(key);
    return was;
}

void ml_keys_forget_failures(struct ml_keys *self, struct ml_str name)
{
    free_failures(ml_keys_find(self, name));
}

void ml_keys_forget_all_failures(struct ml_keys *self)
{
    ml_keys_each(self, key) free_failures(key);
}

void ml_keys_renew_failures(struct ml_keys *self)
{
    ml_keys_each(self, key)
    {
        struct ml_key_failures *failures = key->failures;
        if (!failures)
            continue;
        ml_repeat_over(&failures->reconcile);
        ml_repeat_over(&failures->slowed);
        if (failures->slowed_ns == 0)
            free_failures(key);
    }
}

/* ---- a trial ---- */

struct ml_key_trial *ml_keys_find_trial(const struct ml_keys *self, struct ml_str name)
{
    const struct ml_key *key = ml_keys_find(self, name);
    return key ? key->trial : NULL;
}

struct ml_key_trial *ml_keys_trial(struct ml_keys *self, struct ml_str name)
{
    struct ml_key *key = ml_keys_find(self, name);
    if (key && key->trial)
        return key->trial;
    key = ml_keys_ref(self, name);
    key->trial = ml_new(struct ml_key_trial);
    return key->trial;
}

static void free_trial(struct ml_key *key)
{
    if (!key || !key->trial)
        return;
    free(ml_take(&key->trial));
    ml_key_unref(key);
}

void ml_keys_forget_trial(struct ml_keys *self, struct ml_str name)
{
    free_trial(ml_keys_find(self, name));
}

void ml_keys_forget_all_trials(struct ml_keys *self)
{
    ml_keys_each(self, key) free_trial(key);
}

/* ---- the cause of the next run ---- */

void ml_keys_set_cause(struct ml_keys *self, struct ml_str name, struct ml_cause cause)
{
    struct ml_key *key = ml_keys_find(self, name);
    if (!key || !key->cause.what)
        key = ml_keys_ref(self, name);
    else
        cause.at_ns = ML_MIN(cause.at_ns, key->cause.at_ns);
    free(key->cause.object);
    key->cause = cause;
}

struct ml_cause ml_keys_take_cause(struct ml_keys *self, struct ml_str name)
{
    struct ml_key *key = ml_keys_find(self, name);
    if (!key || !key->cause.what)
        return (struct ml_cause){NULL, NULL, 0};
    struct ml_cause cause = key->cause;
    key->cause = (struct ml_cause){NULL, NULL, 0};
    ml_key_unref(key);
    return cause;
}

void ml_keys_forget_cause(struct ml_keys *self, struct ml_str name)
{
    free(ml_keys_take_cause(self, name).object);
}

void ml_keys_forget_all_causes(struct ml_keys *self)
{
    ml_keys_each(self, key) ml_keys_forget_cause(self, ml_key_str(key));
}
