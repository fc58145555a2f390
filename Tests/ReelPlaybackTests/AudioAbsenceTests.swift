import ReelCore
import Testing

@testable import ReelPlayback

@Suite("Counting how long audio has not arrived")
struct AudioAbsenceTests {
  private let patience = Duration.seconds(10)

  /// Makes each check late by `lateness`. Returns when the patience runs out, or nil if that takes too long.
  private func end(lateness: Duration) -> Duration? {
    var absence = AudioAbsence()
    var now = Duration.seconds(100)
    absence.end(at: now)
    for _ in 0..<1000 {
      let due = absence.nextLook(after: now, patience: patience)
      now = due + lateness
      absence.count(to: due, now: now)
      if absence.length >= patience { return now - .seconds(100) }
    }
    return nil
  }

  @Test("On a responsive machine, it is the elapsed time")
  func inTime() {
    #expect(end(lateness: .zero) == .seconds(10))
  }

  @Test("A multiple of each check's delay is subtracted")
  func late() throws {
    let little = try #require(end(lateness: .milliseconds(10)))
    #expect(little > .seconds(11) && little < .seconds(13))
    let more = try #require(end(lateness: .milliseconds(50)))
    #expect(more > .seconds(20) && more < .seconds(23))
    // So late that nothing is known about the server.
    #expect(end(lateness: .milliseconds(100)) == nil)
    #expect(end(lateness: .seconds(30)) == nil)
  }

  @Test("Audio that arrives resets the count")
  func comes() {
    var absence = AudioAbsence()
    absence.end(at: .seconds(1))
    absence.count(to: .seconds(9), now: .seconds(9))
    #expect(absence.length == .seconds(8))
    #expect(absence.nextLook(after: .seconds(9), patience: patience) == .seconds(10))
    absence.end(at: .milliseconds(9500))
    #expect(absence.length == .zero)
    absence.count(to: .seconds(10), now: .seconds(10))
    #expect(absence.length == .milliseconds(500))
    #expect(absence.since == .milliseconds(9500))
  }

  @Test("After patience spans out, the next check is an interval later")
  func over() {
    var absence = AudioAbsence()
    absence.end(at: .zero)
    absence.count(to: .seconds(12), now: .seconds(12))
    #expect(absence.nextLook(after: .seconds(12), patience: patience) == .seconds(13))
  }
}
