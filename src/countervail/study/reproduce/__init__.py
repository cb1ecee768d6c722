"""Every table and figure of the papers, computed anew: theirs beside ours."""

from countervail.study.reproduce.catalogue import papers as papers
from countervail.study.reproduce.result import Reproduction as Reproduction
from countervail.study.reproduce.run import reproduce as reproduce
