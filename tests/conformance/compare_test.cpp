// Distances and verdicts of the backend check.
#include "core/conformance/compare.hpp"
#include "tests/support/catch.hpp"

#include <cmath>
#include <cstring>

using namespace dsv4;
using namespace dsv4::conformance;

namespace {

// A case whose only output is `y` [N, width], at positions 0, 1, 2, ... of one slot.
Case case_of(dsv4_element element, std::int64_t width, std::size_t rows, const Tolerance& tolerance) {
    Case c;
    c.op = "test/1";
    program::Program p;
    p.outputs = {p.value("y", element, {program::rows, width})};
    c.programs = {p};
    Step step;
    for (std::size_t i = 0; i < rows; ++i) step.rows.push_back({0, std::int64_t(i), 0, 0, DSV4_INPUT_GIVEN});
    c.steps = {step};
    c.tolerances["y"] = tolerance;
    return c;
}

template <class T> CaseOutput output_of(const std::vector<T>& values) {
    CaseOutput out;
    out.steps.resize(1);
    Bytes& b = out.steps[0].values["y"];
    b.resize(values.size() * sizeof(T));
    std::memcpy(b.data(), values.data(), b.size());
    return out;
}

constexpr Tolerance floats{1e-3, 1e-2, 0};

} // namespace

TEST_CASE("equal outputs are at distance 0 and pass, also without rows") {
    const std::size_t rows = GENERATE(0u, 4u);
    const Case c = case_of(DSV4_F32, 2, rows, floats);
    const auto out = output_of(std::vector<float>(2 * rows, 1.5f));
    const auto result = compare(c, out, out).at("y");
    CHECK(result.failure.empty());
    CHECK(result.distance.p90 == 0);
    CHECK(result.distance.largest == 0);
}

TEST_CASE("distances are relative to the reference's row") {
    const Case c = case_of(DSV4_F32, 2, 3, floats);
    // Rows off by 0, by rms(0, 0.5) / rms(3, 4) = 0.1, and by the same relative to a row ten times as large.
    const auto result =
        compare(c, output_of<float>({3, 4, 3, 4.5f, 30, 45}), output_of<float>({3, 4, 3, 4, 30, 40})).at("y");
    CHECK(result.distance.median == Approx(0.1));
    CHECK(result.distance.p90 == Approx(0.1));
    CHECK(result.distance.largest == Approx(0.125));
    CHECK_THAT(result.failure, ContainsSubstring("median"));
}

TEST_CASE("one NaN in many rows fails, on either side") {
    const Case c = case_of(DSV4_F32, 1, 100, floats);
    std::vector<float> fine(100, 1), broken(100, 1);
    broken[57] = std::nanf("");
    CHECK_THAT(compare(c, output_of(broken), output_of(fine)).at("y").failure, ContainsSubstring("1 rows are NaN"));
    CHECK_THAT(compare(c, output_of(fine), output_of(broken)).at("y").failure, ContainsSubstring("1 rows are NaN"));
    broken[57] = INFINITY;
    CHECK(!compare(c, output_of(broken), output_of(fine)).at("y").failure.empty());
    CHECK(compare(c, output_of(broken), output_of(broken)).at("y").failure.empty()); // a masked logit is -infinity
}

TEST_CASE("sets are compared without their order") {
    Tolerance sets{0, 0, 0, 1, true}, lists{0, 0, 0, 1, false};
    const auto a = output_of<std::int32_t>({1, 2, -1, 7}), b = output_of<std::int32_t>({7, -1, 1, 2});
    CHECK(compare(case_of(DSV4_I32, 4, 1, sets), a, b).at("y").failure.empty());
    CHECK(compare(case_of(DSV4_I32, 4, 1, lists), a, b).at("y").distance.unequal == 1);
    const auto other = output_of<std::int32_t>({7, -1, 1, 3});
    CHECK(compare(case_of(DSV4_I32, 4, 1, sets), other, b).at("y").distance.unequal == 0.25);
}

TEST_CASE("a few wrong rows at an edge are found though no quantile moves") {
    const Case c = case_of(DSV4_F32, 1, 1000, floats);
    std::vector<float> wanted(1000, 1), got = wanted;
    for (std::size_t p = 127; p < 1000; p += 128) got[p] = 1.3f;
    const auto result = compare(c, output_of(got), output_of(wanted)).at("y");
    CHECK(result.failure.empty());
    std::vector<std::string> off;
    for (const auto& [edge, distances] : result.edges)
        if (!judge_edge(edge, distances).empty()) off.push_back(edge);
    CHECK(off == std::vector<std::string>{"rows that end a window of 128"});
}

TEST_CASE("one or two rows of an edge prove nothing") {
    CHECK(judge_edge("rows", {9, 9}).empty());
    CHECK(!judge_edge("rows", {9, 9, 9}).empty());
    CHECK(judge_edge("rows", {0, 0, 9}).empty());
}
