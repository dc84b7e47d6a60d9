#pragma once
// The program that keeps MPS on a node: quartermaster agent mps. A control daemon for each card, with its folder; and a
// socket by which the device plugin learns which cards are in order, and sets their ceilings. It needs neither the API
// server nor the kubelet. Where the driver limits the memory of a cgroup, it also sets that of a pod. Its pod outlives
// the plugin's, because every client ends with its daemon. Loop thread only.

#include <deque>
#include <set>
#include <string>

#include "agent/grpc/server.hpp"
#include "agent/mps/messages.hpp"
#include "agent/mps/nvml_driver.hpp"
#include "controller/loop.hpp"
#include "controller/metrics.hpp"

namespace agent {

struct mps_options {
  std::string folder = "/run/quartermaster/mps";
  std::string driver_root = "/";  ///< where the driver's file system is mounted
  std::string program = mps::control_options().program;
  std::string cgroup_root = "/sys/fs/cgroup";  ///< of the node, version 2
};

class mps_host final : public grpc::call_handler {
 public:
  explicit mps_host(mps_options options);
  /// Until a signal; then every card is given back. errc::config where it cannot begin.
  kube::result<void> run();

 private:
  void serve(std::shared_ptr<grpc::served_call> call, std::string_view message) override;
  boost::asio::awaitable<void> begin();
  boost::asio::awaitable<void> hold(std::shared_ptr<grpc::served_call> call, mps::held_card card);
  boost::asio::awaitable<void> end(std::shared_ptr<grpc::served_call> call, mps::ending_pod pod);
  boost::asio::awaitable<void> limit(std::shared_ptr<grpc::served_call> call, mps::limited_pod pod);
  boost::asio::awaitable<void> try_limits(const cards::inventory& known);
  boost::asio::awaitable<void> leave();
  boost::asio::awaitable<void> keep_state();

  mps_options options_;
  controller::registry metrics_;
  controller::loop loop_{metrics_};
  mps::nvml_driver driver_;
  std::deque<mps::card_server> cards_;
  std::set<std::string, std::less<>> limited_;  ///< UUIDs of cards whose driver keeps limits of memory
  std::vector<controller::spawned> running_;
  grpc::server server_;
};

}  // namespace agent
