#include "cli/inspect/inspect.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <map>
#include <nlohmann/json.hpp>
#include <protozero/pbf_writer.hpp>
#include <sstream>

#include "test/cli/wire_objects.hpp"
#include "test/reconcilers/recording_transport.hpp"
#include "test/words.hpp"
#include "text/yaml/source.hpp"

namespace cli {
namespace {

using cli_test::config_map, cli_test::entry, cli_test::metadata, cli_test::texts;
using reconcilers::recording_transport;
using testing::HasSubstr;
using testing::StartsWith;
using words::english;

// --- the API server's protobuf, by field number
std::string amounts(const std::map<std::string, int>& quantities) {
  std::string out;
  protozero::pbf_writer writer(out);
  for (const auto& [key, amount] : quantities) {
    std::string quantity;
    protozero::pbf_writer(quantity).add_string(1, std::to_string(amount));
    writer.add_message(1, entry(key, quantity));
    writer.add_message(2, entry(key, quantity));
  }
  return out;
}
std::string pod(const std::string& ns, const std::string& name, const std::map<std::string, int>& limits,
                const std::string& phase = "Running", const texts& annotations = {}) {
  std::string container, spec, status, out;
  protozero::pbf_writer(container).add_string(1, "main");
  protozero::pbf_writer(container).add_message(8, amounts(limits));
  protozero::pbf_writer(spec).add_message(2, container);
  protozero::pbf_writer(status).add_string(1, phase);
  protozero::pbf_writer writer(out);
  writer.add_message(1, metadata(ns, name, {}, annotations));
  writer.add_message(2, spec);
  writer.add_message(3, status);
  return out;
}
kube::response list_of(const std::vector<std::string>& items, const std::string& next = "") {
  kube::response out;
  out.status = 200;
  out.content_type = "application/vnd.kubernetes.protobuf";
  out.body = cli_test::list_body(items, next);
  return out;
}

texts labels(const std::string& domain, const std::string& group) {
  return {{domain + "type", "CustomResourceLimitation"}, {domain + "group", group}, {domain + "enabled", "true"}};
}

/// A cluster with the manual's two declarations, one of today with an error, and some pods.
struct cluster {
  recording_transport transport;
  std::vector<std::string> pods;
  kube::response rules = recording_transport::refused(404, "NotFound"), policy = rules;
  std::optional<kube::response> pods_answer;

  cluster() {
    transport.answer = [this](const kube::request& request) -> kube::result<kube::response> { return answer(request); };
  }

  kube::response answer(const kube::request& request) {
    const auto& target = request.target;
    if (target.contains("/configmaps")) {
      if (target.contains("%21%3D")) {
        EXPECT_THAT(request.accept, HasSubstr("as=PartialObjectMetadataList"));
        return list_of({config_map("cf-crl-lab-dsp", {}, {}), config_map("kube-root-ca.crt", {}, {})});
      }
      if (target.contains("features.alauda.io")) return list_of({vcuda("core"), vcuda("memory")});
      if (target.contains("features.cpaas.io")) return list_of({fpga()});
      return list_of({});
    }
    if (target.contains("/runtimeclasses"))
      return recording_transport::answered(200, {{"items", {{{"metadata", {{"name", "nvidia"}}}}}}});
    if (target.contains("/resourcerules/default")) return rules;
    if (target.contains("/acceleratorpolicies/default")) return policy;
    if (target.contains("/pods")) return pods_answer ? *pods_answer : page(target);
    return recording_transport::refused(404, "NotFound");
  }
  /// Two pages.
  kube::response page(const std::string& target) const {
    const auto half = static_cast<std::ptrdiff_t>(pods.size() / 2);
    if (target.contains("continue=")) return list_of({pods.begin() + half, pods.end()});
    return list_of({pods.begin(), pods.begin() + half}, "next");
  }
  static std::string vcuda(const std::string& name) {
    texts data{{"key", "tencent.com/vcuda-" + name},
               {"dataType", "integer"},
               {"defaultValue", "20"},
               {"group", "gpu-manager"},
               {"limits", "optional"},
               {"requests", "disabled"},
               {"descriptionZh", name == "core" ? "虚拟核心" : "显存"}};
    if (name == "core") data["labelZh"] = "核心";
    return config_map("cf-crl-gpu-manager-vcuda-" + name, labels("features.alauda.io/", "gpu-manager"), data);
  }
  static std::string fpga() {
    return config_map("cf-crl-lab-fpga", labels("features.cpaas.io/", "lab"),
                      {{"key", "example.com/fpga"},
                       {"dataType", "integer"},
                       {"group", "lab"},
                       {"labelEn", "FPGA"},
                       {"groupI18n", R"({"zh":"实验室","en":"Laboratory"})"},
                       {"limits", "requried"},
                       {"requests", "fromLimits"}});
  }
  inspection look() {
    auto out = reconcilers::run(inspect_resources(transport, "kube-public"));
    EXPECT_TRUE(out) << out.error().message;
    return out ? std::move(*out) : inspection();
  }
};

std::string printed(const inspection& inspection, const std::string& language, const std::string& output = "table") {
  inspect_options options;
  options.style = listing_style(output, language);
  std::ostringstream out;
  print(inspection, options, out);
  return out.str();
}

TEST(inspect, S26_golden_table_of_every_declared_key_in_both_languages) {
  cluster cluster;
  const auto found = cluster.look();
  const auto note = reconcilers::declarations::note_of(found.resources.front().judged, text::language::zh);
  EXPECT_THAT(note, HasSubstr("requried"));
  const auto reason = words::chinese("inspect.resources.reason",
                                     {{"configmap", "cf-crl-lab-fpga"}, {"verdict", "被拒绝"}, {"text", note}});
  EXPECT_EQ(
      printed(found, "zh"),
      "资源名                    名称  组           单位     默认值  LIMITS    REQUESTS    启用  结论    CONFIGMAP\n"
      "example.com/fpga          FPGA  实验室       -        -       ?         fromLimits  是    被拒绝  "
      "cf-crl-lab-fpga\n"
      "tencent.com/vcuda-core    核心  gpu-manager  %        20      optional  disabled    是    有效    "
      "cf-crl-gpu-manager-vcuda-core\n"
      "tencent.com/vcuda-memory  -     gpu-manager  256 MiB  20      optional  disabled    是    有效    "
      "cf-crl-gpu-manager-vcuda-memory\n"
      "\n"
      "名称为 cf-crl-*，但既没有标签 features.cpaas.io/type=CustomResourceLimitation，也没有 "
      "device-plugin.cpaas.io/config=true，因此没有人读取：\n"
      "  kube-public/cf-crl-lab-dsp\n"
      "\n" +
          words::chinese("inspect.resources.reasons") + "\n  " + reason +
          "\n"
          "\n"
          "审计（规则未强制执行）：0 个 Pod 中，有 0 个若现在创建会被拒绝；不会改动它们\n");
  const auto en = printed(found, "en", "wide");
  EXPECT_THAT(en, HasSubstr("RESOURCE                  LABEL  GROUP"));
  EXPECT_THAT(en, HasSubstr("Laboratory"));
  EXPECT_THAT(en, HasSubstr("refused"));
  EXPECT_THAT(en, HasSubstr("cf-crl-gpu-manager-vcuda-core    虚拟核心\n")) << "the other language as fallback";
  for (const auto& request : cluster.transport.sent) EXPECT_EQ(request.verb, kube::method::get);
}

TEST(inspect, names_order_and_header_are_as_in_every_list) {
  cluster cluster;
  const auto found = cluster.look();
  EXPECT_EQ(printed(found, "en", "name"),
            "configmap/cf-crl-lab-fpga\nconfigmap/cf-crl-gpu-manager-vcuda-core\n"
            "configmap/cf-crl-gpu-manager-vcuda-memory\n");
  inspect_options options;
  options.style.sort_by = "configmap";
  options.style.no_headers = true;
  std::ostringstream out;
  print(found, options, out);
  EXPECT_THAT(out.str(), StartsWith("tencent.com/vcuda-core "));
}

TEST(inspect, json_and_yaml_have_both_languages_and_all_findings) {
  cluster cluster;
  const auto found = cluster.look();
  const auto json = nlohmann::json::parse(printed(found, "en", "json"));
  ASSERT_EQ(json.at("resources").size(), 3U);
  const auto& fpga = json.at("resources").at(0);
  EXPECT_EQ(fpga.at("groupName"), (nlohmann::json{{"en", "Laboratory"}, {"zh", "实验室"}}));
  EXPECT_EQ(fpga.at("verdict"), "refused");
  EXPECT_EQ(fpga.at("default"), nullptr);
  EXPECT_EQ(fpga.at("limits"), nullptr) << "what stands there cannot be read";
  EXPECT_EQ(fpga.at("requests"), "fromLimits");
  EXPECT_EQ(fpga.at("enabled"), true);
  EXPECT_EQ(fpga.at("findings").at(0).at("code"), "not_in_vocabulary");
  EXPECT_THAT(fpga.at("findings").at(0).at("message").at("zh").get<std::string>(),
              HasSubstr(words::chinese("declaration.not_in_vocabulary.remedy_with_hint", {{"hint", "required"}})));
  EXPECT_EQ(json.at("resources").at(1).at("label"), (nlohmann::json{{"en", ""}, {"zh", "核心"}}));
  EXPECT_EQ(json.at("resources").at(1).at("default"), 20);
  EXPECT_EQ(json.at("notSelected").at(0).at("name"), "cf-crl-lab-dsp");
  EXPECT_EQ(json.at("audit").at("podsRefused"), 0);
  const auto yaml = text::yaml::read("f", printed(found, "en", "yaml"));
  ASSERT_TRUE(yaml) << yaml.error();
  EXPECT_EQ(*text::yaml::to_json(*yaml->documents.at(0)), json);
}

std::string audit_of(const std::string& mode, std::size_t refused, std::size_t pods) {
  return english("inspect.audit",
                 {{"mode", mode}, {"refused", std::to_string(refused)}, {"pods", std::to_string(pods)}});
}

TEST(inspect, S24_audits_running_pods_page_by_page_and_names_twenty) {
  cluster cluster;
  for (int i = 0; i < 25; ++i)
    cluster.pods.push_back(pod("team", "share-" + std::to_string(10 + i), {{"tencent.com/vcuda-core", 20}}));
  cluster.pods.push_back(pod("team", "whole", {{"tencent.com/vcuda-core", 200}}));
  cluster.pods.push_back(pod("team", "done", {{"tencent.com/vcuda-core", 20}}, "Succeeded"));
  cluster.pods.push_back(
      pod("team", "static", {{"tencent.com/vcuda-core", 20}}, "Running", {{"kubernetes.io/config.mirror", "x"}}));
  cluster.pods.push_back(pod("kube-system", "system", {{"tencent.com/vcuda-core", 20}}));
  cluster.pods.push_back(pod("team", "none", {}));
  cluster.rules = recording_transport::answered(
      200, {{"spec",
             {{"keys", {"tencent.com/vcuda-core"}},
              {"rules", {{"tencent.com/vcuda-core", {{"source", "kube-public/cf-crl-gpu-manager-vcuda-core"}}}}},
              {"groups", nlohmann::json::object()}}}});
  cluster.policy = recording_transport::answered(200, {{"spec", {{"customResources", {{"enforcement", "Deny"}}}}}});
  const auto found = cluster.look();
  const auto text = printed(found, "en");
  EXPECT_THAT(
      text, HasSubstr(english("inspect.audit_list",
                              {{"line", audit_of(english("inspect.audit_enforcement", {{"mode", "Deny"}}), 25, 27)}}) +
                      "\n  team/share-10: " +
                      english("objection.share_needs_partner",
                              {{"container", english("objection.container", {{"name", "main"}})},
                               {"key", "tencent.com/vcuda-core"},
                               {"amount", "20"},
                               {"other", "tencent.com/vcuda-memory"},
                               {"nearest", "100"}})));
  EXPECT_THAT(text, HasSubstr("team/share-29"));
  EXPECT_THAT(text, testing::Not(HasSubstr("team/share-30")));
  EXPECT_THAT(text, HasSubstr("  " + english("inspect.audit_more", {{"number", "5"}}) + "\n"));
  const auto json = nlohmann::json::parse(printed(found, "en", "json"));
  EXPECT_EQ(json.at("audit").at("pods").size(), 25U);
  EXPECT_EQ(json.at("audit").at("enforcement"), "Deny");
  EXPECT_THAT(json.at("audit").at("pods").at(0).at("reasons").at(0).at("zh").get<std::string>(),
              HasSubstr(words::chinese("objection.container", {{"name", "main"}})));
}

TEST(inspect, without_rules_in_the_cluster_those_of_the_config_maps_are_audited) {
  cluster cluster;
  cluster.pods = {pod("team", "a", {{"tencent.com/vcuda-core", 150}}), pod("team", "b", {{"example.com/fpga", 1}})};
  const auto found = cluster.look();
  ASSERT_TRUE(found.audited);
  EXPECT_EQ(found.audited->refused.size(), 1U) << "the refused declaration of fpga holds no one to anything";
  EXPECT_THAT(printed(found, "en"), HasSubstr(audit_of(english("inspect.audit_unenforced"), 1, 2)));
}

TEST(inspect, what_may_not_be_read_is_left_out_and_said) {
  cluster cluster;
  cluster.pods_answer = recording_transport::refused(403, "Forbidden", "pods is forbidden: User \"x\" cannot list");
  const auto found = cluster.look();
  EXPECT_FALSE(found.audited);
  EXPECT_EQ(found.left_out.key, "transport.no_audit");
  const auto line = words_of(found.left_out, text::language::en);
  EXPECT_THAT(line, HasSubstr("list pods: "));
  EXPECT_EQ(std::ranges::count(line, '\n'), 0);
  EXPECT_EQ(found.resources.size(), 3U);
  EXPECT_THAT(printed(found, "en"), testing::Not(HasSubstr("team/")));
  EXPECT_EQ(nlohmann::json::parse(printed(found, "en", "json")).at("audit"), nullptr);
}

TEST(inspect, a_policy_that_may_not_be_read_is_not_taken_for_off) {
  cluster cluster;
  cluster.policy = recording_transport::refused(403, "Forbidden");
  EXPECT_THAT(printed(cluster.look(), "en"),
              HasSubstr(audit_of(english("inspect.audit_enforcement", {{"mode", "unknown"}}), 0, 0)));
}

TEST(inspect, config_maps_that_may_not_be_read_are_an_error) {
  recording_transport transport;
  transport.answer = [](const kube::request&) -> kube::result<kube::response> {
    return recording_transport::refused(403, "Forbidden", "no");
  };
  const auto out = reconcilers::run(inspect_resources(transport, "kube-public"));
  ASSERT_FALSE(out);
  EXPECT_EQ(out.error().code, kube::errc::forbidden);
}

/// With the role for everyone, or rights in one namespace and the rules.
TEST(inspect, without_the_config_maps_the_rules_of_the_operator_are_shown) {
  cluster cluster;
  cluster.pods = {pod("lab", "large", {{"example.com/fpga", 3}}), pod("lab", "fine", {{"example.com/dsp", 1}})};
  cluster.rules = recording_transport::answered(
      200, {{"spec",
             {{"keys", {"example.com/dsp", "example.com/fpga"}},
              {"rules",
               {{"example.com/dsp", {{"source", "kube-public/cf-crl-lab-dsp"}}},
                {"example.com/fpga", {{"source", "kube-public/cf-crl-lab-fpga"}, {"forbidden", true}}}}}}}});
  cluster.transport.answer = [&](const kube::request& request) -> kube::result<kube::response> {
    const bool is_everywhere = request.target.starts_with("/api/v1/pods");
    if (request.target.contains("/configmaps") || is_everywhere)
      return recording_transport::refused(403, "Forbidden", "no");
    return cluster.answer(request);
  };
  const auto found = reconcilers::run(inspect_resources(cluster.transport, "kube-public", "lab"));
  ASSERT_TRUE(found) << found.error().message;
  EXPECT_EQ(found->unseen.key, "inspect.resources.unseen");
  ASSERT_EQ(found->resources.size(), 2U);
  EXPECT_EQ(found->resources[1].declaration.key, "example.com/fpga");
  const auto rows = nlohmann::json::parse(printed(*found, "en", "json"));
  EXPECT_EQ(rows["resources"][1]["limits"], "disabled");
  EXPECT_TRUE(rows["resources"][1]["requests"].is_null()) << "the rules do not say it";
  EXPECT_EQ(rows["audit"]["namespace"], "lab");
  EXPECT_EQ(rows["audit"]["podsLookedAt"], 2);
  EXPECT_EQ(rows["audit"]["pods"][0]["name"], "large");
  EXPECT_EQ(rows["audit"]["podsRefused"], 1);
}

TEST(inspect, the_pods_of_the_own_namespace_are_audited_where_those_of_all_may_not_be_seen) {
  cluster cluster;
  cluster.pods = {pod("lab", "one", {{"tencent.com/vcuda-core", 20}}), pod("lab", "two", {})};
  cluster.transport.answer = [&](const kube::request& request) -> kube::result<kube::response> {
    if (request.target.starts_with("/api/v1/pods")) return recording_transport::refused(403, "Forbidden", "no");
    return cluster.answer(request);
  };
  const auto found = reconcilers::run(inspect_resources(cluster.transport, "kube-public", "lab"));
  ASSERT_TRUE(found && found->audited);
  EXPECT_EQ(found->audited->ns, "lab");
  EXPECT_TRUE(found->unseen.empty());
  EXPECT_FALSE(cluster.look().audited) << "no own namespace is known";
}

TEST(inspect, waits_where_the_server_says_when) {
  cluster cluster;
  int refusals = 2;
  cluster.transport.answer = [&](const kube::request& request) -> kube::result<kube::response> {
    if (refusals-- > 0) {
      auto busy = recording_transport::refused(429, "TooManyRequests");
      busy.retry_after = std::chrono::seconds(0);
      return busy;
    }
    return cluster.answer(request);
  };
  EXPECT_EQ(cluster.look().resources.size(), 3U);
}

TEST(inspect, an_empty_cluster_says_so) {
  inspection none;
  EXPECT_EQ(printed(none, "en"), english("inspect.resources.nothing", {{"namespace", "kube-public"}}) + "\n");
}

}  // namespace
}  // namespace cli
