#pragma once
// The command line as a whole: which verb is meant, what is wrong with its words, and what it ends with. Every verb but
// the two that run for long is silent but for its answer: the operator's code logs what it meets, and a person who asks
// about a pod did not ask for that.

#include <string>
#include <vector>

namespace cli {

/// `called`: the name the program was started by. Exit codes: 0 done, 1 failed with one line that says why and what to
/// do, 2 wrong usage, 3 found problems.
int run_program(const std::string& called, std::vector<std::string> words);

}  // namespace cli
