#include "reconcilers/certificates/extender_certificates.hpp"

#include <nlohmann/json.hpp>

#include "api/hash.hpp"
#include "api/memory.hpp"
#include "api/owned_object.hpp"
#include "controller/log.hpp"
#include "controller/x509.hpp"
#include "kube/config.hpp"
#include "kube/wire.hpp"

namespace reconcilers {
namespace {

using namespace std::chrono_literals;
using controller::action;
using controller::milliseconds;
using nlohmann::json;
namespace log = controller::log;
namespace wire = kube::wire;

constexpr milliseconds soon = 250ms;
constexpr milliseconds at_least_every = 1h;
constexpr milliseconds says_again = 24h;

void read_data(std::string_view entry, extender_secret& extender_secret) {
  const auto [name, value] = wire::read_entry(entry);
  if (name == names::extender_authorities) extender_secret.authorities = value;
  if (name == names::extender_signer_key) extender_secret.signer_key = value;
  if (name == names::extender_older_key) extender_secret.older_key = value;
  if (name == names::extender_leaf) extender_secret.leaf.certificate = value;
  if (name == names::extender_leaf_key) extender_secret.leaf.key = value;
}

json patch_of(const extender_keys& keys) {
  json out;
  auto& data = out["data"];
  data[names::extender_authorities] = kube::base64_encode(keys.authorities);
  data[names::extender_signer_key] = kube::base64_encode(keys.signer_key);
  data[names::extender_older_key] = keys.older_key.empty() ? json() : json(kube::base64_encode(keys.older_key));
  return out;
}

json patch_of(const extender_side& side) {
  json out;
  auto& data = out["data"];
  data[names::extender_authorities] = kube::base64_encode(side.authorities);
  data[names::extender_leaf] = kube::base64_encode(side.leaf.certificate);
  data[names::extender_leaf_key] = kube::base64_encode(side.leaf.key);
  auto& annotations = out["metadata"]["annotations"];
  for (const auto key : {names::authorities_since_annotation, names::authorities_by_hand_annotation})
    annotations[api::former_key(key)] = json();
  if (side.since) annotations[names::authorities_since_annotation] = controller::rfc3339_seconds(*side.since);
  annotations[names::authorities_by_hand_annotation] = side.by_hand ? json("true") : json();
  return out;
}

std::int64_t end_of(const controller::pem_pair& leaf) {
  const auto all = controller::x509::read(leaf.certificate);
  return all.empty() ? 0 : all.front().until;
}

}  // namespace

kube::result<extender_secret> extender_secret::decode(std::string_view bytes) {
  extender_secret made;
  const auto content = api::read_owned(of().kind, bytes, made);
  if (!content) return std::unexpected(content.error());
  made.content = *content;
  const auto done = wire::guarded("protobuf", [&] {
    wire::each_field(bytes, wire::field<2>([&](std::string_view entry) { read_data(entry, made); }));
  });
  return wire::named(std::move(made), done);
}

extender_side extender_secret::side() const {
  return {
      authorities, leaf,
      controller::parse_rfc3339_seconds(api::remembered(annotations, names::authorities_since_annotation).value_or("")),
      api::remembered(annotations, names::authorities_by_hand_annotation) == "true"};
}

extender_certificates::extender_certificates(stores stores, kube::client& client, controller::recorder& events,
                                             controller::registry& metrics, settings settings)
    : stores_(stores),
      client_(client),
      events_(events),
      settings_(std::move(settings)),
      expires_(metrics.gauges("quartermaster_extender_certificate_expiry_seconds",
                              "End of what is stored for the extender (authority, server, client), seconds since 1970.",
                              {"certificate"})) {
  if (!settings_.wall) settings_.wall = controller::wall_seconds;
  const std::string service(api::names::extender_service);
  const auto host = service + "." + settings_.ns + ".svc";
  issuing_.names = {host, host + ".cluster.local", service, "localhost"};
}

const extender_secret* extender_certificates::find(const controller::store<extender_secret>& store,
                                                   std::string_view name) const {
  return store.find({settings_.ns, std::string(name)});
}

const accelerator_policy* extender_certificates::policy() const { return stores_.policies.find(policy_key); }

/// Empty: nothing is known of those who call us.
std::optional<extender_view> extender_certificates::view() const {
  const auto* authority = find(stores_.secrets.authority, names::extender_authority_secret);
  const auto* server = find(stores_.secrets.server, names::extender_server_secret);
  const auto* client = find(stores_.secrets.client, api::names::extender_client_secret);
  const auto control_plane_nodes = settings_.control_plane_nodes();
  if (!authority || !server || !client || !control_plane_nodes) return std::nullopt;
  extender_view out;
  out.keys = {authority->authorities, authority->signer_key, authority->older_key};
  out.server = server->side();
  out.client = client->side();
  const auto* deployment = stores_.deployments.find({settings_.ns, std::string(api::names::scheduler_objects)});
  out.callers = callers_of(deployment, api::hex(client->content), *control_plane_nodes,
                           api::certificates_of(client->authorities, client->leaf.certificate));
  return out;
}

kube::task<action> extender_certificates::reconcile(kube::object_key key) {
  if (key != only()) co_return action::await_change();
  if (!stores_.secrets.synced() || !stores_.policies.synced() || !stores_.deployments.synced())
    co_return action::again(soon);
  const auto* rules = policy();
  if (rules && (rules->removing || rules->deleting)) co_return action::again(1min);
  const auto* authority = find(stores_.secrets.authority, names::extender_authority_secret);
  const auto* server = find(stores_.secrets.server, names::extender_server_secret);
  const auto* client = find(stores_.secrets.client, api::names::extender_client_secret);
  if (!authority || !server || !client) {
    // Without a policy no one wants any: `quartermaster uninstall` removes both, and we may outlive it.
    if (!rules) co_return action::await_change();
    if (!authority) co_return co_await make_secret(names::extender_authority_secret);
    co_return co_await make_secret(server ? api::names::extender_client_secret : names::extender_server_secret);
  }
  const auto is = view();
  if (!is) co_return action::again(soon);
  show(*is);
  auto step = next_step(*is, settings_.wall(), issuing_);
  switch (step.action) {
    case extender_step::kind::store_keys:
      co_return co_await write(names::extender_authority_secret, authority, patch_of(step.keys), step.reason);
    case extender_step::kind::server:
      co_return co_await write(names::extender_server_secret, server, patch_of(step.side), step.reason, step.taken_out);
    case extender_step::kind::client: {
      const auto before = end_of(is->client.leaf);
      const bool leaf = step.side.leaf != is->client.leaf,
                 by_hand = (is->client.by_hand || !is->callers.any) && before > settings_.wall();
      const auto done =
          co_await write(api::names::extender_client_secret, client, patch_of(step.side), step.reason, step.taken_out);
      if (done && leaf && by_hand)
        say("CertificateRenewed", controller::event_type::warning,
            "The certificate that a kube-scheduler shows the extender was renewed. One that was set up by hand has to "
            "be given ca.crt, tls.crt and tls.key of Secret " +
                std::string(api::names::extender_client_secret) + " and restarted before " +
                controller::rfc3339_seconds(before));
      co_return done;
    }
    case extender_step::kind::rest:
      break;
  }
  say_waiting(step.waiting);
  co_return action::again(std::min<milliseconds>(step.again, at_least_every));
}

/// Without content: an apply cannot say that the object must not be there, and so must not carry a key. What is in one
/// was written by another hand (an update), and stays.
kube::task<action> extender_certificates::make_secret(std::string_view name) {
  const auto& type = extender_secret::of();
  const kube::object_key key{settings_.ns, std::string(name)};
  const json want = {{"apiVersion", type.api_version()},
                     {"kind", type.kind},
                     {"metadata",
                      {{"name", key.name},
                       {"namespace", key.ns},
                       {"labels", {{api::names::managed_by_label, api::names::managed_by}}}}},
                     {"type", "Opaque"}};
  kube::write_options options;
  options.field_manager = api::names::field_owner;
  options.force = true;
  const auto answer = co_await client_.apply(type, key, want, options);
  if (!answer) co_return std::unexpected(answer.error());
  log::info("secret of the extender made", {{"secret", key.to_string()}});
  co_return action::again(soon);
}

/// Only over what was seen: the faster writer wins, and we look again.
kube::task<action> extender_certificates::write(std::string_view name, const extender_secret* seen, json patch,
                                                std::string_view reason, std::string taken_out) {
  const kube::object_key key{settings_.ns, std::string(name)};
  patch["metadata"]["uid"] = seen->id.to_string();
  patch["metadata"]["resourceVersion"] = std::to_string(seen->resource_version);
  const auto answer = co_await client_.patch(extender_secret::of(), key, kube::patch_kind::merge, patch);
  if (!answer) {
    const auto code = answer.error().code;
    if (code == kube::errc::conflict || code == kube::errc::not_found) co_return action::again(soon);
    co_return std::unexpected(answer.error());
  }
  log::info("certificates of the extender written", {{"secret", key.to_string()}, {"why", reason}});
  auto note = "Secret " + key.to_string() + ": " + std::string(reason);
  if (!taken_out.empty()) {
    log::info("authorities taken out", {{"secret", key.to_string()}, {"authorities", taken_out}});
    note += "; taken out, because Secret " + std::string(names::extender_authority_secret) +
            " does not have it: " + taken_out;
  }
  say("CertificatesWritten", controller::event_type::normal, note);
  co_return action::again(soon);
}

void extender_certificates::show(const extender_view& is) {
  const auto ends = ends_of(is);
  expires_.with({"authority"}).set(static_cast<double>(ends.authority));
  expires_.with({"server"}).set(static_cast<double>(ends.server));
  expires_.with({"client"}).set(static_cast<double>(ends.client));
}

/// On the policy, where people look; without one, on the callers' Secret.
void extender_certificates::say(std::string_view reason, controller::event_type type, const std::string& note) {
  const auto* rules = policy();
  const auto* client = find(stores_.secrets.client, api::names::extender_client_secret);
  if (rules)
    events_.record({kube::resources::accelerator_policies, *rules}, type, reason, "Rotate", note);
  else if (client)
    events_.record({extender_secret::of(), *client}, type, reason, "Rotate", note);
}

void extender_certificates::say_waiting(const std::string& message) {
  const bool again = !message.empty() && said_at_ && settings_.now() - *said_at_ >= says_again;
  if (message == message_ && !again) return;
  message_ = message;
  said_at_ = settings_.now();
  if (message.empty()) return;
  log::info("change of the extender's authority waits", {{"for", message}});
  say("AuthorityChanging", controller::event_type::normal,
      "The extender's certificates change their authority: " + message);
}

extender_certificate::extender_certificate(controller::store<extender_secret>& secrets, controller::http_server& server)
    : server_(server) {
  secrets.observe([this](const extender_secret*, const extender_secret* after) {
    if (after) show(*after);
  });
}

void extender_certificate::show(const extender_secret& secret) {
  const auto side = secret.side();
  if (side.leaf.certificate.empty() && side.leaf.key.empty()) return;  // just made
  const controller::given_certificate stored{side.leaf, side.authorities};
  if (stored == certificate_) return;
  const auto taken = server_.show(stored);
  if (!taken) server_.reject_certificate(taken.error().message);
  certificate_ = stored;
}

}  // namespace reconcilers
