"""What the library says, in the words of the command line: flags instead of parameters, files instead of frames."""

from __future__ import annotations

import re

_FLAGS = {
    "by_class": "--by-class",
    "costs": "--cost",
    "encoding": "--cells",
    "forbidden": "--forbid",
    "folder": "--output",
    "frame": "the file",
    "ids": "--id-column",
    "ks": "--sweep",
    "n_counterfactuals": "--n",
    "n_jobs": "--jobs",
    "n_records": "--records",
    "random_state": "--seed",
    "ranges": "--range",
    "rows": "the rows",
    "size": "--population",
    "table": "the data",
    "X": "the data",
    "y": "the target",
}
_OWNED = re.compile(r"The '(\w+)' (?:parameter )?(?:of|given to) [A-Za-z]\w*(?:\.\w+)?(?:\(\))?")
_NAMED = re.compile(r"\b([a-z]+(?:_[a-z]+)*)='([^']*)'")
_LIST = re.compile(r"(?<!= )(?<!=)\['[^'\[\]]*'(?:, '[^'\[\]]*')*\]")
_PLACED = re.compile(r"\b(delta|epsilon|k|l|t|plan|max_union)=([\d.e-]*\d)")
_WORDS = (
    (r"Pass quasi_identifiers=\[\.\.\.\] to Table\.from_frame, or give columns", "Give columns"),
    (r"Pass identifiers=\[\.\.\.\] to Table\.from_frame, or give columns", "Give columns"),
    (r"Add them \(identifiers=\[\.\.\.\]\)", "Give them the role 'identifier' in the schema"),
    (r"Declare one with target='\.\.\.' or in the schema", "Give a column the role 'target' in the schema"),
    (r"Convert it with pd\.to_numeric, or", "Say how its numbers are written (--decimal, --thousands), or"),
    (r"Pass domains=\{.*?\} to Table\.from_frame,? or add them to", "Add domain = [...] to"),
    (r"Name them with columns=\[\.\.\.\], or give decode=\.\.\. if", "Write a file with their names, decoded if"),
    (r"; give columns=\[\.\.\.\]", ""),
    (r"Give its inverse as decode=\.\.\.(?:, such as decode=.*?\]\})?", "Write the labels into the file"),
    (r"numbers or texts that numpy wrote", "numbers or texts"),
    (r" ?Build one with Table\.[^.]*\.from_frame.*?\.\.\.\)(?: or Table\.read\(path, schema=\.\.\.\))?\.", ""),
    (r" ?Build one with Table\..*?schema=\.\.\.\)\.", ""),
    (r"declare levels=\[\.\.\.\] or use an ordered category dtype", "declare levels = [...] in the schema"),
    (r", or off an ordered category dtype,", ""),
    (r", for example with table\.take\(table\.target\.notna\(\)\)", ""),
    (r"Train it on `table\.features`", "Train it on the features of the schema, in order"),
    (r"\b[A-Z]\w+\.\w+\(\) or --roster", "--previous"),
    (r"Call it on `table\.features` yourself to see why; the columns, their order and their dtypes", "The columns"),
    (r"Give it: TCloseness\(.*?\); or use the 'equal' distance", "Give --hierarchies, or --closeness equal"),
    (r", as table\.split\(\) does|, such as a part of `table\.split\(\)`", ""),
    (r"something whose explain\(\) gives Explanations", "something that explains"),
    (r"\w+=True, (--[a-z-]+)", r"\1"),
    (r"\b\w+\(by_class=True\)", "--by-class"),
    (r"must have dtype \w+\. Got \w+", "must hold the same kind of values as the table"),
    (r"holds (?:object|str|string|category) values", "holds text"),
    (r"holds (?:bool|boolean) values", "holds truth values"),
    (r"\b(?:pd\.NA|NaN|None)\b", "missing"),
    (r" (?:of the table )?given to (?:the )?[A-Za-z_]\w*(?:\.\w+)?", ""),
    (
        r"the target must be given where.*? Got missing instead",
        "Rules need a target. Give a column that role in the schema",
    ),
    (r"; in Python, pass favourable=.*? here", ""),
    (r"must be a Table of at least", "must be a file of at least"),
    (r"--language catalogue must", "--language must"),
    (r"\b[A-Z]\w+\.(?:to|from)_\w+(?:\(\))?", "Countervail"),
)


def in_flags(text: str) -> str:
    """A message of the library as the command line says it.

    Examples
    --------
    >>> in_flags("The 'n_counterfactuals' parameter of CFK must be at least 1. Got 0 instead.")
    '--n must be at least 1. Got 0 instead.'
    """
    text = _OWNED.sub(lambda m: _flag(m[1]), text)
    for pattern, said in _WORDS:
        text = re.sub(pattern, said, text)
    text = _LIST.sub(lambda m: m[0][2:-2].replace("', '", ", "), text)
    text = _NAMED.sub(lambda m: f"{_flag(m[1])} {m[2]}", text)
    text = _PLACED.sub(lambda m: f"{_flag(m[1])} {m[2]}", text)
    return text[:1].upper() + text[1:]


def _flag(parameter: str) -> str:
    return _FLAGS.get(parameter, f"--{parameter.replace('_', '-')}")
