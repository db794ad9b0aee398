/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What an answer shall look like: defaults come from the command line, and
 * each request may override them with `sim:NAME=VALUE` in its query or
 * anywhere in its body.  One table holds the names, so that an option and an
 * override can't differ.  A name or a value that is not known is an error,
 * never ignored: a typo in a test must not pass as a success.
 */
#ifndef SIM_PARAMS_H
#define SIM_PARAMS_H

#include <stdint.h>
#include <stdio.h>

#include "buf.h"

typedef enum sim_framing_t {
    SIM_FRAME_AUTO = 0, /* chunked for streams, length for the rest */
    SIM_FRAME_CHUNKED,
    SIM_FRAME_LENGTH,
    SIM_FRAME_CLOSE
} sim_framing_t;

typedef enum sim_fault_t {
    SIM_FAULT_NONE = 0,
    SIM_FAULT_REFUSE_RESET,
    SIM_FAULT_CLOSE_BEFORE_HEAD,
    SIM_FAULT_SILENCE_BEFORE_HEAD,
    SIM_FAULT_SILENCE_MID_STREAM,
    SIM_FAULT_CUT_MID_HEAD,
    SIM_FAULT_CUT_MID_CHUNK,
    SIM_FAULT_CUT_MID_EVENT,
    SIM_FAULT_END_MID_EVENT,
    SIM_FAULT_CUT_BEFORE_LAST_CHUNK,
    SIM_FAULT_RESET_MID_STREAM,
    SIM_FAULT_BAD_CHUNK_SIZE,
    SIM_FAULT_HEAD_TOO_LARGE,
    SIM_FAULT_BAD_STATUS_LINE,
    SIM_FAULT_CTL_IN_FIELD,
    SIM_FAULT_TE_AND_CL,
    SIM_FAULT_TWO_LENGTHS,
    SIM_FAULT_SHORT_LENGTH,
    SIM_FAULT_LONG_LENGTH,
    SIM_FAULT_ONE_1XX,
    SIM_FAULT_FLOOD_1XX,
    SIM_FAULT_ERROR_EVENT_FIRST,
    SIM_FAULT_ERROR_EVENT_MID,
    SIM_FAULT_EXTRA_BYTES,
    SIM_FAULT_EXTRA_BYTES_LATE,
    SIM_FAULT_CLOSE_WHEN_IDLE,
    SIM_FAULT_CLOSE_ON_REUSE,
    SIM_FAULT_CHUNK_EXT,
    SIM_FAULT_TRAILERS,
    SIM_FAULT_ONE_BYTE,
    SIM_FAULT_NO_DONE,
    SIM_FAULT_ENDLESS
} sim_fault_t;

#define SIM_FAULT_F_STREAM 1  /* makes sense for event streams only */
#define SIM_FAULT_F_LENGTH 2  /* needs Content-Length framing */
#define SIM_FAULT_F_CHUNKED 4 /* needs chunked framing */

#define SIM_UNSET UINT64_MAX /* a number nobody gave */

typedef struct sim_params_t {
    uint64_t events;
    uint64_t period_ns; /* between two events; 0 = unpaced */
    uint64_t first_byte_ms;
    uint64_t event_bytes;
    uint64_t json_bytes;
    uint64_t burst;
    uint64_t status;
    uint64_t retry_after; /* s; SIM_UNSET = 2 with 429, 503 and 529 */
    uint64_t framing;     /* sim_framing_t */
    uint64_t split;       /* bytes a write; 0 = no splitting */
    uint64_t split_us;
    uint64_t chunk; /* largest HTTP chunk; 0 = one chunk an event */
    uint64_t prompt, completion, cached, reasoning;
    uint64_t fault;    /* sim_fault_t */
    uint64_t fault_at; /* content event at which it strikes */
    uint64_t fault_n;  /* how much of it */
    uint64_t stamp;
    char suffix[64];
    char file[128];
    char tag[128];
    char echo[64];
} sim_params_t;

/** Fill in the defaults. */
void sim_params_init(sim_params_t *p);

/**
 * Set one parameter by its name.
 * @param err receives a sentence when the call fails
 * @return 0, or -1: no such name, or a value that is not allowed
 */
int sim_params_set(sim_params_t *p, sim_slice_t name, sim_slice_t value,
                   sim_buf_t *err);

/** @return 1 when a parameter has this name, else 0 */
int sim_params_known(const char *name);

/**
 * Apply every `sim:NAME=VALUE` found in text, in order.
 * @return 0, or -1 at the first bad one, with a sentence in err
 */
int sim_params_scan(sim_params_t *p, sim_slice_t text, sim_buf_t *err);

/** @return the fault's name, or NULL for SIM_FAULT_NONE */
const char *sim_fault_name(uint64_t fault);

/** @return the SIM_FAULT_F_* flags of the fault */
int sim_fault_flags(uint64_t fault);

/** Print the table of parameters and of faults, for --help. */
void sim_params_help(FILE *to);

#endif
