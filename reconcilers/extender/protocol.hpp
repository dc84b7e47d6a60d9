#pragma once
// k8s.io/kube-scheduler/extender/v1 on the wire: names as Go writes them (no json tags, so CamelCase), absent pointers
// as null. Both forms of a filter request: node names, and whole nodes, of which only the names are read.

#include <cstdint>
#include <expected>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "kube/object.hpp"

namespace reconcilers::extender {

/// A parser that reads a body where it lies: bodies are up to 128 MiB, and of whole nodes only the names are read.
/// Views live until the next `open`, and as long as the body.
class body_parser {
 public:
  body_parser();
  body_parser(body_parser&& other) noexcept;
  body_parser& operator=(body_parser&& other) noexcept;
  ~body_parser();
  struct reader;                      ///< protocol.cpp has it, because simdjson's header is large
  reader& get() { return *reader_; }  ///< for protocol.cpp alone

 private:
  std::unique_ptr<reader> reader_;
};

/// What is wrong with a body, in one line.
template <class T>
using understood = std::expected<T, std::string>;

/// Views into the body, valid until its next `open`.
struct filter_args {
  kube::object_key pod;
  kube::uid uid;
  std::string_view pod_json;            ///< the whole Pod, for one that no store has
  std::vector<std::string_view> nodes;  ///< names
  bool whole_nodes = false;             ///< they came as Nodes and are to be answered so
};
understood<void> read(body_parser& parser, const std::string& body, filter_args& out);

struct bind_args {
  kube::object_key pod;
  kube::uid uid;
  std::string node;
};
understood<bind_args> read_bind(body_parser& parser, const std::string& body);

struct victims {
  std::string_view node;
  std::vector<kube::uid> pods;
  std::int64_t budget_violations = 0;
};
struct preempt_args {
  kube::object_key pod;
  kube::uid uid;
  std::string_view pod_json;
  std::vector<victims> nodes;
};
understood<void> read(body_parser& parser, const std::string& body, preempt_args& out);

/// One node's part of an answer: `reason` is empty where the pod fits.
struct node_verdict {
  std::string_view node;
  std::string_view reason;    ///< constant
  bool unresolvable = false;  ///< no one's going would help
};
void append_filter_result(std::string& output, std::span<const node_verdict> verdicts, bool whole_nodes);
void append_priorities(std::string& output, std::span<const std::string_view> nodes,
                       std::span<const std::uint8_t> scores);
std::string bind_result(std::string_view error);
std::string preempt_result(std::span<const victims> victimses);

}  // namespace reconcilers::extender
