#include "bare_loop/topics.h"

#include "bare_loop/log_file.h"
#include "common/bytes.h"

#include <algorithm>
#include <cstdint>
#include <cstring>
#include <memory>
#include <string>
#include <string_view>
#include <utility>

namespace kaas::bench {

Partition::Range Partition::find(int64_t offset, size_t max_bytes) const {
    Range range;
    const auto committed = file->committed();
    auto place = std::lower_bound(
        places.begin(), places.end(), offset,
        [](const BatchPlace& one, int64_t wanted) { return one.base_offset < wanted; });
    for (; place != places.end(); ++place) {
        const auto end = place->position + static_cast<off_t>(place->size);
        if (end > committed) break;
        if (range.size == 0) {
            range = {place->position, place->size};
            continue;
        }
        const bool beside = place->position == range.position + static_cast<off_t>(range.size);
        if (!beside || range.size + place->size > max_bytes) break;
        range.size += place->size;
    }
    return range;
}

Topics::Topics(Options options) : options_(std::move(options)) {
    if (options_.single_file) single_file_ = make_file();
}

std::shared_ptr<LogFile> Topics::make_file() {
    const auto path = options_.directory + "/" + std::to_string(next_file_++) + ".log";
    return std::make_shared<LogFile>(path, options_.zero_fill);
}

BareTopic& Topics::create(std::string_view name, int partitions) {
    TopicId id{};
    std::memcpy(id.data(), &next_id_, sizeof next_id_);
    ++next_id_;
    ids_.emplace(name, id);
    auto& topic = topics_[id];
    topic.id = id;
    for (int i = 0; i < partitions; ++i) {
        topic.partitions.push_back(
            {.file = single_file_ ? single_file_ : make_file(), .places = {}});
    }
    return topic;
}

void Topics::remove(std::string_view name) {
    const auto found = ids_.find(name);
    if (found == ids_.end()) return;
    topics_.erase(found->second);
    ids_.erase(found);
}

BareTopic* Topics::find(std::string_view name) {
    const auto found = ids_.find(name);
    return found == ids_.end() ? nullptr : &topics_.at(found->second);
}

BareTopic* Topics::find(const TopicId& id) {
    const auto found = topics_.find(id);
    return found == topics_.end() ? nullptr : &found->second;
}

}  // namespace kaas::bench
