#include "agent/static_pod/record.hpp"

#include <nlohmann/json.hpp>

namespace agent::static_pod {
namespace {

using json = nlohmann::ordered_json;

constexpr phase phases[] = {phase::applying, phase::applied, phase::reverting, phase::reverted, phase::removing};

json written(const texts& of) {
  const auto one = [](const std::optional<std::string>& text) { return text ? json(*text) : json(); };
  return {{"config", one(of.config)}, {"manifest", one(of.manifest)}};
}

texts read_texts(const json& of) {
  const auto one = [&of](const char* key) {
    const auto& at = of.at(key);
    return at.is_null() ? std::optional<std::string>() : at.get<std::string>();
  };
  return {one("config"), one("manifest")};
}

}  // namespace

std::string write(const record& of) {
  const json out = {{"v", 1},
                    {"phase", to_string(of.at)},
                    {"generation", of.generation},
                    {"created", of.created},
                    {"reason", of.reason},
                    {"before", written(of.before)},
                    {"after", written(of.after)}};
  // What is no UTF-8 never comes here (files.cpp reads none); a reason may have cut a character in two.
  return out.dump(1, ' ', false, json::error_handler_t::replace) + "\n";
}

std::expected<record, std::string> read_record(std::string_view text) {
  const auto from = json::parse(text, nullptr, false);
  if (from.is_discarded() || !from.is_object()) return std::unexpected("is no JSON object");
  try {
    if (from.at("v") != 1) return std::unexpected("is of another version (v " + from.at("v").dump() + "; known is 1)");
    record out;
    const auto name = from.at("phase").get<std::string>();
    bool known = false;
    for (const auto one : phases) {
      if (name == to_string(one)) out.at = one, known = true;
    }
    if (!known) return std::unexpected("has a phase that is not known: " + name.substr(0, 40));
    out.generation = from.at("generation").get<std::int64_t>();
    out.created = from.at("created").get<bool>();
    out.reason = from.at("reason").get<std::string>();
    out.before = read_texts(from.at("before"));
    out.after = read_texts(from.at("after"));
    if (!out.before.manifest || !out.after.manifest) return std::unexpected("has no manifest");
    return out;
  } catch (const json::exception&) {
    return std::unexpected("lacks a field, or has one of another type");
  }
}

}  // namespace agent::static_pod
