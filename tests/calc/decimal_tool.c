/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The exact arithmetic of core as a filter, so that another implementation
 * can be asked the same things: a line "text A", "add A B", "mul A N" or
 * "round A DIGITS MODE" in, the answer or the word for the failure out.
 */
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include "decimal.h"

static aigw_slice_t slice_of(const char *text)
{
    return aigw_slice(text, strlen(text));
}

static aigw_rc_t answer(const char *op, const char *a, const char *b,
                        const char *c, char *out)
{
    aigw_money_t x, y, sum;
    aigw_rc_t rc = aigw_money_parse(slice_of(a), &x);

    if (rc != AIGW_OK) {
        return rc;
    }
    sum = x;
    if (strcmp(op, "add") == 0) {
        rc = aigw_money_parse(slice_of(b), &y);
        rc = rc == AIGW_OK ? aigw_money_add(x, y, &sum) : rc;
    }
    else if (strcmp(op, "mul") == 0) {
        rc = aigw_money_mul(x, strtoimax(b, NULL, 10), &sum);
    }
    if (strcmp(op, "round") == 0) {
        aigw_money_round_text(x, (int)strtol(b, NULL, 10),
                              (aigw_round_t)strtol(c, NULL, 10), out);
    }
    else {
        aigw_money_text(sum, out);
    }
    return rc;
}

int main(void)
{
    char line[512], op[8], a[160], b[160], c[160], out[AIGW_MONEY_TEXT];
    aigw_rc_t rc;

    while (fgets(line, sizeof(line), stdin)) {
        a[0] = b[0] = c[0] = '\0';
        if (sscanf(line, "%7s %159s %159s %159s", op, a, b, c) < 2) {
            return 1;
        }
        rc = answer(op, a, b, c, out);
        puts(rc == AIGW_OK ? out
                           : (rc == AIGW_TOO_BIG ? "too_big" : "malformed"));
    }
    return 0;
}
