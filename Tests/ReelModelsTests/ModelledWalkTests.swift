import Foundation
import ReelCore
import ReelModels
import ReelSimulation
import Testing

/// On most links of these tests, a byte takes a microsecond and a round trip 100 ms, so that each time is a sum of steps.
@Suite("Walks of modelled players, by arithmetic")
struct ModelledWalkTests {
  private static let link = "8Mbit/100ms"

  /// An item of HLS with segments of 2 s.
  private func item(
    _ number: Int, rates: [Double] = [2_000_000], segmentCount: Int = 4, head: Int64 = 1000,
    frame: Int64 = 50_000
  ) throws -> ItemFacts {
    let base = try #require(URL(string: "http://10.0.0.1/\(number)/"))
    let rungs = rates.enumerated().map { place, rate in
      var rung = ItemFacts.Rung(
        (0..<segmentCount).map { index in
          LinkPlayback.Segment(
            base.appending(path: "\(place)-\(index)"),
            [LinkPlayback.Piece(byteCount: Int64(rate / 4), duration: 2)])
        })
      rung.bitsPerSecond = Int(rate)
      rung.playlist = LinkPlayback.Request(
        base.appending(path: "\(place)"), byteCount: head, purpose: .manifest)
      rung.initialization = LinkPlayback.Request(
        base.appending(path: "\(place)-init"), byteCount: head, purpose: .initialization)
      return rung
    }
    var facts = ItemFacts(
      .hls, manifest: LinkPlayback.Request(base, byteCount: head, purpose: .source), video: rungs)
    facts.firstFrameByteCount = frame
    facts.frameDuration = 0.04
    return facts
  }

  /// A model with simple costs: create 10, parse 5, append 20, open 30, decode 4, present 6, play 50, swap 15, stop 7 ms.
  private func model(players: Int = 1, _ change: (inout PlayerModel) -> Void = { _ in }) throws -> PlayerModel
  {
    var model = try PlayerModel(argument: "hls.js")
    (model.costs.createMs, model.costs.parseMs, model.costs.appendMs) = (10, 5, 20)
    (model.costs.openDecoderMs, model.costs.decodeMs, model.costs.presentMs) = (30, 4, 6)
    (model.costs.playMs, model.costs.swapMs, model.costs.stopMs) = (50, 15, 7)
    model.adaptation = nil
    model.preload.players = players
    change(&model)
    return model
  }

  /// Swipes forward, one each `dwell`.
  private func walk(
    _ model: PlayerModel, _ items: [ItemFacts?], link: String = Self.link, dwell: Duration = .seconds(3),
    settle: Duration = .milliseconds(250)
  ) throws -> ModelledWalk.Outcome {
    var swipes: [ModelledWalk.Swipe] = []
    for index in items.indices {
      let time = dwell * index
      swipes.append(.init(to: index, draggedAt: time, settledAt: index == 0 ? time : time + settle))
    }
    return ModelledWalk(
      model, items: items, link: try LinkSpec(parsing: link), swipes: swipes, end: dwell * items.count
    ).run()
  }

  private func milliseconds(_ duration: Duration?) throws -> Double {
    let value = try #require(duration) / .milliseconds(1)
    return (value * 1000).rounded() / 1000
  }

  @Test("A start is the sum of its requests and of what the player takes for itself")
  func start() throws {
    let visit = try #require(try walk(try model(), [try item(0)]).visits.first)
    // Create 10; connection, request, 1000 bytes 201; parse 5; 101; parse 5; 101 for the initialization; 600; append 20.
    #expect(try milliseconds(visit.mediaReadyAt) == 10 + 201 + 5 + 101 + 5 + 101 + 600 + 20)
    #expect(try milliseconds(visit.shownAt) == 1043 + 30 + 4 + 6)
    #expect(try milliseconds(visit.secondAt) == 1083 + 50 + 40)
    #expect(visit.found == .nothing && visit.stalls.isEmpty)
  }

  @Test(
    "Initialization and segment that are requested together save a round trip, but not the new connection")
  func sideBySide() throws {
    let model = try model { $0.start.requests = [[.manifest], [.playlist], [.initialization, .segment]] }
    let visit = try #require(try walk(model, [try item(0)]).visits.first)
    // Sent at 322 on the open connection and on a new one; the initialization crosses first.
    #expect(try milliseconds(visit.mediaReadyAt) == 322 + 200 + 500 + 20)
  }

  @Test("Bytes that are used as they come bring the first frame with its last byte")
  func bytes() throws {
    let model = try model { model in
      model.start.media = .bytes
      model.start.firstFrame.needs = .frame
    }
    let visit = try #require(try walk(model, [try item(0)]).visits.first)
    // The frame ends in the third parcel of 20 ms.
    #expect(try milliseconds(visit.mediaReadyAt) == 423 + 100 + 60)
    #expect(try milliseconds(visit.shownAt) == 583 + 40)
  }

  @Test(
    "Without a preload, each swipe stops a player and starts another; a request that is cut off costs its connection"
  )
  func replaced() throws {
    let kept = try walk(try model(), [try item(0), try item(1)]).visits
    #expect(try milliseconds(kept[1].shownAt) == 3000 + 7 + 1083 - 100)
    let cut = try walk(try model(), [try item(0, segmentCount: 9), try item(1)]).visits
    #expect(try milliseconds(cut[1].shownAt) == 3000 + 7 + 1083)
    #expect(try milliseconds(cut[1].secondAt) == 4090 + 50 + 40)
    let late = try walk(try model(), [try item(0), try item(1)], settle: .seconds(2)).visits
    #expect(try milliseconds(late[1].secondAt) == 5000 + 50 + 40)
  }

  @Test("A preloaded player shows its frame after a swap, and plays with the settle")
  func preloaded() throws {
    let outcome = try walk(try model(players: 2), [try item(0), try item(1), try item(2)])
    #expect(outcome.visits.map(\.found) == [.nothing, .decoded, .decoded])
    #expect(try milliseconds(outcome.visits[1].shownAt) == 3015)
    #expect(try milliseconds(outcome.visits[1].secondAt) == 3250 + 40)
    #expect(outcome.stays.map(\.item).sorted() == [0, 1, 2])
    #expect(Set(outcome.stays.map(\.player)) == [0, 1])
  }

  @Test("A preload that waits for the current item leaves it the link; one that does not delays it")
  func order() throws {
    let items = [try item(0), try item(1)]
    func shown(_ change: (inout PlayerModel.Preload) -> Void) throws -> (first: Double, requested: Double) {
      let model = try model(players: 2) { change(&$0.preload) }
      let outcome = try walk(model, items)
      let place = try #require(outcome.owners.firstIndex(of: 1))
      return (
        try milliseconds(outcome.visits[0].shownAt), try milliseconds(outcome.exchanges[place].sentAt)
      )
    }
    let waiting = try shown { _ in }
    #expect(waiting.first == 1083 && waiting.requested == 1083 + 10)
    let sharing = try shown { $0.items[0].after = nil }
    #expect(sharing.first > 1500 && sharing.requested == 10)
    let patient = try shown { $0.waitsUntil = .buffered }
    // Four segments one after the other, 620 ms each.
    #expect(patient.first == 1083 && patient.requested == 423 + 4 * 620 + 10)
  }

  @Test("Preloads of a player that only loads cost the decoder at the swipe")
  func undecoded() throws {
    let model = try model(players: 2) { $0.preload.decodes = false }
    let visit = try walk(model, [try item(0), try item(1)]).visits[1]
    #expect(visit.found == .opened)
    #expect(try milliseconds(visit.shownAt) == 3000 + 30 + 4 + 6)
  }

  @Test("Bytes of preloads that were never shown are waste, and those that a cache has cross the link once")
  func waste() throws {
    let outcome = try walk(try model(players: 2), [try item(0), try item(1)], dwell: .seconds(3))
    let left = try walk(try model(players: 2), [try item(0)] + [try item(1)].map { $0 }, dwell: .seconds(12))
    // 8 s of each are played to the end: nothing is wasted.
    #expect(left.unshownByteCount == 0 && left.fetchedByteCount == 2 * (3 * 1000 + 4 * 500_000))
    #expect(outcome.unshownByteCount > 500_000)
    var swipes = (0..<3).map { index in
      ModelledWalk.Swipe(to: index % 2, draggedAt: .seconds(9) * index, settledAt: .seconds(9) * index)
    }
    func back(_ cache: Bool) throws -> ModelledWalk.Outcome {
      ModelledWalk(
        try model { $0.cache = cache }, items: [try item(0), try item(1)],
        link: try LinkSpec(parsing: Self.link),
        swipes: swipes, end: .seconds(27)
      ).run()
    }
    let (cached, again) = (try back(true), try back(false))
    #expect(cached.fetchedByteCount == 2 * 2_003_000 && again.fetchedByteCount == 3 * 2_003_000)
    // Stop, create, parse twice, append, and the decoder.
    #expect(try milliseconds(cached.visits[2].shownAt) == 18_000 + 7 + 10 + 10 + 20 + 40)
    swipes = []
    #expect(try back(true).fetchedByteCount == 0)
  }

  @Test("What a link does not carry stalls, and resumes with what the model waits for")
  func stalls() throws {
    let model = try model { $0.start.resumeMs = 2000 }
    let outcome = try walk(
      model, [try item(0, rates: [10_000_000])], link: "8Mbit/100ms", dwell: .seconds(20))
    let stalls = outcome.visits[0].stalls
    // A segment takes 2.62 s and lasts 2 s. The first one is played 90 ms after it has come.
    #expect(stalls.count == 3)
    for stall in stalls { #expect(abs(try milliseconds(stall.duration) - 620) < 91) }
  }

  @Test("The rung follows the measured rate, and a new one brings its playlist and its initialization")
  func adaptation() throws {
    let model = try model { model in
      model.start.rung = .lowest
      model.adaptation = try? PlayerModel(argument: "hls.js").adaptation
      model.adaptation?.share = 0.8
    }
    let outcome = try walk(model, [try item(0, rates: [1_000_000, 4_000_000])], dwell: .seconds(12))
    #expect(outcome.visits[0].rungs.map(\.rung) == [0, 1])
    #expect(outcome.visits[0].rungs.map(\.seconds) == [2, 6])
    let paths = outcome.exchanges.map(\.request.url.lastPathComponent)
    #expect(paths.dropFirst(3) == ["0-0", "1", "1-init", "1-1", "1-2", "1-3"])
  }

  @Test("An item that the player can't play is shown by nobody")
  func missing() throws {
    let outcome = try walk(try model(players: 2), [try item(0), nil, try item(2)])
    #expect(outcome.visits.map { $0.shownAt == nil } == [false, true, false])
  }

  @Test("The same walk gives the same result, on links with everything that is modelled")
  func repeatable() throws {
    let items = try (0..<6).map { try item($0, rates: [600_000, 2_500_000], segmentCount: 10) }
    for name in PlayerModel.shippedNames {
      var model = try PlayerModel(argument: name)
      model.preload.players = 3
      func text() throws -> String {
        let outcome = try walk(model, items, link: "lte,tcp,tls,dns,jitter=10ms", dwell: .milliseconds(1700))
        return "\(outcome.visits) \(outcome.fetchedByteCount) \(outcome.unshownByteCount)"
      }
      #expect(try text() == text())
    }
  }

  /// What `Benchmarks/players` measured with `fmp4-2s` on an idle machine: p50 of the first frame.
  @Test(
    "The models that ship come near what real players did",
    arguments: [
      ("hls.js", 912, 140), ("video.js", 907, 152), ("chromium", 879, 140), ("mpv", 1278, 0),
      ("playbin3", 981, 0),
    ] as [(String, Double, Double)])
  func measured(name: String, replaced: Double, preloaded: Double) throws {
    let items = try (0..<7).map { number in
      var facts = try item(number, rates: [2_850_000], segmentCount: 10, frame: 82_000)
      // A media playlist alone, and sound behind the video of each segment.
      facts.video[0].playlist = nil
      facts.firstSoundByteCount = facts.video[0].segments[0].byteCount
      (facts.frameDuration, facts.reorderDelay) = (1 / 30, 2 / 30)
      return facts
    }
    for (players, expected) in [(1, replaced), (2, preloaded)] {
      var model = try PlayerModel(argument: name)
      model.preload.players = players
      let outcome = try walk(
        model, items, link: "10Mbit/50ms,tcp", dwell: .milliseconds(2500), settle: .zero)
      let waits = try outcome.visits.dropFirst().map { visit in
        try milliseconds(visit.shownAt.map { $0 - visit.swipe.draggedAt })
      }.sorted()
      let median = waits[waits.count / 2]
      #expect(
        abs(median - expected) <= max(expected * 0.15, 25), "\(name), \(players): \(median), not \(expected)")
    }
  }

  /// A visit of two items that are loaded to their ends.
  private func visit(_ disk: StoredMedia?) throws -> ModelledWalk.Outcome {
    var walk = ModelledWalk(
      try model { $0.cache = true }, items: [try item(0), try item(1)],
      link: try LinkSpec(parsing: Self.link),
      swipes: (0..<2).map {
        .init(to: $0, draggedAt: .seconds(12) * $0, settledAt: .seconds(12) * $0)
      }, end: .seconds(24))
    walk.disk = disk
    return walk.run()
  }

  @Test("A cache on disk leaves a later visit a round trip for each manifest, and after a day for all")
  func visits() throws {
    let first = try visit(StoredMedia(byteLimit: 1 << 30))
    let byteCount: Int64 = 2 * (3 * 1000 + 4 * 500_000)
    #expect(first.fetchedByteCount == byteCount && first.diskByteCount == 0)
    var disk = try #require(first.disk)
    #expect(disk.byteCount == byteCount)
    disk.endVisit(after: .seconds(24 + 3600))
    let second = try visit(disk)
    // The manifest and the playlist of each item, a byte each.
    #expect(second.fetchedByteCount == 4 && second.diskByteCount == byteCount - 4)
    for (before, after) in zip(first.visits, second.visits) {
      #expect(try milliseconds(after.shownAt) < milliseconds(before.shownAt))
    }
    disk.endVisit(after: .seconds(86_400))
    let late = try visit(disk)
    // And the initialization and four segments.
    #expect(late.fetchedByteCount == 14)
    #expect(try milliseconds(late.visits[0].shownAt) > milliseconds(second.visits[0].shownAt))
    let plain = try visit(nil)
    #expect(plain.visits == first.visits && plain.disk == nil && plain.diskByteCount == 0)
  }

  @Test("A limit smaller than the items evicts, and what is gone is fetched again")
  func evicted() throws {
    let first = try visit(StoredMedia(byteLimit: 1_500_000))
    var disk = try #require(first.disk)
    #expect(disk.byteCount <= 1_500_000)
    disk.endVisit(after: .seconds(3600))
    #expect(try visit(disk).fetchedByteCount > 2_000_000)
  }

  @Test("Media3 puts the starts of further items on disk, if it has a cache")
  func heads() throws {
    let model = try PlayerModel(argument: "media3")
    let items = try (0..<12).map { try item($0) }
    func walk(_ disk: StoredMedia?) throws -> ModelledWalk.Outcome {
      var walk = ModelledWalk(
        model, items: items, link: try LinkSpec(parsing: Self.link),
        swipes: [
          .init(to: 5, draggedAt: .zero, settledAt: .zero),
          .init(to: 10, draggedAt: .seconds(60), settledAt: .seconds(60)),
        ], end: .seconds(70))
      walk.disk = disk
      return walk.run()
    }
    let (with, without) = (try walk(StoredMedia(byteLimit: 1 << 30)), try walk(nil))
    #expect(with.visits[0].shownAt == without.visits[0].shownAt)
    // No request is needed until the start of the jump's target is read.
    #expect(try milliseconds(with.visits[1].shownAt) < milliseconds(without.visits[1].shownAt) - 400)
    #expect(with.diskByteCount > 0 && without.diskByteCount == 0)
    #expect(with.visits[1].found == .onDisk && without.visits[1].found == .nothing)
    #expect(with.fetchedByteCount > without.fetchedByteCount)
    let disk = try #require(with.disk)
    #expect(disk.byteCount > 0 && disk[items[10].video[0].segments[2].url] != nil)
    // It holds 5 s of an item: three segments.
    #expect(disk[items[10].video[0].segments[3].url] == nil)
  }
}
