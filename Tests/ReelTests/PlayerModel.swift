import Observation
import Reel

/// The state of a player for a user interface. A SwiftUI view that reads a property is updated when it changes;
/// `withObservationTracking` does the same elsewhere.
@MainActor @Observable final class PlayerModel {
  let title: String
  private(set) var status = PlayerItem.Status.unknown
  private(set) var isPlaying = false
  private(set) var isStalled = false
  private(set) var duration: MediaTime?
  private(set) var frame: VideoFrame?
  var time: MediaTime { frame?.time ?? .zero }

  init(title: String) { self.title = title }

  /// Follows a player until its item has ended or the task is cancelled; in SwiftUI, call it in `task`.
  func follow(_ player: Player) async {
    guard let item = player.currentItem.value else { return }
    let following = [
      Task { for await status in item.status.values { self.status = status } },
      Task { for await duration in item.duration.values { self.duration = duration } },
      Task {
        for await status in player.timeControlStatus.values {
          isPlaying = status == .playing
          isStalled = status == .waitingToPlayAtSpecifiedRate(.toMinimizeStalls)
        }
      },
    ]
    defer { for task in following { task.cancel() } }
    do { for try await frame in player.frames { self.frame = frame } } catch {}
    status = item.status.value  // The error of an item that fails is its status.
  }
}
