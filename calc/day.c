/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Days in a time zone, by the C library's own zone rules.  Clocks change at
 * quarters of an hour and at nothing finer, so that the last quarter's day
 * serves the many records of the same quarter.
 */
#include <stdio.h>
#include <stdlib.h>
#include <time.h>
#include <unistd.h>
#include "day.h"
#include "record.h"

#define QUARTER 900
#define ZONE_MAX 64

static int is_zone_name(const char *zone)
{
    static const char allowed[] = "ABCDEFGHIJKLMNOPQRSTUVWXYZ"
                                  "abcdefghijklmnopqrstuvwxyz"
                                  "0123456789_+-/";
    apr_size_t n = strlen(zone);

    return n > 0 && n < ZONE_MAX && strspn(zone, allowed) == n
           && zone[0] != '/' && zone[n - 1] != '/';
}

aigw_rc_t aigw_day_zone(const char *zone)
{
    const char *dir = getenv("TZDIR");
    char path[512];
    int n;

    if (strcmp(zone, "local") == 0) {
        tzset();
        return AIGW_OK;
    }
    if (strcmp(zone, "UTC") != 0) {
        n = snprintf(path, sizeof(path), "%s/%s",
                     dir ? dir : "/usr/share/zoneinfo", zone);
        if (!is_zone_name(zone) || n < 0 || (size_t)n >= sizeof(path)
            || access(path, R_OK) != 0) {
            return AIGW_MALFORMED;
        }
    }
    setenv("TZ", strcmp(zone, "UTC") == 0 ? "UTC0" : zone, 1);
    tzset();
    return AIGW_OK;
}

aigw_day_t aigw_day_of(apr_time_t when)
{
    static apr_int64_t last_quarter = -1;
    static aigw_day_t last_day;
    apr_int64_t quarter = apr_time_sec(when) / QUARTER;
    time_t seconds = (time_t)apr_time_sec(when);
    struct tm tm;

    if (quarter != last_quarter) {
        localtime_r(&seconds, &tm);
        last_quarter = quarter;
        last_day =
            (tm.tm_year + 1900) * 10000 + (tm.tm_mon + 1) * 100 + tm.tm_mday;
    }
    return last_day;
}

aigw_rc_t aigw_day_parse(const char *text, aigw_day_t *day)
{
    char full[24];
    apr_time_t ignored;

    if (strlen(text) != 10) {
        return AIGW_MALFORMED;
    }
    snprintf(full, sizeof(full), "%sT00:00:00Z", text);
    if (aigw_record_time(full, &ignored) != AIGW_OK) {
        return AIGW_MALFORMED;
    }
    *day =
        (int)(strtol(text, NULL, 10) * 10000 + strtol(text + 5, NULL, 10) * 100
              + strtol(text + 8, NULL, 10));
    return AIGW_OK;
}

void aigw_day_text(aigw_day_t day, char *buf)
{
    snprintf(buf, 11, "%04u-%02u-%02u", (unsigned)day / 10000 % 10000,
             (unsigned)day / 100 % 100, (unsigned)day % 100);
}

/* Years begin in March here, so that a leap day is the last of its year. */
int aigw_day_number(aigw_day_t day)
{
    int y = day / 10000, m = day / 100 % 100, d = day % 100;

    y -= m <= 2;
    m = (m + 9) % 12;
    return 365 * y + y / 4 - y / 100 + y / 400 + (m * 153 + 2) / 5 + d - 1
           - 719468;
}

apr_time_t aigw_day_moment(aigw_day_t day)
{
    return apr_time_from_sec((apr_time_t)aigw_day_number(day) * 86400);
}

void aigw_day_hour(apr_time_t when, char *buf)
{
    time_t seconds = (time_t)apr_time_sec(when);
    struct tm tm;

    localtime_r(&seconds, &tm);
    if (strftime(buf, 24, "%Y-%m-%dT%H%z", &tm) == 0) {
        buf[0] = '\0';
    }
}

/* A week belongs to the year that holds its Thursday. */
void aigw_day_week(aigw_day_t day, char *buf)
{
    int n = aigw_day_number(day), year = day / 10000 + 1, first;
    int thursday = n - (n + 3) % 7 + 3;

    while (thursday < (first = aigw_day_number(year * 10000 + 101))) {
        year--;
    }
    snprintf(buf, 12, "%04u-W%02u", (unsigned)year % 10000,
             (unsigned)((thursday - first) / 7 + 1) % 100);
}
