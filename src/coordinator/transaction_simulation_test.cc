// Producers of both protocols, their zombies, a network that loses and repeats, coordinators that
// crash, and partitions with the real rules of `ProducerState`: in any order that a seed gives.
// Asserted: a transaction is committed or aborted, never both, and as its producer was told; no
// batch is left behind; no two producers ever have one epoch; what is loaded is what was.
// `KAAS_SEED=n` replays one history.

#include "base/clock.h"
#include "base/ids.h"
#include "base/metrics.h"
#include "base/timer_queue.h"
#include "coordinator/testing_transactions.h"
#include "coordinator/transaction_requests.h"
#include "coordinator/transaction_slot.h"
#include "storage/producer_state.h"
#include "storage/testing_seeds.h"
#include "storage/transaction_marker.h"
#include "wire/record_batch.h"

#include <boost/json/object.hpp>
#include <boost/json/parse.hpp>
#include <boost/json/serialize.hpp>
#include <fmt/format.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <expected>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <random>
#include <set>
#include <string>
#include <utility>
#include <variant>
#include <vector>

namespace kaas::coordinator {
namespace {

using namespace std::chrono_literals;
using E = ErrorCode;

constexpr std::int32_t kPartitions = 4;
constexpr std::array<const char*, 3> kIds = {"a", "b", "c"};
constexpr std::chrono::milliseconds kTimeout = 20s;

enum class Mutant {
    kNone,
    kForgetfulJournal,  ///< says durable, and forgets in a crash
    kLostMarkers,       ///< says that a marker is there when it is not
    kUnverified,        ///< partitions take transactional batches without asking
    kOldMarkers,        ///< partitions take markers of any coordinator and epoch
    kSameProducerId,    ///< two ids are given one producer id
};

/// One partition: the rules are storage's own, the bookkeeping is ours.
struct Partition {
    storage::ProducerState producers;
    std::int64_t end = 0;
    /// By producer id: to which transaction each batch of the open one belongs.
    std::map<base::ProducerId, std::vector<int>> open;
};

enum class Phase { kInit, kIdle, kOpen, kEnding };

struct Client {
    std::string id;
    bool bumps = false;  ///< speaks transaction version 2
    bool alive = true;
    Phase phase = Phase::kInit;
    ProducerIdAndEpoch who{};
    int transaction = 0;
    bool commits = false;
    bool must_abort = false;
    std::set<std::int32_t> added{};
    std::map<std::int32_t, std::int32_t> next_sequence{};
    int batches = 0;
    // The request under way.
    std::uint64_t ask = 0;
    bool waits = false;
    std::function<void(std::uint64_t)> send{};
};

class TransactionSimulation final : public ProducerIdSource, public MarkerSink {
public:
    explicit TransactionSimulation(std::uint64_t seed, Mutant mutant = Mutant::kNone)
        : mutant_(mutant), random_(seed) {
        config_.id_expiration = 10min;
        config_.expiration_interval = 3min;
        // One id whose epochs are nearly used up.
        journal_.append(R"({"transactional_id":"c","state":"Empty","producer_id":1,)"
                        R"("producer_epoch":32761,"timeout_ms":20000,"updated_ms":1700000000000})");
        journal_.durable = 1;
        lead();
    }

    /// True when a rule was broken; `fault()` says which.
    bool run() {
        for (int step = 0; step < 1'500 && fault_.empty(); ++step) take_step();
        if (fault_.empty()) come_to_rest();
        if (fault_.empty()) check_rest();
        slot_.reset();
        return !fault_.empty();
    }
    [[nodiscard]] const std::string& fault() const { return fault_; }

    void next_producer_id(Got got) override {
        post([this, got = std::make_shared<Got>(std::move(got))] {
            if (chance(5)) return (*got)(std::unexpected(E::kCoordinatorLoadInProgress));
            const auto id = mutant_ == Mutant::kSameProducerId ? 1000 : 1000 + ids_given_;
            ++ids_given_;
            (*got)(base::ProducerId(id));
        });
    }
    void send(const storage::Marker& marker, const TransactionPartition& partition,
              Done<ErrorCode> written) override {
        auto answer = std::make_shared<Done<ErrorCode>>(std::move(written));
        const auto deliver = [this, marker, at = partition.partition.value()] {
            return take_marker(at, marker);
        };
        // Only the new protocol can tell a marker that comes when its sender has given it up.
        const bool may_be_late = marker.transaction_version >= kEpochBump;
        if (mutant_ == Mutant::kLostMarkers && chance(20)) {
            post([answer] { (*answer)(E::kNone); });
        } else if (!calm_ && chance(10)) {
            post([answer] { (*answer)(E::kNotLeaderOrFollower); });
        } else if (!calm_ && chance(10)) {
            post([this, answer, deliver, may_be_late] {
                if (!may_be_late || chance(50)) {
                    deliver();
                } else {
                    late_.emplace_back(deliver);
                }
                (*answer)(E::kRequestTimedOut);
            });
        } else {
            post([answer, deliver] { (*answer)(deliver()); });
        }
    }

private:
    // Chance and time

    [[nodiscard]] bool chance(int percent) {
        return std::uniform_int_distribution(0, 99)(random_) < percent;
    }
    [[nodiscard]] std::size_t any(std::size_t count) {
        return std::uniform_int_distribution<std::size_t>(0, count - 1)(random_);
    }
    void post(std::function<void()> event) { events_.push_back(std::move(event)); }
    void expect(bool good, const std::string& fault) {
        if (!good && fault_.empty()) fault_ = fault;
    }

    void take_step() {
        const auto dice = any(100);
        if (dice < 55 && !events_.empty()) {
            run_event(chance(5) && !late_.empty() ? late_ : events_);
        } else if (dice < 75) {
            settle_one();
        } else if (dice < 93) {
            act(client());
        } else if (dice < 96) {
            pass(chance(2) ? std::chrono::milliseconds(13min)
                           : std::chrono::milliseconds(any(6'000)));
        } else if (dice < 98) {
            check_replay();
        } else {
            lead();
        }
    }
    void run_event(std::vector<std::function<void()>>& from) {
        const auto at = any(from.size());
        auto event = std::move(from[at]);
        from[at] = std::move(from.back());
        from.pop_back();
        event();
    }
    void settle_one() { (void)journal_.settle_one(); }
    void pass(std::chrono::milliseconds time) {
        clock_.advance(time);
        while (auto due = timers_.take_due(clock_.now())) due();
    }

    // The coordinator

    /// The broker crashes, or another one leads: what was durable stays, of the rest some.
    void lead() {
        if (slot_ != nullptr && chance(50)) {
            while (journal_.settle_one(false)) {
            }
            slot_->close();
        }
        auto kept = journal_.durable + any(journal_.lines.size() - journal_.durable + 1);
        if (mutant_ == Mutant::kForgetfulJournal) kept -= std::min(any(4), kept);
        auto lines = std::move(journal_.lines);
        lines.resize(kept);
        slot_.reset();
        journal_ = testing::ManualJournal();
        slot_ = make_slot();
        load(*slot_, lines);
        journal_.lines = std::move(lines);
        journal_.durable = journal_.lines.size();
        // A host takes pictures there; each costs a replay, so not all are tried.
        journal_.at_append = [this] {
            if (any(16) == 0) check_replay();
        };
        slot_->start();
    }
    [[nodiscard]] std::unique_ptr<TransactionSlot> make_slot() {
        return std::make_unique<TransactionSlot>(
            TransactionServices{.writer = journal_,
                                .timers = timers_,
                                .clock = clock_,
                                .config = config_,
                                .producer_ids = *this,
                                .markers = *this,
                                .metrics = metrics_,
                                .epoch = base::LeaderEpoch(++epoch_)});
    }
    void load(TransactionSlot& slot, const std::vector<std::string>& lines) {
        expect(slot.load_picture({}).has_value(), "an empty picture was refused");
        for (const auto& line : lines) {
            expect(slot.load_change(boost::json::parse(line).as_object()).has_value(),
                   "refused its own line " + line);
        }
    }
    [[nodiscard]] static std::map<std::string, std::string> contents(const TransactionSlot& slot) {
        std::map<std::string, std::string> contents;
        const auto picture = slot.picture();
        for (const auto& one : picture.at("transactions").as_array()) {
            contents.emplace(one.at("transactional_id").as_string(), boost::json::serialize(one));
        }
        return contents;
    }
    void check_replay() {
        const auto replayed = make_slot();
        load(*replayed, journal_.lines);
        expect(contents(*replayed) == contents(*slot_), "replay gives another state");
        const auto pictured = make_slot();
        expect(pictured->load_picture(slot_->picture()).has_value(), "refused its own picture");
        expect(contents(*pictured) == contents(*slot_), "a picture gives another state");
    }

    // Partitions

    ErrorCode take_marker(std::int32_t at, const storage::Marker& marker) {
        auto& partition = partitions_.at(static_cast<std::size_t>(at));
        if (const auto good = partition.producers.check_marker(marker);
            !good && mutant_ != Mutant::kOldMarkers) {
            return good.error().code == storage::ErrorCode::kInvalidProducerEpoch
                       ? E::kInvalidProducerEpoch
                       : E::kTransactionCoordinatorFenced;
        }
        const auto ended = partition.producers.end_transaction(
            marker, base::Offset(partition.end++), clock_.wall_ms(), clock_.wall_ms());
        if (!ended) return E::kNone;
        for (const int transaction : std::exchange(partition.open[marker.producer], {})) {
            auto& decisions = decisions_[transaction];
            decisions.insert(marker.commit);
            ++decided_[transaction];
            expect(decisions.size() == 1,
                   fmt::format("transaction {} was committed and aborted", transaction));
        }
        return E::kNone;
    }

    /// A batch comes to its leader, which asks the coordinator if it has to.
    void produce(const Client& client, std::int32_t at, std::int32_t sequence,
                 std::function<void(ErrorCode)> done) {
        auto& partition = partitions_.at(static_cast<std::size_t>(at));
        const auto verification = partition.producers.begin_verification(
            client.who.id, client.who.epoch, sequence, client.bumps, clock_.wall_ms());
        if (!verification) return done(E::kInvalidProducerEpoch);
        const auto append = [this, at, sequence, who = client.who, tag = client.transaction,
                             done](storage::VerificationGuard guard) {
            done(take_batch(at, who, sequence, tag, guard));
        };
        const auto* guard = std::get_if<storage::VerificationGuard>(&*verification);
        if (guard == nullptr || mutant_ == Mutant::kUnverified)
            return append(guard == nullptr ? storage::VerificationGuard{} : *guard);
        const auto asked = [append, done, guard = *guard](ErrorCode error) {
            if (error == E::kNone) return append(guard);
            done(error == E::kProducerFenced ? E::kInvalidProducerEpoch : error);
        };
        const std::vector<TransactionPartition> partitions{{"t", base::PartitionId(at)}};
        if (client.bumps) {
            slot_->add_partitions(
                {client.id, client.who, partitions, kEpochBump},
                [this, asked](ErrorCode error) { post([asked, error] { asked(error); }); });
        } else {
            slot_->verify_partitions({client.id, client.who, partitions},
                                     [this, asked](std::vector<ErrorCode> errors) {
                                         post([asked, error = errors.at(0)] { asked(error); });
                                     });
        }
    }
    ErrorCode take_batch(std::int32_t at, const ProducerIdAndEpoch& who, std::int32_t sequence,
                         int transaction, storage::VerificationGuard guard) {
        auto& partition = partitions_.at(static_cast<std::size_t>(at));
        const wire::BatchHeader batch{.base_offset = partition.end,
                                      .attributes = 0x10,
                                      .max_timestamp = clock_.wall_ms(),
                                      .producer_id = who.id.value(),
                                      .producer_epoch = who.epoch.value(),
                                      .base_sequence = sequence,
                                      .count = 1};
        const auto shown = mutant_ == Mutant::kUnverified
                               ? std::optional<storage::VerificationGuard>{}
                               : std::optional(guard);
        const auto judged = partition.producers.classify(batch, shown);
        if (!judged) {
            switch (judged.error().code) {
                case storage::ErrorCode::kInvalidProducerEpoch: return E::kInvalidProducerEpoch;
                case storage::ErrorCode::kInvalidTxnState: return E::kInvalidTxnState;
                default: return E::kOutOfOrderSequenceNumber;
            }
        }
        if (*judged) return E::kNone;  // it stands there already
        partition.producers.record(batch, clock_.wall_ms());
        ++partition.end;
        partition.open[who.id].push_back(transaction);
        ++written_[transaction];
        return E::kNone;
    }

    // Producers

    [[nodiscard]] Client& client() {
        const auto& id = kIds.at(any(kIds.size()));
        std::vector<Client*> living;
        for (const auto& one : clients_)
            if (one->alive && one->id == id) living.push_back(one.get());
        // Another incarnation starts while the old one does not know that it is dead.
        if (living.empty() || (living.size() < 3 && chance(2))) {
            clients_.push_back(std::make_unique<Client>(Client{.id = id, .bumps = chance(50)}));
            return *clients_.back();
        }
        return *living.at(any(living.size()));
    }
    /// Sends a request until it is answered; requests and answers get lost and come twice.
    void ask(Client& client, std::function<void(std::uint64_t)> send) {
        client.waits = true;
        client.ask = ++asks_;
        client.send = std::move(send);
        transmit(client);
    }
    void transmit(Client& client) {
        const int copies = chance(10) ? 0 : chance(10) ? 2 : 1;
        for (int copy = 0; copy < copies; ++copy)
            post([send = client.send, ask = client.ask] { send(ask); });
    }
    /// Takes an answer in: once, if it comes, and if it is to what the client asks now.
    template <class Answer>
    [[nodiscard]] auto answered(Client& client, std::uint64_t ask,
                                std::function<void(Answer)> take) {
        return [this, &client, ask, take = std::move(take)](Answer answer) {
            if (chance(10)) return;
            post([&client, ask, take, answer] {
                if (!client.alive || !client.waits || client.ask != ask) return;
                client.waits = false;
                take(answer);
            });
        };
    }
    void act(Client& client) {
        if (client.waits) {
            if (chance(30)) transmit(client);  // its patience has ended
            return;
        }
        switch (client.phase) {
            case Phase::kInit: return init(client);
            case Phase::kIdle:
                client.transaction = ++transactions_;
                client.added.clear();
                client.batches = 0;
                client.must_abort = false;
                client.phase = Phase::kOpen;
                return;
            case Phase::kOpen:
                if (client.must_abort || chance(20)) return decide(client);
                return write(client, static_cast<std::int32_t>(any(kPartitions)));
            case Phase::kEnding: return end(client);
        }
    }
    void init(Client& client) {
        std::optional<ProducerIdAndEpoch> current;
        if (client.who.id.value() >= 0) current = client.who;
        ask(client, [this, &client, current](std::uint64_t ask) {
            slot_->init_producer_id(
                {client.id, kTimeout, current},
                answered<InitProducerIdAnswer>(
                    client, ask, [this, &client](const InitProducerIdAnswer& answer) {
                        if (answer.error == E::kNone) {
                            takes(client, answer.producer);
                            client.phase = Phase::kIdle;
                        } else if (answer.error != E::kConcurrentTransactions &&
                                   answer.error != E::kNotCoordinator &&
                                   answer.error != E::kCoordinatorLoadInProgress) {
                            client.alive = false;
                        }
                    }));
        });
    }
    void takes(Client& client, const ProducerIdAndEpoch& who) {
        const auto [owner, is_new] =
            owners_.emplace(std::pair(who.id.value(), who.epoch.value()), &client);
        expect(owner->second == &client,
               fmt::format("two producers have ({}, {})", who.id, who.epoch));
        if (client.who != who) client.next_sequence.clear();
        client.who = who;
    }
    void write(Client& client, std::int32_t at) {
        if (!client.bumps && !client.added.contains(at)) return add(client, at);
        const auto sequence = client.next_sequence[at];
        ask(client, [this, &client, at, sequence, sent = client](std::uint64_t ask) {
            produce(sent, at, sequence,
                    answered<ErrorCode>(client, ask, [&client, at](ErrorCode error) {
                        if (error == E::kNone) {
                            ++client.next_sequence[at];
                            ++client.batches;
                        } else {
                            refused(client, error);
                        }
                    }));
        });
    }
    void add(Client& client, std::int32_t at) {
        ask(client, [this, &client, at, who = client.who](std::uint64_t ask) {
            slot_->add_partitions({client.id, who, {{"t", base::PartitionId(at)}}, kFixedEpoch},
                                  answered<ErrorCode>(client, ask, [&client, at](ErrorCode error) {
                                      if (error == E::kNone) {
                                          client.added.insert(at);
                                      } else {
                                          refused(client, error);
                                      }
                                  }));
        });
    }
    static void refused(Client& client, ErrorCode error) {
        switch (error) {
            case E::kConcurrentTransactions:
            case E::kNotCoordinator: return;
            case E::kTransactionAbortable:
            case E::kInvalidTxnState:
            case E::kOutOfOrderSequenceNumber: client.must_abort = true; return;
            default: client.alive = false;
        }
    }
    void decide(Client& client) {
        client.commits = !client.must_abort && client.batches > 0 && chance(70);
        // One that has sent nothing, or lost count, may also begin anew with what it has.
        client.phase = client.must_abort && chance(30) ? Phase::kInit : Phase::kEnding;
        if (!client.bumps && client.added.empty()) client.phase = Phase::kIdle;
    }
    void end(Client& client) {
        ask(client, [this, &client, who = client.who](std::uint64_t ask) {
            slot_->end_txn(
                {client.id, who, client.commits, client.bumps ? kEpochBump : kFixedEpoch},
                answered<EndTxnAnswer>(client, ask, [this, &client](const EndTxnAnswer& answer) {
                    if (answer.error == E::kNone) {
                        told_.emplace(client.transaction, client.commits);
                        if (client.bumps) takes(client, answer.producer);
                        client.phase = Phase::kIdle;
                    } else if (answer.error != E::kConcurrentTransactions &&
                               answer.error != E::kNotCoordinator) {
                        client.alive = false;
                    }
                }));
        });
    }

    // The end

    void come_to_rest() {
        calm_ = true;
        for (const auto& one : clients_) one->alive = false;
        for (int round = 0; round < 300; ++round) {
            while (!events_.empty()) run_event(events_);
            while (!late_.empty()) run_event(late_);
            while (journal_.anybody_waits()) settle_one();
            if (events_.empty()) pass(1s);
        }
    }
    void check_rest() {
        for (const auto& [id, line] : contents(*slot_)) {
            expect(line.find("Prepare") == std::string::npos, "stuck: " + line);
            expect(line.find("Ongoing") == std::string::npos, "never aborted: " + line);
        }
        for (const auto& partition : partitions_) {
            for (const auto& [id, batches] : partition.open)
                expect(batches.empty(), fmt::format("producer {} hangs", id));
        }
        for (const auto& [transaction, count] : written_) {
            expect(decided_[transaction] == count,
                   fmt::format("transaction {} was decided in part", transaction));
        }
        for (const auto& [transaction, commit] : told_) {
            const auto& decisions = decisions_[transaction];
            expect(decisions.empty() || decisions == std::set{commit},
                   fmt::format("transaction {} is not what its producer was told", transaction));
        }
    }

    Mutant mutant_;
    std::mt19937_64 random_;
    std::string fault_;
    std::vector<std::function<void()>> events_;
    std::vector<std::function<void()>> late_;  ///< what the network keeps for long
    base::ManualClock clock_;
    base::TimerQueue timers_;
    base::metrics::Registry registry_;
    TransactionMetrics metrics_ = TransactionMetrics::of(registry_);
    TransactionConfig config_;
    testing::ManualJournal journal_;
    std::int32_t epoch_ = 0;
    std::int64_t ids_given_ = 0;
    bool calm_ = false;
    std::array<Partition, kPartitions> partitions_;
    std::vector<std::unique_ptr<Client>> clients_;
    std::uint64_t asks_ = 0;
    int transactions_ = 0;
    std::map<std::pair<std::int64_t, std::int16_t>, const Client*> owners_;
    std::map<int, std::set<bool>> decisions_;
    std::map<int, int> written_;
    std::map<int, int> decided_;
    std::map<int, bool> told_;
    std::unique_ptr<TransactionSlot> slot_;
};

TEST(TransactionSimulation, EveryHistoryEndsWell) {
    const auto seeds = storage::testing::Seeds::from_environment(100);
    for (auto seed = seeds.first; seed < seeds.end; ++seed) {
        TransactionSimulation simulation(seed);
        ASSERT_FALSE(simulation.run()) << simulation.fault() << "; KAAS_SEED=" << seed;
    }
}

TEST(TransactionSimulation, SeesEachRuleTakenAway) {
    storage::testing::expect_caught<TransactionSimulation, Mutant>(
        200, {{Mutant::kForgetfulJournal, "a journal that forgets"},
              {Mutant::kLostMarkers, "markers that were never written"},
              {Mutant::kUnverified, "batches that nobody verified"},
              {Mutant::kOldMarkers, "markers of whoever"},
              {Mutant::kSameProducerId, "one producer id for two"}});
}

}  // namespace
}  // namespace kaas::coordinator
