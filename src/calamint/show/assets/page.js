"use strict";
(() => {
  const dark = matchMedia("(prefers-color-scheme: dark)");
  const printing = matchMedia("print");
  const redraws = [];
  const theme = () => (dark.matches && !printing.matches ? THEMES.dark : THEMES.light);
  const options = {
    responsive: true,
    displaylogo: false,
    // Dollar signs are dollar signs.
    typesetMath: false,
    // On small screens it would lie on the legend.
    displayModeBar: innerWidth < 700 ? false : "hover",
    modeBarButtonsToRemove: ["lasso2d", "select2d"],
  };

  // What was chosen and zoomed before, where a plot is drawn again.
  const kept = {};

  const titles = (layout) => Object.keys(layout).filter((key) => key.includes("axis"))
    .map((key) => layout[key].title && layout[key].title.text);

  // Ranges of axes that a reader has set; those that were set back are forgotten.
  function follow(place, zoom) {
    let isReset = false;
    place.on("plotly_doubleclick", () => { isReset = true; });
    place.on("plotly_relayout", (changes) => {
      Object.entries(changes).forEach(([key, value]) => {
        const axis = key.split(".")[0];
        if (!/^[xy]axis\d*$/.test(axis)) return;
        if (isReset || key.endsWith(".autorange")) {
          Object.keys(zoom).filter((each) => each.startsWith(`${axis}.`)).forEach((each) => delete zoom[each]);
        } else if (key.includes(".range")) zoom[key] = value;
      });
      isReset = false;
    });
  }

  function setUp(section) {
    if (section.dataset.drawn) return;
    section.dataset.drawn = "yes";
    const content = JSON.parse(section.querySelector("script").textContent);
    const place = section.querySelector(".figure");
    place.style.height = place.dataset.height + "px";
    const chosen = content.chosen;
    const words = JSON.stringify([content.controls, content.layouts.map(titles)]);
    const before = kept[section.id] && kept[section.id].words === words ? kept[section.id] : {};
    if (before.chosen) chosen.splice(0, chosen.length, ...before.chosen);
    const zoom = { ...before.zoom };
    kept[section.id] = { words, chosen: before.chosen, zoom };
    const draw = () => {
      const [traces, layout] = content.views[chosen.join(",")];
      // Plotly changes what it is given.
      const view = structuredClone({ data: traces.map((each) => content.traces[each]), layout: content.layouts[layout] });
      place.style.height = view.layout.height + "px";
      Plotly.react(place, view.data, { ...view.layout, template: theme() }, options);
      if (Object.keys(zoom).length) Plotly.relayout(place, { ...zoom });
    };
    const refresh = [];
    content.controls.forEach((control, position) => {
      const list = () => (control.by === null ? control.options : control.options[chosen[control.by]]);
      if (!control.slider && list().length < 2) return;
      const label = document.createElement("label");
      label.append(control.label + " ");
      let input;
      if (control.slider) {
        input = document.createElement("input");
        input.type = "range";
        input.min = 0;
        input.step = 1;
        const said = document.createElement("output");
        refresh.push(() => {
          label.hidden = list().length < 2;
          input.max = list().length - 1;
          said.textContent = list()[Math.min(chosen[position], list().length - 1)];
        });
        label.append(input, said);
      } else {
        input = document.createElement("select");
        list().forEach((text, value) => input.append(new Option(text, value)));
        label.append(input);
      }
      input.value = chosen[position];
      input.addEventListener("input", () => {
        chosen[position] = Number(input.value);
        Object.keys(zoom).forEach((each) => delete zoom[each]);
        kept[section.id].chosen = chosen;
        refresh.forEach((each) => each());
        draw();
      });
      section.querySelector(".controls").append(label);
    });
    refresh.forEach((each) => each());
    redraws.push({ section, draw });
    draw();
    follow(place, zoom);
  }

  // Sections that a page has taken out are forgotten.
  const redraw = () => {
    redraws.splice(0, redraws.length, ...redraws.filter((each) => each.section.isConnected));
    redraws.forEach((each) => each.draw());
  };
  window.drawPlots = (root) => {
    const found = [...root.querySelectorAll("section.plot")];
    (root.matches && root.matches("section.plot") ? [root, ...found] : found).forEach(setUp);
    document.documentElement.dataset.drawn = document.querySelectorAll("section.plot[data-drawn]").length;
  };
  drawPlots(document);
  dark.addEventListener("change", redraw);
  printing.addEventListener("change", redraw);
})();
