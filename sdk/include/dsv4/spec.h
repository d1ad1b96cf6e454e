/* The speculation contract: what to draft, how to verify, how long; expressed as Programs for the backend.
 *
 * A plugin of this kind runs no maths of its own. It reads the draft's weights list and configuration, composes
 * Programs from the host's lowering service, and decides lengths. Draft, verify, accept and context insertion of a step
 * are one submit of the returned executables.
 */
#ifndef DSV4_SPEC_H
#define DSV4_SPEC_H

#include "dsv4/abi.h"

#ifdef __cplusplus
extern "C" {
#endif

/* What the core must know to schedule. Lives as long as the instance. */
typedef struct dsv4_spec_info {
    uint32_t struct_size;
    dsv4_str method;           /* "dspark", "mtp" */
    uint32_t max_tokens;       /* drafts a step, at most */
    uint32_t draft_rows;       /* rows of the draft Program for one slot */
    const int32_t* tap_layers; /* target layers whose streams the target Program must tap, ascending */
    uint32_t tap_count;
    int32_t noise_token;        /* id of noise rows, or -1 */
    int32_t needs_draft_window; /* 1: DSV4_STATE_DRAFT_WINDOW belongs to the boundary state */
    uint32_t reserved;
} dsv4_spec_info;

/* What a length choice may depend on; never on the values of this step's drafts (losslessness). */
typedef struct dsv4_length_query {
    uint32_t struct_size;
    uint32_t slots;
    const float* stale_survival; /* [slots][max_tokens], two steps old; NULL at first */
    const int64_t* room;         /* [slots]: tokens left to the slot's limits */
} dsv4_length_query;

typedef struct dsv4_spec_table {
    uint32_t struct_size;
    const dsv4_spec_info* (*info)(void* self);
    /* Programs in the binary form of dsv4/program.h; live as long as the instance. `precision` is dsv4_precision.
     * context: taps of committed rows -> draft window; draft: anchors -> drafts in the records. */
    dsv4_error* (*context_program)(void* self, int32_t precision, dsv4_str* out);
    dsv4_error* (*draft_program)(void* self, int32_t precision, dsv4_str* out);
    /* Drafts to verify for each slot, 0 .. max_tokens. Engine thread, once a step. */
    dsv4_error* (*choose_lengths)(void* self, const dsv4_length_query* query, uint32_t* lengths);
    /* What happened, for adaptive policies: accepted[slots] of `verified` drafts. (optional) Engine thread. */
    void (*observe)(void* self, const uint32_t* verified, const uint32_t* accepted, uint32_t slots);
} dsv4_spec_table;

#ifdef __cplusplus
}
#endif
#endif
