import { existsSync, readFileSync, readdirSync } from "node:fs";
import path from "node:path";
import { renderMermaidSVG } from "beautiful-mermaid";
import { defineConfig } from "vitepress";

// The pages are the files that a code host shows: README.md, and docs/ with its folders.
const repository = "https://github.com/readback-go/readback";

// The pages of a folder by their titles, the named ones first.
function pages(folder, ...first) {
  const rank = (name) => (first.indexOf(name) + 1 || Infinity);
  return readdirSync(folder).filter((name) => name.endsWith(".md"))
    .sort((a, b) => rank(a) - rank(b) || (a < b ? -1 : 1))
    .map((name) => ({
      text: readFileSync(path.join(folder, name), "utf8").match(/^# (.*)$/m)[1].replaceAll("`", ""),
      link: `/${folder}/${name.replace(/md$/, "html")}`,
    }));
}

export default defineConfig({
  title: "readback",
  description: "readback executes an AI agent's writes to systems that you do not own",
  base: process.env.SITE_BASE,
  outDir: "bin/site",
  srcExclude: ["CHANGELOG.md", "!(docs)/**/*.md"],
  rewrites: { "README.md": "index.md" },
  markdown: {
    theme: { light: "github-light-high-contrast", dark: "github-dark-high-contrast" },
    // As code hosts name headings. TestLinksOfPagesLeadSomewhere has the same rule.
    anchor: { slugify: (text) => text.toLowerCase().replace(/[^\p{L}\p{N} _-]/gu, "").replaceAll(" ", "-") },
    config(md) {
      const { fence, table_open: table } = md.renderer.rules;
      md.renderer.rules.fence = (tokens, i, ...more) => {
        if (tokens[i].info !== "mermaid") return fence(tokens, i, ...more);
        const picture = renderMermaidSVG(tokens[i].content, { transparent: true, bg: "var(--vp-c-bg)", fg: "var(--vp-c-text-1)", muted: "var(--vp-c-text-2)" });
        const html = picture.replace(/@import.*;/, ""); // of a font on the web
        return `<div class="mermaid" tabindex="0" v-html="${md.utils.escapeHtml(JSON.stringify(html))}"></div>`;
      };
      // What is too wide for a phone is scrolled, by keys too.
      md.renderer.rules.table_open = (tokens, i, ...more) => {
        tokens[i].attrSet("tabindex", "0");
        return table ? table(tokens, i, ...more) : md.renderer.renderToken(tokens, i, more[0]);
      };
      // Links to code, and to pages beside it, lead to the code host.
      md.core.ruler.push("code", ({ tokens, env }) => {
        for (const link of tokens.flatMap((t) => t.children ?? []).filter((t) => t.type === "link_open")) {
          const href = link.attrGet("href");
          const file = path.posix.join(path.posix.dirname(env.relativePath), href);
          if (/^README\.md(#|$)/.test(file)) link.attrSet("href", file.replace("README.md", "/")); // as rewrites has it
          else if (!/^[a-z]+:|^#/.test(href) && !/^(docs\/.*|[^/]*)\.md(#|$)/.test(file)) link.attrSet("href", `${repository}/blob/main/${file}`);
        }
      });
    },
  },
  vite: {
    build: { chunkSizeWarningLimit: 1000 }, // the index of the search, which only a search loads
    plugins: [{
      name: "pages above node_modules",
      enforce: "pre",
      resolveId(id, from, options) {
        if (/^vue\b/.test(id) && from?.endsWith(".md")) return this.resolve(id, import.meta.filename, options);
      },
    }],
  },
  themeConfig: {
    search: { provider: "local" },
    outline: [2, 3],
    sidebar: [
      { text: "Overview", link: "/" },
      { text: "Guide", items: pages("docs/guide", "start.md", "writes.md", "people.md", "destinations.md") },
      { text: "Operate", items: pages("docs/operate", "deploy.md", "run.md") },
      { text: "Reference", items: pages("docs/reference", "glossary.md", "config.md") },
      { text: "Project", items: [...pages("docs"), { text: "Decisions", link: "/docs/decisions/README.html" }] },
    ],
  },
  // VitePress checks the pages that text links to, but no anchors.
  buildEnd({ outDir, site: { base } }) {
    const read = (name) => readFileSync(path.join(outDir, name), "utf8");
    const dead = readdirSync(outDir, { recursive: true }).filter((name) => name.endsWith(".html")).flatMap((name) =>
      [...read(name).matchAll(/ (?:href|src)="([^"]*)"/g)].filter(([, href]) => {
        const url = new URL(href, `http://site${base}${name}`);
        const to = url.pathname.slice(base.length) || "index.html";
        if (url.host !== "site") return false;
        return !existsSync(path.join(outDir, to)) || url.hash && !read(to).includes(` id="${decodeURIComponent(url.hash.slice(1))}"`);
      }).map(([, href]) => `${name}: ${href}`));
    if (dead.length) throw new Error(`dead links:\n${dead.join("\n")}`);
  },
});
