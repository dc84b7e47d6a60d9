#pragma once
// A device plugin for one resource: it registers with the kubelet, lists devices, and asks an allocator what a
// container gets. It registers again whenever the kubelet has forgotten it: after a restart of the kubelet, and when
// another plugin of this resource came and went.

#include <boost/asio/any_io_executor.hpp>
#include <boost/asio/awaitable.hpp>
#include <boost/asio/posix/stream_descriptor.hpp>
#include <boost/asio/steady_timer.hpp>
#include <chrono>
#include <expected>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "agent/device_plugin/messages.hpp"
#include "agent/grpc/server.hpp"

namespace agent::device_plugin {

/// Decides what containers get. Called in the agent's loop.
struct allocator {
  virtual ~allocator() = default;
  /// What a container with these devices gets. The kubelet does not say which pod it is, so nothing of a pod can be
  /// decided here. The reason of a refusal ends the pod for good.
  virtual std::expected<allocation_answer, std::string> answer_for(const device_ids& devices) = 0;
  /// Before each start of a container with these devices: `done` once, within 10 s. After a refusal the kubelet asks
  /// again every 12 s or so, and the pod shows the text.
  virtual void prepare(device_ids devices, std::function<void(grpc::status)> done) = 0;
};

struct plugin_options {
  std::string folder = "/var/lib/kubelet/device-plugins";
  std::string endpoint;  ///< name of the socket there; each process has its own
  std::string resource;  ///< "nvidia.com/gpu"
};

class plugin final : public grpc::call_handler {
 public:
  plugin(boost::asio::any_io_executor executor, allocator& allocator, plugin_options options);
  ~plugin() override;

  /// From now on these; the kubelet learns of it at once.
  void offer(std::vector<device> devices);
  /// Until it is cancelled.
  boost::asio::awaitable<void> run();

  bool is_registered() const { return !watching_.empty(); }  ///< the kubelet listens to what is offered
  const std::string& trouble() const { return trouble_; }  ///< why it is not registered; empty: it is, or soon will be

 private:
  void serve(std::shared_ptr<grpc::served_call> call, std::string_view message) override;
  void allocate(const std::shared_ptr<grpc::served_call>& call, std::string_view message);
  void prepare(std::shared_ptr<grpc::served_call> call, std::string_view message);
  void watch(std::shared_ptr<grpc::served_call> call);
  void see_folder();
  void read_events();
  boost::asio::awaitable<bool> register_with_kubelet();
  boost::asio::awaitable<bool> pause(std::chrono::milliseconds how_long);
  std::string path_of(std::string_view name) const;

  boost::asio::any_io_executor executor_;
  allocator& allocator_;
  const plugin_options options_;
  std::optional<grpc::server> server_;
  std::vector<device> devices_;
  std::vector<std::shared_ptr<grpc::served_call>> watching_;  ///< ListAndWatch
  boost::asio::posix::stream_descriptor folder_events_;
  std::string event_bytes_;
  boost::asio::steady_timer wake_;
  bool is_new_kubelet_ = false;
  std::chrono::milliseconds pause_;
  std::string trouble_;
  std::shared_ptr<bool> alive_ = std::make_shared<bool>(true);
};

}  // namespace agent::device_plugin
