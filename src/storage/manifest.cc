#include "storage/manifest.h"

#include <boost/json/array.hpp>
#include <boost/json/value.hpp>
#include <boost/json/value_to.hpp>
#include <fmt/format.h>

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <expected>
#include <iterator>
#include <limits>
#include <span>
#include <string_view>
#include <unordered_map>
#include <utility>
#include <vector>

namespace kaas::storage {
namespace {

namespace json = boost::json;

[[nodiscard]] std::unexpected<Error> corrupt(std::string_view key) {
    return fail(ErrorCode::kCorrupt, fmt::format("manifest: bad or missing \"{}\"", key));
}

[[nodiscard]] Result<std::int64_t> number(const json::object& object, std::string_view key,
                                          std::int64_t least, std::int64_t most) {
    const auto* value = object.if_contains(key);
    if (value == nullptr || !value->is_int64()) return corrupt(key);
    const auto n = value->get_int64();
    if (n < least || n > most) return corrupt(key);
    return n;
}

/// Far beyond any log, and far from where sums overflow.
constexpr auto kMost = std::numeric_limits<std::int64_t>::max() / 2;
constexpr std::int64_t kMostEpoch = std::numeric_limits<std::int32_t>::max();

[[nodiscard]] Result<const json::object*> object_at(const json::object& object,
                                                    std::string_view key) {
    const auto* value = object.if_contains(key);
    if (value == nullptr || !value->is_object()) return corrupt(key);
    return &value->get_object();
}

[[nodiscard]] Result<const json::array*> array_at(const json::object& object,
                                                  std::string_view key) {
    const auto* value = object.if_contains(key);
    if (value == nullptr || !value->is_array()) return corrupt(key);
    return &value->get_array();
}

/// A row of plain numbers, `width` long.
[[nodiscard]] Result<std::vector<std::int64_t>> numbers(const json::value& row, std::size_t width,
                                                        std::string_view key) {
    if (!row.is_array() || row.get_array().size() != width) return corrupt(key);
    std::vector<std::int64_t> result;
    result.reserve(width);
    for (const auto& value : row.get_array()) {
        if (!value.is_int64()) return corrupt(key);
        result.push_back(value.get_int64());
    }
    return result;
}

void put_extent(json::object& to, const SegmentFacts& facts) {
    to.emplace("end", facts.end.value());
    to.emplace("bytes", static_cast<std::int64_t>(facts.bytes));
    if (facts.max_timestamp_offset >= base::Offset{0}) {
        to.emplace("max_timestamp",
                   json::array{facts.max_timestamp_ms, facts.max_timestamp_offset.value()});
    } else if (facts.appended_ms >= 0) {
        to.emplace("appended", facts.appended_ms);
    }
    if (facts.aborted.count > 0)
        to.emplace("aborted",
                   json::array{std::int64_t{facts.aborted.count}, std::int64_t{facts.aborted.crc}});
}

[[nodiscard]] Result<void> take_extent(const json::object& from, SegmentFacts& facts) {
    KAAS_TRY_ASSIGN(end, number(from, "end", facts.base.value(), kMost));
    KAAS_TRY_ASSIGN(bytes, number(from, "bytes", 0, kMost));
    facts.end = base::Offset{end};
    facts.bytes = static_cast<std::uint64_t>(bytes);
    facts.max_timestamp_ms = -1;
    facts.max_timestamp_offset = base::Offset{-1};
    if (const auto* pair = from.if_contains("max_timestamp")) {
        KAAS_TRY_ASSIGN(both, numbers(*pair, 2, "max_timestamp"));
        facts.max_timestamp_ms = both[0];
        facts.max_timestamp_offset = base::Offset{both[1]};
    }
    facts.appended_ms = -1;
    if (from.contains("appended")) {
        KAAS_TRY_ASSIGN(appended, number(from, "appended", 0, kMost));
        facts.appended_ms = appended;
    }
    facts.aborted = {};
    if (const auto* seal = from.if_contains("aborted")) {
        KAAS_TRY_ASSIGN(both, numbers(*seal, 2, "aborted"));
        constexpr auto kMost32 = std::int64_t{std::numeric_limits<std::uint32_t>::max()};
        for (const auto n : both) {
            if (n < 0 || n > kMost32) return corrupt("aborted");
        }
        facts.aborted = {static_cast<std::uint32_t>(both[0]), static_cast<std::uint32_t>(both[1])};
    }
    return {};
}

[[nodiscard]] json::array names_to_json(std::span<const SegmentName> names) {
    json::array list;
    for (const auto& name : names) {
        json::array row{name.epoch.value(), name.base.value()};
        if (name.compaction > 0) row.emplace_back(name.compaction);
        list.emplace_back(std::move(row));
    }
    return list;
}

[[nodiscard]] Result<std::vector<SegmentName>> names_from_json(const json::object& object,
                                                               std::string_view key) {
    std::vector<SegmentName> names;
    if (!object.contains(key)) return names;
    KAAS_TRY_ASSIGN(list, array_at(object, key));
    for (const auto& value : *list) {
        const bool compacted = value.is_array() && value.get_array().size() == 3;
        KAAS_TRY_ASSIGN(row, numbers(value, compacted ? 3 : 2, key));
        if (row[0] < 0 || row[0] > kMostEpoch || row[1] < 0) return corrupt(key);
        if (compacted && (row[2] < 1 || row[2] > kMostEpoch)) return corrupt(key);
        names.push_back({.epoch = base::LeaderEpoch{static_cast<std::int32_t>(row[0])},
                         .base = base::Offset{row[1]},
                         .compaction = compacted ? static_cast<std::int32_t>(row[2]) : 0});
    }
    return names;
}

[[nodiscard]] json::array compactions_to_json(std::span<const CompactionName> names) {
    json::array list;
    for (const auto& name : names) list.emplace_back(json::array{name.epoch.value(), name.number});
    return list;
}

[[nodiscard]] Result<std::vector<CompactionName>> compactions_from_json(const json::object& object,
                                                                        std::string_view key) {
    std::vector<CompactionName> names;
    KAAS_TRY_ASSIGN(list, array_at(object, key));
    for (const auto& value : *list) {
        KAAS_TRY_ASSIGN(row, numbers(value, 2, key));
        if (row[0] < 0 || row[0] > kMostEpoch || row[1] < 1 || row[1] > kMostEpoch)
            return corrupt(key);
        names.push_back({base::LeaderEpoch{static_cast<std::int32_t>(row[0])},
                         static_cast<std::int32_t>(row[1])});
    }
    return names;
}

[[nodiscard]] json::object segment_to_json(const SegmentFacts& facts) {
    json::object object{{"epoch", facts.epoch.value()}, {"base", facts.base.value()}};
    if (facts.compaction > 0) object.emplace("compaction", facts.compaction);
    if (!facts.has_records) object.emplace("records", 0);
    put_extent(object, facts);
    return object;
}

[[nodiscard]] Result<SegmentFacts> segment_from_json(const json::object& object) {
    SegmentFacts facts;
    KAAS_TRY_ASSIGN(epoch, number(object, "epoch", 0, kMostEpoch));
    KAAS_TRY_ASSIGN(first, number(object, "base", 0, kMost));
    facts.epoch = base::LeaderEpoch{static_cast<std::int32_t>(epoch)};
    facts.base = base::Offset{first};
    if (object.contains("compaction")) {
        KAAS_TRY_ASSIGN(compaction, number(object, "compaction", 1, kMostEpoch));
        facts.compaction = static_cast<std::int32_t>(compaction);
    }
    if (object.contains("records")) {
        KAAS_TRY(number(object, "records", 0, 0));
        facts.has_records = false;
    }
    KAAS_TRY(take_extent(object, facts));
    return facts;
}

constexpr std::size_t kProducerNumbers = 7;
constexpr std::size_t kBatchNumbers = 4;

[[nodiscard]] json::array producer_to_json(const ProducerImage& producer) {
    const auto& entry = producer.entry;
    json::array row{producer.id.value(),
                    entry.epoch.value(),
                    entry.coordinator_epoch,
                    entry.last_timestamp_ms,
                    entry.transaction_start.value_or(base::Offset{-1}).value(),
                    entry.changed_at.value(),
                    entry.seen_ms};
    for (const auto& batch : entry.batches()) {
        row.emplace_back(batch.last_sequence);
        row.emplace_back(batch.last_offset.value());
        row.emplace_back(batch.offset_delta);
        row.emplace_back(batch.timestamp_ms);
    }
    return row;
}

[[nodiscard]] Result<ProducerImage> producer_from_json(const json::value& value) {
    if (!value.is_array() || value.get_array().size() < kProducerNumbers ||
        (value.get_array().size() - kProducerNumbers) % kBatchNumbers != 0) {
        return corrupt("producers");
    }
    KAAS_TRY_ASSIGN(row, numbers(value, value.get_array().size(), "producers"));
    const auto narrow = [&row]<class T>(std::size_t at, T& to) {
        to = static_cast<T>(row[at]);
        return to == row[at];
    };
    ProducerImage producer{.id = base::ProducerId{row[0]}, .entry = {}};
    std::int16_t epoch = 0;
    bool fits = row[0] >= 0 && narrow(1, epoch) && narrow(2, producer.entry.coordinator_epoch);
    producer.entry.epoch = base::ProducerEpoch{epoch};
    producer.entry.last_timestamp_ms = row[3];
    if (row[4] >= 0) producer.entry.transaction_start = base::Offset{row[4]};
    producer.entry.changed_at = base::Offset{row[5]};
    producer.entry.seen_ms = row[6];
    for (auto at = kProducerNumbers; at < row.size(); at += kBatchNumbers) {
        ProducedBatch batch{.last_offset = base::Offset{row[at + 1]}, .timestamp_ms = row[at + 3]};
        fits = fits && narrow(at, batch.last_sequence) && narrow(at + 2, batch.offset_delta) &&
               batch.last_sequence >= 0 && batch.offset_delta >= 0 &&
               row[at + 1] >= batch.offset_delta;
        producer.entry.add(batch);
    }
    if (!fits) return corrupt("producers");
    return producer;
}

/// Those that were touched at `since` or behind it.
[[nodiscard]] json::array producers_to_json(std::span<const ProducerImage> producers,
                                            base::Offset since) {
    json::array list;
    for (const auto& producer : producers) {
        if (producer.entry.changed_at >= since) list.emplace_back(producer_to_json(producer));
    }
    return list;
}

[[nodiscard]] Result<std::vector<ProducerImage>> producers_from_json(const json::object& object) {
    std::vector<ProducerImage> producers;
    KAAS_TRY_ASSIGN(list, array_at(object, "producers"));
    for (const auto& value : *list) {
        KAAS_TRY_ASSIGN(producer, producer_from_json(value));
        producers.push_back(producer);
    }
    return producers;
}

/// Puts what a line tells over what was known.
void merge(std::vector<ProducerImage>& known, const std::vector<ProducerImage>& told) {
    std::unordered_map<base::ProducerId, std::size_t> places;
    for (std::size_t i = 0; i < known.size(); ++i) places.emplace(known[i].id, i);
    for (const auto& producer : told) {
        const auto [place, fresh] = places.try_emplace(producer.id, known.size());
        if (fresh) {
            known.push_back(producer);
        } else {
            known[place->second] = producer;
        }
    }
}

[[nodiscard]] Result<void> take_segments(const json::object& picture, Manifest& manifest) {
    KAAS_TRY_ASSIGN(segments, array_at(picture, "segments"));
    for (const auto& value : *segments) {
        if (!value.is_object()) return corrupt("segments");
        KAAS_TRY_ASSIGN(facts, segment_from_json(value.get_object()));
        if (!manifest.sealed.empty() && manifest.sealed.back().end > facts.base)
            return corrupt("segments");
        manifest.sealed.push_back(facts);
    }
    if (!picture.contains("active")) return {};
    KAAS_TRY_ASSIGN(active, object_at(picture, "active"));
    KAAS_TRY_ASSIGN(facts, segment_from_json(*active));
    if (!manifest.sealed.empty() && manifest.sealed.back().end > facts.base)
        return corrupt("active");
    manifest.active = facts;
    return {};
}

[[nodiscard]] Result<void> take_epochs(const json::object& picture, Manifest& manifest) {
    KAAS_TRY_ASSIGN(epochs, array_at(picture, "epochs"));
    for (const auto& value : *epochs) {
        KAAS_TRY_ASSIGN(pair, numbers(value, 2, "epochs"));
        if (pair[0] < 0 || pair[0] > kMostEpoch || pair[1] < 0) return corrupt("epochs");
        manifest.epochs.assign(base::LeaderEpoch{static_cast<std::int32_t>(pair[0])},
                               base::Offset{pair[1]});
    }
    return {};
}

[[nodiscard]] Result<void> take_compactions(const json::object& picture, Manifest& manifest) {
    if (picture.contains("clean_to")) {
        KAAS_TRY_ASSIGN(clean_to, number(picture, "clean_to", 0, kMost));
        manifest.clean_to = base::Offset{clean_to};
    }
    if (picture.contains("compactions")) {
        KAAS_TRY_ASSIGN(compactions, number(picture, "compactions", 0, kMostEpoch));
        manifest.compactions = static_cast<std::int32_t>(compactions);
    }
    if (picture.contains("unfinished")) {
        KAAS_TRY_ASSIGN(unfinished, compactions_from_json(picture, "unfinished"));
        manifest.unfinished = std::move(unfinished);
    }
    return {};
}

[[nodiscard]] Result<SegmentSwap> swap_from_json(const json::object& line) {
    SegmentSwap swap;
    KAAS_TRY_ASSIGN(old, names_from_json(line, "swap"));
    swap.old = std::move(old);
    if (line.contains("with")) {
        KAAS_TRY_ASSIGN(with, object_at(line, "with"));
        KAAS_TRY_ASSIGN(facts, segment_from_json(*with));
        swap.with = facts;
    }
    if (line.contains("clean_to")) {
        KAAS_TRY_ASSIGN(clean_to, number(line, "clean_to", 0, kMost));
        swap.clean_to = base::Offset{clean_to};
    }
    return swap;
}

[[nodiscard]] bool is_known_key(std::string_view key) {
    return key == "owner" || key == "journal" || key == "segments" || key == "active" ||
           key == "epochs" || key == "log_start" || key == "producers" || key == "dropped" ||
           key == "clean_to" || key == "compactions" || key == "unfinished";
}

}  // namespace

json::object Manifest::picture() const {
    json::object picture{{"owner", to_json(owner)}};
    if (!journal.empty()) picture.emplace("journal", journal);
    json::array segments;
    for (const auto& facts : sealed) segments.emplace_back(segment_to_json(facts));
    picture.emplace("segments", std::move(segments));
    if (active) picture.emplace("active", segment_to_json(*active));
    json::array starts;
    for (const auto& start : epochs.starts()) {
        starts.emplace_back(json::array{start.epoch.value(), start.offset.value()});
    }
    picture.emplace("epochs", std::move(starts));
    picture.emplace("log_start", log_start.value());
    picture.emplace("producers", producers_to_json(producers, base::Offset{-1}));
    if (!dropped.empty()) picture.emplace("dropped", names_to_json(dropped));
    if (clean_to > base::Offset{0}) picture.emplace("clean_to", clean_to.value());
    if (compactions > 0) picture.emplace("compactions", compactions);
    if (!unfinished.empty()) picture.emplace("unfinished", compactions_to_json(unfinished));
    for (const auto& [key, value] : unknown) picture.emplace(key, value);
    return picture;
}

Result<Manifest> Manifest::from_picture(const json::object& picture) {
    Manifest manifest;
    KAAS_TRY_ASSIGN(owner_object, object_at(picture, "owner"));
    KAAS_TRY_ASSIGN(who, owner_from_json(*owner_object));
    manifest.owner = who;
    if (const auto* name = picture.if_contains("journal")) {
        if (!name->is_string()) return corrupt("journal");
        manifest.journal = std::string(name->get_string());
        // It becomes a part of a path.
        if (manifest.journal.starts_with('.') || manifest.journal.contains('/'))
            return corrupt("journal");
    }
    KAAS_TRY(take_segments(picture, manifest));
    KAAS_TRY(take_epochs(picture, manifest));
    KAAS_TRY_ASSIGN(start, number(picture, "log_start", 0, kMost));
    manifest.log_start = base::Offset{start};
    KAAS_TRY_ASSIGN(producers, producers_from_json(picture));
    manifest.producers = std::move(producers);
    KAAS_TRY_ASSIGN(dropped, names_from_json(picture, "dropped"));
    manifest.dropped = std::move(dropped);
    KAAS_TRY(take_compactions(picture, manifest));
    for (const auto& [key, value] : picture) {
        if (!is_known_key(key) && key != kLogKey) manifest.unknown.emplace(key, value);
    }
    return manifest;
}

Result<Manifest> Manifest::from(const EpochState& state) {
    KAAS_TRY_ASSIGN(manifest, from_picture(state.picture));
    for (const auto& line : state.lines) {
        KAAS_TRY(line.kind == EpochLine::Kind::kChange ? manifest.apply_change(line.object)
                                                       : manifest.apply_synced(line.object));
    }
    return manifest;
}

base::Offset Manifest::end() const {
    if (active) return active->end;
    return sealed.empty() ? log_start : sealed.back().end;
}

json::object Manifest::roll_line(const SegmentFacts& sealed_facts,
                                 std::span<const ProducerImage> now) const {
    json::object extent;
    put_extent(extent, sealed_facts);
    return {{"roll", std::move(extent)}, {"producers", producers_to_json(now, end())}};
}

json::object Manifest::drop_line(std::span<const SegmentName> names, base::Offset log_start) {
    json::object line;
    if (!names.empty()) line.emplace("drop", names_to_json(names));
    line.emplace("log_start", log_start.value());
    return line;
}

json::object Manifest::reclaimed_line(std::span<const SegmentName> names) {
    return {{"reclaimed", names_to_json(names)}};
}

json::object Manifest::compacting_line(std::int32_t compaction) {
    return {{"compacting", compaction}};
}

json::object Manifest::swap_line(const SegmentSwap& swap) {
    json::object line{{"swap", names_to_json(swap.old)}};
    if (swap.with) line.emplace("with", segment_to_json(*swap.with));
    if (swap.clean_to) line.emplace("clean_to", swap.clean_to->value());
    return line;
}

json::object Manifest::swept_line(std::span<const CompactionName> swept) {
    return {{"swept", compactions_to_json(swept)}};
}

json::object Manifest::synced_facts(const SegmentFacts& active_now,
                                    std::span<const ProducerImage> now) const {
    json::object facts;
    put_extent(facts, active_now);
    facts.emplace("producers", producers_to_json(now, end()));
    return facts;
}

void Manifest::roll(const SegmentFacts& sealed_facts) {
    if (sealed_facts.end > sealed_facts.base) sealed.push_back(sealed_facts);
    active = SegmentFacts{
        .epoch = sealed_facts.epoch, .base = sealed_facts.end, .end = sealed_facts.end};
}

void Manifest::drop(std::span<const SegmentName> names, base::Offset from) {
    for (const auto& name : names) {
        const auto gone =
            std::erase_if(sealed, [&](const SegmentFacts& facts) { return facts.name() == name; });
        if (gone > 0) dropped.push_back(name);
    }
    log_start = std::max(log_start, from);
    epochs.begin_at(log_start);
}

void Manifest::forget(std::span<const SegmentName> reclaimed) {
    std::erase_if(dropped, [&](const SegmentName& name) {
        return std::ranges::find(reclaimed, name) != reclaimed.end();
    });
}

void Manifest::begin_compaction(const CompactionName& name) {
    compactions = std::max(compactions, name.number);
    unfinished.push_back(name);
}

bool Manifest::swap(const SegmentSwap& swap) {
    const auto first = std::ranges::find_if(sealed, [&](const SegmentFacts& facts) {
        return !swap.old.empty() && facts.name() == swap.old.front();
    });
    const auto left = static_cast<std::size_t>(sealed.end() - first);
    if (first == sealed.end() || left < swap.old.size()) return false;
    const auto last = first + static_cast<std::ptrdiff_t>(swap.old.size());
    const bool same =
        std::equal(first, last, swap.old.begin(),
                   [](const auto& facts, const auto& name) { return facts.name() == name; });
    if (!same) return false;
    if (swap.with && (swap.with->base < first->base || swap.with->end > std::prev(last)->end))
        return false;
    const auto place = sealed.erase(first, last);
    if (swap.with) {
        sealed.insert(place, *swap.with);
        std::erase(unfinished, CompactionName{swap.with->epoch, swap.with->compaction});
    }
    dropped.insert(dropped.end(), swap.old.begin(), swap.old.end());
    if (swap.clean_to) clean_to = *swap.clean_to;
    return true;
}

void Manifest::forget(std::span<const CompactionName> swept) {
    std::erase_if(unfinished, [&](const CompactionName& name) {
        return std::ranges::find(swept, name) != swept.end();
    });
}

Result<void> Manifest::apply_change(const json::object& line) {
    if (line.contains("roll")) {
        KAAS_TRY_ASSIGN(extent, object_at(line, "roll"));
        if (!active) return corrupt("roll");
        auto facts = *active;
        KAAS_TRY(take_extent(*extent, facts));
        KAAS_TRY_ASSIGN(told, producers_from_json(line));
        roll(facts);
        merge(producers, told);
    }
    if (line.contains("log_start")) {
        KAAS_TRY_ASSIGN(start, number(line, "log_start", log_start.value(), kMost));
        KAAS_TRY_ASSIGN(names, names_from_json(line, "drop"));
        drop(names, base::Offset{start});
    }
    if (line.contains("reclaimed")) {
        KAAS_TRY_ASSIGN(names, names_from_json(line, "reclaimed"));
        forget(names);
    }
    return apply_compaction(line);
}

Result<void> Manifest::apply_compaction(const json::object& line) {
    if (line.contains("compacting")) {
        if (!active) return corrupt("compacting");
        KAAS_TRY_ASSIGN(number_of, number(line, "compacting", compactions + 1, kMostEpoch));
        begin_compaction({active->epoch, static_cast<std::int32_t>(number_of)});
    }
    if (line.contains("swap")) {
        KAAS_TRY_ASSIGN(told, swap_from_json(line));
        if (!swap(told)) return corrupt("swap");
    }
    if (line.contains("swept")) {
        KAAS_TRY_ASSIGN(swept, compactions_from_json(line, "swept"));
        forget(swept);
    }
    return {};
}

Result<void> Manifest::apply_synced(const json::object& facts) {
    if (!facts.contains("end")) return {};
    if (!active) return corrupt("active");
    auto extent = *active;
    KAAS_TRY(take_extent(facts, extent));
    if (extent.end < active->end || extent.bytes < active->bytes) return corrupt("end");
    KAAS_TRY_ASSIGN(told, producers_from_json(facts));
    active = extent;
    merge(producers, told);
    return {};
}

}  // namespace kaas::storage
