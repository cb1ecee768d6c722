"""What we found in the papers: where a text, a code or a figure is not what it says, and the test that shows it."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Lesson:
    """A finding: in which paper, what it is, what it means, and the test (file and function) that shows it."""

    paper: str
    title: str
    text: str
    test: str


LESSONS: tuple[Lesson, ...] = (
    Lesson(
        "goethals",
        "Whoever asks the model can single Fiona out",
        "The worked example hides Fiona among three. The model refuses two of them with the released private values: "
        "who tries them is left with Fiona.",
        "tests/protect/cfk/test_claims.py::test_the_papers_toy_leaves_fiona_alone_to_someone_who_asks_the_model",
    ),
    Lesson(
        "goethals",
        "A smallest region gives its owner away to whoever reruns the search",
        "Regions are anchored at the person they were made around: put each person of a region in the owner's place, "
        "and most of them would have got another region. k against a register is not k against the algorithm.",
        "tests/protect/cfk/test_groups.py::test_inversion_bites_where_regions_are_minimal",
    ),
    Lesson(
        "goethals",
        "The local search is described, and its result is never taken",
        "The code behind the figures makes one construction more than it is asked for and keeps the best of them; the "
        "search around it changes nothing. CFK(search='grasp') is the text, published.GraspCFK the code.",
        "tests/study/test_reproduce.py::test_the_local_search_of_the_text_finds_smaller_regions_than_their_code",
    ),
    Lesson(
        "goethals",
        "Much of the gap to Mondrian is that of one Mondrian",
        "The paper compares CF-K with an open code whose tables lose 53% (Heart) and 60% (German) at k = 10. Rows "
        "shown by their class in our Mondrian lose less than two thirds of that on German and less than a fifth on "
        "Heart. CF-K still loses less on both.",
        "tests/study/test_reproduce.py::test_another_mondrian_takes_much_of_the_gap_away",
    ),
    Lesson(
        "kassem",
        "A quarter is printed where a half is computed",
        "With equal ground distances the earth mover's distance is half the L1 distance. The paper prints a quarter, "
        "in its formula and in its example; its tables fit the half.",
        "tests/core/test_divergence.py::test_the_example_of_the_paper_at_half_and_at_a_quarter",
    ),
    Lesson(
        "kassem",
        "The right half of a cut is not checked",
        "The Basic Mondrian that was tested never counts the right half of a cut: its classes can have fewer than k "
        "people, down to one. What is measured as 5-anonymous is not.",
        "tests/protect/published/test_published_mondrian.py::test_the_right_half_is_not_checked",
    ),
    Lesson(
        "kassem",
        "A table published in the clear looks better than an anonymised one",
        "Naive Bayes hardly sees one record among many: the open table gets smaller distances than a 5-anonymous one. "
        "A second learner shows it for what it is.",
        "tests/attack/differential/test_differential.py::test_the_open_table_is_shown_for_what_it_is_by_the_second_learner",
    ),
    Lesson(
        "kassem",
        "No reading of the Internet set gives both of its figures",
        "The paper names no hierarchies. With labels in pairs the share of people above 10^-2.5 is the printed one, "
        "and the maxima are far too small; without hierarchies the maxima are about the printed ones, and the share is "
        "twice as large.",
        "tests/study/test_reproduce.py::test_no_reading_of_internet_usage_gives_both_of_its_figures",
    ),
    Lesson(
        "kassem",
        "Slips in the worked encodings",
        "15 in seven bits is 0001111, not 0001101; the middle 45 shifted by 15 is 30, not 28; 40/75 is 0.533.",
        "tests/attack/differential/test_encodings.py::test_binary_digits_of_shifted_midpoints",
    ),
    Lesson(
        "inuiguchi",
        "Two of the rules of Table 6 are longer than they need be",
        "'Domicile is Tokyo or Osaka' alone already gives low or high: I3' and I6' hold, but the induction that the "
        "text describes would not find them.",
        "tests/rules/test_worked_example.py::test_two_rules_of_table_6_are_not_minimal",
    ),
    Lesson(
        "inuiguchi",
        "The deep attack reveals less than the shallow one it contains",
        "It is launched only where the shallow attack fails, so it can only add. At 15 of the 54 places of Table 12 "
        "the printed figure of the deep attack is below that of the shallow one.",
        "tests/study/test_reproduce.py::test_printed_deep_attacks_fall_below_the_shallow_ones_they_contain",
    ),
    Lesson(
        "inuiguchi",
        "A rule of a pattern table is contradicted by hardly anybody",
        "A condition is met by a pattern whose values all lie in it, so a pattern of unlike rows meets no narrow one "
        "and contradicts no rule: 'sepal length at least 4.9' makes most setosa flowers something else, because every "
        "setosa pattern begins below. Which of equally good conditions comes first is not said, and the order of the "
        "columns alone moves the accuracy of iris at k = 5 from far below the printed figure of cT3 to above it.",
        "tests/study/test_pattern_accuracy.py::test_the_order_of_columns_alone_crosses_the_printed_accuracy",
    ),
    Lesson(
        "inuiguchi",
        "Step (s5-b) is not what Table 5 shows",
        "An attribute that none of an object's rules names gets, by the text, the values of the people of all its "
        "rules. Domicile is in no rule of the first object, and Table 5 prints for each of its patterns the values of "
        "that rule's own people alone. Ours follow the table; with spread=True, the text.",
        "tests/study/test_pattern_accuracy.py::test_step_s5b_gives_wider_patterns_than_table_5_prints",
    ),
    Lesson(
        "anonymous",
        "Randomised response keeps the truth more often than epsilon allows",
        "The published response keeps a value with e^eps/(1+e^eps) whatever the number m of values: its true epsilon "
        "is larger by ln(m - 1).",
        "tests/protect/published/test_published_mechanisms.py::test_response_keeps_the_truth_more_often_than_it_promises",
    ),
    Lesson(
        "anonymous",
        "The reported figures of LDP are those of swapped probabilities",
        "More budget means more noise on labels in Tables 2 and 25. That is what happens when a label is kept with the "
        "smaller of its two probabilities.",
        "tests/protect/published/test_published_mechanisms.py::test_a_swapped_response_keeps_the_truth_with_the_smaller_probability",
    ),
    Lesson(
        "anonymous",
        "The exponential mechanism of the figures goes by nearness, not by frequency",
        "By frequency, a large epsilon must lead to the most frequent value; the reported answers go back to NICE's.",
        "tests/protect/published/test_published_mechanisms.py::test_by_nearness_the_exponential_mechanism_keeps_to_the_counterfactual",
    ),
    Lesson(
        "anonymous",
        "Who asks explains what the paper calls unexpected",
        "On Adult, Correctness falls as epsilon grows. There, people with a high income ask for a low one: random "
        "values alone give it to them, and less noise takes it away.",
        "tests/study/test_published_people.py::test_less_noise_means_fewer_valid_answers_only_for_people_with_a_high_income",
    ),
    Lesson(
        "anonymous",
        "No published mechanism keeps its epsilon",
        "Which columns changed is released untouched by noise: audited from outside at a claim of 1, every one of them "
        "is caught far above it.",
        "tests/study/test_published_page.py::test_every_published_mechanism_was_caught_at_a_claim_of_one",
    ),
)
