#pragma once
// The words that start kube-scheduler in a container, and the flags they make: by pflag's rules, and through
// `sh -c "..."` where that is nothing but words.

#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "scheduler_config/judge/finding.hpp"

namespace scheduler_config {

struct word {
  std::string text;
  text::yaml::place location;  ///< in a shell's line: of the whole line
};

struct flag {
  std::string text;  ///< as it stands there
  text::yaml::place location;
  std::string name, value;     ///< without dashes, "_" as "-"; "--config X" and "--config=X" alike
  bool one_dash = false;       ///< "-config=X"
  bool without_value = false;  ///< it needs one, and the words end
  bool has_another = false;    ///< "--config=X --v=2" in one word: `value` ends before the blank

  /// A value that the kubelet fills in, "$(NAME)": nothing can be said of it.
  bool is_filled_in() const { return value.contains("$("); }
};

struct command_line {
  std::vector<flag> flags;
  std::vector<word> arguments;  ///< words that are no flag; kube-scheduler takes none
  std::optional<word> shell;    ///< a line that does more than start one program: not followed
  std::optional<word> unsplit;  ///< a program and its flags in one word: no program has that name
  std::optional<word> text;     ///< command or args that is no list
  bool through_shell = false;   ///< the words are those of a shell's line
  bool own_program = false;     ///< not kube-scheduler by its name: it may have flags and gates of its own
};

/// `container` as in a Pod, with command, args and image; null: nothing.
command_line read_command_line(const text::yaml::node* container);

/// The words of a shell's line; nothing where it holds more than words and quotes.
std::optional<std::vector<std::string>> words_of_shell(std::string_view line);

}  // namespace scheduler_config
