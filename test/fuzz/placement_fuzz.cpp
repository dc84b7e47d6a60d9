// Any node, book, pod and wish: what is placed the book takes, fit and filter say the same as place, a change that
// explain names makes it fit, victims make room, and when all is released nothing is held.

#include <algorithm>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <source_location>
#include <string>
#include <vector>

#include "quota/explain.hpp"
#include "quota/filter.hpp"

namespace {

class bytes {
 public:
  bytes(const std::uint8_t* data, std::size_t size) : at_(data), end_(data + size) {}
  unsigned next() { return at_ == end_ ? 0 : *at_++; }
  unsigned below(unsigned n) { return next() % n; }
  bool left() const { return at_ != end_; }
  std::int64_t amount() {
    switch (below(4)) {
      case 0:
        return static_cast<std::int64_t>(next());
      case 1:
        return static_cast<std::int64_t>(next()) * 100;
      case 2:
        return static_cast<std::int64_t>(next() << 8 | next());
      default: {
        std::uint64_t out = 0;
        for (int i = 0; i < 8; ++i) out = out << 8 | next();
        return static_cast<std::int64_t>(out);
      }
    }
  }
  std::string text() {
    std::string out;
    for (unsigned left = below(24); left > 0; --left) out += static_cast<char>(next());
    return out;
  }

 private:
  const std::uint8_t* at_;
  const std::uint8_t* end_;
};

constexpr const char* keys[] = {"nvidia.com/gpu",
                                "nvidia.com/gpu.shared",
                                "tencent.com/vcuda-core",
                                "tencent.com/vcuda-memory",
                                "tencent.com/vcuda-core-limit",
                                "nvidia.com/mps-core",
                                "nvidia.com/mps-memory",
                                "nvidia.com/gpumem",
                                "nvidia.com/gpumem-percentage",
                                "nvidia.com/gpucores",
                                "aliyun.com/gpu",
                                "aliyun.com/gpu-mem",
                                "aliyun.com/gpu-count",
                                "aliyun.com/gpu-core.percentage",
                                "volcano.sh/vgpu-number",
                                "tke.cloud.tencent.com/qgpu-core",
                                "tke.cloud.tencent.com/qgpu-memory",
                                "example.com/fpga",
                                "cpu"};
constexpr const char* wishes[] = {"nvidia.com/use-gputype",        "nvidia.com/nouse-gputype",
                                  "nvidia.com/use-gpuuuid",        "nvidia.com/nouse-gpuuuid",
                                  "hami.io/gpu-scheduler-policy",  "aliyun.accelerator/nvidia_name",
                                  "aliyun.accelerator/nvidia_mem", "tkestack.io/gpu-pool"};
constexpr std::size_t key_count = std::size(keys), wish_count = std::size(wishes);

quota::node node_of(bytes& in) {
  quota::node on{.name = "n", .serves = {}, .cards = {}, .counts = {}, .placement = {}};
  on.serves.modes = static_cast<std::uint16_t>(in.next() | (in.next() & 1) << 8);
  on.serves.default_cards = static_cast<std::int32_t>(in.below(3));
  on.serves.default_cores = static_cast<std::int32_t>(in.below(101));
  if (in.below(4) == 0) on.placement = quota::policy::spread;
  for (unsigned i = 0, cards = in.below(7); i < cards; ++i) {
    quota::card of{.uuid = std::to_string(i),
                   .model = in.below(2) == 0 ? "Tesla T4" : "A100",
                   .memory_mib = 256 * (1 + in.below(64))};
    of.numa = static_cast<std::int32_t>(in.below(3)) - 1;
    of.max_sharers = static_cast<std::int32_t>(in.below(5));
    const auto bits = in.next();
    of.healthy = (bits & 7) != 0;
    of.cordoned = (bits & 56) == 56;
    of.mig = (bits & 192) == 192;
    if (in.below(8) == 0) of.memory_scale = 150;
    on.cards.push_back(of);
  }
  if (in.below(2) == 0)
    for (std::size_t i = 0; i < on.cards.size() * on.cards.size(); ++i)
      on.links.push_back(
          {.pci = static_cast<quota::path>(in.below(6)), .nvlinks = static_cast<std::uint8_t>(in.below(3))});
  if (in.below(2) == 0) on.counts.push_back({"example.com/fpga", in.amount() & INT64_MAX});
  return on;
}

std::vector<std::vector<quota::amount>> pod_of(bytes& in) {
  std::vector<std::vector<quota::amount>> out(1 + in.below(3));
  for (auto& one : out)
    for (unsigned left = 1 + in.below(3); left > 0; --left) one.push_back({keys[in.below(key_count)], in.amount()});
  return out;
}

void must(bool holds, std::source_location at = std::source_location::current()) {
  if (holds) return;
  std::fprintf(stderr, "line %u\n", at.line());
  std::abort();
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  bytes in{data, size};
  quota::ledger book;
  book.put(node_of(in));
  std::vector<std::string> running;
  for (int made = 0; in.left() && made < 12; ++made) {
    const auto amounts = pod_of(in);
    const std::vector<quota::limits> pod{amounts.begin(), amounts.end()};
    quota::selector only;
    if (in.below(4) == 0) only.read(wishes[in.below(wish_count)], in.text());
    const auto view = *book.view("n");
    quota::demand what;
    quota::placement where;
    const bool read = !quota::read(pod, view.what->serves, what);
    quota::shortfall by_filter;
    quota::filter(pod, {&view, 1}, {&by_filter, 1}, &only);
    if (!read) {
      must(by_filter.why == quota::reason::refused);
      continue;
    }
    const quota::wish as{.how = in.below(2) == 0 ? quota::policy::binpack : quota::policy::spread, .only = &only};
    const auto said = quota::place(what, view, as, where);
    must(said.fits() == quota::fit(what, view, as).fits());
    must(said.fits() == by_filter.fits());
    must(quota::fragmentation(view) >= 0);
    if (said.fits()) {
      const auto score = quota::score(where, view, as.how);
      must(score >= 0 && score <= 10);
      const auto uid = std::to_string(made);
      must(book.assume(uid, quota::holding_of(what, where, *view.what), 1) == quota::booked::done);
      running.push_back(uid);
      continue;
    }
    must(where.all().empty());
    if (said.why == quota::reason::search_limit) continue;
    const auto why = quota::explain(pod, {&view, 1}, &only);
    must(why.fitting == 0 && !quota::text_of(why, {&view, 1}).empty());
    if (why.of_pod) {
      auto changed = amounts;
      changed[why.of_pod->container][why.of_pod->limit].value = why.of_pod->to;
      const std::vector<quota::limits> other{changed.begin(), changed.end()};
      must(!quota::read(other, view.what->serves, what) && quota::fit(what, view, as).fits());
    }
  }
  must(book.over_given("n") == 0);
  quota::ledger restored;
  restored.put(*book.view("n")->what);
  book.for_each([&](const std::string& uid, const quota::ledger::entry& entry) { restored.restore(uid, entry); });
  must(std::ranges::equal(restored.view("n")->used, book.view("n")->used));
  must(std::ranges::equal(restored.view("n")->counts_used, book.view("n")->counts_used));
  for (const auto& uid : running) must(book.release(uid));
  for (const auto& used : book.view("n")->used) must(used == quota::card_use{});
  return 0;
}
