#include "broker.h"

#include "base/ids.h"
#include "base/thread_pool.h"
#include "catalog/broker_identity.h"
#include "catalog/config_map.h"
#include "catalog/image.h"
#include "catalog/model.h"
#include "catalog/slot.h"
#include "cluster/error.h"
#include "cluster/node.h"
#include "cluster/survey.h"
#include "cluster/uplink.h"
#include "ledger.h"
#include "machine.h"
#include "network.h"
#include "shared_disk.h"
#include "slots.h"
#include "storage/log_config.h"
#include "storage/volume.h"

#include <fmt/format.h>

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <utility>

namespace kaas::simulation {
namespace {

using namespace std::chrono_literals;

storage::LogConfig log_config(const catalog::ConfigMap& configs) {
    storage::LogConfig config;
    const auto found = configs.find("flush.messages");
    if (found != configs.end()) config.flush_messages = std::stoll(found->second);
    return config;
}

}  // namespace

BrokerLife::BrokerLife(int broker, int life, const ClusterSettings& settings, SharedDisk& disk,
                       Network& network, Ledger& ledger)
    : process(fmt::format("b{}.{}", broker, life)),
      id(broker),
      settings_(settings),
      disk_(disk),
      network_(network),
      ledger_(ledger),
      clock_(Nanos(Machine::get().pick(0, 1'000'000'000'000)),
             Machine::get().pick(-5'000'000, 5'000'000)) {
    Machine::get().spawn(process, "main", [this] { live(); });
}

cluster::NodeOptions BrokerLife::options() {
    cluster::NodeOptions options;
    options.id = base::BrokerId(id);
    options.volumes = {{"main", &disk_.of(static_cast<std::size_t>(id - 1))}};
    const auto port = static_cast<std::uint16_t>(id);
    options.endpoints = {{"PLAINTEXT", "PLAINTEXT", "host", 9092},
                         {std::string(catalog::kInternalListener), "SASL_PLAINTEXT", "host", port}};
    options.controller.slot_topics = {{catalog::SlotKind::kGroup, {.slots = settings_.slots}}};
    options.controller.default_replication_factor = 3;
    options.controller.balance.check_interval = 20s;
    options.log_config = log_config;
    options.slot_host = keeper_.get();
    options.io_pool = pool_.get();
    options.clock = &clock_;
    options.logs.journal = settings_.journal;
    options.logs.journal_file_bytes = 64 * 1024;
    options.sharing = cluster::Sharing::kShared;
    options.session_timeout = settings_.session_timeout;
    options.death_grace = settings_.death_grace;
    options.uplink = [this](storage::Volume&) -> cluster::Result<std::shared_ptr<cluster::Uplink>> {
        auto made = std::make_shared<SimulatedUplink>(network_, *reactor_, id, 500ms,
                                                      settings_.session_timeout);
        return std::shared_ptr<cluster::Uplink>(made.get(),
                                                [made](cluster::Uplink*) { made->end_for_good(); });
    };
    options.probe = [this](const catalog::Broker& broker,
                           std::move_only_function<void(bool)> answer) {
        auto& machine = Machine::get();
        const auto found = network_.look(id, static_cast<int>(broker.id.value()));
        const Nanos after = found == Network::Found::kNoWay ? Nanos(5s) : machine.some_time(1ms);
        reactor_->post_at(machine.now() + after, [found, answer = std::move(answer)]() mutable {
            answer(found == Network::Found::kRefused);
        });
    };
    options.on_image = [this](const catalog::ImagePtr& image) {
        ledger_.applied(process.name, *image, last_image_);
    };
    options.on_lost = [this](const cluster::Error& why) {
        note(fmt::format("{} is lost: {}", process.name, why.context));
        is_lost_ = true;
        stop();
    };
    return options;
}

void BrokerLife::live() {
    auto& machine = Machine::get();
    reactor_ = std::make_unique<Reactor>(process);
    network_.bind(id, *reactor_);
    pool_ = std::make_unique<base::ThreadPool>("io", 4);
    keeper_ = std::make_unique<ListKeeper>(ledger_, *reactor_, process.name);
    auto started = cluster::Node::start(options());
    if (!started) {
        note(fmt::format("{} does not start: {}", process.name, started.error().context));
        return end();
    }
    node_ = std::move(*started);
    network_.serve(id, *reactor_, node_->roll_call());
    note(fmt::format("{} has started", process.name));
    while (!stopping_) machine.wait(&stopping_);
    note(fmt::format("{} stops", process.name));
    if (!is_lost_) node_->drain(10s);
    node_->stop(5s);
    end();
}

void BrokerLife::end() {
    network_.close(id, *reactor_, true);
    pool_->stop();  // what was not released in time may still be at work in the node's logs
    node_.reset();
    note(fmt::format("{} has ended", process.name));
    Machine::get().kill(process);
}

void BrokerLife::stop() {
    stopping_ = true;
    Machine::get().wake(&stopping_, true);
}

void BrokerLife::lose_its_place() {
    superseded_ = true;
    if (reactor_) network_.break_all(*reactor_);
}

void BrokerLife::kill(bool with_its_host) {
    if (reactor_) network_.close(id, *reactor_, !with_its_host);
    Machine::get().kill(process);
}

}  // namespace kaas::simulation
