/// A closure that is kept in a `Locked`, or none.
///
/// A closure that is itself the value of a generic type is wrapped anew each time it is reached in place, and the
/// wrappers stay: one in a structure is not.
package struct Callback<Argument>: Sendable {
  package var call: (@Sendable (Argument) -> Void)?

  package init(_ call: (@Sendable (Argument) -> Void)? = nil) { self.call = call }
}
