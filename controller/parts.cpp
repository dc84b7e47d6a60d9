#include "controller/parts.hpp"

#include <utility>

namespace controller {

runner& parts::add_runner(reconciler& reconciler, std::size_t at_once) {
  runner_options options;
  options.at_once = at_once;
  runners_.push_back(std::make_unique<runner>(loop_, reconciler, running_, options));
  manager_.add_runner(*runners_.back());
  return *runners_.back();
}

void parts::lead(std::string name, std::function<kube::task<void>()> start) {
  manager_.on_leading(
      [this, name = std::move(name), start = std::move(start)] { loop_.spawn_essential(name, start()); });
}

void parts::write(std::function<void(metric_text&, bool)> writer) {
  metrics_.collect([this, writer = std::move(writer)](metric_text& text) { writer(text, leading()); });
}

}  // namespace controller
