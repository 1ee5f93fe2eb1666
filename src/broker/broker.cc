#include "broker/broker.h"

#include "base/clock.h"
#include "base/log.h"
#include "base/metrics.h"
#include "base/thread_pool.h"
#include "broker/controller_calls.h"
#include "broker/coordination/coordination.h"
#include "broker/coordination/marker_sender.h"
#include "broker/coordination/producer_id_source.h"
#include "broker/coordination/slot_topics.h"
#include "broker/dispatcher.h"
#include "broker/handlers/registry.h"
#include "broker/health.h"
#include "broker/internal_listener.h"
#include "broker/log_settings.h"
#include "broker/peers/broker_calls.h"
#include "broker/peers/remote_ends.h"
#include "broker/peers/transaction_peers.h"
#include "broker/refusals.h"
#include "broker/services.h"
#include "catalog/broker_identity.h"
#include "catalog/config/topic_config.h"
#include "catalog/slot.h"
#include "client/channel.h"
#include "client/error.h"
#include "client/peers.h"
#include "cluster/admin.h"
#include "cluster/controller_link.h"
#include "cluster/node.h"
#include "cluster/volume_check.h"
#include "net/reactor.h"
#include "net/server.h"
#include "security/cluster_secret.h"
#include "storage/descriptor_cache.h"
#include "storage/journal.h"
#include "storage/log_cleaner.h"
#include "storage/posix_volume.h"
#include "telemetry/health_server.h"
#include "wire/api.h"
#include "wire/messages/api_versions.h"
#include "wire/messages/list_offsets.h"

#include <fmt/format.h>

#include <sys/resource.h>

#include <algorithm>
#include <atomic>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <system_error>
#include <utility>
#include <vector>

namespace kaas::broker {
namespace {

using std::chrono::milliseconds;

net::ServerOptions server_options(const BrokerConfig& config) {
    const catalog::BrokerSettings& from = config.settings;
    net::ServerOptions to;
    to.connections.max = from.max_connections;
    to.connections.max_per_ip = from.max_connections_per_ip;
    to.connections.per_ip_overrides.insert(config.connection_overrides.begin(),
                                           config.connection_overrides.end());
    to.idle_max = from.connections_max_idle_ms;
    to.request_max_bytes = static_cast<std::uint32_t>(from.socket_request_max_bytes);
    to.send_buffer_bytes = from.socket_send_buffer_bytes;
    to.receive_buffer_bytes = from.socket_receive_buffer_bytes;
    to.listen_backlog = from.socket_listen_backlog_size;
    if (from.queued_max_request_bytes > 0) {
        to.request_memory_bytes = static_cast<std::size_t>(from.queued_max_request_bytes);
    }
    return to;
}

/// Half of what the process may have open is for files of logs, the other half for connections.
/// More than this many save no time that could be measured, and each pins memory of the kernel.
std::size_t open_files_max(const catalog::BrokerSettings& settings) {
    if (settings.kaas_open_files_max > 0)
        return static_cast<std::size_t>(settings.kaas_open_files_max);
    constexpr rlim_t kMost = 16'384;
    rlimit limit{};
    if (::getrlimit(RLIMIT_NOFILE, &limit) != 0) return kMost / 16;
    return std::min(limit.rlim_cur / 2, kMost);
}

/// Apache `GroupCoordinatorService.groupMetadataTopicConfigs`,
/// `TransactionCoordinator.transactionStateTopicConfigs`.
std::map<catalog::SlotKind, cluster::SlotTopic> slot_topics(
    const catalog::BrokerSettings& settings) {
    cluster::SlotTopic groups{
        .slots = settings.offsets_topic_num_partitions,
        .replication_factor = settings.offsets_topic_replication_factor,
        .configs = {{"cleanup.policy", "compact"},
                    {"compression.type", "producer"},
                    {"segment.bytes", std::to_string(settings.offsets_topic_segment_bytes)}}};
    cluster::SlotTopic transactions{
        .slots = settings.transaction_state_log_num_partitions,
        .replication_factor = settings.transaction_state_log_replication_factor,
        .configs = {{"cleanup.policy", "compact"},
                    {"compression.type", "uncompressed"},
                    {"min.insync.replicas", std::to_string(settings.transaction_state_log_min_isr)},
                    {"segment.bytes", std::to_string(settings.transaction_state_log_segment_bytes)},
                    {"unclean.leader.election.enable", "false"}}};
    return {{catalog::SlotKind::kGroup, std::move(groups)},
            {catalog::SlotKind::kTransaction, std::move(transactions)}};
}

coordinator::GroupConfig group_config(const catalog::BrokerSettings& from) {
    return {.initial_rebalance_delay = from.group_initial_rebalance_delay_ms,
            .max_size = static_cast<std::size_t>(from.group_max_size),
            .offset_metadata_max_bytes = static_cast<std::size_t>(from.offset_metadata_max_bytes),
            .offsets_retention = std::chrono::minutes(from.offsets_retention_minutes),
            .retention_check_interval = from.offsets_retention_check_interval_ms,
            .producer_expiration = from.producer_id_expiration_ms};
}

coordinator::TransactionConfig transaction_config(const catalog::BrokerSettings& from) {
    return {.max_timeout = from.transaction_max_timeout_ms,
            .id_expiration = from.transactional_id_expiration_ms,
            .abort_interval = from.transaction_abort_timed_out_transaction_cleanup_interval_ms,
            .expiration_interval = from.transaction_remove_expired_transaction_cleanup_interval_ms,
            .two_phase_commit = from.transaction_two_phase_commit_enable};
}

std::optional<std::string> topic_config_fault(const BrokerConfig& config,
                                              const catalog::ConfigMap& own) {
    auto topic = catalog::resolve_topic_config(own, config.values);
    if (topic) return std::nullopt;
    return topic.error().context;
}

storage::LogConfig log_config(const BrokerConfig& config, const catalog::ConfigMap& own) {
    milliseconds expiration = config.settings.producer_id_expiration_ms;
    auto topic = catalog::resolve_topic_config(own, config.values);
    if (topic) return to_log_config(*topic, expiration);
    // Checked before it was kept; an older broker's idea of a valid value must not lose the topic.
    base::log::warn("broker", "configs of a topic are not valid, defaults are used: {}",
                    topic.error().context);
    return to_log_config(*catalog::resolve_topic_config({}, config.values), expiration);
}

}  // namespace

class Broker::Impl {
public:
    Impl(const BrokerConfig& config, Options options)
        : config_(config),
          options_(std::move(options)),
          reactors_(static_cast<std::size_t>(config.settings.num_network_threads)),
          io_pool_("kaas-io", static_cast<std::size_t>(config.settings.num_io_threads)),
          coordination_(coordination_options()),
          server_(server_options(config), reactors_, dispatcher_, io_pool_, metrics_) {
        if (!config_.internal) return;
        internal_.emplace(server_options(config), dispatcher_, io_pool_, metrics_);
    }

    ~Impl() { stop(); }

    StartResult<void> start() {
        KAAS_TRY(open_volumes());
        KAAS_TRY(listen());
        KAAS_TRY(start_node());
        make_services();
        start_cleaner();
        KAAS_TRY(start_health());
        if (internal_) internal_->start();
        server_.start();
        return {};
    }

    void stop() {
        if (stopped_) return;
        stopped_ = true;
        draining_ = true;
        if (cleaner_) cleaner_->end_soon();
        // A client that does not read its answer has no claim on the time of the partitions.
        const auto& clock = base::Clock::system();
        const milliseconds patience = config_.settings.kaas_drain_timeout_ms;
        const auto deadline = clock.now() + patience;
        if (node_) node_->drain(patience / 4);
        server_.stop(patience / 2);
        // Others may still need an answer while clients end; a release is told in calls of our own.
        if (internal_) internal_->stop(milliseconds(0));
        const auto left = std::chrono::floor<milliseconds>(deadline - clock.now());
        if (node_) node_->stop(std::max(left, milliseconds(0)));
        cleaner_.reset();  // its threads use what belongs to the node
        finish_what_is_under_way();
        health_.reset();
    }

    [[nodiscard]] const std::vector<std::string>& addresses() const { return addresses_; }
    [[nodiscard]] std::uint16_t health_port() const { return health_ ? health_->port() : 0; }

private:
    /// Calls may be on the pool or on their way back to a reactor; they use the services and the
    /// node, so both go only after the last of them.
    void finish_what_is_under_way() {
        coordination_.stop();
        io_pool_.stop();
        if (link_) {  // ends what is open there
            link_->run_and_wait([this] {
                peers_.reset();
                transaction_peers_->end();
                end_calls_->end();
            });
        }
        for (int round = 0; round < 2; ++round) {  // what runs in the first may post once more
            for (std::size_t i = 0; i < reactors_.size(); ++i) end_state_of(reactors_[i]);
            if (internal_) end_state_of(internal_->reactor());
            if (link_) link_->run_and_wait([] {});
        }
    }

    Coordination::Options coordination_options() {
        const catalog::BrokerSettings& from = config_.settings;
        return {.self = config_.node_id,
                .metrics = &metrics_,
                .groups = group_config(from),
                .transactions = transaction_config(from),
                .record_max_bytes =
                    [this](const catalog::ConfigMap& own) {
                        return static_cast<std::size_t>(log_config(config_, own).max_message_bytes);
                    },
                .producer_ids = &producer_id_source_,
                .markers = &marker_sender_};
    }

    StartResult<void> open_volumes() {
        storage::PosixVolumeOptions options;
        options.honest_sync = !config_.ephemeral;
        options.create_root = true;
        options.metrics = &metrics_;
        options.descriptors =
            std::make_shared<storage::DescriptorCache>(open_files_max(config_.settings));
        for (const auto& dir : config_.log_dirs) {
            auto volume = storage::PosixVolume::open(dir.path, options);
            if (!volume) return base::fail(StartFault::kVolume, volume.error().context);
            KAAS_TRY(check_mount(**volume));
            for (const auto& other : volumes_) {
                if (!other.volume->same_directory(**volume)) continue;
                return base::fail(StartFault::kVolume,
                                  fmt::format("log.dirs: {} and {} are one directory; name it once",
                                              other.dir.path, dir.path));
            }
            volumes_.push_back({dir, std::move(*volume)});
        }
        return open_cluster_volume(options);
    }

    [[nodiscard]] bool checks_volumes() const {
        return config_.settings.kaas_volume_check != "off";
    }
    /// Its options alone may say that it cannot be trusted: a first start must write nothing there.
    StartResult<void> check_mount(const storage::PosixVolume& volume) const {
        const auto mount = checks_volumes() ? volume.mount() : std::nullopt;
        if (!mount) return {};
        const auto found = cluster::check_mount(*mount);
        if (found.verdict != cluster::Verdict::kBad) return {};
        return base::fail(StartFault::kVolume,
                          fmt::format("{}: {}. {}", volume.root(), found.what, found.advice));
    }

    /// `kaas.cluster.dir` may be one of the directories for partitions, or one of its own.
    StartResult<void> open_cluster_volume(const storage::PosixVolumeOptions& options) {
        if (!config_.settings.kaas_cluster_dir) return {};
        auto volume = storage::PosixVolume::open(*config_.settings.kaas_cluster_dir, options);
        if (!volume) return base::fail(StartFault::kVolume, volume.error().context);
        for (const auto& other : volumes_) {
            if (other.volume->same_directory(**volume)) cluster_volume_ = other.volume.get();
        }
        if (cluster_volume_ != nullptr) return {};
        KAAS_TRY(check_mount(**volume));
        own_cluster_volume_ = std::move(*volume);
        cluster_volume_ = own_cluster_volume_.get();
        return {};
    }

    StartResult<void> listen() {
        for (const auto& listener : config_.listeners) {
            auto port =
                server_.listen({.name = listener.name,
                                .security_protocol = std::string(name_of(listener.protocol)),
                                .host = listener.host,
                                .port = listener.port});
            if (!port) return base::fail(StartFault::kListen, port.error().context);
            Listener bound = listener;
            bound.port = *port;
            addresses_.push_back(to_string(bound));
            advertise(listener, *port);
        }
        if (!internal_) return {};
        auto endpoint = internal_->listen(*config_.internal);
        if (!endpoint) return base::fail(StartFault::kListen, endpoint.error().context);
        endpoints_.push_back(std::move(*endpoint));
        return {};
    }

    /// Port 0 in `advertised.listeners` is the port that the listener of that name got.
    void advertise(const Listener& listener, std::uint16_t bound_port) {
        for (const auto& told : config_.advertised) {
            if (told.name != listener.name) continue;
            endpoints_.push_back({.listener = told.name,
                                  .security_protocol = std::string(name_of(told.protocol)),
                                  .host = told.host,
                                  .port = told.port == 0 ? bound_port : told.port});
        }
    }

    StartResult<void> start_node() {
        cluster::NodeOptions options;
        options.id = config_.node_id;
        for (const auto& [dir, volume] : volumes_) {
            options.volumes.push_back({.name = dir.name,
                                       .volume = volume.get(),
                                       .name_chosen = dir.name_chosen,
                                       .labels = dir.labels,
                                       .default_eligible = dir.default_eligible,
                                       .cordoned = dir.cordoned});
        }
        options.cluster_volume = cluster_volume_;
        options.check_volumes = checks_volumes();
        options.endpoints = endpoints_;
        options.rack = config_.settings.broker_rack;
        options.logs.stall_after = config_.settings.kaas_fsync_max_latency_ms;
        // `auto` is `on`: it was quicker wherever it was measured (docs/decisions/0018). Without
        // syncs there are none to save.
        options.logs.journal = !config_.ephemeral && config_.settings.kaas_journal != "off";
        options.controller.default_partitions = config_.settings.num_partitions;
        options.controller.default_replication_factor =
            static_cast<std::int16_t>(config_.settings.default_replication_factor);
        options.controller.balance.repair = config_.settings.auto_leader_rebalance_enable;
        options.controller.balance.check_interval =
            config_.settings.leader_imbalance_check_interval_seconds;
        options.controller.slot_topics = slot_topics(config_.settings);
        options.controller.topic_config_fault = [this](const catalog::ConfigMap& own) {
            return topic_config_fault(config_, own);
        };
        options.log_config = [this](const catalog::ConfigMap& own) {
            return log_config(config_, own);
        };
        options.upkeep = {
            .first = config_.settings.log_initial_task_delay_ms,
            .segments = config_.settings.log_retention_check_interval_ms,
            .producers = config_.settings.producer_id_expiration_check_interval_ms,
        };
        if (internal_) share_volumes(options);
        options.transaction_max_timeout = config_.settings.transaction_max_timeout_ms;
        options.slot_host = &coordination_;
        options.io_pool = &io_pool_;
        options.metrics = &metrics_;
        options.on_image = [this](const catalog::ImagePtr& next) {
            topic_metrics_.apply(next);
            coordination_.apply(next);
            if (!link_) return;
            transaction_peers_->apply(next);
            link_->post([this, next] { end_calls_->apply(*next); });
        };
        options.on_lost = [this](const cluster::Error& error) { options_.on_lost(error.context); };
        auto node = cluster::Node::start(std::move(options));
        if (!node) return base::fail(StartFault::kCluster, node.error().context);
        node_ = std::move(*node);
        return {};
    }

    void share_volumes(cluster::NodeOptions& options) {
        options.sharing = cluster::Sharing::kShared;
        options.session_timeout = config_.settings.broker_session_timeout_ms;
        options.death_grace = config_.settings.kaas_death_grace_ms;
        options.uplink = [this](storage::Volume& volume) { return join_others(volume); };
        options.probe = [this](const catalog::Broker& broker, auto told) {
            probe(broker, std::move(told));
        };
    }
    /// The ways to brokers of other processes, and who may come here from them.
    cluster::Result<std::shared_ptr<cluster::Uplink>> join_others(storage::Volume& volume) {
        auto secret = security::cluster_secret(volume);
        if (!secret) return cluster::fail(cluster::ErrorCode::kStorage, secret.error().context);
        link_ = std::make_unique<net::Reactor>("kaas-link");
        const client::Channel::Options channel{.reactor = link_.get(),
                                               .resolver = &io_pool_,
                                               .client_id = fmt::format("kaas-{}", config_.node_id),
                                               .credentials = client::Channel::Credentials{
                                                   std::string(catalog::kBrokerUser), *secret}};
        internal_->trust(std::move(*secret));
        peers_ = std::make_unique<client::Peers>(channel);
        transaction_peers_ = std::make_unique<TransactionPeers>(*link_, channel);
        end_calls_ = std::make_unique<BrokerCalls>(channel);
        remote_ends_ = std::make_unique<RemoteEnds>(
            *link_, base::Clock::system(), [this](auto to, const auto& request, auto done) {
                end_calls_->call<wire::ListOffsetsRequest>(to, request, std::move(done));
            });
        return std::make_shared<cluster::ControllerLink>(cluster::ControllerLink::Options{
            .reactor = link_.get(),
            .channel = channel,
            .heartbeat_interval = config_.settings.broker_heartbeat_interval_ms,
            .session_timeout = config_.settings.broker_session_timeout_ms,
            .round_trip = &metrics_.histogram("kaas_heartbeat_rtt_seconds",
                                              "From a report to the controller to its answer.")});
    }
    /// Whether anybody listens where the broker did. Any call opens the connection.
    void probe(const catalog::Broker& broker, std::move_only_function<void(bool refused)> told) {
        const auto* at = broker.endpoint(catalog::kInternalListener);
        if (at == nullptr) return;
        link_->post([this, host = at->host, port = at->port, told = std::move(told)]() mutable {
            peers_->at(host, port)
                .call<wire::ApiVersionsRequest>(
                    {}, 0, std::chrono::seconds(5),
                    [told = std::move(told)](const auto& answer) mutable {
                        told(!answer && answer.error().code == client::ErrorCode::kRefused);
                    });
        });
    }

    GroupLag::EndOffset end_offsets() {
        auto partitions = std::make_shared<cluster::PartitionReader>(node_->partitions().reader());
        return [this, partitions](const coordinator::GroupSlot::CommittedOffset& committed)
                   -> std::optional<base::Offset> {
            const bool has_id = !committed.topic_id.uuid.is_zero();
            const auto hosted = has_id ? partitions->find(committed.topic_id, committed.partition)
                                       : partitions->find(committed.topic, committed.partition);
            if (hosted.log != nullptr) return hosted.log->view().high_watermark;
            const auto& image = partitions->image();
            return end_elsewhere(
                image, has_id ? image.topic(committed.topic_id) : image.topic(committed.topic),
                committed.partition);
        };
    }
    [[nodiscard]] std::optional<base::Offset> end_elsewhere(const catalog::Image& image,
                                                            const catalog::Topic* topic,
                                                            base::PartitionId partition) {
        const auto* known = topic == nullptr ? nullptr : topic->partition(partition);
        if (!remote_ends_ || known == nullptr) return std::nullopt;
        const auto leader = image.leader(*known);
        if (leader == catalog::kNoBroker || leader == config_.node_id) return std::nullopt;
        return remote_ends_->look(leader, topic->name, partition);
    }

    void make_services() {
        controller_calls_.emplace(
            ControllerCalls::Options{.controller = &node_->controller(),
                                     .link = link_.get(),
                                     .address = [this] { return node_->controller_elsewhere(); },
                                     .peers = peers_.get(),
                                     .self = config_.node_id});
        fetch_sessions_.emplace(
            static_cast<std::size_t>(config_.settings.max_incremental_fetch_session_cache_slots),
            base::Clock::system(), metrics_);
        producer_ids_.emplace(*controller_calls_);
        slot_topics_.emplace(*controller_calls_, base::Clock::system());
        producer_id_source_.begin(*producer_ids_, coordination_.loop());
        marker_sender_.begin(*node_, coordination_, transaction_peers_.get());
        coordination_.begin(end_offsets(), [this](const cluster::SlotId& id) {
            return node_->slots()->is_offline(id);
        });
        services_.emplace(Services{.config = config_,
                                   .node = *node_,
                                   .io_pool = io_pool_,
                                   .metrics = metrics_,
                                   .clock = base::Clock::system(),
                                   .fetch_sessions = *fetch_sessions_,
                                   .controller_calls = *controller_calls_,
                                   .producer_ids = *producer_ids_,
                                   .coordination = coordination_,
                                   .slot_topics = *slot_topics_,
                                   .transaction_peers = transaction_peers_.get(),
                                   .refusals = Refusals(metrics_)});
        for (std::size_t i = 0; i < reactors_.size(); ++i) add_state_of(reactors_[i]);
        if (internal_) {
            add_state_of(internal_->reactor());
            services_->broker_credential = &internal_->credential();
        }
        for (const Audience audience : kAudiences) {
            for (const auto& handler : handlers(audience)) note_latency_of(handler.key);
        }
        dispatcher_.begin(*services_);
    }

    void add_state_of(net::Reactor& reactor) {
        auto& state = services_->states[&reactor];
        state = std::make_unique<ReactorState>(
            ReactorState{node_->partitions().reader(), {}, TopicMetrics::Reader(topic_metrics_)});
        reactor.run_and_wait(
            [&] { reactor.on_tick([partitions = &state->partitions] { partitions->refresh(); }); });
    }

    /// Behind all that was posted to it.
    static void end_state_of(net::Reactor& reactor) {
        reactor.run_and_wait([&] { reactor.on_tick({}); });
    }

    void note_latency_of(wire::ApiKey key) {
        services_->latencies.at(static_cast<std::size_t>(key)) = &metrics_.histogram(
            "kaas_request_latency_seconds", "From a request's arrival to its answer.",
            {{"api_key", std::string(wire::api(key).name)}});
    }

    void start_cleaner() {
        if (!config_.settings.log_cleaner_enable) return;
        cleaner_.emplace(
            storage::LogCleaner::Options{.config = to_cleaner_config(config_.settings),
                                         .logs = [this] { return node_->partitions().open_logs(); },
                                         .metrics = &metrics_});
        cleaner_->start();
    }

    StartResult<void> start_health() {
        if (!config_.health) return {};
        telemetry::HealthServerOptions options;
        options.host = config_.health->host;
        options.port = config_.health->port;
        auto server = telemetry::HealthServer::start(
            options, metrics_,
            health_report(*node_, reactors_, coordination_.loop(), config_, draining_));
        if (server) {
            health_ = std::move(*server);
            return {};
        }
        if (!config_.health->is_default) {
            return base::fail(StartFault::kHealth, server.error().context);
        }
        base::log::warn("broker", "no health server: {}", server.error().context);
        return {};
    }

    struct OpenVolume {
        LogDir dir;
        std::unique_ptr<storage::PosixVolume> volume;
    };

    const BrokerConfig config_;
    const Options options_;
    base::metrics::Registry metrics_;
    TopicMetrics topic_metrics_{metrics_};
    ProducerIdSource producer_id_source_;
    MarkerSender marker_sender_;
    std::vector<OpenVolume> volumes_;
    std::unique_ptr<storage::PosixVolume> own_cluster_volume_;  ///< when it holds no partitions
    storage::Volume* cluster_volume_ = nullptr;                 ///< when it was named
    net::ReactorPool reactors_;
    base::ThreadPool io_pool_;
    Coordination coordination_;
    Dispatcher dispatcher_;
    net::Server server_;
    std::optional<InternalListener> internal_;
    std::vector<std::string> addresses_;
    std::vector<catalog::Endpoint> endpoints_;
    /// Where links to other brokers live, and the links; null alone.
    std::unique_ptr<net::Reactor> link_;
    std::unique_ptr<client::Peers> peers_;
    std::unique_ptr<TransactionPeers> transaction_peers_;
    std::unique_ptr<BrokerCalls> end_calls_;
    std::unique_ptr<RemoteEnds> remote_ends_;
    std::unique_ptr<cluster::Node> node_;
    std::optional<storage::LogCleaner> cleaner_;
    std::optional<FetchSessions> fetch_sessions_;
    std::optional<ControllerCalls> controller_calls_;
    std::optional<ProducerIds> producer_ids_;
    std::optional<SlotTopics> slot_topics_;
    std::optional<Services> services_;
    std::unique_ptr<telemetry::HealthServer> health_;
    std::atomic<bool> draining_ = false;
    bool stopped_ = false;
};

StartResult<std::unique_ptr<Broker>> Broker::start(const BrokerConfig& config, Options options) {
    try {
        auto impl = std::make_unique<Impl>(config, std::move(options));
        KAAS_TRY(impl->start());
        return std::unique_ptr<Broker>(new Broker(std::move(impl)));
    } catch (const std::system_error& error) {
        return base::fail(
            StartFault::kSystem,
            fmt::format("too few threads or descriptors for num.network.threads={} and "
                        "num.io.threads={}: {}",
                        config.settings.num_network_threads, config.settings.num_io_threads,
                        error.what()));
    }
}

Broker::Broker(std::unique_ptr<Impl> impl) : impl_(std::move(impl)) {}
Broker::~Broker() = default;

const std::vector<std::string>& Broker::addresses() const { return impl_->addresses(); }
std::uint16_t Broker::health_port() const { return impl_->health_port(); }
void Broker::stop() { impl_->stop(); }

}  // namespace kaas::broker
