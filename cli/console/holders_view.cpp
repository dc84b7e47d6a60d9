// Pods that hold GPUs; and one pod, with what happened to it.

#include <algorithm>
#include <functional>
#include <map>
#include <nlohmann/json.hpp>
#include <tuple>
#include <vector>

#include "cli/console/shares.hpp"
#include "cli/console/views.hpp"
#include "kube/json_text.hpp"
#include "kube/rfc3339.hpp"
#include "reconcilers/extender/placement.hpp"
#include "text/phrase_code.hpp"

namespace cli::console {
namespace {

struct held_card {
  const quota::card* card = nullptr;
  held_share share;
  int index = 0;
};

struct holder {
  const kube::pod* pod = nullptr;
  std::vector<held_card> cards;
};

ordered_json held_json(const held_card& held) {
  return {{"index", held.index},       {"model", held.card->model},          {"whole", held.share.whole},
          {"cores", held.share.cores}, {"memoryMiB", held.share.memory_mib}, {"guessed", held.share.guessed}};
}

using pods_with_cards = std::map<kube::object_key, holder>;

/// `only`: of that node; empty: of all.
pods_with_cards pods_with_cards_of(const picture& picture, std::string_view only,
                                   const std::function<bool(const kube::pod&)>& is_shown) {
  auto nodes = shares_of(picture, only);
  mark_guesses(picture, nodes);
  pods_with_cards out;
  for (const auto& node : nodes)
    for (std::size_t i = 0; i < node.cards.size(); ++i)
      for (const auto& share : node.cards[i].shares) {
        if (!share.pod || !is_shown(*share.pod)) continue;
        auto& holder = out[share.pod->key];
        holder.pod = share.pod;
        holder.cards.push_back({node.cards[i].card, share, card_index(node, i)});
      }
  return out;
}

ordered_json holder_json(const holder& holder, const pod_use& use) {
  const auto& pod = *holder.pod;
  std::int64_t cores = 0, memory_mib = 0;
  auto cards = ordered_json::array();
  for (const auto& held : holder.cards) {
    cores += held.share.cores;
    memory_mib += held.share.memory_mib;
    cards.push_back(held_json(held));
  }
  const auto measured = use.find({pod.key.ns, pod.key.name});
  return {{"namespace", pod.key.ns},
          {"name", pod.key.name},
          {"node", pod.node_name},
          {"phase", pod.deleting ? "Terminating" : std::string(kube::to_string(pod.phase))},
          {"reason", pod.reason},
          {"ready", pod.ready},
          {"restarts", pod.restarts},
          {"since", pod.created > 0 ? ordered_json(pod.created) : ordered_json()},
          {"cores", cores},
          {"memoryMiB", memory_mib},
          {"use", measured == use.end() ? ordered_json() : ordered_json(measured->second)},
          {"cards", std::move(cards)}};
}

/// What happened at a time. `kind` is for the page to translate, `reason` and `text` are of Kubernetes.
struct moment {
  std::int64_t time = 0;
  std::string kind, container, reason, text;
  bool is_warning = false;
  std::int64_t count = 1;
};

constexpr std::size_t most_moments = 200, longest_moment = 1000;

std::int64_t time_in(const nlohmann::json& object, const char* key) {
  return kube::parse_rfc3339(kube::text_in(object, key)).value_or(0);
}

const nlohmann::json& part_of(const nlohmann::json& object, const char* key) {
  static const nlohmann::json nothing = nlohmann::json::object();
  const auto match = object.is_object() ? object.find(key) : object.end();
  return object.is_object() && match != object.end() ? *match : nothing;
}

void add_run(std::vector<moment>& out, const std::string& container, const nlohmann::json& state) {
  if (const auto began = time_in(part_of(state, "running"), "startedAt"))
    out.push_back({began, "started", container, {}, {}, false, 1});
  const auto& end = part_of(state, "terminated");
  if (const auto began = time_in(end, "startedAt")) out.push_back({began, "started", container, {}, {}, false, 1});
  const auto code = part_of(end, "exitCode").is_number_integer() ? end["exitCode"].get<std::int64_t>() : 0;
  if (const auto time = time_in(end, "finishedAt"))
    out.push_back({time, "ended", container, kube::text_in(end, "reason"), std::to_string(code), code != 0, 1});
}

/// What the Pod says of itself. Of a container that has restarted it has the last two runs.
std::vector<moment> moments_of(const nlohmann::json& object) {
  std::vector<moment> out;
  const auto &metadata = part_of(object, "metadata"), &status = part_of(object, "status");
  if (const auto time = time_in(metadata, "creationTimestamp")) out.push_back({time, "created", {}, {}, {}, false, 1});
  if (const auto time = time_in(metadata, "deletionTimestamp")) out.push_back({time, "deleted", {}, {}, {}, false, 1});
  for (const auto& condition : part_of(status, "conditions")) {
    const auto type = kube::text_in(condition, "type");
    const bool is_true = kube::text_in(condition, "status") == "True";
    const bool is_shown = (is_true && type == "PodScheduled") || type == "Ready" || type == "DisruptionTarget";
    if (const auto time = time_in(condition, "lastTransitionTime"); time && is_shown)
      out.push_back({time,
                     type == "PodScheduled" ? "scheduled"
                     : is_true              ? "is"
                                            : "is_not",
                     {},
                     type,
                     kube::text_in(condition, "message"),
                     false,
                     1});
  }
  for (const char* list : {"initContainerStatuses", "containerStatuses"})
    for (const auto& container : part_of(status, list)) {
      const auto name = kube::text_in(container, "name");
      add_run(out, name, part_of(container, "lastState"));
      add_run(out, name, part_of(container, "state"));
    }
  return out;
}

moment moment_of(const nlohmann::json& event) {
  moment out{0,
             "event",
             {},
             kube::text_in(event, "reason"),
             kube::text_in(event, "message"),
             kube::text_in(event, "type") == "Warning",
             1};
  for (const char* key : {"lastTimestamp", "eventTime", "firstTimestamp"})
    if (out.time == 0) out.time = time_in(event, key);
  if (const auto& last = part_of(part_of(event, "series"), "lastObservedTime"); last.is_string())
    out.time = kube::parse_rfc3339(last.get<std::string>()).value_or(out.time);
  for (const auto* count : {&part_of(event, "count"), &part_of(part_of(event, "series"), "count")})
    if (count->is_number_integer()) out.count = std::max(out.count, count->get<std::int64_t>());
  return out;
}

ordered_json moments_json(std::vector<moment> moments) {
  std::ranges::sort(moments, {}, [](const moment& moment) {
    return std::tuple(moment.time, moment.kind, moment.container, moment.reason, moment.text);
  });
  const auto begin = moments.size() - std::min(moments.size(), most_moments);
  auto out = ordered_json::array();
  for (std::size_t i = begin; i < moments.size(); ++i) {
    auto& moment = moments[i];
    if (moment.text.size() > longest_moment) moment.text.resize(longest_moment);
    out.push_back({{"time", moment.time},
                   {"kind", moment.kind},
                   {"container", moment.container},
                   {"reason", moment.reason},
                   {"text", moment.text},
                   {"warning", moment.is_warning},
                   {"count", moment.count}});
  }
  return out;
}

}  // namespace

ordered_json pod_view(const picture& picture, const kube::pod& pod, const nlohmann::json& object,
                      std::span<const nlohmann::json> events, const pod_use& use, const text::phrase& message) {
  holder known{&pod, {}};
  if (!pod.node_name.empty()) {
    auto held = pods_with_cards_of(picture, pod.node_name, [&](const kube::pod& other) { return other.id == pod.id; });
    if (!held.empty()) known.cards = std::move(held.begin()->second.cards);
  }
  auto out = holder_json(known, use);
  const auto& annotations = part_of(part_of(object, "metadata"), "annotations");
  out["isolation"] = kube::text_in(annotations, std::string(reconcilers::extender::isolation_annotation).c_str());
  auto moments = moments_of(object);
  for (const auto& event : events)
    if (auto moment = moment_of(event); moment.time > 0) moments.push_back(std::move(moment));
  out["moments"] = moments_json(std::move(moments));
  out["eventsMessage"] = text::message_text(message);
  out["eventsMessages"] = in_languages(message);
  return out;
}

ordered_json holders_view(const picture& picture, const viewer& viewer, std::string_view ns, page_range page,
                          const pod_use& use, const text::phrase& message) {
  const auto holders = pods_with_cards_of(
      picture, {}, [&](const kube::pod& pod) { return viewer.sees(pod.key.ns) && (ns.empty() || pod.key.ns == ns); });
  auto pods = ordered_json::array();
  const auto begin = std::min(page.offset, holders.size()), end = begin + std::min(page.limit, holders.size() - begin);
  std::size_t i = 0;
  for (const auto& [key, holder] : holders) {
    if (const auto place = i++; place >= begin && place < end) pods.push_back(holder_json(holder, use));
  }
  return {{"total", holders.size()},
          {"offset", begin},
          {"message", text::message_text(message)},
          {"messages", in_languages(message)},
          {"pods", std::move(pods)}};
}

}  // namespace cli::console
