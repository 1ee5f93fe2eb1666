#include "base/ids.h"
#include "catalog/image.h"
#include "catalog/model.h"
#include "cluster/partition_table.h"
#include "cluster/table_view.h"
#include "cluster/versioned.h"

#include <cstddef>
#include <string_view>
#include <tuple>

namespace kaas::cluster {
namespace {

Hosted look_up(const HostedTopicPtr* hosted, const catalog::Topic* known,
               base::PartitionId partition) {
    const auto at = static_cast<std::size_t>(partition.value());
    if (hosted != nullptr && partition.value() >= 0 && at < (*hosted)->seats.size()) {
        if (const auto& seat = (*hosted)->seats[at]) return seat->get();
    }
    const bool exists = known != nullptr && known->partition(partition) != nullptr;
    return {exists ? Hosting::kNotHere : Hosting::kUnknown, nullptr};
}

}  // namespace

PartitionReader::PartitionReader(const Versioned<TableView>& views) : views_(views) {}
PartitionReader::PartitionReader(PartitionReader&&) noexcept = default;
PartitionReader& PartitionReader::operator=(PartitionReader&&) noexcept = default;
PartitionReader::~PartitionReader() = default;

Hosted PartitionReader::find(const base::TopicId& topic, base::PartitionId partition) {
    const auto& view = *views_.get();
    return look_up(view.by_id.find(topic), view.image->topic(topic), partition);
}

Hosted PartitionReader::find(std::string_view topic, base::PartitionId partition) {
    const auto& view = *views_.get();
    return look_up(view.by_name.find(topic), view.image->topic(topic), partition);
}

const catalog::Image& PartitionReader::image() { return *views_.get()->image; }

void PartitionReader::refresh() { std::ignore = views_.get(); }

}  // namespace kaas::cluster
