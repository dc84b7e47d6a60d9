#pragma once
// What the device plugin asks of a resource whose cards the scheduler chose: Allocate gets a name alone, and before
// each start the container that it is for is found and its CDI file is written. The file is there only while the
// container is made: a kubelet that was started again starts containers without asking, and a file that was left over
// would be the next one's. Without a file the runtime refuses. Nothing is kept in memory that files and API do not say;
// loop thread only.

#include <boost/asio/any_io_executor.hpp>
#include <boost/asio/awaitable.hpp>
#include <chrono>
#include <functional>
#include <map>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "agent/allocation/cdi.hpp"
#include "agent/allocation/start.hpp"
#include "agent/device_plugin/plugin.hpp"
#include "agent/disk/folder.hpp"
#include "controller/store.hpp"

namespace agent::allocation {

struct starter_options {
  offered_resource resource;
  std::vector<offered_resource> vocabulary = {};  ///< it, and the keys that may stand next to it
  std::string node;
  std::string plugin_folder = "/var/lib/kubelet/device-plugins";  ///< with the kubelet's record
  std::string pod_resources;                                      ///< socket; empty: it is not asked
  std::string cdi_folder = "/run/cdi";
  /// What a container has where the runtime skips the name: no card.
  std::map<std::string, std::string> without_cards = {};
  std::chrono::milliseconds patience{5'000};          ///< for records that are a moment behind
  std::chrono::milliseconds longest_making{180'000};  ///< of a container; then its file goes
};

class starter final : public device_plugin::allocator {
 public:
  /// What a container gets of its cards, or a sentence why not. It may take a while; the pod of the start is there
  /// only until it waits.
  using editor = std::function<boost::asio::awaitable<std::expected<container_edits, std::string>>(container_start)>;

  /// @param pods bound to the node, followed by someone else; must outlive this
  starter(boost::asio::any_io_executor executor, starter_options options, controller::store<kube::running_pod>& pods,
          std::function<std::vector<quota::card>()> cards, editor editor);
  ~starter() override;
  starter(const starter&) = delete;
  starter& operator=(const starter&) = delete;

  /// Removes what an earlier one has left. Before anything is offered; an error is one line.
  std::expected<void, std::string> begin();

  /// A name, whose file is written before each start.
  std::expected<device_plugin::allocation_answer, std::string> answer_for(
      const device_plugin::device_ids& devices) override;
  void prepare(device_plugin::device_ids devices, std::function<void(grpc::status)> done) override;
  /// The kubelet's record, as it is now.
  std::expected<std::vector<kubelet::recorded_devices>, std::string> recorded() const;
  /// Files of containers that are made already, or never will be. Every second or so.
  void clear_made();

 private:
  /// A container that may be about to be made.
  struct making {
    std::string pod_uid;
    kube::object_key pod;
    std::map<std::string, std::string> ids;  ///< the runtime's, by name, of those that may have the devices
    std::chrono::steady_clock::time_point since;
  };
  boost::asio::awaitable<grpc::status> start(std::vector<std::string> ids, std::uint64_t call);
  boost::asio::awaitable<std::expected<std::vector<kubelet::given_devices>, grpc::status>> listed(
      std::chrono::steady_clock::time_point until);
  boost::asio::awaitable<std::expected<making, grpc::status>> look(const std::vector<std::string>& ids,
                                                                   const std::string& device, std::string& text);
  std::string kind() const;
  std::string file_of(std::string_view device) const;
  std::expected<void, std::string> write(const std::string& device, std::string_view text) const;
  std::expected<void, std::string> remove(const std::string& device) const;

  boost::asio::any_io_executor executor_;
  const starter_options options_;
  controller::store<kube::running_pod>& pods_;
  std::function<std::vector<quota::card>()> cards_;
  editor editor_;
  std::uint64_t calls_ = 0;
  std::map<std::string, std::uint64_t> newest_;  ///< call by device: an older one that is still at it writes nothing
  std::map<std::string, making> making_;         ///< by device
  std::shared_ptr<bool> alive_ = std::make_shared<bool>(true);
};

}  // namespace agent::allocation
