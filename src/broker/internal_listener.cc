#include "broker/internal_listener.h"

#include "base/executor.h"
#include "base/metrics.h"
#include "base/result.h"
#include "broker/config/broker_config.h"
#include "catalog/broker_identity.h"
#include "catalog/model.h"
#include "net/error.h"
#include "net/exchange.h"
#include "net/server.h"
#include "security/scram.h"

#include <string>
#include <utility>

namespace kaas::broker {
namespace {

constexpr const char* kThread = "kaas-internal";
constexpr const char* kProtocol = "SASL_PLAINTEXT";

net::ServerOptions named(net::ServerOptions options) {
    options.name = "internal";
    return options;
}

}  // namespace

InternalListener::InternalListener(net::ServerOptions options, net::RequestHandler& handler,
                                   base::Executor& io_pool, base::metrics::Registry& registry)
    : reactors_(kThread),
      server_(named(std::move(options)), reactors_, handler, io_pool, registry) {}

net::Result<catalog::Endpoint> InternalListener::listen(const InternalListenerConfig& config) {
    KAAS_TRY_ASSIGN(port, server_.listen({.name = std::string(catalog::kInternalListener),
                                          .security_protocol = kProtocol,
                                          .host = config.bind.host,
                                          .port = config.bind.port}));
    return catalog::Endpoint{.listener = std::string(catalog::kInternalListener),
                             .security_protocol = kProtocol,
                             .host = config.advertised.host,
                             .port = config.advertised.port == 0 ? port : config.advertised.port};
}

void InternalListener::trust(std::string secret) {
    credential_ = security::make_scram_credential(secret, security::scram_nonce());
    secret_ = std::move(secret);
}

}  // namespace kaas::broker
