#include "cli/controller/policy_file.hpp"

#include <algorithm>
#include <iostream>

#include "api/names.hpp"
#include "controller/log.hpp"
#include "controller/sleep.hpp"
#include "text/quotation.hpp"
#include "text/yaml/fault_words.hpp"
#include "text/yaml/source.hpp"

namespace cli {
namespace {

namespace log = controller::log;
using nlohmann::json;

constexpr std::string_view field_owner = "quartermaster-values";
constexpr controller::milliseconds first_wait(500), longest_wait(60'000);
/// A watch shows what was written within this.
constexpr controller::milliseconds watch_delay(5'000);

}  // namespace

std::expected<json, text::phrase> read_policy_file(const std::string& path) {
  const auto wrong = [&](text::phrase problem) {
    return std::unexpected(text::phrase{"usage.policy.of_file", {{"file", path}, {"problem", std::move(problem)}}});
  };
  const auto file = text::yaml::read_file(path, std::cin);
  if (!file) return wrong(text::yaml::unreadable(file.error()));
  if (file->documents.size() != 1)
    return wrong({"usage.policy.documents", {{"number", std::to_string(file->documents.size())}}});
  const auto& root = *file->documents.front();
  auto policy = text::yaml::to_json(root);
  const auto& type = kube::resources::accelerator_policies;
  if (!policy || text::yaml::text_at(&root, "apiVersion") != type.api_version() ||
      text::yaml::text_at(&root, "kind") != type.kind)
    return wrong({"usage.policy.kind", {{"kind", std::string(type.kind)}, {"version", type.api_version()}}});
  const auto name = text::yaml::text_at(text::yaml::find(&root, "metadata"), "name");
  if (name != api::names::policy)
    return wrong({"usage.policy.name", {{"value", std::string(name)}, {"name", std::string(api::names::policy)}}});
  return std::move(*policy);
}

kube::task<void> keep_policy(kube::client& api, json policy, std::function<void()> settled) {
  const kube::object_key key{{}, std::string(api::names::policy)};
  kube::write_options options;
  options.field_manager = field_owner;
  options.force = true;
  for (auto wait = first_wait;; wait = std::min(wait * 2, longest_wait)) {
    const auto done = co_await api.apply(kube::resources::accelerator_policies, key, policy, options);
    if (done) {
      log::info("policy of the installation applied", {{"policy", key.name}});
      co_await controller::sleep_for(watch_delay);
      settled();
      co_return kube::result<void>();
    }
    settled();
    if (done.error().code == kube::errc::cancelled) co_return std::unexpected(done.error());
    log::error("the policy of the installation (--policy) cannot be applied, retrying",
               {{"error", done.error().message}});
    const bool slept = co_await controller::sleep_for(wait);
    if (!slept) co_return std::unexpected(kube::error{kube::errc::cancelled, 0, "stopped", std::nullopt});
  }
}

}  // namespace cli
