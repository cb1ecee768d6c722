"""The audit as a value: what was asked, found and decided, and how all of that leaves as a dossier."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any, Self

from countervail.auditing.appetite import Appetite
from countervail.auditing.claims import Claim
from countervail.auditing.finding import Finding
from countervail.auditing.verdict import WORDS, Ruling, Word, decide, open_steps, overall, undecided, why_void
from countervail.auditing.written import texts
from countervail.core.errors import DataNotFoundError, SchemaError
from countervail.core.files.frames import write_text
from countervail.core.files.json_data import json_object, need, whole_json
from countervail.core.guarantee import guarantee_from_dict
from countervail.core.release import package_version
from countervail.core.stats import plain_value

FORMAT = "countervail dossier"
VERSION = 1
_WRITER = "Audit.to_json()"
_TEXTS = ("sentence", "next", "methods", "limits", "crosswalk", "triggers")
_RELEASED = ("explanations", "table")  # kinds of things that were given as they leave


@dataclass(frozen=True, eq=False, slots=True)
class Audit:
    """What an audit found. `verdict` is its one word; `to_html`, `to_pdf` and `to_json` write the dossier.

    `asked` says what was audited and against whom, `leaves` what leaves, `promise` what is claimed of it. `beside`
    holds what was measured and decides nothing: how groups fare, and what one person's record changes.
    """

    asked: Mapping[str, Any]
    leaves: Mapping[str, Any]
    promise: Mapping[str, Any]
    appetite: Appetite
    findings: tuple[Finding, ...]
    claims: tuple[Claim, ...]
    decisions: tuple[Ruling, ...]
    caveats: tuple[str, ...] = ()
    provenance: Mapping[str, Any] = field(default_factory=dict)
    beside: Mapping[str, Any] = field(default_factory=dict)

    @classmethod
    def settle(
        cls,
        asked: Mapping[str, Any],
        leaves: Mapping[str, Any],
        promise: Mapping[str, Any],
        appetite: Appetite,
        **of: Any,
    ) -> Self:
        """An audit whose decisions follow from its findings."""
        decisions = decide(of["findings"], of["claims"], appetite)
        return cls(asked, leaves, promise, appetite, decisions=decisions, **of)

    @property
    def verdict(self) -> Word:
        """The overall word: "release", "not shown", "reject", or "void"."""
        return overall(self.decisions, self.findings)

    @property
    def sentence(self) -> str:
        """The verdict in one sentence."""
        return why_void(self.findings) if self.verdict == "void" else WORDS[self.verdict]

    @property
    def steps(self) -> tuple[str, ...]:
        """What to do next."""
        first: tuple[str, ...] = ()
        if self.verdict == "not shown":
            first = open_steps(self.findings, self.appetite)
        elif self.verdict == "reject":
            against = tuple(dict.fromkeys(d.criterion for d in self.decisions if d.word == "reject"))
            advice = dict.fromkeys(texts.AGAINST[c] for c in against if c in texts.AGAINST)
            first = (f"Do not let it leave as it is. What speaks against it: {', '.join(against)}.", *advice)
        elif self.verdict == "release":
            first = undecided(self.appetite)
        return (*first, *texts.NEXT_STEPS[self.verdict])

    def about(self, path: str | Path) -> Self:
        """The same dossier, bound to the file that was audited: its name and SHA-256.

        A saved protector, and what must not leave, is named only: whoever knows all of a file but one value could try
        values until the digest is right.
        """
        file = {"name": Path(path).name}
        if self.asked["what"] in _RELEASED and self.verdict in ("release", "not shown"):
            file["sha256"] = file_digest(path)
        return replace(self, provenance={**self.provenance, "file": file})

    def __getitem__(self, attack: str) -> Finding:
        for finding in self.findings:
            if attack in (finding.attack, finding.attack.partition(" ")[0]):
                return finding
        raise KeyError(attack)

    def __str__(self) -> str:
        lines = [f"{self.verdict}: {self.sentence}"]
        lines += [f"  {d.recipient}, {d.criterion}: {d.word} ({'; '.join(d.reasons)})" for d in self.decisions]
        return "\n".join(lines)

    def to_dict(self) -> dict[str, Any]:
        """The dossier as plain JSON data, with a digest over all of it."""
        data = {
            "format": FORMAT,
            "version": VERSION,
            "verdict": self.verdict,
            "sentence": self.sentence,
            "next": list(self.steps),
            "asked": plain_value(self.asked),
            "leaves": plain_value(self.leaves),
            "promise": plain_value(self.promise),
            "appetite": self.appetite.to_dict(),
            "decisions": [d.to_dict() for d in self.decisions],
            "claims": [c.to_dict() for c in self.claims],
            "findings": [f.to_dict() for f in self.findings],
            "beside": plain_value(self.beside),
            "caveats": list(self.caveats),
            "methods": list(texts.METHODS),
            "limits": list(texts.LIMITS),
            "crosswalk": [list(row) for row in texts.CROSSWALK],
            "triggers": list(texts.TRIGGERS),
            "provenance": plain_value(self.provenance),
            "fields": dict.fromkeys(texts.FIELDS, ""),
        }
        return {**data, "digest": digest(data)}

    def to_json(self, path: str | Path | None = None) -> str:
        """The dossier as JSON; written to a file where one is named."""
        text = json.dumps(self.to_dict(), indent=1, allow_nan=False) + "\n"
        if path is not None:
            write_text(text, path)
        return text

    def to_html(self, path: str | Path | None = None) -> str:
        """The dossier as one self-contained page; written to a file where one is named."""
        from countervail.auditing.written.dossier import dossier_page
        from countervail.report.page import render_page

        text = render_page(dossier_page(self))
        if path is not None:
            write_text(text, path)
        return text

    def to_pdf(self, path: str | Path, *, certificate: str | Path | None = None, password: str | None = None) -> None:
        """Write the dossier as a PDF file, signed where a certificate (PKCS #12; extra `sign`) is given."""
        from countervail.auditing.written.pdf import write_pdf

        write_pdf(self, path, certificate, password)

    @classmethod
    def from_json(cls, text: str) -> Self:
        """The audit of a dossier; whether it is as it was written, :func:`verify` says."""
        data = json_object(text, "dossier", "verify", _WRITER)
        if data.get("format") != FORMAT or data.get("version") != VERSION:
            raise SchemaError(f"This JSON is no dossier of version {VERSION}. Give what {_WRITER} wrote.")
        with whole_json("dossier", "verify", _WRITER):
            need(isinstance(data["digest"], str) and isinstance(data["decisions"], list))
            decided = tuple(
                Ruling(d["recipient"], d["criterion"], d["threshold"], d["word"], tuple(d["reasons"]))
                for d in data["decisions"]
            )
            return cls(
                dict(data["asked"]),
                dict(data["leaves"]),
                dict(data["promise"]),
                Appetite.from_dict(data["appetite"], "the dossier"),
                tuple(Finding.from_dict(f) for f in data["findings"]),
                tuple(Claim.from_dict(c) for c in data["claims"]),
                decided,
                tuple(data["caveats"]),
                dict(data["provenance"]),
                dict(data.get("beside", {})),
            )

    @classmethod
    def read(cls, path: str | Path) -> Self:
        """Read a dossier from its JSON file."""
        return cls.from_json(read_dossier(path))


def read_dossier(path: str | Path) -> str:
    """The text of a dossier's file."""
    path = Path(path)
    if not path.is_file():
        raise DataNotFoundError(
            f"There is no dossier '{path.name}'. Give what `countervail audit -o dossier.json` wrote."
        )
    try:
        return path.read_text(encoding="utf-8")
    except UnicodeDecodeError:
        raise SchemaError(f"The dossier '{path.name}' is not text in UTF-8.") from None


def file_digest(path: str | Path) -> str:
    """SHA-256 of a file."""
    with Path(path).open("rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()


def digest(data: Mapping[str, Any]) -> str:
    """SHA-256 over the data in one canonical spelling, without the digest itself."""
    plain = {key: value for key, value in data.items() if key not in ("digest", "fields")}
    text = json.dumps(plain, sort_keys=True, separators=(",", ":"), ensure_ascii=True, allow_nan=False)
    return "sha256:" + hashlib.sha256(text.encode("ascii")).hexdigest()


def verify(text: str) -> list[str]:
    """What is wrong with a dossier; an empty list means that nothing is.

    Its digest, figures that do not follow from its counts, decisions that do not follow from figures, a past expiry.

    The digest finds slips and careless edits. Whoever forges a dossier can make a new one: sign it where that matters.
    """
    audit = Audit.from_json(text)
    data = json.loads(text)
    problems = []
    if digest(data) != data["digest"]:
        problems.append("The digest is not that of this text: it was changed after it was written.")
    for finding, told in zip(audit.findings, data["findings"]):
        again = finding.to_dict()
        wrong = [
            k for k in ("members", "controls", "excess", "found_planted", "worst") if not _close(again[k], told[k])
        ]
        if wrong:
            problems.append(f"{finding.attack}: {', '.join(wrong)} do not follow from the counts.")
    if [d.to_dict() for d in decide(audit.findings, audit.claims, audit.appetite)] != data["decisions"]:
        problems.append("The decisions do not follow from the findings and the appetite.")
    if data.get("verdict") != audit.verdict:
        problems.append("The verdict does not follow from the decisions.")
    problems += _other_words(audit, data)
    from datetime import UTC, date, datetime

    expires = str(data["provenance"].get("expires", ""))
    try:
        if date.fromisoformat(expires) < datetime.now(UTC).date():
            problems.append(f"It expired on {expires}: the audit is to be done again.")
    except ValueError:
        problems.append("It has no date of expiry.")
    return problems


def _other_words(audit: Audit, data: Mapping[str, Any]) -> list[str]:
    """Texts that are not those which follow from the rest; of a dossier of another version they may be others."""
    problems = []
    if data["provenance"].get("countervail") == package_version():
        again = plain_value(audit.to_dict())
        wrong = [key for key in _TEXTS if again[key] != data.get(key)]
        if wrong:
            problems.append(f"Not the words of such a dossier: {', '.join(wrong)}.")
    with whole_json("dossier", "verify", _WRITER):
        promised = str(guarantee_from_dict(data["promise"]["data"]))
    if promised != data["promise"].get("text"):
        problems.append("The words of the promise are not those of what is promised.")
    return problems


def _close(a: Any, b: Any) -> bool:
    """Whether two figures are the same but for the last digits."""
    if isinstance(a, dict) and isinstance(b, dict):
        return a.keys() == b.keys() and all(_close(a[k], b[k]) for k in a)
    if isinstance(a, float) and isinstance(b, (int, float)):
        return abs(a - b) <= 1e-9 * max(1.0, abs(a))
    return bool(a == b)
