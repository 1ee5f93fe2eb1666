#include "broker/handlers/describe_cluster.h"

#include "broker/handlers/cluster_view.h"
#include "catalog/image.h"

#include <cstdint>
#include <string_view>

namespace kaas::broker {
namespace {

constexpr std::int8_t kBrokers = 1;
constexpr std::int8_t kControllers = 2;

}  // namespace

wire::DescribeClusterResponse describe_cluster(const Call& call,
                                               const wire::DescribeClusterRequest& request) {
    const catalog::Image& image = call.state().partitions.image();
    wire::DescribeClusterResponse response;
    response.cluster_id = image.cluster_id();
    if (request.endpoint_type != kBrokers) {
        bool known = request.endpoint_type == kControllers;
        response.error_code = known ? wire::ErrorCode::kMismatchedEndpointType
                                    : wire::ErrorCode::kUnsupportedEndpointType;
        std::string_view why =
            known ? "This listener is a broker's, not a controller's."
                  : "There are two types of endpoint: 1 (brokers), 2 (controllers).";
        response.error_message = wire::String(why);
        return response;
    }
    response.controller_id = image.controller().value();
    for (const auto& [broker, endpoint] : brokers_on(image, call.peer().listener)) {
        auto& out = response.brokers.emplace_back();
        out.broker_id = broker->id.value();
        out.host = endpoint->host;
        out.port = endpoint->port;
        if (broker->rack) out.rack = *broker->rack;
    }
    if (request.include_cluster_authorized_operations) {
        response.cluster_authorized_operations = kAllClusterOperations;
    }
    return response;
}

}  // namespace kaas::broker
