#include "wire/api.h"

#include "base/assert.h"
#include "wire/api_key.h"

#include <algorithm>  // NOLINT(misc-include-cleaner): ranges::lower_bound
#include <cstdint>

namespace kaas::wire {

const Api* find_api(std::int16_t key) {
    auto by_key = [](const Api& row) { return static_cast<std::int16_t>(row.key); };
    auto at = std::ranges::lower_bound(kApis, key, {}, by_key);
    return at != kApis.end() && by_key(*at) == key ? &*at : nullptr;
}

const Api& api(ApiKey key) {
    const Api* row = find_api(static_cast<std::int16_t>(key));
    KAAS_ASSERT(row != nullptr);
    return *row;
}

}  // namespace kaas::wire
