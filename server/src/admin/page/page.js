// Asks /api every two seconds, and less and less often while it does not answer.
const every = 2000;
const slowest = 30000;
const stored = "headwater.admin.token";

class Refused extends Error {}

const ask = async (path) => {
  const token = sessionStorage.getItem(stored);
  const headers = token ? { Authorization: `Bearer ${token}` } : {};
  const answer = await fetch(path, { headers, cache: "no-store", signal: AbortSignal.timeout(15000) });
  if (answer.status === 401) throw new Refused();
  return answer.json();
};

// Metrics are for programs; of long tables the first rows are shown.
const skipped = new Set(["/api", "/api/try", "/api/status", "/api/reload"]);
const most = 50;
const long = new Set(["/api/statements", "/api/sessions"]);
let wait = every;
let heard = null;

const round = async () => {
  const paths = (await ask("/api")).filter((path) => path.startsWith("/api/") && !skipped.has(path));
  const told = await Promise.all(paths.map((path) => ask(long.has(path) ? `${path}?most=${most}` : path)));
  paths.forEach((path, place) => (parts[path] ?? ((it) => rows(path, it)))(told[place]));
};

const poll = async () => {
  try {
    await round();
    wait = every;
    heard = Date.now();
    at("all").hidden = false;
    at("lost").hidden = true;
    document.body.dataset.heard = String(heard);
  } catch (error) {
    if (error instanceof Refused) return wantToken("That is not the token.");
    wait = Math.min(wait * 2, slowest);
    lose();
  }
  setTimeout(poll, wait);
};

const lose = () => {
  at("all").hidden = false;
  at("lamp").dataset.state = "lost";
  say("light", "Headwater does not answer this page");
  say("text", "What stands below is old. Look whether the process runs: systemctl status headwater");
  at("curing").hidden = true;
  at("lost").hidden = false;
  const since = heard === null ? "Never heard of it" : `Last heard of it at ${moment(heard / 1000)}`;
  say("lost", `${since}; it is asked again in ${wait / 1000} s.`);
  document.title = "lost: Headwater";
};

const wantToken = (why) => {
  sessionStorage.removeItem(stored);
  at("all").hidden = true;
  at("key").hidden = false;
  say("refused", why);
  at("token").focus();
};

at("key").addEventListener("submit", (event) => {
  event.preventDefault();
  sessionStorage.setItem(stored, at("token").value.trim());
  at("token").value = "";
  at("key").hidden = true;
  poll();
});

at("try").addEventListener("submit", async (event) => {
  event.preventDefault();
  at("tried").replaceChildren(make("p", { class: "quiet" }, "Asking both …"));
  try {
    showTried(await ask(`/api/try?${new URLSearchParams(new FormData(event.target))}`));
  } catch {
    showTried({ error: "Headwater did not answer: ask again." });
  }
});

if (document.body.dataset.token === "wanted" && !sessionStorage.getItem(stored)) wantToken("");
else poll();
