import Foundation
import ReelCore

/// The written sources of results files that took longest to start, and those with poor stills.
///
/// Holds a limited number of each, however many lines there are.
struct WorstStreams: Sendable {
  struct Stream: Sendable {
    let hash: SourceHash
    let url: String
    /// In milliseconds; 0 if it is not known.
    let startup: Double
    /// What is wrong with the still, in words; nil if nothing is.
    let flaw: String?
    /// The path of the first still in the results.
    let path: String?
    /// The folder of the results file.
    let folder: String
    /// The higher, the worse the still is.
    fileprivate let poorness: Double
  }

  /// Some more than a page shows, since later lines may replace some.
  static let limit = 64

  /// The longest first.
  private(set) var slowest: [Stream] = []
  /// The worst first.
  private(set) var poorest: [Stream] = []

  /// Adds the line of a source, which replaces an earlier one.
  ///
  /// - Parameters:
  ///   - startup: In milliseconds; 0 if it is not known.
  ///   - isPoor: Whether something is wrong with the still.
  ///   - folder: The folder of the results file.
  mutating func add(
    _ hash: SourceHash, _ result: ResultLine, _ members: [RawJSON.Member], startup: Double, isPoor: Bool,
    folder: String
  ) {
    slowest.removeAll { $0.hash == hash }
    poorest.removeAll { $0.hash == hash }
    guard result.status == .written, let url = result.url else { return }
    let isSlow = slowest.count < Self.limit || startup > slowest.last?.startup ?? 0
    guard isSlow || isPoor else { return }
    let flaw = isPoor ? Self.flaw(members) : nil
    let stream = Stream(
      hash: hash, url: url, startup: startup, flaw: flaw?.words, path: Self.path(members), folder: folder,
      poorness: flaw?.poorness ?? 0)
    Self.insert(stream, into: &slowest) { $0.startup > $1.startup }
    if isPoor { Self.insert(stream, into: &poorest) { $0.poorness > $1.poorness } }
  }

  /// Whether a field of a result says that something is wrong with the still.
  static func isFlaw(_ member: RawJSON.Member) -> Bool {
    switch member.key {
    case "good": member.value.elementsEqual("false".utf8)
    case "damaged", "missed_segments": (number(member.value) ?? 0) > 0
    default: false
    }
  }

  // MARK: - Private

  private static func insert(
    _ stream: Stream, into streams: inout [Stream], _ isWorse: (Stream, Stream) -> Bool
  ) {
    guard streams.count < limit || streams.last.map({ isWorse(stream, $0) }) ?? true else { return }
    streams.insert(stream, at: streams.firstIndex { isWorse(stream, $0) } ?? streams.count)
    if streams.count > limit { streams.removeLast() }
  }

  private static func flaw(_ members: [RawJSON.Member]) -> (words: String, poorness: Double) {
    var (flaws, poorness) = ([String](), 0.0)
    for member in members where isFlaw(member) {
      let count = Int(min(number(member.value) ?? 0, 1e9))
      switch member.key {
      case "good":
        flaws.append(value("why", members).flatMap(RawJSON.string) ?? "no good frame")
        poorness += 1 - (score(members) ?? 0)
      case "damaged":
        flaws.append(count.counted("damaged frame"))
        poorness += 2
      default:
        flaws.append(count.counted("segment was missed", "segments were missed"))
        poorness += 2
      }
    }
    return (flaws.joined(separator: "; "), poorness)
  }

  private static func value(_ key: String, _ members: [RawJSON.Member]) -> ArraySlice<UInt8>? {
    members.first { $0.key == key }?.value
  }

  private static func number(_ value: ArraySlice<UInt8>?) -> Double? {
    value.flatMap { Double(String(decoding: $0, as: UTF8.self)) }
  }

  private struct Frame: Decodable {
    let path: String
  }

  /// The path of the poster, or of the first frame.
  private static func path(_ members: [RawJSON.Member]) -> String? {
    let decoder = JSONDecoder()
    if let file = value("file", members) { return try? decoder.decode(Frame.self, from: Data(file)).path }
    return value("frames", members).flatMap { try? decoder.decode([Frame].self, from: Data($0)).first?.path }
  }

  private struct Candidate: Decodable {
    let score: Double
  }

  /// The score of the chosen candidate, from 0 to 1.
  private static func score(_ members: [RawJSON.Member]) -> Double? {
    guard let index = number(value("chosen", members)).flatMap({ Int(exactly: $0) }),
      let list = value("candidates", members),
      let candidates = try? JSONDecoder().decode([Candidate].self, from: Data(list)),
      candidates.indices.contains(index)
    else { return nil }
    return candidates[index].score
  }
}
