/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The built-in answer, word by word, so that a person who watches a stream
 * reads sentences.  The text is ASCII without quotes and backslashes, except
 * for the paragraph break, which is given in its JSON form.
 */
#ifndef SIM_TEXT_H
#define SIM_TEXT_H

#include <stdint.h>

#include "buf.h"

/** @return the number of words of the text */
uint64_t sim_text_words(void);

/**
 * Append word number i, counted from 0, with the space before it.  The text
 * starts anew, after a paragraph break, when its words are used up.
 */
void sim_text_word(sim_buf_t *b, uint64_t i);

#endif
