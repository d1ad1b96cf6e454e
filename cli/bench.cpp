// `dsv4 bench NAME ...`: replaces the process by the program of that benchmark, so that `dsv4` itself links no HTTP.
#include "cli/commands.hpp"
#include "cli/terminal.hpp"

#include <cerrno>
#include <filesystem>
#include <fmt/format.h>
#include <string_view>
#include <system_error>
#include <unistd.h>

namespace dsv4::cli {

namespace {

constexpr std::string_view help =
    "Measure a serving endpoint\n"
    "Usage: dsv4 bench NAME [OPTIONS]\n\n"
    "Benchmarks:\n"
    "  serve    Load an OpenAI-compatible endpoint and report its latency and throughput\n\n"
    "dsv4 bench NAME --help lists the options of one.\n";

// Beside this program in a build tree, in libexec of the same prefix when installed.
std::filesystem::path find_program(const std::string& name) {
    const std::filesystem::path here = std::filesystem::read_symlink("/proc/self/exe").parent_path();
    const std::filesystem::path installed = (here / ".." / "libexec" / "dsv4" / name).lexically_normal();
    const std::filesystem::path built = here / name;
    for (const std::filesystem::path& path : {installed, built})
        if (::access(path.c_str(), X_OK) == 0 && std::filesystem::is_regular_file(path)) return path;
    throw Failure(Code::environment,
                  fmt::format("the program '{}' is neither '{}' nor '{}'", name, installed.string(), built.string()),
                  fmt::format("build the target {} or install dsv4 again", name));
}

} // namespace

int bench(const std::vector<std::string>& arguments) {
    return guarded([&]() -> int {
        if (arguments.empty() || arguments[0] == "-h" || arguments[0] == "--help") {
            fmt::print(arguments.empty() ? stderr : stdout, "{}", help);
            return arguments.empty() ? usage : clean;
        }
        if (arguments[0] != "serve")
            throw Failure(Code::invalid, "there is no benchmark '" + arguments[0] + "'", "the benchmarks are: serve");
        const std::string program = find_program("dsv4-bench-serve").string();
        std::vector<std::string> words{program};
        words.insert(words.end(), arguments.begin() + 1, arguments.end());
        std::vector<char*> argv;
        for (std::string& word : words) argv.push_back(word.data());
        argv.push_back(nullptr);
        ::execv(program.c_str(), argv.data());
        throw Failure(Code::environment,
                      fmt::format("cannot start '{}': {}", program, std::generic_category().message(errno)));
    });
}

} // namespace dsv4::cli
