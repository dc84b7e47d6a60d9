#include "agent/static_pod/record.hpp"

#include <nlohmann/json.hpp>

#include "agent/static_pod/health.hpp"

namespace agent::static_pod {
namespace {

using nlohmann::ordered_json;

constexpr phase phases[] = {phase::applying, phase::applied, phase::reverting, phase::reverted, phase::removing};

ordered_json written(const texts& texts) {
  const auto encode = [](const std::optional<std::string>& text) {
    return text ? ordered_json(*text) : ordered_json();
  };
  return {{"config", encode(texts.config)}, {"manifest", encode(texts.manifest)}};
}

texts read_texts(const ordered_json& object) {
  const auto decode = [&object](const char* key) {
    const auto& position = object.at(key);
    return position.is_null() ? std::optional<std::string>() : position.get<std::string>();
  };
  return {decode("config"), decode("manifest")};
}

}  // namespace

std::string write(const record& record) {
  ordered_json out = {
      {"v", 1}, {"phase", to_string(record.stage)}, {"generation", record.generation}, {"created", record.created}};
  out.update(reason_fields(record.reason));
  out["before"] = written(record.before);
  out["after"] = written(record.after);
  // Texts are UTF-8: files.cpp refuses any other file. A shortened reason may end inside a character.
  return out.dump(1, ' ', false, ordered_json::error_handler_t::replace) + "\n";
}

std::expected<record, text::phrase> read_record(std::string_view text) {
  const auto wrong = [](const char* key, std::vector<text::phrase_argument> arguments = {}) {
    return std::unexpected(text::phrase{std::string("static_pod.record_problem.") + key, std::move(arguments)});
  };
  const auto parsed = ordered_json::parse(text, nullptr, false);
  if (parsed.is_discarded() || !parsed.is_object()) return wrong("no_object");
  try {
    if (parsed.at("v") != 1) return wrong("version", {{"version", parsed.at("v").dump()}});
    record out;
    const auto name = parsed.at("phase").get<std::string>();
    bool known = false;
    for (const auto phase : phases) {
      if (name == to_string(phase)) out.stage = phase, known = true;
    }
    if (!known) return wrong("phase", {{"phase", name.substr(0, 40)}});
    out.generation = parsed.at("generation").get<std::int64_t>();
    out.created = parsed.at("created").get<bool>();
    parsed.at("reason").get<std::string>();  // a record has it
    out.reason = reason_in(parsed);
    out.before = read_texts(parsed.at("before"));
    out.after = read_texts(parsed.at("after"));
    if (!out.before.manifest || !out.after.manifest) return wrong("no_manifest");
    return out;
  } catch (const ordered_json::exception&) {
    return wrong("fields");
  }
}

}  // namespace agent::static_pod
