#include "scheduler_config/judge/verdict.hpp"

#include <algorithm>
#include <tuple>

#include "scheduler_config/judge/judging.hpp"

namespace scheduler_config {
namespace {

constexpr std::string_view kubeadm = "kubeadm";

/// A version of the API, the first Kubernetes 1.x whose kube-scheduler reads it, and the first that no longer does.
/// Sources: k8s.io/kube-scheduler config/ of v0.17 to v0.29; kubernetes#68639, #89298, #117649, #119994.
struct read_version {
  std::string_view name;
  int since, until = 99;
  bool is_read(int minor) const { return since <= minor && minor < until; }
};
constexpr read_version read_versions[] = {
    {"componentconfig/v1alpha1", 0, 13},
    {"kubescheduler.config.k8s.io/v1alpha1", 12, 19},
    {"kubescheduler.config.k8s.io/v1alpha2", 18, 19},
    {"kubescheduler.config.k8s.io/v1beta1", 19, 23},
    {"kubescheduler.config.k8s.io/v1beta2", 22, 28},
    {"kubescheduler.config.k8s.io/v1beta3", 23, 29},
    {api_version, 25},
};

/// The newest that this kube-scheduler reads.
std::string_view version_for(int minor) {
  std::string_view out;
  for (const auto& row : read_versions)
    if (row.is_read(minor)) out = row.name;
  return out;
}

/// What another product is known by.
void say_other_product(judging& judging, std::string_view product) {
  const auto* root = judging.config.root;
  const auto* entry = text::yaml::find_entry(root, product == kubeadm ? "apiVersion" : "actions");
  judging.say({.issue = code::other_file,
               .location = entry ? entry->key->location : root->location,
               .field = entry ? entry->key->text : std::string(),
               .value = std::string(product),
               .hint = product == kubeadm ? "/etc/kubernetes/manifests/kube-scheduler.yaml" : ""});
}

/// Is it a configuration? Then its fields are judged; those of a removed version by the rules of v1, which it has to be
/// written in.
/// @param minor of the kube-scheduler, as old as it may be
bool judge_type(judging& judging, int minor) {
  const auto* root = judging.config.root;
  const auto begin = root ? root->location : text::yaml::place();
  if (!root || !root->mapping() || judging.text(root, "kind").empty()) {
    judging.say({.issue = code::no_kind, .location = begin, .field = "kind", .hint = "KubeSchedulerConfiguration"});
    return false;
  }
  const auto kind = judging.text(root, "kind"), version = judging.text(root, "apiVersion");
  const auto position = text::yaml::find_entry(root, "kind")->key->location;
  if (kind == "Policy" && !version.starts_with(group)) {
    judging.say({.issue = code::policy, .location = position, .field = "kind", .value = kind});
    return false;
  }
  if (version.empty()) {
    judging.say({.issue = code::no_kind, .location = begin, .field = "apiVersion", .hint = std::string(api_version)});
    return false;
  }
  if (kind != "KubeSchedulerConfiguration") {
    judging.say({.issue = code::other_kind, .location = position, .field = "kind", .value = kind});
    return false;
  }
  const auto* known = std::ranges::find(read_versions, version, &read_version::name);
  const bool is_known = known != std::end(read_versions);
  if (is_known && known->is_read(minor)) return true;
  const bool is_later = is_known && minor < known->since;
  const auto other = is_later ? known->since : is_known ? known->until : minor;
  const std::string meant(version_for(minor));
  judging.say({.issue = is_later   ? code::api_version_later
                        : is_known ? code::api_version_removed
                                   : code::api_version_unknown,
               .location = text::yaml::find_entry(root, "apiVersion")->key->location,
               .field = "apiVersion",
               .value = version,
               .other = "1." + std::to_string(other),
               .allowed = text::phrase(meant),
               .hint = meant});
  return is_known;
}

}  // namespace

bool holds_before_oldest(code issue) noexcept {
  return effect_of(issue) == effect::ends && issue <= code::api_version_unknown;
}

std::string_view other_product_of(const document& document) {
  const auto* root = document.root;
  if (text::yaml::text_at(root, "apiVersion").starts_with("kubeadm.k8s.io/")) return kubeadm;
  const auto* tiers = text::yaml::find(root, "tiers");
  const bool is_named = !text::yaml::text_at(root, "kind").empty();
  return !is_named && tiers && text::yaml::find(root, "actions") ? "Volcano" : "";
}

findings judge(const document& document, const server& server) {
  auto rules = server;
  rules.minor = std::max(server.minor, oldest_minor);
  judging judging{.config = document, .scheduler = rules, .out = {}, .refused = {}};
  if (const auto product = other_product_of(document); !product.empty()) {
    say_other_product(judging, product);
    return std::move(judging.out);
  }
  if (judge_type(judging, server.minor)) {
    decode(judging);
    if (judging.budget > 0) {
      validate(judging);
      advise(judging);
    }
  }
  if (document.more) judging.say({.issue = code::more_documents, .location = *document.more});
  const auto place = [](const finding& finding) {
    return std::tuple(finding.location, finding.issue, std::string_view(finding.field));
  };
  std::ranges::sort(judging.out, {}, place);
  return std::move(judging.out);
}

std::vector<opened_file> opened_files(const document& config) {
  const server any;
  const judging judging{.config = config, .scheduler = any, .out = {}, .refused = {}};
  std::vector<opened_file> out;
  const auto add = [&](std::string path, std::string field) {
    if (!path.empty()) out.push_back({std::move(path), std::move(field)});
  };
  add(judging.text(judging.value(config.root, "clientConnection"), "kubeconfig"), "clientConnection.kubeconfig");
  const auto all = judging.items(config.root, "extenders");
  for (std::size_t i = 0; i < all.size(); ++i) {
    const auto* tls = judging.value(all[i], "tlsConfig");
    for (const std::string part : {"ca", "cert", "key"}) {
      // What stands in the file itself comes first: client-go transport.dataFromSliceOrFile.
      if (judging.text(tls, part + "Data").empty())
        add(judging.text(tls, part + "File"), below(below("extenders", i), "tlsConfig." + part + "File"));
    }
  }
  return out;
}

findings judge(std::string_view text, const server& server) {
  const auto read = parse_document(text);
  return read ? judge(*read, server) : findings{read.error()};
}

}  // namespace scheduler_config
