/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The list of dialects, and the questions that need no dialect's knowledge:
 * names, paths, targets.  A request's path is only ever compared; what goes
 * upstream is made of constants and of a model's name that was checked.
 */
#include "dialect.h"

static const aigw_dialect_t *const dialects[] = {
    &aigw_dialect_openai,        &aigw_dialect_anthropic,
    &aigw_dialect_gemini,        &aigw_dialect_ollama,
    &aigw_dialect_openai_gemini, &aigw_dialect_openai_perplexity,
    &aigw_dialect_openai_xai,    NULL,
};

/* Those of the list above that are languages. */
#define LANGUAGES 4

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

/* ---- profiles ----------------------------------------------------------- */

/* clang-format off */
const char *const aigw_dialect_profiles[] = {
    "azure", "deepseek", "gemini", "groq", "llamacpp", "mistral", "moonshot",
    "ollama", "openrouter", "perplexity", "qwen", "sglang", "vllm", "xai",
    "zhipu", NULL
};
/* clang-format on */

/* The few that count otherwise than OpenAI. */
static const struct {
    const char *profile;
    const aigw_dialect_t *dialect;
} rows[] = {
    {"gemini", &aigw_dialect_openai_gemini},
    {"perplexity", &aigw_dialect_openai_perplexity},
    {"xai", &aigw_dialect_openai_xai},
};

static int is_profile(const char *name)
{
    int i;

    for (i = 0; aigw_dialect_profiles[i] != NULL; ++i) {
        if (strcmp(aigw_dialect_profiles[i], name) == 0) {
            return 1;
        }
    }
    return 0;
}

const aigw_dialect_t *aigw_dialect_profile(const aigw_dialect_t *d,
                                           const char *profile)
{
    apr_size_t i;

    if (profile == NULL) {
        return d;
    }
    if (!is_profile(profile)) {
        return NULL;
    }
    if (d != &aigw_dialect_openai) {
        return d;
    }
    for (i = 0; i < sizeof(rows) / sizeof(rows[0]); ++i) {
        if (strcmp(rows[i].profile, profile) == 0) {
            return rows[i].dialect;
        }
    }
    return d;
}

int aigw_dialect_speaks(const aigw_dialect_t *upstream,
                        const aigw_dialect_t *caller)
{
    return strcmp(upstream->language, caller->language) == 0;
}

int aigw_dialect_status(const aigw_dialect_t *d,
                        const aigw_reason_info_t *info)
{
    return info->status == 503 && d->overloaded != 0 ? d->overloaded
                                                     : info->status;
}

/* ---- APIs --------------------------------------------------------------- */

/* clang-format off */
static const char *const api_names[AIGW_API_MAX] = {
    [AIGW_API_OTHER]                  = "other",
    [AIGW_API_OPENAI_CHAT]            = "openai.chat",
    [AIGW_API_OPENAI_COMPLETIONS]     = "openai.completions",
    [AIGW_API_OPENAI_RESPONSES]       = "openai.responses",
    [AIGW_API_OPENAI_EMBEDDINGS]      = "openai.embeddings",
    [AIGW_API_OPENAI_IMAGES]          = "openai.images",
    [AIGW_API_OPENAI_AUDIO]           = "openai.audio",
    [AIGW_API_OPENAI_MODERATIONS]     = "openai.moderations",
    [AIGW_API_OPENAI_MODELS]          = "openai.models",
    [AIGW_API_ANTHROPIC_MESSAGES]     = "anthropic.messages",
    [AIGW_API_ANTHROPIC_COUNT_TOKENS] = "anthropic.count_tokens",
    [AIGW_API_GEMINI_GENERATE]        = "gemini.generate",
    [AIGW_API_GEMINI_COUNT_TOKENS]    = "gemini.count_tokens",
    [AIGW_API_GEMINI_EMBED]           = "gemini.embed",
    [AIGW_API_OLLAMA_CHAT]            = "ollama.chat",
};
/* clang-format on */

const char *aigw_api_name(aigw_api_t api)
{
    return (unsigned)api < AIGW_API_MAX ? api_names[api] : "other";
}

const aigw_endpoint_t *aigw_dialect_endpoint(const aigw_dialect_t *d,
                                             const char *path)
{
    const aigw_endpoint_t *e = d->endpoints;

    return e->api == AIGW_API_OPENAI_CHAT && strcmp(e->path, path) == 0 ? e
                                                                        : NULL;
}

/* ---- paths -------------------------------------------------------------- */

#define NAME_MAX_LEN 128

/* A model's name that may stand in a path: no separator, nothing that would
 * have to be escaped, and no dots only. */
static int is_path_name(aigw_slice_t name)
{
    int other = 0;
    apr_size_t i;

    for (i = 0; i < name.n; ++i) {
        char c = name.p[i];

        if (!((c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z')
              || (c >= '0' && c <= '9')
              || (c != '\0' && strchr("-._@", c) != NULL))) {
            return 0;
        }
        other |= c != '.';
    }
    return other && name.n <= NAME_MAX_LEN;
}

/* 1 if a path fits an endpoint's; *model is what stands for the '*'. */
static int fits(const char *pattern, const char *path, aigw_slice_t *model)
{
    const char *star = strchr(pattern, '*');
    apr_size_t n = strlen(path), before, after;

    *model = aigw_slice("", 0);
    if (star == NULL) {
        return strcmp(pattern, path) == 0;
    }
    before = (apr_size_t)(star - pattern);
    after = strlen(star + 1);
    if (n <= before + after || memcmp(path, pattern, before) != 0
        || strcmp(path + n - after, star + 1) != 0) {
        return 0;
    }
    *model = aigw_slice(path + before, n - before - after);
    return is_path_name(*model);
}

/* 1 if the query has exactly "alt=sse" among its parts. */
static int asks_for_sse(const char *args)
{
    while (args != NULL && *args != '\0') {
        apr_size_t n = strcspn(args, "&");

        if (aigw_slice_is(aigw_slice(args, n), "alt=sse")) {
            return 1;
        }
        args += n + (args[n] != '\0');
    }
    return 0;
}

/* The language of a path that is no endpoint's. */
static const aigw_dialect_t *looks_like(const char *path)
{
    if (strncmp(path, "/messages", 9) == 0) {
        return &aigw_dialect_anthropic;
    }
    if (strncmp(path, "/models/", 8) == 0 && strchr(path, ':') != NULL) {
        return &aigw_dialect_gemini;
    }
    return &aigw_dialect_openai;
}

static void found(const aigw_endpoint_t *e, const char *args, aigw_match_t *m)
{
    m->endpoint = e;
    if (e->alt_sse && asks_for_sse(args)) {
        m->query = "alt=sse";
    }
    else if (e->alt_sse) {
        m->dialect = &aigw_dialect_gemini_array;
    }
}

aigw_rc_t aigw_endpoint_match(const char *path, const char *args,
                              aigw_match_t *m)
{
    const aigw_endpoint_t *e;
    int i;

    m->endpoint = NULL;
    m->query = "";
    for (i = 0; i < LANGUAGES; ++i) {
        m->dialect = dialects[i];
        for (e = m->dialect->endpoints; e->path != NULL; ++e) {
            if (fits(e->path, path, &m->model)) {
                found(e, args, m);
                return AIGW_OK;
            }
        }
    }
    m->dialect = looks_like(path);
    m->model = aigw_slice("", 0);
    return AIGW_REFUSED;
}

/* ---- targets ------------------------------------------------------------ */

typedef struct {
    char *p;
    char *end; /* of the room, NUL included */
} target_t;

static void put(target_t *t, const char *p, apr_size_t n)
{
    if (n < (apr_size_t)(t->end - t->p)) {
        memcpy(t->p, p, n);
        t->p += n;
        *t->p = '\0';
    }
}

apr_size_t aigw_endpoint_target(const aigw_match_t *m, const char *model,
                                char *buf)
{
    const char *path = m->endpoint->path;
    const char *star = strchr(path, '*');
    target_t t;

    t.p = buf;
    t.end = buf + AIGW_TARGET_MAX;
    if (star != NULL) {
        aigw_slice_t name =
            model != NULL ? aigw_slice(model, strlen(model)) : m->model;

        if (!is_path_name(name)) {
            return 0;
        }
        put(&t, path, (apr_size_t)(star - path));
        put(&t, name.p, name.n);
        path = star + 1;
    }
    put(&t, path, strlen(path));
    if (m->query[0] != '\0') {
        put(&t, "?", 1);
        put(&t, m->query, strlen(m->query));
    }
    return (apr_size_t)(t.p - buf);
}
