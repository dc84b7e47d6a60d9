#include "reconcilers/plugins/plugin_rollout.hpp"

#include <algorithm>
#include <nlohmann/json.hpp>

#include "controller/clock.hpp"
#include "kube/json_text.hpp"
#include "reconcilers/modules/node_sets.hpp"

namespace reconcilers {
namespace {

using namespace std::chrono_literals;
using nlohmann::json;
using strategy = modules::rollout::strategy;
using kind = rollout_step::kind;

/// After so many restarts without being ready a plugin is taken for broken before its time is over.
constexpr std::int32_t crash_loop = 3;

/// The pod that counts; null while there is none but what is on its way out.
const rollout_pod* pod_of(const rollout_node& node) {
  const rollout_pod* best = nullptr;
  for (const auto& pod : node.pods) {
    if (!pod.deleting && (!best || pod.ready)) best = &pod;
  }
  return best;
}

bool leaving(const rollout_node& node) { return std::ranges::any_of(node.pods, &rollout_pod::deleting); }

bool is_old(const rollout_node& node) {
  const auto* pod = pod_of(node);
  return pod && pod->made_from != node.wanted;
}

/// Another DaemonSet of the module is to serve it.
bool is_moving(const rollout_node& node) { return node.serves != node.target; }

/// Two templates that differ in nothing but the image of the plugin.
bool same_but_image(std::string_view version, std::string_view other) {
  const auto dot = version.find('.');
  return dot != version.npos && version.substr(0, dot) == other.substr(0, other.find('.'));
}

bool needs_idle(strategy method, const rollout_node& node) {
  return method == strategy::when_idle || (method == strategy::always && changes_chooser(node));
}

bool has(const rollout_node& node, const kube::quantities& needs) {
  return std::ranges::all_of(
      needs, [&](const auto& need) { return kube::amount(node.allocatable, need.first) >= need.second; });
}

bool well(const rollout_node& node, const rollout_record& record) {
  const auto* pod = pod_of(node);
  return node.answers && !leaving(node) && !is_moving(node) && pod && pod->ready && !is_old(node) &&
         has(node, record.needs);
}

/// Has the old version and nothing has happened to it yet.
bool untouched(const rollout_node& node, const rollout_record& record) {
  return is_old(node) && node.serves != between_sets && !leaving(node) && pod_of(node)->ready &&
         has(node, record.needs);
}

bool image_missing(std::string_view reason) {
  return reason == "ImagePullBackOff" || reason == "ErrImagePull" || reason == "InvalidImageName";
}

text::phrase rollout_phrase(std::string_view key, std::vector<text::phrase_argument> arguments = {}) {
  return {"status.rollout." + std::string(key), std::move(arguments)};
}
/// With a list of names besides the number.
text::phrase counted_list(const std::vector<std::string>& names, std::string_view key) {
  auto out = text::counted_phrase(names.size(), "status.rollout." + std::string(key));
  out.arguments.push_back(text::some_of("list", names));
  return out;
}

class decision {
 public:
  explicit decision(const rollout_state& rollout_state) : is_(rollout_state) {
    for (const auto& node : is_.nodes) {
      if (!node.changing) nodes_.push_back(&node);
    }
    std::ranges::sort(nodes_, {}, &rollout_node::name);
  }

  rollout_step next() {
    if (const auto* node = under_way()) {
      hold(*node);
      return std::move(out_);
    }
    if (is_.record) out_.clear = is_.record->set;
    if (std::ranges::none_of(nodes_, [](const auto* node) { return is_old(*node) || is_moving(*node); }))
      return std::move(out_);
    if (is_.method == strategy::by_hand && !emptied())
      wait_for_hands();
    else if (is_.method == strategy::by_hand)
      adopt(*emptied());
    else if (const auto* node = unfinished())
      adopt(*node);
    else
      choose();
    return std::move(out_);
  }

 private:
  const rollout_node* node_of_record() const {
    if (!is_.record) return nullptr;
    const auto match = std::ranges::find(nodes_, is_.record->node, &rollout_node::name);
    return match == nodes_.end() ? nullptr : *match;
  }

  /// The node that everything else waits for.
  const rollout_node* under_way() const {
    const auto* node = node_of_record();
    if (!node || untouched(*node, *is_.record)) return nullptr;
    return well(*node, *is_.record) && is_.well_for >= rollout_settle ? nullptr : node;
  }

  bool in_use(const rollout_node& node) const { return needs_idle(is_.method, node) && !node.users.empty(); }

  // A node between two versions
  // -----------------------------------------------------------------------------------------

  void hold(const rollout_node& node) {
    out_.is = kind::wait;
    if (is_.record->wanted != node.wanted) {
      out_.record = another_wish(node);
      if (out_.record->set != is_.record->set) out_.clear = is_.record->set;
    }
    const auto since = out_.record ? out_.record->since : is_.record->since;
    const auto left = is_.timeout - std::chrono::seconds(is_.wall - since);
    if (const auto target = next_set(node)) {
      out_.move = {node.name, node.serves, *target, false};
      out_.message = under_way(node);
    } else if (is_old(node) && node.serves != between_sets && node.answers && node.known && !in_use(node) &&
               !node.unsuitable && is_.method != strategy::by_hand) {
      take_away(node);
      out_.message = under_way(node);
    } else if (well(node, *is_.record)) {
      out_.message = under_way(node);
      out_.again_in = rollout_settle - is_.well_for;
    } else if (left <= 0s || (is_hopeless(node) && !out_.record)) {
      out_.is = kind::halted;
      out_.message = rollout_phrase("halted", {{"node", node.name}, {"trouble", trouble(node)}, {"rest", rest()}});
    } else {
      out_.message = under_way(node);
      out_.again_in = left;
    }
    out_.waits_for_pods = in_use(node);
  }

  /// The old plugin goes: by itself, or with its DaemonSet's claim to the node.
  void take_away(const rollout_node& node) {
    const bool if_idle = needs_idle(is_.method, node);
    if (is_moving(node))
      out_.move = {node.name, node.serves, std::string(between_sets), if_idle};
    else
      out_.remove = {node.name, *pod_of(node), if_idle};
  }

  /// Where a node without a plugin that stays goes on its way to another set: to no DaemonSet until the old plugin is
  /// gone, then to the new one.
  static std::optional<std::string> next_set(const rollout_node& node) {
    if (!is_moving(node) || !node.known || pod_of(node)) return std::nullopt;
    if (node.serves != between_sets) return std::string(between_sets);
    return node.pods.empty() ? std::optional(node.target) : std::nullopt;
  }

  /// The policy changed while the node was under way: it has its time again, and what it had counts as it did.
  rollout_record another_wish(const rollout_node& node) const {
    rollout_record out{node.set, node.name, node.wanted, is_.wall, is_.record->needs};
    if (!same_but_image(is_.record->wanted, node.wanted)) at_least_one(out.needs);
    return out;
  }

  bool is_hopeless(const rollout_node& node) const {
    const auto* pod = pod_of(node);
    return pod && !pod->ready && !is_old(node) && (pod->restarts >= crash_loop || image_missing(pod->reason));
  }

  text::phrase trouble(const rollout_node& node) const {
    const auto* pod = pod_of(node);
    if (!node.answers) return rollout_phrase("silent_node");
    if (leaving(node)) return rollout_phrase("pod_stays");
    if (!pod) return rollout_phrase("no_pod");
    const auto name = pod->key.to_string();
    if (!pod->ready) {
      text::phrase cause, restarts, users;
      if (!pod->reason.empty()) cause = rollout_phrase("not_ready_cause", {{"cause", pod->reason}});
      if (pod->restarts > 0)
        restarts = text::counted_phrase(static_cast<std::size_t>(pod->restarts), "status.rollout.restarts");
      if (is_old(node) && in_use(node)) users = rollout_phrase("users", {text::some_of("list", node.users)});
      return rollout_phrase("not_ready", {{"pod", name}, {"cause", cause}, {"restarts", restarts}, {"users", users}});
    }
    for (const auto& [resource, needed] : is_.record->needs) {
      const auto there = kube::amount(node.allocatable, resource);
      if (there < needed)
        return rollout_phrase("too_few", {{"pod", name},
                                          {"resource", std::string(resource)},
                                          {"amount", std::to_string(there)},
                                          {"needed", std::to_string(needed)}});
    }
    return rollout_phrase("other_version", {{"pod", name}});
  }

  /// "4 nodes keep the version before".
  text::phrase rest() const {
    const auto old = std::ranges::count_if(nodes_, [](const auto* node) { return is_old(*node); });
    return text::counted_phrase(static_cast<std::size_t>(old), "status.rollout.rest");
  }

  // The next node
  // -------------------------------------------------------------------------------------------------------

  /// A node whose newest plugin is not up although we know of nothing under way: someone else deleted its pod.
  const rollout_node* unfinished() const {
    const auto match = std::ranges::find_if(nodes_, [](const rollout_node* rollout_node) {
      const auto* pod = pod_of(*rollout_node);
      return rollout_node->answers && (!pod || leaving(*rollout_node) || (!pod->ready && !is_old(*rollout_node)));
    });
    return match == nodes_.end() ? nullptr : *match;
  }

  /// A node that moves and whose old plugin someone took away.
  const rollout_node* emptied() const {
    const auto match =
        std::ranges::find_if(nodes_, [](const auto* node) { return is_moving(*node) && !pod_of(*node); });
    return match == nodes_.end() ? nullptr : *match;
  }

  void adopt(const rollout_node& node) {
    write(rollout_record{node.set, node.name, node.wanted, is_.wall, something(node)});
    out_.is = kind::wait;
    out_.again_in = is_.timeout;
    out_.message = under_way(node);
  }

  /// Nodes that have nothing to lose first; those that show no cards, which prove nothing of the new version, last.
  int turn_of(const rollout_node& node) const {
    if (!pod_of(node)->ready) return 0;
    return is_.resources.empty() || kube::amount(node.allocatable, anything(node)) > 0 ? 1 : 2;
  }

  void choose() {
    const rollout_node* best = nullptr;
    for (const auto* entry : nodes_) {
      if (!is_old(*entry) || !entry->answers || !entry->known || entry->unsuitable || in_use(*entry)) continue;
      const bool begun = is_.record && is_.record->node == entry->name;
      if (begun || !best || turn_of(*entry) < turn_of(*best)) best = entry;
      if (begun) break;
    }
    out_.is = kind::wait;
    if (best) {
      const bool begun = is_.record && is_.record->node == best->name && is_.record->wanted == best->wanted;
      if (begun)
        out_.clear.reset();
      else
        write(record_of(*best));
      take_away(*best);
      out_.message = under_way(*best);
    } else {
      wait_for_nodes();
    }
  }

  /// What the node has now it must have again: as much where nothing but the image is another, else at least one.
  rollout_record record_of(const rollout_node& node) const {
    rollout_record out{node.set, node.name, node.wanted, is_.wall, {}};
    const auto& pod = *pod_of(node);
    if (!pod.ready) {
      out.needs = something(node);
      return out;
    }
    for (const auto* names : {&is_.resources, &is_.others}) {
      for (const auto& name : *names) {
        if (const auto there = kube::amount(node.allocatable, name); there > 0) out.needs.emplace_back(name, there);
      }
    }
    std::ranges::sort(out.needs);
    if (!same_but_image(pod.made_from, node.wanted)) at_least_one(out.needs);
    return out;
  }

  /// The resource that says of this node that its plugin works: where cards are cut or renamed, none is left under the
  /// module's own name.
  std::string_view anything(const rollout_node& node) const {
    if (kube::amount(node.allocatable, is_.resources.front()) > 0) return is_.resources.front();
    std::string_view out = is_.resources.front();
    std::int64_t most = -1;
    for (const auto& [name, amount] : node.allocatable) {
      if (amount > most && std::ranges::find(is_.others, name) != is_.others.end()) out = name, most = amount;
    }
    return out;
  }

  kube::quantities something(const rollout_node& node) const {
    kube::quantities out;
    if (!is_.resources.empty()) out.emplace_back(anything(node), 1);
    return out;
  }
  static void at_least_one(kube::quantities& needs) {
    for (auto& need : needs) need.second = std::min<std::int64_t>(need.second, 1);
  }

  void write(rollout_record record) {
    if (out_.clear == record.set) out_.clear.reset();
    out_.record = std::move(record);
  }

  // Reports
  // --------------------------------------------------------------------------------------------------------

  text::phrase progress() const {
    const auto old = std::ranges::count_if(nodes_, [](const auto* node) { return is_old(*node); });
    return rollout_phrase("progress", {{"done", std::to_string(nodes_.size() - static_cast<std::size_t>(old))},
                                       {"nodes", text::counted_phrase(nodes_.size(), "status.nodes")}});
  }

  text::phrase under_way(const rollout_node& node) const {
    return rollout_phrase("under_way", {{"progress", progress()}, {"node", node.name}});
  }

  void wait_for_nodes() {
    std::vector<std::string> in_use_now, silent, unsuitable;
    for (const auto* entry : nodes_) {
      if (!is_old(*entry)) continue;
      if (!entry->answers)
        silent.push_back(entry->name);
      else if (entry->unsuitable)
        unsuitable.push_back(entry->name);
      else if (in_use(*entry))
        in_use_now.push_back(entry->name);
    }
    std::vector<text::phrase> parts{progress()};
    if (!in_use_now.empty()) parts.push_back(counted_list(in_use_now, "waits_for_pods"));
    if (!silent.empty()) parts.push_back(counted_list(silent, "silent"));
    if (!unsuitable.empty()) parts.push_back(counted_list(unsuitable, "unsuitable"));
    out_.message = text::joined_by_semicolons(std::move(parts));
    out_.waits_for_pods = !in_use_now.empty();
  }

  void wait_for_hands() {
    std::vector<std::string> old;
    for (const auto* entry : nodes_) {
      if (is_old(*entry)) old.push_back(entry->name);
    }
    out_.is = kind::wait;
    out_.message = text::joined_by_semicolons({progress(), rollout_phrase("by_hand", {text::some_of("list", old)})});
  }

  const rollout_state& is_;
  std::vector<const rollout_node*> nodes_;
  rollout_step out_;
};

}  // namespace

bool changes_chooser(const rollout_node& node) {
  const auto follows = [](std::string_view mark) { return mark.ends_with(modules::placement_mark); };
  return std::ranges::any_of(node.pods, [&](const rollout_pod& pod) {
    return !pod.deleting && follows(pod.made_from) != follows(node.wanted);
  });
}

std::string rollout_record::to_string() const {
  auto had = json::object();
  for (const auto& [name, number] : needs) had[name] = number;
  return json{{"node", node},
              {"template", wanted},
              {"since", controller::rfc3339_seconds(controller::wall_time(std::chrono::seconds(since)))},
              {"needs", std::move(had)}}
      .dump();
}

std::optional<rollout_record> rollout_record::parse(std::string_view text, std::string set) {
  const auto object = json::parse(text, nullptr, false);
  if (!object.is_object()) return std::nullopt;
  rollout_record out{std::move(set), kube::text_in(object, "node"), kube::text_in(object, "template"), 0, {}};
  if (out.node.empty()) return std::nullopt;
  out.since = controller::parse_rfc3339_seconds(kube::text_in(object, "since")).value_or(0);
  if (const auto position = object.find("needs"); position != object.end() && position->is_object()) {
    for (const auto& [name, number] : position->items()) {
      if (number.is_number_integer()) out.needs.emplace_back(name, number.get<std::int64_t>());
    }
  }
  return out;
}

rollout_step next_rollout_step(const rollout_state& is) { return decision(is).next(); }

bool is_well(const rollout_state& is) {
  if (!is.record) return false;
  const auto match = std::ranges::find(is.nodes, is.record->node, &rollout_node::name);
  return match != is.nodes.end() && !match->changing && well(*match, *is.record);
}

}  // namespace reconcilers
