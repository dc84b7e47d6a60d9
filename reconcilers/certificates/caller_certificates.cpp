#include "reconcilers/certificates/caller_certificates.hpp"

#include <algorithm>
#include <chrono>
#include <tuple>

#include "api/names.hpp"
#include "controller/clock.hpp"
#include "kube/resource.hpp"
#include "text/text.hpp"

namespace reconcilers {
namespace {

using controller::x509::info;

/// Of certificates that end soon; the message has room for more, the event has not.
constexpr std::size_t most_named = 4;

text::phrase callers_phrase(std::string_view key, std::vector<text::phrase_argument> arguments = {}) {
  return {"status.callers." + std::string(key), std::move(arguments)};
}

text::phrase named(const info& leaf) {
  return callers_phrase("certificate", {{"name", text::shown(leaf.name)},
                                        {"serial", text::shown(leaf.serial)},
                                        {"time", controller::rfc3339_seconds(leaf.until)}});
}

}  // namespace

bool ends_soon(const info& leaf, std::int64_t now) {
  return leaf.until - now < std::min(caller_certificates::ahead, (leaf.until - leaf.not_before) / 3);
}

caller_certificates::caller_certificates(const controller::store<accelerator_policy>& policies,
                                         controller::recorder& events, controller::registry& metrics, settings settings)
    : policies_(policies), events_(events), settings_(std::move(settings)) {
  if (!settings_.wall) settings_.wall = controller::wall_seconds;
  metrics.collect([this](controller::metric_text& metric_text) {
    const auto seen = recent();
    constexpr std::string_view name = "quartermaster_extender_caller_certificate_expiry_seconds";
    metric_text.family(
        name, "Earliest end of a certificate that a caller showed the extender in the last day, seconds since 1970.",
        "gauge");
    if (!seen.empty()) metric_text.sample(name, {}, static_cast<double>(seen.front().until));
  });
}

void caller_certificates::note(const info& leaf) {
  const auto now = settings_.wall();
  std::erase_if(rows_, [&](const row& row) { return now - row.seen > kept; });
  const auto known = std::ranges::find(rows_, leaf.pem, [](const row& row) { return row.leaf.pem; });
  if (known != rows_.end()) {
    known->seen = now;
    return;
  }
  if (rows_.size() >= most) rows_.erase(std::ranges::min_element(rows_, {}, &row::seen));
  rows_.push_back({leaf, now});
}

std::vector<info> caller_certificates::recent() const {
  const auto now = settings_.wall();
  std::vector<info> out;
  for (const auto& row : rows_) {
    if (now - row.seen <= kept) out.push_back(row.leaf);
  }
  std::ranges::sort(out, {}, [](const info& info) { return std::tie(info.until, info.pem); });
  return out;
}

const accelerator_policy* caller_certificates::policy() const { return policies_.find(policy_key); }

std::optional<controller::condition> caller_certificates::state() const {
  const auto seen = recent();
  const auto now = settings_.wall();
  controller::condition out;
  out.type = caller_certificates_valid;
  if (const auto* rules = policy()) out.generation = rules->generation;
  if (seen.empty()) {
    if (!leads_since_ || now - *leads_since_ <= kept) return std::nullopt;
    out.status = "Unknown";
    out.reason = "NoneSeen";
    out.message = callers_phrase("none_seen");
    return out;
  }
  std::vector<text::phrase> ending;
  std::size_t count = 0;
  for (const auto& leaf : seen) {
    if (!ends_soon(leaf, now) || ++count > most_named) continue;
    ending.push_back(named(leaf));
  }
  if (count == 0) {
    out.status = "True";
    out.reason = "Valid";
    out.message = callers_phrase("valid", {{"certificate", named(seen.front())}});
    return out;
  }
  text::phrase more;
  if (count > most_named) more = callers_phrase("more", {{"number", std::to_string(count - most_named)}});
  out.status = "False";
  out.reason = "ExpiringSoon";
  out.message = callers_phrase("ending", {{"list", text::joined_by_commas(std::move(ending))},
                                          {"more", more},
                                          {"secret", std::string(api::names::extender_client_secret)}});
  return out;
}

void caller_certificates::look() {
  if (!leads_since_) leads_since_ = settings_.wall();
  const auto is = state();
  if (!is || is->message == message_) return;
  message_ = is->message;
  settings_.on_state();
  const auto* rules = policy();
  if (is->status == "False" && rules)
    events_.record({kube::resources::accelerator_policies, *rules}, controller::event_type::warning,
                   "CallerCertificateExpiring", "Verify", words_of(is->message, text::language::en));
}

}  // namespace reconcilers
