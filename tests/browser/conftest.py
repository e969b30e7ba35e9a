from __future__ import annotations

import os
import shutil
from collections.abc import Iterator
from pathlib import Path
from typing import Literal

import pytest
from playwright.sync_api import Browser, BrowserContext, Page, sync_playwright

from tests.support.services import Running, running_service

CHROMIUM = shutil.which("chromium") or shutil.which("chromium-browser")
_ARGUMENTS = [
    "--no-sandbox",
    "--disable-gpu",
    "--disable-background-networking",
    "--disable-component-update",
    "--disable-sync",
    "--no-first-run",
]
_DOCS = Path(__file__).parents[2] / "docs" / "screenshots"


@pytest.fixture
def screenshots(tmp_path: Path) -> Path:
    """Where pictures go: into the documentation only when DUELIST_SCREENSHOTS is set, so that a test run changes no file."""
    return _DOCS if os.environ.get("DUELIST_SCREENSHOTS") else tmp_path


# Playwright runs an event loop for as long as it is open. It closes with the module, so that tests which come to the same
# worker afterwards can have loops of their own.
@pytest.fixture(scope="module")
def browser() -> Iterator[Browser]:
    if CHROMIUM is None:
        pytest.skip("there is no chromium on this machine: run scripts/browser.sh, or install Debian's chromium package")
    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=CHROMIUM, args=_ARGUMENTS)
        yield browser
        browser.close()


def _scope(fixture_name: str, config: pytest.Config) -> Literal["function", "module"]:  # noqa: ARG001 - pytest names them
    """One service for all tests, which make their own arenas in it; for pictures of the start page an empty one each."""
    return "function" if os.environ.get("DUELIST_SCREENSHOTS") else "module"


@pytest.fixture(scope=_scope)
def service() -> Iterator[Running]:
    with running_service() as running:
        yield running


class Watched:
    """What went wrong inside the page: script errors, refused content, requests to elsewhere."""

    def __init__(self, context: BrowserContext, url: str) -> None:
        self.faults: list[str] = []
        self.elsewhere: list[str] = []
        context.on("weberror", lambda error: self.faults.append(str(error.error)))
        context.on("console", lambda message: self.faults.append(message.text) if message.type == "error" else None)
        context.on("request", lambda request: self.elsewhere.append(request.url) if not request.url.startswith(url) else None)


@pytest.fixture
def context(browser: Browser, service: Running) -> Iterator[BrowserContext]:
    context = browser.new_context(base_url=service.url, viewport={"width": 1200, "height": 820}, reduced_motion="reduce")
    context.set_default_timeout(120_000)
    yield context
    context.close()


@pytest.fixture
def watched(context: BrowserContext, service: Running) -> Watched:
    return Watched(context, service.url)


@pytest.fixture
def page(context: BrowserContext, service: Running) -> Page:
    """A page that came in by the one-time link, as administrator."""
    page = context.new_page()
    page.goto(f"/open/{service.service.sessions.new_link()}")
    return page
