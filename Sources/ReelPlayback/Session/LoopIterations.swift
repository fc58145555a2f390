internal import ReelCore

/// The times through an item that loops, as its loaders read them: each lies behind the one before it on the player's
/// timeline. A pure value.
struct LoopIterations: Sendable {
  /// Later passes that are not wanted any more.
  struct Cut: Sendable, Equatable {
    /// The last iteration that is wanted.
    let iteration: Int
    /// Where it begins.
    let shift: MediaTime
    /// Passes that are begun from now on have this number or a later one.
    let generation: Int
    /// The loaders that have read all of the last iteration.
    let ended: Set<MediaPacket.Kind>
  }

  private(set) var loops: Bool
  /// How much later each iteration is than the first.
  private var shifts: [MediaTime] = [.zero]
  /// Passes that loaders have begun so far.
  private var generation = 0
  /// The iteration that each loader is in.
  private var current: [MediaPacket.Kind: LoopIteration] = [:]
  /// Loaders that were in later passes when looping was given up go back to the end of this one.
  private var cut: (iteration: Int, generation: Int)?

  init(loops: Bool) { self.loops = loops }

  /// Where a seek to `time` goes: not beyond the iteration that is on show. What is printed of a time is cut to an instant: the
  /// frame that begins within one is the one that was meant.
  func place(of time: MediaTime, iteration: Int, instant: MediaTime) -> MediaTime {
    var place = time > shifts[min(iteration, shifts.count - 1)] ? time + instant : time
    if iteration + 1 < shifts.count { place = min(place, shifts[iteration + 1] - instant) }
    return place
  }

  /// A loader goes to `time` on the player's timeline; nil for the beginning.
  mutating func begin(at time: MediaTime?, of loader: MediaPacket.Kind) -> LoopIteration {
    begin(time.flatMap { time in shifts.lastIndex { $0 <= time } } ?? 0, of: loader)
  }

  /// The next iteration of a loader that has read one to its end; nil where none is to come, or it is not known yet where it
  /// begins.
  ///
  /// - Parameters:
  ///   - videoEnd: The end of the video that was loaded.
  ///   - audioEnd: Of audio, where that is played. Of a stream of its own no more counts than was loaded by then.
  mutating func next(
    after iteration: Int, of loader: MediaPacket.Kind, videoEnd: MediaTime?, audioEnd: MediaTime?
  ) -> LoopIteration? {
    guard loops else { return nil }
    let next = iteration + 1
    if next < shifts.count { return begin(next, of: loader) }
    guard loader == .video, next == shifts.count, let videoEnd, videoEnd > shifts[iteration] else {
      return nil
    }
    // Sound that is longer is heard to its end, with the last frame.
    shifts.append(max(videoEnd, audioEnd ?? videoEnd))
    return begin(next, of: loader)
  }

  /// Begins or gives up looping.
  ///
  /// - Parameters:
  ///   - iteration: The one that is on show.
  ///   - sent: Loaders that are on their way to another place.
  mutating func setLoops(_ loops: Bool, iteration: Int, sent: Set<MediaPacket.Kind>) -> Cut? {
    let hadMore = self.loops && !loops && shifts.count > iteration + 1
    self.loops = loops
    guard hadMore else { return nil }
    shifts.removeLast(shifts.count - iteration - 1)
    generation += 1
    cut = (iteration, generation)
    let ended = current.filter { $1.iteration > iteration && !sent.contains($0) }.map(\.key)
    return Cut(iteration: iteration, shift: shifts[iteration], generation: generation, ended: Set(ended))
  }

  /// The last iteration, for a loader that was beyond it; once.
  mutating func returnFromCut(_ loader: MediaPacket.Kind) -> Int? {
    guard let cut, let loop = current[loader], loop.generation < cut.generation,
      loop.iteration > cut.iteration
    else {
      return nil
    }
    current[loader] = LoopIteration(
      iteration: cut.iteration, shift: shifts[cut.iteration], generation: cut.generation)
    return cut.iteration
  }

  // MARK: - Private

  private mutating func begin(_ iteration: Int, of loader: MediaPacket.Kind) -> LoopIteration {
    generation += 1
    let loop = LoopIteration(iteration: iteration, shift: shifts[iteration], generation: generation)
    current[loader] = loop
    return loop
  }
}
