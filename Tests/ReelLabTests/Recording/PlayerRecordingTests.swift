import Foundation
import ReelCore
import ReelTestSupport
import Testing

@testable import ReelLab

@Suite("Recordings of players")
struct PlayerRecordingTests {
  private let run = RecordedRun(
    startedAt: "2026-11-29T01:30:00Z",
    items: [.init(name: "a/index.m3u8", path: "/a/index.m3u8"), .init(name: "b.mp4", path: "/b.mp4")],
    link: .init(text: "10Mbit/50ms", bitsPerSecond: 10_000_000, roundTripMs: 50))

  /// Returns a report as a player sends it.
  private func report(_ kind: String, _ playback: String = "p", _ fields: String = "", sent: Double = 1_000)
    -> [UInt8]
  {
    Array(
      #"{"kind":"\#(kind)","playback":"\#(playback)","sent_ms":\#(sent)\#(fields.isEmpty ? "" : ",")\#(fields)}"#
        .utf8)
  }

  private func swipe(_ item: String = "b.mp4", at time: Double, sent: Double) -> [UInt8] {
    report(
      "swipe", "p",
      #""item":"\#(item)","swipe_ms":\#(time),"first_frame_ms":80,"second_frame_ms":113.5,"stalls":[{"at_ms":200,"duration_ms":40}]"#,
      sent: sent)
  }

  private func lines(_ recording: PlayerRecording) throws -> [RecordedLine] {
    var lines: [RecordedLine] = []
    while let line = try recording.next() { lines.append(line) }
    return lines
  }

  @Test("Queries of URLs in texts are not recorded, and lines may have spaces, as other programs write them")
  func texts() throws {
    let folder = try TemporaryFolder()
    let writer = try RecordingWriter(path: folder.path("run.jsonl"), run: run)
    try writer.add(
      reportOf: report("start", "p", #""player":"native","agent":"curl https://h/a?token=SECRET""#),
      from: "192.168.1.7", at: .seconds(4))
    try writer.finish()
    let text = try folder.text("run.jsonl")
    #expect(text.contains("curl https:") && !text.contains("SECRET"))
    try folder.write(text.replacing("\":\"", with: "\": \""), to: "spaces.jsonl")
    let recording = try PlayerRecording(path: folder.path("spaces.jsonl"))
    #expect(try lines(recording).count == 1)
  }

  @Test("What is written can be read")
  func roundTrip() throws {
    let folder = try TemporaryFolder()
    let writer = try RecordingWriter(path: folder.path("run.jsonl"), run: run)
    var request = RecordedRequest(
      receivedMs: 12.345, bytes: 7, method: "GET", path: "/a/s1.m4s", connection: 3)
    request.query = ["token"]
    request.client = writer.client("192.168.1.7")
    request.cmcd = CMCD(headers: [("CMCD-Object", "br=(3200;v),ot=v")], query: "")
    writer.add(request)
    try writer.add(
      reportOf: report("start", "p", #""player":"native","preload":1"#), from: "192.168.1.7", at: .seconds(4))
    try writer.add(reportOf: swipe("/b.mp4", at: 2_000, sent: 3_000), from: "192.168.1.8", at: .seconds(6))
    try writer.finish()

    let recording = try PlayerRecording(path: folder.path("run.jsonl"))
    #expect(recording.run == run)
    let lines = try lines(recording)
    #expect(lines.first == .request(request))
    guard lines.count == 3, case .report(let start, nil) = lines[1],
      case .report(let swipe, let time) = lines[2]
    else {
      Issue.record("\(lines)")
      return
    }
    #expect(start.kind == .start && start.player == "native" && start.preload == 1)
    #expect(start.client == request.client && swipe.client != request.client)
    #expect(swipe.item == "b.mp4")
    #expect(swipe.firstFrameMs == 80 && swipe.secondFrameMs == 113.5)
    #expect(swipe.stalls == [.init(atMs: 200, durationMs: 40)])
    #expect(swipe.receivedMs == 6_000 && swipe.clockOffsetMs == 3_000)
    #expect(time == 5_000)
    #expect(recording.notes.isEmpty)
  }

  @Test("A recording is for its owner only, holds no address, and is never replaced")
  func file() throws {
    let folder = try TemporaryFolder()
    let path = folder.path("run.jsonl")
    let writer = try RecordingWriter(path: path, run: run)
    try writer.add(reportOf: report("start"), from: "192.168.1.7", at: .zero)
    let attributes = try FileManager.default.attributesOfItem(atPath: path)
    #expect((attributes[.posixPermissions] as? NSNumber)?.intValue == 0o600)
    #expect(try !folder.text("run.jsonl").contains("192.168"))
    let other = try RecordingWriter(path: folder.path("other.jsonl"), run: run)
    #expect(other.client("192.168.1.7") != writer.client("192.168.1.7"))
    let error = #expect(throws: ReelError.self) { try RecordingWriter(path: path, run: run) }
    #expect(error?.kind == .cannotCreateOutput)
    #expect(error?.advice?.contains("never replaced") == true)
  }

  @Test(
    "Reports that are refused leave the recording whole",
    arguments: [
      (#"{"kind":"swipe"}"#, 400, "playback: the field is missing"),
      ("no JSON", 400, "the report can't be read"), ("", 400, "the report can't be read"),
      ("[1]", 400, "the report can't be read"),
      (#"{"kind":"jump","playback":"p","sent_ms":1}"#, 400, "kind: an unknown value"),
      (#"{"kind":"end","playback":"p","sent_ms":"1"}"#, 400, "sent_ms: must be a number"),
      (#"{"kind":"end","playback":"p","sent_ms":-1}"#, 400, "sent_ms is not a time"),
      (#"{"kind":"end","playback":"p","sent_ms":1e300}"#, 400, "sent_ms is not a time"),
      (#"{"kind":"end","playback":"a b","sent_ms":1}"#, 400, "playback takes 1 to 64"),
      (#"{"kind":"end","playback":"q","sent_ms":1}"#, 404, "unknown playback q"),
      (#"{"kind":"start","playback":"p","sent_ms":1}"#, 409, "has started before"),
      (#"{"kind":"swipe","playback":"p","sent_ms":9,"item":"c.mp4","swipe_ms":1}"#, 422, "no item c.mp4"),
      (#"{"kind":"swipe","playback":"p","sent_ms":9,"item":"b.mp4"}"#, 400, "no swipe_ms"),
      (#"{"kind":"swipe","playback":"p","sent_ms":9,"swipe_ms":1}"#, 400, "no item"),
      (
        #"{"kind":"swipe","playback":"p","sent_ms":9,"item":"b.mp4","swipe_ms":50}"#, 400,
        "before what it reports"
      ),
      (
        #"{"kind":"swipe","playback":"p","sent_ms":9,"item":"b.mp4","swipe_ms":1,"first_frame_ms":5,"second_frame_ms":4}"#,
        400, "second_frame_ms is before"
      ),
      (
        #"{"kind":"swipe","playback":"p","sent_ms":9,"item":"b.mp4","swipe_ms":1,"stalls":[{"at_ms":1}]}"#,
        400,
        "stalls[0].duration_ms: the field is missing"
      ),
    ] as [(String, Int, String)])
  func refusals(json: String, status: Int, words: String) throws {
    let folder = try TemporaryFolder()
    let writer = try RecordingWriter(path: folder.path("run.jsonl"), run: run)
    try writer.add(reportOf: report("start"), from: "127.0.0.1", at: .zero)
    let before = try folder.text("run.jsonl")
    let refusal = #expect(throws: RecordingWriter.Refusal.self) {
      try writer.add(reportOf: Array(json.utf8), from: "127.0.0.1", at: .seconds(1))
    }
    #expect(refusal?.status == status)
    #expect(refusal?.reason.contains(words) == true, "\(refusal?.reason ?? "")")
    #expect(refusal?.reason.contains("\n") == false)
    #expect(try folder.text("run.jsonl") == before)
  }

  @Test("Texts of a stranger are short, and unknown fields are not kept")
  func strangers() throws {
    let folder = try TemporaryFolder()
    let writer = try RecordingWriter(path: folder.path("run.jsonl"), run: run)
    let name = String(repeating: "x", count: 5_000)
    try writer.add(
      reportOf: report("start", "p", #""player":"\#(name)","email":"a@b.c","client":"me""#), from: nil,
      at: .zero)
    let text = try folder.text("run.jsonl")
    #expect(!text.contains("a@b.c") && !text.contains("\"me\""))
    #expect(text.count < 1_000)
  }

  @Test("A recording that was cut off ends before the cut line")
  func cut() throws {
    let folder = try TemporaryFolder()
    let writer = try RecordingWriter(path: folder.path("run.jsonl"), run: run)
    try writer.add(reportOf: report("start"), from: nil, at: .zero)
    let whole = try folder.bytes("run.jsonl")
    let path = try folder.write(whole + Array(#"{"bytes":12,"conn"#.utf8), to: "cut.jsonl")
    let recording = try PlayerRecording(path: path)
    #expect(try lines(recording).count == 1)
    #expect(recording.notes == ["\(path): line 3 was cut off, so the recording ends before it"])
  }

  @Test("Lines of kinds to come are skipped, and others are an error with their line")
  func unknownLines() throws {
    let folder = try TemporaryFolder()
    let writer = try RecordingWriter(path: folder.path("run.jsonl"), run: run)
    try writer.add(reportOf: report("start"), from: nil, at: .zero)
    let whole = try folder.bytes("run.jsonl")
    let later = try folder.write(
      whole + Array("{\"kind\":\"battery\",\"level\":[0.5]}\n".utf8), to: "later.jsonl")
    #expect(try lines(try PlayerRecording(path: later)).count == 1)
    let damaged = try folder.write(whole + Array("\u{0}\u{0}\n".utf8), to: "damaged.jsonl")
    let error = #expect(throws: ReelError.self) { try lines(try PlayerRecording(path: damaged)) }
    #expect(error?.kind == .badManifest)
    #expect(error?.description.contains("line 3") == true, "\(error?.description ?? "")")
  }

  @Test(
    "Files that are not recordings",
    arguments: [
      ("", "not a recording"), ("a\nb\n", "not a recording"),
      (#"{"kind":"swipe","version":1}"# + "\n", "not a recording"),
      (#"{"kind":"run","version":2}"# + "\n", "version 2"),
      (#"{"kind":"run","version":1}"# + "\n", "started_at: the field is missing"),
    ])
  func otherFiles(text: String, words: String) throws {
    let folder = try TemporaryFolder()
    let path = try folder.write(text, to: "x.jsonl")
    let error = #expect(throws: ReelError.self) { try PlayerRecording(path: path) }
    #expect(error?.kind == .badManifest)
    #expect(error?.description.contains(words) == true, "\(error?.description ?? "")")
    #expect(throws: ReelError.self) { try PlayerRecording(path: folder.path("none.jsonl")) }
  }

  @Test("A recording belongs to a feed whose items have its names at their ends")
  func feeds() throws {
    let folder = try TemporaryFolder()
    _ = try RecordingWriter(path: folder.path("run.jsonl"), run: run)
    let recording = try PlayerRecording(path: folder.path("run.jsonl"))
    #expect(
      try recording.places(in: ["/home/me/media/a/index.m3u8", "x.mp4", "http://127.0.0.1:8080/b.mp4"])
        == [0, 2])
    for items in [
      ["a/index.m3u8"], ["a/index.m3u8", "c.mp4"], ["b.mp4", "a/index.m3u8"], ["a/index.m3u8", "xb.mp4"], [],
    ] {
      let error = #expect(throws: ReelError.self) { try recording.places(in: items) }
      #expect(error?.reason.hasPrefix("a recording of another feed: this one has no item") == true)
    }
  }

  @Test("Clocks that run apart are noted once; reports that take long are not")
  func clocks() throws {
    let folder = try TemporaryFolder()
    let writer = try RecordingWriter(path: folder.path("run.jsonl"), run: run)
    for playback in ["p", "slow"] {
      try writer.add(reportOf: report("start", playback, sent: 0), from: nil, at: .zero)
    }
    for second in 1...40 {
      let time = Double(second) * 1_000
      // The player's clock loses 2 %.
      try writer.add(
        reportOf: swipe(at: time * 0.98 - 700, sent: time * 0.98), from: nil, at: .seconds(second))
      let delay = second % 3 == 0 ? 20 : 900
      try writer.add(
        reportOf: report("end", "slow", sent: time), from: nil, at: .seconds(second) + .milliseconds(delay))
    }
    let recording = try PlayerRecording(path: folder.path("run.jsonl"))
    var times: [Double] = []
    for case .report(_, let time?) in try lines(recording) { times.append(time) }
    #expect(recording.notes.count == 1)
    #expect(
      recording.notes.first?.contains("the clock of playback p runs apart") == true, "\(recording.notes)")
    #expect(times.count == 40)
    // The offsets of the latest reports place a swipe, so that the error does not grow.
    for (index, time) in times.enumerated() { #expect(abs(time - (Double(index + 1) * 1_000 - 700)) < 150) }
  }

  @Test("Reports alone can be read from a long recording")
  func reportsAlone() throws {
    let folder = try TemporaryFolder()
    let writer = try RecordingWriter(path: folder.path("run.jsonl"), run: run)
    for number in 0..<20_000 {
      writer.add(
        RecordedRequest(
          receivedMs: Double(number), bytes: 1, method: "GET", path: #"/"kind":"swipe".ts"#, connection: 1))
      if number % 10_000 == 0 {
        try writer.add(reportOf: report("start", "p\(number)"), from: nil, at: .zero)
      }
    }
    let recording = try PlayerRecording(path: folder.path("run.jsonl"))
    var count = 0
    while let line = try recording.next(isWithoutRequests: true) {
      if case .request = line { Issue.record("\(line)") }
      count += 1
    }
    #expect(count == 2)
  }
}
