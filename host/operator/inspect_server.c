/* Serves questions: reviews the token of each request at the port, and makes the answer again until
 * the API server has said all that it depends on. */
#include "operator/inspect_server.h"

#include "base/repeat.h"
#include "base/wipe.h"
#include "codec/crypto.h"
#include "codec/json.h"
#include "net/address.h"
#include "net/http_server.h"

#include <strings.h>
#include <unistd.h>

#define HEADER_BYTES_MAX ((size_t)64 * 1024)
#define BODY_BYTES_MAX   ((size_t)4 * 1024) /* questions have none */
#define TOKEN_BYTES_MAX  ((size_t)32 * 1024)

static const struct ml_kind kind_token_review = {"authentication.k8s.io/v1",
                                                 "authentication.k8s.io",
                                                 "v1",
                                                 "TokenReview",
                                                 "tokenreviews",
                                                 false,
                                                 true};
static const struct ml_kind kind_access_review = {"authorization.k8s.io/v1",
                                                  "authorization.k8s.io",
                                                  "v1",
                                                  "SubjectAccessReview",
                                                  "subjectaccessreviews",
                                                  false,
                                                  true};

/* May the asker do this? */
struct decision {
    const char *verb; /* static */
    const struct ml_kind *kind;
    char *ns, *name; /* "": all */
    bool is_known, allows;
};

/* The API server's word about a token. */
struct asker {
    size_t refs; /* questions that use it, and the cache */
    unsigned char digest[ML_SHA256_LEN];
    int64_t until_ns; /* monotonic; later questions ask anew */
    bool authenticated;
    char *user;                 /* the fields of a SubjectAccessReview's spec: JSON, with ',' */
    struct decision *decisions; /* the last ones may be unknown yet */
    size_t decision_count, decision_room;
};

struct ml_inspect_server {
    struct ml_inspect_server_opts opts;
    struct ml_http_server *server;
    struct asker *askers[ML_INSPECT_ASKERS_MAX]; /* the newest last */
    size_t asker_count;
    struct ml_list questions;
    size_t question_count;
    struct ml_repeat unanswered;
};

struct question {
    struct ml_list node;
    struct ml_inspect_server *of;
    struct ml_http_exchange *exchange;
    char *path, *query; /* decoded */
    unsigned char digest[ML_SHA256_LEN];
    struct asker *asker;         /* NULL: not reviewed yet, or asked at the socket */
    struct ml_inspect_read read; /* as in inspect.h */
    size_t asked;                /* the decision of the asker that the call is about */
    struct ml_client_call *call; /* NULL: none is under way */
    struct ml_timer patience;
};

/* ---- the cache ---- */

static void asker_unref(struct asker *self)
{
    if (!self || --self->refs > 0)
        return;
    for (size_t i = 0; i < self->decision_count; i++) {
        free(self->decisions[i].ns);
        free(self->decisions[i].name);
    }
    free(self->decisions);
    free(self->user);
    free(self);
}

static int64_t now_ns(const struct ml_inspect_server *self)
{
    return ml_clock_monotonic(ml_loop_clock(self->opts.loop));
}

static void forget_asker(struct ml_inspect_server *self, size_t at)
{
    asker_unref(self->askers[at]);
    self->asker_count--;
    memmove(&self->askers[at], &self->askers[at + 1],
            (self->asker_count - at) * sizeof *self->askers);
}

/* A reference, or NULL: the token has to be reviewed. */
static struct asker *find_asker(struct ml_inspect_server *self, const unsigned char *digest)
{
    while (self->asker_count > 0 && self->askers[0]->until_ns <= now_ns(self))
        forget_asker(self, 0);
    for (size_t i = 0; i < self->asker_count; i++)
        if (memcmp(self->askers[i]->digest, digest, ML_SHA256_LEN) == 0) {
            self->askers[i]->refs++;
            return self->askers[i];
        }
    return NULL;
}

static void keep_asker(struct ml_inspect_server *self, struct asker *asker)
{
    if (self->asker_count == ML_INSPECT_ASKERS_MAX)
        forget_asker(self, 0);
    asker->refs++;
    self->askers[self->asker_count++] = asker;
}

static bool decision_is(const struct decision *decision, const char *verb,
                        const struct ml_kind *kind, struct ml_str ns, struct ml_str name)
{
    return decision->kind == kind && strcmp(decision->verb, verb) == 0 &&
           ml_str_is(ns, decision->ns) && ml_str_is(name, decision->name);
}

/* Of ml_inspect_asker. A decision that is not known yet is noted, and the answer is made again. */
static bool asker_may(void *context, const char *verb, const struct ml_kind *kind, struct ml_str ns,
                      struct ml_str name)
{
    struct asker *self = context;
    for (size_t i = 0; i < self->decision_count; i++)
        if (decision_is(&self->decisions[i], verb, kind, ns, name))
            return self->decisions[i].is_known && self->decisions[i].allows;
    if (self->decision_count == ML_INSPECT_DECISIONS_MAX)
        return false;
    if (self->decision_count == self->decision_room) {
        self->decision_room = self->decision_room ? 2 * self->decision_room : 8;
        self->decisions = ml_realloc(self->decisions,
                                     self->decision_room * sizeof *self->decisions);
    }
    self->decisions[self->decision_count++] = (struct decision){
        .verb = verb, .kind = kind, .ns = ml_str_dup(ns), .name = ml_str_dup(name)};
    return false;
}

/* SIZE_MAX: all are known. */
static size_t first_unknown(const struct asker *self)
{
    for (size_t i = 0; i < self->decision_count; i++)
        if (!self->decisions[i].is_known)
            return i;
    return SIZE_MAX;
}

/* ---- answers ---- */

static void question_free(struct question *self)
{
    if (self->call)
        ml_client_cancel(self->call);
    ml_timer_stop(&self->patience);
    ml_list_remove(&self->node);
    self->of->question_count--;
    asker_unref(self->asker);
    free(self->read.ns);
    free(self->read.name);
    ml_wipe_buf(&self->read.object);
    free(self->read.err);
    free(self->path);
    free(self->query);
    free(self);
}

static void send_answer(struct ml_http_exchange *exchange, int status, const char *type,
                        struct ml_str body)
{
    static const struct ml_http_header bearer = {"WWW-Authenticate", "Bearer"};
    static const struct ml_http_header allow = {"Allow", "GET"};
    ml_http_answer(exchange,
                   &(struct ml_http_answer){.status = status,
                                            .content_type = type,
                                            .headers = status == 405 ? &allow : &bearer,
                                            .header_count = status == 405 || status == 401,
                                            .body = body});
}

static void refuse(struct ml_http_exchange *exchange, int status, const char *text)
{
    send_answer(exchange, status, "text/plain; charset=utf-8", ml_str_of(text));
}

static void question_end(struct question *self, int status, const char *text)
{
    refuse(self->exchange, status, text);
    question_free(self);
}

static void on_question_closed(void *context)
{
    question_free(context);
}

/* The API server did not say it. */
static void question_fail(struct question *self, const struct ml_err *err)
{
    struct ml_inspect_server *of = self->of;
    ML_AUTO(ml_buf_fini) struct ml_buf text = ML_BUF_INIT;
    if (ml_repeat_failed(&of->unanswered, ml_str_of(err->message), now_ns(of)))
        ml_warn(of->opts.log, "host",
                "a question is not answered: the API server does not review the asker",
                ML_ERR_FIELDS(err), ML_REPEAT_FIELDS(&of->unanswered, INT64_C(-1)));
    ml_buf_printf(
        &text, "the host cannot ask the API server about you: %s%s\n", err->message,
        err->http == 403
            ? " (moonloop rbac --inspect-bind-address prints the roles that the host needs)"
            : "");
    question_end(self, 503, ml_buf_cstr(&text));
}

static void on_patience_over(void *context)
{
    struct question *self = context;
    struct ml_err err = ML_ERR_INIT;
    ml_err_set(&err, ML_ETIMEOUT, "no answer within %d s",
               (int)(ML_INSPECT_PATIENCE_NS / ML_NS_PER_S));
    question_fail(self, &err);
}

/* ---- reviews ---- */

static void question_go_on(struct question *self);

static void send_review(struct question *self, const struct ml_kind *kind, struct ml_str body,
                        ml_client_done *done)
{
    const struct ml_client_request request = {
        .verb = ML_VERB_CREATE,
        .kind = kind,
        .body = body,
        .secret = true,
        .timeout_ms = ML_INSPECT_PATIENCE_NS / ML_NS_PER_MS,
    };
    self->call = ml_client_send(self->of->opts.client, &request, done, self);
}

static bool is_true(struct ml_str json, const char *key)
{
    struct ml_str raw = {"", 0};
    return ml_json_find(json, &raw, "status", key, NULL) && ml_str_is(raw, "true");
}

static void on_access_reviewed(void *context, struct ml_str body, const struct ml_err *err)
{
    struct question *self = context;
    struct decision *asked = &self->asker->decisions[self->asked];
    self->call = NULL;
    if (err) {
        question_fail(self, err);
        return;
    }
    asked->is_known = true;
    asked->allows = is_true(body, "allowed");
    question_go_on(self);
}

static void ask_for_decision(struct question *self, size_t at)
{
    const struct decision *decision = &self->asker->decisions[at];
    ML_AUTO(ml_buf_fini) struct ml_buf body = ML_BUF_INIT, attributes = ML_BUF_INIT;
    const struct ml_kind *kind = decision->kind;
    struct ml_json_writer writer;
    ml_json_writer_init(&writer, &attributes);
    ml_json_begin_object(&writer);
    if (*decision->ns)
        ml_json_put_string(&writer, "namespace", ml_str_of(decision->ns));
    ml_json_put_string(&writer, "verb", ml_str_of(decision->verb));
    ml_json_put_string(&writer, "group", ml_str_of(kind->group));
    ml_json_put_string(&writer, "version", ml_str_of(kind->version));
    ml_json_put_string(&writer, "resource", ml_str_of(kind->plural));
    if (*decision->name)
        ml_json_put_string(&writer, "name", ml_str_of(decision->name));
    ml_json_end_object(&writer);
    ml_buf_printf(&body,
                  "{\"apiVersion\":\"authorization.k8s.io/v1\",\"kind\":\"SubjectAccessReview\","
                  "\"spec\":{%s\"resourceAttributes\":%s}}",
                  self->asker->user, ml_buf_cstr(&attributes));
    self->asked = at;
    send_review(self, &kind_access_review, ml_buf_str(&body), on_access_reviewed);
}

/* Makes the answer with the decisions that there are, asks for those that it lacks, and sends it
 * once there are all. */
static void on_object_read(void *context, struct ml_str body, const struct ml_err *err)
{
    struct question *self = context;
    self->call = NULL;
    self->read.is_known = true;
    self->read.err = err ? ml_err_dup(err) : NULL;
    ml_buf_reserve(&self->read.object, body.len); /* in one piece, to be wiped */
    ml_buf_append_str(&self->read.object, body);
    question_go_on(self);
}

/* By the host's own right: the asker may get it, or the answer would not need it. */
static void read_object(struct question *self, const struct ml_inspect_view *view)
{
    const struct ml_client_request request = {
        .verb = ML_VERB_GET,
        .kind = self->read.kind,
        .ns = ml_str_of(self->read.ns),
        .name = ml_str_of(self->read.name),
        .secret = true,
        .timeout_ms = ML_INSPECT_PATIENCE_NS / ML_NS_PER_MS,
    };
    self->call = ml_client_send(view->services->client, &request, on_object_read, self);
}

/* SIZE_MAX for the asker of the socket, who is told all. */
static size_t unknown_of(const struct question *self)
{
    return self->asker ? first_unknown(self->asker) : SIZE_MAX;
}

static void question_go_on(struct question *self)
{
    struct ml_inspect_server *of = self->of;
    ML_AUTO(ml_buf_fini) struct ml_buf why = ML_BUF_INIT, out = ML_BUF_INIT;
    if (self->asker && !self->asker->authenticated) {
        question_end(self, 401, "the API server does not know this token\n");
        return;
    }
    const struct ml_inspect_asker asker = {asker_may, self->asker};
    struct ml_inspect_view view = {.ready = false};
    int status = 200;
    if (unknown_of(self) == SIZE_MAX) {
        of->opts.look(of->opts.context, &why, &view);
        view.asker = self->asker ? &asker : NULL;
        view.read = &self->read;
        status = ml_inspect_answer(&view, self->path, self->query, &out);
    }
    size_t unknown = unknown_of(self);
    if (unknown != SIZE_MAX) {
        ask_for_decision(self, unknown);
        return;
    }
    if (status == ML_INSPECT_READS) {
        read_object(self, &view);
        return;
    }
    ml_repeat_over(&of->unanswered);
    send_answer(self->exchange, status,
                status == 200 ? "application/json" : "text/plain; charset=utf-8", ml_buf_str(&out));
    question_free(self);
}

/* The fields of a user that a SubjectAccessReview takes over, each with a ',' behind it. */
static char *user_fields(struct ml_str review)
{
    static const char *const names[][2] = {
        {"username", "user"}, {"uid", "uid"}, {"groups", "groups"}, {"extra", "extra"}};
    struct ml_buf out = ML_BUF_INIT;
    struct ml_str raw;
    for (size_t i = 0; i < ML_COUNT(names); i++)
        if (ml_json_find(review, &raw, "status", "user", names[i][0], NULL))
            ml_buf_printf(&out, "\"%s\":" ML_STR_FMT ",", names[i][1], ML_STR_ARG(raw));
    return ml_buf_take(&out);
}

static void on_token_reviewed(void *context, struct ml_str body, const struct ml_err *err)
{
    struct question *self = context;
    self->call = NULL;
    if (err) {
        question_fail(self, err);
        return;
    }
    struct asker *asker = ml_new(struct asker);
    asker->refs = 1;
    memcpy(asker->digest, self->digest, sizeof asker->digest);
    asker->until_ns = now_ns(self->of) + ML_INSPECT_KEPT_NS;
    asker->authenticated = is_true(body, "authenticated");
    asker->user = user_fields(body);
    keep_asker(self->of, asker);
    self->asker = asker;
    question_go_on(self);
}

/* The token has characters that need no escape. */
static void ask_for_user(struct question *self, struct ml_str token)
{
    const struct ml_str before = ML_STR(
        "{\"apiVersion\":\"authentication.k8s.io/v1\",\"kind\":\"TokenReview\",\"spec\":{"
        "\"token\":\"");
    const struct ml_str after = ML_STR("\"}}");
    struct ml_buf body = ML_BUF_INIT;
    ml_buf_reserve(&body, before.len + token.len + after.len); /* all in one piece, to be wiped */
    ml_buf_append_str(&body, before);
    ml_buf_append_str(&body, token);
    ml_buf_append_str(&body, after);
    send_review(self, &kind_token_review, ml_buf_str(&body), on_token_reviewed);
    ml_wipe_buf(&body);
}

/* ---- serving ---- */

/* The token of a request, in its header; empty: it has none, or one that no token looks like
 * (RFC 6750, 2.1). */
static struct ml_str token_of(const char *authorization)
{
    static const char characters[] = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ"
                                     "0123456789-._~+/=";
    const size_t scheme = strlen("Bearer ");
    if (!authorization || strncasecmp(authorization, "Bearer ", scheme) != 0)
        return ML_STR("");
    struct ml_str token = ml_str_trim(ml_str_of(authorization + scheme));
    for (size_t i = 0; i < token.len; i++)
        if (!memchr(characters, token.ptr[i], sizeof characters - 1))
            return ML_STR("");
    return token.len <= TOKEN_BYTES_MAX ? token : ML_STR("");
}

static void question_begin(struct ml_inspect_server *of, struct ml_http_exchange *exchange,
                           char *path, char *query, struct ml_str token)
{
    struct question *self = ml_new(struct question);
    self->of = of;
    self->exchange = exchange;
    self->path = path;
    self->query = query;
    ml_sha256(token, self->digest);
    ml_list_push(&of->questions, &self->node);
    of->question_count++;
    ml_timer_init(&self->patience, of->opts.loop, on_patience_over, self);
    ml_timer_start(&self->patience, ML_INSPECT_PATIENCE_NS);
    exchange->closed = on_question_closed;
    exchange->context = self;
    self->asker = of->opts.address ? find_asker(of, self->digest) : NULL;
    if (self->asker || !of->opts.address)
        question_go_on(self);
    else
        ask_for_user(self, token);
}

static void handle(void *context, struct ml_http_exchange *exchange)
{
    struct ml_inspect_server *self = context;
    ML_AUTO_WIPE char *authorization = ml_strdup(ml_http_header(exchange, "Authorization"));
    struct ml_str token = token_of(authorization);
    ML_AUTO_FREE char *path = ml_http_decode(exchange->path);
    ML_AUTO_FREE char *query = ml_http_decode(exchange->query);
    ml_http_forget_header(exchange, "Authorization");
    if (strcmp(exchange->method, "GET") != 0)
        refuse(exchange, 405, "a question is asked with GET\n");
    else if (!path || !query)
        refuse(exchange, 400, "the path has a NUL\n");
    else if (self->opts.address && token.len == 0)
        refuse(exchange, 401, "expected the header Authorization: Bearer TOKEN\n");
    else if (self->question_count == ML_INSPECT_UNDER_WAY_MAX)
        refuse(exchange, 503, "too many questions are under way; ask again\n");
    else
        question_begin(self, exchange, ml_take(&path), ml_take(&query), token);
}

static void make_refusal(void *context, int status, struct ml_http_answer *answer)
{
    (void)context;
    answer->content_type = "text/plain; charset=utf-8";
    answer->body = status == 400   ? ML_STR("the request is not valid HTTP\n")
                   : status == 413 ? ML_STR("a question has no body\n")
                                   : ML_STR("a question is asked with GET\n");
}

/* "127.0.0.1:8082", "[::1]:8082", "localhost:8082". */
static bool is_loopback(const char *address)
{
    ML_AUTO_FREE char *origin = ml_asprintf("http://%s", address);
    return address[0] != ':' && ml_origin_is_loopback(origin);
}

char *ml_inspect_socket(const char *pid)
{
    char target[64] = "";
    ssize_t len = readlink("/proc/self/ns/pid", target, sizeof target - 1);
    struct ml_str ns = {target, len > 0 ? (size_t)len : 0}; /* "pid:[4026531836]" */
    (void)ml_str_cut(&ns, '[');
    ns = ml_str_cut(&ns, ']');
    return ml_asprintf(ML_INSPECT_SOCKET "%s." ML_STR_FMT, pid, ML_STR_ARG(ns));
}

int ml_inspect_server_new(const struct ml_inspect_server_opts *opts, struct ml_inspect_server **out,
                          struct ml_err *err)
{
    ML_AUTO_FREE char *pid = ml_asprintf("%d", (int)getpid());
    ML_AUTO_FREE char *name = ml_inspect_socket(pid);
    ML_AUTO_FREE char *socket = ml_asprintf("@%s", name);
    if (opts->address && !is_loopback(opts->address))
        return ml_err_set(err, ML_EINVALID,
                          "expected an address of loopback, as in 127.0.0.1:8082: askers send "
                          "tokens in plain text, and come by kubectl's way, pods/portforward");
    struct ml_inspect_server *self = ml_new(struct ml_inspect_server);
    self->opts = *opts;
    ml_list_init(&self->questions);
    const struct ml_http_server_opts server = {
        .loop = opts->loop,
        .address = opts->address ? opts->address : socket,
        .handle = handle,
        .context = self,
        .refusal = make_refusal,
        .limits = {.header_bytes_max = HEADER_BYTES_MAX, .body_bytes_max = BODY_BYTES_MAX},
    };
    if (ml_http_server_new(&server, &self->server, err) < 0) {
        free(self);
        return err->kind;
    }
    *out = self;
    return 0;
}

void ml_inspect_server_free(struct ml_inspect_server *self)
{
    if (!self)
        return;
    ml_http_server_free(self->server); /* closes what is under way */
    ml_assert(self->question_count == 0);
    while (self->asker_count > 0)
        forget_asker(self, 0);
    free(self);
}

int ml_inspect_server_port(const struct ml_inspect_server *self)
{
    return ml_http_server_port(self->server);
}
