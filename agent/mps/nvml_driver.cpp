#include "agent/mps/nvml_driver.hpp"

#include <algorithm>
#include <boost/asio/co_spawn.hpp>
#include <boost/asio/use_awaitable.hpp>
#include <utility>

#include "agent/mps/memory_limit.hpp"

namespace agent::mps {
namespace {

namespace asio = boost::asio;
using cards::nvml_library;
namespace call = cards::call;

int number_of(compute_mode mode) {
  switch (mode) {
    case compute_mode::prohibited:
      return nvml::compute_prohibited;
    case compute_mode::exclusive_process:
      return nvml::compute_exclusive_process;
    case compute_mode::shared:
      break;
  }
  return nvml::compute_default;
}

std::expected<void, problem> set(const nvml_library& nvml, const std::string& card, int mode) {
  nvml::device device = nullptr;
  auto code = nvml(call::handle_by_uuid, card.c_str(), &device);
  if (code != nvml::success) return std::unexpected("the driver does not find the card: " + nvml.error_text(code));
  int is = -1;
  code = nvml(call::compute_mode, device, &is);
  if (code == nvml::success && is == mode) return {};
  if (code == nvml::success) code = nvml(call::set_compute_mode, device, mode);
  if (code == nvml::success) code = nvml(call::compute_mode, device, &is);
  if (code != nvml::success) return std::unexpected("the card's compute mode cannot be set: " + nvml.error_text(code));
  if (is != mode)
    return std::unexpected("the card's compute mode is " + std::to_string(is) + " after " + std::to_string(mode) +
                           " was set");
  return {};
}

}  // namespace

nvml_driver::nvml_driver(std::string root, std::string proc) : root_(std::move(root)), usage_(std::move(proc)) {}

nvml_driver::~nvml_driver() {
  thread_.stop();
  thread_.join();
}

std::expected<void, problem> nvml_driver::load() {
  if (nvml_) return {};
  auto library = nvml_library::load(root_);
  if (!library) return std::unexpected(library.error());
  if (const auto code = (*library)(call::init); code != nvml::success)
    return std::unexpected("the driver does not answer: " + library->error_text(code));
  nvml_.emplace(std::move(*library));
  return {};
}

template <class T>
answer_of<T> nvml_driver::on_thread(std::function<std::expected<T, problem>(const nvml_library&)> call) {
  const auto work = [this, call = std::move(call)]() -> answer_of<T> {
    if (auto done = load(); !done) co_return std::unexpected(done.error());
    co_return call(*nvml_);
  };
  co_return co_await asio::co_spawn(thread_.get_executor(), work, asio::use_awaitable);
}

answer_of<cards::inventory> nvml_driver::cards() {
  co_return co_await on_thread<cards::inventory>(
      [](const nvml_library& nvml) -> std::expected<cards::inventory, problem> {
        auto out = cards::read_inventory(nvml);
        if (!out.problem.empty()) return std::unexpected(out.problem);
        return out;
      });
}

answer_of<void> nvml_driver::set_mode(std::string card, compute_mode mode) {
  co_return co_await on_thread<void>(
      [card = std::move(card), mode](const nvml_library& nvml) { return set(nvml, card, number_of(mode)); });
}

answer_of<void> nvml_driver::limit_memory(std::string card, std::string cgroup, std::int64_t memory_mib) {
  co_return co_await on_thread<void>([card = std::move(card), cgroup = std::move(cgroup),
                                      memory_mib](const nvml_library& nvml) -> std::expected<void, problem> {
    return mps::limit_memory(nvml, card, cgroup, memory_mib);
  });
}

answer_of<void> nvml_driver::try_memory_limit(std::string card, std::string cgroup, std::int64_t memory_mib) {
  co_return co_await on_thread<void>([card = std::move(card), cgroup = std::move(cgroup),
                                      memory_mib](const nvml_library& nvml) -> std::expected<void, problem> {
    return mps::try_memory_limit(nvml, card, cgroup, memory_mib);
  });
}

answer_of<std::size_t> nvml_driver::processes_on(std::string card) {
  co_return co_await on_thread<std::size_t>(
      [this, card = std::move(card)](const nvml_library& nvml) -> std::expected<std::size_t, problem> {
        for (const auto& usage : usage_.read(nvml)) {
          if (usage.uuid != card) continue;
          if (!usage.lists_processes) return std::unexpected("the driver lists no processes of the card");
          return static_cast<std::size_t>(std::ranges::count_if(usage.processes, [](const auto& process) {
            return process.owner.kind != cards::owner_kind::mps_server;
          }));
        }
        return std::unexpected("the driver does not find the card");
      });
}

}  // namespace agent::mps
