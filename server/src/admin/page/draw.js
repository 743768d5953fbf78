// Makes elements of what /api tells: always as text, never as HTML.
const at = (id) => document.getElementById(id);

const make = (name, attributes, ...children) => {
  const element = document.createElement(name);
  for (const [key, value] of Object.entries(attributes ?? {})) element.setAttribute(key, value);
  element.append(...children.map((child) => (child instanceof Node ? child : String(child))));
  return element;
};

const drawn = (name, attributes, ...children) => {
  const element = document.createElementNS("http://www.w3.org/2000/svg", name);
  for (const [key, value] of Object.entries(attributes)) element.setAttribute(key, value);
  element.append(...children);
  return element;
};

// Whatever has not changed stays as it is: a screen reader would read it again.
const say = (id, text) => {
  const element = at(id);
  if (element.textContent !== text) element.textContent = text;
};

const unknown = "–";
const number = (value) => (value == null ? unknown : value.toLocaleString("en", { maximumFractionDigits: value < 10 ? 2 : value < 100 ? 1 : 0 }));
const bytes = (value) => {
  if (value == null) return unknown;
  const units = ["B", "KiB", "MiB", "GiB", "TiB"];
  const power = value < 1024 ? 0 : Math.min(4, Math.floor(Math.log2(value) / 10));
  return `${number(value / 1024 ** power)} ${units[power]}`;
};
const moment = (seconds) => new Date(seconds * 1000).toISOString().replace("T", " ").slice(0, 19) + " UTC";

// One look for each name, wherever it is drawn.
const looks = {
  memory: "one", kept: "six", lookups: "two", narrowed: "seven", procedure: "three", learned: "three", interrupted: "four", relayed: "five",
  index: "one", "kept rows": "six", process: "five",
};
const key = (name) => drawn("svg", { class: "key", viewBox: "0 0 22 8", "aria-hidden": "true" }, drawn("polyline", { class: looks[name] ?? "five", points: "0,4 22,4" }));

// Lines of fifteen minutes, the newest at the right; a gap where nothing is known. `series`: name and a function of a sample.
const chart = (id, history, series, unit) => {
  const { samples, each_seconds: each } = history;
  const width = 180;
  const values = series.map(([, of]) => samples.map((sample) => of(sample) ?? null));
  const most = Math.max(0, ...values.flat());
  const lines = values.map((line, place) => {
    const runs = [[]];
    line.forEach((value, index) => {
      if (value == null) return runs.push([]);
      const x = width - samples.length + index + 1;
      const y = 99 - (most > 0 ? (value / most) * 96 : 0);
      runs.at(-1).push(`${x - 1},${y.toFixed(1)} ${x},${y.toFixed(1)}`);
    });
    return runs.filter((run) => run.length).map((run) => drawn("polyline", { class: looks[series[place][0]] ?? "five", points: run.join(" ") }));
  });
  const told = series.map(([name], place) => `${name} ${unit(values[place].at(-1))}`).join(", ");
  at(id).replaceChildren(
    drawn("svg", { viewBox: `0 0 ${width} 100`, preserveAspectRatio: "none", role: "img", "aria-label": `Now: ${told}. Most: ${unit(most)}` }, ...lines.flat()),
    make("figcaption", {}, make("span", {}, `${Math.round((width * each) / 60)} minutes ago`), make("span", {}, `at most ${unit(most)}`), make("span", {}, "now")),
  );
};

// A table of rows; those cells that are numbers stand to the right.
const table = (caption, heads, rows) => {
  const isNumber = (value) => typeof value === "number" || value === unknown || /^[\d.,]+( [KMGT]?i?B)?$/.test(value);
  const numbers = heads.map((_, place) => rows.length > 0 && rows.every((row) => isNumber(row[place])));
  const cell = (kind, value, place, extra) => make(kind, { ...(numbers[place] ? { class: "number" } : {}), ...extra }, value ?? unknown);
  return [
    ...(caption ? [make("caption", {}, caption)] : []),
    make("thead", {}, make("tr", {}, ...heads.map((head, place) => cell("th", head, place, { scope: "col" })))),
    make("tbody", {}, ...rows.map((row) => make("tr", {}, ...row.map((value, place) => cell("td", value, place))))),
  ];
};
