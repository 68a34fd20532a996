/* Texts that are date-times or numbers. */
#include "lines.h"

typedef struct {
    const uint8_t *p, *end;
} Rest;

static bool takes(Rest *rest, uint8_t byte)
{
    bool is_there = rest->p < rest->end && *rest->p == byte;
    rest->p += is_there;
    return is_there;
}

static bool next_is_digit(const Rest *rest)
{
    return rest->p < rest->end && *rest->p >= '0' && *rest->p <= '9';
}

static bool takes_digits(Rest *rest, int digits, int32_t *number)
{
    *number = 0;
    for (; digits; digits--) {
        if (!next_is_digit(rest))
            return false;
        *number = *number * 10 + (*rest->p++ - '0');
    }
    return true;
}

/* Days from 1970 to a day of the Gregorian calendar; years begin in March, so that a leap day is the last. */
static int64_t days_until(int32_t year, int32_t month, int32_t day)
{
    static const uint16_t SINCE_MARCH[] = {306, 337, 0, 31, 61, 92, 122, 153, 184, 214, 245, 275};
    int64_t years = month < 3 ? year - 1 : year;
    return years * 365 + years / 4 - years / 100 + years / 400 + SINCE_MARCH[month - 1] + day - 1 - 719468;
}

static bool is_day(int32_t year, int32_t month, int32_t day)
{
    static const uint8_t DAYS[] = {31, 28, 31, 30, 31, 30, 31, 31, 30, 31, 30, 31};
    if (year < 1 || month < 1 || month > 12)
        return false;
    bool is_leap_year = year % 4 == 0 && (year % 100 != 0 || year % 400 == 0);
    return day >= 1 && day <= DAYS[month - 1] + (month == 2 && is_leap_year);
}

/* The millionths that the digits of a fraction are, and whether that is all. */
static bool takes_fraction(Rest *rest, int32_t *millionths, bool *is_exact)
{
    if (!next_is_digit(rest))
        return false;
    for (int32_t unit = 100000; next_is_digit(rest); rest->p++, unit /= 10) {
        *millionths += unit * (*rest->p - '0');
        *is_exact &= unit || *rest->p == '0';
    }
    return true;
}

/* The minutes that a zone is before UTC. */
static bool takes_zone(Rest *rest, int32_t *minutes)
{
    bool is_before = rest->p < rest->end && *rest->p == '-';
    if (rest->p == rest->end || takes(rest, 'Z'))
        return rest->p == rest->end;
    if (!is_before && *rest->p != '+')
        return false;
    rest->p++;
    int32_t hours, more = 0;
    if (!takes_digits(rest, 2, &hours))
        return false;
    if (rest->p < rest->end) {
        takes(rest, ':');
        if (!takes_digits(rest, 2, &more))
            return false;
    }
    *minutes = (hours * 60 + more) * (is_before ? -1 : 1);
    return hours < 24 && more < 60 && rest->p == rest->end;
}

enum instant instant_of(const uint8_t *text, int64_t length, int64_t *micros)
{
    static const int64_t FIRST = -62135596800000000, LAST = 253402300799999999; /* years 1 to 9999 */
    Rest rest = {text, text + length};
    int32_t year, month, day, hour, minute, second = 0, millionths = 0, zone = 0;
    bool is_exact = true;
    if (!takes_digits(&rest, 4, &year) || !takes(&rest, '-') || !takes_digits(&rest, 2, &month) || !takes(&rest, '-') ||
        !takes_digits(&rest, 2, &day) || !takes(&rest, 'T') || !takes_digits(&rest, 2, &hour) || !takes(&rest, ':') ||
        !takes_digits(&rest, 2, &minute))
        return NO_INSTANT;
    if (takes(&rest, ':')) {
        if (!takes_digits(&rest, 2, &second))
            return NO_INSTANT;
        if (takes(&rest, '.') && !takes_fraction(&rest, &millionths, &is_exact))
            return NO_INSTANT;
    }
    if (!takes_zone(&rest, &zone) || !is_day(year, month, day) || hour > 23 || minute > 59 || second > 59)
        return NO_INSTANT;
    int64_t minutes = (days_until(year, month, day) * 24 + hour) * 60 + minute - zone;
    *micros = (minutes * 60 + second) * 1000000 + millionths;
    return *micros < FIRST || *micros > LAST ? NO_INSTANT : is_exact ? EXACT_INSTANT : CUT_INSTANT;
}

/* The instants that the texts of a column name. */
EXPORT void instants(const int32_t *offsets, const uint8_t *data, int64_t count, int64_t *micros, uint8_t *found)
{
    for (int64_t row = 0; row < count; row++)
        found[row] = (uint8_t)instant_of(data + offsets[row], offsets[row + 1] - offsets[row], &micros[row]);
}

/* The numbers that the texts of a column are, in millionths of 128 bits, if they have no more digits than that takes.
 */
EXPORT void decimals(const int32_t *offsets, const uint8_t *data, int64_t count, uint8_t *millionths, uint8_t *found)
{
    enum { MOST_DIGITS = 25, PLACES = 6 };
    for (int64_t row = 0; row < count; row++) {
        Rest rest = {data + offsets[row], data + offsets[row + 1]};
        bool is_negative = takes(&rest, '-');
        __uint128_t number = 0;
        int digits = 0, places = 0;
        for (; next_is_digit(&rest) && digits <= MOST_DIGITS; rest.p++, digits++)
            number = number * 10 + (__uint128_t)(*rest.p - '0');
        bool has_places = takes(&rest, '.');
        for (; has_places && next_is_digit(&rest) && places <= PLACES; rest.p++, places++)
            number = number * 10 + (__uint128_t)(*rest.p - '0');
        found[row] = digits >= 1 && digits <= MOST_DIGITS && has_places == (places > 0) && places <= PLACES &&
                     rest.p == rest.end;
        for (; places < PLACES; places++)
            number *= 10;
        if (is_negative)
            number = -number;
        memcpy(millionths + 16 * row, &number, 16);
    }
}
