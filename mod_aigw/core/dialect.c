/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The list of dialects, and the questions that need no dialect's knowledge.
 */
#include "dialect.h"

static const aigw_dialect_t *const dialects[] = {
    &aigw_dialect_openai,
    &aigw_dialect_openai_gemini,
    &aigw_dialect_openai_perplexity,
    &aigw_dialect_openai_xai,
    NULL,
};

const aigw_dialect_t *aigw_dialect_find(const char *name)
{
    int i;

    for (i = 0; dialects[i] != NULL; ++i) {
        if (strcmp(dialects[i]->name, name) == 0) {
            return dialects[i];
        }
    }
    return NULL;
}

const char *aigw_api_name(aigw_api_t api)
{
    switch (api) {
    case AIGW_API_OPENAI_CHAT:
        return "openai.chat";
    case AIGW_API_OTHER:
        break;
    }
    return "other";
}

const aigw_endpoint_t *aigw_dialect_endpoint(const aigw_dialect_t *d,
                                             const char *path)
{
    const aigw_endpoint_t *e;

    for (e = d->endpoints; e->path != NULL; ++e) {
        if (strcmp(e->path, path) == 0) {
            return e;
        }
    }
    return NULL;
}
