import ReelCore
import ReelManifest

/// Pairs audio with video.
///
/// Tracks are identified by their index in the rows.
struct VirtualHLSPairing {
  enum Source: Hashable {
    case video(Int)
    case audio(Int)
  }

  /// An EXT-X-STREAM-INF.
  struct Pair: Hashable {
    var main: Source
    /// Index in `groups`.
    var group: Int?
  }

  /// Renditions of which a player takes one.
  struct Group: Hashable {
    var members: [Int]
    var defaultMember: Int
    /// HLS: its GROUP-ID.
    var id: String?
  }

  private(set) var pairs: [Pair] = []
  private(set) var groups: [Group] = []
  private(set) var hasLeftOut = false

  /// In rising order.
  var usedVideo: [Int] {
    pairs.compactMap { if case .video(let index) = $0.main { index } else { nil } }.uniqued().sorted()
  }
  /// In rising order.
  var usedAudio: [Int] { groups.flatMap(\.members).uniqued().sorted() }

  init(video: [VirtualHLSRow], audio: [VirtualHLSRow], format: ManifestFormat) {
    let video = video.map(\.anchor)
    let audio = audio.map(\.anchor)
    let all = format == .hls ? Self.groupsByID(audio) : Self.groupsByFormat(audio)
    groups = Array(all.prefix(VirtualHLSPlanner.limit))
    hasLeftOut = all.count > groups.count || video.count > VirtualHLSPlanner.limit
    if video.isEmpty {
      pairs = groups.indices.map { Pair(main: .audio(groups[$0].defaultMember), group: $0) }
    } else {
      pair(Array(video.prefix(VirtualHLSPlanner.limit)), format: format)
    }
    keepUsedGroups()
  }

  // MARK: - Private

  /// Combines every video rung with every group; by their ranks if that would be too many.
  private mutating func pair(_ video: [VirtualHLSCandidate], format: ManifestFormat) {
    let ranked = video.indices.sorted {
      (video[$0].rung.bitsPerSecond ?? 0, $0) < (video[$1].rung.bitsPerSecond ?? 0, $1)
    }
    var ranks = [Int](repeating: 0, count: video.count)
    for (rank, index) in ranked.enumerated() { ranks[index] = rank }
    let isFull = video.count * groups.count > VirtualHLSPlanner.limit
    for (index, candidate) in video.enumerated() {
      let choice: [Int]
      if groups.isEmpty || candidate.isMuxed {
        choice = []
      } else if format == .hls {
        choice = groups.indices.filter { groups[$0].id == candidate.rung.audioGroup }
      } else if isFull {
        choice = [ranks[index] * groups.count / video.count]
      } else {
        choice = Array(groups.indices)
      }
      if choice.isEmpty { pairs.append(Pair(main: .video(index), group: nil)) }
      pairs += choice.map { Pair(main: .video(index), group: $0) }
    }
  }

  private mutating func keepUsedGroups() {
    let used = pairs.compactMap(\.group).uniqued()
    let places = Dictionary(uniqueKeysWithValues: used.enumerated().map { ($1, $0) })
    groups = used.map { groups[$0] }
    for index in pairs.indices { pairs[index].group = pairs[index].group.flatMap { places[$0] } }
  }

  /// HLS: the groups as they were.
  private static func groupsByID(_ audio: [VirtualHLSCandidate]) -> [Group] {
    var (ids, members): ([String], [String: [Int]]) = ([], [:])
    for (index, candidate) in audio.enumerated() {
      let id = candidate.group.id ?? ""
      if members[id] == nil { ids.append(id) }
      members[id, default: []].append(index)
    }
    return ids.map { group(Array((members[$0] ?? []).prefix(VirtualHLSPlanner.limit)), of: audio, id: $0) }
  }

  /// A group for each codec, number of channels and quality. If a language lacks a format, another format takes
  /// its place, because every group has to offer every language (RFC 8216 §4.3.4.1.1).
  private static func groupsByFormat(_ audio: [VirtualHLSCandidate]) -> [Group] {
    var contents: [VirtualHLSCandidate.Content] = []
    var formats: [VirtualHLSCandidate.Format] = []
    var rungs: [VirtualHLSCandidate.Content: [VirtualHLSCandidate.Format: [Int]]] = [:]
    for (index, candidate) in audio.enumerated() {
      if rungs[candidate.content] == nil { contents.append(candidate.content) }
      if !formats.contains(candidate.format) { formats.append(candidate.format) }
      rungs[candidate.content, default: [:]][candidate.format, default: []].append(index)
    }
    func rate(_ index: Int) -> Int { audio[index].rung.bitsPerSecond ?? 0 }
    contents = Array(contents.prefix(VirtualHLSPlanner.limit))
    for content in contents {
      for (format, list) in rungs[content] ?? [:] {
        rungs[content]?[format] = list.sorted { (rate($0), $0) < (rate($1), $1) }
      }
    }
    var groups: [Group] = []
    for format in formats.prefix(VirtualHLSPlanner.limit) {
      let having = contents.filter { rungs[$0]?[format] != nil }
      let languages = Set(having.map(\.language))
      let qualities = having.compactMap { rungs[$0]?[format]?.count }.max() ?? 0
      for quality in 0..<min(qualities, VirtualHLSPlanner.limit) {
        var members: [Int] = []
        for content in contents {
          if let list = rungs[content]?[format], !list.isEmpty {
            // If one language has fewer qualities, pair the best ones.
            members.append(list[min(quality, list.count - 1)])
          } else if !languages.contains(content.language),
            let other = formats.lazy.compactMap({ rungs[content]?[$0] }).first, !other.isEmpty
          {
            members.append(other[min(quality, other.count - 1)])
          }
        }
        if !members.isEmpty { groups.append(group(members, of: audio, id: nil)) }
      }
    }
    return groups.uniqued()
  }

  private static func group(_ members: [Int], of audio: [VirtualHLSCandidate], id: String?) -> Group {
    let main = members.first { audio[$0].group.isDefault }
    return Group(members: members, defaultMember: main ?? members.first ?? 0, id: id)
  }
}

extension Array where Element: Hashable {
  /// Each element at its first position.
  fileprivate func uniqued() -> [Element] {
    var seen: Set<Element> = []
    return filter { seen.insert($0).inserted }
  }
}
