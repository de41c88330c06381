/* Dates, datetimes and durations as text. */
#ifndef TIDEMILL_TIME_TEXT_H
#define TIDEMILL_TIME_TEXT_H

#include <stdint.h>

enum { LONGEST_TIME = 32 }; /* bytes that put_time writes at most */

/* True if elements of that many bytes hold such values: a DATE days since 1970, a DATETIME and a DURATION
 * microseconds. */
int is_time_form(int output, int width, int scale);

/* Write a value with `scale` digits of a second's fraction, and return its end; NULL for a date that the
 * calendar doesn't have. */
uint8_t *put_time(uint8_t *into, int output, int64_t number, int scale);

#endif
