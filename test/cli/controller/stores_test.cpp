#include "cli/controller/stores.hpp"

#include "reconcilers/declarations/declared_config_map.hpp"
#include "test/controller/rig.hpp"
#include "test/kube/config_map_bytes.hpp"

namespace cli {
namespace {

using reconcilers::declarations::declared_config_map;

/// An API server without WatchList that has many large ConfigMaps with the label of declarations, and nothing else.
class crowded_server final : public kube::transport {
 public:
  int objects = 120;
  std::size_t largest_page = 0;
  int pages = 0;

  kube::task<kube::response> send(kube::request request) override {
    const auto& target = request.target;
    if (target.find("features.alauda.io") == std::string::npos) co_return co_await never();
    const auto start = target.find("continue=") == std::string::npos ? 0 : std::stoi(after(target, "continue="));
    const auto end = std::min(objects, start + std::stoi(after(target, "limit=")));
    std::vector<std::string> items;
    for (int i = start; i < end; ++i)
      items.push_back(kube_test::bytes_of({"cf-crl-" + std::to_string(i),
                                           "kube-public",
                                           {{"features.alauda.io/type", "CustomResourceLimitation"}},
                                           {},
                                           {{"key", std::string(100'000, 'x')}}}));
    ++pages;
    largest_page = std::max(largest_page, items.size());
    kube::response out;
    out.status = 200;
    out.body = kube_test::list_of(items, end < objects ? std::to_string(end) : "");
    co_return out;
  }
  kube::task<kube::response> stream(kube::request request, kube::chunk_sink) override {
    if (request.target.find("sendInitialEvents") == std::string::npos) co_return co_await never();
    co_return std::unexpected(kube::error{kube::errc::invalid, 422, "no WatchList here", {}});
  }

 private:
  static std::string after(const std::string& target, const std::string& word) {
    return target.substr(target.find(word) + word.size());
  }
  static kube::task<kube::response> never() {
    boost::asio::steady_timer timer(co_await boost::asio::this_coro::executor,
                                    boost::asio::steady_timer::time_point::max());
    co_await timer.async_wait(boost::asio::as_tuple(boost::asio::use_awaitable));
    co_return std::unexpected(kube::error{kube::errc::cancelled, 0, "cancelled", {}});
  }
};

struct operator_stores : controller_test::rig {
  crowded_server api;
  controller::health health{metrics};
  stores known;
  controller::manager manager{loop, health, metrics};
  bool ended = false;

  void start() {
    loop.spawn("manager", [](operator_stores& self) -> boost::asio::awaitable<void> {
      co_await self.manager.run();
      self.ended = true;
    }(*this));
  }
};

TEST_F(operator_stores, large_declarations_are_listed_in_small_pages_and_not_kept) {
  caches(manager, api, {}, {}).add(known, controller_options(), {});
  start();
  ASSERT_TRUE(turn([&] { return known.declared_alauda.synced(); }));
  EXPECT_EQ(api.largest_page, 50u);
  EXPECT_EQ(api.pages, 3);
  EXPECT_EQ(known.declared_alauda.size(), 120u);
  for (const auto& item : known.declared_alauda.all()) {
    EXPECT_GT(item.left_out, 100'000u);
    EXPECT_TRUE(item.data.empty());
  }
  manager.stop();
  EXPECT_TRUE(turn([&] { return ended; }));
}

}  // namespace
}  // namespace cli
