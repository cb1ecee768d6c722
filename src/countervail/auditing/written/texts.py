"""What every dossier says beside its figures: how it was measured, what it does not show, and where it fits in."""

from __future__ import annotations

METHODS = (
    "Each attack is tried on members (people of the table), on controls (people who were held out before "
    "anything was fitted) and blindly. What counts is the excess: success on members beyond that on "
    "controls, (m - c) / (1 - c). Below zero, controls are found more often than members: nobody is exposed by that.",
    "Shares have exact intervals (Clopper and Pearson), an excess has the score interval of the ratio of "
    "the two rates of failure (Koopman; of copies of a model, which are tried on the same rows, that of pairs). "
    "An attack whose unit is a mean over several guesses about one person counts that person once. Answers that say "
    "the same are one case, however many people got them; people with several rows are one person.",
    "Some intervals are cautious: they hold the truth more often than the 95% that they say. These are exact "
    "intervals of shares, intervals of several groups together, what people with several rows weigh, what members "
    "reach beyond strangers by the same conditions, and lower bounds of epsilon, which are exact too.",
    "For each attack a leak was planted in a release of its own. An attack that does not find its leak "
    "proves nothing, and makes the audit void.",
    "Decisions compare the interval with the threshold of the appetite: evidence to reject where the "
    "whole of it lies above, evidence to release where the whole of it lies below, neither in between. "
    "p-values are corrected for all attacks and thresholds together (Holm).",
)
LIMITS = (
    "Attacks show what was found, not that nothing else could be. A promise with a proof holds against "
    "everybody whom it names; an attack that fails shows only that this attack failed.",
    "Controls must be like members. Where they are not (another time, another place), excess is over- or understated.",
    "Attacks read the values that leave, and whether a table's rows stand as its people did (no other order). "
    "Nobody tried what could be hidden in scores, in the time an answer takes, in which of several fitting values "
    "is shown, or in answers that change only after more questions than were asked here: whoever wrote what "
    "answers could make it tell an audit from other questions.",
    "None of these defences protects the model itself: whoever asks enough learns to imitate it.",
    "A model learns from people too. Where answers depend on a model that was trained on them, what the "
    "model gives away is part of what was measured, and not part of a promise that is given for a public "
    "model.",
    "No cell of a person stands in this dossier. Its counts are exact, and two dossiers whose tables differ by one "
    "person differ by what the attacks achieve on that person: beside the release, that tells values of theirs. "
    "Whoever may not see the table must not get both.",
)
TRIGGERS = (
    "the table, the schema or the roles of columns change",
    "the model is trained anew",
    "a recipient is added, or may ask more than before",
    "a further release about the same people leaves",
    "an attack becomes known that was not tried here",
)
CROSSWALK = (
    ("Article 29 Working Party, Opinion 05/2014", "singling out, linkability, inference: the decisions per criterion"),
    ("GDPR Art. 35 (7); ICO, DPIA step 7", "risks: findings; measures: the promise; sign-off: the fields at the end"),
    ("GDPR Recital 26", "means reasonably likely to be used: the recipients of the appetite, and the attacks tried"),
    ("ISO/IEC 27559: context assessment", "recipients and what they may do"),
    ("ISO/IEC 27559: data assessment", "what leaves, roles of columns, risk by numbers of people"),
    ("ISO/IEC 27559: identifiability assessment and mitigation", "findings, promise, decisions"),
    ("ISO/IEC 27559: de-identification governance", "appetite, expiry, triggers, fields at the end"),
    ("NIST SP 800-226: what is the unit of privacy, which epsilon, which assumptions?", "promise and claims"),
    ("NIST SP 800-226: how was it evaluated?", "findings, claimed and audited epsilon"),
)
_COLUMNS = (
    "A larger k does not help against inference and membership where columns leave as they are: publish fewer of them, "
    "or use a protector with differential privacy."
)
_GROUPS = "Something that leaves speaks of too few people: use a protector such as CFK or Mondrian, or a larger k."
AGAINST = {
    "singling out": _GROUPS,
    "maximum risk": _GROUPS,
    "average risk": _GROUPS,
    "linkability": "Publish fewer columns together, with a larger k, and rows in an order drawn at random.",
    "inference": _COLUMNS,
    "membership": _COLUMNS,
    "epsilon": "Do not rely on the epsilon that is claimed: it is larger than is accepted, or false.",
}
NEXT_STEPS = {
    "reject": ("The command countervail compare shows several protections side by side on these data.",),
    "not shown": (
        "Or decide on the promise and the reasons given, and write them down below: what is open is no evidence "
        "against it, and none for it.",
    ),
    "release": (
        "It may leave to the recipients named, until the date of expiry or the first trigger.",
        "Keep this dossier with the release.",
    ),
    "void": ("Repeat the audit with more time or more people: what it did not find cannot be relied on.",),
}
FIELDS = ("Advice of the data-protection officer", "Residual risk accepted by", "Date and signature")
