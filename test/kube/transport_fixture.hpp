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
  kube::curl_transport& connect(kube::cluster_config with,
                                kube::transport_options options = kube::transport_options()) {
    api = std::make_unique<kube::curl_transport>(loop.get_executor(), std::move(with), options);
    return *api;
  }
  kube::curl_transport& connect() { return connect(config()); }

  static kube::request get(std::string target, kube::lane via = kube::lane::unary) {
    kube::request made;
    made.target = std::move(target);
    made.via = via;
    return made;
  }
  kube::result<kube::response> send(kube::request what) { return run(loop, api->send(std::move(what))); }
  kube::result<kube::response> stream(kube::request what, kube::chunk_sink sink) {
    return run(loop, api->stream(std::move(what), std::move(sink)));
  }
};

}  // namespace kube_test
