#pragma once
// The driver's side of cards under MPS, by NVML. Calls run on a thread of their own, one after the other, because a
// driver may not come back from one.

#include <boost/asio/thread_pool.hpp>

#include "agent/cards/inventory.hpp"
#include "agent/cards/usage.hpp"
#include "agent/mps/server.hpp"

namespace agent::mps {

class nvml_driver final : public card_driver {
 public:
  /// @param proc where processes of the node are looked up
  explicit nvml_driver(std::string root, std::string proc = "/proc");
  ~nvml_driver() override;

  /// Of this moment; NVML is started with the first call that finds it.
  answer_of<cards::inventory> cards();
  answer_of<void> set_mode(std::string card, compute_mode mode) override;
  answer_of<std::size_t> processes_on(std::string card) override;
  /// As of memory_limit.hpp.
  answer_of<void> limit_memory(std::string card, std::string cgroup, std::int64_t memory_mib);
  answer_of<void> try_memory_limit(std::string card, std::string cgroup, std::int64_t memory_mib);

 private:
  template <class T>
  answer_of<T> on_thread(std::function<std::expected<T, problem>(const cards::nvml_library&)> call);
  std::expected<void, problem> load();

  std::string root_;
  cards::usage_reader usage_;
  std::optional<cards::nvml_library> nvml_;
  boost::asio::thread_pool thread_{1};
};

}  // namespace agent::mps
