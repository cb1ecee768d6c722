"""Reports: summary (pure data) -> template -> HTML, with pictures drawn as SVG."""

from countervail.report.page import Fact as Fact
from countervail.report.page import Page as Page
from countervail.report.page import Section as Section
from countervail.report.page import render_page as render_page
from countervail.report.page import write_page as write_page
