import Foundation
@testable import ReelCheck
import ReelCore
import ReelFFmpeg
import ReelManifest
import ReelPlayback
import ReelSimulation
import ReelSources
import ReelTestSupport
import ReelTesting
import ReelTransport
import Testing

@Suite("Replays of a start", .hangLimit)
struct StartReplayTests {
  private let lte = CheckOptions.Link(name: "lte", spec: .lte)
  private let slow = CheckOptions.Link(name: "3g", spec: .threeG)

  /// A start that is recorded up to its first frame.
  private struct Recorded {
    let recording: StartRecording
    let replay: StartReplay
    var facts = StreamFacts()

    init(
      _ fetcher: any Fetching, _ url: URL, format: String = "mp4", links: [CheckOptions.Link]
    ) async throws {
      recording = StartRecording(fetcher)
      let player = Player(fetcher: recording, logger: silentLogger)
      let item = PlayerItem(url: url)
      player.preloadTarget = PreloadTarget(stage: .firstFrame)
      player.replaceCurrentItem(with: item)
      for await status in item.status.values where status != .unknown { break }
      await player.stopAndWait()
      recording.close()
      var options = CheckOptions()
      options.links = links
      replay = StartReplay(
        recording: recording, source: .url(url), configuration: LoadingConfiguration(), options: options,
        logger: silentLogger)
      facts.format = format
      facts.url = url
      var start = StartFacts()
      start.codec = .h264
      start.pixelCount = 192 * 108
      facts.start = start
      try await StartStructure.describe(&facts, from: recording)
    }

    func results(_ findings: inout [Finding]) async throws -> [StartResult] {
      try await replay.results(for: &findings, facts: facts)
    }
  }

  private func file(_ path: String) -> URL { URL(fileURLWithPath: Fixtures.path(path)) }

  /// A fetcher with one file in memory.
  private func stored(_ bytes: [UInt8]) throws -> (URL, FixtureFetcher) {
    (try #require(URL(string: "http://host/file.mp4")), FixtureFetcher { _, _ in .bytes(bytes) })
  }

  @Test("The course is that of a walk through a feed with this item, and its parts add up")
  func course() async throws {
    // reel feed --virtual --device mid --link lte,ideal
    let expected = [
      ("media/h264-faststart.mp4", 205.110), ("media/h264.ts", 204.145), ("hls-ts/master.m3u8", 344.683),
      ("hls-fmp4/master.m3u8", 345.393), ("dash-number/manifest.mpd", 276.252),
      ("dash-ondemand/manifest.mpd", 275.154),
    ]
    for (path, milliseconds) in expected {
      let recording = StartRecording(TransportFetcher(logger: silentLogger))
      let replay = StartReplay(
        recording: recording, source: .url(file(path)), configuration: LoadingConfiguration(),
        options: CheckOptions(), logger: silentLogger)
      let course = try await replay.course(on: .lte, [])
      #expect(abs(course.milliseconds - milliseconds) < 0.001, "\(path)")
      let parts = course.connecting + course.answering + course.receiving + course.decoding
      #expect(abs(parts - course.milliseconds) < 0.001)
      let again = try await replay.course(on: .lte, [])
      #expect(again.milliseconds == course.milliseconds && again.requests == course.requests)
    }
  }

  @Test("A file has the same course as over HTTP")
  func http() async throws {
    let local = try await Recorded(
      TransportFetcher(logger: silentLogger), file("hls-ts/master.m3u8"), format: "hls", links: [])
    let course = try await local.replay.course(on: .lte, [])
    try await Origin.use { origin in
      let remote = try await Recorded(
        TransportFetcher(logger: silentLogger), origin.baseURL.appending(path: "hls-ts/master.m3u8"),
        format: "hls", links: [])
      // A loaded machine may answer late.
      #expect(
        try await remote.replay.course(
          on: .lte, [.dropWaits([.source, .manifest, .segment, .initialization])]
        ).milliseconds == course.milliseconds)
    }
  }

  @Test("Moving the index is as good as a file with the index in front")
  func index() async throws {
    let fetcher = TransportFetcher(logger: silentLogger)
    let last = try await Recorded(fetcher, file("media/h264-moov-last.mp4"), links: [slow])
    let first = try await Recorded(fetcher, file("media/h264-faststart.mp4"), links: [])
    let facts = try #require(last.facts.file)
    #expect(facts.isIndexLast && !facts.isFragmented && facts.hiddenSampleCount == 0)
    #expect(first.facts.file?.isIndexLast == false)
    var findings = StartFindings.findings(in: last.facts, Thresholds())
    // The file is small.
    #expect(findings.map(\.name) == ["moov-last"] && findings.first?.level == .note)
    let result = try #require(try await last.results(&findings).first)
    let best = try await first.replay.course(on: .threeG, []).milliseconds
    #expect(abs(result.possibleMilliseconds - best) < best * 0.02)
    #expect(result.steps.map(\.finding) == ["moov-last"])
    let cost = try #require(findings.first?.costs.first)
    #expect(
      cost.link == "3g" && cost.player == .reel
        && abs(cost.milliseconds - (result.now.milliseconds - best)) < 10)
    #expect(result.floorMilliseconds <= best && result.floorMilliseconds > best * 0.95)
    #expect(result.floorRequestCount == 1)
  }

  @Test("Padding before the first frame is found, and its removal is as good as a file without it")
  func padding() async throws {
    let bytes = try Fixtures.bytes("media/h264-faststart.mp4")
    let count = 300_000
    let padding = mp4Box("free", [UInt8](repeating: 0, count: count - 8))
    let boxes = MP4Box.all(in: bytes[...])
    let movie = try #require(boxes.first { $0.type == "moov" })
    var index = Array(bytes[movie.start..<movie.end])
    shiftChunks(in: &index, by: count)
    let file = Array(bytes[..<movie.start]) + index + padding + Array(bytes[movie.end...])
    let (url, fetcher) = try stored(file)
    let padded = try await Recorded(fetcher, url, links: [lte])
    let plain = try await Recorded(
      TransportFetcher(logger: silentLogger), self.file("media/h264-faststart.mp4"), links: [])
    var findings = StartFindings.findings(in: padded.facts, Thresholds())
    #expect(findings.map(\.name) == ["start-bytes/padding"])
    let result = try #require(try await padded.results(&findings).first)
    let best = try await plain.replay.course(on: .lte, []).milliseconds
    #expect(abs(result.possibleMilliseconds - best) < best * 0.02)
    // A player that reads in order waits for all of it.
    let whole = try #require(findings.first?.costs.first { $0.player == .whole })
    #expect(abs(whole.milliseconds - 200) < 1)
    // Without a slow link it is no finding.
    var cheap = StartFindings.findings(in: plain.facts, Thresholds())
    _ = try await plain.results(&cheap)
    #expect(cheap.isEmpty)
  }

  @Test("Audio that is stored far ahead of the first frame is found")
  func interleaving() async throws {
    let source = try StoredMP4(try Fixtures.bytes("media/h264-long.mp4"))
    let (url, fetcher) = try stored(
      try source.stored(.pieces(seconds: 8, videoFirst: false), indexFirst: true))
    var ahead = try await Recorded(fetcher, url, links: [slow])
    let surplus = try #require(ahead.facts.file?.surplus.first { $0.kind == .interleaving })
    #expect(surplus.byteCount > 50_000)
    ahead.facts.start?.pixelCount = 1
    var findings = StartFindings.findings(in: ahead.facts, Thresholds())
    let result = try #require(try await ahead.results(&findings).first)
    #expect(findings.map(\.name) == ["start-bytes/interleaving"])
    let (goodURL, goodFetcher) = try stored(try source.stored(.videoAhead(0), indexFirst: true))
    let good = try await Recorded(goodFetcher, goodURL, links: [])
    #expect(good.facts.file?.surplus.contains { $0.kind == .interleaving } == false)
    let best = try await good.replay.course(on: .threeG, []).milliseconds
    #expect(abs(result.possibleMilliseconds - best) < best * 0.1)
  }

  @Test("Frames that an edit list hides are counted, and cost nothing once they are gone")
  func edit() async throws {
    let recorded = try await Recorded(
      TransportFetcher(logger: silentLogger), file("media/editlist.mp4"), links: [lte])
    #expect(recorded.facts.file?.hiddenSampleCount == 12)
    let finding = try #require(
      StartFindings.findings(in: recorded.facts, Thresholds()).first { $0.name == "start-bytes/edit" })
    let now = try await recorded.replay.course(on: .lte, [])
    let mended = try await recorded.replay.course(on: .lte, [try #require(finding.change)])
    // Twelve frames of 1.25 ms.
    #expect(now.milliseconds - mended.milliseconds > 12)
    // That is too little to be a finding.
    var findings = [finding]
    _ = try await recorded.results(&findings)
    #expect(findings.isEmpty)
  }

  @Test("The waits and redirects of a server count, and can be dropped", .hangLimit)
  func server() async throws {
    var configuration = Origin.Configuration(directory: Fixtures.folder)
    configuration.faults = [
      FaultRule("index.m3u8", .delay(.milliseconds(300))), FaultRule("segment-0.ts", .redirectChain(2)),
    ]
    try await Origin.use(configuration) { origin in
      let recorded = try await Recorded(
        TransportFetcher(logger: silentLogger), origin.baseURL.appending(path: "hls-ts/master.m3u8"),
        format: "hls", links: [lte])
      let now = try await recorded.replay.course(on: .lte, []).milliseconds
      let waits = try await recorded.replay.course(
        on: .lte, [.dropWaits([.source, .manifest, .segment, .initialization])]
      ).milliseconds
      let redirects = try await recorded.replay.course(on: .lte, [.dropRedirects]).milliseconds
      let both = try await recorded.replay.course(
        on: .lte, [.dropWaits([.source, .manifest, .segment, .initialization]), .dropRedirects]
      ).milliseconds
      // The wait is measured, and a loaded machine makes it longer.
      #expect(now - waits > 280)
      #expect(abs(waits - both - 140) < 1 && now > redirects)
      #expect(abs(both - 344.683) < 1)
    }
  }

  @Test("A server that ignores ranges sends the whole file")
  func ranges() async throws {
    let source = try StoredMP4(try Fixtures.bytes("media/h264-long.mp4"))
    let bytes = try source.stored(.videoAhead(0), indexFirst: false)
    try await Origin.use(.ignoringRanges(of: bytes, at: "/file.mp4")) { origin in
      let url = origin.baseURL.appending(path: "file.mp4")
      let recorded = try await Recorded(TransportFetcher(logger: silentLogger), url, links: [slow])
      let now = try await recorded.replay.course(
        on: .threeG, [.dropWaits([.source, .manifest, .segment, .initialization])]
      ).milliseconds
      let served = try await recorded.replay.course(
        on: .threeG,
        [
          .serveRanges(url: url.absoluteString),
          .dropWaits([.source, .manifest, .segment, .initialization]),
        ]
      ).milliseconds
      #expect(served < now - 1000)
      let (localURL, fetcher) = try stored(bytes)
      let local = try await Recorded(fetcher, localURL, links: [])
      #expect(try await local.replay.course(on: .threeG, []).milliseconds == served)
    }
  }

  @Test("Connections that are closed after each answer cost handshakes")
  func connections() async throws {
    let spec = LinkSpec.lte
    let simulation = SimulatedRuntime()
    let fetcher = FixtureFetcher()
    let times = Locked<[Duration]>([])
    for closes in [false, true] {
      let link = ThrottledFetcher(
        fetcher, link: spec, in: simulation, limit: nil,
        servers: LinkServers { _, _ in
          var behaviour = LinkServers.Behaviour()
          behaviour.closesConnection = closes
          return behaviour
        } onDeparture: { _, _ in
        })
      let url = try #require(URL(string: "http://host/hls-ts/low/index.m3u8"))
      try await simulation.run {
        let start = simulation.now
        for _ in 0..<3 {
          let request = FetchRequest(url: url, purpose: .resource)
          _ = try await link.fetch(request).body.collect(upTo: 1 << 20)
        }
        times.withLock { $0.append(simulation.now - start) }
      }
    }
    let (kept, closed) = times.withLock { ($0[0], $0[1]) }
    #expect(closed - kept == .milliseconds(140))
  }

  @Test("Null packets, boxes that hold nothing, and comments are found")
  func structure() {
    var packets = [UInt8](repeating: 0, count: 188 * 6)
    for index in 0..<6 {
      packets[188 * index] = 0x47
      if index == 2 || index == 3 { (packets[188 * index + 1], packets[188 * index + 2]) = (0x1f, 0xff) }
    }
    #expect(StartStructure.padding(in: packets) == [376..<752])
    let boxes =
      mp4Box("styp", [0, 0, 0, 0]) + mp4Box("free", [UInt8](repeating: 0, count: 12)) + mp4Box("moof", [1])
    #expect(StartStructure.padding(in: boxes) == [12..<32])
    let playlist = "#EXTM3U\n# made by\n\n#EXTINF:4,\na.ts\n"
    #expect(StartStructure.surplus(in: Array(playlist.utf8)) == [8..<19])
    #expect(StartStructure.surplus(in: Array("<MPD><!-- x --></MPD>".utf8)) == [5..<15])
    let events = "#EXTM3U\n#EXT-X-DATERANGE:ID=\"a\"\n#EXTINF:1,\na.ts\n"
    #expect(StartStructure.surplus(in: Array(events.utf8)) == [8..<32])
    let period = "<Period><EventStream schemeIdUri=\"a\"><Event/></EventStream><AdaptationSet/></Period>"
    #expect(StartStructure.surplus(in: Array(period.utf8)) == [8..<59])
  }

  @Test(
    "Bytes that are no MP4, or that lie about sizes, give no structure",
    arguments: ["bad/cut-in-moov.mp4", "bad/text.mp4", "bad/empty.mp4"])
  func hostile(path: String) async throws {
    let bytes = try Fixtures.bytes(path)
    let facts = try await FileStructure { range in
      let start = min(Int(range.offset), bytes.count)
      return Array(bytes[start..<min(bytes.count, start + Int(clamping: range.length ?? .max))])
    }.facts(byteCount: Int64(bytes.count))
    #expect(facts == nil || facts?.firstSample == nil)
  }

  @Test("An index with many more samples than it has room for is not read further")
  func hugeCounts() async throws {
    var bytes = try Fixtures.bytes("media/h264-faststart.mp4")
    while let place = bytes.firstRange(of: Array("stsz".utf8)) {
      bytes.replaceSubrange(place, with: Array("stsX".utf8))
      bytes.replaceSubrange(place.lowerBound + 12..<place.lowerBound + 16, with: [0xff, 0xff, 0xff, 0xff])
    }
    for index in bytes.indices.dropLast(4) where bytes[index..<index + 4].elementsEqual("stsX".utf8) {
      bytes[index + 3] = UInt8(ascii: "z")
    }
    let file = bytes
    let facts = try await FileStructure { range in
      Array(
        file[min(Int(range.offset), file.count)..<min(file.count, Int(range.offset + (range.length ?? 0)))])
    }.facts(byteCount: Int64(bytes.count))
    #expect(facts?.index != nil)
  }

  /// Adds to all offsets of chunks.
  private func shiftChunks(in index: inout [UInt8], by count: Int) {
    var position = 0
    while let table = index[position...].firstRange(of: Array("stco".utf8)) {
      let body = table.upperBound + 4
      let entries = Int(index[body..<body + 4].bigEndianNumber)
      for entry in 0..<entries {
        let place = body + 4 + 4 * entry
        let offset = index[place..<place + 4].bigEndianNumber + UInt64(count)
        index.replaceSubrange(place..<place + 4, with: bigEndian(offset, bytes: 4))
      }
      position = table.upperBound
    }
  }
}
