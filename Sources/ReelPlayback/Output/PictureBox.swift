/// A picture that a closure can borrow.
final class PictureBox: Sendable {
  let picture: TimedPicture

  init(_ picture: consuming TimedPicture) { self.picture = picture }
}
