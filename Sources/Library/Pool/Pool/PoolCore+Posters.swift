internal import Foundation
internal import ReelCore
internal import ReelFFmpeg
internal import ReelPlayback

/// Showing an item's poster until its first frame is ready.
extension PoolCore {
  /// Shows the poster of the current item if it has been fetched and no frame is shown yet.
  func showPoster() {
    let item = state.withLock { state -> FeedItem? in
      guard state.target?.player.hasFrame != true, !state.isPinned(state.currentItem?.id) else {
        return nil
      }
      return state.currentItem
    }
    guard let item, let url = item.poster, surface.wantsPoster(of: item.id),
      let bytes = posters.bytes(of: url),
      let image = try? StillImage(decoding: bytes, name: url.absoluteString, logger: resources.logger),
      let decoded = try? image.frame.clone()
    else { return }
    let frame = TimedFrame(decoded, time: .zero, stream: image.stream, frameRate: nil)
    surface.show(frame, of: item.id) {
      state.withLock { $0.currentItem?.id == item.id && $0.target?.player.hasFrame != true }
    }
  }
}
