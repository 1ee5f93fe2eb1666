#pragma once

#include "base/ids.h"
#include "catalog/error.h"
#include "coordinator/group.h"
#include "coordinator/group_offsets.h"
#include "coordinator/group_requests.h"
#include "coordinator/transactional_producers.h"
#include "storage/transaction_marker.h"

#include <boost/json/object.hpp>

#include <compare>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <map>
#include <optional>
#include <string>
#include <string_view>

/// The words of a group slot's journal (`docs/coordinators.md` shows them): what stands in a line,
/// and in a picture. Lines are written as text and read as JSON.
namespace kaas::coordinator {

using Assignments = std::map<std::string_view, std::string_view>;
/// By member id, of members that have them.
[[nodiscard]] Assignments assignments_of(const Group& group);

/// The members of a text "key":value, without braces, that says all of a group but its offsets.
/// Members that `assignments` does not name have empty ones.
[[nodiscard]] std::string group_text(const Group& group, const Assignments& assignments);
/// The same for a group that nobody has joined to the end yet.
[[nodiscard]] std::string new_group_text(const Group& group);
/// The same for a group that has nothing but offsets.
[[nodiscard]] std::string simple_group_text(std::string_view group_id);
/// A line that says what `text` says.
[[nodiscard]] std::string group_line(std::string_view text);
/// Errors: kMalformed.
[[nodiscard]] catalog::Result<Group::Stored> parse_group(const boost::json::object& object);

/// A line, and then the group is gone with its offsets.
[[nodiscard]] std::string group_deleted_line(std::string_view group_id);
[[nodiscard]] std::string transaction_ended_line(const storage::Marker& marker,
                                                 std::int64_t now_ms);

/// One commit: of a line, or of a picture, where all of a group that were made alike stand
/// together.
struct CommitHead {
    std::int64_t committed_ms = 0;
    std::optional<std::int64_t> expires_ms{};
    /// Of a commit in a transaction; its epoch stands only in a line.
    std::optional<base::ProducerId> producer{};
    base::ProducerEpoch producer_epoch = base::kNoProducerEpoch;
    bool outdated = false;  ///< `GroupOffsets::Pending`

    friend auto operator<=>(const CommitHead&, const CommitHead&) = default;
};

/// A commit while it is written.
class CommitText {
public:
    /// `group_id`: for a line; without one it is an object of a picture.
    CommitText(const CommitHead& head, std::optional<std::string_view> group_id);
    /// Whose partitions follow. Borrowed until the next topic.
    void topic(std::string_view name, const base::TopicId& id);
    void partition(base::PartitionId partition, base::Offset offset, std::int32_t leader_epoch,
                   std::string_view metadata);
    /// No partition has come.
    [[nodiscard]] bool empty() const { return topics_ == 0; }
    /// The whole object, once.
    [[nodiscard]] std::string take();

private:
    std::string text_;
    std::size_t topics_ = 0;      ///< those that have partitions
    std::size_t partitions_ = 0;  ///< of the topic
    std::string_view topic_{};
    base::TopicId topic_id_{};
};
using SeeOffset =
    std::function<void(std::string_view topic, base::PartitionId partition, OffsetEntry entry)>;
/// Errors: kMalformed; then `see` has heard of a part.
[[nodiscard]] catalog::Result<CommitHead> parse_commit(const boost::json::object& object,
                                                       const SeeOffset& see);

/// A line that says which offsets go, while it is written.
class DeletionLine {
public:
    explicit DeletionLine(std::string_view group_id);
    /// Borrowed until the next topic.
    void topic(std::string_view name) { topic_ = name, partitions_ = 0; }
    void partition(base::PartitionId partition);
    [[nodiscard]] bool empty() const { return topics_ == 0; }
    [[nodiscard]] std::string take();

private:
    std::string text_;
    std::size_t topics_ = 0;
    std::size_t partitions_ = 0;
    std::string_view topic_{};
};
using SeePartition = std::function<void(std::string_view topic, base::PartitionId partition)>;
/// Errors: kMalformed.
[[nodiscard]] catalog::Result<void> parse_deletion(const boost::json::object& object,
                                                   const SeePartition& see);

/// All offsets of a group, as two more members of its object in a picture: `,"offsets":[...]` and
/// `,"pending":[...]`; nothing for those that are none.
[[nodiscard]] std::string offsets_text(const GroupOffsets& offsets);

/// A producer as a picture has it.
void append_producer(std::string& to, base::ProducerId id,
                     const TransactionalProducers::Producer& producer);

}  // namespace kaas::coordinator
