#include "state/shard_lease.h"

#include "codec/json.h"
#include "state/lease_record.h"

static char *text_at(struct ml_str object, const char *under, const char *field)
{
    char *text = ml_json_find_string(object, under, field, NULL);
    return text ? text : ml_strdup("");
}

static bool id_of(struct ml_str object, const char *group, uint64_t *out)
{
    ML_AUTO_FREE char *name = ml_json_find_string(object, "metadata", "name", NULL);
    ML_AUTO_FREE char *label = ml_json_find_string(object, "metadata", "labels", SHARD_LABEL, NULL);
    size_t prefix = strlen(group);
    return name && label && strcmp(label, group) == 0 && strncmp(name, group, prefix) == 0 &&
           name[prefix] == '-' && shard_id_parse(ml_str_of(name + prefix + 1), out);
}

bool shard_lease_read(struct ml_str object, const char *group, struct shard_lease *out)
{
    struct lease_record record = {0};
    struct ml_err err;
    *out = (struct shard_lease){0};
    if (!id_of(object, group, &out->id) || lease_record_read(&record, object, &err) < 0)
        return false;
    ML_AUTO_FREE char *view = ml_json_find_string(object, "metadata", "annotations",
                                                  SHARD_ANNOTATION, NULL);
    out->opaque = !view || !shard_set_parse(ml_str_of(view), &out->view);
    out->uid = text_at(object, "metadata", "uid");
    out->rv = text_at(object, "metadata", "resourceVersion");
    out->holder = ml_take(&record.holder);
    out->duration_ns = record.duration_ns;
    lease_record_fini(&record);
    return true;
}

void shard_lease_fini(struct shard_lease *lease)
{
    free(lease->uid);
    free(lease->rv);
    free(lease->holder);
    *lease = (struct shard_lease){0};
}

char *shard_lease_name(const char *group, uint64_t id)
{
    char text[SHARD_ID_LEN + 1];
    shard_id_format(id, text);
    return ml_asprintf("%s-%s", group, text);
}

static void put_pair(struct ml_json_writer *writer, const char *under, const char *key,
                     const char *value)
{
    ml_json_key(writer, ml_str_of(under));
    ml_json_begin_object(writer);
    ml_json_put_string(writer, key, ml_str_of(value));
    ml_json_end_object(writer);
}

char *shard_lease_json(const struct shard_lease_text *text)
{
    ML_AUTO_FREE char *name = shard_lease_name(text->group, text->id);
    ML_AUTO_FREE char *view = shard_set_text(text->view);
    ML_AUTO(ml_buf_fini) struct ml_buf metadata = ML_BUF_INIT;
    struct ml_json_writer writer;
    ml_json_writer_init(&writer, &metadata);
    ml_json_begin_object(&writer);
    ml_json_put_string(&writer, "name", ml_str_of(name));
    ml_json_put_string(&writer, "namespace", ml_str_of(text->ns));
    if (text->rv) {
        ml_json_put_string(&writer, "uid", ml_str_of(text->uid));
        ml_json_put_string(&writer, "resourceVersion", ml_str_of(text->rv));
    }
    put_pair(&writer, "labels", SHARD_LABEL, text->group);
    put_pair(&writer, "annotations", SHARD_ANNOTATION, view);
    ml_json_end_object(&writer);
    const struct lease_claim claim = {
        .holder = text->holder,
        .duration_s = text->duration_s,
        .acquired = text->acquired,
        .renewed = text->renewed,
    };
    return lease_claim_json(&claim, ml_buf_str(&metadata));
}
