/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Forms of any bytes.  What must hold: what is taken is what a plain search
 * for the boundary finds, so that no reader can see another part or another
 * value; the form made anew of the parts is the form.
 */
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include "multipart.h"
#include "reqbody.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

#define TYPE "multipart/form-data; boundary=b"
#define DELIMITER "\r\n--b"

static void must(int holds)
{
    if (!holds) {
        abort();
    }
}

/* How often the delimiter stands in the body, its beginning included. */
static int delimiters(const char *p, size_t n)
{
    int count = n >= 3 && memcmp(p, "--b", 3) == 0;
    size_t i;

    for (i = 0; i + 5 <= n; i++) {
        count += memcmp(p + i, DELIMITER, 5) == 0;
    }
    return count;
}

/* The value lies between a blank line and a delimiter, and holds none. */
static void check_part(const char *p, size_t n,
                       const aigw_multipart_part_t *part)
{
    size_t at = (size_t)(part->value.p - p);

    must(at >= 4 && at + part->value.n + 5 <= n);
    must(memcmp(part->value.p - 4, "\r\n\r\n", 4) == 0);
    must(memcmp(part->value.p + part->value.n, DELIMITER, 5) == 0);
    must(delimiters(part->value.p - 2, part->value.n + 2) == 0);
    must(part->name.p > p && part->name.p < part->value.p);
    must(memchr(part->name.p, '"', part->name.n) == NULL);
}

static void check_read(const char *p, size_t n, int parts)
{
    aigw_match_t match;
    aigw_reqbody_t rb;
    aigw_body_fault_t fault;

    must(aigw_endpoint_match("/images/edits", NULL, &match) == AIGW_OK);
    fault = aigw_reqbody_read(&match, TYPE, p, n, &rb);
    must(rb.fault_at <= n);
    must((fault == AIGW_BODY_NOT_FORM) == (parts < 0));
    if (fault == AIGW_BODY_OK) {
        must(rb.model_len == strlen(rb.model));
        must(memcmp(p + rb.model_at, rb.model, rb.model_len) == 0);
    }
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    const char *p = (const char *)data;
    aigw_multipart_part_t part;
    aigw_multipart_t mp;
    aigw_rc_t rc = aigw_multipart_start(&mp, TYPE, p, size);
    int parts = 0;

    must(rc == AIGW_OK || rc == AIGW_MALFORMED);
    while (rc == AIGW_OK
           && (rc = aigw_multipart_next(&mp, &part)) == AIGW_OK) {
        check_part(p, size, &part);
        parts++;
    }
    must(rc == AIGW_DONE || rc == AIGW_MALFORMED || rc == AIGW_TOO_BIG);
    if (rc == AIGW_DONE) {
        must(delimiters(p, size) == parts + 1);
    }
    check_read(p, size, rc == AIGW_DONE ? parts : -1);
    return 0;
}
