#include "cli/cluster/declaration_registry.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "cli/lint/unoffered.hpp"
#include "test/cli/wire_objects.hpp"
#include "test/reconcilers/recording_transport.hpp"
#include "test/words.hpp"
#include "text/messages.hpp"
#include "text/text.hpp"

namespace cli {
namespace {

using cli_test::config_map, cli_test::texts;
using reconcilers::recording_transport;
using testing::HasSubstr;

const texts labels{{"features.cpaas.io/type", "CustomResourceLimitation"},
                   {"features.cpaas.io/group", "lab"},
                   {"features.cpaas.io/enabled", "true"}};

texts data(const std::string& key, const std::string& limits) {
  return {{"key", key}, {"dataType", "integer"}, {"group", "lab"}, {"limits", limits}, {"requests", "disabled"}};
}

kube::response answered(const kube::request& request) {
  kube::response out;
  out.status = request.target.contains("/configmaps") ? 200 : 404;
  out.content_type = "application/vnd.kubernetes.protobuf";
  if (request.target.contains("features.cpaas.io"))
    out.body = cli_test::list_body({config_map("cf-crl-lab-fpga", labels, data("example.com/fpga", "requried")),
                                    config_map("cf-crl-lab-dsp", labels, data("example.com/dsp", "optional"))});
  else
    out.body = cli_test::list_body({});
  return out;
}

/// A key whose declaration was refused is answered with that declaration, and not with its absence.
TEST(declaration_registry, F36_golden_reason_of_a_refused_declaration) {
  recording_transport transport;
  transport.answer = answered;
  const auto refused = reconcilers::run(read_refused_declarations(transport));
  ASSERT_TRUE(refused) << refused.error().message;
  ASSERT_EQ(refused->size(), 1U);
  const auto& declaration = refused->front();
  EXPECT_EQ(declaration.config_map.to_string(), "kube-public/cf-crl-lab-fpga");
  EXPECT_EQ(declaration.key, "example.com/fpga");
  EXPECT_THAT(declaration.reason, HasSubstr("requried"));
  EXPECT_TRUE(text::has_cjk(declaration.reason_zh));

  known_resources known;
  known.add_refused(*refused);
  for (const auto locale : {text::language::en, text::language::zh})
    EXPECT_EQ(known.text_of("example.com/fpga", locale), text::message("explain.no_offer_as_refused", locale,
                                                                       {{"key", "example.com/fpga"},
                                                                        {"configmap", "kube-public/cf-crl-lab-fpga"},
                                                                        {"text", declaration.reason_in(locale)}}));
  EXPECT_EQ(known.text_of("example.com/other", text::language::en),
            words::english("explain.no_offer", {{"key", "example.com/other"}}));
}

TEST(declaration_registry, without_the_right_to_read_declarations_it_is_not_said_that_none_is_refused) {
  recording_transport transport;
  transport.answer = [](const kube::request&) { return recording_transport::refused(403, "Forbidden"); };
  EXPECT_FALSE(reconcilers::run(read_refused_declarations(transport)));
}

}  // namespace
}  // namespace cli
