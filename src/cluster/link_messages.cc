#include "cluster/link_messages.h"

#include "base/ids.h"
#include "base/result.h"
#include "catalog/change.h"
#include "catalog/image.h"
#include "catalog/json_fields.h"
#include "catalog/model_json.h"
#include "cluster/error.h"

#include <boost/json/array.hpp>
#include <boost/json/object.hpp>
#include <boost/json/parse.hpp>
#include <boost/json/serialize.hpp>
#include <boost/json/value.hpp>

#include <algorithm>
#include <charconv>
#include <cstdint>
#include <expected>
#include <iterator>
#include <memory>
#include <set>
#include <string>
#include <string_view>
#include <system_error>
#include <type_traits>
#include <utility>
#include <variant>
#include <vector>

namespace kaas::cluster {
namespace {

namespace json = boost::json;

std::unexpected<Error> malformed(std::string why) {
    return fail(ErrorCode::kMalformed, std::move(why));
}

template <class T>
Result<T> converted(catalog::Result<T> result) {
    if (!result) return malformed(result.error().context);
    if constexpr (std::is_void_v<T>) {
        return {};
    } else {
        return std::move(*result);
    }
}

Result<json::value> parse_text(std::string_view text) {
    boost::system::error_code wrong;
    auto value = json::parse(text, wrong);
    if (wrong) return malformed("not JSON: " + wrong.message());
    return value;
}

void put(json::object& out, const BrokerLife& life) {
    out.emplace("broker_id", life.broker.value());
    out.emplace("process", life.process.to_string());
}
BrokerLife take_life(catalog::JsonFields& fields) {
    return {base::BrokerId(fields.integer<std::int32_t>("broker_id")), fields.uuid("process")};
}

void put(json::object& out, const catalog::ImageVersion& version) {
    out.emplace("epoch", version.epoch.value());
    out.emplace("changes", version.changes);
}
catalog::ImageVersion take_version(catalog::JsonFields& fields) {
    return {base::ControllerEpoch(fields.integer<std::int32_t>("epoch")),
            static_cast<std::uint64_t>(fields.integer<std::int64_t>("changes"))};
}

json::object to_json(const MovedEpoch& moved) {
    return {{"topic", moved.partition.topic.uuid.to_string()},
            {"partition", moved.partition.partition.value()},
            {"epoch", moved.epoch.value()},
            {"volume", moved.volume}};
}
Result<MovedEpoch> parse_moved(const json::value& value) {
    catalog::JsonFields fields(value, "moved epoch");
    MovedEpoch moved{.partition = {base::TopicId{fields.uuid("topic")},
                                   base::PartitionId(fields.integer<std::int32_t>("partition"))},
                     .epoch = base::LeaderEpoch(fields.integer<std::int32_t>("epoch")),
                     .volume = fields.text("volume")};
    KAAS_TRY(converted(fields.fault()));
    return moved;
}

json::object to_json(const Report& report) {
    json::object out;
    if (report.intent != Report::Intent::kStay) {
        out.emplace("intent", report.intent == Report::Intent::kDrain ? "drain" : "leave");
    }
    json::array applied;
    for (const auto& one : report.applied) {
        json::object entry;
        put(entry, one.version);
        if (one.and_before) entry.emplace("and_before", true);
        applied.push_back(std::move(entry));
    }
    if (!applied.empty()) out.emplace("applied", std::move(applied));
    // As the control log would say it.
    if (!report.released.empty()) {
        out.emplace("released", catalog::to_json(catalog::Released{report.released}));
    }
    if (!report.opened.empty()) {
        out.emplace("opened", catalog::to_json(catalog::Opened{report.opened}));
    }
    json::array moved;
    for (const auto& one : report.moved) moved.push_back(to_json(one));
    if (!moved.empty()) out.emplace("moved", std::move(moved));
    json::array reclaimed;
    for (const auto& topic : report.reclaimed) reclaimed.emplace_back(topic.uuid.to_string());
    if (!reclaimed.empty()) out.emplace("reclaimed", std::move(reclaimed));
    json::array unwell(report.unwell.begin(), report.unwell.end());
    if (!unwell.empty()) out.emplace("unwell", std::move(unwell));
    return out;
}

/// A part of a report that is a change of the control log.
template <class Change>
Result<Change> take_change(catalog::JsonFields& fields, std::string_view key) {
    if (!fields.has(key)) return Change{};
    KAAS_TRY_ASSIGN(change, converted(catalog::parse_change(fields.object(key))));
    auto* wanted = std::get_if<Change>(&change);
    if (wanted == nullptr) return malformed("another change than '" + std::string(key) + "'");
    return std::move(*wanted);
}

Result<Report> parse_report(const json::value& value) {
    catalog::JsonFields fields(value, "report");
    Report report;
    if (const auto intent = fields.optional_text("intent")) {
        if (*intent != "leave" && *intent != "drain") return malformed("report: intent");
        report.intent = *intent == "leave" ? Report::Intent::kLeave : Report::Intent::kDrain;
    }
    if (fields.has("applied")) {
        for (const auto& entry : fields.array("applied")) {
            catalog::JsonFields one(entry, "applied version");
            const auto version = take_version(one);
            report.applied.push_back({version, one.flag("and_before")});
            KAAS_TRY(converted(one.fault()));
        }
    }
    KAAS_TRY_ASSIGN(released, take_change<catalog::Released>(fields, "released"));
    report.released = std::move(released.epochs);
    KAAS_TRY_ASSIGN(opened, take_change<catalog::Opened>(fields, "opened"));
    report.opened = std::move(opened.epochs);
    if (fields.has("moved")) {
        for (const auto& entry : fields.array("moved")) {
            KAAS_TRY_ASSIGN(moved, parse_moved(entry));
            report.moved.push_back(std::move(moved));
        }
    }
    if (fields.has("reclaimed")) {
        for (const auto& entry : fields.array("reclaimed")) {
            report.reclaimed.push_back(base::TopicId{fields.as_uuid(entry, "reclaimed")});
        }
    }
    if (fields.has("unwell")) {
        for (const auto& entry : fields.array("unwell")) {
            report.unwell.push_back(fields.as_text(entry, "unwell"));
        }
    }
    KAAS_TRY(converted(fields.fault()));
    return report;
}

json::array to_json(const ProbeTickets& tickets) {
    json::array out;
    for (const auto& [volume, ticket] : tickets) {
        out.push_back({{"volume", volume},
                       {"probe", ticket.probe.to_string()},
                       {"nonce", ticket.nonce.to_string()}});
    }
    return out;
}
Result<ProbeTickets> parse_tickets(const json::array& entries) {
    ProbeTickets tickets;
    for (const auto& entry : entries) {
        catalog::JsonFields fields(entry, "ticket");
        const ProbeTicket ticket{.probe = fields.uuid("probe"), .nonce = fields.uuid("nonce")};
        tickets.emplace(fields.text("volume"), ticket);
        KAAS_TRY(converted(fields.fault()));
    }
    return tickets;
}

template <class T>
void append_to(std::vector<T>& list, std::vector<T> more) {
    list.insert(list.end(), std::make_move_iterator(more.begin()),
                std::make_move_iterator(more.end()));
}
template <class T>
void join_sets(std::vector<T>& list, std::vector<T> more) {
    std::set<T> all(more.begin(), more.end());
    all.insert(list.begin(), list.end());
    list.assign(all.begin(), all.end());
}

}  // namespace

void Report::add(Report earlier) {
    intent = std::max(intent, earlier.intent);  // nobody who leaves comes to stay
    std::swap(applied, earlier.applied);
    append_to(applied, std::move(earlier.applied));
    join_sets(released, std::move(earlier.released));
    append_to(moved, std::move(earlier.moved));
    join_sets(opened, std::move(earlier.opened));
    join_sets(reclaimed, std::move(earlier.reclaimed));
    join_sets(unwell, std::move(earlier.unwell));
}

std::string to_text(const Registration& registration) {
    json::object out;
    put(out, registration.life);
    out.emplace("cluster", registration.cluster_id);
    out.emplace("broker", catalog::to_json(registration.broker));
    if (registration.proof) {
        json::object proof{{"tickets", to_json(registration.proof->tickets)}};
        if (registration.proof->witnessed) proof.emplace("witnessed", true);
        out.emplace("proof", std::move(proof));
    }
    return json::serialize(out);
}

std::string to_text(const ProbeTickets& tickets) { return json::serialize(to_json(tickets)); }
Result<ProbeTickets> parse_tickets(std::string_view text) {
    KAAS_TRY_ASSIGN(value, parse_text(text));
    if (!value.is_array()) return malformed("tickets are no array");
    return parse_tickets(value.get_array());
}

Result<Registration> parse_registration(std::string_view text) {
    KAAS_TRY_ASSIGN(value, parse_text(text));
    catalog::JsonFields fields(value, "registration");
    Registration registration{
        .life = take_life(fields), .cluster_id = fields.text("cluster"), .broker = {}};
    KAAS_TRY_ASSIGN(broker, converted(catalog::parse_broker(fields.value("broker"))));
    KAAS_TRY(converted(fields.fault()));
    registration.broker = std::move(broker);
    if (registration.broker.id != registration.life.broker) {
        return malformed("a registration for another broker");
    }
    if (fields.has("proof")) {
        catalog::JsonFields proof(fields.value("proof"), "proof");
        KAAS_TRY_ASSIGN(tickets, parse_tickets(proof.array("tickets")));
        registration.proof =
            VolumeProof{.tickets = std::move(tickets), .witnessed = proof.flag("witnessed")};
        KAAS_TRY(converted(proof.fault()));
    }
    return registration;
}

std::string to_text(const Heartbeat& heartbeat) {
    json::object out;
    put(out, heartbeat.life);
    if (const auto* report = std::get_if<Report>(&heartbeat.body)) {
        out.emplace("report", to_json(*report));
    } else {
        json::object newer;
        put(newer, std::get<catalog::ImageVersion>(heartbeat.body));
        out.emplace("newer_than", std::move(newer));
    }
    return json::serialize(out);
}

Result<Heartbeat> parse_heartbeat(std::string_view text) {
    KAAS_TRY_ASSIGN(value, parse_text(text));
    catalog::JsonFields fields(value, "heartbeat");
    Heartbeat heartbeat{.life = take_life(fields), .body = {}};
    if (fields.has("newer_than")) {
        catalog::JsonFields newer(fields.value("newer_than"), "version");
        heartbeat.body = take_version(newer);
        KAAS_TRY(converted(newer.fault()));
    } else {
        KAAS_TRY_ASSIGN(report, parse_report(fields.value("report")));
        heartbeat.body = std::move(report);
    }
    KAAS_TRY(converted(fields.fault()));
    return heartbeat;
}

/// The first line says which of the two it is; the rest are lines as they stand in the control log,
/// so that a controller writes each of them once for all brokers.
std::string to_text(const News& news) {
    if (const auto* picture = std::get_if<std::shared_ptr<const std::string>>(&news)) {
        return "picture\n" + **picture;
    }
    std::string text;
    for (const auto& push : std::get<std::vector<PushedLinesPtr>>(news)) {
        text += "push " + std::to_string(push->version.epoch.value()) + " " +
                std::to_string(push->version.changes) + "\n";
        for (const auto& line : push->lines) text += line + "\n";
    }
    return text;
}

Result<News> parse_news(std::string_view text) {
    constexpr std::string_view kPicture = "picture\n";
    constexpr std::string_view kPush = "push ";
    if (text.starts_with(kPicture)) {
        text.remove_prefix(kPicture.size());
        return std::make_shared<const std::string>(text);
    }
    std::vector<std::shared_ptr<PushedLines>> pushes;
    while (!text.empty()) {
        const auto end = text.find('\n');
        if (end == std::string_view::npos) return malformed("news without an end");
        auto line = text.substr(0, end);
        text.remove_prefix(end + 1);
        if (line.starts_with(kPush)) {
            std::int32_t epoch = 0;
            std::uint64_t changes = 0;
            const auto* last = line.data() + line.size();
            auto [at, wrong] = std::from_chars(line.data() + kPush.size(), last, epoch);
            if (wrong != std::errc() || at == last || *at != ' ') return malformed("news: push");
            auto [rest, bad] = std::from_chars(at + 1, last, changes);
            if (bad != std::errc() || rest != last) return malformed("news: push");
            pushes.push_back(std::make_shared<PushedLines>());
            pushes.back()->version = {base::ControllerEpoch(epoch), changes};
        } else if (pushes.empty()) {
            return malformed("news begin with a line of nothing");
        } else {
            pushes.back()->lines.emplace_back(line);
        }
    }
    return std::vector<PushedLinesPtr>(pushes.begin(), pushes.end());
}

Result<catalog::ImagePtr> apply_lines(const catalog::Image& base, const PushedLines& push) {
    catalog::ImageEditor editor(base);
    for (const auto& line : push.lines) {
        KAAS_TRY_ASSIGN(value, parse_text(line));
        if (!value.is_object()) return malformed("a change that is no object");
        KAAS_TRY_ASSIGN(change, converted(catalog::parse_change(value.get_object())));
        KAAS_TRY(converted(editor.apply(change)));
    }
    if (editor.image().version() != push.version) return malformed("lines for another image");
    return std::move(editor).finish();
}

Result<catalog::ImagePtr> parse_picture_text(std::string_view text) {
    KAAS_TRY_ASSIGN(value, parse_text(text));
    if (!value.is_object()) return malformed("a picture that is no object");
    return converted(catalog::parse_picture(value.get_object()));
}

}  // namespace kaas::cluster
