#include "agent/kubelet/pod_resources.hpp"

#include <gtest/gtest.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#include <algorithm>
#include <boost/asio/co_spawn.hpp>
#include <boost/asio/io_context.hpp>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <optional>
#include <sstream>
#include <thread>

#include "test/agent/exporter/wire.hpp"
#include "test/facts_in.hpp"

namespace agent::kubelet {
namespace {

TEST(pod_resources, are_read_by_container) {
  const auto devices = devices_in(exporter::wire_of(
      {{"ns", "a", "main", "nvidia.com/gpu", {"GPU-1", "GPU-2"}}, {"ns", "b", "none", "nvidia.com/gpu", {}}}));
  ASSERT_TRUE(devices);
  EXPECT_EQ(*devices, (std::vector<given_devices>{{"ns", "a", "main", {"GPU-1", "GPU-2"}}}));
  EXPECT_TRUE(devices_in("")->empty());
}

TEST(pod_resources, that_are_cut_off_are_an_error) {
  const auto whole = exporter::wire_of({{"ns", "a", "main", "nvidia.com/gpu", {"GPU-1"}}});
  int failures = 0;
  for (std::size_t length = 1; length < whole.size(); ++length) failures += !devices_in(whole.substr(0, length));
  EXPECT_EQ(failures, static_cast<int>(whole.size()) - 1);
}

/// A server on a Unix socket that answers every call with the same bytes.
class scripted_kubelet {
 public:
  explicit scripted_kubelet(std::string answer) : answer_(std::move(answer)) {
    auto pattern = (std::filesystem::temp_directory_path() / "kubelet.XXXXXX").string();
    folder_ = mkdtemp(pattern.data());
    sockaddr_un address{};
    address.sun_family = AF_UNIX;
    socket().copy(&address.sun_path[0], sizeof address.sun_path - 1);
    listener_ = ::socket(AF_UNIX, SOCK_STREAM, 0);
    EXPECT_EQ(bind(listener_, reinterpret_cast<sockaddr*>(&address), sizeof address), 0);
    EXPECT_EQ(listen(listener_, 4), 0);
    thread_ = std::thread([this] { serve(); });
  }
  ~scripted_kubelet() {
    shutdown(listener_, SHUT_RDWR);
    thread_.join();
    close(listener_);
    std::filesystem::remove_all(folder_);
  }
  scripted_kubelet(const scripted_kubelet&) = delete;
  scripted_kubelet& operator=(const scripted_kubelet&) = delete;

  std::string socket() const { return folder_ + "/kubelet.sock"; }

 private:
  void serve() {
    for (int client = 0; (client = accept(listener_, nullptr, nullptr)) >= 0; close(client)) {
      char bytes[4096];
      std::string request;
      const auto read_more = [&] {
        const auto size = read(client, &bytes[0], sizeof bytes);
        if (size > 0) request.append(&bytes[0], static_cast<std::size_t>(size));
        return size > 0;
      };
      // The last frame of the call: five bytes on stream 1, its end.
      static const std::string end("\0\0\5\0\1\0\0\0\1\0\0\0\0\0", 14);
      while (request.find(end) == request.npos && read_more()) {
      }
      if (!answer_.empty()) send(client, answer_.data(), answer_.size(), MSG_NOSIGNAL);
      while (read_more()) {
      }
    }
  }
  std::string answer_, folder_;
  int listener_ = -1;
  std::thread thread_;
};

kube::result<std::vector<given_devices>> asked(const std::string& socket, std::chrono::milliseconds deadline) {
  boost::asio::io_context loop;
  std::optional<kube::result<std::vector<given_devices>>> out;
  boost::asio::co_spawn(loop, list_devices(loop.get_executor(), socket, deadline),
                        [&out](const std::exception_ptr& thrown, kube::result<std::vector<given_devices>> answer) {
                          EXPECT_FALSE(thrown);
                          out = std::move(answer);
                        });
  loop.run();
  if (*out) {  // the kubelet's order is that of a hash table
    std::ranges::sort(**out, {}, &given_devices::pod);
    for (auto& devices : **out) std::ranges::sort(devices.ids);
  }
  return *out;
}

std::string recorded(const std::string& name) {
  std::stringstream out;
  out << std::ifstream(std::string(TEST_DATA) + "/agent/exporter/recorded/" + name, std::ios::binary).rdbuf();
  return out.str();
}

using namespace std::chrono_literals;

TEST(kubelet, of_1_36_gives_whole_cards) {
  const scripted_kubelet real(recorded("kubelet-1.36.bin"));
  for (int i = 0; i < 2; ++i) {
    const auto devices = asked(real.socket(), 20s);
    ASSERT_TRUE(devices) << devices.error().message;
    EXPECT_EQ(*devices, (std::vector<given_devices>{
                            {"default", "train-0", "main", {"GPU-74200000-0000-4000-8000-000000000001"}},
                            {"default", "train-1", "main", {"GPU-74200000-0000-4000-8000-000000000000"}}}));
  }
}

TEST(kubelet, of_1_30_gives_shares_and_names_a_pod_that_has_finished) {
  const scripted_kubelet real(recorded("kubelet-1.30.bin"));
  const auto devices = asked(real.socket(), 20s);
  ASSERT_TRUE(devices) << devices.error().message;
  const std::string first = "GPU-74200000-0000-4000-8000-000000000000",
                    second = "GPU-74200000-0000-4000-8000-000000000001";
  EXPECT_EQ(*devices, (std::vector<given_devices>{
                          {"default", "train-0", "main", {second + "::2"}},
                          {"default", "train-1", "main", {first + "::1", second + "::0"}},
                          {"default", "train-2", "main", {first + "::0", first + "::2", second + "::1"}}}));
}

/// One frame of HTTP/2 on stream 1, or on the connection for settings.
std::string frame(char type, char flags, const std::string& content) {
  std::string out{0, 0, static_cast<char>(content.size()), type, flags, 0, 0, 0, static_cast<char>(type == 4 ? 0 : 1)};
  return out + content;
}

std::string header(const std::string& name, const std::string& value) {
  return std::string(1, 0) + static_cast<char>(name.size()) + name + static_cast<char>(value.size()) + value;
}

TEST(kubelet, that_refuses_is_quoted) {
  const scripted_kubelet refusing(
      frame(4, 0, "") + frame(1, 5, "\x88" + header("grpc-status", "8") + header("grpc-message", "too many requests")));
  const auto devices = asked(refusing.socket(), 20s);
  ASSERT_FALSE(devices);
  EXPECT_EQ(devices.error().message, "kubelet at " + refusing.socket() + ": gRPC status 8: too many requests");
  EXPECT_EQ(devices.error().code, kube::errc::too_many_requests) << "it may be asked again";
}

TEST(kubelet, that_cannot_be_asked_is_one_line) {
  const auto complaint = [](const std::string& answer, std::chrono::milliseconds deadline) {
    const scripted_kubelet kubelet(answer);
    const auto devices = asked(kubelet.socket(), deadline);
    return devices ? std::string("an answer") : devices.error().message.substr(kubelet.socket().size());
  };
  const auto whole = recorded("kubelet-1.36.bin");
  EXPECT_NE(complaint("", 100ms).find("no answer within 100 ms"), std::string::npos);
  EXPECT_NE(complaint(whole.substr(0, whole.size() - 20), 200ms).find("no answer within"), std::string::npos);
  EXPECT_NE(complaint("HTTP/1.1 200 OK\r\nContent-Length: 0\r\n\r\n", 5s), "an answer");
  EXPECT_NE(complaint(frame(4, 0, "") + frame(1, 5, "\x88"), 5s).find("no gRPC server"), std::string::npos);
  EXPECT_NE(complaint(frame(4, 0, "") + frame(1, 5, "\x8d"), 5s).find("HTTP status 404"), std::string::npos);
  const auto absent = asked("/nonexistent/kubelet.sock", 5s);
  ASSERT_FALSE(absent);
  EXPECT_THAT(absent.error().message,
              words::has_in_order({"kubelet at /nonexistent/kubelet.sock: ", "cannot connect: ", "No such file"}));
}

}  // namespace
}  // namespace agent::kubelet
