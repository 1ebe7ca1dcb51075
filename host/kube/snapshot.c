/* Answers of an API server: kept while a command runs, written to a file, read again, and
 * given as answers. */
#include "kube/snapshot.h"

#include "base/list.h"
#include "base/map.h"
#include "codec/base64.h"
#include "codec/crypto.h"
#include "codec/json_members.h"
#include "codec/json_stream.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <unistd.h>

#define PIECE        ((size_t)64 * 1024)
#define KEY_LEN      32
#define LAST_APPLIED "kubectl.kubernetes.io/last-applied-configuration"

/* The answer to one read. */
struct answer {
    char *key; /* path and accept */
    char *path, *accept;
    int status;
    bool is_list;
    char *kind, *api_version, *version; /* of a list */
    struct ml_buf json; /* in one line; of a list its items, each behind a line end */
};

struct ml_snapshot {
    char *ns;
    struct ml_set answers;
    size_t bytes;
    unsigned char secret[KEY_LEN]; /* of the texts in place of the values of Secrets */
    struct ml_err trouble;         /* the first answer that could not be kept */
    struct answer *reads;          /* while it is read: the list whose items follow */
};

static struct ml_str answer_key(const void *entry)
{
    return ml_str_of(((const struct answer *)entry)->key);
}

static struct ml_snapshot *snapshot_new(void)
{
    struct ml_snapshot *self = ml_new(struct ml_snapshot);
    self->answers.key = answer_key;
    self->trouble = ML_ERR_INIT;
    return self;
}

int ml_snapshot_new(struct ml_random *random, const char *ns, struct ml_snapshot **out,
                    struct ml_err *err)
{
    struct ml_snapshot *self = snapshot_new();
    self->ns = ml_strdup(ns);
    if (ml_secret_bytes(random, self->secret, sizeof self->secret, err) < 0) {
        ml_snapshot_free(self);
        return err->kind;
    }
    *out = self;
    return 0;
}

static void answer_free(struct answer *answer)
{
    free(answer->key);
    free(answer->path);
    free(answer->accept);
    free(answer->kind);
    free(answer->api_version);
    free(answer->version);
    ml_buf_fini(&answer->json);
    free(answer);
}

void ml_snapshot_free(struct ml_snapshot *self)
{
    size_t cursor = 0;
    if (!self)
        return;
    for (struct answer *answer; (answer = ml_set_next(&self->answers, &cursor));)
        answer_free(answer);
    ml_set_fini(&self->answers);
    free(self->ns);
    free(self);
}

const char *ml_snapshot_namespace(const struct ml_snapshot *self)
{
    return self->ns;
}

/* ---- which answer ---- */

/* Of a path with its query. */
struct read {
    struct ml_buf path;  /* without what only says in which pages, or since when, it is read */
    bool watches, again; /* it is a watch; a later page */
};

static void read_parse(struct read *read, const char *path)
{
    static const char *const passing[] = {"limit=", "resourceVersion=", "resourceVersionMatch="};
    struct ml_str query = ml_str_of(path);
    *read = (struct read){.path = ML_BUF_INIT};
    ml_buf_append_str(&read->path, ml_str_cut(&query, '?'));
    for (char separator = '?'; query.ptr;) {
        struct ml_str parameter = ml_str_cut(&query, '&');
        bool again = ml_str_starts(parameter, "continue="), passes = again;
        for (size_t i = 0; i < ML_COUNT(passing); i++)
            passes = passes || ml_str_starts(parameter, passing[i]);
        read->again = read->again || again;
        read->watches = read->watches || ml_str_starts(parameter, "watch=");
        if (passes)
            continue;
        ml_buf_printf(&read->path, "%c" ML_STR_FMT, separator, ML_STR_ARG(parameter));
        separator = '&';
    }
}

static char *make_key(const char *path, const char *accept)
{
    return ml_asprintf("%s %s", path, accept ? accept : "");
}

static struct answer *find_answer(const struct ml_snapshot *self, const char *path,
                                  const char *accept)
{
    ML_AUTO_FREE char *key = make_key(path, accept);
    return ml_set_get(&self->answers, ml_str_of(key));
}

/* In the place of the one before. */
static struct answer *add_answer(struct ml_snapshot *self, const char *path, const char *accept,
                                 int status)
{
    struct answer *answer = ml_new(struct answer);
    answer->key = make_key(path, accept);
    answer->path = ml_strdup(path);
    answer->accept = ml_strdup(accept);
    answer->status = status;
    ml_buf_init(&answer->json, ML_SNAPSHOT_BYTES_MAX);
    struct answer *former = ml_set_put(&self->answers, answer);
    if (former) {
        self->bytes -= former->json.len;
        answer_free(former);
    }
    return answer;
}

static int snapshot_grow(struct ml_snapshot *self, struct answer *answer, size_t len,
                         struct ml_err *err)
{
    self->bytes += len;
    if (self->bytes <= ML_SNAPSHOT_BYTES_MAX && !answer->json.failed)
        return 0;
    return ml_err_set(err, ML_ELIMIT,
                      "more than %zu MiB of objects; take fewer kinds, or one "
                      "namespace",
                      ML_SNAPSHOT_BYTES_MAX / (1024 * 1024));
}

static int add_item(struct ml_snapshot *self, struct answer *list, struct ml_str item,
                    struct ml_err *err)
{
    ml_buf_putc(&list->json, '\n');
    ml_buf_append_str(&list->json, item);
    return snapshot_grow(self, list, item.len + 1, err);
}

static void answer_be_list(struct answer *answer, struct ml_str envelope)
{
    answer->is_list = true;
    answer->kind = ml_json_find_string(envelope, "kind", NULL);
    answer->api_version = ml_json_find_string(envelope, "apiVersion", NULL);
    answer->version = ml_json_find_string(envelope, "metadata", "resourceVersion", NULL);
}

/* ---- what is left out ---- */

/* "/api/v1/secrets…" or "/api/v1/namespaces/NS/secrets…" */
static bool path_is_of_secrets(const char *path)
{
    struct ml_str rest = ml_str_of(path);
    rest = ml_str_cut(&rest, '?');
    if (!ml_str_starts(rest, "/api/v1/"))
        return false;
    rest.ptr += strlen("/api/v1/");
    rest.len -= strlen("/api/v1/");
    struct ml_str word = ml_str_cut(&rest, '/');
    if (ml_str_is(word, "namespaces") && rest.ptr) {
        (void)ml_str_cut(&rest, '/');
        word = ml_str_cut(&rest, '/');
    }
    return ml_str_is(word, "secrets");
}

/* The same for the same value, within this snapshot. */
static void put_hidden(const struct ml_snapshot *self, struct ml_json_writer *writer,
                       struct ml_str value)
{
    unsigned char digest[ML_SHA256_LEN];
    ML_AUTO(ml_buf_fini) struct ml_buf text = ML_BUF_INIT, encoded = ML_BUF_INIT;
    const struct ml_str secret = {(const char *)self->secret, sizeof self->secret};
    ml_hmac_sha256(secret, value, digest);
    ml_buf_puts(&text, "hidden-");
    ml_hex_encode((struct ml_str){(const char *)digest, 8}, &text);
    ml_base64_encode(ml_buf_str(&text), &encoded);
    ml_json_string(writer, ml_buf_str(&encoded));
}

static void put_kept(const struct ml_snapshot *self ML_UNUSED, struct ml_json_writer *writer,
                     struct ml_str value)
{
    ml_json_raw(writer, value);
}

/* Puts the object without the member `but`; each value by `put`. */
static void put_members(const struct ml_snapshot *self, struct ml_json_writer *writer,
                        struct ml_str object, const char *but,
                        void (*put)(const struct ml_snapshot *self, struct ml_json_writer *writer,
                                    struct ml_str value))
{
    ML_AUTO(ml_json_members_fini) struct ml_json_members members = {0};
    struct ml_err err;
    bool is_object = ml_json_members_read(&members, object, 0, &err);
    ml_json_begin_object(writer);
    for (size_t i = 0; is_object && i < members.len; i++) {
        if (but && ml_str_is(members.items[i].key, but))
            continue;
        ml_json_key(writer, members.items[i].key);
        put(self, writer, members.items[i].value);
    }
    ml_json_end_object(writer);
}

static void put_secret_metadata(const struct ml_snapshot *self, struct ml_json_writer *writer,
                                struct ml_str metadata)
{
    ML_AUTO(ml_json_members_fini) struct ml_json_members members = {0};
    struct ml_err err;
    bool is_object = ml_json_members_read(&members, metadata, 0, &err);
    ml_json_begin_object(writer);
    for (size_t i = 0; is_object && i < members.len; i++) {
        struct ml_str key = members.items[i].key, value = members.items[i].value;
        if (ml_str_is(key, "managedFields"))
            continue;
        ml_json_key(writer, key);
        if (ml_str_is(key, "annotations"))
            put_members(self, writer, value, LAST_APPLIED, put_kept);
        else
            ml_json_raw(writer, value);
    }
    ml_json_end_object(writer);
}

/* A member of a Secret that says nothing of its values. Others are left out: a body that is no
 * Secret, of the path of Secrets, may have some in it. */
static bool is_open(struct ml_str key)
{
    static const char *const open[] = {"apiVersion", "kind", "type", "immutable"};
    for (size_t i = 0; i < ML_COUNT(open); i++)
        if (ml_str_is(key, open[i]))
            return true;
    return false;
}

static void put_member(const struct ml_snapshot *self, struct ml_json_writer *writer,
                       const struct ml_json_member *member, bool is_secret)
{
    struct ml_str key = member->key, value = member->value;
    bool is_metadata = ml_str_is(key, "metadata");
    bool is_values = ml_str_is(key, "data") || ml_str_is(key, "stringData");
    if (is_secret && !is_metadata && !is_values && !is_open(key))
        return;
    ml_json_key(writer, key);
    if (is_secret && is_values)
        put_members(self, writer, value, NULL, put_hidden);
    else if (is_secret && is_metadata)
        put_secret_metadata(self, writer, value);
    else if (is_metadata)
        put_members(self, writer, value, "managedFields", put_kept);
    else
        ml_json_raw(writer, value);
}

/* Appends the object as it is kept. False: it is none. */
static bool append_object(const struct ml_snapshot *self, struct ml_str object, bool is_secret,
                          struct ml_buf *out)
{
    ML_AUTO(ml_json_members_fini) struct ml_json_members members = {0};
    struct ml_json_writer writer;
    struct ml_err err;
    if (ml_json_check(object, 0, &err) < 0 || !ml_json_members_read(&members, object, 0, &err))
        return false;
    ml_json_writer_init(&writer, out);
    ml_json_begin_object(&writer);
    for (size_t i = 0; i < members.len; i++)
        put_member(self, &writer, &members.items[i], is_secret);
    ml_json_end_object(&writer);
    /* In one line: a string has no raw line end. */
    for (size_t i = 0; i < out->len; i++)
        if (out->ptr[i] == '\n' || out->ptr[i] == '\r')
            out->ptr[i] = ' ';
    return !out->failed;
}

/* ---- recording ---- */

struct ml_transport_call {
    struct recorder *recorder;
    struct ml_transport_call *inner; /* of the server's transport */
    struct ml_http_handler handler;
    void *context;
    char *path, *accept;
    int status;
    bool keeps;
    struct ml_buf body;

    /* Of a transport that answers. */
    struct replay *replay;
    struct ml_list node;
    struct ml_task task;
};

struct recorder {
    struct ml_transport transport;
    struct ml_snapshot *snapshot;
    struct ml_transport *server;
};

static void call_free(struct ml_transport_call *call)
{
    free(call->path);
    free(call->accept);
    ml_buf_fini(&call->body);
    free(call);
}

struct page {
    struct ml_snapshot *snapshot;
    struct answer *list;
    bool is_secret;
};

static int keep_item(void *context, struct ml_str raw, struct ml_err *err)
{
    struct page *page = context;
    ML_AUTO(ml_buf_fini) struct ml_buf item = ML_BUF_INIT;
    if (!append_object(page->snapshot, raw, page->is_secret, &item))
        return 0; /* as the caches pass over it */
    return add_item(page->snapshot, page->list, ml_buf_str(&item), err);
}

static int keep_page(struct ml_snapshot *self, const struct read *read,
                     const struct ml_transport_call *call, struct ml_err *err)
{
    ML_AUTO_FREE char *path = ml_str_dup(ml_buf_str(&read->path));
    struct answer *list = read->again ? find_answer(self, path, call->accept) : NULL;
    struct page page = {.snapshot = self, .is_secret = path_is_of_secrets(path)};
    const struct ml_json_list_handler handler = {.item = keep_item, .context = &page};
    struct ml_str envelope;
    page.list = list ? list : add_answer(self, path, call->accept, call->status);
    struct ml_json_list *items = ml_json_list_new(&handler, ML_SNAPSHOT_ANSWER_MAX);
    int r = ml_json_list_feed(items, ml_buf_str(&call->body), err);
    if (r == 0)
        r = ml_json_list_finish(items, &envelope, err);
    if (r == 0 && !page.list->is_list)
        answer_be_list(page.list, envelope);
    ml_json_list_free(items);
    return r;
}

static bool is_list_body(struct ml_str body)
{
    ML_AUTO_FREE char *kind = ml_json_find_string(body, "kind", NULL);
    struct ml_str items;
    return kind && ml_str_ends(ml_str_of(kind), "List") &&
           ml_json_find(body, &items, "items", NULL);
}

static int keep(struct ml_snapshot *self, const struct read *read,
                const struct ml_transport_call *call, struct ml_err *err)
{
    struct ml_str body = ml_buf_str(&call->body);
    ML_AUTO(ml_buf_fini) struct ml_buf object = ML_BUF_INIT;
    if (call->body.failed)
        return ml_err_set(err, ML_ELIMIT, "the answer to GET %s is too large", call->path);
    if (call->status == 200 && is_list_body(body))
        return keep_page(self, read, call, err);
    if (!append_object(self, body, call->status == 200 && path_is_of_secrets(call->path), &object))
        return 0; /* nobody could read it */
    ML_AUTO_FREE char *path = ml_str_dup(ml_buf_str(&read->path));
    struct answer *answer = add_answer(self, path, call->accept, call->status);
    ml_buf_append_str(&answer->json, ml_buf_str(&object));
    return snapshot_grow(self, answer, object.len, err);
}

static void on_head(void *context, const struct ml_http_head *head)
{
    struct ml_transport_call *call = context;
    call->status = head->status;
    call->keeps = call->keeps && (head->status == 200 || head->status == 404);
    if (call->handler.head)
        call->handler.head(call->context, head);
}

static int on_data(void *context, struct ml_str piece, struct ml_err *err)
{
    struct ml_transport_call *call = context;
    if (call->keeps)
        ml_buf_append_str(&call->body, piece);
    return call->handler.data ? call->handler.data(call->context, piece, err) : 0;
}

static void on_done(void *context, const struct ml_err *failure)
{
    struct ml_transport_call *call = context;
    struct ml_snapshot *snapshot = call->recorder->snapshot;
    struct ml_err err = ML_ERR_INIT;
    struct read read;
    read_parse(&read, call->path);
    if (call->keeps && !failure && keep(snapshot, &read, call, &err) < 0 && !snapshot->trouble.kind)
        snapshot->trouble = err;
    ml_buf_fini(&read.path);
    struct ml_http_handler handler = call->handler;
    void *owner = call->context;
    call_free(call);
    handler.done(owner, failure);
}

static struct ml_transport_call *recorder_submit(struct ml_transport *transport,
                                                 const struct ml_transport_request *request,
                                                 const struct ml_http_handler *handler,
                                                 void *context)
{
    static const struct ml_http_handler recording = {on_head, on_data, on_done};
    struct recorder *self = ml_container_of(transport, struct recorder, transport);
    struct ml_transport_call *call = ml_new(struct ml_transport_call);
    struct read read;
    read_parse(&read, request->path);
    call->recorder = self;
    call->handler = *handler;
    call->context = context;
    call->path = ml_strdup(request->path);
    call->accept = ml_strdup(request->accept);
    call->keeps = strcmp(request->method, "GET") == 0 && !read.watches;
    ml_buf_init(&call->body, ML_SNAPSHOT_ANSWER_MAX);
    call->inner = self->server->submit(self->server, request, &recording, call);
    ml_buf_fini(&read.path);
    return call;
}

static void recorder_cancel(struct ml_transport *transport, struct ml_transport_call *call)
{
    struct recorder *self = ml_container_of(transport, struct recorder, transport);
    self->server->cancel(self->server, call->inner);
    call_free(call);
}

static void recorder_free(struct ml_transport *transport)
{
    free(ml_container_of(transport, struct recorder, transport));
}

struct ml_transport *ml_snapshot_recorder_new(struct ml_snapshot *snapshot,
                                              struct ml_transport *server)
{
    struct recorder *self = ml_new(struct recorder);
    self->snapshot = snapshot;
    self->server = server;
    self->transport = *server;
    self->transport.submit = recorder_submit;
    self->transport.cancel = recorder_cancel;
    self->transport.free = recorder_free;
    return &self->transport;
}

/* ---- the file ---- */

static void begin_line(struct ml_json_writer *writer, struct ml_buf *line)
{
    ml_buf_clear(line);
    ml_json_writer_init(writer, line);
    ml_json_begin_object(writer);
}

static void put_line(struct ml_json_writer *writer, FILE *file, size_t *lines)
{
    ml_json_end_object(writer);
    ml_buf_putc(writer->out, '\n');
    fwrite(writer->out->ptr, 1, writer->out->len, file);
    ++*lines;
}

static void write_answer(const struct answer *answer, struct ml_buf *line, FILE *file,
                         size_t *lines)
{
    struct ml_json_writer writer;
    struct ml_str items = ml_buf_str(&answer->json);
    begin_line(&writer, line);
    ml_json_put_string(&writer, answer->is_list ? "list" : "get", ml_str_of(answer->path));
    if (answer->accept)
        ml_json_put_string(&writer, "accept", ml_str_of(answer->accept));
    ml_json_put_int(&writer, "status", answer->status);
    if (!answer->is_list) {
        ml_json_put_raw(&writer, "answer", ml_buf_str(&answer->json));
        put_line(&writer, file, lines);
        return;
    }
    ml_json_put_string(&writer, "kind", ml_str_of(answer->kind));
    ml_json_put_string(&writer, "apiVersion", ml_str_of(answer->api_version));
    ml_json_key(&writer, ML_STR("metadata"));
    ml_json_begin_object(&writer);
    ml_json_put_string(&writer, "resourceVersion", ml_str_of(answer->version));
    ml_json_end_object(&writer);
    put_line(&writer, file, lines);
    for (ml_str_cut(&items, '\n'); items.ptr;) {
        begin_line(&writer, line);
        ml_json_put_raw(&writer, "item", ml_str_cut(&items, '\n'));
        put_line(&writer, file, lines);
    }
}

static bool write_lines(const struct ml_snapshot *self, FILE *file)
{
    ML_AUTO(ml_buf_fini) struct ml_buf line;
    struct ml_json_writer writer;
    size_t lines = 0, cursor = 0;
    ml_buf_init(&line, 2 * ML_SNAPSHOT_ANSWER_MAX);
    begin_line(&writer, &line);
    ml_json_put_string(&writer, "kind", ML_STR("Snapshot"));
    ml_json_put_string(&writer, "apiVersion", ML_STR("moonloop.dev/v1"));
    if (self->ns)
        ml_json_put_string(&writer, "namespace", ml_str_of(self->ns));
    put_line(&writer, file, &lines);
    for (const struct answer *answer; (answer = ml_set_next(&self->answers, &cursor));)
        write_answer(answer, &line, file, &lines);
    begin_line(&writer, &line);
    ml_json_put_int(&writer, "end", (int64_t)lines);
    put_line(&writer, file, &lines);
    return !ferror(file);
}

int ml_snapshot_write(const struct ml_snapshot *self, const char *path, struct ml_err *err)
{
    ML_AUTO_FREE char *beside = ml_asprintf("%s.XXXXXX", path);
    if (self->trouble.kind) {
        *err = self->trouble;
        return err->kind;
    }
    int fd = mkostemp(beside, O_CLOEXEC); /* mode 0600 */
    FILE *file = fd >= 0 ? fdopen(fd, "we") : NULL;
    bool written = file && write_lines(self, file) && fflush(file) == 0 && fsync(fd) == 0;
    int reason = errno;
    if (file)
        written = fclose(file) == 0 && written;
    if (written && rename(beside, path) == 0)
        return 0;
    ml_err_set(err, ML_EIO, "%s: cannot be written: %s", path,
               strerror(written || !reason ? errno : reason));
    if (fd >= 0)
        unlink(beside);
    return err->kind;
}

static int line_is_bad(struct ml_err *err, const char *why)
{
    return ml_err_set(err, ML_EINVALID, "%s", why);
}

/* {"get":PATH,…} or {"list":PATH,…} */
static int take_answer(struct ml_snapshot *self, struct ml_str line, struct ml_err *err)
{
    ML_AUTO_FREE char *get = ml_json_find_string(line, "get", NULL);
    ML_AUTO_FREE char *list = ml_json_find_string(line, "list", NULL);
    ML_AUTO_FREE char *accept = ml_json_find_string(line, "accept", NULL);
    struct ml_str status = {"", 0}, json = {"", 0};
    uint64_t code;
    (void)ml_json_find(line, &status, "status", NULL);
    (void)ml_json_find(line, &json, "answer", NULL);
    if (!ml_str_to_u64(status, &code) || (code != 200 && code != 404))
        return line_is_bad(err, "`status` is neither 200 nor 404");
    if (!get && !list)
        return line_is_bad(err, "`get` is no path, nor is `list`");
    if (get && json.len == 0)
        return line_is_bad(err, "`answer` is missing");
    struct answer *answer = add_answer(self, get ? get : list, accept, (int)code);
    self->reads = get ? NULL : answer;
    if (list) {
        answer_be_list(answer, line);
        return answer->kind && answer->api_version && answer->version
                   ? 0
                   : line_is_bad(err, "a list without kind, apiVersion or resourceVersion");
    }
    ml_buf_append_str(&answer->json, json);
    return snapshot_grow(self, answer, json.len, err);
}

/* `number`: of the line, from 1. `ended`: it was the last one. */
static int take_line(struct ml_snapshot *self, struct ml_str line, size_t number, bool *ended,
                     struct ml_err *err)
{
    struct ml_json_wanted wanted[] = {
        {.name = "get"}, {.name = "list"}, {.name = "item"}, {.name = "end"}, {.name = "kind"}};
    uint64_t lines;
    if (*ended)
        return line_is_bad(err, "there is more behind the end");
    if (ml_json_check(line, 0, err) < 0)
        return err->kind;
    ml_json_find_members(line, wanted, ML_COUNT(wanted));
    if (number == 1) {
        self->ns = ml_json_find_string(line, "namespace", NULL);
        return ml_str_is(wanted[4].raw, "\"Snapshot\"")
                   ? 0
                   : line_is_bad(err, "no snapshot of `moonloop snapshot`");
    }
    if (wanted[0].raw.len > 0 || wanted[1].raw.len > 0)
        return take_answer(self, line, err);
    if (wanted[2].raw.len > 0 && self->reads)
        return add_item(self, self->reads, wanted[2].raw, err);
    *ended = ml_str_to_u64(wanted[3].raw, &lines) && lines == number - 1;
    return *ended ? 0 : line_is_bad(err, "neither an answer, nor an item of a list, nor the end");
}

static int read_lines(struct ml_snapshot *self, FILE *file, const char *path, struct ml_err *err)
{
    struct ml_json_lines lines;
    ML_AUTO_FREE char *bytes = ml_alloc(PIECE);
    size_t number = 0, len;
    bool ended = false;
    int r = 0;
    ml_json_lines_init(&lines, 2 * ML_SNAPSHOT_ANSWER_MAX);
    while (r >= 0 && (len = fread(bytes, 1, PIECE, file)) > 0) {
        struct ml_str piece = {bytes, len}, line;
        while ((r = ml_json_lines_next(&lines, &piece, &line, err)) > 0 &&
               (r = take_line(self, line, ++number, &ended, err)) == 0)
            continue;
    }
    ml_json_lines_fini(&lines);
    if (r < 0)
        return ml_err_wrap(err, "%s:%zu", path, number);
    if (ferror(file))
        return ml_err_set(err, ML_EIO, "%s: cannot be read: %s", path, strerror(errno));
    if (!ended)
        return ml_err_set(err, ML_EINVALID, "%s: %s", path,
                          number > 0 ? "it is not whole; take it again"
                                     : "no snapshot of `moonloop snapshot`");
    return 0;
}

int ml_snapshot_read(const char *path, struct ml_snapshot **out, struct ml_err *err)
{
    FILE *file = fopen(path, "re");
    if (!file)
        return ml_err_set(err, ML_EIO, "%s: cannot be read: %s", path, strerror(errno));
    struct ml_snapshot *self = snapshot_new();
    int r = read_lines(self, file, path, err);
    fclose(file);
    if (r < 0) {
        ml_snapshot_free(self);
        return r;
    }
    self->reads = NULL;
    *out = self;
    return 0;
}

/* ---- answering ---- */

struct replay {
    struct ml_transport transport;
    struct ml_snapshot *snapshot;
    struct ml_loop *loop;
    struct ml_list calls;
};

static void replay_call_free(struct ml_transport_call *call)
{
    ml_list_remove(&call->node);
    ml_task_cancel(&call->task);
    call_free(call);
}

static void replay_end(struct ml_transport_call *call, const struct ml_err *err)
{
    struct ml_http_handler handler = call->handler;
    void *context = call->context;
    replay_call_free(call);
    handler.done(context, err);
}

/* The list as one page. */
static void append_list(const struct answer *list, struct ml_buf *out)
{
    struct ml_json_writer writer;
    ml_json_writer_init(&writer, out);
    ml_json_begin_object(&writer);
    ml_json_put_string(&writer, "kind", ml_str_of(list->kind));
    ml_json_put_string(&writer, "apiVersion", ml_str_of(list->api_version));
    ml_json_key(&writer, ML_STR("metadata"));
    ml_json_begin_object(&writer);
    ml_json_put_string(&writer, "resourceVersion", ml_str_of(list->version));
    ml_json_end_object(&writer);
    ml_json_key(&writer, ML_STR("items"));
    ml_json_begin_array(&writer);
    struct ml_str items = ml_buf_str(&list->json);
    for (ml_str_cut(&items, '\n'); items.ptr;)
        ml_json_raw(&writer, ml_str_cut(&items, '\n'));
    ml_json_end_array(&writer);
    ml_json_end_object(&writer);
}

static void replay_answer(void *context)
{
    struct ml_transport_call *call = context;
    struct ml_http_head head = {
        .retry_after_ms = -1, .content_type = ML_STR("application/json"), .status = 200};
    struct ml_err err = ML_ERR_INIT;
    ML_AUTO(ml_buf_fini) struct ml_buf body;
    struct read read;
    ml_buf_init(&body, 2 * ML_SNAPSHOT_BYTES_MAX);
    read_parse(&read, call->path);
    const struct answer *answer = find_answer(call->replay->snapshot, ml_buf_cstr(&read.path),
                                              call->accept);
    ml_buf_fini(&read.path);
    if (!call->keeps || !answer) {
        ml_err_set(&err, ML_EINVALID, "%s is not in the snapshot", call->path);
        replay_end(call, &err);
        return;
    }
    if (answer->is_list)
        append_list(answer, &body);
    else
        ml_buf_append_str(&body, ml_buf_str(&answer->json));
    head.status = answer->status;
    if (call->handler.head)
        call->handler.head(call->context, &head);
    if (call->handler.data && call->handler.data(call->context, ml_buf_str(&body), &err) < 0)
        replay_end(call, &err);
    else
        replay_end(call, NULL);
}

static void replay_begin_watch(void *context)
{
    struct ml_transport_call *call = context;
    const struct ml_http_head head = {
        .retry_after_ms = -1, .content_type = ML_STR("application/json"), .status = 200};
    if (call->handler.head)
        call->handler.head(call->context, &head);
}

static struct ml_transport_call *replay_submit(struct ml_transport *transport,
                                               const struct ml_transport_request *request,
                                               const struct ml_http_handler *handler, void *context)
{
    struct replay *self = ml_container_of(transport, struct replay, transport);
    struct ml_transport_call *call = ml_new(struct ml_transport_call);
    struct read read;
    read_parse(&read, request->path);
    call->replay = self;
    call->handler = *handler;
    call->context = context;
    call->path = ml_strdup(request->path);
    call->accept = ml_strdup(request->accept);
    call->keeps = strcmp(request->method, "GET") == 0;
    ml_list_push(&self->calls, &call->node);
    ml_task_init(&call->task, read.watches ? replay_begin_watch : replay_answer, call);
    ml_task_defer(&call->task, self->loop);
    ml_buf_fini(&read.path);
    return call;
}

static void replay_cancel(struct ml_transport *transport ML_UNUSED, struct ml_transport_call *call)
{
    replay_call_free(call);
}

static void replay_free(struct ml_transport *transport)
{
    free(ml_container_of(transport, struct replay, transport));
}

struct ml_transport *ml_snapshot_transport_new(struct ml_snapshot *snapshot, struct ml_loop *loop)
{
    struct replay *self = ml_new(struct replay);
    self->snapshot = snapshot;
    self->loop = loop;
    ml_list_init(&self->calls);
    self->transport = (struct ml_transport){.submit = replay_submit,
                                            .cancel = replay_cancel,
                                            .free = replay_free,
                                            .host = "snapshot",
                                            .local = true};
    return &self->transport;
}
