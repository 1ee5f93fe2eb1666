#pragma once

#include "storage/error.h"
#include "storage/memory_volume.h"

#include <cstdint>
#include <optional>

namespace kaas::storage::testing {

/// A trouble of a volume that lasts for some file operations: what a hook asks about each.
class Spell {
public:
    enum class Kind { kNone, kFull, kReadOnly, kTooManyOpen };

    Spell() = default;
    Spell(Kind kind, std::int64_t steps) : kind_(kind), steps_(steps) {}

    [[nodiscard]] std::optional<Fault> strike(Operation operation) {
        if (kind_ == Kind::kNone || steps_-- == 0) {
            kind_ = Kind::kNone;
            return std::nullopt;
        }
        const bool makes_file = operation == Operation::kCreate;
        const bool opens = makes_file || operation == Operation::kOpen;
        const bool makes =
            makes_file || operation == Operation::kMakeDirectory || operation == Operation::kWrite;
        const bool removes =
            operation == Operation::kUnlink || operation == Operation::kRemoveDirectory;
        if (kind_ == Kind::kTooManyOpen && opens) return Fault{.code = ErrorCode::kTooManyOpen};
        if (kind_ == Kind::kReadOnly && (makes || removes)) return Fault{};
        if (kind_ == Kind::kFull && makes)
            return Fault{.code = ErrorCode::kNoSpace, .effect = Fault::Effect::kHalf};
        return std::nullopt;
    }

private:
    Kind kind_ = Kind::kNone;
    std::int64_t steps_ = 0;
};

}  // namespace kaas::storage::testing
