/* moonloop top: the objects of a running host that are in trouble, the worst first, on a terminal
 * that it takes for itself. The screen comes first, which knows nothing of terminals (top.h). */
#include "cli/top.h"

#include "base/clock.h"
#include "base/escape.h"
#include "cli/ask.h"
#include "cli/command.h"
#include "cli/why.h"
#include "codec/rfc3339.h"
#include "include/moonloop.h"

#include <errno.h>
#include <inttypes.h>
#include <limits.h>
#include <poll.h>
#include <signal.h>
#include <stdarg.h>
#include <stdio.h>
#include <sys/ioctl.h>
#include <termios.h>
#include <unistd.h>

#define OBJECTS_MAX     1000 /* that are taken from an answer; a host tells of fewer */
#define CONTROLLERS_MAX 1000

#define CHECK_ROWS      10 /* rows that a screen has to have for: a line that says how the host is, */
#define CONTROLLER_ROWS 10 /* the table of controllers, */
#define DETAIL_ROWS     12 /* all that is known of the selected object, */
#define FOOTER_ROWS     4  /* and the line of keys */

/* ---- what is known ---- */

enum view { VIEW_OBJECTS, VIEW_WHY, VIEW_HELP };

enum sort { SORT_TROUBLE, SORT_NAME, SORT_CPU, SORT_COUNT };

static const char *const sort_names[] = {"trouble", "name", "CPU"};

struct object {
    char *controller, *kind, *name, *state, *now, *error;
    int64_t failures;
    int64_t when_ns; /* from the answer to `due`, or from `since` to the answer; -1: neither */
    bool is_due;
    double cpu_ms; /* of its last run; below 0: not known */
    size_t rank;   /* in the answer */
};

struct ml_top {
    enum view view;
    enum sort sort;
    bool paused;
    char *filter; /* a controller; NULL: all */

    bool answered;       /* once, and well */
    const char *trouble; /* with the last answer; NULL: none */
    bool ready, leads;
    char *check; /* the first that is not passed, or about things that are hidden; NULL: none */
    int64_t runs, writes, clock_ms;
    double runs_per_s, writes_per_s; /* below 0: not known yet */
    int64_t keys_in_all, fails_of_host;
    int64_t objects_cached, keys_ready;
    char *controllers[CONTROLLERS_MAX];
    size_t controller_count;
    struct ml_buf table; /* of these, lines */

    struct object objects[OBJECTS_MAX]; /* in the order of the answer */
    size_t object_count;
    struct object *shown[OBJECTS_MAX]; /* of the filter, sorted */
    size_t shown_count;
    size_t selected; /* of `shown` */
    size_t first;    /* of `shown`, on the screen */

    char *why;          /* the path of the question; NULL: none was asked */
    struct ml_buf text; /* the answer, lines */
    size_t text_first;  /* line on the screen */
};

static void object_fini(struct object *self)
{
    free(self->controller);
    free(self->kind);
    free(self->name);
    free(self->state);
    free(self->now);
    free(self->error);
}

static void forget_answer(struct ml_top *self)
{
    for (size_t i = 0; i < self->object_count; i++)
        object_fini(&self->objects[i]);
    for (size_t i = 0; i < self->controller_count; i++)
        free(self->controllers[i]);
    self->object_count = self->shown_count = self->controller_count = 0;
    ml_buf_clear(&self->table);
    free(ml_take(&self->check));
}

struct ml_top *ml_top_new(const char *controller)
{
    struct ml_top *self = ml_new(struct ml_top);
    self->filter = controller ? ml_strdup(controller) : NULL;
    self->runs_per_s = self->writes_per_s = -1;
    return self;
}

void ml_top_free(struct ml_top *self)
{
    if (!self)
        return;
    forget_answer(self);
    ml_buf_fini(&self->table);
    ml_buf_fini(&self->text);
    free(self->filter);
    free(self->why);
    free(self);
}

/* ---- an answer ---- */

static int64_t number_of(struct ml_str object, const char *key)
{
    ML_AUTO_FREE char *text = ml_answer_text(object, key, "0");
    int64_t number;
    return ml_str_to_i64(ml_str_of(text), &number) ? number : 0;
}

static bool is_true(struct ml_str object, const char *key)
{
    struct ml_str raw;
    return ml_json_find(object, &raw, key, NULL) && ml_str_is(raw, "true");
}

/* False: there is no such instant. */
static bool instant_of(struct ml_str object, const char *key, int64_t *out)
{
    ML_AUTO_FREE char *text = ml_answer_text(object, key, "");
    return ml_rfc3339_parse(ml_str_of(text), out);
}

static void read_object(struct ml_str one, int64_t at_ns, struct object *out)
{
    ML_AUTO_FREE char *cpu = ml_answer_text(one, "cpu_ms", "-1");
    int64_t instant;
    out->controller = ml_answer_text(one, "controller", "");
    out->kind = ml_answer_text(one, "kind", "");
    out->name = ml_answer_text(one, "name", "");
    out->state = ml_answer_text(one, "state", "");
    out->now = ml_answer_text(one, "now", "");
    out->error = ml_answer_text(one, "error", "");
    out->failures = number_of(one, "failures");
    out->cpu_ms = strtod(cpu, NULL);
    out->is_due = instant_of(one, "due", &instant);
    if (out->is_due)
        out->when_ns = ML_MAX(instant - at_ns, 0);
    else
        out->when_ns = instant_of(one, "since", &instant) ? ML_MAX(at_ns - instant, 0) : -1;
}

static void read_objects(struct ml_top *self, struct ml_str answer, int64_t at_ns)
{
    ML_AUTO(ml_answer_items_fini) struct ml_answer_items items = {0};
    struct ml_str one;
    while (self->object_count < OBJECTS_MAX &&
           ml_answer_items_next(&items, ml_answer_list(answer, "keys"), &one)) {
        struct object *object = &self->objects[self->object_count];
        *object = (struct object){.rank = self->object_count};
        self->object_count++;
        read_object(one, at_ns, object);
    }
}

static void read_controllers(struct ml_top *self, struct ml_str answer)
{
    ML_AUTO(ml_answer_items_fini) struct ml_answer_items items = {0};
    struct ml_str one;
    self->objects_cached = self->keys_ready = 0;
    while (self->controller_count < CONTROLLERS_MAX &&
           ml_answer_items_next(&items, ml_answer_list(answer, "controllers"), &one)) {
        self->controllers[self->controller_count++] = ml_answer_text(one, "controller", "");
        self->objects_cached += number_of(one, "objects");
        self->keys_ready += number_of(one, "ready");
    }
    ml_status_append_controllers(answer, &self->table);
}

/* A failed one comes before things that the asker may not see. */
static void read_checks(struct ml_top *self, struct ml_str answer)
{
    ML_AUTO(ml_answer_items_fini) struct ml_answer_items items = {0}, hidden = {0};
    struct ml_str one;
    while (!self->check && ml_answer_items_next(&items, ml_answer_list(answer, "checks"), &one)) {
        ML_AUTO(ml_buf_fini) struct ml_buf check = ML_BUF_INIT;
        (void)ml_json_to_string(one, &check);
        if (!ml_str_starts(ml_buf_str(&check), "[+]"))
            self->check = ml_buf_take(&check);
    }
    if (!self->check && ml_answer_items_next(&hidden, ml_answer_list(answer, "not_shown"), &one)) {
        ML_AUTO(ml_buf_fini) struct ml_buf line = ML_BUF_INIT;
        (void)ml_json_to_string(one, &line);
        self->check = ml_buf_take(&line);
    }
}

/* From two answers of one process. */
static void read_rates(struct ml_top *self, struct ml_str answer)
{
    int64_t runs = number_of(answer, "runs"), writes = number_of(answer, "writes");
    int64_t clock_ms = number_of(answer, "clock_ms");
    double seconds = (double)(clock_ms - self->clock_ms) / 1000;
    bool is_next = self->answered && clock_ms > self->clock_ms && runs >= self->runs &&
                   writes >= self->writes;
    self->runs_per_s = is_next ? (double)(runs - self->runs) / seconds : -1;
    self->writes_per_s = is_next ? (double)(writes - self->writes) / seconds : -1;
    self->runs = runs;
    self->writes = writes;
    self->clock_ms = clock_ms;
}

static int compare_objects(const struct object *a, const struct object *b, enum sort sort)
{
    int by_name = strcmp(a->name, b->name);
    if (sort == SORT_CPU && a->cpu_ms != b->cpu_ms)
        return a->cpu_ms > b->cpu_ms ? -1 : 1;
    if (sort != SORT_TROUBLE && by_name)
        return by_name;
    return a->rank < b->rank ? -1 : 1;
}

static int by_trouble(const void *a, const void *b)
{
    return compare_objects(*(struct object *const *)a, *(struct object *const *)b, SORT_TROUBLE);
}

static int by_name(const void *a, const void *b)
{
    return compare_objects(*(struct object *const *)a, *(struct object *const *)b, SORT_NAME);
}

static int by_cpu(const void *a, const void *b)
{
    return compare_objects(*(struct object *const *)a, *(struct object *const *)b, SORT_CPU);
}

/* Fills `shown`. The object with this controller and name stays selected; if it is gone, the one
 * that comes in its place is. */
static void arrange(struct ml_top *self, const char *controller, const char *name)
{
    static int (*const orders[])(const void *, const void *) = {by_trouble, by_name, by_cpu};
    self->shown_count = 0;
    for (size_t i = 0; i < self->object_count; i++)
        if (!self->filter || strcmp(self->objects[i].controller, self->filter) == 0)
            self->shown[self->shown_count++] = &self->objects[i];
    if (self->shown_count > 1)
        qsort(self->shown, self->shown_count, sizeof *self->shown, orders[self->sort]);
    for (size_t i = 0; name && i < self->shown_count; i++)
        if (strcmp(self->shown[i]->name, name) == 0 &&
            strcmp(self->shown[i]->controller, controller) == 0)
            self->selected = i;
    if (self->selected >= self->shown_count)
        self->selected = self->shown_count > 0 ? self->shown_count - 1 : 0;
}

static const struct object *selected_object(const struct ml_top *self)
{
    return self->selected < self->shown_count ? self->shown[self->selected] : NULL;
}

static void rearrange(struct ml_top *self)
{
    const struct object *object = selected_object(self);
    arrange(self, object ? object->controller : NULL, object ? object->name : NULL);
}

static void take_objects(struct ml_top *self, struct ml_str answer)
{
    const struct object *object = selected_object(self);
    ML_AUTO_FREE char *controller = object ? ml_strdup(object->controller) : NULL;
    ML_AUTO_FREE char *name = object ? ml_strdup(object->name) : NULL;
    int64_t at_ns = 0;
    if (!instant_of(answer, "at", &at_ns)) {
        self->trouble = "the host's answer is broken";
        return;
    }
    forget_answer(self);
    read_rates(self, answer);
    self->answered = true;
    self->ready = is_true(answer, "ready");
    self->leads = is_true(answer, "leads");
    self->keys_in_all = number_of(answer, "keys_in_all");
    self->fails_of_host = number_of(answer, "fails_of_host");
    read_checks(self, answer);
    read_controllers(self, answer);
    read_objects(self, answer, at_ns);
    arrange(self, controller, name);
}

void ml_top_answered(struct ml_top *self, struct ml_str answer)
{
    self->trouble = NULL;
    if (self->view == VIEW_WHY) {
        ml_buf_clear(&self->text);
        ml_why_append(answer, &self->text);
    } else {
        take_objects(self, answer);
    }
}

void ml_top_path(const struct ml_top *self, struct ml_buf *out)
{
    if (self->view == VIEW_WHY)
        ml_buf_puts(out, self->why);
    else /* the objects of one with an odd name are found among all */
        ml_buf_printf(out, "/top/%s",
                      self->filter && ml_answer_is_name(self->filter) ? self->filter : "");
}

bool ml_top_refreshes(const struct ml_top *self)
{
    return !self->paused;
}

/* ---- keys ---- */

int ml_top_cut_key(struct ml_str *bytes)
{
    static const struct {
        const char *bytes;
        int key;
    } known[] = {
        {"\x1b[A", ML_TOP_UP},   {"\x1bOA", ML_TOP_UP},       {"\x1b[B", ML_TOP_DOWN},
        {"\x1bOB", ML_TOP_DOWN}, {"\x1b[5~", ML_TOP_PAGE_UP}, {"\x1b[6~", ML_TOP_PAGE_DOWN},
        {"\x1b[H", ML_TOP_HOME}, {"\x1bOH", ML_TOP_HOME},     {"\x1b[1~", ML_TOP_HOME},
        {"\x1b[F", ML_TOP_END},  {"\x1bOF", ML_TOP_END},      {"\x1b[4~", ML_TOP_END},
        {"\r", ML_TOP_ENTER},    {"\n", ML_TOP_ENTER},        {"\t", ML_TOP_TAB},
    };
    size_t len = 1;
    int key = (unsigned char)bytes->ptr[0];
    for (size_t i = 0; i < ML_COUNT(known); i++)
        if (ml_str_starts(*bytes, known[i].bytes)) {
            len = strlen(known[i].bytes);
            key = known[i].key;
        }
    if (key == '\x1b' && bytes->len > 2 && (bytes->ptr[1] == '[' || bytes->ptr[1] == 'O')) {
        /* A key that is not known here, "\x1b[15~" for example: none of its bytes is one. */
        for (len = 2; len < bytes->len && (bytes->ptr[len] < '@' || bytes->ptr[len] > '~');)
            len++;
        len = ML_MIN(len + 1, bytes->len);
        key = ML_TOP_OTHER;
    } else if (key == '\x1b') {
        key = ML_TOP_ESC;
    }
    *bytes = (struct ml_str){bytes->ptr + len, bytes->len - len};
    return key;
}

/* From all controllers to the first, from one to the next, and from the last to all. */
static void filter_next(struct ml_top *self)
{
    size_t next = 0;
    while (self->filter && next < self->controller_count &&
           strcmp(self->controllers[next], self->filter) != 0)
        next++;
    if (self->filter)
        next++;
    free(ml_take(&self->filter));
    if (next < self->controller_count)
        self->filter = ml_strdup(self->controllers[next]);
    rearrange(self);
}

/* Moves by so many, and stays within `count`. */
static void move(size_t *at, size_t count, long by)
{
    if (by < 0)
        *at -= ML_MIN(*at, (size_t)-by);
    else
        *at = ML_MIN(*at + (size_t)by, count > 0 ? count - 1 : 0);
}

/* Returns by how many lines a key moves; 0: it is no such key. */
static long movement_of(int key)
{
    switch (key) {
    case 'k':
    case ML_TOP_UP:
        return -1;
    case 'j':
    case ML_TOP_DOWN:
        return 1;
    case ML_TOP_PAGE_UP:
        return -10;
    case ML_TOP_PAGE_DOWN:
        return 10;
    case 'g':
    case ML_TOP_HOME:
        return -LONG_MAX;
    case 'G':
    case ML_TOP_END:
        return LONG_MAX;
    default:
        return 0;
    }
}

static enum ml_top_wish ask_why(struct ml_top *self)
{
    const struct object *object = selected_object(self);
    char *path = object ? ml_why_path(object->kind, object->name) : NULL;
    if (!path)
        return ML_TOP_STAY;
    free(self->why);
    self->why = path;
    self->view = VIEW_WHY;
    self->text_first = 0;
    ml_buf_clear(&self->text);
    return ML_TOP_ASK;
}

static enum ml_top_wish press_among_objects(struct ml_top *self, int key)
{
    move(&self->selected, self->shown_count, movement_of(key));
    switch (key) {
    case 'q':
        return ML_TOP_QUIT;
    case ML_TOP_ENTER:
        return ask_why(self);
    case 'c':
    case ML_TOP_TAB:
        filter_next(self);
        return self->paused ? ML_TOP_STAY : ML_TOP_ASK;
    case 's':
        self->sort = (self->sort + 1) % SORT_COUNT;
        rearrange(self);
        return ML_TOP_STAY;
    case '?':
        self->view = VIEW_HELP;
        return ML_TOP_STAY;
    default:
        return ML_TOP_STAY;
    }
}

enum ml_top_wish ml_top_press(struct ml_top *self, int key)
{
    if (key == 'p') {
        self->paused = !self->paused;
        return self->paused ? ML_TOP_STAY : ML_TOP_ASK;
    }
    if (key == 'r')
        return ML_TOP_ASK;
    if (self->view == VIEW_OBJECTS)
        return press_among_objects(self, key);
    if (key == 'q' || key == ML_TOP_ESC || (key == '?' && self->view == VIEW_HELP)) {
        self->view = VIEW_OBJECTS;
        return self->paused ? ML_TOP_STAY : ML_TOP_ASK;
    }
    if (self->view == VIEW_WHY)
        move(&self->text_first, LONG_MAX, movement_of(key));
    return ML_TOP_STAY;
}

/* ---- lines ---- */

/* The lines of a screen. */
struct screen {
    struct ml_buf *out;
    int columns, rows; /* that are left */
    int line;          /* the number of the next */
};

/* The bytes of the first `columns` characters. */
static size_t len_of_columns(struct ml_str text, size_t columns)
{
    size_t len = 0;
    for (size_t i = 0; i < columns && len < text.len; i++)
        len += ML_MAX(ml_utf8_len(text.ptr + len, text.len - len), (size_t)1);
    return len;
}

static size_t columns_of(struct ml_str text)
{
    size_t columns = 0;
    for (size_t len = 0; len < text.len; columns++)
        len += ML_MAX(ml_utf8_len(text.ptr + len, text.len - len), (size_t)1);
    return columns;
}

/* A line of escaped text, cut to the width. */
static void put_line(struct screen *self, struct ml_str line)
{
    if (self->rows <= 0)
        return;
    struct ml_str cut = {line.ptr, len_of_columns(line, (size_t)self->columns)};
    while (cut.len > 0 && cut.ptr[cut.len - 1] == ' ')
        cut.len--;
    ml_buf_append_str(self->out, cut);
    ml_buf_putc(self->out, '\n');
    self->rows--;
    self->line++;
}

static ML_PRINTF(2, 3) void put_text(struct screen *self, const char *format, ...)
{
    ML_AUTO(ml_buf_fini) struct ml_buf line = ML_BUF_INIT;
    ML_AUTO_FREE char *text = NULL;
    va_list args;
    va_start(args, format);
    if (vasprintf(&text, format, args) < 0)
        text = NULL;
    va_end(args);
    ml_escape_text(&line, ml_str_of(text));
    put_line(self, ml_buf_str(&line));
}

/* Appends foreign text to a line, cut or filled to `columns`, and a space. */
static void append_cell(struct ml_buf *line, const char *text, size_t columns, bool right)
{
    ML_AUTO(ml_buf_fini) struct ml_buf cell = ML_BUF_INIT;
    ml_escape_text(&cell, ml_str_of(text));
    size_t have = columns_of(ml_buf_str(&cell));
    for (size_t i = have; right && i < columns; i++)
        ml_buf_putc(line, ' ');
    if (have > columns) {
        ml_buf_append(line, cell.ptr,
                      len_of_columns(ml_buf_str(&cell), columns > 0 ? columns - 1 : 0));
        ml_buf_puts(line, columns > 0 ? "…" : "");
    } else {
        ml_buf_append_str(line, ml_buf_str(&cell));
    }
    for (size_t i = have; !right && i < columns; i++)
        ml_buf_putc(line, ' ');
    ml_buf_putc(line, ' ');
}

/* "4.2s", "57s", "12m", "5h", "3d"; "" below 0. The caller frees it. */
static char *format_duration(int64_t ns)
{
    double seconds = (double)ns / (double)ML_NS_PER_S;
    if (ns < 0)
        return ml_strdup("");
    if (seconds < 10)
        return ml_asprintf("%.1fs", seconds);
    if (seconds < 120)
        return ml_asprintf("%.0fs", seconds);
    if (seconds < 7200)
        return ml_asprintf("%.0fm", seconds / 60);
    if (seconds < 172800)
        return ml_asprintf("%.0fh", seconds / 3600);
    return ml_asprintf("%.0fd", ML_MIN(seconds / 86400, 99999.0));
}

static char *format_rate(double per_second)
{
    return per_second < 0 ? ml_strdup("-") : ml_asprintf("%.1f", per_second);
}

/* "not ready, leads: b.lua is bad", and the counts. */
static void draw_header(const struct ml_top *self, struct screen *to)
{
    ML_AUTO_FREE char *runs = format_rate(self->runs_per_s);
    ML_AUTO_FREE char *writes = format_rate(self->writes_per_s);
    if (self->trouble || !self->answered) {
        put_text(to, "%s", self->trouble ? self->trouble : "the host has not answered yet");
        return;
    }
    if (to->rows >= CHECK_ROWS)
        put_text(to, "%s, %s%s%s", self->ready ? "ready" : "not ready",
                 self->leads ? "leads" : "stands by", self->check ? ": " : "",
                 self->check ? self->check : "");
    put_text(to,
             "controllers %zu, objects %" PRId64 ", failing %" PRId64 ", queued %" PRId64
             ", runs/s %s, writes/s %s",
             self->controller_count, self->objects_cached, self->fails_of_host, self->keys_ready,
             runs, writes);
}

/* At most `rows` lines of text, from line `first`. Returns how many lines there are. */
static size_t draw_lines(struct screen *to, struct ml_str text, size_t first, int rows)
{
    size_t count = 0;
    int end = to->rows - rows;
    for (; text.len > 0; count++) {
        struct ml_str line = ml_str_cut(&text, '\n');
        if (count >= first && to->rows > end)
            put_line(to, line);
    }
    return count;
}

/* The widths of the columns of names. */
struct widths {
    size_t name, controller;
};

static struct widths widths_for(const struct ml_top *self, int columns)
{
    struct widths widths = {strlen("OBJECT"), strlen("CONTROLLER")};
    for (size_t i = 0; i < self->shown_count; i++) {
        widths.name = ML_MAX(widths.name, columns_of(ml_str_of(self->shown[i]->name)));
        widths.controller = ML_MAX(widths.controller,
                                   columns_of(ml_str_of(self->shown[i]->controller)));
    }
    widths.name = ML_MIN(widths.name, (size_t)columns / 3);
    widths.controller = ML_MIN(widths.controller, (size_t)columns / 6);
    return widths;
}

static void draw_columns(const struct widths *widths, struct screen *to)
{
    ML_AUTO(ml_buf_fini) struct ml_buf line = ML_BUF_INIT;
    append_cell(&line, "OBJECT", widths->name, false);
    append_cell(&line, "CONTROLLER", widths->controller, false);
    ml_buf_puts(&line, "STATE       WHEN  CPU ms WHY");
    put_line(to, ml_buf_str(&line));
}

/* d/t0  site  fails 4  in 4.2s  0.31  site.lua:12: … */
static void draw_object(const struct object *object, const struct widths *widths, struct screen *to)
{
    ML_AUTO(ml_buf_fini) struct ml_buf line = ML_BUF_INIT;
    ML_AUTO_FREE char *duration = format_duration(object->when_ns);
    ML_AUTO_FREE char *when = ml_asprintf("%s%s", object->is_due ? "in " : "", duration);
    ML_AUTO_FREE char *state = object->failures > 0
                                   ? ml_asprintf("%s %" PRId64, object->state, object->failures)
                                   : ml_strdup(object->state);
    ML_AUTO_FREE char *cpu = object->cpu_ms < 0 ? ml_strdup("-")
                                                : ml_asprintf("%.2f", object->cpu_ms);
    append_cell(&line, object->name, widths->name, false);
    append_cell(&line, object->controller, widths->controller, false);
    append_cell(&line, state, 8, false);
    append_cell(&line, when, 7, true);
    append_cell(&line, cpu, 7, true);
    ml_escape_text(&line, ml_str_of(*object->error ? object->error : object->now));
    put_line(to, ml_buf_str(&line));
}

/* "4 of 250 objects in trouble or active, by trouble" */
static void draw_title(const struct ml_top *self, struct screen *to)
{
    if (self->shown_count == 0)
        put_text(to, "no object%s%s is in trouble or active%s",
                 self->filter ? " of controller " : "", self->filter ? self->filter : "",
                 self->paused ? "; paused" : "");
    else
        put_text(to, "%zu of %" PRId64 " objects in trouble or active%s%s, by %s%s",
                 self->shown_count, ML_MAX(self->keys_in_all, (int64_t)self->shown_count),
                 self->filter ? ", of controller " : "", self->filter ? self->filter : "",
                 sort_names[self->sort], self->paused ? "; paused" : "");
}

/* Returns the number of the line of the selected one; -1: it is not on the screen. */
static int draw_objects(struct ml_top *self, int rows, struct screen *to)
{
    const struct widths widths = widths_for(self, to->columns);
    int highlight = -1, end = to->rows - rows;
    draw_title(self, to);
    if (self->shown_count > 0 && to->rows > end)
        draw_columns(&widths, to);
    size_t room = to->rows > end ? (size_t)(to->rows - end) : 0;
    if (self->selected < self->first)
        self->first = self->selected;
    if (room > 0 && self->selected >= self->first + room)
        self->first = self->selected - room + 1;
    if (self->first + room > self->shown_count)
        self->first = self->shown_count > room ? self->shown_count - room : 0;
    for (size_t i = self->first; i < self->shown_count && to->rows > end; i++) {
        if (i == self->selected)
            highlight = to->line;
        draw_object(self->shown[i], &widths, to);
    }
    while (to->rows > end)
        put_line(to, ML_STR(""));
    return highlight;
}

static void draw_detail(const struct ml_top *self, struct screen *to)
{
    const struct object *object = selected_object(self);
    if (object)
        put_text(to, "%s %s: %s", object->kind, object->name, object->now);
    else
        put_line(to, ML_STR(""));
    put_text(to, "%s", object ? object->error : "");
}

static int draw_list(struct ml_top *self, struct screen *to)
{
    const int all = to->rows;
    const int footer = all >= FOOTER_ROWS ? 1 : 0, detail = all >= DETAIL_ROWS ? 2 : 0;
    draw_header(self, to);
    if (self->answered && all >= CONTROLLER_ROWS) {
        int most = ML_MAX(all / 3, 2);
        int want = (int)self->controller_count + 1;
        draw_lines(to, ml_buf_str(&self->table), 0, ML_MIN(want, most));
    }
    int highlight = draw_objects(self, ML_MAX(to->rows - footer - detail, 0), to);
    if (detail)
        draw_detail(self, to);
    if (footer)
        put_text(to, "? help  q quit  Enter why  c controller  s sort  p pause  r ask now");
    return highlight;
}

/* Appends the lines of `text`, those that are too long in several pieces. */
static void wrap(struct ml_str text, int columns, struct ml_buf *out)
{
    while (text.len > 0) {
        struct ml_str line = ml_str_cut(&text, '\n');
        do {
            size_t len = len_of_columns(line, (size_t)ML_MAX(columns, 1));
            ml_buf_append(out, line.ptr, len);
            ml_buf_putc(out, '\n');
            line = (struct ml_str){line.ptr + len, line.len - len};
        } while (line.len > 0);
    }
}

static void draw_why(struct ml_top *self, struct screen *to)
{
    ML_AUTO(ml_buf_fini) struct ml_buf lines = ML_BUF_INIT;
    const int rows = to->rows >= FOOTER_ROWS ? to->rows - 1 : to->rows;
    wrap(ml_buf_str(&self->text), to->columns, &lines);
    size_t count = 0;
    for (size_t i = 0; i < lines.len; i++)
        count += lines.ptr[i] == '\n';
    /* The last line stays on the screen. */
    self->text_first = ML_MIN(self->text_first, count > (size_t)rows ? count - (size_t)rows : 0);
    int end = to->rows - rows;
    draw_lines(to, ml_buf_str(&lines), self->text_first, rows);
    while (to->rows > end)
        put_line(to, ML_STR(""));
    put_text(to, "q back  j k scroll  r ask now  p pause%s", self->paused ? "; paused" : "");
}

static const char help[] = "up, k; down, j  select an object\n"
                           "Enter           why the object was reconciled, or is not\n"
                           "c, Tab          objects of one controller, of the next, of all\n"
                           "s               sort by trouble, by name, by the CPU of the last run\n"
                           "p               pause the view, and go on\n"
                           "r               ask the host now\n"
                           "q, Esc          back; q in the list of objects ends it\n"
                           "\n"
                           "fails: how often in a row; when it is tried again, if it is\n"
                           "slowed: it wakes itself, or fights with somebody else\n"
                           "paused: by its annotation\n"
                           "runs, ready: for how long it runs, or waits for its turn\n"
                           "cache: it waits until the cache shows what its last run wrote\n"
                           "due: when its script asked to be called again\n";

int ml_top_draw(struct ml_top *self, int columns, int rows, struct ml_buf *out)
{
    struct screen to = {out, ML_MAX(columns, 0), ML_MAX(rows, 0), 0};
    switch (self->view) {
    case VIEW_WHY:
        draw_why(self, &to);
        return -1;
    case VIEW_HELP:
        draw_lines(&to, ml_str_of(help), 0, to.rows);
        return -1;
    case VIEW_OBJECTS:
        break;
    }
    return draw_list(self, &to);
}

void ml_top_print(struct ml_top *self, struct ml_buf *out)
{
    struct screen to = {out, INT_MAX, INT_MAX, 0};
    const struct widths widths = widths_for(self, to.columns);
    draw_header(self, &to);
    draw_lines(&to, ml_buf_str(&self->table), 0, to.rows);
    draw_title(self, &to);
    if (self->shown_count > 0)
        draw_columns(&widths, &to);
    for (size_t i = 0; i < self->shown_count; i++)
        draw_object(self->shown[i], &widths, &to);
}

/* ---- the terminal ---- */

/* The other screen, no cursor, and no line that goes on in the next; and back. */
#define TAKE_TERMINAL "\x1b[?1049h\x1b[?25l\x1b[?7l"
#define GIVE_TERMINAL "\x1b[?7h\x1b[?25h\x1b[0m\x1b[?1049l"
#define ESC_WAIT_MS   25 /* until the rest of a key that begins with ESC is there */

/* A signal may end the process at any time, also while the host does not answer: its handler gives
 * the terminal back, with functions that a handler may call. */
static struct {
    struct termios before;
    volatile sig_atomic_t is_taken;
    sigset_t waiting; /* the signals that are blocked while it waits for keys: not a new size */
} terminal;

static void write_to_terminal(struct ml_str bytes)
{
    while (bytes.len > 0) {
        ssize_t n = write(STDOUT_FILENO, bytes.ptr, bytes.len);
        if (n < 0 && errno == EINTR)
            continue;
        if (n <= 0)
            return;
        bytes = (struct ml_str){bytes.ptr + n, bytes.len - (size_t)n};
    }
}

static void give_terminal(void)
{
    if (!terminal.is_taken)
        return;
    terminal.is_taken = 0;
    write_to_terminal(ML_STR(GIVE_TERMINAL));
    tcsetattr(STDIN_FILENO, TCSANOW, &terminal.before);
}

static void on_end(int signo)
{
    int kept = errno;
    give_terminal();
    signal(signo, SIG_DFL);
    raise(signo);
    errno = kept;
}

static void on_resize(int signo)
{
    (void)signo; /* it has ended the wait for keys: the next screen has the new size */
}

static int take_terminal(struct ml_err *err)
{
    static const int ends[] = {SIGINT, SIGTERM, SIGHUP, SIGQUIT};
    const struct sigaction end = {.sa_handler = on_end}, resize = {.sa_handler = on_resize};
    struct termios raw;
    sigset_t resizes;
    if (tcgetattr(STDIN_FILENO, &terminal.before) < 0)
        return ml_err_set(err, ML_EIO, "the terminal cannot be used: %s", strerror(errno));
    raw = terminal.before;
    raw.c_lflag &= ~(tcflag_t)(ICANON | ECHO | IEXTEN);
    raw.c_iflag &= ~(tcflag_t)ICRNL;
    raw.c_cc[VMIN] = 1;
    raw.c_cc[VTIME] = 0;
    raw.c_cc[VSUSP] = _POSIX_VDISABLE; /* the shell would have this screen */
    for (size_t i = 0; i < ML_COUNT(ends); i++)
        sigaction(ends[i], &end, NULL);
    /* One that comes before the wait ends it, too. */
    sigaction(SIGWINCH, &resize, NULL);
    sigemptyset(&resizes);
    sigaddset(&resizes, SIGWINCH);
    sigprocmask(SIG_BLOCK, &resizes, &terminal.waiting);
    sigdelset(&terminal.waiting, SIGWINCH);
    terminal.is_taken = 1;
    if (tcsetattr(STDIN_FILENO, TCSANOW, &raw) < 0) {
        terminal.is_taken = 0;
        return ml_err_set(err, ML_EIO, "the terminal cannot be used: %s", strerror(errno));
    }
    write_to_terminal(ML_STR(TAKE_TERMINAL));
    return 0;
}

static void draw_on_terminal(struct ml_top *top)
{
    ML_AUTO(ml_buf_fini) struct ml_buf lines = ML_BUF_INIT, out = ML_BUF_INIT;
    struct winsize size = {0};
    if (ioctl(STDOUT_FILENO, TIOCGWINSZ, &size) < 0 || size.ws_col == 0 || size.ws_row == 0)
        size = (struct winsize){.ws_row = 24, .ws_col = 80};
    int highlight = ml_top_draw(top, size.ws_col, size.ws_row, &lines);
    struct ml_str rest = ml_buf_str(&lines);
    ml_buf_puts(&out, "\x1b[H");
    for (int i = 0; rest.len > 0; i++) {
        struct ml_str line = ml_str_cut(&rest, '\n');
        ml_buf_puts(&out, i > 0 ? "\r\n" : "");
        ml_buf_puts(&out, i == highlight ? "\x1b[7m" : "");
        ml_buf_append_str(&out, line);
        ml_buf_puts(&out, i == highlight ? "\x1b[0m\x1b[K" : "\x1b[K");
    }
    ml_buf_puts(&out, "\x1b[J");
    write_to_terminal(ml_buf_str(&out));
}

static bool has_input(int timeout_ms)
{
    struct pollfd in = {.fd = STDIN_FILENO, .events = POLLIN};
    const struct timespec timeout = {timeout_ms / 1000, timeout_ms % 1000 * ML_NS_PER_MS};
    return ppoll(&in, 1, timeout_ms < 0 ? NULL : &timeout, &terminal.waiting) > 0;
}

/* Waits for keys, a resize or the time; `timeout_ms` below 0: without end. */
static enum ml_top_wish wait_for_keys(struct ml_top *top, int timeout_ms)
{
    char bytes[256];
    enum ml_top_wish wish = ML_TOP_STAY;
    if (!has_input(timeout_ms))
        return wish;
    ssize_t len = read(STDIN_FILENO, bytes, sizeof bytes / 2);
    if (len < 0 && errno == EINTR)
        return wish;
    if (len <= 0)
        return ML_TOP_QUIT; /* the terminal is gone */
    if (bytes[len - 1] == '\x1b' && has_input(ESC_WAIT_MS)) {
        ssize_t more = read(STDIN_FILENO, bytes + len, sizeof bytes / 2);
        len += ML_MAX(more, 0);
    }
    for (struct ml_str rest = {bytes, (size_t)len}; rest.len > 0;) {
        enum ml_top_wish next = ml_top_press(top, ml_top_cut_key(&rest));
        wish = ML_MAX(wish, next);
    }
    return wish;
}

/* ---- the command ---- */

struct values {
    struct ml_option_list words;
    struct ml_ask_opts ask;
    const char *output;
    int interval_s;
    bool once;
};

/* The host that is looked at. */
struct host {
    struct ml_ask *ask;
    size_t number;
};

static int ask(struct ml_top *top, const struct host *host, struct ml_buf *answer,
               struct ml_err *err)
{
    ML_AUTO(ml_buf_fini) struct ml_buf path = ML_BUF_INIT;
    ml_top_path(top, &path);
    if (ml_ask(host->ask, host->number, ml_buf_str(&path), answer, err) < 0)
        return err->kind;
    ml_top_answered(top, ml_buf_str(answer));
    return 0;
}

/* Of several, the one that leads; or one that stands by, if none does. */
static int choose_host(struct host *host, struct ml_err *err)
{
    ML_AUTO(ml_buf_fini) struct ml_buf leaders = ML_BUF_INIT;
    size_t count = ml_ask_count(host->ask), answered = 0, leading = 0;
    for (size_t i = 0; count > 1 && i < count; i++) {
        ML_AUTO(ml_buf_fini) struct ml_buf answer = ML_BUF_INIT;
        if (ml_ask(host->ask, i, ML_STR("/status"), &answer, err) < 0)
            continue;
        bool leads = is_true(ml_buf_str(&answer), "leads");
        if (answered++ == 0 || (leads && leading == 0))
            host->number = i;
        if (leads)
            ml_buf_printf(&leaders, "%s%s", leading++ > 0 ? ", " : "", ml_ask_pod(host->ask, i));
    }
    if (leading > 1)
        return ml_err_set(err, ML_EINVALID,
                          "several replicas share the objects; choose one with --pod: %s",
                          ml_buf_cstr(&leaders));
    return count == 1 || answered > 0 ? 0 : err->kind;
}

/* After the first answer. */
static int show(struct ml_top *top, const struct host *host, int interval_s, struct ml_err *err)
{
    const int64_t interval_ns = interval_s * ML_NS_PER_S;
    int64_t due_ns = ml_clock_monotonic(ml_clock_real()) + interval_ns;
    for (;;) {
        draw_on_terminal(top);
        bool refreshes = ml_top_refreshes(top);
        int64_t wait_ns = ML_MAX(due_ns - ml_clock_monotonic(ml_clock_real()), INT64_C(0));
        enum ml_top_wish wish = wait_for_keys(top,
                                              refreshes ? (int)(wait_ns / ML_NS_PER_MS) + 1 : -1);
        if (wish == ML_TOP_QUIT)
            return 0;
        int64_t now_ns = ml_clock_monotonic(ml_clock_real());
        if (wish != ML_TOP_ASK && (now_ns < due_ns || !ml_top_refreshes(top)))
            continue;
        ML_AUTO(ml_buf_fini) struct ml_buf answer = ML_BUF_INIT;
        if (ask(top, host, &answer, err) < 0)
            return err->kind;
        due_ns = now_ns + interval_ns;
    }
}

static int show_on_terminal(struct ml_top *top, const struct values *values,
                            const struct host *host, struct ml_err *err)
{
    int r = take_terminal(err);
    if (r == 0)
        r = show(top, host, values->interval_s, err);
    give_terminal();
    return r;
}

static void print_once(struct ml_top *top, const struct values *values, struct ml_buf *answer)
{
    ML_AUTO(ml_buf_fini) struct ml_buf text = ML_BUF_INIT;
    ml_top_print(top, &text);
    printf("%s%s", ml_buf_cstr(values->output ? answer : &text), values->output ? "\n" : "");
}

static int check_values(const struct values *values, struct ml_err *err)
{
    if (values->output && strcmp(values->output, "json") != 0)
        return ml_err_set(err, ML_EINVALID, "-o %s: choose json, or leave it out", values->output);
    if (values->interval_s == 0)
        return ml_err_set(err, ML_EINVALID, "--interval 0: expected a second or more");
    /* Its name becomes the path of a question. */
    ML_AUTO_FREE char *path = values->words.count > 0 ? ml_why_path(values->words.values[0], "a")
                                                      : ml_strdup("");
    if (values->words.count > 1 || !path)
        return ml_err_set(err, ML_EINVALID, "expected a controller, or nothing: moonloop top cnat");
    return 0;
}

static int run_top(void *given, char **argv, struct ml_err *err)
{
    const struct values *values = given;
    struct host host = {NULL, 0};
    ML_AUTO(ml_buf_fini) struct ml_buf answer = ML_BUF_INIT;
    bool has_terminal = isatty(STDIN_FILENO) && isatty(STDOUT_FILENO);
    (void)argv;
    if (check_values(values, err) < 0)
        return MOONLOOP_EXIT_USAGE;
    struct ml_top *top = ml_top_new(values->words.count > 0 ? values->words.values[0] : NULL);
    int r = ml_ask_open(&values->ask, &host.ask, err);
    if (r == 0)
        r = choose_host(&host, err);
    if (r == 0)
        r = ask(top, &host, &answer, err);
    if (r == 0 && (values->once || values->output || !has_terminal))
        print_once(top, values, &answer);
    else if (r == 0)
        r = show_on_terminal(top, values, &host, err);
    ml_top_free(top);
    ml_ask_close(host.ask);
    if (r == 0)
        return MOONLOOP_EXIT_OK;
    return err->kind == ML_EINVALID ? MOONLOOP_EXIT_USAGE : MOONLOOP_EXIT_UNREACHABLE;
}

static const struct values top_defaults = {.interval_s = 1};

static const struct ml_option top_options[] = {
    {"-o", "json", "the host's answer, as JSON, once", ML_OPTION_TEXT,
     offsetof(struct values, output)},
    ML_ASK_OPTIONS(struct values),
    {"--interval", "SECONDS", "between two questions to the host; default: 1", ML_OPTION_SECONDS,
     offsetof(struct values, interval_s)},
    {"--once", NULL, "print what there is, and end; so does it where no terminal is",
     ML_OPTION_FLAG, offsetof(struct values, once)},
};

const struct ml_command ml_command_top = {
    .name = "top",
    .usage = "[CONTROLLER] [OPTIONS]",
    .summary = "show the objects of a running host that are in trouble",
    .description =
        "Asks the host on this machine, also that of `moonloop dev`; or the one that leads\n"
        "in a cluster, through its API server, which decides what you are told:\n"
        "  moonloop top --namespace moonloop-system\n"
        "It shows the controllers, and the objects that fail, are slowed or paused, run,\n"
        "wait or are due, the worst first. Enter says why of one; ? lists the keys.",
    .example = "cnat",
    .options = top_options,
    .option_count = ML_COUNT(top_options),
    .words = offsetof(struct values, words),
    .values_size = sizeof(struct values),
    .defaults = &top_defaults,
    .run = run_top,
};
