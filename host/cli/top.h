/* L8 cli. The screen of moonloop top, without the terminal: answers of a host and keys go in, lines
 * of text come out. It knows no time and no file. All text of the host is escaped
 * (base/escape.h), and an answer may be anything. */
#pragma once

#include "base/buf.h"

/* Of a terminal; any other key is its character. */
enum ml_top_key {
    ML_TOP_ENTER = 256,
    ML_TOP_ESC,
    ML_TOP_TAB,
    ML_TOP_UP,
    ML_TOP_DOWN,
    ML_TOP_PAGE_UP,
    ML_TOP_PAGE_DOWN,
    ML_TOP_HOME,
    ML_TOP_END,
    ML_TOP_OTHER, /* that does nothing */
};

/* Cuts the first key off what a terminal sent, which is not empty. An ESC that nothing known
 * follows is the key Esc. */
int ml_top_cut_key(struct ml_str *bytes);

struct ml_top;

struct ml_top *ml_top_new(const char *controller); /* shows its objects alone; NULL: all */
void ml_top_free(struct ml_top *top);              /* NULL is fine */

/* Appends the path of the next question to the host; ml_top_answered takes the answer to it. */
void ml_top_path(const struct ml_top *top, struct ml_buf *out);
void ml_top_answered(struct ml_top *top, struct ml_str answer);

/* Is the host asked again when the interval is over? Not while the view is paused. */
bool ml_top_refreshes(const struct ml_top *top);

/* The next step of the caller, the most urgent last. */
enum ml_top_wish {
    ML_TOP_STAY,
    ML_TOP_ASK, /* asks the host at once */
    ML_TOP_QUIT,
};

enum ml_top_wish ml_top_press(struct ml_top *top, int key);

/* Appends the screen: at most `rows` lines of at most `columns` characters, each with its line end.
 * Returns the number of the line to highlight, from 0; -1: none. */
int ml_top_draw(struct ml_top *top, int columns, int rows, struct ml_buf *out);

/* Appends all that there is to show, in lines of any length: for a file or a pipe. */
void ml_top_print(struct ml_top *top, struct ml_buf *out);
