// A value or an error, for module edges. Inside a module errors travel as `Failure` exceptions; `guard` turns them into
// a Result where the module ends.
#pragma once

#include <cstdint>
#include <exception>
#include <new>
#include <optional>
#include <string>
#include <type_traits>
#include <utility>
#include <variant>

namespace dsv4 {

// What kind of mistake it was; the numbers are those of dsv4_code in dsv4/abi.h.
enum class Code : std::int32_t {
    ok = 0,
    invalid = 1,     // the caller's input is wrong; `fix` says what to change
    not_found = 2,   // a name, file or symbol does not exist
    unsupported = 3, // understood, and not offered here
    corrupt = 4,     // a file or message contradicts its own format
    exhausted = 5,   // memory, pages or a limit ran out
    environment = 6, // the machine lacks something: device, driver, permission
    cancelled = 7,
    deadline = 8,
    internal = 9, // a defect of this program
};

struct Error {
    Code code = Code::internal;
    std::string message; // one sentence that stands alone and names the thing (file, tensor, op)
    std::string fix;     // what to do about it; may be empty
};

// Thrown inside modules; never crosses a module edge or the plugin boundary.
class Failure : public std::exception {
  public:
    explicit Failure(Error error) : error_(std::move(error)) {}
    Failure(Code code, std::string message, std::string fix = {}) : error_{code, std::move(message), std::move(fix)} {}
    const char* what() const noexcept override { return error_.message.c_str(); }
    const Error& error() const noexcept { return error_; }

  private:
    Error error_;
};

template <class T> class [[nodiscard]] Result {
  public:
    Result(T value) : state_(std::in_place_index<0>, std::move(value)) {}
    Result(Error error) : state_(std::in_place_index<1>, std::move(error)) {}
    bool ok() const noexcept { return state_.index() == 0; }
    explicit operator bool() const noexcept { return ok(); }
    // The value; throws the error as Failure where there is none.
    T& value() & { return check(), std::get<0>(state_); }
    const T& value() const& { return check(), std::get<0>(state_); }
    T&& value() && { return check(), std::get<0>(std::move(state_)); }
    T& operator*() & { return value(); }
    const T& operator*() const& { return value(); }
    T&& operator*() && { return std::move(*this).value(); }
    T* operator->() { return &value(); }
    const T* operator->() const { return &value(); }
    // Only when !ok().
    const Error& error() const { return std::get<1>(state_); }

  private:
    void check() const {
        if (!ok()) throw Failure(std::get<1>(state_));
    }
    std::variant<T, Error> state_;
};

template <> class [[nodiscard]] Result<void> {
  public:
    Result() = default;
    Result(Error error) : error_(std::move(error)) {}
    bool ok() const noexcept { return !error_; }
    explicit operator bool() const noexcept { return ok(); }
    void value() const {
        if (error_) throw Failure(*error_);
    }
    const Error& error() const { return *error_; }

  private:
    std::optional<Error> error_;
};

using Status = Result<void>;

// The exception in flight as an Error; call only inside a catch block.
inline Error current_error() noexcept {
    try {
        throw;
    } catch (const Failure& f) {
        return f.error();
    } catch (const std::bad_alloc&) {
        return {Code::exhausted, "out of memory", {}};
    } catch (const std::exception& e) {
        return {Code::internal, e.what(), {}};
    } catch (...) {
        return {Code::internal, "an exception of unknown type", {}};
    }
}

// Runs `f` and turns whatever it throws into an Error.
template <class F> auto guard(F&& f) -> Result<std::invoke_result_t<F>> {
    try {
        if constexpr (std::is_void_v<std::invoke_result_t<F>>) {
            std::forward<F>(f)();
            return {};
        } else {
            return std::forward<F>(f)();
        }
    } catch (...) {
        return current_error();
    }
}

} // namespace dsv4
