#pragma once

#include "base/ids.h"
#include "base/uuid.h"
#include "catalog/change.h"
#include "catalog/image.h"
#include "catalog/model.h"
#include "cluster/admin.h"
#include "cluster/error.h"
#include "cluster/volume_proof.h"

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <variant>
#include <vector>

/// What brokers and the controller say to each other (DESIGN 10), and the JSON that it is in the
/// tagged field `kLinkTag` of BrokerRegistration (62) and BrokerHeartbeat (63), beside what Apache
/// has there. Lines and pictures are those of the control log.
namespace kaas::cluster {

inline constexpr std::uint32_t kLinkTag = 10'000;

/// A broker as one run of its process. Its sessions may change while it lasts.
struct BrokerLife {
    base::BrokerId broker;
    base::Uuid process;
    friend bool operator==(const BrokerLife&, const BrokerLife&) = default;
};

/// A broker joins, comes back, has a new session, or introduces itself to a new controller.
struct Registration {
    BrokerLife life;
    std::string cluster_id;
    catalog::Broker broker;
    /// Of a life that is new to the cluster: what it asks the controller's broker to witness first,
    /// by volume.
    std::optional<VolumeProof> proof{};
};

/// What a broker reports, and that it lives.
struct Report {
    /// `applied` is the version of an image that it goes by; what was pushed before it is in that
    /// image when `and_before`.
    struct Applied {
        catalog::ImageVersion version;
        bool and_before = false;
        friend bool operator==(const Applied&, const Applied&) = default;
    };
    enum class Intent {
        kStay,
        kDrain,  ///< gives back all that it leads, and then leaves
        kLeave,  ///< has given back all, and ended its sessions
    };
    std::vector<Applied> applied{};
    std::vector<catalog::PartitionEpoch> released{};
    std::vector<MovedEpoch> moved{};
    std::vector<catalog::OpenedEpoch> opened{};
    std::vector<base::TopicId> reclaimed{};
    /// Volumes that have not answered this broker for `broker.session.timeout.ms`.
    std::vector<std::string> unwell{};
    Intent intent = Intent::kStay;

    [[nodiscard]] bool empty() const {
        return applied.empty() && released.empty() && moved.empty() && opened.empty() &&
               reclaimed.empty() && unwell.empty();
    }
    /// What `earlier` said as well: it was said before, and perhaps not heard.
    void add(Report earlier);
};

/// One push, as lines of the control log.
struct PushedLines {
    catalog::ImageVersion version;  ///< after them
    std::vector<std::string> lines;
};
using PushedLinesPtr = std::shared_ptr<const PushedLines>;

/// What a broker is told that has asked for what is newer than the image it has: a whole picture,
/// or each push since, in order.
using News = std::variant<std::shared_ptr<const std::string>, std::vector<PushedLinesPtr>>;

[[nodiscard]] std::string to_text(const Registration& registration);
[[nodiscard]] Result<Registration> parse_registration(std::string_view text);
[[nodiscard]] std::string to_text(const ProbeTickets& tickets);
[[nodiscard]] Result<ProbeTickets> parse_tickets(std::string_view text);

/// What a heartbeat says: who, and either what it has to report or what it waits for.
struct Heartbeat {
    BrokerLife life;
    std::variant<Report, catalog::ImageVersion> body;  ///< a version: wants what is newer
};
[[nodiscard]] std::string to_text(const Heartbeat& heartbeat);
[[nodiscard]] Result<Heartbeat> parse_heartbeat(std::string_view text);

[[nodiscard]] std::string to_text(const News& news);
[[nodiscard]] Result<News> parse_news(std::string_view text);

/// The image that `lines` make of `base`. Errors: kStorage for lines that do not fit, which no
/// controller writes: whoever gets them asks for a picture.
[[nodiscard]] Result<catalog::ImagePtr> apply_lines(const catalog::Image& base,
                                                    const PushedLines& push);
[[nodiscard]] Result<catalog::ImagePtr> parse_picture_text(std::string_view text);

}  // namespace kaas::cluster
