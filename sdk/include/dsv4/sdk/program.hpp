// The Program as a C++ value: build it, encode it, decode it with every size checked, print it.
//
// Ops are documented in docs/ops.md, the binary form at the end of dsv4/program.h. Values are pure data: any thread.
#pragma once

#include "dsv4/program.h"
#include "dsv4/sdk/result.hpp"

#include <cstdio>
#include <cstring>
#include <map>
#include <span>
#include <string>
#include <string_view>
#include <variant>
#include <vector>

namespace dsv4::program {

using ValueId = std::uint32_t;
using WeightId = std::uint32_t;
using StateId = std::uint32_t;

constexpr std::int64_t rows = DSV4_DIM_ROWS;
constexpr std::int64_t logit_rows = DSV4_DIM_LOGITS;
constexpr std::int64_t received_rows = DSV4_DIM_RECEIVED;

constexpr std::size_t max_program_bytes = std::size_t{64} << 20;

// Weight formats by their usual names.
namespace formats {
constexpr dsv4_format plain(dsv4_element e) { return {std::uint32_t(e), DSV4_SCALE_NONE, 0, 0, 0, 0}; }
constexpr dsv4_format f32 = plain(DSV4_F32);
constexpr dsv4_format bf16 = plain(DSV4_BF16);
constexpr dsv4_format f16 = plain(DSV4_F16);
constexpr dsv4_format i32 = plain(DSV4_I32);
constexpr dsv4_format i64 = plain(DSV4_I64);
constexpr dsv4_format fp8_block128{DSV4_F8_E4M3, DSV4_SCALE_E8M0, 128, 128, 0, 0};
constexpr dsv4_format fp4_block32{DSV4_F4_E2M1, DSV4_SCALE_E8M0, 1, 32, 0, 0};
constexpr dsv4_format nvfp4_block16{DSV4_F4_E2M1, DSV4_SCALE_E4M3, 1, 16, 1, 0};
} // namespace formats

constexpr bool same_format(const dsv4_format& a, const dsv4_format& b) {
    return a.element == b.element && a.scale == b.scale && a.block_rows == b.block_rows &&
           a.block_cols == b.block_cols && a.global_scale == b.global_scale && a.gguf_type == b.gguf_type;
}

struct Value {
    std::string name;
    dsv4_element element = DSV4_F32;
    std::vector<std::int64_t> dims; // outermost first; negative: symbolic
};

struct Weight {
    std::string name; // canonical
    dsv4_format format = formats::f32;
    std::vector<std::int64_t> dims; // of the whole weight, before slicing
    std::int32_t slice_dim = -1;
    std::int64_t slice_begin = 0, slice_end = 0;
};

struct State {
    dsv4_state_kind kind = DSV4_STATE_WINDOW;
    std::int32_t layer = 0;
    std::vector<std::uint32_t> row_dims; // elements of one row, e.g. {2, 1024} for partials (value, gate)
    dsv4_element element = DSV4_F32;     // of the row as the model sees it; storage is the backend's
};

using Attribute = std::variant<std::int64_t, double, std::string, std::vector<std::int64_t>>;

struct Op {
    std::string name;
    std::uint32_t version = 1;
    std::vector<ValueId> inputs;
    std::vector<WeightId> weights;
    std::vector<StateId> states;
    std::vector<ValueId> outputs;
    std::map<std::string, Attribute, std::less<>> attributes;

    // The attribute, or Failure(unsupported) naming op and attribute when it is missing or of another type.
    template <class T> const T& get(std::string_view key) const {
        auto it = attributes.find(key);
        if (it == attributes.end())
            throw Failure(Code::unsupported, "op " + label() + " lacks the attribute '" + std::string(key) + "'");
        if (auto* v = std::get_if<T>(&it->second)) return *v;
        throw Failure(Code::unsupported,
                      "attribute '" + std::string(key) + "' of op " + label() + " has another type than expected");
    }
    std::int64_t integer(std::string_view key) const { return get<std::int64_t>(key); }
    double number(std::string_view key) const { return get<double>(key); }
    const std::string& text(std::string_view key) const { return get<std::string>(key); }
    std::string label() const { return name + "/" + std::to_string(version); }
};

struct Program {
    std::string name;
    dsv4_precision precision = DSV4_SERVE;
    std::vector<Value> values;
    std::vector<Weight> weights;
    std::vector<State> states;
    std::vector<Op> ops;
    std::vector<ValueId> inputs;
    std::vector<ValueId> outputs;

    ValueId value(std::string value_name, dsv4_element element, std::vector<std::int64_t> dims) {
        values.push_back({std::move(value_name), element, std::move(dims)});
        return ValueId(values.size() - 1);
    }
    // The id of a weight; asking twice for a name gives the same id.
    WeightId weight(std::string weight_name, dsv4_format format, std::vector<std::int64_t> dims) {
        for (WeightId i = 0; i < weights.size(); ++i)
            if (weights[i].name == weight_name && weights[i].slice_dim < 0) return i;
        weights.push_back({std::move(weight_name), format, std::move(dims)});
        return WeightId(weights.size() - 1);
    }
    StateId state(dsv4_state_kind kind, std::int32_t layer, std::vector<std::uint32_t> row_dims, dsv4_element element) {
        for (StateId i = 0; i < states.size(); ++i)
            if (states[i].kind == kind && states[i].layer == layer) return i;
        states.push_back({kind, layer, std::move(row_dims), element});
        return StateId(states.size() - 1);
    }
    Op& op(std::string op_name, std::uint32_t version = 1) {
        ops.push_back({std::move(op_name), version, {}, {}, {}, {}, {}});
        return ops.back();
    }
    // The value of that name, or throws Failure(not_found).
    ValueId find_value(std::string_view value_name) const {
        for (ValueId i = 0; i < values.size(); ++i)
            if (values[i].name == value_name) return i;
        throw Failure(Code::not_found, "program '" + name + "' has no value named '" + std::string(value_name) + "'");
    }
};

namespace detail {

class Writer {
  public:
    template <class T> void number(T v) {
        unsigned char b[sizeof(T)];
        std::memcpy(b, &v, sizeof(T)); // hosts and devices are little-endian
        out.append(reinterpret_cast<const char*>(b), sizeof(T));
    }
    void text(std::string_view s) {
        number(std::uint32_t(s.size()));
        out.append(s);
    }
    template <class T, class F> void list(const std::vector<T>& items, F&& each) {
        number(std::uint32_t(items.size()));
        for (const T& item : items) each(item);
    }
    template <class T> void numbers(const std::vector<T>& items) {
        list(items, [&](const T& v) { number(v); });
    }
    std::string out;
};

class Reader {
  public:
    explicit Reader(std::string_view bytes) : in_(bytes) {}
    template <class T> T number() {
        T v;
        if (in_.size() - at_ < sizeof(T)) fail("it ends in the middle of a number");
        std::memcpy(&v, in_.data() + at_, sizeof(T));
        at_ += sizeof(T);
        return v;
    }
    std::string text() {
        auto n = number<std::uint32_t>();
        if (in_.size() - at_ < n) fail("a text is longer than the rest");
        std::string s(in_.substr(at_, n));
        at_ += n;
        return s;
    }
    // `least` is the smallest size of an item, so that a count is checked before memory is taken for it.
    template <class F> auto list(std::size_t least, F&& each) {
        auto n = number<std::uint32_t>();
        if ((in_.size() - at_) / least < n) fail("a list is longer than the rest");
        std::vector<decltype(each())> items;
        items.reserve(n);
        for (std::uint32_t i = 0; i < n; ++i) items.push_back(each());
        return items;
    }
    template <class T> std::vector<T> numbers() {
        return list(sizeof(T), [&] { return number<T>(); });
    }
    bool done() const { return at_ == in_.size(); }
    [[noreturn]] static void fail(const std::string& why) {
        throw Failure(Code::corrupt, "not a valid Program: " + why);
    }

  private:
    std::string_view in_;
    std::size_t at_ = 0;
};

inline void check_ids(const std::vector<std::uint32_t>& ids, std::size_t limit, const std::string& where) {
    for (auto id : ids)
        if (id >= limit)
            Reader::fail(where + " refers to number " + std::to_string(id) + " of " + std::to_string(limit));
}

} // namespace detail

// Throws Failure(corrupt) unless every id is in range and every value is written once, before it is read.
inline void validate(const Program& p) {
    using detail::Reader;
    if (p.precision != DSV4_SCORE && p.precision != DSV4_SERVE) Reader::fail("unknown precision");
    for (const Value& v : p.values)
        for (auto d : v.dims)
            if (d < received_rows || d == 0 || d > (std::int64_t{1} << 40))
                Reader::fail("value '" + v.name + "' has an impossible dimension");
    for (const Weight& w : p.weights) {
        if (w.dims.empty() || w.dims.size() > 3) Reader::fail("weight '" + w.name + "' must have 1 to 3 dimensions");
        for (auto d : w.dims)
            if (d <= 0 || d > (std::int64_t{1} << 40))
                Reader::fail("weight '" + w.name + "' has an impossible dimension");
        if (w.slice_dim >= 0 && (std::size_t(w.slice_dim) >= w.dims.size() || w.slice_begin < 0 ||
                                 w.slice_end <= w.slice_begin || w.slice_end > w.dims[std::size_t(w.slice_dim)]))
            Reader::fail("weight '" + w.name + "' has an impossible slice");
    }
    for (const State& s : p.states)
        if (s.kind <= 0 || s.kind >= DSV4_STATE_KIND_COUNT) Reader::fail("unknown state kind");
    std::vector<bool> written(p.values.size(), false);
    detail::check_ids(p.inputs, p.values.size(), "the input list");
    detail::check_ids(p.outputs, p.values.size(), "the output list");
    for (auto id : p.inputs) written[id] = true;
    for (const Op& op : p.ops) {
        detail::check_ids(op.inputs, p.values.size(), "op " + op.label());
        detail::check_ids(op.weights, p.weights.size(), "op " + op.label());
        detail::check_ids(op.states, p.states.size(), "op " + op.label());
        detail::check_ids(op.outputs, p.values.size(), "op " + op.label());
        for (auto id : op.inputs)
            if (!written[id])
                Reader::fail("op " + op.label() + " reads '" + p.values[id].name + "' before it is written");
        for (auto id : op.outputs) {
            if (written[id]) Reader::fail("op " + op.label() + " writes '" + p.values[id].name + "' a second time");
            written[id] = true;
        }
    }
    for (const auto* list : {&p.inputs, &p.outputs})
        for (auto id : *list)
            for (auto d : p.values[id].dims)
                if (d == received_rows)
                    Reader::fail("'" + p.values[id].name + "' has R rows, which no input or output may have");
    for (auto id : p.outputs)
        if (!written[id]) Reader::fail("output '" + p.values[id].name + "' is never written");
}

inline std::string encode(const Program& p) {
    detail::Writer w;
    w.out.append(DSV4_PROGRAM_MAGIC, 8);
    w.number(std::uint32_t(DSV4_PROGRAM_VERSION));
    w.number(std::uint32_t(0)); // total, filled in below
    w.text(p.name);
    w.number(std::uint32_t(p.precision));
    w.list(p.values, [&](const Value& v) {
        w.text(v.name);
        w.number(std::uint32_t(v.element));
        w.numbers(v.dims);
    });
    w.list(p.weights, [&](const Weight& v) {
        w.text(v.name);
        for (auto x : {v.format.element, v.format.scale, v.format.block_rows, v.format.block_cols,
                       v.format.global_scale, v.format.gguf_type})
            w.number(x);
        w.numbers(v.dims);
        w.number(v.slice_dim);
        w.number(v.slice_begin);
        w.number(v.slice_end);
    });
    w.list(p.states, [&](const State& s) {
        w.number(std::uint32_t(s.kind));
        w.number(s.layer);
        w.numbers(s.row_dims);
        w.number(std::uint32_t(s.element));
    });
    w.list(p.ops, [&](const Op& op) {
        w.text(op.name);
        w.number(op.version);
        w.numbers(op.inputs);
        w.numbers(op.weights);
        w.numbers(op.states);
        w.numbers(op.outputs);
        w.number(std::uint32_t(op.attributes.size()));
        for (const auto& [key, attribute] : op.attributes) {
            w.text(key);
            w.number(std::uint8_t(attribute.index() + 1));
            if (auto* i = std::get_if<std::int64_t>(&attribute))
                w.number(*i);
            else if (auto* d = std::get_if<double>(&attribute))
                w.number(*d);
            else if (auto* s = std::get_if<std::string>(&attribute))
                w.text(*s);
            else
                w.numbers(std::get<std::vector<std::int64_t>>(attribute));
        }
    });
    w.numbers(p.inputs);
    w.numbers(p.outputs);
    const auto total = std::uint32_t(w.out.size());
    std::memcpy(w.out.data() + 12, &total, sizeof total);
    return std::move(w.out);
}

// Checks the form, then validate(). Throws Failure(corrupt).
inline Program decode(std::string_view bytes) {
    using detail::Reader;
    if (bytes.size() > max_program_bytes) Reader::fail("it is larger than 64 MiB");
    if (bytes.size() < 16 || bytes.substr(0, 8) != DSV4_PROGRAM_MAGIC) Reader::fail("it does not start with DSV4PROG");
    Reader r(bytes.substr(8));
    if (auto v = r.number<std::uint32_t>(); v != DSV4_PROGRAM_VERSION)
        Reader::fail("it has version " + std::to_string(v) + ", this reader knows " +
                     std::to_string(DSV4_PROGRAM_VERSION));
    if (r.number<std::uint32_t>() != bytes.size()) Reader::fail("its stated size is not its size");
    Program p;
    p.name = r.text();
    p.precision = dsv4_precision(r.number<std::uint32_t>());
    p.values = r.list(12, [&] {
        Value v;
        v.name = r.text();
        v.element = dsv4_element(r.number<std::uint32_t>());
        v.dims = r.numbers<std::int64_t>();
        return v;
    });
    p.weights = r.list(52, [&] {
        Weight v;
        v.name = r.text();
        for (auto* x : {&v.format.element, &v.format.scale, &v.format.block_rows, &v.format.block_cols,
                        &v.format.global_scale, &v.format.gguf_type})
            *x = r.number<std::uint32_t>();
        v.dims = r.numbers<std::int64_t>();
        v.slice_dim = r.number<std::int32_t>();
        v.slice_begin = r.number<std::int64_t>();
        v.slice_end = r.number<std::int64_t>();
        return v;
    });
    p.states = r.list(16, [&] {
        State s;
        s.kind = dsv4_state_kind(r.number<std::uint32_t>());
        s.layer = r.number<std::int32_t>();
        s.row_dims = r.numbers<std::uint32_t>();
        s.element = dsv4_element(r.number<std::uint32_t>());
        return s;
    });
    p.ops = r.list(28, [&] {
        Op op;
        op.name = r.text();
        op.version = r.number<std::uint32_t>();
        op.inputs = r.numbers<std::uint32_t>();
        op.weights = r.numbers<std::uint32_t>();
        op.states = r.numbers<std::uint32_t>();
        op.outputs = r.numbers<std::uint32_t>();
        for (auto n = r.number<std::uint32_t>(); n > 0; --n) {
            std::string key = r.text();
            Attribute value;
            switch (r.number<std::uint8_t>()) {
            case 1: value = r.number<std::int64_t>(); break;
            case 2: value = r.number<double>(); break;
            case 3: value = r.text(); break;
            case 4: value = r.numbers<std::int64_t>(); break;
            default: Reader::fail("attribute '" + key + "' has an unknown type");
            }
            if (!op.attributes.emplace(std::move(key), std::move(value)).second)
                Reader::fail("op " + op.label() + " repeats an attribute");
        }
        return op;
    });
    p.inputs = r.numbers<std::uint32_t>();
    p.outputs = r.numbers<std::uint32_t>();
    if (!r.done()) Reader::fail("bytes follow its end");
    validate(p);
    return p;
}

inline std::string_view element_name(dsv4_element e) {
    switch (e) {
    case DSV4_F32: return "f32";
    case DSV4_BF16: return "bf16";
    case DSV4_F16: return "f16";
    case DSV4_I32: return "i32";
    case DSV4_I64: return "i64";
    case DSV4_F8_E4M3: return "f8_e4m3";
    case DSV4_F4_E2M1: return "f4_e2m1";
    case DSV4_I4: return "i4";
    case DSV4_U8: return "u8";
    case DSV4_GGUF: return "gguf";
    }
    return "?";
}

// Bytes of one value element; 0 for packed and unknown types.
inline std::size_t element_bytes(dsv4_element e) {
    switch (e) {
    case DSV4_F32:
    case DSV4_I32: return 4;
    case DSV4_BF16:
    case DSV4_F16: return 2;
    case DSV4_I64: return 8;
    case DSV4_F8_E4M3:
    case DSV4_U8: return 1;
    default: return 0;
    }
}

struct PartBytes {
    std::size_t data = 0;
    std::size_t scale = 0; // block scales, then the global scale
};

// Bytes of one part [rows, columns] of a weight, as dsv4/program.h defines them. Throws Failure(unsupported) for
// formats whose sizes only ggml knows.
inline PartBytes part_bytes(const dsv4_format& f, std::int64_t part_rows, std::int64_t columns) {
    if (f.element == DSV4_GGUF) throw Failure(Code::unsupported, "the size of a GGUF tensor is not computed here");
    const auto r = std::size_t(part_rows), c = std::size_t(columns);
    PartBytes bytes;
    bytes.data = f.element == DSV4_F4_E2M1 || f.element == DSV4_I4 ? r * ((c + 1) / 2)
                                                                   : r * c * element_bytes(dsv4_element(f.element));
    if (f.scale != DSV4_SCALE_NONE) {
        if (f.block_rows == 0 || f.block_cols == 0)
            throw Failure(Code::corrupt, "a scaled format has blocks of no rows or columns");
        const std::size_t width = f.scale == DSV4_SCALE_F32 ? 4 : f.scale == DSV4_SCALE_F16 ? 2 : 1;
        bytes.scale = ((r + f.block_rows - 1) / f.block_rows) * ((c + f.block_cols - 1) / f.block_cols) * width;
    }
    if (f.global_scale) bytes.scale += 4;
    return bytes;
}

inline std::string format_name(const dsv4_format& f) {
    if (same_format(f, formats::fp8_block128)) return "fp8_block128";
    if (same_format(f, formats::fp4_block32)) return "fp4_block32";
    if (same_format(f, formats::nvfp4_block16)) return "nvfp4_block16";
    std::string s(element_name(dsv4_element(f.element)));
    if (f.element == DSV4_GGUF) s += std::to_string(f.gguf_type);
    if (f.scale != DSV4_SCALE_NONE) s += "_block" + std::to_string(f.block_rows) + "x" + std::to_string(f.block_cols);
    return s;
}

inline std::string_view state_name(dsv4_state_kind k) {
    switch (k) {
    case DSV4_STATE_WINDOW: return "window";
    case DSV4_STATE_CSA: return "csa";
    case DSV4_STATE_HCA: return "hca";
    case DSV4_STATE_INDEX: return "index";
    case DSV4_STATE_CSA_PARTIAL: return "csa_partial";
    case DSV4_STATE_HCA_PARTIAL: return "hca_partial";
    case DSV4_STATE_INDEX_PARTIAL: return "index_partial";
    case DSV4_STATE_DRAFT_WINDOW: return "draft_window";
    case DSV4_STATE_TOKEN_COUNTS: return "token_counts";
    default: return "?";
    }
}

// The text form, one op a line:
//   layers.2.q [N,8,128] bf16 = head_norm_rope/1(layers.2.q_raw) {eps=1e-06 rope_dim=64 ...}
inline std::string print(const Program& p) {
    auto dims_text = [](const std::vector<std::int64_t>& dims) {
        std::string s = "[";
        for (std::size_t i = 0; i < dims.size(); ++i) {
            if (i) s += ",";
            s += dims[i] == rows            ? "N"
                 : dims[i] == logit_rows    ? "M"
                 : dims[i] == received_rows ? "R"
                                            : std::to_string(dims[i]);
        }
        return s + "]";
    };
    auto number_text = [](double d) {
        char b[32];
        std::snprintf(b, sizeof b, "%.9g", d);
        return std::string(b);
    };
    std::string s = "program " + p.name + " " + (p.precision == DSV4_SCORE ? "score" : "serve") + "\n";
    for (auto id : p.inputs)
        s += "input  " + p.values[id].name + " " + dims_text(p.values[id].dims) + " " +
             std::string(element_name(p.values[id].element)) + "\n";
    for (const Weight& w : p.weights) {
        s += "weight " + w.name + " " + dims_text(w.dims) + " " + format_name(w.format);
        if (w.slice_dim >= 0)
            s += " slice dim " + std::to_string(w.slice_dim) + " " + std::to_string(w.slice_begin) + ".." +
                 std::to_string(w.slice_end);
        s += "\n";
    }
    for (const State& st : p.states) {
        s += "state  " + std::string(state_name(st.kind)) + "." + std::to_string(st.layer) + " [";
        for (std::size_t i = 0; i < st.row_dims.size(); ++i) s += (i ? "," : "") + std::to_string(st.row_dims[i]);
        s += "] " + std::string(element_name(st.element)) + "\n";
    }
    for (const Op& op : p.ops) {
        for (std::size_t i = 0; i < op.outputs.size(); ++i) {
            const Value& v = p.values[op.outputs[i]];
            s += (i ? ", " : "") + v.name + " " + dims_text(v.dims) + " " + std::string(element_name(v.element));
        }
        s += (op.outputs.empty() ? "" : " = ") + op.label() + "(";
        bool first = true;
        auto argument = [&](const std::string& a) {
            s += (first ? "" : ", ") + a;
            first = false;
        };
        for (auto id : op.inputs) argument(p.values[id].name);
        for (auto id : op.weights) argument("@" + p.weights[id].name);
        for (auto id : op.states)
            argument("#" + std::string(state_name(p.states[id].kind)) + "." + std::to_string(p.states[id].layer));
        s += ")";
        if (!op.attributes.empty()) {
            s += " {";
            bool gap = false;
            for (const auto& [key, a] : op.attributes) {
                s += (gap ? " " : "") + key + "=";
                gap = true;
                if (auto* integer = std::get_if<std::int64_t>(&a))
                    s += std::to_string(*integer);
                else if (auto* real = std::get_if<double>(&a))
                    s += number_text(*real);
                else if (auto* text = std::get_if<std::string>(&a))
                    s += *text;
                else {
                    s += "[";
                    const auto& list = std::get<std::vector<std::int64_t>>(a);
                    for (std::size_t i = 0; i < list.size(); ++i) s += (i ? "," : "") + std::to_string(list[i]);
                    s += "]";
                }
            }
            s += "}";
        }
        s += "\n";
    }
    for (auto id : p.outputs) s += "output " + p.values[id].name + "\n";
    return s;
}

} // namespace dsv4::program
