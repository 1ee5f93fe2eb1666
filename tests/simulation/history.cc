#include "history.h"

#include "base/ids.h"
#include "broker.h"
#include "catalog/image.h"
#include "catalog/model.h"
#include "catalog/slot.h"
#include "cluster/admin.h"
#include "cluster/controller.h"
#include "cluster/error.h"
#include "cluster/partition_table.h"
#include "cluster/slot_host.h"
#include "machine.h"
#include "shared_disk.h"
#include "storage/error.h"
#include "storage/memory_volume.h"
#include "storage/partition_log.h"
#include "storage/testing_log.h"

#include <fmt/format.h>

#include <algorithm>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <iterator>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

namespace kaas::simulation {
namespace {

using namespace std::chrono_literals;

constexpr Nanos kChaos = 45s;
/// After the last fault, all partitions and slots are served within this.
constexpr Nanos kRecovery = 60s;
constexpr Nanos kPatience = 4s;
/// Topics whose name begins so are not synced with each record.
constexpr const char* kRelaxed = "relaxed";

bool is_relaxed(const catalog::Topic& topic) { return topic.name.starts_with(kRelaxed); }

}  // namespace

History::History(std::uint64_t seed) : machine_(Machine::get()) {
    machine_.begin(seed);
    // Each seed has its own climate, so that rare things come together in some of them.
    const auto hosts = machine_.chance(3) ? Hosts::kOne : Hosts::kMany;
    settings_.brokers = machine_.chance(4) ? 2 : 3;
    settings_.journal = !machine_.chance(3);
    settings_.flush_messages = machine_.pick(2, 20);
    disk_ = std::make_unique<SharedDisk>(hosts, static_cast<std::size_t>(settings_.brokers));
    disk_->temper.usual = Nanos(std::chrono::microseconds(machine_.pick(100, 3'000)));
    if (machine_.chance(2)) {
        disk_->temper.slow = Nanos(std::chrono::milliseconds(machine_.pick(50, 10'000)));
        disk_->temper.slow_one_in = machine_.pick(100, 3'000);
    }
    if (machine_.chance(2)) {
        using enum storage::Operation;
        static constexpr storage::Operation kKinds[] = {kSync, kSync, kLook, kRead, kMark, kCreate};
        disk_->temper.slow_kind = kKinds[machine_.pick(0, std::ssize(kKinds) - 1)];
        disk_->temper.slow_kind_most = Nanos(std::chrono::milliseconds(machine_.pick(10, 1'000)));
    }
    if (machine_.chance(4)) disk_->temper.fails_one_in = machine_.pick(500, 5'000);
    if (tracing) {
        disk_->watch = [](const std::string& operation, const std::string& path) {
            note(fmt::format("{} {}", operation, path));
        };
    }
    lives_.resize(static_cast<std::size_t>(settings_.brokers) + 1);
    note(fmt::format("{} brokers on {}, {}journal, calls take up to {} us", settings_.brokers,
                     hosts == Hosts::kOne ? "one machine" : "hosts of their own",
                     settings_.journal ? "" : "no ", disk_->temper.usual.count() / 1'000));
}

std::optional<std::string> History::run() {
    for (int id = 1; id <= settings_.brokers; ++id) {
        machine_.spawn(outside_, "supervisor", [this, id] { supervise(id); });
    }
    for (int client = 0; client < 3; ++client) {
        machine_.spawn(outside_, fmt::format("producer {}", client),
                       [this, client] { produce(client); });
    }
    machine_.spawn(outside_, "consumer", [this] { consume(); });
    machine_.spawn(outside_, "member", [this] { change_slots(0); });
    machine_.spawn(outside_, "admin", [this] { administrate(); });
    machine_.spawn(outside_, "harm", [this] { harm(); });

    const auto violated = [this] { return ledger_.violation().has_value(); };
    const auto begin = machine_.now();
    machine_.run(begin + kChaos, violated);
    if (violated()) return ledger_.violation();
    calm_ = true;
    network_.heal();
    disk_->heal();
    note("from now on nothing goes wrong any more");
    const auto deadline = machine_.now() + kRecovery;
    while (machine_.now() < deadline && !violated() && !all_is_well()) {
        machine_.run(machine_.now() + 500ms, violated);
    }
    if (violated()) return ledger_.violation();
    if (!all_is_well()) return fmt::format("not well again in time: {}", what_is_wrong());
    bool checked = false;
    machine_.spawn(outside_, "end", [this, &checked] {
        check_all();
        checked = true;
    });
    machine_.run(machine_.now() + 60s, [&] { return checked || violated(); });
    if (!checked && !violated()) return "the last reads hang";
    return ledger_.violation();
}

// Brokers.

BrokerLife* History::running(int id) const {
    const auto& lives = lives_[static_cast<std::size_t>(id)];
    return lives.empty() || lives.back()->ended() ? nullptr : lives.back().get();
}

BrokerLife* History::some_running() const {
    std::vector<BrokerLife*> all;
    for (int id = 1; id <= settings_.brokers; ++id) {
        auto* life = running(id);
        if (life != nullptr && life->node() != nullptr && !life->process.frozen)
            all.push_back(life);
    }
    if (all.empty()) return nullptr;
    return all[static_cast<std::size_t>(
        machine_.pick(0, static_cast<std::int64_t>(all.size()) - 1))];
}

void History::supervise(int id) {
    auto& lives = lives_[static_cast<std::size_t>(id)];
    machine_.sleep(machine_.some_time(2s));
    while (true) {
        lives.push_back(std::make_unique<BrokerLife>(id, static_cast<int>(lives.size()) + 1,
                                                     settings_, *disk_, network_, ledger_));
        while (!lives.back()->ended() && !lives.back()->superseded()) machine_.sleep(50ms);
        machine_.sleep(calm_ ? Nanos(100ms) : machine_.some_time(5s));
    }
}

// Clients.

void History::await_answer(const std::shared_ptr<bool>& answered) {
    const auto until = machine_.now() + kPatience;
    while (!*answered && machine_.now() < until) machine_.wait(answered.get(), until);
}

std::optional<base::TopicPartition> History::some_partition(const catalog::Image& image) const {
    std::vector<base::TopicPartition> all;
    image.for_each_topic([&](const catalog::Topic& topic) {
        if (catalog::slot_kind(topic.name)) return;
        for (std::size_t i = 0; i < topic.partitions.size(); ++i) {
            all.push_back({topic.id, base::PartitionId(static_cast<std::int32_t>(i))});
        }
    });
    if (all.empty()) return std::nullopt;
    std::ranges::sort(all);
    return all[static_cast<std::size_t>(
        machine_.pick(0, static_cast<std::int64_t>(all.size()) - 1))];
}

void History::produce(int client) {
    machine_.sleep(1s);
    while (true) {
        produce_one(fmt::format("{}.{}", client, ++values_));
        machine_.sleep(machine_.some_time(calm_ ? 2s : 500ms));
    }
}

void History::produce_one(const std::string& value) {
    auto* broker = some_running();
    if (broker == nullptr) return;
    // One image: a thread may lose its turn wherever there is a lock.
    const auto image = broker->node()->partitions().image();
    const auto id = some_partition(*image);
    if (!id) return;
    const auto leader = image->leader(*image->partition(*id));
    // Mostly to whom it believes to be the leader.
    if (auto* leading = leader == catalog::kNoBroker ? nullptr : running(leader.value());
        leading != nullptr && leading->node() != nullptr && !machine_.chance(8)) {
        broker = leading;
    }
    [[maybe_unused]] const bool acknowledged =
        append(*broker, *id, value, !is_relaxed(*image->topic(id->topic)));
}

bool History::append(BrokerLife& leader, const base::TopicPartition& id, const std::string& value,
                     bool durable) {
    auto* broker = &leader;
    auto answered = std::make_shared<bool>(false);
    auto acknowledged = std::make_shared<bool>(false);
    broker->reactor().post([this, broker, id, value, answered, acknowledged, durable,
                            floor = ledger_.floor_of(id)] {
        auto* node = broker->node();
        auto hosted = node == nullptr ? cluster::Hosted{}
                                      : node->partitions().reader().find(id.topic, id.partition);
        if (hosted.state != cluster::Hosting::kServing) {
            *answered = true;
            return machine_.wake(answered.get(), true);
        }
        auto append = storage::testing::to_append(
            storage::testing::make_batch({.value = value}), storage::Acks::kAll, broker->reactor(),
            [this, broker, id, value, answered, acknowledged, durable, floor,
             epoch = hosted.log->epoch()](storage::Result<storage::Appended> result) {
                if (result) {
                    *acknowledged = true;
                    note(fmt::format("{} is acknowledged at {} of {}-{}, epoch {}", value,
                                     result->base_offset, id.topic.uuid.to_string(), id.partition,
                                     epoch));
                    ledger_.acked(id, epoch, broker->process.name, result->base_offset.value(),
                                  value, floor, durable);
                }
                *answered = true;
                machine_.wake(answered.get(), true);
            });
        if (!hosted.log->append(std::move(append))) {
            *answered = true;
            machine_.wake(answered.get(), true);
        }
    });
    await_answer(answered);
    return *acknowledged;
}

void History::consume() {
    machine_.sleep(1s);
    while (true) {
        if (auto* broker = some_running()) {
            const auto image = broker->node()->partitions().image();
            if (const auto id = some_partition(*image)) read_whole(*broker, *id);
        }
        machine_.sleep(machine_.some_time(600ms));
    }
}

bool History::read_whole(BrokerLife& broker, const base::TopicPartition& id) {
    auto was_read = std::make_shared<bool>(false);
    auto answered = std::make_shared<bool>(false);
    broker.pool().post([this, broker = &broker, id, answered, was_read] {
        auto* node = broker->node();
        auto hosted = node == nullptr ? cluster::Hosted{}
                                      : node->partitions().reader().find(id.topic, id.partition);
        if (hosted.state == cluster::Hosting::kServing) {
            const auto epoch = hosted.log->epoch();
            const auto known = ledger_.acked_under(id, epoch);
            const auto* topic = node->partitions().image()->topic(id.topic);
            const bool durable = topic == nullptr || !is_relaxed(*topic);
            const auto values = storage::testing::read_values(*hosted.log);
            if (values) {
                *was_read = true;
                ledger_.seen(id, epoch, durable ? known : 0, *values, durable);
            } else if (values.error().code == storage::ErrorCode::kCorrupt && topic != nullptr &&
                       !ledger_.may_go(topic->name)) {
                ledger_.violated(fmt::format("{}-{}: {} reads {}", id.topic.uuid.to_string(),
                                             id.partition, broker->process.name,
                                             values.error().context));
            }
        }
        *answered = true;
        machine_.wake(answered.get(), true);
    });
    await_answer(answered);
    return *was_read;
}

void History::change_slots(int client) {
    machine_.sleep(1s);
    while (true) {
        machine_.sleep(machine_.some_time(calm_ ? 2s : 800ms));
        auto* broker = some_running();
        if (broker == nullptr) continue;
        const cluster::SlotId slot{
            catalog::SlotKind::kGroup,
            base::PartitionId(static_cast<std::int32_t>(machine_.pick(0, settings_.slots - 1)))};
        auto answered = std::make_shared<bool>(false);
        const auto text = fmt::format("m{}.{}", client, ++values_);
        broker->reactor().post([this, broker, slot, text, answered] {
            const auto tell = [this, answered](bool) {
                *answered = true;
                machine_.wake(answered.get(), true);
            };
            if (!broker->keeper().add(slot, text, tell)) tell(false);
        });
        await_answer(answered);
    }
}

// Administration.

void History::administrate() {
    machine_.sleep(1s);
    while (true) {
        machine_.sleep(machine_.some_time(3s));
        if (calm_) continue;
        // Whoever believes to reign may be asked, as a client may that has not heard of the next.
        BrokerLife* reigning = nullptr;
        for (int id = 1; id <= settings_.brokers; ++id) {
            auto* one = running(id);
            if (one != nullptr && one->node() != nullptr && one->node()->controller().reigning() &&
                (reigning == nullptr || machine_.chance(2))) {
                reigning = one;
            }
        }
        if (reigning == nullptr) continue;
        const auto image = reigning->node()->partitions().image();
        if (reigning->node() == nullptr) continue;  // a lock was taken, and its turn lost
        if (image->topic(catalog::slot_topic(catalog::SlotKind::kGroup)) == nullptr) {
            create(*reigning, std::string(catalog::slot_topic(catalog::SlotKind::kGroup)));
            continue;
        }
        const auto name = machine_.chance(4) ? fmt::format("{}{}", kRelaxed, machine_.pick(1, 2))
                                             : fmt::format("topic{}", machine_.pick(1, 4));
        if (image->topic(name) == nullptr) {
            create(*reigning, name);
        } else if (machine_.chance(4)) {
            remove(*reigning, name);
        } else if (machine_.chance(2)) {
            ask_for_producer_ids(*reigning);
        } else {
            move_leaders(*reigning, *image);
        }
    }
}

void History::create(BrokerLife& broker, const std::string& name) {
    cluster::CreateTopics request;
    const auto replicas = std::min<std::int64_t>(machine_.pick(1, 3), settings_.brokers);
    request.topics = {{.name = name,
                       .partitions = static_cast<std::int32_t>(machine_.pick(1, 4)),
                       .replication_factor = static_cast<std::int16_t>(replicas)}};
    if (name.starts_with(kRelaxed)) {
        request.topics[0].configs = {{"flush.messages", std::to_string(settings_.flush_messages)}};
    }
    auto answered = std::make_shared<bool>(false);
    note(fmt::format("{} shall create {}", broker.process.name, name));
    broker.node()->controller().create_topics(
        request, {&broker.reactor(), [this, name, answered](auto result) {
                      if (result && result->front().outcome) {
                          note(fmt::format("{} is created", name));
                          ledger_.created(name, result->front().id);
                      }
                      *answered = true;
                      machine_.wake(answered.get(), true);
                  }});
    await_answer(answered);
}

void History::remove(BrokerLife& broker, const std::string& name) {
    cluster::DeleteTopics request;
    request.topics = {name};
    ledger_.asked_to_delete(name);
    note(fmt::format("{} shall delete {}", broker.process.name, name));
    auto answered = std::make_shared<bool>(false);
    broker.node()->controller().delete_topics(
        request, {&broker.reactor(), [this, name, answered](auto result) {
                      if (result && result->front().outcome) {
                          note(fmt::format("{} is deleted", name));
                          ledger_.deleted(result->front().id);
                      }
                      *answered = true;
                      machine_.wake(answered.get(), true);
                  }});
    await_answer(answered);
}

void History::ask_for_producer_ids(BrokerLife& broker) {
    auto answered = std::make_shared<bool>(false);
    broker.node()->controller().allocate_producer_ids(
        static_cast<std::int32_t>(machine_.pick(1, 1000)),
        {&broker.reactor(), [this, answered](cluster::Result<cluster::ProducerIdBlock> block) {
             if (block) ledger_.producer_ids(block->first.value(), block->count);
             *answered = true;
             machine_.wake(answered.get(), true);
         }});
    await_answer(answered);
}

void History::move_leaders(BrokerLife& broker, const catalog::Image& image) {
    auto answered = std::make_shared<bool>(false);
    const auto tell = [this, answered](const auto&) {
        *answered = true;
        machine_.wake(answered.get(), true);
    };
    const auto id = some_partition(image);
    if (!id || machine_.chance(2)) {
        broker.node()->controller().elect_leaders({}, {&broker.reactor(), tell});
    } else {
        cluster::ReassignPartition moved{.partition = id->partition.value()};
        std::vector<base::BrokerId> replicas;
        for (int one = 1; one <= settings_.brokers; ++one) {
            if (machine_.chance(2)) replicas.emplace_back(one);
        }
        if (replicas.empty()) return;
        std::ranges::rotate(
            replicas,
            replicas.begin() + machine_.pick(0, static_cast<std::int64_t>(replicas.size()) - 1));
        moved.replicas = replicas;
        cluster::AlterReassignments request;
        request.topics = {{image.topic(id->topic)->name, {moved}}};
        note(fmt::format("{} shall reassign {}-{}", broker.process.name,
                         image.topic(id->topic)->name, id->partition));
        broker.node()->controller().alter_reassignments(request, {&broker.reactor(), tell});
    }
    await_answer(answered);
}

}  // namespace kaas::simulation
