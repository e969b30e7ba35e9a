// Where people vote: two candidates, five answers, one key each, and a moment to change one's mind. An arena may show more
// candidates at once; then the answer is the best of them, with the key of its number.

import { arenaInAddress, connect, keyFromLink, voterName } from "./api.js";
import { inShort, show } from "./content.js";
import { announce, byId, certainty, complain, el, percent } from "./dom.js";

const arena = arenaInAddress();
const viaLink = keyFromLink(arena);
const call = connect(viaLink);
const voter = voterName();
const path = `/arenas/${encodeURIComponent(arena)}`;
const remembered = `duelist pair ${arena}`;
const SAID = { left: "A is better", right: "B is better", tie: "Equally good", both_bad: "Both bad", skip: "Skipped" };
const KEYS = { ArrowLeft: "left", ArrowRight: "right", t: "tie", b: "both_bad", s: "skip" };
const LETTERS = "ABCDEFGHI";

let current = null; // the pair on the screen
let previous = null; // the pair that was answered last, while that can be undone
let aside = null; // the pair that made way when the one before it came back
let busy = false;
let countdown = 0;
let count = 0;

// The candidates on the screen, in order: where each stands, and the answer that prefers it.
let cards = [
  { card: byId("left"), content: byId("left-content"), answer: "left" },
  { card: byId("right"), content: byId("right-content"), answer: "right" },
];

function setBusy(value) {
  busy = value;
  byId("pair").setAttribute("aria-busy", String(value));
  for (const button of document.querySelectorAll("[data-outcome]")) button.setAttribute("aria-disabled", String(value));
}

// A slate: as many cards as it shows, each with a button and a key, in place of the two.
function layOut(n) {
  cards = [...LETTERS.slice(0, n)].map((letter, place) => {
    const content = el("div", { class: "content", id: `content-${place + 1}`, dir: "auto" });
    const title = el("h2", { id: `title-${place + 1}` }, el("span", { class: "letter", "aria-hidden": "true" }, letter), ` Candidate ${letter}`);
    const card = el("section", { class: "candidate", id: `card-${place + 1}`, "aria-labelledby": title.id }, title, content);
    SAID[place + 1] = `${letter} is best`;
    KEYS[place + 1] = String(place + 1);
    return { card, content, answer: String(place + 1) };
  });
  for (const key of ["ArrowLeft", "ArrowRight"]) delete KEYS[key];
  SAID.both_bad = "All bad";
  byId("pair").classList.add("slate");
  byId("pair").replaceChildren(...cards.map(({ card }) => card));
  byId("why").remove();
  for (const button of document.querySelectorAll(".choices .side")) button.remove();
  const best = cards.map(({ answer }) =>
    el("button", { type: "button", class: "primary side", "data-outcome": answer, "aria-keyshortcuts": answer },
      `${SAID[answer]} `, el("kbd", { "aria-hidden": "true" }, answer)));
  document.querySelector(".choices").classList.add("slate");
  document.querySelector(".choices").prepend(...best);
  document.querySelector("[data-outcome=both_bad]").firstChild.textContent = "All bad ";
  listen(best);
}

// What an answer says in a request.
const body = (outcome) => (/\d/.test(outcome) ? { best: current.candidates[outcome - 1].item, voter } : { outcome, voter });

const read = (ask) => (ask.candidates || [ask.left, ask.right]).map((one, place) => `${LETTERS[place]}: ${inShort(one)}.`).join(" ");

function showPair(ask) {
  current = ask;
  sessionStorage.setItem(remembered, ask.id);
  const candidates = ask.candidates || [ask.left, ask.right];
  if (candidates.length !== cards.length) layOut(candidates.length);
  cards.forEach(({ card, content }, place) => {
    show(content, candidates[place], LETTERS[place]);
    card.classList.remove("chosen");
  });
  if (byId("why")) {
    byId("why-text").textContent = "";
    byId("why").open = false;
  }
  byId("pair").hidden = false;
  byId("ballot").hidden = false;
  // Scroll back to the top: the voter may have read the last pair to its end.
  scrollTo({ top: 0 });
}

async function nextPair() {
  if (aside) {
    const ask = aside;
    aside = null;
    return ask;
  }
  // The same request id again gets the same pair, so a lost answer cannot leave a pair behind.
  const request = [...crypto.getRandomValues(new Uint8Array(9))].map((byte) => byte.toString(36)).join("");
  // And nobody gets the same two twice while there are others.
  return call("POST", `${path}/asks`, { request_id: request, voter });
}

async function firstPair() {
  const before = sessionStorage.getItem(remembered);
  if (before) {
    try {
      const ask = await call("GET", `${path}/asks/${before}`);
      if (ask.outcome === null) return ask;
    } catch (error) {
      if (error.status !== 404 && error.status !== 422) throw error;
    }
  }
  return nextPair();
}

async function vote(outcome) {
  if (busy || !current) return;
  setBusy(true);
  byId("problem").hidden = true;
  for (const { card, answer } of cards) if (answer === outcome) card.classList.add("chosen");
  try {
    const answered = current;
    const told = await call("PUT", `${path}/asks/${answered.id}/answer`, body(outcome));
    counted(outcome === "skip" ? 0 : 1);
    offerUndo(answered, told, outcome);
    current = null;
    const ask = await nextPair();
    showPair(ask);
    announce(`${SAID[outcome]}: saved. ${ask.candidates ? "New candidates" : "New pair"}. ${read(ask)}`);
  } catch (error) {
    if (error.status === 409 && current) {
      current = null;
      error.message = "This pair was answered before, perhaps in another tab. Try again for the next one.";
    }
    failed(error);
  } finally {
    setBusy(false);
  }
}

function offerUndo(ask, told, outcome) {
  clearInterval(countdown);
  previous = told.undo_until ? { id: ask.id, outcome } : null;
  byId("said").textContent = `${SAID[outcome]}: saved.`;
  byId("undo").hidden = previous === null;
  if (previous === null) return;
  // Counted from now: the server's clock and this one need not agree.
  const end = Date.now() + undoSeconds * 1000;
  const tick = () => {
    const left = Math.ceil((end - Date.now()) / 1000);
    if (left > 0) {
      byId("undo-left").textContent = `${left} s`;
    } else {
      clearInterval(countdown);
      previous = null;
      byId("undo").hidden = true;
    }
  };
  tick();
  countdown = setInterval(tick, 500);
}

async function undo() {
  if (busy || previous === null) return;
  setBusy(true);
  try {
    const ask = await call("POST", `${path}/asks/${previous.id}/undo`, { voter });
    clearInterval(countdown);
    counted(previous.outcome === "skip" ? 0 : -1);
    previous = null;
    aside = current;
    byId("undo").hidden = true;
    byId("said").textContent = "Vote taken back.";
    showPair(ask);
    announce("Vote taken back. The pair before is shown again.");
  } catch (error) {
    failed(error);
  } finally {
    setBusy(false);
  }
}

function counted(more) {
  count += more;
  byId("count").textContent = `${count} ${count === 1 ? "vote" : "votes"} in this sitting`;
}

function failed(error) {
  if (error.status === 401) {
    error.message = viaLink
      ? "This voting link does not work any more. Ask the administrator of this arena for another."
      : "To vote here you need the voting link: ask the administrator of this arena for it. If that is you, sign in on the start page.";
  }
  complain(byId("problem-text"), error);
  byId("problem").hidden = false;
  for (const { card } of cards) card.classList.remove("chosen");
}

async function retry() {
  byId("problem").hidden = true;
  setBusy(true);
  try {
    showPair(current || (await firstPair()));
  } catch (error) {
    failed(error);
  } finally {
    setBusy(false);
  }
}

async function explain() {
  if (!byId("why").open || !current) return;
  try {
    const why = await call("GET", `${path}/asks/${current.id}/explanation`);
    const chance = why.pair_probability === null ? "" : ` This pair had a chance of about ${percent(why.pair_probability)}.`;
    byId("why-text").textContent =
      `${why.words}${chance} As things stand, A is preferred to B with probability ${percent(why.probability_left_wins)} ` +
      `(${percent(why.low)} to ${percent(why.high)}). Best of all: A ${certainty(why.left.probability_best)}, ` +
      `B ${certainty(why.right.probability_best)}.`;
  } catch (error) {
    byId("why-text").textContent = error.message;
  }
}

let undoSeconds = 0;

async function start() {
  byId("dashboard-link").setAttribute("href", `/arena/${encodeURIComponent(arena)}/dashboard`);
  try {
    const [info, session] = await Promise.all([call("GET", path), call("GET", "/session")]);
    document.title = `${info.name} · duelist`;
    byId("question").textContent = info.question;
    byId("name").textContent = info.name;
    undoSeconds = info.undo_seconds;
    for (const place of document.querySelectorAll("[data-admin]")) place.hidden = session.role !== "admin";
    showPair(await firstPair());
  } catch (error) {
    failed(error);
  }
}

function listen(buttons) {
  for (const button of buttons) button.addEventListener("click", () => vote(button.dataset.outcome));
  for (const { card, answer } of cards) {
    card.addEventListener("click", (event) => {
      // A link inside the text, or text being selected, is not a vote.
      if (event.target.closest("a, button, pre") || String(getSelection())) return;
      vote(answer);
    });
  }
}

listen(document.querySelectorAll("[data-outcome]"));
byId("undo").addEventListener("click", undo);
byId("retry").addEventListener("click", retry);
byId("why").addEventListener("toggle", explain);
document.addEventListener("keydown", (event) => {
  if (event.altKey || event.ctrlKey || event.metaKey || event.repeat) return;
  if (event.target.closest("input, textarea, select, pre")) return;
  const key = event.key.length === 1 ? event.key.toLowerCase() : event.key;
  if (key === "u") undo();
  else if (KEYS[key]) {
    event.preventDefault();
    vote(KEYS[key]);
  }
});
start();
