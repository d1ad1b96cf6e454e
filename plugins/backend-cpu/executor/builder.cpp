// Checks of an op's parts, each failing with the op's name.
#include "builder.hpp"

#include <algorithm>
#include <cmath>

namespace dsv4::cpu {
namespace {

std::string shape_text(const program::Value& v) {
    std::string s = "'" + v.name + "' [";
    for (std::size_t i = 0; i < v.dims.size(); ++i) {
        const std::int64_t d = v.dims[i];
        s += i > 0 ? "," : "";
        s += d == program::rows            ? "N"
             : d == program::logit_rows    ? "M"
             : d == program::received_rows ? "R"
                                           : std::to_string(d);
    }
    return s + "] " + std::string(program::element_name(v.element));
}

} // namespace

void Builder::refuse(const std::string& why) const {
    throw Failure(Code::unsupported, "op " + op_.label() + ": " + why);
}

void Builder::arity(Count inputs, Count weights, Count states, Count outputs) const {
    const auto check = [&](std::size_t got, const Count& wanted, const char* what) {
        if (got >= wanted.least && got <= wanted.most) return;
        refuse("it has " + std::to_string(got) + " " + what + ", not " + std::to_string(wanted.least) +
               (wanted.most > wanted.least ? " to " + std::to_string(wanted.most) : std::string()));
    };
    check(op_.inputs.size(), inputs, "inputs");
    check(op_.weights.size(), weights, "weights");
    check(op_.states.size(), states, "states");
    check(op_.outputs.size(), outputs, "outputs");
}

void Builder::attributes(std::initializer_list<std::string_view> names) const {
    for (const auto& [name, value] : op_.attributes)
        if (std::find(names.begin(), names.end(), name) == names.end()) refuse("it has no attribute '" + name + "'");
}

ValueRef Builder::value(program::ValueId id, const std::string& label, Element element, std::size_t width) const {
    const program::Value& v = program_.values[id];
    const bool serve = into_.numerics.serve();
    const dsv4_element act = serve ? DSV4_BF16 : DSV4_F32;
    const bool good = (element == Element::act && v.element == act) ||
                      (element == Element::f32 && v.element == DSV4_F32) ||
                      (element == Element::act_or_f32 && (v.element == act || v.element == DSV4_F32)) ||
                      (element == Element::i32 && v.element == DSV4_I32);
    if (!good) refuse(label + " " + shape_text(v) + " has an element type that it does not take in this precision");
    if (v.dims.empty() || v.dims[0] > 0) refuse(label + " " + shape_text(v) + " must begin with N, M or R rows");
    std::size_t elements = 1;
    for (std::size_t i = 1; i < v.dims.size(); ++i) {
        if (v.dims[i] < 0) refuse(label + " " + shape_text(v) + " has a symbolic dimension after the first");
        elements *= static_cast<std::size_t>(v.dims[i]);
        if (elements > (std::size_t{1} << 32))
            refuse(label + " " + shape_text(v) + " has rows of more than 2^32 elements");
    }
    if (width != any && elements != width)
        refuse(label + " " + shape_text(v) + " must have rows of " + std::to_string(width) + " elements");
    return {buffers_[id], elements, v.dims[0] == program::logit_rows};
}

ValueRef Builder::input(std::size_t i, Element element, std::size_t width) const {
    return value(op_.inputs[i], "input", element, width);
}
ValueRef Builder::output(std::size_t i, Element element, std::size_t width) const {
    return value(op_.outputs[i], "output", element, width);
}
ValueRef Builder::unmasked(std::size_t i) const {
    for (const program::Op& op : program_.ops)
        if (op.name == "mask" && op.inputs.size() == 1 && op.outputs.size() == 1 && op.outputs[0] == op_.inputs[i])
            return value(op.inputs[0], "input", Element::f32, any);
    return input(i, Element::f32);
}
bool Builder::output_rounds(std::size_t i) const { return program_.values[op_.outputs[i]].element == DSV4_BF16; }

std::size_t Builder::dim(const program::Value& v, const std::string& label, std::size_t at) const {
    if (at >= v.dims.size() || v.dims[at] <= 0)
        refuse(label + " " + shape_text(v) + " must have a constant dimension " + std::to_string(at));
    return static_cast<std::size_t>(v.dims[at]);
}
std::size_t Builder::output_dim(std::size_t i, std::size_t at) const {
    return dim(program_.values[op_.outputs[i]], "output", at);
}
std::size_t Builder::input_dim(std::size_t i, std::size_t at) const {
    return dim(program_.values[op_.inputs[i]], "input", at);
}

std::size_t Builder::weight_dim(std::size_t i, std::size_t at) const {
    const program::Weight& w = weight(i);
    if (at >= w.dims.size()) refuse("weight '" + w.name + "' must have a dimension " + std::to_string(at));
    return static_cast<std::size_t>(w.dims[at]);
}

std::vector<Matrix> Builder::stack(std::size_t i, std::size_t count, std::size_t rows, std::size_t cols) const {
    const program::Weight& w = weight(i);
    const std::size_t rank = count == any ? 2 : 3;
    const auto differs = [&](std::size_t at, std::size_t wanted) {
        return wanted != any && static_cast<std::size_t>(w.dims[at]) != wanted;
    };
    if (w.slice_dim >= 0) refuse("weight '" + w.name + "' is a slice, which one rank has no use for");
    if (w.dims.size() != rank) refuse("weight '" + w.name + "' must have " + std::to_string(rank) + " dimensions");
    if ((rank == 3 && differs(0, count)) || differs(rank - 2, rows) || differs(rank - 1, cols))
        refuse("weight '" + w.name + "' has another shape than its inputs and outputs ask for");
    WeightFormat format;
    if (!matrix_format(w.format, format))
        refuse("weight '" + w.name + "' has the format " + program::format_name(w.format) +
               ", which the CPU backend does not multiply");
    std::vector<Matrix> out(rank == 3 ? count : 1);
    for (std::size_t part = 0; part < out.size(); ++part) {
        if (weights_) {
            out[part] = weights_->matrix(w, part);
        } else {
            out[part].format = format;
            out[part].rows = static_cast<std::size_t>(w.dims[rank - 2]);
            out[part].cols = static_cast<std::size_t>(w.dims[rank - 1]);
        }
    }
    return out;
}

Matrix Builder::matrix(std::size_t i, std::size_t rows, std::size_t cols) const { return stack(i, any, rows, cols)[0]; }

std::span<const float> Builder::vector(std::size_t i, std::size_t elements) const {
    const program::Weight& w = weight(i);
    std::size_t n = 1;
    for (const std::int64_t d : w.dims) n *= static_cast<std::size_t>(d);
    if (n != elements)
        refuse("weight '" + w.name + "' has " + std::to_string(n) + " elements, not " + std::to_string(elements));
    if (w.slice_dim >= 0) refuse("weight '" + w.name + "' is a slice, which one rank has no use for");
    if (!program::same_format(w.format, program::formats::f32) &&
        !program::same_format(w.format, program::formats::bf16))
        refuse("weight '" + w.name + "' must be f32 or bf16, not " + program::format_name(w.format));
    return weights_ ? weights_->floats(w) : std::span<const float>();
}

std::span<const std::int32_t> Builder::table(std::size_t i, std::int64_t limit) const {
    const program::Weight& w = weight(i);
    if (w.slice_dim >= 0) refuse("weight '" + w.name + "' is a slice, which one rank has no use for");
    if (!program::same_format(w.format, program::formats::i32) &&
        !program::same_format(w.format, program::formats::i64))
        refuse("weight '" + w.name + "' must be i32 or i64, not " + program::format_name(w.format));
    return weights_ ? weights_->integers(w, limit) : std::span<const std::int32_t>();
}

StateRef Builder::state(std::size_t i, std::initializer_list<std::int32_t> kinds, std::size_t width) const {
    const program::State& s = program_.states[op_.states[i]];
    const std::string label =
        "state " + std::string(program::state_name(s.kind)) + " of layer " + std::to_string(s.layer);
    if (std::find(kinds.begin(), kinds.end(), s.kind) == kinds.end()) refuse(label + " is of a kind it does not use");
    const auto here =
        std::find_if(layouts_.begin(), layouts_.end(), [&](const KindLayout& l) { return l.kind == s.kind; });
    if (width != any && here->width != width)
        refuse(label + " has rows of " + std::to_string(here->width) + " elements, not " + std::to_string(width));
    const KindLayout* layout = &*here;
    if (state_) {
        layout = state_->layout(s.kind);
        if (!layout || layout->width != here->width || layout->half != here->half)
            refuse(label + " was not allocated with these rows by state_alloc");
    }
    return {s.kind, layout->paged() ? layout->layer_index(s.layer) : 0, layout->width, layout->positions_per_page,
            layout->half};
}

void Builder::need(const StateRef& state, Need::Span span, std::int64_t reach, std::int64_t ratio) {
    const auto same = [&](const Need& n) {
        return n.kind == state.kind && n.span == span && n.reach == reach && n.ratio == ratio;
    };
    if (std::any_of(into_.needs.begin(), into_.needs.end(), same)) return; // all layers of a kind share its pages
    into_.needs.push_back({state.kind, span, reach, ratio, state.positions_per_page, op_.label()});
}

float Builder::number(std::string_view name) const {
    const double v = op_.number(name);
    if (!std::isfinite(v)) refuse("attribute '" + std::string(name) + "' is not finite");
    return static_cast<float>(v);
}

std::size_t Builder::count(std::string_view name, std::int64_t least, std::int64_t most) const {
    const std::int64_t v = op_.integer(name);
    if (v < least || v > most)
        refuse("attribute '" + std::string(name) + "' is " + std::to_string(v) + ", outside " + std::to_string(least) +
               ".." + std::to_string(most));
    return static_cast<std::size_t>(v);
}

bool Builder::flag(std::string_view name) const { return count(name, 0, 1) == 1; }

Quantiser Builder::quantiser() const {
    const std::string& text = op_.text("quant");
    if (text == "none") return Quantiser::none;
    if (text == "fp8_128") return Quantiser::fp8_128;
    refuse("attribute 'quant' is '" + text + "', not none or fp8_128");
}

std::shared_ptr<const RopeTable> Builder::rope(std::size_t width) const {
    RopeParameters p;
    p.dim = count("rope_dim", 2, static_cast<std::int64_t>(width));
    if (p.dim % 2 != 0) refuse("attribute 'rope_dim' must be even");
    p.theta = op_.number("rope_theta");
    p.factor = op_.number("rope_factor");
    p.original_positions = static_cast<double>(op_.integer("rope_original"));
    p.beta_fast = op_.number("rope_beta_fast");
    p.beta_slow = op_.number("rope_beta_slow");
    if (!(p.theta > 1) || !std::isfinite(p.theta)) refuse("attribute 'rope_theta' must be above 1");
    const bool sane =
        std::isfinite(p.factor) && p.factor >= 1 && p.original_positions > 0 && p.beta_fast > 0 && p.beta_slow > 0;
    if (!sane) refuse("its rope_factor, rope_original, rope_beta_fast or rope_beta_slow is impossible");
    return std::make_shared<const RopeTable>(p);
}

void Builder::limit_tokens(std::size_t limit) {
    const auto l = static_cast<std::int64_t>(limit);
    into_.token_limit = into_.token_limit == 0 ? l : std::min(into_.token_limit, l);
}

} // namespace dsv4::cpu
