#include "reconcilers/nodes/restore.hpp"

#include <algorithm>
#include <nlohmann/json.hpp>

#include "api/names.hpp"
#include "api/node_words.hpp"
#include "text/escape.hpp"
#include "text/list.hpp"

namespace reconcilers {
namespace {

using controller::action;
using nlohmann::json;

constexpr auto annotation_path = "/metadata/annotations/quartermaster.io~1restore";

constexpr std::size_t most_names = 64;  // as many cards as a node may have

/// What stands behind the last of them is ignored: an annotation has room for thousands.
std::vector<std::string> names_in(std::string_view list) {
  std::vector<std::string> out;
  while (!list.empty() && out.size() < most_names) {
    auto name = list.substr(0, list.find(','));
    list.remove_prefix(std::min(list.size(), name.size() + 1));
    while (name.starts_with(' ')) name.remove_prefix(1);
    while (name.ends_with(' ')) name.remove_suffix(1);
    if (!name.empty() && std::ranges::find(out, name) == out.end()) out.emplace_back(name);
  }
  return out;
}

std::string escaped(std::string_view text) {
  std::string out;
  text::append_escaped(out, text::utf8_clean(text, 128));
  return out;
}

/// What ends a sickness that no one can declare over.
std::string_view remedy_for(std::string_view health) {
  if (health == "Lost") return "it is used again when it has answered for 10 s";
  if (health == "NoDriver") return "it is used again when the driver is loaded";
  if (health == "NotAnswering") return "it is used again when the driver answers";
  if (health == api::mps_failed) return "it is used again when the last program has left it and MPS has started again";
  if (health == "RowRemapFailed") return "it has to be exchanged";
  return "it is used again when the agent reports it healthy";
}

bool overtaken(kube::errc code) { return code == kube::errc::conflict || code == kube::errc::not_found; }

}  // namespace

restore_step next_restore(std::string_view annotation, const api::accelerator_node* report) {
  restore_step out;
  for (auto& name : names_in(annotation)) {
    const auto card = report ? std::ranges::find(report->cards, name, &api::reported_card::uuid)
                             : std::vector<api::reported_card>::const_iterator();
    if (!report || report->cards.empty()) {
      out.refusals.push_back("card " + escaped(name) + " cannot be restored: no agent reports the cards of this node");
    } else if (card == report->cards.end()) {
      std::vector<std::string> known;
      for (const auto& other : report->cards) known.push_back(escaped(other.uuid));
      out.refusals.push_back("card " + escaped(name) + " cannot be restored: this node has the cards " +
                             text::some_of(known, 8));
    } else if (card->healthy()) {
      continue;
    } else if (card->health.starts_with("XID ")) {
      out.wanted.push_back(std::move(name));
    } else {
      out.refusals.push_back("card " + escaped(name) + " cannot be restored: it is " + escaped(card->health) +
                             ", and " + std::string(remedy_for(card->health)));
    }
  }
  return out;
}

kube::task<action> card_restore::reconcile(kube::object_key key) {
  const auto* node = nodes_.find(key);
  if (!node || !reports_.synced()) co_return action::await_change();
  const std::string before(node->annotations.value_or(restore_annotation, ""));
  const auto* report = reports_.find(key);
  const auto step = next_restore(before, report);
  kube::write_options options;
  options.field_manager = api::names::field_owner;
  const controller::object_reference about(kube::resources::nodes, *node);
  const bool has_annotation = node->annotations.contains(restore_annotation);
  auto patch = json::array({{{"op", "test"}, {"path", "/metadata/uid"}, {"value", node->id.to_string()}},
                            {{"op", "test"}, {"path", annotation_path}, {"value", before}}});
  const auto rest = text::joined(step.wanted, ",");
  if (rest.empty())
    patch.push_back({{"op", "remove"}, {"path", annotation_path}});
  else
    patch.push_back({{"op", "replace"}, {"path", annotation_path}, {"value", rest}});

  if (report && report->restore != step.wanted) {
    const json body = {{"metadata", {{"uid", report->id.to_string()}}},
                       {"status", {{"restore", step.wanted.empty() ? json() : json(step.wanted)}}}};
    auto answer = co_await client_.patch(kube::resources::accelerator_nodes, key, kube::patch_kind::merge, body,
                                         "status", options);
    if (!answer && !overtaken(answer.error().code)) co_return std::unexpected(std::move(answer.error()));
  }
  if (!has_annotation || names_in(before) == step.wanted) co_return action::await_change();
  auto answer = co_await client_.patch(kube::resources::nodes, key, kube::patch_kind::json, patch, {}, options);
  if (!answer) {
    // A failed `test`: the annotation has changed, and the change comes here.
    if (overtaken(answer.error().code) || answer.error().code == kube::errc::invalid) co_return action::await_change();
    co_return std::unexpected(std::move(answer.error()));
  }
  for (const auto& refusal : step.refusals)
    events_.record(about, controller::event_type::warning, "RestoreRefused", "Restore", refusal);
  co_return action::await_change();
}

std::vector<kube::object_key> card_restore::affected_by(const kube::node* before, const kube::node* after) const {
  if (!after) return {};
  const auto names = [](const kube::node* node) {
    return node ? node->annotations.value_or(restore_annotation, "") : "";
  };
  if (names(before) == names(after) && (before || names(after).empty())) return {};
  return {after->key};
}

std::vector<kube::object_key> card_restore::affected_by(const api::accelerator_node* before,
                                                        const api::accelerator_node* after) const {
  if (!after) return {};
  const auto* node = nodes_.find(after->key);
  const bool is_asked = node && node->annotations.contains(restore_annotation);
  if (!is_asked && after->restore.empty()) return {};
  if (before && before->cards == after->cards && before->restore == after->restore) return {};
  return {after->key};
}

}  // namespace reconcilers
