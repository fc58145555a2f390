import Foundation
import ReelCore
import ReelPlayback
import ReelSimulation
import ReelSources
import ReelTestSupport
import Testing

@Suite("Sound of its own", .hangLimit)
struct SoundTests {
  static let lost = ReelError(.network, "no connection")
  static let gone = ReelError(.server, "404", status: 404)

  /// What becomes of the sound's files, whether the item's end waits for it, and how much of its 3 s is heard.
  static let cases: [(what: String, name: String, fault: FixtureFetcher.Fault, heard: ClosedRange<Double>)] =
    [
      ("has no playlist", "index.m3u8", .error(gone), 0...0),
      ("has no initialization", "init.mp4", .error(gone), 0...0),
      ("never comes", "segment-0.m4s", .never, 0...0),
      ("comes two seconds late", "index.m3u8", .delay(.seconds(2)), 2.9...3.1),
      ("is cut off in its first segment", "segment-0.m4s", .cut(700), 0...3.1),
      ("lacks its second segment", "segment-1.m4s", .error(gone), 1.8...2.2),
      ("ends early", "segment-2.m4s", .error(gone), 1.8...2.2),
    ]

  @Test("Sound of which nothing can be read is lost, and the frames are played", arguments: [1, .infinity])
  func unreadable(rate: Double) async throws {
    // Two segments can be left out in a row, so the list is read to its end.
    let list = """
      #EXTM3U
      #EXT-X-TARGETDURATION:2
      #EXTINF:1.5,
      segment-0.m4s
      #EXTINF:1.5,
      segment-1.m4s
      #EXT-X-ENDLIST
      """
    let stage = try Stage(
      Moment.path,
      fault: { request, _ in
        let path = request.url.path
        if path.hasSuffix("audio/index.m3u8") { return .bytes(Array(list.utf8)) }
        return path.contains("audio/segment") ? .bytes(Array("<html></html>".utf8)) : .none
      })
    stage.player.setRate(rate)
    try await stage.playsOut()
    #expect(stage.shown == (try Moment.frames()))
    let outcomes = stage.item.errorLog.map(\.outcome)
    #expect(outcomes.count == 3, "\(outcomes)")
    for case .lost(let loss) in outcomes { #expect(loss.kind == .audio) }
    try await stage.close()
  }

  @Test("Sound whose second segment is tried again and again is given up after ten seconds")
  func failsAgainAndAgain() async throws {
    let stage = try Stage(
      Moment.path,
      fault: { request, _ in
        request.url.path.hasSuffix("audio/segment-1.m4s") ? .error(Self.lost) : .none
      },
      configure: { $0.retryPolicy = ItemRetryPolicy(attempts: 1000, baseDelay: .seconds(1)) })
    stage.player.setRate(.infinity)
    try await stage.playsOut()
    #expect(stage.shown == (try Moment.frames()))
    #expect(stage.simulation.now < .seconds(25), "\(stage.simulation.now)")
    try await stage.close()
  }

  @Test("Sound that comes after its video in a fragment is read before the loader rests")
  func fragments() async throws {
    let stage = try Stage("media/h264-fragmented.mp4")
    stage.item.preferredForwardBufferDuration = .milliseconds(450)
    stage.player.play()
    try await stage.playsOut()
    #expect(!stage.eventNames.contains("stalled"))
    #expect(stage.player.statistics.stallCount == 0)
    try await stage.close()
  }

  @Test("Whatever becomes of it, each frame is shown once", arguments: cases.indices, [1, .infinity])
  func frames(_ number: Int, rate: Double) async throws {
    let sound = Self.cases[number]
    let stage = try Stage(
      Moment.path,
      fault: { request, _ in request.url.path.hasSuffix("audio/\(sound.name)") ? sound.fault : .none })
    stage.player.setRate(rate)
    try await stage.playsOut()
    #expect(stage.shown == (try Moment.frames()), "\(sound.what)")
    let pieces = stage.speaker.all
    let heard = pieces.reduce(0) { $0 + ($1.upperBound - $1.lowerBound).seconds }
    #expect(sound.heard.contains(heard), "\(sound.what): \(heard) s are heard")
    let isOrdered = zip(pieces, pieces.dropFirst()).allSatisfy {
      $1.lowerBound.seconds > $0.upperBound.seconds - 0.001
    }
    #expect(isOrdered, "\(sound.what)")
    try await stage.close()
  }
}
