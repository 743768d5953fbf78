// The parts of the page, each of one path of /api.
const lights = {
  memory: "Answering from memory",
  lookups: "Answering by lookups, not from memory",
  relaying: "Relaying everything to the server",
  away: "The server does not answer",
};

const parts = {
  "/api/health": (health) => {
    at("lamp").dataset.state = health.state;
    say("light", lights[health.state] ?? health.state);
    say("text", health.reason ? `${health.reason}: ${health.text}` : health.text);
    at("curing").hidden = health.cure === null;
    say("cure", health.cure ?? "");
    say("whose", `${health.version} before ${health.upstream}, for ${lasted(health.seconds)}`);
    document.title = `${health.state}: Headwater`;
  },

  // Of one server the lamp tells.
  "/api/upstreams": (told) => {
    at("of-upstreams").hidden = told.length < 2;
    rows("/api/upstreams", told);
  },

  "/api/history": (history) => {
    const last = history.samples.at(-1);
    const group = (id, of) => {
      const names = last ? Object.keys(last[of]) : [];
      names.sort((one, other) => order.indexOf(one) - order.indexOf(other));
      chart(`${id}-drawn`, history, names.map((name) => [name, (sample) => sample[of][name]]), number);
      const rows = names.map((name) => [
        make("span", {}, key(name), name),
        number(last[of][name]),
        number(last.p50_ms[name]),
        number(last.p99_ms[name]),
      ]);
      at(id).replaceChildren(...table("", ["answer", "a second", "p50 ms", "p99 ms"], rows));
    };
    group("calls", "calls");
    group("statements", "statements");
    const timed = ["memory", "lookups", "kept", "narrowed", "procedure"];
    chart("p99-drawn", history, timed.map((name) => [name, (sample) => sample.p99_ms[name]]), number);
    at("p99-drawn").append(make("p", {}, ...timed.map((name) => make("span", { class: "named" }, key(name), name))));
    const sizes = [
      ["index", "index_bytes"],
      ["kept rows", "rows_bytes"],
      ["process", "process_bytes"],
    ];
    chart("memory-drawn", history, sizes.map(([name, of]) => [name, (sample) => sample[of]]), bytes);
    const entries = sizes.map(([name, of]) => [make("dt", {}, key(name), name), make("dd", {}, bytes(last?.[of]))]);
    entries.push(
      [make("dt", {}, "log not applied yet"), make("dd", { id: "lag" }, bytes(last?.lag_bytes))],
      [make("dt", {}, "changes wait, s"), make("dd", {}, number(last?.lag_seconds))],
    );
    at("memory").replaceChildren(...entries.flat());
  },

  "/api/hottest": (hottest) => {
    say("hottest-of", hottest.of ? `Of ${number(hottest.of)} calls that were looked at, one of 16.` : "No call was answered yet.");
    const rows = (hot) => hot.map((it) => [it.definition, String(it.id), number(it.calls)]);
    at("readers").replaceChildren(...table("Readers", ["definition", "reader", "calls"], rows(hottest.readers)));
    at("authors").replaceChildren(...table("Authors they follow", ["definition", "author", "calls"], rows(hottest.authors)));
  },

  "/api/shadow": (shadow) => {
    const counts = `same ${number(shadow.same)}, different ${number(shadow.different)}, unsure ${number(shadow.unsure)}`;
    say("shadow", shadow.compares ? counts : "Nothing is compared: set shadow.rate.");
    const last = shadow.last;
    if (!last) return at("difference").replaceChildren();
    const about = `${last.definition} in ${last.database}, ${moment(last.at)}: ${last.call}`;
    at("difference").replaceChildren(make("p", { class: "unequal" }, about), beside(last.headwater.ids, last.procedure.ids, ["Headwater", "procedure"]));
  },
};

const order = ["memory", "kept", "lookups", "narrowed", "procedure", "learned", "interrupted", "relayed"];

const lasted = (seconds) => {
  const [days, hours, minutes] = [Math.floor(seconds / 86400), Math.floor(seconds / 3600) % 24, Math.floor(seconds / 60) % 60];
  if (days) return `${days} d ${hours} h`;
  return hours ? `${hours} h ${minutes} min` : minutes ? `${minutes} min` : `${seconds} s`;
};

// Two pages side by side; an id that only one of them has is marked.
const beside = (own, real, names) => {
  const list = (ids, others, name) =>
    make("div", { class: "ids", tabindex: "0", role: "region", "aria-label": name }, make("p", { class: "quiet" }, name), ...(ids ?? []).flatMap((id) => [others && !others.includes(id) ? make("strong", { class: "unequal" }, id) : id, " "]));
  return make("div", { class: "pair" }, list(own, real, names[0]), list(real, own, names[1]));
};

const showTried = (tried) => {
  if (tried.error) return at("tried").replaceChildren(make("p", { class: "unequal" }, tried.error));
  const { memory, server, equal } = tried;
  const verdict = equal === null ? "not compared" : equal ? "equal to the server's" : "not equal to the server's";
  const own = memory ? `${memory.from}, ${number(memory.took_ms)} ms` : "memory has not got it";
  at("tried").replaceChildren(
    make("p", { class: equal ? "equal" : "unequal" }, `${tried.call}: ${verdict}`),
    ...(tried.why ? [make("p", {}, tried.why)] : []),
    beside(memory?.ids, server?.ids, [own, server ? `${server.from}, ${number(server.took_ms)} ms` : "the server did not answer"]),
  );
};

// Any other path of /api that tells rows.
const rows = (path, told) => {
  const name = path.slice("/api/".length);
  let section = at(`of-${name}`);
  if (!section) {
    section = make("section", { id: `of-${name}`, "aria-label": name });
    at("tables").append(section);
  }
  const heads = Object.keys(told[0] ?? {});
  const cell = (head, value) => (typeof value === "number" && head !== "id" ? number(value) : value);
  const all = told.map((row) => heads.map((head) => cell(head, row[head])));
  const scrolls = make("div", { class: "scrolls", tabindex: "0", role: "region", "aria-label": name }, make("table", {}, ...table("", heads.map((head) => head.replaceAll("_", " ")), all)));
  // The place to which somebody has scrolled stays.
  const old = section.querySelector(".scrolls");
  const [left, focused] = [old?.scrollLeft ?? 0, old === document.activeElement];
  const cut = long.has(path) && told.length === most ? [make("p", { class: "quiet" }, `the first ${most}`)] : [];
  section.replaceChildren(make("h2", {}, name), told.length ? scrolls : make("p", { class: "quiet" }, "none"), ...cut);
  scrolls.scrollLeft = left;
  if (focused) scrolls.focus();
};
