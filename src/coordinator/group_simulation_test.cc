// Goal: whatever clients, time and crashes do to a slot's groups, a generation has one leader and
// one assignment, nothing that was answered is lost, and a journal says what was kept. Method:
// histories by seed. Clients join, beat, commit, leave, fall silent, repeat themselves and lose
// answers; the journal settles when it likes; a crash keeps any beginning of it that has all that
// was answered. Offsets are held against a model of a few lines. To replay: KAAS_SEED=<n>.

#include "base/ids.h"
#include "coordinator/testing_members.h"
#include "coordinator/testing_slot.h"
#include "storage/testing_seeds.h"
#include "storage/transaction_marker.h"

#include <fmt/format.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <map>
#include <optional>
#include <random>
#include <set>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace kaas::coordinator::testing {
namespace {

enum class Mutant {
    kNone,
    kForgetfulJournal,  ///< a crash loses what was answered
    kSwappedLines,      ///< a crash changes the order of two lines
    kNoTimers,          ///< silence has no consequence
    kLostMarkers,       ///< transactions end nowhere
};

/// What offsets must be: the accepted requests, in their order.
class OffsetModel {
public:
    struct Operation {
        enum class Kind { kCommit, kPending, kEnd, kDelete, kDeleteGroup } kind;
        std::string group{};
        std::int32_t partition = 0;
        std::int64_t value = 0;
        std::int64_t producer = 0;
        bool commit = false;
        std::size_t lines = 0;  ///< so many lines of the journal say this
    };

    void add(Operation operation) { operations_.push_back(std::move(operation)); }
    void keep(std::size_t lines) {
        std::erase_if(operations_, [&](const auto& one) { return one.lines > lines; });
        rotate();
    }
    void rotate() {
        for (auto& one : operations_) one.lines = 0;
    }

    /// Empty: unstable.
    [[nodiscard]] std::optional<std::int64_t> fetched(const std::string& group,
                                                      std::int32_t partition,
                                                      bool require_stable) const {
        Entry committed;
        std::map<std::int64_t, Entry> pending;
        std::int64_t now = 0;
        for (const auto& one : operations_) {
            ++now;
            const bool here = one.group == group && one.partition == partition;
            switch (one.kind) {
                case Operation::Kind::kCommit:
                    if (here) committed = {now, one.value};
                    break;
                case Operation::Kind::kPending:
                    if (here) pending[one.producer] = {now, one.value};
                    break;
                case Operation::Kind::kEnd:
                    if (auto mine = pending.find(one.producer); mine != pending.end()) {
                        if (one.commit && mine->second.arrival > committed.arrival) {
                            committed = mine->second;
                        }
                        pending.erase(mine);
                    }
                    break;
                case Operation::Kind::kDelete:
                case Operation::Kind::kDeleteGroup:
                    if (here || (one.kind == Operation::Kind::kDeleteGroup && one.group == group)) {
                        committed = {};
                        pending.clear();
                    }
                    break;
            }
        }
        if (require_stable && !pending.empty()) return std::nullopt;
        return committed.value;
    }

private:
    struct Entry {
        std::int64_t arrival = 0;
        std::int64_t value = -1;
    };
    std::vector<Operation> operations_;
};

struct Client {
    enum class Phase { kOut, kJoining, kJoined, kSyncing, kIn };

    std::optional<std::string> instance{};
    std::int16_t version = 9;
    TestMember me{};
    Phase phase = Phase::kOut;
    bool dead = false;
    Reply<JoinGroupAnswer> joining{};
    Reply<SyncGroupAnswer> syncing{};
    int life = 0;  ///< of the group, when it was asked

    [[nodiscard]] MemberIdentity identity() const { return {me.id, instance}; }
    void out(bool forget_id) {
        phase = Phase::kOut;
        if (forget_id) me.id.clear();
    }
};

class GroupSimulation {
public:
    explicit GroupSimulation(std::uint64_t seed, Mutant mutant = Mutant::kNone)
        : random_(seed), mutant_(mutant) {
        slot_.config.max_size = 6;
        for (int i = 0; i < 6; ++i) {
            Client client;
            if (i < 3) client.instance = i < 2 ? "a" : "b";  // two have the same
            client.version = any(2) == 0 ? 9 : static_cast<std::int16_t>(3 + 2 * any(3));
            clients_.push_back(std::move(client));
        }
    }

    /// True when something went wrong, which `fault()` tells.
    bool run() {
        const auto steps = 200 + any(400);
        for (std::size_t i = 0; i < steps && fault_.empty(); ++i) step();
        if (fault_.empty()) calm_down();
        return !fault_.empty();
    }
    [[nodiscard]] const std::string& fault() const { return fault_; }

private:
    std::size_t any(std::size_t below) { return random_() % below; }
    bool chance(std::size_t percent) { return any(100) < percent; }
    void expect(bool good, std::string_view what) {
        if (!good && fault_.empty()) fault_ = what;
    }

    void step() {
        const auto kind = any(100);
        if (kind < 50) {
            act(clients_[any(clients_.size())]);
        } else if (kind < 65) {
            slot_.journal->settle_waiting();
        } else if (kind < 75) {
            pass(milliseconds(any(5000)));
        } else if (kind < 90) {
            use_offsets();
        } else if (kind < 93) {
            crash();
        } else if (kind < 95) {
            slot_.rotate();
            model_.rotate();
            lines_seen_ = 0;
        } else if (kind < 96) {
            if (chance(20)) delete_group();
        } else {
            expect((*slot_).picture() == slot_.reloaded(), "the journal says something else");
            check_description();
        }
        see_lines();
        for (auto& client : clients_) take_answers(client);
    }

    void pass(milliseconds time) {
        if (mutant_ == Mutant::kNoTimers) {
            slot_.clock.advance(time);
        } else {
            slot_.pass(time, false);
        }
    }

    /// What the journal has got since the last look.
    void see_lines() {
        const auto& lines = slot_.journal->lines;
        for (; lines_seen_ < lines.size(); ++lines_seen_) {
            const auto& line = lines[lines_seen_];
            if (!line.starts_with(R"({"change":"group-deleted")")) continue;
            const std::string group = line.contains(R"("group":"g")") ? "g" : "s";
            model_.add({.kind = OffsetModel::Operation::Kind::kDeleteGroup,
                        .group = group,
                        .lines = lines_seen_ + 1});
            if (group == kGroup) forget_generations();
        }
    }
    void forget_generations() {
        ++life_;
        leaders_.clear();
        assignments_.clear();
    }

    void crash() {
        const auto settled = slot_.journal->durable;
        const auto all = slot_.journal->lines.size();
        auto kept = settled + any(all - settled + 1);
        if (mutant_ == Mutant::kForgetfulJournal) kept -= std::min(kept, any(4));
        if (mutant_ == Mutant::kSwappedLines && kept > 1) swap_last(kept);
        slot_.restart(kept);
        model_.keep(kept);
        lines_seen_ = 0;
        // A generation that nobody was told its assignment of may come again.
        const auto generation = stored_generation();
        std::erase_if(leaders_, [&](const auto& one) { return one.first > generation; });
        expect(assignments_.empty() || assignments_.rbegin()->first <= generation,
               "an assignment that was given out is lost");
    }

    /// Of the first `count` lines the last two change places.
    void swap_last(std::size_t count) {
        auto& lines = slot_.journal->lines;
        std::swap(lines[count - 1], lines[count - 2]);
    }

    std::int32_t stored_generation() {
        for (const auto& group : (*slot_).picture().at("groups").as_array()) {
            const auto* generation = group.as_object().if_contains("generation");
            if (group.at("group").as_string() == kGroup && generation != nullptr) {
                return static_cast<std::int32_t>(generation->as_int64());
            }
        }
        return 0;
    }

    void act(Client& client) {
        if (client.dead) {
            if (chance(10)) client.dead = false;
            return;
        }
        if (chance(3)) {
            client.dead = true;
            if (chance(50)) client.out(true);  // another process, next time
            return;
        }
        switch (client.phase) {
            case Client::Phase::kOut: send_join(client); return;
            case Client::Phase::kJoining:
            case Client::Phase::kSyncing:
                if (chance(10)) client.out(false);  // tired of waiting: asks again
                return;
            case Client::Phase::kJoined: send_sync(client); return;
            case Client::Phase::kIn:
                if (chance(60)) {
                    beat(client);
                } else if (chance(80)) {
                    commit_as(client);
                } else if (chance(50)) {
                    client.out(false);  // wants a rebalance
                } else {
                    leave(client);
                }
        }
    }

    void send_join(Client& client) {
        auto request = join_request();
        request.client.version = client.version;
        request.member = client.identity();
        if (chance(30)) request.protocols = {{"range", subscription({"t", "u"})}};
        if (chance(30)) request.protocols.push_back({"sticky", ""});
        if (chance(10)) request.rebalance_timeout = seconds(any(30));
        client.joining = {};
        client.phase = Client::Phase::kJoining;
        (*slot_).join(request, client.joining.done());
        if (!chance(5)) return;
        // The network says it twice; only one answer is read.
        Reply<JoinGroupAnswer> unread;
        (*slot_).join(request, unread.done());
    }

    void send_sync(Client& client) {
        auto request = sync_request(client.me);
        request.member = client.identity();
        request.protocol_name.reset();
        const auto nonce = ++nonces_;
        for (auto& one : request.assignments) {
            one.assignment = fmt::format("{} {}", nonce, client.me.generation);
        }
        client.syncing = {};
        client.life = life_;
        client.phase = Client::Phase::kSyncing;
        (*slot_).sync(request, client.syncing.done());
    }

    void beat(Client& client) {
        Reply<ErrorCode> reply;
        (*slot_).heartbeat(
            {.group_id = kGroup, .member = client.identity(), .generation = client.me.generation},
            reply.done());
        if (*reply != ErrorCode::kNone) client.out(forgets(*reply));
    }

    static bool forgets(ErrorCode error) {
        return error == ErrorCode::kUnknownMemberId || error == ErrorCode::kFencedInstanceId;
    }

    void leave(Client& client) {
        Reply<LeaveGroupAnswer> reply;
        (*slot_).leave({.group_id = kGroup, .members = {{.identity = client.identity()}}},
                       reply.done());
        client.out(true);
    }

    void take_answers(Client& client) {
        if (client.phase == Client::Phase::kJoining && client.joining.came()) {
            if (chance(5)) return client.out(false);  // it got lost
            const auto& answer = *client.joining;
            if (answer.error == ErrorCode::kNone) {
                client.me.take(answer);
                client.phase = Client::Phase::kJoined;
                check_joined(client, answer);
            } else if (answer.error == ErrorCode::kMemberIdRequired) {
                client.me.id = answer.member_id;
                client.out(false);
            } else {
                client.out(forgets(answer.error));
            }
        }
        if (client.phase == Client::Phase::kSyncing && client.syncing.came()) {
            if (chance(5)) return client.out(false);
            const auto& answer = *client.syncing;
            if (answer.error != ErrorCode::kNone) return client.out(forgets(answer.error));
            client.phase = Client::Phase::kIn;
            // The answer may be on its way when the group is deleted.
            if (client.life == life_) check_assignment(client.me.generation, answer.assignment);
        }
    }

    void check_joined(const Client& client, const JoinGroupAnswer& answer) {
        expect(answer.protocol_name == "range" || answer.protocol_name == "sticky",
               "a protocol that nobody has");
        if (answer.members.empty()) return;
        expect(answer.leader == answer.member_id, "somebody who does not lead hears of the others");
        std::set<std::string> ids;
        for (const auto& member : answer.members) {
            expect(ids.insert(member.member.member_id).second, "a member stands there twice");
        }
        expect(ids.contains(answer.member_id), "the leader is not among the members");
        // A static leader may have come back under another id.
        const auto leader = client.instance.value_or(answer.member_id);
        const auto known = leaders_.try_emplace(answer.generation, leader).first->second;
        expect(known == leader, "a generation has two leaders");
    }

    void check_assignment(std::int32_t generation, const std::string& assignment) {
        if (assignment.empty()) return;
        const auto known = assignments_.try_emplace(generation, assignment).first->second;
        expect(known == assignment, "a generation has two assignments");
        expect(assignment.ends_with(fmt::format(" {}", generation)),
               "an assignment of another generation");
    }

    void check_description() {
        Reply<DescribeGroupsAnswer> reply;
        (*slot_).describe({kGroup}, reply.done());
        slot_.journal->settle_waiting();
        const auto& group = reply->front();
        if (group.state != "Stable") return;
        std::set<std::string> given;
        std::set<std::string> instances;
        for (const auto& member : group.members) {
            given.insert(member.assignment);
            if (const auto& instance = member.member.group_instance_id) {
                expect(instances.insert(*instance).second, "an instance id has two members");
            }
        }
        expect(!group.members.empty() && given.size() == 1,
               "members of one generation have assignments of several");
    }

    void use_offsets() {
        const auto group = chance(50) ? kGroup : std::string("s");
        const auto partition = static_cast<std::int32_t>(any(3));
        const auto producer = static_cast<std::int64_t>(1 + any(3));
        switch (any(6)) {
            case 0:
            case 1: commit(group, {}, kNoGeneration, partition); return;
            case 2: commit_pending(group, partition, producer); return;
            case 3: end(producer); return;
            case 4: check_offset(group, partition); return;
            default:
                if (chance(20)) delete_offset(group, partition);
                return;
        }
    }

    void commit_as(Client& client) {
        commit(kGroup, client.identity(), client.me.generation, static_cast<std::int32_t>(any(3)));
    }

    static CommitTopic topic_of(std::int32_t partition, std::int64_t value) {
        return {.id = {},
                .name = "t",
                .partitions = {{base::PartitionId{partition}, base::Offset{value}, -1, {}}}};
    }

    void commit(const std::string& group, MemberIdentity member, std::int32_t generation,
                std::int32_t partition) {
        const auto value = ++values_;
        Reply<OffsetCommitAnswer> reply;
        (*slot_).commit({.version = 9,
                         .group_id = group,
                         .member = std::move(member),
                         .generation = generation,
                         .topics = {topic_of(partition, value)}},
                        reply.done());
        if (reply.came()) return;  // refused
        add({.kind = OffsetModel::Operation::Kind::kCommit,
             .group = group,
             .partition = partition,
             .value = value});
    }
    void commit_pending(const std::string& group, std::int32_t partition, std::int64_t producer) {
        const auto value = ++values_;
        Reply<OffsetCommitAnswer> reply;
        (*slot_).commit_in_transaction({.version = 5,
                                        .group_id = group,
                                        .member = {},
                                        .producer_id = base::ProducerId{producer},
                                        .producer_epoch = base::ProducerEpoch{0},
                                        .topics = {topic_of(partition, value)}},
                                       reply.done());
        if (reply.came()) return;
        add({.kind = OffsetModel::Operation::Kind::kPending,
             .group = group,
             .partition = partition,
             .value = value,
             .producer = producer});
    }
    void end(std::int64_t producer) {
        const bool commit = chance(70);
        if (mutant_ != Mutant::kLostMarkers) {
            Reply<ErrorCode> reply;
            (*slot_).end_transaction({.producer = base::ProducerId{producer},
                                      .epoch = base::ProducerEpoch{0},
                                      .coordinator_epoch = 1,
                                      .commit = commit},
                                     reply.done());
            if (reply.came()) return expect(false, "a marker was refused");
        }
        add({.kind = OffsetModel::Operation::Kind::kEnd, .producer = producer, .commit = commit});
    }
    void delete_offset(const std::string& group, std::int32_t partition) {
        Reply<OffsetDeleteAnswer> reply;
        (*slot_).delete_offsets(
            {.group_id = group, .topics = {{"t", {base::PartitionId{partition}}}}}, reply.done());
        const auto refused = reply.came();
        slot_.journal->settle_waiting();
        if (refused || reply->error != ErrorCode::kNone) return;
        if (reply->topics[0].partitions[0].error != ErrorCode::kNone) return;
        add({.kind = OffsetModel::Operation::Kind::kDelete,
             .group = group,
             .partition = partition});
    }
    void add(OffsetModel::Operation operation) {
        see_lines();
        operation.lines = slot_.journal->lines.size();
        model_.add(std::move(operation));
    }

    void check_offset(const std::string& group, std::int32_t partition) {
        const bool require_stable = chance(50);
        Reply<OffsetFetchAnswer> reply;
        (*slot_).fetch({.group_id = group,
                        .topics = {{{{}, "t", {base::PartitionId{partition}}}}},
                        .require_stable = require_stable},
                       reply.done());
        slot_.journal->settle_waiting();
        const auto& one = reply->topics.front().partitions.front();
        const auto expected = model_.fetched(group, partition, require_stable);
        if (expected) {
            expect(one.error == ErrorCode::kNone && one.offset.value() == *expected,
                   "an offset is not what it must be");
        } else {
            expect(one.error == ErrorCode::kUnstableOffsetCommit, "a pending offset is stable");
        }
    }

    void delete_group() {
        Reply<DeleteGroupsAnswer> reply;
        (*slot_).delete_groups({chance(50) ? kGroup : "s"}, reply.done());
    }

    /// No more faults: whoever lives must end up in one stable group.
    void calm_down() {
        for (auto& client : clients_) {
            client.dead = chance(30);
            if (&client == &clients_[1]) client.dead = true;  // the first has its instance id
        }
        for (int second = 0; second < 900; ++second) {
            slot_.settle();
            pass(seconds(1));
            slot_.settle();
            for (auto& client : clients_) {
                if (client.dead) continue;
                take_answers(client);
                if (client.phase == Client::Phase::kOut) send_join_calmly(client);
                if (client.phase == Client::Phase::kJoined) send_sync(client);
                if (client.phase == Client::Phase::kIn && second % 3 == 0) beat(client);
            }
        }
        see_lines();
        const auto group = describe(slot_);
        std::size_t living = 0;
        for (const auto& client : clients_) living += client.dead ? 0 : 1;
        expect(group.members.size() == living, "not all who live are members, or more are");
        expect(living == 0 || group.state == "Stable", "the group does not become stable");
        for (const auto* name : {"g", "s"}) {
            for (std::int32_t partition = 0; partition < 3; ++partition) {
                check_offset(name, partition);
            }
        }
    }
    void send_join_calmly(Client& client) {
        auto request = join_request();
        request.client.version = client.version;
        request.member = client.identity();
        request.protocols = {{"range", subscription({"t"})}, {"sticky", ""}};
        client.joining = {};
        client.phase = Client::Phase::kJoining;
        (*slot_).join(std::move(request), client.joining.done());
    }

    std::mt19937_64 random_;
    Mutant mutant_;
    TestSlot slot_;
    std::vector<Client> clients_;
    OffsetModel model_;
    std::size_t lines_seen_ = 0;
    std::int64_t values_ = 0;
    std::int64_t nonces_ = 0;
    int life_ = 0;                                     ///< how often the group was deleted
    std::map<std::int32_t, std::string> leaders_;      ///< by generation
    std::map<std::int32_t, std::string> assignments_;  ///< that were given out, by generation
    std::string fault_;
};

TEST(GroupSimulation, GroupsHoldWhateverHappens) {
    const auto seeds = storage::testing::Seeds::from_environment(300);
    for (auto seed = seeds.first; seed < seeds.end; ++seed) {
        GroupSimulation simulation(seed);
        ASSERT_FALSE(simulation.run()) << "KAAS_SEED=" << seed << ": " << simulation.fault();
    }
}

TEST(GroupSimulation, RulesThatAreTakenAwayAreMissed) {
    storage::testing::expect_caught<GroupSimulation, Mutant>(
        100, {{Mutant::kForgetfulJournal, "a journal that forgets"},
              {Mutant::kSwappedLines, "a journal that is out of order"},
              {Mutant::kNoTimers, "time that does not pass"},
              {Mutant::kLostMarkers, "markers that were never written"}});
}

}  // namespace
}  // namespace kaas::coordinator::testing
