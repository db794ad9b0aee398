/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Which calendar day a moment belongs to, in a time zone.  Records hold UTC;
 * a day's border is where the zone's clocks put it, summer time included.
 */
#ifndef AIGW_CALC_DAY_H
#define AIGW_CALC_DAY_H

#include <apr_time.h>
#include "slice.h"

/** Year * 10000 + month * 100 + day: days compare as numbers. */
typedef int aigw_day_t;

/**
 * Set the zone for all further calls: "local", "UTC" or a name of the zone
 * data base ("Europe/Berlin"). An unknown name is refused, where the C
 * library would quietly take UTC.
 * @return AIGW_OK, or AIGW_MALFORMED
 */
aigw_rc_t aigw_day_zone(const char *zone);

/** The day of a moment. */
aigw_day_t aigw_day_of(apr_time_t when);

/** Read "2026-11-30"; AIGW_MALFORMED if it is no day. */
aigw_rc_t aigw_day_parse(const char *text, aigw_day_t *day);

/** As "2026-11-30". @param buf room for 11 bytes */
void aigw_day_text(aigw_day_t day, char *buf);

/** Clocks change at multiples of this, in microseconds. */
#define AIGW_DAY_QUARTER APR_INT64_C(900000000)

/**
 * The hour of a moment in the zone, with the zone's distance from UTC, as an
 * hour comes twice when summer time ends: "2026-10-25T02+0200".
 * @param buf room for 24 bytes
 */
void aigw_day_hour(apr_time_t when, char *buf);

/** Its ISO week, "2026-W48", which begins on Monday. @param buf room for 12 */
void aigw_day_week(aigw_day_t day, char *buf);

/** The moment at which a day begins in UTC. */
apr_time_t aigw_day_moment(aigw_day_t day);

/** Days since 1970-01-01: the difference of two is the time between. */
int aigw_day_number(aigw_day_t day);

#endif
