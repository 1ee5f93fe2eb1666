#pragma once

#include "bare_loop/log_file.h"
#include "common/bytes.h"

#include <map>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

namespace kaas::bench {

/// Where a batch stands. In one file for all, neighbours in a partition need not be neighbours
/// there.
struct BatchPlace {
    int64_t base_offset;
    off_t position;
    size_t size;
};

struct Partition {
    std::shared_ptr<LogFile> file;
    int64_t next_offset = 0;
    std::vector<BatchPlace> places;

    /// The committed batches from `offset` on that stand side by side in the file and fit in
    /// `max_bytes`; the first one always fits. Empty if there are none.
    struct Range {
        off_t position = 0;
        size_t size = 0;
    };
    [[nodiscard]] Range find(int64_t offset, size_t max_bytes) const;
};

struct BareTopic {
    TopicId id{};
    std::vector<Partition> partitions;
};

/// All topics, in memory, by id. Thread: the network thread.
class Topics {
public:
    struct Options {
        std::string directory;
        bool single_file = false;
        size_t zero_fill = 0;
    };

    explicit Topics(Options options);

    BareTopic& create(std::string_view name, int partitions);
    void remove(std::string_view name);
    BareTopic* find(std::string_view name);
    BareTopic* find(const TopicId& id);

private:
    std::shared_ptr<LogFile> make_file();

    Options options_;
    std::shared_ptr<LogFile> single_file_;
    std::map<std::string, TopicId, std::less<>> ids_;
    std::map<TopicId, BareTopic> topics_;
    int64_t next_id_ = 1;
    int64_t next_file_ = 1;
};

}  // namespace kaas::bench
