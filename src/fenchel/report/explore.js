"use strict";
// Everything here works on what the page holds: nothing is fetched. Names are set as text, never as HTML.
(() => {
  const colours = ["#0072B2", "#D55E00", "#009E73", "#CC79A7", "#E69F00", "#56B4E9", "#8C6BB1", "#7F7F7F"];
  const WIDE = 460, HIGH = 300, LEFT = 56, RIGHT = 110, TOP = 10, BOTTOM = 34;

  function make(parent, tag, attributes, text) {
    const spaces = "http://www.w3.org/2000/svg";
    const inSvg = tag === "svg" || parent.namespaceURI === spaces;
    const one = inSvg ? document.createElementNS(spaces, tag) : document.createElement(tag);
    for (const [name, value] of Object.entries(attributes || {})) one.setAttribute(name, value);
    if (text !== undefined) one.textContent = text;
    parent.appendChild(one);
    return one;
  }

  const short = value => {
    if (value === null || value === undefined) return "–";
    const size = Math.abs(value);
    return size !== 0 && (size < 1e-3 || size >= 1e5) ? value.toExponential(2) : String(+value.toPrecision(4));
  };

  // -- tables that sort ---------------------------------------------------------------------------

  function sortable(table) {
    const head = table.querySelector("tr");
    if (!head || head.querySelector("td") || table.classList.contains("set")) return;
    [...head.children].forEach((cell, column) => {
      if (!cell.textContent) return;
      cell.classList.add("sort");
      cell.tabIndex = 0;
      const sort = () => {
        const falling = cell.getAttribute("aria-sort") === "descending";
        [...head.children].forEach(other => other.removeAttribute("aria-sort"));
        cell.setAttribute("aria-sort", falling ? "ascending" : "descending");
        const rows = [...table.querySelectorAll("tr")].slice(1);
        const value = row => row.children[column].textContent;
        const number = row => Number(value(row).replaceAll(",", ""));
        const numeric = rows.every(row => value(row) !== "" && !Number.isNaN(number(row)));
        const order = numeric ? (a, b) => number(a) - number(b) : (a, b) => value(a).localeCompare(value(b));
        rows.sort((a, b) => (falling ? 1 : -1) * order(a, b)).forEach(row => row.parentNode.appendChild(row));
      };
      cell.addEventListener("click", sort);
      cell.addEventListener("keydown", event => { if (event.key === "Enter") sort(); });
    });
  }

  // -- light and dark -----------------------------------------------------------------------------

  function shade() {
    const root = document.documentElement;
    const button = document.createElement("button");
    button.id = "shade";
    button.type = "button";
    const set = dark => {
      root.classList.toggle("dark", dark);
      button.textContent = dark ? "light" : "dark";
    };
    button.addEventListener("click", () => set(!root.classList.contains("dark")));
    set(matchMedia("(prefers-color-scheme: dark)").matches);
    document.body.prepend(button);
  }

  // -- pictures -----------------------------------------------------------------------------------

  function ticks(low, high, count) {
    const rough = (high - low) / count, power = 10 ** Math.floor(Math.log10(rough || 1));
    const step = [1, 2, 5, 10].map(k => k * power).find(k => k >= rough) || power;
    const out = [];
    // multiples of the step: by sums of steps zero would be 5e-17
    for (let k = Math.ceil(low / step); k * step <= high + 1e-9 * step; k++) out.push(+(k * step).toPrecision(12));
    return out;
  }

  function frame(panels, title) {
    const figure = make(panels, "figure");
    make(figure, "h3", {}, title);
    return make(figure, "svg", { viewBox: `0 0 ${WIDE} ${HIGH}`, role: "img", "aria-label": title });
  }

  function axes(svg, x, y, xName, yName) {
    svg.replaceChildren();
    const right = WIDE - RIGHT, bottom = HIGH - BOTTOM;
    const across = v => LEFT + (v - x[0]) / (x[1] - x[0] || 1) * (right - LEFT);
    const up = v => bottom - (v - y[0]) / (y[1] - y[0] || 1) * (bottom - TOP);
    make(svg, "path", { class: "axis", d: `M${LEFT} ${TOP}V${bottom}H${right}` });
    for (const t of ticks(...y, 5)) make(svg, "text", { x: LEFT - 6, y: up(t) + 4, "text-anchor": "end" }, short(t));
    for (const t of ticks(Math.min(...x), Math.max(...x), 5)) make(svg, "text", { x: across(t), y: bottom + 14, "text-anchor": "middle" }, short(t));
    make(svg, "text", { x: (LEFT + right) / 2, y: HIGH - 4, "text-anchor": "middle" }, xName);
    make(svg, "text", { x: 12, y: (TOP + bottom) / 2, "text-anchor": "middle", transform: `rotate(-90 12 ${(TOP + bottom) / 2})` }, yName);
    return { across, up };
  }

  const range = values => {
    let low = Infinity, high = -Infinity;
    for (const v of values) if (v !== null) { low = Math.min(low, v); high = Math.max(high, v); }
    if (!(low <= high)) return [0, 1];
    const room = 0.04 * (high - low) || Math.abs(high) || 1;
    return [low - room, high + room];
  };

  // labels at the ends of lines: moved apart, so that none covers another
  function apart(wanted, least) {
    const order = wanted.map((at, k) => [at, k]).sort((a, b) => a[0] - b[0]);
    for (let k = 1; k < order.length; k++) order[k][0] = Math.max(order[k][0], order[k - 1][0] + least);
    let floor = HIGH - BOTTOM;
    for (let k = order.length - 1; k >= 0; k--) { order[k][0] = Math.min(order[k][0], floor); floor = order[k][0] - least; }
    const out = [];
    order.forEach(([at, k]) => { out[k] = at; });
    return out;
  }

  function lines(svg, data, names, series, yName, go) {
    const x = data.alphas.map(a => Math.log10(a)), shown = series.slice(0, 40);
    const turned = [x[0], x[x.length - 1]];
    const { across, up } = axes(svg, turned, range(shown.flat()), "log10 alpha", yName);
    shown.forEach((values, k) => {
      const d = values.map((v, i) => `${i ? "L" : "M"}${across(x[i]).toFixed(1)} ${up(v || 0).toFixed(1)}`).join("");
      const line = make(svg, "path", { d, fill: "none", stroke: colours[k % colours.length], "stroke-width": k < 8 ? 1.8 : 0.9 });
      make(line, "title", {}, names[k]);
    });
    const named = shown.slice(0, 10), end = values => values[values.length - 1] || 0;
    apart(named.map(values => up(end(values))), 12).forEach((at, k) => {
      const name = names[k].length > 16 ? names[k].slice(0, 15) + "…" : names[k];
      make(svg, "text", { class: "name", x: WIDE - RIGHT + 5, y: at + 4, style: `fill:${colours[k % colours.length]}` }, name);
    });
    return marker(svg, x, across, go);
  }

  // the vertical line at the present alpha; a click goes to the nearest one
  function marker(svg, x, across, go) {
    const line = make(svg, "line", { class: "here", y1: TOP, y2: HIGH - BOTTOM });
    svg.addEventListener("click", event => {
      const box = svg.getBoundingClientRect(), at = (event.clientX - box.left) / box.width * WIDE;
      let best = 0;
      x.forEach((v, i) => { if (Math.abs(across(v) - at) < Math.abs(across(x[best]) - at)) best = i; });
      go(best);
    });
    return i => { line.setAttribute("x1", across(x[i])); line.setAttribute("x2", across(x[i])); };
  }

  function bars(svg, names, values, most) {
    const order = values.map((v, k) => [v || 0, k]).filter(one => one[0] !== 0);
    order.sort((a, b) => Math.abs(b[0]) - Math.abs(a[0]));
    const shown = order.slice(0, most), largest = shown.length ? Math.abs(shown[0][0]) : 1, high = 16;
    svg.replaceChildren();
    svg.setAttribute("viewBox", `0 0 ${WIDE} ${Math.max(shown.length, 1) * high + 22}`);
    if (!shown.length) make(svg, "text", { x: 10, y: 14 }, "all are zero");
    shown.forEach(([value, k], row) => {
      const name = names[k].length > 22 ? names[k].slice(0, 21) + "…" : names[k], y = row * high;
      make(make(svg, "text", { class: "name", x: 150, y: y + 12, "text-anchor": "end" }, name), "title", {}, names[k]);
      const size = Math.abs(value) / largest * (WIDE - 240);
      make(svg, "rect", { x: 156, y: y + 3, width: size, height: high - 6, rx: 2, style: `fill:var(--${value < 0 ? "second" : "first"})` });
      make(svg, "text", { x: 162 + size, y: y + 12 }, short(value));
    });
    if (order.length > most) make(svg, "text", { x: 156, y: shown.length * high + 14 }, `and ${order.length - most} smaller ones`);
  }

  function band(svg, data, go) {
    const x = data.alphas.map(a => Math.log10(a)), { mean, error } = data.cv;
    const low = mean.map((m, i) => m - error[i]), high = mean.map((m, i) => m + error[i]);
    const { across, up } = axes(svg, [x[0], x[x.length - 1]], range([...low, ...high]), "log10 alpha", "held-out score");
    const place = (v, i) => `${across(x[i]).toFixed(1)} ${up(v).toFixed(1)}`;
    make(svg, "path", { d: "M" + [...high.map(place), ...low.map(place).reverse()].join("L") + "Z", style: "fill:var(--band)" });
    make(svg, "path", { d: "M" + mean.map(place).join("L"), fill: "none", style: "stroke:var(--first)", "stroke-width": 1.8 });
    mean.forEach((m, i) => make(make(svg, "circle", { cx: across(x[i]), cy: up(m), r: 2.6, style: "fill:var(--first)" }), "title", {}, `alpha ${short(data.alphas[i])}: ${short(m)} ± ${short(error[i])}`));
    return marker(svg, x, across, go);
  }

  function points(svg, fitted, i) {
    const scores = fitted.scores[i], { target, classes } = fitted, all = range(scores);
    if (!classes) {
      const { across, up } = axes(svg, all, range(target), "fitted", "observed");
      const [low, high] = [Math.max(all[0], range(target)[0]), Math.min(all[1], range(target)[1])];
      if (low < high) make(svg, "line", { class: "here", x1: across(low), x2: across(high), y1: up(low), y2: up(high) });
      scores.forEach((s, k) => make(svg, "circle", { cx: across(s).toFixed(1), cy: up(target[k]).toFixed(1), r: 2.2, style: "fill:var(--first)", "fill-opacity": 0.45 }));
      return;
    }
    const bins = 30, count = [Array(bins).fill(0), Array(bins).fill(0)];
    scores.forEach((s, k) => { count[target[k] > 0 ? 1 : 0][Math.min(bins - 1, Math.floor((s - all[0]) / (all[1] - all[0]) * bins))] += 1; });
    const { across, up } = axes(svg, all, [0, 1.05 * Math.max(...count.flat(), 1)], "score", "rows");
    const width = (across(all[1]) - across(all[0])) / bins;
    count.forEach((own, side) => own.forEach((c, b) => make(svg, "rect", {
      x: (across(all[0]) + b * width).toFixed(1), y: up(c).toFixed(1), width: width.toFixed(1), height: (up(0) - up(c)).toFixed(1),
      style: `fill:var(--${side ? "first" : "second"})`, "fill-opacity": 0.5,
    })));
    classes.forEach((name, side) => make(svg, "text", { class: "name", x: WIDE - RIGHT + 8, y: TOP + 14 + 16 * side, style: `fill:var(--${side ? "first" : "second"})` }, name));
    if (all[0] < 0 && all[1] > 0) make(svg, "line", { class: "here", x1: across(0), x2: across(0), y1: TOP, y2: up(0) });
  }

  // -- the slider ---------------------------------------------------------------------------------

  function explore() {
    const source = document.getElementById("numbers");
    if (!source) return;
    const data = JSON.parse(source.textContent), section = document.getElementById("explore");
    const dial = document.getElementById("alpha"), panels = document.getElementById("panels");
    const several = data.alphas.length > 1, draw = [];
    const go = i => { dial.value = i; show(i); };
    if (several && data.cv) draw.push(band(frame(panels, "Cross-validation"), data, go));
    if (several) draw.push(lines(frame(panels, "Coefficients along the path"), data, data.names, data.coefs, "coefficient", go));
    if (several && data.groups) draw.push(lines(frame(panels, "Norms of groups along the path"), data, data.groups.names, data.groups.norms, "norm", go));
    const own = frame(panels, "Coefficients at this alpha");
    draw.push(i => bars(own, data.names, data.coefs.map(values => values[i]), 18));
    if (data.groups) {
      const norms = frame(panels, "Groups at this alpha");
      draw.push(i => bars(norms, data.groups.names, data.groups.norms.map(values => values[i]), 15));
    }
    if (data.fitted) {
      const few = data.fitted.scores[0].length < data.fitted.rows ? ` (${data.fitted.scores[0].length} of ${data.fitted.rows} rows)` : "";
      const rows = frame(panels, (data.fitted.classes ? "Scores of the two classes" : "Fitted values") + few);
      draw.push(i => points(rows, data.fitted, i));
    }
    const readout = document.getElementById("readout");
    function show(i) {
      readout.replaceChildren();
      const facts = [["alpha", short(data.alphas[i])], ["not zero", String(data.nonzeros[i])], ["objective", short(data.objective[i])], ["relative gap", data.gap[i] === null ? "none" : data.gap[i].toExponential(1)]];
      if (data.fitted) facts.push([data.fitted.quality[0], short(data.fitted.quality[1][i])]);
      if (data.cv) facts.push(["held-out score", `${short(data.cv.mean[i])} ± ${short(data.cv.error[i])}`]);
      if (several && i === data.chosen) facts.push(["", "the answer of this page"]);
      for (const [name, value] of facts) {
        const one = make(readout, "div");
        make(one, "dt", {}, name || "\u00a0");
        make(one, "dd", {}, value);
      }
      draw.forEach(each => each(i));
    }
    section.hidden = false;
    section.querySelector(".dial").hidden = !several;
    dial.addEventListener("input", () => show(Number(dial.value)));
    show(data.chosen);
  }

  document.querySelectorAll("table").forEach(sortable);
  shade();
  explore();
})();
