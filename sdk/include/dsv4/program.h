/* The Program: the model as coarse ops over typed tensors, as it crosses the boundary.
 *
 * A Program crosses as one binary form, little-endian, described at the end of this file; dsv4/sdk/program.hpp encodes,
 * decodes (checking every size) and prints it. What each op computes, its inputs, weights, states and attributes, is in
 * docs/ops.md; a backend refuses an op, version or attribute it does not know by name.
 */
#ifndef DSV4_PROGRAM_H
#define DSV4_PROGRAM_H

#include "dsv4/abi.h"

#ifdef __cplusplus
extern "C" {
#endif

#define DSV4_PROGRAM_MAGIC "DSV4PROG"
#define DSV4_PROGRAM_VERSION 1

typedef enum dsv4_precision {
    DSV4_SCORE = 1, /* float32 activations on exactly dequantised weights, nothing else rounded */
    DSV4_SERVE = 2  /* the publisher's rounding */
} dsv4_precision;

/* Element type of a value or a weight. */
typedef enum dsv4_element {
    DSV4_F32 = 1,
    DSV4_BF16 = 2,
    DSV4_F16 = 3,
    DSV4_I32 = 4,
    DSV4_I64 = 5,
    DSV4_F8_E4M3 = 6,
    DSV4_F4_E2M1 = 7, /* two a byte, element 2j in the low nibble of byte j */
    DSV4_I4 = 8,
    DSV4_U8 = 9,
    DSV4_GGUF = 10 /* dsv4_format.gguf_type says which */
} dsv4_element;

typedef enum dsv4_scale {
    DSV4_SCALE_NONE = 0,
    DSV4_SCALE_E8M0 = 1, /* 2^(byte-127); byte 255 is NaN */
    DSV4_SCALE_E4M3 = 2,
    DSV4_SCALE_F32 = 3,
    DSV4_SCALE_F16 = 4
} dsv4_scale;

/* A weight's stored type: elements, and one scale a block of block_rows x block_cols of the [out, in] matrix. The scale
 * grid starts at element (0,0); the last blocks may be short. */
typedef struct dsv4_format {
    uint32_t element; /* dsv4_element */
    uint32_t scale;   /* dsv4_scale */
    uint32_t block_rows;
    uint32_t block_cols;
    uint32_t global_scale; /* 1: one more fp32 factor for the whole tensor, delivered after the block scales */
    uint32_t gguf_type;
} dsv4_format;

/* Bytes of one part of a weight (a weight of one dimension is a matrix of one row):
 *   data    rows x columns x element size; F4_E2M1 and I4: rows x ceil(columns / 2)
 *   scales  ceil(rows / block_rows) x ceil(columns / block_cols) x size of the scale type, row-major
 *   global  4 bytes behind the scales of every part, where global_scale is 1
 *   GGUF    the bytes of the ggml type for rows x columns, scales inside
 * dsv4::program::part_bytes computes them. */

/* Symbolic dimensions of values. R never appears in Program inputs or outputs. Positive numbers are constants. */
#define DSV4_DIM_ROWS (-1)     /* N: rows of the batch, 0 legal */
#define DSV4_DIM_LOGITS (-2)   /* M: rows flagged DSV4_ROW_LOGITS */
#define DSV4_DIM_RECEIVED (-3) /* R: rows received by dispatch */

/* State kinds. A kind is paged by position unless said otherwise: page number = position / positions_per_page, and
 * one page id stands for that page in all layers of the kind. Within a page, row r of a kind with ratio m holds what
 * position page*positions_per_page + r*m .. + m-1 produced. */
typedef enum dsv4_state_kind {
    DSV4_STATE_WINDOW = 1,      /* sliding window KV, one row a position, reach = window; 64 positions a page */
    DSV4_STATE_CSA = 2,         /* compressed KV, ratio 4, grows; 256 positions = 64 rows a page */
    DSV4_STATE_HCA = 3,         /* compressed KV, ratio 128, grows; 256 positions = 2 rows a page */
    DSV4_STATE_INDEX = 4,       /* indexer keys, ratio 4, grow; 256 positions = 64 rows a page */
    DSV4_STATE_CSA_PARTIAL = 5, /* compressor partials (value, gate), ratio 4: one row a position, reach 8; 4 a page */
    DSV4_STATE_HCA_PARTIAL = 6, /* ratio 128: one row a position, reach 128; 64 a page */
    DSV4_STATE_INDEX_PARTIAL = 7, /* indexer compressor partials: one row a position, reach 8; 4 a page */
    DSV4_STATE_DRAFT_WINDOW = 8,  /* draft stages' window KV: one row a position, reach = window; 64 a page */
    DSV4_STATE_TOKEN_COUNTS = 9   /* per slot, not paged: occurrences of each token, for penalties; no pool */
} dsv4_state_kind;
#define DSV4_STATE_KIND_COUNT 10 /* kinds of this minor are below */

/* Binary form, version 1. u8/u32/i32/i64/f64 are little-endian; text = u32 bytes, then UTF-8; list<T> = u32 count, T...
 *
 *   magic "DSV4PROG" | u32 version | u32 total_bytes | text name | u32 precision
 *   | list<value> | list<weight> | list<state> | list<op> | list<u32 value> inputs | list<u32 value> outputs
 *   value  = text name | u32 element | list<i64> dims
 *   weight = text name | u32 element, scale, block_rows, block_cols, global_scale, gguf_type | list<i64> dims
 *          | i32 slice_dim (-1: whole) | i64 slice_begin | i64 slice_end
 *   state  = u32 kind | i32 layer | list<u32> row_dims | u32 element
 *   op     = text name | u32 version | list<u32 value> inputs | list<u32 weight> weights | list<u32 state> states
 *          | list<u32 value> outputs | list<attribute>
 *   attribute = text name | u8 type (1 int, 2 float, 3 text, 4 list of int) | i64 / f64 / text / list<i64>
 *
 * Ops are in execution order; every value is written by exactly one op or is an input, before it is read. */

#ifdef __cplusplus
}
#endif
#endif
