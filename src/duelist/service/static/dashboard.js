// Where people watch: who leads, how certain that is, and how the votes come in. Asks again every two seconds while visible.

import { arenaInAddress, connect } from "./api.js";
import { explorationChart, intervalBar, scaleOf, votesChart } from "./charts.js";
import { announce, byId, certainty, complain, el, percent } from "./dom.js";
import { offerVoters } from "./voters.js";

const arena = arenaInAddress();
const call = connect();
const path = `/arenas/${encodeURIComponent(arena)}`;
const EVERY = 2000;
let shown = -1;
let leader = null;
let format = "text";

const cell = (attributes, content) => el("td", { role: "cell", ...attributes }, content);

function boardRow(row, scale) {
  const active = row.active;
  const change = el(
    "button",
    { type: "button", "aria-label": `${active ? "Retire" : "Bring back"} ${row.name}`, on: { click: () => setActive(row, !active) } },
    active ? "Retire" : "Bring back",
  );
  return el(
    "tr",
    { class: active ? false : "out", role: "row" },
    cell({}, active ? String(row.rank) : "–"),
    cell({ class: "name", dir: "auto" }, row.name),
    cell({ class: "bar" }, intervalBar(row, scale)),
    cell({ class: "number", "data-label": "Best with probability" }, active ? certainty(row.probability_best) : "retired"),
    cell({ class: "number", "data-label": "Win rate" }, percent(row.win_rate)),
    cell({ class: "number", "data-label": "Won – lost – tied" }, `${row.wins} – ${row.losses} – ${row.ties}`),
    cell({ class: "number act" }, change),
  );
}

function showBoard(board) {
  const scale = scaleOf(board.rows);
  const had = document.activeElement?.getAttribute("aria-label");
  byId("board").replaceChildren(...board.rows.map((row) => boardRow(row, scale)));
  // The rows are new; the focus stays on the same button.
  if (had) [...byId("board").querySelectorAll("button")].find((button) => button.getAttribute("aria-label") === had)?.focus();
  byId("votes").textContent = String(board.votes);
  const first = board.rows[0];
  byId("leader").textContent = board.answers_learnt ? first.name : "No votes yet";
  byId("sure").textContent = board.answers_learnt ? `Best of all with a probability of ${certainty(first.probability_best)}` : "Everything is open.";
  byId("meter").value = board.answers_learnt ? first.probability_best : 0;
  if (leader !== null && leader !== first.item) announce(`${first.name} now leads.`);
  leader = board.answers_learnt ? first.item : null;
}

function showTimeline(timeline) {
  byId("explored").textContent = timeline.buckets.length && timeline.explored !== null ? percent(timeline.explored) : "–";
  const wide = Math.max(byId("votes-chart").clientWidth, 240);
  byId("votes-chart").replaceChildren(votesChart(timeline, wide));
  byId("explored-chart").replaceChildren(explorationChart(timeline, wide));
}

async function refresh() {
  const timeline = await call("GET", `${path}/timeline`);
  if (timeline.revision === shown) return;
  const board = await call("GET", `${path}/leaderboard`);
  showTimeline(timeline);
  showBoard(board);
  shown = timeline.revision;
  document.dispatchEvent(new CustomEvent("arena-changed"));
}

async function setActive(row, active) {
  try {
    await call("PATCH", `${path}/items/${encodeURIComponent(row.item)}`, { active });
    byId("problem").hidden = true;
    await refresh();
    announce(active ? `${row.name} takes part again.` : `${row.name} is retired.`);
  } catch (error) {
    failed(error);
  }
}

// An error of something that was done stays until the next thing is done; one of the clockwork goes when the next look works.
let fromLoop = false;

function failed(error, byLoop = false) {
  if (byLoop && !fromLoop && !byId("problem").hidden) return;
  fromLoop = byLoop;
  if (error.status === 401) error.message = "Sign in first: open the link that the service printed, or paste a key on the start page.";
  complain(byId("problem"), error);
}

document.addEventListener("action-failed", (event) => failed(event.detail));
document.addEventListener("action-done", () => { byId("problem").hidden = true; });

byId("add-form").addEventListener("submit", async (event) => {
  event.preventDefault();
  const content = byId("add").value.trim();
  if (!content) return;
  const name = content.split("\n")[0].replace(/^[#>*\s-]+/, "").trim().slice(0, 80) || "item";
  try {
    await call("POST", `${path}/items`, { items: [{ name, content, format }] });
    byId("add").value = "";
    byId("problem").hidden = true;
    await refresh();
    announce(`${name} was added.`);
  } catch (error) {
    failed(error);
  }
});

offerVoters(call, path, failed);

async function loop() {
  if (!document.hidden) {
    try {
      await refresh();
      if (fromLoop) byId("problem").hidden = true;
    } catch (error) {
      failed(error, true);
    }
  }
  setTimeout(loop, EVERY);
}

async function start() {
  byId("vote-link").setAttribute("href", `/arena/${encodeURIComponent(arena)}`);
  byId("csv").setAttribute("href", `/api/v1${path}/votes?format=csv`);
  byId("parquet").setAttribute("href", `/api/v1${path}/votes?format=parquet`);
  try {
    const info = await call("GET", path);
    document.title = `${info.name} · duelist`;
    byId("name").textContent = info.name;
    byId("question").textContent = info.question;
    if (info.ties === "ignored") byId("ties").textContent = "Ties and “both bad” are counted and teach nothing.";
    const { items } = await call("GET", `${path}/items`);
    format = items[0]?.format ?? "text";
    byId("content").hidden = false;
    await refresh();
    setTimeout(loop, EVERY);
  } catch (error) {
    byId("name").textContent = "Dashboard";
    failed(error);
  }
}

start();
