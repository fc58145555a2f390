/// The answer of a source that is asked for its next element and never waits for it.
package enum Pulled<Element: ~Copyable>: ~Copyable {
  case element(Element)
  /// No element is available yet; more may follow. Ask again when the source has something new.
  case wait
  /// No more elements follow.
  case end
}

extension Pulled: Copyable where Element: Copyable {}
extension Pulled: Sendable where Element: Sendable & ~Copyable {}
