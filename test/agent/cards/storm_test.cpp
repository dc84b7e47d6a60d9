// Storms of XIDs that people met, and what is to become of the cards: test/golden/cards/storms.json. The sequences were
// made from the numbers in the reports that each names; no one has recorded them.
#include <gtest/gtest.h>

#include <fstream>
#include <nlohmann/json.hpp>

#include "agent/cards/history.hpp"

namespace agent::cards {
namespace {

using namespace std::chrono_literals;
using nlohmann::json;

std::string uuid_of(int index) { return "GPU-" + std::to_string(index); }

inventory fleet_of(int cards) {
  inventory out;
  for (int i = 0; i < cards; ++i) {
    card made;
    made.uuid = uuid_of(i);
    made.minor = i;
    out.cards.push_back(std::move(made));
  }
  return out;
}

/// A history, and how often it changed its mind about a card.
class agent_under_storm {
 public:
  explicit agent_under_storm(int cards) : seen_(fleet_of(cards)), last_(history_.complete(seen_, 0s)) {}

  void take(const json& step) {
    if (step.contains("xid")) {
      for (int time = 0; time < step["times"].get<int>(); ++time)
        for (int card = 0; card < step["cards"].get<int>(); ++card)
          if (history_.see(uuid_of(card), step["xid"].get<std::uint64_t>()).withdraws) look();
    } else if (step.contains("reload")) {
      history_.forget_defects();
    } else if (step.contains("restore")) {
      for (int card = 0; card < step["restore"].get<int>(); ++card) history_.restore(uuid_of(card));
    } else if (step.contains("agent")) {
      history_ = {};
      history_.recall(last_.cards);
    } else {
      ADD_FAILURE() << "no step has this form: " << step;
    }
    look();
  }
  const std::vector<card>& cards() const { return last_.cards; }
  int changes() const { return changes_; }

 private:
  void look() {
    auto now = history_.complete(seen_, 0s);
    for (std::size_t i = 0; i < now.cards.size(); ++i) changes_ += now.cards[i].defect != last_.cards[i].defect ? 1 : 0;
    last_ = std::move(now);
  }

  history history_;
  inventory seen_, last_;
  int changes_ = 0;
};

TEST(storm, ends_in_the_stored_verdict) {
  const auto storms = json::parse(std::ifstream(std::string(TEST_DATA) + "/golden/cards/storms.json"));
  ASSERT_FALSE(storms.empty());
  for (const auto& storm : storms) {
    SCOPED_TRACE(storm["name"].get<std::string>());
    agent_under_storm agent(storm["cards"].get<int>());
    for (const auto& step : storm["steps"]) agent.take(step);
    const auto& expected = storm["expected"];
    int withdrawn = 0;
    for (const auto& card : agent.cards()) {
      if (card.defect.empty()) continue;
      ++withdrawn;
      EXPECT_EQ(card.defect, expected.value("health", ""));
    }
    EXPECT_EQ(withdrawn, expected["withdrawn"].get<int>());
    EXPECT_EQ(agent.changes(), expected["changes"].get<int>());
  }
}

}  // namespace
}  // namespace agent::cards
