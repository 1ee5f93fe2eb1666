#include "base/result.h"
#include "catalog/change.h"
#include "catalog/error.h"
#include "catalog/image.h"
#include "catalog/json_fields.h"
#include "catalog/model_json.h"

#include <boost/json/array.hpp>

#include <cstdint>
#include <memory>
#include <utility>

namespace kaas::catalog {

namespace json = boost::json;

namespace {

/// Grows when older versions could no longer understand what we write.
constexpr std::int32_t kFormat = 1;

}  // namespace

/// Reads and writes images whole; the one reader of an image's insides besides its editor.
class PictureCodec {
public:
    static json::object encode(const Image& image);
    static Result<ImagePtr> decode(JsonFields& fields);

private:
    static Result<void> decode_topics(JsonFields& fields, ImageEditor& editor);
    static Result<void> decode_brokers(JsonFields& fields, Image& image);
};

json::object PictureCodec::encode(const Image& image) {
    json::array brokers;
    for (const auto& [id, broker] : image.brokers_) brokers.push_back(to_json(*broker));
    json::array broker_configs;
    for (const auto& [id, configs] : image.broker_configs_) {
        broker_configs.push_back({{"broker", id.value()}, {"values", to_json(configs)}});
    }
    json::array topics;
    topics.reserve(image.topic_count());
    for (const auto* topic : image.topics_by_name()) topics.push_back(to_json(*topic));
    json::array deletions;
    for (const auto& [id, deletion] : image.deletions_) deletions.push_back(to_json(deletion));

    json::object picture{{"format", kFormat},
                         {"cluster", image.cluster_id_},
                         {"controller_epoch", image.version_.epoch.value()},
                         {"changes", image.version_.changes},
                         {"controller", image.controller_.value()},
                         {"brokers", std::move(brokers)},
                         {"broker_configs", std::move(broker_configs)},
                         {"topics", std::move(topics)},
                         {"deletions", std::move(deletions)}};
    put_unknown(picture, image.unknown_);
    return picture;
}

Result<void> PictureCodec::decode_topics(JsonFields& fields, ImageEditor& editor) {
    for (const auto& value : fields.array("topics")) {
        KAAS_TRY_ASSIGN(topic, parse_topic(value));
        KAAS_TRY(editor.apply(TopicCreated{std::move(topic)}));
    }
    return {};
}

Result<void> PictureCodec::decode_brokers(JsonFields& fields, Image& image) {
    for (const auto& value : fields.array("brokers")) {
        KAAS_TRY_ASSIGN(broker, parse_broker(value));
        const auto id = broker.id;
        image.brokers_.insert_or_assign(id, std::make_shared<const Broker>(std::move(broker)));
    }
    for (const auto& value : fields.array("broker_configs")) {
        JsonFields entry(value, "broker config");
        const base::BrokerId id(entry.integer<std::int32_t>("broker"));
        KAAS_TRY_ASSIGN(configs, parse_configs(entry.object("values")));
        KAAS_TRY(entry.fault());
        image.broker_configs_.insert_or_assign(id, std::move(configs));
    }
    return {};
}

Result<ImagePtr> PictureCodec::decode(JsonFields& fields) {
    fields.skip("format");
    ImageEditor editor(fields.text("cluster"));
    KAAS_TRY(decode_topics(fields, editor));
    auto& image = *editor.image_;
    KAAS_TRY(decode_brokers(fields, image));
    for (const auto& value : fields.array("deletions")) {
        KAAS_TRY_ASSIGN(deletion, parse_deletion(value));
        const auto id = deletion.id;
        image.deletions_.insert_or_assign(id, std::move(deletion));
    }
    image.version_ = {base::ControllerEpoch(fields.integer<std::int32_t>("controller_epoch")),
                      fields.integer<std::uint64_t>("changes")};
    image.controller_ = base::BrokerId(fields.integer<std::int32_t>("controller"));
    image.unknown_ = fields.unknown();
    KAAS_TRY(fields.fault());
    return std::move(editor).finish();
}

json::object to_picture(const Image& image) { return PictureCodec::encode(image); }

Result<ImagePtr> parse_picture(const json::object& picture) {
    JsonFields fields(picture, "picture");
    KAAS_TRY(fields.check_format(kFormat));
    return PictureCodec::decode(fields);
}

}  // namespace kaas::catalog
