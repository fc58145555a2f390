import Foundation
import ReelCore
import ReelManifest

/// Decides which parts of a presentation become tracks, and which tracks are combined.
struct VirtualHLSPlanner {
  /// The result.
  struct Plan {
    var tracks: [VirtualHLS.Track] = []
    var variants: [VirtualHLS.Variant] = []
    var audioGroups: [VirtualHLS.AudioGroup] = []
    var live: VirtualHLS.Live?
  }

  /// The methods of EXT-X-KEY (RFC 8216 §4.3.2.4, draft-pantos-hls-rfc8216bis §4.4.4.4), and other names of
  /// SAMPLE-AES-CTR, which players know from packagers.
  static let keyMethods: Set = ["AES-128", "SAMPLE-AES", "SAMPLE-AES-CTR", "SAMPLE-AES-CENC", "ISO-23001-7"]
  /// The limits of EXT-X-STREAM-INF tags, video tracks, audio groups, and languages of one group or of
  /// subtitles, each.
  static let limit = 64

  /// The tracks that are left out or stay encrypted, with the reasons; at most 100.
  var warnings: [ReelError] { notes.map { ReelError(.unsupported, $0.text, advice: $0.advice) } }
  private var notes: [Note] = []
  private let presentation: Presentation
  /// The playlists as they were before, of a live presentation.
  private let previous: VirtualHLS?
  private let decryption: (any MediaDecrypting)?
  private var live: VirtualHLS.Live?
  private var periods: [Candidates] = []

  init(
    _ presentation: Presentation, following previous: VirtualHLS?, decryption: (any MediaDecrypting)?
  ) {
    self.presentation = presentation
    self.previous = previous
    self.decryption = decryption
    guard presentation.isLive || previous?.live != nil else { return }
    var live = previous?.live ?? VirtualHLS.Live()
    live.timing = presentation.live
    live.start = live.start ?? presentation.live?.availabilityStart
    if let first = live.start, let own = presentation.live?.availabilityStart, own - first != live.shift {
      // Another run: its periods are others, even if their names are the same.
      live.shift = own - first
      live.periods = [:]
      live.newestStart = nil
    }
    self.live = live
  }

  /// Returns an empty plan for a live presentation that has not begun. Throws `unsupported` if nothing is left.
  mutating func plan() throws(ReelError) -> Plan {
    var pending: Set<TrackGroup.Kind> = []
    for period in presentation.periods {
      let candidates = candidates(of: period)
      pending.formUnion(candidates.pending)
      // A stretch without audio and video can't be part of a playable timeline.
      if !candidates.video.isEmpty || !candidates.audio.isEmpty { periods.append(candidates) }
    }
    if previous == nil, presentation.isLive, presentation.format == .dash, isBeginning(pending) {
      return Plan(live: live)
    }
    guard !periods.isEmpty || live == nil || !notes.isEmpty else {
      throw ReelError(
        .unsupported, "no segment of the live presentation is available yet",
        advice: "try again when it has begun")
    }
    guard !periods.isEmpty else {
      let reasons = warnings.map(\.reason)
      throw ReelError(
        .unsupported,
        "nothing in it can be presented as HLS"
          + (reasons.isEmpty ? "" : ": \(reasons.prefix(3).joined(separator: "; "))"),
        advice: warnings.lazy.compactMap(\.advice).first)
    }
    numberPeriods()
    guard !periods.isEmpty else {
      throw ReelError(.badManifest, "the live manifest has only periods before those that were listed")
    }
    let video = chosen(\.video, .video)
    let audio = chosen(\.audio, .audio)
    let text = chosen(\.text, .text)
    let grouping = VirtualHLSPairing(video: video, audio: audio, format: presentation.format)
    if grouping.hasLeftOut {
      note("some of more than \(Self.limit) qualities", "are left out")
    }
    return assemble(grouping, video: video, audio: audio, text: text)
  }

  // MARK: - Private

  /// The usable rungs of one period.
  private struct Candidates {
    var period: Period
    var video: [VirtualHLSCandidate] = []
    var audio: [VirtualHLSCandidate] = []
    var text: [VirtualHLSCandidate] = []
    /// The kinds of tracks whose segments are not available yet.
    var pending: Set<TrackGroup.Kind> = []
    /// The number of periods before it.
    var number = 0
  }

  /// Returns true for a live presentation that has no segments yet, or whose first segments lack a kind of track: audio may
  /// be available some milliseconds before video.
  private func isBeginning(_ pending: Set<TrackGroup.Kind>) -> Bool {
    guard periods.allSatisfy({ ($0.video + $0.audio).allSatisfy { $0.list.count < 3 } }) else { return false }
    return periods.isEmpty && notes.isEmpty
      || pending.contains(.video) && periods.allSatisfy(\.video.isEmpty)
      || pending.contains(.audio) && periods.allSatisfy(\.audio.isEmpty)
  }

  /// Numbers the periods, those of a live presentation on from the ones that were known. Periods before those, which an old
  /// copy of a manifest may have, are left out.
  private mutating func numberPeriods() {
    for index in periods.indices { periods[index].number = index }
    guard var live else { return }
    if presentation.format == .dash, let first = periods.first, continuesNewest(first) {
      let start = first.period.start + live.shift
      live.periods[start.ticks(timescale: 10)] = live.nextPeriod - 1
      live.newestStart = max(start, live.newestStart ?? start)
    }
    for index in periods.indices {
      let start = periods[index].period.start + live.shift
      // Ids are used again, as by advertisements.
      let name = start.ticks(timescale: 10)
      var number = live.periods[name]
      if number == nil, live.newestStart.map({ $0 < start }) ?? true {
        number = live.nextPeriod
        live.periods[name] = number
        live.nextPeriod += 1
        live.newestStart = start
      }
      periods[index].number = number ?? -1
    }
    // If a newer period was withdrawn, the one before it continues under a new number.
    if let last = periods.indices.last, periods[last].number < live.nextPeriod - 1,
      let list = (periods[last].video.first ?? periods[last].audio.first)?.list, let newest = list.last,
      let published = previous?.tracks.compactMap({ $0.parts.last?.list.end }).max(),
      list.end > published + newest.duration.half
    {
      periods[last].number = live.nextPeriod
      live.periods[(periods[last].period.start + live.shift).ticks(timescale: 10)] = live.nextPeriod
      live.nextPeriod += 1
    }
    periods.removeAll { $0.number < 0 }
    live.periods = live.periods.filter { $0.value + Self.limit > live.nextPeriod }
    self.live = live
  }

  /// Returns true if the first period of the manifest has segments of the newest one that was listed, at the same places: FFmpeg
  /// moves the start of a period along with its list of segments.
  private func continuesNewest(_ period: Candidates) -> Bool {
    let listed = (previous?.tracks ?? []).compactMap(\.parts.last).filter {
      $0.period == (live?.nextPeriod ?? 0) - 1
    }
    return (period.video + period.audio).contains { candidate in
      listed.contains { part in
        guard let last = part.list.last, case .at(let index) = candidate.list.place(of: last, by: .start)
        else {
          return false
        }
        let segment = candidate.list[index]
        return segment.url == last.url && segment.byteRange == last.byteRange
      }
    }
  }

  private mutating func candidates(of period: Period) -> Candidates {
    var result = Candidates(period: period)
    for (groupIndex, group) in period.trackGroups.enumerated() {
      if group.kind == .image {
        leaveOut(images: group)
        continue
      }
      if let reason = group.unplayableReason {
        leaveOut(group, nil, Refusal(reason: reason))
        continue
      }
      for (rungIndex, rung) in group.rungs.enumerated() {
        switch candidate(rung, of: group, at: .init(group: groupIndex, rung: rungIndex)) {
        case .failure(let refusal) where refusal.isPending: result.pending.insert(group.kind)
        case .failure(let refusal): leaveOut(group, rung, refusal)
        case .success(let candidate):
          noteEncryption(of: candidate)
          switch group.kind {
          case .video: result.video.append(candidate)
          case .audio: result.audio.append(candidate)
          case .text, .image: result.text.append(candidate)
          }
        }
      }
    }
    return result
  }

  /// A sentence about one rung or several.
  private struct Note {
    /// The subjects of the sentence, each once.
    var names: [String]
    /// The rest of the sentence, for one name and for several.
    let singular: String
    let plural: String
    let advice: String?

    var text: String {
      guard names.count > 1, let last = names.last else { return "\(names.first ?? "") \(singular)" }
      let list = names.count > 6 ? names.prefix(5) + ["\(names.count - 5) more"] : names.dropLast() + [last]
      return list.dropLast().joined(separator: ", ") + " and \(list.last ?? last) \(plural)"
    }
  }

  /// The reason why a rung is left out.
  struct Refusal: Error {
    var reason: String
    /// True if the segments of a live presentation are still to come.
    var isPending = false
    var advice: String?

    /// A refusal of encrypted media that could be decrypted on the way.
    static func encrypted(_ reason: String) -> Refusal {
      Refusal(
        reason: reason, advice: "give its key with --key or --key-file (in a program, pass a MediaDecryptor)")
    }
  }

  private func candidate(
    _ rung: Rung, of group: TrackGroup, at place: VirtualHLSCandidate.Place
  ) -> Result<VirtualHLSCandidate, Refusal> {
    guard case .segments(var list) = rung.media else {
      return .failure(Refusal(reason: "its segments are not known", isPending: live != nil))
    }
    guard let first = list.first, let last = list.last else {
      return .failure(Refusal(reason: "it has no segments", isPending: live != nil))
    }
    let container = SegmentContainer(mimeType: rung.mimeType, first: first, format: presentation.format)
    if container == .webM { return .failure(Refusal(reason: "HLS has no WebM segments")) }
    if group.kind == .text, container != .webVTT || first.initialization != nil {
      return .failure(Refusal(reason: "text other than WebVTT files"))
    }
    if group.kind != .text, container == .webVTT || container == .otherText {
      return .failure(Refusal(reason: "text where media is expected"))
    }
    let isDecrypted = container == .mp4 && isDecrypted(rung, [first, last])
    if !isDecrypted, let encryption = first.encryption, let reason = refusal(of: encryption) {
      return .failure(Refusal(reason: reason))
    }
    if [first, last].contains(where: { $0.byteRange != nil && $0.byteRange?.length == nil }) {
      return .failure(Refusal(reason: "a byte range without an end"))
    }
    if isDecrypted {
      list = list.withoutSampleEncryption
    } else if let protection = rung.protection {
      do throws(Refusal) {
        let encryption = try SegmentEncryption(protection)
        list = list.encrypted { _ in encryption }
      } catch {
        var refusal = error
        if decryption != nil, !protection.keyIDs.isEmpty {
          let names = protection.keyIDs.prefix(3).map(\.description).joined(separator: ", ")
          refusal.advice = "its key ID \(names) is not among your keys"
        }
        return .failure(refusal)
      }
    }
    return .success(
      VirtualHLSCandidate(
        rung: rung, list: list.moved(by: live?.shift ?? .zero), container: container, group: group,
        content: .init(group), place: place, isDecrypted: isDecrypted))
  }

  /// True if samples are encrypted, and can be decrypted on the way. A manifest may not name their keys, such as keys that
  /// change: then it is up to the media.
  private func isDecrypted(_ rung: Rung, _ segments: [SegmentReference]) -> Bool {
    guard let decryption else { return false }
    var keyIDs: [KeyID]
    if let protection = rung.protection {
      keyIDs = protection.keyIDs
    } else {
      let encryptions = segments.flatMap { [$0.encryption, $0.initialization?.encryption] }
        .compactMap { $0 }
      guard !encryptions.isEmpty, encryptions.allSatisfy(\.encryptsSamples) else { return false }
      keyIDs = encryptions.flatMap(\.systemKeys).compactMap(\.keyID)
    }
    keyIDs.removeAll { $0 == .zero }
    return keyIDs.allSatisfy(decryption.holdsKey(for:))
  }

  /// Returns the reason why HLS can't say how segments are encrypted; nil if it can.
  private func refusal(of encryption: SegmentEncryption) -> String? {
    if encryption.systems.isEmpty, !Self.keyMethods.contains(encryption.method) {
      return "encrypted: \(encryption.method)"
    }
    if !encryption.systems.isEmpty, encryption.systemKeys.isEmpty {
      return "encrypted: \(encryption.systems.joined(separator: ", ")), without the URI of a key"
    }
    let other = encryption.systemKeys.first { !Self.keyMethods.contains($0.method) }
    return other.map { "encrypted: \($0.method)" }
  }

  /// Adds a subject to a note, or a new note.
  private mutating func note(
    _ name: String, _ singular: String, _ plural: String? = nil, advice: String? = nil
  ) {
    let limit = ManifestLimits().warnings
    let known = notes.firstIndex { $0.singular == singular && $0.advice == advice }
    guard let known else {
      guard notes.count < limit else { return }
      return notes.append(
        Note(names: [name], singular: singular, plural: plural ?? singular, advice: advice))
    }
    guard notes[known].names.count < limit, !notes[known].names.contains(name) else { return }
    notes[known].names.append(name)
  }

  /// Says where a player gets the key of media that stays encrypted.
  private mutating func noteEncryption(of candidate: VirtualHLSCandidate) {
    guard let text = candidate.list.first?.encryption?.note else { return }
    note(Self.name(candidate.rung, of: candidate.group), "stays \(text)", "stay \(text)")
  }

  private mutating func leaveOut(_ group: TrackGroup, _ rung: Rung?, _ refusal: Refusal) {
    let name = rung.map { Self.name($0, of: group) } ?? "a group of \(group.kind.rawValue)"
    let text = "left out: \(refusal.reason)"
    note(name, "is \(text)", "are \(text)", advice: refusal.advice)
  }

  private mutating func leaveOut(images group: TrackGroup) {
    let text = "left out: only video, audio and subtitles are presented as HLS"
    if group.rungs.allSatisfy({ $0.tiles == nil }) {
      note("timed metadata", "is \(text)")
    } else {
      note(presentation.format == .hls ? "image playlists" : "thumbnail images", "are \(text)")
    }
  }

  private static func name(_ rung: Rung, of group: TrackGroup) -> String {
    "\(group.kind.rawValue) '\(rung.id.excerpt)'"
  }

  /// Returns the tracks of a kind: their rungs in each period, nil if the period lacks the kind.
  ///
  /// The period with the most rungs sets the pattern, or in a live presentation the tracks that were listed before. Audio
  /// and subtitles that only other periods have are added.
  private mutating func chosen(
    _ candidates: KeyPath<Candidates, [VirtualHLSCandidate]>, _ kind: VirtualHLS.Track.Kind
  ) -> [VirtualHLSRow] {
    var anchors: [(period: Int?, candidate: VirtualHLSCandidate)] =
      (previous?.tracks ?? []).filter { $0.kind == kind }.map { (nil, $0.anchor) }
    if anchors.isEmpty {
      let richest = periods.indices.max {
        (periods[$0][keyPath: candidates].count, $1) < (periods[$1][keyPath: candidates].count, $0)
      }
      guard let richest else { return [] }
      anchors = periods[richest][keyPath: candidates].map { (richest, $0) }
    }
    if kind != .video {
      var contents = Set(anchors.map(\.candidate.content))
      for (index, period) in periods.enumerated() {
        let added = period[keyPath: candidates].filter { !contents.contains($0.content) }
        contents.formUnion(added.map(\.content))
        anchors += added.map { (index, $0) }
      }
    }
    return anchors.map { anchor in
      let items: [VirtualHLSCandidate?] = periods.indices.map { index in
        if index == anchor.period { return anchor.candidate }
        return periods[index][keyPath: candidates].map { ($0, $0.distance(to: anchor.candidate)) }
          .min { $0.1.lexicographicallyPrecedes($1.1) }?.0
      }
      return VirtualHLSRow(anchor: anchor.candidate, items: items)
    }
  }

  private mutating func assemble(
    _ pairing: VirtualHLSPairing, video: [VirtualHLSRow], audio: [VirtualHLSRow],
    text: [VirtualHLSRow]
  ) -> Plan {
    var plan = Plan(live: live)
    var (places, counts): ([VirtualHLSPairing.Source: Int], [VirtualHLS.Track.Kind: Int]) = ([:], [:])
    func add(_ kind: VirtualHLS.Track.Kind, _ row: VirtualHLSRow) -> Int {
      let number = counts[kind, default: 0]
      counts[kind] = number + 1
      let name = "\(kind.rawValue)-\(number)"
      plan.tracks.append(
        VirtualHLS.Track(
          kind, row, index: plan.tracks.count, name: name,
          parts: live == nil ? parts(row) : liveParts(row, previous?.track(named: name))))
      return plan.tracks.count - 1
    }
    for index in pairing.usedVideo { places[.video(index)] = add(.video, video[index]) }
    for index in pairing.usedAudio { places[.audio(index)] = add(.audio, audio[index]) }
    for row in text.prefix(Self.limit) { _ = add(.text, row) }
    plan.audioGroups = pairing.groups.map { group in
      let tracks = group.members.compactMap { places[.audio($0)] }
      return VirtualHLS.AudioGroup(
        tracks: tracks, defaultTrack: places[.audio(group.defaultMember)] ?? tracks.first ?? 0)
    }
    for pair in pairing.pairs {
      guard let main = places[pair.main] else { continue }
      let audio = pair.group.map { plan.audioGroups[$0].tracks } ?? []
      plan.variants.append(
        VirtualHLS.Variant(
          main: plan.tracks[main], audio: audio.map { plan.tracks[$0] }, audioGroup: pair.group,
          format: presentation.format))
    }
    return plan
  }

  /// Returns the rungs of a track in each period, and gaps for those that are missing.
  private func parts(_ row: VirtualHLSRow) -> [VirtualHLS.Part] {
    var parts: [VirtualHLS.Part] = []
    for (index, candidate) in row.items.enumerated() {
      guard let list = candidate?.list ?? gaps(in: index, of: row) else { continue }
      parts.append(
        VirtualHLS.Part(
          list, firstIndex: parts.last?.endIndex ?? 0, period: index,
          start: index > 0 ? periods[index].period.start : nil,
          end: index + 1 < periods.count ? periods[index + 1].period.start : nil))
    }
    return parts
  }

  /// Returns the same for a live presentation. Numbers continue from the previous playlist.
  private func liveParts(
    _ row: VirtualHLSRow, _ previous: VirtualHLS.Track?
  ) -> [VirtualHLS.Part] {
    let reference = periods.lazy.compactMap { ($0.video.first ?? $0.audio.first)?.list }.first
    let length = reference.flatMap { list in list.first.map { list.end - $0.start } } ?? .zero
    let numbering = LiveNumbering(
      format: presentation.format,
      nominalDuration: MediaTime(seconds: length.seconds / Double(max(1, reference?.count ?? 1))))
    var parts: [VirtualHLS.Part] = []
    for (index, candidate) in row.items.enumerated() {
      let (period, isLast) = (periods[index], index == periods.count - 1)
      // The first segment of the newest period may be late.
      if candidate == nil, isLast, period.pending.contains(row.anchor.group.kind) { continue }
      guard var list = candidate?.list ?? gaps(in: index, of: row) else { continue }
      if presentation.format == .dash { list = list.filled(period: period.number) }
      if let known = previous?.parts.first(where: { $0.period == period.number }) {
        let isOpen = known.period == previous?.parts.last?.period
        parts.append(
          isOpen ? numbering.part(known, continuing: list) : numbering.closed(known, trimmedTo: list))
      } else if let part = numbering.part(
        list, period: period.number, after: parts.last, published: previous?.parts.last)
      {
        parts.append(part)
      }
    }
    // An old copy of a manifest, or one that lists nothing.
    if let previous, parts.last?.endIndex ?? 0 < previous.endIndex { return previous.parts }
    return parts
  }

  /// Returns gaps in place of a track that a period lacks.
  private func gaps(in index: Int, of row: VirtualHLSRow) -> SegmentList? {
    let period = periods[index]
    guard let list = (period.video.first ?? period.audio.first)?.list else { return nil }
    // The next part has its own map. Without one before that, a player might assume another container.
    var map: InitializationReference?
    if row.items[..<index].allSatisfy({ $0 == nil }) {
      map = row.items.lazy.compactMap { $0 }.first?.list.first?.initialization
      if map?.encryption?.encryptsSamples == false { map = nil }
    }
    return SegmentList(count: list.count, end: list.end, holes: list.holes) { [map] index in
      var gap = list[index].gap
      gap.initialization = map
      return gap
    }
  }
}

extension VirtualHLS.Track {
  /// A track of the rungs in `row`, one for each period.
  init(
    _ kind: Kind, _ row: VirtualHLSRow, index: Int, name: String, parts: [VirtualHLS.Part]
  ) {
    let rungs = row.items.allSatisfy { $0 == nil } ? [row.anchor.rung] : row.items.compactMap { $0?.rung }
    let group = row.anchor.group
    let rates = rungs.compactMap(\.bitsPerSecond)
    let averages = rungs.compactMap(\.averageBitsPerSecond)
    self.init(
      index: index, kind: kind, name: name,
      size: rungs.compactMap(\.size).max { $0.width * $0.height < $1.width * $1.height },
      bitsPerSecond: rates.max(),
      averageBitsPerSecond: averages.count == rungs.count ? averages.max() : nil,
      codecs: rungs.contains { $0.codecs.isEmpty } ? [] : Self.codecs(rungs),
      frameRate: rungs.compactMap(\.frameRate).max { $0.value < $1.value },
      language: group.language.flatMap { $0.isLanguageTag ? $0 : nil }, label: group.label,
      roles: group.roles,
      videoRange: row.anchor.rung.videoRange, channels: row.anchor.rung.channels,
      container: row.anchor.container,
      // Every audio frame can be decoded on its own.
      hasIndependentSegments: kind == .audio || kind == .video && rungs.allSatisfy(\.hasIndependentSegments),
      isDecrypted: row.anchor.isDecrypted || row.items.contains { $0?.isDecrypted == true },
      anchor: row.anchor, parts: parts)
  }

  /// Returns one of each four-character code, from the rung with the highest rate: a player can't be asked
  /// for two codecs of one kind at a time.
  static func codecs(_ rungs: [Rung]) -> [String] {
    var result: [String] = []
    for rung in rungs.sorted(by: { $0.bitsPerSecond ?? 0 > $1.bitsPerSecond ?? 0 }) {
      for codec in rung.codecs
      where !result.contains(where: {
        VirtualHLSCandidate.fourCharacterCode($0) == VirtualHLSCandidate.fourCharacterCode(codec)
      }) {
        result.append(codec)
      }
    }
    return result
  }
}

extension VirtualHLS.Variant {
  /// Returns the bit rate if the manifest states none: a variant must state one (RFC 8216 §4.3.4.2).
  private static func nominalRate(_ kind: VirtualHLS.Track.Kind) -> Int {
    kind == .video ? 1_000_000 : 128_000
  }

  /// Combines `main` with any one of `audio`.
  fileprivate init(
    main: VirtualHLS.Track, audio: [VirtualHLS.Track], audioGroup: Int?, format: ManifestFormat
  ) {
    let others = audio.filter { $0.index != main.index }
    // The rate of an HLS variant includes its audio (RFC 8216 §4.3.4.2), that of a Representation only itself.
    // If the main track is audio, only one of the group is played.
    let added = format == .hls || main.kind == .audio ? [] : others
    var rate = Int64(main.bitsPerSecond ?? Self.nominalRate(main.kind))
    var average = main.averageBitsPerSecond.map { Int64($0) }
    if main.kind == .audio {
      rate = audio.map { Int64($0.bitsPerSecond ?? Self.nominalRate(.audio)) }.reduce(rate, max)
    }
    if let most = added.map({ Int64($0.bitsPerSecond ?? Self.nominalRate(.audio)) }).max() {
      rate = rate.addingReportingOverflow(most).overflow ? .max : rate + most
      let averages = added.compactMap { $0.averageBitsPerSecond.map { Int64($0) } }
      average = averages.count == added.count ? average.flatMap { Self.sum($0, averages.max() ?? 0) } : nil
    }
    // So do its codecs.
    let lists = [main.codecs] + (format == .hls ? [] : others.map(\.codecs))
    var codecs: [String] = []
    if lists.allSatisfy({ !$0.isEmpty }) {
      for codec in lists.joined() where !codecs.contains(codec) { codecs.append(codec) }
    }
    self.init(
      track: main.index, audioGroup: audioGroup, bandwidth: max(rate, 1), averageBandwidth: average,
      codecs: codecs)
  }

  /// Returns nil beyond 63 bits.
  private static func sum(_ first: Int64, _ second: Int64) -> Int64? {
    let (sum, overflow) = first.addingReportingOverflow(second)
    return overflow ? nil : sum
  }
}

extension String {
  /// True for letters, digits and hyphens, as in RFC 5646 §2.1: with other characters, players refuse the
  /// whole playlist.
  fileprivate var isLanguageTag: Bool {
    !isEmpty && utf8.allSatisfy { $0.isDigit || $0 == UInt8(ascii: "-") || (0x41...0x5a).contains($0 & 0xdf) }
  }
}

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

  /// Renditions from which a player selects one.
  struct Group: Hashable {
    var members: [Int]
    var defaultMember: Int
    /// HLS: its GROUP-ID.
    var id: String?
  }

  private(set) var pairs: [Pair] = []
  private(set) var groups: [Group] = []
  private(set) var hasLeftOut = false

  /// The used video tracks, in ascending order.
  var usedVideo: [Int] {
    pairs.compactMap { if case .video(let index) = $0.main { index } else { nil } }.uniqued().sorted()
  }
  /// The used audio tracks, in ascending order.
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

  /// Returns the groups of HLS unchanged.
  private static func groupsByID(_ audio: [VirtualHLSCandidate]) -> [Group] {
    var (ids, members): ([String], [String: [Int]]) = ([], [:])
    for (index, candidate) in audio.enumerated() {
      let id = candidate.group.id ?? ""
      if members[id] == nil { ids.append(id) }
      members[id, default: []].append(index)
    }
    return ids.map { group(Array((members[$0] ?? []).prefix(VirtualHLSPlanner.limit)), of: audio, id: $0) }
  }

  /// Returns a group for each codec, number of channels and quality. If a language lacks a format, another
  /// format takes its place, because every group has to offer every language (RFC 8216 §4.3.4.1.1).
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

/// A rung that HLS can express, with the properties of its group.
struct VirtualHLSCandidate: Sendable {
  let rung: Rung
  let list: SegmentList
  let container: SegmentContainer
  /// `rung` is one of its rungs.
  let group: TrackGroup
  let content: Content
  let place: Place
  /// True if its media is decrypted on the way to a client.
  var isDecrypted = false

  /// The position in a period.
  struct Place: Sendable, Hashable {
    var group: Int
    var rung: Int
  }

  /// The properties that are the same in every quality.
  struct Content: Sendable, Hashable {
    /// The language in lower case, empty if unknown.
    var language: String
    var roles: [String]
    var label: String?

    init(_ group: TrackGroup) {
      language = group.language?.lowercased() ?? ""
      roles = group.roles.sorted()
      label = group.label
    }
  }

  /// Codec and number of channels, which a player either supports or does not.
  struct Format: Hashable {
    var codecs: [String]
    var channels: String?
  }

  var format: Format { Format(codecs: rung.codecs.map(Self.fourCharacterCode), channels: rung.channels) }

  /// True if audio is muxed with the video.
  var isMuxed: Bool { rung.codecs.contains { CodecFamily($0) == .audio } && rung.audioGroup == nil }

  /// Returns the `avc1` of `avc1.64001f`, in lower case.
  static func fourCharacterCode(_ codec: String) -> String {
    codec.split(separator: ".").first?.lowercased() ?? ""
  }

  /// Returns how much this one differs from another one as its continuation in another period: the lower the
  /// better, item by item.
  func distance(to other: VirtualHLSCandidate) -> [Double] {
    let isSameContent = content.language == other.content.language
    let hasSameID = rung.id == other.rung.id && isSameContent
    return [
      hasSameID ? 0 : 1,
      isSameContent ? 0 : primaryLanguage == other.primaryLanguage ? 1 : 2,
      content.roles == other.content.roles ? 0 : 1,
      format.codecs == other.format.codecs ? 0 : 1,
      Self.ratio(rung.size.map { $0.width * $0.height }, other.rung.size.map { $0.width * $0.height }),
      rung.channels == other.rung.channels ? 0 : 1,
      Self.ratio(rung.bitsPerSecond, other.rung.bitsPerSecond),
    ]
  }

  // MARK: - Private

  private var primaryLanguage: Substring? { content.language.split(separator: "-").first }

  /// Returns the ratio of two rates as a logarithm; 0 if either is unknown.
  private static func ratio(_ first: Int?, _ second: Int?) -> Double {
    guard let first, let second, first > 0, second > 0 else { return 0 }
    return abs(log(Double(first) / Double(second)))
  }
}

/// A rung through all periods.
struct VirtualHLSRow: Sendable {
  /// The track in the period that sets the pattern, with its language and rank.
  var anchor: VirtualHLSCandidate
  /// The rung in each period; nil if there is none of its kind.
  var items: [VirtualHLSCandidate?]
}
