"""The page in a real browser: created, voted on, watched, reloaded."""

from __future__ import annotations

import re
from pathlib import Path

import pytest
from playwright.sync_api import Browser, BrowserContext, Page, expect

from duelist.service.bootstrap import add_demo
from tests.browser.conftest import Watched
from tests.support.services import Running

pytestmark = pytest.mark.slow

FRUIT = ("Apple", "Banana", "Cherry", "Damson", "Elderberry")


def create(page: Page, name: str = "Fruit", items: str = "\n".join(FRUIT), question: str = "Which tastes better?") -> str:
    page.get_by_label("Name", exact=True).fill(name)
    page.get_by_label("Question to voters").fill(question)
    page.get_by_label("Items", exact=True).fill(items)
    page.get_by_role("button", name="Create and vote").click()
    expect(page.locator("#pair")).to_be_visible()
    return page.url.rsplit("/", 1)[1]


def pair_on(page: Page) -> tuple[str, str]:
    return page.locator("#left-content").inner_text(), page.locator("#right-content").inner_text()


def press_and_wait(page: Page, key: str) -> None:
    """Press a key and wait until its answer was saved and the next pair asked for."""
    with page.expect_response(lambda r: r.url.endswith("/asks") and r.request.method == "POST"):
        page.keyboard.press(key)
    expect(page.locator("#pair")).to_have_attribute("aria-busy", "false")


def test_creating_an_arena_voting_30_times_and_reloading_loses_nothing(
    page: Page, service: Running, watched: Watched, screenshots: Path
) -> None:
    arena = create(page)
    before = service.admin.get(f"/api/v1/arenas/{arena}/leaderboard").json()["rows"]
    for vote in range(30):
        left, right = pair_on(page)
        wins_left = FRUIT.index(left) > FRUIT.index(right)  # later in the alphabet is better
        if vote % 3 == 0:
            with page.expect_response(lambda r: r.url.endswith("/asks") and r.request.method == "POST"):
                page.get_by_role("button", name="A is better" if wins_left else "B is better").click()
            expect(page.locator("#pair")).to_have_attribute("aria-busy", "false")
        else:
            press_and_wait(page, "ArrowLeft" if wins_left else "ArrowRight")
    expect(page.locator("#count")).to_have_text("30 votes in this sitting")

    shown = pair_on(page)
    page.reload()
    expect(page.locator("#pair")).to_be_visible()
    assert pair_on(page) == shown, "the pair on the screen is the same after a reload"

    page.get_by_role("link", name="Dashboard").click()
    expect(page.locator("#votes")).to_have_text("30")
    names = page.locator("#board .name").all_inner_texts()
    after = service.admin.get(f"/api/v1/arenas/{arena}/leaderboard").json()["rows"]
    assert names == [row["name"] for row in after]
    assert [row["item"] for row in after] != [row["item"] for row in before], "the leaderboard moved"
    assert names[0] == "Elderberry"
    expect(page.locator("#leader")).to_have_text("Elderberry")
    expect(page.locator("#sure")).to_contain_text("Best of all with a probability of")
    page.screenshot(path=screenshots / "dashboard.png", full_page=True)
    page.reload()
    expect(page.locator("#votes")).to_have_text("30")
    assert page.locator("#board .name").all_inner_texts() == names
    assert watched.faults == []
    assert watched.elsewhere == []


def test_the_sample_arena_can_be_voted_on_at_once(page: Page, service: Running, screenshots: Path) -> None:
    add_demo(service.service.store, service.service.settings)
    page.goto("/arena/demo")
    expect(page.locator("#pair")).to_be_visible()
    for key in ("ArrowLeft", "ArrowRight", "ArrowLeft"):
        press_and_wait(page, key)
    page.locator("#why summary").click()
    expect(page.locator("#why-text")).to_contain_text("FGTS drew two plausible worlds")
    page.mouse.move(0, 0)
    page.screenshot(path=screenshots / "arena.png")


def test_every_answer_has_a_key_and_the_last_one_can_be_undone(page: Page, service: Running) -> None:
    arena = create(page)
    for key in ("t", "n", "s", "a"):
        press_and_wait(page, key)
    expect(page.locator("#said")).to_have_text("A is better: saved.")
    page.keyboard.press("u")
    expect(page.locator("#said")).to_have_text("Vote taken back.")
    page.keyboard.press("b")
    expect(page.locator("#said")).to_have_text("B is better: saved.")
    rows = service.admin.get(f"/api/v1/arenas/{arena}/votes").text.splitlines()[1:]
    assert [row.split(",")[6] for row in rows] == ["tie", "both_bad", "skip", "right", ""]


def test_keys_with_a_modifier_and_keys_held_down_do_not_vote(page: Page, service: Running) -> None:
    arena = create(page)
    page.keyboard.press("Control+b")
    page.keyboard.press("Alt+ArrowLeft")
    page.goto(f"/arena/{arena}")
    expect(page.locator("#pair")).to_be_visible()
    assert service.admin.get(f"/api/v1/arenas/{arena}").json()["votes"] == 0


def test_item_text_cannot_become_script_or_markup(page: Page, service: Running, watched: Watched) -> None:
    hostile = [
        '<img src=x onerror="document.title=\'owned\'"><script>document.title="owned"</script>',
        '[click](javascript:document.title="owned") **bold** `<b>code</b>` <svg onload=alert(1)>',
    ]
    body = {
        "name": "</title><script>document.title='owned'</script>",
        "question": "<b>Which?</b>",
        "items": [{"name": f"n{i} <i>x</i>", "content": text, "format": "markdown"} for i, text in enumerate(hostile)],
    }
    arena = service.admin.post("/api/v1/arenas", json=body).json()["id"]
    page.goto(f"/arena/{arena}")
    expect(page.locator("#pair")).to_be_visible()
    both = " ".join(pair_on(page))
    assert '<img src=x onerror="document.title=' in both, "markup is shown as it was written"
    assert "[click](javascript:" in both
    assert page.locator(".content strong").inner_text() == "bold"
    assert page.locator(".content script, .content img, .content svg, .content a").count() == 0
    assert "owned" not in page.title().replace("document.title='owned'", "")
    page.goto(f"/arena/{arena}/dashboard")
    expect(page.locator("#board .name").first).to_contain_text("<i>x</i>")
    assert page.locator("#board .name i").count() == 0
    assert watched.faults == []


def test_markdown_is_shown_as_elements(page: Page, service: Running) -> None:
    text = (
        "# Title\n\nSome *soft* and **strong** [link](https://example.org/a).\n\n1. one\n2. two\n   - inner\n\n"
        "```\n<x> & y\n```\n> said\n\n| a | b |\n|---|---|\n| 1 | 2 |"
    )
    items = [{"name": "x", "content": text, "format": "markdown"}, {"name": "y", "content": "plain *text*", "format": "text"}]
    arena = service.create(items=items)
    page.goto(f"/arena/{arena}")
    expect(page.locator("#pair")).to_be_visible()
    content = page.locator(".content:not(.plain)")
    assert content.locator("h3").inner_text() == "Title"
    assert content.locator("em").inner_text() == "soft"
    assert content.locator("strong").inner_text() == "strong"
    assert content.locator("a").get_attribute("href") == "https://example.org/a"
    assert content.locator("a").get_attribute("rel") == "noopener noreferrer nofollow"
    assert content.locator("ol > li").count() == 2
    assert content.locator("ol ul li").inner_text() == "inner"
    assert content.locator("pre code").inner_text() == "<x> & y"
    assert content.locator("blockquote").inner_text() == "said"
    assert content.locator("td").all_inner_texts() == ["1", "2"]
    assert page.locator(".content.plain").inner_text() == "plain *text*"


def test_a_voting_link_opens_the_arena_and_nothing_else(page: Page, context: BrowserContext, service: Running) -> None:
    arena = create(page)
    page.get_by_role("link", name="Dashboard").click()
    page.get_by_role("button", name="Make a voting link").click()
    link = page.locator(".secret").inner_text()
    context.clear_cookies()
    voter = context.new_page()
    voter.goto(link)
    expect(voter.locator("#pair")).to_be_visible()
    again = context.new_page()
    again.goto(f"/arena/{arena}")
    expect(again.locator("#pair")).to_be_visible()  # another tab, without the key in its address
    again.close()
    assert voter.url == link, "the address can be copied and bookmarked"
    assert not voter.get_by_role("link", name="Dashboard").is_visible()
    press_and_wait(voter, "ArrowLeft")
    assert service.admin.get(f"/api/v1/arenas/{arena}").json()["votes"] == 1
    voter.goto(f"/arena/{arena}/dashboard")
    expect(voter.locator("#problem")).to_contain_text("Sign in first")


def test_without_a_key_the_page_asks_for_one_and_a_used_link_says_so(
    context: BrowserContext, service: Running, screenshots: Path
) -> None:
    link = service.service.sessions.new_link()
    assert service.anonymous.get(f"/open/{link}").status_code == 303
    page = context.new_page()
    page.goto(f"/open/{link}")
    expect(page.locator("#problem")).to_contain_text("used before")
    page.get_by_label("Key").fill("not a key")
    page.get_by_role("button", name="Sign in").click()
    expect(page.locator("#problem")).to_contain_text("not known")
    page.get_by_label("Key").fill(service.secret)
    page.get_by_role("button", name="Sign in").click()
    expect(page.get_by_role("heading", name="Create an arena")).to_be_visible()
    page.screenshot(path=screenshots / "home.png", full_page=True)


def test_the_arena_fits_a_phone(page: Page, screenshots: Path) -> None:
    arena = create(
        page, "Answers", "A short answer.\n---\nA longer answer.\n\nWith a second paragraph that wraps on a small screen."
    )
    page.set_viewport_size({"width": 375, "height": 740})
    page.goto(f"/arena/{arena}")
    expect(page.locator("#pair")).to_be_visible()
    assert page.evaluate("document.documentElement.scrollWidth") <= 375, "nothing scrolls sideways"
    for button in page.locator(".choices button").all():
        box = button.bounding_box()
        assert box is not None
        assert box["height"] >= 44
        assert box["x"] >= 0
        assert box["x"] + box["width"] <= 375
    page.get_by_role("button", name="A is better").click()
    expect(page.locator("#said")).to_have_text("A is better: saved.")
    page.screenshot(path=screenshots / "phone.png")
    page.goto(f"/arena/{arena}/dashboard")
    expect(page.locator("#votes")).to_have_text("1")
    assert page.evaluate("document.documentElement.scrollWidth") <= 375
    page.screenshot(path=screenshots / "phone-dashboard.png", full_page=True)


def test_everything_can_be_reached_and_named_without_a_mouse(page: Page) -> None:
    create(page)
    page.get_by_role("button", name="A is better").focus()
    with page.expect_response(lambda r: r.url.endswith("/asks") and r.request.method == "POST"):
        page.keyboard.press("Enter")
    expect(page.locator("#live")).to_contain_text("A is better: saved. New pair.")
    focused = page.evaluate("document.activeElement.dataset.outcome")
    assert focused == "left", "focus stays where it was"
    unnamed = page.evaluate(
        """[...document.querySelectorAll("button, a, input, select, textarea, [role=img]")]
           .filter((e) => e.checkVisibility())
           .filter((e) => !(e.getAttribute("aria-label") || e.textContent.trim() || e.labels?.length)).length"""
    )
    assert unnamed == 0
    page.get_by_role("link", name="Dashboard").click()
    expect(page.locator("#votes")).to_have_text("1")
    assert page.evaluate('[...document.querySelectorAll("svg")].every((e) => e.getAttribute("aria-label"))')


def test_retiring_an_item_on_the_dashboard_takes_it_out(page: Page, service: Running) -> None:
    arena = create(page)
    page.get_by_role("link", name="Dashboard").click()
    page.get_by_role("button", name="Retire Apple").click()
    expect(page.get_by_role("button", name="Bring back Apple")).to_be_visible()
    page.get_by_label("Add an item").fill("Fig")
    page.get_by_role("button", name="Add", exact=True).click()
    expect(page.locator("#board")).to_contain_text("Fig")
    items = service.admin.get(f"/api/v1/arenas/{arena}/items").json()["items"]
    assert {item["name"]: item["active"] for item in items}["Apple"] is False
    assert items[-1]["name"] == "Fig"


def test_what_is_pasted_twice_becomes_one_item(page: Page, service: Running) -> None:
    page.get_by_label("Items", exact=True).fill("Lisbon\nKyoto\n Lisbon \n\n")
    expect(page.locator("#items-count")).to_have_text("2 items so far. One is there more than once and will be taken once.")
    arena = create(page, "Cities", "Lisbon\nKyoto\nLisbon")
    items = service.admin.get(f"/api/v1/arenas/{arena}/items").json()["items"]
    assert [item["name"] for item in items] == ["Lisbon", "Kyoto"]


def test_a_pair_that_was_answered_elsewhere_makes_way_for_the_next(page: Page, service: Running) -> None:
    arena = create(page)
    shown = page.evaluate(f"sessionStorage.getItem('duelist pair {arena}')")
    assert service.tell(arena, shown, "tie").status_code == 200
    page.keyboard.press("ArrowLeft")
    expect(page.locator("#problem-text")).to_contain_text("answered before, perhaps in another tab")
    with page.expect_response(lambda r: r.url.endswith("/asks") and r.request.method == "POST"):
        page.get_by_role("button", name="Try again").click()
    expect(page.locator("#pair")).to_have_attribute("aria-busy", "false")
    expect(page.locator("#problem")).to_be_hidden()
    assert page.evaluate(f"sessionStorage.getItem('duelist pair {arena}')") != shown
    press_and_wait(page, "s")
    expect(page.locator("#count")).to_have_text("0 votes in this sitting")


def test_when_the_session_ends_the_page_says_what_to_do(page: Page, context: BrowserContext) -> None:
    create(page)
    context.clear_cookies()
    page.keyboard.press("ArrowLeft")
    expect(page.locator("#problem-text")).to_contain_text("sign in on the start page")


def test_the_next_pair_is_read_from_its_beginning(page: Page, service: Running) -> None:
    long = "Read me. " * 2000
    arena = service.create(items=[{"name": name, "content": f"{name}: {long}"} for name in ("x", "y", "z")])
    page.goto(f"/arena/{arena}")
    expect(page.locator("#pair")).to_be_visible()
    page.evaluate("scrollTo(0, document.body.scrollHeight)")
    assert page.evaluate("scrollY") > 0
    press_and_wait(page, "ArrowRight")
    assert page.evaluate("scrollY") == 0


def test_a_slate_is_voted_on_with_the_key_of_the_best_or_its_button(
    page: Page, service: Running, watched: Watched, screenshots: Path
) -> None:
    body = {
        "name": "Slates of fruit",
        "items": [{"name": name, "id": name} for name in FRUIT],
        "policy": {"name": "ListwiseFGTS", "settings": {"choices": 3}},
    }
    arena = service.admin.post("/api/v1/arenas", json=body).json()["id"]
    page.goto(f"/arena/{arena}")
    expect(page.locator("#pair .candidate")).to_have_count(3)
    told = []
    for vote in range(6):
        shown = page.locator("#pair .content").all_inner_texts()
        best = max(range(3), key=lambda place: FRUIT.index(shown[place]))
        if vote % 2:
            with page.expect_response(lambda r: r.url.endswith("/asks") and r.request.method == "POST"):
                page.get_by_role("button", name=f"{'ABC'[best]} is best").click()
            expect(page.locator("#pair")).to_have_attribute("aria-busy", "false")
        else:
            press_and_wait(page, str(best + 1))
        expect(page.locator("#said")).to_have_text(f"{'ABC'[best]} is best: saved.")
        told.append(shown[best])
    page.screenshot(path=screenshots / "slate.png", full_page=True)
    page.keyboard.press("u")
    expect(page.locator("#said")).to_have_text("Vote taken back.")
    assert page.locator("#pair .content").all_inner_texts() == shown, "the slate before is shown again"
    page.keyboard.press("t")
    expect(page.locator("#said")).to_have_text("Equally good: saved.")
    page.reload()
    expect(page.locator("#pair .candidate")).to_have_count(3)
    rows = service.admin.get(f"/api/v1/arenas/{arena}/votes").text.splitlines()[1:]
    assert [row.split(",")[7] for row in rows[:6]] == [*told[:5], ""]
    assert watched.faults == []


def test_reading_is_not_voting(page: Page, service: Running) -> None:
    """Clicks on a card vote for nothing, and the second candidate comes to the screen before the first vote counts."""
    long = "Read me. " * 600
    arena = service.create(items=[{"name": name, "content": f"{name}: {long}"} for name in ("x", "y", "z")])
    page.set_viewport_size({"width": 390, "height": 844})
    page.goto(f"/arena/{arena}")
    expect(page.locator("#pair")).to_be_visible()
    page.locator("#left").click(position={"x": 30, "y": 120})
    assert service.admin.get(f"/api/v1/arenas/{arena}").json()["votes"] == 0
    page.get_by_role("button", name="A is better").click()
    expect(page.locator("#said")).to_have_text("Read B first: it is here.")
    assert page.locator("#right").bounding_box()["y"] < 844  # type: ignore[index]
    assert service.admin.get(f"/api/v1/arenas/{arena}").json()["votes"] == 0
    page.get_by_role("button", name="A is better").click()
    expect(page.locator("#said")).to_have_text("A is better: saved.")
    page.get_by_role("button", name="Skip").click()
    expect(page.locator("#said")).to_have_text("Skipped: saved.")
    assert service.admin.get(f"/api/v1/arenas/{arena}").json()["votes"] == 1


def test_keys_can_be_switched_off_and_stay_off(page: Page, service: Running) -> None:
    arena = create(page)
    page.get_by_label("Choose with keys as well").uncheck()
    page.reload()
    expect(page.locator("#pair")).to_be_visible()
    for key in ("a", "1", "ArrowRight", "t", "n"):
        page.keyboard.press(key)
    assert service.admin.get(f"/api/v1/arenas/{arena}").json()["votes"] == 0
    page.get_by_label("Choose with keys as well").check()
    press_and_wait(page, "2")
    expect(page.locator("#said")).to_have_text("B is better: saved.")


@pytest.mark.parametrize(
    ("locale", "button", "said"),
    [
        ("de-CH", "A ist besser", "A ist besser: gespeichert."),
        ("fr-FR", "A est meilleur", "A est meilleur : enregistré."),
        ("eo", "A is better", "A is better: saved."),
    ],
)
def test_the_page_speaks_the_language_of_the_browser(
    browser: Browser, service: Running, locale: str, button: str, said: str
) -> None:
    arena = service.create(items=[{"name": name, "content": name} for name in "xyz"])
    key = service.admin.post("/api/v1/keys", json={"role": "vote", "label": "v", "arena": arena}).json()["secret"]
    context = browser.new_context(locale=locale, base_url=service.url)
    page = context.new_page()
    page.goto(f"/arena/{arena}#key={key}")
    page.get_by_role("button", name=button).click()
    expect(page.locator("#said")).to_have_text(said)
    assert page.locator("html").get_attribute("lang") == ("en" if locale == "eo" else locale[:2])
    context.close()


def test_every_language_has_every_word_with_the_same_values(page: Page, service: Running) -> None:  # noqa: ARG001
    page.goto("/")
    text = page.evaluate("fetch('/static/words.js').then((answer) => answer.text())")
    parts = re.split(r"^  (\w\w): \{$", text, flags=re.MULTILINE)[1:]
    names = {
        language: {
            found[1]: sorted(re.findall(r"\{(\w+)\}", found[2]))
            for found in re.finditer(r"^    (\w+): (.*),$", body, re.MULTILINE)
        }
        for language, body in zip(parts[::2], parts[1::2], strict=True)
    }
    assert list(names) == ["en", "de", "fr"]
    assert names["de"] == names["en"]
    assert names["fr"] == names["en"]


def test_an_error_on_the_dashboard_stays_until_something_else_is_done(page: Page, service: Running) -> None:
    arena = service.create(items=[{"name": name, "content": name} for name in "xyz"])
    page.goto(f"/arena/{arena}/dashboard")
    expect(page.locator("#board")).to_be_visible()
    page.route("**/items", lambda route: route.fulfill(status=422, json={"detail": "too long by far"}))
    page.locator("#add").fill("one more")
    page.locator("#add-form button[type=submit]").click()
    expect(page.locator("#problem")).to_have_text("too long by far")
    with page.expect_response("**/timeline"):
        pass
    with page.expect_response("**/timeline"):
        pass
    expect(page.locator("#problem")).to_be_visible()


def test_an_unknown_arena_says_so_and_offers_no_second_try(page: Page, service: Running) -> None:  # noqa: ARG001
    page.goto("/arena/nothere")
    expect(page.locator("#problem")).to_contain_text("leads to no arena")
    assert page.locator("#question").inner_text() == "Voting is not possible now"
    assert not page.locator("#retry").is_visible()
    assert not page.locator("#preparing").is_visible()
