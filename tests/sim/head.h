/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Response heads.  They carry the fields that a provider sends, so that a
 * test can see which of them a gateway drops and which it passes on.
 */
#ifndef SIM_HEAD_H
#define SIM_HEAD_H

#include "answer.h"

/**
 * Append the head of the answer, with the interim answers before it and the
 * faults in it.  Framing and declared length must be settled.
 */
void sim_head_build(const sim_answer_t *a, sim_buf_t *out);

#endif
