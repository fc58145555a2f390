package import ReelCore

/// What goes wrong with a live simulation, as it does in the field.
package struct LiveDisturbances: Sendable, Hashable {
  /// A time in which nothing new is published. What was held back is there at once when it ends.
  package struct Stall: Sendable, Hashable {
    /// When it begins, from the start of the simulation.
    package var after: MediaTime
    package var length: MediaTime

    package init(after: MediaTime, length: MediaTime) {
      self.after = after
      self.length = length
    }
  }

  /// Old copies of manifests among the fresh ones, as a cache gives them that is out of step with the others.
  package struct StaleCopies: Sendable, Hashable {
    /// Every so many-th request of a manifest gets one.
    package var every: Int
    /// How old they are.
    package var age: MediaTime

    package init(every: Int, age: MediaTime) {
      self.every = every
      self.age = age
    }
  }

  package var stalls: [Stall]
  package var staleCopies: StaleCopies?

  package init(stalls: [Stall] = [], staleCopies: StaleCopies? = nil) {
    self.stalls = stalls
    self.staleCopies = staleCopies
  }

  /// Up to where the stream is published at `time`, both from the start of the simulation.
  func published(at time: MediaTime) -> MediaTime {
    stalls.reduce(time) { published, stall in
      stall.after <= time && time < stall.after + stall.length ? min(published, stall.after) : published
    }
  }

  /// How old the answer to the request of this number (from 1 on) is.
  func age(ofRequest number: Int) -> MediaTime {
    guard let staleCopies, staleCopies.every > 0, number % staleCopies.every == 0 else { return .zero }
    return staleCopies.age
  }
}
