/* A document of a large group has a megabyte of JSON, most of it descriptions; what a kind needs of
 * it is a few percent. So the server is asked for one document after the other, and of each only
 * what the kinds need is kept. */
#include "kube/openapi.h"

#include "base/list.h"
#include "base/map.h"
#include "codec/json.h"

#define INDEX      "/openapi/v3"
#define REFERENCE  "#/components/schemas/"
#define TIMEOUT_MS 10000 /* of each request */
#define AGAIN_NS   (10 * ML_NS_PER_S)
#define ANSWERS_NS (100 * ML_NS_PER_MS) /* after the server answers others; doubled each time */
#define TRIES      3 /* of a document, while the server answers the request for the list */

bool ml_openapi_path(struct ml_str index, struct ml_str group, struct ml_str version,
                     struct ml_buf *out)
{
    ML_AUTO_FREE char *name = group.len ? ml_asprintf("apis/" ML_STR_FMT "/" ML_STR_FMT,
                                                      ML_STR_ARG(group), ML_STR_ARG(version))
                                        : ml_asprintf("api/" ML_STR_FMT, ML_STR_ARG(version));
    ML_AUTO_FREE char *path = ml_json_find_string(index, "paths", name, "serverRelativeURL", NULL);
    if (!path || path[0] != '/')
        return false;
    ml_buf_puts(out, path);
    return true;
}

/* Calls `each` for each version of the group in the server's list. */
static void index_each_version(struct ml_str index, struct ml_str group,
                               void (*each)(void *context, struct ml_str version), void *context)
{
    struct ml_str paths;
    if (!ml_json_find(index, &paths, "paths", NULL))
        return;
    ML_AUTO(ml_json_reader_fini) struct ml_json_reader reader;
    ml_json_reader_init(&reader, paths, 0);
    ml_json_next(&reader);
    while (ml_json_next(&reader) == ML_JSON_KEY) {
        ML_AUTO_FREE char *path = ml_str_dup(reader.text); /* "api/v1", "apis/apps/v1" */
        struct ml_str rest = ml_str_of(path), first = ml_str_cut(&rest, '/');
        struct ml_str its_group = {"", 0};
        if (ml_str_is(first, "apis"))
            its_group = ml_str_cut(&rest, '/');
        if (rest.len && !memchr(rest.ptr, '/', rest.len) && ml_str_eq(its_group, group))
            each(context, rest);
        (void)ml_json_skip(&reader);
    }
}

/* ---- the definitions of a document ---- */

struct definition {
    char *name;
    struct ml_str schema; /* its text in the document */
    struct ml_list node;  /* among those that are still to be written */
    bool is_wanted;
};

struct document {
    struct ml_map definitions; /* name -> struct definition */
    struct ml_list wanted;
};

static void document_fini(struct document *document)
{
    ml_map_each (&document->definitions, cursor, entry) {
        struct definition *definition = entry;
        free(definition->name);
        free(definition);
    }
    ml_map_fini(&document->definitions);
}

/* Of two definitions with one name the last counts, as everywhere in JSON. */
static void document_add(struct document *document, struct ml_str name, struct ml_str schema)
{
    struct definition *definition = ml_map_get(&document->definitions, name);
    if (!definition) {
        definition = ml_new(struct definition);
        definition->name = ml_str_dup(name);
        ml_map_put(&document->definitions, ml_str_of(definition->name), definition);
    }
    definition->schema = schema;
}

static int document_read(struct document *document, struct ml_str text, struct ml_err *err)
{
    struct ml_str schemas;
    if (!ml_json_find(text, &schemas, "components", "schemas", NULL))
        return ml_err_set(err, ML_EINVALID, "the OpenAPI document has no components.schemas");
    ML_AUTO(ml_json_reader_fini) struct ml_json_reader reader;
    ml_json_reader_init(&reader, schemas, 0);
    ml_json_next(&reader);
    while (ml_json_next(&reader) == ML_JSON_KEY) {
        ML_AUTO_FREE char *name = ml_str_dup(reader.text);
        struct ml_str schema = ml_json_skip(&reader);
        if (schema.len)
            document_add(document, ml_str_of(name), schema);
    }
    return reader.token == ML_JSON_ERROR ? ml_json_error(&reader, err) : 0;
}

static void document_want(struct document *document, struct ml_str name)
{
    struct definition *definition = ml_map_get(&document->definitions, name);
    if (!definition || definition->is_wanted)
        return;
    definition->is_wanted = true;
    ml_list_push(&document->wanted, &definition->node);
}

/* Calls `each` for the kinds that a definition is of. */
static void definition_each_kind(const struct definition *definition,
                                 void (*each)(void *context, const struct ml_gvk *gvk),
                                 void *context)
{
    struct ml_str kinds;
    if (!ml_json_find(definition->schema, &kinds, "x-kubernetes-group-version-kind", NULL))
        return;
    ML_AUTO(ml_json_reader_fini) struct ml_json_reader reader;
    ml_json_reader_init(&reader, kinds, 0);
    if (ml_json_next(&reader) != ML_JSON_ARRAY)
        return;
    for (struct ml_str entry; (entry = ml_json_skip(&reader)).len;) {
        ML_AUTO_FREE char *group = ml_json_find_string(entry, "group", NULL);
        ML_AUTO_FREE char *version = ml_json_find_string(entry, "version", NULL);
        ML_AUTO_FREE char *kind = ml_json_find_string(entry, "kind", NULL);
        const struct ml_gvk gvk = {ml_str_of(group), ml_str_of(version), ml_str_of(kind)};
        each(context, &gvk);
    }
}

struct kind_search {
    const struct ml_gvk *wanted;
    bool found;
};

static void compare_kind(void *context, const struct ml_gvk *gvk)
{
    struct kind_search *search = context;
    search->found |= ml_str_eq(gvk->group, search->wanted->group) &&
                     ml_str_eq(gvk->version, search->wanted->version) &&
                     ml_str_eq(gvk->kind, search->wanted->kind);
}

static bool definition_is_of(const struct definition *definition, const struct ml_gvk *gvk)
{
    struct kind_search search = {.wanted = gvk};
    definition_each_kind(definition, compare_kind, &search);
    return search.found;
}

static struct definition *document_find(const struct document *document, const struct ml_gvk *gvk)
{
    ml_map_each (&document->definitions, cursor, entry)
        if (definition_is_of(entry, gvk))
            return entry;
    return NULL;
}

/* ---- copies ---- */

static void copy_schema(struct document *document, struct ml_str schema,
                        struct ml_json_writer *writer);

/* A description is left out; the schema of a field of that name is not. */
static void copy_description(struct document *document, struct ml_json_reader *reader,
                             struct ml_json_writer *writer)
{
    struct ml_str value = ml_json_skip(reader);
    if (!value.len || value.ptr[0] == '"')
        return;
    ml_json_key(writer, ML_STR("description"));
    copy_schema(document, value, writer);
}

/* The name behind "$ref", which is the token at hand, is wanted, too. */
static void copy_reference(struct document *document, struct ml_json_reader *reader,
                           struct ml_json_writer *writer)
{
    ml_json_key(writer, ML_STR("$ref"));
    struct ml_str raw = ml_json_skip(reader);
    ML_AUTO_FREE char *target = ml_json_find_string(raw, NULL);
    struct ml_str name = ml_str_of(target ? target : "");
    if (ml_str_starts(name, REFERENCE)) {
        name.ptr += strlen(REFERENCE);
        name.len -= strlen(REFERENCE);
        document_want(document, name);
    }
    ml_json_raw(writer, raw.len ? raw : ML_STR("null"));
}

static void copy_key(struct document *document, struct ml_json_reader *reader,
                     struct ml_json_writer *writer)
{
    if (ml_str_is(reader->text, "description"))
        copy_description(document, reader, writer);
    else if (ml_str_is(reader->text, "$ref"))
        copy_reference(document, reader, writer);
    else
        ml_json_key(writer, reader->text);
}

static void copy_token(struct document *document, struct ml_json_reader *reader,
                       struct ml_json_writer *writer)
{
    switch (reader->token) {
    case ML_JSON_OBJECT:
        ml_json_begin_object(writer);
        break;
    case ML_JSON_OBJECT_END:
        ml_json_end_object(writer);
        break;
    case ML_JSON_ARRAY:
        ml_json_begin_array(writer);
        break;
    case ML_JSON_ARRAY_END:
        ml_json_end_array(writer);
        break;
    case ML_JSON_KEY:
        copy_key(document, reader, writer);
        break;
    case ML_JSON_STRING:
        ml_json_string(writer, reader->text);
        break;
    case ML_JSON_INT:
    case ML_JSON_REAL:
    case ML_JSON_NUMBER:
        ml_json_raw(writer, reader->text);
        break;
    case ML_JSON_TRUE:
    case ML_JSON_FALSE:
        ml_json_bool(writer, reader->token == ML_JSON_TRUE);
        break;
    case ML_JSON_NULL:
    case ML_JSON_END:
    case ML_JSON_ERROR:
        ml_json_null(writer);
        break;
    }
}

/* Copies a schema, which is well-formed: it was read before. */
static void copy_schema(struct document *document, struct ml_str schema,
                        struct ml_json_writer *writer)
{
    ML_AUTO(ml_json_reader_fini) struct ml_json_reader reader;
    ml_json_reader_init(&reader, schema, 0);
    while (ml_json_next(&reader) != ML_JSON_END && reader.token != ML_JSON_ERROR)
        copy_token(document, &reader, writer);
}

static void write_schemas(struct document *document, const struct definition *root,
                          struct ml_buf *out)
{
    struct ml_json_writer writer;
    ml_json_writer_init(&writer, out);
    ml_json_begin_object(&writer);
    ml_json_put_string(&writer, "root", ml_str_of(root->name));
    ml_json_key(&writer, ML_STR("definitions"));
    ml_json_begin_object(&writer);
    document_want(document, ml_str_of(root->name));
    for (struct ml_list *node; (node = ml_list_shift(&document->wanted));) {
        struct definition *definition = ml_container_of(node, struct definition, node);
        ml_json_key(&writer, ml_str_of(definition->name));
        copy_schema(document, definition->schema, &writer);
    }
    ml_json_end_object(&writer);
    ml_json_end_object(&writer);
}

/* Calls `each` for each kind of the document. */
static void document_each_kind(struct ml_str text,
                               void (*each)(void *context, const struct ml_gvk *gvk), void *context)
{
    struct document document = {0};
    struct ml_err ignored = ML_ERR_INIT;
    ml_list_init(&document.wanted);
    if (document_read(&document, text, &ignored) == 0) {
        ml_map_each (&document.definitions, cursor, definition)
            definition_each_kind(definition, each, context);
    }
    document_fini(&document);
}

int ml_openapi_schema(struct ml_str text, const struct ml_gvk *gvk, struct ml_buf *out,
                      struct ml_err *err)
{
    struct document document = {0};
    ml_list_init(&document.wanted);
    int r = document_read(&document, text, err);
    const struct definition *root = r == 0 ? document_find(&document, gvk) : NULL;
    if (root)
        write_schemas(&document, root, out);
    else if (r == 0)
        r = ml_err_set(err, ML_ENOT_FOUND, "the OpenAPI document has no kind " ML_STR_FMT,
                       ML_STR_ARG(gvk->kind));
    document_fini(&document);
    return r;
}

/* ---- parts of documents ---- */

struct part {
    char *kind;
    char *schema; /* NULL: the document has no such kind */
};

/* The parts of one document that were asked for. */
struct kept {
    struct ml_list node;
    char *path; /* with the hash of its content */
    struct part *parts;
    size_t count;
    char *known; /* all of its kinds, as in ml_openapi_request; empty for other groups */
    size_t bytes;
};

struct ml_openapi_cache {
    struct ml_list documents; /* the oldest first */
    size_t bytes;
};

struct ml_openapi_cache *ml_openapi_cache_new(void)
{
    struct ml_openapi_cache *self = ml_new(struct ml_openapi_cache);
    ml_list_init(&self->documents);
    return self;
}

static void cache_drop(struct ml_openapi_cache *self, struct kept *kept)
{
    ml_list_remove(&kept->node);
    self->bytes -= kept->bytes;
    for (size_t i = 0; i < kept->count; i++) {
        free(kept->parts[i].kind);
        free(kept->parts[i].schema);
    }
    free(kept->parts);
    free(kept->path);
    free(kept->known);
    free(kept);
}

static struct kept *cache_oldest(const struct ml_openapi_cache *self)
{
    return ml_container_of(self->documents.next, struct kept, node);
}

void ml_openapi_cache_free(struct ml_openapi_cache *self)
{
    if (!self)
        return;
    while (!ml_list_empty(&self->documents))
        cache_drop(self, cache_oldest(self));
    free(self);
}

/* Of one document, whatever its content is: "/openapi/v3/api/v1". */
static struct ml_str document_of(const char *path)
{
    struct ml_str rest = ml_str_of(path);
    return ml_str_cut(&rest, '?');
}

/* The entry of this content; one of another content of the document goes. NULL: there is none. */
static struct kept *cache_find(struct ml_openapi_cache *self, const char *path)
{
    if (!self)
        return NULL;
    ml_list_each_entry (struct kept, kept, &self->documents) {
        if (strcmp(kept->path, path) == 0)
            return kept;
        if (ml_str_eq(document_of(kept->path), document_of(path))) {
            cache_drop(self, kept);
            return NULL;
        }
    }
    return NULL;
}

static const struct part *kept_find(const struct kept *kept, const char *kind)
{
    for (size_t i = 0; kept && i < kept->count; i++)
        if (strcmp(kept->parts[i].kind, kind) == 0)
            return &kept->parts[i];
    return NULL;
}

static void cache_grow(struct ml_openapi_cache *self, struct kept *kept, size_t len)
{
    kept->bytes += len;
    self->bytes += len;
}

/* NULL: the path does not name the content. */
static struct kept *cache_add(struct ml_openapi_cache *self, const char *path)
{
    struct kept *kept = cache_find(self, path);
    if (kept || !self || !strstr(path, "?hash="))
        return kept;
    kept = ml_new(struct kept);
    kept->path = ml_strdup(path);
    kept->known = ml_strdup("");
    ml_list_push(&self->documents, &kept->node);
    cache_grow(self, kept, sizeof *kept + strlen(path));
    return kept;
}

/* `schema` empty: there is no such kind. */
static void cache_put(struct ml_openapi_cache *self, struct kept *kept, const char *kind,
                      struct ml_str schema)
{
    if (!kept || kept_find(kept, kind))
        return;
    kept->parts = ml_realloc(kept->parts, (kept->count + 1) * sizeof *kept->parts);
    kept->parts[kept->count++] = (struct part){ml_strdup(kind),
                                               schema.len > 0 ? ml_str_dup(schema) : NULL};
    cache_grow(self, kept, sizeof(struct part) + strlen(kind) + schema.len);
}

static void cache_put_known(struct ml_openapi_cache *self, struct kept *kept, struct ml_str known)
{
    if (!kept || *kept->known)
        return;
    free(kept->known);
    kept->known = ml_str_dup(known);
    cache_grow(self, kept, known.len);
}

static void cache_limit(struct ml_openapi_cache *self)
{
    while (self && self->bytes > ML_OPENAPI_CACHE_BYTES)
        cache_drop(self, cache_oldest(self));
}

/* ---- from a server ---- */

struct wanted {
    char *group, *version, *kind;
    bool is_answered; /* its document was read, or there is none */
    unsigned failures;
};

struct ml_openapi_request {
    struct ml_client *client;
    struct ml_openapi_cache *cache;
    struct wanted *kinds;
    size_t count;
    bool has_index;
    struct ml_buf index; /* the list of documents; empty: the server has none */
    size_t asked;        /* the kind whose document is under way */
    char *path;          /* of that document */
    struct ml_client_call *call;
    struct ml_client_await await; /* the server did not answer: it is asked again when it does */
    struct ml_timer again;
    int64_t answers_ns;
    struct ml_buf known; /* "apps v1 Deployment" lines: kinds of groups of the API server itself */
    bool is_incomplete;  /* a document could not be read */
    const struct ml_openapi_handler *handler;
    void *context;
};

static void request_free(struct ml_openapi_request *self)
{
    ml_client_await_stop(&self->await);
    ml_timer_stop(&self->again);
    for (size_t i = 0; i < self->count; i++) {
        free(self->kinds[i].group);
        free(self->kinds[i].version);
        free(self->kinds[i].kind);
    }
    free(self->kinds);
    free(self->path);
    ml_buf_fini(&self->index);
    ml_buf_fini(&self->known);
    free(self);
}

static struct ml_gvk gvk_of(const struct wanted *kind)
{
    return (struct ml_gvk){ml_str_of(kind->group), ml_str_of(kind->version), ml_str_of(kind->kind)};
}

static bool is_of_document(const struct wanted *kind, const struct wanted *other)
{
    return strcmp(kind->group, other->group) == 0 && strcmp(kind->version, other->version) == 0;
}

static void ask(struct ml_openapi_request *self);

/* Waits until the server answers again, or for a while. */
static void ask_later(struct ml_openapi_request *self)
{
    ml_client_await(self->client, &self->await);
    ml_timer_start(&self->again, AGAIN_NS);
}

static void on_time(void *context)
{
    struct ml_openapi_request *self = context;
    ml_client_await_stop(&self->await);
    ask(self);
}

static void on_server_answers(void *context, bool answered)
{
    struct ml_openapi_request *self = context;
    ml_timer_start(&self->again, answered ? self->answers_ns : 0);
    if (answered)
        self->answers_ns = ML_MIN(2 * self->answers_ns, AGAIN_NS);
}

static void note_kind(void *context, const struct ml_gvk *gvk)
{
    struct ml_openapi_request *self = context;
    ml_buf_printf(&self->known, ML_STR_FMT " " ML_STR_FMT " " ML_STR_FMT "\n",
                  ML_STR_ARG(gvk->group), ML_STR_ARG(gvk->version), ML_STR_ARG(gvk->kind));
}

/* The version exists; which kinds it has is only known if its document was read. */
static void note_version(void *context, struct ml_str version)
{
    struct ml_openapi_request *self = context;
    const struct ml_gvk gvk = {ml_str_of(self->kinds[self->asked].group), version, ML_STR("")};
    note_kind(self, &gvk);
}

static void on_document(void *context, struct ml_str body, const struct ml_err *err)
{
    struct ml_openapi_request *self = context;
    self->call = NULL;
    /* That of an aggregated API server, perhaps, which is down for long. */
    if (err && ml_client_unanswered(err) && ++self->kinds[self->asked].failures < TRIES) {
        self->has_index = false;
        ml_buf_clear(&self->index);
        ask_later(self);
        return;
    }
    struct kept *kept = err ? NULL : cache_add(self->cache, self->path);
    for (size_t i = 0; i < self->count; i++) {
        ML_AUTO(ml_buf_fini) struct ml_buf schema = ML_BUF_INIT;
        struct ml_err ignored = ML_ERR_INIT; /* nothing is told of a kind that is not there */
        const struct ml_gvk gvk = gvk_of(&self->kinds[i]);
        if (!is_of_document(&self->kinds[i], &self->kinds[self->asked]))
            continue;
        self->kinds[i].is_answered = true;
        if (!err && ml_openapi_schema(body, &gvk, &schema, &ignored) < 0)
            ml_buf_clear(&schema);
        if (schema.len > 0)
            self->handler->schema(self->context, i, ml_buf_str(&schema));
        cache_put(self->cache, kept, self->kinds[i].kind, ml_buf_str(&schema));
    }
    size_t begin = self->known.len;
    if (err)
        self->is_incomplete = true;
    else if (ml_group_is_built_in(ml_str_of(self->kinds[self->asked].group)))
        document_each_kind(body, note_kind, self);
    struct ml_str known = ml_buf_str(&self->known);
    cache_put_known(self->cache, kept, (struct ml_str){known.ptr + begin, known.len - begin});
    cache_limit(self->cache);
    ask(self);
}

/* Answers from the cache for the document of the kind `asked`. False: it has not all of that. */
static bool answer_from_cache(struct ml_openapi_request *self)
{
    const struct wanted *asked = &self->kinds[self->asked];
    const struct kept *kept = cache_find(self->cache, self->path);
    for (size_t i = 0; i < self->count; i++)
        if (is_of_document(&self->kinds[i], asked) && !kept_find(kept, self->kinds[i].kind))
            return false;
    for (size_t i = 0; i < self->count; i++) {
        const struct part *part = kept_find(kept, self->kinds[i].kind);
        if (!is_of_document(&self->kinds[i], asked))
            continue;
        self->kinds[i].is_answered = true;
        if (part->schema)
            self->handler->schema(self->context, i, ml_str_of(part->schema));
    }
    ml_buf_puts(&self->known, kept->known);
    return true;
}

static void on_index(void *context, struct ml_str body, const struct ml_err *err)
{
    struct ml_openapi_request *self = context;
    self->call = NULL;
    if (err && ml_client_unanswered(err)) {
        ask_later(self);
        return;
    }
    self->has_index = true;
    if (!err)
        ml_buf_append_str(&self->index, body);
    ask(self);
}

static void send(struct ml_openapi_request *self, const char *path, ml_client_done *done)
{
    const struct ml_client_request request = {
        .verb = ML_VERB_GET, .path = path, .accept = "application/json", .timeout_ms = TIMEOUT_MS};
    self->call = ml_client_send(self->client, &request, done, self);
}

/* Reports the kinds that exist. */
static void tell_known(struct ml_openapi_request *self)
{
    for (self->asked = 0; self->asked < self->count; self->asked++)
        if (ml_group_is_built_in(ml_str_of(self->kinds[self->asked].group)))
            index_each_version(ml_buf_str(&self->index), ml_str_of(self->kinds[self->asked].group),
                               note_version, self);
    for (struct ml_str rest = ml_buf_str(&self->known); rest.len;) {
        struct ml_str line = ml_str_cut(&rest, '\n');
        struct ml_gvk gvk = {.group = ml_str_cut(&line, ' ')};
        gvk.version = ml_str_cut(&line, ' ');
        gvk.kind = line;
        self->handler->kind(self->context, &gvk);
    }
}

static void request_end(struct ml_openapi_request *self)
{
    if (!self->is_incomplete)
        tell_known(self);
    const struct ml_openapi_handler *handler = self->handler;
    void *context = self->context;
    struct ml_str paths;
    bool are_published = !self->is_incomplete &&
                         ml_json_find(ml_buf_str(&self->index), &paths, "paths", NULL);
    request_free(self);
    handler->done(context, are_published);
}

/* Asks for what is not known yet. */
static void ask(struct ml_openapi_request *self)
{
    if (!self->has_index) {
        send(self, INDEX, on_index);
        return;
    }
    for (self->asked = 0; self->asked < self->count; self->asked++) {
        struct ml_buf path = ML_BUF_INIT;
        const struct ml_gvk gvk = gvk_of(&self->kinds[self->asked]);
        if (self->kinds[self->asked].is_answered ||
            !ml_openapi_path(ml_buf_str(&self->index), gvk.group, gvk.version, &path))
            continue;
        free(self->path);
        self->path = ml_buf_take(&path);
        if (answer_from_cache(self))
            continue;
        send(self, self->path, on_document);
        return;
    }
    request_end(self);
}

struct ml_openapi_request *ml_openapi_ask(const struct ml_openapi_opts *opts,
                                          const struct ml_openapi_handler *handler, void *context)
{
    struct ml_openapi_request *self = ml_new(struct ml_openapi_request);
    self->client = opts->client;
    self->cache = opts->cache;
    self->answers_ns = ANSWERS_NS;
    self->handler = handler;
    self->context = context;
    self->count = opts->count;
    self->kinds = ml_zalloc((opts->count + 1) * sizeof *self->kinds);
    self->await = (struct ml_client_await){
        .again = on_server_answers, .context = self, .probes = true};
    ml_timer_init(&self->again, opts->loop, on_time, self);
    ml_buf_init(&self->index, 0);
    ml_buf_init(&self->known, 0);
    for (size_t i = 0; i < opts->count; i++) {
        const struct ml_gvk *gvk = &opts->gvks[i];
        self->kinds[i] = (struct wanted){ml_str_dup(gvk->group), ml_str_dup(gvk->version),
                                         ml_str_dup(gvk->kind), false, 0};
    }
    ask(self);
    return self;
}

void ml_openapi_cancel(struct ml_openapi_request *self)
{
    if (!self)
        return;
    if (self->call)
        ml_client_cancel(self->call);
    request_free(self);
}
