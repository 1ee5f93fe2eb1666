#include "base/ids.h"
#include "broker.h"
#include "cluster/session.h"
#include "history.h"
#include "machine.h"
#include "shared_disk.h"
#include "storage/memory_volume.h"

#include <fmt/format.h>

#include <algorithm>
#include <chrono>
#include <cstddef>
#include <iterator>
#include <string>

namespace kaas::simulation {

using namespace std::chrono_literals;

// What goes wrong.

void History::harm() {
    machine_.sleep(machine_.some_time(8s));
    const auto mean = std::chrono::milliseconds(machine_.pick(500, 8'000));
    while (!calm_) {
        do_harm();
        ++faults_;
        machine_.sleep(machine_.some_time(2 * mean));
    }
}

void History::do_harm() {
    const int id = static_cast<int>(machine_.pick(1, settings_.brokers));
    auto* broker = running(id);
    if (broker == nullptr) return;
    const auto& name = broker->process.name;
    switch (machine_.pick(0, 15)) {
        case 0:
        case 1:
            note(fmt::format("{} is killed", name));
            broker->kill(false);
            write_back(id);
            let_power_follow();
            break;
        case 2: lose_power(); break;
        case 3:
        case 4: freeze(*broker, machine_.some_time(20s)); break;
        case 5:
            note(fmt::format("{} shall stop", name));
            broker->stop();
            break;
        case 6:
            note(fmt::format("some connections of {} break", name));
            network_.break_some(id);
            break;
        case 7:
        case 8: {
            const int other = static_cast<int>(machine_.pick(1, settings_.brokers));
            const auto until = machine_.now() + machine_.some_time(15s);
            note(fmt::format("cut: b{} to b{} until {} ms", id, other, until.count() / 1'000'000));
            network_.cut(id, other, until);
            if (machine_.chance(2)) network_.cut(other, id, until);
            break;
        }
        case 9:
            note(fmt::format("a session of {} is marked", name));
            mark_some_session(*broker);
            break;
        case 10: {
            const auto until = machine_.now() + machine_.some_time(15s);
            auto& disk = disk_->of(static_cast<std::size_t>(id - 1));
            const bool stalls = machine_.chance(2);
            note(fmt::format("the volume {} for b{} until {} ms", stalls ? "stalls" : "fails", id,
                             until.count() / 1'000'000));
            if (stalls) {
                disk.stall_until(until);
            } else {
                disk.fail_until(until);
            }
            break;
        }
        case 11:
            note(fmt::format("{} is taken for dead", name));
            freeze(*broker, machine_.some_time(10s));
            broker->lose_its_place();
            break;
        case 12: write_back(id); break;
        default: set_trap(id); break;
    }
}

/// Its next call of some kind is its last one, or the last one for a while.
void History::set_trap(int id) {
    using enum storage::Operation;
    static constexpr storage::Operation kCalls[] = {kSync,   kWrite,         kLook, kSyncDirectory,
                                                    kCreate, kMakeDirectory, kMark, kRead};
    const auto call = kCalls[machine_.pick(0, std::ssize(kCalls) - 1)];
    const bool after = machine_.chance(2);
    note(fmt::format("b{} is caught {} its next {}", id, after ? "behind" : "before",
                     storage::name_of(call)));
    disk_->trap = {.host = static_cast<std::size_t>(id - 1),
                   .operation = call,
                   .after_effect = after,
                   .harm = [this, id](const Process& caller) { in_trap(id, caller); }};
}

void History::in_trap(int id, const Process& caller) {
    const auto& lives = lives_[static_cast<std::size_t>(id)];
    const auto found =
        std::ranges::find_if(lives, [&](const auto& life) { return &life->process == &caller; });
    if (calm_ || found == lives.end() || (*found)->ended()) return;
    auto& broker = **found;
    if (machine_.chance(2)) return freeze(broker, machine_.some_time(20s));
    note(fmt::format("{} is killed", broker.process.name));
    broker.kill(false);
    write_back(id);
    let_power_follow();
}

/// Sometimes: who takes over has read what the power may still take.
void History::let_power_follow() {
    if (!machine_.chance(3)) return;
    machine_.spawn(outside_, "power", [this] {
        machine_.sleep(machine_.some_time(10s));
        if (!calm_) lose_power();
    });
}

void History::freeze(BrokerLife& broker, Nanos time) {
    note(fmt::format("{} freezes for {} ms", broker.process.name, time.count() / 1'000'000));
    machine_.freeze(broker.process);
    machine_.spawn(outside_, "thaw", [this, &broker, time] {
        const auto until = machine_.now() + time;
        while (machine_.now() < until && !calm_) {
            machine_.sleep(std::min<Nanos>(until - machine_.now(), 500ms));
        }
        note(fmt::format("{} wakes up", broker.process.name));
        machine_.thaw(broker.process);
        if (!broker.superseded()) return;
        // Somebody finds out in the end, and ends it.
        machine_.sleep(calm_ ? Nanos(0) : machine_.some_time(8s));
        if (!broker.ended()) broker.kill(false);
    });
}

/// Its kernel writes back what a process has left in its memory; some of it at a time.
void History::write_back(int id) {
    machine_.spawn(outside_, "write back", [this, id] {
        for (int one_in = 4; one_in >= 1; --one_in) {
            disk_->of(static_cast<std::size_t>(id - 1)).push_out([&](const std::string&) {
                return machine_.chance(one_in);
            });
            machine_.sleep(machine_.some_time(5s));
        }
    });
}

void History::lose_power() {
    if (disk_->hosts() == Hosts::kOne) {
        note("the machine loses its power");
        for (int id = 1; id <= settings_.brokers; ++id) kill_all(id);
        disk_->lose_power(0);
        ledger_.forget_what_is_not_durable();
        return;
    }
    const int id = static_cast<int>(machine_.pick(1, settings_.brokers));
    note(fmt::format("the host of b{} loses its power", id));
    kill_all(id);
    disk_->lose_power(static_cast<std::size_t>(id - 1));
}

/// Its earlier lives may still be there.
void History::kill_all(int id) {
    for (const auto& life : lives_[static_cast<std::size_t>(id)]) {
        if (!life->ended()) life->kill(true);
    }
}

void History::mark_some_session(BrokerLife& broker) {
    if (broker.node() == nullptr) return;
    const auto* known = broker.node()->partitions().image()->broker(base::BrokerId(broker.id));
    if (known == nullptr || known->sessions.empty()) return;
    const auto incarnation = known->sessions.begin()->second;
    const Machine::Undisturbed undisturbed;
    [[maybe_unused]] const auto marked =
        cluster::mark_session(disk_->server(), base::BrokerId(broker.id), incarnation);
}

}  // namespace kaas::simulation
