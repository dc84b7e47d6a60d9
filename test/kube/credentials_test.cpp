#include "kube/credentials.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <boost/asio/co_spawn.hpp>
#include <ctime>

#include "test/facts_in.hpp"
#include "test/kube/loop.hpp"
#include "test/kube/scratch_folder.hpp"
#include "test/kube/test_pki.hpp"
#include "test/words.hpp"

using namespace kube;
using namespace kube_test;
using namespace std::chrono_literals;
using testing::HasSubstr;
using testing::Not;

namespace {

std::string seconds_text(std::chrono::system_clock::time_point time) {
  const auto seconds = std::chrono::system_clock::to_time_t(time);
  std::tm parts{};
  gmtime_r(&seconds, &parts);
  char text[32] = {};
  std::strftime(text, sizeof text, "%Y-%m-%dT%H:%M:%SZ", &parts);
  return text;
}

steady_time soon() { return std::chrono::steady_clock::now() + 20s; }

struct credentials_fixture {
  boost::asio::io_context loop;
  scratch_folder files;
  std::chrono::system_clock::time_point now = std::chrono::sys_days(std::chrono::year(2030) / 1 / 2);

  credentials of(user_config user) {
    cluster_config config;
    config.server = "https://x";
    config.user = std::move(user);
    return credentials(loop.get_executor(), std::move(config), [this] { return now; });
  }
  /// A plugin that prints token "t<n>" at its n-th run.
  user_config counting_plugin(const std::string& expires = {}) const {
    user_config user;
    user.exec.emplace();
    user.exec->api_version = "client.authentication.k8s.io/v1";
    user.exec->mode = exec_config::interactive::never;
    user.exec->command = files.program(
        "plugin", "#!/bin/sh\necho x >> " + files.path("runs") + "\nn=$(wc -l < " + files.path("runs") + R"(| tr -d ' ')
[ -e )" + files.path("broken") +
                      R"( ] && { echo 'log in first' >&2; exit 1; }
printf '{"apiVersion":"client.authentication.k8s.io/v1","status":{"token":"t%s")" +
                      (expires.empty() ? "" : ",\"expirationTimestamp\":\"" + expires + "\"") + R"(}}' "$n"
)");
    return user;
  }
};

}  // namespace

TEST(credentials, F19_a_file_is_read_when_it_changed_and_after_a_minute_anyway) {
  scratch_folder files;
  watched_file file(files.write("token", "one"));
  const steady_time start{};
  EXPECT_EQ(file.refresh(start), true);
  EXPECT_EQ(file.text(), "one");
  EXPECT_EQ(file.refresh(start + 1s), false);
  files.write("token", "two");
  EXPECT_EQ(file.refresh(start + 2s), true);
  EXPECT_EQ(file.text(), "two");

  // Changed behind the back of size, inode and time: only the minute helps.
  const auto time = std::filesystem::last_write_time(file.path());
  std::ofstream(file.path()) << "six";
  std::filesystem::last_write_time(file.path(), time);
  EXPECT_EQ(file.refresh(start + 50s), false);
  EXPECT_EQ(file.refresh(start + 63s), true);
  EXPECT_EQ(file.text(), "six");
  EXPECT_EQ(file.refresh(start + 64s, true), false);
}

TEST(credentials, a_missing_file_is_an_error_and_keeps_what_was_read) {
  scratch_folder files;
  watched_file file(files.write("token", "one"));
  ASSERT_TRUE(file.refresh(steady_time{}));
  std::filesystem::remove(file.path());
  const auto got = file.refresh(steady_time{} + 1s);
  ASSERT_FALSE(got);
  EXPECT_THAT(got.error().message, words::has_in_order({file.path(), "No such file"}));
  EXPECT_EQ(file.text(), "one");
}

TEST(credentials, tokens_and_passwords_become_headers) {
  credentials_fixture f;
  user_config user;
  user.token = "abc\n";
  EXPECT_EQ(run(f.loop, f.of(user).current(soon()))->authorization, "Bearer abc");
  user_config basic;
  basic.username = "jane";
  basic.password = "pw";
  EXPECT_EQ(run(f.loop, f.of(basic).current(soon()))->authorization, "Basic amFuZTpwdw==");
  EXPECT_EQ(run(f.loop, f.of(user_config()).current(soon()))->authorization, "");
}

TEST(credentials, a_token_with_two_lines_cannot_smuggle_a_header_in) {
  credentials_fixture f;
  user_config user;
  user.token_file = f.files.write("token", "s3cret\r\nImpersonate-User: admin");
  const auto got = run(f.loop, f.of(user).current(soon()));
  ASSERT_FALSE(got);
  EXPECT_EQ(got.error().code, errc::config);
  EXPECT_EQ(got.error().message,
            words::english("kubeconfig.more_lines", {{"key", "token"}, {"file", user.token_file}}));
  EXPECT_THAT(got.error().message, Not(HasSubstr("s3cret")));
}

TEST(credentials, F19_a_token_file_that_is_gone_or_empty_for_a_moment_does_not_log_us_out) {
  credentials_fixture f;
  user_config user;
  user.token_file = f.files.write("token", "one");
  auto credentials = f.of(user);
  ASSERT_TRUE(run(f.loop, credentials.current(soon())));
  f.files.write("token", "");
  EXPECT_EQ(run(f.loop, credentials.current(soon()))->authorization, "Bearer one");
  std::filesystem::remove(user.token_file);
  EXPECT_EQ(run(f.loop, credentials.current(soon()))->authorization, "Bearer one");
  f.files.write("token", "two");
  EXPECT_EQ(run(f.loop, credentials.current(soon()))->authorization, "Bearer two");
}

TEST(credentials, a_password_in_a_file_is_read_again) {
  credentials_fixture f;
  user_config user;
  user.username_file = f.files.write("username", "jane\n");
  user.password_file = f.files.write("password", "pw\n");
  auto credentials = f.of(user);
  EXPECT_EQ(run(f.loop, credentials.current(soon()))->authorization, "Basic amFuZTpwdw==");
  f.files.write("password", "");
  EXPECT_EQ(run(f.loop, credentials.current(soon()))->authorization, "Basic amFuZTpwdw==");
  f.files.write("password", "pw2");
  EXPECT_EQ(run(f.loop, credentials.current(soon()))->authorization, "Basic amFuZTpwdzI=");
  user.password_file = f.files.write("other", "pw\r\nX-Header: 1");
  const auto got = run(f.loop, f.of(user).current(soon()));
  ASSERT_FALSE(got);
  EXPECT_EQ(got.error().message,
            words::english("kubeconfig.more_lines", {{"key", "password"}, {"file", user.password_file}}));
}

TEST(credentials, a_mismatched_pair_is_refused_at_the_start) {
  credentials_fixture f;
  test_ca ca;
  user_config user;
  user.certificate.data = ca.issue().certificate;
  user.key.data = ca.issue().key;
  const auto got = run(f.loop, f.of(user).current(soon()));
  ASSERT_FALSE(got);
  EXPECT_EQ(got.error().code, errc::config);
  EXPECT_EQ(got.error().message, words::english("kubeconfig.no_pair", {{"name", "inline data"}}));
}

TEST(credentials, a_plugin_runs_once_for_all_callers_and_is_kept_until_it_expires) {
  credentials_fixture f;
  auto credentials = f.of(f.counting_plugin("2099-01-01T00:00:00Z"));
  std::vector<std::string> got;
  for (int i = 0; i < 5; ++i)
    boost::asio::co_spawn(f.loop, credentials.current(soon()), [&](std::exception_ptr, result<credential> value) {
      got.push_back(value ? value->authorization : value.error().message);
    });
  ASSERT_TRUE(turn(f.loop, [&] { return got.size() == 5; }));
  EXPECT_THAT(got, testing::Each("Bearer t1"));
  EXPECT_EQ(run(f.loop, credentials.current(soon()))->authorization, "Bearer t1");
}

TEST(credentials, an_expired_plugin_credential_is_renewed) {
  credentials_fixture f;
  auto credentials = f.of(f.counting_plugin("2001-01-01T00:00:00Z"));
  EXPECT_EQ(run(f.loop, credentials.current(soon()))->authorization, "Bearer t1");
  EXPECT_EQ(run(f.loop, credentials.current(soon()))->authorization, "Bearer t2");
}

TEST(credentials, an_old_plugin_credential_serves_until_its_end_while_another_is_fetched) {
  credentials_fixture f;
  const auto ends = f.now + 5s;
  auto credentials = f.of(f.counting_plugin(seconds_text(ends)));
  ASSERT_EQ(run(f.loop, credentials.current(soon()))->authorization, "Bearer t1");
  f.files.write("broken", "");
  f.now = ends - 2400ms;  // past half its life
  for (int i = 0; i < 3; ++i) {
    const auto got = run(f.loop, credentials.current(soon()));
    ASSERT_TRUE(got) << got.error().message;
    EXPECT_EQ(got->authorization, "Bearer t1");
  }
  EXPECT_TRUE(turn(f.loop, [&] { return std::filesystem::file_size(f.files.path("runs")) == 4; })) << "two runs";
  EXPECT_EQ(run(f.loop, credentials.current(soon()))->authorization, "Bearer t1")
      << "it failed, and the old one is still good";
  f.now = ends;
  const auto expired = run(f.loop, credentials.current(soon()));
  ASSERT_FALSE(expired);
  EXPECT_THAT(expired.error().message, HasSubstr("log in first"));
  std::filesystem::remove(f.files.path("broken"));
  EXPECT_EQ(run(f.loop, credentials.current(soon()))->authorization.substr(0, 8), "Bearer t");
}

TEST(credentials, F19_a_401_runs_the_plugin_again_once_for_all_who_got_it) {
  credentials_fixture f;
  auto credentials = f.of(f.counting_plugin());
  const auto first = run(f.loop, credentials.current(soon()));
  ASSERT_TRUE(first);
  EXPECT_EQ(run(f.loop, credentials.renew(first->serial, soon())), true);
  EXPECT_EQ(run(f.loop, credentials.renew(first->serial, soon())), true) << "renewed already by the other";
  EXPECT_EQ(run(f.loop, credentials.current(soon()))->authorization, "Bearer t2");
}

TEST(credentials, a_failing_plugin_is_an_error_that_goes_away_with_its_cause) {
  credentials_fixture f;
  auto credentials = f.of(f.counting_plugin());
  f.files.write("broken", "");
  const auto got = run(f.loop, credentials.current(soon()));
  ASSERT_FALSE(got);
  EXPECT_THAT(got.error().message, HasSubstr("log in first"));
  std::filesystem::remove(f.files.path("broken"));
  EXPECT_EQ(run(f.loop, credentials.current(soon()))->authorization, "Bearer t2");
}

TEST(credentials, O7_a_plugin_that_cannot_be_started_is_said_at_once) {
  credentials_fixture f;
  user_config user = f.counting_plugin();
  user.exec->command = f.files.path("nowhere");
  auto credentials = f.of(user);
  const auto got = run(f.loop, credentials.current(std::chrono::steady_clock::now() + 100s));
  ASSERT_FALSE(got);
  EXPECT_THAT(got.error().message, HasSubstr("not found"));
}

TEST(credentials, a_caller_waits_for_the_plugin_no_longer_than_its_deadline) {
  credentials_fixture f;
  user_config user = f.counting_plugin();
  user.exec->command = f.files.program("slow", "#!/bin/sh\nsleep 100\n");
  auto credentials = f.of(user);
  const auto got = run(f.loop, credentials.current(std::chrono::steady_clock::now() + 50ms));
  ASSERT_FALSE(got);
  EXPECT_EQ(got.error().code, errc::timeout);
  EXPECT_THAT(got.error().message, HasSubstr("still running"));
}
