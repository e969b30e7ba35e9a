// Which voters can be trusted: estimated when somebody asks, for it reads every vote.

import { intervalBar, scaleOf } from "./charts.js";
import { byId, el } from "./dom.js";

const MOST = 50;
const cell = (attributes, content) => el("td", { role: "cell", ...attributes }, content);

function row(found, scale) {
  return el(
    "tr",
    { role: "row" },
    cell({ class: "name", dir: "auto" }, found.voter),
    cell({ class: "bar" }, intervalBar({ ...found, utility: found.slope }, scale)),
    cell({ class: "number", "data-label": "Votes" }, String(found.votes)),
  );
}

function sentence(found) {
  if (!found.answers) return "No votes yet.";
  const { left } = found;
  const side = left === null ? "" : ` Standing on the left adds ${left.mean.toFixed(2)} (${left.low.toFixed(2)} to ${left.high.toFixed(2)}) in log-odds.`;
  const shown = found.rows.length > MOST ? ` The ${MOST} least reliable of ${found.rows.length} voters.` : "";
  return `From ${found.answers} answers.${side}${shown}`;
}

export function offerVoters(call, path, failed) {
  byId("estimate").addEventListener("click", async () => {
    try {
      const found = await call("GET", `${path}/reliability`);
      const scale = scaleOf([...found.rows, { low: 0, high: 1 }]);
      byId("trust").replaceChildren(...found.rows.slice(0, MOST).map((one) => row(one, scale)));
      byId("trust-found").hidden = !found.rows.length;
      byId("trust-said").textContent = sentence(found);
    } catch (error) {
      failed(error);
    }
  });
}
