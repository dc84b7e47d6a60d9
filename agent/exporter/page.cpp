#include "agent/exporter/page.hpp"

#include <algorithm>
#include <optional>

#include "agent/cards/nvml_abi.hpp"

namespace agent::exporter {
namespace {

using cards::card_usage;
using controller::labels;

constexpr double million = 1'000'000, thousand = 1'000, whole_card = 100;

constexpr std::pair<std::string_view, std::uint64_t> throttle_reasons[] = {
    {"sw_power_cap", nvml::throttle_sw_power_cap},     {"hw_slowdown", nvml::throttle_hw_slowdown},
    {"sync_boost", nvml::throttle_sync_boost},         {"sw_thermal", nvml::throttle_sw_thermal},
    {"hw_thermal", nvml::throttle_hw_thermal},         {"hw_power_brake", nvml::throttle_hw_power_brake},
    {"display_clocks", nvml::throttle_display_clocks}, {"applications_clocks", nvml::throttle_applications_clocks}};

constexpr std::pair<std::string_view, std::uint64_t unattributed::*> reasons[] = {
    {"host", &unattributed::host},
    {"mps_server", &unattributed::mps_server},
    {"unknown_pod", &unattributed::unknown_pod},
    {"unseen", &unattributed::unseen}};

std::string prefixed(std::string_view prefix, std::string_view name) {
  return "quartermaster_" + std::string(prefix) + "_" + std::string(name);
}

class writer {
 public:
  writer(const page& page, controller::metric_text& text) : page_(page), text_(text) {
    for (std::size_t i = 0; i < page.usage.size(); ++i) {
      const auto& card = page.usage[i];
      cards_.push_back({labels_of(card.uuid), &card, i < page.parts.size() ? &page.parts[i] : nullptr});
      if (!cards_.back().parts) continue;
      for (const auto& share : cards_.back().parts->shares) {
        if (shares_.size() >= page.max_share_series / series_per_share) {
          ++left_out_;
          continue;
        }
        shares_.push_back({cards_.back().base, &share});
        auto& all = shares_.back().base;
        all.emplace_back("namespace", share.name.ns);
        all.emplace_back("pod", share.name.pod);
        all.emplace_back("container", share.name.container);
      }
    }
  }

  void reported_cards() {
    text_.family("quartermaster_card_info", "What the card is; always 1.", "gauge");
    for (const auto& card : page_.report.cards) {
      auto all = labels_of(card.uuid);
      const auto index = card.minor < 0 ? std::string() : std::to_string(card.minor);
      all.emplace_back("index", index);
      all.emplace_back("bus_id", card.bus_id);
      all.emplace_back("driver", page_.report.driver);
      text_.sample("quartermaster_card_info", all, 1);
    }
    text_.family("quartermaster_card_healthy", "1 while the card may get new pods, 0 while it is sick.", "gauge");
    for (const auto& card : page_.report.cards)
      text_.sample("quartermaster_card_healthy", labels_of(card.uuid), card.defect.empty() ? 1 : 0);
    text_.family("quartermaster_card_xids_total",
                 "XIDs that the driver reported since the agent started; of a storm one a second counts.", "counter");
    for (const auto& [event, count] : page_.xids) {
      auto all = labels_of(event.first);
      const auto number = std::to_string(event.second);
      all.emplace_back("xid", number);
      text_.sample("quartermaster_card_xids_total", all, static_cast<double>(count));
    }
  }

  void preflight() {
    text_.family("quartermaster_preflight_check_failed",
                 "1 while the check of the node fails, 0 while it passes or only warns.", "gauge");
    for (const auto& row : page_.preflight) {
      if (row.state == facts::check_state::unknown) continue;
      text_.sample("quartermaster_preflight_check_failed", {{"node", page_.node}, {"check", row.name}},
                   row.state == facts::check_state::failed ? 1 : 0);
    }
  }

  /// A family with at most one series for a card.
  void card(std::string_view name, std::string_view help, std::string_view type, double scale, auto value) {
    const auto full = prefixed("card", name);
    text_.family(full, help, type);
    for (const auto& card : cards_)
      if (const auto amount = value(*card.usage)) text_.sample(full, card.base, static_cast<double>(*amount) / scale);
  }

  void share(std::string_view name, std::string_view help, double scale, auto value) {
    const auto full = prefixed("share", name);
    text_.family(full, help, "gauge");
    for (const auto& share : shares_)
      if (const auto amount = value(*share.share)) text_.sample(full, share.base, static_cast<double>(*amount) / scale);
  }

  void left_out() {
    text_.family("quartermaster_exporter_shares_left_out",
                 "Shares without series, because they are more than --metrics-max-series allows.", "gauge");
    text_.sample("quartermaster_exporter_shares_left_out", {}, static_cast<double>(left_out_));
  }

  void throttling() {
    text_.family("quartermaster_card_throttled", "1 while the reason lowers the card's clocks.", "gauge");
    for (const auto& card : cards_) {
      if (!card.usage->throttle_reasons) continue;
      auto all = card.base;
      all.emplace_back("reason", "");
      for (const auto& [reason, bit] : throttle_reasons) {
        all.back().second = reason;
        text_.sample("quartermaster_card_throttled", all, *card.usage->throttle_reasons & bit ? 1 : 0);
      }
    }
  }

  void rest(std::string_view name, std::string_view help, double scale,
            std::optional<unattributed> attributed_card::* of_card) {
    const auto full = prefixed("card", name);
    text_.family(full, help, "gauge");
    for (const auto& card : cards_) {
      if (!card.parts || !(card.parts->*of_card)) continue;
      auto all = card.base;
      all.emplace_back("reason", "");
      for (const auto& [reason, member] : reasons) {
        all.back().second = reason;
        text_.sample(full, all, static_cast<double>((*(card.parts->*of_card)).*member) / scale);
      }
    }
  }

 private:
  struct card_row {
    labels base;
    const card_usage* usage;
    const attributed_card* parts;
  };
  struct share_row {
    labels base;
    const struct share* share;
  };

  labels labels_of(const std::string& uuid) const {
    const auto card = std::ranges::find(page_.report.cards, uuid, &cards::card::uuid);
    const bool is_known = card != page_.report.cards.end();
    return {{"node", page_.node},
            {"uuid", uuid},
            {"model", is_known ? std::string_view(card->model) : std::string_view()},
            {"mode", is_known && card->mig ? std::string_view("mig") : std::string_view(page_.mode)}};
  }

  const page& page_;
  controller::metric_text& text_;
  std::vector<card_row> cards_;
  std::vector<share_row> shares_;
  std::size_t left_out_ = 0;
};

void write_cards(writer& writer) {
  writer.card("utilization_ratio", "Part of the time in which a kernel ran on the card.", "gauge", million,
              [](const card_usage& card) { return card.utilization_ppm; });
  writer.card("memory_bytes", "Memory of the card.", "gauge", 1,
              [](const card_usage& card) { return card.memory_total; });
  writer.card("memory_used_bytes", "Memory in use, without what the driver reserves.", "gauge", 1,
              [](const card_usage& card) { return card.memory_used; });
  writer.card("memory_reserved_bytes", "Memory that the driver reserves.", "gauge", 1,
              [](const card_usage& card) { return card.memory_reserved; });
  writer.card("temperature_celsius", "Temperature of the card.", "gauge", 1,
              [](const card_usage& card) { return card.temperature_celsius; });
  writer.card("power_watts", "Power that the card draws.", "gauge", thousand,
              [](const card_usage& card) { return card.power_mw; });
  writer.card("energy_joules_total", "Energy that the card has used since the driver was loaded.", "counter", thousand,
              [](const card_usage& card) { return card.energy_mj; });
  writer.throttling();
  writer.card("nvlink_transmit_bytes_total", "Bytes sent over all NVLinks of the card since the driver was loaded.",
              "counter", 1, [](const card_usage& card) { return card.nvlink_transmitted; });
  writer.card("nvlink_receive_bytes_total", "Bytes received over all NVLinks of the card since the driver was loaded.",
              "counter", 1, [](const card_usage& card) { return card.nvlink_received; });
  writer.card("mps_clients", "Clients of MPS on the card.", "gauge", 1, [](const card_usage& card) {
    const auto count = std::ranges::count_if(card.processes, &cards::process_usage::is_mps_client);
    return card.lists_processes ? std::optional(count) : std::nullopt;
  });
  writer.rest("unattributed_memory_bytes", "Memory in use that belongs to no share.", 1, &attributed_card::memory);
  writer.rest("unattributed_utilization_ratio", "Utilization of the card that belongs to no share.", million,
              &attributed_card::utilization);
}

void write_shares(writer& writer) {
  writer.share("allocated_cores_ratio", "Part of the card's cores that the container was given.", whole_card,
               [](const share& share) { return share.cores; });
  writer.share("allocated_memory_bytes", "Memory of the card that the container was given.", 1,
               [](const share& share) { return share.memory_given; });
  writer.share("memory_used_bytes", "Memory of the card that the container uses.", 1,
               [](const share& share) { return share.memory_used; });
  writer.share("utilization_ratio", "Part of the card's utilization that is the container's.", million,
               [](const share& share) { return share.utilization_ppm; });
  writer.share("processes", "Processes of the container on the card that the agent can see.", 1,
               [](const share& share) { return std::optional(share.processes); });
  writer.share("mps_clients", "Processes of the container on the card that are clients of MPS.", 1,
               [](const share& share) { return std::optional(share.mps_clients); });
}

}  // namespace

void write(const page& page, controller::metric_text& text) {
  writer writer(page, text);
  writer.reported_cards();
  writer.preflight();
  write_cards(writer);
  write_shares(writer);
  writer.left_out();
}

}  // namespace agent::exporter
