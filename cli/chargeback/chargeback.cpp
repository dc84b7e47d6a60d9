#include "cli/chargeback/chargeback.hpp"

#include <algorithm>
#include <set>

#include "text/text.hpp"

namespace cli {
namespace {

using api::accelerator_usage;

/// Rows that are too many for an object are one row of this model.
constexpr std::string_view other = "other";

text::phrase difference_phrase(const char* key, std::string_view model, const quota::card_time& rows,
                               const quota::card_time& parts) {
  const auto amount_of = [](const quota::card_time& time) {
    return text::phrase{
        "report.difference.amount",
        {{"cores", std::to_string(time.core_seconds)}, {"memory", std::to_string(time.memory_mib_seconds)}}};
  };
  return {std::string("report.difference.") + key,
          {{"model", text::shown(model, 316)}, {"rows", amount_of(rows)}, {"parts", amount_of(parts)}}};
}

using times_by_model = std::map<std::string, quota::card_time, std::less<>>;

quota::card_time total(const times_by_model& times) {
  quota::card_time out;
  for (const auto& [model, time] : times) out += time;
  return out;
}

/// The parts of the cluster's object are those of the namespaces. Where rows were too many, their models are not known:
/// then the totals have to agree.
text::phrase difference(const times_by_model& held, const times_by_model& counted) {
  if (held.contains(other) || counted.contains(other)) {
    const auto rows = total(held), parts = total(counted);
    return rows == parts ? text::phrase() : difference_phrase("all_models", {}, rows, parts);
  }
  std::set<std::string, std::less<>> models;
  for (const auto* times : {&held, &counted})
    for (const auto& [model, time] : *times) models.insert(model);
  for (const auto& model : models) {
    const auto time = [&](const times_by_model& times) {
      const auto match = times.find(model);
      return match == times.end() ? quota::card_time() : match->second;
    };
    if (time(held) != time(counted)) return difference_phrase("of_model", model, time(held), time(counted));
  }
  return {};
}

text::phrase discrepancy_of(const accelerator_usage& cluster, const times_by_model& held) {
  times_by_model counted;
  for (const auto& [model, row] : cluster.models) {
    counted[model] = row.parts;
    if (!row.adds_up())
      return difference_phrase("capacity", model, row.parts + row.idle + row.unhealthy + row.unattributed,
                               row.capacity + row.beyond);
  }
  return difference(held, counted);
}

chargeback_row row_of(const std::string& name_space, const quota::usage_key& key, const quota::card_time& time,
                      const accelerator_usage& cluster, const reconcilers::chargeback_spec& spec) {
  chargeback_row out{name_space, key, time, {}, {}, 0};
  if (const auto model = cluster.models.find(key.model); model != cluster.models.end())
    out.card_mib = card_memory_mib(model->second.capacity);
  if (const auto* price = spec.price_of(key.model)) {
    out.card_hour = price->card_hour;
    out.price = cost_of(price->card_hour, time, out.card_mib);
  }
  return out;
}

}  // namespace

std::optional<chargeback> chargeback_of(std::string_view month, const std::vector<accelerator_usage>& objects,
                                        const reconcilers::chargeback_spec& spec, std::string_view ns) {
  const auto cluster = std::ranges::find_if(
      objects, [&](const accelerator_usage& object) { return object.month == month && object.name_space.empty(); });
  if (cluster == objects.end()) return std::nullopt;
  chargeback out;
  out.month = month;
  out.currency = spec.currency;
  out.has_prices = !spec.prices.empty();
  if (const auto bounds = api::bounds_of(month)) out.begin = bounds->begin;
  out.counted_since = cluster->since;
  out.counted_until = cluster->until;
  std::map<std::string, const quota::usage_rows*> namespaces;
  for (const auto& object : objects) {
    if (object.month != month || object.name_space.empty()) continue;
    if (const auto* rows = object.rows_at(cluster->until)) namespaces[object.name_space] = rows;
  }
  times_by_model held;
  std::set<std::string> without_price;
  for (const auto& [name, rows] : namespaces)
    for (const auto& [key, time] : *rows) {
      held[key.model] += time;
      if (!ns.empty() && name != ns) continue;
      auto row = row_of(name, key, time, *cluster, spec);
      if (row.price)
        out.sum += *row.price;
      else
        without_price.insert(key.model);
      out.rows.push_back(std::move(row));
    }
  out.without_price.assign(without_price.begin(), without_price.end());
  if (ns.empty()) out.models = cluster->models;
  out.discrepancy = discrepancy_of(*cluster, held);
  return out;
}

}  // namespace cli
