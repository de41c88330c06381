/* Dates, datetimes and durations as text. */
#include "time_text.h"
#include "calendar.h"
#include "column.h"
#include "digits.h"

enum { MOST_FRACTION = 6 };

int is_time_form(int output, int width, int scale)
{
    if (output == DATE)
        return width == 4;
    return (output == DATETIME || output == DURATION) && width == 8 && scale >= 0 && scale <= MOST_FRACTION;
}

static uint8_t *put_date(uint8_t *into, int64_t days)
{
    int year, month, day;
    if (!find_date(days, &year, &month, &day))
        return NULL;
    into = put_pair(put_pair(into, (unsigned)year / 100), (unsigned)year % 100);
    *into++ = '-';
    into = put_pair(into, (unsigned)month);
    *into++ = '-';
    return put_pair(into, (unsigned)day);
}

/* Write hours, minutes and seconds, with `scale` digits of a fraction. */
static uint8_t *put_clock(uint8_t *into, uint64_t micros, int scale)
{
    uint64_t hours = micros / 3600000000u;
    unsigned seconds = (unsigned)(micros / 1000000 % 3600), fraction = (unsigned)(micros % 1000000);
    into = hours < 100 ? put_pair(into, (unsigned)hours) : put_number(into, hours);
    *into++ = ':';
    into = put_pair(into, seconds / 60);
    *into++ = ':';
    into = put_pair(into, seconds % 60);
    if (!scale)
        return into;
    *into++ = '.';
    put_pair(put_pair(put_pair(into, fraction / 10000), fraction / 100 % 100), fraction % 100);
    return into + scale;
}

static uint8_t *put_moment(uint8_t *into, int64_t micros, int scale)
{
    const int64_t day = (int64_t)86400 * 1000000;
    int64_t rest = micros % day;
    into = put_date(into, micros / day - (rest < 0));
    if (into == NULL)
        return NULL;
    *into++ = ' ';
    return put_clock(into, (uint64_t)(rest < 0 ? rest + day : rest), scale);
}

static uint8_t *put_duration(uint8_t *into, int64_t micros, int scale)
{
    if (micros < 0)
        *into++ = '-';
    return put_clock(into, micros < 0 ? -(uint64_t)micros : (uint64_t)micros, scale);
}

uint8_t *put_time(uint8_t *into, int output, int64_t number, int scale)
{
    if (output == DATE)
        return put_date(into, number);
    return output == DATETIME ? put_moment(into, number, scale) : put_duration(into, number, scale);
}
