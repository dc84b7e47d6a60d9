#include "cli/render/render.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <CLI/CLI.hpp>
#include <random>
#include <sstream>

#include "cli/lint/lint.hpp"
#include "cli/verbs.hpp"
#include "reconcilers/declarations/parse.hpp"
#include "test/rounds.hpp"
#include "test/words.hpp"

namespace cli {
namespace {

namespace declarations = reconcilers::declarations;
using testing::HasSubstr, testing::StartsWith;
using words::english;

struct outcome {
  int rc;
  std::string out, err;
};
outcome render(const declaration_options& options) {
  std::ostringstream out, err;
  const int rc = run_render_declaration(options, out, err);
  return {rc, out.str(), err.str()};
}
declaration_options fpga() {
  declaration_options out;
  out.key = "example.com/fpga";
  out.group = "lab";
  return out;
}

TEST(render, S27_writes_a_declaration_of_any_resource) {
  auto options = fpga();
  options.default_value = "1";
  options.label_zh = "FPGA 卡";
  const auto got = render(options);
  EXPECT_EQ(got.rc, 0) << got.err;
  EXPECT_EQ(got.err, "");
  EXPECT_EQ(got.out,
            "apiVersion: v1\n"
            "kind: ConfigMap\n"
            "metadata:\n"
            "  name: cf-crl-lab-fpga\n"
            "  namespace: kube-public\n"
            "  labels:\n"
            "    features.cpaas.io/type: CustomResourceLimitation\n"
            "    features.cpaas.io/group: lab\n"
            "    features.cpaas.io/enabled: \"true\"\n"
            "data:\n"
            "  key: example.com/fpga\n"
            "  dataType: integer\n"
            "  defaultValue: \"1\"\n"
            "  group: lab\n"
            "  labelZh: \"FPGA 卡\"\n"
            "  limits: optional\n"
            "  requests: disabled\n");
}

TEST(render, S21_S23_what_it_writes_is_read_as_it_was_meant) {
  declaration_options options;
  options.key = "huawei.com/Ascend310P";
  options.group = "hami-ascend-vnpu";
  options.dialect = "alauda";
  options.limits = "required";
  options.requests = "fromLimits";
  options.default_value = "20";
  options.unit = "%";
  options.label_en = "on";
  options.label_zh = "\"引号\": #";
  options.description_en = "two\nlines: - {a}";
  options.description_zh = "~";
  options.related = "huawei.com/Ascend310P-memory";
  options.excluded = "tencent.com/vcuda-core,nvidia.com/gpu";
  options.runtime_class = "ascend";
  options.ignore_node_check = options.disabled = true;
  const auto got = render(options);
  ASSERT_EQ(got.rc, 0) << got.err;
  const auto file = text::yaml::read("f", got.out);
  ASSERT_TRUE(file) << file.error();
  const auto manifests = manifests_in(*file);
  const auto map = read_config_map(manifests.at(0));
  const auto [declaration, findings] = declarations::parse(map.view());
  EXPECT_TRUE(findings.empty());
  EXPECT_EQ(declaration.config_map.name, "cf-crl-hami-ascend-vnpu-ascend310p");
  EXPECT_EQ(declaration.written_in, declarations::dialect::alauda);
  EXPECT_EQ(declaration.key, options.key);
  EXPECT_EQ(declaration.limits, declarations::use::required);
  EXPECT_EQ(declaration.requests, declarations::use::from_limits);
  EXPECT_EQ(declaration.default_value, 20);
  EXPECT_EQ(declaration.unit, "%");
  EXPECT_EQ(declaration.label_en, "on");
  EXPECT_EQ(declaration.label_zh, "\"引号\": #");
  EXPECT_EQ(declaration.description_en, "two lines: - {a}") << "shown in one line";
  EXPECT_EQ(declaration.description_zh, "~");
  EXPECT_EQ(declaration.related.size() + declaration.excluded.size(), 3U);
  EXPECT_EQ(declaration.runtime_class, "ascend");
  EXPECT_TRUE(declaration.ignore_node_check);
  EXPECT_FALSE(declaration.enabled);
}

TEST(render, help_names_the_document_of_schedulers) {
  CLI::App app;
  int rc = 0;
  add_render(app, rc);
  EXPECT_THAT(app.get_subcommand("render")->get_footer(), HasSubstr("docs/scheduler-config.md"));
}

/// What is wrong with a field of the declaration.
std::string wrong(const std::string& code, const std::string& field, const std::string& value) {
  return english("declaration." + code + ".wrong", {{"field", field}, {"value", value}});
}

TEST(render, S24_refuses_an_illegal_value_in_one_line) {
  const auto refused = [](auto change) {
    auto options = fpga();
    change(options);
    const auto got = render(options);
    EXPECT_EQ(got.rc, 2);
    EXPECT_EQ(got.out, "");
    EXPECT_EQ(std::ranges::count(got.err, '\n'), 1) << got.err;
    return got.err;
  };
  EXPECT_EQ(refused([](auto& o) { o.limits = "requried"; }),
            "quartermaster: --limits: " +
                text::message_of(wrong("not_in_vocabulary", "data.limits", "requried"), "disabled, required, optional",
                                 english("declaration.not_in_vocabulary.remedy_with_hint", {{"hint", "required"}}),
                                 text::language::en) +
                "\n");
  EXPECT_THAT(refused([](auto& o) { o.key = "fpga"; }),
              StartsWith("quartermaster: --key: " + wrong("key_without_domain", "data.key", "fpga")));
  EXPECT_THAT(refused([](auto& o) { o.default_value = "0.5"; }), StartsWith("quartermaster: --default: "));
  EXPECT_THAT(refused([](auto& o) { o.unit = "个"; }), StartsWith("quartermaster: --unit: "));
  EXPECT_THAT(refused([](auto& o) { o.group = "实验室"; }), StartsWith("quartermaster: --group: "));
  EXPECT_THAT(refused([](auto& o) { o.runtime_class = "NVIDIA"; }),
              HasSubstr(english("declaration.runtime_class_malformed.remedy_with_hint", {{"hint", "nvidia"}})));
  EXPECT_THAT(refused([](auto& o) { o.related = "example.com/fpga"; }),
              HasSubstr(wrong("list_names_itself", "data.relatedResources", "example.com/fpga")));
  EXPECT_THAT(refused([](auto& o) { o.ns = "Kube_Public"; }), StartsWith("quartermaster: -n: "));
  EXPECT_THAT(refused([](auto& o) { o.label_en = "a\x1b[31m"; }), HasSubstr("--label-en"));
  EXPECT_THAT(refused([](auto& o) { o.label_zh = "\xff"; }), HasSubstr("--label-zh"));
  EXPECT_THAT(refused([](auto& o) {
                o.key = "tencent.com/vcuda-core";
                o.default_value = "150";
              }),
              HasSubstr(wrong("default_not_legal", "data.defaultValue", "150")));
  EXPECT_THAT(refused([](auto& o) {
                o.limits = "disabled";
                o.requests = "required";
              }),
              HasSubstr(wrong("impossible_requests", "data.requests", "required")));
}

/// Whatever the flags: refused in one line with nothing written, or what is written has no error and no doubt but those
/// that cannot be seen from here.
TEST(render, S24_whatever_it_writes_passes_lint) {
  std::mt19937 random(4);
  const auto any = [&](std::initializer_list<const char*> choices) {
    return std::string(*(choices.begin() + static_cast<std::ptrdiff_t>(random() % choices.size())));
  };
  const auto text = [&] {
    return any({"",        "",  "FPGA", "卡",   "on",         "1",          "~",  "null", "- a",
                "a: b",    "#", "'",    "\"",   "two\nlines", " ",          "{}", "[",    "&a *a",
                "!!int 3", "%", "a\tb", "0x1F", "1e3",        "2026-11-21", "<<", "|",    "\xe2\x80\xa8"});
  };
  std::size_t written = 0, refused = 0;
  for (int round = 0; round < test::rounds(900, 3000); ++round) {
    declaration_options options;
    options.key = any({"example.com/fpga", "tencent.com/vcuda-core", "huawei.com/Ascend310P", "nvidia.com/gpu", "fpga",
                       "a.kubernetes.io/b", "Example.com/a", "x.y/a_b.c"});
    options.group = any({"lab", "gpu-manager", "hami-nvidia", "G.1_x", "1", "true", "a b", "null"});
    options.dialect = any({"cpaas", "alauda"});
    options.limits = any({"required", "optional", "disabled", "requried"});
    options.requests = any({"required", "optional", "disabled", "fromLimits"});
    options.default_value = any({"", "", "0", "1", "20", "100", "150", "9223372036854775807", "-1", "1e3", " 7 "});
    options.unit = any({"", "count", "%", "Mi", "个"});
    options.related = any({"", "", "example.com/fpga-memory", "tencent.com/vcuda-memory,nvidia.com/gpu", ",", "x"});
    options.excluded = any({"", "", "nvidia.com/mps-core", "example.com/fpga"});
    options.runtime_class = any({"", "", "nvidia", "1", "NVIDIA"});
    options.label_en = text(), options.label_zh = text();
    options.description_en = text(), options.description_zh = text();
    options.ignore_node_check = random() % 2 == 0, options.disabled = random() % 2 == 0;
    const auto got = render(options);
    if (got.rc != 0) {
      ++refused;
      EXPECT_EQ(got.rc, 2);
      EXPECT_EQ(got.out, "");
      EXPECT_EQ(std::ranges::count(got.err, '\n'), 1) << got.err;
      continue;
    }
    ++written;
    lint_options lint_options;
    lint_options.files = {"-"};
    std::istringstream input(got.out);
    std::ostringstream out, err;
    EXPECT_EQ(run_lint(lint_options, input, out, err), 0) << got.out << out.str() << err.str();
    std::istringstream lines(out.str());
    for (std::string line; std::getline(lines, line);)
      EXPECT_TRUE(line.ends_with("[related_unknown]") || line.ends_with("[unusable]")) << line << "\n" << got.out;
  }
  EXPECT_GT(written, test::rounds(50U, 200U));
  EXPECT_GT(refused, 200U);
}

TEST(render, a_resource_nobody_may_use_is_written_and_said) {
  auto options = fpga();
  options.limits = "disabled";
  const auto got = render(options);
  EXPECT_EQ(got.rc, 0);
  EXPECT_THAT(got.out, HasSubstr("limits: disabled\n"));
  EXPECT_THAT(got.err, HasSubstr(english("declaration.unusable.wrong",
                                         {{"field", "data.limits"}, {"value", "disabled"}, {"other", "disabled"}})));
}

TEST(render, related_keys_need_not_be_declared_yet) {
  auto options = fpga();
  options.related = "example.com/fpga-memory";
  const auto got = render(options);
  EXPECT_EQ(got.rc, 0) << got.err;
  EXPECT_EQ(got.err, "");
}

}  // namespace
}  // namespace cli
