/* SPDX-License-Identifier: Apache-2.0 */
/*
 * mod_aigw: a gateway for LLM APIs inside Apache httpd 2.4.
 * The module record and its hooks; no logic.
 */
#include "aigw.h"
#include "account/settle.h"
#include "account/unpriced.h"
#include "account/usage_log.h"
#include "relay/child.h"
#include "relay/downstream.h"
#include "relay/handback.h"

#include <mpm_common.h>

static int post_config(apr_pool_t *pconf, apr_pool_t *plog,
                       apr_pool_t *ptemp, server_rec *s)
{
    aigw_downstream_post_config();
    return aigw_config_post(pconf, plog, ptemp, s);
}

static void child_init(apr_pool_t *pchild, server_rec *s)
{
    aigw_usage_log_child_init(pchild);
    if (aigw_unpriced_child_init(pchild) == APR_SUCCESS) {
        aigw_child_init(pchild, s, aigw_settle);
    }
}

static int pre_connection(conn_rec *c, void *csd)
{
    (void)csd;
    aigw_handback_attach(c);
    return OK;
}

/* The MPM can't switch protocols on a connection that it has let go. */
static int post_read_request(request_rec *r)
{
    aigw_conn_t *cc = aigw_handback_conn(r->connection);

    if (cc && cc->ours) {
        apr_table_unset(r->headers_in, "Upgrade");
    }
    return DECLINED;
}

/* The Location's configuration is not in force at this point of a request:
 * what translate_name wrote is the sign. */
static int map_to_storage(request_rec *r)
{
    return r->filename && strncmp(r->filename, "aigw:", 5) == 0 ? OK
                                                                : DECLINED;
}

/* AIGWEngine On says enough; SetHandler aigw beside it is welcome. */
static int fixups(request_rec *r)
{
    if (r->handler == NULL && aigw_config_dir(r)->engine == 1) {
        r->handler = "aigw";
    }
    return DECLINED;
}

/* Before mod_log_config, so that the notes are there for its formats. */
static int log_transaction(request_rec *r)
{
    aigw_exchange_t *x = aigw_exchange_of(r);

    if (x) {
        aigw_settle(x);
    }
    return DECLINED;
}

static void register_hooks(apr_pool_t *p)
{
    (void)p;
    aigw_downstream_register();
    ap_hook_pre_config(aigw_config_pre, NULL, NULL, APR_HOOK_MIDDLE);
    ap_hook_check_config(aigw_config_check, NULL, NULL, APR_HOOK_LAST);
    ap_hook_open_logs(aigw_usage_log_open_all, NULL, NULL, APR_HOOK_MIDDLE);
    ap_hook_post_config(post_config, NULL, NULL, APR_HOOK_MIDDLE);
    ap_hook_child_init(child_init, NULL, NULL, APR_HOOK_MIDDLE);
    /* Before mod_http2 ends its streams: ours should know why. */
    ap_hook_child_stopping(aigw_child_stopping, NULL, NULL,
                           APR_HOOK_REALLY_FIRST);
    ap_hook_pre_connection(pre_connection, NULL, NULL, APR_HOOK_MIDDLE);
    ap_hook_suspend_connection(aigw_handback_suspend, NULL, NULL,
                               APR_HOOK_LAST);
    ap_hook_post_read_request(post_read_request, NULL, NULL,
                              APR_HOOK_REALLY_FIRST);
    ap_hook_translate_name(aigw_translate, NULL, NULL,
                           APR_HOOK_REALLY_FIRST);
    ap_hook_map_to_storage(map_to_storage, NULL, NULL, APR_HOOK_FIRST);
    ap_hook_fixups(fixups, NULL, NULL, APR_HOOK_LAST);
    ap_hook_handler(aigw_handler, NULL, NULL, APR_HOOK_FIRST);
    ap_hook_log_transaction(log_transaction, NULL, NULL, APR_HOOK_FIRST);
}

module AP_MODULE_DECLARE_DATA aigw_module = {
    STANDARD20_MODULE_STUFF,
    aigw_config_create_dir,
    aigw_config_merge_dir,
    aigw_config_create_server,
    aigw_config_merge_server,
    aigw_config_directives,
    register_hooks,
#if defined(AP_MODULE_FLAG_NONE)
    AP_MODULE_FLAG_NONE
#endif
};
