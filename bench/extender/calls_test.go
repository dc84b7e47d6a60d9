package main

import "testing"

func TestDiffer_names_the_first_node_that_only_one_list_has(t *testing.T) {
	for _, test := range []struct {
		said, wanted []string
		differs      string
	}{
		{[]string{"b", "a"}, []string{"a", "b"}, ""},
		{nil, nil, ""},
		{[]string{"a"}, []string{"a", "b"}, "1 nodes are said to fit, 2 do: b is missing"},
		{[]string{"a", "b"}, []string{"b"}, "2 nodes are said to fit, 1 do: a does not"},
		{[]string{"a", "c"}, []string{"a", "b"}, "2 nodes are said to fit, 2 do: b is missing"},
		{nil, []string{"a"}, "0 nodes are said to fit, 1 do: a is missing"},
	} {
		found := ""
		if err := differ(test.said, test.wanted); err != nil {
			found = err.Error()
		}
		if found != test.differs {
			t.Errorf("%v and %v: %q", test.said, test.wanted, found)
		}
	}
}
