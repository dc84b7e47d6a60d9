#pragma once
// What products share in how they name cards on a pod: by number or by UUID, in lists of text.

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "reconcilers/dialects/dialect.hpp"

namespace reconcilers::dialects {

/// The card's place in the node's list; its size where there is no such card.
std::size_t card_at(const quota::node_inventory& node, std::string_view name);
/// The number by which plugins know a card: N of /dev/nvidiaN where an agent says it, else its place.
std::size_t card_number(const quota::node_inventory& node, std::string_view name);

/// "1,2".
std::string list_of(const std::vector<std::size_t>& numbers);
std::vector<std::string_view> parts_of(std::string_view text, char separator);
std::optional<std::int64_t> whole_number(std::string_view text);

/// What a need takes of this card.
quota::grant grant_of(const quota::need& need, const quota::card& card);
void add_counts(quota::holding& holding, const quota::demand& demand);

/// The numbers of the cards that a container has; empty: not written.
using numbers_of_container = std::vector<std::string_view> (*)(const kube::pod&, const kube::container&);
/// What the pod holds where a plugin wrote the numbers of the cards of each container.
std::optional<quota::holding> read_numbers(const pod_on_node& here, const quota::demand& needs,
                                           numbers_of_container numbers);

/// Twice the same is one card; a name with a separator of lists could not be told to a plugin.
void add_card(std::vector<quota::card>& cards, quota::card card);

}  // namespace reconcilers::dialects
