#include "scheduler_config/judge/verdict.hpp"

#include <algorithm>
#include <tuple>

#include "scheduler_config/judge/judging.hpp"

namespace reconcilers::scheduler_config {
namespace {

/// Versions that kube-scheduler read before the oldest Kubernetes we know.
constexpr std::string_view removed_versions[] = {"v1beta1", "v1beta2", "v1beta3"};

/// Is it a configuration? Then its fields are judged; those of a removed version by the rules of v1, which it has to be
/// written in.
bool judge_type(judging& in) {
  const auto* root = in.of.root;
  const auto begin = root ? root->at : yaml::place();
  if (!root || !root->mapping() || in.text(root, "kind").empty()) {
    in.say({.what = code::no_kind, .at = begin, .field = "kind", .hint = "KubeSchedulerConfiguration"});
    return false;
  }
  const auto kind = in.text(root, "kind"), version = in.text(root, "apiVersion");
  const auto at = yaml::find_entry(root, "kind")->key->at;
  if (kind == "Policy" && !version.starts_with(group)) {
    in.say({.what = code::policy, .at = at, .field = "kind", .value = kind});
    return false;
  }
  if (version.empty()) {
    in.say({.what = code::no_kind, .at = begin, .field = "apiVersion", .hint = std::string(api_version)});
    return false;
  }
  if (kind != "KubeSchedulerConfiguration") {
    in.say({.what = code::other_kind, .at = at, .field = "kind", .value = kind});
    return false;
  }
  const auto name = version.starts_with(group) ? std::string_view(version).substr(group.size()) : std::string_view();
  if (version == api_version) return true;
  const bool removed = std::ranges::find(removed_versions, name) != std::end(removed_versions);
  in.say({.what = removed ? code::api_version_removed : code::api_version_unknown,
          .at = yaml::find_entry(root, "apiVersion")->key->at,
          .field = "apiVersion",
          .value = version,
          .other = in.version(),
          .allowed = std::string(api_version),
          .hint = std::string(api_version)});
  return removed;
}

}  // namespace

findings judge(const document& of, const server& on) {
  judging in{.of = of, .on = on, .out = {}, .refused = {}};
  if (judge_type(in)) {
    decode(in);
    if (in.budget > 0) {
      validate(in);
      advise(in);
    }
  }
  if (of.more) in.say({.what = code::more_documents, .at = *of.more});
  const auto place = [](const finding& one) { return std::tuple(one.at, one.what, std::string_view(one.field)); };
  std::ranges::sort(in.out, {}, place);
  return std::move(in.out);
}

std::vector<opened_file> opened_files(const document& config) {
  const server any;
  const judging in{.of = config, .on = any, .out = {}, .refused = {}};
  std::vector<opened_file> out;
  const auto add = [&](std::string path, std::string field) {
    if (!path.empty()) out.push_back({std::move(path), std::move(field)});
  };
  add(in.text(in.value(config.root, "clientConnection"), "kubeconfig"), "clientConnection.kubeconfig");
  const auto all = in.items(config.root, "extenders");
  for (std::size_t i = 0; i < all.size(); ++i) {
    const auto* tls = in.value(all[i], "tlsConfig");
    for (const std::string part : {"ca", "cert", "key"}) {
      // What stands in the file itself comes first: client-go transport.dataFromSliceOrFile.
      if (in.text(tls, part + "Data").empty())
        add(in.text(tls, part + "File"), below(below("extenders", i), "tlsConfig." + part + "File"));
    }
  }
  return out;
}

findings judge(std::string_view text, const server& on) {
  const auto read = parse_document(text);
  return read ? judge(*read, on) : findings{read.error()};
}

}  // namespace reconcilers::scheduler_config
