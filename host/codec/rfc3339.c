#include "codec/rfc3339.h"

#include <stdio.h>

/* Whole years that fit int64 nanoseconds, whatever the offset. */
#define YEAR_MIN 1678
#define YEAR_MAX 2261

#define S_PER_DAY      INT64_C(86400)
#define DAYS_TO_1970   INT64_C(719468) /* from 0000-03-01 */
#define DAYS_PER_400_Y INT64_C(146097)

struct civil {
    int64_t year, month, day;
};

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

/* Years here begin in March, so that a leap day is the last of its year and the months from
 * March on have 153 days in any five. */
static int64_t days_before_year(int64_t year)
{
    return 365 * year + floor_div(year, 4) - floor_div(year, 100) + floor_div(year, 400);
}

/* Days since 1970-01-01. */
static int64_t days_from_civil(struct civil date)
{
    int64_t year = date.year - (date.month <= 2);
    int64_t month = (date.month + 9) % 12; /* 0 is March */
    return days_before_year(year) + (153 * month + 2) / 5 + date.day - 1 - DAYS_TO_1970;
}

static struct civil civil_from_days(int64_t days)
{
    days += DAYS_TO_1970;
    int64_t year = floor_div(days * 400, DAYS_PER_400_Y); /* right, or one off */
    if (days_before_year(year + 1) <= days)
        year++;
    else if (days_before_year(year) > days)
        year--;
    int64_t day = days - days_before_year(year);
    int64_t month = (5 * day + 2) / 153;
    return (struct civil){.year = year + (month >= 10),
                          .month = (month + 2) % 12 + 1,
                          .day = day - (153 * month + 2) / 5 + 1};
}

/* Takes a number of just `count` digits, in [low, high], off the front. */
static bool take_number(struct ml_str *text, size_t count, int64_t low, int64_t high, int64_t *out)
{
    uint64_t value;
    if (text->len < count || !ml_str_to_u64((struct ml_str){text->ptr, count}, &value))
        return false;
    text->ptr += count;
    text->len -= count;
    *out = (int64_t)value;
    return *out >= low && *out <= high;
}

static bool take_char(struct ml_str *text, char c)
{
    if (text->len == 0 || text->ptr[0] != c)
        return false;
    text->ptr++;
    text->len--;
    return true;
}

static bool take_date(struct ml_str *text, int64_t *out_days)
{
    struct civil date;
    if (!take_number(text, 4, YEAR_MIN, YEAR_MAX, &date.year) || !take_char(text, '-') ||
        !take_number(text, 2, 1, 12, &date.month) || !take_char(text, '-') ||
        !take_number(text, 2, 1, days_in_month(date.year, date.month), &date.day))
        return false;
    *out_days = days_from_civil(date);
    return true;
}

/* Second 60 stays 60 here. */
static bool take_time(struct ml_str *text, int64_t *out_minutes, int64_t *out_second)
{
    int64_t hour, minute;
    if (!take_number(text, 2, 0, 23, &hour) || !take_char(text, ':') ||
        !take_number(text, 2, 0, 59, &minute) || !take_char(text, ':') ||
        !take_number(text, 2, 0, 60, out_second))
        return false;
    *out_minutes = hour * 60 + minute;
    return true;
}

/* No fraction is 0. */
static bool take_fraction(struct ml_str *text, int64_t *out_ns)
{
    int64_t ns = 0, unit = ML_NS_PER_S / 10, digit;
    if (take_char(text, '.')) {
        if (!take_number(text, 1, 0, 9, &digit))
            return false;
        do {
            ns += digit * unit;
            unit /= 10;
        } while (text->len && text->ptr[0] >= '0' && text->ptr[0] <= '9' &&
                 take_number(text, 1, 0, 9, &digit));
    }
    *out_ns = ns;
    return true;
}

static bool take_offset(struct ml_str *text, int64_t *out_minutes)
{
    int64_t hour = 0, minute = 0;
    if (take_char(text, 'Z') || take_char(text, 'z')) {
        *out_minutes = 0;
        return true;
    }
    bool west = take_char(text, '-');
    if ((!west && !take_char(text, '+')) || !take_number(text, 2, 0, 23, &hour) ||
        !take_char(text, ':') || !take_number(text, 2, 0, 59, &minute))
        return false;
    *out_minutes = (west ? -1 : 1) * (hour * 60 + minute);
    return true;
}

bool ml_rfc3339_parse(struct ml_str text, int64_t *out_wall_ns)
{
    int64_t days, minutes, second, ns, offset;
    if (!take_date(&text, &days) || (!take_char(&text, 'T') && !take_char(&text, 't')) ||
        !take_time(&text, &minutes, &second) || !take_fraction(&text, &ns) ||
        !take_offset(&text, &offset) || text.len > 0)
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
static void format(int64_t wall_ns, bool micro, char *out, size_t size)
{
    int64_t s = floor_div(wall_ns, ML_NS_PER_S), ns = wall_ns % ML_NS_PER_S;
    int64_t days = floor_div(s, S_PER_DAY), rest = s - days * S_PER_DAY;
    struct civil date = civil_from_days(days);
    char text[96]; /* the compiler does not know how few digits these numbers have */
    int used = snprintf(text, sizeof text, "%04d-%02d-%02dT%02d:%02d:%02d", (int)date.year,
                        (int)date.month, (int)date.day, (int)(rest / 3600), (int)(rest / 60 % 60),
                        (int)(rest % 60));
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
    format(wall_ns, false, out, ML_RFC3339_LEN + 1);
}

void ml_rfc3339_format_micro(int64_t wall_ns, char out[ML_RFC3339_MICRO_LEN + 1])
{
    format(wall_ns, true, out, ML_RFC3339_MICRO_LEN + 1);
}
