#pragma once
// A server with its CA, and a transport that trusts it, on one loop.

#include <gtest/gtest.h>

#include <boost/asio/bind_cancellation_slot.hpp>
#include <boost/asio/cancellation_signal.hpp>
#include <memory>

#include "kube/curl_transport.hpp"
#include "test/kube/loop.hpp"
#include "test/kube/scratch_folder.hpp"
#include "test/kube/test_server.hpp"

namespace kube_test {

inline reply echo(const seen_request& got) { return reply::of(200, got.body.empty() ? "hello" : got.body); }

struct transport_fixture : testing::Test {
  asio::io_context loop{1};
  test_ca ca;
  std::unique_ptr<test_server> server = std::make_unique<test_server>(loop, ca.issue(), &echo);
  std::unique_ptr<kube::curl_transport> api;

  kube::cluster_config config() const {
    kube::cluster_config made;
    made.server = server->url();
    made.ca.data = ca.pem();
    made.user.token = "s3cret";
    made.source = "/etc/kubeconfig";
    return made;
  }
  kube::curl_transport& connect(kube::cluster_config cluster_config,
                                kube::transport_options options = kube::transport_options()) {
    api = std::make_unique<kube::curl_transport>(loop.get_executor(), std::move(cluster_config), options);
    return *api;
  }
  kube::curl_transport& connect() { return connect(config()); }

  static kube::request get(std::string target, kube::lane lane = kube::lane::unary) {
    kube::request made;
    made.target = std::move(target);
    made.channel = lane;
    return made;
  }
  kube::result<kube::response> send(kube::request request) { return run(loop, api->send(std::move(request))); }
  kube::result<kube::response> stream(kube::request request, kube::chunk_sink sink) {
    return run(loop, api->stream(std::move(request), std::move(sink)));
  }
};

}  // namespace kube_test
