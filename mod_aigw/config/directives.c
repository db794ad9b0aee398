/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The command table, made of directives.def, the rule of where a directive
 * may stand, and the short setters.  It looks at one directive at a time:
 * what needs the whole configuration is check.c's.
 */
#include "setters.h"
#include "values.h"
#include "../admit/identify.h"

#include <apr_fnmatch.h>
#include <apr_strings.h>
#include <http_core.h>

#define MAX_BODY_LIMIT APR_INT64_C(0x40000000)

const char *aigw_config_where(cmd_parms *cmd)
{
    return apr_psprintf(cmd->pool, "%s:%d", cmd->directive->filename,
                        cmd->directive->line_num);
}

int aigw_config_in_location(cmd_parms *cmd)
{
    const ap_directive_t *parent = cmd->directive->parent;
    return parent && ap_cstr_casecmp(parent->directive, "<Location") == 0;
}

aigw_server_t *aigw_config_server_of(cmd_parms *cmd)
{
    return aigw_config_server(cmd->server);
}

static const char *places_text(int places)
{
    /* clang-format off */
    static const char *const text[] = {
        "nowhere", "the server config", "a virtual host",
        "the server config or a virtual host", "a literal <Location>",
        "the server config or a literal <Location>",
        "a virtual host or a literal <Location>",
        "the server config, a virtual host or a literal <Location>"
    };
    /* clang-format on */
    return text[places & 7];
}

/* Why this Location is no literal one, or NULL. The path is the prefix that
 * is cut off, so that it has to be one plain path. */
static const char *location_fault(cmd_parms *cmd)
{
    const char *args = cmd->directive->parent->args;

    while (*args == ' ' || *args == '"') {
        args++;
    }
    if (*args == '~' || apr_fnmatch_test(cmd->path)) {
        return "a pattern";
    }
    if (*cmd->path != '/' || strstr(cmd->path, "//")
        || strpbrk(cmd->path, "?#%")) {
        return "not a plain path";
    }
    return NULL;
}

const char *aigw_config_place(cmd_parms *cmd)
{
    const aigw_directive_info_t *info = cmd->info;
    const ap_directive_t *parent = cmd->directive->parent;
    const char *where, *fault = NULL;
    int place = 0;

    if (cmd->pool == cmd->temp_pool) {
        where = "an .htaccess file";
    }
    else if (!parent) {
        where = "the server config outside all sections";
        place = AIGW_IN_SERVER;
    }
    else {
        where =
            apr_pstrcat(cmd->pool, parent->directive, " ", parent->args, NULL);
        if (ap_cstr_casecmp(parent->directive, "<VirtualHost") == 0) {
            place = AIGW_IN_VHOST;
        }
        else if (aigw_config_in_location(cmd)) {
            fault = location_fault(cmd);
            place = fault ? 0 : AIGW_IN_LOCATION;
        }
    }
    if (info->places & place) {
        return NULL;
    }
    return apr_psprintf(cmd->pool,
                        "%s stands in %s%s%s; allowed is %s, as "
                        "in: %s",
                        cmd->cmd->name, where, fault ? ", which is " : "",
                        fault ? fault : "", places_text(info->places),
                        info->syntax);
}

/* "/v1/" and "/v1" name one prefix; "/" is the empty one. */
static const char *prefix_of(apr_pool_t *pool, const char *path)
{
    apr_size_t n = strlen(path);
    return apr_pstrmemdup(pool, path, path[n - 1] == '/' ? n - 1 : n);
}

static const char *set_engine(cmd_parms *cmd, void *dir, const char *arg)
{
    aigw_dir_t *dc = dir;
    const char *fault = aigw_config_place(cmd);

    if (fault) {
        return fault;
    }
    if (aigw_value_flag(arg, &dc->engine)) {
        return apr_psprintf(cmd->pool,
                            "AIGWEngine %s is not understood; "
                            "allowed is On or Off, such as AIGWEngine On",
                            arg);
    }
    dc->prefix = dc->engine ? prefix_of(cmd->pool, cmd->path) : NULL;
    dc->where = aigw_config_where(cmd);
    aigw_config_note_location(cmd, dc);
    return NULL;
}

/* none, or a file: *keys NULL or what it holds. */
static const char *read_keys(cmd_parms *cmd, const char *arg,
                             struct aigw_keys_t **keys)
{
    const char *path, *fault;

    *keys = NULL;
    if (ap_cstr_casecmp(arg, "none") == 0) {
        return NULL;
    }
    path = ap_server_root_relative(cmd->pool, arg);
    if (!path || !*arg) {
        return apr_psprintf(cmd->pool,
                            "AIGWKeyFile \"%s\" is not a path; "
                            "allowed is a file or none, such as "
                            "AIGWKeyFile conf/aigw.keys",
                            arg);
    }
    fault = aigw_keys_load(keys, path, cmd->pool);
    return fault ? apr_psprintf(cmd->pool, "AIGWKeyFile: %s", fault) : NULL;
}

static const char *set_key_file(cmd_parms *cmd, void *dir, const char *arg)
{
    aigw_server_t *sc = aigw_config_server_of(cmd);
    aigw_dir_t *dc = dir;
    const char *fault = aigw_config_place(cmd);

    if (fault) {
        return fault;
    }
    if (aigw_config_in_location(cmd)) {
        dc->keys_said = 1;
        aigw_config_note_location(cmd, dc);
        return read_keys(cmd, arg, &dc->keys);
    }
    sc->keys_said = 1;
    return read_keys(cmd, arg, &sc->keys);
}

static const char *set_usage_log(cmd_parms *cmd, void *dir, const char *arg)
{
    const char *fault = aigw_config_place(cmd);

    (void)dir;
    if (fault) {
        return fault;
    }
    if (strcmp(arg, "|") == 0
        || (*arg != '|' && !ap_server_root_relative(cmd->temp_pool, arg))) {
        return apr_psprintf(cmd->pool,
                            "AIGWUsageLog \"%s\" names nothing; "
                            "allowed is a file or \"|program\", such as "
                            "AIGWUsageLog logs/usage.log",
                            arg);
    }
    aigw_config_server_of(cmd)->log_spec = arg;
    return NULL;
}

static const char *set_price_file(cmd_parms *cmd, void *dir, const char *arg)
{
    const char *fault = aigw_config_place(cmd);
    const char *path = *arg ? ap_server_root_relative(cmd->pool, arg) : NULL;

    (void)dir;
    if (fault) {
        return fault;
    }
    if (!path) {
        return apr_psprintf(cmd->pool,
                            "AIGWPriceFile \"%s\" is not a path; "
                            "allowed is a file, such as "
                            "AIGWPriceFile conf/prices.json",
                            arg);
    }
    aigw_config_main()->price_file = path;
    return NULL;
}

static const char *set_max_body(cmd_parms *cmd, void *dir, const char *arg)
{
    apr_off_t size = 0;
    const char *fault = aigw_config_place(cmd);

    (void)dir;
    if (fault) {
        return fault;
    }
    if (aigw_value_size(arg, &size) || size < 1 || size > MAX_BODY_LIMIT) {
        return apr_psprintf(cmd->pool,
                            "AIGWMaxBody %s is not understood; "
                            "allowed is a number of bytes, or one with K, M "
                            "or G, from 1 to 1G, such as AIGWMaxBody 64M",
                            arg);
    }
    aigw_config_server_of(cmd)->max_body = size;
    return NULL;
}

static const char *set_drain(cmd_parms *cmd, void *dir, const char *time,
                             const char *size)
{
    aigw_server_t *sc = aigw_config_server_of(cmd);
    const char *fault = aigw_config_place(cmd);

    (void)dir;
    if (fault) {
        return fault;
    }
    if (aigw_value_duration(time, &sc->drain_time)
        || aigw_value_size(size, &sc->drain_bytes)) {
        return apr_psprintf(cmd->pool,
                            "AIGWDrain %s %s is not understood; allowed is a "
                            "time and a number of bytes, such as AIGWDrain "
                            "30s 1M, or 0 0 to close the upstream at once",
                            time, size);
    }
    return NULL;
}

static const char *set_size(cmd_parms *cmd, const char *arg, apr_off_t min,
                            apr_off_t max, apr_off_t *out,
                            const char *allowed)
{
    const char *fault = aigw_config_place(cmd);
    apr_off_t size = 0;

    if (fault) {
        return fault;
    }
    if (aigw_value_size(arg, &size) || size < min || size > max) {
        return apr_psprintf(cmd->pool,
                            "%s %s is not understood; allowed is %s",
                            cmd->cmd->name, arg, allowed);
    }
    *out = size;
    return NULL;
}

static const char *set_buffer_size(cmd_parms *cmd, void *dir, const char *arg)
{
    (void)dir;
    return set_size(cmd, arg, 1024, 1024 * 1024,
                    &aigw_config_main()->buffer_size,
                    "a size from 1K to 1M, at most a quarter of "
                    "FlushMaxThreshold, such as AIGWBufferSize 16K");
}

static const char *set_buffer_max(cmd_parms *cmd, void *dir, const char *arg)
{
    (void)dir;
    return set_size(cmd, arg, 0, 64 * 1024 * 1024,
                    &aigw_config_main()->buffer_max,
                    "a size of at most 64M, such as AIGWBufferMax 256K, or 0 "
                    "to keep none");
}

static const char *set_memory_limit(cmd_parms *cmd, void *dir,
                                    const char *arg)
{
    (void)dir;
    return set_size(cmd, arg, 0, APR_INT64_C(1) << 40,
                    &aigw_config_main()->memory_limit,
                    "a size, such as AIGWMemoryLimit 512M, or 0 for none");
}

static const char *set_max_streams(cmd_parms *cmd, void *dir, const char *arg)
{
    const char *fault = aigw_config_place(cmd);

    (void)dir;
    if (fault) {
        return fault;
    }
    if (aigw_value_count(arg, 1, 1000000, &aigw_config_main()->max_streams)) {
        return apr_psprintf(cmd->pool,
                            "AIGWMaxStreams %s is not understood; "
                            "allowed is a whole number from 1 to 1000000, "
                            "such as AIGWMaxStreams 5000",
                            arg);
    }
    return NULL;
}

/* clang-format off */
#define AIGW_DIRECTIVE(name, args, setter, places, syntax, preset, help) \
    static const aigw_directive_info_t info_##name = { places, syntax };
#include "directives.def"
#undef AIGW_DIRECTIVE

/* Allowed everywhere in the eyes of httpd, so that a wrong place is refused
 * by our sentence, which names what is allowed; never in .htaccess files. */
const command_rec aigw_config_directives[] = {
#define AIGW_DIRECTIVE(name, args, setter, places, syntax, preset, help) \
    AP_INIT_##args(#name, setter, (void *)&info_##name, \
                   RSRC_CONF | ACCESS_CONF, help),
#include "directives.def"
#undef AIGW_DIRECTIVE
    { NULL, { NULL }, NULL, 0, RAW_ARGS, NULL }
};
/* clang-format on */
