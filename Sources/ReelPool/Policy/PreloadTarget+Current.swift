internal import ReelPlayback

extension PreloadTarget {
  /// What the current item gets, whatever the policy is: 3 s of media and an open decoder.
  static var current: PreloadTarget { PreloadTarget(stage: .buffered, isDecoderWarm: true) }
}
