import Foundation
import ReelCore
import ReelLab

/// The page `/-/feed` of `reel serve`: a feed that swipes by itself or by hand, and measures the waits of the browser's own
/// player, or of a player in a script that the user supplies.
enum FeedPage {
  /// The prefix of paths below which the page requests what belongs to a playback, followed by the playback's name.
  static let playbackPrefix = "/-/playback/"

  private struct Settings: Encodable {
    /// The paths of the items, and their names for reports.
    var paths: [String]
    var names: [String]
    var prefix: String
    var reports: Bool
  }

  /// - Parameters:
  ///   - scripts: The paths of the player's scripts.
  ///   - reports: True if the server records what the page reports.
  static func html(_ items: [RecordedRun.Item], scripts: [String], reports: Bool) throws(ReelError) -> String
  {
    let settings = try JSONLine.string(
      Settings(paths: items.map(\.path), names: items.map(\.name), prefix: playbackPrefix, reports: reports))
    return """
      <!DOCTYPE html>
      <html lang="en"><head><meta charset="utf-8">
      <meta name="viewport" content="width=device-width, initial-scale=1, viewport-fit=cover">
      <title>reel feed</title><link rel="icon" href="data:,">
      <style>
      \(ReportPage.style)
      \(style)
      </style>
      <script>window.HELP_IMPROVE_VIDEOJS = false;</script>
      \(scripts.map { "<script src=\"\($0)\"></script>" }.joined())
      </head><body>
      \(content)
      <script type="application/json" id="settings">\(settings.replacing("<", with: "\\u003c"))</script>
      <script>
      \(script)
      </script>
      </body></html>

      """
  }

  // MARK: - Private

  private static let style = """
    [hidden]{display:none!important}
    form{display:grid;grid-template-columns:max-content 1fr;gap:10px 16px;align-items:center;max-width:420px;margin:20px 0}
    form input,form select{font:inherit;width:100%;min-width:0;padding:6px}
    .start{font-size:1.1rem;font-weight:600;padding:12px 28px}
    #stage{position:fixed;inset:0;background:#000;overflow:hidden;touch-action:none}
    .slot{position:absolute;inset:0;color:#889;display:flex;align-items:center;justify-content:center}
    .slot>*{position:absolute;inset:0;width:100%;height:100%}.slot video{object-fit:cover;width:100%;height:100%}
    #bar{position:fixed;left:0;right:0;top:0;display:flex;gap:12px;align-items:center;padding:8px 12px;\
    padding-top:max(8px,env(safe-area-inset-top));color:#fff;\
    background:linear-gradient(rgba(0,0,0,.7),transparent);font-size:.9rem}
    #bar span{flex:1;overflow:hidden;text-overflow:ellipsis;white-space:nowrap}#bar button{margin:0}
    """

  private static let content = """
    <main id="setup">
    <header><h1>How long do viewers wait after each swipe?</h1>
    <p class="sub">This page measures it in this browser. Videos are muted.</p></header>
    <form id="form">
    <label for="player">Player</label><select id="player"></select>
    <label for="preload">Preloaded items</label>
    <select id="preload"><option>0</option><option>1</option><option>2</option></select>
    <label for="hand">Swipes</label>
    <select id="hand"><option value="">by itself</option><option value="1">by hand</option></select>
    <label for="dwell">Seconds per item</label><input id="dwell" value="2.5" inputmode="decimal">
    <label for="swipes">Number of swipes</label><input id="swipes" type="number" min="1" max="10000">
    <span></span><button class="start">Start</button>
    </form>
    <p class="note">Seconds per item can be a list, such as 1, 4, 2.5, which repeats. The first item is no swipe.</p>
    <p class="unmet" id="problem" role="alert"></p>
    </main>
    <div id="stage" hidden></div>
    <div id="bar" hidden><span id="status"></span><button id="stop">Stop</button></div>
    <main id="results" hidden></main>
    """

  private static let script = #"""
    const $ = id => document.getElementById(id);
    const settings = JSON.parse($("settings").textContent);
    const query = new URLSearchParams(location.search);
    const sleep = ms => new Promise(resolve => setTimeout(resolve, ms));
    const frameLimit = 1000 * (query.get("limit") || 30);   // an item without a frame for so long has failed
    const settle = 200;                                     // after a drag by hand, until the item is in its place

    // One item in a <video> element, from its creation until it is left.
    class Item {
      constructor(number, url, kind) {
        Object.assign(this, { number, url, stalls: [], frames: 0 });
        this.slot = document.createElement("div");
        this.slot.className = "slot";
        this.slot.style.transform = "translateY(100%)";
        this.video = document.createElement("video");
        Object.assign(this.video, { muted: true, defaultMuted: true, playsInline: true, loop: true, preload: "auto" });
        this.slot.append(this.video);
        $("stage").append(this.slot);
        this.done = new Promise(resolve => { this.resolve = resolve; });
        const isList = /\.m3u8$/i.test(url);
        if (kind === "hls.js" && isList) {
          this.hls = new Hls();
          this.hls.on(Hls.Events.ERROR, (event, data) => { if (data.fatal) this.fail("hls.js: " + data.details); });
          this.hls.loadSource(url);
          this.hls.attachMedia(this.video);
        } else if (kind === "Video.js") {
          const native = { overrideNative: true };
          this.player = videojs(this.video, {
            controls: false, html5: { hls: native, vhs: native, nativeAudioTracks: false, nativeVideoTracks: false } });
          this.player.on("error", () => this.fail("Video.js: " + (this.player.error() || {}).message));
          this.player.src({ src: url, type: isList ? "application/x-mpegURL" : "video/mp4" });
          this.video = this.player.tech(true).el();
        } else {
          this.video.src = url;
        }
        this.video.addEventListener("error", () => {
          const error = this.video.error;
          if (error && !this.hls && !this.player) this.fail(error.message || "media error " + error.code);
        });
        this.video.addEventListener("waiting", () => {
          if (this.frames > 1 && !this.stall && !this.video.seeking) this.stall = { at: performance.now() };
        });
      }
      // Begins to play. `now` is the end of the drag.
      play(now) {
        this.swiped = now;
        this.ready = this.video.readyState >= HTMLMediaElement.HAVE_CURRENT_DATA;
        this.video.requestVideoFrameCallback(() => this.frame());
        const played = (this.player || this.video).play();
        if (played) played.catch(error => { if (error.name === "NotAllowedError") this.fail(error.message); });
        this.timer = setTimeout(() => this.fail(`no frame within ${frameLimit / 1000} s`), frameLimit);
      }
      frame() {
        const wait = performance.now() - this.swiped;
        this.frames += 1;
        if (this.frames === 1) this.first = wait;
        if (this.frames === 2) { this.second = wait; clearTimeout(this.timer); this.resolve(); }
        this.endStall();
        if (!this.left) this.video.requestVideoFrameCallback(() => this.frame());
      }
      endStall() {
        if (!this.stall) return;
        const at = this.stall.at - this.swiped;
        this.stalls.push({ at_ms: at, duration_ms: performance.now() - this.stall.at });
        this.stall = null;
      }
      fail(reason) {
        if (this.failure || this.left) return;
        this.failure = String(reason);
        clearTimeout(this.timer);
        this.resolve();
      }
      leave() {
        this.endStall();
        clearTimeout(this.timer);
        this.left = performance.now() - this.swiped;
        if (this.hls) this.hls.destroy();
        if (this.player) this.player.dispose();
        else { this.video.removeAttribute("src"); this.video.load(); }
        this.slot.remove();
        this.resolve();
      }
    }

    class Feed {
      constructor(options) {
        Object.assign(this, options);
        this.name = "p-" + Array.from(crypto.getRandomValues(new Uint8Array(6)), b => b.toString(16).padStart(2, "0")).join("");
        this.open = new Map();
        this.seen = [];
        this.queue = [];
        this.index = 0;
      }
      // Items that come again have other URLs, so that no cache knows them.
      url(index) {
        const count = settings.paths.length;
        const path = settings.paths[index % count].slice(1);
        return settings.prefix + this.name + "~" + Math.floor(index / count) + "/" + path.split("/").map(encodeURIComponent).join("/");
      }
      item(index) {
        if (!this.open.has(index)) this.open.set(index, new Item(index, this.url(index), this.kind));
        return this.open.get(index);
      }
      // Shows an item. What was on show is left, and then the next ones are loaded.
      show(index, drag) {
        const now = performance.now();
        const last = this.current;
        const leaveLast = () => { if (last) { this.open.delete(last.number); last.leave(); this.note(last); } };
        const isLoaded = this.open.has(index);
        if (!isLoaded) leaveLast();
        const item = this.current = this.item(index);
        item.drag = drag;
        item.swipe = this.seen.length;
        item.play(now);
        item.slot.style.transform = "";
        this.seen.push(item);
        if (isLoaded) leaveLast();
        for (const [other, old] of this.open) {
          if (other < index || other > index + this.preload) { this.open.delete(other); old.swiped = now; old.leave(); }
        }
        item.done.then(() => {
          if (this.current !== item || this.ended) return;
          for (let next = index + 1; next <= index + this.preload; next += 1) this.item(next);
          this.send();
          this.status();
        });
        this.index = index;
        this.status();
      }
      status() {
        const item = this.current;
        const wait = item.failure || (item.second === undefined ? "…" : Math.round(item.first) + " ms");
        $("status").textContent = `${item.swipe}${this.hand ? "" : " of " + this.swipes} · ${wait}`;
      }
      note(item) {
        this.queue.push({
          kind: "swipe", number: item.swipe, item: name(item),
          swipe_ms: item.swiped, drag_ms: item.drag, first_frame_ms: item.first, second_frame_ms: item.second,
          left_ms: item.left, stalls: item.stalls, ready: item.ready, failure: item.failure });
      }
      // Sends what waits, while no item is being started: a report would share the link with it. Without credentials, browsers
      // use connections apart: otherwise the next item would find one that is open and idle, as in no app.
      send(isLast) {
        const reports = this.queue.splice(0);
        if (!settings.reports) return;
        for (const report of reports) {
          const body = JSON.stringify(
            { ...report, playback: this.name, sent_ms: performance.now() },
            (key, value) => typeof value === "number" ? Math.round(10 * value) / 10 : value);
          if (isLast && navigator.sendBeacon) {
            navigator.sendBeacon("/-/report", new Blob([body], { type: "application/json" }));
            continue;
          }
          this.sending = (this.sending || Promise.resolve()).then(async () => {
            const answer = await fetch("/-/report", {
              method: "POST", credentials: "omit", headers: { "Content-Type": "application/json" }, body });
            if (!answer.ok) this.refused = await answer.text();
          }).catch(error => { this.refused = String(error); });
        }
      }
      async run() {
        this.queue.push({ kind: "start", player: this.playerName, agent: navigator.userAgent, preload: this.preload });
        this.send();
        await this.sending;
        this.show(0, 0);
        if (this.hand) return;
        for (let swipe = 1; ; swipe += 1) {
          const item = this.current;
          await Promise.all([item.done, sleep(1000 * this.dwell[(swipe - 1) % this.dwell.length])]);
          if (this.ended) return;
          if (swipe > this.swipes) return this.end();
          await this.drag(1, 0, this.dragTime);
          if (this.ended) return;
          this.show(this.index + 1, this.dragTime);
        }
      }
      // Moves the item on show and its neighbour as a finger would, from a part of the height to the whole.
      async drag(step, from, duration) {
        const began = performance.now();
        for (let part = from; part < 1; ) {
          await new Promise(requestAnimationFrame);
          part = Math.min(1, from + (1 - from) * (performance.now() - began) / Math.max(1, duration));
          this.place(step * part);
        }
      }
      place(part) {
        for (const [index, item] of this.open) {
          item.slot.style.transform = `translateY(${100 * (index - this.index - part)}%)`;
        }
      }
      // A drag by hand: the swipe counts from the moment at which the finger is lifted.
      lift(step, part, duration) {
        if (this.ended || this.isSettling || this.index + step < 0) return this.place(0);
        this.show(this.index + step, duration);
        const slot = this.current.slot;
        slot.animate(
          [{ transform: `translateY(${100 * (step - part)}%)` }, { transform: "none" }], { duration: settle, easing: "ease-out" });
        this.isSettling = true;
        setTimeout(() => { this.isSettling = false; }, settle);
      }
      // `isLeaving` is true if the page may be gone before an answer comes.
      async end(isLeaving) {
        if (this.ended) return;
        this.ended = true;
        if (this.current) { this.current.leave(); this.note(this.current); }
        for (const item of this.open.values()) if (item !== this.current) item.leave();
        this.queue.push({ kind: "end" });
        this.send(isLeaving);
        await this.sending;
        result(this);
      }
    }

    const name = item => settings.names[item.number % settings.names.length];
    // The nearest rank.
    const percentile = (values, share) => {
      const sorted = values.filter(v => v !== undefined).sort((a, b) => a - b);
      return sorted.length ? Math.round(sorted[Math.max(0, Math.ceil(share * sorted.length) - 1)]) + " ms" : "–";
    };
    const element = (tag, text, ...children) => {
      const made = document.createElement(tag);
      if (text !== undefined) made.textContent = text;
      made.append(...children);
      return made;
    };

    function result(feed) {
      const swipes = feed.seen.filter(item => item.swipe > 0);
      const stalls = swipes.flatMap(item => item.stalls);
      const failed = feed.seen.filter(item => item.failure);
      const times = key => swipes.map(item => item[key]);
      const figures = [
        ["swipes", swipes.length],
        ["first frame, p50", percentile(times("first"), .5)], ["first frame, p95", percentile(times("first"), .95)],
        ["second frame, p50", percentile(times("second"), .5)], ["second frame, p95", percentile(times("second"), .95)],
        ["stalls", stalls.length ? `${stalls.length}, ${Math.round(stalls.reduce((s, t) => s + t.duration_ms, 0))} ms` : "0"],
        ["failed", failed.length],
      ];
      const tiles = element("dl");
      tiles.className = "tiles";
      for (const [name, value] of figures) tiles.append(element("div", undefined, element("dt", name), element("dd", value)));
      const alerts = element("ul");
      alerts.className = "alert bad";
      for (const item of failed) alerts.append(element("li", `${name(item)}: ${item.failure}`));
      if (feed.refused) alerts.append(element("li", "A report was not recorded: " + feed.refused));
      const rows = feed.seen.map(item => element("tr", undefined,
        element("td", item.swipe), element("td", item.first === undefined ? "–" : Math.round(item.first)),
        element("td", item.second === undefined ? "–" : Math.round(item.second)),
        element("td", item.stalls.length), element("td", name(item))));
      const head = element("tr");
      for (const name of ["swipe", "first, ms", "second, ms", "stalls", "item"]) head.append(element("th", name));
      const table = element("div", undefined, element("table", undefined, element("thead", undefined, head),
        element("tbody", undefined, ...rows)));
      table.className = "scroll";
      const again = element("button", "Again");
      again.onclick = () => location.reload();
      const about = `${feed.playerName}, ${feed.preload} preloaded` + (settings.reports ? `; recorded as ${feed.name}` : "");
      $("results").replaceChildren(
        element("h1", "Waits after each swipe"), element("p", about), tiles, alerts,
        element("p", "From the end of a drag to the first and to the second frame that the browser shows after it. Swipe 0 is the start."),
        table, again);
      $("stage").hidden = $("bar").hidden = true;
      $("results").hidden = false;
      document.title = "done " + JSON.stringify({
        swipes: swipes.length, first: times("first"), second: times("second"), stalls: stalls.length,
        failed: failed.map(item => item.failure), refused: feed.refused });
    }

    // Fingers, the wheel and keys.
    function handle(feed) {
      const stage = $("stage");
      let began = null;
      stage.onpointerdown = event => {
        began = { y: event.clientY, at: performance.now() };
        stage.setPointerCapture(event.pointerId);
      };
      stage.onpointermove = event => { if (began && !feed.isSettling) feed.place((began.y - event.clientY) / innerHeight); };
      stage.onpointercancel = () => { began = null; feed.place(0); };
      stage.onpointerup = event => {
        if (!began) return;
        const part = (began.y - event.clientY) / innerHeight;
        const duration = performance.now() - began.at;
        began = null;
        const isSwipe = Math.abs(part) > .3 || Math.abs(part) > .05 && Math.abs(part) / duration > .0005;
        if (isSwipe) feed.lift(Math.sign(part), part, duration); else feed.place(0);
      };
      const step = direction => feed.lift(direction, 0, 0);
      let wheeled = 0;
      stage.onwheel = event => {
        if (event.timeStamp - wheeled > 150 && event.deltaY) step(Math.sign(event.deltaY));
        wheeled = event.timeStamp;   // one swipe for all that a wheel or a touchpad sends without a pause
      };
      document.onkeydown = event => {
        if (event.key === "ArrowDown" || event.key === " ") step(1);
        if (event.key === "ArrowUp") step(-1);
      };
    }

    const kinds = [["native", "native"]];
    if (window.Hls && Hls.isSupported()) kinds.push(["hls.js", "hls.js " + (Hls.version || "")]);
    if (window.videojs) kinds.push(["Video.js", "Video.js " + videojs.VERSION]);
    for (const [value, name] of kinds) $("player").append(new Option(name, value));
    $("swipes").value = Math.max(1, settings.paths.length - 1);
    for (const id of ["player", "preload", "hand", "dwell", "swipes"]) if (query.has(id)) $(id).value = query.get(id);
    if (!settings.paths.length) {
      $("problem").textContent = "The folder has no playlists and no MP4 files.";
    } else if (!HTMLVideoElement.prototype.requestVideoFrameCallback) {
      $("problem").textContent = "This browser does not say when it shows a frame (requestVideoFrameCallback).";
    } else if ($("player").selectedIndex < 0) {
      $("problem").textContent = "The player of the address is not here. Pass its script with --script.";
    }

    if ($("problem").textContent) $("problem").dataset.lasting = "yes";

    $("form").onsubmit = event => {
      event.preventDefault();
      if ($("problem").dataset.lasting) return;
      const dwell = $("dwell").value.split(/[,; ]+/).map(Number).filter(seconds => seconds > 0 && seconds < 3600);
      const swipes = Math.floor(Number($("swipes").value));
      if (!dwell.length) $("problem").textContent = "Seconds per item: a number above 0, or several.";
      else if (!(swipes > 0)) $("problem").textContent = "Number of swipes: 1 or more.";
      else $("problem").textContent = "";
      if ($("problem").textContent) return;
      const feed = new Feed({
        kind: $("player").value, playerName: $("player").selectedOptions[0].text.trim(), preload: Number($("preload").value),
        hand: $("hand").value !== "", dwell, swipes, dragTime: Number(query.get("drag") || 250) });
      window.feed = feed;
      $("setup").hidden = true;
      $("stage").hidden = $("bar").hidden = false;
      $("stop").onclick = () => feed.end();
      addEventListener("pagehide", () => feed.end(true));
      document.addEventListener("visibilitychange", () => { if (document.hidden) feed.end(true); });
      if (feed.hand) handle(feed);
      feed.run().catch(error => { feed.refused = String(error); feed.end(); });
    };
    if (query.has("start") && !$("problem").textContent) $("form").requestSubmit();
    """#
}
