"use strict";
// Everything that comes from the session is put into the page as text nodes and through
// fixed tables of elements. Nothing is ever parsed as HTML.
(() => {
  const byId = (id) => document.getElementById(id);
  const dataOf = (element) => JSON.parse(element.textContent);
  const make = (tag, className, ...children) => {
    const element = document.createElement(tag);
    if (className) element.className = className;
    element.append(...children);
    return element;
  };
  const button = (className, text, title, onClick) => {
    const element = make("button", className, text);
    element.type = "button";
    element.title = title;
    element.addEventListener("click", onClick);
    return element;
  };

  // The entries: a light index of all, and bodies that are parsed when they are needed.

  const meta = dataOf(byId("meta"));
  const bodyScripts = [...document.querySelectorAll("script.bodies")];
  const parent = [], kind = [], preview = [], ids = [], labels = [], block = [], slot = [];
  document.querySelectorAll("script.index").forEach((element, at) => {
    dataOf(element).forEach((row, within) => {
      parent.push(row[0]);
      kind.push(row[1]);
      preview.push(row[2]);
      ids.push(row[3]);
      labels.push(row[4] || "");
      block.push(at);
      slot.push(within);
    });
  });
  const nEntries = parent.length;
  const parsed = new Map();
  const bodyOf = (entry) => {
    const at = block[entry];
    let bodies = parsed.get(at);
    parsed.delete(at);
    bodies = bodies || dataOf(bodyScripts[at]);
    parsed.set(at, bodies);
    if (parsed.size > 12) parsed.delete(parsed.keys().next().value);
    return bodies[slot[entry]];
  };

  const firstChild = new Int32Array(nEntries + 1).fill(-1);
  const nextSibling = new Int32Array(nEntries).fill(-1);
  for (let entry = nEntries - 1; entry >= 0; entry--) {
    const above = parent[entry] < 0 ? nEntries : parent[entry];
    nextSibling[entry] = firstChild[above];
    firstChild[above] = entry;
  }
  const childrenOf = (above) => {
    const children = [];
    for (let child = firstChild[above]; child >= 0; child = nextSibling[child]) children.push(child);
    return children;
  };
  const siblingsOf = (entry) => childrenOf(parent[entry] < 0 ? nEntries : parent[entry]);
  const pathTo = (leaf) => {
    const path = [];
    for (let entry = leaf; entry >= 0; entry = parent[entry]) path.push(entry);
    return path.reverse();
  };
  const active = new Set(pathTo(meta.leaf));
  const leafBelow = (entry) => {
    for (;;) {
      const children = childrenOf(entry);
      if (children.length === 0) return entry;
      entry = children.find((child) => active.has(child)) ?? children[children.length - 1];
    }
  };

  // What is shown.

  const CONVERSATION = new Set(["user", "assistant", "tool", "bash", "summary", "custom"]);
  const OUTLINE = new Set(["user", "assistant", "bash", "summary", "custom"]);
  const KINDS = {
    user: "You", assistant: "Answer", tool: "Result", bash: "Command", summary: "Summary", custom: "Message",
    system: "System", note: "Note",
  };
  let mode = "conversation";
  let leaf = meta.leaf;
  let rows = [];
  let outline = [];
  let current = -1;
  const openFolds = new Map();
  const openGroups = { tool: false, thinking: false, system: false };
  const isVisible = (entry, kinds) => mode === "all" || (mode === "prompts" ? kind[entry] === "user" : kinds.has(kind[entry]));

  // Blocks of an entry.

  const TEXT_LIMIT = 20000;
  const SYNTAX = ["", "c", "s", "n", "k", "f", "t", "v", "o", "i", "d"];
  const IMAGES = new Set(["image/png", "image/jpeg", "image/gif", "image/webp", "image/bmp"]);
  const ELEMENTS = new Set([
    "p", "h1", "h2", "h3", "h4", "h5", "h6", "blockquote", "ul", "ol", "li", "em", "strong", "del", "code",
    "table", "thead", "tbody", "tr", "th", "td",
  ]);

  const longText = (element, text) => {
    if (text.length <= TEXT_LIMIT) {
      element.textContent = text;
      return element;
    }
    element.textContent = text.slice(0, TEXT_LIMIT);
    const all = button("more", `Show all ${text.length.toLocaleString()} characters`, "", () => {
      element.textContent = text;
    });
    element.append(all);
    return element;
  };
  const code = (language, text, spans) => {
    const pre = make("pre", "code");
    if (spans && text.length <= TEXT_LIMIT * 4) {
      let at = 0;
      for (let i = 0; i + 1 < spans.length; i += 2) {
        const part = text.slice(at, at + spans[i + 1]);
        at += spans[i + 1];
        pre.append(spans[i] ? make("span", "hl-" + (SYNTAX[spans[i]] || "o"), part) : part);
      }
      pre.append(text.slice(at));
    } else {
      longText(pre, text);
    }
    if (!language) return pre;
    return make("div", "codebox", make("span", "lang", language), pre);
  };
  const diff = (text) => {
    const pre = make("pre", "code diff");
    text.split("\n").slice(0, 5000).forEach((line) => {
      const mark = line[0] === "+" ? "add" : line[0] === "-" ? "del" : line.startsWith("@@") ? "hunk" : "";
      pre.append(make("span", mark, line + "\n"));
    });
    return pre;
  };
  const link = (href, children) => {
    const element = make("a", "", ...children);
    if (/^(https?:|mailto:)/i.test(href)) {
      element.href = href;
      element.target = "_blank";
      element.rel = "noopener noreferrer nofollow";
      element.title = href;
    }
    return element;
  };
  const markdown = (node) => {
    if (typeof node === "string") return node;
    const [tag, ...rest] = node;
    switch (tag) {
      case "a": return link(String(rest[0]), rest.slice(1).map(markdown));
      case "br": return make("br");
      case "hr": return make("hr");
      case "pre": return code(rest[0], rest[1], rest[2]);
      case "ol": {
        const list = make("ol", "", ...rest.slice(1).map(markdown));
        list.start = Number(rest[0]) || 1;
        return list;
      }
      default: return make(ELEMENTS.has(tag) ? tag : "span", "", ...rest.map(markdown));
    }
  };
  const image = (type, data) => {
    if (!IMAGES.has(type) || !/^[A-Za-z0-9+/=]*$/.test(data)) return make("p", "muted", "[image]");
    const element = make("img");
    element.alt = "image";
    element.src = `data:${type};base64,${data}`;
    element.addEventListener("load", () => list.remeasure());
    return element;
  };
  const fold = (key, [group, title, about, blocks, isError]) => {
    const element = make("details", "fold" + (isError ? " failed" : ""));
    element.append(make("summary", "", make("b", "", title), " ", make("span", "about", about)));
    const fill = () => {
      if (element.childElementCount === 1) element.append(...blocks.map((one, at) => renderBlock(`${key}.${at}`, one)));
    };
    if (openFolds.get(key) ?? openGroups[group]) {
      element.open = true;
      fill();
    }
    element.addEventListener("toggle", () => {
      openFolds.set(key, element.open);
      if (element.open) fill();
      list.remeasure();
    });
    return element;
  };
  const renderBlock = (key, [what, ...rest]) => {
    switch (what) {
      case "md": return make("div", "md", ...rest.map(markdown));
      case "text": return longText(make("div", "plain"), rest[0]);
      case "code": return code(rest[0], rest[1], rest[2]);
      case "diff": return diff(rest[0]);
      case "img": return image(rest[0], rest[1]);
      case "link": return make("p", "", link(rest[0], [rest[1]]));
      case "fold": return fold(key, rest);
      case "err": return longText(make("div", "error"), rest[0]);
      default: return make("p", "muted", String(rest[0]));
    }
  };

  // Lists that hold only what is near the screen.

  const MAX_HEIGHT = 8000000; // Browsers limit the height of an element.
  class VirtualList {
    constructor(scroller, estimate, render) {
      Object.assign(this, { scroller, estimate, render, count: 0, keyOf: () => 0 });
      this.known = new Map();
      this.mounted = new Map();
      this.spacer = make("div", "spacer");
      this.window = make("div", "window");
      this.spacer.append(this.window);
      scroller.replaceChildren(this.spacer);
      this.width = scroller.clientWidth;
      scroller.addEventListener("scroll", () => this.draw(), { passive: true });
      new ResizeObserver(() => {
        if (this.width !== scroller.clientWidth) {
          this.width = scroller.clientWidth;
          const at = this.anchor();
          this.known.clear();
          this.layOut();
          this.draw(at);
        } else {
          this.draw();
        }
      }).observe(scroller);
    }
    show(count, keyOf, at) {
      Object.assign(this, { count, keyOf });
      this.clear();
      this.layOut();
      this.draw(at ?? { row: 0, delta: 0 });
    }
    clear() {
      this.window.replaceChildren();
      this.mounted.clear();
    }
    layOut() {
      this.offsets = new Float64Array(this.count + 1);
      for (let row = 0; row < this.count; row++) {
        this.offsets[row + 1] = this.offsets[row] + (this.known.get(this.keyOf(row)) ?? this.estimate);
      }
      this.spacer.style.height = Math.min(this.total(), MAX_HEIGHT) + "px";
    }
    total() {
      return this.offsets[this.count];
    }
    // Pixels of the document for one pixel of the scroll bar.
    scale() {
      const height = this.scroller.clientHeight;
      return this.total() > MAX_HEIGHT ? (this.total() - height) / (MAX_HEIGHT - height) : 1;
    }
    rowAt(top) {
      let low = 0, high = this.count - 1;
      while (low < high) {
        const middle = (low + high + 1) >> 1;
        if (this.offsets[middle] <= top) low = middle;
        else high = middle - 1;
      }
      return Math.max(low, 0);
    }
    anchor() {
      const top = this.scroller.scrollTop * this.scale();
      const row = this.rowAt(top);
      return { row, delta: top - (this.offsets[row] || 0) };
    }
    // Keeps the row of `at` where it is, whatever the rows above turn out to be.
    draw(at) {
      if (this.count === 0) return this.clear();
      const isJump = at !== undefined;
      at = at ?? this.anchor();
      let top = 0, first = 0;
      for (let pass = 0; pass < 6; pass++) {
        const height = this.scroller.clientHeight;
        const wanted = this.offsets[at.row] + at.delta;
        top = Math.max(0, Math.min(wanted, this.total() - height));
        first = this.rowAt(Math.max(0, top - 400));
        const last = this.rowAt(top + height + 400);
        this.mount(first, last);
        if (!this.measure()) break;
        this.layOut();
      }
      const scrollTop = top / this.scale();
      if (isJump || Math.abs(scrollTop - this.scroller.scrollTop) > 1) this.scroller.scrollTop = scrollTop;
      this.window.style.transform = `translateY(${this.scroller.scrollTop + this.offsets[first] - top}px)`;
    }
    mount(first, last) {
      for (const [row, element] of this.mounted) {
        if (row < first || row > last) {
          element.remove();
          this.mounted.delete(row);
        }
      }
      let before = this.window.firstChild;
      for (let row = first; row <= last; row++) {
        let element = this.mounted.get(row);
        if (element) {
          before = element.nextSibling;
          continue;
        }
        element = this.render(row);
        this.mounted.set(row, element);
        this.window.insertBefore(element, before);
      }
    }
    measure() {
      let isChanged = false;
      for (const [row, element] of this.mounted) {
        const height = element.getBoundingClientRect().height;
        const key = this.keyOf(row);
        if (Math.abs((this.known.get(key) ?? this.estimate) - height) > 0.5) isChanged = true;
        this.known.set(key, height);
      }
      return isChanged;
    }
    remeasure() {
      const at = this.anchor();
      if (this.measure()) {
        this.layOut();
        this.draw(at);
      }
    }
    refresh() {
      const at = this.anchor();
      this.clear();
      this.draw(at);
    }
  }

  const branchControl = (entry) => {
    const siblings = siblingsOf(entry);
    const at = siblings.indexOf(entry);
    const step = (by) => () => {
      const next = siblings[(at + by + siblings.length) % siblings.length];
      leaf = leafBelow(next);
      showRows();
      goTo(next, true);
    };
    return make(
      "div", "branches",
      button("", "‹", "Previous branch", step(-1)),
      make("span", "", `branch ${at + 1} of ${siblings.length}`),
      button("", "›", "Next branch", step(1)),
    );
  };
  const renderRow = (at) => {
    const { entry, branches } = rows[at];
    const body = bodyOf(entry);
    const role = KINDS[kind[entry]] ? kind[entry] : "note";
    const element = make("article", `row ${role}` + (entry === current ? " current" : ""));
    element.append(...branches.map(branchControl));
    const here = make("a", "here", "#");
    here.href = "#" + encodeURIComponent(ids[entry]);
    const head = make("header", "", make("b", "", body.r || KINDS[role]), " ", make("span", "muted", body.f || ""), here);
    if (labels[entry]) head.append(make("span", "label", labels[entry]));
    element.append(head, ...body.b.map((one, block) => renderBlock(`${entry}/${block}`, one)));
    return element;
  };
  const list = new VirtualList(byId("list"), 120, renderRow);

  let found = null;
  const renderOutlineRow = (at) => {
    const { entry, depth, text } = (found || outline)[at];
    const element = make("div", `line ${kind[entry]}` + (active.has(entry) ? " active" : "") + (entry === current ? " current" : ""));
    element.style.paddingLeft = 8 + Math.min(depth, 14) * 12 + "px";
    if (labels[entry]) element.append(make("span", "label", labels[entry]));
    element.append(make("span", "role", (KINDS[kind[entry]] || "") + " "), text ?? preview[entry]);
    element.addEventListener("click", () => {
      if (found) openEntry(entry);
      goTo(entry);
    });
    return element;
  };
  const side = new VirtualList(byId("outline"), 24, renderOutlineRow);

  const showRows = (at) => {
    rows = [];
    let branches = [];
    for (const entry of pathTo(leaf)) {
      const above = parent[entry] < 0 ? nEntries : parent[entry];
      if (nextSibling[firstChild[above]] >= 0) branches.push(entry);
      if (isVisible(entry, CONVERSATION)) {
        rows.push({ entry, branches });
        branches = [];
      }
    }
    list.show(rows.length, (row) => rows[row].entry, at);
  };
  const showOutline = () => {
    if (found) return side.show(found.length, (row) => -1 - row);
    outline = [];
    const stack = childrenOf(nEntries).reverse().map((entry) => [entry, 0]);
    while (stack.length > 0) {
      const [entry, depth] = stack.pop();
      if (isVisible(entry, OUTLINE)) outline.push({ entry, depth });
      const children = childrenOf(entry);
      const below = children.length > 1 ? depth + 1 : depth;
      for (let at = children.length - 1; at >= 0; at--) stack.push([children[at], below]);
    }
    side.show(outline.length, (row) => outline[row].entry);
  };
  // Shows an entry, on its branch.
  const goTo = (entry, isQuiet) => {
    let row = rows.findIndex((one) => one.entry === entry);
    if (row < 0) {
      leaf = leafBelow(entry);
      if (!isVisible(entry, CONVERSATION)) {
        mode = "all";
        byId("mode").value = mode;
      }
      showRows();
      row = rows.findIndex((one) => one.entry === entry);
    }
    if (!isQuiet) current = entry;
    list.clear();
    list.draw({ row: Math.max(row, 0), delta: -8 });
    side.refresh();
    mark();
  };
  const openEntry = (entry) => {
    const visit = (key, [what, ...rest]) => {
      if (what !== "fold") return;
      openFolds.set(key, true);
      rest[3].forEach((one, at) => visit(`${key}.${at}`, one));
    };
    bodyOf(entry).b.forEach((one, at) => visit(`${entry}/${at}`, one));
    list.known.delete(entry);
  };

  // Search.

  const flatten = (block) => {
    const parts = [];
    const visit = (value, from) => {
      for (let at = from; at < value.length; at++) {
        if (typeof value[at] === "string") parts.push(value[at]);
        else if (Array.isArray(value[at]) && typeof value[at][0] !== "number") visit(value[at], typeof value[at][0] === "string" ? 1 : 0);
      }
    };
    if (block[0] !== "img") visit(block, block[0] === "fold" ? 2 : 1);
    return parts.join("");
  };
  let searches = 0;
  let query = "";
  const mark = () => {
    if (!window.Highlight || !CSS.highlights) return;
    CSS.highlights.delete("found");
    if (!query) return;
    const ranges = [];
    const walker = document.createTreeWalker(byId("list"), NodeFilter.SHOW_TEXT);
    while (walker.nextNode() && ranges.length < 2000) {
      const text = walker.currentNode.data.toLowerCase();
      for (let at = text.indexOf(query); at >= 0 && ranges.length < 2000; at = text.indexOf(query, at + query.length)) {
        if (at + query.length > walker.currentNode.length) break;
        const range = new Range();
        range.setStart(walker.currentNode, at);
        range.setEnd(walker.currentNode, at + query.length);
        ranges.push(range);
      }
    }
    CSS.highlights.set("found", new Highlight(...ranges));
  };
  const search = async () => {
    const number = ++searches;
    query = byId("search").value.trim().toLowerCase();
    if (!query) {
      found = null;
      byId("found").textContent = "";
      showOutline();
      return mark();
    }
    const results = [];
    let since = performance.now();
    for (let entry = 0; entry < nEntries; entry++) {
      const body = bodyOf(entry);
      const text = [body.r || "", body.f || "", labels[entry], ...body.b.map(flatten)].join("\n");
      const at = text.toLowerCase().indexOf(query);
      if (at >= 0) {
        const from = Math.max(0, at - 24);
        results.push({ entry, depth: 0, text: (from > 0 ? "…" : "") + text.slice(from, at + 90).replace(/\s+/g, " ") });
      }
      if (performance.now() - since > 25) {
        await new Promise((resolve) => setTimeout(resolve));
        if (number !== searches) return;
        byId("found").textContent = `${results.length} found …`;
        since = performance.now();
      }
    }
    found = results;
    byId("found").textContent = `${results.length} found`;
    showOutline();
    mark();
  };
  let typed = 0;
  byId("search").addEventListener("input", () => {
    clearTimeout(typed);
    typed = setTimeout(search, 120);
  });
  byId("search").addEventListener("keydown", (event) => {
    if (event.key === "Escape") {
      byId("search").value = "";
      search();
    } else if (event.key === "Enter" && found && found.length > 0) {
      const at = found.findIndex((one) => one.entry === current);
      const next = found[(at + (event.shiftKey ? found.length - 1 : 1)) % found.length];
      openEntry(next.entry);
      goTo(next.entry);
    }
  });
  document.addEventListener("keydown", (event) => {
    if (event.key === "/" && document.activeElement !== byId("search")) {
      event.preventDefault();
      byId("search").focus();
    }
  });
  byId("list").addEventListener("scroll", () => query && requestAnimationFrame(mark), { passive: true });

  // The bar.

  byId("mode").addEventListener("change", () => {
    mode = byId("mode").value;
    const at = rows[list.anchor().row];
    showRows();
    showOutline();
    const row = at ? rows.findIndex((one) => one.entry >= at.entry) : 0;
    list.draw({ row: Math.max(row, 0), delta: 0 });
  });
  for (const group of ["tool", "thinking"]) {
    byId(group).addEventListener("change", () => {
      openGroups[group] = byId(group).checked;
      openFolds.clear();
      list.known.clear();
      const at = list.anchor();
      list.clear();
      list.layOut();
      list.draw(at);
    });
  }
  const root = document.documentElement;
  byId("theme").addEventListener("click", () => {
    const isDark = root.dataset.theme ? root.dataset.theme === "dark" : matchMedia("(prefers-color-scheme: dark)").matches;
    root.dataset.theme = isDark ? "light" : "dark";
  });
  byId("tree").addEventListener("click", () => {
    root.classList.toggle("no-side");
  });

  byId("title").textContent = meta.title;
  byId("facts").append(...meta.facts.map((fact) => make("span", "fact", fact)));
  const follow = () => {
    let id = "";
    try {
      id = decodeURIComponent(location.hash.slice(1));
    } catch {
      return false;
    }
    const entry = id ? ids.lastIndexOf(id) : -1;
    if (entry >= 0) goTo(entry);
    return entry >= 0;
  };
  window.addEventListener("hashchange", follow);
  showRows();
  showOutline();
  follow();
  root.classList.add("ready");
})();
