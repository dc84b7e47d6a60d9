#pragma once
// A program that asks a server of the test, whatever that answers. The server has a thread of its own, because commands
// block.

#include <gtest/gtest.h>

#include <functional>
#include <mutex>
#include <string>
#include <thread>
#include <vector>

#include "cli/program.hpp"
#include "test/cli/wire_objects.hpp"
#include "test/kube/scratch_folder.hpp"
#include "test/kube/test_server.hpp"

namespace cli_test {

class served_program {
 public:
  explicit served_program(kube_test::test_server::handler answers) : server_(loop_, ca_.issue(), std::move(answers)) {
    folder_.write("ca.crt", ca_.pem());
    folder_.write("kubeconfig",
                  "{apiVersion: v1, kind: Config, current-context: c, contexts: [{name: c, context: {cluster: c, "
                  "user: u}}], users: [{name: u, user: {token: t}}], clusters: [{name: c, cluster: {server: '" +
                      server_.url() + "', certificate-authority: '" + folder_.path("ca.crt") + "'}}]}");
    thread_ = std::jthread([this] { loop_.run(); });
  }
  served_program(const served_program&) = delete;
  served_program& operator=(const served_program&) = delete;
  ~served_program() { loop_.stop(); }

  std::string url() const { return server_.url(); }
  std::string path(const std::string& name) const { return folder_.path(name); }

  int run(std::vector<std::string> words) {
    words.insert(words.end(), {"--kubeconfig", folder_.path("kubeconfig")});
    testing::internal::CaptureStdout(), testing::internal::CaptureStderr();
    const int rc = cli::run_program("quartermaster", std::move(words));
    out = testing::internal::GetCapturedStdout(), err = testing::internal::GetCapturedStderr();
    return rc;
  }
  std::string out, err;

 private:
  kube_test::scratch_folder folder_;
  boost::asio::io_context loop_{1};
  kube_test::test_ca ca_;
  kube_test::test_server server_;
  std::jthread thread_;
};

inline kube_test::reply reply_of(const std::string& type, std::string body, int status = 200) {
  auto out = kube_test::reply::of(status, std::move(body));
  out.headers = {"Content-Type: " + type};
  return out;
}

inline kube_test::reply protobuf_reply(std::string body) {
  return reply_of("application/vnd.kubernetes.protobuf", std::move(body));
}

/// Of an API server in which there is nothing.
inline kube_test::reply empty_cluster(const kube_test::seen_request& seen) {
  const auto accept = seen.headers.find("accept");
  if (accept != seen.headers.end() && accept->second.contains("protobuf")) return protobuf_reply(list_body({}));
  if (seen.target == "/apis/quartermaster.io/v1alpha1")
    return reply_of("application/json", R"({"kind":"APIResourceList","resources":[]})");
  return reply_of("application/json",
                  R"({"kind":"List","apiVersion":"v1","metadata":{"resourceVersion":"1"},"items":[]})");
}

}  // namespace cli_test
