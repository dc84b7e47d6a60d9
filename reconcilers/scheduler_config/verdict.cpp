#include "reconcilers/scheduler_config/verdict.hpp"

#include <algorithm>
#include <tuple>

#include "reconcilers/scheduler_config/judging.hpp"

namespace reconcilers::scheduler_config {
namespace {

std::string accepted(int minor) {
  std::string out;
  for (const auto& one : api_versions) {
    if (one.first <= minor && minor <= one.last)
      out += (out.empty() ? "" : ", ") + std::string(group) + std::string(one.name);
  }
  return out;
}

/// Which version it is written in; empty: kube-scheduler does not get as far as the fields.
std::string_view version_of(judging& in) {
  const auto* root = in.of.root;
  const auto begin = root ? root->at : yaml::place();
  const auto best = std::string(group) + std::string(best_for(in.on.minor).name);
  if (!root || !root->mapping() || in.text(root, "kind").empty()) {
    in.say({.what = code::no_kind, .at = begin, .field = "kind", .hint = "KubeSchedulerConfiguration"});
    return {};
  }
  const auto kind = in.text(root, "kind"), version = in.text(root, "apiVersion");
  const auto at = yaml::find_entry(root, "kind")->key->at;
  if (kind == "Policy" && !version.starts_with(group)) {
    in.say({.what = code::policy, .at = at, .field = "kind", .value = kind});
    return {};
  }
  if (version.empty()) {
    in.say({.what = code::no_kind, .at = begin, .field = "apiVersion", .hint = best});
    return {};
  }
  if (kind != "KubeSchedulerConfiguration") {
    in.say({.what = code::other_kind, .at = at, .field = "kind", .value = kind});
    return {};
  }
  const auto name = version.starts_with(group) ? std::string_view(version).substr(group.size()) : std::string_view();
  const auto* known = std::ranges::find(api_versions, name, &api_version::name);
  finding what{.what = code::api_version_unknown,
               .at = yaml::find_entry(root, "apiVersion")->key->at,
               .field = "apiVersion",
               .value = version,
               .other = in.version(),
               .allowed = accepted(in.on.minor),
               .hint = best};
  if (known == std::end(api_versions)) {
    in.say(std::move(what));
    return {};
  }
  if (in.on.minor < known->first || in.on.minor > known->last) {
    what.what = code::api_version_removed;
    in.say(std::move(what));
  } else if (known->last < newest_minor && known->name != best_for(in.on.minor).name) {
    what.what = code::api_version_ends;
    what.other = "1." + std::to_string(known->last + 1);
    in.say(std::move(what));
  }
  return known->name;
}

}  // namespace

findings judge(const document& of, const server& on) {
  judging in{.of = of, .on = on, .api = {}, .out = {}, .refused = {}};
  in.api = version_of(in);
  if (!in.api.empty()) {
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
  const judging in{.of = config, .on = any, .api = "v1", .out = {}, .refused = {}};
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
