// What test/names/sentences.cjs is tried on by ./dev lint: 2 of these are found.
TEST(words, are_compared) {
  EXPECT_EQ(text(), "the pod was not placed on this node");
  EXPECT_THAT(text(), HasSubstr("the pod was "
                                "not placed on this node"));
  EXPECT_EQ(text(), "five words are too few") << "what is said when it fails is no check of words";
  EXPECT_EQ(answer("kind: Pod\nmetadata: {name: a}\nspec: {containers: []}\n"), "");
  EXPECT_EQ(answer(R"({"message": "the pod was not placed on this node"})"), "");
}

TEST(words, golden_ones) { EXPECT_EQ(text(), "the pod was not placed on this node"); }
