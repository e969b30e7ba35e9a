"""Prompts, datasets, goals and voters on the page, in a real browser."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from playwright.sync_api import Browser, Page, expect

from tests.browser.conftest import Watched
from tests.browser.test_page import pair_on
from tests.support.services import Running

pytestmark = pytest.mark.slow


def test_a_dataset_becomes_an_arena_whose_prompts_stay_on_the_screen(
    page: Page, service: Running, watched: Watched, tmp_path: Path
) -> None:
    chat = [{"role": "user", "content": "Say **hello**"}, {"role": "assistant", "content": "To whom?"}]
    long = "\n\n".join(f"Paragraph {n}" for n in range(60))
    lines = [
        {"prompt": {"format": "conversation", "messages": [*chat, {"role": "user", "content": f"To {name}"}]},
         "answers": {"one": f"1. Hello {name}\n\n{long}", "two": f"Hi {name}"}}
        for name in ("Ann", "Bob")
    ]  # fmt: skip
    path = tmp_path / "answers.jsonl"
    path.write_text("\n".join(map(json.dumps, lines)), encoding="utf-8")
    page.get_by_label("Name", exact=True).fill("Greetings")
    page.get_by_label("Instead of items: prompts with answers").set_input_files(path)
    page.get_by_role("button", name="Create and vote").click()
    prompt = page.locator("#prompt")
    expect(prompt).to_be_visible()
    expect(prompt.locator(".turn")).to_have_count(3)
    expect(prompt.locator("strong")).to_have_text("hello")
    first = prompt.locator(".turn").last.inner_text()
    name = first.removeprefix("user").strip().removeprefix("To ")
    assert all(name in content for content in pair_on(page))
    page.mouse.wheel(0, 3000)
    expect(prompt).to_be_in_viewport()
    assert page.evaluate("scrollY") > 500
    page.locator("#more summary").click()
    page.get_by_label("Comment").fill("n a b")
    page.get_by_label("How much better").select_option("much")
    page.evaluate("scrollTo({ top: 0 })")
    with page.expect_response(lambda r: r.url.endswith("/asks") and r.request.method == "POST", timeout=30_000):
        page.get_by_role("button", name="A is better").click()
    expect(page.locator("#pair")).to_have_attribute("aria-busy", "false")
    expect(page.get_by_label("Comment")).to_have_value("")
    assert prompt.locator(".turn").last.inner_text() != first, "the other prompt comes next"
    arena = page.url.rsplit("/", 1)[1]
    export = service.admin.get(f"/api/v1/arenas/{arena}/votes").text
    assert "n a b" in export
    assert "much" in export
    assert watched.faults == []


def test_a_named_link_ends_with_thanks_and_the_administrator_sees_who_voted(
    page: Page, service: Running, browser: Browser
) -> None:
    goal = {"kind": "promote", "challenger": "beta", "champion": "alpha", "delta": 0.4}
    arena = service.create(prompt="What is *best*?", goal=goal)
    page.goto(f"/arena/{arena}/dashboard")
    expect(page.locator("#verdict")).to_contain_text("Not decided yet")
    page.get_by_label("Voter (left out").fill("Ann Smith")
    page.get_by_label("Most votes by this link").fill("2")
    page.get_by_role("button", name="Make a voting link").click()
    address = page.locator("#link .secret").inner_text()
    expect(page.locator("#links")).to_contain_text("Ann-Smith")
    context = browser.new_context()
    voter = context.new_page()
    voter.goto(address)
    expect(voter.locator("#prompt")).to_contain_text("What is *best*?")
    for _ in range(2):
        better = "a" if voter.locator("#left-content").inner_text() == "Beta" else "b"
        with voter.expect_response(lambda r: r.url.endswith("/asks") and r.request.method == "POST"):
            voter.keyboard.press(better)
        expect(voter.locator("#pair")).to_have_attribute("aria-busy", "false")
    expect(voter.locator("#problem")).to_contain_text("Thank you!")
    expect(voter.locator("#ballot")).to_be_hidden()
    expect(voter.locator("#retry")).to_be_hidden()
    context.close()

    expect(page.locator("#verdict")).to_contain_text("“Beta” is better than “Alpha”")
    expect(page.locator("#voters")).to_contain_text("Ann-Smith")
    page.on("dialog", lambda dialog: dialog.accept())
    page.get_by_role("button", name="Remove the votes of Ann-Smith").click()
    expect(page.locator("#voters")).to_contain_text("0 (2 removed)")
    page.get_by_role("button", name="Close the arena").click()
    expect(page.get_by_role("button", name="Open the arena again")).to_be_visible()
    page.locator("#audit-title").click()
    expect(page.locator("#audit tr").first).to_contain_text("closed")
    page.goto(f"/arena/{arena}")
    expect(page.locator("#problem")).to_contain_text("Voting here has ended")
    page.goto(f"/arena/{arena}/dashboard")
    page.get_by_role("button", name="Delete the arena").click()
    expect(page.get_by_role("heading", name="Arenas")).to_be_visible()
    assert service.admin.get(f"/api/v1/arenas/{arena}").status_code == 404
