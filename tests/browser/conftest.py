"""Debian's Chromium, driven by playwright, over the report of the made-up nights."""

from __future__ import annotations

import os
import shutil
from collections.abc import Iterator
from pathlib import Path

import pytest

from recgpt_ops.report.site import Report
from tests.unit.report.conftest import nights, report

__all__ = ["nights", "report"]  # the same nights and report as the unit tests read

NAMES = ("chromium", "chromium-browser")
FLAGS = ["--no-sandbox", "--disable-gpu", "--disable-background-networking"]  # root has no sandbox; nothing is asked of the network


@pytest.fixture(scope="module")
def browser() -> Iterator[object]:
    """A headless Chromium; skipped where there is none, unless RECGPT_REQUIRE_BROWSER=1 wants it.

    Not for the session: its driver keeps an event loop in this thread, in which no test could run a loop of its own.
    """
    executable = next(filter(None, map(shutil.which, NAMES)), None)
    if executable is None:
        reason = "no chromium on the PATH; install it, such as by: apt install chromium"
        if os.environ.get("RECGPT_REQUIRE_BROWSER") == "1":
            pytest.fail(reason)
        pytest.skip(reason)
    from playwright.sync_api import sync_playwright

    with sync_playwright() as driver:
        opened = driver.chromium.launch(executable_path=executable, args=FLAGS)
        yield opened
        opened.close()


class Watched:
    """A page in a window of its own, with what it asked for and complained of."""

    def __init__(self, browser: object, folder: Path, **window: object) -> None:
        self.folder = folder
        self.window = browser.new_context(**window)  # type: ignore[attr-defined]  # playwright's, imported only where it runs
        self.page = self.window.new_page()
        self.asked: list[str] = []
        self.complaints: list[str] = []
        self.page.on("request", lambda request: self.asked.append(request.url))
        self.page.on("console", lambda message: self.complaints.append(message.text))
        self.page.on("pageerror", lambda error: self.complaints.append(str(error)))

    def open_index(self) -> None:
        self.page.goto((self.folder / "index.html").as_uri())

    def open_user(self, user_id: str) -> None:
        """By the link of the index, as people go."""
        self.open_index()
        self.page.locator("#people a.who", has_text=user_id).click()
        self.page.wait_for_load_state()


@pytest.fixture
def watch(browser, report: Report) -> Iterator[object]:
    """watch(viewport=..., color_scheme=...): a new window, closed after the test."""
    opened: list[Watched] = []

    def make(**window: object) -> Watched:
        opened.append(Watched(browser, report.index.parent, **{"viewport": {"width": 1400, "height": 900}, **window}))
        return opened[-1]

    yield make
    for watched in opened:
        watched.window.close()
