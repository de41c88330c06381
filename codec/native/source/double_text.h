/* The shortest text of a double that reads back as the same double. */
#ifndef TIDEMILL_DOUBLE_TEXT_H
#define TIDEMILL_DOUBLE_TEXT_H

#include <stdint.h>

enum { LEAST_POWER = -292, MOST_POWER = 324, POWER_BYTES = 16 };

/* Write a finite number as msgspec does, in at most 25 bytes, and return its end. `powers` has the first 128
 * bits of each power of ten from LEAST_POWER to MOST_POWER, rounded up. */
uint8_t *put_double(uint8_t *into, double number, const uint8_t *powers);

#endif
