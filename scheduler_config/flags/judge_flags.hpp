#pragma once
// Does kube-scheduler take these words? Each flag by the table of its version, each value by Go's rules, and what is
// checked when all are read: leader election, logging, feature gates.

#include "scheduler_config/flags/command_line.hpp"
#include "scheduler_config/judge/verdict.hpp"

namespace scheduler_config {

/// `config`: the file it is started with, whose leader election the flags override; may be null.
findings judge_flags(const command_line& line, const document* config, const server& server);

/// Of flags whose value can be read.
election_flags election_of(const command_line& line);

}  // namespace scheduler_config
