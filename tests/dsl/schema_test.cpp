// The schema table itself, and suggestions.
#include "dsl/schema.hpp"
#include "dsl/suggest.hpp"
#include "tests/support/catch.hpp"

#include <set>

using namespace dsv4::dsl;

TEST_CASE("every key stands once, below a table, with a sentence") {
    const Schema& schema = Schema::pipeline();
    std::set<std::string_view> seen;
    for (const Field& field : schema.fields()) {
        INFO(field.path);
        CHECK(seen.insert(field.path).second);
        CHECK(field.doc.size() > 10);
        CHECK(field.doc.back() == '.');
        CHECK(field.doc.front() >= '0');
        CHECK(schema.find(field.path) == &field);
        const std::size_t dot = field.path.rfind('.');
        if (dot != std::string_view::npos) {
            const Field* parent = schema.find(field.path.substr(0, dot));
            REQUIRE(parent != nullptr);
            CHECK((parent->kind == ValueKind::table || parent->kind == ValueKind::table_list));
        }
        CHECK((field.kind == ValueKind::choice) == !field.choices.empty());
    }
}

TEST_CASE("defaults satisfy the schema") {
    // A file that states every default gives no diagnostics of its own.
    const Schema& schema = Schema::pipeline();
    Diagnostics diagnostics;
    SourceMap sources;
    const SourceId id = sources.add("x", "");
    Node root;
    root.range = {id, 0, 0};
    check_schema(schema, root, sources, diagnostics); // adds the defaults
    diagnostics.clear();
    check_schema(schema, root, sources, diagnostics); // checks them
    for (const Diagnostic& diagnostic : diagnostics) {
        INFO(diagnostic.message);
        CHECK(diagnostic.code == codes::required_missing);
    }
    CHECK(diagnostics.size() == 3);
    for (const Field& field : schema.fields()) {
        if (field.fallback.empty()) continue;
        INFO(field.path);
        const Node* node = find(root, field.path);
        REQUIRE(node != nullptr);
        CHECK(node->origin == dsv4::plan::OriginKind::default_);
    }
}

TEST_CASE("other servers' names lead to keys of ours") {
    const Schema& schema = Schema::pipeline();
    for (const char* name : {"gpu_memory_utilization", "num_speculative_tokens", "ctx_size"}) {
        const ForeignName* foreign = schema.foreign(name);
        REQUIRE(foreign != nullptr);
        CHECK(schema.find(foreign->native) != nullptr);
    }
    CHECK(schema.foreign("dtype") == nullptr);
}

TEST_CASE("pools of a disaggregated deployment share their keys") {
    const Schema& schema = Schema::pipeline();
    CHECK(schema.find("disagg.decode.tp") == schema.find("disagg.prefill.tp"));
    CHECK(schema.find("disagg.decode") != schema.find("disagg.prefill"));
    CHECK(schema.find("disagg.decode.nothing") == nullptr);
}

TEST_CASE("the reference page names every key") {
    const std::string page = schema_markdown(Schema::pipeline());
    for (const Field& field : Schema::pipeline().fields()) {
        INFO(field.path);
        if (field.kind == ValueKind::table)
            CHECK_THAT(page, ContainsSubstring("## `[" + std::string(field.path) + "]`"));
        else if (field.kind != ValueKind::table_list)
            CHECK_THAT(page, ContainsSubstring("| `" + std::string(field.key()) + "` |"));
    }
    CHECK_THAT(page, ContainsSubstring("| `block_size` | an integer, 1 to 1048576 | `256` | Tokens in one block. |"));
}

TEST_CASE("edit distances") {
    CHECK(edit_distance("", "", 2) == 0);
    CHECK(edit_distance("kitten", "sitting", 5) == 3);
    CHECK(edit_distance("dytpe", "dtype", 2) == 1); // neighbours swapped
    CHECK(edit_distance("abc", "", 5) == 3);
    CHECK(edit_distance("abcdef", "uvwxyz", 2) == 3); // more than the limit
    const std::string_view names[] = {"tp", "dp", "dtype", "block_size"};
    CHECK(nearest("dtpye", names) == "dtype");
    CHECK(nearest("block-size", names) == "block_size");
    CHECK(nearest("blck_siz", names) == "block_size"); // two changes
    CHECK(nearest("blk_siz", names).empty());          // three
    CHECK(nearest("xx", names).empty());               // two changes of two letters are no likeness
    CHECK(nearest("utilization", names).empty());
}
