/* Finds running hosts and asks them: on this machine by their local sockets; in a cluster through
 * the API server, at the port of --inspect-bind-address. */
#include "cli/ask.h"

#include "base/wipe.h"
#include "cli/api.h"
#include "codec/json.h"
#include "kube/port_forward.h"
#include "net/http_client.h"
#include "net/local.h"
#include "operator/inspect_server.h"

#include <errno.h>
#include <stdio.h>
#include <sys/socket.h>
#include <unistd.h>

#define ANSWER_MAX ((size_t)4 * 1024 * 1024)

/* ---- on this machine ---- */

/* The process id of a host that listens, in a line of /proc/net/unix; empty: it has none, or one of
 * another process id namespace. */
static struct ml_str pid_of_line(struct ml_str line, struct ml_str ns)
{
    struct ml_str name = {NULL, 0};
    while (line.len > 0)
        name = ml_str_cut(&line, ' ');
    if (!ml_str_starts(name, "@" ML_INSPECT_SOCKET))
        return ML_STR("");
    size_t prefix = strlen("@" ML_INSPECT_SOCKET);
    struct ml_str rest = {name.ptr + prefix, name.len - prefix};
    struct ml_str pid = ml_str_cut(&rest, '.');
    uint64_t number;
    return ml_str_to_u64(pid, &number) && ml_str_eq(rest, ns) ? pid : ML_STR("");
}

/* Is `pid` in the list, "12, 34"? */
static bool has_pid(struct ml_str pids, struct ml_str pid)
{
    while (pids.len > 0)
        if (ml_str_eq(ml_str_trim(ml_str_cut(&pids, ',')), pid))
            return true;
    return false;
}

/* Fills `pids` with those of all hosts, "12, 34". Returns how many there are. A connection has the
 * name of its host's socket as well. */
static size_t list_hosts(struct ml_buf *pids)
{
    ML_AUTO_FREE char *own = ml_inspect_socket("");
    struct ml_str ns = ml_str_of(own);
    size_t count = 0, capacity = 0;
    char *line = NULL;
    ssize_t len;
    FILE *sockets = fopen("/proc/net/unix", "re");
    (void)ml_str_cut(&ns, '.');
    while (sockets && (len = getline(&line, &capacity, sockets)) > 0) {
        struct ml_str pid = pid_of_line(ml_str_trim((struct ml_str){line, (size_t)len}), ns);
        if (pid.len > 0 && !has_pid(ml_buf_str(pids), pid))
            ml_buf_printf(pids, "%s" ML_STR_FMT, count++ > 0 ? ", " : "", ML_STR_ARG(pid));
    }
    free(line);
    if (sockets)
        fclose(sockets);
    return count;
}

/* The only host of this machine, unless `pid` is one. */
static int find_here(const char *pid, char **out, struct ml_err *err)
{
    ML_AUTO(ml_buf_fini) struct ml_buf pids = ML_BUF_INIT;
    size_t count = pid ? 1 : list_hosts(&pids);
    if (count == 0)
        return ml_err_set(
            err, ML_ENOT_FOUND,
            "no moonloop host runs on this machine; one in a cluster is asked through "
            "the API server with --namespace moonloop-system, or in its pod: kubectl "
            "exec -n moonloop-system deploy/moonloop -- /moonloop status");
    if (count > 1)
        return ml_err_set(err, ML_EINVALID,
                          "several moonloop hosts run on this machine; choose one with --pid: %s",
                          ml_buf_cstr(&pids));
    *out = pid ? ml_strdup(pid) : ml_buf_take(&pids);
    return 0;
}

static int connect_to_host(const char *pid, int *out_fd, struct ml_err *err)
{
    ML_AUTO_FREE char *name = ml_inspect_socket(pid);
    if (ml_local_connect(name, out_fd, err) == 0)
        return 0;
    if (err->kind == ML_ENOT_FOUND)
        return ml_err_set(err, ML_ENOT_FOUND, "process %s is no moonloop host on this machine",
                          pid);
    return ml_err_wrap(err, "process %s", pid);
}

static bool write_all(int fd, struct ml_str bytes)
{
    while (bytes.len > 0) {
        ssize_t n = send(fd, bytes.ptr, bytes.len, MSG_NOSIGNAL);
        if (n < 0 && errno == EINTR)
            continue;
        if (n <= 0)
            return false;
        bytes = (struct ml_str){bytes.ptr + n, bytes.len - (size_t)n};
    }
    return true;
}

static bool read_all(int fd, struct ml_buf *out)
{
    char piece[16 * 1024];
    for (;;) {
        ssize_t n = read(fd, piece, sizeof piece);
        if (n < 0 && errno == EINTR)
            continue;
        if (n <= 0)
            return n == 0;
        if (!ml_buf_append(out, piece, (size_t)n)) {
            errno = EMSGSIZE;
            return false;
        }
    }
}

/* The host answered with another status than 200. `from`: "the host in pod a: ", or "". */
static int set_refusal(const char *from, int status, struct ml_str text, struct ml_err *err)
{
    int kind = status == 400   ? ML_EINVALID
               : status == 401 ? ML_EUNAUTHORIZED
               : status == 403 ? ML_EFORBIDDEN
               : status == 404 ? ML_ENOT_FOUND
                               : ML_EUNAVAILABLE;
    text = ml_str_trim(ml_str_head(text, 1024));
    return ml_err_set(err, kind, "%s" ML_STR_FMT, from, ML_STR_ARG(text));
}

static int ask_here(const char *pid, struct ml_str path, struct ml_buf *out, struct ml_err *err)
{
    ML_AUTO(ml_buf_fini) struct ml_buf request = ML_BUF_INIT, answer = ML_BUF_INIT;
    int fd = -1;
    ml_buf_init(&answer, ANSWER_MAX);
    if (connect_to_host(pid, &fd, err) < 0)
        return err->kind;
    ml_buf_printf(&request, "GET " ML_STR_FMT " HTTP/1.0\r\n\r\n", ML_STR_ARG(path));
    bool answered = write_all(fd, ml_buf_str(&request)) && read_all(fd, &answer);
    int failed = errno;
    close(fd);
    bool cut = answered || failed == ECONNRESET || failed == EPIPE;
    if (cut && answer.len == 0)
        return ml_err_set(err, ML_EFORBIDDEN,
                          "the host answers its own user and root alone; run this as one of them");
    if (!answered)
        return ml_err_set(err, ML_EIO, "the host does not answer: %s", strerror(failed));
    const char *text = ml_buf_cstr(&answer), *body = strstr(text, "\r\n\r\n");
    int status = 0;
    if (!body || sscanf(text, "HTTP/1.%*1d %3d ", &status) != 1 ||
        (status == 200 && ml_json_check(ml_str_of(body + 4), 0, err) < 0))
        return ml_err_set(err, ML_EIO, "the host's answer is broken");
    if (status != 200)
        return set_refusal("", status, ml_str_of(body + 4), err);
    ml_buf_puts(out, body + 4);
    return 0;
}

/* ---- in a cluster: its pods ---- */

#define NAMESPACE_DEFAULT "moonloop-system"
#define APP_NAME          "moonloop" /* of the label app.kubernetes.io/name */
#define FLAG              "--inspect-bind-address"
#define FLAG_EXAMPLE      FLAG "=127.0.0.1:8082"
#define PATIENCE_MS       10000 /* for a connection */
#define ANSWER_NS         (30 * ML_NS_PER_S)
#define TOKEN_SECONDS     600 /* the least that an API server gives */
#define TOKEN_RENEWED_NS  (300 * ML_NS_PER_S)

struct host {
    struct cluster_hosts *of;
    char *pod;
    int port;
    struct ml_port_forward *forward; /* NULL: not connected */
    bool is_open;
    bool is_waiting;    /* for `is_open`, or for an answer */
    struct ml_buf got;  /* the answer under way */
    struct ml_err *err; /* why the connection ended; NULL: it did not, or the host ended it */
};

struct cluster_hosts {
    struct ml_api *api;
    struct ml_api_parts parts;
    char *ns;
    const char *token_of; /* borrowed; NULL: the kubeconfig's own token is shown */
    char *authorization;  /* of it; NULL: not made yet */
    int64_t made_ns;      /* when */
    struct ml_timer patience;
    bool is_over; /* the patience */
    struct host hosts[ML_ASK_HOSTS_MAX];
    size_t count;
    char *deaf;  /* a pod that takes no questions; NULL: none was found */
    bool is_one; /* somebody named its pod */
};

static const struct ml_kind kind_pod = {"v1", "", "v1", "Pod", "pods", true, true};
static const struct ml_kind kind_account = {"v1", "",   "v1", "ServiceAccount", "serviceaccounts",
                                            true, false};

/* The port of "127.0.0.1:8082"; 0: it has none. */
static int port_of(struct ml_str address)
{
    uint64_t port = 0;
    while (memchr(address.ptr, ':', address.len))
        (void)ml_str_cut(&address, ':');
    return ml_str_to_u64(address, &port) && port < 65536 ? (int)port : 0;
}

/* The port among the arguments of a container: "--flag=ADDRESS", or "--flag" and "ADDRESS". */
static int port_of_args(struct ml_str args)
{
    ML_AUTO(ml_json_reader_fini) struct ml_json_reader reader;
    bool is_next = false;
    int port = 0;
    ml_json_reader_init(&reader, args, 0);
    if (ml_json_next(&reader) != ML_JSON_ARRAY)
        return 0;
    for (struct ml_str raw; (raw = ml_json_skip(&reader)).len > 0;) {
        ML_AUTO(ml_buf_fini) struct ml_buf word = ML_BUF_INIT;
        (void)ml_json_to_string(raw, &word);
        struct ml_str value = ml_buf_str(&word);
        struct ml_str name = is_next ? value : ml_str_cut(&value, '=');
        bool is_flag = !is_next && ml_str_is(name, FLAG);
        if (is_next)
            port = port_of(name);
        else if (is_flag && value.ptr)
            port = port_of(value);
        is_next = is_flag && !value.ptr;
    }
    return port;
}

/* Of the first container that listens for questions. */
static int port_of_pod(struct ml_str pod)
{
    struct ml_str containers = {"", 0}, args;
    ML_AUTO(ml_json_reader_fini) struct ml_json_reader reader;
    int port = 0;
    (void)ml_json_find(pod, &containers, "spec", "containers", NULL);
    ml_json_reader_init(&reader, containers, 0);
    if (ml_json_next(&reader) != ML_JSON_ARRAY)
        return 0;
    for (struct ml_str one; port == 0 && (one = ml_json_skip(&reader)).len > 0;) {
        if (ml_json_find(one, &args, "args", NULL))
            port = port_of_args(args);
        if (port == 0 && ml_json_find(one, &args, "command", NULL))
            port = port_of_args(args);
    }
    return port;
}

static bool has_pod(const struct cluster_hosts *self, const char *name)
{
    for (size_t i = 0; i < self->count; i++)
        if (strcmp(self->hosts[i].pod, name) == 0)
            return true;
    return false;
}

/* A pod that does not run, or takes no questions, is left out: one of another version must not keep
 * the others from answering. So is one that is known. */
static void add_pod(struct cluster_hosts *self, struct ml_str pod)
{
    ML_AUTO_FREE char *phase = ml_json_find_string(pod, "status", "phase", NULL);
    ML_AUTO_FREE char *name = ml_json_find_string(pod, "metadata", "name", NULL);
    int port = port_of_pod(pod);
    if (!name || !ml_name_valid(ml_str_of(name)) || !phase || strcmp(phase, "Running") != 0 ||
        self->count == ML_ASK_HOSTS_MAX || has_pod(self, name))
        return;
    if (port == 0) {
        free(self->deaf);
        self->deaf = ml_take(&name);
        return;
    }
    struct host *host = &self->hosts[self->count++];
    *host = (struct host){.of = self, .pod = ml_take(&name), .port = port};
    ml_buf_init(&host->got, ANSWER_MAX);
}

static void add_pods(struct cluster_hosts *self, struct ml_str list)
{
    struct ml_str items = {"", 0};
    ML_AUTO(ml_json_reader_fini) struct ml_json_reader reader;
    (void)ml_json_find(list, &items, "items", NULL);
    ml_json_reader_init(&reader, items, 0);
    if (ml_json_next(&reader) != ML_JSON_ARRAY)
        return;
    for (struct ml_str one; (one = ml_json_skip(&reader)).len > 0;)
        add_pod(self, one);
}

static int find_pods(struct cluster_hosts *self, const char *pod, struct ml_err *err)
{
    ML_AUTO(ml_buf_fini) struct ml_buf path = ML_BUF_INIT, answer = ML_BUF_INIT;
    ml_kind_path(&kind_pod, ml_str_of(self->ns), ml_str_of(pod), ML_STR(""), &path);
    if (!pod)
        ml_url_query(&path, "labelSelector", ML_STR("app.kubernetes.io/name=" APP_NAME));
    struct ml_client_request request = {.verb = ML_VERB_GET, .path = ml_buf_cstr(&path)};
    if (ml_api_ask(self->api, &request, &answer, err) < 0)
        return err->kind;
    if (pod)
        add_pod(self, ml_buf_str(&answer));
    else
        add_pods(self, ml_buf_str(&answer));
    if (self->count > 0)
        return 0;
    if (self->deaf)
        return ml_err_set(err, ML_EUNSUPPORTED,
                          "the host in pod %s/%s takes no questions from outside: its Deployment "
                          "needs the argument " FLAG_EXAMPLE ", as in deploy/deployment.yaml",
                          self->ns, self->deaf);
    if (pod)
        return ml_err_set(err, ML_ENOT_FOUND, "pod %s/%s does not run", self->ns, pod);
    return ml_err_set(err, ML_ENOT_FOUND,
                      "no pod with the label app.kubernetes.io/name=" APP_NAME " runs in namespace "
                      "%s; choose another one with --namespace, or a pod with --pod",
                      self->ns);
}

/* ---- in a cluster: the token ---- */

/* Makes one of the ServiceAccount "NAMESPACE/NAME", unless there is one that is good for a while.
 */
static int make_token(struct cluster_hosts *self, struct ml_err *err)
{
    const char *of = self->token_of;
    int64_t now_ns = ml_clock_monotonic(ml_clock_real());
    ML_AUTO(ml_wipe_buf) struct ml_buf answer = ML_BUF_INIT;
    struct ml_str name = ml_str_of(of), ns = ml_str_cut(&name, '/');
    ML_AUTO_FREE char *body = ml_asprintf("{\"apiVersion\":\"authentication.k8s.io/v1\",\"kind\":"
                                          "\"TokenRequest\",\"spec\":{\"expirationSeconds\":%d}}",
                                          TOKEN_SECONDS);
    if (self->authorization && now_ns - self->made_ns < TOKEN_RENEWED_NS)
        return 0;
    if (!ml_name_valid(ns) || !ml_name_valid(name))
        return ml_err_set(err, ML_EINVALID, "--token-of %s: expected NAMESPACE/SERVICEACCOUNT", of);
    struct ml_client_request request = {
        .verb = ML_VERB_CREATE,
        .kind = &kind_account,
        .ns = ns,
        .name = name,
        .subresource = ML_STR("token"),
        .body = ml_str_of(body),
        .secret = true,
    };
    if (ml_api_ask(self->api, &request, &answer, err) < 0)
        return err->kind;
    ML_AUTO_WIPE char *token = ml_json_find_string(ml_buf_str(&answer), "status", "token", NULL);
    if (!token)
        return ml_err_set(err, ML_EUNSUPPORTED, "the API server made no token of %s", of);
    ml_wipe_free(self->authorization);
    self->authorization = ml_join(ML_STR("Bearer "), ml_str_of(token));
    self->made_ns = now_ns;
    return 0;
}

struct waiter {
    struct ml_loop *loop;
    char *authorization;
    bool is_over;
    struct ml_err err;
};

static void on_credentials(void *context, const struct ml_identity *identity,
                           const struct ml_err *err)
{
    struct waiter *waiter = context;
    waiter->authorization = identity ? ml_strdup(identity->authorization) : NULL;
    waiter->err = err ? *err : ML_ERR_INIT;
    waiter->is_over = true;
    ml_loop_stop(waiter->loop);
}

/* The header for the host. The caller wipes it. */
static int get_authorization(struct cluster_hosts *self, char **out, struct ml_err *err)
{
    struct ml_credentials *credentials = self->parts.credentials;
    struct waiter waiter = {.loop = self->parts.loop};
    struct ml_credentials_wait wait = {.ready = on_credentials, .context = &waiter};
    struct ml_identity identity;
    if (self->token_of) {
        if (make_token(self, err) < 0)
            return err->kind;
        *out = ml_strdup(self->authorization);
        return 0;
    }
    if (ml_credentials_get(credentials, &identity, &wait))
        on_credentials(&waiter, &identity, NULL);
    while (!waiter.is_over)
        ml_loop_run(self->parts.loop);
    if (waiter.err.kind) {
        *err = waiter.err;
        return err->kind;
    }
    if (!waiter.authorization || strncmp(waiter.authorization, "Bearer ", 7) != 0) {
        ml_wipe_free(waiter.authorization);
        return ml_err_set(err, ML_EUNAUTHORIZED,
                          "the kubeconfig has no token that the host could check, as a client "
                          "certificate is shown to the API server alone; use --token-of "
                          "NAMESPACE/SERVICEACCOUNT, or ask in the pod: kubectl exec -n %s %s -- "
                          "/moonloop status",
                          self->ns, self->hosts[0].pod);
    }
    *out = waiter.authorization;
    return 0;
}

/* ---- in a cluster: connections ---- */

static void host_stop_waiting(struct host *self)
{
    self->is_waiting = false;
    ml_loop_stop(self->of->parts.loop);
}

static void on_open(void *context)
{
    struct host *self = context;
    self->is_open = true;
    host_stop_waiting(self);
}

static void on_closed(void *context, const struct ml_err *err)
{
    struct host *self = context;
    self->forward = NULL;
    self->is_open = false;
    free(self->err);
    self->err = err ? ml_err_dup(err) : NULL;
    host_stop_waiting(self);
}

/* The length of the head, with its blank line; 0: it is not whole. */
static size_t read_head(struct ml_str bytes, struct ml_http_head_parser *head)
{
    struct ml_str rest = bytes;
    while (rest.len > 0 && memchr(rest.ptr, '\n', rest.len)) {
        struct ml_str line = ml_str_cut(&rest, '\n');
        if (ml_http_head_line(head, line))
            return bytes.len - rest.len;
    }
    return 0;
}

/* Is it whole? Then `status` and `body` are filled; the status of an answer without a length is 0.
 */
static bool read_answer(const struct host *self, int *status, struct ml_str *body)
{
    struct ml_http_head_parser head;
    uint64_t len = 0;
    ml_http_head_init(&head);
    size_t head_len = read_head(ml_buf_str(&self->got), &head);
    *status = head.bad || !ml_str_to_u64(head.length, &len) ? 0 : head.head.status;
    ml_http_head_fini(&head);
    if (head_len == 0 || (*status != 0 && self->got.len - head_len < len))
        return self->got.failed;
    *body = (struct ml_str){self->got.ptr + head_len, (size_t)len};
    return true;
}

static void on_received(void *context, struct ml_str bytes)
{
    struct host *self = context;
    struct ml_str body;
    int status;
    ml_buf_append_str(&self->got, bytes);
    if (read_answer(self, &status, &body))
        host_stop_waiting(self);
}

static void on_patience_over(void *context)
{
    struct cluster_hosts *self = context;
    self->is_over = true;
    ml_loop_stop(self->parts.loop);
}

/* For `is_open`, for an answer, or for the end of the connection. One that is silent is given up.
 */
static int host_wait(struct host *self, struct ml_err *err)
{
    struct cluster_hosts *of = self->of;
    self->is_waiting = true;
    of->is_over = false;
    ml_timer_start(&of->patience, ANSWER_NS);
    while (self->is_waiting && !of->is_over)
        ml_loop_run(of->parts.loop);
    ml_timer_stop(&of->patience);
    if (!self->is_waiting)
        return 0;
    ml_port_forward_free(ml_take(&self->forward));
    self->is_waiting = self->is_open = false;
    return ml_err_set(err, ML_ETIMEOUT, "the host in pod %s does not answer", self->pod);
}

static int host_connect(struct host *self, struct ml_err *err)
{
    static const struct ml_port_forward_handler handler = {on_open, on_received, on_closed};
    const struct ml_port_forward_opts opts = {
        .loop = self->of->parts.loop,
        .http = self->of->parts.http,
        .credentials = self->of->parts.credentials,
        .ns = ml_str_of(self->of->ns),
        .pod = ml_str_of(self->pod),
        .port = self->port,
        .patience_ms = PATIENCE_MS,
    };
    self->forward = ml_port_forward_open(&opts, &handler, self);
    return host_wait(self, err);
}

/* Why the connection ended. */
static int host_set_error(struct host *self, struct ml_err *err)
{
    ML_AUTO_FREE struct ml_err *why = ml_take(&self->err);
    if (!why)
        return ml_err_set(err, ML_ENETWORK, "the host in pod %s ended the connection", self->pod);
    *err = *why;
    return err->kind;
}

static int host_send(struct host *self, const char *authorization, struct ml_str path,
                     struct ml_err *err)
{
    ML_AUTO(ml_wipe_buf) struct ml_buf request = ML_BUF_INIT;
    ml_buf_reserve(&request, path.len + strlen(authorization) + 64);
    ml_buf_puts(&request, "GET ");
    ml_buf_append_str(&request, path);
    ml_buf_puts(&request, " HTTP/1.1\r\nHost: localhost\r\nAuthorization: ");
    ml_buf_puts(&request, authorization);
    ml_buf_puts(&request, "\r\n\r\n");
    ml_port_forward_send(self->forward, ml_buf_str(&request));
    return host_wait(self, err);
}

static int refused_by(const struct host *self, int status, struct ml_str text, struct ml_err *err)
{
    ML_AUTO_FREE char *from = ml_asprintf("the host in pod %s: ", self->pod);
    if (status == 0)
        return ml_err_set(err, ML_EIO, "the answer of the host in pod %s is broken", self->pod);
    return set_refusal(from, status, text, err);
}

/* A connection that was kept may have ended: then once more, with a new one. */
static int hosts_ask(struct cluster_hosts *hosts, size_t index, struct ml_str path,
                     struct ml_buf *out, struct ml_err *err)
{
    struct host *self = &hosts->hosts[index];
    ML_AUTO_WIPE char *authorization = NULL;
    struct ml_str body = {"", 0};
    int status = 0;
    if (get_authorization(hosts, &authorization, err) < 0)
        return err->kind;
    for (bool is_kept = self->is_open;; is_kept = false) {
        ml_buf_clear(&self->got);
        if (!self->is_open && host_connect(self, err) < 0)
            return err->kind;
        if (self->is_open && host_send(self, authorization, path, err) < 0)
            return err->kind;
        if (read_answer(self, &status, &body))
            break;
        if (!is_kept)
            return host_set_error(self, err);
    }
    if (status != 200)
        return refused_by(self, status, body, err);
    if (ml_json_check(body, 0, err) < 0)
        return refused_by(self, 0, body, err);
    ml_buf_append_str(out, body);
    return 0;
}

static void hosts_close(struct cluster_hosts *self)
{
    if (!self)
        return;
    for (size_t i = 0; i < self->count; i++) {
        ml_port_forward_free(self->hosts[i].forward);
        ml_buf_fini(&self->hosts[i].got);
        free(self->hosts[i].err);
        free(self->hosts[i].pod);
    }
    ml_api_close(self->api);
    ml_wipe_free(self->authorization);
    free(self->deaf);
    free(self->ns);
    free(self);
}

static int hosts_open(const struct ml_ask_opts *opts, struct cluster_hosts **out,
                      struct ml_err *err)
{
    const struct ml_api_opts api = {opts->kubeconfig, opts->context, opts->ns};
    struct cluster_hosts *self = ml_new(struct cluster_hosts);
    self->ns = ml_strdup(opts->ns ? opts->ns : NAMESPACE_DEFAULT);
    self->token_of = opts->token_of;
    self->is_one = opts->pod != NULL;
    int r = 0;
    if (!ml_name_valid(ml_str_of(self->ns)) || (opts->pod && !ml_name_valid(ml_str_of(opts->pod))))
        r = ml_err_set(err, ML_EINVALID, "--namespace, --pod: expected a name");
    else
        r = ml_api_open(&api, &self->api, err);
    if (r == 0) {
        ml_api_parts(self->api, &self->parts);
        ml_timer_init(&self->patience, self->parts.loop, on_patience_over, self);
        r = find_pods(self, opts->pod, err);
    }
    if (r == 0 && opts->token_of)
        r = make_token(self, err);
    if (r < 0) {
        hosts_close(self);
        return err->kind;
    }
    *out = self;
    return 0;
}

/* ---- either ---- */

struct ml_ask {
    char *pid;                   /* of the host on this machine; or NULL: */
    struct cluster_hosts *hosts; /* in a cluster */
};

static bool is_of_cluster(const struct ml_ask_opts *opts)
{
    return opts->kubeconfig || opts->context || opts->ns || opts->pod || opts->token_of;
}

int ml_ask_open(const struct ml_ask_opts *opts, struct ml_ask **out, struct ml_err *err)
{
    struct ml_ask found = {NULL, NULL};
    if (opts->pid && is_of_cluster(opts))
        return ml_err_set(err, ML_EINVALID,
                          "--pid is for a host on this machine, --namespace, --pod, --kubeconfig, "
                          "--context and --token-of are for those in a cluster");
    int r = is_of_cluster(opts) ? hosts_open(opts, &found.hosts, err)
                                : find_here(opts->pid, &found.pid, err);
    if (r < 0)
        return r;
    *out = ml_new(struct ml_ask);
    **out = found;
    return 0;
}

void ml_ask_close(struct ml_ask *self)
{
    if (!self)
        return;
    hosts_close(self->hosts);
    free(self->pid);
    free(self);
}

void ml_ask_look_again(struct ml_ask *self)
{
    struct ml_err err = ML_ERR_INIT;
    if (self->hosts && !self->hosts->is_one)
        (void)find_pods(self->hosts, NULL, &err);
}

size_t ml_ask_count(const struct ml_ask *self)
{
    return self->hosts ? self->hosts->count : 1;
}

const char *ml_ask_pod(const struct ml_ask *self, size_t host)
{
    return self->hosts ? self->hosts->hosts[host].pod : NULL;
}

char *ml_ask_name(const struct ml_ask *self, size_t host)
{
    const char *pod = ml_ask_pod(self, host);
    return pod ? ml_asprintf("pod %s", pod) : ml_asprintf("process %s", self->pid);
}

int ml_ask(struct ml_ask *self, size_t host, struct ml_str path, struct ml_buf *out,
           struct ml_err *err)
{
    return self->hosts ? hosts_ask(self->hosts, host, path, out, err)
                       : ask_here(self->pid, path, out, err);
}
