/* SPDX-License-Identifier: Apache-2.0 */
/*
 * AIGWModel: one row of which upstreams serve a model.  Rows are kept in the
 * order in which they were read; the names of upstreams are looked up later
 * (check.c), as they may be defined further down.
 */
#include "setters.h"
#include "values.h"

#include <apr_strings.h>

#define MODEL_MAX 256

/* NULL if the text can be a model's name in a request. */
static const char *check_model_name(const char *text)
{
    const unsigned char *p;

    for (p = (const unsigned char *)text; *p; p++) {
        if (*p < ' ' || *p == 0x7f) {
            return "holds a control character";
        }
    }
    if (p == (const unsigned char *)text || strlen(text) > MODEL_MAX) {
        return "is empty or longer than 256 bytes";
    }
    return NULL;
}

static const char *check_pattern(cmd_parms *cmd, const char *pattern)
{
    const char *star = strchr(pattern, '*');
    const char *fault = check_model_name(pattern);

    if (fault) {
        return apr_psprintf(cmd->pool, "AIGWModel: the pattern %s", fault);
    }
    if (star && star[1]) {
        return apr_psprintf(cmd->pool,
                            "AIGWModel %s: '*' stands inside the "
                            "pattern; allowed is one '*' at its end, such as "
                            "AIGWModel gpt-* openai",
                            pattern);
    }
    return NULL;
}

static const char *add_candidate(cmd_parms *cmd, aigw_model_row_t *row,
                                 const char *arg)
{
    aigw_candidate_t *cand = apr_array_push(row->candidates);
    const char *fault;

    if (!aigw_value_split(cmd->pool, arg, &cand->upstream_name,
                          &cand->remote)) {
        cand->upstream_name = arg;
        cand->remote = NULL;
    }
    fault = aigw_value_name(cand->upstream_name);
    if (fault) {
        return apr_psprintf(cmd->pool,
                            "AIGWModel %s: \"%s\" is not the name "
                            "of an upstream; allowed is NAME or "
                            "NAME=REMOTE-MODEL, NAME being %s",
                            row->pattern, arg, fault);
    }
    fault = cand->remote ? check_model_name(cand->remote) : NULL;
    if (fault) {
        return apr_psprintf(cmd->pool,
                            "AIGWModel %s: the model name after "
                            "%s= %s; allowed is the name that the upstream "
                            "knows, such as openai=gpt-4.1",
                            row->pattern, cand->upstream_name, fault);
    }
    return NULL;
}

const char *aigw_config_set_model(cmd_parms *cmd, void *dir, int argc,
                                  char *const argv[])
{
    aigw_server_t *sc = aigw_config_server_of(cmd);
    aigw_model_row_t *row;
    const char *fault = aigw_config_place(cmd);
    int i;

    (void)dir;
    if (fault) {
        return fault;
    }
    if (argc < 2 || argc >= AIGW_MAX_ARGS) {
        return apr_psprintf(cmd->pool,
                            "AIGWModel has %d arguments; allowed "
                            "is a pattern and 1 to %d upstreams, such as "
                            "AIGWModel gpt-* openai",
                            argc, AIGW_MAX_ARGS - 2);
    }
    fault = check_pattern(cmd, argv[0]);
    row = apr_pcalloc(cmd->pool, sizeof(*row));
    row->pattern = argv[0];
    row->where = aigw_config_where(cmd);
    row->candidates =
        apr_array_make(cmd->pool, argc - 1, sizeof(aigw_candidate_t));
    row->deny = argc == 2 && strcmp(argv[1], "deny") == 0;
    for (i = 1; i < argc && !fault && !row->deny; i++) {
        fault = strcmp(argv[i], "deny") == 0
                    ? apr_psprintf(cmd->pool,
                                   "AIGWModel %s: deny stands "
                                   "beside upstreams; allowed is deny alone, "
                                   "such as AIGWModel * deny",
                                   argv[0])
                    : add_candidate(cmd, row, argv[i]);
    }
    if (!sc->models) {
        sc->models = apr_array_make(cmd->pool, 8, sizeof(aigw_model_row_t *));
    }
    APR_ARRAY_PUSH(sc->models, aigw_model_row_t *) = row;
    return fault;
}
