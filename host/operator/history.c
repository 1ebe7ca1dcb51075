/* Keeps the revisions of one ConfigMap of scripts in another, with one key for each:
 * "CONTROLLER.REVISION". The value is JSON:
 *
 *     {"since": "2026-11-29T15:04:05.000000Z", "way": "edit", "by": "kubectl-edit",
 *      "resourceVersion": "48211", "file": "site.lua",
 *      "files": {"site.lua": "…", "parts.lua": "…"}}
 *
 * One that was stopped has "why" in place of the last two, and "way" says "stopped".
 *
 * One write at a time: the revision is put in, and those that make room for it are taken out, by a
 * patch of the version that the cache has. */
#include "operator/history.h"

#include "base/repeat.h"
#include "codec/json.h"
#include "codec/rfc3339.h"
#include "kube/client.h"

#define METADATA    "application/json;as=PartialObjectMetadata;v=v1;g=meta.k8s.io"
#define PENDING_MAX 32
#define SOON_NS     (2 * ML_NS_PER_S)  /* another replica wrote, or this one does not reconcile */
#define LATER_NS    (30 * ML_NS_PER_S) /* after an error */
#define SINCE_STEP  ML_NS_PER_MS

/* A revision that is to be written. */
struct pending {
    char *controller, *revision, *version;
    const char *way;
    char *key;  /* in the ConfigMap */
    char *rest; /* JSON: "file" and "files", or "why", without the braces around them */
    bool stopped;
};

struct ml_history {
    struct ml_history_opts opts;
    char *name, *key, *label; /* of the ConfigMap: its name, "ns/name", "ConfigMap ns/name" */
    struct ml_informer *informer;
    struct ml_listener listener;
    struct pending pending[PENDING_MAX]; /* in the order in which they went live */
    size_t pending_count;
    struct ml_client_call *call; /* NULL: none is under way */
    char *by;                    /* who wrote the version of the first pending one; or NULL */
    struct ml_timer again;
    struct ml_repeat trouble;
    bool is_known;
};

/* ---- what is kept ---- */

struct kept {
    struct ml_str controller, revision; /* of `key` */
    int64_t since_ns;
    char *key, *text; /* JSON */
    char *file;
    char *why; /* it was stopped; NULL: it was not */
};

struct kept_list {
    struct ml_buf json; /* of the ConfigMap */
    struct kept *items; /* newest first */
    size_t len, capacity;
    size_t bytes; /* of all keys and values, those that cannot be read included */
};

static void kept_list_fini(struct kept_list *list)
{
    for (size_t i = 0; i < list->len; i++) {
        free(list->items[i].key);
        free(list->items[i].text);
        free(list->items[i].file);
        free(list->items[i].why);
    }
    free(list->items);
    ml_buf_fini(&list->json);
}

/* Splits "CONTROLLER.REVISION". */
static bool split_key(struct kept *kept)
{
    struct ml_str key = ml_str_of(kept->key);
    if (key.len < ML_REVISION_LEN + 2 || key.ptr[key.len - ML_REVISION_LEN - 1] != '.')
        return false;
    kept->controller = (struct ml_str){key.ptr, key.len - ML_REVISION_LEN - 1};
    kept->revision = (struct ml_str){key.ptr + key.len - ML_REVISION_LEN, ML_REVISION_LEN};
    return true;
}

static bool kept_is_newer(const struct kept *a, const struct kept *b)
{
    return a->since_ns != b->since_ns ? a->since_ns > b->since_ns : strcmp(a->key, b->key) < 0;
}

/* False: one of the texts cannot be read. */
static bool read_files(struct ml_str value, const char *file, struct ml_files *out)
{
    ML_AUTO(ml_json_reader_fini) struct ml_json_reader reader;
    struct ml_err err;
    struct ml_str files = {"", 0};
    bool is_good = true;
    *out = ML_FILES_INIT;
    (void)ml_json_find(value, &files, "files", NULL);
    ml_json_reader_init(&reader, files, 0);
    if (ml_json_next(&reader) != ML_JSON_OBJECT)
        return false;
    while (is_good && ml_json_next(&reader) == ML_JSON_KEY) {
        ML_AUTO_FREE char *name = ml_str_dup(reader.text);
        ML_AUTO(ml_buf_fini) struct ml_buf text = ML_BUF_INIT;
        is_good = ml_json_to_string(ml_json_skip(&reader), &text) &&
                  ml_files_add(out, &ml_files_scripts, ml_str_of(name), ml_buf_str(&text), &err) ==
                      0;
    }
    out->only = ml_strdup(file);
    if (is_good && out->refused_count == 0 && ml_files_have(out, file))
        return true;
    ml_files_fini(out);
    return false;
}

/* Takes over key and text. It passes over what somebody else has put there. */
static void kept_list_add(struct kept_list *list, char *key, char *text)
{
    struct kept kept = {.key = key, .text = text};
    ML_AUTO(ml_files_fini) struct ml_files files = ML_FILES_INIT;
    struct ml_str json = ml_str_of(text);
    ML_AUTO_FREE char *since = ml_json_find_string(json, "since", NULL);
    list->bytes += strlen(key) + json.len;
    kept.file = ml_json_find_string(json, "file", NULL);
    kept.why = ml_json_find_string(json, "why", NULL);
    if (!since || !split_key(&kept) || !ml_rfc3339_parse(ml_str_of(since), &kept.since_ns) ||
        ml_json_check(json, 0, &(struct ml_err){0}) < 0 ||
        (!kept.why && (!kept.file || !read_files(json, kept.file, &files)))) {
        free(kept.file);
        free(kept.why);
        free(key);
        free(text);
        return;
    }
    list->items = ml_grow(list->items, &list->capacity, list->len, sizeof *list->items);
    size_t at = list->len++;
    for (; at > 0 && kept_is_newer(&kept, &list->items[at - 1]); at--)
        list->items[at] = list->items[at - 1];
    list->items[at] = kept;
}

static struct ml_object *cached_configmap(const struct ml_history *self)
{
    return ml_store_get(ml_informer_store(self->informer), ml_str_of(self->key));
}

static void kept_list_parse(struct kept_list *list, struct ml_str configmap)
{
    ML_AUTO(ml_json_reader_fini) struct ml_json_reader reader;
    struct ml_str data = {"", 0};
    (void)ml_json_find(configmap, &data, "data", NULL);
    ml_json_reader_init(&reader, data, 0);
    if (ml_json_next(&reader) != ML_JSON_OBJECT)
        return;
    while (ml_json_next(&reader) == ML_JSON_KEY) {
        char *key = ml_str_dup(reader.text);
        ML_AUTO(ml_buf_fini) struct ml_buf text = ML_BUF_INIT;
        if (ml_json_to_string(ml_json_skip(&reader), &text))
            kept_list_add(list, key, ml_buf_take(&text));
        else
            free(key);
    }
}

static void kept_list_read(const struct ml_history *self, struct kept_list *list)
{
    struct ml_object *object = cached_configmap(self);
    *list = (struct kept_list){.json = ML_BUF_INIT};
    if (object)
        ml_object_json(object, &list->json);
    kept_list_parse(list, ml_buf_str(&list->json));
}

static const struct kept *kept_list_newest(const struct kept_list *list, struct ml_str controller)
{
    for (size_t i = 0; i < list->len; i++)
        if (!list->items[i].why && ml_str_eq(list->items[i].controller, controller))
            return &list->items[i];
    return NULL;
}

static const struct kept *kept_list_find(const struct kept_list *list, struct ml_str controller,
                                         struct ml_str revision)
{
    for (size_t i = 0; i < list->len; i++)
        if (ml_str_eq(list->items[i].controller, controller) &&
            ml_str_eq(list->items[i].revision, revision))
            return &list->items[i];
    return NULL;
}

/* ---- reading ---- */

bool ml_history_is_known(const struct ml_history *self)
{
    return self->is_known;
}

bool ml_history_read(const struct ml_history *self, struct ml_str controller,
                     struct ml_str revision, struct ml_files *out)
{
    ML_AUTO(kept_list_fini) struct kept_list list;
    kept_list_read(self, &list);
    const struct kept *kept = kept_list_find(&list, controller, revision);
    return kept && !kept->why && read_files(ml_str_of(kept->text), kept->file, out);
}

bool ml_history_is_stopped(const struct ml_history *self, struct ml_str controller,
                           struct ml_str revision, struct ml_buf *why)
{
    ML_AUTO(kept_list_fini) struct kept_list list;
    kept_list_read(self, &list);
    const struct kept *kept = kept_list_find(&list, controller, revision);
    if (!kept || !kept->why)
        return false;
    ml_buf_puts(why, kept->why);
    return true;
}

bool ml_history_is_newest(const struct ml_history *self, struct ml_str controller,
                          struct ml_str revision)
{
    ML_AUTO(kept_list_fini) struct kept_list list;
    kept_list_read(self, &list);
    const struct kept *newest = kept_list_newest(&list, controller);
    return newest && ml_str_eq(newest->revision, revision);
}

bool ml_history_read_newest(const struct ml_history *self, struct ml_str file, size_t *n,
                            struct ml_files *out)
{
    ML_AUTO(kept_list_fini) struct kept_list list;
    kept_list_read(self, &list);
    for (size_t i = 0; i < list.len; i++)
        if (!list.items[i].why && ml_str_is(file, list.items[i].file) && (*n)-- == 0)
            return read_files(ml_str_of(list.items[i].text), list.items[i].file, out);
    return false;
}

void ml_kept_list(struct ml_str configmap, struct ml_str controller, struct ml_buf *out)
{
    ML_AUTO(kept_list_fini) struct kept_list list = {.json = ML_BUF_INIT};
    size_t count = 0;
    kept_list_parse(&list, configmap);
    for (size_t i = 0; i < list.len; i++)
        if (!list.items[i].why && ml_str_eq(list.items[i].controller, controller))
            ml_buf_printf(out, "%s" ML_STR_FMT, count++ > 0 ? ", " : "",
                          ML_STR_ARG(list.items[i].revision));
}

void ml_history_list(const struct ml_history *self, struct ml_str controller, struct ml_buf *out)
{
    ML_AUTO(ml_buf_fini) struct ml_buf json = ML_BUF_INIT;
    struct ml_object *object = cached_configmap(self);
    size_t before = out->len;
    if (object)
        ml_object_json(object, &json);
    ml_kept_list(ml_buf_str(&json), controller, out);
    if (out->len == before)
        ml_buf_puts(out, "none");
}

/* ---- writing ---- */

static void drop_first(struct ml_history *self)
{
    struct pending *first = &self->pending[0];
    free(first->controller);
    free(first->revision);
    free(first->version);
    free(first->key);
    free(first->rest);
    memmove(first, first + 1, --self->pending_count * sizeof *first);
    free(ml_take(&self->by));
}

static void write_again(struct ml_history *self, int64_t wait_ns)
{
    if (self->pending_count > 0)
        ml_timer_start(&self->again, wait_ns);
}

/* `err` NULL: it was written. */
static void end_write(struct ml_history *self, const struct ml_err *err)
{
    const struct ml_services *services = self->opts.services;
    if (!err) {
        ml_repeat_over(&self->trouble);
        drop_first(self);
        write_again(self, 0);
        return;
    }
    bool is_race = err->kind == ML_ECONFLICT || err->kind == ML_EALREADY_EXISTS ||
                   err->kind == ML_ENOT_FOUND || err->kind == ML_ECANCELED;
    int64_t wait_ns = is_race ? SOON_NS : LATER_NS;
    if (!is_race && ml_repeat_failed(&self->trouble, ml_str_of(err->message),
                                     ml_clock_monotonic(services->clock)))
        ml_error(services->log, "scripts",
                 self->pending[0].stopped
                     ? "it is not kept that a revision was stopped; a restart tries it again"
                     : "a revision is not kept; a rollback to it is not possible",
                 ML_S("controller", self->pending[0].controller),
                 ML_S("revision", self->pending[0].revision), ML_S("source", self->label),
                 ML_ERR_FIELDS(err), ML_REPEAT_FIELDS(&self->trouble, wait_ns));
    write_again(self, wait_ns);
}

static void on_written(void *context, struct ml_str body, const struct ml_err *err)
{
    struct ml_history *self = context;
    self->call = NULL;
    if (!err)
        ml_informer_learn(self->informer, body);
    end_write(self, err);
}

/* The field manager that wrote this version; NULL: it has changed again since, or says nothing. */
static char *find_last_writer(struct ml_str metadata, const char *version)
{
    struct ml_str entries = {"", 0};
    char *writer = NULL;
    int64_t latest_ns = INT64_MIN, time_ns;
    ML_AUTO_FREE char *is = ml_json_find_string(metadata, "metadata", "resourceVersion", NULL);
    if (!is || strcmp(is, version) != 0)
        return NULL;
    (void)ml_json_find(metadata, &entries, "metadata", "managedFields", NULL);
    ML_AUTO(ml_json_reader_fini) struct ml_json_reader reader;
    ml_json_reader_init(&reader, entries, 0);
    if (ml_json_next(&reader) != ML_JSON_ARRAY)
        return NULL;
    for (struct ml_str entry; (entry = ml_json_skip(&reader)).len > 0;) {
        ML_AUTO_FREE char *time = ml_json_find_string(entry, "time", NULL);
        if (!time || !ml_rfc3339_parse(ml_str_of(time), &time_ns) || time_ns < latest_ns)
            continue;
        latest_ns = time_ns;
        free(writer);
        writer = ml_json_find_string(entry, "manager", NULL);
    }
    return writer;
}

static void on_writer_read(void *context, struct ml_str body, const struct ml_err *err)
{
    struct ml_history *self = context;
    self->call = NULL;
    self->by = err ? NULL : find_last_writer(body, self->pending[0].version);
    if (!self->by)
        self->by = ml_strdup("");
    write_again(self, 0);
}

static void ask_for_writer(struct ml_history *self)
{
    const struct ml_client_request request = {
        .verb = ML_VERB_GET,
        .kind = &ml_kind_configmap,
        .ns = self->opts.ns,
        .name = self->opts.name,
        .accept = METADATA,
    };
    self->call = ml_client_send(self->opts.services->client, &request, on_writer_read, self);
}

/* Later than what is kept, even when the clock was set back. */
static int64_t since_of_new(const struct ml_history *self, const struct kept_list *list)
{
    int64_t now_ns = ml_clock_wall(self->opts.services->clock);
    return list->len > 0 ? ML_MAX(now_ns, list->items[0].since_ns + SINCE_STEP) : now_ns;
}

/* The value of the same key that is kept already, or empty. */
static struct ml_str find_former(const struct ml_history *self, const struct kept_list *list)
{
    for (size_t i = 0; i < list->len; i++)
        if (strcmp(list->items[i].key, self->pending[0].key) == 0)
            return ml_str_of(list->items[i].text);
    return ML_STR("");
}

static void write_value(const struct ml_history *self, const struct kept_list *list,
                        struct ml_buf *out)
{
    const struct pending *first = &self->pending[0];
    struct ml_str former = find_former(self, list);
    bool is_new = first->version != NULL;
    ML_AUTO_FREE char *by = is_new ? ml_strdup(self->by) : ml_json_find_string(former, "by", NULL);
    ML_AUTO_FREE char *version = is_new ? ml_strdup(first->version)
                                        : ml_json_find_string(former, "resourceVersion", NULL);
    char since[ML_RFC3339_MICRO_LEN + 1];
    struct ml_json_writer writer;
    ml_rfc3339_format_micro(since_of_new(self, list), since);
    ml_json_writer_init(&writer, out);
    ml_json_begin_object(&writer);
    ml_json_put_string(&writer, "since", ml_str_of(since));
    ml_json_put_string(&writer, "way", ml_str_of(first->way));
    if (by && *by)
        ml_json_put_string(&writer, "by", ml_str_of(by));
    if (version)
        ml_json_put_string(&writer, "resourceVersion", ml_str_of(version));
    ml_buf_printf(out, ",%s}", first->rest);
}

/* Marks the revisions that are dropped, so that a value of that size has room. False: it has none.
 */
static bool make_room(const struct ml_history *self, const struct kept_list *list, size_t size,
                      bool *drops)
{
    const struct pending *first = &self->pending[0];
    struct ml_str controller = ml_str_of(first->controller);
    size_t bytes = list->bytes + strlen(first->key) + size, count = 1;
    for (size_t i = 0; i < list->len; i++) {
        const struct kept *kept = &list->items[i];
        bool is_same = strcmp(kept->key, first->key) == 0;
        bool is_own = ml_str_eq(kept->controller, controller) &&
                      (kept->why != NULL) == first->stopped;
        drops[i] = is_own && !is_same && ++count > ML_HISTORY_KEPT_MAX;
        if (is_same || drops[i])
            bytes -= strlen(kept->key) + strlen(kept->text);
    }
    for (size_t i = list->len; i-- > 0 && bytes > ML_HISTORY_BYTES_MAX;) {
        const struct kept *kept = &list->items[i];
        bool is_newest = kept == kept_list_newest(list, kept->controller) &&
                         !ml_str_eq(kept->controller, controller);
        if (drops[i] || is_newest || strcmp(kept->key, first->key) == 0)
            continue;
        drops[i] = true;
        bytes -= strlen(kept->key) + strlen(kept->text);
    }
    return bytes <= ML_HISTORY_BYTES_MAX;
}

static void send_write(struct ml_history *self, const struct kept_list *list, const bool *drops,
                       struct ml_str value)
{
    ML_AUTO(ml_buf_fini) struct ml_buf body = ML_BUF_INIT;
    const struct ml_object *object = cached_configmap(self);
    struct ml_json_writer writer;
    ml_json_writer_init(&writer, &body);
    ml_json_begin_object(&writer);
    ml_json_put_string(&writer, "apiVersion", ML_STR("v1"));
    ml_json_put_string(&writer, "kind", ML_STR("ConfigMap"));
    ml_managed_metadata_put(&writer, self->name, object ? ml_object_rv(object) : ML_STR(""));
    ml_json_key(&writer, ML_STR("data"));
    ml_json_begin_object(&writer);
    ml_json_put_string(&writer, self->pending[0].key, value);
    for (size_t i = 0; i < list->len; i++)
        if (drops[i])
            ml_json_put_raw(&writer, list->items[i].key, ML_STR("null"));
    ml_json_end_object(&writer);
    ml_json_end_object(&writer);
    const struct ml_client_request request = {
        .verb = object ? ML_VERB_PATCH_MERGE : ML_VERB_CREATE,
        .kind = &ml_kind_configmap,
        .ns = self->opts.ns,
        .name = object ? ml_str_of(self->name) : ML_STR(""),
        .body = ml_buf_str(&body),
        .field_manager = "moonloop",
    };
    self->call = ml_client_send(self->opts.services->client, &request, on_written, self);
}

static void write_pending(struct ml_history *self, const struct kept_list *list)
{
    ML_AUTO(ml_buf_fini) struct ml_buf value = ML_BUF_INIT;
    ML_AUTO_FREE bool *drops = ml_zalloc((list->len + 1) * sizeof *drops);
    struct ml_err err = ML_ERR_INIT;
    write_value(self, list, &value);
    if (make_room(self, list, value.len, drops)) {
        send_write(self, list, drops, ml_buf_str(&value));
        return;
    }
    ml_err_set(&err, ML_ELIMIT, "%s has no room for %zu more bytes; at most %zu are kept",
               self->label, value.len, ML_HISTORY_BYTES_MAX);
    end_write(self, &err);
    drop_first(self); /* only an edit makes it smaller */
}

/* Is it somebody else's ConfigMap? Then nothing is written to it. */
static bool is_foreign(const struct ml_history *self, const struct kept_list *list,
                       struct ml_err *err)
{
    if (!cached_configmap(self) || ml_managed_by_host(ml_buf_str(&list->json)))
        return false;
    ml_err_set(err, ML_EINVALID,
               "%s has no label " ML_MANAGED_BY
               "=moonloop, so somebody else made it; rename one of "
               "the two",
               self->label);
    return true;
}

/* Another replica may have been faster. */
static bool is_written(const struct kept_list *list, const struct pending *pending)
{
    struct ml_str controller = ml_str_of(pending->controller);
    struct ml_str revision = ml_str_of(pending->revision);
    const struct kept *kept = pending->stopped ? kept_list_find(list, controller, revision)
                                               : kept_list_newest(list, controller);
    return kept && ml_str_eq(kept->revision, revision) && (kept->why != NULL) == pending->stopped;
}

static void write_first(struct ml_history *self)
{
    ML_AUTO(kept_list_fini) struct kept_list list = {.json = ML_BUF_INIT};
    struct ml_err err = ML_ERR_INIT;
    if (self->call || self->pending_count == 0 || !self->is_known)
        return;
    const struct pending *first = &self->pending[0];
    kept_list_read(self, &list);
    if (is_written(&list, first))
        end_write(self, NULL);
    else if (self->opts.services->standby)
        write_again(self, SOON_NS); /* the replica that leads writes it, or this one will lead */
    else if (is_foreign(self, &list, &err))
        end_write(self, &err);
    else if (!self->by && first->version)
        ask_for_writer(self);
    else
        write_pending(self, &list);
}

static void on_again(void *context)
{
    write_first(context);
}

static void copy_files(const struct ml_live_revision *revision, struct ml_buf *out)
{
    struct ml_json_writer writer;
    ml_json_writer_init(&writer, out);
    ml_json_put_string(&writer, "file", ml_str_of(revision->file));
    ml_json_key(&writer, ML_STR("files"));
    ml_json_begin_object(&writer);
    for (size_t i = 0; i < revision->files->count; i++) {
        ml_json_key(&writer, revision->files->files[i].name);
        ml_json_string(&writer, revision->files->files[i].text);
    }
    ml_json_end_object(&writer);
}

static void write_soon(struct ml_history *self)
{
    if (!self->call && !ml_timer_active(&self->again))
        ml_timer_start(&self->again, 0);
}

void ml_history_keep(struct ml_history *self, const struct ml_live_revision *revision)
{
    struct ml_buf files = ML_BUF_INIT;
    if (self->pending_count == PENDING_MAX) /* the API server has not answered for many edits */
        return;
    copy_files(revision, &files);
    self->pending[self->pending_count++] = (struct pending){
        .controller = ml_strdup(revision->controller),
        .revision = ml_strdup(revision->revision),
        .version = ml_strdup(revision->version),
        .way = revision->way,
        .key = ml_asprintf("%s.%s", revision->controller, revision->revision),
        .rest = ml_buf_take(&files),
    };
    write_soon(self);
}

void ml_history_stop(struct ml_history *self, const char *controller, const char *revision,
                     const char *version, const char *why)
{
    struct ml_buf rest = ML_BUF_INIT;
    struct ml_json_writer writer;
    if (self->pending_count == PENDING_MAX)
        return;
    ml_json_writer_init(&writer, &rest);
    ml_json_put_string(&writer, "why", ml_str_of(why));
    self->pending[self->pending_count++] = (struct pending){
        .controller = ml_strdup(controller),
        .revision = ml_strdup(revision),
        .version = ml_strdup(version),
        .way = "stopped",
        .key = ml_asprintf("%s.%s", controller, revision),
        .rest = ml_buf_take(&rest),
        .stopped = true,
    };
    write_soon(self);
}

/* ---- the annotation ---- */

static bool is_revision(struct ml_str text)
{
    for (size_t i = 0; i < text.len; i++)
        if (!strchr("0123456789abcdef", text.ptr[i]) || !text.ptr[i])
            return false;
    return text.len == ML_REVISION_LEN;
}

bool ml_rollback_next(struct ml_str *rest, struct ml_rollback *out, struct ml_err *err)
{
    static const char between[] = "instead of";
    struct ml_str item = {"", 0};
    while (item.len == 0 && rest->ptr)
        item = ml_str_trim(ml_str_cut(rest, ','));
    if (item.len == 0)
        return false;
    struct ml_str tail = item;
    *out = (struct ml_rollback){.controller = ml_str_trim(ml_str_cut(&tail, ':'))};
    tail = tail.ptr ? ml_str_trim(tail) : ML_STR("");
    out->revision = ml_str_cut(&tail, ' ');
    tail = tail.ptr ? ml_str_trim(tail) : ML_STR("");
    bool says_for = ml_str_starts(tail, between);
    if (says_for) {
        size_t skip = sizeof between - 1;
        out->instead_of = ml_str_trim((struct ml_str){tail.ptr + skip, tail.len - skip});
    }
    if (!out->controller.len || !is_revision(out->revision) || !is_revision(out->instead_of))
        ml_err_set(err, ML_EINVALID,
                   ML_ROLLBACK_ANNOTATION ": '" ML_STR_FMT
                                          "' is not of the form 'CONTROLLER: REVISION instead of "
                                          "REVISION', with eight digits of each revision",
                   ML_STR_ARG(item));
    return true;
}

bool ml_rollback_find(const char *annotation, struct ml_str controller, struct ml_rollback *out)
{
    struct ml_str rest = ml_str_of(annotation);
    for (struct ml_err err = ML_ERR_INIT; ml_rollback_next(&rest, out, &err); err = ML_ERR_INIT)
        if (!err.kind && ml_str_eq(out->controller, controller))
            return true;
    return false;
}

/* ---- life ---- */

static void on_change(void *context, struct ml_informer *informer ML_UNUSED,
                      struct ml_object *old ML_UNUSED, struct ml_object *new ML_UNUSED)
{
    struct ml_history *self = context;
    if (self->is_known)
        self->opts.changed(self->opts.context);
}

static void on_synced(void *context, struct ml_informer *informer)
{
    struct ml_history *self = context;
    (void)informer;
    self->is_known = true;
    write_again(self, 0);
    self->opts.known(self->opts.context);
}

struct ml_history *ml_history_new(const struct ml_history_opts *opts)
{
    struct ml_history *self = ml_new(struct ml_history);
    self->opts = *opts;
    self->name = ml_asprintf(ML_STR_FMT ML_HISTORY_SUFFIX, ML_STR_ARG(opts->name));
    self->key = ml_asprintf(ML_STR_FMT "/%s", ML_STR_ARG(opts->ns), self->name);
    self->label = ml_asprintf("ConfigMap %s", self->key);
    ml_timer_init(&self->again, opts->services->loop, on_again, self);
    self->informer = ml_informers_get_scoped(opts->services->informers, &ml_kind_configmap,
                                             opts->ns, ml_str_of(self->name));
    self->listener = (struct ml_listener){
        .change = on_change, .synced = on_synced, .context = self};
    ml_informer_listen(self->informer, &self->listener);
    return self;
}

void ml_history_free(struct ml_history *self)
{
    if (!self)
        return;
    if (self->call)
        ml_client_cancel(self->call);
    ml_timer_stop(&self->again);
    ml_informer_unlisten(&self->listener);
    ml_informer_put(self->informer);
    while (self->pending_count > 0)
        drop_first(self);
    free(self->by);
    free(self->name);
    free(self->key);
    free(self->label);
    free(self);
}
