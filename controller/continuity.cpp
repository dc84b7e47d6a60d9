#include "controller/continuity.hpp"

#include <algorithm>

namespace controller {

void continuity::ask(milliseconds now, bool lists) {
  sent_ = now;
  lists_ = lists;
  open_.reset();
  heard_ = false;
}

void continuity::open(milliseconds now) {
  if (!open_) open_ = last_ = now;
}

std::optional<milliseconds> continuity::news(milliseconds now) {
  open(now);
  return settled(now) ? std::nullopt : known_;
}

void continuity::complete(milliseconds now) {
  known_ = begun_;
  lists_ = false;
  open_ = last_ = now;
}

void continuity::took(milliseconds now) {
  heard_ = true;
  last_ = now;
  if (settled(now)) known_ = now;
}

void continuity::end(milliseconds now, bool clean) {
  if (lists_ || !open_ || !known_) return;
  // One that is closed before it has said a word may never have been a watch: some proxies do that.
  if (clean && (heard_ || settled(now)))
    known_ = now;
  else if (settled(now))
    known_ = std::max(*known_, last_);
  open_.reset();
}

}  // namespace controller
