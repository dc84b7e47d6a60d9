#include "cli/cluster/refusal.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "test/english.hpp"
#include "text/messages.hpp"

namespace cli {
namespace {

TEST(role_hint, a_refused_read_names_the_role_that_allows_it) {
  const auto hint = [](kube::errc code, std::string message) {
    return role_hint({code, 403, std::move(message), std::nullopt}).key;
  };
  EXPECT_EQ(hint(kube::errc::forbidden, "list nodes: 403 Forbidden"), "transport.hint.user");
  EXPECT_EQ(hint(kube::errc::forbidden, "get nodes gpu-1: 403 Forbidden"), "transport.hint.user");
  EXPECT_EQ(hint(kube::errc::forbidden, "list configmaps: 403 Forbidden"), "transport.hint.declarations");
  EXPECT_EQ(hint(kube::errc::forbidden, "list acceleratorusages: 403 Forbidden"), "transport.hint.usage");
  EXPECT_EQ(hint(kube::errc::forbidden, "create pods: 403 Forbidden"), "");
  EXPECT_EQ(hint(kube::errc::not_found, "list nodes: 404"), "");
}

TEST(refusal, golden_words_of_every_code_quote_its_line_in_Chinese) {
  for (int i = 0; i <= static_cast<int>(kube::errc::decode); ++i) {
    const kube::error error{static_cast<kube::errc>(i), 0, "list nodes: it is not as it was", std::nullopt};
    const auto phrase = phrase_of(error);
    EXPECT_NE(text::pattern_of(phrase.key, text::language::en), "") << phrase.key;
    EXPECT_NE(text::pattern_of(phrase.key, text::language::zh), "") << phrase.key;
    const auto chinese = words_of(phrase, text::language::zh);
    EXPECT_TRUE(chinese.contains(error.message)) << chinese;
    EXPECT_FALSE(words::has_english_sentence(chinese)) << chinese;
  }
}

TEST(role_hint, golden_of_the_commands_that_would_allow_it) {
  const auto hint = [](const std::string& message) {
    return words_of(role_hint({kube::errc::forbidden, 403, message, std::nullopt}), text::language::en);
  };
  EXPECT_THAT(hint("list nodes: 403 nodes is forbidden: User \"alice\" cannot list resource \"nodes\""),
              testing::EndsWith("by: kubectl create clusterrolebinding quartermaster-user-alice "
                                "--clusterrole=quartermaster-user --user=alice; and for declarations: kubectl create "
                                "rolebinding quartermaster-user-alice --namespace=kube-public "
                                "--role=quartermaster-user --user=alice"));
  EXPECT_THAT(hint("list configmaps: 403 configmaps is forbidden: User \"system:serviceaccount:lab:sci\" cannot list "
                   "resource \"configmaps\" in API group \"\" in the namespace \"platform\""),
              testing::EndsWith("by: kubectl create rolebinding quartermaster-user-system-serviceaccount-lab-sci "
                                "--namespace=platform --role=quartermaster-user --serviceaccount=lab:sci"));
  EXPECT_THAT(hint("list pods: User \"O'Hara $(x)\" cannot"), testing::HasSubstr("--user='O'\\''Hara $(x)'"));
}

}  // namespace
}  // namespace cli
