// Checks one value against its field: type, range, enumeration, expression; and reports what is wrong. Part of the
// schema pass.
#pragma once

#include "dsl/expression.hpp"
#include "dsl/schema.hpp"

namespace dsv4::dsl {

class ValueCheck {
  public:
    ValueCheck(const SourceMap& sources, Diagnostics& diagnostics) : sources_(sources), diagnostics_(diagnostics) {}

    // For every kind but tables and lists of tables. `name` is what messages call the value. Makes it regular or
    // poisons it.
    void check(Node& node, const Field& field, const std::string& name);

    // What it returns is valid until the next report.
    Diagnostic& report(DiagnosticCode code, std::string message, SourceRange range, std::string label);
    static void suggest(Diagnostic& diagnostic, std::string title, SourceRange range, std::string replacement,
                        Applicability applicability);
    void wrong_type(Node& node, const Field& field, std::string_view name);

  private:
    // The same value in the wanted type, where there is one.
    std::string literal_of(const Node& node, const Field& field) const;
    static std::string example(const Field& field);
    // The place of part of a string's text: exact where the text stands in the source letter by letter, else the whole.
    SourceRange part_of(const Node& node, std::size_t begin, std::size_t end) const;
    void expression_error(Node& node, const Field& field, std::string_view name, const ExpressionError& error);
    void out_of_range(Node& node, const Field& field, std::string_view name);
    void check_limits(Node& node, const Field& field, std::string_view name);
    void check_choice(Node& node, const Field& field, std::string_view name);
    void check_list(Node& node, const Field& field, const std::string& name, Node::Kind element);
    static void make_integer(Node& node, std::int64_t value);
    void check_size(Node& node, const Field& field, const std::string& name);
    void check_count(Node& node, const Field& field, const std::string& name);
    void check_length(Node& node, const Field& field, const std::string& name);
    void check_duration(Node& node, const Field& field, const std::string& name);
    template <class T>
    void check_expression(Node& node, const Field& field, const std::string& name,
                          Parsed<T> (*parse)(std::string_view));
    void check_code(Node& node, const Field& field, const std::string& name);

    const SourceMap& sources_;
    Diagnostics& diagnostics_;
};

} // namespace dsv4::dsl
