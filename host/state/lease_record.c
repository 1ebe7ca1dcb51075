#include "state/lease_record.h"

#include "codec/json.h"

#define DURATION_S_MAX INT64_C(2147483647) /* the field is an int32 */

const struct ml_kind lease_kind = {
    "coordination.k8s.io/v1", "coordination.k8s.io", "v1", "Lease", "leases", true, false,
};

static char *text_of(struct ml_str object, const char *field)
{
    char *text = ml_json_find_string(object, "spec", field, NULL);
    return text ? text : ml_strdup("");
}

static int64_t number_of(struct ml_str object, const char *field)
{
    struct ml_str raw;
    int64_t value;
    if (!ml_json_find(object, &raw, "spec", field, NULL) || !ml_str_to_i64(raw, &value) ||
        value < 0 || value > DURATION_S_MAX)
        return 0;
    return value;
}

int lease_record_read(struct lease_record *record, struct ml_str object, struct ml_err *err)
{
    struct ml_str metadata, spec;
    int r = ml_json_check(object, 0, err);
    if (r < 0)
        return ml_err_wrap(err, "the Lease cannot be read");
    if (!ml_json_find(object, &metadata, "metadata", NULL) || *metadata.ptr != '{')
        return ml_err_set(err, ML_EINVALID, "the Lease cannot be read: it has no metadata");
    if (!ml_json_find(object, &spec, "spec", NULL))
        spec = ML_STR("");
    lease_record_fini(record);
    *record = (struct lease_record){
        .metadata = ml_str_dup(metadata),
        .spec = ml_str_dup(spec),
        .holder = text_of(object, "holderIdentity"),
        .acquired = text_of(object, "acquireTime"),
        .duration_ns = number_of(object, "leaseDurationSeconds") * ML_NS_PER_S,
        .transitions = number_of(object, "leaseTransitions"),
    };
    return 0;
}

void lease_record_fini(struct lease_record *record)
{
    free(record->metadata);
    free(record->spec);
    free(record->holder);
    free(record->acquired);
    *record = (struct lease_record){0};
}

char *lease_claim_json(const struct lease_claim *claim, struct ml_str metadata)
{
    struct ml_buf json = ML_BUF_INIT;
    struct ml_json_writer writer;
    ml_json_writer_init(&writer, &json);
    ml_json_begin_object(&writer);
    ml_json_put_string(&writer, "apiVersion", ML_STR("coordination.k8s.io/v1"));
    ml_json_put_string(&writer, "kind", ML_STR("Lease"));
    ml_json_put_raw(&writer, "metadata", metadata);
    ml_json_key(&writer, ML_STR("spec"));
    ml_json_begin_object(&writer);
    if (*claim->holder)
        ml_json_put_string(&writer, "holderIdentity", ml_str_of(claim->holder));
    ml_json_put_int(&writer, "leaseDurationSeconds", claim->duration_s);
    ml_json_put_string(&writer, "acquireTime", ml_str_of(claim->acquired));
    ml_json_put_string(&writer, "renewTime", ml_str_of(claim->renewed));
    ml_json_put_int(&writer, "leaseTransitions", claim->transitions);
    ml_json_end_object(&writer);
    ml_json_end_object(&writer);
    return ml_buf_take(&json);
}
