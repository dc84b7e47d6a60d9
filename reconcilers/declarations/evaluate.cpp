#include "reconcilers/declarations/evaluate.hpp"

#include <algorithm>
#include <set>

#include "reconcilers/declarations/pod_spec.hpp"
#include "reconcilers/declarations/vocabulary.hpp"
#include "text/messages.hpp"

namespace reconcilers::declarations {
namespace {

constexpr std::size_t max_refusals = 1000;  // no one reads the 1,001st, and a hostile pod has millions

// A warning is a header line: the API server cuts every warning of a response to 256 characters once they are more than
// 4,096 together, and writes the names of policy and binding before the text.
constexpr std::size_t max_text = 3800;

objection beyond_bounds() {
  objection out;
  out.kind = objection_kind::too_large;
  return out;
}

/// How large a pod is, as the bounds count.
class size_of {
 public:
  size_of(const rule_set& rules, std::span<const kube::container> containers, std::size_t limits)
      : rules_(rules), containers_(containers), limits_(limits) {
    for (const auto& container : containers_) {
      named_ += container.limits.size();
      for (const auto& [key, amount] : container.limits) count(key, amount);
      for (const auto& [key, amount] : container.requests) declared_ = declared_ || rules_.find(key);
    }
  }

  bool names_a_declared_key() const { return declared_; }
  bool is_too_much() const {
    return containers_.size() > max_containers || std::max(limits_, named_) > max_limits || members_ > max_members;
  }
  /// Of exclusions alone: what is missing is filled in all the same.
  bool is_too_much_to_compare() const {
    if (exclusions_ * used_ <= max_comparisons) return false;
    const auto exclusive = exclusive_keys(rules_);
    if (exclusive.size() > max_exclusive) return true;  // then every naming of a key counts
    std::set<std::string_view> used;
    for (const auto& container : containers_) {
      for (const auto& [key, amount] : container.limits) {
        if (amount > 0 && exclusive.contains(key)) used.insert(key);
      }
    }
    std::size_t exclusions = 0;
    for (const auto key : used) {
      if (const auto* match = rules_.find(key)) exclusions += match->excluded.size();
    }
    return exclusions * used.size() > max_comparisons;
  }

 private:
  void count(const std::string& key, std::int64_t amount) {
    const auto* match = rules_.find(key);
    if (amount > 0) ++used_;
    if (!match) return;
    declared_ = true;
    if (amount > 0) exclusions_ += match->excluded.size();
    if (const auto* group = rules_.group(match->group)) members_ += group->members.size();
  }

  const rule_set& rules_;
  std::span<const kube::container> containers_;
  std::size_t limits_, named_ = 0, used_ = 0, members_ = 0, exclusions_ = 0;
  bool declared_ = false;
};

/// One container that uses a declared key: the keys above zero, as they were asked for and with what is filled in.
struct user {
  std::size_t index;
  const kube::container* container;
  std::string title;
  kube::quantities limits;  ///< with the fills

  bool uses(std::string_view key) const { return kube::amount(limits, key) > 0; }
};

std::string title_of(const kube::container& container) {
  return (container.kind == kube::container::role::main ? "container " : "init container ") + container.name;
}

bool names(const kube::quantities& quantities, std::string_view key) {
  return std::ranges::binary_search(quantities, key, {},
                                    [](const auto& entry) { return std::string_view(entry.first); });
}

void add(kube::quantities& quantities, const std::string& key, std::int64_t amount) {
  const auto match = std::ranges::lower_bound(quantities, key, {}, [](const auto& entry) { return entry.first; });
  quantities.insert(match, {key, amount});
}

class judge {
 public:
  judge(const rule_set& rules, std::span<const kube::container> containers, const evaluation& evaluation)
      : rules_(rules), containers_(containers), options_(evaluation) {}

  ruling run(std::string_view runtime_class) {
    const size_of size(rules_, containers_, options_.limits);
    if (!size.names_a_declared_key()) return {};
    if (size.is_too_much()) return refused_as_too_large();
    for (std::size_t i = 0; i < containers_.size(); ++i) take(i);
    for (auto& each : users_) fill(each);
    if (options_.fill && runtime_class.empty()) out_.runtime_class = runtime();
    if (options_.judge && size.is_too_much_to_compare()) return refused_as_too_large();
    if (options_.judge) {
      note_named();
      for (const auto& each : users_) object(each);
      for (const auto& each : users_) together(each);
    }
    return std::move(out_);
  }

 private:
  ruling refused_as_too_large() {
    out_.warnings.clear();
    out_.refused.clear();
    if (options_.judge) refuse(beyond_bounds());
    return std::move(out_);
  }

  void take(std::size_t index) {
    const auto& container = containers_[index];
    unequal(container);
    const bool any = std::ranges::any_of(
        container.limits, [&](const auto& entry) { return entry.second > 0 && rules_.find(entry.first) != nullptr; });
    if (any) users_.push_back({index, &container, title_of(container), container.limits});
  }

  /// The API server's own rule for extended resources, in our words.
  void unequal(const kube::container& container) {
    for (const auto& [key, amount] : container.requests) {
      const auto limit = kube::amount(container.limits, key);
      if (rules_.find(key) && (limit != amount || !names(container.limits, key)))
        refuse({objection_kind::unequal, title_of(container), key, amount, {}, limit, {}});
    }
  }

  std::string runtime() const {
    for (const auto& each : users_) {
      for (const auto& [key, amount] : each.limits) {
        const auto* match = amount > 0 ? rules_.find(key) : nullptr;
        if (match && !match->runtime_class.empty()) return match->runtime_class;
      }
    }
    return {};
  }

  /// Judged on what was asked for, so that one fill does not call for another; but a fill of whole cards waives the
  /// fill of their partner, as if a person had asked for them. What a person requested without a limit stays as it is.
  void fill(user& user) {
    if (!options_.fill) return;
    kube::quantities all;
    each_group(user.container->limits, [&](const rule&, const rule& member) {
      if (member.fill && !names(user.container->limits, member.key) && !names(user.container->requests, member.key))
        add(all, member.key, *member.fill);
    });
    for (const auto& [key, amount] : all) {
      const auto waiver = waiver_of(key);
      if (waived(user.container->limits, key) || (!waiver.key.empty() && kube::amount(all, waiver.key) >= waiver.least))
        continue;
      out_.fills.push_back({user.index, key, amount});
      add(user.limits, key, amount);
    }
  }

  void object(const user& user) {
    for (const auto& [key, amount] : user.limits) {
      const auto* match = amount > 0 ? rules_.find(key) : nullptr;
      if (!match) continue;
      if (out_.refused.size() >= max_refusals) return;
      alone(user, *match, amount);
      beside(user, *match, amount);
    }
    each_group(user.limits, [&](const rule& first, const rule& member) {
      const bool reported =
          names(user.container->requests, member.key) && !names(user.limits, member.key);  // as unequal
      if (member.must && !reported && !user.uses(member.key) && !waived(user.limits, member.key))
        refuse({objection_kind::missing, user.title, member.key, 0, first.key, 0, member.config_map.to_string()});
    });
  }

  void alone(const user& user, const rule& rule, std::int64_t amount) {
    const auto source = rule.config_map.to_string();
    if (rule.forbidden) return refuse({objection_kind::forbidden, user.title, rule.key, amount, {}, 0, source});
    if (rule.one_only && !one_share.allow(amount))
      return refuse({objection_kind::not_legal, user.title, rule.key, amount, {}, one_share.nearest(amount), {}});
    const auto* words = vocabulary_of(rule.key);
    if (!words) return;
    if (!words->legal.allow(amount) && words->legal.limited())
      return refuse({objection_kind::not_legal, user.title, rule.key, amount, {}, words->legal.nearest(amount), {}});
    const std::string partner(words->partner);
    if (needs_partner(*words, amount) && !user.uses(partner))
      return refuse({objection_kind::needs_partner, user.title, rule.key, amount, partner, words->legal.whole, {}});
    on_pod(user, rule.key, amount, words->on_pod);
  }

  void on_pod(const user& user, const std::string& key, std::int64_t amount, const quota::pod_amount& rule) {
    if (!options_.on_pod || rule.name.empty() || user.uses(rule.name)) return;
    for (const auto& [name, text] : *options_.on_pod) {
      if (name != rule.name) continue;
      const auto value = quota::pod_amount_in(text);
      if (!value || !rule.allow(*value, amount))
        refuse({objection_kind::pod_amount, user.title, key, amount, name, value.value_or(0), {}});
    }
  }

  /// What the pod as a whole must not have, after what is wrong with each container.
  void together(const user& user) {
    for (const auto& [key, amount] : user.limits) {
      const auto* match = amount > 0 ? rules_.find(key) : nullptr;
      if (!match) continue;
      if (out_.refused.size() >= max_refusals) return;
      for (const auto& other : match->excluded) {
        // Where both are declared, both exclude each other: said once.
        if (anywhere(other) && (key < other || !rules_.find(other)))
          refuse({objection_kind::excluded, user.title, key, amount, other, 0, match->config_map.to_string()});
      }
    }
  }

  void beside(const user& user, const rule& rule, std::int64_t amount) {
    const auto source = rule.config_map.to_string();
    const auto* words = rule.forbidden ? nullptr : vocabulary_of(rule.key);
    for (const auto& key : rule.related) {
      if (words && needs_partner(*words, amount) && key == words->partner)
        continue;  // refused for the want of it, or fine
      if (rules_.find(key) && !user.uses(key) && !waived(user.limits, key) && !required(rule, key))
        say({objection_kind::related_missing, user.title, rule.key, amount, key, 0, source});
    }
    if (!rule.offered && !rule.forbidden)
      say({objection_kind::not_offered, user.title, rule.key, amount, {}, 0, source});
  }

  /// Each group of which something is used, by its first used key, with each of its rules that asks for something.
  void each_group(const kube::quantities& used, auto&& call) const {
    const auto uses = [&](const std::string& key) { return kube::amount(used, key) > 0; };
    for (const auto& [key, amount] : used) {
      const auto* match = amount > 0 ? rules_.find(key) : nullptr;
      const auto* group = match ? rules_.group(match->group) : nullptr;
      if (!group) continue;
      const auto first = std::ranges::find_if(group->members, uses);
      if (first == group->members.end() || *first != key) continue;
      for (const auto& name : group->members) {
        const auto* member = rules_.find(name);
        if (member && (member->must || member->fill)) call(*match, *member);
      }
    }
  }

  /// Something else takes its place.
  static bool waived(const kube::quantities& limits, std::string_view key) {
    const auto waiver = waiver_of(key);
    return !waiver.key.empty() && kube::amount(limits, waiver.key) >= waiver.least;
  }
  bool required(const rule& rule, const std::string& key) const {
    const auto* other = rules_.find(key);
    return other && other->must && !rule.group.empty() && other->group == rule.group;
  }
  /// The keys above zero anywhere in the pod, with the fills.
  void note_named() {
    const auto note = [this](const kube::quantities& all) {
      for (const auto& [key, amount] : all) {
        if (amount > 0) named_.push_back(key);
      }
    };
    for (const auto& container : containers_) note(container.limits);
    for (const auto& user : users_) note(user.limits);
    std::ranges::sort(named_);
    named_.erase(std::ranges::unique(named_).begin(), named_.end());
  }
  bool anywhere(std::string_view key) const { return std::ranges::binary_search(named_, key); }

  void refuse(objection objection) {
    if (out_.refused.size() < max_refusals) out_.refused.push_back(std::move(objection));
  }
  void say(objection objection) { out_.warnings.push_back(std::move(objection)); }

  const rule_set& rules_;
  std::span<const kube::container> containers_;
  evaluation options_;
  std::vector<user> users_;
  std::vector<std::string_view> named_;
  ruling out_;
};

/// Below "objection" in the catalogue.
std::string_view words_of(const objection& objection) {
  switch (objection.kind) {
    case objection_kind::forbidden:
      return "forbidden";
    case objection_kind::not_legal:
      return "not_legal";
    case objection_kind::needs_partner:
      return objection.nearest == 0 ? "needs_partner" : "share_needs_partner";
    case objection_kind::pod_amount:
      return objection.nearest > 0 ? "pod_amount" : "pod_amount_no_number";
    case objection_kind::missing:
      return "missing";
    case objection_kind::excluded:
      return "excluded";
    case objection_kind::unequal:
      return "unequal";
    case objection_kind::too_large:
      return "too_large";
    case objection_kind::related_missing:
      return "related_missing";
    case objection_kind::not_offered:
      return "not_offered";
  }
  return {};
}

/// "container main" in words.
std::string title_of(const objection& objection, text::language locale) {
  const auto blank = objection.container.rfind(' ');
  const bool init = objection.container.starts_with("init ");
  return text::message(init ? "objection.init_container" : "objection.container", locale,
                       {{"name", blank == std::string::npos ? std::string() : objection.container.substr(blank + 1)}});
}

}  // namespace

ruling evaluate(const rule_set& rules, std::span<const kube::container> containers, std::string_view runtime_class,
                const evaluation& evaluation) {
  return judge(rules, containers, evaluation).run(runtime_class);
}

ruling evaluate(const rule_set& rules, const pod_spec& pod, evaluation evaluation) {
  ruling out;
  if (!pod.complete) {
    if (evaluation.judge) out.refused.push_back(beyond_bounds());
    return out;
  }
  evaluation.on_pod = &pod.amounts;
  evaluation.limits = pod.limits;
  return evaluate(rules, pod.containers, pod.runtime_class, evaluation);
}

std::string text_of(const objection& objection, text::language locale) {
  const auto* words = vocabulary_of(objection.key);
  const auto source = objection.source.empty()
                          ? std::string()
                          : text::message("objection.source", locale, {{"config_map", objection.source}});
  const bool is_label = words && words->on_pod.label;
  return text::message("objection." + std::string(words_of(objection)), locale,
                       {{"container", title_of(objection, locale)},
                        {"key", objection.key},
                        {"amount", std::to_string(objection.amount)},
                        {"other", objection.other},
                        {"nearest", std::to_string(objection.nearest)},
                        {"legal", text::message((words ? words->legal : one_share).words, locale)},
                        {"on_pod", words ? text::message(words->on_pod.words, locale) : std::string()},
                        {"kind", text::message(is_label ? "objection.label" : "objection.annotation", locale)},
                        {"source", source}});
}

std::string texts_of(std::span<const objection> all, text::language locale) {
  std::string out;
  for (const auto& entry : all)
    (out += out.empty() ? std::string() : text::message("finding.remedy", locale)) += text_of(entry, locale);
  if (out.size() <= max_text) return out;
  auto end = max_text;
  while ((static_cast<unsigned char>(out[end]) & 0xC0U) == 0x80U) --end;  // not within a character
  while (out[end - 1] == ' ') --end;                                      // the API server trims what CEL returns
  out.resize(end);
  return out;
}

}  // namespace reconcilers::declarations
