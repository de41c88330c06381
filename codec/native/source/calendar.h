/* The calendar of dates, in the years 1 to 9999. */
#ifndef TIDEMILL_CALENDAR_H
#define TIDEMILL_CALENDAR_H

#include <stdint.h>

enum { FIRST_DAY = -719162, LAST_DAY = 2932896 }; /* days since 1970 of 0001-01-01 and of 9999-12-31 */

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

/* Find the date of days since 1970; 0 if it isn't in these years. */
static inline int find_date(int64_t days, int *year, int *month, int *day)
{
    if (days < FIRST_DAY || days > LAST_DAY)
        return 0;
    unsigned shifted_days = (unsigned)(days + 719468); /* since the 1st of March of the year 0 */
    unsigned era = shifted_days / 146097, day_of_era = shifted_days % 146097;
    unsigned year_of_era =
        (day_of_era - day_of_era / 1460 + day_of_era / 36524 - day_of_era / 146096) / 365;
    unsigned day_of_year = day_of_era - (365 * year_of_era + year_of_era / 4 - year_of_era / 100);
    unsigned shifted = (5 * day_of_year + 2) / 153;
    *day = (int)(day_of_year - (153 * shifted + 2) / 5 + 1);
    *month = (int)(shifted < 10 ? shifted + 3 : shifted - 9);
    *year = (int)(era * 400 + year_of_era) + (*month <= 2);
    return 1;
}

#endif
