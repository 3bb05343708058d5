// A browser with the page, and what a visitor does there.

import { existsSync, mkdtempSync, readFileSync, readdirSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import puppeteer from "puppeteer-core";
import { serve } from "./server.mjs";

const CHROMIUM = ["/usr/bin/chromium", "/usr/bin/chromium-browser", "/usr/bin/google-chrome"];

/** Milliseconds that anything may take on a busy machine. */
const PATIENCE = 300_000;

export async function start() {
  const executablePath = process.env.CHROMIUM ?? CHROMIUM.find(existsSync);
  const browser = await puppeteer.launch({ executablePath, args: ["--no-sandbox", "--force-color-profile=srgb"], protocolTimeout: 900_000 });
  const dist = new URL("../dist", import.meta.url).pathname;
  return { browser, ...(await serve(dist)) };
}

/** A visitor of the page, in a window of its own. */
export class Visitor {
  static async come(browser, address, { workers = 2, plain = false, size = { width: 1280, height: 800 }, dark = false } = {}) {
    const visitor = new Visitor();
    visitor.context = await browser.createBrowserContext();
    visitor.page = await visitor.context.newPage();
    visitor.errors = [];
    visitor.page.on("pageerror", (error) => visitor.errors.push(String(error)));
    visitor.page.on("console", (message) => message.type() === "error" && visitor.errors.push(message.text()));
    visitor.downloads = mkdtempSync(join(tmpdir(), "proxlift-web-"));
    const session = await visitor.page.createCDPSession();
    const behaviour = { behavior: "allow", downloadPath: visitor.downloads, browserContextId: visitor.context.id };
    await session.send("Browser.setDownloadBehavior", behaviour);
    await visitor.page.emulateMediaFeatures([{ name: "prefers-color-scheme", value: dark ? "dark" : "light" }]);
    await visitor.page.setViewport(size);
    visitor.page.setDefaultTimeout(PATIENCE);
    await visitor.page.goto(`${address}?workers=${workers}${plain ? "&plain" : ""}`);
    return visitor;
  }

  /** Drops or pastes files, [name, bytes] each. */
  async give(files, kind = "drop") {
    const sent = files.map(([name, bytes]) => [name, Buffer.from(bytes).toString("base64")]);
    await this.page.evaluate(
      async (sent, kind) => {
        const transfer = new DataTransfer();
        for (const [name, text] of sent) {
          const bytes = Uint8Array.from(atob(text), (c) => c.charCodeAt(0));
          transfer.items.add(new File([bytes], name));
        }
        const event =
          kind === "drop"
            ? new DragEvent("drop", { dataTransfer: transfer, bubbles: true, cancelable: true })
            : new ClipboardEvent("paste", { clipboardData: transfer, bubbles: true });
        document.body.dispatchEvent(event);
      },
      sent,
      kind,
    );
  }

  /** Chooses files, [name, bytes] each: unlike a drop made by a test, that takes the page no time. */
  async choose(files) {
    const folder = mkdtempSync(join(tmpdir(), "proxlift-chosen-"));
    const paths = files.map(([name, bytes]) => {
      writeFileSync(join(folder, name), bytes);
      return join(folder, name);
    });
    await (await this.page.$("#file")).uploadFile(...paths);
  }

  /** Milliseconds that the longest task of the page takes its processor while something is done. */
  async longest(work) {
    await this.page.tracing.start({ categories: ["toplevel"] });
    await work();
    const { traceEvents } = JSON.parse(Buffer.from(await this.page.tracing.stop()).toString());
    const main = traceEvents.filter((event) => event.name === "thread_name" && event.args.name === "CrRendererMain");
    const threads = new Set(main.map((event) => `${event.pid}/${event.tid}`));
    const tasks = traceEvents.filter((event) => event.ph === "X" && threads.has(`${event.pid}/${event.tid}`));
    if (!tasks.some((event) => event.tdur > 0)) throw new Error("the browser counts no tasks");
    return tasks.reduce((most, event) => Math.max(most, event.tdur ?? 0), 0) / 1000;
  }

  /** Waits for a sentence below the picture. */
  async message(pattern, timeout = PATIENCE) {
    const says = (source) => new RegExp(source).test(document.getElementById("message").textContent);
    await this.page.waitForFunction(says, { timeout, polling: 50 }, pattern.source).catch(async (error) => {
      throw new Error(`no "${pattern.source}" but "${await this.text("#message")}": ${error.message}`);
    });
    return this.text("#message");
  }

  text(selector) {
    return this.page.$eval(selector, (element) => element.textContent.trim());
  }

  async set(selector, value) {
    await this.page.$eval(
      selector,
      (control, value) => {
        if (control.type === "checkbox") control.checked = value;
        else control.value = value;
        control.dispatchEvent(new Event("input", { bubbles: true }));
        control.dispatchEvent(new Event("change", { bubbles: true }));
      },
      value,
    );
  }

  /** Clicks a button that saves a file, and gives its name and bytes. */
  async save(selector) {
    const before = new Set(readdirSync(this.downloads));
    await this.page.click(selector);
    const end = Date.now() + PATIENCE;
    while (Date.now() < end) {
      const fresh = readdirSync(this.downloads).find((name) => !before.has(name) && !name.endsWith(".crdownload"));
      if (fresh) return [fresh, readFileSync(join(this.downloads, fresh))];
      await new Promise((resolve) => setTimeout(resolve, 50));
    }
    throw new Error(`nothing was saved; the page says "${await this.text("#message")}"`);
  }

  async leave() {
    await this.context.close();
  }
}
