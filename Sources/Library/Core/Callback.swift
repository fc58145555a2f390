/// An optional closure for a `Locked`.
///
/// It is kept in a structure because a closure that is itself the value of a generic type gets another wrapper
/// at each access in place, and the wrappers accumulate.
package struct Callback<Argument>: Sendable {
  package var call: (@Sendable (Argument) -> Void)?

  package init(_ call: (@Sendable (Argument) -> Void)? = nil) { self.call = call }
}
