/* moonloop status, why and trace: they ask a running host (ask.h), and print its answer. */
#include "cli/why.h"

#include "base/clock.h"
#include "base/escape.h"
#include "cli/ask.h"
#include "cli/command.h"
#include "include/moonloop.h"

#include <stdio.h>
#include <time.h>

#define ASK_EVERY_NS  (200 * ML_NS_PER_MS) /* while it traces */
#define LOOK_EVERY_NS (5 * ML_NS_PER_S)    /* for pods that have come */

struct values {
    struct ml_option_list words;
    struct ml_ask_opts ask;
    const char *output;
    int seconds; /* how long it traces; 0: until somebody ends it */
};

/* ---- printing ---- */

void ml_answer_items_fini(struct ml_answer_items *self)
{
    if (self->begun)
        ml_json_reader_fini(&self->reader);
}

bool ml_answer_items_next(struct ml_answer_items *self, struct ml_str list, struct ml_str *out)
{
    if (!self->begun) {
        self->begun = true;
        ml_json_reader_init(&self->reader, list, 0);
        if (ml_json_next(&self->reader) != ML_JSON_ARRAY)
            return false;
    }
    *out = ml_json_skip(&self->reader);
    return out->len > 0;
}

struct ml_str ml_answer_list(struct ml_str answer, const char *key)
{
    struct ml_str list = {"[]", 2};
    (void)ml_json_find(answer, &list, key, NULL);
    return list;
}

char *ml_answer_text(struct ml_str object, const char *key, const char *otherwise)
{
    struct ml_str raw;
    char *text = ml_json_find_string(object, key, NULL);
    if (text)
        return text;
    return ml_json_find(object, &raw, key, NULL) ? ml_str_dup(raw) : ml_strdup(otherwise);
}

/* Cuts an instant of the host to milliseconds: "2026-01-02T15:04:05.120". */
#define TIME_FMT "%.23sZ"

/* Appends the string `raw` of a list. */
static void append_string(struct ml_buf *line, struct ml_str raw)
{
    (void)ml_json_to_string(raw, line);
}

/* "  3f2a91bc on trial: 3 of 30 objects" */
static void append_trial(struct ml_str controller, struct ml_buf *line)
{
    struct ml_str trial;
    if (!ml_json_find(controller, &trial, "trial", NULL))
        return;
    ML_AUTO_FREE char *revision = ml_answer_text(trial, "revision", "");
    ML_AUTO_FREE char *objects = ml_answer_text(trial, "objects", "0");
    ML_AUTO_FREE char *of = ml_answer_text(trial, "of", "0");
    ml_buf_printf(line, "  %s on trial: %s of %s objects", revision, objects, of);
}

static void append_list(struct ml_str answer, const char *key, const char *title,
                        void (*append)(struct ml_str one, struct ml_buf *out), struct ml_buf *out)
{
    ML_AUTO(ml_answer_items_fini) struct ml_answer_items items = {0};
    struct ml_str one;
    for (bool first = true; ml_answer_items_next(&items, ml_answer_list(answer, key), &one);
         first = false) {
        if (first && title)
            ml_append_line(out, "%s", title);
        append(one, out);
    }
}

static void append_line_of(struct ml_str raw, struct ml_buf *out)
{
    ML_AUTO(ml_buf_fini) struct ml_buf line = ML_BUF_INIT;
    append_string(&line, raw);
    ml_append_line(out, "%s", ml_buf_cstr(&line));
}

/* Lines about things that the asker may not see. */
static void append_not_shown(struct ml_str answer, struct ml_buf *out)
{
    append_list(answer, "not_shown", NULL, append_line_of, out);
}

static void append_check(struct ml_str raw, struct ml_buf *out)
{
    ML_AUTO(ml_buf_fini) struct ml_buf line = ML_BUF_INIT;
    append_string(&line, raw);
    ml_append_line(out, "  %s", ml_buf_cstr(&line));
}

void ml_status_append_controllers(struct ml_str answer, struct ml_buf *out)
{
    static const char *const columns[] = {"controller", "revision", "kind",    "objects",
                                          "ready",      "running",  "waiting", "failing"};
    static const int widths[] = {-17, -8, -14, 7, 5, 7, 7, 7}; /* 79 with the spaces */
    ML_AUTO(ml_answer_items_fini) struct ml_answer_items controllers = {0};
    struct ml_str one;
    ml_append_line(out, "%-17s %-8s %-14s %7s %5s %7s %7s %7s", "CONTROLLER", "REVISION", "KIND",
                   "OBJECTS", "READY", "RUNNING", "WAITING", "FAILING");
    while (ml_answer_items_next(&controllers, ml_answer_list(answer, "controllers"), &one)) {
        ML_AUTO(ml_buf_fini) struct ml_buf line = ML_BUF_INIT;
        for (size_t i = 0; i < ML_COUNT(columns); i++) {
            ML_AUTO_FREE char *text = ml_answer_text(one, columns[i], "-");
            ml_buf_printf(&line, "%s%*s", i > 0 ? " " : "", widths[i], text);
        }
        ML_AUTO_FREE char *rests = ml_answer_text(one, "rests", "");
        append_trial(one, &line);
        ml_append_line(out, "%s%s%s", ml_buf_cstr(&line), *rests ? "  " : "", rests);
    }
}

static void append_status(struct ml_str answer, struct ml_buf *out)
{
    ML_AUTO_FREE char *leads = ml_answer_text(answer, "leads", "false");
    ML_AUTO_FREE char *ready = ml_answer_text(answer, "ready", "false");
    ml_append_line(out, "%s, %s", strcmp(ready, "true") == 0 ? "ready" : "not ready",
                   strcmp(leads, "true") == 0 ? "reconciles" : "stands by: another replica leads");
    append_list(answer, "checks", NULL, append_check, out);
    ml_status_append_controllers(answer, out);
    append_not_shown(answer, out);
}

static void append_key(struct ml_str controller, struct ml_buf *out)
{
    ML_AUTO_FREE char *name = ml_answer_text(controller, "controller", "");
    ML_AUTO_FREE char *revision = ml_answer_text(controller, "revision", "");
    ML_AUTO_FREE char *now = ml_answer_text(controller, "now", "");
    ML_AUTO_FREE char *since = ml_answer_text(controller, "since", "");
    ML_AUTO_FREE char *due = ml_answer_text(controller, "due", "");
    ML_AUTO(ml_buf_fini) struct ml_buf line = ML_BUF_INIT;
    ML_AUTO(ml_answer_items_fini) struct ml_answer_items reads = {0};
    struct ml_str one;
    ml_buf_printf(&line, "controller %s, revision %s: %s", name, revision, now);
    if (*since || *due)
        ml_buf_printf(&line, "%s" TIME_FMT, *due ? ", at " : ", since ", *due ? due : since);
    ml_append_line(out, "%s", ml_buf_cstr(&line));
    ml_buf_clear(&line);
    while (ml_answer_items_next(&reads, ml_answer_list(controller, "reads"), &one)) {
        ml_buf_puts(&line, line.len > 0 ? ", " : "");
        append_string(&line, one);
    }
    if (line.len > 0)
        ml_append_line(out, "  changes that wake it: of its own spec and metadata; and of %s",
                       ml_buf_cstr(&line));
}

/* `key`: of the object; NULL where it is known. */
static void append_run_of(struct ml_str run, const char *key, struct ml_buf *out)
{
    ML_AUTO_FREE char *at = ml_answer_text(run, "at", "");
    ML_AUTO_FREE char *controller = ml_answer_text(run, "controller", "");
    ML_AUTO_FREE char *revision = ml_answer_text(run, "revision", "");
    ML_AUTO_FREE char *cause = ml_answer_text(run, "cause", "not known");
    ML_AUTO_FREE char *waited = ml_answer_text(run, "waited_ms", "0");
    ML_AUTO_FREE char *took = ml_answer_text(run, "took_ms", "0");
    ML_AUTO_FREE char *cpu = ml_answer_text(run, "cpu_ms", "0");
    ML_AUTO_FREE char *result = ml_answer_text(run, "result", "");
    ML_AUTO_FREE char *error = ml_answer_text(run, "error", "");
    ml_append_line(out, "  " TIME_FMT "  %s %s%s%s: %s%s%s", at, controller, revision,
                   key ? " for " : "", key ? key : "", result, *error ? ": " : "", error);
    ml_append_line(out, "    because of: %s; waited %s ms, took %s ms, of that %s ms of CPU", cause,
                   waited, took, cpu);
}

static void append_run(struct ml_str run, struct ml_buf *out)
{
    append_run_of(run, NULL, out);
}

static void append_write(struct ml_str write, struct ml_buf *out)
{
    ML_AUTO_FREE char *at = ml_answer_text(write, "at", "");
    ML_AUTO_FREE char *controller = ml_answer_text(write, "controller", "");
    ML_AUTO_FREE char *key = ml_answer_text(write, "for", "");
    ML_AUTO_FREE char *verb = ml_answer_text(write, "verb", "");
    ML_AUTO_FREE char *kind = ml_answer_text(write, "kind", "");
    ML_AUTO_FREE char *name = ml_answer_text(write, "name", "");
    ML_AUTO_FREE char *place = ml_answer_text(write, "place", "");
    ML_AUTO_FREE char *error = ml_answer_text(write, "error", "");
    ml_append_line(out, "  " TIME_FMT "  %s %s %s, by %s for %s%s%s%s%s", at, verb, kind, name,
                   controller, key, *place ? ", " : "", place, *error ? ": " : "", error);
}

/* One whose managed fields the field is among. */
static void append_manager(struct ml_str manager, struct ml_buf *out)
{
    ML_AUTO_FREE char *name = ml_answer_text(manager, "manager", "");
    ML_AUTO_FREE char *operation = ml_answer_text(manager, "operation", "");
    ML_AUTO_FREE char *subresource = ml_answer_text(manager, "subresource", "");
    ML_AUTO_FREE char *controller = ml_answer_text(manager, "controller", "");
    ML_AUTO_FREE char *at = ml_answer_text(manager, "at", "");
    struct ml_str write;
    ml_append_line(out, "  %s  %s%s%s%s%s (%s%s%s)", at, *controller ? "controller " : "",
                   controller, *controller ? ", " : "", "field manager ", name, operation,
                   *subresource ? " of " : "", subresource);
    if (ml_json_find(manager, &write, "write", NULL)) {
        ml_append_line(out, "    its last write of the object that is known:");
        append_write(write, out);
    }
}

static void append_field(struct ml_str answer, struct ml_buf *out)
{
    struct ml_str field;
    if (!ml_json_find(answer, &field, "field", NULL))
        return;
    ML_AUTO_FREE char *name = ml_answer_text(field, "name", "");
    ML_AUTO_FREE char *found = ml_answer_text(field, "found", "false");
    bool is_there = strcmp(found, "true") == 0;
    if (!ml_str_is(ml_answer_list(field, "managers"), "[]")) {
        ML_AUTO_FREE char *title = ml_asprintf("%s was set by:", name);
        append_list(field, "managers", title, append_manager, out);
    } else {
        ml_append_line(out,
                       is_there ? "%s was set by nobody: it is a default, or the API server's own"
                                : "the object has no %s, and nobody has set it",
                       name);
    }
}

void ml_why_append(struct ml_str answer, struct ml_buf *out)
{
    ML_AUTO_FREE char *kind = ml_answer_text(answer, "kind", "");
    ML_AUTO_FREE char *name = ml_answer_text(answer, "name", "");
    ml_append_line(out, "%s %s", kind, name);
    if (ml_str_is(ml_answer_list(answer, "controllers"), "[]"))
        ml_append_line(out, "no controller of this host reconciles %s", kind);
    append_list(answer, "controllers", NULL, append_key, out);
    append_list(answer, "runs", "last runs:", append_run, out);
    append_list(answer, "writes", "last writes of these runs, and of this object:", append_write,
                out);
    append_field(answer, out);
    append_not_shown(answer, out);
}

/* Its lines are escaped. Empties it. */
static void print_text(struct ml_buf *text)
{
    fputs(ml_buf_cstr(text), stdout);
    ml_buf_clear(text);
}

/* An object of the host, with the name of its pod in front, if it has one. */
static void print_json(struct ml_str object, const char *pod)
{
    if (pod)
        printf("{\"pod\":\"%s\",%.*s\n", pod, (int)object.len - 1, object.ptr + 1);
    else
        printf(ML_STR_FMT "\n", ML_STR_ARG(object));
}

/* Is the entry of a run for this object, or of a write in one? NULL: of any. */
static bool is_wanted(struct ml_str entry, const char *controller, const char *key)
{
    ML_AUTO_FREE char *by = ml_answer_text(entry, "controller", "");
    ML_AUTO_FREE char *of = ml_answer_text(entry, "for", "");
    return (!controller || strcmp(by, controller) == 0) && (!key || strcmp(of, key) == 0);
}

/* `shown`: the pod that the line before is of; NULL: none yet. */
static void print_trace(struct ml_str answer, const struct values *values, const char *pod,
                        const char **shown)
{
    const char *const *words = values->words.values;
    const char *controller = values->words.count > 0 ? words[0] : NULL;
    const char *wanted = values->words.count > 1 ? words[1] : NULL;
    ML_AUTO_FREE char *missed = ml_answer_text(answer, "missed", "0");
    ML_AUTO(ml_answer_items_fini) struct ml_answer_items entries = {0};
    ML_AUTO(ml_buf_fini) struct ml_buf text = ML_BUF_INIT;
    struct ml_str one, run, write;
    if (strcmp(missed, "0") != 0)
        ml_print_line(stderr, "%s entries were missed: the host does more than is kept", missed);
    append_not_shown(answer, &text);
    fputs(ml_buf_cstr(&text), stderr);
    ml_buf_clear(&text);
    while (ml_answer_items_next(&entries, ml_answer_list(answer, "entries"), &one)) {
        bool is_run = ml_json_find(one, &run, "run", NULL);
        if (!is_run && !ml_json_find(one, &write, "write", NULL))
            continue;
        if (!is_wanted(is_run ? run : write, controller, wanted))
            continue;
        ML_AUTO_FREE char *key = ml_answer_text(is_run ? run : write, "for", "");
        if (pod && !values->output && *shown != pod)
            ml_print_line(stdout, "pod %s", pod);
        *shown = pod;
        if (values->output)
            print_json(one, pod);
        else if (is_run)
            append_run_of(run, key, &text);
        else
            append_write(write, &text);
        print_text(&text);
    }
}

/* ---- the commands ---- */

/* Returns an exit code: 0, it is one that we know. */
static int check_output(const struct values *values, struct ml_err *err)
{
    if (!values->output || strcmp(values->output, "json") == 0)
        return MOONLOOP_EXIT_OK;
    ml_err_set(err, ML_EINVALID, "-o %s: choose json, or leave it out", values->output);
    return MOONLOOP_EXIT_USAGE;
}

static int exit_code(const struct ml_err *err)
{
    return err->kind == ML_EINVALID ? MOONLOOP_EXIT_USAGE : MOONLOOP_EXIT_UNREACHABLE;
}

static void close_ask(struct ml_ask **ask)
{
    ml_ask_close(*ask);
}

/* Asks all hosts. The error of one that gives no answer is printed, unless none gives any. */
static int ask_all(struct ml_ask *ask, struct ml_str path, struct ml_buf *answers,
                   struct ml_err *err)
{
    ML_AUTO(ml_buf_fini) struct ml_buf failures = ML_BUF_INIT;
    size_t count = ml_ask_count(ask), answered = 0;
    for (size_t i = 0; i < count; i++) {
        ML_AUTO_FREE char *name = ml_ask_name(ask, i);
        if (ml_ask(ask, i, path, &answers[i], err) == 0)
            answered++;
        else
            ml_append_line(&failures, "%s gives no answer: %s", name, err->message);
    }
    if (answered > 0 && failures.len > 0)
        fputs(ml_buf_cstr(&failures), stderr);
    return answered > 0 ? 0 : err->kind;
}

/* How much it tells: an answer of the replica that acts for the object, best one that has done
 * something. */
static int weight_of(struct ml_str answer)
{
    ML_AUTO_FREE char *acts = ml_answer_text(answer, "acts", "false");
    bool has_done = !ml_str_is(ml_answer_list(answer, "runs"), "[]") ||
                    !ml_str_is(ml_answer_list(answer, "writes"), "[]");
    return (answer.len > 0) + 2 * has_done + 4 * (strcmp(acts, "true") == 0);
}

static size_t choose_answer(const struct ml_buf *answers, size_t count)
{
    size_t best = 0;
    for (size_t i = 1; i < count; i++)
        if (weight_of(ml_buf_str(&answers[i])) > weight_of(ml_buf_str(&answers[best])))
            best = i;
    return best;
}

static void print_answer(const struct values *values, const char *pod, struct ml_str answer,
                         void (*append)(struct ml_str answer, struct ml_buf *out))
{
    ML_AUTO(ml_buf_fini) struct ml_buf text = ML_BUF_INIT;
    if (values->output) {
        print_json(answer, pod);
        return;
    }
    if (pod)
        ml_print_line(stdout, "pod %s", pod);
    append(answer, &text);
    print_text(&text);
}

/* `chooses`: one answer is printed; else all are. */
static int ask_and_print(const struct values *values, struct ml_str path, bool chooses,
                         void (*append)(struct ml_str answer, struct ml_buf *out),
                         struct ml_err *err)
{
    ML_AUTO(close_ask) struct ml_ask *ask = NULL;
    int code = check_output(values, err);
    if (code != MOONLOOP_EXIT_OK)
        return code;
    if (ml_ask_open(&values->ask, &ask, err) < 0)
        return exit_code(err);
    size_t count = ml_ask_count(ask);
    ML_AUTO_FREE struct ml_buf *answers = ml_zalloc(count * sizeof *answers);
    int r = ask_all(ask, path, answers, err);
    size_t best = chooses ? choose_answer(answers, count) : 0;
    for (size_t i = 0; r == 0 && i < count; i++)
        if (answers[i].len > 0 && (!chooses || i == best))
            print_answer(values, ml_ask_pod(ask, i), ml_buf_str(&answers[i]), append);
    for (size_t i = 0; i < count; i++)
        ml_buf_fini(&answers[i]);
    return r == 0 ? MOONLOOP_EXIT_OK : exit_code(err);
}

static int run_status(void *values, char **argv, struct ml_err *err)
{
    (void)argv;
    return ask_and_print(values, ML_STR("/status"), false, append_status, err);
}

bool ml_answer_is_name(const char *text)
{
    return *text && text[strspn(text, "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ"
                                      "0123456789.-_:/")] == '\0';
}

char *ml_why_path(const char *kind, const char *name)
{
    if (!ml_answer_is_name(kind) || strchr(kind, '/') || !ml_answer_is_name(name))
        return NULL;
    return ml_asprintf("/why/%s/%s", kind, name);
}

/* The question about a field of it, which may be written as `kubectl explain` does, with a '.' in
 * front. The caller frees it. */
static char *field_path(const char *path, const char *field)
{
    static const char plain[] = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789-_.";
    struct ml_buf out = ML_BUF_INIT;
    ml_buf_printf(&out, "%s?", path);
    for (field += *field == '.'; *field; field++)
        if (strchr(plain, *field))
            ml_buf_putc(&out, *field);
        else
            ml_buf_printf(&out, "%%%02X", (unsigned)(unsigned char)*field);
    return ml_buf_take(&out);
}

static int run_why(void *values, char **argv, struct ml_err *err)
{
    const struct values *given = values;
    const char *const *words = given->words.values;
    size_t count = given->words.count;
    (void)argv;
    ML_AUTO_FREE char *path = count == 2 || count == 3 ? ml_why_path(words[0], words[1]) : NULL;
    if (!path) {
        ml_err_set(err, ML_EINVALID,
                   "expected a kind and an object: moonloop why At default/example-at; or, of a "
                   "kind without namespaces, moonloop why Tenant acme; and a field of it, if one "
                   "is meant: moonloop why Deployment default/web spec.replicas");
        return MOONLOOP_EXIT_USAGE;
    }
    ML_AUTO_FREE char *of_field = count == 3 ? field_path(path, words[2]) : NULL;
    return ask_and_print(values, ml_str_of(of_field ? of_field : path), true, ml_why_append, err);
}

/* Prints what the host did since the entry `*next`, which becomes that of the next call. Returns
 * whether there is more to ask for. */
static int trace_once(const struct values *values, struct ml_ask *ask, size_t host, char **next,
                      const char **shown, struct ml_err *err)
{
    ML_AUTO(ml_buf_fini) struct ml_buf answer = ML_BUF_INIT;
    ML_AUTO_FREE char *path = ml_asprintf("/trace/%s", *next);
    if (ml_ask(ask, host, ml_str_of(path), &answer, err) < 0)
        return err->kind;
    free(*next);
    *next = ml_answer_text(ml_buf_str(&answer), "next", "");
    print_trace(ml_buf_str(&answer), values, ml_ask_pod(ask, host), shown);
    fflush(stdout);
    ML_AUTO_FREE char *more = ml_answer_text(ml_buf_str(&answer), "more", "false");
    return strcmp(more, "true") == 0;
}

/* Of all hosts; `next` is NULL for one that is not traced. */
struct trace {
    const struct values *values;
    struct ml_ask *ask;
    char *next[ML_ASK_HOSTS_MAX];
    bool told[ML_ASK_HOSTS_MAX]; /* that it is traced */
    size_t count;                /* of those that were found by now */
    const char *shown;
    int64_t look_ns; /* when it looks for more */
};

static void trace_fini(struct trace *self)
{
    for (size_t i = 0; i < self->count; i++)
        free(self->next[i]);
}

/* Of a host that was there before, what follows; of one that has come since, all of it. */
static void trace_new_hosts(struct trace *self, const char *from)
{
    while (self->count < ml_ask_count(self->ask))
        self->next[self->count++] = ml_strdup(from);
}

static int trace_host(struct trace *self, size_t host, struct ml_err *err)
{
    ML_AUTO_FREE char *name = ml_ask_name(self->ask, host);
    int r = trace_once(self->values, self->ask, host, &self->next[host], &self->shown, err);
    if (r >= 0 && !self->told[host] && !self->values->output)
        ml_print_line(stderr, "%s is traced; Ctrl-C ends it", name);
    self->told[host] = self->told[host] || r >= 0;
    if (r >= 0)
        return r;
    if (self->count > 1)
        ml_print_line(stderr, "%s is traced no longer: %s", name, err->message);
    free(ml_take(&self->next[host]));
    self->look_ns = 0;
    return 0;
}

/* One that gives no answer any more is named, and left out from then on. Returns whether there is
 * more to ask for. An error: none is left. */
static int trace_all(struct trace *self, struct ml_err *err)
{
    size_t left = 0;
    int more = 0;
    for (size_t i = 0; i < self->count; i++) {
        if (self->next[i])
            more = trace_host(self, i, err) > 0 || more;
        left += self->next[i] != NULL;
    }
    return left > 0 ? more : err->kind;
}

/* Prints what the hosts do from now on, until the time is over or nobody reads it. */
static int trace_hosts(const struct values *values, struct ml_ask *ask, struct ml_err *err)
{
    const struct timespec pause = {.tv_nsec = ASK_EVERY_NS};
    ML_AUTO(trace_fini) struct trace trace = {.values = values, .ask = ask};
    int64_t now_ns = ml_clock_monotonic(ml_clock_real());
    const int64_t end_ns = now_ns + values->seconds * ML_NS_PER_S;
    int r = 0;
    trace.look_ns = now_ns + LOOK_EVERY_NS;
    trace_new_hosts(&trace, "");
    while ((r = trace_all(&trace, err)) >= 0 && !ferror(stdout)) {
        now_ns = ml_clock_monotonic(ml_clock_real());
        if (values->seconds > 0 && now_ns >= end_ns)
            break;
        if (now_ns >= trace.look_ns) {
            ml_ask_look_again(ask);
            trace_new_hosts(&trace, "0");
            trace.look_ns = now_ns + LOOK_EVERY_NS;
        } else if (r == 0) {
            nanosleep(&pause, NULL);
        }
    }
    return r < 0 ? r : 0;
}

static int run_trace(void *given, char **argv, struct ml_err *err)
{
    const struct values *values = given;
    ML_AUTO(close_ask) struct ml_ask *ask = NULL;
    int code = check_output(values, err);
    (void)argv;
    if (code != MOONLOOP_EXIT_OK)
        return code;
    if (values->words.count > 2) {
        ml_err_set(err, ML_EINVALID,
                   "expected a controller and an object, or less: moonloop trace cnat "
                   "default/example-at");
        return MOONLOOP_EXIT_USAGE;
    }
    if (ml_ask_open(&values->ask, &ask, err) < 0 || trace_hosts(values, ask, err) < 0)
        return exit_code(err);
    return MOONLOOP_EXIT_OK;
}

#define HOST_OPTIONS                                                                               \
    {"-o", "json", "the host's answer, as JSON", ML_OPTION_TEXT, offsetof(struct values, output)}, \
        ML_ASK_OPTIONS(struct values)

static const struct ml_option host_options[] = {HOST_OPTIONS};

const struct ml_command ml_command_status = {
    .name = "status",
    .usage = "[OPTIONS]",
    .summary = "say how the controllers of a running host are",
    .description =
        "Asks the host on this machine, also that of `moonloop dev`; or those in a cluster,\n"
        "through its API server, which decides what you are told:\n"
        "  moonloop status --namespace moonloop-system\n"
        "It prints what /readyz?verbose says, and for each controller its revision, its\n"
        "objects, and how many keys are ready to run, run, wait for a time, and fail.",
    .example = "",
    .options = host_options,
    .option_count = ML_COUNT(host_options),
    .words = ML_NO_WORDS,
    .values_size = sizeof(struct values),
    .run = run_status,
};

const struct ml_command ml_command_why = {
    .name = "why",
    .usage = "KIND [NAMESPACE/]NAME [FIELD] [OPTIONS]",
    .summary = "say why a running host reconciled an object, or does not",
    .description =
        "Asks the host on this machine, also that of `moonloop dev`; or those in a cluster,\n"
        "through its API server, which decides what you are told:\n"
        "  moonloop why At default/example-at --namespace moonloop-system\n"
        "It prints what the object waits for and until when, what its last run read, its\n"
        "last runs with what caused them, and the writes with the line of the script.\n"
        "Of an object that a script writes, it says which run wrote it. With a FIELD, named\n"
        "as in spec.replicas or metadata.annotations[example.com/at], who has set that.",
    .example = "At default/example-at",
    .options = host_options,
    .option_count = ML_COUNT(host_options),
    .words = offsetof(struct values, words),
    .values_size = sizeof(struct values),
    .run = run_why,
};

static const struct ml_option trace_options[] = {
    HOST_OPTIONS,
    {"--for", "SECONDS", "end after so many; default: when it is ended", ML_OPTION_SECONDS,
     offsetof(struct values, seconds)},
};

const struct ml_command ml_command_trace = {
    .name = "trace",
    .usage = "[CONTROLLER [[NAMESPACE/]NAME]] [OPTIONS]",
    .summary = "print the runs and writes of a running host as they happen",
    .description =
        "Asks the host on this machine, also that of `moonloop dev`; or those in a cluster,\n"
        "through its API server, which decides what you are told:\n"
        "  moonloop trace cnat --namespace moonloop-system\n"
        "It prints each write with the line of the script, and each run when it has ended,\n"
        "with what caused it; of one controller, or of one of its objects, if they are given.",
    .example = "cnat default/example-at",
    .options = trace_options,
    .option_count = ML_COUNT(trace_options),
    .words = offsetof(struct values, words),
    .values_size = sizeof(struct values),
    .run = run_trace,
};
