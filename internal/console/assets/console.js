// The page refreshes its content while it is live, and draws the chart of a queue. Everything else works without this script.
(() => {
  "use strict";
  const interval = 2000;
  // A page that is slow to make is asked for less often: the database works a fiftieth of the time for it at most.
  const share = 50;
  const content = () => document.getElementById("content");
  const button = document.getElementById("live");
  let live = sessionStorage.getItem("live") !== "no";

  const show = () => {
    if (!button) return;
    button.setAttribute("aria-pressed", String(live));
    button.textContent = live ? "Live" : "Stopped";
  };
  if (button) {
    button.addEventListener("click", () => {
      live = !live;
      sessionStorage.setItem("live", live ? "yes" : "no");
      show();
    });
    show();
  }

  // A page is left alone while its user writes, chooses, reads a message or marks text.
  const busy = () => {
    const main = content();
    if (!main || !main.dataset.refresh || document.hidden) return true;
    if (main.querySelector("input:checked, details[open], input[name=once]")) return true;
    const focused = document.activeElement;
    if (focused && main.contains(focused) && focused.matches("input, select, textarea")) return true;
    const marked = document.getSelection();
    return Boolean(marked && !marked.isCollapsed);
  };

  // The element that had the focus is found again by what it leads to.
  const traceOf = (element) =>
    element && content().contains(element) ? element.getAttribute("href") || element.getAttribute("aria-label") || element.id : null;
  const findTrace = (trace) => {
    for (const one of content().querySelectorAll("a, button, [tabindex]")) {
      if ([one.getAttribute("href"), one.getAttribute("aria-label"), one.id].includes(trace)) return one;
    }
    return null;
  };

  const refresh = () => {
    const main = content();
    const trace = traceOf(document.activeElement);
    const scrolled = [...main.querySelectorAll(".scroll")].map((one) => one.scrollLeft);
    return htmx
      .ajax("GET", main.dataset.refresh, {
        source: main, target: "#content", select: "#content", swap: "outerHTML", headers: { "X-Parley-Live": "1" },
      })
      .then(() => {
        [...content().querySelectorAll(".scroll")].forEach((one, i) => { one.scrollLeft = scrolled[i] || 0; });
        if (trace) findTrace(trace)?.focus({ preventScroll: true });
      });
  };

  const chart = {
    plot: null, figure: null, data: [[], [], [], []],
    most: 900,
    colour(name) { return getComputedStyle(document.documentElement).getPropertyValue(name).trim(); },
    draw() {
      const figure = document.getElementById("chart");
      if (!figure || figure === this.figure) return figure;
      this.figure = figure;
      this.data = [[], [], [], []];
      const axis = { stroke: this.colour("--ink"), grid: { stroke: this.colour("--line"), width: 1 } };
      this.plot = new uPlot({
        width: Math.max(280, figure.clientWidth), height: 180,
        series: [
          {},
          { label: "waiting", stroke: this.colour("--accent"), width: 2, scale: "waiting" },
          { label: "in /s", stroke: this.colour("--good"), width: 1, scale: "rate" },
          { label: "out /s", stroke: this.colour("--bad"), width: 1, scale: "rate" },
        ],
        scales: { waiting: { range: (u, low, high) => [0, Math.max(1, high || 0)] }, rate: { range: (u, low, high) => [0, Math.max(1, high || 0)] } },
        axes: [axis, { ...axis, scale: "waiting", size: 60 }, { ...axis, scale: "rate", side: 1, size: 50, grid: { show: false } }],
      }, this.data, figure);
      return figure;
    },
    async add() {
      const figure = this.draw();
      if (!figure) return;
      const answer = await fetch(figure.dataset.figures, { headers: { "X-Parley-Live": "1" } });
      if (!answer.ok) return;
      const now = await answer.json();
      if (this.data[0].at(-1) === now.at) return;
      [now.at, now.waiting, now.in, now.out].forEach((value, i) => this.data[i].push(value));
      this.data.forEach((series) => series.splice(0, Math.max(0, series.length - this.most)));
      this.plot.setData(this.data);
    },
  };
  addEventListener("resize", () => {
    if (chart.plot && chart.figure) chart.plot.setSize({ width: Math.max(280, chart.figure.clientWidth), height: 180 });
  });

  const beat = async () => {
    const begun = performance.now();
    try {
      if (live && !document.hidden) {
        if (!busy()) await refresh();
        await chart.add();
      }
    } catch (error) {
      console.warn("the page could not refresh itself", error);
    } finally {
      setTimeout(beat, Math.max(interval, share * (performance.now() - begun)));
    }
  };
  if (button) {
    chart.add();
    setTimeout(beat, interval);
  }
})();
