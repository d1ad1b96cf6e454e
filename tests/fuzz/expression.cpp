// Fuzzes the expression grammar: every entry point, and that errors lie inside the text and say something.
// clang++-19 -std=c++20 -g -O1 -fsanitize=fuzzer,address,undefined -I. -Isdk/include \
//     tests/fuzz/expression.cpp dsl/expression_grammar.cpp dsl/document.cpp dsl/source_map.cpp -lfmt
#include "dsl/expression.hpp"

#include <cstdint>
#include <cstdlib>
#include <string_view>

namespace {

template <class T> void check(std::string_view text, const dsv4::dsl::Parsed<T>& parsed) {
    const auto* error = std::get_if<dsv4::dsl::ExpressionError>(&parsed);
    if (error == nullptr) return;
    if (error->begin > error->end || error->end > text.size() || error->message.empty()) std::abort();
}

void check_node(std::string_view text, const dsv4::dsl::Expression& node) {
    if (node.begin > node.end || node.end > text.size()) std::abort();
    for (const dsv4::dsl::Expression& operand : node.operands) check_node(text, operand);
}

} // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
    using namespace dsv4::dsl;
    const std::string_view text(reinterpret_cast<const char*>(data), size);
    check(text, parse_size(text));
    check(text, parse_count(text));
    check(text, parse_duration_us(text));
    check(text, parse_topology(text));
    check(text, parse_version(text));
    const auto predicate = parse_predicate(text);
    check(text, predicate);
    if (const auto* node = std::get_if<Expression>(&predicate)) check_node(text, *node);
    return 0;
}
