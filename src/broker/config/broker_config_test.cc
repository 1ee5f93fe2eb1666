// Goal: a broker starts only with a configuration that means what its author thinks. Method: whole
// configurations through load_config, each case named by the fault it catches.

#include "broker/config/broker_config.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <chrono>
#include <filesystem>
#include <ostream>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace kaas::broker {
namespace {

using catalog::ConfigFault;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::SizeIs;

ConfigInputs with_file(std::string text) {
    return {.file = std::move(text), .file_name = "server.properties"};
}

TEST(BrokerConfig, NothingIsNeeded) {
    auto loaded = load_config({});
    ASSERT_TRUE(loaded) << loaded.error().context;
    const BrokerConfig& config = loaded->config;
    EXPECT_EQ(config.node_id.value(), 1);
    EXPECT_THAT(config.listeners, ElementsAre(Listener{"PLAINTEXT", SecurityProtocol::kPlaintext,
                                                       "127.0.0.1", 9092}));
    EXPECT_EQ(config.advertised, config.listeners);
    EXPECT_THAT(config.log_dirs,
                ElementsAre(LogDir{.name = "default",
                                   .path = std::filesystem::current_path() / "kaas-data"}));
    EXPECT_EQ(config.health, (HealthAddress{"127.0.0.1", 8080, true}));
    EXPECT_EQ(config.settings.log_flush_interval_messages, 1);
    EXPECT_EQ(config.settings.connections_max_idle_ms, std::chrono::minutes(10));
    EXPECT_FALSE(config.ephemeral);
    EXPECT_THAT(loaded->notes, IsEmpty());
    EXPECT_THAT(loaded->warnings, IsEmpty());
}

TEST(BrokerConfig, LaterPlacesWin) {
    ConfigInputs inputs =
        with_file("num.partitions=2\nlog.segment.bytes=2000000\nmessage.max.bytes=1\n");
    inputs.environment = {
        {"KAFKA_NUM_PARTITIONS", "3"}, {"KAFKA_LOG_SEGMENT_BYTES", "3000000"}, {"PATH", "/bin"}};
    inputs.overrides = {"num.partitions=4", "num.partitions=5"};
    auto loaded = load_config(inputs);
    ASSERT_TRUE(loaded) << loaded.error().context;
    EXPECT_EQ(loaded->config.settings.num_partitions, 5);
    EXPECT_EQ(loaded->config.settings.log_segment_bytes, 3000000);
    EXPECT_EQ(loaded->config.settings.message_max_bytes, 1);
    EXPECT_EQ(loaded->config.given.at("num.partitions"), "5");
}

/// The file that Apache 4.4 ships for a node that is broker and controller.
TEST(BrokerConfig, ApachesOwnFileStarts) {
    auto loaded = load_config(with_file(R"(
process.roles=broker,controller
node.id=7
controller.quorum.bootstrap.servers=localhost:9093
listeners=PLAINTEXT://:9092,CONTROLLER://:9093
inter.broker.listener.name=PLAINTEXT
advertised.listeners=PLAINTEXT://localhost:9092,CONTROLLER://localhost:9093
controller.listener.names=CONTROLLER
listener.security.protocol.map=CONTROLLER:PLAINTEXT,PLAINTEXT:PLAINTEXT,SSL:SSL,SASL_PLAINTEXT:SASL_PLAINTEXT
num.network.threads=3
log.dirs=/var/lib/kafka
offsets.topic.replication.factor=1
log.retention.hours=168
)"));
    ASSERT_TRUE(loaded) << loaded.error().context;
    EXPECT_EQ(loaded->config.node_id.value(), 7);
    EXPECT_EQ(loaded->config.given.at("broker.id"), "7");
    EXPECT_THAT(loaded->config.listeners,
                ElementsAre(Listener{"PLAINTEXT", SecurityProtocol::kPlaintext, "", 9092}));
    EXPECT_THAT(loaded->config.advertised, SizeIs(1));
    EXPECT_EQ(loaded->config.log_dirs.front().path, "/var/lib/kafka");
    EXPECT_THAT(loaded->notes, ::testing::Contains(HasSubstr("CONTROLLER://:9093 is not opened")));
    EXPECT_THAT(loaded->notes, ::testing::Contains(HasSubstr("process.roles")));
}

struct BadConfig {
    std::string_view fault;
    std::string file;
    ConfigFault code;
    std::string_view said;
};
std::ostream& operator<<(std::ostream& out, const BadConfig& bad) { return out << bad.fault; }

class BrokerConfigRefuses : public ::testing::TestWithParam<BadConfig> {};

TEST_P(BrokerConfigRefuses, AndSaysWhy) {
    auto loaded = load_config(with_file(GetParam().file));
    ASSERT_FALSE(loaded);
    EXPECT_EQ(loaded.error().code, GetParam().code);
    EXPECT_THAT(loaded.error().context, HasSubstr(GetParam().said));
}

INSTANTIATE_TEST_SUITE_P(
    Faults, BrokerConfigRefuses,
    ::testing::Values(
        BadConfig{"TypoInAName", "log.segment.byte=1048576", ConfigFault::kUnknownName,
                  "did you mean 'log.segment.bytes'?"},
        BadConfig{"NameWithUnderscores", "log_segment_bytes=1048576", ConfigFault::kUnknownName,
                  "did you mean 'log.segment.bytes'?"},
        BadConfig{"TopicConfigInABrokersFile", "retention.ms=1", ConfigFault::kUnknownName,
                  "'log.retention.ms'"},
        BadConfig{"UnlikeAnything", "frobnicate=1", ConfigFault::kUnknownName,
                  "unknown broker config 'frobnicate'"},
        BadConfig{"TypoBehindAListenerPrefix", "listener.name.a.ssl.keystor.location=/k",
                  ConfigFault::kUnknownName,
                  "did you mean 'listener.name.a.ssl.keystore.location'?"},
        BadConfig{"NoConfigBehindAListenerPrefix", "listener.name.foo.bar=1",
                  ConfigFault::kUnknownName, "unknown broker config 'listener.name.foo.bar'"},
        BadConfig{"WrongLastPart", "kaas.health.port=1", ConfigFault::kUnknownName,
                  "did you mean 'kaas.health.listener'?"},
        BadConfig{"TypoInAFamily", "kaas.voulme.a.path=/a", ConfigFault::kUnknownName,
                  "did you mean 'kaas.volume.a.path'?"},
        BadConfig{"QuotaThatIsOnlyDynamic", "leader.replication.throttled.rate=1",
                  ConfigFault::kUnknownName, "only be set dynamically"},
        BadConfig{
            "SegmentTooSmall", "log.segment.bytes=100", ConfigFault::kInvalidValue,
            "server.properties: log.segment.bytes cannot be '100': it must be at least 1048576"},
        BadConfig{"WordForANumber", "num.partitions=two", ConfigFault::kInvalidValue,
                  "a 32-bit integer"},
        BadConfig{"TwoIds", "node.id=1\nbroker.id=2", ConfigFault::kConflict,
                  "two names of one thing"},
        BadConfig{"ControllerAlone", "process.roles=controller", ConfigFault::kConflict,
                  "must contain broker"},
        BadConfig{"SlowHeartbeats", "broker.heartbeat.interval.ms=6000", ConfigFault::kConflict,
                  "must be less than broker.session.timeout.ms"},
        BadConfig{"ClusterMode", "kaas.mode=kubernetes", ConfigFault::kConflict,
                  "use standalone or volume"},
        BadConfig{"TlsListener", "listeners=SSL://:9093", ConfigFault::kConflict, "only PLAINTEXT"},
        BadConfig{"SaslByMap",
                  "listeners=A://:9093\nlistener.security.protocol.map=A:SASL_PLAINTEXT",
                  ConfigFault::kConflict, "SASL_PLAINTEXT"},
        BadConfig{"Authorizer", "authorizer.class.name=org.example.Authorizer",
                  ConfigFault::kConflict, "authorizer.class.name=org.example.Authorizer asks for"},
        BadConfig{"TlsAmongBrokers", "security.inter.broker.protocol=SSL", ConfigFault::kConflict,
                  "security.inter.broker.protocol=SSL"},
        BadConfig{"InterBrokerListenerThatIsNotThere", "inter.broker.listener.name=FOO",
                  ConfigFault::kConflict, "inter.broker.listener.name=FOO"},
        BadConfig{"InterBrokerListenerInTwoWays",
                  "inter.broker.listener.name=PLAINTEXT\nsecurity.inter.broker.protocol=PLAINTEXT",
                  ConfigFault::kConflict, "two ways"},
        BadConfig{"BytesThatAreNoText", "broker.rack=\xff", ConfigFault::kInvalidValue,
                  "broker.rack is not UTF-8"},
        BadConfig{"OnlyAControllerListener", "listeners=C://:9093\ncontroller.listener.names=C",
                  ConfigFault::kConflict, "none is left"},
        BadConfig{"EveryInterfaceAdvertised", "listeners=PLAINTEXT://0.0.0.0:9092",
                  ConfigFault::kConflict, "advertised.listeners=PLAINTEXT://localhost:9092"},
        BadConfig{"MemoryBelowOneRequest", "queued.max.request.bytes=1000", ConfigFault::kConflict,
                  "socket.request.max.bytes"},
        BadConfig{"NobodyMayConnect", "max.connections.per.ip=0", ConfigFault::kConflict,
                  "overrides"},
        BadConfig{"RetentionOfNothing", "log.retention.ms=0", ConfigFault::kConflict,
                  "at least 1, or -1"},
        BadConfig{"RollOfNothing", "log.roll.ms=0", ConfigFault::kConflict, "log.roll.ms"},
        BadConfig{"LagsCross",
                  "log.cleaner.min.compaction.lag.ms=9\nlog.cleaner.max.compaction.lag.ms=8",
                  ConfigFault::kConflict, "max.compaction.lag.ms"},
        BadConfig{"HealthWithoutPort", "kaas.health.listener=localhost", ConfigFault::kInvalidValue,
                  "host:port"},
        BadConfig{"SameDirectoryTwice", "log.dirs=/a,/b\nkaas.volume.fast.path=/b",
                  ConfigFault::kConflict, "configured twice"},
        BadConfig{"DirectoriesOfOneName", "log.dirs=/x\nkaas.volume.default.path=/y",
                  ConfigFault::kConflict, "kaas.volume.<name>.path"},
        BadConfig{"VolumeWithoutDirectory", "kaas.volume.fast.labels=tier=ssd",
                  ConfigFault::kConflict, "kaas.volume.fast.path"},
        BadConfig{"BrokenEscape", "broker.rack=\\u12", ConfigFault::kInvalidValue, "line 1"}),
    [](const auto& info) { return std::string(info.param.fault); });

TEST(BrokerConfig, ServiceVariablesOfKubernetesOnlyWarn) {
    ConfigInputs inputs;
    inputs.environment = {{"KAFKA_PORT", "tcp://10.0.0.1:9092"},
                          {"KAFKA_SERVICE_HOST", "10.0.0.1"},
                          {"KAFKA_HEAP_OPTS", "-Xmx1g"}};
    auto loaded = load_config(inputs);
    ASSERT_TRUE(loaded) << loaded.error().context;
    EXPECT_THAT(loaded->warnings,
                ElementsAre(HasSubstr("KAFKA_PORT"), HasSubstr("KAFKA_SERVICE_HOST")));
}

TEST(BrokerConfig, BadValueInTheEnvironmentStopsTheStart) {
    ConfigInputs inputs;
    inputs.environment = {{"KAFKA_NUM_PARTITIONS", "0"}};
    auto loaded = load_config(inputs);
    ASSERT_FALSE(loaded);
    EXPECT_THAT(loaded.error().context,
                HasSubstr("KAFKA_NUM_PARTITIONS: num.partitions cannot be '0'"));
}

TEST(BrokerConfig, OverrideWithoutAValueIsRefused) {
    auto loaded = load_config({.overrides = {"num.partitions"}});
    ASSERT_FALSE(loaded);
    EXPECT_THAT(loaded.error().context, HasSubstr("'num.partitions' is not of the form key=value"));
}

TEST(BrokerConfig, ASecretIsNotRepeatedInAMessage) {
    auto loaded = load_config(with_file("listener.name.a.ssl.key.password=hunter2\nlog.dirs=,"));
    ASSERT_FALSE(loaded);
    EXPECT_THAT(loaded.error().context, ::testing::Not(HasSubstr("hunter2")));
}

TEST(BrokerConfig, FamiliesAreKept) {
    auto loaded =
        load_config(with_file("super.users=User:admin\nallow.everyone.if.no.acl.found=true\n"
                              "listener.name.internal.plain.sasl.jaas.config=x\n"
                              "kaas.volume.fast.path=/vols/fast\n"
                              "kaas.volume.fast.labels=tier=ssd, zone=a\n"
                              "kaas.volume.fast.default.eligible=false\n"));
    ASSERT_TRUE(loaded) << loaded.error().context;
    EXPECT_EQ(loaded->config.given.at("super.users"), "User:admin");
    LogDir fast{.name = "fast",
                .path = "/vols/fast",
                .name_chosen = true,
                .labels = {{"tier", "ssd"}, {"zone", "a"}},
                .default_eligible = false};
    EXPECT_THAT(loaded->config.log_dirs,
                ElementsAre(LogDir{.name = "default",
                                   .path = std::filesystem::current_path() / "kaas-data"},
                            fast));
}

/// With PLAINTEXT listeners alone these protect nothing, in Apache neither; but it is said.
TEST(BrokerConfig, SecurityWithoutAListenerForItIsSaidToBeWithoutEffect) {
    const std::string_view names[] = {"super.users",
                                      "allow.everyone.if.no.acl.found",
                                      "listener.name.a.ssl.keystore.location",
                                      "ssl.client.auth",
                                      "sasl.enabled.mechanisms",
                                      "listener.name.a.max.connections"};
    auto loaded = load_config(
        with_file("super.users=User:a\nallow.everyone.if.no.acl.found=false\n"
                  "listener.name.a.ssl.keystore.location=/k\nssl.client.auth=required\n"
                  "sasl.enabled.mechanisms=PLAIN\nlistener.name.a.max.connections=5\n"));
    ASSERT_TRUE(loaded) << loaded.error().context;
    for (auto name : names) {
        EXPECT_THAT(loaded->notes, ::testing::Contains(AllOf(HasSubstr("without effect"),
                                                             HasSubstr(std::string(name)))));
    }
    EXPECT_THAT(loaded->notes, SizeIs(3)) << "one line for each reason";
}

/// What the start script of Apache's image sets when nobody says more than it must.
TEST(BrokerConfig, DefaultsOfApachesImageStart) {
    ConfigInputs inputs;
    inputs.environment = {
        {"KAFKA_NODE_ID", "1"},
        {"KAFKA_PROCESS_ROLES", "broker,controller"},
        {"KAFKA_LISTENERS", "PLAINTEXT_HOST://:9092,CONTROLLER://:9093,PLAINTEXT://:19092"},
        {"KAFKA_ADVERTISED_LISTENERS", "PLAINTEXT_HOST://localhost:9092,PLAINTEXT://broker:19092"},
        {"KAFKA_CONTROLLER_LISTENER_NAMES", "CONTROLLER"},
        {"KAFKA_LISTENER_SECURITY_PROTOCOL_MAP",
         "CONTROLLER:PLAINTEXT,PLAINTEXT:PLAINTEXT,PLAINTEXT_HOST:PLAINTEXT,SSL:SSL,"
         "SASL_PLAINTEXT:SASL_PLAINTEXT,SASL_SSL:SASL_SSL"},
        {"KAFKA_CONTROLLER_QUORUM_VOTERS", "1@broker:9093"},
        {"KAFKA_INTER_BROKER_LISTENER_NAME", "PLAINTEXT"},
        {"KAFKA_OFFSETS_TOPIC_REPLICATION_FACTOR", "1"},
        {"KAFKA_GROUP_INITIAL_REBALANCE_DELAY_MS", "0"},
        {"KAFKA_TRANSACTION_STATE_LOG_MIN_ISR", "1"},
        {"KAFKA_LOG_DIRS", "/tmp/kraft-combined-logs"}};
    auto loaded = load_config(inputs);
    ASSERT_TRUE(loaded) << loaded.error().context;
    EXPECT_THAT(loaded->warnings, IsEmpty());
    EXPECT_THAT(loaded->config.advertised, SizeIs(2));
}

TEST(BrokerConfig, EphemeralDataLiesInItsOwnDirectoryAlone) {
    ConfigInputs inputs = with_file("num.partitions=3");
    inputs.ephemeral_dir = "/tmp/kaas-x";
    auto loaded = load_config(inputs);
    ASSERT_TRUE(loaded) << loaded.error().context;
    EXPECT_TRUE(loaded->config.ephemeral);
    EXPECT_THAT(loaded->config.log_dirs,
                ElementsAre(LogDir{.name = "default", .path = "/tmp/kaas-x"}));
}

TEST(BrokerConfig, EphemeralAndANamedDirectoryExcludeEachOther) {
    for (const auto* named : {"log.dirs", "log.dir", "kaas.cluster.dir", "kaas.volume.fast.path"}) {
        ConfigInputs inputs = with_file(std::string(named) + "=/precious");
        inputs.ephemeral_dir = "/tmp/kaas-x";
        auto loaded = load_config(inputs);
        ASSERT_FALSE(loaded) << named;
        EXPECT_THAT(loaded.error().context, HasSubstr(named));
    }
}

TEST(BrokerConfig, DirectoriesOfOneLastPartGetNamesOfTheirOwn) {
    auto loaded = load_config(with_file("log.dirs=/mnt/1/kafka,/mnt/2/kafka/,/mnt/3/kafka"));
    ASSERT_TRUE(loaded) << loaded.error().context;
    EXPECT_THAT(loaded->config.log_dirs,
                ElementsAre(LogDir{.name = "default", .path = "/mnt/1/kafka"},
                            LogDir{.name = "kafka", .path = "/mnt/2/kafka"},
                            LogDir{.name = "mnt-3-kafka", .path = "/mnt/3/kafka"}));
}

TEST(BrokerConfig, ConnectionOverridesNameAddresses) {
    auto loaded = load_config(
        with_file("max.connections.per.ip=0\n"
                  "max.connections.per.ip.overrides=10.0.0.7:5, 0:0:0:0:0:0:0:1:6,[::2]:7"));
    ASSERT_TRUE(loaded) << loaded.error().context;
    EXPECT_EQ(loaded->config.connection_overrides,
              (ConnectionOverrides{{"10.0.0.7", 5}, {"::1", 6}, {"::2", 7}}));
    for (const char* wrong : {"10.0.0.7", "10.0.0.7:", "10.0.0.7:-1", "somewhere:5", ":5"}) {
        EXPECT_FALSE(
            load_config(with_file(std::string("max.connections.per.ip.overrides=") + wrong)))
            << wrong;
    }
}

TEST(BrokerConfig, StandaloneHasNoInternalListener) {
    auto loaded = load_config(with_file("kaas.internal.listener=0.0.0.0:9094"));
    ASSERT_TRUE(loaded) << loaded.error().context;
    EXPECT_FALSE(loaded->config.internal);
    EXPECT_EQ(loaded->config.settings.broker_session_timeout_ms.count(), 6000);
    EXPECT_EQ(loaded->config.settings.broker_heartbeat_interval_ms.count(), 500);
    EXPECT_EQ(loaded->config.settings.kaas_death_grace_ms.count(), 300);
}

TEST(BrokerConfig, EmptyHostIsAdvertisedByName) {
    ConfigInputs inputs = with_file("listeners=PLAINTEXT://:9092");
    inputs.machine_name = "worker-3";
    auto loaded = load_config(inputs);
    ASSERT_TRUE(loaded) << loaded.error().context;
    EXPECT_EQ(loaded->config.listeners.front().host, "");
    EXPECT_EQ(loaded->config.advertised.front().host, "worker-3");
}

}  // namespace
}  // namespace kaas::broker
