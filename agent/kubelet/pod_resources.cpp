#include "agent/kubelet/pod_resources.hpp"

#include "agent/grpc/client.hpp"
#include "kube/wire.hpp"
#include "text/escape.hpp"

namespace agent::kubelet {
namespace {

using kube::wire::each_field, kube::wire::field;

constexpr std::size_t longest_answer = std::size_t{16} << 20;  // the kubelet's own limit

void read_container(std::string_view bytes, given_devices& target) {
  each_field(bytes, field<1>(target.container), field<2>([&](std::string_view devices) {
               each_field(devices, field<2>([&](std::string_view id) { target.ids.emplace_back(id); }));
             }));
}

void read_pod(std::string_view bytes, std::vector<given_devices>& target) {
  std::string name, ns;
  std::vector<given_devices> containers;
  each_field(bytes, field<1>(name), field<2>(ns),
             field<3>([&](std::string_view container) { read_container(container, containers.emplace_back()); }));
  for (auto& container : containers) {
    if (container.ids.empty()) continue;
    container.pod = name;
    container.ns = ns;
    target.push_back(std::move(container));
  }
}

}  // namespace

kube::result<std::vector<given_devices>> devices_in(std::string_view message) {
  return kube::wire::guarded("ListPodResourcesResponse", [message] {
    std::vector<given_devices> out;
    each_field(message, field<1>([&](std::string_view pod) { read_pod(pod, out); }));
    return out;
  });
}

kube::task<std::vector<given_devices>> list_devices(boost::asio::any_io_executor executor, std::string socket,
                                                    std::chrono::milliseconds deadline) {
  const auto prefix = "kubelet at " + socket + ": ";
  grpc::client_options options{.socket = std::move(socket), .deadline = deadline};
  options.limits.message = longest_answer;
  const auto reply = co_await grpc::call(std::move(executor), std::move(options), "/v1.PodResourcesLister/List", {});
  auto out = reply ? kube::result<std::vector<given_devices>>() : std::unexpected(reply.error());
  if (reply && !reply->is.good()) {
    const bool is_busy = reply->is.code == static_cast<int>(grpc::status_code::resource_exhausted);
    out = std::unexpected(kube::error{
        is_busy ? kube::errc::too_many_requests : kube::errc::server, 0, "gRPC " + grpc::to_string(reply->is), {}});
  }
  if (reply && reply->is.good()) out = devices_in(reply->message);
  if (!out) out.error().message = prefix + text::utf8_clean(out.error().message, 500);
  co_return out;
}

}  // namespace agent::kubelet
