// Parts of cases and of their outputs.
#include "core/conformance/select_rows.hpp"
#include "tests/support/catch.hpp"

using namespace dsv4;
using namespace dsv4::conformance;

namespace {

// Five rows, of which 0, 2 and 3 have logits; a byte of the input x is its row, one of z its logits row.
Case five_rows() {
    Case c;
    program::Program p;
    p.inputs = {p.value("x", DSV4_U8, {program::rows, 2}), p.value("z", DSV4_U8, {program::logit_rows, 1})};
    p.outputs = {p.value("y", DSV4_U8, {program::rows, 1}), p.value("l", DSV4_U8, {program::logit_rows, 1})};
    c.programs = {p};
    Step step;
    for (int i = 0; i < 5; ++i)
        step.rows.push_back({0, i, i, i == 0 || i == 2 || i == 3 ? DSV4_ROW_LOGITS : 0u, DSV4_INPUT_GIVEN});
    step.inputs["x"] = {0, 0, 1, 1, 2, 2, 3, 3, 4, 4};
    step.inputs["z"] = {0, 2, 3};
    c.steps = {step};
    return c;
}

} // namespace

TEST_CASE("a part of a case has its rows and their inputs") {
    const Case part = select_rows(five_rows(), {1, 2, 4});
    REQUIRE(part.steps[0].rows.size() == 3);
    CHECK(part.steps[0].rows[2].token == 4);
    CHECK(part.steps[0].inputs.at("x") == Bytes{1, 1, 2, 2, 4, 4});
    CHECK(part.steps[0].inputs.at("z") == Bytes{2});
    CHECK(select_rows(five_rows(), {}).steps[0].inputs.at("x").empty());
}

TEST_CASE("outputs of some rows are taken out of those that ran") {
    CaseOutput out;
    out.steps.resize(1);
    out.steps[0].values["y"] = {10, 12, 13, 14}; // of rows 0, 2, 3, 4
    out.steps[0].values["l"] = {20, 22, 23};
    const auto part = select_outputs(five_rows(), out, {0, 2, 3, 4}, {2, 4});
    CHECK(part.steps[0].values.at("y") == Bytes{12, 14});
    CHECK(part.steps[0].values.at("l") == Bytes{22});
}

TEST_CASE("the sample has small batches whole and both ends of large ones") {
    const auto rows = sample_rows({0, 1, 2, 6, 300});
    for (std::size_t row : {0, 1, 2, 3, 4, 5, 6, 7, 299}) CHECK(std::find(rows.begin(), rows.end(), row) != rows.end());
    CHECK(rows.size() < 40);
    CHECK(std::is_sorted(rows.begin(), rows.end()));
    CHECK(sample_rows({0}).empty());
}
