#include "reconcilers/extender/fence.hpp"

#include <algorithm>
#include <charconv>
#include <nlohmann/json.hpp>

#include "controller/log.hpp"
#include "controller/sleep.hpp"
#include "kube/event.hpp"
#include "kube/json_text.hpp"
#include "kube/page_walk.hpp"
#include "kube/status.hpp"
#include "kube/wire.hpp"

namespace reconcilers::extender {
namespace {

using namespace std::chrono_literals;
using kube::text_at;
using nlohmann::json;

constexpr std::size_t seals_at_once = 6;  // two connections of the eight are left to others
constexpr controller::milliseconds first_pause = 50ms, longest_pause = 5s;  // between two looks at the cache

std::uint64_t version_of(const std::string& text) {
  std::uint64_t out = 0;
  std::from_chars(text.data(), text.data() + text.size(), out);
  return out;
}

}  // namespace

kube::task<std::vector<fence::target>> fence::unbound() {
  kube::list_options options;
  options.field_selector = "spec.nodeName=,status.phase!=Succeeded,status.phase!=Failed";
  std::vector<target> out;
  kube::page_walk pages("list unbound pods");
  for (bool is_open = true; is_open;) {
    auto request = kube::list_page(kube::resources::pods, options);
    request.accept = "application/json;as=PartialObjectMetadataList;g=meta.k8s.io;v=v1";
    auto answer = co_await dependencies_.api.used_transport().send(std::move(request));
    if (!answer) co_return std::unexpected(answer.error());
    if (answer->status != 200) co_return std::unexpected(kube::error_of("list unbound pods", *answer));
    const auto page = json::parse(answer->body, nullptr, false);
    if (!page.is_object())
      co_return std::unexpected(kube::error{kube::errc::decode, 200, "list unbound pods: not a list", {}});
    youngest_ = std::max(youngest_, version_of(text_at(page, "/metadata/resourceVersion")));
    const auto items = page.value("items", json::array());
    for (const auto& item : items) {
      target pod{{text_at(item, "/metadata/namespace"), text_at(item, "/metadata/name")},
                 text_at(item, "/metadata/uid")};
      const auto* known = dependencies_.pods.find(pod.key);
      const bool other = known && known->id.to_string() == pod.uid && !dependencies_.is_managed(*known);
      if (!other) out.push_back(std::move(pod));
    }
    const auto more = pages.next(text_at(page, "/metadata/continue"), options);
    if (!more) co_return std::unexpected(more.error());
    is_open = *more;
  }
  co_return out;
}

kube::task<void> fence::close() {
  while (!sealed_) {
    auto pods = co_await unbound();
    if (!pods) {
      controller::log::warn("binding waits until pods can be listed", {{"error", pods.error().message}});
      const bool slept = co_await controller::sleep_for(1s);
      if (!slept) co_return kube::result<void>();
      continue;
    }
    left_ = std::move(*pods);
    const auto all = left_.size();
    const auto workers = std::min(seals_at_once, all);
    at_work_ = workers;
    for (std::size_t i = 0; i < workers; ++i) dependencies_.loop.spawn_essential("seal", work());
    while (at_work_ > 0) {
      const bool slept = co_await controller::sleep_for(10ms);
      if (!slept) co_return kube::result<void>();
    }
    sealed_ = true;
    if (all > 0)
      controller::log::info("pods that waited under an earlier leader are sealed", {{"pods", std::to_string(all)}});
  }
  co_return kube::result<void>();
}

boost::asio::awaitable<void> fence::work() {
  while (!left_.empty()) {
    const auto pod = std::move(left_.back());
    left_.pop_back();
    for (;;) {
      const auto done = co_await seal(pod.key, pod.uid);
      const bool gone =
          !done && (done.error().code == kube::errc::not_found || done.error().code == kube::errc::conflict);
      if (done) youngest_ = std::max(youngest_, *done);
      if (done || gone) break;
      controller::log::warn("a pod cannot be sealed; nothing is bound until it is",
                            {{"pod", pod.key.to_string()}, {"error", done.error().message}});
      const bool slept = co_await controller::sleep_for(500ms);
      if (!slept) break;
    }
  }
  --at_work_;
}

kube::task<std::uint64_t> fence::seal(kube::object_key pod, std::string uid) {
  // Another message each time: equal content would move no version.
  const auto message = "term " + dependencies_.term + ", seal " + std::to_string(++seals_);
  const json patch{{"metadata", {{"uid", uid}, {"annotations", {{seal_annotation, message}}}}}};
  const auto done = co_await dependencies_.api.patch(kube::resources::pods, pod, kube::patch_kind::merge, patch);
  if (!done) co_return std::unexpected(done.error());
  co_return version_of(text_at(*done, "/metadata/resourceVersion"));
}

kube::task<bool> fence::seal_self() {
  const auto* known = dependencies_.self.name.empty() ? nullptr : dependencies_.pods.find(dependencies_.self);
  if (!known) co_return false;
  const auto uid = known->id.to_string();
  const auto done = co_await seal(dependencies_.self, uid);
  if (!done) co_return std::unexpected(done.error());
  youngest_ = std::max(youngest_, *done);
  co_return *done > 0;
}

kube::task<bool> fence::complete() {
  kube::list_options options;
  options.field_selector = "spec.nodeName!=,status.phase!=Succeeded,status.phase!=Failed";
  bool every = true;
  const auto compare = [&](std::string_view item) {
    kube::object listed;
    const auto read = kube::wire::guarded("list bound pods", [&] {
      kube::wire::each_field(item, kube::wire::field<1>([&](std::string_view metadata) {
                               kube::wire::read_metadata(metadata, listed, kube::keep_none, kube::keep_none);
                             }));
    });
    const auto* known = dependencies_.pods.find(listed.key);
    every = every && read && known && known->id == listed.id && known->resource_version >= listed.resource_version;
  };
  kube::page_walk pages("list bound pods");
  for (bool is_open = true; every && is_open;) {
    auto request = kube::list_page(kube::resources::pods, options);
    request.accept = "application/vnd.kubernetes.protobuf;as=PartialObjectMetadataList;g=meta.k8s.io;v=v1";
    const auto answer = co_await dependencies_.api.used_transport().send(std::move(request));
    if (!answer) co_return std::unexpected(answer.error());
    if (answer->status != 200) co_return std::unexpected(kube::error_of("list bound pods", *answer));
    const auto page = kube::read_list(answer->body, kube::encoding::protobuf, compare);
    if (!page) co_return std::unexpected(page.error());
    const auto more = pages.next(page->next, options);
    if (!more) co_return std::unexpected(more.error());
    is_open = *more;
  }
  co_return every;
}

kube::task<void> fence::catch_up() {
  const auto sealed = co_await seal_self();
  for (auto pause = first_pause; !closed(); pause = std::min(2 * pause, longest_pause)) {
    if (!sealed || !*sealed) {
      const auto every = co_await complete();
      if (!every)
        controller::log::warn("binding waits until bound pods can be listed", {{"error", every.error().message}});
      caught_up_ = caught_up_ || (sealed_ && every && *every);
      if (caught_up_) break;
    }
    const bool slept = co_await controller::sleep_for(pause);
    if (!slept) break;
  }
  co_return kube::result<void>();
}

bool fence::closed() const {
  if (!sealed_) return false;
  if (!caught_up_) caught_up_ = youngest_ > 0 && dependencies_.pods.version() >= youngest_;
  return caught_up_;
}

}  // namespace reconcilers::extender
