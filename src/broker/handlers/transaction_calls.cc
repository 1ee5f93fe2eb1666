#include "broker/handlers/transaction_calls.h"

#include "base/ids.h"
#include "catalog/slot.h"

#include <cstddef>
#include <string>
#include <string_view>

namespace kaas::broker {

coordinator::TransactionPartition group_slot_of(const Call& call, std::string_view group_id) {
    const std::string topic(catalog::slot_topic(catalog::SlotKind::kGroup));
    const auto* made = call.state().partitions.image().topic(topic);
    // Before the first group there are no slots; then it will be one of so many.
    const auto count = made != nullptr
                           ? made->partitions.size()
                           : static_cast<std::size_t>(
                                 call.services().config.settings.offsets_topic_num_partitions);
    return {topic, catalog::slot_of(group_id, count)};
}

}  // namespace kaas::broker
