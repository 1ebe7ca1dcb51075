/* moonloop status, why and trace: they ask a running host (ask.h), and print its answer. */
#include "cli/why.h"

#include "base/clock.h"
#include "base/escape.h"
#include "cli/ask.h"
#include "cli/command.h"
#include "include/moonloop.h"

#include <stdio.h>
#include <time.h>

#define ASK_EVERY_NS (200 * ML_NS_PER_MS) /* while it traces */

struct values {
    struct ml_option_list words;
    const char *pid, *output;
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
    ML_AUTO(ml_answer_items_fini) struct ml_answer_items checks = {0};
    struct ml_str one;
    ml_append_line(out, "%s, %s", strcmp(ready, "true") == 0 ? "ready" : "not ready",
                   strcmp(leads, "true") == 0 ? "reconciles" : "stands by: another replica leads");
    while (ml_answer_items_next(&checks, ml_answer_list(answer, "checks"), &one)) {
        ML_AUTO(ml_buf_fini) struct ml_buf line = ML_BUF_INIT;
        append_string(&line, one);
        ml_append_line(out, "  %s", ml_buf_cstr(&line));
    }
    ml_status_append_controllers(answer, out);
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
}

/* Its lines are escaped. Empties it. */
static void print_text(struct ml_buf *text)
{
    fputs(ml_buf_cstr(text), stdout);
    ml_buf_clear(text);
}

/* Is the entry of a run for this object, or of a write in one? NULL: of any. */
static bool is_wanted(struct ml_str entry, const char *controller, const char *key)
{
    ML_AUTO_FREE char *by = ml_answer_text(entry, "controller", "");
    ML_AUTO_FREE char *of = ml_answer_text(entry, "for", "");
    return (!controller || strcmp(by, controller) == 0) && (!key || strcmp(of, key) == 0);
}

static void print_trace(struct ml_str answer, const struct values *values)
{
    const char *const *words = values->words.values;
    const char *controller = values->words.count > 0 ? words[0] : NULL;
    const char *wanted = values->words.count > 1 ? words[1] : NULL;
    ML_AUTO_FREE char *missed = ml_answer_text(answer, "missed", "0");
    ML_AUTO(ml_buf_fini) struct ml_buf text = ML_BUF_INIT;
    ML_AUTO(ml_answer_items_fini) struct ml_answer_items entries = {0};
    struct ml_str one, run, write;
    if (strcmp(missed, "0") != 0)
        ml_print_line(stderr, "%s entries were missed: the host does more than is kept", missed);
    while (ml_answer_items_next(&entries, ml_answer_list(answer, "entries"), &one)) {
        bool is_run = ml_json_find(one, &run, "run", NULL);
        if (!is_run && !ml_json_find(one, &write, "write", NULL))
            continue;
        if (!is_wanted(is_run ? run : write, controller, wanted))
            continue;
        ML_AUTO_FREE char *key = ml_answer_text(is_run ? run : write, "for", "");
        if (values->output)
            printf(ML_STR_FMT "\n", ML_STR_ARG(one));
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

static int ask_and_print(const struct values *values, struct ml_str path,
                         void (*append)(struct ml_str answer, struct ml_buf *out),
                         struct ml_err *err)
{
    ML_AUTO(ml_buf_fini) struct ml_buf answer = ML_BUF_INIT, text = ML_BUF_INIT;
    ML_AUTO_FREE char *pid = NULL;
    int code = check_output(values, err);
    if (code != MOONLOOP_EXIT_OK)
        return code;
    if (ml_ask_find(values->pid, &pid, err) < 0 || ml_ask(pid, path, &answer, err) < 0)
        return exit_code(err);
    if (values->output)
        printf(ML_STR_FMT "\n", ML_STR_ARG(ml_buf_str(&answer)));
    else
        append(ml_buf_str(&answer), &text);
    print_text(&text);
    return MOONLOOP_EXIT_OK;
}

static int run_status(void *values, char **argv, struct ml_err *err)
{
    (void)argv;
    return ask_and_print(values, ML_STR("/status"), append_status, err);
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

static int run_why(void *values, char **argv, struct ml_err *err)
{
    const struct values *given = values;
    const char *const *words = given->words.values;
    (void)argv;
    ML_AUTO_FREE char *path = given->words.count == 2 ? ml_why_path(words[0], words[1]) : NULL;
    if (!path) {
        ml_err_set(err, ML_EINVALID,
                   "expected a kind and an object: moonloop why At default/example-at; or, of a "
                   "kind without namespaces, moonloop why Tenant acme");
        return MOONLOOP_EXIT_USAGE;
    }
    return ask_and_print(values, ml_str_of(path), ml_why_append, err);
}

/* Prints what the host did since the entry `*next`, which becomes that of the next call. Returns
 * whether there is more to ask for. */
static int trace_once(const struct values *values, const char *pid, char **next, struct ml_err *err)
{
    ML_AUTO(ml_buf_fini) struct ml_buf answer = ML_BUF_INIT;
    ML_AUTO_FREE char *path = ml_asprintf("/trace/%s", *next);
    if (ml_ask(pid, ml_str_of(path), &answer, err) < 0)
        return err->kind;
    free(*next);
    *next = ml_answer_text(ml_buf_str(&answer), "next", "");
    print_trace(ml_buf_str(&answer), values);
    fflush(stdout);
    ML_AUTO_FREE char *more = ml_answer_text(ml_buf_str(&answer), "more", "false");
    return strcmp(more, "true") == 0;
}

/* Prints what the host does from now on, until the time is over or nobody reads it. */
static int trace_host(const struct values *values, const char *pid, struct ml_err *err)
{
    const struct timespec pause = {.tv_nsec = ASK_EVERY_NS};
    ML_AUTO_FREE char *next = ml_strdup("");
    const int64_t end_ns = ml_clock_monotonic(ml_clock_real()) + values->seconds * ML_NS_PER_S;
    int r = trace_once(values, pid, &next, err);
    if (r == 0 && !values->output)
        ml_print_line(stderr, "process %s is traced; Ctrl-C ends it", pid);
    while (r >= 0 && !ferror(stdout) &&
           (values->seconds == 0 || ml_clock_monotonic(ml_clock_real()) < end_ns)) {
        if (r == 0)
            nanosleep(&pause, NULL);
        r = trace_once(values, pid, &next, err);
    }
    return r < 0 ? r : 0;
}

static int run_trace(void *given, char **argv, struct ml_err *err)
{
    const struct values *values = given;
    ML_AUTO_FREE char *pid = NULL;
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
    if (ml_ask_find(values->pid, &pid, err) < 0 || trace_host(values, pid, err) < 0)
        return exit_code(err);
    return MOONLOOP_EXIT_OK;
}

#define HOST_OPTIONS                                                                               \
    {"-o", "json", "the host's answer, as JSON", ML_OPTION_TEXT, offsetof(struct values, output)}, \
    {                                                                                              \
        "--pid", "PID", "of the host; default: the only one on this machine", ML_OPTION_TEXT,      \
            offsetof(struct values, pid)                                                           \
    }

static const struct ml_option host_options[] = {HOST_OPTIONS};

const struct ml_command ml_command_status = {
    .name = "status",
    .usage = "[OPTIONS]",
    .summary = "say how the controllers of a running host are",
    .description =
        "Asks the host on this machine, also that of `moonloop dev`, or in this pod:\n"
        "  kubectl exec deploy/moonloop -- /moonloop status\n"
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
    .usage = "KIND [NAMESPACE/]NAME [OPTIONS]",
    .summary = "say why a running host reconciled an object, or does not",
    .description =
        "Asks the host on this machine, also that of `moonloop dev`, or in this pod:\n"
        "  kubectl exec deploy/moonloop -- /moonloop why At default/example-at\n"
        "It prints what the object waits for and until when, what its last run read, its\n"
        "last runs with what caused them, and the writes with the line of the script.\n"
        "Of an object that a script writes, it says which run wrote it.",
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
        "Asks the host on this machine, also that of `moonloop dev`, or in this pod:\n"
        "  kubectl exec deploy/moonloop -- /moonloop trace cnat\n"
        "It prints each write with the line of the script, and each run when it has ended,\n"
        "with what caused it; of one controller, or of one of its objects, if they are given.",
    .example = "cnat default/example-at",
    .options = trace_options,
    .option_count = ML_COUNT(trace_options),
    .words = offsetof(struct values, words),
    .values_size = sizeof(struct values),
    .run = run_trace,
};
