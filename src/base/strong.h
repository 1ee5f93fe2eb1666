#pragma once

#include <fmt/format.h>

#include <compare>
#include <concepts>
#include <functional>

namespace kaas::base {

/// An integer with a meaning: two of different `Tag` never mix, and construction is explicit.
///
/// Arithmetic is the little that offsets and epochs need: advance by a plain count, and the
/// distance of two values.
template <class Tag, std::integral Rep>
class Strong {
public:
    using rep = Rep;

    constexpr Strong() = default;
    constexpr explicit Strong(Rep value) : value_(value) {}

    [[nodiscard]] constexpr Rep value() const { return value_; }

    friend constexpr auto operator<=>(Strong, Strong) = default;
    friend constexpr Strong operator+(Strong a, Rep n) {
        return Strong(static_cast<Rep>(a.value_ + n));
    }
    friend constexpr Strong operator-(Strong a, Rep n) {
        return Strong(static_cast<Rep>(a.value_ - n));
    }
    friend constexpr Rep operator-(Strong a, Strong b) {
        return static_cast<Rep>(a.value_ - b.value_);
    }
    constexpr Strong& operator+=(Rep n) { return *this = *this + n; }
    constexpr Strong& operator++() { return *this = *this + Rep{1}; }

private:
    Rep value_{};
};

}  // namespace kaas::base

template <class Tag, class Rep>
struct std::hash<kaas::base::Strong<Tag, Rep>> {
    std::size_t operator()(kaas::base::Strong<Tag, Rep> v) const noexcept {
        return std::hash<Rep>{}(v.value());
    }
};

template <class Tag, class Rep>
struct fmt::formatter<kaas::base::Strong<Tag, Rep>> : fmt::formatter<Rep> {
    auto format(kaas::base::Strong<Tag, Rep> v, fmt::format_context& context) const {
        return fmt::formatter<Rep>::format(v.value(), context);
    }
};
