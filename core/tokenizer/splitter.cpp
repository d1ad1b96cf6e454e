// Splits on PCRE2, compiled just in time where the system allows it.
#include "core/tokenizer/splitter.hpp"

#include "core/tokenizer/hf_pattern.hpp"
#include "dsv4/sdk/result.hpp"

#include <algorithm>
#include <optional>

#define PCRE2_CODE_UNIT_WIDTH 8
#include <pcre2.h>

namespace dsv4::tokenizer {
namespace {

template <auto free_function> struct Deleter {
    template <class T> void operator()(T* object) const { free_function(object); }
};
using CodePtr = std::unique_ptr<pcre2_code, Deleter<pcre2_code_free>>;
using MatchDataPtr = std::unique_ptr<pcre2_match_data, Deleter<pcre2_match_data_free>>;
using MatchContextPtr = std::unique_ptr<pcre2_match_context, Deleter<pcre2_match_context_free>>;
using CompileContextPtr = std::unique_ptr<pcre2_compile_context, Deleter<pcre2_compile_context_free>>;

constexpr std::uint32_t match_heap_kib = 256 * 1024; // interpreter only

// Backtracking steps for one match: linear in the text, so that a sane pattern never meets the limit and a pathological
// one ends soon.
std::uint32_t step_limit(std::size_t text_bytes) {
    return static_cast<std::uint32_t>(std::min<std::uint64_t>(1'000'000 + 64 * std::uint64_t{text_bytes}, UINT32_MAX));
}

std::string pcre2_message(int error) {
    PCRE2_UCHAR text[256];
    pcre2_get_error_message(error, text, sizeof text);
    return reinterpret_cast<const char*>(text);
}

CodePtr compile(const std::string& pattern) {
    const std::string translated = to_pcre2(pattern);
    const CompileContextPtr context(pcre2_compile_context_create(nullptr));
    if (!context) throw std::bad_alloc();
    pcre2_set_newline(context.get(), PCRE2_NEWLINE_LF); // what `.` stops at, whatever the library was built with
    int error = 0;
    PCRE2_SIZE offset = 0;
    CodePtr code(pcre2_compile(reinterpret_cast<PCRE2_SPTR>(translated.data()), translated.size(),
                               PCRE2_UTF | PCRE2_UCP | PCRE2_NEVER_BACKSLASH_C, &error, &offset, context.get()));
    if (!code) {
        throw Failure(Code::corrupt, "the split pattern '" + pattern + "' does not compile: " + pcre2_message(error),
                      "repair the pattern in tokenizer.json");
    }
    pcre2_jit_compile(code.get(), PCRE2_JIT_COMPLETE); // without it matching is slower and the same
    return code;
}

} // namespace

struct Splitter::Stage {
    CodePtr code;
};

// One call of split(): the match buffers of each stage.
struct Splitter::Run {
    struct Span {
        std::size_t begin, end;
    };

    Run(const std::vector<Stage>& all, std::size_t text_bytes, const std::function<void(std::string_view)>& sink)
        : stages(all), context(pcre2_match_context_create(nullptr)), piece(sink) {
        if (!context) throw std::bad_alloc();
        pcre2_set_match_limit(context.get(), step_limit(text_bytes));
        pcre2_set_heap_limit(context.get(), match_heap_kib);
        for (const Stage& stage : stages) {
            data.emplace_back(pcre2_match_data_create_from_pattern(stage.code.get(), nullptr));
            if (!data.back()) throw std::bad_alloc();
        }
    }

    // The first match at or after `from`.
    std::optional<Span> find(std::size_t stage, std::string_view text, std::size_t from) {
        const pcre2_code* code = stages[stage].code.get();
        pcre2_match_data* match = data[stage].get();
        const auto* subject = reinterpret_cast<PCRE2_SPTR>(text.data());
        int count = pcre2_match(code, subject, text.size(), from, PCRE2_NO_UTF_CHECK, match, context.get());
        if (count == PCRE2_ERROR_JIT_STACKLIMIT) { // the interpreter keeps its state on the heap
            count =
                pcre2_match(code, subject, text.size(), from, PCRE2_NO_UTF_CHECK | PCRE2_NO_JIT, match, context.get());
        }
        if (count == PCRE2_ERROR_NOMATCH) return std::nullopt;
        if (count < 0) {
            throw Failure(Code::exhausted,
                          "pre-tokenisation split " + std::to_string(stage + 1) + " of the tokenizer gave up on " +
                              std::to_string(text.size()) + " bytes of text: " + pcre2_message(count),
                          "the split's pattern needs too many steps on this text; shorten the text");
        }
        const PCRE2_SIZE* span = pcre2_get_ovector_pointer(match);
        return Span{span[0], span[1]};
    }

    void split(std::size_t stage, std::string_view text) {
        if (stage == stages.size()) return piece(text);
        std::size_t from = 0; // where the search goes on
        std::size_t cut = 0;  // end of the last match
        bool has_match = false;
        while (from <= text.size()) {
            const std::optional<Span> match = find(stage, text, from);
            if (!match) break;
            if (match->begin == match->end && has_match && match->begin == cut) {
                // An empty match directly after a match cuts nothing: go on behind the next character.
                do ++from;
                while (from < text.size() && (static_cast<unsigned char>(text[from]) & 0xC0) == 0x80);
                continue;
            }
            if (match->begin > cut) split(stage + 1, text.substr(cut, match->begin - cut));
            if (match->end > match->begin) split(stage + 1, text.substr(match->begin, match->end - match->begin));
            from = cut = match->end;
            has_match = true;
        }
        if (cut < text.size()) split(stage + 1, text.substr(cut));
    }

    const std::vector<Stage>& stages;
    std::vector<MatchDataPtr> data;
    MatchContextPtr context;
    const std::function<void(std::string_view)>& piece;
};

Splitter::Splitter(const std::vector<std::string>& patterns) {
    for (const std::string& pattern : patterns) stages_.push_back({compile(pattern)});
}

Splitter::~Splitter() = default;
Splitter::Splitter(Splitter&&) noexcept = default;
Splitter& Splitter::operator=(Splitter&&) noexcept = default;

void Splitter::split(std::string_view text, const std::function<void(std::string_view)>& piece) const {
    if (text.empty()) return;
    Run(stages_, text.size(), piece).split(0, text);
}

} // namespace dsv4::tokenizer
