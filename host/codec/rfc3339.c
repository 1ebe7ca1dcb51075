/* Reads and writes times in the form of RFC 3339. */
#include "codec/rfc3339.h"

#include <stdio.h>
#include <time.h>

/* Whole years that fit int64 nanoseconds, whatever the offset. */
#define YEAR_MIN 1678
#define YEAR_MAX 2261

#define S_PER_DAY INT64_C(86400)

static int64_t floor_div(int64_t a, int64_t b)
{
    return a / b - (a % b < 0);
}

/* Takes a number of just `count` digits, in [low, high], off the front. */
static bool cut_number(struct ml_str *text, size_t count, int64_t low, int64_t high, int64_t *out)
{
    uint64_t value;
    if (text->len < count || !ml_str_to_u64((struct ml_str){text->ptr, count}, &value))
        return false;
    text->ptr += count;
    text->len -= count;
    *out = (int64_t)value;
    return *out >= low && *out <= high;
}

static bool cut_char(struct ml_str *text, char c)
{
    if (text->len == 0 || text->ptr[0] != c)
        return false;
    text->ptr++;
    text->len--;
    return true;
}

/* "2006-01-02T15:04:05" as seconds since 1970. Second 60 stays 60 in `out_second`. */
static bool cut_date_and_time(struct ml_str *text, int64_t *out_s, int64_t *out_second)
{
    int64_t year, month, day, hour, minute;
    if (!cut_number(text, 4, YEAR_MIN, YEAR_MAX, &year) || !cut_char(text, '-') ||
        !cut_number(text, 2, 1, 12, &month) || !cut_char(text, '-') ||
        !cut_number(text, 2, 1, 31, &day) || (!cut_char(text, 'T') && !cut_char(text, 't')) ||
        !cut_number(text, 2, 0, 23, &hour) || !cut_char(text, ':') ||
        !cut_number(text, 2, 0, 59, &minute) || !cut_char(text, ':') ||
        !cut_number(text, 2, 0, 60, out_second))
        return false;
    struct tm time = {.tm_year = (int)year - 1900,
                      .tm_mon = (int)month - 1,
                      .tm_mday = (int)day,
                      .tm_hour = (int)hour,
                      .tm_min = (int)minute};
    *out_s = timegm(&time) + *out_second;
    return time.tm_mday == day; /* a day that the month does not have becomes one of the next */
}

/* No fraction is 0. */
static bool cut_fraction(struct ml_str *text, int64_t *out_ns)
{
    int64_t unit = ML_NS_PER_S, digit;
    *out_ns = 0;
    if (!cut_char(text, '.'))
        return true;
    while (text->len && text->ptr[0] >= '0' && text->ptr[0] <= '9' &&
           cut_number(text, 1, 0, 9, &digit)) {
        unit /= 10;
        *out_ns += digit * unit;
    }
    return unit < ML_NS_PER_S;
}

static bool cut_offset(struct ml_str *text, int64_t *out_s)
{
    int64_t hour, minute;
    *out_s = 0;
    if (cut_char(text, 'Z') || cut_char(text, 'z'))
        return true;
    bool west = cut_char(text, '-');
    if ((!west && !cut_char(text, '+')) || !cut_number(text, 2, 0, 23, &hour) ||
        !cut_char(text, ':') || !cut_number(text, 2, 0, 59, &minute))
        return false;
    *out_s = (west ? -60 : 60) * (hour * 60 + minute);
    return true;
}

bool ml_rfc3339_parse(struct ml_str text, int64_t *out_wall_ns)
{
    int64_t s, second, ns, offset;
    if (!cut_date_and_time(&text, &s, &second) || !cut_fraction(&text, &ns) ||
        !cut_offset(&text, &offset) || text.len > 0)
        return false;
    s -= offset;
    if (second == 60) {
        /* Leap seconds are put in at the end of a UTC day and nowhere else. */
        if (s % S_PER_DAY != 0)
            return false;
        s--;
    }
    *out_wall_ns = s * ML_NS_PER_S + ns;
    return true;
}

/* `size` is that of `out` with its NUL. */
static void format_instant(int64_t wall_ns, bool micro, char *out, size_t size)
{
    int64_t s = floor_div(wall_ns, ML_NS_PER_S), ns = wall_ns % ML_NS_PER_S;
    time_t seconds = (time_t)s;
    struct tm parts;
    gmtime_r(&seconds, &parts);
    char text[96]; /* the compiler does not know how few digits these numbers have */
    int used = snprintf(text, sizeof text, "%04d-%02d-%02dT%02d:%02d:%02d", parts.tm_year + 1900,
                        parts.tm_mon + 1, parts.tm_mday, parts.tm_hour, parts.tm_min, parts.tm_sec);
    if (micro) {
        ns += ns < 0 ? ML_NS_PER_S : 0;
        used += snprintf(text + used, sizeof text - (size_t)used, ".%06d",
                         (int)(ns / ML_NS_PER_US));
    }
    ml_assert((size_t)used + sizeof "Z" == size);
    memcpy(out, text, (size_t)used);
    memcpy(out + used, "Z", sizeof "Z");
}

void ml_rfc3339_format(int64_t wall_ns, char out[ML_RFC3339_LEN + 1])
{
    format_instant(wall_ns, false, out, ML_RFC3339_LEN + 1);
}

void ml_rfc3339_format_micro(int64_t wall_ns, char out[ML_RFC3339_MICRO_LEN + 1])
{
    format_instant(wall_ns, true, out, ML_RFC3339_MICRO_LEN + 1);
}
