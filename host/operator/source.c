/* Where scripts come from: a path, which is read again whenever it may have changed, or a
 * ConfigMap, which an informer of that one object watches. */
#include "operator/source.h"

#include "codec/base64.h"
#include "codec/json.h"

#include <sys/stat.h>

/* ---- a path ---- */

struct path_source {
    struct ml_source source;
    struct ml_path_watch *watch;
    struct ml_err last;
};

static struct path_source *path_source_of(struct ml_source *source)
{
    return ml_container_of(source, struct path_source, source);
}

/* Of a folder; a script that is named alone has none. */
static void path_source_read_tests(struct path_source *self)
{
    struct ml_source *source = &self->source;
    struct stat info;
    const char *path = source->name;
    free(ml_take(&source->folder));
    ml_files_fini(&source->tests);
    source->tests_trouble = ML_ERR_INIT;
    if (stat(path, &info) < 0 || !S_ISDIR(info.st_mode))
        return;
    source->folder = ml_strdup(path);
    if (ml_files_read(&source->tests, &ml_files_tests, source->folder, &source->tests_trouble) < 0)
        ml_files_fini(&source->tests);
}

static bool path_source_read(void *context)
{
    struct path_source *self = context;
    ML_AUTO(ml_files_fini) struct ml_files files = ML_FILES_INIT;
    struct ml_err err = ML_ERR_INIT;
    bool read = ml_files_read(&files, &ml_files_scripts, self->source.name, &err) == 0;
    if (read) {
        path_source_read_tests(self);
        ml_source_notify_files(&self->source, &files);
    } else if (strcmp(err.message, self->last.message) != 0) {
        ml_source_notify_trouble(&self->source, &err);
    }
    self->last = err;
    return read && !ml_files_may_recover(&files);
}

static void path_again(struct ml_source *source)
{
    path_source_read(path_source_of(source));
}

static void path_start(struct ml_source *source, struct ml_services *services)
{
    struct path_source *self = path_source_of(source);
    self->watch = ml_path_watch_new(services->loop, source->name, path_source_read, self);
}

static void path_free(struct ml_source *source)
{
    struct path_source *self = path_source_of(source);
    ml_path_watch_free(self->watch);
    free(self);
}

static const struct ml_source_class path_class = {
    .start = path_start,
    .again = path_again,
    .free = path_free,
};

struct ml_source *ml_source_path_new(const char *path)
{
    struct path_source *self = ml_new(struct path_source);
    self->source.class = &path_class;
    self->source.name = ml_strdup(path);
    self->last = ML_ERR_INIT;
    return &self->source;
}

/* ---- a ConfigMap ---- */

#define ALLOW_ANNOTATION "moonloop.dev/allow-unknown-fields"

struct configmap_source {
    struct ml_source source;
    struct ml_services *services; /* from the start on */
    struct ml_informer *informer;
    struct ml_listener listener;
    struct ml_object *object; /* as last seen, for Events; NULL before */
    bool gone;                /* it was deleted since */
};

static struct configmap_source *configmap_source_of(struct ml_source *source)
{
    return ml_container_of(source, struct configmap_source, source);
}

/* `binary`: the values are base64, as kubectl stores files that are no UTF-8. */
static int configmap_collect_files(struct ml_files *files, const struct ml_files_kind *kind,
                                   struct ml_str data, bool binary, struct ml_err *err)
{
    ML_AUTO(ml_json_reader_fini) struct ml_json_reader reader;
    ML_AUTO(ml_buf_fini) struct ml_buf name = ML_BUF_INIT;
    ML_AUTO(ml_buf_fini) struct ml_buf text = ML_BUF_INIT, bytes = ML_BUF_INIT;
    ml_json_reader_init(&reader, data, 0);
    if (ml_json_next(&reader) != ML_JSON_OBJECT)
        return 0;
    while (ml_json_next(&reader) == ML_JSON_KEY) {
        ml_buf_clear(&name);
        ml_buf_clear(&text);
        ml_buf_clear(&bytes);
        ml_buf_append_str(&name, reader.text);
        struct ml_str raw = ml_json_skip(&reader);
        if (!kind->wanted(ml_buf_str(&name)) || !ml_json_to_string(raw, &text) ||
            (binary && !ml_base64_decode(ml_buf_str(&text), &bytes)))
            continue;
        int r = ml_files_add(files, kind, ml_buf_str(&name), ml_buf_str(binary ? &bytes : &text),
                             err);
        if (r < 0)
            return r;
    }
    return 0;
}

static int configmap_files(struct ml_str configmap, const struct ml_files_kind *kind,
                           struct ml_files *files, struct ml_err *err)
{
    struct ml_str data;
    int r = 0;
    if (ml_json_find(configmap, &data, "data", NULL))
        r = configmap_collect_files(files, kind, data, false, err);
    if (r == 0 && ml_json_find(configmap, &data, "binaryData", NULL))
        r = configmap_collect_files(files, kind, data, true, err);
    return r;
}

int ml_source_configmap_files(struct ml_str configmap, struct ml_files *files, struct ml_err *err)
{
    return configmap_files(configmap, &ml_files_scripts, files, err);
}

static void configmap_read_tests(struct ml_source *source, struct ml_str configmap)
{
    ml_files_fini(&source->tests);
    source->tests_trouble = ML_ERR_INIT;
    if (configmap_files(configmap, &ml_files_tests, &source->tests, &source->tests_trouble) < 0)
        ml_files_fini(&source->tests);
}

static void configmap_notify_files(struct configmap_source *self, struct ml_object *object)
{
    ML_AUTO(ml_buf_fini) struct ml_buf json = ML_BUF_INIT;
    ML_AUTO(ml_files_fini) struct ml_files files = ML_FILES_INIT;
    struct ml_err err = ML_ERR_INIT;
    ml_object_json(object, &json);
    struct ml_str rv = ml_object_rv(object);
    free(self->source.version);
    self->source.version = ml_str_dup(rv);
    free(self->source.removed);
    self->source.removed = ml_json_find_string(ml_buf_str(&json), "metadata", "annotations",
                                               ML_REMOVE_ANNOTATION, NULL);
    free(self->source.paused);
    self->source.paused = ml_json_find_string(ml_buf_str(&json), "metadata", "annotations",
                                              ML_PAUSED_ANNOTATION, NULL);
    free(self->source.rollback);
    self->source.rollback = ml_json_find_string(ml_buf_str(&json), "metadata", "annotations",
                                                ML_ROLLBACK_ANNOTATION, NULL);
    free(self->source.approved);
    self->source.approved = ml_json_find_string(ml_buf_str(&json), "metadata", "annotations",
                                                ML_APPROVE_ANNOTATION, NULL);
    free(self->source.rollout);
    self->source.rollout = ml_json_find_string(ml_buf_str(&json), "metadata", "annotations",
                                               ML_ROLLOUT_ANNOTATION, NULL);
    free(self->source.retry);
    self->source.retry = ml_json_find_string(ml_buf_str(&json), "metadata", "annotations",
                                             ML_RETRY_ANNOTATION, NULL);
    ML_AUTO_FREE char *allows = ml_json_find_string(ml_buf_str(&json), "metadata", "annotations",
                                                    ALLOW_ANNOTATION, NULL);
    self->source.allows_unknown_names = allows && strcmp(allows, "true") == 0;
    configmap_read_tests(&self->source, ml_buf_str(&json));
    int r = ml_source_configmap_files(ml_buf_str(&json), &files, &err);
    if (r == 0 && files.count + files.refused_count == 0)
        r = ml_err_set(&err, ML_ENOT_FOUND, "%s has no key that ends in .lua", self->source.name);
    if (r < 0)
        ml_source_notify_trouble(&self->source, &err);
    else
        ml_source_notify_files(&self->source, &files);
}

static void configmap_notify_missing(struct configmap_source *self, const char *how)
{
    struct ml_err err;
    ml_err_set(&err, ML_ENOT_FOUND, "%s %s", self->source.name, how);
    ml_source_notify_trouble(&self->source, &err);
}

static void configmap_on_change(void *context, struct ml_informer *informer, struct ml_object *old,
                                struct ml_object *new)
{
    struct configmap_source *self = context;
    (void)informer;
    (void)old;
    self->gone = !new;
    if (!new) {
        free(ml_take(&self->source.removed));
        configmap_notify_missing(self, "was deleted");
        return;
    }
    ml_object_unref(self->object);
    self->object = ml_object_ref(new);
    configmap_notify_files(self, new);
}

static void configmap_on_synced(void *context, struct ml_informer *informer)
{
    if (ml_store_len(ml_informer_store(informer)) == 0)
        configmap_notify_missing(context, "does not exist yet");
}

static void configmap_again(struct ml_source *source)
{
    struct configmap_source *self = configmap_source_of(source);
    if (self->object && !self->gone)
        configmap_notify_files(self, self->object);
}

static void configmap_start(struct ml_source *source, struct ml_services *services)
{
    struct configmap_source *self = configmap_source_of(source);
    self->services = services;
    self->informer = ml_informers_get_scoped(services->informers, &ml_kind_configmap,
                                             self->source.ns, self->source.configmap);
    self->listener = (struct ml_listener){
        .change = configmap_on_change,
        .synced = configmap_on_synced,
        .context = self,
    };
    ml_informer_listen(self->informer, &self->listener);
}

static void configmap_report(struct ml_source *source, bool warning, const char *reason,
                             const char *note)
{
    struct configmap_source *self = configmap_source_of(source);
    struct ml_event event = {
        .about = {.api_version = ML_STR("v1"),
                  .kind = ML_STR("ConfigMap"),
                  .ns = self->source.ns,
                  .name = self->source.configmap},
        .warning = warning,
        .numbers_vary = true,
        .reason = ml_str_of(reason),
        .action = ML_STR("LoadScript"),
        .note = ml_str_of(note),
    };
    if (self->object) {
        event.about.uid = ml_object_uid(self->object);
        event.about.rv = ml_object_rv(self->object);
    }
    ml_recorder_event(self->services->recorder, &event);
}

static void configmap_free(struct ml_source *source)
{
    struct configmap_source *self = configmap_source_of(source);
    if (self->informer) {
        ml_informer_unlisten(&self->listener);
        ml_informer_put(self->informer);
    }
    ml_object_unref(self->object);
    free(self);
}

static const struct ml_source_class configmap_class = {
    .start = configmap_start,
    .report = configmap_report,
    .again = configmap_again,
    .free = configmap_free,
};

int ml_source_configmap_check(const char *where, struct ml_err *err)
{
    struct ml_str name = ml_str_of(where);
    struct ml_str ns = ml_str_cut(&name, '/');
    if (ml_name_valid(ns) && ml_name_valid(name))
        return 0;
    return ml_err_set(err, ML_EINVALID,
                      "--scripts-configmap %s: expected NAMESPACE/NAME of a ConfigMap", where);
}

struct ml_source *ml_source_configmap_new(const char *where)
{
    struct configmap_source *self = ml_new(struct configmap_source);
    self->source.class = &configmap_class;
    self->source.name = ml_asprintf("configmap %s", where);
    self->source.configmap = ml_str_of(self->source.name + strlen("configmap "));
    self->source.ns = ml_str_cut(&self->source.configmap, '/');
    return &self->source;
}
