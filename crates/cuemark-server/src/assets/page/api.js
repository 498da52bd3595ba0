// Asking the server, its refusals, its token, and its absence.

export const root = "/api/v1";
export const path = (video) => `${root}/videos/${encodeURIComponent(video)}`;

/** What went wrong, as the server says it; status 0 when no server answered. */
export class Problem extends Error {
  constructor(message, { status = 0, kind = "", hint = "" } = {}) {
    super(message);
    Object.assign(this, { name: "Problem", status, kind, hint });
  }

  get isLost() {
    return this.status === 0;
  }

  get text() {
    return this.hint ? `${this.message}: ${this.hint}` : this.message;
  }
}

/** The JSON at `url`. */
export async function ask(url, { signal, method = "GET", body } = {}) {
  const headers = { Accept: "application/json" };
  if (body !== undefined) headers["Content-Type"] = "application/json";
  let response;
  try {
    response = await fetch(url, { signal, method, headers, body: body === undefined ? undefined : JSON.stringify(body) });
  } catch (error) {
    if (error.name === "AbortError") throw error;
    throw new Problem("The server does not answer", { hint: "is it still running?" });
  }
  if (response.status === 401 && (await askForToken())) return ask(url, { signal, method, body });
  const said = await response.json().catch(() => ({}));
  if (response.ok) return said;
  throw new Problem(said.detail || `The server answered ${response.status}`, {
    status: response.status, kind: said.type, hint: said.hint,
  });
}

let asking = null; // one dialog, however many requests were refused

function askForToken() {
  asking ||= new Promise((done) => {
    const dialog = document.getElementById("token");
    const text = document.getElementById("token-text");
    text.value = "";
    dialog.returnValue = "";
    dialog.addEventListener("close", () => {
      asking = null;
      const token = dialog.returnValue && text.value;
      // A film cannot be asked for with a header, so the token is kept in a cookie that no other site may use.
      if (token) document.cookie = `cuemark_token=${token}; SameSite=Strict; Path=/`;
      done(Boolean(token));
    }, { once: true });
    dialog.showModal();
  });
  return asking;
}
