#include "kube/exec_plugin.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/wait.h>
#include <unistd.h>

#include <boost/asio/bind_cancellation_slot.hpp>
#include <boost/asio/cancellation_signal.hpp>
#include <boost/asio/co_spawn.hpp>
#include <csignal>
#include <filesystem>
#include <fstream>
#include <nlohmann/json.hpp>

#include "test/facts_in.hpp"
#include "test/kube/loop.hpp"
#include "test/kube/scratch_folder.hpp"

using namespace kube;
using namespace std::chrono_literals;
using kube_test::run;
using kube_test::scratch_folder;
using nlohmann::json;
using testing::HasSubstr;
using testing::Not;

namespace {

exec_config plugin(std::string command) {
  exec_config made;
  made.api_version = "client.authentication.k8s.io/v1";
  made.command = std::move(command);
  made.mode = exec_config::interactive::never;
  return made;
}

std::string credential_text(const std::string& status) {
  return R"({"apiVersion":"client.authentication.k8s.io/v1","kind":"ExecCredential","status":)" + status + "}";
}

}  // namespace

TEST(exec_plugin, a_program_gets_its_arguments_environment_and_information_and_prints_a_token) {
  scratch_folder files;
  boost::asio::io_context loop;
  auto config = plugin(files.program("login", R"sh(#!/bin/sh
read line && exit 9   # stdin must be empty
printf '{"apiVersion":"client.authentication.k8s.io/v1","kind":"ExecCredential","status":{"token":"%s-%s-%s","expirationTimestamp":"2030-01-02T03:04:05Z"}}' \
  "$1" "$REGION" "$(printf %s "$KUBERNETES_EXEC_INFO" | wc -c)"
)sh"));
  config.args = {"arg"};
  config.env = {{"REGION", "eu"}};
  const auto got = run(loop, run_exec_plugin(config, "0123456789"));
  ASSERT_TRUE(got) << got.error().message;
  EXPECT_EQ(got->token, "arg-eu-10");
  EXPECT_EQ(got->expires, std::chrono::sys_days(std::chrono::year(2030) / 1 / 2) + 3h + 4min + 5s);
}

TEST(exec_plugin, a_program_that_is_not_there_is_named_with_its_install_hint) {
  boost::asio::io_context loop;
  auto config = plugin("no-such-program-anywhere");
  config.install_hint = "install it with: brew install nothing";
  const auto got = run(loop, run_exec_plugin(config, ""));
  ASSERT_FALSE(got);
  EXPECT_EQ(got.error().code, errc::config);
  EXPECT_THAT(got.error().message,
              words::has_in_order({"\"no-such-program-anywhere\"", "not found", ": brew install nothing"}));
}

TEST(exec_plugin, a_failure_passes_on_the_last_line_of_stderr_and_nothing_of_stdout) {
  scratch_folder files;
  boost::asio::io_context loop;
  const auto got = run(
      loop, run_exec_plugin(
                plugin(files.program(
                    "p", "#!/bin/sh\necho s3cret\necho noise >&2\necho 'session expired: log in again' >&2\nexit 3\n")),
                ""));
  ASSERT_FALSE(got);
  EXPECT_EQ(got.error().code, errc::config);
  EXPECT_THAT(got.error().message, words::has_in_order({"exit code 3: ", "session expired: log in again"}));
  EXPECT_THAT(got.error().message, Not(HasSubstr("s3cret")));
  EXPECT_THAT(got.error().message, Not(HasSubstr("noise")));
}

TEST(exec_plugin, a_program_that_hangs_is_killed_at_the_limit_with_its_children) {
  scratch_folder files;
  boost::asio::io_context loop;
  const auto program = files.program("p", "#!/bin/sh\necho $$ > " + files.path("pid") + "\nsleep 100\n");
  const auto got = run(loop, run_exec_plugin(plugin(program), "", 300ms));
  ASSERT_FALSE(got);
  EXPECT_EQ(got.error().code, errc::timeout);
  std::ifstream file(files.path("pid"));
  pid_t pid = 0;
  file >> pid;
  ASSERT_GT(pid, 0);
  EXPECT_EQ(::kill(pid, 0), -1);
}

TEST(exec_plugin, a_program_ends_with_this_one_that_ends_by_a_signal) {
  scratch_folder files;
  const auto program = files.program("p", "#!/bin/sh\nsleep 100 &\necho $! > " + files.path("new") + "\nmv " +
                                              files.path("new") + " " + files.path("pid") + "\nwait\n");
  for (const int number : {SIGINT, SIGTERM}) {
    std::filesystem::remove(files.path("pid"));
    const auto child = ::fork();
    if (child == 0) {
      ::signal(number, SIG_DFL);  // a shell that starts the tests in the background has them ignored
      boost::asio::io_context loop;
      (void)run(loop, run_exec_plugin(plugin(program), ""));
      ::_exit(0);
    }
    for (int tries = 0; tries < 500 && !std::filesystem::exists(files.path("pid")); ++tries) ::usleep(10'000);
    std::ifstream file(files.path("pid"));
    pid_t pid = 0;
    file >> pid;
    ASSERT_GT(pid, 0);
    ASSERT_EQ(::kill(child, number), 0);
    int status = 0;
    ASSERT_EQ(::waitpid(child, &status, 0), child);
    EXPECT_TRUE(WIFSIGNALED(status) && WTERMSIG(status) == number) << "ended with " << status;
    // What is left of it until its own parent waits for it is no process any more.
    const auto state = [&] {
      std::ifstream stat("/proc/" + std::to_string(pid) + "/stat");
      std::string id, name, letter = "gone";
      stat >> id >> name >> letter;
      return letter;
    };
    for (int tries = 0; tries < 500 && state() != "gone" && state() != "Z"; ++tries) ::usleep(10'000);
    EXPECT_THAT(state(), testing::AnyOf("gone", "Z"));
  }
}

TEST(exec_plugin, does_not_block_the_loop_and_can_be_cancelled) {
  scratch_folder files;
  boost::asio::io_context loop;
  boost::asio::cancellation_signal stop;
  std::optional<result<exec_credential>> got;
  boost::asio::co_spawn(
      loop, run_exec_plugin(plugin(files.program("p", "#!/bin/sh\nsleep 100\n")), ""),
      boost::asio::bind_cancellation_slot(
          stop.slot(), [&](std::exception_ptr, result<exec_credential> value) { got = std::move(value); }));
  loop.run_for(50ms);
  EXPECT_FALSE(got);
  stop.emit(boost::asio::cancellation_type::terminal);
  loop.run_for(5s);
  ASSERT_TRUE(got);
  ASSERT_FALSE(*got);
  EXPECT_EQ(got->error().code, errc::cancelled);
}

TEST(exec_plugin, inherits_no_descriptor_of_ours) {
  scratch_folder files;
  boost::asio::io_context loop;
  const auto got =
      run(loop, run_exec_plugin(plugin(files.program("p", "#!/bin/sh\nls /proc/self/fd >&2\nexit 1\n")), ""));
  ASSERT_FALSE(got);
  // 0, 1, 2 and the folder that ls itself reads.
  EXPECT_THAT(got.error().message, HasSubstr("exit code 1: 3"));
}

TEST(exec_plugin, reads_client_certificates) {
  const auto got =
      parse_exec_credential(credential_text(R"({"clientCertificateData":"C","clientKeyData":"K"})"), plugin("p"));
  ASSERT_TRUE(got);
  EXPECT_EQ(got->certificate, "C");
  EXPECT_EQ(got->key, "K");
  EXPECT_EQ(got->expires, std::chrono::system_clock::time_point::max());
}

TEST(exec_plugin, refuses_what_is_not_a_credential) {
  const auto reason = [](const std::string& text) {
    const auto got = parse_exec_credential(text, plugin("p"));
    return got ? std::string("accepted") : got.error().message;
  };
  EXPECT_THAT(reason("s3cret"), HasSubstr("not an ExecCredential"));
  EXPECT_THAT(reason("s3cret"), Not(HasSubstr("s3cret")));
  EXPECT_THAT(reason("[]"), HasSubstr("not an ExecCredential"));
  EXPECT_THAT(reason(R"({"apiVersion":"client.authentication.k8s.io/v1beta1","status":{"token":"t"}})"),
              HasSubstr("another apiVersion"));
  EXPECT_THAT(reason(R"({"apiVersion":"client.authentication.k8s.io/v1"})"), HasSubstr("without status"));
  EXPECT_THAT(reason(credential_text("{}")), HasSubstr("neither"));
  EXPECT_THAT(reason(credential_text(R"({"token":"t","clientKeyData":"K"})")), HasSubstr("only one"));
  EXPECT_THAT(reason(credential_text(R"({"token":"t","expirationTimestamp":"tomorrow"})")), HasSubstr("RFC 3339"));
}

TEST(exec_plugin, the_information_is_as_asked_for) {
  cluster_config cluster;
  cluster.server = "https://x:6443";
  cluster.tls_server_name = "api";
  auto config = plugin("p");
  auto info = json::parse(exec_info(config, cluster, "PEM", false));
  EXPECT_EQ(info["kind"], "ExecCredential");
  EXPECT_EQ(info["apiVersion"], config.api_version);
  EXPECT_EQ(info["spec"]["interactive"], false);
  EXPECT_FALSE(info["spec"].contains("cluster"));
  config.provide_cluster_info = true;
  info = json::parse(exec_info(config, cluster, "PEM", true));
  EXPECT_EQ(info["spec"]["interactive"], true);
  EXPECT_EQ(info["spec"]["cluster"]["server"], "https://x:6443");
  EXPECT_EQ(info["spec"]["cluster"]["tls-server-name"], "api");
  EXPECT_EQ(info["spec"]["cluster"]["certificate-authority-data"], "UEVN");
}
