// The chart against the code: rights, names, versions. What needs helm itself is tested end to end.

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <yaml-cpp/yaml.h>

#include <filesystem>
#include <fstream>
#include <map>
#include <regex>
#include <set>
#include <sstream>

#include "api/names.hpp"
#include "quota/resource_keys.hpp"
#include "quota/vocabulary.hpp"
#include "reconcilers/admission/admission.hpp"
#include "reconcilers/container_runtime/pod.hpp"
#include "reconcilers/modules/catalogue.hpp"
#include "reconcilers/nodes/card_labels.hpp"
#include "test/reconcilers/rights.hpp"

namespace reconcilers {
namespace {

const std::filesystem::path root = SOURCE_ROOT, chart = root / "charts/quartermaster";

std::string text_of(const std::filesystem::path& path) {
  std::ostringstream out;
  out << std::ifstream(path).rdbuf();
  return out.str();
}

/// The template without its expressions: rules hold none.
std::vector<YAML::Node> documents_of(const std::filesystem::path& path) {
  std::istringstream stream(text_of(path));
  std::string plain;
  bool comment = false;
  for (std::string line; std::getline(stream, line);) {
    comment = comment || line.starts_with("{{- /*");
    if (!comment && line.find("{{") == std::string::npos) plain += line + "\n";
    if (line.find("*/}}") != std::string::npos) comment = false;
  }
  return YAML::LoadAll(plain);
}

/// `scopes`: of Roles by name; all others are in our own namespace.
std::set<right> rights_in(const char* file, const std::map<std::string, std::string>& scopes) {
  std::set<right> out;
  for (const auto& document : documents_of(chart / "templates" / file)) {
    if (!document.IsMap() || !document["rules"]) continue;
    const auto kind = document["kind"].as<std::string>(), name = document["metadata"]["name"].as<std::string>();
    const auto named = scopes.find(name);
    const std::string scope = kind == "ClusterRole" ? "cluster" : named != scopes.end() ? named->second : "own";
    for (const auto& rule : document["rules"]) {
      const auto names =
          rule["resourceNames"] ? rule["resourceNames"].as<std::vector<std::string>>() : std::vector<std::string>{"*"};
      for (const auto& group : rule["apiGroups"].as<std::vector<std::string>>())
        for (const auto& resource : rule["resources"].as<std::vector<std::string>>())
          for (const auto& verb : rule["verbs"].as<std::vector<std::string>>())
            for (const auto& entry : names) out.insert({scope, group + "/" + resource, verb, entry});
    }
  }
  return out;
}
std::set<right> chart_rights() {
  return rights_in("rbac.yaml", {{"quartermaster-declarations", "declared"}, {"quartermaster-gpuquota", "system"}});
}

TEST(chart, gives_the_agent_of_static_pods_exactly_the_rights_that_are_used) {
  EXPECT_EQ(rights_in("static-pod.yaml", {{"quartermaster-static-pod-schedulers", "schedulers"},
                                          {"quartermaster-static-pod-events", "events"}}),
            golden_rights("rbac-static-pod.txt"));
}

TEST(chart, gives_exactly_the_rights_that_are_used) { EXPECT_EQ(chart_rights(), golden_rights()); }

/// The labels of nodes that the policy of the operator's account lets through, as accounts.yaml names them.
bool may_write_label(const std::string& key) {
  const auto text = text_of(chart / "templates/accounts.yaml");
  const auto begin = text.find("\"labels\" (printf \"variables.pod ?");
  const std::string line = text.substr(begin, text.find('\n', begin) - begin);
  const std::string nodes = line.substr(line.find(" : "));
  static const std::regex prefix(R"(k\.startsWith\('([^']+)'\))"), list(R"(k in \[([^\]]*)\])");
  for (std::sregex_iterator match(nodes.begin(), nodes.end(), prefix), end; match != end; ++match)
    if (key.starts_with((*match)[1].str())) return true;
  std::smatch names;
  return std::regex_search(nodes, names, list) && names[1].str().contains("'" + key + "'");
}

/// A list of texts that a template of _cel.tpl is.
std::set<std::string> keys_of(const std::string& name) {
  const auto text = text_of(chart / "templates/_cel.tpl");
  const auto begin = text.find("define \"quartermaster.cel." + name + "\"");
  if (begin == std::string::npos) return {};
  const auto list = text.substr(begin, text.find("{{- end }}", begin) - begin);
  static const std::regex key("'([^']+)'");
  std::set<std::string> out;
  for (std::sregex_iterator match(list.begin(), list.end(), key), end; match != end; ++match) out.insert((*match)[1]);
  return out;
}

TEST(chart, the_policies_know_the_keys_of_cards_and_those_of_shares_that_annotations_give) {
  std::set<std::string> cards, shares;
  const quota::service by_annotation{.modes = static_cast<std::uint16_t>(quota::mode::vgpu) |
                                              static_cast<std::uint16_t>(quota::mode::slots) |
                                              static_cast<std::uint16_t>(quota::mode::memory_shares)};
  for (const auto& row : quota::resource_keys) {
    if (!row.managed) continue;
    cards.emplace(row.key);
    const auto refused = quota::judge({.key = row.key, .value = 100}, by_annotation);
    if (row.key != "nvidia.com/gpu" && !(refused && refused->kind == quota::wrong::not_served)) shares.emplace(row.key);
  }
  std::set<std::string> foreign;
  for (const auto& row : quota::resource_keys)
    if (!row.managed && row.key != "nvidia.com/priority") foreign.emplace(row.key);
  EXPECT_EQ(keys_of("foreign"), foreign) << "what the ledger counts";
  EXPECT_EQ(keys_of("managed"), cards);
  EXPECT_EQ(keys_of("shares"), shares);
  EXPECT_LT(shares.size(), cards.size());
}

TEST(chart, knows_the_reason_of_quotas_that_hold_pods_of_other_schedulers) {
  const auto policy = text_of(chart / "templates/bypass-policies.yaml");
  EXPECT_THAT(policy,
              testing::HasSubstr("variables.reasons[0] != '" + std::string(api::names::own_scheduler_asks) + "'"));
}

TEST(chart, lets_the_operator_write_every_label_that_it_writes) {
  api::accelerator_node report;
  report.key = {{}, "gpu-1"};
  report.driver = "550.90.07";
  report.cuda = "12.4";
  api::reported_card card;
  card.uuid = "GPU-0";
  card.model = "NVIDIA A100-SXM4-80GB";
  card.compute_capability = "8.0";
  card.health = "Healthy";
  card.memory_mib = 81920;
  report.cards = {card, card};
  std::vector<std::string> keys{"cuda-major-version", "cuda-minor-version", std::string(api::names::module_label),
                                std::string(api::names::static_pod_label), std::string(api::names::taken_over_label)};
  for (const auto& [key, value] : card_labels(report, {"GPUFeatureDiscovery", "ACK", "GPUManager"}))
    keys.push_back(key);
  ASSERT_GT(keys.size(), 20U);
  for (const auto& key : keys) EXPECT_TRUE(may_write_label(key)) << key;
  for (const auto* other :
       {"kubernetes.io/hostname", "node-role.kubernetes.io/control-plane", "team", "gaia.tencent.com/x"})
    EXPECT_FALSE(may_write_label(other)) << other;
}

TEST(chart, lets_the_operator_run_plugins_as_the_accounts_that_it_makes) {
  const auto text = text_of(chart / "templates/accounts.yaml");
  const auto begin = text.find("$plugins := concat (list ");
  ASSERT_NE(begin, std::string::npos);
  const auto line = text.substr(begin, text.find('\n', begin) - begin);
  std::size_t accounts = 0;
  for (const auto& [scope, resource, verb, name] : golden_rights()) {
    if (resource != "/serviceaccounts" || verb != "create") continue;
    ++accounts;
    EXPECT_THAT(line, testing::HasSubstr("\"" + name + "\""));
  }
  EXPECT_EQ(accounts, 9U);
}

TEST(chart, gives_no_right_that_would_let_us_do_harm) {
  for (const auto& [scope, resource, verb, name] : chart_rights()) {
    EXPECT_NE(verb, "*");
    EXPECT_NE(verb, "escalate");
    EXPECT_EQ(resource.find('*'), std::string::npos);
    const bool certificates = name == "quartermaster-webhook" || name == "quartermaster-extender-authority" ||
                              name == "quartermaster-extender" || name == "quartermaster-extender-client" ||
                              name == "quartermaster-views";
    EXPECT_TRUE(resource.find("secrets") == std::string::npos || (scope == "own" && certificates))
        << verb << " " << name;
    for (const auto* made : {"/nodes", "/pods"}) {
      if (scope == "own" && resource == "/pods" && verb == "delete") continue;  // of plugins, by their uid
      if (scope == "own" && resource == "/pods" && name == container_runtime::pod_name) continue;  // people ask for it
      EXPECT_FALSE(resource == made && (verb == "create" || verb == "delete" || verb == "update"))
          << resource << " " << verb;
    }
    // Ours by name; in the namespace of declarations, which is everyone's to read, by the label alone.
    if (resource == "/configmaps" && verb != "list" && verb != "watch")
      EXPECT_TRUE(scope == "declared" || (scope == "own" && name != "*")) << scope << " " << verb;
  }
}

TEST(chart, S2_names_every_object_of_the_catalogue) {
  const auto rights = chart_rights();
  for (const auto& entry : modules::catalogue()) {
    for (const auto& made : modules::intents_of(entry, {}, {"quartermaster", "x", "default", ""})) {
      const auto resource = std::string(made.type->group) + "/" + std::string(made.type->plural);
      for (const auto* verb : {"get", "create", "patch", "delete"})
        EXPECT_TRUE(rights.contains({"own", resource, verb, made.key.name}) ||
                    (made.type->kind == "DaemonSet" && rights.contains({"own", resource, verb, "*"})))
            << verb << " " << made.key.name;
    }
  }
}

TEST(chart, S24_names_the_webhooks_and_paths_of_the_program) {
  const auto webhooks = text_of(chart / "templates/webhook.yaml");
  for (const auto& entry : {mutate_pods_route, compatibility_route}) {
    const auto position = webhooks.find("name: " + std::string(entry.webhook));
    ASSERT_NE(position, std::string::npos) << entry.webhook;
    const auto path = webhooks.find("(list . \"", position) + 9;
    EXPECT_EQ(webhooks.substr(path, webhooks.find('"', path) - path), entry.path) << entry.webhook;
  }
}

TEST(chart, leaves_out_the_namespaces_that_the_program_leaves_out) {
  std::string list = "list";
  for (const auto& ns : api::names::system_namespaces) list += " \"" + std::string(ns) + "\"";
  EXPECT_THAT(text_of(chart / "templates/_helpers.tpl"), testing::HasSubstr(list + " .Release.Namespace"));
}

TEST(chart, the_crds_know_the_modules_of_the_catalogue) {
  const auto policy = text_of(root / "crds/acceleratorpolicies.quartermaster.io.yaml");
  std::string list = "[";
  for (const auto& entry : modules::catalogue())
    list += (list.size() > 1 ? ", '" : "'") + std::string(entry.name) + "'";
  EXPECT_THAT(policy, testing::HasSubstr("name in " + list + "]"));
  EXPECT_THAT(policy, testing::HasSubstr("the modules are " + modules::names_for_people()));
}

TEST(chart, is_of_the_version_of_the_program) {
  const auto about = YAML::LoadFile(chart / "Chart.yaml");
  auto version = text_of(root / "VERSION");
  version.erase(version.find_last_not_of(" \n") + 1);
  EXPECT_EQ(about["version"].as<std::string>(), version);
  EXPECT_EQ(about["appVersion"].as<std::string>(), version);
}

}  // namespace
}  // namespace reconcilers
