/* Which objects carry the finalizer of their controller, and the patches that add and remove it.
 * Called by reconcile.c, and by controller_removal.c, which decides what becomes of an object. */
#include "operator/finalizer.h"

#include "codec/json.h"
#include "kube/object.h"

bool ml_finalizer_carries(const struct ml_revision *revision, const struct ml_object *object)
{
    const struct ml_declaration *declaration = revision->declaration;
    return ml_object_has_finalizers(object) &&
           (ml_finalizers_have(object, ml_str_of(declaration->finalizer)) ||
            ml_finalizers_have_any(object, declaration->former_finalizers));
}

bool ml_finalizer_is_former(const struct ml_revision *revision, const struct ml_object *object)
{
    return ml_object_has_finalizers(object) &&
           ml_finalizers_have_any(object, revision->declaration->former_finalizers);
}

bool ml_finalizer_lacks(const struct ml_revision *revision, const struct ml_object *object)
{
    return revision->declaration->finalizes && !ml_object_deleting(object) &&
           !ml_finalizer_carries(revision, object);
}

struct ml_writer_call *ml_finalizer_write(struct ml_revision *revision, struct ml_object *object,
                                          bool add, ml_client_done *done, void *context)
{
    ML_AUTO(ml_buf_fini) struct ml_buf patch = ML_BUF_INIT;
    ml_finalizers_patch(object, ml_object_rv(object), ml_str_of(revision->declaration->finalizer),
                        revision->declaration->former_finalizers, add, &patch);
    const struct ml_write write = {
        .request =
            {
                .verb = ML_VERB_PATCH_MERGE,
                .kind = ml_revision_kind(revision),
                .ns = ml_object_namespace(object),
                .name = ml_object_name(object),
                .body = ml_buf_str(&patch),
                .yields = true,
                .budget = ml_script_budget(revision->script),
            },
        .expectations = revision->expectations,
        .informer = revision->informers[0],
        .key = ml_object_key(object),
    };
    return ml_writer_send(revision->cluster, &write, done, context);
}

char *ml_finalizer_version(const struct ml_object *object, struct ml_str answer)
{
    char *version = ml_json_find_string(answer, "metadata", "resourceVersion", NULL);
    return version ? version : ml_str_dup(ml_object_rv(object));
}

struct ml_str ml_finalizer_renew(const struct ml_object *object, const char *version,
                                 struct ml_str patch, struct ml_buf *out)
{
    struct ml_str status = ML_STR("{}");
    struct ml_json_writer writer;
    ml_json_find(patch, &status, "status", NULL);
    ml_json_writer_init(&writer, out);
    ml_json_begin_object(&writer);
    ml_json_key(&writer, ML_STR("metadata"));
    ml_json_begin_object(&writer);
    ml_json_put_string(&writer, "uid", ml_object_uid(object));
    ml_json_put_string(&writer, "resourceVersion", ml_str_of(version));
    ml_json_end_object(&writer);
    ml_json_put_raw(&writer, "status", status);
    ml_json_end_object(&writer);
    return ml_buf_str(out);
}
