#include "cli/explain/proposals.hpp"

#include <algorithm>
#include <array>

#include "api/engine_words.hpp"
#include "cli/cluster/open_node.hpp"
#include "cli/explain/idle_nodes.hpp"
#include "cli/explain/other_keys.hpp"
#include "cli/explain/raised_quota.hpp"
#include "quota/filter.hpp"
#include "reconcilers/extender/reasons.hpp"
#include "text/messages.hpp"
#include "text/text.hpp"

namespace cli {
namespace {

namespace ext = reconcilers::extender;
using text::phrase;

constexpr std::array names_of_kinds{"uncordon", "label", "mode", "quota", "pod", "key", "card"};
static_assert(names_of_kinds.size() == static_cast<std::size_t>(proposal::kind::card) + 1);

constexpr std::size_t longest_change = 2000;  // bytes of a line that names cards, as an agent reports them

phrase change_phrase(const std::string& key, std::vector<text::phrase_argument> arguments) {
  return {"explain.proposal." + key, std::move(arguments)};
}

class collector {
 public:
  collector(const picture& picture, const kube::pod& pod, const waiting_answer& answer, const node_rules* rules,
            bool nodes_named)
      : picture_(picture),
        pod_(pod),
        answer_(answer),
        rules_(rules),
        nodes_named_(nodes_named),
        nodes_(answer.nodes),
        reason_(answer.reason) {
    const auto closed = std::erase_if(nodes_, [&](const quota::node_view& view) {
      const auto* node = picture_.nodes.find({{}, view.inventory->name});
      return node && is_closed(*node);
    });
    if (closed > 0) reason_ = quota::explain(answer.request.containers(), nodes_, answer.request.only());
  }

  void add_uncordoned() {
    if (!nodes_named_) return;
    if (const auto* node = first_cordoned()) {
      add(proposal::kind::uncordon, change_phrase("uncordon", {{"node", node->key.name}}),
          "kubectl uncordon " + node->key.name);
      return;
    }
    const auto& change = reason_.of_node;
    if (change && change->action == quota::change::kind::uncordon_card)
      add(proposal::kind::uncordon, words_of_change(*change),
          "kubectl annotate node " + nodes_[change->node].inventory->name + " quartermaster.io/cordon-");
  }

  void add_idle_nodes() {
    if (!nodes_named_) return;
    for (auto& node : idle_nodes_for(picture_, pod_, answer_.request, rules_)) {
      const bool is_new = node.current.empty();
      add(is_new ? proposal::kind::label : proposal::kind::mode,
          change_phrase(is_new ? "label" : "mode",
                        {{"node", node.name}, {"mode", node.mode}, {"current", node.current}}),
          std::move(node.command));
    }
  }

  void add_quota() {
    const auto& limit = *answer_.limit;
    const auto amount = enough_quota(picture_, pod_, answer_.request, nodes_, limit);
    if (!amount) return;
    std::string names;
    for (const auto& entry : picture_.quotas.all())
      if (entry.key.ns == pod_.key.ns) names += " " + entry.key.name;
    const auto unit = [&](text::language locale) { return std::string(api::words_of(limit.unit, locale)); };
    add(proposal::kind::quota,
        change_phrase("quota", {{"namespace", limit.name_space},
                                {"subject", unit(text::language::en), unit(text::language::zh)},
                                {"amount", std::to_string(*amount)},
                                {"limit", std::to_string(limit.limit + *amount)}}),
        "kubectl edit acceleratorquota -n " + pod_.key.ns + names);
  }

  void add_pod() {
    const auto annotations = [&](text::language locale) {
      return change_of_annotations(pod_, answer_.request, nodes_, locale);
    };
    if (auto english = annotations(text::language::en); !english.empty())
      add(proposal::kind::pod, quoted(std::move(english), annotations(text::language::zh)));
    if (reason_.of_pod) add(proposal::kind::pod, words_of_change(*reason_.of_pod));
  }

  /// Only where no node knows the keys that it has. Of several the keys that fit on most nodes.
  void add_other_keys() {
    const auto lacks_key = [](const quota::cause& cause) { return cause.code == quota::reason::not_offered; };
    const auto& causes = reason_.causes;
    const bool is_offered = std::ranges::any_of(causes, [&](const quota::cause& cause) {
      return !lacks_key(cause) && cause.code != quota::reason::changes_mode;
    });
    if (is_offered || std::ranges::none_of(causes, lacks_key)) return;
    const rewritten_pod* best = nullptr;
    std::size_t most = 0;
    const auto all = rewritten_pods(picture_, pod_, answer_.request, nodes_);
    for (const auto& other : all)
      if (const auto fitting = nodes_for(other.pod); fitting > most) {
        most = fitting;
        best = &other;
      }
    if (!best) return;
    std::vector<phrase> parts;
    for (const auto& container : best->containers)
      parts.push_back(change_phrase("container", {{"name", text::shown(container.name)},
                                                  {"after", amounts_text(container.after, picture_)},
                                                  {"before", amounts_text(container.before, picture_)}}));
    if (best->spread_over > 1)
      parts.push_back(change_phrase(
          "pod_label", {{"name", std::string(quota::card_count.name)}, {"number", std::to_string(best->spread_over)}}));
    add(proposal::kind::key, change_phrase("key", {{"list", text::joined_by_semicolons(std::move(parts))},
                                                   {"nodes", text::counted_phrase(most, "explain.nodes")}}));
  }

  void add_card() {
    const auto& change = reason_.of_node;
    if (nodes_named_ && change && change->action != quota::change::kind::uncordon_card)
      add(proposal::kind::card, words_of_change(*change));
  }

  std::vector<proposal> found;

 private:
  void add(proposal::kind kind, phrase text, std::string command = {}) {
    found.push_back({kind, std::move(text), std::move(command)});
  }

  static phrase quoted(std::string english, std::string chinese) {
    return {"explain.proposal.sentence", {{"text", std::move(english), std::move(chinese)}}};
  }

  phrase words_of_change(const quota::change& change) const {
    const auto nodes = nodes_named_ ? std::span<const quota::node_view>(nodes_) : std::span<const quota::node_view>();
    const auto words = [&](text::language locale) {
      return text::shown(words_of(change, nodes, answer_.request, locale), longest_change);
    };
    return quoted(words(text::language::en), words(text::language::zh));
  }

  bool is_closed(const kube::node& node) const { return rules_ && !rules_->refuses(node, text::language::en).empty(); }

  /// By name the first cordoned node where the pod fits once it is not.
  const kube::node* first_cordoned() const {
    const kube::node* out = nullptr;
    for (const auto& node : picture_.nodes.all()) {
      if (!node.unschedulable || (out && out->key.name < node.key.name)) continue;
      auto open = node;
      open.unschedulable = false;
      std::erase_if(open.taints, [](const auto& taint) { return taint.key == "node.kubernetes.io/unschedulable"; });
      if (!takes_new_pods(open) || is_closed(open)) continue;
      if (picture_.book->try_on(pod_, answer_.request, node.key.name).held) out = &node;
    }
    return out;
  }

  /// How many nodes would take a pod that asks by other keys.
  std::size_t nodes_for(const kube::pod& pod) const {
    const ext::pod_request request(pod, picture_.book->keys());
    std::vector<quota::shortfall> shortfalls(nodes_.size());
    quota::filter(request.containers(), nodes_, shortfalls, request.only());
    std::size_t out = 0;
    for (std::size_t i = 0; i < nodes_.size(); ++i) {
      if (!shortfalls[i].fits()) continue;
      if (picture_.book->try_on(pod, request, nodes_[i].inventory->name).held) ++out;
    }
    return out;
  }

  const picture& picture_;
  const kube::pod& pod_;
  const waiting_answer& answer_;
  const node_rules* rules_;
  bool nodes_named_;
  std::vector<quota::node_view> nodes_;  ///< those that the pod's own spec does not close to it
  quota::explanation reason_;            ///< over them
};

}  // namespace

std::string_view to_string(proposal::kind kind) { return names_of_kinds[static_cast<std::size_t>(kind)]; }

phrase line_of(const proposal& proposal) {
  using kind = proposal::kind;
  const auto* key = proposal.action == kind::pod    ? "explain.of_pod"
                    : proposal.action == kind::card ? "explain.of_node"
                                                    : "explain.would_place";
  return {key, {{"change", proposal.text}}};
}

std::vector<proposal> proposals_of(const picture& picture, const kube::pod& pod, const waiting_answer& answer,
                                   const node_rules* rules, bool nodes_named) {
  if (!answer.unknown.empty() || answer.request.nothing() || answer.is_kept_everywhere) return {};
  collector collector(picture, pod, answer, rules, nodes_named);
  if (answer.limit) {
    if (answer.reason.fitting > 0) collector.add_quota();
    return std::move(collector.found);
  }
  if (answer.reason.fitting > 0) return {};
  collector.add_uncordoned();
  collector.add_idle_nodes();
  collector.add_pod();
  collector.add_other_keys();
  collector.add_card();
  return std::move(collector.found);
}

}  // namespace cli
