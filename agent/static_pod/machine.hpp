#pragma once
// Which step comes next on one control-plane node whose kube-scheduler is to ask our extender. A pure function of what
// was just observed: a process that is killed anywhere is taken up by the next one, which looks at the same files. What
// a change began from and what it leads to is kept next to the files (record), whole, before the first of them is
// touched.
//
// At every moment a file is entirely the one before or entirely the one after. Of two files the configuration is put in
// place first: a kube-scheduler that runs does not read it again, and the manifest is what replaces the pod. Where
// there is to be no configuration any more, it goes last.

#include <chrono>
#include <cstdint>
#include <expected>
#include <optional>
#include <string>
#include <string_view>

#include "text/phrase.hpp"

namespace agent::static_pod {

using std::chrono::milliseconds;

/// The two files of a control-plane node, as bytes. Nothing: there is no such file.
struct texts {
  std::optional<std::string> config = {}, manifest = {};
  friend bool operator==(const texts&, const texts&) = default;
};

enum class phase : std::uint8_t {
  applying,   ///< on the way from `before` to `after`, which has our entry
  applied,    ///< `after` is in place and its kube-scheduler was seen to work
  reverting,  ///< on the way back to `before`
  reverted,   ///< `before` is in place; `after` is not tried a second time
  removing,   ///< on the way to `after`, without our entry
};
std::string_view to_string(phase phase) noexcept;

/// What is kept on the control-plane node. Without one, no entry of our own is known to be there.
struct record {
  phase stage = phase::applying;
  std::int64_t generation = 0;  ///< of `after`; counts every change
  texts before = {}, after = {};
  bool created = false;      ///< there was no configuration before us: it goes with us
  text::phrase reason = {};  ///< why it was taken back
  friend bool operator==(const record&, const record&) = default;
};

struct control_plane_facts {
  texts now;
  std::optional<record> kept;
  bool asked_for = false;  ///< our entry is to be there
  /// The files as they are to be; `now` where they are right. The error is one line: why nothing can be written.
  std::expected<texts, text::phrase> wanted;
  bool foreign = false;            ///< the manifest has no entry of our own
  std::int64_t generation = 0;     ///< that `wanted` tells
  text::phrase not_ours;           ///< why no file may be written now (someone else's turn); empty: it may
  text::phrase not_begun;          ///< why no change may begin now (a scheduler elsewhere is away); empty: it may
  text::phrase down;               ///< why the kube-scheduler of `now` is not seen to work; empty: it is
  milliseconds up_for{0};          ///< it has been working for, without a break
  milliseconds since_manifest{0};  ///< the manifest was put in place, by the wall clock
  milliseconds watched_for{0};     ///< this process has been looking on, without a break
};

struct limits {
  milliseconds patience{180'000};  ///< a new kube-scheduler that does not work by then is taken back
  milliseconds settle{10'000};     ///< it works when it has for this long: one that crashes does now and then
  milliseconds look{20'000};       ///< what no one looked on for long enough is not judged
};

enum class action : std::uint8_t {
  rest,            ///< nothing to do
  wait,            ///< for what `reason` says
  stop,            ///< a person has to look: `reason`. Looked at again with every call
  keep,            ///< write `kept`
  write_config,    ///< `text`
  remove_config,   ///< the file
  write_manifest,  ///< `text`
  forget,          ///< the record: no entry of our own is left
};

/// What people read about the control-plane node.
enum class state : std::uint8_t { disabled, waiting, changing, applied, rolling_back, rolled_back, removing, stopped };
std::string_view to_string(state state) noexcept;

struct step {
  action kind = action::rest;
  state is = state::disabled;
  text::phrase reason = {};
  record kept = {};
  std::string text = {};
};

step next(const control_plane_facts& facts, const limits& limits = {});

}  // namespace agent::static_pod
