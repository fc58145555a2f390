internal import ReelCore

extension ContentProtection {
  /// Nil if there are no elements.
  init?(_ protections: [MPD.Descriptor]) {
    guard !protections.isEmpty else { return nil }
    self.init(schemes: [])
    for protection in protections.prefix(16) {
      let name = ProtectionScheme.name(forScheme: protection.scheme, value: protection.value)
      if !schemes.contains(name) { schemes.append(name.isEmpty ? "an unnamed scheme" : name) }
      for id in protection.keyIDs where !keyIDs.contains(id) { keyIDs.append(id) }
    }
  }
}
