// Who is believed on either side: CAs, names, client certificates, tokens, and all of them changing while the program
// runs.

#include <gmock/gmock.h>

#include <cstdio>

#include "test/kube/test_proxy.hpp"
#include "test/kube/transport_fixture.hpp"

using namespace kube;
using namespace kube_test;
using namespace std::chrono_literals;
using testing::HasSubstr;
using testing::Not;

/// The folder of CAs that libcurl is taken to have compiled in; empty: the one of this machine. Linked with
/// --wrap=curl_easy_init.
static std::string folder_of_the_machine;

extern "C" CURL* __real_curl_easy_init();
extern "C" CURL* __wrap_curl_easy_init() {
  CURL* const made = __real_curl_easy_init();
  if (made && !folder_of_the_machine.empty()) curl_easy_setopt(made, CURLOPT_CAPATH, folder_of_the_machine.c_str());
  return made;
}

/// The name under which OpenSSL looks for a CA in a folder.
static std::string name_in_folder(const std::string& pem) {
  BIO* const text = BIO_new_mem_buf(pem.data(), static_cast<int>(pem.size()));
  X509* const made = PEM_read_bio_X509(text, nullptr, nullptr, nullptr);
  char name[32];
  std::snprintf(name, sizeof name, "%08lx.0", X509_subject_name_hash(made));
  X509_free(made);
  BIO_free(text);
  return name;
}

using curl_trust = transport_fixture;

// As Debian's libcurl with a company's CA in /etc/ssl/certs: of a kubeconfig's CA client-go believes that one alone.
TEST_F(curl_trust, F21_with_a_ca_given_those_of_the_machine_are_not_believed) {
  scratch_folder machine;
  test_ca stranger("stranger");
  machine.write(name_in_folder(stranger.pem()), stranger.pem());
  folder_of_the_machine = machine.path("");
  server->use(stranger.issue());

  connect();
  const auto refused = send(get("/x"));
  auto settings = config();
  settings.ca = pem_source();
  connect(settings);
  const auto believed = send(get("/x"));
  folder_of_the_machine.clear();

  ASSERT_FALSE(refused) << "the token went to a stranger";
  EXPECT_EQ(refused.error().code, errc::tls);
  ASSERT_TRUE(believed) << "the folder is not looked into, so the test shows nothing: " << believed.error().message;
  EXPECT_EQ(server->seen().size(), 1u);
}

TEST_F(curl_trust, without_a_ca_the_file_of_SSL_CERT_FILE_is_believed) {
  scratch_folder files;
  auto settings = config();
  settings.ca = pem_source();
  ::setenv("SSL_CERT_FILE", files.write("stranger.crt", test_ca("stranger").pem()).c_str(), 1);
  connect(settings);
  const auto refused = send(get("/x"));
  ::setenv("SSL_CERT_FILE", files.write("ours.crt", ca.pem()).c_str(), 1);
  connect(settings);
  const auto believed = send(get("/x"));
  ::unsetenv("SSL_CERT_FILE");
  ASSERT_FALSE(refused);
  EXPECT_EQ(refused.error().code, errc::tls);
  EXPECT_TRUE(believed) << believed.error().message;
}

TEST_F(curl_trust, refuses_a_server_of_another_ca_and_says_which_file_has_ours) {
  scratch_folder files;
  auto settings = config();
  settings.ca = pem_source();
  settings.ca.path = files.write("ca.crt", test_ca("stranger").pem());
  connect(settings);
  const auto got = send(get("/x"));
  ASSERT_FALSE(got);
  EXPECT_EQ(got.error().code, errc::tls);
  EXPECT_THAT(got.error().message, HasSubstr("not signed by the CA in " + settings.ca.path));
  EXPECT_TRUE(server->seen().empty());
}

TEST_F(curl_trust, refuses_a_certificate_for_another_name_unless_tls_server_name_is_it) {
  leaf_options leaf;
  leaf.alt = "DNS:api.example";
  server->use(ca.issue(leaf));
  connect();
  const auto got = send(get("/x"));
  ASSERT_FALSE(got);
  EXPECT_EQ(got.error().code, errc::tls);
  EXPECT_THAT(got.error().message, HasSubstr("certificate is not for https://127.0.0.1"));
  EXPECT_THAT(got.error().message, HasSubstr("tls-server-name"));
  auto settings = config();
  settings.tls_server_name = "api.example";
  connect(settings);
  const auto named = send(get("/x"));
  ASSERT_TRUE(named) << named.error().message;
  EXPECT_EQ(server->seen()[0].headers.at("host"), settings.server.substr(8));
  EXPECT_EQ(server->seen()[0].target, "/x");
}

TEST_F(curl_trust, refuses_an_expired_certificate_in_words) {
  leaf_options leaf;
  leaf.valid_for = -60;
  server->use(ca.issue(leaf));
  connect();
  const auto got = send(get("/x"));
  ASSERT_FALSE(got);
  EXPECT_EQ(got.error().code, errc::tls);
  EXPECT_THAT(got.error().message, HasSubstr("certificate has expired"));
}

TEST_F(curl_trust, insecure_asks_nothing) {
  auto settings = config();
  settings.ca = pem_source();
  settings.insecure = true;
  connect(settings);
  EXPECT_TRUE(send(get("/x")));
}

TEST_F(curl_trust, a_ca_file_without_a_certificate_is_a_config_error) {
  scratch_folder files;
  auto settings = config();
  settings.ca = pem_source();
  settings.ca.path = files.write("ca.crt", "not a certificate");
  connect(settings);
  const auto got = send(get("/x"));
  ASSERT_FALSE(got);
  EXPECT_EQ(got.error().code, errc::config);
  EXPECT_THAT(got.error().message, HasSubstr(settings.ca.path));
}

TEST_F(curl_trust, a_client_certificate_is_shown_and_follows_its_files) {
  scratch_folder files;
  leaf_options jane, john;
  jane.name = "jane";
  john.name = "john";
  const auto first = ca.issue(jane), second = ca.issue(john);
  server = std::make_unique<test_server>(loop, ca.issue(), &echo, 0, ca.pem());
  auto settings = config();
  settings.user.token.clear();
  settings.user.certificate.path = files.write("tls.crt", first.certificate);
  settings.user.key.path = files.write("tls.key", first.key);
  connect(settings);
  ASSERT_TRUE(send(get("/x")));
  EXPECT_EQ(server->seen()[0].client_name, "jane");
  EXPECT_FALSE(server->seen()[0].headers.contains("authorization"));

  files.write("tls.crt", second.certificate);  // the key is not there yet: the old pair stays
  ASSERT_TRUE(send(get("/x")));
  EXPECT_EQ(server->seen()[1].client_name, "jane");
  files.write("tls.key", second.key);
  const auto got = send(get("/x"));
  ASSERT_TRUE(got) << got.error().message;
  EXPECT_EQ(server->seen()[2].client_name, "john");
}

TEST_F(curl_trust, a_refused_client_certificate_is_a_tls_error) {
  server = std::make_unique<test_server>(loop, ca.issue(), &echo, 0, test_ca("others").pem());
  auto settings = config();
  const auto pair = ca.issue();
  settings.user.certificate.data = pair.certificate;
  settings.user.key.data = pair.key;
  connect(settings);
  const auto got = send(get("/x"));
  ASSERT_FALSE(got);
  EXPECT_EQ(got.error().code, errc::tls) << got.error().message;
  EXPECT_THAT(got.error().message, HasSubstr("refused our certificate"));
}

TEST_F(curl_trust, F19_a_rotated_token_is_used_by_the_next_request) {
  scratch_folder files;
  auto settings = config();
  settings.user.token.clear();
  settings.user.token_file = files.write("token", "first\n");
  connect(settings);
  ASSERT_TRUE(send(get("/x")));
  files.write("token", "second\n");
  ASSERT_TRUE(send(get("/x")));
  EXPECT_EQ(server->seen()[0].headers.at("authorization"), "Bearer first");
  EXPECT_EQ(server->seen()[1].headers.at("authorization"), "Bearer second");
  EXPECT_EQ(server->connections(), 1);
}

TEST_F(curl_trust, F19_a_401_reads_the_token_again_and_tries_once_more) {
  scratch_folder files;
  auto settings = config();
  settings.user.token.clear();
  settings.user.token_file = files.write("token", "old");
  connect(settings);
  server->answers([&](const seen_request& got) {
    if (got.headers.at("authorization") == "Bearer new") return reply::of(200, "in");
    files.write("token", "new");  // rotated while the request was on its way
    return reply::of(401, "expired");
  });
  const auto got = send(get("/x"));
  ASSERT_TRUE(got);
  EXPECT_EQ(got->status, 200);
  EXPECT_EQ(server->seen().size(), 2u);
}

TEST_F(curl_trust, F19_a_401_with_nothing_else_to_try_is_the_answer) {
  connect();
  server->answers([](const seen_request&) { return reply::of(401, "no"); });
  const auto got = send(get("/x"));
  ASSERT_TRUE(got);
  EXPECT_EQ(got->status, 401);
  EXPECT_EQ(server->seen().size(), 1u);
}

TEST_F(curl_trust, F19_a_401_is_tried_again_only_once_and_the_token_is_in_no_error) {
  scratch_folder files;
  auto settings = config();
  settings.user.token.clear();
  settings.user.token_file = files.write("token", "t0");
  connect(settings);
  int turns = 0;
  server->answers([&](const seen_request&) {
    files.write("token", "t" + std::to_string(++turns));
    return reply::of(401, "no");
  });
  const auto got = send(get("/x"));
  ASSERT_TRUE(got);
  EXPECT_EQ(got->status, 401);
  EXPECT_EQ(server->seen().size(), 2u);
  server->stop();
  const auto down = send(get("/x"));
  ASSERT_FALSE(down);
  EXPECT_THAT(down.error().message, Not(HasSubstr("t2")));
}

TEST_F(curl_trust, F19_a_stream_that_gets_401_is_opened_again_with_the_new_token) {
  scratch_folder files;
  auto settings = config();
  settings.user.token.clear();
  settings.user.token_file = files.write("token", "old");
  connect(settings);
  server->answers([&](const seen_request& got) {
    if (got.headers.at("authorization") == "Bearer new") return reply::stream({"event"}, reply::ending::keep);
    files.write("token", "new");
    return reply::of(401, "expired");
  });
  std::string all;
  const auto got = stream(get("/w", lane::watch), [&](std::string_view bytes) {
    all += bytes;
    return true;
  });
  ASSERT_TRUE(got);
  EXPECT_EQ(got->status, 200);
  EXPECT_EQ(all, "event");
}

TEST_F(curl_trust, F21_a_rotated_ca_is_trusted_without_restart_and_the_old_one_no_more) {
  scratch_folder files;
  auto settings = config();
  settings.ca = pem_source();
  settings.ca.path = files.write("ca.crt", ca.pem());
  connect(settings);
  ASSERT_TRUE(send(get("/x")));

  test_ca next("next-ca");
  const auto port = server->port();
  server.reset();
  server = std::make_unique<test_server>(loop, next.issue(), &echo, port);
  const auto refused = send(get("/x"));
  ASSERT_FALSE(refused);
  EXPECT_EQ(refused.error().code, errc::tls);

  files.write("ca.crt", "half a fi");  // not a CA: what we have stays, and is still not the right one
  EXPECT_EQ(send(get("/x")).error().code, errc::tls);
  files.write("ca.crt", next.pem());
  const auto got = send(get("/x"));
  ASSERT_TRUE(got) << got.error().message;
  EXPECT_EQ(server->connections(), 1);

  server->use(ca.issue());
  api->reset(lane::unary);
  EXPECT_EQ(send(get("/x")).error().code, errc::tls);
}

TEST_F(curl_trust, F21_a_kept_connection_is_not_used_once_the_ca_has_changed) {
  scratch_folder files;
  auto settings = config();
  settings.ca = pem_source();
  settings.ca.path = files.write("ca.crt", ca.pem());
  connect(settings);
  ASSERT_TRUE(send(get("/x")));
  files.write("ca.crt", test_ca("stranger").pem());
  const auto got = send(get("/x"));
  ASSERT_FALSE(got);
  EXPECT_EQ(got.error().code, errc::tls);
}

TEST_F(curl_trust, goes_through_the_proxy_of_the_kubeconfig) {
  test_proxy proxy(loop);
  auto settings = config();
  settings.proxy_url = proxy.url();
  connect(settings);
  const auto got = send(get("/x"));
  ASSERT_TRUE(got) << got.error().message;
  EXPECT_EQ(got->status, 200);
  EXPECT_EQ(got->body, "hello");
  EXPECT_THAT(proxy.asked(), testing::ElementsAre("CONNECT " + settings.server.substr(8) + " HTTP/1.1"));
}

// As client-go; 0.0.0.0 is this machine and no loopback address.
TEST_F(curl_trust, of_the_environments_proxies_the_one_for_https_counts) {
  test_proxy proxy(loop);
  auto settings = config();
  settings.server = "https://0.0.0.0:" + settings.server.substr(settings.server.rfind(':') + 1);
  settings.tls_server_name = "localhost";
  ::setenv("ALL_PROXY", proxy.url().c_str(), 1);
  connect(settings);
  const auto direct = send(get("/x"));
  ::setenv("HTTPS_PROXY", proxy.url().c_str(), 1);
  const auto request_count = proxy.asked().size();
  connect(settings);
  const auto proxied = send(get("/x"));
  ::unsetenv("ALL_PROXY"), ::unsetenv("HTTPS_PROXY");
  ASSERT_TRUE(direct) << direct.error().message;
  EXPECT_EQ(request_count, 0u) << "ALL_PROXY";
  ASSERT_TRUE(proxied) << proxied.error().message;
  EXPECT_EQ(proxy.asked().size(), 1u);
}

TEST_F(curl_trust, a_proxy_that_is_down_is_named) {
  auto settings = config();
  settings.proxy_url = "http://127.0.0.1:1";
  connect(settings);
  const auto got = send(get("/x"));
  ASSERT_FALSE(got);
  EXPECT_EQ(got.error().code, errc::connect);
  EXPECT_THAT(got.error().message, HasSubstr("proxy http://127.0.0.1:1"));
}
