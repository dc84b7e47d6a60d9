#include "reconcilers/quota_status.hpp"

#include <algorithm>
#include <nlohmann/json.hpp>
#include <vector>

#include "reconcilers/names.hpp"

namespace reconcilers {

using nlohmann::json;

namespace {
/// Several objects of a namespace are one set of limits; each shows those that it has.
bool has(const accelerator_quota& of, const quota::standing& what) {
  return std::ranges::any_of(of.hard, [&](const quota::tenant::limit& one) {
    return one.model == what.model && one.only == what.only && one.nominal[static_cast<std::size_t>(what.of)];
  });
}

}  // namespace

nlohmann::json status_of(const accelerator_quota& of, const quota::allowances& limits, const held_back& waiting) {
  json hard = json::array(), refusals = json::array();
  std::string summary;
  for (const auto& one : limits.standings(of.key.ns)) {
    if (!has(of, one)) continue;
    const auto unit = std::string(unit_of(one.of));
    json row{{"units", unit}, {"max", one.nominal}, {"used", one.used}, {"borrowed", one.borrowed}, {"lent", one.lent}};
    if (!one.model.empty()) row["model"] = one.model;
    if (!one.only.pool.empty()) row["pool"] = one.only.pool;
    hard.push_back(std::move(row));
    summary += (summary.empty() ? "" : ", ") + unit + (one.model.empty() ? "" : " of " + one.model) + " " +
               std::to_string(one.used) + "/" + std::to_string(one.nominal);
  }
  std::int64_t all = 0;
  for (const auto& [reason, pods] : waiting) {
    refusals.push_back({{"reason", reason}, {"pods", pods}});
    all += pods;
  }
  return {{"observedGeneration", of.generation},
          {"summary", summary},
          {"waiting", all},
          {"hard", std::move(hard)},
          {"refusals", std::move(refusals)}};
}

kube::task<void> quota_status::turn() {
  struct news {
    kube::object_key key;
    std::string uid;
    json status;
  };
  std::vector<news> all;
  for (const auto& one : by_.quotas.all()) {
    auto status = status_of(one, by_.limits, by_.waiting(one.key.ns));
    const auto there = json::parse(one.status, nullptr, false);
    if (there.is_discarded() || there != status) all.push_back({one.key, one.id.to_string(), std::move(status)});
  }
  for (auto& one : all) {
    const json object{{"apiVersion", accelerator_quota::of().api_version()},
                      {"kind", accelerator_quota::of().kind},
                      {"metadata", {{"name", one.key.name}, {"namespace", one.key.ns}, {"uid", one.uid}}},
                      {"status", std::move(one.status)}};
    kube::write_options how;
    how.field_manager = names::field_owner;
    how.force = true;
    const auto done = co_await by_.api.apply_status(accelerator_quota::of(), one.key, object, how);
    const bool gone =
        !done && (done.error().code == kube::errc::not_found || done.error().code == kube::errc::conflict);
    if (!done && !gone) co_return std::unexpected(done.error());
  }
  co_return kube::result<void>();
}

}  // namespace reconcilers
