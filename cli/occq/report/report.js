"use strict";
// Sorts and filters the table of kernels, and opens what is folded before printing. Every number and sentence is in the page already.
(function () {
  const table = document.getElementById("top");
  const body = table.tBodies[0];
  const data = JSON.parse(document.getElementById("occtrace-data").textContent).top;
  // A row and its kernel's section; as printed, rows are in the order of the data.
  const rows = Array.from(body.rows, (row, i) => {
    const link = row.querySelector("a");
    return { row, at: i, values: data[i], section: link && document.getElementById(link.hash.slice(1)) };
  });

  function make(tag, text, attributes) {
    const element = document.createElement(tag);
    element.textContent = text;
    for (const name in attributes) element.setAttribute(name, attributes[name]);
    return element;
  }

  // ---- order ----

  // Shares are not among the data: their order is that of what they are shares of.
  const whole = { time_ratio: "total_duration_ns", waste_ratio: "waste_warp_seconds" };
  const keyOf = (heading) => whole[heading.dataset.key] || heading.dataset.key;

  // What is not known is last either way.
  function compare(key, sign) {
    return (a, b) => {
      const x = a.values[key], y = b.values[key];
      if (x === null || y === null) return (x === null) - (y === null) || a.at - b.at;
      return (typeof x === "string" ? x.localeCompare(y) : x - y) * sign || a.at - b.at;
    };
  }

  function sortBy(heading) {
    const key = keyOf(heading);
    const first = typeof data.map((line) => line[key]).find((value) => value !== null) === "string" ? "ascending" : "descending";
    const other = first === "ascending" ? "descending" : "ascending";
    const order = heading.getAttribute("aria-sort") === first ? other : first;
    for (const cell of table.tHead.rows[0].cells) cell.removeAttribute("aria-sort");
    heading.setAttribute("aria-sort", order);
    rows.sort(compare(key, order === "ascending" ? 1 : -1));
    body.append(...rows.map((entry) => entry.row));
  }

  for (const heading of table.tHead.rows[0].cells) {
    if (data.length === 0 || !(keyOf(heading) in data[0])) continue;
    const button = make("button", heading.textContent, { type: "button" });
    button.addEventListener("click", () => sortBy(heading));
    heading.replaceChildren(button);
    if (heading.dataset.key === "waste_warp_seconds") heading.setAttribute("aria-sort", "descending");
  }

  // ---- filter ----

  const label = make("label", "Filter by name or cause: ", { for: "filter" });
  const input = make("input", "", { id: "filter", type: "search", autocomplete: "off", spellcheck: "false" });
  const shown = make("output", "", { for: "filter", role: "status" });
  document.getElementById("controls").append(label, input, shown);

  function filter() {
    const wanted = input.value.toLowerCase();
    let n = 0;
    for (const entry of rows) {
      const cause = entry.values.main_cause || "";
      const fits = (entry.values.kernel + "\n" + cause).toLowerCase().includes(wanted);
      entry.row.hidden = !fits;
      if (entry.section) entry.section.hidden = !fits;
      n += fits;
    }
    shown.value = wanted ? n + " of " + rows.length : "";
  }

  input.addEventListener("input", filter);
  // A link leads to its section, also to one that the filter hides.
  window.addEventListener("hashchange", () => {
    const target = document.getElementById(location.hash.slice(1));
    if (target && target.hidden) {
      input.value = "";
      filter();
      target.scrollIntoView();
    }
  });

  // ---- print ----

  window.addEventListener("beforeprint", () => document.querySelectorAll("details").forEach((details) => (details.open = true)));
})();
