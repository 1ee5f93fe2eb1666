#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>

/// What is known of every config. The tables are generated from config/*.toml.
namespace kaas::catalog {

/// The numbers are those of DescribeConfigs (Apache `DescribeConfigsResponse.ConfigType`).
enum class ConfigType : std::int8_t {
    kBoolean = 1,
    kString = 2,
    kInt = 3,
    kShort = 4,
    kLong = 5,
    kDouble = 6,
    kList = 7,
    kClass = 8,
    kPassword = 9,
};

/// How a broker config may change while the broker runs (KIP-226).
enum class UpdateMode { kReadOnly, kPerBroker, kClusterWide };

enum class Importance { kHigh, kMedium, kLow };

/// What becomes of a value that somebody sets.
enum class Meaning {
    kServed,  ///< it counts
    kLater,   ///< it is checked and kept; the feature is not part of this version
    kNone,    ///< it is checked and kept; kaas works in another way
};

/// Strings with a grammar of their own.
enum class ValueForm {
    kAny,
    kThrottledReplicas,  ///< `*`, or `partition:broker` entries
    kOffsetReset,        ///< latest, earliest, by_duration:<ISO 8601>
};

/// Which values are good. A config that is not set is only checked where Apache refuses an explicit
/// null.
struct ValueRule {
    std::optional<double> min{};
    std::optional<double> max{};
    std::optional<double> or_value{};            ///< good although it lies outside min and max
    std::span<const std::string_view> one_of{};  ///< of a string, or of each element of a list
    bool any_case = false;                       ///< one_of compares without case
    bool not_empty = false;
    bool unique = false;  ///< a list drops repeated elements and refuses empty ones
    ValueForm form = ValueForm::kAny;
};

/// A broker config that stands in for a topic's or group's when that is not set, times `factor`
/// (hours to milliseconds).
struct BrokerSynonym {
    std::string_view name;
    std::int64_t factor = 1;
};

struct ConfigDefinition {
    std::string_view name;
    ConfigType type = ConfigType::kString;
    std::optional<std::string_view> default_value{};
    bool default_is_cores = false;  ///< the default is the number of processors
    ValueRule rule{};
    Importance importance = Importance::kMedium;
    UpdateMode update = UpdateMode::kReadOnly;
    bool internal = false;      ///< known, but not shown by DescribeConfigs unless it is set
    bool dynamic_only = false;  ///< exists only while it is set dynamically
    std::span<const BrokerSynonym> broker_synonyms{};
    std::string_view help;
    Meaning meaning = Meaning::kServed;
    std::string_view reason{};  ///< why it does not count, unless it is served

    [[nodiscard]] bool sensitive() const { return type == ConfigType::kPassword; }
    /// The default as a file would write it; empty when there is none.
    [[nodiscard]] std::optional<std::string> default_text() const;
};

/// All configs of one kind of resource, sorted by name.
/// Thread: any, it never changes.
class ConfigTable {
public:
    /// `definitions` are sorted by name and live for ever.
    ConfigTable(std::string_view kind, std::span<const ConfigDefinition> definitions);

    [[nodiscard]] std::string_view kind() const { return kind_; }
    [[nodiscard]] std::span<const ConfigDefinition> all() const { return definitions_; }
    /// Null when there is no config of that name.
    [[nodiscard]] const ConfigDefinition* find(std::string_view name) const;
    [[nodiscard]] std::size_t index_of(const ConfigDefinition& definition) const;
    /// The known name that a misspelt one most likely means; empty when none is near.
    [[nodiscard]] std::string_view nearest(std::string_view name) const;

private:
    std::string_view kind_;
    std::span<const ConfigDefinition> definitions_;
};

[[nodiscard]] const ConfigTable& broker_configs();
[[nodiscard]] const ConfigTable& topic_configs();
[[nodiscard]] const ConfigTable& group_configs();
[[nodiscard]] const ConfigTable& client_metrics_configs();

}  // namespace kaas::catalog
