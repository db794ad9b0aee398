/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Names of the counted fields and access to them.  Which number of an answer
 * goes into which field is the dialects' business.
 */
#include "usage.h"

/* clang-format off */
static const char *const field_names[AIGW_U_MAX] = {
    [AIGW_U_INPUT_UNCACHED]    = "input_uncached",
    [AIGW_U_CACHE_READ]        = "cache_read",
    [AIGW_U_CACHE_WRITE_5M]    = "cache_write_5m",
    [AIGW_U_CACHE_WRITE_1H]    = "cache_write_1h",
    [AIGW_U_CACHE_WRITE_OTHER] = "cache_write_other",
    [AIGW_U_OUTPUT]            = "output",
    [AIGW_U_REASONING]         = "reasoning",
    [AIGW_U_INPUT_AUDIO]       = "input_audio",
    [AIGW_U_INPUT_IMAGE]       = "input_image",
    [AIGW_U_OUTPUT_AUDIO]      = "output_audio",
    [AIGW_U_OUTPUT_IMAGE]      = "output_image",
    [AIGW_U_SEARCHES]          = "searches",
    [AIGW_U_IMAGES]            = "images",
    [AIGW_U_AUDIO_SECONDS]     = "audio_seconds",
};
/* clang-format on */

const char *aigw_usage_field_name(aigw_usage_field_t field)
{
    return (unsigned)field < AIGW_U_MAX ? field_names[field] : "";
}

const char *aigw_usage_source_name(aigw_usage_source_t source)
{
    switch (source) {
    case AIGW_USAGE_REPORTED:
        return "reported";
    case AIGW_USAGE_PARTIAL:
        return "partial";
    case AIGW_USAGE_ESTIMATED:
        return "estimated";
    case AIGW_USAGE_NONE:
        break;
    }
    return "none";
}

int aigw_usage_get(const aigw_usage_t *u, aigw_usage_field_t field,
                   apr_uint64_t *value)
{
    int known = (u->known >> field) & 1;

    *value = known ? u->n[field] : 0;
    return known;
}

void aigw_usage_set(aigw_usage_t *u, aigw_usage_field_t field,
                    apr_uint64_t value)
{
    u->n[field] = value;
    u->known |= (apr_uint32_t)1 << field;
}
