// What an administrator does on the dashboard beside the leaderboard: the goal, links, voters, prompts, the end of an arena, the log.
// It refreshes when the dashboard has seen a change, and hands errors to it.

import { arenaInAddress, connect } from "./api.js";
import { announce, byId, el } from "./dom.js";
import { partsOfFile } from "./upload.js";

const arena = arenaInAddress();
const call = connect();
const path = `/arenas/${encodeURIComponent(arena)}`;
let closed = false;
let older = null;

const cells = (...contents) => el("tr", {}, ...contents.map((content) => el("td", {}, content ?? "–")));
const button = (text, label, click) => el("button", { type: "button", "aria-label": label, on: { click: attempt(click) } }, text);

// A handler whose error the dashboard shows, and after which everything is read anew.
function attempt(action) {
  return async (event) => {
    event?.preventDefault?.();
    try {
      await action(event);
      document.dispatchEvent(new CustomEvent("action-done"));
      await refresh();
    } catch (error) {
      document.dispatchEvent(new CustomEvent("action-failed", { detail: error }));
    }
  };
}

async function showGoal(info) {
  closed = info.closed;
  byId("close-arena").textContent = closed ? "Open the arena again" : "Close the arena";
  const verdict = info.goal ? await call("GET", `${path}/verdict`) : null;
  const text = verdict ? verdict.sentence : "No goal is set.";
  if (byId("verdict").textContent !== text) byId("verdict").textContent = text;
  const { items } = await call("GET", `${path}/items`);
  for (const id of ["challenger", "champion"]) {
    const chosen = byId(id).value;
    const options = items.filter((item) => item.active).map((item) => el("option", { value: item.id }, item.name));
    byId(id).replaceChildren(...options);
    if (chosen) byId(id).value = chosen;
  }
}

async function showPeople() {
  const { voters } = await call("GET", `${path}/voters`);
  byId("voters").replaceChildren(...voters.slice(0, 200).map(({ voter, answers, removed }) => cells(
    voter,
    removed ? `${answers} (${removed} removed)` : String(answers),
    el("span", { class: "row" }, button("Remove votes", `Remove the votes of ${voter}`, () => remove(voter)), button("Erase name", `Erase the name of ${voter}`, () => erase(voter))),
  )));
  const session = await call("GET", "/session");
  if (session.arena !== null) return; // an administrator of one arena may not see keys
  const { keys } = await call("GET", "/keys");
  byId("links").replaceChildren(...keys.filter((key) => key.arena === arena).map((key) => cells(
    `${key.label} (${key.role})`, key.voter, key.answers === null ? null : String(key.answers), key.quota === null ? null : String(key.quota),
    button("Revoke", `Revoke ${key.label}`, () => call("DELETE", `/keys/${key.id}`)),
  )));
}

async function showAudit(before = null) {
  const page = await call("GET", `${path}/audit?limit=50${before ? `&before=${before}` : ""}`);
  const rows = page.entries.map((one) => cells(new Date(one.at).toLocaleString(), one.kind, one.about, one.label ?? one.by));
  if (before) byId("audit").append(...rows);
  else byId("audit").replaceChildren(...rows);
  older = page.next;
  byId("older").hidden = older === null;
}

async function refresh() {
  const info = await call("GET", path);
  await Promise.all([showGoal(info), showPeople(), byId("audit-details").open ? showAudit() : null]);
}

async function remove(voter) {
  if (!confirm(`Let no vote of ${voter} count any longer?`)) return;
  await call("DELETE", `${path}/voters/${encodeURIComponent(voter)}/answers`);
  announce(`The votes of ${voter} are removed.`);
}

async function erase(voter) {
  if (!confirm(`Forget the name ${voter}? The votes stay.`)) return;
  await call("DELETE", `${path}/voters/${encodeURIComponent(voter)}`);
  announce("The name is erased.");
}

async function invite() {
  const voter = byId("link-voter").value.trim();
  const name = voter.normalize("NFKD").replace(/[^A-Za-z0-9._-]+/g, "-").replace(/^-+|-+$/g, "").slice(0, 64);
  const body = { role: "vote", label: voter || `voting link for ${arena}`, arena };
  if (voter) body.voter = name || "voter";
  if (byId("link-quota").value) body.quota = Number(byId("link-quota").value);
  const key = await call("POST", "/keys", body);
  const address = `${location.origin}/arena/${encodeURIComponent(arena)}#key=${key.secret}`;
  const place = byId("link");
  place.hidden = false;
  place.replaceChildren(
    el("p", {}, `${voter ? `With this link ${voter}` : "A person with this link"} may vote in this arena and do nothing else. It is shown once.`),
    el("p", { class: "secret" }, address),
    el("button", { type: "button", on: { click: (event) => copy(event.target, address) } }, "Copy"),
  );
}

async function copy(place, text) {
  const said = await navigator.clipboard.writeText(text).then(() => "Copied", () => "Copying is not allowed here: select the link");
  place.textContent = said;
  announce(`${said}.`);
}

async function setGoal() {
  const kind = byId("goal-kind").value;
  const body = { kind, delta: Number(byId("goal-delta").value) };
  if (kind === "top") body.k = Number(byId("goal-k").value);
  if (kind === "promote") Object.assign(body, { challenger: byId("challenger").value, champion: byId("champion").value });
  await call("PUT", `${path}/goal`, body);
  announce("The goal is set.");
}

async function upload() {
  const file = byId("prompts-file").files[0];
  const batch = `page-${Date.now().toString(36)}`;
  let prompts = 0;
  for (const [number, part] of (await partsOfFile(file)).entries()) {
    ({ prompts } = await call("POST", `${path}/prompts`, { batch: `${batch}.${number}`, ...part }));
  }
  byId("prompts-said").textContent = `The arena has ${prompts} ${prompts === 1 ? "prompt" : "prompts"} now.`;
  byId("prompts-form").reset();
}

byId("invite").addEventListener("click", attempt(invite));
byId("goal-form").addEventListener("submit", attempt(setGoal));
byId("prompts-form").addEventListener("submit", attempt(upload));
byId("close-arena").addEventListener("click", attempt(() => call("PATCH", path, { closed: !closed })));
byId("delete-arena").addEventListener("click", async () => {
  if (!confirm("Delete this arena? Its links stop working, and its id cannot be used again.")) return;
  try {
    await call("DELETE", path);
    location.assign("/");
  } catch (error) {
    document.dispatchEvent(new CustomEvent("action-failed", { detail: error }));
  }
});
byId("goal-kind").addEventListener("change", () => {
  byId("goal-k-field").hidden = byId("goal-kind").value !== "top";
  for (const field of document.querySelectorAll("[data-promote]")) field.hidden = byId("goal-kind").value !== "promote";
});
byId("audit-details").addEventListener("toggle", () => { if (byId("audit-details").open) attempt(() => showAudit())(); });
byId("older").addEventListener("click", () => showAudit(older));
document.addEventListener("arena-changed", () => {
  refresh().catch((error) => document.dispatchEvent(new CustomEvent("action-failed", { detail: error })));
});
