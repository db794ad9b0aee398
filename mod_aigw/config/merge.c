/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Making and merging the configuration's structs, and getting at them.
 * Every member is named in create and in merge; what the more special place
 * said wins as a whole, nothing is mixed.
 */
#include "setters.h"
#include "../admit/identify.h"

static aigw_main_t *the_main; /* pconf; made anew by each pre_config */

void aigw_config_forget(apr_pool_t *pconf)
{
    the_main = apr_palloc(pconf, sizeof(*the_main));
    *the_main = (aigw_main_t){
        .upstreams = apr_array_make(pconf, 4, sizeof(aigw_upstream_t *)),
        .price_file = NULL,
        .catalog = NULL,
        .buffer_size = 16 * 1024,
        .buffer_max = 256 * 1024,
        .memory_limit = 0,
        .max_streams = 0,
        .max_streams_default = 1,
    };
}

void *aigw_config_create_server(apr_pool_t *p, server_rec *s)
{
    aigw_server_t *sc = apr_palloc(p, sizeof(*sc));

    (void)s;
    *sc = (aigw_server_t){
        .models = NULL,
        /* Should a Location slip through the checks, nobody may call. */
        .keys = aigw_keys_empty(p),
        .keys_said = 0,
        .log_spec = NULL,
        .log = NULL,
        .max_body = -1,
        .drain_time = -1,
        .drain_bytes = 0,
    };
    return sc;
}

void *aigw_config_merge_server(apr_pool_t *p, void *base, void *over)
{
    const aigw_server_t *b = base, *o = over;
    aigw_server_t *sc = apr_palloc(p, sizeof(*sc));

    *sc = (aigw_server_t){
        .models = o->models ? o->models : b->models,
        .keys = o->keys_said ? o->keys : b->keys,
        .keys_said = o->keys_said || b->keys_said,
        .log_spec = o->log_spec ? o->log_spec : b->log_spec,
        .log = NULL,
        .max_body = o->max_body >= 0 ? o->max_body : b->max_body,
        .drain_time = o->drain_time >= 0 ? o->drain_time : b->drain_time,
        .drain_bytes = o->drain_time >= 0 ? o->drain_bytes : b->drain_bytes,
    };
    return sc;
}

void *aigw_config_create_dir(apr_pool_t *p, char *path)
{
    aigw_dir_t *dc = apr_palloc(p, sizeof(*dc));

    (void)path;
    *dc = (aigw_dir_t){
        .engine = -1,
        .prefix = NULL,
        .keys = NULL,
        .keys_said = 0,
        .where = NULL,
    };
    return dc;
}

void *aigw_config_merge_dir(apr_pool_t *p, void *base, void *over)
{
    const aigw_dir_t *b = base, *o = over;
    const aigw_dir_t *engine = o->engine >= 0 ? o : b;
    const aigw_dir_t *keys = o->keys_said ? o : b;
    aigw_dir_t *dc = apr_palloc(p, sizeof(*dc));

    *dc = (aigw_dir_t){
        .engine = engine->engine,
        .prefix = engine->prefix,
        .where = engine->where,
        .keys = keys->keys,
        .keys_said = keys->keys_said,
    };
    return dc;
}

aigw_main_t *aigw_config_main(void)
{
    return the_main;
}

aigw_server_t *aigw_config_server(server_rec *s)
{
    return ap_get_module_config(s->module_config, &aigw_module);
}

aigw_dir_t *aigw_config_dir(request_rec *r)
{
    return ap_get_module_config(r->per_dir_config, &aigw_module);
}

const struct aigw_keys_t *aigw_config_keys(request_rec *r)
{
    const aigw_dir_t *dc = aigw_config_dir(r);
    return dc->keys_said ? dc->keys : aigw_config_server(r->server)->keys;
}

aigw_upstream_t *aigw_config_upstream(const char *name)
{
    const apr_array_header_t *all = aigw_config_main()->upstreams;
    int i;

    for (i = 0; i < all->nelts; i++) {
        aigw_upstream_t *up = APR_ARRAY_IDX(all, i, aigw_upstream_t *);
        if (strcmp(up->name, name) == 0) {
            return up;
        }
    }
    return NULL;
}
