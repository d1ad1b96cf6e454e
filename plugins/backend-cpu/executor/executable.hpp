// A compiled Program: steps over buffers, and what each row of a batch must bring.
#pragma once

#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "../kernels/numerics.hpp"
#include "../kernels/rows.hpp"
#include "dsv4/sdk/backend.hpp"
#include "state.hpp"
#include "weights.hpp"

namespace dsv4::cpu {

class Run;

// A value of the Program in its buffer. Activations are float32 whatever their declared element.
struct ValueRef {
    std::size_t buffer = 0;
    std::size_t width = 0;    // elements a row
    bool logits_rows = false; // M rows, else N
};

// A kind and layer of the state.
struct StateRef {
    std::int32_t kind = 0;
    std::size_t layer_index = 0;
    std::size_t width = 0;
    std::uint32_t positions_per_page = 1;
    bool half = false;
};

// Pages that a row at position p must find in its slot's table, because `op` will touch them.
struct Need {
    enum class Span : std::uint8_t {
        own,     // the page of p
        reach,   // pages of max(0, p - reach + 1) .. p
        closing, // as reach, where a window of `ratio` closes at p
        entry,   // the page of the window that closes at p
        entries, // pages of all windows closed up to p
        before,  // pages of max(0, P - reach) .. P - 1, P the committed length
    };
    std::int32_t kind = 0;
    Span span = Span::own;
    std::int64_t reach = 1;
    std::int64_t ratio = 1;
    std::uint32_t positions_per_page = 1;
    std::string op;
};

struct Step {
    std::string label;             // "attend/1"
    std::function<void(Run&)> run; // throws Failure: the ticket fails as a whole
    std::uint64_t calls = 0;
    double seconds = 0;
};

// What crosses at the Program's edges.
struct EdgeValue {
    std::string name;
    ValueRef value;
    dsv4_element element = DSV4_F32;
    bool integers = false;
};

class Executable final : public sdk::Executable {
  public:
    std::string name;
    Numerics numerics;
    std::vector<Step> steps;
    std::vector<Need> needs;
    std::vector<EdgeValue> inputs, outputs;
    std::vector<std::int32_t> kinds; // paged kinds in use
    std::size_t buffers = 0;         // of each of the two lists below
    std::vector<std::vector<float>> float_buffers;
    std::vector<std::vector<std::int32_t>> integer_buffers;
    std::int64_t token_limit = 0;    // ids a row may carry are below this; 0: ids are not read
    std::size_t mask_vocabulary = 0; // > 0: the Program waits for late masks
    std::uint32_t max_rows = 0, max_slots = 0;
    std::uint64_t state_generation = 0; // of the layouts it was compiled for

    std::uint64_t buffer_bytes() const;
};

// Compiles; Failure(unsupported) names the op, attribute, type or dimension that cannot be. Without `weights` and
// `state` (both null: `supports`) it only checks, and the result must not run.
std::unique_ptr<Executable> compile_program(const program::Program& program, const dsv4_compile_options& options,
                                            Accum accum, WeightStore* weights, const StateStore* state);

} // namespace dsv4::cpu
