// The program: its verbs are one file each, `quartermaster VERB --help` teaches one.

#include <algorithm>

#include "cli/program.hpp"

int main(int argc, char** argv) {
  return cli::run_program(argc > 0 ? argv[0] : "", {argv + std::min(argc, 1), argv + argc});
}
