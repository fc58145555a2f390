import Foundation
import ReelCore
import ReelSimulation
import ReelTestSupport
import Testing

@Suite("Playing segments over a link, by arithmetic", .hangLimit)
struct LinkPlaybackTests {
  private static let host = URL(string: "http://host")

  /// Segments of these rates in kbit/s, each of `duration` seconds.
  private func segments(_ rates: [Double], of duration: Double = 2) throws -> [LinkPlayback.Segment] {
    let host = try #require(Self.host)
    return rates.enumerated().map { index, rate in
      let count = Int64(rate * 1000 / 8 * duration)
      return LinkPlayback.Segment(
        host.appending(path: "\(index).ts"), [LinkPlayback.Piece(byteCount: count, duration: duration)])
    }
  }

  private func link(_ text: String) throws -> LinkSpec { try LinkSpec(parsing: text) }

  private func seconds(_ duration: Duration) -> Double { duration / .seconds(1) }

  @Test("A link with room to spare carries it without a stall, and playback begins with half a second")
  func light() throws {
    let opening = [[LinkPlayback.Request(try #require(Self.host), byteCount: 1250)]]
    let course = LinkPlayback(
      opening: opening, tracks: [try segments([Double](repeating: 800, count: 12))],
      link: try link("8Mbit/100ms")
    ).course()
    #expect(course.stalls.isEmpty)
    // The handshake, the request, 10 kbit.
    #expect(abs(seconds(course.opened) - 0.201) < 0.002)
    // A request, and 400 kbit.
    let start = seconds(try #require(course.start))
    #expect((0.35...0.37).contains(start), "\(start)")
  }

  @Test(
    "What a link does not carry ends when its last byte has come",
    arguments: ["3g", "1.6Mbit/300ms,tcp", "1Mbit/20ms", "2.5Mbit/1s"], [2.0, 6.0])
  func heavy(text: String, duration: Double) throws {
    let media = try segments([Double](repeating: 3300, count: Int(24 / duration)), of: duration)
    let link = try link(text)
    let course = LinkPlayback(opening: [], tracks: [media], link: link).course()
    let wire = Double(link.bitsPerSecond) * (link.features.contains(.tcp) ? 1448 / 1500 : 1)
    // Each segment is requested when the one before has been read.
    let trips = Double(media.count + 1)
    let last = 24 * 3_300_000 / wire + trips * seconds(link.roundTripTime)
    let end = seconds(try #require(course.start)) + 24 + seconds(course.stalled)
    // Once everything has come, at most what a stall waits for is left to play.
    #expect(end >= last * 0.99 - 0.1 && end <= last * 1.01 + 1.6, "\(end) \(last)")
    #expect(course.stalls.count >= 4)
    // A stall lasts until 1.5 s are there, except at the end.
    for (stall, next) in zip(course.stalls, course.stalls.dropFirst()) {
      #expect(next.position - stall.position >= 1.5 && stall.duration > .milliseconds(500))
    }
  }

  @Test("A heavy middle stalls in the middle, later if the buffer is larger")
  func middle() throws {
    let rates = [Double](repeating: 500, count: 5) + [4000, 4000] + [Double](repeating: 500, count: 5)
    let course = LinkPlayback(opening: [], tracks: [try segments(rates)], link: .threeG).course()
    let first = try #require(course.stalls.first)
    #expect(course.stalls.allSatisfy { (10...14).contains($0.position) }, "\(course.stalls)")
    var rules = LinkPlayback.Rules(target: .seconds(30))
    let patient = LinkPlayback(
      opening: [], tracks: [try segments(rates)], link: .threeG, rules: rules
    ).course()
    #expect(patient.stalled < course.stalled)
    #expect(patient.stalls.first.map { $0.position > first.position } ?? true)
    rules.target = 3
    #expect(
      LinkPlayback(opening: [], tracks: [try segments(rates)], link: .threeG, rules: rules).course()
        == course)
  }

  @Test("Pieces within a segment count: bytes that come late stall, and those that come early don't")
  func pieces() throws {
    let url = try #require(Self.host)
    var rules = LinkPlayback.Rules()
    rules.start = 1
    func course(_ counts: [Int64]) -> LinkPlayback.Course {
      let pieces = counts.map { LinkPlayback.Piece(byteCount: $0, duration: 1) }
      return LinkPlayback(
        opening: [], tracks: [[LinkPlayback.Segment(url, pieces)]], link: .threeG, rules: rules
      ).course()
    }
    #expect(course([150_000, 150_000, 150_000, 150_000]).stalls.isEmpty)
    let late = course([50_000, 50_000, 50_000, 1_450_000])
    #expect(late.stalls.count == 1 && late.stalls.first.map { abs($0.position - 3) < 1 } == true)
    // The heavy part comes before playback begins.
    #expect(course([1_450_000, 50_000, 50_000, 50_000]).stalls.isEmpty)
  }

  @Test("Audio with segments of its own takes its share, and stalls the video that it lacks")
  func audio() throws {
    let video = try segments([Double](repeating: 1200, count: 12))
    let alone = LinkPlayback(opening: [], tracks: [video], link: .threeG).course()
    #expect(alone.stalls.isEmpty)
    let light = try segments([Double](repeating: 128, count: 12))
    #expect(LinkPlayback(opening: [], tracks: [video, light], link: .threeG).course().stalls.isEmpty)
    let heavy = try segments([Double](repeating: 1200, count: 12))
    let both = LinkPlayback(opening: [], tracks: [video, heavy], link: .threeG).course()
    // 57.6 Mbit at 1.6 Mbit/s, and at most a round trip of 0.3 s for each of 12 pairs of segments and for the connections.
    let end = seconds(try #require(both.start)) + 24 + seconds(both.stalled)
    #expect((36...41).contains(end), "\(end)")
  }

  @Test("A player of whole segments begins when the first ones have come, one after the other")
  func whole() throws {
    let url = try #require(Self.host)
    var media = try segments([800, 800, 800])
    media[0].initialization = LinkPlayback.Request(url, byteCount: 1000)
    let course = LinkPlayback(
      opening: [], tracks: [media], link: try link("1.6Mbit/100ms"), rules: .wholeSegments
    ).course()
    // A handshake, two requests, 1,608,000 bits.
    #expect(abs(seconds(try #require(course.start)) - 1.305) < 0.01)
    #expect(course.stalls.isEmpty)
    let slow = LinkPlayback(
      opening: [], tracks: [media], link: try link("800kbit/100ms"), rules: .wholeSegments
    ).course()
    // Each request waits until the one before has been answered.
    #expect(slow.stalls.map { ($0.position * 100).rounded() / 100 } == [2, 4])
    #expect(slow.stalls.allSatisfy { abs(seconds($0.duration) - 0.1) < 0.01 }, "\(slow.stalls)")
  }

  @Test("A server's wait before each answer stalls only if it is longer than what is loaded ahead")
  func waits() throws {
    func course(_ wait: Duration) throws -> LinkPlayback.Course {
      var media = try segments([Double](repeating: 400, count: 12))
      for index in media.indices { media[index].wait = wait }
      return LinkPlayback(opening: [], tracks: [media], link: .lte).course()
    }
    #expect(try course(.milliseconds(600)).stalls.isEmpty)
    #expect(try course(.seconds(4)).stalls.count >= 5)
  }

  @Test("Sizes that nothing can have end the loop, not the process")
  func absurd() throws {
    let url = try #require(Self.host)
    for count in [Int64.max, .min, 0, -1] {
      let pieces = [LinkPlayback.Piece(byteCount: count, duration: 1), .init(byteCount: count, duration: 0)]
      let segment = LinkPlayback.Segment(url, pieces)
      for rules in [LinkPlayback.Rules(), .wholeSegments] {
        let course = LinkPlayback(
          opening: [[LinkPlayback.Request(url, byteCount: count)]], tracks: [[segment, segment], []],
          link: .threeG, rules: rules
        ).course()
        #expect(course.isCut || course.start != nil)
      }
    }
    #expect(LinkPlayback(opening: [], tracks: [], link: .lte).course().start == nil)
  }
}
