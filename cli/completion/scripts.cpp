// quartermaster completion

#include <CLI/CLI.hpp>
#include <iostream>
#include <memory>
#include <string_view>

#include "cli/flags/flags.hpp"
#include "cli/verbs.hpp"

namespace cli {
namespace {

// bash splits --lang=en into three words. They are put together again, and of a candidate only the part behind =
// counts.
constexpr std::string_view bash =
    R"script(# bash completion of quartermaster; load it with: source <(quartermaster completion bash)
_quartermaster() {
  local words=() word line candidate answer
  for word in "${COMP_WORDS[@]:1:COMP_CWORD}"; do
    if [[ ${#words[@]} -gt 0 && ( $word == "=" || ${words[-1]} == -*= ) ]]; then words[-1]+=$word; else words+=("$word"); fi
  done
  COMPREPLY=()
  answer=$("${COMP_WORDS[0]}" __complete "${words[@]}" 2>/dev/null) || return 0
  while IFS= read -r line; do
    candidate=${line%%$'\t'*}
    if [[ $candidate == :* ]]; then
      if [[ $candidate != ":0" ]]; then compopt +o default 2>/dev/null || true; fi
    else
      if [[ $candidate == -*=* && $COMP_WORDBREAKS == *=* ]]; then candidate=${candidate#*=}; fi
      COMPREPLY+=("$candidate")
    fi
  done <<<"$answer"
}
complete -o default -F _quartermaster quartermaster kubectl-quartermaster
)script";

constexpr std::string_view zsh = R"script(#compdef quartermaster kubectl-quartermaster
# zsh completion of quartermaster; load it with: source <(quartermaster completion zsh)
_quartermaster() {
  local -a lines candidates
  lines=("${(@f)$(${words[1]} __complete "${(@)words[2,CURRENT]}" 2>/dev/null)}")
  candidates=("${(@)lines:#:<->}")
  candidates=("${(@)candidates//:/\\:}")
  candidates=("${(@)candidates/$'\t'/:}")
  [[ ${#lines} -le 1 ]] || _describe -o quartermaster candidates
  [[ ${lines[-1]} != ":0" ]] || _files
}
if [[ ${funcstack[1]} == _quartermaster ]]; then _quartermaster "$@"; else compdef _quartermaster quartermaster kubectl-quartermaster; fi
)script";

constexpr std::string_view fish =
    R"script(# fish completion of quartermaster; load it with: quartermaster completion fish | source
function __quartermaster_complete
    set -l words (commandline -opc)
    set -l current (commandline -ct)
    set -l lines ($words[1] __complete $words[2..-1] "$current" 2>/dev/null)
    for line in $lines
        switch $line
            case ':4'
            case ':0'
                __fish_complete_path "$current"
            case '*'
                echo $line
        end
    end
end
complete -c quartermaster -f -a '(__quartermaster_complete)'
complete -c kubectl-quartermaster -f -a '(__quartermaster_complete)'
)script";

}  // namespace

void add_completion(CLI::App& app, int& rc) {
  auto* verb = add_verb(app, "completion", "Print the completion of commands for a shell: bash, zsh or fish");
  auto shell = std::make_shared<std::string>();
  add_option(*verb, "shell", *shell, "bash, zsh or fish")->required()->check(choice({"bash", "zsh", "fish"}));
  verb->footer(
      "Load it now, or for every shell to come:\n"
      "  $ source <(quartermaster completion bash)\n"
      "  $ quartermaster completion bash | sudo tee /usr/share/bash-completion/completions/quartermaster >/dev/null\n"
      "  $ quartermaster completion zsh >\"${fpath[1]}/_quartermaster\"\n"
      "  $ quartermaster completion fish >~/.config/fish/completions/quartermaster.fish\n"
      "For `kubectl quartermaster`, kubectl asks a program kubectl_complete-quartermaster on the PATH:\n"
      "  $ ln -s \"$(command -v kubectl-quartermaster)\" ~/.local/bin/kubectl_complete-quartermaster");
  verb->callback([shell, &rc] {
    std::cout << (*shell == "bash" ? bash : *shell == "zsh" ? zsh : fish);
    rc = 0;
  });
}

}  // namespace cli
