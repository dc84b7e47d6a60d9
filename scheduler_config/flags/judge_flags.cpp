#include "scheduler_config/flags/judge_flags.hpp"

#include <algorithm>
#include <boost/asio/ip/address.hpp>
#include <cstdlib>

#include "kube/quantity.hpp"
#include "scheduler_config/flags/feature_gates.hpp"
#include "scheduler_config/flags/flag_table.hpp"
#include "scheduler_config/flags/flag_value.hpp"
#include "scheduler_config/judge/judging.hpp"
#include "text/nearest.hpp"
#include "text/text.hpp"

namespace scheduler_config {
namespace {

constexpr std::string_view policy_file = "/etc/kubernetes/scheduler-config.yaml";
constexpr std::string_view removed_with_policy[] = {"policy-config-file", "policy-configmap",
                                                    "policy-configmap-namespace", "use-legacy-policy-config",
                                                    "algorithm-provider"};

std::vector<std::string_view> parts_of(std::string_view text, char separator) {
  std::vector<std::string_view> out;
  while (true) {
    const auto end = text.find(separator);
    out.push_back(text.substr(0, end));
    if (end == text.npos) return out;
    text.remove_prefix(end + 1);
  }
}
std::string in_words(std::string_view choices) {
  std::string out;
  for (const auto choice : parts_of(choices, '|')) out += (out.empty() ? "" : ", ") + std::string(choice);
  return out;
}
bool is_choice(std::string_view choices, std::string_view text) {
  const auto all = parts_of(choices, '|');
  return std::ranges::find(all, text) != all.end();
}

/// The flag that counts: the last, where its value can be read. nullptr: none.
const flag* counting_flag(const command_line& line, std::string_view name) {
  const auto match = std::ranges::find(line.flags.rbegin(), line.flags.rend(), name, &flag::name);
  const bool is_readable =
      match != line.flags.rend() && !match->one_dash && !match->without_value && !match->is_filled_in();
  return is_readable ? &*match : nullptr;
}

bool is_level(std::string_view text) {
  const auto number = text.find_first_not_of("0123456789") == text.npos ? go_integer(text) : std::nullopt;
  // Go reads it by base 10, go_integer a leading 0 as octal: what counts is that it is short enough.
  return !text.empty() && text.find_first_not_of("0123456789") == text.npos &&
         (text.front() == '0' ? text.size() <= 10 : number && *number <= INT32_MAX);
}

bool is_ip(std::string_view text, int minor) {
  text = text::trimmed(text);
  if (text.empty()) return minor >= 34;  // pflag 1.0.6
  boost::system::error_code wrong;
  boost::asio::ip::make_address(std::string(text), wrong);
  return !wrong && !text.contains('%');
}

bool is_real(const std::string& text) {
  char* end = nullptr;
  std::strtof(text.c_str(), &end);
  return !text.empty() && end == text.c_str() + text.size() && !std::isspace(static_cast<unsigned char>(text[0]));
}

bool is_module_levels(std::string_view text) {
  return std::ranges::all_of(parts_of(text, ','), [](std::string_view part) {
    if (part.empty()) return true;
    const auto equals = part.find('=');
    return equals != part.npos && equals != 0 && is_level(part.substr(equals + 1));
  });
}

bool is_key_pair(std::string_view text) {
  const auto files = parts_of(text.substr(0, text.find(':')), ',');
  return files.size() == 2 && !files[0].empty() && !files[1].empty();
}

bool is_curve(std::string_view text) {
  constexpr std::string_view known = "23|24|25|29|4587|4588|4589";
  return is_choice(known, text::trimmed(text));
}

/// What is allowed where the value is not; empty: it is. What hangs on other flags is judged with them.
text::phrase allowed_of(const flag_rule& rule, const std::string& value, int minor) {
  const auto unless = [](bool right, term allowed) { return right ? text::phrase() : phrase_of(allowed); };
  const auto integer = go_integer(value);
  switch (rule.type) {
    case flag_type::boolean:
      return unless(go_bool(value).has_value(), term::boolean);
    case flag_type::int32:
      return unless(integer && *integer >= INT32_MIN && *integer <= INT32_MAX, term::whole_number_32);
    case flag_type::int64:
      return unless(integer.has_value(), term::whole_number);
    case flag_type::level:
      return unless(is_level(value), term::level);
    case flag_type::real:
      return unless(is_real(value), term::number);
    case flag_type::duration:
      return unless(parse_duration(value).has_value(), term::duration);
    case flag_type::ip:
      return unless(is_ip(value, minor), term::ip_address);
    case flag_type::port:
      return integer && *integer >= 0 && *integer <= 65535 ? text::phrase() : between("0", "65535");
    case flag_type::quantity:
      return unless(kube::parse_quantity(value).has_value(), term::bytes);
    case flag_type::labels:
      return unless(value.contains('='), term::metric_labels);
    case flag_type::module_levels:
      return unless(is_module_levels(value), term::module_levels);
    case flag_type::key_pair:
      return unless(is_key_pair(value), term::key_pair);
    case flag_type::older_version:
      return value.empty() || value == "1." + std::to_string(minor - 1)
                 ? text::phrase()
                 : text::phrase("1." + std::to_string(minor - 1));
    case flag_type::header_names:
      return unless(
          value.empty() || std::ranges::none_of(parts_of(value, ','),
                                                [](std::string_view part) { return text::trimmed(part).empty(); }),
          term::header_names);
    case flag_type::text:
    case flag_type::texts:
    case flag_type::version:
    case flag_type::curves:
    case flag_type::choice:
    case flag_type::ciphers:
    case flag_type::gates:
      break;
  }
  return {};
}

class flag_judge {
 public:
  flag_judge(const command_line& line, const document* config, const server& server)
      : line_(line), config_(config), minor_(std::max(server.minor, oldest_minor)) {}

  findings run() {
    if (line_.text)
      out_.push_back({.issue = code::wrong_type,
                      .location = line_.text->location,
                      .field = line_.text->text,
                      .allowed = phrase_of(term::list),
                      .terms = {{"value", phrase_of(term::text)}}});
    if (line_.unsplit) {
      out_.push_back({.issue = code::words_in_one, .location = line_.unsplit->location, .value = line_.unsplit->text});
      return std::move(out_);
    }
    if (line_.shell) {
      out_.push_back(
          {.issue = code::shell_not_followed, .location = line_.shell->location, .value = line_.shell->text});
      return std::move(out_);
    }
    for (const auto& flag : line_.flags) judge(flag);
    for (const auto& argument : line_.arguments) say_argument(argument);
    election();
    logging();
    serving();
    gates();
    return std::move(out_);
  }

 private:
  bool known_here(const flag_rule& rule) const { return rule.since <= minor_ && minor_ <= rule.until; }

  std::vector<std::string_view> names() const {
    std::vector<std::string_view> out;
    for (const auto& rule : flag_rules()) {
      if (known_here(rule)) out.push_back(rule.name);
    }
    return out;
  }
  std::string nearest(std::string_view name) const {
    const auto all = names();
    return std::string(text::nearest(name, all));
  }
  std::string version() const { return "1." + std::to_string(minor_); }

  finding about(const flag& flag, code issue) const {
    return {.issue = issue, .location = flag.location, .field = "--" + flag.name, .value = flag.text};
  }
  void refuse(const flag& flag, text::phrase allowed, std::string hint = {}) {
    auto made = about(flag, code::flag_value);
    made.value = flag.value;
    made.allowed = std::move(allowed);
    made.hint = std::move(hint);
    out_.push_back(std::move(made));
  }

  void judge(const flag& flag) {
    if (flag.one_dash) {
      auto made = about(flag, code::flag_with_one_dash);
      made.field = flag.name;
      made.hint = "-" + flag.text;
      out_.push_back(std::move(made));
      return;
    }
    const auto* rule = flag_rule_of(flag.name);
    if (!rule || !known_here(*rule)) return unknown(flag, rule);
    if (flag.without_value || flag.has_another) {
      out_.push_back(about(flag, flag.has_another ? code::flags_in_one : code::flag_without_value));
      return;
    }
    if (flag.is_filled_in()) return open(flag);
    if (auto allowed = allowed_of(*rule, flag.value, minor_); !allowed.empty()) return refuse(flag, std::move(allowed));
    ending(flag, *rule);
  }

  /// Said once: a program of its own may have flags of its own, and a value may come from elsewhere.
  void open(const flag& flag) { open(word{flag.text, flag.location}); }
  void open(const word& word) {
    if (std::ranges::find(out_, code::flags_not_judged, &finding::issue) != out_.end()) return;
    out_.push_back({.issue = code::flags_not_judged, .location = word.location, .value = word.text});
  }

  void unknown(const flag& flag, const flag_rule* rule) {
    if (line_.own_program) return open(flag);
    auto made = about(flag, code::flag_unknown);
    made.other = version();
    if (std::ranges::find(removed_with_policy, flag.name) != std::end(removed_with_policy)) {
      made.issue = code::flag_removed;
      made.field = flag.name;
      made.hint = policy_file;
    } else if (const auto* past = gone_flag_of(flag.name)) {
      made.issue = code::flag_gone;
      made.other = "1." + std::to_string(past->since);
      if (past->place) made.terms = {{"hint", phrase_of(*past->place)}};
      made.hint = std::string(past->hint) + (past->hint.ends_with('=') ? flag.value : std::string());
      // The old --port=0 turned a port off that is no more.
      if (flag.name == "port" && flag.value == "0") made.hint.clear();
    } else if (rule) {
      made.issue = code::flag_of_other_version;
      made.allowed = since_version(rule->since);
    } else if (const auto name = nearest(flag.name.substr(0, flag.name.find(' '))); !name.empty()) {
      const auto blank = flag.text.find(' ');
      if (blank != flag.text.npos && blank < flag.text.find('=')) {  // "--config FILE" in one word
        made.hint = "--" + name + "=" + flag.text.substr(blank + 1);
        out_.push_back(std::move(made));
        return;
      }
      const auto equals = flag.text.find('=');
      made.hint = "--" + name + (equals == flag.text.npos ? "" : flag.text.substr(equals));
    }
    out_.push_back(std::move(made));
  }

  /// Flags that make it do something else than schedule.
  void ending(const flag& flag, const flag_rule& rule) {
    const bool asks = rule.name == "help"               ? go_bool(flag.value).value_or(true)
                      : rule.type == flag_type::version ? go_bool(flag.value).value_or(flag.value == "raw")
                      : rule.name == "write-config-to"  ? !flag.value.empty()
                                                        : false;
    if (asks) out_.push_back(about(flag, code::flag_ends));
  }

  void say_argument(const word& argument) {
    if (line_.own_program || argument.text.starts_with("$(")) return open(argument);
    finding made{.issue = code::argument, .location = argument.location, .value = argument.text};
    const auto equals = argument.text.find('=');
    const auto before = std::ranges::find_if(line_.flags, [&](const flag& flag) {
      const auto* rule = flag_rule_of(flag.name);
      return rule && rule->type == flag_type::boolean && !flag.text.contains('=') &&
             go_bool(argument.text).has_value() && flag.location < argument.location;
    });
    if (before != line_.flags.end()) {
      made.hint = "--" + before->name + "=" + argument.text;
    } else if (const auto name = nearest(argument.text.substr(0, equals)); !name.empty()) {
      made.hint = "--" + name + (equals == argument.text.npos ? "" : argument.text.substr(equals));
    }
    out_.push_back(std::move(made));
  }

  const flag* find(std::string_view name) const { return counting_flag(line_, name); }
  std::string value_of(std::string_view name, std::string otherwise) const {
    const auto* match = find(name);
    return match ? match->value : otherwise;
  }

  /// component-base/config/validation and client-go's leaderelection, on the file with the flags over it.
  void election() {
    const server any;
    const document nothing;
    const auto& file = config_ ? *config_ : nothing;
    const judging judging{.config = file, .scheduler = any, .out = {}, .refused = {}};
    const auto* section = file.root ? judging.value(file.root, "leaderElection") : nullptr;
    const auto* elect = section ? judging.value(section, "leaderElect") : nullptr;
    const auto elects = go_bool(value_of("leader-elect", elect ? text::yaml::canonical(*elect) : "true"));
    if (!elects.value_or(false)) return;
    if (const auto* lock = find("leader-elect-resource-lock"); lock && lock->value != "leases")
      refuse(*lock, text::phrase("leases"));
    for (const auto* name : {"leader-elect-resource-name", "leader-elect-resource-namespace"}) {
      if (const auto* flag = find(name); flag && flag->value.empty()) refuse(*flag, phrase_of(term::name));
    }
    constexpr std::int64_t second = 1'000'000'000;
    const auto time = [&](std::string_view name, const char* key, std::int64_t standard) {
      const auto* flag = find(name);
      if (flag) return parse_duration(flag->value);
      return std::optional(section ? duration_of(judging, section, key, standard) : standard);
    };
    const auto* lease = find("leader-elect-lease-duration");
    const auto* renew = find("leader-elect-renew-deadline");
    const auto* retry = find("leader-elect-retry-period");
    const auto lasts = time("leader-elect-lease-duration", "leaseDuration", 15 * second);
    const auto renews = time("leader-elect-renew-deadline", "renewDeadline", 10 * second);
    const auto retries = time("leader-elect-retry-period", "retryPeriod", 2 * second);
    if (!lasts || !renews || !retries) return;
    for (const auto* flag : {lease, renew, retry}) {
      if (flag && *parse_duration(flag->value) <= 0) return refuse(*flag, phrase_of(term::more_than_zero));
    }
    // What is wrong in the file alone is reported there, unless the file turns the election off that a flag turns on.
    const auto* turned_on = elect && text::yaml::canonical(*elect) == "false" ? find("leader-elect") : nullptr;
    const auto* of_lease = lease ? lease : renew ? renew : turned_on;
    const auto* of_retry = retry ? retry : renew ? renew : turned_on;
    if (*lasts <= *renews && of_lease) {
      refuse(*of_lease, phrase_of(term::long_lease));
    } else if (static_cast<double>(*renews) <= 1.2 * static_cast<double>(*retries) && of_retry) {
      refuse(*of_retry, phrase_of(term::short_retry));
    }
  }

  /// component-base/logs/api/v1 Validate.
  void logging() {
    const auto* format = find("logging-format");
    if (format && !is_choice("text|json", format->value)) refuse(*format, text::phrase("text, json"));
    const bool json = format && format->value == "json";
    if (json && !gate_enabled("LoggingBetaOptions", gate_flags(), minor_))
      refuse(*format, phrase_of(term::json_with_gate, {{"gate", std::string("LoggingBetaOptions")}}));
    if (const auto* modules = find("vmodule"); modules && json && !modules->value.empty())
      refuse(*modules, phrase_of(term::empty_with_json));
    if (const auto* flush = find("log-flush-frequency")) {
      const auto every = parse_duration(flush->value);
      if (every && *every <= 0) refuse(*flush, phrase_of(term::more_than_zero));
    }
    for (const auto* name :
         {"log-json-split-stream", "log-text-split-stream", "log-json-info-buffer-size", "log-text-info-buffer-size"}) {
      const auto* flag = find(name);
      if (!flag || gate_enabled("LoggingAlphaOptions", gate_flags(), minor_)) continue;
      const bool size = std::string_view(name).ends_with("size");
      if (size ? kube::parse_quantity(flag->value).value_or(0) != 0 : go_bool(flag->value).value_or(false))
        refuse(*flag, phrase_of(term::with_gate, {{"gate", std::string("LoggingAlphaOptions")}}));
    }
  }

  /// What the port's server is made of; with port 0 there is none.
  void serving() {
    if (const auto* names = find("requestheader-uid-headers"); names && flag_rule_of(names->name)->since <= minor_) {
      const auto lower = text::lower_case(names->value);
      const auto all = parts_of(lower, ',');
      const bool standard =
          std::ranges::any_of(all, [](std::string_view part) { return text::trimmed(part) == "x-remote-uid"; });
      if (!names->value.empty() && !gate_enabled("RemoteRequestHeaderUID", gate_flags(), minor_))
        refuse(*names, phrase_of(term::with_gate, {{"gate", std::string("RemoteRequestHeaderUID")}}));
      else if (!names->value.empty() && !standard)
        refuse(*names, phrase_of(term::with_uid_header));
    }
    if (go_integer(value_of("secure-port", "10259")).value_or(0) == 0) return;
    if (const auto* least = find("tls-min-version"); least && !least->value.empty()) {
      const auto choices = flag_rule_of("tls-min-version")->allowed;
      if (!is_choice(choices, least->value)) refuse(*least, text::phrase(in_words(choices)));
    }
    if (const auto* names = find("tls-cipher-suites"); names && !names->value.empty()) {
      const auto choices = flag_rule_of("tls-cipher-suites")->allowed;
      for (const auto part : parts_of(names->value, ',')) {
        if (is_choice(choices, text::trimmed(part))) continue;
        const auto all = parts_of(choices, '|');
        refuse(*names, phrase_of(term::listed_names), std::string(text::nearest(part, all)));
        break;
      }
    }
    if (const auto* ids = find("tls-curve-preferences"); ids && !ids->value.empty() && minor_ >= 36) {
      if (!std::ranges::all_of(parts_of(ids->value, ','), is_curve)) refuse(*ids, text::phrase("23, 24, 25, 29, 4588"));
    }
    if (const auto* paths = find("authorization-always-allow-paths")) {
      for (const auto part : parts_of(paths->value, ',')) {
        if (const auto star = part.find('*'); star != part.npos && star + 1 < part.size()) {
          refuse(*paths, phrase_of(term::star_at_end));
          break;
        }
      }
    }
  }

  std::vector<const flag*> gate_flags() const {
    std::vector<const flag*> out;
    for (const auto& flag : line_.flags) {
      if (flag.name == "feature-gates" && !flag.one_dash && !flag.without_value && !flag.is_filled_in())
        out.push_back(&flag);
    }
    return out;
  }

  void gates() {
    const auto flags = gate_flags();
    for (const auto* name : {"emulated-version", "min-compatibility-version"}) {
      const auto* flag = find(name);
      if (!flag || flag->value.empty() || flag_rule_of(name)->since > minor_) continue;
      // It changes which gates there are, and may itself be out of range.
      return open(*flag);
    }
    if (flags.empty()) return;
    if (line_.own_program) return open(*flags.front());
    for (auto& finding : judge_feature_gates(flags, minor_)) out_.push_back(std::move(finding));
  }

  const command_line& line_;
  const document* config_;
  int minor_;
  findings out_;
};

}  // namespace

election_flags election_of(const command_line& line) {
  const auto period = [&](std::string_view name) {
    const auto* flag = counting_flag(line, name);
    return flag ? parse_duration(flag->value) : std::nullopt;
  };
  const auto* elect = counting_flag(line, "leader-elect");
  return {.is_off = elect && go_bool(elect->value) == false,
          .lease_duration = period("leader-elect-lease-duration"),
          .renew_deadline = period("leader-elect-renew-deadline"),
          .retry_period = period("leader-elect-retry-period")};
}

findings judge_flags(const command_line& line, const document* config, const server& server) {
  return flag_judge(line, config, server).run();
}

}  // namespace scheduler_config
