// The program: its verbs are one file each, `quartermaster VERB --help` teaches one.

#include <algorithm>

#include "cli/program.hpp"
#ifdef QM_PORTABLE
#include "cli/cluster/portable.hpp"
#endif

int main(int argc, char** argv) {
#ifdef QM_PORTABLE
  cli::load_no_modules();
#endif
  return cli::run_program(argc > 0 ? argv[0] : "", {argv + std::min(argc, 1), argv + argc});
}
