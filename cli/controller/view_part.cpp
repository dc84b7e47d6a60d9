#include "cli/controller/view_part.hpp"

namespace cli {
namespace {

reconcilers::view_certificates::settings settings_of(const controller_options& options) {
  reconcilers::view_certificates::settings out;
  out.ns = options.ns;
  return out;
}

}  // namespace

view_part::view_part(const ground& ground)
    : ground_(ground), certificates_({secrets_, services_}, ground.client, settings_of(ground.options)) {}

void view_part::join(controller::parts& parts) {
  ground_.caches.add(only(reconcilers::names::views, ground_.options.ns), secrets_);
  ground_.caches.add(only(reconcilers::names::view_service), services_);
  parts.run(certificates_).wake(secrets_, services_);
}

}  // namespace cli
