#include "agent/facts/reporter.hpp"

#include <algorithm>
#include <nlohmann/json.hpp>
#include <utility>

#include "agent/facts/other_cards.hpp"
#include "controller/log.hpp"

namespace agent::facts {
namespace {

using controller::milliseconds;
using nlohmann::json;

constexpr milliseconds between_writes{2'000}, patience{10'000};

}  // namespace

facts_reader::facts_reader(facts::folders folders, std::chrono::milliseconds period,
                           std::function<void(machine_facts)> deliver)
    : folders_(std::move(folders)),
      period_(period),
      deliver_(std::move(deliver)),
      thread_([this](const std::stop_token& stop) {
        work(stop);
        has_ended_ = true;
      }) {}

bool facts_reader::end_within(std::chrono::milliseconds time) {
  thread_.request_stop();
  for (const auto end = std::chrono::steady_clock::now() + time; !has_ended_ && std::chrono::steady_clock::now() < end;)
    std::this_thread::sleep_for(milliseconds(1));
  return has_ended_;
}

void facts_reader::read_again() {
  const std::lock_guard hold(lock_);
  is_asked_ = true;
  changed_.notify_all();
}

void facts_reader::work(const std::stop_token& stop) {
  while (!stop.stop_requested()) {
    deliver_(read(folders_));
    std::unique_lock hold(lock_);
    changed_.wait_for(hold, stop, period_, [this] { return is_asked_; });
    is_asked_ = false;
  }
}

kube::task<void> reporter::write(kube::client& api, const api::reported_node* object, const cards::inventory* cards) {
  due_.reset();
  if (!seen_ || !object) co_return kube::result<void>();
  auto rows = judge(*seen_, cards);
  auto others = other_cards(*seen_);
  if (says(*object, rows, others)) co_return kube::result<void>();
  if (object->resource_version == written_version_ && rows == written_ && others == written_others_)
    co_return kube::result<void>();
  const auto now = controller::boot_now();
  // An agent that starts again says nothing new before NVML has answered, unless that takes too long.
  if (!cards && !object->report.checks.empty() && now - began_ < patience) {
    due_ = began_ + patience;
    co_return kube::result<void>();
  }
  if (last_ && now - *last_ < between_writes) {
    due_ = *last_ + between_writes;
    co_return kube::result<void>();
  }
  const auto& type = kube::resources::accelerator_nodes;
  json body = {{"apiVersion", type.api_version()},
               {"kind", type.kind},
               {"metadata", {{"name", object->key.name}, {"uid", object->id.to_string()}}}};
  body["status"] = status_of(rows, others, *object, controller::rfc3339_seconds(std::chrono::system_clock::now()));
  kube::write_options options;
  options.field_manager = field_owner;
  options.force = true;
  const auto key = object->key;
  const auto version = object->resource_version;
  auto answer = co_await status_.apply(api, type, key, body, options);
  if (!answer) co_return std::unexpected(std::move(answer.error()));
  last_ = now;
  written_version_ = version;
  const auto failed = std::ranges::count(rows, check_state::failed, &row::state);
  controller::log::info("preflight", {{"rows", std::to_string(rows.size())}, {"failed", std::to_string(failed)}});
  written_ = std::move(rows);
  written_others_ = std::move(others);
  co_return kube::result<void>();
}

}  // namespace agent::facts
