/* SPDX-License-Identifier: Apache-2.0 */
/*
 * See jsontext.h: the longest escape is six bytes, so one allocation does.
 */
#include <string.h>

#include <apr_strings.h>

#include "jsontext.h"

const char *aigw_jsontext(apr_pool_t *pool, const char *text)
{
    char *out = apr_palloc(pool, strlen(text) * 6 + 3);
    char *q = out;

    *q++ = '"';
    for (; *text; text++) {
        if (*text == '"' || *text == '\\') {
            *q++ = '\\';
            *q++ = *text;
        }
        else if ((unsigned char)*text < 0x20) {
            q += apr_snprintf(q, 7, "\\u%04x", (unsigned char)*text);
        }
        else {
            *q++ = *text;
        }
    }
    *q++ = '"';
    *q = '\0';
    return out;
}
