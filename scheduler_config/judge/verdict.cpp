#include "scheduler_config/judge/verdict.hpp"

#include <algorithm>
#include <tuple>

#include "scheduler_config/judge/judging.hpp"

namespace scheduler_config {
namespace {

/// Versions that kube-scheduler read before the oldest Kubernetes we know, and the first that no longer did. Sources:
/// k8s.io/kube-scheduler config/ of v0.17 to v0.29; kubernetes#68639, #89298, #117649, #119994.
struct removed_version {
  std::string_view name;
  int since;
};
constexpr removed_version removed_versions[] = {
    {"componentconfig/v1alpha1", 13},
    {"kubescheduler.config.k8s.io/v1alpha1", 19},
    {"kubescheduler.config.k8s.io/v1alpha2", 19},
    {"kubescheduler.config.k8s.io/v1beta1", 23},
    {"kubescheduler.config.k8s.io/v1beta2", 28},
    {"kubescheduler.config.k8s.io/v1beta3", 29},
};

/// Is it a configuration? Then its fields are judged; those of a removed version by the rules of v1, which it has to be
/// written in.
bool judge_type(judging& judging) {
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
  if (version == api_version) return true;
  const auto* removed = std::ranges::find(removed_versions, version, &removed_version::name);
  const bool known = removed != std::end(removed_versions);
  judging.say({.issue = known ? code::api_version_removed : code::api_version_unknown,
               .location = text::yaml::find_entry(root, "apiVersion")->key->location,
               .field = "apiVersion",
               .value = version,
               .other = known ? "1." + std::to_string(removed->since) : judging.version(),
               .allowed = text::phrase(std::string(api_version)),
               .hint = std::string(api_version)});
  return known;
}

}  // namespace

findings judge(const document& document, const server& server) {
  judging judging{.config = document, .scheduler = server, .out = {}, .refused = {}};
  if (judge_type(judging)) {
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
