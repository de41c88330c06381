/* The calendar of dates, in the years 1 to 9999. */
#ifndef TIDEMILL_CALENDAR_H
#define TIDEMILL_CALENDAR_H

#include <stdint.h>

/* True if the calendar has the date. */
static inline int is_date(int year, int month, int day)
{
    if (year < 1 || year > 9999 || month < 1 || month > 12 || day < 1)
        return 0;
    if (day <= 28)
        return 1;
    if (month == 2)
        return day == 29 && year % 4 == 0 && (year % 100 != 0 || year % 400 == 0);
    return day <= 30 + ((month + (month > 7)) & 1);
}

/* Days since 1970 of a date that the calendar has. */
static inline int64_t days_of(int year, int month, int day)
{
    year -= month <= 2;
    int era = year / 400, year_of_era = year % 400;
    int day_of_year = (153 * (month > 2 ? month - 3 : month + 9) + 2) / 5 + day - 1;
    return (int64_t)era * 146097 + year_of_era * 365 + year_of_era / 4 - year_of_era / 100 + day_of_year -
           719468;
}

#endif
