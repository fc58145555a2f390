internal import ReelCore
internal import ReelReading
internal import ReelSources

/// The iterations of a looping item as its loaders read them, one after the other on the player's timeline. A
/// pure value.
struct LoopIterations: Sendable {
  /// Iterations that are no longer wanted.
  struct Cut: Sendable, Equatable {
    /// The last iteration that is wanted.
    let loop: LoopIteration
    /// The loaders that are beyond it.
    let ahead: Set<TrackKind>
  }

  private(set) var loops: Bool
  /// The offset of each iteration from the first.
  private var shifts: [MediaTime] = [.zero]
  /// The iteration that each loader is in.
  private var current: [TrackKind: Int] = [:]

  init(loops: Bool) { self.loops = loops }

  /// The last iteration that is wanted.
  var last: Int { loops ? .max : shifts.count - 1 }

  /// Returns the position of a seek to `time`: not beyond the current iteration. Printed times are rounded
  /// down to an instant, so a frame that begins within one is the intended one.
  func place(of time: MediaTime, iteration: Int, instant: MediaTime) -> MediaTime {
    var place = time > shifts[min(iteration, shifts.count - 1)] ? time + instant : time
    if iteration + 1 < shifts.count { place = min(place, shifts[iteration + 1] - instant) }
    return place
  }

  /// Records that a loader moves to `time` on the player's timeline; nil for the beginning.
  mutating func begin(at time: MediaTime?, of loader: TrackKind) -> LoopIteration {
    begin(time.flatMap { time in shifts.lastIndex { $0 <= time } } ?? 0, of: loader)
  }

  /// Returns the next iteration of a loader that has read one to its end; nil if there is none, or if its
  /// start is not known yet.
  ///
  /// - Parameters:
  ///   - videoEnd: The end of the loaded video.
  ///   - audioEnd: The end of the loaded audio, if audio is played.
  mutating func next(
    after iteration: Int, of loader: TrackKind, videoEnd: MediaTime?, audioEnd: MediaTime?
  ) -> LoopIteration? {
    guard loops else { return nil }
    let next = iteration + 1
    if next < shifts.count { return begin(next, of: loader) }
    guard loader == .video, next == shifts.count, let videoEnd, videoEnd > shifts[iteration] else {
      return nil
    }
    // Longer audio is played to its end while the last frame stays on show.
    shifts.append(max(videoEnd, audioEnd ?? videoEnd))
    return begin(next, of: loader)
  }

  /// Starts or stops looping.
  ///
  /// - Parameters:
  ///   - iteration: The current iteration. If the item no longer loops, it is the last one.
  mutating func setLoops(_ loops: Bool, iteration: Int) -> Cut? {
    let hadMore = self.loops && !loops && shifts.count > iteration + 1
    self.loops = loops
    guard hadMore else { return nil }
    shifts.removeLast(shifts.count - iteration - 1)
    let ahead = Set(current.filter { $1 > iteration }.keys)
    for loader in ahead { current[loader] = iteration }
    return Cut(loop: LoopIteration(iteration: iteration, shift: shifts[iteration]), ahead: ahead)
  }

  // MARK: - Private

  private mutating func begin(_ iteration: Int, of loader: TrackKind) -> LoopIteration {
    current[loader] = iteration
    return LoopIteration(iteration: iteration, shift: shifts[iteration])
  }
}
