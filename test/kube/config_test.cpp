#include "kube/config.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/stat.h>

#include <map>

#include "kube/config_fault.hpp"
#include "test/english.hpp"
#include "test/kube/scratch_folder.hpp"
#include "test/words.hpp"

using namespace kube;
using kube_test::scratch_folder;
using testing::ElementsAre;
using testing::HasSubstr;
using testing::Not;

namespace {

constexpr auto pem_text = "-----BEGIN CERTIFICATE-----\nAAAA\n-----END CERTIFICATE-----\n";

environment with(std::map<std::string, std::string> variables, std::string service_account = "/nonexistent") {
  environment env;
  env.variable = [variables = std::move(variables)](const char* name) -> std::optional<std::string> {
    const auto found = variables.find(name);
    return found == variables.end() ? std::nullopt : std::optional(found->second);
  };
  env.service_account = std::move(service_account);
  return env;
}

result<cluster_config> load(const std::vector<std::string>& files, const config_options& choose = config_options()) {
  return load_kubeconfig(files, choose);
}

std::string two_contexts() {
  return R"(apiVersion: v1
kind: Config
current-context: dev
clusters:
- name: dev
  cluster: {server: "https://dev:6443/", certificate-authority-data: )" +
         base64_encode(pem_text) + R"(}
- name: prod
  cluster: {server: "https://prod:6443", tls-server-name: api, insecure-skip-tls-verify: true, proxy-url: "http://proxy:3128"}
users:
- name: jane
  user: {token: t-jane, as: boss, as-uid: u, as-groups: [a, b], as-user-extra: {scopes: [x, y]}}
- name: bot
  user: {username: bot, password: pw}
contexts:
- name: dev
  context: {cluster: dev, user: jane, namespace: team}
- name: prod
  context: {cluster: prod, user: bot}
)";
}

}  // namespace

TEST(config, reads_the_current_context) {
  scratch_folder files;
  const auto file = files.write("config", two_contexts());
  const auto got = load({file});
  ASSERT_TRUE(got) << got.error().message;
  EXPECT_EQ(got->server, "https://dev:6443");
  EXPECT_EQ(got->ca.data, pem_text);
  EXPECT_EQ(got->user.token, "t-jane");
  EXPECT_EQ(got->user.as_user, "boss");
  EXPECT_EQ(got->user.as_uid, "u");
  EXPECT_THAT(got->user.as_groups, ElementsAre("a", "b"));
  ASSERT_EQ(got->user.as_extra.size(), 1u);
  EXPECT_EQ(got->user.as_extra[0].first, "scopes");
  EXPECT_THAT(got->user.as_extra[0].second, ElementsAre("x", "y"));
  EXPECT_EQ(got->ns, "team");
  EXPECT_EQ(got->context, "dev");
  EXPECT_EQ(got->source, file);
}

TEST(config, another_context_cluster_user_or_namespace_can_be_chosen) {
  scratch_folder files;
  const auto file = files.write("config", two_contexts());
  config_options choose;
  choose.context = "prod";
  auto got = load({file}, choose);
  ASSERT_TRUE(got) << got.error().message;
  EXPECT_EQ(got->server, "https://prod:6443");
  EXPECT_EQ(got->tls_server_name, "api");
  EXPECT_TRUE(got->insecure);
  EXPECT_EQ(got->proxy_url, "http://proxy:3128");
  EXPECT_EQ(got->user.username, "bot");
  EXPECT_EQ(got->ns, "default");
  choose.user = "jane";
  choose.cluster = "dev";
  choose.ns = "other";
  got = load({file}, choose);
  ASSERT_TRUE(got);
  EXPECT_EQ(got->server, "https://dev:6443");
  EXPECT_EQ(got->user.token, "t-jane");
  EXPECT_EQ(got->ns, "other");
}

TEST(config, several_files_are_merged_and_the_first_value_wins) {
  scratch_folder files;
  const auto first = files.write("first", R"(clusters: [{name: c, cluster: {server: "https://first"}}]
contexts: [{name: one, context: {cluster: c, user: u}}]
)");
  const auto second = files.write("second", R"(current-context: one
clusters: [{name: c, cluster: {server: "https://second"}}]
users: [{name: u, user: {token: from-second}}]
)");
  const auto env = with({{"KUBECONFIG", first + "::" + files.path("missing") + ":" + second}});
  const auto got = load_config(config_options(), env);
  ASSERT_TRUE(got) << got.error().message;
  EXPECT_EQ(got->server, "https://first");
  EXPECT_EQ(got->user.token, "from-second");
  EXPECT_EQ(got->source, first);
}

TEST(config, the_flag_comes_before_the_variable_the_pod_and_the_home_folder) {
  scratch_folder files;
  const auto account = files.path("account");
  std::filesystem::create_directories(account);
  std::filesystem::create_directories(files.path("home/.kube"));
  files.write("account/token", "t");
  files.write("account/ca.crt", pem_text);
  files.write("account/namespace", "mine\n");
  const auto named = [](const std::string& host) {
    return "current-context: x\nclusters: [{name: x, cluster: {server: \"https://" + host +
           "\"}}]\ncontexts: [{name: x, context: {cluster: x}}]\n";
  };
  config_options options;
  options.kubeconfig = files.write("flag", named("flag"));
  files.write("home/.kube/config", named("home"));
  const std::map<std::string, std::string> pod{
      {"KUBERNETES_SERVICE_HOST", "10.0.0.1"}, {"KUBERNETES_SERVICE_PORT", "443"}, {"HOME", files.path("home")}};
  auto all = pod;
  all["KUBECONFIG"] = files.write("variable", named("variable"));
  EXPECT_EQ(load_config(options, with(all, account))->server, "https://flag");
  EXPECT_EQ(load_config(config_options(), with(all, account))->server, "https://variable");
  const auto in_cluster = load_config(config_options(), with(pod, account));
  ASSERT_TRUE(in_cluster) << in_cluster.error().message;
  EXPECT_EQ(in_cluster->server, "https://10.0.0.1:443");
  EXPECT_EQ(in_cluster->ns, "mine");
  EXPECT_EQ(in_cluster->user.token_file, account + "/token");
  EXPECT_EQ(in_cluster->ca.path, account + "/ca.crt");
  EXPECT_EQ(load_config(config_options(), with(pod))->server, "https://home");
  const auto none = load_config(config_options(), with({{"HOME", files.path("nobody")}}));
  ASSERT_FALSE(none);
  EXPECT_EQ(none.error().message,
            words::english("kubeconfig.no_cluster", {{"file", files.path("nobody/.kube/config")}}));
}

TEST(config, an_ipv6_service_address_gets_brackets) {
  scratch_folder files;
  files.write("token", "t");
  files.write("ca.crt", pem_text);
  const auto got = load_in_cluster(
      with({{"KUBERNETES_SERVICE_HOST", "fd00::1"}, {"KUBERNETES_SERVICE_PORT", "6443"}}, files.path("")));
  ASSERT_TRUE(got) << got.error().message;
  EXPECT_EQ(got->server, "https://[fd00::1]:6443");
  EXPECT_EQ(got->ns, "default");
}

TEST(config, relative_paths_count_from_the_files_own_folder_and_data_wins) {
  scratch_folder files;
  files.write("ca.crt", pem_text);
  files.write("tls.crt", pem_text);
  files.write("tls.key", pem_text);
  files.write("token", "t");
  const auto file = files.write("config", R"(current-context: x
clusters: [{name: x, cluster: {server: "https://x", certificate-authority: ca.crt}}]
users: [{name: x, user: {client-certificate: ./tls.crt, client-certificate-data: )" +
                                              base64_encode(pem_text) + R"(, client-key: tls.key, tokenFile: token}}]
contexts: [{name: x, context: {cluster: x, user: x}}]
)");
  const auto got = load({file});
  ASSERT_TRUE(got) << got.error().message;
  EXPECT_EQ(got->ca.path, files.path("ca.crt"));
  EXPECT_EQ(got->user.certificate.data, pem_text);
  EXPECT_EQ(got->user.certificate.path, "");
  EXPECT_EQ(got->user.key.path, files.path("tls.key"));
  EXPECT_EQ(got->user.token_file, files.path("token"));
}

TEST(config, reads_an_exec_plugin) {
  scratch_folder files;
  const auto file = files.write("config", R"(current-context: x
clusters: [{name: x, cluster: {server: "https://x"}}]
users:
- name: x
  user:
    exec:
      apiVersion: client.authentication.k8s.io/v1
      command: ./bin/login
      args: [--cluster, x]
      env: [{name: REGION, value: eu}]
      installHint: ask the platform team
      provideClusterInfo: true
      interactiveMode: Never
contexts: [{name: x, context: {cluster: x, user: x}}]
)");
  const auto got = load({file});
  ASSERT_TRUE(got) << got.error().message;
  ASSERT_TRUE(got->user.exec);
  const auto& exec = *got->user.exec;
  EXPECT_EQ(exec.command, files.path("bin/login"));
  EXPECT_THAT(exec.args, ElementsAre("--cluster", "x"));
  EXPECT_THAT(exec.env, ElementsAre(std::pair<std::string, std::string>("REGION", "eu")));
  EXPECT_EQ(exec.install_hint, "ask the platform team");
  EXPECT_TRUE(exec.provide_cluster_info);
  EXPECT_EQ(exec.mode, exec_config::interactive::never);
}

// Each row: a file, and what the one line must say: its code, and facts.
struct wrong_file {
  const char* name;
  std::string text, code;
  std::vector<std::string> facts;
};

class config_errors : public testing::TestWithParam<wrong_file> {};

TEST_P(config_errors, say_what_where_and_what_to_do) {
  scratch_folder files;
  const auto file = files.write("config", GetParam().text);
  const auto got = load({file});
  ASSERT_FALSE(got);
  EXPECT_EQ(got.error().code, errc::config);
  EXPECT_THAT(got.error().message, Not(HasSubstr("\n")));
  EXPECT_THAT(got.error().message, HasSubstr(file));
  for (const auto& fact : GetParam().facts) EXPECT_THAT(got.error().message, HasSubstr(fact));
}

TEST_P(config_errors, have_words_in_each_language) {
  scratch_folder files;
  config_options options;
  options.kubeconfig = files.write("config", GetParam().text);
  const auto got = config_in_words(options, with({}));
  ASSERT_FALSE(got);
  EXPECT_EQ(got.error().key, "kubeconfig." + GetParam().code);
  const auto chinese = words_of(got.error(), text::language::zh);
  EXPECT_FALSE(words::has_english_sentence(chinese)) << chinese;
  for (const auto& fact : GetParam().facts) EXPECT_THAT(chinese, HasSubstr(fact));
}

namespace {

std::string one(const std::string& cluster, const std::string& user = "{}") {
  return "current-context: x\nclusters:\n- name: x\n  cluster: " + cluster + "\nusers:\n- name: x\n  user: " + user +
         "\ncontexts: [{name: x, context: {cluster: x, user: x}}]\n";
}
std::string user(const std::string& text) { return one("{server: \"https://x\"}", text); }
std::string exec(const std::string& text) { return user("{exec: " + text + "}"); }

}  // namespace

INSTANTIATE_TEST_SUITE_P(
    rows, config_errors,
    testing::Values(
        wrong_file{"not_yaml", "clusters:\n- name: [\n", "no_yaml", {"config:3"}},
        wrong_file{"not_a_map", "- a\n", "no_kubeconfig", {}},
        wrong_file{"not_a_list", "clusters: 3\n", "no_list", {"config:1", "clusters"}},
        wrong_file{"no_name", "clusters:\n- cluster: {}\n", "no_name", {"config:2"}},
        wrong_file{"no_current", "clusters: []\n", "no_context", {}},
        wrong_file{"no_such_context",
                   "current-context: z\ncontexts: [{name: a, context: {}}, {name: b, context: {}}]\n",
                   "unknown",
                   {"z", "a, b"}},
        wrong_file{"no_such_cluster",
                   "current-context: a\ncontexts: [{name: a, context: {cluster: q}}]\n",
                   "none",
                   {"cluster", "q"}},
        wrong_file{"no_such_user",
                   "current-context: a\nclusters: [{name: c, cluster: {server: \"https://x\"}}]\ncontexts: [{name: a, "
                   "context: {cluster: c, user: q}}]\n",
                   "none",
                   {"user", "q"}},
        wrong_file{"clear_text", one("{server: \"http://x:8080\"}"), "server", {"config:4", "http://x:8080"}},
        wrong_file{"bad_base64",
                   one("{server: \"https://x\", certificate-authority-data: \"%%%\"}"),
                   "no_base64",
                   {"config:4", "certificate-authority-data"}},
        wrong_file{"base64_of_something_else",
                   one("{server: \"https://x\", certificate-authority-data: aGVsbG8=}"),
                   "no_pem",
                   {"config:4"}},
        wrong_file{"missing_ca",
                   one("{server: \"https://x\", certificate-authority: nowhere.crt}"),
                   "no_file",
                   {"config:4", "nowhere.crt"}},
        wrong_file{"both_ca_and_insecure",
                   one("{server: \"https://x\", insecure-skip-tls-verify: true, certificate-authority-data: " +
                       base64_encode(pem_text) + "}"),
                   "insecure_with_ca",
                   {}},
        wrong_file{"not_a_bool",
                   one("{server: \"https://x\", insecure-skip-tls-verify: yes please}"),
                   "no_boolean",
                   {"config:4", "yes please"}},
        wrong_file{"half_a_pair",
                   user("{client-certificate-data: " + base64_encode(pem_text) + "}"),
                   "half_a_pair",
                   {"config:7"}},
        wrong_file{"missing_token_file", user("{tokenFile: gone}"), "no_token_file", {"config:7", "gone"}},
        wrong_file{"token_not_a_string", user("{token: [1]}"), "no_text", {"config:7", "token"}},
        wrong_file{"users_not_a_list", "users: {jane: {}}\n", "no_list", {"config:1", "users"}},
        wrong_file{"user_not_a_map", user("7"), "no_map", {"config:7", "users[x].user"}},
        wrong_file{"server_not_a_string", one("{server: []}"), "no_text", {"config:4", "clusters[x].cluster.server"}},
        wrong_file{"groups_not_a_list", user("{as-groups: a}"), "no_list", {"config:7", "users[x].user.as-groups"}},
        wrong_file{"group_not_a_string", user("{as-groups: [a, [b]]}"), "no_text", {"users[x].user.as-groups[1]"}},
        wrong_file{"extra_not_a_map", user("{as-user-extra: [a]}"), "no_map", {"users[x].user.as-user-extra"}},
        wrong_file{"extra_not_a_list", user("{as-user-extra: {a: b}}"), "no_list", {"users[x].user.as-user-extra.a"}},
        wrong_file{"exec_not_a_map", exec("7"), "no_map", {"config:7", "users[x].user.exec"}},
        wrong_file{"args_not_a_list",
                   exec("{apiVersion: client.authentication.k8s.io/v1, command: c, args: 7}"),
                   "no_list",
                   {"config:7", "users[x].user.exec.args"}},
        wrong_file{"arg_not_a_string",
                   exec("{apiVersion: client.authentication.k8s.io/v1, command: c, args: [a, {b: c}]}"),
                   "no_text",
                   {"users[x].user.exec.args[1]"}},
        wrong_file{"env_not_a_list",
                   exec("{apiVersion: client.authentication.k8s.io/v1, command: c, env: {A: b}}"),
                   "no_list",
                   {"users[x].user.exec.env"}},
        wrong_file{"env_not_a_map",
                   exec("{apiVersion: client.authentication.k8s.io/v1, command: c, env: [A]}"),
                   "no_map",
                   {"users[x].user.exec.env[0]"}},
        wrong_file{"env_without_name",
                   exec("{apiVersion: client.authentication.k8s.io/v1, command: c, env: [{value: b}]}"),
                   "no_name",
                   {"users[x].user.exec.env"}},
        wrong_file{"token_file_is_a_device", user("{tokenFile: /dev/zero}"), "wrong_file", {"config:7", "/dev/zero"}},
        wrong_file{"ca_is_a_folder",
                   one("{server: \"https://x\", certificate-authority: /tmp}"),
                   "wrong_file",
                   {"config:4", "clusters[x].cluster.certificate-authority"}},
        wrong_file{"auth_provider", user("{auth-provider: {name: gcp}}"), "auth_provider", {"config:7"}},
        wrong_file{"exec_version",
                   exec("{apiVersion: client.authentication.k8s.io/v1alpha1, command: c}"),
                   "exec_version",
                   {"config:7", "v1alpha1"}},
        wrong_file{"exec_command",
                   exec("{apiVersion: client.authentication.k8s.io/v1, interactiveMode: Never}"),
                   "exec_command",
                   {"config:7"}},
        wrong_file{
            "exec_mode", exec("{apiVersion: client.authentication.k8s.io/v1, command: c}"), "exec_mode", {"config:7"}}),
    [](const auto& row) { return row.param.name; });

TEST(config, a_file_that_does_not_exist_is_named) {
  config_options options;
  options.kubeconfig = "/nonexistent/config";
  const auto got = load_config(options, with({}));
  ASSERT_FALSE(got);
  EXPECT_EQ(got.error().message, words::english("kubeconfig.absent", {{"list", "/nonexistent/config"}}));
}

TEST(config, a_pipe_in_place_of_a_file_is_not_waited_for) {
  scratch_folder files;
  ASSERT_EQ(::mkfifo(files.path("pipe").c_str(), 0600), 0);
  config_options options;
  options.kubeconfig = files.path("pipe");
  const auto whole = config_in_words(options, with({}));
  ASSERT_FALSE(whole);
  EXPECT_THAT(words::line_of(whole.error()), HasSubstr("file.pipe"));
  cluster_config config;
  config.user.token_file = files.path("pipe");
  EXPECT_THAT(words::line_of(fault_of_credentials(config)), HasSubstr("file.pipe"));
  config = {};
  config.ca.path = files.path("pipe");
  EXPECT_THAT(words::line_of(fault_of_credentials(config)), HasSubstr("file.pipe"));
}

TEST(config, a_token_or_certificate_in_utf_16_is_named_as_such) {
  scratch_folder files;
  cluster_config config;
  config.user.token_file = config.ca.path = files.write("utf16", std::string("\xff\xfet\0", 4));
  EXPECT_EQ(fault_of_credentials(config).key, "kubeconfig.utf16_file");
  config.ca.path.clear();
  EXPECT_EQ(fault_of_credentials(config).key, "kubeconfig.utf16_file");
}

TEST(config, a_fault_shows_no_secret) {
  scratch_folder files;
  const auto got = load({files.write("config", user("{token: s3cret, client-key-data: '###'}"))});
  ASSERT_FALSE(got);
  EXPECT_THAT(got.error().message, Not(HasSubstr("s3cret")));
  EXPECT_THAT(got.error().message, Not(HasSubstr("###")));
}

TEST(config, base64_goes_both_ways_and_refuses_what_it_is_not) {
  for (const std::string text : {"a", "ab", "abc", "abcd", "\xff\xfe\n"})
    EXPECT_EQ(base64_decode(base64_encode(text)), text);
  EXPECT_EQ(base64_decode("aGVs\n bG8="), "hello");
  EXPECT_FALSE(base64_decode(""));
  EXPECT_FALSE(base64_decode("abc"));
  EXPECT_FALSE(base64_decode("a?c="));
}

/// What a kubeconfig names, before anything is asked.
TEST(config, credentials_that_do_not_do_are_said_in_words) {
  scratch_folder files;
  const auto fault = [](const cluster_config& config) { return fault_of_credentials(config).key; };
  cluster_config config;
  EXPECT_EQ(fault(config), "");
  config.user.token_file = files.write("token", "");
  EXPECT_EQ(fault(config), "kubeconfig.empty_file");
  files.write("token", "a\nb\n");
  EXPECT_EQ(fault(config), "kubeconfig.more_lines");
  config.user.token_file = files.path("gone");
  EXPECT_EQ(fault(config), "kubeconfig.file");
  config.user.token_file.clear();
  config.user.token = "a\nb";
  EXPECT_EQ(fault(config), "kubeconfig.token_lines");
  config.ca.data = "-----BEGIN CERTIFICATE-----\nx\n-----END CERTIFICATE-----\n";
  EXPECT_EQ(fault(config), "kubeconfig.no_ca");
  config.ca = {};
  config.user.certificate.data = config.user.key.data = "-----BEGIN CERTIFICATE-----\nx\n";
  EXPECT_EQ(fault(config), "kubeconfig.no_certificate");
}
