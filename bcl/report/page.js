// Sorts a table by a column; the upper bound has its own body and stays where it is.
for (const table of document.querySelectorAll("table.sortable")) {
  const heads = [...table.tHead.rows[0].cells];
  heads.forEach((head, column) => {
    head.tabIndex = 0;
    const sort = () => {
      const down = head.getAttribute("aria-sort") !== "descending";
      heads.forEach(other => other.removeAttribute("aria-sort"));
      head.setAttribute("aria-sort", down ? "descending" : "ascending");
      const value = row => row.cells[column].dataset.value;
      const rows = [...table.tBodies[0].rows].sort((a, b) => {
        if (column === 0) return value(b).localeCompare(value(a));
        const [x, y] = [value(a), value(b)].map(text => text === "" ? -Infinity : Number(text));
        return y - x;
      });
      table.tBodies[0].append(...(down ? rows : rows.reverse()));
    };
    head.addEventListener("click", sort);
    head.addEventListener("keydown", event => {
      if (event.key !== "Enter" && event.key !== " ") return;
      event.preventDefault();
      sort();
    });
  });
}

// One label for the point under the pointer, or under the keyboard's cursor.
const tip = document.createElement("div");
tip.className = "tip";
tip.setAttribute("role", "status");
document.body.append(tip);
const NEAR = 28; // pixels

function showTip(name, text, x, y) {
  const bold = document.createElement("b");
  bold.textContent = name;
  tip.replaceChildren(bold, ` ${text}`);
  tip.classList.add("shown");
  const left = Math.min(x + 14, innerWidth - tip.offsetWidth - 8);
  const top = y - tip.offsetHeight - 12;
  tip.style.left = `${Math.max(8, left)}px`;
  tip.style.top = `${top < 8 ? y + 18 : top}px`;
}

// The figures of a group: the pointer, the keyboard and the legend light up a method; the legend hides it.
for (const box of document.querySelectorAll(".figures")) {
  const chips = [...box.querySelectorAll(".chip")];
  const marks = [...box.querySelectorAll("svg [data-row]")];
  const off = new Set();
  let pinned = null;
  box.querySelectorAll("svg title").forEach(title => title.remove()); // the label says more

  const light = (row = null) => {
    const lit = row ?? pinned;
    box.classList.toggle("focus", lit !== null);
    for (const one of [...marks, ...chips]) one.classList.toggle("lit", Number(one.dataset.row) === lit);
    if (row === null) tip.classList.remove("shown");
  };
  const pin = row => {
    pinned = pinned === row ? null : row;
    light();
  };
  const show = () => {
    for (const mark of marks) mark.classList.toggle("off", off.has(Number(mark.dataset.row)));
    for (const chip of chips) chip.setAttribute("aria-pressed", String(!off.has(Number(chip.dataset.row))));
  };
  const only = rows => {
    off.clear();
    chips.forEach((_, row) => rows.includes(row) || off.add(row));
    if (off.has(pinned)) pinned = null;
    show();
    light();
  };

  chips.forEach((chip, row) => {
    chip.addEventListener("pointerenter", () => light(off.has(row) ? null : row));
    chip.addEventListener("focus", () => light(off.has(row) ? null : row));
    chip.addEventListener("pointerleave", () => light());
    chip.addEventListener("blur", () => light());
    chip.addEventListener("click", () => {
      const shown = other => (other === row) === off.has(other); // this one changes, the others stay
      only([...chips.keys()].filter(shown));
    });
    chip.addEventListener("dblclick", () => only([row]));
  });
  box.querySelector(".all")?.addEventListener("click", () => only([...chips.keys()]));
  box.querySelector(".none")?.addEventListener("click", () => only([]));

  for (const plot of box.querySelectorAll(".plot")) {
    const hints = JSON.parse(plot.dataset.hints);
    const svg = plot.querySelector("svg");
    let at = null;
    const place = ([, x, y]) => {
      const frame = svg.getBoundingClientRect();
      return [frame.left + x * frame.width, frame.top + y * frame.height];
    };
    const visit = hint => {
      at = hint;
      light(hint[0]);
      showTip(chips[hint[0]].textContent.trim(), hint[3], ...place(hint));
    };
    const near = event => {
      let best = null;
      let least = NEAR;
      for (const hint of hints) {
        if (off.has(hint[0])) continue;
        const [x, y] = place(hint);
        const distance = Math.hypot(x - event.clientX, y - event.clientY);
        if (distance < least) [best, least] = [hint, distance];
      }
      return best;
    };
    const follow = event => {
      const hint = near(event);
      hint ? visit(hint) : light();
    };
    plot.tabIndex = 0;
    plot.addEventListener("pointermove", follow);
    plot.addEventListener("pointerdown", follow);
    plot.addEventListener("pointerleave", () => light());
    plot.addEventListener("click", event => pin(near(event)?.[0] ?? pinned));
    plot.addEventListener("blur", () => light());
    plot.addEventListener("keydown", event => {
      const shown = hints.filter(hint => !off.has(hint[0]));
      if (event.key === "Escape") {
        pinned = at = null;
        return light();
      }
      if (event.key === "Enter" && at) return pin(at[0]);
      const step = { ArrowRight: 1, ArrowDown: 1, ArrowLeft: -1, ArrowUp: -1 }[event.key];
      if (!step || !shown.length) return;
      event.preventDefault();
      if (!at || off.has(at[0])) return visit(shown[0]);
      if (event.key === "ArrowRight" || event.key === "ArrowLeft") {
        const own = shown.filter(hint => hint[0] === at[0]);
        return visit(own[(own.indexOf(at) + step + own.length) % own.length]);
      }
      const rows = [...new Set(shown.map(hint => hint[0]))].sort((a, b) => a - b);
      const row = rows[(rows.indexOf(at[0]) + step + rows.length) % rows.length];
      const away = hint => Math.hypot(hint[1] - at[1], hint[2] - at[2]);
      visit(shown.filter(hint => hint[0] === row).sort((a, b) => away(a) - away(b))[0]);
    });
  }
}
addEventListener("beforeprint", () => document.querySelectorAll("details").forEach(details => details.open = true));
