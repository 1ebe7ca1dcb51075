/* Any bytes as a snapshot, and as the answers of a server that are kept in one; the first byte says
 * which. A snapshot that can be read is the same when it is written and read again; so is one of
 * answers that were kept, and no value of a Secret is in it. */
#include "kube/snapshot.h"

#include "base/buf.h"

#include <errno.h>
#include <stdio.h>
#include <sys/stat.h>
#include <unistd.h>

#define SECRET "c2VjcmV0IHZhbHVl" /* no text that the host makes has it */

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

/* ---- files ---- */

/* In memory, and of this process alone. */
static const char *file_path(void)
{
    static char path[64];
    if (!*path) {
        snprintf(path, sizeof path, "/dev/shm/moonloop-fuzz-%d", (int)getpid());
        ml_assert(mkdir(path, 0700) == 0 || errno == EEXIST);
        strcat(path, "/snapshot");
    }
    return path;
}

static void write_file(struct ml_str bytes)
{
    FILE *file = fopen(file_path(), "we");
    ml_assert(file && fwrite(bytes.ptr, 1, bytes.len, file) == bytes.len);
    fclose(file);
}

static void read_file(struct ml_buf *out)
{
    FILE *file = fopen(file_path(), "re");
    char bytes[4096];
    ml_assert(file);
    for (size_t len; (len = fread(bytes, 1, sizeof bytes, file)) > 0;)
        ml_buf_append(out, bytes, len);
    fclose(file);
}

/* Writes it, reads that, and writes it once more: to the same lines, in whatever order. */
static void check_round_trip(const struct ml_snapshot *snapshot)
{
    ML_AUTO(ml_buf_fini) struct ml_buf first = ML_BUF_INIT, second = ML_BUF_INIT;
    struct ml_snapshot *again;
    struct ml_err err = ML_ERR_INIT;
    ml_assert(ml_snapshot_write(snapshot, file_path(), &err) == 0);
    read_file(&first);
    ml_assert(ml_snapshot_read(file_path(), &again, &err) == 0);
    ml_assert(ml_snapshot_write(again, file_path(), &err) == 0);
    read_file(&second);
    ml_assert(first.len == second.len);
    ml_snapshot_free(again);
}

/* ---- answers ---- */

struct asked {
    bool has_ended;
    struct ml_buf body;
};

static int on_data(void *context, struct ml_str piece, struct ml_err *err ML_UNUSED)
{
    ml_buf_append_str(&((struct asked *)context)->body, piece);
    return 0;
}

static void on_done(void *context, const struct ml_err *err ML_UNUSED)
{
    ((struct asked *)context)->has_ended = true;
}

static const struct ml_http_handler handler = {.data = on_data, .done = on_done};

static void ask(struct ml_transport *transport, struct ml_loop *loop, const char *path)
{
    const struct ml_transport_request request = {.method = "GET", .path = path};
    struct asked asked = {.body = ML_BUF_INIT};
    transport->submit(transport, &request, &handler, &asked);
    ml_loop_poll(loop);
    ml_assert(asked.has_ended);
    ml_buf_fini(&asked.body);
}

/* A server that has one answer to everything, in two pieces. */
struct server {
    struct ml_transport transport;
    struct ml_loop *loop;
    struct ml_str answer;
    struct ml_task task;
    struct ml_http_handler handler;
    void *context;
};

static void serve(void *context)
{
    struct server *server = context;
    const struct ml_http_head head = {.status = 200};
    struct ml_str first = ml_str_head(server->answer, server->answer.len / 2);
    struct ml_str second = {first.ptr + first.len, server->answer.len - first.len};
    struct ml_err err = ML_ERR_INIT;
    server->handler.head(server->context, &head);
    ml_assert(server->handler.data(server->context, first, &err) == 0);
    ml_assert(server->handler.data(server->context, second, &err) == 0);
    server->handler.done(server->context, NULL);
}

static struct ml_transport_call *submit(struct ml_transport *transport,
                                        const struct ml_transport_request *request ML_UNUSED,
                                        const struct ml_http_handler *to, void *context)
{
    struct server *server = ml_container_of(transport, struct server, transport);
    server->handler = *to;
    server->context = context;
    ml_task_init(&server->task, serve, server);
    ml_task_defer(&server->task, server->loop);
    return NULL;
}

/* Keeps the answer to each of these reads. `out` is the file; false: there is none. */
static bool keep(struct ml_str answer, const char *const *paths, struct ml_loop *loop,
                 struct ml_buf *out)
{
    struct server server = {.transport = {.submit = submit}, .loop = loop, .answer = answer};
    struct ml_random random;
    struct ml_snapshot *snapshot;
    struct ml_err err = ML_ERR_INIT;
    ml_random_init(&random, 1);
    ml_assert(ml_snapshot_new(&random, "d", &snapshot, &err) == 0);
    struct ml_transport *recorder = ml_snapshot_recorder_new(snapshot, &server.transport);
    for (; *paths; paths++)
        ask(recorder, loop, *paths);
    bool is_written = ml_snapshot_write(snapshot, file_path(), &err) == 0;
    ml_assert(is_written || err.message[0]);
    if (is_written) {
        read_file(out);
        check_round_trip(snapshot);
    }
    recorder->free(recorder);
    ml_snapshot_free(snapshot);
    return is_written;
}

static void check_answers(struct ml_str answer, struct ml_loop *loop)
{
    static const char *const paths[] = {"/api/v1/pods?limit=500",
                                        "/api/v1/pods?limit=500&continue=x",
                                        "/api/v1/secrets?limit=500", "/apis/e.com/v1/apps/a", NULL};
    ML_AUTO(ml_buf_fini) struct ml_buf file = ML_BUF_INIT;
    (void)keep(answer, paths, loop, &file);
}

/* The value of a Secret is not kept, with anything else beside it. */
static void check_secret(struct ml_str rest, struct ml_loop *loop)
{
    static const char *const of_one[] = {"/api/v1/namespaces/d/secrets/s", NULL};
    static const char *const of_all[] = {"/api/v1/secrets?limit=500", NULL};
    ML_AUTO(ml_buf_fini) struct ml_buf secret = ML_BUF_INIT, list = ML_BUF_INIT, file = ML_BUF_INIT;
    if (memmem(rest.ptr, rest.len, SECRET, strlen(SECRET)))
        return;
    ml_buf_printf(&secret, "{\"data\":{\"k\":\"" SECRET "\"}," ML_STR_FMT "}", ML_STR_ARG(rest));
    ml_buf_printf(&list, "{\"kind\":\"SecretList\",\"items\":[" ML_STR_FMT "]," ML_STR_FMT "}",
                  ML_STR_ARG(ml_buf_str(&secret)), ML_STR_ARG(rest));
    (void)keep(ml_buf_str(&secret), of_one, loop, &file);
    (void)keep(ml_buf_str(&list), of_all, loop, &file);
    ml_assert(!memmem(file.ptr, file.len, SECRET, strlen(SECRET)));
}

static void check_file(struct ml_str bytes, struct ml_loop *loop)
{
    struct ml_snapshot *snapshot;
    struct ml_err err = ML_ERR_INIT;
    write_file(bytes);
    if (ml_snapshot_read(file_path(), &snapshot, &err) < 0) {
        ml_assert(err.message[0]);
        return;
    }
    check_round_trip(snapshot);
    struct ml_transport *transport = ml_snapshot_transport_new(snapshot, loop);
    ask(transport, loop, "/api/v1/pods?limit=500");
    ask(transport, loop, "/api");
    transport->free(transport);
    ml_snapshot_free(snapshot);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    static void (*const checks[])(struct ml_str, struct ml_loop *) = {check_file, check_answers,
                                                                      check_secret};
    struct ml_clock_fake clock;
    if (size == 0)
        return 0;
    ml_clock_fake_init(&clock, 0);
    struct ml_loop *loop = ml_loop_new(&clock.clock);
    checks[data[0] % ML_COUNT(checks)]((struct ml_str){(const char *)data + 1, size - 1}, loop);
    ml_loop_free(loop);
    return 0;
}
