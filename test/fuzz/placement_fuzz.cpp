// Any node, book, pod and preferences: what is placed the book takes, fit and filter say the same as place, a change
// that explain names makes it fit, victims make room, and when all is released nothing is held.

#include <algorithm>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <source_location>
#include <string>
#include <vector>

#include "api/engine_words.hpp"
#include "quota/explain.hpp"
#include "quota/filter.hpp"

namespace {

class bytes {
 public:
  bytes(const std::uint8_t* data, std::size_t size) : next_(data), end_(data + size) {}
  unsigned next() { return next_ == end_ ? 0 : *next_++; }
  unsigned below(unsigned n) { return next() % n; }
  bool left() const { return next_ != end_; }
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
  const std::uint8_t* next_;
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

quota::node_inventory node_of(bytes& bytes) {
  quota::node_inventory node{.name = "n", .serves = {}, .cards = {}, .counts = {}, .placement = {}};
  node.serves.modes = static_cast<std::uint16_t>(bytes.next() | (bytes.next() & 1) << 8);
  node.serves.default_cards = static_cast<std::int32_t>(bytes.below(3));
  node.serves.one_replica = bytes.below(2) == 1;
  node.serves.plugin_chooses = bytes.below(2) == 1;
  node.serves.default_cores = static_cast<std::int32_t>(bytes.below(101));
  if (bytes.below(4) == 0) node.placement = quota::policy::spread;
  for (unsigned i = 0, cards = bytes.below(7); i < cards; ++i) {
    quota::card card{.uuid = std::to_string(i),
                     .model = bytes.below(2) == 0 ? "Tesla T4" : "A100",
                     .memory_mib = 256 * (1 + bytes.below(64))};
    card.numa = static_cast<std::int32_t>(bytes.below(3)) - 1;
    card.max_sharers = static_cast<std::int32_t>(bytes.below(5));
    const auto bits = bytes.next();
    card.healthy = (bits & 7) != 0;
    card.cordoned = (bits & 56) == 56;
    card.mig = (bits & 192) == 192;
    if (bytes.below(8) == 0) card.memory_scale = 150;
    node.cards.push_back(card);
  }
  if (bytes.below(2) == 0)
    for (std::size_t i = 0; i < node.cards.size() * node.cards.size(); ++i)
      node.links.push_back(
          {.pci = static_cast<quota::path>(bytes.below(6)), .nvlinks = static_cast<std::uint8_t>(bytes.below(3))});
  if (bytes.below(2) == 0) node.counts.push_back({"example.com/fpga", bytes.amount() & INT64_MAX});
  return node;
}

std::vector<std::vector<quota::amount>> pod_of(bytes& bytes) {
  std::vector<std::vector<quota::amount>> out(1 + bytes.below(3));
  for (auto& entry : out)
    for (unsigned left = 1 + bytes.below(3); left > 0; --left)
      entry.push_back({keys[bytes.below(key_count)], bytes.amount()});
  return out;
}

void must(bool holds, std::source_location location = std::source_location::current()) {
  if (holds) return;
  std::fprintf(stderr, "line %u\n", location.line());
  std::abort();
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  bytes bytes{data, size};
  quota::ledger book;
  book.put(node_of(bytes));
  std::vector<std::string> running;
  for (int made = 0; bytes.left() && made < 12; ++made) {
    const auto amounts = pod_of(bytes);
    const std::vector<quota::limits> pod{amounts.begin(), amounts.end()};
    quota::selector only;
    if (bytes.below(4) == 0) only.read(wishes[bytes.below(wish_count)], bytes.text());
    const auto view = *book.view("n");
    quota::demand demand;
    quota::placement placement;
    const bool read = !quota::read(pod, view.inventory->serves, demand);
    quota::shortfall by_filter;
    quota::filter(pod, {&view, 1}, {&by_filter, 1}, &only);
    if (!read) {
      must(by_filter.code == quota::reason::refused);
      continue;
    }
    const quota::preferences preferences{
        .default_policy = bytes.below(2) == 0 ? quota::policy::binpack : quota::policy::spread, .only = &only};
    const auto result = quota::place(demand, view, preferences, placement);
    must(result.fits() == quota::fit(demand, view, preferences).fits());
    must(result.fits() == by_filter.fits());
    must(quota::fragmentation(view) >= 0);
    if (result.fits()) {
      const auto score = quota::score(placement, view, preferences.default_policy);
      must(score >= 0 && score <= 10);
      const auto uid = std::to_string(made);
      must(book.assume(uid, quota::holding_of(demand, placement, *view.inventory), 1) == quota::booked::done);
      running.push_back(uid);
      continue;
    }
    must(placement.all().empty());
    if (result.code == quota::reason::search_limit) continue;
    const auto explanation = quota::explain(pod, {&view, 1}, &only);
    must(explanation.fitting == 0 && !api::words_of(explanation, {&view, 1}, {}, text::language::en).empty());
    if (explanation.of_pod) {
      auto changed = amounts;
      changed[explanation.of_pod->container][explanation.of_pod->limit].value = explanation.of_pod->amount;
      const std::vector<quota::limits> other{changed.begin(), changed.end()};
      must(!quota::read(other, view.inventory->serves, demand) && quota::fit(demand, view, preferences).fits());
    }
  }
  must(book.over_given("n") == 0);
  quota::ledger restored;
  restored.put(*book.view("n")->inventory);
  book.for_each([&](const std::string& uid, const quota::ledger::entry& entry) { restored.restore(uid, entry); });
  must(std::ranges::equal(restored.view("n")->used, book.view("n")->used));
  must(std::ranges::equal(restored.view("n")->counts_used, book.view("n")->counts_used));
  for (const auto& uid : running) must(book.release(uid));
  for (const auto& used : book.view("n")->used) must(used == quota::card_use{});
  return 0;
}
