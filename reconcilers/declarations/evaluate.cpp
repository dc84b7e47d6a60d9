#include "reconcilers/declarations/evaluate.hpp"

#include <algorithm>
#include <set>

#include "reconcilers/declarations/pod_spec.hpp"
#include "reconcilers/declarations/vocabulary.hpp"

namespace reconcilers::crl {
namespace {

constexpr std::size_t max_refusals = 1000;  // nobody reads the 1,001st, and a pod made to hurt has millions

// A warning is a header line: the API server cuts every warning of a response to 256 characters once they are more than
// 4,096 together, and writes the names of policy and binding before the text.
constexpr std::size_t max_text = 3800;

objection beyond_bounds() {
  objection out;
  out.what = objected::too_large;
  return out;
}

/// How large a pod is, as the bounds count.
class size_of {
 public:
  size_of(const rule_set& rules, std::span<const kube::container> containers, std::size_t limits)
      : rules_(rules), containers_(containers), limits_(limits) {
    for (const auto& one : containers_) {
      named_ += one.limits.size();
      for (const auto& [key, amount] : one.limits) count(key, amount);
      for (const auto& [key, amount] : one.requests) declared_ = declared_ || rules_.find(key);
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
    for (const auto& one : containers_) {
      for (const auto& [key, amount] : one.limits) {
        if (amount > 0 && exclusive.contains(key)) used.insert(key);
      }
    }
    std::size_t exclusions = 0;
    for (const auto key : used) {
      if (const auto* of = rules_.find(key)) exclusions += of->excluded.size();
    }
    return exclusions * used.size() > max_comparisons;
  }

 private:
  void count(const std::string& key, std::int64_t amount) {
    const auto* of = rules_.find(key);
    if (amount > 0) ++used_;
    if (!of) return;
    declared_ = true;
    if (amount > 0) exclusions_ += of->excluded.size();
    if (const auto* group = rules_.group(of->group)) members_ += group->members.size();
  }

  const rule_set& rules_;
  std::span<const kube::container> containers_;
  std::size_t limits_, named_ = 0, used_ = 0, members_ = 0, exclusions_ = 0;
  bool declared_ = false;
};

/// One container that uses a declared key: the keys above zero, as they were asked for and with what is filled in.
struct user {
  std::size_t index;
  const kube::container* of;
  std::string title;
  kube::quantities limits;  ///< with the fills

  bool uses(std::string_view key) const { return kube::amount(limits, key) > 0; }
};

std::string title_of(const kube::container& of) {
  return (of.as == kube::container::role::main ? "container " : "init container ") + of.name;
}

bool names(const kube::quantities& in, std::string_view key) {
  return std::ranges::binary_search(in, key, {}, [](const auto& entry) { return std::string_view(entry.first); });
}

void add(kube::quantities& to, const std::string& key, std::int64_t amount) {
  const auto at = std::ranges::lower_bound(to, key, {}, [](const auto& entry) { return entry.first; });
  to.insert(at, {key, amount});
}

class judge {
 public:
  judge(const rule_set& rules, std::span<const kube::container> containers, const evaluation& how)
      : rules_(rules), containers_(containers), how_(how) {}

  ruling run(std::string_view runtime_class) {
    const size_of size(rules_, containers_, how_.limits);
    if (!size.names_a_declared_key()) return {};
    if (size.is_too_much()) return refused_as_too_large();
    for (std::size_t i = 0; i < containers_.size(); ++i) take(i);
    for (auto& each : users_) fill(each);
    if (how_.fill && runtime_class.empty()) out_.runtime_class = runtime();
    if (how_.judge && size.is_too_much_to_compare()) return refused_as_too_large();
    if (how_.judge) {
      note_named();
      for (const auto& each : users_) object(each);
      for (const auto& each : users_) together(each);
    }
    return std::move(out_);
  }

 private:
  ruling refused_as_too_large() {
    out_.said.clear();
    out_.refused.clear();
    if (how_.judge) refuse(beyond_bounds());
    return std::move(out_);
  }

  void take(std::size_t index) {
    const auto& of = containers_[index];
    unequal(of);
    const bool any = std::ranges::any_of(
        of.limits, [&](const auto& entry) { return entry.second > 0 && rules_.find(entry.first) != nullptr; });
    if (any) users_.push_back({index, &of, title_of(of), of.limits});
  }

  /// The API server's own rule for extended resources, in words of ours.
  void unequal(const kube::container& of) {
    for (const auto& [key, amount] : of.requests) {
      const auto limit = kube::amount(of.limits, key);
      if (rules_.find(key) && (limit != amount || !names(of.limits, key)))
        refuse({objected::unequal, title_of(of), key, amount, {}, limit, {}});
    }
  }

  std::string runtime() const {
    for (const auto& each : users_) {
      for (const auto& [key, amount] : each.limits) {
        const auto* of = amount > 0 ? rules_.find(key) : nullptr;
        if (of && !of->runtime_class.empty()) return of->runtime_class;
      }
    }
    return {};
  }

  /// Judged on what was asked for, so that one fill does not call for another; but a fill of whole cards waives the
  /// fill of their partner, as if a person had asked for them. What a person requested without a limit stays as it is.
  void fill(user& in) {
    if (!how_.fill) return;
    kube::quantities all;
    each_group(in.of->limits, [&](const rule&, const rule& member) {
      if (member.fill && !names(in.of->limits, member.key) && !names(in.of->requests, member.key))
        add(all, member.key, *member.fill);
    });
    for (const auto& [key, amount] : all) {
      const auto* words = partner_of(key);
      if (waived(in.of->limits, key) || (words && kube::amount(all, words->key) >= words->legal.whole)) continue;
      out_.fills.push_back({in.index, key, amount});
      add(in.limits, key, amount);
    }
  }

  void object(const user& in) {
    for (const auto& [key, amount] : in.limits) {
      const auto* of = amount > 0 ? rules_.find(key) : nullptr;
      if (!of) continue;
      if (out_.refused.size() >= max_refusals) return;
      alone(in, *of, amount);
      beside(in, *of, amount);
    }
    each_group(in.limits, [&](const rule& first, const rule& member) {
      const bool said = names(in.of->requests, member.key) && !names(in.limits, member.key);  // as unequal
      if (member.must && !said && !in.uses(member.key) && !waived(in.limits, member.key))
        refuse({objected::missing, in.title, member.key, 0, first.key, 0, member.config_map.to_string()});
    });
  }

  void alone(const user& in, const rule& of, std::int64_t amount) {
    const auto source = of.config_map.to_string();
    if (of.forbidden) return refuse({objected::forbidden, in.title, of.key, amount, {}, 0, source});
    const auto* words = vocabulary_of(of.key);
    if (!words) return;
    if (!words->legal.allow(amount) && words->legal.limited())
      return refuse({objected::not_legal, in.title, of.key, amount, {}, words->legal.nearest(amount), {}});
    const std::string partner(words->partner);
    if (needs_partner(*words, amount) && !in.uses(partner))
      return refuse({objected::needs_partner, in.title, of.key, amount, partner, words->legal.whole, {}});
    on_pod(in, of.key, amount, words->on_pod);
  }

  void on_pod(const user& in, const std::string& key, std::int64_t amount, const quota::pod_amount& rule) {
    if (!how_.on_pod || rule.name.empty() || in.uses(rule.name)) return;
    for (const auto& [name, text] : *how_.on_pod) {
      if (name != rule.name) continue;
      const auto value = quota::pod_amount_in(text);
      if (!value || !rule.allow(*value, amount))
        refuse({objected::pod_amount, in.title, key, amount, name, value.value_or(0), {}});
    }
  }

  /// What the pod as a whole must not have, after what is wrong with each container.
  void together(const user& in) {
    for (const auto& [key, amount] : in.limits) {
      const auto* of = amount > 0 ? rules_.find(key) : nullptr;
      if (!of) continue;
      if (out_.refused.size() >= max_refusals) return;
      for (const auto& other : of->excluded) {
        // Where both are declared, both exclude each other: said once.
        if (anywhere(other) && (key < other || !rules_.find(other)))
          refuse({objected::excluded, in.title, key, amount, other, 0, of->config_map.to_string()});
      }
    }
  }

  void beside(const user& in, const rule& of, std::int64_t amount) {
    const auto source = of.config_map.to_string();
    const auto* words = of.forbidden ? nullptr : vocabulary_of(of.key);
    for (const auto& key : of.related) {
      if (words && needs_partner(*words, amount) && key == words->partner)
        continue;  // refused for the want of it, or fine
      if (rules_.find(key) && !in.uses(key) && !waived(in.limits, key) && !required(of, key))
        say({objected::related_missing, in.title, of.key, amount, key, 0, source});
    }
    if (!of.offered && !of.forbidden) say({objected::not_offered, in.title, of.key, amount, {}, 0, source});
  }

  /// Each group of which something is used, by its first used key, with each of its rules that asks for something.
  void each_group(const kube::quantities& used, auto&& call) const {
    const auto uses = [&](const std::string& key) { return kube::amount(used, key) > 0; };
    for (const auto& [key, amount] : used) {
      const auto* of = amount > 0 ? rules_.find(key) : nullptr;
      const auto* group = of ? rules_.group(of->group) : nullptr;
      if (!group) continue;
      const auto first = std::ranges::find_if(group->members, uses);
      if (first == group->members.end() || *first != key) continue;
      for (const auto& name : group->members) {
        const auto* member = rules_.find(name);
        if (member && (member->must || member->fill)) call(*of, *member);
      }
    }
  }

  /// Whole cards need none of the partner.
  static bool waived(const kube::quantities& limits, std::string_view key) {
    const auto* words = partner_of(key);
    return words && kube::amount(limits, words->key) >= words->legal.whole;
  }
  bool required(const rule& by, const std::string& key) const {
    const auto* other = rules_.find(key);
    return other && other->must && !by.group.empty() && other->group == by.group;
  }
  /// The keys above zero anywhere in the pod, with the fills.
  void note_named() {
    const auto note = [this](const kube::quantities& all) {
      for (const auto& [key, amount] : all) {
        if (amount > 0) named_.push_back(key);
      }
    };
    for (const auto& one : containers_) note(one.limits);
    for (const auto& one : users_) note(one.limits);
    std::ranges::sort(named_);
    named_.erase(std::ranges::unique(named_).begin(), named_.end());
  }
  bool anywhere(std::string_view key) const { return std::ranges::binary_search(named_, key); }

  void refuse(objection what) {
    if (out_.refused.size() < max_refusals) out_.refused.push_back(std::move(what));
  }
  void say(objection what) { out_.said.push_back(std::move(what)); }

  const rule_set& rules_;
  std::span<const kube::container> containers_;
  evaluation how_;
  std::vector<user> users_;
  std::vector<std::string_view> named_;
  ruling out_;
};

/// "annotation tencent.com/vcuda-core-limit".
std::string place_of(const objection& of, std::string_view annotation, std::string_view label) {
  return std::string(vocabulary_of(of.key)->on_pod.label ? label : annotation) + " " + of.other;
}

std::string english(const objection& of) {
  const auto value = of.container + ": " + of.key + " is " + std::to_string(of.amount);
  const auto source = of.source.empty() ? std::string() : " (ConfigMap " + of.source + ")";
  switch (of.what) {
    case objected::forbidden:
      return value + ", but must not be set" + source;
    case objected::not_legal: {
      const auto* words = vocabulary_of(of.key);
      return value + "; allowed are " + std::string(words->legal.words) + ", nearest " + std::to_string(of.nearest);
    }
    case objected::needs_partner:
      if (of.nearest == 0) return value + " and needs " + of.other + " beside it";
      return value + ", a share of a card, and needs " + of.other + " beside it; " + std::to_string(of.nearest) +
             " is a whole card and needs none";
    case objected::pod_amount:
      return of.container + ": " + place_of(of, "annotation", "label") + " is " +
             (of.nearest > 0 ? std::to_string(of.nearest) : "no whole number from 1") + ", with " + of.key + " " +
             std::to_string(of.amount) + "; allowed are " + std::string(vocabulary_of(of.key)->on_pod.words);
    case objected::too_large:
      return "the pod has more than 256 containers or 2048 limits, or uses too many keys that exclude others or belong "
             "to large groups: more than is judged";
    case objected::missing:
      return of.container + ": " + of.key + " must be set to 1 or more beside " + of.other + source;
    case objected::excluded:
      return value + ", which must not be in one pod with " + of.other + source;
    case objected::unequal:
      return of.container + ": the request of " + of.key + " is " + std::to_string(of.amount) + ", its limit " +
             std::to_string(of.nearest) +
             "; Kubernetes wants both equal for such a resource: set the limit and leave the request out";
    case objected::related_missing:
      return of.container + ": " + of.key + " usually goes with " + of.other + ", which is not set" + source;
    case objected::not_offered:
      return of.container + ": no node offers " + of.key + " now, so the pod waits until one does" + source;
  }
  return {};
}

std::string chinese(const objection& of) {
  if (of.what == objected::too_large)
    return "Pod 的容器超过 256 个或 limits 超过 2048 个，或使用了过多互斥的资源或过大的组：超出可检查的范围";
  const bool init = of.container.starts_with("init ");
  const auto name = of.container.substr(init ? 15 : 10);
  const auto title = (init ? "初始化容器 " : "容器 ") + name + "：";
  const auto value = title + of.key + " 的值为 " + std::to_string(of.amount);
  const auto source = of.source.empty() ? std::string() : "（ConfigMap " + of.source + "）";
  switch (of.what) {
    case objected::forbidden:
      return value + "，但不允许设置" + source;
    case objected::not_legal: {
      const auto* words = vocabulary_of(of.key);
      return value + "；允许 " + std::string(words->legal.words_zh) + "，最接近的是 " + std::to_string(of.nearest);
    }
    case objected::needs_partner:
      if (of.nearest == 0) return value + "，必须同时设置 " + of.other;
      return value + "，是一张卡的一部分，必须同时设置 " + of.other + "；" + std::to_string(of.nearest) +
             " 表示整卡，不需要它";
    case objected::pod_amount:
      return title + place_of(of, "注解", "标签") +
             (of.nearest > 0 ? " 的值为 " + std::to_string(of.nearest) : " 不是从 1 开始的整数") + "，而 " + of.key +
             " 的值为 " + std::to_string(of.amount) + "；允许 " + std::string(vocabulary_of(of.key)->on_pod.words_zh);
    case objected::too_large:
      break;
    case objected::missing:
      return title + "使用 " + of.other + " 时必须同时设置 " + of.key + "（至少为 1）" + source;
    case objected::excluded:
      return value + "，不能与 " + of.other + " 出现在同一个 Pod 中" + source;
    case objected::unequal:
      return title + of.key + " 的 requests 为 " + std::to_string(of.amount) + "，limits 为 " +
             std::to_string(of.nearest) + "；Kubernetes 要求两者相等：请只设置 limits";
    case objected::related_missing:
      return title + of.key + " 通常与 " + of.other + " 一起使用，但后者没有设置" + source;
    case objected::not_offered:
      return title + "目前没有节点提供 " + of.key + "，Pod 将等待到有节点提供为止" + source;
  }
  return {};
}

}  // namespace

ruling evaluate(const rule_set& rules, std::span<const kube::container> containers, std::string_view runtime_class,
                const evaluation& how) {
  return judge(rules, containers, how).run(runtime_class);
}

ruling evaluate(const rule_set& rules, const pod_spec& pod, evaluation how) {
  ruling out;
  if (!pod.complete) {
    if (how.judge) out.refused.push_back(beyond_bounds());
    return out;
  }
  how.on_pod = &pod.amounts;
  how.limits = pod.limits;
  return evaluate(rules, pod.containers, pod.runtime_class, how);
}

std::string text_of(const objection& of, language in) { return in == language::zh ? chinese(of) : english(of); }

std::string texts_of(std::span<const objection> all, language in) {
  std::string out;
  for (const auto& one : all) (out += out.empty() ? "" : in == language::zh ? "；" : "; ") += text_of(one, in);
  if (out.size() <= max_text) return out;
  auto end = max_text;
  while ((static_cast<unsigned char>(out[end]) & 0xC0U) == 0x80U) --end;  // not within a character
  while (out[end - 1] == ' ') --end;                                      // the API server trims what CEL returns
  out.resize(end);
  return out;
}

}  // namespace reconcilers::crl
