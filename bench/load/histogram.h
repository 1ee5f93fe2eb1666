#pragma once

#include <algorithm>
#include <array>
#include <bit>
#include <cstdint>

namespace kaas::bench {

/// Durations in nanoseconds, log-linear: 64 steps an octave, so a quantile is at most 1.6% too
/// high.
class Histogram {
public:
    void record(int64_t nanoseconds) {
        const auto value = static_cast<uint64_t>(std::max<int64_t>(nanoseconds, 0));
        ++counts_[bucket_of(value)];
        ++count_;
        max_ = std::max(max_, value);
    }

    void clear() { *this = Histogram(); }

    [[nodiscard]] uint64_t count() const { return count_; }
    [[nodiscard]] double max_ms() const { return static_cast<double>(max_) / 1e6; }

    /// The upper edge of the bucket that holds the quantile.
    [[nodiscard]] double quantile_ms(double quantile) const {
        const auto rank = static_cast<uint64_t>(quantile * static_cast<double>(count_));
        uint64_t seen = 0;
        for (size_t bucket = 0; bucket < counts_.size(); ++bucket) {
            seen += counts_[bucket];
            if (seen > rank) {
                return static_cast<double>(std::min(upper_edge(bucket), max_)) / 1e6;
            }
        }
        return max_ms();
    }

private:
    static constexpr unsigned kStepBits = 6;
    static constexpr uint64_t kSteps = 1U << kStepBits;

    static size_t bucket_of(uint64_t value) {
        if (value < kSteps) return value;
        const auto shift = static_cast<unsigned>(std::bit_width(value)) - 1 - kStepBits;
        return (shift + 1) * kSteps + ((value >> shift) - kSteps);
    }
    static uint64_t upper_edge(size_t bucket) {
        if (bucket < kSteps) return bucket;
        const auto shift = bucket / kSteps - 1;
        return ((bucket % kSteps + kSteps + 1) << shift) - 1;
    }

    std::array<uint64_t, (64 - kStepBits + 1) * kSteps> counts_{};
    uint64_t count_ = 0;
    uint64_t max_ = 0;
};

}  // namespace kaas::bench
