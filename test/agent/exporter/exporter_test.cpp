// What is served of what was taken, without a server.
#include "agent/exporter/exporter.hpp"

#include <gtest/gtest.h>

#include <thread>

namespace agent::exporter {
namespace {

using namespace std::chrono_literals;

cards::inventory one_card() {
  cards::inventory out;
  cards::card card;
  card.uuid = "GPU-1";
  out.cards = {card};
  return out;
}

bool has(const std::string& text, const std::string& name) { return text.find("\n" + name) != std::string::npos; }

TEST(exporter, shows_no_old_reading_as_new) {
  controller::registry metrics;
  controller::loop loop(metrics);
  constexpr auto period = 100ms;
  exporter exporter(loop, metrics, {}, "gpu-1", {one_card, [] { return std::string("pgpu"); }}, period);
  EXPECT_FALSE(has(metrics.text(), "quartermaster_exporter_reading_age_seconds")) << "nothing was read yet";
  cards::card_usage card;
  card.uuid = "GPU-1";
  card.memory_used = 7;
  exporter.take({card});
  exporter.count_xid("GPU-1", 48);
  exporter.count_xid("GPU-1", 48);
  auto text = metrics.text();
  const std::string labels = R"({node="gpu-1",uuid="GPU-1",model="",mode="pgpu")";
  EXPECT_TRUE(has(text, "quartermaster_card_memory_used_bytes" + labels + "} 7\n")) << text;
  EXPECT_TRUE(has(text, "quartermaster_card_xids_total" + labels + R"(,xid="48"} 2)")) << text;
  EXPECT_TRUE(has(text, "quartermaster_exporter_reading_age_seconds 0")) << text;
  std::this_thread::sleep_for(4 * period);
  text = metrics.text();
  EXPECT_FALSE(has(text, "quartermaster_card_memory_used_bytes{")) << text;
  EXPECT_TRUE(has(text, "quartermaster_card_healthy" + labels + "} 1\n")) << text;
  EXPECT_TRUE(has(text, "quartermaster_exporter_reading_age_seconds 0.")) << text;
}

TEST(exporter, says_how_the_kubelet_answers_only_where_it_is_asked) {
  for (const std::string socket : {"", "/pod-resources/kubelet.sock"}) {
    controller::registry metrics;
    controller::loop loop(metrics);
    metrics_options options;
    options.pod_resources = socket;
    exporter exporter(loop, metrics, options, "gpu-1", {one_card, [] { return std::string("pgpu"); }}, 100ms);
    EXPECT_EQ(has(metrics.text(), "quartermaster_exporter_kubelet_answers 0"), !socket.empty());
  }
}

}  // namespace
}  // namespace agent::exporter
