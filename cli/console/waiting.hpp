#pragma once
// Pods that wait, and why. A reason takes some microseconds per node, so it is worked out once for all pods that ask
// for the same, and kept for a while; who needs many takes them one at a time, with the loop's other work in between.

#include <cstddef>
#include <cstdint>
#include <map>
#include <nlohmann/json.hpp>
#include <optional>
#include <set>
#include <string>
#include <string_view>
#include <vector>

#include "cli/console/viewer.hpp"
#include "cli/console/views.hpp"
#include "controller/clock.hpp"
#include "controller/store.hpp"
#include "kube/projections/described_pod.hpp"

namespace cli::console {

/// Pods that have no node yet, with what they say of nodes, which the picture leaves out.
using unbound_pods = controller::store<kube::described_pod>;

/// It has no node yet and asks for something that we place, or that no one knows.
bool waits(const picture& picture, const known_resources& known, const kube::pod& pod);

/// Some of the pods that wait and that a viewer may see, in the order of their names.
struct waiting_page {
  std::size_t total = 0, offset = 0;
  std::vector<kube::object_key> pods;
};
/// `ns` empty: all that the viewer may see.
waiting_page waiting_pods(const picture& picture, const known_resources& known, const viewer& viewer,
                          std::string_view ns, page_range range);

/// A row without the pod's name: the same for all pods of the same `question_of`. By the rules of `explain pod`.
/// @param whole the same pod; null: not read, and no node is closed to it
ordered_json waiting_reason(const picture& picture, const known_resources& known, const viewer& viewer,
                            const kube::pod& pod, const kube::described_pod* whole = nullptr);
/// What a reason follows from, and how much of it this viewer may read.
std::string question_of(const viewer& viewer, const kube::pod& pod, const kube::described_pod* whole = nullptr);

/// Pods that wait for the same.
struct waiting_question {
  std::vector<kube::object_key> pods;  ///< in the order of their names
  std::int64_t since = 0;              ///< when the oldest was made: seconds since 1970, 0: not known
};
/// Of the pods that a viewer may see; those of most pods first. @param unbound null: not read
std::vector<waiting_question> waiting_questions(const picture& picture, const known_resources& known,
                                                const viewer& viewer, const unbound_pods* unbound = nullptr);
/// Reasons with how many pods wait for each, the most first. `reasons`: of the first questions, null where the pods are
/// gone by now; pods of the other questions are counted alone.
ordered_json reasons_view(const std::vector<waiting_question>& questions, const std::vector<ordered_json>& reasons);

/// Pods of the page that have no reason are gone by now.
ordered_json waiting_view(const waiting_page& page, std::map<kube::object_key, ordered_json> reasons);

/// Reasons by question. Bounded: the oldest goes.
class waiting_reasons {
 public:
  struct entry {
    ordered_json reason;
    std::uint64_t revision = 0;  ///< of what it follows from
    controller::milliseconds made{0};
  };
  explicit waiting_reasons(std::size_t most = 1000) : most_(most) {}
  /// Null: it is not known, or was made before `oldest_allowed`.
  const entry* find(const std::string& question, controller::milliseconds oldest_allowed) const;
  const entry& keep(std::string question, entry entry);
  std::size_t size() const { return known_.size(); }

 private:
  std::size_t most_;
  std::map<std::string, entry> known_;
};

/// Those who wait for their turn to work something out, first come, first served. One place each.
class turns {
 public:
  class place {
   public:
    explicit place(turns& all) : all_(all), number_(all.next_++) { all_.waiting_.insert(number_); }
    ~place() { all_.waiting_.erase(number_); }
    place(const place&) = delete;
    place& operator=(const place&) = delete;
    bool is_first() const { return *all_.waiting_.begin() == number_; }

   private:
    turns& all_;
    std::uint64_t number_;
  };

 private:
  std::uint64_t next_ = 0;
  std::set<std::uint64_t> waiting_;
};

}  // namespace cli::console
