// Where people vote: two candidates, five answers, one key each, and a moment to change one's mind. An arena may show more
// candidates at once; then the answer is the best of them. Reading is not voting: only buttons and keys vote, and only when
// every candidate was on the screen.

import { arenaInAddress, connect, keyFromLink, voterName } from "./api.js";
import { inShort, show, showPrompt } from "./content.js";
import { announce, byId, certainty, complain, el, percent } from "./dom.js";
import { translate, word } from "./words.js";

const arena = arenaInAddress();
const viaLink = keyFromLink(arena);
const call = connect(viaLink);
const voter = voterName();
const path = `/arenas/${encodeURIComponent(arena)}`;
const remembered = `duelist pair ${arena}`;
const SAID = {
  left: word("better", { letter: "A" }),
  right: word("better", { letter: "B" }),
  tie: word("equal"),
  both_bad: word("both_bad"),
  skip: word("skipped"),
};
const KEYS = { ArrowLeft: "left", a: "left", 1: "left", ArrowRight: "right", b: "right", 2: "right", t: "tie", n: "both_bad", s: "skip" };
const LETTERS = "ABCDEFGHI";
// Titles of refusals that end a sitting.
const ENOUGH = "The quota is used up";
const CLOSED = "The arena is closed";

let current = null; // the pair on the screen
let previous = null; // the pair that was answered last, while that can be undone
let aside = null; // the pair that made way when the one before it came back
let busy = false;
let countdown = 0;
let count = 0;
const unread = new Set(); // content of candidates that were not on the screen yet
const reader = new IntersectionObserver((entries) => {
  for (const entry of entries) if (entry.isIntersecting) unread.delete(entry.target);
});

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
    const title = el("h2", { id: `title-${place + 1}` }, el("span", { class: "letter", "aria-hidden": "true" }, letter), ` ${word("candidate")} ${letter}`);
    const card = el("section", { class: "candidate", id: `card-${place + 1}`, "aria-labelledby": title.id }, title, content);
    SAID[place + 1] = word("best", { letter });
    KEYS[place + 1] = String(place + 1);
    KEYS[letter.toLowerCase()] = String(place + 1);
    return { card, content, answer: String(place + 1) };
  });
  for (const key of ["ArrowLeft", "ArrowRight"]) delete KEYS[key];
  SAID.both_bad = word("all_bad");
  byId("pair").classList.add("slate");
  byId("pair").replaceChildren(...cards.map(({ card }) => card));
  byId("why").remove();
  for (const button of document.querySelectorAll(".choices .side")) button.remove();
  const best = cards.map(({ answer }) =>
    el("button", { type: "button", class: "primary side", "data-outcome": answer, "aria-keyshortcuts": answer },
      `${SAID[answer]} `, el("kbd", { "aria-hidden": "true" }, answer)));
  document.querySelector(".choices").classList.add("slate");
  document.querySelector(".choices").prepend(...best);
  document.querySelector("[data-outcome=both_bad] span").textContent = word("all_bad");
  listen(best);
}

// What an answer says in a request.
function body(outcome) {
  const said = /\d/.test(outcome) ? { best: current.candidates[outcome - 1].item, voter } : { outcome, voter };
  const comment = byId("comment").value.trim();
  if (comment) said.comment = comment;
  if (byId("strength").value && !["tie", "both_bad", "skip"].includes(outcome)) said.strength = byId("strength").value;
  return said;
}

const read = (ask) => (ask.candidates || [ask.left, ask.right]).map((one, place) => `${LETTERS[place]}: ${inShort(one)}.`).join(" ");

function showPair(ask) {
  current = ask;
  sessionStorage.setItem(remembered, ask.id);
  const candidates = ask.candidates || [ask.left, ask.right];
  if (candidates.length !== cards.length) layOut(candidates.length);
  cards.forEach(({ card, content }, place) => {
    show(content, candidates[place], LETTERS[place]);
    card.classList.remove("chosen");
    unread.add(content);
    // Observed anew, so that it is told even where nothing moves.
    reader.unobserve(content);
    reader.observe(content);
  });
  if (byId("why")) {
    byId("why-text").textContent = "";
    byId("why").open = false;
  }
  showPrompt(byId("prompt"), byId("prompt-content"), ask.prompt);
  for (const id of ["pair", "ballot", "how", "more", "shortcuts-switch"]) byId(id).hidden = false;
  byId("preparing").hidden = true;
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

// The first candidate that was not on the screen yet is brought there instead of a vote. To skip, nothing need be read.
function readFirst() {
  const bottom = byId("ballot").getBoundingClientRect().top;
  const isHere = ({ top }) => top < Math.min(bottom, innerHeight);
  // The observer is told a moment later than the screen shows.
  for (const content of unread) if (isHere(content.getBoundingClientRect())) unread.delete(content);
  const place = cards.findIndex(({ content }) => unread.has(content));
  if (place < 0) return false;
  const { card, content } = cards[place];
  unread.delete(content);
  card.scrollIntoView({ block: "start" });
  const text = word("read_first", { letter: LETTERS[place] });
  byId("said").textContent = text;
  announce(text);
  return true;
}

async function vote(outcome) {
  if (busy || !current || (outcome !== "skip" && readFirst())) return;
  setBusy(true);
  byId("problem").hidden = true;
  for (const { card, answer } of cards) if (answer === outcome) card.classList.add("chosen");
  try {
    const answered = current;
    const told = await call("PUT", `${path}/asks/${answered.id}/answer`, body(outcome));
    counted(outcome === "skip" ? 0 : 1);
    offerUndo(answered, told, outcome);
    byId("comment").value = byId("strength").value = "";
    current = null;
    const ask = await nextPair();
    showPair(ask);
    announce(`${word("saved", { what: SAID[outcome] })} ${word(ask.candidates ? "new_candidates" : "new_pair")} ${read(ask)}`);
  } catch (error) {
    if (error.status === 409 && current && error.title !== CLOSED) {
      current = null;
      error.message = word("answered");
    }
    failed(error);
  } finally {
    setBusy(false);
  }
}

function offerUndo(ask, told, outcome) {
  clearInterval(countdown);
  previous = told.undo_until ? { id: ask.id, outcome } : null;
  byId("said").textContent = word("saved", { what: SAID[outcome] });
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
    byId("said").textContent = word("taken_back");
    showPair(ask);
    announce(word("shown_again"));
  } catch (error) {
    failed(error);
  } finally {
    setBusy(false);
  }
}

function counted(more) {
  count += more;
  byId("count").textContent = word("vote_count", { n: count });
}

function failed(error) {
  if (error.status === 0) error.message = word("unreachable");
  if (error.status === 401) error.message = word(viaLink ? "no_link" : "need_link");
  if (error.status === 404 && !current) error.message = word("no_arena");
  const ended = error.title === ENOUGH || error.title === CLOSED;
  if (ended) end(word(error.title === CLOSED ? "closed" : "enough"), error);
  byId("preparing").hidden = true;
  if (byId("pair").hidden) byId("question").textContent = word("trouble");
  // What trying again cannot mend is not offered.
  byId("retry").hidden = ended || error.status === 401 || error.status === 404;
  complain(byId("problem-text"), error);
  byId("problem").hidden = false;
  for (const { card } of cards) card.classList.remove("chosen");
}

// The voter is through, or the arena is closed: nothing is left to choose between.
function end(text, error) {
  error.message = text;
  current = null;
  sessionStorage.removeItem(remembered);
  for (const id of ["pair", "ballot", "how", "more", "prompt", "shortcuts-switch"]) byId(id).hidden = true;
  announce(text);
}

async function retry() {
  byId("problem").hidden = true;
  setBusy(true);
  try {
    if (byId("pair").hidden) await introduce();
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

// The arena's name and question, and who is here.
async function introduce() {
  const [info, session] = await Promise.all([call("GET", path), call("GET", "/session")]);
  document.title = `${info.name} · duelist`;
  byId("question").textContent = info.question;
  byId("name").textContent = info.name;
  undoSeconds = info.undo_seconds;
  for (const place of document.querySelectorAll("[data-admin]")) place.hidden = session.role !== "admin";
}

async function start() {
  translate(document);
  byId("shortcuts").checked = localStorage.getItem("duelist shortcuts") !== "off";
  byId("dashboard-link").setAttribute("href", `/arena/${encodeURIComponent(arena)}/dashboard`);
  try {
    await introduce();
    showPair(await firstPair());
  } catch (error) {
    failed(error);
  }
}

function listen(buttons) {
  for (const button of buttons) button.addEventListener("click", () => vote(button.dataset.outcome));
}

listen(document.querySelectorAll("[data-outcome]"));
byId("undo").addEventListener("click", undo);
byId("retry").addEventListener("click", retry);
byId("why").addEventListener("toggle", explain);
byId("shortcuts").addEventListener("change", (event) => {
  localStorage.setItem("duelist shortcuts", event.target.checked ? "on" : "off");
});
document.addEventListener("keydown", (event) => {
  if (!byId("shortcuts").checked) return;
  if (event.altKey || event.ctrlKey || event.metaKey || event.repeat) return;
  if (event.target.closest("input:not([type=checkbox]), textarea, select, pre")) return;
  const key = event.key.length === 1 ? event.key.toLowerCase() : event.key;
  if (key === "u") undo();
  else if (KEYS[key]) {
    event.preventDefault();
    vote(KEYS[key]);
  }
});
start();
