#pragma once

#include <expected>
#include <string>
#include <utility>

namespace kaas::base {

/// Why an operation failed: a code that a caller can act on, and context for the person who reads
/// the log (file, offset, partition, errno text).
///
/// Each module has its own `enum class ErrorCode` and aliases `Error` and `Result<T>` on it in its
/// `error.h`. Codes of different modules never mix; they become Kafka codes once, at a handler's
/// edge, in an exhaustive switch.
template <class Code>
struct Error {
    Code code;
    std::string context;

    friend bool operator==(const Error&, const Error&) = default;
};

template <class T, class Code>
using Result = std::expected<T, Error<Code>>;

/// Shorthand for `std::unexpected(Error<Code>{code, context})`.
template <class Code>
[[nodiscard]] std::unexpected<Error<Code>> fail(Code code, std::string context) {
    return std::unexpected(Error<Code>{code, std::move(context)});
}

}  // namespace kaas::base

/// Returns the error of `expression` from the enclosing function, or goes on.
#define KAAS_TRY(expression)                                            \
    do {                                                                \
        if (auto kaas_try_result = (expression); !kaas_try_result) {    \
            return std::unexpected(std::move(kaas_try_result).error()); \
        }                                                               \
    } while (false)

// `name` is declared, so it cannot stand in parentheses.
// NOLINTBEGIN(bugprone-macro-parentheses)
/// Declares `name` as the value of `expression`, or returns its error from the enclosing function.
#define KAAS_TRY_ASSIGN(name, expression)                                         \
    auto name##_result = (expression);                                            \
    if (!name##_result) return std::unexpected(std::move(name##_result).error()); \
    auto name = std::move(*name##_result)
// NOLINTEND(bugprone-macro-parentheses)
