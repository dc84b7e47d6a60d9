#include "agent/allocation/starter.hpp"

#include <sys/stat.h>

#include <algorithm>
#include <boost/asio/co_spawn.hpp>
#include <cstring>
#include <exception>
#include <filesystem>
#include <system_error>

#include "controller/log.hpp"
#include "controller/sleep.hpp"

namespace agent::allocation {
namespace {

namespace asio = boost::asio;
namespace log = controller::log;
using clock = std::chrono::steady_clock;
using grpc::status_code;
using std::chrono::milliseconds;

constexpr std::string_view vendor = "quartermaster.io", checkpoint = "kubelet_internal_checkpoint";
constexpr std::size_t largest_checkpoint = std::size_t{32} << 20;
constexpr milliseconds look_again{100}, kubelet_deadline{2'000};

grpc::status unavailable(std::string text) { return {status_code::unavailable, std::move(text)}; }

std::map<std::string, std::string> made_so_far(const kube::running_pod& pod, const std::vector<std::string>& names) {
  std::map<std::string, std::string> out;
  for (const auto& name : names) {
    const auto match = std::ranges::find(pod.ids, name, &kube::container_id::name);
    out[name] = match == pod.ids.end() ? "" : match->id;
  }
  return out;
}

}  // namespace

starter::starter(asio::any_io_executor executor, starter_options options, controller::store<kube::running_pod>& pods,
                 std::function<std::vector<quota::card>()> cards, editor editor)
    : executor_(std::move(executor)),
      options_(std::move(options)),
      pods_(pods),
      cards_(std::move(cards)),
      editor_(std::move(editor)) {}

starter::~starter() {
  *alive_ = false;
  for (const auto& [device, is] : making_)
    if (const auto done = remove(device); !done)
      log::warn("a container's CDI file was not removed", {{"error", done.error()}});
}

/// "quartermaster.io/nvidia.com-gpu": the same IDs of two resources are two devices.
std::string starter::kind() const {
  auto name = options_.resource.name;
  std::ranges::replace(name, '/', '-');
  return std::string(vendor) + "/" + name;
}

std::string starter::file_of(std::string_view device) const {
  auto name = kind();
  std::ranges::replace(name, '/', '-');
  return name + "-" + std::string(device) + ".json";
}

std::expected<void, std::string> starter::begin() {
  std::error_code problem;
  std::filesystem::create_directory(options_.cdi_folder, problem);
  const auto folder = disk::open_folder(options_.cdi_folder);
  if (!folder) return std::unexpected(disk::line_of(folder.error()));
  const auto beginning = file_of("d-");
  const auto prefix = beginning.substr(0, beginning.size() - std::string_view(".json").size());
  std::filesystem::directory_iterator entry(options_.cdi_folder, problem), end;
  for (; !problem && entry != end; entry.increment(problem)) {
    const auto name = entry->path().filename().string();
    if (!name.starts_with(prefix)) continue;
    if (auto done = disk::remove(*folder, name); !done) return std::unexpected(disk::line_of(done.error()));
  }
  if (problem) return std::unexpected("cannot list " + options_.cdi_folder + ": " + problem.message());
  return {};
}

std::expected<device_plugin::allocation_answer, std::string> starter::answer_for(
    const device_plugin::device_ids& devices) {
  return device_plugin::allocation_answer{{qualified_name(kind(), device_name_of(devices))}, options_.without_cards};
}

std::expected<void, std::string> starter::write(const std::string& device, std::string_view text) const {
  const auto folder = disk::open_folder(options_.cdi_folder);
  if (!folder) return std::unexpected(disk::line_of(folder.error()));
  // Runtimes read names that end with .json or .yaml.
  const auto done =
      disk::put({*folder, file_of(device) + ".draft"}, *folder, file_of(device), text, {.mode = 0600}, nullptr);
  if (!done) return std::unexpected(disk::line_of(done.error()));
  return {};
}

std::expected<void, std::string> starter::remove(const std::string& device) const {
  const auto folder = disk::open_folder(options_.cdi_folder);
  if (!folder) return std::unexpected(disk::line_of(folder.error()));
  const auto done = disk::remove(*folder, file_of(device));
  if (!done) return std::unexpected(disk::line_of(done.error()));
  return {};
}

std::expected<std::vector<kubelet::recorded_devices>, std::string> starter::recorded() const {
  const auto folder = disk::open_folder(options_.plugin_folder);
  if (!folder) return std::unexpected(disk::line_of(folder.error()));
  const auto is = disk::read(*folder, std::string(checkpoint), largest_checkpoint);
  if (!is) return std::unexpected(disk::line_of(is.error()));
  if (!*is) return std::unexpected(folder->file(std::string(checkpoint)) + " is not there");
  auto out = kubelet::devices_recorded_in((*is)->text);
  if (!out) return std::unexpected(out.error().message);
  return std::move(*out);
}

void starter::prepare(device_plugin::device_ids devices, std::function<void(grpc::status)> done) {
  std::ranges::sort(devices);
  const auto call = ++calls_;
  asio::co_spawn(executor_, start(std::move(devices), call),
                 [done = std::move(done)](const std::exception_ptr& thrown, grpc::status status) {
                   done(thrown ? grpc::status(status_code::internal, "the plugin failed") : std::move(status));
                 });
}

asio::awaitable<grpc::status> starter::start(std::vector<std::string> ids, std::uint64_t call) {
  const auto alive = alive_;
  const auto device = device_name_of(ids);
  const auto begin = clock::now();
  newest_[device] = call;
  making_.erase(device);
  if (const auto gone = remove(device); !gone) co_return unavailable(gone.error());
  std::string text;
  const auto is = co_await look(ids, device, text);
  if (!*alive) co_return unavailable("the plugin ends");
  if (newest_[device] != call) co_return unavailable("the kubelet has asked again about these devices");
  newest_.erase(device);
  if (!is) {
    log::warn("a container must not start", {{"resource", options_.resource.name}, {"reason", is.error().text}});
    co_return is.error();
  }
  making_[device] = *is;
  if (const auto done = write(device, text); !done) co_return unavailable(done.error());
  const auto took = std::chrono::duration_cast<std::chrono::milliseconds>(clock::now() - begin);
  log::info("a container may start", {{"resource", options_.resource.name},
                                      {"pod", is->pod.to_string()},
                                      {"milliseconds", std::to_string(took.count())}});
  co_return grpc::status();
}

/// What the kubelet lists now. A refusal of this call would cost the container the kubelet's pause of ten seconds.
asio::awaitable<std::expected<std::vector<kubelet::given_devices>, grpc::status>> starter::listed(
    clock::time_point until) {
  const auto alive = alive_;
  for (;;) {
    auto answer = co_await kubelet::list_devices(executor_, options_.pod_resources, kubelet_deadline);
    if (!*alive) co_return std::unexpected(unavailable("the plugin ends"));
    if (answer) co_return std::move(*answer);
    if (answer.error().code != kube::errc::too_many_requests || clock::now() > until)
      co_return std::unexpected(unavailable(answer.error().message));
    const bool slept = co_await controller::sleep_for(look_again);
    if (!slept || !*alive) co_return std::unexpected(unavailable("the plugin ends"));
  }
}

/// The container, and the text of its file.
asio::awaitable<std::expected<starter::making, grpc::status>> starter::look(const std::vector<std::string>& ids,
                                                                            const std::string& device,
                                                                            std::string& text) {
  const auto alive = alive_;
  const auto until = clock::now() + options_.patience;
  for (;;) {
    std::vector<kubelet::given_devices> list;
    if (!options_.pod_resources.empty()) {
      auto answer = co_await listed(until);
      if (!answer) co_return std::unexpected(answer.error());
      list = std::move(*answer);
    }
    const auto record = recorded();
    if (!record) co_return std::unexpected(unavailable(record.error()));
    std::vector<const kube::running_pod*> pods;
    for (const auto& pod : pods_.all()) pods.push_back(&pod);
    const auto cards = cards_();
    const auto is = start_of(options_.resource, ids, {options_.node, *record, list, pods, cards, options_.vocabulary});
    if (is) {
      making out{is->pod->id.to_string(), is->pod->key, made_so_far(*is->pod, is->candidates), clock::now()};
      const auto container = is->container;
      const auto edits = co_await editor_(*is);
      if (!*alive) co_return std::unexpected(unavailable("the plugin ends"));
      if (!edits) co_return std::unexpected(grpc::status(status_code::failed_precondition, edits.error()));
      text = specification(kind(), device, *edits, out.pod.to_string(), container);
      co_return out;
    }
    if (!is.error().may_pass() || clock::now() > until)
      co_return std::unexpected(grpc::status(status_code::failed_precondition, is.error().text()));
    const bool slept = co_await controller::sleep_for(look_again);
    if (!slept || !*alive) co_return std::unexpected(unavailable("the plugin ends"));
  }
}

void starter::clear_made() {
  std::erase_if(making_, [&](const auto& entry) {
    const auto& [device, is] = entry;
    const auto* pod = pods_.find(is.pod);
    const bool gone = !pod || pod->id.to_string() != is.pod_uid || pod->finished();
    const bool made = !gone && std::ranges::any_of(is.ids, [&](const auto& before) {
      const auto match = std::ranges::find(pod->ids, before.first, &kube::container_id::name);
      return match != pod->ids.end() && !match->id.empty() && match->id != before.second;
    });
    if (!gone && !made && clock::now() - is.since < options_.longest_making) return false;
    const auto done = remove(device);
    if (!done) log::warn("a container's CDI file was not removed", {{"error", done.error()}});
    return done.has_value();
  });
}

}  // namespace agent::allocation
