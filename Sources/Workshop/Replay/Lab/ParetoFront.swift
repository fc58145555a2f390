/// The members of a set that no other member surpasses.
package enum ParetoFront {
  /// For each member, true if no other one is at least as good everywhere and better somewhere.
  ///
  /// - Parameter costs: For each member, its costs; lower is better.
  package static func members(_ costs: [[Double]]) -> [Bool] {
    costs.map { own in
      !costs.contains { other in
        zip(other, own).allSatisfy { $0 <= $1 } && zip(other, own).contains { $0 < $1 }
      }
    }
  }
}
