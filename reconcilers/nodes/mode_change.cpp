#include "reconcilers/nodes/mode_change.hpp"

#include <algorithm>
#include <array>
#include <ranges>

#include "api/names.hpp"
#include "controller/clock.hpp"
#include "reconcilers/nodes/foreign.hpp"
#include "text/list.hpp"
#include "text/phrase_code.hpp"

namespace reconcilers {
namespace {

using namespace std::chrono_literals;
using controller::event_type;
using kind = node_intent::kind;
using modules::module_type;

constexpr std::string_view none = "none";
constexpr std::size_t most_blockers = 16;
/// A plugin that starts normally is not worth a status write for each of its stages.
constexpr auto patience = 10s;
/// Reason while someone else's plugin is waited for, and of what is given up because it stays.
constexpr std::string_view foreign_stays = "ForeignPlugin";
constexpr std::string_view no_policy = "NoPolicy";
/// Before what was given up is tried again by itself: doubled each time.
constexpr std::int64_t first_back_off = 600, longest_back_off = 6 * 3600;

/// Phase, reason and message of the status to be.
struct step_finding {
  std::string_view phase;
  std::string reason;
  text::phrase message;
};

/// The phrase "status.node.KEY".
text::phrase node_phrase(std::string_view key, std::vector<text::phrase_argument> arguments = {}) {
  return {"status.node." + std::string(key), std::move(arguments)};
}

std::string_view name_of(const module_type* mode) { return mode ? mode->name : none; }
std::string_view or_none(std::string_view label) { return label.empty() ? none : label; }

void append(std::string& list, std::string_view word) { (list += list.empty() ? "" : ", ") += word; }

/// What a plugin of this mode has to advertise, for people.
text::phrase_argument needed_of(const module_type& mode) {
  const auto list = [&mode](std::string_view alternative) {
    auto out = text::joined(mode.resources);
    for (const auto prefix : mode.prefixes) (out += alternative) += std::string(prefix) + "*";
    return out;
  };
  return {"resources", list(" or "), list(" 或 ")};
}

/// Says also what to do.
text::phrase why_it_returned(const holder& pod) {
  return node_phrase("comes_back",
                     {{"controller", pod.returned_by}, {"taint", std::string(api::names::switching_taint)}});
}

/// What of it is allocatable; empty when that does not say that the plugin works.
std::string advertised(const node_state& is, const module_type& mode) {
  const auto offered = [&](std::string_view name) { return kube::amount(is.allocatable, name) > 0; };
  bool works = std::ranges::all_of(mode.resources, offered);
  std::string out;
  for (const auto name : mode.resources) {
    if (offered(name)) append(out, name);
  }
  for (const auto& [name, amount] : is.allocatable) {
    if (amount <= 0 || !modules::has_prefix(mode, name)) continue;
    append(out, name);
    works = true;
  }
  return works ? out : std::string();
}

text::phrase leaving(const plugin_pod& pod) {
  return node_phrase("plugin_leaves", {{"pod", pod.name}, {"mode", pod.module}});
}

/// Why a plugin is not up, while it is waited for.
constexpr std::array<std::string_view, 5> verifying_reasons{"PluginStarting", "NoPlugin", "UntoleratedTaint",
                                                            "PluginNotReady", "NothingAdvertised"};

bool same_trouble(std::string_view cause, std::string_view other) {
  const auto verifying = [](auto reason) {
    return std::ranges::find(verifying_reasons, reason) != verifying_reasons.end();
  };
  return cause == other || (verifying(cause) && verifying(other));
}

std::int64_t back_off(std::int64_t attempts) {
  auto out = first_back_off;
  for (; attempts > 1 && out < longest_back_off; --attempts) out *= 2;
  return std::min(out, longest_back_off);
}

class transaction {
 public:
  explicit transaction(const node_state& node_state) : is_(node_state) {
    requested_ = asked();
    if (given_up_still()) memory_ = is_.before->given_up;
    target_ = memory_ ? way_back() : requested_;
  }

  mode_step next() {
    auto found = decide();
    if (!found) {
      if (is_.before && (is_.before->actual_mode != none || is_tainted() || in(phases::removing)))
        out_.tell = {event_type::normal, "Released", "Enrol", "the node has no accelerator mode any more"};
      return std::move(out_);
    }
    api::mode_status now;
    now.requested_mode = is_.wanted.requested.empty() ? std::string(none) : is_.wanted.requested;
    const bool found_ready = found->phase == phases::ready;
    now.phase = found->phase;
    now.reason = std::move(found->reason);
    now.message = text::message_text(found->message);
    now.code = code_of(found->message);
    now.actual_mode = actual_mode(found->phase);
    now.given_up = memory_ ? memory_ : earlier_attempts(found_ready);
    if (found->phase == phases::draining || found->phase == phases::stuck) name_blockers(now);
    if (found->phase == phases::draining) {
      for (const auto* other : others()) out_.blockers.push_back(*other);
    }
    const bool goes_on =
        is_.before && is_.before->phase == now.phase && is_.before->requested_mode == now.requested_mode;
    now.since = goes_on && !is_.before->since.empty() ? is_.before->since : rfc3339(is_.wall);
    now.ready = found_ready ? "True" : "False";
    const bool still = is_.before && is_.before->ready == now.ready && !is_.before->ready_since.empty();
    now.ready_since = still ? is_.before->ready_since : rfc3339(is_.wall);
    if (!out_.tell) out_.tell = worth_telling(now);
    out_.status = out_.quiet ? *is_.before : std::move(now);
    return std::move(out_);
  }

 private:
  // What there is -----------------------------------------------------------------------------------------------------

  static std::string rfc3339(std::int64_t wall) {
    return controller::rfc3339_seconds(controller::wall_time(std::chrono::seconds(wall)));
  }
  const modules::offer& offered() const { return is_.offered ? *is_.offered : modules::offered_by(nullptr); }
  bool is_tainted() const { return is_.taint.has_value(); }
  bool in(std::string_view phase) const { return is_.before && is_.before->phase == phase; }
  std::chrono::milliseconds waited(std::string_view in_phase) const { return in(in_phase) ? is_.in_phase : 0ms; }

  const plugin_pod* other_plugin() const {
    const auto match = std::ranges::find_if(
        is_.plugins, [&](const auto& plugin) { return !target_ || plugin.module != target_->name; });
    return match == is_.plugins.end() ? nullptr : &*match;
  }

  /// A resource of a module that is not 0 yet although the module's plugin should be gone. Only what a kubelet takes
  /// back when a plugin goes: what a plugin wrote into the status itself stays, and would be waited for without end.
  /// What the new mode is called counts too as long as its own plugin is not here: the mode before, or someone we do
  /// not know, has the name.
  std::string_view other_resource() const {
    const auto matches = [&](const plugin_pod& plugin_pod) { return target_ && plugin_pod.module == target_->name; };
    const bool here = std::ranges::any_of(is_.plugins, matches);
    for (const auto& [name, amount] : is_.allocatable) {
      const bool own = here && modules::advertises(*target_, name);
      if (!own && amount > 0 && offered().goes_with_its_plugin(name)) return name;
    }
    return {};
  }

  /// What else is made of cards, and belongs to no module at all: a plugin that no one knows here gives them out.
  std::string_view strange_resource() const {
    for (const auto& [name, amount] : is_.allocatable)
      if (amount > 0 && counts_cards(name) && !offered().advertiser(name) && !modules::advertises(*target_, name))
        return name;
    return {};
  }

  /// The node is on its way from someone else's plugin, and has none of our modes yet.
  bool from_theirs() const { return is_tainted() && is_.taint->source == foreign_mode; }
  bool taking_over() const { return from_theirs() && is_.placed.empty() && target_; }

  /// Pods that hold what goes away: of someone else's plugin also what bears the name of the new mode's resources,
  /// because which card is behind it only that plugin knows.
  std::vector<const holder*> others() const {
    std::vector<const holder*> out;
    for (const auto& holder : is_.holders) {
      if (holder.mode != target_ || taking_over()) out.push_back(&holder);
    }
    std::ranges::sort(out, {}, [](const holder* holder) { return holder->pod; });
    return out;
  }

  // What is wanted ----------------------------------------------------------------------------------------------------

  /// A request that is refused leaves the node what it is, or was before a change that was under way.
  const module_type* asked() const {
    if (is_.wanted.type == kind::mode) return is_.wanted.mode;
    if (is_.wanted.type != kind::refused) return nullptr;
    if (is_tainted()) return is_.from_enabled ? offered().find(is_.taint->source) : nullptr;
    return is_.placed_enabled ? offered().find(is_.placed) : nullptr;
  }

  bool given_up_still() const {
    if (!is_.before || !is_.before->given_up || is_.before->given_up->timestamp == 0 ||
        is_.wanted.type == kind::refused)
      return false;
    const auto& last = *is_.before->given_up;
    if (last.request != name_of(requested_) || last.policy_generation != is_.policy_generation) return false;
    // Pods are not sent away again and again for a plugin that its owner does not take off.
    if (last.reason == foreign_stays) return !is_.wanted.foreign.empty();
    if (!last.blockers.empty() && std::ranges::none_of(is_.holders, [&](const holder& holder) {
          return std::ranges::find(last.blockers, holder.name()) != last.blockers.end();
        }))
      return false;
    return is_.wall < last.timestamp + back_off(last.attempts);
  }

  /// While it is tried again, how often that was is kept: each time it fails the back-off is longer.
  std::optional<api::rolled_back> earlier_attempts(bool done) const {
    if (done || !is_.before || !is_.before->given_up) return std::nullopt;
    auto last = *is_.before->given_up;
    if (last.request != name_of(requested_) || last.policy_generation != is_.policy_generation) return std::nullopt;
    last.timestamp = 0;
    last.blockers.clear();
    return last;
  }

  const module_type* way_back() const {
    if (is_tainted()) return offered().find(is_.taint->source);
    return is_.placed == name_of(requested_) ? nullptr : offered().find(is_.placed);
  }

  bool has_way_back() const {
    if (memory_ || is_.wanted.type == kind::refused) return false;
    if (!is_tainted()) return is_.placed == name_of(requested_) || is_.placed_enabled;
    return is_.taint->source != name_of(target_) && (is_.taint->source == none || from_theirs() || is_.from_enabled);
  }

  // Steps -------------------------------------------------------------------------------------------------------------

  /// What is true of a node that has a mode when the policy is deleted: its plugin is gone already.
  text::phrase abandoned() const {
    return node_phrase("no_policy", {{"mode", is_tainted() ? is_.taint->source : is_.placed}});
  }

  /// A change that is not under way yet: may it begin?
  std::optional<step_finding> held_back() const {
    if (!is_.answers) return step_finding{phases::waiting, "NodeNotReady", node_phrase("begins_when_ready")};
    if (!is_.may_begin && !is_.governed) return step_finding{phases::waiting, std::string(no_policy), abandoned()};
    if (!is_.may_begin)
      // Without the names of those that are changing: they come and go, and each time would be a write on every node
      // that waits.
      return step_finding{phases::waiting, "MaxUnavailable", node_phrase("no_turn")};
    return std::nullopt;
  }

  void set_taint(std::string_view source) {
    out_.change = mode_step::taint_change::set;
    out_.taint = {std::string(source), std::string(name_of(target_))};
  }

  /// The change begins. Where no pod has to be waited for, the next look, with the taint in place, has more to say than
  /// this one: one write less a node.
  step_finding begin(std::string_view source, text::phrase message) {
    set_taint(source);
    out_.quiet = is_.before && !is_.before->given_up && others().empty();
    return {phases::draining, "Begun", std::move(message)};
  }

  /// The target has changed while a change was under way. Going back needs no other taint.
  void retarget() {
    if (is_.taint->target != name_of(target_) && is_.taint->source != name_of(target_)) set_taint(is_.taint->source);
  }

  /// Waits in a phase; too long is Stuck.
  step_finding wait(step_finding found, std::chrono::seconds longest, text::phrase remedy) {
    const bool stuck = in(phases::stuck) && same_trouble(is_.before->reason, found.reason);
    const auto so_far = waited(found.phase);
    if (stuck || so_far >= longest) {
      found.phase = phases::stuck;
      found.message = text::joined_by_semicolons({std::move(found.message), std::move(remedy)});
    } else {
      out_.again_in = std::chrono::milliseconds(longest) - so_far;
    }
    return found;
  }

  /// Goes back to what the node was, and remembers that. What is left to do is the next step's business: the memory
  /// has to be in the API before anything is undone.
  step_finding give_up(step_finding failure, std::string reason, std::vector<std::string> blockers) {
    api::rolled_back made;
    made.request = name_of(requested_);
    made.reason = std::move(reason);
    made.timestamp = is_.wall;
    made.attempts = 1;
    if (is_.before && is_.before->given_up && is_.before->given_up->request == made.request &&
        is_.before->given_up->policy_generation == is_.policy_generation)
      made.attempts = is_.before->given_up->attempts + 1;
    made.policy_generation = is_.policy_generation;
    made.blockers = std::move(blockers);
    const auto back = is_tainted()                 ? std::string_view(is_.taint->source)
                      : is_.placed == made.request ? none
                                                   : or_none(is_.placed);
    auto message = node_phrase(
        "given_up",
        {{"mode", made.request},
         {"cause", std::move(failure.message)},
         {"back", back == none           ? node_phrase("back_to.none")
                  : back == foreign_mode ? node_phrase("back_to.theirs")
                                         : node_phrase("back_to.mode", {{"mode", std::string(back)}})},
         {"pods", made.blockers.empty()       ? text::phrase()
                  : made.blockers.size() == 1 ? node_phrase("again.pod")
                                              : node_phrase("again.pods")},
         {"last", made.reason == foreign_stays
                      ? node_phrase("again.plugin")
                      : node_phrase("again.time", {{"minutes", std::to_string(back_off(made.attempts) / 60)}})}});
    made.message = text::message_text(message);
    made.code = code_of(message);
    failure.reason = made.reason;
    failure.message = std::move(message);
    out_.tell = {event_type::warning, made.reason, "Enrol", made.message};
    out_.status_first = true;
    out_.again_in = 0ms;
    memory_ = std::move(made);
    return failure;
  }

  text::phrase drain_message(const std::vector<const holder*>& held) const {
    const auto count_of = [&held](std::string_view key, auto is_counted) {
      const auto number = std::ranges::count_if(held, is_counted);
      return number == 0 ? text::phrase() : node_phrase(key, {{"number", std::to_string(number)}});
    };
    auto detail = node_phrase("drain.waits");
    if (is_.evict)
      detail = text::joined_by_commas(
          {count_of("drain.fixed", [](const holder* holder) { return !holder->stays.empty(); }),
           count_of("drain.refused",
                    [](const holder* holder) { return holder->stays.empty() && !holder->refused.empty(); }),
           count_of("drain.returned", [](const holder* holder) { return !holder->returned_by.empty(); })});
    if (detail.empty()) detail = node_phrase("drain.evicted");
    return node_phrase(held.size() == 1 ? "drain.one" : "drain.many",
                       {{"number", std::to_string(held.size())}, {"detail", std::move(detail)}});
  }

  /// Pods hold what goes away.
  step_finding drain(const std::vector<const holder*>& held) {
    step_finding found{phases::draining, "PodsHoldCards", drain_message(held)};
    if (!is_.governed)
      found = {phases::draining, std::string(no_policy),
               text::joined_by_semicolons({abandoned(), std::move(found.message)})};
    if (waited(phases::draining) >= is_.drain_timeout && has_way_back()) {
      std::vector<std::string> names;
      for (const auto* entry : held) names.push_back(entry->name());
      found.message =
          node_phrase(held.size() == 1 ? "drain_timeout.one" : "drain_timeout.many",
                      {text::some_of("list", names), {"seconds", std::to_string(is_.drain_timeout.count())}});
      if (names.size() > most_blockers) names.resize(most_blockers);
      const auto returned = std::ranges::find_if(held, [](const holder* pod) { return !pod->returned_by.empty(); });
      if (returned != held.end())
        found.message = text::joined_by_semicolons({std::move(found.message), why_it_returned(**returned)});
      return give_up(std::move(found), "DrainTimeout", std::move(names));
    }
    for (const auto* entry : held) {
      if (is_.evict && entry->stays.empty() && !entry->deleting) out_.evict.push_back(*entry);
    }
    return wait(std::move(found), is_.drain_timeout, node_phrase("end_pods"));
  }

  step_finding not_answering(std::string_view phase) {
    return wait({phase, "NodeNotReady", node_phrase("silent")}, is_.verify_timeout, node_phrase("start_kubelet"));
  }

  step_finding plugin_leaving(const plugin_pod& pod) {
    return wait({phases::removing, "PluginLeaving", leaving(pod)}, is_.verify_timeout,
                node_phrase(is_.answers ? "look_at_pod" : "silent_start_kubelet"));
  }

  /// The node has our label for another mode than it shall have.
  step_finding departing() {
    const bool to_nothing_quietly = !is_tainted() && memory_;  // it never came up in its first mode
    if (is_tainted()) {
      retarget();
    } else if (!to_nothing_quietly) {
      if (auto no = held_back()) return *std::move(no);
      return begin(or_none(is_.placed),
                   node_phrase("no_new_pods", {{"source", is_.placed}, {"target", std::string(name_of(target_))}}));
    }
    if (const auto held = others(); !held.empty()) return drain(held);
    if (!is_.answers && !memory_) return not_answering(phases::draining);
    if (const auto* pod = other_plugin()) {
      out_.label = "";
      return {phases::removing, "PluginLeaving", leaving(*pod)};
    }
    if (target_ && other_resource().empty()) return place();
    out_.label = "";
    return {phases::removing, "LabelRemoved", node_phrase("old_resources_leave")};
  }

  step_finding place() {
    out_.label = target_->name;
    return {phases::verifying, "PluginStarting", starting()};
  }

  text::phrase starting() const {
    return node_phrase("starting", {{"daemon_set", std::string(target_->daemon_set)}, needed_of(*target_)});
  }

  /// The node has none of our labels, and shall have one.
  step_finding arriving() {
    const auto held = others();
    const auto* old = other_plugin();
    auto advertised = other_resource();
    if (advertised.empty()) advertised = strange_resource();
    if (!is_tainted()) {
      if (auto no = held_back()) return *std::move(no);
      if (!is_.wanted.foreign.empty()) {
        return begin(foreign_mode, node_phrase("no_new_pods", {{"source", node_phrase("their_plugin")},
                                                               {"target", std::string(target_->name)}}));
      }
      if (!held.empty()) return begin(none, drain_message(held));
      if (old) return {phases::removing, "PluginLeaving", leaving(*old)};
      if (!advertised.empty()) return still_advertised(advertised);
      return place();
    }
    retarget();
    if (old) return plugin_leaving(*old);
    if (!held.empty()) return drain(held);
    if (!is_.wanted.foreign.empty()) return theirs_leaving();
    if (!advertised.empty()) {
      auto found = still_advertised(advertised);
      if (waited(found.phase) >= is_.verify_timeout && has_way_back())
        return give_up(std::move(found), "StillAdvertised", {});
      return wait(std::move(found), is_.verify_timeout, node_phrase("remove_other"));
    }
    if (!is_.answers) return not_answering(phases::enrolling);
    return place();
  }

  text::phrase their_plugin() const {
    const auto& first = is_.wanted.foreign.front();
    return text::joined_by_semicolons({first.finding, first.remedy});
  }

  /// Its owner takes it off, by hand or because its DaemonSet keeps away from our label. That is given as long as pods.
  step_finding theirs_leaving() {
    if (!is_.taken_over) out_.take_over = true;
    step_finding found{phases::removing, std::string(foreign_stays),
                       node_phrase("theirs_leaves", {{"cause", their_plugin()}})};
    if (waited(found.phase) >= is_.drain_timeout && has_way_back())
      return give_up(std::move(found), std::string(foreign_stays), {});
    return wait(std::move(found), is_.drain_timeout, {});
  }

  static step_finding still_advertised(std::string_view name) {
    return {phases::enrolling, "StillAdvertised", node_phrase("still_advertised", {{"resource", std::string(name)}})};
  }

  /// A plugin that ends removes its socket by name, its successor's too, and when its stream ends the kubelet
  /// disconnects who is registered under the resource by then (kubelet, devicemanager/plugin/v1beta1/handler.go,
  /// runClient). So a plugin pod that follows one that was deleted by force is ready, and the kubelet offers 0 of what
  /// it knew before.
  bool is_disconnected() const {
    if (!is_.answers || is_tainted()) return false;
    using strategy = modules::rollout::strategy;
    const auto method = target_->rolls_out.method;
    if (method == strategy::by_hand || (method == strategy::when_idle && !is_.holders.empty())) return false;
    return std::ranges::any_of(is_.allocatable, [&](const auto& offered) {
      return offered.second == 0 && (std::ranges::find(target_->resources, offered.first) != target_->resources.end() ||
                                     modules::has_prefix(*target_, offered.first));
    });
  }

  /// Is the plugin of the placed mode there and working? Empty: yes.
  std::optional<step_finding> unverified() {
    const std::string set(target_->daemon_set);
    if (const auto* old = other_plugin()) return step_finding{phases::verifying, "PluginLeaving", leaving(*old)};
    if (!is_.wanted.foreign.empty()) return step_finding{phases::verifying, std::string(foreign_stays), their_plugin()};
    const plugin_pod* best = nullptr;
    for (const auto& plugin : is_.plugins) {
      if (!best || (plugin.ready && !plugin.deleting)) best = &plugin;
    }
    const bool works = best && best->ready && !best->deleting;
    if (works && !advertised(is_, *target_).empty()) return std::nullopt;
    if (!best && !is_.untolerated.empty())  // the DaemonSet controller makes no pod then, and no event
      return step_finding{
          phases::verifying, "UntoleratedTaint",
          node_phrase("untolerated",
                      {{"daemon_set", set}, {"taints", is_.untolerated}, {"mode", std::string(target_->name)}})};
    const bool late = in(phases::stuck) || waited(phases::verifying) >= patience;
    if (!late) return step_finding{phases::verifying, "PluginStarting", starting()};
    if (!best) return step_finding{phases::verifying, "NoPlugin", node_phrase("no_plugin", {{"daemon_set", set}})};
    if (!works)
      return step_finding{phases::verifying, "PluginNotReady",
                          node_phrase(best->reason.empty() ? "not_ready" : "not_ready_because",
                                      {{"pod", best->name}, {"cause", best->reason}})};
    if (is_disconnected() && is_.may_restart) out_.restart = *best;
    return step_finding{phases::verifying, "NothingAdvertised",
                        node_phrase("nothing_advertised", {{"pod", best->name}, needed_of(*target_)})};
  }

  bool on_its_way() const {
    return is_changing(is_tainted(), is_.placed,
                       is_.before ? std::string_view(is_.before->actual_mode) : std::string_view());
  }

  /// The node has our label for the mode it shall have.
  step_finding settled() {
    if (auto found = unverified()) {
      if (is_.wanted.type == kind::refused && !is_tainted()) return *at_rest();
      if (is_tainted()) retarget();
      if (waited(phases::verifying) >= is_.verify_timeout && on_its_way() && has_way_back())
        return give_up(*std::move(found), "VerifyTimeout", {});
      const auto so_far = waited(phases::verifying);
      auto made = wait(*std::move(found), is_.verify_timeout, {});
      if (out_.again_in && so_far < patience)
        out_.again_in = std::min<std::chrono::milliseconds>(*out_.again_in, patience - so_far);
      return made;
    }
    if (is_tainted()) out_.change = mode_step::taint_change::remove;
    if (auto rests = at_rest()) return *std::move(rests);
    return {phases::ready, "Enrolled", node_phrase("ready", {{"resources", advertised(is_, *target_)}})};
  }

  /// No label, and none wanted.
  std::optional<step_finding> released() {
    if (const auto* pod = other_plugin()) {
      if (is_tainted()) return plugin_leaving(*pod);
      return step_finding{phases::removing, "PluginLeaving", leaving(*pod)};
    }
    if (is_tainted()) {
      // What someone else's plugin advertises, and who holds it, is theirs again.
      if (const auto held = others(); !from_theirs() && !held.empty() && has_way_back()) return drain(held);
      if (const auto name = other_resource();
          !from_theirs() && !name.empty() && waited(phases::enrolling) < is_.verify_timeout)
        return wait(still_advertised(name), is_.verify_timeout, {});
      out_.change = mode_step::taint_change::remove;
    }
    if (is_.taken_over) out_.take_over = false;
    return at_rest();
  }

  /// Nothing to do and nothing to wait for any more.
  std::optional<step_finding> at_rest() {
    if (is_.wanted.type == kind::refused) {
      const bool is_disabled = is_.wanted.reason == module_disabled && (is_.placed.empty() || !is_.placed_enabled);
      return step_finding{is_disabled ? phases::disabled : phases::refused, is_.wanted.reason, is_.wanted.message};
    }
    if (memory_) {
      if (memory_->reason != foreign_stays)
        out_.again_in = std::chrono::seconds(memory_->timestamp + back_off(memory_->attempts) - is_.wall);
      return step_finding{phases::rolled_back, memory_->reason, phrase_of(memory_->code, memory_->message)};
    }
    if (is_.wanted.type == kind::left_alone)
      return step_finding{phases::left_alone, is_.wanted.reason, is_.wanted.message};
    return std::nullopt;
  }

  std::optional<step_finding> decide() {
    if (!is_.placed.empty() && is_.placed != (target_ ? target_->name : std::string_view())) return departing();
    if (is_.placed.empty()) return target_ ? std::optional(arriving()) : released();
    return settled();
  }

  // Reports -----------------------------------------------------------------------------------------------------------

  std::string actual_mode(std::string_view phase) const {
    if (is_.placed.empty() || out_.label) return std::string(none);
    const bool was = is_.before && is_.before->actual_mode == is_.placed;
    const bool kept = phase == phases::ready || phase == phases::rolled_back || phase == phases::refused;
    const bool not_begun = phase == phases::waiting || (phase == phases::draining && !is_tainted());
    if (was || kept || not_begun || (is_tainted() && is_.taint->source == is_.placed)) return is_.placed;
    return std::string(none);
  }

  /// Empty: its end is all that is to be waited for.
  text::phrase why_it_blocks(const holder& holder) const {
    if (!is_.evict) return {};
    if (!holder.stays.empty()) return holder.stays;
    if (!holder.refused.empty()) return holder.refused;
    return holder.returned_by.empty() ? text::phrase() : why_it_returned(holder);
  }

  void name_blockers(api::mode_status& now) const {
    for (const auto* other : others()) {
      if (now.blockers.size() == most_blockers) break;
      const auto cause = why_it_blocks(*other);
      if (cause.empty()) {
        now.blockers.push_back(other->name());
        continue;
      }
      const text::phrase entry{"status.node.blocker", {{"pod", other->name()}, {"cause", cause}}};
      now.blockers.push_back(text::message_text(entry));
      now.blocker_causes.insert_or_assign(other->name(), code_of(cause));
    }
  }

  std::optional<mode_step::event> worth_telling(const api::mode_status& now) const {
    const auto before = is_.before.value_or(api::mode_status());
    const bool entered = before.phase != now.phase;
    const bool refused = now.phase == phases::refused || now.phase == phases::disabled;
    if (refused && (entered || before.message != now.message))
      return {{event_type::warning, now.reason, "Enrol", now.message}};
    if (!entered) return std::nullopt;
    if (now.phase == phases::ready) {
      if (before.actual_mode != now.actual_mode || before.phase == phases::stuck)
        return {{event_type::normal, "Enrolled", "Enrol", "mode " + now.actual_mode + ": " + now.message}};
      if (out_.change == mode_step::taint_change::remove)
        return {{event_type::normal, "Cancelled", "Enrol", "the node stays in mode " + now.actual_mode}};
    }
    if (now.phase == phases::stuck)
      return {{event_type::warning, in(phases::verifying) ? "VerifyTimeout" : now.reason, "Enrol", now.message}};
    if (now.phase == phases::draining || now.phase == phases::left_alone)
      return {{event_type::normal, now.reason, "Enrol", now.message}};
    return std::nullopt;
  }

  const node_state& is_;
  mode_step out_;
  const module_type* requested_ = nullptr;  ///< what the labels and the policy want; null: no mode
  const module_type* target_ = nullptr;     ///< what the node shall be now: the same, unless that was given up
  std::optional<api::rolled_back> memory_;
};

}  // namespace

switching switching::parse(std::string_view value) {
  const auto dot = value.find('.');
  if (dot == std::string_view::npos) return {std::string(none), std::string(none)};
  return {std::string(value.substr(0, dot)), std::string(value.substr(dot + 1))};
}

bool is_changing(bool tainted, std::string_view placed, std::string_view actual_mode) {
  return tainted || (!placed.empty() && actual_mode != placed);
}

mode_step next_step(const node_state& is) { return transaction(is).next(); }

}  // namespace reconcilers
