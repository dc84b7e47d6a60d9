#pragma once
// How a verb adds its flags. CLI11 has only headers, and each file that calls it compiles the parser, the help and the
// readers of values once more: half of the time of a small verb. These functions compile them once. What is small (a
// group, a footer, a callback) the verbs ask CLI11 for.

#include <cstddef>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace CLI {
class App;
class Option;
class Validator;
}  // namespace CLI

namespace cli {

CLI::App* add_verb(CLI::App& parent, std::string name, std::string description);

/// `names` as CLI11 wants them: "-n,--namespace"; without dashes it is an argument. The value goes to `value`, which
/// lives as long as the verb.
CLI::Option* add_option(CLI::App& verb, std::string names, std::string& value, std::string help);
CLI::Option* add_option(CLI::App& verb, std::string names, std::vector<std::string>& values, std::string help);
CLI::Option* add_option(CLI::App& verb, std::string names, int& value, std::string help);
CLI::Option* add_option(CLI::App& verb, std::string names, std::optional<int>& value, std::string help);
CLI::Option* add_option(CLI::App& verb, std::string names, std::size_t& value, std::string help);
CLI::Option* add_flag(CLI::App& verb, std::string names, bool& value, std::string help);

/// A node, by its name or as kubectl has it: "node/gpu-1".
CLI::Option* add_node(CLI::App& verb, std::string& value, std::string help, std::string names = "node");
CLI::Option* add_nodes(CLI::App& verb, std::vector<std::string>& values, std::string help);
/// `--operator-namespace` of verbs whose -n would be a pod's.
CLI::Option* add_operator_namespace(CLI::App& verb, std::string& value);

/// `--metrics-authentication` of every program that serves metrics.
CLI::Option* add_metrics_authentication(CLI::App& verb, bool& value);

/// `--lang` of a verb that has words only for what it refuses; empty: the language of the environment.
CLI::Option* add_refusal_language(CLI::App& verb, std::string& language);

/// -n. What no API server takes as the name of a namespace is refused, before any request.
/// -A, which people of kubectl type, is answered with that.
CLI::Option* add_namespace_option(CLI::App& verb, std::string& value, std::string help);
/// -n of a verb that has -A, too.
CLI::Option* add_namespace_filter(CLI::App& verb, std::string& value, std::string help);
CLI::Validator namespace_name();

/// An empty word, as a variable of a shell without a value gives, is refused: it would mean all.
CLI::Validator not_empty();
/// Only these words are allowed; the help shows them.
CLI::Validator choice(std::vector<std::string> words);
/// Only whole numbers from `least` to `most` are allowed; the help shows both. They are written in decimal figures: 010
/// is 8 in C and 10 elsewhere.
CLI::Validator whole_number(int least, int most);
/// A path that begins with a slash.
CLI::Validator absolute_path();
/// A socket's path, or that of its folder: so long at most, as the kernel takes no longer one.
CLI::Validator socket_path(std::size_t longest);

}  // namespace cli
