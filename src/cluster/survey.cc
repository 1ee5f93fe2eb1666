#include "cluster/survey.h"

#include "base/ids.h"
#include "base/result.h"
#include "catalog/control_log.h"
#include "catalog/image.h"
#include "catalog/model.h"
#include "cluster/error.h"
#include "cluster/identity.h"
#include "storage/error.h"
#include "storage/volume.h"

#include <fmt/format.h>

#include <algorithm>
#include <cstddef>
#include <expected>
#include <functional>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace kaas::cluster {
namespace {

Result<bool> has_file(storage::Volume& volume, const std::string& path) {
    auto file = volume.open(path, storage::OpenMode::kRead);
    if (file) return true;
    if (file.error().code == storage::ErrorCode::kNotFound) return false;
    return failed(std::move(file).error());
}

/// Listed, against rule 5, because it decides nothing but where to look: the control log itself is
/// then walked as ever.
Result<bool> holds_cluster(storage::Volume& volume) {
    auto epochs = volume.list(std::string(catalog::kControlDirectory));
    if (epochs) return !epochs->empty();
    if (epochs.error().code == storage::ErrorCode::kNotFound) return false;
    return failed(std::move(epochs).error());
}

std::string last_part(std::string_view path) {
    while (path.size() > 1 && path.ends_with('/')) path.remove_suffix(1);
    return std::string(path.substr(path.rfind('/') + 1));
}

class Surveyor {
public:
    Surveyor(storage::Volume* wanted_cluster, base::BrokerId self,
             const std::optional<std::string>& cluster_id, Sharing sharing)
        : wanted_cluster_(wanted_cluster), self_(self), sharing_(sharing) {
        out_.cluster_id = cluster_id;
    }

    Result<Survey> run(const std::vector<NamedVolume>& volumes) {
        for (const auto& volume : volumes) {
            auto sign = read_sign(*volume.volume);
            if (sign) {
                out_.volumes.push_back({volume, std::move(*sign)});
            } else if (sign.error().code == ErrorCode::kStorage && may_do_without(volume)) {
                out_.broken.push_back({volume.volume->root(), sign.error().context});
            } else {
                return std::unexpected(std::move(sign).error());
            }
        }
        if (out_.volumes.empty()) return fail(ErrorCode::kStorage, out_.broken.front().why);
        out_.slot_volume = kClusterOnlyVolume;
        if (wanted_cluster_ != nullptr && among_volumes(*wanted_cluster_) == nullptr) {
            KAAS_TRY_ASSIGN(sign, read_sign(*wanted_cluster_));
            // It may have held partitions once, and is in the assignment by its name of then.
            if (sign && !sign->volume.empty()) out_.slot_volume = sign->volume;
        }
        KAAS_TRY(find_cluster());
        KAAS_TRY(settle_names());
        const auto* named = among_volumes(*out_.cluster);
        if (named != nullptr) out_.slot_volume = named->name;
        out_.cluster_volume = named != nullptr ? named->name : out_.cluster->root();
        return std::move(out_);
    }

private:
    Result<std::optional<Identity>> read_sign(storage::Volume& volume) {
        KAAS_TRY_ASSIGN(apache, has_file(volume, "meta.properties"));
        if (apache) {
            return wrong(fmt::format(
                "{} holds data of Apache Kafka (meta.properties), which kaas does not read: give "
                "kaas a directory of its own",
                volume.root()));
        }
        KAAS_TRY_ASSIGN(sign, read_identity(volume));
        if (!sign) return sign;
        if (out_.cluster_id && *out_.cluster_id != sign->cluster_id) {
            return wrong(fmt::format(
                "{} belongs to cluster '{}', not to '{}'{}: all directories must be of one cluster",
                volume.root(), sign->cluster_id, *out_.cluster_id,
                signed_ == nullptr ? "" : " as " + signed_->root() + " does"));
        }
        if (sign->broker && sharing_ == Sharing::kShared) {
            return wrong(fmt::format(
                "{} is a directory of standalone broker {}, which no other broker may share: start "
                "it with kaas.mode=standalone, or name another directory",
                volume.root(), sign->broker->value()));
        }
        if (!sign->broker && sharing_ == Sharing::kAlone && sign->shared) {
            return wrong(fmt::format(
                "{} is shared by the brokers of cluster '{}': start with kaas.mode=volume",
                volume.root(), sign->cluster_id));
        }
        if (sign->broker && *sign->broker != self_) {
            return wrong(fmt::format(
                "{0} was written by broker {1}, and node.id is {2}: set node.id={1}, or give "
                "broker {2} directories of its own",
                volume.root(), sign->broker->value(), self_.value()));
        }
        out_.cluster_id = sign->cluster_id;
        if (signed_ == nullptr) {
            signed_ = &volume;
            cluster_volume_said_ = sign->cluster_volume;
        }
        return sign;
    }

    /// What is no volume of kaas, or the cluster's own, is not to be passed over.
    [[nodiscard]] bool may_do_without(const NamedVolume& volume) const {
        return volume.volume != wanted_cluster_;
    }

    Result<void> find_cluster() {
        std::vector<storage::Volume*> holders;
        for (const auto& found : out_.volumes) {
            KAAS_TRY_ASSIGN(holds, holds_cluster(*found.volume.volume));
            if (holds) holders.push_back(found.volume.volume);
        }
        if (wanted_cluster_ != nullptr) return use_wanted(holders);
        if (holders.size() > 1) {
            return wrong(
                fmt::format("{} and {} both hold a cluster's own files: name the right one in "
                            "kaas.cluster.dir",
                            holders[0]->root(), holders[1]->root()));
        }
        if (holders.empty() && signed_ != nullptr) return no_cluster();
        out_.cluster = holders.empty() ? out_.volumes.front().volume.volume : holders.front();
        return {};
    }

    Result<void> use_wanted(const std::vector<storage::Volume*>& holders) {
        out_.cluster = wanted_cluster_;
        KAAS_TRY_ASSIGN(holds, holds_cluster(*wanted_cluster_));
        if (holds) return {};
        if (!holders.empty()) {
            return wrong(
                fmt::format("kaas.cluster.dir: {} is new, and the cluster's own files are "
                            "in {}: name that one, or none",
                            wanted_cluster_->root(), holders.front()->root()));
        }
        if (signed_ != nullptr) return no_cluster();
        return {};
    }

    /// A cluster made anew beside its own data would fork it.
    [[nodiscard]] Result<void> no_cluster() const {
        return wrong(
            fmt::format("{} belongs to cluster '{}', and none of the directories holds that "
                        "cluster's own files{}: mount or add the one that does",
                        signed_->root(), *out_.cluster_id,
                        cluster_volume_said_.empty()
                            ? ""
                            : fmt::format(" (they were on volume '{}')", cluster_volume_said_)));
    }

    /// A volume keeps its name, whatever place in log.dirs it has now.
    Result<void> settle_names() {
        std::map<std::string, std::string> taken;  // root by name
        for (auto& [volume, sign] : out_.volumes) {
            if (!sign || sign->volume.empty()) continue;
            if (volume.name_chosen && volume.name != sign->volume) {
                return wrong(
                    fmt::format("{0} is volume '{1}' of its cluster: say kaas.volume.{1}.path, not "
                                "kaas.volume.{2}.path",
                                volume.volume->root(), sign->volume, volume.name));
            }
            volume.name = sign->volume;
            KAAS_TRY(take_name(volume, taken));
        }
        for (auto& [volume, sign] : out_.volumes) {
            if (sign && !sign->volume.empty()) continue;
            if (taken.contains(volume.name) && !volume.name_chosen) {
                volume.name = last_part(volume.volume->root());
            }
            KAAS_TRY(take_name(volume, taken));
        }
        return {};
    }
    static Result<void> take_name(const NamedVolume& volume,
                                  std::map<std::string, std::string>& taken) {
        auto [at, added] = taken.emplace(volume.name, volume.volume->root());
        if (added) return {};
        return wrong(fmt::format(
            "{} and {} would both be volume '{}': leave out the one that is a copy, or call the "
            "new one kaas.volume.<name>.path",
            at->second, volume.volume->root(), volume.name));
    }

    /// Null when it is none for partitions.
    [[nodiscard]] const NamedVolume* among_volumes(const storage::Volume& one) const {
        for (const auto& found : out_.volumes) {
            if (found.volume.volume == &one) return &found.volume;
        }
        return nullptr;
    }
    static std::unexpected<Error> wrong(std::string why) {
        return fail(ErrorCode::kWrongCluster, std::move(why));
    }

    storage::Volume* const wanted_cluster_;
    const base::BrokerId self_;
    const Sharing sharing_;
    Survey out_;
    storage::Volume* signed_ = nullptr;  ///< the first with a sign
    std::string cluster_volume_said_;
};

/// Partitions of `self` by the volumes that their epochs lie on.
std::map<std::string, std::size_t> partitions_by_volume(const catalog::Image& image,
                                                        base::BrokerId self,
                                                        Sharing sharing = Sharing::kAlone) {
    std::map<std::string, std::size_t> used;
    image.for_each_topic([&](const catalog::Topic& topic) {
        for (const auto& partition : topic.partitions) {
            if (sharing == Sharing::kAlone && partition.leader.broker != self) continue;
            std::set<std::string_view> volumes;
            for (const auto& run : partition.runs) volumes.insert(run.volume);
            for (auto volume : volumes) ++used[std::string(volume)];
        }
    });
    return used;
}

using KnownVolumes = std::map<std::string, catalog::BrokerVolume, std::less<>>;

KnownVolumes known_volumes(const catalog::Image& image, base::BrokerId self) {
    const auto* broker = image.broker(self);
    return broker == nullptr ? KnownVolumes{} : broker->volumes;
}

}  // namespace

Result<Survey> survey(const std::vector<NamedVolume>& volumes, storage::Volume* wanted_cluster,
                      base::BrokerId self, const std::optional<std::string>& cluster_id,
                      Sharing sharing) {
    return Surveyor(wanted_cluster, self, cluster_id, sharing).run(volumes);
}

std::size_t partitions_on(const catalog::Image& image, base::BrokerId self,
                          const std::string& volume) {
    const auto used = partitions_by_volume(image, self);
    const auto held = used.find(volume);
    return held == used.end() ? 0 : held->second;
}

std::vector<MissingVolume> take_out_missing(Survey& survey, const catalog::Image& image,
                                            base::BrokerId self, Sharing sharing) {
    const auto known = known_volumes(image, self);
    auto used = partitions_by_volume(image, self, sharing);
    const bool is_apart = std::ranges::none_of(survey.volumes, [&](const Survey::Found& found) {
        return found.volume.volume == survey.cluster;
    });
    if (is_apart) used.erase(survey.slot_volume);  // there, though it gets no new partitions
    std::vector<MissingVolume> missing;
    std::erase_if(survey.volumes, [&](Survey::Found& found) {
        auto& volume = found.volume;
        const auto& root = volume.volume->root();
        const bool is_new = !found.sign && volume.volume != survey.cluster;
        if (is_new && !volume.name_chosen) {
            // What stood here before tells whose place it is, not its turn in log.dirs.
            auto before = std::ranges::find_if(
                known, [&](const auto& entry) { return entry.second.path == root; });
            if (before != known.end()) volume.name = before->first;
        }
        const auto held = used.extract(volume.name);
        if (!is_new || held.empty()) return false;
        missing.push_back(
            {volume.name, root, held.mapped(),
             fmt::format(
                 "{0} is empty, or its kaas.json is not whole; mount what belongs there, or, "
                 "if it is lost, delete its topics and call {0} by a new name "
                 "(kaas.volume.<name>.path)",
                 root)});
        return true;
    });
    for (const auto& [name, partitions] : used) {
        auto at = known.find(name);
        std::string path = at == known.end() ? "" : at->second.path;
        auto broken = std::ranges::find(survey.broken, path, &Survey::Broken::path);
        std::string why = broken != survey.broken.end()
                              ? fmt::format("{}; mend it and start again", broken->why)
                              : fmt::format("{} is not among the directories; add it to log.dirs",
                                            path.empty() ? "its directory" : path);
        missing.push_back({name, std::move(path), partitions, std::move(why)});
    }
    return missing;
}

}  // namespace kaas::cluster
