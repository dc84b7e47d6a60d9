#include "api/accelerator_usage.hpp"

#include <algorithm>
#include <array>
#include <charconv>
#include <chrono>
#include <nlohmann/json.hpp>
#include <utility>

#include "controller/clock.hpp"
#include "kube/json_object.hpp"

namespace api {
namespace {

namespace on_demand = kube::on_demand;
using tree = nlohmann::json;

std::string text_of(quota::seconds time) {
  return controller::rfc3339_seconds(controller::wall_time(std::chrono::seconds(time)));
}

/// More than a month of 400,000 cards of 32 GiB, or of four million cards' cores, is no one's measurement. Within these
/// bounds sums and prices of edited objects do not overflow either.
constexpr std::int64_t max_core_seconds = std::int64_t{1} << 50, max_memory_mib_seconds = std::int64_t{1} << 55;

void read_amount(std::string_view name, on_demand::value field, quota::card_time& time) {
  const auto bounded = [&](std::int64_t limit) { return std::clamp(on_demand::number_or(field, 0), -limit, limit); };
  if (name == "coreSeconds") time.core_seconds = bounded(max_core_seconds);
  if (name == "memoryMiBSeconds") time.memory_mib_seconds = bounded(max_memory_mib_seconds);
}

quota::card_time read_time(on_demand::value object) {
  quota::card_time out;
  on_demand::each_member(object, [&](std::string_view name, on_demand::value field) { read_amount(name, field, out); });
  return out;
}

void read_row(on_demand::value object, quota::usage_rows& rows) {
  quota::usage_key key;
  quota::card_time time;
  on_demand::each_member(object, [&](std::string_view name, on_demand::value field) {
    if (name == "model") key.model = on_demand::text_or(field);
    if (name == "mode") key.mode = on_demand::text_or(field);
    if (name == "organization") key.organization = on_demand::text_or(field);
    if (name == "priority") key.priority = static_cast<std::int32_t>(on_demand::number_or(field, 0));
    read_amount(name, field, time);
  });
  rows[std::move(key)] += time;
}

/// The columns of a model, by their names in the object.
struct column {
  std::string_view name;
  quota::card_time quota::model_time::* member;
};
constexpr std::array<column, 6> columns{{{"capacity", &quota::model_time::capacity},
                                         {"parts", &quota::model_time::parts},
                                         {"idle", &quota::model_time::idle},
                                         {"unhealthy", &quota::model_time::unhealthy},
                                         {"unattributed", &quota::model_time::unattributed},
                                         {"beyond", &quota::model_time::beyond}}};

void read_model(on_demand::value object, quota::model_rows& models) {
  std::string model;
  quota::model_time row;
  on_demand::each_member(object, [&](std::string_view name, on_demand::value field) {
    if (name == "model") model = on_demand::text_or(field);
    for (const auto& column : columns)
      if (name == column.name) row.*column.member = read_time(field);
  });
  models[model] += row;
}

void read_usage(on_demand::value object, accelerator_usage& usage) {
  on_demand::each_member(object, [&](std::string_view key, on_demand::value field) {
    if (key == "month") usage.month = on_demand::text_or(field);
    if (key == "namespace") usage.name_space = on_demand::text_or(field);
    if (key == "since") usage.since = on_demand::seconds_of(on_demand::text_or(field));
    if (key == "through") usage.until = on_demand::seconds_of(on_demand::text_or(field));
    if (key == "rows") on_demand::each_item(field, [&](on_demand::value row) { read_row(row, usage.rows); });
    if (key == "models") on_demand::each_item(field, [&](on_demand::value row) { read_model(row, usage.models); });
    if (key != "before") return;
    on_demand::each_member(field, [&](std::string_view name, on_demand::value inner) {
      if (name == "through") usage.before_through = on_demand::seconds_of(on_demand::text_or(inner));
      if (name == "rows") on_demand::each_item(inner, [&](on_demand::value row) { read_row(row, usage.before_rows); });
    });
  });
}

tree write(const quota::card_time& time) {
  return {{"coreSeconds", time.core_seconds}, {"memoryMiBSeconds", time.memory_mib_seconds}};
}

tree write(const quota::usage_rows& rows) {
  auto out = tree::array();
  for (const auto& [key, time] : rows) {
    auto row = write(time);
    row["model"] = key.model;
    row["mode"] = key.mode;
    if (!key.organization.empty()) row["organization"] = key.organization;
    if (key.priority != 0) row["priority"] = key.priority;
    out.push_back(std::move(row));
  }
  return out;
}

tree write(const quota::model_rows& models) {
  auto out = tree::array();
  for (const auto& [model, columns_of_model] : models) {
    tree row{{"model", model}};
    for (const auto& column : columns) row[std::string(column.name)] = write(columns_of_model.*column.member);
    out.push_back(std::move(row));
  }
  return out;
}

}  // namespace

const kube::resource& accelerator_usage::of() {
  static constexpr kube::resource type{.group = "quartermaster.io",
                                       .version = "v1alpha1",
                                       .plural = "acceleratorusages",
                                       .kind = "AcceleratorUsage",
                                       .namespaced = false};
  return type;
}

kube::result<accelerator_usage> accelerator_usage::decode(std::string_view bytes) {
  return on_demand::decode<accelerator_usage>(
      bytes, kube::keep_none, [](accelerator_usage& usage, std::string_view key, on_demand::value field) {
        if (key == "usage") read_usage(field, usage);
      });
}

tree accelerator_usage::encode() const {
  tree usage{{"month", month}, {"since", text_of(since)}, {"through", text_of(until)}};
  if (name_space.empty()) {
    usage["models"] = write(models);
  } else {
    usage["namespace"] = name_space;
    usage["rows"] = write(rows);
    if (before_through > 0) usage["before"] = {{"through", text_of(before_through)}, {"rows", write(before_rows)}};
  }
  return {{"apiVersion", of().api_version()},
          {"kind", of().kind},
          {"metadata", {{"name", usage_name(month, name_space)}}},
          {"usage", std::move(usage)}};
}

std::string usage_name(std::string_view month, std::string_view name_space) {
  std::string out(month);
  if (!name_space.empty()) (out += '.') += name_space;
  return out;
}

std::string month_of(quota::seconds time) { return text_of(time).substr(0, 7); }

std::optional<month_bounds> bounds_of(std::string_view month) {
  using namespace std::chrono;
  if (month.size() != 7 || month[4] != '-') return {};
  const auto number = [&](std::string_view digits) {
    int out = 0;
    const auto [rest, error] = std::from_chars(digits.data(), digits.data() + digits.size(), out);
    return error == std::errc() && rest == digits.data() + digits.size() ? out : -1;
  };
  const year_month name{year(number(month.substr(0, 4))),
                        std::chrono::month(static_cast<unsigned>(number(month.substr(5))))};
  if (!name.ok() || name.year() < year(1970)) return {};
  const auto first = [](year_month month_name) {
    return duration_cast<std::chrono::seconds>(sys_days(month_name / day(1)).time_since_epoch()).count();
  };
  return month_bounds{first(name), first(name + months(1))};
}

}  // namespace api
