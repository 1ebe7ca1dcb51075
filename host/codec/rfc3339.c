/* Called for Events, conditions, leases, credentials, and by the embedded API server. */
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

static int64_t days_in_month(int64_t year, int64_t month)
{
    static const int8_t days[] = {31, 28, 31, 30, 31, 30, 31, 31, 30, 31, 30, 31};
    bool leap = (year % 4 == 0 && year % 100 != 0) || year % 400 == 0;
    return days[month - 1] + (month == 2 && leap);
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

static bool cut_date(struct ml_str *text, int64_t *out_days)
{
    int64_t year, month, day;
    if (!cut_number(text, 4, YEAR_MIN, YEAR_MAX, &year) || !cut_char(text, '-') ||
        !cut_number(text, 2, 1, 12, &month) || !cut_char(text, '-') ||
        !cut_number(text, 2, 1, days_in_month(year, month), &day))
        return false;
    struct tm date = {.tm_year = (int)year - 1900, .tm_mon = (int)month - 1, .tm_mday = (int)day};
    *out_days = timegm(&date) / S_PER_DAY;
    return true;
}

/* Second 60 stays 60 here. */
static bool cut_time(struct ml_str *text, int64_t *out_minutes, int64_t *out_second)
{
    int64_t hour, minute;
    if (!cut_number(text, 2, 0, 23, &hour) || !cut_char(text, ':') ||
        !cut_number(text, 2, 0, 59, &minute) || !cut_char(text, ':') ||
        !cut_number(text, 2, 0, 60, out_second))
        return false;
    *out_minutes = hour * 60 + minute;
    return true;
}

/* No fraction is 0. */
static bool cut_fraction(struct ml_str *text, int64_t *out_ns)
{
    int64_t ns = 0, unit = ML_NS_PER_S / 10, digit;
    if (cut_char(text, '.')) {
        if (!cut_number(text, 1, 0, 9, &digit))
            return false;
        do {
            ns += digit * unit;
            unit /= 10;
        } while (text->len && text->ptr[0] >= '0' && text->ptr[0] <= '9' &&
                 cut_number(text, 1, 0, 9, &digit));
    }
    *out_ns = ns;
    return true;
}

static bool cut_offset(struct ml_str *text, int64_t *out_minutes)
{
    int64_t hour = 0, minute = 0;
    if (cut_char(text, 'Z') || cut_char(text, 'z')) {
        *out_minutes = 0;
        return true;
    }
    bool west = cut_char(text, '-');
    if ((!west && !cut_char(text, '+')) || !cut_number(text, 2, 0, 23, &hour) ||
        !cut_char(text, ':') || !cut_number(text, 2, 0, 59, &minute))
        return false;
    *out_minutes = (west ? -1 : 1) * (hour * 60 + minute);
    return true;
}

bool ml_rfc3339_parse(struct ml_str text, int64_t *out_wall_ns)
{
    int64_t days, minutes, second, ns, offset;
    if (!cut_date(&text, &days) || (!cut_char(&text, 'T') && !cut_char(&text, 't')) ||
        !cut_time(&text, &minutes, &second) || !cut_fraction(&text, &ns) ||
        !cut_offset(&text, &offset) || text.len > 0)
        return false;
    int64_t s = days * S_PER_DAY + (minutes - offset) * 60;
    if (second == 60) {
        /* Leap seconds are put in at the end of a UTC day and nowhere else. */
        if ((s + 60) % S_PER_DAY != 0)
            return false;
        second = 59;
    }
    *out_wall_ns = (s + second) * ML_NS_PER_S + ns;
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
