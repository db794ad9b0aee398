/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Just enough JSON to find a member of an object without building a tree.
 * It is on purpose another piece of code than the gateway's own scanner: one
 * mistake in both at the same place would go unseen.
 */
#ifndef SIM_JSON_H
#define SIM_JSON_H

#include "buf.h"

/**
 * Find a member of the object that text holds; of two, the last counts.
 * @param value receives the member's value as written, or an empty slice
 * @return 1 found; 0 not there; -1 text is not one JSON object
 */
int sim_json_find(sim_slice_t text, const char *name, sim_slice_t *value);

/** @return 1 when the bytes are well-formed UTF-8, else 0 */
int sim_json_utf8(const char *p, size_t n);

#endif
