// The moving picture: one stream of /api/video, always at its live edge, drawn by whom start() is told.
//
// The stream is fragmented MP4 with H.264. Three ways to show it, the first that there is:
//   codecs   WebCodecs: every frame is decoded and drawn as it comes (secure contexts: https, loopback)
//   media    Media Source Extensions: catches up by a faster rate, far behind by a jump
//   mjpeg    Motion JPEG in an <img>, which asks nothing of the browser
// A stream that ends (another size, another input, a server that went) is fetched anew; the last picture stays meanwhile.

const Source = window.MediaSource || window.ManagedMediaSource;
const FAR = 1, NEAR = 0.12; // seconds behind: jump, hurry
const RETRY_MS = [0, 250, 500, 1000, 2000];

// ---- fragmented MP4, as far as it is needed: what a decoder must be told, and where the samples are ----

function* boxes(view, from, to) {
  while (to - from >= 8) {
    const size = view.getUint32(from);
    if (size < 8 || size > to - from)
      return;
    yield {type: view.getUint32(from + 4), from: from + 8, to: from + size};
    from += size;
  }
}

const named = name => [...name].reduce((sum, letter) => sum * 256 + letter.charCodeAt(0), 0);
const MOOV = named("moov"), MOOF = named("moof"), MDAT = named("mdat"), TRAF = named("traf"), TRUN = named("trun"), AVCC = named("avcC");

function avcc(view, from, to) {
  for (let at = from; at + 8 <= to; at++)
    if (view.getUint32(at + 4) === AVCC)
      return new Uint8Array(view.buffer, view.byteOffset + at + 8, view.getUint32(at) - 8).slice();
}

// Sizes of the samples of a moof. Only sizes matter: frames are shown as they come.
function sampleSizes(view, moof) {
  const sizes = [];
  for (const traf of boxes(view, moof.from, moof.to))
    for (const trun of traf.type === TRAF ? boxes(view, traf.from, traf.to) : []) {
      if (trun.type !== TRUN)
        continue;
      const flags = view.getUint32(trun.from) & 0xffffff, count = view.getUint32(trun.from + 4);
      const each = [0x100, 0x200, 0x400, 0x800].filter(bit => flags & bit);
      let at = trun.from + 8 + (flags & 1 ? 4 : 0) + (flags & 4 ? 4 : 0);
      for (let k = 0; k < count && at + 4 * each.length <= trun.to; k++, at += 4 * each.length)
        sizes.push(flags & 0x200 ? view.getUint32(at + 4 * each.indexOf(0x200)) : 0);
    }
  return sizes;
}

// Whether a sample begins anew: it has a slice of an IDR picture.
function isKey(data) {
  const view = new DataView(data.buffer, data.byteOffset, data.length);
  for (let at = 0; at + 5 <= data.length; at += 4 + view.getUint32(at))
    if ((data[at + 4] & 31) === 5)
      return true;
  return false;
}

// Cuts a stream into boxes: moov to head(avcC), samples to sample(data).
class Cutter {
  constructor(head, sample) {
    Object.assign(this, {head, sample, rest: new Uint8Array(0), sizes: []});
  }

  push(data) {
    const all = new Uint8Array(this.rest.length + data.length);
    all.set(this.rest);
    all.set(data, this.rest.length);
    const view = new DataView(all.buffer);
    let done = 0;
    for (const box of boxes(view, 0, all.length)) {
      this.take(view, all, box);
      done = box.to;
    }
    this.rest = all.slice(done);
  }

  take(view, all, box) {
    if (box.type === MOOV)
      this.head(avcc(view, box.from, box.to));
    if (box.type === MOOF)
      this.sizes = sampleSizes(view, box);
    if (box.type !== MDAT)
      return;
    let at = box.from;
    for (const size of this.sizes) {
      const end = this.sizes.length === 1 ? box.to : at + size;
      this.sample(all.subarray(at, Math.min(end, box.to)));
      at = end;
    }
  }
}

// ---- three ways ----

class ByCodecs {
  constructor(type, hooks) {
    this.codec = /codecs="([^"]+)"/.exec(type)[1];
    this.hooks = hooks;
    this.stamp = 0;
    this.cutter = new Cutter(head => this.configure(head), data => this.decode(data));
    this.decoder = new VideoDecoder({output: frame => this.show(frame), error: error => hooks.fail(error)});
  }

  configure(description) {
    this.decoder.configure({codec: this.codec, description, optimizeForLatency: true});
    this.needsKey = true;
  }

  decode(data) {
    const key = isKey(data);
    if (this.decoder.decodeQueueSize > 30)
      this.needsKey = true; // too slow for this stream: go on where it begins anew
    if (this.decoder.state !== "configured" || (this.needsKey && !key))
      return;
    this.needsKey = false;
    this.decoder.decode(new EncodedVideoChunk({type: key ? "key" : "delta", timestamp: this.stamp += 1000, data}));
  }

  show(frame) {
    this.hooks.draw(frame, frame.displayWidth, frame.displayHeight);
    frame.close();
  }

  push(data) { this.cutter.push(data); }
  behind() { return this.decoder.decodeQueueSize / 25; }
  close() { if (this.decoder.state !== "closed") this.decoder.close(); }
}

class ByMedia {
  constructor(type, hooks) {
    this.hooks = hooks;
    this.video = Object.assign(document.createElement("video"), {muted: true, playsInline: true, disableRemotePlayback: true});
    this.media = new Source();
    this.waits = [];
    this.url = URL.createObjectURL(this.media);
    this.media.addEventListener("sourceopen", () => this.opened(type), {once: true});
    this.video.addEventListener("error", () => hooks.fail(this.video.error));
    this.video.src = this.url;
    this.watch();
  }

  opened(type) {
    URL.revokeObjectURL(this.url);
    this.buffer = this.media.addSourceBuffer(type);
    this.buffer.addEventListener("updateend", () => this.next());
    this.next();
  }

  push(data) {
    this.waits.push(data);
    this.next();
  }

  next() {
    if (!this.buffer || this.buffer.updating || this.media.readyState !== "open")
      return;
    this.follow();
    const ranges = this.buffer.buffered, now = this.video.currentTime;
    if (ranges.length && now - ranges.start(0) > 20)
      this.buffer.remove(0, now - 5);
    else if (this.waits.length)
      this.buffer.appendBuffer(this.waits.length > 1 ? joined(this.waits.splice(0)) : this.waits.shift());
  }

  follow() {
    const ranges = this.buffer.buffered, video = this.video;
    if (!ranges.length)
      return;
    const lag = this.behind(), begin = ranges.start(ranges.length - 1), end = ranges.end(ranges.length - 1);
    if (lag > FAR || video.currentTime < begin)
      video.currentTime = Math.max(begin, end - 0.03);
    video.playbackRate = lag > NEAR ? Math.min(2, 1 + lag) : 1;
    if (video.paused)
      video.play().catch(() => {});
  }

  behind() {
    const ranges = this.buffer?.buffered;
    return ranges?.length ? ranges.end(ranges.length - 1) - this.video.currentTime : 0;
  }

  // Draw each frame once; where the browser does not tell, whenever it draws.
  watch() {
    const video = this.video, frames = "requestVideoFrameCallback" in video;
    const draw = () => {
      if (this.closed)
        return;
      if (video.videoWidth && video.readyState >= 2)
        this.hooks.draw(video, video.videoWidth, video.videoHeight);
      frames ? video.requestVideoFrameCallback(draw) : requestAnimationFrame(draw);
    };
    draw();
  }

  close() {
    this.closed = true;
    this.video.removeAttribute("src");
    this.video.load();
  }
}

function joined(parts) {
  const all = new Uint8Array(parts.reduce((sum, part) => sum + part.length, 0));
  let at = 0;
  for (const part of parts) {
    all.set(part, at);
    at += part.length;
  }
  return all;
}

function can(way, type) {
  if (!/^video\/mp4/.test(type))
    return false;
  return way === "codecs" ? "VideoDecoder" in window && /codecs="avc1/.test(type) : Source?.isTypeSupported(type);
}

// ---- the stream ----

// hooks: draw(image, width, height, view) with each picture; state("playing" | "waiting" | "refused", error).
export class Stream {
  constructor(hooks, ways) {
    this.hooks = hooks;
    this.ways = ways || ["codecs", "media"];
    this.tries = 0;
  }

  // Show this view: {kind, stage, other}. The picture there is stays until the first of the new ones.
  show(view) {
    this.view = view;
    this.tries = 0;
    this.connect();
  }

  stop() {
    this.abort?.abort();
    this.abort = null;
    clearTimeout(this.timer);
    this.image?.removeAttribute("src"); // ends its stream
    this.image?.remove();
    this.image = null;
    this.way?.close();
    this.way = null;
  }

  // The picture may come anew at once: the input is another one, or came back.
  again() {
    if (this.view && !this.playing)
      this.show(this.view);
  }

  address(codec) {
    const {kind, stage, other} = this.view, query = new URLSearchParams({kind, codec});
    if (stage >= 0)
      query.set("stage", stage);
    if (other)
      query.set("other", other);
    return "api/video?" + query;
  }

  async connect() {
    this.stop();
    const abort = this.abort = new AbortController(), view = this.view;
    const live = () => this.abort === abort;
    const hooks = {
      draw: (image, width, height) => live() && this.drawn(image, width, height, view),
      fail: error => { if (live()) { this.ways = this.ways.slice(1); abort.abort(); this.connect(); } },
    };
    if (!this.ways.length)
      return this.pictures(hooks);
    try {
      await this.read(abort, hooks);
    } catch (error) {
      if (live())
        this.ended(error);
      return;
    }
    if (live())
      this.ended();
  }

  async read(abort, hooks) {
    const response = await this.hooks.open(this.address("h264"), abort.signal);
    const type = response.headers.get("Content-Type") || "";
    const way = this.ways.find(name => can(name, type));
    if (!way) {
      abort.abort();
      this.abort = {abort() {}};
      return this.pictures({...hooks, draw: (image, width, height) => this.drawn(image, width, height, this.view)});
    }
    this.way = way === "codecs" ? new ByCodecs(type, hooks) : new ByMedia(type, hooks);
    this.shownBy = way;
    for (const reader = response.body.getReader();;) {
      const {done, value} = await reader.read();
      if (done)
        return;
      this.way?.push(value);
    }
  }

  drawn(image, width, height, view) {
    this.tries = 0;
    this.frames = (this.frames || 0) + 1;
    if (!this.playing) {
      this.playing = true;
      this.hooks.state("playing");
    }
    this.hooks.draw(image, width, height, view);
  }

  ended(error) {
    this.playing = false;
    const refused = error?.status >= 400 && error.status !== 503;
    this.hooks.state(refused ? "refused" : "waiting", error);
    if (error?.status === 401)
      return; // until there is a token: again()
    const delay = RETRY_MS[Math.min(this.tries++, RETRY_MS.length - 1)];
    this.timer = setTimeout(() => this.connect(), refused ? 2000 : delay);
  }

  // Motion JPEG: the browser replaces the picture by itself.
  pictures(hooks) {
    const image = this.image = document.createElement("img");
    this.shownBy = "mjpeg";
    image.className = "hidden";
    image.alt = "";
    image.src = this.address("mjpeg");
    document.body.append(image);
    const draw = () => {
      if (this.image !== image)
        return;
      if (image.naturalWidth)
        hooks.draw(image, image.naturalWidth, image.naturalHeight);
      requestAnimationFrame(draw);
    };
    image.onerror = () => { if (this.image === image) this.ended(); };
    draw();
  }
}
