// The list of arenas, the form that makes one, and signing in.

import { connect } from "./api.js";
import { byId, complain, el } from "./dom.js";
import { partsOfFile } from "./upload.js";

const call = connect();

// Lines, or blocks between lines of "---" where there is one. What is there twice is one item.
function itemsFrom(text) {
  const normal = text.replace(/\r\n?/g, "\n");
  const parts = /^\s*---+\s*$/m.test(normal) ? normal.split(/^\s*---+\s*$/m) : normal.split("\n");
  const contents = parts.map((part) => part.trim()).filter(Boolean);
  const different = [...new Set(contents)];
  return { contents: different, repeated: contents.length - different.length };
}

const nameOf = (content) => content.split("\n")[0].replace(/^[#>*\s-]+/, "").trim().slice(0, 80) || "item";

function card(arena, admin) {
  const place = `/arena/${encodeURIComponent(arena.id)}`;
  return el(
    "li",
    { class: "panel" },
    el("h3", {}, arena.name),
    el("p", { class: "quiet small" }, `${arena.active_items} items · ${arena.votes} ${arena.votes === 1 ? "vote" : "votes"} · ${arena.policy}`),
    el(
      "div",
      { class: "row" },
      el("a", { class: "button primary", href: place, "aria-label": `Vote in ${arena.name}` }, "Vote"),
      admin ? el("a", { class: "button", href: `${place}/dashboard`, "aria-label": `Dashboard of ${arena.name}` }, "Dashboard") : null,
    ),
  );
}

async function refresh() {
  byId("problem").hidden = true;
  let session;
  try {
    session = await call("GET", "/session");
  } catch (error) {
    if (error.status !== 401) {
      complain(byId("problem"), error);
      return;
    }
    byId("sign-in").hidden = false;
    byId("signed-in").hidden = true;
    byId("sign-out").hidden = true;
    if (new URLSearchParams(location.search).get("link") === "used") {
      complain(byId("problem"), new Error("That link was used before; each works once. Start the service again for a new one, or paste a key."));
    }
    return;
  }
  const admin = session.role === "admin";
  const { arenas } = await call("GET", "/arenas");
  byId("sign-in").hidden = true;
  byId("signed-in").hidden = false;
  byId("sign-out").hidden = false;
  byId("none").hidden = arenas.length > 0;
  byId("create").hidden = !admin || session.arena !== null;
  byId("arenas").replaceChildren(...arenas.map((arena) => card(arena, admin)));
}

byId("sign-in-form").addEventListener("submit", async (event) => {
  event.preventDefault();
  try {
    await call("POST", "/session", { key: byId("key").value.trim() });
    byId("key").value = "";
    history.replaceState(null, "", "/");
    await refresh();
  } catch (error) {
    complain(byId("problem"), error);
  }
});

byId("sign-out").addEventListener("click", async () => {
  await call("DELETE", "/session").catch(() => null);
  await refresh();
});

byId("items").addEventListener("input", () => {
  const { contents, repeated } = itemsFrom(byId("items").value);
  const n = contents.length;
  const twice = repeated ? ` ${repeated === 1 ? "One is" : `${repeated} are`} there more than once and will be taken once.` : "";
  byId("items-count").textContent = n ? `${n} ${n === 1 ? "item" : "items"} so far.${twice}` : "";
});

byId("create-form").addEventListener("submit", async (event) => {
  event.preventDefault();
  const submit = event.target.querySelector("[type=submit]");
  const { contents } = itemsFrom(byId("items").value);
  const file = byId("dataset").files[0];
  if (contents.length < 2 && !file) {
    complain(byId("problem"), new Error("An arena needs at least two different items: a duel needs two candidates."));
    byId("items").focus();
    return;
  }
  submit.disabled = true;
  try {
    const body = { name: byId("name").value.trim(), question: byId("question").value.trim(), features: byId("features").value };
    if (byId("prompt").value.trim()) body.prompt = byId("prompt").value.trim();
    if (contents.length) body.items = contents.map((content) => ({ name: nameOf(content), content, format: byId("format").value }));
    const parts = file ? await partsOfFile(file) : [];
    if (file) body.dataset = parts[0];
    const arena = await call("POST", "/arenas", body);
    for (const [number, part] of parts.slice(1).entries()) {
      await call("POST", `/arenas/${encodeURIComponent(arena.id)}/prompts`, { batch: `first.${number + 1}`, ...part });
    }
    location.assign(`/arena/${encodeURIComponent(arena.id)}`);
  } catch (error) {
    complain(byId("problem"), error);
    submit.disabled = false;
  }
});

refresh().catch((error) => complain(byId("problem"), error));
