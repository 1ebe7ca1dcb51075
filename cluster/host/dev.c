/* `moonloop dev`: checks its options, builds the cluster of dev.h from its parts, writes its
 * kubeconfig, applies manifests whenever they change, and ends it all when nothing is left to do
 * (--until-idle). */
#include "cluster/host/dev.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/random.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/log.h"
#include "base/str.h"
#include "cluster/host/dev_stop.h"
#include "cluster/host/egress.h"
#include "cluster/host/embedded_http.h"
#include "cluster/host/local_webhooks.h"
#include "cluster/host/lua_modules.h"
#include "cluster/host/process_path.h"
#include "cluster/host/tester.h"
#include "cluster/host/transport_embedded.h"
#include "codec/base64.h"
#include "codec/json.h"
#include "include/moonloop.h"
#include "net/tls.h"
#include "operator/endpoints.h"
#include "operator/files.h"
#include "operator/inspect_server.h"
#include "operator/outbound.h"
#include "operator/source.h"

/* ---- options ---- */

#define MAX_PODS     110 /* as a kubelet has it */
#define MAX_PODS_MAX 10000

static bool is_one_of(const char *word, const char *const *words)
{
    for (; *words; words++)
        if (strcmp(word, *words) == 0)
            return true;
    return false;
}

/* A word that is given must be one of those. */
static int check_word(const char *option, const char *word, const char *const *words,
                      const char *expected, struct ml_err *err)
{
    if (!word || is_one_of(word, words))
        return 0;
    return ml_err_set(err, ML_EINVALID, "%s %s: expected %s", option, word, expected);
}

static int check_words(const struct ml_dev_opts *opts, struct ml_err *err)
{
    static const char *const controllers[] = {"all", "none", NULL};
    static const char *const pods[] = {"process", "fake", "none", NULL};
    static const char *const modes[] = {"AlwaysAllow", "RBAC", NULL};
    static const char *const networks[] = {"own", "host", NULL};
    enum ml_log_level level;
    if (opts->log_level && !ml_log_level_parse(opts->log_level, &level))
        return ml_err_set(err, ML_EINVALID, "--log-level %s: expected debug, info, warn or error",
                          opts->log_level);
    if (check_word("--controllers", opts->controllers, controllers, "all or none", err) < 0 ||
        check_word("--pods", opts->pods, pods, "process, fake or none", err) < 0 ||
        check_word("--authorization-mode", opts->authorization, modes, "AlwaysAllow or RBAC", err) <
            0)
        return ML_EINVALID;
    return check_word("--pod-network", opts->pod_network, networks, "own or host", err);
}

/* Where the pods' network reaches it. */
static bool is_at_home(const struct ml_dev_opts *opts)
{
    return !opts->bind_address || ml_str_starts(ml_str_of(opts->bind_address), "127.");
}

static bool has_controllers(const struct ml_dev_opts *opts)
{
    return !opts->controllers || strcmp(opts->controllers, "all") == 0;
}

/* How pods run. On an API server alone they run only if somebody asks for it. */
static const char *pods_of(const struct ml_dev_opts *opts)
{
    if (opts->pods)
        return opts->pods;
    return has_controllers(opts) ? "process" : "none";
}

static bool has_processes(const struct ml_dev_opts *opts)
{
    return strcmp(pods_of(opts), "process") == 0;
}

/* Pods get no network of their own, though nobody has said so. */
static bool lacks_pod_network(const struct ml_dev_opts *opts)
{
    return !opts->pod_network && has_processes(opts) && !is_at_home(opts);
}

/* Pods get a network of their own when the user asks for it. By default they get one if it reaches
 * the API server. */
static bool wants_pod_network(const struct ml_dev_opts *opts)
{
    bool is_own = opts->pod_network ? strcmp(opts->pod_network, "own") == 0 : is_at_home(opts);
    return is_own && has_processes(opts);
}

static int check_loopback(const char *option, const char *address, struct ml_err *err)
{
    struct ml_str text = ml_str_of(address);
    const char *colon = strrchr(address, ':');
    bool has_port = colon && colon[1] && !colon[1 + strspn(colon + 1, "0123456789")];
    if (has_port && (ml_str_starts(text, "127.") || ml_str_starts(text, "localhost:") ||
                     ml_str_starts(text, "[::1]:")))
        return 0;
    return ml_err_set(err, ML_EINVALID, "%s %s: only loopback is served: 127.0.0.1:PORT", option,
                      address);
}

static bool serves_metrics(const struct ml_dev_opts *opts)
{
    return opts->metrics_address && strcmp(opts->metrics_address, "0") != 0;
}

static int check_addresses(const struct ml_dev_opts *opts, struct ml_err *err)
{
    if (serves_metrics(opts) &&
        check_loopback("--metrics-bind-address", opts->metrics_address, err) < 0)
        return ML_EINVALID;
    if (is_at_home(opts))
        return 0;
    if (wants_pod_network(opts))
        return ml_err_set(err, ML_EINVALID,
                          "--bind-address %s: with --pod-network own, expected 127.0.0.1:PORT",
                          opts->bind_address);
    return check_loopback("--bind-address", opts->bind_address, err);
}

/* The parts of "NAME=PROGRAM[:PATH] ARG…". */
struct image_option {
    struct ml_str name, program;
    struct ml_str path; /* where containers see the program; empty: images.lua says where */
    struct ml_str args;
};

static struct image_option read_image(const char *option)
{
    struct image_option image = {.args = ml_str_of(option)};
    image.name = ml_str_cut(&image.args, '=');
    image.program = ml_str_cut(&image.args, ' ');
    const char *colon = memmem(image.program.ptr, image.program.len, ":/", 2);
    if (colon) {
        size_t len = (size_t)(colon - image.program.ptr);
        image.path = (struct ml_str){colon + 1, image.program.len - len - 1};
        image.program.len = len;
    }
    return image;
}

/* Why the program of an image cannot be run, and what to do about that; NULL: it can. */
static const char *problem_of_program(const char *program)
{
    struct stat file;
    if (stat(program, &file) < 0)
        return errno == ENOENT
                   ? "it does not exist: build it first, or name its path from this folder"
                   : strerror(errno);
    if (S_ISDIR(file.st_mode))
        return "it is a folder: name the program in it";
    if (!S_ISREG(file.st_mode))
        return "it is no file";
    return access(program, X_OK) < 0 ? "it cannot be executed: run chmod +x on it, or name another"
                                     : NULL;
}

static int check_image(const char *option, struct ml_err *err)
{
    struct image_option image = read_image(option);
    if (!image.name.len || !image.program.len || memchr(image.name.ptr, '/', image.name.len))
        return ml_err_set(err, ML_EINVALID,
                          "--image %s: expected NAME=PROGRAM[:PATH]; NAME is the last part of an "
                          "image's name, without its tag",
                          option);
    if (ml_str_ends(image.path, "/"))
        return ml_err_set(err, ML_EINVALID,
                          "--image %s: PATH is that of a file, without / at its end", option);
    ML_AUTO_FREE char *program = ml_str_dup(image.program);
    const char *why = problem_of_program(program);
    return why ? ml_err_set(err, ML_EINVALID, "--image %s: %s: %s", option, program, why) : 0;
}

/* How many pods the node takes at once; -1: opts->max_pods is no such number. */
static int max_pods_of(const struct ml_dev_opts *opts)
{
    if (!opts->max_pods)
        return MAX_PODS;
    size_t digits = strspn(opts->max_pods, "0123456789");
    long count = strtol(opts->max_pods, NULL, 10);
    return digits > 0 && !opts->max_pods[digits] && count >= 1 && count <= MAX_PODS_MAX ? (int)count
                                                                                        : -1;
}

static int check_dev_opts(const struct ml_dev_opts *opts, struct ml_err *err)
{
    if (check_words(opts, err) < 0 || check_addresses(opts, err) < 0)
        return ML_EINVALID;
    if (max_pods_of(opts) < 0)
        return ml_err_set(err, ML_EINVALID, "--max-pods %s: expected a number from 1 to 10000",
                          opts->max_pods);
    for (size_t i = 0; opts->images[i]; i++)
        if (check_image(opts->images[i], err) < 0)
            return ML_EINVALID;
    return 0;
}

/* ---- a folder for the files of one moonloop dev, in $TMPDIR or /tmp, mode 0700 ---- */

struct dev_folder {
    char *path; /* NULL: there is none */
    int lock;   /* another process that can lock it knows that this one has ended */
};

#define FOLDER_PREFIX "moonloop-"
#define LOCK_NAME     ".lock" /* in each folder; locked as long as its maker lives */

/* [caller frees] The lock file of a folder says which folder that is. In a copy of that folder, or
 * in a user's own folder with such a file, the text names another one. */
static char *describe_folder(const struct stat *info)
{
    return ml_asprintf("moonloop dev %ju:%ju\n", (uintmax_t)info->st_dev, (uintmax_t)info->st_ino);
}

static bool is_lock_of(int lock, const struct stat *folder)
{
    char text[64];
    ML_AUTO_FREE char *wanted = describe_folder(folder);
    ssize_t length = read(lock, text, sizeof text);
    return length == (ssize_t)strlen(wanted) && memcmp(text, wanted, (size_t)length) == 0;
}

/* A folder of an earlier `moonloop dev` that ended without removing it. */
static bool is_abandoned_folder(const char *folder)
{
    struct stat info;
    if (lstat(folder, &info) < 0 || !S_ISDIR(info.st_mode) || info.st_uid != geteuid())
        return false;
    ML_AUTO_FREE char *lock = ml_asprintf("%s/" LOCK_NAME, folder);
    int fd = open(lock, O_RDONLY | O_NOFOLLOW | O_NONBLOCK | O_CLOEXEC);
    if (fd < 0)
        return false;
    bool left = is_lock_of(fd, &info) && flock(fd, LOCK_EX | LOCK_NB) == 0;
    close(fd);
    return left;
}

/* Removes the folders of processes that were killed before they could. */
static void remove_abandoned_folders(const char *parent)
{
    DIR *all = opendir(parent);
    const struct dirent *entry;
    while (all && (entry = readdir(all))) {
        if (strncmp(entry->d_name, FOLDER_PREFIX, strlen(FOLDER_PREFIX)) != 0)
            continue;
        ML_AUTO_FREE char *folder = ml_asprintf("%s/%s", parent, entry->d_name);
        if (is_abandoned_folder(folder))
            process_path_remove(AT_FDCWD, folder);
    }
    if (all)
        closedir(all);
}

/* The lock file gets its name only once it is locked: remove_abandoned_folders of another process
 * would take an unlocked one for abandoned. */
static int lock_dev_folder(struct dev_folder *self)
{
    ML_AUTO_FREE char *beside = ml_asprintf("%s/" LOCK_NAME ".new", self->path);
    ML_AUTO_FREE char *lock = ml_asprintf("%s/" LOCK_NAME, self->path);
    self->lock = open(beside, O_RDWR | O_CREAT | O_EXCL | O_CLOEXEC, 0600);
    struct stat info;
    if (self->lock < 0 || flock(self->lock, LOCK_EX | LOCK_NB) < 0 || stat(self->path, &info) < 0)
        return -1;
    ML_AUTO_FREE char *text = describe_folder(&info);
    if (write(self->lock, text, strlen(text)) != (ssize_t)strlen(text))
        return -1;
    return rename(beside, lock);
}

/* Also removes the folders of processes that were killed before they could. `self` is zero, and has
 * to be removed after an error, too. ML_EIO. */
static int make_dev_folder(struct dev_folder *self, struct ml_err *err)
{
    const char *parent = getenv("TMPDIR");
    parent = parent && *parent ? parent : "/tmp";
    remove_abandoned_folders(parent);
    char *path = ml_asprintf("%s/" FOLDER_PREFIX "XXXXXX", parent);
    if (!mkdtemp(path)) {
        int r = ml_err_set(err, ML_EIO,
                           "%s: cannot be made: %s; TMPDIR says where, a folder that you may write",
                           path, strerror(errno));
        free(path);
        return r;
    }
    *self = (struct dev_folder){.path = path, .lock = -1};
    if (lock_dev_folder(self) < 0)
        return ml_err_set(err, ML_EIO, "%s/" LOCK_NAME ": cannot be made: %s", path,
                          strerror(errno));
    return 0;
}

static void remove_dev_folder(struct dev_folder *self)
{
    if (!self->path)
        return;
    process_path_remove(AT_FDCWD, self->path);
    if (self->lock >= 0)
        close(self->lock);
    free(ml_take(&self->path));
}

/* ---- the cluster ---- */

#define NO_NETWORK                                                                                 \
    "pods share this machine's network: Services, names and addresses are not their own. Allow "   \
    "user namespaces to change that: see Networks in docs/dev.md"
#define LOCAL_NETWORK                                                                              \
    "pods share this machine's network: they would not reach the API server from one of their own"
#define TOKEN_LEN       40
#define DEFAULT_ADDRESS "127.0.0.1:0"
#define DRAIN_NS        (2 * ML_NS_PER_S)
#define ALIVE_NS        (50 * ML_NS_PER_MS)
#define END_CHECK_NS    (10 * ML_NS_PER_MS)
#define IDLE_CHECK_NS   (50 * ML_NS_PER_MS)
#define IDLE_COUNT      4 /* checks in a row: by then a change has had its effects */
#define IDLE_WITHIN     (60 * ML_NS_PER_S) /* does not wait for work that is scheduled later */
#define STUCK_COUNT     200                /* idle, but a script still waits for its kinds */

/* A file or folder of --apply. */
struct dev_manifests {
    struct ml_dev *dev;
    const char *path;
    struct ml_path_watch *watch;
    bool was_tried;
    bool is_read;       /* the last time; Lua knows if applying them worked */
    struct ml_err last; /* to log each problem once */
};

struct ml_dev {
    struct ml_dev_opts opts;
    struct ml_err *err;
    int exit_code;

    struct ml_log log;
    struct ml_random random;
    struct ml_loop *loop;
    struct ml_metrics *metrics;
    struct ml_processes *processes;
    struct ml_pod_network *network; /* NULL: pods are in the machine's */
    struct ml_relay *relay;
    struct ml_egress *egress;
    struct ml_http_client *prober; /* of pods' HTTP probes */
    struct ml_http_client *asker;  /* of the API server: asks webhooks and pods */
    struct dev_folder folder;      /* for logs and pods */
    char *kubeconfig;              /* the file that was written */
    char token[TOKEN_LEN + 1];
    struct ml_apiserver *server;
    struct ml_embedded_http *http;
    struct ml_transport *transport;
    struct ml_outbound *outbound; /* what scripts ask by ctx.http */
    struct ml_operator *operator;
    struct ml_inspect_server *inspect; /* NULL: no scripts, or the socket could not be opened */
    struct ml_tester *tester;          /* of the operator */
    struct ml_endpoints *endpoints;    /* NULL: metrics are not served */

    struct dev_manifests *manifests; /* of --apply; one without a path ends them */
    size_t untried_count;            /* of them */
    struct ml_task start;            /* of the operator */

    struct ml_timer idle_check; /* --until-idle */
    int idle_count, stuck_count;

    struct ml_dev_stop stop;   /* the end, when the loop does not turn */
    struct ml_timer alive;     /* once a signal has come */
    struct ml_timer end_check; /* containers that were asked to end */
    bool is_ending;
    bool is_hurried; /* asked twice: does not wait for them */
};

static int call_dev_lua(struct ml_dev *self, const char *function, struct ml_str argument,
                        struct ml_buf *result, struct ml_err *err)
{
    struct ml_server_lua *lua = ml_apiserver_lua(self->server);
    return ml_server_lua_call(lua, "cluster.dev", function, argument, result, err);
}

/* ---- the end ---- */

/* Calls a function of Lua that returns how many containers run; 0 when it fails. */
static int count_running(struct ml_dev *self, const char *function)
{
    ML_AUTO(ml_buf_fini) struct ml_buf answer = ML_BUF_INIT;
    struct ml_err err = ML_ERR_INIT;
    if (call_dev_lua(self, function, ML_STR(""), &answer, &err) == 0)
        return atoi(ml_buf_cstr(&answer));
    ml_error(&self->log, "dev", "containers are killed", ML_ERR(&err));
    return 0;
}

/* Leaves the loop when no container runs any more. The kubelet kills containers that exceed their
 * grace period. */
static void check_end(void *context)
{
    struct ml_dev *self = context;
    if (self->is_hurried || count_running(self, "running") == 0)
        ml_loop_stop(self->loop);
    else
        ml_timer_start(&self->end_check, END_CHECK_NS);
}

static void shut_down_pods(void *context)
{
    struct ml_dev *self = context;
    int running = self->is_hurried ? 0 : count_running(self, "shut_down");
    if (running > 0) {
        printf("waiting for %d containers to end; once more, and they are killed\n", running);
        fflush(stdout);
    }
    check_end(self);
}

static void remove_dev_files(struct ml_dev *self)
{
    if (self->kubeconfig)
        unlink(self->kubeconfig);
    remove_dev_folder(&self->folder);
    free(self->kubeconfig);
}

static void say_alive(void *context)
{
    struct ml_dev *self = context;
    ml_dev_stop_heard();
    ml_timer_start(&self->alive, ALIVE_NS);
}

/* Lua does not return to the loop, so only this is freed. Writes that were answered are
 * kept. */
static void end_at_once(void *context)
{
    struct ml_dev *self = context;
    ml_warn(&self->log, "dev", "ended in the middle of work that took too long; pods are killed");
    if (self->processes)
        ml_processes_end(self->processes);
    remove_dev_files(self);
}

/* The operator ends first, then the pods. Asked twice, it waits for neither. */
static void stop_dev(struct ml_dev *self)
{
    self->is_hurried = self->is_ending;
    self->is_ending = true;
    say_alive(self);
    ml_timer_stop(&self->idle_check);
    ml_operator_stop(self->operator, DRAIN_NS, shut_down_pods, self);
    if (ml_timer_active(&self->end_check))
        ml_loop_stop(self->loop);
}

static void stop_on_signal(void *context, int signo)
{
    (void)signo;
    stop_dev(context);
}

/* SIGHUP: the terminal has been closed. */
static void catch_stop_signals(struct ml_dev *self, void (*fire)(void *context, int signo))
{
    ml_loop_on_signal(self->loop, SIGTERM, fire, self);
    ml_loop_on_signal(self->loop, SIGINT, fire, self);
    ml_loop_on_signal(self->loop, SIGHUP, fire, self);
}

/* ---- kubeconfig and token ---- */

static void print_kubeconfig(const struct ml_dev *self, FILE *out)
{
    ML_AUTO(ml_buf_fini) struct ml_buf ca = ML_BUF_INIT;
    ml_base64_encode(ml_str_of(ml_embedded_http_ca(self->http)), &ca);
    fprintf(out,
            "apiVersion: v1\nkind: Config\ncurrent-context: moonloop\n"
            "clusters:\n- name: moonloop\n  cluster:\n"
            "    server: https://127.0.0.1:%d\n    certificate-authority-data: %s\n"
            "users:\n- name: moonloop\n  user:\n    token: %s\n"
            "contexts:\n- name: moonloop\n  context:\n    cluster: moonloop\n"
            "    user: moonloop\n    namespace: default\n",
            ml_embedded_http_port(self->http), ml_buf_cstr(&ca), self->token);
}

/* Written to a temporary file and renamed, so that nobody reads half a file, and its mode is 0600
 * from the start. */
static int write_kubeconfig(struct ml_dev *self)
{
    const char *path = self->opts.kubeconfig;
    ML_AUTO_FREE char *here = path && path[0] != '/' ? getcwd(NULL, 0) : NULL;
    char *name = !path  ? ml_asprintf("%s/kubeconfig", self->folder.path)
                 : here ? ml_asprintf("%s/%s", here, path)
                        : ml_strdup(path);
    ML_AUTO_FREE char *beside = ml_asprintf("%s.XXXXXX", name);
    int fd = mkostemp(beside, O_CLOEXEC); /* mode 0600 */
    FILE *out = fd < 0 ? NULL : fdopen(fd, "w");
    if (out)
        print_kubeconfig(self, out);
    bool written = out && !ferror(out);
    if (out && fclose(out) != 0)
        written = false;
    if (!written || rename(beside, name) < 0) {
        ml_err_set(self->err, ML_EIO, "%s: cannot be written: %s", name, strerror(errno));
        if (fd >= 0)
            unlink(beside);
        free(name);
        return self->err->kind;
    }
    self->kubeconfig = name;
    self->stop.kubeconfig = name;
    return 0;
}

/* TOKEN_LEN letters that cannot be guessed. */
static int make_admin_token(struct ml_dev *self)
{
    static const char letters[] = "abcdefghijklmnopqrstuvwxyz234567"; /* 32: no bias */
    unsigned char bytes[TOKEN_LEN];
    if (getrandom(bytes, sizeof bytes, 0) != (ssize_t)sizeof bytes)
        return ml_err_set(self->err, ML_EIO, "no random bytes: %s", strerror(errno));
    for (size_t i = 0; i < TOKEN_LEN; i++)
        self->token[i] = letters[bytes[i] % 32];
    self->token[TOKEN_LEN] = '\0';
    return 0;
}

/* ---- manifests, applied when they change ---- */

/* { path =, files = list of { name =, text = } } */
static void write_files(struct ml_buf *out, const char *path, const struct ml_files *files)
{
    struct ml_json_writer writer;
    ml_json_writer_init(&writer, out);
    ml_json_begin_object(&writer);
    ml_json_put_string(&writer, "path", ml_str_of(path));
    ml_json_key(&writer, ML_STR("files"));
    ml_json_begin_array(&writer);
    for (size_t i = 0; i < files->count; i++) {
        ml_json_begin_object(&writer);
        ml_json_put_string(&writer, "name", files->files[i].name);
        ml_json_put_string(&writer, "text", files->files[i].text);
        ml_json_end_object(&writer);
    }
    ml_json_end_array(&writer);
    ml_json_end_object(&writer);
}

/* Lua logs manifests that fail, each with its file. After an entry that cannot be read the
 * others follow; the first such entry is the error. */
static int apply_manifests(const struct dev_manifests *of, struct ml_err *err)
{
    ML_AUTO(ml_files_fini) struct ml_files files = ML_FILES_INIT;
    ML_AUTO(ml_buf_fini) struct ml_buf argument = ML_BUF_INIT;
    int r = ml_files_read(&files, &ml_files_manifests, of->path, err);
    if (r < 0)
        return r;
    write_files(&argument, of->path, &files);
    r = call_dev_lua(of->dev, "apply", ml_buf_str(&argument), NULL, err);
    if (r == 0 && files.refused_count) {
        *err = files.refused[0].err;
        r = err->kind;
    }
    return r;
}

static bool on_manifests_changed(void *context)
{
    struct dev_manifests *of = context;
    struct ml_dev *self = of->dev;
    struct ml_err err = ML_ERR_INIT;
    of->is_read = apply_manifests(of, &err) == 0;
    if (err.kind && strcmp(err.message, of->last.message) != 0)
        ml_error(&self->log, "dev", "manifests", ML_ERR(&err));
    of->last = err;
    if (!of->was_tried && --self->untried_count == 0)
        ml_task_defer(&self->start, self->loop);
    of->was_tried = true;
    return err.kind != ML_EIO;
}

/* The operator starts when each path was tried once, if there is one. */
static void watch_manifests(struct ml_dev *self)
{
    while (self->opts.manifests[self->untried_count])
        self->untried_count++;
    self->manifests = ml_zalloc((self->untried_count + 1) * sizeof *self->manifests);
    for (size_t i = 0; self->opts.manifests[i]; i++) {
        struct dev_manifests *of = &self->manifests[i];
        *of = (struct dev_manifests){.dev = self, .path = self->opts.manifests[i]};
        of->watch = ml_path_watch_new(self->loop, of->path, on_manifests_changed, of);
    }
    if (self->untried_count == 0)
        ml_task_defer(&self->start, self->loop);
}

static void free_manifests(struct ml_dev *self)
{
    for (struct dev_manifests *of = self->manifests; of && of->path; of++)
        ml_path_watch_free(of->watch);
    free(self->manifests);
}

/* ---- until idle ---- */

static bool is_cluster_busy(struct ml_dev *self)
{
    ML_AUTO(ml_buf_fini) struct ml_buf answer = ML_BUF_INIT;
    struct ml_err err = ML_ERR_INIT;
    int64_t horizon = ml_clock_monotonic(ml_loop_clock(self->loop)) + IDLE_WITHIN;
    if (call_dev_lua(self, "is_busy", ML_STR(""), &answer, &err) < 0 ||
        !ml_str_is(ml_buf_str(&answer), "false"))
        return true;
    return ml_scripts_next(ml_operator_scripts(self->operator)) < horizon;
}

static bool have_manifests_failed(struct ml_dev *self)
{
    ML_AUTO(ml_buf_fini) struct ml_buf answer = ML_BUF_INIT;
    struct ml_err err = ML_ERR_INIT;
    for (const struct dev_manifests *of = self->manifests; of->path; of++)
        if (!of->is_read)
            return true;
    return call_dev_lua(self, "failed", ML_STR(""), &answer, &err) < 0 ||
           !ml_str_is(ml_buf_str(&answer), "0");
}

/* Nothing is left to do: sets the exit code and stops. `why`: it is not ready, or empty. */
static void end_when_idle(struct ml_dev *self, bool is_ready, struct ml_buf *why)
{
    if (is_ready && have_manifests_failed(self))
        ml_err_set(self->err, ML_EINVALID, "not all manifests could be applied");
    else if (!is_ready || ml_scripts_fail(ml_operator_scripts(self->operator), why)) {
        struct ml_str rest = ml_buf_str(why);
        struct ml_str line = ml_str_cut(&rest, '\n');
        ml_err_set(self->err, ML_ESCRIPT, ML_STR_FMT, ML_STR_ARG(line));
    }
    if (self->err->kind)
        self->exit_code = MOONLOOP_EXIT_BAD;
    stop_dev(self);
}

static void check_idle(void *context)
{
    struct ml_dev *self = context;
    ML_AUTO(ml_buf_fini) struct ml_buf why = ML_BUF_INIT;
    bool is_ready = ml_operator_ready(self->operator, & why);
    self->idle_count = is_cluster_busy(self) ? 0 : self->idle_count + 1;
    self->stuck_count = is_ready ? 0 : self->stuck_count + 1;
    if (self->idle_count >= IDLE_COUNT || self->stuck_count >= STUCK_COUNT)
        end_when_idle(self, is_ready, &why);
    else
        ml_timer_start(&self->idle_check, IDLE_CHECK_NS);
}

/* ---- start ---- */

static void start_dev_operator(void *context)
{
    struct ml_dev *self = context;
    ml_operator_start(self->operator);
    if (self->opts.until_idle)
        ml_timer_start(&self->idle_check, IDLE_CHECK_NS);
}

/* With --data, clients go on trusting the server of the next start. */
static int keep_authority(struct ml_dev *self)
{
    struct ml_tls_authority *authority;
    int r = ml_tls_authority_open(self->opts.data, ml_clock_real(), &authority, self->err);
    if (r == 0)
        ml_server_lua_set_authority(ml_apiserver_lua(self->server), authority);
    return r;
}

static int make_dev_server(struct ml_dev *self)
{
    ML_AUTO(ml_buf_fini) struct ml_buf settings = ML_BUF_INIT;
    ML_AUTO_FREE char *tokens = ml_asprintf(
        "{\"%s\":{\"name\":\"kubernetes-admin\","
        "\"groups\":[\"system:masters\",\"system:authenticated\"]}}",
        self->token);
    struct ml_json_writer writer;
    bool rbac = self->opts.authorization && !strcmp(self->opts.authorization, "RBAC");
    ml_json_writer_init(&writer, &settings);
    ml_json_begin_object(&writer);
    ml_json_put_string(&writer, "authorization", ml_str_of(rbac ? "rbac" : "always"));
    ml_json_put_bool(&writer, "controllers", has_controllers(&self->opts));
    if (self->opts.data)
        ml_json_put_string(&writer, "data", ml_str_of(self->opts.data));
    ml_json_put_raw(&writer, "tokens", ml_str_of(tokens));
    ml_json_end_object(&writer);
    const struct ml_apiserver_options options = {
        .loop = self->loop,
        .random = &self->random,
        .log = &self->log,
        .settings = ml_buf_str(&settings),
    };
    int r = ml_apiserver_new(&options, &self->server, self->err);
    if (r == 0)
        self->stop.lua = ml_apiserver_lua(self->server);
    return r == 0 && self->opts.data ? keep_authority(self) : r;
}

static int serve_https(struct ml_dev *self)
{
    static const char *const names[] = {"kubernetes",
                                        "kubernetes.default",
                                        "kubernetes.default.svc",
                                        "kubernetes.default.svc.cluster.local",
                                        "10.0.0.1",
                                        "10.244.0.1"};
    const struct ml_embedded_http_opts opts = {
        .loop = self->loop,
        .server = self->server,
        .address = self->opts.bind_address ? self->opts.bind_address : DEFAULT_ADDRESS,
        .names = names,
        .name_count = ML_COUNT(names),
    };
    int r = ml_embedded_http_new(&opts, &self->http, self->err);
    return r < 0 ? r : write_kubeconfig(self);
}

/* Where pods' connections to the API server go. */
static void write_network_settings(const struct ml_dev *self, struct ml_json_writer *writer)
{
    struct ml_str address = ml_str_of(self->opts.bind_address ? self->opts.bind_address
                                                              : DEFAULT_ADDRESS);
    ml_json_key(writer, ML_STR("network"));
    ml_json_begin_object(writer);
    ml_json_put_string(writer, "address", ml_str_cut(&address, ':'));
    ml_json_put_int(writer, "port", ml_embedded_http_port(self->http));
    ml_json_end_object(writer);
}

static void write_dev_image(struct ml_json_writer *writer, struct image_option image)
{
    ML_AUTO_FREE char *program = ml_str_dup(image.program), *path = realpath(program, NULL);
    ml_json_key(writer, image.name);
    ml_json_begin_object(writer);
    ml_json_put_string(writer, "source", ml_str_of(path ? path : program));
    if (image.path.len)
        ml_json_put_string(writer, "target", image.path);
    ml_json_key(writer, ML_STR("arguments"));
    ml_json_begin_array(writer);
    while (image.args.len)
        ml_json_string(writer, ml_str_cut(&image.args, ' '));
    ml_json_end_array(writer);
    ml_json_end_object(writer);
}

static void write_dev_images(struct ml_dev *self, struct ml_json_writer *writer)
{
    ml_json_key(writer, ML_STR("images"));
    ml_json_begin_object(writer);
    for (size_t i = 0; self->opts.images[i]; i++)
        write_dev_image(writer, read_image(self->opts.images[i]));
    ml_json_end_object(writer);
}

static void write_dev_logs(const struct ml_dev *self, struct ml_json_writer *writer)
{
    ml_json_key(writer, ML_STR("logs"));
    ml_json_begin_array(writer);
    for (size_t i = 0; self->opts.logs[i]; i++)
        ml_json_string(writer, ml_str_of(self->opts.logs[i]));
    ml_json_end_array(writer);
}

static int start_dev_cluster(struct ml_dev *self)
{
    ML_AUTO(ml_buf_fini) struct ml_buf settings = ML_BUF_INIT;
    struct ml_json_writer writer;
    ml_json_writer_init(&writer, &settings);
    ml_json_begin_object(&writer);
    ml_json_put_string(&writer, "pods", ml_str_of(pods_of(&self->opts)));
    ml_json_put_int(&writer, "max_pods", max_pods_of(&self->opts));
    ml_json_put_string(&writer, "directory", ml_str_of(self->folder.path));
    ml_json_put_string(&writer, "ca", ml_str_of(ml_embedded_http_ca(self->http)));
    write_dev_images(self, &writer);
    write_dev_logs(self, &writer);
    if (self->opts.audit_log)
        ml_json_put_string(&writer, "audit_log", ml_str_of(self->opts.audit_log));
    if (self->network)
        write_network_settings(self, &writer);
    ml_json_end_object(&writer);
    return call_dev_lua(self, "start", ml_buf_str(&settings), NULL, self->err);
}

static void on_script_live(void *context)
{
    struct ml_dev *self = context;
    struct ml_err err = ML_ERR_INIT;
    if (ml_local_webhooks_register(self->operator, ml_apiserver_lua(self->server), &err) < 0)
        ml_error(&self->log, "dev", "webhooks cannot be registered", ML_ERR(&err));
}

static void put_expected_kinds(const char *path, struct ml_json_writer *writer)
{
    ML_AUTO(ml_files_fini) struct ml_files files = ML_FILES_INIT;
    ML_AUTO(ml_load_fini) struct ml_load load = {.files = ML_FILES_INIT};
    struct ml_script_limits limits = {0};
    const struct ml_load_opts opts = {.limits = &limits};
    struct ml_err err;
    if (ml_files_read(&files, &ml_files_scripts, path, &err) < 0)
        return; /* the operator says so */
    ml_load_all(&load, &files, &opts);
    for (size_t i = 0; i < files.count; i++)
        if (load.verdicts[i].outcome == ML_LOAD_CONTROLLER)
            ml_local_webhooks_put_kind(ml_script_declaration(load.verdicts[i].script), writer);
}

/* Manifests of these kinds wait until the webhooks of their scripts are there: an object that came
 * before its conversion would be stored as it is. */
static int expect_webhooks(struct ml_dev *self)
{
    ML_AUTO(ml_buf_fini) struct ml_buf kinds = ML_BUF_INIT;
    struct ml_json_writer writer;
    ml_json_writer_init(&writer, &kinds);
    ml_json_begin_array(&writer);
    for (size_t i = 0; self->opts.scripts[i]; i++)
        put_expected_kinds(self->opts.scripts[i], &writer);
    ml_json_end_array(&writer);
    return call_dev_lua(self, "expect_webhooks", ml_buf_str(&kinds), NULL, self->err);
}

static void make_dev_operator(struct ml_dev *self)
{
    ML_AUTO_FREE char *instance = ml_asprintf("moonloop-dev-%d", (int)getpid());
    const struct ml_operator_opts opts = {
        .loop = self->loop,
        .transport = self->transport,
        .random = &self->random,
        .log = &self->log,
        .metrics = self->metrics,
        .namespaces = self->opts.namespaces,
        .instance = instance,
        .outbound = self->outbound,
        .tester = self->tester,
    };
    self->operator= ml_operator_new(&opts);
    struct ml_scripts *scripts = ml_operator_scripts(self->operator);
    ml_operator_on_live(self->operator, on_script_live, self);
    for (size_t i = 0; self->opts.scripts[i]; i++) {
        struct ml_source *source = ml_source_path_new(self->opts.scripts[i]);
        source->removes_missing = true;
        ml_scripts_add_source(scripts, source);
    }
}

static void look_at_dev(void *context, struct ml_buf *why, struct ml_inspect_view *out)
{
    struct ml_dev *self = context;
    out->ready = ml_operator_ready(self->operator, why);
    out->why = ml_buf_str(why);
    out->services = ml_operator_services(self->operator);
    out->scripts = ml_operator_scripts(self->operator);
}

/* Without scripts it is a server alone, and another process is the host of this machine. It runs
 * without the socket when that cannot be opened. */
static void open_dev_inspect(struct ml_dev *self)
{
    struct ml_err err = ML_ERR_INIT;
    if (!self->opts.scripts[0])
        return;
    const struct ml_inspect_server_opts opts = {
        .loop = self->loop,
        .log = &self->log,
        .look = look_at_dev,
        .context = self,
    };
    if (ml_inspect_server_new(&opts, &self->inspect, &err) < 0)
        ml_warn(&self->log, "dev", "moonloop status and why cannot ask this process", ML_ERR(&err));
}

static bool is_dev_ready(void *context, struct ml_buf *why)
{
    const struct ml_dev *self = context;
    return ml_operator_ready(self->operator, why);
}

static int serve_dev_metrics(struct ml_dev *self)
{
    if (!serves_metrics(&self->opts))
        return 0;
    const struct ml_endpoints_opts opts = {
        .loop = self->loop,
        .metrics = self->metrics,
        .log = &self->log,
        .metrics_address = self->opts.metrics_address,
        .ready = is_dev_ready,
        .context = self,
    };
    return ml_endpoints_new(&opts, &self->endpoints, self->err);
}

static int open_dev_outbound(struct ml_dev *self)
{
    const struct ml_outbound_opts opts = {
        .loop = self->loop,
        .log = &self->log,
        .metrics = self->metrics,
        .origins = self->opts.allow_http,
        .proxy = self->opts.http_proxy,
        .ca_file = self->opts.http_ca_file,
    };
    return ml_outbound_new(&opts, &self->outbound, self->err);
}

/* The node makes it while the host goes on. */
static int begin_pod_network(struct ml_dev *self)
{
    if (lacks_pod_network(&self->opts))
        ml_info(&self->log, "dev", LOCAL_NETWORK, ML_S("bind_address", self->opts.bind_address));
    if (!wants_pod_network(&self->opts))
        return 0;
    return ml_pod_network_new(&self->network, self->err);
}

/* Without it, pods share the machine's: a line says so. */
static void end_pod_network(struct ml_dev *self)
{
    struct ml_err err = ML_ERR_INIT;
    if (!self->network)
        return;
    self->relay = ml_relay_new(self->loop);
    if (ml_pod_network_wait(self->network, &err) == 0 &&
        ml_egress_new(self->loop, self->network, self->relay, &self->egress, &err) == 0)
        return;
    ml_warn(&self->log, "dev", NO_NETWORK, ML_ERR(&err));
    ml_pod_network_free(ml_take(&self->network));
}

static void add_dev_libraries(struct ml_dev *self)
{
    const struct ml_process_library library = {self->processes, self->prober, self->network};
    const struct ml_network_library network = {self->network, self->relay};
    const struct ml_http_library http = {self->asker, self->network};
    const struct ml_tcp_library tcp = {self->network};
    ml_server_lua_add_processes(ml_apiserver_lua(self->server), &library);
    ml_server_lua_add_http(ml_apiserver_lua(self->server), &http);
    ml_server_lua_add_tcp(ml_apiserver_lua(self->server), &tcp);
    if (self->network)
        ml_server_lua_add_network(ml_apiserver_lua(self->server), &network);
}

static void print_address(const struct ml_dev *self)
{
    printf("moonloop dev: a cluster at https://127.0.0.1:%d; in another terminal:\n\n"
           "  export KUBECONFIG=%s\n\n",
           ml_embedded_http_port(self->http), self->kubeconfig);
    if (self->endpoints)
        printf("  /metrics is at port %d\n\n", ml_endpoints_metrics_port(self->endpoints));
    fflush(stdout);
}

static int build_dev(struct ml_dev *self)
{
    enum ml_log_level level = ML_LOG_INFO;
    if (check_dev_opts(&self->opts, self->err) < 0)
        return MOONLOOP_EXIT_USAGE;
    if (self->opts.log_level)
        ml_assert(ml_log_level_parse(self->opts.log_level, &level));
    ml_log_init(&self->log, ml_clock_real(), STDERR_FILENO, ML_LOG_TEXT, level);
    ml_random_init_real(&self->random);
    self->tester = ml_tester_new(self->err);
    if (!self->tester)
        return MOONLOOP_EXIT_BAD;
    self->loop = ml_loop_new(ml_clock_real());
    self->metrics = ml_metrics_new();
    ml_timer_init(&self->idle_check, self->loop, check_idle, self);
    ml_timer_init(&self->end_check, self->loop, check_end, self);
    ml_timer_init(&self->alive, self->loop, say_alive, self);
    ml_task_init(&self->start, start_dev_operator, self);
    self->prober = ml_http_client_new(self->loop, "kube-probe/" MOONLOOP_VERSION);
    self->asker = ml_http_client_new(self->loop, "kube-apiserver-admission");
    if (open_dev_outbound(self) < 0)
        return MOONLOOP_EXIT_USAGE;
    if (ml_processes_new(self->loop, &self->processes, self->err) < 0 ||
        begin_pod_network(self) < 0)
        return MOONLOOP_EXIT_BAD;
    /* From here on there are files and processes to clean up, so signals wait for the loop. */
    catch_stop_signals(self, stop_on_signal);
    self->stop = (struct ml_dev_stop){.end = end_at_once, .context = self};
    ml_dev_stop_watch(&self->stop);
    if (make_dev_folder(&self->folder, self->err) < 0 || make_admin_token(self) < 0 ||
        make_dev_server(self) < 0)
        return MOONLOOP_EXIT_BAD;
    ml_local_webhooks_open(ml_apiserver_lua(self->server), &self->operator);
    int r = serve_https(self);
    if (r == ML_EINVALID) /* --bind-address */
        return MOONLOOP_EXIT_USAGE;
    if (r < 0)
        return MOONLOOP_EXIT_BAD;
    end_pod_network(self);
    add_dev_libraries(self);
    if (start_dev_cluster(self) < 0)
        return MOONLOOP_EXIT_BAD;
    self->transport = ml_transport_embedded_new(self->loop, self->server, self->token);
    make_dev_operator(self);
    open_dev_inspect(self);
    r = serve_dev_metrics(self);
    if (r < 0)
        return r == ML_EINVALID ? MOONLOOP_EXIT_USAGE : MOONLOOP_EXIT_BAD;
    if (expect_webhooks(self) < 0)
        return MOONLOOP_EXIT_BAD;
    watch_manifests(self);
    print_address(self);
    return 0;
}

/* In the reverse order of build_dev; all of these accept NULL. */
static void free_dev(struct ml_dev *self)
{
    struct ml_err err = ML_ERR_INIT;
    ml_dev_stop_forget();
    free_manifests(self);
    ml_endpoints_free(self->endpoints);
    ml_inspect_server_free(ml_take(&self->inspect));
    ml_operator_free(ml_take(&self->operator));
    ml_tester_free(self->tester);
    ml_outbound_free(self->outbound);
    if (self->transport)
        self->transport->free(self->transport);
    if (self->server && call_dev_lua(self, "stop", ML_STR(""), NULL, &err) < 0)
        ml_error(&self->log, "dev", "pods may be left", ML_ERR(&err));
    ml_embedded_http_free(self->http);
    ml_apiserver_free(self->server);
    ml_egress_free(self->egress);
    ml_relay_free(self->relay);
    ml_processes_free(self->processes);
    ml_pod_network_free(self->network);
    ml_http_client_free(self->asker);
    ml_http_client_free(self->prober);
    if (self->loop) {
        catch_stop_signals(self, NULL);
        ml_task_cancel(&self->start);
        ml_timer_stop(&self->idle_check);
        ml_timer_stop(&self->end_check);
        ml_timer_stop(&self->alive);
        ml_loop_free(self->loop);
    }
    ml_metrics_free(self->metrics);
    remove_dev_files(self);
}

int ml_dev_run(const struct ml_dev_opts *opts, struct ml_err *err)
{
    struct ml_dev self = {.opts = *opts, .err = err};
    self.exit_code = build_dev(&self);
    if (self.exit_code == MOONLOOP_EXIT_OK)
        ml_loop_run(self.loop);
    free_dev(&self);
    return self.exit_code;
}
