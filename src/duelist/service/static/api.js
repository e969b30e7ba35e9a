// Talking to the service: with the key from a voting link where there is one, else with the page's cookie.

export class ApiError extends Error {
  constructor(status, message, title = "") {
    super(message);
    this.status = status;
    this.title = title;
  }
}

// A voting link carries its key behind the #, which browsers never send. It stays in the address, so that the address can be
// copied and bookmarked, and in the browser, so that it works in other tabs.
export function keyFromLink(arena) {
  const place = `duelist key ${arena}`;
  const found = new URLSearchParams(location.hash.slice(1)).get("key");
  if (found) localStorage.setItem(place, found);
  return found || localStorage.getItem(place);
}

export function connect(key = null) {
  return async function call(method, path, body) {
    const headers = { "X-Duelist-Page": "1" };
    if (key) headers.Authorization = `Bearer ${key}`;
    if (body !== undefined) headers["Content-Type"] = "application/json";
    let response;
    try {
      response = await fetch(`/api/v1${path}`, {
        method,
        headers,
        credentials: key ? "omit" : "same-origin",
        body: body === undefined ? undefined : JSON.stringify(body),
      });
    } catch {
      throw new ApiError(0, "The service cannot be reached. Check that it is running, then try again.");
    }
    if (response.status === 204) return null;
    const answer = await response.json().catch(() => ({}));
    if (!response.ok) throw new ApiError(response.status, answer.detail || answer.title || `Error ${response.status}`, answer.title);
    return answer;
  };
}

export const arenaInAddress = () => decodeURIComponent(location.pathname.split("/")[2] || "");

// A name for this browser, so that its own last vote, and no other, can be undone, and that it gets no pair twice.
export function voterName() {
  let name = localStorage.getItem("duelist voter");
  if (!name) {
    name = [...crypto.getRandomValues(new Uint8Array(12))].map((byte) => byte.toString(16).padStart(2, "0")).join("");
    localStorage.setItem("duelist voter", name);
  }
  return name;
}
