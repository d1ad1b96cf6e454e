// What the compilers of single ops work with: typed access to an op's values, weights, states and attributes.
#pragma once

#include <initializer_list>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>

#include "../kernels/linear.hpp"
#include "../kernels/rope.hpp"
#include "executable.hpp"

namespace dsv4::cpu {

// Element types an op accepts for a value.
enum class Element : std::uint8_t {
    act, // f32 in `score`, bf16 in `serve`
    f32,
    act_or_f32,
    i32,
};

class Builder {
  public:
    struct Count {
        std::size_t least, most;
        Count(std::size_t exactly) : least(exactly), most(exactly) {}
        Count(std::size_t low, std::size_t high) : least(low), most(high) {}
    };

    Builder(const program::Program& program, const program::Op& op, Executable& into, WeightStore* weights,
            const StateStore* state, std::span<const std::size_t> buffers, std::span<const KindLayout> layouts)
        : program_(program),
          op_(op),
          into_(into),
          weights_(weights),
          state_(state),
          buffers_(buffers),
          layouts_(layouts) {}

    const program::Op& op() const { return op_; }
    Executable& executable() { return into_; }
    const Numerics& numerics() const { return into_.numerics; }
    std::size_t inputs() const { return op_.inputs.size(); }
    std::size_t weights() const { return op_.weights.size(); }
    std::size_t states() const { return op_.states.size(); }
    [[noreturn]] void refuse(const std::string& why) const; // "op attend/1: <why>"

    // Refuses another number of inputs, weights, states or outputs, and attributes that are not listed.
    void arity(Count inputs, Count weights, Count states, Count outputs) const;
    void attributes(std::initializer_list<std::string_view> names) const;
    static constexpr std::size_t any = 0;

    // Values. `width`: elements a row, or any.
    ValueRef input(std::size_t i, Element element, std::size_t width = any) const;
    ValueRef output(std::size_t i, Element element, std::size_t width = any) const;
    // Of a logits input: the value before the mask op that made it, or the value itself.
    ValueRef unmasked(std::size_t i) const;
    bool output_rounds(std::size_t i) const; // declared as bf16
    // Constant dimension `dim` of an output or input.
    std::size_t output_dim(std::size_t i, std::size_t dim) const;
    std::size_t input_dim(std::size_t i, std::size_t dim) const;

    // Weights. `any` dimensions are taken from the Program.
    Matrix matrix(std::size_t i, std::size_t rows = any, std::size_t cols = any) const;
    std::vector<Matrix> stack(std::size_t i, std::size_t count, std::size_t rows = any, std::size_t cols = any) const;
    std::span<const float> vector(std::size_t i, std::size_t elements) const;     // f32 or bf16
    std::span<const std::int32_t> table(std::size_t i, std::int64_t limit) const; // i32 or i64
    std::size_t weight_dim(std::size_t i, std::size_t dim) const;

    StateRef state(std::size_t i, std::initializer_list<std::int32_t> kinds, std::size_t width) const;
    void need(const StateRef& state, Need::Span span, std::int64_t reach = 1, std::int64_t ratio = 1);

    // Attributes.
    float number(std::string_view name) const; // finite
    std::size_t count(std::string_view name, std::int64_t least, std::int64_t most) const;
    bool flag(std::string_view name) const;                         // 0 or 1
    Quantiser quantiser() const;                                    // attribute `quant`
    std::shared_ptr<const RopeTable> rope(std::size_t width) const; // the six rotation attributes; rope_dim <= width

    // Ids of rows are read by this op and must be below `limit`.
    void limit_tokens(std::size_t limit);

  private:
    ValueRef value(program::ValueId id, const std::string& label, Element element, std::size_t width) const;
    const program::Weight& weight(std::size_t i) const { return program_.weights[op_.weights[i]]; }
    std::size_t dim(const program::Value& value, const std::string& label, std::size_t at) const;

    const program::Program& program_;
    const program::Op& op_;
    Executable& into_;
    WeightStore* weights_;
    const StateStore* state_;
    std::span<const std::size_t> buffers_; // of each value
    std::span<const KindLayout> layouts_;
};

// The names of the six rotation attributes, for Builder::attributes.
#define DSV4_CPU_ROTATION "rope_dim", "rope_theta", "rope_factor", "rope_original", "rope_beta_fast", "rope_beta_slow"

using StepCompiler = std::function<void(Run&)> (*)(Builder&);
struct OpEntry {
    std::string_view name;
    std::uint32_t version;
    StepCompiler compile;
};
// Every op this backend runs.
std::span<const OpEntry> op_table();

} // namespace dsv4::cpu
