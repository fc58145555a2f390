internal import Foundation
internal import ReelCore
internal import ReelFFmpeg
internal import ReelPlayback

/// An item's own image, until its first picture is there.
extension PoolCore {
  /// Shows the poster of the current item where its poster is there and its picture is not.
  func showPoster() {
    let item = state.withLock { state -> FeedItem? in
      guard state.target?.player.hasPicture != true, !state.isPinned(state.currentItem?.id) else {
        return nil
      }
      return state.currentItem
    }
    guard let item, let url = item.poster, surface.wantsPoster(of: item.id),
      let bytes = posters.bytes(of: url),
      let image = try? StillImage(decoding: bytes, name: url.absoluteString, logger: resources.logger),
      let frame = try? image.frame.clone()
    else { return }
    let picture = TimedPicture(frame: frame, time: .zero, stream: image.stream, frameRate: nil)
    surface.show(picture, of: item.id) {
      state.withLock { $0.currentItem?.id == item.id && $0.target?.player.hasPicture != true }
    }
  }
}
